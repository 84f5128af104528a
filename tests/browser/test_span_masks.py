"""Spans in a real browser: the questions, the ends of the ramp as handles, a closing bracket."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tfviz.adaptive.adaptive_span import ramp
from tfviz.explorers import DynamicSpans, SpanMasks
from tfviz.explorers.adaptive.span_masks import row


def test_only_the_ramp_moves_z(show: Any) -> None:
    page = show(SpanMasks())
    page.get_by_role("textbox").fill("32")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("you said: 32 keys; it is: 6 keys").wait_for()
    page.locator('.tfx-handle[data-name="R"]').press("Home")
    page.get_by_text("With z = 8.5 and R = 1, 10 of 32 keys pass").wait_for()
    page.locator('.tfx-handle[data-name="z"]').press("End")
    page.get_by_text("With z = 24 and R = 1, 25 of 32 keys pass").wait_for()


def test_a_closing_bracket_asks_for_more(show: Any) -> None:
    page = show(DynamicSpans())
    page.get_by_role("button", name="]", exact=True).click()
    page.get_by_text("So it is").wait_for()
    page.get_by_text("its opening bracket is").wait_for()


def test_python_side() -> None:
    n = SpanMasks(z=4, R=4).numbers()
    assert [x for x, p in enumerate(n["pull"]) if p] == [5, 6, 7]
    assert n["keys"] == [32, 8, 9]
    assert sum(n["ramp"]) == pytest.approx(1)
    z = torch.tensor(8.5, dtype=torch.float64, requires_grad=True)
    s, v = (torch.tensor(row()[name], dtype=torch.float64) for name in ("s", "v"))
    loud = ramp(torch.arange(32), z, 6) * s.exp()
    slope = torch.autograd.grad((loud * v).sum() / loud.sum(), z)[0].item()
    assert sum(SpanMasks().numbers()["pull"]) == pytest.approx(slope)
    one = DynamicSpans().numbers()
    assert one["back"] == 0 or one["z"] + 4 > one["back"]
