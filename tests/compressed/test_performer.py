"""Performer: positive features, their mean and their variance, and what orthogonal ones save."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from laws import (
    Case,
    D,
    Function,
    H,
    agree_with_gradients,
    qkv,
    work_grows_no_faster,
)
from random_directions import directions_are_saved, drawn
from refusals import refused
from streams import (
    CAUSAL,
    it_writes_and_resumes_with_one_size,
    parts_of_a_long_text_go_on,
    small_gpt,
)
from three import three
from torch import Generator, Tensor

from tfviz import BERT, GPT, attention, implied_map, patterns
from tfviz.compressed import performer, rfa
from tfviz.cores import Where


def pair(angle: float, length: float = 1.5, d: int = 2) -> tuple[Tensor, Tensor]:
    """Two vectors of this length, and the angle between them in degrees."""
    x, y = torch.zeros(2, d).double()
    x[0] = length
    y[0] = length * math.cos(math.radians(angle))
    y[1] = length * math.sin(math.radians(angle))
    return x, y


def estimates(
    x: Tensor, y: Tensor, W: Tensor, m: int, features: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Of e^(x yᵀ), one for each m of the directions, all at once."""
    W = W.unflatten(0, (-1, m))
    return torch.linalg.vecdot(features(x, W), features(y, W))


def trigonometric(x: Tensor, W: Tensor) -> Tensor:
    """Half as many directions, so that there are as many features."""
    return rfa.fourier_features(x, W[..., : W.shape[-2] // 2, :]) * (x @ x / 2).exp()


# --- numbers by hand ------------------------------------------------------------------------------


def test_one_direction_by_hand() -> None:
    """w = ln 2 and x = 1, y = −1: the features are 2 and ½ times e^(−½). The product is e^(−1),
    which is the kernel: at y = −x it is exact with any direction."""
    W = torch.tensor([[math.log(2)]], dtype=torch.float64)
    x, y = torch.tensor([[1.0], [-1.0]]).double()
    features = torch.stack([performer.softmax_features(z, W) for z in (x, y)])
    torch.testing.assert_close(features, math.exp(-0.5) * torch.tensor([[2.0], [0.5]]).double())
    assert math.isclose(features.prod(), math.exp(-1))
    same = performer.softmax_features(x, W) @ performer.softmax_features(x, W)
    assert math.isclose(same, 4 / math.e)  # e would be right
    both = performer.softmax_features(x, W, hyperbolic=True)
    torch.testing.assert_close(both, math.exp(-0.5) * torch.tensor([2.0, 0.5]).double() / 2**0.5)


def test_three_tokens_by_hand() -> None:
    """One number a head: the query 2, keys 0, 1 and −1, w = ln 2, so that features of the keys are
    1, 2 e^(−½) and ½ e^(−½). The query's single feature cancels."""
    W = torch.tensor([[math.log(2)]], dtype=torch.float64)
    K = torch.tensor([0.0, 1.0, -1.0]).double()[None, None, :, None]
    Q, V = torch.full_like(K, 2.0), torch.eye(3).double()[None, None]
    features = torch.tensor([1.0, 2 * math.exp(-0.5), 0.5 * math.exp(-0.5)]).double()
    A = performer.performer_definition(Q, K, V, W)[1]
    torch.testing.assert_close(A[0, 0, 0], features / features.sum())
    torch.testing.assert_close(performer.performer_attention(Q, K, V, W), A)


def test_the_equations_in_loops() -> None:
    Q, K, V = (x[1, 0] for x in qkv(11))
    W = drawn(32, D)

    def phi(x: Tensor) -> Tensor:
        x = x / D**0.25
        return torch.stack([torch.exp(w @ x - x @ x / 2) for w in W]) / 32**0.5

    rows, recurrent = [], []
    S, z = torch.zeros(32, D).double(), torch.zeros(32).double()
    for q, k, v in zip(Q, K, V, strict=True):
        S, z = S + torch.outer(phi(k), v), z + phi(k)
        recurrent.append(phi(q) @ S / (phi(q) @ z))
        shares = torch.stack([phi(q) @ phi(other) for other in K])
        rows.append(shares @ V / shares.sum())
    X = three(x[None, None] for x in (Q, K, V))
    torch.testing.assert_close(performer.performer_attention(*X, W)[0, 0], torch.stack(rows))
    got = performer.performer_attention(*X, W, True)[0, 0]
    torch.testing.assert_close(got, torch.stack(recurrent))


# --- the features ---------------------------------------------------------------------------------

MANY = 20_000


def far_from_the_kernel(
    W: Tensor, angle: float, features: Callable[[Tensor, Tensor], Tensor]
) -> float:
    """The mean estimate's distance from exp(x yᵀ), in standard errors; 0 where it is exact."""
    x, y = pair(angle, 1.0)
    found = estimates(x, y, W, 2, features)
    assert (found > 0).all()
    error = max(float(found.std()) / len(found) ** 0.5, 1e-12)
    return abs(float(found.mean() - (x @ y).exp())) / error


@pytest.mark.parametrize("hyperbolic", [True, False])
@pytest.mark.parametrize("orthogonal", [True, False])
def test_the_mean_is_the_softmax_kernel(orthogonal: bool, hyperbolic: bool) -> None:
    """Within four standard errors. Exact at 180°, where the trigonometric ones are worst."""
    W = drawn(2 * MANY, 2, 1, orthogonal)
    features = partial(performer.softmax_features, hyperbolic=hyperbolic)
    assert all(far_from_the_kernel(W, angle, features) <= 4 for angle in (0, 60, 120, 180))
    if not hyperbolic:
        exact = estimates(*pair(180, 1.0), W, 2, features)
        torch.testing.assert_close(exact, torch.full_like(exact, math.exp(-1)))


def test_these_drawings_are_enough_to_see_a_wrong_mean() -> None:
    """Directions 5 % too long, or a factor of 1.05, are far more than four errors off."""
    W = drawn(2 * MANY, 2, 1)
    right = performer.softmax_features
    assert far_from_the_kernel(1.05 * W, 60, right) > 6
    assert far_from_the_kernel(W, 120, lambda x, W: 1.05**0.5 * right(x, W)) > 6


def test_the_variance_is_that_of_lemma_2_and_the_two_are_mirror_images() -> None:
    """At |x| = |y| = 1.5 and with 64 features, relative squared errors at 45°, 90°, 135°: 33.9,
    1.39, .043 with positive features, .031, 1.38, 33.9 with sines and cosines of 32 directions."""

    def of_positive(x: Tensor, y: Tensor, m: int) -> float:
        return float(((x + y).pow(2).sum().exp() - 1) / m)

    def of_trigonometric(x: Tensor, y: Tensor, m: int) -> float:
        far = (x - y).pow(2).sum()
        return float((1 - (-far).exp()) ** 2 * far.exp() / m)  # m features: m/2 directions

    exact = [[of(*pair(a), 64) for a in (45, 90, 135)] for of in (of_positive, of_trigonometric)]
    wanted = [[33.9, 1.39, 0.043], [0.031, 1.38, 33.9]]
    torch.testing.assert_close(torch.tensor(exact), torch.tensor(wanted), rtol=0.03, atol=0.0005)
    W = drawn(4 * MANY, 2, 2, False)
    for angle in (45, 90, 135):  # shorter vectors: at 1.5, twenty thousand drawings are too few
        x, y = pair(angle, 0.7)
        true = float((x @ y).exp())
        for of, features in (
            (of_positive, performer.softmax_features),
            (of_trigonometric, trigonometric),
        ):
            found = estimates(x, y, W, 4, features) / true
            assert abs(float((found - 1).pow(2).mean()) / of(x, y, 4) - 1) < 0.15


def test_orthogonal_directions_lower_the_variance() -> None:
    """Theorem 2 proves it for m ≤ d."""
    for angle in (45, 90, 135):
        x, y = pair(angle, 0.6, d=8)
        errors = []
        for orthogonal in (True, False):
            W = drawn(8 * 4000, 8, 3, orthogonal)
            found = estimates(x, y, W, 8, performer.softmax_features)
            errors.append(float((found - (x @ y).exp()).pow(2).mean()))
        assert errors[0] < 0.97 * errors[1], (angle, errors)


def test_directions_of_one_length_estimate_another_kernel() -> None:
    """√d in place of lengths from χ_d is the regularised kernel of the paper: its mean is lower."""
    W = drawn(2 * MANY, 2, 4)
    x, y = pair(0, 1.0)
    even = W / W.norm(dim=1, keepdim=True) * 2**0.5
    found = estimates(x, y, even, 2, performer.softmax_features)
    assert found.mean() + 6 * found.std() / MANY**0.5 < (x @ y).exp()


def test_no_feature_is_ever_negative_and_rows_sum_to_one() -> None:
    for hyperbolic in (True, False):
        Q, K, V = qkv(24)
        core = performer.Performer(D, 3, hyperbolic=hyperbolic).double()
        A = implied_map(core, Q, K, V, CAUSAL)
        assert (A >= 0).all()
        torch.testing.assert_close(A.sum(-1), torch.ones(2, H, 24).double())


def test_many_features_give_softmax_attention() -> None:
    Q, K, V = qkv(12)
    W = drawn(40_000, D)
    exact = attention(Q / 2, K / 2, V)[0]
    got = performer.performer_attention(Q / 2, K / 2, V, W)
    assert (got - exact).abs().max() < 0.05


def test_large_queries_do_not_round_to_nothing() -> None:
    """A query's largest exponent is subtracted. All features of a key may round to 0: then 0."""
    Q, K, V = (x.float() for x in qkv())
    W = drawn(64, D).float()
    literal = performer.performer_definition(12 * Q, K, V, W)[0]
    got = performer.performer_attention(12 * Q, K, V, W)
    assert (literal == 0).any() and (got != 0).all()
    wanted = performer.performer_definition(12 * Q.double(), K.double(), V.double(), W.double())[0]
    torch.testing.assert_close(got.double(), wanted, atol=1e-3, rtol=1e-3)
    Q, K, V = (x.requires_grad_() for x in (Q, 1e4 * K, V))
    out = performer.performer_attention(Q, K, V, W)
    out.sum().backward()
    assert (out == 0).all()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in (Q, V))


# --- in a model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [5, 64, 150])
def test_gradients_of_the_masked_definition(length: int) -> None:
    leaves = three(x[:, :2].requires_grad_() for x in qkv(length))
    W = drawn(16, D)
    wanted = performer.performer_definition(*leaves, W, patterns.causal().mask(length))[0]
    agree_with_gradients(performer.performer_attention(*leaves, W, True), wanted, leaves)


def gpt() -> GPT:
    return small_gpt(partial(performer.Performer, m=20))


def test_what_it_keeps_has_one_size_and_goes_on() -> None:
    parts_of_a_long_text_go_on(performer.Performer)
    # layers, heads, features, values and the sum
    it_writes_and_resumes_with_one_size(gpt, 2 * 2 * 20 * 9)


def test_directions_are_saved() -> None:
    directions_are_saved(partial(performer.Performer, m=20))
    t = torch.zeros(1, 3).long()
    assert BERT(11, 16, 2, 2, core=performer.Performer)(t).isfinite().all()


def test_the_same_seed_draws_the_same_directions_and_redrawing_others() -> None:
    core = performer.Performer(4, 6)
    core.redraw(Generator().manual_seed(3))
    first = core.W.clone()
    core.redraw()
    assert not core.W.equal(first)
    core.redraw(Generator().manual_seed(3))
    assert core.W.equal(first)
    block = core.W[:4] @ core.W[:4].T
    torch.testing.assert_close(block, block.diagonal().diag(), atol=1e-5, rtol=0)
    alone = performer.Performer(4, 6, orthogonal=False).W
    assert (alone[:4] @ alone[:4].T).triu(1).abs().max() > 0.1


# --- the code of others ---------------------------------------------------------------------------


def test_parity_with_fast_transformers() -> None:
    """`Favor`: features in both directions, vectors times √t for t = 1/√d, m features of m/2
    directions. `stabilize` subtracts the largest |x|² of a text, which cancels."""
    Q, K, V = qkv(20)
    omega = drawn(12, D).T

    def theirs(x: Tensor, stabilize: bool) -> Tensor:
        x = x * D**-0.25
        squares = torch.einsum("...d,...d->...", x, x).unsqueeze(-1)
        u = x.unsqueeze(-2).matmul(omega).squeeze(-2)
        offset = squares * 0.5 + 0.5 * math.log(24)
        if stabilize:
            offset = offset + squares.max(2, keepdim=True)[0]
        return torch.cat([torch.exp(u - offset), torch.exp(-u - offset)], dim=-1)

    for stabilize in (False, True):
        q, k = theirs(Q, stabilize), theirs(K, stabilize)
        wanted = q @ (k.mT @ V) / (q * k.sum(2, keepdim=True)).sum(-1, keepdim=True)
        got = performer.performer_attention(Q, K, V, omega.T, hyperbolic=True)
        torch.testing.assert_close(got, wanted)


def stabilised(Q: Tensor, K: Tensor, V: Tensor, W: Tensor, dims: Any, eps: float) -> Tensor:
    """`nonnegative_softmax_kernel_feature_creator` of the authors (google-research, performer), and
    causal attention; the largest exponent of keys is taken over `dims`."""

    def features(x: Tensor, dims: Any) -> Tensor:
        x = x * x.shape[-1] ** -0.25
        u = torch.einsum("bhld,md->bhlm", x, W)
        diagonal = x.pow(2).sum(-1, keepdim=True) / 2
        return len(W) ** -0.5 * (torch.exp(u - diagonal - u.amax(dims, keepdim=True)) + eps)

    q, k = features(Q, -1), features(K, dims)
    products = (q @ k.mT).tril()
    return products / products.sum(-1, keepdim=True) @ V


def test_parity_with_the_authors_code_and_what_its_epsilon_does() -> None:
    """Without their ε the largest exponents cancel. With it, features that are small beside the
    largest of all keys become ε: so a key of the future changes an answer, and one so large makes
    all weights even."""
    Q, K, V = qkv(20)
    W = drawn(16, D)
    ours = performer.performer_attention(Q, K, V, W, True)
    torch.testing.assert_close(stabilised(Q, K, V, W, (-2, -1), 0.0), ours)
    theirs = stabilised(Q, K, V, W, (-2, -1), 1e-6)
    assert 1e-9 < (theirs - ours).abs().max() < 0.01
    later = K.clone()
    later[:, :, -1] *= 40
    first = slice(0, 19)
    leaked = stabilised(Q, later, V, W, (-2, -1), 1e-6)[:, :, first]
    assert (leaked - theirs[:, :, first]).abs().max() > 0.1
    causal = performer.performer_attention(Q, later, V, W, True)[:, :, first]
    assert causal.equal(ours[:, :, first])
    even = V.cumsum(2) / torch.arange(1, 21)[:, None]
    torch.testing.assert_close(leaked, even[:, :, first], atol=0.02, rtol=0.02)


def test_parity_with_the_package_performer_pytorch() -> None:
    """It is the authors' code with 1e-4 in place of 1e-6: it subtracts the largest exponent of a
    text's keys, so there, too, a later key reaches earlier answers. Its causal form without CUDA
    adds 1e-6 to each sum of features on top, and its rows sum to less than one."""
    theirs = pytest.importorskip("performer_pytorch.performer_pytorch")
    Q, K, V = qkv(20)
    W = drawn(16, D)

    def package(K: Tensor, V: Tensor, causal: bool, eps: float, added: float = 0.0) -> Tensor:
        q = theirs.softmax_kernel(Q, projection_matrix=W, is_query=True, eps=eps)
        k = theirs.softmax_kernel(K, projection_matrix=W, is_query=False, eps=eps)
        if causal:
            return torch.as_tensor(theirs.causal_linear_attention_noncuda(q, k, V, eps=added))
        return torch.as_tensor(theirs.linear_attention(q, k, V))

    for causal in (False, True):
        ours = performer.performer_attention(Q, K, V, W, causal)
        torch.testing.assert_close(package(K, V, causal, 0.0), ours)
    wanted = stabilised(Q, K, V, W, (-2, -1), 1e-4)
    torch.testing.assert_close(package(K, V, True, 1e-4), wanted)
    assert (wanted - ours).abs().max() > 1e-4
    later = torch.cat([K[:, :, :19], 9 * K[:, :, 19:]], 2)
    leaked = package(later, V, True, 1e-4)[:, :, :19] - wanted[:, :, :19]
    assert leaked.abs().max() > 0.01
    sums = package(K, torch.ones_like(V), True, 1e-4, added=1e-6)
    assert (sums < 1).all() and sums.min() > 0.9


def test_the_package_draws_its_directions_as_ours_but_for_signs() -> None:
    """Blocks at right angles, lengths like those of Gaussian rows. But it takes a QR decomposition
    as it comes, whose signs are fixed: some number is never negative in any of its draws."""
    theirs = pytest.importorskip("performer_pytorch.performer_pytorch")
    torch.manual_seed(0)
    made = theirs.gaussian_orthogonal_random_matrix(6, 4)
    block = made[:4] @ made[:4].T
    torch.testing.assert_close(block, block.diagonal().diag(), atol=1e-5, rtol=0)
    draws = [theirs.gaussian_orthogonal_random_matrix(4, 4) for _ in range(50)]
    ours = [performer.directions(4, 4) for _ in range(50)]
    one_sided = [bool((torch.stack(x) <= 0).all(0).any()) for x in (draws, ours)]
    assert one_sided == [True, False]
    all_alike = theirs.gaussian_orthogonal_random_matrix(8, D, scaling=1)
    torch.testing.assert_close(all_alike.norm(dim=1), torch.full((8,), D**0.5))


# --- costs and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_work_and_memory_grow_with_the_length(causal: bool) -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        core, where = performer.Performer(16, 32), CAUSAL if causal else Where()
        return lambda *X: core(*X, where)[0]

    work_grows_no_faster(attend, 1.05)


def test_bad_input_is_named() -> None:
    X = three(x.detach() for x in qkv())
    refused("m = 0 is out of range; choose m >= 1", performer.Performer, 4, 0)
    refused("d_head = 0 is out of range; choose d_head >= 1", performer.Performer, 0)
    words = "W have shape (5, 3), for heads of 3 numbers; there are heads of 8: make W for those"
    refused(words, performer.performer_attention, *X, drawn(5, 3))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def over_all(causal: bool) -> Function:
    def defined(Q: Tensor, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        mask = patterns.causal().mask(Q.shape[2]) if causal else None
        return performer.performer_definition(Q, K, V, drawn(32, Q.shape[-1]), mask)

    def attend(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
        return performer.performer_attention(Q, K, V, drawn(32, max(1, Q.shape[-1])), causal)

    return Function(attend, defined)


CASE = Case(
    lambda: performer.Performer(D, 12),
    lambda core, Q, K, V, mask: performer.performer_definition(Q, K, V, core.W, mask),
    forgets=True,
    functions={"performer": over_all(False), "causal performer": over_all(True)},
    variants={
        "hyperbolic": Case(
            lambda: performer.Performer(D, 6, hyperbolic=True),
            lambda core, Q, K, V, mask: performer.performer_definition(
                Q, K, V, core.W, mask, hyperbolic=True
            ),
            forgets=True,
        )
    },
    mutants=[
        (
            "a query's largest exponent of all",
            "u.detach().amax(-1, keepdim=True)",
            "u.detach().amax()",
        ),
        ("exponents that grow with a query", "u -= u.detach()", "u -= 0 * u.detach()"),
        ("features without their factor", "x.pow(2).sum(-1, keepdim=True) + math", "math"),
        ("the scores' scale for each side", "X * d**-0.25", "X * d**-0.5"),
        ("directions drawn one by one", "self.orthogonal, rng", "False, rng"),
    ],
)
