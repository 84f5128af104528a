"""The race of everything: each dot is one model, its quality and its time at the same length.

    python -m tfviz_lab race               what is missing of it, → results/race.json
    python -m tfviz_lab race mine.py       anybody's core or mixer beside the others (`entrant`)

The GPT of all comparisons reads 512 tokens at a time, whatever stands in for its attention; what
can be turned has rotary positions, and what brings positions of its own stands beside full
attention with the same table. Encodings of positions have a race of their own, `extrapolation`.

    text      nats per character of the whole held-out text, each after 256 others or more
    copy      nats per symbol: name the one 12 places before. It asks for a place
    lookup    nats per value: each of KEYS keys comes once with a value, both in one token, and then
              keys alone: name the value. It asks for content, wherever that stands
    cost      time and memory of a training step ÷ full attention's, at each of LENGTHS: processor
              time as the median of rounds in turns, made while nothing else runs; operations, and
              the bytes that are kept of a text to go on with it

A length at which a step would take more than LIMIT bytes or PATIENCE seconds, as the one before
lets expect of what is quadratic, is not measured; `stopped` says which of the two it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.basics.cache_cost import kept_bytes
from tfviz.cores import Cache
from tfviz.exhibits import EXHIBITS, Gpt
from tfviz.measure import flops, in_turns, peak_memory
from tfviz.training import next_token, seeded
from tfviz_lab import compare, trivial
from tfviz_lab.compare import HEADS, WIDTH, Task
from tfviz_lab.protocol import (
    Exam,
    experiment,
    gpt,
    letters,
    one_run,
    training_text,
    whole_text,
)
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
CLOCKS = ("time", "seconds")
LENGTH, BATCH, SCORED = 512, 2, 256
LENGTHS, ROUNDS = (512, 2048), 5
LIMIT, PATIENCE = 3 << 29, 30.0
SYMBOLS, BACK = 8, 12
KEYS, VALUES = 8, 8
STEPS = {"text": 2000, "copy": 400, "lookup": 1000}

PLAIN, OWN = "multi_head_attention", "multi_head_attention, own positions"
TOO_SLOW = ("additive_attention",)  # a step at LENGTH takes 20 times full attention's: hours
ENTRANTS = [
    name
    for name, exhibit in EXHIBITS.items()
    if exhibit.race and not exhibit.raced and name not in (PLAIN, *TOO_SLOW)
]
"""In the order of the course. What tells positions is not among them."""
NAMES = [PLAIN, OWN, *ENTRANTS]


def timed(config: Mapping[str, Any]) -> bool:
    """Whether a run reads a clock."""
    return config["part"] == "cost"


# --- the tasks at this length ---------------------------------------------------------------------


def symbols(**told: Any) -> Any:
    return gpt(SYMBOLS, **told)


def pairs(**told: Any) -> Any:
    return gpt(KEYS * VALUES + KEYS, **told)


def copied(b: int, rng: Generator) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"]]:
    """(rows, answers): at place t the symbol of place t − BACK; −100 where there is none."""
    rows = torch.randint(SYMBOLS, (b, LENGTH), generator=rng)
    answers = torch.full_like(rows, -100)
    answers[:, BACK:] = rows[:, :-BACK]
    return rows, answers


def looked_up(b: int, rng: Generator) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"]]:
    """(rows, answers): key · VALUES + value for each key, then keys behind all of these numbers,
    whose values are the answers; −100 where none is asked for."""
    keys = torch.rand(b, KEYS, generator=rng).argsort(1)
    values = torch.randint(VALUES, (b, KEYS), generator=rng)
    asked = torch.randint(KEYS, (b, LENGTH - KEYS), generator=rng)
    rows = torch.cat([keys * VALUES + values, KEYS * VALUES + keys.gather(1, asked)], 1)
    answers = torch.cat([torch.full_like(keys, -100), values.gather(1, asked)], 1)
    return rows, answers


Draw = Callable[[int, Generator], tuple[Tensor, Tensor]]


def answered(draw: Draw, model: nn.Module, rng: Generator, step: int) -> Tensor:
    rows, answers = draw(BATCH, rng)
    return F.cross_entropy(model(rows).flatten(0, 1), answers.flatten())


@torch.no_grad()
def nats(draw: Draw, model: nn.Module) -> float:
    """Mean −ln p of the answers in 32 new rows."""
    rows, answers = draw(32, Generator().manual_seed(1))
    logits = torch.cat([model(some) for some in rows.split(4)])
    return round(F.cross_entropy(logits.flatten(0, 1), answers.flatten()).item(), 4)


def _text(seed: int) -> Task:
    return Task(
        name="text",
        unit="nats per character",
        steps=STEPS["text"],
        model=letters,
        loss=lambda seed, steps: next_token(training_text(), BATCH, LENGTH),
        score=partial(whole_text, length=LENGTH, scored=SCORED),
        inputs=lambda rng: data.windows(training_text(), 2, LENGTH, rng)[0],
    )


def _answers(name: str, unit: str, model: Callable[..., Any], draw: Draw, seed: int) -> Task:
    """A task whose rows and answers are drawn."""
    return Task(
        name=name,
        unit=unit,
        steps=STEPS[name],
        model=model,
        loss=lambda seed, steps: partial(answered, draw),
        score=partial(nats, draw),
        inputs=lambda rng: draw(2, rng)[0],
    )


_copy = partial(_answers, "copy", "nats per symbol", symbols, copied)
_lookup = partial(_answers, "lookup", "nats per value", pairs, looked_up)
TEXT = Exam(_text, lambda seed: trivial.ngrams(5, LENGTH, SCORED), "5-gram", 0.02)
COPY = Exam(_copy, lambda seed: trivial.guessing(SYMBOLS), "guessing", 0.1)
LOOKUP = Exam(_lookup, lambda seed: trivial.guessing(VALUES), "guessing", 0.1)
EXAMS = (TEXT, COPY, LOOKUP)


# --- who runs -------------------------------------------------------------------------------------


def options(name: str, L: int) -> dict[str, Any]:
    """What a GPT for texts of L is given: a line of an exhibit, without positions if it turns."""
    if name in (PLAIN, OWN):
        return {"positions": Gpt(L, WIDTH, HEADS).positions()} if name == OWN else {}
    exhibit = EXHIBITS[name]
    assert exhibit.race
    told = exhibit.race(Gpt(L, WIDTH, HEADS))
    return told if exhibit.own_positions else {k: x for k, x in told.items() if k != "positions"}


def _code(name: str) -> tuple[str, ...]:
    """Where the line of the race is made; it is looked up by its name while the code runs."""
    race = EXHIBITS[name].race if name in EXHIBITS else None
    return (f"{race.__module__}:{race.__name__}",) if race else ()


def rivals() -> dict[str, str]:
    """Full attention with its own positions, for who has such, too."""
    return {name: OWN for name in ENTRANTS if EXHIBITS[name].own_positions}


_runs, follow, _collect = experiment(
    {name: partial(options, name, LENGTH) for name in NAMES},
    *EXAMS,
    reference=PLAIN,
    beside=rivals(),
    of=_code,
)


def runs() -> list[Run]:
    costs = [
        Run(f"cost {name}", {"part": "cost", "name": name}, of=(*_code(name), *_code(PLAIN)))
        for name in NAMES
    ]
    return _runs() + costs


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["part"] == "cost":
        return cost(partial(options, config["name"]))
    return one_run(config, seed, EXAMS, lambda name: partial(options, name, LENGTH))


# --- what it costs --------------------------------------------------------------------------------


def step(made: Callable[[int], dict[str, Any]], L: int) -> Callable[[], None]:
    """One step of training without the optimizer: loss and gradients of one row of L characters."""
    model = seeded(0, lambda: letters(**compare.told(partial(made, L))))
    row = torch.arange(L)[None] % 50

    def work() -> None:
        model(row).logsumexp(-1).sum().backward()
        model.zero_grad()

    return work


def cost(made: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Time, memory, operations and state at each of LENGTHS, None beyond what can be measured."""
    rows: dict[str, list[Any]] = {
        key: [] for key in ("time", "seconds", "memory", "bytes", "flops", "state")
    }
    stopped, before = None, 0
    for L in LENGTHS:
        if before:
            grows = (L / before) ** 2
            if grows * rows["bytes"][-1] > LIMIT:
                stopped = "memory"
            elif grows * rows["seconds"][-1] > PATIENCE:
                stopped = "time"
        if stopped:
            break
        for key, value in cost_at(made, L).items():
            rows[key].append(value)
        before = L
    padded = {key: values + [None] * (len(LENGTHS) - len(values)) for key, values in rows.items()}
    return padded | {"stopped": stopped}


def cost_at(made: Callable[[int], dict[str, Any]], L: int) -> dict[str, Any]:
    both = {"own": step(made, L), "plain": step(partial(options, PLAIN), L)}
    spent = in_turns(both, ROUNDS)
    # some draw who meets whom: what is counted does not depend on the rounds before
    peak, plain = (seeded(0, partial(peak_memory, work)) for work in both.values())
    return {
        "time": round(median(a / b for a, b in zip(*spent.values(), strict=True)), 3),
        "seconds": round(median(spent["own"]), 4),
        "memory": round(peak / plain, 3),
        "bytes": peak,
        "flops": seeded(0, partial(flops, both["own"])),
        "state": state(made, L),
    }


@torch.no_grad()
def state(made: Callable[[int], dict[str, Any]], L: int) -> int | None:
    """Bytes that a model keeps of L tokens; None if it refuses to keep any."""
    cache: Cache = {}
    try:
        letters(**compare.told(partial(made, L))).eval()(torch.arange(L)[None] % 50, cache)
    except ValueError:
        return None
    return kept_bytes(cache)


def collect(done: Sequence[Done]) -> dict[str, Any]:
    costs = {
        x["run"]["config"]["name"]: x["result"]
        for x in done
        if x["run"]["config"]["part"] == "cost"
    }
    return {
        "title": "The family in one small GPT, at 512 tokens",
        "length": LENGTH,
        "lengths": list(LENGTHS),
        **_collect(done),
        "costs": {name: costs[name] for name in NAMES},
    }
