"""The stored GPT of letters for a page: what JavaScript needs to run it, and what it must find.

>>> len(for_page()["shapes"]), exact().embed.weight.dtype
(27, torch.float64)
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from tfviz import stored
from tfviz.formula import Formula
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import Sinusoidal, sinusoid
from tfviz.stored import letter_gpt as letters


def _scale() -> float:
    """By how much the model multiplies its positions."""
    positions = letters.gpt().embed.positions
    assert isinstance(positions, Sinusoidal)
    return positions.scale


@cache
def exact() -> GPT:
    """The stored model in double precision, its positions too."""
    model, scale = letters.trained().double().requires_grad_(False), _scale()
    c = torch.arange(letters.GPT_WIDTH, dtype=torch.float64)
    del model.embed.positions  # a module; a function takes its place
    model.embed.positions = lambda i: scale * sinusoid(i[:, None].double(), c, d=len(c))
    return model


def for_page() -> dict[str, Any]:
    """Weights in half precision with their names and sizes, and the shape: for `tf.gpt`."""
    return {
        "weights": stored.load("head_ablation")["gpt"]["weights"],
        "shapes": [[name, x.numel()] for name, x in letters.gpt().state_dict().items()],
        **{"d": letters.GPT_WIDTH, "h": letters.GPT_HEADS, "layers": letters.GPT_LAYERS},
        **{"longest": letters.GPT_LENGTH, "letters": letters.ALPHABET.letters},
        **{"scale": _scale(), "entry": Formula(sinusoid).javascript()},
    }
