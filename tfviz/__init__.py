"""tfviz: the Transformer family, each mechanism as a formula, a picture and a live explorer."""

__version__ = "0.1.0"
