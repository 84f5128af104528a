"""A lesson's one source, read: its cells and its exercises, each with the place it came from.

The source is a MyST notebook. Three things are made of it: the page of the book
(`lesson_page`), the learner's notebook (`lesson_notebook`) and the proof that every solution
passes its tests (`tests/book/test_exercises.py`). All three start from `parse`; `lesson_sphinx`
ties the first two into the build.

An exercise is written as consecutive blocks, in this order and with nothing between them:

    {exercise-start} (with :label: ex-…)  prose  {exercise-end}
    {hint}           one or more
    {code-cell}      role: solution       ### BEGIN SOLUTION … ### END SOLUTION inside
    {code-cell}      role: tests          ### BEGIN HIDDEN TESTS … ### END HIDDEN TESTS allowed
    {code-cell}      role: wrong          with why: …; one or more

The *stub* is the solution cell with its marked parts taken out. An exercise whose answer is the
state of an explorer says `answer: explorer` in its solution cell: its stub shows the explorer in
its start state, and runs.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupytext import myst
from markdown_it.token import Token

ROLES = ("solution", "tests", "wrong")
ANSWERS = ("code", "explorer")
MARK = re.compile(r"^\s*### (BEGIN|END) (.*?)\s*$")
OPTIONS = {
    "solution": {"exercise", "role", "answer"},
    "tests": {"exercise", "role"},
    "wrong": {"exercise", "role", "why"},
}
CELL_OPTIONS = {"tags", "mystnb"}


class LessonError(Exception):
    """What is wrong with a lesson: one line for each problem, with file and line."""

    def __init__(self, path: str, problems: list[tuple[int, str]]) -> None:
        self.path = path
        self.problems = sorted(problems)
        super().__init__("\n".join(f"{path}:{line}: {text}" for line, text in self.problems))


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


@dataclass(frozen=True)
class Exercise:
    """One exercise; `blocks` are all its parts in the order of the source."""

    label: str
    title: str
    blocks: tuple[Block, ...]
    prose: Block
    hints: tuple[Block, ...]
    solution: Block
    tests: Block
    wrong: tuple[Block, ...]

    @property
    def answer(self) -> str:
        """ "code", or "explorer" where the answer is the state of an explorer."""
        return str(self.solution.options.get("answer", "code"))

    @property
    def stub(self) -> str:
        """The solution cell with each marked part taken out, as the learner gets it.

        Inside a function the gap raises, so that calling it says that nothing is there yet; at the
        top of the cell it does not, so that the cell runs.
        """
        if self.answer == "explorer":
            yours = "# your turn: move the controls, then run the checks"
            return cut(self.solution.source, "SOLUTION", yours, yours)
        yours = "# your code here"
        return cut(self.solution.source, "SOLUTION", yours, f"{yours}\nraise NotImplementedError")

    @property
    def solved(self) -> str:
        """The solution cell without its marks."""
        return unmark(self.solution.source)

    @property
    def all_tests(self) -> str:
        """The tests, the hidden ones too, without the marks."""
        return unmark(self.tests.source)

    @property
    def visible_tests(self) -> str:
        """The tests that a learner may read."""
        return cut(self.tests.source, "HIDDEN TESTS").rstrip()


@dataclass(frozen=True)
class Lesson:
    """A whole lesson: metadata of the front matter, and the blocks from top to bottom."""

    path: str
    text: str
    metadata: dict[str, Any]
    blocks: tuple[Block | Exercise, ...]

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Exercise))


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


def _blocks(text: str, tokens: list[Token]) -> Iterator[Block]:
    """The source cut at its top-level code cells and exercise directives."""
    lines = text.splitlines()
    done = 0

    def prose(end: int) -> Iterator[Block]:
        start, stop = done, end
        while start < stop and not lines[start].strip():
            start += 1
        while stop > start and not lines[stop - 1].strip():
            stop -= 1
        if start < stop:
            yield Block("markdown", start, stop, "\n".join(lines[start:stop]))

    for token in tokens:
        if token.map is None or token.level:
            continue
        start, end = token.map
        if token.type == "front_matter":
            done = end
        elif token.type == "myst_block_break":
            yield from prose(start)
            done = end
        elif token.type == "fence":
            found = re.match(r"\{([\w-]+)\}\s*(.*)", token.info)
            name, argument = (found[1], found[2].strip()) if found else ("", "")
            if not name.startswith(("exercise", "solution")) and name not in ("code-cell", "hint"):
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
            if block.kind in ("exercise-end", "hint") or "exercise" in block.options:
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
        if block.kind == "code":
            if "exercise" in block.options or "role" in block.options:
                label = block.options.get("exercise")
                raise _WrongError(
                    block.line,
                    f"this {block.options.get('role', 'code')} cell of {label!r} does not follow "
                    "its exercise: the order is {exercise-start}, prose, {exercise-end}, hint, "
                    "solution, tests, wrong, with nothing between",
                )
            _check_marks(block, None, needed=False)
        return block

    def exercise(self) -> Exercise:
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
        """The next block, which must be the `role` cell of exercise `label`."""
        block = self.peek()
        if block is None or block.kind != "code" or block.options.get("role") != role:
            found = f"found {_name(block)}" if block else "the lesson ends"
            line = block.line if block else before.line
            article = "at least one" if role == "wrong" else "a"
            raise _WrongError(line, f"expected {article} {role} cell of {label!r} here, {found}")
        if block.options.get("exercise") != label:
            raise _WrongError(
                block.line,
                f"this {role} cell says exercise: {block.options.get('exercise')!r}, it stands in "
                f"the exercise {label!r}",
            )
        return self.step()


def _name(block: Block) -> str:
    """How a message calls a block that it did not expect."""
    if block.kind == "markdown":
        return f"text ({textwrap.shorten(block.source, 40)!r})"
    if block.kind != "code":
        return f"{{{block.kind}}}"
    role = block.options.get("role")
    return f"a cell with role: {role}" if role else "a code cell without a role"


def _check_exercise(exercise: Exercise) -> None:
    """What the order of the blocks cannot show: marks, options, Python."""
    solution, tests, label = exercise.solution, exercise.tests, exercise.label
    for block in (solution, tests, *exercise.wrong):
        allowed = OPTIONS[block.options["role"]]
        extra = [name for name in block.options if name not in allowed and name not in CELL_OPTIONS]
        if extra:
            raise _WrongError(
                block.line,
                f"unknown option {extra[0]!r} in a {block.options['role']} cell; "
                f"known: {', '.join(sorted(allowed | CELL_OPTIONS))}",
            )
    if exercise.answer not in ANSWERS:
        raise _WrongError(
            solution.line, f"answer: {exercise.answer!r} of {label!r}; known: {', '.join(ANSWERS)}"
        )
    _check_marks(solution, "SOLUTION", needed=True)
    _check_marks(tests, "HIDDEN TESTS", needed=False)
    _check_python(solution, solution.source, f"the solution of {label!r}")
    _check_python(solution, exercise.stub, f"the stub of {label!r}")
    _check_python(tests, tests.source, f"the tests of {label!r}")
    if not any(line.strip() for line in exercise.visible_tests.split("\n")):
        raise _WrongError(tests.line, f"all tests of {label!r} are hidden; show the learner some")
    for wrong in exercise.wrong:
        _check_marks(wrong, None, needed=False)
        _check_python(wrong, wrong.source, f"a wrong solution of {label!r}")
        why = wrong.options.get("why")
        if not isinstance(why, str) or not why.strip():
            raise _WrongError(
                wrong.line, f"a wrong cell of {label!r} does not say why: it is wrong"
            )
        if wrong.source.strip() == exercise.solved.strip():
            raise _WrongError(
                wrong.line, f"this wrong solution of {label!r} is the solution itself"
            )


def parse(text: str, path: str | Path = "<lesson>") -> Lesson:
    """Read the source of a lesson; raises `LessonError` with every problem it finds."""
    tokens = myst.get_parser().parse(text + "\n")
    problems: list[tuple[int, str]] = []
    found: list[Block | Exercise] = []
    reader = _Reader([])
    try:
        reader.blocks = list(_blocks(text, tokens))
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
    return Lesson(str(path), text, myst.myst_to_notebook(text).metadata, tuple(found))


def read(path: str | Path) -> Lesson:
    """`parse` the file at `path`."""
    return parse(Path(path).read_text("utf8"), path)


def setup(app: Any) -> dict[str, Any]:
    """For Sphinx: pages and notebooks are made of lessons."""
    import lesson_sphinx

    return lesson_sphinx.setup(app)
