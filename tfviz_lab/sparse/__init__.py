"""Experiments of part V, sparse attention."""
