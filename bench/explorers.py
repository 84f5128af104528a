"""How long the Sparse Lab takes to redraw in a real browser, and how much its module weighs.

    make bench, or
    PYTHONPATH=scripts:tests/browser python bench/explorers.py

A slider is moved step by step. Counted is the processor time of the page's main thread for one
step: masks, reach, pictures and words, style, layout and paint, and the bookkeeping of the
measurement. It does not depend on what else the machine does. A 60 Hz frame lasts 16.7 ms.
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
from pathlib import Path
from typing import Any

import chrome
from explorer_site import served, write_site
from playwright.sync_api import sync_playwright

from tfviz import patterns as P
from tfviz.explorers import ALL, SparseLab
from tfviz.explorers.base import kit

CASES = {
    "strided | fixed": (P.strided(stride=8), P.fixed(block=16, summary=2)),
    "Longformer | Big Bird": (
        P.longformer(radius=16, count=2),
        P.bigbird(block=16, window=1, count=1, random=2, seed=0),
    ),
    "full | random keys": (P.full(), P.random_keys(count=8, seed=0)),
}

MOVE = """async ([key, value]) => {
  const input = document.querySelector(`input[data-key="${key}"]`);
  input.value = value;
  input.dispatchEvent(new Event("input"));
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  await frame();
}"""


def measure(page: Any, url: str, lab: SparseLab, folder: Path, key: str) -> list[float]:
    write_site(folder, lab.html())
    page.goto(f"{url}index.html")
    page.wait_for_selector("[data-ready]")
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:  # milliseconds of processor time of the page's main thread
        metrics = tools.send("Performance.getMetrics")["metrics"]
        return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    times = []
    for k in range(75):
        value = (k * 7) % lab.L if key == "query" else 2 + k % 30
        before = spent()
        page.evaluate(MOVE, [key, value])
        times.append(spent() - before)
    return sorted(times[15:])  # the first ones compile


def main() -> None:
    sliders = {
        "strided | fixed": "right-0-block",
        "Longformer | Big Bird": "right-0-block",
        "full | random keys": "right-0-count",
    }
    print(f"{'redraw, ms':34}{'L':>5}{'median':>9}{'95th':>9}")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chrome.find(), args=chrome.FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        with served(folder) as url:
            for L in (256, 512):
                for title, (left, right) in CASES.items():
                    for key in (sliders[title], "query"):
                        lab = SparseLab(left, right, L=L, panels=["depth", "cost"])
                        times = measure(page, url, lab, folder, key)
                        what = f"{title}, {key.rpartition('-')[2]}"
                        late = times[int(0.95 * len(times))]
                        print(f"{what:34}{L:5}{statistics.median(times):9.1f}{late:9.1f}")
        browser.close()
    print(f"\n{'module':34}{'KiB':>9}{'gzipped':>9}")
    sources = {"kit": kit(), **{name: explorer.sources() for name, explorer in ALL.items()}}
    for name, texts in sources.items():
        for kind, text in zip(("js", "css"), texts, strict=True):
            raw = text.encode()
            title = f"{name}.{kind}"
            print(f"{title:34}{len(raw) / 1024:9.1f}{len(gzip.compress(raw)) / 1024:9.1f}")


if __name__ == "__main__":
    main()
