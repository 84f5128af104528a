"""Models taken apart: those of `models.toml` by their names, others by their configurations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tfviz.anatomy.configs import guessed, read_fields
from tfviz.anatomy.keys import UnknownFamilyError, nearest, opened
from tfviz.anatomy.layers import STATES, expanded
from tfviz.anatomy.record import Anatomy
from tfviz.anatomy.stored import models

__all__ = ["names", "of", "understood"]

FACTS = (
    *("id", "name", "year", "family", "listed", "published", "published_as", "published_active"),
    *("source", "positions_source", "note", "why", "conflict", "beside"),
)
"""Keys of an entry that are no fields."""


def names(listed: bool = False) -> tuple[str, ...]:
    """The ids of all models that are known, in the order of their years, or of the listed alone."""
    return tuple(id for id, entry in models().items() if entry.get("listed") or not listed)


def of(model: str) -> Anatomy:
    """A public model of `models.toml`, taken apart. Raises KeyError for others, naming some."""
    if model not in models():
        by_name = {entry["name"].lower(): id for id, entry in models().items()}
        if str(model).lower() not in by_name:
            near = nearest(str(model).lower(), models())
            raise KeyError(f"model = {model!r:.80} is not known; nearest: {near}")
        model = by_name[str(model).lower()]
    entry = models()[model]
    facts = {name: entry[name] for name in FACTS if name in entry}
    fields = whole({name: value for name, value in entry.items() if name not in FACTS})
    return Anatomy(
        id=model,
        name=entry["name"],
        year=entry["year"],
        family=entry["family"],
        fields=MappingProxyType(fields),
        facts=MappingProxyType(facts),
    )


def understood(config: Mapping[str, Any]) -> Anatomy:
    """The model of a configuration, and all of it that is counted has been counted once.

    Raises ValueError for what is no configuration, lacks a size or cannot be counted.
    """
    written, _ = opened(config)
    family = str(written.get("model_type") or "a model without model_type")
    try:
        model = _read(config, written, family)
        counted: list[Any] = [model.layers, model.uses, model.beyond]
        if not model.refused:
            counted += [model.parameters, model.cache(1), model.convolutions(), model.longest(1)]
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f"config holds a value that does not fit a model of the family {family:.80}; "
            "compare it with a config.json that is published"
        ) from error
    return model


def _read(config: Mapping[str, Any], written: Mapping[str, Any], family: str) -> Anatomy:
    stored = ("dtype", "torch_dtype", "quantization_config")
    facts = MappingProxyType({name: written[name] for name in stored if written.get(name)})
    try:
        fields, keys, family = read_fields(config)
    except UnknownFamilyError:
        fields, keys, doubts, refused = guessed(config)
        return Anatomy(
            id="",
            name=family,
            year=None,
            family=family,
            fields=MappingProxyType(fields),
            facts=facts,
            guess=True,
            doubts=doubts,
            refused=refused,
            unread=keys.unread,
        )
    return Anatomy(
        id="",
        name=str(written.get("_name_or_path") or family),
        year=None,
        family=family,
        fields=MappingProxyType(fields),
        facts=facts,
        unread=keys.unread,
        assumed=tuple(sorted(keys.assumed)),
    )


def whole(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an entry, with one letter for each layer and nothing left to its default.

    Raises ValueError where runs of layers are not as many as the blocks.
    """
    f, blocks = dict(entry), entry["blocks"]
    f["layers"] = expanded(f.get("layers", "F"), blocks)
    f["feeds"] = expanded(f.get("feeds", "d"), blocks)
    positions = expanded(f.get("positions", "R"), blocks)
    plain = f"{STATES}-"
    f["positions"] = "".join(
        "-" if x in plain else p for x, p in zip(f["layers"], positions, strict=True)
    )
    for name in ("norms", "feed_widths"):
        if isinstance(f.get(name), list):
            f[name] = [value for times, value in f[name] for _ in range(times)]
            if len(f[name]) != blocks:
                raise ValueError(f"{name} are {len(f[name])}, and blocks = {blocks}; correct one")
    rope = f.get("rope", {})
    f["rope"] = {"all": rope} if "base" in rope else rope
    if "encoder" in f:
        f["encoder"] = whole(f["encoder"])
    return f
