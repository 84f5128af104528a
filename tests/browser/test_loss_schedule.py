"""The schedule of losses in a real browser: the library's numbers, keys, pointer, phone, themes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tfviz.basics.alrfou_auxiliary_losses import forward_flops, scored
from tfviz.explorers import LossSchedule


def expect(page: Any, progress: int, N: int = 64, layers: bool = True, **sizes: int) -> None:
    """What the page shows is what the library says."""
    page.evaluate("() => new Promise(requestAnimationFrame)")
    shown = page.locator(".tfx")
    on = scored(progress, 1000, N).tolist() if layers else [False] * (N - 1) + [True]
    assert json.loads(shown.get_attribute("data-on")) == on
    now = LossSchedule(N=N, progress=progress, every_layer=layers, **sizes)
    assert now.on == on
    for name, value in now.work.items():
        assert float(shown.get_attribute(f"data-{name}")) == pytest.approx(value, rel=1e-12)
    layers_shown, predictions, weight = (
        page.locator(".tfx-readout dd").nth(k).inner_text() for k in range(3)
    )
    assert layers_shown == f"{sum(on)} of {N}"
    assert predictions.replace("\u202f", "") == str(sum(on) * 2 * 512)
    assert float(weight) == sum(on) * 1.5


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_numbers_keys_pointer_and_links(show: Callable[..., Any]) -> None:
    page = show(LossSchedule())
    expect(page, 250)
    page.get_by_text("layers 33 to 64 are scored. Layer 20 was scored until 15.6 %").wait_for()
    for progress in (0, 15, 16, 499, 500, 1000):  # 1/128 of the training is 7.8 thousandths
        slide(page, "progress", progress)
        expect(page, progress)
    page.get_by_text("only layer 64 is scored").wait_for()
    slide(page, "N", 4)
    slide(page, "progress", 375)  # just when layer 3 of 4 leaves: 3/8
    expect(page, 375, N=4)
    slide(page, "vocab", 8)
    expect(page, 375, N=4, vocab=128_000)

    page.get_by_role("button", name="reset").click()
    page.locator(".ls-picture").focus()
    for key, progress in (("ArrowRight", 260), ("PageUp", 360), ("Home", 0), ("ArrowLeft", 0)):
        page.keyboard.press(key)
        expect(page, progress)
    page.keyboard.press("ArrowUp")
    page.get_by_text("Layer 21 will be scored until 16.4 %").wait_for()
    page.keyboard.press("End")
    expect(page, 1000)

    box = page.locator(".ls-picture").bounding_box()
    left, wide = box["x"] + 46, box["width"] - 60
    page.mouse.move(left + wide, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(left + wide / 4, box["y"] + 30, steps=3)
    page.mouse.up()
    progress = int(page.locator('input[data-key="progress"]').input_value())
    assert abs(progress - 250) <= 3
    expect(page, progress)

    page.get_by_label("(b) every layer, for a while").uncheck()
    expect(page, progress, layers=False)
    page.get_by_label("(c) two characters ahead").uncheck()
    page.get_by_label("(a) every position").uncheck()
    plain = LossSchedule(every_layer=False, two_targets=False, every_position=False)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    shown = float(page.locator(".tfx").get_attribute("data-now"))
    assert shown == pytest.approx(plain.work["now"], rel=1e-12) and shown < 1

    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="copy Python").click()
    page.wait_for_function("window.copied")
    again = eval(page.evaluate("window.copied"), {"LossSchedule": LossSchedule})
    assert again.progress == progress and not again.every_layer and again.state["vocab"] == 256
    page.evaluate("window.copied = ''")
    page.get_by_role("button", name="copy link").click()
    page.wait_for_function("window.copied")
    link = page.evaluate("window.copied")
    page.goto("about:blank")
    page.goto(link)
    page.locator(".tfviz-explorer[data-ready]").wait_for()
    assert page.locator('input[data-key="progress"]').input_value() == str(progress)
    assert not page.get_by_label("(b) every layer, for a while").is_checked()


def test_fits_phone_and_desk_in_both_themes(show: Callable[..., Any]) -> None:
    page = show(LossSchedule(), width=390)
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        for theme in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            page.evaluate("() => new Promise((go) => setTimeout(go, 50))")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            inner, outer = (
                page.locator(s).bounding_box()["height"] for s in (".tfx", ".tfviz-explorer")
            )
            assert outer - 60 < inner <= outer + 1, (width, inner, outer)


def test_python_side() -> None:
    one = LossSchedule(N=4, progress=250)
    assert one.on == [False, False, True, True]  # layer 2 leaves at 2/8
    plain = LossSchedule(every_layer=False, two_targets=False)
    assert plain.work == {"now": 1.0, "mean": 1.0}
    sizes = {"L": 512, "d": 512, "vocab": 256, "N": 64}
    base = forward_flops(**sizes, classifiers=1)
    assert LossSchedule(progress=0).work["now"] == forward_flops(**sizes, classifiers=128) / base
    assert LossSchedule().html() == LossSchedule().html()
    assert len("".join(LossSchedule.sources())) < 60_000


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"N": 65}, "N = 65"),
        ({"progress": 1001}, "progress = 1001"),
        ({"layer": 0}, "layer = 0"),
        ({"vocab": 100}, "vocab = 100"),
        ({"d": 0}, "d = 0"),
        ({"heads": 8}, "unexpected keyword argument 'heads'"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        LossSchedule(**wrong)
