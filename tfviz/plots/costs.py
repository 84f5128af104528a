"""What a pattern costs over the length of the sequence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tfviz import _arguments
from tfviz._labels import named
from tfviz.measure import exponent
from tfviz.patterns.pattern import Pattern
from tfviz.plots.curves import Axes, Line, chart
from tfviz.plots.figure import Figure
from tfviz.plots.inputs import number, scientific

Quantity = Literal["pairs", "flops", "bytes"]
Patterns = "Mapping[str, Pattern | Callable[[int], Pattern]] | Pattern"
LABELS = {
    "pairs": "pairs of query and key, log scale",
    "flops": "FLOPs, log scale",
    "bytes": "memory of the scores, log scale",
}


@dataclass(frozen=True)
class Costs:
    """Costs of one pattern over the lengths, element-exact and block-exact."""

    name: str
    exact: list[int]
    blocks: list[int]


def counted(
    patterns: Any, lengths: Sequence[int], quantity: str, d: int, h: int, block: int
) -> tuple[list[int], list[Costs], list[int]]:
    """(lengths, costs of each pattern, cost of full attention)."""
    if quantity not in LABELS:
        raise ValueError(f"quantity = {quantity!r}; choose one of {', '.join(LABELS)}")
    lengths = [_arguments.integer("lengths", L, 1, 1 << 16) for L in lengths]
    if len(lengths) < 2 or sorted(set(lengths)) != lengths:
        raise ValueError(f"lengths = {lengths}; give at least two different lengths, rising")
    single = isinstance(patterns, Pattern)
    by_name = named("patterns", {patterns.title: patterns} if single else patterns)
    if not by_name:
        raise ValueError("patterns is empty; give a Pattern or name → Pattern")
    costs_by_pattern: list[Costs] = []
    full: list[int] = []
    for name, pattern in by_name.items():
        exact, blocks, full = [], [], []
        for L in lengths:
            at_length = pattern if isinstance(pattern, Pattern) else pattern(L)
            if not isinstance(at_length, Pattern):
                raise TypeError(f"patterns[{name!r}] gives {at_length!r} at L = {L}, not a Pattern")
            cost_ = at_length.cost(L, d, h, block)
            exact.append(getattr(cost_, quantity))
            blocks.append(getattr(cost_, f"block_{quantity}"))
            full.append(getattr(cost_, f"full_{quantity}"))
        costs_by_pattern.append(Costs(name, exact, blocks))
    return lengths, costs_by_pattern, full


def slope(lengths: Sequence[int], values: Sequence[int]) -> float:
    """The exponent of a pattern's cost; one that costs nothing counts as 1."""
    return exponent(lengths, [max(v, 1) for v in values])


def amount(value: float, quantity: str) -> str:
    if quantity != "bytes":
        return number(value)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{number(value)} {unit}"
        value /= 1024
    return f"{number(value)} GiB"


def _tick(value: float, quantity: str) -> str:
    if quantity == "bytes":
        return amount(value, quantity)
    return number(value) if value < 1000 else scientific(value)


def cost(
    patterns: "Mapping[str, Pattern | Callable[[int], Pattern]] | Pattern",
    lengths: Sequence[int] = (64, 128, 256, 512, 1024, 2048),
    *,
    quantity: Quantity = "pairs",
    d: int = 64,
    h: int = 1,
    block: int = 64,
    blocks: bool = True,
    full: bool = True,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """Pairs, FLOPs or bytes over L, both axes logarithmic, with the slope of each line.

    `patterns`: a Pattern or a dict from name to Pattern or to a function L → Pattern (for a stride
    that grows as √L). Solid: element-exact; dashed: counted in `block` × `block` blocks; grey: full
    attention. The first pattern wears the attention colour.
    """
    lengths, costs_by_pattern, reference = counted(patterns, lengths, quantity, d, h, block)
    lines, words = [], []
    for n, one in enumerate(costs_by_pattern):
        p = slope(lengths, one.exact)
        label = f"{one.name}, slope {p:.2f}"
        lines.append(
            Line(label, lengths, one.exact, role="attention" if n == 0 else "ink", marker=n)
        )
        text = (
            f"{one.name}: {amount(one.exact[0], quantity)} at L = {lengths[0]}, "
            f"{amount(one.exact[-1], quantity)} at L = {lengths[-1]}, slope {p:.2f}"
        )
        if blocks:
            lines.append(
                Line(
                    f"{one.name}, in blocks"
                    if len(costs_by_pattern) > 1
                    else f"in blocks of {block}",
                    lengths,
                    one.blocks,
                    role="attention" if n == 0 else "ink",
                    marker=n,
                    dashes=(4, 3),
                    hollow=True,
                )
            )
            text += f"; in blocks of {block} {amount(one.blocks[-1], quantity)} at the end"
        words.append(text + ".")
    if full:
        lines.append(Line("full, slope 2", lengths, reference, role="muted", marker=None))
        words.append(
            f"Full attention: {amount(reference[0], quantity)} to "
            f"{amount(reference[-1], quantity)}, slope 2."
        )
    head = {"pairs": "Pairs", "flops": "FLOPs", "bytes": "Bytes of scores"}[quantity]
    axes = Axes(
        "length L, log scale",
        LABELS[quantity],
        logx=True,
        logy=True,
        xticks=lengths,
        ytick=lambda v: _tick(v, quantity),
        ybase=2 if quantity == "bytes" else 10,
    )
    text = f"{head} over L from {lengths[0]} to {lengths[-1]}. {' '.join(words)}"
    drawn = chart(lines, axes, alt=text)
    return Figure([drawn], alt=alt, caption=caption)
