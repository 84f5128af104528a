"""The gated delta rule: a state that overwrites what a key held before, and lets the rest fade.

Yang, Kautz, Hatamizadeh 2024 (arXiv 2412.06464), equation 10, in row vectors, with keys and queries
of length 1:

    S_t = α_t (I − β_t k_tᵀ k_t) S_{t−1} + β_t k_tᵀ v_t        out_t = q_t S_t

α_t says how much of the state is left, β_t how much of what the key k_t held gives way to v_t. At
β = 1 the state gives v_t back for k_t, and at α = 1 this is the delta rule. The paper writes S for
the transpose. Unrolled, token i reads token j with

    A_ij = β_j q_i M_i ⋯ M_{j+1} k_jᵀ        M_t = α_t (I − β_t k_tᵀ k_t)        for j ≤ i

which may be negative. `gated_delta` makes no such matrix. Within a chunk of tokens, with
γ_t = α_1 ⋯ α_t and Γ_tj = γ_t / γ_j for j ≤ t, what the tokens write solves a triangular system:

    (I + tril(diag(β) (Γ ∘ K Kᵀ), −1)) U = diag(β) (V − diag(γ) K S_0)
    out = diag(γ) Q S_0 + (Γ ∘ Q Kᵀ) U        S_m = γ_m S_0 + Σ_j Γ_mj k_jᵀ u_j

The gates read the token: log α = −e^A softplus(x w_a + b_a) for each head, and β = σ(x w_β). The
layer ends with RMSNorm, a gate SiLU(x W_z) and W^o. The paper's layer has a convolution over four
tokens and a SiLU on queries, keys and values besides; we leave both out. Many programs divide
queries by √d_head, which RMSNorm undoes.

>>> one = torch.tensor([[[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]])
>>> V = torch.tensor([[[[5.0], [7.0], [9.0]]]])
>>> out, S = gated_delta(one, one, V, torch.zeros(1, 1, 3), torch.ones(1, 1, 3))
>>> out[0, 0].T, S[0, 0].T  # the third token writes over what the first one wrote
(tensor([[5., 7., 9.]]), tensor([[9., 7.]]))
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, outside_inference, same_texts
from tfviz.dense_attention import CAUSAL, FULL, visible

__all__ = [
    "DeltaGates",
    "GatedDelta",
    "Gates",
    "NormedHeads",
    "delta_definition",
    "gated_delta",
    "gated_delta_net",
]

CHUNK = 64


class Gates(NamedTuple):
    """What `GatedDelta` reads from `where.more`: log α and β of each head and token."""

    log_alpha: Float[Tensor, "b h L"]
    beta: Float[Tensor, "b h L"]


@named
def delta_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    log_alpha: Float[Tensor, "*b L"],
    beta: Float[Tensor, "*b L"],
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """(A V, A), every A_ij by its product of matrices."""
    q, k = F.normalize(Q, dim=-1), F.normalize(K, dim=-1)
    erased = beta[..., None, None] * k[..., :, None] * k[..., None, :]
    M = log_alpha.exp()[..., None, None] * (torch.eye(k.shape[-1]).to(k) - erased)
    rows = []
    for i in range(Q.shape[-2]):
        read, row = q[..., i, :], [torch.zeros_like(beta[..., 0])] * Q.shape[-2]
        for j in range(i, -1, -1):
            row[j] = beta[..., j] * (read * k[..., j, :]).sum(-1)
            read = (read[..., None, :] @ M[..., j, :, :])[..., 0, :]
        rows.append(torch.stack(row, -1))
    A = torch.stack(rows, -2)
    return A @ V, A


@named
def gated_delta(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    log_alpha: Float[Tensor, "b h L"],
    beta: Float[Tensor, "b h L"],
    state: Float[Tensor, "b h d dv"] | None = None,
) -> tuple[Float[Tensor, "b h L dv"], Float[Tensor, "b h d dv"]]:
    """The answers in O(L d d_v), and the state after the last token, in float32 at least.

    `state` is that of the text before, zeros if there is none. Raises TypeError or ValueError for
    queries, keys and values that do not belong together, for gates of another shape, α above 1, and
    β outside of 0 to 2, where the state would grow without end.
    """
    _qkv.check(Q, K, V, self_attention=True)
    _check(Gates(log_alpha, beta), K)
    kind = torch.promote_types(V.dtype, torch.float32)
    with _fused.full_precision(Q):
        q, k = (F.normalize(x.to(kind), dim=-1) for x in (Q, K))
        out, S = _in_chunks(q, k, V.to(kind), log_alpha.to(kind), beta.to(kind), state)
    return out.to(V.dtype), S


def _check(gates: Gates, K: Tensor) -> None:
    """Raises TypeError or ValueError unless each key has an α between 0 and 1, given by its
    logarithm, and a β between 0 and 2."""
    for name, x, low, high in (
        ("log_alpha", gates.log_alpha, -torch.inf, 0.0),
        ("beta", gates.beta, 0.0, 2.0),
    ):
        _arguments.tensor(name, x, "(b, h, L)")
        if x.shape != K.shape[:-1]:
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}, K {tuple(K.shape)}; give a number for each "
                f"key, {tuple(K.shape[:-1])}"
            )
        _arguments.finite(name, x)
        if x.is_meta:
            continue
        least, most = (float(end) for end in x.detach().aminmax())
        if most > high or least < low:
            raise ValueError(
                f"{name} holds {most if most > high else least:.3g}; choose "
                + ("log_alpha <= 0, α <= 1" if high == 0 else "0 <= beta <= 2")
            )


def _in_chunks(
    q: Float[Tensor, "b h L d"],
    k: Float[Tensor, "b h L d"],
    v: Float[Tensor, "b h L dv"],
    log_alpha: Float[Tensor, "b h L"],
    beta: Float[Tensor, "b h L"],
    state: Float[Tensor, "b h d dv"] | None,
) -> tuple[Float[Tensor, "b h L dv"], Float[Tensor, "b h d dv"]]:
    """The triangular systems of all chunks are solved at once, for V and for K; what a chunk reads
    of the state before it goes from chunk to chunk. Zeros fill the last one: they write nothing."""
    L, d = q.shape[2:]
    m = min(CHUNK, L)
    q, k, v = (F.pad(x, (0, 0, 0, -L % m)).unflatten(2, (-1, m)) for x in (q, k, v))
    log_alpha, beta = (F.pad(x, (0, -L % m)).unflatten(2, (-1, m)) for x in (log_alpha, beta))
    C, left = log_alpha.cumsum(-1), _left(log_alpha)
    system = (beta[..., None] * left * (k @ k.mT)).tril(-1)
    told = beta[..., None] * torch.cat([v, C.exp()[..., None] * k], -1)
    solved = torch.linalg.solve_triangular(system, told, upper=False, unitriangular=True)
    of_values, of_state = solved[..., :-d], solved[..., -d:]
    within, before = left * (q @ k.mT), C.exp()[..., None] * q
    kept, faded = C[..., -1, None, None].exp(), left[..., -1, :, None] * k
    S = v.new_zeros(*v.shape[:2], d, v.shape[-1]) if state is None else state
    chunks = (x.unbind(2) for x in (of_values, of_state, within, before, kept, faded))
    parts = []
    for values, read, among, queries, rest, keys in zip(*chunks, strict=True):
        written = values - read @ S
        parts.append(queries @ S + among @ written)
        S = rest * S + keys.mT @ written
    return torch.cat(parts, 2)[:, :, :L], S


def _left(log_alpha: Float[Tensor, "*b L"]) -> Float[Tensor, "*b L L"]:
    """Γ_tj = α_{j+1} ⋯ α_t for j ≤ t, else 0."""
    C = log_alpha.cumsum(-1)
    ahead = torch.ones(C.shape[-1], C.shape[-1], dtype=torch.bool, device=C.device).triu(1)
    return (C[..., :, None] - C[..., None, :]).masked_fill(ahead, -torch.inf).exp()


def _weights(Q: Tensor, K: Tensor, gates: Gates) -> Float[Tensor, "b h L L"]:
    """A of a whole text: the system of one chunk that holds it all, solved for V = I."""
    kind = torch.promote_types(Q.dtype, torch.float32)
    with _fused.full_precision(Q):
        q, k = (F.normalize(x.to(kind), dim=-1) for x in (Q, K))
        left, beta = _left(gates.log_alpha.to(kind)), gates.beta.to(kind)
        system = (beta[..., None] * left * (k @ k.mT)).tril(-1)
        written = torch.linalg.solve_triangular(
            system, beta.diag_embed(), upper=False, unitriangular=True
        )
        return (left * (q @ k.mT) @ written).to(Q.dtype)


class GatedDelta(nn.Module):
    """The gated delta rule as a core for causal models: `GPT(…, **gated_delta_net())`.

    Its `Gates` are what the projection made besides Q, K and V. A cache keeps S, of one size; the
    keys are gone then, so that weights that are asked for later are None. Tokens of padding neither
    write nor fade.
    """

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.pattern != CAUSAL or where.crosses:
            raise ValueError(
                f"pattern = {where.pattern!r}: a state is written in the order of time, and holds "
                "all tokens before; give causal attention of a text to itself"
            )
        if where.more is None:
            raise ValueError(
                "where.more is None, and the gates are missing; give the model a projection that "
                "makes them: project=DeltaGates, as gated_delta_net() does"
            )
        K, V = (x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V))
        gates = Gates(*where.more)
        _check(gates, K)
        keys = visible(FULL, Q.shape[2], where.start + K.shape[2], where.attention_mask, Q.device)
        if keys is not None:
            if len(keys) not in (1, len(Q)):
                raise ValueError(
                    f"attention_mask has {len(keys)} rows, Q {len(Q)}; give one for each row of "
                    "the batch"
                )
            gates = Gates(*(x.masked_fill(~keys[:, 0, :, where.start :], 0.0) for x in gates))
        state = outside_inference(where.state)
        if state is not None:
            same_texts(state, K)
        out, S = gated_delta(Q, K, V, *gates, state)
        if where.keep:
            where.keep(S)
        asked = where.need_weights and not where.start
        return out, _weights(Q, K, gates) if asked else None


class DeltaGates(nn.Module):
    """In the place of W_qkv: Q, K, V, and the `Gates` of each token and head.

    At first e^A is drawn between .01 and 16, and softplus(b_a) between .001 and .1, so that some
    heads forget within a few tokens and others hardly at all.
    """

    @named
    def __init__(self, d: int, h: int, d_head: int, h_kv: int) -> None:
        super().__init__()
        sizes = {"d": d, "h": h, "d_head": d_head, "h_kv": h_kv}
        d, h, d_head, h_kv = (_arguments.integer(name, x, 1) for name, x in sizes.items())
        self.d_head, self.widths = d_head, [h * d_head, h_kv * d_head, h_kv * d_head]
        self.W_qkv = nn.Linear(d, sum(self.widths))
        self.W_a, self.W_beta = (nn.Linear(d, h, bias=False) for _ in range(2))
        step = 0.001 * 100 ** torch.rand(h)
        self.b_a = nn.Parameter(step.expm1().log())  # the softplus of which is the step
        self.A = nn.Parameter((16 * torch.rand(h)).clamp(min=0.01).log())

    @named
    def forward(
        self, X: Float[Tensor, "b L d"], memory: Float[Tensor, "b Lk d"] | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Gates]:
        if memory is not None:
            raise ValueError(
                "a state is written in the order of time, and another sequence has no such order; "
                "leave cross-attention as it is"
            )
        Q, K, V = (
            x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)
            for x in self.W_qkv(X).split(self.widths, -1)
        )
        log_alpha = -self.A.exp() * F.softplus(self.W_a(X) + self.b_a)
        return Q, K, V, Gates(log_alpha.mT, self.W_beta(X).sigmoid().mT)


class NormedHeads(nn.Module):
    """In the place of W^o: (RMSNorm(head) ∘ SiLU(X W_z)) W^o."""

    @named
    def __init__(self, d: int, h: int, d_head: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(d_head, eps=1e-6)
        self.W_z, self.W_o = nn.Linear(d, h * d_head), nn.Linear(h * d_head, d)

    @named
    def forward(
        self, heads: Float[Tensor, "b h L d_head"], X: Float[Tensor, "b L d"]
    ) -> Float[Tensor, "b L d"]:
        normed = self.norm(heads).transpose(1, 2).flatten(2)
        out: Tensor = self.W_o(normed * F.silu(self.W_z(X)))
        return out


def gated_delta_net() -> dict[str, Any]:
    """The options of a model whose attentions are gated delta rules: `GPT(…, **gated_delta_net())`,
    or of one layer: `layer=lambda n: {} if n % 4 == 3 else gated_delta_net()`."""
    return {"core": GatedDelta, "project": DeltaGates, "join": NormedHeads}
