"""The hash wheel in a real browser: what the cut costs, and that readouts speak of their step."""

from __future__ import annotations

from typing import Any

from tfviz.explorers import LshBuckets


def shown(page: Any, label: str) -> str:
    return str(page.locator(".tfx-readout", has_text=label).locator("dd").inner_text())


def test_how_many_it_meets_after_the_cut_is_said_first(show: Any) -> None:
    page = show(LshBuckets())
    assert shown(page, "query 5 meets") == "6, 9, 13"
    assert shown(page, "pairs that meet") == "20.8 %"
    page.get_by_role("button", name="all 3").click()
    page.get_by_text("✗ you said: all 3; it is: none. Its chunk holds 3, 10 and 15").wait_for()
    page.get_by_text("in chunks: 4 buckets, 1 round, 16.7 % of the pairs").wait_for()
    assert shown(page, "query 5 meets") == "none"


def test_a_sector_is_drawn_for_each_bucket_and_a_dot_chooses_the_query(show: Any) -> None:
    page = show(LshBuckets(stage=3, b=8))
    assert page.locator(".tfx-mark-shape").count() == 8 - 2  # the short arrow has none
    before = page.locator(".tfx-mark-points path").first
    box = before.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.get_by_text("violet: the bucket of query 0").wait_for()


def test_before_the_cut_the_shares_are_those_of_buckets() -> None:
    cut = LshBuckets(stage=3).numbers()
    buckets = cut["buckets"][0]
    pairs = sum(a == b for i, a in enumerate(buckets) for j, b in enumerate(buckets) if i != j)
    assert round(100 * pairs / 240, 1) == 20.8 and cut["pairs"] < pairs / 240
