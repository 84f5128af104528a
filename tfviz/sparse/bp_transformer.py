"""Binary partitioning: near words one by one, far words in spans of a tree, each exactly once.

Ye, Guo, Gan, Qiu, Zhang 2019 (arXiv 1911.04070, BP-Transformer). L tokens are the leaves of a
binary tree, its inner nodes are spans of 2, 4, … tokens: 2L − 1 nodes if L is a power of two. Every
node has a row, and all rows go through the same layers. A span attends to its tokens. Token i
attends to itself and, on each side and beginning next to it, to k nodes of level 0, then k of level
1, and so on to the end of the text:

    s_ij = q_i · (k_j + a_type) / √d        type: which level, side, and which of the k

Where a node has been read in part, its other half stands in its place. So the text is partitioned.
What token j says reaches every token in two layers, through a span that holds j. Spans begin at 0.

As the authors' `graph_builder/builder.pyx` and `modules/attention.py`, but that no node is read
twice where L is no power of two (there a right pointer may run into the next level), and that types
go on beyond `clip_dist` levels. A span's own type is left out: it shifts all its scores alike.

>>> where = spans(8).tolist()
>>> [where[node] for node in reads(8, k=1)[2].tolist() if node >= 0]
[[2, 3], [1, 2], [3, 4], [0, 1], [4, 6], [6, 8]]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tfviz import _arguments, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity
from tfviz.dense_attention import attention
from tfviz.sub_quadratic.merged import Call, Plan, attend, freshened
from tfviz.sub_quadratic.rows import Gathered, Stepped

__all__ = ["Tree", "tree_attention", "tree_definition"]

BLOCK, TOGETHER = 32, 4  # neighbours that gather their keys, and levels that go through the text


def levels(L: int) -> list[range]:
    """The rows of each level: tokens, then spans of two, of four, … The last is the whole text."""
    found = [range(_arguments.integer("L", L, 1))]
    while len(found[-1]) > 1:
        last = found[-1]
        found.append(range(last.stop, last.stop + (len(last) + 1) // 2))
    return found


@lru_cache(maxsize=16)
def length(rows: int) -> int:
    """The number of tokens, of all `rows` of the tree. Raises ValueError if no tree has so many."""
    for L in range(max(1, (rows - rows.bit_length()) // 2), rows + 1):
        if levels(L)[-1].stop == rows:
            return L
    raise ValueError(f"no tree has {rows} rows: L tokens need levels(L)[-1].stop; see with_spans")


def spans(L: int) -> Int[Tensor, "rows 2"]:
    """First token of each node, and the one behind its last."""
    first = [
        (n << level, 1 << level) for level, row in enumerate(levels(L)) for n, _ in enumerate(row)
    ]
    return torch.tensor(first).cumsum(1).clamp(max=L)


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # what is kept outlives the mode that it was made in
def reads(L: int, k: int, causal: bool = False) -> Int[Tensor, "L types"]:
    """The nodes that each token reads, −1 where there is none: itself, then of each level k to the
    left, the nearest first, and k to the right unless `causal`. A column is a type of edge."""
    _arguments.integer("k", k, 1)
    rows, i = levels(L), torch.arange(L)
    sides = [-1] if causal else [-1, 1]
    at = {side: i + side for side in sides}  # the next node on this side, counted in its level
    half = {side: i < 0 for side in sides}  # has its nearer child been read?
    found = [i]
    for level, row in enumerate(rows):
        new = []
        for side in sides:
            for _ in range(k):
                child = 2 * at[side] + (side > 0)
                there = child < len(rows[level - 1])
                child = (rows[level - 1].start + child).where(there, -1)
                node = torch.where(half[side], child, row.start + at[side])
                new.append(node.where((at[side] >= 0) & (at[side] < len(row)), -1))
                at[side], half[side] = at[side] + side, i < 0
            half[side] = at[side] % 2 == (side > 0)
            at[side] = at[side] // 2
        if (torch.stack(new) < 0).all():
            break
        found += new
    return torch.stack(found, 1)


def edges(L: int, k: int, causal: bool = False) -> int:
    """All edges: what tokens read, and every span its tokens."""
    return int((reads(L, k, causal) >= 0).sum()) + L * (len(levels(L)) - 1)


def with_spans(X: Float[Tensor, "b L d"]) -> Float[Tensor, "b rows d"]:
    """Rows of zeros for the spans behind those of the tokens: what the first layer is given."""
    L = X.shape[-2]
    return F.pad(X, (0, 0, 0, levels(L)[-1].stop - L))


@named
def tree_definition(
    Q: Float[Tensor, "b h rows d"],
    K: Float[Tensor, "b h rows d"],
    V: Float[Tensor, "b h rows dv"],
    k: int,
    causal: bool = False,
    a: Float[Tensor, "types d"] | None = None,
) -> tuple[Float[Tensor, "b h rows dv"], Float[Tensor, "b h rows rows"]]:
    """Attention of all rows to all, masked: the formula, in O(L²). A token's row of the weights
    sums to one over the nodes that it reads."""
    N, L = Q.shape[2], length(Q.shape[2])
    table, (first, end) = reads(L, k, causal), spans(L).T[..., None]
    table = table.where(table >= 0, N)  # a column that is cut off
    table, first, end = (x.to(Q.device) for x in (table, first, end))
    i = torch.arange(L, device=Q.device)
    mask = torch.zeros(N, N + 1, dtype=torch.bool, device=Q.device)
    mask[:L].scatter_(1, table, True)
    mask[L:, :L] = (first <= i)[L:] & (i < end)[L:]
    bias = torch.zeros(*Q.shape[:2], N, N + 1, dtype=Q.dtype, device=Q.device)
    if a is not None:
        told = Q[:, :, :L] @ a[: table.shape[1]].mT / Q.shape[-1] ** 0.5
        told = bias[:, :, :L].scatter(-1, table.expand_as(told), told)
        bias = torch.cat([told, bias[:, :, L:]], 2)
    return attention(Q, K, V, mask[:, :N], bias=bias[..., :N])


def _stretches(L: int, size: int) -> Iterator[tuple[int, int, int]]:
    """(first, groups, size) of a text in equal parts, and of what is left at its end."""
    if size <= L:
        yield 0, L // size, size
    if L % size:
        yield L - L % size, 1, L % size


Gathers = list[tuple[Stepped, Tensor, Tensor, Tensor]]


@lru_cache(maxsize=4)
@torch.inference_mode(False)  # what is kept outlives the mode that it was made in
def _gathers(L: int, k: int, causal: bool) -> Gathers:
    """Blocks of tokens: their rows; the nodes (groups, m) that one of them reads; for a token and a
    type the place among these (groups, size, types), and whether there is such an edge."""
    N, found = levels(L)[-1].stop, []
    for first, n, size in _stretches(L, BLOCK):
        table = reads(L, k, causal)[first : first + n * size].unflatten(0, (n, size))
        codes = table.clamp(min=0) + N * torch.arange(n)[:, None, None]
        used, place = codes.unique(return_inverse=True)
        counts = torch.bincount(used // N, minlength=n)
        start = counts.cumsum(0) - counts
        nodes = (start[:, None] + torch.arange(int(counts.max()))).clamp(max=len(used) - 1)
        block = Stepped(first, n, size, size)
        found.append((block, used[nodes] % N, place - start[:, None, None], table >= 0))
    return found


@lru_cache(maxsize=8)
def _plan(L: int, k: int, causal: bool, tokens: bool = True) -> Plan:
    """Every edge once. Blocks of tokens gather their nodes. Spans of several levels share a stretch
    of tokens, so that no level goes through all of the text for itself."""
    rows, calls = levels(L), list[Call]()
    first, end = spans(L).T
    with torch.inference_mode(False):  # a plan outlives the mode that it was made in
        for block, nodes, place, real in _gathers(L, k, causal) if tokens else []:
            times = torch.zeros(*real.shape[:2], nodes.shape[1], dtype=torch.int32)
            mask = times.scatter_add_(-1, place, real.int()) > 0
            calls += Call(block, Gathered(nodes), mask).parts(2**16)
        for bottom in range(1, len(rows), TOGETHER):
            some = rows[bottom : bottom + TOGETHER]
            for start, n, size in _stretches(L, 1 << (bottom + len(some) - 1)):
                inside = (first >= start) & (first < start + n * size)
                of = [torch.arange(r.start, r.stop)[inside[r.start : r.stop]] for r in some]
                queries = torch.cat([nodes.view(n, -1) for nodes in of], 1)
                keys, one = torch.arange(start, start + size), queries[0, :, None]
                mask = (first[one] <= keys) & (keys < end[one])
                calls += Call(Gathered(queries), Stepped(start, n, size, size), mask[None]).parts(
                    2**16
                )
        return freshened(calls, rows[-1].stop)


def _typed(
    q: Tensor, K: Tensor, V: Tensor, a: Tensor, nodes: Tensor, place: Tensor, real: Tensor
) -> Float[Tensor, "b h groups size dv"]:
    """Blocks of tokens over the nodes that they gather, each edge with the vector of its type."""
    if (dtype := V.dtype) in (torch.float16, torch.bfloat16):  # products of large numbers overflow
        q, K, V, a = q.float(), K.float(), V.float(), a.float()
    s = q @ K[:, :, nodes].mT  # (b, h, groups, size, m): some of these are no edges
    at = place.expand(*s.shape[:2], -1, -1, -1)
    e = (s.gather(-1, at) + q @ a[: at.shape[-1]].mT) / q.shape[-1] ** 0.5
    A = e.masked_fill(~real, -torch.inf).softmax(-1)
    return (torch.zeros_like(s).scatter_add(-1, at, A) @ V[:, :, nodes]).to(dtype)


@named
def tree_attention(
    Q: Float[Tensor, "b h rows d"],
    K: Float[Tensor, "b h rows d"],
    V: Float[Tensor, "b h rows dv"],
    k: int,
    causal: bool = False,
    a: Float[Tensor, "types d"] | None = None,
) -> Float[Tensor, "b h rows dv"]:
    """The same in O(k L log(L/k) d) time and O(L d) memory, backwards too."""
    _qkv.check(Q, K, V, self_attention=True)
    L = length(Q.shape[2])
    q, key, v = (x.flatten(0, 1) for x in (Q, K, V))
    merged = attend(q, key, v, _plan(L, k, causal, a is None)).unflatten(0, Q.shape[:2])
    if a is None:
        return merged
    if len(a) < (types := reads(L, k, causal).shape[1]):
        raise ValueError(
            f"a has {len(a)} vectors, the edges of L = {L} are of {types} types; give one for each"
        )
    out = []
    for block, *rest in _gathers(L, k, causal):
        q = Q[:, :, block.first : block.first + block.rows].unflatten(2, (-1, block.size))
        parts = (x.to(Q.device).split(32) for x in rest)
        for part, *these in zip(q.split(32, 2), *parts, strict=True):
            call = partial(_typed, part, K, V, a, *these)
            out.append(checkpoint(call, use_reentrant=False).flatten(2, 3))
    return torch.cat([*out, merged[:, :, L:]], 2)


class Tree(nn.Module):
    """A core for models whose rows are those of `with_spans`. It learns one vector for each type of
    edge, up to `types` of them; none if that is 0. It has no cache, no padding.
    """

    @named
    def __init__(self, d_head: int, k: int, types: int = 0) -> None:
        super().__init__()
        self.k = _arguments.integer("k", k, 1)
        self.a = nn.Parameter(torch.zeros(types, d_head)) if types else None

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        causal = where.whole_text("the tree chooses the pairs itself", "spans that grow")
        K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
        read = partial(tree_attention, Q, K, k=self.k, causal=causal, a=self.a)
        return read(V), read(identity(V)) if where.need_weights else None
