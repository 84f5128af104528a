"""Operations of a block, crossings, fronts, objections; and exact attention in chunks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import product

import pytest
import torch
from laws import Case, Function, agree_with_gradients, qkv
from refusals import ranges, refused
from torch import Tensor

from tfviz import attention, patterns
from tfviz.beyond_text.efficiency_tradeoffs import (
    block_flops,
    crossing,
    front,
    length_for,
    objection,
    speedup,
    streamed,
)
from tfviz.compressed.clustered_attention import Clustered
from tfviz.compressed.informer import Informer
from tfviz.compressed.linear_transformer import LinearAttention
from tfviz.compressed.linformer import Linformer
from tfviz.compressed.luna import Luna
from tfviz.compressed.nystromformer import Nystrom
from tfviz.compressed.performer import Performer
from tfviz.compressed.rfa import RFA
from tfviz.cores import FULL, Dense, Where
from tfviz.measure import exponent, flops, largest_storage, slope
from tfviz.models.blocks import Block
from tfviz.sparse.blockwise_attention import heads, shift
from tfviz.sparse.routing_transformer import Routing

# --- the account of a block -----------------------------------------------------------------------


def test_a_block_of_width_4_by_hand() -> None:
    """24 · 16 = 384 for what does not grow, and 16 for each key."""
    assert [block_flops(L, 4) for L in (4, 6, 24, 80)] == [448, 480, 768, 1664]
    assert {block_flops(L, 4, 6) for L in (4, 6, 24, 80)} == {480}
    assert [speedup(L, 4, 6) for L in (6, 24)] == [1, 1.6]
    assert speedup(4, 4, 6) == 448 / 480 and speedup(80, 4, 6) == 1664 / 480
    assert speedup(12, 4, 6, r=2.0) == 1 and length_for(2, 4096, 256, 4.0) == 26624


@pytest.mark.parametrize(("L", "d"), [(10, 8), (24, 4), (50, 16)])
def test_it_is_what_torch_counts(L: int, d: int) -> None:
    block = Block(d, 2, pattern=patterns.full())
    assert flops(block, torch.randn(1, L, d)) == L * block_flops(L, d)


def test_the_length_is_that_of_the_gain() -> None:
    for gain, d, D, r in product((1.0, 1.5, 3.0), (4, 64), (3, 80), (0.5, 4.0)):
        L = length_for(gain, d, D, r)
        if L > 0:
            assert speedup(L, d, D, r) == pytest.approx(gain)
    assert length_for(1, 64, 16, r=3.0) == 48


def test_the_exponent_of_no_product_is_that_of_the_table() -> None:
    assert exponent([128, 512, 2048], [7 * L**2 for L in (128, 512, 2048)]) == pytest.approx(2)
    lengths = [128, 256, 512, 1024, 2048]
    assert exponent(lengths, [L * math.log(L) for L in lengths]) == pytest.approx(1.163, abs=1e-3)


CORES = {
    "full": (2, lambda L: Dense()),
    "Routing": (1.5, lambda L: Routing(4, 16, k=1 << L.bit_length() // 2)),
    "Informer": (1.16, lambda L: Informer()),
    "clustered": (1, lambda L: Clustered(16, k=8)),
    "Linformer": (1, lambda L: Linformer(4, L, 16)),
    "Nyström": (1, lambda L: Nystrom(4, 8)),
    "Luna": (1, lambda L: Luna(16, 4, 16)),
    "linear": (1, lambda L: LinearAttention()),
    "RFA": (1, lambda L: RFA(4, 16, D=64)),
    "Performer": (1, lambda L: Performer(16, m=64)),
}
PATTERNS = {
    "causal": (2, lambda L: patterns.causal()),
    "blockwise": (2, lambda L: heads([shift(4, by) for by in range(4)])),
    "strided": (1.5, lambda L: patterns.strided(stride=round(L**0.5))),
    "fixed": (1.5, lambda L: patterns.fixed(block=round(L**0.5), summary=1)),
    "window": (1, lambda L: patterns.sliding_window(lookback=8)),
    "Longformer": (1, lambda L: patterns.longformer(radius=8, n_global=1)),
    "Big Bird": (1, lambda L: patterns.bigbird(block=8, window=1, n_global=1, n_random=1)),
}
LENGTHS = (128, 256, 512, 1024, 2048)


@pytest.mark.parametrize("name", CORES)
def test_operations_of_a_core_grow_as_the_table_says(name: str) -> None:
    wanted, make = CORES[name]

    def counted(L: int) -> int:
        core = make(L)
        Q, K, V = torch.randn(3, 1, 4, L, 16)
        with torch.no_grad():
            return flops(lambda: core(Q, K, V, Where(FULL)))

    assert exponent(LENGTHS, [counted(L) for L in LENGTHS]) == pytest.approx(wanted, abs=0.1)


@pytest.mark.parametrize("name", PATTERNS)
def test_pairs_of_a_pattern_grow_as_the_table_says(name: str) -> None:
    wanted, make = PATTERNS[name]
    pairs = [make(L).cost(L, 16, 4).pairs for L in LENGTHS]
    assert exponent(LENGTHS, pairs) == pytest.approx(wanted, abs=0.1)


# --- crossings and fronts -------------------------------------------------------------------------


def test_it_crosses_where_it_stays_below() -> None:
    at = [100, 200, 400, 800]
    assert crossing(at, [2.0, 1.5, 0.5, 0.25]) == pytest.approx(
        200 * 2 ** (math.log(1.5) / math.log(3))
    )
    assert crossing(at, [2.0, 2.0, 0.5, 0.25]) == pytest.approx(200 * 2**0.5)
    assert crossing(at, [0.9, 2.0, 0.5, 0.25]) == pytest.approx(200 * 2**0.5)
    assert crossing(at, [2.0, 0.5, 2.0, 0.5]) == pytest.approx(400 * 2**0.5)
    assert crossing(at, [2.0, 0.5, 0.5, 1.0]) is None
    assert crossing(at, [0.9, 0.8, 0.7, None]) == 100
    assert crossing(at, [2.0, 1.0, 0.5, None]) == 200
    assert crossing(at, [2.0, None, None, None]) is None


def test_the_front_is_what_nothing_beats() -> None:
    given = {"a": (1.0, 2.0), "b": (0.5, 2.3), "c": (0.5, 2.1), "d": (2.0, 1.7), "e": (1.0, 2.0)}
    assert front(given) == ["a", "c", "d", "e"]
    dice = random.Random(0)
    for _ in range(50):
        some = {str(n): (dice.randrange(5), dice.randrange(5)) for n in range(8)}
        wanted = []
        for name, (x, y) in some.items():
            worse = [(a, b) for a, b in some.values() if (a < x and b <= y) or (a <= x and b < y)]
            wanted += [] if worse else [name]
        assert front(some) == wanted


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ((0.5, 1.0, "exact", "exact", False), ""),
        ((1.0, 2.0, "any", "any", False), ""),
        ((0.5, 2.1, "exact", "any", False), "too much memory"),
        ((1.1, 2.0, "exact", "any", False), "slower"),
        ((1.1, 2.1, "exact", "any", False), "too much memory"),
        ((None, 1.0, "linear", "linear", False), "not measured"),
        ((0.5, None, "linear", "any", False), "not measured"),
        ((0.5, 1.0, "any", "linear", False), "not exact enough"),
        ((None, None, "any", "exact", False), "not exact enough"),
        ((0.5, 1.0, "linear", "exact", False), "not exact enough"),
        ((0.5, 1.0, "exact", "linear", False), ""),
        ((0.5, 1.0, "any", "exact", True), "sees the future"),
    ],
)
def test_each_reason_is_given_in_order(given: tuple, reason: str) -> None:
    time, memory, exactness, wanted, sees_future = given
    limits = {"at_most": 2.0, "wanted": wanted, "sees_future": sees_future}
    assert objection(time, memory, exactness, **limits) == reason


# --- exact attention in chunks --------------------------------------------------------------------


def test_three_scores_by_hand() -> None:
    """Scores 0, ln 2, ln 4, values 1, 2, 4: weights 1 : 2 : 4, and (1 + 4 + 16) / 7 = 3."""
    Q = torch.ones(1, 1, 1, 1)
    K = torch.tensor([1.0, 2.0, 4.0]).log()[None, None, :, None]
    V = torch.tensor([1.0, 2.0, 4.0])[None, None, :, None]
    for chunk in (1, 2, 3, 9):
        assert streamed(Q, K, V, chunk, causal=False).item() == pytest.approx(3)


@pytest.mark.parametrize("causal", [True, False])
def test_chunks_change_nothing(causal: bool) -> None:
    pattern = patterns.causal() if causal else patterns.full()
    for chunk in range(1, 11):
        Q, K, V = (X.detach().requires_grad_() for X in qkv())
        wanted = attention(Q, K, V, pattern)[0]
        agree_with_gradients(streamed(Q, K, V, chunk, causal=causal), wanted, [Q, K, V])


def test_large_scores_do_not_overflow() -> None:
    Q, K, V = (X.float() for X in qkv())
    out = streamed(300 * Q, 300 * K, V, 2)
    torch.testing.assert_close(out, attention(300 * Q, 300 * K, V, patterns.causal())[0])
    assert out.isfinite().all()


def test_the_scores_are_never_all_there() -> None:
    def at(L: int) -> Callable[[], Tensor]:
        Q, K, V = torch.randn(3, 1, 1, L, 8)
        return lambda: streamed(Q, K, V, 16)

    assert slope(largest_storage, at, (256, 1024)) < 1.05


# --- what it refuses ------------------------------------------------------------------------------


def test_refusals() -> None:
    ranges(block_flops, L=(8, 1), d=(4, 1), D=(3, 1))
    ranges(lambda chunk: streamed(*qkv(), chunk), chunk=(2, 1))
    for name in ("L", "d", "D", "r"):
        good = {"L": 8, "d": 4, "D": 3, "r": 1.0}
        refused(f"{name} = 0", speedup, **good | {name: 0})
        refused(f"{name} = nan", speedup, **good | {name: math.nan})
    for name in ("gain", "d", "D", "r"):
        refused(f"{name} = -1", length_for, **{"gain": 2, "d": 4, "D": 3, "r": 1.0} | {name: -1})
    refused("2 lengths, 1 ratios", crossing, [1, 2], [1.0])
    refused("ratios = [None, 1.0]", crossing, [1, 2], [None, 1.0])
    refused("ratios = [None]", crossing, [1], [None])
    refused("ratios = 0", crossing, [1, 2], [1.0, 0.0])
    refused("lengths = -1", crossing, [-1, 2], [1.0, 2.0])
    refused("points['a'] = (1.0, nan)", front, {"a": (1.0, math.nan)})
    refused("points['a'] = (1.0,)", front, {"a": (1.0,)})
    refused("exactness = 'none'", objection, 1.0, 1.0, "none", at_most=2.0)
    refused("wanted = 'all'", objection, 1.0, 1.0, "any", at_most=2.0, wanted="all")
    refused("at_most = 0", objection, 1.0, 1.0, "any", at_most=0)


CASE = Case(
    functions={
        "streamed": Function(
            lambda Q, K, V: streamed(Q, K, V, 5),
            lambda Q, K, V: attention(Q, K, V, patterns.causal())[0],
        )
    },
    mutants=[
        ("a block without its feed-forward layer", "24 * d * d", "8 * d * d"),
        ("only scores are counted", "4 * met * d", "2 * met * d"),
        ("a gain without the projections", "(6 * d + L) / (6 * d", "(4 * d + L) / (4 * d"),
        ("operations of one speed", "L) / (6 * d + r * D)", "L) / (6 * d + D)"),
        ("the length where it costs as much", "gain * (6 * d + r * D)", "(6 * d + r * D)"),
        (
            "the first crossing",
            "if before >= 1 > after:",
            "if before >= 1 > after and last == lengths[0]:",
        ),
        (
            "a crossing on a straight line",
            "short * (long / short) ** share",
            "short + (long - short) * share",
        ),
        ("equal points beat each other", " and (a, b) != (x, y)", ""),
        ("less memory than there is", "if memory > at_most:", "if memory >= at_most:"),
        ("exact enough is not enough", "< ORDER.index(wanted)", "<= ORDER.index(wanted)"),
        ("what is as fast is slower", "time > 1", "time >= 1"),
        (
            "sums of other scales",
            "out = old * out + weights @ values",
            "out = out + weights @ values",
        ),
        ("a total of other scales", "total = old * total +", "total = total +"),
        ("a query without its own key", "j > i", "j >= i"),
    ],
)
