"""Which code a run executes: all that it enters, and not the rows and rooms of others."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfviz
import tfviz_lab
from tfviz_lab import family, keys

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/*.py")  # it copies and changes them

ROOT = Path(tfviz.__path__[0]).parent


def written(folder: Path, text: str, config: Any = None) -> dict[str, str]:
    file = folder / "written_here.py"
    file.write_text(text)
    return keys.Source().pieces(file, config)


def test_comments_annotations_and_refusals_are_no_other_code(tmp_path: Path) -> None:
    plain = "def measure(config, seed):\n    n = config['n']\n    return n + 1\n"
    same = '''
from tfviz import _arguments
from tfviz._arguments import integer

def measure(config: dict[str, int], seed: int = 0) -> int:
    """What."""
    n: int = config["n"]  # why
    assert n
    if n > 3:
        raise ValueError(f"{n} is too many")
    elif n < 0:
        raise ValueError("too few")
    n = integer("n", n, 1)
    _arguments.integer("seed", seed)
    return (n + 1)
'''.replace("seed: int = 0", "seed: int")
    assert written(tmp_path, plain).values() and len(written(tmp_path, plain)) == 1
    assert list(written(tmp_path, plain).values()) == list(written(tmp_path, same).values())
    for other in (
        plain.replace("+ 1", "+ 2"),
        plain.replace("return n", "return -n"),
        plain.replace("    return", "    if n > 3:\n        n = 3\n    return"),
        plain.replace("seed)", "seed=0)"),
    ):
        assert list(written(tmp_path, plain).values()) != list(written(tmp_path, other).values())


def test_how_an_object_is_stored_counts_for_what_was_proven_alone(tmp_path: Path) -> None:
    text = "class A:\n    def f(self): return 1\ndef measure(config, seed): return A().f()\n"
    stored = text.replace("    def f", "    def __reduce__(self): return 'A'\n    def f")
    assert written(tmp_path, text) == written(tmp_path, stored)
    named = [keys.Source(whole=True).reached(x)[0] for x in (text, stored)]
    assert named[0] != named[1]


def test_what_is_named_is_reached_and_nothing_else(tmp_path: Path) -> None:
    text = """
import torch
RATE = 3
UNUSED = 4
LONELY = 5
TABLE = {"a": lambda: RATE, "b": lambda: LONELY}
class Base(torch.nn.Module):
    def forward(self): ...
    def drawn(self): ...
    def asked(self): ...
class Model(Base):
    def __init__(self): ...
    def step(self): return self.asked()
    def unused(self): ...
def helper(): return Model().step
def measure(config, seed):
    helper()
    return TABLE[config["name"]]()
"""

    def reached(config: Any) -> set[str]:
        return {name.partition(":")[2] for name in written(tmp_path, text, config)}

    always = {"measure", "helper", "Model", "Model.__init__", "Model.step", "Base", "Base.asked"}
    always.add("Base.forward")  # torch calls it
    assert reached({"name": "a"}) == always | {"TABLE[a]", "RATE"}
    assert reached({"name": "b"}) == always | {"TABLE[b]", "LONELY"}
    everything = always | {"TABLE[a]", "TABLE[b]", "RATE", "LONELY"}
    assert reached({"name": "c"}) == everything  # a key that it does not understand
    text += "    return [f() for f in TABLE.values()]\n"
    assert reached({"name": "a"}) == everything


@pytest.fixture
def change(tmp_path: Path) -> Callable[..., bool]:
    """Is a run another one when a file of tfviz has a new text in place of an old one?"""
    ignored = shutil.ignore_patterns("__pycache__", "results", "explorers")
    for package in keys.PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)

    def changed(
        experiment: str, file: str, old: str, new: str, of: tuple[str, ...] = (), **config: Any
    ) -> bool:
        changed_file = tmp_path / file
        text = changed_file.read_text()
        assert old in text, f"{file} has no {old!r} any more"

        def now() -> set[str]:
            (home,) = (tmp_path / "tfviz_lab").rglob(f"{experiment}.py")
            return set(keys.anywhere(keys.Source(tmp_path).pieces(home, config, of)).values())

        before = now()
        changed_file.write_text(text.replace(old, new, 1))
        after = now()
        changed_file.write_text(text)
        return before != after

    return changed


def test_a_run_is_of_the_rooms_that_it_names(change: Callable[..., bool]) -> None:
    room = ("tfviz/longer_context/alibi.py", "def slopes(", "def slopes(more, ")
    model = ("tfviz/models/gpt.py", "def forward(", "def forward(more, ")
    printed = ("tfviz/patterns/pattern.py", "def latex(", "def latex(more, ")
    assert change("distance_aware_scores", *room, core="ALiBi")
    assert not change("distance_aware_scores", *room, core="near only")
    of = {run.name: run.of for run in family.runs()}
    picture = ("tfviz/exhibits/longer_context.py", "def eight_ramps(", "def eight_ramps(more, ")
    line = ("tfviz/exhibits/longer_context.py", "def ramps(", "def ramps(more, ")
    for file in (room, line):
        assert change("family", *file, of["cost alibi"], name="alibi")
        assert not change("family", *file, of["cost rope"], name="rope")
    assert not change("family", *picture, of["cost alibi"], name="alibi")
    assert change("extrapolation", *model, encoding="rotary", task="text")
    assert not change("extrapolation", *printed, encoding="rotary", task="text")
    assert not change("extrapolation", "tfviz/_arguments.py", "operator.index", "int", task="text")
    row = ("tfviz_lab/sparse/digits.py", '"previous pixel": [', '"previous pixel": [*[], ')
    assert change("digits", *row, variant="previous pixel")
    assert not change("digits", *row, variant="full")


def test_a_run_may_name_code_that_it_finds_in_another_way(tmp_path: Path) -> None:
    file = tmp_path / "written_here.py"
    file.write_text("def measure(config, seed): return 1\n")
    source = keys.Source()
    alone = source.pieces(file)
    room = source.pieces(file, of=["tfviz.longer_context.alibi:slopes"])
    assert "tfviz.longer_context.alibi:slopes" in room and len(room) > len(alone)
    assert source.pieces(file, of=["tfviz.longer_context.alibi"]).keys() > room.keys()
    for wrong in ("tfviz.longer_context.alibis", "tfviz.longer_context.alibi:slope", "numpy"):
        with pytest.raises(ValueError, match=f"of = '{wrong}' is nothing in tfviz"):
            source.pieces(file, of=[wrong])


def test_a_star_takes_what_its_module_lists(tmp_path: Path) -> None:
    """Two rooms of a part have a helper of one name, and one of them offers it."""
    part = tmp_path / "tfviz/part"
    part.mkdir(parents=True)
    (part / "__init__.py").write_text("from tfviz.part.a import *\nfrom tfviz.part.b import *\n")
    (part / "a.py").write_text("__all__ = ['f']\ndef f(): return 1\ndef g(): return 2\n")
    (part / "b.py").write_text("__all__ = ['g']\ndef f(): return 3\ndef g(): return 4\n")
    file = tmp_path / "written_here.py"
    file.write_text("from tfviz.part import f, g\ndef measure(config, seed): return f() + g()\n")
    reached = {*keys.Source(tmp_path).pieces(file)}
    assert reached == {"tfviz_lab.written_here:measure", "tfviz.part.a:f", "tfviz.part.b:g"}


def test_where_code_stands_does_not_count() -> None:
    here = {"tfviz.a:f": "12", "tfviz.a:ROWS[x]": "34", "tfviz.a:C.g": "56"}
    there = {"tfviz.b:f": "12", "tfviz.c:TABLE[x]": "34", "tfviz.a:C.g": "56"}
    assert sorted(keys.anywhere(here).values()) == sorted(keys.anywhere(there).values())
    for other in ({"tfviz.a:ROWS[y]": "34"}, {"tfviz.a:ROWS[x]": "35"}):
        assert set(keys.anywhere(other).values()).isdisjoint(keys.anywhere(here).values())


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("norm_order", {"start": "post-norm", "N": 2}),
        ("digits", {"variant": "strided, per head", "steps": 1}),
        ("digits", {"variant": "fixed, merged", "steps": 1}),
        ("distance_aware_scores", {"core": "learned", "steps": 1}),
        ("adaptive_spans", {"order": "short below", "steps": 1}),
        ("dynamic_spans", {"variant": "priced", "price": 0.01, "start": 32, "steps": 1}),
        ("local_and_global", {"variant": "and labels", "steps": 1}),
        ("segment_memory", {"equal": "16 rows, 16 by convolution", "steps": 1}),
    ],
)
def test_all_that_a_run_enters_is_in_its_key(name: str, config: dict[str, Any]) -> None:
    """Watched while it runs: the source was not read too narrowly."""
    experiment, entered = tfviz_lab.module_of(name), set[str]()
    packages = tuple(f"{ROOT / package}/" for package in keys.PACKAGES)

    def watch(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(packages):
            file = Path(code.co_filename).relative_to(ROOT).with_suffix("")
            module = ".".join(file.parts).removesuffix(".__init__")
            entered.add(
                f"{module}:{'.'.join(code.co_qualname.split('.<locals>')[0].split('.')[:2])}"
            )

    sys.setprofile(watch)
    try:
        experiment.measure(dict(config), 0)
    finally:
        sys.setprofile(None)
    pieces = keys.Source().pieces(experiment, config)
    named = {x for x in entered if "<" not in x and x.partition(":")[0] not in keys.CHECKS}
    named = {x for x in named if x.rpartition(".")[2] not in keys.STORED}
    assert len(named) > 25 and named - pieces.keys() <= ONLY_REFUSE | ONLY_STORE


ONLY_REFUSE = {"tfviz.patterns.family:Domain.check", "tfviz.cores:sees_ahead"}
"""Entered for a refusal alone."""

ONLY_STORE = {"tfviz.cores:stored"}
"""Entered where an object is stored or copied."""


def test_a_decorator_that_cuts_padding_out_counts_for_no_run_for_none_pads(tmp_path: Path) -> None:
    text = "def measure(config, seed): return 1\n"
    wrapped = "from tfviz.models.padding import each_text_alone\n@each_text_alone\n" + text
    other = "from tfviz.training import seeded\n@seeded\n" + text
    plain, *pieces = (list(written(tmp_path, x).values()) for x in (text, wrapped, other))
    assert pieces[0] == plain != pieces[1]
    for file in (ROOT / "tfviz_lab").rglob("*.py"):
        assert "attention_mask=" not in file.read_text().replace("no attention_mask=", "")
