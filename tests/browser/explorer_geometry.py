"""What every drawing of an explorer keeps in every state: cells lie in their frame, labels stand at
their rows and columns and not over each other, and nothing that is drawn leaves its picture.

`misplaced` opens nothing: it takes a page on which one explorer stands.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

WIDTHS, TALL = (1280, 390), 900  # of the window
RATIOS = (1, 1.5, 3)  # pixels of the screen in one of the page
LOOK = Path(__file__).with_suffix(".js").read_text("utf8")
STANDING = f"async ([host, paper]) => {{ {LOOK}\nreturn standing(host, paper); }}"
MOVING = f"async (host) => {{ {LOOK}\nreturn moving(host); }}"
PIXELS = re.compile(r"[\d.]+( × \d+)? px")


def misplaced(page: Any) -> list[str]:
    """What stands in the wrong place, one sentence each, with the first state in which it does: as
    it is asked and answered, on screens and on paper, and after each control has been moved."""
    host = page.locator(".tfviz-explorer")
    found: dict[str, str] = {}
    show_me = page.get_by_role("button", name="just show me")
    again = page.get_by_role("button", name="ask me again")
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

    for width in WIDTHS:
        while again.count():
            again.first.click()
        for state in ("first state", "answered"):
            while state == "answered" and show_me.count():
                show_me.first.click()
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
