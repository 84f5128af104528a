"""Does Learn-then-Test keep its promise? Early exit on texts whose true risk is known.

The world is a set of held-out texts. A text is lost if its last letter, with exits by softmax
response on the way to it, is another one than the full model's: 0 or 1. Calibration texts are drawn
from this world, with replacement, so the risk of every threshold is known exactly. `exits` stores
what comes of it for its models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tfviz.adaptive import calm_confidence as calm
from tfviz.adaptive import ltt_calibration as ltt
from tfviz.models.gpt import GPT

DRAWS, EPSILON = 1000, 0.1
LEVELS = [round(1 - k / 20, 2) for k in range(20)]  # the strictest first
TESTS = {
    "exact": ltt.binomial,
    "Hoeffding–Bentkus": ltt.hoeffding_bentkus,
    "Hoeffding": ltt.hoeffding,
}
DELTAS, SIZES = (0.05, 0.1, 0.15), (50, 200, 1000)


@torch.no_grad()
def world(model: GPT, x: Tensor, prompt: int) -> dict[str, Any]:
    """Of each threshold: which of the texts are lost, 0 or 1 in a string, and the mean exit."""
    full = model(x)[:, -1].argmax(-1)
    lost, depth = list[str](), list[float]()
    for level in LEVELS:
        levels = torch.full(x.shape[1:], level)
        levels[:prompt] = torch.inf
        logits, n = calm.read_early(model, x, calm.softmax_response, levels)
        lost.append("".join(str(int(bit)) for bit in logits[:, -1].argmax(-1) != full))
        depth.append(round(n[:, prompt:].double().mean().item(), 4))
    return {"lost": lost, "depth": depth}


def table(lost: Sequence[str]) -> np.ndarray[Any, Any]:
    """(texts, thresholds), 0 or 1."""
    return np.array([[int(bit) for bit in row] for row in lost], dtype=np.int8).T


def promise(
    found: dict[str, Any], blocks: int, test: str, delta: float, n: int, seed: int
) -> dict[str, float]:
    """Over DRAWS draws of n texts: how often the true risk is above δ, and the mean exit.

    `test` "none" takes the lowest threshold whose risk on the n texts is δ or less.
    """
    lost, rng, chosen = table(found["lost"]), np.random.default_rng(seed), list[int]()
    risk, depth = [0.0, *lost.mean(0)], [float(blocks), *found["depth"]]
    for _ in range(DRAWS):
        drawn = lost[rng.integers(len(lost), size=n)]
        if test == "none":
            safe = np.nonzero(drawn.mean(0) <= delta)[0]
            chosen.append(int(safe.max()) + 1 if len(safe) else 0)
        else:
            chosen.append(ltt.learn_then_test(drawn, delta, EPSILON, TESTS[test]))
    return {
        "broken": round(float(np.mean([risk[k] > delta for k in chosen])), 4),
        "depth": round(float(np.mean([depth[k] for k in chosen])), 4),
        "none safe": round(float(np.mean([k == 0 for k in chosen])), 4),
    }


def promises(found: dict[str, Any], blocks: int, seed: int) -> list[dict[str, Any]]:
    """Every test, or none, with every δ and n."""
    settings = [(test, delta, n) for test in [*TESTS, "none"] for delta in DELTAS for n in SIZES]
    return [
        {"test": test, "delta": delta, "n": n, **promise(found, blocks, test, delta, n, seed)}
        for test, delta, n in settings
    ]
