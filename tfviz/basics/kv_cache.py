"""The key/value cache: what each token has offered is kept, and only the new token asks.

    K_t = [K_{t-1}; x_t W^k],   V_t = [V_{t-1}; x_t W^v],   z_t = softmax(x_t W^q K_tᵀ / √d_k) V_t

Nobody invented it: it is how decoders with a causal mask have always been run. Shazeer 2019 (arXiv
1911.02150) says why it, and not arithmetic, limits the speed; Pope et al. 2022 (arXiv 2211.05102)
size it: `cache_cost`. `models.blocks.MultiHeadAttention` holds the same for many heads and rows.

>>> W = torch.eye(2)
>>> _, kept = attend_next(torch.tensor([1.0, 0.0]), W, W, W)
>>> z, (K, V) = attend_next(torch.tensor([0.0, 1.0]), W, W, W, kept)
>>> K.tolist(), [round(x, 2) for x in z.tolist()]
([[1.0, 0.0], [0.0, 1.0]], [0.33, 0.67])
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from tfviz._arguments import named
from tfviz.dense_attention import attention

__all__ = ["attend_next"]

Rows = tuple[Float[Tensor, "t d_k"], Float[Tensor, "t d_v"]]  # K and V of the tokens so far


@named
def attend_next(
    x: Float[Tensor, "d"],
    W_q: Float[Tensor, "d d_k"],
    W_k: Float[Tensor, "d d_k"],
    W_v: Float[Tensor, "d d_v"],
    kept: Rows | None = None,
) -> tuple[Float[Tensor, "d_v"], Rows]:
    """(z, K and V with one row more): one head of causal self-attention, for its newest token."""
    if x.dim() != 1:
        raise ValueError(f"x has shape {tuple(x.shape)}; give the row of one token, (d,)")
    K, V = (x @ W_k)[None], (x @ W_v)[None]
    if kept is not None:
        if kept[0].shape[1:] != K.shape[1:] or kept[1].shape[1:] != V.shape[1:]:
            raise ValueError(
                f"kept has shapes {tuple(kept[0].shape)}, {tuple(kept[1].shape)}, the new rows "
                f"{tuple(K.shape)}, {tuple(V.shape)}; give the K and V that the same W made"
            )
        K, V = torch.cat([kept[0], K]), torch.cat([kept[1], V])
    return attention((x @ W_q)[None], K, V)[0][0], (K, V)
