"""Signals in a stack of blocks before training: the stream forwards, the gradient backwards."""

from collections.abc import Callable
from dataclasses import asdict

from torch import Tensor, nn

from tfviz.basics import layer_norm_pre_post as orders
from tfviz.basics.layer_norm_pre_post import Signals, signals
from tfviz.explorers.base import Explorer, Numbers, handed, knob, uniforms
from tfviz.models.blocks import Stack

WIDTH, ROWS, DEEPEST = 24, 8, 24
ORDERS: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "pre": (orders.pre_norm_no_skip, orders.pre_norm),
    "post": (orders.post_norm_no_skip, orders.post_norm),
    "none": (orders.no_norm_no_skip, orders.no_norm),
}
"""Without and with skip connections."""
SHOW = {"gradient": "gradient", "stream": "stream", "weights": "W₂"}
LOUD = 2e6
"""A stream beyond this makes of float64's gradient rounding noise: rows that attend one key alike
have differences that should be 0, and each layer multiplies them by the square of the stream. Below
it torch and the page agree to 0.1 %; ten times beyond, to 6 %; a hundred times, not at all."""


EXAMPLES: dict[str, Numbers] = {"": {"depth": 5, "order": "none", "skips": False}}


class BlockSignals(Explorer):
    """N blocks of width 24 with one head on 8 tokens, random weights, computed in the page.

    gain    the initial weights have variance gain²/fan-in
    show    "gradient" or "stream": root mean square by layer; "weights": ‖∂/∂W_2‖ by layer
    """

    label = "Signals in a deep stack: sizes and gradients by layer"
    rem = 41, 41, 41, 41.5, 74.5
    data = handed(d=WIDTH, L=ROWS, loud=LOUD)

    depth = knob(12, low=1, high=DEEPEST, label="blocks", letter="N")
    order = knob("pre", of={"pre": "pre", "post": "post", "none": "none"}, label="norm")
    skips = knob(True, label="skip connections")
    gain = knob(1.0, low=0.1, high=3.0, step=0.1, label="gain of the initial weights")
    seed = knob(0, low=0, high=99, label="seed of random numbers")
    show = knob("gradient", of=SHOW, label="show")
    examples = EXAMPLES
    asks = "Drag the end of the curve for more or fewer blocks; change the norm, gain and seed."

    def numbers(self) -> Numbers:
        sizes = asdict(self.signals)
        lost = max(sizes["stream"]) > LOUD
        return sizes | ({"gradient": [], "weights": []} if lost else {})

    @property
    def signals(self) -> Signals:
        """What the page shows, from the library's blocks and torch's gradients."""
        d, L, N = WIDTH, ROWS, self.depth
        order = ORDERS[self.order][self.skips]
        stack = Stack(N, d, 1, order, phi=nn.ReLU).double()
        if self.order == "post":  # already normalised
            stack.norm = nn.Identity()
        sizes = [L * d, L * d, *[12 * d * d] * N]
        X, G, *blocks = uniforms(self.seed, sum(sizes)).split(sizes)
        for p in stack.parameters():  # the weights follow; biases are 0, scales of norms 1
            nn.init.zeros_(p)
        for norm in (m for m in stack.modules() if isinstance(m, nn.LayerNorm)):
            norm.reset_parameters()
        for n, numbers in enumerate(blocks):
            qkv, out, up, down = (self.gain * numbers).split([m * d * d for m in (3, 1, 4, 4)])
            weights = {
                "attend.W_qkv": qkv.view(3, d, d).mT.reshape(3 * d, d) / d**0.5,
                "attend.W_o": out.view(d, d).T / d**0.5,
                "feed.W_1": up.view(d, 4 * d).T / d**0.5,
                "feed.W_2": down.view(4 * d, d).T / (4 * d) ** 0.5,
            }
            for name, W in weights.items():
                stack.get_parameter(f"blocks.{n}.{name}.weight").data.copy_(W)
        return signals(stack, X.view(1, L, d), G.view(1, L, d))
