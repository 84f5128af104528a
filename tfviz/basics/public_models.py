"""Public models, as far as their key/value cache goes.

Some of them have a window or a compression of the cache; here the whole length is kept in every
layer.

>>> MODELS["Gemma 2 9B"].cache_bytes(4096) / 2**30
1.3125
"""

from __future__ import annotations

from dataclasses import dataclass

from tfviz.basics import cache_cost

__all__ = ["MODELS", "Shape"]


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
        return cache_cost.cache_bytes(L, self.N, heads, self.d_head, b, batch)


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
"""As their public configurations say."""
