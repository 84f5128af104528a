"""Growth without a clock: how FLOPs and the largest tensor of a computation grow with its length.

slope(flops, lambda L: (lambda: f(make(L))))    2 for a quadratic mechanism, 1 for a linear one
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import (
    FlopCounterMode,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)


def _sdpa(q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> int:
    return sdpa_flop_count(q, k, v)


def _sdpa_backward(grad: Any, q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> int:
    return sdpa_backward_flop_count(grad, q, k, v)


# without these the counter takes SDPA on a CPU for free
CPU_SDPA = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _sdpa,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _sdpa_backward,
}


def flops(function: Callable[[], Any]) -> int:
    """Floating point operations of all products in one call."""
    with FlopCounterMode(display=False, custom_mapping=CPU_SDPA) as counter:
        function()
    return counter.get_total_flops()


class _Largest(TorchDispatchMode):
    bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor):
                self.bytes = max(self.bytes, x.untyped_storage().nbytes())
        return result


def largest_storage(function: Callable[[], Any]) -> int:
    """Bytes of the largest tensor that one call produces (views count as what they look at)."""
    with _Largest() as seen:
        function()
    return seen.bytes


SCATTERED = {"index_add_", "index_copy_", "index_put_"}
"""In place, and they touch no more than what they are given."""


class _Elements(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            given = args[-1] if func.overloadpacket.__name__ in SCATTERED else result
            tensors = [x for x in tree_leaves(given) if isinstance(x, torch.Tensor)]
            self.count += sum(x.numel() for x in tensors)
        return result


def elements(function: Callable[[], Any]) -> int:
    """Elements of all tensors that one call produces or changes, large and small together."""
    with _Elements() as seen:
        function()
    return seen.count


def slope(
    measure: Callable[[Callable[[], Any]], int],
    at: Callable[[int], Callable[[], Any]],
    lengths: tuple[int, int] = (1024, 4096),
) -> float:
    """The exponent of growth between two lengths. `at(L)` returns the call to be measured, so that
    making the inputs and warming up caches is not counted."""
    small, large = (measure(at(L)) for L in lengths)
    assert small > 0, "nothing was counted"
    return math.log2(large / small) / math.log2(lengths[1] / lengths[0])
