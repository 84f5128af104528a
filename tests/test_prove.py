"""What has passed is kept for as long as nothing is different on which it rests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import exemplars
import prove
import pytest

from tfviz_lessons.kept import Kept

ROOT = Path(__file__).resolve().parents[1]
ROOM, LAWS = "tests/compressed/test_linformer", "tests/test_laws"
LESSON, PAGE = "lesson:chapters/compressed/low_rank", "page:chapters/compressed/low_rank"
OTHER = "lesson:chapters/position/rotary"
LAB, CLOCKS = "explorer:sparse_lab", "explorer:rotary_clocks"
SITE = "tests/book/test_names"
CHAPTERS = ("chapters/compressed/low_rank", "chapters/position/rotary", "chapters/sparse/local")
LAW, OTHER_LAW = "law:linformer", "law:rfa"
PROOFS = (ROOM, LAWS, LAW)
TAUGHT = "teaching/tests/course/test_rebuild"
EVERY = (ROOM, LAWS, LESSON, PAGE, OTHER, LAB, CLOCKS, SITE, TAUGHT, LAW, OTHER_LAW)


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files as a repository of their own, with a few of the chapters."""
    folder = tmp_path_factory.mktemp("copy")
    for name in prove.Tree().files:
        if name.startswith("chapters/") and name.removesuffix(".md") not in CHAPTERS:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    (folder / "_toc.yml").write_text(exemplars.contents({*CHAPTERS, "book/notation"}), "utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


@pytest.fixture(scope="module")
def before(copy: Path) -> dict[str, str]:
    groups = prove.Groups(prove.Tree(copy))
    found = {group: groups.digest(group) for group in EVERY}
    groups.shelf.save()  # what was read serves all that follow, as it does from run to run
    return found


def at(pattern: str) -> str:
    """The only file of this name, wherever it stands."""
    (found,) = ROOT.glob(pattern)
    return found.relative_to(ROOT).as_posix()


LINFORMER, ROTARY = "tfviz/compressed/linformer.py", "chapters/position/rotary.md"
ANOTHER = "tfviz/sparse/bigbird.py"
DRAWN, SHEET, BREAK = "tfviz/explorers", "book/assets/css/article.css", "\n\n\n"
CHANGES = {
    # what: (file, old text, new text, groups that must notice, groups that must not)
    "a function": (LINFORMER, "    return ", "    return +", (*PROOFS, LESSON), (OTHER, OTHER_LAW)),
    "a refusal that is gone": (LINFORMER, "raise ValueError", "print", PROOFS, (OTHER, OTHER_LAW)),
    "a doctest": (LINFORMER, ">>> ", ">>> 1 / 0 or ", (ROOM, LAWS), (OTHER, CLOCKS)),
    "data": ("tfviz_lab/results/linformer.json", "{", "{ ", (LESSON, PAGE), (OTHER, LAB)),
    "a script": (at(f"{DRAWN}/*/rotary_clocks.js"), "\n", "\n\n", (CLOCKS, OTHER), (ROOM, LAB)),
    "the kit": (f"{DRAWN}/kit/app.js", "\n", "\n\n", (CLOCKS, LAB), (ROOM,)),
    "a style sheet": (SHEET, "\n", "\n\n", (PAGE, SITE), (ROOM, LAWS, LESSON, TAUGHT)),
    "a template": (at("book/_templates/layout.html"), "\n", "\n\n", (PAGE, SITE), (ROOM, LESSON)),
    "an adapter": ("book/_ext/book_pages.py", "\n", "\n\n", (PAGE, SITE), (ROOM,)),
    "a pin": ("requirements.txt", "\n", "\n\n", EVERY, ()),
    "a guide": ("docs/walk.md", "\n", "\n\n", (), (ROOM, LAWS, LESSON, PAGE, SITE, TAUGHT)),
    "a test": (f"{ROOM}.py", "assert", "assert 1 and", PROOFS, (LESSON, OTHER_LAW)),
    "a fixture": ("conftest.py", "\n", "\n\n", EVERY, ()),
    "a sentence": (ROTARY, "\n\n", "\n\nMore.\n\n", (OTHER, TAUGHT), (ROOM, LAWS, LESSON, PAGE)),
    "a comment": ("tfviz/cores.py", BREAK, f"{BREAK}# why\n", (LAWS, SITE), (ROOM, LESSON, OTHER)),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_every_kind_of_change_is_noticed_where_it_matters(
    copy: Path, before: dict[str, str], what: str
) -> None:
    name, old, new, notice, do_not = CHANGES[what]
    text = (copy / name).read_text("utf-8")
    assert old in text
    try:
        (copy / name).write_text(text.replace(old, new, 1), "utf-8")
        groups = prove.Groups(prove.Tree(copy))
        now = {group: groups.digest(group) for group in (*notice, *do_not)}
    finally:
        (copy / name).write_text(text, "utf-8")
    assert {group for group in now if now[group] != before[group]} == set(notice)


def test_a_change_touches_what_rests_on_it(copy: Path) -> None:
    assert prove.Groups(prove.Tree(copy)).touched() == set()
    room, sentence = copy / LINFORMER, copy / ROTARY
    texts = {file: file.read_text("utf-8") for file in (room, sentence)}
    try:
        room.write_text(texts[room].replace("    return ", "    return +", 1), "utf-8")
        sentence.write_text(texts[sentence] + "\nMore.\n", "utf-8")
        git(copy, "switch", "--quiet", "--create", "branch")
        git(copy, "commit", "--quiet", "--all", "--message", "a sentence")  # a change all the same
        (copy / "tests/book/test_new_one.py").write_text("def test_it() -> None: ...\n")
        touched = prove.Groups(prove.Tree(copy)).touched()
    finally:
        git(copy, "switch", "--quiet", "main")
        (copy / "tests/book/test_new_one.py").unlink()
    assert {
        LESSON,
        PAGE,
        OTHER,
        "page:chapters/position/rotary",
        "tests/book/test_new_one",
        LAW,
    } < touched
    assert not touched & {ROOM, OTHER_LAW, CLOCKS}
    assert not touched & {"lesson:chapters/sparse/local", "page:book/notation"}


def test_what_a_file_of_tests_says_it_rests_on_can_be_read() -> None:
    """Also at the end of a proof, when what each group has read is compared with it."""
    one = 'RESTS_ON = ("a/**", *("b.py", *["c"]))'
    assert prove.named_in(one) == ("a/**", "b.py", "c")
    assert prove.named_in("RESTING = 1") is None
    tree = prove.Tree()
    files = tree.matching(["tests/**test_*.py", "teaching/tests/**test_*.py"])
    said = {name: prove.named_in((ROOT / name).read_text("utf-8")) for name in files}
    known = {name: patterns for name, patterns in said.items() if patterns}
    assert len(known) > 20
    lost = [(n, x) for n, patterns in known.items() for x in patterns if not tree.matching([x])]
    assert not lost, "nothing has these names"


def test_a_change_is_counted_from_a_commit_that_is_named(copy: Path) -> None:
    """What it has touched on the default branch, too; one that is not here leaves the exemplars."""
    begun = prove.Tree(copy).base
    sentence = copy / ROTARY
    text = sentence.read_text("utf-8")
    try:
        sentence.write_text(f"{text}\nMore.\n", "utf-8")
        git(copy, "commit", "--quiet", "--all", "--message", "a sentence")
        assert begun and prove.Tree(copy).changed == set()
        assert prove.Tree(copy, begun).changed == {ROTARY}
        assert OTHER in prove.Groups(prove.Tree(copy, begun)).touched()
        unknown = prove.Tree(copy, "0" * 40)
        assert unknown.base is None and prove.Groups(unknown).touched() == set()
    finally:
        git(copy, "reset", "--quiet", "--hard", str(begun))


def test_a_push_is_counted_from_a_state_that_was_proven_whole() -> None:
    run, (commit, *_) = (ROOT / ".ci/run").read_text(), (ROOT / ".ci/proven").read_text().split()
    assert re.fullmatch("[0-9a-f]{40}", commit)
    assert "SINCE=\"$(cut -d' ' -f1 .ci/proven)\"" in run
    assert "$(if $(SINCE),--since $(SINCE))" in (ROOT / "Makefile").read_text()


def test_without_git_nothing_is_touched_and_all_is_found(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_one.py").write_text("def test_it(): ...\n")
    (tmp_path / "_build").mkdir()
    (tmp_path / "_build/made.py").touch()
    tree = prove.Tree(tmp_path)
    if tree.git("rev-parse", "HEAD") is None:  # temporary folders may lie inside of a repository
        assert tree.files == ["tests/test_one.py"] and tree.changed == set()


def test_a_plan_runs_the_library_the_exemplars_and_what_is_touched() -> None:
    plan = prove.Plan(
        chosen={*exemplars.GROUPS, "explorer:hash_wheel"}, held=["tests/test_kept", LAW]
    )
    runs = {
        "tests/sparse/test_longformer.py::test_it": True,
        "tests/test_kept.py::test_it": False,
        "tests/test_laws.py::test_every_case_obeys[linformer: Linformer()-any_length]": False,
        "tests/test_laws.py::test_a_reason_is_true[linformer_sharing-any_length]": True,
        "tests/test_laws.py::test_a_wrong_core_is_found_out[linformer]": True,
        "tests/browser/test_every_explorer.py::test_it[sparse_lab]": True,
        "tests/browser/test_every_explorer.py::test_it[sparse_lab:asked-3]": True,
        "tests/browser/test_every_explorer.py::test_it[hash_wheel]": True,
        "tests/browser/test_every_explorer.py::test_it[rank_slider]": False,
        "tests/browser/test_every_explorer.py::test_its_own": True,
        "tests/book/test_site.py::test_it[chapters/basics/attention-phone]": True,
        "tests/book/test_site.py::test_it[chapters/heads/behaviour-phone]": False,
        "tests/book/test_exercises.py::test_it[chapters/heads/behaviour-ex-1]": False,
        "tests/book/test_exercises.py::test_it[chapters/basics/attention-ex-1]": True,
        "tests/book/test_notebooks.py::test_it[chapters/heads/behaviour-notebooks]": False,
        "tests/book/test_notebooks.py::test_it[chapters/basics/attention-notebooks]": True,
        "tests/book/test_notebooks.py::test_it": True,
        "teaching/tests/course/test_autograde.py::test_it": False,
    }
    assert {nodeid: plan.runs(nodeid) for nodeid in runs} == runs
    assert {x for x in runs if prove.Plan(only="teaching").runs(x)} == {
        "teaching/tests/course/test_autograde.py::test_it"
    }


# what of `conftest.py` a plan does not need: so that each run begins soon
TORCH = "def manual_seed(number): ...\n"
GOOD = "def test_a(): ...\ndef test_b(): ...\n"
BROKEN = "import pytest\n@pytest.fixture\ndef f():\n    yield\n    1 / 0\n"
FILES = {
    "good": GOOD,
    "other": GOOD,
    "held": f"{GOOD}def test_c(): assert 0\n",
    "fails": f"{GOOD}def test_c(): assert 0\n",
    "skips": f"import pytest\n{GOOD}def test_c(): pytest.skip()\n",
    "ends_badly": f"{BROKEN}{GOOD}def test_c(f): ...\n",
}
STOPPED = {"good": GOOD, "stopped": "def test_a(): ...\ndef test_b(): raise KeyboardInterrupt\n"}


@pytest.fixture
def read() -> dict[str, list[str]]:
    """Which files tests have read in the runs so far, by group."""
    return {}


@pytest.fixture
def run(tmp_path: Path, read: dict[str, list[str]]) -> Callable[..., tuple[int, list[str]]]:
    """run(files, *words): what pytest ends with, and which groups it says are proven."""

    def tried(files: dict[str, str], *words: str, **plan: object) -> tuple[int, list[str]]:
        folder, report = tmp_path / "tests", tmp_path / "proven.json"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, text in files.items():
            (folder / f"test_{name}.py").write_text(text)
        (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text("utf-8"))
        (tmp_path / "torch.py").write_text(TORCH)
        report.unlink(missing_ok=True)
        told = json.dumps([prove.Plan(**plan).data(), str(report)])  # type: ignore[arg-type]
        places = [str(tmp_path), *(str(ROOT / x) for x in ("", "scripts", "tests"))]
        environment = os.environ | {
            "TFVIZ_PLAN": told,
            "PYTHONPATH": os.pathsep.join(places),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path)]
        command += ["-p", "no:cacheprovider", "-p", "xdist"]
        done = subprocess.run(
            [*command, *(words or ("tests",))],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        told = json.loads(report.read_text()) if report.exists() else {"proven": [], "read": {}}
        read.update(told["read"])
        print(done.stdout)
        return done.returncode, told["proven"]

    return tried


def test_only_what_has_passed_whole_is_proven(run: Callable[..., tuple[int, list[str]]]) -> None:
    for words in (("tests",), ("-n", "2", "tests")):
        found = run(FILES, *words, held=["tests/test_held"])
        assert found == (1, ["tests/test_good", "tests/test_other"])
    good = {"good": GOOD}
    assert run(good) == (0, ["tests/test_good"])
    assert run(good, held=["tests/test_good"]) == (5, [])
    assert run(good | {"unknown": "import nothing\n"})[1] == []
    assert run(good | {"late": "import os\ndef test_a(): os._exit(3)\n"})[1] == []
    for words in (
        ("tests/test_good.py",),
        ("tests", "-k", "test_a"),
        ("tests/test_good.py::test_a",),
    ):
        assert run(good, *words) == (0, [])


def test_a_failure_is_said_before_the_end(
    run: Callable[..., tuple[int, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """A proof that is stopped on its way has said what it had found."""
    bad = {"bad": "def test_a(): assert 1 == 2, 'one is not two'\n"}
    for words in (("tests",), ("-n", "2", "tests")):
        run(bad, *words)
        said = capsys.readouterr().out
        early = "FAILED tests/test_bad.py::test_a\n    AssertionError: one is not two\n"
        assert said.index(early) < said.index("= FAILURES =")


READS = {
    "opens": "def test_a(): open('data.txt').close()\n",
    "starts": "import subprocess, sys\ndef test_a(): subprocess.run([sys.executable, 'made.py'])\n",
    "imports": "def test_a(): import made; made.f()\n",
    "elsewhere": "import os\ndef test_a(): open(os.devnull).close()\n",
}


def test_what_tests_read_is_noted(
    run: Callable[..., tuple[int, list[str]]], read: dict[str, list[str]], tmp_path: Path
) -> None:
    (tmp_path / "data.txt").touch()
    (tmp_path / "made.py").write_text("def f(): ...\n")
    for words in (("tests",), ("-n", "2", "tests")):
        read.clear()
        assert run(READS, *words)[0] == 0
        assert read == {"tests/test_opens": ["data.txt"], "tests/test_starts": ["made.py"]}


def test_what_reads_more_than_it_says_is_not_kept(copy: Path, tmp_path: Path) -> None:
    groups, kept = prove.Groups(prove.Tree(copy)), Kept(tmp_path / "kept")
    read = {ROOM: ["tfviz_lab/results/linformer.json", "_build/made", ANOTHER], LAW: [ANOTHER]}
    said = prove.keep(groups, kept, [ROOM, LAW], groups.tree.state, read)
    assert said[0].startswith(f"{LAW} is not kept: it reads {ANOTHER}, ")
    assert said[1].startswith(f"{ROOM} is not kept") and not list(kept.groups())
    # who rests on a piece of a module may read it: torch.compile does
    read = {ROOM: ["requirements.txt"], LAW: ["tests/laws.py", LINFORMER]}
    assert prove.keep(groups, kept, [ROOM, LAW], groups.tree.state, read) == []
    assert set(kept.groups()) == {ROOM, LAW}


def test_what_was_stopped_on_its_way_is_not_proven(
    run: Callable[..., tuple[int, list[str]]],
) -> None:
    """Of a test that was wanted and has not ended, no report comes."""
    assert run(STOPPED) == (2, ["tests/test_good"])


def test_what_has_passed_where_less_was_asked_is_not_all(copy: Path, tmp_path: Path) -> None:
    """Fewer cases are compiled without `--all`; of a room all tests run in any case."""
    kept = Kept(tmp_path / "kept")
    for asked_all, asked_all_again, held in (
        (False, False, {ROOM, LAW}),
        (False, True, {ROOM}),
        (True, False, {ROOM, LAW}),
    ):
        groups = prove.Groups(prove.Tree(copy))
        groups.everything = asked_all
        for group in (ROOM, LAW):
            kept.forget(group)
            kept.keep(group, groups.digest(group))
        groups.everything = asked_all_again
        assert {group for group in (ROOM, LAW) if groups.proven(group, kept)} == held


def test_what_was_changed_meanwhile_is_not_kept(copy: Path, tmp_path: Path) -> None:
    groups, kept = prove.Groups(prove.Tree(copy)), Kept(tmp_path / "kept")
    begun = dict(groups.tree.state)
    assert prove.keep(groups, kept, [ROOM, "tests/of_another_project"], begun) == []
    assert list(kept.groups()) == [ROOM] and kept.holds(ROOM, groups.digest(ROOM))
    assert ROOM in prove.plan(groups, kept).held
    kept.forget(ROOM)
    (copy / "README.md").touch()
    assert "is not kept" in prove.keep(groups, kept, [ROOM], begun)[0]
    assert not list(kept.groups())
