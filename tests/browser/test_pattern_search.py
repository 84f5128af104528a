"""What is special about the pattern search: a found pattern goes to the Sparse Lab of the page."""

from __future__ import annotations

from typing import Any

from browser.explorer_site import served, write_site

from tfviz import patterns as P
from tfviz.explorers import PatternSearch, SparseLab

RESTS_ON = (
    "tfviz/patterns/**",
    "tests/browser/**",
    "tests/*.py",
    "tfviz/explorers/**",
    "book/assets/**",
)


def test_what_is_found_is_one_click_from_the_lab(browser: Any, tmp_path: Any) -> None:
    one = PatternSearch(max_keys=6, max_hops=2, L=16, block=4)
    write_site(tmp_path, one.html(), SparseLab(L=32).html())
    page = browser.new_page()
    with served(tmp_path) as url:
        page.goto(f"{url}index.html")
        search, lab = (
            page.locator(f"[data-explorer={n}]") for n in ("pattern_search", "sparse_lab")
        )
        for host in (search, lab):
            host.scroll_into_view_if_needed()
            host.and_(page.locator("[data-ready]")).wait_for()
        search.get_by_role("button", name="just show me").click()
        search.evaluate("(e) => e.dispatchEvent(new CustomEvent('tfviz:show', {detail: {}}))")
        search.evaluate("(e) => e.tfviz.paint()")
        best = P.search(16, 6, 2, causal=True, block=4).best()
        assert best is not None
        assert search.evaluate("(e) => e.tfviz.numbers().best") == list(best.numbers)
        search.get_by_role("button", name="show it in the Sparse Lab").click()
        page.wait_for_function(
            "document.querySelector('[data-explorer=sparse_lab]').tfviz.python().includes('L=16')"
        )
        said = lab.evaluate("(e) => e.tfviz.python()")
        names: dict[str, Any] = {}
        exec(said.rsplit("\n", 1)[0], names)  # what "copy Python" gives
        shown = names["lab"]
        assert shown.causal and (shown.shown("left"), shown.shown("right")) == tuple(
            p & P.causal() for p in best.stack
        )
        assert [p.mask(16).tolist() for p in shown.stacked] == [
            p.mask(16).tolist() for p in best.stack
        ]
    page.close()
