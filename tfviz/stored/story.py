"""The story model: one small GPT that reads and writes the small world, with parts to exchange.

Its base has rotary positions, RMSNorm before each part, GELU and full attention. A variant has one
other part; which there are is said by the exhibits of the mechanisms, `Exhibit.story`.
`tfviz_lab.story` trains all of them. A part of your own is trained by `learn`, and `page` writes
the page in which it stands beside the base.

>>> model = gpt("last 8")
>>> model(small_world.encode("| one morning a girl")[None]).shape
torch.Size([1, 5, 140])
>>> sorted({part.socket for part in PARTS.values()})
['attention', 'blocks', 'feed', 'keys and values', 'norm', 'pattern', 'position']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz import small_world
from tfviz.basics.layer_norm_pre_post import RMSNorm
from tfviz.cores import Dense
from tfviz.exhibits import EXHIBITS
from tfviz.exhibits.exhibit import Gpt, Part
from tfviz.models.gpt import GPT
from tfviz.position.rope import Turned
from tfviz.small_world import END, NUMBER, SKILLS, WORDS, Story, encode, probes, text
from tfviz.stored import weights
from tfviz.training import train

__all__ = [
    "PARTS",
    "WORDS",
    "encode",
    "gpt",
    "learn",
    "pack",
    "page",
    "probes",
    "scores",
    "text",
    "trained",
    "unpack",
]

LENGTH, WIDTH, HEADS, BLOCKS = small_world.LONGEST + 1, 64, 4, 3
BASE = "base"
PARTS: dict[str, Part] = {
    name: part for exhibit in EXHIBITS.values() for name, part in exhibit.story.items()
}
"""Variant → the part in which it differs from the base."""


def part_of(name: str) -> Part | None:
    """None of the base. Raises ValueError for a variant that there is not."""
    if name != BASE and name not in PARTS:
        raise ValueError(f"name = {name!r}; choose {BASE!r} or one of {', '.join(PARTS)}")
    return PARTS.get(name)


def gpt(name: str = BASE, weights: Mapping[str, Tensor] | None = None, **options: Any) -> GPT:
    """The base or a variant, not yet trained: (b, L) numbers of words → (b, L, len(WORDS)).

    Where a name and a shape are those of `weights`, it begins with them, so that variants and base
    start alike. `options` are those of `GPT` in which a model of your own differs; with a `core`
    there are no rotary positions unless it brings them. Raises ValueError for a variant that there
    is not.
    """
    part = part_of(name)
    told = dict(part.options(Gpt(LENGTH, WIDTH, HEADS))) if part else {}
    if part is None or part.turned:
        told.pop("positions", None)
        told["core"] = partial(Turned, core=told.get("core", Dense))
    told |= options
    finish: Callable[[GPT], GPT] = told.pop("finish", lambda model: model)
    h, N = told.pop("h", HEADS), told.pop("N", BLOCKS)
    model = GPT(len(WORDS), WIDTH, h, N, **{"norm": RMSNorm} | told)
    own = model.state_dict()
    alike = {
        key: x for key, x in (weights or {}).items() if key in own and own[key].shape == x.shape
    }
    model.load_state_dict(alike, strict=False)
    return finish(model)


# --- what it learns -------------------------------------------------------------------------------

BATCH, RATE = 16, 3e-3
ANSWERS = 8
"""In training an answer counts as much as so many other words: one word in twenty is one. In the
loss that is said of a model all words count the same."""


def next_word(model: nn.Module, rng: Generator, step: int) -> Tensor:
    """Nats per word of a batch of new stories, where answers count more."""
    x, y, asked = small_world.batch(BATCH, LENGTH, rng)
    nats = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none")
    counts = 1 + (ANSWERS - 1) * asked.flatten()
    return (nats * counts).sum() / counts.sum()


def learn(
    model: nn.Module, steps: int = 1000, seed: int = 0, progress: bool | None = None
) -> list[float]:
    """Train a model on stories in place, as the base and its variants are; the loss of each step.

    A step takes about a tenth of a second. progress: as in `tfviz.training.train`.
    """
    return train(model, next_word, steps, lr=RATE, seed=seed, progress=progress)


@cache
def held_out(n: int) -> tuple[Story, ...]:
    return tuple(small_world.held_out(n))


@torch.no_grad()
def scores(model: nn.Module, stories: Sequence[Story] = ()) -> dict[str, Any]:
    """What a model makes of stories, by default of a thousand that are held out.

    {"loss": nats per word, "skills": {skill: the share of right answers}}; of an answer the
    likeliest word of all counts.
    """
    losses, words = 0.0, 0
    right: dict[str, list[bool]] = {skill: [] for skill in SKILLS}
    stories = stories or held_out(1000)
    for first in range(0, len(stories), 64):
        some = stories[first : first + 64]
        rows = [[END, *one.words, END] for one in some]
        longest = max(map(len, rows))
        ids = torch.tensor(
            [[NUMBER[word] for word in row + [END] * (longest - len(row))] for row in rows]
        )
        logits, y = model(ids[:, :-1]), ids[:, 1:].clone()
        for row, mine in zip(y, rows, strict=True):
            row[len(mine) - 1 :] = -100  # what only fills the row up
        losses += F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum").item()
        words += int((y >= 0).sum())
        said = logits.argmax(-1).tolist()
        for one, row in zip(some, said, strict=True):
            for fact in one.facts:  # its place in the row is one more, which the word before names
                if fact.counts:
                    right[fact.skill].append(row[fact.place] == NUMBER[fact.word])
    skills = {skill: round(mean(found), 4) for skill, found in right.items()}
    return {"loss": round(losses / words, 4), "skills": skills}


# --- weights as they are stored -------------------------------------------------------------------


def pack(model: nn.Module) -> str:
    """All weights as text, as `tfviz.stored.weights` packs them in bytes: in the order of
    `named_parameters`, without their names."""
    data: str = weights.pack(dict(model.named_parameters()))["data"]
    return data


def unpack(packed: str, name: str = BASE) -> GPT:
    """The model whose weights `pack` made this text of, ready to be asked.

    Raises ValueError if the text has another number of weights than this variant.
    """
    model = gpt(name)
    shapes = [[own, list(x.shape)] for own, x in model.named_parameters()]
    try:
        found = weights.unpack({"numbers": "int8", "shapes": shapes, "data": packed})
    except ValueError as error:
        raise ValueError(
            f"packed does not hold the weights of {name!r} ({error}): give its variant"
        ) from error
    model.load_state_dict(found, strict=False)
    return model.eval()


def trained(name: str = BASE, step: int | None = None) -> GPT:
    """The stored model; of the base also as it was after so many steps.

    Raises ValueError for a variant that there is not and for a step that is not stored,
    FileNotFoundError for one that has not been trained yet.
    """
    from tfviz.stored.story_page import EARLY, results  # it makes models by this room

    part_of(name)
    found = results()
    if not found["steps"] or name not in found["weights"]:
        raise FileNotFoundError(f"{name!r} has not been trained: python -m tfviz_lab story")
    if step is None or step == found["steps"]:
        return unpack(found["weights"][name], name)
    on_its_way = [x for x in found["weights"] if x.startswith(EARLY)]
    if name != BASE or f"{EARLY} {step}" not in on_its_way:
        raise ValueError(
            f"step = {step} of {name!r}; only {BASE!r} is stored on its way, as "
            f"{', '.join(on_its_way)}"
        )
    return unpack(found["weights"][f"{EARLY} {step}"])


# --- a page of one's own --------------------------------------------------------------------------


def page(file: str | Path, model: GPT, name: str = "mine") -> Path:
    """Write the story model's page, to be opened without a network, with a model of your own beside
    the base, under this name; the file's path.

    It may have any part of which the page can be told, see `page_gpt`; what it knows is counted on
    held-out stories. `file` ends in .html and lies in a folder that exists. Raises TypeError for
    what is no GPT, ValueError for one of other words than WORDS, that sees the words it is to
    predict, or has a part that the page does not have, and for a name that is taken.
    """
    from tfviz.explorers import StoryModel  # which stand above this room
    from tfviz.stored import story_page

    story_page.put(name, model)
    return StoryModel(swap=name).save(file)
