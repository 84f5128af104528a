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
from browser.explorer_laws import AT_REST, violations
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
# of singular values that are nearly equal, rounding decides which directions come first
ILL_POSED = {"beside": 1e-7}
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
    const root = host.querySelector(".tfx");
    const drawn = root.outerHTML.match(/NaN|Infinity|undefined/);
    const high = root.getBoundingClientRect().height;
    return { took, high, wrong: [...wrong.map(([name]) => name), ...(drawn ?? [])] };
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

# a window in which an explorer is as wide as the book's page makes it at 1280 × 800, and the pixels
# that are left of that screen under the page's own bar
SCREEN, SEEN = {"width": 930, "height": 800}, 720
PHONE = {"width": 390, "height": 844}
# those that are higher, each with its reason
HIGHER = {
    "your_own_mask": (890, "a page of its own: what is typed, how it is read, and its Python"),
    "story_model": (960, "a page of its own, as wide as the screen, where it is less high"),
    "pattern_search": (870, "its table writes out every pattern that no other one beats"),
}
PICTURES = 0.4  # of the explorer, at least, in a window like that
# in a wide window: the share of the pictures' column
SHARE = """(host) => {
  const area = (node) => node.offsetWidth * node.offsetHeight;
  return area(host.querySelector(".tfx-picture")) / area(host.querySelector(".tfx"));
}"""
# all letters with their size in pixels that are smaller than so many, in or beside cells than so
# many, and neither lowered nor raised
LETTERS = """(host, [least, leastInCells]) => {
  const own = (node) => [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
  return [...host.querySelectorAll(".tfx *")].flatMap((node) => {
    if (!own(node) || node.closest("sub, sup, .sub, .sup") || !node.checkVisibility()) return [];
    const size = parseFloat(getComputedStyle(node).fontSize);
    const wanted = node.closest(".tfx-grid svg") ? leastInCells : least;
    return size < wanted ? [`${node.textContent}: ${size} px`] : [];
  });
}"""
# explorers whose cells are too small for such letters in them or beside them, with the sizes on a
# desk and on a phone
SMALLER = {
    "csalr_matrices": (10.5, 11.5),  # a letter of the text at each of 32 rows and columns
    "low_rank_map": (10.5, 12),
    "hard_coded_heads": (10.5, 12),
    "probsparse_queries": (10.5, 12),
    "layer_recurrence": (11.5, 12),  # positions that are copied, such as 0→4, above narrow columns
    "lsh_buckets": (11.5, 12),  # the bucket of each of 16 tokens, beside its row
    "scores_through_layers": (12, 9.5),  # two tables of 36 scores side by side on a phone
}
# a scene is no higher, by the width of the window
SCENE = {1280: 480, 390: 420}
# on a phone: from the top of the picture that stays in view to the end of the first control, or of
# the sentence below a scene
REACH = """(host) => {
  const lead = host.querySelector("[data-lead]");
  const inputs = [...host.querySelectorAll(".tfx-controls :is(input, select, button)")];
  const control = inputs.find((node) => node.checkVisibility({ opacityProperty: true }));
  const first = control ?? host.querySelector(".tfx-scene .tfx-status");
  return first.getBoundingClientRect().bottom - lead.getBoundingClientRect().top;
}"""
# when two frames have passed: how wide the page is, how high the explorer, its room, its targets
FITS = """async ([host, theme]) => {
  document.documentElement.dataset.theme = theme;
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (let n = 0; n < 3; n++) await frame();
  const body = host.querySelector(".tfviz-explorer-body");
  const kinds = "button, select, summary, input[type=range], .tfx-answers input, .tfx-check label";
  const targets = [...host.querySelectorAll(`${kinds}, .tfx-segments label`)].filter((node) =>
    node.checkVisibility(),
  );
  const cut = (node) => node.clientWidth && node.scrollWidth > node.clientWidth + 1;
  return {
    wide: document.documentElement.scrollWidth,
    cut: [...host.querySelectorAll(".tfx-segments")].filter(cut).map((node) => node.textContent),
    high: host.querySelector(".tfx").getBoundingClientRect().height,
    kept: parseFloat(getComputedStyle(body).minHeight),
    targets: targets.map((node) => [node.textContent || node.type, node.offsetHeight]),
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
    return answered(page)


def answered(page: Any) -> Any:
    while page.get_by_role("button", name="just show me").count():
        page.get_by_role("button", name="just show me").first.click()
    return page.locator(".tfviz-explorer")


def letters(host: Any, name: str) -> list[str]:
    """The letters of an explorer that are too small in this window."""
    desk, phone = SMALLER.get(name.partition(":")[0], (12, 12))
    narrow = host.page.viewport_size["width"] == PHONE["width"]
    found: list[str] = host.evaluate(LETTERS, [12, phone if narrow else desk])
    return found


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
        assert flat == pytest.approx(wanted, rel=1e-5, abs=ILL_POSED.get(name, 1e-9)), name


def flattened(x: Any) -> list[float]:
    return [x] if not isinstance(x, list | tuple) else [y for part in x for y in flattened(part)]


every = pytest.mark.parametrize("name", NAMES, scope="module")  # one page after the other


@every
def test_its_first_state_teaches_and_its_answer_is_shown(page: Any, name: str) -> None:
    """One solved case, one hidden thing; the answer is a state, and nothing jumps."""
    assert not violations(page)


@every
def test_it_fits_a_phone_and_a_desk(host: Any, one: Explorer, name: str) -> None:
    """In both themes: nothing wider than the page, cut or higher than its room; large targets; no
    small letters before anything is touched."""
    page, too_high, small_letters = host.page, [], []
    for width, theme in itertools.product((1280, 390), ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()  # as it is there from the start
        page.locator(".tfviz-explorer[data-ready]").wait_for()
        page.evaluate(AT_REST)
        if theme == "light":
            small_letters += letters(page.locator(".tfviz-explorer"), name)
        found = page.evaluate(FITS, [answered(page).element_handle(), theme])
        assert found["wide"] <= width
        assert not found["cut"], f"at {width}, choices that are cut off: {found['cut']}"
        if found["high"] > found["kept"] + 1:
            too_high.append(f"at {width} in {theme}: {found['high']} high, {found['kept']} kept")
        assert not one.scene or found["high"] <= SCENE[width]
        assert width > 390 or not [what for what, high in found["targets"] if high < 44]
    assert not too_high
    assert not small_letters


@every
def test_it_is_seen_at_once(host: Any, name: str) -> None:
    """On a laptop the pictures have the room and no letter is small; on a phone the picture that
    stays in view and its first control are on one screen."""
    page = host.page
    page.set_viewport_size(SCREEN)
    page.evaluate(AT_REST)
    assert host.evaluate(SHARE) >= PICTURES or name == "your_own_mask"
    assert not letters(host, name)
    page.set_viewport_size(PHONE)
    page.evaluate(AT_REST)
    assert not letters(host, name)
    assert host.evaluate(REACH) <= PHONE["height"]


@pytest.mark.parametrize("name", [n for n, x in ALL.items() if x.scene], scope="module")
def test_a_scene_has_one_handle_and_one_sentence(host: Any, one: Explorer, name: str) -> None:
    """No question, prompt, control, button or readout."""
    assert not one.prompt and len(one.moved) == 1
    assert host.locator(".tfx-handle").count() == 1
    said = ":is(.tfx-status, .tfx-prompt, .tfx-ask, .tfx-readout):visible"
    assert host.locator(said).count() == 1
    assert not host.locator("button, input, select").count()


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
    while all(value == getattr(one, knob) for knob, value in state.items()):
        state = drawn(pick, one, name)  # where it begins, its link says nothing
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
    """No step hangs the page, or takes longer than WORK, or shows what is no number, or makes the
    explorer higher than what is seen of it."""
    host.page.set_viewport_size(SCREEN)
    host.page.evaluate(AT_REST)
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
        assert shown["high"] <= HIGHER.get(name, (SEEN,))[0] + 1, state
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
    """Each slider, or the handle of a scene, goes to both ends by key, each box and menu to each
    value; folds are opened. On a phone, which has all controls."""
    host.page.set_viewport_size({"width": 390, "height": 900})
    host.evaluate(
        "(node) => node.querySelectorAll('details').forEach((fold) => (fold.open = true))"
    )
    for key, knob in knobs_of(type(one)).items():
        show(host, {})
        found = f'[data-name="{key}"]' if one.scene else f'[data-key="{key}"]'
        control = host.locator(found)
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
                """(host, [key, found]) => {
                  host.tfviz.paint();
                  return [host.tfvizModel.get(key), host.querySelector(found).max];
                }""",
                [key, found],
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
