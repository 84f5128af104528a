"""The cache budget in a real browser: the library's bytes, the slide, keys, phone, themes."""

from __future__ import annotations

from typing import Any

import pytest

from tfviz import anatomy
from tfviz.basics.cache_cost import cache_bytes
from tfviz.basics.public_models import MODELS
from tfviz.explorers import CacheBudget


def numbers(page: Any) -> Any:
    return page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")


def slide(page: Any, key: str, place: int) -> None:
    page.locator(f'input[data-key="{key}"]').evaluate(
        "(node, x) => { node.value = x; node.dispatchEvent(new Event('input')); }", place
    )


def expect(page: Any, **sizes: Any) -> None:
    """The page has these sizes, and the library's bytes for them."""
    state = page.locator(".tfviz-explorer").evaluate(
        "(node, keys) => keys.map((key) => node.tfvizModel.get(key))", list(sizes)
    )
    assert state == list(sizes.values())
    assert numbers(page) == CacheBudget(**sizes).numbers()


@pytest.fixture
def lab(show: Any) -> Any:
    page = show(CacheBudget())
    page.get_by_role("button", name="just show me").click()
    page.get_by_role("button", name="reset").click()
    page.locator(".tfx-fold summary").click()
    return page


def test_the_cache_is_filled_until_it_passes_the_weights(show: Any) -> None:
    page = show(CacheBudget())
    page.get_by_text("keys and values take 1.31 GiB, 0.0762 times the weights").wait_for()
    guess = page.get_by_role("slider", name="How many texts")
    guess.press("End")
    page.get_by_role("button", name="that is my answer").click()
    page.get_by_text("✗ you said: 40 texts; it is: 14 texts").wait_for()
    page.get_by_text("keys and values take 18.4 GiB, 1.07 times the weights").wait_for()
    assert page.locator(".tfx-mark-shape").count() == 1 + 14  # the weights, and a piece a text


def test_models_and_sizes_of_ones_own(lab: Any) -> None:
    gemma = {"model": "Gemma 2 9B", "N": 42, "h": 16, "h_kv": 8, "d_head": 256, "b": 2}
    expect(lab, **gemma)
    lab.get_by_text("keys and values take 1.31 GiB").wait_for()
    slide(lab, "h_kv", 0)
    expect(lab, **(gemma | {"h_kv": 1}))
    lab.locator(".tfx-segments").get_by_text("4", exact=True).click()
    lab.locator('select[data-key="model"]').select_option("Llama 2 70B")
    llama = {"model": "Llama 2 70B", "N": 80, "h": 64, "h_kv": 8, "d_head": 128, "b": 4}
    expect(lab, **llama)
    slide(lab, "h", 12)  # 8 heads share a pair, which 12 cannot: all get their own
    expect(lab, **(llama | {"h": 12, "h_kv": 12}))
    empty = "() => !document.querySelector('select[data-key=model]').value"  # in the next frame
    lab.wait_for_function(empty)
    assert lab.locator(".tfx-table tr", has_text="weights").count() == 0
    lab.locator('input[data-key="N"]').press("ArrowRight")
    expect(lab, **(llama | {"h": 12, "h_kv": 12, "N": 81}))
    lab.get_by_role("button", name="reset").click()
    expect(lab, **gemma)


def test_windows_are_counted_as_long_as_the_sizes_are_the_models_own(lab: Any) -> None:
    gemma = {"model": "Gemma 3 27B (text)", "N": 62, "h": 32, "h_kv": 16, "d_head": 128}
    lab.locator('select[data-key="model"]').select_option("Gemma 3 27B (text)")
    lab.locator('input[data-key="L"]').press("End")
    expect(lab, **gemma, L=131_072)
    assert numbers(lab)["own"] == anatomy.of("gemma-3-27b").cache(131_072)
    lab.get_by_text("In 52 of its 62 layers, L counts as 1\u202f024").wait_for()
    read = lab.locator(".tfx-readouts").inner_text()
    assert "654\u202f075 tokens" in read  # where the cache equals the weights
    slide(lab, "h_kv", 0)
    expect(lab, **(gemma | {"h_kv": 1}), L=131_072)
    lab.locator('input[data-key="N"]').press("ArrowLeft")  # another model, which has no windows
    expect(lab, **(gemma | {"h_kv": 1, "N": 61}), L=131_072)
    assert numbers(lab)["own"] == cache_bytes(131_072, 61, 1, 128)


def test_a_model_without_a_file_is_not_asked_about(show: Any) -> None:
    """Nor one whose weights no number of texts on the slider outgrows."""
    for one in (CacheBudget(N=3), CacheBudget("Falcon 7B")):
        assert show(one).locator(".tfx-ask").count() == 0


def test_the_slide() -> None:
    found = CacheBudget(b=4, h_kv=16).numbers()
    assert found["slide"] == 39_460_012_032 == 7 * found["own"]


def test_python_side() -> None:
    one = CacheBudget("Llama 3 8B", L=1000, batch=3, b=1, h_kv=4)
    assert one.numbers()["own"] == cache_bytes(1000, 32, 4, 128, 1, 3)
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
