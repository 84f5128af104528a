"""Find Chrome or Chromium for the tests; with --install, get Debian's where that is possible."""

from __future__ import annotations

import os
import shutil
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
MISSING = (
    "The tests need Chrome or Chromium, and none was found: install one (on Debian: "
    "apt-get install chromium), or set CHROME to its path."
)


def find() -> str | None:
    """Path of a browser: the variable CHROME, else what is on the PATH."""
    found = [os.environ.get("CHROME"), *map(shutil.which, NAMES)]
    return next((path for path in found if path), MAC if os.path.exists(MAC) else None)


def main() -> int:
    if not find() and "--install" in sys.argv:
        from system import install

        install("chromium", "browser")
    path = find()
    if path and "--path" in sys.argv:
        print(path)
    if not path:
        print(MISSING, file=sys.stderr)
    return 0 if path else 1


if __name__ == "__main__":
    sys.exit(main())
