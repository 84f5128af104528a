"""Experiments of part VII, attention with prior."""
