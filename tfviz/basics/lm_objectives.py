"""Three games on plain text: say the next token, the hidden tokens, or the missing spans.

    GPT         −Σ_i log p(z_i | z_{<i})                       all positions scored
    prefix LM   −Σ_{i ≥ p−1} log p(z_i | z_{<i})               the first p inputs are seen by all
    BERT        −Σ_{i ∈ 𝓜} log p(z_i | z̃)                     z̃: 15 % of the tokens disturbed
    T5          −Σ_i log p(u_i | u_{<i}, Enc(z̃))               z̃: spans out, sentinels in

Radford et al. 2018; Devlin et al. 2018 (arXiv 1810.04805), section 3.1; Raffel et al. 2019 (arXiv
1910.10683), sections 3.1.4 and 3.2. Not here: BERT's next-sentence prediction, T5's task prefixes.
Where we differ: T5's own code lets every row end in a hole, `random_spans` does not.

>>> prefix_lm(prefix=2).mask(3).int().tolist()
[[1, 1, 0], [1, 1, 0], [1, 1, 1]]
>>> scored_after(5, prefix=3).tolist()
[False, False, True, True, True]
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.basics.causal_masking import token_losses
from tfviz.formula import Index
from tfviz.patterns.family import Domain, Family

__all__ = ["drop_spans", "hide", "prefix_lm", "put_back", "random_spans", "scored_loss"]

Span = tuple[int, int]
"""(start, end) of a run of tokens, the end not included."""


@lambda f: Family(
    f,
    "prefix LM",
    "raffel2019exploring",
    {"prefix": Domain(0, 4, "p", "how many of the first tokens all may use")},
)
def prefix_lm(i: Index, j: Index, *, prefix: int) -> Index:
    """The first `prefix` tokens are seen by all; beyond them no query sees the future.

    prefix_lm(prefix=p) is the pattern: causal for p ≤ 1, full for p ≥ L − 1.
    """
    return (j < prefix) | (i >= j)


def scored_after(L: int, prefix: int) -> Bool[Tensor, "L"]:
    """Which of L positions a prefix LM scores: those that do not see their own answer.

    Position i must say z_i, which is input i + 1. Positions before prefix − 1 see that input; the
    first that does not is prefix − 1 itself.
    """
    return (
        torch.arange(_arguments.integer("L", L, 1)) >= _arguments.integer("prefix", prefix, 0) - 1
    )


@named
def scored_loss(
    logits: Float[Tensor, "b L vocab"],
    targets: Int[Tensor, "b L"],
    scored: Bool[Tensor, "b L"] | None = None,
) -> Float[Tensor, ""]:
    """Nats per scored token: the mean of −log p(target) over the positions that count."""
    losses = token_losses(logits, targets)
    if scored is None:
        return losses.mean()
    if scored.dtype != torch.bool or scored.shape != losses.shape:
        raise ValueError(
            f"scored is {scored.dtype} of shape {tuple(scored.shape)}; give a Boolean for each "
            f"position, shape {tuple(losses.shape)}"
        )
    if not scored.any():
        raise ValueError("scored holds no True; at least one position must count")
    return losses[scored].mean()


# --- BERT ----------------------------------------------------------------------------------------


@named
def hide(
    z: Int[Tensor, "b L"], vocab: int, mask: int, rng: Generator, share: float = 0.15
) -> tuple[Int[Tensor, "b L"], Bool[Tensor, "b L"]]:
    """(z̃, scored): round(share · L) tokens of each row are chosen, at least one.

    Of the chosen, 80 % become `mask`, 10 % any token of 0 … vocab − 1, 10 % stay as they are. All
    of the chosen are scored, and nothing else.
    """
    _arguments.real("share", share, 0.0, 1.0)
    _arguments.integer("mask", mask, 0)
    if z.ndim != 2 or z.is_floating_point():
        raise ValueError(f"z is {z.dtype} of shape {tuple(z.shape)}; give token numbers (b, L)")
    b, L = z.shape
    count = max(1, round(share * L))
    chosen = torch.rand(b, L, generator=rng).argsort(1) < count  # ranks: exactly `count` a row
    fate = torch.rand(b, L, generator=rng)
    anything = torch.randint(_arguments.integer("vocab", vocab, 1), (b, L), generator=rng)
    hidden = torch.where(chosen & (fate < 0.8), mask, z)
    return torch.where(chosen & (fate >= 0.9), anything, hidden), chosen


# --- T5 ------------------------------------------------------------------------------------------


@named
def random_spans(L: int, rng: Generator, share: float = 0.15, mean: float = 3.0) -> list[Span]:
    """Spans that hide round(share · L) of L tokens, `mean` tokens long on average.

    All ways to place them are equally likely; between two spans at least one token stays.
    """
    L = _arguments.integer("L", L, 2)  # one token to hide, one to stay
    noise = min(max(1, round(_arguments.real("share", share, 0.0, 1.0) * L)), L - 1)
    n = min(max(1, round(noise / _arguments.real("mean", mean, 1.0))), noise, L - noise + 1)
    lengths = _cut(noise, n, rng)  # n parts ≥ 1
    gaps = _cut(L - noise + 2, n + 1, rng)  # n + 1 parts; the outer two may be empty
    spans, at = [], gaps[0] - 1
    for length, gap in zip(lengths, gaps[1:], strict=True):
        spans.append((at, at + length))
        at += length + gap
    return spans


def _cut(total: int, parts: int, rng: Generator) -> list[int]:
    """`total` as a sum of `parts` whole numbers ≥ 1, every such sum equally likely."""
    cuts = (torch.randperm(total - 1, generator=rng)[: parts - 1] + 1).sort().values.tolist()
    return [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]


@named
def drop_spans(
    z: Sequence[int], spans: Sequence[Span], sentinels: Sequence[int]
) -> tuple[list[int], list[int]]:
    """(inputs, targets): each span leaves a sentinel behind and moves to the targets.

    inputs   z with span n replaced by sentinels[n]
    targets  sentinels[0], span 0, sentinels[1], span 1, …, and one sentinel more for the end
    """
    if len(sentinels) < len(spans) + 1:
        raise ValueError(
            f"{len(sentinels)} sentinels for {len(spans)} spans; one for each and one for the end: "
            f"give {len(spans) + 1}"
        )
    marks = list(sentinels[: len(spans) + 1])
    if len(set(marks)) < len(marks) or not set(marks).isdisjoint(z):
        raise ValueError(f"sentinels {marks} are not new; give tokens that differ and are not in z")
    inputs: list[int] = []
    targets: list[int] = []
    at = 0
    for mark, (start, end) in zip(marks, spans, strict=False):
        if not at <= start < end <= len(z):
            raise ValueError(
                f"span ({start}, {end}) is empty, out of order or beyond {len(z)} tokens; give "
                "rising (start, end) with start < end"
            )
        inputs += [*z[at:start], mark]
        targets += [mark, *z[start:end]]
        at = end
    return inputs + list(z[at:]), [*targets, marks[-1]]


@named
def put_back(inputs: Sequence[int], targets: Sequence[int], sentinels: Sequence[int]) -> list[int]:
    """The tokens z again: every sentinel of the inputs is replaced by what follows it in the
    targets.

    Raises ValueError if one of them does not stand in the targets.
    """
    marks = set(sentinels)
    spans: dict[int, list[int]] = {}
    current: list[int] = []
    for token in targets:
        if token in marks:
            current = spans.setdefault(token, [])
        else:
            current.append(token)
    if lost := [token for token in inputs if token in marks and token not in spans]:
        raise ValueError(f"sentinels {lost} are in the inputs only; give the targets that fit")
    return [x for token in inputs for x in (spans[token] if token in marks else [token])]
