"""A class of honest and bad submissions is graded once; every kind gets what it must get.

The kinds are in `course/bad`. One run grades them all, with small limits, as an ordinary user: what
is root's only hides there. Then each test looks at one student's scores in nbgrader's gradebook, or
at what must not have happened around them. The second run is root's, where root runs the tests.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import psutil
import pytest
from course import classroom, ordinary
from course.bad import EXEMPLARS, EXERCISES, IN, KINDS, Around, HandIn, Kind, door, submit
from course.bad.kind import TOLD
from course.bad.values import CAUGHT
from course.pages import BORROWED, COVERED

import tfviz
import tfviz_lab

ROOT = Path(__file__).resolve().parents[3]
CLASS = KINDS if classroom.EVERYTHING else EXEMPLARS
ASSIGNMENT = "ps2"
EARLIER = "ps1"  # graded by hand long ago
ITEMS = list(EXERCISES.values())
PRIVATE = "this-is-only-for-the-one-who-grades"
SCRIPT = "SCRIPT-OF-A-SUBMISSION"

MOST_MEMORY = 12 << 30  # if all limits of the sandbox failed: what the tests themselves allow

GRADE = """
import json, sys
from pathlib import Path
from tfviz_course.autograde import autograde
from tfviz_course.sandbox import Limits

limits = Limits(seconds=60, cell_seconds=6, call_seconds=3, memory=1 << 30)
found = autograde(
    Path(sys.argv[1]), sys.argv[2], students=sys.argv[3:] or None, workers=2, limits=limits
)
print(json.dumps(found))
"""
FEEDBACK = "from tfviz_course.command import main; import sys; sys.exit(main(sys.argv[1:]))"

Scores = dict[str, dict[str, dict[str, Any]]]  # student -> exercise -> grade_id or "waits"


@dataclass
class Class:
    """The class after the run."""

    course: Path
    around: Around
    release: dict[str, Any]
    scores: Scores
    maximum: dict[str, dict[str, float]]  # exercise -> part (checks, hidden) -> points
    before: dict[str, str]  # hashes of files
    calls: list[str]  # what came in over the network
    said: str
    left: list[str]  # processes
    database: dict[str, list[Any]]  # rows of the earlier assignment before the run
    user: Sequence[str] = ()  # how a command begins that is an ordinary user's


# --- the class -----------------------------------------------------------------------------------


def prepare(course: Path) -> None:
    """A course with two assignments; the earlier one is graded."""
    from nbgrader.api import Gradebook

    from tfviz_course.assignment import create_assignment, create_course

    create_course(course, "A class", seed=7)
    create_assignment(course, ASSIGNMENT, ITEMS)
    with Gradebook(f"sqlite:///{course}/gradebook.db", "a-class") as book:
        book.add_assignment(EARLIER)
        book.add_notebook("old", EARLIER)
        book.add_grade_cell("old-1", "old", EARLIER, max_score=8, cell_type="code")
        for student in students():
            book.add_student(student, first_name="Ada", last_name="Nymous")
        for student in [*students()][:5]:
            book.add_submission(EARLIER, student)
            grade = book.find_grade("old-1", "old", EARLIER, student)
            grade.auto_score, grade.manual_score = 3, 2.5
        book.db.commit()


@contextlib.contextmanager
def listening() -> Iterator[tuple[int, str, list[str]]]:
    """Servers on loopback and on an abstract socket, and a list of who called."""
    calls: list[str] = []
    abstract = f"\0tfviz-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:
        local.bind(abstract)
        local.listen()
        for server in (tcp, local):
            server.settimeout(0.2)
        done = threading.Event()

        def answer(server: socket.socket) -> None:
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    line, _ = server.accept()
                    calls.append(server.family.name)
                    line.close()

        threads = [threading.Thread(target=answer, args=(server,)) for server in (tcp, local)]
        for thread in threads:
            thread.start()
        try:
            yield tcp.getsockname()[1], abstract, calls
        finally:
            done.set()
            for thread in threads:
                thread.join()


def hashes(folder: Path, pattern: str = "**/*") -> dict[str, str]:
    """Hash of every regular file below; links and the like by what they are."""
    found = {}
    for path in sorted(folder.glob(pattern)):
        if "__pycache__" in path.parts or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink():
            found[str(path)] = f"link to {os.readlink(path)}"
        elif path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[str(path)] = "special"
    return found


def surroundings(around: Around) -> dict[str, str]:
    """Everything that no submission may change."""
    import torch

    packages = Path(torch.__file__).parents[1]
    found = hashes(around.witness) | hashes(around.home)
    for name in ("source", "release", "submitted"):
        found |= hashes(around.course / name)
    for path in (around.course / "course.toml", around.course / "nbgrader_config.py"):
        found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    for package in (tfviz, tfviz_lab):
        found |= hashes(Path(str(package.__file__)).parent)
    found |= hashes(ROOT / "teaching/tfviz_course")
    found |= hashes(around.chapters)
    # the packages are too many to read: names, sizes and times
    for pattern in ("*", "torch/*", "torch/lib/*", "torch/nn/**/*.py", "nbgrader/**/*.py"):
        for path in packages.glob(pattern):
            if path.name != "__pycache__" and not path.is_dir():
                state = path.lstat()
                found[str(path)] = f"{state.st_size} {state.st_mtime_ns}"
    return found


def run(code: str, *words: str, around: Around, user: Sequence[str] = ()) -> str:
    """Run Python with these words, as this user; all it starts is bounded in memory."""
    home = around.home
    environment = {**os.environ, "HOME": str(home), "PRIVATE_TO_THE_GRADER": PRIVATE}
    environment |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "PYTHONWARNINGS": "default"}
    environment["MPLCONFIGDIR"] = str(home.parent / "fonts")
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    with subprocess.Popen(
        [*user, sys.executable, "-B", "-c", code, *words],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        guard = threading.Thread(target=watch, args=(process,), daemon=True)
        guard.start()
        said = process.stdout.read() if process.stdout else ""
        process.wait()
    guard.join()
    assert process.returncode == 0, f"grading itself failed ({process.returncode}):\n{said[-4000:]}"
    return said


def watch(process: subprocess.Popen[str]) -> None:
    """End the run if it takes what no sandbox should let it take."""
    while process.poll() is None:
        tree = family(process.pid)
        memory = 0
        for member in tree:
            with contextlib.suppress(psutil.Error):  # what fifty copies share counts once
                memory += member.memory_full_info().pss
        if memory > MOST_MEMORY:
            for member in tree:
                with contextlib.suppress(psutil.Error):
                    member.kill()
        time.sleep(0.5)


def family(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    return []


def recorded(course: Path) -> Scores:
    """What the gradebook says of every graded cell of the assignment."""
    from nbgrader.api import Gradebook

    found: Scores = {}
    with Gradebook(f"sqlite:///{course}/gradebook.db", "a-class") as book:
        for submission in book.assignment_submissions(ASSIGNMENT):
            cells = found.setdefault(submission.student.id, {})
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    exercise, part = grade.name.rsplit("-", 1)
                    if part == "yours":
                        score: Any = "waits" if grade.needs_manual_grade else grade.score
                    else:
                        score = "waits" if grade.needs_manual_grade else grade.auto_score
                    cells.setdefault(exercise, {})[part] = score
    return found


def rows(course: Path) -> dict[str, list[Any]]:
    """What the gradebook has beside the submissions of the assignment."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db", "a-class") as book:
        return {
            "students": sorted((s.id, s.first_name, s.last_name) for s in book.students),
            "assignments": sorted(a.name for a in book.assignments),
            "cells": sorted(
                (a.name, cell.name, cell.max_score)
                for a in book.assignments
                for notebook in a.notebooks
                for cell in notebook.grade_cells
            ),
            "earlier": sorted(
                (s.student.id, grade.name, grade.auto_score, grade.manual_score)
                for s in book.assignment_submissions(EARLIER)
                for notebook in s.notebooks
                for grade in notebook.grades
            ),
        }


def students() -> dict[str, list[Kind]]:
    """The kinds by the student who hands them in."""
    found: dict[str, list[Kind]] = {}
    for kind in CLASS:
        found.setdefault(kind.student, []).append(kind)
    return found


def hand_in(student: str, kinds: Sequence[Kind], class_: Class) -> None:
    folder = class_.course / "submitted" / student / ASSIGNMENT
    submit(kinds, HandIn(student, class_.around, class_.release, folder))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Class]:
    """The class, graded once."""
    from tfviz_course.sandbox import available

    if why := available():
        pytest.fail(f"no sandbox, so the bad submissions cannot be run: {why}")
    place = tmp_path_factory.mktemp("class")
    course, witness, home = (place / name for name in ("course", "witness", "home"))
    for folder in (witness / "kept", home):
        folder.mkdir(parents=True)
        (folder / "private.txt").write_text(PRIVATE)
    for folder in (place, witness, witness / "kept"):
        folder.chmod(0o777)
    shutil.copytree(matplotlib.get_cachedir(), place / "fonts")  # the list of them is there
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nbgrader's, of what it stands on
        prepare(course)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans of the class become children of this process
    ours = {process.pid for process in psutil.Process().children(recursive=True)}
    with listening() as (port, abstract, calls):
        around = Around(
            course=course,
            assignment=ASSIGNMENT,
            witness=witness,
            home=home,
            chapters=ROOT / "chapters",
            repository=ROOT,
            victim="honest_all_right",
            port=port,
            abstract=abstract,
        )
        release = {}
        for path in (course / "release" / ASSIGNMENT).glob("*.ipynb"):
            release[path.stem] = json.loads(path.read_text("utf-8"))
            for cell in release[path.stem]["cells"]:
                cell["source"] = "".join(cell["source"])
        class_ = Class(course, around, release, {}, {}, {}, calls, "", [], {})
        for student, kinds in students().items():
            hand_in(student, kinds, class_)
        class_.user = ordinary.prefix(place)
        class_.before = surroundings(around)
        class_.database = rows(course)
        class_.said = run(GRADE, str(course), ASSIGNMENT, around=around, user=class_.user)
    left = [
        process
        for process in psutil.Process().children(recursive=True)
        if ours.isdisjoint({process.pid, *(parent.pid for parent in process.parents())})
    ]
    class_.left = [f"{p.pid} {p.name()}" for p in left if p.status() != psutil.STATUS_ZOMBIE]
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
            process.wait(5)
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
    class_.scores = recorded(course)
    for notebook in release.values():
        for cell in notebook["cells"]:
            known = cell["metadata"]["nbgrader"]
            if known["grade"]:
                exercise, part = known["grade_id"].rsplit("-", 1)
                class_.maximum.setdefault(exercise, {})[part] = known["points"]
    yield class_


# --- what each kind gets -------------------------------------------------------------------------


def test_the_kinds_are_many_and_each_is_described() -> None:
    honest = [kind for kind in KINDS if kind.honest]
    assert len(honest) >= 10
    assert len(KINDS) - len(honest) >= 45
    assert (
        len({kind.name for kind in KINDS}) == len({kind.sentence for kind in KINDS}) == len(KINDS)
    )
    assert len({kind.student for kind in KINDS}) >= 60
    for kind in KINDS:
        assert re.fullmatch(r"[A-Z].*\.", kind.sentence), kind
        assert kind.expectation.keys() <= set(EXERCISES.values()), kind


def test_the_small_class_has_one_of_each_door() -> None:
    assert {door(kind) for kind in EXEMPLARS} == {door(kind) for kind in KINDS}
    whole = [kind for kind in KINDS if kind.student in {one.student for one in EXEMPLARS}]
    assert list(EXEMPLARS) == whole  # who shares a student stays together
    assert len({kind.student for kind in EXEMPLARS}) < 10


@pytest.mark.parametrize("kind", CLASS, ids=lambda kind: kind.name)
def test_kind_gets_what_it_must_get(kind: Kind, graded: Class) -> None:
    for exercise, gets in kind.expectation.items():
        assert graded.scores[kind.student][exercise] == points(exercise, gets, graded), (
            f"{kind.sentence} {exercise}\n{told(graded, kind)}"
        )


def points(exercise: str, gets: str, graded: Class) -> dict[str, Any]:
    """What the gradebook must say of the exercise's cells."""
    worth = graded.maximum[exercise]
    if gets == "waits":
        return dict.fromkeys(worth, "waits")
    paid = {"all": set(worth), "none": set()}.get(gets, {gets})
    return {part: most if part in paid else 0 for part, most in worth.items()}


def test_what_no_kind_touches_is_right(graded: Class) -> None:
    """Beside bad answers stand good ones of the same student; they keep their points."""
    seen = 0
    for student, kinds in students().items():
        touched = {exercise for kind in kinds for exercise in kind.expectation}
        for short in IN["attention"]:
            exercise, gets = EXERCISES[short], "waits" if short == "written" else "all"
            if exercise not in touched:
                seen += 1
                assert graded.scores[student][exercise] == points(exercise, gets, graded), student
    assert seen > (40 if classroom.EVERYTHING else 1)


def told(graded: Class, kind: Kind) -> str:
    """What the store has to say of a student, for the message of a failed test."""
    path = graded.course / ".tfviz" / "judged" / ASSIGNMENT / f"{kind.student}.json"
    return path.read_text("utf-8")[:6000] if path.exists() else "nothing in the store"


@pytest.mark.parametrize("kind", [k for k in CLASS if k.remark], ids=lambda kind: kind.name)
def test_the_instructor_is_told(kind: Kind, graded: Class) -> None:
    path = graded.course / ".tfviz" / "judged" / ASSIGNMENT / f"{kind.student}.json"
    entry = json.loads(path.read_text("utf-8"))
    remarks = json.dumps(collect(entry, "remarks"), ensure_ascii=False)
    assert kind.remark in remarks


def collect(entry: Any, key: str) -> list[Any]:
    """All values of `key`, however deep."""
    if isinstance(entry, list):
        return [value for part in entry for value in collect(part, key)]
    if not isinstance(entry, dict):
        return []
    inside = [value for part in entry.values() for value in collect(part, key)]
    return [*([entry[key]] if key in entry else []), *inside]


# --- what must not have happened -----------------------------------------------------------------


def test_nothing_around_has_changed(graded: Class) -> None:
    after = surroundings(graded.around)
    assert len(graded.before) > 500
    different = {
        path: (graded.before.get(path), after.get(path))
        for path in graded.before.keys() | after.keys()
        if graded.before.get(path) != after.get(path)
    }
    assert not different


def test_the_rest_of_the_gradebook_has_not_changed(graded: Class) -> None:
    after = rows(graded.course)
    assert len(after["earlier"]) == 5
    assert after == graded.database


def test_everybody_has_a_score_for_every_cell(graded: Class) -> None:
    parts = {exercise: set(worth) for exercise, worth in graded.maximum.items()}
    assert set(graded.scores) == set(students())
    for student, found in graded.scores.items():
        assert {exercise: set(cells) for exercise, cells in found.items()} == parts, student
        assert None not in [score for cells in found.values() for score in cells.values()], student


def test_no_process_of_the_class_is_left(graded: Class) -> None:
    assert graded.left == []


def test_nobody_came_over_the_network(graded: Class) -> None:
    assert graded.calls == []


def test_no_submission_got_hold_of_anything(graded: Class) -> None:
    """A word is printed by whoever reads what is not his; and the private texts are nowhere."""
    secret = re.search(r'secret = "(\w+)"', (graded.course / "course.toml").read_text())
    assert secret
    words = [word.encode() for word in (TOLD, PRIVATE, secret[1])]
    searched = 0
    for path in graded.course.glob("**/*"):
        if path.is_file() and not path.is_symlink() and path.name != "course.toml":
            data = path.read_bytes()
            searched += 1
            assert not [word for word in words if word in data], path
    assert searched > len(CLASS)
    assert TOLD not in graded.said


# --- feedback ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def feedback(graded: Class) -> dict[str, dict[str, str]]:
    """The pages that students get: student -> notebook -> HTML."""
    everybody = [f"--student={student}" for student in students()]
    words = ["feedback", ASSIGNMENT, "--course", str(graded.course)]
    make = partial(run, FEEDBACK, *words, around=graded.around, user=graded.user)
    with ThreadPoolExecutor() as two:  # nbgrader makes one page after the other
        graded.said += "".join(two.map(lambda half: make(*half), (everybody[::2], everybody[1::2])))
    return {
        student: {
            path.stem: path.read_text("utf-8")
            for path in (graded.course / "feedback" / student / ASSIGNMENT).glob("*.html")
        }
        for student in students()
    }


class Page(HTMLParser):
    """Everything in a page that a browser would act on, apart from what the template brings."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.acts: list[str] = []
        self.text: list[str] = []
        self.script = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.script = tag in ("script", "style")
        for name, value in attributes:
            value = "".join((value or "").split()).casefold()
            told = f"<{tag} {name}={value[:80]}>"
            if name.startswith("on") or name in ("srcdoc", "formaction"):
                self.acts.append(told)
            if name in ("href", "src", "data", "action") and re.match(
                r"(javascript|vbscript|data:(?!image/(png|jpeg)))", value
            ):
                self.acts.append(told)
        if tag in ("iframe", "object", "embed", "form", "base"):
            self.acts.append(f"<{tag}>")
        if tag == "meta" and "http-equiv" in dict(attributes):
            self.acts.append(f"<meta {attributes}>")

    def handle_endtag(self, tag: str) -> None:
        self.script = False

    def handle_data(self, data: str) -> None:
        if self.script and (SCRIPT in data or "SCRIPT-OF-A" in data or ".nbgrader-score" in data):
            self.acts.append(data)
        self.text.append(data)


def read(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page


def test_everybody_gets_feedback_on_every_notebook(
    feedback: dict[str, dict[str, str]], graded: Class
) -> None:
    assert {student: set(pages) for student, pages in feedback.items()} == {
        student: set(graded.release) for student in students()
    }


def test_feedback_holds_nothing_hidden(feedback: dict[str, dict[str, str]], graded: Class) -> None:
    secrets = hidden_lines(graded)
    assert len(secrets) > 10
    checked = 0
    for student, pages in feedback.items():
        for name, html in pages.items():
            text = "".join("".join(read(html).text).split())
            checked += len(text) > 1000
            assert CAUGHT not in text, (student, name)
            assert not [line for line in secrets if line in text], (student, name)
    assert checked == sum(map(len, feedback.values()))


def hidden_lines(graded: Class) -> list[str]:
    """Lines of the instructor's notebooks that no released one has, without spaces.

    Lines that a student's own right answer has too are no secret.
    """
    written = "".join(
        "".join("".join(cell["source"]).split())
        for kind in CLASS
        for path in (graded.course / "submitted" / kind.student / ASSIGNMENT).glob("*.ipynb")
        if kind.honest and path.is_file()
        for cell in json.loads(path.read_text("utf-8-sig"))["cells"]
    )
    released = "".join(
        "".join(cell["source"].split()) for nb in graded.release.values() for cell in nb["cells"]
    )
    lines = []
    for path in (graded.course / "source" / ASSIGNMENT).glob("*.ipynb"):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            for line in "".join(cell["source"]).splitlines():
                squeezed = "".join(line.split())
                known = squeezed in released or squeezed in written or line.startswith("###")
                if len(squeezed) > 15 and not known:
                    lines.append(squeezed)
    return lines


def test_feedback_runs_no_script_of_a_student(feedback: dict[str, dict[str, str]]) -> None:
    usual = set(read(feedback["honest_stub_only"]["attention"]).acts)
    for student, pages in feedback.items():
        for name, html in pages.items():
            assert not set(read(html).acts) - usual, (student, name)


def test_the_page_reader_sees_scripts() -> None:
    """The reader of the tests above finds each of the ways that the kinds try."""
    for text in (
        f"<script>document.title = '{SCRIPT}'</script>",
        '<img src=x onerror="x()">',
        "<svg onload=x()></svg>",
        "<iframe srcdoc=x></iframe>",
        '<a href="jav&#x09;ascript:x()">x</a>',
        "<style>.nbgrader-score { display: none }</style>",
        "<form action=/formgrader></form>",
        '<object data="data:image/svg+xml;base64,x"></object>',
    ):
        assert read(text).acts, text


SHOWN = [
    kind.student
    for kind in CLASS
    if kind.name.startswith("script_in") or kind.name == "hostile_exceptions"
]


@pytest.mark.parametrize("student", SHOWN)
def test_feedback_in_a_browser(
    student: str, feedback: dict[str, dict[str, str]], graded: Class, browser: Any
) -> None:
    """A real browser opens the page; every script of the kinds would change its title."""
    page = browser.new_page()
    page.route(re.compile("^https?:"), lambda route: route.abort())
    path = graded.course / "feedback" / student / ASSIGNMENT / "attention.html"
    page.goto(path.as_uri(), wait_until="load")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = !d.open })")
    assert page.title()
    assert SCRIPT not in page.title()
    page.close()


def test_nothing_in_an_answer_covers_the_feedback(
    feedback: dict[str, dict[str, str]], graded: Class, browser: Any
) -> None:
    page = browser.new_page()
    page.route(re.compile("^https?:"), lambda route: route.abort())
    path = graded.course / "feedback/covers_the_points" / ASSIGNMENT / "attention.html"
    page.goto(path.as_uri(), wait_until="load")
    assert page.locator(".panel-heading a").count() > 5
    assert page.evaluate(COVERED) == []
    assert page.evaluate(BORROWED) == []
    page.close()


# --- the second run ------------------------------------------------------------------------------


PAIRS = {
    "covers_the_points": "format_3",
    "honest_helper_functions": "kills_itself",
    "honest_windows_line_ends": "no_file",
    "leaves_by_sys_exit": "honest_newer_format",
    "invalid_json": "exits_in_the_function",
}
SECOND = {old: new for old, new in PAIRS.items() if {old, new} <= {kind.name for kind in CLASS}}


@pytest.fixture(scope="module")
def again(graded: Class, feedback: dict[str, dict[str, str]]) -> tuple[Scores, Scores]:
    """Scores before and after a run in which four students have handed in something else."""
    before = recorded(graded.course)
    for old, new in SECOND.items():
        folder = graded.course / "submitted" / student_of(old) / ASSIGNMENT
        for path in folder.iterdir():
            path.unlink()
        hand_in(student_of(old), students()[student_of(new)], graded)
    changed = [student_of(old) for old in SECOND]
    run(GRADE, str(graded.course), ASSIGNMENT, *changed, around=graded.around)
    return before, recorded(graded.course)


def student_of(name: str) -> str:
    return next(kind.student for kind in CLASS if kind.name == name)


@pytest.mark.parametrize("old", SECOND)
def test_second_run_keeps_no_stale_score(old: str, again: tuple[Scores, Scores]) -> None:
    before, after = again
    assert after[student_of(old)] == before[student_of(SECOND[old])] != before[student_of(old)]


def test_second_run_changes_nobody_else(again: tuple[Scores, Scores]) -> None:
    before, after = again
    others = set(before) - set(map(student_of, SECOND))
    assert {name: after[name] for name in others} == {name: before[name] for name in others}
