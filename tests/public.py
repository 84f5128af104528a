"""Everything public, found by walking the doors, and an example of each module."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import torch
from cases import cases
from torch import Tensor, nn

from tfviz.beyond_text.gtrxl import Gate, gated
from tfviz.beyond_text.tokenise_anything import text
from tfviz.cores import Bias
from tfviz.longer_context.knn_lm import Store, fingerprint
from tfviz.longer_context.ut_act import Halting
from tfviz.longer_context.ut_time_position_signal import TimePosition
from tfviz.models.blocks import Block, post_norm
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import Sinusoidal

PARTS = (
    "models", "position", "basics", "longer_context", "adaptive", "sparse", "compressed", "priors",
    "heads", "beyond_text",
)  # fmt: skip


@cache
def public() -> dict[str, Any]:
    """{"position.Rope": Rope}: what the parts of the library offer, and its first door."""
    offered: dict[str, Any] = {}
    for package in ("tfviz", *(f"tfviz.{part}" for part in PARTS)):
        door = import_module(package)
        for name in door.__all__:
            value = getattr(door, name)
            if not inspect.ismodule(value) and value not in offered.values():
                offered[f"{package.removeprefix('tfviz').strip('.')}.{name}".strip(".")] = value
    return offered


def modules() -> dict[str, type[nn.Module]]:
    return {
        name: value
        for name, value in public().items()
        if isinstance(value, type) and issubclass(value, nn.Module)
    }


VOCAB, D, H, L = 11, 16, 4, 8
SIZES = {
    "h_kv": H,
    "vocab": VOCAB, "d": D, "h": H, "N": 2, "d_head": D // H, "d_ff": D, "d_a": 5, "d_k": 4,
    "d_v": 4, "d_s": D, "d_h": D, "d_p": 5, "d_in": D, "d_out": D, "length": L, "max_length": L,
    "S": 8, "R": 2, "k": 2, "m": 4, "m_c": 2, "c": 2, "l": 3, "r": 2, "w": 2, "z": 3, "T": 2,
    "C": 2, "L": L, "prompt": 2, "chunk": 2, "P": 2, "height": 4, "width": 4, "classes": 3,
    "horizon": 4, "most": 4, "w1": 1, "w2": 2, "kernel": 3, "stride": 1,
}  # fmt: skip
"""What a parameter without a default is by its name, everywhere."""


def made(kind: Callable[..., Any], **others: Any) -> Any:
    """One with `SIZES` for what it needs. Raises KeyError for a parameter that has no size."""
    needed = {
        x.name: others[x.name] if x.name in others else SIZES[x.name]
        for x in inspect.signature(kind).parameters.values()
        if x.default is x.empty and x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)
    }
    return kind(**needed)


def store(model: nn.Module) -> Store:
    rng = torch.Generator().manual_seed(1)
    keys = torch.randn(20, D, generator=rng).numpy()
    return Store(keys, torch.randint(VOCAB, (20,), generator=rng).numpy(), fingerprint(model))


def slowly(i: Tensor, j: Tensor) -> Tensor:
    return -0.1 * (i - j).abs()


def halves() -> list[tuple[nn.Module, nn.Module]]:
    return [(nn.Linear(D, D), nn.Linear(D, D))]


def example(kind: type[nn.Module]) -> nn.Module:
    """One of a public module: as its case in the laws makes it, or with `SIZES` and what stands
    here for parameters that are no sizes. Raises KeyError for a parameter that is neither."""
    if kind in cores() and kind is not Bias:
        return cores()[kind]()
    model = GPT(VOCAB, D, H, 2)
    beside: dict[str, Any] = {
        "model": model,
        "reader": model,
        "store": store(model),
        "block": Block(D, H, post_norm),
        "signal": TimePosition(D),
        "positions": Sinusoidal(D),
        "F": nn.Linear(D, D),
        "phi": nn.ReLU(),
        "function": slowly,
        "embed_state": nn.Embedding(5, D),
        "embed_action": nn.Embedding(5, D),
        "read": nn.Linear(D, 3),
        "blocks": halves(),
        "kinds": {"text": text(5)},
    }
    needed = inspect.signature(kind).parameters.values()
    if kind is Gate:
        return gated()(D)
    if kind is Halting:  # it takes what a Universal takes
        return Halting(beside["block"], SIZES["T"], beside["signal"])
    return kind(
        **{
            x.name: beside[x.name] if x.name in beside else SIZES[x.name]
            for x in needed
            if x.default is x.empty and x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)
        }
    )


@cache
def cores() -> dict[type, Callable[[], Any]]:
    """How the cases of the laws make the cores."""
    return {type(case.make()): case.make for case in cases().values() if case.make}
