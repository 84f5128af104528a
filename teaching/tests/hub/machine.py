"""A machine of its own for a test: runs a command as root, and nothing of it is left behind.

    python machine.py command …

The command gets its own processes, mounts and network (which has nothing but its loopback). Its
`/etc` is a copy, its `/home`, `/srv`, `/opt`, `/run`, `/tmp`, `/root` and `/var` are empty; all
these are in memory. All else can only be read. This repository is there under its own path and as
`/opt/tfviz`, and every account may read it. When the command ends, its processes end, and all is
gone.

Needs root, or a sudo that asks nothing, and a kernel that lets root do it: see `missing`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OPT = "/opt/tfviz"  # where the guide installs
EMPTY = {"/home": 755, "/srv": 755, "/opt": 755, "/root": 755, "/tmp": 1777, "/var": 755}
SHARED_MEMORY = "/dev/shm"
STAGE = Path("/run/stage")
UNSHARE = ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]


def missing() -> str | None:
    """Why there can be no such machine here; None where there can."""
    if not sys.platform.startswith("linux") or not shutil.which("unshare"):
        return "needs Linux and its command unshare"
    if os.geteuid() != 0 and not (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0
    ):
        return "needs root, or a sudo that asks for no password"
    tried = subprocess.run([*_root(), *UNSHARE, "--mount-proc", "true"], capture_output=True)
    return f"may not unshare here: {tried.stderr.decode().strip()}" if tried.returncode else None


def _root() -> list[str]:
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


def command(*argv: str) -> list[str]:
    """The command line that runs this one on a machine of its own."""
    here = [sys.executable, "-B", __file__, "--inside"]
    return [*_root(), *UNSHARE, "--mount-proc", *here, *argv]


def kept() -> list[Path]:
    """The folders of the real machine that are needed: the repository, Python, its environment."""
    python = Path(sys.executable).resolve().parents[1]
    found = {ROOT, Path(sys.prefix), Path(sys.base_prefix), python}
    outside = {path for path in found if path not in map(Path, ("/", "/usr"))}
    return sorted(p for p in outside if not any(q in p.parents for q in outside))


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def empty(path: str, mode: int) -> None:
    """Cover a folder with an empty one."""
    mount("-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", path)


def build() -> None:
    """Make this process's mounts and network those of the machine that the tests see."""
    empty("/run", 755)
    STAGE.mkdir()
    keep = kept()
    for number, path in enumerate(keep):
        (STAGE / str(number)).mkdir()
        mount("--rbind", str(path), str(STAGE / str(number)))
    subprocess.run(["cp", "-a", "/etc", str(STAGE / "etc")], check=True)
    # A folder that only its owner may enter hides what lies below it from all other accounts.
    closed = {str(p) for path in keep for p in path.parents if not p.stat().st_mode & 0o001}
    covers = {**EMPTY, **{path: 755 for path in closed}}
    for name in sorted(covers):
        if Path(name).is_dir() and not any(q in covers for q in map(str, Path(name).parents)):
            empty(name, covers[name])
    for folder, mode in (("/var/tmp", 0o1777), ("/var/log", 0o755), ("/var/mail", 0o755)):
        Path(folder).mkdir()
        Path(folder).chmod(mode)
    for number, path in [*enumerate(keep), (keep.index(ROOT), Path(OPT))]:
        path.mkdir(parents=True, exist_ok=True)
        mount("--rbind", str(STAGE / str(number)), str(path))
        mount("-o", "remount,bind,ro", str(path))
    for number, _ in enumerate(keep):
        subprocess.run(["umount", "--recursive", str(STAGE / str(number))], check=True)
    mount("-o", "remount,bind,ro", "/")
    mount("--bind", str(STAGE / "etc"), "/etc")
    empty(SHARED_MEMORY, 1777)
    with socket.socket() as control:  # ip link set lo up
        up = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
        fcntl.ioctl(control, 0x8914, up)


def main(argv: list[str]) -> int:
    if argv[0] != "--inside":
        return subprocess.run(command(*argv)).returncode
    build()
    programs = f"{OPT}/.venv-dev/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    clean = {"PATH": programs, "LANG": "C.UTF-8", "HOME": "/root", "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(argv[1:], cwd="/root", env=clean)
    while True:  # the first process of a machine buries those that nobody waits for
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
