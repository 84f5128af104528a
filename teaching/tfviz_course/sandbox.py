"""A process for a student's code: cut off from the machine, bounded, and surely ended.

bubblewrap (`bwrap`) makes a new sandbox for each: no network, no files but the system's libraries,
Python and tfviz (read-only), a small /tmp of its own, its own processes. The process itself is a
copy of one that has loaded what all begin with (`Nursery`), and moves into the sandbox before it
does anything else (`tfviz_course.inside`). The grader speaks to it over two pipes.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import platform
import random
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil

import tfviz
import tfviz_lab
from tfviz_course import codec

IDLE = "import signal; print('.', flush=True); signal.pause()"  # what keeps a sandbox there
POLL = 0.2  # seconds between two looks at the processes, on average
PATIENCE = 10  # times what it may use: so long a submission may be held up by others
BLIND = 60.0  # seconds that the grader may wait for an answer while no look comes to its end
GONE = 300.0  # seconds on the clock, the last resort: until what was killed must be gone
BASE_UID = 1_900_000_000  # of nobody: behind every range that systems hand out

Cells = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Limits:
    """What one notebook may use. Sizes in bytes; times in seconds on the processor or asleep."""

    seconds: float = 180.0  # one notebook, without the start of its processes
    cell_seconds: float = 30.0  # one answer cell; also all that one cell of tests does with it
    call_seconds: float = 15.0  # one call of a student's function
    start_seconds: float = 120.0  # start of a process: Python, torch, the set-up cells
    memory: int = 2 << 30  # all processes together, on top of what Python and torch take
    processes: int = 32  # processes and threads
    output: int = 20_000  # characters that one cell, of answers or of tests, prints and shows
    file_size: int = 16 << 20  # one file
    disk: int = 64 << 20  # all of /tmp
    files: int = 128  # open at a time
    inodes: int = 20_000  # files and folders that there are, in /tmp and in /dev/shm
    callbacks: int = 20_000  # calls back into the grader, for one cell of tests

    def lasting(self, seconds: float) -> Limits:
        """With these seconds for a notebook, and with those of cells and calls in proportion."""
        share = seconds / self.seconds
        cell, call = share * self.cell_seconds, share * self.call_seconds
        return replace(self, seconds=seconds, cell_seconds=cell, call_seconds=call)


class Unavailable(RuntimeError):  # noqa: N818  it reads as a sentence where it is raised
    """There is no sandbox on this machine; the message says why and what to do."""


class Stopped(BaseException):  # not an Exception: no check may swallow it
    """The student's process is gone, or had to go; `reason` says why, for the student."""

    def __init__(self, reason: str, remark: str = "") -> None:
        super().__init__(reason)
        self.reason, self.remark = reason, remark or reason


class Deadline:
    """The end of some work of a sandbox, which begins when this is made.

    What counts is the processor time of its processes, and time in which all of them slept, or
    waited for anything but the processor, while the grader waited: not that in which others had the
    processor. The clock is the last resort.
    """

    def __init__(self, seconds: float, line: Sandbox, within: Deadline | None = None) -> None:
        self.seconds, self.within = seconds, within
        self.end = line.used + seconds
        self.last = time.monotonic() + PATIENCE * seconds + 60


# --- what bubblewrap is told ---------------------------------------------------------------------

_TOPS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec")
_PREFIXES = {Path(sys.base_prefix), Path(sys.prefix)}
# an environment can be layered over another, whose packages it then sees
_PREFIXES |= {Path(place) for place in sys.path if Path(place).name == "site-packages"}
_PREFIXES |= {prefix.resolve() for prefix in _PREFIXES}
_PREFIXES -= {Path("/"), Path("/usr")}
# what the process can read, by the place where it sees it: the system's programs and libraries,
# Python, its environments, tfviz and its lab
_SHOWN = [Path(top, name) for top in ("/", "/usr") for name in _TOPS]
_SHOWN += map(Path("/etc").joinpath, ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives"))
_SHOWN += [prefix for prefix in sorted(_PREFIXES) if _PREFIXES.isdisjoint(prefix.parents)]
_SHOWN += [Path(str(package.__file__)).resolve().parent for package in (tfviz, tfviz_lab)]


@cache
def _known() -> str:
    """What this bubblewrap says that it can; old ones lack options."""
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True).stdout


def _options(disk: int) -> list[str]:
    known = _known()
    size = ["--size", str(disk)] if "--size" in known else []
    # Root gives up its rights in inside.py: a user namespace would leave it root outside, whom
    # limits on processes do not bind. Everybody else needs the user namespace.
    spaces = ("all", "user") if os.geteuid() else ("ipc", "pid", "net", "uts", "cgroup-try")
    command = [f"--unshare-{space}" for space in spaces]
    if os.geteuid() and "--disable-userns" in known:
        command.append("--disable-userns")
    command += ["--die-with-parent", "--new-session"]
    command += ["--hostname", "grader", "--proc", "/proc", "--dev", "/dev"]
    for folder in ("/dev/shm", "/tmp"):
        command += ["--perms", "1777", *size, "--tmpfs", folder]
    shown = [path for path in _SHOWN if path.exists()]
    above = {up for path in shown for up in path.parents} - {Path("/"), Path("/tmp")}
    for up in sorted(above):  # else they are closed to all but root
        command += ["--perms", "0755", "--dir", str(up)]
    for path in shown:
        linked = path.is_symlink() and path.parent == Path("/")  # /bin -> usr/bin
        command += ["--symlink", os.readlink(path)] if linked else ["--ro-bind", str(path)]
        command.append(str(path))
    # A shared mapping of /dev/zero is memory of nobody's, too: an empty file stands for it.
    command += ["--dev-bind", "/dev/null", "/dev/zero"]
    # The root of the new file system and /dev are memory too: not writable.
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]


def _file(data: bytes) -> int:
    """A descriptor from which these bytes can be read."""
    file = os.memfd_create("tfviz")
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _start(limits: Limits, code: str) -> subprocess.Popen[bytes]:
    """Run bare Python in a new sandbox.

    What the first process of the sandbox was started with can be read from inside, by
    /proc/1/environ and /proc/1/cmdline: so bubblewrap gets the student's environment and no other
    (its own --clearenv cleans that of its children only), and its options through a file.
    """
    options, passed = _options(limits.disk), []
    if program := _filter():  # who took over what waits in there would gain no call by it
        passed.append(_file(program))
        options += ["--seccomp", str(passed[-1])]
    passed.append(_file("\0".join(options).encode()))
    bwrap = [shutil.which("bwrap") or "bwrap", "--args", str(passed[-1]), "--"]
    bwrap += [sys.executable, "-I", "-S", "-c", code]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    try:
        return _popen(bwrap, passed, stdin=null, stdout=pipe, stderr=pipe)
    finally:
        for descriptor in passed:
            os.close(descriptor)


def _popen(command: list[str], passed: list[int], **more: Any) -> subprocess.Popen[bytes]:
    """Start a process that knows nothing of the grader's environment."""
    own: dict[str, Any] = {"start_new_session": True, "env": ENVIRONMENT, "cwd": "/"}
    return subprocess.Popen(command, pass_fds=passed, **own | more)


ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp/home",
    "USER": "student",
    "LOGNAME": "student",
    "LANG": "C.UTF-8",
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "PYTHONWARNINGS": "ignore",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "NBGRADER_EXECUTION": "autograde",
}


# --- calls of the kernel that a student has no use for -------------------------------------------

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_REFUSED = {  # call: its number on each of the machines
    "ptrace": (101, 117), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97),
    "setns": (308, 268), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438), "io_uring_setup": (425, 425), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180), "io_setup": (206, 0),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "sync": (162, 81), "syncfs": (306, 267),  # the disks of the whole machine would have to follow
}  # fmt: skip
_CLONE, _MMAP, _SOCKETS = (56, 220), (9, 222), ((41, 198), (53, 199))  # socket, socketpair
_CLONE3 = 435
# fcntl, and its commands that lock records of a file: F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW.
# Each lock is some 200 bytes of the kernel that no group counts and no limit bounds.
_FCNTL, _LOCKING = (72, 25), (6, 7, 37, 38)
# flags of clone: a user namespace, and a child of one's own parent: not below what is watched
_NEW_USER, _PARENT = 0x10000000, 0x8000
_SHARED_ANONYMOUS = 0x21
# Of sockets: AF_UNIX, by which the processes of a submission may speak to each other. There is no
# network behind any other family, and what waits in a connection of TCP to oneself is memory of the
# kernel that no group counts.
_FAMILIES = (1,)


def _filter() -> bytes:
    """A seccomp program: calls that make memory nobody counts, new namespaces, or work for the
    disks of the whole machine are refused.

    Empty on a machine whose numbers are not known here; a sandbox then does without.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        return b""
    column, number = _MACHINES[machine]
    load, equal, bits, back = 0x20, 0x15, 0x45, 0x06
    allow, refuse, kill = (back, 0, 0, 0x7FFF0000), (back, 0, 0, 0x00050001), (back, 0, 0, 1 << 31)
    absent, family = (back, 0, 0, 0x00050026), (back, 0, 0, 0x00050061)  # ENOSYS, EAFNOSUPPORT
    no_lock = (back, 0, 0, 0x00050025)  # ENOLCK
    first, second, fourth = ((load, 0, 0, at) for at in (16, 24, 40))  # lower halves of arguments

    def when(call: int, *lines: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
        return [(equal, 0, len(lines), call), *lines]

    program = [(load, 0, 0, 4), (equal, 1, 0, number), kill, (load, 0, 0, 0)]
    if machine == "x86_64":  # the 32-bit pointers' numbers of the same calls
        program += [(0x35, 0, 1, 0x40000000), refuse]
    for call in _REFUSED.values():
        program += when(call[column], refuse)
    program += when(_CLONE3, absent)  # the C library then uses clone
    program += when(_CLONE[column], first, (bits, 0, 1, _NEW_USER | _PARENT), refuse, allow)
    both = _SHARED_ANONYMOUS  # pages that no process is counted with, once it lets go of them
    program += when(_MMAP[column], fourth, (0x54, 0, 0, both), (equal, 0, 1, both), refuse, allow)
    locks = [(equal, len(_LOCKING) - n, 0, one) for n, one in enumerate(_LOCKING)]
    program += when(_FCNTL[column], second, *locks, allow, no_lock)
    known = [(equal, len(_FAMILIES) - n, 0, one) for n, one in enumerate(_FAMILIES)]
    for call in _SOCKETS:
        program += when(call[column], first, *known, family, allow)
    return b"".join(struct.pack("=HBBI", *line) for line in [*program, allow])


def available() -> str | None:
    """None if the sandbox works on this machine, else why not and what to do, in a sentence."""
    if sys.platform != "linux":
        where = "grade on a Linux machine (a virtual one or WSL will do)"
        return f"The sandbox needs Linux, but this is {platform.system()}: {where}."
    if not shutil.which("bwrap"):
        how = "on Debian and Ubuntu: apt-get install bubblewrap"
        return f"bubblewrap is not installed: install it ({how})."
    with _start(Limits(), "pass") as tried:
        try:
            errors = tried.communicate(timeout=GONE)[1]
            said = codec.short(errors.decode(errors="replace").strip().split("\n")[-1])
        except subprocess.TimeoutExpired:
            said = "it does not end"
            tried.kill()
    if tried.returncode == 0:
        return None
    user = (
        "give it an AppArmor profile that allows `userns`, or, until the next boot, run `sudo "
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0` (on other systems `sudo sysctl "
        "user.max_user_namespaces=10000`); "
    )
    how = f"{user if os.geteuid() else ''}in a container, allow it namespaces and mounts"
    return f"bubblewrap is installed but does not run ({said}): {how}."


# --- control groups ------------------------------------------------------------------------------

UNBOUND = (
    "This user may make no control groups, so memory is added up over the processes of a "
    "submission several times a second, and what the kernel holds for them (buffers of sockets and "
    "pipes, tables of pages) is bounded only by the numbers of processes and open files."
)
_BOUNDING = {"memory": ("memory.limit_in_bytes", "memory.max"), "pids": ("pids.max", "pids.max")}
_COUNTING = "cpuacct"  # of version 1; a group of version 2 counts the processor's time anyway
_COUNT = itertools.count()


@cache
def _places() -> dict[str, Path]:
    """The folders for new control groups, by the file that bounds something there: below our own
    group in version 1, beside it in version 2, where a group has processes or groups."""
    found: dict[str, Path] = {}
    with suppress(OSError, ValueError):
        parts = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        own = {name: path for _, names, path in parts for name in names.split(",")}
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, place, kind, options, *_ = line.split()
            here = Path(place + own.get("", "/"))
            beside = here if own.get("") == "/" else here.parent
            divided = beside / "cgroup.subtree_control"
            movable = os.access(beside / "cgroup.procs", os.W_OK)  # processes, from there
            for name, (one, two) in _BOUNDING.items():
                if kind == "cgroup" and name in options.split(","):
                    found[one] = Path(place + own[name])
                elif kind == "cgroup2" and movable and name in divided.read_text():
                    found[two] = beside
            if kind == "cgroup" and _COUNTING in options.split(","):
                found[_COUNTING] = Path(place + own[_COUNTING])
    return found if len(found.keys() - {_COUNTING}) == 2 else {}


class Group:
    """A control group: bounds memory, the kernel's too, and processes of all that is in it, and
    counts the processor time of all that was ever in it."""

    def __init__(self, memory: int, processes: int) -> None:
        self.folders: list[Path] = []
        own = f"tfviz-{os.getpid()}-{next(_COUNT)}"
        try:
            for name, place in _places().items():
                for old in place.glob("tfviz-*-*"):  # of graders that were killed
                    if not psutil.pid_exists(int(old.name.split("-")[1])):
                        with suppress(OSError):
                            old.rmdir()
                if place / own not in self.folders:  # one for both limits in version 2
                    (place / own).mkdir()
                    self.folders.append(place / own)
                if name != _COUNTING:
                    (place / own / name).write_text(str(memory if "memory" in name else processes))
        except OSError:
            self.close()

    def take(self, processes: Iterable[psutil.Process]) -> None:
        """These processes, and what they start from now on, are in the group. Where one may not be
        moved there is no group: what it would not bound is then counted."""
        try:
            for folder, process in itertools.product(self.folders, processes):
                with suppress(ProcessLookupError):
                    (folder / "cgroup.procs").write_text(str(process.pid))
        except OSError:
            self.close()

    @property
    def full(self) -> bool:
        """Whether the kernel ended a process for want of memory."""
        names = ("memory.oom_control", "memory.events")
        for folder, name in itertools.product(self.folders, names):
            with suppress(OSError):
                if re.search(r"^oom_kill [1-9]", (folder / name).read_text(), re.MULTILINE):
                    return True
        return False

    @property
    def spent(self) -> float | None:
        """Seconds of processor time of all that was ever in the group; None where none counts."""
        for folder in self.folders:
            with suppress(OSError):
                return int((folder / "cpuacct.usage").read_text()) / 1e9
            with suppress(OSError):
                found = re.search(r"^usage_usec (\d+)", (folder / "cpu.stat").read_text(), re.M)
                if found:
                    return int(found[1]) / 1e6
        return None

    def close(self) -> None:
        """Take the group away; its processes are gone."""
        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()
        self.folders = []


def unbound() -> str | None:
    """None where control groups bound the memory of a submission, else what is not bound."""
    with closing(Group(1 << 30, 32)) as group:
        return None if group.folders else UNBOUND


# --- the process ---------------------------------------------------------------------------------


class Nursery:
    """A process that has loaded the libraries and what a lesson's set-up makes, and never runs what
    a student wrote: its copies become the processes of submissions. It has no more than they may
    know: nothing of the grader's environment, no solutions, no tests. All end with the grader.
    """

    def __init__(self, cells: Cells) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            if cells:
                file = _file(json.dumps(cells).encode())
                nursery(()).bear(b"set-up", os.dup(theirs.fileno()), file)
            else:
                self._start(theirs.fileno())

    def _start(self, control: int) -> None:
        import matplotlib.font_manager  # makes its list of fonts, which takes seconds

        fonts = [str(file) for file in Path(matplotlib.get_cachedir()).glob("fontlist*.json")]
        file = _file(json.dumps(fonts).encode())
        command = [sys.executable, "-P", "-s", "-m", "tfviz_course.inside", str(control)]
        pipes = {"stdin": file, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        env = ENVIRONMENT | {"HOME": "/nonexistent"}
        self.process = _popen(command, [control], **pipes, env=env)
        os.close(file)
        atexit.register(self._end)

    def _end(self) -> None:
        end_all(psutil.Process(self.process.pid))
        self.process.wait()

    def bear(self, order: bytes, *given: int) -> None:
        """Let it make a copy, to which these descriptors go over. That it has ended is heard by who
        waits at their other ends."""
        with suppress(OSError):
            socket.send_fds(self.control, [order], given)
        for number in given:
            os.close(number)


nursery = cache(Nursery)  # the one with these cells, made when it is first asked for


class Sandbox:
    """One process for a student's code, at the other end of a line. `send` and `receive` speak to
    it; both raise `Stopped` when it is gone, breaks a limit or talks nonsense. `close` ends it and
    all that it started."""

    def __init__(self, limits: Limits, cells: Cells = ()) -> None:
        if not shutil.which("bwrap") and (why := available()):
            raise Unavailable(why)
        self.limits = limits
        self.broken: Stopped | None = None
        self.used = 0.0  # seconds, as `Deadline` counts them
        self._waiting: tuple[list[int], list[int]] | None = None  # the grader, for one of these
        self._crossed = 0  # how often one of them was ready
        self._unseen = 0.0  # seconds that the grader has waited since the last look
        self._closed = False
        self._group: Group | None = None  # once Python is there
        self.process = _start(limits, IDLE)
        assert self.process.stdout
        if not self.process.stdout.read(1):
            said = self.process.communicate()[1].decode(errors="replace").strip()
            raise Unavailable(f"bubblewrap does not run: {codec.short(said)}")
        self._tops = [psutil.Process(self.process.pid)]
        uid = BASE_UID + (os.getpid() * 16 + next(_COUNT) % 16) % 100_000_000
        order = {
            "pid": family(*self._tops)[-1].pid,
            "uid": uid if os.geteuid() == 0 else None,
            "home": ENVIRONMENT["HOME"],
            "limits": asdict(limits) | {"processes": limits.processes + self._mine()},
            "calls": _filter().hex(),
        }
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        nursery(cells).bear(json.dumps(order).encode(), theirs_in, theirs_out)
        self._watch = threading.Thread(target=self._watching, daemon=True, name="watch a sandbox")
        self._watch.start()

    def _mine(self) -> int:
        """How many threads this user has: old kernels count them all into one limit."""
        if os.geteuid() == 0:
            return 1  # a user of its own; the process itself
        mine = [pid for pid in psutil.pids() if _status(pid, "Uid") == os.getuid()]
        return sum(_status(pid, "Threads") for pid in mine)

    def send(self, message: Any, raw: list[bytes], end: Deadline) -> None:
        """One message to the process. Raises Stopped."""
        rest = memoryview(codec.pack(message, raw))
        while rest:
            if self._ready(end, [], [self._out]):
                with suppress(BlockingIOError):
                    try:
                        rest = rest[os.write(self._out, rest[: 1 << 20]) :]
                    except BrokenPipeError:
                        raise self._died() from None

    def receive(self, end: Deadline) -> tuple[Any, memoryview]:
        """The next message of the process: its JSON and its raw bytes. Raises Stopped."""
        try:
            text, raw = codec.lengths(self._read(codec.HEAD.size, end))
            body = memoryview(self._read(text + raw, end))
            return codec.unpack(bytes(body[:text])), body[text:]
        except codec.CodecError as error:
            raise self.nonsense(str(error)) from None

    def _read(self, size: int, end: Deadline) -> bytes:
        found = bytearray()
        while rest := size - len(found):
            if self._ready(end, [self._in], []):
                with suppress(BlockingIOError):
                    if not (part := os.read(self._in, min(rest, 1 << 20))):
                        raise self._died()
                    found += part
            elif any(map(gone, self._tops[1:])):
                raise self._died()
        return bytes(found)

    def _ready(self, end: Deadline | None, reading: list[int], writing: list[int]) -> bool:
        """Wait a while until there is something to read, or room to write, unless its time is over.
        Raises Stopped."""
        self.check()
        while end:
            if self.used > end.end:
                said = f"The answer ran longer than {end.seconds:.0f} seconds and was stopped. "
                said += "(Time in which it had to wait for the processor is not counted.)"
                raise self.stop(said, "ran longer than it may")
            if time.monotonic() > end.last:
                said = "The answer came to no end in time: the machine was too busy."
                raise self.stop(said, "ran out of time: the machine was busy")
            end = end.within
        self._waiting = reading, writing
        begin = time.monotonic()
        try:
            ready = any(select.select(reading, writing, [], POLL))
            self._crossed += ready
            return ready
        finally:
            self._waiting = None
            self._unseen += min(time.monotonic() - begin, POLL)

    def check(self) -> None:
        """Raises Stopped where it has been ended, or where nobody watches any more what it uses."""
        if not self.broken and not self._watch.is_alive():
            self.unwatched("the watch has ended")
        if not self.broken and self._unseen > BLIND:
            self.unwatched(f"no look at its processes came to an end within {BLIND:.0f} seconds")
        if self.broken:
            raise self.broken

    def stop(self, reason: str, remark: str) -> Stopped:
        """End it for this reason, unless it has been ended already; gives the first reason."""
        self.broken = self.broken or Stopped(reason, remark)
        with suppress(Exception):  # `close` does it again, and says what keeps it from that
            end_all(*self._tops)
        self.process.kill()  # all in the sandbox end with it, also those that cannot be listed
        return self.broken

    def unwatched(self, why: str) -> Stopped:
        """Nobody can say any more what it uses: end it."""
        said = "The answer was stopped, because the grader could no longer see what it used."
        return self.stop(said, f"could not be watched: {why}")

    def nonsense(self, what: str) -> Stopped:
        """It wrote something of its own on the line: end it."""
        said = "The answer's code wrote over the line to the grader."
        return self.stop(said, f"wrote over the grader's line: {what}")

    def full(self) -> Stopped:
        """It took too much memory: end it."""
        most = self.limits.memory >> 20
        return self.stop(f"The answer took more than {most} MiB of memory.", "ran out of memory")

    def _died(self) -> Stopped:
        time.sleep(2 * POLL)  # the watch may know why
        if self._group and self._group.full:
            return self.full()
        said = "The answer's code ended Python itself: os._exit, a signal, or a crash in a library."
        return self.stop(said, "its process ended by itself")

    def started(self, number: int) -> None:
        """The process has this number, and is ready: memory counts from here."""
        with suppress(psutil.NoSuchProcess):
            self._tops.append(psutil.Process(number))
        tree = family(*self._tops)
        self._base = [_memory(tree, shared) for shared in (False, True)]
        group = Group(self.limits.memory, self.limits.processes + 8)
        group.take(tree)
        self._group = group

    def _watching(self) -> None:
        """Watch it until it is closed. Whatever else ends the watch ends the sandbox too."""
        try:
            self._look_on()
        except BaseException as error:
            self.unwatched(type(error).__name__)

    def _look_on(self) -> None:
        """Count what it uses, and end it if all its processes together take too much."""
        last, before, known = 0.0, time.monotonic(), set(family(*self._tops))
        dice = random.SystemRandom()  # nobody knows when it looks, to be awake just then
        while not self._closed:
            tree = family(*self._tops)
            asleep = self._asleep(tree)
            now = time.monotonic()
            passed, before = min(now - before, 2 * POLL), now
            spent = self._group.spent if self._group else None
            most = 0.0
            if spent is None:
                spent, most = _spent(tree), passed * _turnover(known, {*tree, *self._tops})
            # It never falls. Whose time nobody counts may have had the processor all the while.
            took = max(spent - last, most)
            self.used += max(took, passed) if asleep else took
            last, known = spent, {*tree, *self._tops}
            if self._group and not self._closed:
                self._bound(self._group, tree)
            self._unseen = 0.0
            time.sleep(POLL * dice.uniform(0.5, 1.5))

    def _asleep(self, tree: list[psutil.Process]) -> bool:
        """Whether all its processes sleep while the grader waits for them.

        One that waits uninterruptibly sleeps too. Mostly it waits for a disk; but by clone with
        CLONE_VFORK a process waits for its child like that for as long as the child likes, and to
        refuse this is no remedy: posix_spawn and os.system need it, and a seccomp program cannot
        see whether the child goes on to another program. The kernel has other such waits, too.

        A grader that is kept from the processor does not wait: what it is to read is there.
        """
        crossed = self._crossed
        idle = self._idle() and not any(map(_runs, tree))
        return idle and self._idle() and crossed == self._crossed

    def _idle(self) -> bool:
        """Whether the grader waits and there is nothing to read, or no room to write."""
        ends = self._waiting
        return ends is not None and not any(select.select(*ends, [], 0))

    def _bound(self, group: Group, tree: list[psutil.Process]) -> None:
        most, threads = self.limits, sum(map(_threads, tree))
        shared = len(tree) > 4  # more than two of bubblewrap's, the idle one, the student's
        used = 0 if group.folders else _memory(tree, shared) - self._base[shared]
        if group.full or used > most.memory:
            self.full()
        elif threads > most.processes + 4:
            said = f"The answer started more than {most.processes} processes and threads."
            self.stop(said, "started too many processes")
        elif _inodes(tree) > most.inodes:
            self.stop(f"The answer made more than {most.inodes:,} files.", "made too many files")

    def close(self) -> None:
        """End the process and everything it started; returns when they are gone."""
        if self._closed:
            return
        self._closed = True
        end_all(*self._tops)
        self.process.communicate()
        self._watch.join()
        os.close(self._in)
        os.close(self._out)
        if self._group:
            self._group.close()


def _spent(tree: Iterable[psutil.Process]) -> float:
    """Seconds of processor time of these processes, and of the children that they waited for."""
    total = 0.0
    for process in tree:
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def _turnover(before: set[psutil.Process], now: set[psutil.Process]) -> int:
    """How many processors those may have had of whom nobody knows what they spent.

    The kernel forgets the time of a child that nobody waits for. So where no control group counts,
    whoever comes and goes is taken to have run all the time between two looks.
    """
    return min(max(len(before - now), len(now - before)), len(os.sched_getaffinity(0)))


def _runs(process: psutil.Process) -> bool:
    """Whether one of its threads has the processor, or waits for it."""
    tasks = f"/proc/{process.pid}/task"
    with suppress(OSError):
        for thread in os.listdir(tasks):
            with suppress(OSError):
                stat = Path(tasks, thread, "stat").read_bytes()
                # before the state stands the thread's name in brackets: any bytes, brackets too
                if stat.rpartition(b")")[2].split()[:1] == [b"R"]:
                    return True
    return False


def _status(pid: int, key: str) -> int:
    """A number that the kernel tells of a process; 0 where the process has gone.

    The name of the process, which it chooses, stands there too. It may look like any other line,
    but cannot begin one.
    """
    with suppress(OSError):
        text = Path(f"/proc/{pid}/status").read_bytes()
        if found := re.search(rf"^{key}:\t(\d+)".encode(), text, re.MULTILINE):
            return int(found[1])
    return 0


def _threads(process: psutil.Process) -> int:
    return _status(process.pid, "Threads")


def _memory(tree: list[psutil.Process], shared: bool) -> int:
    """Bytes of all processes; if `shared`, what several have counts once."""
    total = 0
    for process in tree:
        with suppress(psutil.Error, OSError):
            try:
                full = process.memory_full_info() if shared else process.memory_info()
                total += getattr(full, "pss", full.rss)
            except psutil.AccessDenied:
                total += process.memory_info().rss
    return total


def _inodes(tree: list[psutil.Process]) -> int:
    """Files and folders in the sandbox's own memory; they cost some even when they are empty."""
    for process in tree[1:]:  # the first is outside
        with suppress(OSError):
            root = f"/proc/{process.pid}/root"
            sizes = [os.statvfs(root + folder) for folder in ("/tmp", "/dev/shm")]
            return sum(size.f_files - size.f_ffree for size in sizes)
    return 0


def family(*tops: psutil.Process) -> list[psutil.Process]:
    """These processes and all below them."""
    found = [*tops]
    for top in tops:
        with suppress(psutil.Error):
            found += top.children(recursive=True)
    return found


def end_all(*tops: psutil.Process) -> None:
    """Kill these processes and all below them, and wait until they are gone.

    With the first process of a sandbox the kernel ends all others in it, also those that it gets
    meanwhile. Raises RuntimeError if a process does not go.
    """
    tree = family(*tops)
    for process in tree:
        with suppress(psutil.Error):
            process.kill()
    end = time.monotonic() + GONE
    while left := [process for process in tree if not gone(process)]:
        if time.monotonic() > end:
            numbers = [process.pid for process in left]
            raise RuntimeError(f"processes of a submission do not end: {numbers}")
        time.sleep(0.02)


def gone(process: psutil.Process) -> bool:
    """Whether it has ended; who started it may not have collected it yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True
