"""Three kinds of tokens: a question in letters, a digit in patches and a sound in frames."""

from __future__ import annotations

import torch

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.stored import see_and_hear as stored

L = sum(stored.LENGTHS.values())
MASKS = {"joint": "one sequence, every pair", "block": "block mask: its own kind only"}


class MultimodalTokens(Explorer):
    """A trained model answers a question about what it sees or hears.

    digit    which of ten images it sees
    beeps    which of ten sounds it hears
    token    the token whose weights are shown
    """

    uses = ("shared/numbers", "shared/encoder")
    data = handed(
        model=stored.for_page,
        shown=stored.shown,
        heard=stored.heard,
        questions=stored.QUESTIONS,
        alphabet=stored.ALPHABET.letters,
        lengths=stored.LENGTHS,
    )
    label = "One sequence of text, image and sound: what a token attends to, and the answer"
    rem = 39, 39, 41.5, 41.5, 81

    question = knob(
        stored.QUESTIONS[0],
        of={
            "eye>4?": "eye>4? (what it sees)",
            "eye<5?": "eye<5? (what it sees)",
            "ear>4?": "ear>4? (what it hears)",
            "ear<5?": "ear<5? (what it hears)",
        },
        label="text",
    )
    digit = knob(8, low=0, high=9, label="digit in the image")
    beeps = knob(3, low=0, high=9, label="beeps in the sound")
    mask = knob("joint", of=MASKS, label="attention")
    token = knob(stored.ASKED, low=0, high=L - 1, label="token", letter="i")
    asks = "Go back to one sequence and ask about the ear: where do the weights of the “?” go now?"

    def numbers(self) -> Numbers:
        """The probability of "yes" without and with the block mask, and the token's mean weights in
        the last block under the mask that is chosen."""
        given = (
            self.question,
            torch.tensor(stored.shown()[self.digit]),
            torch.tensor(stored.heard()[self.beeps], dtype=torch.float64),
        )
        found = {name: stored.read(stored.exact(name == "block"), *given) for name in MASKS}
        weights = found[self.mask][1][-1].mean(0)[self.token]
        return {"yes": [yes for yes, _ in found.values()], "weights": weights}
