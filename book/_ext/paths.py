"""Reading paths and the syllabus, from book/paths.toml and the chapters.

```{reading-path} week       its steps: what to read, what to try, how many minutes
```{start-path} afternoon    a button that leads to its first stop
```{paths-figure}            which chapters each path visits
```{syllabus}                the term, week by week, with the exercises to hand in
```{syllabus-figure}         how long each week takes

A path walks along with its reader: path.js shows the stop at hand and the next one on every page.
It reads the stops from the script that `write` makes of the same file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import reading_time
from catalogue_directives import Directive, el, math, svg
from docutils import nodes
from reading_time import ROOT, written
from sphinx.application import Sphinx

from tfviz import catalogue
from tfviz.catalogue import Chapter
from tfviz.plots import Figure
from tfviz.plots.canvas import SMALL, WIDE, Canvas, fitted
from tfviz.plots.roles import Role
from tfviz.plots.shapes import rectangles
from tfviz_lessons.lesson import Task

FILE = "book/paths.toml"
SCRIPT = "_static/js/paths-data.js"


@dataclass(frozen=True)
class Stop:
    """A chapter, a section or another page that a path leads to, and the minutes to read it."""

    document: str
    anchor: str  # with its #, or empty
    title: str
    minutes: int


@dataclass(frozen=True)
class Step:
    """A step of a path, such as a day: see book/paths.toml."""

    title: str
    sections: Sequence[str] = ()
    chapters: Sequence[int] = ()
    pages: Sequence[str] = ()
    exercises: Sequence[str] = ()
    assign: Sequence[str] = ()

    @cached_property
    def lessons(self) -> list[Chapter]:
        """Its whole chapters, as far as they are written."""
        return [one for one in written() if one.number in self.chapters]

    @cached_property
    def minutes_by_chapter(self) -> dict[int, int]:
        """Minutes of reading by number of the chapter."""
        found = {one.number: reading_time.chapter(one.document).reading for one in self.lessons}
        for name in self.sections:
            row = catalogue.get(name)
            found.setdefault(row.chapter_number, 0)
            found[row.chapter_number] += reading_time.sections(row.document)[name]
        return found

    @cached_property
    def stops(self) -> list[Stop]:
        """What to read, in order."""
        stops = [
            Stop(one.document, "", numbered(one), self.minutes_by_chapter[one.number])
            for one in self.lessons
        ]
        for row in map(catalogue.get, self.sections):
            minutes = reading_time.sections(row.document)[row.id]
            stops.append(Stop(row.document, f"#{nodes.make_id(row.id)}", row.name, minutes))
        for page in self.pages:
            stops.append(Stop(page, "", reading_time.page(page).title, page_minutes(page)))
        return stops

    @property
    def reading(self) -> int:
        return sum(stop.minutes for stop in self.stops)

    @cached_property
    def tasks(self) -> list[tuple[Chapter, Task]]:
        """The exercises of this step, each with its chapter."""
        if self.exercises:
            return [exercise(label) for label in self.exercises]
        return [
            (lesson, task)
            for lesson in self.lessons
            for task in reading_time.tasks(lesson.document)
            if not task.asked.get("optional")
        ]

    @property
    def practice(self) -> int:
        return sum(minutes(task) for _, task in self.tasks)

    @property
    def minutes(self) -> int:
        return self.reading + self.practice


@dataclass(frozen=True)
class Way:
    """One of the reading paths."""

    id: str
    title: str
    text: str
    steps: tuple[Step, ...]

    @property
    def minutes(self) -> int:
        return sum(step.minutes for step in self.steps)

    def stops(self, documents: Container[str]) -> list[Stop]:
        """What to read, in order, as far as it is among `documents`."""
        return [stop for step in self.steps for stop in step.stops if stop.document in documents]


def load() -> dict[str, Way]:
    """The paths by their id, in the order of the file."""
    data = tomllib.loads((ROOT / FILE).read_text("utf-8"))
    return {
        entry["id"]: Way(
            entry["id"],
            entry["title"],
            entry["for"],
            tuple(Step(**step) for step in entry["step"]),
        )
        for entry in data["path"]
    }


def numbered(chapter: Chapter) -> str:
    """The name of a chapter as the contents write it."""
    return f"{chapter.number}. {chapter.title}"


@cache
def page_minutes(page: str) -> int:
    whole = reading_time.page(page)
    return reading_time.rounded(reading_time.words(reading_time.visible(whole)), 0)


def exercise(label: str) -> tuple[Chapter, Task]:
    """An exercise by its label. Raises KeyError if no written chapter has it."""
    for lesson in written():
        for task in reading_time.tasks(lesson.document):
            if task.label == label:
                return lesson, task
    raise KeyError(f"no chapter has an exercise {label!r}; {FILE} names it")


def minutes(task: Task) -> int:
    return int(task.asked.get("minutes", 0))


def hours(count: int) -> str:
    """Minutes as people say them: 40 minutes, 3 hours, 3¼ hours."""
    if count < 60:
        return f"{count} minutes"
    whole, quarters = divmod(round(count / 15), 4)
    return (
        f"{whole}{('', '¼', '½', '¾')[quarters]} hour{'' if (whole, quarters) == (1, 0) else 's'}"
    )


# --- pictures -------------------------------------------------------------------------------------


def visited(way: Way) -> dict[int, int]:
    """Minutes of reading by number of the chapter, over all steps."""
    found: dict[int, int] = {}
    for step in way.steps:
        for number, count in step.minutes_by_chapter.items():
            found[number] = found.get(number, 0) + count
    return found


def visits_figure(ways: Sequence[Way]) -> Figure:
    """A row for each path, a cell for each chapter, darker for more minutes."""
    last = catalogue.CHAPTERS[-1].number
    longest = max(max(visited(way).values()) for way in ways)

    def draw(room: float) -> Canvas:
        cell = min(20, (room - 8) // last)
        canvas = Canvas(cell * last + 8, 46 * len(ways) + 22)
        for n, way in enumerate(ways):
            top = 46 * n + 18
            canvas.text(1, top - 5, way.title, "ink", size=SMALL, bold=True)
            for number, count in visited(way).items():
                box = (1 + cell * (number - 1), top, cell, 20)
                share = 0.2 + 0.8 * count / longest
                canvas.draw(rectangles([box]), "visit", fill="attention", opacity=share)
            boxes = [(1 + cell * k, top, cell, 20) for k in range(last)]
            canvas.draw(rectangles(boxes), "chapters", stroke="grid")
        top = 46 * len(ways) + 6
        for number in (1, *range(5, last + 1, 5)):
            x = 1 + cell * (number - 0.5)
            canvas.text(x, top, str(number), "muted", size=SMALL, ha="center")
        return canvas

    words = [
        f"{way.title} visits chapters {', '.join(map(str, sorted(visited(way))))}." for way in ways
    ]
    return Figure(
        [fitted(draw, f"Minutes of reading of each path in each chapter. {' '.join(words)}")],
        caption="The chapters, from left to right, and which of them each path visits: the "
        "darker, the longer it stays there.",
    )


def weeks_figure(way: Way) -> Figure:
    """For each week, minutes of reading and of exercises to hand in."""
    rows = [
        (n, step.reading, sum(minutes(exercise(label)[1]) for label in step.assign))
        for n, step in enumerate(way.steps, 1)
    ]
    longest = max(reading + work for _, reading, work in rows)

    def draw(room: float) -> Canvas:
        width = min(room, WIDE) - 110
        canvas = Canvas(width + 106, 26 * len(rows) + 26)
        kinds: list[tuple[str, Role]] = [("reading", "muted"), ("to hand in", "attention")]
        for k, (words, role) in enumerate(kinds):
            canvas.draw(rectangles([(62 + 110 * k, 2, 12, 12)]), "key", fill=role)
            canvas.text(80 + 110 * k, 8, words, "ink", size=SMALL, va="middle")
        for n, reading, work in rows:
            top, left = 26 * n, 62.0
            canvas.text(0, top + 9, f"week {n}", "ink", size=SMALL, va="middle")
            for (_, role), count in zip(kinds, (reading, work), strict=True):
                length = width * count / longest
                canvas.draw(rectangles([(left, top, length, 18)]), "bar", fill=role)
                left += length
            canvas.text(left + 6, top + 9, str(reading + work), "ink", size=SMALL, va="middle")
        return canvas

    told = "; ".join(f"week {n}: {reading} and {work}" for n, reading, work in rows)
    return Figure(
        [fitted(draw, f"Minutes of reading, and of exercises to hand in. {told}.")],
        caption="Minutes of each week: reading, and the exercises to hand in.",
    )


# --- directives -----------------------------------------------------------------------------------


class Paths(Directive):
    """Built anew when a chapter or the file of the paths has changed."""

    def depend(self) -> None:
        self.env.note_dependency(str(ROOT / FILE))
        for lesson in written():
            self.env.note_dependency(str(ROOT / f"{lesson.document}.md"))

    def exercise(self, lesson: Chapter, task: Task) -> nodes.Node:
        address = self.env.app.builder.get_relative_uri(self.env.docname, lesson.document)
        return el("a", *title_of(task), href=f"{address}#{task.label}")

    def lesson(self, lesson: Chapter) -> list[nodes.Node]:
        text = numbered(lesson)
        if not self.has_page(lesson.document):
            return [nodes.Text(text)]
        return self.markdown(f"{{doc}}`{text} </{lesson.document}>`")

    def stop(self, stop: Stop) -> nodes.Node:
        if not self.has_page(stop.document):
            return nodes.Text(stop.title)
        return el("a", stop.title, href=self.address(stop))

    def address(self, stop: Stop) -> str:
        relative = self.env.app.builder.get_relative_uri
        return relative(self.env.docname, stop.document) + stop.anchor

    def start(self, way: Way) -> list[nodes.Node]:
        """The button that sets out on a path; nothing in a book that has none of its pages."""
        stops = way.stops(self.env.found_docs)
        if not stops:
            return []
        words = f"Start: {way.title[0].lower()}{way.title[1:]}"
        steps = el("small", f"{len(stops)} steps, {hours(way.minutes)}")
        link = el("a", words, " ", steps, href=self.address(stops[0]), data_tf_path=way.id)
        return [el("p", link, class_="tfv-start")]

    def list_of(self, items: Sequence[tuple[Sequence[nodes.Node], int]]) -> nodes.Node:
        rows = [el("li", *words, el("small", f" {count} min")) for words, count in items]
        return el("ul", *rows)

    def reading(self, step: Step) -> nodes.Node:
        return self.list_of([([self.stop(stop)], stop.minutes) for stop in step.stops])

    def table(self, heads: Sequence[str], rows: Sequence[nodes.Node]) -> nodes.Node:
        head = el("thead", el("tr", *(el("th", text, scope="col") for text in heads)))
        return el("table", head, el("tbody", *rows), class_="tfv-claims tfv-paths")


class OnePath(Paths):
    required_arguments = 1

    def way(self) -> Way:
        self.depend()
        ways = load()
        if self.arguments[0] not in ways:
            raise self.error(f"no path {self.arguments[0]!r}; choose one of {', '.join(ways)}")
        return ways[self.arguments[0]]


class StartPath(OnePath):
    def run(self) -> list[nodes.Node]:
        return self.start(self.way())


class ReadingPath(OnePath):
    def run(self) -> list[nodes.Node]:
        way = self.way()
        rows = []
        for n, step in enumerate(way.steps, 1):
            week = f"Week {n}: " if way.id == "term" else ""
            work = f"{step.reading} min of reading"
            if step.tasks:
                work += f", {step.practice} of exercises"
            cells = [self.reading(step)]
            if step.exercises:
                tasks = [([self.exercise(*one)], minutes(one[1])) for one in step.tasks]
                cells += [el("p", "and try"), self.list_of(tasks)]
            head = el("th", f"{week}{step.title}", el("small", f" {work}"), scope="row")
            rows.append(el("tr", head, el("td", *cells)))
        reading = sum(step.reading for step in way.steps)
        total = (
            f"{way.text} Together: {hours(reading)} of reading and "
            f"{hours(way.minutes - reading)} of exercises."
        )
        text = nodes.paragraph("", "", nodes.Text(total))
        return [text, *self.start(way), self.table(("step", "read"), rows)]


class Syllabus(Paths):
    def run(self) -> list[nodes.Node]:
        self.depend()
        rows = []
        for n, step in enumerate(load()["term"].steps, 1):
            tasks = [exercise(label) for label in step.assign]
            work = sum(minutes(task) for _, task in tasks)
            command = f"tfviz-course assignment week{n:02d} {' '.join(step.assign)}"
            sections = self.list_of(
                [
                    ([*self.lesson(lesson), nodes.Text(": "), *self.rows_of(lesson)], count)
                    for lesson, count in zip(
                        step.lessons, step.minutes_by_chapter.values(), strict=True
                    )
                ]
            )
            given = self.list_of(
                [
                    ([self.exercise(lesson, task), nodes.Text(f", {effort(task)}")], minutes(task))
                    for lesson, task in tasks
                ]
            )
            head = el(
                "th",
                f"Week {n}: {step.title}",
                el("small", f" {step.reading} min of reading, {work} to hand in"),
                scope="row",
            )
            cells = [sections, el("p", "To hand in"), given, el("pre", command, tabindex=0)]
            rows.append(el("tr", head, el("td", *cells), id=f"week-{n}"))
        return [self.table(("week", "sections and exercises"), rows)]

    def rows_of(self, lesson: Chapter) -> list[nodes.Node]:
        """Links to the chapter's sections, between commas."""
        found: list[nodes.Node] = []
        for row in catalogue.MECHANISMS:
            if row.document == lesson.document and row.built:
                found += [*([nodes.Text(", ")] if found else []), *self.link(row, row.short)]
        return found


class PathsFigure(Paths):
    def run(self) -> list[nodes.Node]:
        self.depend()
        return [svg(visits_figure([*load().values()]).html)]


class SyllabusFigure(Paths):
    def run(self) -> list[nodes.Node]:
        self.depend()
        return [svg(weeks_figure(load()["term"]).html)]


def title_of(task: Task) -> list[nodes.Node]:
    """The bold words that the text of an exercise begins with; formulas stay formulas."""
    return [
        math(part[1:-1]) if part.startswith("$") else nodes.Text(part.replace("`", ""))
        for part in re.split(r"(\$[^$]+\$)", task.name)
        if part
    ]


def effort(task: Task) -> str:
    """Such as "medium, in code": how hard, and how it is answered."""
    kinds = {"code": "in code", "explorer": "in the lab"}
    return (
        f"{task.asked.get('level', 'easy')}, {kinds.get(getattr(task, 'answer', ''), 'in words')}"
    )


def write(app: Sphinx, problem: Exception | None) -> None:
    """The paths for path.js: by id, the title, and address, title and minutes of each stop."""
    if problem is not None or app.builder.format != "html":
        return
    data = {}
    for way in load().values():
        stops = [
            (f"{stop.document}.html{stop.anchor}", stop.title, stop.minutes)
            for stop in way.stops(app.env.found_docs)
        ]
        data[way.id] = {"title": way.title, "stops": stops}
    words = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, SCRIPT).write_text(f"window.tfvizPaths = {words};\n", "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", write, priority=400)
    app.add_directive("reading-path", ReadingPath)
    app.add_directive("start-path", StartPath)
    app.add_directive("paths-figure", PathsFigure)
    app.add_directive("syllabus", Syllabus)
    app.add_directive("syllabus-figure", SyllabusFigure)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
