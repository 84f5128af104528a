"""Training views in a real browser: the inputs, masks and targets that the library makes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from explorer_site import fits

from tfviz import patterns
from tfviz.basics.lm_objectives import drop_spans, prefix_lm
from tfviz.explorers import TrainingViews

WORDS = ["the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "warm"]
FATES = ["", "", "mask", "mask", "", "other", "", "", "same", ""]


def explorer(**options: Any) -> TrainingViews:
    return TrainingViews(**({"words": WORDS, "row": 3, "fates": FATES} | options))


@pytest.fixture
def lab(show: Any) -> Any:
    return show(explorer())


def expect(page: Any, **options: Any) -> None:
    """The page shows what the library makes of these settings."""
    page.evaluate("() => new Promise(requestAnimationFrame)")
    shown = json.loads(page.locator(".tfx").get_attribute("data-view"))
    wanted = explorer(row=0, **options)
    leaks = shown.pop("leaks")
    assert shown == wanted.view._asdict() and leaks == len(wanted.leaks)
    cells = page.locator(".tv-table tbody td:not(.tv-say, .tv-quiet)")
    drawn = cells.evaluate_all("nodes => nodes.map((n) => n.classList.contains('tv-open'))")
    assert drawn == [x for row in wanted.view.mask for x in row]
    said = page.locator(".tv-say").all_inner_texts()
    pairs = zip(wanted.view.targets, wanted.view.scored, strict=True)
    assert said == [target for target, counts in pairs if counts]


def slide(page: Any, key: str, value: float) -> None:
    """Move a slider, and wait until the explorer has drawn what follows from it."""
    page.locator(f'input[data-key="{key}"][type="range"]').evaluate(
        "async (node, value) => { node.value = value; node.dispatchEvent(new Event('input')); "
        "await new Promise(requestAnimationFrame); }",
        value,
    )


def test_the_page_shows_what_the_library_makes(lab: Any) -> None:
    expect(lab)
    lab.get_by_label("causal mask").uncheck()
    expect(lab, masked=False)
    assert lab.locator(".tv-open", has_text="!").count() == 9  # each but the last can copy
    lab.get_by_text("prefix LM", exact=True).click()
    for p in (0, 1, 4, 10):
        slide(lab, "prefix", p)
        expect(lab, objective="prefix", prefix=p)
    lab.get_by_text("BERT", exact=True).click()
    expect(lab, objective="bert")
    lab.locator('select[data-key="fate"]').select_option("mask")  # of position 3, which is hidden
    slide(lab, "row", 0)
    lab.locator('select[data-key="fate"]').select_option("other")
    now = ["other", *FATES[1:]]
    expect(lab, objective="bert", fates=now)
    lab.get_by_text("T5", exact=True).click()
    expect(lab, objective="t5", fates=now)
    lab.get_by_label("take this word out").focus()
    slide(lab, "row", 1)  # the word after the first sentinel
    # with it, position 1 is another one, and the box speaks of that: it need not stay ticked
    lab.get_by_label("take this word out").click()
    expect(lab, objective="t5", fates=["other", "mask", *FATES[2:]])
    lab.get_by_role("button", name="put all words back").click()
    expect(lab, objective="t5", fates=[""] * 10)
    lab.get_by_role("button", name="reset").click()
    expect(lab)


def test_keyboard_speech_link_and_python(lab: Any) -> None:
    status = lab.locator(".tfx > .tfx-status")
    lab.locator(".tv-box").focus()
    lab.keyboard.press("ArrowDown")
    lab.get_by_text("position 4 of 10: reads “on”, sees 5 of 10 inputs, must say “the”").wait_for(
        state="attached"
    )
    lab.keyboard.press("Home")
    lab.wait_for_function(
        "n => n.textContent.includes('sees 1 of 10')", arg=status.element_handle()
    )
    lab.locator(".tv-table tbody tr").nth(7).click()
    lab.evaluate("() => new Promise(requestAnimationFrame)")
    assert "must say it" in lab.locator(".tv-work").inner_text()
    lab.get_by_text("BERT", exact=True).click()
    slide(lab, "row", 8)
    lab.evaluate("() => new Promise(requestAnimationFrame)")
    assert "any word might be a wrong one" in lab.locator(".tv-work").inner_text()
    lab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    lab.get_by_role("button", name="copy Python").click()
    lab.wait_for_function("window.copied")
    again = eval(lab.evaluate("window.copied"), {"TrainingViews": TrainingViews})
    assert again.state == explorer(objective="bert", row=8).state
    lab.get_by_role("button", name="copy link").click()
    lab.wait_for_function("window.copied.startsWith('http')")
    link = lab.evaluate("window.copied")
    lab.goto("about:blank")
    lab.goto(link)
    lab.locator(".tfviz-explorer[data-ready]").wait_for()
    expect(lab, objective="bert")


def test_fits_a_phone_in_both_themes(show: Any) -> None:
    many = ["mask", ""] * 5  # T5 with as many spans as there can be: 21 positions
    cases = [explorer(), explorer(objective="bert"), explorer(objective="t5", fates=many)]
    fits(show, cases)


# --- the Python side -----------------------------------------------------------------------------


def test_views_by_hand() -> None:
    words = ["a", "b", "c", "d"]
    gpt = TrainingViews(words).view
    assert gpt.inputs == ["⟨begin⟩", "a", "b", "c"] and gpt.targets == words and all(gpt.scored)
    assert gpt.mask == patterns.causal().mask(4).tolist()
    prefix = TrainingViews(words, "prefix", prefix=2).view
    assert prefix.scored == [False, True, True, True]
    assert prefix.mask[0] == [True, True, False, False]
    bert = TrainingViews(words, "bert", fates=["mask", "", "other", "same"]).view
    assert bert.inputs == ["⟨mask⟩", "b", "fish", "d"] and bert.scored == [True, False, True, True]
    t5 = TrainingViews(words, "t5", fates=["", "mask", "mask", ""]).view
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
