"""Live explorers: one Python class and one ES module each, with or without a kernel.

A new explorer is three files (`name.py`, `name.js`, `name.css`) and one line here.
"""

from tfviz.explorers.additive_scores import AdditiveScores
from tfviz.explorers.attention_steps import AttentionSteps
from tfviz.explorers.base import ALL, Explorer, write_assets
from tfviz.explorers.block_costs import BlockCosts
from tfviz.explorers.block_signals import BlockSignals
from tfviz.explorers.cache_budget import CacheBudget
from tfviz.explorers.clock_hands import ClockHands
from tfviz.explorers.decoding import Decoding
from tfviz.explorers.loss_schedule import LossSchedule
from tfviz.explorers.merge_stepper import MergeStepper
from tfviz.explorers.position_bench import PositionBench
from tfviz.explorers.relative_terms import RelativeTerms
from tfviz.explorers.rotary_clocks import RotaryClocks
from tfviz.explorers.soft_dictionary import SoftDictionary
from tfviz.explorers.sparse_lab import GoalReport, SparseLab
from tfviz.explorers.three_maps import ThreeMaps
from tfviz.explorers.trained_heads import TrainedHeads
from tfviz.explorers.training_views import TrainingViews

__all__ = [
    "ALL",
    "AdditiveScores",
    "AttentionSteps",
    "BlockCosts",
    "BlockSignals",
    "CacheBudget",
    "ClockHands",
    "Decoding",
    "Explorer",
    "GoalReport",
    "LossSchedule",
    "MergeStepper",
    "PositionBench",
    "RelativeTerms",
    "RotaryClocks",
    "SoftDictionary",
    "SparseLab",
    "ThreeMaps",
    "TrainedHeads",
    "TrainingViews",
    "write_assets",
]
