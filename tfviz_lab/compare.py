"""One comparison for every mechanism: same model, same budget, same seeds, parameters counted.

    compare({"none": lambda: {}, "rotary": lambda: {"core": lambda: Rope(16)}}, tasks=("recall",))

A variant is a core's class, or a function without arguments that makes a core or gives the options
of the model besides its sizes:

    core, positions, …   as a GPT takes them
    pattern              one for all layers, or a list with one for each
    extra_loss           a function of the model, added to the loss of each batch. It is called when
                         the model has read the batch and is `watched`, so `maps(model)`, or `seen`
                         of its attentions, have what the model just did, with gradients

Variants with the same seed begin with the same other weights and see the same batches.

Causal tasks, where no position may depend on what comes after it:

    text         nats per character of English text, trained on 64 characters
    recall       nats per symbol: in a row of random symbols, name the one BACK places before
    digits       nats per pixel of 8×8 handwritten digits, row by row, each from those before it

Tasks for an encoder, which reads all positions at once. It has learned positions, unless the
variant brings `positions` of its own (None for a core that tells positions itself):

    patches      errors per image: which digit is it? Read as 16 patches of 2×2 pixels
    masked_text  nats per hidden character of English text, 15 % of 64 hidden as in BERT

A `Task` of your own stands beside these names. A core that sees the future is refused on a causal
task, before anything is trained; so is one that sees nothing of it in an encoder that lets it.

Scores of text and recall are lists, one number for each of LENGTHS, measured on the last SCORED
places: a longer row gives more context before the same answers. None beyond a learned table's end.

    >>> found = compare({"none": lambda: {}}, tasks=("recall",), seeds=(0,), steps=2)
    >>> found["parameters"], len(found["scores"]["recall"]["none"][0])
    ({'recall': {'none': 100608}}, 7)

A stored experiment is three names, which the runner looks for in a module:

    runs, measure, collect = experiment(VARIANTS, tasks=("text", "recall"))
"""

from __future__ import annotations

import copy
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
from tfviz.basics.lm_objectives import hide, scored_loss
from tfviz.cores import CAUSAL, FULL, sees_ahead
from tfviz.models.bert import BERT
from tfviz.models.blocks import Block, MultiHeadAttention, Stack, pre_norm
from tfviz.models.gpt import GPT
from tfviz.models.use import watched
from tfviz.patterns import Pattern, causal, full
from tfviz.position.learned_pe import Learned
from tfviz.training import Loss, next_token, seeded, train
from tfviz_lab import provenance
from tfviz_lab.runner import Done, Run

Variant = Callable[..., Any]
"""Called without arguments, unless it is the class of a core."""
ExtraLoss = Callable[[nn.Module], Tensor]
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


# --- patches: which digit is it? ------------------------------------------------------------------

PATCH, CLASSES = 2, 10
PATCHES = (SIDE // PATCH) ** 2


class PatchEncoder(nn.Module):
    """Logits of the ten digits from the patches of an image, read all at once.

    The classifier asks the mean of all patches (Dosovitskiy et al. 2020, appendix D.3).
    """

    def __init__(
        self, pattern: Sequence[Pattern] = LAYERS * (full(),), positions: Any = Learned, **more: Any
    ) -> None:
        super().__init__()
        self.patch = nn.Linear(PATCH * PATCH, PIXEL_WIDTH)
        self.positions = _learned_unless_given(positions, PATCHES, PIXEL_WIDTH)
        self.stack = Stack(
            LAYERS, PIXEL_WIDTH, HEADS, layer=lambda n: {"pattern": pattern[n]}, **more
        )
        self.logits = nn.Linear(PIXEL_WIDTH, CLASSES)

    def forward(self, patches: Float[Tensor, "b L pixels"]) -> Float[Tensor, "b classes"]:
        X = self.patch(patches)
        if self.positions is not None:
            X = X + self.positions(torch.arange(patches.shape[1]))
        return self.logits(self.stack(X).mean(1))


def _learned_unless_given(positions: Any, L: int, d: int) -> Any:
    """A table for L positions, if the variant says nothing; else what it says."""
    return Learned(L, d) if positions is Learned else positions


def patches_of(pixels: Int[Tensor, "n 64"]) -> Float[Tensor, "n 16 4"]:
    """Grey levels from 0 to 1, patch by patch, row by row."""
    square = pixels.unflatten(1, (SIDE // PATCH, PATCH, SIDE // PATCH, PATCH))
    return square.transpose(2, 3).flatten(3).flatten(1, 2) / (LEVELS - 1)


@cache
def classes() -> tuple[Int[Tensor, "n"], Int[Tensor, "m"]]:
    """(train, test): which digit each of `images()` shows."""
    from sklearn.datasets import load_digits

    digits = torch.tensor(load_digits().target).long()
    order = torch.randperm(len(digits), generator=Generator().manual_seed(0))
    return digits[order[TEST:]], digits[order[:TEST]]


def patch_loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    """Nats per image, on a batch of training images."""
    training, digits = images()[0], classes()[0]
    drawn = torch.randint(len(training), (PIXEL_BATCH,), generator=rng)
    return F.cross_entropy(model(patches_of(training[drawn])), digits[drawn])


@torch.no_grad()
def errors(model: nn.Module) -> float:
    """The share of test images that the model takes for another digit."""
    right = model(patches_of(images()[1])).argmax(-1) == classes()[1]
    return round(1 - right.float().mean().item(), 4)


# --- masked text ----------------------------------------------------------------------------------


def masked_nats(model: nn.Module, ids: Int[Tensor, "n"], rows: int, rng: Generator) -> Tensor:
    """Mean −ln p of the characters that are hidden in `rows` windows of this text."""
    vocab = len(data.characters()[1])
    text, _ = data.windows(ids, rows, TRAIN_LENGTH, rng)
    hidden, scored = hide(text, vocab, vocab, rng)  # the number after the last character hides
    return scored_loss(model(hidden), text, scored)


def masked_loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    return masked_nats(model, data.split(data.characters()[0])[0], BATCH, rng)


@torch.no_grad()
def masked_score(model: nn.Module) -> float:
    held_out = data.split(data.characters()[0])[1]
    return round(masked_nats(model, held_out, 4 * ROWS, Generator().manual_seed(1)).item(), 4)


# --- the tasks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """model(**options of a variant) is trained on loss(seed, steps), then scored.

    name      how results call it
    unit      of the score
    steps     of training, by the training loop of all, with what `recipe` says in addition
    model     makes it; without options the plain one
    loss      loss(seed, steps) → what `train` takes
    score     score(model) → plain JSON
    inputs    draws a batch (b, L, …) for which the model is asked what it can see
    causal    whether outputs must not depend on later inputs; a variant without a pattern then gets
              the causal one, else the full one
    own       whether the output of a position may depend on its own input; not where that is the
              answer, as in a model that shifts its inputs itself
    """

    name: str
    unit: str
    steps: int
    model: Callable[..., nn.Module]
    loss: Callable[[int, int], Loss]
    score: Callable[[nn.Module], Any]
    inputs: Callable[[Generator], Tensor]
    causal: bool = True
    own: bool = True
    recipe: Mapping[str, Any] = field(default_factory=dict)


def _gpt(task: str, pattern: Sequence[Pattern] = LAYERS * (causal(),), **told: Any) -> GPT:
    vocab = len(data.characters()[1]) if task == "text" else SYMBOLS
    return GPT(vocab, WIDTH, HEADS, LAYERS, layer=lambda n: {"pattern": pattern[n]}, **told)


def _bert(
    pattern: Sequence[Pattern] = LAYERS * (full(),), positions: Any = Learned, **told: Any
) -> BERT:
    """In pre-norm order, so that its blocks are those of the other tasks."""
    vocab = len(data.characters()[1]) + 1  # and the token that hides
    options: dict[str, Any] = {"order": pre_norm, "layer": lambda n: {"pattern": pattern[n]}} | told
    place = _learned_unless_given(positions, TRAIN_LENGTH, WIDTH)
    return BERT(vocab, WIDTH, HEADS, LAYERS, positions=place, **options)


def _text_loss(seed: int, steps: int) -> Loss:
    return next_token(data.split(data.characters()[0])[0], BATCH, TRAIN_LENGTH)


def _characters(rng: Generator) -> Int[Tensor, "2 L"]:
    return data.windows(data.characters()[0], 2, TRAIN_LENGTH, rng)[0]


def _symbols(rng: Generator) -> Int[Tensor, "2 L"]:
    return symbols_back(2, TRAIN_LENGTH, rng)[0]


def _pixels(rng: Generator) -> Int[Tensor, "2 L"]:
    return images()[0][torch.randint(len(images()[0]), (2,), generator=rng)]


def _patches(rng: Generator) -> Float[Tensor, "2 L pixels"]:
    return patches_of(_pixels(rng))


TASKS = {
    "text": Task(
        name="text",
        unit="nats per character",
        steps=500,
        model=partial(_gpt, "text"),
        loss=_text_loss,
        score=partial(by_length, "text"),
        inputs=_characters,
    ),
    "recall": Task(
        name="recall",
        unit="nats per recalled symbol",
        steps=300,
        model=partial(_gpt, "recall"),
        loss=lambda seed, steps: recall_loss,
        score=partial(by_length, "recall"),
        inputs=_symbols,
    ),
    "digits": Task(
        name="digits",
        unit="nats per pixel",
        steps=400,
        model=PixelTransformer,
        loss=pixel_loss,
        score=pixel_score,
        inputs=_pixels,
        own=False,
        recipe={"clip": float("inf"), "schedule": lambda step, steps: 1 - step / steps},
    ),
    "patches": Task(
        name="patches",
        unit="errors per image",
        steps=400,
        model=PatchEncoder,
        loss=lambda seed, steps: patch_loss,
        score=errors,
        inputs=_patches,
        causal=False,
    ),
    "masked_text": Task(
        name="masked_text",
        unit="nats per hidden character",
        steps=800,
        model=_bert,
        loss=lambda seed, steps: masked_loss,
        score=masked_score,
        inputs=_characters,
        causal=False,
    ),
}
CAUSAL_TASKS, ENCODER_TASKS = ("text", "recall", "digits"), ("patches", "masked_text")


def task_of(task: str | Task) -> Task:
    """A task by its name, or the task itself. Raises ValueError for an unknown name."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise ValueError(f"task = {task!r}; choose from {', '.join(TASKS)}, or give a Task")
    return TASKS[task]


# --- the comparison -------------------------------------------------------------------------------


def told(variant: Variant, pattern: Pattern = CAUSAL) -> dict[str, Any]:
    """The options that a variant stands for. Torch's random numbers are those of the caller.

    `pattern` is for a variant that names none. Raises ValueError for a list of patterns that has
    not one for each layer.
    """
    made = None if isinstance(variant, type) else variant()
    options: dict[str, Any] = dict(made) if isinstance(made, Mapping) else {"core": variant}
    pattern = options.get("pattern", pattern)
    layers = list(pattern) if isinstance(pattern, Sequence) else [pattern] * LAYERS
    if len(layers) != LAYERS:
        raise ValueError(f"pattern has {len(layers)} entries; give one for each of {LAYERS} layers")
    return options | {"pattern": layers}


def model(variant: Variant, task: str | Task, seed: int) -> Any:
    """Not yet trained. Weights, but for those that the variant brings, are those of every other.

    Raises ValueError for an unknown task.
    """
    return _made(variant, task_of(task), seed)[0]


def _made(variant: Variant, task: Task, seed: int) -> tuple[Any, ExtraLoss | None]:
    """(the model, what the variant adds to its loss)."""
    plain = seeded(seed, task.model).state_dict()

    def make() -> tuple[Any, ExtraLoss | None]:
        options = told(variant, CAUSAL if task.causal else FULL)
        extra_loss = options.pop("extra_loss", None)
        return task.model(**options), extra_loss

    made, extra_loss = seeded(seed, make)
    own = made.state_dict()
    shared = {name: x for name, x in plain.items() if name in own and own[name].shape == x.shape}
    made.load_state_dict(shared, strict=False)
    return made, extra_loss


def trained(
    variant: Variant, task: str | Task, seed: int, steps: int | None = None
) -> tuple[Any, list[float]]:
    """(the model after `steps` steps, by default the task's own, the loss of each).

    Raises ValueError if the model sees what the task forbids, see `refuse`.
    """
    task = task_of(task)
    made, extra_loss = _made(variant, task, seed)
    refuse(made, task)
    steps = task.steps if steps is None else steps
    recipe = {"lr": RATE, "seed": seed, "progress": False} | dict(task.recipe)
    loss = task.loss(seed, steps)
    if extra_loss is not None:
        loss = _with(loss, extra_loss)
    return made, train(made, loss, steps, **recipe)


def _with(loss: Loss, extra_loss: ExtraLoss) -> Loss:
    """The task's loss and the variant's, of the same pass."""

    def both(model: Any, rng: Generator, step: int) -> Tensor:
        with watched(model):
            return loss(model, rng, step) + extra_loss(model)

    return both


LEAST = 1e-4
"""A change of the output by this share of the largest output is no rounding."""


@torch.no_grad()
def seeing_ahead(model: nn.Module, task: Task) -> list[int] | None:
    """The positions whose output changes with inputs that come too late for it.

    Inputs are changed from one of four places on. The model is asked as it is trained, but each
    time a copy of it, with the same random numbers: nothing of it, nor of what is drawn afterwards,
    changes. None if the model does not give one output for each input.
    """
    x, others = (task.inputs(Generator().manual_seed(n)) for n in (0, 1))
    L = x.shape[1]

    def output(inputs: Tensor) -> Tensor:
        out: Tensor = seeded(0, lambda: copy.deepcopy(model)(inputs))
        return out

    before, seeing = output(x), set[int]()
    if before.ndim < 3 or before.shape[1] != L:
        return None
    for n in (1, L // 3, L // 2, L - 1):
        after = output(torch.cat([x[:, :n], others[:, n:]], 1))
        change = (after - before)[:, : n if task.own else n + 1].abs().flatten(2).amax((0, 2))
        seeing |= set((change > LEAST * before.abs().max()).nonzero().flatten().tolist())
    return sorted(seeing)


def refuse(model: nn.Module, task: Task) -> None:
    """Raises ValueError if a model sees the future on a causal task.

    Its loss would be low because it reads the answers. And in a task for encoders, if its patterns
    let it see what comes after a token and its core does not: what it lacks would count against it.
    """
    attentions = [x for x in model.modules() if isinstance(x, MultiHeadAttention)]
    cores = ", ".join(sorted({_name(x.core) for x in attentions})) or type(model).__name__
    L = task.inputs(Generator().manual_seed(0)).shape[1]
    two_sided = [x.pattern for x in attentions if sees_ahead(x.pattern, L, L)]
    seeing = seeing_ahead(model, task)
    cause = f"pattern = {two_sided[0]!r}" if two_sided else f"core = {cores}"
    if task.causal and seeing:
        raise ValueError(
            f"{cause} sees the future on the causal task {task.name!r}: the output at position "
            f"{seeing[0]} of {L} changes with tokens that it must not know, so its loss would mean "
            f"nothing; give a task for an encoder ({', '.join(ENCODER_TASKS)}), or what keeps to "
            "the past"
        )
    if not task.causal and seeing == [] and two_sided and len(two_sided) == len(attentions):
        raise ValueError(
            f"core = {cores} sees nothing of what comes after a token on {task.name!r}, a task for "
            "an encoder, though its pattern lets it; give a causal task "
            f"({', '.join(CAUSAL_TASKS)}), or pattern = causal() if that is what is to be compared"
        )


def measured(
    variant: Variant, task: str | Task, seed: int, steps: int | None = None
) -> dict[str, Any]:
    """The score of one trained model, and how many parameters it has; plain JSON."""
    made, _ = trained(variant, task, seed, steps)
    return {
        "score": task_of(task).score(made),
        "parameters": sum(x.numel() for x in made.parameters()),
        "threads": torch.get_num_threads(),
    }


def _name(core: Any) -> str:
    """Of a module its class, of a function its own."""
    return str(getattr(core, "__name__", type(core).__name__))


def experiment(
    variants: Mapping[str, Variant],
    tasks: Sequence[str | Task] = CAUSAL_TASKS,
    seeds: Sequence[int] = SEEDS,
    steps: int | None = None,
) -> tuple[
    Callable[[], list[Run]],
    Callable[[dict[str, Any], int], dict[str, Any]],
    Callable[[Sequence[Done]], dict[str, Any]],
]:
    """runs, measure, collect: all that the module of a stored experiment must have.

    Raises ValueError for an unknown task, and for two of the same name.
    """
    by_name = {task_of(task).name: task_of(task) for task in tasks}
    if len(by_name) < len(tasks):
        names = ", ".join(task_of(task).name for task in tasks)
        raise ValueError(f"tasks = {names}: two have one name; give each task a name of its own")

    def runs() -> list[Run]:
        return [
            Run(
                f"{task} {name}",
                {"task": task, "variant": name, "steps": steps or by_name[task].steps},
                seed,
            )
            for seed in seeds
            for task in by_name
            for name in variants
        ]

    def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
        task = by_name[config["task"]]
        return measured(variants[config["variant"]], task, seed, config["steps"])

    def collect(done: Sequence[Done]) -> dict[str, Any]:
        found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}

        def table(pick: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
            return {task: {name: pick(f"{task} {name}") for name in variants} for task in by_name}

        return {
            "unit": {task: by_name[task].unit for task in by_name},
            "lengths": list(LENGTHS),
            "train_length": TRAIN_LENGTH,
            "scores": table(lambda run: [found[run, seed]["score"] for seed in seeds]),
            "parameters": table(lambda run: found[run, seeds[0]]["parameters"]),
        }

    return runs, measure, collect


def compare(
    variants: Mapping[str, Variant],
    tasks: Sequence[str | Task] = CAUSAL_TASKS,
    *,
    seeds: Sequence[int] = SEEDS,
    steps: int | None = None,
) -> dict[str, Any]:
    """Train every variant on every task with every seed, here and now, on one thread.

    What comes of it: "scores" by task and name, one for each seed; "parameters" by task and name;
    "unit" by task; and the "provenance". `steps` shortens the training of all alike.

    Raises ValueError for an unknown task, and before any training if a variant sees what one of the
    tasks forbids (see `refuse`).
    """
    runs, measure, collect = experiment(variants, tasks, seeds, steps)
    for task in tasks:
        for variant in variants.values():
            refuse(model(variant, task, seeds[0]), task_of(task))
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
