"""What every explorer keeps, in a real browser: the library's numbers, links, refusals, limits.

All explorers that say their numbers stand on one page. An explorer's own tests hold only what is
special about it.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.explorer_site import served, write_site
from explorer_examples import EXAMPLES

from tfviz.explorers import ALL, Explorer
from tfviz.explorers.knobs import Knob

ROOT = Path(__file__).parents[2]
KINDS = [n for n, kind in ALL.items() if kind.numbers is not Explorer.numbers]
# one with several views has an example of each, "name:view"
NAMES = [x for n in KINDS for x in [k for k in EXAMPLES if k.split(":")[0] == n] or [n]]
STATES = 6
MOVED: set[tuple[str, str]] = set()  # controls that were moved, with their explorers
WORK = 0.2  # seconds of processor time that a step may take

READ = "(n) => document.querySelectorAll('.tfviz-explorer')[n].tfviz.numbers()"
SHOW = """([n, state]) => {
  const host = document.querySelectorAll(".tfviz-explorer")[n];
  host.dispatchEvent(new CustomEvent("tfviz:show", { detail: state }));
  host.tfviz.paint();
}"""


@pytest.fixture(scope="module")
def made() -> dict[str, Explorer]:
    return {name: ALL[name.split(":")[0]](**EXAMPLES.get(name, {})) for name in NAMES}


@pytest.fixture(scope="module")
def site(
    browser: Any, made: dict[str, Explorer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """The page with all of them, at rest and with every question passed over."""
    folder = tmp_path_factory.mktemp("every")
    write_site(folder, *(explorer.html() for explorer in made.values()))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    with served(folder) as url:
        page.goto(f"{url}index.html")
        for host in page.locator(".tfviz-explorer").all():
            host.scroll_into_view_if_needed()
            host.and_(page.locator("[data-ready]")).wait_for()
        yield page
    page.close()
    assert not found, found


@pytest.fixture
def calm(site: Any) -> Any:
    """The page with no question open, as a reader has it who wants to be shown."""
    while site.get_by_role("button", name="just show me").count():
        site.get_by_role("button", name="just show me").first.click()
    return site


def knobs_of(kind: type[Explorer]) -> dict[str, Knob]:
    return {name: knob for name, knob in kind.moved.items() if isinstance(knob, Knob)}


def same(found: Any, right: Any) -> None:
    assert found.keys() == right.keys()
    for name, value in right.items():
        flat, wanted = flattened(found[name]), flattened(value)
        assert len(flat) == len(wanted), name
        assert all(math.isfinite(x) for x in flat + wanted), f"{name} is not finite"
        assert flat == pytest.approx(wanted, rel=1e-5, abs=1e-9), name


def flattened(x: Any) -> list[float]:
    return [x] if not isinstance(x, list | tuple) else [y for part in x for y in flattened(part)]


every = pytest.mark.parametrize("name", NAMES)


@every
def test_random_states_give_the_librarys_numbers(
    calm: Any, made: dict[str, Explorer], name: str
) -> None:
    place, one = list(made).index(name), made[name]
    pick = random.Random(name)
    for _ in range(STATES):
        state = {n: pick.choice(knob.values(one)) for n, knob in knobs_of(type(one)).items()}
        calm.evaluate(SHOW, [place, state])
        right = type(one)(**EXAMPLES.get(name, {}) | state)
        same(calm.evaluate(READ, place), right.numbers())


@every
def test_copied_python_and_the_link_bring_it_back(
    calm: Any, made: dict[str, Explorer], name: str
) -> None:
    place, one = list(made).index(name), made[name]
    pick = random.Random(f"{name} again")
    state = {n: pick.choice(knob.values(one)) for n, knob in knobs_of(type(one)).items()}
    calm.evaluate(SHOW, [place, state])
    host = f"document.querySelectorAll('.tfviz-explorer')[{place}].tfviz"
    again = eval(calm.evaluate(f"{host}.python()"), {kind.__name__: kind for kind in ALL.values()})
    shown = type(one)(**EXAMPLES.get(name, {}) | state)
    assert {n: getattr(again, n) for n in again.moved} == {n: getattr(shown, n) for n in one.moved}
    before, link = calm.evaluate(READ, place), calm.evaluate(f"{host}.hash()")
    calm.evaluate(SHOW, [place, {}])
    assert calm.evaluate(f"{host}.hash()") != link
    calm.evaluate("history.replaceState(null, '', location.pathname)")  # that it is a new one
    calm.evaluate("(hash) => { location.hash = hash; }", link)
    calm.wait_for_function(f"(link) => {host}.hash() === link", arg=link)
    same(calm.evaluate(READ, place), before)


@every
def test_what_is_out_of_bounds_is_refused_by_name(
    calm: Any, made: dict[str, Explorer], name: str
) -> None:
    place, one = list(made).index(name), made[name]
    said = calm.locator(".tfviz-explorer").nth(place).locator(".tfx-said")
    for key, knob in knobs_of(type(one)).items():
        values = knob.values(one)
        wrong: list[Any] = ["no such"]
        if knob.kind in (int, float):  # the ends may be further out than where its slider stops
            ends = zip((knob.low, knob.high), (values[0], values[-1]), strict=True)
            low, high = sorted(x if isinstance(x, int | float) else y for x, y in ends)
            wrong = [low - 1, high + 1]
        for value in wrong:
            with pytest.raises(ValueError, match=f"{key} = "):
                type(one)(**EXAMPLES.get(name, {}) | {key: value})
            calm.evaluate(SHOW, [place, {key: value}])
            if type(value) is not str or knob.kind is str:
                assert f"{key} = " in said.inner_text()
            same(calm.evaluate(READ, place), one.numbers())


@every
def test_every_control_at_both_ends_alone_and_in_pairs(
    calm: Any, made: dict[str, Explorer], name: str
) -> None:
    """No step hangs the page, or takes longer than WORK, or shows what is no number."""
    place, one = list(made).index(name), made[name]
    ends = {
        n: [values[0], values[-1]] if knob.kind in (int, float) else values
        for n, knob in knobs_of(type(one)).items()
        for values in [knob.values(one)]
    }
    states: list[dict[str, Any]] = [{n: v} for n, values in ends.items() for v in values]
    for a, b in itertools.combinations(ends, 2):
        states += [{a: x, b: y} for x in ends[a] for y in ends[b]]
    tools = calm.context.new_cdp_session(calm)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:  # seconds of processor time of the page's main thread
        metrics = tools.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))

    shown = calm.locator(".tfviz-explorer").nth(place)
    for state in states:
        took = []
        for _ in range(2):  # twice only if the first is slow: code may not be compiled yet
            calm.evaluate(SHOW, [place, {}])
            before = spent()
            calm.evaluate(SHOW, [place, state])
            took.append(spent() - before)
            if took[-1] < WORK:
                break
        assert min(took) < WORK, f"{state}: {min(took):.2f} s"
        for value in calm.evaluate(READ, place).values():
            assert all(isinstance(x, int | float) and math.isfinite(x) for x in flattened(value))
        drawn = shown.evaluate("(node) => node.querySelector('.tfx').outerHTML")
        assert not re.search(r"NaN|Infinity|undefined", drawn), state
    tools.detach()


@every
def test_its_controls_move_it(calm: Any, made: dict[str, Explorer], name: str) -> None:
    """Each slider goes to both ends by key, each box and menu to each value."""
    place, one = list(made).index(name), made[name]
    host = calm.locator(".tfviz-explorer").nth(place)
    for key, knob in knobs_of(type(one)).items():
        calm.evaluate(SHOW, [place, {}])
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
            calm.evaluate(f"document.querySelectorAll('.tfviz-explorer')[{place}].tfviz.paint()")
            model = host.evaluate("(node, key) => node.tfvizModel.get(key)", key)
            last = host.evaluate(
                "(node, key) => node.querySelector(`[data-key='${key}']`).max", key
            )
            assert model == value or (last and model == float(last))


@pytest.mark.parametrize("name", sorted({x.split(":")[0] for x in NAMES if ":" in x}))
def test_every_control_is_moved_in_some_view(name: str) -> None:
    """What the test above passed over in one view it has moved in another."""
    if not any(n == name for n, _ in MOVED):
        pytest.skip("rests on the test above")
    assert {key for n, key in MOVED if n == name} == set(knobs_of(ALL[name]))


def test_all_fit_a_phone_and_a_desk(calm: Any, made: dict[str, Explorer]) -> None:
    """In both themes: nothing wider than the page, nothing higher than its room; large targets."""
    too_high = []
    for width, theme in itertools.product((1280, 390), ("light", "dark")):
        calm.set_viewport_size({"width": width, "height": 900})
        calm.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        calm.evaluate("() => new Promise((done) => setTimeout(done, 100))")
        assert calm.evaluate("document.documentElement.scrollWidth") <= width
        for name, host in zip(made, calm.locator(".tfviz-explorer").all(), strict=True):
            inner, _outer = (x.bounding_box()["height"] for x in (host.locator(".tfx"), host))
            kept = host.locator(".tfviz-explorer-body").evaluate(
                "(node) => parseFloat(getComputedStyle(node).minHeight)"
            )
            if inner > kept + 1:
                too_high.append(f"{name} at {width} in {theme}: {inner} high, {kept} kept")
            if width == 390:
                buttons = host.locator(".tfx-button:visible, select:visible").all()
                assert all(b.bounding_box()["height"] >= 40 for b in buttons), name
    calm.set_viewport_size({"width": 1280, "height": 900})
    assert not too_high


def test_the_guides_explorer_is_small() -> None:
    most = {"tfviz/explorers/first_look.py": 40, "first_look.js": 80}
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for name, lines in most.items():
        assert f"`{name}`" in guide
        text = (ROOT / "tfviz/explorers" / Path(name).name).read_text("utf-8")
        assert len(text.splitlines()) <= lines
