"""Explorers of part I, Transformer basics."""
