"""The guide for instructors, followed word for word.

Every block of commands (```bash) of the pages is run in order, in one session, as somebody who
reads them would; every output shown (```text) is compared with what really comes out. Three things
stand in for what a test cannot do, and only these:

* `STAND_INS`: whole lines that are replaced, such as `git clone` of the public address by a link
  to this checkout. A test makes sure that every one of them is on a page.
* Lines that end in `# not tested here: …`, which readers see too. `NOT_TESTED` lists them.
* A student's work. Where a page names a notebook and shows an answer, which begins with the line
  `# exercise: …` or `<!-- exercise: … -->`, the test pastes it into the cell with this first line.

In an output that is shown, a line … means that lines are left out; times may differ, nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from course import in_the_book

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ("book/instructors.md", "book/instructors_grading.md")
ADDRESS = "https://github.com/tfviz_course/tfviz"  # in the sources; the book shows its own
STAND_INS = {
    f"git clone {ADDRESS} tfviz": "ln -s {checkout} tfviz",
    "make env": "test -f Makefile",  # the environment is there: these tests run in it
    "source ~/tfviz/.venv-dev/bin/activate": 'export PATH="{bin}:$PATH"',
    "jupyter lab": "{python} {formgrader}",
    f"git clone {ADDRESS} my-course": "git clone --quiet {upstream} my-course",
    "git remote add origin git@github.com:you/my-course.git": "git remote add origin {private}",
}
NOT_TESTED = {
    "sudo apt-get install git make bubblewrap",
    "make test-all TESTS=tests/book/test_exercises.py",
}
MARK = re.compile(r"\s+# not tested here: \S.*$")
ANSWER = re.compile(r"(#|<!--) exercise: ")
HOME = "/home/you"  # what the outputs on the pages call the reader's home
LONGEST = 600  # seconds for one block, so that the test ends at all

# In place of `jupyter lab`: a server is started; it has the notebook that the reader is to open,
# or, when hw2 is there, formgrader does what the page tells its reader to do by hand, 3 points for
# each answer that waits; and the server stops.
FORMGRADER = """
import json, os, socket, subprocess, sys, time
from urllib.request import Request, urlopen

command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
command += ["--IdentityProvider.token=t", "--ServerApp.port_retries=99"]
server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

def ask(path, data=None, under="formgrader"):
    head = {"Authorization": "token t", "Content-Type": "application/json"}
    method = "GET" if data is None else "PUT"
    body = None if data is None else json.dumps(data).encode()
    request = Request(f"{address}{under}/{path}", body, head, method=method)
    return urlopen(request, timeout=60).read().decode()

try:
    folder = subprocess.check_output([sys.executable, "-m", "jupyter", "--runtime-dir"], text=True)
    file = f"{folder.strip()}/jpserver-{server.pid}.json"
    end = time.monotonic() + 120

    def wait():
        assert time.monotonic() < end and server.poll() is None, "JupyterLab does not start"
        time.sleep(0.2)

    while not os.path.exists(file) or not os.path.getsize(file):
        wait()
    told = json.load(open(file))
    # it tells before it listens
    while socket.socket().connect_ex((told["hostname"], told["port"])):
        wait()
    address = told["url"]
    if not os.path.exists("source/hw2"):
        found = json.loads(ask("submitted/ada/hw1/attention.ipynb", under="api/contents"))
        assert found["type"] == "notebook", found
        sys.exit()
    assert "Manual Grading" in ask("gradebook/hw2/attention")
    waiting = 0
    for sheet in json.loads(ask("api/submitted_notebooks/hw2/attention")):
        assert "divides 0 by 0" in ask(f"submissions/{sheet['id']}/")
        for grade in json.loads(ask(f"api/grades?submission_id={sheet['id']}")):
            if grade["needs_manual_grade"]:
                waiting += 1
                ask(f"api/grade/{grade['id']}", {"manual_score": 3, "extra_credit": 0})
    assert waiting, "nothing waits in formgrader"
finally:
    server.terminate()
    server.wait(60)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the text between it and the one before."""

    page: str
    line: int
    language: str
    text: str
    before: str


def blocks(page: str, text: str) -> list[Block]:
    found, behind = [], 0
    for fence in re.finditer(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1$", text, re.M | re.S):
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(page, line, fence[2], fence[3], text[behind : fence.start()]))
        behind = fence.end()
    return found


def page(name: str) -> str:
    return (ROOT / name).read_text("utf8")


def teach() -> str:
    """The paragraph of the README about teaching."""
    return page("README.md").split("**Teach.**")[1].split("![")[0]


def commands(block: Block) -> list[str]:
    return [line for line in block.text.splitlines() if line.strip()]


ALL = [block for name in GUIDE for block in blocks(name, page(name))]
BASH = [block for block in ALL if block.language == "bash"]


# --- running -------------------------------------------------------------------------------------


class Session:
    """A shell that keeps its folder and its variables from one block to the next."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir(parents=True)
        (folder / "formgrader.py").write_text(FORMGRADER)
        self.names = {
            "checkout": ROOT,
            "bin": Path(sys.executable).parent,
            "python": sys.executable,
            "formgrader": folder / "formgrader.py",
            "upstream": folder / "upstream",
            "private": folder / "private.git",
        }
        self.state = folder / "state"
        self.state.write_text(f"cd {shlex.quote(str(self.home))}\n")

    def run(self, script: str) -> str:
        """What the commands print; fails the test where one of them fails."""
        keep = f'{{ export -p; printf "cd %q\\n" "$PWD"; }} > {shlex.quote(str(self.state))}'
        done = subprocess.run(
            ["bash", "-c", f"source {shlex.quote(str(self.state))}\nset -e\n{script}\n{keep}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            env={
                **os.environ,
                "HOME": str(self.home),
                "COLUMNS": "80",
                "OMP_NUM_THREADS": "1",
                "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
                "GIT_CONFIG_GLOBAL": os.devnull,
            },
        )
        assert done.returncode == 0, f"{script}\n→ {done.returncode}\n{done.stdout[-4000:]}"
        return done.stdout.replace(str(self.home), HOME)

    def block(self, block: Block) -> str:
        return self.run("\n".join(self.line(line) for line in commands(block)))

    def line(self, line: str) -> str:
        if MARK.search(line):
            return ":"
        quoted = {name: shlex.quote(str(value)) for name, value in self.names.items()}
        stand_in = STAND_INS.get(line.strip())
        return stand_in.format(**quoted) if stand_in else line

    def solve(self, block: Block) -> None:
        """Paste an answer into the notebook that the text before the block names."""
        named = re.findall(r"`(submitted/\S+\.ipynb)`", block.before)
        where = self.run("pwd").strip().replace(HOME, str(self.home))
        file = Path(where) / named[-1]
        notebook = nbformat.read(file, as_version=4)
        first = block.text.splitlines()[0]
        (cell,) = [c for c in notebook.cells if c.source.splitlines()[:1] == [first]]
        cell.source = block.text.rstrip()
        nbformat.write(notebook, file)


def same(line: str) -> str:
    """A line of output without what may differ: spacing and times."""
    line = re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d ", "… ", line)
    return re.sub(r"\bin \d+ s\b", "in … s", " ".join(line.split()))


def compare(block: Block, output: str) -> None:
    """Every line that the page shows comes out, in this order, with nothing but … between."""
    wanted = [same(line) for line in block.text.splitlines() if line.strip()]
    real = [same(line) for line in output.splitlines() if line.strip()]
    place, free = 0, False
    for line in wanted:
        if line == "…":
            free = True
            continue
        said = f"{block.page}, line {block.line}, shows {line!r}; the output is\n{output}"
        assert line in real[place:], said
        at = real.index(line, place)
        assert free or at == place, f"{said}\nwhere {real[place:at]} come before it"
        place, free = at + 1, False
    assert free or place == len(real), f"{block.page}, line {block.line} lacks {real[place:]}"


def prepare(session: Session) -> None:
    """The two repositories on other machines: the public one, and an empty private one."""
    upstream, private = session.names["upstream"], session.names["private"]
    session.run(
        f"""
        git init --quiet --initial-branch=main {upstream}
        git -C {upstream} -c user.name=x -c user.email=x@localhost commit --quiet --allow-empty -m x
        git init --quiet --bare {private}
        """
    )


def follow(session: Session, found: list[Block]) -> None:
    output: str | None = None
    for block in found:
        if block.language == "bash":
            output = session.block(block)
        elif block.language == "text":
            assert output is not None, f"{block.page}, line {block.line}: no command before it"
            compare(block, output)
            output = None
        elif ANSWER.match(block.text):
            session.solve(block)


def test_the_guide(tmp_path: Path) -> None:
    session = Session(tmp_path)
    prepare(session)
    follow(session, ALL)
    course = session.home / "nlp101"
    assert (course / "reports" / "hw1" / "students.csv").is_file()
    assert (course / "reports" / "hw1" / "anonymous" / "totals.png").is_file()
    pushed = session.run(f"git -C {session.names['private']} log --oneline --all")
    assert len(pushed.splitlines()) == 1


def test_the_readme(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.run(f"ln -s {shlex.quote(str(ROOT))} tfviz; cd tfviz")
    found = [b for b in blocks("README.md", teach()) if b.language == "bash"]
    assert sum("tfviz-course" in line for block in found for line in commands(block)) >= 4
    follow(session, found)


# --- what the tests of the guide rest on ---------------------------------------------------------


def test_nothing_is_left_out_silently() -> None:
    lines = [line for block in BASH for line in commands(block)]
    skipped = {MARK.sub("", line) for line in lines if MARK.search(line)}
    assert skipped == NOT_TESTED
    assert set(STAND_INS) <= {line.strip() for line in lines}
    assert len(BASH) > 20
    assert {b.language for b in ALL} <= {
        "bash", "text", "python", "markdown",
        "{grading-figure}", "{grading-limits}", "{bad-submissions}", "{image}",
    }  # fmt: skip


def test_all_answers_on_the_page_are_pasted() -> None:
    answers = [block for block in ALL if ANSWER.match(block.text)]
    assert len(answers) >= 3
    for block in answers:
        assert re.search(r"`submitted/\S+\.ipynb`", block.before), block.text


def test_the_makefile_has_what_the_stand_ins_replace() -> None:
    makefile = page("Makefile")
    assert re.search(r"^env:", makefile, re.M) and "START := @$(PYTHON) start.py" in makefile
    assert re.search(r"^assignment:", makefile, re.M)


@pytest.mark.parametrize(
    ("shown", "output", "right"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a  b\n", "a b\n", True),
        ("graded in 7 s; 2 now\n", "graded in 31 s; 2 now\n", True),
        ("graded in 7 s; 2 now\n", "graded in 7 s; 3 now\n", False),
        ("2026-12-02 09:30  ada  3\n", "2027-01-02 10:07  ada  3\n", True),
        ("2026-12-02 09:30  ada  3\n", "2027-01-02 10:07  ada  6\n", False),
        ("a\n…\nc\n", "a\nb\nc\n", True),
        ("a\n…\n", "a\nb\nc\n", True),
        ("…\nc\n", "a\nb\nc\n", True),
        ("a\nc\n", "a\nb\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("c\n…\na\n", "a\nb\nc\n", False),
    ],
)
def test_outputs_are_really_compared(shown: str, output: str, right: bool) -> None:
    block = Block("page", 1, "text", shown, "")
    if right:
        compare(block, output)
    else:
        with pytest.raises(AssertionError, match="page, line 1"):
            compare(block, output)


def test_a_command_that_fails_fails_the_test(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nothing-of-it"):
        Session(tmp_path).block(Block("page", 1, "bash", "nothing-of-it\ntrue\n", ""))


# --- what else the pages say ---------------------------------------------------------------------


def examples() -> list[str]:
    return [b.text for b in ALL if b.language == "markdown" and "{exercise-start}" in b.text]


def test_the_exercises_to_copy_are_right(tmp_path: Path) -> None:
    """The examples, put into a lesson, pass the proof that every exercise must pass."""
    sample = (ROOT / "tests" / "book" / "sample_lesson.md").read_text("utf8")
    front = "---" + sample.split("---")[1] + "---\n"
    lesson = tmp_path / "lesson.md"
    start = "```{code-cell} ipython3\nimport math\n\nimport torch\n```\n"
    lesson.write_text(f"{front}\n# A lesson\n\n{start}\n" + "\n".join(examples()), "utf8")
    runner = ROOT / "tests" / "book" / "lesson_runner.py"
    done = subprocess.run(
        [sys.executable, str(runner), str(lesson)], capture_output=True, text=True, timeout=LONGEST
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = json.loads(done.stdout.splitlines()[-1]).values()
    outcomes = {(one["variant"].split(" ")[0], one["outcome"]) for one in found}
    assert outcomes == {("solution", "passes"), ("stub", "empty"), ("wrong:", "check")}
    assert "model-answer" in examples()[1]


# --- what the pages take from the code -----------------------------------------------------------


@pytest.fixture
def directives(monkeypatch: pytest.MonkeyPatch) -> Any:
    import instructor_directives

    return instructor_directives


def test_the_book_names_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """`_config.yml`, or the repository that publishes, decides where readers clone from."""
    import tfviz_book

    assert tfviz_book.ADDRESS == ADDRESS
    options = {"repository_url": "https://example.org/you/course/", "repository_branch": "main"}
    config = SimpleNamespace(html_theme_options=options, html_baseurl="x", tfviz_package="x")
    app: Any = SimpleNamespace(config=config)

    def shown(text: str) -> str:
        tfviz_book.addresses(app, app.config)
        source = [text]
        tfviz_book.own_address(app, "book/instructors", source)
        return source[0]

    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    found = shown(page(GUIDE[0]))
    assert ADDRESS not in found
    assert "git clone https://example.org/you/course tfviz\n" in found
    assert "git clone https://example.org/you/course my-course\n" in found
    assert shown(f"{ADDRESS}-other {ADDRESS}/x.") == f"{ADDRESS}-other {ADDRESS}/x."
    monkeypatch.setenv("GITHUB_REPOSITORY", "you/fork")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    assert "git clone https://github.com/you/fork tfviz\n" in shown(page(GUIDE[0]))


def numbers_and_words() -> dict[str, bool]:
    """What the pages say that is the code's own, and whether it is true."""
    from tfviz_course import (
        autograde,
        collect,
        history,
        line,
        plugin,
        rebuild,
        sandbox,
        store,
        students,
    )

    answer, pictures = f"{rebuild.ANSWER:,}", rebuild.ATTACHED * 3 / 4  # of base64, in bytes
    signs = {sign for sign in map(chr, range(32, 127)) if students.is_id(f"a{sign}b")}
    return {
        f"up to {answer} characters each; a longer one counts as empty": True,
        f"PNG and JPEG, up to {pictures / 1e6:g} MB for an answer": len(rebuild.PICTURES) == 2,
        f"of pictures {line.PICTURES * 3 / 4e3:g} kB": True,
        f"Code of more than {plugin.COLOURED:,} characters is shown without colours": True,
        f"says *{plugin.PASSED[2:]}*, or *{plugin.FAILED[2:]}*": True,
        "except nbgrader's `timestamp.txt`": len(rebuild.BESIDE) == 2,
        f"digits, spaces and the signs `. @ - _`, at most {students.LONGEST} in all, no dot at its "
        "start, and no space at its start or end": {s for s in signs if not s.isalnum()}
        == {*" .@-_"},
        f"meets the last resort in {autograde.TRIES} runs keeps its verdict": True,
        "such as locks of records in a file, are refused": {6, 7, 37, 38} <= {*sandbox._LOCKING},
        "The clock is the last resort, with a limit many times as long": sandbox.PATIENCE >= 10,
        "refused on processors of the kinds x86-64 and ARM64": {*sandbox._MACHINES}
        == {"x86_64", "aarch64"},
        f"The verdicts are kept in `{store.JUDGED}`": True,
        f"The log is in `{history.FOLDER}`": True,
        "**A file's name proves nothing.**": True,
        f"an upload with more than {collect.MOST_FILES} notebooks, or with more than "
        f"{collect.MOST_BYTES / 1e6:g} MB of them": True,
        "hand in by mail in the name of somebody else: a file's name proves nothing": True,
        "**Never run a notebook that a real student handed in.**": True,
        "Do not open a student's notebook and run it.": True,
        "not put together by guessing; what was read, and what not, is in a remark": True,
    }


def test_the_pages_say_what_the_code_does() -> None:
    said = " ".join(" ".join(page(name) for name in GUIDE).split())
    known = numbers_and_words()
    assert not [words for words, true in known.items() if words not in said or not true]


def test_the_book_shows_what_the_grading_says_of_itself() -> None:
    written = in_the_book.FILE.read_text("utf8")
    assert written == in_the_book.text(), f"run what {in_the_book.__file__} says at its head"


def test_every_bad_submission_is_on_the_page(directives: Any) -> None:
    from course.bad import KINDS

    shown = [row for rows in directives.stored()["bad submissions"].values() for row in rows]
    assert sorted(sentence for sentence, _ in shown) == sorted(kind.sentence for kind in KINDS)
    assert len(shown) > 40 and all(result for _, result in shown)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ("all all waits", "all points"),
        ("all none waits", "one answer lost, the others kept"),
        ("all none none", "2 answers lost, the others kept"),
        ("all checks", "only the points of the visible tests for one answer, the others kept"),
        ("none none", "no points"),
        ("none none waits", "no points for code, the answer in words waits for you"),
    ],
)
def test_what_a_submission_gets_in_words(results: str, words: str) -> None:
    expectation = {str(n): result for n, result in enumerate(results.split())}
    assert in_the_book.gets(expectation, list(expectation)) == words


def test_limits_in_words() -> None:
    from tfviz_course.sandbox import Limits

    known = Limits(seconds=90.0, memory=3 << 29, disk=64 << 20, output=200_000, processes=32)
    said = {name: in_the_book.amount(name, getattr(known, name)) for name in in_the_book.LIMITS}
    assert (said["seconds"], said["memory"], said["disk"]) == ("90 s", "1.5 GiB", "64 MiB")
    assert (said["output"], said["processes"]) == ("200,000 characters", "32")


def test_the_figure_says_what_it_shows(directives: Any) -> None:
    svg = directives.grading_figure().svg
    for word in ("source", "release", "rebuilt", "sandbox", "judge", "gradebook", "feedback"):
        assert f">{word}<" in svg and word in directives.ALT
