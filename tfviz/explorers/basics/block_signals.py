"""Signals in a stack of blocks before training: the stream forwards, the gradient backwards."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

import torch
from torch import Tensor, nn

from tfviz.basics import layer_norm_pre_post as orders
from tfviz.basics.layer_norm_pre_post import RMSNorm, signals
from tfviz.basics.pointwise_mlp import SwiGLU
from tfviz.explorers.base import Explorer, Numbers, handed, knob, uniforms
from tfviz.models.blocks import FeedForward, Stack

WIDTH, ROWS, DEEPEST = 24, 8, 24
ORDERS: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "pre": (orders.pre_norm_no_skip, orders.pre_norm),
    "post": (orders.post_norm_no_skip, orders.post_norm),
    "none": (orders.no_norm_no_skip, orders.no_norm),
}
"""Without and with skip connections."""
SHOW = {"gradient": "gradient", "stream": "stream", "weights": "W₂"}
LOUD, LEAST, MOST = 2e6, 1e-60, 1e12
"""A stream beyond LOUD makes of float64's gradient rounding noise: rows that attend one key alike
have differences that should be 0, and each layer multiplies them by the square of the stream. Below
it torch and the page agree to 0.1 %; ten times beyond, to 6 %; a hundred times, not at all.
A stream beyond LEAST or MOST is followed no further: a gated block without a norm squares it.
"""


EXAMPLES: dict[str, Numbers] = {"": {"depth": 5, "order": "none", "skips": False}}


class BlockSignals(Explorer):
    """N blocks of width 24 with one head on 8 tokens, random weights, computed in the page.

    gain    the initial weights have variance gain²/fan-in
    show    "gradient" or "stream": root mean square by layer; "weights": ‖∂/∂W_2‖ by layer
    """

    label = "Signals in a deep stack: sizes and gradients by layer"
    rem = 35, 36.5, 36.5, 37.5, 73
    data = handed(d=WIDTH, L=ROWS, loud=LOUD, least=LEAST, most=MOST)

    depth = knob(12, low=1, high=DEEPEST, label="blocks", letter="N")
    order = knob("pre", of={"pre": "pre", "post": "post", "none": "none"}, label="norm")
    rms = knob(False, label="RMSNorm")
    swiglu = knob(False, label="SwiGLU")
    skips = knob(True, label="skip connections")
    gain = knob(1.0, low=0.1, high=3.0, step=0.1, label="gain of the initial weights")
    seed = knob(0, low=0, high=99, label="seed of random numbers")
    show = knob("gradient", of=SHOW, label="show")
    examples = EXAMPLES
    asks = "Drag the end of the curve for more or fewer blocks; change the norm, gain and seed."

    def numbers(self) -> Numbers:
        """Sizes by layer: of the stream as far as it is followed, of the gradients if they are
        more than rounding noise."""
        stack, X, G = self.stack
        stream = list(_sizes(stack, X))
        if max(stream) > LOUD or min(stream) < LEAST:
            return {"stream": stream, "gradient": [], "weights": []}
        return asdict(signals(stack, X, G))

    @property
    def stack(self) -> tuple[Stack, Tensor, Tensor]:
        """The library's blocks with the numbers of the page, what goes in and what pulls."""
        d, L, N = WIDTH, ROWS, self.depth
        order, norm = ORDERS[self.order][self.skips], RMSNorm if self.rms else nn.LayerNorm
        feed = SwiGLU if self.swiglu else partial(FeedForward, phi=nn.ReLU)
        stack = Stack(N, d, 1, order, feed=feed, norm=norm).double()
        if self.order == "post":  # already normalised
            stack.norm = nn.Identity()
        sizes = [L * d, L * d, *[12 * d * d] * N]
        X, G, *blocks = uniforms(self.seed, sum(sizes)).split(sizes)
        for name, p in stack.named_parameters():  # the weights follow; biases are 0
            nn.init.constant_(p, float("norm" in name and name.endswith("weight")))
        for n, numbers in enumerate(blocks):
            qkv, out, wide = (self.gain * numbers).split([m * d * d for m in (3, 1, 8)])
            weights = {
                "attend.W_qkv": qkv.view(3, d, d).mT.reshape(3 * d, d) / d**0.5,
                "attend.W_o": out.view(d, d).T / d**0.5,
            }
            names = ("W_1", "W_3", "W_2") if self.swiglu else ("W_1", "W_2")
            for name, W in zip(names, wide.chunk(len(names)), strict=True):
                outputs, inputs = stack.get_parameter(f"blocks.{n}.feed.{name}.weight").shape
                weights[f"feed.{name}"] = W.view(inputs, outputs).T / inputs**0.5
            for name, W in weights.items():
                stack.get_parameter(f"blocks.{n}.{name}.weight").data.copy_(W)
        return stack, X.view(1, L, d), G.view(1, L, d)


def _sizes(stack: Stack, X: Tensor) -> Iterator[float]:
    """Root mean square of the stream before block 1, after it, …, as far as it is followed."""
    yield (size := float(X.square().mean().sqrt()))
    for block in stack.blocks:
        if not LEAST <= size <= MOST:
            return
        with torch.no_grad():
            X = block(X)
        yield (size := float(X.square().mean().sqrt()))
