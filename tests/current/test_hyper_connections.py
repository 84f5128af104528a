"""Several residual streams, against transformers' DeepSeek-V4 and against one stream."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, streamed
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn
from transformers import DeepseekV4Config
from transformers.models.deepseek_v4 import modeling_deepseek_v4 as theirs

from tfviz import GPT
from tfviz.current import hyper_connections as room
from tfviz.models.blocks import Block, pre_norm
from tfviz.training import next_token, train

D, M = 6, 4
close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)


def streams(*size: int) -> Tensor:
    return torch.randn(*size, M, D, generator=torch.Generator().manual_seed(1))


def drawn(module: nn.Module) -> Any:
    """With weights of its own at every place."""
    rng = torch.Generator().manual_seed(2)
    for p in module.parameters():
        p.data = torch.randn(p.shape, generator=rng)
    return module


def config() -> Any:
    return DeepseekV4Config(hidden_size=D, hc_mult=M, hc_sinkhorn_iters=20)


def test_the_weights_are_those_of_deepseek_v4() -> None:
    ours, other = drawn(room.HyperConnections(D, M)), theirs.DeepseekV4HyperConnection(config())
    other.fn.data, other.base.data, other.scale.data = ours.W.data, ours.b.data, ours.s.data
    X, sublayer, LN = streams(2, 5), nn.Linear(D, D), nn.LayerNorm(D)
    o, mixed, x = other(X)
    wanted = o[..., None] * sublayer(LN(x))[..., None, :] + mixed.mT @ X
    close(ours.weights(X)[1:], (o, mixed), atol=1e-4)  # they add 1e-6 in every round
    close(ours(X, sublayer, LN), wanted, atol=1e-3)


def test_the_last_row_is_that_of_deepseek_v4() -> None:
    ours, other = drawn(room.ReadStreams(D, M)), theirs.DeepseekV4HyperHead(config())
    other.hc_fn.data, other.hc_base.data, other.hc_scale.data = (
        ours.W.data,
        ours.b.data,
        ours.s.data,
    )
    close(ours(streams(2, 5)), other(streams(2, 5)))


def test_mixing_keeps_the_mean_of_the_streams_and_does_not_grow() -> None:
    order, X = drawn(room.HyperConnections(D, M)), streams(2, 5)
    silent = lambda x: torch.zeros_like(x)  # noqa: E731
    for _ in range(20):
        mixed = order(X, silent, silent)
        close(mixed.mean(-2), X.mean(-2), atol=1e-2, rtol=1e-2)
        assert mixed.norm() <= X.norm() * 1.001
        X = mixed


def test_free_mixing_is_added_to_the_streams_themselves() -> None:
    order, X = drawn(room.HyperConnections(D, M, rounds=None)), streams(2, 5)
    heard = (room._unit(X) @ order.W.T)[..., 2 * M :] * order.s[2] + order.b[2 * M :]
    close(order.weights(X)[2], torch.eye(M) + heard.unflatten(-1, (M, M)))


def test_one_stream_is_a_pre_norm_block() -> None:
    torch.manual_seed(0)
    X, F, LN = torch.randn(2, 5, 1, D), nn.Linear(D, D), nn.LayerNorm(D)
    order = room.HyperConnections(D, 1)
    order.s.data.zero_()
    torch.testing.assert_close(order(X, F, LN), pre_norm(X, F, LN), atol=1e-3, rtol=1e-3)


def test_a_model_begins_as_one_stream_and_learns() -> None:
    torch.manual_seed(0)
    made = GPT(11, 16, 2, 2, streams=4, order=room.HyperConnections)
    t = torch.randint(11, (2, 12))
    torch.testing.assert_close(streamed(made, t, [4, 1, 7]), made(t))
    losses = train(made, next_token(torch.arange(600) % 11, 4, 8), 120, progress=False)
    assert losses[-1] < 0.2 < losses[0]
    assert len({id(m) for m in made.modules() if isinstance(m, room.HyperConnections)}) == 4


def test_bad_input_is_named() -> None:
    of_no_kind("pre_norm carries one; give an order of several", Block, 8, 2, streams=2)
    of_no_kind("pre_norm carries one", GPT, 11, 8, 2, 1, streams=2)
    refused("streams = 0", GPT, 11, 8, 2, 1, streams=0)
    order = room.HyperConnections(D, M)
    refused(
        "X has shape (2, 5, 6); give (b, L, m, d)",
        order,
        torch.ones(2, 5, D),
        nn.Identity(),
        nn.Identity(),
    )
    ranges(room.HyperConnections, d=(4, 1), m=(2, 1), rounds=(3, 1))


@pytest.mark.parametrize("rounds", [1, 20])
def test_rows_of_the_mixing_sum_to_one(rounds: int) -> None:
    mixing = drawn(room.HyperConnections(D, M, rounds)).weights(streams(3, 7))[2]
    close(mixing.sum(-2), torch.ones(3, 7, M))
    assert (mixing.sum(-1) - 1).abs().max() < (0.05 if rounds > 1 else 3)


# --- what it brings to the mutants ----------------------------------------------------------------

CASE = Case(
    mutants=[
        ("streams that are mixed the other way", "return M.mT @ X", "return M @ X"),
        ("a sublayer that is heard by half", "2 * o.sigmoid()", "o.sigmoid()"),
        ("rows before columns in the end", "2 * self.rounds)", "2 * self.rounds + 1)"),
        (
            "streams of any size",
            "_unit(X) @ self.W.T) + self.b).split",
            "X.flatten(-2) @ self.W.T) + self.b).split",
        ),
    ],
)
