"""Two distributions of the next letter, a model's and its neighbours', and their blend."""

from functools import cache

import torch

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.longer_context.knn_lm import mixed, p_knn

SHOWN = 10
SHARES = [n / 20 for n in range(20)]
SIZES = {0: "2,000", 1: "8,000", 2: "30,000", 3: "120,000"}


@cache
def contexts() -> Numbers:
    """Of the stored experiment: 16 contexts, what the model says, and the neighbours in 4 stores.

    The letters of each context are numbered anew, the likeliest by model and neighbours first.
    """
    kept = stored.load("knn_language_model")["shown"]["contexts"]
    rows, near = [], [{"d2": x["d2"], "words": []} for x in kept["near"]]
    for n, row in enumerate(kept["contexts"]):
        p = exact(row["p"])
        number = {letter: m for m, letter in enumerate(row["letters"])}
        words = [[number[w] for w in x["words"][n]] for x in kept["near"]]
        said = sum((torch.bincount(torch.tensor(w), minlength=len(p)) for w in words), 192 * p)
        order = sorted(range(len(p)), key=lambda m: (m != number[row["next"]], -float(said[m])))
        order = sorted(order[:SHOWN], key=lambda m: -row["p"][m]) + order[SHOWN:]
        for x, w in zip(near, words, strict=True):
            x["words"].append([order.index(m) for m in w])
        names = [kept["letters"][row["letters"][m]] for m in order]
        shown = [{" ": "␣", "\n": "⏎"}.get(letter, letter) for letter in names]
        probabilities = {
            "p": [row["p"][m] for m in order],
            "next": order.index(number[row["next"]]),
        }
        rows.append({"text": row["text"], "letters": shown, **probabilities})
    return {"rows": rows, "near": near}


class KnnInterpolation(Explorer):
    """Held-out contexts of a small character model, with a store of the text it was trained on."""

    label = "λ mixer: the model, its neighbours, and their blend"
    rem = 42.5, 43.5, 43.5, 44, 86.5
    data = handed(contexts, shares=SHARES, shown=SHOWN)

    place = knob(7, low=0, high=15, label="context")
    share = knob(0.25, low=0, high=0.95, step=0.05, label="share of the neighbours", letter="λ")
    size = knob(0, of=SIZES, label="keys in the store")
    k = knob(32, low=1, high=48, label="neighbours", letter="k")
    temperature = knob(1.0, of=[0.3, 1.0, 3.0, 10.0, 30.0], label="temperature", letter="T")
    asks = (
        "Try the two stores of middle size, then play through the contexts: where do the "
        "neighbours help?"
    )

    def near(self, place: int, size: int) -> torch.Tensor:
        """p_kNN of one context."""
        x = contexts()["near"][size]
        d2 = exact(x["d2"][place][: self.k])
        words = torch.tensor(x["words"][place][: self.k])
        return p_knn(d2, words, len(contexts()["rows"][place]["p"]), self.temperature)

    def curve(self, size: int) -> torch.Tensor:
        """Nats of the letter that came, the mean of all contexts, for each of SHARES."""
        rows, shares = contexts()["rows"], exact(SHARES)[:, None]
        p = exact([row["p"][row["next"]] for row in rows])
        q = torch.stack([self.near(n, size)[row["next"]] for n, row in enumerate(rows)])
        return -((1 - shares) * p + shares * q).log().mean(1)

    def numbers(self) -> Numbers:
        """The three distributions of the letters shown, nats of the one that came, the curve over
        λ, and the best λ of each store."""
        row = contexts()["rows"][self.place]
        p, q = exact(row["p"]), self.near(self.place, self.size)
        both, shown = mixed(p, q, self.share), slice(SHOWN)
        curves = [self.curve(size) for size in SIZES]
        distributions = {"model": p[shown], "near": q[shown], "both": both[shown]}
        best = [SHARES[c.argmin()] for c in curves]
        return distributions | {
            "nats": -both[row["next"]].log(),
            "curve": curves[self.size],
            "best": best,
        }
