"""Experiments of part I, Transformer basics."""
