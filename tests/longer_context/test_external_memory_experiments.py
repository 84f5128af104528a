"""A store beside a model of letters, and facts asked for much later: what is trained and stored."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import torch

import tfviz_lab
from tfviz_lab.longer_context import far_facts, near_contexts


def test_every_question_is_about_the_fact_told_so_long_ago() -> None:
    t, y, kind = far_facts.stream(5, 40, torch.Generator().manual_seed(0))
    for row, s, i in (kind > 0).nonzero().tolist():
        back = {1: 1, 2: far_facts.BACK}[int(kind[row, s, i])]
        name = int(t[row, s, i]) - far_facts.QUESTIONS
        fact = far_facts.FACTS + name * far_facts.VALUES + int(y[row, s, i])
        assert (t[row, s - back] == fact).sum() == 1
        # and in between nothing else was told of that name
        told = (t[row, s - back + 1 : s + 1] - far_facts.FACTS) // far_facts.VALUES
        assert not ((told == name) & (t[row, s - back + 1 : s + 1] < far_facts.QUESTIONS)).any()
    assert (y >= 0).equal(kind > 0) and int(t.max()) < far_facts.VOCAB
    assert [(kind == n).sum(-1)[0, -1].item() for n in (1, 2)] == [far_facts.PER] * 2


def test_a_few_steps_repeat_exactly() -> None:
    found = [far_facts.measure({"m": 32, "steps": 2}, 1) for _ in range(2)]
    assert found[0] == found[1] and len(found[0]["sizes"]) == len(far_facts.SIZES)


def test_neighbours_of_the_store_s_own_text_are_not_its_own_contexts(tmp_path: Path) -> None:
    from tfviz import data
    from tfviz.longer_context import knn_lm

    model = near_contexts.reader(0, 1)
    text = data.characters()[0][:8_000]
    store = knn_lm.write_store(model, text, tmp_path, near_contexts.L, near_contexts.BEFORE)
    words = near_contexts.neighbours(model, text, store, own=True)
    asked = (words[:, 0] >= 0).nonzero()[:, 0]
    assert asked[0] == near_contexts.BEFORE and len(asked) == len(store.keys)
    told = (words[asked] == text[asked + 1][:, None]).float().mean()
    cheating = near_contexts.neighbours(model, text, store, own=False)
    assert (cheating[asked, 0] == text[asked + 1]).float().mean() > 0.95 > 0.8 > told


def test_the_stored_store_has_all_of_it() -> None:
    stored = tfviz_lab.load("near_contexts")
    for run in stored["stores"]:
        assert [row["size"] for row in run] == list(near_contexts.STORES)
        losses = torch.tensor([row["nats"] for row in run])  # λ = 0: no store, no temperature
        assert losses[:, :, 0].unique().numel() == 1
        assert all(a["scored"] > b["scored"] for a, b in pairwise(run))
    for run in stored["search"]:
        found = [row["recall"] for row in run]
        assert found == sorted(found) and found[-1] > 0.999
    for run in stored["gate"]:
        assert run["found"]["both"] < run["drawn at random"]["both"]


def test_the_stored_facts_have_all_of_it() -> None:
    found = tfviz_lab.load("far_facts")["found"]
    assert [len(found[name]) for name in ("memory", "no memory")] == [3, 3]
    for run in found["memory"]:
        trained = far_facts.SIZES.index(far_facts.M)
        assert run["sizes"][trained] == run["nats"]
