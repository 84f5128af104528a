"""A small explorer breaks each law of where drawings stand (`explorer_geometry`) once.

That every explorer of the library keeps them is asked in `test_every_explorer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.explorer_geometry import misplaced
from browser.explorer_site import served, write_site

from tfviz.explorers.base import Explorer, knob

RESTS_ON = (
    "tfviz/explorers/**",
    "tfviz_lab/results/*.json",
    "book/assets/**",
    "tests/browser/**",
    "tests/*.py",
)

MODULE = """
export default tf.explorer({
  numbers: ({ n }) => ({ n }),
  setup(app) {
    const plane = app.plane({ height: () => 200 });
    const matrix = app.matrix({ tall: 200 });
    app.knob("n");
    const note = app.lines();
    app.ask({
      name: "one",
      question: "How many?",
      chips: ["one", "two"],
      truth: () => 0,
      hides: ["?"],
    });
    return (state) => {
      plane.show({
        title: "a line",
        label: "a line",
        x: { from: 0, to: 10 },
        y: { from: 0, to: 10 },
        marks: [
          { line: [[0, 0], [state.n, 10]] },
          { text: "here", at: [5, 5] },
          { text: "there", at: [8, 5] },
        ],
      });
      matrix.show({
        title: "cells",
        label: "cells",
        rows: 4,
        values: (i, j) => (i === j ? 1 : 0),
        rowHeads: ["a", "b", "c", "d"],
        columnHeads: ["a", "b", "c", "d"],
      });
      const { root, canvas, frame } = matrix;
    };
  },
});
"""
LAST = "      const { root, canvas, frame } = matrix;\n"


class TestGeometry(Explorer):
    __test__ = False
    label = "Lines and cells"
    rem = 50, 70
    n = knob(6, low=1, high=10, label="how far")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("geometry")
    with served(folder) as url:
        yield folder, url


def opened(page: Any, site: tuple[Path, str], explorer: Explorer) -> Any:
    folder, url = site
    write_site(folder, explorer.html())
    page.goto(f"{url}index.html")
    page.locator(".tfviz-explorer[data-ready]").wait_for()
    return page


@pytest.fixture
def looked_at(page: Any, site: tuple[Path, str], tmp_path: Path) -> Callable[[str], list[str]]:
    """looked_at(module): what is misplaced in an explorer with this module."""

    def found(module: str) -> list[str]:
        (tmp_path / f"{TestGeometry.module}.js").write_text(module, "utf8")
        kind: Any = type("TestGeometry", (TestGeometry,), {"__module__": __name__})
        kind.home = tmp_path
        folder, _ = site
        write_site(folder, kind().html())
        script, style = kind.sources()
        (folder / "_static" / "explorers" / f"{kind.module}.js").write_text(script, "utf8")
        (folder / "_static" / "explorers" / f"{kind.module}.css").write_text(style, "utf8")
        return misplaced(opened(page, site, kind()))

    return found


def test_one_that_keeps_the_geometry(looked_at: Callable[[str], list[str]]) -> None:
    assert not looked_at(MODULE)


def after(line: str) -> str:
    return MODULE.replace(LAST, f"{LAST}      {line}\n")


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (after('canvas.style.top = "40%";'), "px beside their frame"),
        (after("if (state.n === 10) canvas.style.width = '50%';"), "n = 10: cells: the cells are"),
        (
            after("if (devicePixelRatio === 3) canvas.style.left = 0;"),
            "at 3, first state: cells: the cells are",
        ),
        (
            after("canvas.style.left = `${canvas.offsetLeft}px`;"),
            "in print, first state: cells: the cells are",
        ),
        (
            after('root.querySelector("[data-row=\'1\']").setAttribute("y", 20);'),
            "“b” is .* beside what it names",
        ),
        (
            after('root.querySelector("[data-column=\'2\']").setAttribute("x", 20);'),
            "“c” is .* beside what it names",
        ),
        (
            MODULE.replace("[state.n, 10]", "[state.n, state.n === 1 ? 20 : 10]"),
            "n = 1: a line: path of tfx-mark-line is",
        ),
        (MODULE.replace('"here", at: [5, 5]', '"here", at: [10, 5]'), "“here” is"),
        (
            MODULE.replace('"here", at: [5, 5]', '"here", at: [7.9, 5]'),
            "“here” and “there” overlap",
        ),
        (after('root.style.width = "200%";'), "cells: is wider than the explorer"),
    ],
    ids=lambda x: x if len(x) < 60 else "broken",
)
def test_each_of_them_can_be_broken(
    looked_at: Callable[[str], list[str]], module: str, what: str
) -> None:
    assert module != MODULE
    found = looked_at(module)
    assert any(re.search(what, one) for one in found), found
