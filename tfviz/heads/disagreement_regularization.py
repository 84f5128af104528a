"""Disagreement regularisation: a model is rewarded if its heads are different from each other.

    D_sub = −1/h² Σ_{a,b} cos(v^a, v^b)      of the values of a token, mean over tokens
    D_pos = −1/h² Σ_{a,b} Σ_{i,j} A^a_ij A^b_ij
    D_out = −1/h² Σ_{a,b} cos(o^a, o^b)      of what the heads find for a token, mean over tokens

    loss − λ D        with one of the three, or the sum of several

Li, Tu, Yang, Lyu, Zhang 2018 (arXiv 1810.10183). The sums run over all pairs, a = b too: these h
terms are the same whatever the heads do. D_pos grows with the number of queries, so `agreement`
divides it by that number, and all three are at most 1. Where there are several attentions, we
take their mean. The paper's text leaves open whether a cosine is that of whole matrices or that of
each token, as we have it.

The weights and what the heads find come from `watched`; `values` keeps the values beside them.

>>> cosines(torch.tensor([[[1.0, 0.0]], [[2.0, 0.0]], [[0.0, -3.0]]])).tolist()
[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz._arguments import named
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import watched

__all__ = ["agreement", "between", "cosines", "disagreement", "overlaps", "pairs_of", "values"]


@named
def cosines(heads: Float[Tensor, "*b h L d"]) -> Float[Tensor, "*b h h"]:
    """The cosine of each pair of heads, mean over tokens. Raises ValueError below three axes."""
    if heads.dim() < 3:
        raise ValueError(
            f"heads has shape {tuple(heads.shape)}; give (…, h, L, d_h): heads, tokens, numbers"
        )
    unit = F.normalize(heads, dim=-1)
    return torch.einsum("...aid,...bid->...ab", unit, unit) / heads.shape[-2]


@named
def overlaps(A: Float[Tensor, "*b h Lq Lk"]) -> Float[Tensor, "*b h h"]:
    """Σ_j A^a_ij A^b_ij of each pair of heads, mean over queries: 1 where both look at one key."""
    if A.dim() < 3:
        raise ValueError(
            f"A has shape {tuple(A.shape)}; give (…, h, L_q, L_k), a map for each head"
        )
    return torch.einsum("...aij,...bij->...ab", A, A) / A.shape[-2]


@named
def disagreement(pairs: Float[Tensor, "*b h h"]) -> Float[Tensor, ""]:
    """D: minus the mean over all pairs of heads, each head with itself too."""
    return -pairs.mean()


@named
def between(pairs: Float[Tensor, "*b h h"]) -> Float[Tensor, ""]:
    """The mean over pairs of two different heads. Raises ValueError for a single head."""
    h = pairs.shape[-1]
    if h < 2:
        raise ValueError(f"pairs has shape {tuple(pairs.shape)}; give at least two heads")
    return ((pairs.sum((-2, -1)) - pairs.diagonal(dim1=-2, dim2=-1).sum(-1)) / (h * (h - 1))).mean()


# --- the three of them, of a model ----------------------------------------------------------------


@contextmanager
def values(model: nn.Module) -> Iterator[dict[str, Float[Tensor, "b h L d"]]]:
    """The values V of every attention in its last call, by name, with gradients, and `watched`.

    Raises TypeError for a core that is a function: nobody can listen to what it is given.
    """
    kept = dict[str, Tensor]()
    with watched(model) as attentions:
        for name, attend in attentions.items():
            if not isinstance(attend.core, nn.Module):
                raise TypeError(
                    f"{name!r} has a function as its core; give a module, such as Dense"
                )

        def keep(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
            return lambda _, given: kept.__setitem__(name, given[2])

        hooks = [
            attend.core.register_forward_pre_hook(keep(name))
            for name, attend in attentions.items()
            if isinstance(attend.core, nn.Module)
        ]
        try:
            yield kept
        finally:
            for hook in hooks:
                hook.remove()


KINDS = ("subspace", "position", "output")


@named
def pairs_of(
    model: nn.Module, kind: str, V: Mapping[str, Tensor] | None = None
) -> dict[str, Float[Tensor, "b h h"]]:
    """How alike each two heads were in the model's last call, for every attention by its name.

    kind    "subspace" of the values, "position" of the weights, "output" of what heads find
    V       what `values` keeps, for "subspace"

    Raises ValueError for another kind, where nobody watches, and where values or weights are
    missing.
    """
    if kind not in KINDS:
        raise ValueError(f"kind = {kind!r}; choose from {', '.join(KINDS)}")
    if kind == "subspace":
        if not V:
            raise ValueError(
                "V = None; call the model within `with values(model) as V`, and give V"
            )
        return {name: cosines(X) for name, X in V.items()}
    found = dict[str, Tensor]()
    for name, attend in model.named_modules():
        if not isinstance(attend, MultiHeadAttention):
            continue
        if attend.seen is None:
            raise ValueError(
                f"nobody watches {name!r}; call the model within `with watched(model)`"
            )
        if kind == "output":
            found[name] = cosines(attend.seen.heads)
        elif attend.seen.A is None:
            raise ValueError(f"{name!r} makes no weights; choose kind = 'output', or another core")
        else:
            found[name] = overlaps(attend.seen.A)
    return found


@named
def agreement(
    model: nn.Module, kind: str, V: Mapping[str, Tensor] | None = None
) -> Float[Tensor, ""]:
    """−D of the model's last call, mean over its attentions: add λ times this to the loss."""
    pairs = pairs_of(model, kind, V)
    if not pairs:
        raise ValueError(f"model = {type(model).__name__} has no attention; give a GPT or a BERT")
    return -torch.stack([disagreement(x) for x in pairs.values()]).mean()
