"""What students hand in, named as the platforms name it: the guide's table of patterns, tried on
zip files that are made by each platform's own rules.

Where the rules were read: Canvas in instructure/canvas-lms, lib/content_zipper.rb (`get_filename`,
the three `sanitize_…`) and Attachment.make_unique_filename. Moodle in moodle/moodle,
mod/assign/classes/downloader.php. Blackboard and Gradescope show their sources to nobody: the names
are those that programs read which others wrote for them (kwurst/bb-file-cleanup,
vangef/BBGradebookOrganiser, nbgrader's own example; Otter-Grader's parser of Gradescope's
submission_metadata.yml). Of Google Classroom we know what its help says of copies for each student.
"""

from __future__ import annotations

import io
import re
import shutil
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import pytest
import yaml
from course import classroom
from course.classroom import NAME, ROOT
from course.test_doors import collect_files

GUIDE = (ROOT / "book" / "instructors.md").read_text("utf8")
ROWS = re.findall(r"^\| `([^`|]+\.ipynb)` \| `(\.\*/[^`]+)` \|$", GUIDE, re.M)
(BY_NUMBER,) = re.findall(r"^`(\.\*/[^`]+)`\. Then \[", GUIDE, re.M)
MAIL, MOODLE, CANVAS, CANVAS_LATE, ANONYMOUS, BLACKBOARD, GRADESCOPE, CLASSROOM = (
    pattern for _, pattern in ROWS
)


# --- the platforms' rules ------------------------------------------------------------------------


def word(sign: str) -> bool:
    """What Ruby's [[:word:]] takes: letters, marks, digits, connecting punctuation."""
    return unicodedata.category(sign)[0] in "LM" or unicodedata.category(sign) in ("Nd", "Pc")


def canvas(name: str, user: int, file: int, title: str, late: str = "", code: str = "") -> str:
    """`name` is the sortable one, "Lovelace, Ada"; `late` is LATE, or late in older versions."""
    shown = re.sub(r"_(\d+)_", r"\1", name).lower()
    parts = [shown if not code else "", late, f"anon_{code}" if code else str(user)]
    who = "".join(filter(word, "_".join(filter(None, parts))))
    return f"{who}_{file}_" + re.sub(r'[\0/\\:*?"<>|]+', "_", title)


def moodle(name: str, number: int | None, path: str, kind: str) -> str:
    """`kind`: folders, folders of older versions, or flat; a group may have no number."""
    who = name.replace("_", " ") + (f"_{number}" if number is not None else "")
    if kind == "flat":
        return f"{who}_assignsubmission_file_{path.rpartition('/')[2]}"
    return f"{who}_assignsubmission_file{'_' * (kind == 'older')}/{path}"


def blackboard(login: str, time: str, title: str, assignment: str = "Homework 1") -> str:
    return f"{assignment}_{login}_attempt_{time}_{title}"


def gradescope(whose: Mapping[int, list[dict[str, str | None]]]) -> bytes:
    people = {
        f"submission_{number}": {
            ":submitters": [{f":{key}": value for key, value in one.items()} for one in every],
            ":created_at": "2026-11-30 17:45:12 Z",
            ":score": 0.0,
        }
        for number, every in whose.items()
    }
    return yaml.safe_dump(people).encode()


# --- the table -----------------------------------------------------------------------------------

WHEN, LATER = "2026-11-29-23-59-59", "2026-11-30-17-45-12"
SHADOW = b"\0\5\26\7\0\2\0\0Mac OS X"
PEOPLE = gradescope(
    {
        291734: [{"name": "Li Chen", "sid": "chen", "email": "chen@uni.edu"}],
        291735: [{"name": "Zoë O'Neil", "sid": None, "email": "zoe@uni.edu"}],
        291736: [
            {"name": "Ada", "sid": "ada", "email": "a@uni.edu"},
            {"name": "Bob", "sid": "bob", "email": "b@uni.edu"},
        ],
    }
)
Zip = dict[str, str]  # {file in the zip: whose it must be; "" for nobody's}
CASES: dict[str, tuple[str, Zip]] = {
    "mail": (MAIL, {"chen_attention.ipynb": "chen", "李雷_attention.ipynb": "李雷"}),
    "canvas, by name": (
        CANVAS,
        {
            canvas("Chen, Li", 8841, 220417, "attention.ipynb"): "chenli",
            canvas("Lovelace, Ada", 8842, 220418, "attention-1.ipynb", "LATE"): "lovelaceada",
            canvas("Older, Ann", 8843, 220419, "attention.ipynb", "late"): "olderann",
            canvas("García López, José", 8844, 220420, "attention.ipynb"): "garcíalópezjosé",
            canvas("Smith 2, Bob", 8845, 220421, "attention.ipynb"): "smith2bob",
            canvas("O'Brien-Smith, Zoë", 8846, 220422, "attention.ipynb"): "obriensmithzoë",
            canvas("李雷", 8847, 220423, "attention.ipynb"): "李雷",
            canvas("शर्मा, राम", 8848, 220424, "attention.ipynb"): "शर्माराम",
            canvas("li_chen", 8849, 220425, "attention.ipynb"): "li_chen",
            # a name that the student chose cannot name somebody else
            canvas("Mallory", 8850, 220426, "ada_8842_1_attention.ipynb"): "mallory",
            canvas("Number, First", 8851, 220427, "20231234_attention.ipynb"): "numberfirst",
        },
    ),
    "canvas, by number": (
        BY_NUMBER,
        {
            canvas("Chen, Li", 8841, 220417, "attention.ipynb"): "8841",
            canvas("Lovelace, Ada", 8842, 220418, "attention-1.ipynb", "LATE"): "8842",
            canvas("García López, José", 8844, 220420, "attention.ipynb", "late"): "8844",
            canvas("शर्मा, राम", 8848, 220424, "attention (1).ipynb"): "8848",
            canvas("42", 8853, 220429, "attention.ipynb"): "8853",
            canvas("Mallory", 8850, 220426, "ada_8842_1_attention.ipynb"): "8850",
        },
    ),
    "canvas, anonymous": (
        ANONYMOUS,
        {
            canvas("", 1, 220417, "attention.ipynb", code="7fGk2"): "anon_7fGk2",
            canvas("", 2, 220418, "attention-2.ipynb", "LATE", code="22222"): "anon_22222",
        },
    ),
    "moodle": (
        MOODLE,
        {
            moodle("Li Chen", 48213, "attention.ipynb", "folders"): "48213",
            moodle("Jean-Luc d'Été", 48214, "attention.ipynb", "older"): "48214",
            moodle("A_B", 48215, "attention.ipynb", "folders"): "48215",
            moodle("Participant", 48216, "work/attention.ipynb", "folders"): "48216",
            moodle("Team A", 17, "attention.ipynb", "folders"): "17",
            moodle("Default group", None, "attention.ipynb", "folders"): "",
            moodle("Mallory", 9, "x/Ada_48213_assignsubmission_file/a.ipynb", "folders"): "",
        },
    ),
    "moodle, flat": (
        MOODLE,
        {
            moodle("Li Chen", 48213, "attention.ipynb", "flat"): "48213",
            moodle("李雷", 48214, "attention (1).ipynb", "flat"): "48214",
            moodle("Mal", 9, "x_48213_assignsubmission_file_attention.ipynb", "flat"): "9",
        },
    ),
    "blackboard": (
        BLACKBOARD,
        {
            blackboard("chen", LATER, "attention.ipynb"): "chen",
            blackboard("chen", WHEN, "attention.ipynb"): "",  # an earlier attempt
            blackboard("zoe.o", WHEN, "attention.ipynb", "Week_1 (late)"): "zoe.o",
            blackboard("mal", WHEN, f"x_chen_attempt_{LATER}_attention.ipynb"): "mal",
        },
    ),
    "gradescope": (
        GRADESCOPE,
        {
            "assignment_9100_export/submission_291734/attention.ipynb": "chen",
            "assignment_9100_export/submission_291735/work/attention.ipynb": "zoe@uni.edu",
            "assignment_9100_export/submission_291736/attention.ipynb": "ada bob",
            "assignment_9100_export/submission_291799/attention.ipynb": "",  # not in the list
        },
    ),
    "classroom": (
        CLASSROOM,
        {
            "Li Chen - attention.ipynb": "Li Chen",
            "Anna-Maria López - attention.ipynb": "Anna-Maria López",
            "Zoë O'Neil - attention.ipynb": "",  # no id: the rule is in the warning
        },
    ),
}


def packed(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def by_a_mac(files: Mapping[str, bytes], folder: str) -> bytes:
    """Unpacked and packed again: a folder around all, shadow files, letters taken apart, and UTF-8
    that is not said to be it."""
    found = {f"{folder}/.DS_Store": b"x"}
    for name, data in files.items():
        above, _, own = f"{folder}/{name}".rpartition("/")
        found |= {f"{above}/{own}": data, f"__MACOSX/{above}/._{own}": SHADOW}
    apart = {unicodedata.normalize("NFD", name): data for name, data in found.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in apart.items():
            archive.writestr(_Unflagged(name.encode().decode("cp437")), data)
    return out.getvalue()


class _Unflagged(zipfile.ZipInfo):
    """A name whose bytes are those of code page 437."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode("cp437"), self.flag_bits


@pytest.fixture(scope="module")
def class_room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = classroom.base(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("platforms") / "course"))


@pytest.fixture
def course(class_room: Path) -> Path:
    for folder in ("submitted", "downloaded"):
        shutil.rmtree(class_room / folder, ignore_errors=True)
    (class_room / "submitted").mkdir()
    return class_room


def handed_in(course: Path) -> dict[str, bytes]:
    """What was collected: {student: content}; each has one notebook."""
    return {
        path.parts[-3]: path.read_bytes()
        for path in (course / "submitted").glob(f"*/{NAME}/*.ipynb")
    }


def numbered(files: Zip) -> dict[str, bytes]:
    """Each file with another content, so that none is taken for another."""
    return {name: f'{{"cells": [], "n": {n}}}'.encode() for n, name in enumerate(files)}


@pytest.mark.parametrize("packs", [packed, by_a_mac], ids=["as downloaded", "packed by a Mac"])
@pytest.mark.parametrize("platform", CASES)
def test_each_platforms_zip_is_collected(
    platform: str, packs: Callable[..., bytes], course: Path
) -> None:
    pattern, files = CASES[platform]
    inside = numbered(files)
    wanted = {who: inside[name] for name, every in files.items() for who in every.split()}
    if platform == "classroom":
        wanted = {who: inside[name] for name, who in files.items() if who}
    if platform == "gradescope":
        inside["assignment_9100_export/submission_metadata.yml"] = PEOPLE
        if packs is by_a_mac:
            top = "assignment_9100_export/"
            inside = {name.removeprefix(top): data for name, data in inside.items()}
    folder = "assignment_9100_export" if platform == "gradescope" else "submissions"
    archive = packs(inside) if packs is packed else packs(inside, folder)
    said = collect_files(course, {f"{folder}.zip": archive}, pattern)
    assert handed_in(course) == wanted, said
    left_out = [name for name, who in files.items() if not who]
    stem = Path(left_out[0]).name if left_out else ""
    assert stem in unicodedata.normalize("NFC", said)  # nothing is lost without a word


def test_the_examples_of_the_table_are_what_its_patterns_take() -> None:
    for file, pattern in ROWS:
        found = re.match(pattern, f"/home/you/nlp101/downloaded/hw1/extracted/x.zip/{file}")
        assert found, file
        assert found["file_id"].removesuffix(".ipynb") == "attention", file
        own = PurePosixPath(file)
        shadow = re.match(pattern, f"/x/extracted/x.zip/__MACOSX/{own.with_name(f'._{own.name}')}")
        assert not shadow or pattern in (MAIL, MOODLE, GRADESCOPE)  # there the folder decides
    assert CANVAS == CANVAS_LATE


def test_a_folder_around_everything_is_no_way_to_hand_in_for_others(course: Path) -> None:
    """Only one that is called like the archive, and is no upload by its name, is looked through."""
    mine = {f"x/{moodle('Ada', 48213, 'attention.ipynb', 'folders')}": b"{}"}
    said = collect_files(course, {"class.zip": packed(mine)}, MOODLE)
    assert handed_in(course) == {} and "'x'" in said
    upload = "Mallory_9_assignsubmission_file"
    inner = {f"{upload}/{moodle('Ada', 48213, 'attention.ipynb', 'folders')}": b"{}"}
    said = collect_files(course, {f"{upload}.zip": packed(inner)}, MOODLE)
    assert handed_in(course) == {} and upload in said


@pytest.mark.parametrize("name", ["sub (1).zip", "sub 2.zip", "sub-20261130T101112Z-001.zip"])
def test_an_archive_that_was_downloaded_again_is_the_same(name: str, course: Path) -> None:
    files = {"sub/Li Chen - attention.ipynb": b"{}", "sub/Ann - attention.ipynb": b"{}"}
    collect_files(course, {name: packed(files)}, CLASSROOM)
    assert handed_in(course).keys() == {"Li Chen", "Ann"}


@pytest.mark.parametrize("name", ["attention.IPYNB", "attention.ipynb.txt", "attention.ipynb.json"])
def test_what_windows_and_browsers_make_of_a_notebooks_name(name: str, course: Path) -> None:
    collect_files(course, {"X.ZIP": packed({f"ada_{name}": b"{}"}), f"bob_{name}": b"{}"}, MAIL)
    found = {path.parts[-3]: path.name for path in (course / "submitted").glob("*/*/*")}
    assert found == dict.fromkeys(("ada", "bob"), "attention.ipynb")


def test_one_student_can_hand_in_several_notebooks(course: Path) -> None:
    files = {
        canvas("Chen, Li", 8841, 220417, "attention.ipynb"): b"{}",
        canvas("Chen, Li", 8841, 220418, "factorized-1.ipynb"): b"{}",
        canvas("Twice, Ann", 8842, 220419, "attention.ipynb"): b"{}",
        canvas("Twice, Ann", 8842, 220420, "attention-1.ipynb"): b"{}",
    }
    said = collect_files(course, {"submissions.zip": packed(files)}, CANVAS)
    found = sorted(path.name for path in (course / "submitted/chenli" / NAME).iterdir())
    assert found == ["attention.ipynb", "factorized.ipynb"]
    assert not (course / "submitted/twiceann").exists()
    assert "2 files say that they are it" in said


def test_a_list_of_gradescope_that_cannot_be_read_is_named(course: Path) -> None:
    for text in (b"- a list", b"{broken", b"\xff\xfe\x00", b""):
        files = {"submission_1/attention.ipynb": b"{}", "submission_metadata.yml": text}
        said = collect_files(course, {"x.zip": packed(files)}, GRADESCOPE)
        assert "its submission_metadata.yml cannot be read" in said and not handed_in(course)


def test_times_as_blackboard_writes_them_are_read(course: Path) -> None:
    """dateutil takes the last parts of 2026-11-30-17-45-12 for a time zone."""
    timed = BLACKBOARD.replace("<order>", "<timestamp>")
    files = {blackboard("chen", time, "attention.ipynb"): time.encode() for time in (WHEN, LATER)}
    collect_files(course, {"x.zip": packed(files)}, timed)
    folder = course / "submitted" / "chen" / NAME
    assert (folder / "timestamp.txt").read_text() == "2026-11-30 17:45:12"
    assert (folder / "attention.ipynb").read_bytes() == LATER.encode()


def test_what_is_logged_of_a_name_steers_no_terminal(course: Path) -> None:
    said = collect_files(course, {"ada_\u202ex\x1b[31m.ipynb": b"{}", "bob_\x9b1m.ipynb": b"{}"})
    assert not set(said) & set("\u202e\x1b\x9b") and r"ada_\u202ex\x1b[31m" in said
