"""The gated delta rule: what a key held gives way, the rest fades, and the state has one size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import laws
import pytest
import torch
import torch.nn.functional as F
from laws import Case, Function, H, Inputs, agree_with_gradients, qkv, streamed
from mixers import Mixes
from refusals import of_no_kind, refused
from streams import CAUSAL, it_writes_and_resumes_with_one_size
from three import three
from torch import Tensor

from tfviz import GPT, patterns
from tfviz.basics.cache_cost import cache_bytes_of
from tfviz.compressed.delta_rule import read_back
from tfviz.cores import Where, implied_map
from tfviz.current import gated_delta_rule as room
from tfviz.models.blocks import MultiHeadAttention


def gates(a: Tensor, b: Tensor) -> room.Gates:
    """Of two numbers for each head and token, (b, h, L, 1) both."""
    return room.Gates(F.logsigmoid(a[..., 0] + 1), b[..., 0].sigmoid())


def drawn(L: int, h_kv: int = H) -> Inputs:
    """Q, K, V, and what gates are made of."""
    X = qkv(L, h_kv)
    a, b = (torch.randn(*X[0].shape[:3], 1, dtype=torch.float64) for _ in "ab")
    return (*X, a, b)


def text(L: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    Q, K, V, *more = drawn(L)
    return Q, K, V, *gates(*more)


# --- numbers by hand, and in loops ----------------------------------------------------------------


def test_three_tokens_by_hand() -> None:
    """One direction: the state is a number. α = ½ and β = ½ make of 8, 4 and 16 first ½ · 8 = 4,
    then ½ · ½ · 4 + ½ · 4 = 3, then ¼ · 3 + ½ · 16 = 8.75."""
    one, V = torch.ones(1, 1, 3, 1).double(), torch.tensor([8.0, 4.0, 16.0]).double()
    half = torch.full((1, 1, 3), 0.5).double()
    wanted = torch.tensor([4.0, 3.0, 8.75]).double()
    X = (one, one, V.view(1, 1, 3, 1), half.log(), half)
    for out in (room.delta_definition(*X)[0], room.gated_delta(*X)[0]):
        torch.testing.assert_close(out[0, 0, :, 0], wanted)


@pytest.mark.parametrize("length", [1, 9, 64, 65, 150])
def test_the_recurrence_in_loops(length: int) -> None:
    Q, K, V, log_alpha, beta = text(length)
    q, k = (F.normalize(x[1, 2], dim=-1) for x in (Q, K))
    S, one, rows = torch.zeros(8, 8).double(), torch.eye(8).double(), list[Tensor]()
    for t in range(length):
        a, b = log_alpha[1, 2, t].exp(), beta[1, 2, t]
        S = a * (one - b * torch.outer(k[t], k[t])) @ S + b * torch.outer(k[t], V[1, 2, t])
        rows.append(q[t] @ S)
    out, state = room.gated_delta(Q, K, V, log_alpha, beta)
    torch.testing.assert_close(out[1, 2], torch.stack(rows))
    torch.testing.assert_close(state[1, 2], S)


@pytest.mark.parametrize("length", [5, 64, 70])
def test_gradients_of_the_definition(length: int) -> None:
    leaves = tuple(x[:, :2].detach().requires_grad_() for x in text(length))
    out = room.gated_delta(*leaves)[0]
    agree_with_gradients(out, room.delta_definition(*leaves)[0], leaves)


# --- what the gates do ----------------------------------------------------------------------------


def test_at_beta_one_the_state_gives_a_value_back_for_its_key() -> None:
    _, K, V, log_alpha, beta = text(100)
    out = room.gated_delta(K, K, V, log_alpha, torch.ones_like(beta))[0]
    torch.testing.assert_close(out, V)


def test_of_keys_that_are_at_right_angles_nothing_is_overwritten() -> None:
    """It is linear attention without a denominator."""
    Q, _, V, _, _ = text(8)
    K = torch.eye(8).double().expand(2, H, -1, -1)
    open_ = torch.zeros(2, H, 8).double(), torch.ones(2, H, 8).double()
    wanted = (F.normalize(Q, dim=-1) @ K.mT).tril() @ V
    torch.testing.assert_close(room.gated_delta(Q, K, V, *open_)[0], wanted)


def test_the_ends_of_the_gates() -> None:
    """α = 0 leaves nothing of what came before, β = 0 writes nothing."""
    Q, K, V, log_alpha, beta = text(80)
    q, k = (F.normalize(x, dim=-1) for x in (Q, K))
    shut = room.gated_delta(Q, K, V, torch.full_like(log_alpha, -800.0), beta)[0]
    torch.testing.assert_close(shut, (beta * (q * k).sum(-1))[..., None] * V)
    assert not room.gated_delta(Q, K, V, log_alpha, torch.zeros_like(beta))[0].any()


def test_one_gate_for_all_tokens_reads_back_what_the_chapter_shows() -> None:
    keys = F.normalize(torch.randn(70, 5).double(), dim=-1)
    X, V = keys[None, None], torch.eye(70).double()[None, None]
    constant = torch.full((1, 1, 70), 0.8).double()
    out = room.gated_delta(X, X, V, constant.log(), torch.ones_like(constant))[0]
    torch.testing.assert_close(out[0, 0], read_back(keys, 0.8, 1))


@pytest.mark.parametrize("power", [-60.0, -1e-7])
def test_gates_at_their_ends_stay_finite(power: float) -> None:
    """In float32 and over three chunks, forward and backward."""
    leaves = [x.float().detach() for x in text(150)]
    leaves[3] = torch.full_like(leaves[3], power)
    out = room.gated_delta(*(x.requires_grad_() for x in leaves))[0]
    out.sum().backward()
    assert out.isfinite().all()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in leaves)


@pytest.mark.parametrize("length", [7, 130])
def test_it_is_that_of_transformers(length: int) -> None:
    """Which divides queries by √d and has heads in the third place."""
    qwen = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")
    Q, K, V, log_alpha, beta = X = [x.float() for x in text(length)]
    out, state = room.gated_delta(*X)
    theirs = [x.transpose(1, 2) for x in (F.normalize(Q, dim=-1), F.normalize(K, dim=-1), V)]
    told = [x.transpose(1, 2) for x in (log_alpha, beta)]
    # a hub of kernels stands before both; what it falls back to is torch alone
    for theirs_of in (qwen.torch_recurrent_gated_delta_rule, qwen.torch_chunk_gated_delta_rule):
        call = getattr(theirs_of, "__wrapped__", theirs_of)
        answer, kept = call(*theirs, *told, output_final_state=True)
        torch.testing.assert_close(answer.transpose(1, 2) * 8**0.5, out, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(kept, state, atol=1e-5, rtol=1e-4)


# --- in a model -----------------------------------------------------------------------------------


def layer() -> MultiHeadAttention:
    torch.manual_seed(0)
    options: Any = room.gated_delta_net()
    return MultiHeadAttention(16, 2, pattern=patterns.causal(), **options).double()


def test_what_it_keeps_has_one_size_and_goes_on() -> None:
    X = torch.randn(2, 200, 16, dtype=torch.float64)
    whole = layer()(X)
    for sizes in (1, [1, 130, 64, 5]):
        torch.testing.assert_close(streamed(layer(), X, sizes), whole)

    def gpt() -> GPT:
        torch.manual_seed(0)
        return GPT(11, 16, 2, 2, **room.gated_delta_net())

    it_writes_and_resumes_with_one_size(gpt, 2 * 2 * 8 * 8)  # layers, heads, S
    assert cache_bytes_of(gpt(), L=5) == cache_bytes_of(gpt(), L=500) == 2 * 2 * 8 * 8 * 4


def test_the_gates_read_the_token() -> None:
    attend, X = layer(), torch.randn(2, 9, 16, dtype=torch.float64)
    made: Any = attend.project
    Q, K, V, told = made(X)
    torch.testing.assert_close(told.beta, (X @ made.W_beta.weight.mT).sigmoid().mT)
    rate = F.softplus(X @ made.W_a.weight.mT + made.b_a)
    torch.testing.assert_close(told.log_alpha, (-made.A.exp() * rate).mT)
    heads = room.delta_definition(Q, K, V, *told)[0]
    torch.testing.assert_close(attend.attended(X, None, CAUSAL)[0], heads)
    join: Any = attend.join
    root = (heads.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    gate = F.silu(join.W_z(X)).unflatten(-1, (2, 8)).transpose(1, 2)
    torch.testing.assert_close(
        attend(X), join.W_o((heads / root * gate).transpose(1, 2).flatten(2))
    )


def test_some_heads_begin_with_a_long_memory() -> None:
    made = room.DeltaGates(512, 512, 1, 512)
    steps = F.softplus(made.b_a)
    assert 0.001 <= steps.min() < 0.002 and 0.05 < steps.max() <= 0.1
    alpha = (-made.A.exp() * steps).exp()
    assert alpha.min() < 0.4 and alpha.max() > 0.999


def test_every_weight_learns() -> None:
    model = GPT(11, 16, 2, 2, **room.gated_delta_net())
    logits = model(torch.tensor([[3, 1, 4, 1, 5, 9]]))
    logits.log_softmax(-1)[..., 2].sum().backward()
    parts = (room.DeltaGates, room.NormedHeads)
    learnt = [p for x in model.modules() if isinstance(x, parts) for p in x.parameters()]
    assert len(learnt) == 2 * 11
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in learnt)


def test_padding_neither_writes_nor_fades() -> None:
    """In the middle of a text, too: the tokens after it answer as if it were not there."""
    X, core = text(12), room.GatedDelta()
    there = torch.ones(2, 12, dtype=torch.bool)
    there[:, 4:7] = False
    where = Where(patterns.causal(), attention_mask=there, more=X[3:])
    got = core(*X[:3], where)[0]
    Q, K, V, *more = (torch.cat([x[:, :, :4], x[:, :, 7:]], 2) for x in X)
    alone = core(Q, K, V, Where(patterns.causal(), more=more))[0]
    torch.testing.assert_close(got[:, :, 7:], alone[:, :, 4:])


# --- costs and refusals ---------------------------------------------------------------------------


def test_work_and_memory_grow_with_the_length() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        told = torch.full((1, 1, L), -0.1), torch.full((1, 1, L), 0.5)
        return lambda Q, K, V: room.gated_delta(Q, K, V, *told)[0]

    laws.work_grows_no_faster(attend, 1.05)


def test_bad_input_is_named() -> None:
    Q, K, V, log_alpha, beta = text(9)
    call = partial(room.gated_delta, Q, K, V)
    refused("log_alpha has shape (2, 4, 8) … (2, 4, 9)", call, log_alpha[..., 1:], beta)
    refused("log_alpha holds 0.1; choose log_alpha <= 0", call, 0 * log_alpha + 0.1, beta)
    refused("log_alpha holds NaN", call, log_alpha / 0 * 0, beta)
    refused("beta holds 2.1; choose 0 <= beta <= 2", call, log_alpha, 0 * beta + 2.1)
    refused("beta holds -0.1; choose 0 <= beta <= 2", call, log_alpha, 0 * beta - 0.1)
    of_no_kind("beta has dtype torch.int64", call, log_alpha, beta.long())
    for edge in (0.0, 2.0):
        call(0 * log_alpha, 0 * beta + edge)
    core = room.GatedDelta()
    refused("where.more is None … project=DeltaGates", core, Q, K, V, CAUSAL)
    refused("leave cross-attention as it is", room.DeltaGates(8, 2, 4, 2), *2 * [Q[0, :, :, :]])
    told = replace(CAUSAL, more=(log_alpha, beta))
    three_masks = replace(told, attention_mask=torch.ones(3, 9).bool())
    refused("attention_mask has 3 rows, Q 2", core, Q, K, V, three_masks)
    kept = list[Tensor]()
    core(Q, K, V, replace(told, keep=kept.append))
    other = replace(told, start=9, state=kept[0][:1])
    refused("the cache is of 1 texts, now there are 2", core, Q, K, V, other)


def test_weights_may_be_negative_and_see_nothing_ahead() -> None:
    X = text(30)
    A = implied_map(room.GatedDelta(), *three(X[:3]), Where(patterns.causal(), more=X[3:]))
    assert not A.triu(1).any() and (A < 0).any()


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: Any, Q: Tensor, K: Tensor, V: Tensor, a: Tensor, b: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return room.delta_definition(Q, K, V, *gates(a, b))


def of_gates(call: Callable[..., Any]) -> Callable[..., Any]:
    """With gates that are made of the first two numbers of the keys."""

    def run(Q: Tensor, K: Tensor, V: Tensor) -> Any:
        told = gates(K[..., :1].float(), K[..., 1:2].float()) if K.ndim == 4 else (K, K)
        return call(Q, K, V, *(x.to(K) for x in told))

    return run


CASE = Case(
    room.GatedDelta,
    defined,
    answers="causal",
    inputs=drawn,
    more=gates,
    options=room.gated_delta_net(),
    mixers={
        "with its gates": Mixes(
            lambda: MultiHeadAttention(8, 2, pattern=patterns.causal(), **room.gated_delta_net())
        )
    },
    forgets=True,
    shares_sum_to_one=False,
    grows=1.0,
    functions={
        "gated delta rule": Function(of_gates(room.gated_delta), of_gates(room.delta_definition))
    },
    mutants=[
        (
            "a state that overwrites nothing",
            "solved = torch.linalg.solve_triangular(system, told,",
            "solved = torch.linalg.solve_triangular(0 * system, told,",
        ),
        ("chunks that do not fade", "S = rest * S", "S = S"),
        ("a chunk that overwrites nothing of those before", "values - read @ S", "values"),
        ("a query that reads an unfaded state", "C.exp()[..., None] * q\n", "q\n"),
        ("padding that fades", "x.masked_fill(~keys[:, 0, :, where.start :], 0.0)", "x.clone()"),
        (
            "an A that overwrites nothing",
            "            system, beta.d",
            "            0 * system, beta.d",
        ),
        (
            "keys of any length",
            "q, k = (F.normalize(x.to(kind), dim=-1) for x in (Q, K))\n        out",
            "q, k = (x.to(kind) for x in (Q, K))\n        out",
        ),
        ("a rate that may be negative", "-self.A.exp() *", "-self.A *"),
        ("a gate that squeezes all heads alike", "F.silu(self.W_z(X))", "self.W_z(X).sigmoid()"),
    ],
)
