"""Explorers of part IX, beyond text."""
