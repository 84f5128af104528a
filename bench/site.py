"""What each page weighs, and what Lighthouse says of it on a slow phone.

    make bench, or
    PYTHONPATH=scripts python bench/site.py [--site FOLDER] [--no-lighthouse] [PAGE …]

Weight is what a browser fetches for the page scrolled to its end, gzipped as a server would do it.
Lighthouse runs as for a phone (slow 4G, a processor four times slower) on the pages served here.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import yaml
from build_book import build
from chrome import FLAGS, find
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
# Without it the headless shell shows the first frame of a long page one or two whole seconds late,
# under Lighthouse only: its own first paint is at .3 s (measured with Chromium 156).
NO_WAIT = "--disable-new-content-rendering-timeout"
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
SCROLL = """
async () => {
  for (let y = 0; y < document.documentElement.scrollHeight; y += 600) {
    scrollTo({top: y, behavior: "instant"});
    await new Promise((go) => requestAnimationFrame(() => setTimeout(go, 20)));
  }
}
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """A server that compresses text, as those on the network do."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path = path / "index.html"
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Cache-Control", "max-age=600")
        if path.suffix != ".woff2":
            data = gzip.compress(data, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def weigh(browser: Any, address: str) -> tuple[int, int]:
    """Bytes and number of files of a page."""
    sizes: list[int] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    page.goto(address, wait_until="load")
    page.evaluate(SCROLL)
    page.wait_for_load_state("networkidle")
    page.close()
    return sum(sizes), len(sizes)


def lighthouse(address: str, chrome: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "report.json")
        command = [
            str(Path(sys.executable).parent / "node"),
            str(ROOT / "node_modules" / "lighthouse" / "cli" / "index.js"),
            address,
            "--quiet",
            "--output=json",
            f"--output-path={out}",
            f"--only-categories={','.join(CATEGORIES)}",
            "--chrome-flags=" + " ".join(["--headless=new", NO_WAIT, *FLAGS]),
        ]
        environment = {**os.environ, "CHROME_PATH": chrome}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if not out.exists():
            raise RuntimeError(f"Lighthouse failed on {address}: {done.stderr[-800:]}")
        return dict(json.loads(out.read_text("utf-8")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--site", type=Path, help="pages that are built already")
    parser.add_argument("--no-lighthouse", action="store_true")
    parser.add_argument("pages", nargs="*")
    given = parser.parse_args()
    chrome = find()
    if chrome is None:
        print("no Chrome or Chromium found: install one, or set CHROME to its path")
        return 1
    if given.site is None and build(ROOT, quiet=True):
        return 1
    folder = (given.site or ROOT / "_build" / "html").resolve()
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    pages = given.pages or [
        "index",
        *(entry["file"] for part in toc["parts"] for entry in part["chapters"]),
    ]
    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{'page':32}{'KB gz':>8}{'files':>7}", end="")
    if not given.no_lighthouse:
        print(
            "".join(f"{name:>16}" for name in CATEGORIES),
            f"{'LCP s':>8}{'TBT ms':>8}{'CLS':>8}",
            end="",
        )
    print()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chrome, args=FLAGS)
        for name in pages:
            address = f"http://127.0.0.1:{server.server_port}/{name}.html"
            size, count = weigh(browser, address)
            print(f"{name:32}{size / 1000:8.0f}{count:7}", end="", flush=True)
            if not given.no_lighthouse:
                report = lighthouse(address, chrome)
                scores = [report["categories"][name]["score"] for name in CATEGORIES]
                print("".join(f"{100 * (score or 0):16.0f}" for score in scores), end="")
                audits = report["audits"]
                print(f"{audits['largest-contentful-paint']['numericValue'] / 1000:9.1f}", end="")
                print(f"{audits['total-blocking-time']['numericValue']:8.0f}", end="")
                print(f"{audits['cumulative-layout-shift']['numericValue']:8.3f}", end="")
            print(flush=True)
        browser.close()
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
