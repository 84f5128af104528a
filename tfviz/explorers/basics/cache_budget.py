"""How much memory the past takes: the cache of public models, or of one's own sizes."""

from dataclasses import asdict

import traitlets as t

from tfviz import _arguments
from tfviz.basics.cache_cost import cache_bytes
from tfviz.basics.public_models import MODELS, Shape
from tfviz.explorers.base import Explorer, Knob, Numbers, handed, knob, own

LENGTHS = [2**k for k in range(7, 18)]
WIDTHS = [16, 32, 64, 80, 96, 128, 192, 256]
MOST = 128  # layers, heads


EXAMPLES: dict[str, Numbers] = {"": {"h_kv": 1}}


class CacheBudget(Explorer):
    """The bytes of a key/value cache, drawn.

    model    a name in `tfviz.basics.public_models`; N, h, h_kv, d_head replace its numbers. Its
             windows count as long as N, h and d_head are its own; sizes of one's own have none.

    Raises ValueError unless h_kv divides h.
    """

    label = "Cache budget: bytes for the keys and values of a model"
    rem = 28.5, 28.5, 29.5, 29.5, 62.5
    narrow = 640
    data = handed(models=[asdict(shape) for shape in MODELS.values()])

    model = knob("Gemma 2 9B", of=list(MODELS), label="model")
    N = own(Knob(1, low=1, high=MOST, label="layers", letter="N"), optional=True)
    h = own(Knob(1, low=1, high=MOST, label="query heads", letter="h"), optional=True)
    h_kv = own(t.Int(1), optional=True)
    d_head = own(
        Knob(1, of=WIDTHS, between=True, low=1, label="width of a head", letter="dₕ"),
        optional=True,
    )
    L = knob(4096, of=LENGTHS, between=True, low=1, label="tokens per text", letter="L")
    batch = knob(1, low=1, high=128, label="texts at a time", letter="B")
    b = knob(2, of=(4, 2, 1), label="bytes per number")
    slide = knob(False, label="formula from a slide (erratum E10)")
    examples = EXAMPLES
    asks = (
        "Choose Llama 2 7B, a smaller model: how many texts outgrow its weights? Then open the "
        "fold: what shrinks a cache without forgetting a token?"
    )

    def prepare(self, said: Numbers) -> Numbers:
        name = said.setdefault("model", "Gemma 2 9B")
        if name in MODELS:  # else the knob refuses it
            known = asdict(MODELS[name])
            said = {size: known[size] for size in ("N", "h", "d_head")} | said
            h = _arguments.integer("h", said["h"], 1, MOST)
            h_kv = said.setdefault("h_kv", h if h % known["h_kv"] else known["h_kv"])
            if h % _arguments.integer("h_kv", h_kv, 1, h):
                raise ValueError(f"h = {h}, h_kv = {h_kv}; h_kv must divide h")
        return said

    @property
    def shape(self) -> Shape | None:
        """The public model, if N, h and d_head are its own; h_kv may be another."""
        s = MODELS[self.model]
        return s if (s.N, s.h, s.d_head) == (self.N, self.h, self.d_head) else None

    def numbers(self) -> Numbers:
        """Bytes of the cache as set, with a pair of keys and values for each head and for all
        heads, of the weights (0 for sizes of one's own), and what the slide computes."""
        d, shape = self.h * self.d_head, self.shape
        size = (self.d_head, self.b, self.batch)
        own, mha, mqa = (
            shape.cache_bytes(self.L, self.b, self.batch, n)
            if shape
            else cache_bytes(self.L, self.N, n, *size)
            for n in (self.h_kv, self.h, 1)
        )
        weights = shape.weights * self.b if shape else 0
        slide = self.L * self.h * (shape.d if shape else d) * self.N * self.b * self.batch
        return {"own": own, "mha": mha, "mqa": mqa, "weights": weights, "slide": slide}
