"""Segment recurrence: what a layer was given in the segments before is read again, not computed.

    H̃ = [sg(M); H],  M: the last m rows of H^(n−1) before this segment,  H = H^(n−1) of the segment
    Q = H W^q,   K = H̃ W^k,   V = H̃ W^v,   H^(n) = layer(Q, K, V)

Dai et al. 2019 (arXiv 1901.02860). sg stops the gradient: rows of the past are numbers; but today's
W^k and W^v project them, and learn from them. Scores must know places by distance (`xl_relative`).
The memory is what the attention of the layer was given. In a post-norm model, the paper's, that is
H^(n−1) itself; in a pre-norm one it is LN(H^(n−1)), normalised once, where the authors' code keeps
H^(n−1) and normalises it again with today's weights.

Segments stream through a GPT with the cache that also keeps keys and values, in training, too:

>>> model, cache = transformer_xl(vocab=11, d=8, h=2, N=2, m=3), {}
>>> t = torch.arange(10)[None]
>>> for segment in t.split(4, 1):
...     logits = model(segment, cache)
>>> {tuple(kept.state.shape) for kept in cache.values()}, reach(N=2, m=3, L=4)
({(1, 3, 8)}, 7)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import CAUSAL, Cache, Dense, Kept, Where, refuse_given_positions, same_texts
from tfviz.models.blocks import Memory, MultiHeadAttention, Seq, Tokens
from tfviz.models.gpt import GPT
from tfviz.past import Past
from tfviz.patterns.pattern import Pattern
from tfviz.position.xl_relative import XL
from tfviz.training import Loss

__all__ = ["Recurrent", "next_token_in_segments", "transformer_xl"]


class Recurrent(MultiHeadAttention):
    """Multi-head attention over [memory; segment]; with a cache it keeps m rows of its input.

    Its core must be `Dense` or made from it, and tell places by distance, as its pattern must.
    Without a cache it is attention within the segment.
    """

    @named
    def __init__(self, d: int, h: int, *, m: int, **attention: Any) -> None:
        super().__init__(d, h, **{"pattern": CAUSAL} | attention)
        self.m = _arguments.integer("m", m, 0)
        if not isinstance(self.core, Dense):
            raise ValueError(f"core = {self.core!r}; a memory needs one that is made from Dense")

    asks = False  # whether what is kept depends on A

    def attended(self, X: Seq, memory: Memory, where: Where) -> tuple[Tensor, Tensor | None]:
        if where.crosses or where.attention_mask is not None:
            raise ValueError(
                "segments of one text have no padding and read no other sequence; leave out "
                "attention_mask and memory"
            )
        refuse_given_positions("a memory of segments")
        past = self.past(where.state, X)  # (b, n, d), gets no gradient
        n = past.shape[1]
        if where.keep:
            _check_distances(self.pattern, where.start, n, X.shape[1])
        Q, K, V = self.project(X, torch.cat([past, X], 1))  # n + L keys and values
        assert isinstance(self.core, Dense)
        before = (self.core.turn_keys(K[:, :, :n], Where(self.pattern)), V[:, :, :n])
        weights = where.need_weights or self.asks
        inside = Where(self.pattern, n, need_weights=weights, state=before)
        heads, A = self.core(Q, K[:, :, n:], V[:, :, n:], inside)
        if where.keep:
            where.keep(self.followed(where.state, X.detach(), A))
        return heads, A

    def past(self, state: Any, X: Seq) -> Seq:
        """The rows before the segment that it reads."""
        if state is None:
            return X[:, :0]
        same_texts(state, X)
        return state

    def followed(self, state: Any, X: Seq, A: Tensor | None) -> Any:
        """The state after the segment X."""
        rows = torch.cat([self.past(state, X), X], 1)
        return rows[:, max(0, rows.shape[1] - self.m) :]


@lru_cache(maxsize=1024)
def _check_distances(pattern: Pattern, start: int, n: int, L: int) -> None:
    """Raises ValueError unless L queries from the place `start` on see the same of the n rows
    before them, and of themselves, if places are counted from the first of these rows."""
    if pattern == CAUSAL:
        return
    here = pattern.rows(torch.arange(start, start + L), start + L)[..., start - n :]
    counted = pattern.rows(torch.arange(n, n + L), n + L)
    if not here.equal(counted) or here.triu(n + 1).any():
        raise ValueError(
            f"pattern = {pattern!r}: a memory knows how far back its rows are, and not at which "
            "place; give a causal pattern of i − j alone, such as causal() or "
            "sliding_window(lookback=8)"
        )


@named
def transformer_xl(vocab: int, d: int, h: int, N: int, m: int, **more: Any) -> GPT:
    """A GPT whose attentions remember m rows, with relative positions unless `core` is another."""
    options: dict[str, Any] = {"core": XL, "mix": partial(Recurrent, m=m)}
    return GPT(vocab, d, h, N, **options | more)


def reach(N: int, m: int, L: int) -> int:
    """How many tokens before the first of its segment can reach a token through N layers."""
    _arguments.integer("N", N, 1)
    _arguments.integer("L", L, 1)
    return (N - 1) * -(-_arguments.integer("m", m, 0) // L) * L + m


def saved(model: nn.Module, cache: Cache) -> dict[str, tuple[int, Any]]:
    """What a cache holds, by the attention's name: numbers and tensors, for `torch.save`."""
    names = {module: name for name, module in model.named_modules()}
    if any(module not in names for module in cache or {}):
        raise ValueError("cache is another model's; give that of this one")
    plain = {names[module]: kept for module, kept in (cache or {}).items()}
    return {name: (length, _plain(state)) for name, (length, state) in plain.items()}


def resumed(model: nn.Module, state: dict[str, tuple[int, Any]]) -> dict[nn.Module, Kept]:
    """The cache of which `saved` wrote, for a model of the same make."""
    modules = dict(model.named_modules())
    if unknown := state.keys() - modules.keys():
        raise ValueError(f"state has {sorted(unknown)}, which this model has not; take its own")
    return {modules[name]: Kept(length, _again(kept)) for name, (length, kept) in state.items()}


def _plain(state: Any) -> Any:
    """Tensors and numbers alone: rows of a past beside the positions where they stood."""
    if isinstance(state, Past):
        return {"rows": state.gather(), "runs": state.runs}
    return state if isinstance(state, Tensor) else tuple(state)


def _again(state: Any) -> Any:
    return Past.of(state["rows"], state["runs"]) if isinstance(state, dict) else state


def streams(ids: Tokens, b: int) -> Tokens:
    """The text as b rows that are read side by side: row r goes on where row r − 1 will end."""
    _arguments.indices("ids", ids, 1)
    n = len(ids) // _arguments.integer("b", b, 1, len(ids))
    return ids[: n * b].view(b, n)


@named
def next_token_in_segments(
    ids: Tokens, b: int, L: int, besides: Callable[[Any], Tensor] | None = None
) -> Loss:
    """Nats per token on segments of b streams in their order; the memory goes on from step to step.

    At the text's end it begins anew, with nothing in memory. besides(cache) is added. A
    checkpoint of `train` does not hold the memory: `saved` does.
    """
    rows, cache = streams(ids, b), dict[nn.Module, Kept]()
    places = (rows.shape[1] - 1) // _arguments.integer("L", L, 1, rows.shape[1] - 1)

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        at = step % places * L
        if at == 0:
            cache.clear()
        x, y = rows[:, at : at + L], rows[:, at + 1 : at + L + 1]
        found = F.cross_entropy(model(x, cache).flatten(0, 1), y.flatten())
        return found if besides is None else found + besides(cache)

    return loss
