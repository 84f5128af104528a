"""LazyFormer: maps that are used again, what is not computed, what a cache keeps."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch
from laws import Case, D, H, agree_with_gradients, qkv, streamed
from refusals import ranges, refused
from torch import Tensor, nn

from tfviz import BERT, GPT, attention, patterns
from tfviz.basics.cache_cost import kept_bytes
from tfviz.cores import Where, levels
from tfviz.measure import flops
from tfviz.models.use import attention_weights
from tfviz.priors import lazyformer as rooms
from tfviz.priors.realformer import scores_from_below

CAUSAL = patterns.causal()
TEXT = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(0))
close = partial(torch.testing.assert_close, atol=1e-12, rtol=1e-12)


def test_one_query_and_two_layers_by_hand() -> None:
    """The first layer weighs two keys 3 : 1, and so does the second, whatever its queries say."""
    Q = torch.tensor([[[1.0]], [[-5.0]]], dtype=torch.float64)  # (2 layers, 1 query, 1 number)
    K = torch.tensor([[[math.log(3)], [0.0]]] * 2, dtype=torch.float64)
    V = torch.tensor([[[4.0], [8.0]], [[0.0], [12.0]]], dtype=torch.float64)
    out, A = rooms.lazyformer_definition(Q, K, V, 2)
    torch.testing.assert_close(A[:, 0], torch.tensor([[0.75, 0.25]] * 2).double())
    torch.testing.assert_close(out.flatten(), torch.tensor([5.0, 3.0]).double())


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_definition_is_the_rule_of_the_survey(m: int) -> None:
    """Own scores count 1 and those from below 0 in the first layer of a block, else 0 and 1. A
    block may be cut short by the top of the model."""
    Q, K, V = torch.randn(3, 5, H, 6, D, dtype=torch.float64)
    own = [float(n % m == 0) for n in range(5)]
    S = scores_from_below(Q @ K.mT / D**0.5, own, [1 - x for x in own])
    wanted = S.masked_fill(~CAUSAL.mask(6), -torch.inf).softmax(-1)
    out, A = rooms.lazyformer_definition(Q, K, V, m, CAUSAL.mask(6))
    close((out, A), (wanted @ V, wanted))
    same = [bool(torch.equal(A[n], A[n - 1])) for n in range(1, 5)]
    assert same == [n % m != 0 for n in range(1, 5)]


# --- in a model -----------------------------------------------------------------------------------


def gpt(m: int, N: int = 4, **more: Any) -> Any:
    return GPT(11, H * D, H, N, layer=rooms.lazy_blocks(m), **more).double()


def by_hand(model: Any, m: int) -> Tensor:
    X = model.embed(TEXT)
    for n, block in enumerate(model.stack.blocks):
        attend, normed = block.attend, block.norms[0](X)
        if n % m == 0:
            Q, K, V = attend.project(normed, None)
            K = K.repeat_interleave(H // K.shape[1], 1)
            A = attention(Q, K, K, CAUSAL)[1]
        else:
            V = attend.project.W_v(normed).unflatten(-1, (-1, D)).transpose(1, 2)
        X = X + attend.join(A @ V.repeat_interleave(H // V.shape[1], 1), normed)
        X = X + block.feed(block.norms[1](X))
    logits: Tensor = model.stack.norm(X) @ model.embed.weight.T
    return logits


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_a_gpt_shares_its_maps_within_blocks(m: int) -> None:
    model = gpt(m)
    agree_with_gradients(model(TEXT), by_hand(model, m), list(model.parameters()))
    close(streamed(model, TEXT, [4, 1, 4]), model(TEXT))
    maps = list(attention_weights(model, TEXT).values())
    same = [bool(a.equal(b)) for a, b in pairwise(maps)]
    assert same == [n % m != 0 for n in range(1, 4)]


def test_shared_heads_of_values_and_an_encoder_with_padding() -> None:
    model = gpt(2, h_kv=2)
    close(model(TEXT), by_hand(model, 2))
    bert: Any = BERT(11, H * D, H, 2, layer=rooms.lazy_blocks(2)).double()
    there = torch.ones(2, 9, dtype=torch.bool)
    there[0, 6:] = False
    close(bert(TEXT, there)[0, :6], bert(TEXT[:, :6])[0])


def test_blocks_of_one_are_a_gpt() -> None:
    ours, plain = gpt(1), GPT(11, H * D, H, 4).double()
    plain.load_state_dict(ours.state_dict())
    close(ours(TEXT), plain(TEXT))


def test_a_lazy_layer_has_no_queries_and_keys_and_a_cache_keeps_no_keys() -> None:
    d = H * D
    counts = {m: sum(x.numel() for x in gpt(m).parameters()) for m in (1, 2, 4)}
    assert counts[1] - counts[2] == 2 * 2 * (d**2 + d)  # two layers, with their biases
    assert counts[1] - counts[4] == 3 * 2 * (d**2 + d)
    kept = {}
    for m in (1, 4):
        cache = dict[Any, Any]()
        gpt(m)(TEXT, cache)
        kept[m] = kept_bytes(cache)
    assert kept[1] == 2 * 9 * 8 * d * 8 and kept[4] == 2 * 9 * 5 * d * 8  # K, V: 8 and 5 matrices


@pytest.mark.parametrize("m", [2, 3, 4])
@torch.no_grad()
def test_what_is_not_computed_is_counted(m: int) -> None:
    """Counted by torch: the products of queries, keys and scores are gone, and nothing else."""
    text = torch.randint(11, (1, 40))
    # a map that is handed up is made in full: compare with lazy blocks of one
    spent = {n: flops(gpt(n), text) for n in (1, m)}
    assert spent[1] - spent[m] == rooms.saved_flops(L=40, d=H * D, N=4, m=m) > 0


def test_mistakes_are_named() -> None:
    lazy: Any = GPT(11, H * D, H, 2, mix=rooms.LazyAttention)
    refused("no layer below has handed up its map; give the first layer", lazy, TEXT)
    other = patterns.sliding_window(lookback=2)

    def layer(n: int) -> dict[str, Any]:
        return rooms.lazy_blocks(2)(n) | ({"pattern": other} if n else {})

    refused("the map from below is for causal() … one pattern", GPT(11, 8, 2, 2, layer=layer), TEXT)
    Q, K, V = qkv()
    with levels():
        rooms.Sharing()(Q, K, V, Where())
        refused(
            "9 keys, this layer has full() and 8; give", rooms.Reusing(), V, V, V[:, :, 1:], Where()
        )
    ranges(rooms.lazy_blocks, m=(2, 1))
    ranges(rooms.saved_flops, L=(8, 1), d=(4, 1), N=(6, 1), m=(3, 1))
    ranges(partial(rooms.lazyformer_definition, Q, K, V), m=(2, 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------


class Block(nn.Module):
    """The second layer of a lazy block, on the map of the first, with the same values."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.lazy = rooms.Sharing(), rooms.Reusing()

    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        states, kept = where.state or (None, None), list[Any]()
        keep = kept.append if where.keep else None
        with levels():
            self.first(Q, K, V, replace(where, state=states[0], keep=keep))
            answer = self.lazy(V, V, V, replace(where, state=states[1], keep=keep))
        if where.keep:
            where.keep(tuple(kept))
        return answer


def defined(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    Q, K, V = (torch.stack([x, x]) for x in (Q, K, V))
    out, A = rooms.lazyformer_definition(Q, K, V, 2, mask)
    return out[1], A[1]


CASE = Case(
    rooms.Sharing,
    lambda core, Q, K, V, mask: attention(Q, K, V, mask),
    variants={"a lazy layer": Case(Block, defined)},
    mutants=[
        ("a lazy layer with queries", "attention(Q[n - n % m], K", "attention(Q[n], K"),
        ("a lazy layer that takes its own keys", "K[n - n % m], V[n], mask)", "K[n], V[n], mask)"),
        ("blocks that begin too late", "if n % m else", "if (n + 1) % m else"),
        ("values of a text that are not kept", "_, V = where.joined(V[..., :0], V)", "pass"),
        ("keys that are kept", "where.joined(V[..., :0], V)", "where.joined(V, V)"),
        ("heads of values dealt out in turns", "V.repeat_interleave(A.shape[1] // V.shape[1], 1)",
         "V.repeat(1, A.shape[1] // V.shape[1], 1, 1)"),
        ("a map for another pattern", "pattern != where.pattern or ", ""),
        ("saved in one layer too many", "-(-N // m)", "N // m"),
        ("keys that cost nothing", "4 * L * d**2", "2 * L * d**2"),
    ],
)  # fmt: skip
