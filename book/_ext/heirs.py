"""The pictures of *What remains after the survey*: each shows what a room of the library
computes from the formula beside it.

    ```{heir} differential      a key of `PICTURES`

Nothing here is one of the 93 mechanisms. The numbers are drawn at random, with a fixed seed, unless
the function says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
from catalogue_directives import svg
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from torch import Generator, Tensor

from tfviz import anatomy, patterns, plots
from tfviz.basics.flash_attention import outputs_so_far
from tfviz.basics.mixture_of_experts import routed
from tfviz.compressed.delta_rule import read_back
from tfviz.heads.differential_attention import difference, start_of_lambda
from tfviz.plots import Figure
from tfviz.plots.canvas import SMALL, WIDE, Canvas, fitted
from tfviz.plots.roles import LIGHT, Role
from tfviz.plots.shapes import rectangles
from tfviz.sparse.native_sparse import branches


def drawn(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=Generator().manual_seed(seed), dtype=torch.float64)


# --- FlashAttention -------------------------------------------------------------------------------


def flash() -> Figure:
    scores, values = 2 * drawn(64, seed=3), drawn(64, seed=5)
    found = outputs_so_far(scores, values, 8).tolist()
    whole = float(torch.softmax(scores, 0) @ values)
    with plots.style():
        drawing, place = plt.subplots(figsize=(6.4, 2.3))
        place.axhline(whole, color=LIGHT["ink"], lw=1.2, ls="--")
        place.plot(range(8, 65, 8), found, "o-", color=LIGHT["attention"])
        place.set(xlabel="keys read so far", ylabel="output of one query", xlim=(4, 68))
        place.text(18, whole - 0.05, "softmax over all keys", ha="left", va="top")
    return plots.figure(
        drawing,
        alt=f"The output of one query after every eighth of 64 keys: it begins at {found[0]:.2f}, "
        f"wanders, and ends at {whole:.2f}, the softmax over all keys.",
        caption="Violet: what the query would answer if its keys ended here. "
        "No more than eight scores exist at a time.",
    )


# --- sinks and windows ----------------------------------------------------------------------------


def sinks() -> Figure:
    window = patterns.sliding_window(lookback=7)
    first = patterns.global_tokens(count=4) & patterns.causal()
    return plots.mask(
        {"eight keys": window, "and four sinks": window | first},
        24,
        size=156,
        caption="The sinks are a stripe at the left: every token can still reach the first four.",
    )


# --- multi-head latent attention ------------------------------------------------------------------

MODEL = anatomy.of("deepseek-v3")
HEADS, WIDTH = (MODEL.fields["latent"][size] for size in ("heads", "value"))
CACHED = {
    f"multi-head: {HEADS} keys, {HEADS} values": 2 * HEADS * WIDTH,
    "eight groups": 2 * 8 * WIDTH,
    "latent (MLA)": MODEL.cache(1, bits=8) // len(MODEL.layers),
    "multi-query: one key, one value": 2 * WIDTH,
}
"""Numbers that a token leaves in the cache of a layer of DeepSeek-V3, and would leave otherwise."""


def latent() -> Figure:
    def draw(room: float) -> Canvas:
        width = min(room, WIDE) - 70
        canvas = Canvas(width + 66, 52 * len(CACHED))
        for n, (name, numbers) in enumerate(CACHED.items()):
            role: Role = "attention" if "MLA" in name else "muted"
            length = width * numbers / max(CACHED.values())
            top = 52 * n + 22
            canvas.text(1, top - 7, name, "ink", size=SMALL, bold="MLA" in name)
            canvas.draw(rectangles([(1, top, length, 18)]), "bar", fill=role)
            canvas.text(length + 6, top + 9, f"{numbers:,}", "ink", size=SMALL, va="middle")
        return canvas

    sizes = "; ".join(f"{name}: {numbers:,}" for name, numbers in CACHED.items())
    alt = f"Bars, drawn to scale: numbers that a token leaves in the cache of one layer. {sizes}."
    return Figure(
        [fitted(draw, alt)],
        caption=f"Numbers that a token leaves in the cache of one layer, with {HEADS} heads of "
        f"{WIDTH} numbers. MLA keeps about as little as two heads of keys and values would.",
    )


# --- linear recurrences ---------------------------------------------------------------------------


def recurrences() -> Figure:
    keys = torch.eye(2, dtype=torch.float64).repeat(3, 1)
    names = [*"ab"] * 3
    return plots.attention_map(
        torch.stack([read_back(keys, 1, 0), read_back(keys, 0.8, 0), read_back(keys, 1, 1)]),
        pattern=patterns.causal(),
        rows=names,
        columns=names,
        xlabel="written with",
        ylabel="read with",
        title=["plain sum", "gate 0.8", "delta rule"],
        size=140,
        of="share given back",
        caption="Two keys, a and b, take turns. A sum returns all that was ever written under a "
        "key, a gate lets the old fade, and the delta rule returns the last value alone.",
    )


# --- native sparse attention ----------------------------------------------------------------------


def native_sparse() -> Figure:
    Q, K = drawn(24, 16, seed=1), drawn(24, 16, seed=2)
    means, selected, window = branches(Q, K, block=4, chosen=2, lookback=3)
    first = plots.attention_map(
        means,
        pattern=patterns.causal(),
        title="means of blocks",
        of="weight of a mean",
        size=140,
    )
    keys = plots.mask({"the best blocks": selected, "a window": window}, size=140)
    return Figure(
        [*first.panels, *keys.panels],
        caption="Each query reads three lists: one mean for each earlier block of four keys; the "
        "keys of its own block and of the two blocks that fit best; and its nearest keys.",
    )


# --- differential attention -----------------------------------------------------------------------


def noise_and_needle(L: int, needle: int) -> tuple[Tensor, Tensor]:
    """Two causal maps with the same noise; the first also looks for key `needle`."""
    noise = 1.5 * drawn(L, L, seed=0)
    wanted = noise.clone()
    wanted[:, needle] += 2.5
    future = torch.ones(L, L, dtype=torch.bool).triu(1)
    first, second = (scores.masked_fill(future, -math.inf) for scores in (wanted, noise))
    return first.softmax(-1), second.softmax(-1)


def differential() -> Figure:
    first, second = noise_and_needle(12, 3)
    much = start_of_lambda(11)
    maps = plots.attention_map(
        torch.stack([first, second]),
        pattern=patterns.causal(),
        title=["first map", "second map"],
        size=160,
    )
    rest = plots.signed_map(
        difference(first, second, much),
        pattern=patterns.causal(),
        vmax=1,
        title=f"first − {much:.2f} × second",
        size=160,
    )
    return Figure(
        [*maps.panels, *rest.panels],
        caption="Built to show the idea: both maps have the same noise, and the first one also "
        "looks for key 3. In the difference, its column stands out.",
    )


# --- mixture of experts ---------------------------------------------------------------------------


def experts() -> Figure:
    p = drawn(12, 8, seed=11).softmax(-1)
    kept = routed(p, 2)
    loads = (kept > 0).sum(0).tolist()
    return plots.attention_map(
        kept.T,
        pattern=kept.T > 0,
        numbers=False,
        xlabel="token",
        ylabel="expert",
        vmax=0.5,
        of="weight of the expert",
        size=224,
        caption="Each token runs two of eight experts; hatched ones cost nothing. With an "
        f"untrained router, one expert gets {max(loads)} tokens and another {min(loads)}.",
    )


PICTURES: dict[str, Callable[[], Figure]] = {
    "flash": flash,
    "sinks": sinks,
    "latent": latent,
    "recurrences": recurrences,
    "native_sparse": native_sparse,
    "differential": differential,
    "experts": experts,
}


class Heir(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in PICTURES:
            raise self.error(f"no picture {name!r} of an heir; choose one of {', '.join(PICTURES)}")
        return [svg(PICTURES[name]().html)]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("heir", Heir)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
