"""What a reader brings along is kept by one explorer of each layout: colours of the system, wider
text, a page enlarged to 400 %, and a screen reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browser.explorer_laws import AT_REST

from tfviz.explorers import ALL

# picture beside controls; pictures in a row with controls below; what is typed above pictures
LAYOUTS = ("strided_pattern", "sparse_lab", "your_own_mask")
every = pytest.mark.parametrize("name", LAYOUTS)
# WCAG 1.4.12
SPACED = """.tfx, .tfx * { line-height: 1.5 !important; letter-spacing: 0.12em !important;
  word-spacing: 0.16em !important } .tfx p { margin-bottom: 2em !important }"""
# what is wider than its box, which does not show the rest, and what is wider than the page
CUT = """() => {
  const seen = [...document.querySelectorAll(".tfx *")].filter((node) => node.checkVisibility());
  const hidden = (node) => getComputedStyle(node).overflowX === "hidden" && node.clientWidth > 1;
  const cut = seen.filter((node) => hidden(node) && node.scrollWidth > node.clientWidth + 1);
  const wide = document.documentElement.scrollWidth > innerWidth ? ["page"] : [];
  return [...cut.map((node) => `${node.className}: ${node.textContent}`), ...wide];
}"""
CONTROLS = {"button", "checkbox", "combobox", "radio", "slider", "textbox", "application"}


def opened(show: Callable[..., Any], name: str) -> Any:
    return show(ALL[name].example(next(iter(ALL[name].examples))))


@every
def test_colours_of_the_system(show: Callable[..., Any], name: str) -> None:
    """Pictures keep their own page and inks, and what is chosen differs from what is not."""
    page = opened(show, name)
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    frame, chosen, not_chosen = page.evaluate(
        """() => {
          const colour = (selector) => {
            const node = document.querySelector(selector);
            return node && getComputedStyle(node).backgroundColor;
          };
          const label = (which) => colour(`.tfx-segments input${which} + label`);
          return [colour(".tfx-frame"), label(":checked"), label(":not(:checked)")];
        }"""
    )
    assert frame == "rgb(255, 255, 255)"
    ink = page.locator(".tfx-frame text").first.evaluate("(node) => getComputedStyle(node).fill")
    assert ink != "rgb(0, 0, 0)"  # one of ours
    assert chosen is None or chosen != not_chosen


@every
def test_wider_text(show: Callable[..., Any], name: str) -> None:
    page = opened(show, name)
    page.add_style_tag(content=SPACED)
    page.evaluate(AT_REST)
    assert not page.evaluate(CUT)


@every
def test_a_page_at_400_percent(show: Callable[..., Any], name: str) -> None:
    """1280 × 1024 pixels that are four times as large."""
    page = opened(show, name)
    page.set_viewport_size({"width": 320, "height": 256})
    page.evaluate(AT_REST)
    assert not page.evaluate(CUT)
    stuck = """() => [...document.querySelectorAll(".tfx *")].filter((node) =>
      getComputedStyle(node).position === "sticky" && node.offsetHeight > 0.5 * innerHeight)
      .map((node) => node.className)"""
    assert not page.evaluate(stuck)  # it would hide all else


@every
def test_every_control_has_a_name(show: Callable[..., Any], name: str) -> None:
    page = opened(show, name)
    tools = page.context.new_cdp_session(page)
    tools.send("Accessibility.enable")
    nodes = tools.send("Accessibility.getFullAXTree")["nodes"]
    shown = [node for node in nodes if not node["ignored"]]
    controls = [node for node in shown if node["role"]["value"] in CONTROLS]
    assert len(controls) > 5
    assert all(node.get("name", {}).get("value", "").strip() for node in controls)
