"""An experiment for the tests of the runner: workers import it too."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfviz_lab.runner import Done, Run

RUNS: list[Run] = []


def runs() -> list[Run]:
    return RUNS


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if "log" in config:  # one line for each time that a run is executed
        with Path(config["log"]).open("a") as file:
            file.write(f"{config['add']} {seed}\n")
    if "wait_for" in config:
        while not Path(config["wait_for"]).exists():
            time.sleep(0.01)
    if config.get("fails"):
        raise ZeroDivisionError("as asked")
    return {"sum": config["add"] + config.get("bad", seed), "process": os.getpid()}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    return {"sums": [x["result"]["sum"] for x in done]}
