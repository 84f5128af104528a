"""The check that every attention function makes of its queries, keys and values."""

from __future__ import annotations

from torch import Tensor

from tfviz import _arguments


def check(
    Q: Tensor, K: Tensor, V: Tensor, *, self_attention: bool, reads_values: bool = False
) -> None:
    """Raises TypeError or ValueError, with a remedy, unless Q, K, V are (…, L, d) and belong
    together. With `self_attention` there must be as many queries as keys; `reads_values` says that
    shapes alone do not do, which is all that tensors on the meta device have."""
    for name, x in (("Q", Q), ("K", K), ("V", V)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} is a {type(x).__name__}; give a tensor of shape (…, L, d)")
        if not x.is_floating_point():
            raise TypeError(f"{name} has dtype {x.dtype}; give real numbers, e.g. {name}.float()")
        if x.dim() < 2:
            raise ValueError(f"{name} has shape {tuple(x.shape)}; give (…, L, d)")
        if not x.numel():
            raise ValueError(f"{name} has shape {tuple(x.shape)} and is empty; no side may be 0")
        if x.is_meta and reads_values:
            raise ValueError(
                f"{name} is on the meta device, which holds shapes and no numbers, and numbers "
                "decide here who meets whom; give tensors on a CPU"
            )
        _arguments.finite(name, x)
    if not Q.dtype == K.dtype == V.dtype:
        raise TypeError(f"Q, K, V have dtypes {Q.dtype}, {K.dtype}, {V.dtype}; make them the same")
    if Q.shape[-1] != K.shape[-1]:
        raise ValueError(
            f"queries have width {Q.shape[-1]}, keys {K.shape[-1]}; project both to one width"
        )
    if K.shape[-2] != V.shape[-2]:
        raise ValueError(f"{K.shape[-2]} keys, {V.shape[-2]} values; give one value for each key")
    if self_attention and Q.shape[-2] != K.shape[-2]:
        raise ValueError(
            f"a Pattern relates L positions to themselves, but there are {Q.shape[-2]} queries and "
            f"{K.shape[-2]} keys; give attention() a Boolean mask (queries, keys) instead"
        )
    if not Q.shape[:-2] == K.shape[:-2] == V.shape[:-2]:
        raise ValueError(
            f"Q, K, V have leading shapes {tuple(Q.shape[:-2])}, {tuple(K.shape[:-2])}, "
            f"{tuple(V.shape[:-2])}; make batch and heads the same, e.g. with expand"
        )
