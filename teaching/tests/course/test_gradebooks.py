"""Points for the gradebooks of Canvas and Moodle: right cells, kept rows, and clear refusals."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
from course import classroom
from course.classroom import NAME

from tfviz_course import CourseError, assignment
from tfviz_course.command import main
from tfviz_course.gradebooks import Exported, export

FORMULA = '=HYPERLINK("http://x";"y")'

pytestmark = pytest.mark.filterwarnings("ignore")  # of SQLAlchemy, about how nbgrader uses it


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class with points: ada 6 of 8, bob 0 and late, cleo waits, dan is not graded, eve is
    missing. Not to be changed."""
    made = classroom.base(tmp_path_factory.getbasetemp())
    course = Path(shutil.copytree(made, tmp_path_factory.mktemp("marked") / "course"))
    with assignment.api(course).gradebook as book:
        book.add_student("ada", first_name="Ada", last_name="Lovelace", email="ada@uni.example")
        book.add_student("bob", first_name=FORMULA)
        for who in ("cleo", "dan", "eve", "48213"):
            book.add_student(who)
        for who in ("ada", "bob", "cleo", "48213"):
            book.add_submission(NAME, who)
            for notebook in book.find_submission(NAME, who).notebooks:
                for grade in notebook.grades:
                    words = grade.cell.name == "ex-repair-yours"
                    grade.auto_score = grade.cell.max_score if who == "ada" and not words else 0
                    grade.manual_score = 2 if who == "ada" and words else None
                    grade.needs_manual_grade = who == "cleo" and words
        book.find_submission(NAME, "bob").late_submission_penalty = 0
        book.db.commit()
    (course / "submitted/dan" / NAME).mkdir(parents=True)
    return course


@pytest.fixture
def course(marked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(marked, tmp_path / "course"))


def total(course: Path) -> tuple[float, float]:
    """What ada has, and what all is worth."""
    from tfviz_course.report import results

    found = results(course, NAME)
    ada = next(one for one in found.students if one.id == "ada")
    return ada.total, sum(found.exercises.values())


def rows(file: Path, separator: str = ",") -> list[list[str]]:
    text = file.read_bytes().decode("utf-8-sig")
    return list(csv.reader(text.splitlines(), delimiter=separator))


def test_the_class_of_these_tests(course: Path) -> None:
    assert total(course) == (6.0, 8.0)


# --- files of our own ----------------------------------------------------------------------------


def test_a_file_for_canvas(course: Path) -> None:
    done = export(course, NAME, "canvas", title="Problem set 1")
    assert done.file == course / "exports" / f"{NAME}-canvas.csv"
    assert rows(done.file) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Problem set 1"],
        ["    Points Possible", "", "", "", "", "8"],
        ["48213", "", "", "48213", "", "0"],
        ["Ada Lovelace", "", "", "ada", "", "6"],
        [f"'{FORMULA}", "", "", "bob", "", "0"],
    ]
    assert done.written == ["48213", "ada", "bob"]
    assert (done.waiting, done.ungraded, done.missing) == (["cleo"], ["dan"], ["eve"])


def test_a_file_for_moodle(course: Path) -> None:
    head, *body = rows(export(course, NAME, "moodle").file)
    assert head == ["ID number", "Email address", NAME, f"{NAME} (feedback)"]
    said = "sharpness 2 of 2; repair 2 of 4; best-stride 2 of 2"
    assert ["ada", "ada@uni.example", "6", said] in body
    assert [row[0] for row in body] == ["48213", "ada", "bob"]


def test_the_gradebook_stays_as_it_was(course: Path) -> None:
    before = (course / "gradebook.db").read_bytes()
    export(course, NAME, "canvas")
    export(course, NAME, "moodle")
    assert (course / "gradebook.db").read_bytes() == before


# --- files that came from a gradebook ------------------------------------------------------------

CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,hw0 (11),hw1 (12),hw1 Final Score
,,,,,Manual Posting,,
    Points Possible,,,,,5,8,(read only)
"Lovelace, Ada",901,s1,Ada@uni.example,A and B,3,,70
"O'Brien, Cleo",902,s2,cleo,A,,4,-
"Test, Student",903,,a1b2,A,,,
"=1+1",904,s4,bob,A,-1,,
,,,,,,,
"""


def given(course: Path, text: str) -> Path:
    file = course / "from the platform.csv"
    file.write_text(text, "utf8")
    return file


def test_a_file_of_canvas_keeps_its_rows(course: Path) -> None:
    done = export(course, NAME, "canvas", given(course, CANVAS))
    wanted = CANVAS.replace("3,,70", "3,6,70").replace("-1,,", "-1,0,").replace('"=1', "\"'=1")
    assert rows(done.file) == list(csv.reader(wanted.splitlines()))
    assert not done.file.read_bytes().startswith(b"\xef\xbb\xbf")
    assert (done.written, done.absent, done.strangers) == (["ada", "bob"], ["48213"], ["903"])
    assert done.notes == []


def test_semicolons_and_a_byte_order_mark_stay(course: Path) -> None:
    text = "\ufeff" + CANVAS.replace(", ", " ").replace(",", ";").replace("4;-", "3,5;-")
    done = export(course, NAME, "canvas", given(course, text))
    assert done.file.read_bytes().startswith(b"\xef\xbb\xbf")
    assert rows(done.file, ";")[4][6] == "3,5"  # cleo waits: what was there stays
    assert rows(done.file, ";")[3][6] == "6"


def test_other_points_there_are_told(course: Path) -> None:
    done = export(course, NAME, "canvas", given(course, CANVAS.replace("5,8,(", "5,10,(")))
    assert done.notes == [
        "The assignment is worth 10 points in Canvas, and 8 here: make them the same, points are "
        "not converted."
    ]


def test_the_gradebook_of_moodle(course: Path) -> None:
    text = (
        'First name,Last name,ID number,Email address,"Assignment: hw1 (Real)",'
        '"Assignment: hw1 (Percentage)","Assignment: hw1 (Feedback)"\n'
        "Ada,Lovelace,,ADA@uni.example,-,-,\nCleo,,cleo,c@uni.example,-,-,\nZoe,,zoe,,-,-,\n"
    )
    done = export(course, NAME, "moodle", given(course, text))
    assert [row[4] for row in rows(done.file)[1:]] == ["6", "-", "-"]
    assert (done.absent, done.strangers) == (["48213", "bob"], ["zoe"])


def test_the_worksheet_of_one_assignment_in_moodle(course: Path) -> None:
    head = "Identifier,Full name,Email address,Status,Grade,Maximum grade,Last modified (grade)"
    text = f"{head},Feedback comments\n" + (
        "Participant 48213,Li Chen,li@uni.example,Submitted,,100.00,-,\n"
        "Participant 48214,Ada Lovelace,ada@uni.example,Submitted,,100.00,-,\n"
    )
    done = export(course, NAME, "moodle", given(course, text))
    said = "sharpness 2 of 2; repair 2 of 4; best-stride 2 of 2"
    assert rows(done.file)[2][4:] == ["6", "100.00", "-", said]
    assert done.written == ["48213", "ada"]
    assert "100 points in Moodle, and 8 here" in done.notes[0] and len(done.notes) == 1


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no row for a student; export the gradebook again"),
        ("Student,ID,Section,hw1\n", "has no row for a student"),
        ("Name,hw1\nAda,\n", "has no column that identifies students (id, sis user id"),
        ("Student,ID,hw0 (1),hw11 (2)\nA,ada,,\n", "has no column 'hw1'; give the assignment's"),
        ("Student,ID,hw1 (1),hw1 (2)\nA,ada,,\n", "columns for 'hw1': hw1 (1) and hw1 (2); keep"),
        ("Student,ID,SIS User ID,hw1\nA,ada,bob,\n", "line 2, names both ada and bob: correct"),
        ("Student,ID,hw1\nA,ada,\nB,ADA,\n", "lines 2 and 3, both name ada: keep one of them"),
        ('Student,ID,hw1\n"A,ada,\n', "is not a CSV file"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(course: Path, text: str, said: str) -> None:
    with pytest.raises(CourseError) as error:
        export(course, NAME, "canvas", given(course, text))
    assert said in str(error.value)
    assert not (course / "exports").exists()


def test_two_students_of_one_address_are_refused(course: Path) -> None:
    with assignment.api(course).gradebook as book:
        book.update_or_create_student("bob", email="Ada@uni.example")
    with pytest.raises(CourseError, match=r"ada and bob are both 'ada@uni\.example'"):
        export(course, NAME, "canvas", given(course, CANVAS))


def test_the_command_tells_who_is_left_out(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = given(course, CANVAS)
    words = ["export", NAME, "--to", "canvas", "--columns", str(file), "--course", str(course)]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Points of 2 students for Canvas.",
        "Left out, because answers wait for you: cleo",
        "Left out, because they are not graded yet: dan",
        "Left out, because nothing was handed in: eve",
        f"Have points, and no row in {file}: 48213",
        f"Have a row in {file}, and are nobody here: 903",
        f"In {course}/exports/{NAME}-canvas.csv",
    ]
    assert main([*words[:1], "hw9", *words[2:]]) == 2
    assert "hw9" in capsys.readouterr().err


def test_penalties_that_may_be_old_are_told(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", NAME, "--to", "moodle", "--course", str(course)]
    assert main(words) == 0
    assert "Penalties" not in capsys.readouterr().out
    with assignment.api(course).gradebook as book:
        for notebook in book.find_submission(NAME, "bob").notebooks:
            notebook.late_submission_penalty = 1
        book.db.commit()
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"tfviz-course autograde {NAME}, then this again." in said


def test_nobody_is_told_twice(course: Path) -> None:
    done: Exported = export(course, NAME, "canvas")
    everybody = [*done.written, *done.waiting, *done.ungraded, *done.missing]
    assert len(everybody) == len(set(everybody)) == 6
