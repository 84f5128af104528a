"""How alike the heads of a small model are, step by step, with and without disagreement loss."""

from functools import cache

from torch import Tensor

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.heads.disagreement_regularization import between, disagreement

NAMES = {0.0: "none", 0.1: "output 0.1", 1.0: "output 1", 10.0: "output 10"}
STRENGTHS = [0.0, 0.1, 1.0, 10.0]
EVERY, STEPS = 20, 200


@cache
def trained() -> Numbers:
    """Cosines of each pair of heads, by λ, step and layer, from the experiment."""
    kept = stored.load("head_disagreement")
    return {
        "at": kept["at"],
        "pairs": [kept["pairs"][NAMES[x]] for x in STRENGTHS],
    }


class HeadDisagreement(Explorer):
    """Four heads of a layer: the cosine of the outputs of each pair, while the model learns."""

    label = "How alike heads are while a model learns, with and without disagreement loss"
    rem = 42.5, 43.5, 43, 42.5, 79
    data = handed(trained, strengths=STRENGTHS)

    strength = knob(0.0, of=STRENGTHS, label="strength of the loss", letter="λ")
    step = knob(STEPS, low=0, high=STEPS, step=EVERY, label="step of training")
    layer = knob(2, of=[1, 2], label="layer")
    asks = (
        "With λ = 1, go back to step 0 and forward again: after how many steps do the heads stop "
        "moving apart?"
    )

    def pairs(self, strength: float) -> list[Tensor]:
        """The matrix of the layer that is shown, step by step."""
        found = trained()["pairs"][STRENGTHS.index(strength)]
        return [exact(layers[self.layer - 1]) for layers in found]

    def numbers(self) -> Numbers:
        """The matrix of pairs, D, and the mean cosine of two heads over training, without the loss
        and with it."""
        shown = self.pairs(self.strength)[self.step // EVERY]
        return {
            "shown": shown,
            "agreement": -disagreement(shown),
            "without": [between(x) for x in self.pairs(0)],
            "with": [between(x) for x in self.pairs(self.strength)],
        }
