"""Linear attention: keys are multiplied with values first, and the L × L matrix is never made.

Katharopoulos, Vyas, Pappas, Fleuret 2020 (arXiv 2006.16236), sections 3.2 to 3.4. The exponential
of a score is replaced by a product of features, all of which are positive,

    φ(x) = elu(x) + 1:   x + 1 where x > 0, e^x elsewhere
    a_ij = φ(q_i) φ(k_j)ᵀ / Σ_{r ∈ S_i} φ(q_i) φ(k_r)ᵀ            for j in S_i, else 0
    out_i = Σ_j a_ij v_j = φ(q_i) S / φ(q_i) uᵀ,   S = Σ_j φ(k_j)ᵀ v_j,   u = Σ_j φ(k_j)

S and u do not depend on the query, so they are summed once: L · f · d_v products for f features.
For causal attention they are running sums, S_i = S_{i−1} + φ(k_i)ᵀ v_i and u_i = u_{i−1} + φ(k_i).
They are all that a model keeps of the past, however long it is. Scores are not divided by √d.

The authors' code (fast-transformers) adds ε = 1e-6 to the denominator, so that its rows sum to a
little less than one: `eps=1e-6`. Here ε is 0. Where all products of a row round to 0, as they do
without a key, the answer is 0.

>>> import torch
>>> positive(torch.tensor([-1.0, 0.0, 2.0]))
tensor([0.3679, 1.0000, 3.0000])
>>> q = k = torch.tensor([[0.0], [1.0]])  # their features are 1 and 2
>>> linear_definition(q, k, k)[1]
tensor([[0.3333, 0.6667],
        [0.3333, 0.6667]])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, outside_inference, same_texts
from tfviz.dense_attention import CAUSAL, FULL, visible

__all__ = ["LinearAttention", "linear_attention", "linear_definition", "positive"]

CHUNK = 64  # tokens of a causal text that are compared pair by pair
STRETCH = 512  # tokens whose features are made at a time
Features = Callable[[Tensor], Tensor]


@named
def positive(x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
    """elu(x) + 1, number by number. Written so that it does not round to 0 below x = −17, as
    `F.elu(x) + 1` does in float32."""
    above = x.relu()
    return (x - above).exp() + above


@named
def linear_definition(
    Q: Float[Tensor, "*b Lq d"],
    K: Float[Tensor, "*b Lk d"],
    V: Float[Tensor, "*b Lk dv"],
    mask: Bool[Tensor, "*#b Lq Lk"] | None = None,
    phi: Features = positive,
    eps: float = 0.0,
) -> tuple[Float[Tensor, "*b Lq dv"], Float[Tensor, "*b Lq Lk"]]:
    """The output, and the weights that make it of V: products of features where the mask is True,
    each row divided by its sum (plus eps)."""
    kind = torch.promote_types(Q.dtype, torch.float32)
    products = phi(Q.to(kind)) @ phi(K.to(kind)).mT
    if mask is not None:
        products = products.masked_fill(~mask, 0.0)
    A = _divided(products, products.sum(-1, keepdim=True), eps)
    return (A @ V.to(kind)).to(V.dtype), A.to(V.dtype)


def _divided(x: Tensor, total: Tensor, eps: float) -> Tensor:
    """x / (total + eps), and 0 where the total is 0."""
    return x / _divisor(total, eps)


def _divisor(total: Tensor, eps: float) -> Tensor:
    """total + eps, and ∞ where the total is 0: what is divided by it becomes 0."""
    return (total + eps).masked_fill(total == 0, torch.inf)


@named
def linear_attention(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    causal: bool = False,
    phi: Features = positive,
    eps: float = 0.0,
) -> Float[Tensor, "b h Lq dv"]:
    """The same in O(L f d_v), with f features: keys and values are multiplied first.

    `phi` makes of vectors of d numbers vectors of f features, which should not be negative.
    """
    return LinearAttention(phi, eps).attend(Q, K, V, causal)[0]


# --- the core -------------------------------------------------------------------------------------


class KernelAttention(nn.Module):
    """A core whose weights are products of features of queries and of keys, each row divided by
    its sum. A subclass says which features, and perhaps how to divide.

    Full and causal patterns cost O(L), and after a causal text it keeps [S, u], of constant size,
    in float32 at least. The keys themselves are gone then, so weights that are asked for later are
    None. For any other pattern it makes all pairs, and keeps keys and values.
    """

    def of_queries(self, Q: Float[Tensor, "b h L d"]) -> Float[Tensor, "b h L f"]:
        raise NotImplementedError(f"{type(self).__name__} does not say what its features are")

    def of_keys(self, K: Float[Tensor, "b h L d"]) -> Float[Tensor, "b h L f"]:
        return self.of_queries(K)

    def divided(self, x: Tensor, total: Float[Tensor, "b h L 1"]) -> Tensor:
        """Each row by the sum of its weights."""
        return _divided(x, total, 0.0)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        streams = where.pattern == CAUSAL and not where.crosses
        if not streams:
            K, V = where.joined(K, V)
        if K.shape[1] < Q.shape[1]:  # each head of keys serves several of queries
            K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
        L, passed = K.shape[2], where.start if streams else 0
        keys = visible(FULL, Q.shape[2], passed + L, where.attention_mask, Q.device)
        if keys is not None and len(keys) not in (1, len(Q)):
            raise ValueError(
                f"attention_mask has {len(keys)} rows, Q {len(Q)}; give one for each row of the "
                "batch"
            )
        if streams:
            state = None if where.state is None else outside_inference(where.state)
            if state is not None:
                same_texts(tree_leaves(state)[0], K)
            keys = None if keys is None else keys[..., passed:]
            out, state = self.attend(Q, K, V, True, keys, state)
            if where.keep:
                where.keep(state)
            if not where.need_weights or passed:
                return out, None
        elif where.pattern == FULL and not where.need_weights:
            return self.attend(Q, K, V, False, keys)[0], None
        mask = visible(where.pattern, Q.shape[2], L, where.attention_mask, Q.device)
        answer, A = self.by_pairs(Q, K, V, mask, keys)
        return (out if streams else answer), A

    def by_pairs(
        self,
        Q: Tensor,
        K: Tensor,
        V: Tensor,
        mask: Bool[Tensor, "*#b Lq Lk"] | None,
        keys: Bool[Tensor, "b 1 1 Lk"] | None,
    ) -> tuple[Float[Tensor, "b h Lq dv"], Float[Tensor, "b h Lq Lk"]]:
        """The answers and the weights, from all pairs. `mask` says who may read whom, padding
        included; `keys` is False at padding."""
        _qkv.check(Q, K, V, self_attention=False)
        kind = torch.promote_types(V.dtype, torch.float32)
        with _fused.full_precision(Q):
            products = self.of_queries(Q.to(kind)) @ self.of_keys(K.to(kind)).mT
            if mask is not None:
                products = products.masked_fill(~mask, 0.0)
            A = self.divided(products, products.sum(-1, keepdim=True))
            return (A @ V.to(kind)).to(V.dtype), A.to(V.dtype)

    def attend(
        self,
        Q: Tensor,
        K: Tensor,
        V: Tensor,
        causal: bool = False,
        keys: Bool[Tensor, "b 1 1 Lk"] | None = None,
        state: Any = None,
    ) -> tuple[Float[Tensor, "b h Lq dv"], Any]:
        """The answers, and [S, u] after the last key: u is the sum that a value of 1 for each key
        makes. `keys` is False at padding; `state` is [S, u] of what came before.

        One stretch of tokens follows the other: features of a whole text are more numbers than the
        text, and would leave the processor's cache before they are used.
        """
        _qkv.check(Q, K, V, self_attention=causal)
        kind = torch.promote_types(V.dtype, torch.float32)
        with _fused.full_precision(Q):
            queries, *parts = [X.to(kind).split(STRETCH, 2) for X in (Q, K, V)]
            real = [None] * len(parts[0]) if keys is None else keys.split(STRETCH, -1)
            written = list(zip(*parts, real, strict=True))
            if not causal:
                state = 0
                for part in written:
                    k, v = self._written(*part)
                    state = state + k.mT @ v

            def answer(n: int) -> Tensor:
                nonlocal state
                q = self.of_queries(queries[n])
                if not causal:
                    return self._read(q @ state)
                sums, state = _running(q, *self._written(*written[n]), state)
                return self._read(sums)

            return _joined(answer, len(queries), Q.shape[2]).to(V.dtype), state

    def _written(
        self,
        K: Float[Tensor, "b h L d"],
        V: Float[Tensor, "b h L dv"],
        keys: Bool[Tensor, "b 1 1 L"] | None,
    ) -> tuple[Float[Tensor, "b h L f"], Float[Tensor, "b h L dv+1"]]:
        """Features of the keys, 0 at padding, and each value followed by a 1."""
        k = self.of_keys(K)
        if keys is not None:
            k = k.masked_fill(~keys.mT, 0.0)
        return k, F.pad(V, (0, 1), value=1.0)

    def _read(self, sums: Float[Tensor, "b h L dv+1"]) -> Float[Tensor, "b h L dv"]:
        """The sums of values, divided by the sum of ones beside them."""
        return self.divided(sums[..., :-1], sums[..., -1:])


class LinearAttention(KernelAttention):
    """Linear attention as a core: `GPT(…, core=LinearAttention)`.

    phi    features of queries and keys, number of features as it likes; `positive` if not given
    eps    is added to the denominator; the authors' code has 1e-6
    """

    @named
    def __init__(self, phi: Features = positive, eps: float = 0.0) -> None:
        super().__init__()
        if not callable(phi):
            raise TypeError(
                f"phi = {phi!r}; give a function of a tensor (…, d) that returns its features"
            )
        self.phi, self.eps = phi, _arguments.real("eps", eps, 0.0, 1.0)

    def attend(
        self,
        Q: Tensor,
        K: Tensor,
        V: Tensor,
        causal: bool = False,
        keys: Bool[Tensor, "b 1 1 Lk"] | None = None,
        state: Any = None,
    ) -> tuple[Float[Tensor, "b h Lq dv"], Any]:
        if causal or self.phi is not positive or _fused._is_transformed():
            return super().attend(Q, K, V, causal, keys, state)
        _qkv.check(Q, K, V, self_attention=False)
        kind = torch.promote_types(V.dtype, torch.float32)
        with _fused.full_precision(Q):
            answers, state = _Full.apply(Q.to(kind), K.to(kind), V.to(kind), keys, self.eps)
        return answers.to(V.dtype), state

    def of_queries(self, Q: Tensor) -> Tensor:
        return self.phi(Q)

    def divided(self, x: Tensor, total: Tensor) -> Tensor:
        return _divided(x, total, self.eps)


# --- along a causal text --------------------------------------------------------------------------


def _running(
    q: Float[Tensor, "b h L f"],
    k: Float[Tensor, "b h L f"],
    v: Float[Tensor, "b h L dv"],
    state: Float[Tensor, "b h f dv"] | None,
) -> tuple[Float[Tensor, "b h L dv"], Float[Tensor, "b h f dv"]]:
    """Σ_{j ≤ i} (q_i k_jᵀ) v_j for each i, and the state after the last token.

    In chunks: what stands in chunks before comes from their summed kᵀ v, and the pairs within a
    chunk are multiplied out. Zeros fill the last chunk.
    """
    L = q.shape[2]
    m = min(CHUNK, L)
    q, k, v = (F.pad(x, (0, 0, 0, -L % m)).unflatten(2, (-1, m)) for x in (q, k, v))
    written = k.mT @ v
    first = torch.zeros_like(written[:, :, 0]) if state is None else state
    states = torch.cat([first.unsqueeze(2), written], 2).cumsum(2)
    sums = (q @ k.mT).tril_() @ v
    sums += q @ states[:, :, :-1]
    return sums.flatten(2, 3)[:, :, :L], states[:, :, -1]


def _joined(part: Callable[[int], Tensor], n: int, L: int) -> Tensor:
    """What n parts along a text of L tokens are, made in their order, as one tensor. Without
    gradients each goes to its place as soon as it is made, while the processor's cache holds it.
    No generators: torch.compile does not follow one within another."""
    if torch.is_grad_enabled():
        return torch.cat([part(i) for i in range(n)], 2)
    first = part(0)
    whole = first.new_empty(*first.shape[:2], L, first.shape[3])
    whole[:, :, : first.shape[2]] = first
    start = first.shape[2]
    for i in range(1, n):
        one = part(i)
        whole[:, :, start : start + one.shape[2]] = one
        start += one.shape[2]
    return whole


# --- the fast form of full attention, with gradients of its own -----------------------------------


class _Full(torch.autograd.Function):
    """Full linear attention with the features `positive`, and its gradients.

    One stretch of tokens follows the other in both directions. Autograd would keep all features,
    and what they are made of; here the backward makes them again, and their slope is
    φ'(x) = min(φ(x), 1).
    """

    @staticmethod
    def forward(
        Q: Tensor, K: Tensor, V: Tensor, keys: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor]:
        state = V.new_zeros(*K.shape[:2], K.shape[-1], V.shape[-1] + 1)
        for k, v, real in _stretches(K, V, keys=keys):
            state += _features(k, real).mT @ F.pad(v, (0, 1), value=1.0)
        answers = V.new_empty(*Q.shape[:-1], V.shape[-1])
        for q, answer, _ in _stretches(Q, answers):
            sums = _features(q) @ state
            torch.div(sums[..., :-1], _divisor(sums[..., -1:], eps), out=answer)
        return answers, state

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *qkv, ctx.keys, ctx.eps = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*qkv, *output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Any:
        Q, K, V, answers, state = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated in its turn

            def formula(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
                core = LinearAttention(eps=ctx.eps)
                return KernelAttention.attend(core, Q, K, V, False, ctx.keys)[0]

            again = _fused.again(formula, (Q, K, V), ctx.needs_input_grad[:3], grad)
            return *again, None, None
        dQ, dK, dV, dstate = (torch.empty_like(x) for x in (Q, K, V, state))
        dstate.zero_()
        for q, dq, answer, g, _ in _stretches(Q, dQ, answers, grad):
            f = _features(q)
            dsums = F.pad(g / _divisor(f @ state[..., -1:], ctx.eps), (0, 1))
            torch.sum(dsums[..., :-1] * answer, -1, keepdim=True, out=dsums[..., -1:]).neg_()
            dstate += f.mT @ dsums
            torch.mul(dsums @ state.mT, f.clamp_(max=1), out=dq)
        of_values, of_ones = dstate[..., :-1], dstate[..., -1].unsqueeze(-2)
        for k, dk, v, dv, real in _stretches(K, dK, V, dV, keys=ctx.keys):
            f = _features(k, real)
            torch.matmul(f, of_values, out=dv)
            torch.mul((v @ of_values.mT).add_(of_ones), f.clamp_(max=1), out=dk)
        return dQ, dK, dV, None, None


def _features(x: Tensor, real: Bool[Tensor, "b 1 1 L"] | None = None) -> Tensor:
    """`positive`, made in place; 0 where `real` is False."""
    above = x.relu()
    f = (x - above).exp_().add_(above)
    return f if real is None else f.masked_fill_(~real.mT, 0.0)


def _stretches(*X: Tensor, keys: Tensor | None = None) -> Iterator[tuple[Any, ...]]:
    """The parts of each tensor and of `keys`, one stretch of tokens after the other."""
    parts = [x.split(STRETCH, 2) for x in X]
    real = [None] * len(parts[0]) if keys is None else keys.split(STRETCH, -1)
    return zip(*parts, real, strict=True)
