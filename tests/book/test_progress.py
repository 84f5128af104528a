"""Progress on the reader's device: what the page keeps, shows, exports, takes in and forgets.

Everything goes through real controls in a real browser; the store is looked at only to ask whether
it says the same. Ticks are set by the space bar: what is still drawn above moves a box away between
the press and the release of a mouse. The lessons say which exercises there must be. Where something
is done in a lesson its page is the book's without the sections that hold no exercise: a tenth of
what there is to draw.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from book.conftest import PREFIX, ROOT, Site, served
from browser.explorer_laws import AT_REST
from bs4 import BeautifulSoup

from tfviz_lessons.lesson import Exercise, read

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "chapters/sparse/factorized.md",
    "chapters/basics/attention.md",
    "book/progress.md",
)

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
LAB, LAB_EXERCISE = "chapters/sparse/factorized", "ex-two-hops"
CODE, CODE_EXERCISE = "chapters/basics/attention", "ex-sharpness"
PROGRESS = "book/progress"
KEY = f"tfviz-progress/1:{PREFIX}/"
LESSONS = re.findall(r"- file: (chapters/\S+)", (ROOT / "_toc.yml").read_text("utf-8"))
TASKS = {name: read(ROOT / f"{name}.md").tasks for name in LESSONS}
TOTAL = sum(map(len, TASKS.values()))
DENIED = """
Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("denied", "SecurityError"); },
});
"""
FULL = """
Storage.prototype.setItem = function () {
  throw new DOMException("the quota has been exceeded", "QuotaExceededError");
};
"""
ELSEWHERE = """
([key, text]) => {  // written in another tab: the page hears of it, and says anew what is next
  localStorage.setItem(key, text);
  dispatchEvent(new StorageEvent("storage", {key, newValue: text, storageArea: localStorage}));
  return document.querySelector("[data-tf-next]").innerText;
}
"""


@pytest.fixture(scope="module")
def short(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The book, with nothing but exercises in the two lessons."""
    folder = tmp_path_factory.mktemp("short") / "html"
    shutil.copytree(site.folder, folder, copy_function=os.symlink)
    for name in (CODE, LAB):
        page = folder / f"{name}.html"
        soup = BeautifulSoup(page.read_text("utf-8"), "html.parser")
        for section in soup.select("main article > section > section"):
            if not section.select(".exercise"):
                section.decompose()
        assert len(soup.select("main .exercise")) == len(TASKS[name])
        page.unlink()
        page.write_text(str(soup), "utf-8")
    with served(folder) as pages:
        yield pages


@pytest.fixture(autouse=True)
def quiet(page: Any) -> Iterator[None]:
    """No test may leave a message in the console."""
    said: list[str] = []
    page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield
    assert not said


def store(page: Any) -> dict[str, str]:
    return dict(page.evaluate("({...localStorage})"))


def kept(page: Any) -> Any:
    text = page.evaluate("(key) => localStorage.getItem(key)", KEY)
    return None if text is None else json.loads(text)


def lab(page: Any, address: str) -> Any:
    """The exercise with the lab, alive."""
    page.goto(address)
    box = page.locator(f"#{LAB_EXERCISE}")
    box.scroll_into_view_if_needed()
    box.locator(".tfviz-explorer[data-ready]").wait_for()
    return box


def solve(page: Any, box: Any) -> None:
    """Layers take turns, and the window is one key narrower."""
    box.locator(".tfx-segments label", has_text="A, B, …").click()
    box.locator('input[data-key="left-0-lookback"]').focus()
    page.keyboard.press("ArrowLeft")
    box.locator(".sl-goal b", has_text="✓ Goal met.").wait_for()


def tick(page: Any, site: Site) -> None:
    page.goto(site.url(CODE))
    page.locator(f"#{CODE_EXERCISE}").get_by_label("I solved it").press(" ")


def tick_optional(page: Any) -> None:
    """One that folds, in the lesson with the lab."""
    page.locator(".tf-optional > summary", has_text="The best stride").click()
    page.locator("#ex-best-stride").get_by_label("I solved it").press(" ")


def unfold(page: Any) -> None:
    """Open the strips of all chapters."""
    page.evaluate("document.querySelectorAll('.tf-chapter').forEach((it) => { it.open = true; })")


def heard(page: Any) -> Any:
    """What only a screen reader is told."""
    return page.locator("main > p.tf-unseen[role=status]")


def violations(page: Any) -> list[str]:
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [f"{v['id']}: {[n['html'][:120] for n in v['nodes'][:3]]}" for v in found]


# --- which exercises ------------------------------------------------------------------------------


@pytest.mark.usefixtures("whole_book")
def test_the_page_lists_every_exercise_of_every_lesson(page: Any, site: Site) -> None:
    page.goto(site.url(PROGRESS))
    unfold(page)
    rows = page.locator("[data-tf-exercise]")
    listed = rows.evaluate_all("(rows) => rows.map((row) => row.dataset.tfExercise)")
    assert listed == [task.label for tasks in TASKS.values() for task in tasks]
    for row, task in zip(rows.all(), [t for tasks in TASKS.values() for t in tasks], strict=True):
        kind = task.answer if isinstance(task, Exercise) else "written"
        words = {"code": "code", "written": "in words", "explorer": "in the lab"}[kind]
        assert task.name != task.label, f"the text of {task.label} begins with its title in bold"
        assert row.locator(".tf-kind").inner_text() == words
        said = row.locator("a").inner_text().replace("\u00a0", " ").replace("’", "'")
        between = re.split(r"\$[^$]+\$", task.name.replace("`", ""))  # words between formulas
        assert re.fullmatch(".+".join(map(re.escape, between)), said, re.S)
        assert not re.search(r"\d %", row.locator("a").inner_text()), "a line may break before %"
        assert re.fullmatch(r"\d+\.\d+", row.locator(".tf-number").inner_text())
        assert row.locator("a").get_attribute("href").endswith(f".html#{task.label}")


@pytest.mark.usefixtures("whole_book")
def test_a_chapter_is_a_strip_that_opens(page: Any, site: Site) -> None:
    page.goto(site.url(PROGRESS))
    strips = page.locator(".tf-chapter")
    assert strips.count() == len(LESSONS)
    assert page.locator("[data-tf-exercise]:visible").count() == 0
    heights = strips.evaluate_all("(all) => all.map((it) => it.offsetHeight)")
    assert max(heights) < 60 and page.evaluate("document.body.scrollHeight") < 4000
    for _ in range(2):  # and closes
        before = page.locator("[data-tf-exercise]:visible").count()
        strips.first.locator("summary").press("Enter")
        shown = page.locator("[data-tf-exercise]:visible").count()
        assert {before, shown} == {0, len(TASKS[LESSONS[0]])}
    strips.first.locator("summary").press("Enter")
    assert strips.first.locator(".tf-go a").get_attribute("href").endswith(f"{LESSONS[0]}.html")


@pytest.mark.usefixtures("whole_book")
def test_the_next_exercise_is_named_with_one_stop(page: Any, site: Site) -> None:
    labels = [task.label for tasks in TASKS.values() for task in tasks]
    page.goto(site.url(PROGRESS))
    for label in labels:
        done = {other: {"done": "2026-01-02"} for other in labels if other != label}
        words = page.evaluate(ELSEWHERE, [KEY, progress(exercises=done)])
        assert words.startswith("Next: "), f"{label}: {words}"
        assert re.search(r"[^.?!…][.?!…]$", words), f"{label}: {words}"
        link = page.locator("[data-tf-next] a").get_attribute("href")
        assert link.endswith(f"#{label}"), f"{label}: {link}"


@pytest.mark.usefixtures("whole_book")
def test_the_next_chapter_is_the_first_that_is_not_read(page: Any, site: Site) -> None:
    page.goto(site.url(PROGRESS))
    last = len(LESSONS) - 1
    for many, wanted in ((0, 0), (1, 1), (last, last), (last + 1, None)):
        chapters = {name: {"done": "2026-01-02"} for name in LESSONS[:many]}
        page.evaluate(ELSEWHERE, [KEY, progress(chapters=chapters)])
        link = page.locator("[data-tf-read] a")
        assert link.count() == (wanted is not None)
        if wanted is not None:
            assert link.get_attribute("href").endswith(f"{LESSONS[wanted]}.html")


@pytest.mark.parametrize(
    ("chapter", "which", "way", "width"),
    [  # every two of them meet
        (CODE, 0, "address", 1280),
        (CODE, -1, "click", 390),
        (LAB, 0, "click", 390),
        (LAB, -1, "address", 390),
        (LAB, -1, "click", 1280),
    ],
)
def test_a_link_to_an_exercise_arrives(
    page: Any, site: Site, chapter: str, which: int, way: str, width: int
) -> None:
    label = TASKS[chapter][which].label
    page.set_viewport_size({"width": width, "height": 900})
    if way == "address":
        page.goto(f"{site.url(chapter)}#{label}")
    else:
        page.goto(site.url(PROGRESS))
        unfold(page)
        page.locator(f"[data-tf-exercise='{label}'] a").click()
        page.wait_for_url(f"**/{chapter}.html#{label}")
    top = f"document.getElementById('{label}').getBoundingClientRect().top"
    page.wait_for_function(f"Math.abs({top}) < 150")
    page.wait_for_load_state("networkidle")  # and stays, when all that is near has come
    page.evaluate(AT_REST)
    assert abs(page.evaluate(top)) < 150


# --- doing ----------------------------------------------------------------------------------------


def test_nothing_is_stored_before_the_reader_does_something(page: Any, short: Site) -> None:
    box = lab(page, short.url(LAB))
    box.locator(".tfx-grid svg").first.click()
    box.get_by_role("button", name="reset").click()
    for name in (CODE, PROGRESS, "index"):
        page.goto(short.url(name))
    page.keyboard.press("Control+k")
    page.get_by_role("searchbox", name="Search for").fill("strided")
    page.locator(".tf-search-results a").first.wait_for()
    assert store(page) == {}
    page.goto(short.url(PROGRESS))
    assert page.locator("[data-tf-stored]").inner_text() == "nothing"
    assert page.get_by_role("button", name="Export").is_disabled()


def test_a_goal_that_is_met_is_done_said_and_kept(page: Any, short: Site) -> None:
    box = lab(page, short.url(LAB))
    assert "reach the goal" in box.locator(".tf-done").inner_text()
    box.locator(".tfx-segments label", has_text="A, B, …").click()
    box.locator(".sl-goal b", has_text="✗ Goal not met: query 8 has 9 keys").wait_for()
    assert kept(page) is None
    solve(page, box)
    heard(page).get_by_text("is done. Kept on this device.").wait_for()
    assert box.locator(".sl-goal b").get_attribute("role") == "status"
    assert box.locator(".tf-done-text").inner_text().startswith("Goal met")
    entry = kept(page)["exercises"][LAB_EXERCISE]
    assert entry["state"]["left"] == {"name": "sliding_window", "params": {"lookback": 7}}
    assert entry["state"]["stack"] == "AB"
    # and over a reload the answer comes back, not the goal alone
    box = lab(page, short.url(LAB))
    assert box.locator(".sl-goal b").inner_text().startswith("✗")
    box.get_by_role("button", name="Show my answer").click()
    box.locator(".sl-goal b", has_text="✓ Goal met.").wait_for()
    assert page.evaluate("document.activeElement.matches('.tfviz-explorer')")
    assert kept(page)["exercises"][LAB_EXERCISE] == entry
    box.get_by_role("button", name="Forget it").click()
    assert kept(page) is None
    assert "reach the goal" in box.locator(".tf-done").inner_text()


def test_a_better_answer_takes_the_place_of_the_first(page: Any, short: Site) -> None:
    box = lab(page, short.url(LAB))
    solve(page, box)
    box.locator('input[data-key="left-0-lookback"]').focus()
    page.keyboard.press("ArrowLeft")  # one key too few: no answer, and the last one stays
    box.locator(".sl-goal b", has_text="✗").wait_for()
    box.locator(".tfx-check input").check()  # causal, which changes nothing here
    page.keyboard.press("Tab")
    box.locator('input[data-key="left-0-lookback"]').focus()
    page.keyboard.press("ArrowRight")
    box.locator(".sl-goal b", has_text="✓").wait_for()
    read = f"JSON.parse(localStorage.getItem({json.dumps(KEY)})).exercises['{LAB_EXERCISE}'].state"
    page.wait_for_function(f"() => {read}.causal === true")
    assert page.evaluate(read)["left"]["params"] == {"lookback": 7}


def test_a_link_to_an_answer_does_not_count(page: Any, short: Site) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    box = lab(page, short.url(LAB))
    solve(page, box)
    box.get_by_role("button", name="copy link").click()
    link = page.evaluate("navigator.clipboard.readText()")
    box.get_by_role("button", name="Forget it").click()
    page.goto("about:blank")
    box = lab(page, link)
    box.locator(".sl-goal b", has_text="✓ Goal met.").wait_for()
    assert kept(page) is None


@pytest.mark.usefixtures("whole_book")
def test_a_tick_is_kept_over_a_reload_and_shown_on_the_other_pages(page: Any, short: Site) -> None:
    tick(page, short)
    heard(page).get_by_text("Kept in your progress on this device.").wait_for()
    page.get_by_label("I have read this chapter").press(" ")
    page.reload()
    assert page.locator(f"#{CODE_EXERCISE}").get_by_label("I solved it").is_checked()
    assert page.get_by_label("I have read this chapter").is_checked()
    assert "is-done" in page.locator(f"#{CODE_EXERCISE}").get_attribute("class")
    here = f"1 of {len(TASKS[CODE])} exercises done"
    assert here in page.locator(".tf-read").inner_text()
    page.goto(short.url("index"))
    assert page.locator(".tf-map-count:visible").all_inner_texts() == [f"read · {here}"]
    page.goto(short.url(PROGRESS))
    assert page.locator("[data-tf-sum]").inner_text() == (
        f"1 of {TOTAL} exercises done, 1 chapter read."
    )
    done = page.locator("[data-tf-exercise].is-done")
    assert done.evaluate_all("(rows) => rows.map((r) => r.dataset.tfExercise)") == [CODE_EXERCISE]
    assert json.loads(page.locator("[data-tf-stored]").inner_text()) == kept(page)
    page.locator("[data-tf-next] a").click()
    page.wait_for_url(f"**/{CODE}.html#{TASKS[CODE][1].label}")


def test_a_tick_that_comes_before_the_script_is_kept(page: Any, short: Site) -> None:
    """On a slow line a reader may be faster than what keeps the progress."""
    held = list[Any]()
    page.route("**/js/progress.js*", lambda route: held.append(route))
    page.goto(short.url(CODE), wait_until="commit")
    box = page.get_by_label("I have read this chapter")
    box.press(" ")
    assert box.is_checked() and store(page) == {}
    held[0].continue_()
    heard(page).get_by_text("Kept in your progress on this device.").wait_for()
    assert box.is_checked() and list(kept(page)["chapters"]) == [CODE]
    page.unroute("**/js/progress.js*")


def test_a_tick_can_be_taken_back_and_leaves_nothing(page: Any, short: Site) -> None:
    tick(page, short)
    assert list(kept(page)["exercises"]) == [CODE_EXERCISE]
    page.locator(f"#{CODE_EXERCISE}").get_by_label("I solved it").press(" ")
    assert store(page) == {}


def test_the_keyboard_is_enough(page: Any, short: Site) -> None:
    page.goto(short.url(CODE))
    page.locator(f"#{CODE_EXERCISE}").scroll_into_view_if_needed()
    page.locator(f"#{CODE_EXERCISE} summary").focus()
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.tf-done input')"):
            break
    page.keyboard.press("Space")
    assert list(kept(page)["exercises"]) == [CODE_EXERCISE]
    page.goto(short.url(PROGRESS))
    page.locator("[data-tf-stored]").focus()
    for name in ("Export to a file", "Import from a file", "Clear …"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == name
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Clear your progress?")
    dialog.wait_for()
    assert "1 exercise done and 0 chapters read will be forgotten" in dialog.inner_text()
    assert page.evaluate("document.activeElement.textContent") == "Keep it"
    page.keyboard.press("Escape")
    assert list(kept(page)["exercises"]) == [CODE_EXERCISE]
    assert page.evaluate("document.activeElement.textContent") == "Clear …"
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # on "Keep it"
    assert list(kept(page)["exercises"]) == [CODE_EXERCISE]
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("Cleared.").wait_for()
    assert store(page) == {}


# --- files ----------------------------------------------------------------------------------------


def export(page: Any, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").click()
    assert re.fullmatch(r"tfviz-progress-\d{4}-\d\d-\d\d\.json", waiting.value.suggested_filename)
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def take(page: Any, file: Path) -> str:
    """Import a file; what the page says of it."""
    news = page.locator("[data-tf-news]")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import").click()
    chooser.value.set_files(file)
    news.get_by_text(file.name).wait_for()
    return str(news.inner_text())


def test_export_clear_import_gives_the_same(page: Any, short: Site, tmp_path: Path) -> None:
    solve(page, lab(page, short.url(LAB)))
    tick(page, short)
    page.get_by_label("I have read this chapter").press(" ")
    before = kept(page)
    assert set(before["exercises"]) == {LAB_EXERCISE, CODE_EXERCISE}
    page.goto(short.url(PROGRESS))
    file = export(page, tmp_path)
    assert json.loads(file.read_text("utf-8")) == before
    page.get_by_role("button", name="Clear …").click()
    page.get_by_role("button", name="Clear it").click()
    page.get_by_text("Cleared.").wait_for()
    assert store(page) == {}
    assert take(page, file).endswith("3 new, 0 that you had already.")
    assert kept(page) == before
    box = lab(page, short.url(LAB))
    box.get_by_role("button", name="Show my answer").click()
    box.locator(".sl-goal b", has_text="✓ Goal met.").wait_for()


def test_an_import_adds_and_never_loses(page: Any, short: Site, tmp_path: Path) -> None:
    tick(page, short)
    mine = kept(page)["exercises"][CODE_EXERCISE]["done"]
    other = {
        "course": "tfviz",
        "version": 1,
        "exercises": {
            CODE_EXERCISE: {"done": "2020-02-03"},
            "ex-later": {"done": mine},
        },
        "chapters": {LAB: {"done": "2020-02-04"}},
    }
    file = tmp_path / "other.json"
    file.write_text(json.dumps(other))
    page.goto(short.url(PROGRESS))
    assert take(page, file) == "other.json is added: 2 new, 1 that you had already."
    assert kept(page) == other
    less = tmp_path / "less.json"
    less.write_text(progress(exercises={CODE_EXERCISE: {"done": "2031-01-01"}}))
    assert take(page, less) == "less.json is added: 0 new, 1 that you had already."
    assert kept(page) == other


def progress(**changed: Any) -> str:
    return json.dumps({"course": "tfviz", "version": 1, "exercises": {}, "chapters": {}} | changed)


NO_PROGRESS = [
    ("<!DOCTYPE html><title>no</title>", "it is not JSON"),
    ("", "it is not JSON"),
    ("[1, 2]", "it is JSON, but no progress of this course"),
    ("null", "it is JSON, but no progress of this course"),
    (progress(course="other"), "it is JSON, but no progress of this course"),
    (progress(version=2), "its version is 2, and this page reads version 1"),
    (progress(version="1"), 'its version is "1", and this page reads version 1'),
    (progress(exercises=[]), "its “exercises” is not a table"),
    (progress(chapters=None), "its “chapters” is not a table"),
    (progress(exercises={"a": True}), "“a” has no day"),
    (progress(exercises={"a": {"done": 20261121}}), "“a” has no day"),
    (progress(exercises={"a": {"done": "2026-13-41"}}), "“a” has no day"),
    (progress(exercises={"<b>": {"done": "2026-11-21"}}), "“<b>” is not a name"),
    (progress(exercises={"x" * 200: {"done": "2026-11-21"}}), "is not a name"),
    (
        '{"course": "tfviz", "version": 1, "chapters": {}, "exercises":'
        ' {"__proto__": {"done": "2026-11-21"}}}',
        "“__proto__” is not a name",
    ),
    (progress(exercises={"a": {"done": "2026-11-21", "state": "AB"}}), "“a” has a “state”"),
    (progress(chapters={"a": {"done": "2026-11-21", "state": {}}}), "“a” has a “state”"),
    (" " * 5_000_000, "it is longer than the 256 KiB"),
]


def test_a_file_that_is_no_progress_is_refused_in_words(
    page: Any, short: Site, tmp_path: Path
) -> None:
    tick(page, short)
    before = kept(page)
    page.goto(short.url(PROGRESS))
    for k, (text, says) in enumerate(NO_PROGRESS):
        file = tmp_path / f"bad-{k}.json"
        file.write_text(text, "utf-8")
        said, what = take(page, file), f"{text[:200]!r}"
        assert said.startswith(f"{file.name} was not imported: "), f"{what}: {said}"
        assert says in said, f"{what}: {said}"
        assert said.endswith("Nothing has changed."), f"{what}: {said}"
        assert kept(page) == before, what
    good = tmp_path / "good.json"
    good.write_text(progress(chapters={CODE: {"done": "2026-11-21"}}), "utf-8")
    assert "1 new" in take(page, good)  # the next file has its chance


# --- where nothing can be kept --------------------------------------------------------------------


@pytest.mark.parametrize("script", [DENIED, FULL], ids=["denied", "full"])
def test_without_a_store_everything_else_goes_on(page: Any, short: Site, script: str) -> None:
    page.add_init_script(script)
    box = lab(page, short.url(LAB))
    solve(page, box)
    assert "Goal met" in box.locator(".tf-done").inner_text()
    assert "until you leave this page" in box.locator(".tf-done").inner_text()
    heard(page).get_by_text("keeps nothing for this site").wait_for()
    tick_optional(page)
    assert page.locator(".tf-read").get_by_text("2 of").is_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("searchbox", name="Search for").fill("strided")
    page.locator(".tf-search-results a").first.wait_for()
    page.goto(short.url(PROGRESS))
    assert page.locator("[data-tf-stored]").inner_text() == "nothing"


def test_the_page_says_that_a_store_is_denied(page: Any, short: Site, tmp_path: Path) -> None:
    page.add_init_script(DENIED)
    page.goto(short.url(PROGRESS))
    assert page.locator("[data-tf-where]").inner_text() == (
        "This browser keeps nothing for this site."
    )
    file = tmp_path / "mine.json"
    file.write_text(progress(chapters={CODE: {"done": "2026-11-21"}}), "utf-8")
    assert "1 new" in take(page, file)
    assert "keeps nothing for this site" in page.locator("[data-tf-news]").inner_text()
    assert json.loads(export(page, tmp_path).read_text("utf-8")) == json.loads(file.read_text())


@pytest.mark.parametrize("text", ["{", progress(version=7)])
def test_what_cannot_be_read_is_not_written_over(page: Any, short: Site, text: str) -> None:
    page.goto(short.url(PROGRESS))
    page.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, text])
    tick(page, short)
    assert store(page) == {KEY: text}
    row = page.locator(f"#{CODE_EXERCISE} .tf-done")
    assert "until you leave this page" in row.inner_text()
    page.goto(short.url(PROGRESS))
    assert page.locator("[data-tf-stored]").inner_text() == text
    assert "What is stored cannot be read" in page.locator("[data-tf-where]").inner_text()
    page.get_by_role("button", name="Clear …").click()
    page.get_by_role("button", name="Clear it").click()
    page.get_by_text("Cleared.").wait_for()
    assert store(page) == {}
    tick(page, short)
    assert list(kept(page)["exercises"]) == [CODE_EXERCISE]


# --- two tabs, sub-paths, a folder ----------------------------------------------------------------


def test_two_tabs_keep_in_step(page: Any, short: Site) -> None:
    other = page.context.new_page()
    other.goto(short.url(PROGRESS))
    unfold(other)
    page.goto(short.url(CODE))
    page.locator(f"#{CODE_EXERCISE}").get_by_label("I solved it").press(" ")
    other.locator(f'[data-tf-exercise="{CODE_EXERCISE}"].is-done').wait_for()
    other.goto(short.url(LAB))
    tick_optional(other)
    page.get_by_label("I have read this chapter").press(" ")
    page.wait_for_function(f"() => JSON.parse(localStorage.getItem({json.dumps(KEY)})).chapters")
    found = kept(page)
    assert set(found["exercises"]) == {CODE_EXERCISE, "ex-best-stride"}
    assert set(found["chapters"]) == {CODE}
    other.goto(short.url(PROGRESS))
    other.get_by_role("button", name="Clear …").click()
    other.get_by_role("button", name="Clear it").click()
    page.locator(f"#{CODE_EXERCISE}:not(.is-done)").wait_for()
    assert not page.get_by_label("I have read this chapter").is_checked()


def test_a_site_beside_this_one_has_progress_of_its_own(page: Any, short: Site) -> None:
    page.goto(short.url(PROGRESS))
    other = KEY.replace("course", "other-course")
    text = progress(exercises={CODE_EXERCISE: {"done": "2026-11-21"}})
    page.evaluate("([key, text]) => localStorage.setItem(key, text)", [other, text])
    page.reload()
    assert page.locator("[data-tf-exercise].is-done").count() == 0
    assert not page.get_by_role("button", name="Clear …").is_enabled()


def test_it_works_from_a_folder(page: Any, short: Site, tmp_path: Path) -> None:
    address = (short.folder / f"{LAB}.html").as_uri()
    solve(page, lab(page, address))
    page.goto((short.folder / f"{PROGRESS}.html").as_uri())
    assert page.locator("[data-tf-exercise].is-done").count() == 1
    found = json.loads(export(page, tmp_path).read_text("utf-8"))
    assert list(found["exercises"]) == [LAB_EXERCISE]
    page.goto((short.folder / "index.html").as_uri())
    assert page.locator(".tf-map-count.is-begun").inner_text().startswith("1 of ")


# --- how it looks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_where_something_is_done(page: Any, short: Site, theme: str) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    tick(page, short)
    page.get_by_label("I have read this chapter").press(" ")
    page.goto(short.url(PROGRESS))
    assert page.locator("[data-tf-exercise].is-done").count() == 1
    assert not violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Clear …").click()
    assert not violations(page)


@pytest.mark.usefixtures("whole_book")
def test_paper_and_a_page_without_scripts_show_no_controls(
    browser: Any, page: Any, short: Site
) -> None:
    page.goto(short.url(PROGRESS))
    assert page.locator(".tf-store").is_visible()
    page.emulate_media(media="print")
    assert not page.locator(".tf-store").is_visible()
    page.goto(short.url(CODE))
    assert not page.locator(".tf-read").is_visible()
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(short.url(PROGRESS))
    assert not plain.locator(".tf-store").is_visible()
    assert plain.locator("[data-tf-exercise]").count() == TOTAL
    assert plain.get_by_text("runs no JavaScript").is_visible()
    context.close()
