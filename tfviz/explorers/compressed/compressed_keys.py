"""Which tokens a query reads through compressed keys, and what leaks if the steps begin earlier."""

import torch

from tfviz.compressed.memory_compressed_attention import staircase
from tfviz.explorers.base import Explorer, Numbers, handed, knob

L = 18


class CompressedKeys(Explorer):
    """18 tokens in groups of c, each group one key; the first token is a key by itself."""

    label = "Compressed keys: which of them a query may use"
    rem = 36, 36, 37.5, 32.5, 92.5
    data = handed(length=L)

    c = knob(3, of=[2, 3, 6, 9], label="tokens in a group", letter="c")
    shift = knob(0, low=0, high=2, label="head start of each step")
    query = knob(10, low=0, high=L - 1, label="query", letter="i")
    asks = "With a head start of 1, nothing leaks. What can query 2 read that it could not before?"

    def numbers(self) -> Numbers:
        """Which keys each query may use, the tokens in them, how many of those come later, and the
        first query that reads one; −1 if none does."""
        slots = staircase(L + self.c, self.c)[self.shift : self.shift + L]
        j = torch.arange(L)
        reads = slots[:, j // self.c + 1] | (j == 0)
        ahead = (reads & (j > j[:, None])).sum(-1)
        first = int(ahead.gt(0).int().argmax()) if ahead.any() else -1
        return {"slots": slots.int(), "reads": reads.int(), "ahead": ahead, "first": first}
