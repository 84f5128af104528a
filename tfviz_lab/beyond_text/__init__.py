"""Experiments of part IX, beyond text."""
