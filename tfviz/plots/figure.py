"""A figure that carries its own words: inline SVG in both themes, a PNG, an alt text, a caption."""

import base64
import hashlib
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure as Drawing
from PIL import Image

from tfviz.plots.roles import LIGHT, notebook_css
from tfviz.plots.svg import inline, is_wide, standalone

PNG_SCALE = 2
SIDE_BY_SIDE = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:1rem;overflow-x:auto"


@dataclass(frozen=True)
class Panel:
    """One drawing with the words for those who cannot see it."""

    drawing: Drawing
    alt: str

    def svg(self) -> str:
        buffer = io.StringIO()
        salt = hashlib.sha256(self.alt.encode()).hexdigest()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
            # dpi 72 makes one point of matplotlib one CSS pixel
            self.drawing.savefig(
                buffer, format="svg", dpi=72, transparent=True, metadata={"Date": None}
            )
        return inline(buffer.getvalue(), self.alt)

    def picture(self) -> Image.Image:
        buffer = io.BytesIO()
        self.drawing.savefig(buffer, format="png", dpi=72 * PNG_SCALE, facecolor=LIGHT["page"])
        return Image.open(buffer).convert("RGB")


class Figure:
    """One or several drawings side by side; on a narrow screen they wrap.

    `alt` says what the data are, `caption` what to see. `svg`, `png` and `html` are the faces;
    `save("mask.svg")` or `save("mask.png")` writes a file. In a notebook or in the book it shows
    itself.
    """

    def __init__(
        self, panels: Sequence[Panel], *, alt: str | None = None, caption: str | None = None
    ) -> None:
        if not panels:
            raise ValueError("a figure needs at least one panel; give a drawing")
        if alt is not None and not alt.strip():
            raise ValueError(f"alt = {alt!r} is empty; say in one sentence what the data are")
        self.panels = tuple(panels)
        self.caption = caption
        self._own_alt = alt
        if alt is not None and len(panels) == 1:
            self.panels = (Panel(panels[0].drawing, alt),)

    @property
    def alt(self) -> str:
        return self._own_alt or " ".join(panel.alt for panel in self.panels)

    @property
    def svgs(self) -> list[str]:
        return [panel.svg() for panel in self.panels]

    @property
    def svg(self) -> str:
        """The SVG of a figure with one panel."""
        if len(self.panels) > 1:
            raise ValueError(f"this figure has {len(self.panels)} panels; use .svgs or .html")
        return self.panels[0].svg()

    @property
    def png(self) -> bytes:
        """All panels beside each other in the light theme, two pixels for one."""
        pictures = [panel.picture() for panel in self.panels]
        gap = 24 * PNG_SCALE
        width = sum(p.width for p in pictures) + gap * (len(pictures) - 1)
        sheet = Image.new("RGB", (width, max(p.height for p in pictures)), LIGHT["page"])
        left = 0
        for picture in pictures:
            sheet.paste(picture, (left, 0))
            left += picture.width + gap
        buffer = io.BytesIO()
        sheet.save(buffer, format="PNG", optimize=True)
        return buffer.getvalue()

    @property
    def html(self) -> str:
        drawings = "".join(self.svgs)
        words = ""
        scroll = ""
        if any(is_wide(panel.drawing.get_figwidth() * 72) for panel in self.panels):
            scroll = ' tabindex="0"'  # what scrolls must be within reach of the keyboard
        if self._own_alt and len(self.panels) > 1:  # one picture to those who listen
            words = f' role="img" aria-label="{html.escape(self._own_alt)}"'
            drawings = drawings.replace(' role="img"', ' role="presentation" aria-hidden="true"')
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return (
            f'<figure class="tfviz-figure"><style>{notebook_css()}</style>'
            f'<div class="tfviz-panels" style="{SIDE_BY_SIDE}"'
            f"{scroll}{words}>{drawings}</div>{caption}</figure>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {
            "text/html": self.html,
            "image/png": base64.b64encode(self.png).decode(),
            "text/plain": f"{self.caption}\n{self.alt}" if self.caption else self.alt,
        }

    def save(self, path: str | Path) -> Path:
        """Write the figure as .svg (one panel) or .png."""
        path = Path(path)
        if path.suffix == ".svg":
            path.write_text(standalone(self.svg), encoding="utf-8")
        elif path.suffix == ".png":
            path.write_bytes(self.png)
        else:
            raise ValueError(f"path = {str(path)!r} ends in {path.suffix!r}; use .svg or .png")
        return path

    def __repr__(self) -> str:
        return f"Figure({self.alt!r})"


def figure(drawing: Drawing, *, alt: str, caption: str | None = None) -> Figure:
    """Wrap any matplotlib figure: role colours become theme-aware, black becomes ink.

    Draw it under `with plots.style():` and colour by role: `plots.LIGHT["query"]`. The figure is
    closed, so that a notebook does not show it twice.
    """
    if not isinstance(drawing, Drawing):
        raise TypeError(f"fig = {drawing!r} is not a matplotlib figure; give plt.gcf() or fig")
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"alt = {alt!r}; say in one sentence what the data are, with numbers")
    import matplotlib.pyplot as plt

    plt.close(drawing)
    return Figure([Panel(drawing, alt)], caption=caption)


def beside(*figures: Figure, alt: str | None = None, caption: str | None = None) -> Figure:
    """Figures side by side as one figure with one caption."""
    for n, one in enumerate(figures):
        if not isinstance(one, Figure):
            raise TypeError(f"figures[{n}] = {one!r} is not a Figure; wrap it with plots.figure")
    return Figure([p for one in figures for p in one.panels], alt=alt, caption=caption)


def style() -> Any:
    """Context manager with matplotlib settings in role colours: `with plots.style(): …`.

    The line cycle runs attention, ink, ink, … with its own dash for each line: a colour keeps its
    meaning and no line is told by colour alone.
    """
    ink, muted, grid = LIGHT["ink"], LIGHT["muted"], LIGHT["grid"]
    cycle = cycler(color=[LIGHT["attention"], ink, muted, ink, muted]) + cycler(
        linestyle=["-", "--", "-", ":", "-."]
    )
    return mpl.rc_context(
        {
            "font.family": "DejaVu Sans",
            "font.size": 12,
            "figure.dpi": 72,
            "figure.constrained_layout.use": True,
            "text.color": ink,
            "axes.labelcolor": ink,
            "axes.edgecolor": muted,
            "axes.linewidth": 1,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.titlesize": 13,
            "axes.prop_cycle": cycle,
            "grid.color": grid,
            "grid.linewidth": 1,
            "xtick.color": muted,
            "ytick.color": muted,
            "xtick.labelcolor": ink,
            "ytick.labelcolor": ink,
            "xtick.labelsize": 11,
            "ytick.labelsize": 11,
            "lines.linewidth": 2,
            "legend.frameon": False,
        }
    )
