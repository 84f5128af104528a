"""Positional encodings as pictures: what a place looks like, and what it does to the scores."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz.cores import Dense, Where, build
from tfviz.plots.figure import Figure
from tfviz.plots.inputs import as_weights
from tfviz.plots.matrices import signed_map

Encoding = Float[Tensor, "L d"] | nn.Module | type[Dense] | Callable[[Tensor], Tensor]
"""The rows themselves, or what makes them from the places 0, 1, …"""


def positions(
    encoding: Encoding,
    L: int | None = None,
    *,
    h: int = 1,
    d_head: int = 16,
    distances: Sequence[int] | None = None,
    title: "str | Sequence[str] | None" = None,
    caption: str | None = None,
    alt: str | None = None,
    size: int | None = None,
) -> Figure:
    """A positional encoding, with axes that say what its rows and columns are.

    * An absolute encoding is a tensor of rows (L, d), or what makes them from places, such as
      `Sinusoidal(64)`: one row for each position, one column for each dimension.
    * A table of relative positions is a tensor (distances, d) with the `distances` i − j of its
      rows: one row for each distance.
    * An encoding inside attention is a core, such as `Rope(16)`, `Alibi(4)` or `T5Bias(4)`, with
      h heads of width d_head, or the class of one. The picture shows the scores of L equal queries
      and keys: what differs in them is the work of the positions alone.

    `L` is needed unless the rows are given. Raises TypeError for anything else, ValueError for
    rows, distances or a length that do not fit.

    >>> from tfviz.position.rope import Rope
    >>> positions(Rope(16), 8).alt[:40]
    'signed values, 8 rows (query i) by 8 col'
    """
    words: dict[str, Any] = {"title": title, "caption": caption, "alt": alt, "size": size}
    if isinstance(encoding, type) and issubclass(encoding, Dense):
        encoding = cast(Dense, build(encoding, d_head, h))
    if isinstance(encoding, Dense):
        if distances is not None:
            raise ValueError("distances name the rows of a table; a core has none: leave them out")
        return signed_map(scores_of_equals(encoding, _length(L), h, d_head), **words)
    rows = encoding if isinstance(encoding, Tensor) else _made(encoding, _length(L))
    rows = as_weights(rows, "encoding")
    if rows.dim() != 2:
        raise ValueError(f"encoding has the shape {tuple(rows.shape)}; give rows: (L, d)")
    if distances is None:
        return signed_map(rows, xlabel="dimension", ylabel="position i", **words)
    if len(distances) != len(rows):
        raise ValueError(
            f"distances names {len(distances)} rows, the table has {len(rows)}; give one for each"
        )
    names = [f"{_arguments.integer('distances', distance):+d}" for distance in distances]
    return signed_map(rows, rows=names, xlabel="dimension", ylabel="distance i − j", **words)


def scores_of_equals(core: Dense, L: int, h: int, d_head: int) -> Float[Tensor, "h L L"]:
    """Scores before the softmax when all queries and keys of a head are the same vector of ones."""
    with torch.no_grad():
        ones = torch.ones(1, h, L, d_head)
        Q, K = core.turn_queries(ones, Where()), core.turn_keys(ones, Where())
        scores = Q @ K.mT / d_head**0.5
        bias = core.bias(Q, K)
        return (scores if bias is None else scores + bias)[0]


def _length(L: int | None) -> int:
    if L is None:
        raise ValueError("L is missing: say how many positions the picture shows, for example L=32")
    return _arguments.integer("L", L, 1)


def _made(encoding: Any, L: int) -> Tensor:
    if not callable(encoding):
        raise TypeError(
            f"encoding = {encoding!r}; give a tensor of rows (L, d), a module that makes them from "
            "positions, or a core such as Rope(16)"
        )
    with torch.no_grad():
        rows: Tensor = encoding(torch.arange(L))
    return rows
