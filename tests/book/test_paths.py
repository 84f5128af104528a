"""Reading paths and the syllabus: what they name exists, and their minutes add up."""

from __future__ import annotations

from itertools import pairwise

import paths
import pytest
import reading_time

from tfviz import catalogue
from tfviz_lessons.lesson import Written
from tfviz_lessons.outline import outline

WAYS = paths.load()
TERM = WAYS["term"]
STEPS = [(way, step) for way in WAYS.values() for step in way.steps]
step_name = lambda value: getattr(value, "title", "")  # noqa: E731
BUILT = {row.id for row in catalogue.MECHANISMS if row.built}

LESSON = """\
---
kernelspec: {name: python3}
---

# A lesson

(rope)=
## Turning

one two $x+y$ three

```{code-cell} ipython3
HopMap(stride=8)
```

```{letters}
$m$: not these words
```

#### Deeper: folded

not these either

```{code-cell} ipython3
KeptPairs()
```

### Visible again

four five

```{measured} Six.
seven
```

```{exercise-start} Task
:label: ex-x
```
not these
```{exercise-end}
```

```{hint} Hint
:class: dropdown
nor these
```

```{code-cell} ipython3
:role: solution
nor = "these"
```

(alibi)=
## Sloping

eight
"""


def test_what_is_folded_code_or_exercise_is_not_read() -> None:
    page = outline(LESSON)
    text = reading_time.visible(page)
    said = "A lesson Turning one two formula three Visible again four five seven Sloping eight"
    assert reading_time.WORD.findall(text) == said.split()
    rope, alibi = page.parts
    assert (rope.label, alibi.label) == ("rope", "alibi") and "eight" not in rope.text


def test_an_explorer_counts_where_it_is_visible() -> None:
    page = outline(LESSON)
    assert reading_time.explorers(page, ["hop_map", "kept_pairs", "not_there"]) == 1
    assert reading_time.explorers(page, ["kept_pairs"]) == 0


def test_minutes_are_words_and_explorers() -> None:
    assert reading_time.rounded(240, 2) == 2 + 6
    assert reading_time.rounded(10, 0) == 1
    document = catalogue.get("rope").document
    rope = reading_time.sections(document)["rope"]
    assert 5 < rope < reading_time.chapter(document).reading


def test_every_mechanism_that_is_built_has_minutes() -> None:
    found = {name: n for one in reading_time.written() for name, n in
             reading_time.sections(one.document).items()}  # fmt: skip
    assert set(found) >= BUILT
    assert all(2 <= found[name] <= 40 for name in BUILT), found


@pytest.mark.parametrize(("way", "step"), STEPS, ids=step_name)
def test_what_a_step_names_is_there(way: paths.Way, step: paths.Step) -> None:
    assert set(step.sections) <= BUILT
    assert set(step.chapters) <= {one.number for one in catalogue.CHAPTERS}
    for page in step.pages:
        assert paths.page_minutes(page) > 0
    assert step.sections or step.chapters or step.pages
    places = {catalogue.get(name).document for name in step.sections}
    places |= {one.document for one in step.lessons}
    for label in (*step.exercises, *step.assign):
        lesson, task = paths.exercise(label)
        assert lesson.document in places, f"{label} is of another chapter than {step.title}"
        assert paths.minutes(task) > 0


def test_the_term_has_ten_weeks_and_every_chapter_once_in_order() -> None:
    assert len(TERM.steps) == 10
    numbers = [number for step in TERM.steps for number in step.chapters]
    assert numbers == [one.number for one in catalogue.CHAPTERS]
    read = [one.document for step in TERM.steps for one in step.lessons]
    assert read == [one.document for one in reading_time.written()]
    assert len(read) >= 31
    unwritten = {one.number for one in catalogue.CHAPTERS} - {
        one.number for step in TERM.steps for one in step.lessons
    }
    for number in unwritten:  # left out because nothing of it is built, and for no other reason
        assert not any(row.built for row in catalogue.MECHANISMS if row.chapter_number == number)


def test_minutes_of_the_term_add_up() -> None:
    chapters = [reading_time.chapter(one.document) for one in reading_time.written()]
    assert sum(step.reading for step in TERM.steps) == sum(one.reading for one in chapters)
    assert sum(step.practice for step in TERM.steps) == sum(one.exercises for one in chapters)
    assert TERM.minutes == sum(one.reading + one.exercises for one in chapters)


def test_paths_grow_and_days_are_alike() -> None:
    assert all(3 * a.minutes / 2 < b.minutes for a, b in pairwise(WAYS.values()))
    assert 120 <= WAYS["afternoon"].minutes <= 240
    days = [step.minutes for step in WAYS["week"].steps]
    assert len(days) == 5 and max(days) <= 240 and max(days) < 2 * min(days)


def test_a_week_has_an_assignment_of_an_hour_with_one_answer_in_words() -> None:
    given = [label for step in TERM.steps for label in step.assign]
    assert len(given) == len(set(given))
    for step in TERM.steps:
        tasks = [paths.exercise(label)[1] for label in step.assign]
        assert 5 <= len(tasks) <= 6 and sum(isinstance(task, Written) for task in tasks) == 1
        assert 45 <= sum(map(paths.minutes, tasks)) <= 70, step.title


def test_an_exercise_that_is_gone_is_named() -> None:
    with pytest.raises(KeyError, match="no chapter has an exercise 'ex-gone'"):
        paths.exercise("ex-gone")


@pytest.mark.parametrize(
    ("count", "words"),
    [(40, "40 minutes"), (60, "1 hour"), (75, "1¼ hours"), (118, "2 hours"), (900, "15 hours")],
)
def test_hours_as_people_say_them(count: int, words: str) -> None:
    assert paths.hours(count) == words


def test_pictures_say_what_they_show() -> None:
    picture = paths.visits_figure([*WAYS.values()])
    assert "An afternoon visits chapters 1, 2, 4, 6, 9, 10, 17, 18, 22, 29." in picture.alt
    weeks = paths.weeks_figure(TERM).alt
    first = TERM.steps[0]
    assert f"week 1: {first.reading} and 55" in weeks and weeks.count("week ") == 10
