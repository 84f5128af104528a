"""SPALM: its formula, its limits, what learns and what is frozen, two models in one cache."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from laws import Case, agree_with_gradients
from refusals import ranges, refused
from torch import Tensor

from tfviz.longer_context import knn_lm
from tfviz.longer_context.spalm import Spalm, gated
from tfviz.longer_context.transformer_xl_recurrence import transformer_xl
from tfviz.models.gpt import GPT
from tfviz.models.use import generate
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.training import seeded

IDS = torch.randint(11, (300,), generator=torch.Generator().manual_seed(1))


def gpt(seed: int = 0) -> GPT:
    return seeded(seed, lambda: GPT(11, 16, 2, 2, positions=Sinusoidal(16)))


@pytest.fixture
def spalm(tmp_path: Path) -> Spalm:
    reader = gpt()
    model = seeded(1, lambda: transformer_xl(11, 16, 2, 2, m=8))
    made = Spalm(model, reader, knn_lm.write_store(reader, IDS, tmp_path, L=32), k=3)
    made.w_g.data = torch.randn(16, generator=torch.Generator().manual_seed(0)) / 4
    return made


def one_by_one(h: Tensor, Y: Tensor, w_g: Tensor) -> Tensor:
    rows = []
    for h_t, y in zip(h, Y, strict=True):
        e = [(y_i @ h_t).exp() for y_i in y]
        m = sum((e_i / sum(e) * y_i for e_i, y_i in zip(e, y, strict=True)), torch.zeros(()))
        g = 1 / (1 + (-(h_t @ w_g)).exp())
        rows.append((1 - g) * m + g * h_t)
    return torch.stack(rows)


def test_it_is_its_formula_with_gradients() -> None:
    h, w_g = torch.randn(5, 8).double().requires_grad_(), torch.randn(8).double().requires_grad_()
    Y = torch.randn(5, 3, 8).double().requires_grad_()
    agree_with_gradients(gated(h, Y, w_g)[0], one_by_one(h, Y, w_g), [h, Y, w_g])


def test_limits() -> None:
    h, Y = torch.randn(5, 8), torch.randn(5, 3, 8)
    z, m, g = gated(h, Y, torch.zeros(8))
    assert (g == 0.5).all()
    torch.testing.assert_close(z, (m + h) / 2)
    trusts = h / h.square().sum(-1, keepdim=True) * 200  # g → 1: the model alone
    torch.testing.assert_close(gated(h[:1], Y[:1], trusts[0])[0], h[:1])
    assert gated(h, Y[:, :1], torch.zeros(8))[1].allclose(Y[:, 0])  # k = 1: its embedding
    turned = gated(h, Y[:, [2, 0, 1]], torch.zeros(8))[1]
    torch.testing.assert_close(turned, m)  # the order of neighbours is nothing
    low, high = Y.min(1).values, Y.max(1).values
    assert ((m >= low - 1e-6) & (m <= high + 1e-6)).all()  # in their hull


def test_embeddings_and_gate_learn_and_the_reader_does_not(spalm: Spalm) -> None:
    t = IDS[None, :20]
    spalm(t).log_softmax(-1)[0, 3, 5].backward()
    assert spalm.w_g.grad is not None and spalm.w_g.grad.abs().max() > 0
    assert all(p.grad is None for p in spalm.reader.parameters())
    words = spalm.words(t)
    assert spalm(t).equal(spalm(t, words=words)) and words.shape == (1, 20, 3)
    only = spalm.model.embed.weight.grad
    assert only is not None and only[words[0, 3]].abs().max() > 0
    spalm.store.check(spalm.reader)  # still whose keys these are


def test_segments_and_writing_with_two_models_in_one_cache(spalm: Spalm) -> None:
    t = IDS[None, :24]
    # the reader alone, at once: the same neighbours
    cache: dict = {}
    parts = torch.cat([spalm.words(s, cache) for s in t.split([7, 1, 16], 1)], 1)
    assert parts.equal(spalm.words(t))
    cache, own = {}, dict[Any, Any]()
    for s in t.split(8, 1):
        got = spalm(s, cache)
        wanted = spalm.model(s, own)
    assert len(cache) == 4 and got.shape == wanted.shape
    h = spalm.states(IDS[None, :8], {m: k for m, k in cache.items()})
    torch.testing.assert_close(h @ spalm.model.embed.weight.T, spalm.model(IDS[None, :8], own))
    assert generate(spalm, t[:, :4], 5).shape == (1, 9)


def test_errors(tmp_path: Path, spalm: Spalm) -> None:
    refused("another space", Spalm, spalm.model, gpt(3), spalm.store)
    few = Spalm(spalm.model, gpt(), spalm.store, lambda Q, k: (
        torch.full((len(Q), k), math.inf), torch.full((len(Q), k), -1)))  # fmt: skip
    refused("look into more cells", few, IDS[None, :4])
    ranges(partial(Spalm, spalm.model, gpt(), spalm.store), k=(4, 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "a gate that opens to the memory",
            "(1 - g)[..., None] * m + g[..., None] * h",
            "g[..., None] * m + (1 - g)[..., None] * h",
        ),
    ],
)
