"""The measured columns of the atlas: who is in them, what is measured, what is stored."""

from __future__ import annotations

import math
import re

import pytest
import torch

import tfviz_lab
from tfviz import catalogue
from tfviz.exhibits import EXHIBITS, Exhibit
from tfviz_lab import family
from tfviz_lab.position import extrapolation

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/**")  # it finds them by their names


def test_who_races_is_measured_and_who_does_not_says_why():
    assert set(family.MECHANISMS) == {name for name, exhibit in EXHIBITS.items() if exhibit.race}
    assert set(family.RACED.values()) <= set(extrapolation.ENCODINGS)
    with pytest.raises(ValueError, match="give one of the two"):
        Exhibit(lambda: torch.zeros(24, 24))
    with pytest.raises(ValueError, match="exactness = None of an exhibit with a line"):
        Exhibit(lambda: torch.zeros(24, 24), race=lambda gpt: {})
    with pytest.raises(ValueError, match="exactness = 'any' of an exhibit without a line"):
        Exhibit(lambda: torch.zeros(24, 24), why_not="it has no cache", exactness="any")
    for name, exhibit in EXHIBITS.items():
        assert exhibit.race or re.match(r"[a-z].{15,90}[a-z]$", exhibit.why_not), name
        for instead in re.findall(r"`(.+?)`", exhibit.why_not):
            assert tfviz_lab.load(instead)["provenance"], f"{name} is sent to {instead}"


def test_a_smaller_matrix_that_does_not_race_says_where_it_is_measured_instead():
    for row in catalogue.by_part()["compressed"]:
        exhibit = EXHIBITS[row.id]
        assert exhibit.race or "`" in exhibit.why_not, row.id


def test_what_the_race_has_trained_is_the_same_model():
    for name, raced in family.RACED.items():
        own, theirs = (
            {k: x.shape for k, x in family.compare.model(make, "recall", 0).named_parameters()}
            for make in (lambda: family.variant(name, 64), extrapolation.VARIANTS[raced])  # noqa: B023
        )
        assert own == theirs, name


@pytest.mark.parametrize("name", family.MECHANISMS)
def test_a_step_has_a_time_and_a_memory_beside_the_plain_model(name, monkeypatch):
    monkeypatch.setattr(family, "LENGTHS", (32,))
    monkeypatch.setattr(family, "ROUNDS", 1)
    found = family.measure({"task": "cost", "name": name}, 0)
    assert set(found) == {"time", "memory", "parameters"} and found["parameters"] > 90_000
    assert found["time"][0] > 0 and found["memory"][0] > 0


def test_the_stored_result_has_all_of_it():
    result = tfviz_lab.load("family")
    assert list(result["mechanisms"]) == list(family.MECHANISMS)
    for name, row in result["mechanisms"].items():
        assert len(row["time"]) == len(row["memory"]) == len(result["lengths"])
        assert ("text" in row) == ("recall" in row) == (name not in family.RACED)
        for task in {"text", "recall"} & row.keys():
            assert len(row[task]) == len(family.SEEDS)
    plain = result["mechanisms"][family.PLAIN]
    assert all(math.isclose(x, 1, rel_tol=0.25) for x in plain["time"] + plain["memory"])
    strided = result["mechanisms"]["sparse_transformer_strided"]
    assert strided["time"][-1] < 1 < strided["time"][0]  # it pays only where the text is long
    assert max(strided["memory"]) < 1.25  # the fused dense kernel keeps no L × L scores either
    additive = result["mechanisms"]["additive_attention"]["memory"]
    assert additive[-1] > 3 * additive[-2]  # quadratic against linear
