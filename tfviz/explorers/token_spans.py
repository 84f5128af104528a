"""A text of brackets, each token in the colour of the span it asks for."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from tfviz import stored
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob

VARIANTS = {"free": "λ = 0", "priced": "λ = 0.01"}


@cache
def texts() -> dict[str, list[dict[str, Any]]]:
    """Tokens, z_t, and the distance to the matching bracket, of each variant and seed."""
    found = stored.load("brackets")
    names = found["names"]
    return {
        variant: [
            {"words": [names[t] for t in one["text"]], "z": one["spans"], "back": one["back"]}
            for one in found["found"][variant]
        ]
        for variant in VARIANTS
    }


class TokenSpans(Explorer):
    """64 tokens with near (round) and far (square) brackets, and how far each looks back.

    price   "free" or "priced";  seed   which training, 0 to 2;  token   which is framed, 0 to 63

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "token_spans"
    label: ClassVar[str] = "Dynamic span: each token says how far back it looks"
    min_height: ClassVar[str] = "36rem"
    min_height_narrow: ClassVar[str] = "59rem"

    token = knob(26, low=0, high=63, label="token", letter="t")
    price = knob("priced", of=VARIANTS, label="price of a span")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Move along the text: which tokens look far back?"

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"texts": texts()}

    def numbers(self) -> dict[str, Any]:
        """z of the token, the distance to its bracket (0: it closes none), the mean of all z."""
        one = texts()[self.price][self.seed]
        return {
            "z": one["z"][self.token],
            "back": one["back"][self.token],
            "mean": sum(one["z"]) / len(one["z"]),
        }
