"""What a chapter lacks is said in sentences: a finished one is broken in one place at a time."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from book.conftest import ROOT

from tfviz import catalogue
from tfviz_lessons.checklist import INTO_A_MODEL, lacks
from tfviz_lessons.lesson import parse

FINISHED = (ROOT / "chapters/sparse/hashing.md").read_text("utf8")


def test_a_finished_chapter_lacks_nothing() -> None:
    assert lacks(parse(FINISHED, "hashing.md")) == []


# what is broken in it, everywhere or (with 1) in the first place only, and what is said then
BROKEN = [
    (r"optional: true\n", "", 0, "exercises are for every reader and 3 should be: write"),
    (
        r"^(:?)level: hard\n",
        r"\1level: hard\n\1optional: true\n",
        1,
        "2 exercises are for every reader",
    ),
    (INTO_A_MODEL.pattern, "Look at it", 0, "no exercise says"),
    (r"^ask:\n(  .*\n)+", "", 0, "answered in the page and a third should be: give"),
    (r"^level: medium\n", "", 1, "does not say `level:` in its tests cell"),
    (r"^minutes: 10\n", "", 1, "does not say `minutes:` in its"),
    ("## Five questions", "## Questions", 1, "the heading `## Five questions` is missing"),
    ("### Build it", "### Make it", 1, "the first exercise stands under 'Make it'"),
    ("### See it\n", "### When to use it: never\n", 1, "belongs before `### When to use it`"),
    ("### Derive it: .*", "### Derive it", 1, "`### Derive it` in 'LSH attention: meet"),
    ("### What breaks: .*\n", "% TODO: say it\n", 1, "1 places say TODO; the first is line"),
]


@pytest.mark.parametrize(("old", "new", "many", "sentence"), BROKEN)
def test_what_is_missing_is_named(old: str, new: str, many: int, sentence: str) -> None:
    text, broken = re.subn(old, new, FINISHED, count=many, flags=re.M)
    assert broken
    missing = lacks(parse(text, "hashing.md"))
    assert any(sentence in line for line in missing), missing


BRIEF = """\
(reformer_lsh)=
## Buckets

```{mechanism} reformer_lsh
```

### In 90 seconds

### See it

### Build it

TASK

### What became of it

### More: derivation, costs

#### Derive it

## More exercises
"""
HASHED = FINISHED.index("```{exercise-start}")
TASK = FINISHED[HASHED : FINISHED.index("### What it costs", HASHED)]
LIGHT = [
    replace(row, weight="brief") if row.id == "reformer_lsh" else row
    for row in catalogue.MECHANISMS
]

# what is broken in a brief section, and what is said then; nothing is said of it as it is
BRIEF_BROKEN = [
    ("", "", ""),
    ("### See it\n", "", "its headings are `### In 90 seconds`, `### See it`, `### Build it`"),
    ("### More: derivation, costs", "### Costs", "'Buckets' is brief, so its headings are"),
    ("### What became of it\n", "### More: uses\n", "`### What became of it`, `### More: …`; it"),
    ("TASK", "", "`### Build it` of 'Buckets' has 0 exercises and needs one"),
    ("#### Derive", "#### Deeper: derive", "`#### Deeper: derive it` stands in a fold already"),
    (
        "(reformer_lsh)=\n",
        "(longformer)=\n",
        "'Buckets' has `### More: derivation, costs`, as brief",
    ),
]


@pytest.mark.parametrize(("old", "new", "sentence"), BRIEF_BROKEN)
def test_a_brief_section_has_its_form(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str, sentence: str
) -> None:
    monkeypatch.setattr(catalogue, "MECHANISMS", LIGHT)
    lesson = parse(f"# Hashing\n\n{BRIEF.replace(old, new, 1)}".replace("TASK", TASK), "brief.md")
    found = [line for line in lacks(lesson) if re.search("brief|Buckets|in a fold", line)]
    assert len(found) == bool(sentence) and sentence in "".join(found), found


def test_the_form_of_a_full_section_is_not_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MECHANISMS", LIGHT)
    (said,) = lacks(parse(FINISHED, "hashing.md"))
    assert "is brief, so its headings are" in said and "'What breaks: " in said


def test_a_lesson_without_exercises_is_told_how_many_to_write() -> None:
    head = FINISHED[: FINISHED.index("```{exercise-start}")]
    missing = lacks(parse(head, "hashing.md"))
    assert "0 exercises are answered in code; write 4 more" in missing
    assert "0 exercises are for every reader and 3 should be: 3 are missing" in missing
    assert any("answered in words" in line for line in missing)
