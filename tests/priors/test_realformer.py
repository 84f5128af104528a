"""RealFormer: sums of scores by hand, two layers under every law, a model, the code of others."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, H, agree_with_gradients, qkv, streamed
from refusals import refused
from torch import Tensor, nn

from tfviz import BERT, GPT, EncoderDecoder, attention, patterns
from tfviz.cores import Dense, Where, levels
from tfviz.models.use import attention_weights
from tfviz.priors import realformer as rooms

CAUSAL = patterns.causal()
TEXT = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(0))
close = partial(torch.testing.assert_close, atol=1e-12, rtol=1e-12)


def layers(N: int = 3, *, length: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    Q, K, V = torch.randn(3, N, H, length, D, dtype=torch.float64)
    return Q, K, V


def test_two_keys_and_three_layers_by_hand() -> None:
    """Own scores (ln 3, 0), (0, 0), (−ln 3, 0). Their sums give the weights 3 : 1, 3 : 1, 1 : 1."""
    own = torch.tensor([math.log(3), 0.0, -math.log(3)], dtype=torch.float64)
    S = torch.stack([own, torch.zeros(3).double()], -1)[:, None]  # (3 layers, 1 query, 2 keys)
    A = rooms.scores_from_below(S).softmax(-1)[:, 0]
    close(A, torch.tensor([[0.75, 0.25], [0.75, 0.25], [0.5, 0.5]]).double())


def test_the_rule_of_the_survey_in_loops() -> None:
    S, own, below = torch.randn(4, 2, 3, 3).double(), [1.0, 0.5, 0.0, -2.0], [9.0, 0.5, 1.0, 3.0]
    got = rooms.scores_from_below(S, own, below, torch.sin)
    for i in range(3):
        for j in range(3):
            carried = S[0, :, i, j]
            for n in range(1, 4):
                carried = own[n] * S[n, :, i, j] + below[n] * torch.sin(carried)
                close(got[n, :, i, j], carried)
    close(rooms.scores_from_below(S), S.cumsum(0))
    close(rooms.scores_from_below(S, 1, 0), S)
    assert rooms.scores_from_below(S[:0]).shape == (0, 2, 3, 3)


def test_the_definition_in_loops() -> None:
    """Each weight by its own exponential, with a mask that is applied to the sum."""
    Q, K, V = layers()
    mask = CAUSAL.mask(5)
    for running_mean in (False, True):
        out, A = rooms.realformer_definition(Q, K, V, mask, running_mean)
        for n in range(3):
            for i in range(5):
                of = [
                    sum(Q[k, :, i] @ K[k, :, j].mT for k in range(n + 1)).diagonal(0, -2, -1)  # type: ignore[union-attr]
                    / D**0.5
                    for j in range(i + 1)
                ]
                s = torch.stack(of, -1) / (n + 1 if running_mean else 1)
                close(A[n, :, i, : i + 1], s.exp() / s.exp().sum(-1, keepdim=True))
        close(out, A @ V)


def test_one_layer_is_attention_and_a_layer_without_scores_repeats_the_map() -> None:
    Q, K, V = layers()
    close(rooms.realformer_definition(Q[:1], K[:1], V[:1])[1][0], attention(Q[0], K[0], V[0])[1])
    Q[1] = 0
    A = rooms.realformer_definition(Q, K, V)[1]
    close(A[1], A[0])
    assert (A[2] - A[1]).abs().max() > 0.05


def test_a_running_mean_of_equal_layers_stays_and_their_sum_sharpens() -> None:
    Q, K, V = (x[:1].expand(6, -1, -1, -1) for x in layers())
    mean = rooms.realformer_definition(Q, K, V, running_mean=True)[1]
    close(mean[-1], mean[0])
    entropy = -(lambda A: (A * A.log()).sum(-1))(rooms.realformer_definition(Q, K, V)[1])
    assert (entropy.diff(dim=0) < 0).all()


# --- in a model -----------------------------------------------------------------------------------


def own_scores(model: Any, X: Tensor) -> tuple[list[Tensor], Tensor]:
    """(A of each layer, what leaves the stack), with the sum kept by hand."""
    total, maps = torch.zeros(()).double(), []
    for n, block in enumerate(model.stack.blocks):
        Q, K, V = block.attend.project(block.norms[0](X), None)
        total = total + Q @ K.mT / block.attend.d_head**0.5
        used = total / (n + 1) if block.attend.core.running_mean else total
        maps.append(used.masked_fill(~CAUSAL.mask(X.shape[1]), -torch.inf).softmax(-1))
        X = X + block.attend.join(maps[-1] @ V, X)
        X = X + block.feed(block.norms[1](X))
    return maps, model.stack.norm(X)


@pytest.mark.parametrize("running_mean", [False, True])
def test_a_gpt_sums_its_scores(running_mean: bool) -> None:
    core = partial(rooms.RealFormer, running_mean=running_mean)
    model: Any = GPT(11, H * D, H, 3, core=core).double()
    maps, top = own_scores(model, model.embed(TEXT))
    got = attention_weights(model, TEXT)
    for A, wanted in zip(got.values(), maps, strict=True):
        close(A, wanted)
    agree_with_gradients(model(TEXT), top @ model.embed.weight.T, list(model.parameters()))
    close(streamed(model, TEXT, 4), model(TEXT))


def test_it_has_no_parameters_and_one_layer_is_a_gpt() -> None:
    ours, plain = GPT(11, H * D, H, 1, core=rooms.RealFormer), GPT(11, H * D, H, 1)
    plain.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(TEXT), plain(TEXT))
    more = GPT(11, H * D, H, 2, core=rooms.RealFormer), GPT(11, H * D, H, 2)
    more[1].load_state_dict(more[0].state_dict())
    assert not torch.allclose(more[0](TEXT), more[1](TEXT), atol=1e-3)


def test_an_encoder_with_padding_and_cross_attention_take_it() -> None:
    bert: Any = BERT(11, H * D, H, 2, core=rooms.RealFormer).double()
    there = torch.ones(2, 9, dtype=torch.bool)
    there[0, 6:] = False
    close(bert(TEXT, there)[0, :6], bert(TEXT[:, :6])[0])  # what is padding is not carried either
    both: Any = EncoderDecoder(11, H * D, H, 2).double()
    plain = both(TEXT, TEXT)
    for block in both.decoder.blocks:
        block.cross.core = rooms.RealFormer()
    assert not torch.allclose(both(TEXT, TEXT), plain)


def test_layers_that_hand_up_something_else_are_named() -> None:
    cores = [Dense, rooms.RealFormer]
    model: Any = GPT(11, H * D, H, 2, layer=lambda n: {"core": cores[n]})
    model(TEXT)  # nothing below: its own scores

    class Other(Dense):
        def scores(self, s: Tensor, where: Where) -> Tensor:
            where.hand_up(s)
            return s

    model.stack.blocks[0].attend.core = Other()
    refused("hands up no scores for these queries … the core RealFormer", model, TEXT)
    with levels():
        Q, K, V = qkv()
        rooms.RealFormer()(Q[:, :, :4], K, V, Where())
        refused("hands up no scores for these", rooms.RealFormer(), Q, K, V, Where())


def test_bad_input_is_named() -> None:
    S = torch.randn(3, 2, 2)
    refused("S has shape (2, 2); give the scores of all layers", rooms.scores_from_below, S[0])
    refused("own has 2 numbers, S 3 layers", rooms.scores_from_below, S, [1.0, 0.0])
    refused("below = nan", rooms.scores_from_below, S, 1.0, math.nan)


# --- the code of others ---------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_parity_with_x_transformers(causal: bool) -> None:
    """They carry the scores where the mask is in them already; what may be seen is the same."""
    theirs: Any = pytest.importorskip("x_transformers")
    kind = theirs.Decoder if causal else theirs.Encoder
    model = kind(dim=H * D, depth=3, heads=H, attn_dim_head=D, residual_attn=True).double().eval()
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    answers: list[Tensor] = []
    for module in model.modules():
        if type(module).__name__ == "Attend":
            module.register_forward_pre_hook(lambda _, X: seen.append(X[:3]))
            module.register_forward_hook(lambda _, X, out: answers.append(out[0]))
    model(torch.randn(2, 7, H * D, dtype=torch.float64))
    Q, K, V = (torch.stack(x) for x in zip(*seen, strict=True))
    mask = CAUSAL.mask(7) if causal else None
    wanted = torch.stack(answers)  # their softmax: float32
    got = rooms.realformer_definition(Q, K, V, mask)[0]
    torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-4)
    assert len(answers) == 3 and not torch.allclose(attention(Q, K, V, mask)[0], wanted, atol=1e-3)


# --- what it brings to the laws and the mutants ---------------------------------------------------


class Two(nn.Module):
    """The upper of two layers. The lower one's scores are those of the queries, their numbers
    moved on by one, so that the two differ."""

    def __init__(self, running_mean: bool = False) -> None:
        super().__init__()
        self.lower, self.upper = (rooms.RealFormer(running_mean) for _ in range(2))

    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        states, kept = where.state or (None, None), list[Any]()
        keep = kept.append if where.keep else None
        with levels():
            self.lower(Q.roll(1, -1), K, V, replace(where, state=states[0], keep=keep))
            answer = self.upper(Q, K, V, replace(where, state=states[1], keep=keep))
        if where.keep:
            where.keep(tuple(kept))
        return answer


def defined(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    Q, K, V = (torch.stack(both) for both in ((Q.roll(1, -1), Q), (K, K), (V, V)))
    out, A = rooms.realformer_definition(Q, K, V, mask, core.upper.running_mean)
    return out[1], A[1]


def alone(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(Q, K, V, mask)


CASE = Case(
    rooms.RealFormer,
    alone,
    variants={
        "two layers": Case(Two, defined),
        "two layers, their mean": Case(partial(Two, running_mean=True), defined),
    },
    mutants=[
        ("a layer that does not add", "where.below.scores + s", "s"),
        (
            "its own scores handed up, not the sum",
            "where.hand_up(Carried(layers, total))",
            "where.hand_up(Carried(layers, s))",
        ),
        (
            "the mean handed up, not the sum",
            "where.hand_up(Carried(layers, total))",
            "where.hand_up(Carried(layers, total / layers))",
        ),
        ("layers that are not counted", "where.below.layers + 1", "where.below.layers"),
        (
            "the lower layer's own scores in place of what it carries",
            "g(carried[-1])",
            "g(S[n - 1])",
        ),
        ("own scores without their share", "owns[n] * S[n]", "S[n]"),
        ("the mean of one layer more", "total / (n + 1)", "total / (n + 2)"),
    ],
)
