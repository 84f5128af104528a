"""Build the book, and serve it if asked to.

    python scripts/build_book.py [--out FOLDER] [--toc FILE] [--serve] [--fresh] [--draft]

The pages are in FOLDER/_build/html. What is executed is kept there too, and thrown away when the
library has changed: a notebook's result depends on tfviz, which the cache itself does not see.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = {".py", ".js", ".css", ".toml", ".json", ".pt", ".npz"}


def digest(files: Iterable[Path]) -> str:
    """One number for names and contents of all these files."""
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(str(file.relative_to(ROOT)).encode())
        total.update(file.read_bytes())
    return total.hexdigest()


def in_folder(folder: str, endings: set[str]) -> list[Path]:
    return [file for file in (ROOT / folder).rglob("*") if file.suffix in endings]


def same(stamp: Path, value: str) -> bool:
    return stamp.exists() and stamp.read_text() == value


def build(
    out: Path,
    toc: Path | None = None,
    fresh: bool = False,
    quiet: bool = False,
    draft: bool = False,
) -> int:
    """Build into out/_build; the exit code of the builder.

    A draft goes on where a cell fails, shows what it said in the page, and lets warnings pass.
    """
    place = out / "_build"
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two builds of one folder follow one another
        library = digest([*in_folder("tfviz", LIBRARY), ROOT / "requirements.txt"])
        machine = digest(
            [
                *in_folder("book/_ext", {".py"}),
                *in_folder("tfviz_lessons", {".py"}),
                ROOT / "_config.yml",
                ROOT / "package-lock.json",
            ]
        )
        cache = place / ".jupyter_cache"
        if fresh:
            shutil.rmtree(place / "html", ignore_errors=True)
        if fresh or not same(place / ".library", library):
            shutil.rmtree(cache, ignore_errors=True)
            shutil.rmtree(place / ".doctrees", ignore_errors=True)
        if not same(place / ".machine", machine):
            shutil.rmtree(place / ".doctrees", ignore_errors=True)
        (place / ".library").write_text(library)
        (place / ".machine").write_text(machine)
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
        if code:
            # what was wrong must be found again: Sphinx would skip the pages it has written
            shutil.rmtree(place / ".doctrees", ignore_errors=True)
        return code


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
    given = parser.parse_args()
    start = time.monotonic()
    code = build(given.out.resolve(), given.toc, given.fresh, given.quiet, given.draft)
    pages = given.out.resolve() / "_build" / "html"
    if code == 0:
        print(f"Built in {time.monotonic() - start:.0f} s: {os.path.relpath(pages)}/index.html")
    if given.serve and (pages / "index.html").exists():
        serve(pages, given.port)
    return code


if __name__ == "__main__":
    sys.exit(main())
