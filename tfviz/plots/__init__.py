"""Figures that know their data: each carries an alt text with the numbers, both themes and a PNG.

Conventions, the same in every figure: rows are queries from top to bottom, columns are keys from
left to right, positions count from 0; violet is what attention keeps; hatched means *not
allowed*, which is not the same as a weight of zero. In a list of layers the first is the one next
to the input.
"""

from tfviz import _extras

_extras.need("plots", "matplotlib", "PIL", "plotly")

from tfviz.plots.costs import cost
from tfviz.plots.curves import curve, points
from tfviz.plots.figure import Figure, beside, figure, style
from tfviz.plots.graphs import bipartite, key_set, path
from tfviz.plots.live import plotly_style
from tfviz.plots.matrices import (
    attention_map,
    hops,
    image_neighbourhood,
    mask,
    reach,
    signed_map,
)
from tfviz.plots.outcomes import outcomes
from tfviz.plots.plotly import (
    PlotlyFigure,
    hover_attention_map,
    hover_cost,
    plotly_figure,
)
from tfviz.plots.positions import positions
from tfviz.plots.roles import DARK, LIGHT, ROLES
from tfviz.plots.schematic import schematic
from tfviz.plots.trees import tree

__all__ = [
    "DARK",
    "LIGHT",
    "ROLES",
    "Figure",
    "PlotlyFigure",
    "attention_map",
    "beside",
    "bipartite",
    "cost",
    "curve",
    "figure",
    "hops",
    "hover_attention_map",
    "hover_cost",
    "image_neighbourhood",
    "key_set",
    "mask",
    "outcomes",
    "path",
    "plotly_figure",
    "plotly_style",
    "points",
    "positions",
    "reach",
    "schematic",
    "signed_map",
    "style",
    "tree",
]


def __dir__() -> list[str]:
    return __all__
