"""The cache budget in a real browser: the library's bytes, the slide, keys, phone, themes."""

from __future__ import annotations

from typing import Any

import pytest

from tfviz.basics.cache_cost import cache_bytes
from tfviz.basics.public_models import MODELS
from tfviz.explorers import CacheBudget


def settle(page: Any) -> None:
    page.evaluate("() => new Promise(requestAnimationFrame)")


def shown(page: Any) -> dict[str, int]:
    settle(page)
    names = ["mha", "own", "mqa", "weights", "slide"]
    rows = page.locator(".cb-bar")
    return {
        name: int(float(rows.nth(n).get_attribute("data-bytes")))
        for n, name in enumerate(names)
        if rows.nth(n).is_visible()
    }


def slide(page: Any, key: str, place: int) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, x) => { node.value = x; node.dispatchEvent(new Event('input')); }", place
    )


def expect(
    page: Any, name: str, N: int, h: int, h_kv: int, d_head: int, L: int, b: int, batch: int
) -> None:
    found = shown(page)
    for row, heads in (("mha", h), ("own", h_kv), ("mqa", 1)):
        assert found[row] == cache_bytes(L, N, heads, d_head, b, batch)
    assert found.get("weights") == (MODELS[name].weights * b if name else None)


def test_the_page_shows_the_bytes_of_the_library(show: Any) -> None:
    page = show(CacheBudget())
    gemma = {
        "name": "Gemma 2 9B",
        "N": 42,
        "h": 16,
        "h_kv": 8,
        "d_head": 256,
        "L": 4096,
        "b": 2,
        "batch": 1,
    }
    expect(page, **gemma)
    page.get_by_text("keys and values take 1.31 GiB").wait_for()
    slide(page, "L", 5)  # 2^(7 + 5)
    slide(page, "batch", 3)
    expect(page, **(gemma | {"batch": 8}))
    slide(page, "h_kv", 0)
    expect(page, **(gemma | {"batch": 8, "h_kv": 1}))
    page.get_by_text("4", exact=True).click()
    expect(page, **(gemma | {"batch": 8, "h_kv": 1, "b": 4}))
    page.locator('select[data-key="model"]').select_option("Llama 2 70B")
    llama = {
        "name": "Llama 2 70B",
        "N": 80,
        "h": 64,
        "h_kv": 8,
        "d_head": 128,
        "L": 4096,
        "b": 4,
        "batch": 8,
    }
    expect(page, **llama)
    slide(page, "h", 12)  # 8 heads share a pair, which 12 cannot: all get their own
    expect(page, **(llama | {"name": "", "h": 12, "h_kv": 12}))
    assert page.locator('select[data-key="model"]').input_value() == ""
    page.locator('input[data-key="N"]').focus()
    page.keyboard.press("ArrowRight")
    expect(page, **(llama | {"name": "", "h": 12, "h_kv": 12, "N": 81}))
    page.get_by_role("button", name="reset").click()
    expect(page, **gemma)


def test_the_slide_and_what_is_copied(show: Any) -> None:
    page = show(CacheBudget(b=4, h_kv=16))
    page.get_by_label("formula of a slide").check()
    found = shown(page)
    assert found["slide"] == 39_460_012_032 == 7 * found["own"]
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.get_by_role("button", name="copy Python").click()
    page.wait_for_function("window.copied")
    again = eval(page.evaluate("window.copied"), {"CacheBudget": CacheBudget})
    assert again.state == CacheBudget(b=4, h_kv=16, slide=True).state


def test_fits_a_phone_in_both_themes(show: Any) -> None:
    for width in (390, 1280):
        page = show(CacheBudget(slide=True), CacheBudget("Falcon 7B"), width=width)
        for theme in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        for n in range(2):
            inner = page.locator(".tfx").nth(n).bounding_box()["height"]
            outer = page.locator(".tfviz-explorer").nth(n).bounding_box()["height"]
            assert inner <= outer + 1, "higher than the room the page keeps for it"


def test_python_side() -> None:
    one = CacheBudget("Llama 3 8B", L=1000, batch=3, b=1, h_kv=4)
    assert one.bytes == cache_bytes(1000, 32, 4, 128, 1, 3)
    assert one.shape is MODELS["Llama 3 8B"] and CacheBudget(N=3).shape is None
    assert eval(repr(one), {"CacheBudget": CacheBudget}).state == one.state


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"model": "GPT-9"}, "GPT-9"),
        ({"h_kv": 3}, "h_kv = 3"),
        ({"b": 3}, "b = 3"),
        ({"L": 0}, "L = 0"),
        ({"batch": 1000}, "batch = 1000"),
        ({"d": 4}, "unexpected keyword argument 'd'"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        CacheBudget(**wrong)
