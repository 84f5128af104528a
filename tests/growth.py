"""Moved: see `tfviz.measure`. The names stay here while other branches import them."""

from tfviz.measure import elements_produced, flops, largest_storage, slope  # noqa: F401
