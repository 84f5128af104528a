"""A book that is built again has the pages, to the last byte, of one that is built from nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import build_book
import exemplars
import pytest
from book.conftest import ROOT
from book.test_fork import copied

import start
from tfviz_lessons.kept import Kept

LESSON, SHEET = "chapters/basics/sample", "book/assets/css/article.css"
PAGES = f"""\
format: jb-book
root: book/index
chapters:
  - file: book/notation
  - file: {LESSON}
"""
# of a small book, one of each: (file, old text, new text)
CHANGES = {
    "a style sheet": (SHEET, "\n", "\n.tf-none { color: red }\n"),
    "a sentence": ("book/notation.md", "\n\n", "\n\nOne more sentence.\n\n"),
    "a cell": (f"{LESSON}.md", "shift moves 1 by 2 to", "shift brings 1 by 2 to"),
    "a docstring": ("tfviz/checks.py", '"""', '"""Another word. '),
}

# as `build_book.restyled` does it, which takes no draft
RESTYLE = """
import sys
from pathlib import Path
sys.path.insert(0, "book/_ext")
from book_pages import restyle
restyle(Path(sys.argv[1]))
"""


def built(folder: Path, out: Path) -> dict[str, bytes]:
    """Every file of the site that a copy of the project becomes."""
    run(folder, "scripts/build_book.py", "--draft", "--quiet", "--out", str(out))
    return files(out / "_build/html")


def run(folder: Path, *words: str) -> None:
    """Python in a copy of the project, by the environment that reads."""
    done = subprocess.run(
        [str(start.python(start.FIRST)), *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def files(site: Path) -> dict[str, bytes]:
    found = (file for file in sorted(site.rglob("*")) if file.is_file())
    return {file.relative_to(site).as_posix(): file.read_bytes() for file in found}


@pytest.mark.skipif(not exemplars.ALL, reason="builds a book many times: TFVIZ_ALL=1")
def test_what_is_built_again_is_what_is_built_from_nothing(tmp_path: Path) -> None:
    folder = copied(tmp_path / "copy")
    (folder / "_toc.yml").write_text(PAGES, "utf-8")
    shutil.copyfile(ROOT / "tests/book/sample_lesson.md", folder / f"{LESSON}.md")
    before = built(folder, tmp_path / "again")
    for what, (name, old, new) in CHANGES.items():
        text = (folder / name).read_text("utf-8")
        assert old in text, what
        (folder / name).write_text(text.replace(old, new, 1), "utf-8")
        again = built(folder, tmp_path / "again")
        assert again != before, f"{what} changed nothing"
        before = again
    sheet = (folder / SHEET).read_text("utf-8")
    (folder / SHEET).write_text(f"{sheet}\n.tf-none {{ color: blue }}\n", "utf-8")
    run(folder, "-c", RESTYLE, str(tmp_path / "again/_build/html"))
    again = files(tmp_path / "again/_build/html")
    assert again != before
    fresh = built(folder, tmp_path / "fresh")
    assert again.keys() == fresh.keys()
    assert not [name for name in fresh if again[name] != fresh[name]]


def test_only_style_sheets_are_written_without_a_build() -> None:
    before = {SHEET: "1", "book/notation.md": "2"}
    assert build_book.only_sheets(before, before | {SHEET: "3"})
    assert build_book.only_sheets(before, before | {"book/assets/css/new.css": "3"})
    assert not build_book.only_sheets(before, before)
    assert not build_book.only_sheets(before, before | {SHEET: "3", "book/notation.md": "3"})
    assert not build_book.only_sheets(before, before | {"tfviz/explorers/kit/kit.css": "3"})
    assert not build_book.only_sheets(before, before | {"book/assets/js/atlas.js": "3"})
    assert not build_book.only_sheets(before | {"book/gone.md": "2"}, before | {SHEET: "3"})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Of a book that was built in `tmp_path`: where style sheets were written since."""
    import book_pages

    (tmp_path / "html").mkdir()
    (tmp_path / "html/index.html").touch()
    written: list[Path] = []
    monkeypatch.setattr(book_pages, "restyle", written.append)
    return written


def test_new_style_sheets_are_kept_as_a_build(tmp_path: Path, site: list[Path]) -> None:
    known, html = Kept(tmp_path / "kept"), tmp_path / "html"
    files, now = {SHEET: "1"}, {SHEET: "2"}

    def restyled(beside: str = "python", prove: bool = False) -> bool:
        return build_book.restyled(html, known, "new", now, beside, prove)

    assert not restyled() and not site  # nothing was built
    known.keep(build_book.PAGES, "old", files=files, beside="python")
    assert not restyled(beside="another python") and not restyled(prove=True) and not site
    known.keep(build_book.PROVEN, "old")
    assert restyled(prove=True) and site == [html]
    assert known.holds(build_book.PAGES, "new") and known.holds(build_book.PROVEN, "new")
    assert not restyled()  # no file is another one
