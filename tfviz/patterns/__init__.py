"""Attention patterns: which keys j a query i may use.

A position-based pattern is one function of the indices, typed once in `families`.
`strided(8)` or `strided(stride=8)` gives a `Pattern` with all its faces (mask, key sets, mask_mod,
LaTeX, JavaScript, cost, reach); `strided.formula(i, j, stride=8)` is the formula on numbers, and
`help(strided)` says what its parameters mean. Patterns combine with `&`, `|`, `~` and `per_head`;
content-based sets become a `table`.

Conventions: 0-based indices, rows are queries, True = may attend. `radius` is symmetric, `lookback`
excludes the query itself, `stride` and `dilation` are distances, `block` is a length in tokens.
"""

from tfviz.patterns.families import *  # every formula of that room, none listed twice
from tfviz.patterns.families import PRESETS, browser_catalogue
from tfviz.patterns.family import FAMILIES, Domain, Family, Leaf, family, from_spec
from tfviz.patterns.inverse import Found, Search, impossible, least_hops, search
from tfviz.patterns.pattern import LENGTH, Combined, Pattern, PerHead, Table, per_head, table
from tfviz.patterns.reach import influence, reach

__all__ = [
    "FAMILIES",
    "LENGTH",
    "PRESETS",
    "Domain",
    "Family",
    "Found",
    "Pattern",
    "Search",
    "family",
    "from_spec",
    "impossible",
    "influence",
    "least_hops",
    "per_head",
    "reach",
    "search",
    "table",
    *(name for name, thing in globals().items() if isinstance(thing, Family)),
]


def __dir__() -> list[str]:
    return sorted(__all__)
