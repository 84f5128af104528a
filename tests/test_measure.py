"""What is measured: products with known counts, cheats that one measure sees, and no clock."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from three import Three, three

from tfviz import measure
from tfviz.measure import (
    elements_produced,
    exponent,
    flops,
    in_turns,
    largest_storage,
    saved_bytes,
    seconds,
    slope,
)

RESTS_ON = ("tfviz/**", "tests/*.py")  # also in a process of their own

L, D = 32, 8


def qkv(L: int = L) -> Three:
    return three(torch.ones(1, 2, L, D) for _ in range(3))


def test_flops_of_products_and_of_attention_with_and_without_its_kernel():
    A, B = torch.ones(3, 4), torch.ones(4, 5)
    assert flops(torch.matmul, A, B) == 2 * 3 * 4 * 5
    assert flops(torch.add, A, A) == 0
    products = 2 * (2 * 2 * L * L * D)  # Q Kᵀ and A V, two heads
    assert flops(F.scaled_dot_product_attention, *qkv()) == products
    xs = three(x.requires_grad_() for x in qkv())
    both = flops(lambda: F.scaled_dot_product_attention(*xs).sum().backward())
    assert both == products * 7 // 2  # backward: the scores again, and two products for each of two


def test_the_largest_storage_sees_what_a_view_looks_at():
    x = torch.ones(10, 10)
    assert largest_storage(lambda: x + 1) == 400
    assert largest_storage(lambda: x[0] + 1) == 400  # the view x[0]
    assert largest_storage(lambda: (x * 2).sum()) == 400


def test_elements_produced():
    x, i = torch.ones(10, 10), torch.tensor([1, 2])
    assert elements_produced(lambda: x + 1) == 100
    assert elements_produced(lambda: x.T[2:].reshape(80).unflatten(0, (2, 40))) == 80  # one copy
    assert elements_produced(lambda: x[0].expand(50, 10)) == 0
    assert elements_produced(lambda: x.mul_(1)) == 100  # in place is work, too
    assert elements_produced(lambda: x[:3].fill_(1)) == 30
    assert elements_produced(lambda: x.index_add_(0, i, torch.ones(2, 10))) == 20 + 20


def test_only_the_elements_tell_a_loop_that_writes_l_numbers_l_times():
    def honest(L: int) -> Callable[[], object]:
        x = torch.ones(L, D)
        return lambda: x.cumsum(0)

    def loop(L: int) -> Callable[[], object]:
        x = torch.ones(L, D)
        return lambda: [x * 0.5 for _ in range(L // 8)]

    sizes = (64, 256)
    assert slope(elements_produced, honest, sizes) == 1
    assert slope(largest_storage, loop, sizes) == 1 and slope(elements_produced, loop, sizes) == 2


def test_the_exponent_of_several_lengths():
    lengths = (128, 256, 512, 1024, 2048)
    assert exponent(lengths, [7 * n**2 for n in lengths]) == pytest.approx(2)
    assert exponent(lengths, [3.5] * 5) == pytest.approx(0)
    assert exponent(lengths, [n * math.log(n) for n in lengths]) == pytest.approx(1.163, abs=5e-4)
    for bad in (((1, 1), (2, 3)), ((1, 2), (2,)), ((1, 2), (0, 3))):
        with pytest.raises(ValueError, match="as many values as lengths"):
            exponent(*bad)


def test_peak_memory_counts_what_is_held_at_once():
    """In a process of its own: PyTorch's profiler writes to the terminal as it likes."""
    script = """
import torch
from tfviz.measure import peak_memory
x = torch.ones(1000)
print("is", peak_memory(lambda: [x * 2 for _ in range(3)]), peak_memory(lambda: x.sum() and None))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    three, one = map(int, done.stdout.partition("is ")[2].split()[:2])
    assert 12000 <= three < 16000 and one < 1000


def test_seconds_are_the_least_of_several_and_of_the_processor(monkeypatch):
    clock = iter([0.0, 3.0, 10.0, 12.0, 20.0, 25.0])
    monkeypatch.setattr(measure.time, "process_time", lambda: next(clock))
    seen: list[int] = []
    assert seconds(seen.append, 7, repeats=3) == 2.0 and seen == [7, 7, 7]
    clock = iter([0.0, 3.0, 10.0, 12.0])
    assert seconds(seen.append, 7, repeats=3, budget=4) == 2.0 and len(seen) == 5
    with pytest.raises(ValueError, match="repeats = 0 is out of range"):
        seconds(seen.append, 7, repeats=0)


def test_contenders_take_turns_after_a_warm_up():
    seen: list[str] = []
    found = in_turns({name: partial(seen.append, name) for name in "abc"}, rounds=4)
    assert seen[:3] == ["a", "b", "c"] and len(seen) == 15
    assert all(sorted(seen[n : n + 3]) == ["a", "b", "c"] for n in range(3, 15, 3))
    assert {name: len(times) for name, times in found.items()} == {"a": 4, "b": 4, "c": 4}


def test_a_slope_of_nothing_is_refused():
    with pytest.raises(ValueError, match="gave 0 at length 64; nothing was counted"):
        slope(flops, lambda L: lambda: torch.ones(L) + 1, (64, 256))


def test_saved_bytes_are_what_the_backward_pass_needs():
    W, X = torch.randn(8, 8, requires_grad=True), torch.randn(4, 8)
    assert saved_bytes(lambda: X @ W) == 4 * 8 * 4  # X, not W
    assert saved_bytes(lambda: (X @ W).exp()) == 2 * 4 * 8 * 4  # and what exp gave
    assert saved_bytes(lambda: (X @ W).exp().exp()) == 3 * 4 * 8 * 4
    assert saved_bytes(lambda: X @ W.T + 1) == 4 * 8 * 4
    with torch.no_grad():
        assert saved_bytes(lambda: (X @ W).exp()) == 0


def test_shares_of_pairs_and_of_weight_by_hand():
    A = torch.tensor([[0.5, 0.4, 0.1], [0.2, 0.2, 0.6], [0.0, 0.0, 1.0]])
    meet = torch.tensor([[1, 1, 0], [0, 1, 1], [0, 0, 1]]) > 0
    pairs, weight = measure.kept_shares(A, meet)
    assert pairs == 5 / 9 and weight == pytest.approx(2.7 / 3)
    pairs, weight = measure.kept_shares(A, meet, ~torch.eye(3, dtype=torch.bool))
    assert pairs == 2 / 6 and weight == pytest.approx(1.0 / 1.3)
    with pytest.raises(ValueError, match="give one mask"):
        measure.kept_shares(A, meet[:2])


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/measure.py": [
        ("fused attention counted as free", "custom_mapping=_CPU_SDPA", "custom_mapping=None"),
        (
            "only new tensors counted, not what is written in place",
            "                if func._schema.is_mutable:\n",
            "                if False:\n",
        ),
    ],
}
