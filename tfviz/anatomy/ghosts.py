"""What a model would be without what makes its cache small: the fields that differ.

>>> from tfviz import anatomy
>>> seeing_all(anatomy.of("llama-4-scout").fields)["chunk"] >= 2**40
True
>>> with_every_head(anatomy.of("llama-3.1-8b").fields)["attention"]["key_heads"]
32
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfviz.anatomy.layers import STATES

__all__ = ["seeing_all", "with_every_head"]

Fields = Mapping[str, Any]
FAR = 2**40
"""A window that no text fills."""


def seeing_all(f: Fields) -> dict[str, Any] | None:
    """The changes after which every layer attends to all earlier tokens, with its own heads.

    Layers with a state become attention with the heads of the others. None where that cannot be
    said: nothing attends, or keys are summed up.
    """
    layers = f["layers"]
    attends = bool(f.get("attention")) or "F" in f.get("latent_in", {})
    if "compressed" in f or not attends:
        return None
    letters = "".join("F" if letter in STATES else letter for letter in layers)
    return {"layers": letters, "window": FAR, "chunk": FAR}


def with_every_head(f: Fields) -> dict[str, Any] | None:
    """The changes after which, besides, each head has keys and values of its own in every layer:
    no groups, no latent notes, nothing borrowed. None where `seeing_all` is None."""
    changes = seeing_all(f)
    if changes is None:
        return None
    plain = {}
    if f.get("attention"):
        plain = {**f["attention"], "key_heads": f["attention"]["heads"]}
    by_letter = {}
    for letter, other in f.get("attention_in", {}).items():
        by_letter[letter] = {**other, "key_heads": other.get("heads", plain.get("heads"))}
    for letter, other in f.get("latent_in", {}).items():
        latent = {**f["latent"], **other}
        by_letter[letter] = {
            "heads": latent["heads"],
            "key_heads": latent["heads"],
            "head_width": latent["unturned"] + latent["turned"],
            "value_width": latent["value"],
        }
    heads = {"attention": plain, "attention_in": by_letter, "latent_in": {}, "borrowers": 0}
    return {**changes, **heads}
