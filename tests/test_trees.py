"""The picture of a small language model's tree: its numbers, its words, what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tfviz import plots

MODEL: dict[tuple[str, ...], dict[str, float]] = {
    (): {"a": 0.6, "b": 0.4},
    ("a",): {"a": 0.5, "b": 0.5},
    ("b",): {"a": 0.9, "b": 0.1},
}
WAYS = {"greedy": ("a", "a"), "best": ("b", "a")}


def test_every_sequence_is_told_with_its_probability_and_who_finds_it() -> None:
    figure = plots.tree(MODEL, WAYS, highlight="best", looked_at=[(), ("a",)])
    for words in ("4 sequences", "a a: 0.300 (greedy)", "a b: 0.300;", "b a: 0.360 (best)"):
        assert words in figure.alt
    assert "<svg" in figure.svg and "0.360" in figure.svg


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"model": {(): {"a": 0.6, "b": 0.6}}}, "sums to 1.2"),
        ({"ways": {"best": ("b",)}}, "no path"),
        ({"highlight": "worst"}, "worst"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {"model": MODEL, "ways": WAYS, "highlight": "best"}
    with pytest.raises(ValueError, match=words):
        plots.tree(**good | wrong)
