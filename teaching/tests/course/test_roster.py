"""Who is in the class: a table of students, and more time for one of them."""

from __future__ import annotations

import csv
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from course import classroom
from course.classroom import NAME

from tfviz_course import CourseError, assignment, settings
from tfviz_course.command import main
from tfviz_course.roster import read_roster


@pytest.fixture
def course(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    made = classroom.base(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(made, tmp_path / "course"))


@pytest.mark.parametrize(
    "text",
    [
        "id,first_name,last_name\nada,Ada,Lovelace\n李雷,,\n",
        "\ufeffStudent ID;First name;Last name;Group\r\nada; Ada ;Lovelace;3\r\n李雷;;;4\r\n",
        "student\tFIRST_NAME\tlast_name\nada\tAda\tLovelace\n李雷\t\t\n",
    ],
)
def test_a_table_of_students_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text(text, "utf8")
    found = read_roster(tmp_path / "class.csv")
    assert list(found) == ["ada", "李雷"]
    assert found["ada"] == {"first_name": "Ada", "last_name": "Lovelace"}


@pytest.mark.parametrize(
    "text", ["id,email\n\nada,x\n,\nbob,y,\n,,,\n", "id;email\nada\nbob;;\n;;;\n"]
)
def test_rows_of_nothing_are_no_students(text: str, tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text(text, "utf8")
    assert list(read_roster(tmp_path / "class.csv")) == ["ada", "bob"]


def test_columns_that_are_not_read_are_named(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / "class.csv").write_text("id,Firstname,email,Group\nada,Ada,a@x,3\n", "utf8")
    assert main(["students", "import", str(course / "class.csv"), "--course", str(course)]) == 0
    assert "Columns that are not read: Firstname, Group (those that are: id, first_name, last" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "name",
    ["O'Brien", 'Ada "the first"', "A & B", "李雷", "A\u030asa", "علی\u200cرضا", "{{ 7*7 }}"],
)
def test_names_have_all_the_signs_that_names_have(name: str, tmp_path: Path) -> None:
    with (tmp_path / "class.csv").open("w", encoding="utf8", newline="") as file:
        csv.writer(file).writerows([["id", "first_name"], ["ada", name]])
    assert read_roster(tmp_path / "class.csv") == {"ada": {"first_name": name}}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "has no column 'id'; its first line has nothing"),
        (b"name,mail\nada,x\n", "has no column 'id'; its first line has name, mail"),
        (b"id\n", "names nobody: below its first line there is no student"),
        (b"\xef\xbb\xbfid;first_name\n;;\n", "names nobody"),
        (b"id,last_name\nada,Lovelace, Ada\n", "line 2: 3 values, and the first line names 2 colu"),
        (b"id,last_name\nada,x\nbob,L, B\n", "line 3: 3 values, and the first line names 2 col"),
        (b"id,email\nada,x,,y\n", "put names that hold a ',' in quotes, as in \"Lovelace, Ada\""),
        (b"id;email\nada;x;y\n", "put names that hold a ';' in quotes"),
        (b'id,first_name\nada,"A\nB"\nbob,x,y\n', "line 4: 3 values"),
        (b"id,student,email\nada,Ada,x\n", "has several columns for 'id': id, student. Keep the"),
        (b"id,Student ID\nada,1\n", "has several columns for 'id': id, Student ID"),
        (b"id,email,E-Mail,Email\nada,x,y,z\n", "several columns for 'email': email, Email"),
        (b"id\nada\n../bob\n", "line 3: '../bob' cannot be a student's id: an id has letters"),
        (b"id,first_name\nada,x\n,y\n", "line 3: '' cannot be a student's id"),
        (b"id\nada\nbob\nada\n", "line 4: ada appears twice"),
        (b"id\njos\xe9\n", "is not in UTF-8: save it as 'CSV UTF-8'"),
        (b'id,first_name\nada,"open\n', "is not a CSV file"),
        (b"id,email\nada,a@x\nbob,Bob <b@x>\n", "line 3: email 'Bob <b@x>' has the sign '<'; nam"),
        (b"id,last_name\nada,a>b\n", "line 2: last name 'a>b' has the sign '>'; names and addr"),
        (b"id,first_name\nada,\x1b[31mAda\n", r"line 2: first name '\x1b[31mAda' has the sign"),
        (b"id,first_name\nada,A\0da\n", r"line 2: first name 'A\x00da' has the sign '\x00'"),
        ("id,email\nada,a\u202eb\n".encode(), r"line 2: email 'a\u202eb' has the sign"),
        ("id,email\nada,a\u0080b\n".encode(), r"line 2: email 'a\x80b' has the sign '\x80'"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_bytes(data)
    with pytest.raises(CourseError) as error:
        read_roster(tmp_path / "class.csv")
    assert said in str(error.value)
    with pytest.raises(CourseError, match=r"no\.csv cannot be read: No such file"):
        read_roster(tmp_path / "no.csv")


def test_students_are_entered_all_or_none(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = course / "class.csv"
    words = ["students", "import", str(table), "--course", str(course)]
    handle = assignment.api(course)
    with handle.gradebook as book:
        book.add_student("gil", first_name="Gil", email="gil@x")
    table.write_text("id\nzoe\n../x\n")
    assert main(words) == 2
    with handle.gradebook as book:
        assert [student.id for student in book.students] == ["gil"]
    table.write_text("id,first_name,email\nada,Ada,\nAda,A,\ngil,Gilbert,\n")
    capsys.readouterr()
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("3 students: 2 new, 1 known\nLook: the ids Ada and")
    with handle.gradebook as book:
        gil = book.find_student("gil")
        assert (gil.first_name, gil.email) == ("Gilbert", "gil@x")  # what is empty stays
        assert len(book.students) == 3


@pytest.mark.filterwarnings("ignore")  # of SQLAlchemy, about how nbgrader uses it
def test_an_extension_moves_the_date_of_one_student(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> str:
        code = main(["extension", NAME, *words, "--course", str(course)])
        said = capsys.readouterr()
        return f"{code} {said.out}{said.err}"

    handle = assignment.api(course)
    assert "has no due date" in run("bob", "--days", "1")
    assert "2 tfviz-course: 'a,b' cannot be" in run("a,b", "--days", "1")
    with handle.gradebook as book:
        book.update_or_create_assignment(NAME, duedate=datetime(2026, 12, 1, 18))
        book.add_student("bobby")
    assert run("bobb", "--days", "1") == (
        "2 tfviz-course: bobb is not in the gradebook, and has handed in nothing. Did you mean "
        "bobby? `tfviz-course students import`, or `nbgrader db student add`, enters students\n"
    )
    assert not (course / "extensions.csv").exists()
    settings.write_extensions(course, {(NAME, "typo"): timedelta(hours=1)})
    assert run("typo").startswith("0 typo has time")  # what is there can be taken back
    settings.write_extensions(course, {})
    said = run("bobby", "--days", "1", "--hours", "2")
    assert said == "0 bobby has time for hw1 until 2026-12-02 20:00 UTC\n"
    assert run("bobby").startswith("0 ")
    settings.write_extensions(course, {})
    (course / "submitted" / "bob").mkdir(parents=True)
    assert run("bob", "--hours", "1.5") == "0 bob has time for hw1 until 2026-12-01 19:30 UTC\n"
    assert (course / "extensions.csv").read_text() == "assignment,student,hours\nhw1,bob,1.5\n"
    with handle.gradebook as book:
        book.add_student("bob")
        book.add_submission(NAME, "bob")
    assert run("bob", "--hours", "1") == (  # in place of the first
        "0 bob has time for hw1 until 2026-12-01 19:00 UTC\n"
        "Next: tfviz-course autograde hw1 --student bob\n"
    )
    with handle.gradebook as book:
        assert book.find_submission(NAME, "bob").duedate == datetime(2026, 12, 1, 19)
    assert "until 2026-12-01 18:00 UTC" in run("bob")
    with handle.gradebook as book:
        assert book.find_submission(NAME, "bob").duedate == datetime(2026, 12, 1, 18)
    assert main(["extension", "hw2", "bob", "--days", "1", "--course", str(course)]) == 2
    assert "no assignment 'hw2': it has hw1" in capsys.readouterr().err


@pytest.mark.parametrize("student", ["-1", "@sum", "-x.y"])
def test_an_id_that_looks_like_a_formula_has_its_extension(student: str, tmp_path: Path) -> None:
    time = {("hw1", student): timedelta(hours=2)}
    settings.write_extensions(tmp_path, time)
    assert f"hw1,'{student},2" in (tmp_path / "extensions.csv").read_text("utf8")
    assert settings.read_extensions(tmp_path) == time
    (tmp_path / "extensions.csv").write_text(f"assignment,student,hours\nhw1,{student},2\n")
    assert settings.read_extensions(tmp_path) == time


@pytest.mark.parametrize(
    "row", ["hw1,bob", "hw1,bob,two", "hw1,bob,inf", "hw1,bob,nan", "hw1,bob,1,2"]
)
def test_a_wrong_line_of_extensions_is_named(row: str, tmp_path: Path) -> None:
    time = {("hw1", "ada"): timedelta(days=1, minutes=3)}
    settings.write_extensions(tmp_path, time)
    assert settings.read_extensions(tmp_path) == time
    with (tmp_path / "extensions.csv").open("a") as file:
        file.write(f"{row}\n")
    with pytest.raises(CourseError, match=r"extensions\.csv, line 3: it must give assignment, stu"):
        settings.read_extensions(tmp_path)
