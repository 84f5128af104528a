"""Collecting what students hand in, when some of them may mean harm.

**Files**, from mail or a learning platform: anybody can name a file. So the id is checked, and what
is already there is replaced only where the instructor says so (`NamedFiles`).

**A hub.** nbgrader would take work in another's name, follow links to files that only the
instructor can read, and stop at the first file that it cannot copy. `OwnWork` takes plain files
only, files them under the account that owns them, goes on. It needs an account for each student.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.plugins import FileNameCollectorPlugin

from tfviz_course import students
from tfviz_course.rebuild import read_plain

MOST_FILES = 100
MOST_BYTES = 50_000_000  # of one submission
SECRET = "submission_secret.txt"  # nbgrader's: by it the student finds the feedback
TIME = "timestamp.txt"


class NamedFiles(FileNameCollectorPlugin):
    """`c.ZipCollectApp.collector_plugin = "tfviz_course.collect.NamedFiles"` does this."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.found: dict[str, dict[str, str]] = {}  # student -> name of a notebook -> its file
        self.replaced: dict[str, bool] = {}

    def collect(self, submitted_file: str) -> dict[str, str] | None:
        """What nbgrader's collector makes of one file; None, with a warning, where that is odd."""
        info: dict[str, str] | None = super().collect(submitted_file)
        if info is None:
            return None
        student, name = info["student_id"], info["file_id"]
        leaves = Path(name).is_absolute() or ".." in Path(name).parts
        if leaves or not students.is_id(student):
            why = "it leaves the folder" if leaves else students.RULE
            self.log.warning("Left out %s: %s", students.shown(submitted_file), why)
            return None
        other = self.found.setdefault(student, {}).setdefault(name, submitted_file)
        if other != submitted_file and "timestamp" not in info:
            files = f"{students.shown(other)} and {students.shown(submitted_file)}"
            said = f"two files say that they are {name} of {student}: {files}"
            raise ValueError(f"{said}; find out which is, and remove the other")
        if student not in self.replaced:
            self.replaced[student] = self._may_replace(student)
        return info if self.replaced[student] else None

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
