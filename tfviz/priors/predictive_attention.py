"""Predictive attention: a small convolution guesses a layer's scores from those of the layer below.

The scores of all heads are one image of L × L pixels, with a channel for each head. With the own
scores S_n = Q Kᵀ/√d_head of layer n and those that the layer below has used, Ŝ_(n−1),

    Ŝ_n = α S_n + (1 − α) Conv_n(Ŝ_(n−1)),   A_n = softmax(Ŝ_n),   Ŝ_1 = S_1

Wang et al. 2021 ("Predictive Attention Transformer"), as Lin et al. 2021 give it under "Prior from
lower modules".
`Evolving` is what followed, "Evolving Attention" (Wang et al. 2021, arXiv 2102.12895, code in
pkuyym/EvolvingAttention): there the convolution reads a blend of both layers, and α weighs it.

    B = (1 − β) S_n + β Ŝ_(n−1),   Ŝ_n = α φ(Conv_n(B) + b) + (1 − α) B

Kernels are 3 × 3. Two things must not be seen by a model that writes: a score with a later query,
which is the lower row of the kernel, and a score with a later key. So under a causal pattern the
lower row does not count, and what the pattern forbids is 0 in the image.

>>> import torch
>>> image, shift = torch.arange(16.0).view(1, 1, 4, 4), torch.zeros(1, 1, 3, 3)
>>> shift[0, 0, 1, 2] = 1  # each score is guessed to be that of one key further right
>>> convolved(image, shift)[0, 0, 0].tolist()
[1.0, 2.0, 3.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, in_stack, sees_ahead
from tfviz.dense_attention import heads_attention, visible

__all__ = ["Evolving", "Predictive", "convolved", "predictive_definition"]

SIDE = 3


@named
def predictive_definition(
    own: Float[Tensor, "b h L L"],
    below: Float[Tensor, "b h L L"],
    kernel: Float[Tensor, "h h 3 3"],
    alpha: float,
    mask: Bool[Tensor, "*#bh L L"],
) -> Float[Tensor, "b h L L"]:
    """α S + (1 − α) Conv(Ŝ below), score by score. A mask without the future hides later rows."""
    L, causal = own.shape[-1], not mask.triu(1).any()
    guess = torch.zeros_like(own)
    for i in range(L):
        for j in range(L):
            for y in range(max(i - 1, 0), min(i + 1, i if causal else L - 1) + 1):
                for x in range(max(j - 1, 0), min(j + 1, L - 1) + 1):
                    seen = below[..., y, x] * mask[..., y, x]
                    guess[..., i, j] += seen @ kernel[:, :, y - i + 1, x - j + 1].T
    return alpha * own + (1 - alpha) * guess


@named
def convolved(
    image: Float[Tensor, "b c Lq Lk"],
    kernel: Float[Tensor, "h c 3 3"],
    row: Float[Tensor, "b c 1 Lk"] | None = None,
    ahead: bool = True,
) -> Float[Tensor, "b h Lq Lk"]:
    """Each pixel from the 3 × 3 around it, from `row` above the image and from zeros outside.

    Without `ahead` the row below a pixel does not count.
    """
    if kernel.shape[1:] != (image.shape[1], SIDE, SIDE):
        raise ValueError(
            f"kernel has shape {tuple(kernel.shape)}, the image {image.shape[1]} heads; give "
            f"(heads out, {image.shape[1]}, {SIDE}, {SIDE})"
        )
    row = torch.zeros_like(image[:, :, :1]) if row is None else row
    image = torch.cat([row, image], 2)
    if not ahead:
        kernel = kernel[:, :, :2]
    return F.conv2d(F.pad(image, (1, 1, 0, int(ahead))), kernel.to(image.dtype))


class Predictive(Dense):
    """Predictive attention as a core: `GPT(…, core=Predictive)` or `BERT(…, core=Predictive)`.

    alpha   how much the own scores count; 1 is attention as it is

    The lowest layer has nothing to guess from. What is kept for a cache: keys, values, and the last
    row of the image below. Keys of another sequence have no cache.
    """

    @named
    def __init__(self, h: int, alpha: float = 0.5) -> None:
        super().__init__()
        self.alpha, h = _arguments.real("alpha", alpha, 0, 1), _arguments.integer("h", h, 1)
        self.kernel = nn.Parameter(torch.randn(h, h, SIDE, SIDE) / (SIDE * h**0.5))

    def image(self, own: Tensor, below: Tensor) -> Tensor:
        """What the convolution reads."""
        return below

    def blend(self, own: Tensor, image: Tensor, guess: Tensor) -> Tensor:
        return self.alpha * own + (1 - self.alpha) * guess

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.crosses and where.keep:
            raise ValueError(
                "a cache cannot keep the scores of attention to another sequence: call the model "
                "without one"
            )
        kept, rows, (*pair, above) = [], [], where.state or (None,)  # type: ignore[var-annotated]
        joined = replace(where, state=pair or None, keep=where.keep and kept.append)
        K, V = joined.joined(K, V)

        def scores(own: Tensor) -> Tensor:
            below = where.below
            if below is not None:
                image = self._seen(self.image(own, below), where)
                rows.append(image[:, :, -1:])
                row = above if above is None else F.pad(above, (0, K.shape[2] - above.shape[-1]))
                ahead = not where.crosses and sees_ahead(where.pattern, *own.shape[2:])
                guess = convolved(image, self.kernel, row, ahead)
                own = self.blend(own, self.image(own, below), guess)
            if in_stack():
                where.hand_up(own)
            return own

        answer = heads_attention(
            Q, K, V, where.pattern, None, where.attention_mask, where.need_weights, scores
        )
        if where.keep:
            where.keep((*kept[0], rows[0] if rows else None))
        return answer

    def _seen(self, image: Tensor, where: Where) -> Tensor:
        """The image without what the pattern forbids, and without padding."""
        Lq, Lk = image.shape[2:]
        mask = visible(where.pattern, Lq, Lk, where.attention_mask, image.device)
        if mask is not None:
            image = image.masked_fill(~mask, 0.0)
        if where.attention_mask is not None and not where.crosses:
            image = image.masked_fill(~where.attention_mask[:, None, -Lq:, None], 0.0)
        return image


class Evolving(Predictive):
    """Evolving attention as a core: the convolution reads a blend of own scores and those below.

    alpha   how much the convolution counts, which the other class weighs by 1 − alpha
    beta    how much of the blend is from below
    phi     what is done to each number of the guess
    """

    @named
    def __init__(
        self,
        h: int,
        alpha: float = 0.5,
        beta: float = 0.5,
        phi: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__(h, alpha)
        if not callable(phi):
            raise TypeError(f"phi = {phi!r}; give a function of a tensor, such as torch.relu")
        self.beta, self.phi = _arguments.real("beta", beta, 0, 1), phi
        self.b = nn.Parameter(torch.zeros(h))

    def image(self, own: Tensor, below: Tensor) -> Tensor:
        return (1 - self.beta) * own + self.beta * below

    def blend(self, own: Tensor, image: Tensor, guess: Tensor) -> Tensor:
        guess = self.phi(guess + self.b.to(guess.dtype)[:, None, None])
        return self.alpha * guess + (1 - self.alpha) * image
