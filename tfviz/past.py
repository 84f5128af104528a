"""Pasts: the rows that an attention keeps of the tokens that have passed.

A `Past` holds tensors (b, h_kv, n, width), for most attentions keys and values, and knows at which
positions their n rows stood. It never changes: `append`, `keep` and `cut` give another one, so any
past that somebody still has can be gone on from, as often as one likes. Those that go on from one
another share their store: without gradients, new rows are written into the room behind the last
ones, so a token costs as much after a long text as after a short one.

>>> rows = torch.arange(5.0).view(1, 1, 5, 1)
>>> past = Past().append(rows).keep(last=2, first=1)
>>> past.gather()[0].flatten().tolist(), past.at.tolist(), past.length
([0.0, 3.0, 4.0], [0, 3, 4], 5)
>>> on = past.append(torch.full((1, 1, 1, 1), 9.0)).keep(last=2, first=1)
>>> on.at.tolist(), past.at.tolist()
([0, 4, 5], [0, 3, 4])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._pytree import register_pytree_node

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["Past"]

Rows = Float[Tensor, "b h_kv n width"]
ROOM = 16
"""A store that is made anew has room for twice its rows, and for so many at the least."""


class _Store:
    """Tensors with room for rows. The past that holds the last `used` of them may write behind."""

    def __init__(self, tensors: tuple[Tensor, ...], used: int) -> None:
        self.tensors, self.used = tensors, used


class Past:
    """Rows of the past: `Past()` holds none.

    length   how many positions have passed, those without a row too
    first    how many rows of the first positions it holds apart from the last ones
    """

    def __init__(self) -> None:
        self.length = 0
        self._first: tuple[Tensor, ...] = ()
        self._store, self._begin, self._end = _Store((), 0), 0, 0  # of its last rows

    @classmethod
    def of(cls, tensors: Iterable[Tensor], runs: Iterable[tuple[int, int]]) -> Past:
        """The past that holds these rows; they stood at the positions of the runs, from … to …,
        the first of which begins at 0 if there are two. The inverse of `gather` and `runs`.

        Raises ValueError for runs that are as long as no tensor, and for more than two.
        """
        tensors, spans = tuple(tensors), [(int(a), int(b)) for a, b in runs]
        total = sum(b - a for a, b in spans)
        apart = len(spans) == 2 and spans[0][0] == 0 and spans[0][1] <= spans[1][0]
        if not (len(spans) == 1 or apart) or any(x.shape[2] != total for x in tensors):
            raise ValueError(
                f"runs = {spans} and rows of shapes {[tuple(x.shape) for x in tensors]}; give one "
                "run or two, the first of which begins at 0, as long as the rows together"
            )
        past, first = cls(), spans[0][1] if apart else 0
        past._first = tuple(x[:, :, :first] for x in tensors) if first else ()
        past._store = _Store(tuple(x[:, :, first:] for x in tensors), total - first)
        past._end, past.length = total - first, spans[-1][1]
        return past

    # --- what it holds ---

    @property
    def first(self) -> int:
        return self._first[0].shape[2] if self._first else 0

    @property
    def _from(self) -> int:
        """The position of the first of the last rows."""
        return self.length - (self._end - self._begin)

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return self.first + self._end - self._begin

    @property
    def runs(self) -> list[tuple[int, int]]:
        """The positions of its rows: from … to …"""
        whole = self.first == self._from
        spans = [(0, self.length)] if whole else [(0, self.first), (self._from, self.length)]
        return spans if self.first or whole else spans[1:]

    @property
    def at(self) -> Int[Tensor, "n"]:
        """The positions of its rows, in order; on the CPU, wherever the rows are."""
        return torch.cat([torch.arange(a, b, device="cpu") for a, b in self.runs])

    @property
    def is_whole(self) -> bool:
        """Whether every position that has passed has its row."""
        return self.rows == self.length

    def gather(self) -> tuple[Rows, ...]:
        """All rows, in the order of their positions."""
        if not self._first:
            return self._last()
        return tuple(torch.cat(both, 2) for both in zip(self._first, self._last(), strict=True))

    def __iter__(self) -> Iterator[Rows]:
        return iter(self.gather())

    def __getitem__(self, n: int) -> Rows:
        return self.gather()[n]

    @property
    def bytes(self) -> int:
        """Of the rows that it holds; a store has room for at most twice as many and `ROOM`."""
        sizes = ((x.shape, x.element_size()) for x in self._store.tensors)
        return self.rows * sum(b * h * width * size for (b, h, _, width), size in sizes)

    # --- others that go on from it ---

    @named
    def append(self, *rows: Rows) -> Past:
        """With these rows behind, one tensor for each that it holds.

        Raises ValueError for rows of another number, batch or width than those that it holds.
        """
        self._check(rows)
        n, on = rows[0].shape[2], self._copy()
        on.length, on._end = self.length + n, self._end + n
        functional = torch.is_grad_enabled() or torch.compiler.is_compiling()
        if functional or not self._may_write(rows):
            on._store = _joined(self._last(), rows, room=not functional)
            on._begin, on._end = 0, on._store.used
            return on
        for store, new in zip(self._store.tensors, rows, strict=True):
            store[:, :, self._end : on._end] = new
        self._store.used = on._end
        return on

    def keep(self, last: int | None = None, first: int = 0) -> Past:
        """With the last rows and the first ones alone; `last` = None keeps all.

        `first` stays what it was when rows were first left out. Raises ValueError for another, as
        their rows are gone.
        """
        if last is None:
            return self
        last = _arguments.integer("last", last, 0)
        first = _arguments.integer("first", first, 0)
        if self.is_whole and self.length <= last + first:
            return self
        if not self.is_whole and min(first, self.length) > self.first:
            raise ValueError(
                f"first = {first}: of the first rows {self.first} are kept, the others are gone; "
                f"choose first <= {self.first}, or keep them from the beginning"
            )
        on = self._copy()
        if self.is_whole and first > self.first:
            on._first = tuple(x[:, :, :first].clone() for x in self.gather())
        elif first < self.first:
            on._first = tuple(x[:, :, :first] for x in self._first) if first else ()
        on._begin = max(self._begin, self._end - min(last, self.length - on.first))
        if on._begin > 2 * (on._end - on._begin) + ROOM and not torch.is_grad_enabled():
            on._store = _joined((), on._last(), room=True)
            on._begin, on._end = 0, on._store.used
        return on

    def cut(self, length: int) -> Past:
        """As it was when so many positions had passed.

        Raises ValueError where rows that it held then have been left out since; the past of that
        time still has them.
        """
        length = _arguments.integer("length", length, 0, self.length)
        gone = self.length - length
        if not gone:
            return self
        if not self.is_whole:
            raise ValueError(
                f"length = {length}: rows before position {self._from} have been left out, and "
                f"some of them were held when {length} positions had passed; go on from the past "
                "of that time, which has not changed"
            )
        on = self._copy()
        on.length = length
        if length < self.first:
            on._first = tuple(x[:, :, :length] for x in self._first)
        on._end = max(self._begin, self._end - gone)
        return on

    # --- inside ---

    def _last(self) -> tuple[Tensor, ...]:
        """Without gradients a part of what has some has none."""
        whole = self._store.tensors
        held = whole if torch.is_grad_enabled() else tuple(x.detach() for x in whole)
        return tuple(x[:, :, self._begin : self._end] for x in held)

    def _copy(self) -> Past:
        on = Past()
        on.__dict__.update(self.__dict__)
        return on

    def _may_write(self, rows: tuple[Tensor, ...]) -> bool:
        """Whether there is room behind the last row, nobody else has written there, and the numbers
        are of one kind."""
        store, inference = self._store, torch.is_inference_mode_enabled()
        if not store.tensors or store.used != self._end:
            return False
        return all(
            self._end + new.shape[2] <= old.shape[2]
            and (old.dtype, old.device) == (new.dtype, new.device)
            and not old.requires_grad
            and (inference or not old.is_inference())
            for old, new in zip(store.tensors, rows, strict=True)
        )

    def _check(self, rows: tuple[Tensor, ...]) -> None:
        held = self._store.tensors
        if not rows or any(x.dim() != 4 or x.shape[2] != rows[0].shape[2] for x in rows):
            shapes = [tuple(x.shape) for x in rows]
            raise ValueError(f"rows have shapes {shapes}; give (b, h_kv, n, width), with one n")
        if held and len(held) != len(rows):
            raise ValueError(f"rows are {len(rows)} tensors, {len(held)} are held; give as many")
        for old, new in zip(held, rows, strict=False):
            if len(old) != len(new):
                raise ValueError(
                    f"the cache is of {len(old)} texts, now there are {len(new)}; go on with the "
                    "same ones, or begin with an empty cache"
                )
            if old.shape[1] != new.shape[1] or old.shape[3] != new.shape[3]:
                raise ValueError(
                    f"rows have shape {tuple(new.shape)}, those that are held {tuple(old.shape)}; "
                    "give as many heads of the same width"
                )

    def __repr__(self) -> str:
        spans = ", ".join(f"{a}–{b - 1}" for a, b in self.runs if b > a) or "none"
        return f"Past({self.length} positions, rows of {spans})"

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.gather(), "runs": self.runs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(Past.of(state["rows"], state["runs"]).__dict__)


def _joined(last: tuple[Tensor, ...], rows: tuple[Tensor, ...], room: bool) -> _Store:
    """A store of its own with the rows of both, and perhaps room for as many more."""
    if not room:
        both = rows if not last else tuple(torch.cat(x, 2) for x in zip(last, rows, strict=True))
        return _Store(both, both[0].shape[2])
    before = last[0].shape[2] if last else 0
    n = before + rows[0].shape[2]
    made = list[Tensor]()
    for k, new in enumerate(rows):
        b, h, _, width = new.shape
        kind = torch.promote_types(new.dtype, last[k].dtype) if last else new.dtype
        store = new.new_empty(b, h, n if not before else max(2 * n, n + ROOM), width, dtype=kind)
        if last:
            store[:, :, :before] = last[k]
        store[:, :, before:n] = new
        made.append(store)
    return _Store(tuple(made), n)


register_pytree_node(
    Past,
    lambda past: (list(past.gather()), past.runs),
    lambda tensors, runs: Past.of(tensors, runs),
    serialized_type_name="tfviz.past.Past",
)
