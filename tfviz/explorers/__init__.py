"""Live explorers: one Python class and one ES module each, with or without a kernel.

A new explorer is three files (`name.py`, `name.js`, `name.css`) and one line here.
"""

from tfviz.explorers.additive_scores import AdditiveScores
from tfviz.explorers.attention_steps import AttentionSteps
from tfviz.explorers.base import ALL, Explorer, write_assets
from tfviz.explorers.block_costs import BlockCosts
from tfviz.explorers.block_signals import BlockSignals
from tfviz.explorers.merge_stepper import MergeStepper
from tfviz.explorers.soft_dictionary import SoftDictionary
from tfviz.explorers.sparse_lab import GoalReport, SparseLab

__all__ = [
    "ALL",
    "AdditiveScores",
    "AttentionSteps",
    "BlockCosts",
    "BlockSignals",
    "Explorer",
    "GoalReport",
    "MergeStepper",
    "SoftDictionary",
    "SparseLab",
    "write_assets",
]
