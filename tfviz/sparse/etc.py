"""ETC: a short global input beside the long one; four pieces of attention, two softmaxes.

Ainslie et al. 2020 (arXiv 2004.08483) and google-research/etcmodel. n_g global tokens, n_l long
ones, and a piece for each pair of kinds: g2g, g2l, l2g, and l2l with |i − j| ≤ w only. All have

    e_ij = q_i · (k_j + p_label(i,j)) / √d − (1 − M_ij) C        C = 10000

with a learned vector p for each relation between i and j, and M for what is known to be of no use.
Keys and values may be projected anew for each piece; queries for global and long tokens. A global
token has one softmax over [g2g, g2l], a long one over [l2g, l2l]. All but l2l are dense, n_g being
small; l2l holds n_l × (2w + 1) numbers, column w + t for key i + t.

>>> pieces = sentence_masks([2, 1], radius=1)
>>> pieces.g2l.int().tolist(), pieces.l2g.int().tolist()
([[1, 1, 0], [0, 0, 1]], [[1, 0], [1, 0], [0, 1]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments, _qkv
from tfviz._arguments import named
from tfviz.sub_quadratic.loud import answer

__all__ = ["etc_attention", "etc_definition"]

C = 10_000.0


class Pieces(NamedTuple):
    """One tensor for each piece. Of keys and values, `g2l` are those that global queries find in
    the long input. Of masks and labels, rows are queries: (n_g, n_g), (n_g, n_l), (n_l, n_g) and,
    for l2l, (n_l, 2w + 1)."""

    g2g: Tensor
    g2l: Tensor
    l2g: Tensor
    l2l: Tensor


def shared(x_global: Tensor, x_long: Tensor) -> Pieces:
    """Keys or values with one projection for all pieces."""
    return Pieces(x_global, x_long, x_global, x_long)


def owners(lengths: Sequence[int]) -> Tensor:
    """The sentence of every long token. Raises ValueError unless each sentence has a token."""
    if not len(lengths):
        raise ValueError(f"lengths = {lengths!r}; give the number of tokens of every sentence")
    lengths = [_arguments.integer(f"lengths[{n}]", x, 1) for n, x in enumerate(lengths)]
    return torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))


def sentence_masks(
    lengths: Sequence[int], radius: int, g2l: bool = True, l2g: bool = True
) -> Pieces:
    """M for one global token per sentence: it reads its own sentence only, and its sentence only
    reads it; each of the two may be left open. Windows and g2g are open."""
    mine = owners(lengths) == torch.arange(len(lengths))[:, None]
    every = torch.ones_like(mine)
    return Pieces(
        torch.ones(len(lengths), len(lengths), dtype=torch.bool),
        mine if g2l else every,
        (mine if l2g else every).T,
        torch.ones(mine.shape[1], 2 * radius + 1, dtype=torch.bool),
    )


def sentence_labels(lengths: Sequence[int], radius: int, far: int) -> Pieces:
    """Numbers of p: distances of long tokens, clipped at ± far, then those of global tokens, then
    "of my sentence" and "of another" for g2l and for l2g: 4 far + 6 vectors."""
    mine = owners(lengths) == torch.arange(len(lengths))[:, None]
    near = torch.arange(-radius, radius + 1).clamp(-far, far) + far
    n = torch.arange(len(lengths))
    between = (n - n[:, None]).clamp(-far, far) + far
    return Pieces(
        2 * far + 1 + between,
        4 * far + 2 + (~mine).int(),
        4 * far + 4 + (~mine.T).int(),
        near.expand(mine.shape[1], -1),
    )


@named
def etc_definition(
    Q_global: Float[Tensor, "b h n_g d"],
    Q_long: Float[Tensor, "b h n_l d"],
    K: Pieces,
    V: Pieces,
    radius: int,
    labels: Pieces | None = None,
    P: Float[Tensor, "#h kinds d"] | None = None,
    masks: Pieces | None = None,
) -> tuple[Tensor, Tensor, Float[Tensor, "b h n n"]]:
    """(global out, long out, A) from all pairs; A has the n_g global tokens first."""
    _check(Q_global, Q_long, K, V, radius, labels, P, masks)
    n_l = Q_long.shape[2]
    j = torch.arange(n_l, device=Q_long.device)
    i = j[:, None]
    column = (j - i + radius).clamp(0, 2 * radius)
    labels, masks = (x and x._replace(l2l=x.l2l.gather(1, column)) for x in (labels, masks))

    def scores(Q: Tensor, piece: str) -> Tensor:
        s = Q @ getattr(K, piece).mT
        if labels is not None and P is not None:
            s = s + (Q.unsqueeze(-2) * P[:, getattr(labels, piece).long()]).sum(-1)
        s = s / math.sqrt(Q.shape[-1])
        return s if masks is None else s - C * ~getattr(masks, piece)

    near = scores(Q_long, "l2l").masked_fill((i - j).abs() > radius, -math.inf)
    A_global = torch.cat([scores(Q_global, "g2g"), scores(Q_global, "g2l")], -1).softmax(-1)
    A_long = torch.cat([scores(Q_long, "l2g"), near], -1).softmax(-1)
    out = A_global @ torch.cat([V.g2g, V.g2l], 2), A_long @ torch.cat([V.l2g, V.l2l], 2)
    return *out, torch.cat([A_global, A_long], 2)


@named
def etc_attention(
    Q_global: Float[Tensor, "b h n_g d"],
    Q_long: Float[Tensor, "b h n_l d"],
    K: Pieces,
    V: Pieces,
    radius: int,
    labels: Pieces | None = None,
    P: Float[Tensor, "#h kinds d"] | None = None,
    masks: Pieces | None = None,
) -> tuple[Float[Tensor, "b h n_g dv"], Float[Tensor, "b h n_l dv"]]:
    """(global out, long out) in O((n_l (2w + 1 + n_g) + n_g (n_g + n_l)) d), with gradients.

    K, V            of each piece; `shared` makes them of one projection
    labels, P       which of the vectors P is added to the key of a pair; none if left out
    masks           M, Booleans, True = open; all open if left out

    Raises TypeError or ValueError for shapes that do not fit, naming the piece.
    """
    _arguments.integer("radius", radius, 0)
    _check(Q_global, Q_long, K, V, radius, labels, P, masks)
    (b, h, _, d), w = Q_long.shape, radius

    def bias(Q: Tensor, piece: str) -> Tensor:  # (b or 1, h or 1, queries, keys or 2w + 1)
        found = Q.new_zeros(1, 1, 1, 1)
        if labels is not None and P is not None:
            at, q = getattr(labels, piece).long(), Q / math.sqrt(d)
            if at.stride(0):  # one number for each label, then one for each pair
                found = (q @ P.mT).gather(-1, at.expand(*Q.shape[:2], *at.shape))
            else:  # all queries have the same labels, as distances are
                found = q @ P[:, at[0]].mT
        open_ = masks is None or bool(getattr(masks, piece).all())
        return found if open_ else found - C * ~getattr(masks, piece)

    def meet(Q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v, bias = (x.flatten(0, 1)[:, None] for x in (Q, k, v, bias))
        o, z = answer(q, k, v, bias, 1 / math.sqrt(d))
        return o.view(b, h, *o.shape[2:]), z.view(b, h, -1, 1)

    o_gg, z_gg = meet(Q_global, K.g2g, V.g2g, bias(Q_global, "g2g"))
    o_gl, z_gl = meet(Q_global, K.g2l, V.g2l, bias(Q_global, "g2l"))
    o_lg, z_lg = meet(Q_long, K.l2g, V.l2g, bias(Q_long, "l2g"))
    o_ll, z_ll = _band(Q_long, K.l2l, V.l2l, bias(Q_long, "l2l"), w)
    # one softmax over both: shares softmax([z of one, z of the other]) = σ(difference)
    long = _joined(o_lg, o_ll, (z_ll - z_lg).sigmoid())
    return _joined(o_gg, o_gl, (z_gl - z_gg).sigmoid()), long


def _joined(one: Tensor, other: Tensor, share: Tensor) -> Tensor:
    """In the type of the shares, which is not that of half precision."""
    return torch.lerp(one.to(share.dtype), other.to(share.dtype), share).to(one.dtype)


def _band(Q: Tensor, K: Tensor, V: Tensor, bias: Tensor, w: int) -> tuple[Tensor, Tensor]:
    """(o, z) over |i − j| ≤ w: blocks of queries, each with the stretch of keys that it needs."""
    b, h, n, d = Q.shape
    block = min(n, max(64, w))
    width, n_blocks = block + 2 * w, -(-n // block)
    more = n_blocks * block - n
    q = F.pad(Q, (0, 0, 0, more)).flatten(0, 1).unflatten(1, (n_blocks, block))
    k, v = (F.pad(x, (0, 0, w, w + more)).flatten(0, 1).unfold(1, width, block).mT for x in (K, V))
    i = torch.arange(n + more, device=Q.device)[:, None]
    key = i + torch.arange(-w, w + 1, device=Q.device)
    outside = (i < n) & ((key < 0) | (key >= n))
    band = F.pad(bias.expand(-1, -1, n, 2 * w + 1), (0, 0, 0, more))
    band = band.masked_fill(outside, -math.inf).unflatten(2, (n_blocks, block))
    # a column more than the width: read in rows of the width, each row is one further right
    skewed = F.pad(band, (0, block), value=-math.inf).flatten(-2)[..., : block * width]
    skewed = skewed.unflatten(-1, (block, width)).flatten(0, 1)
    o, z = answer(q, k, v, skewed, 1 / math.sqrt(d))
    o, z = o.flatten(1, 2)[:, :n], z.flatten(1, 2)[:, :n, None]
    return o.unflatten(0, (b, h)), z.unflatten(0, (b, h))


def _are_pieces(name: str, pieces: Pieces) -> None:
    """Raises TypeError unless there is a tensor for each piece: of Booleans in masks, of whole
    numbers in labels."""
    if not isinstance(pieces, Pieces):
        kind = type(pieces).__name__
        raise TypeError(f"{name} is a {kind}; give Pieces(g2g, g2l, l2g, l2l)")
    for piece, x in pieces._asdict().items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}.{piece} is a {type(x).__name__}; give a tensor")
        if name == "masks" and x.dtype != torch.bool:
            raise TypeError(
                f"masks.{piece} is {x.dtype}; give Booleans, True = open: masks.{piece} != 0"
            )
        if name == "labels":
            _arguments.indices(f"labels.{piece}", x)


def _check(
    Q_global: Tensor,
    Q_long: Tensor,
    K: Pieces,
    V: Pieces,
    radius: int,
    labels: Pieces | None,
    P: Tensor | None,
    masks: Pieces | None,
) -> None:
    for name, x in (("K", K), ("V", V), ("masks", masks), ("labels", labels)):
        if x is not None:
            _are_pieces(name, x)
    if P is not None:
        _arguments.tensor("P", P, "(h, kinds, d)")
    for name, Q in (("Q_global", Q_global), ("Q_long", Q_long)):
        if not isinstance(Q, Tensor):
            raise TypeError(f"{name} is a {type(Q).__name__}; give a tensor of shape (…, n, d)")
        if Q.dim() < 2:
            raise ValueError(f"{name} has shape {tuple(Q.shape)}; give (…, n, d)")
    n_g, n_l = Q_global.shape[-2], Q_long.shape[-2]
    known: list[tuple[int, int]] = []
    for piece in Pieces._fields:
        Q, keys = (Q_global if piece[0] == "g" else Q_long), (n_g if piece[2] == "g" else n_l)
        k, v = getattr(K, piece), getattr(V, piece)
        if k.shape[-2] != keys:
            raise ValueError(f"K.{piece} has {k.shape[-2]} keys; there are {keys} such tokens")
        if (id(k), id(v)) not in known:  # shared ones are looked at once
            _qkv.check(Q, k, v, self_attention=False)
        known.append((id(k), id(v)))
        shape = (Q.shape[-2], 2 * radius + 1 if piece == "l2l" else keys)
        for name, given in (("labels", labels), ("masks", masks)):
            if given is not None and getattr(given, piece).shape != shape:
                found = tuple(getattr(given, piece).shape)
                raise ValueError(f"{name}.{piece} has shape {found}; give {shape}")
    if (labels is None) != (P is None):
        raise ValueError("labels and P belong together; give both or neither")
    if labels is not None and P is not None:
        largest = max(int(x.max()) for x in labels)
        if (smallest := min(int(x.min()) for x in labels)) < 0:
            raise ValueError(f"labels begin at {smallest}; number the vectors of P from 0")
        if largest >= P.shape[-2]:
            raise ValueError(f"labels go to {largest}, P has {P.shape[-2]} vectors; give more")
