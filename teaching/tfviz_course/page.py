"""One page with the results of a class: for a browser, in both themes, and for paper.

It is a file of its own that asks no other host for anything. All text on it goes through Jinja's
escaping; the plots are the course's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from tfviz_course import report
from tfviz_course import students as ids
from tfviz_course.report import Change, Results, Student

SAID = {"●": "all points", "◐": "some points", "○": "no points", "?": "waits", "–": "not graded"}

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{ found.assignment }}, {{ found.course }}: results</title>
<style>
:root { {{ light }} }
@media screen and (prefers-color-scheme: dark) { :root { {{ dark }} } }
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 68rem;
  background: var(--tfviz-page); color: var(--tfviz-ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { margin: 0; font-size: 1.6rem; }
h2 { margin: 2.2rem 0 .6rem; font-size: 1.2rem; }
h1 + p { margin-top: .3rem; font-size: 1.1rem; }
.quiet { color: var(--tfviz-muted); font-weight: normal; white-space: pre-wrap; }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 2px solid var(--tfviz-attention); }
table { border-collapse: collapse; min-width: 100%; overflow-wrap: normal; }
th, td { padding: .35rem .6rem; text-align: right; vertical-align: top; white-space: nowrap; }
thead th { border-bottom: 2px solid var(--tfviz-grid); vertical-align: bottom; }
tbody tr + tr > * { border-top: 1px solid var(--tfviz-grid); }
th[scope="row"], .left, .words { text-align: left; }
td.words { min-width: 14rem; white-space: normal; }
th .quiet { font-size: .9rem; white-space: nowrap; }
.share { display: block; height: .35rem; margin-top: .2rem; background: var(--tfviz-grid); }
.share > span { display: block; height: 100%; background: var(--tfviz-attention); }
.plots { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); }
figure { margin: 0; min-width: 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
figcaption { color: var(--tfviz-muted); font-size: .9rem; }
/* On a phone each row is a card, its cells with the heads of their columns in front. */
@media screen and (max-width: 44rem) {
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  table, tbody { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: .1rem 1rem; padding: .5rem 0; }
  tr + tr { border-top: 1px solid var(--tfviz-grid); }
  tbody tr + tr > * { border: 0; }
  th, td { padding: 0; white-space: normal; text-align: left; }
  td[data-head]::before { content: attr(data-head) " "; color: var(--tfviz-muted); }
  th[scope="row"], td.words { flex: 0 0 100%; min-width: 0; }
  th .quiet { white-space: normal; }
  td.words:empty { display: none; }
}
@media print {
  body { padding: 0; max-width: none; font-size: 10pt; }
  .wide { overflow: visible; }
  th, td { padding: .15rem .3rem; white-space: normal; }
  td.words { min-width: 0; }
  tr, figure { break-inside: avoid; }
  h2 { break-after: avoid; }
  .share > span { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
</style>
</head>
<body>
<main>
<h1>{{ found.assignment }}, {{ found.course }}</h1>
<p>{{ headline }}</p>
{% if todo or alike or strange %}
<h2>What waits for you</h2>
<ul>
{% for one in todo %}<li>{{ one }}</li>{% endfor %}
{% for one in alike %}<li>Look: {{ one }}.</li>{% endfor %}
{% if strange %}<li>Left out of submitted/, for their names: {{ strange }}. There, {{ rule }}.</li>
{% endif %}
</ul>
{% endif %}
{% if exercises %}
<h2>Exercises, in the order of the assignment</h2>
<div class="wide" tabindex="0" role="region" aria-label="Exercises">
<table>
<thead><tr><th scope="col" class="words">exercise</th><th scope="col">points</th>
<th scope="col">mean</th><th scope="col">solved</th><th scope="col">visible tests</th>
<th scope="col">hidden tests</th><th scope="col" class="words">most frequent message</th>
</tr></thead>
<tbody>
{% for row in exercises %}
<tr><th scope="row">{{ row.name }}</th><td data-head="points">{{ row.points }}</td>
<td data-head="mean">{{ row.mean }}{% if row.share is not none %}<span class="share"><span
style="width: {{ row.share }}%"></span></span>{% endif %}</td>
<td data-head="solved">{{ row.solved }}</td><td data-head="visible tests">{{ row.visible }}</td>
<td data-head="hidden tests">{{ row.hidden }}</td>
<td class="words">{{ row.message }}</td></tr>
{% endfor %}
</tbody>
</table>
</div>
{% endif %}
{% if plots %}
<h2>The class at a glance</h2>
<div class="plots">
{% for plot in plots %}
<figure>{{ plot.svg }}<figcaption>{{ plot.caption }}</figcaption></figure>
{% endfor %}
</div>
{% endif %}
{% if changes %}
<h2>Points that changed</h2>
<p class="quiet">The newest first. Times are UTC: when the change was seen.</p>
<div class="wide" tabindex="0" role="region" aria-label="Points that changed">
<table>
<thead><tr><th scope="col" class="left">student</th><th scope="col" class="left">seen</th>
<th scope="col" class="left">exercise</th><th scope="col">before</th><th scope="col">now</th>
<th scope="col" class="words">why</th></tr></thead>
<tbody>
{% for one in changes %}
<tr><th scope="row">{{ one.student }}</th><td class="left">{{ one.time }}</td>
<td class="left">{{ one.exercise }}</td><td data-head="before">{{ one.before }}</td>
<td data-head="now">{{ one.now }}</td><td class="words">{{ one.why }}</td></tr>
{% endfor %}
</tbody>
</table>
</div>
{% if older %}<p class="quiet">{{ older }}</p>{% endif %}
{% endif %}
{% if people %}
<h2>Students</h2>
<p class="quiet">{{ signs }}</p>
<div class="wide" tabindex="0" role="region" aria-label="Students">
<table>
<thead><tr><th scope="col" class="words">student</th><th scope="col">points</th>
{% for row in exercises %}<th scope="col">{{ row.name }}</th>{% endfor %}
<th scope="col" class="words">notes</th></tr></thead>
<tbody>
{% for one in people %}
<tr><th scope="row">{{ one.id }}{% if one.name %}<br><span class="quiet">{{ one.name }}</span>
{% endif %}</th><td data-head="points">{{ one.total }}</td>
{% for sign, said in one.signs %}<td data-head="{{ exercises[loop.index0].name }}"><span role="img"
aria-label="{{ said }}">{{ sign }}</span></td>
{% endfor %}
<td class="words">{% for note in one.notes %}{% if not loop.first %}<br>{% endif %}{{ note }}
{%- endfor %}</td></tr>
{% endfor %}
</tbody>
</table>
</div>
{% endif %}
</main>
</body>
</html>
"""


def write(found: Results, folder: Path) -> None:
    """Write the page, the tables and the plots into this folder."""
    report.write(found, folder)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names in all the world's letters
        (folder / "report.html").write_text(html(found), "utf8")


def html(found: Results) -> str:
    """The page about these results."""
    from tfviz.plots import DARK, LIGHT

    def theme(colours: Mapping[Any, str]) -> Markup:
        return Markup(" ".join(f"--tfviz-{role}: {one};" for role, one in colours.items()))

    rows = [report.exercise_row(found, exercise) for exercise in found.exercises]
    todo = report.waiting(found)
    drawn = report.figures(found).values()
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return made.from_string(PAGE).render(
        found=found,
        light=theme(LIGHT),
        dark=theme(DARK),
        headline=report.headline(found),
        todo=[f"To be graded by hand, in formgrader: {todo}"] if todo else [],
        alike=found.alike,
        strange=", ".join(map(ids.shown, found.strange)),
        rule=ids.RULE,
        exercises=[_exercise(row) for row in rows],
        plots=[{"svg": Markup(one.svg), "caption": one.caption} for one in drawn],
        changes=[_change(change) for change in found.changes[: -report.SHOWN - 1 : -1]],
        older=report.older_words(older) if (older := len(found.changes) - report.SHOWN) > 0 else "",
        people=[_person(found, student) for student in found.students],
        signs=report.SIGNS,
    )


def _exercise(row: dict[str, Any]) -> dict[str, Any]:
    mean, worth = row["mean_points"], row["points"]
    times = f" ({report.count(row['message_students'], 'student')})" if row["message"] else ""
    return {
        "name": report.short(row["exercise"]),
        "points": report.number(worth),
        "mean": report.number(mean, "–"),
        "share": None if mean is None or not worth else round(100 * min(mean / worth, 1.0)),
        "solved": report.solved_words(row),
        "visible": report.percent(row["visible_share"]),
        "hidden": report.percent(row["hidden_share"]),
        "message": f"{row['message']}{times}",
    }


def _change(change: Change) -> dict[str, str]:
    return {
        "student": report.plain(change.student),
        "exercise": report.short(change.exercise),
        "before": report.number(change.before),
        "now": report.number(change.points),
        "why": change.why,
        "time": change.time,
    }


def _person(found: Results, student: Student) -> dict[str, Any]:
    signs = [report.sign(student, *exercise) for exercise in found.exercises.items()]
    notes = [] if student.state == report.GRADED else [student.state]
    notes += report.late_words(student)
    known = any(not mark.waits for mark in student.marks)
    return {
        "id": report.plain(student.id),
        "name": report.plain(student.name),
        "total": report.number(student.total if known else None, "–"),
        "signs": [(sign, SAID[sign]) for sign in signs],
        "notes": [*notes, *student.remarks],
    }
