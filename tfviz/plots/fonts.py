"""The font of pictures: PNG and PDF are drawn with matplotlib's, which has not every letter.

An SVG is text, which is drawn with the fonts of whoever looks at it.
"""

import functools
import re
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib.figure import Figure as Drawing
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.text import Text

from tfviz._labels import code, hidden, legal

FAMILY = "DejaVu Sans"


@functools.cache
def _letters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(FAMILY))).get_charmap())


def in_font(words: str) -> str:
    """The words, with the number of each letter that the font of pictures lacks, or which stands
    alone and only tells others how to be drawn."""

    def letter(found: re.Match[str]) -> str:
        c = found[0]
        tells = unicodedata.category(c) == "Cf" and hidden(found.string, found.start())
        return code(c) if tells or ord(c) not in _letters() else c

    return re.sub("[^\n -~]", letter, words)


@contextmanager
def drawable(drawing: Drawing, *, as_text: bool = False) -> Iterator[None]:
    """Meanwhile the drawing has no text that matplotlib could not draw or our font lacks a letter
    of; `as_text`: for an SVG, which whoever looks at it has the letters for."""
    before = {text: text.get_text() for text in drawing.findobj(Text) if isinstance(text, Text)}
    for text, words in before.items():
        ours = text.get_fontfamily() == [FAMILY] and not as_text
        if (now := in_font(legal(words)) if ours else legal(words)) != words:
            text.set_text(now)
    try:
        with warnings.catch_warnings():  # in somebody else's font a box is seen
            warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")
            warnings.filterwarnings("ignore", r"Matplotlib currently does not support .*")
            yield
    finally:
        for text, words in before.items():
            if text.get_text() != words:
                text.set_text(words)
