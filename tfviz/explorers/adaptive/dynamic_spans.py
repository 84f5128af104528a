"""A text of brackets, each token in the colour of the span it asks for."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, handed, knob

VARIANTS = {"free": "λ = 0", "priced": "λ = 0.01"}


@cache
def texts() -> dict[str, list[Numbers]]:
    """Tokens, z_t, and the distance to the opening bracket, for each variant and seed."""
    result = stored.load("dynamic_spans")
    names = result["names"]
    return {
        variant: [
            {"words": [names[t] for t in one["text"]], "z": one["spans"], "back": one["back"]}
            for one in result["found"][variant]
        ]
        for variant in VARIANTS
    }


class DynamicSpans(Explorer):
    """64 tokens with near (round) and far (square) brackets, and how far each looks back."""

    label = "Dynamic span: each token says how far back it looks"
    rem = 28.5, 29, 29, 26, 53.5
    data = handed(texts=texts)

    token = knob(26, low=0, high=63, label="token", letter="t")
    price = knob("priced", of=VARIANTS, label="price of a span")
    seed = knob(0, of=[0, 1, 2], label="seed")
    asks = "Move along the text: which tokens look far back?"

    def numbers(self) -> Numbers:
        """z of the token, the distance to its opening bracket (0: none), the mean of all z."""
        one = texts()[self.price][self.seed]
        span_and_distance = {name: one[name][self.token] for name in ("z", "back")}
        return span_and_distance | {"mean": sum(one["z"]) / len(one["z"])}
