"""Rotary weights trained with one pairing of the features, and run with the other.

    python -m tfviz_lab rotary_pairings     trains again and rewrites the stored result

The model of `rotary`, trained with neighbours, (2m, 2m + 1). Its weights then run in code that
pairs (m, m + d/2), as they are and with the columns of W^q and W^k in the other order.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from tfviz import data
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.gpt import GPT
from tfviz.position.rope import halves_order
from tfviz.training import mean_loss, next_token, train
from tfviz_lab.position.rotary import BATCH, D_HEAD, LENGTH, RATE, STEPS, Halves, with_positions
from tfviz_lab.position.rotary import model as rotary_model
from tfviz_lab.runner import Done, Run


def reordered(trained: GPT) -> GPT:
    """A copy whose queries and keys have all even features first, as code of halves wants them."""
    changed = deepcopy(trained)
    for module in changed.modules():
        if isinstance(module, MultiHeadAttention):
            for W in (module.W_qkv.weight.data, module.W_qkv.bias.data):
                heads = W.view(3, module.h, module.d_head, -1)  # of Q, K, V
                heads[:2] = heads[:2, :, halves_order(module.d_head)].clone()
    return changed


def runs() -> list[Run]:
    return [Run("neighbours", {"steps": STEPS}, seed) for seed in (0, 1, 2)]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    ids, alphabet = data.characters()
    training, held_out = data.split(ids)
    made = rotary_model(len(alphabet), seed=seed)
    train(
        made, next_token(training, BATCH, LENGTH), config["steps"], lr=RATE, seed=seed,
        progress=False,
    )  # fmt: skip
    asked = next_token(held_out, BATCH, LENGTH)
    ways = {
        "as trained": made,
        "in the code of the halves": with_positions(made, lambda: Halves(D_HEAD)),
        "reordered for it": with_positions(reordered(made), lambda: Halves(D_HEAD)),
    }
    return {name: mean_loss(way, asked) for name, way in ways.items()}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By way, one loss for each seed, in nats per held-out character."""
    results = [x["result"] for x in sorted(done, key=lambda x: x["run"]["seed"])]
    return {"loss": {name: [x[name] for x in results] for name in results[0]}}
