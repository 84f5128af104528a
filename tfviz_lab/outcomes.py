"""What a comparison lets us say: paired differences, their intervals, and seven words.

    a, b = [1.22, 1.24, 1.23, 1.25, 1.22], [1.26, 1.27, 1.28, 1.28, 1.25]   nats, seed by seed
    difference(a, b)          of the means, with the interval that holds it in 95 of 100 cases
    outcome(a, b, delta=…)    and the word for it, which the text beside a figure has to use

    better, worse             the interval leaves out 0, and the difference is more than delta
    better in every seed      besides, all of five seeds or more agree
    equal to within δ         the whole interval lies within ±delta
    cannot tell               everything else
    has not learned it        it does not beat the trivial line: nothing is said of the mechanism
    learns sooner             better early on, and the curves meet later; see `sooner`

Scores are errors or nats, the less the better, unless `more` says that more is better. delta is the
smallest difference that counts.

    >>> a, b = [1.22, 1.24, 1.23, 1.25, 1.22], [1.26, 1.27, 1.28, 1.28, 1.25]
    >>> outcome(a, b, delta=0.02).told()
    'better in every seed: 0.036 less, 0.025 to 0.047'
    >>> outcome(a, b, delta=0.02, trivial=1.2).word
    'has not learned it'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from tfviz import _arguments

NOT_LEARNED = "has not learned it"
MANY = 5
"""From so many seeds on, their agreement is worth a word: three agree one time in four by luck."""


@dataclass(frozen=True)
class Difference:
    """Of two lists of scores, seed by seed: its mean, and its 95 % interval."""

    mean: float
    low: float
    high: float
    of_seeds: tuple[float, ...]

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return stdev(self.of_seeds) / math.sqrt(len(self.of_seeds))


@dataclass(frozen=True)
class Outcome:
    """A difference, and what it is called."""

    difference: Difference
    delta: float
    word: str

    def told(self, digits: int = 3) -> str:
        """In a line: the word, how much, and the interval."""
        x = self.difference
        low, high = (x.low, x.high) if x.mean > 0 else (-x.high, -x.low)
        how = "more" if x.mean > 0 else "less"
        amount = f"{abs(x.mean):.{digits}f} {how}, {low:.{digits}f} to {high:.{digits}f}"
        return f"{self.word}: {amount}"


def t95(n: int) -> float:
    """How many standard errors of a mean of n the 95 % interval reaches to either side.

    Of Student's distribution. Raises ValueError for fewer than two.
    """
    from scipy.stats import t

    return float(t.ppf(0.975, _arguments.integer("n", n, 2) - 1))


def difference(scores: Sequence[float], reference: Sequence[float]) -> Difference:
    """scores − reference, where the entries of one place are of one seed.

    Raises ValueError for lists of other lengths, and for fewer than two seeds.
    """
    if len(scores) != len(reference):
        raise ValueError(
            f"scores of {len(scores)} seeds, reference of {len(reference)}: a difference is taken "
            "seed by seed; give both for the same seeds"
        )
    apart = [a - b for a, b in zip(scores, reference, strict=True)]
    reach = t95(len(apart)) * stdev(apart) / math.sqrt(len(apart))
    middle = mean(apart)
    return Difference(middle, middle - reach, middle + reach, tuple(apart))


def outcome(
    scores: Sequence[float],
    reference: Sequence[float],
    *,
    delta: float,
    trivial: float | None = None,
    more: bool = False,
) -> Outcome:
    """The word for scores beside a reference, both by seed.

    `trivial` is what a rule reaches that learns nothing, in the unit of the scores. `more`: the
    more the better.

    Raises ValueError for other numbers of seeds, and for delta below 0.
    """
    apart = difference(scores, reference)
    _arguments.real("delta", delta, 0.0)
    return Outcome(apart, delta, _word(apart, mean(scores), delta, trivial, more))


def _word(apart: Difference, score: float, delta: float, trivial: float | None, more: bool) -> str:
    if trivial is not None and not beats(score, trivial, more):
        return NOT_LEARNED
    if -delta <= apart.low and apart.high <= delta:
        return f"equal to within {delta:g}"
    if apart.low <= 0 <= apart.high or abs(apart.mean) <= delta:
        return "cannot tell"
    word = "better" if (apart.mean > 0) == more else "worse"
    agree = all((x > 0) == (apart.mean > 0) for x in apart.of_seeds)
    return f"{word} in every seed" if agree and len(apart.of_seeds) >= MANY else word


def beats(score: float, trivial: float, more: bool = False) -> bool:
    """Whether it is better than the trivial line."""
    return score > trivial if more else score < trivial


def sooner(
    curve: Sequence[Sequence[float]],
    reference: Sequence[Sequence[float]],
    steps: Sequence[int],
    *,
    delta: float,
    more: bool = False,
) -> int | None:
    """The step at which a curve that was better at first is no longer so, None if there is none.

    Each curve has a list for each of `steps`, with a score for each seed. Only then one may say
    that it learns sooner, and names this step.
    """
    words = [
        outcome(a, b, delta=delta, more=more).word for a, b in zip(curve, reference, strict=True)
    ]
    leads = [word.startswith("better") for word in words]
    if not leads[0] or all(leads):
        return None
    return steps[leads.index(False)]


def may_enter_a_card(
    found: Outcome,
    *,
    learned: bool,
    twice_the_steps: Difference | None = None,
    other_rate: Difference | None = None,
) -> bool:
    """Whether a measurement may stand on a card of 90 seconds, where nothing else qualifies it.

    `learned`: the reference beats its trivial line. The difference is more than three standard
    errors and than 2 delta; its sign is the same at twice the steps, and at the neighbouring rate.
    """
    x = found.difference
    large = abs(x.mean) > max(3 * x.error, 2 * found.delta)
    again = (twice_the_steps, other_rate)
    return learned and large and all(y is not None and x.mean * y.mean > 0 for y in again)
