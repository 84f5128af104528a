"""The search: its index holds every section with its text, and its answers lead there."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from book.conftest import Site
from book_search import symbols

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "book/*.md",
    "chapters/basics/*.md",
)


@pytest.fixture(scope="module")
def pages(site: Site) -> dict[str, list[list[str]]]:
    text = (site.folder / "_static/search.js").read_text("utf-8")
    found = json.loads(text.removeprefix("window.tfvizSearch = ").removesuffix(";\n"))
    return {
        name: [["", title, "", sections[0][3]], *sections[1:]] for name, title, sections in found
    }


@pytest.mark.usefixtures("whole_book")
def test_every_entry_has_a_place_that_the_page_has(site: Site, pages: Any) -> None:
    for name, entries in pages.items():
        page = (site.folder / f"{name}.html").read_text("utf-8")
        for anchor, title, *_ in entries:
            assert title and (not anchor or f'id="{anchor}"' in page), f"{name}: {anchor} {title!r}"
    assert sum(map(len, pages.values())) > 300


def test_words_terms_rows_and_symbols_are_in_it(pages: Any) -> None:
    glossary = {title: text for _, title, _, text, *_ in pages["book/glossary"]}
    assert "best beginnings" in glossary["beam search"]
    rows = {anchor: title for anchor, title, *_ in pages["book/atlas"]}
    assert rows["atlas-multi_head_attention"] == "Multi-head attention"
    attention = " ".join(place[3] for place in pages["chapters/basics/attention"])
    assert "β" in attention and "softmax" in attention and "\\" not in attention
    places = pages["chapters/basics/attention"]
    around = {title.split(":")[0]: above for _, title, above, *_ in places}
    assert around["Derive it"] and around["Derive it"].split(":")[0] in around


@pytest.mark.parametrize(
    ("latex", "line"),
    [
        (r"\mathcal O(L\sqrt{L}\,d_h)", "O(L√L dₕ)"),
        (r"\softmax\!\big(\frac{\q\K^\top}{\sqrt{d_h}}\big)", "softmax (qKᵀ/√dₕ)"),
        (r"\beta_{ij}\le L^2", "βᵢⱼ≤ L²"),
        (r"\sum_{i=1}^{L} e^{-\lambda x}", "∑ᵢ₌₁ᴸ e^(-λx)"),
        (r"W_Q^{(h)}+d_{\mathrm{ff}}", "W_Q^(h)+d_ff"),
        (r"O(L\log L)", "O(L log L)"),
        (r"\tfrac12", "1/2"),
    ],
)
def test_a_formula_is_a_line_that_can_be_read(latex: str, line: str) -> None:
    assert symbols(latex) == line


def test_the_search_shows_no_table_of_costs(pages: Any) -> None:
    costs = r"\b(?:time|memory) (?:O|Θ)\("
    said = [
        text for name in ("book/atlas", "chapters/basics/attention") for *_, text in pages[name]
    ]
    assert not [text for text in said if re.search(costs, str(text), re.I)]


@pytest.mark.parametrize("words", ["softmax", "d_k", "linear", "β"])
def test_what_is_found_is_shown_in_whole_words(page: Any, site: Site, words: str) -> None:
    page.goto(site.url("index"))
    page.keyboard.press("/")
    page.get_by_role("searchbox", name="Search for").fill(words)
    page.locator(".tf-search-results a").first.wait_for()
    index = page.evaluate("window.tfvizSearch.flatMap(([, , places]) => places.map((it) => it[3]))")
    known = {word for text in index for word in text.split()}
    for snippet in page.locator(".tf-search-results small").all_inner_texts():
        assert {*snippet.split()} <= known | {"…"}


@pytest.mark.usefixtures("whole_book")
def test_a_reader_finds_and_goes(page: Any, site: Site) -> None:
    page.goto(site.url("book/notation"))
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name="Search for")
    results = page.locator(".tf-search-results a")
    field.fill("bits per character")
    results.first.wait_for()
    assert "Glossary" in results.first.inner_text() and "One nat" in results.first.inner_text()
    field.fill("β")
    mark = "document.querySelector('.tf-search-results mark')?.textContent"
    page.wait_for_function(f"{mark} === 'β'")
    field.fill("xyzzyplugh")
    page.wait_for_function("!document.querySelector('.tf-search-results a')")
    assert page.locator(".tf-search-count").inner_text() == "Nothing found."
    field.fill("multi-head side by side")
    results.first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/chapters/basics/multi_head.html*")


# --- addresses -----------------------------------------------------------------------------------

# what a mail program, a chat or somebody's hand makes of a link: no UTF-8, cut off, nobody's state
ADDRESSES = ["#%", "#%E9", "#a%2", "?q=%&x=%E9", "#strided_pattern=%", "#strided_pattern-2=abc"]
ADDRESSES += ["#attention_steps=e30", "#atlas?q=%25", "#claim-%", "#%00", "#=%E9&%"]
OPENED = ["search", "book/atlas", "book/claims", "book/glossary", "book/progress", "book/self_test"]
OPENED += ["book/your_own_mask", "chapters/sparse/factorized", "chapters/sparse/hashing"]


@pytest.fixture
def troubles(page: Any) -> list[str]:
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda said: found.append(said.text) if said.type == "error" else None)
    return found


def _is_there(site: Site, name: str) -> None:
    if not (site.folder / f"{name}.html").exists():
        pytest.skip("asks the whole book: TFVIZ_ALL=1")


@pytest.mark.parametrize("name", OPENED)
def test_no_address_breaks_a_page(name: str, page: Any, site: Site, troubles: list[str]) -> None:
    _is_there(site, name)
    for address in ADDRESSES:
        page.goto("about:blank")
        page.goto(f"{site.url(name)}{address}")
        page.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
        assert not troubles, address


def test_a_folder_named_in_another_encoding_opens(
    page: Any, site: Site, troubles: list[str], tmp_path: Path
) -> None:
    """Its address is %E9, which is no UTF-8."""
    _is_there(site, "book/progress")
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.symlink(os.fsencode(site.folder), folder)
    page.goto(f"file://{quote_from_bytes(folder)}/book/progress.html")
    assert page.evaluate("() => Boolean(window.tfvizProgress)") and not troubles
