"""Runs Python as an ordinary user where the tests run as root: some doors are closed to root only.

Root gives each sandbox a user of its own, who may not look into the sandbox's first process; an
ordinary user's sandbox is that user's through and through.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
UID = 65534


def prefix(*own: Path) -> list[str]:
    """The beginning of a command that becomes an ordinary user, who can read Python and this
    clone, wherever they are, and to whom the folders `own` belong. Empty for who is one already.
    """
    if os.geteuid() != 0:
        return []
    for folder in own:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, UID, UID, follow_symlinks=False)
    read = [path.resolve() for path in (Path(sys.base_prefix), Path(sys.prefix), ROOT)]
    bound = {path: "--ro-bind" for path in read} | {path.resolve(): "--bind" for path in own}
    closed = {up for path in bound for up in path.parents if not up.stat().st_mode & 0o001}
    tops = [up for up in sorted(closed) if closed.isdisjoint(up.parents)]
    command = ["bwrap", "--dev-bind", "/", "/"]
    for folder in tops:
        command += ["--perms", "0755", "--tmpfs", str(folder)]
    for path, how in bound.items():
        inside = [up for up in sorted(path.parents) if not set(tops).isdisjoint(up.parents)]
        for up in inside:
            command += ["--perms", "0755", "--dir", str(up)]
        if not set(tops).isdisjoint(path.parents):
            command += [how, str(path), str(path)]
    user = [f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    return [*command, "--", "setpriv", *user]


def run(code: str, *words: str, private: str = "") -> list[str]:
    """The lines that this code prints; `private` is in the environment of who runs it."""
    packages = f"{ROOT}{os.pathsep}{ROOT / 'teaching'}"
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "PYTHONPATH": packages}
    done = subprocess.run(
        [*prefix(), sys.executable, "-B", "-c", code, *words],
        cwd=ROOT,
        env=environment | {"PRIVATE_TO_THE_GRADER": private},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
