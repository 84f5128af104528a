"""How calm a chapter looks: what makes a figure is one small button at it, a caption stands beside
a picture that leaves room, and a bar below the title says how much of the chapter is shown.

All of it is there without a script, but for the bar, which `reading.js` brings to life.
"""

from __future__ import annotations

import html
import re

CELL = re.compile(
    r'<div class="cell tag_hide-input\b[^"]*">\s*<details class="[^"]*\bhide\b[^"]*">\s*'
    r'<summary>\s*<p class="collapsed[^>]*>(?:Show )?(?P<said>.*?)</p>.*?</summary>\s*',
    re.S,
)
FIGURE = re.compile(
    r'<figure class="tfviz-figure(?=">)(?P<inside>(?:(?!</figure>).)*)'
    r"<figcaption>(?P<caption>.*?)</figcaption>\s*</figure>",
    re.S,
)
PICTURE = re.compile(r'<svg[^>]*class="tfviz-svg[^"]*"[^>]* width="([\d.]+)"')
BESIDE, SHORT, GAP = 600, 240, 16  # pixels of pictures, letters of a caption, pixels between two
ENDING = "</details></div>"


def closing(body: str, start: int, tag: str) -> int:
    """Where the element whose content begins at `start` is closed."""
    depth = 1
    for step in re.compile(rf"<(/?){tag}\b[^>]*>").finditer(body, start):
        depth += -1 if step[1] else 1
        if depth == 0:
            return step.start()
    return start


def tools(body: str) -> str:
    """A cell shows what it displays, and after it the button that opens its code.

    The code of a cell that displays nothing, straight after another, goes into the other's button.
    """
    out, done = [""], 0
    for cell in CELL.finditer(body):
        code = closing(body, cell.end(), "details")
        end = closing(body, code + len("</details>"), "div")
        between, source = body[done : cell.start()], body[cell.end() : code]
        shown = body[code + len("</details>") : end].strip()
        done = end + len("</div>")
        if not shown and not between.strip() and out[-1].endswith(ENDING):
            out[-1] = out[-1].removesuffix(ENDING) + source + ENDING
            continue
        kind = "is-check" if not shown else "is-live" if "tfviz-explorer" in shown else "is-drawn"
        said = cell["said"][:1].upper() + cell["said"][1:]
        out += [
            f'{between}<div class="cell tf-tooled {kind}">{shown}',
            f'<details class="tf-code"><summary title="{said}">'
            f'<span class="tf-unseen">{said}</span></summary>{source}{ENDING}',
        ]
    return "".join(out) + body[done:]


def beside(body: str) -> str:
    """A short caption stands beside small pictures, where a window is wide enough for both."""

    def placed(match: re.Match[str]) -> str:
        forms = re.sub(r'<svg[^>]*tfviz-narrow".*?</svg>', "", match["inside"], flags=re.S)
        wide = sum(float(width) + GAP for width in PICTURE.findall(forms)) - GAP
        short = len(html.unescape(re.sub(r"<[^>]*>", "", match["caption"]))) <= SHORT
        old = '<figure class="tfviz-figure'
        return (
            match[0].replace(old, f"{old} is-beside", 1)
            if 0 < wide <= BESIDE and short
            else match[0]
        )

    return FIGURE.sub(placed, body)


def bar(body: str) -> str:
    """The bar below the title of a chapter that has cards."""
    cards = body.count('class="tfv-card"')
    if not cards:
        return body
    return body.replace(
        "</h1>",
        '</h1>\n<div class="tf-bar" role="group" aria-label="How much of this chapter is shown">'
        '<span class="tf-seg"><button type="button" data-tf-view="all" aria-pressed="true">'
        'Whole chapter</button><button type="button" data-tf-view="cards" aria-pressed="false">'
        f"{cards} card{'s' * (cards > 1)} only</button></span>"
        '<label><input type="checkbox" data-tf-show="code">show code</label>'
        '<button type="button" data-tf-show="folds" aria-pressed="false">open everything</button>'
        "</div>",
        1,
    )
