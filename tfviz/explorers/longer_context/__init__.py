"""Explorers of part III, longer context."""
