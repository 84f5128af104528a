"""Signals in a stack of blocks before training: what grows on the way up, what comes back down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tfviz.basics import layer_norm_pre_post as orders
from tfviz.basics.layer_norm_pre_post import Signals, signals
from tfviz.explorers.base import Explorer
from tfviz.explorers.knobs import knob
from tfviz.models.blocks import Stack

WIDTH, ROWS, DEEPEST = 24, 8, 24
ORDERS: dict[tuple[str, bool], Callable[..., Tensor]] = {
    ("pre", True): orders.pre_norm,
    ("post", True): orders.post_norm,
    ("none", True): orders.no_norm,
    ("pre", False): orders.pre_norm_no_skip,
    ("post", False): orders.post_norm_no_skip,
    ("none", False): orders.no_norm_no_skip,
}
SHOW = {"gradient": "gradient", "stream": "stream", "weights": "W₂"}
LOUD = 2e6
"""A stream beyond this makes of float64's gradient rounding noise: rows that attend one key alike
have differences that should be 0, and each layer multiplies them by the square of the stream. Below
it torch and the page agree to 0.1 %; ten times beyond, to 6 %; a hundred times, not at all."""


def uniforms(seed: int, count: int) -> Tensor:
    """Numbers of mean 0 and variance 1 that JavaScript makes too: mulberry32, by their place."""
    with np.errstate(over="ignore"):
        k = np.arange(1, count + 1, dtype=np.uint32)
        x = np.uint32(seed * 0x9E3779B1 & 0xFFFFFFFF) + k * np.uint32(0x6D2B79F5)
        x = (x ^ (x >> np.uint32(15))) * (x | np.uint32(1))
        x ^= x + (x ^ (x >> np.uint32(7))) * (x | np.uint32(61))
        x ^= x >> np.uint32(14)
    return torch.from_numpy((x / 2**32 - 0.5) * 12**0.5)


class BlockSignals(Explorer):
    """N blocks of width 24 with one head on 8 tokens, random weights, computed in the page.

    depth    N, 1 to 24
    order    "pre", "post" or "none": where the normalisation stands;  skips   with or without
    gain     of the first weights: they have variance gain²/fan-in, 0.1 to 3
    seed     of the weights, the tokens and the pull on the output, 0 to 99
    show     "gradient" or "stream": root mean square by layer; "weights": ‖∂/∂W_2‖ by layer

    Raises ValueError for values out of range.
    """

    module: ClassVar[str] = "block_signals"
    label: ClassVar[str] = "Signals in a deep stack: sizes and gradients by layer"
    min_height: ClassVar[str] = "42rem"
    min_height_narrow: ClassVar[str] = "77rem"

    depth = knob(12, low=1, high=DEEPEST, label="blocks", letter="N")
    order = knob("pre", of={"pre": "pre", "post": "post", "none": "never"}, label="normalise")
    skips = knob(True, label="skip connections")
    gain = knob(1.0, low=0.1, high=3.0, step=0.1, label="gain of the first weights")
    seed = knob(0, low=0, high=99, label="other random numbers")
    show = knob("gradient", of=SHOW, label="show")
    asks = "Drag the end of the curve for more or fewer blocks; change the order, gain, numbers."

    @classmethod
    def data(cls) -> dict[str, Any]:
        return {"d": WIDTH, "L": ROWS, "loud": LOUD}

    def numbers(self) -> dict[str, Any]:
        found = asdict(self.signals)
        if max(found["stream"]) > LOUD:
            found |= {"gradient": [], "weights": []}
        return found

    @property
    def signals(self) -> Signals:
        """What the page shows, from the library's blocks and torch's gradients."""
        d, L, N = WIDTH, ROWS, self.depth
        order = ORDERS[self.order, self.skips]
        stack = Stack(N, d, 1, order, phi=nn.ReLU).double()
        if self.order == "post":  # already normalised
            stack.norm = nn.Identity()
        X, G, *blocks = uniforms(self.seed, 2 * L * d + N * 12 * d * d).split(
            [L * d, L * d, *[12 * d * d] * N]
        )
        with torch.no_grad():
            for p in stack.parameters():
                if p.ndim == 1:
                    p.zero_()
            for norm in (m for m in stack.modules() if isinstance(m, nn.LayerNorm)):
                norm.weight.fill_(1.0)
            for n, numbers in enumerate(blocks):
                qkv, out, up, down = (self.gain * numbers).split(
                    [3 * d * d, d * d, 4 * d * d, 4 * d * d]
                )
                for name, W in (
                    ("attend.W_qkv", qkv.view(3, d, d).mT.reshape(3 * d, d) / d**0.5),
                    ("attend.W_o", out.view(d, d).T / d**0.5),
                    ("feed.W_1", up.view(d, 4 * d).T / d**0.5),
                    ("feed.W_2", down.view(4 * d, d).T / (4 * d) ** 0.5),
                ):
                    stack.get_parameter(f"blocks.{n}.{name}.weight").copy_(W)
        return signals(stack, X.view(1, L, d), G.view(1, L, d))
