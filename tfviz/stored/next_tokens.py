"""Next-token distributions that a trained model left behind, for `beam_search` to search.

>>> look = stored_next(lambda tokens: "3:-693 1:-693", length=1, V=5)
>>> [round(x, 3) for x in look(torch.zeros(1, 1), torch.zeros(1))[0].tolist()]
[-inf, -0.693, -inf, -0.693, -inf]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tfviz.basics.decoding_strategies import Next


def stored_next(look: Callable[[Sequence[int]], str], length: int, V: int) -> Next:
    """What `beam_search` asks for, from what is stored: tokens after the prompt, which has `length`
    → "token:1000·log p token:…" for the V tokens; those that are not listed cannot come."""

    def next_log_p(rows: Tensor, parent: Tensor) -> Tensor:
        out = torch.full((len(rows), V), -torch.inf, dtype=torch.float64)
        for row, tokens in enumerate(rows.tolist()):
            for pair in look(tokens[length:]).split():
                token, milli = pair.split(":")
                out[row, int(token)] = int(milli) / 1000
        return out

    return next_log_p
