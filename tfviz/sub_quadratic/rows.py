"""Which rows of a sequence meet in one product: views where rows lie regularly, else gathers.

Both kinds stand for groups of `size` rows of a tensor (n, L, w), and can `take` them as
(n', groups, size, w), `put` such values back, mix them in (`lerp`), and `add` to what is there.

>>> import torch
>>> x = torch.arange(12.0).view(1, 12, 1)
>>> Stepped(first=1, groups=3, size=4, step=2).take(x)[0, :, :, 0].int().tolist()
[[1, 2, 3, 4], [3, 4, 5, 6], [5, 6, 7, 8]]
>>> Gathered(torch.tensor([[0, 7], [7, 3]])).take(x)[0, :, :, 0].int().tolist()
[[0, 7], [7, 3]]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

Taken: TypeAlias = Float[Tensor, "residues*n groups size w"]


@dataclass(frozen=True)
class Stepped:
    """The rows first + r + gap · (step · g + a): row a of group g of residue r. Views; with a gap
    the rows of one group lie far apart, so that they are copied together when they are used."""

    first: int
    groups: int
    size: int
    step: int = 0
    gap: int = 1
    residues: int = 1

    def _view(self, x: Tensor, start: int = 0, size: int | None = None) -> Tensor:
        """(n, residues, groups, size, w): rows start … start + size - 1 of every group."""
        n, row, one = x.stride()
        shape = len(x), self.residues, self.groups, size or self.size, x.shape[-1]
        strides = n, row, self.gap * self.step * row, self.gap * row, one
        first = self.first + self.gap * start
        return x.as_strided(shape, strides, x.storage_offset() + first * row)

    def _apart(self, x: Taken) -> Tensor:
        return x.unflatten(0, (-1, self.residues))

    def take(self, x: Float[Tensor, "n L w"]) -> Taken:
        return self._view(x).flatten(0, 1)

    def put(self, x: Float[Tensor, "n L w"], values: Taken) -> None:
        self._view(x).copy_(self._apart(values))

    def lerp(self, x: Float[Tensor, "n L w"], values: Taken, weight: Taken) -> None:
        self._view(x).lerp_(self._apart(values), self._apart(weight))

    def add(self, x: Float[Tensor, "n L w"], values: Taken) -> None:
        """Groups may overlap: so many rows of each at once that they do not."""
        values, step = self._apart(values), self.step if self.groups > 1 else self.size
        for start in range(0, self.size, step):
            part = values[..., start : start + step, :]
            self._view(x, start, part.shape[-2]).add_(part)

    def parts(self, residues: int, groups: int) -> Iterator[Stepped]:
        for r in range(0, self.residues, residues):
            for g in range(0, self.groups, groups):
                yield replace(
                    self,
                    first=self.first + r + self.gap * self.step * g,
                    residues=min(residues, self.residues - r),
                    groups=min(groups, self.groups - g),
                )

    @property
    def rows(self) -> int:
        return self.residues * self.groups * self.size

    @property
    def is_view(self) -> bool:
        return self.gap == 1

    @property
    def positions(self) -> Int[Tensor, "residues*groups size"]:
        r, g, a = (torch.arange(n) for n in (self.residues, self.groups, self.size))
        row = self.step * g[:, None] + a
        return (self.first + r[:, None, None] + self.gap * row).flatten(0, 1)


@dataclass(frozen=True)
class Gathered:
    """Any rows: positions[g] are those of group g. Runs of neighbours are moved together."""

    positions: Int[Tensor, "groups size"]
    residues: int = 1
    is_view: bool = False

    @property
    def rows(self) -> int:
        return self.positions.numel()

    @property
    def groups(self) -> int:
        return len(self.positions)

    @property
    def size(self) -> int:
        return self.positions.shape[1]

    @cached_property
    def _runs(self) -> tuple[int, Tensor]:
        """(length, which): the rows are these stretches of `length`, as long as they can be."""
        flat = self.positions.flatten()
        for length in (128, 64, 32, 16, 8):
            if self.size % length == 0:
                first = flat[::length]
                run = (first[:, None] + torch.arange(length)).flatten()
                if (first % length == 0).all() and run.equal(flat):
                    return length, first // length
        return 1, flat

    def _stretches(self, x: Tensor) -> Tensor:
        length = self._runs[0]
        whole = x.shape[1] // length * length
        return x[:, :whole].unflatten(1, (-1, length))

    def take(self, x: Float[Tensor, "n L w"]) -> Taken:
        rows = self._stretches(x).index_select(1, self._runs[1])
        return rows.view(len(x), self.groups, self.size, x.shape[-1])

    def _as_runs(self, values: Taken) -> Tensor:
        return values.reshape(len(values), -1, self._runs[0], values.shape[-1])

    def put(self, x: Float[Tensor, "n L w"], values: Taken) -> None:
        values = values.to(x.dtype)
        self._stretches(x).index_copy_(1, self._runs[1], self._as_runs(values))

    def lerp(self, x: Float[Tensor, "n L w"], values: Taken, weight: Taken) -> None:
        self.put(x, self.take(x).lerp_(values.to(x.dtype), weight))

    def add(self, x: Float[Tensor, "n L w"], values: Taken) -> None:
        self._stretches(x).index_add_(1, self._runs[1], self._as_runs(values).to(x.dtype))

    def parts(self, residues: int, groups: int) -> Iterator[Gathered]:
        for part in self.positions.split(groups):
            yield Gathered(part)


Rows: TypeAlias = Stepped | Gathered
