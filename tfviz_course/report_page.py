"""The report as one HTML file: no script, no request, both themes, also on a phone and aloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from tfviz.plots import Figure
from tfviz.plots.roles import DARK, LIGHT, ROLES, Role, variable
from tfviz_course.report import (
    STATES,
    Results,
    Student,
    headline,
    number,
    percent,
    plain,
    solved,
    waiting,
)

TITLES = {
    "totals": "Points",
    "exercises": "Which exercises were hard",
    "matrix": "Who solved what",
}


def _values(colours: Mapping[Role, str]) -> str:
    return ";".join(f"{variable(role)}:{colours[role]}" for role in ROLES)


STYLE = f"""
:root {{ color-scheme: light dark; {_values(LIGHT)}; --soft: #F5F6F8 }}
@media (prefers-color-scheme: dark) {{ :root {{ {_values(DARK)}; --soft: #1B2129 }} }}
@media print {{ :root {{ {_values(LIGHT)}; --soft: #F5F6F8 }} .scroll {{ overflow: visible }} }}
* {{ box-sizing: border-box }}
body {{ margin: 0; color: var(--tfviz-ink); background: var(--tfviz-page);
  font: 1rem/1.5 system-ui, "DejaVu Sans", sans-serif; overflow-wrap: break-word }}
main {{ max-width: 62rem; margin: 0 auto; padding: clamp(1rem, 4vw, 3rem) }}
h1 {{ font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem }}
h2 {{ font-size: 1.25rem; margin: 3rem 0 .75rem }}
p {{ max-width: 42rem; margin: .5rem 0 }}
.course {{ color: var(--tfviz-muted); margin: 0 0 1.5rem }}
.lead {{ font-size: 1.15rem }}
.note {{ border-left: 3px solid var(--tfviz-muted); padding: .1rem 0 .1rem 1rem; margin: 1.5rem 0 }}
figure {{ margin: 0 }}
svg, img {{ min-width: 0 !important; max-width: 100%; height: auto }}
figcaption {{ color: var(--tfviz-muted); max-width: 42rem; margin-top: .5rem }}
.scroll {{ overflow-x: auto }}
:focus-visible {{ outline: 2px solid var(--tfviz-ink); outline-offset: 2px }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .925rem }}
caption {{ text-align: left; color: var(--tfviz-muted); padding-bottom: .5rem }}
th, td {{ padding: .35rem .7rem; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--tfviz-grid) }}
th {{ font-weight: 600 }}
thead th {{ vertical-align: bottom; background: var(--soft) }}
tbody th, .words {{ text-align: left }}
td:not(.words) {{ white-space: nowrap }}
td.words:last-child {{ min-width: 14rem }}
tr:target, tr:hover {{ background: var(--soft) }}
li {{ margin: .2rem 0 }}
"""
# Nothing may be fetched or run, whatever text has found its way into the page.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(found: Results, figures: Mapping[str, Figure]) -> str:
    """The whole document."""
    name, course = escape(plain(found.assignment)), escape(plain(found.course))
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    due = f", due {found.due:%Y-%m-%d %H:%M} UTC" if found.due else ""
    pieces = [
        f"<h1>{name}</h1>",
        f'<p class="course">{course}{due}. Report of {made}.</p>',
        f'<p class="lead">{escape(headline(found))}</p>',
        f'<p class="note">{_privacy(found)}</p>',
    ]
    if todo := waiting(found):
        items = "".join(f"<li>{escape(plain(line))} answers</li>" for line in todo)
        pieces += [
            "<h2>Waits to be graded by hand</h2>",
            f"<p>Open formgrader, then <em>Manual grading</em>.</p><ul>{items}</ul>",
        ]
    for key, figure in figures.items():
        pieces += [f"<h2>{TITLES[key]}</h2>", figure.html]
    pieces += ["<h2>Exercises</h2>", _exercises(found)]
    pieces += ["<h2>Students</h2>", _students(found)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{name} · {course}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(pieces)
        + "\n</main>\n</body>\n</html>\n"
    )


def _privacy(found: Results) -> str:
    if found.anonymous:
        return (
            "Without names: each student appears under a pseudonym that stays the same in all "
            "assignments of this course. In a small class, points alone can give somebody away; "
            "look before you show this."
        )
    return (
        "This page names students and their points. Keep it to yourself; to show the plots in "
        "class, make them without names: <code>tfviz-course report "
        f"{escape(plain(found.assignment))} --anonymous</code>."
    )


def _table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], words: set[int]
) -> str:
    """A table whose first column heads the rows; the columns `words` hold text, the others
    numbers."""

    def kind(column: int) -> str:
        return ' class="words"' if column in words else ""

    head = "".join(f'<th scope="col"{kind(n)}>{escape(text)}</th>' for n, text in enumerate(heads))
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td{kind(n)}>{escape(text)}</td>" for n, text in enumerate(rest, 1))
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _exercises(found: Results) -> str:
    heads = ("exercise", "points", "mean", "solved", "visible checks pass", "hidden checks pass",
             "waiting", "most frequent first message")  # fmt: skip
    rows = [
        (
            plain(one.exercise.name),
            number(one.exercise.points),
            number(one.mean) or "–",
            solved(one),
            percent(one.visible),
            percent(one.hidden),
            str(one.waiting or ""),
            f"{one.times} × {plain(one.message)}" if one.message else "",
        )
        for one in found.difficulties
    ]
    return _table("Exercises in the order of the assignment", heads, rows, {0, 7})


def _students(found: Results) -> str:
    if not found.students:
        return "<p>The gradebook knows no students yet, and nobody has handed in.</p>"
    names = any(student.name for student in found.students)
    heads = [
        "student",
        *["name"] * names,
        "points",
        *(plain(e.name) for e in found.exercises),
        "notes",
    ]
    rows = []
    for student in found.students:
        each = [
            "–" if not student.of(e) else "?" if student.waits(e) else number(student.points(e))
            for e in found.exercises
        ]
        total = number(student.total) if student.counted else "–"
        rows.append(
            [plain(student.id), *[plain(student.name)] * names, total, *each, _notes(student)]
        )
    caption = f"Students in alphabetical order, points of {number(found.maximum)}"
    if any(student.waiting for student in found.students):
        caption += "; ? waits to be graded by hand"
    return _table(caption, heads, rows, {0, len(heads) - 1} | ({1} if names else set()))


def _notes(student: Student) -> str:
    notes = [] if student.state == "graded" else [STATES[student.state]]
    if student.minutes_late:
        notes.append(f"{student.minutes_late} min late")
    if student.penalty:
        notes.append(f"{number(student.penalty)} points taken off")
    return "; ".join([*notes, *map(plain, student.remarks)])
