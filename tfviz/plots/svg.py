"""SVG as figures write it: small, in role colours that follow the theme, text as text."""

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from tfviz.plots.roles import LIGHT
from tfviz.plots.shapes import Step

SVG = "http://www.w3.org/2000/svg"
CRISP = {"kept", "borders", "weights", "positive", "negative", "backdrop"}
"""Groups whose edges must fall on whole pixels."""

ET.register_namespace("", SVG)


def element(name: str, /, **attributes: str) -> ET.Element:
    """An element of SVG; `shape_rendering` stands for shape-rendering, `class_` for class."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    return ET.Element(f"{{{SVG}}}{name}", named)


def group(name: str) -> ET.Element:
    """A group with a name, by which tests and style sheets find what is drawn."""
    crisp = {"shape_rendering": "crispEdges"} if name in CRISP else {}
    return element("g", class_=name, **crisp)


def root(width: float, height: float, alt: str) -> ET.Element:
    """The picture itself, no wider than its place; `alt` is for those who cannot see it."""
    wide, high = decimal(width), decimal(height)
    drawing = element(
        "svg",
        class_="tfviz-svg",
        role="img",
        aria_label=alt,
        width=wide,
        height=high,
        viewBox=f"0 0 {wide} {high}",
        fill="currentColor",
        stroke_linejoin="round",
        style="max-width:100%;height:auto",
    )
    return drawing


def written(node: ET.Element) -> str:
    return ET.tostring(node, encoding="unicode")


def standalone(svg: str) -> str:
    """The same SVG as a file of its own: it can inherit neither a font nor the colour of text, and
    viewers show its title."""
    node = ET.fromstring(svg)
    title = element("title")
    title.text = node.get("aria-label")
    node.insert(0, title)
    node.attrib |= {"font-family": "system-ui, sans-serif", "color": LIGHT["ink"]}
    return written(node)


def decimal(value: float, digits: int = 2) -> str:
    """A number with at most so many decimals, without a tail of zeros."""
    value = round(value, digits) + 0.0
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else str(int(value))


def path_data(steps: Iterable[Step]) -> str:
    """The `d` of a path in few characters: relative moves, which repeat in a matrix; h and v."""
    out: list[str] = []
    x = y = 0.0
    start = (0.0, 0.0)
    for command, numbers in steps:
        values = [round(float(n), 2) for n in numbers]
        if command == "Z":
            out.append("z")
            x, y = start
        elif command == "M":
            dx, dy = values[0] - x, values[1] - y
            x, y = start = (values[0], values[1])
            out.append(f"{'m' if out else 'M'}{decimal(dx)} {decimal(dy)}")
        elif command == "L":
            dx, dy = values[0] - x, values[1] - y
            x, y = values
            if abs(dx) < 5e-3 and abs(dy) < 5e-3:
                continue
            if abs(dy) < 5e-3:
                out.append(f"h{decimal(dx)}")
            elif abs(dx) < 5e-3:
                out.append(f"v{decimal(dy)}")
            else:
                out.append(f"l{decimal(dx)} {decimal(dy)}")
        else:
            moved = [decimal(v - (y if n % 2 else x)) for n, v in enumerate(values)]
            out.append(command.lower() + " ".join(moved))
            x, y = values[-2:]
    return "".join(out)


def steps(data: str) -> list[Step]:
    """A path in absolute M, L, C, Q and Z as steps."""
    commands = re.findall(r"([MLCQzZ])([^MLCQzZ]*)", data)
    return [(command.upper(), tuple(map(float, rest.split()))) for command, rest in commands]
