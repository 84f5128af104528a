"""How long explorers take to redraw in a real browser, and how much their modules weigh.

    make bench, or
    PYTHONPATH=scripts:tests:book/_ext python bench/explorers.py [EXPLORER …]

Every slider of every explorer is moved one step after the other, from where it stands and back
from its end, while the others stand where the tests put them; the slowest one is shown. The Sparse
Lab also at its largest sizes, there in leaps. Counted is the processor time of the page's main
thread for one step: numbers, pictures and words, style, layout and paint. The bookkeeping of the
measurement itself, which the first row shows, has been taken off, and the first 30 steps of 100,
in which the browser compiles. A 60 Hz frame lasts 16.7 ms.
"""

from __future__ import annotations

import gzip
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import chrome
from browser.explorer_site import served, write_site
from playwright.sync_api import sync_playwright

from tfviz import patterns as P
from tfviz.explorers import ALL, Explorer, SparseLab
from tfviz.explorers.base import kit

CASES = {
    "strided | fixed": (P.strided(stride=8), P.fixed(block=16, summary=2)),
    "Longformer | Big Bird": (
        P.longformer(radius=16, n_global=2),
        P.bigbird(block=16, window=1, n_global=1, n_random=2, seed=0),
    ),
    "full | random keys": (P.full(), P.random_keys(count=8, seed=0)),
}

SLIDERS = """() => [...document.querySelectorAll("input[type=range][data-key]:not(:disabled)")]
  .filter((input) => input.offsetParent)
  .map((input) => [input.dataset.key, +input.min, +input.max, +input.step || 1, +input.value])"""
MOVE = """async ([key, value]) => {
  const input = document.querySelector(`input[data-key="${key}"]`);
  input.value = value;
  input.dispatchEvent(new Event("input"));
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  await frame();
}"""


NOTHING = """() => {
  const input = document.body.appendChild(document.createElement("input"));
  input.dataset.key = "nothing";
}"""


def ready(page: Any, url: str, explorer: Explorer, folder: Path) -> Callable[[], float]:
    """Show it, with no question open; what its page has spent so far, in ms of processor time."""
    write_site(folder, explorer.html())
    page.goto(f"{url}index.html")
    page.wait_for_selector("[data-ready]")
    while page.get_by_role("button", name="just show me").count():
        page.get_by_role("button", name="just show me").first.click()
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = tools.send("Performance.getMetrics")["metrics"]
        return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    return spent


def steps(page: Any, spent: Callable[[], float], key: str, values: Iterable[float]) -> list[float]:
    times = []
    for value in values:
        before = spent()
        page.evaluate(MOVE, [key, value])
        times.append(spent() - before)
    return sorted(times[30:])  # the first ones compile


def late(times: list[float]) -> float:
    return times[int(0.95 * len(times))]


def slowest(page: Any, spent: Callable[[], float]) -> tuple[str, list[float]]:
    """The slider whose steps take longest, at the 95th percentile, and its times."""
    steps_by_key = {}
    for key, low, high, step, now in page.evaluate(SLIDERS):
        many = max(1, round((high - low) / step))
        start = round((now - low) / step)
        places = [many - abs((start + k) % (2 * many) - many) for k in range(1, 101)]
        steps_by_key[key] = steps(page, spent, key, [low + step * place for place in places])
        page.evaluate(MOVE, [key, now])
    return max(steps_by_key.items(), key=lambda item: late(item[1]), default=("", [0.0]))


def main() -> None:
    sliders = {
        "strided | fixed": "right-0-block",
        "Longformer | Big Bird": "right-0-block",
        "full | random keys": "right-0-count",
    }
    print(f"{'redraw, ms':34}{'L':>5}{'median':>9}{'95th':>9}")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        browser = playwright.chromium.launch(executable_path=chrome.find(), args=chrome.FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        with served(folder) as url:
            spent = ready(page, url, SparseLab(), folder)
            page.evaluate(NOTHING)
            times = steps(page, spent, "nothing", range(100))
            own = statistics.median(times)
            row = "the measurement itself"
            print(f"{row:39}{own:9.1f}{late(times):9.1f}", flush=True)
            for name in sys.argv[1:] or ALL:
                for view in ALL[name].examples:
                    explorer = ALL[name].example(view)
                    key, times = slowest(page, ready(page, url, explorer, folder))
                    row = f"{name} {view}, {key}"
                    median = statistics.median(times)
                    print(f"{row:39}{median - own:9.1f}{late(times) - own:9.1f}", flush=True)
            for L in () if sys.argv[1:] else (256, 512):
                for title, (left, right) in CASES.items():
                    for key in (sliders[title], "query"):
                        lab = SparseLab(left, right, L=L, panels=["depth", "cost"])
                        moved = [(k * 7) % L if key == "query" else 2 + k % 30 for k in range(100)]
                        times = steps(page, ready(page, url, lab, folder), key, moved)
                        what = f"{title}, {key.rpartition('-')[2]}"
                        median = statistics.median(times)
                        print(f"{what:34}{L:5}{median - own:9.1f}{late(times) - own:9.1f}")
        browser.close()
    if sys.argv[1:]:
        return
    print(f"\n{'module':34}{'KiB':>9}{'gzipped':>9}")
    sources = {"kit": kit(), **{name: explorer.sources() for name, explorer in ALL.items()}}
    for name, texts in sources.items():
        for kind, text in zip(("js", "css"), texts, strict=True):
            raw = text.encode()
            title = f"{name}.{kind}"
            print(f"{title:34}{len(raw) / 1024:9.1f}{len(gzip.compress(raw)) / 1024:9.1f}")


if __name__ == "__main__":
    main()
