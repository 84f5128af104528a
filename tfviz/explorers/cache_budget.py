"""How much memory the past takes: the cache of public models, or of a shape of one's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

import traitlets as t

from tfviz import _arguments
from tfviz.basics.kv_cache import MODELS, Shape, cache_bytes
from tfviz.explorers.base import Explorer

MOST = {"N": 128, "h": 128, "d_head": 256, "batch": 256, "L": 131_072}
BYTES = (4, 2, 1)


class CacheBudget(Explorer):
    """The bytes of a key/value cache, drawn.

    model       a name of `tfviz.basics.kv_cache.MODELS`; N, h, h_kv, d_head replace its numbers
    L, batch    tokens kept, sequences written at a time
    b           bytes for each number: 4, 2 or 1
    slide       show what the formula of erratum E10 gives too

    Raises ValueError for numbers out of range, and unless h_kv divides h.
    """

    module: ClassVar[str] = "cache_budget"
    label: ClassVar[str] = "Cache budget: bytes of keys and values of a model"
    min_height: ClassVar[str] = "44.5rem"
    min_height_narrow: ClassVar[str] = "81rem"
    narrow: ClassVar[int] = 640

    model = t.Unicode().tag(sync=True)
    N = t.Int().tag(sync=True)
    h = t.Int().tag(sync=True)
    h_kv = t.Int().tag(sync=True)
    d_head = t.Int().tag(sync=True)
    b = t.Int(2).tag(sync=True)
    batch = t.Int(1).tag(sync=True)
    L = t.Int(4096).tag(sync=True)
    slide = t.Bool(False).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    def __init__(
        self,
        model: str = "Gemma 2 9B",
        *,
        L: int = 4096,
        batch: int = 1,
        b: int = 2,
        slide: bool = False,
        prompt: str = "",
        **shape: int,
    ) -> None:
        if model not in MODELS:
            raise ValueError(f"model = {model!r}; choose one of {', '.join(MODELS)}")
        if unknown := shape.keys() - {"N", "h", "h_kv", "d_head"}:
            raise ValueError(f"{', '.join(unknown)} is no size of a cache; N, h, h_kv, d_head are")
        known = asdict(MODELS[model])
        sizes = {name: shape.get(name, known[name]) for name in ("N", "h", "h_kv", "d_head")}
        for name, value in (sizes | {"L": L, "batch": batch}).items():
            _arguments.integer(name, value, 1, MOST.get(name))
        if b not in BYTES:
            raise ValueError(f"b = {b!r}; a number takes 4, 2 or 1 bytes here")
        if sizes["h"] % sizes["h_kv"]:
            raise ValueError(f"h = {sizes['h']}, h_kv = {sizes['h_kv']}; h_kv must divide h")
        super().__init__(
            **sizes, model=model, L=L, batch=batch, b=b, slide=slide,
            prompt=prompt or "Predict: which sliders can make the cache larger than the model, "
            "and which one shrinks it without forgetting a token?",
        )  # fmt: skip

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"models": [asdict(shape) for shape in MODELS.values()], "most": MOST}

    @property
    def shape(self) -> Shape | None:
        """The public model, if N, h and d_head are its own; h_kv may be another."""
        s = MODELS[self.model]
        return s if (s.N, s.h, s.d_head) == (self.N, self.h, self.d_head) else None

    @property
    def bytes(self) -> int:
        """Of the cache, as the library computes them."""
        return cache_bytes(self.L, self.N, self.h_kv, self.d_head, self.b, self.batch)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={getattr(self, name)}" for name in ("N", "h", "h_kv", "d_head"))
        return f"CacheBudget({self.model!r}, {sizes}, L={self.L}, batch={self.batch}, b={self.b})"
