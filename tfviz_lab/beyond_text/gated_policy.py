"""A policy that learns from rewards alone, with a gate after each sublayer, or none.

    python -m tfviz_lab gated_policy    → results/gated_policy.json

An episode has eight steps. Step 0 shows a cue, steps 1 to 6 show symbols, and step 7 shows a door.
The right action at a cue or a symbol is its own number; at the door it is the number of the cue.
The agent is told only whether the action that it drew was right. What it does changes nothing of
what it sees next, so each action answers for its own reward (REINFORCE; the mean reward of the
step is subtracted). It reads four steps at a time: the cue reaches the door through the
memory only. Every model is a Transformer-XL of six blocks.

react       share of right actions at steps 0 to 6, by tens of training steps
recall      the same at the door
held_out    both after training, in new episodes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tfviz.beyond_text.gtrxl import gated, reordered
from tfviz.longer_context.transformer_xl_recurrence import transformer_xl
from tfviz.models.blocks import Order, post_norm
from tfviz.models.gpt import GPT
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
SEEDS, STEPS, WINDOW = (0, 1, 2), 120, 10
ACTIONS, EPISODE, SEGMENT = 4, 8, 4
WIDTH, HEADS, BLOCKS, BATCH, RATE = 32, 4, 6, 32, 3e-3
DOOR, VOCAB = 2 * ACTIONS, 2 * ACTIONS + 1
NEW = 512

VARIANTS: dict[str, Callable[[], Order]] = {
    "post-norm": lambda: post_norm,
    "TrXL-I": lambda: reordered,
    "input": lambda: gated("input"),
    "output": lambda: gated("output"),
    "highway": lambda: gated("highway"),
    "SigTanh": lambda: gated("sigtanh"),
    "GRU, b = 2": lambda: gated("gru"),
    "GRU, b = 0": lambda: gated("gru", 0.0),
    "GRU, b = 1": lambda: gated("gru", 1.0),
}


def episodes(n: int, rng: Generator) -> tuple[Tensor, Tensor]:
    """What is seen, and the right actions, (n, EPISODE) both. A cue is a number of its own."""
    right = torch.randint(ACTIONS, (n, EPISODE), generator=rng)
    seen = right.clone()
    seen[:, 0] += ACTIONS
    seen[:, -1], right[:, -1] = DOOR, right[:, 0]
    return seen, right


def policy(model: nn.Module, seen: Tensor) -> Tensor:
    """Logarithms of the probabilities of all actions, segment by segment."""
    cache = dict[Any, Any]()
    logits = [model(segment, cache)[..., :ACTIONS] for segment in seen.split(SEGMENT, 1)]
    return torch.cat(logits, 1).log_softmax(-1)


def reinforced(log_p: Tensor, right: Tensor, rng: Generator) -> tuple[Tensor, Tensor]:
    """The loss of actions that are drawn here, and their rewards."""
    drawn = torch.multinomial(log_p.detach().exp().flatten(0, 1), 1, generator=rng)
    action = drawn.view_as(right)
    reward = (action == right).float()
    advantage = reward - reward.mean(0)
    return -(advantage * log_p.gather(-1, action[..., None])[..., 0]).mean(), reward


def learned(variant: str, seed: int, steps: int) -> dict[str, Any]:
    order = VARIANTS[variant]()
    model: GPT = seeded(
        seed,
        lambda: transformer_xl(
            VOCAB, WIDTH, HEADS, BLOCKS, SEGMENT, order=order, phi=nn.ReLU, d_ff=2 * WIDTH
        ),
    )
    react, recall = list[float](), list[float]()

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        seen, right = episodes(BATCH, rng)
        value, reward = reinforced(policy(model, seen), right, rng)
        react.append(reward[:, :-1].mean().item())
        recall.append(reward[:, -1].mean().item())
        return value

    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    rng = torch.Generator().manual_seed(1000 + seed)
    seen, right = episodes(NEW, rng)
    with torch.no_grad():
        hit = (policy(model, seen).argmax(-1) == right).float()
    return {
        "react": by_window(react),
        "recall": by_window(recall),
        "held_out": [round(hit[:, :-1].mean().item(), 4), round(hit[:, -1].mean().item(), 4)],
        "weights": sum(p.numel() for p in model.parameters()),
    }


def by_window(values: list[float]) -> list[float]:
    means = torch.tensor(values).view(-1, WINDOW).mean(1)
    return [round(x, 4) for x in means.tolist()]


def runs() -> list[Run]:
    return [
        Run(variant, {"variant": variant, "steps": STEPS}, seed)
        for variant in VARIANTS
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    return learned(config["variant"], seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, each a list over seeds."""
    by_run = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    return {
        name: {
            variant: [by_run[variant, seed][name] for seed in SEEDS] for variant in VARIANTS
        }
        for name in ("react", "recall", "held_out")
    } | {
        "weights": {variant: by_run[variant, SEEDS[0]]["weights"] for variant in VARIANTS},
        "windows": [WINDOW * (n + 1) for n in range(STEPS // WINDOW)],
        "settings": {"steps": STEPS, "batch": BATCH, "blocks": BLOCKS, "actions": ACTIONS},
    }  # fmt: skip
