"""The signal of position and step: its formula, its swap, tensor2tensor's form."""

from __future__ import annotations

import math

import pytest
import torch
from laws import Case
from refusals import ranges, refused

from tfviz.longer_context import ut_time_position_signal as room
from tfviz.position.sinusoidal_pe import sinusoids, sinusoids_in_halves


@pytest.mark.parametrize(("d", "base"), [(8, 10_000.0), (6, 50.0)])
def test_it_is_the_formula(d: int, base: float) -> None:
    for t in (1, 4):
        found = room.time_position(torch.arange(7), t, d, base)
        for i in range(7):
            for m in range(d // 2):
                w = base ** (-2 * m / d)
                assert found[i, 2 * m] == pytest.approx(math.sin(i * w) + math.sin(t * w), abs=1e-5)
                even = math.cos(i * w) + math.cos(t * w)
                assert found[i, 2 * m + 1] == pytest.approx(even, abs=1e-5)


def test_position_and_step_may_be_swapped_unless_their_bases_differ() -> None:
    def code(i: int, t: int, **more: float) -> torch.Tensor:
        return room.time_position(torch.tensor(i), t, 16, **more)

    assert code(3, 5).equal(code(5, 3))
    assert (code(3, 5, step_base=100.0) - code(5, 3, step_base=100.0)).norm() > 0.1
    others = [code(i, t) for i in range(8) for t in range(1, 8) if {i, t} != {3, 5}]
    assert min((code(3, 5) - x).norm() for x in others) > 0.3


def test_tensor2tensors_form() -> None:
    """get_timing_signal_1d(length, d)[i] + get_timing_signal_1d(steps, d)[step], step from 0."""
    d = 8

    def timing(place: int) -> list[float]:
        speeds = [math.exp(-n * math.log(1e4) / (d // 2 - 1)) for n in range(d // 2)]
        return [math.sin(place * w) for w in speeds] + [math.cos(place * w) for w in speeds]

    for i, step in ((0, 0), (5, 2), (2, 5)):
        wanted = torch.tensor(timing(i)) + torch.tensor(timing(step))
        ours = sinusoids_in_halves(torch.tensor(i), d) + sinusoids_in_halves(torch.tensor(step), d)
        torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=0)


def test_modules_tell_place_and_step_apart_and_together() -> None:
    i = torch.arange(5)
    signal = room.TimePosition(8, scale=0.5)
    torch.testing.assert_close(signal(i, 3), 0.5 * room.time_position(i, 3, 8))
    apart = room.TimePosition(8, step_base=100.0)
    torch.testing.assert_close(apart(i, 3), room.time_position(i, 3, 8, step_base=100.0))
    assert apart.place(i).equal(signal.place(i) / 0.5) and not apart.step(3).equal(signal.step(3))
    assert room.TimePosition(8, steps=False)(i, 3).equal(sinusoids(i, 8))
    learned = room.LearnedSteps(8, T=4)
    assert learned(i, 4).equal(sinusoids(i, 8) + learned.E[3])
    learned(i, 2).sum().backward()
    assert learned.E.grad is not None and learned.E.grad[1].any() and not learned.E.grad[0].any()


def test_errors_name_the_argument() -> None:
    ranges(room.LearnedSteps(8, T=4).step, t=(2, 1, 4))
    refused("d = 7", room.TimePosition, 7)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "steps that are told at the speed of places",
            "self.step_base = step_base or base",
            "self.step_base = base",
        ),
        (
            "a step that is told in cosines where sines stand",
            "+ sinusoids(torch.tensor(t), d, step_base or base)",
            "+ sinusoids(torch.tensor(t), d, step_base or base).flip(-1)",
        ),
    ],
)
