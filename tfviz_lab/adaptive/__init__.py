"""Experiments of part IV, adaptive modelling."""
