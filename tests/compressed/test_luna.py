"""Luna: packing and unpacking, the P that travels on, and the causal form by two running sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import laws
import pytest
import torch
import torch.nn.functional as F
from laws import (
    Case,
    D,
    Function,
    H,
    L,
    agree_with_gradients,
    qkv,
    work_grows_no_faster,
)
from refusals import of_no_kind, refused
from streams import (
    it_refuses_other_texts,
    it_writes_and_resumes_with_one_size,
    parts_of_a_long_text_go_on,
    small_gpt,
)
from three import three
from torch import Tensor, nn

from tfviz import BERT, GPT, attention, implied_map, patterns
from tfviz.compressed import luna as rooms
from tfviz.cores import Where, levels
from tfviz.models.blocks import Stack, post_norm
from tfviz.models.use import attention_weights


def packing(l: int = 3, h: int = H, d: int = D) -> Tensor:
    return torch.randn(h, l, d, dtype=torch.float64)


def elu(x: Tensor) -> Tensor:
    return F.elu(x) + 1


def test_four_tokens_by_hand() -> None:
    """Two rows of P: one packs the tokens with key 0, the other the one with key ln 9 nine times as
    much as each of these. A query of 1 weighs the packed keys."""
    K = torch.tensor([0.0, 0.0, 0.0, math.log(9)])[None, None, :, None]
    V = torch.tensor([4.0, 8.0, 12.0, 20.0])[None, None, :, None]
    R, Q = torch.tensor([[[0.0], [1.0]]]), torch.ones(1, 1, 1, 1)
    out, packed = rooms.luna_attention(Q, K, V, R)
    assert torch.allclose(packed[0, 0, :, 0], torch.tensor([11.0, (4 + 8 + 12 + 9 * 20) / 12]))
    # the packed keys are ln 9 / 4 and 3/4 ln 9, so the second counts 9^(1/2) = 3 times as much
    assert torch.allclose(out, (packed[:, :, :1] + 3 * packed[:, :, 1:]) / 4)


def test_where_each_row_of_p_packs_one_token_it_is_attention() -> None:
    Q, K, V = qkv(D)
    K = torch.linalg.qr(K)[0]
    leaves = three(x.clone().requires_grad_() for x in (Q, K, V))
    got = rooms.luna_attention(*leaves, 1e4 * K)[0]
    agree_with_gradients(got, attention(*leaves)[0], leaves)


@pytest.mark.parametrize("l", [1, 2, 5, 12])
def test_its_map_has_rank_l(l: int) -> None:
    Q, K, V = qkv()
    core = rooms.Luna(D, H, l).double()
    nn.init.normal_(core.W_p.weight)
    A = implied_map(core, Q, K, V)
    assert (torch.linalg.matrix_rank(A, rtol=1e-10) <= min(l, L)).all()
    assert l < 5 or torch.linalg.matrix_rank(A, rtol=1e-10).min() > 2
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))


def test_tokens_in_another_order_get_the_same_answers() -> None:
    Q, K, V = qkv()
    core, order = rooms.Luna(D, H, 3).double(), torch.randperm(L)
    moved = core(*(x[:, :, order] for x in (Q, K, V)), Where())[0]
    torch.testing.assert_close(moved, core(Q, K, V, Where())[0][:, :, order])


# --- what travels on ------------------------------------------------------------------------------


def test_the_layer_above_packs_with_what_the_one_below_handed_up() -> None:
    Q, K, V = qkv()
    below, above = rooms.Luna(D, H, 3).double(), rooms.Luna(D, H, 3).double()
    with levels():
        below(Q, K, V, Where())
        P = below.norm(below.P)
        R = below.W_p(P).unflatten(-1, (H, D)).transpose(0, 1)
        packed = (R @ K.mT / math.sqrt(D)).softmax(-1) @ V
        up = P + packed.transpose(1, 2).flatten(2)
        torch.testing.assert_close(Where().below, up)
        got = above(Q, K, V, Where())[0]
        assert not torch.allclose(Where().below, up)
    R = above.W_p(above.norm(up)).unflatten(-1, (H, D)).transpose(1, 2)
    torch.testing.assert_close(got, rooms.luna_definition(Q, K, V, R)[0])


def test_the_upper_layers_learn_through_it() -> None:
    """All layers begin with one P, and its gradient comes from all."""
    torch.manual_seed(0)
    model = BERT(11, 16, 2, 3, core=rooms.nested(4, 16))
    named = [n for n, _ in model.named_parameters(remove_duplicate=False) if n.endswith("core.P")]
    assert len(named) == 3
    assert len([n for n, _ in model.named_parameters() if n.endswith("core.P")]) == 1
    model(torch.randint(11, (2, 9))).pow(2).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_all_layers_of_a_gpt_pack_with_one_p() -> None:
    model = GPT(11, 16, 2, 3, core=rooms.nested_causal(4, 16))
    assert len([n for n, _ in model.named_parameters() if n.endswith("core.P")]) == 1


# --- the causal form ------------------------------------------------------------------------------


def in_loops(Q: Tensor, K: Tensor, V: Tensor, R: Tensor, omega: Callable[..., Tensor]) -> Tensor:
    """One head, a token at a time, as a person would read the formula."""
    d, rows = Q.shape[-1], []
    for t in range(len(Q)):
        keys, values = torch.zeros(len(R), d).to(Q), torch.zeros(len(R), V.shape[-1]).to(Q)
        for j in range(t + 1):
            shares = omega(R @ K[j] / math.sqrt(d))
            keys = keys + torch.outer(shares, K[j]) / (t + 1)
            values = values + torch.outer(shares, V[j]) / (t + 1)
        rows.append((keys @ Q[t] / math.sqrt(d)).softmax(-1) @ values)
    return torch.stack(rows)


@pytest.mark.parametrize("length", [1, 9, 65, 130])
@pytest.mark.parametrize("omega", [rooms.softplus, elu])
def test_the_causal_form_in_loops(length: int, omega: Callable[..., Tensor]) -> None:
    X, R = qkv(length), packing()
    got = rooms.causal_luna_attention(*X, R, omega)[1, 2]
    Q, K, V = (x[1, 2] for x in X)
    torch.testing.assert_close(got, in_loops(Q, K, V, R[2], omega))


def test_the_two_activations_are_one_at_zero() -> None:
    zero = torch.zeros(())
    assert rooms.softplus(zero) == elu(zero) == 1
    x = torch.linspace(-5, 5, 11)
    torch.testing.assert_close(rooms.softplus(x), torch.log2(1 + 2**x))


@pytest.mark.parametrize("length", [5, 64, 200])
def test_gradients_of_the_masked_definition(length: int) -> None:
    leaves = three(x.requires_grad_() for x in qkv(length))
    R = packing().requires_grad_()
    wanted = rooms.causal_luna_definition(*leaves, R, patterns.causal().mask(length))[0]
    agree_with_gradients(rooms.causal_luna_attention(*leaves, R), wanted, [*leaves, R])


def gpt() -> GPT:
    return small_gpt(rooms.nested_causal(3, 16))


def test_what_it_keeps_has_one_size_and_goes_on() -> None:
    parts_of_a_long_text_go_on(rooms.nested_causal(3, 16))
    # layers; sums, heads, vectors, numbers; the count
    it_writes_and_resumes_with_one_size(gpt, 2 * (2 * 2 * 3 * 8 + 1))


def test_a_causal_model_with_the_softmax_is_refused() -> None:
    model = GPT(11, 16, 2, 2, core=rooms.nested(3, 16))
    refused("packs all positions … take CausalLuna", model, torch.zeros(1, 8).long())


# --- the authors' code ----------------------------------------------------------------------------


def heads(X: Tensor) -> Tensor:
    return X.unflatten(-1, (H, -1)).transpose(-2, -3)


def side_by_side(X: Tensor) -> Tensor:
    return X.transpose(-2, -3).flatten(-2)


def matrix() -> Tensor:
    return torch.randn(H * D, H * D, dtype=torch.float64) / (H * D) ** 0.5


def fairseq(
    X: Tensor,
    P: Tensor,
    pq: Tensor,
    pk: Tensor,
    pv: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
) -> tuple[Tensor, Tensor]:
    """`LunarMultiheadAttention.forward` before its out_proj, and the pcontext that it returns, with
    as many heads to pack as to unpack; tie_kv is pk = pv and k = v."""
    scaling = D**-0.5
    pack = (heads(P @ pq) * scaling @ heads(X @ pk).mT).softmax(-1)
    pcontext = side_by_side(pack @ heads(X @ pv))
    unpack = (heads(X @ q) * scaling @ heads(pcontext @ k).mT).softmax(-1)
    return unpack @ heads(pcontext @ v), pcontext


def ours(X: Tensor, P: Tensor, pq: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    return rooms.luna_attention(heads(X @ q), heads(X @ k), heads(X @ v), heads(P @ pq))


def test_parity_with_the_authors_formula() -> None:
    """Theirs projects what is packed. Where these projections stay within a head they may stand
    before the packing, and both are the same function; P' is then the same, too."""
    X = torch.randn(2, L, H * D, dtype=torch.float64)
    P = torch.randn(2, 3, H * D, dtype=torch.float64)
    pq, q, pv = matrix(), matrix(), matrix()
    within = torch.block_diag(*torch.randn(H, D, D, dtype=torch.float64) / D**0.5)
    one = torch.eye(H * D, dtype=torch.float64)
    theirs = fairseq(X, P, pq, pv @ within, pv, q, within, one)
    for got, wanted in zip(ours(X, P, pq, q, pv @ within, pv), theirs, strict=True):
        wanted = wanted if wanted.dim() == 4 else heads(wanted)
        torch.testing.assert_close(got, wanted, atol=1e-12, rtol=1e-12)
    # by default keys are values; with c_proj = I that is ours with K = V
    tied = fairseq(X, P, pq, pv, pv, q, one, one)[0]
    torch.testing.assert_close(ours(X, P, pq, q, pv, pv)[0], tied, atol=1e-12, rtol=1e-12)


def test_what_the_authors_code_does_otherwise() -> None:
    """Its c_proj mixes the heads of the packing: no matrix of each head gives that."""
    X = torch.randn(2, L, H * D, dtype=torch.float64)
    P = torch.randn(2, 3, H * D, dtype=torch.float64)
    pq, q, pc, c = matrix(), matrix(), matrix(), matrix()
    theirs = fairseq(X, P, pq, pc, pc, q, c, c)[0]
    assert (ours(X, P, pq, q, pc @ c, pc @ c)[0] - theirs).abs().max() > 0.01
    bent = X.clone()
    bent[:, :, :D] *= 2  # what one head of the packing reads reaches another head's answer
    pc = torch.block_diag(*pc.unflatten(0, (H, D)).unflatten(2, (H, D))[range(H), :, range(H)])
    q = torch.block_diag(*q.unflatten(0, (H, D)).unflatten(2, (H, D))[range(H), :, range(H)])
    same = ours(X, P, pq, q, pc, pc)[0] - ours(bent, P, pq, q, pc, pc)[0]
    mixed = fairseq(X, P, pq, pc, pc, q, c, c)[0] - fairseq(bent, P, pq, pc, pc, q, c, c)[0]
    assert (same[:, 1:] == 0).all() and (mixed[:, 1:].abs().amax((1, 2, 3)) > 1e-3).all()


def test_unpacking_reads_what_is_packed_before_residual_and_norm() -> None:
    """A whole stack in post-norm order, against `LunaEncoderLayer` typed out for two layers."""
    torch.manual_seed(1)
    stack = Stack(2, H * D, H, post_norm, core=rooms.nested(3, H * D), phi=nn.ReLU).double()
    X = torch.randn(2, L, H * D, dtype=torch.float64)
    got, x, px = stack(X), X, None
    layers: Any = stack.blocks
    for block in layers:
        attend = block.attend
        core = attend.core
        px = core.norm(core.P if px is None else px)  # the norm after the residual of P, and before
        Q, K, V = attend.project(x, None)
        pack = (heads(core.W_p(px)) @ K.mT / D**0.5).softmax(-1)
        unpack = (Q @ (pack @ K).mT / D**0.5).softmax(-1)
        y = attend.W_o(side_by_side(unpack @ pack @ V))
        px = px + side_by_side(pack @ V)
        x = block.norms[0](x + y)
        x = block.norms[1](x + block.feed(x))
    torch.testing.assert_close(got, x)


def fairseq_causal(
    x: Tensor, P: Tensor, pq: Tensor, q: Tensor, pc: Tensor, k: Tensor, v: Tensor, soft: bool
) -> Tensor:
    """`LunarCausalAttention.forward` before its out_proj, with efficient_causal_attention_parallel:
    elu + 1 in luna_attention.py, softplus with beta = ln 2 in the version before."""

    def efficient_causal_attention(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        accum_mat = torch.cumsum(y.unsqueeze(-1) @ z.unsqueeze(-2), dim=2)
        length_div = torch.arange(1, x.shape[2] + 1).unsqueeze(-1)
        return (x.unsqueeze(-2) @ accum_mat).squeeze(-2) / length_div

    scaling = D**-0.5
    pattn = heads(x @ pc) @ (heads(P @ pq) * scaling).mT
    pattn = F.softplus(pattn, beta=math.log(2.0)) if soft else F.elu(pattn) + 1.0
    scores = efficient_causal_attention(heads(x @ q) * scaling, heads(x @ k), pattn)
    return efficient_causal_attention(scores.softmax(-1), pattn, heads(x @ v))


@pytest.mark.parametrize("soft", [False, True])
def test_parity_with_the_authors_causal_code(soft: bool) -> None:
    """Where its third projection of the text, for the packing, is that of the keys; if it is
    another one, so is the function."""
    X = torch.randn(2, 100, H * D, dtype=torch.float64)
    P = torch.randn(3, H * D, dtype=torch.float64)
    pq, q, k, v, other = (matrix() for _ in range(5))
    Q, K, V = heads(X @ q), heads(X @ k), heads(X @ v)
    omega = rooms.softplus if soft else elu
    got = rooms.causal_luna_attention(Q, K, V, heads(P @ pq), omega)
    theirs = partial(fairseq_causal, X, P, pq, q, k=k, v=v, soft=soft)
    torch.testing.assert_close(got, theirs(pc=k), atol=1e-12, rtol=1e-12)
    assert (got - theirs(pc=other)).abs().max() > 0.01


# --- costs and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("call", [rooms.causal_luna_attention, rooms.luna_attention])
def test_work_and_memory_grow_with_the_length(call: Callable[..., Any]) -> None:
    """With gradients, up to 16,384 tokens."""
    R = torch.randn(1, 8, 16)

    def attend(L: int) -> Callable[..., Tensor]:
        def answer(*X: Tensor) -> Tensor:
            out = call(*X, R)
            return out[0] if isinstance(out, tuple) else out

        return answer

    work_grows_no_faster(attend, 1.05)


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    for attend in (rooms.luna_attention, rooms.causal_luna_attention):
        refused("R has shape (4, 3, 7) … of 8 numbers", attend, Q, K, V, packing(d=7))
        refused("R has shape (3, 3, 8) … in 4 heads", attend, Q, K, V, packing(h=3))
        of_no_kind("R is a list", attend, Q, K, V, [1.0])
    refused("l = 0", rooms.Luna, D, H, 0)
    refused("d = 0", rooms.nested, 3, 0)
    refused("packs with vectors of 16 numbers, the model has d = 32; make d=32",
            BERT, 11, 32, 2, 2, core=rooms.nested(4, 16))  # fmt: skip
    of_no_kind("omega = 'elu'; give a positive function", rooms.CausalLuna, D, H, 3, omega="elu")
    it_refuses_other_texts(rooms.CausalLuna(D, H, 3).double())


def test_a_model_shows_its_weights() -> None:
    maps = attention_weights(gpt(), torch.zeros(1, 6).long())
    assert all((A.triu(1) == 0).all() and (A.tril() >= 0).all() for A in maps.values())


@pytest.mark.parametrize("place", laws.places(L))
def test_padding_anywhere_is_not_counted(place: str) -> None:
    """A mean is over the tokens that are there, wherever padding stands."""
    core, X = rooms.CausalLuna(D, H, 3).double(), qkv()
    there = torch.ones(2, L, dtype=torch.bool)
    there[0, laws.places(L)[place]] = False
    mask = patterns.causal().mask(L) & there[:, None, None]
    out = core(*X, Where(patterns.causal(), attention_mask=there))[0]
    R = core.W_p(core.P).unflatten(-1, (H, -1)).transpose(-2, -3)
    torch.testing.assert_close(out, rooms.causal_luna_definition(*X, R, mask)[0])


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: rooms.Luna, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return rooms.luna_definition(Q, K, V, heads(core.W_p(core.norm(core.P))))


def defined_causal(
    core: rooms.CausalLuna, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return rooms.causal_luna_definition(Q, K, V, heads(core.W_p(core.P)), mask, core.omega)


def of_five(Q: Tensor) -> Tensor:
    dice = torch.Generator().manual_seed(0)
    sizes = (Q.shape[1], 5, Q.shape[3]) if Q.ndim == 4 else (3, 5, 6)
    return torch.randn(sizes, generator=dice, dtype=torch.float64).to(Q)


def causal(omega: Callable[[Tensor], Tensor]) -> Case:
    return Case(
        lambda: rooms.CausalLuna(D, H, 3, omega=omega),
        defined_causal,
        forgets=True,
        shares_sum_to_one=False,
    )


CASE = Case(
    lambda: rooms.Luna(D, H, 3),
    defined,
    answers="whole",
    causal=False,
    grows=1.0,
    variants={"causal": causal(rooms.softplus), "causal, elu": causal(elu)},
    functions={
        "Luna": Function(
            lambda Q, K, V: rooms.luna_attention(Q, K, V, of_five(Q))[0],
            lambda Q, K, V: rooms.luna_definition(Q, K, V, of_five(Q)),
        ),
        "causal Luna": Function(
            lambda Q, K, V: rooms.causal_luna_attention(Q, K, V, of_five(Q)),
            lambda Q, K, V: rooms.causal_luna_definition(
                Q, K, V, of_five(Q), patterns.causal().mask(Q.shape[2])
            ),
        ),
    },
    mutants=[
        ("padding that counts", "there.masked_fill(~keys.mT, 0.0)", "there"),
        (
            "Luna that unpacks keys where values are due",
            "_fused.attention(Q, pack @ K, packed)",
            "_fused.attention(Q, pack @ K, pack @ K)",
        ),
        (
            "a P that does not travel on",
            "self.P if where.below is None else where.below",
            "self.P",
        ),
        (
            "a P without its residual",
            "P + packed.transpose(1, 2).flatten(2)",
            "packed.transpose(1, 2).flatten(2)",
        ),
        ("causal Luna that sums where it should average", "(scores / n.clamp(min=1))", "(scores)"),
        ("causal Luna that counts from zero after a cache", ".cumsum(2) + passed", ".cumsum(2)"),
        (
            "causal Luna that packs padding",
            "pack.masked_fill(~keys.mT, 0.0), there.masked_fill(~keys.mT, 0.0)",
            "pack, there.masked_fill(~keys.mT, 0.0)",
        ),
    ],
)
