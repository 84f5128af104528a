"""The three attentions in a real browser: the weights of the library's model, shapes, steps."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from explorer_site import fits

from tfviz.basics.encoder_decoder import pair_counts, three_maps
from tfviz.explorers import ThreeMaps
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.position.sinusoidal_pe import Sinusoidal

SOURCE, WRITTEN, SAID = list("badce"), ["⟨begin⟩", "a", "b", "c"], list("abcd")


def explorer(**options: Any) -> ThreeMaps:
    torch.manual_seed(3)
    model = EncoderDecoder(9, 16, 2, 1, Sinusoidal(16))
    maps = three_maps(model, torch.randint(9, (1, 5)), torch.randint(9, (1, 4)))
    given = {name: A[0][0].tolist() for name, A in maps.items()}
    start = {"source": SOURCE, "written": WRITTEN, "said": SAID, "step": 1, "d": 16}
    return ThreeMaps(**(start | given | options))


@pytest.fixture
def lab(show: Any) -> Any:
    return show(explorer())


def expect(page: Any, **options: Any) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    shown = json.loads(page.locator(".tfx").get_attribute("data-maps"))
    wanted = explorer(**options)
    for part, weights in shown["weights"].items():
        torch.testing.assert_close(torch.tensor(weights), torch.tensor(wanted.weights(part)))
    assert shown["pairs"] == wanted.pairs == pair_counts(5, 4)
    row = wanted.weights("cross")[wanted.step]
    assert shown["best"] == max(range(5), key=row.__getitem__)


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[data-key="{key}"][type="range"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def test_the_page_shows_the_weights_and_steps_through_them(lab: Any) -> None:
    expect(lab)
    for head in (0, 1):
        slide(lab, "head", head)
        expect(lab, head=head)
    slide(lab, "step", 3)
    expect(lab, head=1, step=3)
    lab.get_by_text("Step 3, head 1: reads “c”").wait_for(state="attached")
    assert lab.locator(".tm-tokens").nth(1).inner_text().split() == SAID
    slide(lab, "step", 0)
    lab.evaluate("() => new Promise(requestAnimationFrame)")
    assert lab.locator(".tm-tokens").nth(1).inner_text().split() == ["a", "·", "·", "·"]
    lab.get_by_role("button", name="reset").click()
    expect(lab)


def test_parts_shapes_keyboard_and_python(lab: Any) -> None:
    work = lab.locator(".tm-work")
    assert "Q from what is written: 4 × 16" in work.inner_text()
    assert "from the source: 5 × 16" in work.inner_text()
    lab.locator('[data-part="encoder"]').click()
    lab.evaluate("() => new Promise(requestAnimationFrame)")
    assert "Q from the source: 5 × 16" in work.inner_text() and "A: 5 × 5" in work.inner_text()
    assert lab.locator('[data-part="encoder"]').get_attribute("aria-pressed") == "true"
    lab.locator(".tm-map canvas").nth(1).focus()  # the decoder's own map
    lab.keyboard.press("ArrowDown")
    lab.evaluate("() => new Promise(requestAnimationFrame)")
    assert "future is hatched" in work.inner_text()
    expect(lab, step=2)
    lab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    lab.get_by_role("button", name="copy Python").click()
    lab.wait_for_function("window.copied")
    again = eval(lab.evaluate("window.copied"), {"ThreeMaps": ThreeMaps})
    assert again.state == explorer(step=2, part="decoder").state


def test_fits_a_phone_in_both_themes(show: Any) -> None:
    fits(show, [explorer()])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"source": []}, "number of source tokens = 0"),
        ({"source": list("abcd")}, r"encoder has shape \(2, 5, 5\)"),
        ({"said": ["x"]}, "1 said for 4 written"),
        ({"cross": [[[0.5] * 5] * 4] * 2}, "cross has a row that is no distribution"),
        ({"part": "feed"}, "part = 'feed'"),
        ({"step": 4}, "step = 4"),
        ({"head": 2}, "head = 2"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        explorer(**wrong)
