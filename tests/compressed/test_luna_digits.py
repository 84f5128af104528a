"""The experiment with Luna on digits: what is handed from layer to layer, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tfviz_lab import compare
from tfviz_lab.compressed import luna_digits as experiment
from tfviz_lab.protocol import WHICH_DIGIT


def packing_queries(variant: str) -> list[torch.Tensor]:
    """What W^p of the second layer gets, for each of two batches of images."""
    task = WHICH_DIGIT.task(0)
    model: Any = compare.model(experiment.VARIANTS[variant], task, 0)
    seen: list[torch.Tensor] = []
    model.stack.blocks[1].attend.core.W_p.register_forward_pre_hook(
        lambda _, given: seen.append(given[0].detach())
    )
    for n in (0, 1):
        model(task.inputs(torch.Generator().manual_seed(n)))
    return seen


@pytest.mark.parametrize("variant", ["l = 1", "l = 4"])
def test_the_second_layer_packs_with_what_the_first_has_packed(variant: str) -> None:
    one, other = packing_queries(variant)
    assert one.shape[-2] == int(variant[-1]) and not torch.allclose(one, other)


def test_what_stays_is_the_same_for_all_images_and_each_layers_own() -> None:
    one, other = packing_queries("stays")
    assert one.shape[-2] == 4 and one.equal(other)
    model: Any = compare.model(experiment.VARIANTS["stays"], WHICH_DIGIT.task(0), 0)
    first, second = (block.attend.core.P for block in model.stack.blocks)
    assert first is not second and not first.equal(second)
