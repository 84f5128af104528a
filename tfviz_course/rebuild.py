"""Submissions rebuilt from the release: of a student's file only the answers are taken over.

A rebuilt notebook is the release with the student's text in the answer cells. Tests, set-up,
points and every other cell are the release's, whatever the file holds; outputs are dropped. So an
edited test changes nothing, and a deleted one is there again.

**Which cell is the answer to what.** Three signs speak for a cell: its metadata (nbgrader's
``grade_id``, ours, or the cell's id) and the line ``# exercise: label  (keep this line)`` count 2
each, a name of the exercise that its code binds counts 1. A cell belongs to the exercise for which
most speaks; on equal terms metadata decide, since they tell where the cell was. Metadata get lost
in Colab, the line gets lost by tidying up; one of the three is enough.

**Several cells for one exercise**, as students copy cells: those that are as the release has them,
or hold nothing but comments, do not count. Of the others those with metadata or the line come
before those found by name, those that bind a name of the exercise before those that do not, and
then *the last one* is taken, because it is the one that holds when a notebook is run from top to
bottom. A cell that was split keeps its metadata in every part: where no name of the exercise is
bound twice, all parts that define something are read, one below the other. Cells that were merged
are divided at their marker lines.

**Written answers** are found by metadata or marker, and by their place: text of the student's
after the exercise's own text, before the next cell of the release.

Nothing here raises because of what a student did; what is odd becomes a remark, which the student
reads in the feedback.
"""

from __future__ import annotations

import ast
import base64
import binascii
import copy
import json
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict

FILE = 20 * 2**20  # bytes of one file that are read
FILES = 50  # files of one submission that are looked at
BYTES = 40 * 2**20  # of all files of one submission
CODE = 1_000_000  # characters of one submission in which names are looked for
ANSWER = 200_000  # characters of one answer
CELLS = 5_000  # cells of one notebook
LARGE = 5 * 2**20  # bytes from which the student hears of dropped outputs
SUFFIXES = {"", ".ipynb", ".json", ".py", ".txt"}

MARKER = re.compile(r"^[ \t]*(?:#|<!--)[ \t]*exercise:[ \t]*([\w.-]+)", re.MULTILINE)
SPLIT = re.compile(r"^# (?:In ?\[[\d ]*\]:|%%.*|<codecell>).*$", re.MULTILINE)
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
    """A cell, or a piece of one, of a submission."""

    kind: str
    source: str
    ids: tuple[str, ...] = ()  # the grade_ids that its metadata name, most telling first
    points: object = None
    intact: bool = False  # nbgrader's checksum says that nobody edited it
    attachments: Mapping[str, Any] = field(default_factory=dict)
    parsed: bool = True  # whether names are looked for in it

    @cached_property
    def names(self) -> frozenset[str]:
        """What `bound` says of it."""
        return bound(self.source) if self.parsed else frozenset()


@dataclass(frozen=True)
class _Answer:
    """An answer cell of the release."""

    grade_id: str
    label: str
    kind: str
    stub: str
    names: frozenset[str]

    def untouched(self, source: str) -> bool:
        """Whether `source` is the stub, or holds nothing at all."""
        if _squeezed(source) == _squeezed(self.stub):
            return True
        lines = MARKER.sub("", source).splitlines()
        if self.kind == "code":
            return not any(line.strip() and not line.lstrip().startswith("#") for line in lines)
        return not any(line.strip() not in ("", "-->") for line in lines)


# --- the release ---------------------------------------------------------------------------------


def answer_cells(release: NotebookNode) -> dict[str, _Answer]:
    """The answer cells of a release by grade_id."""
    cells = [cell for cell in release.cells if cell.metadata.get("nbgrader", {}).get("solution")]
    others = [cell.source for cell in release.cells if cell not in cells]
    taken = frozenset().union(*(bound(source) for source in others))
    made = {}
    for cell in cells:
        grade_id = cell.metadata.nbgrader.grade_id
        marked = MARKER.search(cell.source)
        label = marked[1] if marked else cell.metadata.get("tfviz", {}).get("exercise", grade_id)
        names = bound(cell.source) - taken if cell.cell_type == "code" else frozenset()
        made[grade_id] = _Answer(grade_id, label, cell.cell_type, cell.source, names)
    return made


def bound(source: str) -> frozenset[str]:
    """Names that the source of a code cell binds at top level; imports do not count.

    A source that is too long for an answer binds nothing: Python takes a thousand times its size
    in memory to read it.
    """
    if len(source) > ANSWER:
        return frozenset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape in a student's string
            body = ast.parse(_no_magics(source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = re.findall(
            r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)",
            source,
            re.MULTILINE,
        )
        return frozenset(name for pair in found for name in pair if name)
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            inside = [node for target in targets for node in ast.walk(target)]
            names |= {
                node.id
                for node in inside
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
    return frozenset(names)


def _defines(piece: _Cell) -> bool:
    """Whether its code does more than to call, show and test things."""
    if not piece.parsed or len(piece.source) > ANSWER:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(_no_magics(piece.source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return not all(isinstance(line, ast.Expr | ast.Assert | ast.Pass) for line in body)


def _no_magics(source: str) -> str:
    return re.sub(r"^[ \t]*[%!?].*$", "", source, flags=re.MULTILINE)


def _squeezed(source: str) -> str:
    return "".join(source.split())


# --- rebuilding ----------------------------------------------------------------------------------


def rebuild(release: NotebookNode, submitted: bytes | None) -> Rebuilt:
    """The release with the answers of the file `submitted`; None means that there is no file."""
    if submitted is None:
        return _rebuild(release, [], ["no file for this notebook was found: all answers are empty"])
    remarks: list[str] = []
    return _rebuild(release, _bounded(_read(submitted, remarks, [release])), remarks)


def _rebuild(
    release: NotebookNode, cells: Sequence[_Cell], remarks: list[str], *, by_name: bool = True
) -> Rebuilt:
    answers = answer_cells(release)
    pieces = [piece for cell in cells for piece in _pieces(cell, answers, remarks)]
    owners = _owners(pieces, answers, release, by_name)
    _changes(pieces, owners, release, remarks)
    chosen: dict[str, _Cell] = {}
    read: set[int] = set()
    for grade_id, answer in answers.items():
        mine = [(index, sure) for index, (owner, sure) in enumerate(owners) if owner == grade_id]
        parts = _choose(answer, mine, pieces, remarks)
        index = parts[-1] if parts else None
        if index is not None:
            text = "\n\n".join(pieces[part].source for part in parts)
            chosen[grade_id] = replace(pieces[index], source=text)
            read |= set(parts)
        if answer.kind == "markdown" and (index is None or answer.untouched(pieces[index].source)):
            below = _below(answer, pieces, owners, release)
            if below:
                text = "\n\n".join(pieces[index].source for index in below)
                chosen[grade_id] = replace(pieces[below[0]], source=text)
                read |= set(below)
                remarks.append(f"{answer.label}: your text below its answer cell was read")
        if grade_id not in chosen and cells:
            remarks.append(f"{answer.label}: its answer cell was not found, it counts as empty")
    _extra(pieces, owners, read, remarks)
    return _filled(release, answers, chosen, remarks)


def _filled(
    release: NotebookNode,
    answers: Mapping[str, _Answer],
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
        answer = answers[grade_id]
        if grade_id in chosen:
            source = _clean(chosen[grade_id].source, answer.label, remarks)
            if len(source) > ANSWER:
                remarks.append(
                    f"{answer.label}: the answer has {len(source)} characters and counts as "
                    f"empty; at most {ANSWER} are read"
                )
                source = answer.stub
            cell.source = sources[grade_id] = source
            if answer.kind == "markdown":
                _attach(cell, chosen[grade_id].attachments)
        empty = answer.untouched(cell.source)
        if answer.kind == "markdown" and empty:
            cell.metadata.setdefault("tfviz", NotebookNode())["empty"] = True
        count += not empty and grade_id != "student"
    return Rebuilt(made, sources, tuple(dict.fromkeys(remarks)), count)


def _pieces(cell: _Cell, answers: Mapping[str, _Answer], remarks: list[str]) -> Iterator[_Cell]:
    """The cell, or its parts where it has the marker lines of several exercises."""
    labels = {answer.label for answer in answers.values()}
    starts = [mark for mark in MARKER.finditer(cell.source) if mark[1] in labels]
    found = list(dict.fromkeys(mark[1] for mark in starts))
    if len(found) < 2:
        yield cell
        return
    remarks.append(f"{_few(found)}: in one cell; it was divided at the lines '# exercise: …'")
    begin = [0, *(mark.start() for mark in starts[1:])]  # what stands above belongs to the first
    for start, end in zip(begin, [*begin[1:], len(cell.source)], strict=True):
        yield replace(cell, source=cell.source[start:end].rstrip(), ids=())


def _owners(
    pieces: Sequence[_Cell],
    answers: Mapping[str, _Answer],
    release: NotebookNode,
    by_name: bool,
) -> list[tuple[str | None, int]]:
    """For each piece the grade_id of the cell of the release that it is, and how sure that is."""
    locked = _locked(release)
    texts: dict[str, str] = {}
    for grade_id, cell in locked.items():
        texts.setdefault(_squeezed(cell.source), grade_id)
    owners: list[tuple[str | None, int]] = []
    for piece in pieces:
        named = next((i for i in piece.ids if i in answers or i in locked), None)
        labels = {mark[1] for mark in MARKER.finditer(piece.source)}
        names = piece.names if by_name and piece.kind == "code" else frozenset()
        speaks = {
            grade_id: 2 * (grade_id == named)
            + 2 * (answer.label in labels)
            + (answer.names.isdisjoint(names) is False and named not in locked)
            for grade_id, answer in answers.items()
        }
        best = max(speaks, key=lambda grade_id: (speaks[grade_id], grade_id == named), default="")
        if best and speaks[best]:
            owners.append((best, speaks[best]))
        elif named is not None:
            owners.append((named, 2))
        elif (text := _squeezed(piece.source)) in texts:
            owners.append((texts[text], 0))
        else:
            owners.append((None, 0))
    return owners


def _locked(release: NotebookNode) -> dict[str, NotebookNode]:
    """The cells of the release that are not the student's, by grade_id."""
    infos = [(cell, cell.metadata.get("nbgrader", {})) for cell in release.cells]
    return {
        info["grade_id"]: cell
        for cell, info in infos
        if info.get("grade_id") and not info.get("solution")
    }


def _choose(
    answer: _Answer,
    mine: Sequence[tuple[int, int]],
    pieces: Sequence[_Cell],
    remarks: list[str],
) -> list[int]:
    """Indices of the pieces that are the answer, by the rule that the module describes."""
    live = [(index, sure) for index, sure in mine if not answer.untouched(pieces[index].source)]
    if not live:
        return [mine[-1][0]] if mine else []
    strong = [index for index, sure in live if sure >= 2]
    binds = {index: answer.names & pieces[index].names for index, _ in live}
    pool = strong
    if not any(binds[index] for index in strong):  # the answer itself can be in a cell beside it
        pool = [index for index in binds if index in strong or binds[index]]
    parts = [index for index in pool if binds[index]][-1:] or pool[-1:]
    told = _few(sorted(binds[parts[0]]))
    if not strong:
        remarks.append(f"{answer.label}: its answer was found by the name {told}")
    elif len({_squeezed(pieces[index].source) for index in pool}) > 1:
        if binds[parts[0]]:
            parts = _split(pool, binds, pieces) or parts
        if len(parts) > 1:
            remarks.append(f"{answer.label}: {len(parts)} cells hold parts of it; all were read")
        elif parts == pool[-1:]:
            remarks.append(f"{answer.label}: {len(pool)} cells hold an answer; the last was read")
        else:
            remarks.append(
                f"{answer.label}: {len(pool)} cells hold an answer; the last with {told} was read"
            )
    if pieces[parts[-1]].kind != answer.kind:
        remarks.append(
            f"{answer.label}: the type of its cell was changed; it was read all the same"
        )
    return parts


def _split(
    pool: Sequence[int], binds: Mapping[int, frozenset[str]], pieces: Sequence[_Cell]
) -> list[int]:
    """The parts of a cell that was split; empty if these are copies: a name is bound twice."""
    names = [name for index in pool for name in binds[index]]
    if len(names) > len(set(names)):
        return []
    return [index for index in pool if binds[index] or _defines(pieces[index])]


def _below(
    answer: _Answer,
    pieces: Sequence[_Cell],
    owners: Sequence[tuple[str | None, int]],
    release: NotebookNode,
) -> list[int]:
    """Pieces of text that the student wrote below a written answer's cell, or in its place."""
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in release.cells]
    place = ids.index(answer.grade_id)
    anchors = {answer.grade_id, *(ids[place - 1 : place] if place else [])} - {None}
    at = [index for index, (owner, _) in enumerate(owners) if owner in anchors]
    found: list[int] = []
    for index in range(at[-1] + 1 if at else len(pieces), len(pieces)):
        if owners[index][0] is not None or pieces[index].kind == "code":
            break
        if pieces[index].source.strip():
            found.append(index)
    return found


def _changes(
    pieces: Sequence[_Cell],
    owners: Sequence[tuple[str | None, int]],
    release: NotebookNode,
    remarks: list[str],
) -> None:
    """Say what was done to cells that are not the student's."""
    if not pieces:
        return
    locked = _locked(release)
    infos = {grade_id: cell.metadata.nbgrader for grade_id, cell in locked.items()}
    infos |= {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader
        for cell in release.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    kept = {_squeezed(piece.source) for piece in pieces}
    earlier = any(
        piece.intact and owner in locked and _differs(piece, locked[owner])
        for piece, (owner, _) in zip(pieces, owners, strict=True)
    )
    if earlier:
        remarks.append("made from an earlier version of the assignment; graded by the present one")
    count: dict[str, int] = {}
    for piece, (owner, sure) in zip(pieces, owners, strict=True):
        if owner is None:
            continue
        info = infos[owner]
        other = info.get("grade") and piece.points not in (None, info.get("points"))
        if other and not (piece.intact or (earlier and owner not in locked)):
            remarks.append(f"{owner}: its points were changed; those of the assignment count")
        if owner not in locked or sure < 2:
            continue
        count[owner] = count.get(owner, 0) + 1
        if piece.kind != locked[owner].cell_type:
            remarks.append(f"{owner}: the type of this cell was changed; the original is used")
        if _squeezed(piece.source) != _squeezed(locked[owner].source) and not piece.intact:
            what = "this test" if info.get("grade") else "this cell"
            remarks.append(f"{owner}: {what} was edited; the original is used")
    for owner in [owner for owner, times in count.items() if times > 1]:
        remarks.append(f"{owner}: this cell was there {count[owner]} times; it is used once")
    tests = [
        grade_id
        for grade_id, cell in locked.items()
        if infos[grade_id].get("grade")
        and grade_id not in count
        and _squeezed(cell.source) not in kept
    ]
    if tests:
        remarks.append(f"{_few(tests)}: this test was missing or edited; the original is used")


def _differs(piece: _Cell, original: NotebookNode) -> bool:
    info = original.metadata.nbgrader
    return _squeezed(piece.source) != _squeezed(original.source) or (
        bool(info.get("grade")) and piece.points != info.get("points")
    )


def _extra(
    pieces: Sequence[_Cell],
    owners: Sequence[tuple[str | None, int]],
    read: set[int],
    remarks: list[str],
) -> None:
    """Say which code of the student's own was not read."""
    lines = []
    for index, (piece, (owner, sure)) in enumerate(zip(pieces, owners, strict=True)):
        alone = owner is None or (sure == 1 and index not in read)
        code = [line for line in piece.source.splitlines() if line.strip()]
        if piece.kind == "code" and alone and code:
            lines.append(code[0])
    if lines:
        what = "a code cell of yours was" if len(lines) == 1 else f"{len(lines)} code cells were"
        first = _clean(lines[0], "", [])[:60]
        remarks.append(f"{what} not read ({first!r}): only answer cells are")


def _few(things: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(things[:most])
    return shown if len(things) <= most else f"{shown} and {len(things) - most} more"


# --- reading files -------------------------------------------------------------------------------


def read_submission(folder: Path, releases: Mapping[str, NotebookNode]) -> dict[str, Rebuilt]:
    """What a student handed in, rebuilt: for each notebook of the release, by name.

    folder      submitted/<student>/<assignment>
    The file with the notebook's own name is read, unless it has no answer at all and another file
    has some: then the file with most answers, whatever it is called.
    """
    remarks: list[str] = []
    cells: dict[str, list[_Cell]] = {}
    told: dict[str, list[str]] = {}
    left, most = BYTES, CODE
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
        cells[name] = _bounded(_read(data, told[name], releases.values()), most)
        most -= sum(len(cell.source) for cell in cells[name] if cell.parsed)
    made = {}
    read = set()
    for notebook, release in releases.items():
        exact = f"{notebook}.ipynb"
        others = {f"{other}.ipynb" for other in releases} - {exact}
        tries = {
            name: _rebuild(release, cells[name], list(told[name]), by_name=name not in others)
            for name in cells
        }
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
                remarks.append(f"{_shown(entry.name)} is no ordinary file, it was not read")
    except OSError as error:
        remarks.append(f"the submission cannot be read: {error.strerror}")
    if len(found) > FILES:
        found.sort(key=lambda path: path.suffix != ".ipynb")
        remarks.append(f"{len(found)} files were handed in; {FILES} were looked at")
    return found[:FILES]


def _ignored(name: str) -> bool:
    return name.startswith((".", "__")) or name in ("timestamp.txt", "submission_secret.txt")


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


def _read(data: bytes, remarks: list[str], releases: Iterable[NotebookNode]) -> list[_Cell]:
    """The cells of a notebook, or of the script that was exported from one."""
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
        if MARKER.search(text):
            remarks.append("the file is a script, not a notebook; it was read all the same")
            return list(_script(text, releases))
        place = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        remarks.append(f"the file is no notebook: its JSON is broken{place}")
        return []
    return _cells(document, remarks)


def _bounded(cells: Iterable[_Cell], most: int = CODE) -> list[_Cell]:
    """The cells; beyond `most` characters no names are looked for, which takes time."""
    found = []
    for cell in cells:
        parsed = len(cell.source) <= min(most, ANSWER)
        most -= len(cell.source) if parsed else 0
        found.append(replace(cell, parsed=parsed))
    return found


def _script(text: str, releases: Iterable[NotebookNode]) -> Iterator[_Cell]:
    """The code cells of a notebook that was saved as Python."""
    locked = [
        cell.source.strip()
        for release in releases
        for cell in _locked(release).values()
        if cell.cell_type == "code" and cell.source.strip()
    ]
    cuts = {0, len(text)}
    cuts |= {mark.start() for pattern in (MARKER, SPLIT) for mark in pattern.finditer(text)}
    for source in locked:  # an export without marks between cells: tests end an answer
        place = text.find(source)
        if place >= 0:
            cuts |= {place, place + len(source)}
    edges = sorted(cuts)
    for start, end in pairwise(edges):
        source = SPLIT.sub("", text[start:end]).strip()
        if source:
            yield _Cell("code", source)


def _cells(document: object, remarks: list[str]) -> list[_Cell]:
    if not isinstance(document, dict):
        remarks.append("the file is no notebook: it holds no cells")
        return []
    version = document.get("nbformat")
    raw = document.get("cells")
    if raw is None and isinstance(document.get("worksheets"), list):  # nbformat 3
        sheets = [sheet for sheet in document["worksheets"] if isinstance(sheet, dict)]
        lists = [sheet.get("cells") for sheet in sheets]
        raw = [cell for cells in lists if isinstance(cells, list) for cell in cells]
    if not isinstance(raw, list):
        remarks.append("the file is no notebook: it holds no cells")
        return []
    if version not in (3, 4):
        remarks.append(
            f"the notebook's format is {_shown(version)}, not 4; it was read all the same"
        )
    if not raw:
        remarks.append("the notebook has no cells")
    if len(raw) > CELLS:
        remarks.append(f"the notebook has {len(raw)} cells; {CELLS} were read")
    found = [_cell(cell) for cell in raw[:CELLS]]
    broken = sum(cell is None for cell in found)
    if broken:
        remarks.append(f"{broken} cells of the notebook are broken, they were not read")
    return [cell for cell in found if cell is not None]


def _cell(raw: object) -> _Cell | None:
    if not isinstance(raw, dict):
        return None
    source = raw.get("source", raw.get("input"))
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


def _attach(cell: NotebookNode, attachments: Mapping[str, Any]) -> None:
    """Keep the pictures that were pasted into a written answer."""
    kept = NotebookNode()
    for name, bundle in attachments.items():
        if isinstance(bundle, dict):
            pictures = {kind: picture(bundle.get(kind)) for kind in PICTURES}
            pictures = {kind: data for kind, data in pictures.items() if data}
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
