"""The family measured: every mechanism that a model takes as a core, in the same small GPT.

The columns of the atlas that no paper gives: how well the same model does with this mechanism, and
what a step of its training takes. One row for each mechanism that is a core or tells positions;
what is no encoding of positions gets learned positions besides, so it can be told what comes first.

    text, recall     nats, trained on rows of 64 and asked with rows of 64 (see `compare`)
    parameters       of the model for text
    time, memory     one training step at each of LENGTHS, ÷ that of the plain model: processor
                     time as the median of rounds in turns, the peak of what torch allocates

The race of positions (`extrapolation`) has trained the same models: its scores are not made twice.

    python -m tfviz_lab family        all of it, → results/family.json
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch

from tfviz.exhibits import EXHIBITS, Gpt
from tfviz.measure import in_turns, peak_memory
from tfviz_lab import compare
from tfviz_lab.compare import HEADS, SEEDS, TASKS, TRAIN_LENGTH, WIDTH
from tfviz_lab.runner import Done, Run

LENGTHS, ROUNDS = (128, 512, 2048), 5
PACKAGES = ["torch", "numpy"]
CLOCKS = ("time",)
"""What `measure` reads from a clock, which no second run repeats."""

PLAIN = "multi_head_attention"
RACES = {name: exhibit.race for name, exhibit in EXHIBITS.items() if exhibit.race}
MECHANISMS: list[str] = sorted(RACES, key=lambda name: name != PLAIN)
"""The plain model first, then in the order of the course."""

RACED = {name: raced for name in MECHANISMS if (raced := EXHIBITS[name].raced)}
"""Trained already, under these names of `extrapolation`."""


def variant(name: str, L: int) -> dict[str, Any]:
    """What a GPT for texts of L is given, by the mechanism's id."""
    return RACES[name](Gpt(L, WIDTH, HEADS))


def step(name: str, L: int) -> Callable[[], None]:
    """One step of training without the optimizer: loss and gradients of one row of L characters."""
    model = compare.TASKS["text"].model(**compare.told(lambda: variant(name, L)))
    row = torch.arange(L)[None] % 50

    def work() -> None:
        model(row).logsumexp(-1).sum().backward()
        model.zero_grad()

    return work


def runs() -> list[Run]:
    """The training of what no other experiment has trained, and the costs of all."""
    trained = [
        (task, name) for task in ("text", "recall") for name in set(MECHANISMS) - RACED.keys()
    ]
    costs = [
        Run(f"cost {name}", {"task": "cost", "name": name}, of=(*_code(name), *_code(PLAIN)))
        for name in MECHANISMS
    ]
    return [
        Run(
            f"{task} {name}",
            {"task": task, "name": name, "steps": TASKS[task].steps},
            seed,
            _code(name),
        )
        for seed in SEEDS
        for task, name in sorted(trained)
    ] + costs


def _code(name: str) -> tuple[str]:
    """Where the line of the race is made; it is looked up by its name while the code runs."""
    race = RACES[name]
    return (f"{race.__module__}:{race.__name__}",)


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """A score, or time and memory beside those of the plain model at each of LENGTHS."""
    name = config["name"]
    if config["task"] != "cost":
        made = partial(variant, name, TRAIN_LENGTH)
        return compare.measured(made, config["task"], seed, config["steps"])
    time, memory = [], []
    for L in LENGTHS:
        both = {"own": step(name, L), "plain": step(PLAIN, L)}
        spent = in_turns(both, ROUNDS)
        ratios = [a / b for a, b in zip(spent["own"], spent["plain"], strict=True)]
        time.append(round(median(ratios), 3))
        memory.append(round(peak_memory(both["own"]) / peak_memory(both["plain"]), 3))
    model = compare.model(partial(variant, name, TRAIN_LENGTH), "text", seed)
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
