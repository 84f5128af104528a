"""Learn then Test: exact tails, valid p-values, and a promise that is kept over 1,000 draws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from laws import Case
from refusals import refused

from tfviz.adaptive.ltt_calibration import (
    binomial,
    fixed_sequence,
    hoeffding,
    hoeffding_bentkus,
    learn_then_test,
)

ALL = [hoeffding, binomial, hoeffding_bentkus]


def tail(k: int, n: int, delta: Fraction) -> float:
    return float(sum(math.comb(n, m) * delta**m * (1 - delta) ** (n - m) for m in range(k + 1)))


@pytest.mark.parametrize("n", [1, 29, 100])
def test_the_binomial_tail_is_exact(n: int) -> None:
    delta = Fraction(1, 10)
    wanted = [tail(k, n, delta) for k in range(n + 1)]
    np.testing.assert_allclose(binomial(np.arange(n + 1) / n, n, 0.1), wanted, rtol=1e-10)


def test_the_others_are_bounds_of_it() -> None:
    r, n, delta = np.arange(61) / 60, 60, 0.2
    exact, loose, tight = (p(r, n, delta) for p in (binomial, hoeffding, hoeffding_bentkus))
    assert (exact <= tight + 1e-12).all() and (tight <= loose + 1e-12).all()
    h1 = 0.1 * math.log(0.1 / 0.2) + 0.9 * math.log(0.9 / 0.8)
    by_hand = min(math.exp(-60 * h1), math.e * tail(6, 60, Fraction(1, 5)))
    assert hoeffding_bentkus(0.1, 60, 0.2) == pytest.approx(by_hand)
    assert hoeffding(0.1, 60, 0.2) == pytest.approx(math.exp(-1.2))


def test_a_count_is_not_rounded_up_by_a_last_digit() -> None:
    """0.29 · 100 is 28.999999999999996, 0.57 · 100 is 56.99999999999999, 0.07 · 100 is 7.000…01."""
    for lost in (7, 14, 28, 29, 55, 57, 58):
        wanted = math.e * tail(lost, 100, Fraction(3, 5))
        if wanted < 1:
            below = hoeffding_bentkus(lost / 100, 100, 0.6)
            assert below <= wanted * (1 + 1e-9)
    seven = math.e * tail(7, 100, Fraction(3, 20))
    assert 0.07 * 100 > 7 and hoeffding_bentkus(0.07, 100, 0.15) == pytest.approx(seven)


@pytest.mark.parametrize("p_value", [hoeffding, hoeffding_bentkus])
def test_a_risk_of_delta_is_never_rejected(p_value: object) -> None:
    assert (p_value(np.linspace(0.1, 1, 10), 500, 0.1) == 1).all()  # type: ignore[operator]


@pytest.mark.parametrize("p_value", ALL)
def test_p_values_are_valid(p_value: object) -> None:
    """If the risk is δ, P(p ≤ u) ≤ u: exactly, over all counts that can come out."""
    n, delta = 40, Fraction(1, 5)
    p = p_value(np.arange(n + 1) / n, n, 0.2)  # type: ignore[operator]
    chance = np.diff([0.0, *(tail(k, n, delta) for k in range(n + 1))])
    for u in np.linspace(0.001, 1, 200):
        assert chance[p <= u].sum() <= u + 1e-12


def test_the_walk_stops_at_the_first_that_stands() -> None:
    assert fixed_sequence([0.001, 0.05, 0.2, 0.001], 0.05) == 2
    assert fixed_sequence([0.2, 0.0], 0.05) == 0 and fixed_sequence([0.0, 0.0], 0.05) == 2


def test_losses_between_0_and_1() -> None:
    losses = np.random.default_rng(0).random((400, 3)) * [0.1, 0.3, 0.9]
    assert learn_then_test(losses, 0.2, 0.1, hoeffding_bentkus) == 2
    assert learn_then_test(losses, 0.2, 0.1, hoeffding) == 1  # a looser bound
    refused("need hoeffding_bentkus", learn_then_test, losses, 0.2, 0.1)


def promise(p_value: object, draws: int = 1000) -> tuple[float, float]:
    """(how often the risk is above δ, where that is likeliest; for the careless choice)."""
    rng, risks, n, delta, epsilon = np.random.default_rng(1), np.linspace(0, 0.4, 21), 100, 0.1, 0.1
    level = rng.random((draws, n, 1))  # a text is lost below its own level
    wrong = careless = 0
    for table in level < risks + 1e-3:
        count = learn_then_test(table, delta, epsilon, p_value)  # type: ignore[arg-type]
        wrong += count > 0 and risks[count - 1] + 1e-3 > delta
        safe = table.mean(0) <= delta
        careless += risks[safe.nonzero()[0].max()] + 1e-3 > delta
    return wrong / draws, careless / draws


@pytest.mark.parametrize("p_value", ALL)
def test_the_promise_is_kept_in_1000_draws(p_value: object) -> None:
    wrong, careless = promise(p_value)
    assert wrong <= 0.1 and careless > 0.3
    assert (wrong > 0.02) == (p_value is binomial)  # the bounds give away what the exact one uses


def test_more_texts_allow_more() -> None:
    rng, risks = np.random.default_rng(2), np.linspace(0, 0.4, 21)
    means = []
    for n in (30, 100, 1000):
        tables = rng.random((100, n, 1)) < risks
        means.append(np.mean([learn_then_test(table, 0.1, 0.1) for table in tables]))
    assert means[0] < means[1] < means[2]


def test_bad_input_is_named() -> None:
    refused("with values from 0 to 1", learn_then_test, [[2.0]], 0.1, 0.1)
    refused("epsilon = 0; choose it between 0 and 1", learn_then_test, [[0.0]], 0.1, 0)
    refused("delta = 1", learn_then_test, [[0.0]], 1, 0.1)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "a count that a last digit rounds up",
            " * n - 1e-9)",
            " * n)",
        ),
        (
            "a walk that passes over what stands",
            "return int(kept.argmax()) if kept.any() else len(kept)",
            "return int((~kept).sum())",
        ),
        (
            "a Bentkus tail without its factor",
            "np.e * binom.cdf",
            "1.0 * binom.cdf",
        ),
    ],
)
