"""Multi-scale: windows by head, how layers share heads out, how far the top hears."""

from __future__ import annotations

from functools import partial, reduce

import pytest
import torch
from golden import drawn
from laws import Case
from refusals import ranges, refused
from three import three

from tfviz import attention, sparse_attention
from tfviz.adaptive import multi_scale_transformer as ms
from tfviz.measure import flops
from tfviz.patterns import causal, full

SCALES = (1, 3, 8, 32)
GOLDEN = """
    1 1 . . .     1 1 1 1 .
    1 1 1 . .     1 1 1 1 1
    . 1 1 1 .     1 1 1 1 1
    . . 1 1 1     1 1 1 1 1
    . . . 1 1     . 1 1 1 1
"""


def test_two_heads_by_hand() -> None:
    wanted = drawn(GOLDEN).unflatten(1, (2, 5)).transpose(0, 1)
    assert ms.multi_scale((1, 3), causal=False).mask(5).equal(wanted)
    assert ms.multi_scale((1, 3)).mask(5).equal(wanted.tril())


def test_a_scale_over_everything_is_full_attention() -> None:
    for is_causal, whole in ((True, causal()), (False, full())):
        assert ms.multi_scale((9, 40), is_causal).mask(10).equal(whole.mask(10).expand(2, -1, -1))


def test_heads_are_shared_out_and_windows_grow_with_depth() -> None:
    layers = ms.allocation(6, 8, SCALES, alpha=2.0)
    assert all(len(layer) == 8 and set(layer) <= set(SCALES) for layer in layers)
    mean = [sum(layer) / 8 for layer in layers]
    assert mean == sorted(mean) and mean[0] < mean[-1]
    due = 8 * torch.tensor([6.0, 4, 2, 0]).softmax(-1)  # the first layer, typed by hand
    assert due.tolist() == pytest.approx([6.92, 0.94, 0.13, 0.02], abs=0.01)
    assert layers[0] == (1, 1, 1, 1, 1, 1, 1, 3)
    assert set(ms.allocation(3, 8, SCALES, alpha=0.0)) == {(1, 1, 3, 3, 8, 8, 32, 32)}
    shrinking = [sum(layer) for layer in ms.allocation(6, 8, SCALES, alpha=-2.0)]
    assert shrinking == sorted(shrinking, reverse=True) and shrinking[0] > shrinking[-1]


def test_the_top_hears_as_far_as_the_largest_scales_together() -> None:
    layers = [(1, 3), (3, 8), (1, 1)]
    hops = [ms.multi_scale(layer).mask(20).any(0).double() for layer in layers]
    heard = reduce(torch.matmul, reversed(hops))[-1] > 0
    assert ms.far(layers) == 12 and heard.nonzero().min() == 19 - 12


def test_a_layer_costs_the_sum_of_its_windows() -> None:
    X = three(torch.randn(3, 1, 4, 2048, 16))
    pattern = ms.multi_scale(SCALES)
    torch.testing.assert_close(sparse_attention(*X, pattern), attention(*X, pattern)[0])
    costs = [flops(sparse_attention, *X, ms.multi_scale(4 * (w,))) for w in SCALES]
    assert flops(sparse_attention, *X, pattern) == pytest.approx(sum(costs) / 4)
    assert costs[-1] < flops(attention, *X) / 20


def test_bad_input_is_named() -> None:
    for scales in ((), (3, 1), (1, 1)):
        refused("give whole numbers that grow", ms.allocation, 2, 4, scales, 0.5)
    ranges(partial(ms.allocation, scales=SCALES, alpha=0.5), N=(2, 1), h=(4, 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "scales shared out alike in every layer",
            "* below / layer)",
            "* below)",
        ),
    ],
)
