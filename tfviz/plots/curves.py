"""Results of experiments, always with their spread over seeds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from tfviz.plots.canvas import NORMAL, SMALL, text_width
from tfviz.plots.figure import Figure, Panel, style
from tfviz.plots.inputs import number
from tfviz.plots.roles import LIGHT, Role

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2), (3, 1, 1, 1, 1, 1))
LEADER = {
    "arrowstyle": "-",
    "color": LIGHT["muted"],
    "linewidth": 0.8,
    "shrinkA": 0,
    "shrinkB": 0,
}
HEIGHT, PLOT_WIDTH, LEFT, TOP, BOTTOM = 310, 400, 62, 34, 48


@dataclass(frozen=True)
class Line:
    """One line of a chart with its direct label."""

    label: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    role: Role = "ink"
    marker: int | None = 0
    dashes: tuple[float, ...] = ()
    hollow: bool = False
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def chart(
    lines: Sequence[Line],
    *,
    xlabel: str,
    ylabel: str,
    logx: bool,
    logy: bool,
    alt: str,
    xticks: Sequence[float] | None = None,
    ytick: Callable[[float], str] = number,
    ybase: int = 10,
    note: str = "",
) -> Panel:
    """Lines with labels at their ends: no legend to look up."""
    right = min(230, max(text_width(line.label, NORMAL) for line in lines) * 0.92 + 16)
    width = LEFT + PLOT_WIDTH + right
    with style():
        drawing = Drawing(figsize=(width / 72, HEIGHT / 72), dpi=72)
        drawing.set_layout_engine("none")  # places are exact here
        box = (LEFT / width, BOTTOM / HEIGHT, PLOT_WIDTH / width, (HEIGHT - TOP - BOTTOM) / HEIGHT)
        axes = drawing.add_axes(box)
        _scales(axes, logx, logy, ybase, ytick)
        for line in lines:
            colour = LIGHT[line.role]
            if line.low is not None and line.high is not None:
                axes.fill_between(
                    line.x,
                    line.low,
                    line.high,
                    color=colour,
                    alpha=0.18,
                    linewidth=0,
                    gid="tfviz-band",
                )
            mark = None if line.marker is None else MARKERS[line.marker % len(MARKERS)]
            axes.plot(
                line.x, line.y, color=colour, marker=mark if len(line.x) <= 16 else None,
                markersize=5.5, markerfacecolor=LIGHT["page"] if line.hollow else colour,
                dashes=line.dashes or (None, None), clip_on=False, gid="tfviz-line",
                zorder=4 if line.role == "attention" else 3,
            )  # fmt: skip
        if xticks is not None:
            axes.xaxis.set_major_locator(FixedLocator(list(xticks)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0f}"))
        last = max(float(line.x[-1]) for line in lines)
        axes.set_xlim(right=last)
        axes.set_xlabel(xlabel)
        axes.grid(axis="x", visible=False)
        axes.tick_params(length=4)
        drawing.text(8 / width, 1 - 16 / HEIGHT, ylabel, color=LIGHT["ink"], fontsize=NORMAL)
        if note:
            drawing.text(
                1 - 8 / width, 14 / HEIGHT, note, color=LIGHT["muted"], fontsize=SMALL, ha="right"
            )
        _end_labels(axes, lines)
    return Panel(drawing, alt)


def _scales(axes: Any, logx: bool, logy: bool, ybase: int, ytick: Callable[[float], str]) -> None:
    if logx:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: number(v)))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(FuncFormatter(_plain))
    if logy:
        axes.set_yscale("log", base=ybase)
        axes.yaxis.set_major_locator(LogLocator(ybase))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: ytick(v)) if logy else _plain)


def _plain(value: float, _: int | None = None) -> str:
    """A tick of a linear axis, as exact as its step."""
    return f"{round(value, 12):.6g}".replace("-", "−")


def _end_labels(axes: Any, lines: Sequence[Line]) -> None:
    """Labels at the right, in the order of the line ends and at least a line apart."""
    height = HEIGHT - TOP - BOTTOM
    to_px = axes.transData.transform
    ends = sorted(
        (float(to_px((line.x[-1], line.y[-1]))[1]) - BOTTOM, n) for n, line in enumerate(lines)
    )
    apart = 16.0
    places = _spread([y for y, _ in ends], apart, height)
    for (end, n), place in zip(ends, places, strict=True):
        line = lines[n]
        if abs(place - end) > 3:  # a leader from the end of the line to its label
            axes.annotate(
                "", (1, end / height), (1 + 12 / PLOT_WIDTH, place / height),
                xycoords="axes fraction", textcoords="axes fraction", annotation_clip=False,
                arrowprops=LEADER,
            )  # fmt: skip
        axes.annotate(
            line.label, (1, place / height), (14, -0.34 * NORMAL), xycoords="axes fraction",
            textcoords="offset points", color=LIGHT[line.role], fontsize=NORMAL,
            annotation_clip=False,
        )  # fmt: skip


def _spread(wanted: Sequence[float], apart: float, height: float) -> list[float]:
    """Positions near the wanted (rising) ones, at least `apart`, not above the chart."""
    places: list[float] = []
    for want in wanted:
        places.append(max(want, places[-1] + apart) if places else max(want, 0.0))
    over = places[-1] - max(height, wanted[-1])
    if over > 0:
        places[-1] -= over
        for n in range(len(places) - 2, -1, -1):
            places[n] = min(places[n], places[n + 1] - apart)
    return places


def _table(name: str, values: Any, length: int) -> np.ndarray:
    """(seeds, length) of finite numbers; one row for values without seeds."""
    try:
        table = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"series[{name!r}] is not a table of numbers; give shape (len(x),) or (seeds, len(x))"
        ) from None
    if table.ndim not in (1, 2) or table.shape[-1] != length or not table.size:
        raise ValueError(
            f"series[{name!r}] has shape {table.shape}; x has {length} values: give shape "
            f"({length},) or (seeds, {length})"
        )
    if not np.isfinite(table).all():
        raise ValueError(f"series[{name!r}] holds values that are not finite; leave them out")
    return table


def _highlighted(names: Sequence[str], highlight: "str | Sequence[str] | None") -> set[str]:
    if highlight is None:
        return {names[0]}
    chosen = {highlight} if isinstance(highlight, str) else set(highlight)
    if unknown := chosen - set(names):
        raise ValueError(f"highlight = {sorted(unknown)} is not in series; choose from {names}")
    return chosen


def curve(
    x: Sequence[float],
    series: "Mapping[str, Any]",
    *,
    xlabel: str,
    ylabel: str,
    band: Literal["range", "std"] = "range",
    logx: bool = False,
    logy: bool = False,
    highlight: "str | Sequence[str] | None" = None,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """Lines over x with a band over seeds.

    `series`: name → values of shape (len(x),) or (seeds, len(x)). The line is the mean, the band
    the range over seeds (or mean ± standard deviation). The number of seeds is printed.
    `highlight` wears the attention colour (default: the first); the others are ink with
    their own dash and marker. Labels stand at the line ends.
    """
    xs = np.asarray(x, dtype=float)
    if xs.ndim != 1 or len(xs) < 2 or not np.isfinite(xs).all() or (np.diff(xs) <= 0).any():
        raise ValueError(f"x has shape {xs.shape}; give at least two finite numbers, rising")
    if band not in ("range", "std"):
        raise ValueError(f"band = {band!r}; choose 'range' or 'std'")
    if not series:
        raise ValueError("series is empty; give name → values")
    tables = {name: _table(name, values, len(xs)) for name, values in series.items()}
    if logx and xs[0] <= 0:
        raise ValueError(f"x begins with {xs[0]}; a log axis needs x > 0, or logx=False")
    if logy and (low := min(table.min() for table in tables.values())) <= 0:
        raise ValueError(f"series holds {low}; a log axis needs values > 0, or logy=False")
    chosen = _highlighted(list(tables), highlight)
    lines, words, plain = [], [], 0
    for n, (name, table) in enumerate(tables.items()):
        rows = np.atleast_2d(table)
        mean = rows.mean(0)
        spread = rows.std(0, ddof=1) if band == "std" and len(rows) > 1 else None
        low = mean - spread if spread is not None else rows.min(0)
        high = mean + spread if spread is not None else rows.max(0)
        several = len(rows) > 1
        dashes = DASHES[0] if name in chosen else DASHES[plain % len(DASHES)]
        plain += name not in chosen
        lines.append(
            Line(
                name,
                xs,
                mean,
                role="attention" if name in chosen else "ink",
                marker=n,
                dashes=dashes,
                low=low if several else None,
                high=high if several else None,
            )
        )
        best = int(mean.argmin())
        text = (
            f"{name}: from {number(mean[0])} at {number(xs[0])} to {number(mean[-1])} at "
            f"{number(xs[-1])}"
        )
        if several:
            text += f" ({number(low[-1])} to {number(high[-1])} over {len(rows)} seeds)"
        if 0 < best < len(mean) - 1:
            text += f", lowest {number(mean[best])} at {number(xs[best])}"
        words.append(text + ".")
    note = _seeds([t.shape[0] for t in tables.values() if t.ndim == 2], band)
    drawn = chart(
        lines, xlabel=xlabel, ylabel=ylabel, logx=logx, logy=logy, note=note,
        alt=f"{ylabel} over {xlabel}. {' '.join(words)}",
    )  # fmt: skip
    return Figure([drawn], alt=alt, caption=caption)


def _seeds(counts: Sequence[int], band: str) -> str:
    if not counts:
        return ""
    few, many = min(counts), max(counts)
    if many == 1:
        return "one seed"
    what = "range" if band == "range" else "standard deviation"
    return f"mean and {what}, {many if few == many else f'{few} to {many}'} seeds"


def points(
    series: "Mapping[str, tuple[float, Any]]",
    *,
    xlabel: str,
    ylabel: str,
    logx: bool = False,
    highlight: "str | Sequence[str] | None" = None,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """One labelled point per variant: name → (x, [one y per seed]); a bar spans the seeds."""
    if not series:
        raise ValueError("series is empty; give name → (x, [y per seed])")
    chosen = _highlighted(list(series), highlight)
    found = {}
    for name, entry in series.items():
        try:
            at, values = entry
            table = np.atleast_1d(np.asarray(values, dtype=float))
            at = float(at)
        except (TypeError, ValueError):
            raise ValueError(f"series[{name!r}] = {entry!r}; give (x, [y per seed])") from None
        if table.ndim != 1 or not table.size or not np.isfinite([at, *table]).all():
            raise ValueError(f"series[{name!r}] = {entry!r}; give finite numbers (x, [y per seed])")
        if logx and at <= 0:
            raise ValueError(f"series[{name!r}] has x = {at}; a log axis needs x > 0")
        found[name] = (at, table)
    drawn = _scatter(found, chosen, xlabel, ylabel, logx)
    words = [
        f"{name}: {number(t.mean())} at {number(at)}"
        + (f" ({number(t.min())} to {number(t.max())} over {len(t)} seeds)" if len(t) > 1 else "")
        for name, (at, t) in found.items()
    ]
    panel = Panel(drawn, f"{ylabel} over {xlabel}. {'; '.join(words)}.")
    return Figure([panel], alt=alt, caption=caption)


def _scatter(
    found: Mapping[str, tuple[float, np.ndarray]],
    chosen: set[str],
    xlabel: str,
    ylabel: str,
    logx: bool,
) -> Drawing:
    width = 640
    with style():
        drawing = Drawing(figsize=(width / 72, HEIGHT / 72), dpi=72)
        drawing.set_layout_engine("none")  # places are exact here
        box = (
            LEFT / width, BOTTOM / HEIGHT, (width - LEFT - 20) / width,
            (HEIGHT - TOP - BOTTOM) / HEIGHT,
        )  # fmt: skip
        axes = drawing.add_axes(box)
        _scales(axes, logx, False, 10, number)
        for n, (name, (at, table)) in enumerate(found.items()):
            colour = LIGHT["attention" if name in chosen else "ink"]
            axes.plot(
                [at, at], [table.min(), table.max()], color=colour, linestyle="-", linewidth=2
            )
            axes.plot(
                [at], [table.mean()], color=colour, linestyle="", markersize=8,
                marker=MARKERS[n % len(MARKERS)], gid="tfviz-point",
            )  # fmt: skip
        xs = [at for at, _ in found.values()]
        room = math.log(max(xs) / min(xs) + 1e-9) if logx else max(xs) - min(xs)
        if logx:
            axes.set_xlim(
                min(xs) * math.exp(-0.08 * room - 0.02), max(xs) * math.exp(0.28 * room + 0.3)
            )
        else:
            axes.set_xlim(min(xs) - 0.08 * room - 0.02, max(xs) + 0.28 * room + 0.3)
        axes.margins(y=0.14)
        axes.autoscale(axis="y")
        drawing.text(8 / width, 1 - 16 / HEIGHT, ylabel, color=LIGHT["ink"], fontsize=NORMAL)
        axes.set_xlabel(xlabel)
        _point_labels(axes, found, chosen)
        note = _seeds([len(table) for _, table in found.values()], "range")
        drawing.text(
            1 - 8 / width, 14 / HEIGHT, note, color=LIGHT["muted"], fontsize=SMALL, ha="right"
        )
    return drawing


def _point_labels(
    axes: Any, found: Mapping[str, tuple[float, np.ndarray]], chosen: set[str]
) -> None:
    """Each label on the first free side of its point: right, left, above, below."""
    taken: list[tuple[float, float, float, float]] = []
    places = {}
    for name, (at, table) in found.items():
        x, y = axes.transData.transform((at, table.mean()))
        places[name] = (float(x), float(y))
        taken.append((x - 6, y - 6, x + 6, y + 6))
        bottom, top = (axes.transData.transform((at, v))[1] for v in (table.min(), table.max()))
        taken.append((x - 2, bottom, x + 2, top))
    for name, (x, y) in places.items():
        width = text_width(name, NORMAL) * 0.9
        choices = [
            (dx if side > 0 else -dx - width, dy)
            for dy in (0, 14, -14, 28, -28, 42, -42)
            for side, dx in ((1, 10), (-1, 10))
        ]
        for dx, dy in choices:
            box = (x + dx, y + dy - 7, x + dx + width, y + dy + 7)
            inside = box[0] > LEFT + 2 and box[2] < axes.bbox.x1 + 16
            if inside and not any(
                box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3] for t in taken
            ):
                break
        else:
            dx, dy = choices[0]
            box = (x + dx, y - 7, x + dx + width, y + 7)
        taken.append(box)
        left = dx >= 0
        axes.annotate(
            name, (x, y), (10 if left else -10, dy - 0.34 * NORMAL), xycoords="figure pixels",
            textcoords="offset points", fontsize=NORMAL, ha="left" if left else "right",
            color=LIGHT["attention" if name in chosen else "ink"], annotation_clip=False,
        )  # fmt: skip
