"""How many public models have what, and which: counts over all of `models.toml`.

>>> len(using("latent_attention"))
10
>>> names(using("latent_attention"), 3)
'GLM-5, Kimi K2 and DeepSeek-V3.2'
>>> percent(share(2025, "mixture_of_experts"))
'76 %'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from tfviz import anatomy, catalogue
from tfviz.anatomy.record import Anatomy

__all__ = ["families", "head_schemes", "names", "percent", "said", "scheme", "share", "using"]


FEATURES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "rms_norm": lambda f: f.get("norm", "rms") == "rms",
    "gated_feed": lambda f: f.get("gated", True) and bool({*f["feeds"]} & {*"de"}),
    "pre_norm": lambda f: f.get("place", "pre") == "pre",
}
"""What texts count beside mechanisms, by its name and the fields of a model."""


@cache
def everything() -> tuple[Anatomy, ...]:
    """All models, best known first: those on the list, then by year from the newest, then by size.

    The first model of each family comes before the second of any.
    """
    models = [anatomy.of(model) for model in anatomy.names()]
    models.sort(key=lambda a: (not a.facts.get("listed"), -(a.year or 0), -a.parameters.total))
    first = {a.family: a for a in reversed(models)}
    return tuple(sorted(models, key=lambda a: first[a.family] is not a))


def has(a: Anatomy) -> set[str]:
    """Ids of what a model has: mechanisms, and those of `FEATURES`."""
    return {*a.uses} | {name for name, test in FEATURES.items() if test(a.fields)}


def using(*mechanisms: str) -> tuple[Anatomy, ...]:
    """The models that have one of these mechanisms or features, best known first.

    Raises KeyError for a name that neither a model nor the catalogue has.
    """
    known = {name for a in everything() for name in has(a)}
    for name in mechanisms:
        if name not in known and all(row.id != name for row in catalogue.MECHANISMS):
            near = ", ".join(get_close_matches(name, known)) or "see tfviz.catalogue.MECHANISMS"
            raise KeyError(f"no mechanism {name!r}; nearest: {near}")
    return tuple(a for a in everything() if has(a) & {*mechanisms})


def names(models: Sequence[Anatomy], most: int = 3) -> str:
    """The names of the first models, as a sentence says them."""
    told = [short_name(a) for a in models[:most]]
    return " and ".join(x for x in (", ".join(told[:-1]), *told[-1:]) if x)


def short_name(a: Anatomy) -> str:
    """Its name without what follows it in brackets or after a comma."""
    return re.split(r" \(|, ", a.name)[0]


def families(since: int, *mechanisms: str) -> frozenset[str]:
    """Families of models that write text, of this year or later; with mechanisms, those families
    of which one model uses one of them."""
    models = using(*mechanisms) if mechanisms else everything()
    writing = (a for a in models if {"decoding_strategies", "lm_objectives"} <= {*a.uses})
    return frozenset(a.family for a in writing if (a.year or 0) >= since)


def share(since: int, *mechanisms: str) -> float:
    """The share of these families in which one of these mechanisms is used, from 0 to 1."""
    return len(families(since, *mechanisms)) / len(families(since))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


# --- heads ----------------------------------------------------------------------------------------

SCHEMES = {
    "latent_attention": "MLA",
    "grouped_query_attention": "GQA",
    "multi_query_attention": "MQA",
    "multi_head_attention": "MHA",
}


def scheme(a: Anatomy) -> str:
    """How the heads of a model share keys: MHA, GQA, MQA or MLA; "" if it has no heads."""
    return next((short for id, short in SCHEMES.items() if id in a.uses), "")


def head_schemes(models: Iterable[str]) -> str:
    """A table in Markdown: the heads of each model, and the numbers that a layer keeps of a token.

    Raises KeyError for a model that is not known, ValueError for one whose layers have different
    heads, which a line of this table cannot say.
    """
    lines = [
        "| model | scheme | query heads | KV heads | width $d_h$ "
        "| numbers kept for a token, in a layer |",
        "|---|---|---|---|---|---|",
    ]
    for a in map(anatomy.of, models):
        attending = [layer for layer in a.layers if layer.heads]
        if len({layer.heads for layer in attending}) != 1:
            raise ValueError(f"model = {a.id!r}: its layers have different heads; leave it out")
        heads = attending[0].heads
        assert heads
        key, value = heads.key_width, heads.value_width
        some = f", {len(attending)} of {len(a.layers)} layers"
        kept = a.cache(1, bits=8).parts["keys and values"] // len(attending)
        cells = (
            short_name(a) + (some if len(attending) < len(a.layers) else ""),
            scheme(a),
            f"{heads.queries}",
            "–" if scheme(a) == "MLA" else f"{heads.keys}",
            f"{key}" if key == value else f"{key} for keys, {value} for values",
            f"{kept:,}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# --- numbers of a text ----------------------------------------------------------------------------


def said(words: str) -> str:
    """What a text of the book says of these models: a number, or names.

    models                     how many models there are
    using rope …               how many of them use a mechanism, or one of several
    names rope                 three of those
    groups 8                   how many have grouped queries, and so many KV heads in some layer
    families 2025              how many families of that year or later write text
    share 2025 rope …          in how many percent of these families one of the mechanisms is used

    Raises ValueError for anything else, KeyError for a mechanism that is not known.
    """
    kind, *rest = words.split() or [""]
    if kind == "models" and not rest:
        return str(len(everything()))
    if kind == "using" and rest:
        return str(len(using(*rest)))
    if kind == "names" and rest:
        return names(using(*rest))
    if kind == "groups" and len(rest) == 1:
        counts = [
            {str(layer.heads.keys) for layer in a.layers if layer.heads}
            for a in using("grouped_query_attention")
        ]
        return str(sum(rest[0] in keys for keys in counts))
    if kind == "families" and len(rest) == 1 and rest[0].isdigit():
        return str(len(families(int(rest[0]))))
    if kind == "share" and len(rest) > 1 and rest[0].isdigit():
        return percent(share(int(rest[0]), *rest[1:]))
    raise ValueError(
        f"{words!r} is not counted; choose models, using …, names …, groups N, families YEAR or "
        "share YEAR …"
    )
