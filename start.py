"""Everything begins here: python start.py book (or build, test, lab, …) on a machine with Python.

It makes what a command needs, once, in the folder of the project, and runs it there. `make` calls
the same. There are two environments, because what proves the book must not help to build it:

    .venv       reads: what builds and serves the book, its notebooks and JupyterLab
    .venv-dev   proves and teaches: tests, grading, a hub. It is layered over the first: it sees
                that one's packages, and that one sees none of its own
"""

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
if sys.version_info < OLDEST:  # this line and those above run in any Python 3
    sys.exit(
        "Python 3.11 or newer is needed; this is {}.{}. Try: make PYTHON=/path/to/python, "
        "or /path/to/python start.py book".format(*sys.version_info)
    )

import argparse
import hashlib
import importlib.util
import sysconfig
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FIRST, SECOND, MODULES = ROOT / ".venv", ROOT / ".venv-dev", ROOT / "node_modules"
WINDOWS = os.name == "nt"
NO_VENV = (
    "This Python cannot make environments (its module ensurepip is missing): on Debian and "
    "Ubuntu, run `sudo apt install python3-venv`, and then the same command again."
)
NOT_INSTALLED = (
    "The packages could not be installed; what pip says of it is above. What it has installed "
    "stays, so the same command goes on from there."
)
# The second environment gets the first one's programs too, run by its own Python.
PROGRAMS = """\
import sys
from importlib.metadata import distributions
from pathlib import Path
from pip._vendor.distlib.scripts import ScriptMaker

folder = Path(sys.executable).parent
maker = ScriptMaker(None, str(folder))
maker.executable, maker.variants = sys.executable, {""}
for package in distributions():
    for entry in package.entry_points.select(group="console_scripts"):
        if not (folder / entry.name).exists() and not (folder / f"{entry.name}.exe").exists():
            maker.make(f"{entry.name} = {entry.value}")
"""


def python(environment: Path) -> Path:
    return environment / ("Scripts/python.exe" if WINDOWS else "bin/python")


def _path(environment: Path) -> dict[str, str]:
    """The variable PATH with the programs of an environment first."""
    return {"PATH": os.pathsep.join([str(python(environment).parent), os.environ["PATH"]])}


def run(*words: object, **environment: str) -> None:
    """Run a command in the project's folder; end as it ends if it fails."""
    command = [str(word) for word in words]
    try:
        code = subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode
    except KeyboardInterrupt:
        code = 130
    if code:
        sys.exit(code)


def wanted() -> dict[Path, str]:
    """What each folder of installed things is to be made of, as one number; its stamp says it."""
    pins: list[Path | str] = [ROOT / "requirements.txt", _package(ROOT)]
    teaching: list[Path | str] = [ROOT / "teaching/requirements.txt", _package(ROOT / "teaching")]
    more = [ROOT / "requirements-dev.txt", *teaching, Path(__file__)]
    modules = [ROOT / "package.json", ROOT / "package-lock.json"]
    return {FIRST: _digest(*pins), SECOND: _digest(*pins, *more), MODULES: _digest(*modules)}


def _package(folder: Path) -> str:
    """What a pyproject.toml says of the package itself: what it says to tools installs nothing."""
    said = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    tools = said.pop("tool", {})
    return repr((said, tools.get("setuptools")))


def _digest(*parts: Path | str) -> str:
    """One number for these files and texts, this Python, and where the project is."""
    total = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for part in parts:
        total.update(part.read_bytes() if isinstance(part, Path) else part.encode())
    return total.hexdigest()


def _once(folder: Path, make: Callable[[], None]) -> None:
    """Fill a folder, unless it was filled with the same before.

    One that is a link belongs to another copy of the project, which must not lose it.
    """
    stamp, number = folder / ".installed", wanted()[folder]
    if not stamp.exists() or stamp.read_text() != number:
        if folder.is_symlink():
            sys.exit(
                f"{folder.name} is a link to {os.readlink(folder)}, which was not made for this "
                "place; remove the link, and the same command makes one here."
            )
        stamp.unlink(missing_ok=True)
        make()
        stamp.write_text(number)


def _create(environment: Path, *options: str) -> None:
    """An empty environment. Its programs name its place, so one that was moved is made anew."""
    place = environment / ".place"
    if python(environment).exists() and place.exists() and place.read_text() == str(environment):
        return
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(NO_VENV)
    run(sys.executable, "-m", "venv", "--clear", *options, environment)
    place.write_text(str(environment))


def _pip(environment: Path, *words: object) -> None:
    command = [python(environment), "-m", "pip", "install", "--quiet", *words]
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    done = subprocess.run([str(word) for word in command], cwd=ROOT, env=os.environ | quiet)
    if done.returncode:
        sys.exit(NOT_INSTALLED)


def first() -> None:
    """make the environment that reads"""

    def make() -> None:
        print("Making the environment: about 2.5 GB, once …", flush=True)
        _create(FIRST)
        _pip(FIRST, "-r", "requirements.txt")
        _pip(FIRST, "--no-deps", "--editable", ".")

    _once(FIRST, make)


def second() -> None:
    """make the environment that proves and teaches, layered over the first"""
    first()

    def make() -> None:
        print("Making the second environment, for tests and teaching …", flush=True)
        _create(SECOND, "--without-pip")  # it sees the first one's
        layer = f"import site; site.addsitedir({str(_packages(FIRST))!r})\n"
        (_packages(SECOND) / "first_environment.pth").write_text(layer)
        for data in ("share/jupyter", "etc/jupyter"):  # Jupyter looks beside its own Python
            shutil.copytree(FIRST / data, SECOND / data, symlinks=True, dirs_exist_ok=True)
        _pip(SECOND, "-r", "requirements-dev.txt", "-c", "requirements.txt")
        _pip(SECOND, "--no-deps", "--editable", "teaching")
        run(python(SECOND), "-c", PROGRAMS)

    _once(SECOND, make)


def _packages(environment: Path) -> Path:
    """The folder of an environment's packages."""
    base = {"base": str(environment), "platbase": str(environment)}
    return Path(sysconfig.get_path("purelib", "venv", base))


def npm() -> None:
    """bring what the pages take from npm, which itself is a Python package: no Node is needed"""
    first()

    def make() -> None:
        program = shutil.which("npm", path=str(python(FIRST).parent))
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        run(program, "ci", *options, **_path(FIRST))

    _once(MODULES, make)


# --- commands -------------------------------------------------------------------------------------


def book(*words: str) -> None:
    """build the book and serve it on this machine: [--out FOLDER] [--port NUMBER]"""
    build("--serve", *words)


def build(*words: str) -> None:
    """build the book only: [--out FOLDER] [--draft]"""
    npm()
    run(python(FIRST), "scripts/build_book.py", *words)


def chapter(*words: str) -> None:
    """build one chapter and say what it lacks: sparse/hashing [--out FOLDER]"""
    npm()
    run(python(FIRST), "scripts/chapter.py", *words)


def lab(*words: str) -> None:
    """open JupyterLab, with everything installed"""
    first()
    run(python(FIRST), "scripts/lab.py", *words)


def env() -> None:
    """only install all that is needed, for teaching and tests too"""
    second()
    npm()


def lint() -> None:
    """read the files: style and types"""
    env()
    node = shutil.which("node", path=str(python(FIRST).parent))
    prettier = MODULES / "prettier/bin/prettier.cjs"
    cached = ("--cache", "--cache-location", "_build/prettier")
    checked = ("--check", "--log-level=warn", *cached, "tfviz/explorers", "book/assets")
    # what ruff keeps of a file is old when another moves, which changes the order of imports
    for words in (
        (python(SECOND), "-m", "ruff", "check", "--no-cache", "."),
        (python(SECOND), "-m", "ruff", "format", "--check", "--no-cache", "."),
        (python(SECOND), "-m", "mypy"),
        (node, prettier, *checked),
        (node, MODULES / "typescript/bin/tsc", "--incremental", "--tsBuildInfoFile", "_build/tsc"),
    ):
        run(*words)


def test(*words: str) -> None:
    """prove the library, one of each kind, and what was changed: [what pytest takes]"""
    prove(*words)


def test_all(*words: str) -> None:
    """prove everything, those in a browser and of teaching, too: [what pytest takes]"""
    prove("--all", *words)


def prove(*words: str) -> None:
    env()
    subprocess.run([str(python(SECOND)), "scripts/system.py", "--install"], cwd=ROOT)
    lint()
    environment = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", **_path(SECOND)}
    places = os.pathsep.join(str(ROOT / name) for name in ("", "scripts", "tests"))
    several = () if any(word.startswith("-n") for word in words) else ("-n", "2")
    command = (python(SECOND), "scripts/prove.py", *several, *words)
    run(*command, **environment, PYTHONPATH=places)


COMMANDS = (book, test, test_all, lab, build, chapter, lint, env, first, second, npm)


def main(words: Sequence[str]) -> None:
    names = {one.__name__.replace("_", "-"): one for one in COMMANDS}
    about = "\n".join(f"  {name:<9} {one.__doc__}" for name, one in names.items())
    parser = argparse.ArgumentParser(
        usage="python start.py COMMAND …",
        description=(__doc__ or "").partition("\n")[0],
        epilog=f"commands:\n{about}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=names, metavar="COMMAND")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="what the command takes")
    given = parser.parse_args(words)
    names[given.command](*given.words)


if __name__ == "__main__":
    main(sys.argv[1:])
