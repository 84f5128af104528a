"""Build the book, and serve it if asked to.

    python scripts/build_book.py [--out FOLDER] [--toc FILE] [--serve] [--fresh] [--draft] [--prove]
    python scripts/build_book.py [--out FOLDER] [--prove] --execute LESSON …   writes no page

The pages are in FOLDER/_build/html. First the lessons are executed, several at once, and what they
displayed is kept there too; a lesson is executed again only where its code has changed, or what it
reaches of the library (`tfviz_lessons.execute`). Then Sphinx reads and writes the pages whose text
or whose answers have changed (`book/_ext/book_rests.py`). --prove executes the lessons in the
Python of somebody who opens a notebook, and tries every exercise on the way.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from tfviz_lessons import kept

ROOT = Path(__file__).resolve().parents[1]
PAGES, PROVEN, ADAPTERS = "pages", "lessons proven", "adapters of pages"
OURS = (PAGES, PROVEN, ADAPTERS, "lesson ", "notebook ")
"""How the names of what a build keeps begin; the tests keep more in the same store."""
# what any page may be made of; `book` and `chapters` are not all: pages show other files, too
READ = ("tfviz", "tfviz_lab", "tfviz_lessons", "book", "chapters", "teaching/hub", "scripts")
# GitHub's names for where it runs
AROUND = ("REPOSITORY", "REPOSITORY_OWNER", "REF_NAME", "SERVER_URL")


SHEET = re.compile(r"book/assets/css/[^/]+\.css")
"""Names of the style sheets that all pages share; no page shows one, and none is told of them."""


def digest(files: Iterable[Path], *more: object) -> str:
    """One number for names and contents of all these files, and for what else is said."""
    files = sorted(files)
    return kept.digest(repr(more), *(str(file.relative_to(ROOT)) for file in files), *files)


def in_folder(folder: str, endings: set[str] | None = None) -> list[Path]:
    files = (file for file in (ROOT / folder).rglob("*") if file.is_file())
    return [
        file
        for file in files
        if (endings is None or file.suffix in endings) and "__pycache__" not in file.parts
    ]


def everything() -> Iterator[Path]:
    """All that a build reads."""
    for folder in READ:
        yield from in_folder(folder)
    yield from (file for file in ROOT.iterdir() if file.is_file() and file.name[0] != ".")


def lessons(toc: Path) -> list[Path]:
    """The lessons that a table of contents names, in its order."""
    from tfviz_lessons.lesson import is_lesson

    names = re.findall(r"^\s*- file: (\S+)", toc.read_text("utf8"), re.M)
    paths = [ROOT / f"{name}.md" for name in names]
    return [path for path in paths if path.exists() and is_lesson(path.read_text("utf8"))]


def build(
    out: Path,
    toc: Path | None = None,
    fresh: bool = False,
    quiet: bool = False,
    draft: bool = False,
    prove: bool = False,
) -> int:
    """Build into out/_build; the exit code of the builder.

    A draft goes on where a cell fails, shows what it said in the page, and lets warnings pass.
    """
    place = out / "_build"
    with alone(place):
        around = [os.environ.get(f"GITHUB_{name}") for name in AROUND]
        beside = digest([], sys.version, toc and toc.read_text("utf8"), around)
        files = {str(file.relative_to(ROOT)): kept.digest(file) for file in everything()}
        whole = kept.digest(beside, files)
        known, doctrees = kept.Kept(place / "kept"), place / ".doctrees"
        there = (place / "html/index.html").exists() and known.holds(PAGES, whole)
        if there and not (fresh or draft) and (not prove or known.holds(PROVEN, whole)):
            return 0
        if not (fresh or draft) and restyled(place / "html", known, whole, files, beside, prove):
            return 0
        machine = digest(
            [
                *in_folder("book/_ext", {".py"}),
                *in_folder("book/_templates"),
                *in_folder("tfviz_lessons", {".py"}),
                *(ROOT / name for name in ("_config.yml", "package-lock.json", "requirements.txt")),
            ],
            sys.version,
            around,
            draft,  # which let warnings pass
        )
        if fresh:
            for group in list(known.groups()):
                known.forget(group) if group.startswith(OURS) else None
            for folder in ("html", ".jupyter_cache"):
                shutil.rmtree(place / folder, ignore_errors=True)
        if fresh or not known.holds(ADAPTERS, machine):
            # nothing that was read holds, or Sphinx was stopped between reading and writing
            shutil.rmtree(doctrees, ignore_errors=True)
        for group in (PAGES, ADAPTERS):
            known.forget(group)  # until the build has ended well
        execute(place, lessons(toc or ROOT / "_toc.yml"), prove=prove, quiet=quiet)
        command = [str(Path(sys.executable).parent / "jupyter-book"), "build", str(ROOT)]
        command += [] if draft else ["-W"]
        command += ["--keep-going", "--path-output", str(out)] + (
            ["--toc", str(toc)] if toc else []
        )
        command += ["-q"] if quiet else []
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "TFVIZ_DRAFT": "yes" if draft else "",
            "JUPYTER_PREFER_ENV_PATH": "1",
        }
        code = subprocess.run(command, env=environment, cwd=ROOT).returncode
        if not code:
            known.keep(ADAPTERS, machine)
        if not code and not draft:
            known.keep(PAGES, whole, files=files, beside=beside)
            if prove:
                known.keep(PROVEN, whole)
        return code


def only_sheets(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether style sheets were changed since, and nothing else."""
    changed = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    return bool(changed) and all(SHEET.fullmatch(name) for name in changed)


def restyled(
    html: Path, known: kept.Kept, whole: str, files: dict[str, str], beside: str, prove: bool
) -> bool:
    """Whether new style sheets are all that the last build lacks; then they are written."""
    record = known.record(PAGES)
    if record is None or record.get("beside") != beside or not (html / "index.html").exists():
        return False
    proven = known.holds(PROVEN, record["digest"])
    if not only_sheets(record.get("files", {}), files) or (prove and not proven):
        return False
    sys.path.insert(0, str(ROOT / "book/_ext"))
    from book_pages import restyle

    known.forget(PAGES)
    restyle(html)
    known.keep(PAGES, whole, files=files, beside=beside)
    if proven:  # no lesson reads them
        known.keep(PROVEN, whole)
    return True


@contextmanager
def alone(place: Path) -> Iterator[Path]:
    """Two builds of one folder follow one another."""
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / ".lock"):
        yield place


def execute(place: Path, paths: Sequence[Path], *, prove: bool, quiet: bool) -> list[Path]:
    """Execute those of these lessons that have changed; which they were.

    What fails is left to Sphinx, which says where it is, or shows it in a draft.
    """
    import learner_environment

    from tfviz_lessons.execute import Lessons
    from tfviz_lessons.lesson import LessonError

    try:
        python = learner_environment.make(place / "notebook-environment") if prove else None
        ran = Lessons(place).run(paths, proof=python)
    except LessonError:
        return []  # Sphinx says all that is wrong with it
    if ran and not quiet:
        print(f"Executed {', '.join(str(path.relative_to(ROOT)) for path in ran)}", flush=True)
    return ran


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


def serve(folder: Path, port: int) -> None:
    """Serve until interrupted, on `port` or on the next free one."""
    handler = functools.partial(Handler, directory=str(folder))
    for candidate in [*range(port, port + 50), 0]:
        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", candidate), handler)
            break
        except OSError:
            continue
    print(f"\nThe book is at http://localhost:{server.server_port}/   (Ctrl-C stops)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        server.server_close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT, help="build in OUT/_build")
    parser.add_argument("--toc", type=Path, help="another table of contents")
    parser.add_argument("--serve", action="store_true", help="serve the pages when they are built")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--fresh", action="store_true", help="throw away all that was built")
    parser.add_argument("--quiet", action="store_true", help="say only what is wrong")
    parser.add_argument("--draft", action="store_true", help="go on where a cell fails")
    parser.add_argument("--prove", action="store_true", help="try the exercises and notebooks, too")
    parser.add_argument(
        "--execute", type=Path, nargs="+", metavar="LESSON", help="only execute these; no pages"
    )
    given = parser.parse_args()
    if given.execute:
        with alone(given.out.resolve() / "_build") as place:
            paths = [path.resolve() for path in given.execute]
            execute(place, paths, prove=given.prove, quiet=given.quiet)
        return 0
    start = time.monotonic()
    code = build(given.out.resolve(), given.toc, given.fresh, given.quiet, given.draft, given.prove)
    pages = given.out.resolve() / "_build" / "html"
    if code == 0:
        print(f"Built in {time.monotonic() - start:.0f} s: {os.path.relpath(pages)}/index.html")
    if given.serve and (pages / "index.html").exists():
        serve(pages, given.port)
    return code


if __name__ == "__main__":
    sys.exit(main())
