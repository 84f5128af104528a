"""The Python of somebody who opens a notebook: ipykernel, and what its install cell brings.

Nothing is fetched that is here already: the packages that `tfviz[lessons]` asks for, and what those
ask for, are linked from the environment that runs this. What the library needs and does not ask for
is missing there, as it is in Colab. Then the install cell itself is run, the working tree being at
its address; only that may use the network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
HOMES = {"tfviz": ".", "tfviz-course": "teaching"}  # our packages, and their folders
OFFLINE = """
import os, socket

def local(host):
    return host in (None, "", "localhost", "127.0.0.1", "::1", b"localhost", b"127.0.0.1")

def gated(call, host_of):
    def gate(*args, **named):
        if not local(host_of(*args, **named)):
            raise OSError(f"a lesson must not use the network, this one asked for {args[-1]!r}")
        return call(*args, **named)
    return gate

def peer(self, address):
    return address[0] if isinstance(address, tuple) else None  # a path: a socket of this machine

if os.environ.get("TFVIZ_OFFLINE"):
    socket.socket.connect = gated(socket.socket.connect, peer)
    socket.socket.connect_ex = gated(socket.socket.connect_ex, peer)
    socket.getaddrinfo = gated(socket.getaddrinfo, lambda host, *_, **__: host)
"""


def asked_for() -> list[str]:
    """The requirements of `tfviz[lessons]`, and the kernel."""
    return [*of_the_library("lessons"), "ipykernel"]


def of_the_library(*extras: str) -> list[str]:
    """What tfviz asks for with these extras."""
    return of_ours("tfviz", *extras)


def of_ours(name: str, *extras: str) -> list[str]:
    """What a package of this repository asks for with these extras, by its pyproject.toml; its
    requirements may name packages of this repository."""
    project = tomllib.loads((ROOT / HOMES[name] / "pyproject.toml").read_text("utf8"))["project"]
    stated: list[str] = [*project["dependencies"]]
    for extra in extras:
        stated += project["optional-dependencies"][extra]
    wanted: list[str] = []
    for text in stated:
        asked = Requirement(text)
        wanted += of_ours(asked.name, *asked.extras) if asked.name in HOMES else [text]
    return list(dict.fromkeys(wanted))


def closure(requirements: Sequence[str]) -> dict[str, Distribution]:
    """What these packages need, and what that needs: by name, as installed here."""
    packages: dict[str, Distribution] = {}
    seen: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        extras = wanted.extras or {""}
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        package = packages.setdefault(wanted.name.lower(), distribution(wanted.name))
        for text in package.requires or []:
            needed = Requirement(text)
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(needed)
    return packages


def link(package: Distribution, target: Path) -> None:
    """The package's files in another folder; copied where they cannot be linked."""
    for file in package.files or []:
        source = Path(str(package.locate_file(file)))
        if ".." in file.parts or not source.is_file():  # programs, shared data
            continue
        place = target / file
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, place)
        except FileExistsError:
            pass
        except OSError:
            shutil.copy2(source, place)


def sources() -> Iterator[Path]:
    """What pip finds at the address of the package: the working tree, without what git ignores."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            yield ROOT / name
    for package in ("tfviz", "tfviz_lab"):
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def hashed(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def torch_version() -> str:
    """The line of requirements.txt that says which torch the book uses."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith("torch=="))


def run(*words: object, **environment: str) -> None:
    command = [str(word) for word in words]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=inherited | environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")


def make(place: Path) -> Path:
    """That Python, in the folder `place`; made again only where something has changed."""
    python, stamp, mine = place / "bin/python", place / "made-for", place / "has-tfviz"
    packages = closure(asked_for())
    named = "\n".join(sorted(f"{name} {p.version}" for name, p in packages.items()))
    wanted = hashed(named.encode(), sys.version.encode(), OFFLINE.encode())
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place, with_pip=True)
        library = Path(sysconfig.get_path("purelib", "venv", {"base": str(place)}))
        for package in packages.values():
            link(package, library)
        (library / "sitecustomize.py").write_text(OFFLINE)
        stamp.write_text(wanted)
    files = list(sources())
    tree = hashed(*(str(p.relative_to(ROOT)).encode() + p.read_bytes() for p in files))
    if not mine.exists() or mine.read_text() != tree:
        install(python, files)
        mine.write_text(tree)
    return python


@contextmanager
def copied(files: Iterable[Path]) -> Iterator[str]:
    """The working tree at an address of its own, as pip reads it: `tfviz[lessons] @ …`."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tfviz")
        for path in files:
            copy = tree / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        yield f"tfviz[lessons] @ {tree.as_uri()}"


def install(python: Path, files: Sequence[Path]) -> None:
    """Run the install cell of a notebook there; RuntimeError if it fails."""
    from tfviz_lessons.execute import said_by
    from tfviz_lessons.notebook import INSTALL

    run(python, "-m", "pip", "uninstall", "-q", "-y", "tfviz")
    with copied(files) as package, tempfile.TemporaryDirectory() as folder:
        constraint = Path(folder, "torch.txt")
        constraint.write_text(torch_version() + "\n")
        cell = INSTALL.format(version="none yet", package=package)
        quiet = {"PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        said = said_by(python, cell, PIP_CONSTRAINT=str(constraint), **quiet)
        if said.problems:
            raise RuntimeError("the install cell fails:\n" + "\n".join(said.problems))


def make_newest(place: Path) -> Path:
    """A new Python in the folder `place` with the newest packages that the install cell accepts."""
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True)
    python = place / "bin/python"
    library = Path(sysconfig.get_path("purelib", "venv", {"base": str(place)}))
    (library / "sitecustomize.py").write_text(OFFLINE)
    with copied(sources()) as package:
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", package)
    return python
