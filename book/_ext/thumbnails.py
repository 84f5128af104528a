"""A small picture of each mechanism that is ready, of its exhibit's 24 × 24 numbers.

The atlas and the map of the course show them in the colour of attention, darker for more.
"""

from __future__ import annotations

import base64
import io
from functools import cache

import torch
from book_rests import answers
from PIL import Image

from tfviz.exhibits import EXHIBITS
from tfviz.exhibits.exhibit import N


@answers("thumbnail")
@cache
def thumbnail(mechanism: str) -> str:
    """The address of the picture, itself inside of it: a PNG whose opacity is the number. Empty for
    a mechanism that exhibits nothing.

    One of 16 shades: more cannot be seen, and would make the atlas heavier.
    """
    if mechanism not in EXHIBITS:
        return ""
    found = EXHIBITS[mechanism].picture()
    alpha = (17 * (15 * found.clamp(0, 1)).round()).to(torch.uint8)
    image = Image.merge("LA", [Image.new("L", (N, N)), Image.fromarray(alpha.numpy())])
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


@answers("exactness")
def exactness(mechanism: str) -> str | None:
    """Whether what a mechanism computes is exact, as its exhibit says."""
    return EXHIBITS[mechanism].exactness
