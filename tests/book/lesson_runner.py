"""Runs one lesson from top to bottom and tries every variant of every exercise.

    python lesson_runner.py chapters/part/lesson.md

Prints JSON: {label: [{"variant", "tests", "outcome", "message"}, …]}. An outcome is "passes",
"check" (a message for the learner), "empty" (the untouched stub) or the name of another exception.
Each variant runs in the lesson's own namespace, which is put back as it was; warnings are errors.

Hidden tests are run with several seeds: a solution must pass with each, and a wrong one must fail
with each. Where an exercise has numbers of its own, its solution is tried with several draws.
"""

import io
import json
import os
import random
import sys
import traceback
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import numpy
import torch
from IPython.core.interactiveshell import InteractiveShell

from tfviz.checks import CheckFailed
from tfviz_lessons.lesson import Block, Exercise, Lesson, Written, assigned, code_line, read, unmark

SEEDS = (0, 1, 20261121, 2**31 - 1)


class Runner:
    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.shell = InteractiveShell.instance()
        self.space = self.shell.user_ns
        self.space["display"] = lambda *things, **options: None

    def run(self, source: str, name: str, line: int = 1) -> None:
        """Execute a cell that begins at this line; its last value is not displayed."""
        code = "\n" * (line - 1) + self.shell.transform_cell(source)
        exec(compile(code, name, "exec"), self.space)

    def cell(self, block: Block) -> None:
        """Execute a cell of the lesson; errors name the file and its line."""
        self.run(block.source, self.lesson.path, code_line(block, 0))

    def attempt(self, cells: dict[str, str]) -> tuple[str, str]:
        """Outcome and message of these cells, after which all is as it was before."""
        space = dict(self.space)
        seeds = torch.get_rng_state(), numpy.random.get_state(), random.getstate()
        try:
            for name, source in cells.items():
                self.run(source, name)
        except CheckFailed as failed:
            return "check", str(failed)
        except NotImplementedError as error:
            return ("empty" if not str(error) else "NotImplementedError"), str(error)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return type(error).__name__, f"{error} ({where.name}, line {where.lineno})"
        finally:
            self.space.clear()
            self.space.update(space)
            torch.set_rng_state(seeds[0])
            numpy.random.set_state(seeds[1])
            random.setstate(seeds[2])
        return "passes", ""

    def least(self, cells: dict[str, str], exercise: Exercise, *, wrong: bool) -> tuple[str, str]:
        """Outcome of the answer in `cells` and of all tests, with the seed that proves least.

        For a solution that is one where it fails, for a wrong one where it passes, or crashes.
        """
        found = []
        for seed in SEEDS:
            tests = {"<tests>": exercise.visible_tests, "<hidden tests>": exercise.hidden_tests}
            outcome, message = self.attempt({**cells, "<seed>": f"seed = {seed}", **tests})
            found.append((outcome, f"{message} (seed {seed})" if message else ""))
        best = "check" if wrong else "passes"
        return min(found, key=lambda one: (one[0] == best, wrong and one[0] != "passes"))

    def exercise(self, exercise: Exercise) -> list[dict[str, str]]:
        found = []

        def note(variant: str, tests: str, outcome: tuple[str, str]) -> None:
            words = {"outcome": outcome[0], "message": outcome[1]}
            found.append({"variant": variant, "tests": tests, **words})

        shown, right = {"<tests>": exercise.visible_tests}, unmark(exercise.solution.source)
        note("solution", "visible", self.attempt({"<answer>": exercise.solved, **shown}))
        for place, draw in enumerate(exercise.draws()):
            cells = {"<numbers>": assigned(draw), "<answer>": right}
            name = f"solution with {assigned(draw)}" if place else "solution"
            note(name, "all", self.least(cells, exercise, wrong=False))
        note("stub", "visible", self.attempt({"<answer>": exercise.stub, **shown}))
        for wrong in exercise.wrong:
            cells = {"<numbers>": exercise.numbers, "<answer>": wrong.source}
            name = f"wrong: {wrong.options['why']}"
            note(name, "all", self.least(cells, exercise, wrong=True))
        self.run(exercise.solved, exercise.label)
        if found[0]["outcome"] == "passes":  # in the page the checks are executed too
            self.run(exercise.visible_tests, exercise.label)
        return found


def main(path: str) -> None:
    lesson = read(path)
    os.chdir(Path(path).parent)
    runner = Runner(lesson)
    results = {}
    said = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(said):
        warnings.simplefilter("error")
        for block in lesson.blocks:
            if isinstance(block, Exercise):
                results[block.label] = runner.exercise(block)
            elif isinstance(block, Written):
                continue
            elif block.kind == "code":
                runner.cell(block)
    print(json.dumps(results))


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
