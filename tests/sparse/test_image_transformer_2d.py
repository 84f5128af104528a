"""2-D image memory: nobody sees what is made later, what each sees, limits, and what it costs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, Function, agree_with_gradients, over
from refusals import ranges, refused
from three import three

from tfviz import attention
from tfviz import patterns as P
from tfviz.sparse import image_transformer_2d as two
from tfviz.sub_quadratic import plan

SIZES = [
    {"h_q": 4, "w_q": 4, "h_m": 2, "w_m": 2},
    {"h_q": 2, "w_q": 4, "h_m": 3, "w_m": 1},
    {"h_q": 3, "w_q": 5, "h_m": 1, "w_m": 4},  # does not divide the image
    {"h_q": 1, "w_q": 2, "h_m": 1, "w_m": 1},
]


def made(height: int, width: int, h_q: int, w_q: int) -> list[int]:
    """The order by four loops."""
    return [
        y * width + x
        for top in range(0, height, h_q)
        for left in range(0, width, w_q)
        for y in range(top, min(height, top + h_q))
        for x in range(left, min(width, left + w_q))
    ]


@pytest.mark.parametrize("sizes", SIZES)
def test_no_pixel_sees_one_that_is_made_later(sizes: dict[str, int]) -> None:
    height, width = 8, 12
    order = two.generation_order(height, width, sizes["h_q"], sizes["w_q"])
    assert order.tolist() == made(height, width, sizes["h_q"], sizes["w_q"])
    mask = P.image_2d(width=width, **sizes).mask(height * width)[order][:, order]
    assert not mask.triu(1).any() and mask.diagonal().all()
    lines = P.image_2d(width=width, **sizes).mask(height * width)
    assert bool(lines.triu(1).any()) == (sizes["h_q"] > 1)  # line by line it is not causal


def seen_by_loops(pixel: int, sizes: dict[str, int], height: int, width: int) -> set[int]:
    """What is above, beside, and in the block, pixel by pixel."""
    h_q, w_q, h_m, w_m = sizes.values()
    y, x = divmod(pixel, width)
    top, left = y - y % h_q, x - x % w_q
    found = set()
    for v in range(max(0, top - h_m), min(height, top + h_q)):
        for u in range(max(0, left - w_m), min(width, left + w_q + w_m)):
            inside = v >= top and left <= u < left + w_q
            later = inside and (v, u) > (y, x)
            right = v >= top and u >= left + w_q
            if not later and not right:
                found.add(v * width + u)
    return found


@pytest.mark.parametrize("sizes", SIZES)
def test_every_pixel_sees_what_the_drawing_says(sizes: dict[str, int]) -> None:
    found = P.image_2d(width=12, **sizes).key_sets(96)
    assert [set(keys) for keys in found] == [seen_by_loops(i, sizes, 8, 12) for i in range(96)]


def test_an_inner_block_sees_above_beside_and_itself() -> None:
    h_q, w_q, h_m, w_m = 2, 3, 4, 2
    mask = P.image_2d(width=12, h_q=h_q, w_q=w_q, h_m=h_m, w_m=w_m).mask(144)
    counts = mask.sum(-1).view(12, 12)
    above, beside = h_m * (w_q + 2 * w_m), h_q * w_m
    assert counts[6, 3] == above + beside + 1  # the first pixel of its block
    assert counts[7, 5] == above + beside + h_q * w_q == two.memory_size(h_q, w_q, h_m, w_m)


@pytest.mark.parametrize("sizes", SIZES[:2])
def test_block_by_block_is_the_same_pattern_renumbered(sizes: dict[str, int]) -> None:
    order = two.generation_order(8, 12, sizes["h_q"], sizes["w_q"])
    lines = P.image_2d(width=12, **sizes).mask(96)
    blocks = P.image_2d_blocks(columns=12 // sizes["w_q"], **sizes).mask(96)
    assert blocks.equal(lines[order][:, order])


def test_enough_memory_is_causal_in_that_order() -> None:
    assert (
        P.image_2d_blocks(columns=3, h_q=2, w_q=4, h_m=8, w_m=12)
        .mask(96)
        .equal(P.causal().mask(96))
    )
    lines = P.image_2d(width=12, h_q=1, w_q=12, h_m=2, w_m=0)  # a block is a line: 1-D again
    assert lines.mask(96).equal(P.image_1d(block=12, memory=24).mask(96))


@pytest.mark.parametrize("sizes", SIZES[:2])
def test_definition_and_sparse_agree_with_gradients(sizes: dict[str, Any]) -> None:
    leaves = three(x.requires_grad_() for x in torch.randn(3, 2, 192, 4, dtype=torch.float64))
    dense = attention(*leaves, P.image_2d(width=12, **sizes))[0]
    sparse = two.image_attention_2d(*leaves, width=12, **sizes)
    agree_with_gradients(sparse, dense, leaves)


@pytest.mark.parametrize(("L", "width"), [(4096, 64), (16_384, 128)])
def test_it_computes_no_more_than_the_rectangles(L: int, width: int) -> None:
    pattern = P.image_2d_blocks(columns=width // 8, h_q=8, w_q=8, h_m=8, w_m=8)
    scores = sum(call.scores for call in plan(pattern, L))
    assert scores <= L * two.memory_size(8, 8, 8, 8) <= L * (8 + 8) * (8 + 2 * 8)


def test_bad_input_is_named() -> None:
    sizes: dict[str, Any] = {"h_q": 4, "w_q": 4, "h_m": 1, "w_m": 1}
    attend = partial(two.image_attention_2d, *three(torch.randn(3, 96, 4)), **sizes)
    for width in (10, 6):
        refused(f"96 pixels in rows of {width} are not filled", attend, width=width)
    refused("width = 0 is out of range", attend, width=0)
    ranges(two.generation_order, height=(4, 1), width=(4, 1), h_q=(2, 1), w_q=(2, 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------


SIZE: dict[str, Any] = {"width": 4, "h_q": 2, "w_q": 2, "h_m": 1, "w_m": 1}


CASE = Case(
    functions={
        "image 2-D": Function(partial(two.image_attention_2d, **SIZE), over(P.image_2d(**SIZE)))
    },
    mutants=[
        (
            "blocks of an image made column by column",
            "block = y // h_q * width + x // w_q",
            "block = y // h_q + x // w_q * height",
        ),
    ],
)


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/patterns/families.py": [
        (
            "an image seen on the right, beside the block",
            "    beside = (u >= left - w_m) & (u < left)\n",
            "    beside = (u >= left - w_m) & (u < left + w_q + w_m) & ~own\n",
        ),
    ],
}
