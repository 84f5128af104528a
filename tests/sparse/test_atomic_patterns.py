"""The five atoms: counts, limits, reach, and what their unions connect."""

from __future__ import annotations

import pytest
import torch
from laws import agree_with_gradients
from refusals import refused
from three import three

from tfviz import attention, sparse_attention
from tfviz import patterns as P
from tfviz.sparse.atomic_patterns import five, spectral_gap, union

ATOMS = {
    "global": P.global_tokens(count=2),
    "band": P.band(radius=3),
    "dilated": P.dilated(radius=3, dilation=4),
    "random": P.random_keys(count=3, seed=1),
    "block local": P.block_local(block=8),
}


@pytest.mark.parametrize("L", [16, 50, 64])
def test_pairs_are_those_of_the_closed_forms(L: int) -> None:
    assert P.global_tokens(count=3).cost(L).pairs == 3 * (2 * L - 3)
    for w in (0, 1, 5):  # L (2w + 1), less what the ends of the sequence cut off
        assert P.band(radius=w).cost(L).pairs == L * (2 * w + 1) - w * (w + 1)
        cut = sum(min(L, 4 * n) for n in range(1, w + 1)) * 2
        assert P.dilated(radius=w, dilation=4).cost(L).pairs == L * (2 * w + 1) - cut
    assert P.random_keys(count=5, seed=2).cost(L).pairs == 5 * L
    blocks = [min(8, L - start) for start in range(0, L, 8)]
    assert P.block_local(block=8).cost(L).pairs == sum(n * n for n in blocks)


@pytest.mark.parametrize("name", ATOMS)
def test_symmetric_but_for_random_and_no_row_is_empty(name: str) -> None:
    mask = ATOMS[name].mask(37)
    assert mask.any(-1).all()
    assert mask.equal(mask.T) == (name != "random")


def test_limits() -> None:
    full = P.full().mask(20)
    assert P.band(radius=19).mask(20).equal(full)
    assert not P.band(radius=18).mask(20).equal(full)
    assert P.block_local(block=20).mask(20).equal(full)
    assert P.dilated(radius=4, dilation=1).mask(20).equal(P.band(radius=4).mask(20))
    # dilated with an unbounded window, and causal, is the column of strided attention
    endless = P.dilated(radius=20, dilation=3) & P.causal()
    assert endless.mask(20).equal(P.column(stride=3).mask(20))


@pytest.mark.parametrize(("w", "N"), [(1, 3), (3, 4), (5, 2)])
def test_layers_of_a_causal_band_reach_back_their_sum(w: int, N: int) -> None:
    known = (P.band(radius=w) & P.causal()).reach(40, layers=N).by_layer[-1]
    distance = torch.arange(40)[:, None] - torch.arange(40)
    assert known.equal((distance >= 0) & (distance <= N * w))


def test_a_band_over_everything_is_full_attention_to_the_bit() -> None:
    Q, K, V = torch.randn(3, 2, 30, 8)
    whole, banded = (attention(Q, K, V, p)[0] for p in (P.full(), P.band(radius=29)))
    assert banded.equal(whole)
    assert not attention(Q, K, V, P.band(radius=28))[0].equal(whole)


def test_a_union_has_every_pair_of_its_parts_and_runs() -> None:
    L = 150
    parts = [ATOMS["band"], ATOMS["random"], ATOMS["global"]]
    both = union(*parts)
    assert both.mask(L).equal(torch.stack([p.mask(L) for p in parts]).any(0))
    leaves = three(x.requires_grad_() for x in torch.randn(3, 2, L, 4, dtype=torch.float64))
    dense, sparse = attention(*leaves, both)[0], sparse_attention(*leaves, both)
    agree_with_gradients(sparse, dense, leaves)
    refused("parts is empty", union)


@pytest.mark.parametrize(("L", "keys"), [(64, 8), (256, 16)])
def test_five_have_about_the_same_number_of_pairs(L: int, keys: int) -> None:
    counts = [pattern.cost(L).pairs for pattern in five(L, keys).values()]
    assert max(counts) < 1.13 * L * keys and min(counts) > 0.93 * L * keys
    assert five(L, keys, seed=1)["random"] != five(L, keys)["random"]


def test_hubs_and_random_keys_are_near_everyone_windows_are_not() -> None:
    made = five(64, 8)
    diameters = {name: pattern.reach(64).diameter for name, pattern in made.items()}
    assert diameters == {
        **{"global": 2, "band": 16, "dilated": None, "random": 4, "block local": None}
    }
    gaps = {name: spectral_gap(pattern, 64) for name, pattern in made.items()}
    assert [gaps["dilated"], gaps["block local"]] == pytest.approx([0, 0], abs=1e-9)
    assert gaps["band"] < 0.02 < 0.4 < gaps["random"] < gaps["global"]
    rook = P.block_local(block=8) | P.dilated(radius=7, dilation=8)
    assert rook.reach(64).diameter == 2 and rook.mask(64).sum(-1).tolist() == [15] * 64


def test_the_gap_of_known_graphs() -> None:
    assert spectral_gap(P.full(), 9) == pytest.approx(1)  # one step, and it may be anywhere
    assert spectral_gap(P.sliding_window(lookback=0), 9) == pytest.approx(0)
    # a ring of L tokens that steps back, on or stays: λ₂ = (1 + 2 cos 2π/L)/3
    i = torch.arange(12)
    ring = P.table(((i[:, None] - i) % 12 <= 1) | ((i - i[:, None]) % 12 <= 1))
    turn = torch.cos(torch.tensor(2 * torch.pi / 12)).item()
    assert spectral_gap(ring, 12) == pytest.approx(1 - (1 + 2 * turn) / 3, abs=1e-6)
    one_way = P.sliding_window(lookback=3)  # read either way
    assert spectral_gap(one_way, 30) == pytest.approx(spectral_gap(P.band(radius=3), 30))
    assert spectral_gap(P.per_head(P.causal(), P.full()), 9) == pytest.approx(1)


def test_bad_input_is_named() -> None:
    refused("keys = 9 is out of range", five, 8, 9)
    refused("L = 1 is out of range", spectral_gap, P.full(), 1)
