"""Results of experiments, always with their spread over seeds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from tfviz._labels import for_plotly, label, named
from tfviz._labels import line as title_line
from tfviz.plots import live
from tfviz.plots.canvas import NORMAL, SMALL, WIDE, text_width, wrapped
from tfviz.plots.figure import NARROW, Figure, Panel, style
from tfviz.plots.inputs import number
from tfviz.plots.plot import Plot
from tfviz.plots.roles import LIGHT, Role
from tfviz.plots.ticks import number_axis, room_for, whole

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
KEY_ROWS, KEY_COLUMN = 8, 160  # a key of more names stands in columns of so many px
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
DASHES: tuple[Any, ...] = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2), (3, 1, 1, 1, 1, 1))
DASH_NAMES = ("solid", "dash", "dot", "dashdot", "longdashdot")
LEADER = {
    "arrowstyle": "-",
    "color": LIGHT["muted"],
    "linewidth": 0.8,
    "shrinkA": 0,
    "shrinkB": 0,
}
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
"""Words are words, also between two dollars."""
PLOT_WIDTH, PLOT_HEIGHT, LEFT, LINE = 400, 228, 62, 17
LEAST_PLOT = 300
"""Where labels leave less width than this to a plot, they stand below it."""
SHORT = 76
"""Labels up to this width stand beside the lines even on a phone."""


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


@dataclass(frozen=True)
class Axes:
    """What the two axes of a chart say."""

    xlabel: str
    ylabel: str
    logx: bool = False
    logy: bool = False
    xticks: Sequence[float] | None = None
    xwhole: bool = False
    ywhole: bool = False
    ytick: Callable[[float], str] = number
    ybase: int = 10
    note: str = ""


class Frame:
    """A matplotlib figure with one plot, measured in px from its upper left corner.

    Above the plot its y label, below it x label, note and key; `key` is the number of lines there.
    """

    def __init__(self, axes: Axes, width: float, right: float, key: int = 0) -> None:
        narrow = width <= NARROW
        self.says, self.width, self.right = axes, width, right
        self.above = wrapped(axes.ylabel, width - 16, whole=False)
        self.below = wrapped(axes.xlabel, width - 16, whole=False)
        self.left = 36.0 if narrow else LEFT
        self.top = 16 + LINE * len(self.above)
        self.plot_height = 210 if narrow else PLOT_HEIGHT
        self.first_below = self.top + self.plot_height + 38
        note = text_width(axes.note, SMALL)
        middle = (self.left + width - right) / 2
        words = text_width(self.below[-1]) if self.below else 0
        self.note_apart = bool(note) and middle + words / 2 + 16 > width - note - 8
        self.key_top = self.first_below + LINE * (len(self.below) - 1 + self.note_apart) + 22
        self.height = self.key_top + LINE * key - (6 if key else 12)
        size = width / 72, self.height / 72
        exact: Any = "none"  # no engine moves what is placed; matplotlib's types do not know it
        self.drawing = Drawing(figsize=size, dpi=72, layout=exact)
        self.axes = self.drawing.add_axes((0.1, 0.1, 0.8, 0.8))
        self._place()

    @property
    def plot_width(self) -> float:
        return self.width - self.left - self.right

    def _place(self) -> None:
        bottom = self.height - self.top - self.plot_height
        self.axes.set_position(
            (
                self.left / self.width,
                bottom / self.height,
                self.plot_width / self.width,
                self.plot_height / self.height,
            )
        )

    def scales(self) -> None:
        self.axes.set_xscale("log" if self.says.logx else "linear")
        self.axes.set_yscale("log" if self.says.logy else "linear")

    def finish(self) -> None:
        """Numbers, labels and the final place, when everything has been plotted."""
        says, axes = self.says, self.axes
        ytick = says.ytick if says.logy else _plain
        number_axis(
            axes.yaxis, log=says.logy, most=6, word=ytick, base=says.ybase, integers=says.ywhole
        )
        shown = [ytick(v) for v in _seen(axes.yaxis)]
        self.left = max(self.left, 12 + max(text_width(word, SMALL) for word in shown or [""]))
        self._place()
        xtick = _plain if not says.logx else number if says.xticks is None else "{:.0f}".format
        low, high = axes.get_xlim()
        ends = says.xticks or ((low, high) if says.logx else _seen(axes.xaxis))
        self.right = max(self.right, math.ceil(text_width(xtick(ends[-1]), SMALL) / 2 + 1))
        self._place()
        most = room_for([xtick(v) for v in ends], self.plot_width)
        number_axis(
            axes.xaxis,
            log=says.logx,
            word=xtick,
            integers=says.xwhole,
            ticks=says.xticks,
            most=most if says.xticks else min(most, 6 if self.width <= NARROW else 8),
        )
        axes.grid(axis="x", visible=False)
        axes.tick_params(length=4)
        for n, line in enumerate(self.above):
            self.words(8, 16 + LINE * n, line)
        for n, line in enumerate(self.below):
            half = text_width(line) / 2
            middle = min(max(self.left + self.plot_width / 2, half + 8), self.width - half - 8)
            self.words(middle, self.first_below + LINE * n, line, ha="center")
        y = self.first_below + LINE * (len(self.below) - 1 + self.note_apart)
        self.words(self.width - 8, y, says.note, color=LIGHT["muted"], size=SMALL, ha="right")

    def words(
        self,
        x: float,
        y: float,
        words: str,
        color: str = LIGHT["ink"],
        size: float = NORMAL,
        ha: str = "left",
    ) -> None:
        place = (x / self.width, 1 - y / self.height)
        self.drawing.text(*place, words, color=color, fontsize=size, ha=ha, **PLAIN)

    def sample(self, y: float, x: float = 8, **look: Any) -> None:
        """A piece of a line before its words in the key; y is the base line of the words."""
        at = 1 - (y - 4) / self.height
        across = [(x + more) / self.width for more in (0, 12, 24)]
        line = Line2D(across, [at] * 3, transform=self.drawing.transFigure, markevery=[1], **look)
        self.drawing.add_artist(line)


def _seen(axis: Any) -> list[float]:
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    return [v for v in axis.get_major_locator()() if low - room <= v <= high + room]


def chart(lines: Sequence[Line], axes: Axes, *, alt: str) -> Panel:
    """Lines with labels at their ends, no legend to look up; on a phone a key stands below."""
    longest = max(text_width(line.label) for line in lines)
    right = longest + 22
    plot = min(PLOT_WIDTH, WIDE - LEFT - right)
    with style():
        wide = (
            _chart(lines, axes, LEFT + plot + right, right)
            if plot >= LEAST_PLOT
            else _chart(lines, axes, LEFT + PLOT_WIDTH + 60, None)
        )
        narrow = _chart(lines, axes, NARROW, right if longest <= SHORT else None)
    return Panel(Plot(wide), alt, Plot(narrow))


def _chart(lines: Sequence[Line], axes: Axes, width: float, right: float | None) -> Drawing:
    """The chart with its labels in `right` px beside the lines, or with None in a key."""
    entries = [] if right is not None else _entries([line.label for line in lines], width)
    frame = Frame(axes, width, right or 14, sum(map(len, entries)))
    frame.scales()
    for line in lines:
        colour = LIGHT[line.role]
        if line.low is not None and line.high is not None:
            frame.axes.fill_between(
                line.x,
                line.low,
                line.high,
                color=colour,
                alpha=0.18,
                linewidth=0,
                gid="tfviz-band",
            )
        frame.axes.plot(
            line.x,
            line.y,
            **_look(line),
            clip_on=False,
            gid="tfviz-line",
            zorder=4 if line.role == "attention" else 3,
        )
    frame.axes.set_xlim(right=max(float(line.x[-1]) for line in lines))
    frame.finish()
    if right is not None:
        _end_labels(frame, lines)
    y = frame.key_top
    for line, entry in zip(lines, entries, strict=False):
        frame.sample(y, **_look(line))
        for words in entry:
            frame.words(40, y, words, LIGHT[line.role])
            y += LINE
    return frame.drawing


def _look(line: Line) -> dict[str, Any]:
    colour = LIGHT[line.role]
    shown = line.marker is not None and len(line.x) <= 16
    return {
        "color": colour,
        "marker": MARKERS[(line.marker or 0) % len(MARKERS)] if shown else None,
        "markersize": 5.5,
        "markerfacecolor": LIGHT["page"] if line.hollow else colour,
        "dashes": line.dashes or (None, None),
    }


def _entries(labels: Sequence[str], width: float) -> list[list[str]]:
    """The labels of a key, each in as many lines as it needs."""
    return [wrapped(label, width - 48, whole=False) or [""] for label in labels]


def _plain(value: float) -> str:
    """A tick of a linear axis, as exact as its step."""
    return f"{round(value, 12):.6g}".replace("-", "−")


def _end_labels(frame: Frame, lines: Sequence[Line]) -> None:
    """Labels at the right, in the order of the line ends and at least a line apart."""
    axes, height = frame.axes, frame.plot_height
    bottom = frame.height - frame.top - height
    to_px = axes.transData.transform
    ends = sorted(
        (float(to_px((line.x[-1], line.y[-1]))[1]) - bottom, n) for n, line in enumerate(lines)
    )
    places = _spread([y for y, _ in ends], 16.0, height)
    for (end, n), place in zip(ends, places, strict=True):
        line = lines[n]
        if abs(place - end) > 3:  # a leader from the end of the line to its label
            axes.annotate(
                "",
                (1, end / height),
                (1 + 12 / frame.plot_width, place / height),
                xycoords="axes fraction",
                textcoords="axes fraction",
                annotation_clip=False,
                arrowprops=LEADER,
            )
        axes.annotate(
            line.label,
            (1, place / height),
            (14, -0.34 * NORMAL),
            xycoords="axes fraction",
            textcoords="offset points",
            color=LIGHT[line.role],
            fontsize=NORMAL,
            annotation_clip=False,
            **PLAIN,
        )


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
    several = isinstance(highlight, Sequence | set | frozenset) and not isinstance(highlight, str)
    chosen = {label("highlight", name) for name in (highlight if several else [highlight])}
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
    explore: bool | None = None,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """Lines over x with a band over seeds.

    `series`: name → values of shape (len(x),) or (seeds, len(x)). The line is the mean, the band
    the range over seeds (or mean ± standard deviation). The number of seeds is printed.
    `highlight` wears the attention colour (default: the first); the others are ink with
    their own dash and marker. Labels stand at the line ends. What was measured with seeds can be
    explored with plotly; `explore` says otherwise.
    """
    xs = np.asarray(x, dtype=float)
    if xs.ndim != 1 or len(xs) < 2 or not np.isfinite(xs).all() or (np.diff(xs) <= 0).any():
        raise ValueError(f"x has shape {xs.shape}; give at least two finite numbers, rising")
    if band not in ("range", "std"):
        raise ValueError(f"band = {band!r}; choose 'range' or 'std'")
    if not series:
        raise ValueError("series is empty; give name → values")
    xlabel, ylabel = title_line("xlabel", xlabel), title_line("ylabel", ylabel)
    tables = {
        name: _table(name, values, len(xs)) for name, values in named("series", series).items()
    }
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
    axes = Axes(
        xlabel,
        ylabel,
        logx,
        logy,
        xwhole=whole(xs),
        note=note,
        ywhole=whole(np.concatenate([table.ravel() for table in tables.values()])),
    )
    drawn = chart(lines, axes, alt=f"{ylabel} over {xlabel}. {' '.join(words)}")
    stored = any(table.ndim == 2 for table in tables.values())
    spec = line_spec(lines, axes) if (stored if explore is None else explore) else None
    return Figure([drawn], alt=alt, caption=caption, spec=spec)


def line_spec(lines: Sequence[Line], axes: Axes) -> dict[str, Any]:
    """The same lines for plotly; a line and its band come and go together."""
    data = []
    for line in lines:
        colour = f"role:{line.role}"
        x = [_round(v) for v in line.x]
        if line.low is not None and line.high is not None:
            around = [*line.high, *np.asarray(line.low)[::-1]]
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "x": x + x[::-1],
                    "y": [_round(v) for v in around],
                    "fill": "toself",
                    "fillcolor": f"{colour}/0.18",
                    "line": {"width": 0},
                    "hoverinfo": "skip",
                    "legendgroup": for_plotly(line.label),
                    "showlegend": False,
                }
            )
        marker = SYMBOLS[(line.marker or 0) % len(SYMBOLS)] + ("-open" if line.hollow else "")
        marked = line.marker is not None and len(x) <= 16
        dash = DASHES.index(line.dashes) if line.dashes in DASHES else 1
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if marked else "lines",
                "name": for_plotly(line.label),
                "legendgroup": for_plotly(line.label),
                "x": x,
                "y": [_round(v) for v in line.y],
                "line": {"color": colour, "dash": DASH_NAMES[dash], "width": 2},
                "marker": {"color": colour, "symbol": marker, "size": 7},
            }
        )
    return live.specification(data, _layout(axes) | {"hovermode": "x unified"})


def _layout(axes: Axes) -> dict[str, Any]:
    xkind, ykind = ("log" if log else "linear" for log in (axes.logx, axes.logy))
    return {
        "height": live.HEIGHT,
        "title": {"text": for_plotly(axes.ylabel), "x": 0, "font": {"size": 13}},
        "xaxis": live.axis(axes.xlabel, type=xkind),
        "yaxis": live.axis("", type=ykind, hoverformat=".3~g"),
        "legend": {"orientation": "h", "y": -0.22},
        "margin": {"l": 64, "r": 16, "t": 40, "b": 48},
    }


def _round(value: float) -> float:
    """Four digits: more are not seen."""
    rounded = float(f"{float(value):.4g}")
    return int(rounded) if rounded == int(rounded) else rounded


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
    explore: bool | None = None,
    caption: str | None = None,
    alt: str | None = None,
) -> Figure:
    """One labelled point per variant: name → (x, [one y per seed]); a bar spans the seeds.

    What was measured with seeds can be explored with plotly; `explore` says otherwise.
    """
    if not series:
        raise ValueError("series is empty; give name → (x, [y per seed])")
    xlabel, ylabel = title_line("xlabel", xlabel), title_line("ylabel", ylabel)
    series = named("series", series)
    chosen = _highlighted(list(series), highlight)
    named_points = {}
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
        named_points[name] = (at, table)
    note = _seeds([len(table) for _, table in named_points.values()], "range")
    axes = Axes(
        xlabel, ylabel, logx, xwhole=whole([at for at, _ in named_points.values()]), note=note
    )
    words = [
        f"{name}: {number(t.mean())} at {number(at)}"
        + (f" ({number(t.min())} to {number(t.max())} over {len(t)} seeds)" if len(t) > 1 else "")
        for name, (at, t) in named_points.items()
    ]
    with style():
        wide, narrow = (_scatter(named_points, chosen, axes, width) for width in (640, NARROW))
    panel = Panel(Plot(wide), f"{ylabel} over {xlabel}. {'; '.join(words)}.", Plot(narrow))
    stored = any(len(table) > 1 for _, table in named_points.values())
    spec = (
        _point_spec(named_points, chosen, axes)
        if (stored if explore is None else explore)
        else None
    )
    return Figure([panel], alt=alt, caption=caption, spec=spec)


Found = Mapping[str, tuple[float, np.ndarray]]


def _scatter(
    named_points: Found, chosen: set[str], axes: Axes, width: float, keyed: bool = False
) -> Drawing:
    """The points with their names beside them, or numbered with a key where names find no room."""
    columns = int(width // KEY_COLUMN) if keyed and len(named_points) > KEY_ROWS else 1
    entries = _entries(list(named_points), width / columns) if keyed else []
    deep = math.ceil(len(entries) / columns)  # entries of a column of the key
    runs = [entries[n : n + deep] for n in range(0, len(entries), deep or 1)]
    frame = Frame(axes, width, 20, max((sum(map(len, run)) for run in runs), default=0))
    frame.scales()
    for n, (name, (at, table)) in enumerate(named_points.items()):
        colour = LIGHT["attention" if name in chosen else "ink"]
        frame.axes.plot(
            [at, at], [table.min(), table.max()], color=colour, linestyle="-", linewidth=2
        )
        frame.axes.plot(
            [at],
            [table.mean()],
            color=colour,
            linestyle="",
            markersize=8,
            marker=MARKERS[n % len(MARKERS)],
            gid="tfviz-point",
        )
    xs = [at for at, _ in named_points.values()]
    after = 0.08 if keyed else 0.28
    room = math.log(max(xs) / min(xs) + 1e-9) if axes.logx else max(xs) - min(xs)
    if axes.logx:
        frame.axes.set_xlim(
            min(xs) * math.exp(-0.08 * room - 0.02), max(xs) * math.exp(after * (room + 1))
        )
    else:
        frame.axes.set_xlim(min(xs) - 0.08 * room - 0.02, max(xs) + after * (room + 1))
    frame.axes.margins(y=0.14)
    frame.axes.autoscale(axis="y")
    frame.finish()
    labels = {name: str(n) if keyed else name for n, name in enumerate(named_points, start=1)}
    away = (10, 24, 38) if keyed else (10,)  # numbers may stand farther off than names
    if not _point_labels(frame, named_points, chosen, labels, away) and not keyed:
        return _scatter(named_points, chosen, axes, width, keyed=True)
    y = frame.key_top
    for n, (name, entry) in enumerate(zip(named_points, entries, strict=False)):
        colour = LIGHT["attention" if name in chosen else "ink"]
        column, row = divmod(n, deep)
        x = 8 + column * width / columns
        y = y if row else frame.key_top
        frame.sample(
            y, x + 11, color=colour, marker=MARKERS[n % len(MARKERS)], linestyle="", markersize=7
        )
        frame.words(x, y, labels[name], colour)
        for line in entry:
            frame.words(x + 38, y, line, colour)
            y += LINE
    return frame.drawing


def _point_labels(
    frame: Frame,
    named_points: Found,
    chosen: set[str],
    labels: Mapping[str, str],
    away: Sequence[int],
) -> bool:
    """Each label on the first free side of its point: right, left, above, below, so many px away;
    False where one finds none."""
    axes = frame.axes
    taken: list[tuple[float, float, float, float]] = []
    places = {}
    for name, (at, table) in named_points.items():
        x, y = axes.transData.transform((at, table.mean()))
        places[name] = (float(x), float(y))
        taken.append((x - 6, y - 6, x + 6, y + 6))
        bottom, top = (axes.transData.transform((at, v))[1] for v in (table.min(), table.max()))
        taken.append((x - 2, bottom, x + 2, top))
    all_fit = True
    for name, (x, y) in places.items():
        width = text_width(labels[name])
        choices = [
            (dx if side > 0 else -dx - width, dy)
            for dx in away
            for dy in (0, 14, -14, 28, -28, 42, -42)
            for side in (1, -1)
        ]
        for dx, dy in choices:
            box = (x + dx, y + dy - 7, x + dx + width, y + dy + 7)
            inside = box[0] > frame.left + 2 and box[2] < frame.width - 4
            if inside and not any(
                box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3] for t in taken
            ):
                break
        else:
            all_fit = False
            dx, dy = choices[0]
            box = (x + dx, y - 7, x + dx + width, y + 7)
        taken.append(box)
        left, (at, table) = dx >= 0, named_points[name]
        axes.annotate(
            labels[name],
            (at, table.mean()),
            (dx if left else dx + width, dy - 0.34 * NORMAL),
            textcoords="offset points",
            fontsize=NORMAL,
            ha="left" if left else "right",
            annotation_clip=False,
            **PLAIN,
            color=LIGHT["attention" if name in chosen else "ink"],
        )
    return all_fit


def _point_spec(named_points: Found, chosen: set[str], axes: Axes) -> dict[str, Any]:
    """The same points for plotly, each with a bar over its seeds."""
    data = []
    for n, (name, (at, table)) in enumerate(named_points.items()):
        colour = f"role:{'attention' if name in chosen else 'ink'}"
        mean = float(table.mean())
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": for_plotly(name),
                "x": [_round(at)],
                "y": [_round(mean)],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "color": colour,
                    "width": 0,
                    "array": [_round(float(table.max()) - mean)],
                    "arrayminus": [_round(mean - float(table.min()))],
                },
                "marker": {"color": colour, "symbol": SYMBOLS[n % len(SYMBOLS)], "size": 10},
            }
        )
    return live.specification(data, _layout(axes) | {"hovermode": "closest"})
