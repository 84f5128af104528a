"""The self-test: every question of every chapter is in it, and a reader takes a test offline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import reading_time
import self_test
from book.conftest import PREFIX, Site
from book.test_progress import AXE

from tfviz import catalogue
from tfviz_lessons.outline import outline

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "book/self_test.md",
    "chapters/**",
)

PAGE = "book/self_test"
KEY = f"tfviz-progress/1:{PREFIX}/"
PARTS = {part.id: self_test.of_part(part) for part in catalogue.PARTS}


# --- the questions --------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", reading_time.written(), ids=lambda lesson: lesson.stem)
def test_a_chapter_has_five_questions_with_answers(lesson: Any) -> None:
    found = self_test.questions(lesson)
    assert len(found) == 5
    text = reading_time.source(lesson.document) or ""
    for n, (name, question, answer, label, section) in enumerate(found, 1):
        there = reading_time.page(lesson.document).labelled(label)
        assert there and section == f"{lesson.number}.{there.number} {there.title}"
        assert name == f"self-test/{lesson.stem}/{n}"
        assert f"\n{n}. {question}" in text and f"\n{n}. {answer}" in text
        assert question != answer and len(answer) > 3


def test_every_chapter_is_in_one_part_and_names_differ() -> None:
    chapters = [lesson for part in PARTS.values() for lesson, _ in part]
    assert chapters == reading_time.written()
    names = [one.name for part in PARTS.values() for _, asked in part for one in asked]
    assert len(names) == len(set(names)) == 5 * len(chapters)
    assert all(re.fullmatch(r"[A-Za-z0-9][\w./-]{0,99}", name) for name in names)


def test_a_question_without_an_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# X\n\n## Five questions\n\n1. Why?\n2. How?\n\n```{dropdown} Answers\n1. So.\n```\n"
    monkeypatch.setattr(reading_time, "source", lambda _: text)
    with pytest.raises(ValueError, match="2 questions and 1 answers"):
        self_test.questions(replace(reading_time.written()[0]))


# --- in a browser ---------------------------------------------------------------------------------


def test_an_answer_that_names_no_section_is_refused() -> None:
    chapter = outline("(here)=\n## A section\n")
    assert self_test.explained("So. → [2.1](here)", chapter) == ("here", "2.1 A section")
    for answer in ("So.", "So. → [2.1](there)", "So. → [2.1](here). More"):
        with pytest.raises(ValueError, match="must end with a link to the section"):
            self_test.explained(answer, chapter)


@pytest.fixture
def taking(page: Any, site: Site) -> Iterator[Any]:
    """The page, with nothing said in the console and nothing asked of another host."""
    trouble: list[str] = []
    page.on("console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda r: trouble.append(r.url) if site.address not in r.url else None)
    page.goto(site.url(PAGE))
    yield page
    assert not trouble


def kept(page: Any) -> dict[str, int]:
    text = page.evaluate("(key) => localStorage.getItem(key)", KEY)
    return {
        name: entry["said"] for name, entry in json.loads(text or "{}").get("answers", {}).items()
    }


def begin(page: Any, part: str = "heads") -> Any:
    box = page.locator(f'[data-tf-test="{part}"]')
    box.get_by_role("button", name="Begin a test").click()
    return box


def reply(box: Any, knew: bool) -> None:
    box.get_by_role("button", name="Show the answer").click()
    box.get_by_role("button", name="I knew it" if knew else "Not yet").click()


@pytest.mark.usefixtures("whole_book")
def test_the_page_has_every_question_and_its_answer(taking: Any) -> None:
    for part, chapters in PARTS.items():
        listed = taking.locator(f'[data-tf-test="{part}"] [data-tf-question]')
        names = listed.evaluate_all("(all) => all.map((one) => one.dataset.tfQuestion)")
        assert names == [one.name for _, asked in chapters for one in asked]
    assert taking.locator(".tf-question:empty, .tf-answer:empty").count() == 0


def test_a_test_is_taken_by_the_keyboard_and_kept(taking: Any, site: Site) -> None:
    box = taking.locator('[data-tf-test="heads"]')
    box.get_by_role("button", name="Begin a test").focus()
    taking.keyboard.press("Enter")
    focus = "document.activeElement.textContent"
    seen = []
    for n in range(1, 11):
        assert taking.evaluate(focus) == f"Question {n} of 10"  # it is spoken: the focus is there
        seen.append(box.locator(".tf-test-run .tf-question").inner_text())
        assert not box.locator(".tf-test-run .tf-answer").is_visible()
        taking.keyboard.press("Tab")  # the chapter that it is from
        assert re.match(r"\d+\. ", taking.evaluate(focus))
        taking.keyboard.press("Tab")
        assert taking.evaluate(focus) == "Show the answer"
        taking.keyboard.press("Enter")
        assert taking.evaluate("document.activeElement.className") == "tf-answer"
        while taking.evaluate(focus) != ("Not yet" if n == 3 else "I knew it"):
            taking.keyboard.press("Tab")
        taking.keyboard.press("Space")
        status = box.locator("[role=status]").inner_text()
        known = n if n < 3 else n - 1
        assert status == f"{'Not yet' if n == 3 else 'Known'}. {known} of 10 known."
    assert len(set(seen)) == 10
    assert taking.evaluate(focus) == "You knew 9 of 10."
    again = box.locator(".tf-test-run li a")  # the section that explains the one that was missed
    assert again.count() == 1
    known_sections = [one.section for _, asked in PARTS["heads"] for one in asked]
    assert again.inner_text() in known_sections
    here = again.get_attribute("href")
    assert sorted(kept(taking).values()) == [0, *[1] * 9]
    again.click()
    taking.wait_for_url(f"**/{here.removeprefix('../')}")
    assert taking.evaluate("document.querySelector(location.hash) !== null")
    taking.goto(site.url(PAGE))
    assert taking.locator('[data-tf-known="heads"]').inner_text() == "9 of 10 known"
    assert taking.locator(".tf-dots i.is-known").count() == 9


def test_what_was_not_known_comes_first_and_can_be_mended(taking: Any) -> None:
    box = begin(taking)
    for n in range(10):
        reply(box, n not in (2, 6))
    missed = {name for name, said in kept(taking).items() if not said}
    assert len(missed) == 2
    box.get_by_role("button", name="Another test").click()
    asked = []
    for _ in range(2):
        asked.append(box.locator(".tf-test-run .tf-question").inner_text())
        reply(box, True)
    assert set(kept(taking).values()) == {1}
    shown = taking.evaluate(
        "(names) => names.map((n) => document.querySelector("
        "`[data-tf-question='${n}'] .tf-question`).textContent)",
        sorted(missed),
    )
    clean = lambda words: {re.sub(r"\W", "", word)[:12] for word in words}  # noqa: E731
    assert clean(asked) == clean(shown)
    box.get_by_role("button", name="End the test").click()
    assert not box.locator(".tf-test-run").is_visible()
    assert taking.evaluate("document.activeElement.textContent") == "Begin a test"


@pytest.mark.usefixtures("whole_book")
def test_a_part_with_more_questions_mixes_its_chapters(taking: Any) -> None:
    box = begin(taking, "basics")
    chapters = set()
    for _ in range(10):
        box.get_by_role("button", name="Show the answer").click()
        chapters.add(box.locator(".tf-test-from a").get_attribute("href"))
        box.get_by_role("button", name="I knew it").click()
    assert len(chapters) > 2
    assert taking.locator('[data-tf-known="basics"]').inner_text() == "10 of 30 known"


def test_without_a_store_a_test_goes_on(page: Any, site: Site) -> None:
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }});"
    )
    page.goto(site.url(PAGE))
    box = begin(page)
    reply(box, True)
    assert "keeps nothing for this site" in box.locator("[role=status]").inner_text()
    assert box.locator(".tf-test-head").inner_text() == "Question 2 of 10"


def test_without_a_script_the_questions_can_be_read(browser: Any, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.url(PAGE))
    assert not page.get_by_role("button", name="Begin a test").count()
    page.get_by_text("All questions of this part").first.click()
    answer = page.locator(".tf-answer").first
    assert not answer.is_visible()
    page.locator("[data-tf-question] summary").first.click()
    assert answer.is_visible()
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_while_a_test_is_taken(taking: Any, theme: str) -> None:
    taking.emulate_media(color_scheme=theme, reduced_motion="reduce")
    taking.set_viewport_size({"width": 390, "height": 844})
    box = begin(taking)
    reply(box, True)
    box.get_by_role("button", name="Show the answer").click()
    taking.add_script_tag(path=str(AXE))
    found = taking.evaluate("async () => (await axe.run(document)).violations")
    assert not [(v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found]
    assert taking.evaluate("document.documentElement.scrollWidth") == 390
