"""A self-test for each part, from the five questions of its chapters.

```{self-test}      every question with its answer, by part; self-test.js makes tests of them

Without a script all questions are there, their answers folded. What a reader knew is kept with the
rest of the progress, under the name of the question.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from catalogue_directives import Directive, el
from docutils import nodes
from reading_time import ROOT, page, written
from sphinx.application import Sphinx

from tfviz import catalogue
from tfviz.catalogue import Chapter, Part
from tfviz_lessons.outline import Section, five_questions

EXPLAINED = re.compile(r" → \[(?P<number>\d+\.\d+)\]\(#?(?P<label>\w+)\)$")


class Question(NamedTuple):
    """A question of a chapter; `name` is what the progress keeps it under."""

    name: str
    question: str
    answer: str
    label: str  # of the section that explains it
    section: str  # its number and its heading


def questions(lesson: Chapter) -> list[Question]:
    """The five questions of a chapter with their answers, as Markdown.

    Raises ValueError if it has not as many answers as questions, or if an answer does not end with
    a link to a section of the chapter.
    """
    whole = page(lesson.document)
    return [
        Question(f"self-test/{lesson.stem}/{n}", question, answer, *explained(answer, whole))
        for n, (question, answer) in enumerate(five_questions(whole, f"{lesson.document}.md"), 1)
    ]


def explained(answer: str, chapter: Section) -> tuple[str, str]:
    """The label of the section that an answer links to, and its number and heading."""
    link = EXPLAINED.search(answer)
    section = link and chapter.labelled(link["label"])
    if not (link and section):
        raise ValueError(
            f"the answer {answer!r} must end with a link to the section that explains it, such as "
            "→ [21.1](linformer)"
        )
    return section.label, f"{link['number']} {section.title}"


def of_part(part: Part) -> list[tuple[Chapter, list[Question]]]:
    """The questions of a part by chapter."""
    return [(one, questions(one)) for one in written() if one.part == part.id]


class SelfTest(Directive):
    def run(self) -> list[nodes.Node]:
        parts = [(part, of_part(part)) for part in catalogue.PARTS]
        for _, chapters in parts:
            for lesson, _ in chapters:
                self.env.note_dependency(str(ROOT / f"{lesson.document}.md"))
        parts = [(part, chapters) for part, chapters in parts if chapters]
        rows = [self.row(part, chapters) for part, chapters in parts]
        overview = el("table", el("tbody", *rows), class_="tf-known")
        return [overview, *(self.part(part, chapters) for part, chapters in parts)]

    def row(self, part: Part, chapters: list[tuple[Chapter, list[Question]]]) -> nodes.Node:
        names = [question.name for _, asked in chapters for question in asked]
        dots = [el("i", data_tf_dot=name) for name in names]
        return el(
            "tr",
            el("th", el("a", part.title, href=f"#{anchor(part)}"), scope="row"),
            el("td", el("span", *dots, class_="tf-dots", aria_hidden="true")),
            el("td", f"{len(names)} questions", data_tf_known=part.id),
        )

    def part(self, part: Part, chapters: list[tuple[Chapter, list[Question]]]) -> nodes.Node:
        section = nodes.section(ids=[anchor(part)])
        section += nodes.title("", part.title)
        listed = []
        for lesson, asked in chapters:
            items = [self.question(lesson, one) for one in asked]
            listed += [el("p", *self.lesson(lesson)), el("ol", *items)]
        fold = el("details", el("summary", "All questions of this part"), *listed)
        section += el("div", fold, class_="tf-test", data_tf_test=part.id, data_tf_unsearched="")
        return section

    def question(self, lesson: Chapter, one: Question) -> nodes.Node:
        page = self.env.app.builder.get_relative_uri(self.env.docname, lesson.document)
        return el(
            "li",
            el("div", *self.markdown(one.question), class_="tf-question"),
            el(
                "details",
                el("summary", "Answer"),
                el("div", *self.markdown(one.answer), class_="tf-answer"),
            ),
            data_tf_question=one.name,
            data_tf_title=f"{lesson.number}. {lesson.title}",
            data_tf_page=page,
            data_tf_section=one.section,
            data_tf_explained=f"{page}#{nodes.make_id(one.label)}",
        )

    def lesson(self, lesson: Chapter) -> list[nodes.Node]:
        text = f"{lesson.number}. {lesson.title}"
        if not self.has_page(lesson.document):
            return [nodes.Text(text)]
        return self.markdown(f"{{doc}}`{text} </{lesson.document}>`")


def anchor(part: Part) -> str:
    return f"test-{part.id.replace('_', '-')}"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("self-test", SelfTest)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
