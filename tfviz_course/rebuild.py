"""Submissions rebuilt from the release: of a student's file only the answers are taken over.

A rebuilt notebook is the release with the student's text in the answer cells. Tests, set-up,
points and every other cell are the release's, whatever the file holds; outputs are dropped. So an
edited test changes nothing, and a deleted one is there again.

**Which cell is the answer to what** is said by its metadata (nbgrader's ``grade_id``, ours, or the
cell's id) or, where these are lost as in Colab, by the line ``exercise: label  (keep this line)``.
Nothing else is tried: not the names that a cell defines, nor its place. Where several cells say
that they are the answer, as students copy cells, those that hold nothing or what the release has do
not count, and of the others *the last one* does, because it is the one that holds when a notebook
is run from top to bottom.

Nothing here raises because of what a student did; what is odd becomes a remark, which the student
reads in the feedback. Remarks of one sort are one line.
"""

from __future__ import annotations

import base64
import binascii
import copy
import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict

FILE = 20 * 2**20  # bytes of one file that are read
FILES = 50  # files of one submission that are looked at
BYTES = 40 * 2**20  # of all files of one submission
ANSWER = 200_000  # characters of one answer
CELLS = 5_000  # cells of one notebook
LARGE = 5 * 2**20  # bytes from which the student hears of dropped outputs
ATTACHED = 4_000_000  # characters of the pictures of one answer
BESIDE = ("timestamp.txt", "submission_secret.txt")  # files of nbgrader's
SUFFIXES = {"", ".ipynb", ".json", ".txt"}

MARKER = re.compile(r"^[ \t]*(?:#|<!--)[ \t]*exercise:[ \t]*([\w.-]+)", re.MULTILINE)
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
STUDENT = re.compile(r"""^STUDENT\s*=.*?(["'])([^"'\n]*)\1\s*(?:#.*)?$""", re.MULTILINE)
PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}


@dataclass(frozen=True)
class Rebuilt:
    """A submission's notebook as it is graded.

    answers: grade_id -> source of each answer cell that was found; a missing key means the stub.
    found: how many of them are answers, not untouched stubs.
    """

    notebook: NotebookNode
    answers: dict[str, str]
    remarks: tuple[str, ...] = ()
    found: int = 0


@dataclass(frozen=True)
class _Cell:
    """A cell of a submission."""

    kind: str
    source: str
    ids: tuple[str, ...] = ()  # the grade_ids that its metadata name, most telling first
    points: object = None
    intact: bool = False  # nbgrader's checksum says that nobody edited it
    attachments: Mapping[str, Any] = field(default_factory=dict)


def _known(release: NotebookNode, *, answers: bool) -> dict[str, NotebookNode]:
    """The cells of the release by grade_id: the student's, or all others."""
    infos = [(cell, cell.metadata.get("nbgrader", {})) for cell in release.cells]
    return {
        info["grade_id"]: cell
        for cell, info in infos
        if info.get("grade_id") and bool(info.get("solution")) is answers
    }


def _label(cell: NotebookNode) -> str:
    """The exercise of an answer cell, as its marker line names it."""
    marked = MARKER.search(cell.source)
    about = cell.metadata
    return str(
        marked[1] if marked else about.get("tfviz", {}).get("exercise", about.nbgrader.grade_id)
    )


def _untouched(stub: NotebookNode, source: str) -> bool:
    """Whether `source` is the stub, or holds nothing at all."""
    if _squeezed(source) == _squeezed(stub.source):
        return True
    lines = MARKER.sub("", source).splitlines()
    if stub.cell_type == "code":
        return not any(line.strip() and not line.lstrip().startswith("#") for line in lines)
    return not any(line.strip() not in ("", "-->") for line in lines)


def _squeezed(source: str) -> str:
    return "".join(source.split())


# --- rebuilding ----------------------------------------------------------------------------------


def rebuild(release: NotebookNode, submitted: bytes | None) -> Rebuilt:
    """The release with the answers of the file `submitted`; None means that there is no file."""
    if submitted is None:
        return _rebuild(release, [], ["no file for this notebook was found: all answers are empty"])
    remarks: list[str] = []
    return _rebuild(release, _read(submitted, remarks), remarks)


def _rebuild(release: NotebookNode, cells: Sequence[_Cell], remarks: list[str]) -> Rebuilt:
    answers = _known(release, answers=True)
    labels = {_label(cell): grade_id for grade_id, cell in answers.items()}
    owners = [_owner(cell, release, labels, remarks) for cell in cells]
    _changes(cells, owners, release, remarks)
    chosen: dict[str, _Cell] = {}
    lost = []
    for grade_id, stub in answers.items():
        mine = [c for c, owner in zip(cells, owners, strict=True) if owner == grade_id]
        live = [cell for cell in mine if not _untouched(stub, cell.source)]
        if not mine:
            lost.append(_label(stub))
            continue
        chosen[grade_id] = (live or mine)[-1]
        if len({_squeezed(cell.source) for cell in live}) > 1:
            remarks.append(f"{_label(stub)}: {len(live)} cells hold an answer; the last was read")
        if chosen[grade_id].kind != stub.cell_type:
            remarks.append(f"{_label(stub)}: the type of its cell was changed; it was read")
    if lost and cells:
        remarks.append(f"{_few(lost)}: its answer cell was not found, it counts as empty")
    _extra(cells, owners, release, remarks)
    return _filled(release, answers, chosen, remarks)


def _owner(
    cell: _Cell, release: NotebookNode, labels: Mapping[str, str], remarks: list[str]
) -> str | None:
    """The grade_id of the cell of the release that this is; None for a student's own."""
    known = {c.metadata.nbgrader.grade_id for c in release.cells if "nbgrader" in c.metadata}
    named = next((name for name in cell.ids if name in known), None)
    marks = [mark[1] for mark in MARKER.finditer(cell.source) if mark[1] in labels]
    own = named or (labels[marks[0]] if marks else None)
    others = [mark for mark in dict.fromkeys(marks) if labels[mark] != own]
    if others and own:
        label = next((label for label, grade_id in labels.items() if grade_id == own), own)
        remarks.append(
            f"{label}: its cell also says that it is {_few(others)}; it was read as {label} alone"
        )
    return own


def _filled(
    release: NotebookNode,
    answers: Mapping[str, NotebookNode],
    chosen: Mapping[str, _Cell],
    remarks: list[str],
) -> Rebuilt:
    """The release with the chosen texts in its answer cells."""
    made = copy.deepcopy(release)
    sources: dict[str, str] = {}
    count = 0
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id not in answers:
            continue
        stub = answers[grade_id]
        if grade_id in chosen:
            source = _clean(chosen[grade_id].source, _label(stub), remarks)
            if len(source) > ANSWER:
                remarks.append(
                    f"{_label(stub)}: the answer has {len(source)} characters and counts as "
                    f"empty; at most {ANSWER} are read"
                )
                source = stub.source
            cell.source = sources[grade_id] = source
            if stub.cell_type == "markdown":
                _attach(cell, chosen[grade_id].attachments, _label(stub), remarks)
        empty = _untouched(stub, cell.source)
        if stub.cell_type == "markdown" and empty:
            cell.metadata.setdefault("tfviz", NotebookNode())["empty"] = True
        count += not empty and grade_id != "student"
    return Rebuilt(made, sources, tuple(dict.fromkeys(remarks)), count)


def _changes(
    cells: Sequence[_Cell],
    owners: Sequence[str | None],
    release: NotebookNode,
    remarks: list[str],
) -> None:
    """Say what was done to cells that are not the student's, and to points."""
    if not cells:
        return
    locked, answers = _known(release, answers=False), _known(release, answers=True)
    there: dict[str, list[_Cell]] = {}
    for cell, owner in zip(cells, owners, strict=True):
        if owner:
            there.setdefault(owner, []).append(cell)

    def worth(grade_id: str) -> object:
        info = {**locked, **answers}[grade_id].metadata.nbgrader
        return info.get("points") if info.get("grade") else None

    def same(cell: _Cell, grade_id: str) -> bool:
        ours = locked[grade_id]
        return cell.kind == ours.cell_type and _squeezed(cell.source) == _squeezed(ours.source)

    def other(cell: _Cell, grade_id: str) -> bool:
        return worth(grade_id) is not None and cell.points not in (None, worth(grade_id))

    earlier = any(
        cell.intact and (not same(cell, grade_id) or other(cell, grade_id))
        for grade_id in locked
        for cell in there.get(grade_id, ())
    )
    if earlier:
        remarks.append("made from an earlier version of the assignment; graded by the present one")
    points = [
        grade_id
        for grade_id in {**locked, **answers}
        if any(
            other(cell, grade_id) and not (cell.intact or (earlier and grade_id in answers))
            for cell in there.get(grade_id, ())
        )
    ]
    if points:
        remarks.append(f"{_few(points)}: points were changed; those of the assignment count")
    kept = {_squeezed(cell.source) for cell in cells}
    edited = [
        grade_id
        for grade_id, ours in locked.items()
        if any(not same(cell, grade_id) and not cell.intact for cell in there.get(grade_id, ()))
        or (
            ours.metadata.nbgrader.get("grade")
            and grade_id not in there
            and _squeezed(ours.source) not in kept
        )
    ]
    if edited:
        remarks.append(f"{_few(edited)}: edited or missing; the original is used")


def _extra(
    cells: Sequence[_Cell],
    owners: Sequence[str | None],
    release: NotebookNode,
    remarks: list[str],
) -> None:
    """Say which code and which words of the student's own were not read."""
    ours = {_squeezed(cell.source) for cell in release.cells}
    own = [c for c, owner in zip(cells, owners, strict=True) if owner is None and c.source.strip()]
    own = [cell for cell in own if _squeezed(cell.source) not in ours]
    for what in ("code", "text"):
        some = [cell.source for cell in own if (cell.kind == "code") is (what == "code")]
        if some:
            first = _clean(some[0].strip().splitlines()[0], "", [])[:60]
            number = "a cell of yours was" if len(some) == 1 else f"{len(some)} cells of yours were"
            remarks.append(f"{number} not read ({what}: {first!r}): only answer cells are")


def _few(things: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(things[:most])
    return shown if len(things) <= most else f"{shown} and {len(things) - most} more"


# --- reading files -------------------------------------------------------------------------------


def fingerprint(folder: Path) -> str:
    """A mark of all that `read_submission` can see in a folder."""
    seen: list[object] = []
    left = BYTES
    remarks: list[str] = []
    for path in _files(folder, remarks):
        name = path.relative_to(folder).as_posix()
        data = read_bytes(path, name, remarks) if left > 0 else None
        left -= len(data or b"")
        digest = hashlib.sha256(data).hexdigest() if data is not None else path.lstat().st_mtime_ns
        seen.append([name, digest])
    for name in BESIDE:
        if os.path.lexists(folder / name):
            data = read_bytes(folder / name, name, remarks)
            seen.append([name, hashlib.sha256(data or b"").hexdigest()])
    return hashlib.sha256(repr([seen, remarks]).encode("utf-8", "replace")).hexdigest()


def read_submission(folder: Path, releases: Mapping[str, NotebookNode]) -> dict[str, Rebuilt]:
    """What a student handed in, rebuilt: for each notebook of the release, by name.

    folder      submitted/<student>/<assignment>
    The file with the notebook's own name is read, unless it has no answer at all and another file
    has some: then the file with most answers, whatever it is called.
    """
    remarks: list[str] = []
    cells: dict[str, list[_Cell]] = {}
    told: dict[str, list[str]] = {}
    left = BYTES
    for path in sorted(_files(folder, remarks), key=lambda path: path.stem not in releases):
        name = path.relative_to(folder).as_posix()
        data = read_bytes(path, name, remarks)
        if data is None:
            continue
        if len(data) > left:
            remarks.append(
                f"{_shown(name)} was not read: at most {BYTES >> 20} MB of a submission are"
            )
            continue
        left -= len(data)
        told[name] = []
        cells[name] = _read(data, told[name])
    made = {}
    read = set()
    for notebook, release in releases.items():
        exact = f"{notebook}.ipynb"
        tries = {name: _rebuild(release, cells[name], list(told[name])) for name in cells}
        best = max(tries, key=lambda name: (tries[name].found, name == exact), default=exact)
        if exact in tries and (tries[exact].found or not tries[best].found):
            best = exact
        rebuilt = tries.get(best)
        if rebuilt is None or (best != exact and not rebuilt.found):
            rebuilt = rebuild(release, None)
        else:
            read.add(best)
            if best != exact:
                line = f"{exact}: read from the file {_shown(best)}, where the answers are"
                rebuilt = replace(rebuilt, remarks=(line, *rebuilt.remarks))
        own = _numbers(rebuilt, folder.parent.name)
        made[notebook] = replace(rebuilt, remarks=(*remarks, *rebuilt.remarks, *own))
        remarks = []
    unread = [_shown(name) for name in cells if name.endswith(".ipynb") and name not in read]
    if unread and made:
        first = next(iter(made))
        line = f"{_few(unread)}: not read"
        made[first] = replace(made[first], remarks=(*made[first].remarks, line))
    return made


def _numbers(rebuilt: Rebuilt, student: str) -> list[str]:
    """A student who worked with somebody else's numbers should hear of it."""
    named = STUDENT.search(rebuilt.answers.get("student", ""))
    if named and named[2].strip() and named[2].strip().casefold() != student.strip().casefold():
        return [
            f"the notebook's STUDENT is {_shown(named[2])}, the submission is from "
            f"{_shown(student)}: it is graded with the numbers of {_shown(student)}"
        ]
    return []


def _files(folder: Path, remarks: list[str]) -> list[Path]:
    """The files in the folder, and one level below, that can be a notebook; no link is followed."""
    found: list[Path] = []
    odd: list[str] = []
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            remarks.append("the submission is no folder, it was not read")
            return []
        inside = sorted(os.scandir(folder), key=lambda entry: entry.name)
        for entry in list(inside):
            if entry.is_dir(follow_symlinks=False) and not _ignored(entry.name):
                inside += sorted(os.scandir(entry), key=lambda entry: entry.name)
        for entry in inside:
            path = Path(entry.path)
            if _ignored(entry.name) or path.suffix.lower() not in SUFFIXES:
                continue
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                found.append(path)
            elif not stat.S_ISDIR(mode) or path.suffix:
                odd.append(_shown(entry.name))
    except OSError as error:
        remarks.append(f"the submission cannot be read: {error.strerror}")
    if odd:
        remarks.append(f"{_few(odd)}: no ordinary file, not read")
    if len(found) > FILES:
        found.sort(key=lambda path: path.suffix != ".ipynb")
        remarks.append(f"{len(found)} files were handed in; {FILES} were looked at")
    return found[:FILES]


def _ignored(name: str) -> bool:
    return name.startswith((".", "__")) or name in BESIDE


def read_bytes(path: Path, name: str, remarks: list[str]) -> bytes | None:
    try:
        # neither follows a link nor waits for a pipe that was put there meanwhile
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode) or info.st_size > FILE:
                raise OSError(0, f"it has {info.st_size >> 20} MB, at most {FILE >> 20} are read")
            return file.read(FILE)
    except OSError as error:
        remarks.append(f"{_shown(name)} cannot be read: {error.strerror}")
        return None


def _read(data: bytes, remarks: list[str]) -> list[_Cell]:
    """The cells of a notebook."""
    if len(data) > FILE:
        remarks.append(f"the file has {len(data) >> 20} MB, at most {FILE >> 20} are read")
        return []
    if not data.strip():
        remarks.append("the file is empty")
        return []
    if len(data) > LARGE:
        remarks.append(f"the file has {len(data) >> 20} MB: outputs are not read")
    encoding = json.detect_encoding(data)
    try:
        text = data.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        remarks.append(f"the file is not valid {encoding}; signs may be wrong")
        text = data.decode("cp1252", "replace")
    try:
        document = json.loads(text)
    except RecursionError:
        remarks.append("the file is no notebook: it is nested without end")
        return []
    except ValueError as error:
        place = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        remarks.append(f"the file is no notebook: its JSON is broken{place}")
        return []
    raw = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(raw, list):
        remarks.append(
            "the file is no notebook of format 4: it holds no cells. Open it in Jupyter and save "
            "it again"
        )
        return []
    if (version := document.get("nbformat")) != 4:
        remarks.append(f"the notebook's format is {_shown(version)}, not 4; it was read")
    if not raw:
        remarks.append("the notebook has no cells")
    if len(raw) > CELLS:
        remarks.append(f"the notebook has {len(raw)} cells; {CELLS} were read")
    found = [_cell(cell) for cell in raw[:CELLS]]
    if broken := sum(cell is None for cell in found):
        remarks.append(f"{broken} of the notebook's cells are broken, not read")
    return [cell for cell in found if cell is not None]


def _cell(raw: object) -> _Cell | None:
    if not isinstance(raw, dict):
        return None
    source = raw.get("source")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    info, ours = metadata.get("nbgrader"), metadata.get("tfviz")
    info, ours = (thing if isinstance(thing, dict) else {} for thing in (info, ours))
    ids = [info.get("grade_id"), raw.get("id"), metadata.get("id")]
    ids.insert(1, f"{ours.get('exercise')}-{ours.get('role')}")
    kind = raw.get("cell_type")
    attachments = raw.get("attachments")
    points = info.get("points")
    return _Cell(
        kind if isinstance(kind, str) else "raw",
        source,
        tuple(i for i in ids if isinstance(i, str)),
        points if isinstance(points, int | float | None) else "no number",
        _intact(source, kind, info),
        attachments if isinstance(attachments, dict) else {},
    )


def _intact(source: str, kind: object, info: Mapping[str, Any]) -> bool:
    """Whether nbgrader's checksum, which the release carries, fits the cell."""
    from nbgrader.utils import compute_checksum

    cell = {"source": source, "cell_type": kind, "metadata": {"nbgrader": dict(info)}}
    try:
        return bool(info.get("checksum") == compute_checksum(from_dict(cell)))
    except Exception:  # metadata can hold anything, such as lists nested without end
        return False


# --- what is taken over --------------------------------------------------------------------------


def _clean(source: str, label: str, remarks: list[str]) -> str:
    """The text with plain ends of lines, and without signs that no editor shows."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    clean = CONTROL.sub("", text).encode("utf-8", "replace").decode()
    if clean != text:
        remarks.append(f"{label}: signs that cannot be printed were taken out")
    return clean


def _shown(value: object) -> str:
    """Something of a student's in a remark: short, on one line."""
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except RecursionError:
        text = type(value).__name__
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= 60 else f"{text[:59]}…"


def _attach(
    cell: NotebookNode, attachments: Mapping[str, Any], label: str, remarks: list[str]
) -> None:
    """Keep the pictures that were pasted into a written answer, as many as fit."""
    kept = NotebookNode()
    left = ATTACHED
    for name, bundle in attachments.items():
        if isinstance(bundle, dict):
            pictures = {kind: picture(bundle.get(kind)) for kind in PICTURES}
            pictures = {kind: data for kind, data in pictures.items() if data}
            left -= sum(map(len, pictures.values()))
            if left < 0:
                remarks.append(f"{label}: its pictures are too large, some were left out")
                break
            if pictures:
                kept[_shown(name)[1:-1]] = NotebookNode(pictures)
    if kept:
        cell.attachments = kept


def picture(value: object, longest: int = 4_000_000) -> str:
    """`value` if it is a PNG or JPEG picture in base64 and not too large, else an empty string."""
    lines = value if isinstance(value, list) else [value]
    text = "".join("".join(line.split()) for line in lines if isinstance(line, str))
    if not text or len(text) > longest:
        return ""
    try:
        start = base64.b64decode(text, validate=True)[:8]
    except (binascii.Error, ValueError):
        return ""
    return text if start.startswith(tuple(PICTURES.values())) else ""
