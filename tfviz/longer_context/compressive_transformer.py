"""Compressed memory: rows that leave Transformer-XL's memory are squeezed c to one, and kept.

    H̃ = [C; M; H],   C: at most m_c squeezed rows,  M: m rows as they were,  H: the segment
    [M; H] → M: its oldest rows, c at a time, leave;  [C; f_c(old)] → C: its oldest are forgotten

Rae et al. 2019 (arXiv 1911.05507). f_c is a pooling, the rows that got the most attention, or a
convolution, which learns by one of two losses. Neither reaches the rest of the model, and the loss
of the task does not reach f_c:

    L_ar = Σ_layers |attn(h, old) − attn(h, f_c(old))|₂,       L_ae = Σ_layers |old − g(f_c(old))|₂

attn is the layer's own by content alone, its weights and h held fixed. The norm is one text's; the
mean over the batch is taken. labml and lucidrains take the mean square.

The paper begins with memories of zeros, and squeezes what a whole segment pushes out. Here they
begin empty, and rows that do not fill a group of c wait: any segment does, one token too. labml
rounds up instead, lucidrains pads with zeros. Squeezed rows stand at whole distances right before
the memory, c times as near as they were said; so in both codes.

>>> old, usage = torch.tensor([[[1.0], [3.0], [5.0], [9.0]]]), torch.tensor([[0.1, 0.4, 0.2, 0.3]])
>>> mean_pool(old, None, 2).tolist(), most_used(old, usage, 2).tolist()
([[[2.0], [7.0]]], [[[3.0], [9.0]]])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tfviz import _arguments, _fused
from tfviz._arguments import named
from tfviz.cores import Cache, outside_inference, same_texts
from tfviz.longer_context.transformer_xl_recurrence import Recurrent
from tfviz.models.blocks import MultiHeadAttention, Seq
from tfviz.models.gpt import GPT
from tfviz.position.xl_relative import XL

__all__ = [
    "Compressive",
    "Conv",
    "attention_reconstruction",
    "auto_encoding",
    "compressive_gpt",
    "max_pool",
    "mean_pool",
    "most_used",
    "newest",
    "temporal_range",
]

Compress = Callable[[Tensor, Any, int], Tensor]
"""f_c(old (b, n, d), usage (b, n), c) → (b, n/c, d)."""


@named
def mean_pool(old: Seq, usage: Any, c: int) -> Seq:
    return old.unflatten(1, (-1, c)).mean(2)


@named
def max_pool(old: Seq, usage: Any, c: int) -> Seq:
    return old.unflatten(1, (-1, c)).amax(2)


@named
def newest(old: Seq, usage: Any, c: int) -> Seq:
    """The last of each c: what it costs to throw the others away."""
    return old[:, c - 1 :: c]


@named
def most_used(old: Seq, usage: Tensor, c: int) -> Seq:
    """The n/c rows that got the most attention, in the order of the text."""
    at = usage.topk(old.shape[1] // c, -1).indices.sort(-1).values
    return old.gather(1, at.unsqueeze(-1).expand(-1, -1, old.shape[-1]))


class Conv(nn.Sequential):
    """A convolution with kernel and stride c; dilated: behind two that look 1 and 2 rows aside.

    How deep and wide the paper's dilated one is, it does not say here: these sizes are ours.
    """

    @named
    def __init__(self, d: int, c: int, *, dilated: bool = False) -> None:
        _arguments.integer("d", d, 1), _arguments.integer("c", c, 1)
        around = [nn.Conv1d(d, d, 3, padding=n, dilation=n) for n in (1, 2)] if dilated else []
        super().__init__(
            *(layer for x in around for layer in (x, nn.ReLU())), nn.Conv1d(d, d, c, c)
        )
        self.c = c

    def check(self, c: int, rows: int = 0) -> None:
        if c != self.c or rows % c:
            raise ValueError(
                f"c = {c} and {rows} rows, but this convolution was made for groups of {self.c}; "
                f"give it whole groups, c = {self.c}"
            )

    @named
    def forward(self, old: Seq, usage: Any = None, c: int = 0) -> Seq:
        """Raises ValueError for another c than it was made for."""
        self.check(c or self.c, old.shape[1])
        return super().forward(old.mT).mT


class Queues(NamedTuple):
    """What a layer keeps from segment to segment."""

    rows: Tensor  # (b, n, d), n < m + c
    squeezed: Tensor  # (b, at most m_c, d)
    usage: Tensor  # (b, n): the weight that each row got since it is a memory
    left: Tensor  # the rows that were squeezed last; `asked` is the segment that was read then
    left_usage: Tensor
    asked: Tensor


class Compressive(Recurrent):
    """Multi-head attention over [squeezed; memory; segment]; `compress` is f_c."""

    @named
    def __init__(
        self, d: int, h: int, *, m: int, m_c: int, c: int, compress: Compress = mean_pool,
        **attention: Any,
    ) -> None:  # fmt: skip
        super().__init__(d, h, m=m, **attention)
        self.m_c, self.c = _arguments.integer("m_c", m_c, 0), _arguments.integer("c", c, 1)
        self.squeeze_by(compress)

    def squeeze_by(self, compress: Compress) -> None:
        """Take this f_c. Raises ValueError for a convolution of another c."""
        if isinstance(compress, Conv):
            compress.check(self.c)
        self.compress, self.asks = compress, compress is most_used

    def past(self, state: Any, X: Seq) -> Seq:
        if state is None:
            return X[:, :0]
        rows, squeezed, *_ = state
        same_texts(rows, X)
        return torch.cat([squeezed, rows], 1)

    @torch.no_grad()
    def followed(self, state: Any, X: Seq, A: Tensor | None) -> Queues:
        none = (X[:, :0], X[:, :0], X[:, :0, 0])
        rows, squeezed, usage, *_ = none if state is None else state
        if A is not None:
            n = squeezed.shape[1]
            usage = usage + A[..., n : n + rows.shape[1]].sum((1, 2))
        rows, usage = torch.cat([rows, X], 1), torch.cat([usage, torch.zeros_like(X[..., 0])], 1)
        n = max(0, rows.shape[1] - self.m) // self.c * self.c
        (left, rows), (left_usage, usage) = (x.split([n, x.shape[1] - n], 1) for x in (rows, usage))
        if n:
            squeezed = torch.cat([squeezed, self.compress(left, left_usage, self.c)], 1)
        squeezed = squeezed[:, max(0, squeezed.shape[1] - self.m_c) :]
        return Queues(rows, squeezed, usage, left, left_usage, X)


@named
def compressive_gpt(
    vocab: int, d: int, h: int, N: int, *, m: int, m_c: int, c: int,
    compress: Callable[[], Compress], **more: Any,
) -> GPT:  # fmt: skip
    """A GPT with two memories; compress() makes f_c for each layer.

    They are made last: with one seed, all models begin alike, whatever their f_c.
    """
    options: dict[str, Any] = {"core": XL, "mix": partial(Compressive, m=m, m_c=m_c, c=c)}
    model = GPT(vocab, d, h, N, **options | more)
    for module in model.modules():
        if isinstance(module, Compressive):
            module.squeeze_by(compress())
    return model


@contextmanager
def held(module: nn.Module) -> Iterator[None]:
    """What is computed while this lasts does not teach the module."""
    taught = [p for p in module.parameters() if p.requires_grad]
    try:
        for p in taught:
            p.requires_grad_(False)
        yield
    finally:
        for p in taught:
            p.requires_grad_()


def content_attention(attend: MultiHeadAttention, X: Seq, rows: Seq) -> Seq:
    """What the rows of X find in `rows` by content alone, (b, L, d), by weights held fixed."""
    with held(attend):
        Q, K, V = attend.project(X, rows)
    out = _fused.attention(Q, K, V)
    return out.transpose(1, 2).flatten(2)


def distance(a: Tensor, b: Tensor) -> Tensor:
    """|a − b|₂ of each text, and the mean over the batch."""
    return torch.linalg.vector_norm((a - b).flatten(1), dim=1).mean()


@named
def attention_reconstruction(cache: Cache) -> Tensor:
    """L_ar of what was squeezed in the last call, 0 if nothing was."""
    return _over_layers(cache, lambda attend, q, new: distance(
        content_attention(attend, q.asked, new), content_attention(attend, q.asked, q.left)
    ))  # fmt: skip


@named
def auto_encoding(
    cache: Cache, decode: Callable[[Compressive], Callable[[Tensor], Tensor]]
) -> Tensor:
    """L_ae of the same; decode(attention) is the g of its layer, (b, n/c, d) → (b, n, d)."""
    return _over_layers(cache, lambda attend, q, new: distance(decode(attend)(new), q.left))


def _over_layers(cache: Cache, loss: Callable[[Compressive, Queues, Tensor], Tensor]) -> Tensor:
    found = [loss(attend, q, attend.compress(q.left, q.left_usage, attend.c))
             for attend, q in squeezed_now(cache)]  # fmt: skip
    return torch.stack(found).sum() if found else torch.zeros(())


def squeezed_now(cache: Cache) -> Iterator[tuple[Compressive, Queues]]:
    """The layers that squeezed rows in the last call, and their queues."""
    for attend, kept in (cache or {}).items():
        if isinstance(attend, Compressive) and kept.state[3].shape[1]:
            yield attend, Queues(*outside_inference(tuple(kept.state)))


@named
def temporal_range(N: int, m: int, m_c: int, c: int) -> int:
    """How many tokens back N layers see: N (m + c m_c), if a segment's length divides m + c m_c."""
    return N * (m + c * m_c)
