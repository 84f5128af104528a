"""The mean of all tokens so far, token by token: what average attention keeps of a text."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.formula import Formula
from tfviz.priors.average_attention import running_mean, share

VALUES = [6, 0, 3, 9, 2, 5, 3, 12, 1, 4, 7, 8]


class CumulativeAverage(Explorer):
    """Twelve tokens of one number each, with the mean up to each of them."""

    label = "Average attention: the mean of all tokens so far, token by token"
    rem = 40, 40, 38, 37, 67
    data = handed(values=VALUES, share=Formula(share))

    i = knob(6, low=0, high=len(VALUES) - 1, label="token", letter="i")
    first = knob(VALUES[0], low=0, high=12, label="value of token 0")
    asks = "Change the value of token 0: how far does the mean move at token 1, and at token 11?"

    def numbers(self) -> Numbers:
        """The values, the mean up to each token, and the weights in the mean at token i."""
        values = exact([self.first, *VALUES[1:]])
        j = torch.arange(self.i + 1)
        return {
            "values": values,
            "means": running_mean(values[:, None])[:, 0],
            "weights": [share(self.i, int(n)) for n in j],
        }
