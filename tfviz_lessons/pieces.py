"""What some Python source rests on: a lesson's cells, or a file of tests.

That is the whole text of every piece of code that the source reaches (docstrings and refusals too;
see `tfviz_lab.keys`), the data whose names are said there, and with an explorer its script, its
style sheet and the kit. What is reached in ways that cannot be read is found by no one here: who
asks must know, and take whole folders (`files`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from tfviz._renamed import today
from tfviz_lab.keys import Source
from tfviz_lessons.kept import digest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ("tfviz", "tfviz_lab")
CODE = {".py", ".js", ".css", ".pyc", ".typed"}
KIT = "tfviz/explorers/"
SHARED = ("kit", "shared")  # folders of what explorers share, below KIT


class Pieces:
    """The source as it is now. `root` holds the packages; other modules lie in folders `beside`."""

    def __init__(self, root: Path = ROOT, beside: Sequence[str] = ()) -> None:
        self.root = root
        folders = [root / folder for folder in beside]
        self.source = Source(root, packages=(), beside=folders, whole=True)

    def of(self, text: str, name: str = "_") -> dict[str, str]:
        """{piece or file: digest of its whole text} of all that this source rests on.

        Raises SyntaxError if it is no Python.
        """
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
