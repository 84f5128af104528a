"""What was measured in the race of everything, in the atlas.

```{family-measured}      a table: one row for each mechanism and kind of model, to be sorted
```{family-picture}       causal models as points: how well against how long a step takes
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean
from typing import Any

import thumbnails  # noqa: F401  answers what is asked below
from book_rests import shown
from catalogue_directives import Directive, el, svg
from docutils import nodes
from sphinx.application import Sphinx

from tfviz import catalogue, plots, stored
from tfviz.beyond_text.efficiency_tradeoffs import front
from tfviz.stored import race

PLAIN = "multi_head_attention"
AT = {"time": (128, 2048, 4096), "memory": (4096,)}
LONGEST = 4096


def measured() -> list[tuple[str, str, dict[str, float | None]]]:
    """(kind, mechanism, its numbers by the heading of their column), first all that is causal."""
    at, found = race.lengths().index, []
    for kind in race.KINDS:
        table = race.table(kind)
        whole = table[PLAIN]["flops"][at(LONGEST)]
        for name, row in table.items():
            numbers = {task: mean(row[task]) for task in ("text", "recall")}
            numbers["parameters, thousands"] = row["parameters"] / 1000
            for key, lengths in AT.items():
                numbers |= {f"{key}, L = {L:,}": row[key][at(L)] for L in lengths}
            flops, state = (row[key] and row[key][at(LONGEST)] for key in ("flops", "state"))
            numbers["operations"] = flops and flops / whole
            numbers["state, KB"] = state and state / 1000
            numbers["error"] = row["error"] and mean(row["error"])
            found.append((kind, name, numbers))
    return found


def written(number: float | None) -> str:
    """Two digits behind the point or three in all; "–" for what there is not."""
    if number is None:
        return "–"
    return f"{number:.2f}" if number < 10 else f"{number:.1f}" if number < 100 else f"{number:.0f}"


class FamilyMeasured(Directive):
    """Complete without a script; atlas.js makes the headings buttons that sort, and a filter."""

    def run(self) -> list[nodes.Node]:
        _depends(self)
        rows = measured()
        names = ["mechanism", "model", *rows[0][2]]
        head = el("thead", el("tr", *(el("th", name, scope="col") for name in names)))
        body = el("tbody")
        for kind, name, numbers in rows:
            link = self.link(catalogue.get(name), catalogue.get(name).short)
            cells = [el("td", written(x)) for x in numbers.values()]
            row = el("tr", el("th", *link, scope="row"), el("td", kind), *cells)
            if shown("exactness", name) == "exact":
                row["html"] = {"class": "tfv-exact"}
            body += row
        table = el("table", head, body, class_="tfv-measured")
        box = {"role": "region", "tabindex": 0, "aria_label": "Measured, scrolls sideways"}
        return [el("div", table, class_="tfv-measured-box", **box)]


class FamilyPicture(Directive):
    def run(self) -> list[nodes.Node]:
        _depends(self)
        return [svg(pareto().html)]


def pareto() -> plots.Figure:
    """The causal models, with those highlighted that no other beats in time and in text."""
    L = 2048
    known = dict(_points(race.table("causal"), race.lengths().index(L)))
    means = {name: (time, mean(losses)) for name, (time, losses) in known.items()}
    return plots.points(
        known,
        xlabel=f"time of a training step at L = {L:,}, ÷ the plain model's",
        ylabel="nats per character at L = 64",
        logx=True,
        highlight=front(means),
        alt="Each causal model of the table above as a point: its time to the right, its loss "
        f"upwards. None beats {', '.join(front(means))} in both.",
        caption="Down is better, left is quicker. No model beats a coloured one in both. Each bar "
        "spans three runs.",
    )


def _points(
    table: dict[str, dict[str, Any]], at: int
) -> Iterator[tuple[str, tuple[float, list[float]]]]:
    for name, row in table.items():
        if row["time"][at] is not None:
            yield catalogue.get(name).short, (row["time"][at], row["text"])


def _depends(directive: Directive) -> None:
    for name in race.SOURCES:
        directive.env.note_dependency(str(stored.RESULTS / f"{name}.json"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("family-measured", FamilyMeasured)
    app.add_directive("family-picture", FamilyPicture)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
