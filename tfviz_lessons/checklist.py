"""What a chapter needs beyond cells that run, and what this one still lacks, as sentences.

`make chapter` prints them while somebody writes; the tests ask that there are none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from tfviz_lessons.lesson import Block, Exercise, Lesson, Written

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
    "What it costs, and does it hold",
    "When would I use it?",
)
"""What stands in each mechanism's section, in this order; none is needed but where others ask."""
LAST_HEADINGS = ("## More exercises", "## Five questions", "## Summary", "## References")


def lacks(lesson: Lesson) -> list[str]:
    """One sentence for each thing that is missing: how many there are, and what to add."""
    parts = (_open_places, _numbers, _kinds, _exercises, _order, _headings)
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
    for section in re.split(r"^## ", lesson.text, flags=re.M)[1:]:
        name, headings = section.partition("\n")[0], re.findall(r"^### (.*)$", section, re.M)
        places = [ORDER.index(heading) for heading in headings if heading in ORDER]
        for before, after in itertools.pairwise(places):
            if after < before:
                yield f"in {name!r} `### {ORDER[after]}` belongs before `### {ORDER[before]}`"


def _headings(lesson: Lesson) -> Iterator[str]:
    text = "\n".join(block.source for block in lesson.blocks if isinstance(block, Block))
    for heading in LAST_HEADINGS:
        if not re.search(rf"^{heading}$", text, re.M):
            yield f"the heading `{heading}` is missing"
    if not lesson.tasks:
        return
    blocks = lesson.blocks[: lesson.blocks.index(lesson.tasks[0])]
    before = "\n".join(block.source for block in blocks if isinstance(block, Block))
    headings = re.findall(r"^##+ .*", before, re.M)
    if before.count("\n## ") != 1:
        yield f"{lesson.tasks[0].label}, the first exercise, belongs into the first section"
    if not headings or not headings[-1].startswith("### Build it"):
        last = headings[-1] if headings else "no heading"
        yield f"the first exercise stands under `{last}`; it belongs under `### Build it`"
