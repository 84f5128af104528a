"""Fixed factorised attention: inside the block, then through the block's summary columns.

Child, Gray, Radford, Sutskever 2019 (arXiv 1904.10509), section 4.3. 0-based, blocks of ℓ tokens,
c summary columns at the end of each (the paper used c ∈ {8, 16, 32} with ℓ ∈ {128, 256}):

    A⁽¹⁾ᵢ = {j ≤ i : ⌊j/ℓ⌋ = ⌊i/ℓ⌋}                 own block
    A⁽²⁾ᵢ = {j ≤ i : j mod ℓ ∈ {ℓ − c, …, ℓ − 1}}    summary columns

The order matters: the summaries must be written (A⁽¹⁾) before they are read (A⁽²⁾), and a skip
connection must carry the own block past the second layer. As defined, the rows i < ℓ − c of A⁽²⁾
are empty and give zeros. The paper prints the columns as {t, …, ℓ} with t = ℓ − c, which is one
too many; Weng 2020 already has ℓ − 1.

>>> relay(9, 2, block=4)
3
"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments, patterns
from tfviz._arguments import named
from tfviz.patterns import Pattern
from tfviz.sub_quadratic import sparse_attention

__all__ = ["fixed_attention"]


def factors(block: int, summary: int = 1) -> tuple[Pattern, Pattern]:
    """(A⁽¹⁾, A⁽²⁾): the own block of ℓ tokens and its last c columns."""
    return patterns.own_block(block=block), patterns.summary_columns(block=block, summary=summary)


@named
def fixed_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    block: int,
    summary: int = 1,
) -> Float[Tensor, "b h L dv"]:
    """Merged fixed attention in O(L (ℓ + c L/ℓ) d): one softmax over A⁽¹⁾ ∪ A⁽²⁾, any L."""
    return sparse_attention(Q, K, V, patterns.fixed(block=block, summary=summary))


def relay(i: int, j: int, block: int) -> int | None:
    """The summary that carries j to i, or None if i reads j in its own block by itself.

    The last token of j's block: it reads j in the first layer and is read by i in the second.
    """
    _arguments.integer("j", j, 0, i)
    _arguments.integer("block", block, 1)
    return None if i // block == j // block else j // block * block + block - 1


def empty_rows(block: int, summary: int = 1) -> range:
    """Queries for which A⁽²⁾ is empty: 0 … ℓ − c − 1, before the first summary column."""
    _arguments.integer("block", block, 1)
    _arguments.integer("summary", summary, 1, block)
    return range(block - summary)


def lost_when_swapped(L: int, block: int, summary: int = 1) -> int:
    """How many pairs j ≤ i stay unreachable if A⁽²⁾ comes before A⁽¹⁾ (two layers, with skips).

    A relay m reads only summary columns, and i reads m only inside its own block: lost are the
    ℓ − c ordinary tokens of every earlier block, for every i in a later one.
    """
    _arguments.integer("L", L, 1)
    _arguments.integer("block", block, 1)
    _arguments.integer("summary", summary, 1, block)
    return sum((block - summary) * (i // block) for i in range(L))
