"""Cost shares in a real browser: what is not told before the answer, the two dots."""

from __future__ import annotations

from typing import Any

import pytest
from browser.explorer_site import drag

from tfviz.explorers import BlockCosts


def dragged(page: Any, name: str, by: float) -> Any:
    """The state after the dot was dragged by so many pixels."""
    dot = page.get_by_role("slider", name=name, exact=True).and_(page.locator(".tfx-handle"))
    drag(dot, by)
    return page.locator(".tfviz-explorer").evaluate(
        "(node) => Object.fromEntries(['L', 'd', 'factor'].map((k) => [k, node.tfvizModel.get(k)]))"
    )


def test_one_width_is_shown_and_the_crossing_of_another_is_dragged(show: Any) -> None:
    page = show(BlockCosts())
    assert page.locator(".tfx-mark-area").count() == 3
    assert not page.get_by_role("slider", name="crossing").get_attribute("aria-disabled")
    ghost = page.locator(".tfx-handle[data-ghost]")
    drag(ghost, 120)
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("✗ you said: ").wait_for()
    page.get_by_text("it is: 4\u202f096 tokens").wait_for()
    width = page.locator(".tfviz-explorer").evaluate("(node) => node.tfvizModel.get('d')")
    assert width == 1024


def test_the_line_and_the_crossing_are_dragged(show: Any) -> None:
    page = show(BlockCosts(factor=2))
    page.get_by_role("button", name="just show me").click()
    after = dragged(page, "length", 80)
    assert after["L"] > 2000 and after["d"] == 1024
    wider = dragged(page, "crossing", 60)  # the length is where it was
    assert wider["L"] == after["L"] and 600 < wider["d"] < 12_288
    crossing = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers().crossing")
    assert crossing == 2 * wider["d"]


def test_a_part_lights_up_with_its_formula(show: Any) -> None:
    page = show(BlockCosts())
    page.get_by_role("button", name="just show me").click()
    page.locator(".tfx-formula:not([hidden]) [data-term=scores]").hover()
    lit = page.locator("[data-lit]").evaluate_all("(all) => all.map((x) => x.dataset.term)")
    assert len(lit) >= 3 and set(lit) == {"scores"}


def test_three_matrices_have_a_formula_of_their_own(show: Any) -> None:
    page = show(BlockCosts())
    page.get_by_role("button", name="just show me").click()
    formula = page.locator(".tfx-formula:not([hidden])")
    assert formula.text_content().startswith("4")
    page.get_by_label("SwiGLU").check()
    page.locator(".tfx-formula:not([hidden])", has_text="6").wait_for()
    crossing = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers().crossing")
    assert crossing == 1.5 * 4 * 1024  # the width that the answer has set


def test_swiglu_of_eight_thirds_costs_what_the_usual_network_does() -> None:
    """The width 768 is a multiple of 3: the two are equal to the last number."""
    usual, gated = BlockCosts(d=768), BlockCosts(d=768, factor=8 / 3, swiglu=True)
    assert usual.numbers() == gated.numbers()
    assert usual.numbers()["crossing"] == 3072
    assert BlockCosts(d=512, factor=8 / 3, swiglu=True).numbers()["crossing"] == 1.5 * 1365


@pytest.mark.parametrize("wrong", [{"L": 0}, {"d": 20_000}, {"factor": 9.5}])
def test_bad_arguments_are_named(wrong: dict[str, float]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name} = {value} is out of range"):
        BlockCosts(**wrong)
