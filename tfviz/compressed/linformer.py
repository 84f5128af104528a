"""Linformer: L keys and values are mixed down to k before they are compared; ways to share that.

Wang, Li, Khabsa, Fang, Ma 2020 (arXiv 2006.04768), eq. 7. With E and F (k, L), learned,

    out = softmax(Q (E K)ᵀ/√d) · F V                          (L, k) times (k, d)

so the L × L matrix that is applied, softmax(Q (E K)ᵀ/√d) F, has rank k at most. Its rows need not
sum to one, and its entries may be negative. Each row of E mixes all positions: it is not causal.
The paper (§4) and Weng's survey print E as L × k, and multiply it from the left.

How E and F may be shared (§4), with h heads in each of N layers, and how many matrices are left:

    none         each head of each layer has its own E and F         2 N h
    headwise     one E and one F for all heads of a layer            2 N
    key-value    one E = F for all heads of a layer                  N
    layerwise    one E = F for all heads of all layers               1

A shorter text takes the first columns of E, as fairseq and the package `linformer` do. What the
authors' code (fairseq) does otherwise: it mixes the rows of X before W^k and W^v, which is the same
without biases; its matrices are shared by the heads always; it ignores padding of keys, which
is refused here.

>>> import torch
>>> mean_pooling(k=2, L=4)
tensor([[0.5000, 0.5000, 0.0000, 0.0000],
        [0.0000, 0.0000, 0.5000, 0.5000]])
>>> E, X = mean_pooling(2, 4), torch.eye(4)
>>> linformer_definition(X, X, X, E, E)[1][0]
tensor([0.2811, 0.2811, 0.2189, 0.2189])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity

__all__ = [
    "Linformer",
    "layerwise",
    "linformer_attention",
    "linformer_definition",
    "matrices",
    "mean_pooling",
    "strided_convolution",
]

SHARING: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {
        "none": lambda N, h: 2 * N * h,
        "headwise": lambda N, h: 2 * N,
        "key-value": lambda N, h: N,
        "layerwise": lambda N, h: 1,
    }
)
"""The ways to share E and F: how many matrices N layers of h heads then have."""


@named
def matrices(sharing: str, N: int, h: int) -> int:
    """How many matrices E and F there are in N layers of h heads, each of k × L numbers."""
    if sharing not in SHARING:
        raise ValueError(f"sharing = {sharing!r}; choose from {', '.join(SHARING)}")
    return SHARING[sharing](_arguments.integer("N", N, 1), _arguments.integer("h", h, 1))


@named
def strided_convolution(kernel: Float[Tensor, "*b width"], k: int) -> Float[Tensor, "*b k L"]:
    """E of a convolution whose kernel is as wide as its stride: L = k · width positions.

    Row c of E holds the kernel at positions c · width, …, and zeros elsewhere.
    """
    one = torch.eye(_arguments.integer("k", k, 1), dtype=kernel.dtype, device=kernel.device)
    return (one[:, :, None] * kernel[..., None, None, :]).flatten(-2)


@named
def mean_pooling(k: int, L: int) -> Float[Tensor, "k L"]:
    """E that takes the mean of each L/k positions. Raises ValueError unless k divides L."""
    if _arguments.integer("L", L, 1) % _arguments.integer("k", k, 1, L):
        raise ValueError(f"k = {k} does not divide L = {L}; choose a divisor, or pad the text")
    return strided_convolution(torch.full((L // k,), k / L), k)


def _mixes(name: str, E: Tensor, L: int, h: int) -> None:
    """Raises TypeError or ValueError unless E mixes L positions in h heads."""
    _arguments.tensor(name, E, "(k, L) or (h, k, L)")
    if E.dim() not in (2, 3) or (E.dim() == 3 and E.shape[0] not in (1, h)):
        raise ValueError(
            f"{name} has shape {tuple(E.shape)}; give (k, L), or (h, k, L) with h = {h}"
        )
    if E.shape[-1] != L:
        raise ValueError(
            f"{name} mixes {E.shape[-1]} positions, K and V have {L}; give {name} of shape (k, {L})"
        )


@named
def linformer_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    E: Float[Tensor, "*h k L"],
    F: Float[Tensor, "*h k L"],
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """The output, and the L × L matrix softmax(Q (E K)ᵀ/√d) F that makes it of V."""
    P = (Q @ (E @ K).mT / math.sqrt(Q.shape[-1])).softmax(-1)
    A = P @ F
    return A @ V, A


@named
def linformer_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    E: Float[Tensor, "*h k L"],
    F: Float[Tensor, "*h k L"],
) -> Float[Tensor, "b h L dv"]:
    """The same in O(L k d), as attention to the k mixed keys and values."""
    _qkv.check(Q, K, V, self_attention=False)
    for name, matrix in (("E", E), ("F", F)):
        _mixes(name, matrix, K.shape[2], K.shape[1])
        _arguments.like(name, matrix, Q, "(k, L) or (h, k, L)")
    if E.shape[-2] != F.shape[-2]:
        raise ValueError(
            f"E makes {E.shape[-2]} keys, F makes {F.shape[-2]} values; give both the same k"
        )
    return _fused.attention(Q, E @ K, F @ V).to(V.dtype)


class Linformer(nn.Module):
    """Linformer as a core for texts of up to `length` tokens: `BERT(…, core=partial(Linformer,
    length=128, k=32))`.

    sharing   what shares E and F: none, headwise, key-value; `layerwise` makes the fourth
    E         instead, one matrix (1, k, length) for keys and values, which others may have too

    It is not causal, and does not know padding, caches, or patterns other than full.
    """

    @named
    def __init__(
        self,
        h: int,
        length: int,
        k: int,
        sharing: str = "none",
        E: nn.Parameter | None = None,
    ) -> None:
        super().__init__()
        self.length = _arguments.integer("length", length, 1)
        self.k = _arguments.integer("k", k, 1, length)
        self.sharing = sharing if E is None else "layerwise"
        if self.sharing == "layerwise" and E is None:
            raise ValueError(
                "sharing = 'layerwise' needs a matrix that all layers have; write "
                f"core=layerwise(length={length}, k={k})"
            )
        matrices(sharing, 1, h)
        heads = h if sharing == "none" else 1
        self.E = drawn(heads, k, length) if E is None else E
        self.F = drawn(heads, k, length) if self.sharing in ("none", "headwise") else self.E

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.whole_text("each row of E mixes all positions of a text", "mixed keys"):
            raise ValueError(
                "pattern = causal(): each row of E mixes all positions, so every query would read "
                "what comes after it; Linformer is for encoders: give pattern = full()"
            )
        L = K.shape[2]
        if self.length < L:
            raise ValueError(
                f"the text has {L} tokens, E was made for length = {self.length}; cut the text, or "
                f"make the core with length={L}"
            )
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        E, F = (X[..., :L].to(Q.dtype) for X in (self.E, self.F))

        def attend(V: Tensor) -> Tensor:
            return linformer_attention(Q, K, V, E, F)

        return attend(V), attend(identity(V)) if where.need_weights else None


def drawn(heads: int, k: int, length: int) -> nn.Parameter:
    """E before training, uniform as torch draws a linear layer from `length` to k."""
    bound = 1 / math.sqrt(length)
    return nn.Parameter(torch.empty(heads, k, length).uniform_(-bound, bound))


@named
def layerwise(length: int, k: int) -> Callable[[], Linformer]:
    """What makes cores that all have one and the same E = F: `BERT(…, core=layerwise(128, 32))`."""
    E = drawn(1, _arguments.integer("k", k, 1, length), _arguments.integer("length", length, 1))
    return lambda: Linformer(1, length, k, E=E)
