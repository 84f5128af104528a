"""The family measured: every mechanism that a model takes as a core, in the same small GPT.

The columns of the atlas that no paper gives: how well the same model does with this mechanism, and
what a step of its training takes. One row for each mechanism that is a core or tells positions;
what is no encoding of positions gets learned positions besides, so it can be told what comes first.

    text, recall     nats, trained on rows of 64 and asked with rows of 64 (see `compare`)
    parameters       of the model for text
    time, memory     one training step at each of LENGTHS, ÷ that of the plain model: processor
                     time as the median of rounds in turns, the peak of what torch allocates

The race of positions (`extrapolation`) has trained the same models: its scores are not made twice.

    python -m tfviz.experiments family        all of it, → results/family.json
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch

from tfviz import patterns
from tfviz.adaptive.adaptive_span import AdaptiveSpan
from tfviz.adaptive.dynamic_span import DynamicSpan
from tfviz.adaptive.multi_scale_transformer import multi_scale
from tfviz.basics.additive_attention import Additive
from tfviz.cores import Sparse
from tfviz.experiments import compare
from tfviz.experiments.compare import HEADS, SEEDS, TASKS, TRAIN_LENGTH, WIDTH
from tfviz.experiments.runner import Done, Run
from tfviz.longer_context.alibi import alibi
from tfviz.longer_context.da_transformer import da
from tfviz.measure import in_turns, peak_memory
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope
from tfviz.position.shaw_relative import shaw
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.position.xl_relative import xl

LENGTHS, ROUNDS = (128, 512, 2048), 5
PACKAGES = ["torch", "numpy"]
CLOCKS = ("time",)
"""What `measure` reads from a clock, which no second run repeats."""
D_HEAD, SHAW_K = WIDTH // HEADS, 16

Told = Callable[[int], Any]


def _with_positions(**told: Any) -> Told:
    return lambda L: {"positions": Learned(L, WIDTH), **told}


PLAIN = "multi_head_attention"
MECHANISMS: dict[str, Told] = {
    PLAIN: _with_positions(),
    "additive_attention": _with_positions(core=lambda: Additive(D_HEAD, D_HEAD)),
    "sinusoidal_pe": lambda L: {"positions": Sinusoidal(WIDTH, scale=WIDTH**-0.5)},
    "learned_pe": _with_positions(),
    "shaw_relative": lambda L: {"core": shaw(D_HEAD, SHAW_K)},
    "xl_relative": lambda L: {"core": xl(HEADS, D_HEAD)},
    "rope": lambda L: {"core": lambda: Rope(D_HEAD)},
    "da_transformer": lambda L: {"core": da(HEADS)},
    "alibi": lambda L: {"core": alibi(HEADS)},
    "adaptive_span": _with_positions(core=lambda: AdaptiveSpan(HEADS, S=64, R=16)),
    "dynamic_span": _with_positions(core=lambda: DynamicSpan(HEADS, D_HEAD, S=64, R=16)),
    "multi_scale_transformer": lambda L: {
        **_with_positions(core=Sparse)(L),
        "pattern": [multi_scale(scales) for scales in ((1, 1, 3, 8), (1, 3, 8, 32))],
    },
    "image_transformer_1d": lambda L: {
        **_with_positions(core=Sparse)(L),
        "pattern": patterns.image_1d(block=16, memory=16),
    },
    "sparse_transformer_strided": lambda L: {
        **_with_positions(core=Sparse)(L),
        "pattern": patterns.strided(stride=round(L**0.5)),
    },
    "sparse_transformer_fixed": lambda L: {
        **_with_positions(core=Sparse)(L),
        "pattern": patterns.fixed(block=round(L**0.5), summary=1),
    },
}
"""What a GPT for rows of L is told, by the mechanism's id; torch's random numbers are seeded."""

RACED = {
    PLAIN: "learned",
    "learned_pe": "learned",
    "sinusoidal_pe": "sinusoidal",
    "shaw_relative": "shaw",
    "xl_relative": "xl",
    "rope": "rotary",
    "da_transformer": "da",
    "alibi": "alibi",
}
"""Trained already, under these names of `extrapolation`."""


def step(name: str, L: int) -> Callable[[], None]:
    """One step of training without the optimizer: loss and gradients of one row of L characters."""
    model = compare.TASKS["text"].model(**compare.told(lambda: MECHANISMS[name](L)))
    row = torch.arange(L)[None] % 50

    def work() -> None:
        model(row).logsumexp(-1).sum().backward()
        model.zero_grad()

    return work


def runs() -> list[Run]:
    """The training of what no other experiment has trained, and the costs of all."""
    trained = [(task, name) for task in ("text", "recall") for name in MECHANISMS.keys() - RACED]
    return [
        Run(f"{task} {name}", {"task": task, "name": name, "steps": TASKS[task].steps}, seed)
        for seed in SEEDS
        for task, name in sorted(trained)
    ] + [Run(f"cost {name}", {"task": "cost", "name": name}) for name in MECHANISMS]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """A score, or time and memory beside those of the plain model at each of LENGTHS."""
    name = config["name"]
    if config["task"] != "cost":
        variant = lambda: MECHANISMS[name](TRAIN_LENGTH)  # noqa: E731
        return compare.measured(variant, config["task"], seed, config["steps"])
    time, memory = [], []
    for L in LENGTHS:
        both = {"own": step(name, L), "plain": step(PLAIN, L)}
        spent = in_turns(both, ROUNDS)
        ratios = [a / b for a, b in zip(spent["own"], spent["plain"], strict=True)]
        time.append(round(median(ratios), 3))
        memory.append(round(peak_memory(both["own"]) / peak_memory(both["plain"]), 3))
    model = compare.model(lambda: MECHANISMS[name](TRAIN_LENGTH), "text", seed)
    parameters = sum(x.numel() for x in model.parameters())
    return {"time": time, "memory": memory, "parameters": parameters}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{"mechanisms": {id: {task: [score at each length] of each seed, "time", …}}}."""
    rows: dict[str, dict[str, Any]] = {name: {} for name in MECHANISMS}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config, result = x["run"]["config"], x["result"]
        if config["task"] == "cost":
            rows[config["name"]] |= result
        else:
            rows[config["name"]].setdefault(config["task"], []).append(result["score"])
    return {
        "title": "The family in one small GPT",
        "lengths": list(LENGTHS),
        "scored_lengths": list(compare.LENGTHS),
        "train_length": TRAIN_LENGTH,
        "raced": RACED,
        "mechanisms": rows,
    }
