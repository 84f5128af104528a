"""From probabilities to text: greedy, temperature, top-k, nucleus, beam.

    p_τ(v) ∝ p(v)^{1/τ}          temperature; τ → 0 is greedy, τ = 1 plain sampling
    top-k:    p restricted to its k largest, renormalised
    nucleus:  p restricted to the smallest set of the likeliest with Σ p ≥ p_0, renormalised
    beam:     the B best  log p(y) / lp(|y|),   lp(n) = ((5 + n) / 6)^α

Wu et al. 2016 (arXiv 1609.08144; beam with this lp), Fan et al. 2018 (arXiv 1805.04833; top-k),
Holtzman et al. 2019 (arXiv 1904.09751; nucleus). Ties go to the smaller token, so that exactly k
are kept. A complete hypothesis keeps its place in the beam; others give it a list of its own.

>>> logits = torch.tensor([0.1, 0.4, 0.2, 0.3]).log()
>>> top_k(logits, 2).isfinite().tolist()
[False, True, False, True]
>>> nucleus(logits, 0.8).isfinite().tolist()
[False, True, True, True]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.utils._pytree import tree_map_only

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Cache, Kept
from tfviz.models.gpt import GPT
from tfviz.models.padding import begun_alone

__all__ = [
    "Hypothesis",
    "beam_search",
    "length_penalty",
    "nucleus",
    "sample",
    "temperature",
    "top_k",
]

Scores = Float[Tensor, "*rows V"]  # logits or log-probabilities; −∞ is a token that cannot come
Next = Callable[[Tensor, Tensor], Tensor]
"""(rows (n, L), the row of the call before that each continues (n,)) → log-probabilities (n, V)."""


@named
def temperature(logits: Scores, tau: float) -> Scores:
    """logits / τ; at τ = 0 all weight is on the likeliest token.

    Where logits / τ is too large for its type, the largest becomes 0: the same probabilities.
    """
    if _arguments.real("tau", tau, 0.0) == 0:
        return top_k(logits, 1)
    hot = logits / tau
    if hot.amax(-1).isfinite().all():
        return hot
    below = logits.double() - logits.double().amax(-1, keepdim=True)
    return (below / tau).to(logits.dtype)


@named
def top_k(logits: Scores, k: int) -> Scores:
    """−∞ for all but the k largest."""
    _arguments.integer("k", k, 1)
    return _keep(logits, torch.arange(logits.shape[-1], device=logits.device) < k)


@named
def nucleus(logits: Scores, p: float) -> Scores:
    """−∞ for all but the smallest set of the likeliest tokens that holds a share p or more."""
    _arguments.real("p", p, 0.0, 1.0)
    ordered = logits.softmax(-1).sort(dim=-1, descending=True, stable=True).values
    before = ordered.double().cumsum(-1) - ordered  # what the likelier ones hold without this one
    first = torch.arange(logits.shape[-1], device=logits.device) == 0
    return _keep(logits, first | (before < p) if p < 1 else torch.ones_like(first))


def _keep(logits: Tensor, kept: Tensor) -> Tensor:
    """The logits whose place in falling order is `kept`, which has the shape (V,) or theirs."""
    order = logits.sort(dim=-1, descending=True, stable=True).indices
    allowed = torch.zeros_like(logits, dtype=torch.bool)
    allowed.scatter_(-1, order, kept.expand_as(logits))
    return logits.masked_fill(~allowed, -math.inf)


@named
def sample(logits: Scores, rng: Generator | None = None) -> Int[Tensor, "*rows"]:
    """A token for each row, drawn with probabilities softmax(logits)."""
    p = logits.softmax(-1)
    rows = p.reshape(-1, p.shape[-1])
    return torch.multinomial(rows, 1, generator=rng).view(p.shape[:-1])


# --- beam search ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hypothesis:
    """Tokens after the prompt, log p(y), and what the beam sorts by: log p(y) / lp(|y|)."""

    tokens: tuple[int, ...]
    log_p: float
    score: float
    complete: bool = False
    row: int = 0  # of the call before, which it continues


@named
def length_penalty(n: int, alpha: float) -> float:
    """((5 + n) / 6)^α: 1 for one token or for α = 0."""
    return float(((5 + _arguments.integer("n", n, 0)) / 6) ** _arguments.real("alpha", alpha, 0.0))


@torch.no_grad()
@begun_alone
@named
def beam_search(
    next_log_p: Next,
    prompt: Int[Tensor, "L"],
    steps: int,
    width: int,
    *,
    end: int | Sequence[int] | Int[Tensor, "*n"] = (),
    alpha: float = 0.0,
) -> list[Hypothesis]:
    """The hypotheses that are left after `steps` tokens, the best first; at most `width`.

    One that ends with a token of `end` is complete: it stays, unchanged, while it is good enough.

    Raises TypeError or ValueError if the prompt is no row of at least one token, an end is no
    number, or log-probabilities are NaN.
    """
    _arguments.integer("steps", steps, 0)
    _arguments.integer("width", width, 1)
    if not len(_arguments.indices("prompt", prompt, 1)):
        raise ValueError("prompt is empty; give at least one token to begin with")
    given = torch.as_tensor(end).flatten().tolist()  # a tensor's own entries equal no number
    ends = {_arguments.integer("end", token) for token in given}
    beam = [Hypothesis((), 0.0, 0.0)]
    for n in range(1, steps + 1):
        alive = [y for y in beam if not y.complete]
        if not alive:
            break
        rows = [torch.cat([prompt, prompt.new_tensor(y.tokens)]) for y in alive]
        log_p = next_log_p(torch.stack(rows), torch.tensor([y.row for y in alive])).double()
        if log_p.isnan().any():
            raise ValueError("log-probabilities are NaN; look where next_log_p makes them")
        found = [y for y in beam if y.complete]
        for row, y in enumerate(alive):
            best, tokens = log_p[row].sort(descending=True, stable=True)
            for more, token in zip(best[:width].tolist(), tokens.tolist(), strict=False):
                if more > -math.inf:
                    total = y.log_p + more
                    score = total / length_penalty(n, alpha)
                    found.append(Hypothesis((*y.tokens, token), total, score, token in ends, row))
        beam = sorted(found, key=lambda y: -y.score)[:width]
    return beam


def next_of(model: GPT) -> Next:
    """The next log-probabilities of a GPT with a cache, for `beam_search`.

    Where a hypothesis is dropped and another one splits, their keys and values must do the same:
    the rows of the cache are chosen anew in each step. Good for one search.
    """
    cache: Cache = {}

    def next_log_p(rows: Tensor, parent: Tensor) -> Tensor:
        assert cache is not None
        for module, (length, state) in cache.items():
            cache[module] = Kept(length, tree_map_only(Tensor, lambda x: x[parent], state))
        new = rows[:, -1:] if cache else rows
        logits: Tensor = model(new, cache)[:, -1]
        return logits.log_softmax(-1)

    return next_log_p


def distinct(tokens: Sequence[Any] | Tensor, n: int) -> float:
    """Different n-grams, as a share of all: 1 if none comes twice, 1/count if one comes always."""
    tokens = tokens.tolist() if isinstance(tokens, Tensor) else tokens  # tensors are all different
    grams = [
        tuple(tokens[k : k + n]) for k in range(len(tokens) - _arguments.integer("n", n, 1) + 1)
    ]
    if not grams:
        raise ValueError(f"tokens has {len(tokens)} entries; give at least n = {n}")
    return len(set(grams)) / len(grams)
