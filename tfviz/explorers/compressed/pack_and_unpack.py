"""Luna on six tokens of two numbers: what each row of Z packs, and what each token reads of it."""

import math

import torch
from torch import Tensor

from tfviz.compressed.luna import luna_definition
from tfviz.explorers.base import Explorer, Numbers, handed, knob

WORDS = ["red", "blue", "green", "three", "seven", "nine"]
TOKENS = [5, 25, 45, 110, 135, 160]
ROWS = [25, 135, 250]
LOUD = 2.0


def turned(angles: list[int]) -> Tensor:
    """Vectors of length LOUD, by their angle in degrees."""
    radians = torch.tensor(angles, dtype=torch.float64) * math.pi / 180
    return LOUD * torch.stack([radians.cos(), radians.sin()], -1)


class PackAndUnpack(Explorer):
    """Three colours and three numbers, and l rows of Z; token vectors are queries and keys."""

    label = "Luna: the text is packed into l rows, and every token reads them"
    rem = 44, 44, 44, 44, 108.5
    data = handed(words=WORDS, tokens=TOKENS, rows=ROWS, loud=LOUD)

    l = knob(2, low=1, high=3, label="rows of Z", letter="l")
    angle = knob(25, low=0, high=180, step=5, label="direction of the first row, in degrees")
    query = knob(0, low=0, high=5, label="query", letter="i")
    asks = "Turn the first row to the numbers: what do the colours read now? Then set l = 1."

    def numbers(self) -> Numbers:
        """The shares of packing and of unpacking, their product, and those of full attention."""
        X, R = turned(TOKENS), turned([self.angle, *ROWS[1 : self.l]])
        pack = (R @ X.mT / 2**0.5).softmax(-1)
        unpack = (X @ (pack @ X).mT / 2**0.5).softmax(-1)
        full = (X @ X.mT / 2**0.5).softmax(-1)
        return {"pack": pack, "unpack": unpack, "A": luna_definition(X, X, X, R)[1], "full": full}
