"""Gated random feature attention: a state of one size that lets old tokens fade.

Peng and others 2021 (arXiv 2103.02143). Causal attention with the features φ of `rfa` sums up a
state, S_t = S_{t−1} + φ(k_t)ᵀ v_t and z_t = z_{t−1} + φ(k_t). With a gate g_t between 0 and 1,

    S_t = g_t S_{t−1} + (1 − g_t) φ(k_t)ᵀ v_t
    z_t = g_t z_{t−1} + (1 − g_t) φ(k_t)
    out_t = φ(q_t) S_t / φ(q_t) z_tᵀ

so that token j has faded, when token i reads, to

    f_ij = (1 − g_j) g_{j+1} ⋯ g_i,        a_ij ∝ f_ij φ(q_i) φ(k_j)ᵀ        for j ≤ i

After log ½ / log g tokens half of it is left, if the gate is constant. The paper's gate reads the
input of the layer, g_t = σ(w x_t + b) for each head: `GPT(…, core=GatedRFA, project=TokenGates)`.
With another projection the core reads the head's key k_t = x_t W^k, as our results do. The authors'
repository has no gate.

As the fading shares of a row sum to 1 − g_1 ⋯ g_i, not to i, the least that a sum of weights is
taken for is in proportion to them. Tokens of padding neither write nor fade.

>>> import torch
>>> g = torch.tensor([0.5, 0.5, 0.75])
>>> fading(g.log())  # rows: who reads; what is left of each token
tensor([[0.5000, 0.0000, 0.0000],
        [0.2500, 0.5000, 0.0000],
        [0.1875, 0.3750, 0.2500]])
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.compressed.linear_transformer import CHUNK
from tfviz.compressed.rfa import LEAST, RFA, fourier_features
from tfviz.cores import Where, sees_ahead

__all__ = ["GatedRFA", "TokenGates", "fading", "gated_attention", "gated_definition"]


@named
def fading(log_g: Float[Tensor, "*b L"]) -> Float[Tensor, "*b L L"]:
    """f_ij = (1 − g_j) g_{j+1} ⋯ g_i for j ≤ i, else 0, from the logarithms of the gates."""
    C = log_g.cumsum(-1)
    ahead = torch.ones(C.shape[-1], C.shape[-1], dtype=torch.bool, device=C.device).triu(1)
    kept = (C[..., :, None] - C[..., None, :]).masked_fill(ahead, -torch.inf).exp()
    return kept * -log_g.expm1()[..., None, :]


@named
def gated_definition(
    Q: Float[Tensor, "*b Lq d"],
    K: Float[Tensor, "*b Lk d"],
    V: Float[Tensor, "*b Lk dv"],
    W: Float[Tensor, "*#h m d"],
    log_g: Float[Tensor, "*b Lk"],
    mask: Bool[Tensor, "*#b Lq Lk"] | None = None,
    least: float = LEAST,
) -> tuple[Float[Tensor, "*b Lq dv"], Float[Tensor, "*b Lq Lk"]]:
    """The output and the weights, from all pairs; the queries are the last ones."""
    kind = torch.promote_types(Q.dtype, torch.float32)
    phi_q, phi_k = (fourier_features(F.normalize(x.to(kind), dim=-1), W.to(kind)) for x in (Q, K))
    left = fading(log_g.to(kind))[..., K.shape[-2] - Q.shape[-2] :, :]
    if mask is not None:
        left = left.masked_fill(~mask, 0.0)
    products = left * (phi_q @ phi_k.mT)
    A = products / _raised(products.sum(-1, keepdim=True), left.sum(-1, keepdim=True), least)
    return (A @ V.to(kind)).to(V.dtype), A.to(V.dtype)


@named
def gated_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    W: Float[Tensor, "*#h m d"],
    log_g: Float[Tensor, "b h L"],
    least: float = LEAST,
    state: Any = None,
) -> tuple[Float[Tensor, "b h L dv"], Any]:
    """The same in O(L m d_v), and the state after the last token: [S, z], and the sum of log g."""
    _qkv.check(Q, K, V, self_attention=True)
    _arguments.real("least", least, 1e-6, 1.0)
    _gates(log_g, K)
    if _arguments.tensor("W", W, "(m, d) or (h, m, d)").dim() not in (2, 3) or (
        W.shape[-1] != Q.shape[-1] or (W.dim() == 3 and len(W) not in (1, Q.shape[1]))
    ):
        raise ValueError(
            f"W has shape {tuple(W.shape)}, Q {tuple(Q.shape)}; give directions, (m, "
            f"{Q.shape[-1]}) or ({Q.shape[1]}, m, {Q.shape[-1]})"
        )
    _arguments.finite("W", W)
    kind = torch.promote_types(V.dtype, torch.float32)
    with _fused.full_precision(Q):
        log_g = log_g.to(kind)
        q, k = (fourier_features(F.normalize(x.to(kind), dim=-1), W.to(kind)) for x in (Q, K))
        v = F.pad(V.to(kind), (0, 1), value=1.0)
        S, before = (None, torch.zeros_like(log_g[..., :1])) if state is None else state
        sums, S = _fade(q, k * -log_g.expm1()[..., None], v, log_g, S)
        passed = before + log_g.cumsum(-1)
        total = _raised(sums[..., -1:], -passed.expm1()[..., None], least)
        return (sums[..., :-1] / total).to(V.dtype), (S, passed[..., -1:])


def _gates(log_g: Tensor, K: Tensor) -> None:
    """Raises TypeError or ValueError unless log_g has a gate between 0 and 1, 0 excluded, for each
    key: what a gate of 0 forgets would be divided by nothing."""
    _arguments.tensor("log_g", log_g, "(b, h, L)")
    if log_g.shape != K.shape[:-1]:
        raise ValueError(
            f"log_g has shape {tuple(log_g.shape)}, K {tuple(K.shape)}; give a number for each "
            f"key, {tuple(K.shape[:-1])}"
        )
    _arguments.finite("log_g", log_g)
    if not log_g.is_meta and (highest := float(log_g.detach().max())) > 0:
        raise ValueError(
            f"log_g holds {highest:.3g}, a gate above 1; give logarithms of gates: log_g <= 0"
        )


def _fade(
    q: Float[Tensor, "b h L f"],
    k: Float[Tensor, "b h L f"],
    v: Float[Tensor, "b h L dv"],
    log_g: Float[Tensor, "b h L"],
    state: Float[Tensor, "b h f dv"] | None,
) -> tuple[Float[Tensor, "b h L dv"], Float[Tensor, "b h f dv"]]:
    """Σ_{j ≤ i} g_{j+1} ⋯ g_i (q_i k_jᵀ) v_j for each i, and the state after the last token.

    In chunks, as in `linear_transformer`. Only exponentials of sums of log g over a stretch of
    tokens are taken, which are 1 at the most. Zeros fill the last chunk: they fade nothing.
    """
    L = q.shape[2]
    m = min(CHUNK, L)
    q, k, v = (F.pad(x, (0, 0, 0, -L % m)).unflatten(2, (-1, m)) for x in (q, k, v))
    C = F.pad(log_g, (0, -L % m)).unflatten(2, (-1, m)).cumsum(-1)
    ahead = torch.ones(m, m, dtype=torch.bool, device=C.device).triu(1)
    within = (C[..., :, None] - C[..., None, :]).masked_fill(ahead, -torch.inf).exp()
    written = (k * (C[..., -1:] - C).exp()[..., None]).mT @ v
    states = [torch.zeros_like(written[:, :, 0]) if state is None else state]
    for kept, new in zip(C[..., -1, None, None].exp().unbind(2), written.unbind(2), strict=True):
        states.append(kept * states[-1] + new)
    sums = (within * (q @ k.mT)) @ v + (q * C.exp()[..., None]) @ torch.stack(states[:-1], 2)
    return sums.flatten(2, 3)[:, :, :L], states[-1]


def _raised(total: Tensor, left: Tensor, least: float) -> Tensor:
    """The sum of weights, or `least` of what is left of all tokens; 1 if nothing is."""
    return torch.maximum(total, least * left).masked_fill(left == 0, 1.0)


class GatedRFA(RFA):
    """Gated random feature attention as a core for causal models: `GPT(…, core=GatedRFA)`.

    start    g at the beginning, 0 < start < 1; w_g begins at 0, so that all tokens have this gate

    Gates that the projection made of the tokens, a with g = σ(a) in `where.more`, (b, h, L), take
    the place of its own.

    The rest is as in `RFA`. Any causal pattern is answered, and time passes for tokens that it
    leaves out, too; with all earlier tokens the cost is O(L), and a cache keeps a state of one
    size.
    """

    @named
    def __init__(
        self,
        h: int,
        d_head: int,
        D: int = 64,
        tau: float = 1.0,
        orthogonal: bool = True,
        least: float = LEAST,
        start: float = 0.9,
    ) -> None:
        super().__init__(h, d_head, D, tau, orthogonal, least)
        self.w_g = nn.Parameter(torch.zeros(h, d_head))
        self.b_g = nn.Parameter(torch.full((h,), _begins(start)))

    def log_gates(
        self, K: Float[Tensor, "b h L d"], keys: Bool[Tensor, "b 1 1 L"] | None = None
    ) -> Float[Tensor, "b h L"]:
        """log g_t of the keys; 0 at padding, which fades nothing."""
        kind = torch.promote_types(K.dtype, torch.float32)
        a = torch.einsum("bhld,hd->bhl", K.to(kind), self.w_g.to(kind)) + self.b_g.to(kind)[:, None]
        return _faded(a, keys)

    def told(
        self, Q: Tensor, K: Tensor, keys: Bool[Tensor, "b 1 1 Lk"] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(the keys, W, log g): what the projection said of gates stands behind the keys."""
        with _fused.full_precision(Q):
            if K.shape[-1] == Q.shape[-1]:
                return K, self.directions(K), self.log_gates(K, keys)
            K, a = K[..., :-1], K[..., -1]
            kind = torch.promote_types(K.dtype, torch.float32)
            return K, self.directions(K), _faded(a.to(kind), keys)

    def attend(
        self,
        Q: Tensor,
        K: Tensor,
        V: Tensor,
        causal: bool = False,
        keys: Bool[Tensor, "b 1 1 Lk"] | None = None,
        state: Any = None,
    ) -> tuple[Tensor, Any]:
        K, W, log_g = self.told(Q, K, keys)
        return gated_attention(Q, K, V, W, log_g, self.least, state)

    def by_pairs(
        self,
        Q: Tensor,
        K: Tensor,
        V: Tensor,
        mask: Bool[Tensor, "*#b Lq Lk"] | None,
        keys: Bool[Tensor, "b 1 1 Lk"] | None,
    ) -> tuple[Tensor, Tensor]:
        K, W, log_g = self.told(Q, K, keys)
        _qkv.check(Q, K, V, self_attention=False)
        with _fused.full_precision(Q):
            return gated_definition(Q, K, V, W, log_g, mask, self.least)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        Lk = where.start + K.shape[2]
        if where.crosses or sees_ahead(where.pattern, Q.shape[2], Lk):
            raise ValueError(
                f"pattern = {where.pattern!r}: a gate fades what came before, so it needs an order "
                "of time; give a causal pattern of a text to itself, or use RFA"
            )
        if K.shape[-1] != Q.shape[-1]:
            _qkv.check(Q, K, V, self_attention=False)
        if where.more is not None:
            K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
            K = torch.cat([K, _checked(where.more, K)[..., None].to(K.dtype)], -1)
        return super().forward(Q, K, V, where)


def _faded(
    a: Float[Tensor, "b h L"], keys: Bool[Tensor, "b 1 1 L"] | None
) -> Float[Tensor, "b h L"]:
    log_g = F.logsigmoid(a)
    return log_g if keys is None else log_g.masked_fill(~keys[:, :, 0], 0.0)


def _checked(a: Any, K: Tensor) -> Float[Tensor, "b h L"]:
    """What the projection said of gates, if it is a number for each head and token."""
    if _arguments.tensor("where.more", a, "(b, h, L)").shape != K.shape[:3]:
        raise ValueError(
            f"where.more has shape {tuple(a.shape)}, the keys {tuple(K.shape)}; give a number for "
            f"each head and token, {tuple(K.shape[:3])}"
        )
    return a


class TokenGates(nn.Module):
    """In the place of W_qkv: Q, K, V, and a = w x + b of each token and head, with g = σ(a).

    w begins at 0, and b so that all gates are `start`, 0 < start < 1.
    """

    @named
    def __init__(self, d: int, h: int, d_head: int, h_kv: int, start: float = 0.9) -> None:
        super().__init__()
        sizes = {"d": d, "h": h, "d_head": d_head, "h_kv": h_kv}
        d, h, d_head, h_kv = (_arguments.integer(name, x, 1) for name, x in sizes.items())
        self.widths = [h * d_head, h_kv * d_head, h_kv * d_head]
        self.W_qkv, self.W_g = nn.Linear(d, sum(self.widths)), nn.Linear(d, h)
        nn.init.zeros_(self.W_g.weight)
        nn.init.constant_(self.W_g.bias, _begins(start))
        self.d_head = d_head

    @named
    def forward(
        self, X: Float[Tensor, "b L d"], memory: Float[Tensor, "b Lk d"] | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if memory is not None:
            raise ValueError(
                "a gate fades what came before, and another sequence has no such order; leave "
                "cross-attention as it is"
            )
        Q, K, V = (
            x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)
            for x in self.W_qkv(X).split(self.widths, -1)
        )
        return Q, K, V, self.W_g(X).mT


def _begins(start: float) -> float:
    """The number whose sigmoid is `start`."""
    if _arguments.real("start", start, 0, 1) in (0, 1):
        raise ValueError(f"start = {start}: a sigmoid never gets there; choose 0 < start < 1")
    return float(torch.tensor(float(start)).logit())
