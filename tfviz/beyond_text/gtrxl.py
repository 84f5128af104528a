"""Gated Transformer-XL: a gate, not a sum, joins a stream X and the answer Y of a sublayer.

    Y = ReLU(F(LN(X)))                           LN only on the way into the sublayer F
    input     σ(X W) ⊙ X + Y                     output    X + σ(X W − b) ⊙ Y
    highway   s ⊙ X + (1 − s) ⊙ Y                SigTanh   X + σ(Y W − b) ⊙ tanh(Y U)
              s = σ(X W + b)
    GRU       (1 − z) ⊙ X + z ⊙ H,               z = σ(Y W_z + X U_z − b)
              H = tanh(Y W_h + (r ⊙ X) U_h),     r = σ(Y W_r + X U_r)

Parisotto et al. 2019 (arXiv 1910.06764). The paper writes b_g for b, ĥ for H, and W_g, U_g for W_h,
U_h. With a large b a gate is the identity; the input gate has no b. Without a gate, X + Y is the
paper's TrXL-I: `reordered`. b is learned; it begins at 2 in the GRU gate and at 1 in the others.
The memory is Transformer-XL's. It keeps LN(X); the paper keeps X and applies today's LN to it.

>>> model = gated_transformer_xl(vocab=11, d=8, h=2, N=2, m=3)
>>> model(torch.arange(10)[None]).shape
torch.Size([1, 10, 11])
>>> round(passed(b=2.0), 2), round(passed(b=2.0) ** 24, 2)  # through one gate, and through 24
(0.88, 0.05)
"""

from __future__ import annotations

import copyreg
import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.longer_context.transformer_xl_recurrence import transformer_xl
from tfviz.models.blocks import Layer, Seq
from tfviz.models.gpt import GPT

__all__ = [
    "GATES",
    "Gate",
    "Kind",
    "gated",
    "gated_transformer_xl",
    "gru_gate",
    "highway_gate",
    "input_gate",
    "output_gate",
    "passed",
    "reordered",
    "sigtanh_gate",
]

Bias = Tensor | float


@named
def input_gate(X: Seq, Y: Seq, W: Tensor) -> Seq:
    _check(X, Y, W=W)
    return (X @ W).sigmoid() * X + Y


@named
def output_gate(X: Seq, Y: Seq, W: Tensor, b: Bias) -> Seq:
    _check(X, Y, W=W)
    return X + (X @ W - b).sigmoid() * Y


@named
def highway_gate(X: Seq, Y: Seq, W: Tensor, b: Bias) -> Seq:
    _check(X, Y, W=W)
    s = (X @ W + b).sigmoid()
    return s * X + (1 - s) * Y


@named
def sigtanh_gate(X: Seq, Y: Seq, W: Tensor, U: Tensor, b: Bias) -> Seq:
    _check(X, Y, W=W, U=U)
    return X + (Y @ W - b).sigmoid() * (Y @ U).tanh()


@named
def gru_gate(X: Seq, Y: Seq, W: Tensor, U: Tensor, b: Bias) -> Seq:
    """W and U are (3, d, d): the matrices for r, for z and for H."""
    _check(X, Y, 3, W=W, U=U)
    r = (Y @ W[0] + X @ U[0]).sigmoid()
    z = (Y @ W[1] + X @ U[1] - b).sigmoid()
    H = (Y @ W[2] + (r * X) @ U[2]).tanh()
    return (1 - z) * X + z * H


def _check(X: Seq, Y: Seq, *count: int, **matrices: Tensor) -> None:
    if X.shape != Y.shape:
        raise ValueError(
            f"Y has shape {tuple(Y.shape)}, X has {tuple(X.shape)}; a gate joins two of one shape"
        )
    wanted = (*count, X.shape[-1], X.shape[-1])
    for name, matrix in matrices.items():
        if matrix.shape != wanted:
            raise ValueError(
                f"{name} has shape {tuple(matrix.shape)}; for rows of {X.shape[-1]} numbers give "
                f"{name} the shape {wanted}"
            )


@named
def passed(b: float) -> float:
    """1 − σ(−b): the share of x that a GRU gate passes where its matrices give 0."""
    b = _arguments.real("b", b)
    return 1 / (1 + math.exp(-b)) if b > -700 else math.exp(b)  # e^700 is nearly the largest number


@named
def reordered(X: Seq, F: Layer, LN: Layer) -> Seq:
    """Identity map reordering, TrXL-I: pre-norm, a ReLU on what the sublayer answers, and a sum."""
    return X + F(LN(X)).relu()


class Kind(NamedTuple):
    """A gate's formula, its matrices by name with how many, and where its bias begins, if any."""

    joined: Callable[..., Seq]
    matrices: dict[str, tuple[int, ...]]
    b: float | None


GATES = {
    "input": Kind(input_gate, {"W": ()}, None),
    "output": Kind(output_gate, {"W": ()}, 1.0),
    "highway": Kind(highway_gate, {"W": ()}, 1.0),
    "sigtanh": Kind(sigtanh_gate, {"W": (), "U": ()}, 1.0),
    "gru": Kind(gru_gate, {"W": (3,), "U": (3,)}, 2.0),
}
"""The five gates of the paper."""


class _Kinds(type):
    """Gates that `gated` makes are stored and copied by what it was given: see `copyreg` below."""

    kind: Kind
    b: float | None

    def stored(cls) -> Any:
        if "kind" not in vars(cls):
            return cls.__name__
        return gated, (next(name for name in GATES if GATES[name] is cls.kind), cls.b)


copyreg.pickle(_Kinds, _Kinds.stored)


class Gate(nn.Module, metaclass=_Kinds):
    """An order with weights, of which a block makes one for each sublayer. `gated` makes the class.

    Matrices begin as Xavier's do, and b is a learned number for each column.
    """

    kind: Kind
    b: float | None

    @named
    def __init__(self, d: int) -> None:
        super().__init__()
        if not hasattr(self, "kind"):
            raise TypeError("Gate has no kind; make a class that has one: gated('gru')(d)")
        d = _arguments.integer("d", d, 1)
        self.weights = nn.ParameterDict()
        for name, count in self.kind.matrices.items():
            W = torch.empty(*count, d, d)
            for matrix in W.view(-1, d, d):
                nn.init.xavier_uniform_(matrix)
            self.weights[name] = nn.Parameter(W)
        if self.b is not None:
            self.weights["b"] = nn.Parameter(torch.full((d,), self.b))

    @named
    def forward(self, X: Seq, F: Layer, LN: Layer) -> Seq:
        return self.joined(X, F(LN(X)).relu())

    def joined(self, X: Seq, Y: Seq) -> Seq:
        return self.kind.joined(X, Y, **self.weights)


@named
def gated(gate: str = "gru", b: float | None = None) -> type[Gate]:
    """The order of a block with this gate, whose bias begins at b, or where the paper's begins.

    Raises ValueError for a gate that is none of GATES, and for the bias of one that has none.
    """
    if gate not in GATES:
        raise ValueError(f"gate = {gate!r} is no gate; choose one of {', '.join(GATES)}")
    kind = GATES[gate]
    if b is not None and kind.b is None:
        raise ValueError(f"b = {b!r}, but the {gate} gate has no bias; leave out b")
    begins = kind.b if b is None else _arguments.real("b", b)
    made: Any = _Kinds("Gate", (Gate,), {"kind": kind, "b": begins})
    return cast(type[Gate], made)


@named
def gated_transformer_xl(
    vocab: int,
    d: int,
    h: int,
    N: int,
    m: int,
    *,
    gate: str = "gru",
    b: float | None = None,
    **more: Any,
) -> GPT:
    """A Transformer-XL with memory for m rows, and a gate after each sublayer."""
    return transformer_xl(vocab, d, h, N, m, **{"order": gated(gate, b), "phi": nn.ReLU} | more)
