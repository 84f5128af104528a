"""The small world: short stories by a grammar of our own, with facts whose answers are known.

A token is a whole word. Every story tells a few facts early, of a colour, an owner, a place, a girl
or a boy, and asks for them later, so that what a model remembers can be counted:

    “What colour is the ball?” “Red.”      colour      told once, many words before
    The ball was now green.                repainted   the last of several colours
    “Who has the ball?” “Robin.”           owner       whoever was given it last
    “Where is Sam?” “In the barn.”         place       where they went last
    Sam was happy, and she smiled.         pronoun     every name may be a girl's or a boy's
    Sam sang it too: “La di do ra.”        repeated    each sound after the one it followed before

The grammar is all there is in this file: lists of words, sentences with their facts, and how often
each is said. In a sentence, `+word` tells something and `=word` follows from what was told; each
mark is explained by one of the keys after the sentence, (skill, about whom or what).

>>> text(story(random.Random(2)).words[:11])
'One night a girl named Sasha went to the barn.'
>>> x, y, asked = batch(16, 112, Generator().manual_seed(0))  # y is x one place later
>>> x.shape, words_of(y[0][asked[0]])[0]
(torch.Size([16, 112]), 'barn')
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from tfviz import _arguments

# --- what can be turned ---------------------------------------------------------------------------

ASKED = {"colour": 8, "repainted": 11, "owner": 7, "place": 5, "pronoun": 4, "repeated": 6}
"""How often each skill is asked for, as shares; what cannot be asked yet is drawn again. A skill
with 0 is dropped."""

HAPPENS = {"send": 6, "go": 4, "paint": 7, "sing": 5, "see": 1, "pass by": 1}
"""How often each event is told, as shares."""

QUESTIONS = 0.75
"""The share of questions among all that happens after the opening."""

LATEST = 0.7
"""The share of questions about what was said last. They are learned first; the others follow."""

AGAIN = 8
"""The same is not asked twice within so many words."""

FAR = {"colour": 24}
"""An answer counts only if it stands at least so many places after its fact. Three layers that see
8 words each reach 3 · 7 = 21 places back."""

LONGEST = 111
"""Words of a story, at most: with the mark before it, a sequence of 112 tokens holds it whole. A
third of a story is its opening, so longer ones ask more per word; these ask some six questions."""

# --- the words ------------------------------------------------------------------------------------


def listed(words: str) -> list[str]:
    return words.split()


END = "|"
"""Stands before and after each story."""

NAMES = listed("Alex Charlie Jo Kim Kit Lou Pat Robin Sam Sasha")
THINGS = listed("ball bell boat book cake drum hat key kite lamp")
COLOURS = listed("black blue brown green grey red white yellow")
PLACES = listed("barn castle forest garden kitchen market school tower")
SOUNDS = listed("ba di do fa la mi ra so tu zi")
PRONOUNS = ("she", "he", "her", "him")
ANIMALS = listed("bear bird cat dog fox goat horse mouse pig rabbit")
SIZES = listed("big little old small tiny")
MOODS = listed("angry brave calm glad happy hungry kind proud sad sleepy tired")
DOINGS = listed("cried danced jumped laughed nodded smiled sneezed waved whistled yawned")
TIMES = listed("day evening morning night")
MARKS = listed(". , ? : “ ”")
LITTLE = listed("""a and began by carried colour end found girl boy good had has home in is it
named now one painted rain ran sang saw sent still sun thanked that the then they to too walked
warm was went what where who with""")

KINDS: dict[str, Sequence[str]] = {
    "name": NAMES,
    "thing": THINGS,
    "colour": COLOURS,
    "place": PLACES,
    "sound": SOUNDS,
    "pronoun": PRONOUNS,
    "animal": ANIMALS,
    "size": SIZES,
    "mood": MOODS,
    "doing": DOINGS,
    "time": TIMES,
    "mark": MARKS,
    "little word": LITTLE,
}
"""Words that may stand for each other, by what they are."""

WORDS = (END, *(word for kind in KINDS.values() for word in kind))
"""All tokens; the number of a word is its place here."""

NUMBER = {word: n for n, word in enumerate(WORDS)}
KIND = {word: kind for kind, words in KINDS.items() for word in words}
PAIRS = {"she": ("she", "he"), "he": ("she", "he"), "her": ("her", "him"), "him": ("her", "him")}

SKILLS = tuple(skill for skill, share in ASKED.items() if share)
Key = tuple[str, str]
T = TypeVar("T")


class Fact(NamedTuple):
    """A word of a story that follows from words before it.

    skill       of SKILLS
    place       where it stands: words[place] is `word`
    word        the right one, and the only one that the story leaves
    distance    how many places before it stands what it follows from, where that was said last
    candidates  the words of its kind that the story has named so far. A reader who knows them all,
                but not which belongs to what, is right with probability 1 / len(candidates)
    """

    skill: str
    place: int
    word: str
    distance: int
    candidates: tuple[str, ...]

    @property
    def chance(self) -> float:
        return 1 / len(self.candidates)

    @property
    def counts(self) -> bool:
        """Whether it lies as far back as its skill asks."""
        return self.distance >= FAR.get(self.skill, 1)


class Story(NamedTuple):
    """Its words, without the marks before and after it, and its facts in their order."""

    words: tuple[str, ...]
    facts: tuple[Fact, ...]

    def text(self) -> str:
        return text(self.words)


class Probe(NamedTuple):
    """The words before an answer, and the fact that it states."""

    before: tuple[str, ...]
    fact: Fact


# --- a story --------------------------------------------------------------------------------------


@dataclass
class StorySoFar:
    """What has been said of a story so far, and what is true in it."""

    rng: random.Random
    words: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    said_at: dict[Key, int] = field(default_factory=dict)
    asked_at: dict[Key, int] = field(default_factory=dict)
    people: list[str] = field(default_factory=list)
    girl: dict[str, bool] = field(default_factory=dict)
    at: dict[str, str] = field(default_factory=dict)
    colour: dict[str, str] = field(default_factory=dict)
    owner: dict[str, str] = field(default_factory=dict)
    repainted: list[str] = field(default_factory=list)
    song: list[str] = field(default_factory=list)
    sung: int = 0

    def one(self, of: Sequence[T]) -> T:
        return of[int(self.rng.random() * len(of))]

    def new(self, kind: str) -> str:
        """A word of this kind that the story has not said."""
        return self.one([word for word in KINDS[kind] if word not in self.words])

    def by_share(self, shares: dict[str, int]) -> str:
        left = self.rng.random() * sum(shares.values())
        for name, share in shares.items():
            left -= share
            if left < 0:
                return name
        return name

    def other(self, name: str) -> str:
        return self.people[1 - self.people.index(name)]

    def pronoun(self, name: str, she: str = "she", he: str = "he") -> str:
        return she if self.girl[name] else he

    def faded(self, skill: str, about: Iterable[str]) -> list[str]:
        """Those that were not asked for recently."""
        return [
            x for x in about if len(self.words) - self.asked_at.get((skill, x), -AGAIN) >= AGAIN
        ]

    def say(self, sentence: str, *keys: Key) -> None:
        """Words separated by spaces; each + and = takes the next key."""
        waiting = iter(keys)
        for word in sentence.split():
            mark, place = word[0], len(self.words)
            if mark in "+=":
                key, word = next(waiting), word[1:]
                if mark == "=":
                    self.asked_at[key] = place
                    known = PAIRS.get(word) or self.named(KIND[word])
                    self.facts.append(Fact(key[0], place, word, place - self.said_at[key], known))
                self.said_at[key] = place
            self.words.append(word)

    def named(self, kind: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for word in self.words if KIND[word] == kind))


def opening(s: StorySoFar) -> None:
    """Two people, where each is, and a thing of each, of different colours."""
    for start in (f"one {s.one(TIMES)} a", "a"):
        name, place = s.new("name"), s.new("place")
        s.people.append(name)
        s.girl[name], s.at[name] = s.rng.random() < 0.5, place
        child = s.pronoun(name, "girl", "boy")
        keys = ("pronoun", name), ("place", name)
        s.say(f"{start} +{child} named {name} went to the +{place} .", *keys)
    for name in s.people:
        thing, colour, had = s.new("thing"), s.new("colour"), s.one(["had", "found", "carried"])
        s.owner[thing], s.colour[thing] = name, colour
        s.say(f"+{name} {had} a +{colour} {thing} .", ("owner", thing), ("colour", thing))


# What happens, and what is asked. Each says whether it could be said.


def send(s: StorySoFar) -> bool:
    thing = s.one([*s.owner])
    sender = s.owner[thing]
    taker = s.owner[thing] = s.other(sender)
    s.say(f"{sender} sent the {thing} to +{taker} .", ("owner", thing))
    if s.rng.random() < 0.3:
        s.say(f"{taker} thanked ={s.pronoun(sender, 'her', 'him')} .", ("pronoun", sender))
    return True


def go(s: StorySoFar) -> bool:
    name, went = s.one(s.people), s.one(["went", "ran"])
    s.at[name] = s.one([place for place in PLACES if place not in s.at.values()])
    s.say(f"{name} {went} to the +{s.at[name]} .", ("place", name))
    return True


def paint(s: StorySoFar) -> bool:
    if len(s.named("colour")) > 5:
        return False
    thing, colour = s.one([*s.owner]), s.new("colour")
    s.say(f"{s.owner[thing]} painted the {thing} +{colour} .", ("repainted", thing))
    s.colour[thing] = colour
    if thing not in s.repainted:
        s.repainted.append(thing)
    return True


def sing(s: StorySoFar) -> bool:
    if s.song:
        return False
    for _ in range(4):
        s.song.append(s.one([sound for sound in SOUNDS if sound not in s.song]))
    marked = " ".join(f"+{sound}" for sound in s.song)
    s.say(f"{s.one(s.people)} sang “ {marked} . ”", *(("repeated", sound) for sound in s.song))
    return True


def see(s: StorySoFar) -> bool:
    if len(s.colour) > 2:
        return False
    thing, colour = s.new("thing"), s.new("colour")
    s.colour[thing] = colour
    s.say(f"{s.one(s.people)} saw a +{colour} {thing} .", ("colour", thing))
    return True


def pass_by(s: StorySoFar) -> bool:
    beast = f"a {s.one(SIZES)} {s.one(ANIMALS)} {s.one(['ran', 'walked'])} by ."
    s.say(s.one([beast, "it began to rain .", "the sun was warm ."]))
    return True


def ask_colour(s: StorySoFar) -> bool:
    return _of_colour(s, "colour", [x for x in s.colour if x not in s.repainted], "still")


def ask_repainted(s: StorySoFar) -> bool:
    return _of_colour(s, "repainted", s.repainted, "now")


def _of_colour(s: StorySoFar, skill: str, about: Sequence[str], still: str) -> bool:
    return _ask(
        s,
        skill,
        about,
        lambda thing: f"“ what colour is the {thing} ? ” “ ={s.colour[thing]} . ”",
        lambda thing: f"the {thing} was {still} ={s.colour[thing]} .",
    )


def ask_owner(s: StorySoFar) -> bool:
    return _ask(
        s,
        "owner",
        [*s.owner],
        lambda thing: f"“ who has the {thing} ? ” “ ={s.owner[thing]} . ”",
        lambda thing: f"the {thing} was with ={s.owner[thing]} .",
    )


def ask_place(s: StorySoFar) -> bool:
    return len(s.named("place")) > 1 and _ask(
        s,
        "place",
        s.people,
        lambda name: f"“ where is {name} ? ” “ in the ={s.at[name]} . ”",
        lambda name: f"{name} was still in the ={s.at[name]} .",
    )


def ask_pronoun(s: StorySoFar) -> bool:
    mood, did = s.one(MOODS), s.one(DOINGS)
    return _ask(
        s, "pronoun", s.people, lambda name: f"{name} was {mood} , and ={s.pronoun(name)} {did} ."
    )


def _ask(s: StorySoFar, skill: str, about: Sequence[str], *ways: Callable[[str], str]) -> bool:
    """One of these, asked in one of these ways."""
    if not (faded := s.faded(skill, about)):
        return False
    one = s.one(faded)
    if s.rng.random() < LATEST:
        one = max(faded, key=lambda x: s.said_at[skill, x])
    s.say(s.one(ways)(one), (skill, one))
    return True


def ask_repeated(s: StorySoFar) -> bool:
    if not s.faded("repeated", s.song[-1:]) or s.sung > 1:
        return False
    s.sung += 1
    marked = " ".join(f"={sound}" for sound in s.song[1:])
    s.say(
        f"{s.one(s.people)} sang it too : “ {s.song[0]} {marked} . ”",
        *(("repeated", sound) for sound in s.song[1:]),
    )
    return True


EVENTS: dict[str, Callable[[StorySoFar], bool]] = {
    "send": send,
    "go": go,
    "paint": paint,
    "sing": sing,
    "see": see,
    "pass by": pass_by,
}
ASKS: dict[str, Callable[[StorySoFar], bool]] = {
    "colour": ask_colour,
    "repainted": ask_repainted,
    "owner": ask_owner,
    "place": ask_place,
    "pronoun": ask_pronoun,
    "repeated": ask_repeated,
}
ENDINGS = ("then they went home .", "it was a good day .", "that was the end .")
LONGEST_PIECE, LONGEST_ENDING = 13, 5


def story(rng: random.Random) -> Story:
    """One story of at most LONGEST words. It draws by rng.random() alone, which is the same in
    every version of Python."""
    s = StorySoFar(rng)
    opening(s)
    while len(s.words) + LONGEST_PIECE + LONGEST_ENDING <= LONGEST:
        if rng.random() < QUESTIONS:
            ASKS[s.by_share(ASKED)](s)
        else:
            EVENTS[s.by_share(HAPPENS)](s)
    s.say(s.one(ENDINGS))
    return Story(tuple(s.words), tuple(s.facts))


# --- many -----------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Sequences for training: x, the next word y at each place, and whether it is an answer."""

    x: Int[Tensor, "b L"]
    y: Int[Tensor, "b L"]
    asked: Bool[Tensor, "b L"]


def batch(b: int, L: int, rng: Generator) -> Batch:
    """b sequences of L words. All begin with a whole story.

    What follows from a story's own words is thus never cut off. What is left of a sequence
    holds the beginning of another story.
    """
    _arguments.integer("L", L, 1)
    ids = torch.empty(_arguments.integer("b", b, 1), L + 1, dtype=torch.long)
    asked = torch.zeros(b, L + 1, dtype=torch.bool)
    for n, seed in enumerate(torch.randint(2**62, (b,), generator=rng).tolist()):
        dice, row = random.Random(seed), [END]
        while len(row) <= L:
            one = story(dice)
            places = [len(row) + fact.place for fact in one.facts]
            asked[n, [place for place in places if place <= L]] = True
            row += [*one.words, END]
        ids[n] = torch.tensor([NUMBER[word] for word in row[: L + 1]])
    return Batch(ids[:, :-1], ids[:, 1:], asked[:, 1:])


def held_out(n: int, seed: int = 0) -> list[Story]:
    """Stories for tests: no `batch` is drawn from such a seed."""
    _arguments.integer("n", n, 1)
    dice = random.Random(f"held out {_arguments.integer('seed', seed, 0)}")
    return [story(dice) for _ in range(n)]


def probes(skill: str, n: int = 100, seed: int = 0) -> list[Probe]:
    """n answers of held-out stories that take this skill, each with the words before it.

    Raises ValueError for a skill that is not asked for.
    """
    if skill not in SKILLS:
        raise ValueError(f"skill = {skill!r}; choose one of {', '.join(SKILLS)}")
    found, dice = list[Probe](), random.Random(f"held out {_arguments.integer('seed', seed, 0)}")
    while len(found) < _arguments.integer("n", n, 1):
        one = story(dice)
        found += [
            Probe(one.words[: fact.place], fact)
            for fact in one.facts
            if fact.skill == skill and fact.counts
        ]
    return found[:n]


# --- words and numbers ----------------------------------------------------------------------------


def encode(words: str | Iterable[str]) -> Int[Tensor, "L"]:
    """The number of each word. Raises ValueError for one that the small world does not have.

    The words and marks of a text are separated by spaces, as in "Sam was happy ."
    """
    words = words.split() if isinstance(words, str) else list(words)
    if unknown := sorted({word for word in words if word not in NUMBER}):
        raise ValueError(
            f"words holds {', '.join(map(repr, unknown))}, which the small world of {len(WORDS)} "
            "words does not have; choose from small_world.WORDS, names with a capital letter and "
            "marks apart from words"
        )
    return torch.tensor([NUMBER[word] for word in words], dtype=torch.long)


def words_of(ids: Int[Tensor, "L"]) -> list[str]:
    return [WORDS[int(n)] for n in ids]


def text(words: Iterable[str]) -> str:
    """As it is printed: sentences begin with a capital letter, and marks are attached to words."""
    found, capital = "", True
    for word in words:
        if word == END:
            continue
        joined = not found or found[-1] == "“" or word in (".", ",", "?", ":", "”")
        found += ("" if joined else " ") + (word[:1].upper() + word[1:] if capital else word)
        if word not in (",", ":", "”"):
            capital = word in (".", "?", "“")
    return found
