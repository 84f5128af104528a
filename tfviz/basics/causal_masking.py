"""Causal masking: no position sees what it has to predict, so all positions train in one pass.

    S_i = {j : j ≤ i}        M_ij = 0 if j ≤ i else −∞, added to the scores before the softmax
    𝓛 = −(1/L) Σ_i log p(z_i | z_{<i})        with z_{<i} the true past (teacher forcing)

Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.3. Position i of the model *reads* token z_{i−1}
(the inputs are shifted right by one) and *predicts* z_i; so it may look at its own input. The
pattern with all its faces is `tfviz.patterns.causal`.

>>> causal_bias(3).tolist()
[[0.0, -inf, -inf], [0.0, 0.0, -inf], [0.0, 0.0, 0.0]]
>>> shift_right(torch.tensor([[5, 6, 7]]), begin=0).tolist()
[[0, 5, 6]]
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named

__all__ = ["causal_bias", "leaks", "shift_right", "token_losses"]

Model = Callable[[Tensor], Tensor]
"""Tokens (b, L) → logits (b, L, vocab)."""


@named
def causal_bias(L: int) -> Float[Tensor, "L L"]:
    """M: 0 where query i may use key j, −∞ where j lies ahead of it."""
    i = torch.arange(_arguments.integer("L", L, 1))
    return torch.where(i[None, :] <= i[:, None], 0.0, -math.inf)


@named
def shift_right(z: Int[Tensor, "b L"], begin: int) -> Int[Tensor, "b L"]:
    """What the model reads while it must say z: a token that means "begin", then z without its
    last."""
    _arguments.integer("begin", begin, 0)
    return torch.cat([torch.full_like(z[:, :1], begin), z[:, :-1]], 1)


@named
def token_losses(logits: Float[Tensor, "b L vocab"], z: Int[Tensor, "b L"]) -> Float[Tensor, "b L"]:
    """−log p(z_i) of every position, in nats."""
    return F.cross_entropy(logits.transpose(1, 2), z, reduction="none")


def one_pass(model: Model, z: Int[Tensor, "b L"], begin: int) -> Float[Tensor, "b L"]:
    """−log p(z_i | z_{<i}) for every i, from a single pass. Right only if the model is causal."""
    return token_losses(model(shift_right(z, begin)), z)


def one_by_one(model: Model, z: Int[Tensor, "b L"], begin: int) -> Float[Tensor, "b L"]:
    """The same by its definition: L passes, each over the past alone.

    Nothing can leak, whatever the model's mask is: the future is not there.
    """
    read = shift_right(z, begin)
    last = [model(read[:, : i + 1])[:, -1] for i in range(z.shape[1])]
    return token_losses(torch.stack(last, 1), z)


def listens_to(f: Callable[[Tensor], Tensor], X: Float[Tensor, "L d"]) -> Float[Tensor, "L_out L"]:
    """‖∂f(X)_i / ∂x_j‖ for all i and j: how much output i moves when input j does.

    f takes (L, d) to (L_out, …). The entry is exactly 0 where j cannot reach i, in one layer or
    through many.
    """
    J = torch.autograd.functional.jacobian(f, X)  # (L_out, …, L, d)
    assert isinstance(J, Tensor)
    L, d = X.shape
    return J.reshape(J.shape[0], -1, L, d).norm(dim=(1, 3))


@named
def leaks(f: Callable[[Tensor], Tensor], X: Float[Tensor, "L d"]) -> list[tuple[int, int]]:
    """The pairs (i, j), j > i, for which output i listens to a later input; none if f is causal."""
    i, j = listens_to(f, X).triu(1).nonzero(as_tuple=True)
    return list(zip(i.tolist(), j.tolist(), strict=True))
