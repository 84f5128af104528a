"""Assignments made of lessons: their cells, what students get of them, and that they work."""

import copy
import json
import re
import stat
import subprocess
import warnings
from functools import cache
from pathlib import Path

import nbformat
import pytest
import torch
from course import assignment_runner
from course.classroom import EVERYTHING
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.utils import compute_checksum

from tfviz_course import CourseError, assignment
from tfviz_course.assignment import create_assignment, create_course, find_tools, source_notebooks
from tfviz_course.settings import Course, read_course
from tfviz_lessons import clone as lessons
from tfviz_lessons.assignment import checksum, gap
from tfviz_lessons.assignment import release as release_notebook
from tfviz_lessons.variants import apart

ROOT = Path(__file__).resolve().parents[3]
# one exemplar of a chapter has all kinds of exercises: numbers of one's own, words, an explorer
CHAPTERS = list(lessons.chapters()) if EVERYTHING else ["basics/attention"]
EXERCISES = [(c, e.label) for c in CHAPTERS for e in lessons.read(c).exercises]


@cache
def released(chapter):
    return release_notebook(whole(chapter))


@cache
def whole(chapter):
    """The source notebook with all exercises of a chapter."""
    (made,) = source_notebooks([chapter], name="all", course="A course", seed=5).values()
    return made


def cells(notebook):
    return {cell.id: cell for cell in notebook.cells}


# --- the instructor's form -----------------------------------------------------------------------

GRADED = {"checks", "hidden"}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_cell_is_one_that_nbgrader_knows(chapter):
    notebook = whole(chapter)
    nbformat.validate(notebook)
    MetadataValidator().validate_nb(notebook)
    for cell in notebook.cells:
        role, known = cell.metadata.tfviz.role, cell.metadata.nbgrader
        assert cell.id == known.grade_id and known.schema_version == 3
        assert known.cell_type == cell.cell_type and known.task is False
        answer = role in ("yours", "student")
        written = role == "yours" and cell.cell_type == "markdown"
        assert known.solution is answer and known.locked is not answer
        assert known.grade is (role in GRADED or written)
        assert ("points" in known) is known.grade


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_exercise_has_its_cells_in_order(chapter):
    found: dict[str, list] = {}
    for cell in whole(chapter).cells:
        if "exercise" in cell.metadata.tfviz:
            found.setdefault(cell.metadata.tfviz.exercise, []).append(cell)
    lesson = lessons.read(chapter)
    assert list(found) == [task.label for task in lesson.tasks]
    for exercise in lesson.exercises:
        roles = ["prose", "numbers", "yours", "checks", "hidden"]
        roles = [r for r in roles if r != "numbers" or exercise.vary]
        roles = [r for r in roles if r != "hidden" or exercise.hidden_tests]
        mine = found[exercise.label]
        assert [cell.metadata.tfviz.role for cell in mine] == roles
        assert mine[0].id == exercise.label
        assert [cell.id for cell in mine[1:]] == [f"{exercise.label}-{r}" for r in roles[1:]]
        keep = f"# exercise: {exercise.label}  (keep this line)\n"
        assert cells(whole(chapter))[f"{exercise.label}-yours"].source.startswith(keep)
    for written in lesson.written:
        assert [cell.metadata.tfviz.role for cell in found[written.label]] == ["prose", "yours"]


def test_prose_has_the_numbers_of_the_book_and_nothing_raw(sources):
    text = cells(sources["attention"])["ex-attention-loops"].source
    assert re.match(r"\*\*Exercise 1\.\d\*\* · 6 points\n\n\*\*Your own attention\.\*\*", text)
    assert re.search(r"which computes \(1\.\d+\) for", text)
    assert "<details>\n<summary>Hint</summary>" in text
    for chapter in CHAPTERS:
        for cell in whole(chapter).cells:
            if cell.cell_type == "markdown":
                assert not re.search(r"\{[a-z:]+\}`|^:::|^```\{|\\html", cell.source, re.M), cell.id


def test_the_first_cell_says_what_is_read(sources):
    about = sources["factorized"].cells[0].source
    assert "Assignment *week1* of A course" in about
    assert "Only what stands in these cells is read" in about
    assert "* First write your student id between the quotes" in about
    assert "First write" not in sources["attention"].cells[0].source


def test_the_first_cell_says_where_the_equations_are():
    line = r"^\* Numbers in brackets such as \(1\.3\) are equations of (\[.+\]\(http.+\)|\*.+\*)\.$"
    for label, refers in (("ex-attention-loops", True), ("ex-one-row", True), ("ex-shifts", False)):
        (made,) = source_notebooks([label], name="a", course="c", seed=1).values()
        about, text = made.cells[0].source, cells(made)[label].source
        assert bool(re.search(line, about, re.M)) is refers
        assert bool(re.search(r"\(\d+\.\d+\)", text)) is refers


def test_numbers_of_their_own_need_the_student(sources):
    notebook = cells(sources["factorized"])
    assert notebook["student"].source == (
        "# exercise: student  (keep this line)\n"
        'STUDENT = ""  # your student id; on a JupyterHub leave it empty'
    )
    assert notebook["ex-two-hops-numbers"].source.endswith(
        'side = numbers(STUDENT, 20261121, "ex-two-hops", side=[8, 6, 7, 9, 10, 11, 12])'
    )
    assert "student" not in cells(sources["attention"])
    assert "side = 8" not in notebook["ex-two-hops-yours"].source


def test_a_written_answer_has_model_and_scheme_for_the_instructor_only():
    (made,) = source_notebooks(["ex-repair"], name="a", course="c", seed=1).values()
    answer = cells(made)["ex-repair-yours"]
    assert answer.metadata.nbgrader.points == 4
    assert "**Mark scheme**" in answer.source and "* 2 points: shows that" in answer.source
    assert [cell.metadata.tfviz.role for cell in made.cells] == [
        *("about", "install", "prose", "yours")
    ]
    released = cells(release_notebook(made))["ex-repair-yours"]
    assert released.source == "<!-- exercise: ex-repair  (keep this line) -->\n\n*Your answer.*"


def test_an_explorer_is_answered_by_pasting_its_state(sources):
    answer = cells(release_notebook(sources["factorized"]))["ex-two-hops-yours"].source
    assert "press “copy Python”, paste" in answer
    assert "SOLUTION" not in answer and "raise" not in answer and answer.endswith("\nlab")


def test_a_setup_is_a_small_part_of_the_lesson(sources):
    for chapter in CHAPTERS:
        lesson = lessons.read(chapter)
        code: list = [b for b in lesson.blocks if getattr(b, "kind", "") == "code"]
        every = sum(b.source.count("\n") + 1 for b in code)
        setup = [c for c in whole(chapter).cells if c.metadata.tfviz.role == "setup"]
        assert 0 < sum(c.source.count("\n") + 1 for c in setup) < every / 3
        assert not re.search(
            r"^(plots\.|print\(|assert )", "\n".join(c.source for c in setup), re.M
        )
    alone = cells(sources["attention"])
    assert "W_q" not in "".join(c.source for i, c in alone.items() if i == "setup-1")


@pytest.mark.parametrize(
    ("source", "silent"),
    [
        ("import torch\ntorch.manual_seed(0)", "import torch\ntorch.manual_seed(0);"),
        ("f(\n    'é',  # a\n    2,\n)  # b", "f(\n    'é',  # a\n    2,\n);  # b"),
        ("f('é')  # b", "f('é');  # b"),
        ("f() ;", None),
        ("f()\nx = g()", None),
        ("def f():\n    g()", None),
        ("# nothing", None),
    ],
)
def test_a_call_at_the_end_of_a_cell_displays_nothing(source, silent):
    lessons.home()
    from tfviz_lessons.slice import quiet

    assert quiet(source) == (source if silent is None else silent)


def test_no_setup_ends_in_a_value():
    ends = [
        cell.source.split("\n")[-1]
        for chapter in CHAPTERS
        for cell in whole(chapter).cells
        if cell.metadata.tfviz.role == "setup"
    ]
    assert "torch.set_printoptions(precision=3, sci_mode=False);" in ends  # of the exemplar
    assert "torch.manual_seed(0);" in ends or not EVERYTHING
    assert not [line for line in ends if re.match(r"[\w.]+\(.*\)( *#.*)?$", line)]


def test_exercises_keep_the_order_of_the_lesson_whatever_is_asked():
    one = source_notebooks(["ex-two-hops", "ex-shifts"], name="a", course="c", seed=1)
    other = source_notebooks(["ex-shifts", "ex-two-hops"], name="a", course="c", seed=1)
    assert one == other
    assert list(one) == ["factorized"]


# --- points --------------------------------------------------------------------------------------


def worth(notebook, label):
    graded = [c for c in notebook.cells if c.metadata.tfviz.get("exercise") == label]
    return [c.metadata.nbgrader.points for c in graded if c.metadata.nbgrader.grade]


def test_points_are_those_of_the_lesson():
    for chapter in CHAPTERS:
        lesson = lessons.read(chapter)
        for exercise in lesson.exercises:
            expected = [points for points in exercise.points if points]
            assert worth(whole(chapter), exercise.label) == expected
        for written in lesson.written:
            assert worth(whole(chapter), written.label) == [written.points]


def test_points_can_be_overridden_and_keep_their_proportion():
    items, points = ["ex-one-row", "ex-repair"], {"ex-one-row": 12, "ex-repair": 2}
    (made,) = source_notebooks(items, name="a", course="c", seed=1, points=points).values()
    assert worth(made, "ex-one-row") == [8, 4]
    assert worth(made, "ex-repair") == [2]
    scheme = cells(made)["ex-repair-yours"].source
    assert "* 1 point: shows" in scheme and "* 0.5 points: names" in scheme
    assert "· 12 points" in cells(made)["ex-one-row"].source
    (made,) = source_notebooks(
        ["ex-one-row"], name="a", course="c", seed=1, points={"ex-one-row": 1}
    ).values()
    assert sum(worth(made, "ex-one-row")) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (
            {"ex-shifts": 2},
            "points for 'ex-shifts', which is not in the assignment; choose from ex-one",
        ),
        ({"ex-one-row": 0}, "points for 'ex-one-row' = 0; give a number above 0"),
        ({"ex-one-row": "2"}, "points for 'ex-one-row' = '2'; give a number above 0"),
        ({"ex-one-row": float("nan")}, "give a number above 0"),
        ({"ex-one-row": float("inf")}, "give a number above 0"),
    ],
)
def test_points_that_cannot_be_are_refused(points, message):
    with pytest.raises(CourseError, match=re.escape(message)):
        source_notebooks(["ex-one-row"], name="a", course="c", seed=1, points=points)


# --- what is chosen ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["ex-sharpnes"], "no chapter or exercise is called 'ex-sharpnes'; did you mean ex-sharp"),
        (["attention"], "called 'attention'; did you mean basics/attention"),
        (["sparse/factorised"], "did you mean sparse/factorized"),
        (["zzzzqqqq"], "choose from adaptive/depth, adaptive/span"),
        ([], "no exercises are chosen"),
        ("ex-shifts", "items = 'ex-shifts' is one word; give a list, such as ['ex-shifts']"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(items, message):
    with pytest.raises(lessons.LessonsError, match=re.escape(message)):
        source_notebooks(items, name="a", course="c", seed=1)


def test_a_chapter_means_all_its_exercises():
    chosen = lessons.choose(["ex-shifts", "basics/attention"])
    assert chosen["sparse/factorized"] == ["ex-shifts"]
    assert chosen["basics/attention"] == [t.label for t in lessons.read("basics/attention").tasks]


def test_outside_of_a_clone_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(lessons, "HOME", tmp_path)
    with pytest.raises(lessons.LessonsError, match="assignments are made in a clone of the course"):
        source_notebooks(["ex-shifts"], name="a", course="c", seed=1)


def test_a_chapter_that_is_not_in_the_book_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(lessons, "read_book", lambda: tmp_path)
    with pytest.raises(
        lessons.LessonsError, match=r"'basics/attention' is not in the book; add it to _toc"
    ):
        lessons.told("basics/attention")


def test_the_book_is_read_again_only_when_something_has_changed(monkeypatch, tmp_path):
    calls = []

    def run(command, **_):
        calls.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    for folder in ("chapters", "tfviz_lessons"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("_config.yml", "_toc.yml", "chapters/a.md", "tfviz_lessons/lesson.py"):
        (tmp_path / file).write_text("one")
    monkeypatch.setattr(lessons, "HOME", tmp_path)
    monkeypatch.setattr(subprocess, "run", run)
    assert lessons.read_book() == tmp_path / "_build/course"
    lessons.read_book()
    assert len(calls) == 1
    (tmp_path / "chapters/a.md").write_text("two")
    lessons.read_book()
    assert len(calls) == 2


def test_a_clone_of_somebody_else_is_read_into_the_users_cache(monkeypatch, tmp_path):
    clone, cache = tmp_path / "clone", tmp_path / "cache"
    (clone / "_build").mkdir(parents=True)
    (clone / "_build/course").write_text("no folder can be made here")  # root may write anywhere
    done = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(subprocess, "run", lambda command, **_: done)
    monkeypatch.setattr(lessons, "_digest", lambda root: "a state")
    monkeypatch.setattr(lessons, "home", lambda: clone)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    assert lessons.read_book() == cache / "tfviz/course"
    (cache / "tfviz/course/.read").write_text("an older state")
    assert lessons.read_book() == cache / "tfviz/course"
    (clone / "_build/course").unlink()
    (clone / "_build/course").mkdir()
    (clone / "_build/course/.read").write_text("a state")  # whoever installed it has read the book
    assert lessons.read_book() == clone / "_build/course"
    (clone / "_build/course/.read").unlink()
    (clone / "_build/course").rmdir()
    (clone / "_build/course").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(clone / "_build/course/none"))
    with pytest.raises(lessons.LessonsError, match="set XDG_CACHE_HOME to a folder that is yours"):
        lessons.read_book()


def test_a_book_that_cannot_be_read_says_why(monkeypatch, tmp_path):
    def run(command, **_):
        return subprocess.CompletedProcess(command, 2, "", "chapters/a.md:3: it is broken")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(lessons, "_digest", lambda root: "another state")
    monkeypatch.setattr(lessons, "home", lambda: tmp_path)
    with pytest.raises(
        lessons.LessonsError, match=r"the book cannot be read:\nchapters/a\.md:3: it is bro"
    ):
        lessons.read_book()


# --- what students get ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "released"),
    [
        (
            "# exercise: ex-a  (keep this line)\ndef f():\n    ### BEGIN SOLUTION\n    return 1\n"
            "    ### END SOLUTION",
            "# exercise: ex-a  (keep this line)\ndef f():\n    # your code here\n"
            "    raise NotImplementedError",
        ),
        (
            "# exercise: ex-a  (keep this line)\nx = 0\n### BEGIN SOLUTION\nx = 1\n"
            "### END SOLUTION",
            "# exercise: ex-a  (keep this line)\nx = 0\n# your code here",
        ),
        ("# exercise: student  (keep this line)\nSTUDENT = 1", None),
        (
            "<!-- exercise: ex-a  (keep this line) -->\n\n### BEGIN SOLUTION\nText.\n\n"
            "* 1 point: x\n### END SOLUTION",
            "<!-- exercise: ex-a  (keep this line) -->\n\n*Your answer.*",
        ),
    ],
)
def test_a_gap_stands_for_each_solution(source, released):
    assert gap(source) == (source if released is None else released)


def test_the_release_is_what_nbgrader_makes(tmp_path):
    folder = create_course(tmp_path / "all", "A course", seed=5)
    release = create_assignment(folder, "all", CHAPTERS)
    assert sorted(path.stem for path in release.iterdir()) == sorted(
        chapter.split("/")[-1] for chapter in CHAPTERS
    )
    for chapter in CHAPTERS:
        name = chapter.split("/")[-1]
        theirs = nbformat.read(release / f"{name}.ipynb", as_version=4)
        assert theirs == released(chapter)
        source = nbformat.read(folder / f"source/all/{name}.ipynb", as_version=4)
        assert source == whole(chapter)


def test_making_a_release_changes_no_source():
    before = copy.deepcopy(whole("basics/attention"))
    release_notebook(whole("basics/attention"))
    assert whole("basics/attention") == before


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_students_can_change_their_answers_and_nothing_else(chapter):
    for cell in released(chapter).cells:
        answer = cell.metadata.tfviz.role in ("yours", "student")
        assert cell.metadata.deletable is False
        assert cell.metadata.get("editable", True) is answer
        assert len(cell.metadata.nbgrader.checksum) == 32


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_checksum_of_a_cell_is_that_of_nbgrader(chapter):
    """The book is built without nbgrader, and nbgrader finds by it what was changed."""
    for cell in [*whole(chapter).cells, *released(chapter).cells]:
        assert checksum(cell) == compute_checksum(cell)


@pytest.mark.parametrize("known", [{}, {"locked": True}, {"grade": True, "points": 2}])
@pytest.mark.parametrize("solution", [False, True])
@pytest.mark.parametrize("source", ["", "x = 1\n", "naïve “𝐀”\r\n"])
def test_every_kind_of_cell_has_the_checksum_of_nbgrader(known, solution, source):
    for cell in (new_code_cell(source), new_markdown_cell(source)):
        cell.metadata["nbgrader"] = {"grade_id": "é-1", "solution": solution, **known}
        assert checksum(cell) == compute_checksum(cell)


# --- hidden means hidden -------------------------------------------------------------------------


def marked(source):
    """(lines inside of marks, lines outside)."""
    inside, out, hidden = list[str](), list[str](), False
    for line in source.split("\n"):
        if line.strip().startswith("### "):
            hidden = "BEGIN" in line
        else:
            (inside if hidden else out).append(line.strip())
    return inside, out


def strings(value):
    """Every text in a notebook: sources, metadata, outputs."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)
    elif isinstance(value, str):
        yield value


@cache
def secrets_of(chapter):
    """Lines that stand only inside of marks, and what lessons say of wrong answers."""
    inside, outside = set(), []
    for cell in whole(chapter).cells:
        hidden, shown = marked(cell.source)
        inside |= set(hidden)
        outside += shown
    lesson = lessons.read(chapter)
    for exercise in lesson.exercises:
        for wrong in exercise.wrong:
            inside.add(wrong.why)
            inside |= {line.strip() for line in wrong.source.split("\n")}
    for written in lesson.written:
        inside |= {what for _, what in written.rubric}
        inside |= {line.strip() for line in written.model.source.split("\n")}
    shown = "\n".join(outside)
    return {line for line in inside if line not in shown}


def leaked(chapter, notebook):
    text = "\n".join(strings(json.loads(nbformat.writes(notebook))))
    return {secret for secret in secrets_of(chapter) if secret in text}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_nothing_hidden_is_in_a_release(chapter):
    assert len(secrets_of(chapter)) > 40
    assert not leaked(chapter, released(chapter))
    assert "BEGIN" not in nbformat.writes(released(chapter))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_nothing_hidden_is_in_the_notebook_of_the_site(chapter):
    path = lessons.read_book() / f"site/assignments/chapters/{chapter}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert not leaked(chapter, notebook)
    assert [c.id for c in notebook.cells] == [c.id for c in whole(chapter).cells]


def test_a_leak_would_be_found():
    chapter = CHAPTERS[0]
    made = released(chapter)
    secret = next(line for line in sorted(secrets_of(chapter)) if len(line) > 20)
    for place in ("source", "metadata", "outputs"):
        notebook = copy.deepcopy(made)
        cell = next(c for c in notebook.cells if c.cell_type == "code")
        if place == "source":
            cell.source += f"\n    {secret}"
        elif place == "metadata":
            cell.metadata["note"] = {"deep": [secret]}
        else:
            cell.outputs = [nbformat.v4.new_output("stream", text=f"x\n{secret}\n")]
        assert secret in leaked(chapter, notebook)


# --- every exercise works alone ------------------------------------------------------------------


@cache
def alone(chapter):
    """In a copy of this process, which has read the lessons and imported what they want."""
    torch.optim.Adam([torch.zeros(1)])  # the first optimiser imports a thousand modules
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        return apart(lambda: assignment_runner.tries(chapter))


@pytest.mark.parametrize(("chapter", "label"), EXERCISES)
def test_an_exercise_works_alone_and_through_the_judge(chapter, label):
    tries = alone(chapter)[label]
    (exercise,) = (e for e in lessons.read(chapter).exercises if e.label == label)
    kinds = {"checks", "hidden"} if exercise.hidden_tests else {"checks"}
    assert tries["alone"] == tries["judged"] == dict.fromkeys(kinds, "")
    assert set(tries["stub"]) == kinds
    for kind, message in tries["stub"].items():
        assert message.startswith(("NotImplementedError", "CheckFailed")), (kind, message)


@pytest.mark.parametrize(("chapter", "label"), EXERCISES)
def test_functions_that_do_nothing_fail_the_hidden_tests(chapter, label):
    lazy = alone(chapter)[label]["lazy"]
    assert not [answer for answer, message in lazy.items() if not message]


def test_lazy_answers_are_tried_where_they_once_passed():
    mended = {
        "sparse/routing": "ex-follow",
        "longer_context/external_memory": "ex-choose-share",
        "position/rotary": "ex-rotary-train",
    }
    for chapter, label in mended.items():
        assert set(alone(chapter)[label]["lazy"]) == set(assignment_runner.LAZY)


# --- the course folder ---------------------------------------------------------------------------


def test_a_course_keeps_its_secret(course):
    assert stat.S_IMODE((course / "course.toml").stat().st_mode) == 0o600
    assert read_course(course) == Course("A course", 20261121, "5eed" * 16)
    config = (course / "nbgrader_config.py").read_text("utf8")
    assert "tfviz_course.plugin" in config and "5eed" not in config
    for path in (course / "release").rglob("*.ipynb"):
        assert "5eed" not in path.read_text("utf8")


def test_two_courses_have_two_secrets(tmp_path):
    one, two = (read_course(create_course(tmp_path / name, 'Say "hi"')) for name in "ab")
    assert one.secret != two.secret and len(one.secret) == 64
    assert one.name == 'Say "hi"'


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "name = ''; give the course a name on one line"),
        ("a\nb", "give the course a name on one line"),
        ("!", "has no letter a to z and no digit; add one"),
    ],
)
def test_a_course_that_cannot_be_is_refused(tmp_path, name, message):
    with pytest.raises(CourseError, match=re.escape(message)):
        create_course(tmp_path / "new", name)
    assert not (tmp_path / "new").exists()


def test_a_course_is_not_overwritten(course):
    with pytest.raises(CourseError, match=r"has a course\.toml already; choose another folder"):
        create_course(course, "Another")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not a course: it has no course.toml. Make one with `tfviz-course new FOLDER`"),
        ("name = 3\nseed = 1\nsecret = ''", "name must be a text and seed a whole number"),
        ("name = 'a'\nseed = '1'\nsecret = ''", "name must be a text and seed a whole number"),
        ("name = 'a'\nseed = 1\nsecret = 'b'", "secret must be a text of 64 hexadecimal digits"),
        ("name = 'a'\nseed = 1", "secret must be a text of 64 hexadecimal digits"),
        ("name =", "cannot be read: TOMLDecodeError"),
    ],
)
def test_a_folder_that_is_no_course_is_named(tmp_path, text, message):
    if text is not None:
        (tmp_path / "course.toml").write_text(text)
    with pytest.raises(CourseError, match=re.escape(message)):
        read_course(tmp_path)


def test_the_gradebook_knows_points_and_hidden_tests(course, sources):
    find_tools()
    with Gradebook(f"sqlite:///{course}/gradebook.db", "a-course") as gradebook:
        found = gradebook.find_assignment("week1")
        assert {notebook.name for notebook in found.notebooks} == set(sources)
        assert found.max_score == sum(
            sum(worth(made, label))
            for made in sources.values()
            for label in {c.metadata.tfviz.get("exercise") for c in made.cells}
        )
        hidden = gradebook.find_source_cell("ex-sharpness-hidden", "attention", "week1")
        assert "manual_seed(seed)" in hidden.source


def test_an_assignment_is_made_again_only_when_asked(course):
    with pytest.raises(CourseError, match="already exists; give --again to replace it"):
        create_assignment(course, "week1", ["ex-shifts"])
    release = create_assignment(course, "week1", ["ex-shifts"], again=True)
    assert [path.name for path in release.iterdir()] == ["factorized.ipynb"]
    assert sorted(path.name for path in (course / "source").iterdir()) == ["week1"]


def test_what_goes_wrong_leaves_the_old_assignment(course, monkeypatch):
    def fail(course, name, due):
        raise CourseError("no power")

    before = {p: p.read_bytes() for p in course.rglob("*.ipynb")}
    monkeypatch.setattr(assignment, "_generate", fail)
    with pytest.raises(CourseError, match="no power"):
        create_assignment(course, "week1", ["ex-shifts"], again=True)
    with pytest.raises(CourseError, match="no power"):
        create_assignment(course, "week2", ["ex-shifts"])
    assert {p: p.read_bytes() for p in course.rglob("*.ipynb")} == before
    assert not list((course / "source").glob("*week2*")) + list((course / "release").glob(".*"))


@pytest.mark.parametrize("name", ["", "week 1", "../week1", "wéek/1", ".week1", "-x"])
def test_a_name_that_is_no_folder_is_refused(course, name):
    with pytest.raises(CourseError, match="an assignment's name begins with a letter or digit"):
        create_assignment(course, name, ["ex-shifts"])


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # nbgrader's, from add_submission
def test_nbgrader_refuses_to_drop_a_notebook_with_submissions(course):
    find_tools()
    with Gradebook(f"sqlite:///{course}/gradebook.db", "a-course") as gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission("week1", "ada")
    before = {p: p.read_bytes() for p in course.rglob("*.ipynb")}
    with pytest.raises(CourseError, match="because there are submissions associated with it"):
        create_assignment(course, "week1", ["ex-shifts"], again=True)
    assert {p: p.read_bytes() for p in course.rglob("*.ipynb")} == before


def test_only_the_instructor_reads_solutions_and_grades(course):
    for name, mode in (("", 0o700), ("source", 0o700), ("gradebook.db", 0o600)):
        assert stat.S_IMODE((course / name).stat().st_mode) == mode, name
