"""The live side of a figure: a plotly specification with role names as colours.

In a page the specification is JSON `{"data": …, "layout": …}` in which a string that is exactly
"role:attention", or "role:grid/0.5" with an opacity, stands for that role's colour in the theme at
hand. The picture comes first; a button fetches plotly from the site itself and puts the live figure
in its place (`book/assets/js/figures.js`). Without scripts the picture stays, and nothing else is
seen. In a notebook the same specification, in light colours, is plotly's at once.
"""

import html
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.colors import to_rgb

from tfviz._labels import for_plotly, json_in_html, legal
from tfviz.plots.roles import LIGHT, ROLES, Role, notebook_css

HEIGHT = 380
NAMES = {LIGHT[role].lower(): f"role:{role}" for role in ROLES}
CLEAR = "rgba(0,0,0,0)"
BUTTON = "Explore this figure"


def framed(
    still: str, rules: str, alt: str, caption: str | None, spec: Mapping[str, Any] | None
) -> str:
    """A `<figure>`: the picture, the button with the specification behind it, the caption."""
    more = ""
    if spec is not None:
        more = (
            f'<div class="tfviz-plotly" data-alt="{html.escape(alt)}" hidden>'
            f'<button type="button">{BUTTON}</button>'
            f'<script type="application/json">{json_in_html(spec)}</script></div>'
        )
    words = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    container = ".tfviz-figure{container-type:inline-size}" if rules else ""
    return (
        f'<figure class="tfviz-figure"><style>{notebook_css()}{container}{rules}</style>'
        f"{still}{more}{words}</figure>"
    )


def bundle(spec: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a notebook gets beside the picture: plotly's own view of the specification."""
    if spec is None:
        return {}
    light = swapped(spec, in_light)
    # ink on a dark notebook would not be seen: the paper comes along
    light["layout"] = light["layout"] | {"paper_bgcolor": LIGHT["page"]}
    if "google.colab" in sys.modules:  # Colab has neither our page script nor plotly's viewer
        import plotly.graph_objects as go

        whole = go.Figure(light).to_html(full_html=False, include_plotlyjs="cdn")
        return {"text/html": whole}
    return {"application/vnd.plotly.v1+json": light}


def swapped(part: Any, swap: Any) -> Any:
    """The same specification with `swap` applied to every string."""
    if isinstance(part, str):
        return swap(part)
    if isinstance(part, Mapping):
        return {key: swapped(value, swap) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [swapped(value, swap) for value in part]
    return part


def in_light(words: str) -> str:
    """A role name as its light colour; other words as they are."""
    name, _, opacity = words.removeprefix("role:").partition("/")
    if not words.startswith("role:") or name not in LIGHT:
        return words
    if not opacity:
        return LIGHT[name]
    red, green, blue = (round(255 * part) for part in to_rgb(LIGHT[name]))
    return f"rgba({red},{green},{blue},{opacity})"


def in_roles(words: str) -> str:
    """A light role colour as the name of its role; other words as they are."""
    return NAMES.get(words.lower(), words)


def plotly_style() -> dict[str, Any]:
    """Layout settings in role colours, for `fig.update_layout(**plots.plotly_style())`."""
    axis = {"gridcolor": LIGHT["grid"], "linecolor": LIGHT["muted"], "zeroline": False}
    return {
        "template": None,
        "font": {"color": LIGHT["ink"], "size": 13},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "colorway": [LIGHT["attention"], LIGHT["ink"], LIGHT["muted"]],
        "hoverlabel": {
            "bgcolor": LIGHT["page"],
            "bordercolor": LIGHT["muted"],
            "font": {"color": LIGHT["ink"]},
        },
        "margin": {"l": 64, "r": 16, "t": 24, "b": 48},
        "xaxis": dict(axis),
        "yaxis": dict(axis),
    }


def specification(data: Sequence[Any], layout: Mapping[str, Any]) -> dict[str, Any]:
    """Data and layout, with our look below what they say themselves, in names of roles."""
    look = plotly_style()
    del look["template"]
    own = {key: value for key, value in layout.items() if key != "template"}
    figure: dict[str, Any] = swapped(
        {"data": list(data), "layout": look | own}, lambda words: in_roles(legal(words))
    )
    return figure


def axis(title: str, role: Role = "ink", **more: Any) -> dict[str, Any]:
    base = plotly_style()["xaxis"]
    return base | {"title": {"text": for_plotly(title), "font": {"color": LIGHT[role]}}} | more
