"""Memory-compressed attention in a small GPT of characters, alone and beside local attention.

    python -m tfviz_lab memory_compressed    → results/memory_compressed.json

By `protocol`, with an exam of its own: two layers read 128 characters, with rotary positions. A
variant's `layers` name what each of them is, from below: F full causal attention, L local attention
within blocks of BLOCK characters, M memory-compressed attention with groups of C. The paper
alternates L and M.

score     nats per character of the whole held-out text, at the last SCORED places of windows
phases    the same by the place's number modulo C: in a layer M, query i does without the i mod C
          tokens before its own
pairs     queries times the keys that they may use, of both layers, in a head
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, nn

from tfviz import GPT, data
from tfviz import patterns as P
from tfviz.compressed.memory_compressed_attention import MemoryCompressed, staircase
from tfviz.measure import flops
from tfviz.training import next_token, seeded
from tfviz_lab import protocol, trivial
from tfviz_lab.compare import HEADS, WIDTH, Task
from tfviz_lab.protocol import SEEDS, Exam, rotary, training_text, whole_text
from tfviz_lab.runner import Done

PACKAGES = ["torch", "numpy"]
LENGTH, BATCH, STEPS, SCORED = 128, 8, 2000, 32
BLOCK, C = 16, 3

LAYERS: dict[str, dict[str, Any]] = {
    "F": {"pattern": P.causal()},
    "L": {"pattern": P.own_block(block=BLOCK)},
    "M": {"pattern": P.causal(), "core": partial(MemoryCompressed, c=C)},
}


def gpt(layers: str = "FF", pattern: Any = None) -> GPT:
    """The small GPT of all comparisons, each layer by its letter."""
    vocab = len(data.characters()[1])
    return GPT(vocab, WIDTH, HEADS, len(layers), layer=lambda n: rotary(LAYERS[layers[n]]))


def _letters(seed: int) -> Task:
    return Task(
        name="letters_128",
        unit="nats per character",
        steps=STEPS,
        model=gpt,
        loss=lambda seed, steps: next_token(training_text(), BATCH, LENGTH),
        score=partial(whole_text, length=LENGTH, scored=SCORED),
        inputs=lambda rng: data.windows(data.characters()[0], 2, LENGTH, rng)[0],
    )


EXAM = Exam(_letters, lambda seed: trivial.ngrams(5, LENGTH, SCORED), "5-gram", 0.02)
VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {"layers": "FF"},
    "compressed": lambda: {"layers": "MM"},
    "local": lambda: {"layers": "LL"},
    "local, then compressed": lambda: {"layers": "LM"},
}
runs, follow, _collect = protocol.experiment(VARIANTS, EXAM, reference="full attention")


@torch.no_grad()
def by_phase(model: nn.Module) -> list[float]:
    """Nats per character of the held-out text at places i with i mod C = 0, 1, …"""
    rows, found = trivial.held_out_rows(LENGTH, SCORED), list[torch.Tensor]()
    for some in rows.split(32):
        logits = model(some[:, :-1])[:, -SCORED:]
        nats = F.cross_entropy(logits.mT, some[:, -SCORED:], reduction="none")
        found.append(nats.double())
    nats, phase = torch.cat(found).mean(0), torch.arange(LENGTH - SCORED, LENGTH) % C
    return [round(nats[phase == n].mean().item(), 4) for n in range(C)]


def pairs(layers: str) -> int:
    """How many weights a head has in these layers, for LENGTH characters."""
    masks = {name: options["pattern"].mask(LENGTH) for name, options in LAYERS.items()}
    masks["M"] = staircase(LENGTH, C)
    return sum(int(masks[layer].sum()) for layer in layers)


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["part"] == "trivial":
        return dict(EXAM.trivial(seed))
    told = VARIANTS[config["variant"]]
    model, curve = protocol.trained(told, EXAM, seed, config["steps"], config["rate"])
    return {
        "score": curve[-1],
        "curve": curve,
        "phases": by_phase(model),
        "parameters": sum(x.numel() for x in model.parameters()),
        "flops": seeded(seed, partial(flops, partial(training_step, model, seed))),
    }


def training_step(model: nn.Module, seed: int) -> None:
    loss = next_token(training_text(), BATCH, LENGTH)
    loss(model, Generator().manual_seed(seed), 0).backward()


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """The exam, and by variant the nats of each phase for each seed."""
    scored = {
        (x["run"]["config"]["variant"], x["run"]["seed"]): x["result"]
        for x in done
        if x["run"]["config"]["part"] == "score"
    }
    return {
        **_collect(done),
        "length": LENGTH,
        "pairs": {name: pairs(told()["layers"]) for name, told in VARIANTS.items()},
        "phases": {name: [scored[name, seed]["phases"] for seed in SEEDS] for name in VARIANTS},
    }
