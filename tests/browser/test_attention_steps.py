"""Attention step by step in a real browser: what is not told, keys, the explanation, terms."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from browser.explorer_laws import AT_REST
from browser.explorer_site import answer

from tfviz.explorers import AttentionSteps

CARDS = AttentionSteps.examples[""]
MORE_CARDS = CARDS["cards"]


def explorer(**options: Any) -> Any:
    return AttentionSteps.example(**{"cards": {}} | options)


@pytest.fixture
def steps(show: Any) -> Any:
    page = show(explorer())
    page.get_by_role("button", name="just show me").click()
    page.evaluate(AT_REST)  # a later frame shows it
    return page


def matrix(page: Any, title: str) -> Any:
    """The SVG of the matrix whose name begins so."""
    return page.locator(f'svg[aria-label^="{title}"]')


PLACE = """(svg) => {
  const rim = svg.querySelector(".tfx-rim").getBoundingClientRect();
  const box = svg.getBoundingClientRect();
  return [rim.x - box.x, rim.y - box.y, rim.width, rim.height];
}"""


def cell(page: Any, title: str, i: int, j: int) -> dict[str, float]:
    """Where its cell is, of six by six."""
    x, y, wide, high = matrix(page, title).evaluate(PLACE)  # at once: a new frame has a new rim
    return {"x": x + (j + 0.5) * wide / 6, "y": y + (i + 0.5) * high / 6}


def test_nothing_tells_before_the_answer(show: Any) -> None:
    page = show(explorer())
    assert "0.90" not in page.locator(".tfx").inner_text()
    assert "0.73" in matrix(page, "A = ").inner_html()  # another word's row is worked out
    assert "= ?" in page.locator(".tfx-lines").inner_text()
    answer(page, "ArrowLeft", "ArrowLeft")  # from "it" over "because" to "sleeps"
    page.get_by_text("✗ you said: “sleeps”; it is: “cat”").wait_for()
    page.get_by_text("it → cat: weight 0.897").wait_for()
    assert "0.90" in matrix(page, "A = ").inner_html()


def test_a_cell_explains_its_arithmetic(steps: Any) -> None:
    text = steps.locator(".tfx-lines").inner_text()
    assert "it asks, cat is asked: 3.00·2.00 + 0.20·0.20 = 6.04" in text
    assert "√2 = 1.41: 4.27" in text  # 6.04 / 1.4142 = 4.2709
    assert "0.897" in text  # e^4.2709 = 71.59 of 79.81
    matrix(steps, "S = ").click(position=cell(steps, "S = ", 1, 5))  # cat asks purrs
    steps.get_by_text("cat asks, purrs is asked: 0.20·0.20 + 1.00·2.00 = 2.04").wait_for()


def test_keyboard_moves_and_speaks(steps: Any) -> None:
    matrix(steps, "S = ").focus()
    steps.keyboard.press("ArrowUp")
    steps.keyboard.press("ArrowRight")
    steps.get_by_text("because → sleeps: weight").wait_for()
    steps.keyboard.press("Home")
    steps.keyboard.press("ArrowLeft")
    steps.keyboard.press("ArrowLeft")
    steps.get_by_text("the → the").wait_for()
    steps.get_by_label("causal mask").check()
    matrix(steps, "A = ").focus()
    for _ in range(5):
        steps.keyboard.press("ArrowRight")
    steps.get_by_text("the → purrs: forbidden").wait_for()
    assert "weight exactly 0" in steps.locator(".tfx-lines").inner_text()


def test_hover_looks_without_choosing(steps: Any) -> None:
    matrix(steps, "A = ").hover(position=cell(steps, "A = ", 0, 0))
    steps.get_by_text("the asks, the is asked").wait_for()
    steps.locator("h1").hover()
    steps.get_by_text("it asks, cat is asked").wait_for()


def test_a_term_lights_up_its_row_and_its_cell(steps: Any) -> None:
    steps.locator(".tfx-formula [data-term=value]").hover()
    lit = steps.locator(".tfx-some[data-lit]")
    assert lit.count() == 1 and lit.locator("rect").count() == 2  # the value of "cat"


def test_a_sentence_of_the_readers_own(show: Any) -> None:
    """Its words have cards; the question is the one about the first sentence."""
    page = show(explorer(cards=MORE_CARDS))
    text = page.get_by_label("your own sentence, from these words: barks, dog, it")
    answer(page, "ArrowLeft", "ArrowLeft", "ArrowLeft")
    page.get_by_text("✓ you said: “cat”. So it is").wait_for()
    text.fill("it barks dog")
    weights = explorer(cards=MORE_CARDS, row=0, column=0, yours="it barks dog").numbers()["weights"]
    assert len(weights) == 3
    page.get_by_text(f"it → it: weight {weights[0][0]:.3f}").wait_for()
    matrix(page, "A = ").hover(position={"x": 5, "y": 5})
    text.fill("")  # six words, and the mouse stays on the last of them
    page.get_by_text("the → the: weight").wait_for()
    matrix(page, "A = ").hover(position=cell(page, "A = ", 5, 5))
    page.get_by_text("purrs asks, purrs is asked").wait_for()
    text.fill("it barks dog")
    page.get_by_text("dog asks, dog is asked").wait_for()
    text.fill("it barks cat")  # the last sentence whose words it knows stays
    page.get_by_text("no cards for “cat”").wait_for()
    text.fill("it " * 9)
    page.get_by_text("8 words at most").wait_for()
    text.fill("")
    page.get_by_text("the → the: weight").wait_for()


def test_python_side() -> None:
    q, k, _ = (torch.tensor(CARDS[name], dtype=torch.float64) for name in "QKV")
    raw = torch.softmax(q @ k.T, -1)
    one = torch.tensor(explorer(scale=False).numbers()["weights"], dtype=torch.float64)
    torch.testing.assert_close(one, raw)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"words": ["one"]}, "Q has 6 rows"),
        ({"words": ["w"] * 9}, "number of words = 9"),
        ({"K": [[1.0]] * 6}, "K has 6 rows"),
        ({"V": [[1.0] * 5] * 6}, "V has 6 rows of widths"),
        ({"row": 6}, "row = 6"),
        ({"yours": "a dog", "row": 0}, "yours has 'a'; cards has dog, barks, it"),
        ({"yours": "dog " * 9, "row": 0}, "number of words in yours = 9"),
        ({"yours": "dog barks"}, "row = 4"),
        ({"cards": {"dog": [[1.0, 0.0]]}}, "number of cards of 'dog' = 1"),
        ({"cards": {"dog": [[1.0, 0.0], [1.0], [1.0, 0.0]]}}, "K of 'dog' has 1 rows of widths"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**{"cards": MORE_CARDS} | wrong)
