"""The scene of chapter 12: four heads look back, some near-sighted, some far-sighted."""

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.longer_context.alibi import ramp, slopes

SENTENCE = "Ann hid the key under the mat and drove to work so Ben found it"
WORDS = SENTENCE.split()
HEADS = 4
LAST = len(WORDS) - 1


class FadingHeads(Explorer):
    """What ALiBi's four slopes leave of a word so many words back, where all scores are equal."""

    label = "Four heads of ALiBi look back: what each word counts by its distance"
    scene = True
    rem = 30, 30, 31.5, 31.5, 26.5
    data = handed(words=WORDS, heads=HEADS)

    back = knob(11, low=0, high=LAST, label="words back")

    def numbers(self) -> Numbers:
        """What each word counts in each head, and the same of the word pointed at."""
        words = exact(range(LAST + 1))
        share = ramp(LAST, words, m=slopes(HEADS).double()[:, None]).exp()
        return {"share": share, "here": share[:, LAST - self.back]}
