"""The figure of a comparison: every seed, interval and trivial line, in words and in marks."""

from __future__ import annotations

from typing import Any

import pytest

from tfviz import plots

FOUND: dict[str, Any] = {
    "unit": "nats per character",
    "bar": "5-gram",
    "trivial": {"3-gram": [1.71] * 5, "4-gram": [1.40] * 5, "5-gram": [1.32] * 5},
    "scores": {
        "full attention": [1.22, 1.24, 1.23, 1.25, 1.22],
        "windows": [1.25, 1.224, 1.23, 1.24, 1.25],
        "averages": [1.51, 1.55, 1.53, 1.54, 1.52],
    },
    "reference": dict.fromkeys(("full attention", "windows", "averages"), "full attention"),
    "outcomes": {
        "windows": {
            "beside": "full attention",
            "difference": 0.007,
            "interval": [-0.012, 0.026],
            "word": "cannot tell",
        },
        "averages": {
            "beside": "full attention",
            "difference": 0.298,
            "interval": [0.275, 0.321],
            "word": "has not learned it",
        },
    },
}


def test_it_says_every_word_and_every_line() -> None:
    figure = plots.outcomes(FOUND)
    for said in (
        "cannot tell: 0.007 more (−0.012 to +0.026)",
        "has not learned it: 0.298 more (+0.275 to +0.321)",
        "mean 1.23; others are compared with it",
    ):
        assert said in figure.html and said in figure.alt
    assert "3-gram: 1.71" in figure.alt and "Off the scale: 3-gram 1.71" in figure.html
    assert "Dashed: 5-gram 1.32, 4-gram 1.4" in figure.html


def test_names_choose_and_rename_and_percent_is_of_shares() -> None:
    shares = {"nearest image": [0.02] * 2}
    found = FOUND | {
        "unit": "errors per image",
        "bar": "nearest image",
        "trivial": shares,
        "scores": {"full attention": [0.01, 0.02], "windows": [0.03, 0.04], "averages": [0.5, 0.5]},
        "outcomes": {
            "windows": {
                "beside": "full attention",
                "difference": 0.02,
                "interval": [0.015, 0.025],
                "word": "worse",
            }
        },
    }
    figure = plots.outcomes(
        found, names={"full attention": "Everything", "windows": "Near"}, percent=True
    )
    assert "Near: 3.5 (worse: 2.0 more (+1.5 to +2.5))" in figure.alt
    assert "averages" not in figure.html and "errors per image, %" in figure.html


def test_each_seed_is_a_dot_and_each_interval_a_bar() -> None:
    panel = plots.outcomes(FOUND).panels[0]
    drawn: Any = panel.drawing
    marks = [mark.name for mark in drawn.marks if hasattr(mark, "name")]
    assert marks.count("seed") == 3 and marks.count("interval") == 2
    assert marks.count("trivial") == 2 and marks.count("reference") == 1


def test_what_is_no_comparison_is_refused() -> None:
    with pytest.raises(ValueError, match="found has no scores"):
        plots.outcomes({key: x for key, x in FOUND.items() if key != "scores"})
    with pytest.raises(ValueError, match="names has 'rope'; variants are full attention, windows"):
        plots.outcomes(FOUND, names={"rope": "Rotary"})
