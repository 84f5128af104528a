"""Layers in short: one letter for each, and runs of letters as models repeat them.

>>> expanded("5W1F x 2, 2W", 14)
'WWWWWFWWWWWFWW'
>>> expanded("F", 3)
'FFF'
"""

from __future__ import annotations

import re

__all__ = ["FEEDS", "MIXERS", "POSITIONS", "STATES", "expanded"]

MIXERS = {
    "F": "full",
    "W": "window",
    "C": "chunk",
    "B": "both ways",
    "b": "both ways, window",
    "P": "full, positionless note",
    "w": "window, keys are values",
    "c": "window, and every few keys as one",
    "H": "window, and very many keys as one",
    "G": "gated delta rule",
    "K": "delta rule, a gate for each feature",
    "S": "Mamba-2",
    "M": "Mamba-1",
    "L": "lightning attention",
    "r": "RWKV-4",
    "v": "RWKV-7",
    "-": "none",
}
"""What mixes tokens in a layer, by its letter."""

STATES = "GKSMLrv"
"""The letters of layers that keep a state of one size, and no keys."""

FEEDS = {
    "d": "dense",
    "e": "experts",
    "a": "dense, steered",
    "r": "RWKV-4 channel mix",
    "v": "RWKV-7 channel mix",
    "-": "none",
}
"""What each token goes through alone, by its letter."""

POSITIONS = {
    "R": "rope",
    "N": "none",
    "L": "learned table",
    "S": "sinusoids",
    "A": "ALiBi",
    "T": "T5 buckets",
    "-": "not an attention layer",
}
"""How a layer is told where tokens stand, by its letter."""


def expanded(short: str, blocks: int) -> str:
    """One letter a layer: "5W1F x 10, 2W" is 62 letters, and a letter alone stands for all layers.

    Raises ValueError for another form, and where this does not make as many letters as blocks.
    """
    if len(short) == 1:
        return short * blocks
    letters = ""
    for group in short.split(","):
        form = re.fullmatch(r"((?:[0-9]*[A-Za-z*-])+)(?: x ([0-9]+))?", group.strip())
        if form is None:
            raise ValueError(f'layers = {short!r}: write runs as in "5W1F x 10, 2W"')
        runs = re.findall(r"([0-9]*)([A-Za-z*-])", form[1])
        letters += "".join(x * int(n or 1) for n, x in runs) * int(form[2] or 1)
    if len(letters) != blocks:
        raise ValueError(
            f"layers = {short!r} are {len(letters)}, and blocks = {blocks}; correct one of them"
        )
    return letters
