"""The digits experiment: its model, its determinism, and the stored result's provenance."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
import torch
from refusals import ranges, refused

import tfviz_lab
from tfviz import patterns
from tfviz.sparse import sparse_transformer_fixed as fixed
from tfviz.sparse import sparse_transformer_strided as strided
from tfviz_lab import compare
from tfviz_lab.sparse import digits, recall


def test_a_seed_is_another_model_that_begins_by_guessing() -> None:
    layers = digits.VARIANTS["fixed, interleaved"]
    test, losses = digits.train(layers, seed=3, steps=1)
    measured = digits.measure({"variant": "fixed, interleaved", "steps": 1}, seed=3)
    assert measured["score"] == test
    assert digits.train(layers, seed=4, steps=1)[1] != losses
    assert losses[0] == pytest.approx(torch.log(torch.tensor(17.0)).item(), abs=0.35)


@pytest.mark.parametrize("name", list(digits.VARIANTS))
def test_no_pixel_sees_itself_or_its_future(name: str) -> None:
    model = compare.PixelTransformer(digits.VARIANTS[name])
    pixels = torch.randint(compare.LEVELS, (2, compare.PIXELS))
    changed = pixels.clone()
    changed[:, 30:] = (changed[:, 30:] + 5) % compare.LEVELS
    with torch.no_grad():
        before, after = model(pixels), model(changed)
    torch.testing.assert_close(before[:, :31], after[:, :31])  # pixel 30 is predicted from 0 … 29
    assert not torch.allclose(before[:, 31], after[:, 31])


def test_images_are_split_without_overlap_of_rows() -> None:
    train, test = compare.images()
    assert train.shape == (1400, 64) and test.shape == (compare.TEST, 64)
    assert train.min() == 0 and train.max() == 16


@pytest.mark.parametrize("part", ["main", "longer"])
def test_stored_result_is_of_these_patterns_and_has_its_provenance(part: str) -> None:
    stored = tfviz_lab.load("digits")
    # the provenance of the whole file names the most steps of all runs
    names, seeds, steps = list(digits.VARIANTS), list(digits.SEEDS), digits.LONGER_STEPS
    if part == "longer":
        stored = stored["longer"]
        names, seeds = list(digits.LONGER), list(digits.LONGER_SEEDS)
    made = stored["provenance"]
    assert (made["seeds"], made["steps"]) == (seeds, steps)
    assert {"python", "torch", "scikit-learn"} <= set(made["versions"])
    assert list(stored["variants"]) == names
    for name in names:
        layers, variant = digits.VARIANTS[name], stored["variants"][name]
        assert [patterns.from_spec(spec) for spec in variant["layers"]] == layers
        assert variant["keys_per_row"] == pytest.approx(digits.keys_per_row(layers))
        assert len(variant["test_nats"]) == len(seeds)
        assert all(1.0 < score < 2.0 for score in variant["test_nats"])


def test_keys_per_row_are_the_counted_ones() -> None:
    assert digits.keys_per_row(digits.VARIANTS["full"]) == 32.5
    assert digits.keys_per_row(digits.VARIANTS["fixed, merged"]) == 8.0
    assert digits.keys_per_row(digits.VARIANTS["previous pixel"]) == 1.0


def test_store_and_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfviz.stored.RESULTS", tmp_path)
    made = tfviz_lab.provenance("python -m nothing", [0], 1, 0.25, ["torch", "no-such-package"])
    path = tfviz_lab.store("small", {"value": 1, "provenance": made})
    assert json.loads(path.read_text()) == tfviz_lab.load("small")
    assert made["versions"]["no-such-package"] == "not installed"
    assert str(Path.home()) not in path.read_text()
    with pytest.raises(FileNotFoundError, match=r"stored: small.*tfviz_lab other"):
        tfviz_lab.load("other")
    refused("no full provenance", tfviz_lab.store, "bare", {"value": 1})


def test_recall_is_learnt_where_there_is_a_path_and_only_there() -> None:
    """With one layer of the window the last token is out of reach, with the full mask it is not."""
    steps, last = 60, 20
    seen = recall.train([patterns.causal()], length=12, asked=1, steps=steps)
    blind = recall.train([patterns.sliding_window(lookback=3)], length=12, asked=1, steps=steps)
    assert sum(seen[-last:]) / last > 0.9
    assert sum(blind[-last:]) / last < 0.25  # guessing: 1/8
    train = partial(recall.train, [patterns.causal()], length=12, steps=1)
    ranges(train, asked=(1, 0, 11))


def test_gradient_finds_no_way_where_the_graph_has_none() -> None:
    """d(last position)/d(asked symbol) is zero exactly if there is no path."""
    own, summary = fixed.factors(block=5)
    window, column = strided.factors(stride=5)
    for layers, path in (
        ([own, summary], True),
        ([summary, own], False),
        ([window, column], True),
        ([column, window], True),
        ([window, window], False),
    ):
        assert (patterns.reach(layers, 25, layers=2).hops[24, 1] > 0) == path
        model = recall.Recaller(layers, 25)
        symbols = torch.randint(recall.SYMBOLS, (4, 25))
        other = symbols.clone()
        other[:, 1] = (other[:, 1] + 1) % recall.SYMBOLS
        with torch.no_grad():
            assert torch.equal(model(symbols), model(other)) != path
