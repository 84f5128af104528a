"""What the pages for instructors take from the grading, so that they cannot say something else.

The book imports nothing of `teaching`: that house writes `book/grading.json`, and tests that it is
up to date.

```{grading-figure}       how a submission travels, as a picture
```{grading-limits}       what a submission may use: the defaults of the sandbox
```{bad-submissions}      every kind of submission that the tests try, and what it gets
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tfviz.plots import Figure
from tfviz.plots.canvas import SMALL, WIDE, Canvas, fitted
from tfviz.plots.roles import Role
from tfviz.plots.shapes import Box, polygons, rectangles, segments

DATA = Path(__file__).resolve().parents[1] / "grading.json"


# --- the figure ----------------------------------------------------------------------------------

ALT = (
    "How a submission is graded. The source, with solutions and hidden tests, stays with the "
    "instructor; the release without them goes to the student, who hands in a notebook. From it "
    "only the text of the answer cells is taken over into a notebook rebuilt from the release. The "
    "answers run in a sandbox without network and files. The tests, which come from the source, "
    "run outside of it, in the judge. Between the two there is a line that only data cross: inputs "
    "go into the sandbox, values come out. Points go into the gradebook, and on into feedback and "
    "report."
)
CAPTION = (
    "Violet is what a student wrote. It never meets the tests: only data cross the line between "
    "sandbox and judge."
)


def _arrow(canvas: Canvas, points: Sequence[tuple[float, float]], role: Role = "ink") -> None:
    """A line through these points with a head at its end; it runs along the axes."""
    lines = [(*a, *b) for a, b in itertools.pairwise(points)]
    canvas.draw(segments(lines), "arrow", stroke=role, width=1.75)
    (x0, y0), (x, y) = points[-2:]
    dx, dy = ((x > x0) - (x < x0)) * 8, ((y > y0) - (y < y0)) * 8
    side = (dy / 1.8, dx / 1.8)
    head = [(x, y), (x - dx + side[0], y - dy + side[1]), (x - dx - side[0], y - dy - side[1])]
    canvas.draw(polygons([head]), "head", fill=role)


def _box(
    canvas: Canvas,
    box: Box,
    title: str,
    *lines: str,
    role: Role = "ink",
    dash: tuple[float, ...] = (),
) -> None:
    x, y, width, _ = box
    canvas.draw(rectangles([box]), "box", stroke=role, width=1.75, dash=dash)
    canvas.text(x + width / 2, y + 24, title, role, bold=True, ha="center")
    for n, line in enumerate(lines):
        canvas.text(x + width / 2, y + 43 + 17 * n, line, "ink", size=SMALL, ha="center")


def grading_figure() -> Figure:
    """From the source to the points; violet is what a student wrote."""

    def draw(room: float) -> Canvas:
        return _broad() if room == WIDE else _narrow()

    return Figure([fitted(draw, ALT)], caption=CAPTION)


def _broad() -> Canvas:
    canvas = Canvas(700, 560)
    dashed = (5, 3)
    _box(canvas, (10, 10, 190, 76), "source", "solutions, hidden tests", "yours alone")
    _box(canvas, (255, 10, 190, 76), "release", "gaps, visible tests", "for students")
    student = (500, 10, 190, 76)
    _box(
        canvas,
        student,
        "student's notebook",
        "anything",
        "may come back",
        role="attention",
        dash=dashed,
    )
    _arrow(canvas, [(200, 48), (255, 48)])
    _arrow(canvas, [(445, 48), (500, 48)])
    _box(canvas, (255, 150, 435, 76), "rebuilt", "the release, and in its answer cells",
         "the text that the student wrote; nothing else")  # fmt: skip
    _arrow(canvas, [(350, 86), (350, 150)])
    _arrow(canvas, [(595, 86), (595, 150)], "attention")
    canvas.text(605, 122, "answers", "attention", size=SMALL)
    judge, cell = (10, 290, 270, 116), (420, 290, 270, 116)
    _box(canvas, judge, "judge", "runs the tests of the source", "draws secret inputs",
         "knows what is right", "never runs what a student wrote")  # fmt: skip
    _box(canvas, cell, "sandbox", "runs the answers", "no network, no files of yours",
         "limits on time and memory", "one for each notebook",
         role="attention", dash=dashed)  # fmt: skip
    _arrow(canvas, [(105, 86), (105, 290)])
    canvas.text(115, 192, "tests", size=SMALL)
    _arrow(canvas, [(555, 226), (555, 290)], "attention")
    canvas.text(565, 262, "answers", "attention", size=SMALL)
    canvas.draw(segments([(350, 282, 350, 416)]), "line", stroke="ink", width=2, dash=(2, 3))
    canvas.text(350, 274, "only data cross", size=SMALL, ha="center", bold=True)
    _arrow(canvas, [(280, 330), (420, 330)])
    canvas.text(290, 322, "inputs", size=SMALL)
    _arrow(canvas, [(420, 380), (280, 380)], "attention")
    canvas.text(410, 372, "values", "attention", size=SMALL, ha="right")
    _box(canvas, (10, 478, 190, 76), "gradebook", "nbgrader's; points", "by test and by hand")
    _box(canvas, (255, 478, 190, 76), "feedback", "without the text", "of hidden tests")
    _box(canvas, (500, 478, 190, 76), "report", "of the class,", "with remarks for you")
    _arrow(canvas, [(105, 406), (105, 478)])
    canvas.text(115, 446, "passed, or not", size=SMALL)
    _arrow(canvas, [(200, 516), (255, 516)])
    canvas.draw(
        segments([(228, 516, 228, 462), (228, 462, 595, 462)]), "arrow", stroke="ink", width=1.75
    )
    _arrow(canvas, [(595, 462), (595, 478)])
    return canvas


def _narrow() -> Canvas:
    """The same on a phone: down rather than across."""
    canvas = Canvas(344, 680)
    dashed = (5, 3)
    _box(canvas, (2, 10, 136, 92), "source", "solutions,", "hidden tests,", "yours alone")
    _box(canvas, (170, 10, 172, 76), "release", "gaps, visible tests", "for students")
    _box(canvas, (204, 124, 138, 76), "student's notebook", "anything", "may come back",
         role="attention", dash=dashed)  # fmt: skip
    _box(canvas, (110, 246, 232, 92), "rebuilt", "the release, and in its",
         "answer cells the text that the", "student wrote; nothing else")  # fmt: skip
    _arrow(canvas, [(138, 48), (170, 48)])
    _arrow(canvas, [(274, 86), (274, 124)])
    _arrow(canvas, [(186, 86), (186, 246)])
    _arrow(canvas, [(274, 200), (274, 246)], "attention")
    canvas.text(284, 227, "answers", "attention", size=SMALL)
    _box(canvas, (2, 396, 142, 126), "judge", "runs the tests", "of the source,",
         "draws secret inputs,", "never runs what", "a student wrote")  # fmt: skip
    _box(canvas, (200, 396, 142, 126), "sandbox", "runs the answers", "without network,",
         "without your files,", "within limits,", "alone",
         role="attention", dash=dashed)  # fmt: skip
    _arrow(canvas, [(50, 102), (50, 396)])
    canvas.text(60, 230, "tests", size=SMALL)
    _arrow(canvas, [(274, 338), (274, 396)], "attention")
    canvas.text(284, 370, "answers", "attention", size=SMALL)
    canvas.text(172, 382, "only data cross", size=SMALL, ha="center", bold=True)
    for top, bottom in ((390, 422), (448, 472), (498, 528)):
        ends = segments([(172, top, 172, bottom)])
        canvas.draw(ends, "line", stroke="ink", width=2, dash=(2, 3))
    _arrow(canvas, [(144, 444), (200, 444)])
    canvas.text(172, 436, "inputs", size=SMALL, ha="center")
    _arrow(canvas, [(200, 494), (144, 494)], "attention")
    canvas.text(172, 486, "values", "attention", size=SMALL, ha="center")
    _box(canvas, (2, 584, 98, 92), "gradebook", "nbgrader's;", "by test", "and by hand")
    _box(canvas, (123, 584, 98, 92), "feedback", "without text", "of hidden", "tests")
    _box(canvas, (244, 584, 98, 92), "report", "of the class,", "with remarks", "for you")
    _arrow(canvas, [(50, 522), (50, 584)])
    canvas.text(60, 550, "passed, or not", size=SMALL)
    _arrow(canvas, [(100, 630), (123, 630)])
    detour = segments([(111, 630, 111, 568), (111, 568, 293, 568)])
    canvas.draw(detour, "arrow", stroke="ink", width=1.75)
    _arrow(canvas, [(293, 568), (293, 584)])
    return canvas


class GradingFigure(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", grading_figure().html, format="html")]


# --- tables --------------------------------------------------------------------------------------


def stored() -> dict[str, Any]:
    """What the grading says of itself: the rows of its limits, and of the bad submissions."""
    known: dict[str, Any] = json.loads(DATA.read_text("utf8"))
    return known


def _table(heads: Sequence[str], rows: Sequence[Sequence[nodes.Node | str]]) -> nodes.table:
    group = nodes.tgroup(cols=len(heads))
    group += [nodes.colspec(colwidth=1) for _ in heads]
    for part, lines in ((nodes.thead(), [heads]), (nodes.tbody(), rows)):
        for line in lines:
            row = nodes.row()
            for cell in line:
                text = nodes.Text(cell) if isinstance(cell, str) else cell
                row += nodes.entry("", nodes.paragraph("", "", text))
            part += row
        group += part
    return nodes.table("", group)


class GradingLimits(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(DATA))
        return [_table(("at most", "for"), stored()["limits"])]


class BadSubmissions(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(DATA))
        made: list[nodes.Node] = []
        for heading, rows in stored()["bad submissions"].items():
            summary = f"<details><summary>{heading} ({len(rows)})</summary>"
            made += [
                nodes.raw("", summary, format="html"),
                _table(("what it does", "gets"), rows),
                nodes.raw("", "</details>", format="html"),
            ]
        return made


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("grading-figure", GradingFigure)
    app.add_directive("grading-limits", GradingLimits)
    app.add_directive("bad-submissions", BadSubmissions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
