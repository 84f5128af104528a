"""What a step of generation costs with fewer heads of keys and values: bytes, and time beside MHA.

    python -m tfviz_lab grouped_decode    → results/grouped_decode.json

One new token of HEADS heads attends to LENGTH kept tokens, in float32 on one thread. For each
number of key heads:

kept        bytes of the cache for one token and layer, counted in the tensors that are kept
time        of a step ÷ that with a head of keys for each head of queries, the median of rounds in
            turns: as the core `Grouped` does it, one product for a group; as torch's kernel does
            (`enable_gqa`); and with keys and values repeated for every head
written     numbers that each of the three writes, as `tfviz.measure` counts them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from tfviz.basics.cache_cost import kept_bytes
from tfviz.cores import CAUSAL, Dense, Kept, Where
from tfviz.heads.grouped_query_attention import Grouped
from tfviz.measure import elements_produced, in_turns
from tfviz.models.blocks import MultiHeadAttention
from tfviz.training import seeded
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch"]
CLOCKS = ("time",)
HEADS, D_HEAD, LENGTH, ROUNDS, SEEDS = 32, 128, 4096, 21, (0, 1, 2)
KEY_HEADS = (32, 16, 8, 4, 2, 1)
MHA = f"one product a group, {HEADS}"


def steps(h_kv: int) -> dict[str, Callable[[], Tensor]]:
    """The three ways from a new token's queries, and kept keys and values, to its answers."""
    Q = torch.randn(1, HEADS, 1, D_HEAD)
    K, V = torch.randn(2, 1, h_kv, LENGTH, D_HEAD)
    last = Where(CAUSAL, LENGTH - 1)

    def repeated() -> Tensor:
        return Dense().attend(Q, *(x.repeat_interleave(HEADS // h_kv, 1) for x in (K, V)), last)[0]  # type: ignore[call-arg]

    return {
        "one product a group": lambda: Grouped().attend(Q, K, V, last)[0],
        "torch's kernel": lambda: Dense().attend(Q, K, V, last)[0],
        "repeated": repeated,
    }


def kept(h_kv: int) -> int:
    """Bytes for one token, of an attention that has read one."""
    attend = MultiHeadAttention(HEADS * D_HEAD, HEADS, h_kv=h_kv, pattern=CAUSAL)
    cache: dict[torch.nn.Module, Kept] = {}
    attend(torch.zeros(1, 1, HEADS * D_HEAD), cache=cache)
    return kept_bytes(cache)


def runs() -> list[Run]:
    return [Run("step", {"length": LENGTH, "rounds": ROUNDS}, seed, of=_CODE) for seed in SEEDS]


_CODE = ("tfviz.heads.grouped_query_attention:Grouped", "tfviz.cores:Dense")


@torch.no_grad()
def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    ways = {
        f"{way}, {h_kv}": step
        for h_kv in KEY_HEADS
        for way, step in seeded(seed, partial(steps, h_kv)).items()
    }
    times = in_turns(ways, config["rounds"])
    beside = {
        name: round(median(a / b for a, b in zip(mine, times[MHA], strict=True)), 3)
        for name, mine in times.items()
    }
    return {
        "kept": [kept(h_kv) for h_kv in KEY_HEADS],
        "written": {name: elements_produced(step) for name, step in ways.items()},
        "time": beside,
    }


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """What is counted is the same with every seed; of the times, the median over the seeds."""
    found = [one["result"] for one in done]
    assert all(
        (one["kept"], one["written"]) == (found[0]["kept"], found[0]["written"]) for one in found
    )

    def by_way(table: str) -> dict[str, list[Any]]:
        names = dict.fromkeys(name.rpartition(", ")[0] for name in found[0][table])
        return {
            way: [median(one[table][f"{way}, {h_kv}"] for one in found) for h_kv in KEY_HEADS]
            for way in names
        }

    return {
        "heads": HEADS,
        "d_head": D_HEAD,
        "length": LENGTH,
        "key_heads": list(KEY_HEADS),
        "kept": found[0]["kept"],
        "written": by_way("written"),
        "time": by_way("time"),
    }
