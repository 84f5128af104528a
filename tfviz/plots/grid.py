"""One matrix on a canvas: rows are queries downwards, columns are keys to the right."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tfviz.plots.canvas import NORMAL, SMALL, TITLE, WIDE, Canvas, text_width, wrapped
from tfviz.plots.roles import Role
from tfviz.plots.shapes import dots, polygons, rectangles, runs, segments

BORDERS_UP_TO = 32
MOST_BOXES = 2400
MIDDLE, STRONG = 0.65, 0.9
"""Shades on which ink needs a halo, and those on which the colour of the page is read better."""
LEAST = 10
"""Smallest words in px; finer ones are left out."""


class Matrix:
    """One matrix on a canvas: its place, axes, cells and frames."""

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        title: str = "",
        side: int = 320,
        row_names: Sequence[str] | None = None,
        column_names: Sequence[str] | None = None,
        xlabel: str = "key j",
        ylabel: str = "query i",
        below: int = 0,
        roles: tuple[Role, Role] = ("query", "key"),
        room: float = WIDE,
    ) -> None:
        self.rows, self.columns = rows, columns
        named = [text_width(name, SMALL) for name in row_names or [str(rows - 1)]]
        self.left = round(30 + max(named)) if ylabel or row_names else 16
        self.cell = min(36, side / max(rows, columns))
        if row_names or column_names:
            self.cell = max(int(self.cell), 22)
        space = room - self.left - 6
        if self.left > room / 2:  # long names: each column keeps room for its own
            space = max(space, columns * (SMALL + 1))
        self.cell = min(self.cell, space / columns)
        if self.cell >= 1:
            self.cell = int(self.cell)
        wide = column_names is not None and any(
            text_width(name, SMALL) > self.cell for name in column_names
        )
        column_room = max(text_width(name, SMALL) for name in column_names or ["0"]) if wide else 14
        lines = wrapped(title, columns * self.cell, TITLE, bold=True)
        self.top = round(len(lines) * 18 + 24 + column_room + 8)
        self.width, self.height = columns * self.cell, rows * self.cell
        self.canvas = Canvas(
            max(
                self.left + self.width + 6,
                self.left + max(text_width(w, TITLE, bold=True) for w in ["", *lines]) + 8,
                min(room, self.left + text_width(f"{xlabel} →", bold=True) + 4),
            ),
            self.top + max(self.height, text_width(f"← {ylabel}", bold=True)) + 6 + below,
        )
        for n, line in enumerate(lines):
            self.canvas.text(self.left, 13 + 18 * n, line, size=TITLE, bold=True)
        above = len(lines) * 18 + 16
        self._axes(row_names, column_names, wide, above, xlabel, ylabel, roles)

    def _axes(
        self,
        row_names: Sequence[str] | None,
        column_names: Sequence[str] | None,
        wide: bool,
        above: float,
        xlabel: str,
        ylabel: str,
        roles: tuple[Role, Role],
    ) -> None:
        every = next((n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256) if n * self.cell >= 20), 512)
        self.every = every
        for n in range(0, self.columns, 1 if column_names and self.cell >= SMALL else every):
            x = self.left + (n + 0.5) * self.cell
            if wide:
                self.canvas.text(
                    x + 4,
                    self.top - 9,
                    (column_names or [])[n],
                    "muted",
                    size=SMALL,
                    upright=True,
                )
            else:
                name = column_names[n] if column_names else str(n)
                self.canvas.text(x, self.top - 9, name, "muted", size=SMALL, ha="center")
        for n in range(0, self.rows, 1 if row_names and self.cell >= SMALL else every):
            y = self.top + (n + 0.5) * self.cell
            name = row_names[n] if row_names else str(n)
            self.canvas.text(self.left - 10, y, name, "muted", size=SMALL, ha="right", va="middle")
        if xlabel:
            self.canvas.text(self.left, above, f"{xlabel} →", roles[1], bold=True)
        if ylabel:
            self.canvas.text(
                13,
                self.top,
                f"← {ylabel}",
                roles[0],
                bold=True,
                ha="right",
                upright=True,
            )

    def at(self, column: float, row: float) -> tuple[float, float]:
        return self.left + column * self.cell, self.top + row * self.cell

    def box(self, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        column, row, width, height = box
        return *self.at(column, row), width * self.cell, height * self.cell

    # --- what is in the cells

    def hatch(self, backdrop: Tensor | None = None) -> None:
        """Everything is hatched, *not allowed*, until a cell is laid over it."""
        self.canvas.hatch((self.left, self.top, self.width, self.height), self.cell)
        if backdrop is not None:
            self.fill(backdrop, "page", "backdrop")

    def fill(
        self, cells: Tensor, role: Role, name: str, opacity: float = 1, inset: float = 0
    ) -> None:
        if inset:
            boxes = [
                (x + inset, y + inset, w - 2 * inset, h - 2 * inset)
                for r, c in cells.nonzero().tolist()
                for x, y, w, h in [self.box((c, r, 1, 1))]
            ]
        else:
            boxes = [self.box(b) for b in runs(cells)]
            if len(boxes) > MOST_BOXES:  # scattered cells by the thousand are smaller as an image
                x, y = self.at(0, 0)
                self.canvas.image(opacity * cells.double().numpy(), x, y, self.cell, role)
                return
        self.canvas.draw(rectangles(boxes), name, fill=role, opacity=opacity)

    def ramp(self, strength: Tensor, role: Role, name: str, inset: float = 0) -> None:
        """Cells of one colour, as opaque as they are strong, in steps of 1 %; fine ones as
        an image."""
        strength = strength.clamp(0, 1)
        if max(self.rows, self.columns) > BORDERS_UP_TO:
            if bool((strength > 0).any()):
                x, y = self.at(0, 0)
                self.canvas.image(strength.numpy(), x, y, self.cell, role)
            return
        steps = (strength * 100).round().int()
        for level in steps.unique().tolist():
            if level > 0:
                self.fill(steps == level, role, name, opacity=level / 100, inset=inset)

    def marks(self, cells: Tensor, shape: str, role: Role, name: str) -> None:
        centres = [self.at(c + 0.5, r + 0.5) for r, c in cells.nonzero().tolist()]
        radius = max(0.9, 0.24 * self.cell)
        if shape == "dot":
            if self.cell >= 8:
                self.canvas.draw(dots(centres, radius + 1.5), f"{name}-halo", fill="page")
            self.canvas.draw(dots(centres, radius), name, fill=role)
        else:
            path = dots(centres, 1.35 * radius)
            self.canvas.draw(path, name, stroke=role, width=max(1, self.cell / 12))

    def borders(self) -> None:
        """Lines between cells up to L = 32, and a line around the matrix always."""
        (x0, y0), (x1, y1) = self.at(0, 0), self.at(self.columns, self.rows)
        if max(self.rows, self.columns) <= BORDERS_UP_TO:
            inner = [(x, y0, x, y1) for x, _ in (self.at(n, 0) for n in range(1, self.columns))]
            inner += [(x0, y, x1, y) for _, y in (self.at(0, n) for n in range(1, self.rows))]
            self.canvas.draw(segments(inner), "borders", stroke="grid")
        self.canvas.draw(rectangles([(x0, y0, x1 - x0, y1 - y0)]), "borders", stroke="muted")

    def frame(self, query: int, keys: Sequence[int]) -> None:
        """The row of `query` and, within it, its keys."""
        x, y, width, height = self.box((0, query, self.columns, 1))
        grown = max(1, min(2, self.cell / 6))
        row = (x - grown, y - grown, width + 2 * grown, height + 2 * grown)
        self.canvas.draw(rectangles([row]), "frame-halo", stroke="page", width=4)
        self.canvas.draw(rectangles([row]), "frame", stroke="query", width=2)
        chosen = torch.zeros(1, self.columns, dtype=torch.bool)
        chosen[0, list(keys)] = True
        if self.cell >= 9:
            inner = [self.box((c, query, w, 1)) for c, _, w, _ in runs(chosen)]
            inset = [(x + 2, y + 2, w - 4, h - 4) for x, y, w, h in inner]
            self.canvas.draw(rectangles(inset), "keys-halo", stroke="page", width=4)
            self.canvas.draw(rectangles(inset), "keys", stroke="key", width=2)
        size = 4 if self.cell >= 4 else 3
        tips = [self.at(j + 0.5, 0) for j in keys]
        downs = [
            [(tx - size * 0.8, ty - 2 - size), (tx + size * 0.8, ty - 2 - size), (tx, ty - 2)]
            for tx, ty in tips
        ]
        self.canvas.draw(polygons(downs), "key-pointers", fill="key")
        px, py = self.at(0, query + 0.5)
        right = [(px - 3 - size, py - size * 0.9), (px - 3 - size, py + size * 0.9), (px - 3, py)]
        self.canvas.draw(polygons([right]), "query-pointer", fill="query")

    def numbers(self, words: Sequence[Sequence[str]], strength: Tensor) -> None:
        """Numbers in the cells, without the nought before the point where room is short; none where
        they could not be read."""
        longest = max((text_width(word, 1) for line in words for word in line), default=1)
        size = min(NORMAL, 0.98 * self.cell / max(longest, 0.1))
        if size < LEAST:
            words = [[word.replace("0.", ".") for word in line] for line in words]
            longest = max((text_width(word, 1) for line in words for word in line), default=1)
            size = min(SMALL, 0.98 * self.cell / longest)
        if size < LEAST:
            return
        for r, line in enumerate(words):
            for c, word in enumerate(line):
                if word:
                    x, y = self.at(c + 0.5, r + 0.5)
                    share = float(strength[r, c])
                    role: Role = "page" if share > STRONG else "ink"
                    self.canvas.text(
                        x,
                        y,
                        word,
                        role,
                        size=size,
                        ha="center",
                        va="middle",
                        halo=MIDDLE < share <= STRONG,
                    )

    def below(self, line: int, words: str, role: Role = "ink") -> None:
        y = self.top + self.height + 20 + 18 * line
        self.canvas.text(self.left, y, words, role)

    def legend(self, line: int, entries: Sequence[tuple[str, str]]) -> None:
        """Direct labels for the shapes of an overlay: (shape, words)."""
        x, y = float(self.left), self.top + self.height + 16 + 18 * line
        for shape, words in entries:
            box = (x, y - 5, 11, 11)
            if shape == "square":
                self.canvas.draw(rectangles([box]), "legend", fill="attention")
            elif shape == "dot":
                self.canvas.draw(dots([(x + 5.5, y)], 4), "legend", fill="ink")
            else:
                self.canvas.draw(dots([(x + 5.5, y)], 4.5), "legend", stroke="ink", width=1.5)
            self.canvas.text(x + 17, y, words, va="middle")
            self.canvas.widen(x + 17, words)
            x += 17 + text_width(words) + 14
