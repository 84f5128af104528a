"""Public models, as far as their key/value cache goes; sizes and windows are those of `anatomy`.

In Gemma 2, every other layer keeps the last 4,096 tokens only:

>>> gemma = MODELS["Gemma 2 9B"]
>>> gemma.near, gemma.window
(21, 4096)
>>> [gemma.cache_bytes(L) / 2**30 for L in (4096, 8192)]
[1.3125, 1.96875]
"""

from __future__ import annotations

from dataclasses import dataclass

from tfviz import anatomy
from tfviz.basics import cache_cost

__all__ = ["MODELS", "Shape"]


@dataclass(frozen=True)
class Shape:
    """What the cache of a public model depends on, if all its layers have the same heads.

    N         layers, of which `near` keep no more than the last `window` tokens
    h, h_kv   heads of queries, and of keys and values; `d_head` numbers each
    d         width of the model
    weights   number of its parameters
    context   the longest text that it is made for, in tokens
    """

    name: str
    N: int
    h: int
    h_kv: int
    d_head: int
    d: int
    weights: int
    context: int
    near: int = 0
    window: int = 0

    def cache_bytes(self, L: int, b: int = 2, batch: int = 1, h_kv: int | None = None) -> int:
        """Bytes for `batch` texts of L tokens, with b bytes a number; windows are counted.

        With another number of key/value heads, if one is given. Raises ValueError as
        `cache_cost.cache_bytes` does.
        """
        heads = self.h_kv if h_kv is None else h_kv
        everywhere = cache_cost.cache_bytes(L, self.N, heads, self.d_head, b, batch)
        if not self.near or self.window >= L:
            return everywhere
        beyond = L - self.window  # what the layers with a window have forgotten
        return everywhere - cache_cost.cache_bytes(beyond, self.near, heads, self.d_head, b, batch)


def _shape(model: str) -> Shape:
    a = anatomy.of(model)
    (heads,) = {layer.heads for layer in a.layers}
    reaches = [layer.reach for layer in a.layers if layer.reach is not None]
    assert heads is not None  # all of these attend in every layer
    return Shape(
        a.name,
        len(a.layers),
        heads.queries,
        heads.keys,
        heads.key_width,
        a.fields["width"],
        a.parameters.total,
        a.fields["context"],
        near=len(reaches),
        window=max(reaches, default=0),
    )


MODELS = {
    shape.name: shape
    for shape in map(
        _shape,
        (
            *("gpt-2", "gpt-2-xl", "llama-2-7b", "llama-2-70b", "llama-3-8b", "llama-3.1-405b"),
            *("qwen3-32b", "gemma-2-9b", "gemma-3-27b", "falcon-7b"),
        ),
    )
}
"""By name: some whose layers all have the same heads. `anatomy` knows these and others."""
