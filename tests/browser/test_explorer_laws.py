"""A small explorer keeps all laws of explorers, and breaks each of them once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.explorer_laws import given_away, violations
from browser.explorer_site import served, write_site

from tfviz.explorers.base import Explorer, Numbers, knob

MODULE = """
const numbers = ({ n }) => ({ half: n / 2 });
export default tf.explorer({
  numbers,
  setup(app) {
    const first = app.plane({ height: () => 200 });
    const plane = app.plane({ height: () => 200 });
    app.knob("n");
    const question = app.ask({
      name: "half",
      question: "How much is half of 8?",
      about: plane,
      hides: ["half"],
      ghost: {
        first: 1,
        at: (half) => [half, 1],
        to: (x) => tf.clamp(Math.round(x), 0, 8),
        by: [1, 0],
      },
      truth: (numbers) => numbers.half,
      then: { n: 8 },
      guards: ["n"],
      because: "Half of eight is four.",
    });
    return (state, numbers) => {
      first.show({
        title: "what is halved",
        label: "the whole",
        x: { from: 0, to: 10 },
        y: { from: 0, to: 2 },
        marks: [
          { line: [[0, 1], [state.n, 1]] },
          { handle: [state.n, 1], knob: "n", name: "whole" },
        ],
      });
      plane.show({
        title: "the half",
        label: "the half",
        x: { from: 0, to: 10 },
        y: { from: 0, to: 2 },
        marks: [
          { line: [[0, 0], [state.n, 0]], colour: "muted" },
          { line: [[0, 1], [numbers.half, 1]], colour: "attention", part: "half" },
        ],
      });
      app.read({ whole: state.n, half: numbers.half });
      app.say(`Of ${state.n}, ${question.tell(`half is ${numbers.half}`, "how much is half?")}`);
    };
  },
});
"""
PLANE = '          { line: [[0, 0], [state.n, 0]], colour: "muted" },\n'
TWICE = MODULE.replace(
    "    return (state, numbers) => {",
    """    app.ask({
      name: "double",
      question: "How much is twice 3?",
      number: {},
      truth: (_, { n }) => 2 * n,
      then: { n: 3 },
      because: "Twice three is six.",
    });
    return (state, numbers) => {""",
    1,
)


class TestExplorerLaws(Explorer):
    __test__ = False
    label = "One half"
    rem = 35, 35, 35, 54
    n = knob(6, low=1, high=10, label="whole")
    asks = "Move the whole."

    def numbers(self) -> Numbers:
        return {"half": self.n / 2}


@pytest.fixture
def stand(page: Any, tmp_path: Path) -> Iterator[Any]:
    """stand(module, …): the page on which an explorer with this module stands."""

    def open_(module: str, asks: str = "Move the whole.", rem: Any = None) -> Any:
        (tmp_path / f"{TestExplorerLaws.module}.js").write_text(module, "utf8")
        kind: Any = type("TestExplorerLaws", (TestExplorerLaws,), {"__module__": __name__})
        kind.home = tmp_path
        kind.rem = rem or TestExplorerLaws.rem
        write_site(tmp_path, kind(prompt=asks).html())
        script, _ = kind.sources()
        folder = tmp_path / "_static" / "explorers"
        (folder / f"{kind.module}.js").write_text(script, "utf8")
        (folder / f"{kind.module}.css").write_text("", "utf8")
        page.goto(f"{url}index.html")
        page.locator(".tfviz-explorer[data-ready]").wait_for()
        return page

    with served(tmp_path) as url:
        yield open_


@pytest.fixture
def looked_at(stand: Any) -> Any:
    """looked_at(module, …): the laws that an explorer with this module breaks."""
    return lambda *what, **more: violations(stand(*what, **more))


def test_one_answer_does_not_reveal_another(stand: Any) -> None:
    """The state of an answer is none that the reader chose, and looking reveals both."""
    page = stand(TWICE)
    open_ = page.locator(".tfx-ask[data-open]")
    page.get_by_role("button", name="just show me").first.click()
    page.get_by_text("It is: 4.").wait_for()
    assert open_.count() == 1
    page.locator("input[data-key=n]").press("End")
    page.get_by_text("You looked: it is: 6.").wait_for()
    assert not open_.count()


def test_one_that_keeps_all_laws(looked_at: Any) -> None:
    assert not looked_at(MODULE)


@pytest.mark.parametrize(
    ("module", "law"),
    [
        (MODULE.replace(PLANE, ""), "nothing is drawn in: the half"),
        (
            MODULE.replace("app.read({", 'app.status.style.fontFamily = "serif";\n app.read({'),
            "set in the system's",
        ),
        (MODULE.replace("app.read({ whole", "app.read({ n_w: 1, whole"), "as it is typed: n_w"),
        (MODULE.replace("        by: [1, 0],\n", ""), "↑ and ↓ do nothing to your answer"),
        (MODULE.replace('hides: ["half"]', 'hides: ["half", "whole"]'), "all readouts say ?"),
        (MODULE.replace('knob: "n", name: "whole" }', 'name: "whole" }'), "whole is dead"),
        (
            MODULE.replace("handle: [state.n, 1]", "handle: [10 - state.n, 1]"),
            "→ moves whole to the left",
        ),
        (
            MODULE.replace(
                "return (state, numbers) => {",
                "return (state, numbers) => {\n if (state.n === 8) app.set({ n: 5 });",
            ),
            "the answer is 4, and the state shown makes it 2.5",
        ),
        (
            MODULE.replace("half: numbers.half }", 'half: "much" }').replace(
                "`half is ${numbers.half}`", '"that much"'
            ),
            "nothing beside the box says 4",
        ),
        (
            MODULE.replace(
                "setup(app) {", 'setup(app) {\n const note = tf.el("p", {}, "?");'
            ).replace(
                "app.read({",
                "app.picture.prepend(note);\n note.hidden = question.open;\n app.read({",
            ),
            "the answer moves",
        ),
        (
            MODULE.replace("about: plane,", "").replace(
                "first.show", "plane.question = question;\n first.show"
            ),
            "a phone pins another picture",
        ),
    ],
    ids=lambda x: x if len(x) < 60 else "broken",
)
def test_each_law_can_be_broken(looked_at: Any, module: str, law: str) -> None:
    assert module != MODULE
    found = looked_at(module)
    assert any(law in one for one in found), found


def test_reserved_height_and_words_for_a_phone(looked_at: Any) -> None:
    assert any("are kept" in one for one in looked_at(MODULE, rem=(60, 60, 60, 80)))
    keys = looked_at(MODULE, asks="Move the whole with the arrow keys.")
    assert any("a phone is told of keys" in one for one in keys)


@pytest.mark.parametrize(
    ("value", "elsewhere", "found"),
    [
        ("288", "nothing is shared: 288 matrices", True),
        ("4.00", "the mean of 7 tokens is 4.00.", True),
        ("14 %", ".14", True),  # as cells have it
        ("35 %", "0.35", True),
        ("−16.03", "log p −16.03", True),
        ("1 048 576", "a matrix of 1\u202f048\u202f576 numbers", True),
        ("13 tokens", "a window of 13", True),
        ("288", "1 288 and 2880 and 28.8", False),
        ("4.00", "14.00 and 4.003 and −4.00", False),
        ("8", "of 8 words", False),  # one digit says nothing
        ("30 %", "the question names 30", False),
        ("?", "?", False),
    ],
)
def test_what_is_hidden_stands_nowhere_else(value: str, elsewhere: str, found: bool) -> None:
    first = [("hidden", "?"), (None, elsewhere)]
    asked = [{"name": "q", "kind": "chips", "question": "Of 30?", "text": "more"}]
    assert bool(given_away(first, [("hidden", value)], asked)) == found
    answer = [{**asked[0], "kind": "number", "text": value}]
    assert bool(given_away([(None, elsewhere)], [], answer)) == found
