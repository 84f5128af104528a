"""A lesson's one source, read: its cells and its exercises, each with the place it came from.

The source is a MyST notebook. Four things are made of it: the page of the book (`page`), the
learner's notebook (`notebook`), the notebook of an assignment (`assignment`) and the proof that
every solution passes its tests (`tests/book/test_exercises.py`). All start from `parse`; the
book's `lesson_sphinx` ties the first three into the build.

An exercise is written as consecutive blocks, in this order and with nothing between them:

    {exercise-start} (with :label: ex-…)  prose  {exercise-end}
    {hint}           one or more
    {code-cell}      role: solution       ### BEGIN SOLUTION … ### END SOLUTION inside
    {code-cell}      role: tests          ### BEGIN HIDDEN TESTS … ### END HIDDEN TESTS allowed
    {code-cell}      role: wrong          with why: …, or swap: …; one or more

The cells need not say `exercise: ex-…`: they belong to the exercise that they follow. A wrong
solution is a whole cell, with `why: it is wrong`, or the solution with one piece of it replaced:
`swap: [[old, new, why], …]` in a cell without code, each entry a wrong solution of its own. `old`
is text that the solution, without its marks, holds exactly once.

The *stub* is the solution cell with its marked parts taken out. An exercise whose answer is the
state of an explorer says `answer: explorer` in its solution cell: its stub shows the explorer in
its start state, and runs. `vary: {stride: [4, 6, 8]}` there gives the exercise numbers: the first
choice in the book, each student's own in an assignment. Hidden tests may use the name `seed`, an
int that whoever runs them binds, and must hold for every one. `points` and `hidden_points` in the
tests cell say what the visible and the hidden tests are worth; `minutes: 5`, `level: easy` (medium,
hard) and `optional: true` there tell the reader what it takes. `ask: {question: …, code: f(3), is:
1.5, near: 0.01}` asks for a short number in the page itself; `code` must be that number.

A question that is answered in words ends, in place of its three kinds of cells, with

    {model-answer}   points: 3, rubric: a list of "2 points: what earns them"; the text of an answer
"""

from __future__ import annotations

import ast
import itertools
import keyword
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from jupytext import myst
from markdown_it.token import Token

from tfviz_lessons.outline import LessonError as LessonError
from tfviz_lessons.outline import Section, directive, outline, tokens

ROLES = ("solution", "tests", "wrong")
ANSWERS = ("code", "explorer")
MARK = re.compile(r"^\s*### (BEGIN|END) (.*?)\s*$")
OPTIONS = {
    "solution": {"exercise", "role", "answer", "vary"},
    "tests": {
        *("exercise", "role", "points", "hidden_points"),
        *("minutes", "level", "optional", "ask"),
    },
    "wrong": {"exercise", "role", "why", "swap"},
    "model-answer": {"points", "rubric", "minutes", "level", "optional"},
}
LEVELS = ("easy", "medium", "hard")
POINTS = 1  # what visible tests are worth, and hidden ones too, unless the tests cell says more
HERE = "# your code here"
NOTHING = f"{HERE}\nraise NotImplementedError"
CELL_OPTIONS = {"tags", "mystnb"}
HIDDEN = ("hide-input", "remove-input", "hide-cell", "remove-cell")  # tags of a code cell


class _WrongError(Exception):
    """One problem while reading; `parse` collects them into a `LessonError`."""

    def __init__(self, line: int, text: str) -> None:
        self.line, self.text = line, text


@dataclass(frozen=True)
class Block:
    """A piece of the source between two lines: `kind` is markdown, code or a directive's name."""

    kind: str
    start: int  # first line, counted from 0
    end: int  # the line after the last
    source: str
    options: dict[str, Any] = field(default_factory=dict)
    argument: str = ""
    fence: str = "```"

    @property
    def line(self) -> int:
        """First line as an editor counts, from 1."""
        return self.start + 1

    @property
    def folded(self) -> bool:
        """Whether this is a code cell that readers unfold: one without a tag that says how."""
        tags = {str(tag) for tag in self.options.get("tags", [])}
        return self.kind == "code" and not tags & {"show", *HIDDEN}


@dataclass(frozen=True)
class Task:
    """What all exercises have; `blocks` are all its parts in the order of the source."""

    label: str
    title: str
    blocks: tuple[Block, ...]
    prose: Block
    hints: tuple[Block, ...]

    @property
    def start(self) -> int:
        """First line, counted from 0."""
        return self.blocks[0].start

    @property
    def name(self) -> str:
        """What it is called: the bold words that its text begins with, else its label."""
        found = re.match(r"\*\*(.+?)\.?\*\*", self.prose.source, re.S)
        return found[1] if found else self.label

    @property
    def asked(self) -> Mapping[str, Any]:
        """The options of the block that says what the exercise is worth and what it takes."""
        raise NotImplementedError

    @property
    def effort(self) -> str:
        """What it takes, such as "5 minutes · easy"; empty where the source is silent."""
        minutes, level = self.asked.get("minutes"), self.asked.get("level")
        parts = [f"{minutes} minutes"] if minutes else []
        parts += [level] if level else []
        return " · ".join([*parts, *(["optional"] if self.asked.get("optional") else [])])


@dataclass(frozen=True)
class Written(Task):
    """An exercise answered in words; `model` is the block of the model answer."""

    model: Block

    @property
    def asked(self) -> Mapping[str, Any]:
        return self.model.options

    @property
    def rubric(self) -> tuple[tuple[float, str], ...]:
        """(points, what earns them), in the order of the source."""
        return tuple(_rubric(self.model))

    @property
    def points(self) -> float:
        """What a full answer is worth: the sum of the rubric."""
        return sum(points for points, _ in self.rubric)


@dataclass(frozen=True)
class Wrong:
    """A known-wrong solution: its code, why it is wrong, and the line where its cell starts."""

    source: str
    why: str
    line: int


@dataclass(frozen=True)
class Exercise(Task):
    """An exercise answered in code, or with the state of an explorer."""

    solution: Block
    tests: Block
    wrong_cells: tuple[Block, ...]

    @property
    def wrong(self) -> tuple[Wrong, ...]:
        """The known-wrong solutions, whole ones and swaps, in the order of the source."""
        return tuple(one for cell in self.wrong_cells for one in _wrong_ones(self, cell))

    @property
    def asked(self) -> Mapping[str, Any]:
        return self.tests.options

    @property
    def answer(self) -> str:
        """ "code", or "explorer" where the answer is the state of an explorer."""
        return str(self.solution.options.get("answer", "code"))

    @property
    def vary(self) -> dict[str, list[Any]]:
        """The choices for each number of the exercise; the first is the book's."""
        return dict(self.solution.options.get("vary", {}))

    @property
    def numbers(self) -> str:
        """The book's numbers as one line of code, empty where the exercise has none."""
        return assigned({name: choices[0] for name, choices in self.vary.items()})

    def draws(self, most: int = 6) -> list[dict[str, Any]]:
        """Values for the numbers: the book's first, then others, spread over all there are."""
        every = list(itertools.product(*self.vary.values()))
        last, count = len(every) - 1, min(most, len(every))
        places = [round(n * last / max(1, count - 1)) for n in range(count)]
        return [dict(zip(self.vary, every[place], strict=True)) for place in places]

    @property
    def ask(self) -> dict[str, Any]:
        """A short number to be answered in the page: question, code, is, near; or empty."""
        return dict(self.tests.options.get("ask", {}))

    @property
    def asked_proof(self) -> str:
        """Code that fails unless the number asked for is what the solution makes of it."""
        if not self.ask:
            return ""
        return f"assert abs(float({self.ask['code']}) - {self.ask['is']}) <= {self.ask['near']}"

    @property
    def stub(self) -> str:
        """What the learner gets: the numbers, then the solution with each marked part taken out.

        Inside a function the gap raises, so that calling it says that nothing is there yet; at the
        top of the cell it does not, so that the cell runs.
        """
        if self.answer == "explorer":
            yours = "# your turn: move the controls, then run the checks"
            bare = cut(self.solution.source, "SOLUTION", yours, yours)
        else:
            bare = cut(self.solution.source, "SOLUTION", HERE, NOTHING)
        return _below(self.numbers, bare)

    @property
    def solved(self) -> str:
        """The numbers and the solution cell without its marks."""
        return _below(self.numbers, unmark(self.solution.source))

    @property
    def all_tests(self) -> str:
        """The tests, the hidden ones too, without the marks."""
        return unmark(self.tests.source)

    @property
    def visible_tests(self) -> str:
        """The tests that a learner may read."""
        return cut(self.tests.source, "HIDDEN TESTS").rstrip()

    @property
    def hidden_tests(self) -> str:
        """The tests that only the instructor may read, without marks; empty if there are none."""
        return only(self.tests.source, "HIDDEN TESTS")

    @property
    def points(self) -> tuple[float, float]:
        """What the visible and the hidden tests are worth; 0 for hidden ones that are not there."""
        options = self.tests.options
        hidden = options.get("hidden_points", POINTS) if self.hidden_tests else 0
        return options.get("points", POINTS), hidden


@dataclass(frozen=True)
class Lesson:
    """A whole lesson: its blocks from top to bottom."""

    path: str
    text: str
    blocks: tuple[Block | Exercise | Written, ...]

    @property
    def page(self) -> Section:
        """The lesson as a tree of sections."""
        return outline(self.text, self.path)

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the lesson, with those that stand in them."""
        return self.page.parts

    def inside(self, section: Section) -> list[Block | Exercise | Written]:
        """The cells and exercises of a section, in the order of the source."""
        here = (block for block in self.blocks if section.start <= block.start < section.end)
        return [block for block in here if isinstance(block, Task) or block.kind == "code"]

    @property
    def tasks(self) -> tuple[Exercise | Written, ...]:
        """All exercises, in the order of the source."""
        return tuple(block for block in self.blocks if isinstance(block, Exercise | Written))

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        """Those that are answered in code, or with an explorer."""
        return tuple(block for block in self.blocks if isinstance(block, Exercise))

    @property
    def written(self) -> tuple[Written, ...]:
        """Those that are answered in words."""
        return tuple(block for block in self.blocks if isinstance(block, Written))


# --- marks inside a cell -------------------------------------------------------------------------


def cut(source: str, what: str, instead: str = "", indented: str = "") -> str:
    """`source` without the parts marked as `what`.

    A part that starts at the margin is replaced by `instead`, an indented one by `indented`.
    """
    lines: list[str] = []
    inside = False
    for line in source.split("\n"):
        mark = MARK.match(line)
        if mark and mark[2] == what:
            inside = mark[1] == "BEGIN"
            indent = line[: len(line) - len(line.lstrip())]
            if inside and (gap := indented if indent else instead):
                lines += textwrap.indent(gap, indent).split("\n")
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def only(source: str, what: str) -> str:
    """The parts of `source` marked as `what`, one below the other, at the margin."""
    parts: list[list[str]] = []
    inside = False
    for line in source.split("\n"):
        mark = MARK.match(line)
        if mark and mark[2] == what:
            inside = mark[1] == "BEGIN"
            parts += [[]] if inside else []
        elif inside:
            parts[-1].append(line)
    return "\n".join(textwrap.dedent("\n".join(part)) for part in parts)


def assigned(values: Mapping[str, Any]) -> str:
    """These values as one line of Python, such as `stride, width = 4, 2`; empty for none."""
    return f"{', '.join(values)} = {', '.join(map(repr, values.values()))}" if values else ""


def shown_points(points: float) -> str:
    """How a number of points is written: 1 point, 2.5 points."""
    return f"{points:g} point" + ("" if points == 1 else "s")


def _below(first: str, second: str) -> str:
    return f"{first}\n\n{second}" if first else second


def unmark(source: str) -> str:
    """`source` with the lines of the marks taken out, and all they enclose kept."""
    return "\n".join(line for line in source.split("\n") if not MARK.match(line))


def _check_marks(block: Block, what: str | None, *, needed: bool) -> None:
    """Complain unless the marks in `block` are pairs of BEGIN and END of `what`."""
    inside, seen = 0, False
    for number, line in enumerate(block.source.split("\n")):
        mark = MARK.match(line)
        if not mark:
            continue
        where = code_line(block, number)
        if mark[2] != what:
            wanted = f"expected ### {mark[1]} {what}" if what else "no mark belongs in this cell"
            raise _WrongError(where, f"found {line.strip()!r}: {wanted}")
        if (mark[1] == "BEGIN") == bool(inside):
            raise _WrongError(where, f"{line.strip()!r} without the other half of its pair")
        inside, seen = (where if mark[1] == "BEGIN" else 0), True
    if inside:
        raise _WrongError(inside, f"'### BEGIN {what}' is never closed by '### END {what}'")
    if needed and not seen:
        raise _WrongError(
            block.line,
            f"the {block.options.get('role')} cell of {block.options.get('exercise')!r} has no "
            f"'### BEGIN {what}' … '### END {what}' around the part that the learner writes",
        )


def code_line(block: Block, number: int) -> int:
    """Line of the file (from 1) of line `number` (from 0) of the code in `block`."""
    return block.end - 1 - len(block.source.split("\n")) + number + 1


def _check_python(block: Block, source: str, what: str) -> None:
    try:
        ast.parse(source)
    except SyntaxError as error:
        line = code_line(block, (error.lineno or 1) - 1)
        raise _WrongError(line, f"{what} is not Python: {error.msg}") from None


# --- blocks --------------------------------------------------------------------------------------


def is_lesson(text: str) -> bool:
    """Whether `text` is a lesson: a MyST notebook, by its front matter."""
    return text.startswith("---") and bool(myst.matches_mystnb(text)) and "{code-cell}" in text


def _options(token: Token, what: str) -> tuple[str, dict[str, Any]]:
    line = (token.map or [0])[0] + 1
    try:
        options, body = myst.read_fenced_cell(token, 0, what)
    except myst.MystMetadataParsingError as error:
        raise _WrongError(line, f"options of this {what} cannot be read: {error}") from None
    if not isinstance(options, dict):
        raise _WrongError(line, f"options of this {what} are not 'name: value' lines: {options!r}")
    return "\n".join(body), options


def _blocks(text: str) -> Iterator[Block]:
    """The source cut at its top-level code cells and exercise directives."""
    lines = text.split("\n")
    done = 0

    def prose(end: int) -> Iterator[Block]:
        start, stop = done, end
        while start < stop and not lines[start].strip():
            start += 1
        while stop > start and not lines[stop - 1].strip():
            stop -= 1
        if start < stop:
            yield Block("markdown", start, stop, "\n".join(lines[start:stop]))

    for token in tokens(text):
        if token.map is None or token.level:
            continue
        start, end = token.map
        if token.type == "front_matter":
            done = end
        elif token.type == "myst_block_break":
            yield from prose(start)
            done = end
        elif token.type == "fence":
            name, argument = directive(token)
            known = ("code-cell", "hint", "model-answer")
            if not name.startswith(("exercise", "solution")) and name not in known:
                continue
            yield from prose(start)
            done = end
            what = "code cell" if name == "code-cell" else f"{{{name}}}"
            source, options = _options(token, what)
            kind = "code" if name == "code-cell" else name
            yield Block(kind, start, end, source, options, argument, token.markup)
    yield from prose(len(lines))


class _Reader:
    """Groups the blocks of one lesson into exercises, one block of lookahead."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks, self.at = blocks, 0
        self.labels: dict[str, int] = {}

    def peek(self) -> Block | None:
        return self.blocks[self.at] if self.at < len(self.blocks) else None

    def role(self) -> str | None:
        block = self.peek()
        return block.options.get("role") if block and block.kind == "code" else None

    def step(self) -> Block:
        block = self.blocks[self.at]
        self.at += 1
        return block

    def skip_exercise(self) -> None:
        """After a problem: go on behind the last block of the exercise that has it."""
        for at in range(self.at, len(self.blocks)):
            block = self.blocks[at]
            if block.kind == "exercise-start":
                return
            inside = ("exercise-end", "hint", "model-answer")
            if block.kind in inside or {"exercise", "role"} & set(block.options):
                self.at = at + 1

    def plain(self) -> Block:
        """A block outside any exercise."""
        block = self.step()
        if block.kind == "exercise-end":
            raise _WrongError(block.line, "{exercise-end} without {exercise-start}")
        if block.kind.startswith(("exercise", "solution")):
            raise _WrongError(
                block.line,
                f"{{{block.kind}}} is not used in lessons: write {{exercise-start}} … "
                "{exercise-end}, then hint, solution, tests and wrong cells",
            )
        if block.kind == "model-answer":
            raise _WrongError(
                block.line,
                "this {model-answer} does not follow the prose and hints of an exercise; it is the "
                "answer to one that is answered in words, which has no code cells",
            )
        if block.kind == "code":
            if "exercise" in block.options or "role" in block.options:
                label = block.options.get("exercise")
                of = f" of {label!r}" if label else ""
                raise _WrongError(
                    block.line,
                    f"this {block.options.get('role', 'code')} cell{of} does not follow "
                    "its exercise: the order is {exercise-start}, prose, {exercise-end}, hint, "
                    "solution, tests, wrong, with nothing between",
                )
            _check_marks(block, None, needed=False)
        return block

    def exercise(self) -> Exercise | Written:
        """The exercise that starts at the block in front of us."""
        first = self.at
        opening = self.step()
        label = opening.options.get("label")
        if not isinstance(label, str) or not label.startswith("ex-"):
            raise _WrongError(
                opening.line, f"{{exercise-start}} needs a line ':label: ex-…', it has {label!r}"
            )
        if label in self.labels:
            raise _WrongError(
                opening.line,
                f"label {label!r} is taken: see line {self.labels[label]}",
            )
        self.labels[label] = opening.line

        prose = self.peek()
        if prose is None or prose.kind != "markdown":
            raise _WrongError(
                opening.line, f"exercise {label!r} has no prose after {{exercise-start}}"
            )
        self.step()
        closing = self.peek()
        if closing is None or closing.kind != "exercise-end":
            raise _WrongError(
                closing.line if closing else prose.line,
                f"expected {{exercise-end}} after the prose of {label!r}"
                + (f", found {_name(closing)}" if closing else ""),
            )
        self.step()

        hints = []
        while (block := self.peek()) and block.kind == "hint":
            hints.append(self.step())
        if not hints:
            raise _WrongError(closing.line, f"expected a {{hint}} after the prose of {label!r}")
        model = self.peek()
        if model is not None and model.kind == "model-answer":
            self.step()
            parts = tuple(self.blocks[first : self.at])
            written = Written(label, opening.argument, parts, prose, tuple(hints), model)
            _check_written(written)
            return written
        solution = self.cell(label, "solution", hints[-1])
        tests = self.cell(label, "tests", solution)
        wrong = [self.cell(label, "wrong", tests)]
        while self.role() == "wrong":
            wrong.append(self.cell(label, "wrong", wrong[-1]))
        blocks = tuple(self.blocks[first : self.at])
        made = Exercise(
            label, opening.argument, blocks, prose, tuple(hints), solution, tests, tuple(wrong)
        )
        _check_exercise(made)
        return made

    def cell(self, label: str, role: str, before: Block) -> Block:
        """The next block, which must be the `role` cell of exercise `label`, and says so then."""
        block = self.peek()
        if block is None or block.kind != "code" or block.options.get("role") != role:
            found = f"found {_name(block)}" if block else "the lesson ends"
            line = block.line if block else before.line
            article = "at least one" if role == "wrong" else "a"
            raise _WrongError(line, f"expected {article} {role} cell of {label!r} here, {found}")
        if block.options.get("exercise", label) != label:
            raise _WrongError(
                block.line,
                f"this {role} cell says exercise: {block.options.get('exercise')!r}, it stands in "
                f"the exercise {label!r}",
            )
        self.blocks[self.at] = replace(block, options={"exercise": label, **block.options})
        return self.step()


def _name(block: Block) -> str:
    """How a message calls a block that it did not expect."""
    if block.kind == "markdown":
        return f"text ({textwrap.shorten(block.source, 40)!r})"
    if block.kind != "code":
        return f"{{{block.kind}}}"
    role = block.options.get("role")
    return f"a cell with role: {role}" if role else "a code cell without a role"


def _check_options(block: Block, what: str, known: set[str]) -> None:
    """Complain about an option that a block of this kind does not have."""
    for name in block.options:
        if name not in known:
            raise _WrongError(
                block.line,
                f"unknown option {name!r} in a {what}; known: {', '.join(sorted(known))}",
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_points(block: Block, name: str) -> None:
    value = block.options.get(name, POINTS)
    if not _is_number(value) or not 0 < value < float("inf"):
        raise _WrongError(
            block.line, f"{name}: {value!r} must be a number above 0, such as 1 or 2.5"
        )


def _check_effort(block: Block) -> None:
    minutes, level = block.options.get("minutes", 1), block.options.get("level", LEVELS[0])
    if not isinstance(minutes, int) or isinstance(minutes, bool) or minutes < 1:
        raise _WrongError(block.line, f"minutes: {minutes!r} must be a whole number above 0")
    if level not in LEVELS:
        raise _WrongError(block.line, f"level: {level!r}; known: {', '.join(LEVELS)}")
    if not isinstance(block.options.get("optional", False), bool):
        raise _WrongError(block.line, f"optional: {block.options['optional']!r}; write true")


def _check_ask(tests: Block) -> None:
    if "ask" not in tests.options:
        return
    ask, fields = tests.options["ask"], ("question", "code", "is", "near")
    if not isinstance(ask, dict) or set(ask) != set(fields):
        raise _WrongError(tests.line, f"ask: {ask!r:.80} must have {', '.join(fields)}, no more")
    for name, kind in (("question", str), ("code", str)):
        if not isinstance(ask[name], kind) or not ask[name].strip():
            raise _WrongError(tests.line, f"ask: {name}: {ask[name]!r} must be a text")
    if not _is_number(ask["is"]) or not _is_number(ask["near"]) or ask["near"] < 0:
        raise _WrongError(tests.line, "ask: is and near must be numbers, near 0 or more")
    _check_python(tests, ask["code"], "ask: code")


def _rubric(model: Block) -> Iterator[tuple[float, str]]:
    """(points, what) of each line; a line without quotes is a pair to YAML, one with is a text."""
    lines = model.options.get("rubric")
    if not isinstance(lines, list) or not lines:
        raise _WrongError(
            model.line,
            "a {model-answer} needs 'rubric:', a list of lines such as '- 2 points: what'",
        )
    for line in lines:
        text = ": ".join(map(str, *line.items())) if isinstance(line, dict) else str(line)
        found = re.fullmatch(r"(\d+(?:\.\d+)?) points?:\s*(\S.*)", text, re.S)
        if not found or not float(found[1]):
            raise _WrongError(model.line, f"rubric: {text!r} is not of the form '2 points: what'")
        points = float(found[1])
        yield (int(points) if points.is_integer() else points), found[2].strip()


def _check_written(written: Written) -> None:
    model = written.model
    _check_options(model, "{model-answer}", OPTIONS["model-answer"])
    _check_points(model, "points")
    _check_effort(model)
    total = written.points
    if model.options.get("points", total) != total:
        raise _WrongError(
            model.line,
            f"points: {model.options['points']!r} of {written.label!r}, but the lines of its "
            f"rubric add up to {total:g}",
        )
    if not model.source.strip():
        raise _WrongError(model.line, f"the {{model-answer}} of {written.label!r} is empty")
    for block in (written.prose, model, *written.hints):
        _check_marks(block, None, needed=False)


def _check_vary(exercise: Exercise) -> None:
    solution, vary = exercise.solution, exercise.solution.options.get("vary", {})
    example = "write vary: {stride: [4, 6, 8]}, for each name a list of two or more choices"
    if not isinstance(vary, dict) or ("vary" in solution.options and not vary):
        raise _WrongError(solution.line, f"vary: {vary!r} of {exercise.label!r}; {example}")
    for name, choices in vary.items():
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise _WrongError(solution.line, f"vary: {name!r} is not a name in Python; {example}")
        if name in ("seed", "student", "exercise", "STUDENT"):
            raise _WrongError(solution.line, f"vary: the name {name!r} is taken; choose another")
        fine = isinstance(choices, list) and len(choices) > 1
        if not fine or not all(_is_number(x) or isinstance(x, str) for x in choices):
            raise _WrongError(solution.line, f"vary: {name}: {choices!r}; {example}")
        if len(set(choices)) < len(choices):
            raise _WrongError(solution.line, f"vary: {name}: {choices!r} has a choice twice")


def _check_exercise(exercise: Exercise) -> None:
    """What the order of the blocks cannot show: marks, options, Python."""
    solution, tests, label = exercise.solution, exercise.tests, exercise.label
    for block in (solution, tests, *exercise.wrong_cells):
        role = block.options["role"]
        _check_options(block, f"{role} cell", OPTIONS[role] | CELL_OPTIONS)
    _check_points(tests, "points")
    _check_points(tests, "hidden_points")
    _check_effort(tests)
    _check_ask(tests)
    _check_vary(exercise)
    if exercise.answer not in ANSWERS:
        raise _WrongError(
            solution.line, f"answer: {exercise.answer!r} of {label!r}; known: {', '.join(ANSWERS)}"
        )
    _check_marks(solution, "SOLUTION", needed=True)
    _check_marks(tests, "HIDDEN TESTS", needed=False)
    _check_python(solution, solution.source, f"the solution of {label!r}")
    _check_python(solution, exercise.stub, f"the stub of {label!r}")
    _check_python(tests, tests.source, f"the tests of {label!r}")
    for part, source in (("visible", exercise.visible_tests), ("hidden", exercise.hidden_tests)):
        _check_python(tests, source, f"the {part} part of the tests of {label!r}, by itself,")
    for node in ast.walk(ast.parse(tests.source)):
        if isinstance(node, ast.Assert):
            raise _WrongError(
                code_line(tests, node.lineno - 1),
                f"a bare assert in the tests of {label!r} tells the learner nothing; use a check "
                "of tfviz.checks, such as expect_true(condition, message)",
            )
    if "hidden_points" in tests.options and not exercise.hidden_tests.strip():
        raise _WrongError(tests.line, f"hidden_points of {label!r}, which has no hidden tests")
    if not any(line.strip() for line in exercise.visible_tests.split("\n")):
        raise _WrongError(tests.line, f"all tests of {label!r} are hidden; show the learner some")
    for cell in exercise.wrong_cells:
        _check_marks(cell, None, needed=False)
        if "swap" not in cell.options:
            _check_python(cell, cell.source, f"a wrong solution of {label!r}")
    right = unmark(solution.source).strip()
    for wrong in exercise.wrong:
        if not wrong.why.strip():
            raise _WrongError(
                wrong.line, f"a wrong cell of {label!r} does not say why: it is wrong"
            )
        if wrong.source.strip() == right:
            raise _WrongError(
                wrong.line, f"this wrong solution of {label!r} is the solution itself"
            )


def _wrong_ones(exercise: Exercise, cell: Block) -> Iterator[Wrong]:
    """The wrong solutions of one cell: the one it spells out, or one for each of its swaps."""
    if "swap" not in cell.options:
        why = cell.options.get("why")
        yield Wrong(cell.source, why if isinstance(why, str) else "", cell.line)
        return
    label, swaps = exercise.label, cell.options["swap"]
    if "why" in cell.options or cell.source.strip():
        raise _WrongError(
            cell.line,
            f"a wrong cell of {label!r} with swap: has neither code nor a why: of its own; each "
            "swap says why it is wrong",
        )
    if not isinstance(swaps, list) or not swaps:
        raise _WrongError(cell.line, f"swap: {swaps!r} of {label!r}; write [[old, new, why], …]")
    right = unmark(exercise.solution.source)
    for swap in swaps:
        is_text = isinstance(swap, list) and all(isinstance(part, str) for part in swap)
        if not is_text or len(swap) != 3 or not swap[0]:
            raise _WrongError(
                cell.line,
                f"swap: {swap!r} of {label!r} is not three texts [old, new, why]; put numbers and "
                "what YAML may misread into quotes",
            )
        old, new, why = swap
        if (count := right.count(old)) != 1:
            raise _WrongError(
                cell.line,
                f"swap: {old!r} stands {count} times in the solution of {label!r}, must be once",
            )
        source = right.replace(old, new)
        try:
            ast.parse(source)
        except SyntaxError as error:
            raise _WrongError(
                cell.line, f"swap: {old!r} by {new!r} in {label!r} is not Python: {error.msg}"
            ) from None
        yield Wrong(source, why, cell.line)


@cache
def parse(text: str, path: str | Path = "<lesson>") -> Lesson:
    """Read the source of a lesson; raises `LessonError` with every problem it finds.

    The same text is read once, however often a build or its tests ask for it.
    """
    outline(text, path)
    problems: list[tuple[int, str]] = []
    found: list[Block | Exercise | Written] = []
    reader = _Reader([])
    try:
        reader.blocks = list(_blocks(text))
    except _WrongError as problem:
        raise LessonError(str(path), [(problem.line, problem.text)]) from None
    while block := reader.peek():
        try:
            found.append(reader.exercise() if block.kind == "exercise-start" else reader.plain())
        except _WrongError as problem:
            problems.append((problem.line, problem.text))
            reader.skip_exercise()
    if problems:
        raise LessonError(str(path), problems)
    return Lesson(str(path), text, tuple(found))


def read(path: str | Path) -> Lesson:
    """`parse` the file at `path`."""
    return parse(Path(path).read_text("utf8"), path)
