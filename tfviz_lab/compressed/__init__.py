"""Experiments of part VI, smaller matrices."""
