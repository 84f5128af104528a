"""What is on a canvas, drawn again by matplotlib: as a PNG, a PDF, or into axes that are given."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import Normal, Stroke
from PIL import Image

from tfviz.plots.fonts import drawable
from tfviz.plots.marks import Drawn, Mark, Text
from tfviz.plots.roles import LIGHT
from tfviz.plots.shapes import Shape

CODES: dict[str, list[Any]] = {
    "M": [Path.MOVETO],
    "L": [Path.LINETO],
    "C": [Path.CURVE4] * 3,
    "Z": [Path.CLOSEPOLY],
}


def replay(marks: Sequence[Mark], width: float, height: float, scale: int) -> Image.Image:
    """A canvas on the light page, `scale` pixels for one."""
    file = io.BytesIO()
    drawing = drawn(marks, width, height)
    with drawable(drawing):
        drawing.savefig(file, format="png", dpi=72 * scale, facecolor=LIGHT["page"])
    return Image.open(file).convert("RGB")


def drawn(marks: Sequence[Mark], width: float, height: float) -> Drawing:
    """A canvas as a figure of matplotlib's, one point for each of its pixels."""
    drawing = Drawing(figsize=(width / 72, height / 72), dpi=72)
    draw_into(drawing.add_axes((0, 0, 1, 1)), marks, width, height)
    return drawing


def draw_into(axes: Axes, marks: Sequence[Mark], width: float, height: float) -> None:
    """A canvas in axes, which become as wide and high as it is, with y downwards."""
    axes.axis("off")
    for n, mark in enumerate(marks):
        if isinstance(mark, Text):
            around = [Stroke(linewidth=2.5, foreground=LIGHT["page"], alpha=0.8), Normal()]
            axes.text(
                mark.x,
                mark.y,
                mark.words,
                parse_math=False,
                usetex=False,
                color=LIGHT[mark.role],
                fontsize=mark.size,
                ha=mark.ha,
                va="baseline",
                weight="bold" if mark.bold else "normal",
                rotation=90 if mark.upright else 0,
                rotation_mode="anchor",
                zorder=n,
                fontfamily="DejaVu Sans",
                path_effects=around if mark.halo else [],
            )
        elif isinstance(mark, Drawn):
            colours = {
                kind: "none" if role is None else (*to_rgb(LIGHT[role]), mark.opacity)
                for kind, role in (("facecolor", mark.fill), ("edgecolor", mark.stroke))
            }
            patch = PathPatch(
                _path(mark.shape),
                **colours,
                linewidth=mark.width if mark.stroke else 0,
                linestyle=(0, mark.dash) if mark.dash else "solid",
                clip_on=False,
                zorder=n,
                capstyle="butt",
            )
            axes.add_patch(patch)
        else:
            pixels = np.empty((*mark.values.shape, 4))
            pixels[..., :3] = to_rgb(LIGHT[mark.role])
            pixels[..., 3] = mark.values.clip(0, 1)
            x, y = mark.x, mark.y
            axes.imshow(
                pixels,
                extent=(x, x + mark.width, y + mark.height, y),
                aspect="auto",
                interpolation="none",
                clip_on=False,
                zorder=n,
            )
    axes.set(xlim=(0, width), ylim=(height, 0))


def _path(shape: Shape) -> Path:
    points: list[tuple[float, float]] = []
    codes: list[Any] = []
    for command, numbers in shape:
        codes += CODES[command]
        ends = list(zip(numbers[::2], numbers[1::2], strict=True))
        points += ends or points[-1:]
    return Path(np.asarray(points, dtype=float), codes)
