"""Rebuilding takes the answers out of whatever students hand in, and nothing else."""

from __future__ import annotations

import base64
import copy
import gzip
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tfviz_course import rebuild as rebuilding
from tfviz_course.rebuild import Rebuilt, read_files, read_notebook

Document = dict[str, Any]
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()

A = """\
# exercise: ex-a  (keep this line)
def half(x):
    # YOUR CODE HERE
    raise NotImplementedError"""
B = "# exercise: ex-b  (keep this line)\n# YOUR CODE HERE\nlimit = None"
W = "<!-- exercise: ex-w  (keep this line) -->\n*Your answer here.*"
MINE_A = "# exercise: ex-a  (keep this line)\ndef half(x):\n    return x / 2"
MINE_B = "# exercise: ex-b  (keep this line)\nlimit = 7"
MINE_W = "<!-- exercise: ex-w  (keep this line) -->\nBecause."
STUDENT = '# exercise: student  (keep this line)\nimport os\nSTUDENT = os.environ.get("USER", "")'


def rebuild(release: Any, data: bytes | None) -> Rebuilt:
    """The release with the answers of this file, or of none."""
    read = () if data is None else read_notebook(data)
    return rebuilding.rebuild(release, *read)


def cell(kind: str, source: str, name: str, role: str, points: float | None = None) -> Any:
    answer = role == "yours" and name != "student"
    exercise = name.rsplit("-", 1)[0] if role in ("yours", "checks", "hidden") else name
    about: Document = {
        "grade_id": name,
        "grade": points is not None,
        "solution": answer or name == "student",
        "locked": not answer,
        "task": False,
        "schema_version": 3,
        "cell_type": kind,
    }
    if points is not None:
        about["points"] = points
    make = new_code_cell if kind == "code" else new_markdown_cell
    metadata = {"nbgrader": about, "tfviz": {"role": role, "exercise": exercise}}
    return make(source, metadata=metadata, id=name)


RELEASE = new_notebook(
    cells=[
        cell("markdown", "# Homework", "about", "about"),
        cell("code", STUDENT, "student", "yours"),
        cell("code", "scale = 3\nimport math", "setup-1", "setup"),
        cell("markdown", "**Exercise 1**: halve.", "ex-a", "prose"),
        cell("code", A, "ex-a-yours", "yours"),
        cell("code", "assert half(4) == 2", "ex-a-checks", "checks", 1),
        cell("code", "# More checks are here.", "ex-a-hidden", "hidden", 2),
        cell("markdown", "**Exercise 2**: bound.", "ex-b", "prose"),
        cell("code", B, "ex-b-yours", "yours"),
        cell("code", "assert limit < scale", "ex-b-checks", "checks", 1),
        cell("code", "# More checks are here.", "ex-b-hidden", "hidden", 1),
        cell("markdown", "**Exercise 3**: why?", "ex-w", "prose"),
        cell("markdown", W, "ex-w-yours", "yours", 4),
        cell("markdown", "The end.", "end", "prose"),
    ],
    metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
)
SOLVED = {"ex-a-yours": MINE_A, "ex-b-yours": MINE_B, "ex-w-yours": MINE_W}
STUBS = {"ex-a-yours": A, "ex-b-yours": B, "ex-w-yours": W}


def solved() -> Document:
    """A submission as JupyterLab saves it, with all answers and with outputs."""
    document = json.loads(nbformat.writes(RELEASE))
    for one in document["cells"]:
        if one["id"] in SOLVED:
            one["source"] = SOLVED[one["id"]].splitlines(keepends=True)
        if one["cell_type"] == "code":
            one["execution_count"] = 3
            one["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "noise"}]
    return document


def find(document: Document, name: str) -> Document:
    return next(one for one in document["cells"] if one.get("id") == name)


def strip(document: Document) -> None:
    """What Colab does."""
    for number, one in enumerate(document["cells"]):
        one["metadata"] = {"id": f"colab{number}"}
        one["id"] = f"colab{number}"


def again(document: Document, source: str) -> Document:
    """A cell with the metadata of the answer to ex-a, as JupyterLab makes when cells are split."""
    return copy.deepcopy(find(document, "ex-a-yours")) | {"id": "other", "source": source}


def code(source: str, **more: Any) -> Document:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], **more}


def text(source: str) -> Document:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def check(made: Rebuilt, expected: dict[str, str]) -> None:
    """The notebook is valid, has the expected answers, and is the release everywhere else."""
    nbformat.validate(made.notebook)
    nbformat.reads(nbformat.writes(made.notebook), as_version=4)
    assert [one.id for one in made.notebook.cells] == [one.id for one in RELEASE.cells]
    for one, original in zip(made.notebook.cells, RELEASE.cells, strict=True):
        if one.id in expected:
            assert one.source == expected[one.id]
            assert made.answers.get(one.id, STUBS[one.id]) == one.source
        elif one.id != "student":
            assert one.source == original.source
        assert one.metadata.nbgrader == original.metadata.nbgrader
        assert one.get("outputs", []) == []


# --- what students do with a notebook ------------------------------------------------------------

# For each: what is done to the solved notebook; which answers differ from the solved ones; what
# some remark says ("" = there is no remark at all).
Edit = Callable[[Document], Any]
CASES: dict[str, tuple[Edit, dict[str, str], str]] = {}


def case(name: str, remark: str = "", **answers: str) -> Callable[[Edit], Edit]:
    def keep(edit: Edit) -> Edit:
        changed = {f"ex-{label}-yours": source for label, source in answers.items()}
        CASES[name] = (edit, changed, remark)
        return edit

    return keep


@case("nothing")
def _(document: Document) -> None:
    pass


@case("Colab's loss of metadata")
def _(document: Document) -> None:
    strip(document)


@case("marker line removed", a="def half(x):\n    return x / 2")
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = "def half(x):\n    return x / 2"


@case("cell copied, the copy edited, below", a=MINE_A)
def _(document: Document) -> None:
    one = find(document, "ex-a-yours")
    one["source"] = A
    copied = copy.deepcopy(one) | {"id": "other", "source": MINE_A}
    document["cells"].insert(5, copied)


@case("cell copied, the original edited", a=MINE_A)
def _(document: Document) -> None:
    copied = copy.deepcopy(find(document, "ex-a-yours")) | {"id": "other", "source": A}
    document["cells"].insert(5, copied)


LAST = "def half(x):\n    return x * 0.5"


@case("two answers, the last one counts", "ex-a: 2 cells hold an answer; the last was read", a=LAST)
def _(document: Document) -> None:
    document["cells"].append(again(document, LAST))


@case("the same answer twice")
def _(document: Document) -> None:
    document["cells"].append(copy.deepcopy(find(document, "ex-a-yours")) | {"id": "other"})


@case("an emptied copy below", a=MINE_A)
def _(document: Document) -> None:
    copied = copy.deepcopy(find(document, "ex-a-yours")) | {"id": "other", "source": "\n# later\n"}
    document["cells"].insert(5, copied)


@case("answer cell deleted", "ex-a: its answer cell was not found", a=A)
def _(document: Document) -> None:
    document["cells"].remove(find(document, "ex-a-yours"))


@case("written answer without its marker", w="Just so.")
def _(document: Document) -> None:
    find(document, "ex-w-yours")["source"] = "Just so."


@case("nothing answered", a=A, b=B, w=W)
def _(document: Document) -> None:
    for name, source in STUBS.items():
        find(document, name)["source"] = source


@case("format 99")
def _(document: Document) -> None:
    document["nbformat"] = 99


@case("no format")
def _(document: Document) -> None:
    del document["nbformat"]


@case("cells that are none", "4 of the notebook's cells are broken")
def _(document: Document) -> None:
    document["cells"][0:0] = [None, 7, [], "text"]


@case("a source of a wrong type", "1 of the notebook's cells are broken", a=A)
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = {"def": "half"}


@case("a source as a list with odd things", a="def half(x):\n    return 1")
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = ["def half(x):\n", None, 3, "    return 1"]


@case("no source", "1 of the notebook's cells are broken", a=A)
def _(document: Document) -> None:
    del find(document, "ex-a-yours")["source"]


@case("metadata of wrong types")
def _(document: Document) -> None:
    wrong: Iterator[Any] = itertools.cycle([None, [], "x", {"nbgrader": 3, "tfviz": []}])
    for one in document["cells"]:
        one["metadata"] = next(wrong)
        one["id"] = 7


@case("missing outputs")
def _(document: Document) -> None:
    for one in document["cells"]:
        one.pop("outputs", None)


@case("Windows line ends")
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = MINE_A.replace("\n", "\r\n")


@case("NUL bytes and escapes", "ex-a: signs that cannot be printed")
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = MINE_A.replace("x", "x\x00").replace("2", "2\x1b")


@case("an attachment named in no encoding", w=MINE_W)
def _(document: Document) -> None:
    pictures = {name: {"image/png": PNG} for name in ("\udc80x\ud800", "\ud800", "\udcff")}
    find(document, "ex-w-yours")["attachments"] = pictures


@case("half a surrogate", "ex-a: signs that cannot be printed", a=f"{MINE_A}  # ?")
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = f"{MINE_A}  # \ud800"


@case("an endless answer", "ex-a: the answer has", a=A)
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = MINE_A + "\n#" + "x" * 300_000


@case("metadata and marker lost", "ex-a: its answer cell was not found", a=A)
def _(document: Document) -> None:
    strip(document)
    document["cells"][4]["source"] = MINE_A.split("\n", 1)[1]


@case("a trial split off an answer", "ex-a: 2 cells hold an answer; the last", a="print(half(3))")
def _(document: Document) -> None:
    document["cells"].append(again(document, "print(half(3))"))


@case("answer in a new cell, the stub left", "not read (code: 'def half(x):')", a=A)
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = A
    document["cells"].insert(5, code("def half(x):\n    return x * 0.5"))


@case("marker of another exercise", b=MINE_A)
def _(document: Document) -> None:
    find(document, "ex-b-yours")["source"] = MINE_A


@case(
    "cells merged",
    "ex-b: its answer cell was not found, it counts as empty",
    a=f"{MINE_A}\n\n{MINE_B}",
    b=B,
)
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = f"{MINE_A}\n\n{MINE_B}"
    document["cells"].remove(find(document, "ex-b-yours"))


@case(
    "tests edited, on one line",
    "ex-a-checks, ex-a-hidden, ex-b-checks: edited, missing or of an earlier",
)
def _(document: Document) -> None:
    for name in ("ex-a-checks", "ex-a-hidden", "ex-b-checks"):
        find(document, name)["source"] = "pass"


@case("test deleted", "ex-a-checks: edited, missing or of an earlier version")
def _(document: Document) -> None:
    document["cells"].remove(find(document, "ex-a-checks"))


@case("test edited, in Colab", "ex-a-checks: edited, missing or of an earlier")
def _(document: Document) -> None:
    find(document, "ex-a-checks")["source"] = "pass"
    strip(document)


@case("set-up edited", "setup-1: edited, missing or of an earlier")
def _(document: Document) -> None:
    find(document, "setup-1")["source"] = "scale = 1000\nimport math"


@case("test turned to text", "ex-a-checks: edited, missing or of an earlier")
def _(document: Document) -> None:
    find(document, "ex-a-checks")["cell_type"] = "markdown"


@case("points changed", "ex-a-hidden, ex-w-yours: edited, missing or of an earlier version")
def _(document: Document) -> None:
    find(document, "ex-a-hidden")["metadata"]["nbgrader"]["points"] = 2000
    find(document, "ex-w-yours")["metadata"]["nbgrader"]["points"] = "all"


@case("extra code", "a cell of yours was not read (code: 'helper = 1')")
def _(document: Document) -> None:
    document["cells"].insert(4, code("helper = 1"))


@case("an answer in words below its cell", "not read (text: 'Because.'): only", w=W)
def _(document: Document) -> None:
    find(document, "ex-w-yours")["source"] = W
    document["cells"].insert(-1, text("Because."))


@case("code turned to text", "ex-a: the type of its cell was changed")
def _(document: Document) -> None:
    find(document, "ex-a-yours")["cell_type"] = "markdown"


@case(
    "format 3", "it is one of format 3, from before 2015. Open it in Jupyter and s", a=A, b=B, w=W
)
def _(document: Document) -> None:
    document["worksheets"] = [{"cells": document.pop("cells")}]
    document["nbformat"] = 3


@case("magics", a=f"%matplotlib inline\n!ls\n{MINE_A}")
def _(document: Document) -> None:
    find(document, "ex-a-yours")["source"] = f"%matplotlib inline\n!ls\n{MINE_A}"


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_notebook(name: str) -> None:
    edit, changed, remark = CASES[name]
    document = solved()
    edit(document)
    made = rebuild(RELEASE, json.dumps(document).encode())
    check(made, SOLVED | changed)
    assert made.remarks == () if not remark else remark in " | ".join(made.remarks)


def test_answers_that_count() -> None:
    document = solved()
    assert rebuild(RELEASE, json.dumps(document).encode()).found == 3
    find(document, "ex-b-yours")["source"] = B
    made = rebuild(RELEASE, json.dumps(document).encode())
    assert made.found == 2
    assert made.answers.keys() == {*SOLVED, "student"}


def test_an_empty_written_answer_is_marked() -> None:
    document = solved()
    for source, empty in ((W, True), ("  \n", True), ("Yes.", False)):
        find(document, "ex-w-yours")["source"] = source
        made = rebuild(RELEASE, json.dumps(document).encode()).notebook
        assert bool(made.cells[-2].metadata.tfviz.get("empty")) is empty


def test_the_pictures_of_an_answer_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "ATTACHED", 2 * len(PNG))
    document = solved()
    pictures = {f"{n}.png": {"image/png": PNG} for n in range(9)}
    find(document, "ex-w-yours")["attachments"] = pictures
    made = rebuild(RELEASE, json.dumps(document).encode())
    assert len(made.notebook.cells[-2].attachments) == 2
    assert made.remarks == ("ex-w: its pictures are too large, some were left out",)


def test_pictures_in_a_written_answer() -> None:
    document = solved()
    find(document, "ex-w-yours")["attachments"] = {
        "a.png": {"image/png": PNG},
        "b.svg": {"image/svg+xml": "<svg onload='x'/>"},
        "c.png": {"image/png": '"><script>'},
        "d.png": "nothing",
    }
    made = rebuild(RELEASE, json.dumps(document).encode()).notebook
    nbformat.validate(made)
    assert made.cells[-2].attachments == {"a.png": {"image/png": PNG}}


# --- files that are no notebooks -----------------------------------------------------------------

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "only spaces": (b" \n ", "it is empty"),
    "text": (b"I could not do it, sorry", "its JSON is broken"),
    "cut off": (json.dumps(solved()).encode()[:900], "its JSON is broken in line 1"),
    "a conflict of git": (
        json.dumps(solved(), indent=1).encode().replace(b'"cells"', b'<<<<<<< HEAD\n"cells"'),
        "its JSON is broken in line 2",
    ),
    "a list": (b"[1, 2]", "it holds no cells"),
    "a number": (b"3", "it holds no cells"),
    "null": (b"null", "it holds no cells"),
    "an object": (b"{}", "it holds no cells"),
    "cells is an object": (b'{"cells": {"a": 1}, "nbformat": 4}', "it holds no cells"),
    "deep": (b'{"cells": ' + b"[" * 100_000, "nested without end"),
    "deep and closed": (b"[" * 100_000 + b"]" * 100_000, "nested without end"),
    "a long number": (b'{"cells": [' + b"9" * 10_000 + b"]}", "is no notebook"),
    "a picture": (
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        "it is a picture. Hand in the notebook",
    ),
    "a zip": (
        b"PK\x03\x04" + bytes(100),
        "it is a zip archive. Unpack it, and hand in the notebook",
    ),
    "a gzip": (gzip.compress(json.dumps(solved()).encode()), "it is a gzip archive. Unpack it"),
    "a PDF": (b"%PDF-1.7\n", "it is a PDF. Hand in the notebook itself, the .ipynb file"),
    "a page": (b"\n <!DOCTYPE html><html>", "it is a web page. Hand in the notebook itself"),
    "a page of Windows": (b"\xef\xbb\xbf<html>", "it is a web page"),
    "many cells": (
        json.dumps({"nbformat": 4, "cells": [code("1")] * 6000}).encode(),
        "has 6000 cells; 5000 were read",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_notebook(name: str) -> None:
    data, remark = FILES[name]
    made = rebuild(RELEASE, data)
    check(made, STUBS)
    assert made.found == 0
    assert remark in " | ".join(made.remarks)


def version(release: Any) -> list[rebuilding.Version]:
    """As the store gives it back."""
    return [rebuilding.Version(**json.loads(json.dumps(rebuilding.version(release)._asdict())))]


def corrected() -> Any:
    """The release after a test was corrected, points changed, a cell added and a text rewritten."""
    made = copy.deepcopy(RELEASE)
    by = {one.id: one for one in made.cells}
    by["ex-a-checks"].source = "assert half(5) == 2.5"
    by["ex-a-hidden"].metadata.nbgrader.points = 7
    by["ex-w-yours"].metadata.nbgrader.points = 8
    by["setup-1"].source = "scale = 4"
    by["end"].source = "The end, at last."
    made.cells.insert(7, cell("code", "assert half(1) == 0.5", "ex-a-more", "hidden", 1))
    return made


def test_who_worked_in_an_earlier_version_has_edited_nothing() -> None:
    data = json.dumps(solved()).encode()
    now, before = corrected(), version(RELEASE)
    told = rebuilding.rebuild(now, *read_notebook(data)).remarks
    assert "ex-a-checks" in told[0] and "edited, missing or of an earlier version" in told[0]
    colab = solved()
    strip(colab)
    for file in (data, json.dumps(colab).encode()):
        made = rebuilding.rebuild(now, *read_notebook(file), before)
        assert made.remarks == () and made.found == 3
        assert {one.id: one.source for one in made.notebook.cells}["setup-1"] == "scale = 4"
        newest = version(now) + before
        assert rebuilding.rebuild(now, *read_notebook(file), newest).remarks == ()


def test_what_no_version_had_is_told_all_the_same() -> None:
    document = solved()
    find(document, "ex-a-checks")["source"] = "pass"
    document["cells"].remove(find(document, "ex-b-checks"))
    find(document, "ex-b-hidden")["metadata"]["nbgrader"]["points"] = 99
    document["cells"].append(code("helper = 1"))
    found = read_notebook(json.dumps(document).encode())
    said = rebuilding.rebuild(corrected(), *found, version(RELEASE)).remarks
    assert said[0].startswith("ex-a-checks, ex-b-checks, ex-b-hidden: edited, missing or of an")
    assert "not read (code: 'helper = 1')" in said[1]


def test_no_file() -> None:
    made = rebuild(RELEASE, None)
    check(made, STUBS)
    assert "no file for this notebook was found" in made.remarks[0]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_encodings(encoding: str) -> None:
    check(rebuild(RELEASE, json.dumps(solved()).encode(encoding)), SOLVED)


def test_not_utf8() -> None:
    document = solved()
    find(document, "ex-w-yours")["source"] = "für Ada"
    made = rebuild(RELEASE, json.dumps(document, ensure_ascii=False).encode("cp1252"))
    check(made, SOLVED | {"ex-w-yours": "für Ada"})
    assert "not valid utf-8" in made.remarks[0]


def test_a_script_is_no_notebook() -> None:
    made = rebuild(RELEASE, "\n\n".join(SOLVED.values()).encode())
    check(made, STUBS)
    assert "the file is no notebook" in made.remarks[0]


# --- folders -------------------------------------------------------------------------------------

OTHER = copy.deepcopy(RELEASE)
for _cell in OTHER.cells:
    _cell.id = _cell.metadata.nbgrader.grade_id = _cell.id.replace("ex-", "ex-other-")
    for _old, _new in (
        ("ex-", "ex-other-"),
        ("half", "third"),
        ("limit", "bound"),
        ("Ex", "Anoth"),
    ):
        _cell.source = _cell.source.replace(_old, _new)
RELEASES = {"one": RELEASE, "two": OTHER}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "submitted" / "ada" / "hw1"
    made.mkdir(parents=True)
    return made


def read_submission(folder: Path, releases: dict[str, Any]) -> dict[str, Rebuilt]:
    files, told = read_files(folder, releases)
    return rebuilding.read_submission(files, told, releases, folder.parent.name)


def write(path: Path, document: Document) -> None:
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("name", ["attention.py", "answers.docx", "attention.pdf", "work.zip"])
def test_a_lone_file_of_another_kind_is_named(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"x")
    (folder / "timestamp.txt").write_text("2026-11-30 18:00:00 UTC")
    said = read_submission(folder, RELEASES)["one"].remarks
    assert said[0] == (f"'{name}': not read, since only notebooks are: hand in the .ipynb file")
    write(folder / "one.ipynb", solved())  # beside a notebook it is nobody's concern
    assert not read_submission(folder, RELEASES)["one"].remarks


def test_a_folder_with_both_notebooks(folder: Path) -> None:
    write(folder / "one.ipynb", solved())
    nbformat.write(OTHER, folder / "two.ipynb")
    made = read_submission(folder, RELEASES)
    check(made["one"], SOLVED)
    assert (made["one"].found, made["two"].found) == (3, 0)
    assert made["one"].remarks == made["two"].remarks == ()


@pytest.mark.parametrize(
    "name",
    ["one (1).ipynb", "One.ipynb", "homework.IPYNB", "one.ipynb.txt", "one", "a/b.ipynb", "x.json"],
)
def test_a_wrong_name(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    write(folder / name, solved())
    made = read_submission(folder, {"one": RELEASE})["one"]
    check(made, SOLVED)
    assert made.remarks == (f"one.ipynb: read from the file {name!r}, where the answers are",)


def test_swapped_names(folder: Path) -> None:
    write(folder / "two.ipynb", solved())
    made = read_submission(folder, RELEASES)
    assert (made["one"].found, made["two"].found) == (3, 0)


def test_the_right_name_wins(folder: Path) -> None:
    document = solved()
    find(document, "ex-b-yours")["source"] = B
    write(folder / "one.ipynb", document)
    write(folder / "one-Copy1.ipynb", solved())
    made = read_submission(folder, {"one": RELEASE})["one"]
    assert made.found == 2
    assert "'one-Copy1.ipynb': not read" in made.remarks


def test_the_right_name_without_answers(folder: Path) -> None:
    nbformat.write(RELEASE, folder / "one.ipynb")
    few, most = solved(), solved()
    find(few, "ex-b-yours")["source"] = B
    write(folder / "a.ipynb", few)
    write(folder / "b.ipynb", most)
    made = read_submission(folder, {"one": RELEASE})["one"]
    check(made, SOLVED)
    assert "read from the file 'b.ipynb'" in made.remarks[0]


def test_a_broken_file_beside_a_good_one(folder: Path) -> None:
    (folder / "one.ipynb").write_bytes(b"{")
    write(folder / "good.ipynb", solved())
    check(read_submission(folder, {"one": RELEASE})["one"], SOLVED)


def test_links_pipes_and_folders_are_not_read(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "secret.ipynb", solved())
    (folder / "one.ipynb").symlink_to(tmp_path / "secret.ipynb")
    os.mkfifo(folder / "two.ipynb")
    (folder / "three.ipynb").mkdir()
    (folder / "four").symlink_to(tmp_path)
    (folder / "five.ipynb").symlink_to("/dev/zero")
    made = read_submission(folder, {"one": RELEASE})["one"]
    check(made, STUBS)
    said = " | ".join(made.remarks)
    for name in ("one.ipynb", "two.ipynb", "three.ipynb", "four", "five.ipynb"):
        assert f"'{name}' was not read: it is no ordinary file" in said


def test_the_folder_itself_is_a_link(folder: Path, tmp_path: Path) -> None:
    write(folder / "one.ipynb", solved())
    link = tmp_path / "link"
    link.symlink_to(folder)
    made = read_submission(link, {"one": RELEASE})["one"]
    check(made, STUBS)
    assert "the submission is no folder" in made.remarks[0]


def test_no_folder_and_an_empty_one(folder: Path) -> None:
    for place in (folder, folder / "nowhere"):
        made = read_submission(place, RELEASES)
        assert made.keys() == RELEASES.keys()
        check(made["one"], STUBS)


def test_a_huge_file_is_not_read(folder: Path) -> None:
    with open(folder / "one.ipynb", "wb") as file:
        file.truncate(5 << 30)  # takes no place on the disk
    made = read_submission(folder, {"one": RELEASE})["one"]
    check(made, STUBS)
    assert "it has 5,368,709,120 bytes, 20,971,520 would be read" in " | ".join(made.remarks)


def test_many_files(folder: Path) -> None:
    for number in range(200):
        (folder / f"{number}.txt").write_text("x")
    write(folder / "zzz.ipynb", solved())
    made = read_submission(folder, RELEASES)
    check(made["one"], SOLVED)
    told = [remark for one in made.values() for remark in one.remarks]
    assert told.count("201 files were handed in; 50 were looked at") == 1


def test_names_in_remarks_are_short(folder: Path) -> None:
    write(folder / ("<b>" + "x" * 200 + ".ipynb"), solved())
    made = read_submission(folder, {"one": RELEASE})["one"]
    check(made, SOLVED)
    assert max(map(len, made.remarks)) < 150


@pytest.mark.parametrize(("named", "told"), [("ada", False), (" Ada ", False), ("bob", True)])
def test_somebody_elses_numbers(folder: Path, named: str, told: bool) -> None:
    document = solved()
    source = f'# exercise: student  (keep this line)\nSTUDENT = "{named}"  # me'
    find(document, "student")["source"] = source
    write(folder / "one.ipynb", document)
    remarks = read_submission(folder, {"one": RELEASE})["one"].remarks
    assert any("graded with the numbers of 'ada'" in line for line in remarks) is told


@pytest.mark.parametrize("deep", ["[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900])
@pytest.mark.parametrize("name", ["points", "x"])
def test_nested_metadata_harm_nobody(deep: str, name: str) -> None:
    document = solved()
    find(document, "ex-b-checks")["metadata"]["nbgrader"][name] = "DEEP"
    made = rebuild(RELEASE, json.dumps(document).replace('"DEEP"', deep).encode())
    check(made, SOLVED)
    assert any("ex-b-checks: edited" in line for line in made.remarks) == (name == "points")


def test_the_bytes_of_a_submission_are_bounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "one.ipynb", solved())
    size = (folder / "one.ipynb").stat().st_size
    monkeypatch.setattr(rebuilding, "BYTES", 2 * size)
    for name in ("a.ipynb", "b.ipynb"):
        write(folder / name, solved())
    made = read_submission(folder, {"one": RELEASE})["one"]
    check(made, SOLVED)
    assert any("'b.ipynb' was not read: it has" in line for line in made.remarks)
    assert not any("'a.ipynb' was not read" in line for line in made.remarks)
