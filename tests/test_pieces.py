"""What a source rests on: every kind of change is noticed where it matters, and nowhere else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import tfviz
from tfviz import cores, patterns
from tfviz.compressed import linformer
from tfviz.sparse import longformer
from tfviz_lessons.kept import Kept
from tfviz_lessons.pieces import Pieces, Shelf

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tfviz_lessons/**", "tests/*.py")  # it copies them

ROOT = Path(tfviz.__path__[0]).parent

ONE = "import tfviz\npattern = tfviz.patterns.strided(8)\nprint(pattern.mask(16))\n"
DRAWN = "from tfviz.explorers import SparseLab\nSparseLab()\n"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", "records")
    for package in ("tfviz", "tfviz_lab"):
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    return folder


@pytest.fixture
def notices(copy: Path) -> Iterator[Callable[..., bool]]:
    """Does a source rest on something else when a file has another text?"""
    written: dict[Path, str] = {}

    def asked(source: str, name: str, old: str, new: str) -> bool:
        file = copy / name
        text = file.read_text("utf-8")
        written.setdefault(file, text)
        assert old in text, f"{name} has no {old!r} any more"
        before = Pieces(copy).of(source)
        file.write_text(text.replace(old, new, 1), "utf-8")
        after = Pieces(copy).of(source)
        file.write_text(text, "utf-8")
        return before != after

    yield asked
    assert all(file.read_text("utf-8") == text for file, text in written.items())


def first_line(thing: Any) -> str:
    return str(thing.__doc__).partition("\n")[0]


def test_docstrings_and_refusals_count_where_they_are_reached(
    notices: Callable[..., bool],
) -> None:
    families, room = "tfviz/patterns/families.py", "tfviz/compressed/linformer.py"
    says = first_line(patterns.strided)
    assert says and says in (ROOT / families).read_text("utf-8")
    assert notices(ONE, families, says, f"{says} More.")
    assert notices(ONE, "tfviz/_arguments.py", "raise ValueError", "raise ValueError  # why")
    assert not notices(ONE, room, first_line(linformer), "Another docstring.")
    core = first_line(cores.implied_map)
    assert not notices(ONE, "tfviz/cores.py", core, f"{core} More.")
    assert not notices(ONE, "tfviz/cores.py", "\nclass ", "\n# a comment\nclass ")
    assert notices(
        "from tfviz import implied_map\nimplied_map", "tfviz/cores.py", core, f"{core} More."
    )


def test_what_is_found_in_other_ways_than_by_its_name_is_reached(
    notices: Callable[..., bool],
) -> None:
    lab = next((ROOT / "tfviz/explorers").rglob("sparse_lab.py"))
    says = "class SparseLab("
    place = lab.relative_to(ROOT).as_posix()
    for source in (DRAWN, "import tfviz\ntfviz.patterns.strided(8).explore()\n"):
        assert notices(source, place, says, "class SparseLab(  # one\n")
    face = "tfviz/plots/__init__.py"
    assert notices(
        "import tfviz\ntfviz.plots.mask",
        face,
        "from tfviz import _extras",
        "from tfviz import  _extras\n1",
    )


@pytest.mark.parametrize(
    ("source", "name", "old"),
    [
        ("from tfviz.explorers import HashWheel\nHashWheel()", "lsh_buckets.js", "\n"),
        ("from tfviz_lab import load\nload('hops')", "ponder_time.json", "{"),
        ("from tfviz_lab import near_and_far as f\nf.texts", "local_and_global.py", "def texts("),
        (
            "from tfviz_lab import reverse_copy\nreverse_copy.measure",
            "reverse_copy.py",
            "def measure(",
        ),
    ],
)
def test_what_is_named_as_before_or_without_its_part_is_reached(
    notices: Callable[..., bool], source: str, name: str, old: str
) -> None:
    (file,) = (
        x
        for p in ("tfviz", "tfviz_lab")
        for x in (ROOT / p).rglob(name)
        if "records" not in x.parts
    )
    place = file.relative_to(ROOT).as_posix()
    assert notices(source, place, old, f"{old} ")
    assert not notices("from tfviz_lab import load\nload('rotary')", place, old, f"{old} ")


def test_what_is_executed_when_a_module_is_loaded_counts(notices: Callable[..., bool]) -> None:
    """Whether somebody names it or not: it may fail, or enter itself in a list."""
    file, room = "tfviz/dense_attention.py", "from tfviz.dense_attention import attention\n"
    for new in ("1 / 0\n", "LIMIT = 3\n", "@print\ndef unused(): ...\n", "import nothing\n"):
        assert notices(room, file, "\nfrom __future__ import annotations\n", f"\n{new}")
        assert not notices(
            "import math", file, "\nfrom __future__ import annotations\n", f"\n{new}"
        )


def test_an_explorer_rests_on_its_script_and_the_kit(notices: Callable[..., bool]) -> None:
    script = next((ROOT / "tfviz/explorers").rglob("sparse_lab.js")).relative_to(ROOT).as_posix()
    other = next((ROOT / "tfviz/explorers").rglob("rotary_clocks.js")).relative_to(ROOT).as_posix()
    for name in (script, "tfviz/explorers/kit/kit.css", "tfviz/explorers/kit/app.js"):
        assert notices(DRAWN, name, "\n", "\n\n")
        assert not notices("import tfviz\nprint(tfviz.__version__)", name, "\n", "\n\n")
    assert not notices(DRAWN, other, "\n", "\n\n")


def test_data_counts_where_its_name_is_said(notices: Callable[..., bool]) -> None:
    said = "from tfviz import stored\nstored.result('rotary')\n"
    assert notices(said, "tfviz_lab/results/rotary.json", "{", "{ ")
    assert not notices(said.replace("rotary", "hops"), "tfviz_lab/results/rotary.json", "{", "{ ")
    listed = "from tfviz import catalogue\ncatalogue.MECHANISMS\n"
    assert notices(listed, "tfviz/catalogue.toml", "title", "title ")


def test_nothing_is_executed_that_was_not_reached() -> None:
    """The reading against a run: all functions of the library that these calls enter."""
    source = """
import torch, tfviz
from tfviz.compressed.linformer import Linformer
from tfviz.sparse import longformer
torch.manual_seed(0)
Q, K, V = torch.randn(3, 2, 32, 8).unbind()
tfviz.sparse_attention(Q, K, V, tfviz.patterns.strided(4) | tfviz.patterns.global_tokens(2))
tfviz.GPT(20, 16, 2, 1)(torch.randint(20, (2, 16)))
tfviz.patterns.strided(4).plot(12)
"""
    assert longformer
    entered: set[CodeType] = set()

    def noted(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            entered.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(noted)
    try:
        exec(compile(source, "calls", "exec"), {})
    finally:
        sys.setprofile(before)
    reached = {name.partition("[")[0].partition(" ")[0] for name in Pieces().of(source)}
    home, missing = f"{ROOT / 'tfviz'}/", set()
    for code in entered:
        name = code.co_qualname.partition(".<locals>")[0]
        body = not code.co_flags & CO_NEWLOCALS  # of a class: it belongs to what a module loads
        if code.co_filename.startswith(home) and name[0] != "<" and not body:
            module = Path(code.co_filename).relative_to(ROOT).with_suffix("")
            label = ".".join(module.parts).removesuffix(".__init__") + f":{name}"
            missing |= {label} - reached
    assert len(entered) > 300 and not missing, missing


def test_what_was_read_serves_the_next_process(
    tmp_path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, alone = Kept(tmp_path), Pieces(copy).of(ONE)
    first = Shelf(kept)
    assert Pieces(copy, shelf=first).of(ONE) == alone
    first.save()

    def nothing(*_: object, **__: object) -> None:
        raise AssertionError("it is read again")

    with monkeypatch.context() as patch:
        patch.setattr("tfviz_lab.keys.read_module", nothing)
        assert Pieces(copy, shelf=Shelf(kept)).of(ONE) == alone
        with pytest.raises(AssertionError, match="read again"):  # another text is another module
            Pieces(copy, shelf=Shelf(kept)).of(ONE + "1\n")
        patch.setenv("FRESH", "1")
        with pytest.raises(AssertionError, match="read again"):
            Pieces(copy, shelf=Shelf(Kept(tmp_path))).of(ONE)
    first.file.write_bytes(first.file.read_bytes()[:1000])
    assert Pieces(copy, shelf=Shelf(kept)).of(ONE) == alone
