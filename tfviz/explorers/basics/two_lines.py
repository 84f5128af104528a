"""The scene of chapter 4: a translation is written word by word below its source."""

import torch

from tfviz import patterns
from tfviz.basics.encoder_decoder import cross_attention
from tfviz.dense_attention import attention
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

SOURCE = "I", "do", "not", "see", "the", "black", "cat"
TARGET: dict[str, dict[str, float]] = {
    # word that is to be written: how strongly it asks for each word of the source
    "je": {"I": 1},
    "ne": {"not": 0.9, "do": 0.7},
    "vois": {"see": 1},
    "pas": {"not": 1},
    "le": {"the": 0.9, "cat": 0.5},
    "chat": {"cat": 1},
    "noir": {"black": 1, "cat": 0.35},
}
LOUD = 5.0


class TwoLines(Explorer):
    """A decoder that writes “je ne vois pas le chat noir” while it looks at the English source and
    at what it has written. Queries and keys are made up: one direction for each word's meaning."""

    label = "A translation is written word by word: threads to the source and to what is written"
    scene = True
    rem = 30, 30, 31.5, 31.5, 25.5
    data = handed(source=SOURCE, target=TARGET, loud=LOUD)

    step = knob(3, low=0, high=len(TARGET) - 1, label="the word that is written now")

    def numbers(self) -> Numbers:
        """The weights of the present word: on the words of the source, and on the begin sign and
        the words before it."""
        Y = exact([[asks.get(word, 0) for word in SOURCE] for asks in TARGET.values()])
        H = torch.eye(len(SOURCE), dtype=Y.dtype)
        loud = LOUD * len(SOURCE) ** 0.5 * H  # attention divides by the root of the width
        cross = cross_attention(Y, H, loud, H, H)[1]
        read = torch.cat([torch.zeros_like(Y[:1]), Y[:-1]])  # shifted right: begin, je, ne, …
        past = attention(Y @ loud, read, read, patterns.causal())[1]
        return {"cross": cross[self.step], "past": past[self.step, : self.step + 1]}
