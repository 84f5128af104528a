"""Weights that were stored go into the models of today: by their names, as they were stored.

Whoever has saved a model has its `state_dict`. If a parameter is renamed, one of these is red; then
give the old name a way in, as `stored_before_cores` does, and list the new one here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tfviz import stored
from tfviz.longer_context.da_transformer import DA
from tfviz.models.bert import BERT
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.position.shaw_relative import shaw
from tfviz.position.t5_relative_bias import t5_bias
from tfviz.position.xl_relative import xl
from tfviz.stored import digit_vit, letter_gpt
from tfviz_lab.basics import head_ablation

Sizes = dict[str, tuple[int, ...]]


def attention(d: int) -> Sizes:
    """One for Q, K and V, and W^o."""
    return {
        "W_qkv.weight": (3 * d, d),
        "W_qkv.bias": (3 * d,),
        "W_o.weight": (d, d),
        "W_o.bias": (d,),
    }


def norm(d: int) -> Sizes:
    return {"weight": (d,), "bias": (d,)}


def block(d: int, d_ff: int, *, crosses: bool = False) -> Sizes:
    parts = {"attend": attention(d)}
    if crosses:
        parts["cross"] = attention(d)
    parts["feed.W_1"] = {"weight": (d_ff, d), "bias": (d_ff,)}
    parts["feed.W_2"] = {"weight": (d, d_ff), "bias": (d,)}
    parts |= {f"norms.{n}": norm(d) for n in range(3 if crosses else 2)}
    return inside(parts)


def inside(parts: dict[str, Sizes]) -> Sizes:
    """{"block": {"weight": …}} → {"block.weight": …}."""
    return {f"{part}.{name}": size for part, names in parts.items() for name, size in names.items()}


LETTERS = {"embed.weight": (27, 48)} | inside(
    {"stack.blocks.0": block(48, 96), "stack.blocks.1": block(48, 96), "stack.norm": norm(48)}
)
"""The small GPT of letters, in the order in which its numbers lie."""


def test_the_stored_gpt_is_read_by_the_names_that_it_was_stored_with() -> None:
    result = stored.load("head_ablation")["gpt"]
    raw = bytearray(base64.b64decode(result["weights"]))
    numbers = torch.frombuffer(raw, dtype=torch.float16).float()
    parts = numbers.split([torch.Size(size).numel() for size in LETTERS.values()])
    weights = {
        name: part.view(size) for (name, size), part in zip(LETTERS.items(), parts, strict=True)
    }
    model = letter_gpt.gpt()
    model.load_state_dict(weights)  # strict: no name more, none less
    out = model(letter_gpt.ALPHABET.encode("the cat sat")[None])
    assert out.shape == (1, 11, 27)
    repeats = head_ablation.losses(model.eval())["repeats"]
    assert repeats == pytest.approx(result["repeats"], abs=1e-3)


MODELS: dict[str, tuple[Callable[[], nn.Module], Sizes]] = {
    "GPT": (
        lambda: GPT(11, 8, 2, 1, positions=Learned(5, 8)),
        {"embed.weight": (11, 8), "embed.positions.P": (5, 8)}
        | inside({"stack.blocks.0": block(8, 32), "stack.norm": norm(8)}),
    ),
    "BERT": (
        lambda: BERT(11, 8, 2, 1),
        {"b": (11,), "embed.weight": (11, 8), "segment.weight": (2, 8)}
        | inside({"stack.blocks.0": block(8, 32), "first_norm": norm(8), "last_norm": norm(8)})
        | {"last.weight": (8, 8), "last.bias": (8,)},
    ),
    "ViT": (
        digit_vit.vit,
        {"token": (24,), "embed.weight": (24, 4), "embed.bias": (24,), "positions.P": (17, 24)}
        | inside({f"stack.blocks.{n}": block(24, 48) for n in range(2)} | {"stack.norm": norm(24)})
        | {"classify.weight": (10, 24), "classify.bias": (10,)},
    ),
    "EncoderDecoder": (
        lambda: EncoderDecoder(11, 8, 2, 1),
        {"embed.weight": (11, 8)}
        | inside(
            {"encoder.blocks.0": block(8, 32), "decoder.blocks.0": block(8, 32, crosses=True)}
        ),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_parameters_have_the_names_and_sizes_that_were_stored(name: str) -> None:
    make, sizes = MODELS[name]
    assert {name: tuple(x.shape) for name, x in make().state_dict().items()} == sizes


CORES: dict[str, tuple[Callable[[], Any], Sizes]] = {
    "shaw": (shaw(4, 3), {"P_k": (7, 4), "P_v": (7, 4)}),
    "xl": (xl(2, 4), {"u": (2, 4), "v": (2, 4), "W_r": (2, 8, 4)}),
    "t5": (t5_bias(2, buckets=8, far=16), {"b": (2, 8)}),
    "da": (lambda: DA(2), {"alpha": (2,), "beta": (2,)}),
}


@pytest.mark.parametrize("name", CORES)
def test_a_core_keeps_the_names_and_sizes_of_its_own(name: str) -> None:
    make, sizes = CORES[name]
    model = GPT(11, 8, 2, 1, core=make)
    attend = model.stack.blocks[0].get_submodule("attend")
    core = {n.removeprefix("core."): x for n, x in attend.state_dict().items() if "core." in n}
    assert {name: tuple(x.shape) for name, x in core.items()} == sizes
