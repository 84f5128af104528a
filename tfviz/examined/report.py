"""`examine`: the laws of the library, for any attention that somebody brings.

    examine(nn.MultiheadAttention(16, 2, batch_first=True))
    examine(mine, causal=True)                    mine: an nn.Module from X (b, L, d) to Y
    examine(f, definition=g, d=8)                 f, g: functions of Q, K and V
    python -m tfviz examine package.module:Class --kwargs '{"dim": 16}'

>>> from tfviz.dense_attention import attention
>>> def mine(Q, K, V):
...     s = Q @ K.mT / Q.shape[-1] ** 0.5
...     ahead = torch.ones_like(s[0, 0]).bool().triu(2)  # off by one
...     return s.masked_fill(ahead, -1e9).softmax(-1) @ V
>>> found = examine(mine, causal=True, only=["future"])
>>> print(found["future"].says)
it sees the future: what is said at 0 depends on what stands at 1, in a text of 2
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import torch
from torch import Generator

from tfviz.examined.laws import LAWS, LENGTHS, Asked, Example, Verdict, answers
from tfviz.examined.subjects import InParts, Inputs, subject

if TYPE_CHECKING:
    from tfviz.plots import Figure

__all__ = ["Examined", "examine"]

NOTHING = 1e-9
"""A dependence below this is rounding."""

MARKS = {"broken": "✗", "noted": "·", "holds": "✓", "not asked": "–"}
"""In the order in which verdicts are shown."""


@dataclass(frozen=True)
class Examined:
    """What the laws found of one attention: verdicts by the name of the law.

    It prints itself in a terminal, shows itself in a notebook with a picture for each law that is
    broken, and is JSON by `json()`.
    """

    name: str
    verdicts: tuple[Verdict, ...]

    def __getitem__(self, law: str) -> Verdict:
        for verdict in self.verdicts:
            if verdict.law == law:
                return verdict
        raise KeyError(f"{law!r} was not asked; the laws are {', '.join(LAWS)}")

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    @property
    def broken(self) -> tuple[Verdict, ...]:
        return tuple(x for x in self.verdicts if x.status == "broken")

    @property
    def shown(self) -> list[Verdict]:
        """What is broken comes first."""
        return sorted(self.verdicts, key=lambda x: list(MARKS).index(x.status))

    def __repr__(self) -> str:
        width = max(len(x.law) for x in self.verdicts)
        lines = [f"{MARKS[x.status]} {x.law:{width}}  {x.says}" for x in self.shown]
        drawn = [grid(x.example) for x in self.broken if x.example and x.example.matrix is not None]
        return "\n".join([self.name, *lines, *drawn])

    def json(self) -> str:
        """All of it as JSON: status, sentence and example of each law."""
        return json.dumps(
            {
                "name": self.name,
                "laws": {
                    x.law: {
                        "status": x.status,
                        "says": x.says,
                        **({"example": _data(x.example)} if x.example else {}),
                    }
                    for x in self.verdicts
                },
            },
            ensure_ascii=False,
            indent=1,
        )

    def figures(self) -> dict[str, Figure]:
        """A picture of the pairs for each broken law that is about pairs."""
        return {
            x.law: picture(self.name, x)
            for x in self.broken
            if x.example and x.example.matrix is not None
        }

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row'>{x.law}</th><td>{MARKS[x.status]}\u00a0{x.status}</td>"
            f"<td>{escape(x.says)}</td></tr>"
            for x in self.shown
        )
        head = "".join(f"<th scope='col'>{x}</th>" for x in ("law", "verdict", "what was found"))
        shown = "".join(figure.html for figure in self.figures().values())
        table = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        return f"<table class='table'><caption>{escape(self.name)}</caption>{table}</table>{shown}"


def _data(example: Example) -> dict[str, Any]:
    found: dict[str, Any] = {"L": example.L, "seed": example.seed}
    if example.pair:
        found["pair"] = list(example.pair)
    if example.wrong is not None:
        found["wrong"] = example.wrong.nonzero().tolist()
    return found


def grid(example: Example) -> str:
    """The pairs as text: ● depends and must not, ○ depends, · does not."""
    signs = [
        ["●" if leaks else "○" if depends else "·" for leaks, depends in zip(*both, strict=True)]
        for both in zip(*pairs(example), strict=True)
    ]
    return "\n".join("    " + " ".join(row) for row in signs)


def pairs(example: Example) -> tuple[list[list[bool]], list[list[bool]]]:
    """(what depends and must not, what depends), by rows."""
    assert example.matrix is not None and example.wrong is not None
    return example.wrong.tolist(), (example.matrix > NOTHING).tolist()


def picture(name: str, verdict: Verdict) -> Figure:
    """Which answers depend on which tokens, and where one must not."""
    from tfviz import plots

    example = verdict.example
    assert example is not None
    leaks, depends = (torch.tensor(x) for x in pairs(example))
    return plots.mask(
        {"depends": depends & ~leaks, "leaks": leaks},
        query=example.pair[0] if example.pair else None,
        overlay=True,
        title=f"{name}: {verdict.law}",
        caption=verdict.says,
    )


def examine(
    what: Any,
    *,
    causal: bool | None = None,
    definition: Callable[..., Any] | None = None,
    exponent: float | None = None,
    d: int | None = None,
    inputs: Callable[[int, int, Generator], Inputs] | None = None,
    padding: str | None = None,
    in_parts: InParts | None = None,
    only: Iterable[str] | None = None,
    seed: int = 0,
) -> Examined:
    """Ask an attention whether it is what it should be, law by law; nothing of it is changed.

    Args:
        what: an nn.Module from X (b, L, d) to Y, an attention or a model of transformers or
            x-transformers, one of ours, or a function of Q, K, V (b, h, L, d).
        causal: True if no answer may depend on later tokens; False if it may; None finds out.
        definition: what it should compute, a function of the same inputs.
        exponent: the power of the length that its largest tensor may grow with; None only says it.
        d, inputs, padding, in_parts: as in `subject`, where they are not found.
        only: names of laws, all if None.

    Raises TypeError or ValueError for what cannot be examined, and says what to give.
    """
    unknown = {*(only or ())} - {*LAWS}
    if unknown:
        raise ValueError(f"only = {sorted(unknown)}: no such law; choose of {', '.join(LAWS)}")
    one = subject(what, d=d, inputs=inputs, padding=padding, in_parts=in_parts)
    exact = one.typed(torch.float64)
    asked = Asked(causal, definition, exponent, seed)
    if one.module is None and not any(answers(exact, L) for L in LENGTHS):
        exact = one.typed(torch.float32)  # a function may hold weights of this type
    if not any(answers(exact, L) for L in LENGTHS):
        exact(*exact.drawn(1, 4, seed))  # what fails here fails with its own words
    laws = LAWS if only is None else {law: LAWS[law] for law in only}
    return Examined(one.name, tuple(law(exact, asked) for law in laws.values()))
