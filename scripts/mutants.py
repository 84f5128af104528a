"""Break the project on purpose, one line at a time, and see that a test notices.

    python scripts/mutants.py              every mutant
    python scripts/mutants.py window XL    those whose name contains one of these words

Each mutant is one replacement in a copy of the repository, and the test that names it must fail: in
its CASE for the room of a mechanism, in BROKEN_LINES for any other file. Two run at a time.
Run the tests themselves first: what is red anyway would kill everything.

Exits 1 if more than one mutant survives, 2 if the text that a mutant replaces is no longer in its
file, or its tests did not run: then what the test names is wrong, not the test.
"""

from __future__ import annotations

import ast
import os
import resource
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
import torch  # noqa: F401 -- here, so that it is loaded once for all mutants

os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
ROOT = Path(__file__).resolve().parent.parent
HOMES = ("tests", "teaching")
SURVIVORS = 1
"""So many are forgiven."""
AT_A_TIME, SECONDS = 2, 120
"""Processor time that the tests of a mutant may take; one that never ends is noticed by that."""


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: str


def named_by_tests() -> list[Mutant]:
    """Those that tests name for what they guard, read without running them: a mutant that is tried
    in a fork must be the first to import its file.

    A mechanism's stand in the CASE of tests/<part>/test_<id>.py, for tfviz/<part>/<id>.py. Others
    stand in BROKEN_LINES, a table {file: [(name, line, the line broken), …]}; a fourth text chooses
    among the tests of the file, as pytest's -k does.
    """
    found = []
    for test in sorted(file for home in HOMES for file in (ROOT / home).glob("**/test_*.py")):
        name, part = test.stem.removeprefix("test_"), test.parent.name
        tests = str(test.relative_to(ROOT))
        for statement in ast.parse(test.read_text("utf8")).body:
            match statement:
                case ast.Assign(
                    targets=[ast.Name("CASE")], value=ast.Call(args=core, keywords=keywords)
                ):
                    named = {k.arg: k.value for k in keywords}
                    mutants = ast.literal_eval(named.pop("mutants", ast.List([])))
                    laws = (
                        f" tests/test_laws.py tests/test_mixers.py tests/test_refusals.py -k {name}"
                    )
                    too = laws if core or named else ""  # the laws may notice, too
                    room = f"tfviz/{part}/{name}.py"
                    found += [Mutant(one, room, old, new, tests + too) for one, old, new in mutants]
                case ast.Assign(targets=[ast.Name("BROKEN_LINES")], value=table):
                    for file, mutants in ast.literal_eval(table).items():
                        for one, old, new, *some in mutants:
                            chosen = "".join(f" -k {shlex.quote(word)}" for word in some)
                            found.append(Mutant(one, file, old, new, tests + chosen))
    return found


MUTANTS = named_by_tests()


class BadMutantError(Exception):
    """A mutant that is none: the list is out of date."""


def begin(mutant: Mutant, copy: Path) -> int:
    """Make the mutant in this copy and run its tests in a process of its own, whose id is returned.

    The process is a fork of this one, which has loaded torch already. BadMutantError if the line
    that the mutant replaces is not there.
    """
    place = copy / mutant.file
    source = (ROOT / mutant.file).read_text("utf8") if (ROOT / mutant.file).exists() else ""
    if mutant.old not in source:
        raise BadMutantError(f"{mutant.file} no longer holds {mutant.old!r}; give it another line")
    place.write_text(source.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    if pid := os.fork():
        return pid
    code = 3  # what pytest calls an internal error
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        output = os.open(copy / "output", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(copy)
        os.environ["PYTHONPATH"] = sys.path[0] = str(copy)
        # what is asked of a room that was touched: `tests/exemplars.py`
        os.environ["TFVIZ_TOUCHED"] = f"law:{Path(mutant.file).stem}"
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *shlex.split(mutant.tests)]))
    finally:
        os._exit(code)


def ended(mutant: Mutant, copy: Path, status: int) -> bool:
    """Whether the mutant lives. BadMutantError if its tests did not run."""
    shutil.copyfile(ROOT / mutant.file, copy / mutant.file)
    code = os.waitstatus_to_exitcode(status)
    if code in (3, 4, 5):  # 1: a test failed; 2: it cannot even be imported; < 0: it never ended
        raise BadMutantError(f"its tests did not run: {(copy / 'output').read_text()[-300:]}")
    return code == 0


def main() -> int:
    words = sys.argv[1:] or [""]
    todo = [mutant for mutant in MUTANTS if any(word in mutant.name for word in words)]
    total, alive, bad = len(todo), list[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        free = [_copy(Path(folder) / f"copy {n}") for n in range(AT_A_TIME)]
        running: dict[int, tuple[Mutant, Path]] = {}
        while todo or running:
            mutant, copy = None, free[-1] if free else None
            try:
                if todo and copy:
                    mutant = todo.pop(0)
                    running[begin(mutant, copy)] = mutant, free.pop()
                    continue
                pid, status = os.wait()
                mutant, copy = running.pop(pid)
                free.append(copy)
                lives = ended(mutant, copy, status)
            except BadMutantError as error:
                assert mutant
                print(f"ERROR   {mutant.name}: {error}", flush=True)
                bad.append(mutant.name)
            else:
                print(f"{'ALIVE ' if lives else 'killed'}  {mutant.name}", flush=True)
                alive += [mutant.name] * lives
    print(f"{total} mutants, {len(alive)} alive, {len(bad)} that could not be tried")
    return 2 if bad else 1 if len(alive) > SURVIVORS else 0


def _copy(target: Path) -> Path:
    skip = shutil.ignore_patterns(".*", "_build", "node_modules", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, target, ignore=skip)
    if (ROOT / "node_modules").exists():  # pages of explorers load some of it
        (target / "node_modules").symlink_to(ROOT / "node_modules")
    return target


if __name__ == "__main__":
    sys.exit(main())
