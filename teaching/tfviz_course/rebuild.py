"""Submissions rebuilt from the release: of a student's file only the answers are taken over.

**Which cell is the answer to what** is said by its metadata (nbgrader's ``grade_id``, ours, or the
cell's id) or, where these are lost as in Colab, by the line ``exercise: label  (keep this line)``.
Nothing else is tried: not the names that a cell defines, nor its place. Of several cells that say
that they are the answer, as students copy cells, *the last one* with something of the student's in
it counts, because it is the one that holds when a notebook is run from top to bottom.

Nothing here raises because of what a student did; what is odd becomes a remark, which the student
reads in the feedback. Remarks of one sort are one line.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from nbformat import NotebookNode

from tfviz_course.students import few, shown

FILE = 20 * 2**20  # bytes of one file that are read
FILES = 50  # files of one submission that are looked at
BYTES = 40 * 2**20  # of all files of one submission
ANSWER = 200_000  # characters of one answer
CELLS = 5_000  # cells of one notebook
ATTACHED = 4_000_000  # characters of the pictures of one answer
BESIDE = ("timestamp.txt", "submission_secret.txt")  # files of nbgrader's
NO_FILE = "no file for this notebook was found: all answers are empty"
SUFFIXES = {"", ".ipynb", ".json", ".txt"}

MARKER = re.compile(r"^[ \t]*(?:#|<!--)[ \t]*exercise:[ \t]*([\w.-]+)", re.MULTILINE)
_UNPACK = "Unpack it, and hand in the notebook inside"
# how files begin that are no notebooks, whatever they are called
OTHERS = {
    b"PK\3\4": f"a zip archive. {_UNPACK}",
    b"\x1f\x8b": f"a gzip archive. {_UNPACK}",
    b"7z\xbc\xaf": f"a 7z archive. {_UNPACK}",
    b"Rar!": f"a RAR archive. {_UNPACK}",
    b"%PDF": "a PDF. Hand in the notebook itself, the .ipynb file",
    b"<": "a web page. Hand in the notebook itself, the .ipynb file",
    b"\xef\xbb\xbf<": "a web page. Hand in the notebook itself, the .ipynb file",
    b"\x89PNG": "a picture. Hand in the notebook itself, the .ipynb file",
    b"\xff\xd8\xff": "a picture. Hand in the notebook itself, the .ipynb file",
}
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
STUDENT = re.compile(r"""^STUDENT\s*=.*?(["'])([^"'\n]*)\1\s*(?:#.*)?$""", re.MULTILINE)
PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}


@dataclass(frozen=True)
class Rebuilt:
    """A submission's notebook as it is graded."""

    notebook: NotebookNode
    answers: dict[str, str]  # sources by grade_id, of the answer cells that were found
    remarks: tuple[str, ...] = ()
    found: int = 0  # how many of them are answers, not untouched stubs


class Cell(NamedTuple):
    kind: str
    source: str
    ids: tuple[str, ...]  # the grade_ids that its metadata name, most telling first
    points: object
    attachments: Mapping[str, Any]


def _label(cell: NotebookNode) -> str:
    """The exercise of an answer cell, as its marker line names it."""
    if marked := MARKER.search(cell.source):
        return marked[1]
    return str(cell.metadata.get("tfviz", {}).get("exercise", cell.metadata.nbgrader.grade_id))


def _untouched(stub: NotebookNode, source: str) -> bool:
    """Whether `source` is the stub, or holds nothing at all."""
    if _squeezed(source) == _squeezed(stub.source):
        return True
    nothing = "(#.*)?" if stub.cell_type == "code" else "(-->)?"
    return all(re.fullmatch(nothing, line.strip()) for line in MARKER.sub("", source).splitlines())


def _squeezed(source: str) -> str:
    return "".join(source.split())


class Version(NamedTuple):
    """What students were given as a notebook at some time."""

    cells: Mapping[str, Sequence[Any]]  # by grade_id: type, source without blanks, points
    sources: Collection[str]  # of all its cells, without blanks


def version(release: NotebookNode) -> Version:
    """A released notebook as it is told from its later versions."""
    graded = [(cell.metadata.get("nbgrader", {}), cell) for cell in release.cells]
    cells = {
        info["grade_id"]: [cell.cell_type, _squeezed(cell.source), info.get("points")]
        for info, cell in graded
        if info.get("grade_id")
    }
    return Version(cells, [_squeezed(cell.source) for cell in release.cells])


def rebuild(
    release: NotebookNode,
    cells: Sequence[Cell] = (),
    told: Sequence[str] = (NO_FILE,),
    earlier: Sequence[Version] = (),
) -> Rebuilt:
    """The release with the answers of a file, as `read_notebook` gives them; else of no file. Who
    worked in one of the `earlier` versions has not edited what was different in it."""
    remarks = list(told)
    graded = ((cell.metadata.get("nbgrader", {}).get("grade_id"), cell) for cell in release.cells)
    ours = {name: cell for name, cell in graded if name}
    stubs = {name: cell for name, cell in ours.items() if cell.metadata.nbgrader.get("solution")}
    labels = {_label(stub): name for name, stub in stubs.items()}
    there: dict[str | None, list[Cell]] = {}
    for cell in cells:
        named = [name for name in cell.ids if name in ours]
        named += [labels[mark[1]] for mark in MARKER.finditer(cell.source) if mark[1] in labels]
        there.setdefault(named[0] if named else None, []).append(cell)
    chosen: dict[str, Cell] = {}
    for name in filter(there.__contains__, stubs):
        label = _label(stubs[name])
        live = [cell for cell in there[name] if not _untouched(stubs[name], cell.source)]
        chosen[name] = (live or there[name])[-1]
        if len({_squeezed(cell.source) for cell in live}) > 1:
            remarks.append(f"{label}: {len(live)} cells hold an answer; the last was read")
        if chosen[name].kind != stubs[name].cell_type:
            remarks.append(f"{label}: the type of its cell was changed; it was read")
    if cells:
        if lost := [_label(stub) for name, stub in stubs.items() if name not in chosen]:
            remarks.append(f"{few(lost)}: its answer cell was not found, it counts as empty")
        if changed := _changed(ours, there, earlier):
            said = "edited, missing or of an earlier version; the assignment's own cells and points"
            remarks.append(f"{few(changed)}: {said} count")
    remarks += _unread(there.get(None, ()), release, earlier)
    made, count = copy.deepcopy(release), 0
    sources: dict[str, str] = {}
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name not in stubs:
            continue
        if name in chosen:
            cell.source = sources[name] = _taken_over(cell, chosen[name], remarks)
        empty = _untouched(stubs[name], cell.source)
        if cell.cell_type == "markdown" and empty:
            cell.metadata.setdefault("tfviz", NotebookNode())["empty"] = True
        count += not empty and name != "student"
    return Rebuilt(made, sources, tuple(dict.fromkeys(remarks)), count)


def _taken_over(cell: NotebookNode, answer: Cell, remarks: list[str]) -> str:
    """The text of an answer, or the stub's where it is too long; pictures that were pasted into a
    written one go into `cell`, as many as fit."""
    label = _label(cell)
    source = _clean(answer.source)
    if source != answer.source:
        remarks.append(f"{label}: signs that cannot be printed were taken out")
    if len(source) > ANSWER:
        said = f"the answer has {len(source)} characters and counts as empty"
        remarks.append(f"{label}: {said}; at most {ANSWER} are read")
        source = cell.source
    kept, left = NotebookNode(), ATTACHED
    for name, bundle in answer.attachments.items() if cell.cell_type == "markdown" else ():
        for kind in PICTURES:
            data = picture(bundle.get(kind)) if isinstance(bundle, dict) else ""
            left -= len(data)
            if data and left >= 0:
                kept.setdefault(shown(name)[1:-1], NotebookNode())[kind] = data
    if left < 0:
        remarks.append(f"{label}: its pictures are too large, some were left out")
    if kept:
        cell.attachments = kept
    return source


def _changed(
    ours: Mapping[str, NotebookNode],
    there: Mapping[str | None, Sequence[Cell]],
    earlier: Sequence[Version],
) -> list[str]:
    """The cells of the release that are not in the submission as they were, or with other points;
    of an answer's only the points count. As they were is how any version had them."""
    kept = {_squeezed(cell.source) for cells in there.values() for cell in cells}
    found = []
    for name, cell in ours.items():
        info = cell.metadata.nbgrader
        before = [one.cells[name] for one in earlier if name in one.cells]
        given = [(kind, source) for kind, source, _ in before]
        given.append((cell.cell_type, _squeezed(cell.source)))
        mine = {(c.kind, _squeezed(c.source)) for c in there.get(name, ())}
        worth = [points for _, _, points in before]
        points = (None, info.get("points"), *worth) if info.get("grade") else ()
        lost = info.get("grade") and not mine and kept.isdisjoint(source for _, source in given)
        lost = lost and len(before) == len(earlier)  # a version without it cannot have lost it
        edited = not info.get("solution") and (lost or mine.difference(given))
        if edited or any(points and c.points not in points for c in there.get(name, ())):
            found.append(name)
    return found


def _unread(cells: Sequence[Cell], release: NotebookNode, earlier: Sequence[Version]) -> list[str]:
    """Say which code and which words of the student's own were not read."""
    ours = {"", *version(release).sources}.union(*(one.sources for one in earlier))
    own = [cell for cell in cells if _squeezed(cell.source) not in ours]
    told = []
    for what in ("code", "text"):
        if some := [cell.source for cell in own if (cell.kind == "code") is (what == "code")]:
            first = _clean(some[0].strip().splitlines()[0])[:60]
            number = "a cell of yours was" if len(some) == 1 else f"{len(some)} cells of yours were"
            told.append(f"{number} not read ({what}: {first!r}): only answer cells are")
    return told


# --- reading files -------------------------------------------------------------------------------


def read_files(folder: Path, wanted: Collection[str] = ()) -> tuple[dict[str, bytes], list[str]]:
    """The files in submitted/<student>/<assignment> and one level below, by name, and remarks on
    what was not read. No link is followed; `wanted` are names of notebooks, which are read first.
    """
    paths: list[Path] = []
    remarks = []
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return {}, ["the submission is no folder, it was not read"]
        for path in sorted(folder.iterdir()):
            below = path.is_dir() and not path.is_symlink()
            paths += [path] if path.suffix or not below else []
            paths += sorted(path.iterdir()) if below and path.name[:1] not in "._" else []
    except OSError as error:
        remarks.append(f"the submission cannot be read: {error.strerror}")
    paths = [path for path in paths if not path.name.startswith((".", "__"))]
    others = [path for path in paths if path.suffix.lower() not in SUFFIXES]
    paths = [path for path in paths if path not in others]
    if others and all(path.name in BESIDE for path in paths):
        names = few([shown(path.name) for path in others])
        remarks.append(f"{names}: not read, since only notebooks are: hand in the .ipynb file")
    first = {*BESIDE, *(f"{name}.ipynb" for name in wanted)}
    paths.sort(key=lambda path: (path.name not in first, path.suffix != ".ipynb"))
    if len(paths) > FILES:
        remarks.append(f"{len(paths)} files were handed in; {FILES} were looked at")
    found: dict[str, bytes] = {}
    for path in paths[:FILES]:
        name = path.relative_to(folder).as_posix()
        try:
            found[name] = read_plain(path, min(FILE, BYTES - sum(map(len, found.values()))))
        except OSError as error:
            remarks.append(f"{shown(name)} was not read: {error.strerror}")
    return found, remarks


def read_plain(
    path: str | Path, most: int, folder: int | None = None, owner: int | None = None
) -> bytes:
    """The content of an ordinary file, below an open `folder` if one is given. Raises OSError if it
    is none or larger than `most`; where `owner` is given, for files of others and for second names.
    """
    if not stat.S_ISREG(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode):
        raise OSError(0, "it is no ordinary file")
    # neither follows a link nor waits for a pipe that was put there meanwhile
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with open(file, "rb") as source:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(0, "it is no ordinary file")
        if owner is not None and (info.st_uid != owner or info.st_nlink > 1):
            raise OSError(0, "it is another account's, or has another name elsewhere")
        if info.st_size > most:
            raise OSError(0, f"it has {info.st_size:,} bytes, {most:,} would be read")
        return source.read(most)


def read_submission(
    files: Mapping[str, bytes],
    remarks: Sequence[str],
    releases: Mapping[str, NotebookNode],
    student: str,
    earlier: Mapping[str, Sequence[Version]] | None = None,
) -> dict[str, Rebuilt]:
    """What a student handed in, rebuilt: for each notebook of the release, by name.

    The file with the notebook's own name is read, unless it has no answer at all and another file
    has some: then the file with most answers, whatever it is called. `files` and `remarks` are
    what `read_files` gives; `earlier` are older versions of the notebooks.
    """
    cells = {name: read_notebook(data) for name, data in files.items() if name not in BESIDE}
    made = {}
    unread = {name for name in cells if name.endswith(".ipynb")}
    for notebook, release in releases.items():
        exact = f"{notebook}.ipynb"
        before = (earlier or {}).get(notebook, ())
        tries = {name: rebuild(release, *cells[name], before) for name in cells}
        if exact in tries and tries[exact].found:
            tries = {exact: tries[exact]}
        best = max(tries, key=lambda name: (tries[name].found, name == exact), default=exact)
        rebuilt = tries.get(best)
        if rebuilt is None or (best != exact and not rebuilt.found):
            rebuilt = rebuild(release)
        else:
            unread.discard(best)
        told = [*rebuilt.remarks, *_numbers(rebuilt, student)]
        if rebuilt.found and best != exact:
            told.insert(0, f"{exact}: read from the file {shown(best)}, where the answers are")
        made[notebook] = replace(rebuilt, remarks=tuple(told))
    first = next(iter(releases))  # where what is about all files is told, once
    told = [f"{few(sorted(map(shown, unread)))}: not read"] if unread else []
    made[first] = replace(made[first], remarks=(*remarks, *made[first].remarks, *told))
    return made


def _numbers(rebuilt: Rebuilt, student: str) -> list[str]:
    """A student who worked with somebody else's numbers should hear of it."""
    named = STUDENT.search(rebuilt.answers.get("student", ""))
    if not named or named[2].strip().casefold() in ("", student.strip().casefold()):
        return []
    theirs, own = shown(named[2]), shown(student)
    said = f"the notebook's STUDENT is {theirs}, the submission is from {own}"
    return [f"{said}: it is graded with the numbers of {own}"]


def read_notebook(data: bytes) -> tuple[list[Cell], list[str]]:
    """The cells of a notebook, and remarks."""
    remarks = []
    raw, why = None, "it holds no cells. Open it in Jupyter and save it again"
    head = data[:1000].lstrip()
    if kind := next((kind for begin, kind in OTHERS.items() if head.startswith(begin)), ""):
        return [], [f"the file is no notebook of format 4: it is {kind}"]
    try:
        try:
            document = json.loads(data)
        except UnicodeDecodeError as error:
            remarks.append(f"the file is not valid {error.encoding}; signs may be wrong")
            document = json.loads(data.decode("cp1252", "replace"))
        raw = document.get("cells") if isinstance(document, dict) else None
        if isinstance(document, dict) and isinstance(document.get("worksheets"), list):
            why = "it is one of format 3, from before 2015. Open it in Jupyter and save it again"
    except RecursionError:
        why = "it is nested without end"
    except ValueError as error:
        place = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        why = f"its JSON is broken{place}" if data.strip() else "it is empty"
    if not isinstance(raw, list) or not raw:
        return [], [*remarks, f"the file is no notebook of format 4: {why}"]
    if len(raw) > CELLS:
        remarks.append(f"the notebook has {len(raw)} cells; {CELLS} were read")
    found = [_cell(cell) for cell in raw[:CELLS]]
    if broken := sum(cell is None for cell in found):
        remarks.append(f"{broken} of the notebook's cells are broken, not read")
    return [cell for cell in found if cell is not None], remarks


def _cell(raw: object) -> Cell | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("source"), str | list):
        return None

    def part(whole: Mapping[str, Any], name: str) -> dict[str, Any]:
        found = whole.get(name)
        return found if isinstance(found, dict) else {}

    source = _text(raw["source"]).replace("\r\n", "\n").replace("\r", "\n")
    metadata = part(raw, "metadata")
    info, ours = part(metadata, "nbgrader"), part(metadata, "tfviz")
    named = f"{ours.get('exercise')}-{ours.get('role')}" if ours else None
    ids = (info.get("grade_id"), named, raw.get("id"), metadata.get("id"))
    told = tuple(i for i in ids if isinstance(i, str))
    kind = raw.get("cell_type")
    kind = kind if isinstance(kind, str) else "raw"
    return Cell(kind, source, told, info.get("points"), part(raw, "attachments"))


def _text(value: object) -> str:
    """A text in a notebook, which may be a list of lines."""
    lines = value if isinstance(value, list) else [value]
    return "".join(line for line in lines if isinstance(line, str))


def _clean(source: str) -> str:
    """The text without signs that no editor shows."""
    return CONTROL.sub("", source).encode("utf-8", "replace").decode()


def picture(value: object) -> str:
    """`value` if it is a PNG or JPEG picture in base64, else an empty string."""
    text = _squeezed(_text(value))
    try:
        start = base64.b64decode(text, validate=True)[:8]
    except ValueError:
        return ""
    return text if start.startswith(tuple(PICTURES.values())) else ""
