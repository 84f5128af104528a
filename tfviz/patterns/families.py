"""The formulas: one plain function of the indices i (query) and j (key) for each pattern.

From a function below come the mask, the printed formula, the JavaScript, the cost and the reach of
`tfviz.patterns`. Formulas are built from formulas.

>>> strided(stride=3).key_sets(8)[7]
[1, 4, 5, 6, 7]
"""

from __future__ import annotations

import inspect
from typing import Any

from tfviz.formula import Index, hash_of
from tfviz.patterns.family import FAMILIES, Domain, Family, compound, family
from tfviz.patterns.pattern import LENGTH, Pattern


def _count(default: int, letter: str, meaning: str) -> Domain:
    return Domain(1, default, letter, meaning)


def _tokens(default: int, letter: str, meaning: str) -> Domain:
    """From one on; as many as the sequence has are all, and so are more."""
    return Domain(1, default, letter, meaning, high=lambda v: v[LENGTH], all_beyond=True)


def _blocks(letter: str, meaning: str, all_beyond: bool = False) -> Domain:
    """From one to as many as the sequence has blocks."""
    return Domain(
        1, 1, letter, meaning, high=lambda v: -(-v[LENGTH] // v["block"]), all_beyond=all_beyond
    )


_RADIUS = "how many keys are allowed on each side of the query"
_BLOCK = "how many tokens a block has"
_SUMMARY = "how many positions at the end of a block all later queries read"
_GLOBAL = "how many of the first tokens are global"
_WINDOW = Domain(0, 1, "w", "how many blocks are allowed on each side of the query's own")
_GLOBAL_BLOCKS = _blocks(
    "g", "how many blocks are global at the beginning, and as many at the end", True
)
_RANDOM_BLOCKS = _blocks("r", "how many random blocks of keys each block of queries has")
_SEED = Domain(0, 0, r"\mathrm{seed}", "which of the random patterns it is")


# --- atomic patterns -----------------------------------------------------------------------------


@family("full", "vaswani2017attention")
def full(i: Index, j: Index) -> Index:
    """Every query attends to every key."""
    return (i >= 0) & (j >= 0)


@family("causal", "vaswani2017attention")
def causal(i: Index, j: Index) -> Index:
    """No query sees the future."""
    return i >= j


@family("band", radius=Domain(0, 3, "w", _RADIUS))
def band(i: Index, j: Index, *, radius: int) -> Index:
    """The neighbours up to `radius` tokens away on both sides, and the query itself."""
    return abs(i - j) <= radius


@family(
    "sliding window",
    "child2019generating",
    lookback=Domain(0, 8, r"\ell", "how many tokens before itself a query may use"),
)
def sliding_window(i: Index, j: Index, *, lookback: int) -> Index:
    """The query itself and the `lookback` tokens before it: lookback + 1 keys."""
    return (i >= j) & (i - j <= lookback)


@family(
    "dilated",
    radius=Domain(0, 3, "w", _RADIUS),
    dilation=_count(2, "r", "how far apart the allowed keys stand"),
)
def dilated(i: Index, j: Index, *, radius: int, dilation: int) -> Index:
    """A band with holes: `radius` keys on each side, every `dilation`-th token."""
    return (abs(i - j) <= radius * dilation) & ((i - j) % dilation == 0)


@family(
    "column",
    "child2019generating",
    stride=_count(8, r"\ell", "how far apart the allowed keys stand"),
)
def column(i: Index, j: Index, *, stride: int) -> Index:
    """Every `stride`-th token back from the query: the pixels above it when a row has `stride`."""
    return (i >= j) & ((i - j) % stride == 0)


@family("own block", "child2019generating", block=_count(8, r"\ell", _BLOCK))
def own_block(i: Index, j: Index, *, block: int) -> Index:
    """The query's own block up to the query."""
    return (i >= j) & (i // block == j // block)


@family(
    "summary columns",
    "child2019generating",
    block=_count(8, r"\ell", _BLOCK),
    summary=Domain(1, 1, "c", _SUMMARY, high=lambda v: v["block"]),
)
def summary_columns(i: Index, j: Index, *, block: int, summary: int) -> Index:
    """The last `summary` positions of every block, up to the query; early rows have none."""
    return (i >= j) & (j % block >= block - summary)


@family("block local", block=_count(8, "b", _BLOCK))
def block_local(i: Index, j: Index, *, block: int) -> Index:
    """Everything in the query's own block, before and after it."""
    return i // block == j // block


@family(
    "global tokens",
    count=_tokens(2, "g", _GLOBAL),
)
def global_tokens(i: Index, j: Index, *, count: int) -> Index:
    """The first `count` tokens see all and are seen by all."""
    return (i < count) | (j < count)


@family(
    "random keys",
    "zaheer2020big",
    count=Domain(1, 3, "r", "how many keys each query has", high=lambda v: v[LENGTH]),
    seed=_SEED,
)
def random_keys(i: Index, j: Index, *, count: int, seed: int = 0, length: int) -> Index:
    """Exactly `count` distinct keys in every row, one drawn in each of `count` equal stretches of
    the sequence, which start at a random place. A formula: the same in Python and in a browser."""
    width = length // count
    turned = (j + hash_of(i, seed)) % length
    stretch = turned // width
    return (stretch < count) & (turned % width == hash_of(i, seed, stretch + 1) % width)


@family(
    "blockwise",
    "qiu2019blockwise",
    permutation=Domain(
        0, (1, 2, 3, 0), r"\pi", "the key block that each query block uses", is_list=True
    ),
)
def blockwise(i: Index, j: Index, *, permutation: Any, length: int) -> Index:
    """The sequence in n near-equal blocks; query block b uses key block permutation[b] and no
    other. n is the length of the permutation."""
    blocks = permutation.shape[0]
    return permutation[i * blocks // length] == j * blocks // length


# --- images --------------------------------------------------------------------------------------


@family(
    "image, 1-D memory",
    "parmar2018image",
    block=_count(8, "l_q", _BLOCK),
    memory=Domain(0, 8, "l_m", "how many tokens before the block its queries may use too"),
)
def image_1d(i: Index, j: Index, *, block: int, memory: int) -> Index:
    """The query's own block up to the query, and the `memory` tokens in front of that block."""
    return (i >= j) & (j >= i // block * block - memory)


_RECTANGLES = {
    "h_q": _count(4, "h_q", "height of a block of queries, in pixels"),
    "w_q": _count(4, "w_q", "width of a block of queries, in pixels"),
    "h_m": Domain(0, 2, "h_m", "how many rows above the block its queries may use too"),
    "w_m": Domain(0, 2, "w_m", "how many columns beside the block its queries may use too"),
}


def _seen(y: Index, x: Index, v: Index, u: Index, *, earlier: Index, **sizes: int) -> Index:
    """Whether the pixel in row y, column x may use the one in row v, column u. `earlier` says it
    for two pixels of one block."""
    h_q, w_q, h_m, w_m = (sizes[name] for name in _RECTANGLES)
    top, left = y // h_q * h_q, x // w_q * w_q
    above = (v >= top - h_m) & (v < top) & (u >= left - w_m) & (u < left + w_q + w_m)
    own = (u >= left) & (u < left + w_q) & earlier
    beside = (u >= left - w_m) & (u < left)
    return above | ((v >= top) & (v < top + h_q) & (own | beside))


@family(
    "image, 2-D memory",
    "parmar2018image",
    width=_count(8, "W", "how many pixels a row of the image has"),
    **_RECTANGLES,
)
def image_2d(i: Index, j: Index, *, width: int, h_q: int, w_q: int, h_m: int, w_m: int) -> Index:
    """An image of `width` columns, read row by row, in blocks of h_q × w_q pixels: the own block up
    to the query, w_m columns beside it on the left, and h_m rows above it, w_m columns wider on
    both sides. Blocks come one after the other, so that some keys have a larger number."""
    return _seen(
        *(i // width, i % width, j // width, j % width),
        **{"earlier": i >= j, "h_q": h_q, "w_q": w_q, "h_m": h_m, "w_m": w_m},
    )


@family(
    "image, 2-D memory, block by block",
    "parmar2018image",
    columns=_count(2, "n", "how many blocks stand side by side"),
    **_RECTANGLES,
)
def image_2d_blocks(
    i: Index, j: Index, *, columns: int, h_q: int, w_q: int, h_m: int, w_m: int
) -> Index:
    """`image_2d` with the pixels numbered in the order in which they are made: block after block,
    `columns` blocks in a row of them, and row by row in each. Here no key has a larger number."""
    size = h_q * w_q
    return _seen(
        i // size // columns * h_q + i % size // w_q,
        i // size % columns * w_q + i % w_q,
        j // size // columns * h_q + j % size // w_q,
        j // size % columns * w_q + j % w_q,
        **{"earlier": i >= j, "h_q": h_q, "w_q": w_q, "h_m": h_m, "w_m": w_m},
    )


# --- named compounds -----------------------------------------------------------------------------


@compound(
    "strided (Sparse Transformer)",
    "child2019generating",
    stride=_count(8, r"\ell", "how many tokens a row has"),
)
def strided(i: Index, j: Index, *, stride: int) -> Index:
    """Both factors of strided attention in one head: the row before and the column above."""
    return sliding_window.formula(i, j, lookback=stride) | column.formula(i, j, stride=stride)


@compound(
    "fixed (Sparse Transformer)",
    "child2019generating",
    block=_count(8, r"\ell", _BLOCK),
    summary=Domain(1, 1, "c", _SUMMARY, high=lambda v: v["block"]),
)
def fixed(i: Index, j: Index, *, block: int, summary: int) -> Index:
    """Both factors of fixed attention in one head: the own block and every block's summary."""
    own = own_block.formula(i, j, block=block)
    return own | summary_columns.formula(i, j, block=block, summary=summary)


@compound(
    "Longformer",
    "beltagy2020longformer",
    radius=Domain(0, 4, "w", _RADIUS),
    n_global=_tokens(1, "g", _GLOBAL),
)
def longformer(i: Index, j: Index, *, radius: int, n_global: int) -> Index:
    """A band and global tokens. The paper's window w counts both sides: radius = w / 2."""
    return band.formula(i, j, radius=radius) | global_tokens.formula(i, j, count=n_global)


@compound(
    "ETC",
    "ainslie2020etc",
    radius=Domain(0, 4, "w", _RADIUS),
    n_global=_tokens(4, "n_g", _GLOBAL),
)
def etc(i: Index, j: Index, *, radius: int, n_global: int) -> Index:
    """A separate global input of `n_global` tokens, here the first ones, and a long input with a
    band. As a set of pairs it is Longformer's; ETC differs in what the four pieces g2g, g2l, l2g
    and l2l learn, and masks some of them with further knowledge: `etc(…) & …`."""
    return longformer.formula(i, j, radius=radius, n_global=n_global)


@compound("Star-Transformer", "guo2019star")
def star(i: Index, j: Index) -> Index:
    """Neighbours on both sides and one relay token that is linked with everybody."""
    return longformer.formula(i, j, radius=1, n_global=1)


@family(
    "window of blocks",
    "zaheer2020big",
    block=_count(4, "b", _BLOCK),
    window=_WINDOW,
)
def block_window(i: Index, j: Index, *, block: int, window: int) -> Index:
    """The query's block and `window` blocks on each side."""
    return band.formula(i // block, j // block, radius=window)


@family(
    "global blocks",
    "zaheer2020big",
    block=_count(4, "b", _BLOCK),
    count=_GLOBAL_BLOCKS,
)
def global_blocks(i: Index, j: Index, *, block: int, count: int, length: int) -> Index:
    """The first `count` and the last `count` blocks see all and are seen by all."""
    last = (length - 1) // block
    row, key = i // block, j // block
    return (row < count) | (key < count) | (row > last - count) | (key > last - count)


@family(
    "random blocks",
    "zaheer2020big",
    block=_count(4, "b", _BLOCK),
    count=_RANDOM_BLOCKS,
    seed=_SEED,
)
def random_blocks(
    i: Index, j: Index, *, block: int, count: int, seed: int = 0, length: int
) -> Index:
    """Exactly `count` whole blocks of keys for every block of queries."""
    blocks = (length - 1) // block + 1
    return random_keys.formula(i // block, j // block, count=count, seed=seed, length=blocks)


@compound(
    "Big Bird",
    "zaheer2020big",
    block=_count(4, "b", _BLOCK),
    window=_WINDOW,
    n_global=_GLOBAL_BLOCKS,
    n_random=_RANDOM_BLOCKS,
    seed=_SEED,
)
def bigbird(
    i: Index,
    j: Index,
    *,
    block: int,
    window: int,
    n_global: int,
    n_random: int,
    seed: int = 0,
    length: int,
) -> Index:
    """Windows, global blocks and random blocks, all in units of blocks (the ITC form: the global
    blocks are the first and the last `n_global`; the paper's window of 3 blocks is window = 1)."""
    return (
        block_window.formula(i, j, block=block, window=window)
        | global_blocks.formula(i, j, block=block, count=n_global, length=length)
        | random_blocks.formula(i, j, block=block, count=n_random, seed=seed, length=length)
    )


# --- for menus and browsers ----------------------------------------------------------------------

PRESETS: dict[str, Pattern] = {
    "full": full(),
    "causal": causal(),
    "band": band(radius=3),
    "sliding window": sliding_window(lookback=8),
    "dilated": dilated(radius=3, dilation=4),
    "block local": block_local(block=8),
    "global tokens": global_tokens(count=2),
    "random keys": random_keys(count=3, seed=0),
    "Image Transformer, 1-D": image_1d(block=8, memory=8),
    "Image Transformer, 2-D": image_2d(width=8, h_q=4, w_q=4, h_m=2, w_m=2),
    "Sparse Transformer, strided": strided(stride=8),
    "Sparse Transformer, strided, first factor": sliding_window(lookback=8),
    "Sparse Transformer, strided, second factor": column(stride=8),
    "Sparse Transformer, fixed": fixed(block=8, summary=1),
    "Sparse Transformer, fixed, first factor": own_block(block=8),
    "Sparse Transformer, fixed, second factor": summary_columns(block=8, summary=1),
    "Blockwise": blockwise(permutation=(1, 2, 3, 0)),
    "Longformer": longformer(radius=4, n_global=1),
    "Big Bird": bigbird(block=4, window=1, n_global=1, n_random=1, seed=0),
    "ETC": etc(radius=4, n_global=4),
    "Star-Transformer": star(),
}
"""A first position of the sliders for every named pattern."""


def described(family_: Family) -> dict[str, Any]:
    """A family as JSON for the explorers: names, ranges, words."""
    formula = family_.formula
    return {
        "title": family_.title,
        "doc": inspect.cleandoc(family_.function.__doc__ or ""),
        "args": formula.indices + formula.parameters,
        "text": formula.text(),
        "params": {
            name: {
                "min": domain.low,
                "max": None,
                "default": list(domain.default)
                if isinstance(domain.default, tuple)
                else domain.default,
                "type": "list" if domain.is_list else "int",
                "letter": domain.letter,
            }
            for name, domain in family_.domains.items()
        },
    }


def browser_catalogue() -> dict[str, Any]:
    """All families and presets as JSON for the explorers."""
    families = {name: described(family_) for name, family_ in FAMILIES.items()}
    return {"families": families, "presets": {t: p.spec() for t, p in PRESETS.items()}}
