"""The Vision Transformer: an image is cut into patches, and each is read like a word.

    L = H W / P² + 1        Z_0 = [c; x_1 E; …; x_{L−1} E] + P        logits = LN(Z_N)_0 W + b

Dosovitskiy et al. 2020 (arXiv 2010.11929), section 3.1. Images are (C, H, W), as torch has them. A
patch is a row of C P² numbers: channel by channel, and in each line by line. E has a bias. The
first row, c, is the class token: it is learned, belongs to no patch, and the answer is read from
it. The stack is pre-norm and ends in a norm. As in the authors' code the class token and the last
layer begin at zero.

>>> length(224, 224, P=16), length(224, 224, P=1)  # with the class token
(197, 50177)
>>> ViT(8, 8, P=2, classes=10, d=8, h=2, N=1)(torch.zeros(3, 1, 8, 8)).shape
torch.Size([3, 10])
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.models.blocks import Stack
from tfviz.models.use import attention_weights
from tfviz.position.learned_pe import Learned

__all__ = ["ViT", "images_of", "patches", "rearranged", "resized", "seen_by_class"]

Images = Float[Tensor, "b C H W"]


def grid(height: int, width: int, P: int) -> tuple[int, int]:
    """(rows, columns) of patches. Raises ValueError where they do not fill the image."""
    height, width = (
        _arguments.integer(name, x, 1) for name, x in (("height", height), ("width", width))
    )
    if height % _arguments.integer("P", P, 1) or width % P:
        raise ValueError(
            f"P = {P} does not divide an image of {height} × {width} pixels; choose a P that "
            "divides both sides, or pad the image"
        )
    return height // P, width // P


def length(height: int, width: int, P: int) -> int:
    """H W / P² + 1: the tokens of an image, the class token among them."""
    rows, columns = grid(height, width, P)
    return rows * columns + 1


@named
def patches(images: Images, P: int) -> Float[Tensor, "b n C*P*P"]:
    """The patches from left to right, row by row, each as a row of numbers."""
    if images.dim() != 4:
        raise ValueError(
            f"images has shape {tuple(images.shape)}; give (batch, channels, height, width), "
            "images[None] for one image"
        )
    grid(*images.shape[-2:], P)  # type: ignore[call-arg]
    cut = images.unflatten(3, (-1, P)).unflatten(2, (-1, P))  # (b, C, rows, P, columns, P)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


@named
def images_of(rows: Float[Tensor, "b n C*P*P"], height: int, width: int, P: int) -> Images:
    """The images again: nothing is lost in cutting."""
    down, across = grid(height, width, P)
    if rows.shape[1] != down * across or rows.shape[2] % P**2:
        raise ValueError(
            f"rows has shape {tuple(rows.shape)}; patches of {P} × {P} of an image of {height} × "
            f"{width} pixels are (batch, {down * across}, channels · {P**2})"
        )
    cut = rows.unflatten(2, (-1, P, P)).unflatten(1, (down, across))
    return cut.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)


@named
def rearranged(images: Images, P: int, order: Int[Tensor, "n"]) -> Images:
    """The images with their patches in another order: place i gets patch order[i]."""
    rows = patches(images, P)
    n = rows.shape[1]
    if sorted(_arguments.indices("order", order, 1).tolist()) != [*range(n)]:
        raise ValueError(
            f"order = {order.tolist()}; give each of the {n} patches once, as torch.randperm({n}) "
            "does"
        )
    return images_of(rows[:, order], *images.shape[-2:], P)  # type: ignore[call-arg]


@named
def resized(
    table: Float[Tensor, "n+1 d"], old: tuple[int, int], new: tuple[int, int]
) -> Float[Tensor, "m+1 d"]:
    """Positions for another grid of patches, (rows, columns): the class token's row stays, and the
    others are interpolated linearly between their neighbours, corner on corner."""
    if len(table) != old[0] * old[1] + 1:
        raise ValueError(
            f"table has {len(table)} rows, but a grid of {old[0]} × {old[1]} patches and the class "
            f"token need {old[0] * old[1] + 1}; give the grid of the table as old"
        )
    image = table[1:].T.unflatten(1, old)[None]
    wide = F.interpolate(image, new, mode="bilinear", align_corners=True)
    return torch.cat([table[:1], wide[0].flatten(1).T])


class ViT(nn.Module):
    """Images (b, C, H, W) → logits (b, classes). `block` goes to the stack: core, d_ff, order, …

    positions=False leaves out the learned positions. `embed` is E, `token` the class token.
    """

    @named
    def __init__(
        self,
        height: int,
        width: int,
        P: int,
        classes: int,
        d: int,
        h: int,
        N: int,
        *,
        channels: int = 1,
        positions: bool = True,
        **block: Any,
    ) -> None:
        super().__init__()
        self.P, self.size = P, (_arguments.integer("channels", channels, 1), height, width)
        tokens = length(height, width, P)
        self.embed = nn.Linear(channels * P**2, d)
        self.token = nn.Parameter(torch.zeros(d))
        self.positions = Learned(tokens, d) if positions else None
        self.stack = Stack(N, d, h, **block)
        self.classify = nn.Linear(d, _arguments.integer("classes", classes, 1))
        nn.init.zeros_(self.classify.weight)
        nn.init.zeros_(self.classify.bias)

    def tokens(self, images: Images) -> Float[Tensor, "b n+1 d"]:
        """Z_0: the class token, then the patches, with positions."""
        if images.shape[1:] != self.size:
            raise ValueError(
                f"images has shape {tuple(images.shape)}; this model reads "
                f"(batch, {', '.join(map(str, self.size))}), and other sizes after `resized`"
            )
        X = self.embed(patches(images, self.P))
        X = torch.cat([self.token.expand(len(X), 1, -1), X], 1)
        if self.positions is None:
            return X
        return X + self.positions(torch.arange(X.shape[1], device=X.device))

    @named
    def forward(self, images: Images) -> Float[Tensor, "b classes"]:
        return self.classify(self.stack(self.tokens(images))[:, 0])


@named
def seen_by_class(model: ViT, images: Images) -> Float[Tensor, "b N h rows columns"]:
    """The weights that the class token gives to the patches in each block, as small images. What
    they lack to 1 is its weight on itself."""
    maps = torch.stack([*attention_weights(model, images).values()], 1)
    return maps[..., 0, 1:].unflatten(-1, grid(*model.size[1:], model.P))
