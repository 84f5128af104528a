"""Copy three to the left; neighbours or itself: the answers, what is measured and stored."""

from __future__ import annotations

from typing import Any

import torch

import tfviz_lab
from tfviz_lab.priors import look_beside, three_left


def test_sums_are_those_of_the_places_beside() -> None:
    rows = torch.tensor([[1, 3, 2, 0]])
    assert look_beside.sums("neighbours", rows).tolist() == [[3, 3]]
    assert look_beside.sums("mostly itself", rows).tolist() == [[9, 7]]


def test_a_copier_that_is_right_is_counted_as_right() -> None:
    rows = torch.randint(three_left.SYMBOLS, (5, three_left.LENGTH))

    def copies(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(x.roll(three_left.AWAY, 1), three_left.SYMBOLS)

    assert three_left.right(copies, rows) == 1  # type: ignore[arg-type]


def test_a_few_steps_repeat_exactly() -> None:
    config = {"core": "query", "steps": 2}
    found = three_left.measure(config, 1)
    assert found == three_left.measure(config, 1)
    assert len(found["places"]) == len(found["windows"]) == three_left.LENGTH
    two = {"task": "neighbours", "core": "prior", "steps": 2}
    assert look_beside.measure(two, 1) == look_beside.measure(two, 1)


def test_bells_are_those_of_the_head() -> None:
    model = three_left.Copier("layer")
    core: Any = model.stack.blocks[0].attend.core  # type: ignore[union-attr]
    core.to_centre.weight.data.zero_()
    core.to_centre.bias.data.zero_()
    p, D = three_left.bells(model, torch.zeros(2, three_left.LENGTH).long())
    assert torch.allclose(p, torch.full_like(p, (three_left.LENGTH - 1) / 2))  # σ(0) = ½
    assert torch.allclose(D, torch.full_like(D, 25.1))


def test_stored_results_have_all_of_it() -> None:
    copied, summed = tfviz_lab.load("three_left"), tfviz_lab.load("look_beside")
    assert set(copied["accuracy"]) == set(three_left.CORES)
    assert set(copied["places"]) == set(three_left.CORES) - {"no prior"}
    for seeds in copied["accuracy"].values():
        assert torch.tensor(seeds).shape == (3, len(copied["steps"]))
    assert set(summed["b"]) == {f"{task}, prior" for task in look_beside.TASKS}
    assert set(summed["right"]) == {*summed["b"], "neighbours, no prior"}
    assert all(len(seeds) == 3 for seeds in summed["right"].values())
