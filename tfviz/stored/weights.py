"""Weights as text: packed for a page or a file, and unpacked again.

Packed weights are plain JSON, {numbers, shapes, data}: `shapes` is [[name, size], …] in order, and
`data` holds the numbers, row after row, in base64. `numbers` says how each travels:

    int8     a whole number from −127 to 127 in one byte, times a scale for each row, which is of
             half precision; vectors are of half precision themselves
    half     half precision, two bytes
    exact    double precision, eight bytes

>>> packed = pack({"W": torch.tensor([[0.5, -1.0], [0.0, 0.25]])})
>>> packed["shapes"], len(packed["data"])
([['W', [2, 2]]], 12)
>>> unpack(packed)["W"].round(decimals=2).tolist()
[[0.5, -1.0], [0.0, 0.25]]
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfviz import _arguments

LARGEST = 127  # of the whole numbers in a byte
KINDS = ("int8", "half", "exact")


def pack(weights: Mapping[str, Tensor], numbers: str = "int8") -> dict[str, Any]:
    """Weights by name, such as a `state_dict()`, as plain JSON.

    Raises ValueError for another kind of `numbers`, for NaN or infinity, and for numbers that are
    too large for half precision.
    """
    if numbers not in KINDS:
        raise ValueError(f"numbers = {numbers!r}; choose {', '.join(map(repr, KINDS))}")
    parts = [_packed(name, x.detach().cpu().double(), numbers) for name, x in weights.items()]
    return {
        "numbers": numbers,
        "shapes": [[name, list(x.shape)] for name, x in weights.items()],
        "data": base64.b64encode(b"".join(parts)).decode(),
    }


def unpack(packed: Mapping[str, Any]) -> dict[str, Tensor]:
    """The weights by name, in double precision, as a page finds them: what int8 has rounded stays
    rounded.

    Raises ValueError for data of another size than the shapes say.
    """
    raw, numbers, at, weights = base64.b64decode(packed["data"]), packed["numbers"], 0, {}

    def following(kind: str, n: int) -> Tensor:
        nonlocal at
        size = n * np.dtype(kind).itemsize
        if at + size > len(raw):
            raise ValueError(
                f"data has {len(raw)} bytes, and its shapes need more; give all that `pack` made"
            )
        values = np.frombuffer(raw, kind, n, at).astype(np.float64)
        at += size
        return torch.from_numpy(values)

    for name, shape in packed["shapes"]:
        if numbers == "exact":
            x = following("<f8", prod(shape))
        elif numbers == "half" or len(shape) < 2:
            x = following("<f2", prod(shape))
        else:
            scales = following("<f2", shape[0])
            x = following("i1", prod(shape)).view(shape[0], -1) * scales[:, None]
        weights[name] = x.view(shape)
    if at < len(raw):
        raise ValueError(f"data has {len(raw)} bytes, and its shapes are {at}; give the data alone")
    return weights


def _packed(name: str, x: Tensor, numbers: str) -> bytes:
    _arguments.finite(name, x)
    if numbers == "exact":
        return x.numpy().astype("<f8").tobytes()
    if numbers == "half" or x.dim() < 2:
        return _halves(name, x)
    rows = x.flatten(1)
    scales = (rows.abs().amax(1) / LARGEST).half().double()
    whole = (rows / scales[:, None]).nan_to_num(0.0, 0.0, 0.0)  # a row of zeros has the scale 0
    whole = whole.round().clamp(-LARGEST, LARGEST)
    return _halves(name, scales) + whole.numpy().astype("i1").tobytes()


def _halves(name: str, x: Tensor) -> bytes:
    if not x.half().isfinite().all():
        raise ValueError(
            f"{name} holds {x.abs().max():.3g}, too large for half precision; pack it with "
            'numbers="exact"'
        )
    return x.half().numpy().astype("<f2").tobytes()
