"""What a key/value cache costs: its bytes, and the operations that it saves.

    bytes = 2 · B · L · N · h_kv · d_h · b

K and V of L tokens for each of N layers and h_kv heads, b bytes a number. Pope et al. 2022 (arXiv
2211.05102) size it. `cache_bytes_of` asks a model, which may keep less: only a window, say.

>>> cache_bytes(L=4096, N=42, h_kv=8, d_head=256, b=2) / 2**30
1.3125
>>> near = GPT(vocab=11, d=8, h=2, N=1, pattern=sliding_window(lookback=2))
>>> cache_bytes_of(near, L=4096) == cache_bytes(L=3, N=1, h_kv=2, d_head=4, b=4)
True
"""

from __future__ import annotations

import copy

import torch

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Cache
from tfviz.models.gpt import GPT
from tfviz.patterns import sliding_window as sliding_window  # for the example above

__all__ = ["cache_bytes", "cache_bytes_of", "kept_bytes", "token_flops"]


@named
def cache_bytes(L: int, N: int, h_kv: int, d_head: int, b: int = 2, batch: int = 1) -> int:
    """2 · batch · L · N · h_kv · d_head · b; `b` bytes for each number (2: bfloat16)."""
    sizes = {"L": L, "N": N, "h_kv": h_kv, "d_head": d_head, "b": b, "batch": batch}
    total = 2
    for name, size in sizes.items():
        total *= _arguments.integer(name, size, 0 if name == "L" else 1)
    return total


@named
def kept_bytes(cache: Cache) -> int:
    """What the cache of a model holds, counted tensor by tensor."""
    return sum(kept.bytes for kept in (cache or {}).values())


@torch.no_grad()
@named
def cache_bytes_of(model: GPT, L: int, batch: int = 1) -> int:
    """What the cache of a model holds after L tokens, in the model's own type of numbers.

    The model is asked itself, on the meta device, where nothing is computed; so windows, shared
    heads and states of one size count as what they are. The model stays as it is.
    """
    shapes = copy.deepcopy(model).to("meta").eval()
    t = torch.zeros(
        _arguments.integer("batch", batch, 1), _arguments.integer("L", L, 0), device="meta"
    )
    cache: Cache = {}
    if L:
        shapes(t.long(), cache)
    return kept_bytes(cache)


@named
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
