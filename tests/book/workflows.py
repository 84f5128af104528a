"""GitHub's workflows, played on this machine: steps in their order, expressions as GitHub has them.

A step that `uses:` an action is GitHub's own: a test says what stands for it. Expressions may ask
only for what every copy of the repository has, so a secret or a variable of the owner fails.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

NAME = re.compile(r"'[^']*'|[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)+")


class NotInACopyError(Exception):
    """An expression asks for what a copy of the repository does not have."""


@dataclass(frozen=True)
class Step:
    """One step of a job, with its expressions worked out."""

    name: str  # its name, else its action, else its first line
    uses: str  # an action without the commit at which it is pinned
    run: str


def value(expression: str, context: Mapping[str, Any]) -> Any:
    """An expression such as `github.ref == 'refs/heads/main'`; names are those of `context`."""

    def known(match: re.Match[str]) -> str:
        if match[0].startswith("'"):
            return match[0]
        if match[0] not in context:
            raise NotInACopyError(f"{match[0]} in {expression!r}: a copy does not have it")
        return repr(context[match[0]])

    python = NAME.sub(known, expression).replace("&&", " and ").replace("||", " or ")
    functions = {
        "startsWith": str.startswith,
        "success": lambda: True,
        "hashFiles": lambda *patterns: f"digest-of-{len(patterns)}-patterns",
    }
    return eval(python, {"__builtins__": {}}, functions)


def filled(text: str, context: Mapping[str, Any]) -> str:
    """A text whose `${{ … }}` are worked out."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: str(value(match[1].strip(), context)), text)


def read(file: Path) -> dict[str, Any]:
    """A workflow; its triggers stand under "on", which YAML takes for a truth value."""
    workflow: dict[Any, Any] = yaml.safe_load(file.read_text("utf8"))
    workflow["on"] = workflow.pop(True)
    return workflow


def steps(job: Mapping[str, Any], context: Mapping[str, Any]) -> Iterator[Step]:
    """The steps that run, if the job does; what else a step may hold is not played, and refused."""
    if not value(job.get("if", "success()"), context):
        return
    for step in job["steps"]:
        unknown = set(step) - {"name", "if", "uses", "with", "run"}
        assert not unknown, f"a step has {unknown}, which is not played"
        for given in step.get("with", {}).values():
            filled(str(given), context)
        if value(step.get("if", "success()"), context):
            run, uses = filled(step.get("run", ""), context), step.get("uses", "").partition("@")[0]
            yield Step(step.get("name") or uses or run.splitlines()[0], uses, run)


def play(step: Step, folder: Path, environment: Mapping[str, str]) -> None:
    """Run a step as GitHub's runner does: bash, and the first command that fails ends it."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.run],
        cwd=folder,
        env=dict(environment),
        capture_output=True,
        text=True,
    )
    assert not done.returncode, f"{step.name}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
