"""A figure that carries its own words: inline SVG in both themes, a PNG, an alt text, a caption.

What is broader than a phone has a second, narrow form; the page shows the one that fits its place.
"""

import base64
import html
import io
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure as Drawing
from PIL import Image

from tfviz._labels import legal
from tfviz.plots import live, svg
from tfviz.plots.fonts import drawable
from tfviz.plots.plot import Plot
from tfviz.plots.roles import LIGHT

PNG_SCALE = 2
NARROW = 344
"""Room for a narrow form, in px: the text of a page on a phone of 390 px, and a little less."""
SHRINKS_TO = 0.92
"""A wide form may shrink to this share: its words of 11 px are then 10 px high."""
PANELS = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:1rem"


class Drawable(Protocol):
    """What a panel shows: a canvas, or a plot of matplotlib's."""

    @property
    def width(self) -> float: ...

    def svg(self, alt: str) -> str: ...

    def picture(self, scale: int) -> Image.Image: ...

    def page(self) -> Drawing: ...

    def into(self, axes: Axes) -> None: ...


@dataclass(frozen=True)
class Panel:
    """One drawing, its narrow form if it needs one, and words for those who cannot see it."""

    drawing: Drawable
    alt: str
    narrow: Drawable | None = None

    @property
    def least(self) -> int:
        """Room in px from which on the wide form is shown."""
        return round(self.drawing.width * SHRINKS_TO)

    def svg(self) -> str:
        return self.drawing.svg(self.alt)

    def html(self) -> str:
        """Both forms, of which style sheets show one; without them the wide one is seen."""
        if self.narrow is None:
            return self.svg()
        wide, narrow = (
            form.replace('class="tfviz-svg"', f'class="tfviz-svg tfviz-{name}"', 1)
            for name, form in (("wide", self.svg()), ("narrow", self.narrow.svg(self.alt)))
        )
        hidden = narrow.replace('style="', 'style="display:none;', 1)
        return f'<div class="tfviz-forms" data-from="{self.least}">{wide}{hidden}</div>'

    def css(self) -> str:
        if self.narrow is None:
            return ""
        at = f'[data-from="{self.least}"]>.tfviz'
        return (
            f"@container (max-width:{self.least - 1}px){{{at}-wide{{display:none}}"
            f"{at}-narrow{{display:block!important}}}}"
        )


class Figure:
    """One or several drawings side by side; on a narrow screen they stand below each other.

    `alt` says what the data are, `caption` what to see. `svg`, `png` and `html` are the faces;
    `save("mask.svg")`, `.png` or `.pdf` writes a file,
    and `draw(ax)` puts it into axes of matplotlib's. In a notebook or in the book it shows
    itself. With a plotly specification as `spec` it can be explored: a page has a button for that,
    in a notebook it is plotly's at once.
    """

    def __init__(
        self,
        panels: Sequence[Panel],
        *,
        alt: str | None = None,
        caption: str | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        if not panels:
            raise ValueError("a figure needs at least one panel; give a drawing")
        for name, words in (("alt", alt), ("caption", caption)):
            if words is not None and not isinstance(words, str):
                raise TypeError(f"{name} = {words!r:.80} is a {type(words).__name__}; give a text")
        if alt is not None and not alt.strip():
            raise ValueError(f"alt = {alt!r} is empty; say in one sentence what the data are")
        self.caption = None if caption is None else legal(caption)
        self.spec = spec
        self._own_alt = None if alt is None else legal(alt)
        one = self._own_alt if len(panels) == 1 else None
        self.panels = tuple(replace(panel, alt=one or legal(panel.alt)) for panel in panels)

    @property
    def alt(self) -> str:
        return self._own_alt or " ".join(panel.alt for panel in self.panels)

    @property
    def svgs(self) -> list[str]:
        """The panels in their wide form."""
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
        pictures = [panel.drawing.picture(PNG_SCALE) for panel in self.panels]
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
        drawings = "".join(panel.html() for panel in self.panels)
        words = ""
        if self._own_alt and len(self.panels) > 1:  # one picture to those who listen
            words = f' role="img" aria-label="{html.escape(self._own_alt)}"'
            silent = r'\1 role="presentation" aria-hidden="true"'
            drawings = re.sub(r'(<svg [^>]*?) role="img"', silent, drawings)
        rules = "".join(dict.fromkeys(panel.css() for panel in self.panels))
        still = f'<div class="tfviz-panels" style="{PANELS}"{words}>{drawings}</div>'
        return live.framed(still, rules, self.alt, self.caption, self.spec)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {
            "text/html": self.html,
            "text/plain": f"{self.caption}\n{self.alt}" if self.caption else self.alt,
        }
        if "image/png" not in (exclude or ()):
            bundle["image/png"] = base64.b64encode(self.png).decode()
        return bundle | live.bundle(self.spec)

    def save(self, path: str | Path) -> Path:
        """Write the figure as .svg (one panel), .png, or .pdf (a page for each panel)."""
        path = Path(path)
        if path.suffix == ".svg":
            path.write_text(svg.standalone(self.svg), encoding="utf-8")
        elif path.suffix == ".png":
            path.write_bytes(self.png)
        elif path.suffix == ".pdf":
            with PdfPages(path) as pdf:
                for panel in self.panels:
                    page = panel.drawing.page()
                    with drawable(page):
                        pdf.savefig(page, facecolor=LIGHT["page"])
        else:
            raise ValueError(
                f"path = {str(path)!r} ends in {path.suffix!r}; use .svg, .png or .pdf"
            )
        return path

    def draw(self, ax: Axes) -> Axes:
        """Draw the figure into `ax`, axes of matplotlib's, in the light theme; returns `ax`.

        The axes lose their frame and take the drawing's proportions. Raises ValueError for a figure
        of several panels, or one that is a plot of matplotlib's already: that has axes of its own.
        """
        if len(self.panels) > 1:
            raise ValueError(
                f"this figure has {len(self.panels)} panels; draw one of them into each ax"
            )
        self.panels[0].drawing.into(ax)
        ax.set_aspect("equal")
        return ax

    def __repr__(self) -> str:
        return f"Figure({self.alt!r})"


def figure(drawing: Drawing, *, alt: str, caption: str | None = None) -> Figure:
    """Wrap any matplotlib figure: role colours become theme-aware, black becomes ink.

    Draw it under `with plots.style():` and colour by role: `plots.LIGHT["query"]`. The figure is
    closed, so that a notebook does not show it twice. On a phone a broad one is laid out again,
    narrower and with plots that stood in a row below each other.
    """
    if not isinstance(drawing, Drawing):
        raise TypeError(f"fig = {drawing!r} is not a matplotlib figure; give plt.gcf() or fig")
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"alt = {alt!r}; say in one sentence what the data are, with numbers")
    import matplotlib.pyplot as plt

    plt.close(drawing)
    wide = Plot(drawing)
    narrow = Plot(_narrowed(drawing)) if wide.width > NARROW else None
    return Figure([Panel(wide, alt, narrow)], caption=caption)


def _narrowed(drawing: Drawing) -> Drawing:
    """A copy as broad as a phone; plots that stood in one row stand below each other."""
    copy: Drawing = pickle.loads(pickle.dumps(drawing))
    height = copy.get_figheight()
    axes_and_grids = [
        (one, spec.get_gridspec()) for one in copy.axes if (spec := one.get_subplotspec())
    ]
    axes = [one for one, _ in axes_and_grids]
    if (
        len(axes) > 1
        and len({id(grid) for _, grid in axes_and_grids}) == 1
        and axes_and_grids[0][1].nrows == 1
    ):
        grid = copy.add_gridspec(len(axes), 1)
        for n, one in enumerate(axes):
            one.set_subplotspec(grid[n])
        height *= len(axes)
    else:
        height = min(height, NARROW / 72)
    copy.set_size_inches(NARROW / 72, height)
    return copy


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
            "text.usetex": False,
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
