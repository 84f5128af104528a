"""What a chapter needs beyond cells that run, and what this one still lacks, as sentences.

`make chapter` prints them while somebody writes; the tests ask that there are none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from tfviz import catalogue
from tfviz_lessons.lesson import Exercise, Lesson, Task, Written
from tfviz_lessons.outline import DEEPER, MORE

CODE, CORE, OPTIONAL = 4, 3, 2
INTO_A_MODEL = re.compile(
    r"\b[Pp]ut (\w+ )*your\w* (\w+ )*into (a|the) model|\btrain( \w+)* with it"
)
ORDER = (
    "In 90 seconds",
    "See it",
    "What breaks",
    "Derive it",
    "Build it",
    "What it costs",
    "When to use it",
)
"""How the headings of a mechanism's section begin, in this order; none is needed but where others
ask. A colon and what the part holds follow, and may be left out only from `PLAIN`."""
PLAIN = ("In 90 seconds", "See it", "Build it")
BRIEF = ("In 90 seconds", "See it", "Build it", "What became of it")
"""What stands in the section of a brief mechanism, in this order; the rest follows under `MORE`."""
LAST_HEADINGS = ("More exercises", "Five questions", "Summary", "References")


def lacks(lesson: Lesson) -> list[str]:
    """One sentence for each thing that is missing: how many there are, and what to add."""
    parts = (_open_places, _numbers, _kinds, _exercises, _order, _weights, _headings)
    return [sentence for part in parts for sentence in part(lesson)]


def _open_places(lesson: Lesson) -> Iterator[str]:
    lines = lesson.text.splitlines()
    places = [n for n, line in enumerate(lines, start=1) if re.match(r"% TODO\b", line)]
    if places:
        first = lines[places[0] - 1].removeprefix("% TODO").strip(": ")
        yield f"{len(places)} places say TODO; the first is line {places[0]}: {first}"


def _numbers(lesson: Lesson) -> Iterator[str]:
    code = len(lesson.exercises)
    if code < CODE:
        yield f"{code} exercises are answered in code; write {CODE - code} more"
    optional = [task.label for task in lesson.tasks if task.asked.get("optional")]
    core = len(lesson.tasks) - len(optional)
    if core > CORE:
        yield (
            f"{core} exercises are for every reader and {CORE} should be: write `optional: true` "
            f"in {core - CORE} more tests cells or model answers"
        )
    elif core < CORE:
        short = CORE - core
        yield f"{core} exercises are for every reader and {CORE} should be: {short} are missing"
    if len(optional) < OPTIONAL:
        yield f"{len(optional)} exercises are `optional: true`; at least {OPTIONAL} should be"


def _kinds(lesson: Lesson) -> Iterator[str]:
    if not lesson.written:
        yield "no exercise is answered in words: add one with a {model-answer} and its rubric"
    if not any(INTO_A_MODEL.search(task.prose.source) for task in lesson.tasks):
        yield 'no exercise says "Put yours into the model" or "train with it": add one that does'
    in_the_page = [x.label for x in lesson.exercises if x.ask or x.answer == "explorer"]
    wanted = -(-len(lesson.tasks) // 3)
    if len(in_the_page) < wanted:
        yield (
            f"{len(in_the_page)} of {len(lesson.tasks)} exercises are answered in the page and a "
            f"third should be: give {wanted - len(in_the_page)} more an `ask:` in its tests cell, "
            "or `answer: explorer` in its solution"
        )


def _exercises(lesson: Lesson) -> Iterator[str]:
    for task in lesson.tasks:
        for option in ("minutes", "level"):
            if not task.asked.get(option):
                cell = "model answer" if isinstance(task, Written) else "tests cell"
                yield f"{task.label} does not say `{option}:` in its {cell}"
        if isinstance(task, Exercise):
            for part, there in (
                ("hint", task.hints),
                ("visible test", task.visible_tests),
                ("known-wrong solution", task.wrong),
            ):
                if not there:
                    yield f"{task.label} has no {part}"


def _order(lesson: Lesson) -> Iterator[str]:
    for section in lesson.sections:
        kinds = [part.title.split(": ", 1)[0] for part in section.parts]
        places = [ORDER.index(kind) for kind in kinds if kind in ORDER]
        for part in section.parts:
            if part.title in ORDER and part.title not in PLAIN:
                yield (
                    f"`### {part.title}` in {section.title!r} says nothing of what it holds: write "
                    f"`### {part.title}: …`, or leave it out if nothing stands there"
                )
        for before, after in itertools.pairwise(places):
            if after < before:
                wrong, first = ORDER[after], ORDER[before]
                yield f"in {section.title!r} `### {wrong}` belongs before `### {first}`"


def _weights(lesson: Lesson) -> Iterator[str]:
    """The form of a mechanism's section is that of its weight in the catalogue."""
    weights = {row.id: row.weight for row in catalogue.MECHANISMS}
    for section in lesson.sections:
        titles = [part.title for part in section.parts]
        more = [part for part in section.parts if part.title.startswith(MORE)]
        if weights.get(section.label) != "brief":
            if more or BRIEF[-1] in titles:
                yield (
                    f"{section.title!r} has `### {(more or section.parts)[-1].title}`, as brief "
                    'sections have: write `weight = "brief"` in its row of tfviz/catalogue.toml'
                )
            continue
        if len(more) != 1 or titles != [*BRIEF, more[0].title]:
            wanted = ", ".join(f"`### {title}`" for title in (*BRIEF, f"{MORE}…"))
            yield f"{section.title!r} is brief, so its headings are {wanted}; it has {titles}"
            continue
        tasks = [block for block in lesson.inside(section.parts[2]) if isinstance(block, Task)]
        if len(tasks) != 1:
            yield (
                f"`### Build it` of {section.title!r} has {len(tasks)} exercises and needs one: "
                f"the others belong under `### {more[0].title}` or `## More exercises`"
            )
        for part in more[0].walk():
            if part.title.startswith(DEEPER):
                plain = part.title.removeprefix(DEEPER)
                yield f"`#### {part.title}` stands in a fold already: write `#### {plain}`"


def _headings(lesson: Lesson) -> Iterator[str]:
    for heading in LAST_HEADINGS:
        if heading not in (section.title for section in lesson.sections):
            yield f"the heading `## {heading}` is missing"
    if not lesson.tasks:
        return
    first = lesson.tasks[0]
    *_, under = (section for section in lesson.page.walk() if section.start <= first.start)
    if not lesson.sections or first not in lesson.inside(lesson.sections[0]):
        yield f"{first.label}, the first exercise, belongs into the first section"
    if not under.title.startswith("Build it"):
        yield f"the first exercise stands under {under.title!r}; it belongs under `### Build it`"
