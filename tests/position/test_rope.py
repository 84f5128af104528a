"""Rotary positions: angles by hand, the invariants, and what Llama and GPT-J compute."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import Case, D
from refusals import ranges, refused
from torch import Tensor

from tfviz import attention
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.rope import (
    Rope,
    halves_order,
    phasors,
    rotate,
    rotate_halves,
    rotation,
    speeds,
)

close = torch.testing.assert_close
Turn = Callable[[Tensor, Tensor], Tensor]


def rows(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def float64(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# --- by hand --------------------------------------------------------------------------------------


def test_speeds_by_hand() -> None:
    close(speeds(4), float64([1.0, 0.01]))
    close(speeds(8), float64([1.0, 0.1, 0.01, 0.001]))
    close(speeds(4, base=100.0), float64([1.0, 0.1]))
    close(speeds(4, base=1.0), float64([1.0, 1.0]))


def test_golden_quarter_turns() -> None:
    # base 4, d = 4: speeds 1 and 1/2. At position π the first pair makes half a turn, the second a
    # quarter: (1, 2, 3, 4) -> (-1, -2, -4, 3). Halves pair 1 with 3 and 2 with 4.
    X, i = float64([1.0, 2.0, 3.0, 4.0])[None], float64([math.pi])
    close(rotate(X, i, base=4.0), float64([-1.0, -2.0, -4.0, 3.0])[None])
    close(rotate_halves(X, i, base=4.0), float64([-1.0, -4.0, -3.0, 2.0])[None])


def test_golden_matrix() -> None:
    # Four different entries for each of two angles; the second block has its own speed.
    c, s, c2, s2 = math.cos(3), math.sin(3), math.cos(0.03), math.sin(0.03)
    R = float64([c, -s, 0, 0, s, c, 0, 0, 0, 0, c2, -s2, 0, 0, s2, c2]).view(4, 4)
    close(rotation(3, 4), R)


def test_golden_decay() -> None:
    # With all arrows alike: the mean of cos(Δθ_m), at d = 64.
    one = torch.zeros(64, dtype=torch.float64)
    one[0::2] = 1.0
    found = [(x[0] * x[1].cos()).mean().item() for x in (phasors(one, one, n) for n in DISTANCES)]
    close(float64(found), float64([1.0, 0.97, 0.73, 0.59, 0.48]), atol=5e-3, rtol=0)


DISTANCES = (0, 1, 5, 20, 49)


def test_halves_order_by_hand() -> None:
    assert halves_order(6).tolist() == [0, 2, 4, 1, 3, 5]


# --- invariants -----------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", [rotate, rotate_halves])
@pytest.mark.parametrize("d", [4, 6, 64])
def test_invariants_of_both_pairings(turn: Turn, d: int) -> None:
    X, Y, i = rows(5, d), rows(5, d, seed=1), torch.arange(5)
    score = turn(X, i) @ turn(Y, i).T
    for shift in (1, 7, 500):
        close(turn(X, i + shift) @ turn(Y, i + shift).T, score)  # only differences count
    close(turn(X, i).norm(dim=-1), X.norm(dim=-1))
    close(turn(X, 0 * i), X)
    close(turn(turn(X, i), 3 * i), turn(X, 4 * i))  # R_a R_b = R_{a+b}
    close(turn(turn(X, i), -i), X)
    assert not torch.allclose(score, X @ Y.T)  # and it does something
    farther = turn(X, i + 1) @ turn(Y, i).T
    assert not torch.allclose(farther, score)
    assert len({round(x, 9) for x in moved(turn, d).tolist()}) == d // 2  # a speed for each pair


def moved(turn: Turn, d: int) -> Tensor:
    """|cos| of the angle by which one step turns each of the d unit vectors."""
    return turn(torch.eye(d, dtype=torch.float64), torch.ones(d)).diagonal()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(-50, 50), st.integers(-50, 50))
def test_definition_product_and_phasors_agree(seed: int, half: int, i: int, j: int) -> None:
    d = 2 * half
    q, k = rows(2, d, seed=seed)
    R = rotation(j - i, d)
    close(rotation(i, d).T @ rotation(j, d), R)
    score = q @ R @ k
    turned = [rotate(x[None], torch.tensor([n]))[0] for x, n in ((q, i), (k, j))]
    close(turned[0], q @ rotation(i, d).T)
    close(turned[0] @ turned[1], score)
    length, angle = phasors(q, k, i - j)
    close((length * angle.cos()).sum(), score)
    assert score.abs() <= length.sum() + 1e-9  # no distance makes it larger


@pytest.mark.parametrize("d", [2, 6, 16])
def test_the_two_pairings_differ_by_a_permutation(d: int) -> None:
    X, Y, i, p = rows(5, d), rows(5, d, seed=1), torch.arange(5), halves_order(d)
    close(rotate_halves(X[..., p], i), rotate(X, i)[..., p])
    close(
        rotate_halves(X[..., p], i) @ rotate_halves(Y[..., p], i).T, rotate(X, i) @ rotate(Y, i).T
    )
    if d > 2:  # and weights of one do not fit the other
        assert not torch.allclose(
            rotate_halves(X, i) @ rotate_halves(Y, i).T, rotate(X, i) @ rotate(Y, i).T
        )


def test_limits() -> None:
    X, i = rows(5, 6), torch.arange(5)
    one = torch.complex(X[..., 0::2], X[..., 1::2]) * torch.exp(1j * i[:, None].double())
    close(rotate(X, i, base=1.0), torch.view_as_real(one).flatten(-2))  # one speed for all
    far = rotate(X, i, base=1e300)
    close(far[:, -2:], X[:, -2:])  # a hand that stands still
    half = Rope(6, interpolate=2.0).turn(X[None, None], 0)[0, 0]
    close(half, rotate(X, i / 2))
    close(half[0::2], rotate(X[0::2], torch.arange(3)))  # even places are the old places


def test_gradient() -> None:
    X = rows(3, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: rotate(x, torch.arange(3)), X)


def test_far_positions_keep_their_digits_in_bfloat16() -> None:
    X, i = rows(1, 8), torch.tensor([100_003])
    close(rotate(X.bfloat16(), i), rotate(X, i).bfloat16(), atol=0.05, rtol=0)
    close(rotate(X.float(), i), rotate(X, i).float(), atol=1e-6, rtol=1e-5)


# --- in a model -----------------------------------------------------------------------------------


def test_a_layer_with_turned_values_sees_the_position() -> None:
    # Scores do not; that is why the values stay as they are.
    X, i = rows(5, 6), torch.arange(5)

    def out(shift: int, values: bool) -> Tensor:
        T = rotate(X, i + shift)
        return torch.softmax(T @ T.T, -1) @ (T if values else X)

    close(out(0, False), out(11, False))
    assert not torch.allclose(out(0, True), out(11, True))
    close(rotate(out(11, True), -(i + 11)), rotate(out(0, True), -i))  # unless turned back


# --- third parties --------------------------------------------------------------------------------


def random_attention(positions: Callable[[], Rope], d: int, h: int) -> MultiHeadAttention:
    attend = MultiHeadAttention(d, h, core=positions)
    for bias in (attend.W_qkv.bias, attend.W_o.bias):
        torch.nn.init.zeros_(bias)
    return attend


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_llama_turns_halves(factor: float) -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    kind = {"rope_type": "linear", "factor": factor} if factor > 1 else {"rope_type": "default"}
    config = llama.LlamaConfig(
        hidden_size=24, num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=1,
        rope_parameters={"rope_theta": 500.0} | kind, attn_implementation="eager",
    )  # fmt: skip
    X, i = torch.randn(2, 7, 24), torch.arange(7)
    cos, sin = llama.LlamaRotaryEmbedding(config)(X, i[None])
    Q, K = torch.randn(2, 2, 3, 7, 8).unbind(0)
    theirs = llama.apply_rotary_pos_emb(Q, K, cos, sin)
    close(theirs, tuple(rotate_halves(x, i / factor, 500.0) for x in (Q, K)))

    # The whole layer, with its columns brought into our order.
    layer = llama.LlamaAttention(config, 0).eval()
    ours = random_attention(lambda: Rope(8, 500.0, interpolate=factor), 24, 3)
    to_neighbours = halves_order(8).argsort()
    columns = torch.cat([8 * n + to_neighbours for n in range(3)])
    W_q, W_k = (p.weight.data[columns] for p in (layer.q_proj, layer.k_proj))
    ours.W_qkv.weight.data = torch.cat([W_q, W_k, layer.v_proj.weight.data])
    ours.W_o.weight.data = layer.o_proj.weight.data
    theirs = layer(X, position_embeddings=(cos, sin), attention_mask=None)[0]
    close(ours(X), theirs, atol=1e-5, rtol=1e-5)
    ours.W_qkv.weight.data[:24] = layer.q_proj.weight.data  # not without the new order
    assert not torch.allclose(ours(X), theirs, atol=1e-3)


def test_gptj_turns_neighbours() -> None:
    gptj = pytest.importorskip("transformers.models.gptj.modeling_gptj")
    table = gptj.create_sinusoidal_positions(50, 16)
    X = torch.randn(2, 50, 3, 16)  # their order: batch, place, head
    sin, cos = table[None].expand(2, -1, -1).chunk(2, -1)
    theirs = gptj.apply_rotary_pos_emb(X, sin, cos).transpose(1, 2)
    close(rotate(X.transpose(1, 2), torch.arange(50)), theirs, atol=1e-5, rtol=1e-5)


def test_roformer_turns_neighbours() -> None:
    roformer = pytest.importorskip("transformers.models.roformer.modeling_roformer")
    table = roformer.RoFormerSinusoidalPositionalEmbedding(20, 8)
    if hasattr(table, "create_weight"):
        table.weight.data = table.create_weight()
    X = torch.randn(2, 3, 20, 8)
    turn = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings
    theirs, _ = turn(table(torch.Size([1, 20]))[None, None, :, :], X, X)
    close(rotate(X, torch.arange(20)), theirs.view_as(X), atol=1e-5, rtol=1e-5)


# --- bad input ------------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    ranges(Rope, d_head=(4, 2), base=(100.0, 1.0), interpolate=(2.0,))
    refused("d = 5 is odd", Rope, 5)
    refused("interpolate = 0 divides", Rope, 4, interpolate=0.0)
    refused("interpolate = -2.0 is out of range", Rope, 4, interpolate=-2.0)
    refused("i has shape (4,), X (3, 4)", rotate, torch.ones(3, 4), torch.arange(4))
    refused("X (4,); give X rows", rotate, torch.ones(4), torch.arange(4))
    refused("X holds torch.int64", rotate, torch.ones(2, 4).long(), torch.arange(2))
    refused("i = inf is not finite", rotation, math.inf, 4)


def test_phasors_in_half_precision_and_of_two_widths() -> None:
    q, k = torch.randn(2, 8)
    for half, exact in zip(phasors(q.half(), k.half(), 3), phasors(q, k, 3), strict=True):
        assert half.dtype == torch.float16
        close(half.float(), exact, atol=0.02, rtol=0.02)
    refused("q is 8 numbers wide, k 6", phasors, q, k[:6])


# --- what it brings to the laws and the mutants ---------------------------------------------------


def turned(core: Rope, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    R = torch.stack([rotation(i, D, core.base) for i in range(Q.shape[2])])
    Q, K = (torch.einsum("iab,nhib->nhia", R, x) for x in (Q, K))
    return attention(Q, K, V, mask)


CASE = Case(
    lambda: Rope(D),
    turned,
    mutants=[
        (
            "rotary turns the wrong way",
            "torch.stack([a * cos - b * sin, a * sin + b * cos], -1)",
            "torch.stack([a * cos + b * sin, b * cos - a * sin], -1)",
        ),
        (
            "rotary counts from 1",
            "angle = i[:, None].double() * speeds",
            "angle = (i[:, None].double() + 1) * speeds",
        ),
        (
            "halves exchanged",
            "a, b = X.chunk(2, -1)",
            "b, a = X.chunk(2, -1)",
        ),
    ],
)
