"""Attention step by step in a real browser: the library's numbers, keys, explanation, phone."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from explorer_site import fits

from tfviz import patterns
from tfviz.attention import attention
from tfviz.explorers import AttentionSteps

WORDS = ["the", "cat", "sleeps", "because", "it", "purrs"]
Q = [[0.0, 0.1], [0.2, 1.0], [2.0, 0.0], [0.3, 0.0], [3.0, 0.2], [2.0, 0.1]]
K = [[0.2, 0.0], [2.0, 0.2], [0.0, 2.0], [0.0, 0.0], [0.4, 0.0], [0.2, 2.0]]
V = [[0.1, 0.0], [1.0, 0.1], [0.0, 1.0], [0.0, 0.0], [0.2, 0.0], [0.1, 1.0]]


def explorer(**options: Any) -> AttentionSteps:
    return AttentionSteps(
        **({"Q": Q, "K": K, "V": V, "words": WORDS, "row": 4, "column": 1} | options)
    )


@pytest.fixture
def steps(show: Any) -> Any:
    return show(explorer())


def expect(page: Any, scale: bool, causal: bool) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    q, k, v = (torch.tensor(x, dtype=torch.float64) for x in (Q, K, V))
    out, A = attention(q if scale else q * 2**0.5, k, v, patterns.causal() if causal else None)
    cells = page.locator(".as-a td[data-weight]")
    weights = cells.evaluate_all("nodes => nodes.map((n) => Number(n.dataset.weight))")
    torch.testing.assert_close(torch.tensor(weights, dtype=torch.float64).reshape(6, 6), A)
    shown = json.loads(page.locator(".tfx").get_attribute("data-output"))
    torch.testing.assert_close(torch.tensor(shown, dtype=torch.float64), out)


def test_the_page_shows_the_numbers_of_the_library(steps: Any) -> None:
    expect(steps, scale=True, causal=False)
    steps.get_by_label("divide by √2").uncheck()
    expect(steps, scale=False, causal=False)
    steps.get_by_label("causal mask").check()
    expect(steps, scale=False, causal=True)
    steps.get_by_role("button", name="reset").click()
    expect(steps, scale=True, causal=False)


def test_a_cell_explains_its_arithmetic(steps: Any) -> None:
    text = steps.locator(".as-work").inner_text()
    assert "it asks, cat is asked: 3.00·2.00 + 0.20·0.20 = 6.04" in text
    assert "√2 = 1.41: 4.27" in text  # 6.04 / 1.4142 = 4.2709
    assert "0.897" in text  # e^4.2709 = 71.59 of 79.81
    steps.locator(".as-s td").nth(6 * 1 + 5).click()  # cat asks, purrs is asked
    steps.evaluate("() => new Promise(requestAnimationFrame)")
    text = steps.locator(".as-work").inner_text()
    assert "cat asks, purrs is asked: 0.20·0.20 + 1.00·2.00 = 2.04" in text


def test_keyboard_moves_and_speaks(steps: Any) -> None:
    steps.locator(".as-scores").focus()
    steps.keyboard.press("ArrowUp")
    steps.keyboard.press("ArrowRight")
    steps.get_by_text("because → sleeps: weight").wait_for()
    assert steps.locator(".as-a .as-chosen").count() == 1
    steps.keyboard.press("Home")
    steps.keyboard.press("PageUp")
    steps.get_by_text("the → the").wait_for()
    steps.get_by_label("causal mask").check()
    steps.locator(".as-blend").focus()
    steps.keyboard.press("End")
    steps.get_by_text("the → purrs: forbidden").wait_for()
    assert "weight exactly 0" in steps.locator(".as-work").inner_text()


def test_hover_looks_without_choosing(steps: Any) -> None:
    steps.locator(".as-a td.as-live").nth(0).hover()
    steps.get_by_text("the asks, the is asked").wait_for()
    steps.locator("h1").hover()
    steps.get_by_text("it asks, cat is asked").wait_for()


def test_copied_python_makes_the_same_explorer(steps: Any) -> None:
    steps.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    steps.get_by_label("causal mask").check()
    steps.get_by_role("button", name="copy Python").click()
    steps.wait_for_function("window.copied")
    again = eval(steps.evaluate("window.copied"), {"AttentionSteps": AttentionSteps})
    assert again.state == explorer(causal=True).state


def test_fits_a_phone_and_a_desk(show: Any) -> None:
    fits(show, [explorer()])


def test_python_side() -> None:
    q, k, v = (torch.tensor(x, dtype=torch.float64) for x in (Q, K, V))
    out, A = attention(q, k, v, patterns.causal())
    one = explorer(causal=True)
    assert one.weights == A.tolist() and one.output == out.tolist()
    raw = torch.softmax(q @ k.T, -1)
    torch.testing.assert_close(
        torch.tensor(explorer(scale=False).weights, dtype=torch.float64), raw
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"words": ["one"]}, "Q has 6 rows"),
        ({"words": ["w"] * 9}, "number of words = 9"),
        ({"K": [[1.0]] * 6}, "differ in width"),
        ({"V": [[1.0] * 5] * 6}, "V has 6 rows of widths"),
        ({"row": 6}, "row = 6"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
