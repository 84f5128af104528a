"""Part I, Transformer basics: one file for each mechanism."""
