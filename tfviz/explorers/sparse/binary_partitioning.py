"""A sentence in a binary tree: which spans a token reads, and how a message reaches it."""

from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.sparse import bp_transformer as bpt

WORDS = [
    "the",
    "cat",
    "that",
    "the",
    "old",
    "man",
    "fed",
    "each",
    "morning",
    "sat",
    "on",
    "the",
    "mat",
    "and",
    "purred",
    "softly",
]
LENGTHS = [16, 32, 64, 128, 256, 512, 1024]
STEPS = ["the words", "layer 1: spans read words", "layer 2: words beside it"]


class BinaryPartitioning(Explorer):
    """Binary partitioning of sixteen words.

    step    0: the words; 1: spans read their words; 2 to 5: the token reads, level by level
    """

    label = "Binary partitioning: what a word reads in a tree of spans"
    rem = 41.5, 41.5, 43.5, 44, 99.5
    data = handed(words=WORDS, lengths=LENGTHS, steps=STEPS)

    step = knob(5, low=0, high=5, label="step")
    token = knob(5, low=0, high=15, label="the word that reads", letter="i")
    speaker = knob(12, low=0, high=15, label="the word that sends", letter="j")
    k = knob(1, low=1, high=4, label="nodes of each level on each side", letter="k")
    causal = knob(False, label="causal: left side only")
    asks = "Press play: how does the message of one word reach another? Then choose other words."

    def numbers(self) -> Numbers:
        """What the token reads as [first, end, level at which it came], the node that brings the
        speaker's message (or −1), and the edges of texts of several lengths."""
        table, where = bpt.reads(16, self.k, self.causal)[self.token], bpt.spans(16)
        step = (1 if self.causal else 2) * self.k
        nodes_read = [
            [*where[node].tolist(), (column - 1) // step if column else 0]
            for column, node in enumerate(table.tolist())
            if node >= 0
        ]
        brings = [n for n, (first, end, _) in enumerate(nodes_read) if first <= self.speaker < end]
        edges = [bpt.edges(L, self.k, self.causal) for L in LENGTHS]
        return {"reads": nodes_read, "through": brings[0] if brings else -1, "edges": edges}
