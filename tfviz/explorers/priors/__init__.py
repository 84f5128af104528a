"""Explorers of part VII, attention with prior."""
