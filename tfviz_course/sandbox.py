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
import math
import os
import platform
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from tfviz_course import codec

HERE = Path(__file__).resolve().parent
INSIDE = "/tmp/grader"  # where the sandbox has inside.py and codec.py
POLL = 0.05  # seconds between two looks at the processes
BUSY = 4  # processes and threads that may want the processor at a time, for long
WINDOW = 5.0  # seconds over which that is averaged
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


def _system() -> Iterator[Path]:
    """The system's programs and libraries."""
    for folder in (Path("/"), Path("/usr")):
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec"):
            if (folder / name).exists():
                yield folder / name
    for name in ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives"):
        if Path("/etc", name).exists():
            yield Path("/etc", name)


def _python() -> list[Path]:
    """Python, its environment and tfviz: the folders and files that the process reads."""
    import tfviz

    prefixes = {Path(p) for prefix in (sys.base_prefix, sys.prefix) for p in (prefix,)}
    prefixes |= {prefix.resolve() for prefix in prefixes}
    package = Path(tfviz.__file__).resolve().parent
    shown = [p for p in sorted(prefixes) if p not in (Path("/"), Path("/usr"))]
    return [*shown, package]


def _options(limits: Limits) -> list[str]:
    """What bubblewrap is told."""
    as_root = os.geteuid() == 0
    sizes = "--size" in _help()

    def memory(path: str, size: int, mode: str = "1777") -> list[str]:
        return ["--perms", mode, *(["--size", str(size)] if sizes else []), "--tmpfs", path]

    # Root gives up its rights in inside.py: a user namespace would leave it root outside, whom
    # limits on processes do not bind. Everybody else needs the user namespace.
    spaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    spaces += ["--unshare-cgroup-try"] if as_root else ["--unshare-all"]
    if not as_root and "--disable-userns" in _help():
        spaces += ["--unshare-user", "--disable-userns"]
    command = [*spaces, "--die-with-parent", "--new-session"]
    command += ["--hostname", "grader", "--proc", "/proc", "--dev", "/dev"]
    command += [*memory("/dev/shm", limits.disk), *memory("/tmp", limits.disk)]
    shown = {path: path for path in (*_system(), *_python())}
    names = ("__init__.py", "codec.py", "inside.py")
    shown |= {Path(INSIDE, "tfviz_course", name): HERE / name for name in names}
    if fonts := _fonts():  # else each process looks for all fonts anew, which takes seconds
        shown[Path(INSIDE, "matplotlib", fonts.name)] = fonts
    above = {up for path in shown for up in path.parents} - {Path("/"), Path("/tmp")}
    for folder in sorted(above):  # else they are closed to all but root
        command += ["--perms", "0755", "--dir", str(folder)]
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


@cache
def _fonts() -> Path | None:
    """Matplotlib's list of the fonts of this machine."""
    import matplotlib
    from matplotlib import font_manager

    path = Path(matplotlib.get_cachedir(), f"fontlist-v{font_manager.FontManager.__version__}.json")
    return path if path.is_file() else None


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

_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


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
    except subprocess.TimeoutExpired:
        return "bubblewrap does not come to an end on this machine: try `bwrap --ro-bind / / true`."
    finally:
        for fd in passed:
            os.close(fd)
    if tried.returncode == 0:
        return None
    said = codec.short(tried.stderr.decode(errors="replace").strip().split("\n")[-1])
    if os.geteuid() != 0 and _forbidden(said):
        return (
            f"bubblewrap may not make a user namespace here ({said}): give it an AppArmor "
            "profile that allows `userns`, or, until the next start, say "
            "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0` (on other systems "
            "`sudo sysctl user.max_user_namespaces=10000`); in a container allow it to the "
            "container; or accept the risk of running without the sandbox."
        )
    return (
        f"bubblewrap is installed but does not run ({said}): in a container, allow it namespaces "
        "and mounts; or accept the risk of running without the sandbox."
    )


def _forbidden(said: str) -> bool:
    with suppress(OSError):
        if _APPARMOR.read_text().strip() == "1":
            return True
    return any(words in said for words in ("uid map", "namespace", "NEWUSER", "userns"))


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
        for name, place in _places().items():
            for old in place.glob("tfviz-*-*"):  # of graders that were killed
                if not psutil.pid_exists(int(old.name.split("-")[1])):
                    with suppress(OSError):
                        old.rmdir()
            folder = place / f"tfviz-{os.getpid()}-{next(_COUNT)}"
            folder = next((f for f in self.folders if f.parent == place), folder)
            try:
                if folder not in self.folders:
                    folder.mkdir()
                    self.folders.append(folder)
                limit = next(f for n in _FILES[name] if (f := folder / n).exists())
                limit.write_text(str(most[name]))
            except OSError:
                self.close()
                return

    def take(self, pids: list[int]) -> None:
        """These processes, and what they start from now on, are in the group."""
        for folder in self.folders:
            for pid in pids:
                with suppress(OSError):
                    (folder / "cgroup.procs").write_text(str(pid))

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
_LIVE: set[int] = set()  # our own children of unsandboxed graders' processes, by id


class Sandbox:
    """One process for a student's code, at the other end of a line.

    `send` and `receive` speak to it; both raise `Stopped` when it is gone, breaks a limit or talks
    nonsense. `close` ends it and all that it started, in any state.
    """

    def __init__(self, limits: Limits, *, sandboxed: bool = True) -> None:
        if sandboxed and (why := _missing()):
            raise Unavailable(why)
        self.limits, self.sandboxed = limits, sandboxed
        self.broken: Stopped | None = None
        self.used = 0.0  # seconds, as `Deadline` counts them
        self._waiting = False  # the grader, for the process
        self._closed = False
        self._base: int | None = None
        self._group: Group | None = None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)
        self._folder = None if sandboxed else tempfile.TemporaryDirectory(prefix="tfviz-")
        uid = BASE_UID + (os.getpid() * 16 + next(_COUNT) % 16) % 100_000_000
        orders = {
            "lines": [theirs_in, theirs_out],
            "uid": uid if sandboxed and os.geteuid() == 0 else None,
            "limits": asdict(limits) | {"processes": limits.processes + self._mine()},
        }
        passed = [theirs_in, theirs_out]
        run = [sys.executable, "-P", "-m", "tfviz_course.inside", json.dumps(orders)]
        self._before = set() if sandboxed else {p.pid for p in psutil.Process().children()}
        try:
            if sandboxed:
                start, more = _bwrap(limits)
                passed += more
                command = [*start, *run]
                options: dict[str, Any] = {"env": _environment(INSIDE)}
            else:
                _adopt_orphans()
                home = Path(self._folder.name, "home")  # type: ignore[union-attr]
                home.mkdir()
                environment = _environment(str(HERE.parent)) | {"HOME": str(home)}
                if fonts := _fonts():
                    environment["MPLCONFIGDIR"] = str(fonts.parent)
                command, options = run, {"cwd": home, "env": environment}
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=passed,
                start_new_session=True,
                **options,
            )
        except BaseException:
            os.close(self._in)
            os.close(self._out)
            raise
        finally:
            for fd in passed:
                os.close(fd)
        _LIVE.add(self.process.pid)
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
                    try:
                        rest = rest[os.write(self._out, rest[: 1 << 20]) :]
                    except BlockingIOError:
                        continue
                    except OSError:
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
        self._kill()
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
        self._base = self._memory(tree)
        self._group = Group(self.limits.memory, self.limits.processes + 8)
        self._group.take([process.pid for process in tree])

    def _tree(self) -> list[psutil.Process]:
        """The process, all that it started, and (unsandboxed) what these left behind."""
        found: dict[int, psutil.Process] = {}
        with suppress(psutil.Error):
            top = psutil.Process(self.process.pid)
            found = {p.pid: p for p in [top, *top.children(recursive=True)]}
        if not self.sandboxed:
            with suppress(psutil.Error):
                for child in psutil.Process().children():
                    if child.pid not in self._before | _LIVE:
                        found |= {p.pid: p for p in [child, *child.children(recursive=True)]}
        return list(found.values())

    def _memory(self, tree: list[psutil.Process]) -> int:
        """Bytes of all processes; what forks share is counted once, where that can be read."""
        total = 0
        for process in tree:
            with suppress(psutil.Error, OSError):
                try:
                    total += process.memory_full_info().pss if len(tree) > 3 else _rss(process)
                except psutil.AccessDenied:
                    total += _rss(process)
        return total

    def _watching(self) -> None:
        busy, last, before = 0.0, 0.0, time.monotonic()
        while not self._closed and self.process.returncode is None:
            tree = self._tree()
            states = _states(tree)
            threads, spent = 0, 0.0
            for process in tree:
                with suppress(psutil.Error), process.oneshot():
                    threads += process.num_threads()
                    spent += sum(process.cpu_times()[:4])  # with those of children that ended
            now = time.monotonic()
            passed, before = now - before, now
            asleep = self._waiting and spent <= last and not (states["R"] or states["D"])
            self.used += min(passed, 2 * POLL) if asleep else max(spent - last, 0.0)
            last = spent
            if self._base is not None and not self._closed:
                busy += (states["R"] * (threads > BUSY) - busy) * min(passed / WINDOW, 1.0)
                self._bound(tree, threads, busy)
            time.sleep(POLL)

    def _bound(self, tree: list[psutil.Process], threads: int, busy: float) -> None:
        """End it if all its processes together take too much."""
        most = self.limits
        full = self._group and self._group.full
        if threads > most.processes + 4:
            said = f"The answer started more than {most.processes} processes and threads."
            self.stop(said, "started too many processes")
        elif full or self._memory(tree) > (self._base or 0) + most.memory:
            self.full()
        elif self.sandboxed and _inodes(tree) > most.inodes:
            self.stop(f"The answer made more than {most.inodes:,} files.", "made too many files")
        elif busy > BUSY:
            self.stop(
                f"The answer kept more than {BUSY} processes and threads busy at a time.",
                "kept the processor from others: too many busy processes",
            )

    def _kill(self) -> None:
        """SIGKILL to all; in a sandbox the end of its first process ends all others surely."""
        for process in reversed(self._tree()):
            with suppress(psutil.Error, OSError):
                process.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """End the process and everything it started; returns when they are gone.

        Raises RuntimeError if a process does not go, which a kernel in order does not let happen.
        """
        if self._closed:
            return
        self._closed = True
        end = time.monotonic() + GONE
        seen: dict[int, psutil.Process] = {}  # what is cut off from the tree ends a little later
        while True:
            seen |= {process.pid: process for process in self._tree()}
            self._kill()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(POLL)
            left = [process for process in seen.values() if not _gone(process)]
            if self.process.returncode is not None and not left:
                break
            if time.monotonic() > end:
                raise RuntimeError(f"processes of a submission do not end: {left}")
        _LIVE.discard(self.process.pid)
        self._watch.join(GONE)
        os.close(self._in)
        os.close(self._out)
        if self._group:
            self._group.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def _missing() -> str | None:
    if sys.platform == "linux" and shutil.which("bwrap"):
        return None
    return available()


def _rss(process: psutil.Process) -> int:
    return int(process.memory_info().rss)


def _inodes(tree: list[psutil.Process]) -> int:
    """Files and folders in the sandbox's own memory; they cost some even when they are empty."""
    for process in tree[1:]:  # the first is outside
        with suppress(OSError):
            root = f"/proc/{process.pid}/root"
            sizes = [os.statvfs(root + folder) for folder in ("/tmp", "/dev/shm")]
            return sum(size.f_files - size.f_ffree for size in sizes)
    return 0


def _states(tree: list[psutil.Process]) -> Counter[str]:
    """How many threads of these processes run or wait for a processor (R), for a disk (D), …"""
    found: Counter[str] = Counter()
    for process in tree:
        for thread in Path(f"/proc/{process.pid}/task").glob("*/stat"):
            with suppress(OSError):  # it ended meanwhile
                found[thread.read_text(errors="replace").rpartition(")")[2].split()[0]] += 1
    return found


def _gone(process: psutil.Process) -> bool:
    """Whether it has ended; one that waits to be collected, and is our own child, is collected."""
    with suppress(ChildProcessError, OSError):
        os.waitpid(process.pid, os.WNOHANG)
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def _adopt_orphans() -> None:
    """Processes that a student's code cuts off become our own children, not those of process 1."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def limit_here(memory: int, seconds: float) -> None:
    """Let this process take this much more memory than it has and this much processor time, and
    write no dump if it fails."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 5))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or most <= hard:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
