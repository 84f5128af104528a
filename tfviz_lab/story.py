"""The story model: what each part of one small GPT is worth, told by what it remembers.

    python -m tfviz_lab story          what is missing of it, → results/story.json

The base reads the small world (`tfviz.small_world`): rotary positions, RMSNorm before each part,
GELU, three blocks of width 64. A skill of a small model appears suddenly, at a step that depends on
the order of batches; one seed at one budget would teach luck. So there is a gate: variants are
trained only when the base has every skill, right in LEARNT of all answers, with each of SEEDS. If
it has not, the experiment refuses, and says what to turn: ask more often, take fewer words, drop
the skill. Variants begin with the weights of the base where shapes agree, and see the same batches.

    loss         nats per word of whole held-out stories
    skills       the share of right answers to held-out questions, the likeliest word of all counts
    appears      the step from which a skill is there, None if never
    checkpoints  weights of the base when each skill appeared

All scores are those of the weights as they are stored, one byte for a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tfviz import small_world
from tfviz.basics.cache_cost import kept_bytes
from tfviz.cores import Cache
from tfviz.small_world import END, NUMBER, SKILLS, WORDS
from tfviz.stored.story import (
    BASE,
    BATCH,
    LENGTH,
    PARTS,
    RATE,
    gpt,
    held_out,
    next_word,
    pack,
    scores,
    unpack,
)
from tfviz.training import seeded, train
from tfviz_lab import compare
from tfviz_lab.compare import Task
from tfviz_lab.outcomes import outcome
from tfviz_lab.runner import Done, Run
from tfviz_lab.trivial import counted

SEEDS = (0, 1, 2)
VARIANT_SEEDS = (0,)
"""One seed of everything first; then (0, 1, 2), and only then a word is said of a variant."""
STEPS, REHEARSAL = 8000, 300
"""Of a training, and of a first one that shows whether the loss falls, and how long the others
take."""
LEARNT = 0.95
LOOK, LOOKED_AT, SCORED = 250, 128, 1000
"""Every so many steps the skills are counted on so many held-out stories; at the end on more."""
SHOWN = 0
"""The seed whose weights are kept."""
SAME = 0.005
"""A difference of so many nats counts as none."""
LUCK = "depends on the seed"


class NotLearntError(ValueError):
    """The base has not every skill with every seed: nothing may be compared with it."""


# --- what a model can -----------------------------------------------------------------------------


def appears(looks: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """The first step at which a skill is there, and at the next look still."""
    found: dict[str, int | None] = dict.fromkeys(SKILLS)
    for skill in SKILLS:
        there = [look["skills"][skill] >= LEARNT for look in looks]
        for n, look in enumerate(looks):
            if all(there[n : n + 2]):
                found[skill] = look["step"]
                break
    return found


# --- a training -----------------------------------------------------------------------------------


TASK = Task(
    name="story",
    unit="nats per word",
    steps=STEPS,
    model=gpt,
    loss=lambda seed, steps: next_word,
    score=lambda model: scores(model, held_out(SCORED)),
    inputs=lambda rng: small_world.batch(2, LENGTH, rng).x,
)


def untrained(name: str, seed: int) -> Any:
    """A variant with the weights of the base where shapes agree. Raises ValueError if it sees the
    future."""
    base = seeded(seed, gpt).state_dict()
    model = seeded(seed, lambda: gpt(name, base))
    compare.refuse(model, TASK)
    return model


def trained(name: str, seed: int, steps: int, keep: Sequence[str] = ()) -> dict[str, Any]:
    """What is said of one model: loss, skills, when these appeared, numbers and bytes.

    keep   "weights": as they are at the end; "checkpoints": {step: those when a skill appeared}
    """
    model, looks, packed = untrained(name, seed), list[dict[str, Any]](), dict[int, str]()

    def look(model: nn.Module, step: int) -> None:
        if (step + 1) % LOOK and step + 1 < steps:
            return
        looks.append({"step": step + 1, **scores(model, held_out(LOOKED_AT))})
        if "checkpoints" in keep:
            packed[step + 1] = pack(model)

    train(model, next_word, steps, lr=RATE, seed=seed, progress=False, after_step=look)
    stored = seeded(seed, lambda: unpack(pack(model), name))
    when = appears(looks)
    shown = {looks[0]["step"], *(step for step in when.values() if step)} - {steps}
    return {
        **scores(stored, held_out(SCORED)),
        "looks": looks,
        "appears": when,
        "parameters": sum(x.numel() for x in model.parameters()),
        "state": state(stored),
        "weights": pack(model) if "weights" in keep else None,
        "checkpoints": {str(step): packed[step] for step in sorted(shown) if step in packed},
    }


@torch.no_grad()
def state(model: nn.Module) -> int | None:
    """Bytes that a model keeps of LENGTH words to go on with; None if it refuses to keep any."""
    kept: Cache = {}
    try:
        model(held_out_row(), kept)
    except ValueError:
        return None
    return kept_bytes(kept)


def held_out_row() -> Tensor:
    words = [word for one in held_out(2) for word in (END, *one.words)]
    return torch.tensor([[NUMBER[word] for word in words[:LENGTH]]])


# --- what rules reach that learn nothing ----------------------------------------------------------


def lines() -> dict[str, Any]:
    """Nats of counted words and pairs; and of each skill how often it is asked for, how far away
    the answer stands, and how often it is right to guess among the candidates."""
    rng = Generator().manual_seed(0)
    batches = [small_world.batch(BATCH, LENGTH, rng) for _ in range(250)]
    before, word = (torch.cat([one[n].flatten() for one in batches]) for n in (0, 1))
    rows = [[NUMBER[word] for word in (END, *one.words, END)] for one in held_out(SCORED)]
    asked = torch.tensor([x for row in rows for x in row[:-1]])
    right = torch.tensor([x for row in rows for x in row[1:]])
    none, no = torch.zeros_like(word), torch.zeros_like(right)
    found = counted([[none], [none, before]], word, [[no], [no, asked]], right, len(WORDS))
    facts = [fact for one in held_out(SCORED) for fact in one.facts if fact.counts]
    of = {skill: [fact for fact in facts if fact.skill == skill] for skill in SKILLS}
    return {
        "loss": {
            name: round(x.mean().item(), 4)
            for name, x in zip(("one word", "pairs"), found, strict=True)
        },
        "per story": {skill: round(len(found) / SCORED, 3) for skill, found in of.items()},
        "distance": {skill: median(x.distance for x in found) for skill, found in of.items()},
        "chance": {skill: round(mean(x.chance for x in found), 4) for skill, found in of.items()},
    }


# --- the experiment -------------------------------------------------------------------------------


def _run(name: str, seed: int, steps: int = STEPS) -> Run:
    keep = ["weights", "checkpoints"][: 2 if name == BASE else 1] if seed == SHOWN else []
    config = {"variant": name, "steps": steps, "keep": keep if steps == STEPS else []}
    part = PARTS.get(name)
    made = (f"{part.options.__module__}:{part.options.__name__}",) if part else ()
    return Run(f"rehearsal, {name}" if steps == REHEARSAL else name, config, seed, made)


def runs() -> list[Run]:
    """What learns nothing, a rehearsal, and the base. Variants follow."""
    first = [Run("lines", {"variant": None}), _run(BASE, SHOWN, REHEARSAL)]
    return first + [_run(BASE, seed) for seed in SEEDS]


def follow(done: Sequence[Done]) -> list[Run]:
    """The variants, one seed after the other, if the base has every skill with every seed."""
    base = _of(done, BASE)
    if len(base) < len(SEEDS) or lacking(base):
        return []
    return [_run(name, seed) for seed in VARIANT_SEEDS for name in PARTS]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["variant"] is None:
        return lines()
    return trained(config["variant"], seed, config["steps"], config.get("keep", ()))


def lacking(base: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """{skill: its share of right answers with each seed} of what not every seed has learnt."""
    reached = {skill: [result["skills"][skill] for result in base] for skill in SKILLS}
    return {skill: shares for skill, shares in reached.items() if min(shares) < LEARNT}


def word(shares: Sequence[float], chance: float) -> str:
    """What may be said of a skill: has it, partly, guesses, if three seeds agree, else LUCK."""
    if len(shares) < 3:
        return "too few seeds"

    def of(share: float) -> str:
        if share >= LEARNT:
            return "has it"
        return "guesses" if share <= chance + 0.05 else "has it partly"

    said = {of(share) for share in shares}
    return said.pop() if len(said) == 1 else LUCK


def loss_word(losses: Sequence[float], base: Sequence[float]) -> str:
    """What may be said of losses beside the base's with the same seeds, see `outcomes`."""
    return outcome(losses, base, delta=SAME).word if len(losses) >= 3 else "too few seeds"


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Raises NotLearntError if the base has not learnt every skill."""
    base = _of(done, BASE)
    if missing := lacking(base):
        reached = "; ".join(f"{skill} {shares}" for skill, shares in missing.items())
        raise NotLearntError(
            f"the base has not every skill with every seed ({reached}; {LEARNT} is asked), so no "
            "variant is trained. In tfviz/small_world.py ask for it more often in ASKED; if that "
            "does not help, shorten the lists of words; if that does not, set its share to 0"
        )
    chance = _of(done, "lines")[0]["chance"]
    found = {name: _of(done, name) for name in (BASE, *PARTS)}
    losses = {name: [x["loss"] for x in results] for name, results in found.items()}

    def row(name: str) -> dict[str, Any]:
        results = found[name]
        skills = {skill: [x["skills"][skill] for x in results] for skill in SKILLS}
        words = {skill: word(shares, chance[skill]) for skill, shares in skills.items()}
        return {
            "socket": PARTS[name].socket if name in PARTS else None,
            "loss": losses[name],
            "skills": skills,
            "appears": {skill: [x["appears"][skill] for x in results] for skill in SKILLS},
            "words": words | {"loss": loss_word(losses[name], losses[BASE][: len(results)])},
            "parameters": results[0]["parameters"],
            "state": results[0]["state"],
        }

    return {
        "title": "The story model and its parts",
        "vocabulary": len(WORDS),
        "steps": STEPS,
        "learnt": LEARNT,
        "lines": _of(done, "lines")[0],
        "variants": {name: row(name) for name in found},
        "looks": [x["looks"] for x in base],
        "weights": {name: results[SHOWN]["weights"] for name, results in found.items()},
        "checkpoints": base[SHOWN]["checkpoints"],
    }


def _of(done: Sequence[Done], name: str) -> list[dict[str, Any]]:
    """The results of the runs of this name, in the order of their seeds."""
    mine = [x for x in done if x["run"]["name"] == name]
    return [x["result"] for x in sorted(mine, key=lambda x: int(x["run"]["seed"]))]
