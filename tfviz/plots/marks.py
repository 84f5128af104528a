"""What a canvas keeps of what is drawn on it."""

from dataclasses import dataclass

import numpy as np

from tfviz.plots.roles import Role
from tfviz.plots.shapes import Box, Shape


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    words: str
    style: str
    role: Role
    size: float
    ha: str
    bold: bool
    upright: bool
    halo: bool


@dataclass(frozen=True)
class Drawn:
    shape: Shape
    name: str
    fill: Role | None
    stroke: Role | None
    width: float
    opacity: float
    dash: tuple[float, ...]


@dataclass(frozen=True)
class Hatched(Drawn):
    """All diagonals of a box (x, y, width, height), which stand `step` apart along its sides."""

    box: Box
    step: float


@dataclass(frozen=True)
class Opacities:
    """One pixel for each cell of a matrix, as opaque as it is strong."""

    values: np.ndarray
    x: float
    y: float
    width: float
    height: float
    role: Role


Mark = Text | Drawn | Opacities
