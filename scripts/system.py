"""Programs of the system that the tests need: a browser, and bubblewrap for the grading.

python scripts/system.py             says what is missing
python scripts/system.py --install   installs it first, where apt-get can (root, or a sudo that
                                     asks nothing)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import chrome

NO_SANDBOX = (
    "The tests of the grading need bubblewrap, and there is no `bwrap`: install it (on Debian and "
    "Ubuntu: apt-get install bubblewrap)."
)


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


def main() -> int:
    missing = []
    linux = sys.platform == "linux"  # elsewhere there is no bubblewrap; its tests are skipped
    if "--install" in sys.argv:
        browser()
        if linux and not shutil.which("bwrap"):
            install("bubblewrap", "bubblewrap")
    if not chrome.find():
        missing.append(chrome.MISSING)
    if linux and not shutil.which("bwrap"):
        missing.append(NO_SANDBOX)
    print("\n".join(missing), end="\n" if missing else "", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
