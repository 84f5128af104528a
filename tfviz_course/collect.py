"""Collecting what students of one machine hand in, when some of them may mean harm.

The inbound folder of nbgrader's exchange is open: every student may put anything there, under any
name. nbgrader's own way warns of a false name and takes the work all the same, follows links to
files that only the instructor can read, and stops, for the whole class, at the first file that it
cannot copy. `OwnWork` takes plain files only, files them under the account that owns them, goes on.

It needs an account for each student. Where all are one account, as on Kubernetes, it has no use.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect

MOST_FILES = 100
MOST_BYTES = 50_000_000  # of one submission
SECRET = "submission_secret.txt"  # nbgrader's: by it the student finds the feedback
TIME = "timestamp.txt"


def account(uid: int) -> str:
    """The name of the account with this number; `uid-…` where it has none any more."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"


def handed_in(folder: str) -> datetime:
    """When this folder was made or last changed: in UTC, without a time zone, as nbgrader has it.

    By the clock of the file system, which a student cannot set back; its name may say anything.
    """
    changed = os.lstat(folder).st_ctime_ns // 1000
    return datetime.fromtimestamp(changed / 1e6, UTC).replace(tzinfo=None)


def copy_plain(folder: int, name: str, to: Path, owner: int, most: int) -> int:
    """Copy a file of an open folder, at most this many bytes; gives its size.

    OSError for all that is not a plain file of this owner: links, pipes, folders, files of others.
    """
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with open(file, "rb") as source:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != owner:
            raise OSError("not a plain file of the same account")
        if found.st_nlink > 1:
            raise OSError("the file has another name elsewhere")
        content = source.read(most + 1)
    if len(content) > most:
        raise OSError(f"more than {MOST_BYTES:,} bytes altogether")
    (to / name).write_bytes(content)
    return len(content)


class OwnWork(ExchangeCollect):
    """`c.ExchangeFactory.collect = "tfviz_course.collect.OwnWork"` in nbgrader_config.py."""

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
        try:
            self._copy_files(src, to)
        except OSError as error:
            self.log.warning("Cannot read %r: %s", src, error)
        (to / TIME).write_text(f"{handed_in(src):%Y-%m-%d %H:%M:%S.%f} UTC")
        secret = to / SECRET
        if not (secret.exists() and re.fullmatch(rb"[0-9a-f]{128}", secret.read_bytes())):
            secret.write_text(secrets.token_hex(64))  # without one nbgrader releases no feedback

    def _copy_files(self, src: str, to: Path) -> None:
        folder = os.open(src, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            owner, room = os.fstat(folder).st_uid, MOST_BYTES
            names = sorted(os.listdir(folder))
            if len(names) > MOST_FILES:
                self.log.warning("%r: only %d of %d files", src, MOST_FILES, len(names))
            for name in names[:MOST_FILES]:
                try:
                    room -= copy_plain(folder, name, to, owner, room)
                except OSError as error:
                    self.log.warning("Left out %r of %r: %s", name, src, error)
        finally:
            os.close(folder)
