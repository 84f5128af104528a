"""Explorers of part VI, smaller matrices."""
