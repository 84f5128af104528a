"""Plots of a class's results, in the look of the course, each with its alt text.

Violet is what a student has: full marks are full violet. Everything else is ink, and hatched is
what was never handed in, which is not the same as no points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from tfviz.plots import Figure
from tfviz.plots.canvas import (
    SMALL,
    Canvas,
    dots,
    hatch,
    polygons,
    rectangles,
    segments,
    text_width,
)
from tfviz.plots.roles import Role
from tfviz_course.report import Difficulty, Exercise, Results, Student, number, percent, plain

NAMES = ("totals", "exercises", "matrix")
LEFT, RIGHT, PLOT = 26, 26, 568
STEPS = (0.25, 0.5, 1, 2, 2.5, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000)
NAMED_UP_TO = 40
"""Rows of the matrix that still carry a name."""


def all_charts(found: Results) -> dict[str, Figure]:
    """The plots that these results allow: none before something is graded."""
    if not found.graded or not found.maximum:
        return {}
    return {
        "totals": totals(found),
        "exercises": solved(found),
        "matrix": matrix(found),
    }


def _words(canvas: Canvas, x: float, y: float, words: str, **more: object) -> None:
    """Names come from outside: a $ in them is no formula."""
    canvas.text(x, y, words, parse_math=False, **more)  # type: ignore[arg-type]


def _step(span: float, most: int) -> float:
    """A round width that cuts `span` into at most `most` pieces."""
    return next((step for step in STEPS if span / step <= most), span / most)


# --- totals --------------------------------------------------------------------------------------


def totals(found: Results) -> Figure:
    """One dot for each student; hollow where an answer still waits to be graded."""
    top, students = found.maximum, sorted(found.graded, key=lambda s: (s.total, bool(s.waiting)))
    most = max([top, *(s.total for s in students)])  # extra credit can exceed the maximum
    columns = _columns([s.total for s in students], most)
    counts = Counter(columns)
    gap = PLOT / max(1, most / _narrowest(columns))
    radius = max(2.0, min(9.0, gap / 2 - 1, 240 / max(counts.values()) / 2 - 0.5))
    height = max(70.0, max(counts.values()) * (2 * radius + 1) + 12)
    canvas = Canvas(LEFT + PLOT + RIGHT, 34 + height + 44)
    base = 34 + height

    def x(points: float) -> float:
        return LEFT + PLOT * points / most

    canvas.draw(segments([(LEFT, base, LEFT + PLOT, base)]), "axis", stroke="muted")
    ticks = [n * _step(most, 12) for n in range(int(most / _step(most, 12) + 1e-9) + 1)]
    canvas.draw(segments([(x(t), base, x(t), base + 4) for t in ticks]), "ticks", stroke="muted")
    for tick in ticks:
        canvas.text(x(tick), base + 17, number(tick), "muted", size=SMALL, ha="center")
    canvas.text(LEFT + PLOT / 2, base + 36, f"points, of {number(top)}", ha="center")
    middle = "" if found.median is None else f"median {number(found.median)}"
    if found.median is not None:
        line = segments([(x(found.median), 24, x(found.median), base)])
        canvas.draw(line, "median", stroke="ink", width=1.5, dash=(0, (4, 3)))
        side = "left" if x(found.median) + text_width(middle) < LEFT + PLOT else "right"
        canvas.text(x(found.median), 14, middle, ha=side)
    places: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    level: Counter[float] = Counter()
    for column, student in zip(columns, students, strict=True):
        y = base - 4 - radius - level[column] * (2 * radius + 1)
        places[bool(student.waiting)].append((x(column), y))
        level[column] += 1
    canvas.draw(dots(places[False], radius), "dots", fill="attention")
    if places[True]:
        canvas.draw(dots(places[True], radius), "hollow-halo", fill="page")
        canvas.draw(dots(places[True], radius - 0.75), "hollow", stroke="attention", width=1.5)
    said = ", ".join(f"{n} with {number(at)}" for at, n in sorted(counts.items()))
    open_ = f" {len(places[True])} of them still have answers to be graded." * bool(places[True])
    alt = (
        f"Points of {len(students)} students, of {number(top)} possible: {middle and f'{middle}, '}"
        f"from {number(students[0].total)} to {number(students[-1].total)}. Students: {said}."
    )
    caption = "One dot is one student."
    if places[True]:
        caption += " Hollow: an answer still waits to be graded by hand, so points may be added."
    return Figure([canvas.panel(alt + open_)], caption=caption)


def _columns(points: Sequence[float], most: float) -> list[float]:
    """Where the dots stand: at their points, or at the middle of round steps when too many."""
    if len(set(points)) <= 1 or min(_gaps(points)) >= most / 60:
        return list(points)
    step = _step(most, 48)
    return [round(p / step) * step for p in points]


def _gaps(points: Sequence[float]) -> list[float]:
    return [b - a for a, b in pairwise(sorted(set(points)))]


def _narrowest(columns: Sequence[float]) -> float:
    return min(_gaps(columns), default=float("inf"))


# --- exercises -----------------------------------------------------------------------------------


def solved(found: Results) -> Figure:
    """For each exercise: who passes the checks that they can see, and who the hidden ones too."""
    rows = sorted(found.difficulties, key=_done, reverse=True)
    left = 24 + min(240.0, max(text_width(_label(row)) for row in rows))
    width, room = 330, 120
    canvas = Canvas(left + width + room, 56 + 30 * len(rows) + 34)

    def x(share: float) -> float:
        return left + width * share

    top, bottom = 44, 44 + 30 * len(rows)
    for share in (0, 0.25, 0.5, 0.75, 1):
        canvas.draw(segments([(x(share), top, x(share), bottom)]), "grid", stroke="grid")
        canvas.text(x(share), bottom + 17, percent(share), "muted", size=SMALL, ha="center")
    canvas.text(x(0.5), bottom + 36, "share of students", ha="center")
    _legend(canvas, left, rows)
    for n, row in enumerate(rows):
        y = top + 30 * n + 15
        _words(canvas, left - 12, y, _label(row), ha="right", va="middle")
        done = _done(row)
        if row.exercise.written:
            canvas.draw(polygons([_diamond(x(done), y)]), "written", fill="attention")
            note = f"{percent(done)} of points"
        else:
            seen = row.visible if row.visible is not None else done
            canvas.draw(segments([(x(done), y, x(seen), y)]), "span", stroke="muted", width=2)
            canvas.draw(dots([(x(seen), y)], 8.5), "visible-halo", fill="page")
            canvas.draw(dots([(x(seen), y)], 8.5), "visible", stroke="ink", width=1.75)
            canvas.draw(dots([(x(done), y)], 5.5), "solved", fill="attention")
            note = f"{row.solved} of {row.students}"
        canvas.text(left + width + 18, y, note, va="middle")
    caption = "Easiest first."
    if not all(row.exercise.written for row in rows):
        caption += (
            " A long line between ring and dot: the visible checks of that exercise let something "
            "through that the hidden ones catch."
        )
    return Figure([canvas.panel(" ".join(map(_said, rows)))], caption=caption)


def _done(row: Difficulty) -> float:
    return (row.share if row.exercise.written else row.solved_share) or 0.0


def _label(row: Difficulty) -> str:
    return plain(row.exercise.name, 32)


def _diamond(x: float, y: float) -> list[tuple[float, float]]:
    return [(x - 7, y), (x, y - 7), (x + 7, y), (x, y + 7)]


def _legend(canvas: Canvas, left: float, rows: Sequence[Difficulty]) -> None:
    written = [row.exercise.written for row in rows]
    x = left
    if not all(written):
        canvas.draw(dots([(x + 7, 15)], 6.5), "legend", stroke="ink", width=1.75)
        canvas.text(x + 19, 15, "visible checks pass", va="middle")
        x += 19 + text_width("visible checks pass") + 4
        canvas.draw(dots([(x + 7, 15)], 5.5), "legend", fill="attention")
        canvas.text(x + 19, 15, "solved: all points", va="middle")
    if any(written):
        y = 15 if all(written) else 33
        canvas.draw(polygons([_diamond(left + 7, y)]), "legend", fill="attention")
        canvas.text(left + 19, y, "written: mean share of points", va="middle")


def _said(row: Difficulty) -> str:
    name = _label(row)
    if row.exercise.written:
        return f"{name}, written: {percent(row.share)} of the points on average."
    words = f"{name}: solved by {row.solved} of {row.students} students ({percent(_done(row))})"
    return words + (f", visible checks {percent(row.visible)}." if row.visible is not None else ".")


# --- students and exercises ----------------------------------------------------------------------


def matrix(found: Results) -> Figure:
    """Students by total, exercises by ease: where the staircase has holes, look closer."""
    students = sorted(found.graded, key=lambda s: (-s.total, s.id)) + found.those("missing")
    columns = [
        row.exercise for row in sorted(found.difficulties, key=lambda row: -(row.share or 0))
    ]
    named = len(students) <= NAMED_UP_TO
    cell = 34 if len(columns) <= 16 else 22
    row = 22 if named else max(2, min(10, 900 // len(students)))
    names = [plain(s.id, 24) for s in students]
    left = round(36 + (max(text_width(name, SMALL) for name in names) if named else 0))
    heads = [plain(exercise.name, 28) for exercise in columns]
    top = round(34 + max(text_width(head, SMALL) for head in heads) * 0.95)
    width, height = cell * len(columns), row * len(students)
    canvas = Canvas(max(left + width + 8, 320), top + height + 8)
    canvas.text(left, 14, "exercise, easiest first →", "ink", weight="bold")
    down = "← student, most points first"
    canvas.text(13, top, down if height > 190 else "← student", weight="bold", ha="right",
                rotation=90, rotation_mode="anchor")  # fmt: skip
    for n, head in enumerate(heads):
        x = left + (n + 0.5) * cell + 4
        _words(canvas, x, top - 8, head, role="muted", size=SMALL, rotation=90,
               rotation_mode="anchor")  # fmt: skip
    if named:
        for n, name in enumerate(names):
            y = top + (n + 0.5) * row
            _words(canvas, left - 8, y, name, role="muted", size=SMALL, ha="right", va="middle")
    _cells(canvas, students, columns, left, top, cell, row, named)
    canvas.draw(rectangles([(left, top, width, height)]), "borders", stroke="muted")
    caption = "Violet: the share of the points. Students are ordered by their total."
    if found.those("missing"):
        caption += " Hatched: not handed in."
    if any(s.waiting for s in students):
        caption += " ?: waits to be graded." if named else ""
    return Figure([canvas.panel(_matrix_alt(found, students, columns))], caption=caption)


def _cells(
    canvas: Canvas,
    students: Sequence[Student],
    columns: Sequence[Exercise],
    left: float,
    top: float,
    cell: float,
    row: float,
    named: bool,
) -> None:
    levels: dict[int, list[tuple[float, float, float, float]]] = {}
    for r, student in enumerate(students):
        y = top + r * row
        if student.state != "graded":
            canvas.draw(hatch(left, y, cell * len(columns), row, row), "hatch", stroke="muted",
                        opacity=0.6)  # fmt: skip
            continue
        for c, exercise in enumerate(columns):
            share = student.points(exercise) / exercise.points if exercise.points else 0.0
            level = round(20 * min(1.0, max(0.0, share)))
            levels.setdefault(level, []).append((left + c * cell, y, cell, row))
    for level, boxes in sorted(levels.items()):
        if level:
            canvas.draw(rectangles(boxes), "kept", fill="attention", opacity=level / 20)
    if not named:
        return
    inner = [(left, top + r * row, left + cell * len(columns), top + r * row)
             for r in range(1, len(students))]  # fmt: skip
    inner += [(left + c * cell, top, left + c * cell, top + row * len(students))
              for c in range(1, len(columns))]  # fmt: skip
    canvas.draw(segments(inner), "borders", stroke="grid")
    for r, student in enumerate(students):
        for c, exercise in enumerate(columns if student.state == "graded" else ()):
            points = student.points(exercise)
            words = "?" if student.waits(exercise) else number(points)
            size = min(SMALL, 0.92 * cell / (0.58 * len(words)))
            x, y = left + (c + 0.5) * cell, top + (r + 0.5) * row
            over: Role = "page" if points >= 0.75 * exercise.points else "ink"
            canvas.text(x, y, words, over, size=size, ha="center", va="middle")


def _matrix_alt(found: Results, students: Sequence[Student], columns: Sequence[Exercise]) -> str:
    graded = [student for student in students if student.state == "graded"]
    words = [
        f"Points of {len(graded)} students in {len(columns)} exercises.",
        "Exercises, easiest first: " + ", ".join(plain(e.name, 28) for e in columns) + ".",
    ]
    if len(graded) <= 12:
        for student in graded:
            each = ", ".join(
                "waits" if student.waits(e) else number(student.points(e)) for e in columns
            )
            words.append(f"{plain(student.id, 24)}: {each}.")
    else:
        words.append(
            f"Totals from {number(graded[0].total)} down to {number(graded[-1].total)} points."
        )
    if len(students) > len(graded):
        words.append(f"{len(students) - len(graded)} did not hand in.")
    return " ".join(words)
