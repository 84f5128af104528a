"""Average attention: the mean of what came before, the vector that is kept of it, and the gate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import (
    Case,
    L,
    agree_with_gradients,
    it_resumes_to_the_last_bit,
    qkv,
    streamed,
    work_grows_no_faster,
)
from mixers import Mixes
from refusals import of_no_kind, ranges, refused
from streams import CAUSAL, it_refuses_other_texts
from torch import Tensor, nn

from tfviz import GPT, attention, implied_map, patterns
from tfviz.cores import Where
from tfviz.formula import Formula
from tfviz.models.blocks import post_norm
from tfviz.models.use import attention_weights
from tfviz.position.rope import Rope
from tfviz.priors import average_attention as aan
from tfviz.training import next_token, train


def test_three_rows_by_hand() -> None:
    """6, 0, 3 have the means 6, 3, 3. With gates of ½, which a W of zeros makes, 6, 1½, 3."""
    Y = torch.tensor([[[6.0], [0.0], [3.0]]])
    assert aan.running_mean(Y).flatten().tolist() == [6, 3, 3]
    layer = aan.AverageAttention(1, pattern=patterns.causal())
    for x in layer.parameters():
        nn.init.zeros_(x)
    assert layer(Y).flatten().tolist() == [6, 1.5, 3]
    assert aan.AverageAttention(1, gate=False, pattern=patterns.causal())(Y).flatten().tolist() == [
        6,
        3,
        3,
    ]


def test_it_is_causal_attention_with_scores_of_zero() -> None:
    leaves = qkv()
    V = leaves[2].requires_grad_()
    zeros = torch.zeros_like(leaves[0])
    wanted, A = attention(zeros, zeros, V, patterns.causal())
    agree_with_gradients(aan.running_mean(V), wanted, [V])
    i, j = torch.arange(L)[:, None], torch.arange(L)
    torch.testing.assert_close(A[0, 0], (aan.share(i, j) * (j <= i)).double())


def test_a_formula_of_the_indices_has_all_faces() -> None:
    share = Formula(aan.share)
    assert share.javascript() == "(i, j) => 1/(i + 1)"
    assert share.latex() == r"\frac{1}{i + 1}"
    assert share.score_mod()(0.0, 0, 0, torch.tensor(3), torch.tensor(1)) == 0.25


@pytest.mark.parametrize("sizes", [1, [1, 130, 64, 5]])
@pytest.mark.parametrize("d_ff", [None, 12])
def test_parts_of_a_text_go_on_where_the_last_one_ended(sizes: Any, d_ff: int | None) -> None:
    torch.manual_seed(0)
    layer = aan.AverageAttention(16, d_ff=d_ff, pattern=patterns.causal()).double()
    X = torch.randn(2, 200, 16, dtype=torch.float64)
    torch.testing.assert_close(streamed(layer, X, sizes), layer(X))


def test_what_is_kept_is_one_vector_and_the_running_mean() -> None:
    """Of 3 and of 100 tokens alike: ȳ_i = (i ȳ_{i−1} + y_i)/(i + 1)."""
    torch.manual_seed(0)
    layer = aan.AverageAttention(16, pattern=patterns.causal())
    X, cache = torch.randn(1, 100, 16), dict[Any, Any]()
    for i, row in enumerate(X.split(1, 1)):
        layer(row, cache=cache)
        kept = cache[layer].state
        assert kept.numel() == 16
        torch.testing.assert_close(kept.flatten(), X[0, : i + 1].mean(0))


def test_padding_on_the_left_does_not_count_in_a_stream() -> None:
    """What is kept is a mean of the rows that are there, so the number of those goes on, too."""
    core, V = aan.Averages(), qkv(6)[2]
    mask = torch.tensor([[False, False, True, True, True, True]]).expand(2, -1)
    kept = list[Any]()
    where = Where(patterns.causal(), attention_mask=mask[:, :4], keep=kept.append)
    core(*3 * [V[:, :, :4]], where)
    after = Where(patterns.causal(), 4, attention_mask=mask, state=kept[0])
    out = core(*3 * [V[:, :, 4:]], after)[0]
    torch.testing.assert_close(out, aan.running_mean(V[:, :, 2:])[:, :, 2:])


def gpt() -> GPT:
    torch.manual_seed(0)
    return GPT(11, 16, 2, 2, mix=aan.AverageAttention)


def test_it_resumes_to_the_last_bit() -> None:
    t = torch.randint(11, (2, 40), generator=torch.Generator().manual_seed(1))
    it_resumes_to_the_last_bit(gpt, t, 5)


def test_a_model_learns_with_it_and_shows_its_weights() -> None:
    torch.manual_seed(0)
    model = GPT(11, 32, 2, 2, mix=aan.AverageAttention)
    losses = train(model, next_token(torch.arange(600) % 11, 4, 8), 120, progress=False)
    assert losses[-1] < 0.1 < losses[0]
    for A in attention_weights(model, torch.zeros(1, 6).long()).values():
        torch.testing.assert_close(A[0, 0, 3], torch.tensor([0.25] * 4 + [0.0] * 2))


def test_there_are_no_projections() -> None:
    assert {*aan.AverageAttention(16).state_dict()} == {"gates.weight", "gates.bias"}


def test_only_the_gate_tells_a_row_from_its_mean() -> None:
    """Of rows in another order the mean is the same; the answer of the layer is not."""
    torch.manual_seed(0)
    X = torch.randn(1, 9, 16)
    other = torch.cat([X[:, :8].flip(1), X[:, 8:]], 1)  # the last row stays
    plain, gated = (
        aan.AverageAttention(16, gate=gate, pattern=patterns.causal()) for gate in (False, True)
    )
    torch.testing.assert_close(plain(X)[:, 8], plain(other)[:, 8])
    torch.testing.assert_close(gated(X)[:, 8], gated(other)[:, 8])
    swapped = torch.cat([X[:, 8:], X[:, 1:8], X[:, :1]], 1)
    torch.testing.assert_close(plain(X)[:, 8], plain(swapped)[:, 8])
    assert (gated(X)[:, 8] - gated(swapped)[:, 8]).abs().max() > 0.01


# --- the code of others ---------------------------------------------------------------------------


class OpenNmtFeedForward(nn.Module):
    """`PositionwiseFeedForward` of OpenNMT-py without dropout: it has a norm and a skip inside."""

    def __init__(self, d: int, d_ff: int) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(d, d_ff), nn.Linear(d_ff, d)
        self.layer_norm = nn.LayerNorm(d, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(F.relu(self.w_1(self.layer_norm(x)))) + x


class OpenNmtAverage(nn.Module):
    """`AverageAttention` of OpenNMT-py, which returns what skip and norm are put around."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.average_layer, self.gating_layer = OpenNmtFeedForward(d, d), nn.Linear(2 * d, 2 * d)

    def forward(self, inputs: Tensor, prev_g: Tensor | None = None, step: int = 0) -> Any:
        if prev_g is None:
            n = inputs.shape[1]
            weights = torch.tril(torch.ones(n, n)) / torch.arange(1, n + 1)[:, None]
            average = weights.to(inputs) @ inputs
        else:
            average = (inputs + step * prev_g) / (step + 1)
        layer = self.average_layer(average)
        gates = self.gating_layer(torch.cat((inputs, layer), -1))
        input_gate, forget_gate = gates.chunk(2, dim=2)
        return torch.sigmoid(input_gate) * inputs + torch.sigmoid(forget_gate) * layer, average


def test_parity_with_opennmt() -> None:
    """With their feed-forward layer in the place of ours, all at once and step by step."""
    torch.manual_seed(0)
    theirs = OpenNmtAverage(16).double()
    ours: Any = aan.AverageAttention(16, pattern=patterns.causal()).double()
    ours.feed, ours.gates = theirs.average_layer, theirs.gating_layer
    X = torch.randn(2, 30, 16, dtype=torch.float64)
    torch.testing.assert_close(ours(X), theirs(X)[0])
    g, cache = torch.zeros_like(X[:, :1]), dict[Any, Any]()
    for step, row in enumerate(X.split(1, 1)):
        wanted, g = theirs(row, g, step)
        torch.testing.assert_close(ours(row, cache=cache), wanted)


def test_our_feed_forward_layer_is_the_papers_and_not_opennmts() -> None:
    """ReLU between two maps, without a norm and a skip inside."""
    torch.manual_seed(0)
    layer: Any = aan.AverageAttention(4, d_ff=8, gate=False, pattern=patterns.causal())
    X = torch.randn(1, 5, 4)
    mean = aan.running_mean(X)
    plain = layer.feed.W_2(layer.feed.W_1(mean).relu())
    torch.testing.assert_close(layer(X), plain)
    theirs = OpenNmtFeedForward(4, 8)
    theirs.w_1, theirs.w_2 = layer.feed.W_1, layer.feed.W_2
    assert (theirs(mean) - plain).abs().max() > 0.1


def test_the_papers_block_is_a_post_norm_block() -> None:
    """h = LN(y + h̃), and `d_ff` as the paper has it when it is asked for."""
    model = GPT(*(11, 16, 2, 1), order=post_norm, mix=partial(aan.AverageAttention, d_ff=2048))
    block: Any = model.stack.blocks[0]
    Y = torch.randn(1, 5, 16)
    wanted = block.norms[0](Y + block.attend(Y))
    torch.testing.assert_close(block(Y), block.norms[1](wanted + block.feed(wanted)))
    assert block.attend.feed.W_1.out_features == 2048


# --- costs and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_work_and_memory_grow_with_the_length(causal: bool) -> None:
    """With gradients too, up to 16,384 tokens."""

    def core(L: int) -> Callable[..., Tensor]:
        where = CAUSAL if causal else Where()
        return lambda *X: aan.Averages()(*X, where)[0]

    work_grows_no_faster(core, 1.05)


def test_half_precision_sums_in_float32() -> None:
    """4,096 ones: in bfloat16 a sum stops at 256."""
    ones = torch.ones(1, 1, 4096, 2, dtype=torch.bfloat16)
    assert (aan.Averages()(ones, ones, ones, CAUSAL)[0] == 1).all()


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    core = aan.Averages()
    refused("9 queries and 8 values", core, Q, K[:, :, 1:], V[:, :, 1:], CAUSAL)
    it_refuses_other_texts(core)
    ranges(partial(aan.AverageAttention, 4), d_ff=(8, 1))
    of_no_kind(
        "AverageAttention takes no core; leave core out",
        partial(GPT, 11, 16, 2, 1),
        core=Rope,
        mix=aan.AverageAttention,
    )
    refused("leave cross-attention as it is", aan.AverageAttention(16), *2 * [torch.ones(1, 2, 16)])


def test_the_map_of_a_long_text_is_that_of_the_definition() -> None:
    X = qkv(40)
    A = implied_map(aan.Averages(), *X, CAUSAL)
    torch.testing.assert_close(
        A[1, 2], patterns.causal().mask(40) / torch.arange(1, 41.0)[:, None].double()
    )


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    aan.Averages,
    lambda core, Q, K, V, mask: _shown(V, mask),
    mixers={
        "with its gates": Mixes(lambda: aan.AverageAttention(8, d_ff=8, pattern=patterns.causal())),
        "the mean alone": Mixes(
            lambda: aan.AverageAttention(8, gate=False, pattern=patterns.causal())
        ),
    },
    mutants=[
        ("a mean that does not know how many came before", "count * before", "before"),
        ("a sum", "sums / counts.clamp(min=1)", "sums"),
        (
            "padding that counts",
            "count + seen.cumsum(-2)",
            "count + torch.ones_like(seen).cumsum(-2)",
        ),
        ("a gate for both", "a * X + b * g", "a * X + a * g"),
        ("gates before the feed-forward", "torch.cat([X, g], -1)", "torch.cat([g, X], -1)"),
        (
            "a kept mean that is the first",
            "where.keep(out[:, :, -1:])",
            "where.keep(out[:, :, :1])",
        ),
    ],
)


def _shown(V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    out, A = aan.averages_definition(V, mask)
    return out, A.expand(*V.shape[:2], -1, -1)
