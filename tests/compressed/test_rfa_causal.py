"""Gated random feature attention: what is left of each token, and a state of one size."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import laws
import pytest
import torch
import torch.nn.functional as F
from laws import (
    Case,
    D,
    Function,
    H,
    agree_with_gradients,
    qkv,
    streamed,
    work_grows_no_faster,
)
from mixers import Mixes
from random_directions import drawn
from refusals import ranges, refused
from streams import (
    CAUSAL,
    it_writes_and_resumes_with_one_size,
    parts_of_a_long_text_go_on,
    small_gpt,
)
from three import three
from torch import Tensor

from tfviz import GPT, implied_map, patterns
from tfviz.compressed import rfa, rfa_causal
from tfviz.cores import Where
from tfviz.models.blocks import MultiHeadAttention


def gates(X: Tensor) -> Tensor:
    """Logarithms of some for each key, from its first number."""
    return F.logsigmoid(2 * X[..., 0] + 1)


def core(**options: Any) -> rfa_causal.GatedRFA:
    torch.manual_seed(0)
    made = rfa_causal.GatedRFA(H, D, 16, **options).double()
    made.w_g.data.normal_()
    return made


# --- numbers by hand ------------------------------------------------------------------------------


def test_three_tokens_by_hand() -> None:
    """One direction of length 0: all kernels are 1, and only the gates ½, ½, ¾ are left. The values
    8, 4 and 16 make 8, then (2 + 2)/¾, and (1½ + 1½ + 4)/(13/16)."""
    Q, V = torch.ones(1, 1, 3, 1).double(), torch.tensor([8.0, 4.0, 16.0]).double().view(1, 1, 3, 1)
    log_g, W = torch.tensor([0.5, 0.5, 0.75]).double().log()[None, None], torch.zeros(1, 1).double()
    wanted = torch.tensor([8.0, 4 / 0.75, 7 / (13 / 16)]).double()
    for out in (
        rfa_causal.gated_definition(Q, Q, V, W, log_g)[0],
        rfa_causal.gated_attention(Q, Q, V, W, log_g)[0],
    ):
        torch.testing.assert_close(out[0, 0, :, 0], wanted)


@pytest.mark.parametrize("length", [1, 9, 64, 65, 150])
def test_the_recurrence_in_loops(length: int) -> None:
    Q, K, V = (x[:, :1] for x in qkv(length))
    W, log_g = drawn(24, D), gates(K)
    rows = []
    S, z = torch.zeros(48, D).double(), torch.zeros(48).double()
    mass = torch.zeros(()).double()
    phi = [rfa.fourier_features(F.normalize(x[1, 0], dim=-1), W) for x in (Q, K)]
    for q, k, v, g in zip(*phi, V[1, 0], log_g[1, 0].exp(), strict=True):
        S, z = g * S + (1 - g) * torch.outer(k, v), g * z + (1 - g) * k
        mass = g * mass + (1 - g)
        rows.append(q @ S / torch.maximum(q @ z, 0.1 * mass))
    got, (state, passed) = rfa_causal.gated_attention(Q, K, V, W, log_g)
    torch.testing.assert_close(got[1, 0], torch.stack(rows))
    torch.testing.assert_close(state[1, 0], torch.cat([S, z[:, None]], 1))
    torch.testing.assert_close(1 - passed[1, 0].exp(), mass[None])


# --- what the gate does ---------------------------------------------------------------------------


def test_a_constant_gate_fades_with_the_distance() -> None:
    """The weights are those without a gate times g^(i − j), each row divided by its sum."""
    Q, K, V = qkv(30)
    W, g = drawn(4096, D), 0.8
    log_g = torch.full((2, H, 30), math.log(g)).double()
    A = rfa_causal.gated_definition(Q, K, V, W, log_g)[1]
    plain = rfa.rfa_definition(Q, K, V, W, patterns.causal().mask(30))[1]
    i, j = torch.arange(30)[:, None], torch.arange(30)
    faded = plain * g ** (i - j).clamp(min=0)
    torch.testing.assert_close(A, faded / faded.sum(-1, keepdim=True))


def test_half_of_a_token_is_left_after_its_half_life() -> None:
    for half in (1, 7, 69):
        g = 0.5 ** (1 / half)
        assert math.isclose(math.log(0.5) / math.log(g), half)
        left = rfa_causal.fading(torch.full((200,), math.log(g), dtype=torch.float64))
        torch.testing.assert_close(left[half, 0] / left[0, 0], torch.tensor(0.5).double())


def test_the_ends_of_the_gate() -> None:
    """At 0 only the token itself is read. Near 1 all are alike, as without a gate."""
    Q, K, V = qkv(20)
    W = drawn(512, D)
    shut = rfa_causal.gated_attention(Q, K, V, W, torch.full((2, H, 20), -200.0).double())[0]
    torch.testing.assert_close(shut, V)
    log_g = torch.full((2, H, 20), -1e-9).double()
    open_ = rfa_causal.gated_attention(Q, K, V, W, log_g)[0]
    torch.testing.assert_close(open_, rfa.rfa_attention(Q, K, V, W, True), atol=1e-6, rtol=1e-6)


def test_one_token_may_shut_out_all_that_came_before() -> None:
    Q, K, V = qkv(20)
    log_g = torch.full((2, H, 20), math.log(0.9)).double()
    log_g[..., 12] = -200.0
    before, after = (
        rfa_causal.gated_attention(Q, K, x, drawn(512, D), log_g)[0]
        for x in (V, torch.cat([0 * V[:, :, :12], V[:, :, 12:]], 2))
    )
    torch.testing.assert_close(before[:, :, 12:], after[:, :, 12:])
    assert (before[:, :, :12] != after[:, :, :12]).all()


@pytest.mark.parametrize("power", [-40.0, -1e-7])
def test_gates_at_their_ends_stay_finite(power: float) -> None:
    """In float32 and over three chunks, forward and backward."""
    Q, K, V = leaves = [x.float().requires_grad_() for x in qkv(150)]
    log_g = torch.full((2, H, 150), power).requires_grad_()
    out = rfa_causal.gated_attention(Q, K, V, drawn(64, D).float(), log_g)[0]
    out.sum().backward()
    assert out.isfinite().all()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in (*leaves, log_g))


# --- in a model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [5, 64, 150])
def test_gradients_of_the_masked_definition(length: int) -> None:
    Q, K, V = (x[:, :2].requires_grad_() for x in qkv(length))
    log_g = gates(torch.randn(2, 2, length, 1, dtype=torch.float64)).requires_grad_()
    leaves, W = (Q, K, V, log_g), drawn(32, D)
    wanted = rfa_causal.gated_definition(Q, K, V, W, log_g)[0]
    agree_with_gradients(rfa_causal.gated_attention(Q, K, V, W, log_g)[0], wanted, leaves)


def gpt() -> GPT:
    model = small_gpt(partial(rfa_causal.GatedRFA, D=12))
    for x in model.modules():
        if isinstance(x, rfa_causal.GatedRFA):
            x.w_g.data.normal_()
    return model


def test_what_it_keeps_has_one_size_and_goes_on() -> None:
    parts_of_a_long_text_go_on(rfa_causal.GatedRFA, lambda core: core.w_g.data.normal_())
    # layers, heads, S and z, the sum of log g
    it_writes_and_resumes_with_one_size(gpt, 2 * 2 * (24 * 9 + 1))


def test_the_gate_learns() -> None:
    model = GPT(11, 16, 2, 2, core=rfa_causal.GatedRFA)
    model(torch.arange(6)[None]).sum().backward()
    cores = [x for x in model.modules() if isinstance(x, rfa_causal.GatedRFA)]
    grads = [p.grad for x in cores for p in (x.w_g, x.b_g)]
    assert all(g is not None and g.abs().sum() > 0 for g in grads)


def test_padding_neither_writes_nor_fades() -> None:
    """In the middle of a text, too: the tokens after it answer as if it were not there."""
    Q, K, V = qkv(12)
    there = torch.ones(2, 12, dtype=torch.bool)
    there[:, 4:7] = False
    got = core()(Q, K, V, Where(patterns.causal(), attention_mask=there))[0]
    X = three(torch.cat([x[:, :, :4], x[:, :, 7:]], 2) for x in (Q, K, V))
    torch.testing.assert_close(got[:, :, 7:], core()(*X, CAUSAL)[0][:, :, 4:])


def test_all_of_the_family_without_a_gate_is_the_causal_rfa() -> None:
    """`RFA` streams without one: the first recurrence of the paper is the limit of the second."""
    X = qkv(40)
    open_ = core()
    open_.w_g.data.zero_()
    open_.b_g.data.fill_(20.0)
    plain = rfa.RFA(H, D, 16).double()
    plain.W.copy_(open_.W)
    torch.testing.assert_close(open_(*X, CAUSAL)[0], plain(*X, CAUSAL)[0], atol=1e-5, rtol=1e-5)


def test_the_papers_gate_reads_the_token() -> None:
    """Beside the same queries, keys and values; it streams, and is kept where pairs are made."""
    torch.manual_seed(0)
    options: Any = {"core": rfa_causal.GatedRFA, "project": rfa_causal.TokenGates}
    for pattern in (patterns.causal(), patterns.sliding_window(lookback=3)):
        layer = MultiHeadAttention(H * D, H, pattern=pattern, **options).double()
        project: Any = layer.project
        project.W_g.weight.data.normal_()
        X = torch.randn(2, 9, H * D, dtype=torch.float64)
        Q, K, V, a = project(X)
        torch.testing.assert_close(a, (X @ project.W_g.weight.mT + project.W_g.bias).mT)
        made: Any = layer.core
        W, mask = made.sigma * made.W, pattern.mask(9)
        wanted = rfa_causal.gated_definition(Q, K, V, W, a.sigmoid().log(), mask)[0]
        torch.testing.assert_close(layer.attended(X, None, Where(pattern))[0], wanted)
        torch.testing.assert_close(streamed(layer, X, [4, 1, 3, 1]), layer(X))
    begun = rfa_causal.TokenGates(8, 2, 4, 2, start=0.75).W_g.bias.sigmoid()
    torch.testing.assert_close(begun, torch.full((2,), 0.75))
    alone = three(x.detach() for x in qkv())
    refused(
        "where.more has shape (2, 3)",
        core(),
        *alone,
        Where(patterns.causal(), more=torch.ones(2, 3, dtype=torch.float64)),
    )
    refused(
        "leave cross-attention as it is",
        rfa_causal.TokenGates(8, 2, 4, 2),
        *2 * [torch.ones(1, 2, 8)],
    )


# --- costs and refusals ---------------------------------------------------------------------------


def test_work_and_memory_grow_with_the_length() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        made = rfa_causal.GatedRFA(1, 16, 16)
        return lambda *X: made(*X, CAUSAL)[0]

    work_grows_no_faster(attend, 1.05)


def test_bad_input_is_named() -> None:
    X = three(x.detach() for x in qkv())
    for where in (Where(), Where(patterns.band(radius=1)), Where(patterns.causal(), crosses=True)):
        refused("needs an order of time; give a causal pattern", core(), *X, where)
    refused("start = 1.0: a sigmoid never gets there", rfa_causal.GatedRFA, 2, 4, start=1.0)
    ranges(lambda tau: rfa_causal.GatedRFA(2, 4, tau=tau), tau=(1.0, 0.05, 20.0))
    refused("there are 4 heads of 8", rfa_causal.GatedRFA(4, 3).double(), *X, CAUSAL)


def test_the_map_is_causal_and_fades() -> None:
    A = implied_map(core(), *qkv(), CAUSAL)
    assert (A.triu(1) == 0).all() and (A != 0).any()


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(made: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    log_g = made.log_gates(K)
    return rfa_causal.gated_definition(Q, K, V, made.sigma * made.W, log_g, mask)


def of_the_token() -> Case:
    """Gates that the projection made, a with g = σ(a)."""

    def defined(
        made: Any, Q: Tensor, K: Tensor, V: Tensor, a: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        W = made.sigma * made.W
        return rfa_causal.gated_definition(Q, K, V, W, F.logsigmoid(a[..., 0]), mask)

    def drawn(L: int, h_kv: int) -> tuple[Tensor, ...]:
        X = qkv(L, h_kv)
        return (*X, torch.randn(*X[0].shape[:3], 1, dtype=torch.float64))

    return Case(
        lambda: rfa_causal.GatedRFA(H, D, 6),
        defined,
        answers="causal",
        patterns=laws.CAUSAL,
        inputs=drawn,
        more=lambda a: a[..., 0],
        options={"project": rfa_causal.TokenGates},
        forgets=True,
        shares_sum_to_one=False,
        but={"a_model_takes_it": "gates of its own learn nothing where the token's are given"},
    )


def of_gates(call: Callable[..., Any]) -> Callable[..., Any]:
    def run(Q: Tensor, K: Tensor, V: Tensor) -> Any:
        return call(Q, K, V, drawn(32, max(1, Q.shape[-1])), gates(K.float()).to(K))

    return run


CASE = Case(
    lambda: rfa_causal.GatedRFA(H, D, 6),
    defined,
    answers="causal",
    patterns=laws.CAUSAL,
    forgets=True,
    shares_sum_to_one=False,
    variants={"gates of the token": of_the_token()},
    mixers={
        "gates of the token": Mixes(
            lambda: MultiHeadAttention(
                8,
                2,
                core=partial(rfa_causal.GatedRFA, D=6),
                project=rfa_causal.TokenGates,
                pattern=patterns.causal(),
            )
        )
    },
    functions={
        "gated rfa": Function(
            of_gates(rfa_causal.gated_attention), of_gates(rfa_causal.gated_definition)
        )
    },
    mutants=[
        ("a token that writes with its whole weight", "k * -log_g.expm1()[..., None]", "k"),
        ("chunks that do not fade", "kept * states[-1] + new", "states[-1] + new"),
        ("padding that fades", "log_g.masked_fill(~keys[:, :, 0], 0.0)", "log_g"),
        ("a least that does not fade", "least * left", "least * torch.ones_like(left)"),
        (
            "a state that forgets how much has passed",
            "before + log_g.cumsum(-1)",
            "log_g.cumsum(-1)",
        ),
        ("a query that reads an unfaded state", "(q * C.exp()[..., None])", "q"),
    ],
)
