"""The clock hands in a real browser: the rows of the library, keys, phone, themes, the link."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from explorer_site import fits

from tfviz.explorers import ClockHands
from tfviz.position.sinusoidal_pe import sinusoids


@pytest.fixture
def lab(page: Any, show: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")
    return show(ClockHands())


def expect(page: Any, one: ClockHands) -> None:
    """The two rows and their product on the page are those of the library."""
    page.evaluate("() => new Promise(requestAnimationFrame)")
    found = json.loads(page.locator(".tfx").get_attribute("data-shown"))
    places = torch.tensor([one.place, min(max(one.place + one.step, 0), 63)])
    rows = torch.tensor([found["p"], found["q"]])
    torch.testing.assert_close(rows, sinusoids(places, one.d, one.base), atol=2e-5, rtol=0)
    assert found["product"] == pytest.approx(one.product, abs=1e-4)


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[type="range"][data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_the_page_shows_the_numbers_of_the_library(lab: Any) -> None:
    expect(lab, ClockHands())
    product = json.loads(lab.locator(".tfx").get_attribute("data-shown"))["product"]
    slide(lab, "place", 50)
    expect(lab, ClockHands(place=50))
    moved = json.loads(lab.locator(".tfx").get_attribute("data-shown"))["product"]
    assert moved == pytest.approx(product)  # k stays, and with it every angle
    lab.get_by_text("Places 50 and 53: the 8 pairs").wait_for()
    slide(lab, "step", -20)
    slide(lab, "d", 3)
    slide(lab, "base", 1)
    expect(lab, ClockHands(place=50, step=-20, d=24, base=10.0))

    lab.get_by_role("button", name="reset").click()
    expect(lab, ClockHands())
    lab.locator(".ch-dials").focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowUp"):
        lab.keyboard.press(key)
    expect(lab, ClockHands(place=6, step=5))
    lab.keyboard.press("End")
    expect(lab, ClockHands(place=63, step=5))  # there is no place 68: both hands at 63
    lab.keyboard.press("ArrowDown")
    expect(lab, ClockHands(place=63, step=-1))


def test_link_and_python_restore_the_state(lab: Any) -> None:
    lab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    slide(lab, "place", 33)
    slide(lab, "base", 2)
    lab.get_by_role("button", name="copy link").click()
    lab.wait_for_function("window.copied")
    link = lab.evaluate("window.copied")
    lab.goto("about:blank")
    lab.goto(link)
    lab.locator(".tfviz-explorer[data-ready]").wait_for()
    expect(lab, ClockHands(place=33, base=100.0))
    lab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    lab.get_by_role("button", name="copy Python").click()
    lab.wait_for_function("window.copied")
    again = eval(lab.evaluate("window.copied"), {"ClockHands": ClockHands})
    assert again.state == ClockHands(place=33, base=100.0).state


def test_fits_a_phone_and_a_desk(show: Any) -> None:
    fits(show, [ClockHands(d=24)])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"place": 64}, "place = 64"),
        ({"step": -64}, "step = -64"),
        ({"d": 6}, "d = 6; choose one of 4, 8, 16, 24"),
        ({"base": 1.0}, r"base = 1\.0"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ClockHands(**wrong)
