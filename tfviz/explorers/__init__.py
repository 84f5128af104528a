"""Live explorers: one Python class and one ES module each, with or without a kernel.

A new explorer is three files (`name.py`, `name.js`, `name.css`) and two lines here. It is imported
when somebody asks for it: a lesson rests on its own explorers, not on those of all others.
"""

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfviz.explorers.base import Explorer

if TYPE_CHECKING:
    from tfviz.explorers.activation_memory import ActivationMemory
    from tfviz.explorers.additive_scores import AdditiveScores
    from tfviz.explorers.attention_steps import AttentionSteps
    from tfviz.explorers.base import ALL, write_assets
    from tfviz.explorers.binary_spans import BinarySpans
    from tfviz.explorers.block_costs import BlockCosts
    from tfviz.explorers.block_signals import BlockSignals
    from tfviz.explorers.cache_budget import CacheBudget
    from tfviz.explorers.clock_hands import ClockHands
    from tfviz.explorers.conveyor_belt import ConveyorBelt
    from tfviz.explorers.decoding import Decoding
    from tfviz.explorers.distance_curves import DistanceCurves
    from tfviz.explorers.edge_draws import EdgeDraws
    from tfviz.explorers.exit_classifiers import ExitClassifiers
    from tfviz.explorers.exit_early import ExitEarly
    from tfviz.explorers.exit_ladder import ExitLadder
    from tfviz.explorers.first_look import FirstLook
    from tfviz.explorers.four_quadrants import FourQuadrants
    from tfviz.explorers.gate_over_text import GateOverText
    from tfviz.explorers.guaranteed_threshold import GuaranteedThreshold
    from tfviz.explorers.halting_steps import HaltingSteps
    from tfviz.explorers.hash_wheel import HashWheel
    from tfviz.explorers.image_lens import ImageLens
    from tfviz.explorers.lambda_mixer import LambdaMixer
    from tfviz.explorers.learned_spans import LearnedSpans
    from tfviz.explorers.loss_schedule import LossSchedule
    from tfviz.explorers.memory_strip import MemoryStrip
    from tfviz.explorers.merge_stepper import MergeStepper
    from tfviz.explorers.moving_centroids import MovingCentroids
    from tfviz.explorers.pattern_search import PatternSearch
    from tfviz.explorers.position_bench import PositionBench
    from tfviz.explorers.relative_terms import RelativeTerms
    from tfviz.explorers.rotary_clocks import RotaryClocks
    from tfviz.explorers.same_layer import SameLayer
    from tfviz.explorers.sinkhorn_steps import SinkhornSteps
    from tfviz.explorers.soft_dictionary import SoftDictionary
    from tfviz.explorers.span_masks import SpanMasks
    from tfviz.explorers.sparse_lab import GoalReport, SparseLab
    from tfviz.explorers.step_signal import StepSignal
    from tfviz.explorers.three_maps import ThreeMaps
    from tfviz.explorers.token_spans import TokenSpans
    from tfviz.explorers.trained_heads import TrainedHeads
    from tfviz.explorers.training_views import TrainingViews
    from tfviz.explorers.who_hears import WhoHears

__all__ = [
    "ALL",
    "ActivationMemory",
    "AdditiveScores",
    "AttentionSteps",
    "BinarySpans",
    "BlockCosts",
    "BlockSignals",
    "CacheBudget",
    "ClockHands",
    "ConveyorBelt",
    "Decoding",
    "DistanceCurves",
    "EdgeDraws",
    "ExitClassifiers",
    "ExitEarly",
    "ExitLadder",
    "Explorer",
    "FirstLook",
    "FourQuadrants",
    "GateOverText",
    "GoalReport",
    "GuaranteedThreshold",
    "HaltingSteps",
    "HashWheel",
    "ImageLens",
    "LambdaMixer",
    "LearnedSpans",
    "LossSchedule",
    "MemoryStrip",
    "MergeStepper",
    "MovingCentroids",
    "PatternSearch",
    "PositionBench",
    "RelativeTerms",
    "RotaryClocks",
    "SameLayer",
    "SinkhornSteps",
    "SoftDictionary",
    "SpanMasks",
    "SparseLab",
    "StepSignal",
    "ThreeMaps",
    "TokenSpans",
    "TrainedHeads",
    "TrainingViews",
    "WhoHears",
    "write_assets",
]

BASE = ("ALL", "Explorer", "write_assets")
HOMES = {name: re.sub("(?<!^)(?=[A-Z])", "_", name).lower() for name in __all__ if name not in BASE}
HOMES["GoalReport"] = "sparse_lab"
"""The module of each class: its name in small letters."""


def __getattr__(name: str) -> Any:
    """A class from its module; for what speaks of every explorer, all are imported."""
    if name in HOMES:
        return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    if name in BASE:
        for home in HOMES.values():
            import_module(f"{__name__}.{home}")
        return getattr(import_module(f"{__name__}.base"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def explorer(module: str) -> Any:
    """The class of this module, without a look at the others. Raises KeyError if it has none."""
    if module in HOMES.values():
        import_module(f"{__name__}.{module}")
    return import_module(f"{__name__}.base").ALL[module]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
