"""The command ``tfviz-course``: each subcommand is a function here, its docstring is its help."""

from __future__ import annotations

import argparse
import errno
import inspect
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tfviz_course import CourseError, students

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
REMARKS = 5  # on one student that are printed
CLONE = Path(__file__).resolve().parents[2]
NEEDED = {"rich", "nbgrader", "psutil", "yaml", "genanki", "sqlalchemy", "traitlets", "nbformat"}


def new(options: argparse.Namespace) -> None:
    """Make a folder for a course.

    A course folder holds everything about one class: assignments, submissions, grades.
    It must not be public: it has the solutions and the secret of the hidden tests.
    """
    from tfviz_course.assignment import create_course

    course = create_course(options.folder, options.name, seed=options.seed)
    print(f"The course is in {course}")
    print("  course.toml         its seed, and its secret: only for instructors")
    print("  nbgrader_config.py  settings of nbgrader; add your own at the end")
    print(f"Next: cd {course}, then tfviz-course assignment NAME ITEM…  (tfviz-course list)")


def show(options: argparse.Namespace) -> None:
    """List chapters and exercises that can be given out."""
    from rich.table import Column, Table
    from rich.text import Text

    from tfviz.catalogue import CHAPTERS
    from tfviz_course.questions import to_words
    from tfviz_lessons import clone

    numbers = {chapter.document: chapter.number for chapter in CHAPTERS}
    for chapter in clone.choose([options.chapter]) if options.chapter else clone.chapters():
        look: dict[str, Any] = {"title_justify": "left", "box": None, "padding": (0, 2, 0, 2)}
        heads = Column("exercise", no_wrap=True), Column("no.", justify="right"), "answer", "title"
        table = Table(*heads, title=chapter, **look)
        for place, task in enumerate(clone.read(chapter).tasks, 1):
            begin = task.title or task.prose.source.strip().removeprefix("**").split("**")[0]
            title = textwrap.shorten(to_words(begin), 60, placeholder=" …")
            number = f"{numbers.get(f'chapters/{chapter}', '')}.{place}"
            table.add_row(task.label, number, getattr(task, "answer", "words"), Text(title))
        _print(table)


def assignment(options: argparse.Namespace) -> None:
    """Make an assignment from exercises of the lessons.

    Writes source/NAME (with solutions and all tests: for instructors) and release/NAME
    (for students), one notebook for each chapter, and enters it into the gradebook.
    """
    from tfviz_course.assignment import create_assignment
    from tfviz_course.report import read_cells

    course, name, due = options.course, options.name, options.due
    more: dict[str, Any] = {"points": dict(options.points), "due": due, "again": options.again}
    more["progress"] = True
    release = create_assignment(course, name, options.items, **more)
    print(f"For students:    {release}")
    print(f"For instructors: {course / 'source' / name}  (solutions, all tests)")
    worth: dict[str, dict[str, float]] = {}
    for (notebook, _), cell in read_cells(release).items():
        mine = worth.setdefault(notebook, {})
        mine[cell.exercise] = mine.get(cell.exercise, 0) + cell.most
    for notebook, found in worth.items():
        print(f"  {notebook}.ipynb  {', '.join(f'{label} {n:g}' for label, n in found.items())}")
    if due:
        print(f"Due: {due:%Y-%m-%d %H:%M} UTC")


def autograde(options: argparse.Namespace) -> None:
    """Grade what was handed in.

    Takes the answers from submitted/STUDENT/NAME, runs them in a sandbox, and writes
    points into nbgrader's gradebook. Can be stopped and run again at any time: what did
    not change is not judged again, and points and comments given by hand stay.
    """
    from tfviz_course import autograde as grading
    from tfviz_course import sandbox
    from tfviz_course.history import update
    from tfviz_course.report import changed, count, results, table

    limits = sandbox.Limits()
    if options.seconds:
        limits = limits.lasting(options.seconds)
    if options.memory:
        limits = replace(limits, memory=int(options.memory * 2**30))
    how = {name: getattr(options, name) for name in ("workers", "again", "judge_only")}
    how |= {"students": options.student, "progress": sys.stderr.isatty()}
    begin = time.monotonic()
    took = grading.autograde(options.course, options.name, limits=limits, **how)
    if options.judge_only:
        return
    found, new = update(options.course, results(options.course, options.name))
    # remarks and odd names come below, once; of the changes only the new ones
    _print(table(replace(found, strange=(), changes=()), remarks=False))
    judged = sum(seconds > 0 for seconds in took.values())
    known = f"{judged} judged now, {len(took) - judged} known from before"
    print(f"{count(len(took), 'submission')} graded in {time.monotonic() - begin:.0f} s; {known}.")
    if new:
        _print(changed(new, times=False))
    odd = {one.id: one.remarks for one in found.students if one.remarks and one.id in took}
    if odd:
        print("Remarks (students read in their feedback how their file was read):")
    for name, remarks in odd.items():
        for remark in remarks[:REMARKS]:
            print(f"  {name}: {remark}")
        if more := remarks[REMARKS:]:
            said = count(len(more), "more remark")
            print(f"  {name}: and {said}; tfviz-course report writes them all")
    if names := ", ".join(map(students.shown, found.strange)):
        place = options.course / "submitted"
        raise CourseError(f"not graded: {names}; {students.RULE}; rename the folder in {place}")


def feedback(options: argparse.Namespace) -> None:
    """Make a page for each student.

    Writes feedback/STUDENT/NAME: answers, points, what the tests said, your comments. Of
    hidden tests it shows only whether they passed.
    """
    from tfviz_course.assignment import api, failure
    from tfviz_course.history import update
    from tfviz_course.report import changed, count, results, waiting
    from tfviz_course.settings import read_course

    course, name = options.course, options.name
    read_course(course)
    there, _ = students.below(course / "autograded", name)
    if not there:
        how = f"run 'tfviz-course autograde {name}' first"
        raise CourseError(f"nothing of {name!r} is graded; {how}")
    wanted = options.student or there
    if strangers := [student for student in wanted if student not in there]:
        how = f"run 'tfviz-course autograde {name}' first"
        raise CourseError(f"not graded for {name!r}: {', '.join(strangers)}; {how}")
    handle = api(course)
    done = {student: handle.generate_feedback(name, student) for student in wanted}
    failed = {student: failure(result) for student, result in done.items() if not result["success"]}
    place = f"{course / 'feedback'}/STUDENT/{name}"
    print(f"Feedback for {count(len(wanted) - len(failed), 'student')}: {place}")
    found, new = update(course, results(course, name))
    if new:
        _print(changed(new, times=False))
    if todo := waiting(found):
        print(f"Not graded yet: {todo}. The pages say so; make them again afterwards.")
    if failed:
        raise CourseError(f"no feedback in {place}: {students.together(failed)}")


def report(options: argparse.Namespace) -> None:
    """Show the results of the class.

    Prints tables, and writes reports/NAME: report.html, one page with everything, the
    tables as CSV, and two plots. Tells whose points changed since they were last seen.
    """
    from tfviz_course import page
    from tfviz_course import report as reports
    from tfviz_course.history import update
    from tfviz_course.settings import read_course
    from tfviz_course.store import writing

    found, _ = update(options.course, reports.results(options.course, options.name))
    folder = options.course / "reports" / options.name
    if options.anonymous:
        found = reports.without_names(found, read_course(options.course).secret)
        folder /= "anonymous"
    _print(reports.table(found))
    with writing(folder):
        page.write(found, folder)
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    print(f"In {folder}: {', '.join(files)}")


def roster(options: argparse.Namespace) -> None:
    """Enter the students of a class into the gradebook.

    `students import FILE.csv` reads a table with a column id, and if you like first_name,
    last_name and email. If a line is wrong, nobody is entered.
    """
    from tfviz_course.report import count
    from tfviz_course.roster import import_students

    found = import_students(options.course, options.file)
    everybody = [*found.new, *found.known]
    print(f"{count(len(everybody), 'student')}: {len(found.new)} new, {len(found.known)} known")
    if found.unread:
        known = "id, first_name, last_name and email"
        print(f"Columns that are not read: {', '.join(found.unread)} (those that are: {known})")
    if found.absent:
        print(f"In the gradebook, and not in {options.file.name}: {students.few(found.absent)}")
    for said in students.look_alikes([*everybody, *found.absent]):
        print(f"Look: {said}.")


def extension(options: argparse.Namespace) -> None:
    """Give one student more time for an assignment.

    The time is counted from the date for all, and replaces an earlier extension; without days
    and hours that one ends. It is kept in extensions.csv, so it can be given before anything is
    handed in. What is graded already is to be graded again, so that the penalty follows.
    """
    from datetime import timedelta

    from tfviz_course.roster import extend

    name, who = options.name, options.who
    time = timedelta(days=options.days, hours=options.hours)
    done = extend(options.course, name, who, time)
    print(f"{who} has time for {name} until {done.due:%Y-%m-%d %H:%M} UTC")
    if done.graded:
        print(f"Next: tfviz-course autograde {name} --student {who}")


def export(options: argparse.Namespace) -> None:
    """Take results to other systems.

    --to canvas, --to moodle: the points of an assignment as a CSV file that the gradebook
    imports. With --columns FILE.csv, which you export from there, its rows and ids stay.
    --to gradescope: an assignment as an autograder of Gradescope, in which the same grader runs.
    --to anki: the five questions and the letters of a chapter, or of `all`, as cards.
    --to qti: the short numbers and the five questions of a chapter, or of `all`, as a package of
    QTI 2.1, the standard for tests.

    The file goes into the folder exports/. One for Gradescope holds solutions and the secret of
    the course: it is for instructors only.
    """
    from tfviz_course import gradebooks, gradescope
    from tfviz_course.report import count, results

    course, name, kind = options.course, options.what, options.to
    if kind not in gradebooks.KNOWN_BY and (options.columns or options.title):
        raise CourseError(f"--columns and --title are not for {kind}: leave them out")
    if kind in ("anki", "qti") and (course / "source" / name).is_dir():
        said = f"{name!r} is an assignment, and --to {kind} takes a chapter"
        raise CourseError(f"{said}, such as basics/attention, or all (see tfviz-course list)")
    if kind == "gradescope":
        file, words, rest = gradescope.pack(course, name)
        print(*gradescope.told(words, rest), f"In {file}", sep="\n")
        return
    if kind == "anki":
        from tfviz_course import anki

        file, questions, letters = anki.export(course, name)
        print(f"{count(questions, 'question')} and {count(letters, 'letter')} as cards.")
        print(f"In {file}")
        return
    if kind == "qti":
        from tfviz_course import qti

        print("Reading the lessons …", file=sys.stderr, flush=True)
        file, scored, others = qti.export(course, name)
        print(f"{count(scored, 'number')} and {count(others, 'question')} in words.")
        print(f"In {file}")
        return
    done = gradebooks.export(course, name, kind, options.columns, options.title)
    print(f"Points of {count(len(done.written), 'student')} for {kind.capitalize()}.")
    left = {
        "Left out, because answers wait for you": done.waiting,
        "Left out, because they are not graded yet": done.ungraded,
        "Left out, because nothing was handed in": done.missing,
        f"Have points, and no row in {options.columns}": done.absent,
        f"Have a row in {options.columns}, and are nobody here": done.strangers,
    }
    for said, names in left.items():
        if names:
            print(f"{said}: {', '.join(names)}")
    if any(one.minutes_late or one.penalty for one in results(course, name).students):
        print(
            "Penalties for being late are those of the last grading. After points by hand or an "
            f"extension: tfviz-course autograde {name}, then this again."
        )
    print(*done.notes, f"In {done.file}", sep="\n")


def check(options: argparse.Namespace) -> None:
    """Say whether submissions can be graded safely on this machine."""
    from tfviz_course import sandbox

    if why := sandbox.available():
        raise CourseError(why)
    print("The sandbox works: submissions can be graded on this machine.")
    if said := sandbox.unbound():
        print(said)


def _print(table: Any) -> None:
    from rich.console import Console

    Console().print(table)


def _lacks(package: str) -> str:
    """What to run where a package is missing that only teaching needs."""
    if (CLONE / "start.py").is_file():
        there = ".venv-dev/bin/tfviz-course"
        return f"this needs {package}: run `make env` in {CLONE}, and then {CLONE / there}"
    return f'this needs {package}: run pip install "PATH-OF-YOUR-CLONE/teaching"'


NO_PLACE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}


def _place(error: BaseException) -> str:
    """What to do where something cannot be read or written; empty for any other error."""
    from tfviz_course.assignment import FULL, NO_ROOM

    if FULL.search(str(error)):
        return NO_ROOM
    if not isinstance(error, OSError) or error.errno not in NO_PLACE:
        return ""
    what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{what}. Fix that, then run this again; finished work is kept"


def _points(text: str) -> tuple[str, float]:
    label, _, number = text.partition("=")
    try:
        return label, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write it as ex-label=3") from None


def _due(text: str) -> datetime:
    """The time in UTC, without a time zone, as nbgrader wants it."""
    try:
        due = datetime.fromisoformat(text)
    except ValueError:
        said = f'{text!r}: write it as "2026-12-01 18:00" (UTC)'
        raise argparse.ArgumentTypeError(said) from None
    return due if due.tzinfo is None else due.astimezone(UTC).replace(tzinfo=None)


def _above_0(text: str) -> float:
    if not (value := float(text)) > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _from_0(text: str) -> float:
    if not 0 <= (value := float(text)) < 10_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 10000")
    return value


def _count(text: str) -> int:
    return int(_above_0(str(int(text))))


FLAG: dict[str, Any] = {"action": "store_true"}
MANY: dict[str, Any] = {"action": "extend", "nargs": "+", "default": []}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "folder": {"type": Path, "help": "of the course; outside of the clone"},
    "--name": {"required": True, "help": 'what students read, such as "NLP 101"'},
    "--seed": {"type": int, "help": "draws students' own numbers; default: random"},
    "chapter": {"nargs": "?", "help": "such as basics/attention"},
    "name": {"help": "the assignment, such as hw1"},
    "what": {
        "metavar": "name",
        "help": "an assignment, such as hw1; for anki and qti a chapter, or all",
    },
    "--to": {
        "required": True,
        "choices": ["canvas", "moodle", "gradescope", "anki", "qti"],
        "help": "which system",
    },
    "--columns": {"type": Path, "help": "a CSV file that the gradebook has exported"},
    "--title": {"default": "", "help": "what the assignment is called there, if not as here"},
    "action": {"choices": ["import"], "help": "import: enter those of a file"},
    "file": {"type": Path, "help": "a CSV file with a column id"},
    "who": {"metavar": "student", "help": "the student's id"},
    "--days": {"type": _from_0, "default": 0.0, "help": "more than the others have"},
    "--hours": {"type": _from_0, "default": 0.0, "help": "and hours"},
    "items": {"nargs": "+", "help": "a chapter (all its exercises), or labels; see list"},
    "--course": {"type": Path, "default": Path(), "help": "its folder; default: this one"},
    "--points": MANY | {"type": _points, "help": "of exercises, such as ex-sharpness=3"},
    "--due": {"type": _due, "help": 'such as "2026-12-01 18:00", in UTC'},
    "--again": FLAG | {"help": "anew, also what is there already"},
    "--student": {"action": "append", "help": "only this one; may be given several times"},
    "--workers": {"type": _count, "help": "judged at a time; default: all cores"},
    "--seconds": {
        "type": _above_0,
        "help": "at most, for one notebook; its cells in proportion",
    },
    "--memory": {"type": _above_0, "help": "at most, for one notebook, in GiB"},
    "--judge-only": FLAG | {"help": "leave the gradebook as it is (formgrader does so)"},
    "--anonymous": FLAG | {"help": "for showing in class: no names, no remarks"},
}
JUDGING = "--again --workers --seconds --memory --judge-only"
COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], None], str]] = {
    "new": (new, "folder --name --seed"),
    "list": (show, "chapter"),
    "assignment": (assignment, "name items --course --points --due --again"),
    "autograde": (autograde, f"name --course --student {JUDGING}"),
    "feedback": (feedback, "name --course --student"),
    "report": (report, "name --course --anonymous"),
    "students": (roster, "action file --course"),
    "extension": (extension, "name who --days --hours --course"),
    "export": (export, "what --to --columns --title --course"),
    "check": (check, ""),
}


def parser() -> argparse.ArgumentParser:
    """The command line: a subcommand for each of `COMMANDS`."""
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser("tfviz-course", description=ABOUT, formatter_class=raw)
    parts = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (run, options) in COMMANDS.items():
        said = inspect.getdoc(run) or ""
        short = said[0].lower() + said.split(".\n")[0][1:]
        made = parts.add_parser(name, help=short, description=said, formatter_class=raw)
        made.set_defaults(run=run)
        for option in options.split():
            made.add_argument(option, **ARGUMENTS[option])
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0, 2 for what went wrong, 130 for Ctrl-C."""
    options = parser().parse_args(arguments)
    if "course" in options:
        options.course = options.course.resolve()
    try:
        with warnings.catch_warnings(action="ignore"):  # of packages about each other
            for student in getattr(options, "student", None) or ():
                students.check(student)
            options.run(options)
    except KeyboardInterrupt:
        print(
            "tfviz-course: stopped; finished work is kept, and a new run goes on", file=sys.stderr
        )
        return 130
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in NEEDED:
            raise  # a mistake of the course's own
        print(f"tfviz-course: {_lacks(package)}", file=sys.stderr)
        return 2
    except Exception as error:
        ours = type(error).__module__.startswith(("tfviz_course", "tfviz_lessons"))
        if not ours and (why := _place(error)):  # of the machine's, whatever was being done
            print(f"tfviz-course: {why}", file=sys.stderr)
            return 2
        if not ours and type(error) not in (FileNotFoundError, ValueError):
            raise  # a mistake of the course's own, which is reported with all of it
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = " … ".join([lines[0], lines[-1]] if len(lines) > 2 else lines)
        said = said or f"{type(error).__name__} without a reason"
        print(f"tfviz-course: {said}", file=sys.stderr)
        return 2
    return 0
