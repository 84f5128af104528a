"""The command ``tfviz-course``."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfviz_course import students

if TYPE_CHECKING:
    from tfviz_course.report import Results

ABOUT = """\
Teach with the course: assignments from its lessons, safe grading, results of a class.

The usual way, in this order:
  tfviz-course new ~/nlp101 --name "NLP 101"         a folder for the class
  cd ~/nlp101
  tfviz-course assignment hw1 basics/attention       release/hw1 is what students get
  (put what they hand in into submitted/STUDENT/hw1, or let a hub do it)
  tfviz-course autograde hw1                         points, in nbgrader's gradebook
  tfviz-course report hw1                            tables and plots of the class
  tfviz-course feedback hw1                          a page for each student
"""

EXAMPLES = {
    "new": 'tfviz-course new ~/nlp101 --name "NLP 101"',
    "list": "tfviz-course list\n  tfviz-course list basics/attention",
    "assignment": (
        "tfviz-course assignment hw1 basics/attention\n"
        "  tfviz-course assignment hw2 ex-sharpness ex-two-hops --points ex-sharpness=3 "
        '--due "2026-12-01 18:00"'
    ),
    "autograde": (
        "tfviz-course autograde hw1\n"
        "  tfviz-course autograde hw1 --student ada --student bob --again"
    ),
    "report": "tfviz-course report hw1\n  tfviz-course report hw1 --anonymous",
    "feedback": "tfviz-course feedback hw1\n  tfviz-course feedback hw1 --student ada",
    "check": "tfviz-course check",
}


REMARKS = 5
"""Remarks on one student that are printed."""


class UsageError(Exception):
    """What was asked for cannot be; the message says what to ask for instead."""


# --- the subcommands -----------------------------------------------------------------------------


def new(options: argparse.Namespace) -> None:
    from tfviz_course.assignment import create_course

    course = create_course(options.folder, options.name, seed=options.seed)
    print(f"The course is in {course}")
    print("  course.toml         its seed, and its secret: only for instructors")
    print("  nbgrader_config.py  settings of nbgrader; add your own at the end")
    print(f"Next: cd {course}, then tfviz-course assignment NAME ITEM…  (tfviz-course list)")


def show(options: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tfviz_course import lessons

    known = list(lessons.chapters())
    chosen = list(lessons.choose([options.chapter])) if options.chapter else known
    console = Console()
    for chapter in chosen:
        table = Table(title=chapter, title_justify="left", box=None, padding=(0, 2, 0, 2))
        table.add_column("exercise", no_wrap=True)
        table.add_column("answer")
        table.add_column("title")
        for task in lessons.read(chapter).tasks:
            answer = getattr(task, "answer", "words")
            table.add_row(task.label, answer, escape(task.title or _first_words(task.prose.source)))
        console.print(table)


def _first_words(prose: str) -> str:
    bold = prose.strip().removeprefix("**").split("**")[0]
    return textwrap.shorten(bold, 60, placeholder=" …")


def assignment(options: argparse.Namespace) -> None:
    from tfviz_course.assignment import create_assignment

    points = dict(map(_points, options.points))
    due = _due(options.due) if options.due else None
    release = create_assignment(
        options.course, options.name, options.items, points=points, again=options.again
    )
    if due:
        _set_due(options.course, options.name, due)
    print(f"For students:    {release}")
    print(
        f"For instructors: {release.parents[1] / 'source' / options.name}  (solutions, all tests)"
    )
    for path in sorted(release.glob("*.ipynb")):
        worth = _worth(path)
        print(
            f"  {path.name}  {', '.join(f'{label} {points:g}' for label, points in worth.items())}"
        )
    if due:
        print(f"Due: {due:%Y-%m-%d %H:%M} UTC")


def _points(text: str) -> tuple[str, float]:
    label, _, number = text.partition("=")
    try:
        return label, float(number)
    except ValueError:
        raise UsageError(f"--points {text!r}: write it as ex-label=3") from None


def _due(text: str) -> datetime:
    """The time in UTC, without a time zone, as nbgrader wants it."""
    try:
        due = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f'--due {text!r}: write it as "2026-12-01 18:00" (UTC)') from None
    return due if due.tzinfo is None else due.astimezone(UTC).replace(tzinfo=None)


def _set_due(course: Path, name: str, due: datetime) -> None:
    from tfviz_course.assignment import api

    with api(course).gradebook as gradebook:
        gradebook.update_or_create_assignment(name, duedate=due)


def _worth(path: Path) -> dict[str, float]:
    """Points of the exercises in a notebook."""
    import nbformat

    worth: dict[str, float] = {}
    for cell in nbformat.read(path, as_version=4).cells:
        info = cell.metadata.get("nbgrader", {})
        if info.get("grade"):
            label = cell.metadata.get("tfviz", {}).get("exercise", info["grade_id"])
            worth[label] = worth.get(label, 0) + float(info["points"])
    return worth


def autograde(options: argparse.Namespace) -> None:
    from dataclasses import replace

    from tfviz_course import autograde as grading
    from tfviz_course import sandbox
    from tfviz_course.report import count

    limits = sandbox.Limits()
    if options.seconds is not None:
        limits = replace(limits, seconds=options.seconds)
    if options.memory is not None:
        limits = replace(limits, memory=int(options.memory * 2**30))
    choice: dict[str, Any] = {
        "students": options.student or None,
        "workers": options.workers,
        "limits": limits,
        "accept_risk": options.accept_risk,
        "again": options.again,
        "judge_only": options.judge_only,
        "progress": sys.stderr.isatty(),
    }
    begin = time.monotonic()
    took = grading.autograde(options.course, options.name, **choice)
    if options.judge_only:
        return
    found = _summary(options.course, options.name)
    judged = sum(seconds > 0 for seconds in took.values())
    print(
        f"{count(len(took), 'submission')} graded in {time.monotonic() - begin:.0f} s; "
        f"{judged} judged now, {len(took) - judged} known from before."
    )
    odd = {one.id: one.remarks for one in found.students if one.remarks and one.id in took}
    if odd:
        print("Remarks (students read in their feedback how their file was read):")
    for name, remarks in odd.items():
        for remark in remarks[:REMARKS]:
            print(f"  {name}: {remark}")
        if len(remarks) > REMARKS:
            more = count(len(remarks) - REMARKS, "more remark")
            print(f"  {name}: and {more}; tfviz-course report writes them all")
    if found.strange:
        raise UsageError(_strange(found.strange) + f"; rename it in {options.course / 'submitted'}")


def _strange(names: Sequence[str]) -> str:
    """Which folders are left out, and why."""
    return f"not graded: {', '.join(map(students.shown, names))}: {students.RULE}"


def _summary(course: Path, name: str, *, anonymous: bool = False) -> Results:
    from rich.console import Console

    from tfviz_course import report as reports
    from tfviz_course.assignment import read_course

    found = reports.results(course, name)
    if anonymous:
        found = reports.without_names(found, read_course(course).secret)
    Console().print(reports.table(found))
    return found


def feedback(options: argparse.Namespace) -> None:
    from tfviz_course.assignment import api, failure, read_course
    from tfviz_course.report import count, results, waiting

    read_course(options.course)
    handle = api(options.course)
    there, _ = students.below(options.course / "autograded", options.name)
    if not there:
        raise UsageError(f"nothing of {options.name!r} is graded: tfviz-course autograde first")
    wanted = options.student or there
    strangers = [student for student in wanted if student not in there]
    if strangers:
        raise UsageError(f"{', '.join(strangers)}: not graded for {options.name!r}")
    failed = {}
    for student in wanted:
        result = handle.generate_feedback(options.name, student)
        if not result["success"]:
            failed[student] = failure(result)
    done = len(wanted) - len(failed)
    place = f"{options.course / 'feedback'}/STUDENT/{options.name}"
    print(f"Feedback for {count(done, 'student')}: {place}")
    if todo := waiting(results(options.course, options.name)):
        print(f"Not graded yet: {'; '.join(todo)}. The pages say so; make them again afterwards.")
    if failed:
        raise UsageError(f"no feedback in {place}: {students.together(failed)}")


def report(options: argparse.Namespace) -> None:
    from tfviz_course import report as reports
    from tfviz_course.store import writing

    _summary(options.course, options.name, anonymous=options.anonymous)
    with writing(options.course / "reports" / options.name):
        folder = reports.write(options.course, options.name, anonymous=options.anonymous)
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    print(f"In {folder}: {', '.join(files)}")


def check(options: argparse.Namespace) -> None:
    from tfviz_course import sandbox

    why = sandbox.available()
    if why:
        raise UsageError(why)
    print("The sandbox works: submissions can be graded on this machine.")
    if said := sandbox.unbound():
        print(said)


# --- the options ---------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """What the command understands."""
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser("tfviz-course", description=ABOUT, formatter_class=raw)
    parts = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], None], short: str, more: str = ""
    ) -> argparse.ArgumentParser:
        made = parts.add_parser(
            name,
            help=short,
            description=f"{short[0].upper()}{short[1:]}.\n\n{textwrap.dedent(more).strip()}".strip(),
            epilog=f"for example:\n  {EXAMPLES[name]}",
            formatter_class=raw,
        )
        made.set_defaults(run=run)
        made.add_argument("--debug", action="store_true", help="show where an error comes from")
        return made

    def of_assignment(made: argparse.ArgumentParser) -> None:
        made.add_argument("name", metavar="NAME", help="the assignment, such as hw1")
        made.add_argument(
            "--course", metavar="FOLDER", type=Path, default=Path(), help="default: this folder"
        )

    def of_students(made: argparse.ArgumentParser) -> None:
        made.add_argument(
            "--student",
            metavar="S",
            action="append",
            default=[],
            help="only this student; may be given several times",
        )

    made = command(
        "new",
        new,
        "make a folder for a course",
        """
        A course folder holds everything about one class: assignments, submissions, grades.
        It must not be public: it has the solutions and the secret of the hidden tests.
        """,
    )
    made.add_argument("folder", metavar="FOLDER", type=Path)
    made.add_argument("--name", required=True, help='what students read, such as "NLP 101"')
    made.add_argument(
        "--seed", type=int, metavar="N", help="draws students' own numbers; default: random"
    )

    made = command("list", show, "list chapters and exercises that can be given out")
    made.add_argument("chapter", metavar="CHAPTER", nargs="?", help="such as basics/attention")

    made = command(
        "assignment",
        assignment,
        "make an assignment from exercises of the lessons",
        """
        Writes source/NAME (with solutions and all tests: for instructors) and release/NAME
        (for students), one notebook for each chapter, and enters it into the gradebook.
        """,
    )
    of_assignment(made)
    made.add_argument(
        "items",
        metavar="ITEM",
        nargs="+",
        help="a chapter (all its exercises) or the label of an exercise; see tfviz-course list",
    )
    made.add_argument(
        "--points",
        metavar="EX=N",
        nargs="+",
        action="extend",
        default=[],
        help="what exercises are worth, such as ex-sharpness=3",
    )
    made.add_argument("--due", metavar="TIME", help='such as "2026-12-01 18:00", in UTC')
    made.add_argument(
        "--again", action="store_true", help="make anew an assignment that is there already"
    )

    made = command(
        "autograde",
        autograde,
        "grade what was handed in",
        """
        Takes the answers from submitted/STUDENT/NAME, runs them in a sandbox, and writes
        points into nbgrader's gradebook. Can be stopped and run again at any time: what did
        not change is not judged again, and points and comments given by hand stay.
        """,
    )
    of_assignment(made)
    of_students(made)
    made.add_argument(
        "--workers", type=_positive(int), metavar="N", help="judged at a time; default: all cores"
    )
    made.add_argument("--again", action="store_true", help="judge anew also what did not change")
    made.add_argument(
        "--seconds", type=_positive(float), metavar="S", help="at most, for one submission"
    )
    made.add_argument(
        "--memory", type=_positive(float), metavar="GIB", help="at most, for one submission"
    )
    made.add_argument(
        "--judge-only",
        action="store_true",
        help="leave the gradebook as it is (formgrader does so)",
    )
    made.add_argument(
        "--accept-risk",
        action="store_true",
        help="where there is no sandbox: run what students wrote with your own rights",
    )

    made = command(
        "feedback",
        feedback,
        "make a page for each student",
        """
        Writes feedback/STUDENT/NAME: answers, points, what the tests said, your comments. Of
        hidden tests it shows only whether they passed.
        """,
    )
    of_assignment(made)
    of_students(made)

    made = command(
        "report",
        report,
        "show the results of the class",
        """
        Prints tables, and writes reports/NAME: the tables as CSV, and two plots.
        """,
    )
    of_assignment(made)
    made.add_argument(
        "--anonymous", action="store_true", help="for showing in class: no names, no remarks"
    )

    command("check", check, "say whether submissions can be graded safely on this machine")
    return top


def _positive(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    read.__name__ = kind.__name__  # argparse says "invalid float value"
    return read


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0, 2 for what went wrong, 130 for Ctrl-C."""
    options = parser().parse_args(arguments)
    # nbgrader calls a program that stands beside this Python, which need not be on the PATH
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if "course" in options:
        options.course = options.course.resolve()
    try:
        with warnings.catch_warnings():
            if not options.debug:
                warnings.simplefilter("ignore")  # of packages about each other
            for student in getattr(options, "student", ()):
                students.check(student)
            options.run(options)
    except KeyboardInterrupt:
        print("tfviz-course: stopped; what is done is kept, and a new run goes on", file=sys.stderr)
        return 130
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = " … ".join([lines[0], lines[-1]] if len(lines) > 2 else lines)
        known = type(error).__module__.startswith("tfviz_course") or type(error) in (
            FileNotFoundError,
            ValueError,
        )
        kind = "" if known else f"{type(error).__name__}: "
        hint = "" if known or options.debug else " (--debug shows where)"
        print(f"tfviz-course: {kind}{said or 'it does not say why'}{hint}", file=sys.stderr)
        return 2
    return 0
