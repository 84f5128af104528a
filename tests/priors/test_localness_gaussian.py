"""Localness: a bell for each query, by hand and as a product, and the code of its authors."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case, D, H, L, qkv, streamed
from refusals import ranges, refused
from torch import Tensor

from tfviz import GPT, attention, patterns
from tfviz.cores import Where
from tfviz.formula import Formula
from tfviz.models.blocks import MultiHeadAttention
from tfviz.priors import localness_gaussian as room
from tfviz.priors.hard_coded_gaussian import bell

CAUSAL = Where(patterns.causal())
close = torch.testing.assert_close


def test_a_row_by_hand() -> None:
    """p = 2, D = 2, so σ = 1: the weights .1 .4 .3 .2 times e^{−2} e^{−1/2} 1 e^{−1/2}, divided."""
    A = torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.float64)
    G = room.bell_around(0, torch.arange(4), centre=2.0, window=2.0)
    assert G.tolist() == [-2, -0.5, 0, -0.5]
    product = [0.1 * math.exp(-2), 0.4 * math.exp(-0.5), 0.3, 0.2 * math.exp(-0.5)]
    wanted = [x / sum(product) for x in product]
    assert (A.log() + G).softmax(0).tolist() == pytest.approx(wanted)
    assert wanted == pytest.approx([0.020, 0.358, 0.443, 0.179], abs=5e-4)


def test_a_bias_is_a_product_with_a_gaussian_and_a_new_sum() -> None:
    Q, K, V = qkv()
    p, D = 8 * torch.rand(2, H, L).double(), 2 + 6 * torch.rand(2, H, L).double()
    out, A = room.localness_definition(Q, K, V, None, p, D)
    j = torch.arange(L)
    product = attention(Q, K, V)[1] * torch.exp(
        -((j - p[..., None]) ** 2) / (2 * (D / 2)[..., None] ** 2)
    )
    close(A, product / product.sum(-1, keepdim=True))
    close(out, A @ V)


def test_a_wide_window_is_no_prior_and_a_narrow_one_is_a_place() -> None:
    Q, K, V = qkv()
    i = torch.arange(L).double().expand(2, H, L)
    wide = room.localness_definition(Q, K, V, None, i, torch.full_like(i, 1e9))
    close(wide[0], attention(Q, K, V)[0])
    narrow = room.localness_definition(Q, K, V, None, i, torch.full_like(i, 0.1))
    close(narrow[1], torch.eye(L).double().expand_as(narrow[1]))
    close(narrow[0], V)


def test_it_is_the_hard_coded_bell_around_another_place_and_a_formula() -> None:
    i, j = torch.arange(5)[:, None], torch.arange(5)
    moved = room.bell_around(i, j, centre=i - 3, window=4.0)
    assert moved.equal(bell(i, j, offset=-3, spread=2.0))
    formula = Formula(room.bell_around, reals=frozenset({"centre", "window"}))
    assert formula.parameters == ["centre", "window"]
    assert "Math.pow(window, 2)" in formula.javascript()
    mod = formula.score_mod(centre=1.5, window=2.0)
    assert float(mod(0.5, 0, 0, torch.tensor(0), torch.tensor(3))) == 0.5 - 1.125


def core(**kinds: Any) -> Any:
    torch.manual_seed(0)
    return room.Localness(D, H, **kinds).double()


def test_places_and_windows_stay_in_the_text() -> None:
    Q = 10 * qkv()[0]
    p, D = core().predicted(Q, torch.full((L,), L - 1.0))
    assert (p > 0).all() and (p < L - 1).all() and (D > room.LEAST).all() and (D < L + 0.1).all()
    p, D = core().predicted(Q, torch.arange(L).float())
    i = torch.arange(L)
    assert (p <= i).all() and (i >= D - 1.1).all()
    assert p[:, :, 0].abs().max() == 0


def test_what_a_head_learns_instead() -> None:
    Q, last = qkv()[0], torch.full((L,), L - 1.0)
    p, D = core(centre="fixed", window="fixed", size=7.0).predicted(Q, last)
    assert p.tolist() == [list(range(L))] and D.tolist() == [[7.0] * L]
    made = core(centre="layer", window="layer")
    made.offset.data = torch.tensor([-3.0, 0.0, 1.0, 2.5]).double()
    made.width.data = torch.tensor([0.0, -100.0, 100.0, 0.0]).double()
    p, D = made.predicted(Q[:, :, :2], last[:2], start=5)
    assert p.tolist() == [[2, 3], [5, 6], [6, 7], [7.5, 8.5]]
    assert D[:, 0].tolist() == pytest.approx([25.1, 0.1, 50.1, 25.1])
    assert core(centre="fixed", window="layer").predicted(Q, last)[0].shape == (H, L)


@pytest.mark.parametrize(
    ("kinds", "count"),
    [
        ({}, 2),
        ({"window": "layer"}, 1),
        ({"window": "fixed"}, 1),
        ({"centre": "layer"}, 1),
        ({"centre": "layer", "window": "fixed"}, 0),
    ],
)
def test_parameters_are_counted(kinds: Any, count: int) -> None:
    """d² + d for the shared layer, h d + h for each of the two that queries predict."""
    d = H * D
    learned = sum(x.numel() for x in core(**kinds).parameters())
    of_heads = H * sum(kind == "layer" for kind in kinds.values())
    assert learned == (count > 0) * (d * d + d) + count * (H * d + H) + of_heads


def test_a_decoders_bells_do_not_depend_on_what_comes_later() -> None:
    torch.manual_seed(0)
    attend = MultiHeadAttention(16, 2, core=room.Localness, pattern=patterns.causal()).double()
    X = torch.randn(2, 12, 16, dtype=torch.float64)
    close(attend(X)[:, :7], attend(X[:, :7]))
    cache = dict[Any, Any]()
    close(streamed(attend, X, [1, 5, 1, 5], cache), attend(X))


def test_padding_shortens_the_text() -> None:
    """As in the authors' code, the last place of a text is that of its last word."""
    Q, K, V = qkv()
    seen = torch.ones(2, L, dtype=torch.bool)
    seen[0, 6:] = False
    made = core()
    padded = made(Q, K, V, Where(attention_mask=seen))[0]
    alone = made(*(x[:1, :, :6] for x in (Q, K, V)), Where())[0]
    close(padded[:1, :, :6], alone)


def test_a_window_of_keys_ends_where_its_last_one_stands() -> None:
    where = Where(patterns.band(radius=2))
    assert room.last_places(where, 5, 5).tolist() == [2, 3, 4, 4, 4]
    assert room.last_places(Where(), 2, 5).tolist() == [4, 4]
    assert room.last_places(CAUSAL, 2, 5).tolist() == [3, 4]


def test_another_sequence_is_searched_from_its_beginning() -> None:
    Q, K, V = qkv()
    made = core()
    out, A = made(Q[:, :, :3], K, V, Where(crosses=True, need_weights=True))
    p, D = made.predicted(Q[:, :, :3], torch.full((3,), L - 1.0))
    wanted = room.localness_definition(Q[:, :, :3], K, V, None, p, D)
    close(out, wanted[0])
    close(A, wanted[1])


def test_places_of_long_texts_survive_half_precision() -> None:
    """bfloat16 knows no whole number between 512 and 514."""
    made = room.Localness(2, 1, centre="fixed", window="fixed", size=0.1).bfloat16()
    p = made.predicted(torch.zeros(1, 1, 600, 2).bfloat16(), torch.full((600,), 599.0))[0]
    assert p[0, 513] == 513


@pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float32, 1e-4), (torch.float16, 0.05), (torch.bfloat16, 0.2)]
)
def test_other_types_are_near_with_the_same_weights(dtype: torch.dtype, atol: float) -> None:
    made = core().to(dtype)
    X = [x.to(dtype) for x in qkv()]
    out = made(*X, CAUSAL)[0]
    assert out.dtype == dtype
    close(out.double(), made.double()(*(x.double() for x in X), CAUSAL)[0], atol=atol, rtol=atol)


# --- the code of others ---------------------------------------------------------------------------


def context_aware_san(
    q: Tensor, K: Tensor, V: Tensor, mask: Tensor, made: Any, window: str
) -> Tensor:
    """`multihead_attention` of the authors' attention_dyn.py ("query"), attention_dyn_param.py
    ("layer") and attention_local.py ("fixed"), all heads local, from the queries on."""
    bias = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -1e9)
    hidden = torch.tanh(q @ made.shared.weight.T + made.shared.bias)
    weight, offset = made.to_centre.weight, made.to_centre.bias
    if window == "query":  # one linear map for both
        weight = torch.cat([weight, made.to_window.weight])
        offset = torch.cat([offset, made.to_window.bias])
    split = torch.sigmoid(hidden @ weight.T + offset).mT[..., None]  # (b, heads, L, 1)
    positions = split[:, :H]
    mask_lens = bias.exp().sum(-1, keepdim=True) - 1.0
    if window == "query":
        size = split[:, H:] * (mask_lens + 1.0) + 0.1
    elif window == "layer":
        size = torch.sigmoid(made.width.view(1, H, 1, 1)) * 50 + 0.1
    else:
        size = torch.tensor(10.0)
    molecular = positions * mask_lens - torch.arange(K.shape[2]).view(1, 1, 1, -1)
    Q = q.unflatten(-1, (H, D)).transpose(1, 2)
    logits = (Q * D**-0.5) @ K.mT + bias + (0.0 - 2 * (molecular / size) ** 2)
    return F.softmax(logits, -1) @ V


@pytest.mark.parametrize("window", room.KINDS)
@pytest.mark.parametrize("pattern", [patterns.causal(), patterns.full()], ids=str)
def test_parity_with_the_authors_code(pattern: Any, window: str) -> None:
    Q, K, V = qkv()
    made = core(window=window)
    theirs = context_aware_san(
        Q.transpose(1, 2).flatten(2), K, V, pattern.mask(L)[None, None], made, window
    )
    close(made(Q, K, V, Where(pattern))[0], theirs)


def test_a_gpt_takes_it() -> None:
    torch.manual_seed(0)
    model = GPT(11, 16, 2, 2, core=partial(room.Localness, window="layer"))
    model(torch.zeros(1, 6).long()).logsumexp(-1).sum().backward()
    learned = {name: x for name, x in model.named_parameters() if ".core." in name}
    assert len(learned) == 2 * 5 and all(x.grad is not None for x in learned.values())


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    made = partial(room.Localness, window="fixed")
    ranges(made, d_head=(4, 1), h=(2, 1), size=(10.0, 0.1))
    refused("centre = 'token'; give one of query, layer, fixed", room.Localness, 4, 2, "token")
    refused("window = 3; give one of query", room.Localness, 4, 2, window=3)
    refused("for 2 heads of 8 numbers, Q has 4 of 8", room.Localness(D, 2), Q, K, V, CAUSAL)
    refused("for 4 heads of 3 numbers, Q has 4 of 8", room.Localness(3, H), Q, K, V, CAUSAL)
    refused("centre = 'layer' … predict", core(centre="layer"), Q, K, V, Where(crosses=True))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(made: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Query by query, with the last place counted in the mask."""
    n = Q.shape[2]
    mask = mask.expand(H, n, n)
    rows = torch.cat([Q[:, k] for k in range(H)], -1)
    hidden = torch.tanh(rows @ made.shared.weight.T + made.shared.bias)
    s = Q @ K.mT / D**0.5
    heads = []
    for k in range(H):
        last = [max([j for j in range(n) if mask[k, i, j]], default=0) for i in range(n)]
        bells = []
        for i in range(n):
            centre = last[i] * torch.sigmoid(
                hidden[:, i] @ made.to_centre.weight[k] + made.to_centre.bias[k]
            )
            window = torch.sigmoid(hidden[:, i] @ made.to_window.weight[k] + made.to_window.bias[k])
            window = (last[i] + 1) * window + 0.1
            spread = window[:, None] / 2
            bells.append(-((torch.arange(n) - centre[:, None]) ** 2) / (2 * spread**2))
        heads.append(s[:, k] + torch.stack(bells, 1))
    scores = torch.stack(heads, 1)
    some = mask.any(-1, keepdim=True)
    A = scores.masked_fill(~mask, -math.inf).masked_fill(~some, 0.0).softmax(-1) * some
    return A @ V, A


ROUNDED = (
    "a sigmoid of many weights places the bell: weights of size 1 that are rounded to three digits "
    "move it by more than a key; a test here begins with rounded ones"
)
CASE = Case(
    lambda: room.Localness(D, H),
    defined,
    but={"any_real_type": ROUNDED},
    mutants=[
        ("a window twice as wide", "spread=window / 2", "spread=window"),
        ("a place beyond the end", "p = last * ", "p = (last + 1) * "),
        ("a window without the last place", "D = (last + 1) * ", "D = last * "),
        ("a window that closes", ".sigmoid().mT + LEAST", ".sigmoid().mT"),
        (
            "a decoder that counts all keys",
            "positions(Lq, Lk, device)[0][:, 0]",
            "positions(Lq, Lk, device)[1][-Lq:] * 0 + Lk - 1",
        ),
        ("a tanh layer without tanh", "torch.tanh(_linear", "(_linear"),
        ("offsets to the other side", "i + self.offset", "i - self.offset"),
    ],
)
