"""Training views in a real browser: the inputs, masks and targets that the library makes."""

from __future__ import annotations

from typing import Any

import pytest
from browser.explorer_site import fits
from playwright.sync_api import expect as in_time

from tfviz import patterns
from tfviz.basics.lm_objectives import drop_spans, prefix_lm
from tfviz.explorers import TrainingObjectives

FATES = TrainingObjectives.examples["gpt"]["fates"]


def explorer(**options: Any) -> Any:
    return TrainingObjectives.example("gpt", **options)


@pytest.fixture
def lab(show: Any) -> Any:
    page = show(explorer())
    page.get_by_role("button", name="just show me").click()
    page.get_by_role("button", name="reset").click()
    return page


def settle(page: Any) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")


def expect(page: Any, **options: Any) -> None:
    """The page shows what the library makes of these settings: words, numbers, marks."""
    settle(page)
    wanted = explorer(row=0, **options)
    found = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")
    assert found == wanted.numbers()
    heads = page.locator(".tfx-grid .tfx-axes text").all_text_contents()
    inputs, targets, scored, _, _ = wanted.view
    said = [word if counts else "–" for word, counts in zip(targets, scored, strict=True)]
    assert heads == [*inputs, *inputs, *said]
    marks = page.locator(".tfx-grid .tfx-marks text").all_text_contents()
    assert marks.count("!") == len(wanted.leaks)


def test_the_page_shows_what_the_library_makes(lab: Any) -> None:
    expect(lab)
    lab.get_by_label("causal mask").uncheck()
    expect(lab, masked=False)  # each but the last can copy
    lab.get_by_text("prefix LM", exact=True).click()
    expect(lab, objective="prefix")
    edge = lab.locator(".tfx-handle")
    edge.press("ArrowRight")
    expect(lab, objective="prefix", prefix=5)
    lab.get_by_text("BERT", exact=True).click()
    expect(lab, objective="bert")
    lab.locator('select[data-key="fate"]').select_option("mask")  # of position 3, which is hidden
    lab.locator("input[data-key=row]").press("Home")
    settle(lab)
    lab.locator('select[data-key="fate"]').select_option("other")
    now = ["other", *FATES[1:]]
    expect(lab, objective="bert", fates=now)
    lab.get_by_text("T5", exact=True).click()
    expect(lab, objective="t5", fates=now)
    lab.locator("input[data-key=row]").press("ArrowRight")  # the word after the first sentinel
    settle(lab)
    # with it, position 1 is another one, and the box speaks of that: it need not stay ticked
    lab.get_by_label("take this word out").click()
    expect(lab, objective="t5", fates=["other", "mask", *FATES[2:]])
    lab.get_by_role("button", name="put all words back").click()
    expect(lab, objective="t5", fates=[""] * 10)


def test_keyboard_speech_and_hover(lab: Any) -> None:
    matrix = lab.locator(".tfx-grid svg")
    matrix.press("ArrowDown")
    lab.get_by_text("position 4 of 10: reads “on”, sees 5 of 10 inputs, must say “the”").wait_for()
    matrix.press("Home")
    lab.get_by_text("sees 1 of 10").first.wait_for()
    rim = lab.locator(".tfx-rim").bounding_box()
    lab.mouse.move(rim["x"] + 3, rim["y"] + 0.75 * rim["height"])
    lab.get_by_text("must say it").wait_for()
    lab.locator("h1").hover()
    lab.get_by_text("must say the").wait_for()
    lab.get_by_text("BERT", exact=True).click()
    for _ in range(8):
        lab.locator("input[data-key=row]").press("ArrowRight")
    lab.get_by_text("any word might be a wrong one").wait_for()


def test_it_is_asked_how_many_can_copy(show: Any) -> None:
    page = show(explorer(masked=False))
    page.get_by_label("how many rows can copy").fill("0")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("✓ you said: 0. So it is").wait_for()
    in_time(page.get_by_label("causal mask")).to_be_checked()  # drawn in the next frame


def test_t5_with_as_many_holes_as_there_can_be_fits(show: Any) -> None:
    fits(show, [explorer(objective="t5", fates=["mask", ""] * 5, row=0)])  # 21 positions


# --- the Python side -----------------------------------------------------------------------------


def test_views_by_hand() -> None:
    words = ["a", "b", "c", "d"]
    gpt = TrainingObjectives(words).view
    assert gpt.inputs == ["⟨begin⟩", "a", "b", "c"] and gpt.targets == words and all(gpt.scored)
    assert gpt.mask == patterns.causal().mask(4).tolist()
    prefix = TrainingObjectives(words, "prefix", prefix=2).view
    assert prefix.scored == [False, True, True, True]
    assert prefix.mask[0] == [True, True, False, False]
    bert = TrainingObjectives(words, "bert", fates=["mask", "", "other", "same"]).view
    assert bert.inputs == ["⟨mask⟩", "b", "fish", "d"] and bert.scored == [True, False, True, True]
    t5 = TrainingObjectives(words, "t5", fates=["", "mask", "mask", ""]).view
    assert t5.inputs == ["a", "⟨0⟩", "d", "⟨begin⟩", "⟨0⟩", "b", "c"]
    assert t5.targets == ["", "", "", "⟨0⟩", "b", "c", "⟨1⟩"] and t5.sources == 3
    assert t5.mask == prefix_lm(prefix=3).mask(7).tolist()
    inputs, targets = drop_spans([0, 1, 2, 3], [(1, 3)], [4, 5])
    assert len(t5.inputs) == len(inputs) + len(targets)


def test_only_without_a_mask_can_an_answer_be_copied() -> None:
    assert explorer().leaks == [] and explorer(masked=False).leaks == list(range(9))
    for p in range(11):
        assert explorer(objective="prefix", prefix=p).leaks == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"words": ["w"] * 11, "fates": [""] * 11}, "number of words = 11"),
        ({"fates": [""]}, "1 fates for 10 words"),
        ({"fates": ["gone"] * 10}, "choose among"),
        ({"objective": "elmo"}, "objective = 'elmo'"),
        ({"prefix": 11}, "prefix = 11"),
        ({"row": 10}, "row = 10"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
