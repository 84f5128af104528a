"""The clock hands in a real browser: what moves and what stays, keys, the dots."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from browser.explorer_site import drag

from tfviz.explorers import SinusoidalClocks
from tfviz.position.sinusoidal_pe import similarity, sinusoids


@pytest.fixture
def lab(page: Any, show: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")
    return show(SinusoidalClocks())


def state(page: Any) -> tuple[int, int]:
    host = page.locator(".tfviz-explorer")
    return tuple(
        host.evaluate("(node) => ['place', 'step'].map((key) => node.tfvizModel.get(key))")
    )


def numbers(page: Any) -> Any:
    return page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")


def test_the_place_is_shut_until_it_was_said_what_changes(lab: Any) -> None:
    assert "steps apart" not in lab.locator(".tfx-status").inner_text()
    before = numbers(lab)["product"]
    lab.get_by_role("button", name="none").click()
    lab.get_by_text("✓ you said: none. So it is").wait_for()
    lab.get_by_role("button", name="on →").click()
    assert state(lab) == (6, 3) and numbers(lab)["product"] == pytest.approx(before)
    lab.get_by_text("Places 6 and 9: the 8 pairs of hands").wait_for()


def test_keys_and_the_end_of_the_places(lab: Any) -> None:
    lab.get_by_role("button", name="just show me").click()
    lab.locator('svg[aria-label^="Rows 0"]').press("ArrowRight")
    assert state(lab) == (6, 3)
    lab.get_by_role("slider", name="place", exact=True).last.press("End")
    assert state(lab) == (63, 3)  # there is no place 66: both hands at 63
    lab.get_by_text("Places 63 and 63").wait_for()
    assert numbers(lab)["product"] == pytest.approx(8.0)


def test_the_dot_in_the_curve_is_the_step(lab: Any) -> None:
    drag(lab.locator(".tfx-plane .tfx-handle").last, 100)
    assert state(lab)[0] == 5 and state(lab)[1] > 8


def test_python_side() -> None:
    found = SinusoidalClocks(place=50, step=3).numbers()
    rows = sinusoids(torch.tensor([50, 53]), 16)
    torch.testing.assert_close(torch.tensor([found["p"], found["q"]]), rows, atol=2e-5, rtol=0)
    k = torch.tensor(3.0, dtype=torch.float64)
    assert found["product"] == pytest.approx(float(similarity(k, 16)), abs=1e-5)


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
        SinusoidalClocks(**wrong)
