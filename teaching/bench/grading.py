"""How many submissions are graded in a minute, where the time goes, and what it costs in memory.

    python teaching/bench/grading.py                a class of 12, graded with 1, 2 and 4 workers
    python teaching/bench/grading.py --class 40 --workers 1 8

The class has honest answers to five exercises in code of one chapter: the official ones with small
edits, and some mistakes. It is graded here, and by nbgrader's own autograde, which runs each
notebook with the instructor's rights, in the same run. Read the ratios and the processor seconds of
one submission, for the machine may be shared.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil

from tfviz_course import assignment, autograde, report
from tfviz_course.judge import judge, prepare
from tfviz_course.line import Session
from tfviz_course.sandbox import Limits, available

NAME = "hw1"
ITEMS = ["ex-sharpness", "ex-additive", "ex-attention-loops", "ex-scale", "ex-order"]
NOTEBOOK = "attention"
MISTAKE = ("ex-scale", "return math.sqrt(", "return (")  # the variance instead of its root
LIMITS = Limits()

# nbgrader as it comes: no plugin, no sandbox. In a process of its own, because ours puts its
# Autograde in the place of nbgrader's.
STOCK = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

config = Config()
config.CourseDirectory.root = str(Path(sys.argv[1]).resolve())
config.CourseDirectory.course_id = "stock"
config.ClearMarkScheme.enforce_metadata = False
api = NbGraderAPI(CourseDirectory(config=config), config=config)
if sys.argv[3:]:
    done = [api.autograde(sys.argv[2], student) for student in sys.argv[3:]]
    assert all(result["success"] for result in done), done
else:
    done = api.generate_assignment(sys.argv[2])
    assert done["success"], done
with api.gradebook as book:
    print(json.dumps({s.student.id: s.score for s in book.assignment_submissions(sys.argv[2])}))
"""


@dataclass(frozen=True)
class Spent:
    """What something took: seconds on the clock, processor seconds, megabytes at the peak."""

    clock: float
    processor: float
    memory: float


@contextlib.contextmanager
def spending() -> Iterator[list[Spent]]:
    """Measure a block: this process and all it starts, looked at ten times a second.

    The system forgets the time of processes that are killed with their sandbox, so it is read while
    they live. Memory is that of the children; pages that they share are counted once. What looking
    takes is not counted.
    """
    spent_on_each: list[Spent] = []
    done = threading.Event()
    peak = looking = 0.0

    def used() -> dict[psutil.Process, float]:
        seconds_by_process = {}
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                seconds_by_process[child] = sum(child.cpu_times()[:2])
        return seconds_by_process

    def look() -> None:
        nonlocal peak, looking
        while not done.wait(0.1):
            seconds.update(now := used())
            total = 0
            for child in now:
                with contextlib.suppress(psutil.Error):
                    total += child.memory_full_info().pss
            peak = max(peak, total / 2**20)
            looking = time.thread_time()

    def own() -> float:
        return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])

    watch = threading.Thread(target=look)
    earlier = used()  # of a process that goes on, only what it uses from here
    seconds = dict(earlier)
    clock, before = time.perf_counter(), own()
    watch.start()
    try:
        yield spent_on_each
    finally:
        clock = time.perf_counter() - clock
        done.set()
        watch.join()
        mine = own() - looking - before
        others = sum(seconds.values()) - sum(earlier.values())
        spent_on_each.append(Spent(clock, mine + others, peak))


def timed(act: Callable[[], Any], times: int = 3) -> float:
    """Seconds on the processor, the best of some."""
    seconds = []
    for _ in range(times):
        with spending() as spent:
            act()
        seconds.append(spent[0].processor)
    return min(seconds)


# --- the class -----------------------------------------------------------------------------------


def solved(source: Any, student: str, number: int) -> dict[str, str]:
    """Answers of one student by the cell they stand in; every fourth makes a mistake."""
    answers = {}
    for cell in source.cells:
        about = cell.metadata.get("tfviz", {})
        if about.get("role") == "student":
            answers[cell.metadata.nbgrader.grade_id] = (
                f"# exercise: student  (keep this line)\nSTUDENT = {student!r}"
            )
        elif about.get("role") == "yours":
            lines = [line for line in cell.source.split("\n") if "### " not in line]
            text = "\n".join([*lines, f"# by {student}"] if cell.cell_type == "code" else lines)
            if number % 4 == 3 and about["exercise"] == MISTAKE[0]:
                assert MISTAKE[1] in text
                text = text.replace(*MISTAKE[1:])
            answers[cell.metadata.nbgrader.grade_id] = text
    return answers


def hand_in(course: Path, release: Any, answers: Mapping[str, str], student: str) -> None:
    notebook = copy.deepcopy(release)
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.nbgrader.grade_id, cell.source)
    folder = course / "submitted" / student / NAME
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{NOTEBOOK}.ipynb")


def stock(course: Path, *students: str) -> dict[str, float]:
    """nbgrader alone: make the assignment, or autograde students; returns their scores."""
    run = subprocess.run(
        [sys.executable, "-c", STOCK, str(course), NAME, *students], capture_output=True, text=True
    )
    if run.returncode:
        raise RuntimeError(f"nbgrader failed:\n{run.stderr[-3000:]}")
    return dict(json.loads(run.stdout.splitlines()[-1]))


def stock_course(folder: Path, source: Any) -> None:
    """The same assignment for nbgrader alone; `seed` is what only our grader binds."""
    notebook = copy.deepcopy(source)
    first = next(cell for cell in notebook.cells if cell.metadata.tfviz.role == "setup")
    first.source = f"seed = 1\n{first.source}"
    (folder / "source" / NAME).mkdir(parents=True)
    nbformat.write(notebook, folder / "source" / NAME / f"{NOTEBOOK}.ipynb")
    stock(folder)


# --- what is measured ----------------------------------------------------------------------------


def where_it_goes(source: Any, answers: Mapping[str, str]) -> dict[str, float]:
    """Seconds of the parts of judging one submission, one after the other; the process that those
    of submissions are copies of is there."""
    prepared = prepare(source)
    cells = prepared.set_up()

    def whole(given: Mapping[str, str]) -> None:
        judge(prepared, given, student="s01", secret="0" * 64, assignment=NAME, limits=LIMITS)

    def start() -> None:
        Session(LIMITS, cells).line.close()

    start()
    first = next(name for name in answers if name.endswith("-yours"))
    ready = timed(start)
    set_up, everything = timed(lambda: whole({first: "pass"})), timed(lambda: whole(answers))
    return {
        "a process of its own": ready,
        "what else the lesson sets up": set_up - ready,
        "answers and tests": everything - set_up,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--class", type=int, default=12, dest="size", help="how many students")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    given = parser.parse_args()
    if why := available():
        print(f"not measured: {why}")
        return 0
    warnings.simplefilter("ignore")
    assignment.find_tools()
    students = [f"s{n:02}" for n in range(1, given.size + 1)]
    with tempfile.TemporaryDirectory() as place:
        ours, theirs = Path(place, "ours"), Path(place, "stock")
        assignment.create_course(ours, "Bench", seed=1)
        release = assignment.create_assignment(ours, NAME, ITEMS)
        source = nbformat.read(ours / "source" / NAME / f"{NOTEBOOK}.ipynb", 4)
        empty = nbformat.read(release / f"{NOTEBOOK}.ipynb", 4)
        stock_course(theirs, source)
        for number, student in enumerate(students):
            answers = solved(source, student, number)
            hand_in(ours, empty, answers, student)
            hand_in(theirs, empty, answers, student)
        exercises = sum(cell.metadata.tfviz.role == "yours" for cell in source.cells)
        print(
            f"{len(students)} submissions of {exercises} exercises, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f} at the start"
        )
        compare(ours, theirs, students, given.workers)
        print("\nprocessor seconds of one submission, part by part")
        parts = where_it_goes(source, solved(source, "s01", 0))
        with spending() as spent:
            autograde.autograde(ours, NAME)
        parts["recording by nbgrader"] = spent[0].processor / len(students)
        total = sum(parts.values())
        for name, seconds in parts.items():
            print(f"  {name:40}{seconds:6.2f}{seconds / total:7.0%}")
        print(f"  {'together':40}{total:6.2f}")
    return 0


def compare(ours: Path, theirs: Path, students: list[str], workers: list[int]) -> None:
    """One row for each number of workers, and one for nbgrader alone."""
    size = len(students)
    heads = f"{'a minute':>9}{'processor seconds of one':>26}{'scaling':>9}{'÷ bare':>8}"
    print(f"\n{'':22}{heads}{'MB a worker':>13}")
    with spending() as spent:
        expected = stock(theirs, *students)
    bare = spent[0]
    rate = 60 * size / bare.clock
    row = f"{rate:9.1f}{bare.processor / size:26.2f}{'':9}{1:8.2f}{bare.memory:13.0f}"
    print(f"{'bare nbgrader':22}{row}", flush=True)
    first = 0.0
    for count in workers:
        with spending() as spent:
            autograde.autograde(ours, NAME, workers=count, again=True)
        graded = report.results(ours, NAME).students
        scores = {one.id: sum(mark.points for mark in one.marks) for one in graded}
        if scores != expected:
            raise RuntimeError(f"other points than nbgrader alone: {scores}, {expected}")
        mine = spent[0]
        first = first or mine.clock
        row = f"{60 * size / mine.clock:9.1f}{mine.processor / size:26.2f}"
        row += f"{first / mine.clock:9.2f}{bare.clock / mine.clock:8.2f}{mine.memory / count:13.0f}"
        print(f"{f'{count} workers, sandbox':22}{row}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
