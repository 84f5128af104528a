"""Two queues: a memory of single rows, and after it one of squeezed rows."""

import torch

from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.longer_context import compressive_transformer as squeezing

SEGMENT, STEPS, N = 4, 12, 3
FUNCTIONS: dict[str, squeezing.Compress] = {
    "mean": squeezing.mean_pool,
    "max": squeezing.max_pool,
    "newest": squeezing.newest,
}


def values() -> list[float]:
    """One number for each token: slow waves, some noise, and now and then a peak."""
    dice = torch.Generator().manual_seed(5)
    t = torch.arange(SEGMENT * STEPS, dtype=torch.float64)
    x = 0.45 + 0.2 * (t / 7).sin() + 0.07 * torch.randn(len(t), generator=dice).double()
    x[[5, 18, 31, 38]] += 0.35
    return [round(v, 3) for v in x.clamp(0.05, 1).tolist()]


class CompressiveMemory(Explorer):
    """48 tokens of one number each pass through both memories of a layer, four at a time."""

    label = "Conveyor belt: memory and squeezed memory"
    rem = 44, 44, 44, 44, 90
    data = handed(x=values, segment=SEGMENT, layers=N)

    step = knob(0, low=0, high=STEPS, label="segments read")
    m = knob(8, low=0, high=16, label="slots for single rows", letter="m_m")
    m_c = knob(4, low=0, high=8, label="slots for squeezed rows", letter="m_cm")
    c = knob(4, low=1, high=8, label="rows squeezed into one", letter="c")
    f = knob("mean", of=list(FUNCTIONS), label="how rows are squeezed")
    asks = "Press play and follow one bar until it is gone. How high is it at each stage?"

    def numbers(self) -> Numbers:
        """Where the memory begins, the squeezed rows as [first token, value], their mean error,
        and the reach of one layer for each c."""
        sizes: Numbers = {"m": self.m, "m_c": self.m_c, "c": self.c}
        belt = squeezing.Compressive(1, 1, compress=FUNCTIONS[self.f], **sizes)
        X = exact(values())[None, : self.step * SEGMENT, None]
        state = belt.followed(None, X[:, :0], None)
        for segment in X.split(SEGMENT, 1):
            state = belt.followed(state, segment, None)
        begin = self.step * SEGMENT - state.rows.shape[1]
        squeezed = state.squeezed.flatten().tolist()
        first = [begin - self.c * (len(squeezed) - n) for n in range(len(squeezed))]
        pairs = [list(pair) for pair in zip(first, squeezed, strict=True)]
        off = [abs(values()[a + n] - v) for a, v in pairs for n in range(self.c)]
        ranges = [squeezing.temporal_range(1, self.m, self.m_c, c) for c in range(1, 9)]
        mean = sum(off) / max(1, len(off))
        return {"begin": begin, "squeezed": pairs, "off": mean, "ranges": ranges}
