"""Decoding in a real browser: the library's cuts and beams on stored distributions."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from tfviz import experiments
from tfviz.explorers import Decoding


def settle(page: Any) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, x) => { node.value = x; node.dispatchEvent(new Event('input')); }", value
    )


def read(page: Any, name: str, view: int = 0) -> Any:
    settle(page)
    return json.loads(page.locator(".tfx").nth(view).get_attribute(f"data-{name}"))


def same(page: Any, **state: Any) -> None:
    """The page shows what the library computes, and the cut of every beginning."""
    ours = torch.tensor(Decoding(**state).probabilities[:40])
    torch.testing.assert_close(torch.tensor(read(page, "after")).to(ours), ours)
    others = range(len(experiments.load("decoding")["contexts"]))
    kept = [sum(x > 0 for x in Decoding(**(state | {"which": n})).probabilities) for n in others]
    assert read(page, "kept") == kept


def test_the_cuts_are_those_of_the_library(show: Any) -> None:
    page = show(Decoding(p=0.8))
    same(page, p=0.8)
    for p in (0.0, 0.3, 0.97, 1.0):
        slide(page, "p", p)
        same(page, p=p)
    for tau in (0.0, 0.5, 2.0):
        slide(page, "tau", tau)
        same(page, tau=tau)
    slide(page, "k", 9)  # the tenth of the list: k = 10
    same(page, tau=2.0, k=10)
    slide(page, "p", 0.6)
    page.locator('select[data-key="which"]').select_option("1")
    same(page, which=1, tau=2.0, k=10, p=0.6)
    page.locator('input[data-key="tau"]').focus()
    page.keyboard.press("ArrowLeft")
    same(page, which=1, tau=1.95, k=10, p=0.6)
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="copy Python").click()
    page.wait_for_function("window.copied")
    again = eval(page.evaluate("window.copied"), {"Decoding": Decoding})
    assert again.state == Decoding(which=1, tau=1.95, k=10, p=0.6).state


def test_the_beams_are_those_of_the_library(show: Any) -> None:
    page = show(Decoding("beam"))
    for which in range(len(experiments.load("decoding")["trees"])):
        page.locator('select[data-key="which"]').select_option(str(which))
        for width, alpha, steps in ((1, 0.0, 10), (2, 0.0, 4), (3, 1.0, 10), (6, 2.0, 10)):
            for key, value in (("width", width), ("alpha", alpha), ("steps", steps)):
                slide(page, key, value)
            ours = Decoding("beam", which=which, width=width, alpha=alpha, steps=steps).beam
            theirs = read(page, "found")
            assert [tuple(y["tokens"]) for y in theirs] == [y.tokens for y in ours]
            assert [y["complete"] for y in theirs] == [y.complete for y in ours]
            for key, attribute in (("logP", "log_p"), ("score", "score")):
                expected = [getattr(y, attribute) for y in ours]
                assert [y[key] for y in theirs] == pytest.approx(expected, rel=1e-9)


def test_every_state_of_the_sliders_is_stored() -> None:
    for which in range(len(experiments.load("decoding")["trees"])):
        for width in range(1, 7):
            for quarter in range(9):
                assert Decoding("beam", which=which, width=width, alpha=quarter / 4).beam


def test_both_views_fit_a_phone_in_both_themes(show: Any) -> None:
    for width in (390, 1280):
        page = show(Decoding(p=0.8), Decoding("beam", width=6), width=width)
        for theme in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        for n in range(2):
            inner = page.locator(".tfx").nth(n).bounding_box()["height"]
            outer = page.locator(".tfviz-explorer").nth(n).bounding_box()["height"]
            assert inner <= outer + 1, "higher than the room the page keeps for it"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"view": "tree"}, "view = 'tree'"),
        ({"which": 99}, "which = 99"),
        ({"tau": -1.0}, "tau = -1"),
        ({"p": 2.0}, "p = 2"),
        ({"width": 7}, "width = 7"),
        ({"alpha": 9.0}, "alpha = 9"),
        ({"steps": 0}, "steps = 0"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Decoding(**wrong)
