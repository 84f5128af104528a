"""Find Chrome or Chromium for the tests; with --install, get Debian's where that is possible.

Where there is Chromium's headless shell, it is taken: a whole Chrome opens a window for each page,
which takes four times the processor time, .8 s instead of .2 (measured with Chromium 156).
"""

from __future__ import annotations

import os
import shutil
import sys

SHELLS = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
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


def shell() -> str | None:
    """Path of a browser without windows: the variable CHROME, else what is on the PATH."""
    return next(filter(None, [os.environ.get("CHROME"), *map(shutil.which, SHELLS)]), None)


def find() -> str | None:
    """Path of a browser: without windows if there is one, else a whole one."""
    path = next(filter(None, [shell(), *map(shutil.which, NAMES)]), None)
    return path or (MAC if os.path.exists(MAC) else None)


def main() -> int:
    if "--install" in sys.argv:
        from system import browser

        browser()
    path = find()
    if path and "--path" in sys.argv:
        print(path)
    if not path:
        print(MISSING, file=sys.stderr)
    return 0 if path else 1


if __name__ == "__main__":
    sys.exit(main())
