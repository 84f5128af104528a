"""The schedule of losses in a real browser: the question, the dot, what is said."""

from __future__ import annotations

from typing import Any

import pytest
from browser.explorer_site import drag

from tfviz.basics.alrfou_auxiliary_losses import forward_flops
from tfviz.explorers import AuxiliaryLossSchedule

STATE = "(node) => [node.tfvizModel.get('progress'), node.tfvizModel.get('layer')]"


def test_when_a_layer_falls_silent_is_said_first(show: Any) -> None:
    page = show(AuxiliaryLossSchedule())
    assert page.locator(".tfx-mark-line").count() == 0  # the work would tell
    page.get_by_label("After how much of training").fill("75")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("you said: 75 %; it is: 37.5 %").wait_for()
    page.locator(".tfx-mark-line").wait_for()  # one line


def test_the_dot_moves_in_time_and_among_layers(show: Any) -> None:
    page = show(AuxiliaryLossSchedule())
    host = page.locator(".tfviz-explorer")
    page.get_by_role("button", name="just show me").click()
    page.get_by_text("Layer 48 was scored until 37.5 %").wait_for()  # the state that is named
    page.get_by_role("button", name="reset").click()
    page.get_by_text("layers 33 to 64 are scored. Layer 20 was scored until 15.6 %").wait_for()
    dot = page.locator(".tfx-handle")
    dot.press("ArrowUp")
    page.get_by_text("Layer 21 was scored until 16.4 %").wait_for()
    dot.press("ArrowLeft")
    assert host.evaluate(STATE) == [245, 21]
    drag(dot, 150, -60)
    progress, layer = host.evaluate(STATE)
    assert progress > 300 and layer > 25
    page.locator("input[data-key=progress]").press("End")
    page.get_by_text("only layer 64 is scored").wait_for()
    page.locator("input[data-key=N]").press("Home")
    page.get_by_text("Layer 1, the last one, is always scored").wait_for()


def test_python_side() -> None:
    one = AuxiliaryLossSchedule(N=4, progress=250).numbers()
    assert one["on"] == [0, 0, 1, 1]  # layer 2 leaves at 2/8
    assert one["until"] == [0.125, 0.25, 0.375, 1.0]
    plain = AuxiliaryLossSchedule(every_layer=False, two_targets=False).numbers()
    assert plain["now"] == plain["mean"] == 1.0
    sizes = {"L": 512, "d": 512, "vocab": 256, "N": 64}
    base = forward_flops(**sizes, classifiers=1)
    first = AuxiliaryLossSchedule(progress=0).numbers()
    assert first["now"] == forward_flops(**sizes, classifiers=128) / base


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
        AuxiliaryLossSchedule(**wrong)
