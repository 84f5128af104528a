"""A drawing surface measured in CSS pixels, y downwards, colours by role."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from torch import Tensor

from tfviz.plots.figure import Panel
from tfviz.plots.roles import LIGHT, Role

SMALL, NORMAL, TITLE = 11, 12, 13


def text_width(words: str, size: float = NORMAL) -> float:
    """A generous guess: page fonts are narrower than matplotlib's."""
    return 0.62 * size * len(words)


class Canvas:
    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = round(width), round(height)
        self.drawing = Drawing(figsize=(self.width / 72, self.height / 72), dpi=72)
        self.axes = self.drawing.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        self.axes.axis("off")
        self.layer = 1.0

    def panel(self, alt: str) -> Panel:
        return Panel(self.drawing, alt)

    def _z(self) -> float:
        self.layer += 0.001
        return self.layer

    def text(
        self,
        x: float,
        y: float,
        words: str,
        role: Role = "ink",
        *,
        size: float = NORMAL,
        ha: str = "left",
        va: str = "baseline",
        **more: Any,
    ) -> None:
        if va == "middle":  # optical middle of digits, whatever the font of the page
            va, y = "baseline", y + 0.36 * size
        self.axes.text(
            x, y, words, color=LIGHT[role], fontsize=size, ha=ha, va=va, zorder=self._z(), **more
        )

    def draw(
        self,
        path: Path,
        name: str,
        *,
        fill: Role | None = None,
        stroke: Role | None = None,
        width: float = 1,
        opacity: float = 1,
        dash: Any = "solid",
    ) -> None:
        if not np.size(path.vertices):
            return
        self.axes.add_patch(
            PathPatch(
                path,
                facecolor="none" if fill is None else (*to_rgb(LIGHT[fill]), opacity),
                edgecolor="none" if stroke is None else (*to_rgb(LIGHT[stroke]), opacity),
                linewidth=width if stroke else 0,
                linestyle=dash,
                gid=f"tfviz-{name}",
                clip_on=False,
                zorder=self._z(),
                capstyle="butt",
            )
        )

    def image(
        self, opacity: np.ndarray, x: float, y: float, cell: float, role: Role, name: str
    ) -> None:
        """A fine matrix of opacities of one colour as a picture with one pixel for each cell."""
        rows, columns = opacity.shape
        pixels = np.empty((rows, columns, 4))
        pixels[..., :3] = to_rgb(LIGHT[role])
        pixels[..., 3] = opacity
        self.axes.imshow(
            pixels,
            extent=(x, x + columns * cell, y + rows * cell, y),
            interpolation="none",
            aspect="auto",
            gid=f"tfviz-{name}",
            clip_on=False,
            zorder=self._z(),
        )
        self.axes.set(xlim=(0, self.width), ylim=(self.height, 0))


def rectangles(boxes: Sequence[tuple[float, float, float, float]]) -> Path:
    """One path of many rectangles (x, y, width, height)."""
    corners = [
        corner
        for x, y, w, h in boxes
        for corner in ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))
    ]
    return _compound(corners, 5)


def segments(lines: Sequence[tuple[float, float, float, float]]) -> Path:
    """One path of many lines (x0, y0, x1, y1)."""
    ends = [end for x0, y0, x1, y1 in lines for end in ((x0, y0), (x1, y1))]
    return _compound(ends, 2, closed=False)


def dots(centres: Sequence[tuple[float, float]], radius: float) -> Path:
    """One path of many discs; small ones are octagons, which nobody sees and which cost less."""
    if radius < 3:
        turn = np.pi * (np.arange(8) + 0.5) / 4
        rim = [(radius * np.cos(t), radius * np.sin(t)) for t in turn]
        return polygons([[(x + dx, y + dy) for dx, dy in rim] for x, y in centres])
    bow = 0.5523 * radius  # the Bézier curve nearest to a quarter of a circle
    r = radius
    rim = [
        (r, 0), (r, bow), (bow, r), (0, r), (-bow, r), (-r, bow), (-r, 0),
        (-r, -bow), (-bow, -r), (0, -r), (bow, -r), (r, -bow), (r, 0), (r, 0),
    ]  # fmt: skip
    codes = [Path.MOVETO, *[Path.CURVE4] * 12, Path.CLOSEPOLY]
    points = [(x + dx, y + dy) for x, y in centres for dx, dy in rim]
    return Path(np.asarray(points, dtype=float).reshape(-1, 2), codes * len(centres))


def swings(lines: Sequence[tuple[float, float, float, float]]) -> Path:
    """One path of many curves that leave and arrive upright: they do not graze the neighbours."""
    points = [
        point
        for x0, y0, x1, y1 in lines
        for point in ((x0, y0), (x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2), (x1, y1))
    ]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3]
    return Path(np.asarray(points, dtype=float).reshape(-1, 2), codes * len(lines))


def hatch(x: float, y: float, width: float, height: float, cell: float) -> Path:
    """Diagonals over a rectangle, in step with its cells: not allowed."""
    step = cell / max(1, round(cell / 7)) if cell >= 5 else 6
    lines = []
    for n in range(1, int((width + height) / step + 1e-6) + 1):
        c = n * step - step / 2  # the line of all points with right + down = c
        left, right = max(0.0, c - height), min(float(width), c)
        if right > left:
            lines.append((x + left, y + c - left, x + right, y + c - right))
    return segments(lines)


def polygons(shapes: Sequence[Sequence[tuple[float, float]]]) -> Path:
    """One path of many closed shapes with equally many corners."""
    corners = [corner for shape in shapes for corner in (*shape, shape[0])]
    return _compound(corners, len(shapes[0]) + 1 if shapes else 1)


def _compound(vertices: Sequence[Any], each: int, closed: bool = True) -> Path:
    codes = [Path.MOVETO] + [Path.LINETO] * (each - 1)
    if closed:
        codes[-1] = Path.CLOSEPOLY
    points = np.asarray(vertices, dtype=float).reshape(-1, 2)
    return Path(points, codes * (len(points) // each))


def runs(mask: Tensor) -> list[tuple[int, int, int, int]]:
    """True cells as few boxes (column, row, width, height): runs in a row, equal runs merged."""
    boxes: list[tuple[int, int, int, int]] = []
    growing: dict[tuple[int, int], tuple[int, int]] = {}
    edges = torch.nn.functional.pad(mask.int(), (1, 1)).diff(dim=-1)
    for row in range(mask.shape[0] + 1):
        if row < mask.shape[0]:
            starts = (edges[row] == 1).nonzero().flatten().tolist()
            ends = (edges[row] == -1).nonzero().flatten().tolist()
            here = set(zip(starts, ends, strict=True))
        else:
            here = set()
        for run in sorted(set(growing) - here):
            top, height = growing.pop(run)
            boxes.append((run[0], top, run[1] - run[0], height))
        for run in here:
            top, height = growing.get(run, (row, 0))
            growing[run] = (top, height + 1)
    return sorted(boxes, key=lambda box: (box[1], box[0]))
