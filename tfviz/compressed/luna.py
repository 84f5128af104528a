"""Luna: l vectors pack the text, and every token reads the packed text.

Ma, Kong, Wang, Zhou, May, Ma, Zettlemoyer 2021 (arXiv 2106.01540). Beside the text runs a second
sequence P of l vectors, however long the text is. With R = P W^p as its queries, in each head,

    A_pack = softmax(R Kᵀ/√d_head)                          (l, L), each row sums to one
    K̃, Ṽ  = A_pack K, A_pack V                              l packed keys and values
    out    = softmax(Q K̃ᵀ/√d_head) Ṽ                        (L, l) times (l, d)
    P'     = LN(Ṽ + P)                                      handed up: the next layer packs with it

so the L × L matrix that is applied, A_unpack A_pack, has rank l at most. The paper writes Y_P =
Attn(P, X, X), Y_X = Attn(X, Y_P, Y_P): as K̃ = A_pack X W^k = Y_P W^k, keys may be projected before
or after packing. With several heads the authors' code (fairseq-apollo) projects Y_P, in which the
heads of the packing stand side by side, by one more matrix, and ties keys to values; here each head
unpacks what it has packed. P' reaches the next layer before its norm, which stands at the entrance.

For a causal text the softmax of the packing would need all tokens. So it is replaced by a positive
ω, and sums by means over the tokens up to t, n of them:

    K̃_t = Σ_{j ≤ t} ω(R k_jᵀ/√d_head) k_j / n,  Ṽ_t likewise,  out_t = softmax(q_t K̃_tᵀ/√d_head) Ṽ_t

with ω(x) = log₂(1 + 2ˣ), or elu(x) + 1; the code has both. Two running sums are all that is kept.
The rows of the matrix that is applied need not sum to one then, and no P' is handed up.

>>> import torch
>>> X = torch.tensor([[0.0], [0.0], [9.0]])
>>> R = torch.tensor([[0.0], [9.0]])  # one packs all tokens alike, one the last
>>> luna_definition(X, X, X, R)[1][0].mul(6).round().tolist()
[1.0, 1.0, 4.0]
>>> softplus(torch.tensor([0.0, 1.0]))
tensor([1.0000, 1.5850])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tfviz import _arguments, _fused, _qkv
from tfviz._arguments import named
from tfviz.compressed.linear_transformer import _running
from tfviz.cores import Where, in_stack, outside_inference, same_texts
from tfviz.dense_attention import CAUSAL, FULL, visible

__all__ = [
    "CausalLuna",
    "Luna",
    "causal_luna_attention",
    "causal_luna_definition",
    "luna_attention",
    "luna_definition",
    "nested",
    "nested_causal",
    "softplus",
]


@named
def softplus(x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """log₂(1 + 2ˣ), number by number: positive, and 1 at 0."""
    return nn.functional.softplus(x, beta=math.log(2))


@named
def luna_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    R: Float[Tensor, "*b l d"],
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """The output, and the L × L matrix A_unpack A_pack that makes it of V."""
    pack = (R @ K.mT / math.sqrt(K.shape[-1])).softmax(-1)
    unpack = (Q @ (pack @ K).mT / math.sqrt(Q.shape[-1])).softmax(-1)
    A = unpack @ pack
    return A @ V, A


@named
def luna_attention(
    Q: Float[Tensor, "b h Lq d"],
    K: Float[Tensor, "b h Lk d"],
    V: Float[Tensor, "b h Lk dv"],
    R: Float[Tensor, "*b h l d"],
) -> tuple[Float[Tensor, "b h Lq dv"], Float[Tensor, "b h l dv"]]:
    """The same in O(L l d), and the packed values: attention of R to the text, and of the text to
    what R has packed."""
    _qkv.check(Q, K, V, self_attention=False)
    _packs(R, K)
    pack = (R @ K.mT / math.sqrt(K.shape[-1])).softmax(-1)
    packed = pack @ V
    return _fused.attention(Q, pack @ K, packed).to(V.dtype), packed


@named
def causal_luna_definition(
    Q: Float[Tensor, "*b L d"],
    K: Float[Tensor, "*b L d"],
    V: Float[Tensor, "*b L dv"],
    R: Float[Tensor, "*b l d"],
    mask: Bool[Tensor, "*#b L L"],
    omega: Callable[[Tensor], Tensor] = softplus,
) -> tuple[Float[Tensor, "*b L dv"], Float[Tensor, "*b L L"]]:
    """The output, and the matrix that makes it of V, where query i packs the keys of its mask."""
    kind = torch.promote_types(V.dtype, torch.float32)
    q, k, r = (X.to(kind) / math.sqrt(X.shape[-1]) ** 0.5 for X in (Q, K, R))
    pack = omega(r @ k.mT)
    means = mask / mask.sum(-1, keepdim=True).clamp(min=1).to(kind)
    unpack = (means * (q @ k.mT) @ pack.mT).softmax(-1)
    A = means * (unpack @ pack)
    return (A @ V.to(kind)).to(V.dtype), A.to(V.dtype)


@named
def causal_luna_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    R: Float[Tensor, "*b h l d"],
    omega: Callable[[Tensor], Tensor] = softplus,
) -> Float[Tensor, "b h L dv"]:
    """The same for a causal mask in O(L l d), by two running sums."""
    return _streamed(Q, K, V, R, omega, None, None)[0]


def _streamed(
    Q: Tensor,
    K: Tensor,
    V: Tensor,
    R: Tensor,
    omega: Callable[[Tensor], Tensor],
    keys: Bool[Tensor, "b 1 1 L"] | None,
    state: tuple[Tensor, Tensor, Tensor] | None,
) -> tuple[Float[Tensor, "b h L dv"], tuple[Tensor, Tensor, Tensor]]:
    """The answers, and after the last token Σ k_jᵀ ω_j, Σ ω_jᵀ v_j and the number of tokens."""
    _qkv.check(Q, K, V, self_attention=True)
    _packs(R, K)
    kind = torch.promote_types(V.dtype, torch.float32)
    kept_keys, kept_values, passed = state or (None, None, 0)
    with _fused.full_precision(Q):
        q, k, r = (X.to(kind) / math.sqrt(X.shape[-1]) ** 0.5 for X in (Q, K, R))
        pack = omega(k @ r.mT)
        there = torch.ones_like(pack[:, :1, :, :1])
        if keys is not None:
            pack, there = pack.masked_fill(~keys.mT, 0.0), there.masked_fill(~keys.mT, 0.0)
        n = there.cumsum(2) + passed
        scores, kept_keys = _running(q, k, pack, kept_keys)
        unpack = (scores / n.clamp(min=1)).softmax(-1)
        sums, kept_values = _running(unpack, pack, V.to(kind), kept_values)
        return (sums / n.clamp(min=1)).to(V.dtype), (kept_keys, kept_values, n[:, :, -1:])


def _packs(R: Tensor, K: Tensor) -> None:
    """Raises TypeError or ValueError unless R are packing queries for these keys."""
    _arguments.like("R", R, K, "(h, l, d) or (b, h, l, d)")
    wanted = (*K.shape[:-2], R.shape[-2] if R.dim() > 1 else 1, K.shape[-1])
    if R.dim() not in (3, 4) or R.shape[-3:] != wanted[-3:] or R.shape[:-3] not in ((), (len(K),)):
        raise ValueError(
            f"R has shape {tuple(R.shape)}, K {tuple(K.shape)}; give one packing query of "
            f"{K.shape[-1]} numbers for each of l vectors in {K.shape[1]} heads, (h, l, d)"
        )


class Luna(nn.Module):
    """Luna as a core for encoders: `BERT(…, core=nested(l=16, d=64))`.

    l    how many vectors P has
    P    those of another layer; the lowest layer begins with them, and those above it with what
         the layer below hands up. `nested` makes cores that share them

    It is not causal, and does not know padding, caches, or patterns other than full.
    """

    @named
    def __init__(self, d_head: int, h: int, l: int, P: nn.Parameter | None = None) -> None:
        super().__init__()
        self.P = drawn(l, h * d_head) if P is None else P
        self.W_p, self.norm = packer(self.P, h * d_head), nn.LayerNorm(h * d_head)

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        if where.whole_text("each of its l vectors packs all positions of a text", "a packed text"):
            raise ValueError(
                "pattern = causal(): each of the l vectors packs all positions; every query would "
                "read what comes after it; give pattern = full(), or take CausalLuna"
            )
        h = Q.shape[1]
        K, V = (X.repeat_interleave(h // X.shape[1], 1) for X in (K, V))
        P = self.norm(self.P if where.below is None else where.below)
        R = _heads(self.W_p(P), h).to(K.dtype)
        out, packed = luna_attention(Q, K, V, R)
        if in_stack():
            where.hand_up(P + packed.transpose(1, 2).flatten(2))
        return out, luna_definition(Q, K, V, R)[1] if where.need_weights else None


class CausalLuna(nn.Module):
    """Luna as a core for a text that is written: `GPT(…, core=nested_causal(l=16, d=64))`.

    l, P     as in `Luna`; every layer packs with the same P and a W^p of its own
    omega    how much of a key is packed, a positive function of a score

    Causal patterns cost O(L l d), and after a text two matrices of l × d_head numbers a head are
    kept, in float32 at least. The keys themselves are gone then, so weights that are asked for
    later are None. For any other pattern it makes all pairs, and keeps keys and values.
    """

    @named
    def __init__(
        self,
        d_head: int,
        h: int,
        l: int,
        P: nn.Parameter | None = None,
        omega: Callable[[Tensor], Tensor] = softplus,
    ) -> None:
        super().__init__()
        if not callable(omega):
            raise TypeError(f"omega = {omega!r}; give a positive function of a tensor")
        self.P = drawn(l, h * d_head) if P is None else P
        self.W_p, self.omega = packer(self.P, h * d_head), omega

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        h, L = Q.shape[1:3]
        R = _heads(self.W_p(self.P), h).to(K.dtype)
        streams = where.pattern == CAUSAL and not where.crosses
        if not streams:
            K, V = where.joined(K, V)
        K, V = (X.repeat_interleave(h // X.shape[1], 1) for X in (K, V))
        passed = where.start if streams else 0
        if streams:
            out = self._answered(Q, K, V, R, where)
            if not where.need_weights or passed:
                return out, None
        _qkv.check(Q, K, V, self_attention=False)
        mask = visible(where.pattern, L, K.shape[2], where.attention_mask, Q.device)
        mask = torch.ones(L, K.shape[2], dtype=torch.bool) if mask is None else mask
        answer, A = causal_luna_definition(Q, K, V, R, mask.to(Q.device), self.omega)
        return (out if streams else answer), A if where.need_weights else None

    def _answered(self, Q: Tensor, K: Tensor, V: Tensor, R: Tensor, where: Where) -> Tensor:
        """The answers of a causal text, or of a part that follows on what was kept."""
        keys = visible(FULL, Q.shape[2], where.start + K.shape[2], where.attention_mask, Q.device)
        if keys is not None and len(keys) not in (1, len(Q)):
            raise ValueError(
                f"attention_mask has {len(keys)} rows, Q {len(Q)}; give one for each row of the "
                "batch"
            )
        state: Any = None if where.state is None else outside_inference(where.state)
        if state is not None:
            same_texts(state[0], K)
        keys = None if keys is None else keys[..., where.start :]
        out, state = _streamed(Q, K, V, R, self.omega, keys, state)
        if where.keep:
            where.keep(state)
        return out


def _heads(X: Float[Tensor, "*b l d"], h: int) -> Float[Tensor, "*b h l d_head"]:
    return X.unflatten(-1, (h, -1)).transpose(-2, -3)


def drawn(l: int, d: int) -> nn.Parameter:
    """P before training: l vectors of d numbers, as token embeddings are drawn."""
    l, d = _arguments.integer("l", l, 1), _arguments.integer("d", d, 1)
    return nn.Parameter(torch.randn(l, d) / math.sqrt(d))


def packer(P: Tensor, d: int) -> nn.Linear:
    """W^p. Raises ValueError unless a vector of P is as wide as the heads of the model together."""
    if P.shape[-1] != d:
        raise ValueError(
            f"Luna packs with vectors of {P.shape[-1]} numbers, the model has d = {d}; make d={d}"
        )
    return nn.Linear(d, d)


@named
def nested(l: int, d: int) -> Callable[[int, int], Luna]:
    """What makes the cores of one encoder, which all begin with one P of l vectors of d numbers."""
    P = drawn(l, d)
    return lambda d_head, h: Luna(d_head, h, l, P)


@named
def nested_causal(
    l: int, d: int, omega: Callable[[Tensor], Tensor] = softplus
) -> Callable[[int, int], CausalLuna]:
    """What makes the cores of one GPT, whose layers all pack with one P."""
    P = drawn(l, d)
    return lambda d_head, h: CausalLuna(d_head, h, l, P, omega)
