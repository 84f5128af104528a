r"""Any text that a token can be is a label: in SVG, matplotlib and plotly, and in words.

`tfviz._labels` says how it is shown. Each public function of `plots` is drawn once with all texts
of `TEXTS` wherever it takes one, and every renderer is read back.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from matplotlib.text import Text
from PIL import Image

from tfviz import patterns, plots
from tfviz._labels import LONGEST, for_plotly, label, labels, named, shown
from tfviz.plots.canvas import text_width

RESTS_ON = ("tfviz/plots/**", "tfviz/_labels.py", "tests/*.py")

TEXTS = [
    *(
        "the",
        " the",
        "the ",
        "a  b",
        " ",
        "   ",
        "",
        "Ġthe",
        "▁the",
        "##ing",
        "</s>",
        "<|endoftext|>",
    ),
    *(
        "<br>",
        "<b>bold</b>",
        "&lt;",
        "&amp;",
        "&",
        "<",
        ">",
        '"',
        "'",
        ' role="img" style="',
        "]]>",
        "-->",
    ),
    *(
        "$",
        "$$",
        "$x$",
        r"$\frac{a}{b$",
        "^",
        "_",
        "_x",
        "x_1^2",
        "{",
        "}",
        "{e:x}",
        "%",
        "%{x}",
        "%s",
    ),
    *("\\", "\\\\", "\\n", r"\theta", r"\x00", "\n", "\n\n", "\nand", "\t", "\theta", "\r", "\\\n"),
    *("\x00", "\x07", "\x1b[31m", "\x7f", "\x85", "\x9f", "\ud800", "\udfff", "\ufffe", "\uffff"),
    *("\ufdd0", "\U0001ffff", "\ue000", "\u2028", "\xa0", "\xad", "\u3000", "\ufeff", "\u200b"),
    *(
        "\u200d",
        "\u200c",
        "\u202eabc",
        "\u2066x\u2069",
        "\u200f",
        "é",
        "e\u0301",
        "\u0301",
        "👩‍👩‍👧",
        "🏳️‍🌈",
    ),
    *(
        "日本",
        "שלום",
        "مرحبا",
        "می‌خواهم",
        "␣",
        "x" * LONGEST,
        "role:query",
        "role:grid/0.5",
        "#9C32ED",
    ),
    *(
        "url(#a)",
        'href="#b"',
        "</script>",
        "b'\\xff'",
        "None",
        "0",
        "-0",
        "1e5",
        "a" * 30 + " " + "b" * 30,
    ),
]


def test_texts_that_differ_look_different() -> None:
    assert len({shown(text) for text in TEXTS}) == len(TEXTS)
    short = ["".join(x) for n in range(1, 5) for x in product(" \\n\nx0", repeat=n)]
    assert len({shown(text) for text in short}) == len(short)


def test_what_can_be_seen_stays_as_it_is() -> None:
    stays = (
        "the",
        "Ġthe",
        "▁the",
        "</s>",
        "$x$",
        r"\theta",
        "{",
        "e\u0301",
        "👩‍👩‍👧",
        "می‌خواهم",
        "\\",
    )
    assert [shown(text) for text in stays] == list(stays)
    assert shown("\n") == r"\n" and shown("\\n") == r"\\n" and shown("\x00") == r"\x00"
    assert (
        shown(" the") == "␣the"
        and shown("\u202eabc") == r"\u202eabc"
        and shown("\ud800") == r"\ud800"
    )


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_a_label_has_nothing_that_acts_or_hides(text: str) -> None:
    words = shown(text)
    assert words == shown(text) and (words or not text)
    assert (
        words.encode() and not re.search("[\x00-\x1f\x7f-\xa0\u202a-\u202e\ufffe\uffff]", words)
    ) or not text
    assert words == " ".join(words.split()), "nothing collapses where spaces do"
    ET.fromstring(ET.tostring(_element(words), encoding="unicode"))
    there = for_plotly(words)
    assert html.unescape(there) == words and not re.search("[<>$]|^role:|^#", there)


def _element(words: str) -> ET.Element:
    node = ET.Element("text", title=words)
    node.text = words
    return node


# --- every function of plots ----------------------------------------------------------------------

Draw = Callable[[list[str]], Any]
N = len(TEXTS)
EYE = torch.eye(12)
MASK = patterns.causal()


def _own_figure(texts: list[str]) -> plots.Figure:
    """What somebody plots with matplotlib: mathematics and lines stay theirs."""
    with plots.style():
        drawing, axes = plt.subplots()
        axes.plot(range(2))
        for n, text in enumerate(texts):
            axes.text(n, 0, text.replace("$", "")).set_in_layout(False)
    return plots.figure(drawing, alt=" ".join(texts))


def _compared(texts: list[str]) -> dict[str, Any]:
    """A comparison in which variants and trivial lines are called so."""
    first, *others = texts
    said = {"word": "better", "beside": first, "difference": -0.5, "interval": [-0.6, -0.4]}
    return {
        "unit": "nats",
        "scores": {text: [1.0, 2.0] for text in texts},
        "reference": dict.fromkeys(others, first),
        "outcomes": dict.fromkeys(others, said),
        "trivial": {text: [1.5] for text in texts},
        "bar": first,
    }


def _dozens(texts: list[str]) -> list[list[str]]:
    """As many as a matrix names all: its columns are as broad as a letter is high."""
    return [(texts[n:] + texts)[:12] for n in range(0, N, 12)]


DRAWN: dict[str, Draw] = {
    "attention_map": lambda x: plots.beside(
        *(plots.attention_map(EYE, rows=some, columns=some, query=3) for some in _dozens(x))
    ),
    "beside": lambda x: plots.beside(
        *(plots.mask(MASK, 2, title=text, caption=text) for text in x[:6]), alt=" ".join(x)
    ),
    "bipartite": lambda x: plots.bipartite(MASK, 3, caption=" ".join(x)),
    "cost": lambda x: plots.cost(dict.fromkeys(x, MASK), (2, 4), blocks=False),
    "curve": lambda x: plots.curve(
        [1, 2], {text: [[n, n + 1]] * 2 for n, text in enumerate(x)}, xlabel=x[3], ylabel=x[7]
    ),
    "figure": _own_figure,
    "hops": lambda x: plots.hops(MASK, 3, title=" . ".join(x[::2])),
    "hover_attention_map": lambda x: plots.hover_attention_map(EYE, rows=x[-12:], columns=x[-12:]),
    "hover_cost": lambda x: plots.hover_cost(dict.fromkeys(x, MASK), (2, 4), blocks=False),
    "image_neighbourhood": lambda x: plots.image_neighbourhood(
        dict.fromkeys(x[1::3], MASK), 1, 3, (0, 1), overlay=False
    ),
    "key_set": lambda x: plots.key_set(dict.fromkeys(x[::5], MASK), 3),
    "mask": lambda x: plots.mask(dict.fromkeys(x, MASK), 2),
    "outcomes": lambda x: plots.outcomes(_compared(x)),
    "path": lambda x: plots.path(dict.fromkeys(x[-12:], MASK), 2, query=1, key=0),
    "plotly_figure": lambda x: plots.plotly_figure(
        {"data": [{"x": [1], "name": html.escape(text)} for text in x]}, alt=" ".join(x)
    ),
    "points": lambda x: plots.points(
        {text: (n, [1, 2]) for n, text in enumerate(x)}, xlabel=x[2], ylabel=x[9]
    ),
    "positions": lambda x: plots.positions(torch.eye(2)[:, :2], title=" . ".join(x[::2])),
    "reach": lambda x: plots.reach(MASK, 2, title=" . ".join(x[::2])),
    "schematic": lambda x: plots.schematic(
        [*x, *((text, text, "1", "query") for text in x)], dict.fromkeys(x, 1), alt=" ".join(x)
    ),
    "signed_map": lambda x: plots.beside(
        *(plots.signed_map(EYE, rows=some, columns=some, xlabel=some[3]) for some in _dozens(x))
    ),
    "tree": lambda x: plots.tree(
        {(): dict.fromkeys(x[::3], 1 / len(x[::3]))},
        {text: [text] for text in x[::3]},
        highlight=x[3],
    ),
}
"""Function → a figure with all texts wherever it takes one."""
NO_FIGURE = {"plotly_style", "style"}


def test_each_function_that_draws_is_here() -> None:
    public = {
        name for name in plots.__all__ if callable(getattr(plots, name)) and name[0].islower()
    }
    assert public == {*DRAWN, *NO_FIGURE}


def _squeezed(words: str) -> str:
    return re.sub(r"\s", "", words)


def _missing(texts: list[str], there: list[str]) -> list[str]:
    """The labels that are not there: exactly, or as parts of lines."""
    whole, exact = _squeezed("".join(there)), set(there)
    return [x for x in texts if x not in exact and _squeezed(x) not in whole]


SOME = {
    "path": TEXTS[-12:],
    "hover_attention_map": TEXTS[-12:],
    "beside": TEXTS[:6],
    **dict.fromkeys(("hops", "positions", "reach"), TEXTS[::2]),
    "key_set": TEXTS[::5],
    "tree": TEXTS[::3],
    "image_neighbourhood": TEXTS[1::3],
}
OWN = {"figure", "plotly_figure", "bipartite"}  # words of somebody's own, or none


@pytest.mark.parametrize("name", DRAWN)
def test_every_text_is_a_label_in_every_renderer(name: str, tmp_path: Path) -> None:
    texts = [shown(text) for text in SOME.get(name, TEXTS)]
    drawn = DRAWN[name](TEXTS)
    still = getattr(drawn, "fallback", drawn)
    if isinstance(still, plots.Figure):
        roots = [ET.fromstring(svg) for svg in still.svgs]
        narrow = [ET.fromstring(p.narrow.svg(p.alt)) for p in still.panels if p.narrow]
        assert all(root.get("aria-label") for root in roots + narrow)
        there = [t.text or "" for root in roots for t in root.iter() if t.tag.endswith("}text")]
        assert name in OWN or not _missing(texts, there)
        seen = [t for p in still.panels for t in p.drawing.page().findobj(Text)]
        assert name in OWN or not _missing(texts, [t.get_text() for t in seen])
        mathematics = [t.get_text() for t in seen if "$" in t.get_text() and t.get_parse_math()]
        assert name in OWN or not mathematics
        few = plots.Figure(still.panels[:3])
        Image.open(io.BytesIO(few.png)).load()
        assert few.save(tmp_path / "one.pdf").stat().st_size
        ET.parse(plots.Figure(still.panels[:1]).save(tmp_path / "one.svg"))
        few.html.encode()
    if getattr(drawn, "spec", None):
        told = drawn._repr_mimebundle_()
        json.dumps(told, ensure_ascii=False).encode()
        script = re.search(r'<script type="application/json">(.*?)</script>', told["text/html"])
        assert script and json.loads(script[1]) == drawn.spec
        live = told["application/vnd.plotly.v1+json"]
        go.Figure(live)
        axes = [live["layout"].get(axis, {}) for axis in ("xaxis", "yaxis")]
        there = [x for axis in axes for x in axis.get("ticktext", ())]
        there += [one.get("name", "").split(", slope")[0] for one in live["data"]]
        assert name in OWN or not set(texts) - set(map(html.unescape, there))


@pytest.mark.parametrize("name", ["attention_map", "hover_attention_map", "tree", "mask"])
def test_the_alt_text_says_the_labels(name: str) -> None:
    few = [text for text in TEXTS if text][:7]
    make: dict[str, Draw] = {
        "attention_map": lambda x: plots.attention_map(torch.eye(7), rows=x, columns=x),
        "hover_attention_map": lambda x: plots.hover_attention_map(torch.eye(7), rows=x, columns=x),
        "tree": lambda x: plots.tree({(): dict.fromkeys(x, 1 / 7)}, {"a": [x[0]]}, highlight="a"),
        "mask": lambda x: plots.mask(dict.fromkeys(x, MASK), 2),
    }
    said = make[name](few).alt
    assert all(shown(text) in said for text in few)


# --- what is no label -----------------------------------------------------------------------------

WRONG: list[tuple[Any, str]] = [
    (None, "= None is a NoneType; give a text"),
    (b"ab", r"= b'ab' is a bytes; give a text: \.decode"),
    (["a"], "is a list; give a text"),
    (torch.ones(2), "is a Tensor; give a text"),
    ("x" * 300, "has 300 characters; a label has at most 200: shorten it"),
    ("\u202e" * 40, "has 240 characters"),
]
TAKES: dict[str, Callable[[Any], object]] = {
    "rows": lambda x: plots.attention_map(torch.eye(1), rows=[x]),
    "columns": lambda x: plots.hover_attention_map(torch.eye(1), columns=[x]),
    "series": lambda x: plots.curve([1, 2], _with_key(x, [1, 2]), xlabel="x", ylabel="y"),
    "points": lambda x: plots.points(_with_key(x, (1, 2)), xlabel="x", ylabel="y"),
    "patterns": lambda x: plots.cost(_with_key(x, MASK), (2, 4)),
    "pattern": lambda x: plots.mask(_with_key(x, MASK), 2),
    "model": lambda x: plots.tree({(): _with_key(x, 1.0)}, {}, highlight=""),
    "steps": lambda x: plots.schematic([(x, "1", "1", "query")], {}, alt="x"),
}


class _Key:
    """Stands in a dict for what cannot be hashed."""


def _with_key(key: Any, value: Any) -> dict[Any, Any]:
    try:
        return {key: value}
    except TypeError:
        pytest.skip("no key of a dict")


@pytest.mark.parametrize(("wrong", "words"), WRONG, ids=lambda x: repr(x)[:12])
@pytest.mark.parametrize("place", TAKES)
def test_what_is_no_label_is_named(place: str, wrong: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words) as refused:
        TAKES[place](wrong)
    assert re.match(rf"{place[:6]}|a name in|tokens of", str(refused.value)), refused.value


def test_numbers_are_labels_and_too_few_or_too_many_are_not() -> None:
    numbers: Any = torch.tensor([3, 4])
    assert labels("rows", numbers) == ["3", "4"]
    assert labels("rows", np.array(["a", "b"])) == ["a", "b"] and labels("rows", "ab", 2) == [
        "a",
        "b",
    ]
    assert labels("rows", (x for x in (1, 2.5)), 2) == ["1", "2.5"]
    assert "0 (3)" in plots.attention_map(torch.eye(2), rows=numbers).alt
    for many in (["a"], ["a"] * 3, []):
        with pytest.raises(
            ValueError, match=rf"rows has {len(many)} labels for 2 positions; give one"
        ):
            plots.attention_map(torch.eye(2), rows=many)
    with pytest.raises(TypeError, match=r"columns = b'ab' is no list of labels"):
        plots.signed_map(torch.eye(2), columns=b"ab")  # type: ignore[arg-type]
    assert plots.attention_map(torch.eye(2), rows=["a", "a"]).svg.count(">a<") == 2


def test_two_names_that_look_the_same_are_refused() -> None:
    with pytest.raises(ValueError, match="series has two values with the name '1'; rename one"):
        plots.curve([1, 2], {1: [1, 2], "1": [3, 4]}, xlabel="x", ylabel="y")  # type: ignore[dict-item]
    assert list(named("series", {1: 0, 2: 0})) == ["1", "2"]
    figure = plots.curve([1, 2], {1: [1, 2], 2: [3, 4]}, xlabel="x", ylabel="y", highlight=2)  # type: ignore[dict-item, arg-type]
    assert figure.alt.startswith("y over x. 1: from 1")


def test_titles_and_captions() -> None:
    with pytest.raises(TypeError, match="caption = 3 is a int; give a text"):
        plots.mask(MASK, 2, caption=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"title\[1\] = None"):
        plots.attention_map(torch.eye(2).expand(2, 2, 2), title=["a", None])  # type: ignore[list-item]
    assert ">7<" in plots.mask(MASK, 2, title=7).svg  # type: ignore[arg-type]
    drawn = plots.mask(MASK, 2, caption="two\nlines \x00", alt="one\x0btwo")
    assert "two\nlines \\x00" in drawn.html and 'aria-label="one\\x0btwo"' in drawn.html
    assert label("a", True) == "True"


def test_somebody_elses_settings_of_matplotlib_change_no_label() -> None:
    with mpl.rc_context({"text.usetex": True, "text.parse_math": True}):
        drawn = plots.curve([1, 2], {"$x_1": [1, 2]}, xlabel="$", ylabel="y")
        drawn.png, plots.mask(MASK, 2, title="$a$").png
    assert ">$x_1<" in drawn.svg


def test_long_names_are_not_cut_off() -> None:
    long = "x" * LONGEST
    for drawn in (
        plots.key_set({long: MASK, "b": MASK}, 3),
        plots.mask({long: MASK, "b": MASK}, 3, overlay=True),
        plots.attention_map(torch.eye(3), rows=[long] * 3, columns=[long] * 3),
        plots.path({long: MASK, "b": MASK}, 3, query=2, key=0),
        plots.tree({(): {long: 1.0}}, {long: [long]}, highlight=long),
    ):
        for form in (drawn.panels[0].drawing, drawn.panels[0].narrow):
            for mark in getattr(form, "marks", ()):
                if hasattr(mark, "words") and not mark.upright:
                    width = text_width(mark.words, mark.size, bold=mark.bold)
                    start = mark.x - {"left": 0, "center": width / 2, "right": width}[mark.ha]
                    assert start >= -1 and start + width <= form.width + 1, mark.words[:20]  # type: ignore[union-attr]
        assert min(drawn.panels[0].drawing.width, 10) > 0


def test_an_operation_keeps_its_brackets() -> None:
    drawn = plots.schematic(["x[0]", "[CLS]", "[", "]", "[]", "[[MASK]]"], {}, alt="x").svg
    assert re.findall(r"<(?:svg:)?text[^>]*>([^<]*)<", drawn) == [
        "x[0]",
        "CLS",
        "[",
        "]",
        "[]",
        "[MASK]",
    ]


# --- what must be noticed -------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/_labels.py": [
        ("a backslash that reads as an escape", "return str(doubled) * 2", "return str(doubled)"),
        ("a space at an end is lost", '" " if alone and after', '" " if alone or after'),
        ("plotly reads mathematics", '"[&<>$]|^', '"[&<>]|^'),
        ("plotly's colours stand for roles", "^(?:role:|#)", "^(?:#)"),
    ],
    "tfviz/plots/replay.py": [
        ("matplotlib reads mathematics", "parse_math=False", "parse_math=True"),
    ],
}
