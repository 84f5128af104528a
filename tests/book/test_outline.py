"""A page as a tree: what a section, a fold and a box are, and what a page may not hold."""

from __future__ import annotations

import doctest
from types import SimpleNamespace

import pytest
from book.conftest import ROOT
from book_layers import layers
from docutils import nodes
from docutils.core import publish_doctree

from tfviz_lessons import outline as room
from tfviz_lessons.lesson import LessonError, parse, read
from tfviz_lessons.outline import declarations, five_questions, outline, outline_of

RESTS_ON = (
    "docs/*.md",
    "chapters/**",
    "book/*.md",
)

PAGE = """\
---
title: none of these lines is a heading
# nor is this
---

# A page

(first)=

## One

````{container} wide
# no heading

```{dropdown} Within
The fold of a box.
```
````

```python
# no heading, code
```

#### Deeper: a proof

$$
a
=
b
$$

:::{note}
## no heading
:::

### Two below

### More: costs

#### What it costs

(second)=
## Two
"""


def test_the_example_of_the_module() -> None:
    assert doctest.testmod(room).failed == 0


def test_sections_stand_in_one_another_and_know_their_lines() -> None:
    page, lines = outline(PAGE), PAGE.split("\n")
    found = [(part.number, part.title, part.label, part.folded) for part in page.walk()]
    assert found == [
        ("", "A page", "", False),
        ("1", "One", "first", False),
        ("1.1", "Deeper: a proof", "", True),
        ("1.2", "Two below", "", False),
        ("1.3", "More: costs", "", True),
        ("1.3.1", "What it costs", "", False),
        ("2", "Two", "second", False),
    ]
    for part in page.walk():
        assert part.text == "\n".join(lines[part.start : part.end])
    one, two = page.parts
    assert lines[one.start] == "## One" and lines[one.end] == "(second)="
    assert one.parts[0].end == one.parts[1].start == lines.index("### Two below")
    assert (page.titled("Two"), page.labelled("first"), page.labelled("third")) == (two, one, None)


def test_the_page_folds_what_a_brief_section_leaves_out() -> None:
    def part(title: str, *more: nodes.Node) -> nodes.section:
        return nodes.section("", nodes.title("", title), *more)

    page = publish_doctree("")
    page += part("Luna", part("More: derivation, costs", part("Derive it"), part("Errata & seeds")))
    page += part("Deeper: a proof")
    layers(SimpleNamespace(builder=SimpleNamespace(format="html")), page, "page")  # type: ignore[arg-type]
    raw = [node.astext() for node in page.findall(nodes.raw)]
    assert raw == [
        '<details class="tf-more"><summary><h2>Derivation, costs</h2>'
        "<small>Derive it · Errata &amp; seeds</small></summary>",
        "</details>",
        "<details><summary><h1><span class='tf-deeper-word'>Deeper</span> A proof</h1></summary>",
        "</details>",
    ]


def test_boxes_know_their_lines_also_where_they_stand_in_others() -> None:
    one, lines = outline(PAGE).parts[0], PAGE.split("\n")
    assert [(box.name, box.argument) for box in one.boxes] == [
        ("container", "wide"),
        ("dropdown", "Within"),
        ("", "python"),
        ("note", ""),
    ]
    assert [box.name for box in one.parts[0].boxes] == ["note"]
    for box in one.boxes:
        assert box.body == "".join(f"{line}\n" for line in lines[box.start + 1 : box.end - 1])
        assert set(lines[box.end - 1]) in ({"`"}, {":"})


FAULTS = {
    "a fold that takes in the next box": (
        "```{dropdown} A fold\ntext\n\n```{note}\nmore\n```\n",
        "p.md:3: {dropdown} is not closed before '```{note}' in line 6; end it with ```",
    ),
    "code that runs to the end": (
        "```python\nx = 1\n",
        "p.md:3: the code is not closed at all; end it with ```",
    ),
    "a box in a box": (
        "````{note}\n```{math}\nx\n````\n",
        "p.md:4: {math} is not closed at all; end it with ```",
    ),
    "two sections of one label": (
        "(a)=\n## One\n\n(a)=\n\n## Two\n",
        "p.md:8: label 'a' is taken by the heading in line 4",
    ),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_a_page_may_not_hold_is_named_with_its_line(kind: str) -> None:
    text, said = FAULTS[kind]
    for reading in (outline, parse):
        with pytest.raises(LessonError) as error:
            reading(f"# A page\n\n{text}", "p.md")
        assert str(error.value) == said


def test_every_page_of_the_course_can_be_read() -> None:
    for path in (path for folder in ("book", "docs") for path in (ROOT / folder).glob("*.md")):
        assert outline_of(path).title, path


def test_a_lesson_tells_what_stands_in_a_section() -> None:
    lesson = read(ROOT / "chapters/basics/multi_head.md")
    parts = [lesson.inside(section) for section in lesson.sections]
    inside = [block for part in parts for block in part]
    assert [block for block in inside if block in lesson.tasks] == [*lesson.tasks]
    assert {x.label for x in lesson.tasks if x in parts[0]} < {x.label for x in lesson.tasks}
    assert all(lesson.sections[0].start < block.start for block in inside)


def test_questions_without_as_many_answers_are_refused() -> None:
    text = (
        "## Five questions\n\n1. Why,\n   though?\n2. How?\n\n```{dropdown} Answers\n1. So.\n```\n"
    )
    with pytest.raises(ValueError, match=r"x has 2 questions and 1 answers .* \[1, 2\] and \[1\]"):
        five_questions(outline(text), "x")
    mended = text.replace("So.\n", "So.\n2. Thus.\n")
    assert five_questions(outline(mended), "x") == [("Why, though?", "So."), ("How?", "Thus.")]
    with pytest.raises(ValueError, match="x has no section 'Five questions' with"):
        five_questions(outline(text.replace("Answers", "Solutions")), "x")


def test_a_declaration_has_one_form() -> None:
    lines = "$\\theta_m$: angle of hand m,\n  in radians\n$a$, $b$: two of them\n"
    assert list(declarations(lines)) == [
        ((r"\theta_m",), "angle of hand m, in radians"),
        (("a", "b"), "two of them"),
    ]
    for wrong in ("a: without a formula", "$a$ – with another mark", "$a$: means $b$", "$a$:"):
        with pytest.raises(ValueError, match=r"declares no letter; write `\$letter\$: what it"):
            list(declarations(wrong))
