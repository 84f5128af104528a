"""SPALM's gate over a text: how far each token trusts the model, and the retrieved letters."""

from functools import cache

import torch

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

PUSHES = [n / 2 for n in range(-12, 13)]


@cache
def text() -> Numbers:
    """Of the stored experiment: letters, neighbours' letters, scores of h, of m and of the gate."""
    shown = stored.load("knn_language_model")["shown"]
    letters = [{" ": "␣", "\n": "⏎"}.get(x, x) for x in shown["contexts"]["letters"]]
    return {"letters": letters, **shown["text"]}


class SpalmGate(Explorer):
    """A stretch of held-out text, read by a trained SPALM with four neighbours per token.

    push    what is added to the gate's score of every token
    """

    label = "SPALM: the gate along a text"
    rem = 37, 37, 37, 38.5, 69.5
    data = handed(text, pushes=PUSHES)

    token = knob(4, low=0, high=47, label="letter", letter="t")
    push = knob(0.0, low=-6, high=6, step=0.5, label="push on every gate")
    asks = "Move along the text: where does the gate let more of the memory in?"

    def nats(self, push: float) -> torch.Tensor:
        """−ln p of the next letter, at each place."""
        h, m, gate = (exact(text()[name]) for name in ("h", "m", "gate"))
        g, after = (gate + push).sigmoid()[:, None], torch.tensor(text()["text"][1:])
        return -(g * h + (1 - g) * m).log_softmax(-1).gather(1, after[:, None])[:, 0]

    def numbers(self) -> Numbers:
        """g of each place; for this place, p of the next letter with the gate as it is, shut
        (memory alone) and open (model alone); the mean loss in nats, now and for every push."""
        one = {name: exact(text()[name][self.token]).softmax(-1) for name in "hm"}
        after, nats = text()["text"][self.token + 1], self.nats(self.push)
        gates_and_loss = {
            "gates": (exact(text()["gate"]) + self.push).sigmoid(),
            "nats": nats.mean(),
        }
        p = {"p": (-nats[self.token]).exp(), "alone": one["h"][after], "memory": one["m"][after]}
        return gates_and_loss | p | {"curve": [self.nats(x).mean() for x in PUSHES]}
