"""The soft dictionary: numbers by hand, the limits of β, the hull, and how many entries fit."""

from __future__ import annotations

import math
from functools import partial

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import ranges, refused
from three import Three, three

from tfviz.basics.soft_dictionary import hard_lookup, lookup, noisy_recall

close = torch.testing.assert_close


def tables(seed: int = 0, n: int = 5, d: int = 3, dv: int = 4) -> Three:
    rng = torch.Generator().manual_seed(seed)
    shapes = ((d,), (n, d), (n, dv))
    return three(torch.randn(*s, generator=rng, dtype=torch.float64) for s in shapes)


def test_golden_numbers() -> None:
    # Scores 0, 1, 2 at β = ln 2: weights 1 : 2 : 4.
    q = torch.tensor([1.0], dtype=torch.float64)
    K = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    V = torch.tensor([[7.0, 0.0], [0.0, 7.0], [7.0, 7.0]], dtype=torch.float64)
    z, a = lookup(q, K, V, beta=math.log(2))
    close(a, torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64) / 7)
    close(z, torch.tensor([5.0, 6.0], dtype=torch.float64))


def test_default_beta_is_one_over_root_d() -> None:
    q, K, V = tables(d=9)
    close(lookup(q, K, V), lookup(q, K, V, beta=1 / 3))


def test_ln_297_gives_99_percent_of_four_colours() -> None:
    keys = torch.eye(4, dtype=torch.float64)
    _, a = lookup(keys[2], keys, keys, beta=math.log(297))
    close(a[2], torch.tensor(0.99, dtype=torch.float64))


def test_limits_of_beta() -> None:
    q, K, V = tables()
    close(lookup(q, K, V, beta=0.0)[0], V.mean(0))
    close(hard_lookup(q, K, V), V[(K @ q).argmax()])
    close(lookup(q, K, V, beta=1e4)[0], V[(K @ q).argmax()])


def test_hard_lookup_shares_ties() -> None:
    K = torch.tensor([[1.0, 0.0], [1.0, 5.0], [0.0, 1.0]])
    V = torch.tensor([[2.0], [4.0], [100.0]])
    close(hard_lookup(torch.tensor([1.0, 0.0]), K, V), torch.tensor([3.0]))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 7), st.floats(0, 30))
def test_invariants(seed: int, n: int, beta: float) -> None:
    q, K, V = tables(seed, n)
    z, a = lookup(q, K, V, beta=beta)
    close(a.sum(), torch.ones((), dtype=torch.float64))
    assert (a >= 0).all()
    assert (z >= V.amin(0) - 1e-9).all() and (z <= V.amax(0) + 1e-9).all()
    shuffle = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    close(lookup(q, K[shuffle], V[shuffle], beta=beta)[0], z)
    # the same shift of every key adds one constant to all scores
    close(lookup(q, K + torch.ones_like(q), V, beta=beta)[1], a)


def test_hull_in_every_direction() -> None:
    q, K, V = tables(n=6, dv=2)
    for angle in torch.linspace(0, 2 * math.pi, 25, dtype=torch.float64):
        side = torch.stack([angle.cos(), angle.sin()])
        assert lookup(q, K, V, beta=3.0)[0] @ side <= (V @ side).max() + 1e-12


def test_one_table_serves_many_queries() -> None:
    _, K, V = tables()
    Q = torch.randn(2, 6, 3, dtype=torch.float64)
    z, a = lookup(Q, K, V, beta=0.7)
    assert z.shape == (2, 6, 4) and a.shape == (2, 6, 5)
    for b in range(2):
        for i in range(6):
            close((z[b, i], a[b, i]), lookup(Q[b, i], K, V, beta=0.7))


def test_gradient_reaches_the_query() -> None:
    q, K, V = tables()
    q.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: lookup(x, K, V, beta=1.3)[0], q)


def test_bad_input_is_named() -> None:
    q, K, V = tables()
    refused("queries have width 2, keys 3", lookup, q[:2], K, V)
    refused("5 keys, 4 values", lookup, q, K, V[:4])
    refused("K has shape (2, 5, 3)", lookup, q, K.expand(2, 5, 3), V)
    refused("beta = inf", lookup, q, K, V, beta=math.inf)
    ranges(partial(lookup, q, K, V), beta=(1.0, 0.0))
    ranges(noisy_recall, slots=(3, 1), d_k=(3, 1), trials=(2, 1), noise=(1.0, 0.0))


def test_recall_is_reproducible_and_perfect_with_one_slot() -> None:
    weight, first = noisy_recall(1, 4, trials=10)
    close(weight, torch.ones(10))
    assert first.all()
    close(noisy_recall(6, 4, trials=10, seed=3), noisy_recall(6, 4, trials=10, seed=3))
    assert not torch.equal(
        noisy_recall(6, 4, trials=10, seed=3)[0], noisy_recall(6, 4, trials=10)[0]
    )


def test_recall_follows_the_estimate() -> None:
    # Half of the weight at n ≈ e^(√d_k − 1); four times fewer and more lie clearly on both sides.
    for d_k in (16, 64):
        half = math.exp(d_k**0.5 - 1)
        few = noisy_recall(max(2, round(half / 4)), d_k, trials=128)[0].mean()
        many = noisy_recall(round(half * 4), d_k, trials=128)[0].mean()
        assert few > 0.55 and many < 0.4, (d_k, few, many)


def test_recall_without_noise_beats_recall_with_noise() -> None:
    clean, noisy = (noisy_recall(64, 16, noise=s, trials=200)[1].float().mean() for s in (0.0, 2.0))
    assert clean > noisy + 0.2
