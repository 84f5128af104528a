"""Rotary positions: angles by hand, the invariants, and what Llama and GPT-J compute."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import Case, D
from refusals import of_no_kind, ranges, refused
from torch import Tensor

from tfviz import attention
from tfviz.cores import Where
from tfviz.cores import given as given_from_outside
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
from tfviz.position.rope_scaling import yarn_temperature

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


# --- other speeds, a temperature, several axes ----------------------------------------------------


def test_the_usual_speeds_are_the_usual_bits() -> None:
    for X in (torch.randn(2, 3, 5, 8), rows(2, 3, 5, 8), torch.randn(2, 3, 5, 8).bfloat16()):
        usual = rotate(X, torch.arange(4, 9))
        for core in (Rope(8), Rope(8, speeds=speeds), Rope(8, speeds=speeds(8), temperature=1)):
            assert core.turn(X, 4).equal(usual)


def test_speeds_may_be_a_tensor_or_a_function_of_the_width() -> None:
    X, wanted = rows(2, 3, 5, 8), Rope(8, 500.0).turn(rows(2, 3, 5, 8), 2)
    for made in (speeds(8, 500.0), partial(speeds, base=500.0), lambda d: speeds(d, 500.0)):
        assert Rope(8, speeds=made).turn(X, 2).equal(wanted)
    close(Rope(8, speeds=speeds(8, 500.0).float()).turn(X, 2), wanted, atol=1e-6, rtol=0)
    assert Rope(8, speeds=torch.zeros(4)).turn(X, 2).equal(X)
    own = float64([3.0, 0.2])
    close(Rope(4, speeds=own).turn(X[..., :4], 1)[..., 2:], turned_at(X[..., 2:4], 0.2))
    assert not Rope(4, speeds=own).state_dict()  # they are no weights


def turned_at(X: Tensor, speed: float) -> Tensor:
    """Pairs at 1, 2, …, turned by hand."""
    angle = speed * torch.arange(1, 1 + X.shape[-2])
    c, s, (a, b) = angle.cos(), angle.sin(), X.unbind(-1)
    return torch.stack([a * c - b * s, a * s + b * c], -1)


def test_a_temperature_divides_the_scores_and_not_the_values() -> None:
    Q, K, V = (rows(2, 3, 5, 8, seed=n) for n in range(3))
    plain, cool = Rope(8), Rope(8, temperature=0.25)
    score = plain.turn(Q, 0) @ plain.turn(K, 0).mT
    close(cool.turn(Q, 0) @ cool.turn(K, 0).mT, score / 0.25)
    weights = torch.softmax(score / 8**0.5 / 0.25, -1)
    out, A = cool(Q, K, V, Where(need_weights=True))
    close(A, weights)
    close(out, weights @ V)


def test_each_axis_turns_pairs_of_its_own() -> None:
    X, y, x = rows(2, 3, 5, 8), rows(2, 5, seed=1), rows(2, 5, seed=2)
    core = Rope(8, 100.0, axes=2)
    with given_from_outside(positions=torch.stack([y, x], -1)):
        found = core.turn_queries(X, Where())
    for n in range(2):
        close(found[n, ..., :4], rotate(X[n, ..., :4], y[n], 100.0))
        close(found[n, ..., 4:], rotate(X[n, ..., 4:], x[n], 100.0))


def test_in_a_plane_only_differences_count_in_either_direction() -> None:
    Q, K = rows(1, 1, 6, 8), rows(1, 1, 6, 8, seed=1)
    plane = torch.cartesian_prod(torch.arange(2), torch.arange(3))[None]  # 2 rows of 3 patches
    core = Rope(8, speeds=float64([1.0, 0.3, 0.7, 0.1]), axes=2)

    def scores(shift: list[float]) -> Tensor:
        with given_from_outside(positions=plane + torch.tensor(shift)):
            return core.turn_queries(Q, Where()) @ core.turn_keys(K, Where()).mT

    close(scores([3.5, -8.0]), scores([0.0, 0.0]))
    with given_from_outside(positions=plane.flip(-1)):
        other = core.turn_queries(Q, Where()) @ core.turn_keys(K, Where()).mT
    assert not torch.allclose(other, scores([0.0, 0.0]))  # an axis is not the other one


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


def test_bad_speeds_temperatures_and_axes_are_named() -> None:
    ranges(Rope, d_head=(8, 2), temperature=(2.0,), axes=(1, 1))
    refused("temperature = 0 divides by zero", Rope, 4, temperature=0.0)
    refused("temperature = -1.0 is out of range", Rope, 4, temperature=-1.0)
    refused("speeds has shape (3,), and d_head = 8; give (4,)", Rope, 8, speeds=torch.ones(3))
    refused("speeds has shape (8,) … give (4,)", Rope, 8, speeds=torch.ones)
    refused("speeds has shape (4,) … give (2,), one", Rope, 8, speeds=lambda _: speeds(8), axes=2)
    refused("speeds holds NaN", Rope, 4, speeds=torch.tensor([1.0, math.nan]))
    refused("base = 500.0 makes speeds, and speeds are given", Rope, 4, 500.0, speeds=speeds)
    refused("d_head = 6, axes = 2: each axis needs pairs", Rope, 6, axes=2)
    of_no_kind("speeds is a list; give a tensor", Rope, 4, speeds=[1.0, 0.1])
    of_no_kind("speeds is a float; give a tensor", Rope, 4, speeds=lambda d: 1.0)
    of_no_kind("speeds has dtype torch.int64", Rope, 4, speeds=torch.arange(2))
    X = torch.randn(2, 3, 5, 8)
    refused("axes = 2: a token has 2 positions", Rope(8, axes=2), X, X, X, Where())
    refused("heads are 8 numbers wide; make it Rope(8)", Rope(4).turn, X, 0)


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


def turned_slowly(
    core: Rope, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    angle = torch.arange(Q.shape[2])[:, None] * SLOWED
    hands = torch.polar(torch.full_like(angle, 0.1 * math.log(4) + 1), angle)

    def turned(X: Tensor) -> Tensor:
        pairs = torch.view_as_complex(X.double().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * hands).flatten(-2).to(X)

    return attention(turned(Q), turned(K), V, mask)


SLOWED = float64([0.5, 0.3, 0.02, 0.0])
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
            "torch.arange(start, start + X.shape[-2], device=X.device)",
            "torch.arange(start + 1, start + 1 + X.shape[-2], device=X.device)",
        ),
        ("rows counted from 1", "i[:, None].double() * speeds", "(i[:, None] + 1.0) * speeds"),
        (
            "halves exchanged",
            "a, b = X.chunk(2, -1)",
            "b, a = X.chunk(2, -1)",
        ),
        ("scores multiplied by t", "self.temperature**-0.5", "self.temperature**0.5"),
        ("the scores' own factor on either side", "temperature**-0.5", "temperature**-1.0"),
        ("axes in turns", "i.repeat_interleave(n, -1)", "i.repeat(1, 1, n)"),
        ("speeds that nobody uses", "    if speeds is None:\n", "    if True:\n"),
    ],
    variants={
        "slowed": Case(
            lambda: Rope(D, speeds=SLOWED, temperature=yarn_temperature(4.0)), turned_slowly
        )
    },
)
