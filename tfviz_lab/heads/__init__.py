"""Experiments of part VIII, the multi-head mechanism."""
