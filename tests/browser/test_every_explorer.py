"""What every explorer keeps, in a real browser: the library's numbers, links, refusals, limits.

All its tests share one visit to an explorer, in a page on which all stand one after the other. An
explorer's own tests hold only what is special about it.
"""

from __future__ import annotations

import ast
import itertools
import math
import random
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from browser.explorer_geometry import misplaced, unpainted
from browser.explorer_laws import violations
from browser.explorer_site import served, write_site
from browser.host_styles import in_a_hostile_page

from tfviz.explorers import ALL, Explorer
from tfviz.explorers.knobs import Knob

RESTS_ON = (
    "tfviz/explorers/kit/**",
    "tfviz/explorers/*.py",
    "tests/browser/**",
    "tests/*.py",
)

KINDS = [n for n, kind in ALL.items() if kind.numbers is not Explorer.numbers]
# one with several views has an example of each, "name:view"
NAMES = [f"{n}:{view}".rstrip(":") for n in KINDS for view in ALL[n].examples]
STATES = 6
MOVED: set[tuple[str, str]] = set()  # controls that were moved, with their explorers
WORK = 0.2  # seconds of processor time that a step may take
SLOWEST = 5  # so many steps are measured

LINK = "(host) => host.tfviz.hash()"
SHOW = """(host, state) => {
  host.dispatchEvent(new CustomEvent("tfviz:show", { detail: state }));
  host.tfviz.paint();
}"""
# each state after the one before it: what is drawn or said that is no number, and how long it took
TOUR = """(host, states) => {
  const show = (state) => {
    host.dispatchEvent(new CustomEvent("tfviz:show", { detail: state }));
    host.tfviz.paint();
  };
  const all = (x) => (x instanceof Array ? x.every(all) : Number.isFinite(x));
  return states.map((state) => {
    const begun = performance.now();
    show(state);
    const took = performance.now() - begun;
    const wrong = Object.entries(host.tfviz.numbers()).filter(([, x]) => !all(x));
    const drawn = host.querySelector(".tfx").outerHTML.match(/NaN|Infinity|undefined/);
    return { took, wrong: [...wrong.map(([name]) => name), ...(drawn ?? [])] };
  });
}"""
# whether the picture, changed step by step, is the one that is made anew; a frame later, when what
# the new state has made wider or narrower is drawn for its width
ANEW = """async (host) => {
  await new Promise(requestAnimationFrame);
  const all = [...host.querySelectorAll(".tfx-axes, .tfx-marks")];
  const layers = all.filter((layer) => layer.closest("svg").checkVisibility());
  const changed = layers.map((layer) => layer.cloneNode(true));
  for (const layer of layers) layer.replaceChildren();
  host.tfviz.paint();
  return changed.every((layer, n) => layer.isEqualNode(layers[n]));
}"""
# what it says of each state that is out of bounds, and the numbers that it goes back to
REFUSED = """(host, states) => states.map((state) => {
  host.dispatchEvent(new CustomEvent("tfviz:show", { detail: state }));
  host.tfviz.paint();
  return [host.querySelector(".tfx-said").textContent, host.tfviz.numbers()];
})"""

# when two frames have passed: how wide the page is, how high the explorer, its room, its targets
FITS = """async ([host, theme]) => {
  document.documentElement.dataset.theme = theme;
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (let n = 0; n < 3; n++) await frame();
  const body = host.querySelector(".tfviz-explorer-body");
  const targets = [...host.querySelectorAll(".tfx-button, select")];
  const cut = (node) => node.clientWidth && node.scrollWidth > node.clientWidth + 1;
  return {
    wide: document.documentElement.scrollWidth,
    cut: [...host.querySelectorAll(".tfx-segments")].filter(cut).map((node) => node.textContent),
    high: host.querySelector(".tfx").getBoundingClientRect().height,
    kept: parseFloat(getComputedStyle(body).minHeight),
    targets: targets.filter((node) => node.checkVisibility()).map((node) => node.offsetHeight),
  };
}"""


def example(name: str, /, **others: Any) -> Explorer:
    kind, _, view = name.partition(":")
    return ALL[kind].example(view, **others)


@pytest.fixture(scope="module")
def one(name: str) -> Explorer:
    return example(name)


@pytest.fixture(scope="module")
def stage(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page in a context of its own, and the folder that is served to it with its address."""
    folder: Path = tmp_path_factory.mktemp("explorers")
    page = browser.new_page()
    with served(folder) as url:
        yield page, folder, url
    page.close()


@pytest.fixture(scope="module")
def page(stage: Any, one: Explorer) -> Iterator[Any]:
    """The page on which this explorer stands, at rest, as a reader finds it."""
    page, folder, url = stage
    found: list[str] = []

    def failed(error: Any) -> None:
        found.append(str(error))

    page.emulate_media(media="null", reduced_motion="null")
    page.set_viewport_size({"width": 1280, "height": 900})
    write_site(folder, one.html())
    page.on("pageerror", failed)
    page.goto(f"{url}index.html")
    page.locator(".tfviz-explorer[data-ready]").wait_for()
    yield page
    page.remove_listener("pageerror", failed)
    assert not found, found


@pytest.fixture
def host(page: Any) -> Any:
    """The explorer with no question open, as a reader has it who wants to be shown."""
    while page.get_by_role("button", name="just show me").count():
        page.get_by_role("button", name="just show me").first.click()
    return page.locator(".tfviz-explorer")


def numbers(host: Any) -> Any:
    return host.evaluate("(host) => host.tfviz.numbers()")


def show(host: Any, state: dict[str, Any]) -> None:
    host.evaluate(SHOW, state)


def knobs_of(kind: type[Explorer]) -> dict[str, Knob]:
    return {name: knob for name, knob in kind.moved.items() if isinstance(knob, Knob)}


class Beside:
    """An explorer with some of its knobs at other places."""

    def __init__(self, name: str, one: Explorer, state: dict[str, Any]) -> None:
        self.name, self.one, self.state = name, one, state

    def __getattr__(self, name: str) -> Any:
        if name in self.state:
            return self.state[name]
        if isinstance(getattr(type(self.one), name, None), property | cached_property):
            return getattr(example(self.name, **self.state), name)  # it follows from the knobs
        return getattr(self.one, name)


def drawn(pick: random.Random, one: Explorer, of: str) -> dict[str, Any]:
    """A state of its knobs; an end that is another knob is that of this state."""
    state: dict[str, Any] = {}
    for name, knob in knobs_of(type(one)).items():
        state[name] = pick.choice(knob.values(Beside(of, one, state)))
    return state


def pasted(text: str) -> Any:
    """What the last line of this Python is."""
    names: dict[str, Any] = {kind.__name__: kind for kind in ALL.values()}
    *lines, last = ast.parse(text).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(lines, []), "pasted", "exec"), names)
    return eval(compile(ast.Expression(last.value), "pasted", "eval"), names)


def same(found: Any, right: Any) -> None:
    assert found.keys() == right.keys()
    for name, value in right.items():
        flat, wanted = flattened(found[name]), flattened(value)
        assert len(flat) == len(wanted), name
        assert all(math.isfinite(x) for x in flat + wanted), f"{name} is not finite"
        assert flat == pytest.approx(wanted, rel=1e-5, abs=1e-9), name


def flattened(x: Any) -> list[float]:
    return [x] if not isinstance(x, list | tuple) else [y for part in x for y in flattened(part)]


every = pytest.mark.parametrize("name", NAMES, scope="module")  # one page after the other


@every
def test_its_first_state_teaches_and_its_answer_is_shown(page: Any, name: str) -> None:
    """One solved case, one hidden thing; the answer is a state, and nothing jumps."""
    assert not violations(page)


@every
def test_it_fits_a_phone_and_a_desk(host: Any, one: Explorer, name: str) -> None:
    """In both themes: nothing wider than the page, cut or higher than its room; large targets."""
    page, too_high = host.page, []
    for width, theme in itertools.product((1280, 390), ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(FITS, [host.element_handle(), theme])
        assert found["wide"] <= width
        assert not found["cut"], f"at {width}, choices that are cut off: {found['cut']}"
        if found["high"] > found["kept"] + 1:
            too_high.append(f"at {width} in {theme}: {found['high']} high, {found['kept']} kept")
        assert width > 390 or all(height >= 40 for height in found["targets"])
    assert not too_high


@every
def test_a_style_sheet_around_it_changes_nothing(host: Any, name: str) -> None:
    """JupyterLab, Colab and VS Code have styles for tags, of which explorers are made, too."""
    assert not in_a_hostile_page(host)


@every
def test_random_states_give_the_librarys_numbers(host: Any, one: Explorer, name: str) -> None:
    pick = random.Random(name)
    with unpainted(host.page):
        for _ in range(STATES):
            state = drawn(pick, one, name)
            show(host, state)
            right = example(name, **state)
            same(numbers(host), right.numbers())
            assert host.evaluate(ANEW), f"the picture of {state}"


@every
def test_copied_python_and_the_link_bring_it_back(host: Any, one: Explorer, name: str) -> None:
    pick = random.Random(f"{name} again")
    state = drawn(pick, one, name)
    show(host, state)
    python = host.evaluate("(host) => host.tfviz.python()")
    again = pasted(python)
    shown = example(name, **state)
    assert {n: getattr(again, n) for n in again.moved} == {n: getattr(shown, n) for n in one.moved}
    before, link = numbers(host), host.evaluate(LINK)
    show(host, {})
    assert host.evaluate(LINK) != link
    # so that the link is a new one
    host.page.evaluate("history.replaceState(null, '', location.pathname)")
    host.page.evaluate("(link) => { location.hash = link; }", link)
    there = f"([host, link]) => ({LINK})(host) === link"
    host.page.wait_for_function(there, arg=[host.element_handle(), link])
    same(numbers(host), before)


@every
def test_what_is_out_of_bounds_is_refused_by_name(host: Any, one: Explorer, name: str) -> None:
    states: list[dict[str, Any]] = []
    for key, knob in knobs_of(type(one)).items():
        values = knob.values(one)
        wrong: list[Any] = ["no such"]
        if knob.kind in (int, float):  # the ends may be further out than where its slider stops
            ends = zip((knob.low, knob.high), (values[0], values[-1]), strict=True)
            low, high = sorted(x if isinstance(x, int | float) else y for x, y in ends)
            wrong = [low - 1, high + 1]
        for value in wrong:
            with pytest.raises(ValueError, match=f"{key} = "):
                example(name, **{key: value})
            states.append({key: value})
    right = one.numbers()
    for state, (said, shown) in zip(states, host.evaluate(REFUSED, states), strict=True):
        [(key, value)] = state.items()
        if type(value) is not str or knobs_of(type(one))[key].kind is str:
            assert f"{key} = " in said
        same(shown, right)


@every
def test_every_control_at_both_ends_alone_and_in_pairs(host: Any, one: Explorer, name: str) -> None:
    """No step hangs the page, or takes longer than WORK, or shows what is no number."""
    ends = {
        n: [values[0], values[-1]] if knob.kind in (int, float) else values
        for n, knob in knobs_of(type(one)).items()
        for values in [knob.values(one)]
    }
    states: list[dict[str, Any]] = [{n: v} for n, values in ends.items() for v in values]
    for a, b in itertools.combinations(ends, 2):
        states += [{a: x, b: y} for x in ends[a] for y in ends[b]]
    found = host.evaluate(TOUR, states)
    for state, shown in zip(states, found, strict=True):
        assert not shown["wrong"], (state, shown["wrong"])
    tools = host.page.context.new_cdp_session(host.page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:  # seconds of processor time of the page's main thread
        metrics = tools.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))

    # the clock says which may be the slowest, processor time how slow they are
    slowest = sorted(range(len(states)), key=lambda k: -found[k]["took"])[:SLOWEST]
    for state in (states[k] for k in slowest):
        show(host, {})
        before = spent()
        show(host, state)
        assert spent() - before < WORK, state
    tools.detach()


@every
def test_its_controls_move_it(host: Any, one: Explorer, name: str) -> None:
    """Each slider goes to both ends by key, each box and menu to each value; folds are opened."""
    host.evaluate(
        "(node) => node.querySelectorAll('details').forEach((fold) => (fold.open = true))"
    )
    for key, knob in knobs_of(type(one)).items():
        show(host, {})
        control = host.locator(f'[data-key="{key}"]')
        if ":" in name and not (control.count() and control.locator("..").first.is_visible()):
            continue  # of another view
        assert control.count(), f"{key} has no control"
        MOVED.add((name.split(":")[0], key))
        for value in (knob.values(one)[-1], knob.values(one)[0]):
            if control.first.evaluate("(node) => node.tagName") == "SELECT":
                control.select_option(str(value))
            elif knob.kind is bool:
                control.set_checked(value)
            elif knob.kind is str or control.count() > 1:
                control.and_(host.locator(f'[id$="-{value}"]')).dispatch_event("click")
            else:
                control.press("End" if value == knob.values(one)[-1] else "Home")
            model, last = host.evaluate(
                """(host, key) => {
                  host.tfviz.paint();
                  return [host.tfvizModel.get(key), host.querySelector(`[data-key='${key}']`).max];
                }""",
                key,
            )
            assert model == value or (last and model == float(last))


@every
def test_every_drawing_is_in_its_place(page: Any, name: str) -> None:
    """In every state: on a phone, on a desk, on fine screens and on paper, each control moved."""
    assert not misplaced(page)


@pytest.mark.parametrize("view", sorted({x.split(":")[0] for x in NAMES if ":" in x}))
def test_every_control_is_moved_in_some_view(view: str) -> None:
    """What the test above passed over in one view it has moved in another."""
    if not any(n == view for n, _ in MOVED):
        pytest.skip("rests on the test above")
    assert {key for n, key in MOVED if n == view} == set(knobs_of(ALL[view]))


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/explorers/basics/block_costs.js": [
        (
            "costs of the page counted otherwise (JavaScript)",
            "scores: 4 * L * L * d",
            "scores: 2 * L * L * d",
            "random and block_costs",
        ),
    ],
}
