"""What was measured of the family, in the atlas.

```{family-measured}      a table: one row for each mechanism in the result `family`, to be sorted
```{family-picture}       the same as points: how well against how long a step takes
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from catalogue_directives import Directive, el, svg
from docutils import nodes
from sphinx.application import Sphinx

import tfviz_lab
from tfviz import catalogue, plots, stored

SOURCES = ("family", "extrapolation")
COLUMNS = {
    "text": "text, nats per character",
    "recall": "recall, nats per symbol",
    "parameters": "parameters",
}


def measured() -> dict[str, dict[str, Any]]:
    """By mechanism: scores of each seed at the training length, parameters, time, memory."""
    family, race = (tfviz_lab.load(name) for name in SOURCES)
    at = family["scored_lengths"].index(family["train_length"])
    rows = {}
    for name, row in family["mechanisms"].items():
        old = family["raced"].get(name)
        scores = {task: race["tasks"][task][old] if old else row[task] for task in race["tasks"]}
        rows[name] = row | {task: [seed[at] for seed in losses] for task, losses in scores.items()}
    return rows


def cell(value: float, text: str, more: str = "") -> nodes.Node:
    parts = [text, el("small", more)] if more else [text]
    return el("td", *parts, data_value=f"{value:.6g}")


class FamilyMeasured(Directive):
    """Complete without a script; atlas.js makes the headings buttons that sort."""

    def run(self) -> list[nodes.Node]:
        for name in SOURCES:
            self.env.note_dependency(str(stored.RESULTS / f"{name}.json"))
        lengths = tfviz_lab.load("family")["lengths"]
        names = ["mechanism", *COLUMNS.values()]
        names += [f"{what}, L = {L:,}" for what in ("time", "memory") for L in lengths]
        head = el("thead", el("tr", *(el("th", name, scope="col") for name in names)))
        body = el("tbody")
        for name, row in measured().items():
            cells = [
                el("th", *self.link(catalogue.get(name), catalogue.get(name).short), scope="row")
            ]
            for task in ("text", "recall"):
                low, high = min(row[task]), max(row[task])
                cells.append(
                    cell(mean(row[task]), f"{mean(row[task]):.2f}", f" {low:.2f}–{high:.2f}")
                )
            cells.append(cell(row["parameters"], f"{row['parameters']:,}"))
            cells += [cell(x, f"{x:.2f} ×") for what in ("time", "memory") for x in row[what]]
            body += el("tr", *cells)
        table = el("table", head, body, class_="tfv-measured")
        box = {"role": "region", "tabindex": 0, "aria_label": "Measured, scrolls sideways"}
        return [el("div", table, class_="tfv-measured-box", **box)]


class FamilyPicture(Directive):
    def run(self) -> list[nodes.Node]:
        longest = tfviz_lab.load("family")["lengths"][-1]
        series = {
            catalogue.get(name).short: (row["time"][-1], row["text"])
            for name, row in measured().items()
        }
        picture = plots.points(
            series,
            xlabel=f"time of a training step at L = {longest:,}, ÷ the plain model's",
            ylabel="nats per character at L = 64",
            logx=True,
            caption="Down is better, left is quicker. Each bar spans three runs.",
        )
        return [svg(picture.html)]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("family-measured", FamilyMeasured)
    app.add_directive("family-picture", FamilyPicture)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
