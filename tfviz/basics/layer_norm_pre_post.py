"""Layer normalisation, and the two places for it.

    LN(x) = γ ⊙ (x − μ)/√(Var + ε) + β        μ, Var of the d numbers of a token, Var with 1/d
    post:  z = LN(x + F(x))                   pre:  z = x + F(LN(x)), and one LN after the last

LN: Ba, Kiros, Hinton 2016 (arXiv 1607.06450). Post-norm is Vaswani et al. 2017; pre-norm came soon
after; Xiong et al. 2020 (arXiv 2002.04745) compare their gradients. The two orders themselves are
`tfviz.models.blocks.post_norm` and `pre_norm`, because the models use them; here are LN, orders
with a part left out, and what to measure.

    RMSNorm(x) = γ ⊙ x/√(Σ_c x_c²/d + ε)

RMSNorm is Zhang and Sennrich 2019 (arXiv 1910.07467), equation 4, which has no ε; here it stands
under the root, as in Llama and in torch.

>>> [round(x, 2) for x in layer_norm(torch.tensor([1.0, 2.0, 3.0])).tolist()]
[-1.22, 0.0, 1.22]
>>> [round(x, 2) for x in rms_norm(torch.tensor([1.0, 2.0, 3.0])).tolist()]
[0.46, 0.93, 1.39]
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.models.blocks import Layer, Stack
from tfviz.models.blocks import post_norm as post_norm  # two of the orders of this room
from tfviz.models.blocks import pre_norm as pre_norm

__all__ = ["RMSNorm", "layer_norm", "layer_norm_jacobian", "rms_norm", "signals"]


HALF = (torch.float16, torch.bfloat16)  # computed in float32: a square of 256 overflows float16


@named
def layer_norm(
    X: Float[Tensor, "*L d"],
    gamma: Float[Tensor, "d"] | float = 1.0,
    beta: Float[Tensor, "d"] | float = 0.0,
    eps: float = 1e-5,
) -> Float[Tensor, "*L d"]:
    """Each row to mean 0 and variance 1, then times γ plus β.

    Raises ValueError for other shapes.
    """
    eps = _arguments.real("eps", eps, 0.0)
    _columns(X, gamma=gamma, beta=beta)
    if X.dtype in HALF:
        return layer_norm(X.float(), gamma, beta, eps).to(X.dtype)
    centred = X - X.mean(-1, keepdim=True)
    variance = (centred**2).mean(-1, keepdim=True)  # divided by d, not by d − 1
    return gamma * centred / (variance + eps).sqrt() + beta


@named
def rms_norm(
    X: Float[Tensor, "*L d"], gamma: Float[Tensor, "d"] | float = 1.0, eps: float = 1e-5
) -> Float[Tensor, "*L d"]:
    """The same without subtracting the mean, and without β: only the length of a row is set."""
    eps = _arguments.real("eps", eps, 0.0)
    _columns(X, gamma=gamma)
    if X.dtype in HALF:
        return rms_norm(X.float(), gamma, eps).to(X.dtype)
    return gamma * X / ((X**2).mean(-1, keepdim=True) + eps).sqrt()


class RMSNorm(nn.Module):
    """`rms_norm` with a trained γ, for `Block(…, norm=RMSNorm)`: X (…, d) → (…, d).

    `weight` is γ, (d,), and begins at 1; torch's `nn.LayerNorm` and `nn.RMSNorm` call it so.
    Raises ValueError for rows of another width. Zhang and Sennrich 2019 (arXiv 1910.07467).

    >>> RMSNorm(2, eps=0.0)(torch.tensor([[3.0, 3.0], [-4.0, 4.0]])).tolist()
    [[1.0, 1.0], [-1.0, 1.0]]
    """

    @named
    def __init__(self, d: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = _arguments.real("eps", eps, 0.0)
        self.weight = nn.Parameter(torch.ones(_arguments.integer("d", d, 1)))

    @named
    def forward(self, X: Float[Tensor, "*L d"]) -> Float[Tensor, "*L d"]:
        if X.shape[-1:] != self.weight.shape:
            raise ValueError(
                f"X has shape {tuple(X.shape)}; give rows of {len(self.weight)} numbers, as d says"
            )
        return rms_norm(X, self.weight, self.eps)


def _columns(X: Tensor, **given: Tensor | float) -> None:
    """γ and β have one number for each column, or one in all."""
    for name, value in given.items():
        if isinstance(value, Tensor) and value.ndim and value.shape != X.shape[-1:]:
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}, rows of X have {X.shape[-1]} numbers; "
                f"give {name} the shape ({X.shape[-1]},)"
            )


@named
def layer_norm_jacobian(x: Float[Tensor, "d"], eps: float = 1e-5) -> Float[Tensor, "d d"]:
    """∂LN(x)/∂x at γ = 1: (I − 1/d − x̂ᵀx̂/d)/σ, σ = √(Var + ε).

    Two directions are lost, the mean and the length of x; all others are divided by σ.
    """
    d = len(x)
    sigma = ((x - x.mean()) ** 2).mean().add(eps).sqrt()
    hat = (x - x.mean()) / sigma
    eye = torch.eye(d, dtype=x.dtype)
    return (eye - torch.full_like(eye, 1 / d) - torch.outer(hat, hat) / d) / sigma


# --- orders with something left out, for comparison -----------------------------------------------


def no_norm(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return X + F(X)


def pre_norm_no_skip(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return F(LN(X))


def post_norm_no_skip(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return LN(F(X))


def no_norm_no_skip(X: Tensor, F: Layer, LN: Layer) -> Tensor:
    return F(X)


# --- what goes forwards and what comes back -------------------------------------------------------


@dataclass(frozen=True)
class Signals:
    """Of a stack of N blocks, for a pull G on its output.

    stream     root mean square of X before block 1, …, before block N, and after it: N + 1 numbers
    gradient   root mean square of ∂⟨G, output⟩/∂X at the same places
    weights    ‖∂⟨G, output⟩/∂W_2‖ of the feed-forward of block 1 … N
    """

    stream: list[float]
    gradient: list[float]
    weights: list[float]


@named
def signals(stack: Stack, X: Float[Tensor, "b L d"], G: Float[Tensor, "b L d"]) -> Signals:
    """Run X through the stack and send G back. Gradients of the stack's weights are left alone."""
    states = [X.detach().requires_grad_()]
    for block in stack.blocks:
        states.append(block(states[-1]))
    W_2 = [stack.get_parameter(f"blocks.{n}.feed.W_2.weight") for n in range(len(stack.blocks))]
    found = torch.autograd.grad((G * stack.norm(states[-1])).sum(), [*states, *W_2])
    N = len(stack.blocks)
    return Signals(
        [_rms(x) for x in states],
        [_rms(g) for g in found[: N + 1]],
        [float(g.norm()) for g in found[N + 1 :]],
    )


def _rms(X: Tensor) -> float:
    return float(X.detach().square().mean().sqrt())
