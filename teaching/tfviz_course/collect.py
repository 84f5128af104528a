"""Collecting what students hand in, when some of them may mean harm.

**Files**, from mail or a learning platform: anybody can name a file. So only what the platform
named says whose it is (`Uploads`), the id is checked, and what is already there is replaced only
where the instructor says so (`NamedFiles`).

**A hub.** nbgrader would take work in another's name, follow links to files that only the
instructor can read, and stop at the first file that it cannot copy. `OwnWork` takes plain files
only, files them under the account that owns them, goes on. It needs an account for each student.
"""

from __future__ import annotations

import contextlib
import logging
import lzma
import os
import pwd
import re
import secrets
import struct
import sys
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import yaml
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from nbgrader.utils import parse_utc

from tfviz_course import students
from tfviz_course.rebuild import read_plain

MOST_FILES = 100
MOST_BYTES = 50_000_000  # of one submission
MOST_MEMBERS = 50_000  # files in one archive of a class
MOST_OF_ALL = 4 << 30  # bytes that one such archive unpacks to
DEEPEST = 10  # folders in folders
ARCHIVES = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".7z", ".rar")
UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, NotImplementedError, zlib.error, lzma.LZMAError),
    *(zipfile.BadZipFile, tarfile.TarError, struct.error),
)
# What a Mac, Jupyter or a spreadsheet's folder adds; nobody has handed it in. A Mac packs a file
# ._NAME beside each file, which ends like it and holds no notebook.
SHADOWS = {"__MACOSX", ".DS_Store", ".ipynb_checkpoints", "__pycache__", "Thumbs.db", "desktop.ini"}
NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.IGNORECASE)
EXPORT = re.compile(r"assignment_\d+_export")  # the folder in which Gradescope packs submissions
SUBMITTERS = "submission_metadata.yml"  # Gradescope's, which says whose each of them is
# what a browser, a Mac or Google Drive adds to the name of an archive
AGAIN = re.compile(r"(-\d{8}T\d{6}Z(-\d+)*| \(?\d+\)?)$")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[-_ ](\d\d)-(\d\d)-(\d\d)")  # as Blackboard writes it
SECRET = "submission_secret.txt"  # nbgrader's: by it the student finds the feedback
TIME = "timestamp.txt"


class Uploads(ExtractorPlugin):
    """`c.ZipCollectApp.extractor_plugin = "tfviz_course.collect.Uploads"` does this.

    Takes notebooks out of the archives in the folder `archive`, and copies those that lie there as
    they are. What is in the top level of an archive, or in that folder, was named by the platform;
    all below it by one student, whose *upload* it is. So archives in archives stay closed, an
    upload has limits, and whatever is odd about one is told and does not touch the others.
    A folder that is called like the archive and holds all of it is no level of its own.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.opened: set[str] = set()  # archives; what comes out lies in a folder of this name
        self.log.addFilter(_shown)  # nbgrader logs names as they are

    def extract(self, archive_path: str, extracted_path: str) -> None:
        """Called by nbgrader once, with the folders to read and to fill."""
        top = Path(archive_path)
        said = self.parent.collector_plugin_inst.upload_of
        for path in sorted(top.iterdir()):
            packed = path.suffix.lower() in self.zip_ext
            opened = packed and path.is_file() and not path.is_symlink()
            if opened and (student := said(path.name)):
                # from mail, or from an archive that was unpacked by hand: its names are a student's
                self.log.warning(
                    "Left out %s: by its name it is an upload of %s, so the names in it prove "
                    "nothing. Take the notebooks out of it yourself; or, if it holds the uploads "
                    "of a class, give it another name",
                    *(students.shown(name) for name in (path.name, student)),
                )
            elif opened:
                self.opened.add(path.name)
                try:
                    with _members(path) as members:
                        inside = self._named(self._unfolded(members, path.name), path.name)
                        self._take(inside, Path(extracted_path) / path.name, path.name)
                except UNREADABLE as error:
                    self.log.warning(
                        "Left out %s: it cannot be read as an archive (%s). Download it again",
                        students.shown(path.name),
                        _one_line(error),
                    )
            else:
                here = [path] if not path.is_dir() else sorted(path.rglob("*"))
                plain = [_plain_member(top, file) for file in here if not file.is_dir()]
                self._take(_handed_in(plain), Path(extracted_path), "")

    def _unfolded(self, members: Sequence[Member], archive: str) -> list[Member]:
        """The files of an archive, without the one folder around all of them that no student made:
        one that is called like the archive, or Gradescope's."""
        members = _handed_in(members)
        tops = {PurePosixPath(one.name).parts[0] for one in members}
        top = next(iter(tops), "")
        if len(tops) != 1 or any(len(PurePosixPath(one.name).parts) < 2 for one in members):
            return members
        stem = archive.removesuffix(".gz").rpartition(".")[0]
        ours = EXPORT.fullmatch(top) or AGAIN.sub("", top) == AGAIN.sub("", stem)
        if not ours or self.parent.collector_plugin_inst.upload_of(f"{top}/x.ipynb"):
            return members
        return [one._replace(name=one.name.removeprefix(f"{top}/")) for one in members]

    def _named(self, members: Sequence[Member], archive: str) -> list[Member]:
        """The files of an archive. Gradescope names each folder by the number of a submission, and
        says in a file beside them whose it is: the number gives way to the student's id, or to
        each of them in a group."""
        listed = [one for one in members if one.name == SUBMITTERS]
        if not listed:
            return list(members)
        try:
            whose = _submitters(listed[0].read(MOST_BYTES))
        except (*UNREADABLE, yaml.YAMLError) as error:
            said = "Left out %s: its %s cannot be read (%s)"
            self.log.warning(said, students.shown(archive), SUBMITTERS, _one_line(error))
            return []
        found: list[Member] = []
        for one in members:
            top, _, rest = one.name.partition("/")
            if not rest:
                continue
            if top not in whose:
                said = "Left out %s in %s: %s does not say whose it is"
                self.log.warning(
                    said, students.shown(one.name), students.shown(archive), SUBMITTERS
                )
            found += [one._replace(name=f"submission_{who}/{rest}") for who in whose.get(top, ())]
        return found

    def _take(self, members: Sequence[Member], to: Path, archive: str) -> None:
        """Write the notebooks of one archive, upload by upload."""
        uploads: dict[str, list[Member]] = {}
        for member in members:
            uploads.setdefault(PurePosixPath(member.name).parts[0], []).append(member)
        kinds = tuple(self.parent.collector_plugin_inst.valid_ext)
        for name, mine in uploads.items():
            place = f"{students.shown(name)} in {archive}" if archive else students.shown(name)
            notebooks = [one for one in mine if one.name.endswith(kinds)]
            others = [one.name for one in mine if not one.name.endswith(kinds)]
            if closed := [one for one in others if one.lower().endswith(ARCHIVES)]:
                self.log.warning(
                    "The upload %s holds archives, which are not opened: %s. Take the notebooks "
                    "out of them yourself",
                    place,
                    students.few(list(map(students.shown, closed))),
                )
            if plain := [one for one in others if one not in closed]:
                listed = students.few(list(map(students.shown, plain)))
                self.log.warning("Left out of the upload %s, no notebooks: %s", place, listed)
            if why := _refused(notebooks):
                self.log.warning("Left out the upload %s: %s", place, why)
                continue
            for one in notebooks:
                try:
                    content = one.read(MOST_BYTES)
                    file = to / one.name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
                except UNREADABLE as error:
                    what = students.shown(one.name)
                    self.log.warning("Left out %s of the upload %s: %s", what, place, error)


def _shown(record: logging.LogRecord) -> bool:
    """Write out, in what is logged, what steers a terminal or turns the direction of writing."""
    record.msg, record.args = students.visible(record.getMessage()), ()
    return True


def _one_line(error: BaseException) -> str:
    """What an error says, in its first line, which is one sentence."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(":") if lines else type(error).__name__


def _submitters(text: bytes) -> dict[str, list[str]]:
    """Whose each folder of a Gradescope export is: the student ids that the class list there has,
    or the addresses where it has none. Raises ValueError where that cannot be found."""
    table = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # the fast one, if any
    if not isinstance(table, dict):
        raise ValueError("it is no table")
    found: dict[str, list[str]] = {}
    for folder, about in table.items():
        people = about.get(":submitters") if isinstance(about, dict) else None
        every = [one for one in people or () if isinstance(one, dict)]
        names = [one.get(":sid") or one.get(":email") for one in every]
        found[str(folder)] = [str(name).strip().replace("/", " ") for name in names if name]
    return found


class Member(NamedTuple):
    """A file in an archive: its name there, its size in bytes, and what reads that much of it."""

    name: str
    size: int
    read: Callable[[int], bytes]


def _handed_in(members: Sequence[Member]) -> list[Member]:
    """The files that somebody handed in, by names in one form: a Mac takes letters apart, é into e
    and an accent, Windows writes capitals, and browsers add .txt or .json to a notebook."""
    plain = [unicodedata.normalize("NFC", one.name) for one in members]
    plain = [NOTEBOOK.sub(".ipynb", name) for name in plain]
    named = [one._replace(name=name) for one, name in zip(members, plain, strict=True)]
    parts = [PurePosixPath(one.name).parts for one in named]
    return [
        one
        for one, folders in zip(named, parts, strict=True)
        if SHADOWS.isdisjoint(folders) and not folders[-1].startswith("._")
    ]


def _plain_member(folder: Path, file: Path) -> Member:
    def read(most: int) -> bytes:
        return read_plain(str(file), most)

    return Member(file.relative_to(folder).as_posix(), file.lstat().st_size, read)


def _refused(notebooks: Sequence[Member]) -> str:
    """Why the notebooks of an upload are not taken; empty if they are."""
    names = [one.name for one in notebooks]
    if len(names) > MOST_FILES:
        return f"it has {len(names):,} notebooks; at most {MOST_FILES} are read"
    if (size := sum(one.size for one in notebooks)) > MOST_BYTES:
        return f"its notebooks have {size:,} bytes; at most {MOST_BYTES:,} are read"
    for name in names:
        parts = PurePosixPath(name).parts
        if ".." in parts or name.startswith("/") or "\\" in name or "\0" in name:
            return f"{students.shown(name)} would leave the folder"
        if len(parts) > DEEPEST:
            return f"{students.shown(name)} lies in more than {DEEPEST} folders"
        if names.count(name) > 1:
            return f"{students.shown(name)} is in it {names.count(name)} times"
    return ""


@contextlib.contextmanager
def _members(archive: Path) -> Iterator[list[Member]]:
    """The plain files of an archive. Raises one of `UNREADABLE` if it is none, or too large."""
    with contextlib.ExitStack() as stack:
        found: list[Member] = []
        if zipfile.is_zipfile(archive):
            packed = stack.enter_context(zipfile.ZipFile(archive))
            for info in packed.infolist():
                read = partial(_read_zipped, packed, info)
                found += [Member(_written(info), info.file_size, read)] * (not info.is_dir())
        else:
            taped = stack.enter_context(tarfile.open(archive))
            for part in taped:
                if part.offset_data + part.size > MOST_OF_ALL:
                    raise OSError(0, f"it unpacks to more than {MOST_OF_ALL:,} bytes")
                read = partial(_read_taped, taped, part)
                found += [Member(part.name, part.size, read)] * part.isreg()
        found = [one for one in found if PurePosixPath(one.name).parts]
        if len(found) > MOST_MEMBERS:
            raise OSError(0, f"it holds {len(found):,} files; at most {MOST_MEMBERS:,} are read")
        yield found


def _written(info: zipfile.ZipInfo) -> str:
    """The name of a file in a zip archive. A Mac writes UTF-8 and does not say so."""
    with contextlib.suppress(UnicodeError):
        if not info.flag_bits & 0x800:
            return info.filename.encode("cp437").decode("utf-8")
    return info.filename


def _read_zipped(packed: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    with packed.open(info) as source:
        return source.read(most)


def _read_taped(taped: tarfile.TarFile, part: tarfile.TarInfo, most: int) -> bytes:
    source = taped.extractfile(part)
    return source.read(most) if source else b""


class NamedFiles(FileNameCollectorPlugin):
    """`c.ZipCollectApp.collector_plugin = "tfviz_course.collect.NamedFiles"` does this."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # (student, name of a notebook) -> the files that say that they are it
        self.claims: dict[tuple[str, str], list[str]] | None = None
        self.replaced: dict[str, bool] = {}

    def upload_of(self, name: str) -> str:
        """The id that a name in the top level gives; empty if it gives none."""
        match = re.match(self.named_regexp, f"/{name}") if self.named_regexp else None
        return (match.groupdict().get("student_id") or "") if match else ""

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """What nbgrader's collector makes of one file; None, with a warning, where that is odd."""
        info: dict[str, str] | None = super().collect(submitted_file)
        if info is None or not {"student_id", "file_id"} <= info.keys():
            return info  # of a pattern that lacks one, nbgrader tells
        student, name = info["student_id"] or "", info["file_id"] or ""
        if why := self._refused(submitted_file, info):
            self.log.warning("Left out %s: %s", students.shown(submitted_file), why)
            return None
        if self.claims is None:
            self.claims = self._all_claims()
            course = self.parent.coursedir
            submitted = Path(course.format_path(course.submitted_directory, ".", "."))
            known = [path.name for path in submitted.glob("*")]
            for said in students.look_alikes([*known, *(student for student, _ in self.claims)]):
                self.log.warning("Look: %s", said)
        files = self.claims.get((student, _notebook(name, submitted_file)), [])
        if when := info.get("timestamp"):
            info["timestamp"] = MOMENT.sub(r"\1 \2:\3:\4", when)  # else read as a time zone
        newest = self._newest(files)
        if newest and submitted_file != newest:
            said = "Left out %s of %s: %s is a later attempt"
            about = (submitted_file, student, newest)
            self.log.warning(said, *map(students.shown, (Path(one).name for one in about)))
            return None
        if len(files) > 1 and not newest:
            if submitted_file == files[0]:  # once for all of them
                self.log.warning(
                    "Left out %s of %s: %d files say that they are it: %s. Find out which one is, "
                    "remove the others, and collect again",
                    students.shown(name),
                    student,
                    len(files),
                    ", ".join(map(students.shown, files)),
                )
            return None
        if student not in self.replaced:
            self.replaced[student] = self._may_replace(student)
        return info if self.replaced[student] else None

    def _newest(self, files: Sequence[str]) -> str:
        """Which of these files is the last attempt, by what the pattern calls `order`, such as the
        time on the platform's own clock; empty if that says nothing."""
        by: dict[str, str] = {}
        for file in files:
            match = re.match(self.named_regexp, file)
            if match and (order := match.groupdict().get("order")):
                by[order] = file
        return by[max(by)] if len(by) == len(files) > 1 else ""

    @property
    def _folder(self) -> Path:
        return Path(self.parent._format_collect_path(self.parent.extracted_directory))

    def _refused(self, file: str, info: Mapping[str, str]) -> str:
        """Why this file is not collected; empty if it is."""
        student, name = info["student_id"] or "", info["file_id"] or ""
        if not name or Path(name).is_absolute() or ".." in Path(name).parts:
            return "it leaves the folder"
        if not students.is_id(student):
            return students.RULE
        match = re.match(self.named_regexp, file)
        top, upload = self._top(file)
        if match and match.start("student_id") not in top:
            inside = f"{student} is not named in the top level, where the platform names students"
            return f"it is in the upload {students.shown(upload)}; {inside}"
        if when := info.get("timestamp"):
            try:
                parse_utc(MOMENT.sub(r"\1 \2:\3:\4", when))
            except (ValueError, OverflowError):
                return f"the time in its name, {students.shown(when)}, cannot be read"
        return ""

    def _top(self, file: str) -> tuple[range, str]:
        """Where in the path of an extracted file the name of the upload stands, and that name."""
        parts = Path(file).relative_to(self._folder).parts
        inside = parts[0] in self.parent.extractor_plugin_inst.opened and len(parts) > 1
        begin = len(str(self._folder)) + 1 + (len(parts[0]) + 1) * inside
        upload = parts[int(inside)]
        return range(begin, begin + len(upload)), upload

    def _all_claims(self) -> dict[tuple[str, str], list[str]]:
        """Which files say that they are the same notebook of the same student."""
        found: dict[tuple[str, str], list[str]] = {}
        paths = [str(path) for path in sorted(self._folder.rglob("*"))]
        for path in filter(lambda path: path.endswith(tuple(self.valid_ext)), paths):
            match = re.match(self.named_regexp, path)
            info = match.groupdict() if match else {}
            # of files with times nbgrader takes the newest
            if match and not info.get("timestamp") and not self._refused(path, info):
                key = info["student_id"], _notebook(info["file_id"], path)
                found.setdefault(key, []).append(path)
        return found

    def _may_replace(self, student: str) -> bool:
        """Ask, if this student has handed in already."""
        course = self.parent.coursedir
        there = Path(course.format_path(course.submitted_directory, student, course.assignment_id))
        if not there.is_dir() or not any(there.iterdir()):
            return True
        said = f"{student} has handed in {course.assignment_id} already"
        if sys.stdin.isatty():
            return input(f"{said}. Replace it? [y/N] ").strip().lower() in ("y", "yes")
        self.log.warning("%s; kept. To have it replaced, remove %s and collect again", said, there)
        return False


def _notebook(name: str, file: str) -> str:
    """The name that nbgrader gives a collected file."""
    return Path(name).stem + Path(file).suffix if "/" not in name else name


def account(uid: int) -> str:
    """The name of the account with this number; `uid-…` where it has none any more."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"


def handed_in(folder: str) -> datetime:
    """When this folder was made or last changed: in UTC, without a time zone, as nbgrader has it,
    by the clock of the file system, which a student cannot set back."""
    changed = os.lstat(folder).st_ctime_ns // 1000
    return datetime.fromtimestamp(changed / 1e6, UTC).replace(tzinfo=None)


class OwnWork(ExchangeCollect):
    """`c.ExchangeFactory.collect = "tfviz_course.collect.OwnWork"` in nbgrader_config.py."""

    def init_src(self) -> None:
        super().init_src()
        records: list[dict[str, Any]] = self.src_records  # type: ignore[has-type]
        odd = {one["username"] for one in records if not students.is_id(one["username"])}
        for said in map(students.shown, sorted(odd)):
            self.log.warning("Left out the work of the account %s: %s", said, students.RULE)
        self.src_records = [one for one in records if one["username"] not in odd]

    def _path_to_record(self, path: str) -> dict[str, Any]:
        """Who handed in, under which name, and when; the owner counts, not what the name says."""
        name, owner = os.path.basename(path), account(os.lstat(path).st_uid)
        claimed = name.split("+")[0]
        if claimed != owner:
            self.log.warning("%r says that it is from %r; it is from %r", name, claimed, owner)
        return {"username": owner, "filename": name, "timestamp": handed_in(path)}

    def do_copy(self, src: str, dest: str, log: object = None) -> None:
        """Copy the plain files of one submission; what is left out is logged."""
        to = Path(dest)
        to.mkdir(parents=True)
        with contextlib.ExitStack() as stack:
            try:
                folder = os.open(src, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                stack.callback(os.close, folder)
                names = sorted(os.listdir(folder))
            except OSError as error:
                self.log.warning("Cannot read %r: %s", src, error)
                names = []
            if len(names) > MOST_FILES:
                self.log.warning("%r: only %d of %d files", src, MOST_FILES, len(names))
            room = MOST_BYTES
            for name in names[:MOST_FILES]:
                try:
                    content = read_plain(name, room, folder, os.fstat(folder).st_uid)
                    (to / name).write_bytes(content)
                    room -= len(content)
                except OSError as error:
                    self.log.warning("Left out %r of %r: %s", name, src, error)
        (to / TIME).write_text(f"{handed_in(src):%Y-%m-%d %H:%M:%S.%f} UTC")
        secret = to / SECRET
        if not (secret.exists() and re.fullmatch(rb"[0-9a-f]{128}", secret.read_bytes())):
            secret.write_text(secrets.token_hex(64))  # without one nbgrader releases no feedback
