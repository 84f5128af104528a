"""The key/value cache: what each token has offered is kept, and only the new token asks.

    K_t = [K_{t-1}; x_t W^k],   V_t = [V_{t-1}; x_t W^v],   z_t = softmax(x_t W^q K_tᵀ / √d_k) V_t

    bytes = 2 · B · L · N · h_kv · d_h · b

Nobody invented it: it is how decoders with a causal mask have always been run. Shazeer 2019 (arXiv
1911.02150) says why it, and not arithmetic, limits the speed; Pope et al. 2022 (arXiv 2211.05102)
size it. `models.blocks.MultiHeadAttention` holds the same for many heads and rows. A window or a
compression of the cache, which some of `MODELS` have, is not counted here.

>>> cache_bytes(L=4096, N=42, h_kv=8, d_head=256, b=2) / 2**30
1.3125
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._pytree import tree_leaves

from tfviz import _arguments
from tfviz.attention import attention
from tfviz.cores import Cache

Rows = tuple[Float[Tensor, "t d_k"], Float[Tensor, "t d_v"]]  # K and V of the tokens so far


def attend_next(
    x: Float[Tensor, "d"],
    W_q: Float[Tensor, "d d_k"],
    W_k: Float[Tensor, "d d_k"],
    W_v: Float[Tensor, "d d_v"],
    kept: Rows | None = None,
) -> tuple[Float[Tensor, "d_v"], Rows]:
    """(z, K and V with one row more): one head of causal self-attention, for its newest token."""
    if x.dim() != 1:
        raise ValueError(f"x has shape {tuple(x.shape)}; give the row of one token, (d,)")
    K, V = (x @ W_k)[None], (x @ W_v)[None]
    if kept is not None:
        if kept[0].shape[1:] != K.shape[1:] or kept[1].shape[1:] != V.shape[1:]:
            raise ValueError(
                f"kept has shapes {tuple(kept[0].shape)}, {tuple(kept[1].shape)}, the new rows "
                f"{tuple(K.shape)}, {tuple(V.shape)}; give the K and V that the same W made"
            )
        K, V = torch.cat([kept[0], K]), torch.cat([kept[1], V])
    return attention((x @ W_q)[None], K, V)[0][0], (K, V)


def cache_bytes(L: int, N: int, h_kv: int, d_head: int, b: int = 2, batch: int = 1) -> int:
    """2 · batch · L · N · h_kv · d_head · b; `b` bytes for each number (2: bfloat16)."""
    sizes = {"L": L, "N": N, "h_kv": h_kv, "d_head": d_head, "b": b, "batch": batch}
    total = 2
    for name, size in sizes.items():
        total *= _arguments.integer(name, size, 0 if name == "L" else 1)
    return total


def kept_bytes(cache: Cache) -> int:
    """What the cache of a model holds, counted tensor by tensor."""
    states = [kept.state for kept in (cache or {}).values()]
    return sum(x.numel() * x.element_size() for x in tree_leaves(states) if isinstance(x, Tensor))


def token_flops(t: int, N: int, d: int, h: int, h_kv: int, d_ff: int, cached: bool = True) -> int:
    """Operations for the token at position t of a model of N blocks; t tokens stand before it.

    With a cache: one row goes through every block. Without: all t + 1, to use the last one only.
    Products only, and not the logits, which both make once.
    """
    _arguments.integer("t", t, 0)
    for name, size in {"N": N, "d": d, "h": h, "h_kv": h_kv, "d_ff": d_ff}.items():
        _arguments.integer(name, size, 1)
    if d % h or h % h_kv:
        raise ValueError(f"d = {d}, h = {h}, h_kv = {h_kv}; h must divide d, and h_kv divide h")
    weights = 2 * d * d + 2 * d * (d // h) * h_kv + 2 * d * d_ff  # W_q, W_o; W_k, W_v; the MLP
    rows = 1 if cached else t + 1
    return N * rows * (2 * weights + 4 * (t + 1) * d)


@dataclass(frozen=True)
class Shape:
    """What the cache of a public model depends on; `weights` counts its parameters."""

    name: str
    N: int
    h: int
    h_kv: int
    d_head: int
    d: int
    weights: int
    context: int

    def cache_bytes(self, L: int, b: int = 2, batch: int = 1, h_kv: int | None = None) -> int:
        """With another number of key/value heads, if one is given."""
        heads = self.h_kv if h_kv is None else h_kv
        return cache_bytes(L, self.N, heads, self.d_head, b, batch)


MODELS = {
    shape.name: shape
    for shape in (
        Shape("GPT-2", 12, 12, 12, 64, 768, 124_439_808, 1024),
        Shape("GPT-2 XL", 48, 25, 25, 64, 1600, 1_557_611_200, 1024),
        Shape("Llama 2 7B", 32, 32, 32, 128, 4096, 6_738_415_616, 4096),
        Shape("Llama 2 70B", 80, 64, 8, 128, 8192, 68_976_648_192, 4096),
        Shape("Llama 3 8B", 32, 32, 8, 128, 4096, 8_030_261_248, 8192),
        Shape("Gemma 2 9B", 42, 16, 8, 256, 3584, 9_241_705_984, 8192),
        Shape("Falcon 7B", 32, 71, 1, 64, 4544, 6_921_720_704, 2048),
    )
}
"""As their public configurations say; the whole length is kept in every layer."""
