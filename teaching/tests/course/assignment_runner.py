"""Tries the exercises of one chapter as those of an assignment.

`tries("basics/attention")` is {label: {"alone": {kind: said}, "stub": {kind: said}, "judged":
{kind: said}, "lazy": {answer: said}}}, where kind is "checks" or "hidden", and said is what was
wrong, or "". It is for a copy of a process: what it executes stays in it.

*Alone*: the exercise as the only one, so that its set-up is all that it has, with its solution, and
as a *stub*; in a copy of the process for each exercise. Warnings are errors.
*Lazy*: the same with functions that do nothing in the place of the solution's, and what the hidden
tests by themselves say of them; of exercises whose hidden tests call a function of the answer.
*Judged*: one submission with all solutions of the chapter, in the sandbox as those of students are.
"""

import io
import warnings
from contextlib import redirect_stdout
from functools import partial
from types import FunctionType
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode

from tfviz_course import assignment
from tfviz_course.judge import judge, prepare
from tfviz_lessons import clone
from tfviz_lessons.assignment import gap
from tfviz_lessons.lesson import unmark
from tfviz_lessons.variants import apart

Said = dict[str, str]


def first(*values: Any, **named: Any) -> Any:
    """The first argument as it came."""
    return next(iter((*values, *named.values())), None)


def zeros(*values: Any, **named: Any) -> Any:
    """Zeros in the shape of the first tensor among the arguments, or a zero."""
    tensors = [one for one in (*values, *named.values()) if isinstance(one, torch.Tensor)]
    return torch.zeros_like(tensors[0]) if tensors else torch.zeros(())


LAZY = {
    "None": lambda *_, **__: None,
    "0": lambda *_, **__: 0,
    "[]": lambda *_, **__: [],
    "()": lambda *_, **__: (),
    "{}": lambda *_, **__: {},
    "an empty text": lambda *_, **__: "",
    "the first argument": first,
    "zeros": zeros,
}


def made_of(item: str) -> NotebookNode:
    (made,) = assignment.source_notebooks([item], name="one", course="c", seed=1).values()
    return made


def tried(label: str) -> dict[str, Said]:
    """What the tests say of stub and solution when this is the only exercise."""
    shell = InteractiveShell.instance()
    space = {"__name__": "__main__", "display": lambda *_, **__: None, "seed": 3}
    found: dict[str, Said] = {"alone": {}, "stub": {}, "lazy": {}}

    def run(source: str, name: str) -> None:
        exec(compile(shell.transform_cell(source), f"<{name}>", "exec"), space)

    def outcome(role: str) -> str:
        try:
            run(unmark(tests[role]), role)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def answered() -> list[str]:
        """Functions of the answer that the hidden tests name."""
        named = compile(unmark(tests["hidden"]), "<hidden>", "exec").co_names
        functions = {name: one for name, one in space.items() if isinstance(one, FunctionType)}
        mine = {name for name, one in functions.items() if one.__code__.co_filename == "<yours>"}
        return [name for name in named if name in mine]

    code = [cell for cell in made_of(label).cells if cell.cell_type == "code"]
    tests = {c.metadata.tfviz.role: c.source for c in code if c.metadata.nbgrader.grade}
    for cell in code:
        role = cell.metadata.tfviz.role
        if role == "student":
            run(f"{cell.source}\nSTUDENT = 'ada'", role)
        elif role == "yours":
            run(gap(cell.source), role)
            found["stub"]["checks"] = outcome("checks")
            run(unmark(cell.source), role)
            found["alone"]["checks"] = outcome("checks")
            if "hidden" in tests:
                found["alone"]["hidden"] = outcome("hidden")
                if names := answered():
                    for what, lazy in LAZY.items():
                        space.update(dict.fromkeys(names, lazy))
                        found["lazy"][what] = outcome("hidden")
                run(gap(cell.source), role)
                found["stub"]["hidden"] = outcome("hidden")
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
