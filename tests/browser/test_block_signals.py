"""Signals of a stack in a real browser: forwards and backwards as the library's blocks in torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from browser.explorer_site import drag
from playwright.sync_api import expect

from tfviz.explorers import BlockSignals
from tfviz.explorers.base import uniforms


def test_a_curve_is_drawn_before_the_true_one_shows(show: Any) -> None:
    page = show(BlockSignals(24, order="none", skips=False, gain=0.6))
    names = page.locator(".tfx-marks text").all_text_contents()
    assert set(names) == {"no norm", "pre-norm", "post-norm"}  # without skips: solved cases
    assert page.get_by_role("button", name="that is my curve").is_disabled()
    board = page.locator(".tfx-board").bounding_box()
    page.mouse.move(board["x"] + 5, board["y"] + 40)
    page.mouse.down()
    page.mouse.move(board["x"] + board["width"] - 15, board["y"] + 60, steps=12)
    page.mouse.up()
    page.get_by_role("button", name="that is my curve").click()
    page.get_by_text("The dashed line is yours").wait_for()
    expect(page.get_by_label("skip connections")).to_be_checked()  # drawn in the next frame
    names = page.locator(".tfx-marks text").all_text_contents()
    assert set(names) == {"no norm", "you", "pre-norm", "post-norm"}
    page.get_by_role("button", name="ask me again").click()
    expect(page.get_by_label("skip connections")).not_to_be_checked()


def test_a_letter_that_is_chosen_is_as_dark_or_light_as_a_word(show: Any) -> None:
    page = show(BlockSignals(12, show="weights"))
    colours = page.locator(".tfx-segments input:checked + label > .tfx-maths").evaluate_all(
        "(all) => all.map((x) => [x, x.parentNode].map((y) => getComputedStyle(y).color))"
    )
    assert colours and all(letter == word for letter, word in colours)


def test_the_number_of_blocks_is_dragged(show: Any) -> None:
    page = show(BlockSignals(12))
    handle = page.get_by_role("slider", name="blocks").and_(page.locator(".tfx-handle"))
    drag(handle, 113, 23)
    depth = page.locator(".tfviz-explorer").evaluate("(node) => node.tfvizModel.get('depth')")
    assert 14 < depth < 20
    handle.press("Home")
    page.get_by_text("1 block:").wait_for()


@pytest.mark.parametrize("seed", [0, 50])
def test_the_gradient_of_a_loud_stream_is_still_torchs(show: Any, seed: int) -> None:
    """What the chapter asks for: skips, no normalisation, the gain from 0.6 to 1."""
    page = show(BlockSignals(24, order="none", gain=0.6, seed=seed))
    page.locator("input[data-key=gain]").fill("1")
    found = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")
    right = BlockSignals(24, order="none", gain=1.0, seed=seed).numbers()
    assert len(right["gradient"]) == 25
    for name, values in right.items():
        assert found[name] == pytest.approx(values, rel=2e-3)


def test_a_gradient_that_is_rounding_noise_is_not_shown(show: Any) -> None:
    """At gain 3 the stream of 24 blocks would reach 10^41: the page says so, and goes on."""
    page = show(BlockSignals(24, order="none", gain=3.0))
    page.get_by_text("rounding noise").wait_for()
    assert BlockSignals(24, order="none", gain=3.0).numbers()["gradient"] == []
    page.get_by_text("stream", exact=True).click()
    page.get_by_text("and is not followed any further").first.wait_for()


def test_without_a_norm_a_gated_stack_squares_its_stream(show: Any) -> None:
    """It is followed until it is beyond 10^12; the next block would have 10^22 squared."""
    page = show(BlockSignals(24, order="none", swiglu=True, show="stream"))
    page.get_by_text("after block 7 and is not followed any further").first.wait_for()
    stream = BlockSignals(24, order="none", swiglu=True).numbers()["stream"]
    assert len(stream) == 8 and stream[-2] < 1e12 < stream[-1] < 1e24
    assert stream[-1] > stream[-2] ** 1.9
    usual = BlockSignals(24, order="none").numbers()["stream"]
    assert len(usual) == 25 and usual[-1] < 1e6


def test_a_gated_stack_that_falls_silent_is_left_there(show: Any) -> None:
    page = show(BlockSignals(24, order="none", skips=False, gain=0.1, swiglu=True))
    page.get_by_text("so small that nothing comes back").first.wait_for()
    found = BlockSignals(24, order="none", skips=False, gain=0.1, swiglu=True).numbers()
    assert 0 < found["stream"][-1] < 1e-60 < found["stream"][-2] and found["gradient"] == []


def test_rms_norm_hardly_changes_the_curves() -> None:
    """What the chapter says of it: with random weights the means are small."""
    for order in ("pre", "post"):
        with_mean = BlockSignals(24, order=order).numbers()["stream"]
        without = BlockSignals(24, order=order, rms=True).numbers()["stream"]
        assert with_mean != without
        assert without == pytest.approx(with_mean, rel=0.2)


def test_random_numbers_have_mean_0_and_variance_1() -> None:
    found = uniforms(7, 20_000)
    assert abs(found.mean()) < 0.02 and abs(found.var() - 1) < 0.02
    assert not torch.equal(found[:50], uniforms(8, 50))
    assert torch.equal(found[:50], uniforms(7, 50))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"depth": 0}, "depth = 0"),
        ({"depth": 25}, "depth = 25"),
        ({"gain": 0.0}, "gain = 0.0"),
        ({"seed": 100}, "seed = 100"),
        ({"order": "middle"}, "order = 'middle'"),
        ({"show": "all"}, "show = 'all'"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BlockSignals(**wrong)
