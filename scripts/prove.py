"""Prove the project: what is asked of `make test` and of `make test-all`.

    python start.py test [--only library|pages|teaching] [--since COMMIT] [what pytest takes …]
    python start.py test-all [the same]

There are three clocks: the library, the pages (explorers, lessons, the book) and teaching. `--all`
runs every test. Without it run all tests of the library; of the rest, and of what `torch.compile`
makes of a mechanism, one fixed exemplar of each kind (`tests/exemplars.py`), and what the change
touches: what rests on something that is different from the state in which this branch has left the
default one, or from a commit (`--since`). Without git these are the exemplars.

Tests belong to groups: those of a file, or of an explorer, a page, a lesson, or the laws of one
mechanism's case. What a group rests on is read from its source (`tfviz_lessons.pieces`). A file of
tests that finds things by other ways than their names rests on everything, unless it says where it
looks:

    RESTS_ON = ("book/assets/**", "tests/book/*.py")

Where all tests of a group have passed, that is kept with the digest of all this in `_build/kept`,
and they do not run again before the digest is another one. FRESH=1 runs them all the same. While
tests run, it is noted which files they open or hand to a program; a group that has read what it
does not rest on is named at the end, and not kept.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import exemplars

import start
from tfviz_lab.keys import labels
from tfviz_lessons.execute import code
from tfviz_lessons.kept import Kept, digest
from tfviz_lessons.lesson import LessonError
from tfviz_lessons.pieces import Pieces, Shelf

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("tests", "teaching", "teaching/tests", "scripts", "book/_ext")
"""The folders from which tests import, besides the project's own."""

SMALL_CLASSES = "teaching/tests/course/"
"""Where tests take one student, door or chapter of each kind unless all are asked for."""

ASKED_LESS = re.compile("law:.*|tests/test_mixers|tests/test_assigned")
"""The groups of the library that are asked less unless all is: of compiling, and of explorers."""

LAST_LINES = 6
"""How much of an error is said at once; all of it stands at the end."""

HANGS = 600
"""After so many seconds in one test, it is printed where it is."""

NOTHING_TO_RUN = 5
"""What pytest ends with where it finds no test."""

PINS = (
    "requirements*.txt",
    "teaching/requirements*.txt",
    "pyproject.toml",
    "package-lock.json",
    "conftest.py",
)
"""All tests rest on these."""

# how a test finds what its source does not name
LOOKS = re.compile(
    r"\b(import_module|iter_modules|rglob|glob|iterdir|subprocess|getsource|runpy|exec|ROOT)\b"
    r"|\bgetattr\([^()]+, [^\"']"
)
OF_PAGES = (
    *("tfviz/**", "tfviz_lab/**", "tfviz_lessons/**", "book/**", "chapters/**", "teaching/**"),
    *("scripts/**", "tests/book/**", "tests/*.py", ".github/**", ".ci/**", "*"),
)
"""What a page may be made of (`build_book.READ`), and what tests of pages look at: no docs."""

OF_TEACHING = (
    *("teaching/**", "tfviz/**", "tfviz_lab/**", "tfviz_lessons/**", "chapters/**", "scripts/**"),
    *("tests/**", "book/*", "book/_ext/**", "book/assets/js/**", "*"),
)
"""What commands and tests of teaching look at: neither style sheets nor docs."""

LOOKED_THROUGH = {
    "scripts/chrome.py": (),  # where the browser is
    "scripts/start.py": (),
    "scripts/prove.py": (),  # its own test says what it looks at
    "scripts/pins.py": (),
    "scripts/learner_environment.py": (
        *("tfviz/**", "tfviz_lab/**", "tfviz_lessons/**", "teaching/**", "*"),
    ),
    "start.py": (),
    "book/_ext/book_faces.py": ("tfviz/explorers/**.js", "package-lock.json"),
    "tests/cases.py": ("tfviz/**", "tfviz_lab/**", "tests/**"),
    "tests/public.py": ("tfviz/**", "tfviz_lab/**"),
    "tests/book/visits.py": ("_toc.yml",),
    "tests/book/": OF_PAGES,
    "book/_ext/": OF_PAGES,
    "teaching/": OF_TEACHING,
}
"""What these files, and all of a folder, find by other ways than names."""

APART = {
    "tests/browser/test_every_explorer": "explorer",
    "tests/book/test_site": "page",
    "tests/book/test_figures": "page",
    "tests/book/test_reading": "page",
    "tests/book/test_exercises": "lesson",
    "tests/book/test_notebooks": "lesson",
}
"""Files whose tests belong to an explorer, a page or a lesson, which stands in their brackets."""

LAW = re.compile(r"tests/test_laws\.py::test_(?:every_case_obeys|a_reason_is_true)\[(\w+)")
"""The laws of one room, whose case stands in its own test."""

BROWSER = (
    *("book/assets/css/roles.css", "book/assets/js/tfviz-page.js", "book/_ext/book_faces.py"),
    "tests/browser/explorer_*",
    *(f"tests/browser/{x}.py" for x in ("conftest", "host_styles", "test_every_explorer")),
)
"""What each explorer is shown in, and the tests that all must pass."""

PAGE = (
    *(f"tests/book/{x}.py" for x in ("conftest", "visits", "test_site", "test_figures")),
    *("_config.yml", "_toc.yml"),
)
LESSON = (
    "tfviz_lessons/**",
    "scripts/learner_environment.py",
    "book/_ext/**",  # they make notebooks of what the builder has read
    "tests/book/test_exercises.py",
    "tests/book/test_notebooks.py",
    "_config.yml",
)
SITE = ("book/**", "tfviz_lessons/**", "tfviz/catalogue.toml", "_config.yml", "_toc.yml")
"""What all pages are made of."""


def clock(file: str) -> str:
    """library, pages or teaching, of a file of tests: "tests/book/test_site"."""
    if file.startswith("teaching/"):
        return "teaching"
    return "pages" if file.startswith(("tests/book/", "tests/browser/")) else "library"


def group_of(nodeid: str) -> str:
    """The group of a test: its file, or the explorer, page, lesson or case that it is about."""
    if law := LAW.match(nodeid):
        return f"law:{law[1]}"
    file, _, rest = nodeid.partition("::")
    file = file.removesuffix(".py")
    name = re.search(r"\[([\w/]+)", rest)
    kind = APART.get(file)
    if kind is None or name is None:
        return file
    known = kind == "explorer" or "/" in name[1] or name[1] in ("index", "search")
    return f"{kind}:{name[1]}" if known else file


class Tree:
    """The files of the project as they are, and as they were where this branch began."""

    def __init__(self, root: Path = ROOT, since: str = "") -> None:
        self.root, self.since = root, since
        self.found: dict[str, list[str]] = {}

    def git(self, *words: str) -> str | None:
        command = ["git", "-C", str(self.root), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError:
            return None
        return done.stdout if done.returncode == 0 else None

    @cached_property
    def files(self) -> list[str]:
        """All that is no product: what git knows or would take up; without git what lies here."""
        said = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if said is None:
            found = (x.relative_to(self.root) for x in self.root.rglob("*") if x.is_file())
            hidden = {"node_modules", "__pycache__", "_build"}
            said = "\0".join(
                x.as_posix()
                for x in found
                if not hidden & set(x.parts) and not any(p.startswith(".") for p in x.parts[:-1])
            )
        names = {name for name in said.split("\0") if name}
        return sorted(name for name in names if (self.root / name).is_file())

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """`*` stands for names, `**` for any path."""
        found: set[str] = set()
        for pattern in patterns:
            if pattern not in self.found:
                parts = (re.escape(x).replace(r"\*", "[^/]*") for x in pattern.split("**"))
                wanted = re.compile(".*".join(parts))
                self.found[pattern] = [name for name in self.files if wanted.fullmatch(name)]
            found.update(self.found[pattern])
        return sorted(found)

    @cached_property
    def state(self) -> dict[str, tuple[int, int]]:
        """When each file was written, and its size."""
        found = {}
        for name in self.files:
            about = (self.root / name).stat()
            found[name] = (about.st_mtime_ns, about.st_size)
        return found

    @cached_property
    def base(self) -> str | None:
        """The commit that changes are counted from: the one that was named, else the one in which
        this branch has left the default one; None without git, or where git does not have it."""
        if self.since:
            named = self.git("rev-parse", "--verify", "--quiet", f"{self.since}^{{commit}}")
            return named.strip() if named else None
        head = (self.git("rev-parse", "HEAD") or "").strip()
        for name in ("origin/HEAD", "origin/main", "main"):
            if head and (there := self.git("merge-base", head, name)):
                return there.strip()
        return head or None

    @cached_property
    def changed(self) -> set[str]:
        """Files that differ from the base, new ones and those that are gone."""
        if self.base is None:
            return set()
        listed = (
            self.git("diff", "--name-only", "--no-renames", "-z", self.base),
            self.git("ls-files", "-z", "--others", "--exclude-standard"),
        )
        return {name for said in listed if said for name in said.split("\0") if name}

    def before(self, name: str) -> str:
        """The text of a file in the base, "" if there was none."""
        return self.git("show", f"{self.base}:{name}") or ""


class Groups:
    """Groups of tests, and what they rest on."""

    def __init__(self, tree: Tree, kept: Kept | None = None) -> None:
        self.tree, self.kept = tree, kept or Kept(tree.root / "_build/kept")
        self.site: Path | None = None  # where the pages are that will be looked at
        self.everything = True
        self.shelf = Shelf(self.kept)
        beside = [x for x in BESIDE if (tree.root / x).is_dir()]
        self.pieces = Pieces(tree.root, beside, self.shelf)
        self.digests: dict[str, str] = {}
        self.looked: dict[Path, tuple[str, ...]] = {}
        self.lessons: dict[str, dict[str, str]] = {}

    def rests_on(self, group: str) -> dict[str, str]:
        """{piece or file: digest} of all that the tests of a group depend on."""
        kind, _, name = group.partition(":")
        if kind == "explorer":
            return self._explorer(name)
        if kind == "page":
            return self._page(name)
        if kind == "lesson":
            return self._lesson(name)
        if kind == "law":
            return self._law(name)
        return self._file(self.tree.root / f"{kind}.py")

    def digest(self, group: str) -> str:
        return self.asked(group)[0]

    def asked(self, group: str) -> list[str]:
        """Of its tests as they are asked now, and of all of them: who has passed all, has these."""
        less = clock(group) != "library" or ASKED_LESS.fullmatch(group)
        now = "small" if less and not self.everything else "whole"
        rests = self.rests_on(group)
        return [digest(rests, sys.version, asked) for asked in (now, "whole")]

    def proven(self, group: str, kept: Kept) -> bool:
        return any(kept.holds(group, x) for x in self.asked(group))

    def same(self, *patterns: str) -> dict[str, str]:
        """The digests of whole files."""
        for name in (found := self.tree.matching(patterns)):
            if name not in self.digests:
                self.digests[name] = digest(self.tree.root / name)
        return {name: self.digests[name] for name in found}

    def _file(self, file: Path) -> dict[str, str]:
        folders = file.relative_to(self.tree.root).parents
        fixtures = [self.tree.root / folder / "conftest.py" for folder in folders[:-2]]
        sources = [file, *(x for x in fixtures if x.is_file())]
        found = self.same(*PINS, *map(self.pieces.short, sources))
        for source in sources:
            found |= self.pieces.of(source.read_text("utf-8"))
        modules = {label.partition(":")[0] for label in found if ":" in label}
        homes = {home for module in modules if (home := self.pieces.source.file(module))}
        ours = {home for home in homes if self.pieces.short(home).startswith(BESIDE)}
        if "RESTS_ON = " in file.read_text("utf-8"):
            ours = set()  # it knows what it looks for
        for source in {*sources, *ours}:
            found |= self.same(*self.looks(source))
        return found

    def unsaid(self, group: str, read: Iterable[str]) -> list[str]:
        """What of these files is the project's, and the group does not rest on, nor on a piece."""
        ours = set(read).intersection(self.tree.files)
        rests = self.rests_on(group) if ours else {}
        modules = {label.partition(":")[0] for label in rests if ":" in label}
        homes = filter(None, map(self.pieces.source.file, modules))
        return sorted(ours - rests.keys() - set(map(self.pieces.short, homes)))

    def looks(self, source: Path) -> tuple[str, ...]:
        """Where a file of tests looks for what it does not name."""
        if source not in self.looked:
            text = source.read_text("utf-8")
            named = named_in(text)
            if named is None and LOOKS.search(text):
                short = self.pieces.short(source)
                homes = [short, *(f"{x.as_posix()}/" for x in PurePosixPath(short).parents)]
                named = next((LOOKED_THROUGH[x] for x in homes if x in LOOKED_THROUGH), ("**",))
            self.looked[source] = named or ()
        return self.looked[source]

    def cells(self, name: str) -> dict[str, str]:
        """What the cells of a lesson rest on."""
        if name not in self.lessons:
            self.lessons[name] = self.pieces.of(cells(self.tree.root / f"{name}.md", self.kept))
        return self.lessons[name]

    def _explorer(self, name: str) -> dict[str, str]:
        words = "".join(word.capitalize() for word in name.split("_"))
        source = f"from tfviz.explorers import {words}\n{words}()\n"
        return self.pieces.of(source) | self.same(*PINS, *BROWSER)

    def _lesson(self, name: str) -> dict[str, str]:
        return self.cells(name) | self.same(*PINS, *LESSON, f"{name}.md")

    def _law(self, room: str) -> dict[str, str]:
        """A case, with the laws; where nobody has such a case, all."""
        laws = self.tree.root / "tests/test_laws.py"
        files = self.tree.matching([f"tests/test_{room}.py", f"tests/**/test_{room}.py"])
        found = self.pieces.of(laws.read_text("utf-8")) if files else self._file(laws)
        found |= self.same(*PINS, *(f"tests/{x}.py" for x in ("test_laws", "laws", "cases")))
        for file in files:
            found |= self._file(self.tree.root / file)
        return found

    def _page(self, name: str) -> dict[str, str]:
        """The page as it was built, with all that lies beside the pages."""
        found = self.same(*PINS, *PAGE, f"{name}.md")
        if self.site is None:
            return found | self.sources(name)
        files = [self.site / f"{name}.html", *sorted((self.site / "_static").rglob("*"))]
        if "site" not in self.digests:
            self.digests["site"] = digest(*files[1:])
        return found | {"page": digest(files[0]), "static": self.digests["site"]}

    def sources(self, name: str) -> dict[str, str]:
        """What a page is made from."""
        path = self.tree.root / f"{name}.md"
        found = self.same(*SITE, f"{name}.md", "tfviz/explorers/**.js", "tfviz/explorers/**.css")
        if path.parts[-3:-2] == ("chapters",):
            part = path.parent.name
            found |= self.cells(name) | self.same(f"tfviz/exhibits/{part}*")
        return found

    # --- all of them ---

    def every(self) -> list[str]:
        """The groups that may stand apart: explorers, pages, lessons, cases, and all files."""
        files = self.tree.matching(["tests/**test_*.py", "teaching/tests/**test_*.py"])
        drawn = self.tree.matching(["tfviz/explorers/**.js"])
        kit = ("kit", "shared")
        names = [Path(x).stem for x in drawn if Path(x).parent.name not in kit]
        pages = re.findall(r"file: (\S+)", (self.tree.root / "_toc.yml").read_text("utf-8"))
        lessons = [page for page in pages if page.startswith("chapters/")]
        read = {Path(x).stem.removeprefix("test_"): self.tree.root / x for x in files}
        rooms = [x for x, file in read.items() if "\nCASE = Case(" in file.read_text("utf-8")]
        return [
            *(name.removesuffix(".py") for name in files),
            *(f"explorer:{name}" for name in names),
            *(f"page:{name}" for name in pages),
            *(f"lesson:{name}" for name in lessons),
            *(f"law:{name}" for name in rooms),
        ]

    def touched(self) -> set[str]:
        """The groups that rest on something which was another one in the base."""
        changed = self.tree.changed
        if not changed:
            return set()
        pieces: set[str] = set()
        for name in changed:
            if name.endswith(".py"):
                module = self.module(name)
                file = self.tree.root / name
                now = labels(module, file.read_text("utf-8") if file.exists() else "")
                was = labels(module, self.tree.before(name))
                pieces |= {label for label in now if now[label] != was.get(label)}
        both, found = pieces | changed, set()
        for group in self.every():
            kind, _, name = group.partition(":")
            if clock(group) == "library" and kind == group:
                continue  # it runs in any case
            rests = self.rests_on(group)
            if kind == "page":
                rests = rests | self.sources(name)
            if not both.isdisjoint(rests):
                found.add(group)
        return found

    def module(self, name: str) -> str:
        """The name under which a file is imported."""
        for folder in sorted(BESIDE, key=len, reverse=True):
            if name.startswith(f"{folder}/"):
                name = name.removeprefix(f"{folder}/")
                break
        return ".".join(Path(name).with_suffix("").parts).removesuffix(".__init__")


def named_in(text: str) -> tuple[str, ...] | None:
    """What a file of tests says that it rests on; None if it says nothing."""
    if "RESTS_ON = " not in text:
        return None
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "RESTS_ON":
            return tuple(texts(statement.value))
    return None


def texts(node: ast.expr) -> Iterator[str]:
    """Those of a tuple, also of one in it that is unpacked: `("a", *("b", "c"))`."""
    if isinstance(node, ast.Starred):
        yield from texts(node.value)
    elif isinstance(node, ast.Tuple | ast.List):
        for one in node.elts:
            yield from texts(one)
    else:
        yield str(ast.literal_eval(node))


def cells(lesson: Path, kept: Kept) -> str:
    """The Python of a lesson's cells, and of its exercises; "" if it cannot be read."""
    try:
        return "\n".join(code(lesson, kept).sources)
    except LessonError:
        return ""


# --- what pytest is told --------------------------------------------------------------------------


@dataclass
class Plan:
    """Which groups run."""

    only: str = ""
    chosen: Collection[str] | None = None  # of pages and teaching; None for all
    held: Collection[str] = ()

    def runs(self, nodeid: str) -> bool:
        group, part = group_of(nodeid), clock(nodeid)
        if group in self.held or (self.only and part != self.only):
            return False
        return self.chosen is None or part == "library" or group in self.chosen

    def data(self) -> dict[str, Any]:
        """It goes from process to process as plain data."""
        chosen = None if self.chosen is None else sorted(self.chosen)
        return {"only": self.only, "chosen": chosen, "held": sorted(self.held)}


def select(plan: Plan, config: Any, items: list[Any]) -> None:
    """Leave out the tests that a plan does not run."""
    left_out = [item for item in items if not plan.runs(item.nodeid)]
    items[:] = [item for item in items if plan.runs(item.nodeid)]
    config.hook.pytest_deselected(items=left_out)


class Reads:
    """What the tests of each group read: files that they open, or give to a program by name.

    Python's own reading of modules is no matter here (`Pieces` follows imports), nor are lines that
    are read to be shown. What a program of another process opens is not seen.
    """

    OWN = re.compile(r"<frozen importlib|[/\\](linecache|rewrite)\.py$")

    def __init__(self, root: Path) -> None:
        self.root, self.group, self.found = f"{root}{os.sep}", "", dict[str, set[str]]()
        sys.addaudithook(self.note)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.group = group_of(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self.group = ""

    def pytest_sessionfinish(self, session: Any) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["read"] = self.data()

    def note(self, event: str, told: tuple[Any, ...]) -> None:
        """Called by Python for all that it is asked to do: it must be quick, and never fail."""
        if not self.group or event not in ("open", "subprocess.Popen"):
            return
        words = told[:1] if event == "open" else told[1]
        for word in [words] if isinstance(words, str) else words or ():
            name = os.path.abspath(word) if isinstance(word, str) else str(word)
            if name.startswith(self.root) and not (
                name.endswith((".py", ".pyc")) and self.is_own()
            ):
                self.found.setdefault(self.group, set()).add(name.removeprefix(self.root))

    def is_own(self) -> bool:
        """Whether Python itself reads, or who shows its lines: near the top of the stack."""
        frame: Any = sys._getframe(1)
        for _ in range(8):
            if frame is None:
                return False
            if self.OWN.search(frame.f_code.co_filename):
                return True
            frame = frame.f_back
        return False

    def data(self) -> dict[str, list[str]]:
        return {
            group: sorted(Path(x).as_posix() for x in files) for group, files in self.found.items()
        }


class Proof:
    """What pytest's main process does for a plan: it tells the others, and notes what passed."""

    def __init__(self, plan: Plan, report: Path, reads: Reads | None = None) -> None:
        self.plan, self.report, self.reads = plan, report, reads
        self.read: dict[str, set[str]] = {}
        self.terminal: Any = None
        self.wanted: set[str] = set()
        self.passed: set[str] = set()
        self.others: set[str] = set()  # that have failed, or were left out

    def pytest_sessionstart(self, session: Any) -> None:
        self.terminal = session.config.pluginmanager.get_plugin("terminalreporter")

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["plan"] = self.plan.data()

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Only where it has no others: they do the same (conftest.py)."""
        select(self.plan, config, items)

    def pytest_collection_finish(self, session: Any) -> None:
        self.wanted.update(item.nodeid for item in session.items)

    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self.wanted.update(ids)

    def pytest_testnodedown(self, node: Any) -> None:
        self.add(getattr(node, "workeroutput", {}).get("read", {}))

    def add(self, read: Mapping[str, Iterable[str]]) -> None:
        for group, files in read.items():
            self.read.setdefault(group, set()).update(files)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.others.add(report.nodeid)
            if report.failed and self.terminal:  # at once: a run that is stopped has said it
                self.terminal.write_line(f"\nFAILED {report.nodeid}\n{last_words(report)}")
        elif report.when == "call":
            self.passed.add(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if not report.passed:
            self.others.add(report.nodeid)

    def pytest_sessionfinish(self, session: Any) -> None:
        options = session.config.option
        alone = options.keyword or options.markexpr or getattr(options, "lf", False)
        if alone or options.deselect or not all(map(os.path.isdir, session.config.args)):
            return  # not all tests of a group were asked for
        missed = {group_of(x) for x in (self.wanted - self.passed) | self.others}
        proven = {group_of(nodeid) for nodeid in self.passed} - missed
        self.add(self.reads.data() if self.reads else {})
        read = {group: sorted(files) for group, files in self.read.items()}
        self.report.write_text(json.dumps({"proven": sorted(proven), "read": read}), "utf-8")


def last_words(report: Any) -> str:
    """The error of a test that failed, in a few lines."""
    crash = getattr(report.longrepr, "reprcrash", None)
    said = crash.message if crash else report.longreprtext
    return "\n".join(f"    {line[:200]}" for line in said.strip().splitlines()[:LAST_LINES])


def plan(groups: Groups, kept: Kept, only: str = "", touched: Iterable[str] = ()) -> Plan:
    """What is to run: all, or the library, the exemplars and what is touched; nothing twice."""
    chosen = None if groups.everything else {*exemplars.GROUPS, *touched}
    if chosen is not None:  # teaching has its exemplars inside of its files
        chosen.update(group for group in groups.every() if group.startswith(SMALL_CLASSES))
    known = set(kept.groups())
    held = [group for group in groups.every() if group in known and groups.proven(group, kept)]
    return Plan(only, chosen, held)


def keep(
    groups: Groups,
    kept: Kept,
    proven: Iterable[str],
    begun: Mapping[str, Any],
    read: Mapping[str, Iterable[str]] | None = None,
) -> list[str]:
    """Note the groups that have passed, unless something was changed meanwhile, or they read what
    they do not rest on; what to say."""
    if Tree(groups.tree.root).state != begun:
        return ["Files were changed while the tests ran: what has passed is not kept."]
    known, said = set(groups.every()), list[str]()
    for group in sorted(known.intersection(proven)):
        if more := groups.unsaid(group, (read or {}).get(group, ())):
            said.append(
                f"{group} is not kept: it reads {', '.join(more)}, and does not rest on it."
            )
        else:
            kept.keep(group, groups.digest(group))
    return said and [
        *said,
        "Name it in RESTS_ON of the tests, or LOOKED_THROUGH (scripts/prove.py).",
    ]


# --- the command ----------------------------------------------------------------------------------


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="every test")
    parser.add_argument("--only", choices=("library", "pages", "teaching"), default="")
    parser.add_argument("--since", default="", help="the commit that a change is counted from")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("TFVIZ_OUT", ROOT)))
    given, more = parser.parse_known_args(words)
    out, tree = given.out.resolve(), Tree(since=given.since)
    kept = Kept(out / "_build" / "kept")
    groups = Groups(tree, kept)
    os.environ.pop("TFVIZ_ALL", None)
    touched: set[str] = set()
    if given.all:
        os.environ["TFVIZ_ALL"] = "yes"
    else:
        if tree.since and tree.base is None:
            print(f"{tree.since} is not in this clone: what was changed since then is not known.")
            print("The library and the exemplars are proven; make test-all proves the rest.")
        groups.everything = False
        touched = groups.touched()
        os.environ["TFVIZ_TOUCHED"] = ",".join(sorted(touched))
    site = Path(os.environ["TFVIZ_SITE"]) if "TFVIZ_SITE" in os.environ else None
    if site is None and given.only in ("", "pages"):
        site = build(out, touched, given.all)
        if site is None:
            return 1
        os.environ["TFVIZ_SITE" if given.all else "TFVIZ_PART"] = str(site)
    groups.site = site
    chosen = plan(groups, kept, given.only, touched)
    groups.shelf.save()
    folders = [x for x in ("tests", "teaching/tests") if (ROOT / x).is_dir()]
    asked = any((ROOT / word.partition("::")[0]).exists() for word in more)
    begun = dict(tree.state)
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "proven.json")
        told = json.dumps([chosen.data(), str(report)])
        command = [sys.executable, "-m", "pytest", "-o", f"faulthandler_timeout={HANGS}"]
        command += [*more, *([] if asked else folders)]
        code = subprocess.run(command, cwd=ROOT, env=os.environ | {"TFVIZ_PLAN": told}).returncode
        done = json.loads(report.read_text("utf-8")) if report.exists() else {}
    for line in keep(groups, kept, done.get("proven", ()), begun, done.get("read")):
        print(line)
    if chosen.held:
        print(f"{len(chosen.held)} groups of tests were proven before, and did not run again.")
        print("FRESH=1 runs them all the same.")
    return 0 if code == NOTHING_TO_RUN and chosen.held else code


def build(out: Path, touched: Iterable[str], whole: bool) -> Path | None:
    """The pages that are looked at: all, or of a book of exemplars. None if it does not build."""
    command = [str(start.python(start.FIRST)), "scripts/build_book.py", "--quiet", "--prove"]
    if whole:
        command += ["--out", str(out)]
    else:
        kinds = ("page:", "lesson:")  # whose notebooks are made from its page
        pages = {group.partition(":")[2] for group in touched if group.startswith(kinds)}
        out = out / "_build" / "exemplars"
        out.mkdir(parents=True, exist_ok=True)
        toc = out / "_toc.yml"
        toc.write_text(exemplars.contents(pages.union(exemplars.PAGES)), "utf-8")
        command += ["--out", str(out), "--toc", str(toc), "--draft"]
    done = subprocess.run(command, cwd=ROOT)
    return out / "_build" / "html" if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
