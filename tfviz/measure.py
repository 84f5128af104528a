"""One way to measure: processor time, FLOPs, memory, and how they grow with the length.

    seconds(attention, Q, K, V)                the least processor time of some runs
    flops(attention, Q, K, V)                  of all products, SDPA included
    largest_storage(attention, Q, K, V)        bytes of the largest tensor that is made
    peak_memory(attention, Q, K, V)            bytes held at once, beyond the inputs
    elements_produced(attention, Q, K, V)      numbers written, all tensors together
    saved_bytes(attention, Q, K, V)            bytes that autograd keeps for the backward pass
    kept_shares(A, meet)                       of pairs and of attention that a sparse choice keeps
    slope(flops, lambda L: (lambda: f(make(L))))    2 for a quadratic mechanism, 1 for a linear one
    exponent(lengths, values)                  the same of values at more than two lengths

All but `seconds` and `in_turns` count, and so give the same number each time on every machine: what
is to be held to a bound is held to one of these. The largest tensor says whether a mechanism ever
forms L² numbers; the elements produced also tell a loop that writes L numbers L times.

    >>> A, B = torch.ones(10, 20), torch.ones(20, 30)
    >>> flops(torch.matmul, A, B)  # a product and a sum for each of 10 · 20 · 30 pairs
    12000
    >>> largest_storage(torch.matmul, A, B), elements_produced(torch.matmul, A, B)
    (1200, 300)
    >>> slope(flops, lambda L: lambda: torch.ones(L, 8) @ torch.ones(8, L))
    2.0
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import (
    FlopCounterMode,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

from tfviz import _arguments, _fused

# --- time -----------------------------------------------------------------------------------------


def seconds(
    function: Callable[..., Any], *inputs: Any, repeats: int = 5, budget: float = math.inf
) -> float:
    """Processor time of function(*inputs): the least of `repeats` runs, disturbed least by others.

    The sum over threads, so that a busy neighbour does not count. After `budget` seconds no further
    run begins, but one run there always is.
    """
    times: list[float] = []
    for _ in range(_arguments.integer("repeats", repeats, 1)):
        if sum(times) > budget:
            break
        start = time.process_time()
        function(*inputs)
        times.append(time.process_time() - start)
    return min(times)


def in_turns(
    functions: Mapping[str, Callable[[], Any]], rounds: int = 15, budget: float = 0.0
) -> dict[str, list[float]]:
    """Processor time of each function in each round; each runs once before that, to warm up.

    They take turns, in another order each round, so that what changes on the machine troubles all
    alike: compare them by the median over rounds of a ratio. There are `rounds` rounds, and more
    until `budget` seconds have been spent.
    """
    _arguments.integer("rounds", rounds, 1)
    found: dict[str, list[float]] = {name: [] for name in functions}
    order, done, spent = list(functions), 0, 0.0
    for function in functions.values():
        function()
    while done < rounds or spent < budget:
        random.shuffle(order)
        for name in order:
            found[name].append(seconds(functions[name], repeats=1))
            spent += found[name][-1]
        done += 1
    return found


# --- what is counted ------------------------------------------------------------------------------


def _sdpa(q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> int:
    return sdpa_flop_count(q, k, v)


def _sdpa_backward(grad: Any, q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> int:
    return sdpa_backward_flop_count(grad, q, k, v)


# without these the counter takes SDPA on a CPU for free
_CPU_SDPA = {
    _fused.FORWARD: _sdpa,
    _fused.BACKWARD: _sdpa_backward,
}


def flops(function: Callable[..., Any], *inputs: Any) -> int:
    """Floating point operations of all matrix products in function(*inputs), 2 for each pair.

    PyTorch's own counter, which besides is taught its fused attention on a CPU.
    """
    with FlopCounterMode(display=False, custom_mapping=_CPU_SDPA) as counter:
        function(*inputs)
    return counter.get_total_flops()


class _Largest(TorchDispatchMode):
    """The bytes of the largest storage that an operation gives."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for x in (result,) if isinstance(result, Tensor) else tree_leaves(result):
            if isinstance(x, Tensor):
                self.bytes = max(self.bytes, x.untyped_storage().nbytes())
        return result


class _Elements(TorchDispatchMode):
    """The number of elements that all operations write."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {_storage(x) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        result = func(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            if isinstance(x, Tensor):
                if func._schema.is_mutable:
                    self.written += _written(func, x, args)
                elif _storage(x) not in given:  # else it is a view
                    self.written += x.numel()
        return result


def _storage(x: Tensor) -> int:
    return x.untyped_storage()._cdata


def _written(func: Any, x: Tensor, args: Any) -> int:
    """In place: all of x, or as many elements as an operation by index has to distribute."""
    by_index = func._schema.name.startswith(("aten::index", "aten::scatter"))
    parts = [y.numel() for y in tree_leaves(args[1:]) if isinstance(y, Tensor)]
    return min(x.numel(), max(parts)) if by_index and parts else x.numel()


def largest_storage(function: Callable[..., Any], *inputs: Any) -> int:
    """Bytes of the largest tensor in function(*inputs); a view counts as what it looks at."""
    with _Largest() as largest:
        function(*inputs)
    return largest.bytes


def elements_produced(function: Callable[..., Any], *inputs: Any) -> int:
    """Elements of all tensors that the operations in function(*inputs) write; views are none.

    Work that FLOPs overlook, such as a zero gradient as long as the input for each of its blocks.
    """
    with _Elements() as elements:
        function(*inputs)
    return elements.written


def peak_memory(function: Callable[..., Any], *inputs: Any) -> int:
    """The most bytes that torch holds at one time in function(*inputs), above what it held before.

    Read from PyTorch's profiler, so that memory inside an operation counts too.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        function(*inputs)
    assert profiler.profiler is not None and profiler.profiler.kineto_results is not None
    events = profiler.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    return max(accumulate((change for _, change in changes), initial=0))


def saved_bytes(function: Callable[..., Any], *inputs: Any) -> int:
    """What autograd keeps of function(*inputs) until the backward pass, in bytes.

    Each storage counts once; weights, and inputs that want a gradient, are there anyway and do not.
    """
    kept: dict[int, Tensor] = {}

    def pack(x: Tensor) -> Tensor:
        origin = x if x._base is None else x._base
        if not (origin.is_leaf and origin.requires_grad):
            kept[x.untyped_storage().data_ptr()] = x
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        out = function(*inputs)
    del out
    return sum(x.untyped_storage().nbytes() for x in kept.values())


# --- what a sparse choice of pairs keeps ----------------------------------------------------------


def kept_shares(A: Tensor, meet: Tensor, among: Tensor | None = None) -> tuple[float, float]:
    """(pairs, weight) that a choice of pairs keeps: shares of those in `among` (all if None), and
    of the weight of full attention A on them. All of shape (…, L, L), meet and among Boolean."""
    if A.shape[-2:] != meet.shape[-2:]:
        raise ValueError(f"A has shape {tuple(A.shape)}, meet {tuple(meet.shape)}; give one mask")
    among = torch.ones_like(meet) if among is None else among.expand_as(meet)
    kept = meet & among
    weight = (A * kept).sum() / (A * among).sum()
    return kept.sum().item() / int(among.sum()), weight.item()


# --- growth ---------------------------------------------------------------------------------------


def slope(
    measure: Callable[[Callable[[], Any]], float],
    at: Callable[[int], Callable[[], Any]],
    lengths: tuple[int, int] = (1024, 4096),
) -> float:
    """The exponent of growth between two lengths: log of the ratio, to the base of their ratio.

    at(L) returns the call to be measured, so that making the inputs and warming up is not counted.
    Raises ValueError if nothing was counted.
    """
    small, large = (measure(at(L)) for L in lengths)
    if not small > 0:
        raise ValueError(f"measure gave {small} at length {lengths[0]}; nothing was counted")
    return math.log2(large / small) / math.log2(lengths[1] / lengths[0])


def exponent(lengths: Sequence[float], values: Sequence[float]) -> float:
    """p of values ∝ length^p, by least squares on the logarithms.

    >>> round(exponent([128, 256, 512], [7 * L**2 for L in (128, 256, 512)]), 6)
    2.0

    Raises ValueError for fewer than two lengths, and for what has no logarithm.
    """
    if len(lengths) != len(values) or len(set(lengths)) < 2 or min(*lengths, *values) <= 0:
        raise ValueError(
            f"lengths = {list(lengths)}, values = {list(values)}; give as many values as lengths, "
            "at least two lengths that differ, and numbers above 0"
        )
    xs, ys = [math.log(v) for v in lengths], [math.log(v) for v in values]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    rise = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return rise / sum((x - mx) ** 2 for x in xs)
