"""Disagreement: cosines and overlaps by hand and in loops, limits, gradients through a model."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case
from refusals import of_no_kind, refused
from torch import Tensor

from tfviz import GPT
from tfviz.heads import disagreement_regularization as apart
from tfviz.heads.disagreement_regularization import (
    KINDS,
    agreement,
    between,
    cosines,
    disagreement,
    overlaps,
    pairs_of,
    values,
)
from tfviz.models.use import watched

close = partial(torch.testing.assert_close, atol=1e-12, rtol=1e-12)
H, L, D = 4, 6, 3


def drawn(*shape: int, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def weights(*shape: int, seed: int = 0) -> Tensor:
    return drawn(*shape, seed=seed).softmax(-1)


def test_three_heads_by_hand() -> None:
    """Token 0: (1, 0), (0, 2), (−3, 0); token 1: (1, 0), (1, 0), (0, 1)."""
    heads = torch.tensor(
        [[[1.0, 0.0], [1.0, 0.0]], [[0.0, 2.0], [1.0, 0.0]], [[-3.0, 0.0], [0.0, 1.0]]]
    ).double()
    close(cosines(heads), torch.tensor([[1, 0.5, -0.5], [0.5, 1, 0], [-0.5, 0, 1]]).double())
    close(disagreement(cosines(heads)), torch.tensor(-3 / 9, dtype=torch.float64))
    close(between(cosines(heads)), torch.tensor(0.0).double())


def test_two_maps_by_hand() -> None:
    """Query 0: both heads look at key 0; query 1: one half and half, the other at key 1."""
    A = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]]).double()
    close(overlaps(A), torch.tensor([[0.75, 0.75], [0.75, 1.0]]).double())
    close(disagreement(overlaps(A)), torch.tensor(-3.25 / 4, dtype=torch.float64))


def test_it_is_the_sum_in_loops() -> None:
    heads, A = drawn(2, H, L, D), weights(2, H, L, L)
    cosine, overlap = torch.zeros(2, dtype=torch.float64)
    for n in range(2):
        for a in range(H):
            for b in range(H):
                for i in range(L):
                    x, y = heads[n, a, i], heads[n, b, i]
                    cosine += x @ y / (x.norm() * y.norm()) / L
                    overlap += sum(A[n, a, i, j] * A[n, b, i, j] for j in range(L)) / L
    close(disagreement(cosines(heads)), -cosine / H**2 / 2)
    close(disagreement(overlaps(A)), -overlap / H**2 / 2)


def test_limits_of_the_cosines() -> None:
    """−1 for equal heads, −1/h for orthogonal ones; below that nothing stops them but 0."""
    equal = drawn(1, L, D).expand(H, L, D)
    close(disagreement(cosines(equal)), torch.tensor(-1.0).double())
    one_each = torch.eye(H).double()[:, None].expand(H, L, H)
    close(disagreement(cosines(one_each)), torch.tensor(-1 / H).double())
    opposite = torch.tensor([1.0, -1.0]).double()[:, None, None] * drawn(1, L, D)
    close(disagreement(cosines(opposite)), torch.tensor(0.0).double())
    angles = torch.arange(3) * 2 * math.pi / 3
    star = torch.stack([angles.cos(), angles.sin()], -1)[:, None].double()
    assert disagreement(cosines(star)).abs() < 1e-6 and between(cosines(star)) + 0.5 < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_it_lies_between_minus_one_and_zero(seed: int) -> None:
    heads = drawn(2, H, L, D, seed=seed)
    assert -1 <= disagreement(cosines(heads)) <= 0
    close(
        -disagreement(cosines(heads)),
        (heads / heads.norm(dim=-1, keepdim=True)).sum(1).square().sum(-1).mean() / H**2,
    )


def test_positions_are_least_alike_where_the_mean_map_is_uniform() -> None:
    """Four heads that look at a key of their own each, and four uniform ones: the same 1/4 with
    four keys. With more keys the uniform ones are less alike: disjoint is not the least."""
    uniform, one_hot = torch.full((4, 4, 4), 0.25).double(), torch.zeros(4, 4, 4).double()
    for a in range(4):
        one_hot[a, :, a] = 1
    close(disagreement(overlaps(one_hot)), torch.tensor(-0.25).double())
    close(disagreement(overlaps(uniform)), torch.tensor(-0.25).double())
    wide = torch.full((4, 4, 16), 1 / 16).double()
    spread = torch.cat([one_hot, torch.zeros(4, 4, 12)], -1)
    close(disagreement(overlaps(wide)), torch.tensor(-1 / 16).double())
    close(disagreement(overlaps(spread)), torch.tensor(-0.25).double())
    assert disagreement(overlaps(weights(4, 4, 16))) < -1 / 16


def test_the_order_of_heads_and_their_lengths_do_not_matter() -> None:
    heads, A = drawn(H, L, D), weights(H, L, L)
    order = torch.randperm(H)
    close(disagreement(cosines(heads[order])), disagreement(cosines(heads)))
    close(disagreement(overlaps(A[order])), disagreement(overlaps(A)))
    close(cosines(heads * torch.tensor([1.0, 2.0, 0.5, 7.0])[:, None, None]), cosines(heads))


def test_pairs_of_one_head_with_itself_have_no_gradient() -> None:
    """The mean over all pairs pushes where that over different ones pushes, 1 − 1/h as hard."""
    heads = drawn(H, L, D).requires_grad_()
    (all_pairs,) = torch.autograd.grad(-disagreement(cosines(heads)), heads)
    (others,) = torch.autograd.grad(between(cosines(heads)), heads)
    close(all_pairs, (1 - 1 / H) * others)


# --- of a model -----------------------------------------------------------------------------------


def model(**more: Any) -> Any:
    torch.manual_seed(0)
    return GPT(11, 12, H, 2, **more).double()


def tokens() -> Tensor:
    return torch.randint(11, (3, L), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_model_with_gradients(kind: str) -> None:
    """The mean over its two attentions, and what it pushes on: values alone feel "subspace",
    queries and keys alone "position", all three "output"."""
    gpt, d = model(), 12
    with values(gpt) as V:
        gpt(tokens())
        found = agreement(gpt, kind, V)
        per_layer = [x.mean() for x in pairs_of(gpt, kind, V).values()]
        close(found, torch.stack(per_layer).mean())
        last = gpt.stack.blocks[1].attend
        (gradient,) = torch.autograd.grad(per_layer[1], last.W_qkv.weight)
    queries, keys, of_values = (bool(x.abs().max() > 1e-9) for x in gradient.split(d))
    assert (queries, keys, of_values) == {
        "subspace": (False, False, True),
        "position": (True, True, False),
        "output": (True, True, True),
    }[kind]


def test_values_are_those_that_the_heads_use() -> None:
    gpt = model()
    with values(gpt) as V:
        gpt(tokens())
        for name, attend in gpt.named_modules():
            if name in V:
                close(attend.seen.A @ V[name], attend.seen.heads)
        assert len(V) == 2
    assert not any(m._forward_pre_hooks for m in gpt.modules())
    assert gpt.stack.blocks[0].attend.seen is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_down_makes_heads_less_alike(kind: str) -> None:
    gpt = model()
    optimiser = torch.optim.SGD(gpt.parameters(), 0.5)
    course = []
    for _ in range(6):
        with values(gpt) as V:
            gpt(tokens())
            loss = agreement(gpt, kind, V)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        course.append(loss.item())
    assert course[-1] < course[0] - 1e-3


def test_bad_input_is_named() -> None:
    refused("heads has shape (6, 3) … give (…, h, L, d_h)", cosines, drawn(L, D))
    refused("A has shape (6, 6) … a map for each head", overlaps, weights(L, L))
    refused("at least two heads", between, torch.ones(1, 1))
    gpt = model()
    refused("kind = 'shape' … subspace, position, output", pairs_of, gpt, "shape")
    refused("nobody watches … with watched(model)", agreement, gpt, "output")
    refused("V = None … with values(model) as V", agreement, gpt, "subspace")
    refused("model = Linear has no attention", agreement, torch.nn.Linear(2, 2), "output")
    function = model(core=lambda: lambda Q, K, V, where: (V, None))
    of_no_kind("has a function as its core", lambda: values(function).__enter__())
    with watched(function):
        function(tokens())
        refused("makes no weights … 'output'", agreement, function, "position")
    assert apart.KINDS == ("subspace", "position", "output")


CASE = Case(
    mutants=[
        ("longer heads that weigh more", "unit = F.normalize(heads, dim=-1)", "unit = heads"),
        (
            "the sum over tokens",
            'torch.einsum("...aid,...bid->...ab", unit, unit) / heads.shape[-2]',
            'torch.einsum("...aid,...bid->...ab", unit, unit)',
        ),
        (
            "an overlap of columns",
            'torch.einsum("...aij,...bij->...ab", A, A) / A.shape[-2]',
            'torch.einsum("...aij,...bji->...ab", A, A) / A.shape[-2]',
        ),
        ("agreement that is rewarded", "return -pairs.mean()", "return pairs.mean()"),
        ("keys in place of values", "(name, given[2])", "(name, given[1])"),
        (
            "the first attention alone",
            "for x in pairs.values()]).mean()",
            "for x in pairs.values()])[0]",
        ),
    ],
)
