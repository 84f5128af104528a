"""Learned spans and bracket language: what is trained, and what is stored."""

from __future__ import annotations

import pytest
import torch

import tfviz_lab
from tfviz.adaptive.multi_scale_transformer import multi_scale
from tfviz_lab.adaptive import adaptive_spans as spans
from tfviz_lab.adaptive import dynamic_spans as brackets


def test_every_order_has_as_many_pairs() -> None:
    pairs = [sum(int(multi_scale(x).mask(spans.L).sum()) for x in o) for o in spans.ORDERS.values()]
    assert len(set(pairs)) == 1


def test_a_closing_bracket_asks_for_the_sign_of_its_own() -> None:
    t, back = brackets.rows(50, torch.Generator().manual_seed(0))
    wanted, kinds = brackets.answers(t, back), brackets.kinds(t)
    for row, place in (back > 0).nonzero().tolist():
        kind = int(t[row, place] == brackets.FAR)
        opened = t[row, place - back[row, place]]
        first = brackets.NOISE + brackets.SYMBOLS * kind
        assert opened == wanted[row, place] and first <= opened < first + brackets.SYMBOLS
        between = t[row, place - back[row, place] + 1 : place]
        assert not ((between >= first) & (between < first + brackets.SYMBOLS)).any()
    assert (wanted[back == 0] == -100).all() and (kinds >= 2).equal(back > 0)
    near, far = back[kinds == 2], back[kinds == 3]
    assert (near.min(), near.max()) == (1, 4) and far.min() >= 17 and far.max() <= 31


def test_a_few_steps_repeat_exactly() -> None:
    assert brackets.learn(3, 0.01, 32, 1) == brackets.learn(3, 0.01, 32, 1)
    config = {"price": 0.002, "start": 32, "steps": 2}
    assert spans.learn(config, 0)["spans"] == spans.learn(config, 0)["spans"]
    held = spans.learn({"price": 1.0, "start": 8, "steps": 2, "held": True}, 0)["spans"]
    assert torch.equal(torch.tensor(held[-1]), torch.full((3, spans.HEADS), 8.0))


def test_stored_spans_have_all_of_it() -> None:
    stored = tfviz_lab.load("adaptive_spans")
    for row, config in zip(stored["learned"], spans.LEARNED, strict=True):
        assert config.items() <= row.items() and len(row["nats"]) == len(row["spans"]) == 3
        times = torch.tensor(row["spans"])
        assert times.shape == (3, spans.STEPS // spans.EVERY + 1, 3, spans.HEADS)
        assert (times[:, 0] == config["start"]).all() and 0 <= times.min() <= times.max() <= spans.L
    assert {name: len(x) for name, x in stored["orders"].items()} == dict.fromkeys(spans.ORDERS, 3)
    assert {name: len(x) for name, x in stored["held"].items()} == {"0": 3, "64": 3}
    free, dear = (torch.tensor(stored["learned"][n]["spans"])[:, -1].mean() for n in (0, 3))
    assert free > 3 * dear


def test_stored_brackets_have_all_of_it() -> None:
    found = tfviz_lab.load("dynamic_spans")["found"]
    assert list(found) == list(brackets.VARIANTS) and all(len(x) == 3 for x in found.values())
    assert all(one["right"] == pytest.approx([1, 1], abs=0.01) for one in found["free"])
    for one in found["priced"]:
        assert one["r"] > 0.7 and one["z"].index(max(one["z"])) == 3
    assert sum(one["right"][1] < 0.4 for one in found["free, from 8"]) == 2
