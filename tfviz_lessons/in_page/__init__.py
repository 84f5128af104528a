"""Exercises that a reader can answer in the page itself: plain Python, tried without a server.

Most exercises need torch, and no torch runs in a browser. `given` finds those that do not: their
solution and visible checks use Python's standard library alone. For these the page has a box
(`box`), and the site a Python of its own (`write_python`): Pyodide, from npm, in a web worker, with
the checks of `tfviz.checks` as they are. Nothing of it is loaded before a reader asks for it.
"""

from __future__ import annotations

import ast
import base64
import gzip
import hashlib
import html
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tfviz_lessons.lesson import Block, Exercise, Lesson
from tfviz_lessons.slice import GIVEN, uses

HERE = Path(__file__).parent
CHECKS = HERE.parents[1] / "tfviz" / "checks.py"
# what `lists` can do in torch's place
CHECKED = {
    "CheckFailed",
    "expect_close",
    "expect_equal",
    "expect_mask",
    "expect_raises",
    "expect_shape",
    "expect_true",
    "passed",
}
# No file, network, process or screen is within reach of the page, so these parts of the standard
# library cannot do anything there; they are left out so that less has to be loaded.
LEFT_OUT = (
    "_pyrepl _sysconfigdata__emscripten_wasm32-emscripten bdb ctypes doctest email ftplib http "
    "imaplib mailbox multiprocessing optparse pdb pickletools poplib pydoc smtplib sqlite3 tarfile "
    "unittest urllib webbrowser wsgiref xml xmlrpc zoneinfo"
)
CODECS = {"__init__", "aliases", "ascii", "latin_1", "utf_8", "utf_16", "idna", "cp437"}
NOTICE = """\
/*! Python in the page, loaded when a reader first asks to try an exercise.
 * Pyodide {version} (https://pyodide.org), under the Mozilla Public License 2.0,
 * https://mozilla.org/MPL/2.0/; its source: https://github.com/pyodide/pyodide/tree/{version}.
 * Unchanged but for compression; of the standard library, parts are left out.
 * Python: copyright Python Software Foundation, https://docs.python.org/3/license.html. */
"""


# --- which exercises -----------------------------------------------------------------------------


def given(lesson: Lesson, exercise: Exercise) -> str | None:
    """What the lesson imports for an exercise that plain Python can run; None where it cannot.

    It can if the solution and the visible checks use nothing of the lesson but modules of the
    standard library, and no check that needs torch.
    """
    if exercise.answer == "explorer":
        return None
    imports: dict[str, str] = {}
    for statement in _above(lesson, exercise):
        for name in uses(ast.unparse(statement)).binds:
            imports.pop(name, None)
        imports |= dict(_plain_imports(statement))
    both = f"{exercise.solved}\n{exercise.visible_tests}"
    tree = ast.parse(both)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and not all(_plain(name.name) for name in node.names):
            return None
        if isinstance(node, ast.ImportFrom) and not _plain(node.module or "."):
            names = {name.name for name in node.names}
            if node.module != "tfviz.checks" or not names <= CHECKED:
                return None
    found = uses(both)
    wanted = (found.now | found.later) - found.binds - GIVEN
    return "\n".join(dict.fromkeys(imports.values())) if wanted <= imports.keys() else None


def _above(lesson: Lesson, exercise: Exercise) -> Iterator[ast.stmt]:
    """What the cells of the lesson do above an exercise, line by line."""
    for block in lesson.blocks:
        if block is exercise:
            return
        if isinstance(block, Block) and block.kind == "code":
            yield from ast.parse(block.source).body


def _plain(module: str) -> bool:
    first = module.split(".")[0]
    return first in sys.stdlib_module_names and first not in LEFT_OUT.split()


def _plain_imports(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Each name that an import of the standard library binds, with a line that binds it."""
    if isinstance(node, ast.Import):
        for name in filter(lambda name: _plain(name.name), node.names):
            yield (name.asname or name.name).split(".")[0], ast.unparse(ast.Import([name]))
    elif isinstance(node, ast.ImportFrom) and node.module and _plain(node.module):
        for name in node.names:
            line = ast.unparse(ast.ImportFrom(node.module, [name], 0))
            yield name.asname or name.name, line


# --- the page ------------------------------------------------------------------------------------


def box(lesson: Lesson, exercise: Exercise) -> str:
    """The place where an answer is written and tried, for `try.js`; empty where it cannot be."""
    imports = given(lesson, exercise)
    if imports is None:
        return ""
    told = {"given": imports, "stub": exercise.stub, "tests": exercise.visible_tests}
    text = json.dumps(told, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f'<div class="tf-try" data-try="{html.escape(exercise.label)}">'
        f'<script type="application/json">{text}</script></div>'
    )


# --- the site ------------------------------------------------------------------------------------


def write_python(npm: Path, worker: Path, file: Path) -> None:
    """Write Python for the page into one script, from the npm package; only if it has changed.

    It is a script with texts inside, since from a folder a page may load nothing else.
    """
    package = npm / "pyodide"
    sources = {
        "worker": worker.read_text("utf8"),
        "checks": CHECKS.read_text("utf8"),
        "lists": (HERE / "lists.py").read_text("utf8"),
        "judge": (HERE / "judge.py").read_text("utf8"),
    }
    lock = json.loads((package / "pyodide-lock.json").read_text("utf8"))
    version = json.loads((package / "package.json").read_text("utf8"))["version"]
    head = NOTICE.format(version=version)
    made_of = json.dumps([head, sources, LEFT_OUT, sorted(CODECS)])
    stamp = f"// {hashlib.sha256(made_of.encode()).hexdigest()}\n"
    if file.exists() and file.read_text("utf8").endswith(stamp):
        return
    parts = {
        "loader": (package / "pyodide.mjs").read_bytes(),
        "module": (package / "pyodide.asm.mjs").read_bytes(),
        "wasm": (package / "pyodide.asm.wasm").read_bytes(),
        "library": _library(package / "python_stdlib.zip"),
    }
    packed = {
        name: base64.b64encode(gzip.compress(part, 9, mtime=0)).decode()
        for name, part in parts.items()
    }
    told = {**sources, "lock": {"info": lock["info"], "packages": {}}, **packed}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{head}window.tfvizPython = {json.dumps(told)};\n{stamp}", "utf8")


def _library(path: Path) -> bytes:
    """The standard library as the page has it: uncompressed, since all is compressed together."""
    out = io.BytesIO()
    left_out = set(LEFT_OUT.split())
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(out, "w") as kept:
        for entry in whole.infolist():
            first, *rest = entry.filename.removesuffix(".py").split("/")
            codec = first == "encodings" and rest and rest[0] not in CODECS
            if first not in left_out and not codec:
                kept.writestr(zipfile.ZipInfo(entry.filename), whole.read(entry))
    return out.getvalue()
