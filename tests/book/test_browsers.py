"""The book in three engines, Chromium, Firefox and WebKit: one journey, from a server and a folder.

All other tests look at pages in Chromium alone. This one asks whether what a reader does works
elsewhere, too: a slider, a question, an exercise, a mask of one's own, a self-test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import engines
import pytest
import system
from book.conftest import Site, served
from book.test_in_page import plain
from engines import Tab

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "tfviz/explorers/kit/**",
    "tfviz/explorers/shared/**",
    "chapters/sparse/local_global.md",
    "book/*.md",
)

LANDING, MASK, TEST = "book/index", "book/your_own_mask", "book/self_test"
LESSON, EXERCISE = "chapters/sparse/local_global", "ex-pair-rule"
PAGES = [LANDING, LESSON, MASK, TEST]

READY = "() => Boolean(document.querySelector('.tfviz-explorer[data-ready]'))"
STATE = "() => ({ ...document.querySelector('.tfviz-explorer').tfvizModel.state })"
NUMBER = "(slider) => Number(document.querySelector(slider).value)"
DRAWN = """
() => {
  const host = document.querySelector(".tfviz-explorer");
  const cells = [...host.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL());
  return [...cells, ...[...host.querySelectorAll("svg")].map((svg) => svg.outerHTML)].join();
}
"""
# nothing is on its way any more: what is drawn stays the same for three frames
AT_REST = f"""
async () => {{
  const before = ({DRAWN})();
  for (let n = 0; n < 3; n++) await new Promise(requestAnimationFrame);
  return before === ({DRAWN})();
}}
"""


PACKAGES = {"firefox": ["firefox-esr"], "webkit": ["webkit2gtk-driver", "xvfb"]}


def needed(engine: str) -> None:
    """Skip the test where a browser is missing; on CI it fails, so that nobody overlooks it."""
    if missing := system.missing(*PACKAGES.get(engine, [])):
        (pytest.fail if system.on_ci() else pytest.skip)(" ".join(missing))


@pytest.fixture(scope="module", params=["chromium", "firefox", "webkit"])
def engine(request: pytest.FixtureRequest) -> str:
    needed(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def driven(engine: str, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    if engine == "chromium":
        opened = engines.chromium(browser)
    else:
        opened = getattr(engines, engine)(tmp_path_factory.mktemp(engine))
    with opened as tab:
        yield tab


@pytest.fixture(scope="module", params=["server", "folder"])
def home(
    request: pytest.FixtureRequest,
    engine: str,
    site: Site,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Where the pages are."""
    folder = site.folder
    if engine == "webkit":  # which hears no console by itself
        folder = engines.watched(folder, tmp_path_factory.mktemp("watched") / "html", PAGES)
    with served(folder) as pages:
        yield pages.address if request.param == "server" else folder.as_uri()


@pytest.fixture
def tab(driven: Tab) -> Iterator[Tab]:
    """The browser; what its console says fails the test."""
    yield driven
    assert driven.complaints() == []


def opened(tab: Tab, home: str, page: str) -> None:
    """Open a page, and wait for its first explorer."""
    tab.go(f"{home}/{page}.html")
    tab.show(".tfviz-explorer")
    tab.wait(READY)


def stepped(tab: Tab, slider: str) -> None:
    """One key moves a slider: its number and the picture change."""
    tab.focus(slider)
    tab.wait(AT_REST)
    number, picture = tab.evaluate(NUMBER, slider), tab.evaluate(DRAWN)
    tab.press("ArrowRight")
    assert tab.evaluate(NUMBER, slider) == number + 1
    tab.wait(f"(was) => was !== ({DRAWN})()", picture)


def test_a_question_is_answered_and_a_slider_moved_by_a_key(tab: Tab, home: str) -> None:
    opened(tab, home, LANDING)
    assert tab.text("h1")
    tab.click(".tfx-ask[data-open] .tfx-answers button")
    verdict = tab.wait("() => document.querySelector('.tfx-verdict').textContent")
    assert verdict[0] in "✓✗" and "You said: " in verdict
    slider = ".tfviz-explorer input[type=range][data-key]"
    key = tab.evaluate("(slider) => document.querySelector(slider).dataset.key", slider)
    end = tab.evaluate(STATE)[key]  # of the answer, to which the picture goes
    tab.wait(f"(end) => ({NUMBER})({slider!r}) === end", end)
    stepped(tab, slider)


def test_an_exercise_is_judged(tab: Tab, home: str) -> None:
    """A wrong answer and a right one, typed into the gap of the stub."""
    _, exercise = plain()[EXERCISE]
    box = f".tf-try[data-try={EXERCISE}]"
    tab.go(f"{home}/{LESSON}.html#{EXERCISE}")  # which opens the fold that it is in
    tab.click(f"{box} button >> Try it here")
    tab.wait("() => document.activeElement.matches('.tf-try textarea')")
    for source, expected in ((exercise.wrong[0].source, "failed"), (exercise.solved, "passed")):
        line = source.rstrip().splitlines()[-1].strip()
        tab.write(line)
        tab.press("Control", "Enter")
        told = f"() => document.querySelector('{box}[data-verdict]')?.dataset.verdict"
        verdict, words = tab.wait(told), tab.text(f"{box} [role=status]")
        assert verdict == expected, words
        assert words[0] == {"failed": "✗", "passed": "✓"}[expected]
        for _ in line:
            tab.press("Backspace")


def test_a_mask_of_ones_own_is_drawn(tab: Tab, home: str) -> None:
    opened(tab, home, MASK)
    tab.click(".tfx-ask[data-open] button >> just show me")
    field = "input[data-key=formula]"
    tab.focus(field)
    tab.press("Control", "a")
    tab.write("(i > j) & (i - j <= far)")
    tab.wait("() => document.querySelector('.yom-formula math')?.textContent.includes('far')")
    state = tab.evaluate(STATE)
    assert (state["formula"], state["values"]) == ("(i > j) & (i - j <= far)", {"far": 4})
    assert "Row 0 has no key" in tab.text(".yom-verdict")
    stepped(tab, "input[data-key=value-far]")
    assert tab.evaluate(STATE)["values"] == {"far": 5}
    tab.focus(field)
    tab.press("End")
    tab.write(" and")  # Python's, which masks cannot have: a caret and a remedy
    assert "&" in tab.text(".yom-bad")


RING = """
() => {  // how far the buttons lie beneath the ring around the answer
  const run = document.querySelector(".tf-test-run");
  const [answer, buttons] = run.querySelectorAll(".tf-answer, .tf-test-buttons");
  const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(answer);
  if (outlineStyle === "none") return null;
  const below = buttons.getBoundingClientRect().top - answer.getBoundingClientRect().bottom;
  return below - parseFloat(outlineWidth) - parseFloat(outlineOffset);
}
"""


def test_a_self_test_is_taken_by_the_keyboard(tab: Tab, home: str) -> None:
    tab.go(f"{home}/{TEST}.html")
    tab.focus(".tf-test-start button >> Begin a test")
    tab.press("Enter")
    assert tab.text(".tf-test-head") == "Question 1 of 10"
    for question, answer in ((2, "Not yet"), (3, "I knew it")):
        tab.focus(".tf-test-run button >> Show the answer")
        tab.press("Enter")
        assert tab.text(".tf-test-run .tf-answer")
        assert tab.evaluate("() => document.activeElement.className") == "tf-answer"
        assert tab.evaluate(RING) >= 4
        tab.focus(f".tf-test-run button >> {answer}")
        tab.press("Enter")
        assert tab.text(".tf-test-head") == f"Question {question} of 10"
    assert tab.text(".tf-test [role=status]").startswith("Known. 1 of ")


# --- what is missing ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["firefox", "webkit"])
def test_a_browser_that_is_missing_fails_on_ci_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install"):
        needed(name)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install"):
        needed(name)
