"""What a token costs: the page's numbers by hand, its claims, its figures and its questions."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import token_costs as costs

from tfviz import anatomy

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book/what_a_token_costs.md").read_text("utf-8")
RESTS_ON = (
    "tfviz/**",
    "book/what_a_token_costs.md",
    "book/_ext/*.py",
    "book/assets/js/asked.js",
    "tests/*.py",
)
USED = re.findall(r"\{counted\}`([^`]+)`", PAGE)
LLAMA, V3 = anatomy.of("llama-3.1-8b"), anatomy.of("deepseek-v3")
RIDGE = anatomy.CARDS["H100"].ridge


def number(text: str) -> str:
    kind, *words = text.split()
    return costs.NUMBERS[kind](*words)


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", sorted(set(USED)))
def test_each_number_of_the_text_is_counted(asked: str) -> None:
    assert re.search(r"\d", number(asked))


def test_all_that_can_be_asked_for_is_asked_for() -> None:
    assert {words.split()[0] for words in USED} == set(costs.NUMBERS)
    kinds = (("table", costs.TABLES), ("figure", costs.FIGURES), ("ask", costs.ASKED))
    for kind, known in kinds:
        assert re.findall(rf"^```\{{counted-{kind}\}} (\w+)", PAGE, re.M) == list(known)


@pytest.mark.parametrize(
    "asked, by_hand",
    [
        ("ridge H100", "295"),  # 989 / 3.35
        ("cache llama-3.1-8b 8192", "1 GiB"),  # 32 layers, 8 heads, 2 · 128 numbers of 2 bytes
        ("layer-token llama-3.1-8b", "2,048"),  # 8 · 2 · 128
        ("layer-token llama-3.1-8b bytes", "4,096"),
        ("layer-pair llama-3.1-8b", "16,384"),  # 32 · 4 · 128
        ("cache-intensity llama-3.1-8b", "4"),  # 32 / 8
        ("layer-token deepseek-v3", "576"),  # 512 + 64
        ("ordinary deepseek-v3", "32,768"),  # 2 · 128 · 128
        ("saved deepseek-v3", "57"),  # 32,768 / 576 = 56.9
        ("layer-pair deepseek-v3", "278,528"),  # 128 · 2 · (2 · 512 + 64)
        ("cache-intensity deepseek-v3", "242"),  # 278,528 / 1,152 = 241.8
        ("times-absorbed deepseek-v3", "3.4"),  # 1,088 / (128 + 64 + 128)
        ("states qwen3-next-80b", "72 MiB"),  # 36 · 32 · 128 · 128 · 4 bytes
        ("state-intensity qwen3-next-80b", "0.875"),  # 7 operations for 4 bytes read, 4 written
        ("state-tokens qwen3-next-80b", "3,072"),  # 72 MiB / (12 layers · 2 · 2 · 256 · 2 bytes)
        ("touched mixtral-8x7b 2", "3.5"),  # 8 · (1 − (6/8)²)
        ("turning deepseek-v3", "9,400"),  # 295.2 · 256 / 8
    ],
)
def test_a_number_by_hand(asked: str, by_hand: str) -> None:
    assert number(asked) == by_hand
    assert asked in USED


def test_numbers_have_three_digits_and_units_that_suit_them() -> None:
    assert [costs.figures(x) for x in (0.8749, 3.4, 99.94, 99.96, 1234.5)] == [
        *("0.875", "3.4", "99.9", "100", "1,234")
    ]
    sizes = [costs.size(x) for x in (1023, 2048, 1.5 * 2**30, 2**43)]
    assert sizes == ["1,023 bytes", "2 KiB", "1.5 GiB", "8,192 GiB"]
    assert costs.operations(73.2e9) == "73.2 billion" and costs.milliseconds(0.0048) == "4.8 ms"


# --- what the page says of them -------------------------------------------------------------------


def test_reading_is_limited_by_arithmetic_and_writing_by_memory() -> None:
    roofline = LLAMA.roofline("H100", costs.TEXT)
    assert (roofline.prefill.bound, roofline.decode.bound) == ("operations", "bytes")
    assert costs.size(roofline.prefill.bytes) == costs.size(roofline.decode.bytes)
    read = roofline.prefill.operations / costs.TEXT
    assert 1 < roofline.decode.operations / read < 1.25  # hardly more arithmetic


def test_no_number_of_texts_lifts_llama_to_the_ridge() -> None:
    most = costs.most_intensity(LLAMA, costs.TEXT)
    rising = [LLAMA.intensity(costs.TEXT, batch=10**n) for n in range(6)]
    assert all(a < b < most for a, b in pairwise(rising)) and most < RIDGE / 10
    few = costs.outweigh(LLAMA, costs.TEXT)
    caches = [n * LLAMA.cache(costs.TEXT) for n in (few - 1, few)]
    assert caches[0] <= LLAMA.bytes_moved(1).parts["weights"] < caches[1]
    fit = costs.texts_that_fit(LLAMA, "H100", costs.TEXT)
    assert LLAMA.longest(80e9, batch=fit) >= costs.TEXT > LLAMA.longest(80e9, batch=fit + 1)


@pytest.mark.parametrize("model", anatomy.names())
def test_among_ordinary_heads_only_the_sharing_counts(model: str) -> None:
    """2h / h_kv b in every model with one kind of heads, whatever its width, depth and length."""
    a = anatomy.of(model)
    plain = {"full"} == {layer.mixer for layer in a.layers} and "encoder" not in a.fields
    if not plain or len(heads := {*costs.attended(a)}) != 1 or a.fields.get("borrowers"):
        return
    (own,) = heads
    for L in (64, costs.LONG):
        assert costs.cache_intensity(a, L) == pytest.approx(own.queries / own.keys)
        one, many = (a.flops(L, batch=n).parts["pairs"] for n in (1, 7))
        assert many == 7 * one
    assert costs.unshared_bytes(a) == costs.token_bytes(a) * own.queries // own.keys


def test_of_these_models_only_latent_keys_come_near_the_ridge() -> None:
    h, d_c, d_r = 128, 512, 64
    assert costs.cache_intensity(V3) == pytest.approx(h * (2 * d_c + d_r) / (d_c + d_r))
    others = ("llama-2-7b", "llama-3.1-405b", "falcon-7b")
    assert all(costs.cache_intensity(anatomy.of(x)) < RIDGE / 4 for x in others)
    assert costs.cache_intensity(V3) > 0.8 * RIDGE


def test_a_cache_of_full_layers_is_what_a_window_saves() -> None:
    gemma = anatomy.of("gemma-3-27b")
    per_token = costs.token_bytes(gemma)  # before any window is full
    assert costs.if_full(gemma, costs.LONG) == costs.LONG * per_token
    assert costs.if_full(LLAMA, 100) == LLAMA.cache(100)
    assert costs.if_full(anatomy.of("mamba2-2.7b"), costs.LONG) is None


def test_experts_read_no_less_than_their_own_and_no_more_than_all() -> None:
    dense = [costs.weights_intensity(LLAMA, n) for n in (1, 64)]
    assert dense == pytest.approx([1, 64], rel=1e-3)
    assert costs.expert_visits(V3, 64) < 3 and costs.touched(V3, 64) > 0.8 * 256
    few = costs.busy(V3)
    around = [costs.weights_intensity(V3, n) for n in (few - 1, few)]
    assert around[0] < RIDGE <= around[1]
    assert few < V3.roofline("H100").turning_batch  # what all tokens share needs fewer texts
    assert len(V3.layers) - V3.fields["feeds"].count("e") == 3


def test_the_sums_that_are_written_out_are_those_of_the_models() -> None:
    """Where the text shows a sum with its numbers, they are the fields of its model."""
    mixtral, qwen, kimi, oss = (
        anatomy.of(x).fields for x in ("mixtral-8x7b", "qwen3-32b", "kimi-k2", "gpt-oss-120b")
    )
    assert (mixtral["experts"]["count"], mixtral["experts"]["chosen"]) == (8, 2)
    heads = qwen["attention"]
    sizes = qwen["blocks"], heads["heads"], heads["key_heads"], heads["head_width"]
    assert sizes == (64, 64, 8, 128) and r"64\cdot8\cdot2\cdot128\cdot2=262{,}144" in PAGE
    latent = kimi["latent"]
    assert (latent["heads"], latent["note"], latent["turned"]) == (64, 512, 64)
    assert (oss["experts"]["count"], oss["experts"]["chosen"]) == (128, 4)
    assert round((31 / 32) ** 32, 2) == 0.36
    own = costs.attended(LLAMA)[0]
    assert (own.keys, own.queries, own.key_width) == (8, 32, 128)


def test_the_code_of_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    known: dict[str, Any] = {}
    exec(code, known)
    assert known["model"].longest(80e9, batch=4, bits=8) > 0


# --- figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", costs.FIGURES)
def test_a_figure_has_words_for_those_who_do_not_see_it(name: str) -> None:
    figure = costs.FIGURES[name]()
    assert figure.caption and len(figure.caption.split()) < 45
    assert len(figure.panels[0].alt) > 100 and figure.panels[0].narrow


def test_every_model_that_keeps_keys_is_a_dot() -> None:
    known = costs.dots()
    kinds = {name: kind for name, kind, *_ in known}
    assert len(known) == sum(bool(costs.token_bytes(anatomy.of(x))) for x in anatomy.names())
    assert {kinds["Llama 2 7B"], kinds["GPT-3 175B"]} == {"multi-head"}
    assert (kinds["Falcon 7B"], kinds["Llama 3.1 8B"]) == ("multi-query", "grouped")
    assert {kinds["DeepSeek-V3"], kinds["Kimi Linear 48B-A3B"]} == {"latent"}
    assert "Mamba-2 2.7B" not in kinds and "BERT base" not in kinds
    for name, kind, unshared, kept in known:
        assert (kept == unshared) is (kind == "multi-head"), name
    assert set(costs.NAMED) <= set(kinds)


# --- questions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", costs.ASKED)
def test_a_mistake_is_told_from_the_answer_and_from_others(name: str) -> None:
    asked = costs.ASKED[name]()
    wrong = [slip for slip, _ in asked.slips]
    assert len(wrong) >= 4 and all(words.endswith((".", "?")) for _, words in asked.slips)
    assert all(abs(slip - asked.right) > max(asked.near, 0.01 * slip) for slip in wrong)
    assert all(b - a > 0.01 * (a + b) or abs(b - a) > 1 for a, b in pairwise(sorted(wrong)))


def test_right_answers_by_hand() -> None:
    right = {name: ask().right for name, ask in costs.ASKED.items()}
    assert right["cache"] == 64 * 8 * 2 * 128 * 2 / 1024
    assert right["note"] == pytest.approx(64 * 2 * (2 * 512 + 64) / (2 * 576))
    assert right["experts"] == pytest.approx(128 * (1 - (31 / 32) ** 32))


def test_the_page_says_which_mistake_a_number_comes_from(page: Any) -> None:
    box = (
        '<div class="tf-ask" data-ask="token-x" data-is="256" data-near="0.5" '
        "data-slips='[[128, \"That is half of it.\"]]'><p>How many?</p></div>"
        '<div class="tf-ask" data-ask="old" data-is="2" data-near="0.1"><p>And?</p></div>'
    )
    page.set_content(box)
    page.add_script_tag(path=str(ROOT / "book/assets/js/asked.js"))
    said = []
    for n, typed in ((0, "128"), (0, "250"), (0, "1"), (0, "256"), (1, "128"), (1, "2")):
        one = page.locator(".tf-ask").nth(n)
        one.locator("input").fill(typed)
        one.get_by_role("button", name="check").click()
        said.append(one.get_by_role("status").inner_text())
    assert said == [
        "✗ That is half of it.",
        "✗ close, but not near enough",
        "✗ that is not it",
        "✓ so it is",
        "✗ that is not it",
        "✓ so it is",
    ]
