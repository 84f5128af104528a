"""Universal Transformer with halting at each position: ready ones stop, others go on reading them.

    η_i^k = σ(H_i^k w + b) for a position that runs; K(i), R(i), p_i^k as in `act`
    H_i^k = H_i^{k−1} once i has halted;     y_i = Σ_k p_i^k H_i^k;     until all have, or k = T

Dehghani et al. 2018 (arXiv 1807.03819). The weighted sum is the output of Graves 2016; Dehghani et
al. (section 2.2) pass on the last, copied state, and the default of their code, tensor2tensor,
mixes step by step, y ← p H_i^k + (1 − p) y. There (`universal_transformer_act_accumulated`),
positions that have halted are transformed further, and others read the moving state:
`freeze=False`. There η is also computed before the step, from H^{k−1} + P^k, and a position that is
cut off at the last step gets no remainder.

Positions that have halted are not computed: their keys and values are copied. P^k is added to them,
too, but its part by step is one vector for all: keys and values move by one product with it.

>>> from tfviz.models.gpt import GPT
>>> model = halting_universal(GPT(vocab=11, d=8, h=2, N=1, order=post_norm), M=6, bias=9.0)
>>> model(torch.tensor([[3, 1, 4]])).shape, pondered(model).N.tolist()
(torch.Size([1, 3, 11]), [[1, 1, 1]])
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfviz import _arguments, _fused
from tfviz._arguments import named
from tfviz.cores import CAUSAL, FULL, Cache, Dense, levels, refuse_given_positions, stored
from tfviz.longer_context.act import Pondered, ponder
from tfviz.longer_context.universal_transformer import Model, Universal, universal
from tfviz.models.blocks import AttentionMask, Memory, MultiHeadAttention, Seq, post_norm

__all__ = ["Halting", "halting_universal"]


class Halting(Universal):
    """At most T steps of one block, at each position until it halts; `pondered` is the last call's.

    bias     b at the start;  freeze   what has halted is copied, not transformed further
    compact  only what runs is computed, where that is known to be the same: a post-norm block
             without cross-attention, whose core is Dense itself; False: all, and then discarded
    """

    @named
    def __init__(
        self, *stack: Any, eps: float = 0.01, bias: float = 1.0, freeze: bool = True,
        compact: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(*stack)
        d = self.block.attend.W_o.in_features
        self.eps, self.freeze, self.compact = _arguments.real("eps", eps, 0.0, 1.0), freeze, compact
        self.halt = nn.Linear(d, 1)
        nn.init.constant_(self.halt.bias, _arguments.real("bias", bias))
        self.pondered: Pondered | None = None

    def __getstate__(self) -> dict[str, Any]:
        return stored(self)

    @levels()
    @named
    def forward(
        self,
        X: Seq,
        memory: Memory = None,
        attention_mask: AttentionMask = None,
        cache: Cache = None,
    ) -> Seq:
        if cache is not None:
            raise ValueError(
                "a cache would have to keep keys and values of all T steps, also of those that no "
                "position has taken yet: call the model without one"
            )
        if self.signal is not None:
            refuse_given_positions("Halting")
        b, L, d = X.shape
        own = attention_mask if memory is None else None
        running = None if own is None else own.flatten().nonzero().squeeze(1)
        step = (
            self._all(memory, attention_mask, (b, L))
            if self._computes_all()
            else self._few(own, (b, L))
        )
        found = ponder(X.flatten(0, 1), step, self.T, self.eps, running)
        self.pondered = found._replace(N=found.N.view(b, L), R=found.R.view(b, L))
        return self.norm(found.mean.view(b, L, d))

    def _computes_all(self) -> bool:
        block = self.block
        simple = block.order is post_norm and type(block.attend.core) is Dense and not block.cross
        attend = block.attend
        plain = attend.pattern in (CAUSAL, FULL) and not attend.watched
        own = type(attend) is MultiHeadAttention and not isinstance(attend.project, nn.Module)
        return not (self.compact and self.freeze and simple and plain and own)

    def _halts(self, new: Tensor) -> Tensor:
        return self.halt(new).sigmoid().squeeze(-1)

    def _all(self, memory: Memory, attention_mask: AttentionMask, shape: tuple[int, int]) -> Any:
        """The definition: the block on every position, of which those that run are taken."""
        i = torch.arange(shape[1], device=self.halt.weight.device)
        moving: list[Tensor] = []

        def step(s: Tensor, t: int, running: Tensor) -> tuple[Tensor, Tensor]:
            H = s.view(*shape, -1) if self.freeze or not moving else moving[-1]
            H = self.block(self.told(H, i, t), memory, attention_mask)
            moving.append(H)
            new = H.flatten(0, 1)[running]
            return new, self._halts(new)

        return step

    def _few(self, attention_mask: AttentionMask, shape: tuple[int, int]) -> Any:
        """Only the rows that run; keys and values of the others are those they had."""
        (b, L), block, attend = shape, self.block, self.block.attend
        W, d = attend.W_qkv.weight, attend.W_o.in_features
        nobody = W.new_zeros(1, 0, d)
        i = torch.arange(L, device=W.device)
        place = W.new_zeros(L, d) if self.signal is None else self.signal.place(i).to(W)
        allowed = (i <= i[:, None]) if attend.pattern == CAUSAL else i[:, None] >= 0
        seen = (
            allowed if attention_mask is None else allowed & attention_mask[:, None]
        )  # (L, L), or (b, L, L)
        kept, fresh = W.new_zeros(b * L, sum(attend.widths[1:])), W.new_zeros(0, dtype=torch.long)

        def rows(Y: Tensor) -> Tensor:  # (1, h, r, d_head) → (r, h·d_head)
            return Y[0].transpose(0, 1).flatten(1)

        def step(s: Tensor, t: int, running: Tensor) -> tuple[Tensor, Tensor]:
            nonlocal kept, fresh
            when = W.new_zeros(d) if self.signal is None else self.signal.step(t).to(W)
            text, at = running // L, running % L
            X = s[running] + place[at]
            moved = F.linear(when, W)  # what the step adds to each query, key and value
            fresh = running if t == 1 else fresh  # states that the step before has made
            _, K, V = attend.project(nobody, (s[fresh] + place[fresh % L])[None])
            made = torch.cat([rows(K), rows(V)], 1).to(kept)
            kept, fresh = kept.index_copy(0, fresh, made), running
            K, V = (kept + moved[d:].to(kept)).view(b, L, -1).split(attend.widths[1:], -1)
            # rows of a text stand side by side, filled up to the text with most
            slot = torch.arange(len(running), device=text.device)
            slot = slot - torch.searchsorted(text, text)
            most = int(slot.max()) + 1
            asks = rows(attend.project(X[None], nobody)[0]) + moved[:d]
            Q = X.new_zeros(b, most, d).index_put((text, slot), asks.to(X))
            mask = torch.ones(b, most, L, dtype=torch.bool, device=text.device)
            mask[text, slot] = seen[at] if seen.dim() == 2 else seen[text, at]
            Q, K, V = (Y.unflatten(-1, (-1, attend.d_head)).transpose(1, 2) for Y in (Q, K, V))
            out = _fused.attention(Q, K, V, mask[:, None])
            out = out.transpose(1, 2).flatten(2)[text, slot]
            A = block.order(X + when, lambda _: attend.W_o(out), block.norms[0])
            new = block.order(A, block.feed, block.norms[-1])
            return new, self._halts(new)

        return step


@named
def halting_universal(model: Model, M: int, signal: Any = None, **halting: Any) -> Model:
    """The model with a stack that halts at each position, M steps at most."""
    more = {} if signal is None else {"signal": signal}
    return universal(model, M, make=partial(Halting, **halting), **more)


def pondered(model: nn.Module) -> Pondered:
    """N and R of every position of the last call, of a model that has one stack."""
    (found,) = [m.pondered for m in model.modules() if isinstance(m, Halting)]
    if found is None:
        raise ValueError("the model has not been called yet")
    return found


def price(model: nn.Module) -> Tensor:
    """The mean of N + R over the positions of the last call, summed over stacks: τ's factor."""
    found = [m.pondered for m in model.modules() if isinstance(m, Halting) and m.pondered]
    if not found:
        raise ValueError("no stack of this model has halted; make it by halting_universal, call it")
    return torch.stack([x.cost.sum() / (x.N > 0).sum() for x in found]).sum()
