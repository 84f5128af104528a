"""The small world: golden stories, facts that a reader of the text alone finds too, and batches."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
import torch
from refusals import refused
from torch import Generator

from tfviz import small_world
from tfviz.small_world import END, SKILLS, WORDS, Story

STORIES = small_world.held_out(400)

GOLDEN = {
    1: "One day a girl named Sam went to the school. A boy named Kit went to the garden. Sam had a"
    " black key. Kit carried a grey kite. Sam sang “Ba di ra zi.” “Who has the kite?” “Kit.” "
    "Sam was kind, and she sneezed. Kit was still in the garden. Kit sang it too: “Ba di ra "
    "zi.” The kite was with Kit. The kite was still grey. Sam was hungry, and she laughed. That"
    " was the end.",
    2: "One night a girl named Sasha went to the barn. A boy named Robin went to the school. Sasha"
    " found a grey book. Robin found a blue hat. Robin was still in the school. “What colour is"
    " the hat?” “Blue.” Robin painted the hat brown. The hat was now brown. The book was still "
    "grey. Sasha sang “So fa zi tu.” The book was with Sasha. Robin ran to the garden. Robin "
    "sang it too: “So fa zi tu.” It was a good day.",
    3: "One day a boy named Lou went to the forest. A girl named Pat went to the barn. Lou had a "
    "brown kite. Pat carried a grey lamp. Pat was still in the barn. Lou was still in the "
    "forest. Pat was still in the barn. Pat was happy, and she yawned. “Who has the lamp?” "
    "“Pat.” The kite was with Lou. Pat sang “Zi ra di tu.” Pat painted the lamp blue. Lou "
    "painted the kite black. That was the end.",
}


@pytest.mark.parametrize("seed", GOLDEN)
def test_a_seed_tells_its_story(seed: int) -> None:
    assert small_world.story(random.Random(seed)).text() == GOLDEN[seed]
    assert small_world.story(random.Random(seed)) != small_world.story(random.Random(seed + 1))


# --- a reader who knows nothing but the text ------------------------------------------------------


def read(words: tuple[str, ...]) -> dict[int, str]:
    """{place of an answer: the word that follows from the text before it}, sentence by sentence."""
    girl, at, song = dict[str, bool](), dict[str, str](), list[str]()
    owner, colour = dict[str, str](), dict[str, str]()
    found, begin = dict[int, str](), 0
    ends = [n for n, word in enumerate(words) if word == "." and words[n + 1 : n + 2] != ("”",)]
    ends += [n for n, word in enumerate(words) if word == "”" and words[n - 1] == "."]
    for end in sorted(ends):
        said, first = words[begin : end + 1], begin
        begin = end + 1
        line = " ".join(said)
        who = [word for word in said if word in small_world.NAMES]
        what = [word for word in said if word in small_world.THINGS]
        hue = [word for word in said if word in small_world.COLOURS]
        where = [word for word in said if word in small_world.PLACES]
        if "girl" in said or "boy" in said:
            girl[who[0]], at[who[0]] = "girl" in said, where[0]
        elif "what colour" in line or (" was still " in line and what) or " was now " in line:
            place = len(said) - (3 if "”" in said else 2)
            found[first + place] = colour[what[0]]
        elif "who has" in line or " was with " in line:
            found[first + len(said) - (3 if "”" in said else 2)] = owner[what[0]]
        elif "where is" in line or " was still in " in line:
            found[first + len(said) - (3 if "”" in said else 2)] = at[who[0]]
        elif ", and" in line:
            found[first + said.index("and") + 1] = "she" if girl[who[0]] else "he"
        elif "thanked" in said:
            (sender,) = girl.keys() - {who[0]}
            found[first + 2] = "her" if girl[sender] else "him"
        elif "sang it too" in line:
            opened = said.index("“")
            found |= {first + opened + 2 + n: sound for n, sound in enumerate(song[1:])}
        elif "sang" in said:
            song = [word for word in said if word in small_world.SOUNDS]
        elif "painted" in said or "saw" in said:
            colour[what[0]] = hue[0]
        elif "sent" in said:
            assert owner[what[0]] == who[0], "sends what is not there"
            owner[what[0]] = who[1]
        elif hue:
            owner[what[0]], colour[what[0]] = who[0], hue[0]
        elif where:
            at[who[0]] = where[0]
    return found


def test_the_text_alone_gives_every_answer_and_no_other() -> None:
    for one in STORIES:
        assert read(one.words) == {fact.place: fact.word for fact in one.facts}, one.text()


def test_an_answer_stands_where_it_is_said_to_and_its_cause_before_it() -> None:
    for one in STORIES:
        for fact in one.facts:
            assert one.words[fact.place] == fact.word in fact.candidates
            cause = one.words[fact.place - fact.distance]
            kinds = {fact.word, "girl", "boy", "she", "he", "her", "him"}
            assert cause == fact.word if fact.skill != "pronoun" else cause in kinds
            assert len(fact.candidates) >= 2 and fact.chance <= 0.5


def test_nothing_is_said_twice_in_a_row() -> None:
    for one in STORIES:
        sentences = one.text().split(". ")
        assert all(x != y for x, y in itertools.pairwise(sentences)), one.text()


def test_colours_that_count_are_beyond_three_layers_of_eight_words() -> None:
    facts = [fact for one in STORIES for fact in one.facts if fact.skill == "colour"]
    assert {fact.counts for fact in facts} == {True, False}
    assert min(fact.distance for fact in facts if fact.counts) == small_world.FAR["colour"] > 21


# --- words ----------------------------------------------------------------------------------------


def test_every_word_is_of_the_vocabulary_and_every_one_is_used() -> None:
    many = small_world.held_out(2000, seed=1)
    assert {word for one in many for word in one.words} | {END} == {*WORDS}
    assert len(WORDS) == len({*WORDS}) == 140
    assert max(len(one.words) for one in many) <= small_world.LONGEST


def test_names_are_neutral() -> None:
    """Each is a girl's and a boy's, about as often."""
    told = Counter(
        (one.words[n + 2], word)
        for one in small_world.held_out(2000)
        for n, word in enumerate(one.words)
        if word in ("girl", "boy")
    )
    for name in small_world.NAMES:
        girls, boys = told[name, "girl"], told[name, "boy"]
        assert abs(girls - boys) < 4 * (girls + boys) ** 0.5, name


def test_every_skill_is_asked_for_often_and_answers_are_spread() -> None:
    facts = [fact for one in STORIES for fact in one.facts if fact.counts]
    for skill in SKILLS:
        answers = Counter(fact.word for fact in facts if fact.skill == skill)
        assert answers.total() > 0.35 * len(STORIES), skill
        assert max(answers.values()) < 0.6 * answers.total(), skill


def test_a_skill_with_no_share_is_never_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(small_world.ASKED, "owner", 0)
    assert not [x for one in small_world.held_out(100) for x in one.facts if x.skill == "owner"]


def test_words_numbers_and_print() -> None:
    ids = small_world.encode("Sam was happy , and she smiled .")
    assert small_world.text(small_world.words_of(ids)) == "Sam was happy, and she smiled."
    one = STORIES[0]
    assert small_world.encode(one.words).equal(small_world.encode(" ".join(one.words)))
    refused("'sam', which the small world of 140 words … choose", small_world.encode, "sam was")


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_begins_with_whole_stories_and_repeats() -> None:
    L = small_world.LONGEST + 1
    x, y, asked = small_world.batch(4, L, Generator().manual_seed(3))
    again = small_world.batch(4, L, Generator().manual_seed(3)).x
    assert x.shape == y.shape == (4, L) and x.equal(again) and x[:, 1:].equal(y[:, :-1])
    for row, places in zip(torch.cat([x, y[:, -1:]], 1), asked, strict=True):
        words = small_world.words_of(row)
        end = words.index(END, 1)  # a story that was cut would have none
        answers = read(tuple(words[1:end]))
        assert words[0] == END and answers
        assert places.nonzero().flatten().tolist()[: len(answers)] == sorted(answers)
    assert len({*map(tuple, x.tolist())}) == 4


def test_held_out_stories_are_no_training_stories() -> None:
    dice = Generator().manual_seed(0)
    seen = {tuple(row[: row.tolist().index(0, 1)].tolist()) for row in _rows(dice)}
    for one in STORIES:
        assert (0, *small_world.encode(one.words).tolist()) not in seen
    assert len({one.words for one in STORIES}) == len(STORIES)


def _rows(dice: Generator) -> torch.Tensor:
    x, y, _ = small_world.batch(200, small_world.LONGEST + 1, dice)
    return torch.cat([x, y[:, -1:]], 1)


@pytest.mark.parametrize("skill", SKILLS)
def test_probes_ask_for_their_skill(skill: str) -> None:
    found = small_world.probes(skill, n=20)
    assert len(found) == 20 and found == small_world.probes(skill, n=20)
    for probe in found:
        assert probe.fact.skill == skill and probe.fact.counts
        assert len(probe.before) == probe.fact.place


def test_what_is_no_skill_is_refused() -> None:
    refused("skill = 'taste'; choose one of colour", small_world.probes, "taste")


def test_a_story_is_known_by_its_words() -> None:
    assert isinstance(STORIES[0], Story) and STORIES[0].text().endswith(".")


# --- what must be noticed -------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/small_world.py": [
        (
            "what is sent stays with the sender",
            "taker = s.owner[thing] = s.other(sender)",
            "taker = s.other(sender)",
        ),
        (
            "a name is always a girl's",
            "s.girl[name], s.at[name] = s.rng.random() < 0.5, place",
            "s.girl[name], s.at[name] = True, place",
        ),
        (
            "the first colour stays the answer",
            "    s.colour[thing] = colour\n    if thing not in s.repainted:",
            "    if thing not in s.repainted:",
        ),
        (
            "the word before an answer counts as one",
            "places = [len(row) + fact.place for fact in one.facts]",
            "places = [len(row) + fact.place - 1 for fact in one.facts]",
        ),
        (
            "a row does not begin with the mark",
            "dice, row = random.Random(seed), [END]",
            "dice, row = random.Random(seed), list[str]()",
        ),
    ]
}
