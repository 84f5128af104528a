"""A tiny Vision Transformer that reads digits of 8 × 8 pixels: how it is built, and trained.

`tfviz_lab.beyond_text.vit_digits` trains it.

>>> read(trained(), shown()[8])[0].argmax().item()
8
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import stored
from tfviz.beyond_text.vit_patches import ViT, seen_by_class
from tfviz.stored.letter_gpt import pack

SIDE, LEVELS, DIGITS = 8, 16, 10  # a pixel is a whole number from 0 to LEVELS
PATCH, WIDTH, HEADS, LAYERS = 2, 24, 3, 2

__all__ = ["exact", "for_page", "pack", "read", "shown", "trained", "unpack", "vit"]


def vit() -> ViT:
    """Not yet trained."""
    return ViT(SIDE, SIDE, PATCH, DIGITS, WIDTH, HEADS, LAYERS, d_ff=2 * WIDTH)


def unpack(text: str) -> ViT:
    """The model whose weights `pack` made this text of."""
    model = vit()
    # a bytearray, because torch wants memory that it may write to
    flat = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.float16).float()
    nn.utils.vector_to_parameters(flat, model.parameters())
    return model.eval()


def trained() -> ViT:
    """The stored model."""
    return unpack(stored.load("vit_digits")["reader"]["weights"])


@cache
def exact() -> ViT:
    """The stored model in double precision."""
    return trained().double().requires_grad_(False)


def shown() -> list[list[int]]:
    """Pixels of ten test images, the first of each digit."""
    images: list[list[int]] = stored.load("vit_digits")["shown"]
    return images


@torch.no_grad()
def read(
    model: ViT, pixels: Any
) -> tuple[Float[Tensor, "digits"], Float[Tensor, "layers heads rows columns"]]:
    """(shares of the ten digits, what the class token looks at) for pixels from 0 to LEVELS."""
    image = torch.as_tensor(pixels).to(model.token.dtype).view(1, 1, SIDE, SIDE) / LEVELS
    return model(image)[0].softmax(-1), seen_by_class(model, image)[0]


def for_page() -> dict[str, Any]:
    """Weights in half precision with their names and sizes, and the shape."""
    return {
        "weights": stored.load("vit_digits")["reader"]["weights"],
        "shapes": [[name, x.numel()] for name, x in vit().state_dict().items()],
        "d": WIDTH,
        "h": HEADS,
        "layers": LAYERS,
        "patch": PATCH,
        "levels": LEVELS,
    }
