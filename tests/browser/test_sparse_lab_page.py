"""The Sparse Lab as a reader meets it: pointer, keys, links, copies, themes, a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from browser.explorer_laws import AT_REST, ROOM
from browser.explorer_site import drag

from tfviz import patterns as P
from tfviz.explorers import SparseLab

RESTS_ON = (
    "tfviz/explorers/sparse/**",
    "tests/browser/**",
    "tests/*.py",
)

Show = Callable[..., Any]


def state(page: Any, n: int = 0) -> dict[str, Any]:
    host = page.locator(".tfviz-explorer").nth(n)
    values: dict[str, Any] = host.evaluate("(host) => host.tfvizModel.state")
    return values


def settled(page: Any) -> None:
    page.evaluate(AT_REST)


def status(page: Any, n: int = 0) -> str:
    settled(page)
    text: str = page.locator(".tfx-status").nth(n).inner_text()
    return text


def readout(page: Any, label: str) -> str:
    row = page.locator(".tfx-readout", has=page.locator(f"dt:text-is('{label}')"))
    text: str = row.locator("dd").inner_text()
    return text


def key(page: Any, name: str, n: int = 0) -> Any:
    return page.locator(".tfviz-explorer").nth(n).locator(f"input[data-key='{name}']")


def button(page: Any, text: str, n: int = 0) -> Any:
    return page.locator(".tfviz-explorer").nth(n).locator(f".tfx-footer button:text-is('{text}')")


def copied(page: Any, text: str, n: int = 0) -> str:
    page.evaluate(
        "() => { Object.defineProperty(navigator, 'clipboard', { configurable: true,"
        " value: { writeText: async (text) => { window.copied = text; } } }); }"
    )
    button(page, text, n).click()
    page.wait_for_function("() => window.copied !== undefined")
    value: str = page.evaluate(
        "() => { const text = window.copied; delete window.copied; return text; }"
    )
    return value


@pytest.mark.parametrize("offline", [False, True], ids=["http", "file"])
def test_first_state_teaches(show: Show, offline: bool) -> None:
    lab = SparseLab()
    page = show(lab, offline=offline)
    keys = lab.pattern.key_sets(64)[42]
    assert f"query 42 attends to keys 2, 10, 18, 26 and 34 to 42; {len(keys)} of 64" in status(page)
    reach = P.reach(lab.stacked, 64)
    two = P.reach(lab.stacked, 64, 2).by_layer[-1][42].sum()
    assert readout(page, "query hears of") == f"{two} of 43 tokens"
    assert readout(page, "hops to the token") == str(int(reach.hops[42, 0]))
    assert readout(page, "diameter") == f"{reach.diameter} hops"
    assert readout(page, "never connected") == f"{reach.unreachable} pairs"
    share = float(P.influence(lab.stacked, 64, 2)[42, 0])
    assert readout(page, "influence of the token") == f"{share:.2g}"
    cost = lab.pattern.cost(64, d=64, h=1, block=16)
    page.locator("label", has_text="cost").click()
    settled(page)
    cells = page.locator(".sl-cost tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    table = {head: [text.replace("\u202f", "") for text in rest] for head, *rest in cells}
    percent = f"{100 * cost.pairs / 64**2:.3g} %"
    size = f"{cost.bytes / 1024:.3g} KiB"
    assert table["A"] == [str(cost.pairs), percent, "", f"{cost.flops / 1000:.3g} k", size]
    assert table["A, blocks"][0] == str(cost.block_pairs)
    assert table["A, blocks"][2] == f"{cost.blocks} of {cost.full_blocks}"
    assert table["full"][0] == str(cost.full_pairs)


@pytest.mark.parametrize("asked", [{"hops": "A"}, {"hops": "BA"}, {"diameter": "B"}])
def test_it_is_asked_before_it_is_shown(show: Show, asked: dict[str, str]) -> None:
    """One thing is hidden, and the answer moves the layers to the state that shows it."""
    [(what, stack)] = asked.items()
    own, summary = P.own_block(block=8), P.summary_columns(block=8, summary=1)
    lab = SparseLab(own, summary, query=60, token=33, ask=asked)
    page = show(lab)
    held = stack == lab.stack
    for label in ("hops to the token", "diameter", "never connected"):
        assert (readout(page, label) == "?") == held
    assert "query 60 hears of" in status(page)  # what its layers do is drawn
    assert ("token 33" in status(page)) != held
    lab.stack = stack
    reach = P.reach(lab.stacked, 64)
    right = int(reach.hops[60, 33]) if what == "hops" else reach.diameter
    right = max(0, right or 0)
    page.locator(".tfx-answers input").fill(str(right))
    page.get_by_role("button", name="that is my answer").click()
    settled(page)
    said = page.locator(".tfx-verdict").inner_text()
    assert ("✓ You said: never" if not right else f"✓ You said: {right} layer") in said
    assert state(page)["stack"] == stack
    assert state(page)["layers"] == right or not right
    if what == "hops":
        assert readout(page, "hops to the token") == str(right or "never")
    else:
        assert readout(page, "diameter") == (f"{right} hops" if right else "not connected")


def test_the_layers_play(page: Any, show: Show) -> None:
    page.clock.install()
    show(SparseLab(layers=1), moving=True)
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 3600)
    page.get_by_role("button", name="play").click()
    page.clock.run_for(2000)
    assert state(page)["layers"] == 3
    page.get_by_role("button", name="down").click()
    page.clock.run_for(3000)  # whoever steps has stopped it
    assert state(page)["layers"] == 2


def test_a_term_of_the_formula_lights_up_its_cells(show: Show) -> None:
    """The parts of a union; from the keyboard too, and what is left goes dark again."""
    page = show(SparseLab(P.band(radius=2) | P.global_tokens(count=3), L=16, panels=[]))
    card = page.locator(".sl-card[data-side=left]")
    terms, canvas = card.locator(".tfx-term"), card.locator(".tfx-cells")
    share = """(canvas) => {
      const style = getComputedStyle(canvas.closest(".tfx"));
      const value = style.getPropertyValue("--tfx-value").trim().slice(1);
      const at = [0, 2, 4].map((k) => parseInt(value.slice(k, k + 2), 16));
      const { width, height } = canvas;
      const copy = Object.assign(document.createElement("canvas"), { width, height });
      const ctx = copy.getContext("2d", { willReadFrequently: true });
      ctx.drawImage(canvas, 0, 0);
      const { data } = ctx.getImageData(0, 0, width, height);
      let lit = 0;
      for (let k = 0; k < data.length; k += 4) lit += at.every((x, c) => data[k + c] === x);
      return lit / (width * height);
    }"""
    assert terms.count() == 2 and canvas.evaluate(share) == 0
    found = []
    for n in (0, 1):
        terms.nth(n).focus()
        settled(page)
        found.append(canvas.evaluate(share))
    parts = P.band(radius=2), P.global_tokens(count=3)
    first, second = (int(part.mask(16).sum()) for part in parts)
    assert found[0] / found[1] == pytest.approx(first / second, rel=0.15)
    terms.nth(1).evaluate("(node) => node.blur()")
    settled(page)
    assert canvas.evaluate(share) == 0


def test_a_question_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ask = \{'hops': 'C'\}; ask"):
        SparseLab(ask={"hops": "C"})


def test_the_address_follows_it(show: Show) -> None:
    page = show(SparseLab())
    key(page, "query").press("ArrowRight")
    page.wait_for_function("() => location.hash.startsWith('#sparse_lab=')")
    button(page, "reset").click()
    page.wait_for_function("() => !location.hash")


def test_on_a_phone_the_picture_stays_and_fingers_find_what_they_press(show: Show) -> None:
    page = show(SparseLab(), width=390)
    page.set_viewport_size({"width": 390, "height": 500})
    high = page.locator(".tfx button, .tfx select, .tfx-segments label").evaluate_all(
        "(nodes) => nodes.filter((n) => n.checkVisibility()).map((n) => n.offsetHeight)"
    )
    assert high and min(high) >= 40
    stride = key(page, "left-0-stride")
    stride.evaluate("(node) => scrollTo(0, node.getBoundingClientRect().bottom + scrollY - 490)")
    stage = page.locator(".sl-card[data-side=left] .sl-stage").bounding_box()
    assert stage["y"] == pytest.approx(0, abs=1)
    assert stride.bounding_box()["y"] > stage["height"]


def test_matrix_shows_the_mask(show: Show) -> None:
    """Pixels in the middle of the cells: kept pairs coloured, the query's in the key colour."""
    lab = SparseLab(P.strided(stride=5), L=24, query=20, panels=[])
    page = show(lab)
    got = page.locator(".sl-card[data-side=left] .tfx-cells").evaluate(
        """(canvas) => {
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          return [...Array(576).keys()].map((k) => {
            const y = Math.floor((Math.floor(k / 24) + 0.5) * height / 24);
            const x = Math.floor((k % 24 + 0.5) * width / 24);
            const at = 4 * (y * width + x);
            return [...data.slice(at, at + 3)].map((v) => v.toString(16).padStart(2, "0")).join("");
          });
        }"""
    )
    style = (
        "(role) => getComputedStyle(document.querySelector('.tfx')).getPropertyValue(role).trim()"
    )
    attention = page.evaluate(style, "--tfx-attention").lower()[1:]
    own = page.evaluate(style, "--tfx-key").lower()[1:]
    mask = lab.pattern.mask(24)
    for k, colour in enumerate(got):
        i, j = divmod(k, 24)
        if mask[i, j]:
            assert colour == (own if i == 20 else attention), (i, j)
        else:
            assert colour not in (own, attention), (i, j)


def test_keys_move_slider_and_query(show: Show) -> None:
    page = show(SparseLab(L=64, query=42))
    slider = key(page, "query")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert state(page)["query"] == 43
    page.keyboard.press("Home")
    assert state(page)["query"] == 0
    page.keyboard.press("End")
    assert state(page)["query"] == 63
    page.keyboard.press("PageDown")
    assert state(page)["query"] < 63
    matrix = page.locator(".sl-card[data-side=left] .tfx-grid svg")
    matrix.focus()
    page.keyboard.press("Home")
    for pressed in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(pressed)
        settled(page)
    assert (state(page)["query"], state(page)["token"]) == (2, 1)
    assert "query 2 attends to keys 0 to 2; 3 of 64" in status(page)
    assert "query 2 attends to keys 0 to 2" in matrix.get_attribute("aria-label")
    page.keyboard.press("PageDown")
    assert state(page)["query"] == 10
    page.keyboard.press("End")
    assert state(page)["query"] == 63
    key(page, "layers").focus()
    page.keyboard.press("ArrowLeft")
    settled(page)
    heard = P.reach([P.strided(stride=8)], 64, 1).by_layer[-1][63].sum()
    assert readout(page, "query hears of") == f"{heard} of 64 tokens"


def test_pointer_hovers_and_picks(show: Show) -> None:
    page = show(SparseLab(L=32, query=20, panels=["depth"]))
    matrix = page.locator(".sl-card[data-side=right] .tfx-grid svg")
    cells, box = (
        page.locator(f".sl-card[data-side=right] {x}").bounding_box()
        for x in (".tfx-cells", ".tfx-grid svg")
    )
    place = {
        "x": cells["x"] - box["x"] + cells["width"] * 3.5 / 32,
        "y": cells["y"] - box["y"] + cells["height"] * 8.5 / 32,
    }
    matrix.hover(position=place)
    assert "query 8 attends" in status(page)
    assert state(page)["query"] == 20
    matrix.click(position=place)
    assert (state(page)["query"], state(page)["token"]) == (8, 3)
    assert "path to token 3: 8 → 3" in status(page)


def test_two_factors_compose_in_one_order(show: Show) -> None:
    left, right = P.own_block(block=8), P.summary_columns(block=8, summary=1)
    page = show(SparseLab(left, right, L=32, query=27, token=2, stack="AB"))
    assert "27 → 7 → 2" in status(page)
    assert readout(page, "diameter") == f"{P.reach([left, right], 32).diameter} hops"
    page.locator("label", has_text="B, A, …").click()
    settled(page)
    assert state(page)["stack"] == "BA"
    assert "token 2 is not reached" in status(page)
    heard = P.reach([right, left], 32, 2).by_layer[-1][27].sum()
    assert readout(page, "query hears of") == f"{heard} of 28 tokens"


def test_compose_and_choose(show: Show) -> None:
    page = show(SparseLab())
    card = page.locator(".sl-card[data-side=left]")
    card.locator("select").first.select_option("band")
    settled(page)
    assert P.from_spec(state(page)["left"]) == P.band(radius=3)
    card.get_by_role("button", name="or", exact=True).click()
    settled(page)
    assert P.from_spec(state(page)["left"]) == P.band(radius=3) | P.global_tokens(count=2)
    card.locator(".sl-group select").nth(1).select_option("column")
    settled(page)
    card.locator(".tfx-choice label", has_text="and").click()
    settled(page)
    card.get_by_role("button", name="not", exact=True).nth(1).click()
    settled(page)
    pattern = P.from_spec(state(page)["left"])
    assert pattern == P.band(radius=3) & ~P.column(stride=8)
    keys = pattern.key_sets(64)[42]
    assert f"{len(keys)} of 64" in status(page)
    card.get_by_role("button", name="remove column").click()
    settled(page)
    assert P.from_spec(state(page)["left"]) == P.band(radius=3)
    key(page, "causal").click()
    assert "query 42 attends to keys 39 to 42; 4 of 64" in status(page)


def test_parameters_stay_in_range(show: Show) -> None:
    page = show(SparseLab(right=P.fixed(block=32, summary=30), L=256))
    key(page, "L").focus()
    page.keyboard.press("Home")
    settled(page)
    now = state(page)
    assert (now["L"], now["query"]) == (2, 1)
    for name in ("left", "right"):
        P.from_spec(now[name]).mask(2)
    block = page.locator(".sl-card[data-side=right] input[type=range]").first
    block.focus()
    page.keyboard.press("Home")
    settled(page)
    assert state(page)["right"]["params"] == {"block": 1, "summary": 1}


def test_permutation(show: Show) -> None:
    page = show(SparseLab(P.blockwise(permutation=(1, 2, 3, 0))))
    text = page.locator(".sl-order input")
    text.fill("0, 0, 1")
    assert text.get_attribute("aria-invalid") == "true"
    text.fill("2 0 1")
    settled(page)
    assert state(page)["left"]["params"] == {"permutation": [2, 0, 1]}
    page.locator(".sl-order button", has_text="shift").click()
    assert state(page)["left"]["params"] == {"permutation": [0, 1, 2]}


def changed_lab(page: Any, n: int = 0) -> dict[str, Any]:
    key(page, "query", n).fill("30")
    key(page, "causal", n).click()
    key(page, "layers", n).fill("3")
    key(page, "left-0-radius", n).fill("5")
    settled(page)
    return state(page, n)


def test_link_round_trip(show: Show) -> None:
    lab = SparseLab(P.dilated(radius=3, dilation=2) | P.global_tokens(count=1), L=48)
    page = show(lab)
    before = changed_lab(page)
    link = copied(page, "copy link")
    assert re.search(r"#sparse_lab=[\w-]+$", link)
    page = show(lab, hash="#" + link.split("#")[1])
    assert state(page) == before
    button(page, "reset").click()
    assert state(page)["query"] == lab.query
    assert P.from_spec(state(page)["left"]) == lab.left


@pytest.mark.parametrize("text", ["%%%", "e30", "eyJMIjoiYSJ9", "eyJsZWZ0Ijp7Im5hbWUiOiJ4In19"])
def test_bad_links_do_no_harm(page: Any, show: Show, problems: list[str], text: str) -> None:
    lab = SparseLab()
    page = show(lab, hash=f"#sparse_lab={text}")
    assert "query 42 attends" in status(page)
    assert state(page)["left"] == lab.left.spec()
    assert all("link could not be read" in p for p in problems)
    problems.clear()


def test_two_on_a_page(show: Show) -> None:
    one = SparseLab(P.band(radius=2), L=40)
    two = SparseLab(P.band(radius=3), L=48)
    page = show(one, two)
    untouched = state(page, 0)
    after = changed_lab(page, 1)
    assert state(page, 0) == untouched
    assert after["query"] == 30
    link = copied(page, "copy link", 1)
    assert "#sparse_lab-2=" in link
    page = show(one, two, hash="#" + link.split("#")[1])
    assert state(page, 0) == untouched
    assert state(page, 1) == after
    ids = page.locator("[id]").evaluate_all("(nodes) => nodes.map((node) => node.id)")
    assert len(ids) == len(set(ids))


def test_copied_python_is_the_state(show: Show) -> None:
    left = (P.strided(stride=6) & ~P.band(radius=1)) | P.random_keys(count=2, seed=3)
    right, goal = P.blockwise(permutation=(2, 0, 1)), {"max_hops": 2, "causal": True}
    lab = SparseLab(left, right, L=30, query=9, token=4, stack="BA", goal=goal, panels=["depth"])
    page = show(lab)
    key(page, "causal").click()
    key(page, "layers").fill("4")
    code = copied(page, "copy Python")
    assert "prompt=" not in code  # the class says it itself
    names: dict[str, Any] = {}
    exec(code, names)
    again = names["lab"]
    assert (again.left, again.right) == (lab.left, lab.right)
    now = state(page)
    copy = again.state
    for trait in (
        "L",
        "query",
        "token",
        "stack",
        "causal",
        "layers",
        "view",
        "block",
        "goal",
        "panels",
    ):
        assert copy[trait] == now[trait], trait
    table = P.table(left.mask(12))
    page = show(SparseLab(table, prompt='Why "é → ü"?\n\\ π'))
    exec(copied(page, "copy Python"), names)
    assert names["lab"].left == table
    assert names["lab"].prompt == 'Why "é → ü"?\n\\ π'


def test_copied_mask_mod_runs(show: Show) -> None:
    from torch.nn.attention.flex_attention import create_mask

    cases = [
        (P.strided(stride=6) & ~P.band(radius=1), P.blockwise(permutation=(2, 0, 1))),
        (
            P.fixed(block=7, summary=2),
            P.dilated(radius=2, dilation=3) | P.random_keys(count=2, seed=3),
        ),
        (P.bigbird(block=4, window=1, n_global=1, n_random=1, seed=0), P.full()),
    ]
    for left, right in cases:
        page = show(SparseLab(left, right, L=30))
        key(page, "causal").click()
        names: dict[str, Any] = {}
        exec(copied(page, "copy mask_mod"), names)
        for letter, pattern in (("a", left), ("b", right)):
            mask = create_mask(names[f"mask_mod_{letter}"], 1, 1, 30, 30, device="cpu")[0, 0]
            assert mask.equal((pattern & P.causal()).mask(30)), (letter, pattern)


def test_goal_is_judged_live(show: Show) -> None:
    goal = {"max_hops": 2, "max_keys": 9, "causal": True, "L": 64}
    lab = SparseLab(P.sliding_window(lookback=8), P.column(stride=8), goal=goal)
    page = show(lab)
    verdict, brief = page.locator(".sl-goal b"), page.locator(".tfx-footer .sl-brief")
    assert verdict.inner_text() == f"✗ {lab.goal_report().message}"
    assert brief.inner_text() == "✗ Goal not met yet"
    assert brief.get_attribute("aria-hidden") == "true"  # spoken once, above
    page.locator("label", has_text="A, B, …").first.click()
    settled(page)
    lab.stack = "AB"
    assert verdict.inner_text() == f"✓ {lab.goal_report().message}" == "✓ Goal met."
    assert brief.inner_text() == "✓ Goal met"
    key(page, "left-0-lookback").fill("9")
    settled(page)
    lab.left = P.from_spec(state(page)["left"])
    assert verdict.inner_text() == f"✗ {lab.goal_report().message}"


def test_graph_is_the_matrix(show: Show) -> None:
    """An edge for every pair, those of the query on top; its ends are dragged, or moved by keys."""
    lab = SparseLab(P.strided(stride=5), view="graph", L=24, query=20)
    page = show(lab)
    card = page.locator(".sl-card[data-side=left]")
    lines = card.locator(".tfx-mark-line path")
    edges = [lines.nth(n).get_attribute("d").count("M") for n in range(lines.count())]
    assert edges == [lab.pattern.mask(24).sum(), len(lab.pattern.key_sets(24)[20])]
    query = card.locator(".tfx-handle[data-name^=query]")
    query.press("ArrowLeft")
    assert state(page)["query"] == 19
    card.locator(".tfx-handle[data-name^=token]").press("End")
    assert state(page)["token"] == 23
    drag(query, -60)
    assert state(page)["query"] < 19


def test_what_layers_show_is_dragged(show: Show) -> None:
    page = show(SparseLab(L=32, query=20))
    cone = page.locator(".sl-depth .tfx-plane")
    cone.locator(".tfx-handle[data-name^=query]").press("ArrowLeft")
    assert state(page)["query"] == 19
    assert "query 19 attends" in status(page)
    before = cone.locator(".tfx-marks").inner_html()
    key(page, "layers").press("ArrowRight")
    settled(page)
    assert cone.locator(".tfx-marks").inner_html() != before


@pytest.mark.parametrize("width", [390, 760, 1280])
def test_fits_and_does_not_shift(page: Any, show: Show, width: int) -> None:
    page.add_init_script(
        "window.shifts = []; new PerformanceObserver((list) => {"
        " for (const entry of list.getEntries()) window.shifts.push(entry.value);"
        " }).observe({ type: 'layout-shift', buffered: true });"
    )
    page = show(SparseLab(), width=width)
    settled(page)
    assert sum(page.evaluate("() => window.shifts")) < 0.001
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    small = page.locator(".tfx button, .tfx input[type=range], .tfx select").evaluate_all(
        "(nodes) => nodes.filter((n) => n.offsetParent && n.getBoundingClientRect().height < 24)"
        ".map((n) => n.outerHTML)"
    )
    assert not small  # a finger finds them


BIG_BIRD = P.bigbird(block=4, window=1, n_global=1, n_random=1, seed=0)
BLOCKS = P.block_window(block=4, window=1) | P.random_blocks(block=4, count=1, seed=0)
GOAL = {"L": 64, "max_hops": 2, "max_pairs": 127}
RANDOM = P.band(radius=2) | P.random_keys(count=6, seed=0)


@pytest.mark.parametrize(
    "lab",
    [
        SparseLab(),
        SparseLab(BIG_BIRD, BLOCKS, layers=4, panels=["depth"], ask={"diameter": "B"}),
        SparseLab(
            RANDOM,
            P.band(radius=2),
            query=63,
            panels=["depth"],
            goal=GOAL,
            prompt="Reach every token in 2 hops.",
        ),
    ],
    ids=["two", "asked", "goal"],
)
def test_it_is_no_taller_than_a_screen(show: Show, lab: SparseLab) -> None:
    """A page 1280 pixels wide has 898 of them for it, an exercise 848; a screen is 800 high."""
    for width in (930, 880):
        page = show(lab, width=width)
        settled(page)
        high, kept = page.locator(".tfviz-explorer").evaluate(ROOM)[::-1]
        assert high <= kept
        assert high <= 800 or width == 880  # the test's letters are wider than the book's
        matrix, layers = (
            page.locator(x).bounding_box() for x in (".sl-card[data-side=right]", ".sl-side")
        )
        assert layers["x"] > matrix["x"] + matrix["width"] and layers["y"] == matrix["y"]


def test_phone_shows_one_pattern_at_a_time(show: Show) -> None:
    page = show(SparseLab(), width=390)
    left, right = (page.locator(f".sl-card[data-side={side}]") for side in ("left", "right"))
    assert left.is_visible() and not right.is_visible()
    page.locator(".sl-tabs label", has_text="pattern B").click()
    settled(page)
    assert right.is_visible() and not left.is_visible()
    assert right.locator(".tfx-cells").bounding_box()["width"] > 230


def test_no_accessibility_violations(show: Show) -> None:
    from pathlib import Path

    axe = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
    assert axe.exists(), "axe-core is missing: npm ci"
    goal = {"max_hops": 2}
    both = P.band(radius=2) | P.blockwise(permutation=(1, 0))
    for theme in ("light", "dark"):
        page = show(SparseLab(both, goal=goal), width=390)
        page.evaluate(f"() => {{ document.documentElement.dataset.theme = '{theme}'; }}")
        settled(page)
        page.add_script_tag(path=str(axe))
        found = page.evaluate(
            "async () => (await axe.run()).violations.map((v) =>"
            " v.id + ': ' + v.nodes.map((n) => n.html + n.failureSummary).join(' | '))"
        )
        assert not found, found
