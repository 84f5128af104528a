"""SPALM: a learned gate says, token by token, how far to trust what was found in a store.

    m_t = Σ_i a_i y_i,   a = softmax_i(y_i h_tᵀ)         y_1 … y_k: embeddings of the words found
    g_t = σ(h_t w_gᵀ),   z_t = (1 − g_t) m_t + g_t h_t,   p(x_{t+1} | x_≤t) = softmax(z_t Wᵀ)

Yogatama, de Masson d'Autume, Kong 2021 (arXiv 2102.02557). h_t is what leaves the model's last
layer. The gate is one number: g_t = 1 is the model alone. Who the neighbours are is asked of a
frozen model, the `reader`; how far they are is not used. Their embeddings are rows of W, and learn.

The model may be a GPT or have the short memory that the paper's has (`transformer_xl`).

>>> h, Y = torch.tensor([[2.0, 0.0]]), torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
>>> z, m, g = gated(h, Y, torch.zeros(2))
>>> [[round(x, 2) for x in v[0].tolist()] for v in (z, m)], g.item()
([[1.44, 0.06], [0.88, 0.12]], 0.5)
"""

from __future__ import annotations

from copy import deepcopy

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Cache, Kept
from tfviz.longer_context.knn_lm import Search, Store, exact, read
from tfviz.models.blocks import Logits, Seq, Tokens
from tfviz.models.gpt import GPT
from tfviz.models.padding import each_text_alone

__all__ = ["Spalm", "gated"]


@named
def gated(
    h: Float[Tensor, "*n d"], Y: Float[Tensor, "*n k d"], w_g: Float[Tensor, "d"]
) -> tuple[Float[Tensor, "*n d"], Float[Tensor, "*n d"], Float[Tensor, "*n"]]:
    """(z, m, g)."""
    a = torch.einsum("...kd,...d->...k", Y, h).softmax(-1)
    m = torch.einsum("...k,...kd->...d", a, Y)
    g = (h @ w_g).sigmoid()
    return (1 - g)[..., None] * m + g[..., None] * h, m, g


class Spalm(nn.Module):
    """A model with a store and a gate. w_g begins at 0: half and half."""

    @named
    def __init__(
        self, model: GPT, reader: GPT, store: Store, search: Search | None = None, *, k: int = 4
    ) -> None:
        super().__init__()
        store.check(reader)
        self.model, self.reader = model, deepcopy(reader).requires_grad_(False)
        self.store, self.search = store, search or exact(store.keys)
        self.k = _arguments.integer("k", k, 1)
        self.w_g = nn.Parameter(torch.zeros(model.embed.weight.shape[1]))

    @torch.no_grad()
    def words(self, t: Tokens, cache: Cache = None) -> Int[Tensor, "b L k"]:
        """What came next in the k nearest contexts. Raises ValueError if there are fewer."""
        own = _of(self.reader, cache)
        _, f = read(self.reader, t, own)
        _, at = self.search(f.flatten(0, 1), self.k)
        if (at < 0).any():
            raise ValueError(f"k = {self.k}: the search found fewer; let it look into more cells")
        if cache is not None:
            cache.update(own or {})
        return self.store.word(at).view(*t.shape, self.k)

    def states(self, t: Tokens, cache: Cache = None) -> Seq:
        """h_t."""
        own = _of(self.model, cache)
        h = self.model.stack(self.model.embed(t, own), None, None, own)
        if cache is not None:
            cache.update(own or {})
        return h

    @each_text_alone
    @named
    def forward(self, t: Tokens, cache: Cache = None, words: Tensor | None = None) -> Logits:
        """Logits. `words`: of a search that was made before, as in training."""
        words = self.words(t, cache) if words is None else words
        W = self.model.embed.weight
        return gated(self.states(t, cache), W[words], self.w_g)[0] @ W.T


def _of(model: nn.Module, cache: Cache) -> dict[nn.Module, Kept] | None:
    """The part of a cache that is one model's: places are counted by its first entry."""
    mine = set(model.modules())
    return None if cache is None else {m: kept for m, kept in cache.items() if m in mine}
