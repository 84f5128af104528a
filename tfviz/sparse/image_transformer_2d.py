"""2-D local attention for images: rectangles of pixels, made one after the other.

Parmar et al. 2018 (arXiv 1802.05751), Image Transformer, and tensor2tensor's
`masked_local_attention_2d`. The image is cut into blocks of h_q × w_q pixels, made block by block
and row by row in each. Pixel (y, x), whose block begins at (t, l), may use pixel (v, u) if

    above     t − h_m ≤ v < t            and  l − w_m ≤ u < l + w_q + w_m
    beside    t ≤ v < t + h_q            and  l − w_m ≤ u < l
    own       the same block and not later in raster order; itself too

On the right there is something to see above the block only: the block beside it comes later. The
order is not that of the rows, so that likelihoods are of the same image, but each pixel is given
another past. Pixels that are numbered in this order make the pattern causal, and the keys of a
block one stretch of rows each: `patterns.image_2d_blocks` is `patterns.image_2d` so numbered.

>>> generation_order(2, 4, h_q=2, w_q=2).tolist()
[0, 1, 4, 5, 2, 3, 6, 7]
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from tfviz import _arguments, _qkv, patterns
from tfviz._arguments import named
from tfviz.sub_quadratic import sparse_attention

__all__ = ["image_attention_2d"]


def generation_order(height: int, width: int, h_q: int, w_q: int) -> Int[Tensor, " L"]:
    """The pixels, by their number in raster order, in the order in which they are made; blocks at
    the right and lower edge may be smaller. `.argsort()` gives the place of each pixel."""
    for name, value in (("height", height), ("width", width), ("h_q", h_q), ("w_q", w_q)):
        _arguments.integer(name, value, 1)
    i = torch.arange(height * width)
    y, x = i // width, i % width
    block = y // h_q * width + x // w_q  # in raster order of the blocks
    return (block * len(i) + i).argsort()


def memory_size(h_q: int, w_q: int, h_m: int, w_m: int) -> int:
    """Keys that a block far from the edges reads: above, beside, and the block itself."""
    return h_m * (w_q + 2 * w_m) + h_q * w_m + h_q * w_q


@named
def image_attention_2d(
    Q: Float[Tensor, "*heads L d"],
    K: Float[Tensor, "*heads L d"],
    V: Float[Tensor, "*heads L dv"],
    *,
    width: int,
    h_q: int,
    w_q: int,
    h_m: int,
    w_m: int,
) -> Float[Tensor, "*heads L dv"]:
    """Attention of L pixels in raster order, in O(L (h_q + h_m)(w_q + 2 w_m) d): put in the order
    of generation, where the queries of a block are neighbours, and back.

    Raises ValueError if the blocks do not fill the image.
    """
    _qkv.check(Q, K, V, self_attention=True)
    _arguments.integer("width", width, 1)
    height, rest = divmod(Q.shape[-2], width)
    order = generation_order(max(1, height), width, h_q, w_q)
    if rest or height % h_q or width % w_q:
        raise ValueError(
            f"{Q.shape[-2]} pixels in rows of {width} are not filled by blocks of {h_q} × {w_q}; "
            "choose sizes that divide the image, or take sparse_attention with patterns.image_2d"
        )
    sizes = {"columns": width // w_q, "h_q": h_q, "w_q": w_q, "h_m": h_m, "w_m": w_m}
    made = (X[..., order, :] for X in (Q, K, V))
    # mypy takes the pattern for one of the three
    return sparse_attention(*made, patterns.image_2d_blocks(**sizes))[..., order.argsort(), :]  # type: ignore[call-arg,arg-type]  # fmt: skip
