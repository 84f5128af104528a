"""Order of norms: gradients before training, losses after it, and blocks with a part left out.

    python -m tfviz_lab norm_order       measures again and rewrites the stored result

A GPT on characters of Python's help texts. Pre-norm and post-norm at several depths, each with and
without warm-up of the learning rate, without clipping of gradients, so that nothing else helps.
Then four blocks with one part missing, and what the gradients of all layers are before step 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import data
from tfviz.basics.layer_norm_pre_post import no_norm, post_norm, pre_norm, pre_norm_no_skip
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.training import (
    DivergenceError,
    mean_loss,
    next_token,
    seeded,
    train,
    warm_up_then_down,
)
from tfviz_lab.runner import Done, Run

D, H, L, BATCH, STEPS, WARM_UP = 32, 4, 32, 16, 200, 40
RATES, DEPTHS, SEEDS = (3e-3, 1e-2), (2, 6, 12), (0, 1, 2)
BEGIN_D, BEGIN_DEPTHS, BEGIN_SEEDS = 64, (2, 6, 12, 18), tuple(range(6))
ORDERS: dict[str, Callable[..., Tensor]] = {
    "pre-norm": pre_norm,
    "post-norm": post_norm,
    "no norm": no_norm,
    "no skip": pre_norm_no_skip,
}
NEVER = 1e9
"""A length that no gradient reaches: no clipping."""


class Silent(nn.Module):
    """In place of a module: it adds nothing."""

    def forward(self, X: Tensor) -> Tensor:
        return torch.zeros_like(X)


def model(order: str, N: int, seed: int, d: int = D, phi: Any = nn.GELU) -> GPT:
    """A GPT on characters, made with this seed."""
    vocab = len(data.characters()[1])
    positions = Sinusoidal(d, scale=d**-0.5)
    return seeded(
        seed, lambda: GPT(vocab, d, H, N, positions=positions, order=ORDERS[order], phi=phi)
    )


def at_the_start(order: str, N: int, seed: int) -> dict[str, list[float]]:
    """Of every layer before training: ‖∂loss/∂W_2‖, and the stream's root mean square."""
    gpt = model(order, N, seed, BEGIN_D)
    ids, _ = data.split(data.characters()[0])
    x, y = data.windows(ids, 4, 64, torch.Generator().manual_seed(seed))
    sizes: list[float] = []
    X = gpt.embed(x)
    for block in gpt.stack.blocks:
        X = block(X)
        sizes.append(X.detach().square().mean().sqrt().item())
    logits = gpt.stack.norm(X) @ gpt.embed.weight.T
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    W_2 = [gpt.get_parameter(f"stack.blocks.{n}.feed.W_2.weight") for n in range(N)]
    slopes = [g.norm().item() for g in torch.autograd.grad(loss, W_2)]
    return {"weights": _short(slopes), "stream": _short(sizes)}


def fit(gpt: GPT, seed: int, rate: float, warm_up: int, steps: int = STEPS) -> dict[str, Any]:
    """The loss on held-out text, in nats per character; None if it was no finite number."""
    training, held_out = data.split(data.characters()[0])
    try:
        losses = train(
            gpt,
            next_token(training, BATCH, L),
            steps,
            lr=rate,
            seed=seed,
            clip=NEVER,
            progress=False,
            schedule=lambda step, steps: warm_up_then_down(step, steps, warm_up),
        )
        loss = mean_loss(gpt, next_token(held_out, 64, L), batches=4)
    except DivergenceError:
        return {"loss": None, "on_the_way": []}
    way = torch.tensor(losses).view(10, -1).mean(1)
    return {"loss": round(loss, 4), "on_the_way": _short(way.tolist())}


PARTS = ("whole", "no φ", "no feed-forward", "no skip", "no norm")
PARTS_N = 6


def without(part: str, seed: int, steps: int = STEPS) -> dict[str, Any]:
    """A pre-norm GPT of six blocks with one part left out, trained with warm-up."""
    order = part if part in ORDERS else "pre-norm"
    gpt = model(order, PARTS_N, seed, phi=nn.Identity if part == "no φ" else nn.GELU)
    if part == "no feed-forward":
        for block in gpt.stack.blocks:
            block.feed = Silent()
    return fit(gpt, seed, max(RATES), WARM_UP, steps)


def _short(values: list[float]) -> list[float]:
    return [float(f"{x:.4g}") for x in values]


def _name(order: str, N: int, rate: float, warm_up: int) -> str:
    return f"{order}, N {N}, rate {rate}, warm-up {warm_up}"


def runs() -> list[Run]:
    return (
        [
            Run(f"start, {order}, N {N}", {"start": order, "N": N}, seed)
            for order in ("pre-norm", "post-norm")
            for N in BEGIN_DEPTHS
            for seed in BEGIN_SEEDS
        ]
        + [
            Run(
                _name(order, N, rate, warm_up),
                {"order": order, "N": N, "rate": rate, "warm_up": warm_up, "steps": STEPS},
                seed,
            )
            for order in ("pre-norm", "post-norm")
            for rate in RATES
            for warm_up in (1, WARM_UP)
            for N in DEPTHS
            for seed in SEEDS
        ]
        + [
            Run(f"part: {part}", {"part": part, "steps": STEPS}, seed)
            for part in PARTS
            for seed in SEEDS
        ]
    )


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if "start" in config:
        return at_the_start(config["start"], config["N"], seed)
    if "part" in config:
        return without(config["part"], seed, config["steps"])
    gpt = model(config["order"], config["N"], seed)
    return fit(gpt, seed, config["rate"], config["warm_up"], config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Losses [seed][depth] by rate, order, warm-up; the start [depth][seed] by order; parts."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    orders = ("pre-norm", "post-norm")
    return {
        "depths": list(DEPTHS),
        "trained": {
            str(rate): {
                f"{order}, {'warm-up' if warm_up > 1 else 'no warm-up'}": [
                    [found[_name(order, N, rate, warm_up), seed]["loss"] for N in DEPTHS]
                    for seed in SEEDS
                ]
                for order in orders
                for warm_up in (1, WARM_UP)
            }
            for rate in RATES
        },
        "start": {
            order: {
                str(N): [found[f"start, {order}, N {N}", seed] for seed in BEGIN_SEEDS]
                for N in BEGIN_DEPTHS
            }
            for order in orders
        },
        "parts": {part: [found[f"part: {part}", seed] for seed in SEEDS] for part in PARTS},
        "settings": {
            "d": D, "h": H, "L": L, "batch": BATCH, "steps": STEPS,
            "warm_up": WARM_UP, "parts_N": PARTS_N, "start_d": BEGIN_D,
        },
    }  # fmt: skip
