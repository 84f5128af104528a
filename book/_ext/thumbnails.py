"""A small picture of each mechanism that is ready, of its exhibit's 24 × 24 numbers.

The atlas and the map of the course show them in the colour of attention, darker for more. Exhibits
are imported where one is asked for: they bring the whole library, which most builds do not need.
"""

from __future__ import annotations

import base64
import io
from functools import cache

from book_rests import answers
from PIL import Image


@answers("thumbnail")
@cache
def thumbnail(mechanism: str) -> str:
    """The address of the picture, itself inside of it: a PNG whose opacity is the number. Empty for
    a mechanism that exhibits nothing.

    One of 16 shades: more cannot be seen, and would make the atlas heavier.
    """
    from tfviz.exhibits import EXHIBITS

    if mechanism not in EXHIBITS:
        return ""
    found = EXHIBITS[mechanism].picture()
    image = Image.fromarray((15 * found.clamp(0, 1)).round().byte().numpy()).convert("P")
    image.putpalette(3 * 16 * [0])
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True, bits=4, transparency=bytes(range(0, 256, 17)))
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


@answers("exactness")
def exactness(mechanism: str) -> str | None:
    """Whether what a mechanism computes is exact, as its exhibit says."""
    from tfviz.exhibits import EXHIBITS

    return EXHIBITS[mechanism].exactness
