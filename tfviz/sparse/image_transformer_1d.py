"""1-D local attention for images: blocks of a long row of pixels, and what stands just before.

Parmar, Vaswani, Uszkoreit, Kaiser, Shazeer, Ku, Tran 2018 (arXiv 1802.05751), Image Transformer. An
image is read row by row; query i stands in the block that begins at b(i), l_q pixels long, and may
use the block so far and the l_m pixels before it, 0-based:

    S_i = {j : b(i) − l_m ≤ j ≤ i}        b(i) = l_q ⌊i / l_q⌋

The sets of one block share their l_q + l_m keys, so that a block is one dense product. The formula
is `patterns.image_1d`, with i itself as in tensor2tensor's `masked_local_attention_1d`, whose
memory has the length of a block.

>>> keys(9, block=4, memory=3)
range(5, 10)
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments, patterns
from tfviz._arguments import named
from tfviz.sub_quadratic import sparse_attention

__all__ = ["image_attention_1d"]


def keys(i: int, block: int, memory: int) -> range:
    """S_i: from l_m pixels before the block of i, or the first pixel, up to i."""
    _arguments.integer("i", i, 0)
    _arguments.integer("block", block, 1)
    _arguments.integer("memory", memory, 0)
    return range(max(0, i // block * block - memory), i + 1)


def sees_back(i: int, block: int, memory: int) -> int:
    """How far back query i sees, the start of the image apart: i mod l_q + l_m pixels, so that the
    last of a block sees l_q − 1 further than the first."""
    memory = _arguments.integer("memory", memory, 0)
    return _arguments.integer("i", i, 0) % _arguments.integer("block", block, 1) + memory


def blind_above(height: int, width: int, block: int, memory: int) -> list[int]:
    """The pixels, in raster order, below the first row that do not see the pixel above them: those
    less than `width` − l_m behind the start of their block."""
    _arguments.integer("height", height, 1)
    _arguments.integer("width", width, 1)
    below = range(width, height * width)
    return [i for i in below if sees_back(i, block, memory) < width]


@named
def image_attention_1d(
    Q: Float[Tensor, "*heads L d"],
    K: Float[Tensor, "*heads L d"],
    V: Float[Tensor, "*heads L dv"],
    block: int,
    memory: int,
) -> Float[Tensor, "*heads L dv"]:
    """Attention of L pixels in raster order, any L, in O(L (l_q + l_m) d)."""
    return sparse_attention(Q, K, V, patterns.image_1d(block=block, memory=memory))
