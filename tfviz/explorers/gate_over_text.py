"""SPALM's gate over a text: how far each place trusts the model, and what its neighbours say."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import torch

from tfviz import stored
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob

PUSHES = [n / 2 for n in range(-12, 13)]


@cache
def text() -> dict[str, Any]:
    """Of the stored experiment: letters, neighbours' letters, scores of h, of m and of the gate."""
    found = stored.load("near_contexts")["shown"]
    letters = [{" ": "␣", "\n": "⏎"}.get(x, x) for x in found["contexts"]["letters"]]
    return {"letters": letters, **found["text"]}


class GateOverText(Explorer):
    """A stretch of held-out text, read by a trained SPALM with four neighbours a place.

    token   which place, 0 to 47;  push   what is added to the gate's score at all places, −6 to 6

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "gate_over_text"
    label: ClassVar[str] = "SPALM: the gate over a text"
    min_height: ClassVar[str] = "50rem"
    min_height_narrow: ClassVar[str] = "76rem"

    token = knob(10, low=0, high=47, label="place", letter="t")
    push = knob(0.0, low=-6, high=6, step=0.5, label="push the gate")
    asks = "Move along the text: where does the gate let the memory in?"

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {**text(), "pushes": PUSHES}

    def gates(self, push: float) -> torch.Tensor:
        return (torch.tensor(text()["gate"], dtype=torch.float64) + push).sigmoid()

    def nats(self, push: float) -> torch.Tensor:
        """−ln p of the letter that came, at each place."""
        h, m = (torch.tensor(text()[name], dtype=torch.float64) for name in ("h", "m"))
        g, after = self.gates(push)[:, None], torch.tensor(text()["text"][1:])
        return -(g * h + (1 - g) * m).log_softmax(-1).gather(1, after[:, None])[:, 0]

    def numbers(self) -> dict[str, Any]:
        """g of each place, p of the letter that came for this place with the gate as it is, shut
        (memory alone) and open (model alone), the mean nats, and these for every push."""
        one = {name: torch.tensor(text()[name][self.token], dtype=torch.float64) for name in "hm"}
        after = text()["text"][self.token + 1]
        return {
            "gates": self.gates(self.push).tolist(),
            "p": float((-self.nats(self.push)[self.token]).exp()),
            "alone": float(one["h"].softmax(-1)[after]),
            "memory": float(one["m"].softmax(-1)[after]),
            "nats": float(self.nats(self.push).mean()),
            "curve": [float(self.nats(x).mean()) for x in PUSHES],
        }
