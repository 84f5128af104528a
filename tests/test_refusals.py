"""Every attention looks at what it is given. What asks rooms for refusals and for growth finds out
a room that has them not."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import laws
import pytest
import torch
from laws import Function
from refusals import of_no_kind, ranges, refused
from three import qkv
from torch import Tensor

from tfviz import patterns as P
from tfviz._arguments import integer, real
from tfviz.adaptive.adaptive_span import span_attention, span_definition
from tfviz.attention import attention, sparse_attention
from tfviz.cores import Dense, Sparse, Where
from tfviz.longer_context.da_transformer import curve, da_attention
from tfviz.models.gpt import GPT
from tfviz.position.shaw_relative import shaw_attention
from tfviz.sparse import bigbird as bb
from tfviz.sparse import etc as etc_
from tfviz.sparse import longformer as lf
from tfviz.sparse import reformer_lsh as lsh
from tfviz.sparse import routing_transformer as rt
from tfviz.sparse.blockwise_attention import blockwise_attention
from tfviz.sparse.bp_transformer import tree_attention
from tfviz.sparse.image_transformer_1d import image_attention_1d
from tfviz.sparse.image_transformer_2d import image_attention_2d
from tfviz.sparse.sac import edge_attention, edge_mask
from tfviz.sparse.sparse_sinkhorn import sinkhorn_attention, sinkhorn_definition
from tfviz.sparse.sparse_transformer_fixed import fixed_attention
from tfviz.sparse.sparse_transformer_strided import strided_attention


def long(window: Callable[..., Any]) -> Callable[..., Any]:
    """Longformer wants two sets of projections; here global tokens have the same."""
    return lambda Q, K, V: window((Q, K, V), (Q, K, V), 2, [0])


def etc(way: Callable[..., Any]) -> Callable[..., Any]:
    """The text is at once its own global tokens."""

    def called(Q: Tensor, K: Tensor, V: Tensor, **masks: Tensor) -> Tensor:
        told = {"masks": OPEN._replace(**masks)} if masks else {}
        return way(Q, Q, etc_.shared(K, K), etc_.shared(V, V), 2, **told)[1]

    return called


OPEN = etc_.Pieces(*(torch.ones(24, n, dtype=torch.bool) for n in (24, 24, 24, 5)))
SPAN = torch.linspace(0, 4, 3, dtype=torch.float64)[:, None]
ALPHA, BETA = torch.linspace(-1, 1, 6, dtype=torch.float64).view(2, 3)
P_K, P_V = (torch.linspace(-1, 1, 5 * d, dtype=torch.float64).sin().view(5, d) for d in (6, 5))
MU = torch.linspace(0, 60, 72, dtype=torch.float64).sin().view(3, 4, 6)
EDGES = torch.randint(24, (2, 3, 60, 2), generator=torch.Generator().manual_seed(0))
MOVES = torch.eye(4, dtype=torch.float64).roll(1, 0).expand(2, 3, 4, 4)
DRAWN = bb.random_blocks(6, 1, seed=0)
IMAGE: dict[str, Any] = {"width": 4, "h_q": 2, "w_q": 2, "h_m": 1, "w_m": 1}


def loops(Q: Tensor, K: Tensor, V: Tensor, pattern: Tensor | None = None) -> Tensor:
    """Attention row by row, over the keys that a row may use."""
    rows = []
    for i, q in enumerate(Q.unbind(2)):
        some = slice(None) if pattern is None else pattern[i]
        k, v = K[:, :, some], V[:, :, some]
        weights = (q.unsqueeze(2) @ k.mT / Q.shape[-1] ** 0.5).exp()
        rows.append((weights @ v / weights.sum(-1, keepdim=True)).squeeze(2))
    return torch.stack(rows, 2)


def shaw(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """What `Shaw` does, by the vectors of all pairs."""
    L = Q.shape[2]
    apart = (torch.arange(L) - torch.arange(L)[:, None]).clamp(-2, 2) + 2
    k, v = (x.to(Q)[apart] for x in (P_K, P_V))  # (L, L, d)
    A = ((Q.unsqueeze(3) * (K.unsqueeze(2) + k)).sum(-1) / Q.shape[-1] ** 0.5).softmax(-1)
    return (A.unsqueeze(-1) * (V.unsqueeze(2) + v)).sum(3)


def da(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    i, j = torch.arange(Q.shape[2])[:, None], torch.arange(Q.shape[2])
    f = curve(i, j, alpha=ALPHA.to(Q)[:, None, None], beta=BETA.to(Q)[:, None, None])
    return ((Q @ K.mT).relu() * f / Q.shape[-1] ** 0.5).softmax(-1) @ V


def routing(Q: Tensor, K: Tensor, V: Tensor) -> Any:
    q, k = (rt.taken(rt.members(x, MU, 6), x.shape[2]) for x in (Q, K))
    return rt.routing_definition(Q, K, V, rt.together(q, k))


def over(pattern: P.Pattern) -> Callable[..., Any]:
    return lambda Q, K, V: attention(Q, K, V, pattern)


CAUSAL_23 = torch.ones(24, 24, dtype=torch.bool).tril()
ROUTES: dict[str, Function] = {
    "attention": Function(attention, loops, masks={"pattern": CAUSAL_23}),
    "sparse_attention": Function(
        partial(sparse_attention, pattern=P.sliding_window(lookback=3)),
        over(P.sliding_window(lookback=3)),
        length=150,
    ),
    "adaptive span": Function(
        lambda Q, K, V: span_attention(Q, K, V, SPAN.to(Q), 2.0),
        lambda Q, K, V: span_definition(Q, K, V, SPAN.to(Q), 2.0),
        length=150,
    ),
    "DA": Function(lambda Q, K, V: da_attention(Q, K, V, ALPHA.to(Q), BETA.to(Q)), da),
    "Shaw": Function(lambda Q, K, V: shaw_attention(Q, K, V, P_K.to(Q), P_V.to(Q)), shaw),
    "fixed": Function(
        partial(fixed_attention, block=4), over(P.fixed(block=4, summary=1)), length=150
    ),
    "strided": Function(
        partial(strided_attention, stride=4), over(P.strided(stride=4)), length=150
    ),
    "blockwise": Function(
        partial(blockwise_attention, permutations=[(1, 0)] * 3),
        over(P.blockwise(permutation=(1, 0))),
    ),
    "image 1-D": Function(
        partial(image_attention_1d, block=4, memory=2),
        over(P.image_1d(block=4, memory=2)),
        length=150,
    ),
    "image 2-D": Function(partial(image_attention_2d, **IMAGE), over(P.image_2d(**IMAGE))),
    "Longformer": Function(long(lf.longformer_attention), long(lf.longformer_definition)),
    "ETC": Function(
        etc(etc_.etc_attention),
        etc(etc_.etc_definition),
        masks={"l2g": CAUSAL_23, "g2g": CAUSAL_23},
    ),
    "Big Bird": Function(
        partial(bb.bigbird_attention, block=4, drawn=DRAWN),
        partial(bb.bigbird_definition, block=4, drawn=DRAWN),
    ),
    "routing": Function(lambda Q, K, V: rt.routing_attention(Q, K, V, MU, 6), routing),
    "edges": Function(
        partial(edge_attention, edges=EDGES),
        lambda Q, K, V: attention(Q, K, V, edge_mask(EDGES, Q.shape[2])),
    ),
    "Sinkhorn": Function(
        lambda Q, K, V: sinkhorn_attention(Q, K, V, MOVES.to(Q)),
        lambda Q, K, V: sinkhorn_definition(Q, K, V, MOVES.to(Q)),
    ),
}


@pytest.mark.parametrize("name", ROUTES)
def test_every_attention_looks_at_its_input(name: str) -> None:
    laws.it_looks_at_its_input(ROUTES[name].call)


def test_trees_and_hashes_look_too() -> None:
    Q, _, V = (x.detach() for x in qkv(15))  # the 15 nodes over 8 tokens
    R = lsh.directions(6, 4)
    for V_, says in ((V / 0, "V holds NaN"), (V[:1], "have leading shapes")):
        refused(says, tree_attention, Q, Q, V_, 1)
        refused(says, lsh.lsh_attention, Q, V_, R, 5)


def curt(n: int) -> None:
    raise ValueError(f"n = {n!r}")


WRONG: dict[str, Callable[..., object]] = {
    "takes anything": lambda n: n,
    "names another argument": lambda n: integer("m", n, 1, 8),
    "begins one too low": lambda n: integer("n", n, 0, 8),
    "begins one too high": lambda n: integer("n", n, 2, 8),
    "ends one too high": lambda n: integer("n", n, 1, 9),
    "has no end": lambda n: integer("n", n, 1),
    "takes a Boolean": lambda n: 1 if n is True else integer("n", n, 1, 8),
    "rounds": lambda n: integer("n", round(n) if n == 3.5 else n, 1, 8),
    "takes NaN": lambda n: n if n != n else integer("n", n, 1, 8),
    "reads a text": lambda n: integer("n", int(n) if n == "3" else n, 1, 8),
    "says not what to do": lambda n: n if n in (1, 3, 8) and n is not True else curt(n),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_number_that_is_not_looked_at_is_found_out(name: str) -> None:
    ranges(lambda n: integer("n", n, 1, 8), n=(3, 1, 8))
    with pytest.raises((AssertionError, ValueError)):
        ranges(WRONG[name], n=(3, 1, 8))


def test_infinity_is_refused_unless_it_is_an_end() -> None:
    ranges(lambda x: real("x", x, 0.0), x=(1.0, 0.0))
    ranges(lambda x: x if x == math.inf else real("x", x, 0.0), x=(1.0, 0.0, math.inf))
    with pytest.raises(AssertionError, match="accepted, where 'x = inf' was due"):
        ranges(lambda x: x if x == math.inf else real("x", x, 0.0), x=(1.0, 0.0))


def test_words_have_an_order_and_errors_a_kind() -> None:
    refused("n = 0 … choose", integer, "n", 0, 1)
    for says in ("choose … n = 0", "n = 00", "n = 0 … n = 0 is"):
        with pytest.raises(AssertionError, match="does not say"):
            refused(says, integer, "n", 0, 1)
    with pytest.raises(ValueError, match="n = 0"):
        of_no_kind("n = 0", integer, "n", 0, 1)


def test_laws_for_cores_of_their_own_find_out_others() -> None:
    with pytest.raises(AssertionError):
        laws.it_wants_a_whole_text(Dense(), *qkv())
    for blind in (lambda Q, K, V: V, lambda Q, K, V: Dense()(Q, K, V, Where(P.full()))[0]):
        with pytest.raises((AssertionError, RuntimeError)):
            laws.it_looks_at_its_input(blind)
    with pytest.raises(AssertionError):  # another model, not the same weights
        text = torch.randint(11, (1, 8))
        laws.it_resumes_to_the_last_bit(lambda: GPT(11, 8, 2, 1), text, 2)
    grows = partial(laws.work_grows_no_faster, work=(64, 256), memory=(64, 256))
    with pytest.raises(AssertionError):
        grows(lambda L: lambda *X: attention(*X)[0], 1.6)
    near = Where(P.sliding_window(lookback=8))
    grows(lambda L: lambda *X: Sparse()(*X, near)[0], 1.2)
