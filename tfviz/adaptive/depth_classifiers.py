"""Where should a token leave? An oracle knows the answers, and three classifiers learn it.

    n* = argmax_n (LLⁿ − γ n)                   the oracle's exit: best after a price γ per block
    κ(t, t') = exp(−|t − t'|²/β)                a token's score also counts its neighbours'

    q(n) = softmax(x̄ W + b)                     (a) one exit for a whole sequence
    q_t(n) = softmax(h_t¹ W + b)                (b) one for each token, decided after block 1
    q_t(n) = χ_tⁿ Π_{n'<n} (1 − χ_tⁿ')          (c) at each block: stop, or go on?
    χ_tⁿ = σ(h_tⁿ w_n + b_n) for n < N, χ_t^N = 1

Elbayad, Gu, Grave, Auli 2020 (arXiv 1910.10073). The paper writes λ for the price γ and σ
for the smoothing β. C, which counts right tokens, may stand in for LL.
Exits are counted from 1. Where we deviate: a GPT has no encoder, so x̄ is the mean of what leaves
block 1 for the first `prompt` tokens; and every block has its own w_n and b_n, as Weng's survey
prints it, where the paper shares one w_h and b_h among all blocks (equation 12).

>>> stop = torch.tensor([0.5, 0.5])
>>> geometric(stop.logit()).exp().tolist()
[0.5, 0.25, 0.25]
>>> LL = torch.tensor([[-1.0, -2.0], [-0.9, -0.5]])  # two exits, two tokens
>>> token_oracle(LL, price=0.2).tolist(), sequence_oracle(LL, price=0.2).item()
([1, 2], 2)
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named

__all__ = [
    "GeometricExit",
    "SequenceExit",
    "TokenExit",
    "exit_loss",
    "geometric",
    "sequence_oracle",
    "token_oracle",
]

States = Float[Tensor, "N b L d"]

# --- oracles --------------------------------------------------------------------------------------


def smoothed(scores: Float[Tensor, "... N L"], sigma: float) -> Float[Tensor, "... N L"]:
    """Σ_t' κ(t, t') s_t'. `sigma` is β: at 0 the scores themselves, at ∞ their sum."""
    _arguments.real("sigma", 0.0 if sigma == math.inf else sigma, 0.0)
    t = torch.arange(scores.shape[-1], dtype=scores.dtype, device=scores.device)
    squared = (t[:, None] - t) ** 2
    kappa = (squared == 0).to(scores) if sigma == 0 else (-squared / sigma).exp()
    return scores @ kappa


def _best(scores: Float[Tensor, "... N L"], price: float) -> Int[Tensor, "... L"]:
    n = torch.arange(1, scores.shape[-2] + 1, dtype=scores.dtype, device=scores.device)
    return (scores - price * n[:, None]).argmax(-2) + 1


@named
def token_oracle(
    scores: Float[Tensor, "... N L"], price: float, sigma: float = 0.0
) -> Int[Tensor, "... L"]:
    """argmax_n (s̃ⁿ_t − γ n) for scores LLⁿ_t or Cⁿ_t, the lowest of equal ones."""
    return _best(smoothed(scores, sigma), _arguments.real("price", price, 0.0))


@named
def sequence_oracle(scores: Float[Tensor, "... N L"], price: float) -> Int[Tensor, "..."]:
    """argmax_n (Σ_t sⁿ_t − γ n): one exit for all tokens."""
    return _best(scores.sum(-1, keepdim=True), _arguments.real("price", price, 0.0))[..., 0]


# --- classifiers ----------------------------------------------------------------------------------


@named
def geometric(stop: Float[Tensor, "... N-1"]) -> Float[Tensor, "... N"]:
    """log q(n) for logits of χ¹ … χ^{N−1}: stop at n, and go on at all before it."""
    go_on = F.pad(F.logsigmoid(-stop).cumsum(-1), (1, 0))  # log Π_{n'<n} (1 − χ)
    return go_on + F.pad(F.logsigmoid(stop), (0, 1))


class SequenceExit(nn.Module):
    """(a): log q, the same for all tokens; from the first `prompt` of them."""

    @named
    def __init__(self, d: int, N: int, prompt: int) -> None:
        super().__init__()
        self.prompt, self.W = _arguments.integer("prompt", prompt, 1), nn.Linear(d, N)

    @named
    def forward(self, X: States) -> Float[Tensor, "b L N"]:
        mean = X[0, :, : self.prompt].mean(1, keepdim=True)
        return self.W(mean).log_softmax(-1).expand(-1, X.shape[2], -1)


class TokenExit(nn.Module):
    """(b): log q_t from what leaves block 1."""

    @named
    def __init__(self, d: int, N: int) -> None:
        super().__init__()
        self.W = nn.Linear(d, N)

    @named
    def forward(self, X: States) -> Float[Tensor, "b L N"]:
        return self.W(X[0]).log_softmax(-1)


class GeometricExit(nn.Module):
    """(c): log q_t from the state after every block but the last."""

    @named
    def __init__(self, d: int, N: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(_arguments.integer("N", N, 2) - 1, d) * d**-0.5)
        self.b = nn.Parameter(torch.zeros(N - 1))

    def stop(self, X: States) -> Float[Tensor, "b L N-1"]:
        """Logits of χ_tⁿ."""
        return torch.einsum("nbld,nd->bln", X[:-1], self.w) + self.b

    @named
    def forward(self, X: States) -> Float[Tensor, "b L N"]:
        return geometric(self.stop(X))


@named
def exit_loss(log_q: Float[Tensor, "b L N"], n: Int[Tensor, "b L"]) -> Float[Tensor, ""]:
    """H(q*, q) in nats per token, for an oracle's exits n = 1 … N."""
    if n.shape != log_q.shape[:-1] or n.min() < 1 or n.max() > log_q.shape[-1]:
        raise ValueError(
            f"n has shape {tuple(n.shape)} and values {n.min()} to {n.max()}, log_q has shape "
            f"{tuple(log_q.shape)}; give each token an exit from 1 to {log_q.shape[-1]}"
        )
    return F.nll_loss(log_q.flatten(0, -2), n.flatten() - 1)
