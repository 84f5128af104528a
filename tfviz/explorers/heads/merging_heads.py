"""The scene of chapter 29: 32 query heads share heads of keys and values, and the cache shrinks."""

from tfviz.basics.cache_cost import cache_bytes
from tfviz.basics.public_models import MODELS
from tfviz.explorers.base import Explorer, Numbers, handed, knob
from tfviz.heads.grouped_query_attention import reads

MODEL = MODELS["Llama 3 8B"]  # Llama 3.1 8B has the same sizes, and reads 131,072 tokens
TOKENS = 131_072
BYTES = 2  # of each number


class MergingHeads(Explorer):
    """The query heads of Llama 3.1 8B, the KV heads that they read, and the cache of a long text.

    The cache holds 131,072 tokens, with two bytes a number; the model itself has 8 KV heads.
    """

    label = "32 query heads, the KV heads that they read, and the cache of 131,072 tokens"
    scene = True
    rem = 30, 30, 31.5, 31.5, 26.5
    data = handed(
        layers=MODEL.N,
        heads=MODEL.h,
        width=MODEL.d_head,
        weights=MODEL.weights * BYTES,
        tokens=TOKENS,
        bytes=BYTES,
    )

    h_kv = knob(8, of=[1, 2, 4, 8, 16, 32], label="KV heads")

    def numbers(self) -> Numbers:
        """The KV head of each query head, and the bytes of the cache."""
        return {
            "reads": reads(MODEL.h, self.h_kv),
            "cache": cache_bytes(TOKENS, MODEL.N, self.h_kv, MODEL.d_head, BYTES),
        }
