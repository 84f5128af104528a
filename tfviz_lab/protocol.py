"""How we measure: one protocol for every comparison of the book, said once.

    VARIANTS = {"full attention": lambda: {}, "windows": lambda: {"pattern": …}}
    runs, follow, collect = experiment(VARIANTS, LETTERS, reference="full attention")

    def measure(config, seed):
        return one_run(config, seed, (LETTERS,), lambda name: VARIANTS[name])

A variant is what `compare` calls so. Each is trained with the rate that suits it, chosen on one
seed and a quarter of the steps, and with five seeds; what it reaches stands beside the reference
seed by seed, with an interval and a word for it (`outcomes`), and beside lines that learn nothing
(`trivial`). A reference that loses to its line is refused: a comparison with it would mean nothing.

    letters     nats per character: a GPT of two layers, width 64, on 64 characters at a time,
                scored on the whole held-out text
    hidden      nats per hidden character: the same blocks reading both ways, 15 % hidden
    which_digit errors per image: patches of 2×2 pixels, a table of positions as loud as they are;
                seed n is tested on fold n of five, so that five seeds test every image once

Positions are no variable unless they are the question. What can have its queries and keys turned
has rotary positions; what cannot, brings `positions` of its own, and then full attention with the
same ones stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import mean
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.basics.lm_objectives import hide, scored_loss
from tfviz.cores import FULL, Dense
from tfviz.measure import flops
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.gpt import GPT
from tfviz.patterns import Pattern, causal
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Turned
from tfviz.training import next_token, seeded
from tfviz_lab import compare, trivial
from tfviz_lab.compare import (
    BATCH,
    HEADS,
    LAYERS,
    PATCHES,
    PIXEL_BATCH,
    PIXEL_WIDTH,
    TRAIN_LENGTH,
    WIDTH,
    PatchEncoder,
    Task,
    Variant,
    patches_of,
)
from tfviz_lab.outcomes import NOT_LEARNED, beats, outcome
from tfviz_lab.runner import Done, Run

SEEDS = (0, 1, 2, 3, 4)
LADDER = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""Learning rates, a factor of about three apart."""
CHOSEN_ON = 0
"""The seed on which a variant chooses its rate."""
MARKS = (1 / 4, 1 / 2, 1)
"""When a model is scored, in shares of its steps."""


class LosesToCountingError(ValueError):
    """A reference that has not learned its task: nothing may be compared with it."""


# --- positions that every method can have ---------------------------------------------------------


def rotary(told: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a variant, its core turned unless it brings positions, or its own layer."""
    if "positions" in told or "mix" in told:
        return dict(told)
    return {**told, "core": partial(Turned, core=told.get("core", Dense))}


@torch.no_grad()
def queries_and_keys(model: nn.Module, text: Tensor) -> list[tuple[Tensor, Tensor]]:
    """What the core of each layer compares, (b, h, L, d_head), lowest first: turned if it turns."""
    seen: list[tuple[Tensor, Tensor]] = []
    cores = [x.core for x in model.modules() if isinstance(x, MultiHeadAttention)]
    inner = [cast(nn.Module, core.inner if isinstance(core, Turned) else core) for core in cores]
    hooks = [
        core.register_forward_pre_hook(lambda _, given: seen.append((given[0], given[1])))
        for core in inner
    ]
    model(text)
    for hook in hooks:
        hook.remove()
    return seen


# --- letters --------------------------------------------------------------------------------------


def gpt(vocab: int, pattern: Sequence[Pattern] = LAYERS * (causal(),), **told: Any) -> GPT:
    """The small GPT of all comparisons of causal models."""
    return GPT(vocab, WIDTH, HEADS, LAYERS, layer=lambda n: {"pattern": pattern[n]}, **rotary(told))


def letters(**told: Any) -> GPT:
    return gpt(len(data.characters()[1]), **told)


@torch.no_grad()
def whole_text(model: nn.Module, length: int = TRAIN_LENGTH, scored: int = 16) -> float:
    """Nats per character of the whole held-out text, at the last places of windows."""
    rows, found = trivial.held_out_rows(length, scored), []
    for some in rows.split(max(1, 4096 // length)):
        logits = model(some[:, :-1])[:, -scored:].flatten(0, 1)
        found.append(F.cross_entropy(logits, some[:, -scored:].flatten(), reduction="none"))
    return round(torch.cat(found).double().mean().item(), 4)


def _letters(seed: int) -> Task:
    return Task(
        name="letters",
        unit="nats per character",
        steps=2000,
        model=letters,
        loss=lambda seed, steps: next_token(training_text(), BATCH, TRAIN_LENGTH),
        score=whole_text,
        inputs=_windows,
    )


def training_text() -> Int[Tensor, "n"]:
    return data.split(data.characters()[0])[0]


def _windows(rng: Generator) -> Int[Tensor, "2 L"]:
    return data.windows(data.characters()[0], 2, TRAIN_LENGTH, rng)[0]


# --- hidden characters ----------------------------------------------------------------------------


def reader(pattern: Sequence[Pattern] = LAYERS * (FULL,), **told: Any) -> GPT:
    """The same blocks, reading both ways, with one more symbol that hides."""
    return gpt(len(data.characters()[1]) + 1, pattern, **told)


def hidden_loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    vocab = len(data.characters()[1])
    text, _ = data.windows(training_text(), BATCH, TRAIN_LENGTH, rng)
    seen, scored = hide(text, vocab, vocab, rng)
    return scored_loss(model(seen), text, scored)


@torch.no_grad()
def hidden_text(model: nn.Module) -> float:
    """Nats per hidden character of the whole held-out text."""
    rows, seen, scored = trivial.hidden_rows(TRAIN_LENGTH)
    logits = torch.cat([model(some) for some in seen.split(64)])
    return round(F.cross_entropy(logits[scored].double(), rows[scored]).item(), 4)


def _hidden(seed: int) -> Task:
    return Task(
        name="hidden",
        unit="nats per hidden character",
        steps=1600,
        model=reader,
        loss=lambda seed, steps: hidden_loss,
        score=hidden_text,
        inputs=_windows,
        causal=False,
    )


# --- which digit is it? ---------------------------------------------------------------------------


@cache
def fold(n: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(images, digits, test images, test digits): fold n of five of scikit-learn's digits."""
    from sklearn.datasets import load_digits

    pixels = torch.tensor(load_digits().images).long().flatten(1)
    digits = torch.tensor(load_digits().target).long()
    parts = torch.randperm(len(pixels), generator=Generator().manual_seed(0)).tensor_split(5)
    test = parts[n % 5]
    known = torch.cat([part for part in parts if part is not test])
    return pixels[known], digits[known], pixels[test], digits[test]


def patches(**told: Any) -> PatchEncoder:
    """The encoder of `compare`, its table of positions as loud as the patches."""
    loud = {"positions": Learned(PATCHES, PIXEL_WIDTH, std=0.5)}
    return PatchEncoder(**loud | told)


def digit_loss(fold_of: int, model: nn.Module, rng: Generator, step: int) -> Tensor:
    known, digits, *_ = fold(fold_of)
    drawn = torch.randint(len(known), (PIXEL_BATCH,), generator=rng)
    return F.cross_entropy(model(patches_of(known[drawn])), digits[drawn])


@torch.no_grad()
def digit_errors(fold_of: int, model: nn.Module) -> float:
    """The share of the fold's test images that the model takes for another digit."""
    *_, new, right = fold(fold_of)
    return round((model(patches_of(new)).argmax(-1) != right).double().mean().item(), 4)


def _which_digit(seed: int) -> Task:
    return Task(
        name="which_digit",
        unit="errors per image",
        steps=1600,
        model=patches,
        loss=lambda seed, steps: partial(digit_loss, seed),
        score=partial(digit_errors, seed),
        inputs=lambda rng: patches_of(fold(0)[0][torch.randint(1000, (2,), generator=rng)]),
        causal=False,
        recipe={"weight_decay": 0.3},  # 1,437 images are learned by heart otherwise
    )


# --- exams ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exam:
    """A task by the protocol.

    task      task(seed); what is held out may depend on the seed
    trivial   trivial(seed) → {line: score}, what rules reach that learn nothing but counts
    bar       the line which every reference must beat
    delta     the smallest difference that counts
    rates     the learning rates that each variant is tried with; with a single one there is no
              choice
    """

    task: Callable[[int], Task]
    trivial: Callable[[int], Mapping[str, float]]
    bar: str
    delta: float
    rates: tuple[float, ...] = (3e-3, 1e-2, 3e-2)

    @property
    def name(self) -> str:
        return self.task(0).name


LETTERS = Exam(_letters, lambda seed: trivial.ngrams(), "5-gram", 0.02)
HIDDEN = Exam(_hidden, lambda seed: trivial.neighbours(), "two on each side", 0.02)
WHICH_DIGIT = Exam(
    _which_digit,
    lambda seed: trivial.readers(*fold(seed)),
    "logistic regression",  # the nearest image is a method of its own, and drawn too
    0.01,
    rates=(1e-3, 3e-3, 1e-2),
)


# --- one run --------------------------------------------------------------------------------------


def trained(
    variant: Variant, exam: Exam, seed: int, steps: int | None = None, rate: float | None = None
) -> tuple[Any, list[float]]:
    """(the trained model, its score at each of MARKS), at this rate or the middle one of the exam.

    Raises ValueError if the model sees what the task forbids.
    """
    task, scores = exam.task(seed), list[float]()
    steps = task.steps if steps is None else steps
    marks = {max(1, round(share * steps)) for share in MARKS}

    def look(model: nn.Module, step: int) -> None:
        if step + 1 in marks:
            scores.append(seeded(seed, partial(task.score, model)))

    told = {"lr": exam.rates[len(exam.rates) // 2] if rate is None else rate, "after_step": look}
    made, _ = compare.trained(variant, replace(task, recipe={**task.recipe, **told}), seed, steps)
    return made, scores


def measured(variant: Variant, exam: Exam, seed: int, steps: int, rate: float) -> dict[str, Any]:
    """Scores at MARKS, the last one the result; parameters, and operations of a training step."""
    made, curve = trained(variant, exam, seed, steps, rate)
    task = exam.task(seed)
    loss = task.loss(seed, 1)

    def step() -> None:
        loss(made, Generator().manual_seed(seed), 0).backward()

    return {
        "score": curve[-1],
        "curve": curve,
        "parameters": sum(x.numel() for x in made.parameters()),
        "flops": seeded(seed, partial(flops, step)),
    }


def one_run(
    config: Mapping[str, Any], seed: int, exams: Sequence[Exam], variant: Callable[[str], Variant]
) -> dict[str, Any]:
    """What `measure` of an experiment gives, which finds a variant by its name.

    Each module has its own `measure`, so that a run rests on its own row of the table alone.
    """
    exam = next(exam for exam in exams if exam.name == config["exam"])
    if config["part"] == "trivial":
        return dict(exam.trivial(seed))
    found = variant(config["variant"])
    return measured(found, exam, seed, config["steps"], config["rate"])


def chosen(scores: Mapping[float, float | None]) -> float:
    """The rate with the best score; one that made training diverge has none."""
    known = {rate: score for rate, score in scores.items() if score is not None}
    return min(known, key=lambda rate: known[rate])


def beyond(scores: Mapping[float, float | None]) -> float | None:
    """The next rate to be tried if the best one is the lowest or the highest of three."""
    best, rates = LADDER.index(chosen(scores)), sorted(LADDER.index(rate) for rate in scores)
    if len(rates) != 3 or best == rates[1]:
        return None
    step = -1 if best == rates[0] else 1
    return LADDER[best + step] if 0 <= best + step < len(LADDER) else None


# --- the experiment -------------------------------------------------------------------------------

Parts = tuple[
    Callable[[], list[Run]],
    Callable[[Sequence[Done]], list[Run]],
    Callable[[Sequence[Done]], dict[str, Any]],
]


def experiment(
    variants: Mapping[str, Variant],
    *exams: Exam,
    reference: str,
    beside: Mapping[str, str] | None = None,
    seeds: Sequence[int] = SEEDS,
    of: Callable[[str], tuple[str, ...]] = lambda variant: (),
) -> Parts:
    """runs, follow, collect: what the module of a stored experiment has besides `measure`.

    Every variant is compared with the reference, unless `beside` names another one for it. `of`
    names code of a variant that is looked up by its name, see `Run`.

    Raises ValueError for a reference that is no variant, and for exams of one name.
    """
    by_name = {exam.name: exam for exam in exams}
    rivals = {name: reference for name in variants} | dict(beside or {})
    if unknown := {*rivals, *rivals.values()} - {*variants}:
        raise ValueError(
            f"{', '.join(sorted(unknown))}: no variant; there are {', '.join(variants)}"
        )
    if len(by_name) < len(exams):
        raise ValueError(f"exams = {', '.join(x.name for x in exams)}: give each a name of its own")

    def told(part: str, exam: str, name: str, steps: int, rate: float) -> dict[str, Any]:
        return {"part": part, "exam": exam, "variant": name, "steps": steps, "rate": rate}

    def tried(exam: str, name: str, rate: float) -> Run:
        steps = by_name[exam].task(CHOSEN_ON).steps // 4
        config = told("rate", exam, name, steps, rate)
        return Run(f"{exam} {name}, rate {rate:g}", config, CHOSEN_ON, of(name))

    def runs() -> list[Run]:
        lines = [
            Run(f"{exam}, trivial lines", {"part": "trivial", "exam": exam}, seed)
            for exam in by_name
            for seed in seeds
        ]
        rates = [
            tried(exam, name, rate)
            for exam, x in by_name.items()
            for name in variants
            for rate in (x.rates if len(x.rates) > 1 else ())
        ]
        return (
            lines
            + rates
            + [
                run
                for exam, x in by_name.items()
                for name in variants
                if len(x.rates) == 1
                for run in scored(exam, name, x.rates[0])
            ]
        )

    def scored(exam: str, name: str, rate: float) -> list[Run]:
        config = told("score", exam, name, by_name[exam].task(0).steps, rate)
        return [Run(f"{exam} {name}", config, seed, of(name)) for seed in seeds]

    def follow(done: Sequence[Done]) -> list[Run]:
        """A further rate where the best is at the edge; then the seeds, at the best."""
        found = list[Run]()
        for (exam, name), scores in _rates(done).items():
            if exam in by_name and {*by_name[exam].rates} <= {*scores}:
                more = beyond(scores)
                found += [tried(exam, name, more)] if more else scored(exam, name, chosen(scores))
        return found

    def collect(done: Sequence[Done]) -> dict[str, Any]:
        return {"exams": {exam: _of_exam(by_name[exam], done, rivals, seeds) for exam in by_name}}

    return runs, follow, collect


def _rates(done: Sequence[Done]) -> dict[tuple[str, str], dict[float, float | None]]:
    """By exam and variant: the score at each rate that was tried."""
    found: dict[tuple[str, str], dict[float, float | None]] = {}
    for x in done:
        config = x["run"]["config"]
        if config.get("part") == "rate":
            row = found.setdefault((config["exam"], config["variant"]), {})
            row[config["rate"]] = x["result"]["score"]
    return found


def _of_exam(
    exam: Exam, done: Sequence[Done], rivals: Mapping[str, str], seeds: Sequence[int]
) -> dict[str, Any]:
    """What is said of one exam. Raises LosesToCountingError."""
    rows = {
        (x["run"]["config"].get("variant"), x["run"]["config"]["part"], x["run"]["seed"]): x
        for x in done
        if x["run"]["config"].get("exam") == exam.name
    }
    lines = [rows[None, "trivial", seed]["result"] for seed in seeds]
    of = {name: [rows[name, "score", seed] for seed in seeds] for name in rivals}
    scores = {name: [x["result"]["score"] for x in row] for name, row in of.items()}
    curves = {name: [x["result"]["curve"] for x in row] for name, row in of.items()}
    steps = exam.task(0).steps
    return {
        "unit": exam.task(0).unit,
        "steps": steps,
        "marks": [max(1, round(share * steps)) for share in MARKS],
        "seeds": list(seeds),
        "delta": exam.delta,
        "bar": exam.bar,
        "trivial": {name: [line[name] for line in lines] for name in lines[0]},
        "reference": dict(rivals),
        "scores": scores,
        "curves": curves,
        "rates": {name: row[0]["run"]["config"]["rate"] for name, row in of.items()},
        "tried": {
            name: {f"{rate:g}": score for rate, score in sorted(tried.items())}
            for (of_exam, name), tried in _rates(done).items()
            if of_exam == exam.name
        },
        "parameters": {name: row[0]["result"]["parameters"] for name, row in of.items()},
        "flops": {name: row[0]["result"]["flops"] for name, row in of.items()},
        "outcomes": compared(exam, scores, lines, rivals),
    }


def compared(
    exam: Exam,
    scores: Mapping[str, Sequence[float]],
    lines: Sequence[Mapping[str, float]],
    rivals: Mapping[str, str],
) -> dict[str, dict[str, Any]]:
    """By variant the paired difference to its reference, its interval, and the word for it.

    A variant whose reference is itself a variant that has not learned the task says nothing either.

    Raises LosesToCountingError if the reference of all others does not beat its trivial line.
    """
    bar = mean(line[exam.bar] for line in lines)
    found = dict[str, dict[str, Any]]()
    for name, rival in rivals.items():
        learned = beats(reached := mean(scores[rival]), bar)
        if not learned and rivals[rival] == rival:
            raise LosesToCountingError(
                f"{rival!r} reaches {reached:.4f} on {exam.name!r}, {exam.bar} {bar:.4f}: what "
                "loses to its trivial line has not learned the task; train it longer, at another "
                "rate, or with positions that it can hear"
            )
        if name == rival:
            continue
        said = outcome(scores[name], scores[rival], delta=exam.delta, trivial=bar)
        found[name] = {
            "beside": rival,
            "difference": round(said.difference.mean, 4),
            "interval": [round(said.difference.low, 4), round(said.difference.high, 4)],
            "word": said.word if learned else NOT_LEARNED,
        }
    return found
