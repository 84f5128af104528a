"""Names that students choose: which of them can be a student's id, and that no other gets in."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from course import classroom
from course.classroom import NAME, hand_in, points
from rich.console import Console
from traitlets.config import LoggingConfigurable

from tfviz_course import CourseError, assignment, command, report
from tfviz_course.collect import NamedFiles, OwnWork
from tfviz_course.students import check, is_id, look_alikes, shown

IDS = ["ada", "Åsa B.", "A\u030asa", "李雷", "a.b@c-d_e", "-x", "4711", "x" * 64]
SCRIPT = "<img src=x onerror=alert(1)>"
NO_IDS = [
    SCRIPT, "", " ", ".", "..", ".x", " x", "x ", "[a]*", "*", "a/b", "a\nb", "a\x1b[31m",
    "a\u202eb", "a,b", "a'b", 'a"b', "m\udcffllory", "x" * 65,
]  # fmt: skip
PATTERN = r".*/(?P<student_id>[^/_]+)_(?P<file_id>[^/]+)"  # the one of the guide


@pytest.fixture
def course(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    made = classroom.base(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(made, tmp_path / "course"))


@pytest.mark.parametrize("name", IDS)
def test_ids(name: str) -> None:
    assert is_id(name) and check(name) == name


@pytest.mark.parametrize("name", NO_IDS)
def test_no_ids(name: str) -> None:
    assert not is_id(name)
    with pytest.raises(CourseError, match="cannot be a student's id: an id has letters, digits"):
        check(name)
    assert shown(name).isprintable() and len(shown(name)) <= 60


CYRILLIC = "\u0430da"  # begins with the Cyrillic letter that looks like an a


@pytest.mark.parametrize(
    "names", [("ada", "Ada"), ("ada", CYRILLIC), ("\uff41da", "ada"), ("BO", "\u0392\u039f")]
)
def test_ids_that_look_alike_give_a_warning(names: tuple[str, ...]) -> None:
    (said,) = look_alikes([*names, "cleo"])
    assert all(name in said for name in names) and "cleo" not in said
    assert all(ascii(name)[1:-1] in said for name in names if not name.isascii())
    assert look_alikes([names[0], names[0], "adb", "李雷", "юля"]) == []


def test_look_alikes_are_told_when_collecting_and_in_the_report(course: Path) -> None:
    hand_in(course, "ada", {})
    assert "WARNING" in (said := collect(course, f"{CYRILLIC}_attention.ipynb"))
    assert f"the ids ada and {CYRILLIC} (written \\u0430da) look alike" in said
    found = report.results(course, NAME)
    assert found.alike == look_alikes(["ada", CYRILLIC]) != []
    out = io.StringIO()
    Console(file=out, width=200).print(report.table(found))
    assert f"Look: {found.alike[0]}." in out.getvalue()
    assert report.without_names(found, "secret").alike == []


@pytest.mark.parametrize(
    "name",
    [
        *IDS,
        *NO_IDS,
        "\udc80x\ud800",
        "\ud800",
        "\udcff",
        "\udcc3\udca9",
        "\udbff\udc00",
        "\U0010ffff",
    ],
)
def test_any_name_can_be_shown(name: str) -> None:
    assert shown(name).encode("utf-8").decode().isprintable() and len(shown(name)) < 90


@pytest.mark.parametrize("words", [["autograde", NAME], ["feedback", NAME]])
def test_every_command_checks_the_ids_that_it_is_given(
    words: list[str], course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*words, "--course", str(course), "--student", "../ada"]) == 2
    assert "'../ada' cannot be a student's id" in capsys.readouterr().err


# --- zip_collect ---------------------------------------------------------------------------------


Files = Mapping[str, bytes]


def notebook(course: Path) -> bytes:
    return (course / "release" / NAME / "attention.ipynb").read_bytes()


def zipped(files: Files) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def taped(files: Files) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def collect(course: Path, *names: str) -> str:
    """What the guide says to do with files of these names; what nbgrader prints."""
    return collect_files(course, dict.fromkeys(names, notebook(course)))


def collect_files(course: Path, files: Files, pattern: str = PATTERN) -> str:
    archive = course / "downloaded" / NAME / "archive"
    shutil.rmtree(archive, ignore_errors=True)
    for name, data in files.items():
        (archive / name).parent.mkdir(parents=True, exist_ok=True)
        (archive / name).write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "zip_collect", NAME, "--force",
         f"--FileNameCollectorPlugin.named_regexp={pattern}"],
        cwd=course, env=classroom.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stdout and done.returncode == 0, done.stdout
    return done.stdout


def collected(course: Path) -> dict[str, bytes]:
    """What lies in submitted/, by student."""
    return {
        path.parts[-3]: path.read_bytes()
        for path in (course / "submitted").glob(f"*/{NAME}/attention.ipynb")
    }


def test_a_file_name_is_no_code_and_no_path(course: Path) -> None:
    said = collect(course, "ada_attention.ipynb", f"{SCRIPT}_attention.ipynb", ".._attention.ipynb")
    assert [path.name for path in (course / "submitted").iterdir()] == ["ada"]
    assert not (course / NAME).exists()  # which is submitted/../hw1
    assert said.count("Left out ") == 2 and "an id has letters, digits" in said


def test_replacing_work_asks(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = hand_in(course, "ada", {"ex-sharpness": "mine"}) / "attention.ipynb"
    before = mine.read_bytes()
    said = collect(course, "ada_attention.ipynb", "bob_attention.ipynb")
    assert mine.read_bytes() == before
    assert "ada has handed in hw1 already; kept. To have it replaced, remove " in said
    assert (course / "submitted" / "bob" / NAME / "attention.ipynb").exists()
    # with somebody to answer
    asked: list[str] = []
    answers = iter(["", "y"])

    def answer(question: str) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", answer)
    for taken in (False, True):
        plugin = collector(course)
        for name in ("attention", "factorized"):  # one question for all files of a student
            assert bool(plugin.collect(f"/x/ada_{name}.ipynb")) is taken
    assert asked == ["ada has handed in hw1 already. Replace it? [y/N] "] * 2


def collector(course: Path) -> Any:
    handle = assignment.api(course)
    handle.coursedir.assignment_id = NAME
    app: Any = LoggingConfigurable()  # in place of nbgrader's command
    app.coursedir = handle.coursedir
    app.extracted_directory = "x"
    app._format_collect_path = lambda step: f"/{step}"
    app.extractor_plugin_inst = SimpleNamespace(opened=set())
    return NamedFiles(named_regexp=PATTERN, parent=app)


def test_a_notebook_that_leaves_the_folder_is_left_out(course: Path) -> None:
    plugin = collector(course)
    plugin.named_regexp = r".*/(?P<student_id>[^/_]+)_(?P<file_id>.+)"
    assert plugin.collect("/x/ada_../../bob/hw1/attention.ipynb") is None


FOLDERS = r".*/(?P<student_id>[^/_]+)_\d+_assignsubmission_file_?/(?P<file_id>[^/]+)"
ADA, BOB = (f"{name}_{n}_assignsubmission_file" for n, name in enumerate(("ada", "bob")))
MALLORY = "mallory_9_assignsubmission_file"


def test_an_upload_cannot_hand_in_for_somebody_else(course: Path) -> None:
    """Folders named like somebody else's, in an archive in the archive and in one's own folder."""
    mine, forged = notebook(course), b'{"cells": []}'
    for inner in (
        {f"{MALLORY}/work.zip": zipped({f"x/{ADA}/attention.ipynb": forged})},
        {f"{MALLORY}/work.tar.gz": taped({f"{ADA}/attention.ipynb": forged})},
        {f"{MALLORY}/x/{ADA}/attention.ipynb": forged},
    ):
        shutil.rmtree(course / "submitted", ignore_errors=True)
        files = {f"{ADA}/attention.ipynb": mine, f"{BOB}/attention.ipynb": mine}
        said = collect_files(course, {"class.zip": zipped(files | inner)}, FOLDERS)
        assert collected(course) == {"ada": mine, "bob": mine}, said
        assert f"'{MALLORY}'" in said  # whose upload it is
        shutil.rmtree(course / "submitted", ignore_errors=True)  # and where ada has not handed in
        said = collect_files(course, {"class.zip": zipped(inner)}, FOLDERS)
        assert collected(course) == {} and f"'{MALLORY}'" in said


def test_an_archive_of_one_student_is_not_taken_for_that_of_the_class(course: Path) -> None:
    """As it came by mail, or out of the platform's archive that somebody has unpacked."""
    inner = zipped({"ada_attention.ipynb": b"{}"})
    files = {"mallory_work.zip": inner, "bob_attention.ipynb": notebook(course)}
    said = collect_files(course, files)
    assert collected(course) == {"bob": notebook(course)}
    assert "Left out 'mallory_work.zip': by its name it is an upload of 'mallory'" in said


@pytest.mark.parametrize("pack", [zipped, taped])
def test_an_odd_upload_costs_nobody_else_the_collection(
    pack: Callable[[Files], bytes], course: Path
) -> None:
    mine = notebook(course)
    kind = "zip" if pack is zipped else "tar.gz"
    odd = {
        "../../x/attention.ipynb": (b"out", "'../../x/attention.ipynb' would leave the folder"),
        f"{MALLORY}/work.zip": (b"PK no archive", f"upload '{MALLORY}' in class.{kind} holds arch"),
        "big_1_assignsubmission_file/attention.ipynb": (
            bytes(60_000_000), "its notebooks have 60,000,000 bytes; at most 50,000,000"),
        "deep_1_assignsubmission_file/" + "x/" * 30 + "attention.ipynb": (
            mine, "lies in more than 10 folders"),
        **{f"many_1_assignsubmission_file/{n}.ipynb": (
            b"{}", "it has 101 notebooks; at most 100") for n in range(101)},
    }  # fmt: skip
    files = {name: data for name, (data, _) in odd.items()}
    archive = pack({f"{ADA}/attention.ipynb": mine} | files | {f"{BOB}/attention.ipynb": mine})
    said = collect_files(course, {f"class.{kind}": archive}, FOLDERS)
    assert collected(course) == {"ada": mine, "bob": mine}
    assert not [words for _, words in odd.values() if words not in said]
    extracted = (course / "downloaded" / NAME / "extracted").rglob("*")
    assert sum(path.stat().st_size for path in extracted if path.is_file()) < 10 * len(mine)
    assert not list(course.rglob("out")) and not (course / "downloaded" / "x").exists()


def test_a_broken_archive_is_named_and_the_others_are_read(course: Path) -> None:
    good = zipped({"bob_attention.ipynb": notebook(course)})
    encrypted = bytearray(zipped({"ada_attention.ipynb": notebook(course)}))
    for head in (b"PK\x03\x04", b"PK\x01\x02"):  # the flag of a password
        place = encrypted.index(head) + (6 if head[2] == 3 else 8)
        encrypted[place] |= 1
    files = {
        "a.zip": b"not an archive",
        "b.gz": good[:40],
        "c.zip": bytes(encrypted),
        "d.zip": good,
    }
    said = collect_files(course, files | {"d.zip": good})
    assert collected(course) == {"bob": notebook(course)}
    for name in ("a.zip", "b.gz"):
        assert f"Left out '{name}': it cannot be read as an archive" in said
    assert "method" not in said  # each is one sentence, without what tarfile tried
    assert "Left out 'ada_attention.ipynb' of the upload 'ada_attention.ipynb' in c.zip" in said


def test_two_files_of_one_name_are_left_out_by_name(course: Path) -> None:
    mine = notebook(course)
    twice = {"a.zip": zipped({"ada_attention.ipynb": mine}), "ada_attention.ipynb": mine}
    said = collect_files(course, twice | {"bob_attention.ipynb": mine})
    assert collected(course) == {"bob": mine}
    assert "Left out 'attention.ipynb' of ada: 2 files say that they are it" in said
    # the newest counts where the names hold times; one that is none keeps nobody from the rest
    timed = r".*/(?P<student_id>[^/_]+)_(?P<timestamp>[^/_]+)_(?P<file_id>[^/]+)"
    files = {"ada_2026-01-02_attention.ipynb": mine, "ada_2026-01-01_attention.ipynb": b"{}"}
    said = collect_files(course, files | {"cleo_soon_attention.ipynb": mine}, timed)
    assert collected(course) == {"ada": mine, "bob": mine}
    assert "the time in its name, 'soon', cannot be read" in said


def test_an_odd_account_keeps_nobody_from_being_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def records(self: Any) -> None:
        self.src_records = [{"username": "ada"}, {"username": "DOMAIN\\mallory"}]

    monkeypatch.setattr(OwnWork.__mro__[1], "init_src", records)
    work = OwnWork.__new__(OwnWork)
    work.init_src()
    assert work.src_records == [{"username": "ada"}]


# --- submitted/ ----------------------------------------------------------------------------------


def odd_folders(course: Path) -> list[str]:
    """Folders of no id beside Ada's; their names."""
    hand_in(course, "ada", {})
    names = [SCRIPT, "[ab]*", "m\udcffllory"]
    for name in names:
        shutil.copytree(course / "submitted/ada", course / "submitted" / name)
    return names


def test_formgrader_hears_of_no_odd_name(course: Path) -> None:
    odd_folders(course)
    handle = assignment.api(course)
    assert handle.get_submitted_students(NAME) == handle.get_submitted_students("*") == {"ada"}
    assert [one["id"] for one in handle.get_students()] == ["ada"]
    assert {one["student"] for one in handle.get_submissions(NAME)} == {"ada"}


def test_formgraders_button_refuses_an_odd_name(course: Path) -> None:
    odd_folders(course)
    result = assignment.api(course).autograde(NAME, "[ab]*")
    assert not result["success"] and "cannot be a student's id" in result["error"]


def test_one_bad_name_costs_nobody_the_points_and_the_report(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Grades, tables and remarks come first; then the names are told, on one line."""
    odd_folders(course)
    assert command.main(["autograde", NAME, "--course", str(course)]) == 2
    said = capsys.readouterr()
    assert "ada" in said.out and "1 submission graded" in said.out
    assert said.err.count("\n") == 1 and SCRIPT in said.err
    assert "'mÿllory' (not written in UTF-8)" in said.err and "llory" not in said.out  # once
    assert set(points(course, "ada").values()) == {0}
    assert not list((course / "autograded").glob("[!a]*"))
    assert command.main(["report", NAME, "--course", str(course)]) == 0
    said = capsys.readouterr()
    assert "'mÿllory' (not written in UTF-8)" in said.out and "Left out of submitted/" in said.out
    found = report.results(course, NAME)
    assert [student.id for student in found.students] == ["ada"]
    assert r"\udcff" not in str(report.without_names(found, "secret"))
