"""Outlines in CSS pixels, y downwards: many of one kind are one shape, so that they are one path.

A shape is a list of steps as SVG has them, with absolute places: ("M", (x, y)), ("L", (x, y)),
("C", six numbers) and ("Z", ()).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

Step = tuple[str, tuple[float, ...]]
Shape = list[Step]
Box = tuple[float, float, float, float]


def rectangles(boxes: Sequence[Box]) -> Shape:
    """Rectangles (x, y, width, height)."""
    return polygons([[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in boxes])


def segments(lines: Sequence[Box]) -> Shape:
    """Lines (x0, y0, x1, y1)."""
    return [step for a, b, c, d in lines for step in (("M", (a, b)), ("L", (c, d)))]


def polygons(shapes: Sequence[Sequence[tuple[float, float]]]) -> Shape:
    """Closed shapes."""
    steps: Shape = []
    for first, *rest in shapes:
        steps += [("M", first), *(("L", corner) for corner in rest), ("Z", ())]
    return steps


def dots(centres: Sequence[tuple[float, float]], radius: float) -> Shape:
    """Discs; small ones are octagons, which nobody sees and which cost less."""
    r = radius
    if r < 3:
        turns = [math.pi * (n + 0.5) / 4 for n in range(8)]
        rim = [(r * math.cos(t), r * math.sin(t)) for t in turns]
        return polygons([[(x + dx, y + dy) for dx, dy in rim] for x, y in centres])
    bow = 0.5523 * r  # the Bézier curve nearest to a quarter of a circle
    quarters = (
        (r, bow, bow, r, 0, r),
        (-bow, r, -r, bow, -r, 0),
        (-r, -bow, -bow, -r, 0, -r),
        (bow, -r, r, -bow, r, 0),
    )
    steps: Shape = []
    for x, y in centres:
        steps.append(("M", (x + r, y)))
        for bend in quarters:
            moved = (v + (y if n % 2 else x) for n, v in enumerate(bend))
            steps.append(("C", tuple(moved)))
        steps.append(("Z", ()))
    return steps


def swings(lines: Sequence[Box]) -> Shape:
    """Curves that leave and arrive upright: they do not graze the neighbours."""
    steps: Shape = []
    for x0, y0, x1, y1 in lines:
        middle = (y0 + y1) / 2
        steps += [("M", (x0, y0)), ("C", (x0, middle, x1, middle, x1, y1))]
    return steps


def hatch(x: float, y: float, width: float, height: float, cell: float) -> Shape:
    """Diagonals over a rectangle, in step with its cells: not allowed."""
    step = hatch_step(cell)
    lines = []
    for n in range(1, int((width + height) / step + 1e-6) + 1):
        c = n * step - step / 2  # the line of all points with right + down = c
        left, right = max(0.0, c - height), min(float(width), c)
        if right > left:
            lines.append((x + left, y + c - left, x + right, y + c - right))
    return segments(lines)


def hatch_step(cell: float) -> float:
    """How far apart the diagonals stand, along the side of a cell."""
    return cell / max(1, round(cell / 7)) if cell >= 5 else 6


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
