"""Attention as a soft key–value lookup, for one query and n slots.

    â_j = q k_jᵀ      a_j = exp(β â_j) / Σ_r exp(β â_r)      z = Σ_j a_j v_j

The operation is Vaswani et al. 2017 (arXiv 1706.03762); reading it as a dictionary follows
Beyer's slides (2022); the inverse temperature β is ours. β = 0 blends all values equally, β → ∞
returns the value of the best key, and β = 1/√d_k, the default, is what a Transformer uses.

>>> K = torch.eye(2)
>>> [round(a, 3) for a in lookup(torch.tensor([1.0, 0.0]), K, K, beta=2.0)[1].tolist()]
[0.881, 0.119]
"""

from __future__ import annotations

from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.dense_attention import attention

__all__ = ["hard_lookup", "lookup", "noisy_recall"]


@named
def lookup(
    q: Float[Tensor, "*batch d"],
    K: Float[Tensor, "*#batch n d"],
    V: Float[Tensor, "*#batch n dv"],
    beta: float | None = None,
) -> tuple[Float[Tensor, "*batch dv"], Float[Tensor, "*batch n"]]:
    """(z, a): the blend of the values and the weight of each slot, for each query.

    Attention divides scores by √d_k, so asking with β√d_k·q gives the logits β·qkᵀ.
    Raises ValueError if beta is negative or not finite; for the limit β → ∞ use `hard_lookup`.
    """
    if beta is not None:
        q = q * (_arguments.real("beta", beta, 0.0) * sqrt(q.shape[-1]))
    batch = q.shape[:-1]
    try:  # one table may serve all queries
        K, V = (x.expand(*batch, *x.shape[-2:]) for x in (K, V))
    except RuntimeError:
        raise ValueError(
            f"K has shape {tuple(K.shape)}, V {tuple(V.shape)}; for q of shape {tuple(q.shape)} "
            "give (n, d) tables, or one for each query"
        ) from None
    z, a = attention(q.unsqueeze(-2), K, V)  # (*batch, 1, dv), (*batch, 1, n)
    return z.squeeze(-2), a.squeeze(-2)


@named
def hard_lookup(
    q: Float[Tensor, "*batch d"],
    K: Float[Tensor, "*batch n d"],
    V: Float[Tensor, "*batch n dv"],
) -> Float[Tensor, "*batch dv"]:
    """The limit β → ∞: the value of the best key; keys that tie share equally."""
    scores = torch.einsum("...d,...nd->...n", q, K)
    best = (scores == scores.amax(-1, keepdim=True)).to(V.dtype)
    return torch.einsum("...n,...nv->...v", best / best.sum(-1, keepdim=True), V)


@named
def noisy_recall(
    slots: int, d_k: int, noise: float = 1.0, trials: int = 512, seed: int = 0
) -> tuple[Float[Tensor, "trials"], Bool[Tensor, "trials"]]:
    """(weight of the right slot, whether it came first) in `trials` lookups with a noisy query.

    Keys have independent N(0, 1) entries and a fresh set is drawn for each trial; the query is
    the first key plus noise·N(0, 1). A reader of slot contents needs the weight, a reader who
    takes the best slot only needs it to come first. β = 1/√d_k.
    """
    _arguments.integer("slots", slots, 1)
    _arguments.integer("d_k", d_k, 1)
    _arguments.integer("trials", trials, 1)
    noise = _arguments.real("noise", noise, 0.0)
    rng = torch.Generator().manual_seed(seed)
    weight, first = [], []
    for part in torch.arange(trials).split(max(1, 2_000_000 // (slots * d_k))):  # bounds memory
        K = torch.randn(len(part), slots, d_k, generator=rng)
        q = K[:, 0] + noise * torch.randn(len(part), d_k, generator=rng)
        _, a = lookup(q, K, K)
        weight.append(a[:, 0])
        first.append(a.argmax(-1) == 0)
    return torch.cat(weight), torch.cat(first)
