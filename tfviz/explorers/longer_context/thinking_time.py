"""The scene of chapter 13: one block is applied to each word until the word has had enough."""

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.longer_context.act import halting

WORDS = {
    # word: what each step adds, its halting number
    "the": 0.97,
    "horse": 0.49,
    "raced": 0.26,
    "past": 0.55,
    "the ": 0.97,
    "barn": 0.36,
    "fell": 0.13,
}
MOST = 8


class ThinkingTime(Explorer):
    """Seven words whose steps are stacked up to a line. The halting numbers are made up."""

    label = "One block, applied to each word again and again until its steps reach the line"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(words=WORDS, most=MOST)

    enough = knob(0.9, low=0.1, high=0.95, step=0.05, label="what the steps must add up to")

    def numbers(self) -> Numbers:
        """The steps of each word, and what each step weighs."""
        steps = exact(list(WORDS.values()))[:, None].expand(-1, MOST)
        N, _, p = halting(steps, eps=1 - self.enough)
        return {"N": N, "p": p, "total": N.sum()}
