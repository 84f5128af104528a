"""Figures made for the pointer: a map with its weights, costs with their numbers, anything else.

The picture comes first, and a button makes it live; see `tfviz.plots.live`.
"""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfviz._labels import for_plotly, legal
from tfviz.patterns.pattern import Pattern
from tfviz.plots import costs, live, matrices
from tfviz.plots.figure import Figure
from tfviz.plots.grid import BORDERS_UP_TO
from tfviz.plots.inputs import MaskLike, as_weights
from tfviz.plots.live import HEIGHT
from tfviz.plots.roles import LIGHT, Role


class PlotlyFigure:
    """A plotly figure with an alt text: a picture that comes to life in the book, plotly's own view
    in a notebook.

    `spec` is the JSON that travels, `fallback` the picture; without one the words stand there.
    """

    def __init__(
        self, spec: dict[str, Any], alt: str, caption: str | None, fallback: Figure | None
    ) -> None:
        self.spec, self.alt, self.fallback = spec, legal(alt), fallback
        self.caption = None if caption is None else legal(caption)

    @property
    def html(self) -> str:
        if self.fallback:
            still = Figure(self.fallback.panels, alt=self.alt, caption=self.caption, spec=self.spec)
            return still.html
        words = f'<p class="tfviz-panels">{html.escape(self.alt)}</p>'
        return live.framed(words, "", self.alt, self.caption, self.spec)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        words = f"{self.caption}\n{self.alt}" if self.caption else self.alt
        return {"text/html": self.html, "text/plain": words} | live.bundle(self.spec)

    def __repr__(self) -> str:
        return f"PlotlyFigure({self.alt!r})"


def plotly_figure(
    fig: Any, *, alt: str, caption: str | None = None, fallback: Figure | None = None
) -> PlotlyFigure:
    """Wrap a plotly figure or {"data", "layout"} dict; role colours follow the theme.

    Colours that equal a light role colour (`plots.LIGHT["query"]`), or read "role:query", become
    that role; others stay as they are. `fallback` is the static Figure that readers see first.
    """
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"alt = {alt!r}; say in one sentence what the data are, with numbers")
    # through plotly's own JSON: arrays become lists
    spec = json.loads(fig.to_json()) if hasattr(fig, "to_json") else fig
    if not isinstance(spec, Mapping) or not isinstance(spec.get("data"), list | tuple):
        raise TypeError(
            f'fig is {type(fig).__name__}; give a plotly Figure or {{"data", "layout"}}'
        )
    whole = live.specification(spec["data"], spec.get("layout", {}))
    return PlotlyFigure(whole, alt, caption, fallback)


def hover_attention_map(
    A: Any,
    *,
    pattern: "MaskLike | None" = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    vmax: float = 1.0,
    caption: str | None = None,
    alt: str | None = None,
) -> PlotlyFigure:
    """`attention_map` of one head with the weight of the pair under the pointer."""
    still = matrices.attention_map(
        A, pattern=pattern, rows=rows, columns=columns, vmax=vmax, numbers=False, alt=alt
    )
    if len(still.panels) > 1:
        raise ValueError(f"A has {len(still.panels)} heads; give one: A[0]")
    weights = as_weights(A, "A")
    weights = weights[0] if weights.dim() == 3 else weights
    n, m = weights.shape
    allowed = matrices.allowed_pairs(pattern, (1, n, m))[0]
    table = [
        [round(a, 4) if ok else None for a, ok in zip(line, oks, strict=True)]
        for line, oks in zip(weights.tolist(), allowed.tolist(), strict=True)
    ]
    named_rows = matrices.names(rows, n, "rows")
    named_columns = matrices.names(columns, m, "columns")
    row_names = [f"{i} {named_rows[i]}" if named_rows else str(i) for i in range(n)]
    column_names = [f"{j} {named_columns[j]}" if named_columns else str(j) for j in range(m)]
    words = [
        [
            for_plotly(f"query {r} → key {c}: ") + ("not allowed" if w is None else f"{w:.3f}")
            for c, w in zip(column_names, line, strict=True)
        ]
        for r, line in zip(row_names, table, strict=True)
    ]
    grid = {
        "type": "heatmap",
        "z": table,
        "zmin": 0,
        "zmax": vmax,
        "colorscale": [[0, LIGHT["page"]], [1, LIGHT["attention"]]],
        "text": words,
        "hoverinfo": "text",
        "hoverongaps": True,
        "xgap": 1 if m <= BORDERS_UP_TO else 0,
        "ygap": 1 if n <= BORDERS_UP_TO else 0,
        "colorbar": {"title": {"text": "weight"}, "thickness": 12, "outlinewidth": 0},
    }
    out = [[i, j] for i, line in enumerate(allowed.tolist()) for j, ok in enumerate(line) if not ok]
    forbidden = {
        "type": "scatter",
        "mode": "markers",
        "x": [j for _, j in out],
        "y": [i for i, _ in out],
        "marker": {
            "symbol": "line-ne-open",
            "color": LIGHT["muted"],
            "size": max(6, min(16, 130 // n)),
            "opacity": 0.5,
        },
        "hoverinfo": "skip",
        "showlegend": False,
    }
    layout: dict[str, Any] = {
        "height": HEIGHT,
        "xaxis": live.axis(
            "key j", "key", range=[-0.5, m - 0.5], side="top", showgrid=False, constrain="domain"
        ),
        "yaxis": live.axis(
            "query i",
            "query",
            range=[n - 0.5, -0.5],
            scaleanchor="x",
            showgrid=False,
            constrain="domain",
        ),
        "margin": {"l": 56, "r": 8, "t": 56, "b": 12},
    }
    for axis, names in (("xaxis", named_columns), ("yaxis", named_rows)):
        if names:
            ticks = {"tickvals": list(range(len(names))), "ticktext": list(map(for_plotly, names))}
            layout[axis] |= ticks | {"automargin": True}
    data = [grid, forbidden] if out else [grid]
    spec = {"data": data, "layout": layout}
    return plotly_figure(spec, alt=still.alt, caption=caption, fallback=still)


def hover_cost(
    patterns: "Mapping[str, Pattern | Callable[[int], Pattern]] | Pattern",
    lengths: Sequence[int] = (64, 128, 256, 512, 1024, 2048),
    *,
    quantity: costs.Quantity = "pairs",
    d: int = 64,
    h: int = 1,
    block: int = 64,
    blocks: bool = True,
    full: bool = True,
    caption: str | None = None,
    alt: str | None = None,
) -> PlotlyFigure:
    """`cost` with the numbers under the pointer; the same options."""
    still = costs.cost(
        patterns,
        lengths,
        quantity=quantity,
        d=d,
        h=h,
        block=block,
        blocks=blocks,
        full=full,
        alt=alt,
    )
    xs, costs_by_pattern, reference = costs.counted(patterns, lengths, quantity, d, h, block)
    data = []
    symbols = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")

    def line(name: str, ys: Sequence[int], role: Role, dash: str, symbol: str) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "lines+markers",
            "name": for_plotly(name),
            "x": list(xs),
            "y": list(ys),
            "line": {"color": LIGHT[role], "dash": dash, "width": 2},
            "marker": {"color": LIGHT[role], "symbol": symbol, "size": 7},
            "text": [costs.amount(v, quantity) for v in ys],
            "hovertemplate": "%{text}",
        }

    for n, one in enumerate(costs_by_pattern):
        role: Role = "attention" if n == 0 else "ink"
        symbol = symbols[n % len(symbols)]
        p = costs.slope(xs, one.exact)
        data.append(line(f"{one.name}, slope {p:.2f}", one.exact, role, "solid", symbol))
        if blocks:
            data.append(line(f"{one.name}, in blocks", one.blocks, role, "dash", f"{symbol}-open"))
    if full:
        data.append(line("full, slope 2", reference, "muted", "solid", "circle"))
    layout: dict[str, Any] = {
        "height": HEIGHT,
        "hovermode": "x unified",
        "xaxis": live.axis("length L, log scale", type="log", tickvals=list(xs)),
        "yaxis": live.axis(costs.LABELS[quantity], type="log", exponentformat="power", dtick=1),
        "legend": {"orientation": "h", "y": -0.22},
        "margin": {"l": 72, "r": 16, "t": 16, "b": 96},
    }
    if quantity == "bytes":
        del layout["yaxis"]["dtick"], layout["yaxis"]["exponentformat"]
        powers = range(5, 41, 5)
        layout["yaxis"] |= {
            "tickvals": [2**k for k in powers],
            "ticktext": [costs.amount(2**k, "bytes") for k in powers],
        }
    spec = {"data": data, "layout": layout}
    return plotly_figure(spec, alt=still.alt, caption=caption, fallback=still)
