"""What a memory of earlier segments is good for, and what is lost when it is squeezed.

start     nats by place in a segment of 32 characters, with and without memory, with distances and
          with places counted anew in each segment; and with other memories than in training
squeeze   rows of a trained model, four to one by each function: how far the attention's answer and,
          after a decoder has learned to restore them, the rows are off, ÷ their own length
equal     nats with 32 slots of memory: all for single rows, or half for squeezed ones

python -m tfviz_lab segment_memory    → results/segment_memory.json
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfviz import data
from tfviz.cores import Dense
from tfviz.longer_context import compressive_transformer as squeezing
from tfviz.longer_context.transformer_xl_recurrence import (
    Recurrent,
    next_token_in_segments,
    streams,
    transformer_xl,
)
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import sinusoids
from tfviz.training import seeded, train
from tfviz_lab.runner import Done, Run

SEEDS, STEPS, FEW = (0, 1, 2), 400, 300
PACKAGES = ["torch", "numpy"]
L, WIDTH, HEADS, LAYERS, BATCH, C, SKIPPED = 32, 64, 4, 2, 16, 4, 5
SHORT = 16  # segments of `equal`


def counted_anew(i: Tensor) -> Tensor:
    """Places 0 … L − 1 in every segment, as a model without memory counts them."""
    return sinusoids(i % L, WIDTH) / WIDTH**0.5


ANEW = {"positions": counted_anew, "core": Dense}
STARTS: dict[str, tuple[int, dict[str, Any]]] = {
    "no memory": (0, {}),
    "memory": (32, {}),
    "no memory, places counted anew": (0, ANEW),
    "memory, places counted anew": (32, ANEW),
}
READ_WITH = (0, 8, 32, 64, 128)
FIXED: dict[str, squeezing.Compress] = {
    "newest": squeezing.newest,
    "max": squeezing.max_pool,
    "mean": squeezing.mean_pool,
    "most used": squeezing.most_used,
}


def convolution() -> squeezing.Conv:
    """With the weights of the stored runs, which drew those of an attention behind each of them."""
    made = squeezing.Conv(WIDTH, C)
    MultiHeadAttention(WIDTH, HEADS)
    return made


EQUALS: dict[str, tuple[int, int, Callable[[], squeezing.Compress]]] = {
    "16 rows": (16, 0, lambda: squeezing.mean_pool),
    "32 rows": (32, 0, lambda: squeezing.mean_pool),
    "16 rows, 16 means": (16, 16, lambda: squeezing.mean_pool),
    "16 rows, 16 by convolution": (16, 16, convolution),
}


def texts() -> tuple[Tensor, Tensor]:
    return data.split(data.characters()[0])


def made(m: int, **more: Any) -> GPT:
    return transformer_xl(len(data.characters()[1]), WIDTH, HEADS, LAYERS, m, **more)


@torch.no_grad()
def by_place(model: GPT, length: int = L) -> list[float]:
    """Nats at each place of a segment, of held-out text that streams by."""
    rows, cache, found = streams(texts()[1], BATCH), dict[Any, Any](), list[Tensor]()
    for at in range(0, rows.shape[1] - length, length):
        x, y = rows[:, at : at + length], rows[:, at + 1 : at + length + 1]
        nats = F.cross_entropy(model(x, cache).flatten(0, 1), y.flatten(), reduction="none")
        found.append(nats.view(BATCH, length))
    return [round(x, 4) for x in torch.cat(found[SKIPPED:]).mean(0).tolist()]


def start(variant: str, seed: int, steps: int) -> dict[str, Any]:
    m, more = STARTS[variant]
    model = seeded(seed, lambda: made(m, **more))
    train(model, next_token_in_segments(texts()[0], BATCH, L), steps, seed=seed, progress=False)
    found: dict[str, Any] = {"by_place": by_place(model)}
    if variant == "memory":
        found["read_with"] = []
        for other in READ_WITH:
            for module in model.modules():
                if isinstance(module, Recurrent):
                    module.m = other
            nats = by_place(model)
            found["read_with"].append(round(sum(nats) / L, 4))
    return found


def off(a: Tensor, b: Tensor) -> Tensor:
    """|a − b| ÷ |b|."""
    return (a - b).norm() / b.norm()


def memories(reader: GPT, ids: Tensor, count: int = 40) -> list[dict[Any, squeezing.Queues]]:
    """What left each layer's memory in so many calls, with who read it then and how much."""
    rows, cache, seen = streams(ids, BATCH), dict[Any, Any](), []
    with torch.no_grad():
        for segment in rows[:, : (count + 3) * L].split(L, 1):
            reader(segment, cache)
            seen.append(dict(squeezing.squeezed_now(cache)))
    return seen[3:]


class Layer:
    """One attention of a trained model, and the memories that it was given."""

    def __init__(self, attend: Any, known: Sequence[Any], new: Sequence[Any], seed: int) -> None:
        self.attend, self.seed = attend, seed
        self.known, self.new = ([x[attend] for x in seen] for seen in (known, new))

    def answer(self, q: squeezing.Queues, rows: Tensor) -> Tensor:
        return squeezing.content_attention(self.attend, q.asked, rows)

    def taught(self, loss: Callable[[squeezing.Queues], Tensor], few: int, *parts: Any) -> None:
        def drawn(model: nn.Module, rng: torch.Generator, step: int) -> Tensor:
            return loss(self.known[int(torch.randint(len(self.known), (), generator=rng))])

        train(nn.ModuleList(parts), drawn, few, seed=self.seed, progress=False)

    def decoder(self) -> nn.ConvTranspose1d:
        return seeded(self.seed, lambda: nn.ConvTranspose1d(WIDTH, WIDTH, C, C))

    def convolution(self, few: int, by: str, dilated: bool = False) -> squeezing.Conv:
        """f_c that has learned from one of the two losses."""
        f, g = seeded(self.seed, lambda: squeezing.Conv(WIDTH, C, dilated=dilated)), self.decoder()
        if by == "rows":
            self.taught(lambda q: squeezing.distance(g(f(q.left).mT).mT, q.left), few, f, g)
        else:
            both = lambda q: (self.answer(q, f(q.left)), self.answer(q, q.left))  # noqa: E731
            self.taught(lambda q: squeezing.distance(*both(q)), few, f)
        return f

    def lost(self, f: squeezing.Compress, few: int) -> list[float]:
        """[answer off, rows off] on new text; a decoder learns first to restore what f squeezes."""
        g = self.decoder()
        small = lambda q: f(q.left, q.left_usage, C).detach()  # noqa: E731
        self.taught(lambda q: squeezing.distance(g(small(q).mT).mT, q.left), few, g)
        with torch.no_grad():
            answers = [off(self.answer(q, small(q)), self.answer(q, q.left)) for q in self.new]
            rows = [off(g(small(q).mT).mT, q.left) for q in self.new]
        return [torch.stack(x).mean().item() for x in (answers, rows)]


def squeeze(seed: int, steps: int, few: int = FEW) -> dict[str, list[float]]:
    """{function: [answer off, rows off]}, the mean of both layers, on held-out text."""
    model = seeded(seed, lambda: made(32))
    train(model, next_token_in_segments(texts()[0], BATCH, L), steps, seed=seed, progress=False)
    sizes: dict[str, Any] = {"m": 32, "m_c": 0, "c": C, "compress": lambda: squeezing.most_used}
    vocab = len(data.characters()[1])
    reader = squeezing.compressive_gpt(vocab, WIDTH, HEADS, LAYERS, **sizes)
    reader.load_state_dict(model.state_dict())
    known, new = (memories(reader, ids) for ids in texts())
    layers = [Layer(attend, known, new, seed) for attend in known[0]]
    found: dict[str, list[list[float]]] = {}
    for layer in layers:
        learned: dict[str, squeezing.Compress] = {
            "conv by attention": layer.convolution(few, "attention"),
            "conv by rows": layer.convolution(few, "rows"),
            "dilated by attention": layer.convolution(few, "attention", dilated=True),
        }
        for name, f in {**FIXED, **learned}.items():
            found.setdefault(name, []).append(layer.lost(f, few))
    mean = {name: torch.tensor(x).mean(0).tolist() for name, x in found.items()}
    return {name: [round(x, 4) for x in pair] for name, pair in mean.items()}


def equal(variant: str, seed: int, steps: int) -> float:
    """Nats per character; f_c learns beside the model, from its own loss."""
    (m, m_c, compress), vocab = EQUALS[variant], len(data.characters()[1])
    sizes: dict[str, Any] = {"m": m, "m_c": m_c, "c": C, "compress": compress}
    make = squeezing.compressive_gpt
    model = seeded(seed, lambda: make(vocab, WIDTH, HEADS, LAYERS, **sizes))
    besides = squeezing.attention_reconstruction if "convolution" in variant else None
    loss = next_token_in_segments(texts()[0], BATCH, SHORT, besides)
    train(model, loss, steps, seed=seed, clip=math.inf, progress=False)
    nats = by_place(model, SHORT)
    return round(sum(nats) / SHORT, 4)


def runs() -> list[Run]:
    kinds = [(f"start, {name}", {"start": name}) for name in STARTS] + [("squeeze", {})]
    kinds += [(f"equal, {name}", {"equal": name}) for name in EQUALS]
    return [Run(n, {**c, "steps": STEPS}, seed) for seed in SEEDS for n, c in kinds]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if "start" in config:
        return start(config["start"], seed, config["steps"])
    if "equal" in config:
        return {"nats": equal(config["equal"], seed, config["steps"])}
    return squeeze(seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant or function, one entry for each seed."""
    found: dict[str, Any] = {"start": {}, "squeeze": {}, "equal": {}, "read_with": []}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config, result = x["run"]["config"], x["result"]
        if "start" in config:
            found["start"].setdefault(config["start"], []).append(result["by_place"])
            found["read_with"] += [result["read_with"]] if "read_with" in result else []
        elif "equal" in config:
            found["equal"].setdefault(config["equal"], []).append(result["nats"])
        else:
            for name, pair in result.items():
                found["squeeze"].setdefault(name, []).append(pair)
    return {"title": "Memory of earlier segments", "memories": list(READ_WITH), **found}
