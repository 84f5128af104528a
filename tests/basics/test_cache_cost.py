"""Bytes and operations of a cache, as a model with one holds and torch counts them."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from laws import Case
from refusals import ranges, refused

from tfviz.basics.cache_cost import cache_bytes, kept_bytes, token_flops
from tfviz.cores import Cache
from tfviz.measure import flops
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import Sinusoidal

close = torch.testing.assert_close


@pytest.mark.parametrize("h_kv", [1, 2, 4])
def test_a_gpt_with_a_cache_says_what_it_says_without(h_kv: int) -> None:
    model = GPT(11, 16, 4, 3, positions=Sinusoidal(16), h_kv=h_kv).double()
    t = torch.randint(11, (2, 9))
    cache: Cache = {}
    with torch.no_grad():
        whole = model(t)
        for n in range(9):
            close(model(t[:, n : n + 1], cache)[:, 0], whole[:, n])
            assert kept_bytes(cache) == cache_bytes(n + 1, 3, h_kv, 4, b=8, batch=2)


def test_an_empty_cache_holds_nothing() -> None:
    assert kept_bytes({}) == kept_bytes(None) == cache_bytes(0, 3, 2, 4) == 0


def test_bytes_are_proportional_to_everything() -> None:
    base = cache_bytes(10, 2, 3, 4, 2, 5)
    assert base == 2 * 10 * 2 * 3 * 4 * 2 * 5
    for k in range(6):
        sizes = [10, 2, 3, 4, 2, 5]
        sizes[k] *= 3
        assert cache_bytes(*sizes) == 3 * base


def test_bad_sizes_are_named() -> None:
    b = {"b": (2, 1), "batch": (1, 1)}
    ranges(cache_bytes, L=(4, 0), N=(2, 1), h_kv=(2, 1), d_head=(8, 1), **b)
    flops = partial(token_flops, h=4, h_kv=2, d_ff=64)
    ranges(flops, t=(3, 0), N=(2, 1), d=(16, 4))
    refused("h = 3", token_flops, 3, 2, 16, 3, 2, 64)
    refused("h_kv = 3", token_flops, 3, 2, 16, 4, 3, 64)


@pytest.mark.parametrize(("h", "h_kv"), [(4, 4), (4, 1)])
def test_operations_are_those_that_torch_counts(h: int, h_kv: int) -> None:
    N, d, vocab = 2, 32, 7
    model = GPT(vocab, d, h, N, h_kv=h_kv)
    logits = 2 * d * vocab

    def expect(t: int, cached: bool) -> int:
        return token_flops(t, N, d, h, h_kv, 4 * d, cached=cached)

    with torch.no_grad():
        for t in (0, 1, 20):
            tokens = torch.randint(vocab, (1, t + 1))
            assert flops(lambda: model(tokens)) == expect(t, False) + (t + 1) * logits  # noqa: B023
            cache: Cache = {}
            if t:
                model(tokens[:, :-1], cache)
            assert flops(lambda: model(tokens[:, -1:], cache)) == expect(t, True) + logits  # noqa: B023


def test_the_gain_grows_in_proportion_to_the_place() -> None:
    sizes = (6, 512, 8, 8, 2048)
    for t in (0, 9, 999):
        assert token_flops(t, *sizes, cached=False) == (t + 1) * token_flops(t, *sizes)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "FLOPs of a token without its scores",
            "4 * (t + 1) * d)",
            "4 * t * d)",
        ),
    ],
)
