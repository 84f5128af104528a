"""A store beside a model of letters, and facts asked for much later: what is trained and stored."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import torch

import tfviz_lab
from tfviz_lab.longer_context import knn_language_model, knn_memory_recall


def test_every_question_is_about_the_fact_told_so_long_ago() -> None:
    t, y, kind = knn_memory_recall.stream(5, 40, torch.Generator().manual_seed(0))
    for row, s, i in (kind > 0).nonzero().tolist():
        back = {1: 1, 2: knn_memory_recall.BACK}[int(kind[row, s, i])]
        name = int(t[row, s, i]) - knn_memory_recall.QUESTIONS
        fact = knn_memory_recall.FACTS + name * knn_memory_recall.VALUES + int(y[row, s, i])
        assert (t[row, s - back] == fact).sum() == 1
        # and in between nothing else was told of that name
        told = (t[row, s - back + 1 : s + 1] - knn_memory_recall.FACTS) // knn_memory_recall.VALUES
        facts = t[row, s - back + 1 : s + 1] < knn_memory_recall.QUESTIONS
        assert not ((told == name) & facts).any()
    assert (y >= 0).equal(kind > 0) and int(t.max()) < knn_memory_recall.VOCAB
    assert [(kind == n).sum(-1)[0, -1].item() for n in (1, 2)] == [knn_memory_recall.PER] * 2


def test_a_few_steps_repeat_exactly() -> None:
    found = [knn_memory_recall.measure({"m": 32, "steps": 2}, 1) for _ in range(2)]
    assert found[0] == found[1] and len(found[0]["sizes"]) == len(knn_memory_recall.SIZES)


def test_neighbours_of_the_store_s_own_text_are_not_its_own_contexts(tmp_path: Path) -> None:
    from tfviz import data
    from tfviz.longer_context import knn_lm

    model = knn_language_model.reader(0, 1)
    text = data.characters()[0][:8_000]
    store = knn_lm.write_store(
        model, text, tmp_path, knn_language_model.L, knn_language_model.BEFORE
    )
    words = knn_language_model.neighbours(model, text, store, own=True)
    asked = (words[:, 0] >= 0).nonzero()[:, 0]
    assert asked[0] == knn_language_model.BEFORE and len(asked) == len(store.keys)
    told = (words[asked] == text[asked + 1][:, None]).float().mean()
    cheating = knn_language_model.neighbours(model, text, store, own=False)
    assert (cheating[asked, 0] == text[asked + 1]).float().mean() > 0.95 > 0.8 > told


def test_the_stored_store_has_all_of_it() -> None:
    stored = tfviz_lab.load("knn_language_model")
    for run in stored["stores"]:
        assert [row["size"] for row in run] == list(knn_language_model.STORES)
        losses = torch.tensor([row["nats"] for row in run])  # λ = 0: no store, no temperature
        assert losses[:, :, 0].unique().numel() == 1
        assert all(a["scored"] > b["scored"] for a, b in pairwise(run))
    for run in stored["search"]:
        found = [row["recall"] for row in run]
        assert found == sorted(found) and found[-1] > 0.999
    for run in stored["gate"]:
        assert run["found"]["both"] < run["drawn at random"]["both"]


def test_the_stored_facts_have_all_of_it() -> None:
    found = tfviz_lab.load("knn_memory_recall")["found"]
    assert [len(found[name]) for name in ("memory", "no memory")] == [3, 3]
    for run in found["memory"]:
        trained = knn_memory_recall.SIZES.index(knn_memory_recall.M)
        assert run["sizes"][trained] == run["nats"]
