"""What a figure accepts, and how it says no."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfviz import _arguments
from tfviz._labels import label, named
from tfviz.patterns.pattern import Pattern

MaskLike = Pattern | Tensor | Sequence[Sequence[int]] | np.ndarray
LARGEST = 1024
"""Cells of a larger matrix would be finer than a pixel."""


def as_mask(value: Any, L: int | None = None, name: str = "pattern") -> Tensor:
    """A Bool tensor (L, L) or (h, L, L) from a Pattern, a Bool tensor or nested 0 and 1."""
    if isinstance(value, Pattern):
        if L is None:
            raise ValueError(f"{name} = {value!r} has no length of its own; give L, for example 16")
        mask = value.mask(_arguments.integer("L", L, 1, LARGEST))
    else:
        mask = _boolean(value, name)
        if mask.shape[-1] > LARGEST:
            raise ValueError(f"{name} has L = {mask.shape[-1]}; choose L <= {LARGEST}")
        if L is not None and mask.shape[-1] != L:
            raise ValueError(f"{name} has L = {mask.shape[-1]}, but L = {L} was given; leave L out")
    return mask


def _boolean(value: Any, name: str) -> Tensor:
    if isinstance(value, Sequence) and not isinstance(value, str):
        try:
            value = np.asarray(value)
        except ValueError:
            raise ValueError(f"{name} has rows of different lengths; give a square mask") from None
        if value.dtype.kind in "biu" and np.isin(value, (0, 1)).all():
            value = value.astype(bool)
    tensor = torch.from_numpy(value) if isinstance(value, np.ndarray) else value
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} = {value!r}; give a Pattern or a Boolean mask of shape (L, L)")
    if tensor.dtype != torch.bool:
        raise ValueError(f"{name} is {tensor.dtype}; give a Boolean mask, for example A > 0")
    if tensor.dim() not in (2, 3) or tensor.shape[-1] != tensor.shape[-2] or not tensor.numel():
        shape = tuple(tensor.shape)
        raise ValueError(f"{name} has shape {shape}; a mask is (L, L), or (h, L, L) by head")
    return tensor.detach().cpu()


def named_masks(patterns: Any, L: int | None, name: str = "patterns") -> list[tuple[str, Tensor]]:
    """One pattern, a list of them, or title → pattern, as a list of (title, mask (L, L)); a
    pattern with heads counts as several."""
    if isinstance(patterns, Mapping):
        items = list(named(name, patterns).items())
    elif _is_several(patterns):
        items = [(title_of(value, f"pattern {n}"), value) for n, value in enumerate(patterns, 1)]
    else:
        items = [(title_of(patterns), patterns)]
    if not items:
        raise ValueError(f"{name} = {patterns!r} is empty; give at least one pattern")
    masks = []
    for title, value in items:
        where = f"{name}[{title!r}]" if len(items) > 1 else name
        mask = as_mask(value, L, where)
        if mask.dim() == 2:
            masks.append((title, mask))
            continue
        lead = f"{title}, " if len(items) > 1 else ""
        masks += [(f"{lead}head {n}", head) for n, head in enumerate(mask)]
    sizes = {mask.shape[-1] for _, mask in masks}
    if len(sizes) > 1:
        raise ValueError(f"{name} have lengths {sorted(sizes)}; give patterns of one length")
    return masks


def layer_masks(patterns: Any, L: int | None, layers: int | None) -> list[tuple[str, Tensor]]:
    """The layers of a network as (title, mask), heads of one layer joined, cycled to `layers`."""
    if isinstance(patterns, Mapping):
        items = list(named("patterns", patterns).items())
    elif _is_several(patterns):
        items = [(f"layer {n}", value) for n, value in enumerate(patterns, 1)]
    else:
        items = [("", patterns)]
    if not items:
        raise ValueError(f"patterns = {patterns!r} is empty; give one pattern for each layer")
    masks = [(title, as_mask(value, L, f"patterns[{title!r}]")) for title, value in items]
    sizes = {mask.shape[-1] for _, mask in masks}
    if len(sizes) > 1:
        raise ValueError(f"patterns have lengths {sorted(sizes)}; give patterns of one length")
    count = max(2, len(masks)) if layers is None else _arguments.integer("layers", layers, 1, 12)
    cycled = []
    for n in range(count):
        title, mask = masks[n % len(masks)]
        title = title if title and n < len(masks) else f"layer {n + 1}"
        cycled.append((title, mask.any(0) if mask.dim() == 3 else mask))
    return cycled


def _is_several(patterns: Any) -> bool:
    if isinstance(patterns, Pattern | Tensor | np.ndarray | str) or not isinstance(
        patterns, Sequence
    ):
        return False
    return not patterns or all(
        isinstance(p, Pattern | Tensor | np.ndarray) or np.ndim(p) == 2 for p in patterns
    )


def title_of(value: Any, otherwise: str = "") -> str:
    return label("title of the pattern", value.title) if isinstance(value, Pattern) else otherwise


def as_weights(values: Any, name: str) -> Tensor:
    """A finite real tensor (rows, columns) or (h, rows, columns)."""
    try:
        tensor = torch.as_tensor(values).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name} is not a tensor of numbers: {error}") from None
    if tensor.is_complex() or tensor.dim() not in (2, 3) or not tensor.numel():
        kind = f"{tensor.dtype} {tuple(tensor.shape)}"
        raise ValueError(f"{name} is {kind}; give real numbers (L_q, L_k) or (h, L_q, L_k)")
    if max(tensor.shape[-2:]) > LARGEST:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; choose sides <= {LARGEST}")
    tensor = tensor.double()
    if not tensor.isfinite().all():
        raise ValueError(
            f"{name} holds {int((~tensor.isfinite()).sum())} values that are not finite; "
            "mask them through pattern= instead"
        )
    return tensor


def position(name: str, value: Any, length: int) -> int:
    return _arguments.integer(name, value, 0, length - 1)


def ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers in words: [0, 1, 2, 5] → "0–2, 5"; "none" if there are none."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and n == parts[-1][1] + 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    words = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}–{b}" for a, b in parts]
    return ", ".join(words) or "none"


def keys_of(mask: Tensor, query: int) -> list[int]:
    return mask[query].nonzero().flatten().tolist()


def number(value: float) -> str:
    """Three significant digits, without a tail of zeros."""
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
        return text.replace("-", "−")
    return scientific(value)


def scientific(value: float) -> str:
    """2.13×10⁶; a one in front is left out, as in 10⁶."""
    mantissa, exponent = f"{value:.2e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    lead = {1.0: "", -1.0: "−"}.get(float(mantissa), f"{number(float(mantissa))}×")
    return f"{lead}10{raised}"
