"""Experiments of part II, positions."""
