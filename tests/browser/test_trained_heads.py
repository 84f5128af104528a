"""Heads of a trained model in a real browser: what is asked, maps to press, keys, the mouse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from browser.explorer_site import answer

import tfviz_lab
from tfviz.explorers import TrainedHeads
from tfviz.stored import letter_gpt

TEXTS = ["the value of the expression", "crwth crwth crwth", "ab"]


@pytest.fixture(scope="module")
def one() -> TrainedHeads:
    return TrainedHeads(TEXTS, text=1, layer=1, head=0, row=14)


def numbers(page: Any) -> Any:
    return page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")


def expect(page: Any, text: int, layer: int, head: int, row: int) -> None:
    """The page shows what the library computes for this state."""
    right = TrainedHeads(TEXTS, text=text, layer=layer, head=head, row=row).numbers()
    found = numbers(page)
    assert found.pop("weights") == pytest.approx(right.pop("weights"), abs=1e-12)
    assert found == pytest.approx(right, abs=1e-9)


def test_a_head_is_pressed_and_a_query_moved(show: Callable[..., Any], one: TrainedHeads) -> None:
    page = show(one)
    assert "letter 13, “r”, puts" in page.locator(".tfx-status").inner_text()  # the one before
    answer(page, *11 * ["ArrowLeft"])  # to a letter after an earlier “w”
    page.get_by_text("So it is").wait_for()
    expect(page, 1, 1, 0, 14)
    stored = tfviz_lab.load("head_ablation")["gpt"]
    facts = page.locator(".tfx-readouts").inner_text()
    for task in ("text", "repeats"):
        assert f"{stored[task]:.2f} → {stored['without'][1][0][task]:.2f} nats" in facts
    page.get_by_role("button", name="show layer 0, head 2").click()
    expect(page, 1, 0, 2, 14)
    page.get_by_role("button", name="show layer 0, head 3").press("Enter")
    expect(page, 1, 0, 3, 14)

    page.get_by_role("slider", name="query", exact=True).last.press("ArrowLeft")
    expect(page, 1, 0, 3, 13)
    page.get_by_text("Layer 0, head 3: letter 13, “r”, puts").wait_for()
    page.locator("input[data-key=row]").press("Home")
    expect(page, 1, 0, 3, 0)
    page.get_by_text("puts 1.00 on itself").wait_for()
    page.locator('svg[aria-label^="Attention weights"]').press("End")
    expect(page, 1, 0, 3, 16)

    # another text begins at its last letter
    page.locator('select[data-key="text"]').select_option("0")
    expect(page, 0, 0, 3, 26)
    page.locator('select[data-key="text"]').select_option("2")
    expect(page, 2, 0, 3, 1)
    page.get_by_role("button", name="reset").click()
    expect(page, 1, 1, 0, 14)


def test_a_text_of_the_readers_own(show: Callable[..., Any], one: TrainedHeads) -> None:
    page = show(one)
    page.get_by_role("button", name="just show me").click()
    yours = page.get_by_label("or a text of your own")
    yours.fill("zxq zxq zxq")
    for head in (2, 3):
        page.get_by_role("button", name=f"show layer 1, head {head}").click()
        right = TrainedHeads(TEXTS, text=1, layer=1, head=head, yours="zxq zxq zxq").numbers()
        found = numbers(page)
        assert found.keys() == right.keys() and len(right["weights"]) == 11
        for name, value in right.items():  # both in double precision
            assert found[name] == pytest.approx(value, rel=1e-9), name
    code = page.evaluate("document.querySelector('.tfviz-explorer').tfviz.python()")
    again = eval(code, {"TrainedHeads": TrainedHeads})
    assert again.numbers()["entropy"] == pytest.approx(numbers(page)["entropy"], rel=1e-9)
    link = page.evaluate("document.querySelector('.tfviz-explorer').tfviz.hash()")

    before = numbers(page)
    yours.fill("Zxq")
    page.get_by_text("The model has never read “Z”").wait_for()
    yours.fill("z")
    page.get_by_text("The model needs 2 letters").wait_for()
    assert numbers(page) == before
    yours.fill("")
    expect(page, 1, 1, 3, 16)
    page.locator('select[data-key="text"]').select_option("0")
    expect(page, 0, 1, 3, 26)

    page = show(one, hash=link)
    assert numbers(page) == before
    assert page.get_by_label("or a text of your own").input_value() == "zxq zxq zxq"


def test_under_the_mouse_it_is_looked_at_not_chosen(
    show: Callable[..., Any], one: TrainedHeads
) -> None:
    page = show(one)
    page.get_by_role("button", name="just show me").click()
    rim = page.locator('svg[aria-label^="Attention weights"] .tfx-rim')
    rim.wait_for()  # the answer draws it anew: it is found and measured in one go
    box = rim.evaluate("(node) => node.getBoundingClientRect().toJSON()")
    page.mouse.move(box["x"] + 3, box["y"] + box["height"] * 8.5 / 17)
    page.locator('svg[aria-label*="letter 8, "]').wait_for()
    page.locator("h1").hover()
    page.locator('svg[aria-label*="letter 14, "]').wait_for()


def test_python_side(one: TrainedHeads) -> None:
    model = letter_gpt.trained()
    A = letter_gpt.of_text(model, TEXTS[1]).double()
    assert (one.weights - A).abs().max() < 1e-5
    assert one.html() == TrainedHeads(TEXTS, text=1, layer=1, head=0, row=14).html()
    torch.testing.assert_close(
        one.weights.sum(-1), torch.ones(2, 4, 17, dtype=torch.float64), atol=2e-4, rtol=0
    )
    own = TrainedHeads("abc abc", model=letter_gpt.gpt())  # nothing is known of it
    assert own.whole == {} and own.removed == [] and own.row == 6


def test_a_model_that_is_not_the_stored_one(show: Callable[..., Any]) -> None:
    page = show(TrainedHeads("abc abc", model=letter_gpt.gpt()))
    page.get_by_role("button", name="just show me").click()
    page.get_by_text("entropy of a row").wait_for()
    shown = page.locator(".tfx-readouts").inner_text()
    assert "entropy of a row" in shown and "without this head" not in shown
    assert not page.get_by_label("or a text of your own").count()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"texts": ["A cat"]}, "'A', which the model has never read"),
        ({"texts": ["x" * 41]}, "length of 'x+' = 41"),
        ({"texts": []}, "number of texts = 0"),
        ({"layer": 2}, "layer = 2"),
        ({"head": 4}, "head = 4"),
        ({"text": 3}, "text = 3"),
        ({"row": 99}, "row = 99"),
        ({"yours": "a cat", "row": 5}, "row = 5"),
        ({"yours": "A cat"}, "'A', which the model has never read"),
        ({"yours": "x"}, "length of yours = 1"),
        ({"texts": ["ab"], "yours": "ab", "model": letter_gpt.gpt()}, "the stored model only"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TrainedHeads(**wrong)
