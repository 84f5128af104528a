"""An answer that is the state of an explorer: moved, copied, pasted into the assignment, judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browser import conftest as explorers

from tfviz.checks import CheckFailed
from tfviz.explorers import SparseLab
from tfviz_course.assignment import source_notebooks
from tfviz_lessons.assignment import release as release_notebook

PASTE = "# your code here"
CLIPBOARD = """() => Object.defineProperty(navigator, "clipboard", {
    configurable: true, value: { writeText: async (text) => { window.copied = text; } } })"""


# the pages with explorers of the browser tests
folder, address = explorers.folder, explorers.address
problems, show = explorers.problems, explorers.show


@pytest.fixture(scope="module")
def cells() -> dict[str, str]:
    """Sources of the code cells that students get with ex-two-hops, by id, but the installation."""
    (made,) = source_notebooks(["ex-two-hops"], name="lab", course="A course", seed=1).values()
    release = release_notebook(made)
    code = [cell for cell in release.cells if cell.cell_type == "code" and cell.id != "install"]
    return {cell.id: cell.source for cell in code}


def run(cells: dict[str, str], *, stop: str, yours: str = "") -> dict[str, Any]:
    """The names after the cells up to `stop`, for a student, with this answer if there is one."""
    names: dict[str, Any] = {}
    for cell_id, source in cells.items():
        text = yours if yours and cell_id == "ex-two-hops-yours" else source
        exec(text, names)
        if cell_id == "student":
            names["STUDENT"] = "ada"
        if cell_id == stop:
            break
    return names


def test_moved_copied_and_pasted_the_state_is_the_answer(
    show: Callable[..., Any], cells: dict[str, str]
) -> None:
    stub = cells["ex-two-hops-yours"]
    assert stub.count(PASTE) == 1
    start = run(cells, stop="ex-two-hops-yours")["lab"]
    assert isinstance(start, SparseLab)
    with pytest.raises(CheckFailed, match="Goal not met"):
        run(cells, stop="ex-two-hops-checks")

    page = show(start)
    lab = page.locator(".tfviz-explorer")
    lookback = start.left.values["lookback"] - 1
    lab.locator("input[data-key='left-0-lookback']").fill(str(lookback))
    lab.locator("label", has_text="A, B, …").first.click()
    page.evaluate(CLIPBOARD)
    lab.get_by_role("button", name="copy Python").click()
    page.wait_for_function("() => window.copied !== undefined")
    pasted = page.evaluate("() => window.copied")
    answer = stub.replace(PASTE, f"{PASTE}\n{pasted}")
    names = run(cells, stop="ex-two-hops-checks", yours=answer)
    assert names["lab"].stack == "AB" and names["lab"] is not start
