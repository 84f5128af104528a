"""Sinusoidal positions: numbers by hand, rotation and Toeplitz form, what others wrote, mutants."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from laws import Case
from refusals import ranges, refused
from torch import Tensor

from tfviz.formula import Formula
from tfviz.position.sinusoidal_pe import (
    Sinusoidal,
    hand,
    shift,
    similarity,
    sinusoid,
    sinusoids,
    sinusoids_in_halves,
    speeds,
    wavelengths,
)

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
PLACES = torch.arange(40)


def test_golden_numbers() -> None:
    # d = 4, base 100: speeds 1 and 1/10. Sine and cosine of 0, 1, 2 and of 0, .1, .2 from a table.
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.841471, 0.540302, 0.099833, 0.995004],
        [0.909297, -0.416147, 0.198669, 0.980067],
    ]
    close(sinusoids(torch.arange(3), 4, base=100.0), torch.tensor(expected))
    close(speeds(4, 100.0), torch.tensor([1.0, 0.1]))
    close(wavelengths(4, 100.0), torch.tensor([6.283185, 62.83185]))
    close(similarity(torch.tensor([0, 1]), 4, 100.0), torch.tensor([2.0, 1.535306]))
    turned = [[0.540302, 0.841471], [-0.841471, 0.540302]]
    close(shift(1, 4, 100.0)[:2, :2], torch.tensor(turned))


def test_the_longest_wave_stays_below_the_quoted_one() -> None:  # erratum E11
    assert wavelengths(16).max().item() == pytest.approx(19_869, abs=1)
    assert wavelengths(16).max() < 2 * math.pi * 10_000
    assert wavelengths(16).min().item() == pytest.approx(2 * math.pi)


def test_counted_from_one_rows_have_no_constant_length() -> None:  # erratum E11
    # δ = 1 … d with δ = 2δ' for the sine and 2δ' + 1 for the cosine, as printed
    i, delta, d = torch.arange(1, 9)[:, None], torch.arange(1, 9)[None], 8
    angle = i / 10_000 ** (2 * (delta // 2) / d)
    printed = torch.where(delta % 2 == 0, angle.sin(), angle.cos())
    assert printed.square().sum(1).std() > 0.1
    assert sinusoids(i[:, 0], d).square().sum(1).std() < 1e-5


@pytest.mark.parametrize("d", [2, 6, 32])
@pytest.mark.parametrize("base", [2.0, 10_000.0])
def test_the_formula_and_the_table_agree(d: int, base: float) -> None:
    i, c = PLACES[:, None], torch.arange(d)[None]
    close(sinusoid(i, c, d=d, base=base), sinusoids(PLACES, d, base))
    for place in (0, 3, 39):
        for m in range(d // 2):
            angle = place * base ** (-2 * m / d)
            row = sinusoids(torch.tensor(place), d, base)
            close(row[2 * m : 2 * m + 2], torch.tensor([math.sin(angle), math.cos(angle)]))


def test_the_formula_can_be_printed_and_runs_as_javascript() -> None:
    formula = Formula(sinusoid)
    assert "Math.sin" in formula.javascript() and "Math.cos" in formula.javascript()
    assert r"\sin" in formula.latex()
    assert "Math.cos" in Formula(hand).javascript()
    k, m = torch.arange(-5, 60), torch.arange(8)
    close(hand(k[:, None], m, d=16).sum(-1), similarity(k, 16))


# --- invariants, and variants that must not have them --------------------------------------------

Rows = Callable[[Tensor, int], Tensor]


def constant_length(rows: Rows, d: int) -> bool:
    squared = rows(PLACES, d).square().sum(-1)
    return torch.allclose(squared, torch.full_like(squared, d / 2), atol=1e-4)


def toeplitz(rows: Rows, d: int) -> bool:
    P = rows(PLACES, d)
    expected = similarity(PLACES[:, None] - PLACES, d)
    return torch.allclose(P @ P.T, expected, atol=1e-3)


def turns(rows: Rows, d: int) -> bool:
    P = rows(torch.arange(80), d)
    return all(torch.allclose(P[k:], P[: 80 - k] @ shift(k, d).T, atol=1e-4) for k in (0, 1, 5, 40))


def first_row(rows: Rows, d: int) -> bool:
    return torch.equal(rows(PLACES, d)[0], torch.tensor([0.0, 1.0]).repeat(d // 2))


INVARIANTS = (constant_length, toeplitz, turns, first_row)


@pytest.mark.parametrize("holds", INVARIANTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("d", [2, 8, 64])
def test_invariants(holds: Callable[[Rows, int], bool], d: int) -> None:
    assert holds(sinusoids, d)
    assert sinusoids(PLACES, d).abs().max() <= 1


def single_speed_each(i: Tensor, d: int) -> Tensor:
    """Every feature at a speed of its own: sine and cosine do not pair up."""
    c = torch.arange(d)
    angle = i[:, None] * 10_000.0 ** (-c / d)
    return torch.where(c % 2 == 0, angle.sin(), angle.cos())


def no_minus(i: Tensor, d: int) -> Tensor:
    angle = i[:, None] * 10_000.0 ** (torch.arange(0, d, 2) / d)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


def cosine_first(i: Tensor, d: int) -> Tensor:
    return sinusoids(i, d).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)


MUTANTS: dict[str, tuple[Rows, Callable[[Rows, int], bool]]] = {
    "a speed for each feature": (single_speed_each, constant_length),
    "cosine first": (cosine_first, turns),
    "counted from one": (lambda i, d: sinusoids(i + 1, d), first_row),
    "exponent without its minus": (no_minus, toeplitz),
    "another base": (lambda i, d: sinusoids(i, d, 100.0), toeplitz),
    "stretched, in halves": (sinusoids_in_halves, turns),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_variants_are_noticed(name: str) -> None:
    rows, holds = MUTANTS[name]
    assert not holds(rows, 8)


def test_a_shift_is_a_rotation_and_shifts_add_up() -> None:
    M = shift(3, 8)
    close(M @ M.T, torch.eye(8))
    close(torch.linalg.det(M), torch.tensor(1.0))
    close(shift(3, 8) @ shift(4, 8), shift(7, 8))
    close(shift(-3, 8), M.T)
    close(shift(0, 8), torch.eye(8))


def test_any_position_also_between_and_before() -> None:
    half = sinusoids(torch.tensor([0.5, -1.0]), 4, 100.0)
    close(half[0, :2], torch.tensor([math.sin(0.5), math.cos(0.5)]))
    close(half[1], torch.tensor([-0.841471, 0.540302, -0.099833, 0.995004]))
    assert sinusoids(torch.arange(6).reshape(2, 3), 4).shape == (2, 3, 4)


def test_base_one_is_a_single_clock() -> None:
    close(similarity(PLACES, 8, 1.0), 4 * PLACES.float().cos())


# --- what others wrote ---------------------------------------------------------------------------


def test_distilbert_has_the_same_table() -> None:
    module = pytest.importorskip("transformers.models.distilbert.modeling_distilbert")
    theirs = torch.empty(50, 16)
    module.create_sinusoidal_embeddings(n_pos=50, dim=16, out=theirs)
    close(theirs, sinusoids(torch.arange(50), 16))


def test_m2m100_has_the_form_in_halves() -> None:
    module = pytest.importorskip("transformers.models.m2m_100.modeling_m2m_100")
    theirs = module.M2M100SinusoidalPositionalEmbedding.get_embedding(50, 16)
    close(theirs, sinusoids_in_halves(torch.arange(50), 16))
    assert not torch.allclose(
        theirs.sort(-1).values, sinusoids(torch.arange(50), 16).sort(-1).values
    )


# --- for a model ---------------------------------------------------------------------------------


def test_the_module_scales_and_has_no_parameters() -> None:
    module = Sinusoidal(8, base=50.0, scale=0.5)
    assert not list(module.parameters())
    close(module(PLACES), 0.5 * sinusoids(PLACES, 8, 50.0))


def test_bad_arguments_are_named() -> None:
    refused("d = 7 is odd", Sinusoidal, 7)
    ranges(partial(sinusoids, PLACES), d=(4, 2), base=(100.0, 1.0))
    ranges(wavelengths, d=(4, 2))
    refused("d = 2 has a single speed", sinusoids_in_halves, PLACES, 2)
    ranges(Sinusoidal, d=(4, 2), scale=(2.0,))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "sine and cosine exchanged",
            "return torch.stack([angle.sin(), angle.cos()], -1)",
            "return torch.stack([angle.cos(), angle.sin()], -1)",
        ),
    ],
)
