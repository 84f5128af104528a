"""Make the pictures of the guide for instructors from the real thing: an assignment in JupyterLab,
the report of a class that was graded in the sandbox, a prepared session in the built book.

    PYTHONPATH=.:scripts python teaching/guide_pictures.py [--site FOLDER]

Beside them, `shown.json` keeps a digest of what each picture shows. A test works them out anew and
says which picture is out of date.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
from build_book import build
from chrome import FLAGS, find
from pictures import NO_NEWS, PATIENCE, digest, jupyter, opened, settle, words
from PIL import Image
from playwright.sync_api import sync_playwright

from tfviz_course import assignment, autograde, page, report
from tfviz_lessons.lesson import Exercise, Lesson, Written, read

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "book" / "pictures"
SHOWN = PICTURES / "shown.json"
LESSON = ROOT / "chapters/basics/attention.md"
SESSIONS, SESSION = "book/sessions", "#session-attention"
SIZE = {"width": 1100, "height": 800}  # of each, as article.css has it
WINDOW = {"width": 1375, "height": 1000}  # of a page that is made smaller
COLOURS = 96  # of a picture's palette
NAME, POINTS = "hw1", {"ex-sharpness": 3.0}
SHARPNESS, LOOPS, REPAIR = "ex-sharpness", "ex-attention-loops", "ex-repair"
HURRY = "def beta_for(share, slots):\n    return math.log(297)"  # Bob's answer, on the page
WHY = "Every key is compared, so no gradient is lost."
# what each student answers: a solution, the number of a mistake that the chapter knows, or words
CLASS: dict[str, Mapping[str, str | int]] = {
    "ada": {SHARPNESS: "right", LOOPS: "right", REPAIR: WHY},
    "bob": {SHARPNESS: HURRY},
    "cleo": {SHARPNESS: "right", LOOPS: "right", REPAIR: WHY},
    "dan": {SHARPNESS: 0, LOOPS: "right"},
    "eve": {SHARPNESS: "right", LOOPS: 0, REPAIR: WHY},
    "fay": {SHARPNESS: "right", LOOPS: 3},
    "gil": {SHARPNESS: HURRY, LOOPS: 3, REPAIR: WHY},
    "hana": {SHARPNESS: "right", LOOPS: "right"},
    "ivan": {SHARPNESS: 0, LOOPS: 1},
    "june": {SHARPNESS: "right", LOOPS: "right", REPAIR: WHY},
}


def save(picture: bytes, name: str) -> None:
    """Write a picture with a palette of few colours, which keeps the page light."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.resize((SIZE["width"], SIZE["height"]), Image.Resampling.LANCZOS)
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(PICTURES / f"{name}.png", optimize=True)
    print(f"{(PICTURES / name).relative_to(ROOT)}.png")


def tasks(lesson: Lesson) -> dict[str, Exercise | Written]:
    return {task.label: task for task in lesson.tasks if task.label in (SHARPNESS, LOOPS, REPAIR)}


def answer(task: Exercise | Written, given: str | int) -> str:
    """The cell of an answer, without its first line."""
    if isinstance(task, Written):
        return str(given)
    if isinstance(given, int):
        return task.wrong[given].source
    return task.solved if given == "right" else given


def hand_in(course: Path, student: str, answers: Mapping[str, str]) -> None:
    """Put notebooks with these answers, by exercise, where a student's work is expected."""
    folder = course / "submitted" / student / NAME
    folder.mkdir(parents=True)
    for path in sorted((course / "release" / NAME).glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            label = cell.metadata.nbgrader.grade_id.removesuffix("-yours")
            if cell.metadata.nbgrader.solution and label in answers:
                cell.source = f"{cell.source.splitlines()[0]}\n{answers[label]}"
        nbformat.write(notebook, folder / path.name)


def course_in(folder: Path) -> Path:
    """A course with one assignment, which the class has handed in."""
    known, course = tasks(read(LESSON)), folder / "nlp101"
    assignment.create_course(course, "NLP 101", seed=20261121, secret="c0de" * 16)
    assignment.create_assignment(course, NAME, [SHARPNESS, LOOPS, REPAIR], points=POINTS)
    for student, answers in CLASS.items():
        hand_in(course, student, {n: answer(known[n], given) for n, given in answers.items()})
    return course


def opened_assignment(browser: Any, course: Path) -> None:
    """Bob's notebook after its first check has failed, with the hint opened."""
    file = course / "submitted/bob" / NAME / f"{LESSON.stem}.ipynb"
    notebook = nbformat.read(file, as_version=4)
    own = [n for n, x in enumerate(notebook.cells) if SHARPNESS in x.metadata.nbgrader.grade_id]
    for cell in notebook.cells[: own[-1]]:
        cell.source = cell.source.replace("<details>", "<details open>")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        nbformat.write(notebook, place / file.name)
        quiet = place / f"{NO_NEWS}.jupyterlab-settings"
        quiet.parent.mkdir(parents=True)
        quiet.write_text('{"fetchNews": "false"}')
        with jupyter(place) as address:
            lab = browser.new_page(viewport=SIZE)
            lab.goto(f"{address}/doc/tree/{file.name}")
            lab.locator(".jp-RenderedMarkdown h1").first.wait_for(timeout=PATIENCE)
            lab.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(
                timeout=PATIENCE
            )
            lab.get_by_role("menuitem", name="Run", exact=True).click()
            lab.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            said = lab.get_by_text("the weight of the right one of 2 entries", exact=False).last
            said.wait_for(timeout=PATIENCE)
            lab.wait_for_timeout(2000)
            lab.get_by_text("Exercise 1.1").first.evaluate(
                "(node) => node.closest('.jp-Cell').scrollIntoView({ block: 'start' })"
            )
            lab.wait_for_timeout(1500)
            save(lab.screenshot(), "assignment")
            lab.close()


def graded_report(browser: Any, course: Path) -> None:
    """The page of the class, as the command `tfviz-course report` writes it."""
    autograde.autograde(course, NAME)
    folder = course / "reports" / NAME
    page.write(report.results(course, NAME), folder)
    tab = browser.new_page(viewport=WINDOW, color_scheme="light")
    tab.goto((folder / "report.html").as_uri())
    save(tab.screenshot(), "report")
    tab.close()


def session(browser: Any, folder: Path) -> tuple[Any, str]:
    """The pictured page, at its first question and explorer, and what it shows."""
    tab = opened(browser, folder, SESSIONS)
    tab.set_viewport_size(WINDOW)
    settle(tab)
    own = f"section:has(> {SESSION}), section{SESSION}"
    plan = f":is({own}) table"
    top = tab.locator(own).first.evaluate("(node) => node.getBoundingClientRect().top + scrollY")
    tab.evaluate("(top) => scrollTo({ top, behavior: 'instant' })", top - 70)
    tab.wait_for_timeout(500)
    return tab, words(tab, f":is({own}) > p", plan, f":is({own}) .tfviz-explorer")


def shown(browser: Any, folder: Path) -> dict[str, str]:
    """A digest of what each picture would show now.

    A class is not graded for it: its answers, what is asked, and the words of the report's page
    stand for the report.
    """
    known = tasks(read(LESSON))
    asked = {
        label: [
            *(block.source for block in (task.prose, *task.hints)),
            *((task.stub, task.all_tests) if isinstance(task, Exercise) else ()),
        ]
        for label, task in known.items()
    }
    answers = {
        student: {label: answer(known[label], given) for label, given in given_by.items()}
        for student, given_by in CLASS.items()
    }
    frame = re.sub(r"<style>.*?</style>", "", page.PAGE, flags=re.S)
    tab, said = session(browser, folder)
    tab.close()
    return {
        "assignment": digest(json.dumps([asked[SHARPNESS], HURRY])),
        "report": digest(json.dumps([asked, answers, POINTS, frame], sort_keys=True)),
        "session": digest(said),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--site", type=Path, help="pages that are built already")
    given = parser.parse_args()
    chrome = find()
    if chrome is None:
        print("no Chrome or Chromium found: install one, or set CHROME to its path")
        return 1
    if given.site is None and build(ROOT, quiet=True):
        return 1
    folder = (given.site or ROOT / "_build" / "html").resolve()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=chrome, args=FLAGS)
        course = course_in(Path(name))
        opened_assignment(browser, course)
        graded_report(browser, course)
        tab, _ = session(browser, folder)
        save(tab.screenshot(), "session")
        SHOWN.write_text(json.dumps(shown(browser, folder), indent=1) + "\n", "utf8")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
