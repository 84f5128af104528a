"""Features that heads share: mixing vectors of a trained layer, before and after compression."""

from functools import cache

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.heads.collaborative_heads import parameters

SIZES = [48, 36, 24, 16, 12, 8, 4]
WIDTH = 48


def right(errors: list[float]) -> float:
    """The mean share that is no error."""
    return 1 - sum(errors) / len(errors)


@cache
def compressed() -> Numbers:
    """Mixing vectors by number of features, and accuracies without more training, from the
    experiment: means of its seeds."""
    found = stored.load("shared_features")
    accuracies = {
        way: [right(found["whole"]), *(right([x[1] for x in rows]) for rows in by_size.values())]
        for way, by_size in found["converted"].items()
    }
    blind = right(found["blind"])
    return {"mixing": found["shown"], "accuracies": accuracies, "blind": blind}


class SharedDimensions(Explorer):
    """The mixing vectors of four heads, and what a smaller set of features costs."""

    label = "Features of queries and keys that four heads share, and what fewer of them cost"
    rem = 38, 38, 35, 38, 66.5
    data = handed(compressed, sizes=SIZES, width=WIDTH)

    d_k = knob(48, of=SIZES[::-1], label="features of queries and keys", letter="d̃ₖ")
    asks = "Go through the sizes: how many heads does a feature serve, and when does accuracy drop?"

    def numbers(self) -> Numbers:
        """The mixing matrix ÷ its largest entry, how many heads a feature serves, and weights."""
        m = exact(compressed()["mixing"][str(self.d_k)])
        served = m.abs().sum(0) ** 2 / (m**2).sum(0)
        return {
            "mixing": m / m.abs().max(),
            "served": served.mean(),
            "weights": parameters(WIDTH, len(m), self.d_k),
        }
