"""Does early exit save time? Seconds per letter beside the full model, on one thread, in turns.

    python bench/early_exit.py

A GPT of 12 blocks of width 256 with random weights writes 64 letters; where they leave is set, not
found, so that only the cost is measured. Softmax response looks at all 103 letters at each block.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor

from tfviz.adaptive.calm_confidence import Confidence, token_flops, write_early
from tfviz.longer_context.alibi import Alibi
from tfviz.measure import in_turns
from tfviz.models.gpt import GPT
from tfviz.training import seeded

N, D, VOCAB, PROMPT, STEPS = 12, 256, 103, 16, 64
# exit -> at most this × the full model's time
LIMITS = {3: 0.50, 6: 0.70, 12: 1.25}


def leaving(at: int, looks: bool) -> Confidence:
    """Confident behind block `at`, after a look at the logits of each block or of none."""
    seen = 0

    def confidence(X: Tensor, before: Tensor | None, logits: Callable[[], Tensor]) -> Tensor:
        nonlocal seen
        seen = 1 if before is None else seen + 1
        if looks:
            logits().softmax(-1).topk(2, -1)
        return torch.full(X.shape[:-1], float(seen >= at))

    return confidence


def main() -> None:
    torch.set_num_threads(1)
    model = seeded(0, lambda: GPT(VOCAB, D, 4, N, core=Alibi))
    text = torch.randint(VOCAB, (1, PROMPT))

    def writes(at: int, looks: bool) -> Callable[[], Any]:
        return lambda: write_early(model, text, STEPS, leaving(at, looks), 0.5)

    calls = {(at, looks): writes(at, looks) for at in LIMITS for looks in (False, True)}
    times = in_turns({f"{key}": call for key, call in calls.items()}, rounds=7)
    full = times[f"{(N, False)}"]
    for at, looks in calls:
        mine = times[f"{(at, looks)}"]
        ratio = median(a / b for a, b in zip(mine, full, strict=True))
        reads = at if looks else 1
        counted = token_flops(at, N, D, VOCAB, PROMPT + STEPS / 2, reads)
        counted /= token_flops(N, N, D, VOCAB, PROMPT + STEPS / 2)
        limit = LIMITS[at] * (1.3 if looks else 1)
        word = "" if ratio <= limit else f"  ABOVE THE LIMIT {limit:.2f}"
        kind = "softmax response" if looks else "saturation, classifier"
        print(f"exit {at:2} of {N}, {kind:22} time × {ratio:.2f}, FLOPs × {counted:.2f}{word}")


if __name__ == "__main__":
    main()
