"""Tries every exercise of one chapter as the only one of an assignment.

    python assignment_runner.py basics/attention

Prints JSON: {label: {"solution" | "stub": {"checks" | "hidden": "" or what was wrong}}}. Each try
has a namespace of its own and runs the cells of the notebook in their order, but for the one that
installs; warnings are errors. Hidden checks of the stub run after the visible ones have run with
the solution, as when submissions are judged.
"""

import io
import json
import sys
import warnings
from contextlib import redirect_stdout

from IPython.core.interactiveshell import InteractiveShell

from tfviz_course import assignment, lessons

SEEDS = (3, 20261121)


def main(chapter: str) -> None:
    lessons.home()
    from tfviz_lessons.assignment import gap
    from tfviz_lessons.lesson import unmark

    shell = InteractiveShell.instance()
    found: dict[str, dict[str, dict[str, str]]] = {}

    def run(source: str, name: str, space: dict) -> None:
        exec(compile(shell.transform_cell(source), f"<{name}>", "exec"), space)

    def outcome(source: str, name: str, space: dict) -> str:
        try:
            run(source, name, space)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def attempt(cells: list, answer: str, seed: int) -> dict[str, str]:
        space = {"__name__": "__main__", "display": lambda *_, **__: None}
        said: dict[str, str] = {}
        for cell in cells:
            role = cell.metadata.tfviz.role
            source = unmark(cell.source)
            if cell.cell_type != "code" or role == "install":
                continue
            if role == "student":
                run(f"{source}\nSTUDENT = 'ada'", role, space)
            elif role == "yours":
                solved = source
                run(solved if answer == "solution" else gap(cell.source), role, space)
            elif role == "checks":
                said[role] = outcome(source, role, space)
                if said[role]:
                    run(solved, "yours", space)
                    run(source, role, space)
                    run(gap(cells[place_of(cells, "yours")].source), "yours", space)
            elif role == "hidden":
                space["seed"] = seed
                said[role] = outcome(source, role, space)
            else:
                run(source, role, space)
        return said

    def place_of(cells: list, role: str) -> int:
        return next(n for n, cell in enumerate(cells) if cell.metadata.tfviz.role == role)

    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        for exercise in lessons.read(chapter).exercises:
            made = assignment.source_notebooks([exercise.label], name="one", course="c", seed=1)
            (notebook,) = made.values()
            found[exercise.label] = {
                f"{answer} {seed}": attempt(notebook.cells, answer, seed)
                for answer in ("solution", "stub")
                for seed in SEEDS
            }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
