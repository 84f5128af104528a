"""Write the pinned requirements anew, from what is installed here.

    python scripts/pins.py            write the files of FILES
    python scripts/pins.py --check    say only whether they are what would be written

requirements.txt is what the book, its notebooks and JupyterLab need: the extra `book` of
pyproject.toml and all that it asks for. teaching/requirements.txt adds what grading and a hub need,
and requirements-dev.txt what tests and benchmarks need, the extra `dev`. No package stands in two
of them. Bring the environment to the versions that you want first, and run all the tests with it. A
comment after a pin stays.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution

from learner_environment import ROOT, closure, of_ours
from packaging.requirements import Requirement

# each file adds to those above it what this package needs
FILES = {
    "requirements.txt": "tfviz[book]",
    "teaching/requirements.txt": "tfviz-course[hub]",
    "requirements-dev.txt": "tfviz[dev]",
}


def normal(name: str) -> str:
    """A package's name as all its spellings have it: PyYAML, pyyaml → pyyaml."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(ours: str) -> dict[str, Distribution]:
    """All packages that a package of ours, such as tfviz[book], needs, by their normal name."""
    asked = Requirement(ours)
    packages = closure(of_ours(asked.name, *asked.extras)).values()
    return {normal(package.metadata["Name"]): package for package in packages}


def pinned(text: str, packages: Iterable[Distribution]) -> str:
    """A file of pins: its head as it stands, then these packages with their comments of before."""
    lines = text.splitlines()
    head = [line for line in lines if "==" not in line]
    comments = {
        normal(line.partition("==")[0]): comment
        for line in lines
        if "==" in line and (comment := line.partition("  #")[2])
    }
    pins = []
    for package in sorted(packages, key=lambda one: one.metadata["Name"].lower()):
        name = package.metadata["Name"]
        version = package.version.partition("+")[0]  # torch 2.13.0+cpu is 2.13.0 elsewhere
        comment = comments.get(normal(name), "")
        pins.append(f"{name}=={version}" + (f"  #{comment}" if comment else ""))
    return "\n".join([*head, *pins]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    given = parser.parse_args()
    before, stale = set[str](), list[str]()
    for file, ours in FILES.items():
        path, packages = ROOT / file, installed(ours)
        text = path.read_text("utf8")
        new = pinned(text, [package for name, package in packages.items() if name not in before])
        before |= set(packages)
        if new != text:
            stale.append(file)
            if not given.check:
                path.write_text(new, "utf8")
    if stale:
        print(f"{'not as' if given.check else 'now as'} installed here: {', '.join(stale)}")
    return int(bool(stale) and given.check)


if __name__ == "__main__":
    sys.exit(main())
