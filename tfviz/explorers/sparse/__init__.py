"""Explorers of part V, sparse attention."""
