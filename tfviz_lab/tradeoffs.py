"""The race of everything: what each mechanism costs and what it loses, in the same small model.

    python -m tfviz_lab tradeoffs    → results/tradeoffs.json

Two kinds of models, both with the sizes of `compare`: a GPT, whose scores are those of `family`,
and an encoder, the same blocks with attention to both sides, for what reads a whole text at once.

masked_text   nats per hidden character of English text, 64 characters at a time (encoder)
around        nats per symbol: name the one 12 places before; `recall` of an encoder
time, memory  one training step at each of LENGTHS, ÷ that of the plain model of its kind: processor
              time as the median of rounds in turns, the peak of what torch allocates
flops         of the products of this step
state         bytes that a model keeps of a text to go on with it, at each of LENGTHS
error         |A − Â| / |A| in the Frobenius norm, of the maps A in the second layer of a trained
              plain model and of what the mechanism makes of the same queries and keys: the median
              over heads and texts

A length at which a step would take more than LIMIT bytes or PATIENCE seconds, as the one before
lets expect of what is quadratic, is not measured; `stopped` says which of the two it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Generator, Tensor

from tfviz import data
from tfviz.basics.cache_cost import kept_bytes
from tfviz.cores import CAUSAL, FULL, Cache, Dense, Where, build, implied_map
from tfviz.exhibits import EXHIBITS, Gpt
from tfviz.measure import flops, in_turns, peak_memory
from tfviz.models.gpt import GPT
from tfviz.patterns import Pattern
from tfviz.position.learned_pe import Learned
from tfviz.training import seeded
from tfviz_lab import compare, family
from tfviz_lab.compare import HEADS, LAYERS, SEEDS, SYMBOLS, TRAIN_LENGTH, WIDTH, Task
from tfviz_lab.compressed.random_features import heads_of
from tfviz_lab.family import PLAIN
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy"]
CLOCKS = ("time", "seconds")
LENGTHS, ROUNDS = (128, 512, 2048, 4096), 5
LIMIT, PATIENCE, TEXTS = 3 << 29, 30.0, 4
STEPS = {"masked_text": 400, "around": 300}

ENCODERS = {name: exhibit.encoder for name, exhibit in EXHIBITS.items() if exhibit.encoder}
KINDS = ("causal", "encoder")


def _encoder(vocab: int, pattern: Sequence[Pattern] = LAYERS * (FULL,), **told: Any) -> GPT:
    """No BERT: with its further norms the plain one did not learn `around` in 800 steps."""
    return GPT(vocab, WIDTH, HEADS, LAYERS, layer=lambda n: {"pattern": pattern[n]}, **told)


def _masked(**told: Any) -> GPT:
    return _encoder(len(data.characters()[1]) + 1, **told)  # and the token that hides


def _around(model: Any) -> float:
    x, y = compare.examined("recall")
    return round(compare.nats(model, "recall", x, y, TRAIN_LENGTH).item(), 4)


TASKS = {
    "masked_text": replace(compare.TASKS["masked_text"], steps=STEPS["masked_text"], model=_masked),
    "around": replace(
        compare.TASKS["recall"],
        name="around",
        steps=STEPS["around"],
        model=partial(_encoder, SYMBOLS),
        score=_around,
        causal=False,
    ),
}


def names(kind: str) -> list[str]:
    """Who races, the plain model first, then in the order of the course."""
    return sorted(family.RACES if kind == "causal" else ENCODERS, key=lambda name: name != PLAIN)


def options(kind: str, name: str, L: int) -> dict[str, Any]:
    """What a model for texts of L is given, by its kind and the mechanism's id."""
    races = family.RACES if kind == "causal" else ENCODERS
    return races[name](Gpt(L, WIDTH, HEADS))


def told(kind: str, name: str, L: int) -> dict[str, Any]:
    """The same, with a pattern for each layer."""
    pattern = CAUSAL if kind == "causal" else FULL
    return compare.told(partial(options, kind, name, L), pattern)


def model(kind: str, name: str, L: int) -> Any:
    """Not trained, for characters."""
    return text_task(kind).model(**told(kind, name, L))


def text_task(kind: str) -> Task:
    return compare.TASKS["text"] if kind == "causal" else TASKS["masked_text"]


def step(kind: str, name: str, L: int) -> Callable[[], None]:
    """One step of training without the optimizer: loss and gradients of one row of L characters."""
    made, row = seeded(0, partial(model, kind, name, L)), torch.arange(L)[None] % 50

    def work() -> None:
        made(row).logsumexp(-1).sum().backward()
        made.zero_grad()

    return work


# --- what it costs --------------------------------------------------------------------------------


def cost(kind: str, name: str) -> dict[str, Any]:
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
        at_length = cost_at(kind, name, L)
        for key, values in rows.items():
            values.append(at_length[key])
        before = L
    padded = {key: values + [None] * (len(LENGTHS) - len(values)) for key, values in rows.items()}
    kept = padded["state"] if kind == "causal" else None
    return padded | {"state": kept, "stopped": stopped}


def cost_at(kind: str, name: str, L: int) -> dict[str, Any]:
    both = {"own": step(kind, name, L), "plain": step(kind, PLAIN, L)}
    spent = in_turns(both, 3 if max(LENGTHS) == L else ROUNDS)
    # some draw who meets whom: what is counted does not depend on the rounds before
    peak, plain = (seeded(0, partial(peak_memory, work)) for work in both.values())
    return {
        "time": round(median(a / b for a, b in zip(*spent.values(), strict=True)), 3),
        "seconds": round(median(spent["own"]), 4),
        "memory": round(peak / plain, 3),
        "bytes": peak,
        "flops": seeded(0, partial(flops, both["own"])),
        "state": state(name, L) if kind == "causal" else None,
    }


@torch.no_grad()
def state(name: str, L: int) -> int | None:
    """Bytes that a model keeps of L tokens; None if it refuses to keep any."""
    cache: Cache = {}
    try:
        model("causal", name, L).eval()(torch.arange(L)[None] % 50, cache)
    except ValueError:
        return None
    return kept_bytes(cache)


# --- what it makes of a trained map ---------------------------------------------------------------


def core_of(kind: str, name: str) -> tuple[Any, Pattern] | str:
    """(core, pattern) of the second layer, or why it has no map that is near a trained one."""
    given = told(kind, name, TRAIN_LENGTH)
    if "mix" in given:
        return "it replaces the whole layer"
    if "h_kv" in given:
        return "its heads of keys are trained as such"
    if not isinstance(given.get("positions"), Learned):
        return "it tells positions, which changes what queries look for"
    core = build(given.get("core", Dense), WIDTH // HEADS, HEADS)
    if sum(x.numel() for x in getattr(core, "parameters", list)()):
        return "it has weights of its own, which must be trained first"
    if getattr(core, "mu", None) is not None:
        return "its centroids move in training"
    return core, given["pattern"][1]


@torch.no_grad()
def errors(kind: str, seed: int, steps: int) -> dict[str, float | str]:
    """By mechanism: |A − Â| / |A| with the plain model of this seed, or why it has none."""
    task = text_task(kind)
    with torch.enable_grad():
        plain, _ = compare.trained(partial(options, kind, PLAIN, TRAIN_LENGTH), task, seed, steps)
    ids = data.split(data.characters()[0])[1]
    text = data.windows(ids, TEXTS, TRAIN_LENGTH, Generator().manual_seed(1))[0]
    Q, K, V = (X.double() for X in heads_of(plain, text)[1])
    A = implied_map(Dense(), Q, K, V, Where(CAUSAL if kind == "causal" else FULL))
    found = dict[str, float | str]()
    for name in names(kind):
        torch.manual_seed(seed)  # for the directions that some draw
        made = core_of(kind, name)
        found[name] = made if isinstance(made, str) else error(A, Q, K, V, *made)
    return found


def error(A: Tensor, Q: Tensor, K: Tensor, V: Tensor, core: Any, pattern: Pattern) -> float | str:
    """|A − Â| / |A|, the median over heads and texts, or why the core has no Â."""
    where = Where(pattern)
    core = core.double() if isinstance(core, torch.nn.Module) else core
    try:
        own, others = (implied_map(core, Q, X, V, where) for X in (K, K.flip(2)))
    except ValueError as refused:
        return f"no matrix stands for it: {refused}"
    if own.equal(others):
        return "it does not look at the keys of full attention"
    missed = torch.linalg.matrix_norm(A - own) / torch.linalg.matrix_norm(A)
    return round(missed.median().item(), 4)


# --- the experiment -------------------------------------------------------------------------------


def _code(kind: str, name: str) -> str:
    """Where the line of the race is made; it is looked up by its name while the code runs."""
    race = (family.RACES if kind == "causal" else ENCODERS)[name]
    return f"{race.__module__}:{race.__name__}"


def runs() -> list[Run]:
    costs = [
        Run(
            f"cost {kind} {name}",
            {"what": "cost", "kind": kind, "name": name},
            of=(_code(kind, name), _code(kind, PLAIN)),
        )
        for kind in KINDS
        for name in names(kind)
    ]
    scores = [
        Run(
            f"{task} {name}",
            {"what": task, "kind": "encoder", "name": name, "steps": steps},
            seed,
            (_code("encoder", name),),
        )
        for seed in SEEDS
        for task, steps in STEPS.items()
        for name in names("encoder")
    ]
    trained = {"causal": compare.TASKS["text"].steps, "encoder": STEPS["masked_text"]}
    misses = [
        Run(
            f"error {kind}",
            {"what": "error", "kind": kind, "steps": trained[kind]},
            seed,
            tuple(_code(kind, name) for name in names(kind)),
        )
        for seed in SEEDS
        for kind in KINDS
    ]
    return scores + misses + costs


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    what, kind = config["what"], config["kind"]
    if what == "cost":
        return cost(kind, config["name"])
    if what == "error":
        return errors(kind, seed, config["steps"])
    made = partial(options, kind, config["name"], TRAIN_LENGTH)
    return compare.measured(made, TASKS[what], seed, config["steps"])


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{kind: {id: its row}}, and what the plain model takes; scores and errors for each seed."""
    rows: dict[str, dict[str, dict[str, Any]]]
    rows = {kind: {name: {} for name in names(kind)} for kind in KINDS}
    for x in sorted(done, key=lambda x: x["run"]["seed"]):
        config, result = x["run"]["config"], x["result"]
        of_kind = rows[config["kind"]]
        if config["what"] == "cost":
            of_kind[config["name"]] |= result
        elif config["what"] == "error":
            for name, found in result.items():
                of_kind[name].setdefault("error", []).append(found)
        else:
            row = of_kind[config["name"]]
            row.setdefault(config["what"], []).append(result["score"])
            if config["what"] == "masked_text":
                row["parameters"] = result["parameters"]
    plain = dict[str, dict[str, Any]]()
    for kind, of_kind in rows.items():
        absolute = {name: (row.pop("seconds"), row.pop("bytes")) for name, row in of_kind.items()}
        plain[kind] = dict(zip(("seconds", "bytes"), absolute[PLAIN], strict=True))
        for row in of_kind.values():
            why = next((x for x in row["error"] if isinstance(x, str)), "")
            row |= {"error": None if why else row["error"], "no_error": why}
    return {
        "title": "The race of everything",
        "lengths": list(LENGTHS),
        "train_length": TRAIN_LENGTH,
        "plain": plain,
        **rows,
    }
