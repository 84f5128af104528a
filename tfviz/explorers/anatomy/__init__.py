"""The explorer of public models, taken apart."""
