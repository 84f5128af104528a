"""What was built, executed or proven, and what it rested on: one store for all of it.

A group is a lesson that was executed, the site that was built, some tests that have passed. Its
record is one JSON file, and holds as long as the digest of what the group rests on is the same. It
is written last and in one step, so what was stopped on the way, or found the disk full, is unknown.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def digest(*parts: str | bytes | Path | Mapping[str, str] | None) -> str:
    """One number for texts, for the contents of files (or that there is none), for tables."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            part = part.read_bytes() if part.is_file() else None
        elif isinstance(part, Mapping):
            part = json.dumps(dict(sorted(part.items())))
        data = part.encode() if isinstance(part, str) else part
        total.update(b"none" if data is None else b"%d " % len(data) + data)
    return total.hexdigest()[:24]


class Kept:
    """The store in a folder, `_build/kept`. Nothing is found there while FRESH=1 is set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fresh = os.environ.get("FRESH", "") not in ("", "0")
        self.mine: set[str] = set()  # what this process has kept, which is fresh

    def place(self, group: str) -> Path:
        readable = re.sub(r"[^\w.-]+", "-", group).strip("-")[:80]
        return self.folder / f"{readable}-{hashlib.sha256(group.encode()).hexdigest()[:8]}.json"

    def record(self, group: str) -> dict[str, Any] | None:
        """What was kept of a group, whether it holds or not; None if nothing was."""
        if self.fresh and group not in self.mine:
            return None
        try:
            record = json.loads(self.place(group).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) and record.get("group") == group else None

    def holds(self, group: str, digest: str) -> bool:
        record = self.record(group)
        return record is not None and record.get("digest") == digest

    def keep(self, group: str, digest: str, **more: Any) -> None:
        text = json.dumps({"group": group, "digest": digest, **more}, ensure_ascii=False, indent=1)
        self.write(self.place(group), text.encode())
        self.mine.add(group)

    def write(self, place: Path, data: bytes) -> None:
        """A file of the store, in one step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def forget(self, group: str) -> None:
        self.place(group).unlink(missing_ok=True)

    def groups(self) -> Iterator[str]:
        for file in sorted(self.folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                yield json.loads(file.read_text("utf-8"))["group"]
