"""What every drawing of an explorer keeps in every state: cells lie in their frame, labels stand at
their rows and columns and not over each other, and nothing that is drawn leaves its picture.

`misplaced` opens nothing: it takes a page on which one explorer stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDTHS, TALL = (1280, 390), 900  # of the window
COLUMN = 930  # as wide as a scene is in the book where the window is 1280
RATIOS = (1, 1.5, 3)  # pixels of the screen in one of the page
LOOK = Path(__file__).with_suffix(".js").read_text("utf8")
STANDING = f"async ([host, paper]) => {{ {LOOK}\nreturn standing(host, paper); }}"
MOVING = f"async (host) => {{ {LOOK}\nreturn moving(host); }}"
PIXELS = re.compile(r"[\d.]+( × \d+)? px")
# far to the left of the window: all is laid out where it is, and nothing of it is painted
UNPAINTED = "main { transform: translateX(-30000px) }"
# all buttons that say so, and those that come after them
PRESS = """(host, words) => {
  const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const pressed = new Set();
  const next = () =>
    [...host.querySelectorAll("button")].find(
      (one) => one.textContent === words && seen(one) && !pressed.has(one),
    );
  for (let button = next(); button; button = next()) {
    pressed.add(button);
    button.click();
    host.tfviz.paint();
  }
}"""


@contextmanager
def unpainted(page: Any) -> Iterator[None]:
    """Lay out all of a page as ever and paint nothing: what is only measured costs half."""
    style = page.add_style_tag(content=UNPAINTED)
    yield
    style.evaluate("(style) => style.remove()")


def misplaced(page: Any) -> list[str]:
    """What stands in the wrong place, one sentence each, with the first state in which it does: as
    it is asked and answered, on screens and on paper, and after each control has been moved."""
    with unpainted(page):
        return _misplaced(page)


def _misplaced(page: Any) -> list[str]:
    host = page.locator(".tfviz-explorer")
    found: dict[str, str] = {}
    tools = page.context.new_cdp_session(page)
    page.emulate_media(reduced_motion="reduce")

    def screen(width: int, ratio: float = 1) -> None:
        size = {"width": width, "height": TALL, "deviceScaleFactor": ratio, "mobile": False}
        tools.send("Emulation.setDeviceMetricsOverride", size)

    def note(state: str, wrong: str) -> None:
        found.setdefault(PIXELS.sub("", wrong), f"{state}: {wrong}")

    def look(state: str, paper: bool = False) -> None:
        for wrong in page.evaluate(STANDING, [host.element_handle(), paper]):
            note(state, wrong)

    scene = host.evaluate("(host) => host.hasAttribute('data-scene')")
    for width in (*WIDTHS, COLUMN) if scene else WIDTHS:
        host.evaluate(PRESS, "ask me again")
        for state in ("first state", "answered"):
            if state == "answered":
                host.evaluate(PRESS, "just show me")
            for ratio in RATIOS:
                screen(width, ratio)
                look(f"{width} wide at {ratio}, {state}")
            screen(width)
            page.emulate_media(media="print")
            look(f"{width} wide in print, {state}", paper=True)
            page.emulate_media(media="null")
        for state, wrong in host.evaluate(MOVING):
            note(f"{width} wide, {state}", wrong)
    tools.send("Emulation.clearDeviceMetricsOverride")
    tools.detach()
    return list(found.values())
