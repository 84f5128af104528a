"""What a browser sees of a page of the built book, looked at once for all the tests that ask.

A page is opened twice, from a server on a desk in light and from a folder on a phone in dark
colours, and scrolled until everything lazy is there. axe goes through all of the page on the desk,
and on the phone it looks for what depends on the theme and on the width. It reads a page abridged:
of all texts that look the same, the contrast of one is measured. `test_gallery` has every
component, in both themes and widths, unabridged.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import patience
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
PAGES = ["index", TOC["root"], "search"]
PAGES += [entry["file"] for part in TOC["parts"] for entry in part["chapters"]]
LESSONS = [page for page in PAGES if page.startswith("chapters/")]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
DESK, PHONE = ("light", 1280), ("dark", 390)
AGAIN = ["color-contrast", "scrollable-region-focusable", "target-size"]  # see `look`

SMALLEST = 10  # px, of words in a figure as they are on the screen

WATCH = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (!entry.hadRecentInput) window.shifts.push({
      value: entry.value,
      where: entry.sources.map((s) => s.node?.nodeName + "." + (s.node?.className ?? "")).join(" "),
    });
  }
}).observe({type: "layout-shift", buffered: true});
"""
SCROLL = """
async () => {
  const step = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 15)));
  for (let y = 0; y < document.documentElement.scrollHeight; y += 700) {
    scrollTo({top: y, behavior: "instant"});
    await step();
  }
  scrollTo({top: 0, behavior: "instant"});
  await step();
}
"""
SEEK = """
async () => {
  const step = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 15)));
  const lazy = document.querySelectorAll(".tfviz-explorer, [loading=lazy]");
  for (const piece of lazy) {
    piece.scrollIntoView({behavior: "instant"});
    await step();
  }
  scrollTo({top: 0, behavior: "instant"});
  await step();
}
"""
LAZY = """
() => [...document.querySelectorAll(".tfviz-explorer")].every(
  (host) => host.dataset.ready || !host.checkVisibility())  // or folded away
"""
ABRIDGE = """
() => {  // mark one text of each look; of formulas and code, keep what is marked
  const seen = new Set(), grounds = new Map(), kept = new Set();
  const ground = (node) => {  // all that is painted behind it
    if (!node) return "";
    if (!grounds.has(node)) {
      const style = getComputedStyle(node);
      const own = ["backgroundColor", "backgroundImage", "opacity", "filter"].map((k) => style[k]);
      const nothing = own.join() === "rgba(0, 0, 0, 0),none,1,none";
      grounds.set(node, ground(node.parentElement) + (nothing ? "" : own.join()));
    }
    return grounds.get(node);
  };
  for (const node of document.querySelectorAll("body *")) {
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
    if (!node.checkVisibility({visibilityProperty: true})) continue;
    const style = getComputedStyle(node);
    const own = ["color", "fontSize", "fontWeight", "textShadow"].map((name) => style[name]);
    const look = [...own, ground(node), node.closest("svg, math")?.localName].join();
    if (seen.has(look)) continue;
    seen.add(look);
    node.dataset.look = "";
    for (let at = node; at; at = at.parentElement) kept.add(at);
  }
  const formulas = [...document.querySelectorAll(".katex-html")].filter((f) => !kept.has(f));
  const boxes = formulas.map((formula) => formula.getBoundingClientRect());
  formulas.forEach((formula, k) => {
    const box = document.createElement("span"), {width, height} = boxes[k];
    box.style.cssText = `display: inline-block; width: ${width}px; height: ${height}px`;
    formula.replaceWith(box);
  });
  const told = ":not([id], [role], [tabindex], a, title, desc)";  // nothing that axe asks about
  for (const node of document.querySelectorAll(`pre span${told}`)) {
    if (!kept.has(node)) node.replaceWith(...node.childNodes);
  }
  for (const node of document.querySelectorAll(`figure svg *${told}`)) {
    if (!kept.has(node) && !node.querySelector("[id], [role], [tabindex], a, title")) node.remove();
  }
  for (const formula of document.querySelectorAll(":not(a, button, summary) > .katex math > *")) {
    if (!kept.has(formula)) formula.remove();  // the element stays
  }
  axe.configure({rules: [{id: "color-contrast", selector: "[data-look]"}]});
}
"""
# where formulas are larger than the text around them, or displayed ones are wider than their place
# when a reader has come near
FORMULAS = """
async () => {
  const size = (node) => parseFloat(getComputedStyle(node).fontSize);
  const faults = [];
  for (const formula of document.querySelectorAll(":not(.katex-display) > .katex")) {
    const share = size(formula) / size(formula.parentElement);
    if (Math.abs(share - 1.01) > 0.01 && !formula.closest(".tfv-atlas"))
      faults.push(`${share.toFixed(2)} em: ${formula.textContent}`);
  }
  const wide = (place) => place.checkVisibility() && place.scrollWidth > place.clientWidth + 1;
  for (const place of [...document.querySelectorAll(".tf-formula")].filter(wide)) {
    place.scrollIntoView({behavior: "instant"});
    // what comes into view is told after a frame is drawn
    for (let k = 0; k < 3; k += 1) await new Promise(requestAnimationFrame);
    if (wide(place))
      faults.push(`${place.scrollWidth} in ${place.clientWidth}: ${place.textContent}`);
  }
  return faults;
}
"""
HEADING = "parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)"
TICKS = """
() => Object.fromEntries([...document.querySelectorAll("[id^=ex-]:has(> .tf-done)")].map(
  (box) => [box.id, box.querySelectorAll(":scope > .tf-done input[type=checkbox]").length]))
"""
OPEN = """
() => {
  window.folds = document.querySelectorAll("details:not([open])");
  folds.forEach((fold) => { fold.open = true; });
}
"""
FOLD = "() => folds.forEach((fold) => { fold.open = false; })"
FIGURES = """
(smallest) => [...document.querySelectorAll("figure.tfviz-figure")].map((figure, n) => {
  const edge = figure.getBoundingClientRect();
  const faults = [];
  for (const box of [figure, ...figure.querySelectorAll("*")])
    if (!box.closest("svg") && box.scrollWidth > box.clientWidth + 1
        && getComputedStyle(box).display !== "inline")
      faults.push(`scrolls sideways by ${box.scrollWidth - box.clientWidth}`);
  const shown = [...figure.querySelectorAll("svg.tfviz-svg")]
    .filter((svg) => svg.getBoundingClientRect().width);
  if (!shown.length) faults.push("shows nothing");
  const sizes = [];
  for (const svg of shown) {
    const place = svg.getBoundingClientRect();
    if (place.left < edge.left - 1 || place.right > edge.right + 1)
      faults.push(`is cut by ${Math.round(place.right - edge.right)}`);
    const words = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim())
      .map((text) => ({ text: text.textContent.trim(), at: text.getBoundingClientRect(),
        size: parseFloat(getComputedStyle(text).fontSize)
          * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b) }));
    for (const { text, at, size } of words) {
      sizes.push(size);
      if (at.left < place.left - 1 || at.right > place.right + 1
          || at.top < place.top - 3 || at.bottom > place.bottom + 3)
        faults.push(`cuts "${text}"`);
    }
    for (const [n, one] of words.entries()) for (const two of words.slice(n + 1)) {
      const across = Math.min(one.at.right, two.at.right) - Math.max(one.at.left, two.at.left);
      const down = Math.min(one.at.bottom, two.at.bottom) - Math.max(one.at.top, two.at.top);
      if (across > 1 && down > 0.35 * Math.min(one.size, two.size))
        faults.push(`writes "${one.text}" over "${two.text}"`);
    }
  }
  const least = Math.min(...sizes);
  if (least < smallest - 0.05) faults.push(`has words of ${least.toFixed(1)} px`);
  const name = figure.querySelector("figcaption")?.textContent.slice(0, 60) ?? `number ${n}`;
  return [name, faults];
})
"""
PICTURES = """() => {
  const place = (e) => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom]
    .map((y) => Math.round(y + scrollY));
  const seen = (what) => [...document.querySelectorAll(`.tf-article :is(${what})`)]
    .filter((e) => e.checkVisibility()).map(place);
  const heads = [...document.querySelectorAll(".tf-article h2")].map((e) => [
    place(e)[0], e.textContent.replace(/#$/, "")]);
  return [heads, seen(".tfviz-figure, .tfviz-explorer"), seen(".exercise")];
}"""
DRAWN = """() => [...document.querySelectorAll(".tf-article *")].filter(
  (e) => e.checkVisibility({contentVisibilityAuto: true})).length"""
GUESSES = """(name) => [...document.querySelectorAll(".tf-article > section > section")].flatMap(
  (e) => e.querySelector(":scope > section") ? [...e.querySelectorAll(":scope > section")] : [e],
).map((e) => [parseFloat(e.style.getPropertyValue(name)), e.getBoundingClientRect().height])"""
SIDEWAYS = """() => [...document.querySelectorAll(".tf-article pre:not(.cell_output pre)")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent.slice(0, 60))"""
ALL_DRAWN = ".tf-article * { content-visibility: visible !important }"


@dataclass(frozen=True)
class Site:
    """Where the pages are, on the disk and on this machine's web server."""

    folder: Path
    address: str

    def url(self, page: str) -> str:
        return f"{self.address}/{page}.html"


@dataclass
class Visit:
    """What a browser saw of a page."""

    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    shifts: list[dict[str, Any]] = field(default_factory=list)
    wide: int = 0
    heading: float = 0  # size of the title: the style sheet is there
    drawn: int = 0  # elements that are laid out before anybody scrolls
    guesses: list[tuple[float, float]] = field(default_factory=list)  # of heights, and they
    sideways: list[str] = field(default_factory=list)  # code that is wider than its box
    formulas: list[str] = field(default_factory=list)  # too large, or wider than their place
    ticks: dict[str, int] = field(default_factory=dict)  # boxes to tick in each exercise
    picture: bytes = b""
    kinds: set[str] = field(default_factory=set)
    heads: list[tuple[int, str]] = field(default_factory=list)  # top and words of each section
    pictures: list[tuple[int, int]] = field(default_factory=list)  # top and foot, as it opens
    tasks: list[tuple[int, int]] = field(default_factory=list)  # the same of exercises
    figures: list[tuple[str, list[str]]] = field(default_factory=list)  # with their faults


@cache
def weight(path: Path) -> int:
    data = path.read_bytes()
    return len(data) if path.suffix == ".woff2" else len(gzip.compress(data, 6))


def look(browser: Any, site: Site, name: str, theme: str, width: int) -> Visit:
    """Open a page, and ask axe about all of it, or on a phone about what may differ there."""
    visit = Visit()
    phone = (theme, width) == PHONE
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
    )
    home = site.folder.as_uri() if phone else site.address
    prefix = f"{urlsplit(site.address).path}/"

    def asked(request: Any) -> None:
        if not request.url.startswith((f"{home}/", "data:", "blob:")):
            visit.foreign.append(request.url)

    def arrived(response: Any) -> None:
        path = unquote(urlsplit(response.url).path)
        if response.status >= 400:
            visit.complaints.append(f"{response.status} {path}")
        elif path.startswith(prefix):
            file = path.removeprefix(prefix)
            visit.files[file] = weight(site.folder / file)

    def said(message: Any) -> None:
        if message.type in ("error", "warning"):
            visit.complaints.append(message.text)

    page = context.new_page()
    page.add_init_script(WATCH)
    page.on("request", asked)
    page.on("response", arrived)
    page.on("console", said)
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.goto(f"{home}/{name}.html", wait_until="load")
    visit.picture = page.screenshot()
    visit.drawn = page.evaluate(DRAWN)
    page.evaluate(SEEK if phone else SCROLL)
    page.wait_for_function(LAZY, timeout=patience.milliseconds())
    page.evaluate("document.fonts.ready")
    visit.shifts = page.evaluate("window.shifts")
    visit.wide = page.evaluate("document.documentElement.scrollWidth")
    visit.heading = page.evaluate(HEADING)
    visit.ticks = page.evaluate(TICKS)
    visit.kinds = {
        kind
        for kind, what in (
            ("formula", ".katex"),
            ("explorer", ".tfviz-explorer"),
            ("picture", ".tf-article img"),
        )
        if page.locator(what).count()
    }
    page.add_style_tag(content=ALL_DRAWN)  # what is skipped lies where nobody sees it
    visit.heads, visit.pictures, visit.tasks = page.evaluate(PICTURES)
    visit.guesses = page.evaluate(GUESSES, "--tall" if phone else "--wide")
    visit.sideways = page.evaluate(SIDEWAYS)
    visit.formulas = page.evaluate(FORMULAS)
    visit.figures = figures(page)
    visit.violations = violations(page, again=phone, abridged=True)
    context.close()
    return visit


def violations(page: Any, *, again: bool = False, abridged: bool = False) -> list[str]:
    """What axe says of a page; `again`: only of what another theme and width may change.

    `abridged` takes away from the page what looks like something else in it (`ABRIDGE`).
    """
    page.add_script_tag(path=str(AXE))
    if abridged:
        page.evaluate(ABRIDGE)
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if again:
        options["runOnly"] = {"type": "rule", "values": AGAIN}
    found = page.evaluate("async (options) => (await axe.run(options)).violations", options)
    return [f"{v['id']}: {v['help']} {[n['html'][:160] for n in v['nodes'][:3]]}" for v in found]


def figures(page: Any) -> list[tuple[str, list[str]]]:
    """Every figure's name and its faults, those in a fold too."""
    page.evaluate(OPEN)
    page.evaluate("document.fonts.ready")
    found = [(name, faults) for name, faults in page.evaluate(FIGURES, SMALLEST)]
    page.evaluate(FOLD)
    return found
