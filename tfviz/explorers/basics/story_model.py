"""A small trained model at work: what it reads, what its heads attend to, parts to exchange."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import traitlets as t

from tfviz import _arguments
from tfviz.explorers.base import Explorer, Knob, Numbers, given, handed, knob, own, uniforms
from tfviz.models.gpt import GPT
from tfviz.small_world import END, KIND, NUMBER, WORDS
from tfviz.stored import story_page
from tfviz.stored.story import BASE, BLOCKS, HEADS, LENGTH

FIRST = story_page.first()
HEAD_NAMES = [f"{n}.{m}" for n in range(1, BLOCKS + 1) for m in range(1, HEADS + 1)]
MOST_WRITTEN, DICE = 30, 1
"""Words that are written, at most, and the seed of the random numbers that choose them."""
COLD = 0.05
"""Below this temperature the likeliest word is written."""


class StoryModel(Explorer):
    """The story model at one word of a story: surprise, next word, heads, stream, what it writes.

    swap      a trained variant of `tfviz.stored.story`, such as "last 8", which differs from the
              base in one part; "step 250" for the base on its way, see `story_page.names`;
              "base" for none
    i         the place of the chosen word, by default the last; 0 is the mark before the story
    head      "block.head", both counted from 1; "" for the head that attends most to the word that
              the model predicts
    off       heads that are switched off, ["3.2", …]
    changed   words of the story that are replaced, [[place, word], …]
    """

    uses = ("shared/numbers", "shared/parts", "shared/more_parts", "shared/alive")
    data = handed(
        story_page.for_page,
        base_name=BASE,
        early=story_page.EARLY,
        heads=[HEADS, BLOCKS],
        dice=DICE,
        most=MOST_WRITTEN,
        cold=COLD,
    )
    label = "The story model: a small trained Transformer at work, with parts to exchange"
    asks = "Choose another word of the story. Which head finds what the model predicts next?"
    rem = 45.5, 52, 57.5, 64, 182.5

    models = given(t.Dict(), argument=False)
    swap = own(t.Unicode(BASE))
    story = knob(FIRST, of=dict(story_page.STORIES), label="story")
    i = own(
        Knob(0, low=1, high=lambda e: len(_asked(e.story).words), label="word", letter="i"),
        optional=True,
    )
    head = own(t.Unicode(""))
    written = knob(0, low=0, high=MOST_WRITTEN, label="words written")
    heat = knob(0.0, low=0.0, high=1.5, step=0.1, label="temperature", letter="τ")
    off = own(t.List(t.Unicode()), optional=True)
    changed = own(t.List(t.List()), optional=True)

    @classmethod
    def parts(cls) -> dict[str, str]:
        """The weights of each variant, which come on the first press of its name."""
        return {
            story_page.slug(name): "(globalThis.tfvizStories ??= {})"
            f"[{json.dumps(name)}] = {json.dumps(story_page.handed(name), separators=(',', ':'))};"
            for name in story_page.names()
            if name != BASE
        }

    def prepare(self, said: Numbers) -> Numbers:
        swap = said.get("swap", BASE)
        if not isinstance(swap, str) or swap not in story_page.names():
            raise ValueError(
                f"swap = {swap!r}, which has no trained weights; choose one of "
                f"{', '.join(map(repr, story_page.names()))}"
            )
        said["models"] = {} if swap == BASE else {swap: story_page.handed(swap)}
        skills = [one.skill for one in story_page.stories()]
        if (story := said.get("story", FIRST)) in skills:
            said.setdefault("i", len(_asked(story).words))
        return said

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> StoryModel:
        """The weights of a swap are those that are stored, not those of the state."""
        return cls(**{name: value for name, value in state.items() if name != "models"})

    @t.validate("swap")
    def _swap(self, proposal: Any) -> str:
        swap: str = proposal["value"]
        if swap not in story_page.names():
            raise ValueError(f"swap = {swap!r}; choose one of {', '.join(story_page.names())}")
        return swap

    @t.validate("head")
    def _head(self, proposal: Any) -> str:
        head: str = proposal["value"]
        if head and head not in HEAD_NAMES:
            raise ValueError(f"head = {head!r}; choose '' or one of {', '.join(HEAD_NAMES)}")
        return head

    @t.validate("off")
    def _off(self, proposal: Any) -> list[str]:
        off: list[str] = proposal["value"]
        if wrong := [head for head in off if head not in HEAD_NAMES]:
            raise ValueError(f"off has {wrong[0]!r}; choose from {', '.join(HEAD_NAMES)}")
        return sorted(set(off))

    @t.validate("changed")
    def _changed(self, proposal: Any) -> list[list[Any]]:
        changed: list[list[Any]] = [list(pair) for pair in proposal["value"]]
        for pair in changed:
            if len(pair) != 2 or pair[1] not in KIND:
                raise ValueError(
                    f"changed has {pair!r}; give [place, word], the word one of "
                    "tfviz.small_world.WORDS"
                )
            _arguments.integer("place of changed", pair[0], 1, len(_asked(self.story).words))
        return changed

    @property
    def tokens(self) -> list[int]:
        """The mark before the story and its words, as numbers of `small_world.WORDS`."""
        tokens = story_page.encoded(_asked(self.story).words)
        for place, word in self.changed or ():
            if place < len(tokens):
                tokens[place] = NUMBER[word]
        return tokens

    @property
    def heads_off(self) -> tuple[tuple[int, int], ...]:
        return tuple(_pair(head) for head in self.off or ())

    def numbers(self) -> Numbers:
        """Of the base, and with `swap_` before the name of the model with the other part:

        surprise   nats of each word of the story
        p          the next word after word i, one number for each of `small_world.WORDS`
        weights    how much the chosen head attends, at word i, to each word so far
        would      the probability of the likeliest word at each node of the stream, at word i
        written    the words that the model goes on with after the story, as their numbers

        Without a swap those of the other model are empty. `head` is the chosen one, from 0.
        """
        found = _seen(story_page.exact(), tuple(self.tokens), self.heads_off)
        head = _pair(self.head) if self.head else story_page.head_of(found, self.tokens, self.i)
        out: Numbers = {"head": list(head)}
        for before, name in (("", BASE), ("swap_", None if self.swap == BASE else self.swap)):
            out |= {before + key: x for key, x in self._of(name, head).items()}
        return out

    def _of(self, name: str | None, head: tuple[int, int]) -> Numbers:
        if name is None:
            return {key: [] for key in ("surprise", "p", "weights", "would", "written")}
        model, tokens, i = story_page.exact(name), self.tokens, self.i
        found = _seen(model, tuple(tokens), self.heads_off)
        n, m = head
        maps = found.A[n]
        places = range(1, len(tokens))
        return {
            "surprise": [-math.log(found.p[j - 1, tokens[j]]) for j in places],
            "p": found.p[i],
            "weights": maps[min(m, len(maps) - 1), i, : i + 1],
            "would": [story_page.would_say(model, row[i]).max() for row in found.stream],
            "written": _written(model, tuple(tokens), self.heads_off, self.written, self.heat),
        }


def _asked(skill: str) -> story_page.Asked:
    return next(one for one in story_page.stories() if one.skill == skill)


def _pair(head: str) -> tuple[int, int]:
    n, m = head.split(".")
    return int(n) - 1, int(m) - 1


@lru_cache(64)
def _seen(model: GPT, tokens: tuple[int, ...], off: tuple[tuple[int, int], ...]) -> story_page.Read:
    return story_page.read(model, tokens, off)


def _written(
    model: GPT,
    tokens: tuple[int, ...],
    off: Sequence[tuple[int, int]],
    many: int,
    heat: float,
) -> list[int]:
    """So many words more, fewer where the story ends or the model has read all places that it was
    trained on. Number k is chosen with random number k, whatever the model."""
    dice = (uniforms(DICE, MOST_WRITTEN) / math.sqrt(12) + 0.5).tolist()
    out: list[int] = []
    while len(out) < many and len(tokens) + len(out) < LENGTH:
        p = _seen(model, (*tokens, *out), tuple(off)).p[-1]
        if heat >= COLD:
            left, k = dice[len(out)], 0
            shares = (p.log() / heat).softmax(-1).tolist()
            while k < len(shares) - 1 and (left := left - shares[k]) > 0:
                k += 1
        else:
            k = int(p.argmax())
        out.append(k)
        if WORDS[k] == END:
            break
    return out
