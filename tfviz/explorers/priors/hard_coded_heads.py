"""A trained head, and a head that was never trained: a bell at a fixed place next to each query."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.explorers.compressed.low_rank_map import L, trained
from tfviz.formula import Formula
from tfviz.priors.hard_coded_gaussian import FAR, bell, hard_coded_definition


class HardCodedHeads(Explorer):
    """A trained head's map of 32 characters beside the prior, exp(bell) ÷ (s √(2π))."""

    label = "A trained attention map beside a hard-coded one"
    rem = 44, 44, 41.5, 40, 110
    data = handed(trained, bell=Formula(bell, reals=frozenset({"spread"})), far=FAR)

    i = knob(0, low=0, high=L - 1, label="query", letter="i")
    offset = knob(-1, low=-6, high=6, label="offset", letter="Δ")
    spread = knob(1.0, of=[0.5, 1.0, 2.0, 4.0], label="spread", letter="s")
    divided = knob(False, label="divide each row by its sum")
    layer = knob(1, of=[1, 2], label="layer of the trained head")
    asks = "Change Δ and s: how much of the trained head's weight can the bells cover?"

    def numbers(self) -> Numbers:
        """Both maps, the sums of the prior's rows, and the weight that the two have in common."""
        head = trained()["heads"][self.layer - 1]
        Q, K = exact(head["Q"]), exact(head["K"])
        content = (Q @ K.mT / Q.shape[-1] ** 0.5).softmax(-1)
        mask = torch.ones(L, L, dtype=torch.bool)
        given = [self.offset], self.spread, None, self.divided
        prior = hard_coded_definition(content[None], mask, *given)[1][0]
        common = torch.minimum(content, prior).sum(-1).mean()
        return {"content": content, "prior": prior, "sums": prior.sum(-1), "common": common}
