"""What some Python source rests on: a lesson's cells, or a file of tests.

That is the whole text of every piece of code that the source reaches (docstrings and refusals too;
see `tfviz_lab.keys`), the data whose names are said there, and with an explorer its script, its
style sheet and the kit. What is reached in ways that cannot be read is found by no one here: who
asks must know, and take whole folders (`files`).
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tfviz._renamed import today
from tfviz_lab import keys
from tfviz_lessons.kept import Kept, digest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ("tfviz", "tfviz_lab")
CODE = {".py", ".js", ".css", ".pyc", ".typed"}
KIT = "tfviz/explorers/"
SHARED = ("kit", "shared")  # folders of what explorers share, below KIT


class Shelf:
    """Modules as they were read, from one process to the next: reading takes most of the time.

    A module is known by its name and its whole text, to the code that has read it.
    """

    def __init__(self, kept: Kept) -> None:
        self.kept, self.file = kept, kept.folder / "modules.pickle"
        self.reader = digest(Path(keys.__file__), sys.version)
        self.known: dict[str, Any] = {}
        self.used: dict[str, Any] = {}
        if not kept.fresh:
            with contextlib.suppress(Exception):  # what cannot be loaded is read again
                self.known = pickle.loads(self.file.read_bytes())

    def read(self, name: str, text: str) -> Any:
        about = digest(self.reader, name, text)
        if about not in self.used:
            known = self.known.get(about)
            self.used[about] = known or keys.read_module(name, text, whole=True)
        return self.used[about]

    def save(self) -> None:
        """Keep what was used now, and as much again of what was used before."""
        if self.used.keys() - self.known.keys():
            others = [x for x in self.known if x not in self.used][: max(len(self.used), 1000)]
            self.known = self.used | {x: self.known[x] for x in others}
            self.kept.write(self.file, pickle.dumps(self.known))


class Pieces:
    """The source as it is now. `root` holds the packages; other modules lie in folders `beside`.

    With a `shelf`, modules are taken from there; who gives it saves it.
    """

    def __init__(
        self, root: Path = ROOT, beside: Sequence[str] = (), shelf: Shelf | None = None
    ) -> None:
        self.root = root
        folders = [root / folder for folder in beside]
        read = shelf.read if shelf else None
        self.source = keys.Source(root, packages=(), beside=folders, whole=True, read=read)
        self.known: dict[tuple[str, str], dict[str, str]] = {}

    def of(self, text: str, name: str = "_") -> dict[str, str]:
        """{piece or file: digest of its whole text} of all that this source rests on.

        Raises SyntaxError if it is no Python.
        """
        if (text, name) not in self.known:
            self.known[text, name] = self.now(text, name)
        return dict(self.known[text, name])

    def now(self, text: str, name: str) -> dict[str, str]:
        pieces, words = self.source.reached(text, name)
        said = {name for word in words for name in today(word)}
        files = [file for file in self.data if file.name in said or file.stem in said]
        modules = {label.partition(":")[0] for label in pieces}
        homes = {file for module in modules if (file := self.source.file(module))}
        drawn = {home for home in homes if self.short(home).startswith(KIT)}
        for home in drawn:
            files += [x for x in (home.with_suffix(".js"), home.with_suffix(".css")) if x.exists()]
        if drawn:
            files += self.kit
        return pieces | self.files(files)

    def files(self, files: Iterable[Path]) -> dict[str, str]:
        return {self.short(file): digest(file) for file in sorted(set(files))}

    def short(self, file: Path) -> str:
        return file.relative_to(self.root).as_posix() if file.is_relative_to(self.root) else ""

    @cached_property
    def data(self) -> list[Path]:
        """All data of the library: stored results, weights, tables."""
        found = [x for package in LIBRARY for x in (self.root / package).rglob("*") if x.is_file()]
        return [x for x in found if x.suffix not in CODE and "records" not in x.parts]

    @cached_property
    def kit(self) -> list[Path]:
        folders = [self.root / KIT / name for name in SHARED]
        return [x for folder in folders for x in folder.rglob("*") if x.suffix in {".js", ".css"}]
