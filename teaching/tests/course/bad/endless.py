"""Kinds that do not stop, take everything, or die.

Whatever they start ends by itself after five minutes, so that a sandbox that fails does no lasting
harm: loops look at the clock, forks and memory are counted.
"""

from __future__ import annotations

from course.bad.kind import TELL, UNTIL, HandIn, answer

GIGABYTE = 10**9
# clone as a call of the kernel: the parent's memory is copied, as by fork; `clone(flags)` is 0 in
# the child
CLONE = """
import ctypes, os, platform, signal
number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
def clone(flags):
    return ctypes.CDLL(None).syscall(number, flags | signal.SIGCHLD, 0, 0, 0, 0)
"""

# --- time ----------------------------------------------------------------------------------------


@answer("none")
def endless_loop(hand_in: HandIn) -> None:
    """The answer cell never ends."""
    hand_in.carry(f"{UNTIL}while time.monotonic() < end:\n    pass")


@answer("none")
def endless_loop_that_ignores_signals(hand_in: HandIn) -> None:
    """The answer cell never ends, blocks all signals and swallows every exception."""
    hand_in.carry(
        f"""{UNTIL}
import signal
for number in signal.valid_signals() - {{signal.SIGKILL, signal.SIGSTOP}}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while time.monotonic() < end:
    try:
        while time.monotonic() < end:
            pass
    except BaseException:
        pass
"""
    )


@answer(order="none")
def sleeping_function(hand_in: HandIn) -> None:
    """The cell is quick; the function sleeps when the tests call it."""
    hand_in.answer("ex-order", "import time\n\n\ndef order(f, X):\n    time.sleep(60)\n")


@answer(order="none")
def endless_callbacks(hand_in: HandIn) -> None:
    """Calls the function that the tests gave it again and again, without end."""
    hand_in.answer(
        "ex-order", f"{UNTIL}\ndef order(f, X):\n    while time.monotonic() < end:\n        f(X)\n"
    )


@answer(order="none")
def slow_regular_expression(hand_in: HandIn) -> None:
    """Spends its time inside one call in C that no signal interrupts."""
    hand_in.answer(
        "ex-order",
        "import re\n\n\ndef order(f, X):\n    return re.match(r'(a|a)*$', 'a' * 29 + 'b')\n",
    )


@answer("none")
def huge_power(hand_in: HandIn) -> None:
    """Computes a number of a hundred million digits at the top of the cell."""
    hand_in.carry("number = 7 ** (7 ** 10)\ntext = str(number % 10 ** 5000)")


@answer("none", remark="ran longer than it may")
def waits_without_being_asleep(hand_in: HandIn) -> None:
    """Waits a minute for a child of vfork, in the state in which others wait for a disk."""
    hand_in.carry(
        f"""{CLONE}
import time
VFORK = 0x4000
if clone(VFORK) == 0:
    time.sleep(60)
    os._exit(0)
os.wait()
"""
    )


@answer("none", remark="ran longer than it may")
def wakes_for_moments(hand_in: HandIn) -> None:
    """Sleeps for a minute with moments of work between, so that it is never idle for long."""
    hand_in.carry(
        """
import time
for _ in range(700):
    time.sleep(0.08)
    end = time.thread_time() + 0.006
    while time.thread_time() < end:
        pass
"""
    )


# --- names ---------------------------------------------------------------------------------------

# what the kernel tells of a process by such a name is no text; `call(name)` names the thread
NAMES = r"""
import ctypes, os, socket, threading, time
names = (b"\xff", b") R 1 1", b"a (b", b"x\ny", b"Threads:\t1", b"Uid:\t0\t0\t0", b"", b" ")
def call(name):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
"""


@answer("none", remark="ran longer than it may")
def blinds_the_watch(hand_in: HandIn) -> None:
    """Gives itself a name that is no text, so that nobody can read how it is, and sleeps."""
    hand_in.carry(f"{NAMES}call(b'\\xff')\ntime.sleep(60)")


@answer("all")
def names_that_are_no_text(hand_in: HandIn) -> None:
    """Names threads, processes, folders, files, sockets and variables in bytes that are no text, in
    brackets and in lines that look like the kernel's own; then answers well."""
    hand_in.carry(
        rf"""{NAMES}
def sleep(name):
    call(name)
    time.sleep(5)
kept = []
for number, name in enumerate(names):
    threading.Thread(target=sleep, args=(name,), daemon=True).start()
    os.makedirs(b"/tmp/" + name + b"!", exist_ok=True)
    kept.append(open(b"/tmp/" + name + b"!/" + name + b"!", "w"))
    kept.append(socket.socket(socket.AF_UNIX))
    kept[-1].bind(b"\0" + name + b"!")
    os.environb[b"N%d" % number] = name
if os.fork() == 0:
    call(b") \xff\n(")
    time.sleep(5)
    os._exit(0)
time.sleep(0.7)
"""
    )


# --- processes and threads -----------------------------------------------------------------------


@answer("none", remark="ran longer than it may")
def children_whose_time_is_lost(hand_in: HandIn) -> None:
    """Works for half a minute in short-lived children, whose time the kernel is told to forget."""
    hand_in.carry(
        """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so nobody need wait for them
for _ in range(600):
    if os.fork() == 0:
        while time.process_time() < 0.05:
            pass
        os._exit(0)
    try:
        os.wait()
    except ChildProcessError:  # when the last one has ended
        pass
"""
    )


@answer("all")
def siblings(hand_in: HandIn) -> None:
    """Starts a process that is not below its own but beside it, where nobody counts it."""
    hand_in.carry(
        f"""{CLONE}{TELL}
import time
PARENT = 0x8000
if (number := clone(PARENT)) == 0:
    time.sleep(60)
    os._exit(0)
if number > 0:
    tell("a sibling")
"""
    )


@answer("none")
def fork_bomb(hand_in: HandIn) -> None:
    """Every process starts another until nothing more can be started."""
    hand_in.carry(
        f"""{UNTIL}
import os
for generation in range(11):  # 2048 processes at most
    os.fork()
while time.monotonic() < end:
    time.sleep(1)
os._exit(0)
"""
    )


@answer("all")
def double_fork(hand_in: HandIn) -> None:
    """Leaves a process of its own session behind, which writes later; then answers well."""
    hand_in.carry(
        f"""{UNTIL}
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while time.monotonic() < end:
            time.sleep(1)
            try:
                open({str(hand_in.around.witness / "survivor")!r}, "w").close()
            except OSError:
                pass
    os._exit(0)
os.wait()
"""
    )


@answer("all")
def daemon_by_shell(hand_in: HandIn) -> None:
    """Starts background jobs with nohup, setsid and disown; then answers well."""
    hand_in.carry(
        "import subprocess\n"
        "for start in ('nohup sleep 60 &', 'setsid sleep 60 &', '(sleep 60 & disown) &'):\n"
        "    subprocess.run(['bash', '-c', start + ' exit 0'], stdout=-3, stderr=-3)\n"
    )


@answer("none")
def thread_bomb(hand_in: HandIn) -> None:
    """Starts thousands of busy threads, and waits for all of them."""
    hand_in.carry(
        f"""{UNTIL}
import threading
def spin():
    while time.monotonic() < end:
        pass
threads = [threading.Thread(target=spin) for _ in range(3000)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    )


@answer("all")
def threads_left_running(hand_in: HandIn) -> None:
    """Leaves one busy thread behind, in the way of whatever comes later; then answers well."""
    hand_in.carry(
        f"{UNTIL}\nimport threading\n\ndef spin():\n    while time.monotonic() < end:\n"
        "        time.sleep(0.001)\n\nthreading.Thread(target=spin).start()\n"
    )


# --- memory and disk -----------------------------------------------------------------------------


@answer("none")
def memory_of_one_process(hand_in: HandIn) -> None:
    """Fills memory until there is none, in one process."""
    hand_in.carry(
        f"import torch\nkept = []\nfor _ in range(60):  # 6 GB at most\n"
        f"    kept.append(torch.ones({GIGABYTE // 40}))\n"
        "raise SystemExit('not stopped')"
    )


@answer(sharpness="none")
def memory_in_the_function(hand_in: HandIn) -> None:
    """Fills memory when the tests call it, and survives its own MemoryError."""
    hand_in.answer(
        "ex-sharpness",
        """\
        def beta_for(share, slots):
            kept = []
            while len(kept) < 60:  # 6 GB at most
                try:
                    kept.append(bytearray(b"x" * 10**8))
                except MemoryError:
                    kept.append(None)
            return "survived"
        """,
    )


@answer("none", remark="ran out of memory")
def memory_of_many_processes(hand_in: HandIn) -> None:
    """Twelve processes each take less than the limit, together they take four times as much."""
    hand_in.carry(
        f"""{UNTIL}
import os
for _ in range(12):
    if os.fork() == 0:
        mine = bytearray(b"x" * (5 * 10**8))
        while time.monotonic() < end:
            time.sleep(1)
        os._exit(0)
while time.monotonic() < end:
    time.sleep(1)
"""
    )


@answer(sharpness="none")
def file_system_filled(hand_in: HandIn) -> None:
    """Fills every folder that it can write to, and shared memory, with zeros."""
    hand_in.carry(
        """
import os
block, wrote = bytes(10**7), 0
for folder in ("/tmp", "/dev/shm", "/run", "/var/tmp", os.getcwd(), os.path.expanduser("~")):
    for number in range(40):  # 40 files of 100 MB at most in each of 6 folders
        try:
            with open(f"{folder}/tfviz-full-{number}", "wb") as file:
                for _ in range(10):
                    wrote += file.write(block)
        except OSError:
            break
        finally:
            if os.path.exists(f"{folder}/tfviz-full-{number}") and os.getpid() > 10**3:
                os.remove(f"{folder}/tfviz-full-{number}")  # no sandbox here: do not fill a disk
raise RuntimeError(f"wrote {wrote}")
"""
    )


@answer("none")
def memory_file(hand_in: HandIn) -> None:
    """Keeps its gigabytes in anonymous files (memfd), where nobody counts them as a process's."""
    hand_in.carry(
        """
import os
files = [os.memfd_create(f"m{n}") for n in range(12)]
for file in files:  # 6 GB at most
    for _ in range(50):
        os.write(file, bytes(10**7))
raise RuntimeError("not stopped")
"""
    )


def lets_go(hand_in: HandIn, opened: str) -> None:
    """Three processes, one after the other, touch 500 MB of shared pages and let go of them."""
    hand_in.carry(
        f"""{UNTIL}{TELL}
import mmap, os
size, (told, tells) = 500 * 10**6, os.pipe()
def hold():
    kept = mmap.mmap({opened}, size)
    for page in range(0, size, mmap.PAGESIZE):
        kept[page] = 1
    kept.madvise(mmap.MADV_DONTNEED)
    os.write(tells, b"x")
    while time.monotonic() < end:
        time.sleep(1)
for number in range(3):
    if os.fork() == 0:
        attempt(hold)
        os.write(tells, b"-")
        os._exit(0)
    if os.read(told, 1) == b"-":
        break
else:
    tell("holds 1.5 GB")
"""
    )


@answer("all")
def memory_let_go(hand_in: HandIn) -> None:
    """Touches shared pages and lets go of them, so that they stay and nobody is counted."""
    lets_go(hand_in, "-1")


@answer("all")
def memory_of_a_device(hand_in: HandIn) -> None:
    """Does the same with shared pages of /dev/zero."""
    lets_go(hand_in, 'os.open("/dev/zero", os.O_RDWR)')


@answer("all")
def memory_of_the_kernel(hand_in: HandIn) -> None:
    """Has the kernel hold memory: semaphores, segments, queues; then answers well."""
    hand_in.carry(
        f"""{TELL}
import ctypes
libc = ctypes.CDLL(None)
made = [libc.semget(0, 32000, 0o1600) for _ in range(200)]  # 400 MB at most
made += [libc.shmget(0, 4096, 0o1600), libc.msgget(0, 0o1600)]
made += [libc.mq_open(b"/queue", 0o102, 0o600, None)]
if max(made) >= 0:
    tell(len([number for number in made if number >= 0]))
"""
    )


@answer("all")
def locks_of_records(hand_in: HandIn) -> None:
    """Locks every other byte of a file: memory of the kernel that belongs to no process."""
    hand_in.carry(
        f"""{TELL}
import fcntl, struct
F_OFD_SETLK, F_OFD_SETLKW = 37, 38
with open("/tmp/locked", "w") as file:
    for command in (fcntl.F_SETLK, fcntl.F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW):
        for place in range(1000):
            lock = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 2 * place, 1, 0)
            if attempt(lambda: fcntl.fcntl(file, command, lock)):
                tell([command, place])
                break
"""
    )


@answer("none", remark="made too many files")
def million_empty_files(hand_in: HandIn) -> None:
    """Makes a million empty files, which cost the kernel more than a gigabyte."""
    hand_in.carry(
        """
import os
for n in range(10**6):
    if n % 1000 == 0:
        os.mkdir(f"/tmp/{n // 1000}")
    os.close(os.open(f"/tmp/{n // 1000}/{n}", os.O_CREAT))
raise SystemExit("not stopped")
"""
    )


@answer("none")
def many_small_files(hand_in: HandIn) -> None:
    """Opens files until there are no descriptors left, and never closes them."""
    hand_in.carry(
        "import os\nopened = []\nfor n in range(200_000):\n    opened.append(os.dup(0))\n"
    )


# --- output --------------------------------------------------------------------------------------


@answer("all")
def output_of_50_mb(hand_in: HandIn) -> None:
    """Prints 50 MB of text; then answers well."""
    hand_in.carry("for _ in range(50):\n    print('x' * 10**6)")


@answer("all")
def output_in_the_function(hand_in: HandIn) -> None:
    """Prints 10 MB in every call of its function; then answers well."""
    hand_in.carry("", "for _ in range(10):\n    print('x' * 10**6)")


@answer("all")
def rich_output_of_50_mb(hand_in: HandIn) -> None:
    """Displays 50 MB of HTML, pictures and updates of displays; then answers well."""
    hand_in.carry(
        """
from IPython.display import HTML, Image, display
for n in range(5):
    display(HTML("<b>" + "x" * 5 * 10**6 + "</b>"))
    display({"image/png": "x" * 5 * 10**6, "text/plain": "?"}, raw=True, display_id=True)
for n in range(2000):
    display({"text/plain": str(n)}, raw=True, display_id="same", update=n > 0)
"""
    )


@answer("all")
def stderr_noise(hand_in: HandIn) -> None:
    """Writes warnings and logs to stderr, by Python, by the shell and on the bare descriptor."""
    hand_in.carry(
        """
import logging, os, sys, warnings
warnings.simplefilter("always")
for n in range(1000):
    warnings.warn(f"warning {n}")
    logging.warning("log %s", n)
    print("noise", file=sys.stderr)
    os.write(2, b"more noise\\n")
os.system("echo noise of a shell >&2; ls /not-there")
""",
        "import warnings\nwarnings.warn('in the call')\nprint('noise', file=sys.stderr)",
    )


# --- death ---------------------------------------------------------------------------------------


@answer("none")
def exits_at_once(hand_in: HandIn) -> None:
    """Leaves by os._exit(0), as if all had gone well."""
    hand_in.carry("import os\nos._exit(0)")


@answer(loops="none")
def exits_in_the_function(hand_in: HandIn) -> None:
    """Leaves by os._exit(0) when the tests call it."""
    hand_in.answer(
        "ex-attention-loops", "import os\n\n\ndef my_attention(*args):\n    os._exit(0)\n"
    )


@answer(order="none")
def exits_inside_a_callback(hand_in: HandIn) -> None:
    """Leaves by os._exit(0) between two calls of the function that the tests gave it."""
    hand_in.answer(
        "ex-order", "import os\n\n\ndef order(f, X):\n    f(X)\n    os._exit(0)\n    f(X)\n"
    )


@answer("none")
def kills_itself(hand_in: HandIn) -> None:
    """Sends SIGKILL to itself."""
    hand_in.carry("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")


@answer("none")
def kills_its_parents(hand_in: HandIn) -> None:
    """Sends SIGKILL to its parent and to the process group, then to itself."""
    hand_in.carry(
        """
import os, signal
if os.getpid() < 1000:  # only where a sandbox gives us small numbers: else we kill the tests
    for kill, target in ((os.kill, os.getppid()), (os.kill, 1), (os.killpg, 0)):
        try:
            kill(target, signal.SIGKILL)
        except OSError:
            pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    )


@answer("none")
def stops_itself(hand_in: HandIn) -> None:
    """Sends SIGSTOP to itself and to its parent and waits for nothing, silently."""
    hand_in.carry(
        "import os, signal\nif os.getpid() < 1000:\n    os.kill(os.getppid(), signal.SIGSTOP)\n"
        "os.kill(os.getpid(), signal.SIGSTOP)"
    )


@answer("none")
def leaves_by_sys_exit(hand_in: HandIn) -> None:
    """Raises SystemExit at the top of the cell, before the function is defined."""
    hand_in.carry("import sys\nsys.exit(0)")


@answer(loops="none")
def leaves_by_sys_exit_in_the_function(hand_in: HandIn) -> None:
    """Raises SystemExit when the tests call it."""
    hand_in.answer("ex-attention-loops", "def my_attention(*args):\n    raise SystemExit(0)\n")


@answer(loops="none", order="none")
def raises_keyboard_interrupt(hand_in: HandIn) -> None:
    """Raises KeyboardInterrupt and GeneratorExit, as if the grader had been interrupted."""
    hand_in.answer("ex-attention-loops", "def my_attention(*args):\n    raise KeyboardInterrupt\n")
    hand_in.answer("ex-order", "def order(f, X):\n    raise GeneratorExit\n")


@answer(sharpness="none")
def recursion(hand_in: HandIn) -> None:
    """Calls itself without end, with the limit on recursion taken away."""
    hand_in.answer(
        "ex-sharpness",
        "import sys\nsys.setrecursionlimit(2**31 - 1)\n\n\n"
        "def beta_for(share, slots):\n    return max([beta_for(share, slots)] + [0])\n",
    )


@answer(loops="none")
def segmentation_fault(hand_in: HandIn) -> None:
    """Reads address 0 by ctypes when the tests call it."""
    hand_in.answer(
        "ex-attention-loops",
        "import ctypes\n\n\ndef my_attention(*args):\n    ctypes.string_at(0)\n",
    )


@answer("all")
def exit_hooks(hand_in: HandIn) -> None:
    """Registers exit hooks, finalizers and a tracer that write, print and hang; answers well."""
    hand_in.carry(
        f"""{UNTIL}
import atexit, signal, threading, weakref
class Last:
    def __del__(self):
        late()
def late(*args):
    try:
        open({str(hand_in.around.witness / "late")!r}, "w").close()
    except OSError:
        pass
    print("100 %", flush=True)
    while time.monotonic() < end:
        time.sleep(0.1)
last = Last()
atexit.register(late)
threading._register_atexit(late)
signal.signal(signal.SIGTERM, late)
weakref.finalize(last, late)
"""
    )
