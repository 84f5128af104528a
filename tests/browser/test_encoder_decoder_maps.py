"""The three attentions in a real browser: the weights of the library's model, shapes, steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from browser.explorer_laws import AT_REST

from tfviz.basics.encoder_decoder import pair_counts, three_maps
from tfviz.explorers import EncoderDecoderMaps
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.position.sinusoidal_pe import Sinusoidal

SOURCE, WRITTEN, SAID = list("badce"), ["⟨begin⟩", "a", "b", "c"], list("abcd")


def explorer(**options: Any) -> EncoderDecoderMaps:
    torch.manual_seed(3)
    model = EncoderDecoder(9, 16, 2, 1, positions=Sinusoidal(16))
    maps = three_maps(model, torch.randint(9, (1, 5)), torch.randint(9, (1, 4)))
    given = {name: A[0][0].tolist() for name, A in maps.items()}
    start = {"source": SOURCE, "written": WRITTEN, "said": SAID, "step": 1, "d": 16}
    return EncoderDecoderMaps(**(start | given | options))


@pytest.fixture
def lab(show: Any) -> Any:
    return show(explorer())


def said(lab: Any, words: str) -> Any:
    """The spoken sentence, once it says this: a picture may be drawn a frame later."""
    return lab.locator(".tfx-status", has_text=words)


def test_the_page_writes_step_by_step(lab: Any) -> None:
    assert "Step 1, mean" in lab.locator(".tfx-status").inner_text()
    lab.get_by_role("button", name="just show me").click()
    lab.evaluate(AT_REST)
    lab.get_by_role("button", name="reset").click()
    said(lab, "Step 1, mean").wait_for()
    lab.evaluate(AT_REST)
    written = lab.locator(".tfx-plane").first.locator(".tfx-mark-text text")
    assert written.all_text_contents()[5:9] == ["a", "b", "·", "·"]
    for _ in range(2):
        lab.get_by_role("button", name="write →").click()
    lab.locator("input[data-key=head]").press("End")
    lab.get_by_text("Step 3, head 1: reads “c”").wait_for()
    lab.evaluate(AT_REST)
    assert written.all_text_contents()[5:9] == SAID
    found = lab.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")
    right = explorer(step=3, head=1).numbers()
    for part in ("encoder", "decoder", "cross"):
        torch.testing.assert_close(torch.tensor(found[part]), torch.tensor(right[part]))
    assert found["pairs"] == list(pair_counts(5, 4).values()) and found["best"] == right["best"]


def test_parts_shapes_and_keyboard(lab: Any) -> None:
    lab.get_by_role("button", name="just show me").click()
    work = lab.locator(".tfx-lines")
    assert "Q from what is written: 4 × 16" in work.inner_text()
    assert "from the source: 5 × 16" in work.inner_text()
    lab.locator("label", has_text="encoder").click()
    lab.get_by_text("Q from the source: 5 × 16").wait_for()
    assert "A: 5 × 5" in work.inner_text()
    lab.locator('svg[aria-label^="causal"]').press("ArrowUp")  # the decoder's own map
    lab.get_by_text("future is hatched").wait_for()
    said(lab, "Step 1").wait_for()


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
