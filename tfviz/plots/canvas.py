"""A drawing surface measured in CSS pixels, y downwards, colours by role, written as SVG.

It keeps what was drawn: the page gets SVG, and matplotlib replays it where a PNG is asked for.
"""

import base64
import functools
import hashlib
import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from PIL import Image, ImageFont

from tfviz.plots import svg
from tfviz.plots.figure import NARROW, Panel
from tfviz.plots.fonts import in_font
from tfviz.plots.marks import Drawn, Hatched, Opacities, Text
from tfviz.plots.replay import draw_into, drawn, replay
from tfviz.plots.roles import Role, css
from tfviz.plots.shapes import Box, Shape, hatch, hatch_step, rectangles, segments

SMALL, NORMAL, TITLE = 11, 12, 13
WIDE = 690
"""Room for a drawing beside nothing, in px: the column of the book."""
ANCHORS = {"left": "start", "center": "middle", "right": "end"}


@functools.cache
def _font(bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(mpl.get_data_path(), "fonts", "ttf", name), 100)


def text_width(words: str, size: float = NORMAL, *, bold: bool = False) -> float:
    """Of matplotlib's font, which is broader than those of pages, as it draws the words."""
    return _font(bold).getlength(in_font(words)) * size / 100


def wrapped(
    words: str, room: float, size: float = NORMAL, *, bold: bool = False, whole: bool = True
) -> list[str]:
    """Words in lines that fit the room, where no single word is broader; or, unless words stay
    `whole`, in pieces of it."""
    lines: list[str] = []
    parts = words.split()
    if not whole:
        parts = [piece for word in parts for piece in _pieces(word, room, size, bold)]
    for word in parts:
        if lines and text_width(f"{lines[-1]} {word}", size, bold=bold) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _pieces(word: str, room: float, size: float, bold: bool) -> Iterator[str]:
    """A word, or what of it fits the room and then the rest."""
    while len(word) > 1 and text_width(word, size, bold=bold) > room:
        end = len(word) - 1
        while end > 1 and text_width(word[:end], size, bold=bold) > room:
            end -= 1
        yield word[:end]
        word = word[end:]
    yield word


class Canvas:
    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = round(width), round(height)
        self.marks: list[Text | Drawn | Opacities] = []

    def panel(self, alt: str) -> Panel:
        return Panel(self, alt)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        role: Role = "ink",
        *,
        size: float = NORMAL,
        ha: Literal["left", "center", "right"] = "left",
        va: Literal["baseline", "middle"] = "baseline",
        bold: bool = False,
        upright: bool = False,
        halo: bool = False,
    ) -> None:
        """Words at a place; `upright` ones run from the bottom to the top, those with a `halo` in
        the colour of the page can be read over lines and shades."""
        if va == "middle":  # optical middle of digits, whatever the font of the page
            y += 0.36 * size
        style = f"fill:{css(role)};font-size:{svg.decimal(size)}px"
        style += f";text-anchor:{ANCHORS[ha]}" if ha != "left" else ""
        style += ";font-weight:700" if bold else ""
        if halo:
            style += f";paint-order:stroke;stroke:{css('page')};stroke-width:2.5px"
            style += ";stroke-opacity:.8"
        self.marks.append(Text(x, y, words, style, role, size, ha, bold, upright, halo))

    def widen(self, x: float, words: str, size: float = NORMAL, *, bold: bool = False) -> None:
        """So wide that words from x on are not cut off."""
        self.width = max(self.width, math.ceil(x + text_width(words, size, bold=bold) + 6))

    def draw(
        self,
        shape: Shape,
        name: str,
        *,
        fill: Role | None = None,
        stroke: Role | None = None,
        width: float = 1,
        opacity: float = 1,
        dash: tuple[float, ...] = (),
    ) -> None:
        """A shape; `name` becomes its class, `dash` is in widths of the line."""
        if shape:
            self.marks.append(Drawn(shape, name, fill, stroke, width, opacity, dash))

    def hatch(self, box: Box, cell: float) -> None:
        """Diagonals over a box (x, y, width, height), in step with its cells: not allowed."""
        lines = hatch(*box, cell)
        if lines:
            self.marks.append(
                Hatched(lines, "hatch", None, "muted", 1, 0.32, (), box, hatch_step(cell))
            )

    def image(self, values: np.ndarray, x: float, y: float, cell: float, role: Role) -> None:
        """A fine matrix of opacities of one colour as a picture with one pixel for each cell."""
        rows, columns = values.shape
        self.marks.append(Opacities(values, x, y, columns * cell, rows * cell, role))

    # --- faces

    def svg(self, alt: str) -> str:
        root = svg.root(self.width, self.height, alt)
        shared: tuple[str, str] | None = None  # what neighbours in one group have in common
        for n, mark in enumerate(self.marks):
            if isinstance(mark, Hatched | Opacities):
                shared = None
                salt = f"{alt}{self.width}{n}".encode()
                key = "t" + hashlib.sha256(salt).hexdigest()[:10]
                root.extend(_tiles(mark, key) if isinstance(mark, Hatched) else _window(mark, key))
                continue
            own = ("style", mark.style) if isinstance(mark, Text) else ("class", mark.name)
            if own != shared:
                shared = own
                text = isinstance(mark, Text)
                group = svg.element("g", style=own[1]) if text else svg.group(own[1])
                root.append(group)
            group.append(_words(mark) if isinstance(mark, Text) else _path(mark))
        return svg.written(root)

    def picture(self, scale: int) -> Image.Image:
        return replay(self.marks, self.width, self.height, scale)

    def page(self) -> Drawing:
        """As a figure of matplotlib's, in the light theme."""
        return drawn(self.marks, self.width, self.height)

    def into(self, axes: Axes) -> None:
        """Into axes of matplotlib's."""
        draw_into(axes, self.marks, self.width, self.height)


def _words(mark: Text) -> svg.ET.Element:
    x, y = svg.decimal(mark.x), svg.decimal(mark.y)
    node = svg.element("text", x=x, y=y)
    if mark.upright:
        node.set("transform", f"rotate(-90 {x} {y})")
    node.text = mark.words
    return node


def _path(mark: Drawn) -> svg.ET.Element:
    style = [f"fill:{css(mark.fill) if mark.fill else 'none'}"]
    if mark.fill and mark.opacity < 1:
        style.append(f"fill-opacity:{svg.decimal(mark.opacity, 3)}")
    if mark.stroke:
        style.append(f"stroke:{css(mark.stroke)}")
        if mark.width != 1:
            style.append(f"stroke-width:{svg.decimal(mark.width)}")
        if mark.opacity < 1:
            style.append(f"stroke-opacity:{svg.decimal(mark.opacity, 3)}")
        if mark.dash:
            dashes = ",".join(svg.decimal(part * mark.width) for part in mark.dash)
            style.append(f"stroke-dasharray:{dashes}")
    return svg.element("path", d=svg.path_data(mark.shape), style=";".join(style))


def _tiles(mark: Hatched, key: str) -> list[svg.ET.Element]:
    """One tile of the diagonals, repeated over the box: a path of all would be a hundred lines."""
    x, y = map(svg.decimal, mark.box[:2])
    step = svg.decimal(mark.step, 4)
    lines = Drawn(_corners(mark.step), mark.name, None, mark.stroke, 1, mark.opacity, ())
    tile = svg.element(
        "pattern", id=key, x=x, y=y, width=step, height=step, patternUnits="userSpaceOnUse"
    )
    tile.append(_path(lines))
    group = svg.group(mark.name)
    group.append(tile)
    outline = svg.path_data(rectangles([mark.box]))
    group.append(svg.element("path", d=outline, style=f"fill:url(#{key})"))
    return [group]


def _corners(step: float) -> Shape:
    """The diagonals that a tile sees of lines at step/2, 3/2 step, … to the right and down."""
    half = step / 2
    return segments([(0, half, half, 0), (half, step, step, half)])


def _window(mark: Opacities, key: str) -> list[svg.ET.Element]:
    """A window onto the role's colour, so that a picture of weights follows the theme."""
    place = {
        "x": svg.decimal(mark.x),
        "y": svg.decimal(mark.y),
        "width": svg.decimal(mark.width),
        "height": svg.decimal(mark.height),
    }
    alpha = np.zeros((*mark.values.shape, 2), np.uint8)
    alpha[..., 1] = np.round(mark.values.clip(0, 1) * 255)
    file = io.BytesIO()
    Image.fromarray(alpha).save(file, format="PNG", optimize=True)
    link = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    mask = svg.element("mask", id=key, style="mask-type:alpha")
    mask.append(
        svg.element(
            "image",
            **place,
            href=link,
            preserveAspectRatio="none",
            style="image-rendering:pixelated",
        )
    )
    return [
        mask,
        svg.element("rect", **place, style=f"fill:{css(mark.role)}", mask=f"url(#{key})"),
    ]


def fitted(draw: Callable[[float], Any], alt: str) -> Panel:
    """A panel of what `draw(room)` draws: wide, and narrow where the wide one would not fit.

    `draw` returns a Canvas, or something with one as `.canvas`.
    """
    forms = []
    for room in (WIDE, NARROW):
        drawn = draw(room)
        forms.append(drawn if isinstance(drawn, Canvas) else drawn.canvas)
        if forms[0].width <= NARROW:
            break
    return Panel(forms[0], alt, forms[1] if len(forms) > 1 else None)
