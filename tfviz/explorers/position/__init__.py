"""Explorers of part II, positions."""
