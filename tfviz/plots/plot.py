"""A drawing of matplotlib's as a figure needs it: its SVG made small, themed and free of ids."""

import hashlib
import io
import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from PIL import Image

from tfviz._labels import legal
from tfviz.plots import svg
from tfviz.plots.fonts import drawable
from tfviz.plots.roles import LIGHT, ROLES, css

HREF = "{http://www.w3.org/1999/xlink}href"
COLOURS = {LIGHT[role].lower(): css(role) for role in ROLES} | {"#000000": "currentColor"}
DEFAULTS = {("stroke-linejoin", "round"), ("stroke-linecap", "butt")}


@dataclass(frozen=True)
class Plot:
    """A matplotlib figure as the drawing of a panel."""

    drawing: Drawing

    @property
    def width(self) -> float:
        return self.drawing.get_figwidth() * 72

    def svg(self, alt: str) -> str:
        buffer = io.StringIO()
        salt = hashlib.sha256(alt.encode()).hexdigest()
        with (
            mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}),
            drawable(self.drawing, as_text=True),
        ):
            # dpi 72 makes one point of matplotlib one CSS pixel
            self.drawing.savefig(
                buffer, format="svg", dpi=72, transparent=True, metadata={"Date": None}
            )
        return inline(legal(buffer.getvalue()), alt)

    def picture(self, scale: int) -> Image.Image:
        buffer = io.BytesIO()
        with drawable(self.drawing):
            self.drawing.savefig(buffer, format="png", dpi=72 * scale, facecolor=LIGHT["page"])
        return Image.open(buffer).convert("RGB")

    def page(self) -> Drawing:
        """The figure of matplotlib's itself."""
        return self.drawing

    def into(self, axes: Axes) -> None:
        """Raises ValueError: it has axes of its own."""
        raise ValueError("this is a plot of matplotlib's already; plot your data into the axes")


def inline(source: str, alt: str) -> str:
    """The SVG with role colours as CSS variables, as an image with a text alternative.

    Drawn things that matplotlib named by `gid` keep that name as their class; all other ids are
    dropped or, if something points to them, made from a hash of the content.
    """
    old = ET.fromstring(source[source.index("<svg") :])
    width, height = map(float, old.attrib["viewBox"].split()[2:])
    prefix = "t" + hashlib.sha256((source + alt).encode()).hexdigest()[:8]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', source))
    ids = {name: f"{prefix}{n}" for n, name in enumerate(sorted(used))}
    new = svg.root(width, height, alt)
    new.extend(kept for child in old for kept in _clean(child, ids))
    return svg.written(new)


def _clean(node: ET.Element, ids: dict[str, str]) -> list[ET.Element]:
    tag = node.tag.removeprefix(f"{{{svg.SVG}}}")
    if tag in ("metadata", "style") or not node.tag.startswith(f"{{{svg.SVG}}}"):
        return []
    children = [kept for child in node for kept in _clean(child, ids)]
    attributes = _attributes(node, ids)
    name = node.attrib.get("id", "")
    if tag == "g":
        if name.startswith("tfviz-"):
            attributes = {"class": name.removeprefix("tfviz-"), **attributes}
        if not attributes:
            return children
    elif tag == "path" and attributes.get("style") == "fill:none":
        return []
    if tag in ("g", "defs") and not children:
        return []
    kept = ET.Element(node.tag, attributes)
    kept.text = node.text if node.text and node.text.strip() else None
    kept.extend(children)
    return [kept]


def _attributes(node: ET.Element, ids: dict[str, str]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for key, value in node.attrib.items():
        if key == "id":
            if value in ids:
                kept["id"] = ids[value]
        elif key == HREF:
            if value.startswith("#"):
                value = f"#{ids[value[1:]]}"
            kept["href"] = value.replace("\n", "")
        elif key == "d":
            kept["d"] = svg.path_data(svg.steps(value))
        elif key == "style":
            if style := _style(value):
                kept["style"] = style
        elif key == "transform":
            value = re.sub(r"rotate\(-?0(\.0)? [^)]*\)\s*", "", value)
            value = re.sub(r"-?\d+\.\d+", lambda m: svg.decimal(float(m[0])), value).strip()
            if value:
                kept["transform"] = value
        elif key == "clip-path":
            kept[key] = f"url(#{ids[value[5:-1]]})"
        else:
            kept[key] = _short(value)
    return kept


def _short(value: str) -> str:
    return svg.decimal(float(value)) if re.fullmatch(r"-?\d+\.\d+", value) else value


def _style(style: str) -> str:
    """Colours become variables; the font is the page's."""
    kept = []
    for entry in filter(None, (part.strip() for part in style.split(";"))):
        key, value = (part.strip() for part in entry.split(":", 1))
        if key == "font-family" or (key, value) in DEFAULTS:
            continue
        if key == "font":  # "italic 12px 'DejaVu Sans', …" of some matplotlib versions
            value = value.split("'")[0].strip() + " sans-serif"
        if key in ("fill", "stroke"):
            value = COLOURS.get(value.lower(), value)
        kept.append(f"{key}:{_short(value)}")
    return ";".join(kept)
