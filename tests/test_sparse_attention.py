"""Sub-quadratic attention: the definition's results and gradients, and its growth."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from golden import GOLDEN, make
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import Case, Function, over, plain
from three import three

from tfviz import attention, sparse_attention
from tfviz import patterns as P
from tfviz.cores import Sparse
from tfviz.measure import elements_produced, flops, largest_storage, slope
from tfviz.sub_quadratic import plan, windows
from tfviz.sub_quadratic.key_lists import Interval, key_lists, truth

RESTS_ON = ("tfviz/**", "tests/*.py")  # weights are found by their names

TOLERANCE = 1e-5


def assert_same(pattern: P.Pattern, *shape: int, dv: int | None = None) -> None:
    """Outputs and all three gradients equal those of the definition, training or not."""
    d, dv = shape[-1], dv or shape[-1]
    xs = three(torch.randn(*shape[:-1], n, requires_grad=True) for n in (d, d, dv))
    weight = torch.randn(*shape[:-1], dv)
    dense, sparse = attention(*xs, pattern)[0], sparse_attention(*xs, pattern)
    assert sparse.shape == dense.shape
    expected = torch.autograd.grad(dense, xs, weight)
    got = torch.autograd.grad(sparse, xs, weight, materialize_grads=True, allow_unused=True)
    with torch.no_grad():
        plain = sparse_attention(*xs, pattern)
    for name, a, b in zip(
        ("out", "out without gradients", "dQ", "dK", "dV"),
        (dense, dense, *expected),
        (sparse, plain, *got),
        strict=True,
    ):
        error = float((a - b).detach().abs().max())
        assert error < TOLERANCE * max(1.0, float(a.detach().abs().max())), f"{name}: {error}"


# --- equal to the definition ----------------------------------------------------------------------

GRID = [
    *GOLDEN,
    *(f"band(radius={w})" for w in (0, 1, 20, 500)),
    *(f"sliding_window(lookback={w})" for w in (0, 1, 70, 500)),
    *(f"dilated(radius={w}, dilation={r})" for w in (0, 2, 30) for r in (1, 3, 150)),
    *(f"column(stride={s})" for s in (1, 4, 400)),
    *(f"strided(stride={s})" for s in (1, 4, 17, 400)),
    *(f"own_block(block={b})" for b in (1, 7, 100)),
    *(f"summary_columns(block={b}, summary={c})" for b, c in ((4, 1), (50, 9), (400, 1))),
    *(f"fixed(block={b}, summary={c})" for b, c in ((4, 1), (17, 17), (50, 9))),
    *(f"block_local(block={b})" for b in (1, 64, 100)),
    *(f"global_tokens(count={c})" for c in (1, 5)),
    *(f"random_keys(count={c}, seed={s})" for c, s in ((1, 0), (5, 7))),
    *(f"blockwise(permutation={p})" for p in ((0,), (1, 0), (2, 0, 3, 1))),
    *(f"longformer(radius={w}, n_global={c})" for w, c in ((0, 1), (20, 2))),
    "etc(radius=9, n_global=5)",
    "block_window(block=16, window=1)",
    "random_blocks(block=16, count=2, seed=4)",
    *(f"bigbird(block={b}, window=1, n_global=1, n_random=2, seed=1)" for b in (5, 16, 64)),
    # compositions
    "dilated(radius=9, dilation=4) & causal()",
    "band(radius=40) & sliding_window(lookback=90)",
    "dilated(radius=9, dilation=4) & column(stride=6)",
    "(band(radius=2) | dilated(radius=9, dilation=4)) & causal()",
    "band(radius=2) | dilated(radius=9, dilation=4) | dilated(radius=9, dilation=6)",
    "strided(stride=13) & ~fixed(block=4, summary=1)",
    "strided(stride=13) & band(radius=5)",
    "strided(stride=13) | global_tokens(count=1)",
    "longformer(radius=3, n_global=2) & causal()",
    "~band(radius=20)",
    "~full()",
    "~strided(stride=9) & causal()",
    "per_head(causal(), strided(stride=7))",
    "per_head(column(stride=5), star()) & band(radius=30)",
    "~per_head(column(stride=5), star())",
]


@pytest.mark.parametrize("text", GRID)
def test_sparse_is_dense(text):
    pattern = make(text)
    for L in (70, 197, 320):
        assert_same(pattern, 2, 2, L, 8)


def test_windows_at_every_length_of_a_block():
    """Whatever is left over after whole blocks."""
    for L in range(140, 140 + windows.BLOCK, 3):
        assert_same(P.band(radius=20), 1, L, 4)
        assert_same(P.dilated(radius=5, dilation=2) & P.causal(), 1, L, 4)


def test_every_family_is_in_the_grid():
    assert set(P.FAMILIES) == {n for n in P.FAMILIES if any(t.startswith(f"{n}(") for t in GRID)}


@pytest.mark.parametrize(
    "text", ["causal()", "strided(stride=2)", "star()", "fixed(block=3, summary=1)"]
)
def test_short_sequences(text):
    for L in (1, 2, 3):
        assert_same(make(text), 1, 2, L, 4)


@st.composite
def drawn_patterns(draw: Any, L: int, depth: int = 2) -> P.Pattern:
    if depth and draw(st.booleans()):
        op = draw(st.sampled_from(["and", "or", "not"]))
        parts = [draw(drawn_patterns(L, depth - 1)) for _ in range(1 if op == "not" else 2)]
        return (
            ~parts[0]
            if op == "not"
            else parts[0] & parts[1]
            if op == "and"
            else parts[0] | parts[1]
        )
    family = P.FAMILIES[draw(st.sampled_from(sorted(P.FAMILIES)))]
    values: dict[str, Any] = {}
    for name, domain in family.domains.items():
        if domain.is_list:
            values[name] = tuple(draw(st.permutations(range(draw(st.integers(1, min(L, 6)))))))
        else:
            high = L + 3 if domain.high is None else domain.high({**values, "length": L})
            values[name] = draw(st.integers(domain.low, high))
    return family(**values)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_sparse_is_dense_for_any_composition(data):
    torch.manual_seed(0)
    L = data.draw(st.integers(1, 150), label="L")
    pattern = data.draw(drawn_patterns(L), label="pattern")
    assert_same(pattern, 2, L, 4, dv=data.draw(st.sampled_from([4, 3]), label="dv"))


def test_tables_of_any_bits():
    for density in (0.0, 0.02, 0.5, 1.0):
        assert_same(P.table(torch.rand(150, 150) < density), 2, 150, 8)


def test_leading_dimensions_and_views():
    pattern = P.longformer(radius=3, n_global=1)
    assert_same(pattern, 90, 8)
    assert_same(pattern, 2, 3, 2, 90, 8)
    x = torch.randn(2, 90, 3, 8).transpose(1, 2)  # heads as a view, as a projection leaves them
    for pattern in (P.band(radius=5), P.strided(stride=7), P.star()):
        torch.testing.assert_close(
            sparse_attention(x, x, x, pattern), attention(x, x, x, pattern)[0]
        )


def test_queries_without_keys_are_zero():
    for text in (
        "summary_columns(block=100, summary=1)",
        "dilated(radius=2, dilation=3) & ~band(radius=9)",
    ):
        x = torch.randn(2, 150, 8)
        out = sparse_attention(x, x, x, make(text))
        empty = ~make(text).mask(150).any(1)
        assert empty.any() and (out[:, empty] == 0).all() and (out[:, ~empty] != 0).any(-1).all()


def test_large_scores_stay_exact():
    x = 30 * torch.randn(1, 200, 8, dtype=torch.float64)
    for text in ("strided(stride=14)", "band(radius=9)", "star()"):
        out = sparse_attention(x, x, x, make(text))
        torch.testing.assert_close(out, attention(x, x, x, make(text))[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes(dtype):
    Q, K, V = (torch.randn(2, 200, 8, dtype=dtype) for _ in range(3))
    for text in ("strided(stride=14)", "sliding_window(lookback=20)", "fixed(block=14, summary=2)"):
        expected = attention(Q.double(), K.double(), V.double(), make(text))[0]
        out = sparse_attention(Q, K, V, make(text))
        assert out.dtype == dtype
        assert (out - expected).abs().max() < (1e-12 if dtype == torch.float64 else 0.05)


def test_longformer_of_hugging_face():
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    L, radius, count, h = 64, 8, 3, 2
    config = LongformerConfig(hidden_size=16, num_attention_heads=h, attention_window=[2 * radius])
    theirs = LongformerSelfAttention(config, layer_id=0).eval().double()
    for name in ("query", "key", "value"):  # one projection for both kinds of queries, as ours
        getattr(theirs, f"{name}_global").load_state_dict(getattr(theirs, name).state_dict())
    X = torch.randn(2, L, 16, dtype=torch.float64)
    for globals_ in (0, count):
        mask = torch.zeros(2, L, dtype=torch.float64)
        mask[:, :globals_] = 10000.0  # their sign for "attends everywhere"
        with torch.no_grad():
            expected = theirs(
                X,
                attention_mask=mask,
                is_index_masked=mask < 0,
                is_index_global_attn=mask > 0,
                is_global_attn=globals_ > 0,
            )[0]
            Q, K, V = (
                f(X).unflatten(-1, (h, -1)).transpose(1, 2)
                for f in (theirs.query, theirs.key, theirs.value)
            )
        pattern = P.longformer(radius=radius, n_global=count) if globals_ else P.band(radius=radius)
        out = sparse_attention(Q, K, V, pattern).transpose(1, 2).flatten(2)
        torch.testing.assert_close(out, expected)


def test_the_local_attention_package():
    from local_attention import LocalAttention

    theirs = LocalAttention(
        window_size=16, causal=True, exact_windowsize=True, use_rotary_pos_emb=False
    )
    Q, K, V = (torch.randn(2, 3, 80, 8) for _ in range(3))
    out = sparse_attention(Q, K, V, P.sliding_window(lookback=16))
    torch.testing.assert_close(out, theirs(Q, K, V), atol=1e-5, rtol=1e-5)


# --- which keys: intervals ------------------------------------------------------------------------


def used_keys(mask: torch.Tensor, size: int) -> list[list[int]]:
    return [rows.any(0).nonzero().flatten().tolist() for rows in mask.split(size)]


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_key_lists_are_those_of_the_mask(data):
    L = data.draw(st.integers(1, 60), label="L")
    size = data.draw(st.integers(1, 16), label="size")
    pattern = data.draw(drawn_patterns(L), label="pattern")
    mask = pattern.mask(L)
    lists = key_lists(pattern, L, size)
    assert [x.tolist() for x in lists.keys.split(lists.counts.tolist())] == used_keys(mask, size)
    for rows, full in zip(mask.split(size), lists.full.tolist(), strict=True):
        assert not full or rows.all(0).equal(rows.any(0)), "called full, but is not"


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(*[st.integers(-30, 30), st.integers(0, 20)] * 2),
    st.integers(1, 9),
    st.sampled_from(["+", "-", "*", "//", "%", "abs", "<=", "<", ">=", ">", "==", "!=", "rsub"]),
)
def test_intervals_hold_every_value(ends, n, sign):
    a, more, c, width = ends
    x, y = torch.arange(a, a + more + 1)[:, None], torch.arange(c, c + width + 1)[None]
    X, Y = Interval(x[0], x[-1]), Interval(y[:, 0], y[:, -1])
    code = {"//": f"x // {n}", "%": f"x % {n}", "abs": "abs(x)", "rsub": f"{n} - x"}
    expression = code.get(sign, f"x {sign} y")
    values = eval(expression, {"x": x, "y": y})
    got = eval(expression, {"x": X, "y": Y})
    if isinstance(got, Interval):
        assert int(got.low) <= int(values.min()) and int(values.max()) <= int(got.high)
    else:  # comparisons are exact
        assert bool(got.somewhere) == bool(values.any())
        assert bool(got.everywhere) == bool(values.all())


def test_a_formula_that_intervals_cannot_read_is_evaluated():
    def near(i: Any, j: Any, *, radius: int) -> Any:
        """Neighbours, said in torch."""
        return torch.where(i > j, i - j, j - i) <= radius

    pattern = P.Family(near, "near", "none", {"radius": P.Domain(0, 1, "w")})(radius=2)
    ends = Interval(torch.zeros(1, 1).long(), torch.ones(1, 1).long())
    unknown = truth(pattern, ends, ends, 150)
    assert unknown.somewhere.all() and not unknown.everywhere.any()
    assert used_keys(pattern.mask(150), 64) == used_keys(P.band(radius=2).mask(150), 64)
    assert_same(pattern, 2, 150, 8)


# --- growth, without a clock ----------------------------------------------------------------------


def root(L: int) -> int:
    return math.isqrt(L)


LINEAR = {
    "sliding window": lambda L: P.sliding_window(lookback=100),
    "band": lambda L: P.band(radius=50),
    "dilated": lambda L: P.dilated(radius=25, dilation=4),
    "dilated, causal": lambda L: P.dilated(radius=25, dilation=4) & P.causal(),
    "band or dilated": lambda L: P.band(radius=20) | P.dilated(radius=25, dilation=4),
    "own block": lambda L: P.own_block(block=50),
    "block local": lambda L: P.block_local(block=50),
    "blockwise": lambda L: P.blockwise(permutation=tuple(reversed(range(L // 64)))),
    "global tokens": lambda L: P.global_tokens(count=2),
    "longformer": lambda L: P.longformer(radius=50, n_global=2),
    "etc": lambda L: P.etc(radius=50, n_global=8),
    "star": lambda L: P.star(),
    "big bird": lambda L: P.bigbird(block=16, window=1, n_global=1, n_random=3, seed=0),
    "random keys": lambda L: P.random_keys(count=3, seed=0),
    "per head": lambda L: P.per_head(P.band(radius=50), P.star()),
}
ROOT = {
    "strided": lambda L: P.strided(stride=root(L)),
    "column": lambda L: P.column(stride=root(L)),
    "fixed": lambda L: P.fixed(block=root(L), summary=1),
    "strided and global": lambda L: P.strided(stride=root(L)) | P.global_tokens(count=2),
    "strided by head": lambda L: P.per_head(
        P.sliding_window(lookback=root(L)), P.column(stride=root(L))
    ),
}
CASES = [(n, p, 1.25) for n, p in LINEAR.items()] + [(n, p, 1.6) for n, p in ROOT.items()]


def forward_and_backward(function: Any, L: int) -> Any:
    xs = [torch.randn(2, L, 16, requires_grad=True) for _ in range(3)]

    def run() -> None:
        function(*xs).sum().backward()

    run()  # plans are made and kept
    return run


@pytest.mark.parametrize(("name", "pattern", "limit"), CASES, ids=[name for name, *_ in CASES])
def test_growth(name, pattern, limit):
    def at(L: int) -> Any:
        return forward_and_backward(lambda q, k, v: sparse_attention(q, k, v, pattern(L)), L)

    assert slope(flops, at) <= limit
    assert slope(largest_storage, at) <= limit
    assert slope(elements_produced, at) <= limit


@pytest.mark.parametrize("name", ["longformer", "big bird", "own block", "fixed"])
def test_plans_are_found_without_the_mask(name):
    pattern, limit = {n: (p, limit) for n, p, limit in CASES}[name]

    def at(L: int) -> Any:
        plan.cache_clear()
        windows.offsets.cache_clear()
        return lambda: plan(pattern(L), L)

    # up to 16k: below, the chunks of a constant size are the largest
    assert slope(largest_storage, at, (4096, 16384)) <= limit


def test_a_mask_on_dense_attention_is_found_out():
    def cheat(q: Any, k: Any, v: Any) -> Any:
        mask = P.sliding_window(lookback=100).mask(q.shape[1])
        return F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], mask)

    for function in (cheat, lambda q, k, v: attention(q, k, v, P.band(radius=50))[0]):
        at = lambda L, f=function: forward_and_backward(f, L)  # noqa: E731
        assert slope(flops, at, (256, 1024)) == pytest.approx(2, abs=0.05)
        assert slope(largest_storage, at, (256, 1024)) == pytest.approx(2, abs=0.05)


def test_small_steps_that_add_up_are_found_out():
    """One gather for every block of queries: each has a gradient as long as the sequence."""

    def gathers(q: Any, k: Any, v: Any) -> Any:
        blocks = torch.arange(q.shape[1]).split(64)
        parts = [[x.index_select(1, at)[:, None] for x in (q, k, v)] for at in blocks]
        return torch.cat([F.scaled_dot_product_attention(*part) for part in parts], 2)

    def at(L: int) -> Any:
        return forward_and_backward(gathers, L)

    assert slope(largest_storage, at) < 1.1 and slope(elements_produced, at) > 1.8


def test_windows_do_the_work_of_their_pairs():
    """At most a block too many on each row: not merely linear, but tight."""
    L, lookback, d = 4096, 256, 16
    q = torch.randn(1, L, d)
    done = flops(lambda: sparse_attention(q, q, q, P.sliding_window(lookback=lookback)))
    assert done <= 4 * d * L * (lookback + 2 * windows.BLOCK)


# --- blocks whose lengths share no factor ---------------------------------------------------------


def of_blocks(dice: random.Random, depth: int = 2) -> P.Pattern:
    """A composition of patterns with blocks, gaps and windows of numbers that share no factor."""
    if depth and dice.random() < 0.75:
        first, second = (of_blocks(dice, depth - 1) for _ in range(2))
        op = dice.choice(["and", "and", "or", "not"])
        return first & second if op == "and" else first | second if op == "or" else ~first
    n = dice.choice([7, 11, 13, 29, 31, 53, 65, 67, 97, 101, 131, 193, 197, 199])
    return dice.choice(
        [
            P.own_block(block=n),
            P.block_local(block=n),
            P.block_window(block=n, window=dice.randint(0, 2)),
            P.band(radius=n),
            P.dilated(radius=dice.randint(1, 9), dilation=n),
            P.column(stride=n),
            P.causal(),
        ]
    )


def test_blocks_without_a_common_factor_take_no_more_memory_than_their_pairs() -> None:
    """500 compositions: equal to the definition, and no tensor larger than L² numbers a few times,
    though the pattern repeats itself only after the product of all its blocks."""
    dice = random.Random(0)
    torch.manual_seed(0)
    most = 0.0
    for _ in range(500):
        L = dice.randint(130, 200)
        pattern = of_blocks(dice)
        q, k, v = torch.randn(3, 1, L, 2, dtype=torch.float64)
        plan.cache_clear()
        most = max(most, largest_storage(plan, pattern, L) / (8 * L * L))
        out = sparse_attention(q, k, v, pattern)
        torch.testing.assert_close(out, attention(q, k, v, pattern)[0])
    assert most < 5, f"a tensor of {most:.1f} L² numbers"


def test_a_unit_beyond_the_sequence_goes_by_rows() -> None:
    """The pattern that asked for 6.5 TB at L = 200, and one that needed 100 MB where 3 will do."""
    three_blocks = P.own_block(block=199) & P.block_local(block=197) & P.block_local(block=65)
    assert_same(three_blocks, 2, 200, 4)
    two_blocks, L = P.own_block(block=101) & P.own_block(block=99), 20_000
    assert largest_storage(lambda: plan(two_blocks, L)) < 20 * 2**20


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "text", "error", "says"),
    [
        ([(4, 3), (4, 3), (4, 3)], "causal().mask(4)", TypeError, r"tfviz.patterns.table\(mask\)"),
        ([(4, 3), (5, 3), (5, 3)], "causal()", ValueError, "4 queries and 5 keys"),
        ([(4, 3), (4, 2), (4, 2)], "causal()", ValueError, "queries have width 3, keys 2"),
        ([(4, 3), (4, 3), (4, 0)], "causal()", ValueError, "V has shape .* is empty"),
        ([(4, 3)] * 3, "random_keys(count=5)", ValueError, "choose 1 <= count <= 4"),
        ([(4, 3)] * 3, "causal().at(4) & random_keys(count=1, seed=0).at(5)", ValueError, "L = 4"),
        ([(4, 3)] * 3, "per_head(causal(), full())", ValueError, "2 heads, Q has shape"),
        ([(3, 4, 3)] * 3, "per_head(causal(), full())", ValueError, r"give .* \(…, 2, L, d\)"),
        (
            [(2, 4, 3)] * 3,
            "per_head(causal(), full()) | per_head(causal(), full(), star())",
            ValueError,
            r"have \[2, 3\] heads; join patterns of one number",
        ),
    ],
)
def test_bad_input_is_refused_with_a_remedy(shapes, text, error, says):
    with pytest.raises(error, match=says):
        sparse_attention(*three(torch.ones(shape) for shape in shapes), make(text))


def test_nan_and_wrong_dtype_are_refused():
    x = torch.ones(2, 4, 3)
    with pytest.raises(ValueError, match="K holds NaN"):
        sparse_attention(x, x * math.nan, x, P.causal())
    with pytest.raises(TypeError, match=r"Q has dtype torch\.int64"):
        sparse_attention(x.long(), x, x, P.causal())


# --- modes ----------------------------------------------------------------------------------------

KINDS = {  # one of each way to compute
    "window": P.sliding_window(lookback=20),
    "two windows": P.strided(stride=14),
    "gather": P.random_keys(count=3, seed=0),
    "blocks": P.blockwise(permutation=(2, 0, 1, 3, 4)),
    "window and gather": P.fixed(block=40, summary=3),
    "rows without keys": P.summary_columns(block=70, summary=1),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def test_a_plan_made_in_inference_mode_serves_training(kind):
    plan.cache_clear()
    x = torch.randn(2, 200, 8)
    with torch.inference_mode():
        sparse_attention(x, x, x, kind)
    assert_same(kind, 2, 200, 8)


def test_gradients_can_be_differentiated(kind):
    Q, K, V, G = (torch.randn(1, 200, 4, dtype=torch.float64) for _ in range(4))
    xs = three(x.requires_grad_() for x in (Q, K, V))
    found = []
    for function in (sparse_attention, lambda *x: attention(*x)[0]):
        first = torch.autograd.grad(function(*xs, kind), xs, G, create_graph=True)
        penalty = torch.stack([(g**2).sum() for g in first]).sum()
        found.append(torch.autograd.grad(penalty, xs))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_half_precision_stays_finite(kind):
    """Scores beyond the largest number of float16; torch's SDPA stands them too."""
    Q, K, V = (100 * torch.randn(1, 200, 64).half() for _ in range(3))
    out = sparse_attention(Q, K, V, kind)
    expected = F.scaled_dot_product_attention(Q, K, V, kind.mask(200))
    assert out.dtype == torch.float16 and out.isfinite().all()
    torch.testing.assert_close(out, expected, atol=1.0, rtol=0.02)


def test_unions_of_windows_do_little_more_than_their_work():
    L, d = 4096, 16
    q = torch.randn(1, L, d)
    pattern = P.strided(stride=64) | P.global_tokens(count=2)
    done = flops(lambda: sparse_attention(q, q, q, pattern))
    assert done <= 0.08 * 4 * d * L * L, "a gather of both parts takes 30 % of all pairs"


def test_strided_is_known_by_what_it_is_made_of():
    made = P.sliding_window(lookback=14) | P.column(stride=14)
    shapes = [
        [(call.queries, call.keys, call.causal) for call in plan(pattern, 300)]
        for pattern in (P.strided(stride=14), made)
    ]
    assert shapes[0] == shapes[1]


def test_the_formula_for_other_devices_is_the_same():
    from tfviz.sub_quadratic import merged

    for kind in KINDS.values():
        Q, K, V = torch.randn(3, 2, 200, 8, dtype=torch.float64)
        out = merged.formula(Q, K, V, plan(kind, 200), 8**-0.5)
        torch.testing.assert_close(out, attention(Q, K, V, kind)[0])


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    Sparse,
    plain,
    grows=1.0,
    functions={
        "sparse_attention": Function(
            partial(sparse_attention, pattern=P.sliding_window(lookback=3)),
            over(P.sliding_window(lookback=3)),
            length=150,
        )
    },
)


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/sub_quadratic/merged.py": [
        ("√d missing in the merged softmax", "plan, 1 / math.sqrt(d))[0]", "plan, 1.0)[0]"),
        ("only the last part of a union counts", "torch.logaddexp(before, l)", "l"),
    ],
    "tfviz/sub_quadratic/windows.py": [
        ("sparse window off by one", "max(0, right - size + 1)", "0"),
    ],
}
