"""Explorers of part IV, adaptive modelling."""
