"""Longer context: one module a mechanism."""
