"""One comparison for every mechanism: same model, same budget, same seeds, parameters counted.

    compare({"none": lambda: {}, "rotary": lambda: {"core": lambda: Rope(16)}}, tasks=("recall",))

A variant is a function without arguments that gives what is told to the model besides its sizes:
the options `core`, `positions` and `pattern` of a GPT, where `pattern` may be a list with one for
each layer. Or it makes a core, and then it is what `core` wants. Variants with the same seed begin
with the same other weights and see the same batches. The tasks:

    text      nats per character of English text, trained on 64 characters
    recall    nats per symbol: in a row of random symbols, name the one BACK places before
    digits    nats per pixel of 8×8 handwritten digits, row by row, each from those before it

Scores of text and recall are lists, one number for each of LENGTHS, measured on the last SCORED
places: a longer row gives more context before the same answers. None beyond a learned table's end.

    >>> found = compare({"none": lambda: {}}, tasks=("recall",), seeds=(0,), steps=2)
    >>> found["parameters"], len(found["scores"]["recall"]["none"][0])
    ({'recall': {'none': 100608}}, 7)

A stored experiment is three names, which the runner looks for in a module:

    runs, measure, collect = experiment(VARIANTS, tasks=("text", "recall"))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.experiments import provenance
from tfviz.experiments.runner import Done, Run
from tfviz.models.blocks import Block, Stack
from tfviz.models.gpt import GPT
from tfviz.patterns import Pattern, causal
from tfviz.position.learned_pe import Learned
from tfviz.training import Loss, next_token, seeded, train

Variant = Callable[[], Any]
SEEDS = (0, 1, 2)

# --- text and recall: a GPT trained on 64 places, asked with up to 512 ----------------------------

LENGTHS, TRAIN_LENGTH, SCORED, ROWS = (16, 32, 64, 96, 128, 256, 512), 64, 16, 64
LAYERS, HEADS, WIDTH, BATCH, RATE = 2, 4, 64, 16, 3e-3
SYMBOLS, BACK = 8, 12


def symbols_back(b: int, L: int, rng: Generator) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"]]:
    """(rows, answers): random symbols, and at place t the symbol of place t − BACK.

    −100, which is not scored, where there is none.
    """
    rows = torch.randint(SYMBOLS, (b, L), generator=rng)
    answers = torch.full_like(rows, -100)
    answers[:, BACK:] = rows[:, :-BACK]
    return rows, answers


def recall_loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    """Nats per recalled symbol, on a batch of new rows."""
    x, y = symbols_back(BATCH, TRAIN_LENGTH, rng)
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def examined(task: str, rows: int = ROWS) -> tuple[Int[Tensor, "rows L"], Int[Tensor, "rows L"]]:
    """(x, y) of the longest length, never trained on; shorter ones are their ends."""
    rng = Generator().manual_seed(1)
    if task == "text":
        return data.windows(data.split(data.characters()[0])[1], rows, max(LENGTHS), rng)
    return symbols_back(rows, max(LENGTHS), rng)


@torch.no_grad()
def nats(
    model: nn.Module, task: str, x: Int[Tensor, "rows L"], y: Int[Tensor, "rows L"], length: int
) -> Float[Tensor, ""]:
    """Mean −ln p of the last SCORED answers when only the last `length` tokens are there."""
    x, y = x[:, -length:], y[:, -length:]
    if task == "recall":
        y = y.masked_fill(torch.arange(length) < BACK, -100)
    scored = [
        F.cross_entropy(model(rows)[:, -SCORED:].flatten(0, 1), answers.flatten(), reduction="sum")
        for rows, answers in zip(x.split(16), y[:, -SCORED:].split(16), strict=True)
    ]
    return torch.stack(scored).sum() / (y[:, -SCORED:] >= 0).sum()


def by_length(task: str, model: nn.Module) -> list[float | None]:
    """nats at each of LENGTHS; None where a learned table has no row left."""
    x, y = examined(task)
    ends = [len(module.P) for module in model.modules() if isinstance(module, Learned)]
    known = [length <= min(ends, default=length) for length in LENGTHS]
    return [
        round(nats(model, task, x, y, length).item(), 4) if reached else None
        for length, reached in zip(LENGTHS, known, strict=True)
    ]


# --- digits: pixel by pixel -----------------------------------------------------------------------

SIDE, LEVELS, TEST = 8, 17, 397
PIXELS, PIXEL_WIDTH, PIXEL_BATCH = SIDE * SIDE, 48, 32


def blocks_without_bias(layers: Sequence[Pattern], d: int, h: int, **attention: Any) -> Stack:
    """A pre-norm stack with a pattern for each layer, whose attention has no biases.

    Weights are drawn in the order in which they are used.
    """
    with torch.random.fork_rng(devices=[]):
        stack = Stack(len(layers), d, h, layer=lambda n: {"pattern": layers[n]}, **attention)
    for block in stack.blocks:
        assert isinstance(block, Block)
        attend = block.attend
        attend.W_qkv = nn.Linear(d, sum(attend.widths), bias=False)
        attend.W_o = nn.Linear(d, d, bias=False)
        for name in ("W_1", "W_2"):
            cast(nn.Linear, block.feed.get_submodule(name)).reset_parameters()
    return stack


class PixelTransformer(nn.Module):
    """Logits of each pixel from the pixels before it; input 0 is a start symbol."""

    def __init__(
        self, pattern: Sequence[Pattern] = LAYERS * (causal(),), positions: Any = None, **more: Any
    ) -> None:
        super().__init__()
        self.level = nn.Embedding(LEVELS + 1, PIXEL_WIDTH)  # the last one is the start symbol
        self.position = nn.Parameter(0.02 * torch.randn(PIXELS, PIXEL_WIDTH))
        self.stack = blocks_without_bias(pattern, PIXEL_WIDTH, HEADS, **more)
        self.logits, self.positions = nn.Linear(PIXEL_WIDTH, LEVELS), positions

    def forward(self, pixels: Int[Tensor, "b L"]) -> Float[Tensor, "b L levels"]:
        start = torch.full_like(pixels[:, :1], LEVELS)
        X = self.level(torch.cat([start, pixels[:, :-1]], 1)) + self.position
        if self.positions is not None:
            X = X + self.positions(torch.arange(PIXELS))
        return self.logits(self.stack(X))


@cache
def images() -> tuple[Int[Tensor, "n 64"], Int[Tensor, "m 64"]]:
    """(train, test) of scikit-learn's digits, split once and for all seeds alike."""
    from sklearn.datasets import load_digits

    pixels = torch.tensor(load_digits().images).long().flatten(1)
    order = torch.randperm(len(pixels), generator=Generator().manual_seed(0))
    return pixels[order[TEST:]], pixels[order[:TEST]]


def pixel_nats(model: nn.Module, pixels: Int[Tensor, "b L"]) -> Tensor:
    """Mean −ln p(pixel | pixels before it)."""
    return F.cross_entropy(model(pixels).flatten(0, 1), pixels.flatten())


def pixel_loss(seed: int, steps: int) -> Loss:
    """nats of batches that are drawn behind the weights of a model of this seed."""
    training, _ = images()

    def drawn() -> Tensor:
        PixelTransformer()
        return torch.randint(len(training), (steps, PIXEL_BATCH))

    batches = seeded(seed, drawn)
    return lambda model, rng, step: pixel_nats(model, training[batches[step]])


@torch.no_grad()
def pixel_score(model: nn.Module) -> float:
    return round(pixel_nats(model, images()[1]).item(), 4)


# --- the tasks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """model(**told) is trained on loss(seed, steps) in the way of `recipe`, then scored."""

    unit: str
    steps: int
    model: Callable[..., nn.Module]
    loss: Callable[[int, int], Loss]
    score: Callable[[nn.Module], Any]
    recipe: Mapping[str, Any] = field(default_factory=dict)


def _gpt(task: str, pattern: Sequence[Pattern] = LAYERS * (causal(),), **told: Any) -> GPT:
    vocab = len(data.characters()[1]) if task == "text" else SYMBOLS
    return GPT(vocab, WIDTH, HEADS, LAYERS, layer=lambda n: {"pattern": pattern[n]}, **told)


def _text_loss(seed: int, steps: int) -> Loss:
    return next_token(data.split(data.characters()[0])[0], BATCH, TRAIN_LENGTH)


TASKS = {
    "text": Task(
        "nats per character", 500, partial(_gpt, "text"), _text_loss, partial(by_length, "text")
    ),
    "recall": Task(
        *("nats per recalled symbol", 300, partial(_gpt, "recall")),
        *(lambda seed, steps: recall_loss, partial(by_length, "recall")),
    ),
    "digits": Task(
        *("nats per pixel", 400, PixelTransformer, pixel_loss, pixel_score),
        {"clip": float("inf"), "schedule": lambda step, steps: 1 - step / steps},
    ),
}


# --- the comparison -------------------------------------------------------------------------------


def told(variant: Variant) -> dict[str, Any]:
    """The options that a variant stands for. Torch's random numbers are those of the caller.

    Raises ValueError for a list of patterns that has not one for each layer.
    """
    options = variant()
    if not isinstance(options, Mapping):
        return {"core": variant}
    pattern = options.get("pattern", causal())
    layers = list(pattern) if isinstance(pattern, Sequence) else [pattern] * LAYERS
    if len(layers) != LAYERS:
        raise ValueError(f"pattern has {len(layers)} entries; give one for each of {LAYERS} layers")
    return {**options, "pattern": layers}


def model(variant: Variant, task: str, seed: int) -> Any:
    """Not yet trained. Weights, but for those that the variant brings, are those of every other.

    Raises ValueError for an unknown task.
    """
    if task not in TASKS:
        raise ValueError(f"task = {task!r}; choose from {', '.join(TASKS)}")
    plain = seeded(seed, TASKS[task].model)

    made: Any = seeded(seed, lambda: TASKS[task].model(**told(variant)))
    made.load_state_dict(plain.state_dict(), strict=False)
    return made


def trained(
    variant: Variant, task: str, seed: int, steps: int | None = None
) -> tuple[Any, list[float]]:
    """(the model after `steps` steps, by default the task's own, the loss of each)."""
    made, steps = model(variant, task, seed), TASKS[task].steps if steps is None else steps
    recipe = {"rate": RATE, "seed": seed, "progress": False} | dict(TASKS[task].recipe)
    return made, train(made, TASKS[task].loss(seed, steps), steps, **recipe)


def measured(variant: Variant, task: str, seed: int, steps: int | None = None) -> dict[str, Any]:
    """The score of one trained model, and how many parameters it has; plain JSON."""
    made, _ = trained(variant, task, seed, steps)
    return {
        "score": TASKS[task].score(made),
        "parameters": sum(x.numel() for x in made.parameters()),
        "threads": torch.get_num_threads(),
    }


def experiment(
    variants: Mapping[str, Variant],
    tasks: Sequence[str] = tuple(TASKS),
    seeds: Sequence[int] = SEEDS,
    steps: int | None = None,
) -> tuple[
    Callable[[], list[Run]],
    Callable[[dict[str, Any], int], dict[str, Any]],
    Callable[[Sequence[Done]], dict[str, Any]],
]:
    """runs, measure, collect: all that the module of a stored experiment must have."""

    def runs() -> list[Run]:
        return [
            Run(
                f"{task} {name}",
                {"task": task, "variant": name, "steps": steps or TASKS[task].steps},
                seed,
            )
            for seed in seeds
            for task in tasks
            for name in variants
        ]

    def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
        return measured(variants[config["variant"]], config["task"], seed, config["steps"])

    def collect(done: Sequence[Done]) -> dict[str, Any]:
        found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}

        def table(pick: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
            return {task: {name: pick(f"{task} {name}") for name in variants} for task in tasks}

        return {
            "unit": {task: TASKS[task].unit for task in tasks},
            "lengths": list(LENGTHS),
            "train_length": TRAIN_LENGTH,
            "scores": table(lambda run: [found[run, seed]["score"] for seed in seeds]),
            "parameters": table(lambda run: found[run, seeds[0]]["parameters"]),
        }

    return runs, measure, collect


def compare(
    variants: Mapping[str, Variant],
    tasks: Sequence[str] = tuple(TASKS),
    *,
    seeds: Sequence[int] = SEEDS,
    steps: int | None = None,
) -> dict[str, Any]:
    """Train every variant on every task with every seed, here and now, on one thread.

    What comes of it: "scores" by task and name, one for each seed; "parameters" by task and name;
    "unit" by task; and the "provenance". `steps` shortens the training of all alike.
    """
    runs, measure, collect = experiment(variants, tasks, seeds, steps)
    begun, threads, done = time.perf_counter(), torch.get_num_threads(), list[Done]()
    torch.set_num_threads(1)
    try:
        for run in runs():
            result = measure(dict(run.config), run.seed)
            done.append({"run": {"name": run.name, "seed": run.seed}, "result": result})
    finally:
        torch.set_num_threads(threads)
    most = max((run.config["steps"] for run in runs()), default=0)
    spent = time.perf_counter() - begun
    made = provenance("compare", seeds, most, spent, ["torch", "numpy", "scikit-learn"])
    return {**collect(done), "provenance": made}
