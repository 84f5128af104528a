"""The race of everything: each mechanism of the course in the same small model, as one table.

>>> rows = table("causal")
>>> rows["multi_head_attention"]["exactness"], rows["linear_transformer"]["exactness"]
('exact', 'any')
"""

from __future__ import annotations

from typing import Any

from tfviz.exhibits import EXHIBITS
from tfviz.stored import load

KINDS = ("causal", "encoder")
SOURCES = ("family", "extrapolation", "tradeoffs")
COSTS = ("time", "memory", "flops", "state", "error", "no_error", "stopped")


def lengths() -> list[int]:
    """Where time, memory, operations and state were measured."""
    found: list[int] = load("tradeoffs")["lengths"]
    return found


def plain(kind: str) -> dict[str, list[float]]:
    """Of the model with full attention: "seconds" and "bytes" of a step at each of `lengths()`."""
    found: dict[str, list[float]] = load("tradeoffs")["plain"][_checked(kind)]
    return found


def table(kind: str) -> dict[str, dict[str, Any]]:
    """{id of a mechanism: its row}, the plain model's, "multi_head_attention", first.

    kind "causal" is a GPT that writes a text; "encoder" the same blocks, which see both sides
    of each place. Some mechanisms are in both. A row holds

        causal       bool: whether it can be in a model that writes
        exactness    how it meets the keys, as its exhibit says: "exact", "linear" or "any"
        text         nats for each of three seeds, least is best, asked with 64 tokens: of a
                     character (causal), of a hidden character (encoder)
        recall       nats of a symbol that stood 12 places before, for each seed; guessing has ln 8
        parameters   of the model for text
        time         of a training step ÷ that of the plain model, at each of `lengths()`
        memory       the largest that torch holds in it ÷ that of the plain model, likewise
        flops        operations of its products, likewise, a count
        state        bytes that a causal model keeps of a text of each length to go on, here also of
                     a pattern all keys; None where it has no cache, and for all encoders
        error        |A − Â| / |A| for each seed, of what it makes of a trained map; None where it
                     approximates none
        no_error     why it has none, "" where it has
        stopped      "memory" or "time" if longer texts were too much for it: what was not measured
                     is None in the lists. Else None

    Raises ValueError for another kind.
    """
    _checked(kind)
    results = {name: load(name) for name in SOURCES}
    costs, rows = results["tradeoffs"], dict[str, dict[str, Any]]()
    for name, row in costs[kind].items():
        if kind == "causal":
            measured = _causal_scores(name, results)
        else:
            measured = {"text": row["masked_text"], "recall": row["around"]}
            measured["parameters"] = row["parameters"]
        told = {"causal": name in costs["causal"], "exactness": EXHIBITS[name].exactness}
        rows[name] = told | measured | {key: row[key] for key in COSTS}
    return rows


def _causal_scores(name: str, results: dict[str, Any]) -> dict[str, Any]:
    """At the length of training; the race of positions has trained some of these models."""
    family, positions = results["family"], results["extrapolation"]
    at, other = family["scored_lengths"].index(family["train_length"]), family["raced"].get(name)
    row = family["mechanisms"][name]
    scores = {
        task: [seed[at] for seed in (of[other] if other else row[task])]
        for task, of in positions["tasks"].items()
    }
    return scores | {"parameters": row["parameters"]}


def _checked(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"kind = {kind!r}; choose one of {', '.join(KINDS)}")
    return kind
