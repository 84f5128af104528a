"""Tries the exercises of one chapter as those of an assignment.

`tries("basics/attention")` is {label: {"alone": {kind: said}, "stub": {kind: said}, "judged":
{kind: said}}}, where kind is "checks" or "hidden", and said is what was wrong, or "". It is for a
copy of a process: what it executes stays in it.

*Alone*: the exercise as the only one, so that its set-up is all that it has, with its solution, and
as a *stub*; in a copy of the process for each exercise. Warnings are errors.
*Judged*: one submission with all solutions of the chapter, in the sandbox as those of students are.
"""

import io
import warnings
from contextlib import redirect_stdout
from functools import partial
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode

from tfviz_course import assignment
from tfviz_course.judge import judge, prepare
from tfviz_lessons import clone
from tfviz_lessons.assignment import gap
from tfviz_lessons.lesson import unmark
from tfviz_lessons.variants import apart

Said = dict[str, str]


def made_of(item: str) -> NotebookNode:
    (made,) = assignment.source_notebooks([item], name="one", course="c", seed=1).values()
    return made


def tried(label: str) -> dict[str, Said]:
    """What the tests say of stub and solution when this is the only exercise."""
    shell = InteractiveShell.instance()
    space = {"__name__": "__main__", "display": lambda *_, **__: None, "seed": 3}
    found: dict[str, Said] = {"alone": {}, "stub": {}}

    def run(source: str, name: str) -> None:
        exec(compile(shell.transform_cell(source), f"<{name}>", "exec"), space)

    def outcome(what: str, role: str) -> None:
        try:
            run(unmark(tests[role]), role)
        except Exception as error:
            found[what][role] = f"{type(error).__name__}: {error}"
        else:
            found[what][role] = ""

    code = [cell for cell in made_of(label).cells if cell.cell_type == "code"]
    tests = {c.metadata.tfviz.role: c.source for c in code if c.metadata.nbgrader.grade}
    for cell in code:
        role = cell.metadata.tfviz.role
        if role == "student":
            run(f"{cell.source}\nSTUDENT = 'ada'", role)
        elif role == "yours":
            run(gap(cell.source), role)
            outcome("stub", "checks")
            run(unmark(cell.source), role)
            outcome("alone", "checks")
            if "hidden" in tests:
                outcome("alone", "hidden")
                run(gap(cell.source), role)
                outcome("stub", "hidden")
        elif role not in (*tests, "install"):
            run(cell.source, role)
    return found


def tries(chapter: str) -> dict[str, dict[str, Said]]:
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        made = made_of(chapter)
        prepared = prepare(made)
        answers = {c.id: unmark(c.source) for c in made.cells if c.metadata.tfviz.role == "yours"}
        about: Any = {"student": "ada", "secret": "5eed" * 16, "assignment": "one"}
        verdicts = judge(prepared, answers, **about).verdicts
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        found = {
            exercise.label: apart(partial(tried, exercise.label))
            for exercise in clone.read(chapter).exercises
        }
    for cell in made.cells:
        if cell.id in verdicts:
            one, tfviz = verdicts[cell.id], cell.metadata.tfviz
            mine = found[tfviz.exercise].setdefault("judged", {})
            mine[tfviz.role] = "" if one.passed else one.message or "failed"
    return found
