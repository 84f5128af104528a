"""How much memory the past takes: the cache of public models, or of a shape of one's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from tfviz.basics.cache_cost import cache_bytes
from tfviz.basics.public_models import MODELS, Shape
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import Knob, knob, own

LENGTHS = [2**k for k in range(7, 18)]
BATCHES = [2**k for k in range(9)]
WIDTHS = [16, 32, 64, 80, 96, 128, 192, 256]
BYTES = (4, 2, 1)


class CacheBudget(Explorer):
    """The bytes of a key/value cache, drawn.

    model       a name in `tfviz.basics.public_models`; N, h, h_kv, d_head replace its numbers
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

    model = knob("Gemma 2 9B", of=list(MODELS), label="model")
    N = own(Knob(1, low=1, high=128, label="layers", letter="N"), optional=True)
    h = own(Knob(1, low=1, high=128, label="query heads", letter="h"), optional=True)
    h_kv = own(Knob(1, low=1, high=128, label="key/value heads", letter="hₖᵥ"), optional=True)
    d_head = own(
        Knob(1, of=WIDTHS, between=True, low=1, label="numbers in a head", letter="dₕ"),
        optional=True,
    )
    L = knob(4096, of=LENGTHS, between=True, low=1, label="tokens kept", letter="L")
    batch = knob(1, of=BATCHES, between=True, label="sequences at a time", letter="B")
    b = knob(2, of=BYTES, label="bytes for a number")
    slide = knob(False, label="formula of a slide (erratum E10)")
    asks = (
        "Predict: which sliders can make the cache larger than the model, and which one shrinks "
        "it without forgetting a token?"
    )

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        name = said.setdefault("model", "Gemma 2 9B")
        if name in MODELS:  # else the knob refuses it
            known = asdict(MODELS[name])
            said = {size: known[size] for size in ("N", "h", "h_kv", "d_head")} | said
        if said.get("h") and said["h"] % said["h_kv"]:
            raise ValueError(f"h = {said['h']}, h_kv = {said['h_kv']}; h_kv must divide h")
        return said

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"models": [asdict(shape) for shape in MODELS.values()]}

    @property
    def shape(self) -> Shape | None:
        """The public model, if N, h and d_head are its own; h_kv may be another."""
        s = MODELS[self.model]
        return s if (s.N, s.h, s.d_head) == (self.N, self.h, self.d_head) else None

    @property
    def bytes(self) -> int:
        """Of the cache, as the library computes them."""
        return cache_bytes(self.L, self.N, self.h_kv, self.d_head, self.b, self.batch)
