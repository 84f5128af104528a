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
from refusals import of_no_kind, ranges, refused
from three import qkv
from torch import Tensor

from tfviz import patterns as P
from tfviz._arguments import integer, real
from tfviz.adaptive.adaptive_span import span_attention
from tfviz.attention import attention, sparse_attention
from tfviz.cores import Dense, Sparse, Where
from tfviz.longer_context.da_transformer import da_attention
from tfviz.models.gpt import GPT
from tfviz.position.shaw_relative import shaw_attention
from tfviz.sparse import bigbird as bb
from tfviz.sparse import etc as etc_
from tfviz.sparse import longformer as lf
from tfviz.sparse import reformer_lsh as lsh
from tfviz.sparse.blockwise_attention import blockwise_attention
from tfviz.sparse.bp_transformer import tree_attention
from tfviz.sparse.image_transformer_1d import image_attention_1d
from tfviz.sparse.image_transformer_2d import image_attention_2d
from tfviz.sparse.routing_transformer import routing_attention
from tfviz.sparse.sac import edge_attention
from tfviz.sparse.sparse_sinkhorn import sinkhorn_attention
from tfviz.sparse.sparse_transformer_fixed import fixed_attention
from tfviz.sparse.sparse_transformer_strided import strided_attention


def longformer(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    return lf.longformer_attention((Q, K, V), (Q, K, V), 2, [0])


def etc(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    return etc_.etc_attention(Q, Q, etc_.shared(K, K), etc_.shared(V, V), 2)[1]


ROUTES: dict[str, Callable[..., Any]] = {
    "attention": attention,
    "sparse_attention": partial(sparse_attention, pattern=P.sliding_window(lookback=3)),
    "adaptive span": partial(span_attention, z=torch.ones(3, 1).double(), R=2.0),
    "DA": partial(da_attention, alpha=torch.ones(3).double(), beta=torch.ones(3).double()),
    "Shaw": partial(shaw_attention, P_k=torch.ones(5, 6).double(), P_v=torch.ones(5, 5).double()),
    "fixed": partial(fixed_attention, block=4),
    "strided": partial(strided_attention, stride=4),
    "blockwise": partial(blockwise_attention, permutations=[(1, 0)] * 3),
    "image 1-D": partial(image_attention_1d, block=4, memory=2),
    "image 2-D": partial(image_attention_2d, width=4, h_q=2, w_q=2, h_m=1, w_m=1),
    "Longformer": longformer,
    "ETC": etc,
    "Big Bird": partial(bb.bigbird_attention, block=4, drawn=bb.random_blocks(6, 0)),
    "routing": partial(routing_attention, mu=torch.randn(3, 4, 6).double(), w=6),
    "edges": partial(edge_attention, edges=torch.randint(24, (2, 3, 9, 2))),
    "Sinkhorn": partial(sinkhorn_attention, P=torch.eye(4).double().expand(2, 3, 4, 4)),
}


@pytest.mark.parametrize("name", ROUTES)
def test_every_attention_looks_at_its_input(name: str) -> None:
    laws.it_looks_at_its_input(ROUTES[name])


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
