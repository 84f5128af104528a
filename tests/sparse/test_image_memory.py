"""Memories of an image: what a pixel may know in each order, and what is stored."""

from __future__ import annotations

import pytest
import torch

import tfviz_lab
from tfviz.sparse.image_transformer_2d import generation_order
from tfviz_lab import compare
from tfviz_lab.sparse import image_memory


@pytest.mark.parametrize("name", image_memory.VARIANTS)
def test_no_pixel_knows_what_is_made_after_it(name: str) -> None:
    variant = image_memory.VARIANTS[name]
    order = generation_order(8, 8, *variant.block)
    assert not variant.pattern.mask(64).triu(1).any()
    model = image_memory.model(variant, seed=0)
    pixels = torch.randint(compare.LEVELS, (2, 64))
    changed = pixels.clone()
    changed[:, order[30:]] = (changed[:, order[30:]] + 5) % compare.LEVELS
    with torch.no_grad():
        before, after = model(pixels), model(changed)
    torch.testing.assert_close(before[:, order[:31]], after[:, order[:31]])
    assert not torch.allclose(before[:, order[31]], after[:, order[31]])


def test_line_by_line_is_the_model_of_the_other_experiment() -> None:
    made = image_memory.model(image_memory.VARIANTS["all before"], seed=3)
    other = compare.model(lambda: {}, "digits", 3)
    pixels = torch.randint(compare.LEVELS, (2, 64))
    torch.testing.assert_close(made(pixels), other(pixels))


def test_the_pairs_have_equal_keys_and_the_stored_result_is_of_them() -> None:
    keys = {n: image_memory.keys_per_row(v) for n, v in image_memory.VARIANTS.items()}
    for kind in ("few keys", "more keys", "blocks"):
        assert keys[f"{kind}: 2-D"] == pytest.approx(keys[f"{kind}: 1-D"], rel=0.02)
    stored = tfviz_lab.load("image_memory")
    assert {n: row["keys_per_row"] for n, row in stored["variants"].items()} == keys
    for row in stored["variants"].values():
        assert len(row["test_nats"]) == len(image_memory.SEEDS)
        assert all(1.0 < score < 2.0 for score in row["test_nats"] + row["training_nats"])
