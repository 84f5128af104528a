"""The race beyond the training length: equal starts, what is scored, and what the lesson says."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tfviz_lab
from tfviz import data
from tfviz_lab import compare
from tfviz_lab.position import extrapolation as race

LENGTHS = list(race.LENGTHS)


def made(encoding: str, seed: int) -> Any:
    return compare.model(race.VARIANTS[encoding], "recall", seed)


def test_all_begin_with_the_same_weights() -> None:
    plain = dict(made("none", 3).named_parameters())
    extra = {"learned": 1, "shaw": 4, "xl": 6, "t5": 2, "da": 4}
    for name in race.ENCODINGS:
        parameters = dict(made(name, 3).named_parameters())
        assert len(parameters) - len(plain) == extra.get(name, 0)
        for key, x in plain.items():
            assert x.equal(parameters[key]), (name, key)
    other = made("none", 4).embed.weight
    assert not other.equal(plain["embed.weight"])


def test_every_encoding_tells_places_apart() -> None:
    """The same two tokens exchanged: without positions the last output of one layer is the same."""
    for name in race.ENCODINGS:
        gpt = made(name, 0)
        for x in gpt.parameters():  # DA begins without a preference
            x.data += 0.1 * torch.randn_like(x)
        attend, embed = gpt.stack.blocks[0].attend, gpt.embed
        a, b = (attend(embed(torch.tensor([t])))[0, -1] for t in ([1, 2, 3, 4], [2, 1, 3, 4]))
        assert torch.allclose(a, b, atol=1e-5) is (name == "none"), name


def test_rows_and_answers_of_recall() -> None:
    rows, answers = compare.symbols_back(2, 20, torch.Generator().manual_seed(0))
    assert answers[:, : race.BACK].eq(-100).all()
    assert answers[:, race.BACK :].equal(rows[:, : 20 - race.BACK])
    assert race.BACK < race.SHAW_K < race.TRAIN_LENGTH


class _Knows(torch.nn.Module):
    """Looks BACK places back with a weight of its own, and knows nothing where there is none."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(*rows.shape, race.SYMBOLS)
        seen = F.one_hot(rows[:, : -race.BACK], race.SYMBOLS)
        logits[:, race.BACK :] = 3.0 * seen
        return logits


def test_what_is_scored() -> None:
    x, y = compare.examined("recall", rows=20)
    nats = math.log(1 + 7 * math.exp(-3))
    for length in LENGTHS:  # also at 16, where only 4 places have an answer
        assert compare.nats(_Knows(), "recall", x, y, length).item() == pytest.approx(
            nats, rel=1e-5
        )
    x, y = compare.examined("text", rows=3)
    assert x.shape == (3, 512) and x[:, 1:].equal(y[:, :-1])
    held_out = data.split(data.characters()[0])[1].tolist()
    first = x[0].tolist()
    assert any(held_out[n : n + 512] == first for n in range(len(held_out) - 512))
    gpt = compare.model(race.VARIANTS["shaw"], "text", 0)
    got = compare.nats(gpt, "text", x, y, 32)
    logits = gpt(x[:, -32:])[:, -race.SCORED :]
    torch.testing.assert_close(got, F.cross_entropy(logits.flatten(0, 1), y[:, -16:].flatten()))


def test_it_trains_and_is_scored_as_far_as_its_table_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "LENGTHS", (16, 64, 96))
    config = {"task": "recall", "encoding": "learned", "steps": 2}
    first = race.measure(config, 0)
    assert [x is None for x in first["score"]] == [False, False, True]
    assert abs(first["score"][1] - math.log(8)) < 1
    assert race.measure(config, 1) != first


def test_the_stored_result_is_whole_and_says_what_the_lesson_says() -> None:
    result = tfviz_lab.load("extrapolation")
    assert result["lengths"] == LENGTHS and result["train_length"] == 64
    assert set(result["encodings"]) == set(race.ENCODINGS)
    seeds = len(result["provenance"]["seeds"])
    at = {n: LENGTHS.index(n) for n in LENGTHS}
    mean = {}
    for task, table in result["tasks"].items():
        assert set(table) == set(race.ENCODINGS)
        for name, rows in table.items():
            assert len(rows) == seeds
            known = [n for n in LENGTHS if name != "learned" or n <= 64]
            assert all(
                (x is None) is (n not in known)
                for r in rows
                for n, x in zip(LENGTHS, r, strict=True)
            )
            mean[task, name] = {n: sum(r[at[n]] for r in rows) / seeds for n in known}
    recall, text = ({e: mean[t, e] for e in race.ENCODINGS} for t in ("recall", "text"))
    for name in ("shaw", "xl"):
        assert recall[name][512] < 0.05
    assert recall["none"][64] > 1.5
    assert recall["sinusoidal"][64] < 0.1 and recall["sinusoidal"][96] > math.log(8)
    assert recall["rotary"][64] < 0.01 and recall["rotary"][512] > math.log(8)
    assert recall["t5"][64] < 0.01 < recall["t5"][256]
    assert abs(text["xl"][512] - text["xl"][64]) < 0.04
    assert text["sinusoidal"][96] - text["sinusoidal"][64] > 0.7
    assert max(text["xl"][64], text["t5"][64]) < text["shaw"][64] < text["rotary"][64]
    assert text["rotary"][64] < text["learned"][64] - 0.1
    assert sorted((e for e in text if e != "learned"), key=lambda e: text[e][512]) == [
        *("xl", "shaw", "alibi", "da", "t5", "none", "sinusoidal", "rotary"),
    ]
    assert abs(text["alibi"][512] - text["alibi"][64]) < 0.03 < text["da"][512] - text["da"][128]
    assert min(recall["alibi"][64], recall["da"][64]) > 1.7  # a slope finds no single distance


def test_what_was_taken_away_is_stored_with_its_seeds() -> None:
    result = tfviz_lab.load("extrapolation")
    table = {
        (task, e): [sum(x) / len(x) for x in zip(*rows, strict=True)]
        for task, part in result["extra"].items()
        for e, rows in part.items()
    }
    assert {e for t, e in table if t == "text"} == set(race.EXTRA["text"])
    assert {e for t, e in table if t == "recall"} == set(race.EXTRA["recall"])
    assert all(len(rows) == 3 for part in result["extra"].values() for rows in part.values())
    full = {
        e: [sum(x) / 3 for x in zip(*result["tasks"]["text"][e], strict=True)]
        for e in ("xl", "shaw")
    }
    at = LENGTHS.index(64)
    assert abs(table["text", "xl, without u and v"][at] - full["xl"][at]) < 0.02
    assert 0 < table["text", "xl, without q·r"][at] - full["xl"][at] < 0.05
    assert abs(table["text", "shaw, keys only"][at] - full["shaw"][at]) < 0.03
    assert table["recall", "shaw, k = 4"][at] > 1.7
    assert 0.1 < table["recall", "t5, 16 buckets"][at] < 1.3
    steep, gentle = (table["text", f"alibi, all slopes 1/{n}"] for n in (4, 256))
    assert max(steep[at:]) - min(steep[at:]) < 1e-4 < 0.08 < gentle[-1] - gentle[at]
    assert gentle[at] - steep[at] > 0.4


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz_lab/compare.py": [
        (
            "recall asks for the symbol after",
            "answers[:, BACK:] = rows[:, :-BACK]",
            "answers[:, BACK:] = rows[:, 1 : 1 - BACK]",
        ),
    ],
}
