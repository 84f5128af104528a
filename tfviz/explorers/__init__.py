"""Live explorers: one Python class and one ES module each, with or without a kernel.

A new explorer is three files (`name.py`, `name.js`, `name.css`) and one line here.
"""

from tfviz.explorers.additive_scores import AdditiveScores
from tfviz.explorers.attention_steps import AttentionSteps
from tfviz.explorers.base import ALL, Explorer, write_assets
from tfviz.explorers.cache_budget import CacheBudget
from tfviz.explorers.decoding import Decoding
from tfviz.explorers.soft_dictionary import SoftDictionary
from tfviz.explorers.sparse_lab import GoalReport, SparseLab

__all__ = [
    "ALL",
    "AdditiveScores",
    "AttentionSteps",
    "CacheBudget",
    "Decoding",
    "Explorer",
    "GoalReport",
    "SoftDictionary",
    "SparseLab",
    "write_assets",
]
