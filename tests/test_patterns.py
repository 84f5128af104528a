"""Patterns: golden masks, counts, limits, all faces equal, composition, cost, depth, bad input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from golden import GOLDEN, make
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import create_block_mask, create_mask

from tfviz import patterns as P
from tfviz.measure import elements_produced, largest_storage
from tfviz.patterns.family import KEY, QUERY

RESTS_ON = ("tfviz/**", "tests/*.py")  # it reads the source of the rooms


def picture(mask: torch.Tensor) -> list[str]:
    return ["".join("1" if x else "." for x in row) for row in mask]


@pytest.mark.parametrize("text", GOLDEN)
def test_golden_masks_typed_by_hand(text):
    assert picture(make(text).mask(6)) == GOLDEN[text]


def test_every_family_has_a_golden_mask_or_is_random():
    named = {text.split("(")[0] for text in GOLDEN}
    assert set(P.FAMILIES) - named == {"random_keys", "random_blocks", "bigbird"}


# --- counts and limits against closed forms -------------------------------------------------------

LENGTHS = [1, 2, 7, 16, 33]


@pytest.mark.parametrize(("L", "w"), list(itertools.product(LENGTHS, [0, 1, 3, 40])))
def test_counts_of_windows(L, w):
    assert P.sliding_window(lookback=w).mask(L).sum(1).tolist() == [min(i, w) + 1 for i in range(L)]
    both = [min(i, w) + 1 + min(L - 1 - i, w) for i in range(L)]
    assert P.band(radius=w).mask(L).sum(1).tolist() == both


@pytest.mark.parametrize(("L", "s"), list(itertools.product(LENGTHS, [1, 3, 8, 50])))
def test_counts_of_the_sparse_transformer(L, s):
    row, col = P.sliding_window(lookback=s).mask(L), P.column(stride=s).mask(L)
    assert col.sum(1).tolist() == [i // s + 1 for i in range(L)]
    overlap = [1 + (1 if i >= s else 0) for i in range(L)]  # i itself, and i - s: not disjoint
    assert (row & col).sum(1).tolist() == overlap
    union = P.strided(stride=s).mask(L).sum(1)
    assert union.tolist() == [min(i, s) + 1 + i // s + 1 - o for i, o in enumerate(overlap)]
    own = P.own_block(block=s).mask(L).sum(1)
    assert own.tolist() == [i % s + 1 for i in range(L)]
    summary = P.summary_columns(block=s, summary=1).mask(L).sum(1)
    assert summary.tolist() == [(i + 1) // s for i in range(L)]


@pytest.mark.parametrize(
    ("L", "count", "seed"), list(itertools.product([8, 33, 64], [1, 3, 8], [0, 5]))
)
def test_random_keys_are_exactly_as_many_and_differ(L, count, seed):
    mask = P.random_keys(count=count, seed=seed).mask(L)
    assert (mask.sum(1) == count).all()
    assert mask.equal(P.random_keys(count=count, seed=seed).mask(L))
    if count < L:
        assert not mask.equal(P.random_keys(count=count, seed=seed + 1).mask(L))
        assert not mask.equal(mask.T)


def test_random_keys_favour_no_key():
    """2 000 rows of 3 keys out of 50: 120 expected in each column, deviation about 11."""
    i, j = torch.arange(2000)[:, None], torch.arange(50)
    mask = P.random_keys.formula(i, j, count=3, seed=0, length=50)
    chi = ((mask.sum(0) - 120.0) ** 2 / 120).sum()
    assert chi < 49 + 5 * 9.9


def test_random_blocks_are_whole_blocks():
    mask = P.random_blocks(block=4, count=2, seed=1).mask(30)
    blocks = torch.nn.functional.pad(mask, (0, 2, 0, 2)).view(8, 4, 8, 4)
    kept = blocks.any(3).any(1)
    assert (kept.sum(1) == 2).all()
    assert mask.equal(kept.repeat_interleave(4, 0).repeat_interleave(4, 1)[:30, :30])


@pytest.mark.parametrize("L", LENGTHS)
def test_limits(L):
    full, causal = P.full().mask(L), P.causal().mask(L)
    assert P.band(radius=L - 1).mask(L).equal(full)
    assert P.sliding_window(lookback=L).mask(L).equal(causal)
    assert P.sliding_window(lookback=0).mask(L).equal(torch.eye(L, dtype=torch.bool))
    assert P.strided(stride=L).mask(L).equal(causal)
    assert P.strided(stride=1).mask(L).equal(causal)
    assert P.fixed(block=L, summary=1).mask(L).equal(causal)
    assert P.fixed(block=3, summary=3).mask(L).equal(causal)
    assert P.block_local(block=L).mask(L).equal(full)
    assert P.dilated(radius=2, dilation=1).mask(L).equal(P.band(radius=2).mask(L))
    assert P.blockwise(permutation=(0,)).mask(L).equal(full)
    assert P.global_tokens(count=L).mask(L).equal(full)


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_blockwise(n):
    L, order = 16, tuple(reversed(range(n)))
    mask = P.blockwise(permutation=order).mask(L)
    assert mask.sum() == L * L // n
    blocks = mask.view(n, L // n, n, L // n).any(3).any(1)
    assert (blocks.sum(0) == 1).all()  # each key block is used by exactly one query block
    same = P.blockwise(permutation=tuple(range(n))).mask(L)
    assert same.equal(P.block_local(block=L // n).mask(L))


def test_symmetry():
    for text in (
        "band(radius=3)",
        "dilated(radius=2, dilation=3)",
        "block_local(block=5)",
        "star()",
    ):
        assert make(text).mask(23).equal(make(text).mask(23).T)


def test_window_against_the_paper_of_longformer():
    """The paper's w counts both sides: w = 4 allows two keys on each side."""
    mask = P.longformer(radius=2, n_global=1).mask(12)
    assert mask[6].nonzero().flatten().tolist() == [0, 4, 5, 6, 7, 8]


def test_bigbird_counts():
    pattern = P.bigbird(block=4, window=1, n_global=1, n_random=2, seed=3)
    mask = pattern.mask(64)
    inner = mask[4:-4].sum(1)
    assert (inner <= 4 * (2 + 3 + 2)).all()
    assert mask[:4].all() and mask[-4:].all()
    assert pattern.reach(64).diameter == 2


# --- one formula, many faces ----------------------------------------------------------------------

GRID = [
    *GOLDEN,
    *(f"band(radius={w})" for w in (0, 5)),
    *(f"sliding_window(lookback={w})" for w in (0, 1, 5)),
    *(f"dilated(radius={w}, dilation={r})" for w in (0, 2) for r in (1, 3)),
    *(f"column(stride={s})" for s in (1, 4)),
    *(f"strided(stride={s})" for s in (1, 4, 9)),
    *(f"own_block(block={b})" for b in (1, 4)),
    *(f"summary_columns(block={b}, summary={c})" for b in (4, 5) for c in (1, 3)),
    *(f"fixed(block={b}, summary={c})" for b in (4, 5) for c in (1, 3)),
    *(f"block_local(block={b})" for b in (1, 4)),
    "global_tokens(count=3)",
    *(f"random_keys(count={c}, seed={s})" for c in (1, 4) for s in (0, 7)),
    *(f"blockwise(permutation={p})" for p in ((0,), (1, 0), (2, 0, 3, 1))),
    *(f"longformer(radius={w}, n_global={c})" for w in (0, 2) for c in (1, 2)),
    *(f"etc(radius={w}, n_global={c})" for w in (0, 2) for c in (1, 2)),
    "block_window(block=3, window=1)",
    "global_blocks(block=3, count=1)",
    "random_blocks(block=3, count=2, seed=4)",
    *(
        f"bigbird(block={b}, window={w}, n_global=1, n_random=2, seed=1)"
        for b in (1, 4)
        for w in (0, 1)
    ),
    "(band(radius=2) | dilated(radius=3, dilation=4)) & causal()",
    "~band(radius=2) & causal()",
    "blockwise(permutation=(1, 0)) | blockwise(permutation=(2, 1, 0))",
    "strided(stride=3) & ~fixed(block=4, summary=1)",
]


def in_browser(page: Any, pattern: P.Pattern, L: int) -> torch.Tensor:
    values = list(pattern.parameters.values())
    values = [list(v) if isinstance(v, tuple) else v for v in values]
    if pattern.javascript_arguments[-1] == "length":
        values.append(L)
    script = f"([L, p]) => {{ const f = {pattern.javascript}; let s = '';"
    script += "for (let i = 0; i < L; i++) for (let j = 0; j < L; j++) s += f(i, j, ...p) ? 1 : 0;"
    bits = page.evaluate(script + "return s; }", [L, values])
    return torch.tensor([c == "1" for c in bits]).view(L, L)


@pytest.fixture(scope="module")
def tab(browser):
    page = browser.new_page()
    yield page
    page.close()


@pytest.mark.parametrize("text", GRID)
def test_dense_is_flex_attention_is_javascript(tab, text):
    pattern = make(text)
    for L in (16, 21):
        dense = pattern.mask(L)
        assert dense.shape == (L, L) and dense.dtype == torch.bool
        flex = create_mask(pattern.at(L).mask_mod, None, None, L, L, device="cpu")[0, 0]
        assert flex.equal(dense), f"{text}: mask_mod differs"
        assert in_browser(tab, pattern, L).equal(dense), f"{text}: JavaScript differs"
        sets = pattern.key_sets(L)
        assert [len(s) for s in sets] == dense.sum(1).tolist()


def test_block_masks_of_flex_attention_are_our_blocks():
    for text in (
        "strided(stride=16)",
        "bigbird(block=16, window=1, n_global=1, n_random=1, seed=0)",
    ):
        pattern = make(text)
        theirs = create_block_mask(
            pattern.at(256).mask_mod, None, None, 256, 256, device="cpu", BLOCK_SIZE=16
        ).to_dense()
        assert pattern.cost(256, block=16).blocks == int(theirs.sum())


def test_every_family_is_in_the_grid():
    assert {name for name in P.FAMILIES if any(t.startswith(f"{name}(") for t in GRID)} == set(
        P.FAMILIES
    )


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_faces_agree_for_any_parameters(tab, data):
    family = P.FAMILIES[data.draw(st.sampled_from(sorted(P.FAMILIES)))]
    L = data.draw(st.integers(1, 40))
    values: dict[str, Any] = {}
    for name, domain in family.domains.items():
        if domain.is_list:
            n = data.draw(st.integers(1, min(L, 6)))
            values[name] = tuple(data.draw(st.permutations(range(n))))
        else:
            high = 45 if domain.high is None else domain.high({**values, "length": L})
            values[name] = data.draw(st.integers(domain.low, high))
    pattern = family(**values)
    dense = pattern.mask(L)
    assert create_mask(pattern.at(L).mask_mod, None, None, L, L, device="cpu")[0, 0].equal(dense)
    assert in_browser(tab, pattern, L).equal(dense)
    assert all(
        bool(pattern.holds(i, j, L)) == bool(dense[i, j]) for i in range(0, L, 3) for j in range(L)
    )


@pytest.mark.parametrize("text", GRID)
def test_specs_and_reprs_lead_back(text):
    pattern = make(text)
    assert P.from_spec(pattern.spec()) == pattern
    assert make(repr(pattern)) == pattern
    assert hash(make(repr(pattern))) == hash(pattern)
    assert pattern.latex and pattern.latex_with_values and pattern.text(i=3) and pattern.title


def test_colliding_parameters_are_renamed_and_equal_ones_shared():
    pattern = P.band(radius=1) | P.dilated(radius=2, dilation=3)
    assert pattern.parameters == {"radius": 1, "radius_2": 2, "dilation": 3}
    assert "w_2" in pattern.latex and "w_2" not in pattern.latex_with_values
    shared = P.own_block(block=4) | P.summary_columns(block=4, summary=1)
    assert shared.parameters == {"block": 4, "summary": 1}
    assert shared.mask(16).equal(P.fixed(block=4, summary=1).mask(16))


def test_text_puts_the_numbers_in_place():
    assert P.strided(stride=8).text(i=12) == (
        "((12 − j) mod 8 = 0 and 12 ≥ j) or (12 ≥ j and 12 − j ≤ 8)"
    )


# --- composition ----------------------------------------------------------------------------------


def test_combinators_are_set_operations():
    a, b = P.band(radius=2), P.column(stride=3)
    assert (a & b).mask(11).equal(a.mask(11) & b.mask(11))
    assert (a | b).mask(11).equal(a.mask(11) | b.mask(11))
    assert (~a).mask(11).equal(~a.mask(11))
    assert len((a | b | P.causal()).parts) == 3


def test_per_head(tab):
    heads = P.per_head(P.sliding_window(lookback=2), P.column(stride=3))
    mask = heads.mask(9)
    assert mask.shape == (2, 9, 9)
    assert mask[1].equal(P.column(stride=3).mask(9))
    flex = create_mask(heads.mask_mod, None, 2, 9, 9, device="cpu")[0]
    assert flex.equal(mask)
    assert (heads & P.band(radius=1)).mask(9).equal(mask & P.band(radius=1).mask(9))
    assert (heads & P.band(radius=1)).mask_mod(0, 1, 4, 4)
    assert P.from_spec(heads.spec()) == heads
    with pytest.raises(ValueError, match="differs by head"):
        heads.key_sets(9)
    with pytest.raises(ValueError, match="differs by head"):
        _ = heads.latex


def test_tables(tab):
    bits = torch.rand(13, 13) < 0.3
    pattern = P.table(bits)
    assert pattern.mask(13).equal(bits)
    assert P.from_spec(pattern.spec()).mask(13).equal(bits)
    assert create_mask(pattern.mask_mod, None, None, 13, 13, device="cpu")[0, 0].equal(bits)
    assert in_browser(tab, pattern, 13).equal(bits)
    both = pattern | P.causal()
    assert both.mask(13).equal(bits | P.causal().mask(13))
    assert in_browser(tab, both, 13).equal(both.mask(13))
    bits[0, 0] = ~bits[0, 0]
    assert not pattern.mask(13).equal(bits), "a table keeps its own bits"


# --- cost -----------------------------------------------------------------------------------------


def test_cost_is_counted():
    cost = P.sliding_window(lookback=3).cost(10, d=8, h=2, block=4)
    pairs = 1 + 2 + 3 + 4 * 7
    assert (cost.pairs, cost.full_pairs) == (pairs, 100)
    assert (cost.flops, cost.full_flops) == (4 * pairs * 8, 4 * 100 * 8)
    assert (cost.bytes, cost.full_bytes) == (4 * pairs * 2, 4 * 100 * 2)
    # 3 × 3 blocks of 4, 4, 2: the diagonal and the one below it
    assert (cost.blocks, cost.full_blocks) == (5, 9)
    assert cost.block_pairs == 4 * 4 + 4 * 4 + 4 * 4 + 2 * 4 + 2 * 2
    assert P.full().cost(100, 64, 4).block_pairs == 100 * 100


def test_sparse_on_paper_is_not_sparse_in_blocks():
    pattern = P.band(radius=3) | (P.column(stride=8) | P.dilated(radius=256, dilation=8))
    cost = pattern.cost(256, block=32)
    assert cost.pairs < 0.18 * cost.full_pairs
    assert cost.blocks == cost.full_blocks


def test_cost_of_heads_adds_up():
    a, b = P.sliding_window(lookback=2), P.column(stride=3)
    both = P.per_head(a, b).cost(12, d=8, h=2, block=4)
    assert both.pairs == a.cost(12).pairs + b.cost(12).pairs
    assert both.flops == (a.cost(12, 8, 2).flops + b.cost(12, 8, 2).flops) // 2
    with pytest.raises(ValueError, match="h = 4"):
        P.per_head(a, b).cost(12, d=8, h=4)


# --- depth ----------------------------------------------------------------------------------------


def hops_by_search(masks: list[np.ndarray], L: int, layers: int) -> np.ndarray:
    """The literal definition: walk back from i, layer by layer from the top of each depth."""
    hops = np.full((L, L), -1)
    for i in range(L):
        hops[i, i] = 0
        for n in range(1, layers + 1):
            frontier = {i}
            for layer in reversed(range(n)):
                reached = set(frontier)  # the residual
                for q in frontier:
                    reached |= set(np.flatnonzero(masks[layer % len(masks)][q]))
                frontier = reached
            for j in frontier:
                if hops[i, j] < 0:
                    hops[i, j] = n
    return hops


@pytest.mark.parametrize(
    "texts",
    [
        ["sliding_window(lookback=3)"],
        ["strided(stride=4)"],
        ["own_block(block=4)", "summary_columns(block=4, summary=1)"],
        ["summary_columns(block=4, summary=1)", "own_block(block=4)"],
        ["random_keys(count=2, seed=1)"],
    ],
)
def test_reach_is_the_walk(texts):
    layers = [make(text) for text in texts]
    got = P.reach(layers, 18, 5).hops.numpy()
    assert (got == hops_by_search([p.mask(18).numpy() for p in layers], 18, 5)).all()


def test_two_hops_of_the_sparse_transformer():
    L, s = 64, 8
    row, col = P.sliding_window(lookback=s), P.column(stride=s)
    for order in ([row, col], [col, row]):
        for residual in (True, False):
            last = P.reach(order, L, 2, residual).by_layer[-1]
            assert last.equal(P.causal().mask(L)), "strided: both orders cover the triangle"
    own, summary = P.own_block(block=s), P.summary_columns(block=s, summary=1)
    assert P.reach([own, summary], L, 2).unreachable == 0
    bare = P.reach([own, summary], L, 2, residual=False).by_layer[-1]
    assert not bare.equal(P.causal().mask(L)), "without residuals the current block is lost"
    assert P.reach([summary, own], L, 2).unreachable > 0


def test_reach_of_windows_grows_by_the_window():
    reached = P.sliding_window(lookback=3).reach(40, 4).by_layer
    for n, known in enumerate(reached, start=1):
        assert known[39].nonzero().min() == 39 - 3 * n
    assert P.band(radius=2).reach(21).diameter == 10
    assert not P.band(radius=2).reach(21).causal


def test_reach_goes_on_until_no_layer_adds_anything():
    """Of two patterns in turn the first adds nothing, and only a whole round may end it."""
    own, before = P.sliding_window(lookback=0), P.sliding_window(lookback=1)
    for order in ([own, before], [own, own, before], [before, own]):
        reach = P.reach(order, 8)
        assert reach.unreachable == 0
        assert reach.diameter == 7 * len(order) - (len(order) - 1 - order.index(before))


@pytest.mark.parametrize("residual", [True, False])
def test_reach_is_the_product_of_the_layers(residual):
    """Of patterns drawn at random, in turn: the search, layer by layer."""
    torch.manual_seed(0)
    for L, n in itertools.product((1, 5, 16), (1, 2, 3)):
        for diagonal in (False, True):
            bits = torch.rand(n, L, L) < 2.5 / L
            bits |= torch.eye(L, dtype=torch.bool) & torch.tensor(diagonal)
            reach = P.reach([P.table(m) for m in bits], L, 7, residual)
            known = torch.eye(L, dtype=torch.bool)
            for layer, got in enumerate(reach.by_layer):
                step = (bits[layer % n].double() @ known.double()) > 0
                known = step | known if residual else step
                assert got.equal(known)
            assert len(reach.by_layer) == 7 and reach.by_layer[-1].equal(known)
            assert len(reach.by_layer[2:5]) == 3


def test_reach_and_cost_do_little_for_each_pair():
    """A window of one token needs as many layers as there are tokens, each of which hands on what
    is new; a product of matrices in each would write 1,000 times as much."""
    for pattern in (P.sliding_window(lookback=1), P.band(radius=2)):
        for L in (256, 512):
            written = elements_produced(lambda p=pattern, L=L: p.reach(L))
            assert written < 100 * L**2
    assert P.sliding_window(lookback=1).reach(1024).diameter == 1023
    assert elements_produced(lambda: P.causal().cost(2048)) < 1.5 * 2048**2
    assert largest_storage(lambda: P.sliding_window(lookback=1).reach(512)) <= 8 * 512**2


def test_blocks_that_are_long_are_counted_alike():
    for block in (255, 256, 300):
        assert P.full().cost(600, block=block).pairs == 600**2
        assert P.strided(7).cost(600, block=block).pairs == int(P.strided(7).mask(600).sum())


def test_unreachable_pairs_are_counted():
    reach = P.block_local(block=4).reach(12)
    assert reach.diameter is None
    assert reach.unreachable == 12 * 12 - 3 * 16
    assert P.own_block(block=4).reach(12).unreachable == 78 - 3 * 10


def test_influence_is_the_product_of_the_layers():
    row, col = P.sliding_window(lookback=2), P.summary_columns(block=4, summary=1)
    step = []
    for pattern in (row, col):
        M = pattern.mask(9).double()
        D = M.sum(1, keepdim=True)
        step.append((torch.eye(9) + torch.where(D > 0, M / D, torch.eye(9))) / 2)
    expected = step[0].double()
    expected = step[1].double() @ expected
    got = P.influence([row, col], 9, 2)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(got.sum(1), torch.ones(9, dtype=torch.float64))


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("strided(stride=0)", "stride = 0 is out of range; choose stride >= 1"),
        ("strided(stride=2.5)", "stride = 2.5 is not a whole number"),
        ("strided(stride=True)", "stride = True is not a whole number"),
        ("band(radius=-1)", "radius = -1 is out of range; choose radius >= 0"),
        ("fixed(block=4, summary=5)", "summary = 5 is out of range; choose 1 <= summary <= 4"),
        ("blockwise(permutation=(0, 0))", r"permutation = \(0, 0\) is not a permutation"),
        ("blockwise(permutation=())", "is not a permutation"),
        (
            "random_keys(count=9, seed=0).mask(8)",
            "count = 9 is out of range for L = 8; choose 1 <= count <= 8",
        ),
        (
            "bigbird(block=4, window=1, n_global=1, n_random=3, seed=0).mask(8)",
            "choose 1 <= n_random <= 2",
        ),
        ("blockwise(permutation=(2, 1, 0)).mask(2)", "permutation has 3 blocks"),
        ("causal().mask(0)", "L = 0 is out of range; choose L >= 1"),
        ("causal().mask(4.0)", "L = 4.0 is not a whole number"),
        ("causal().cost(8, d=10, h=3)", "d = 10 is not divisible by h = 3"),
        ("random_keys(count=1, seed=0).mask_mod", r"use pattern.at\(L\).mask_mod"),
        ("random_keys(count=1, seed=0).at(8).mask(9)", "fixed at length 8; L = 9"),
        ("table(__import__('torch').ones(2, 2))", "give a Boolean tensor"),
        ("table(__import__('torch').ones(2, 3).bool())", "a table is square"),
        ("table(__import__('torch').ones(2, 2).bool()).mask(3)", "for L = 2; L = 3"),
        ("per_head()", "one plain Pattern for each head"),
        ("from_spec({'name': 'bnad'})", "names no family; choose one of full, causal, band"),
        ("from_spec({'op': 'xor', 'parts': []})", "op is and, or"),
        ("reach([], 8)", "one Pattern for each layer"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(text, says):
    with pytest.raises(ValueError, match=says):
        make(text)


def test_wrong_names_are_refused():
    with pytest.raises(TypeError, match=r"strided\(\) takes stride; missing \['stride'\]"):
        P.strided()
    with pytest.raises(TypeError, match=r"unknown \['window_size'\]"):
        P.band(radius=2, window_size=3)
    with pytest.raises(TypeError, match="is not a Pattern"):
        P.causal() & torch.ones(2, 2)  # type: ignore[operator]


def test_the_browser_catalogue_is_json_and_complete():
    import json

    data = json.loads(json.dumps(P.browser_catalogue()))
    assert set(data["families"]) == set(P.FAMILIES)
    for title, spec in data["presets"].items():
        assert P.from_spec(spec) == P.PRESETS[title]
    for family in data["families"].values():
        assert family["doc"] and family["text"] and family["args"][:2] == ["i", "j"]


BITS = torch.ones(8, 8).bool()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: P.table(BITS).rows(torch.arange(5), 5), "the table is for L = 8; L = 5"),
        (lambda: P.table(BITS).rows(torch.arange(9), 9), "the table is for L = 8; L = 9"),
        (lambda: P.table(BITS).holds(0, 1, 9), "the table is for L = 8; L = 9"),
        (lambda: P.random_keys(count=1, seed=0).at(8).rows(torch.arange(3), 3), "L = 3 was asked"),
        (lambda: P.random_keys(count=1, seed=0).at(8).holds(0, 1, 3), "L = 3 was asked"),
        (lambda: P.blockwise(permutation=(1, 2, 3, 0)).rows(torch.arange(2), 2), "has 4 blocks"),
        (lambda: P.blockwise(permutation=(1, 2, 3, 0)).at(2), "has 4 blocks; L = 2"),
        (lambda: P.causal().rows(torch.arange(-2, 3), 3), "i = -2 … 2 leaves the positions 0 … 2"),
        (lambda: P.causal().at(0), "length = 0 is out of range"),
        (lambda: P.blockwise(permutation=3), "permutation = 3 is not a permutation; give"),
        (
            lambda: P.per_head(P.full(), P.full()) & P.per_head(P.full(), P.full(), P.full()),
            r"have \[2, 3\] heads; join patterns of one number",
        ),
        (
            lambda: ~P.per_head(P.full(), P.full()) | (P.full() & P.per_head(P.causal())),
            r"have \[1, 2\] heads",
        ),
        (lambda: P.from_spec({"table": "AAAA", "shape": [100, 100]}), "3 bytes for 100 × 100"),
        (lambda: P.from_spec({"table": "AAAA", "shape": [4, 6]}), r"shape = \[4, 6\]; a table"),
        (lambda: P.from_spec({"table": "AAAA"}), "shape = None; a table is square"),
        (lambda: P.from_spec({"table": "A!", "shape": [2, 2]}), "no base64 text"),
        (lambda: P.from_spec({"table": 7, "shape": [2, 2]}), "no base64 text"),
        (lambda: P.from_spec(["causal"]), "is a list; give what"),  # type: ignore[arg-type]
        (
            lambda: P.from_spec({"name": "band", "params": {"width": 3}}),
            r"spec .*band\(\) takes radius; unknown \['width'\]",
        ),
    ],
)
def test_lengths_specs_and_heads_that_do_not_fit_are_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_specs_of_families_of_later_rooms_lead_back():
    from tfviz.basics.lm_objectives import prefix_lm

    pattern = prefix_lm(prefix=3) & P.band(radius=2)
    assert P.from_spec(pattern.spec()) == pattern
    assert "prefix_lm" not in P.FAMILIES, "menus show the families of this room"


def test_no_tensor_is_made_of_data_inside_a_mask_mod():
    """FlexAttention cannot compile that; closures over tensors it can."""
    from torch.fx.experimental.proxy_tensor import make_fx

    i = torch.arange(8)
    mod = P.blockwise(permutation=(1, 0)).at(8).mask_mod
    assert "lift_fresh" not in make_fx(mod)(i, i, i, i).code
    made_inside = make_fx(lambda b, h, q, k: torch.as_tensor([1, 0])[q // 4] == k // 4)
    assert "lift_fresh" in made_inside(i, i, i, i).code, "the test can tell"


def test_compounds_are_written_out_in_what_they_are_made_of():
    for text, made in (
        ("strided(stride=8)", "sliding_window(lookback=8) | column(stride=8)"),
        ("fixed(block=8, summary=2)", "own_block(block=8) | summary_columns(block=8, summary=2)"),
        ("etc(radius=4, n_global=2)", "longformer(radius=4, n_global=2)"),
        ("star()", "longformer(radius=1, n_global=1)"),
        ("own_block(block=8)", "own_block(block=8)"),
        ("random_keys(count=1, seed=0)", "random_keys(count=1, seed=0)"),
    ):
        assert make(text).written_out(64) == make(made)
    parts = make("bigbird(block=4, window=1, n_global=1, n_random=2, seed=3)").written_out(64).parts
    assert [part.name for part in parts] == ["block_window", "global_blocks", "random_blocks"]


@pytest.mark.parametrize("family", P.FAMILIES.values(), ids=lambda family: family.name)
def test_a_compound_is_what_joins_patterns_alone(family):
    """Of all families those that say so, and no other, are patterns for QUERY and KEY."""
    values = {name: domain.default for name, domain in family.domains.items()}
    if "length" in family.formula.parameters:
        values["length"] = 64
    if family.of_patterns:
        made = family.function(QUERY, KEY, **values)
        assert isinstance(made, P.Pattern)
        assert made.mask(64).equal(family(**values).mask(64))
    else:
        with pytest.raises((TypeError, AttributeError)):
            family.function(QUERY, KEY, **values)


def test_faces_made_further_up_are_found_by_name():
    import ast
    import inspect

    from tfviz.patterns import cost, pattern, reach

    assert "Big Bird" in P.PRESETS["Big Bird"].plot(16).alt
    assert P.causal().explore(8).left == P.causal()
    for room in (cost, pattern, reach):
        for node in ast.walk(ast.parse(inspect.getsource(room))):
            named = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any("plots" in name or "explorers" in name for name in named)


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/patterns/families.py": [
        ("window one too short", "(i - j <= lookback)", "(i - j < lookback)"),
        (
            "band off by one",
            "    return abs(i - j) <= radius\n",
            "    return abs(i - j) <= radius + 1\n",
        ),
        ("i and j swapped in causal", "    return i >= j\n", "    return j >= i\n"),
        (
            "i and j swapped in blockwise",
            "permutation[i * blocks // length] == j * blocks // length",
            "permutation[j * blocks // length] == i * blocks // length",
        ),
        (
            "summary one column early",
            "(j % block >= block - summary)",
            "(j % block >= block - summary - 1)",
        ),
        (
            "memory of an image one pixel short",
            "(j >= i // block * block - memory)",
            "(j > i // block * block - memory)",
        ),
    ],
    "tfviz/patterns/pattern.py": [
        (
            "heads shifted in mask_mod",
            "enumerate(mods[1:], start=1)",
            "enumerate(mods[1:], start=2)",
        ),
    ],
    "tfviz/patterns/reach.py": [
        (
            "layers composed in the wrong order",
            "return mask.float() @ known.float() > 0",
            "return known.float() @ mask.float() > 0",
        ),
        ("what is new is handed on once", "maxlen=len(masks))", "maxlen=1)"),
        (
            "stops when the first pattern adds nothing",
            "quiet < len(masks)):\n        mask,",
            "quiet < 1):\n        mask,",
        ),
        ("residual forgotten in influence", "share = (share + mixed) / 2", "share = mixed"),
    ],
    "tfviz/patterns/cost.py": [
        (
            "ragged blocks counted whole",
            "int((kept * edges).sum()) * height",
            "int(kept.sum()) * block * block",
        ),
    ],
}
