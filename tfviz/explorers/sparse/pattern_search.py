"""The other way round: a budget of keys and hops, and the patterns of the library that fit it."""

from tfviz.explorers.base import Explorer, Numbers, knob
from tfviz.explorers.sparse.sparse_lab import SparseLab
from tfviz.patterns.inverse import RANDOM, SPACE, impossible, search

KEYS, HOPS = 32, 8  # the edges of the picture


class PatternSearch(Explorer):
    """All patterns that the library tries for a length, by keys and hops, and the one that fits a
    budget best.
    """

    uses = ("shared/patterns",)
    label = "Pattern search: from a budget of keys and hops to a pattern"
    rem = 44, 44, 44, 46.5, 127

    max_keys = knob(16, low=1, high=KEYS, label="keys in a row, at most")
    max_hops = knob(3, low=1, high=HOPS, label="hops, at most")
    L = knob(64, of=(16, 32, 64), label="length", letter="L")
    causal = knob(True, label="causal")
    block = knob(16, of=(4, 8, 16), label="block size")
    prefer = knob(
        "keys",
        of={"keys": "keys", "hops": "hops", "blocks": "blocks"},
        label="best means the fewest",
    )
    asks = "Now drag the corner of the budget: which pattern fits it best? Or select a point."

    @classmethod
    def data(cls) -> Numbers:
        families = {n for space in SPACE.values() for n, _ in space}
        catalogue = SparseLab.data()["families"]
        return {
            "families": {n: catalogue[n] for n in sorted(families | {"causal"})},
            "space": SPACE,
            "random": list(RANDOM),
        }

    def numbers(self) -> Numbers:
        """Every combination of numbers that was found, those that fit the budget, and the best."""
        keys, causal = min(KEYS, self.L), self.causal
        every = search(self.L, keys, HOPS, causal=causal, block=self.block)
        kept = every.within(self.max_keys, self.max_hops)
        best = kept.best(self.prefer)
        least = [
            next(k for k in range(1, self.L) if not impossible(self.L, k, hops))
            for hops in range(1, HOPS + 1)
        ]
        pairs = [p.mask(self.L).sum() for p in best.stack] if best else []
        kinds = {"found": every.found, "front": kept.front}
        found: Numbers = {name: [f.numbers for f in some] for name, some in kinds.items()}
        found |= {"tried": every.tried, "kept": len(kept.found), "least": least, "pairs": pairs}
        return found | {"best": best.numbers if best else []}
