"""Tries every exercise of one chapter as the only one of an assignment.

    python assignment_runner.py basics/attention

Prints JSON: {label: {"solution" | "stub": {"checks" | "hidden": "" or what was wrong}}}. What
stands before the answer is executed once, in the order of the notebook, but for the cell that
installs; each try goes on from there in a copy of the process. Warnings are errors. Hidden checks
of the stub run after the visible ones have run with the solution, as when submissions are judged.
"""

import io
import json
import sys
import warnings
from contextlib import redirect_stdout
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode

from tfviz_course import assignment, lessons

SEEDS = (3, 20261121)

Said = dict[str, str]


def main(chapter: str) -> None:
    lessons.home()
    from tfviz_lessons.assignment import gap as gap_of
    from tfviz_lessons.lesson import unmark
    from tfviz_lessons.variants import apart

    shell = InteractiveShell.instance()

    def run(source: str, name: str, space: dict[str, Any]) -> None:
        exec(compile(shell.transform_cell(source), f"<{name}>", "exec"), space)

    def outcome(source: str, name: str, space: dict[str, Any]) -> str:
        try:
            run(source, name, space)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def step(cell: NotebookNode, space: dict[str, Any]) -> None:
        """A cell that is the same in all tries."""
        role, source = cell.metadata.tfviz.role, unmark(cell.source)
        if cell.cell_type == "code" and role != "install":
            run(f"{source}\nSTUDENT = 'ada'" if role == "student" else source, role, space)

    def attempt(cells: list[NotebookNode], answer: str, seed: int, space: dict[str, Any]) -> Said:
        """What the checks say; `cells` begin with the one that is the learner's."""
        said: Said = {}
        solved, gap = unmark(cells[0].source), gap_of(cells[0].source)
        run(solved if answer == "solution" else gap, "yours", space)
        for cell in cells[1:]:
            role, source = cell.metadata.tfviz.role, unmark(cell.source)
            if role == "checks" and cell.cell_type == "code":
                said[role] = outcome(source, role, space)
                if said[role]:
                    run(solved, "yours", space)
                    run(source, role, space)
                    run(gap, "yours", space)
            elif role == "hidden" and cell.cell_type == "code":
                space["seed"] = seed
                said[role] = outcome(source, role, space)
            else:
                step(cell, space)
        return said

    def tries(label: str) -> dict[str, Said]:
        made = assignment.source_notebooks([label], name="one", course="c", seed=1)
        (notebook,) = made.values()
        space = {"__name__": "__main__", "display": lambda *_, **__: None}
        cells = list(notebook.cells)
        yours = next(n for n, cell in enumerate(cells) if cell.metadata.tfviz.role == "yours")
        for cell in cells[:yours]:
            step(cell, space)
        return {
            f"{answer} {seed}": apart(
                lambda answer=answer, seed=seed: attempt(cells[yours:], answer, seed, space)
            )
            for answer in ("solution", "stub")
            for seed in SEEDS
        }

    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        found = {
            exercise.label: tries(exercise.label) for exercise in lessons.read(chapter).exercises
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
