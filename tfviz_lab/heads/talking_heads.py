"""Are heads of size 4 better if they talk? A small GPT that reads English text.

    python -m tfviz_lab talking_heads    → results/talking_heads.json

The same width, budget and seeds, with 4 heads of 16 numbers or with 16 heads of 4. The score is
nats per character on held-out text, 32 characters at a time.

plain     multi-head attention
talking   both mixtures, of scores and of weights
matrices  P_l and P_w of the first layer, which began as the identity, of seed 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, nn

from tfviz import data
from tfviz.cores import Dense
from tfviz.heads.talking_heads import Talking
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.training import next_token, seeded, train
from tfviz_lab.heads.head_sharing import BATCH, RATE, WIDTH, count
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, LAYERS, LENGTH, ROWS = (0, 1, 2), 200, 2, 32, 256
SIZES = {16: 4, 4: 16}
"""heads → numbers in each"""


CORES: dict[str, Callable[..., Any]] = {
    "plain": Dense,
    "talking": Talking,
}
ASKED = [("plain", 16), ("talking", 16), ("plain", 4)]


def made(name: str, heads: int) -> GPT:
    vocab = len(data.characters()[1])
    return GPT(vocab, WIDTH, heads, LAYERS, positions=Learned(LENGTH, WIDTH), core=CORES[name])


@torch.no_grad()
def nats(model: nn.Module) -> float:
    """Nats per character on held-out text."""
    ids = data.split(data.characters()[0])[1]
    x, y = data.windows(ids, ROWS, LENGTH, Generator().manual_seed(1))
    return round(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item(), 4)


def runs() -> list[Run]:
    return [
        Run(f"{heads} heads, {name}", {"core": name, "heads": heads, "steps": STEPS}, seed)
        for name, heads in ASKED
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model: Any = seeded(seed, lambda: made(config["core"], config["heads"]))
    loss = next_token(data.split(data.characters()[0])[0], BATCH, LENGTH)
    train(model, loss, config["steps"], lr=RATE, seed=seed, progress=False)
    result: dict[str, Any] = {"score": nats(model), "parameters": count(model)}
    core = model.stack.blocks[0].attend.core
    if config["core"] == "talking" and seed == 0:
        for name in ("P_l", "P_w"):
            rows = getattr(core, name).tolist()
            result[name] = [[round(x, 3) for x in row] for row in rows]
    return result


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Scores by number of heads and by core, one for each seed."""
    scores: dict[str, dict[str, list[float]]] = {str(heads): {} for heads in SIZES}
    parameters: dict[str, dict[str, int]] = {str(heads): {} for heads in SIZES}
    matrices: dict[str, Any] = {}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config, result = x["run"]["config"], x["result"]
        heads, name = str(config["heads"]), config["core"]
        scores[heads].setdefault(name, []).append(result["score"])
        parameters[heads][name] = result["parameters"]
        if "P_l" in result:
            matrices[heads] = {P: result[P] for P in ("P_l", "P_w")}
    return {
        "unit": "nats per character",
        "steps": STEPS,
        "sizes": {str(heads): size for heads, size in SIZES.items()},
        "scores": scores,
        "parameters": parameters,
        "matrices": matrices,
    }
