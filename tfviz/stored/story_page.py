"""The trained story models for a page: what is known of each, the stories, and how one is read.

Only variants that were really trained are there: those of the stored result `story`, and as long
as the experiment has not ended, those of its runs that have. Of how many seeds each result is, and
whether a word may be said of it, stands beside it.

>>> one = stories()[0]
>>> one.skill, " ".join(one.words[-4:]), one.answer, one.words[one.source]
('colour', 'the ball was still', 'black', 'black')
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfviz import catalogue, stored
from tfviz.exhibits import EXHIBITS
from tfviz.models.gpt import GPT
from tfviz.models.use import watched
from tfviz.small_world import END, KIND, NUMBER, SKILLS, WORDS, probes
from tfviz.stored import page_gpt, weights
from tfviz.stored.story import BASE, BLOCKS, HEADS, LENGTH, PARTS, WIDTH, gpt, pack, scores, unpack
from tfviz.training import seeded

SHOWN = 0
"""The seed whose weights are kept."""

SOCKETS = {
    "position": ("position", "rotary"),
    "pattern": ("who sees whom", "all before"),
    "keys and values": ("keys and values", "4 heads"),
    "attention": ("attention", "softmax"),
    "norm": ("norm", "RMS, before"),
    "feed": ("feed-forward", "GELU"),
    "blocks": ("blocks", "3 different"),
}
"""Socket → what it is called in the page, and the part that the base has in it."""

ABOUT = {
    "last 8": "In each block a word sees itself and the 7 words before it.",
    "8 + sinks": "A word sees the last 8 words and the first 4.",
    "strided": "A word sees the last 8 words, and every 8th word before them.",
    "8, 8, all": "The first two blocks see 8 words; the third sees all.",
    "GQA": "Two heads of queries share one head of keys and values.",
    "MQA": "All heads of queries share one head of keys and values.",
    "one head": "One wide head takes the place of four narrow ones.",
    "none": "Nothing tells a word its place but the mask, which hides what comes later.",
    "sinusoidal": "Sines and cosines of the place are added to each word.",
    "learned": "A learned row for each place is added to each word.",
    "Shaw": "Each score and each value gets a learned row for the distance.",
    "ALiBi": "A slope times the distance is taken off each score.",
    "linear": "There is no softmax: what was read is a sum of one size, however long the text.",
    "average": "Every word before counts the same.",
    "post": "The norm comes after each addition, as in 2017.",
    "LayerNorm": "Each row is also brought to mean 0.",
    "SwiGLU": "One half of the feed-forward network opens and shuts the other.",
    "no feed": "There is no feed-forward network.",
    "one block three times": "One block is applied three times, with the same weights.",
}
"""Variant → what is different in it, in one sentence. Another one has the idea of its mechanism."""

HAS = 0.95
"""Whoever is right as often has a skill."""

EARLY = "step"
"""Before the number of steps in the name of the base on its way."""

MOST_WORDS = 82
"""Of a story in the page, before the answer: what is seen at once."""

YOURS = "yours"
"""The socket of models that were `put` beside these."""

STORIES = {
    "colour": "far colour",
    "owner": "who has it",
    "pronoun": "he or she",
    "place": "where",
    "repainted": "new colour",
    "repeated": "song",
}
"""Skill → what it, and the story that asks for it, is called."""


# --- what is stored -------------------------------------------------------------------------------


@cache
def results() -> dict[str, Any]:
    """{"variants": {name: {"loss", "skills", "appears", each with a value of every seed, "words",
    "parameters"}}, "weights": {name: text}, "chance": {skill: share}, "steps"}.

    The base on its way, such as "step 250", is a variant too. As long as not even the base has been
    trained, it is there with random weights, without scores and after 0 steps.
    """
    try:
        whole = stored.load("story")
    except FileNotFoundError:
        return _ended() or _untrained()
    found = {key: whole[key] for key in ("variants", "weights", "steps")}
    return _with_early(
        found | {"chance": whole["lines"]["chance"]}, whole["looks"][SHOWN], whole["checkpoints"]
    )


def _with_early(
    found: dict[str, Any], looks: Sequence[Mapping[str, Any]], checkpoints: Mapping[str, str]
) -> dict[str, Any]:
    """The same with the base as it was after so many steps, {step: weights}."""
    for look in looks:
        if packed := checkpoints.get(str(look["step"])):
            name = f"{EARLY} {look['step']}"
            found["weights"][name] = packed
            found["variants"][name] = {
                "loss": [look["loss"]],
                "skills": {skill: [share] for skill, share in look["skills"].items()},
                "words": {},
                "parameters": found["variants"][BASE]["parameters"],
            }
    return found


def _untrained() -> dict[str, Any]:
    model = seeded(0, gpt)
    none: dict[str, list[float]] = {skill: [] for skill in SKILLS}
    parameters = sum(x.numel() for x in model.parameters())
    row = {"loss": [], "skills": none, "appears": none, "words": {}, "parameters": parameters}
    return {"variants": {BASE: row}, "weights": {BASE: pack(model)}, "chance": {}, "steps": 0}


def _ended() -> dict[str, Any] | None:
    """The same of the runs that have ended, of which no word is said; None if no base has."""
    path = stored.RESULTS / "unfinished" / "story.json"
    if not path.exists():
        return None
    runs = json.loads(path.read_text("utf-8"))["runs"]
    of: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(runs, key=lambda one: int(one["run"]["seed"])):
        of.setdefault(one["run"]["name"], []).append(one)
    chance = of["lines"][0]["result"]["chance"] if "lines" in of else {}
    variants, weights = dict[str, Any](), dict[str, str]()
    for name in (BASE, *PARTS):
        ended = [one["result"] for one in of.get(name, ())]
        kept = [x["weights"] for x in ended if x.get("weights")]
        if not kept:
            continue
        weights[name] = kept[SHOWN]
        variants[name] = {
            "loss": [x["loss"] for x in ended],
            "skills": {skill: [x["skills"][skill] for x in ended] for skill in SKILLS},
            "appears": {skill: [x["appears"][skill] for x in ended] for skill in SKILLS},
            "words": {},
            "parameters": ended[0]["parameters"],
        }
    if BASE not in weights:
        return None
    steps = max(one["run"]["config"]["steps"] for one in of[BASE])
    told = {"variants": variants, "weights": weights, "chance": chance, "steps": steps}
    shown = of[BASE][SHOWN]["result"]
    return _with_early(told, shown["looks"], shown["checkpoints"])


def names() -> tuple[str, ...]:
    """The models that are there: the base, variants, and the base on its way."""
    there = results()["weights"]
    early = sorted((name for name in there if name.startswith(EARLY)), key=_step)
    return (*(name for name in (BASE, *PARTS) if name in there), *early, *_own)


_own: dict[str, tuple[GPT, dict[str, Any]]] = {}
"""Name → a model of somebody's own, and what `results` says of a variant."""


def put(name: str, model: GPT) -> None:
    """Let a model of your own stand beside the others, until Python ends or another takes its name.

    Raises as `story.page` does.
    """
    others = {BASE, *PARTS, *results()["weights"], *_own} - {name if name in _own else None}
    if not slug(name).strip("_") or slug(name).lower() in {slug(x).lower() for x in others}:
        raise ValueError(
            f"name = {name!r} is taken, or has no letter in it; give the model one of its own, "
            "such as 'mine'"
        )
    told = page_gpt.handed_over(model)
    heads = max(block["mixer"].get("h", 1) for block in told["blocks"])
    sizes = told["vocab"], len(told["blocks"]), told["d"], heads
    room = len(WORDS), BLOCKS, WIDTH, HEADS
    if sizes[:2] != room[:2] or sizes[2] > WIDTH or heads > HEADS:
        words = "{} words, {} blocks, width {} and {} heads"
        raise ValueError(
            f"model has {words.format(*sizes)}; the page has room for {words.format(*room)}: "
            "give a GPT with as many words and blocks, and no more of the others"
        )
    model = copy.deepcopy(model).eval().requires_grad_(False)
    model.load_state_dict(weights.unpack(weights.pack(model.state_dict(), "int8")))  # as it travels
    _refuse_the_future(model)
    found = scores(model)
    row = {
        "loss": [found["loss"]],
        "skills": {skill: [share] for skill, share in found["skills"].items()},
        "words": {},
        "parameters": sum(x.numel() for x in model.parameters()),
    }
    _own[name] = model, row
    handed.cache_clear()
    exact.cache_clear()


def slug(name: str) -> str:
    """As files and the page's addresses have it."""
    return re.sub("[^a-zA-Z0-9]+", "_", name)


@torch.no_grad()
def _refuse_the_future(model: GPT) -> None:
    x = torch.tensor([encoded(stories()[0].words)])
    before = model(x)
    for n in range(1, x.shape[1]):
        other = x.clone()
        other[:, n] = (x[:, n] + 1) % len(WORDS)
        if not torch.allclose(model(other)[:, :n], before[:, :n], atol=1e-5):
            raise ValueError(
                f"model sees the words that it is to predict: word {n} changes what it says before "
                "it; give pattern = causal(), or a core that keeps to the past"
            )


def _step(name: str) -> int:
    return int(name.split()[-1])


@cache
def handed(name: str = BASE) -> dict[str, Any]:
    """A model for `alive`. Raises ValueError for one that is not there."""
    return page_gpt.handed_over(_stored(name))


@cache
def exact(name: str = BASE) -> GPT:
    """The same in double precision, as the page has it."""
    return page_gpt.in_double(_stored(name))


def _stored(name: str) -> GPT:
    if name not in names():
        raise ValueError(
            f"swap = {name!r}, which has no trained weights; choose one of "
            f"{', '.join(map(repr, names()))}"
        )
    if name in _own:
        return _own[name][0]
    return unpack(results()["weights"][name], BASE if name.startswith(EARLY) else name)


# --- stories --------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """The words of a held-out story up to a question, and its answer.

    source  the place in `words` of what the answer follows from
    """

    skill: str
    words: tuple[str, ...]
    answer: str
    source: int


@cache
def stories() -> tuple[Asked, ...]:
    """One story for each skill: of a hundred, the one whose answer follows from furthest back,
    among those with at most MOST_WORDS words before it, the last of them no mark."""
    found = []
    for skill in STORIES:
        if skill not in SKILLS:
            continue
        short = [
            probe
            for probe in probes(skill)
            if len(probe.before) <= MOST_WORDS and KIND[probe.before[-1]] != "mark"
        ]
        one = max(short, key=lambda probe: probe.fact.distance)
        source = one.fact.place - one.fact.distance
        found.append(Asked(skill, one.before, one.fact.word, source))
    return tuple(found)


def first() -> str:
    """The skill whose story is shown first: the first of STORIES that the base has, else the one in
    which it is right most often."""
    shares = {
        skill: max(of or [0.0]) for skill, of in results()["variants"][BASE]["skills"].items()
    }
    there = [skill for skill in STORIES if skill in shares]
    return next((x for x in there if shares[x] >= HAS), max(there, key=lambda x: shares[x]))


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Read:
    """What a model does with L tokens.

    p        (L, vocab): the next word after each token
    A        of each block, (h, L, L)
    stream   of each node, before the first block and after each, (L, d)
    """

    p: Tensor
    A: tuple[Tensor, ...]
    stream: tuple[Tensor, ...]

    @property
    def logits(self) -> Tensor:
        return self.p.log()


@torch.no_grad()
def read(model: GPT, tokens: Sequence[int], off: Sequence[tuple[int, int]] = ()) -> Read:
    """All of it for these tokens; heads that are `off`, (block, head), find nothing."""
    A, rows = list[Tensor](), list[Tensor]()

    def after(block: Any, given: Any, row: Tensor) -> None:
        if not rows:
            rows.append(given[0][0])
        rows.append(row[0])
        A.append(block.attend.seen.A[0])

    stack: Any = model.stack
    blocks = list(getattr(stack, "blocks", ())) or [stack.block]
    hooks = [block.register_forward_hook(after) for block in dict.fromkeys(blocks)]
    try:
        with watched(model), _silent(blocks, off, A):
            p = model(torch.tensor([list(tokens)]))[0].softmax(-1)
    finally:
        for hook in hooks:
            hook.remove()
    return Read(p, tuple(A), tuple(rows))


@contextmanager
def _silent(
    blocks: Sequence[Any], off: Sequence[tuple[int, int]], A: list[Tensor]
) -> Iterator[None]:
    """`len(A)` is the number of the block that is at work."""
    kept = {block.attend: block.attend.join for block in blocks} if off else {}
    for attend, join in kept.items():

        def without(heads: Tensor, X: Tensor, join: Any = join) -> Tensor:
            silent = [m for n, m in off if n == len(A) and m < heads.shape[1]]
            return join(heads.index_fill(1, torch.tensor(silent, dtype=torch.long), 0.0), X)

        attend.join = without
    try:
        yield
    finally:
        for attend, join in kept.items():
            attend.join = join


@torch.no_grad()
def would_say(model: GPT, row: Tensor) -> Tensor:
    """(vocab,): the next word, had the stream stopped at this row."""
    stack: Any = model.stack
    return (stack.norm(row) @ model.embed.weight.T).softmax(-1)


def head_of(one: Read, tokens: Sequence[int], i: int) -> tuple[int, int]:
    """(block, head): the one that takes most, at place i, from where the likeliest next word stands
    already; if it stands nowhere, the one that takes most from a single word."""
    said = int(one.p[i].argmax())
    there = [j for j in range(i + 1) if tokens[j] == said]
    most, best = -1.0, (0, 0)
    for n, maps in enumerate(one.A):
        for m, row in enumerate(maps[:, i]):
            taken = float(row[there].sum() if there else row[: i + 1].max())
            if taken > most:
                most, best = taken, (n, m)
    return best


# --- for the page ---------------------------------------------------------------------------------


def for_page() -> dict[str, Any]:
    """What the module is given: words, stories, the base, and what is stored of every model."""
    found = results()
    there = names()
    by_name = {name: key for key, exhibit in EXHIBITS.items() for name in exhibit.story}

    def part(name: str) -> dict[str, Any]:
        mechanism = catalogue.get(by_name[name])
        return {
            "name": name,
            "about": ABOUT.get(name, mechanism.idea),
            "chapter": mechanism.document,
        }

    shelf = [
        {
            "socket": socket,
            "label": label,
            "base": base,
            "parts": [
                part(name) for name in there if name in PARTS and PARTS[name].socket == socket
            ],
        }
        for socket, (label, base) in SOCKETS.items()
    ]
    early = [name for name in there if name.startswith(EARLY)]
    if early:
        steps = found["steps"]
        shelf.append(
            {
                **{"socket": EARLY, "label": "watch it learn", "base": f"{EARLY} {steps}"},
                "parts": [
                    {"name": x, "about": _on_its_way(x, steps), "chapter": ""} for x in early
                ],
            }
        )
    if _own:
        mine = [{"name": x, "about": "A model of your own.", "chapter": ""} for x in _own]
        shelf.append({"socket": YOURS, "label": "your own", "base": "none", "parts": mine})
    rows = found["variants"] | {name: row for name, (_, row) in _own.items()}
    of = ("loss", "skills", "words", "parameters")
    return {
        "words": list(WORDS),
        "kinds": [KIND.get(word, "mark") for word in WORDS],
        "stories": [
            {
                "name": STORIES[one.skill],
                "skill": one.skill,
                "tokens": encoded(one.words),
                "answer": NUMBER[one.answer],
                "back": len(one.words) - one.source,
            }
            for one in stories()
        ],
        "shelf": shelf,
        "scores": {name: {key: rows[name][key] for key in of} for name in there},
        "chance": found["chance"],
        "steps": found["steps"],
        "longest": LENGTH,
        "base": handed(),
    }


def _on_its_way(name: str, steps: int) -> str:
    """What the base could do by then, in a sentence or two."""
    shares = results()["variants"][name]["skills"]
    can = [label for skill, label in STORIES.items() if shares.get(skill, [0.0])[0] >= HAS]
    known = f"It had learned: {', '.join(can)}." if can else "It had learned no skill yet."
    return f"The base after {_step(name):,} of {steps:,} steps of training. {known}"


def encoded(words: Sequence[str]) -> list[int]:
    """The mark before a story, and its words."""
    return [NUMBER[END], *(NUMBER[word] for word in words)]
