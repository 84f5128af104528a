"""One task, two texts: where a head that compares looks, and where heads look that do not."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from tfviz import stored
from tfviz.dense_attention import CAUSAL, attention
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.formula import Formula
from tfviz.priors.average_attention import share
from tfviz.priors.hard_coded_gaussian import bell, hard_coded_definition
from tfviz.priors.synthesizer import dense_scores

PRIORS = {
    "average": "the average, 1/(i + 1)",
    "bell": "a bell, Δ = −1",
    "random": "a random Synthesizer",
    "dense": "a dense Synthesizer",
}


@cache
def trained() -> Numbers:
    """What heads of three trained models see in four texts, from the stored experiment."""
    found: dict[str, Any] = stored.load("synthesizers")
    return {**found["shown"], "letters": found["letters"], "digits": found["digits"]}


class SynthesizerMaps(Explorer):
    """Four texts, each of twelve pairs and a letter that is asked for, and five maps of each."""

    label = "A head that compares tokens, beside four heads that do not, on two texts"
    rem = 44, 44, 43.5, 43, 97.5
    data = handed(trained, priors=list(PRIORS), bell=Formula(bell, reals=frozenset({"spread"})))

    text = knob(2, of=[2, 3, 4], label="the other text")
    prior = knob("random", of=PRIORS, label="bars show")
    asks = "Try other texts and other bars: do any bars follow the pair, as the trained head does?"

    def numbers(self) -> Numbers:
        """The maps of the other text, content first, and the last rows of both texts."""
        one, other = self.maps(0), self.maps(self.text - 1)
        rows = [[maps["content"][-1], maps[self.prior][-1]] for maps in (one, other)]
        common = [torch.minimum(*pair).sum() for pair in rows]
        return {"maps": [*other.values()], "rows": rows, "common": common}

    def maps(self, n: int) -> dict[str, Tensor]:
        """Content says softmax(Q Kᵀ/√d_head); of the others only the dense one reads the text."""
        shown = trained()
        Q, K, guess, R, W = (exact(shown[name]) for name in ("Q", "K", "guess", "R", "W"))
        L = len(R)
        i, j, mask = torch.arange(L)[:, None], torch.arange(L), CAUSAL.mask(L)
        return {
            "content": attention(Q[n], K[n], K[n], mask)[1],
            "average": share(i, j) * mask,
            "bell": hard_coded_definition(torch.ones(1, L, 1, dtype=torch.float64), mask, [-1])[1][
                0
            ],
            "random": R.masked_fill(~mask, -torch.inf).softmax(-1),
            "dense": dense_scores(guess[n], W).masked_fill(~mask, -torch.inf).softmax(-1),
        }
