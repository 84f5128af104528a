"""Adaptive modelling: one module a mechanism."""
