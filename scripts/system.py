"""Programs of the system that the tests need: browsers, and bubblewrap for the grading.

python scripts/system.py             says what is missing
python scripts/system.py --install   installs it first, where apt-get can (root, or a sudo that
                                     asks nothing)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from glob import glob

import chrome

NO_SANDBOX = (
    "The tests of the grading need bubblewrap, and there is no `bwrap`: install it (on Debian and "
    "Ubuntu: apt-get install bubblewrap)."
)
NO_FIREFOX = (
    "One test opens the book in Firefox, and there is none but perhaps a snap: install it "
    "(on Debian: apt-get install firefox-esr)."
)
NO_WEBKIT = (
    "One test opens the book in WebKitGTK, and there is no `WebKitWebDriver` or no `MiniBrowser`: "
    "install them (on Debian and Ubuntu: apt-get install webkit2gtk-driver)."
)
NO_SCREEN = (
    "One test opens the book in WebKitGTK on a screen that nobody sees, and there is no `Xvfb`: "
    "install it (on Debian and Ubuntu: apt-get install xvfb)."
)


def firefox() -> str | None:
    """Path of a Firefox that may read any folder; Ubuntu's own, a snap, may not."""
    snap = os.path.exists("/snap/bin/firefox")
    return shutil.which("firefox-esr") or (None if snap else shutil.which("firefox"))


def webkit_driver() -> str | None:
    """Path of the program that drives WebKitGTK's small browser."""
    return shutil.which("WebKitWebDriver") if minibrowser() else None


def minibrowser() -> str | None:
    """Path of WebKitGTK's small browser, which is not on the PATH."""
    places = glob("/usr/lib/*/webkit2gtk-4.*/MiniBrowser")
    places += glob("/usr/libexec/webkit2gtk-4.*/MiniBrowser")
    return max(places, default=None)


def xvfb() -> str | None:
    """Path of a screen that nobody sees."""
    return shutil.which("Xvfb")


def install(package: str, what: str) -> None:
    """A package of Debian or Ubuntu, by apt-get, as root or by a sudo that asks nothing."""
    apt = shutil.which("apt-get")
    if not apt:
        return
    sudo: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo") or subprocess.run(["sudo", "-n", "true"]).returncode:
            return
        sudo = ["sudo", "-n", "DEBIAN_FRONTEND=noninteractive"]
    print(f"No {what} found: installing the system's package {package}.", flush=True)
    quiet = {
        "stdout": subprocess.DEVNULL,
        "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    }
    if subprocess.run([*sudo, apt, "update", "-q"], **quiet).returncode == 0:  # type: ignore[call-overload]
        subprocess.run(  # type: ignore[call-overload]
            [*sudo, apt, "install", "-y", "-q", "--no-install-recommends", package], **quiet
        )


def offered(package: str) -> bool:
    """Whether apt-get knows this package without asking the network."""
    if not shutil.which("apt-cache"):
        return False
    return not subprocess.run(["apt-cache", "show", package], capture_output=True).returncode


def browser() -> None:
    """Get a browser for the tests: one without windows where the system has it."""
    light = "chromium-headless-shell"
    if not chrome.find() or (not chrome.shell() and offered(light)):
        install(light, "browser without windows")
    if not chrome.find():
        install("chromium", "browser")


# What the tests need on Linux, beside a Chromium: where it is, its package, what to say without it.
# Elsewhere there is none of it, and its tests are skipped.
ON_LINUX: tuple[tuple[Callable[[], str | None], str, str], ...] = (
    (lambda: shutil.which("bwrap"), "bubblewrap", NO_SANDBOX),
    (firefox, "firefox-esr", NO_FIREFOX),
    (webkit_driver, "webkit2gtk-driver", NO_WEBKIT),
    (xvfb, "xvfb", NO_SCREEN),
)
# The tests that need these are skipped where they are missing, unless CI asks for all of them.
SKIPPED = {NO_FIREFOX, NO_WEBKIT, NO_SCREEN}


def on_ci() -> bool:
    """Whether nothing may be skipped."""
    return os.environ.get("CI", "").lower() == "true"


def missing(*packages: str) -> list[str]:
    """What to say of those programs that are not there."""
    return [words for find, package, words in ON_LINUX if package in packages and not find()]


def main() -> int:
    wanted = [package for _, package, _ in ON_LINUX] if sys.platform == "linux" else []
    if "--install" in sys.argv:
        browser()
        for package in wanted:
            if missing(package):
                install(package, package)
    said = [] if chrome.find() else [chrome.MISSING]
    said += missing(*wanted)
    print("\n".join(said), end="\n" if said else "", file=sys.stderr)
    return 1 if [words for words in said if on_ci() or words not in SKIPPED] else 0


if __name__ == "__main__":
    sys.exit(main())
