"""Multi-query attention: every head asks its own question, and all read one set of keys and values.

    head_m = softmax(X W_m^q (X W^k)ᵀ/√d_h) X W^v           out = [head_0; …; head_{h−1}] W^o

Shazeer 2019 (arXiv 1911.02150), section 3. W^k and W^v are (d, d_h): one of each, where multi-head
attention has h. So a cache holds 2 d_h numbers for each token and layer in place of 2 h d_h, and
the layer has 2 d (d − d_h) parameters fewer. No biases. A model has it by `h_kv=1`:
`GPT(…, h_kv=1)`. How a step of generation reads each key once for all heads:
`grouped_query_attention.Grouped`.

>>> parameters_saved(d=1024, d_h=128)
1835008
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.dense_attention import attention

__all__ = ["matched_d_ff", "multi_query_definition", "parameters_saved"]


@named
def multi_query_definition(
    X: Float[Tensor, "*batch L d"],
    W_q: Float[Tensor, "h d dk"],
    W_k: Float[Tensor, "d dk"],
    W_v: Float[Tensor, "d dv"],
    W_o: Float[Tensor, "h*dv d_out"],
    pattern: Any = None,
) -> tuple[Float[Tensor, "*batch L d_out"], Float[Tensor, "*batch h L L"]]:
    """(output, A of each head), head by head. `pattern`: a Pattern or a mask, True = may attend."""
    wanted = {"W_q": (W_q, "(h, d, d_h)"), "W_k": (W_k, "(d, d_h)"), "W_v": (W_v, "(d, d_v)")}
    for name, (W, shape) in wanted.items():
        if W.dim() != len(shape.split(",")) or W.shape[-2] != X.shape[-1]:
            raise ValueError(
                f"{name} has shape {tuple(W.shape)}, rows of X have {X.shape[-1]} numbers; give "
                f"{name} as {shape}"
            )
    if len(W_o) != len(W_q) * W_v.shape[-1]:
        raise ValueError(
            f"W_o has {len(W_o)} rows, but {len(W_q)} heads of width {W_v.shape[-1]} make "
            f"{len(W_q) * W_v.shape[-1]} columns; give it as many rows"
        )
    K, V = X @ W_k, X @ W_v  # once for all heads
    heads, maps = zip(*(attention(X @ W, K, V, pattern) for W in W_q), strict=True)
    return torch.cat(heads, -1) @ W_o, torch.stack(maps, -3)


@named
def parameters_saved(d: int, d_h: int) -> int:
    """2 d (d − d_h): what one layer has fewer than multi-head attention with heads of d_h in d."""
    return 2 * _arguments.integer("d", d, 1) * (d - _arguments.integer("d_h", d_h, 1, d))


@named
def matched_d_ff(d: int, d_h: int, d_ff: int, attentions: int = 1, layers: int = 1) -> float:
    """The width of the feed-forward layers that gives the parameters back.

    A feed-forward layer has 2 d d_ff weights, so each attention is worth d − d_h columns. `layers`
    of them share what `attentions` have saved. Shazeer's model has 18 attentions in 12 layers:

    >>> matched_d_ff(d=1024, d_h=128, d_ff=4096, attentions=18, layers=12)
    5440.0
    """
    saved = _arguments.integer("attentions", attentions, 1) * parameters_saved(d, d_h)
    layers = _arguments.integer("layers", layers, 1)
    return _arguments.integer("d_ff", d_ff, 1) + saved / (2 * d * layers)
