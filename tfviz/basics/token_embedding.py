"""Tokens: frequent pieces of text, a row of a table for each, and the same table to read out.

    merge:  (u, w) ← the most frequent pair of neighbours;  every u w becomes one new token
    in:     x_i = scale · E[t_i]          out:  logits = H Eᵀ          E ∈ ℝ^{V × d}

Byte-pair merges: Sennrich, Haddow, Birch 2016 (arXiv 1508.07909). They start from the characters of
words; here, as in GPT-2, from the bytes of UTF-8, so that every text has tokens: V = 256 + merges.
Ties go to the smaller pair. Table and scale √d: Vaswani et al. 2017 (arXiv 1706.03762), section
3.4; the scale is 1 in GPT and BERT.

>>> learn('aaab aaab', 1)
[(97, 97)]
>>> encode('aaab', [(97, 97)]).tolist()
[256, 97, 98]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["decode", "embed", "encode", "learn", "one_hot_embedding", "read_out", "vocabulary"]

Row = tuple[int, ...]  # the tokens of one piece
Pair = tuple[int, int]

PIECE = re.compile(r" ?\w+| ?[^\w\s]+|\s+")


def pieces(words: str) -> list[str]:
    """The text cut into words, each with the blank before it; no merge crosses a cut."""
    return PIECE.findall(words)


# --- the definition -------------------------------------------------------------------------------


def pair_counts(rows: Mapping[Row, int]) -> Counter[Pair]:
    """How often each pair of neighbours occurs; `rows` maps a piece to how often it is there."""
    counts: Counter[Pair] = Counter()
    for row, often in rows.items():
        for pair in pairwise(row):
            counts[pair] += often
    return counts


def best_pair(counts: Mapping[Pair, int]) -> Pair:
    """The most frequent pair, the smallest of several."""
    most = max(counts.values())
    return min(pair for pair, count in counts.items() if count == most)


def merged(row: Row, pair: Pair, new: int) -> Row:
    """Every occurrence of `pair`, from left to right, becomes the token `new`."""
    out: list[int] = []
    for token in row:
        if out and (out[-1], token) == pair:
            out[-1] = new
        else:
            out.append(token)
    return tuple(out)


def learn_literally(words: str, merges: int) -> list[Pair]:
    """Byte-pair merges as they are defined: count all pairs, merge the most frequent, repeat."""
    rows = Counter(tuple(piece.encode()) for piece in pieces(words))
    learned: list[Pair] = []
    while len(learned) < _arguments.integer("merges", merges, 0) and (counts := pair_counts(rows)):
        pair, new = best_pair(counts), 256 + len(learned)
        rows = Counter({merged(row, pair, new): often for row, often in rows.items()})
        learned.append(pair)
    return learned


# --- the same without counting anew ---------------------------------------------------------------


@named
def learn(words: str, merges: int) -> list[Pair]:
    """The same merges; only pieces that hold the merged pair are counted again."""
    found = Counter(tuple(piece.encode()) for piece in pieces(words))
    rows, often = list(found), list(found.values())
    counts = pair_counts(found)
    where: dict[Pair, set[int]] = {}
    for n, row in enumerate(rows):
        for pair in pairwise(row):
            where.setdefault(pair, set()).add(n)
    learned: list[Pair] = []
    while len(learned) < _arguments.integer("merges", merges, 0) and counts:
        pair, new = best_pair(counts), 256 + len(learned)
        for n in where.pop(pair):
            old, rows[n] = rows[n], merged(rows[n], pair, new)
            for gone in pairwise(old):
                counts[gone] -= often[n]
                if not counts[gone]:
                    del counts[gone]
            for come in pairwise(rows[n]):
                counts[come] += often[n]
                where.setdefault(come, set()).add(n)
        learned.append(pair)
    return learned


@named
def encode(words: str, merges: Sequence[Pair]) -> Int[Tensor, "L"]:
    """The text in tokens: in every piece the earliest learned merge first, until none fits."""
    rank = {pair: n for n, pair in enumerate(merges)}

    @cache
    def tokens(piece: str) -> Row:
        row: Row = tuple(piece.encode())
        while known := [rank[p] for p in pairwise(row) if p in rank]:
            row = merged(row, merges[min(known)], 256 + min(known))
        return row

    ids = [token for piece in pieces(words) for token in tokens(piece)]
    return torch.tensor(ids, dtype=torch.long)


@named
def vocabulary(merges: Sequence[Pair]) -> list[bytes]:
    """The bytes that each token stands for."""
    table = [bytes([n]) for n in range(256)]
    for u, w in merges:
        if not (0 <= u < len(table) and 0 <= w < len(table)):
            raise ValueError(
                f"merges[{len(table) - 256}] = {(u, w)} joins a token that is not there yet; "
                "give the merges in the order in which they were learned"
            )
        table.append(table[u] + table[w])
    return table


@named
def decode(ids: Int[Tensor, "L"], merges: Sequence[Pair]) -> str:
    """Back to text; bytes that are no UTF-8, as a young model writes, become �.

    Raises ValueError for a number that is no token.
    """
    table, numbers = vocabulary(merges), [int(n) for n in ids]
    if unknown := [n for n in numbers if not 0 <= n < len(table)]:
        raise ValueError(
            f"ids holds {unknown[0]}, but {len(merges)} merges make the tokens 0 … "
            f"{len(table) - 1}; decode with the merges that the text was encoded with"
        )
    return b"".join(table[n] for n in numbers).decode(errors="replace")


# --- from tokens to vectors and back --------------------------------------------------------------


@named
def one_hot_embedding(t: Int[Tensor, "*L"], E: Float[Tensor, "V d"]) -> Float[Tensor, "*L d"]:
    """The definition: a row with a single 1, times the table."""
    return F.one_hot(t, len(E)).to(E.dtype) @ E


@named
def embed(
    t: Int[Tensor, "*L"], E: Float[Tensor, "V d"], scale: float = 1.0
) -> Float[Tensor, "*L d"]:
    """The same by looking the rows up. Raises ValueError for a token without a row."""
    if _arguments.indices("t", t).numel() and not 0 <= int(t.min()) <= int(t.max()) < len(E):
        raise ValueError(
            f"t holds tokens {int(t.min())} … {int(t.max())}, but E has rows 0 … {len(E) - 1}; "
            "encode the text with the merges of this table"
        )
    return scale * E[t.long()]


@named
def read_out(H: Float[Tensor, "*L d"], E: Float[Tensor, "V d"]) -> Float[Tensor, "*L V"]:
    """Tied logits: how well each row of H fits the row of each token."""
    return H @ E.T
