"""What a student's code can reach and use up: nothing of the machine, and no more than its share.

Each test starts a real process as the grader does and runs code in it. What the code attempts is
bounded by the code itself too, so that a broken sandbox fails a test and harms nobody.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
from course import ordinary

import tfviz
from tfviz_course import codec, sandbox
from tfviz_course.line import Ran, Session
from tfviz_course.sandbox import Deadline, Limits, Sandbox, Stopped, Unavailable, available

ROOT = Path(__file__).resolve().parents[3]
SMALL = Limits(
    cell_seconds=60,
    call_seconds=60,
    memory=400 << 20,
    processes=12,
    file_size=1 << 20,
    disk=4 << 20,
)

if sys.platform != "linux":
    pytest.skip("the sandbox needs Linux", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def works() -> None:
    """The sandbox works on the machine that runs the tests; it is not skipped where it does not."""
    assert available() is None


@contextlib.contextmanager
def session(limits: Limits = SMALL) -> Iterator[Session]:
    made = Session(limits)
    try:
        yield made
    finally:
        made.line.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Session]:
    """One process for all tests that leave it as it is."""
    with session() as made:
        yield made


def run(session: Session, source: str, *names: str, seconds: float = 60) -> Ran:
    return session.run(1, source, names, seconds)


def value(session: Session, source: str) -> Any:
    """What `found` is after this code."""
    ran = run(session, source, "found")
    assert ran.error is None, ran.error
    return ran.values["found"]


# --- what it need not load -----------------------------------------------------------------------


def test_training_loads_no_compiler_and_drawing_makes_no_list_of_fonts(shared: Session) -> None:
    found = value(
        shared,
        "import sys, torch, matplotlib.font_manager as fonts\n"
        "w = torch.nn.Parameter(torch.ones(1))\n"
        "for kind in (torch.optim.SGD, torch.optim.AdamW):\n"
        "    steps = kind([w]); w.sum().backward(); steps.step(); steps.zero_grad()\n"
        "    steps.load_state_dict(steps.state_dict())\n"
        "found = [m for m in sys.modules if m.startswith('torch._dynamo.')], w.item() < 1, "
        "fonts._get_fontconfig_fonts.cache_info().currsize",
    )
    assert found == ([], True, 0)


def test_who_compiles_has_the_compiler() -> None:
    with session(Limits()) as made:
        found = value(
            made,
            "import torch\n"
            "twice = torch.compile(lambda x: x + x, backend='eager')\n"
            "import torch._dynamo.config\n"
            "found = twice(torch.ones(2)), len(torch._dynamo.config.__name__)",
        )
        assert found[0].tolist() == [2, 2] and found[1] == len("torch._dynamo.config")


# --- what it can reach ---------------------------------------------------------------------------


def test_it_sees_no_network(shared: Session) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = value(
            shared,
            f"""
import socket
found = []
for address in (("127.0.0.1", {port}), ("192.0.2.1", 80)):
    try:
        socket.create_connection(address, timeout=2).close()
        found.append("connected")
    except OSError as error:
        found.append("refused")
found.append([line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]])
""",
        )
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()
    assert found == ["refused", "refused", ["lo"]]


def test_sockets_are_those_between_ones_own_processes() -> None:
    """What waits in a connection of TCP to oneself is memory that no group counts."""
    source = """
import asyncio, multiprocessing, os, socket, subprocess, sys
made, paired = [], []
for family in range(64):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
        for list_, make in ((made, socket.socket), (paired, socket.socketpair)):
            try:
                make(family, kind)
                list_.append(family)
            except OSError:
                pass
async def twice(x):
    process = await asyncio.create_subprocess_exec("/bin/cat", stdin=-1, stdout=-1)
    return (await process.communicate(x))[0] * 2
def answer(line):
    line.send(os.getpid() > 0)
said = [asyncio.run(twice(b"ab")).decode()]
ours, theirs = multiprocessing.Pipe()
one = multiprocessing.get_context("fork").Process(target=answer, args=(theirs,))
one.start()
said += [ours.recv()]
one.join()
said += [subprocess.run(["/bin/echo", "x"], capture_output=True).stdout.decode()]
found = None, [sorted(set(made)), sorted(set(paired)), said]
"""
    with session() as own:  # it leaves pipes and sockets open
        error, (made, paired, said) = value(own, source)
    assert error is None
    assert (made, paired) == ([socket.AF_UNIX], [socket.AF_UNIX])
    assert said == ["abab", True, "x\n"]  # what notebooks need of them


def test_the_disks_of_the_machine_are_not_made_to_follow(shared: Session) -> None:
    """`sync` waits for all that the machine has to write; it cannot fail, so it does nothing."""
    found = value(
        shared,
        """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
folder = os.open("/usr", os.O_RDONLY)
found = [libc.syncfs(folder), errno.errorcode[ctypes.get_errno()]]
ctypes.set_errno(0)
found += [libc.syscall(NUMBER), errno.errorcode.get(ctypes.get_errno())]
os.sync()
""".replace("NUMBER", str(sandbox._REFUSED["sync"][platform.machine() == "aarch64"])),
    )
    assert found == [-1, "EPERM", -1, "EPERM"]


def test_it_reads_neither_the_course_nor_the_chapters_nor_a_home(
    shared: Session, tmp_path: Path
) -> None:
    course = tmp_path / "course"
    course.mkdir()
    (course / "gradebook.db").write_text("grades")
    hidden = [course / "gradebook.db", ROOT / "chapters", ROOT / "tests", ROOT / "README.md"]
    hidden += [ROOT / "teaching/tfviz_course/judge.py", ROOT / ".git", Path("/etc/passwd")]
    hidden += [Path("/var"), Path("/home"), Path("/run"), Path("/sys"), Path("/boot")]
    assert course.exists() and (ROOT / "chapters").exists()
    found = value(
        shared, f"import os\nfound = [p for p in {[*map(str, hidden)]!r} if os.path.lexists(p)]"
    )
    assert found == []
    home = value(shared, "import os\nfound = sorted(os.listdir(os.path.expanduser('~')))")
    assert set(home) <= {".ipython"}


def test_it_has_python_the_library_and_nothing_of_the_environment(shared: Session) -> None:
    found = value(shared, "import os, tfviz\nfound = [tfviz.__file__, dict(os.environ)]")
    assert found[0] == tfviz.__file__
    assert found[1].keys() <= {*sandbox.ENVIRONMENT, "PWD", "SHLVL", "_"} | {
        "PYTHONPATH",
        "KMP_DUPLICATE_LIB_OK",
        "KMP_INIT_AT_FORK",
        "TORCHINDUCTOR_CACHE_DIR",
    }
    assert found[1]["HOME"] == "/tmp/home"
    assert found[1]["NBGRADER_EXECUTION"] == "autograde"


def test_it_writes_only_in_a_small_tmp(shared: Session) -> None:
    places = ["/x", "/dev/x", "/etc/x", "/usr/x", "/usr/lib/x", sys.prefix + "/x", "/root/x"]
    places += [str(Path(tfviz.__file__).parent / "x"), str(ROOT / "x"), "/proc/sys/kernel/hostname"]
    found = value(
        shared,
        f"""
found = []
for place in {places!r}:
    try:
        open(place, "w").write("x")
        found.append(place)
    except OSError:
        pass
open("/tmp/mine", "w").write("x")
""",
    )
    assert found == []
    assert not any(Path(place).exists() for place in places if place.endswith("/x"))
    assert not Path("/tmp/mine").exists()


def test_files_are_bounded_one_by_one_and_together(shared: Session) -> None:
    found = value(
        shared,
        """
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(path, size):
    try:
        with open(path, "wb") as file:
            for _ in range(size):
                file.write(bytes(1 << 16))
                file.flush()
    except OSError as error:
        pass
    return os.path.getsize(path)
found = [fill("/tmp/large", 64), sum(fill(f"/tmp/n{n}", 15) for n in range(10)),
         sum(fill(f"/dev/shm/n{n}", 15) for n in range(10))]
for n in range(10):
    for folder in ("/tmp", "/dev/shm"):
        os.path.exists(f"{folder}/n{n}") and os.remove(f"{folder}/n{n}")
os.remove("/tmp/large")
""",
    )
    assert 0 < found[0] <= SMALL.file_size
    assert 0 < found[1] <= SMALL.disk
    assert 0 < found[2] <= SMALL.disk


def test_it_is_nobody_and_cannot_become_somebody(shared: Session) -> None:
    found = value(
        shared,
        """
import ctypes, os, struct
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
libc = ctypes.CDLL(None, use_errno=True)
found = {name: status[name] for name in ("CapEff", "CapPrm", "CapAmb", "NoNewPrivs", "Seccomp")}
found["uid"] = os.getuid()
found["namespace"] = libc.unshare(0x10000000)
found["mount"] = libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)
found["trace"] = libc.ptrace(16, 1, 0, 0)
found["memory"] = libc.memfd_create(b"x", 0)
found["shared"] = libc.shmget(0, 4096, 0o600 | 0o1000)
found["semaphores"] = libc.semget(0, 1, 0o600 | 0o1000)
found["messages"] = libc.msgget(0, 0o600 | 0o1000)
found["pages"] = libc.mmap(None, 4096, 3, 0x21, -1, 0)  # anonymous, shared
found["netlink"] = libc.socket(16, 3, 0)
lock = ctypes.create_string_buffer(struct.pack("hhqqi", 0, 0, 0, 1, 0))
for command in (6, 7, 37, 38):
    place = os.open("/tmp", os.O_RDONLY)
    found[f"lock {command}"] = libc.fcntl(place, command, lock)
    os.close(place)
try:
    os.setuid(0)
    found["root"] = True
except OSError:
    found["root"] = False
""",
    )
    assert {found[name] for name in ("CapEff", "CapPrm", "CapAmb")} == {"0000000000000000"}
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"
    assert found["uid"] != 0 and found["root"] is False
    known = {"CapEff", "CapPrm", "CapAmb", "NoNewPrivs", "Seccomp", "uid", "root"}
    refused = {name: number for name, number in found.items() if name not in known}
    assert len(refused) == 13 and {*refused.values()} == {-1}, refused


def test_it_sees_only_its_own_processes(shared: Session) -> None:
    found = value(
        shared,
        "import os\nfound = [int(n) for n in os.listdir('/proc') if n.isdigit()], os.getppid()",
    )
    assert len(found[0]) <= 3 and found[1] in (0, 1)
    killed = value(
        shared,
        f"""
import os
found = 0
for pid in (1, {os.getpid()}, -1):
    try:
        if pid != -1:
            os.kill(pid, 9)
            found += pid != 1
    except OSError:
        pass
""",
    )
    assert killed == 0


def test_two_workers_are_two_users() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives each process a user of its own")
    with session() as one, session() as two:
        first, second = (value(s, "import os\nfound = os.getuid()") for s in (one, two))
    assert first != second and min(first, second) >= sandbox.BASE_UID


# --- what it begins with -------------------------------------------------------------------------

OPEN = """
import os
found = {}
for number in os.listdir("/proc/self/fd"):
    try:
        found[int(number)] = os.readlink(f"/proc/self/fd/{number}").split(":")[0]
    except FileNotFoundError:
        pass
found = [found, os.getcwd(), [line for line in open("/proc/self/maps") if "rw-s" in line]]
"""


def test_nothing_of_the_machine_stays_open() -> None:
    with session() as new:  # what others left open in theirs is not the machine's
        opened, folder, written = value(new, OPEN)
    assert opened == dict.fromkeys(range(3), "/dev/null") | dict.fromkeys((3, 4), "pipe")
    assert (folder, written) == ("/tmp/home", [])


def test_nothing_of_one_submission_reaches_another() -> None:
    """They begin as copies of one process, with the set-up and its random numbers."""
    cells = (("set-up", "import random, torch\nrandom.seed(1)\nkept = [torch.ones(2)]"),)
    made = [Session(SMALL, cells) for _ in range(2)]
    spoils = (
        "import os, builtins, tfviz\nkept[0].mul_(0)\nkept.append(torch.add)\n"
        "torch.add = builtins.mine = tfviz.mine = os.environ['MINE'] = 'mine'\n"
        "open('/tmp/mine', 'w').close()\nopen('/dev/shm/mine', 'w').close()\n"
        "found = [random.random(), torch.rand(()).item()]"
    )
    code = (
        "import os, tfviz\nfound = [random.random(), torch.rand(()).item()], kept[0].tolist(), "
        "len(kept), torch.add is not 'mine', 'MINE' in os.environ, hasattr(tfviz, 'mine'), "
        "'mine' in dir(__builtins__), sorted(os.listdir('/tmp')), os.listdir('/dev/shm')"
    )
    try:
        there = value(made[0], "import os\nfound = sorted(os.listdir('/tmp'))")
        assert "home" in there  # and what leads to this clone, if that is where it is
        drawn = value(made[0], spoils)
        made.append(Session(SMALL, cells))
        for later in made[1:]:  # one that was there, and one that is new
            expected: Any = (drawn, [1.0, 1.0], 1, True, False, False, False, there, [])
            assert value(later, code) == expected
    finally:
        for one in made:
            one.line.close()


def test_a_set_up_that_fails_is_named() -> None:
    with pytest.raises(Unavailable, match=r"cell 'two' .* fails .*ZeroDivisionError"):
        Session(SMALL, (("one", "x = 0"), ("two", "1 / x")))


# --- what it can use up --------------------------------------------------------------------------


def test_output_is_kept_up_to_a_length(shared: Session) -> None:
    ran = run(shared, "for n in range(1_000_000): print('x' * 60)")
    text = "".join(output["text"] for output in ran.outputs)
    assert SMALL.output / 2 < len(text) <= SMALL.output + 100
    ran = run(shared, "import os\nfor n in range(1000): os.write(1, b'x' * 60_000)")
    assert ran.outputs == [] and ran.error is None


PICTURE = r'display({"image/png": b"\x89PNG\r\n\x1a\n", "text/html": "<b>"}, raw=True)'


def test_outputs_are_text_and_pictures_only(shared: Session) -> None:
    ran = run(
        shared,
        """
from IPython.display import HTML, Javascript, display
import sys
print("out"); print("err", file=sys.stderr)
display(HTML("<script>alert(1)</script>"), Javascript("alert(1)"))
class Rich:
    def _repr_mimebundle_(self, **options):
        return {"text/html": "<b>", "text/plain": "rich", "image/svg+xml": "<svg>"}
Rich()
""",
    )
    (output,) = ran.outputs
    assert (output["output_type"], output["name"]) == ("stream", "stdout")
    shown = output["text"].splitlines()
    assert (shown[0], shown[1], shown[-1]) == ("out", "err", "rich") and len(shown) == 5
    assert "<" not in "".join(shown).replace("<IPython.core.display", "")
    (picture,) = run(shared, "from IPython.display import display\n" + PICTURE).outputs
    assert picture["data"] == {"image/png": "iVBORw0KGgo="}


def test_an_endless_loop_is_stopped() -> None:
    with session() as one, pytest.raises(Stopped, match="longer than 1 seconds"):
        run(one, "while True: pass", seconds=1)


def test_the_processor_time_of_all_processes_counts() -> None:
    """So many of them take no more from others than one does."""
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 120
        while time.monotonic() < end:
            pass
        os._exit(0)
time.sleep(100)
"""
    with session() as one, pytest.raises(Stopped, match="longer than 2 seconds"):
        run(one, code, seconds=2)


FORGOTTEN = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(600):  # 30 seconds of work
    if os.fork() == 0:
        while time.process_time() < 0.05:
            pass
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        pass
"""


@pytest.mark.parametrize("counted", [True, False])
def test_the_time_of_children_counts_that_nobody_waits_for(
    counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the control group, and where none counts it, as here or for who may make none."""
    if not counted:
        monkeypatch.setattr(sandbox.Group, "spent", None)
    with session() as one, pytest.raises(Stopped, match="longer than 5 seconds"):
        run(one, FORGOTTEN, seconds=5)


def test_what_comes_and_goes_may_have_run_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at a time as there are processors; who stays is asked what it spent."""
    monkeypatch.setattr(sandbox.os, "sched_getaffinity", lambda pid: {0, 1})
    a, b, c, d = map(Mock, "abcd")
    turnover: Any = sandbox._turnover
    assert turnover({a, b}, {a, b}) == 0
    assert turnover({a}, {a, b}) == turnover({a, b}, {b}) == turnover({a, b}, {a, c}) == 1
    assert turnover({a}, {a, b, c, d}) == turnover({a, b, c, d}, set()) == 2


WAITS = {
    "a child of vfork": """
import ctypes, os, platform, time
number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
if ctypes.CDLL(None).syscall(number, 0x4000 | 17, 0, 0, 0, 0) == 0:
    time.sleep(100)
    os._exit(0)
os.wait()
""",
    "a moment": """
import time
for _ in range(1200):
    time.sleep(0.08)
    end = time.thread_time() + 0.003
    while time.thread_time() < end:
        pass
""",
}


@pytest.mark.parametrize("what", WAITS)
def test_who_waits_for_anything_but_the_processor_sleeps(what: str) -> None:
    with session() as one, pytest.raises(Stopped, match="longer than 5 seconds"):
        run(one, WAITS[what], seconds=5)


def test_a_thread_that_works_is_work_and_no_sleep() -> None:
    """Its process as such sleeps: the first thread waits."""
    code = """
import threading, time
def work():
    end = time.thread_time() + 60
    while time.thread_time() < end:
        pass
threading.Thread(target=work, daemon=True).start()
"""
    with session() as one:
        run(one, code)
        student = one.line._tops[-1]
        while student.status() != psutil.STATUS_SLEEPING:
            time.sleep(0.01)
        assert sandbox._runs(student)


@pytest.mark.parametrize("answered", [True, False])
def test_sleep_counts_while_the_grader_waits_for_it_and_not_the_other_way(answered: bool) -> None:
    """On a busy machine the grader is kept from the processor when the answer lies there."""
    with session() as one:
        if answered:
            one.line.send(["run", 1, "1", [], None], [], Deadline(60, one.line))
            assert select.select([one.line._in], [], [], 60)[0]
        before, one.line._waiting = one.line.used, ([one.line._in], [])
        for _ in range(20 if answered else 600):
            time.sleep(0.1)
            if counted := one.line.used - before > 1:
                break
        assert counted != answered


def test_one_process_gets_no_more_memory_than_it_may(shared: Session) -> None:
    ran = run(shared, f"much = bytearray({2 * SMALL.memory})", "much")
    assert isinstance(ran.error, MemoryError) and "much" not in ran.values


@pytest.mark.parametrize("moved", [True, False])
def test_memory_counts_over_all_processes(moved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a control group can be made, but no process be moved into it."""
    write = Path.write_text

    def written(path: Path, text: str) -> int:
        if path.name == "cgroup.procs" and not moved:
            raise PermissionError
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", written)
    part = SMALL.memory // 3
    code = f"""
import os, time
for _ in range(5):
    if os.fork() == 0:
        held = b"x" * {part}
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""
    with session() as one, pytest.raises(Stopped, match="MiB of memory"):
        run(one, code)


def test_control_groups_bound_what_no_process_is_counted_with() -> None:
    """Kernel memory: buffers of sockets. Where this user may make no groups, that is said."""
    if why := sandbox.unbound():
        assert os.geteuid() != 0 and "no control groups" in why
        return
    code = """
import socket
pairs = [socket.socketpair() for _ in range(50)]
for pair in pairs:
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 26)
        end.setblocking(False)
        try:
            while True:
                end.send(bytes(50_000))
        except BlockingIOError:
            pass
"""
    tight = dataclasses.replace(SMALL, memory=10 << 20)
    with session(tight) as one, pytest.raises(Stopped, match="MiB of memory"):
        assert one.line._group
        folders = one.line._group.folders
        assert folders and all(folder.exists() for folder in folders)
        run(one, code)
    assert not any(folder.exists() for folder in folders)


def test_no_control_groups_are_said_to_who_may_not_make_them() -> None:
    code = "from tfviz_course.sandbox import unbound; print(unbound())"
    said = ordinary.run(code)[-1]
    assert said == "None" or "no control groups" in said


def test_files_are_counted() -> None:
    code = """
import os
os.mkdir("/dev/shm/many")
for n in range(10**5):
    os.close(os.open(f"/dev/shm/many/{n}", os.O_CREAT))
"""
    with session() as one, pytest.raises(Stopped, match="more than 20,000 files"):
        run(one, code)


def test_processes_are_counted() -> None:
    code = """
import os, time
started = 0
for _ in range(60):  # bounded here too
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        started += 1
    except OSError:
        break
time.sleep(1)
"""
    with session() as one:
        try:
            ran = run(one, code, "started")
        except Stopped as stopped:
            assert "processes" in stopped.reason
        else:
            assert ran.values["started"] <= SMALL.processes
        assert len(sandbox.family(*one.line._tops)) <= SMALL.processes + 8


def test_many_processes_are_noticed_where_the_limit_is_wide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As for somebody who has many processes on an old kernel, which counts them all into one."""
    monkeypatch.setattr(Sandbox, "_mine", lambda self: 100)
    code = """
import os, time
for _ in range(60):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    except OSError:
        pass
time.sleep(60)
"""
    with session() as one, pytest.raises(Stopped, match="processes"):
        run(one, code)


@pytest.mark.parametrize(
    "garbage",
    [
        "b'garbage' * 100",
        "b'\\0\\0\\0\\x02\\0\\0\\0\\0[]'",
    ],
)
def test_garbage_on_the_line_is_the_end(garbage: str) -> None:
    code = f"""
import os
for fd in range(3, 40):
    try:
        os.write(fd, {garbage})
    except OSError:
        pass
"""
    with session() as one, pytest.raises(Stopped) as stopped:
        run(one, code, seconds=20)
    assert "wrote over the grader's line" in stopped.value.remark


def test_a_flood_on_the_line_is_the_end() -> None:
    code = f"""
import os, struct
for fd in range(3, 40):
    try:
        os.write(fd, struct.pack(">II", {codec.JSON_BYTES}, {codec.RAW_BYTES}))
        for _ in range(2000):
            os.write(fd, bytes(1 << 20))
    except OSError:
        pass
"""
    before = psutil.Process().memory_info().rss
    with session() as one, pytest.raises(Stopped):
        run(one, code, seconds=20)
    assert psutil.Process().memory_info().rss < before + 2 * codec.RAW_BYTES


# --- who watches, whatever happens ---------------------------------------------------------------

# what a process, a thread, a file, a socket or a variable may be called: any bytes but 0
NAMES = (
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"", b" ", b"\t\r\n", b")", b"( (", b") R 1 1", b"a) S (b",
    b"x\ny: 1", b"Threads:\t99", b"Uid:\t0\t0\t0", b"oom_kill 1", b"\x1b[31m", b"\x7f", b"%s{}$",
)  # fmt: skip
NAMED = f"""
import ctypes, os, shutil, socket, subprocess, threading, time
names, kept, libc = {NAMES!r}, [], ctypes.CDLL(None)
libc.mallopt(-8, 1)  # M_ARENA_MAX: threads map little memory,
threading.stack_size(1 << 16)  # so that many can start
def call_this(name):
    libc.prctl(15, name, 0, 0, 0)  # PR_SET_NAME: of this thread
def thread(name):
    call_this(name)
    time.sleep(60)
for name in names[:4]:
    threading.Thread(target=thread, args=(name,), daemon=True).start()
for name in names:
    folder = b"/tmp/" + name.replace(b"/", b"") + b"!"
    os.makedirs(folder, exist_ok=True)
    kept.append(os.open(folder + b"/" + name + b"!", os.O_CREAT))
    kept.append(socket.socket(socket.AF_UNIX))
    kept[-1].bind(b"\\0" + name + b"!")
program = b"/tmp/) R\\xff\\n(Threads:\\t1"
shutil.copy("/bin/sleep", program)
subprocess.Popen([program, b"60"], executable=program, env={{b"\\xff (": b"\\xfe\\n"}})
time.sleep(0.7)  # longer than from one look at it to the next
"""
OVER = {  # what goes too far under such names, and what the grader then remarks
    "time": ("ran longer than it may", "call_this(b'\\xff')\ntime.sleep(60)  # soon"),
    "work": ("ran longer than it may", "call_this(b') S 1 1')\nwhile True:\n    pass  # soon"),
    "memory": ("ran out of memory", """
call_this(b'\\xff')
for _ in range(4):
    if os.fork() == 0:
        call_this(b') \\xff (')
        held = b'x' * (150 << 20)
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""),
    "files": ("made too many files", """
call_this(b'\\xff')
for n in range(30_000):
    if n % 1000 == 0:
        os.mkdir(b'/dev/shm/\\xff %d' % n)
    os.close(os.open(b'/dev/shm/\\xff %d/)\\n%d' % (n - n % 1000, n), os.O_CREAT))
time.sleep(60)
"""),
    "threads": ("started too many processes", """
call_this(b'Threads:\\t1')
for _ in range(40):
    try:
        threading.Thread(target=thread, args=(b'Threads:\\t1',), daemon=True).start()
    except RuntimeError:
        break
time.sleep(60)
"""),
}  # fmt: skip
WATCHED = """
import json, sys
from tfviz_course.line import Session
from tfviz_course.sandbox import Limits, Sandbox, Stopped
Sandbox._mine = lambda self: 100  # as for somebody with many processes on an old kernel
found = []
for source in sys.argv[1:]:
    session = Session(Limits(memory=400 << 20, processes=12))
    try:
        seconds = 2 if source.endswith("# soon") else 60
        found.append(repr(session.run(1, source, (), seconds).error))
    except Stopped as stopped:
        found.append(stopped.remark)
    finally:
        session.line.close()
print(json.dumps(found))
"""


@pytest.mark.parametrize("user", ["this one", "an ordinary one"])
def test_no_name_hides_anything_from_the_watch(user: str) -> None:
    """The names alone cost nothing; under them every limit holds, and is what the remark says."""
    sources = [NAMED, *(NAMED + source for _, source in OVER.values())]
    if user == "this one":
        command = [sys.executable, "-B", "-c", WATCHED, *sources]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert (said.returncode, said.stderr) == (0, "")
        remarks = json.loads(said.stdout)
    elif os.geteuid() == 0:
        remarks = json.loads(ordinary.run(WATCHED, *sources)[-1])
    else:
        pytest.skip("this one is an ordinary one")
    assert dict(zip(["names", *OVER], remarks, strict=True)) == {
        "names": "None",
        **{what: remark for what, (remark, _) in OVER.items()},
    }


def test_names_stand_where_the_watch_reads(shared: Session) -> None:
    """Thread by thread: whether it runs, and how many there are, whatever it is called."""
    student = shared.line._tops[-1]
    user, shown = os.stat(f"/proc/{student.pid}").st_uid, set()
    for name in NAMES:
        run(shared, f"import ctypes\nctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)")
        while student.status() != psutil.STATUS_SLEEPING:
            time.sleep(0.01)
        shown.add(Path(f"/proc/{student.pid}/stat").read_bytes())
        assert not sandbox._runs(student)
        assert sandbox._threads(student) == len(os.listdir(f"/proc/{student.pid}/task"))
        assert sandbox._status(student.pid, "Uid") == user
    assert len(shown) == len(NAMES)


def replace(
    patch: pytest.MonkeyPatch, place: Any, name: str, instead: Any, one: Session | None = None
) -> None:
    """Replace a function for this test and for the watch of its session only. The watches of other
    sessions, such as the shared one, look on meanwhile: what they met would end them."""
    before, meant = getattr(place, name), [threading.current_thread(), one and one.line._watch]

    def either(*given: Any, **more: Any) -> Any:
        return (instead if threading.current_thread() in meant else before)(*given, **more)

    patch.setattr(place, name, either)


def test_who_vanishes_between_listing_and_reading_is_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Processes and threads end while they are looked at, at every step of it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        process = psutil.Process(started.pid)
        list_, read = os.listdir, Path.read_bytes

        def vanishes(*_: Any) -> Any:
            raise ProcessLookupError(3, "No such process")

        for place, name in ((os, "listdir"), (Path, "read_bytes")):
            with monkeypatch.context() as patch:
                replace(patch, place, name, vanishes)
                assert not sandbox._runs(process)
                assert sandbox._threads(process) == (0 if name == "read_bytes" else 1)
        assert (os.listdir, Path.read_bytes) == (list_, read)
        started.communicate(b"\n")
    tree = [process]
    assert not sandbox._runs(process) and sandbox._threads(process) == 0
    assert sandbox._spent(tree) == sandbox._memory(tree, True) == sandbox._memory(tree, False) == 0
    assert sandbox._inodes([*tree, *tree]) == 0 and sandbox.family(process) == tree
    sandbox.end_all(process)


FAILS: dict[str, BaseException] = {
    "a name": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "a vanished file": FileNotFoundError(2, "No such file or directory"),
    "no descriptors": OSError(24, "Too many open files"),
    "no memory": MemoryError(),
    "a mistake": AssertionError(),
    "an exit": SystemExit(),
}
SLEEPS = "import time\ntime.sleep(100)"


def watch_of(session: Session) -> list[psutil.Process]:
    """All processes that the watch looks at."""
    return sandbox.family(*session.line._tops)


def left(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that do not end within a minute, where each is killed already."""
    last = time.monotonic() + 60
    while (
        alive := [one for one in processes if not sandbox.gone(one)]
    ) and time.monotonic() < last:
        time.sleep(0.01)
    return alive


@pytest.mark.parametrize("what", FAILS)
def test_whatever_ends_the_watch_ends_the_sandbox(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise FAILS[what]

    with session() as one:
        processes = watch_of(one)
        for place in ("_runs", "_threads"):  # now and then the one, and always the other
            replace(monkeypatch, sandbox, place, fails, one)
        with pytest.raises(Stopped, match="could no longer see what it used") as stopped:
            run(one, SLEEPS)
        assert stopped.value.remark == f"could not be watched: {type(FAILS[what]).__name__}"
        assert len(processes) >= 4 and not left(processes)
        with pytest.raises(Stopped, match="could no longer see"):  # and it stays so
            run(one, "1")


def test_what_cannot_be_listed_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel's own rules, with the first process of the sandbox."""

    def fails(*_: Any) -> Any:
        raise OSError(24, "Too many open files")

    with session() as one:
        processes = watch_of(one)
        with monkeypatch.context() as patch:
            replace(patch, sandbox, "family", fails, one)
            with pytest.raises(Stopped, match="could no longer see"):
                run(one, SLEEPS)
        assert not left(processes)


def test_a_watch_that_is_gone_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing of its own could say so: as if the thread had never been there."""
    monkeypatch.setattr(Sandbox, "_watching", lambda self: None)
    one = Sandbox(SMALL)
    one._watch.join()
    try:
        with pytest.raises(Stopped) as stopped:
            one.receive(Deadline(60, one))
        assert stopped.value.remark == "could not be watched: the watch has ended"
    finally:
        one.close()


def test_a_watch_that_comes_to_no_look_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds count in which the grader waits, so no busy or sleeping machine is to blame."""
    monkeypatch.setattr(sandbox, "BLIND", 3 * sandbox.POLL)
    held = threading.Event()
    with session() as one:
        replace(monkeypatch, sandbox, "_threads", lambda process: held.wait() and 0, one)
        try:
            with pytest.raises(Stopped, match="could no longer see") as stopped:
                run(one, SLEEPS)
            assert "no look at its processes came to an end" in stopped.value.remark
        finally:
            held.set()


def test_each_look_is_seen(shared: Session) -> None:
    shared.line._unseen = sandbox.BLIND / 2
    for _ in range(6000):  # many times as long as a look takes
        time.sleep(0.01)
        if shared.line._unseen < sandbox.BLIND / 2:
            return
    pytest.fail("no look has come to its end")


# --- the end -------------------------------------------------------------------------------------

CLINGING = """
import os, signal, subprocess, sys, threading, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
threading.Thread(target=time.sleep, args=(600,)).start()
if os.fork() == 0:  # forked twice, a session of its own
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
if os.fork() == 0:  # asleep
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)
    os._exit(0)
if os.fork() == 0:
    os.setsid()
    os.execv("/bin/sleep", ["/bin/sleep", "600"])
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"],
                 start_new_session=True, env={})
time.sleep(0.5)
"""


def test_all_that_it_started_ends_with_it() -> None:
    with session() as one:
        run(one, CLINGING)
        processes = sandbox.family(*one.line._tops)
        assert len(processes) >= 5
    assert [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []


def test_it_ends_with_the_grader() -> None:
    code = """
import sys, time
from tfviz_course.line import Session
from tfviz_course.sandbox import Limits, family, nursery
session = Session(Limits())
print(nursery(()).process.pid, *[p.pid for p in family(*session.line._tops)], flush=True)
time.sleep(600)
"""
    grader = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert grader.stdout
        processes = [psutil.Process(int(pid)) for pid in grader.stdout.readline().split()]
        assert len(processes) >= 5
    finally:
        grader.kill()
        grader.communicate()
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive


def test_closing_twice_is_closing_once() -> None:
    with session() as one:
        one.line.close()


# --- where there is none -------------------------------------------------------------------------


def test_a_missing_bubblewrap_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    assert "apt-get install bubblewrap" in str(available())
    with pytest.raises(Unavailable, match="install bubblewrap"):
        Sandbox(Limits())


def test_another_system_is_said_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.sys, "platform", "darwin")
    assert "needs Linux" in str(available())


def test_forbidden_namespaces_are_said_with_their_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
    said = str(available())
    assert "apparmor_restrict_unprivileged_userns=0" in said and "setting up uid map" in said
    monkeypatch.setattr(sandbox.os, "geteuid", lambda: 0)
    assert "does not run" in str(available())


AS_SOMEBODY = """
import json, sys
from tfviz_course.line import Session
from tfviz_course.sandbox import Limits, Stopped, available
why, session, found = available(), Session(Limits(processes=12)), []
try:
    for n, source in enumerate(sys.argv[1:]):
        ran = session.run(n + 1, source, ("found",), 60)
        found.append([repr(ran.error), ran.values.get("found")])
except Stopped as stopped:
    found.append([str(stopped), None])
finally:
    session.line.close()
print(json.dumps([why, *found]))
"""


def test_it_works_for_somebody_who_is_not_root() -> None:
    alone = """
import ctypes, os
found = [os.path.exists("/etc/passwd"), len(open("/proc/net/dev").readlines()) - 2,
         ctypes.CDLL(None).unshare(0x10000000)]
"""
    forks = """
found = 0
while found < 100:
    try:
        if os.fork() == 0:
            __import__("time").sleep(30)
            os._exit(0)
    except OSError:
        break
    found += 1
"""
    why, outside, (error, children) = json.loads(ordinary.run(AS_SOMEBODY, alone, forks)[-1])
    assert (why, outside) == (None, ["None", [False, 1, -1]])
    # refused, or ended by who counts its processes, whichever comes first
    assert children < 40 if error == "None" else "more than 12 processes" in error


def test_nothing_of_the_machine_stays_open_for_somebody_who_is_not_root() -> None:
    why, (error, (opened, *rest)) = json.loads(ordinary.run(AS_SOMEBODY, OPEN)[-1])
    assert (why, error, rest) == (None, "None", ["/tmp/home", []])
    assert set(opened.values()) == {"/dev/null", "pipe"} and len(opened) == 5


def test_no_process_of_the_sandbox_knows_the_environment_or_the_options() -> None:
    """Who is not root owns the sandbox's first process too, so what it was started with."""
    source = """
import os
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    found.append([pid, *(open(f"/proc/{pid}/{name}").read() for name in ("environ", "cmdline"))])
"""
    why, (error, found) = json.loads(ordinary.run(AS_SOMEBODY, source, private="a token")[-1])
    assert (why, error) == (None, "None") and {"1"} < {pid for pid, *_ in found}
    assert not [pid for pid, environment, _ in found if "PRIVATE" in environment]
    assert not [line for *_, line in found if "bind" in line or str(ROOT / "tests") in line]


FILTERED = """
import os, re
found = {}
for pid in filter(str.isdigit, os.listdir("/proc")):
    found[int(pid)] = re.search(r"Seccomp:\\s*(\\d)", open(f"/proc/{pid}/status").read())[1]
"""


def test_every_process_of_the_sandbox_is_refused_the_same_calls(shared: Session) -> None:
    """Who is not root could write into the memory of the others: they must not be able to more."""
    why, (error, found) = json.loads(ordinary.run(AS_SOMEBODY, FILTERED)[-1])
    assert (why, error) == (None, "None")
    for processes in (found, value(shared, FILTERED)):
        assert len(processes) == 3 and {*processes.values()} == {"2"}
