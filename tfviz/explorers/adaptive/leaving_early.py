"""The scene of chapter 15: words leave a stack of blocks as soon as they are sure enough."""

from tfviz.adaptive.calm_confidence import softmax_response
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob

WORDS = {
    # word: how much its logit gains on that of its rival in each block
    "Once": 0.35,
    "upon": 3.2,
    "a": 2.3,
    "time": 4.0,
    "a ": 1.1,
    "king": 0.5,
    "kept": 0.75,
    "bees": 0.2,
}
BLOCKS = 6


class LeavingEarly(Explorer):
    """Eight words in six blocks, and a line of confidence. The gains of the logits are made up."""

    label = "Each word of a sentence leaves after the first block that is sure enough of it"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(words=WORDS, blocks=BLOCKS)

    threshold = knob(0.75, low=0.05, high=0.95, step=0.05, label="how sure is sure enough")

    def numbers(self) -> Numbers:
        """How sure each block is of each word, the block after which it leaves, and all that are
        computed."""
        gains = exact(list(WORDS.values()))[:, None] * exact(range(1, BLOCKS + 1))
        logits = gains[..., None] * exact([1, 0])
        sure = softmax_response(logits, None, lambda: logits)
        ready = sure >= self.threshold
        ready[:, -1] = True
        exits = ready.int().argmax(1) + 1
        return {"sure": sure, "exits": exits, "total": exits.sum()}
