"""Memorizing Transformer: one layer also asks the best keys of a very long past, gated per head.

    V_m = softmax(τ q̂ K̂_topkᵀ) V_topk,    V_c = attention in the window,    q̂ = q / |q|, k̂ = k / |k|
    V_a = σ(b) V_m + (1 − σ(b)) V_c

Wu et al. 2022 (arXiv 2203.08913), normalised as in the authors' code (meliad): queries and keys,
values not. The memory is a queue of the last m pairs (key, value) of this layer, each head its own;
they are numbers, no gradient goes there, and no position is told of what is retrieved. τ and b are
learned, one for each head; b begins at 0. Their τ begins at 1, and here at √d_head.

As a core it takes what a cache keeps for it. So segments stream through a GPT in training and in
writing. The window is the segment, and the last `window` pairs before it, as in Transformer-XL.
While nothing is remembered V_a is V_c; their memory begins with zeros, which halve it.

>>> Q, K, V = torch.ones(1, 1, 1, 2), torch.eye(2)[None, None], torch.eye(2)[None, None]
>>> nearest_pairs(Q, K, 1)[1].shape, recalled(Q, K, V, 2).tolist()
(torch.Size([1, 1, 1, 1]), [[[[0.5, 0.5]]]])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import CAUSAL, Dense, Make, Where, build, outside_inference, same_texts
from tfviz.models.gpt import GPT
from tfviz.position.t5_relative_bias import t5_bias

__all__ = ["Memorizing", "best_of_buckets", "memorizing_gpt", "nearest_pairs"]

Found = tuple[Float[Tensor, "b h L k"], Int[Tensor, "b h L k"]]
Search = Callable[[Tensor, Tensor, int], Found]
"""(Q (b, h, L, d), memory's K (b, h, m, d), k) → (scores, which of the m)."""


@named
def nearest_pairs(Q: Tensor, K: Tensor, k: int) -> Found:
    """The k keys with the largest q kᵀ, of all that are there if they are fewer: exactly."""
    scores, at = (Q @ K.mT).topk(min(k, K.shape[-2]), -1)
    return scores, at


@named
def best_of_buckets(Q: Tensor, K: Tensor, k: int) -> Found:
    """The best key of each of k buckets, key j in bucket j mod k: approximate, and what the
    authors' code does on accelerators. Of two good keys in one bucket the second is missed."""
    scores = Q @ K.mT
    short = -K.shape[-2] % min(k, K.shape[-2])
    scores = F.pad(scores, (0, short), value=-torch.inf)
    best, row = scores.unflatten(-1, (-1, min(k, K.shape[-2]))).max(-2)
    return best, row * best.shape[-1] + torch.arange(best.shape[-1], device=Q.device)


def recalled(Q: Tensor, K: Tensor, V: Tensor, k: int, search: Search = nearest_pairs) -> Tensor:
    """V_m: attention over the k pairs that each query finds; Q is scaled already."""
    scores, at = search(Q, K, k)
    b, h, L, k = at.shape
    values = V.gather(2, at.flatten(2)[..., None].expand(-1, -1, -1, V.shape[-1]))
    return torch.einsum("bhlk,bhlkd->bhld", scores.softmax(-1), values.view(b, h, L, k, -1))


class Memorizing(nn.Module):
    """The core. m = 0: no memory, attention in the window with normalised queries and keys.

    `local` makes what attends in the window; it must be Dense, or a bias made from it, for pairs
    are kept as they are.
    """

    @named
    def __init__(
        self, h: int, d_head: int, *, m: int, k: int = 32, window: int = 0, local: Make = Dense,
        search: Search = nearest_pairs,
    ) -> None:  # fmt: skip
        super().__init__()
        self.m, self.window = (
            _arguments.integer(n, x, 0) for n, x in (("m", m), ("window", window))
        )
        self.k, self.search, self.local = (
            _arguments.integer("k", k, 1),
            search,
            build(local, d_head, h),
        )
        self.tau = nn.Parameter(torch.full((h,), d_head**0.5))
        self.b = nn.Parameter(torch.zeros(h))
        if not isinstance(self.local, Dense) or type(self.local).turn is not Dense.turn:
            raise ValueError(f"local = {self.local!r}; give Dense, or a bias such as T5Bias(h)")

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        shared = Q.shape[1] != K.shape[1]
        if where.pattern != CAUSAL or where.crosses or where.attention_mask is not None or shared:
            raise ValueError(
                f"pattern = {where.pattern!r}; a memory is of one text, read from left to right: "
                "call it with causal(), without padding, another sequence's keys, or shared heads"
            )
        if Q.shape[1] != len(self.b):
            raise ValueError(f"b is for {len(self.b)} heads, Q has {Q.shape[1]}; give h = as many")
        Q, K = F.normalize(Q, dim=-1) * self.tau[:, None, None].to(Q.dtype), F.normalize(K, dim=-1)
        past = outside_inference(where.state) or tuple(x[:, :, :0].detach() for x in (K, V))
        same_texts(past[0], K)
        near = tuple(x[:, :, max(0, x.shape[2] - self.window) :] for x in past)
        inside = replace(where, start=near[0].shape[2], state=near, keep=None)
        assert isinstance(self.local, Dense)
        out, A = self.local(Q * Q.shape[-1] ** 0.5, K, V, inside)
        K_m, V_m = (x[:, :, max(0, x.shape[2] - self.m) :] for x in past)
        if K_m.shape[2] and self.m:
            gate = self.b.sigmoid()[:, None, None].to(Q.dtype)
            out = gate * recalled(Q, K_m, V_m, self.k, self.search) + (1 - gate) * out
            A = None  # weights over the window alone would not be what is done
        if where.keep is not None:
            rows, last = max(self.m, self.window), list[Tensor]()
            for old, new in zip(past, (K, V), strict=True):
                x = torch.cat([old, new.detach()], 2)
                last.append(x[:, :, max(0, x.shape[2] - rows) :])
            where.keep(tuple(last))
        return out, A


@named
def memorizing_gpt(
    vocab: int, d: int, h: int, N: int, *, m: int, window: int, k: int = 32, layer: int = -2,
    search: Search = nearest_pairs, local: Make | None = None, **more: Any,
) -> GPT:  # fmt: skip
    """A GPT whose `layer` has a memory of m pairs; the others see the window, with T5's biases
    unless `local` makes something else."""
    layer = range(N)[_arguments.integer("layer", layer, -N, N - 1)]

    def told(n: int) -> dict[str, Any]:
        sizes = {"m": m if n == layer else 0, "k": k, "window": window}
        return {
            "core": lambda: Memorizing(h, d // h, local=local or t5_bias(h), search=search, **sizes)
        }

    return GPT(vocab, d, h, N, layer=told, **more)


def remembering(model: nn.Module) -> Memorizing:
    """The core that has the memory, to look at or to give it another size.

    Raises ValueError where none has one.
    """
    for core in model.modules():
        if isinstance(core, Memorizing) and core.m:
            return core
    raise ValueError("no core of this model has a memory; make it by memorizing_gpt, m > 0")
