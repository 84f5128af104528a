"""Guided attention: some heads are shown a simple pattern by a loss, early in training.

    loss + α Σ_layers Σ_patterns mean over batch, heads of the pattern and L² of (A − T)²

    T_ij = 1 where j is the key that the pattern names for query i, else 0

Deshpande, Narasimhan 2020 (arXiv 2010.02399); their code is ameet-1997/AttentionGuidance,
`trainer_ag.py`: patterns are the same token, the next, the previous and the first one, and the
default there is 0, 1, 1 and 4 of a layer's heads. α is constant at first, then falls linearly to 0
at the end of training. The survey writes a Frobenius norm; the code takes the mean of the squares.
The patterns of delimiters that the paper has besides are not in that code, and not here.

The first token has no previous one, and the last one no next: the row of T is 0, and no softmax
reaches it. `floors` says how much is left of such rows at best; it is a constant, without gradient.

>>> targets("previous", 4).int().tolist()
[[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
>>> floors(targets("previous", 4)).tolist()
[0.25, 0.0, 0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.models.use import maps

__all__ = ["floors", "guidance", "guided_loss", "strength", "targets"]

SHIFTS = {"same": 0, "next": 1, "previous": -1}
PATTERNS = ("same", "next", "previous", "first")

Heads = Mapping[str, Sequence[int]]
"""The heads that are shown each pattern, in every layer."""


@named
def targets(pattern: str, L: int) -> Float[Tensor, "L L"]:
    """T: 1 at the key that the pattern names for each query. A row of 0 where it names none.

    Raises ValueError for an unknown pattern.
    """
    L = _arguments.integer("L", L, 1)
    if pattern not in PATTERNS:
        raise ValueError(f"pattern = {pattern!r}; choose from {', '.join(PATTERNS)}")
    if pattern == "first":
        return torch.eye(L)[:1].expand(L, L).clone()
    return torch.diag(torch.ones(L - abs(SHIFTS[pattern])), SHIFTS[pattern])


@named
def floors(T: Float[Tensor, "L L"], mask: Bool[Tensor, "L L"] | None = None) -> Float[Tensor, "L"]:
    """The least Σ_j (A_ij − T_ij)² of each row, over all weights on the keys that it may see.

    A key that T asks for and that is visible: 0. None, or one that is not visible: the best row is
    uniform over n visible keys, 1/n, and a key that is asked for in vain adds 1.

    Raises ValueError for rows of T with more than one key.
    """
    if not bool(((T == 0) | (T == 1)).all()) or bool((T.sum(-1) > 1).any()):
        raise ValueError(
            "T has a row with more than one key, or other numbers; give 0, and at most one 1"
        )
    visible = torch.ones_like(T, dtype=torch.bool) if mask is None else mask
    if visible.shape != T.shape:
        raise ValueError(
            f"mask has shape {tuple(visible.shape)}, T {tuple(T.shape)}; give them one shape"
        )
    keys = visible.sum(-1)
    if not bool(keys.all()):
        raise ValueError("mask has a row without keys; give each query at least one")
    wanted = T.sum(-1)
    reached = (T * visible).sum(-1)
    return torch.where(reached > 0, 0.0, wanted + 1 / keys.to(T))


@named
def guided_loss(A: Float[Tensor, "*b h L L"], T: Float[Tensor, "L L"]) -> Float[Tensor, ""]:
    """The mean of (A − T)² over batch, heads and L²."""
    if A.shape[-2:] != T.shape:
        raise ValueError(
            f"A has shape {tuple(A.shape)}, T {tuple(T.shape)}; the last two must agree"
        )
    return (A - T).square().mean()


@named
def guidance(model: nn.Module, heads: Heads) -> Float[Tensor, ""]:
    """What α multiplies: Σ over layers and patterns of `guided_loss`, of the model's last call.

    Call the model within `with watched(model)`. Raises ValueError for an unknown pattern, a head
    that is not there, and a pattern that a layer's mask lets no query follow.
    """
    if not heads:
        raise ValueError(f"heads = {heads!r} guides nobody; give {{'previous': [0]}} or more")
    found = []
    for name, A in maps(model).items():
        h, L = A.shape[1], A.shape[-1]
        for pattern, chosen in heads.items():
            T = targets(pattern, L).to(A)
            for m in chosen:
                _arguments.integer("head", m, 0, h - 1)
            if L > 1 and not bool((A.detach().amax((0, 1)) * T).any()):
                raise ValueError(
                    f"pattern = {pattern!r} asks for keys that {name!r} never sees; give one that "
                    "its mask allows, such as 'previous' in a causal model"
                )
            found.append(guided_loss(A[:, list(chosen)], T))
    return torch.stack(found).sum()


@named
def strength(step: int, steps: int, hold: int, alpha: float = 100.0) -> float:
    """α in this step: constant for `hold` steps, then on a line to 0 at the last of `steps`.

    >>> [strength(step, steps=10, hold=5) for step in (0, 5, 6, 9, 10)]
    [100.0, 100.0, 80.0, 20.0, 0.0]
    """
    steps = _arguments.integer("steps", steps, 1)
    step = _arguments.integer("step", step, 0, steps)
    hold = _arguments.integer("hold", hold, 0, steps)
    alpha = _arguments.real("alpha", alpha, 0)
    return alpha if step < hold else alpha * (steps - step) / max(1, steps - hold)
