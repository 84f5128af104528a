"""Which query heads read which key head, and what a cache keeps of one token, MHA to MQA."""

from functools import cache

from torch import Tensor

from tfviz import stored
from tfviz.explorers.base import Explorer, Numbers, exact, handed, knob
from tfviz.heads.grouped_query_attention import first_of_group, mean_of_group, reads, tiled_order

H = 8
KEY_HEADS = [8, 4, 2, 1]
POOLS = {"mean": mean_of_group, "first": first_of_group}
EXAMPLES: dict[str, Numbers] = {"": {}, "shared": {"h_kv": 8}}


@cache
def trained() -> Numbers:
    """Keys and values of one character in eight heads of a trained model, from the experiment."""
    shown: Numbers = stored.load("head_sharing")["shown"]
    return shown


class GroupedQueryHeads(Explorer):
    """Eight heads of queries, and the heads of keys and values that they read.

    With eight of these at first, the question is what a cache keeps; with four, which heads read
    which.
    """

    label = "Query heads, the key and value heads that they read, and what a cache keeps"
    rem = 37, 37, 38, 40.5, 86
    data = handed(trained, keyHeads=KEY_HEADS)
    examples = EXAMPLES

    h_kv = knob(4, of=KEY_HEADS, label="heads of keys and values", letter="hₖᵥ")
    wiring = knob(
        "neighbours",
        of={"neighbours": "neighbours (Hugging Face)", "tiles": "tiled (x-transformers)"},
        label="how groups are formed",
    )
    pool = knob(
        "mean",
        of={"mean": "the mean of its group", "first": "the first of its group"},
        label="a shared key is",
    )
    asks = (
        "Switch to tiled groups: which query heads now read other keys? And what happens with a "
        "single head of keys?"
    )

    def numbers(self) -> Numbers:
        """The key head of each query head, the keys and values left, and the numbers kept."""
        one = [*range(H)]
        order = tiled_order(H, self.h_kv) if self.wiring == "tiles" else one
        read = dict(zip(order, reads(H, self.h_kv), strict=True))

        def pooled(name: str) -> Tensor:
            heads = exact(trained()[name])[order]
            return POOLS[self.pool](heads.unflatten(0, (self.h_kv, -1)))

        d_head = len(trained()["K"][0])
        return {
            "reads": [read[n] for n in one],
            "shared_keys": pooled("K"),
            "shared_values": pooled("V"),
            "kept": [2 * h_kv * d_head for h_kv in KEY_HEADS],
        }
