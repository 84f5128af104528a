"""One PDF of the course: nothing in it leads out of it, and names stay apart."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import print_book
import pytest
from book.conftest import ROOT, Site
from chrome import MISSING, find

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "scripts/**",
    "chapters/basics/attention.md",
    "book/*.md",
)


@pytest.mark.usefixtures("whole_book")
def test_links_lead_inside_and_names_are_used_once(site: Site) -> None:
    names = print_book.pages((ROOT / "_toc.yml").read_text("utf-8"))
    assert "chapters/basics/attention" in names and "book/progress" not in names
    whole = print_book.assembled(site.folder, names)
    text = re.sub(r"<script.*?</script>", "", whole, flags=re.S)
    ids = Counter(re.findall(r'<[^>]*? id="([^"]+)"', text))
    assert [name for name, count in ids.items() if count > 1] == []
    inside = set(re.findall(r' href="#([^"]+)"', text))
    assert len(inside) > 500 and inside <= set(ids), sorted(inside - set(ids))[:10]
    assert set(re.findall(r"url\(#([^)&]+)\)", text)) <= set(ids)
    files = [found for found in re.findall(r' src="([^"]+)"', text) if "//" not in found]
    for file in files:
        assert file.startswith("data:") or (site.folder / file.partition("?")[0]).exists(), file
    leads = set(re.findall(r'<a\b[^>]*? href="([^"]*)"', text))
    assert {to for to in leads if not re.match(r"#|https?:|mailto:", to)} == set()


@pytest.mark.usefixtures("whole_book")
def test_it_is_printed_with_an_outline_and_offered(site: Site, tmp_path: Path) -> None:
    browser = find()
    assert browser, MISSING
    with ThreadPoolExecutor() as other:  # this one has a browser already
        file = other.submit(print_book.printed, site.folder, ["book/surveys"], browser).result()
    try:
        made = file.read_bytes()
        assert made.startswith(b"%PDF") and b"/Outlines" in made and b"file:" not in made
    finally:
        file.unlink()
    (tmp_path / "book").mkdir()
    for page in ("index.html", "book/index.html"):
        (tmp_path / page).write_text((site.folder / page).read_text("utf-8"), "utf-8")
    for size in (11, 12):  # again, after another build
        print_book.offered(tmp_path, size)
    for page, link in (("index.html", "tfviz.pdf"), ("book/index.html", "../tfviz.pdf")):
        text = (tmp_path / page).read_text("utf-8")
        assert re.findall(r'<p class="tf-pdf"><a href="(.*?)">.*?</a>, (\d+) MB', text) == [
            (link, "12")
        ]
