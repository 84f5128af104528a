"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tfviz.exhibits.exhibit import STEPS, Exhibit, Gpt, N, Part, drawn, spread
from tfviz.longer_context.act import halting
from tfviz.longer_context.alibi import Alibi
from tfviz.longer_context.compressive_transformer import mean_pool
from tfviz.longer_context.da_transformer import DA, rescale
from tfviz.longer_context.knn_lm import mixed, p_knn
from tfviz.longer_context.memorizing_transformer import nearest_pairs
from tfviz.longer_context.spalm import gated
from tfviz.longer_context.universal_transformer import Universal, changes, universal
from tfviz.longer_context.ut_time_position_signal import TimePosition, time_position
from tfviz.models.blocks import Block, post_norm


def with_memory() -> Tensor:
    """Segments of 8 that read themselves, and paler a memory of 6 rows."""
    i, j = STEPS[:, None], STEPS
    own, past = (j <= i) & (j >= i // 8 * 8), (j < i // 8 * 8) & (j >= i // 8 * 8 - 6)
    return own + 0.45 * past


def squeezed_past() -> Tensor:
    """A signal, drawn as 16 bars; of the first half, four at a time are one."""
    x = (12 + 7 * (STEPS / 3).sin() + 3 * drawn(N)).clamp(2, 22)
    x[:12] = mean_pool(x[None, :12, None], None, 4).flatten().repeat_interleave(4)
    filled = STEPS.flip(0)[:, None] < x
    return filled * torch.where(STEPS < 12, 1.0, 0.45)


def blended() -> Tensor:
    """Bars of eight words: the model's at the bottom, what neighbours add above them, paler."""
    words = torch.tensor([2, 2, 5, 2, 5, 6])
    p_lm = torch.tensor([0.3, 0.22, 0.14, 0.1, 0.08, 0.07, 0.05, 0.04])
    p = mixed(p_lm, p_knn(torch.linspace(0, 2, 6), words, 8), 0.5)
    height = STEPS.flip(0)[:, None] + 0.5
    model, both = (60 * x.repeat_interleave(3) for x in (p_lm / 2, p))
    return torch.where(height < model, 1.0, 0.5 * (height < both))


def gates() -> Tensor:
    """24 places of a text, each as high as its gate."""
    _, _, g = gated(drawn(N, 4), torch.zeros(N, 1, 4), torch.tensor([2.0, 1.0, 0.0, 0.0]))
    return torch.where(STEPS.flip(0)[:, None] < N * g, 1.0, 0.25)


def far_memories() -> Tensor:
    """Each query's best three of 18 memories, and causal attention in a window of 6."""
    Q, K = drawn(1, 1, N, 3), drawn(1, 1, 18, 3, seed=1)
    picture = torch.zeros(N, N).scatter(1, nearest_pairs(Q, K, 3)[1][0, 0], 1.0)
    picture[:, 18:] = 0.45 * (STEPS[:, None] // 4 >= torch.arange(6))
    return picture


def near_and_far() -> Tensor:
    """DA's curve in two heads: what is near above the diagonal's end, what is far below."""
    n = (STEPS[:, None] - STEPS).abs().float()
    near, far = rescale(n, -0.4, 1.0), rescale(n, 0.4, 1.0)
    return torch.where(STEPS[:, None] >= STEPS, near, far / far.max())


def eight_ramps() -> Tensor:
    """The weights that ALiBi's eight heads give to keys without content, three rows a head."""
    Q = torch.zeros(1, 8, N, 1)
    ramps = Alibi(8).bias(Q, Q)[:, -1].exp()
    return ramps.repeat_interleave(3, 0)


def says() -> Tensor:
    """What twelve places say at six steps: h, more at each."""
    return (drawn(12, 1, seed=6) + 0.5 * torch.arange(6) - 1.8).sigmoid()


def stacked() -> Tensor:
    """Weights of the steps piled up to one, place by place; each piece paler than the last."""
    p = halting(says()).p
    low, high = (N * (p.cumsum(1) - p), N * p.cumsum(1))
    height = torch.arange(N).flip(0)[:, None, None] + 0.5
    piece = (height >= low) & (height < high)  # (N, 12, 6)
    shade = (piece * torch.linspace(1, 0.25, 6)).sum(-1)
    return shade.repeat_interleave(2, 1)


def strips() -> Tensor:
    """Which of twelve places still run: six steps from top to bottom."""
    runs = (torch.arange(6)[:, None] < halting(says()).N).float()
    return (0.12 + 0.8 * runs).repeat_interleave(4, 0).repeat_interleave(2, 1)


def looped() -> Tensor:
    """How far twelve states move in each of twelve steps of one layer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        stack = Universal(Block(16, 2, post_norm), 12, TimePosition(16))
    moved = changes(stack.states(drawn(1, 12, 16, seed=4)))[0]
    return spread(moved.log()).repeat_interleave(2, 0).repeat_interleave(2, 1)


# --- in the race ----------------------------------------------------------------------------------


def rescaled(gpt: Gpt) -> dict[str, Any]:
    return {"core": DA}


def ramps(gpt: Gpt) -> dict[str, Any]:
    return {"core": Alibi}


# --- in the story model ---------------------------------------------------------------------------


def three_times(gpt: Gpt) -> dict[str, Any]:
    """Without a code for the step: positions are rotary, as in the base."""
    return {"N": 1, "finish": partial(universal, T=3, signal=None)}


NO_MEMORY = "on texts that do not follow one another its memory stays empty"
NO_ATTENTION = "it changes how often a layer is used, and what is added before it"
EXHIBITS = {
    "transformer_xl_recurrence": Exhibit(
        with_memory,
        why_not=NO_MEMORY,
    ),
    "compressive_transformer": Exhibit(
        squeezed_past,
        why_not=NO_MEMORY,
    ),
    "knn_lm": Exhibit(
        blended, why_not="it is a store beside the model, and what comes after the last layer"
    ),
    "spalm": Exhibit(
        gates, why_not="it is a store beside the model, and what comes after the last layer"
    ),
    "memorizing_transformer": Exhibit(
        far_memories,
        why_not=NO_MEMORY,
    ),
    "da_transformer": Exhibit(near_and_far, race=rescaled, raced="da", exactness="exact"),
    "alibi": Exhibit(
        eight_ramps,
        race=ramps,
        raced="alibi",
        exactness="exact",
        story={"ALiBi": Part("position", ramps, turned=False)},
    ),
    "universal_transformer": Exhibit(
        looped,
        why_not=NO_ATTENTION,
        story={"one block three times": Part("blocks", three_times)},
    ),
    "ut_time_position_signal": Exhibit(
        lambda: spread(
            torch.cat([time_position(STEPS, t, N // 4, base=60.0) for t in (1, 4, 7, 10)], 1)
        ),
        why_not=NO_ATTENTION,
    ),
    "act": Exhibit(
        stacked,
        why_not=NO_ATTENTION,
    ),
    "ut_act": Exhibit(
        strips,
        why_not=NO_ATTENTION,
    ),
}
