"""The spine of the course: one row for every mechanism, read from ``catalogue.toml``.

The atlas, the family tree, the card that opens each mechanism in a chapter and the consistency
test all read these rows, so a fact about a mechanism is written down once.

    >>> from tfviz import catalogue
    >>> catalogue.get("longformer").year
    2020
    >>> len(catalogue.MECHANISMS)
    93
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

CHANGES: Mapping[str, str] = MappingProxyType(
    {
        "tokens": "what a token is",
        "position": "how the order of tokens is given",
        "scores": "how a query is compared with a key",
        "mask": "which keys a query may use",
        "keys_values": "the keys and values",
        "heads": "how many heads there are and how they are joined",
        "mlp": "the feed-forward layer",
        "norm_residual": "normalisation and skip connections",
        "depth": "how many layers are run",
        "memory": "what is remembered beyond the input",
        "objective": "what is trained for",
        "decoding": "how an answer is read out",
        "whole": "the arrangement of the whole",
    }
)
"""The parts of a Transformer block that a mechanism can change, in words."""

GROWTH: Mapping[str, str] = MappingProxyType(
    {
        "none": "does not grow with L",
        "linear": "in proportion to L",
        "between": "faster than L, slower than L²",
        "quadratic": "with L²",
    }
)
"""How the time of a mechanism grows with the length of the sequence.

Other sizes stay fixed unless the paper ties them to L, like a stride or a number of clusters ≈ √L.
"""

PEERS: Mapping[str, str] = MappingProxyType(
    {
        "labml": "labml.ai annotated papers",
        "lucid": "packages by lucidrains, x-transformers among them",
        "HF": "Hugging Face transformers, any release",
        "fairseq": "fairseq, its examples included",
        "t2t": "tensor2tensor",
        "xf": "xformers, before its components were removed",
        "fast": "fast-transformers",
    }
)
"""Seven public libraries in which a reader may look for a mechanism."""

PROVENANCE: Mapping[str, str] = MappingProxyType(
    {
        "checked": "formula compared with an independent source or with public code",
        "partly checked": "formula compared in part",
        "recalled": "formula written down from general knowledge",
        "concept": "an idea, not a formula",
    }
)


@dataclass(frozen=True, eq=False)
class Part:
    """One of the nine parts; `id` is the name of its folder."""

    id: str
    title: str


@dataclass(frozen=True, eq=False)
class Chapter:
    """One of the 32 chapters."""

    number: int
    part: str
    stem: str
    title: str

    @property
    def document(self) -> str:
        """Path of the lesson without its ending, from the root of the repository."""
        return f"chapters/{self.part}/{self.stem}"


@dataclass(frozen=True, eq=False)
class Mechanism:
    """One row of the catalogue.

    id              snake case; label of the section, and stem of module and test
    name, short     in full, and in a word or two for a picture
    year, bibkey    first public version of the paper; key in ``book/references.bib``
    also            keys of further papers
    part, part_title, chapter, chapter_number, chapter_title     where it stands in the course
    idea            one sentence in our own words
    changes         words of `CHANGES`: what it does to the Transformer block
    time, memory    LaTeX, for one layer unless it says otherwise
    growth          a word of `GROWTH`: the time against L
    formula         True if it is a plain formula of positions (of i and j, or of i and a feature)
    builds_on       ids worth reading first; none is younger
    libraries       peer -> "full", "partial" or "none"; empty for a concept
    provenance      a word of `PROVENANCE`
    reconstruction  True where no source confirms every detail and the lesson must say so
    weight          "full", or "brief": its section has about two screens, and the rest in one fold
    status          "planned" or "built"; the rest is for built rows only:
    module          dotted name of the module that holds it
    explorers       keys of ``tfviz.explorers.ALL`` that its section uses
    exercises       labels of its exercises
    """

    id: str
    name: str
    short: str
    year: int
    bibkey: str
    also: tuple[str, ...]
    part: str
    part_title: str
    chapter: str
    chapter_number: int
    chapter_title: str
    idea: str
    changes: tuple[str, ...]
    time: str
    memory: str
    growth: str
    formula: bool
    builds_on: tuple[str, ...]
    libraries: Mapping[str, str]
    provenance: str
    reconstruction: bool
    weight: str
    status: str
    module: str | None
    explorers: tuple[str, ...]
    exercises: tuple[str, ...]

    @property
    def built(self) -> bool:
        return self.status == "built"

    @property
    def document(self) -> str:
        """Path of its lesson without the ending, from the root of the repository."""
        return f"chapters/{self.part}/{self.chapter}"

    @cached_property
    def test(self) -> str | None:
        """Path of the file that tests it, from the root of the repository."""
        if self.module is None:
            return None
        return f"tests/{self.part}/test_{self.module.rsplit('.', 1)[1]}.py"


_LISTS = ("also", "changes", "builds_on", "full", "partial", "explorers", "exercises")
_OPTIONAL = {*_LISTS, "reconstruction", "weight", "module"} - {"changes"}
_REQUIRED = {
    *("id", "name", "short", "year", "bibkey", "chapter", "idea", "changes", "time", "memory"),
    *("growth", "formula", "provenance", "status"),
}
_BUILT_ONLY = {"module", "explorers", "exercises"}


def _row(
    data: dict[str, Any], chapters: Mapping[int, Chapter], parts: Mapping[str, Part]
) -> Mechanism:
    where = f"catalogue.toml, mechanism {data.get('id', '(without id)')!r}"
    if missing := sorted(_REQUIRED - data.keys()):
        raise ValueError(f"{where}: missing {', '.join(missing)}")
    if unknown := sorted(data.keys() - _REQUIRED - _OPTIONAL):
        raise ValueError(f"{where}: unknown field {', '.join(unknown)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", data["id"]):
        raise ValueError(f"{where}: an id is lower-case letters, digits and underscores")
    data = {"weight": "full", **data}
    words = {"growth": GROWTH, "provenance": PROVENANCE, "status": ("planned", "built")}
    for field, allowed in (words | {"weight": ("full", "brief")}).items():
        if data[field] not in allowed:
            raise ValueError(f"{where}: {field} = {data[field]!r}, must be one of {list(allowed)}")
    lists: dict[str, Any] = {field: tuple(data.get(field, ())) for field in _LISTS}
    for field, allowed in {"changes": CHANGES, "full": PEERS, "partial": PEERS}.items():
        if wrong := [word for word in lists[field] if word not in allowed]:
            raise ValueError(f"{where}: {field} has {wrong}, must be among {list(allowed)}")
    if not lists["changes"]:
        raise ValueError(f"{where}: changes is empty, name one of {list(CHANGES)}")
    if data["status"] == "planned" and (early := sorted(_BUILT_ONLY & data.keys())):
        raise ValueError(f"{where}: planned rows have no {', '.join(early)}")
    if data["chapter"] not in chapters:
        raise ValueError(f"{where}: chapter = {data['chapter']!r}, must be 1 to {len(chapters)}")
    chapter = chapters[data["chapter"]]

    def mark(peer: str) -> str:
        return (
            "full" if peer in lists["full"] else "partial" if peer in lists["partial"] else "none"
        )

    concept = data["provenance"] == "concept"
    module = data.get("module", f"tfviz.{chapter.part}.{data['id']}")
    return Mechanism(
        **{field: data[field] for field in _REQUIRED - {"chapter", "changes"}},
        **{field: lists[field] for field in _LISTS if field not in ("full", "partial")},
        part=chapter.part,
        part_title=parts[chapter.part].title,
        chapter=chapter.stem,
        chapter_number=chapter.number,
        chapter_title=chapter.title,
        libraries=MappingProxyType({} if concept else {peer: mark(peer) for peer in PEERS}),
        reconstruction=data.get("reconstruction", False),
        weight=data["weight"],
        module=module if data["status"] == "built" else None,
    )


def load(text: str) -> tuple[tuple[Part, ...], tuple[Chapter, ...], tuple[Mechanism, ...]]:
    """Parts, chapters and mechanisms from the text of a catalogue file; checked, in its order."""
    data = tomllib.loads(text)
    parts = {p["id"]: Part(**p) for p in data["part"]}
    chapters = {c["number"]: Chapter(**c) for c in data["chapter"]}
    for chapter in chapters.values():
        if chapter.part not in parts:
            raise ValueError(f"catalogue.toml, chapter {chapter.number}: no part {chapter.part!r}")
    rows: dict[str, Mechanism] = {}
    for entry in data["mechanism"]:
        row = _row(entry, chapters, parts)
        if row.id in rows:
            raise ValueError(f"catalogue.toml: two rows have the id {row.id!r}")
        rows[row.id] = row
    for row in rows.values():
        if lost := [name for name in row.builds_on if name not in rows]:
            raise ValueError(f"catalogue.toml, mechanism {row.id!r}: builds_on unknown {lost}")
    return tuple(parts.values()), tuple(chapters.values()), tuple(rows.values())


PARTS, CHAPTERS, MECHANISMS = load(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))
_BY_ID = {row.id: row for row in MECHANISMS}


def get(id: str) -> Mechanism:
    """The row with this id; a `KeyError` that names near misses if there is none."""
    if id in _BY_ID:
        return _BY_ID[id]
    names = {row.name.lower(): row.id for row in MECHANISMS}
    names |= {row.short.lower(): row.id for row in MECHANISMS} | {key: key for key in _BY_ID}
    near = difflib.get_close_matches(str(id).lower(), names, n=4, cutoff=0.5)
    near += [name for name in names if str(id).lower() in name][:3]
    hint = ", ".join(repr(name) for name in dict.fromkeys(names[name] for name in near))
    raise KeyError(
        f"no mechanism {id!r} in the catalogue; "
        + (f"did you mean {hint}?" if hint else "tfviz.catalogue.MECHANISMS lists all of them")
    )


def by_part() -> dict[str, tuple[Mechanism, ...]]:
    """Part id -> its mechanisms, both in the order of the course."""
    return {part.id: tuple(row for row in MECHANISMS if row.part == part.id) for part in PARTS}
