"""Memory-compressed attention (MCA): a strided convolution makes one key and value of every c.

Liu, Saleh, Pot, Goodrich, Sepassi, Kaiser, Shazeer 2018 (arXiv 1801.10198), section 4.2.3. With
kernels κ and ω of c matrices each, whose stride is their size,

    k'_s = Σ_m k_{sc+m} κ_m,   v'_s = Σ_m v_{sc+m} ω_m        for m = 0, …, c − 1
    out  = softmax(Q K'ᵀ/√d) V'                                (L, ⌈L/c⌉) times (⌈L/c⌉, d)

Zeros fill the last group. Key s mixes the tokens sc, …, sc + c − 1, so under causal attention it is
for queries after the last of them. Then the first query has no key at all: the first token's own
key and value stand before the others, as they are, and every query may use them. With that one
counted as slot 0,

    query i may use slot s  ⟺  s c ≤ i                         a staircase with steps of c

The authors' code (tensor2tensor, `multihead_self_attention_reduced`) convolves X once, over all
heads and with a bias, and projects keys and values from the result; it drops the last incomplete
group always. Here each head has kernels of its own for keys and values, without biases.

The values' kernel mixes the numbers of a value, so there is no L × L matrix of weights that is
applied, only L × ⌈L/c⌉ of them. `learned=False` makes each slot the mean of its group, and then
there is one.

>>> staircase(L=7, c=3).int()
tensor([[1, 0, 0],
        [1, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [1, 1, 0],
        [1, 1, 0],
        [1, 1, 1]], dtype=torch.int32)
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, outside_inference, same_texts
from tfviz.dense_attention import CAUSAL, attention

__all__ = [
    "MemoryCompressed",
    "mca",
    "mca_definition",
    "mean_kernel",
    "mean_shares",
    "squeezed",
    "staircase",
]

ROWS = 512  # queries that are answered at a time


@named
def staircase(L: int, c: int, start: int = 0) -> Bool[Tensor, "L slots"]:
    """Which slots the queries at start, …, start + L − 1 may use: s c ≤ i. Slot 0 is the first
    token, slot s the group that ends before token s c."""
    i = torch.arange(_arguments.integer("L", L, 1)) + _arguments.integer("start", start, 0)
    slots = complete_groups(start + L, _arguments.integer("c", c, 1)) + 1
    return torch.arange(slots) * c <= i[:, None]


def complete_groups(L: int, c: int) -> int:
    """How many groups of c tokens end before the last of L tokens."""
    return (L - 1) // c


@named
def mean_kernel(c: int, d: int) -> Float[Tensor, "c d d"]:
    """The kernel that makes of each group its mean."""
    return torch.eye(d).expand(_arguments.integer("c", c, 1), d, d) / c


@named
def mean_shares(L: int, c: int, causal: bool = False) -> Float[Tensor, "slots L"]:
    """The share of each token in each slot, where a slot is the mean of its group. Zeros fill the
    last group; if it is causal, the first token alone is slot 0, and incomplete groups are none."""
    groups = complete_groups(L, c) if causal else -(-L // c)
    shares = (torch.arange(L) // c == torch.arange(groups)[:, None]) / c
    return torch.cat([torch.eye(1, L), shares]) if causal else shares


@named
def squeezed(
    X: Float[Tensor, "b h L d"], kernel: Float[Tensor, "*h c d e"]
) -> Float[Tensor, "b h groups e"]:
    """Σ_m x_{sc+m} kernel_m for each group s of c tokens; zeros fill the last one."""
    (L, c) = X.shape[2], kernel.shape[-3]
    groups = F.pad(X, (0, 0, 0, -L % c)).unflatten(2, (-(-L // c), c))
    return (groups.flatten(3) @ kernel.flatten(-3, -2)).to(X.dtype)


@named
def mca_definition(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    keys: Float[Tensor, "*h c d d"],
    values: Float[Tensor, "*h c dv dv"],
    causal: bool = False,
) -> tuple[Float[Tensor, "b h L dv"], Float[Tensor, "b h L slots"]]:
    """The output, and the weights of the slots. If it is causal, slot 0 is the first token."""
    K_c, V_c = squeezed(K, keys), squeezed(V, values)
    if not causal:
        return attention(Q, K_c, V_c)
    L, c = Q.shape[2], keys.shape[-3]
    whole = complete_groups(L, c)
    K_c = torch.cat((K[:, :, :1], K_c[:, :, :whole]), 2)
    V_c = torch.cat((V[:, :, :1], V_c[:, :, :whole]), 2)
    return attention(Q, K_c, V_c, staircase(L, c).to(Q.device))


@named
def mca(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    keys: Float[Tensor, "*h c d d"],
    values: Float[Tensor, "*h c dv dv"],
    causal: bool = False,
) -> Float[Tensor, "b h L dv"]:
    """The same by torch's fused kernel, where causal queries meet no step above their own."""
    _qkv.check(Q, K, V, self_attention=causal)
    _check_kernel("keys", keys, K)
    _check_kernel("values", values, V)
    if keys.shape[-3] != values.shape[-3]:
        raise ValueError(
            f"keys has groups of {keys.shape[-3]} tokens, values of {values.shape[-3]}; give both "
            "the same c"
        )
    if not causal:
        return _fused.attention(Q, squeezed(K, keys), squeezed(V, values)).to(V.dtype)
    K_c, V_c = _extended(None, K, keys)[0], _extended(None, V, values)[0]
    return _answered(Q, K_c, V_c, keys.shape[-3], 0)


def _check_kernel(name: str, kernel: Tensor, X: Tensor) -> None:
    """Raises TypeError or ValueError unless the kernel mixes groups of vectors as wide as X's."""
    _arguments.like(name, kernel, X, "(c, d, d) or (h, c, d, d)")
    h, d = X.shape[1], X.shape[-1]
    fits = kernel.dim() in (3, 4) and kernel.shape[-2:] == (d, d) and kernel.shape[-3] > 0
    if not fits or kernel.shape[:-3] not in ((), (1,), (h,)):
        raise ValueError(
            f"{name} has shape {tuple(kernel.shape)}; give (c, {d}, {d}), or (h, c, {d}, {d}) with "
            f"h = {h}"
        )


Kept = tuple[Float[Tensor, "b h slots d"], Float[Tensor, "b h rest d"]]
"""Of keys or of values: the slots, and the tokens that are in none yet, 1 to c of them."""


def _extended(kept: Kept | None, X: Float[Tensor, "b h L d"], kernel: Tensor) -> Kept:
    """What is kept after these tokens more."""
    slots, rest = (X[:, :, :1], X[:, :, :0]) if kept is None else kept
    rest = torch.cat([rest, X], 2)
    full = complete_groups(rest.shape[2], kernel.shape[-3]) * kernel.shape[-3]
    return torch.cat([slots, squeezed(rest[:, :, :full], kernel)], 2), rest[:, :, full:]


def _answered(Q: Tensor, keys: Tensor, values: Tensor, c: int, start: int) -> Tensor:
    """What causal queries from `start` on get of these slots."""
    answers = []
    for rows in Q.split(ROWS, 2):
        steps = staircase(rows.shape[2], c, start).to(Q.device)
        n = steps.shape[1]
        answers.append(_fused.attention(rows, keys[:, :, :n], values[:, :, :n], steps))
        start += rows.shape[2]
    return torch.cat(answers, 2).to(values.dtype)


class MemoryCompressed(nn.Module):
    """Memory-compressed attention as a core: `GPT(…, core=MemoryCompressed)`.

    c         tokens of a group, which is the stride and the size of the kernels; the paper has 3
    learned   False for the mean of each group in place of the kernels

    It takes full and causal attention of a text to itself, without padding. After a causal text it
    keeps the slots, and the 1 to c tokens that are in none yet. Weights are there with
    `learned=False` only: a learned kernel mixes the numbers of a value.
    """

    @named
    def __init__(self, d_head: int, h: int, c: int = 3, learned: bool = True) -> None:
        super().__init__()
        d = _arguments.integer("d_head", d_head, 1)
        shape = _arguments.integer("h", h, 1), _arguments.integer("c", c, 1), d, d
        self.c, self.learned = c, learned
        if learned:
            bound = 1 / math.sqrt(c * d)
            self.keys = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
            self.values = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

    def kernels(self, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        """Those of keys and of values, in their types. Raises ValueError for other widths."""
        if not self.learned:
            return mean_kernel(self.c, K.shape[-1]).to(K), mean_kernel(self.c, V.shape[-1]).to(V)
        keys, values = self.keys.to(K.dtype), self.values.to(V.dtype)
        _check_kernel("keys", keys, K)
        _check_kernel("values", values, V)
        return keys, values

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        streams = where.pattern == CAUSAL
        causal = replace(where, keep=None if streams else where.keep).whole_text(
            "a slot mixes all tokens of a group", "slots that later tokens would change"
        )
        K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
        kernels, L = self.kernels(K, V), where.start + K.shape[2]
        if not causal:
            out, keys = mca(Q, K, V, *kernels), squeezed(K, kernels[0])
        else:
            _qkv.check(Q, K, V, self_attention=True)
            kept: Any = (None, None) if where.state is None else outside_inference(where.state)
            if where.state is not None:
                same_texts(kept[0][0], K)
            state = tuple(map(_extended, kept, (K, V), kernels))
            if where.keep:
                where.keep(state)
            keys = state[0][0]
            out = _answered(Q, keys, state[1][0], self.c, where.start)
        if self.learned or not where.need_weights:
            return out, None
        steps = staircase(Q.shape[2], self.c, where.start).to(Q.device) if causal else None
        B = attention(Q, keys, keys, steps)[1]
        return out, B @ mean_shares(L, self.c, causal).to(B)
