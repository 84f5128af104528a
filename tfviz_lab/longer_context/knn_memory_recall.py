"""Recall over 192 tokens, give or take a segment: facts are told, and asked for soon or much later.

A stream of segments of 16 tokens. In each, two names get one of four values ("7 = c" is a token),
two questions ("7 ?") are about the segment before, two about twelve segments before, and ten
tokens are noise. A name is told anew after sixteen segments, 256 tokens, with another value.

told      nats of near and of far answers, of one layer that remembers and of one that does not
sizes     the trained layer asked with other memories
shown     what the chapter's explorer shows: where each head's memories lie

python -m tfviz_lab knn_memory_recall    → results/knn_memory_recall.json
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz.cores import Kept
from tfviz.longer_context.memorizing_transformer import (
    Memorizing,
    best_of_buckets,
    memorizing_gpt,
    nearest_pairs,
    remembering,
)
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.gpt import GPT
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

SEEDS, STEPS = (0, 1, 2), 300
PACKAGES = ["torch"]
L, NAMES, VALUES, PER, BACK, NOISE = 16, 32, 4, 2, 12, 4
AGAIN = NAMES // PER  # segments until a name is told anew
FACTS, QUESTIONS = VALUES, VALUES + NAMES * VALUES  # where their tokens begin; values come first
VOCAB = QUESTIONS + NAMES + NOISE
WIDTH, HEADS, M, K, BATCH, SEGMENTS, RATE = 64, 2, 256, 8, 32, 36, 1e-3
SIZES = (0, 64, 128, 192, 224, 256, 384, 512, 768)
TOLD, SCORED = 60, 10
"""Segments of the test, and how many of them at the end are scored."""


def stream(b: int, segments: int, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
    """(tokens, answers or −100, 1 at near and 2 at far questions), (b, segments, L) each."""
    t = VOCAB - 1 - torch.randint(NOISE, (b, segments, L), generator=rng)
    y, kind = torch.full_like(t, -100), torch.zeros_like(t)
    names = torch.rand(b, NAMES, generator=rng).argsort(1).view(b, AGAIN, PER)
    values = torch.randint(VALUES, (b, segments, PER), generator=rng)
    for s in range(segments):
        places = torch.rand(b, L, generator=rng).argsort(1).split(PER, 1)
        t[:, s].scatter_(1, places[0], FACTS + names[:, s % AGAIN] * VALUES + values[:, s])
        for n, back in ((1, 1), (2, BACK)):
            if s >= back:
                t[:, s].scatter_(1, places[n], QUESTIONS + names[:, (s - back) % AGAIN])
                y[:, s].scatter_(1, places[n], values[:, s - back])
                kind[:, s].scatter_(1, places[n], n)
    return t, y, kind


def made(m: int, seed: int) -> GPT:
    """One layer. It begins where names are known: embeddings as sums of a name's and a value's (or
    "?"), and keys as the queries of the same token, so that "7 ?" is near "7 = c"."""
    model = seeded(seed, lambda: memorizing_gpt(
        VOCAB, WIDTH, HEADS, 1, m=m, window=L, k=K, layer=0))  # fmt: skip
    rng = Generator().manual_seed(seed)
    name, value = (torch.randn(n, WIDTH, generator=rng) / WIDTH**0.5 for n in (NAMES, VALUES + 1))
    with torch.no_grad():
        E = model.embed.weight
        E[:FACTS] = value[:VALUES]
        E[FACTS:QUESTIONS] = (name[:, None] + value[:VALUES]).flatten(0, 1)
        E[QUESTIONS : QUESTIONS + NAMES] = name + value[VALUES]
        for attend in model.modules():
            if isinstance(attend, MultiHeadAttention):
                attend.W_qkv.weight[WIDTH : 2 * WIDTH] = attend.W_qkv.weight[:WIDTH]
    return model


def asked() -> Any:
    """The loss: segment after segment, a new stream after SEGMENTS of them."""
    now: dict[str, Any] = {"at": SEGMENTS}

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        if now["at"] == SEGMENTS:
            now.update(zip(("t", "y", "_"), stream(BATCH, SEGMENTS, rng), strict=True))
            now["cache"], now["at"] = {}, 1
            with torch.no_grad():
                model(now["t"][:, 0], now["cache"])
        at = now["at"]
        now["at"] += 1
        logits = model(now["t"][:, at], now["cache"])
        return F.cross_entropy(logits.flatten(0, 1), now["y"][:, at].flatten())

    return loss


@torch.no_grad()
def scored(model: GPT) -> list[float]:
    """Nats of near and of far answers, after the stream has gone on for a while."""
    t, y, kind = stream(BATCH, TOLD, Generator().manual_seed(99))
    cache: dict[nn.Module, Kept] = {}
    logits = torch.stack([model(t[:, s], cache) for s in range(TOLD)], 1)[:, -SCORED:]
    lost = F.cross_entropy(logits.flatten(0, 2), y[:, -SCORED:].flatten(), reduction="none")
    return [round(lost[kind[:, -SCORED:].flatten() == n].mean().item(), 4) for n in (1, 2)]


def resized(model: GPT, core: Memorizing, m: int) -> list[float]:
    core.m = m
    try:
        return scored(model)
    finally:
        core.m = M


@torch.no_grad()
def shown(model: GPT, core: Memorizing) -> dict[str, Any]:
    """The last two segments of one stream: the tokens, and for each of them how far back every
    head's memories lie, with their scores."""
    t, _, kind = stream(1, TOLD, Generator().manual_seed(7))
    cache: dict[nn.Module, Kept] = {}
    seen: list[tuple[Tensor, Tensor]] = []

    def spy(Q: Tensor, keys: Tensor, k: int) -> tuple[Tensor, Tensor]:
        scores, at = nearest_pairs(Q, keys, k)
        seen.append((scores[0], keys.shape[2] - at[0] + torch.arange(L)[:, None]))
        return scores, at

    for s in range(TOLD - 2):
        model(t[:, s], cache)
    core.search, rows = spy, []
    for s in (TOLD - 2, TOLD - 1):
        model(t[:, s], cache)
        scores, back = seen[-1]
        for i in range(L):
            told = {"token": t[0, s, i].item(), "kind": kind[0, s, i].item()}
            said = scores[:, i].mul(100).round().div(100).tolist()
            rows.append({**told, "back": back[:, i].tolist(), "scores": said})
    core.search = nearest_pairs
    past = t[0, TOLD - 2 - M // L : TOLD].flatten().tolist()
    gates = core.b.sigmoid().mul(1000).round().div(1000).tolist()
    return {"rows": rows, "past": past, "gates": gates, "m": M, "k": K}


def runs() -> list[Run]:
    return [
        Run(name, {"m": m, "steps": STEPS}, seed)
        for seed in SEEDS
        for name, m in (("memory", M), ("no memory", 0))
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model = made(config["m"], seed)
    train(model, asked(), config["steps"], lr=RATE, seed=seed, progress=False)
    found: dict[str, Any] = {"nats": scored(model)}
    if config["m"]:
        core = remembering(model)
        found["sizes"] = [resized(model, core, m) for m in SIZES]
        found["gates"], found["tau"] = (
            x.detach().mul(1e3).round().div(1e3).tolist() for x in (core.b.sigmoid(), core.tau)
        )
        core.search = best_of_buckets
        found["buckets"] = scored(model)
        core.search = nearest_pairs
        if seed == SEEDS[0]:
            found["shown"] = shown(model, core)
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, one entry for each seed."""
    found: dict[str, Any] = {"memory": [], "no memory": []}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        found[x["run"]["name"]].append(x["result"])
    first = found["memory"][0].pop("shown")
    return {
        "title": "Facts asked for much later", "sizes": list(SIZES), "shown": first,
        "found": found, "symbols": [VALUES, NAMES, NOISE],
    }  # fmt: skip
