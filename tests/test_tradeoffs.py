"""The race of everything: who is in it, what is measured, what is stored."""

from __future__ import annotations

import math
from functools import partial
from statistics import mean

import pytest
import torch

import tfviz_lab
from tfviz.basics.cache_cost import cache_bytes
from tfviz.exhibits import EXHIBITS, Gpt
from tfviz.stored import race
from tfviz_lab import compare, family, tradeoffs
from tfviz_lab.compare import HEADS, LAYERS, TRAIN_LENGTH, WIDTH

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/**")  # it finds them by their names

ROWS = [(kind, name) for kind in tradeoffs.KINDS for name in tradeoffs.names(kind)]


def test_encoders_are_those_whose_exhibit_says_so_and_the_plain_one_is_first():
    encoders = {name for name, exhibit in EXHIBITS.items() if exhibit.encoder}
    assert set(tradeoffs.names("encoder")) == encoders
    assert set(tradeoffs.names("causal")) == set(family.MECHANISMS)
    for kind in tradeoffs.KINDS:
        assert tradeoffs.names(kind)[0] == tradeoffs.PLAIN


@pytest.mark.parametrize(("kind", "name"), ROWS)
def test_each_line_makes_a_model_that_its_tasks_accept(kind, name):
    tasks = compare.TASKS if kind == "causal" else tradeoffs.TASKS
    made = partial(tradeoffs.options, kind, name, TRAIN_LENGTH)
    for task in (tasks["text"], tasks["recall"]) if kind == "causal" else tasks.values():
        model = compare.model(made, task, 0)
        compare.refuse(model, task)
        assert bool(compare.seeing_ahead(model, task)) == (kind == "encoder")
    with torch.no_grad():  # sizes that depend on the length fit at the others, too
        for L in tradeoffs.LENGTHS[:2]:
            assert tradeoffs.model(kind, name, L)(torch.arange(L)[None] % 50).shape[1] == L


def test_a_line_of_the_wrong_kind_is_refused():
    ahead = partial(tradeoffs.options, "encoder", "longformer", TRAIN_LENGTH)
    task = compare.task_of("text")
    with pytest.raises(ValueError, match="sees the future"):
        compare.refuse(compare.model(ahead, task, 0), task)


@pytest.mark.parametrize(("L", "root"), [(64, 8), (128, 16), (512, 32), (2048, 64), (4096, 64)])
def test_a_power_of_two_near_the_root_divides(L, root):
    assert Gpt(L, WIDTH, HEADS).near_root() == root and L % root == 0


def test_what_brings_no_weights_has_as_many_parameters_as_the_plain_model():
    def parameters(kind: str, name: str) -> int:
        return sum(x.numel() for x in tradeoffs.model(kind, name, TRAIN_LENGTH).parameters())

    for kind, name in ROWS:
        if not isinstance(tradeoffs.core_of(kind, name), str):
            assert parameters(kind, name) == parameters(kind, tradeoffs.PLAIN), name
    assert parameters("encoder", "linformer") > parameters("encoder", tradeoffs.PLAIN)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tradeoffs, "LENGTHS", (32, 64))
    monkeypatch.setattr(tradeoffs, "ROUNDS", 1)


def test_a_cost_has_one_number_for_each_length(short):
    found = tradeoffs.cost("encoder", "informer")
    lists = ("time", "seconds", "memory", "bytes", "flops")
    assert set(found) == {*lists, "state", "stopped"}
    assert all(len(found[key]) == 2 and min(found[key]) > 0 for key in lists)
    assert found["state"] is None and found["stopped"] is None
    assert found["flops"][1] > found["flops"][0]


@pytest.mark.parametrize(("limit", "why"), [("LIMIT", "memory"), ("PATIENCE", "time")])
def test_what_would_be_too_much_is_not_measured_and_says_so(short, monkeypatch, limit, why):
    monkeypatch.setattr(tradeoffs, limit, 1e-9)
    found = tradeoffs.cost("causal", "rope")
    assert found["stopped"] == why
    for key in ("time", "seconds", "memory", "bytes", "flops", "state"):
        assert found[key][0] and found[key][1] is None


def test_the_state_is_counted_as_the_formula_has_it():
    for L in (32, 64):
        sizes = {"L": L, "N": LAYERS, "d_head": WIDTH // HEADS, "b": 4}
        assert tradeoffs.state(tradeoffs.PLAIN, L) == cache_bytes(h_kv=4, **sizes)
        assert tradeoffs.state("grouped_query_attention", L) == cache_bytes(h_kv=2, **sizes)
        assert tradeoffs.state("multi_query_attention", L) == cache_bytes(h_kv=1, **sizes)
    for name in ("linear_transformer", "luna", "average_attention", "rfa_causal"):
        assert tradeoffs.state(name, 32) == tradeoffs.state(name, 64), name


def test_the_error_is_none_for_full_attention_and_has_a_reason_where_there_is_no_map():
    causal, encoder = (tradeoffs.errors(kind, 0, 1) for kind in tradeoffs.KINDS)
    assert causal[tradeoffs.PLAIN] == encoder[tradeoffs.PLAIN] == 0
    for missed in (causal["sparse_transformer_strided"], encoder["bigbird"]):
        assert isinstance(missed, float) and missed > 0.1
    for word, why in {
        "positions": causal["rope"],
        "whole layer": causal["average_attention"],
        "heads of keys": causal["multi_query_attention"],
        "weights of its own": encoder["linformer"],
        "look at the keys": encoder["reformer_lsh"],
    }.items():
        assert isinstance(why, str) and word in why
    assert all(isinstance(x, float) or x for x in (causal | encoder).values())


def test_of_a_map_with_known_error(monkeypatch):
    """Two of four keys are left out of a flat map: 1/2, 1/2, 0, 0 instead of four quarters."""
    A = torch.full((1, 1, 4, 4), 0.25).double()
    Q = torch.zeros(1, 1, 4, 2).double()
    two = torch.tensor([0.5, 0.5, 0, 0]).double().expand(4, 4)

    def first_two(Q, K, V, where):
        return two @ V + 0 * K.sum(), None

    assert tradeoffs.error(A, Q, Q, Q, first_two, compare.FULL) == (
        "it does not look at the keys of full attention"
    )
    K = torch.arange(8.0).view(1, 1, 4, 2).double()

    def near_first(Q, K, V, where):
        return (two if K[0, 0, 0, 0] == 0 else two.flip(1)) @ V, None

    assert tradeoffs.error(A, Q, K, K, near_first, compare.FULL) == 1.0


# --- what is stored -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", tradeoffs.KINDS)
def test_the_stored_result_has_all_of_it(kind):
    stored, rows = tfviz_lab.load("tradeoffs"), race.table(kind)
    assert stored["lengths"] == race.lengths() == list(tradeoffs.LENGTHS)
    assert list(rows) == tradeoffs.names(kind)
    for name, row in rows.items():
        for key in ("time", "memory", "flops", *["state"] * (row["state"] is not None)):
            measured = [x for x in row[key] if x is not None]
            assert row[key] == measured + [None] * (len(race.lengths()) - len(measured))
            assert (len(measured) == len(race.lengths())) == (row["stopped"] is None), name
        assert len(row["text"]) == len(row["recall"]) == len(tradeoffs.SEEDS), name
        assert all(map(math.isfinite, row["text"] + row["recall"]))
        assert (row["error"] is None) == bool(row["no_error"]) and row["parameters"] > 90_000
        assert row["causal"] == (name in tradeoffs.names("causal")), name
    first = rows[tradeoffs.PLAIN]
    assert all(math.isclose(x, 1, rel_tol=0.25) for x in first["time"] + first["memory"])
    assert first["error"] == [0, 0, 0] and first["exactness"] == "exact"
    assert all(len(race.plain(kind)[key]) == len(race.lengths()) for key in ("seconds", "bytes"))


def test_what_the_chapter_says_of_the_race_is_so():
    rows = race.table("causal")
    text = {name: mean(row["text"]) for name, row in rows.items()}
    assert text["multi_scale_transformer"] < text[tradeoffs.PLAIN] - 0.1
    assert (
        mean(rows["linear_transformer"]["recall"]) > 1 > 0.1 > mean(rows[tradeoffs.PLAIN]["recall"])
    )


def test_every_row_has_a_class_and_no_other_kind_is_known():
    raced = {name for _, name in ROWS}
    classes = {name: one.exactness for name, one in EXHIBITS.items() if one.exactness}
    assert raced == classes.keys() and {*classes.values()} == {"exact", "linear", "any"}
    for kind in race.KINDS:
        for name, row in race.table(kind).items():
            assert row["exactness"] == classes[name], name
    with pytest.raises(ValueError, match="choose one of causal, encoder"):
        race.table("both")
