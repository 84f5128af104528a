"""The stored GPT of letters for a page: what JavaScript needs to run it, and what it must find.

>>> len(for_page()["weights"]["shapes"]), exact().embed.weight.dtype
(27, torch.float64)
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz.models.gpt import GPT
from tfviz.stored import letter_gpt as letters
from tfviz.stored import page_gpt


@cache
def exact() -> GPT:
    """The stored model in double precision, its positions too."""
    return page_gpt.in_double(letters.trained())


def for_page() -> dict[str, Any]:
    """The model for `alive`, in half precision, and its letters; `longest` is what it was trained
    on."""
    told = page_gpt.handed_over(letters.trained(), "half")
    return {**told, "longest": letters.GPT_LENGTH, "letters": letters.ALPHABET.letters}


def readable(name: str, text: str, least: int, most: int) -> str:
    """`text`. Raises ValueError unless the model can read it: its letters, and so many of them."""
    _arguments.integer(f"length of {name}", len(text), least, most)
    if other := sorted(set(text) - set(letters.ALPHABET.letters)):
        raise ValueError(
            f"{name} = {text!r} has {''.join(other)!r}, which the model has never read; give "
            "small letters from a to z and spaces"
        )
    return text


FULL = 65535  # a weight travels as a whole number of this size


def pack_maps(A: Float[Tensor, "layers heads L L"]) -> str:
    """The causal half of attention weights, row after row, two bytes for a weight."""
    i, j = torch.tril_indices(*A.shape[-2:]).unbind()
    whole = (A[..., i, j] * FULL).round().int()
    return base64.b64encode(whole.numpy().astype("<u2").tobytes()).decode()


def unpack_maps(text: str, shape: Sequence[int], L: int) -> Float[Tensor, "layers heads L L"]:
    """The weights again, zero where j > i; `shape` is that of layers and heads."""
    raw = bytearray(base64.b64decode(text))
    A: Tensor = torch.zeros(*shape, L, L, dtype=torch.float64)
    i, j = torch.tril_indices(L, L).unbind()
    A[..., i, j] = torch.frombuffer(raw, dtype=torch.uint16).double().view(*shape, -1) / FULL
    return A
