"""Print the built pages as one PDF, with an outline, numbered pages and links that work inside it.

    python scripts/print_book.py [--out FOLDER]

The pages are those in FOLDER/_build/html; beside them is then tfviz.pdf, and the landing page names
it. Explorers are printed as they stand when a page is opened, deeper parts in full. Hints,
solutions and code that a page folds are left out: they are for readers who can unfold them.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from chrome import FLAGS, MISSING, find
from playwright.sync_api import ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
NAME = "tfviz.pdf"
SCALE = 0.85  # letters of 9 points; pictures shrink with them, so that more of them fit on a page
SHEET: ViewportSize = {"width": 755, "height": 1140}  # A4 between its margins / SCALE
PLACE = "<!-- the course as one PDF -->"
FILES = re.compile(r'<link rel="stylesheet"[^>]*>|<script defer src="[^"]*"></script>')
LINK = re.compile(r' (?P<what>href|src)="(?P<to>[^"]*)"')
NAMED = re.compile(r' (?P<what>id|for|aria-labelledby|aria-describedby|headers)="(?P<to>[^"]+)"')
INSIDE = re.compile(r"url\(#")
STYLE = """
<style>
@page { size: A4; margin: 18mm 20mm 20mm; }
article { break-before: page; --tf-measure: 100%; }
article:first-child { break-before: auto; }
article hr, article section { border: 0; }
details:not([data-deeper]), .tf-lesson-links, noscript { display: none !important; }
[data-deeper] > summary { list-style: none; break-after: avoid; }
[data-deeper] > summary::before { display: none !important; }
.tf-deeper > [data-deeper] {
  margin: 1.25rem 0;
  padding-bottom: 0.9rem;
  border: 1px solid var(--tf-line);
  border-radius: 0.5rem;
}
.tf-deeper > [data-deeper] > :not(summary) { margin-inline: 1.1rem; }
.tf-optional > summary { display: none; }
.tf-optional .exercise :is(.admonition-title, .tf-effort) { display: block !important; }
.tfviz-explorer button { display: none !important; }
.tfviz-explorer, figure, .tf-90 { break-inside: avoid; }
caption, thead { break-after: avoid; }
</style>
"""
# A title must not stand alone at the foot of a page: inside of details, a summary may.
UNFOLD = """
for (const fold of document.querySelectorAll("details[data-deeper]")) {
  const box = document.createElement("div");
  box.className = fold.className;
  box.dataset.deeper = "";
  box.append(...fold.childNodes);
  fold.replaceWith(box);
}
"""


def pages(toc: str) -> list[str]:
    """What is printed, in the order of the contents: neither pages for teachers nor those that
    need a browser."""
    names = re.findall(r"^\s*- file: (\S+)", toc, re.M)
    return [name for name in names if not re.search(r"progress|self_test|instructors", name)]


def assembled(site: Path, names: Iterable[str]) -> str:
    """One page of all these: what has a name is renamed, so that names stay apart."""
    number = {name: f"p{place}" for place, name in enumerate(names)}
    files: dict[str, None] = {}
    articles, contents = [], []
    for name, own in number.items():
        text = (site / f"{name}.html").read_text("utf-8")
        folder = posixpath.dirname(name)

        def address(match: re.Match[str], own: str = own, folder: str = folder) -> str:
            to = match["to"]
            if re.match(r"[a-z]+:", to):
                return match[0]
            path, _, anchor = to.partition("#")
            page = posixpath.normpath(posixpath.join(folder, path)) if path else ""
            target = number.get(page.removesuffix(".html")) if path else own
            if target:
                page = f"#{target}-{anchor}" if anchor else f"#{target}"
            elif page.endswith(".html"):
                return ""  # not printed: it would lead to a file of this machine
            return f' {match["what"]}="{page}"'

        def renamed(match: re.Match[str], own: str = own) -> str:
            return f' {match["what"]}="{" ".join(f"{own}-{to}" for to in match["to"].split())}"'

        head, _, rest = text.partition("</head>")
        files |= dict.fromkeys(LINK.sub(address, file) for file in FILES.findall(head))
        _, _, body = rest.partition('<article class="tf-article">')
        body, _, _ = body.partition("</article>")
        body = INSIDE.sub(f"url(#{own}-", NAMED.sub(renamed, LINK.sub(address, body)))
        unfolded = r'<details(?=><summary><h\d| class="tf-(?:optional|more)")'
        body = re.sub(unfolded, "<details open data-deeper", body)
        title = re.search(r"<title>(.*?) · ", head, re.S)
        contents.append(f'<li><a href="#{own}">{title[1] if title else name}</a></li>')
        articles.append(f'<article class="tf-article" id="{own}">{body}</article>')
    styles = "".join(file for file in files if file.startswith("<link"))
    scripts = "".join(f for f in files if "tfviz-page" in f)
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light" data-content_root="./"><head>'
        '<meta charset="utf-8"><title>The Transformer family, taken apart</title>'
        f"{styles}{scripts}{STYLE}</head><body><main>"
        f'<article class="tf-article"><h1>The Transformer family, taken apart</h1>'
        f"<ul>{''.join(contents)}</ul></article>{''.join(articles)}</main></body></html>"
    )


def printed(site: Path, names: Iterable[str], browser: str) -> Path:
    """The PDF; the joined page is beside the others while it is printed, for their files."""
    whole = site / "print.html"
    whole.write_text(assembled(site, names), "utf-8")
    try:
        with sync_playwright() as play:
            chrome = play.chromium.launch(executable_path=browser, args=FLAGS)
            page = chrome.new_page(viewport=SHEET)
            page.set_default_timeout(300_000)
            page.goto(whole.as_uri())
            page.emulate_media(media="print", reduced_motion="reduce")
            page.evaluate("dispatchEvent(new Event('beforeprint'))")  # all explorers begin
            page.wait_for_function(
                "[...document.querySelectorAll('.tfviz-explorer')]"
                ".every((e) => !e.checkVisibility() || e.dataset.ready)"
            )
            page.evaluate(UNFOLD)
            numbers = (
                '<div style="width:100%;text-align:center;font:8pt sans-serif;color:#555">'
                '<span class="pageNumber"></span></div>'
            )
            page.pdf(
                path=site / NAME,
                scale=SCALE,
                prefer_css_page_size=True,
                print_background=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=numbers,
                outline=True,
                tagged=True,
            )
            chrome.close()
    finally:
        whole.unlink()
    return site / NAME


def offered(site: Path, size: int) -> None:
    """The landing page names the PDF, with its weight."""
    for page in (site / "index.html", site / "book/index.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        link = (
            f'<p class="tf-pdf"><a href="{up}{NAME}">The whole course as one PDF</a>, {size} MB</p>'
        )
        text = page.read_text("utf-8")
        page.write_text(
            re.sub(rf"{PLACE}(<p class=\"tf-pdf\">.*?</p>)?", PLACE + link, text), "utf-8"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT)
    site = parser.parse_args().out.resolve() / "_build/html"
    if not (browser := find()):
        print(MISSING, file=sys.stderr)
        return 1
    file = printed(site, pages((ROOT / "_toc.yml").read_text("utf-8")), browser)
    offered(site, max(1, round(file.stat().st_size / 2**20)))
    print(f"{file}: {file.stat().st_size / 2**20:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
