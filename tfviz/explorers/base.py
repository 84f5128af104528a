"""What all explorers share on the Python side.

An explorer is an anywidget: in JupyterLab and Colab its traits are live. Its output also carries a
mount point in plain HTML with the state as JSON; in the book `tfviz-page.js` mounts the same module
there with a model that lives in the page. `kit/` holds what a module is written with, and its
README.md says how.
"""

from __future__ import annotations

import html
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import anywidget
import numpy as np
import torch
import traitlets as t
from torch import Tensor

from tfviz import _arguments
from tfviz._labels import json_in_html
from tfviz._renamed import EXPLORERS
from tfviz.explorers.knobs import Knob, RefusedError, given, guarded, knob, own, plain
from tfviz.formula import Formula

__all__ = [
    "ALL",
    "Explorer",
    "Knob",
    "Numbers",
    "exact",
    "given",
    "handed",
    "knob",
    "own",
    "table",
    "uniforms",
    "write_assets",
]

Numbers = dict[str, Any]
"""What an explorer counts or shows, by name: JSON-ready."""

HERE = Path(__file__).parent
KIT = HERE / "kit"
STANDALONE = KIT / "standalone.html"
PARTS = (
    "maths",
    "words",
    "colours",
    "controls",
    "plane",
    "matrix",
    "table",
    "motion",
    "ask",
    "model",
    "app",
)
"""The files of the kit in the order in which they are joined to one."""

FORMERLY = {new: old for old, new in EXPLORERS.items()}
"""What a module was called before, and is still called by links and answers of that time."""

ALL: dict[str, type[Explorer]] = {}
"""Every explorer class by the name of its module."""


class Explorer(anywidget.AnyWidget):
    """Base of all explorers. A subclass sets the class attributes, and declares what it is given
    and what the reader moves (`tfviz.explorers.knobs`) in the order of the constructor's arguments.

    label        accessible name of the whole explorer
    rem          heights that the page reserves, in rem, as `scripts/heights.py` measures them:
                 where the explorer is wide, below 1136, 980 and 820 pixels of width, and below
                 `narrow`; without the second of these, or only the first and the last
    asks         the sentence above the picture, unless another `prompt` is given; or view -> it
    data         constants that the module reads as `tf.data`, as `handed` gives them: formulas,
                 words, what was stored, never a result
    uses         files that stand in front of the module, by their paths in this folder:
                 "shared/gpt", which a few explorers share, or the pieces of a large one
    scene        whether it opens a chapter: one wide picture that one handle moves, and one
                 sentence, without a question, controls and buttons
    extra        arguments that only `prepare` uses, with their defaults
    examples     arguments to show it with, one set by the name of each view; the tests and the
                 measurements use them

    Its ES module, and its style sheet if it has one, are named like its Python file and stand
    beside it. The docstring of a subclass goes on with its knobs, each with what it may be.

    Raises TypeError for arguments that it does not have, ValueError for values that do not fit.
    """

    module: ClassVar[str]
    label: ClassVar[str]
    rem: ClassVar[tuple[float, ...]] = 34, 56
    narrow: ClassVar[int] = 676
    home: ClassVar[Path] = HERE
    uses: ClassVar[tuple[str, ...]] = ()
    asks: str | Mapping[str, str] = ""
    scene: ClassVar[bool] = False
    extra: ClassVar[Mapping[str, Any]] = {}
    examples: ClassVar[Mapping[str, Mapping[str, Any]]] = {"": {}}
    moved: ClassVar[dict[str, t.TraitType]] = {}
    given: ClassVar[dict[str, t.TraitType]] = {}
    __signature__: ClassVar[inspect.Signature]

    prompt = guarded(t.Unicode()).tag(sync=True)
    _begun = False  # from then on values are assigned, and checked together
    _esm = t.Unicode().tag(sync=True)
    _css = t.Unicode().tag(sync=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        roles = {n: x.metadata["role"] for n, x in vars(cls).items() if _has_role(x)}
        if not roles:  # the subclass that anywidget makes of each instance
            return
        cls.moved = {n: vars(cls)[n] for n, role in roles.items() if role in ("knob", "own")}
        cls.given = {n: vars(cls)[n] for n, role in roles.items() if role in ("given", "derived")}
        arguments = {n: _first(vars(cls)[n]) for n, role in roles.items() if role != "derived"}
        cls.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
                for name, value in {**arguments, **cls.extra, "prompt": ""}.items()
            ]
        )
        if "numbers" in vars(cls):
            setattr(cls, "numbers", _listed(cls.numbers))  # noqa: B010
        knobs = {name: x for name, x in cls.moved.items() if isinstance(x, Knob)}
        knob_lines = [x.docstring_line(name) for name, x in knobs.items()]
        cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or ""), "", *knob_lines])
        package, _, cls.module = cls.__module__.rpartition(".")
        above, _, part = package.rpartition(".")
        if above == __package__:
            cls.home = HERE / part
            ALL[cls.module] = cls

    def __init__(self, *values: Any, **named: Any) -> None:
        try:
            said = self.__signature__.bind(*values, **named).arguments
        except TypeError as error:
            known = ", ".join(self.__signature__.parameters)
            raise TypeError(f"{type(self).__name__}: {error}; it takes {known}") from None
        if not said.get("prompt"):
            said.pop("prompt", None)
        prepared = self.prepare({n: x for n, x in said.items() if x is not None})
        self._begin_inside(prepared)
        # what is given comes first: the ends of a knob may depend on it
        order = [*self.given, *self.moved, "prompt"]
        self._extra = {name: said[name] for name in self.extra if said.get(name) is not None}
        super().__init__(**{name: prepared[name] for name in order if name in prepared})
        self._begun = True

    def _hanging(self) -> list[Knob]:
        """The knobs whose ends are other knobs, in the order in which they are declared."""
        return [x for x in self.moved.values() if isinstance(x, Knob) and x.hangs_on]

    def _begin_inside(self, prepared: dict[str, Any]) -> None:
        """Of the knobs that nobody set, those begin at an end that would stand outside."""
        first = {name: _first(x) for name, x in self.moved.items()} | prepared
        for follower in self._hanging():
            name = str(follower.name)
            with suppress(TypeError, ValueError):  # of a wrong end: its own check says so
                if name not in prepared:
                    first[name] = prepared[name] = follower.kept(SimpleNamespace(**first))

    @contextmanager
    def hold_trait_notifications(self) -> Iterator[None]:
        """Several values are assigned as one: they are checked together at the end, and if they do
        not fit, all stay as they were."""
        with super().hold_trait_notifications():
            if not self._begun or self._settling:
                yield
                return
            before, self._settling = dict(self._trait_values), True
            try:
                yield
                self._settle(before)
            except t.TraitError:
                self._trait_values.clear()
                self._trait_values.update(before)
                raise
            finally:
                self._settling = False

    _settling = False

    def _settle(self, before: Mapping[str, Any]) -> None:
        """What was assigned, checked as the constructor checks it, with what follows from it.
        Raises RefusedError with its words."""
        every = {**self.given, **self.moved}
        new = [n for n in every if n in self._trait_values and self._differs(n, before.get(n))]
        if not new:
            return
        if derived := [n for n in new if every[n].metadata["role"] == "derived"]:
            arguments = ", ".join(n for n in every if every[n].metadata["role"] != "derived")
            raise RefusedError(f"{derived[0]} is worked out by the explorer; assign {arguments}")
        values = {n: getattr(self, n) for n, x in every.items() if x.metadata["role"] != "derived"}
        said = {n: x for n, x in values.items() if x is not None}
        try:
            for name, value in self.prepare(said | self._extra).items():
                self._follows(name, value)
            for one in self.moved.values():  # where an end has moved, the knob goes with it
                if isinstance(one, Knob) and (callable(one.low) or callable(one.high)):
                    self._follows(str(one.name), one.kept(self))
            for name, trait in every.items():
                value = getattr(self, name)
                if isinstance(trait, Knob):
                    trait.validate(self, value)
                self._follows(name, trait._cross_validate(self, value))
        except t.TraitError:
            raise
        except ValueError as error:
            raise RefusedError(str(error)) from None
        except (TypeError, LookupError, AttributeError, RuntimeError) as error:
            last = new[-1]
            raise RefusedError(
                f"{last} = {getattr(self, last)!r:.80} does not fit: {error}"
            ) from None

    def _differs(self, name: str, value: Any) -> bool:
        """Whether a trait has another value, or another kind of it: True is not 1."""
        if name not in {*self.given, *self.moved}:
            return False
        now, then = plain(getattr(self, name)), plain(value)
        return bool(now != then) or repr(now) != repr(then)

    def _follows(self, name: str, value: Any) -> None:
        if self._differs(name, value):
            self.set_trait(name, value)

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """What the page has changed. If it does not fit, the page is told what is held here."""
        order = [*self.given, *self.moved, *sync_data]  # an end before what hangs on it
        names = [name for name in dict.fromkeys(order) if name in sync_data]
        try:
            super().set_state({name: sync_data[name] for name in names})
        except t.TraitError:
            self.send_state([name for name in names if name in self.keys])
            raise

    def prepare(self, said: dict[str, Any]) -> dict[str, Any]:
        """The arguments as they were given, checked together and as they travel to the page."""
        return said

    @t.default("prompt")
    def _first_prompt(self) -> str:
        asks = self.asks
        return asks if isinstance(asks, str) else asks[self.view]

    @t.validate("prompt")
    def _or_first_prompt(self, proposal: Any) -> Any:
        return proposal["value"] or self._first_prompt()

    data: ClassVar[Callable[[], Mapping[str, Any]]] = dict

    @classmethod
    def parts(cls) -> dict[str, str]:
        """Scripts that its module loads only when a reader asks for them, {part: script}."""
        return {}

    @classmethod
    def sources(cls) -> tuple[str, str]:
        """Its ES module and style sheet; they want the kit to be there."""
        declared = {
            "kind": cls.__name__,
            "scene": cls.scene,
            "knobs": {
                n: x.described() if isinstance(x, Knob) else {} for n, x in cls.moved.items()
            },
            "given": list(cls.given),
            "derived": [n for n, x in cls.given.items() if x.metadata["role"] == "derived"],
        }
        written: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}

        def code(x: Any) -> str:
            whole = isinstance(x, Formula)
            return x.javascript() if whole else json.dumps(x, **written)

        data = ",".join(f"{code(name)}:{code(x)}" for name, x in sorted(cls.data().items()))
        about = json.dumps(declared, **written)  # in order: that of the constructor
        name = json.dumps(cls.module)
        start = f"const tf = tfvizKit({{name: {name}, declared: {about}, data: {{{data}}}}});"
        files = [*(HERE / f"{n}.js" for n in cls.uses), cls.home / f"{cls.module}.js"]
        script = _plain("\n".join(file.read_text("utf-8") for file in files))
        sheet = cls.home / f"{cls.module}.css"
        return f"{start}\n{script}", sheet.read_text("utf-8") if sheet.exists() else ""

    @t.default("_esm")
    def _default_esm(self) -> str:
        return f"const tfvizKit = {kit()[0]};\n{self.sources()[0]}"

    @t.default("_css")
    def _default_css(self) -> str:
        return kit()[1] + self.sources()[1]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.moved)
        return f"{type(self).__name__}({values})"

    def numbers(self) -> dict[str, Any]:
        """What the page shows for the present knobs, worked out by the library: name -> number, or
        lists of numbers. The module's `numbers` gives the same, to rounding. A subclass may write
        tensors in place of lists."""
        raise NotImplementedError(f"{type(self).__name__} does not say its numbers")

    @property
    def state(self) -> dict[str, Any]:
        """What is given, the knobs and the prompt, JSON-ready."""
        values = self.get_state({*self.given, *self.moved, "prompt"})
        return {name: plain(values[name]) for name in sorted(values)}

    @classmethod
    def example(cls, view: str = "", /, **others: Any) -> Explorer:
        """The explorer with the arguments of `examples[view]`, or `others` in their place."""
        return cls(**{**cls.examples[view], **others})

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Explorer:
        """The explorer of this `state`. Raises TypeError or ValueError if none can have it."""
        return cls(**state)

    def heights(self) -> dict[int, float]:
        """The heights to reserve in rem, for the state at hand: 0 is the height where the explorer
        is wide, another number the height below that width in pixels; the widest first."""
        steps = {2: (), 4: (980, 820), 5: (1136, 980, 820)}[len(self.rem)]
        return dict(zip((0, *steps, self.narrow), self.rem, strict=True))

    def html(self) -> str:
        """The mount point for pages without a kernel."""
        label = html.escape(self.label)
        state = json_in_html(self.state)
        # Steps in the width without a media query: the difference to the width, times much, is
        # below zero where there is more room and above every height where there is less.
        (_, wide), *narrower = self.heights().items()
        steps = [f"{wide:g}rem"]
        for width, h in narrower:
            more = h - wide
            ends = f"{min(0, more):g}rem", f"{max(0, more):g}rem"
            sign = "-" if more < 0 else ""
            steps.append(f"clamp({ends[0]}, {sign}999 * ({width}px - 100cqw), {ends[1]})")
            wide = h
        height = f"calc({' + '.join(steps)})"
        old = FORMERLY.get(self.module)
        formerly = f' data-formerly="{old}"' if old else ""
        scene = " data-scene" if self.scene else ""
        return (
            f'<div class="tfviz-explorer" data-explorer="{self.module}"{formerly}{scene} '
            f'role="group" aria-label="{label}" style="container-type: inline-size">'
            f'<script type="application/json">{state}</script>'
            f'<div class="tfviz-explorer-body" style="min-height: {height}">'
            f"<noscript>{label}: this picture is interactive and needs JavaScript.</noscript>"
            "</div></div>"
        )

    def save(self, path: str | Path) -> Path:
        """Write a page that holds the explorer with its state, to be opened without a network, put
        on a server or shown in a frame of another page; returns its path.

        path ends in .html and lies in a folder that exists. Raises ValueError for another ending,
        FileNotFoundError where there is no such folder.
        """
        path = Path(path)
        if path.suffix not in (".html", ".htm"):
            raise ValueError(f"path = {str(path)!r} ends in {path.suffix!r}; use .html")
        module = json_in_html(f"{self._esm}\nexport const Model = tfvizKit.Model;")
        parts = {"label": html.escape(self.label), "style": self._css, "explorer": self.html()}
        page = STANDALONE.read_text("utf-8")
        # in one pass, so that what is put in is not looked through
        made = re.sub(r"\{\{(\w+)\}\}", lambda m: {**parts, "module": module}[m[1]], page)
        path.write_text(made, "utf-8")
        return path

    def _repr_mimebundle_(self, **options: Any) -> Any:
        data, metadata = super()._repr_mimebundle_(**options)
        return {**data, "text/html": self.html(), "text/plain": repr(self)}, metadata


def _listed(numbers: Callable[[Any], Numbers]) -> Callable[[Any], Numbers]:
    """Its tensors, of any number of dimensions, as lists and numbers."""

    def listed(x: Any) -> Any:
        if isinstance(x, Mapping):
            return {name: listed(y) for name, y in x.items()}
        if isinstance(x, list | tuple):
            return [listed(y) for y in x]
        return x.tolist() if isinstance(x, Tensor | np.ndarray) else x

    return wraps(numbers)(lambda self: listed(numbers(self)))


def handed(*sources: Callable[[], Mapping[str, Any]], **named: Any) -> Any:
    """The `data` of a class: what these functions return when the page is made, and by name
    constants, or functions of nothing that make them."""

    def data() -> Numbers:
        values = {n: x for one in sources for n, x in one().items()} | named
        fixed = (Formula, str, Sequence, Mapping, int, float)
        return {n: x if isinstance(x, fixed) else x() for n, x in values.items()}

    return staticmethod(data)


def exact(numbers: Any) -> Tensor:
    """Lists of numbers as a tensor in double precision, as the page has them."""
    return torch.tensor(numbers, dtype=torch.float64)


def table(name: str, given: Any, many: int | range, width: int | range) -> list[list[float]]:
    """Rows of numbers that were given, with six digits: a float32 typed as 0.2 travels as 0.2.

    Raises ValueError unless there are so many of one such width.
    """
    rows = [
        [round(_arguments.real(name, x if isinstance(x, str | bool) else float(x)), 6) for x in row]
        for row in given
    ]
    widths = sorted({len(row) for row in rows})
    many, width = (x if isinstance(x, range) else range(x, x + 1) for x in (many, width))
    if len(rows) not in many or len(widths) != 1 or widths[0] not in width:
        wanted = [", ".join(map(str, x)) for x in (many, width)]
        raise ValueError(
            f"{name} has {len(rows)} rows of widths {widths}; give {wanted[0]} rows of one width, "
            f"{wanted[1]} numbers"
        )
    return rows


def uniforms(seed: int, count: int) -> Tensor:
    """Numbers of mean 0 and variance 1 that the kit makes too: mulberry32, by their place."""
    with np.errstate(over="ignore"):
        k = np.arange(1, count + 1, dtype=np.uint32)
        x = np.uint32(seed * 0x9E3779B1 & 0xFFFFFFFF) + k * np.uint32(0x6D2B79F5)
        x = (x ^ (x >> np.uint32(15))) * (x | np.uint32(1))
        x ^= x + (x ^ (x >> np.uint32(7))) * (x | np.uint32(61))
        x ^= x >> np.uint32(14)
    return torch.from_numpy((x / 2**32 - 0.5) * 12**0.5)


def _first(trait: t.TraitType) -> Any:
    """Its default as an argument; given things without one must be given."""
    if trait.metadata.get("optional"):
        return None
    value = trait.default_value
    return inspect.Parameter.empty if value is t.Undefined else value


def _has_role(x: Any) -> bool:
    return isinstance(x, t.TraitType) and "role" in x.metadata


def kit() -> tuple[str, str]:
    """What all modules are written with, as one JavaScript expression, and its style sheet."""
    text = "\n".join((KIT / f"{part}.js").read_text("utf-8") for part in PARTS)
    sheets = [(KIT / f"{name}.css").read_text("utf-8") for name in ("base", "kit")]
    sheet = re.sub(r"/\*.*?\*/|^\s+", "", "\n".join(sheets), flags=re.S | re.M)
    script = re.sub(r"^ +", "", _plain(text), flags=re.M)  # no text of the kit has two lines
    return f'(() => {{\n"use strict";\n{script}\nreturn kit;\n}})()', sheet


def _plain(script: str) -> str:
    """A script without lines of comment, which are for whoever reads the files."""
    return re.sub(r"^ *//.*\n", "", script, flags=re.M)


def write_assets(folder: str | Path) -> list[str]:
    """Write `kit.js` and `.css`, which a page loads once, and `<module>.js`, `.css` and `.reg.js`
    of every explorer into folder; return the names of the modules.

    `.reg.js` holds the module as text: a page opened from `file://` may not import modules. A page
    that was kept from before a change of names still finds `<old name>.js`. What a module
    loads only when a reader asks for it, its `parts`, stands beside it as `<module>.<part>.js`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    script, style = kit()
    (folder / "kit.js").write_text(f"globalThis.tfvizKit = {script};\n", "utf-8")
    (folder / "kit.css").write_text(style, "utf-8")
    for name, explorer in ALL.items():
        script, style = explorer.sources()
        (folder / f"{name}.js").write_text(script, "utf-8")
        (folder / f"{name}.css").write_text(style, "utf-8")
        (folder / f"{name}.reg.js").write_text(
            f"tfvizPage.define({json.dumps(name)}, {json.dumps(script)});\n", "utf-8"
        )
        for part, text in explorer.parts().items():
            (folder / f"{name}.{part}.js").write_text(text, "utf-8")
        if name in FORMERLY:
            (folder / f"{FORMERLY[name]}.js").write_text(
                f'export {{ default }} from "./{name}.js";\n', "utf-8"
            )
    return list(ALL)
