"""A knob is declared once: what comes from the declaration."""

from __future__ import annotations

import json
import math
import re
from typing import Any, ClassVar

import pytest
import traitlets as t

from tfviz import patterns
from tfviz.compressed.linformer import SHARING
from tfviz.explorers import ALL
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import Knob, given, knob, own

RESTS_ON = ("tfviz/**", "tests/**")  # it finds them by their names


class Machine(Explorer):
    words = given(t.List(t.Unicode()))
    L = knob(1024, of=(256, 1024, 4096), label="length", letter="L")
    d = knob(64, of=(16, 64), between=True)
    gain = knob(1.0, low=0.5, high=2.0, step=0.5)
    row = knob(0, low=0, high=lambda e: len(e.words) - 1)
    on = knob(False, label="on")
    kind = knob("a", of={"a": "first", "b": "second"})
    list = own(t.List(t.Int(), [1]), optional=True)
    found = given(t.Int(7), argument=False)
    extra: ClassVar[dict[str, Any]] = {"twice": False}
    asks = "Move it."

    @classmethod
    def sources(cls) -> tuple[str, str]:
        return "", ""

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        return said | {"words": list(said["words"]) * (1 + said.pop("twice", False))}


def test_constructor_repr_and_state() -> None:
    one = Machine(["x", "y"], 256, row=1)
    assert repr(one) == "Machine(L=256, d=64, gain=1.0, row=1, on=False, kind='a', list=[1])"
    assert one.prompt == "Move it." and Machine(["x"], prompt="Ask.").prompt == "Ask."
    assert Machine(["x"], twice=True).words == ["x", "x"]
    assert set(one.state) == {*Machine.given, *Machine.moved, "prompt"}
    assert json.loads(json.dumps(one.state)) == one.state


def test_what_is_given_is_set_before_the_knobs_that_depend_on_it() -> None:
    assert Machine(row=2, words=["x", "y", "z"]).row == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"L": 300}, "L = 300; choose one of 256, 1024, 4096"),
        ({"L": True}, "L = True"),
        ({"d": 15}, "d = 15 is out of range; choose 16 <= d <= 64"),
        ({"d": 20.5}, "d = 20.5 is not a whole number"),
        ({"gain": 2.1}, "gain = 2.1 is out of range; choose 0.5 <= gain <= 2.0"),
        ({"gain": math.nan}, "gain = nan is not finite"),
        ({"row": 2}, "row = 2 is out of range; choose 0 <= row <= 1"),
        ({"on": 1}, "on = 1; choose True or False"),
        ({"kind": "c"}, "kind = 'c'; choose one of a, b"),
        ({"colour": 1}, "unexpected keyword argument 'colour'; it takes words, L"),
        ({"found": 1}, "unexpected keyword argument 'found'"),
    ],
)
def test_what_does_not_fit_is_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words.replace("(", r"\(")):
        Machine(["x", "y"], **wrong)
    one = Machine(["x", "y"])
    for name, value in wrong.items():
        if name in Machine.moved:
            with pytest.raises(ValueError, match=f"{name} = "):
                setattr(one, name, value)


def test_values_between_and_of_another_type() -> None:
    one = Machine(["x"], d=17, gain=1)
    assert one.d == 17 and type(one.gain) is float
    with pytest.raises(TypeError, match="missing a required argument: 'words'"):
        Machine()


def test_the_page_is_told_what_the_class_says() -> None:
    about = {name: x.described() for name, x in Machine.moved.items() if isinstance(x, Knob)}
    assert about["L"] == {
        "kind": "whole", "between": False, "of": [256, 1024, 4096], "label": "length", "letter": "L"
    }  # fmt: skip
    assert about["gain"]["kind"] == "number" and about["gain"]["step"] == 0.5
    assert about["row"]["low"] == 0 and "high" not in about["row"]  # the page finds it itself
    assert about["kind"]["texts"] == ["first", "second"] and about["on"]["kind"] == "switch"


@pytest.mark.parametrize("name", ALL)
def test_every_explorer_declares_what_it_has(name: str) -> None:
    """No synced trait beside the declarations: nothing else would be carried by links or copies."""
    kind = ALL[name]
    synced = set(kind.class_trait_names(sync=True)) - set(Explorer.class_trait_names(sync=True))
    assert synced == {*kind.given, *kind.moved} and kind.moved


@pytest.mark.parametrize("name", ALL)
def test_an_explorer_is_no_stub(name: str) -> None:
    """What `make new` left to write is written."""
    kind = ALL[name]
    places = [
        kind.__doc__,
        kind.label,
        str(kind.asks),
        (kind.home / f"{name}.js").read_text("utf8"),
    ]
    left = re.findall(r"TODO: .*", "\n".join(text or "" for text in places))
    assert not left, f"{name} is not finished: {left}"


@pytest.mark.parametrize("name", ALL)
def test_every_control_has_its_label(name: str) -> None:
    """A control that a module puts for a knob, `app.knob("stride")`, has the declared name."""
    kind = ALL[name]
    shown = re.findall(r'app\.knob\("(\w+)"', (kind.home / f"{kind.module}.js").read_text("utf8"))
    for key in shown:
        declared = kind.moved[key]
        assert isinstance(declared, Knob) and declared.words["label"], f"{key} has no label"


class Linked(Explorer):
    sources = Machine.sources
    length = knob(8, low=1, high=16, label="length")
    start = knob(2, low=0, high=length - 1, label="first")
    end = knob(5, low=start, high=length, label="last")
    stride = knob(patterns.strided.domains["stride"], high=64, label="stride")
    memory = knob(patterns.image_1d.domains["memory"], first=12, high=64)


def test_what_is_handed_to_the_page_keeps_its_order() -> None:
    """ProjectionSharing names its ways in the order in which its numbers come."""
    script, _ = ALL["projection_sharing"].sources()
    ways = re.search(r'"ways":(\{.*?\})', script)
    assert ways and list(json.loads(ways[1])) == list(SHARING)


def test_an_end_that_is_another_knob_moves_with_it() -> None:
    one = Linked()
    one.length = 3
    assert (one.start, one.end) == (2, 3) and type(one.end) is int
    one.length = 2  # the first moves the last's least, and the length its greatest
    assert (one.start, one.end) == (1, 2)
    one.length = 16
    assert (one.start, one.end) == (1, 2), "where there is room nothing moves"
    one.start = 9
    assert one.end == 9


def test_who_begins_outside_an_end_that_moved_begins_at_it() -> None:
    assert Linked(length=3).end == 3
    assert Linked(length=3, start=0, end=1).end == 1
    assert Linked(start=7).end == 7


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"length": 3, "end": 5}, "end = 5 is out of range; choose 2 <= end <= 3"),
        ({"start": 6, "end": 5}, "end = 5 is out of range; choose 6 <= end <= 8"),
        ({"start": 8}, "start = 8 is out of range; choose 0 <= start <= 7"),
        ({"length": "long"}, "length = 'long'"),
        ({"stride": 0}, "stride = 0 is out of range; choose 1 <= stride <= 64"),
    ],
)
def test_beyond_an_end_that_moves_it_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Linked(**wrong)


def test_a_knob_takes_the_domain_of_a_familys_parameter() -> None:
    one, domain = Linked(), patterns.strided.domains["stride"]
    assert one.stride == domain.default and Linked.moved["stride"].described()["low"] == domain.low
    assert one.memory == 12 and Linked.moved["memory"].described()["letter"] == "l_m"
    assert Linked.moved["stride"].described()["letter"] == ""  # a TeX command is no letter
    with pytest.raises(TypeError, match="high is missing: a parameter of a family"):
        Knob(domain)
    with pytest.raises(TypeError, match="this parameter is a list"):
        Knob(patterns.blockwise.domains["permutation"], high=4)
    with pytest.raises(TypeError, match="first stands beside the domain"):
        Knob(3, first=4)


def test_the_page_and_the_docstring_know_which_knob_an_end_is() -> None:
    end = Linked.moved["end"].described()
    assert end["low"] == {"knob": "start", "plus": 0} and end["high"]["knob"] == "length"
    assert Linked.moved["start"].described()["high"] == {"knob": "length", "plus": -1}
    assert "start    first: 0 to length − 1\nend    last: start to length" in (Linked.__doc__ or "")


def test_the_docstring_goes_on_with_the_knobs() -> None:
    assert "L    length L: 256, 1024, 4096\nd    : 16 to 64" in (Machine.__doc__ or "")
