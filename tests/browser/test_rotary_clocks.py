"""The rotary clocks in a real browser: the library's numbers, keys, pointer, phone, themes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from explorer_site import fits

from tfviz.explorers import RotaryClocks
from tfviz.position.rope import rotate

ALIKE = [1.0, 0.0] * 4
BACK = rotate(torch.tensor([ALIKE], dtype=torch.float64), torch.tensor([-5]))[0].tolist()
RANDOM = torch.randn(2, 8, generator=torch.Generator().manual_seed(0)).double().tolist()
PAIRS = {"looks 5 back": (BACK, ALIKE), "random": (RANDOM[0], RANDOM[1])}


def explorer(**options: Any) -> RotaryClocks:
    return RotaryClocks(**({"pairs": PAIRS, "trained": 16} | options))


@pytest.fixture
def lab(page: Any, show: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")
    return show(explorer())


def shown(page: Any) -> dict[str, Any]:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    return json.loads(page.locator(".tfx").get_attribute("data-numbers"))


def expect(page: Any, **state: Any) -> None:
    ours, theirs = explorer(**state), shown(page)
    length, angle = ours.arrows
    assert [r for r, _ in theirs["list"]] == pytest.approx(length, abs=1e-9)
    turned = [a - b for (_, a), b in zip(theirs["list"], angle, strict=True)]
    assert all(math.cos(x) > 1 - 1e-12 for x in turned)  # the same but for whole turns
    assert theirs["score"] == pytest.approx(ours.score, abs=1e-9)
    assert theirs["product"] == pytest.approx(ours.score, abs=1e-9)


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_numbers_keys_and_pointer(lab: Any) -> None:
    expect(lab)
    first = shown(lab)
    slide(lab, "shift", 700)
    expect(lab, shift=700)
    assert shown(lab)["score"] == first["score"]  # not a digit
    lab.get_by_text("Query at 712, key at 709: distance 3, score").wait_for()
    slide(lab, "base", 3)  # a place in the list
    slide(lab, "interpolate", 2.5)
    slide(lab, "i", 3)
    lab.locator('select[data-key="pair"]').select_option("random")
    expect(lab, shift=700, base=10.0, interpolate=2.5, i=3, pair="random")
    lab.get_by_role("button", name="reset").click()
    expect(lab)

    lab.locator(".rc-faces").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft", "Shift+ArrowRight", "PageUp"):
        lab.keyboard.press(key)
    expect(lab, i=14, j=18, shift=10)
    lab.keyboard.press("Home")
    expect(lab, i=14, j=18)

    box = lab.locator(".rc-curve").bounding_box()
    y, middle, half = box["y"] + 80, box["x"] + box["width"] / 2, (box["width"] - 16) / 2
    lab.mouse.move(middle, y)
    lab.mouse.down()
    lab.mouse.move(middle + half * 5 / 64, y, steps=3)
    lab.mouse.up()
    expect(lab, i=23, j=18)
    assert shown(lab)["score"] == pytest.approx(4.0)  # where all arrows point to the right
    assert "5 back" in lab.locator("select").input_value()


def test_link_and_python_restore_the_state(lab: Any) -> None:
    copied = "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    lab.evaluate(copied)
    slide(lab, "j", 40)
    slide(lab, "interpolate", 4)
    lab.get_by_role("button", name="copy link").click()
    lab.wait_for_function("window.copied")
    link = lab.evaluate("window.copied")
    lab.goto("about:blank")
    lab.goto(link)
    lab.locator(".tfviz-explorer[data-ready]").wait_for()
    expect(lab, j=40, interpolate=4.0)
    lab.evaluate(copied)
    lab.get_by_role("button", name="copy Python").click()
    lab.wait_for_function("window.copied")
    again = eval(lab.evaluate("window.copied"), {"RotaryClocks": RotaryClocks})
    assert again.state == explorer(j=40, interpolate=4.0).state


def test_fits_a_phone_and_a_desk(show: Any) -> None:
    fits(show, [explorer()])


def test_python_side() -> None:
    one = explorer()
    assert explorer(i=5, j=0).score == pytest.approx(4.0)
    assert explorer(shift=900).score == pytest.approx(one.score)
    length, angle = (torch.tensor(x) for x in one.arrows)
    assert float((length * angle.cos()).sum()) == pytest.approx(one.score)
    assert explorer().html() == explorer().html()
    assert explorer(pair="random").pair == "random"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pairs": {}}, "pairs is empty"),
        ({"pairs": {"a": ([1.0], [1.0])}}, "a vector of 1 numbers"),
        ({"pairs": {"a": ([1.0, 2.0], [1.0, 2.0, 3.0, 4.0])}}, r"widths \[2, 4\]"),
        ({"pair": "nobody"}, "pair = 'nobody'"),
        ({"i": 65}, "i = 65"),
        ({"shift": -1}, "shift = -1"),
        ({"base": 0.5}, "base = 0.5"),
        ({"interpolate": 9.0}, "interpolate = 9"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
