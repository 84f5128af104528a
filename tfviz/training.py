"""One small training loop: seeded, budgeted in steps, resumed to the last bit after an interrupt.

    model = seeded(0, lambda: GPT(len(alphabet), 64, 4, 2, positions=Sinusoidal(64, scale=0.1)))
    losses = train(model, next_token(training, 32, 64), steps=300)

A loss is a function loss(model, rng, step) that draws its own batch with the generator it is given
and returns one number. With the same seed, versions and number of threads, training gives the same
bits, whether it was interrupted or not.

    >>> def loss(model, rng, step):  # y = 3x, without noise
    ...     x = torch.randn(16, 1, generator=rng)
    ...     return F.mse_loss(model(x), 3 * x)
    >>> line = seeded(0, lambda: nn.Linear(1, 1))
    >>> losses = train(line, loss, steps=200, lr=0.1, progress=False)
    >>> len(losses), losses[-1] < 1e-3, round(line.weight.item(), 1)
    (200, True, 3.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor, nn
from tqdm.auto import tqdm

from tfviz import _arguments, data
from tfviz._files import written_whole

Loss = Callable[[Any, Generator, int], Tensor]
"""loss(model, rng, step) -> one number; `step` counts from 0."""

AfterStep = Callable[[Any, int], object]
"""after_step(model, step), when the weights have been moved; what it answers is not used."""


class DivergenceError(ArithmeticError):
    """The loss, or its gradient, is not finite any more."""


T = TypeVar("T")


def seeded(seed: int, make: Callable[[], T]) -> T:
    """make() with torch's random numbers from this seed; those outside are left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def next_token(ids: Int[Tensor, "n"], b: int, L: int) -> Loss:
    """Nats per token of a model with causal attention, on b random windows of L tokens."""

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        x, y = data.windows(ids, b, L, rng)
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    return loss


def warm_up_then_down(step: int, steps: int, warm_up: int = 20) -> float:
    """What the learning rate is multiplied by: up in a line, then down in a line to 0."""
    return min(1.0, (step + 1) / warm_up) * (1 - step / steps)


def train(
    model: nn.Module,
    loss: Loss,
    steps: int,
    *,
    lr: float = 3e-3,
    seed: int = 0,
    schedule: Callable[[int, int], float] = warm_up_then_down,
    clip: float = 1.0,
    weight_decay: float = 0.01,
    after_step: AfterStep | None = None,
    checkpoint: Path | None = None,
    every: int = 100,
    progress: bool | None = None,
) -> list[float]:
    """Train `model` in place by AdamW for `steps` steps; the loss of each.

    Args:
        lr: the highest learning rate, multiplied by schedule(step, steps) in each step.
        seed: of the batches, and of torch's own random numbers within.
        clip: longest gradient; a longer one is shortened. math.inf: none is.
        weight_decay: that of AdamW; 0: plain Adam.
        after_step: after_step(model, step) is called after each step of AdamW, without gradients,
            for what is learned in another way: a moving average, or the bias that a router of
            experts gets for its choices. What it changes in the model's weights and buffers is
            resumed; what it keeps elsewhere is not.
        checkpoint: a file that is written every `every` steps and at the end. If it is there at the
            start, training goes on from it, and the result is the same to the last bit.
        progress: show a bar; None: only on a terminal.

    Raises DivergenceError if the loss or its gradient is NaN or infinite; the model, and a
    checkpoint if there is one, are as they were before that step. Raises ValueError for an argument
    out of range, and for a checkpoint that is of another run, or broken. Raises TypeError for an
    after_step that cannot be called; what it raises itself stays as it is.
    """
    _arguments.integer("steps", steps, 0)
    _arguments.integer("every", every, 1)
    _arguments.real("lr", lr, 0.0)
    _arguments.real("weight_decay", weight_decay, 0.0)
    if clip != math.inf and _arguments.real("clip", clip, 0.0) == 0:
        raise ValueError("clip = 0 leaves nothing of any gradient; choose clip > 0, or math.inf")
    if after_step is not None and not callable(after_step):
        raise TypeError(
            f"after_step = {after_step!r} cannot be called; give a function after_step(model, step)"
        )
    rates = [lr * _factor(schedule, step, steps) for step in range(steps)]
    optimiser = torch.optim.AdamW(model.parameters(), lr, weight_decay=weight_decay)
    run = {
        **{"steps": steps, "rate": lr, "seed": seed, "clip": clip, "decay": weight_decay},
        "rates": rates,
    }
    rng, losses = Generator().manual_seed(seed), list[float]()
    hidden = None if progress is None else not progress
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if checkpoint is not None and checkpoint.exists():
            losses = _resume(checkpoint, run, model, optimiser, rng)
        steps_left = range(len(losses), steps)
        bar = tqdm(steps_left, initial=len(losses), total=steps, disable=hidden, unit="step")
        for step in bar:
            for group in optimiser.param_groups:
                group["lr"] = rates[step]
            value = loss(model, rng, step)
            if not math.isfinite(value.item()):
                bar.close()
                raise DivergenceError(_diverged("loss", value, step, rates[step], losses))
            optimiser.zero_grad()
            value.backward()
            length = nn.utils.clip_grad_norm_(model.parameters(), clip)
            if not math.isfinite(length.item()):
                bar.close()
                what = f"loss is {value.item():.4g}, but the length of its gradient"
                raise DivergenceError(_diverged(what, length, step, rates[step], losses))
            optimiser.step()
            if after_step is not None:
                with torch.no_grad():
                    after_step(model, step)
            losses.append(value.item())
            bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            if checkpoint is not None and ((step + 1) % every == 0 or step + 1 == steps):
                _save(checkpoint, run, model, optimiser, rng, losses)
    return losses


@torch.no_grad()
def mean_loss(model: nn.Module, loss: Loss, batches: int = 8, seed: int = 1) -> float:
    """The mean of `loss` over batches that are the same for every model."""
    rng = Generator().manual_seed(seed)
    values = [loss(model, rng, 0) for _ in range(_arguments.integer("batches", batches, 1))]
    return torch.stack(values).mean().item()


def _factor(schedule: Callable[[int, int], float], step: int, steps: int) -> float:
    return _arguments.real(f"schedule({step}, {steps})", schedule(step, steps), 0.0)


def _diverged(what: str, value: Tensor, step: int, rate: float, losses: list[float]) -> str:
    last = f"; the last finite loss was {losses[-1]:.4g}" if losses else ""
    return (
        f"{what} is {value.item()} at step {step}, learning rate {rate:.3g}{last}. Lower the rate, "
        "warm up longer or clip the gradient shorter; if it is the first step, look at the data"
    )


def _save(
    path: Path,
    run: dict[str, Any],
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    rng: Generator,
    losses: list[float],
) -> None:
    state = {
        "run": run,
        "losses": losses,
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "rng": rng.get_state(),
        "torch": torch.get_rng_state(),
    }
    with written_whole(path) as file:
        torch.save(state, file)


def _resume(
    path: Path,
    run: dict[str, Any],
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    rng: Generator,
) -> list[float]:
    anew = "give another file, or remove it to begin anew"
    try:
        state = torch.load(path, weights_only=True)
        made, losses = state["run"], state["losses"]
        shapes = {name: tuple(x.shape) for name, x in state["model"].items()}
    except Exception as error:  # a pickle may fail in any way
        raise ValueError(
            f"checkpoint {path} cannot be read ({type(error).__name__}): it was cut short or "
            f"changed, or is not one of train; {anew}"
        ) from error
    other = {name: made.get(name) for name in run if made.get(name) != run[name]}
    if set(other) == {"rates"}:
        raise ValueError(f"checkpoint {path} is of a run with another schedule; {anew}")
    if other:
        other.pop("rates", None)
        mine = {name: run[name] for name in other}
        raise ValueError(f"checkpoint {path} is of a run with {other}, this one has {mine}; {anew}")
    if shapes != {name: tuple(x.shape) for name, x in model.state_dict().items()}:
        raise ValueError(f"checkpoint {path} is of a model with other weights; {anew}")
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    rng.set_state(state["rng"])
    torch.set_rng_state(state["torch"])
    return list(losses)
