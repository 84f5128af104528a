"""The scene of the last chapter: how much of a block's work is attention, length by length."""

from tfviz.beyond_text.efficiency_tradeoffs import block_flops
from tfviz.explorers.base import Explorer, Numbers, handed, knob

WIDTH, WINDOW = 4096, 4096
LENGTHS = [128 * 2**n * part // 2 for n in range(13) for part in (2, 3)] + [2**20]


class AttentionShare(Explorer):
    """Operations of a block of width 4,096 for the next token, with all tokens before it as keys
    or with the last 4,096 of them."""

    label = "The share of attention in a block's work, and what a window saves of it"
    scene = True
    rem = 30, 30, 30, 30, 26.5
    data = handed(width=WIDTH, window=WINDOW)

    L = knob(32768, of=LENGTHS, label="tokens before the next one", letter="L")

    def numbers(self) -> Numbers:
        """The work at this length, and of it the shares of attention and of what a window saves."""
        full = block_flops(self.L, WIDTH)
        window = block_flops(self.L, WIDTH, min(self.L, WINDOW))
        return {
            "work": full,
            "attention": 4 * self.L * WIDTH / full,
            "saved": 1 - window / full,
        }
