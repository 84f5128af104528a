"""The position bench in a real browser: the library's numbers, keys, phone, themes, the link."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from browser.explorer_site import fits

from tfviz.explorers import PositionEncodings

TABLE = torch.randn(64, 64, generator=torch.Generator().manual_seed(3))
RACE = {
    "lengths": [16, 32, 64, 128, 256],
    "train_length": 64,
    "unit": {"text": "nats per character", "recall": "nats per symbol"},
    "tasks": {
        "text": {
            "none": [[2.4, 2.3, 2.2, 2.3, 2.4]] * 2,
            "sinusoidal": [[2.3, 2.1, 2.0, 2.4, 2.8], [2.3, 2.2, 2.1, 2.6, 3.0]],
            "learned": [[2.3, 2.1, 2.05, None, None]] * 2,
        },
        "recall": {
            "sinusoidal": [[0.2, 0.3, 0.4, 1.5, 2.0]],
            "learned": [[0.3, 0.2, 0.4, None, None]],
        },
    },
}  # fmt: skip


def bench(**options: Any) -> PositionEncodings:
    given = {
        "encodings": ["sinusoidal", "learned", "t5"],
        "bias": {"learned": TABLE, "t5": lambda i, j: -(i - j).clamp(0, 20).float()},
        "race": RACE,
    }
    return PositionEncodings(**(given | options))


@pytest.fixture
def lab(page: Any, show: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")
    return show(bench())


def numbers(page: Any) -> Any:
    return page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[type="range"][data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def expect(page: Any, one: PositionEncodings) -> None:
    """Rows, band and half-way distance on the page are those of the library."""
    found, right = numbers(page), one.numbers()
    for ours, theirs in zip(right["rows"], found["rows"], strict=True):
        assert theirs == pytest.approx(ours, rel=1e-5, abs=1e-9)
    assert found["spread"] == pytest.approx(right["spread"], abs=1e-9)
    assert found["half"] == right["half"]


def test_the_loss_beyond_the_training_length_is_drawn_first(lab: Any) -> None:
    readout = lab.locator(".tfx-readout", has_text="loss at 256")
    assert readout.locator("dd").inner_text() == "?"
    assert "2.90" not in lab.locator(".tfx").inner_text()
    lab.get_by_label("the curve that you expect").press("ArrowUp")
    lab.get_by_role("button", name="that is my curve").click()
    lab.get_by_text("With sinusoidal the loss is 2.05 at 64 tokens and 2.90 at 256.").wait_for()
    readout.locator("dd", has_text="2.90").wait_for()
    lab.locator(".tfx-plane .tfx-marks", has_text="you").wait_for()


def test_what_the_curve_of_another_query_does_is_said_first(show: Any) -> None:
    page = show(bench(chosen="learned"))  # no loss beyond its table: nothing to draw
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="it keeps its shape").click()
    page.get_by_text("you said: it keeps its shape; it is: it changes shape").wait_for()
    page.get_by_text("learned: query 20 and key 4, 16 apart").wait_for()
    expect(page, bench(chosen="learned", row=20, column=4))


def test_what_is_moved_has_the_librarys_numbers(lab: Any) -> None:
    lab.get_by_role("button", name="just show me").click()
    expect(lab, bench())
    assert numbers(lab)["spread"] < 1e-6  # sinusoids: the same row everywhere
    slide(lab, "row", 100)
    expect(lab, bench(row=100))  # the table ends at 64: a row without numbers
    assert numbers(lab)["rows"][1] == []
    slide(lab, "d", 1)  # the place in the list: 8
    slide(lab, "base", 2)
    slide(lab, "length", 4)
    expect(lab, bench(row=100, d=8, base=100.0, length=256))
    lab.locator('select[data-key="chosen"]').select_option("learned")
    slide(lab, "row", 7)
    expect(lab, bench(row=7, d=8, base=100.0, length=256, chosen="learned"))
    assert numbers(lab)["spread"] > 0.5
    lab.get_by_text("learned: query 7 and key 24, 17 apart").wait_for()
    lab.get_by_text("loss 2.05 at 64, none beyond the table at 256").wait_for()
    lab.get_by_text("measured loss, nats per character").wait_for()
    lab.locator('label:has-text("recall")').click()
    lab.get_by_text("measured loss, nats per symbol").wait_for()
    lab.get_by_text("loss 0.40 at 64, none beyond the table at 256").wait_for()


def test_two_are_drawn_and_the_rival_is_never_the_chosen_one(lab: Any) -> None:
    titles = lab.locator(".tfx-grid").locator("..").locator(".tfx-title")
    assert titles.all_inner_texts() == [
        "sinusoidal: violet above 0, grey below",
        "learned, the rival",
    ]
    lab.locator('select[data-key="rival"]').select_option("t5")
    lab.get_by_text("T5 bias, the rival").wait_for()
    lab.locator('select[data-key="chosen"]').select_option("t5")
    lab.get_by_text("sinusoidal, the rival").wait_for()


def test_keys_move_the_pair_in_both_pictures(lab: Any) -> None:
    lab.get_by_role("button", name="just show me").click()
    rival = lab.locator('svg[aria-label^="learned"]')
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        rival.press(key)
    lab.get_by_text("sinusoidal: query 41 and key 26, 15 apart").wait_for()
    lab.get_by_role("button", name="reset").click()
    lab.get_by_text("sinusoidal: query 40 and key 24, 16 apart").wait_for()
    lab.locator(".tfx-plane .tfx-handle").first.press("ArrowRight")
    lab.get_by_text("sinusoidal: query 40 and key 25, 15 apart").wait_for()


def test_copied_python_names_what_was_given(lab: Any) -> None:
    code = lab.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.python()")
    bias = {"learned": TABLE, "t5": lambda i, j: -(i - j).clamp(0, 20).float()}
    code = code.replace('bias={"t5": …}', "bias=bias")
    again = eval(code, {"PositionEncodings": PositionEncodings, "bias": bias})
    assert (again.row, again.base, again.encodings) == (40, 10_000.0, bench().encodings)


def test_one_to_four_encodings_fit(show: Any) -> None:
    names = ["none", "sinusoidal", "learned", "t5"]
    fits(show, [bench(encodings=names[:n]) for n in (1, 2, 3, 4)])


def test_without_a_race_there_is_no_loss() -> None:
    race = {"tasks": {}, "lengths": [], "train_length": 64, "unit": ""}
    assert PositionEncodings(["none", "rotary"], race=race).race["tasks"] == {}
    assert bench().html() == bench().html()  # nothing of this run in the page


def test_python_side() -> None:
    one = bench(length=32)
    torch.testing.assert_close(one.matrix("none"), torch.zeros(32, 32, dtype=torch.float64))
    torch.testing.assert_close(one.matrix("sinusoidal"), one.matrix("rotary"))
    assert one.matrix("t5")[25, 0].item() == one.matrix("t5")[31, 2].item() == -1.0
    table = TABLE[:32, :32].double() / TABLE.abs().max()
    torch.testing.assert_close(one.matrix("learned"), table, atol=0.006, rtol=0)
    assert bench(length=128).matrix("learned")[64:].isnan().all()
    assert set(one.bias["t5"]) == {"offset", "values"} and one.bias["learned"]["side"] == 64


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"encodings": ["sinusoidal", "sinusoidal"]}, "one to four different names"),
        ({"encodings": ["rotation"]}, "choose from none, sinusoidal"),
        ({"encodings": ["shaw"]}, r"bias=\{'shaw'"),
        ({"chosen": "shaw"}, "chosen = 'shaw'"),
        ({"rival": "shaw"}, "rival = 'shaw'"),
        ({"length": 100}, "length = 100"),
        ({"d": 7}, "d = 7"),
        ({"base": 3.0}, r"base = 3\.0"),
        ({"row": 256}, "row = 256"),
        ({"column": -1}, "column = -1"),
        ({"task": "chess"}, "task = 'chess'"),
        ({"encodings": ["t5"], "bias": {"t5": torch.zeros(3, 4)}}, r"shape \(3, 4\)"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bench(**wrong)
