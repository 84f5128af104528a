"""Searching a store of kNN-LM: our exact search beside FAISS, every key and in cells.

    python bench/search.py

Keys of width 64 around 2,000 centres, 256 queries from the same, 32 neighbours, one thread, all in
turns. Our search reads the mapped file part by part, FAISS holds a copy of the keys. Printed:
time ÷ that of FAISS with every key, in the same run, and recall of the 32 nearest.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from tfviz.longer_context.knn_lm import exact, recall, with_faiss
from tfviz.measure import in_turns

D, CENTRES, QUERIES, K, CELLS = 64, 2_000, 256, 32, 256
SIZES = (30_000, 120_000, 480_000)
MOST = {"ours, every key": 3.0, "FAISS, 4 of 256 cells": 0.15, "FAISS, 16 of 256 cells": 0.25}


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((CENTRES, D), dtype=np.float32)

    def drawn(n: int) -> np.ndarray:
        noise = rng.standard_normal((n, D), dtype=np.float32)
        return centres[rng.integers(CENTRES, size=n)] + 0.5 * noise

    for n in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            np.save(path := Path(folder, "keys.npy"), drawn(n))
            keys = np.load(path, mmap_mode="r")
            Q = torch.from_numpy(drawn(QUERIES))
            ways = {
                "FAISS, every key": with_faiss(keys),
                "ours, every key": exact(keys),
                "FAISS, 4 of 256 cells": with_faiss(keys, cells=CELLS, probe=4),
                "FAISS, 16 of 256 cells": with_faiss(keys, cells=CELLS, probe=16),
            }

            def asks(name: str, ways: dict[str, Any] = ways, Q: Any = Q) -> Callable[[], Any]:
                return lambda: ways[name](Q, K)

            times = in_turns({name: asks(name) for name in ways}, rounds=5)
            true = ways["FAISS, every key"](Q, K)[1]
            for name, search in ways.items():
                pairs = zip(times[name], times["FAISS, every key"], strict=True)
                ratio = median(a / b for a, b in pairs)
                each = 1000 * median(times[name]) / QUERIES
                recalled = recall(search(Q, K)[1], true)
                above = "" if ratio <= MOST.get(name, 1) else f"  ABOVE THE LIMIT {MOST[name]}"
                print(
                    f"{n:7,} keys  {name:23} time × {ratio:5.2f}  {each:6.3f} ms a query  "
                    f"recall {recalled:.3f}{above}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
