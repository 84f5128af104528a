"""Hard-coded Gaussian heads: a fixed place for each head, undivided rows, and what is cut off."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import (
    Case,
    H,
    agree_with_gradients,
    it_resumes_to_the_last_bit,
    qkv,
    streamed,
    work_grows_no_faster,
)
from refusals import of_no_kind, ranges, refused
from streams import CAUSAL, it_refuses_other_texts
from three import three
from torch import Tensor

from tfviz import GPT, attention, implied_map, patterns
from tfviz.cores import Where
from tfviz.formula import Formula
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import attention_weights
from tfviz.priors import hard_coded_gaussian as hard

ONE = 1 / math.sqrt(2 * math.pi)  # 0.3989, at the centre
AT = {n: ONE * math.exp(-n * n / 2) for n in range(9)}


def test_rows_by_hand() -> None:
    """Δ = −1: key 0 is one place from the centre of query 0, key 1 two places, and so on."""
    A = hard.hard_coded_definition(torch.ones(1, 4, 1), torch.ones(4, 4).bool(), [-1])[1][0]
    assert A[0].tolist() == pytest.approx([AT[1], AT[2], AT[3], AT[4]])
    assert A[2].tolist() == pytest.approx([AT[1], AT[0], AT[1], AT[2]])
    assert A[0].sum().item() == pytest.approx(0.30, abs=0.005)


def test_inside_of_a_causal_text_a_row_sums_to_seven_tenths() -> None:
    """Δ = 0: the centre and half of the rest."""
    A = implied_map(hard.HardCoded(1, [0]), *three(x[:, :1] for x in qkv(30)), CAUSAL)
    assert A[0, 0, 20].sum().item() == pytest.approx(0.5 + ONE / 2, abs=1e-4)
    assert A[0, 0, 20].sum().item() == pytest.approx(0.70, abs=0.005)
    one = implied_map(
        hard.HardCoded(1, [0], renormalise=True), *three(x[:, :1] for x in qkv(9)), CAUSAL
    )
    torch.testing.assert_close(one.sum(-1), torch.ones_like(one[..., 0]))


def test_divided_rows_are_a_softmax_of_the_formula() -> None:
    """Scores of 0 and the formula as a bias: what FlexAttention makes with its score_mod."""
    Q, _, V = qkv(40)
    formula = Formula(hard.bell, reals=frozenset({"spread"}))
    mod = formula.score_mod(offset=-1, spread=1.0)
    i, j = torch.arange(40)[:, None], torch.arange(40)
    scores = mod(torch.zeros(40, 40, dtype=torch.float64), 0, 0, i, j)
    core = hard.HardCoded(H, [-1], renormalise=True)
    for pattern in (patterns.causal(), patterns.full()):
        zeros = torch.zeros_like(Q)
        wanted = attention(zeros, zeros, V, pattern, bias=scores)[0]
        torch.testing.assert_close(core(Q, Q, V, Where(pattern))[0], wanted, atol=1e-7, rtol=1e-7)


def test_the_formula_has_latex_and_javascript() -> None:
    formula = Formula(hard.bell, reals=frozenset({"spread"}))
    assert formula.parameters == ["offset", "spread"]
    assert "spread" in formula.javascript() and "offset" in formula.latex()
    assert formula(3, 1, offset=-1, spread=0.5) == -2


def in_loops(V: Tensor, offset: int, causal: bool) -> Tensor:
    rows = []
    for i in range(len(V)):
        row = torch.zeros_like(V[0])
        for j in range(i + 1 if causal else len(V)):
            row = row + ONE * math.exp(-((j - i - offset) ** 2) / 2) * V[j]
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("causal", [False, True])
def test_the_equation_in_loops_and_offsets_in_turns(causal: bool) -> None:
    """Heads 0 and 2 look one place back, heads 1 and 3 one ahead; what is cut off is small."""
    Q, _, V = qkv(30)
    where = CAUSAL if causal else Where()
    out = hard.HardCoded(H, [-1, 1])(Q, Q, V, where)[0]
    for head, offset in enumerate([-1, 1, -1, 1]):
        wanted = in_loops(V[1, head], offset, causal)
        torch.testing.assert_close(out[1, head], wanted, atol=1e-7, rtol=1e-7)
        assert (out[1, head] - wanted).abs().max() > 0  # it is cut off


@pytest.mark.parametrize("renormalise", [False, True])
def test_gradients_are_those_of_the_definition(renormalise: bool) -> None:
    Q, _, V = qkv(50)
    V.requires_grad_()
    core = hard.HardCoded(H, [-2, 0], spread=1.5, renormalise=renormalise)
    mask = patterns.causal().mask(50)
    wanted = hard.hard_coded_definition(V, mask, [-2, 0], 1.5, None, renormalise)[0]
    agree_with_gradients(core(Q, Q, V, CAUSAL)[0], wanted, [V])


def test_a_narrow_bell_is_a_shift() -> None:
    """s → 0, divided: each token gets the value one place before it, the first one nothing."""
    Q, _, V = qkv(12)
    out = hard.HardCoded(H, [-1], spread=0.05, radius=0, renormalise=True)(Q, Q, V, CAUSAL)[0]
    torch.testing.assert_close(out[:, :, 1:], V[:, :, :-1])
    assert (out[:, :, 0] == 0).all()


def test_inside_of_a_text_it_is_a_depthwise_convolution() -> None:
    Q, _, V = qkv(40)
    kernel = torch.tensor([AT[abs(n)] for n in range(-6, 7)], dtype=torch.float64)
    out = hard.HardCoded(H, [0])(Q, Q, V, Where())[0]
    rows = V.mT.flatten(0, 2)[:, None]
    wanted = F.conv1d(rows, kernel[None, None], padding=6).view(V.mT.shape).mT
    torch.testing.assert_close(out, wanted)


def test_neither_queries_nor_keys_matter() -> None:
    Q, K, V = qkv()
    core = hard.HardCoded(H)
    assert core(Q, K, V, CAUSAL)[0].equal(core(-Q, K.flip(2), V, CAUSAL)[0])


@pytest.mark.parametrize("sizes", [1, [1, 30, 4, 5]])
@pytest.mark.parametrize("renormalise", [False, True])
def test_parts_of_a_text_go_on_where_the_last_one_ended(sizes: Any, renormalise: bool) -> None:
    torch.manual_seed(0)
    core = partial(hard.HardCoded, offsets=[-3, 0], renormalise=renormalise)
    attend = MultiHeadAttention(16, 2, core=core, pattern=patterns.causal()).double()
    X = torch.randn(2, 40, 16, dtype=torch.float64)
    cache = dict[Any, Any]()
    torch.testing.assert_close(streamed(attend, X, sizes, cache), attend(X))
    assert cache[attend].state.shape[2] == 9  # six spreads and three places, of any text


def gpt() -> GPT:
    torch.manual_seed(0)
    return GPT(11, 16, 2, 2, core=hard.HardCoded)


def test_it_resumes_to_the_last_bit() -> None:
    t = torch.randint(11, (2, 40), generator=torch.Generator().manual_seed(1))
    it_resumes_to_the_last_bit(gpt, t, 5)


def test_a_model_shows_its_weights() -> None:
    for A in attention_weights(gpt(), torch.zeros(1, 6).long()).values():
        assert A[0, 0, 4].tolist() == pytest.approx([AT[3], AT[2], AT[1], AT[0], AT[1], 0])
        assert A[0, 1, 4].tolist() == pytest.approx([AT[4], AT[3], AT[2], AT[1], AT[0], 0])


# --- the code of others ---------------------------------------------------------------------------


def stupid_nmt(V: Tensor, offsets: list[int], mask: Tensor | None) -> Tensor:
    """`NewAttention` of the authors with attn_type "normal", (b, h, L, d): the whole matrix from a
    table over distances that begins at −max(offsets), and the mask multiplied in."""
    h, n = V.shape[1:3]
    std, most, least = 1.0, max(offsets), min(offsets)
    queries = torch.arange(n).double().view(1, -1, 1)
    keys = torch.arange(-most, n - least).double().view(1, 1, -1)
    table = 1 / (std * math.sqrt(2 * math.pi)) * torch.exp(-1 / 2 * ((keys - queries) / std) ** 2)
    by_head = offsets * (h // len(offsets))
    logits = torch.cat([table[:, :, most - a : most - a + n] for a in by_head])
    if mask is not None:
        logits = logits * mask
    return torch.einsum("hqk,bhkd->bhqd", logits, V)


@pytest.mark.parametrize("renormalise", [False, True])
@pytest.mark.parametrize("pattern", [patterns.causal(), patterns.full()], ids=str)
def test_padding_counts_for_nothing(pattern: Any, renormalise: bool) -> None:
    """Neither do its values, nor does it fill a row that is divided by its sum."""
    Q, K, V = qkv(9)
    seen = torch.ones(len(Q), 9, dtype=torch.bool)
    seen[0, :3], seen[1, 7:] = False, False
    core = hard.HardCoded(H, [-1], renormalise=renormalise)
    out = core(Q, K, V, Where(pattern, attention_mask=seen))[0]
    mask = pattern.mask(9) & seen[:, None, None]
    wanted, _ = hard.hard_coded_definition(V, mask, [-1], 1.0, None, renormalise)
    torch.testing.assert_close(out[:, :, 3:7], wanted[:, :, 3:7])


@pytest.mark.parametrize(("offsets", "causal"), [([-1, 1], False), ([-1, 0], True)])
def test_parity_with_the_authors_code(offsets: list[int], causal: bool) -> None:
    """The offsets of their encoder and their decoder; theirs cuts nothing off."""
    Q, _, V = qkv(60)
    theirs = stupid_nmt(V, offsets, patterns.causal().mask(60) if causal else None)
    where = CAUSAL if causal else Where()
    ours = hard.HardCoded(H, offsets)(Q, Q, V, where)[0]
    torch.testing.assert_close(ours, theirs, atol=1e-7, rtol=1e-7)
    whole = hard.HardCoded(H, offsets, radius=61)(Q, Q, V, where)[0]
    torch.testing.assert_close(whole, theirs, atol=1e-13, rtol=1e-13)


# --- costs and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_work_and_memory_grow_with_the_length(causal: bool) -> None:
    def core(L: int) -> Callable[..., Tensor]:
        where = CAUSAL if causal else Where()
        made = hard.HardCoded(1, [-1])
        return lambda *X: made(*X, where)[0]

    work_grows_no_faster(core, 1.05)


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    of_no_kind("offsets = 'x'; give whole numbers in a list", hard.HardCoded, 2, "x")
    of_no_kind("offsets = []", hard.HardCoded, 2, [])
    refused("give a number of offsets that divides the heads", hard.HardCoded, 3, [-1, 0])
    ranges(partial(hard.HardCoded, offsets=[0]), h=(2, 1))
    refused("offsets = 0.5", hard.HardCoded, 1, [0.5])
    ranges(partial(hard.HardCoded, 1, [0]), spread=(1.0, 1e-3, 1024.0), radius=(4, 0))
    core = hard.HardCoded(H)
    refused("offsets are for 4 heads, Q has 2", core, *(x[:, :2] for x in (Q, K, V)), CAUSAL)
    refused("9 queries and 8 values", core, Q, K[:, :, 1:], V[:, :, 1:], CAUSAL)
    refused("leave cross-attention learned", core, Q, K, V, Where(crosses=True))
    it_refuses_other_texts(core)


@pytest.mark.parametrize("offset", [-3, 0])
def test_the_oldest_value_that_is_kept_still_counts(offset: int) -> None:
    """Within a radius of 1 all weights are large, the farthest one, too."""
    Q, K, V = qkv(12)
    core, state = hard.HardCoded(H, [offset], spread=3.0, radius=1), None
    whole = core(Q, K, V, CAUSAL)[0]
    for n in range(12):
        kept = list[Any]()
        where = Where(CAUSAL.pattern, n, state=state, keep=kept.append)
        part = core(*three(x[:, :, n : n + 1] for x in (Q, K, V)), where)[0]
        torch.testing.assert_close(part, whole[:, :, n : n + 1])
        state = kept.pop()
        assert state.shape[2] == 1 - offset


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    given = core.offsets, core.spread, core.radius, core.renormalise
    out, A = hard.hard_coded_definition(V, mask, *given)
    return out, A.expand(len(V), -1, -1, -1)


CASE = Case(
    lambda: hard.HardCoded(H, [-1, 0], spread=3.0),
    defined,
    shares_sum_to_one=False,
    variants={
        "divided": Case(lambda: hard.HardCoded(H, [-1, 0], spread=2.5, renormalise=True), defined)
    },
    mutants=[
        (
            "a cache that is one row short",
            "values.shape[2] - back :",
            "values.shape[2] - back + 1 :",
        ),
        ("a bell of half the spread", "(2 * spread**2)", "spread**2"),
        ("a bell that is not squared", "(j - i - offset) ** 2", "(j - i - offset).abs()"),
        ("offsets to the other side", "(j - i - offset) ** 2", "(j - i + offset) ** 2"),
        ("a causal head that looks ahead", "0 if causal else max(", "max("),
        ("all values kept", "values.shape[2] - back :", "0 :"),
        ("padding that counts", ".mT, 0.0)", ".mT, 1.0)"),
    ],
)
