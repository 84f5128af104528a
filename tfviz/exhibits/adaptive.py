"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfviz.adaptive.adaptive_span import AdaptiveSpan, ramp
from tfviz.adaptive.calm_confidence import falling
from tfviz.adaptive.depth_classifiers import geometric
from tfviz.adaptive.dynamic_span import DynamicSpan, dynamic_spans
from tfviz.adaptive.ltt_calibration import hoeffding
from tfviz.adaptive.multi_scale_transformer import multi_scale
from tfviz.cores import Sparse
from tfviz.exhibits.exhibit import STEPS, Exhibit, Gpt, N, drawn


def soft_edge(z: Tensor, R: float) -> Tensor:
    """A causal mask whose edge is a ramp."""
    return ramp(STEPS[:, None] - STEPS, z, R).tril()


def windows_by_head() -> Tensor:
    """Four heads, each on a quarter of the picture."""
    heads = multi_scale((0, 1, 3, 8)).mask(N // 2).float()
    return torch.cat([torch.cat([heads[0], heads[1]], 1), torch.cat([heads[2], heads[3]], 1)])


def exits() -> Tensor:
    """Six blocks, from below; the weight of each exit's loss beside it."""
    block, share = (N - 1 - STEPS) // 4 + 1, STEPS / (N - 1)
    return torch.where(STEPS % 4 == 3, 0.0, 1.0)[:, None] * (share <= block[:, None] / 6)


def stop_or_go_on() -> Tensor:
    """q over 24 exits for 24 tokens, some more eager to stop than others."""
    q = geometric((STEPS[: N - 1] - 11 - 8 * (STEPS[:, None] / 3).sin()) / 2).exp()
    return (q / q.amax(1, keepdim=True)).T.flip(0)


def skipped() -> Tensor:
    """Which blocks each token computes under a falling threshold; paler what is only copied."""
    climbing = (STEPS + 1) / N + 0.3 * drawn(N, N)  # a confidence for each token and block
    left = (climbing >= falling(0.9, N)[:, None]).long().argmax(1)
    return torch.where(N - 1 - STEPS[:, None] <= left, 1.0, 0.25)


def safe_thresholds() -> Tensor:
    """p-values of risks that rise to the right, for more texts in each row; dark: rejected."""
    rows = [hoeffding(STEPS.numpy() / (3 * N), 20 * n, 0.2) for n in range(1, N + 1)]
    return 1 - torch.tensor(np.array(rows)).float() ** 0.3


# --- in the race ----------------------------------------------------------------------------------


def span_of_a_head(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": lambda: AdaptiveSpan(gpt.heads, S=64, R=16)}


def span_of_a_token(gpt: Gpt) -> dict[str, Any]:
    core = lambda: DynamicSpan(gpt.heads, gpt.d_head, S=64, R=16)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def scales(gpt: Gpt) -> dict[str, Any]:
    layers = [multi_scale(scales) for scales in ((1, 1, 3, 8), (1, 3, 8, 32))]
    return {"positions": gpt.positions(), "core": Sparse, "pattern": layers}


EXHIBITS = {
    "adaptive_span": Exhibit(
        lambda: soft_edge(torch.tensor(5.0), R=7), race=span_of_a_head, exactness="linear"
    ),
    "dynamic_span": Exhibit(
        lambda: soft_edge(
            dynamic_spans(
                (STEPS / 2.6).sin()[None, None, :, None], 3 * torch.ones(1, 1), drawn(1), 16
            )[0].T,
            R=2,
        ),
        race=span_of_a_token,
        exactness="linear",
    ),
    "multi_scale_transformer": Exhibit(windows_by_head, race=scales, exactness="linear"),
    "depth_adaptive_training": Exhibit(
        exits, why_not="it says where a token leaves the model, whose attention it does not change"
    ),
    "depth_classifiers": Exhibit(
        stop_or_go_on,
        why_not="it says where a token leaves the model, whose attention it does not change",
    ),
    "calm_confidence": Exhibit(
        skipped,
        why_not="it says where a token leaves the model, whose attention it does not change",
    ),
    "ltt_calibration": Exhibit(
        safe_thresholds,
        why_not="it says where a token leaves the model, whose attention it does not change",
    ),
}
