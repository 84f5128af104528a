"""Find Chrome or Chromium for the tests; with --install, get Debian's where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
MISSING = (
    "The tests need Chrome or Chromium, and none was found: install one (on Debian: "
    "apt-get install chromium), or set CHROME to its path."
)


def find() -> str | None:
    """Path of a browser: the variable CHROME, else what is on the PATH."""
    found = [os.environ.get("CHROME"), *map(shutil.which, NAMES)]
    return next((path for path in found if path), MAC if os.path.exists(MAC) else None)


def install() -> None:
    """Debian's Chromium by apt-get, as root or by a sudo that asks nothing."""
    apt = shutil.which("apt-get")
    if not apt:
        return
    sudo: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo") or subprocess.run(["sudo", "-n", "true"]).returncode:
            return
        sudo = ["sudo", "-n", "DEBIAN_FRONTEND=noninteractive"]
    print("No browser found: installing Debian's Chromium.", flush=True)
    quiet = {
        "stdout": subprocess.DEVNULL,
        "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    }
    if subprocess.run([*sudo, apt, "update", "-q"], **quiet).returncode == 0:  # type: ignore[call-overload]
        subprocess.run(  # type: ignore[call-overload]
            [*sudo, apt, "install", "-y", "-q", "--no-install-recommends", "chromium"], **quiet
        )


def main() -> int:
    if not find() and "--install" in sys.argv:
        install()
    path = find()
    if path and "--path" in sys.argv:
        print(path)
    if not path:
        print(MISSING, file=sys.stderr)
    return 0 if path else 1


if __name__ == "__main__":
    sys.exit(main())
