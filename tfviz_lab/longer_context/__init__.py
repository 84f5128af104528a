"""Experiments of part III, longer context."""
