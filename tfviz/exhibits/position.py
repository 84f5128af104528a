"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tfviz.exhibits.exhibit import STEPS, Exhibit, Gpt, N, Part, drawn, spread
from tfviz.position.learned_pe import table_rows
from tfviz.position.rope import Rope, rotate
from tfviz.position.shaw_relative import labels, shaw
from tfviz.position.sinusoidal_pe import Sinusoidal, similarity, sinusoids
from tfviz.position.xl_relative import rel_shift, xl


def turned() -> Tensor:
    """Scores of one query with one key, each turned by its place."""
    x = rotate(torch.ones(N, 8), STEPS, base=100.0)
    return spread(x @ x.T)


# --- in the race ----------------------------------------------------------------------------------


def sinusoidal(gpt: Gpt) -> dict[str, Any]:
    return {"positions": Sinusoidal(gpt.width, scale=gpt.width**-0.5)}


def learned(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions()}


def clipped(gpt: Gpt) -> dict[str, Any]:
    return {"core": shaw(gpt.d_head, 16)}


def four_terms(gpt: Gpt) -> dict[str, Any]:
    return {"core": xl(gpt.heads, gpt.d_head)}


def rotary(gpt: Gpt) -> dict[str, Any]:
    return {"core": lambda: Rope(gpt.d_head)}


EXHIBITS = {
    "sinusoidal_pe": Exhibit(
        lambda: spread(sinusoids(STEPS, N, base=100.0)),
        race=sinusoidal,
        raced="sinusoidal",
        exactness="exact",
        story={"sinusoidal": Part("position", sinusoidal, turned=False)},
    ),
    "learned_pe": Exhibit(
        lambda: spread(table_rows(STEPS, drawn(N, N)).clamp(-2, 2)),
        race=learned,
        raced="learned",
        exactness="exact",
        story={"learned": Part("position", learned, turned=False)},
    ),
    "shaw_relative": Exhibit(
        lambda: spread(labels(N, N, 4).float()),
        race=clipped,
        raced="shaw",
        exactness="exact",
        story={"Shaw": Part("position", clipped, turned=False)},
    ),
    "xl_relative": Exhibit(
        lambda: spread(
            rel_shift(similarity(STEPS.flip(0), 12, base=50.0).expand(N, N).contiguous())
        ).tril(),
        race=four_terms,
        raced="xl",
        exactness="exact",
    ),
    "rope": Exhibit(turned, race=rotary, raced="rotary", exactness="exact"),
}
