"""A mechanism as a line of tensors drawn to scale, with what happens between them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tfviz._labels import label, named
from tfviz.plots.canvas import NORMAL, SMALL, Canvas, fitted, text_width
from tfviz.plots.figure import Figure
from tfviz.plots.roles import ROLES, Role
from tfviz.plots.shapes import rectangles, segments

Tensor = tuple[str, str, str, str]
Step = Tensor | str
CELL, GAP, BELOW, ABOVE = 13, 13, 21, 23


def schematic(
    steps: Sequence[Step],
    sizes: Mapping[str, int],
    *,
    alt: str,
    caption: str | None = None,
) -> Figure:
    """Tensors and operations from left to right; on a narrow screen the line breaks.

    A tensor is (name, rows, columns, role): `sizes` says how many cells each letter of a shape
    gets, `"1"` is one cell, and the role is its colour. A text is an operation: `"·"`,
    `"softmax"`; one in brackets such as `"[LayerNorm]"` is drawn as a box. Raises ValueError for a
    shape without a size, an unknown role, or no steps.

        schematic([("Q", "L", "d", "query"), "·", ("Kᵀ", "d", "L", "key")], {"L": 6, "d": 3}, alt=…)
    """
    if not steps:
        raise ValueError("steps is empty; give at least one tensor")
    sizes = named("sizes", sizes)
    steps = [_labelled(n, step) for n, step in enumerate(steps)]
    for step in steps:
        if isinstance(step, str):
            continue
        name, *shape, role = step
        for letter in shape:
            if letter != "1" and sizes.get(letter, 0) < 1:
                raise ValueError(f"sizes lacks {letter!r} of {name}; give its number of cells")
        if role not in ROLES:
            raise ValueError(f"role = {role!r} of {name}; choose one of {', '.join(ROLES)}")
    return Figure([fitted(lambda room: _draw(steps, sizes, room), alt)], caption=caption)


def _labelled(n: int, step: Any) -> Step:
    """A step with its words as labels. Raises ValueError for what is no step."""
    if isinstance(step, str):
        return label(f"steps[{n}]", step)
    if not isinstance(step, Sequence) or len(step) != 4:
        raise ValueError(f"steps[{n}] = {step!r:.80}; give a text, or (name, rows, columns, role)")
    name, rows, columns = (label(f"steps[{n}]", words) for words in step[:3])
    return name, rows, columns, step[3]


def _draw(steps: Sequence[Step], sizes: Mapping[str, int], room: float) -> Canvas:
    lines: list[list[Step]] = [[]]
    for step in steps:
        taken = sum(_width(one, sizes) + GAP for one in lines[-1])
        if lines[-1] and taken + _width(step, sizes) > room - 4:
            lines.append([])
        lines[-1].append(step)
    heights = [max(_height(step, sizes) for step in line) + ABOVE + BELOW for line in lines]
    widths = [sum(_width(step, sizes) + GAP for step in line) - GAP for line in lines]
    canvas = Canvas(max(widths) + 4, sum(heights))
    top = 0.0
    for line, height in zip(lines, heights, strict=True):
        x, middle = 2.0, top + ABOVE + (height - ABOVE - BELOW) / 2
        for step in line:
            width = _width(step, sizes)
            if isinstance(step, str):
                _operation(canvas, step, x, middle, width)
            else:
                _tensor(canvas, step, sizes, x + width / 2, middle)
            x += width + GAP
        top += height
    return canvas


def _cells(step: Tensor, sizes: Mapping[str, int]) -> tuple[int, int]:
    rows, columns = (1 if letter == "1" else sizes[letter] for letter in step[1:3])
    return rows, columns


def _shape(step: Tensor) -> str:
    return f"{step[1]} × {step[2]}"


def _width(step: Step, sizes: Mapping[str, int]) -> float:
    if isinstance(step, str):
        return text_width(_inside(step), NORMAL) + (16 if _inside(step) != step else 0)
    words = max(text_width(step[0], NORMAL), text_width(_shape(step), SMALL))
    return max(CELL * _cells(step, sizes)[1], words)


def _inside(step: str) -> str:
    """An operation without the brackets that make it a box."""
    boxed = len(step) > 2 and step.startswith("[") and step.endswith("]")
    return step[1:-1] if boxed else step


def _height(step: Step, sizes: Mapping[str, int]) -> float:
    return 26 if isinstance(step, str) else CELL * _cells(step, sizes)[0]


def _operation(canvas: Canvas, step: str, x: float, middle: float, width: float) -> None:
    if _inside(step) != step:
        canvas.draw(rectangles([(x, middle - 13, width, 26)]), "box", stroke="ink")
    canvas.text(x + width / 2, middle, _inside(step), ha="center", va="middle")


def _tensor(
    canvas: Canvas, step: Tensor, sizes: Mapping[str, int], centre: float, middle: float
) -> None:
    rows, columns = _cells(step, sizes)
    role: Role = step[3]  # type: ignore[assignment]
    width, height = CELL * columns, CELL * rows
    x, y = centre - width / 2, middle - height / 2
    box = rectangles([(x, y, width, height)])
    canvas.draw(box, "tensor", fill=role, opacity=0.18)
    inside = [(x, y + CELL * r, x + width, y + CELL * r) for r in range(1, rows)]
    inside += [(x + CELL * c, y, x + CELL * c, y + height) for c in range(1, columns)]
    canvas.draw(segments(inside), "cells", stroke=role, opacity=0.35)
    canvas.draw(box, "tensor", stroke=role, width=1.5)
    canvas.text(centre, y - 8, step[0], role, ha="center")
    canvas.text(centre, y + height + 15, _shape(step), "muted", size=SMALL, ha="center")
