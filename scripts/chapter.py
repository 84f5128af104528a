"""Build one chapter, and say what it still lacks.

    python scripts/chapter.py compressed/low_rank [--out FOLDER]

Its cells are executed (again only where something has changed), then Sphinx writes this one page
to FOLDER/_build/one/html. Links to other chapters lead nowhere there: `make book` checks those.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import build_book

from tfviz_lessons.checklist import lacks
from tfviz_lessons.execute import Lessons
from tfviz_lessons.lesson import Lesson, LessonError, is_lesson, read

ROOT = Path(__file__).resolve().parents[1]
TOC = """\
format: jb-book
root: book/references
chapters:
  - file: {document}
"""
# what one page cannot know: the labels, pages and words of all others
ELSEWHERE = re.compile(
    r"undefined label|cross-reference target not found|term not in glossary|unknown document"
    r"|toctree contains reference to|numfig"
)


def chapter(name: str) -> Path:
    """The file of a chapter, `compressed/low_rank` or its path. Raises SystemExit if it is none."""
    short = name.removeprefix("chapters/").removesuffix(".md").strip("/")
    path = ROOT / "chapters" / f"{short}.md"
    if path.is_file() and is_lesson(path.read_text("utf8")):
        return path
    known = sorted(
        file.relative_to(ROOT / "chapters").with_suffix("").as_posix()
        for file in (ROOT / "chapters").glob("*/*.md")
    )
    near = difflib.get_close_matches(short, known, n=3, cutoff=0.4) or known
    raise SystemExit(
        f"There is no chapter C={name}. Did you mean {' or '.join(near)}? "
        "A new one begins with `make new KIND=chapter NAME=part/chapter`."
    )


def error_of(problem: str) -> str:
    """What a cell said, from the place where it failed on."""
    lines = [line for line in problem.strip().splitlines() if line.strip()]
    said = lines[0]
    here = max((n for n, line in enumerate(lines) if line.startswith("Cell In[")), default=1)
    return "\n".join([said, *(f"    {line}" for line in lines[here:] if line != said)])


def whole_error(output: str) -> str:
    """What Sphinx says from the first error on: the exception with its causes, none of it cut."""
    lines = output.strip().splitlines()
    begin = re.compile(
        r"Traceback|.*\b(?:ERROR|CRITICAL)\b|(?:Extension|Configuration|Theme) error"
    )
    first = next((n for n, line in enumerate(lines) if begin.match(line)), 0)
    return "\n".join(f"    {line}" for line in lines[first:])


def about(document: str, output: str) -> Iterator[str]:
    """What Sphinx says of this chapter, as a place in its file and a sentence."""
    for line in output.splitlines():
        warning = re.search(rf"{document}\.md:?(\d*):?\s*(WARNING|ERROR|CRITICAL): (.*)", line)
        if warning and not ELSEWHERE.search(warning[3]):
            yield f"{document}.md{':' * bool(warning[1])}{warning[1]}: {warning[3]}"


def write_page(path: Path, out: Path) -> tuple[Path, list[str]]:
    """Let Sphinx write this page alone: where it is, and what is wrong with it."""
    document = path.relative_to(ROOT).with_suffix("").as_posix()
    page = out / "_build" / "html" / f"{document}.html"
    page.unlink(missing_ok=True)  # of an earlier build
    toc = out / "_toc.yml"
    toc.write_text(TOC.format(document=document), "utf8")
    tools = Path(sys.executable).parent
    path_first = f"{tools}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [tools / "jupyter-book", "build", ROOT, "--path-output", out, "--toc", toc],
        env={**os.environ, "PATH": path_first, "NO_COLOR": "1", "TFVIZ_DRAFT": "yes"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    said = list(dict.fromkeys(about(document, output)))
    if not page.exists():
        said.append(f"no page was written. Sphinx says:\n{whole_error(output)}")
    return page, said


def checklist(lesson: Lesson) -> str:
    missing = lacks(lesson)
    if not missing:
        return "The chapter has all that a chapter needs."
    return "\n".join(["The chapter still lacks:", *(f"  - {sentence}" for sentence in missing)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("chapter", help="such as compressed/low_rank")
    parser.add_argument("--out", type=Path, default=ROOT, help="build in OUT/_build/one")
    given = parser.parse_args()
    path, start = chapter(given.chapter), time.monotonic()
    try:
        lesson = read(path)
    except LessonError as error:
        print(f"The lesson cannot be read:\n{error}")
        return 1
    out = given.out.resolve() / "_build" / "one"
    with build_book.alone(out / "_build") as place:
        lessons = Lessons(place)
        lessons.run([path])
        problems = lessons.record(path).problems
        if problems:
            print(f"A cell of {path.relative_to(ROOT)} fails:\n\n{error_of(problems[0])}\n")
            return 1
        page, said = write_page(path, out)
    for sentence in said:
        print(sentence)
    print(checklist(lesson))
    if page.exists():
        print(f"Built in {time.monotonic() - start:.0f} s: {page.as_uri()}")
    return 0 if page.exists() and not said else 1


if __name__ == "__main__":
    sys.exit(main())
