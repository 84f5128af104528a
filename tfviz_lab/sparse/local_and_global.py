"""What windows and global tokens can and cannot do: two tasks whose answer lies far away.

copy        name the symbol D tokens back, through N layers of a window of w/2 on each side:
            if D > N · w/2, no way leads there; else one does, and training has to find it
sentence    which of eight sentences holds the X? Read where each sentence begins, or at a
            global token for each, with and without masks or labels that say which is whose

python -m tfviz_lab local_and_global    → results/local_and_global.json
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz.patterns import Pattern, band, dilated, longformer
from tfviz.sparse import etc
from tfviz.training import seeded
from tfviz.training import train as fit
from tfviz_lab.runner import Done, Run
from tfviz_lab.sparse import recall

SEEDS, STEPS, LAST = (0, 1, 2), 400, 50
PACKAGES = ["torch", "numpy"]

# --- copy -----------------------------------------------------------------------------------------
LENGTH, RADIUS = 24, 4
STACKS: dict[str, tuple[Pattern, ...]] = {
    "1 layer": (band(radius=RADIUS),),
    "2 layers": 2 * (band(radius=RADIUS),),
    "3 layers": 3 * (band(radius=RADIUS),),
    "2 layers, gap 2 above": (band(radius=RADIUS), dilated(radius=RADIUS, dilation=2)),
    "2 layers, global token": 2 * (longformer(radius=RADIUS, n_global=1),),
}
DISTANCES = {  # as far as a way leads, one further, and some on the way
    "1 layer": (2, 4, 5),
    "2 layers": (4, 6, 8, 9),
    "3 layers": (8, 9, 10, 12, 13),
    "2 layers, gap 2 above": (8, 12, 13),
    "2 layers, global token": (8, 12, 16),
}

# --- sentence -------------------------------------------------------------------------------------
SENTENCES, WORDS, SYMBOLS = 8, 16, 12
WINDOW, LAYERS, WIDTH, HEADS, BATCH = 2, 2, 32, 2, 32
LENGTHS = SENTENCES * [WORDS]
X = 0
VARIANTS = ("no global tokens", "global tokens", "and labels", "and hard masks")


class Layer(nn.Module):
    """ETC's attention and a feed-forward network, each with a skip, for both inputs."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.norm, self.variant = nn.LayerNorm(WIDTH), variant
        far = WINDOW
        self.P = nn.Parameter(torch.randn(HEADS, 4 * far + 6, WIDTH // HEADS) / 4)
        labels = etc.sentence_labels(LENGTHS, WINDOW, far)
        if variant != "and labels":  # all pairs of two kinds are alike
            labels = labels._replace(g2l=0 * labels.g2l, l2g=0 * labels.l2g, g2g=0 * labels.g2g)
        self.labels = labels
        masks = etc.sentence_masks(LENGTHS, WINDOW)
        open_ = etc.Pieces(*(torch.ones_like(m) for m in masks))
        self.masks = {
            "no global tokens": open_._replace(l2g=0 * masks.l2g == 1, g2l=0 * masks.g2l == 1),
            "and hard masks": masks,
        }.get(variant, open_)

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        heads = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        G, L = heads.split([SENTENCES, SENTENCES * WORDS], -2)
        K, V = (etc.shared(G[n], L[n]) for n in (1, 2))
        both = etc.etc_attention(G[0], L[0], K, V, WINDOW, self.labels, self.P, self.masks)
        x = x + self.out(torch.cat(both, 2).transpose(1, 2).flatten(2))
        return x + self.feed(x)


class Finder(nn.Module):
    """A score for each sentence, at its global token or at its first word. No positions but the
    distances in windows: where a word stands, only labels and masks can tell."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.symbol = nn.Embedding(SYMBOLS, WIDTH)
        self.sentence = nn.Parameter(torch.randn(WIDTH))
        self.first = nn.Parameter(torch.randn(WIDTH))
        self.layers = nn.Sequential(*(Layer(variant) for _ in range(LAYERS)))
        self.score = nn.Linear(WIDTH, 1)
        self.local = variant == "no global tokens"

    def forward(self, words: Int[Tensor, "b n"]) -> Float[Tensor, "b sentences"]:
        long = self.symbol(words).unflatten(1, (SENTENCES, WORDS))
        long = torch.cat([long[:, :, :1] + self.first, long[:, :, 1:]], 2).flatten(1, 2)
        x = self.layers(torch.cat([self.sentence.expand(len(words), SENTENCES, -1), long], 1))
        at = x[:, SENTENCES::WORDS] if self.local else x[:, :SENTENCES]
        return self.score(at).squeeze(-1)


def texts(rng: Generator, b: int = BATCH) -> tuple[Tensor, Tensor]:
    """Words without X but one, and its place."""
    words = torch.randint(1, SYMBOLS, (b, SENTENCES * WORDS), generator=rng)
    place = torch.randint(SENTENCES * WORDS, (b,), generator=rng)
    return words.scatter(1, place[:, None], X), place


def find(variant: str, seed: int, steps: int) -> float:
    """The share of right answers in new texts, after training."""
    model = seeded(seed, lambda: Finder(variant))

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        words, place = texts(rng)
        return F.cross_entropy(model(words), place // WORDS)

    fit(model, loss, steps, seed=seed, progress=False)
    words, place = texts(torch.Generator().manual_seed(1000 + seed), 1000)
    with torch.no_grad():
        right = model(words).argmax(-1) == place // WORDS
    return round(right.float().mean().item(), 3)


def runs() -> list[Run]:
    """Every stack at every distance, and every variant, on every seed."""
    copies = [
        (f"{name}, {D} back", {"stack": name, "D": D}) for name in STACKS for D in DISTANCES[name]
    ]
    finds = [(name, {"variant": name}) for name in VARIANTS]
    return [Run(n, {**c, "steps": STEPS}, seed) for seed in SEEDS for n, c in copies + finds]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    """The share of right answers."""
    if "variant" in config:
        return {"right": find(config["variant"], seed, config["steps"])}
    asked = LENGTH - 1 - config["D"]
    right = recall.train(STACKS[config["stack"]], LENGTH, asked, config["steps"], seed)
    return {"right": round(sum(right[-LAST:]) / LAST, 3)}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{"copy": {stack: [share at each distance] of each seed}, "sentence": {variant: [share]}}."""
    copy: dict[str, list[list[float]]] = {name: [[] for _ in SEEDS] for name in STACKS}
    sentence: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for x in sorted(done, key=lambda x: (x["run"]["seed"], x["run"]["config"].get("D", 0))):
        config, right = x["run"]["config"], x["result"]["right"]
        if "variant" in config:
            sentence[config["variant"]].append(right)
        else:
            copy[config["stack"]][SEEDS.index(x["run"]["seed"])].append(right)
    return {
        "title": "Windows and global tokens: copy from afar, find the sentence",
        "distances": {name: list(D) for name, D in DISTANCES.items()},
        "copy": copy,
        "sentence": sentence,
    }
