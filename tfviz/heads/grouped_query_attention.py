"""Grouped-query attention: groups of query heads, and one head of keys and values for each group.

    head_m = softmax(Q_m K_gᵀ/√d_h) V_g,      g = ⌊m h_kv / h⌋

Ainslie et al. 2023 (arXiv 2305.13245), section 2.2. h_kv = h is multi-head attention and h_kv = 1
multi-query attention. Neighbours form a group, as in the paper and in Hugging Face (interleaved:
0 0 1 1); x-transformers tiles the key heads (0 1 0 1), and `tiled_order` brings its query heads
into our order. A model has it by `h_kv`: `GPT(…, h_kv=2)`. Its core decides how often a key is read
in a step of generation: `Dense` leaves that to torch, `Grouped` reads it once for the whole group.

`convert` makes such a model of a trained one (section 2.1): each new head of keys is the mean of
its group's, or the first, or a random one.

>>> reads(6, 2), reads(6, 6), reads(6, 1)
([0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0])
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _fused
from tfviz._arguments import named
from tfviz.cores import Dense, Where
from tfviz.dense_attention import attention, visible
from tfviz.models.blocks import MultiHeadAttention

__all__ = [
    "Grouped",
    "convert",
    "first_of_group",
    "fresh",
    "grouped_definition",
    "mean_of_group",
    "reads",
    "tiled_order",
]

Model = TypeVar("Model", bound=nn.Module)


def _groups(h: int, h_kv: int) -> int:
    """Query heads in a group. Raises ValueError unless h_kv divides h."""
    if _arguments.integer("h", h, 1) % _arguments.integer("h_kv", h_kv, 1, h):
        raise ValueError(f"h = {h}, h_kv = {h_kv}; h_kv must divide h, so that groups are equal")
    return h // h_kv


@named
def reads(h: int, h_kv: int) -> list[int]:
    """Which head of keys and values each head of queries reads."""
    share = _groups(h, h_kv)
    return [m // share for m in range(h)]


@named
def tiled_order(h: int, h_kv: int) -> list[int]:
    """The query heads of a model that tiles its key heads (m reads m mod h_kv), group by group.

    With its queries, and the rows of W^o, in this order it is a model of ours.

    >>> tiled_order(6, 2)
    [0, 2, 4, 1, 3, 5]
    """
    _groups(h, h_kv)
    return [m for g in range(h_kv) for m in range(g, h, h_kv)]


@named
def grouped_definition(
    Q: Float[Tensor, "*b h Lq d"],
    K: Float[Tensor, "*b h_kv Lk d"],
    V: Float[Tensor, "*b h_kv Lk dv"],
    mask: Bool[Tensor, "*h Lq Lk"] | None = None,
) -> tuple[Float[Tensor, "*b h Lq dv"], Float[Tensor, "*b h Lq Lk"]]:
    """(out, A), head by head."""
    found = []
    for m, g in enumerate(reads(Q.shape[-3], K.shape[-3])):
        own = mask[m] if mask is not None and mask.dim() == 3 else mask
        found.append(attention(Q[..., m, :, :], K[..., g, :, :], V[..., g, :, :], own))
    out, A = zip(*found, strict=True)
    return torch.stack(out, -3), torch.stack(A, -3)


class Grouped(Dense):
    """Attention whose step of generation reads each key once for all the queries of its group.

    One query of each head is left when a cache is used. Those of a group become the rows of one
    matrix, (b, h_kv, h / h_kv, d_head), which meets its keys in one product. With more queries at
    a time, as in training, it is `Dense`: there each key serves many rows anyway.
    """

    by_distance = True

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        (b, h, Lq, _), h_kv = Q.shape, K.shape[1]
        if Lq != 1 or where.need_weights:
            return super().attend(Q, K, V, where)
        mask = visible(where.pattern, 1, K.shape[2], where.attention_mask, Q.device, where.at)
        if mask is not None and mask.dim() > 2 and mask.shape[-3] > 1:  # a row for each head
            mask = mask.expand(b, h, 1, -1).reshape(b, h_kv, h // h_kv, -1)
        out = _fused.attention(Q.reshape(b, h_kv, h // h_kv, -1), K, V, mask)
        return out.reshape(b, h, 1, -1), None


# --- a trained model with fewer heads of keys and values ------------------------------------------

Pool = Callable[[Float[Tensor, "h_kv share rows"]], Float[Tensor, "h_kv rows"]]
"""Makes one head of each group of heads. The weights of a head are one row of numbers."""


@named
def mean_of_group(heads: Float[Tensor, "h_kv share rows"]) -> Float[Tensor, "h_kv rows"]:
    """Mean pooling, which the paper chooses."""
    return heads.mean(1)


@named
def first_of_group(heads: Float[Tensor, "h_kv share rows"]) -> Float[Tensor, "h_kv rows"]:
    """The first head of each group; the others are dropped."""
    return heads[:, 0]


@named
def fresh(heads: Float[Tensor, "h_kv share rows"]) -> Float[Tensor, "h_kv rows"]:
    """Random numbers as widely spread as the trained ones: nothing of them is kept."""
    return heads.std() * torch.randn_like(heads[:, 0])


@named
def convert(model: Model, h_kv: int, pool: Pool = mean_of_group) -> Model:
    """A copy of the model with h_kv heads of keys and values in each of its attentions.

    The paper leaves an encoder as it is: of an encoder–decoder give the decoder. Raises ValueError
    unless h_kv divides the heads that there are, and TypeError for a model without such attentions.
    """
    model = copy.deepcopy(model)
    found: list[Any] = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    if not found or not all(hasattr(m, "W_qkv") for m in found):
        raise TypeError(
            f"model = {type(model).__name__} has no attention with W_qkv; give a GPT, or a BERT, "
            "without a `project` of its own"
        )
    for attend in found:
        _convert(attend, h_kv, pool)
    return model


@torch.no_grad()
def _convert(attend: Any, h_kv: int, pool: Pool) -> None:
    share, d_head = _groups(attend.h_kv, h_kv), attend.d_head
    W = torch.cat([attend.W_qkv.weight, attend.W_qkv.bias[:, None]], 1)  # the bias of a row with it
    queries, *both = W.split(attend.widths)
    pooled = [
        pool(x.unflatten(0, (h_kv, share, d_head)).flatten(2)).reshape(h_kv * d_head, -1)
        for x in both
    ]
    W = torch.cat([queries, *pooled])
    attend.h_kv, attend.widths = h_kv, [len(x) for x in (queries, *pooled)]
    attend.W_qkv = nn.Linear(W.shape[1] - 1, len(W)).to(W)
    attend.W_qkv.weight.copy_(W[:, :-1])
    attend.W_qkv.bias.copy_(W[:, -1])
