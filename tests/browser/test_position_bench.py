"""The position bench in a real browser: the library's numbers, keys, phone, themes, the link."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from explorer_site import fits

from tfviz.explorers import PositionBench

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


def bench(**options: Any) -> PositionBench:
    given = {
        "encodings": ["sinusoidal", "learned", "t5"],
        "bias": {"learned": TABLE, "t5": lambda i, j: -(i - j).clamp(0, 20).float()},
        "race": RACE,
    }
    return PositionBench(**(given | options))


@pytest.fixture
def lab(page: Any, show: Any) -> Any:
    page.emulate_media(reduced_motion="reduce")
    return show(bench())


def shown(page: Any) -> dict[str, Any]:
    page.evaluate("() => new Promise(requestAnimationFrame)")
    return json.loads(page.locator(".tfx").get_attribute("data-shown"))


def slide(page: Any, key: str, value: float) -> None:
    page.locator(f'input[type="range"][data-key="{key}"]').evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


def expect(page: Any, one: PositionBench) -> None:
    """Rows, band and half-way distance on the page are those of the library."""
    found, i = shown(page), min(one.row, one.length - 1)
    for name in one.encodings:
        row = torch.tensor([torch.nan if x is None else x for x in found["row"][name]])
        expected = one.matrix(name)[i].float()
        torch.testing.assert_close(row, expected, equal_nan=True, atol=2e-5, rtol=1e-4)
    M = one.matrix(one.chosen)
    spreads = [0.0]
    for offset in range(1 - one.length, one.length):
        seen = M.diagonal(offset)
        seen = seen[~seen.isnan()]
        spreads += [(seen.max() - seen.min()).item()] if len(seen) else []
    assert found["spread"] == pytest.approx(max(spreads), abs=2e-5)


def test_the_page_shows_the_numbers_of_the_library(lab: Any) -> None:
    expect(lab, bench())
    assert shown(lab)["spread"] < 1e-6  # sinusoids: the same row everywhere
    slide(lab, "row", 100)
    expect(lab, bench(row=100))  # the table ends at 64: a row without numbers
    assert set(shown(lab)["row"]["learned"]) == {None}
    slide(lab, "d", 1)  # the place in the list: 8
    slide(lab, "base", 2)
    expect(lab, bench(row=100, d=8, base=100.0))
    slide(lab, "length", 4)
    expect(lab, bench(row=100, d=8, base=100.0, length=256))
    lab.get_by_role("button", name="learned").click()
    slide(lab, "row", 7)
    one = bench(row=7, d=8, base=100.0, length=256, chosen="learned")
    expect(lab, one)
    assert shown(lab)["spread"] > 0.5
    lab.get_by_text("learned: query 7 and key 24, 17 apart").wait_for()
    lab.get_by_text("loss 2.05 at 64, none beyond the table at 256").wait_for()
    lab.get_by_text("measured: nats per character").wait_for()
    lab.locator('label:has-text("recall")').click()
    lab.get_by_text("measured: nats per symbol").wait_for()
    lab.get_by_text("loss 0.40 at 64, none beyond the table at 256").wait_for()


def test_half_of_the_peak_is_found(lab: Any) -> None:
    curve = bench().matrix("sinusoidal")[0]
    first = int((curve < 0.5).nonzero()[0])
    slide(lab, "row", 100)
    assert shown(lab)["half"] == first


def test_keys_move_the_pair_and_a_click_chooses(lab: Any) -> None:
    canvas = lab.locator(".tfx-matrix").nth(2)
    canvas.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        lab.keyboard.press(key)
    found = shown(lab)
    assert found["chosen"] == "t5"
    lab.get_by_text("T5 bias: query").wait_for()
    lab.get_by_role("button", name="reset").click()
    assert shown(lab)["chosen"] == "sinusoidal"
    lab.get_by_text("sinusoidal: query 40 and key 24, 16 apart").wait_for()


def test_link_and_python_restore_the_state(lab: Any) -> None:
    lab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    slide(lab, "row", 12)
    slide(lab, "base", 1)
    lab.get_by_role("button", name="copy link").click()
    lab.wait_for_function("window.copied")
    link = lab.evaluate("window.copied")
    lab.goto("about:blank")
    lab.goto(link)
    lab.locator(".tfviz-explorer[data-ready]").wait_for()
    expect(lab, bench(row=12, base=10.0))
    lab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    lab.get_by_role("button", name="copy Python").click()
    lab.wait_for_function("window.copied")
    code = lab.evaluate("window.copied").replace('bias={"t5": …}', "bias=bias")
    bias = {"learned": TABLE, "t5": lambda i, j: -(i - j).clamp(0, 20).float()}
    again = eval(code, {"PositionBench": PositionBench, "bias": bias})
    assert (again.row, again.base, again.encodings) == (12, 10.0, bench().encodings)


def test_fits_a_phone_and_a_desk(show: Any) -> None:
    four = ["none", "sinusoidal", "learned", "t5"]
    fits(show, [bench(encodings=four), bench(encodings=four[1:3])])


def test_without_a_race_there_is_no_loss() -> None:
    assert PositionBench(["none", "rotary"], race={"tasks": {}, "lengths": [], "train_length": 64,
                         "unit": ""}).race["tasks"] == {}  # fmt: skip
    one = PositionBench(["none"], race=RACE | {"unit": "nats"})
    assert one.race["unit"] == {"text": "nats", "recall": "nats"}
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
