"""Copy three to the left; neighbours or itself: the answers, what is measured and stored."""

from __future__ import annotations

from typing import Any

import torch

import tfviz_lab
from tfviz_lab.priors import gaussian_bias, gaussian_localness


def test_sums_are_those_of_the_places_beside() -> None:
    rows = torch.tensor([[1, 3, 2, 0]])
    assert gaussian_bias.sums("neighbours", rows).tolist() == [[3, 3]]
    assert gaussian_bias.sums("mostly itself", rows).tolist() == [[9, 7]]


def test_a_copier_that_is_right_is_counted_as_right() -> None:
    rows = torch.randint(gaussian_localness.SYMBOLS, (5, gaussian_localness.LENGTH))

    def copies(x: torch.Tensor) -> torch.Tensor:
        asked = x.roll(gaussian_localness.AWAY, 1)
        return torch.nn.functional.one_hot(asked, gaussian_localness.SYMBOLS)

    assert gaussian_localness.right(copies, rows) == 1  # type: ignore[arg-type]


def test_a_few_steps_repeat_exactly() -> None:
    config = {"core": "query", "steps": 2}
    found = gaussian_localness.measure(config, 1)
    assert found == gaussian_localness.measure(config, 1)
    assert len(found["places"]) == len(found["windows"]) == gaussian_localness.LENGTH
    two = {"task": "neighbours", "core": "prior", "steps": 2}
    assert gaussian_bias.measure(two, 1) == gaussian_bias.measure(two, 1)


def test_bells_are_those_of_the_head() -> None:
    model = gaussian_localness.Copier("layer")
    core: Any = model.stack.blocks[0].attend.core  # type: ignore[union-attr]
    core.to_centre.weight.data.zero_()
    core.to_centre.bias.data.zero_()
    p, D = gaussian_localness.bells(model, torch.zeros(2, gaussian_localness.LENGTH).long())
    assert torch.allclose(p, torch.full_like(p, (gaussian_localness.LENGTH - 1) / 2))  # σ(0) = ½
    assert torch.allclose(D, torch.full_like(D, 25.1))


def test_stored_results_have_all_of_it() -> None:
    copied, summed = tfviz_lab.load("gaussian_localness"), tfviz_lab.load("gaussian_bias")
    assert set(copied["accuracy"]) == set(gaussian_localness.CORES)
    assert set(copied["places"]) == set(gaussian_localness.CORES) - {"no prior"}
    for seeds in copied["accuracy"].values():
        assert torch.tensor(seeds).shape == (3, len(copied["steps"]))
    assert set(summed["b"]) == {f"{task}, prior" for task in gaussian_bias.TASKS}
    assert set(summed["right"]) == {*summed["b"], "neighbours, no prior"}
    assert all(len(seeds) == 3 for seeds in summed["right"].values())
