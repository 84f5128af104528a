"""From matplotlib's SVG to one that can live inside a page: small, themed, with its own ids."""

import hashlib
import re
from xml.etree import ElementTree as ET

from tfviz.plots.roles import LIGHT, ROLES, Role, css

SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"
CRISP = {"kept", "borders", "weights", "positive", "negative", "backdrop"}
"""Groups whose edges must fall on whole pixels."""
TINTS: dict[str, Role] = {
    "weights": "attention",
    "positive": "attention",
    "negative": "ink",
    "kept": "attention",
    "kept-before": "attention",
    "backdrop": "page",
}
"""The colour of an image of opacities, by its name."""
READABLE = 500
"""A wide drawing shrinks to this many px on a phone and then scrolls: its words stay readable."""
COLOURS = {LIGHT[role].lower(): css(role) for role in ROLES} | {"#000000": "currentColor"}

ET.register_namespace("", SVG)


def inline(source: str, alt: str) -> str:
    """The SVG with role colours as CSS variables, as an image with a text alternative.

    Drawn things that matplotlib named by `gid` keep that name as their class; all other ids are
    dropped or, if something points to them, made from a hash of the content.
    """
    root = ET.fromstring(source[source.index("<svg") :])
    view = [_number(n) for n in root.attrib["viewBox"].split()]
    prefix = "t" + hashlib.sha256((source + alt).encode()).hexdigest()[:8]
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', source))
    ids = {old: f"{prefix}{n}" for n, old in enumerate(sorted(used))}
    least = f"min-width:{READABLE}px;" if is_wide(float(view[2])) else ""
    children = [kept for child in root for kept in _clean(child, ids, prefix)]
    new = ET.Element(
        f"{{{SVG}}}svg",
        {
            "class": "tfviz-svg",
            "role": "img",
            "aria-label": alt,
            "width": view[2],
            "height": view[3],
            "viewBox": " ".join(view),
            "fill": "currentColor",
            "stroke-linejoin": "round",
            "style": f"{least}max-width:100%;height:auto",
        },
    )
    new.extend(children)
    return ET.tostring(new, encoding="unicode")


def is_wide(width: float) -> bool:
    return width > READABLE


def standalone(svg: str) -> str:
    """The same SVG as a file of its own: it can inherit neither a font nor the colour of text."""
    font = f' font-family="system-ui, sans-serif" color="{LIGHT["ink"]}"'
    return svg.replace(' role="img"', f' role="img"{font}', 1)


def _clean(node: ET.Element, ids: dict[str, str], prefix: str) -> list[ET.Element]:
    tag = node.tag.removeprefix(f"{{{SVG}}}")
    if tag in ("metadata", "style") or not node.tag.startswith(f"{{{SVG}}}"):
        return []
    children = [kept for child in node for kept in _clean(child, ids, prefix)]
    attributes = _attributes(node, ids)
    name = node.attrib.get("id", "")
    if tag == "g":
        named = name.startswith("tfviz-")
        if named:
            name = name.removeprefix("tfviz-")
            attributes = {"class": name, **attributes}
            if name in CRISP:
                attributes["shape-rendering"] = "crispEdges"
        if not attributes:
            return children
    elif tag == "path" and attributes.get("style") == "fill:none":
        return []
    if tag in ("g", "defs") and not children:
        return []
    kept = ET.Element(node.tag, attributes)
    kept.text = node.text if node.text and node.text.strip() else None
    kept.extend(children)
    if tag == "image" and (role := TINTS.get(name.removeprefix("tfviz-"))):
        return _tint(kept, role, f"{prefix}w")
    return [kept]


def _tint(node: ET.Element, role: Role, key: str) -> list[ET.Element]:
    """An image of weights becomes a window onto the role's colour, so that it follows the theme."""
    digest = hashlib.sha256(repr(sorted(node.attrib.items())).encode()).hexdigest()[:8]
    window = ET.Element(f"{{{SVG}}}mask", {"id": f"{key}{digest}", "style": "mask-type:alpha"})
    window.append(node)
    node.attrib["style"] = "image-rendering:pixelated"
    paint = ET.Element(
        f"{{{SVG}}}rect",
        {
            "width": "100%",
            "height": "100%",
            "style": f"fill:{css(role)}",
            "mask": f"url(#{key}{digest})",
        },
    )
    return [window, paint]


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
            kept["d"] = _path(value)
        elif key == "style":
            if style := _style(value):
                kept["style"] = style
        elif key == "transform":
            value = re.sub(r"rotate\(-?0(\.0)? [^)]*\)\s*", "", value)
            value = re.sub(r"-?\d+\.\d+", lambda m: _number(m[0]), value).strip()
            if value:
                kept["transform"] = value
        elif key == "clip-path":
            kept[key] = f"url(#{ids[value[5:-1]]})"
        else:
            kept[key] = _number(value) if re.fullmatch(r"-?\d+\.\d+", value) else value
    return kept


def _style(style: str) -> str:
    """Colours become variables; the font is the page's."""
    kept = []
    for entry in filter(None, (part.strip() for part in style.split(";"))):
        key, value = (part.strip() for part in entry.split(":", 1))
        if key == "font-family" or (key, value) in (
            ("stroke-linejoin", "round"),
            ("stroke-linecap", "butt"),
        ):
            continue
        if key == "font":  # "italic 12px 'DejaVu Sans', …" of some matplotlib versions
            value = value.split("'")[0].strip() + " sans-serif"
        if key in ("fill", "stroke"):
            value = COLOURS.get(value.lower(), value)
        if re.fullmatch(r"-?\d+\.\d+", value):
            value = _number(value)
        kept.append(f"{key}:{value}")
    return ";".join(kept)


def _number(text: str, digits: int = 2) -> str:
    value = round(float(text), digits) + 0.0
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else str(int(value))


def _path(data: str) -> str:
    """The same path in fewer characters: relative lines, h and v."""
    out: list[str] = []
    x = y = 0.0
    start = (0.0, 0.0)
    for command, numbers in re.findall(r"([MLCQzZ])([^MLCQzZ]*)", data):
        values = [round(float(n), 2) for n in numbers.split()]
        if command in "zZ":
            out.append("z")
            x, y = start
            continue
        if command in "ML":
            dx, dy = values[0] - x, values[1] - y
            x, y = values
            if command == "M":
                start = (x, y)
                out.append(f"M{_number(str(x))} {_number(str(y))}")
            elif abs(dx) < 5e-3 and abs(dy) < 5e-3:
                continue
            elif abs(dy) < 5e-3:
                out.append(f"h{_number(str(dx))}")
            elif abs(dx) < 5e-3:
                out.append(f"v{_number(str(dy))}")
            else:
                out.append(f"l{_number(str(dx))} {_number(str(dy))}")
            continue
        moved = [_number(str(v - (y if n % 2 else x))) for n, v in enumerate(values)]
        out.append(command.lower() + " ".join(moved))
        x, y = values[-2:]
    return "".join(out)
