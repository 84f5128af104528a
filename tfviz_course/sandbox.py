"""A process for a student's code: cut off from the machine, bounded, and surely ended.

On Linux it runs under bubblewrap (`bwrap`): no network, no files but the system's libraries, Python
and tfviz (read-only), a small /tmp of its own, its own processes. Limits bound time, memory (of all
its processes together), processes and file sizes. The grader speaks to it over two pipes.

`available()` says whether that works here. With ``Sandbox(…, sandboxed=False)`` the same process
runs with the limits alone: it can read whatever its user can read. That is for people who know
what is in the submissions.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import platform
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from tfviz_course import codec

HERE = Path(__file__).resolve().parent
INSIDE = "/tmp/grader"  # where the sandbox has inside.py and codec.py
POLL = 0.1  # seconds between two looks at the processes
PATIENCE = 10  # times what it may use: so long a submission may be held up by others
GONE = 10.0  # seconds within which a killed process must be gone
BASE_UID = 1_900_000_000  # of nobody: behind every range that systems hand out


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Sizes in bytes; times in seconds on the processor or asleep."""

    seconds: float = 180.0  # the whole submission, without the start of its processes
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


class Unavailable(RuntimeError):  # noqa: N818  it reads as a sentence where it is raised
    """There is no sandbox on this machine; the message says why and what to do."""


class Stopped(BaseException):  # not an Exception: no check may swallow it
    """The student's process is gone, or had to go; `reason` says why, for the student."""

    def __init__(self, reason: str, remark: str = "") -> None:
        super().__init__(reason)
        self.reason, self.remark = reason, remark or reason


class Deadline:
    """The end of some work of a sandbox, which begins when this is made.

    What counts is the processor time of its processes, and time in which all of them slept while
    the grader waited. Time in which they wait for a processor that others have does not. The clock
    is the last resort.
    """

    def __init__(self, seconds: float, line: Sandbox, within: Deadline | None = None) -> None:
        self.seconds, self.within = seconds, within
        self.end = line.used + seconds
        self.last = time.monotonic() + PATIENCE * seconds + 60


# --- what bubblewrap is told ---------------------------------------------------------------------


@cache
def _help() -> str:
    """The help of the installed bubblewrap: old ones lack options."""
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True, timeout=30).stdout


_TOPS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec")
_SYSTEM = [Path(top, name) for top in ("/", "/usr") for name in _TOPS]  # programs and libraries
_SYSTEM += [Path("/etc", name) for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d")]
_SYSTEM += [Path("/etc/alternatives")]


def _python() -> list[Path]:
    """Python, its environment and tfviz: the folders and files that the process reads."""
    import tfviz

    prefixes = {Path(sys.base_prefix), Path(sys.prefix)}
    prefixes |= {prefix.resolve() for prefix in prefixes}
    return [*sorted(prefixes - {Path("/"), Path("/usr")}), Path(tfviz.__file__).resolve().parent]


def _options(limits: Limits) -> list[str]:
    """What bubblewrap is told."""
    as_root = os.geteuid() == 0
    size = ["--size", str(limits.disk)] if "--size" in _help() else []
    # Root gives up its rights in inside.py: a user namespace would leave it root outside, whom
    # limits on processes do not bind. Everybody else needs the user namespace.
    spaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    spaces += ["--unshare-cgroup-try"] if as_root else ["--unshare-all"]
    if not as_root and "--disable-userns" in _help():
        spaces += ["--unshare-user", "--disable-userns"]
    command = [*spaces, "--die-with-parent", "--new-session"]
    command += ["--hostname", "grader", "--proc", "/proc", "--dev", "/dev"]
    for folder in ("/dev/shm", "/tmp"):
        command += ["--perms", "1777", *size, "--tmpfs", folder]
    shown = {path: path for path in (*_SYSTEM, *_python()) if path.exists()}
    names = ("__init__.py", "codec.py", "inside.py")
    shown |= {Path(INSIDE, "tfviz_course", name): HERE / name for name in names}
    shown[Path(INSIDE, "matplotlib")] = _fonts()
    above = {up for path in shown for up in path.parents} - {Path("/"), Path("/tmp")}
    for up in sorted(above):  # else they are closed to all but root
        command += ["--perms", "0755", "--dir", str(up)]
    for path, original in shown.items():
        if original == path and path.is_symlink() and path.parent == Path("/"):
            command += ["--symlink", os.readlink(path), str(path)]  # /bin -> usr/bin
        else:
            command += ["--ro-bind", str(original), str(path)]
    # A shared mapping of /dev/zero is memory of nobody's, too: an empty file stands for it.
    command += ["--dev-bind", "/dev/null", "/dev/zero"]
    # The root of the new file system and /dev are memory too: not writable.
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    return command


def _file(data: bytes) -> int:
    """A descriptor from which these bytes can be read."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


def _bwrap(limits: Limits) -> tuple[list[str], list[int]]:
    """The beginning of a command that runs in the sandbox, and the descriptors it needs.

    What the first process of the sandbox was started with can be read from inside, by
    /proc/1/environ and /proc/1/cmdline: so bubblewrap gets the student's environment and no other
    (its own --clearenv cleans that of its children only), and its options through a file.
    """
    options = _options(limits)
    passed = []
    if (program := _filter()) is not None:
        passed.append(_file(program))
        options += ["--seccomp", str(passed[0])]
    passed.append(_file("\0".join(options).encode()))
    bwrap = shutil.which("bwrap") or "bwrap"
    return [bwrap, "--args", str(passed[-1]), "--"], passed


def _environment(folder: str) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": folder,
        "HOME": "/tmp/home",
        "USER": "student",
        "LOGNAME": "student",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": f"{folder}/matplotlib",
        "NBGRADER_EXECUTION": "autograde",
    }


def _fonts() -> Path:
    """Where matplotlib has its list of the fonts of this machine, which takes seconds to make."""
    import matplotlib.font_manager  # makes it, if it is not there

    return Path(matplotlib.get_cachedir())


# --- calls of the kernel that a student has no use for -------------------------------------------

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_REFUSED = {  # call: its number on each of the machines
    "ptrace": (101, 117), "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97),
    "setns": (308, 268), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438), "io_uring_setup": (425, 425), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180), "io_setup": (206, 0),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
}  # fmt: skip
_CLONE, _MMAP, _SOCKETS = (56, 220), (9, 222), ((41, 198), (53, 199))  # socket, socketpair
_CLONE3 = 435
_NEW_USER = 0x10000000
_SHARED_ANONYMOUS = 0x21
_FAMILIES = (1, 2, 10)  # of sockets: AF_UNIX, AF_INET, AF_INET6; there is no network behind them


def _filter() -> bytes | None:
    """A seccomp program: calls that make memory nobody counts, or new namespaces, are refused.

    None on a machine whose numbers are not known here; bubblewrap then does without.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        return None
    column, number = _MACHINES[machine]
    load, equal, bits, back = 0x20, 0x15, 0x45, 0x06
    allow, refuse, kill = (back, 0, 0, 0x7FFF0000), (back, 0, 0, 0x00050001), (back, 0, 0, 1 << 31)
    absent, family = (back, 0, 0, 0x00050026), (back, 0, 0, 0x00050061)  # ENOSYS, EAFNOSUPPORT
    first, fourth = (load, 0, 0, 16), (load, 0, 0, 40)  # lower halves of arguments

    def when(call: int, *lines: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
        return [(equal, 0, len(lines), call), *lines]

    program = [(load, 0, 0, 4), (equal, 1, 0, number), kill, (load, 0, 0, 0)]
    if machine == "x86_64":  # the 32-bit pointers' numbers of the same calls
        program += [(0x35, 0, 1, 0x40000000), refuse]
    for call in _REFUSED.values():
        program += when(call[column], refuse)
    program += when(_CLONE3, absent)  # the C library then uses clone
    program += when(_CLONE[column], first, (bits, 0, 1, _NEW_USER), refuse, allow)
    both = _SHARED_ANONYMOUS  # pages that no process is counted with, once it lets go of them
    program += when(_MMAP[column], fourth, (0x54, 0, 0, both), (equal, 0, 1, both), refuse, allow)
    known = [(equal, len(_FAMILIES) - n, 0, one) for n, one in enumerate(_FAMILIES)]
    for call in _SOCKETS:
        program += when(call[column], first, *known, family, allow)
    return b"".join(struct.pack("=HBBI", *line) for line in [*program, allow])


# --- is it there? --------------------------------------------------------------------------------


def available() -> str | None:
    """None if the sandbox works on this machine, else why not and what to do, in a sentence."""
    if sys.platform != "linux":
        return (
            f"The sandbox needs Linux, this is {platform.system()}: grade on a Linux machine (a "
            "virtual one or a container will do), or accept the risk of running without it."
        )
    if not shutil.which("bwrap"):
        return (
            "bubblewrap is not installed: install it (on Debian and Ubuntu: "
            "apt-get install bubblewrap), or accept the risk of running without it."
        )
    command, passed = _bwrap(Limits())
    try:
        tried = subprocess.run(
            [*command, sys.executable, "-I", "-S", "-c", "pass"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            pass_fds=passed,
            env=_environment(INSIDE),
        )
        if tried.returncode == 0:
            return None
        said = codec.short(tried.stderr.decode(errors="replace").strip().split("\n")[-1])
    except subprocess.TimeoutExpired:
        said = "it does not come to an end"
    finally:
        for fd in passed:
            os.close(fd)
    user = (
        "give it an AppArmor profile that allows `userns`, or, until the next start, say `sudo "
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0` (on other systems `sudo sysctl "
        "user.max_user_namespaces=10000`); "
    )
    return (
        f"bubblewrap is installed but does not run ({said}): {user if os.geteuid() else ''}in a "
        "container, allow it namespaces and mounts; or accept the risk of running without the "
        "sandbox."
    )


# --- control groups ------------------------------------------------------------------------------

UNBOUND = (
    "There are no control groups that this user may make, so memory is added up over the processes "
    "of a submission some times a second, and what the kernel holds for them (buffers of sockets "
    "and pipes, tables of pages) is bound by the numbers of processes and open files alone."
)
_FILES = {"memory": ("memory.limit_in_bytes", "memory.max"), "pids": ("pids.max", "pids.max")}


@cache
def _places() -> dict[str, Path]:
    """Where control groups for memory and processes can be made: below our own in version 1,
    beside it in version 2, where a group has processes or groups. Empty if not for both."""
    found: dict[str, Path] = {}
    with suppress(OSError, ValueError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = {name: path for _, names, path in (x.split(":", 2) for x in lines)
               for name in names.split(",")}  # fmt: skip
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, place, kind, options, *_ = line.split()
            for name in _FILES:
                if kind == "cgroup" and name in options.split(","):
                    found[name] = Path(place + own[name])
                elif kind == "cgroup2" and name not in found:
                    folder = Path(place + own[""])
                    folder = folder if own[""] == "/" else folder.parent
                    if name in (folder / "cgroup.subtree_control").read_text().split():
                        found[name] = folder
    return found if len(found) == len(_FILES) else {}


class Group:
    """A control group: bounds memory, the kernel's too, and processes of all that is in it."""

    def __init__(self, memory: int, processes: int) -> None:
        self.folders: list[Path] = []
        most = {"memory": memory, "pids": processes}
        own = f"tfviz-{os.getpid()}-{next(_COUNT)}"
        try:
            for name, place in _places().items():
                for old in place.glob("tfviz-*-*"):  # of graders that were killed
                    if not psutil.pid_exists(int(old.name.split("-")[1])):
                        with suppress(OSError):
                            old.rmdir()
                if place / own not in self.folders:
                    (place / own).mkdir()
                    self.folders.append(place / own)
                limit = next(file for n in _FILES[name] if (file := place / own / n).exists())
                limit.write_text(str(most[name]))
        except OSError:
            self.close()

    def take(self, processes: Iterable[psutil.Process]) -> None:
        """These processes, and what they start from now on, are in the group."""
        for folder in self.folders:
            for process in processes:
                with suppress(OSError):
                    (folder / "cgroup.procs").write_text(str(process.pid))

    @property
    def full(self) -> bool:
        """Whether the kernel ended a process for want of memory."""
        for folder in self.folders:
            for name in ("memory.oom_control", "memory.events"):
                with suppress(OSError):
                    words = (folder / name).read_text().split()
                    if int(words[words.index("oom_kill") + 1]):
                        return True
        return False

    def close(self) -> None:
        """Take the group away; its processes are gone."""
        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()
        self.folders = []


def unbound() -> str | None:
    """None where control groups bound the memory of a submission, else what is not bound."""
    group = Group(1 << 30, 32)
    bounds = bool(group.folders)
    group.close()
    return None if bounds else UNBOUND


# --- the process ---------------------------------------------------------------------------------

_COUNT = itertools.count()


class Sandbox:
    """One process for a student's code, at the other end of a line.

    `send` and `receive` speak to it; both raise `Stopped` when it is gone, breaks a limit or talks
    nonsense. `close` ends it and all that it started, in any state.

    Without a sandbox all children that this process gets from now on count as the student's, for
    what they cut off comes to be one: then there may be one at a time.
    """

    def __init__(self, limits: Limits, *, sandboxed: bool = True) -> None:
        if sandboxed and not shutil.which("bwrap") and (why := available()):
            raise Unavailable(why)
        self.limits, self.sandboxed = limits, sandboxed
        self.broken: Stopped | None = None
        self.used = 0.0  # seconds, as `Deadline` counts them
        self._waiting = False  # the grader, for the process
        self._closed = False
        self._base = 0  # bytes that Python takes
        self._group: Group | None = None  # once Python is there
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        passed = [theirs_in, theirs_out]
        uid = BASE_UID + (os.getpid() * 16 + next(_COUNT) % 16) % 100_000_000
        orders = {
            "lines": passed,
            "uid": uid if sandboxed and os.geteuid() == 0 else None,
            "limits": asdict(limits) | {"processes": limits.processes + self._mine()},
        }
        command = [sys.executable, "-P", "-m", "tfviz_course.inside", json.dumps(orders)]
        self._folder = tempfile.TemporaryDirectory(prefix="tfviz-")
        self._before = {process.pid for process in psutil.Process().children()}
        if sandboxed:
            start, more = _bwrap(limits)
            command, passed, environment = [*start, *command], passed + more, _environment(INSIDE)
        else:
            if sys.platform == "linux":
                ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
            environment = _environment(str(HERE.parent))
            environment |= {"HOME": self._folder.name, "MPLCONFIGDIR": str(_fonts())}
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=passed,
                start_new_session=True,
                env=environment,
                cwd=self._folder.name,
            )
        finally:
            for fd in passed:
                os.close(fd)
        self._top = psutil.Process(self.process.pid)
        self._watch = threading.Thread(target=self._watching, daemon=True, name="watch a sandbox")
        self._watch.start()

    def _mine(self) -> int:
        """How many threads this user has: old kernels count them all into one limit."""
        if os.geteuid() == 0 and self.sandboxed:
            return 1  # a user of its own; the process itself
        count = 0
        for process in psutil.process_iter(["uids", "num_threads"]):
            if (uids := process.info["uids"]) and uids.real == os.getuid():
                count += process.info["num_threads"] or 1
        return count

    # --- the line ---

    def send(self, message: Any, raw: list[bytes], end: Deadline) -> None:
        """One message to the process. Raises Stopped."""
        rest = memoryview(codec.pack(message, raw))
        while rest:
            with self._wait(end):
                if select.select([], [self._out], [], POLL)[1]:
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
        parts: list[bytes] = []
        while size:
            with self._wait(end):
                if select.select([self._in], [], [], POLL)[0]:
                    with suppress(BlockingIOError):
                        part = os.read(self._in, min(size, 1 << 20))
                        if not part:
                            raise self._died()
                        parts.append(part)
                        size -= len(part)
                elif self.process.poll() is not None:
                    raise self._died()
        return b"".join(parts)

    @contextmanager
    def _wait(self, end: Deadline | None) -> Iterator[None]:
        """A while of waiting for the process, unless its time is over. Raises Stopped."""
        if self.broken:
            raise self.broken
        while end:
            if self.used > end.end:
                raise self.stop(
                    f"The answer ran longer than {end.seconds:.0f} seconds and was stopped. (Time "
                    "in which it had to wait for the processor is not counted.)",
                    "ran longer than it may",
                )
            if time.monotonic() > end.last:
                raise self.stop(
                    "The answer came to no end in time: the machine was too busy.",
                    "ran out of time: the machine was busy",
                )
            end = end.within
        self._waiting = True
        try:
            yield
        finally:
            self._waiting = False

    def stop(self, reason: str, remark: str) -> Stopped:
        """End it for this reason, unless it has been ended already; gives the first reason."""
        self.broken = self.broken or Stopped(reason, remark)
        for process in reversed(self._tree()):
            with suppress(psutil.Error):
                process.kill()
        return self.broken

    def nonsense(self, what: str) -> Stopped:
        """It wrote something of its own on the line: end it."""
        return self.stop(
            "The answer's code wrote over the line to the grader.",
            f"wrote over the grader's line: {what}",
        )

    def full(self) -> Stopped:
        """It took too much memory: end it."""
        most = self.limits.memory >> 20
        return self.stop(f"The answer took more than {most} MiB of memory.", "ran out of memory")

    def _died(self) -> Stopped:
        time.sleep(2 * POLL)  # the watch may know why
        if self._group and self._group.full:
            return self.full()
        return self.stop(
            "The answer's code ended Python itself: os._exit, a signal, or a crash in a library.",
            "its process ended by itself",
        )

    # --- limits over all processes, and the end ---

    def started(self) -> None:
        """Python and its libraries are loaded: memory counts from here."""
        tree = self._tree()
        self._base = _memory(tree)
        group = Group(self.limits.memory, self.limits.processes + 8)
        group.take(tree)
        self._group = group

    def _tree(self) -> list[psutil.Process]:
        """The process, all that it started, and (unsandboxed) what these left behind."""
        tops = [self._top]
        if not self.sandboxed:
            tops += [p for p in psutil.Process().children() if p.pid not in self._before]
        found: dict[int, psutil.Process] = {}
        for top in tops:
            with suppress(psutil.Error):
                found |= {process.pid: process for process in (top, *top.children(recursive=True))}
        return list(found.values())

    def _watching(self) -> None:
        """Count what it uses, and end it if all its processes together take too much."""
        last, before = 0.0, time.monotonic()
        while not self._closed and self.process.returncode is None:
            tree = self._tree()
            threads, spent, awake = 0, 0.0, not self._waiting
            for process in tree:
                with suppress(psutil.Error), process.oneshot():
                    threads += process.num_threads()
                    spent += sum(process.cpu_times()[:4])  # with those of children that ended
                    awake |= process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
            now = time.monotonic()
            asleep = not awake and spent <= last
            self.used += min(now - before, 2 * POLL) if asleep else max(spent - last, 0.0)
            last, before = spent, now
            if self._group and not self._closed:
                self._bound(self._group, tree, threads)
            time.sleep(POLL)

    def _bound(self, group: Group, tree: list[psutil.Process], threads: int) -> None:
        most = self.limits
        if group.full or (not group.folders and _memory(tree) > self._base + most.memory):
            self.full()
        elif threads > most.processes + 4:
            said = f"The answer started more than {most.processes} processes and threads."
            self.stop(said, "started too many processes")
        elif self.sandboxed and _inodes(tree) > most.inodes:
            self.stop(f"The answer made more than {most.inodes:,} files.", "made too many files")

    def close(self) -> None:
        """End the process and everything it started; returns when they are gone.

        Raises RuntimeError if a process does not go, which a kernel in order does not let happen.
        """
        if self._closed:
            return
        self._closed = True
        end_all(self._tree)
        self.process.wait()
        self._watch.join()
        os.close(self._in)
        os.close(self._out)
        if self._group:
            self._group.close()
        self._folder.cleanup()


def _memory(tree: list[psutil.Process]) -> int:
    """Bytes of all processes; what forks share is counted once, where that can be read."""
    total = 0
    for process in tree:
        with suppress(psutil.Error, OSError):
            try:
                full = process.memory_full_info() if len(tree) > 3 else process.memory_info()
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


# --- the end of processes ------------------------------------------------------------------------


def end_all(find: Callable[[], Iterable[psutil.Process]]) -> None:
    """Kill all processes that `find` finds, meanwhile too, and wait until they are gone.

    What is killed first leaves its own children to somebody else, so whoever was seen once is
    looked after. Raises RuntimeError if a process does not go.
    """
    seen: dict[int, psutil.Process] = {}
    end = time.monotonic() + GONE
    while True:
        seen |= {process.pid: process for process in find()}
        left = [process for process in seen.values() if not _gone(process)]
        if not left:
            return
        if time.monotonic() > end:
            raise RuntimeError(f"processes of a submission do not end: {left}")
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        time.sleep(0.02)


def _gone(process: psutil.Process) -> bool:
    """Whether it has ended; one that waits to be collected, and is our own child, is collected."""
    with suppress(OSError):
        os.waitpid(process.pid, os.WNOHANG)
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True
