"""What the prepared sessions say is what the library counts, and what they hand out exists."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tfviz import patterns
from tfviz.explorers import ALL, Explorer
from tfviz_lessons.outline import outline

ROOT = Path(__file__).parents[2]
RESTS_ON = ("book/sessions.md", "chapters/**/*.md", "book/**.md")
PAGE = ROOT / "book/sessions.md"
TEXT = PAGE.read_text("utf-8")
SHOWN = {
    box.argument: json.loads(box.body) for box in outline(TEXT).boxes if box.name == "explorer"
}


def shown(name: str, **others: Any) -> Explorer:
    return ALL[name](**{**SHOWN[name], **others})


def test_the_dictionary_becomes_a_lookup() -> None:
    even, sharp = (shown("soft_dictionary", beta=b).numbers()["weights"] for b in (0, 10))
    assert even == [0.25] * 4 and f"{sharp[0]:.0%}" == "88%" and "east has 88 %" in TEXT


def test_it_attends_most_to_cat() -> None:
    row = shown("attention_steps").numbers()["scores"][4]
    words = SHOWN["attention_steps"]["words"]
    assert words[4] == "it" and words[row.index(max(row))] == "cat"
    assert f"dot product {max(row):g} is" in TEXT


def test_a_token_of_the_model_takes_128_kib() -> None:
    one = shown("cache_budget", L=8192, batch=1, b=2)
    kept = one.numbers()
    assert kept["own"] == 8192 * 131_072 == 2**30 and "131,072 bytes = 128 KiB" in TEXT
    assert kept["mha"] == 4 * 2**30 and "it would be 4 GiB" in TEXT


def test_two_kv_heads_serve_four_queries_each() -> None:
    assert shown("grouped_query_heads", h_kv=2).numbers()["reads"] == [0] * 4 + [1] * 4


def test_the_stride_with_the_fewest_pairs_is_six() -> None:
    pairs = shown("strided_pattern").numbers()["pairs"]
    assert 1 + pairs.index(min(pairs)) == 6 and f"Six, with {min(pairs)} pairs" in TEXT
    assert f"full causal attention has {patterns.causal().cost(64).pairs:,}" in TEXT
    mask = patterns.strided(stride=8).mask(64)
    assert mask[63, 61] and mask[61, 5] and not mask[63, 5]


def test_six_keys_are_enough_for_two_layers() -> None:
    found = shown("pattern_search").numbers()["found"]
    assert min(keys for keys, hops, *_ in found if hops == 2) == 6
    assert min(hops for keys, hops, *_ in found if keys <= 8) == 2, "nobody gets down to one layer"


@pytest.mark.parametrize("items", re.findall(r'ITEMS="([^"]+)"', TEXT))
def test_what_is_handed_out_exists(items: str) -> None:
    lessons = "".join(x.read_text("utf-8") for x in sorted((ROOT / "chapters").rglob("*.md")))
    assert all(f":label: {item}\n" in lessons for item in items.split())


def test_each_session_takes_75_minutes_and_belongs_to_a_path() -> None:
    sessions = outline(TEXT).parts
    assert [part.label for part in sessions] == [
        "session-attention",
        "session-cache",
        "session-patterns",
    ]
    for part, path in zip(
        re.split(r"^## ", TEXT, flags=re.M)[1:], ("afternoon", "week", "term"), strict=True
    ):
        assert re.search(rf"\(paths\.md#an?-{path}\)", part)
        spans = [(int(a), int(b)) for a, b in re.findall(r"^\| (\d+)–(\d+) \|", part, re.M)]
        assert spans[0][0] == 0 and spans[-1][1] == 75
        assert all(a[1] == b[0] for a, b in pairwise(spans))
