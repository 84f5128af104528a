"""CALM: a token leaves after the first block that is confident enough, and skips the rest.

    c = P₍₁₎ − P₍₂₎                 softmax response: the lead of the likeliest token
    c = cos(h_tⁿ, h_tⁿ⁻¹)           saturation: the block has changed the state little
    c = σ(h_tⁿ w + b)               a classifier, trained to say if this is the full model's token

    λ_t = λ (9/10 + 1/10 · e^{−τ t/T})      the threshold falls while the text grows

Schuster, Fisch, Gupta, Dehghani, Bahri, Tran, Tay, Metzler 2022 (arXiv 2207.07061). The threshold,
copying and the classifier's balanced loss are those of the authors' code (t5x, contrib/calm), which
also lets no token exit by saturation after block 1. The paper prints another threshold that falls,
clip₀₁(9/10 λ + 1/10 · e^{−τ t/T}). The classifier may be any function of h.

`read_early` predicts what early exits would say in a given text, all tokens at once, each in all
blocks; `write_early` really skips blocks, and says the same.

>>> from tfviz.models.gpt import GPT
>>> model = GPT(vocab=11, d=8, h=2, N=3)
>>> tokens, exits = write_early(model, torch.tensor([[3, 1]]), 4, softmax_response, threshold=0.0)
>>> tokens.shape, exits.tolist()
(torch.Size([1, 6]), [1, 1, 1, 1])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache as once
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.adaptive.depth_adaptive_training import read, states
from tfviz.cores import Dense, Kept, Where
from tfviz.models.blocks import Block, Logits, Seq, Tokens
from tfviz.models.gpt import GPT

__all__ = [
    "Confidence",
    "agreement_loss",
    "classified",
    "falling",
    "read_early",
    "saturation",
    "softmax_response",
    "write_early",
]

Confidence = Callable[[Seq, Seq | None, Callable[[], Logits]], Float[Tensor, "b L"]]
"""c(hⁿ, hⁿ⁻¹ or None after block 1, what gives the logits of this exit if they are wanted)."""

# --- three measures -------------------------------------------------------------------------------


@named
def softmax_response(X: Seq, before: Seq | None, logits: Callable[[], Logits]) -> Tensor:
    """The likeliest token's probability, less that of the second.

    Raises ValueError for a vocabulary in which there is none.
    """
    p = logits().softmax(-1)
    if p.shape[-1] < 2:
        raise ValueError("the vocabulary has one token, which leads by nothing; give two or more")
    two = p.topk(2, -1).values
    return two[..., 0] - two[..., 1]


@named
def saturation(X: Seq, before: Seq | None, logits: Callable[[], Logits]) -> Tensor:
    """Cosine of the states after this block and after the one below; −1 after block 1."""
    if before is None:
        return torch.full(X.shape[:-1], -1.0, device=X.device)
    return F.cosine_similarity(X, before, dim=-1)


@named
def classified(head: nn.Module) -> Confidence:
    """σ of what `head` makes of the state, (…, d) → (…, 1)."""
    return lambda X, before, logits: head(X)[..., 0].sigmoid()


@named
def agreement_loss(model: GPT, head: nn.Module, t: Tokens) -> Float[Tensor, ""]:
    """Does exit n name the full model's token? Both answers weigh the same in each block."""
    with torch.no_grad():
        X = states(model, t)
        said = read(model, X).argmax(-1)
        agrees = (said[:-1] == said[-1]).to(X)  # (N − 1, b, L)
        share = agrees.mean((1, 2), keepdim=True)
        weight = agrees * (1 - share) + (1 - agrees) * share
    return F.binary_cross_entropy_with_logits(head(X[:-1])[..., 0], agrees, weight)


# --- thresholds and exits -------------------------------------------------------------------------


@named
def falling(threshold: float, T: int, tau: float = 4.0) -> Float[Tensor, "T"]:
    """λ_t for t = 0 … T − 1."""
    t = torch.arange(_arguments.integer("T", T, 1))
    return threshold * (0.9 + 0.1 * (-_arguments.real("tau", tau, 0.0) * t / T).exp())


@torch.no_grad()
@named
def read_early(
    model: GPT, t: Tokens, confidence: Confidence, threshold: float | Float[Tensor, "L"]
) -> tuple[Logits, Int[Tensor, "b L"]]:
    """(logits, exit of each token): the text is given, tokens that left are copied up.

    This computes every block for every token and throws away what early exit would skip.
    """
    _check_threshold(threshold)
    X, N = model.embed(t), len(model.stack.blocks)
    exits, before = torch.full(t.shape, N), None
    for n, block in enumerate(model.stack.blocks, 1):
        new = torch.where((exits < n)[..., None], X, block(X))
        if n < N:
            c = confidence(new, before, lambda: read(model, new))  # noqa: B023
            exits = torch.where((exits == N) & (c >= threshold), n, exits)
        X = before = new
    return read(model, X), exits


def _check_threshold(threshold: float | Tensor) -> None:
    if torch.as_tensor(threshold).isnan().any():
        raise ValueError("threshold holds NaN, which no confidence reaches; give a number, or inf")


def copy_up(block: Block, X: Seq, cache: dict[nn.Module, Kept]) -> None:
    """Keep this block's keys and values of states that never enter it: 4 d² FLOPs instead of
    24 d² and more."""
    attend, new = block.attend, list[Any]()
    core, kept = attend.core, cache.get(attend, Kept())
    if not isinstance(core, Dense):
        raise ValueError(f"{core!r} does not keep plain keys and values; give the model core=Dense")
    _, K, V, *_ = attend.project(X[:, :0], block.norms[0](X))  # nobody asks
    where = Where(attend.pattern, kept.length, state=kept.state, keep=new.append)
    where.joined(core.turn_keys(K, where), V)
    cache[attend] = kept.followed_by(new, X.shape[1])


@torch.no_grad()
def next_logits(
    model: GPT,
    t: Int[Tensor, "1 1"],
    cache: dict[nn.Module, Kept],
    confidence: Confidence,
    threshold: float,
) -> tuple[Float[Tensor, "1 vocab"], int]:
    """(logits, exit) of one token more: blocks above its exit only keep its keys and values."""
    blocks = [cast(Block, block) for block in model.stack.blocks]
    X, before = model.embed(t, cache), None
    for n, block in enumerate(blocks, 1):
        X = block(X, None, None, cache)
        logits = once(lambda: read(model, X))  # noqa: B023
        if n == len(blocks) or confidence(X, before, logits).item() >= threshold:
            break
        before = X
    for skipped in blocks[n:]:
        copy_up(skipped, X, cache)
    return logits()[:, -1], n


@torch.no_grad()
@named
def write_early(
    model: GPT,
    t: Int[Tensor, "1 L"],
    steps: int,
    confidence: Confidence,
    threshold: float,
    tau: float | None = None,
) -> tuple[Int[Tensor, "1 L+steps"], Int[Tensor, "steps"]]:
    """(the tokens and `steps` more, the exit of each): greedy, one text.

    The text that is there is read in full; with τ the threshold falls. Raises ValueError for
    several texts at once, whose tokens would leave at different blocks, for a model without blocks
    and for a threshold that is NaN.
    """
    _check_threshold(threshold)
    _arguments.indices("t", t, 2)
    if not len(model.stack.blocks):
        raise ValueError("model has no block to leave behind; make it with N = 1 or more")
    if len(t) != 1 or not t.numel():
        raise ValueError(f"t has shape {tuple(t.shape)}; give one text of at least one token")
    levels = falling(threshold, max(steps, 1), tau).tolist() if tau is not None else None
    cache, exits = dict[nn.Module, Kept](), list[int]()
    if t.shape[1] > 1:
        model(t[:, :-1], cache)
    for k in range(_arguments.integer("steps", steps, 0)):
        now = threshold if levels is None else levels[k]
        logits, n = next_logits(model, t[:, -1:], cache, confidence, now)
        t = torch.cat([t, logits.argmax(-1)[:, None]], 1)
        exits.append(n)
    return t, torch.tensor(exits)


# --- what it costs --------------------------------------------------------------------------------


def token_flops(
    exit_: Int[Tensor, "..."] | int, N: int, d: int, vocab: int, context: Any, reads: Any = 1
) -> Any:
    """FLOPs of the products for one token that leaves after block `exit_`.

    It meets `context` keys, itself among them, in each block; above its exit only its keys and
    values are made; the classifier over the vocabulary is asked `reads` times.
    """
    return exit_ * (24 * d**2 + 4 * d * context) + (N - exit_) * 4 * d**2 + reads * 2 * d * vocab
