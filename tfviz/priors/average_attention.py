"""Average attention network: every earlier token counts as much as any other, and a gate decides.

Zhang, Xiong, Su 2018 (arXiv 1805.00631), for the self-attention of a decoder. Of the rows y_0, y_1,
… that come in, with i counted from 0,

    g_i = FFN( 1/(i + 1) Σ_{j ≤ i} y_j )                  the average layer
    [a_i; b_i] = σ([y_i; g_i] W),   h_i = a_i ⊙ y_i + b_i ⊙ g_i     the gating layer

There are no queries, no keys and no scores: the weight of a key is 1/(i + 1), whatever it says.
This is causal attention whose scores are all 0. The mean of i + 1 rows is that of i rows and one
more, so a model that writes keeps one vector: ȳ_i = (i ȳ_{i−1} + y_i)/(i + 1).

`Averages` is the average as a core, for any pattern; `AverageAttention` is the whole layer, in the
place of multi-head attention. The authors' code leaves the FFN out unless it is asked for, and so
does this one: `d_ff=2048` is the paper's. Skip and norm are those of the block, which is post-norm
in the paper.

>>> Y = torch.tensor([[6.0], [0.0], [3.0]])
>>> running_mean(Y).flatten().tolist()
[6.0, 3.0, 3.0]
>>> averages_definition(Y, CAUSAL.mask(3))[1]
tensor([[1.0000, 0.0000, 0.0000],
        [0.5000, 0.5000, 0.0000],
        [0.3333, 0.3333, 0.3333]])
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Seen, Where, outside_inference, same_texts
from tfviz.dense_attention import CAUSAL, FULL, visible
from tfviz.models.blocks import FeedForward, Memory, Mixer, Seq
from tfviz.patterns import Pattern

__all__ = ["AverageAttention", "Averages", "averages_definition", "running_mean", "share"]


def share(i: Any, j: Any) -> Any:
    """1/(i + 1), the weight of every key j ≤ i: a formula of the indices."""
    return 1 / (i + 1)


@named
def averages_definition(
    V: Float[Tensor, "*b Lk dv"], mask: Bool[Tensor, "*#b Lq Lk"]
) -> tuple[Float[Tensor, "*b Lq dv"], Float[Tensor, "*#b Lq Lk"]]:
    """The mean of the values that the mask allows, and the weights: one over how many they are."""
    A = _shares(mask, torch.promote_types(V.dtype, torch.float32))
    return (A @ V.to(A.dtype)).to(V.dtype), A.to(V.dtype)


def _shares(mask: Bool[Tensor, "*b Lq Lk"], dtype: torch.dtype) -> Float[Tensor, "*b Lq Lk"]:
    allowed = mask.to(dtype)
    return allowed / allowed.sum(-1, keepdim=True).clamp(min=1)


@named
def running_mean(
    Y: Float[Tensor, "*b L d"],
    before: Float[Tensor, "*b 1 d"] | None = None,
    count: Any = 0,
    seen: Bool[Tensor, "*#b L 1"] | None = None,
) -> Float[Tensor, "*b L d"]:
    """Row i is the mean of rows 0 to i, in O(L d): `torch.cumsum`, divided by how many they are.

    `before` is the mean of `count` rows that came earlier. Where `seen` is False a row does not
    count. A mean of nothing is 0.
    """
    Y = Y.to(torch.promote_types(Y.dtype, torch.float32))
    if seen is None:
        counts = count + torch.arange(1, Y.shape[-2] + 1, device=Y.device)[:, None]
    else:
        Y, counts = Y.masked_fill(~seen, 0.0), count + seen.cumsum(-2)
    sums = Y.cumsum(-2)
    if before is not None:
        sums = sums + count * before
    return sums / counts.clamp(min=1)


class Averages(nn.Module):
    """The mean of the values that a query may see: `GPT(…, core=Averages)`.

    Queries and keys are not looked at. Full and causal attention cost O(L), and of a causal text it
    keeps one vector for each head, the mean so far, in float32 at least; other patterns make all
    pairs, and keep keys and values.
    """

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        streams = where.pattern == CAUSAL and not where.crosses
        passed = where.start if streams else 0
        if not streams:
            K, V = where.joined(K, V)
        if Q.shape[1] != V.shape[1]:
            V = V.repeat_interleave(Q.shape[1] // V.shape[1], 1)
        Lq, Lk = Q.shape[2], passed + V.shape[2]
        if streams and Lq != V.shape[2]:
            raise ValueError(f"{Lq} queries and {V.shape[2]} values; give each token a value")
        keys = visible(FULL, Lq, Lk, where.attention_mask, Q.device)  # (b, 1, 1, Lk), no padding
        if keys is not None and len(keys) not in (1, len(Q)):
            raise ValueError(
                f"attention_mask has {len(keys)} rows, Q {len(Q)}; give one for each row of the "
                "batch"
            )
        if streams:
            out = self._stream(V, keys, where).to(V.dtype)
        elif where.pattern == FULL and not where.need_weights:
            seen = None if keys is None else keys.mT
            out = running_mean(V, seen=seen)[:, :, -1:].expand(-1, -1, Lq, -1).to(V.dtype)
        if where.need_weights or not (streams or where.pattern == FULL):
            mask = torch.ones(Lq, Lk, dtype=torch.bool, device=Q.device)
            allowed = visible(where.pattern, Lq, Lk, where.attention_mask, Q.device)
            mask = mask if allowed is None else mask & allowed
            # the weights need no keys, so those of a stream are there for keys that are gone, too
            A = _shares(mask, torch.promote_types(V.dtype, torch.float32))
            if not streams:
                out = (A @ V.to(A.dtype)).to(V.dtype)
            if where.need_weights:
                return out, A.to(V.dtype).expand(*Q.shape[:2], -1, -1)
        return out, None

    def _stream(self, V: Tensor, keys: Bool[Tensor, "b 1 1 Lk"] | None, where: Where) -> Tensor:
        """The mean up to each token of a text that goes on after the mean of what has passed."""
        before = None if where.state is None else outside_inference(where.state)
        if before is not None:
            same_texts(before, V)
        count: Any = where.start
        if keys is not None:
            count = keys[..., : where.start].sum(-1, keepdim=True)
            keys = keys[..., where.start :]
        out = running_mean(V, before, count, None if keys is None else keys.mT)
        if where.keep:
            where.keep(out[:, :, -1:])
        return out


class AverageAttention(Mixer):
    """The layer in the place of multi-head attention: `GPT(…, mix=AverageAttention)`.

    It averages what comes in, without projections or heads. `d_ff` is the width of the feed-forward
    layer after the average, None for no such layer; `gate=False` leaves the gating layer out, and
    the average is the answer.
    """

    @named
    def __init__(
        self,
        d: int,
        *,
        d_ff: int | None = None,
        gate: bool = True,
        pattern: Pattern | None = None,
    ) -> None:
        super().__init__(pattern)
        d = _arguments.integer("d", d, 1)
        self.core = Averages()
        self.feed = nn.Identity() if d_ff is None else FeedForward(d, d_ff, nn.ReLU)
        self.gates = nn.Linear(2 * d, 2 * d) if gate else None

    def mixed(self, X: Seq, memory: Memory, where: Where) -> Seq:
        """The rows of X, each with the mean up to it; the gate says how much of both."""
        if memory is not None:
            raise ValueError(
                "an average has no queries, and would tell every token the same of another "
                "sequence; leave cross-attention as it is"
            )
        one_head = X[:, None]
        heads, A = self.core(one_head, one_head, one_head, where)
        if self.watched:
            self.seen = Seen(A, heads)
        g: Tensor = self.feed(heads[:, 0])
        if self.gates is None:
            return g
        a, b = self.gates(torch.cat([X, g], -1)).sigmoid().chunk(2, -1)
        return a * X + b * g
