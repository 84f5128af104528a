"""How long a test waits for a browser before it gives up.

It is no measurement: what hangs must end some day, and soon enough for whoever waits for the tests.
Beside other work all takes longer, so the limit grows with what the processors have to do.
"""

from __future__ import annotations

import os

MOST = 3.0


def crowd() -> float:
    """Between 1 and 3: how many processes want each processor just now."""
    if not hasattr(os, "getloadavg"):
        return MOST
    return min(MOST, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def seconds(alone: float = 60) -> float:
    """The limit where nothing else runs, times what others take."""
    return alone * crowd()


def milliseconds(alone: float = 60) -> int:
    """As Playwright wants it."""
    return round(1000 * seconds(alone))
