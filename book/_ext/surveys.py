"""What the course knows of the surveys: their headings, and what they claim.

book/headings.toml holds the headings, in the order of the five sources, with what answers each:
mechanisms of the catalogue, a term of the glossary, or a page. book/claims.toml holds every claim
that can be checked, with a verdict.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tfviz import catalogue

HEADINGS, CLAIMS = "book/headings.toml", "book/claims.toml"

SOURCES = ("Weng 2020", "Weng 2023", "Beyer 2022", "Ghaderi 2023", "a reader's notes")
SOURCE_KEYS = {
    "Weng 2020": "weng2020transformer",
    "Weng 2023": "weng2023transformer",
    "Beyer 2022": "beyer2022transformers",
    "Ghaderi 2023": "ghaderi2023map",
}

TITLE, OWN_NAME, OTHER_NAME = 2000, 1500, 1000
"""What a name is worth to the search: a survey's own heading, the name of a mechanism in the
catalogue, or another word for it."""


@dataclass(frozen=True)
class Heading:
    """A heading of a source, and the one thing that answers it: mechanisms, a term or a page."""

    source: str
    title: str
    mechanisms: tuple[str, ...] = ()
    term: str = ""
    page: str = ""
    also: tuple[str, ...] = ()


def load_headings(path: Path) -> list[Heading]:
    """The headings of the file, checked. Raises ValueError that names the heading at fault."""
    headings = []
    for entry in tomllib.loads(path.read_text("utf-8"))["heading"]:
        lists = {key: tuple(entry.get(key, ())) for key in ("mechanisms", "also")}
        heading = Heading(**{**entry, **lists})
        where = f"{path.name}, {heading.source}, {heading.title!r}"
        if heading.source not in SOURCES:
            raise ValueError(f"{where}: unknown source; it must be one of {SOURCES}")
        answers = [heading.mechanisms, heading.term, heading.page]
        if sum(map(bool, answers)) != 1:
            raise ValueError(f"{where}: give mechanisms, a term or a page, and only one of them")
        for name in heading.mechanisms:
            catalogue.get(name)
        headings.append(heading)
    return headings


@cache
def _read(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def taught_patterns(path: Path) -> dict[str, str]:
    """Name of each pattern → the mechanism whose section teaches it."""
    taught: dict[str, str] = _read(path.read_text("utf-8"))["patterns"]
    for mechanism in taught.values():
        catalogue.get(mechanism)
    return taught


def search_names(
    headings: list[Heading], places: Mapping[str, tuple[str, str]]
) -> dict[tuple[str, str], dict[str, int]]:
    """(page, anchor) → {name of a heading: its worth there}.

    `places` says where the answers are, by "mechanism:…", "term:…" and "page:…". A heading with one
    answer is worth more than one that many share, and the first of several more than the last.
    """
    names: dict[tuple[str, str], dict[str, int]] = {}
    for heading in headings:
        answers = [f"mechanism:{name}" for name in heading.mechanisms]
        answers += [f"term:{heading.term}"] * bool(heading.term)
        answers += [f"page:{heading.page}"] * bool(heading.page)
        for index, answer in enumerate(answers):
            worth = {name: OTHER_NAME for name in heading.also} | {heading.title: TITLE}
            if answer not in places:  # a book of fewer pages
                continue
            here = names.setdefault(places[answer], {})
            for name, points in worth.items():
                here[name] = max(here.get(name, 0), points - 10 * len(answers) - index)
    return names


VERDICTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "reproduced": (
            "reproduced here",
            "derived, built or measured here, and it holds",
        ),
        "otherwise": (
            "seen otherwise here",
            "derived or measured here, and it does not hold, or not quite",
        ),
        "paper": ("the paper's figure", "the paper reports it; we did not repeat it"),
        "unchecked": ("not checked", "the note says why"),
        "wrong": ("wrong", "an erratum says what is meant"),
        "pending": ("pending", "its section is planned, or has not been gone through yet"),
    }
)
"""Verdict → (what the page calls it, what it means)."""


@dataclass(frozen=True)
class Claim:
    """One statement of a survey in our own words, and its verdict.

    `mechanism` is an id of the catalogue, or "" where the statement is about the whole field.
    """

    id: str
    mechanism: str
    sources: tuple[str, ...]
    heading: str
    says: str
    kind: str
    verdict: str
    place: str = ""
    note: str = ""


def load_claims(path: Path) -> list[Claim]:
    """The claims of the file, checked. Raises ValueError that names the claim at fault."""
    claims: dict[str, Claim] = {}
    for entry in tomllib.loads(path.read_text("utf-8"))["claim"]:
        claim = Claim(**{**entry, "sources": tuple(entry["sources"])})
        where = f"{path.name}, {claim.id!r}"
        if claim.id in claims:
            raise ValueError(f"{where}: two claims have this id")
        if claim.verdict not in VERDICTS:
            raise ValueError(f"{where}: verdict = {claim.verdict!r}; it is one of {list(VERDICTS)}")
        if unknown := set(claim.sources) - set(SOURCES):
            raise ValueError(f"{where}: unknown sources {unknown}; they are among {SOURCES}")
        if claim.mechanism:  # a few are about the field as a whole
            catalogue.get(claim.mechanism)
        if (claim.verdict == "pending") == bool(claim.place):
            raise ValueError(f"{where}: a settled claim names its place, a pending one has none")
        if claim.verdict in ("paper", "unchecked", "otherwise") and not claim.note:
            raise ValueError(f"{where}: the verdict {claim.verdict!r} needs a note")
        if claim.verdict == "wrong" and not claim.place.startswith("erratum-"):
            raise ValueError(f"{where}: the place of what is wrong is its erratum")
        claims[claim.id] = claim
    return list(claims.values())
