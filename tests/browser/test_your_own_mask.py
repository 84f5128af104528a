"""Your own mask in a real browser: the same language as in Python, and a field to type it in."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from book.visits import violations
from explained.formulas import BAD, GOOD, made, mangled
from torch.nn.attention.flex_attention import create_mask

from tfviz import explain
from tfviz.explained.typed import HEADS, TypedError, read_typed
from tfviz.explorers import YourOwnMask
from tfviz.explorers.sparse.your_own_mask import EXAMPLES

RESTS_ON = (
    "tfviz/explorers/shared/**",
    "tfviz/explained/**",
    "tests/browser/**",
    "tests/*.py",
    "tfviz/explorers/sparse/**",
)

Show = Callable[..., Any]
L = 11

RUN = """async ([address, data]) => {
  await import(`${address}_static/explorers/kit.js`);
  const { language } = await import(`${address}_static/explorers/your_own_mask.js`);
  const { codeOf, mended, readTyped, tableOf, valuesOf } = language;
  const plain = (x) => (x === -Infinity ? "never" : x);
  const asked = { codeOf, mended };
  return data.map(({ text, values, L, what }) => {
    if (what) return asked[what](what === "mended" ? text : { formula: text, values, L });
    try {
      const typed = readTyped(text);
      const table = tableOf(typed, L, valuesOf(typed, values));
      return { names: typed.names, mask: typed.isMask, table: Array.from(table, plain) };
    } catch (error) {
      return { code: error.code, at: error.at, message: error.message };
    }
  });
}"""


def in_browser(page: Any, address: str, cases: list[dict[str, Any]]) -> list[Any]:
    page.goto(f"{address}empty.html")
    answers: list[Any] = page.evaluate(RUN, [address, cases])
    return answers


def in_python(text: str, values: dict[str, float]) -> dict[str, Any]:
    try:
        one = read_typed(text)
        table = one.table(L, **values).double().flatten().tolist()
    except TypedError as error:
        return {"code": error.code, "at": error.at, "message": error.message}
    names = [[name, vars(about)] for name, about in one.names.items()]
    plain = ["never" if x == -math.inf else x for x in table]
    return {"names": names, "mask": one.is_mask, "table": plain}


def differing(page: Any, address: str, texts: dict[str, dict[str, float]]) -> list[str]:
    """The texts of which the browser says something else than Python."""
    cases = [{"text": text, "values": values, "L": L} for text, values in texts.items()]
    found = []
    for (text, values), there in zip(texts.items(), in_browser(page, address, cases), strict=True):
        here = in_python(text, values)
        numbers = here.pop("table", []), there.pop("table", [])
        alike = len(numbers[0]) == len(numbers[1]) and all(
            a == b or (not isinstance(a, str) and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12))
            for a, b in zip(*numbers, strict=True)
        )
        if here != there or not alike:
            found.append(f"{text!r}: Python {here}, browser {there}")
    return found


def test_every_formula_and_every_error_is_pythons(page: Any, address: str) -> None:
    assert len(GOOD) > 60 and len(BAD) > 60
    assert not differing(page, address, GOOD | {text: {} for text in BAD})


def test_random_formulas_are_pythons(page: Any, address: str) -> None:
    """Python's own parser says what binds more tightly."""
    pick = random.Random(3)
    texts: dict[str, dict[str, float]] = {made(pick): {} for _ in range(400)}
    assert sum("table" in in_python(text, {}) for text in texts) > 100
    assert not differing(page, address, texts)


def test_slips_of_the_fingers_are_pythons_too(page: Any, address: str) -> None:
    pick = random.Random(4)
    texts: dict[str, dict[str, float]] = {
        mangled(pick, pick.choice([*GOOD, *BAD])): {} for _ in range(800)
    }
    codes = {in_python(text, {}).get("code") for text in texts}
    assert len(codes) > 15
    assert not differing(page, address, texts)


def test_the_python_that_is_copied_makes_the_same(page: Any, address: str) -> None:
    """By FlexAttention's own evaluation, and by `explain`."""
    some = [*((f, v) for f, v in GOOD.items()), *((f, v) for _, f, v in EXAMPLES)]
    cases = [{"text": f, "values": v, "L": L, "what": "codeOf"} for f, v in some]
    i, j = torch.arange(L)[:, None], torch.arange(L)[None]
    for (text, values), code in zip(some, in_browser(page, address, cases), strict=True):
        names: dict[str, Any] = {}
        exec(code, names)
        one = read_typed(text)
        table, h = one.table(L, **values), torch.tensor(int(values.get("h", 0)))
        if one.is_mask:
            mask = create_mask(names["mask_mod"], 1, HEADS, L, L, device="cpu")[0, int(h)]
            assert torch.equal(mask, table), code
        else:
            added = names["score_mod"](torch.zeros(L, L), torch.tensor(0), h, i, j)
            torch.testing.assert_close(added.double(), table, rtol=1e-4, atol=1e-5)
    alibi = next(
        code
        for (f, _), code in zip(some, in_browser(page, address, cases), strict=True)
        if "-2.0 **" in f
    )
    names = {}
    exec(alibi, names)
    mine = explain(names["score_mod"], heads=HEADS)
    assert mine.bias is not None and mine.bias.heads == HEADS


def test_what_may_be_meant(page: Any, address: str) -> None:
    meant = {
        "i >= j and i - j < w": "(i >= j) & (i - j < w)",
        "i >= j & i - j < w": "(i >= j) & (i - j < w)",
        "0 <= i - j < w": "(0 <= i - j) & (i - j < w)",
        "not i < j or j < 3": "~(i < j) | (j < 3)",
        "!(i < j) && (j < 3)": "~(i < j) & (j < 3)",
        "i ≥ j ∧ i − j ≤ 3": "(i >= j) & (i - j <= 3)",
        "i = j": "i == j",
        "i - 2j > 3": "i - 2 * j > 3",
        "i - (j - 2) >= (j - i) * 3 && i == j": "(i - (j - 2) >= (j - i) * 3) & (i == j)",
        "i >= ": "",
        "f(i) and j": "",
        "__import__(i) and (i > j)": "",
    }
    cases = [{"text": text, "what": "mended"} for text in meant]
    assert in_browser(page, address, cases) == [*meant.values()]


# --- the page ------------------------------------------------------------------------------------


def state(page: Any) -> dict[str, Any]:
    values: dict[str, Any] = page.locator(".tfviz-explorer").evaluate("(h) => h.tfvizModel.state")
    return values


def opened(show: Show, **how: Any) -> Any:
    """The page, with its question answered."""
    page = show(YourOwnMask(), **how)
    page.get_by_role("button", name="just show me").click()
    return page


def readout(page: Any, label: str) -> str:
    row = page.locator(".tfx-readout", has=page.locator(f"dt:text-is('{label}')"))
    text: str = row.locator("dd").inner_text()
    return text


@pytest.mark.parametrize("offline", [False, True], ids=["http", "file"])
def test_a_formula_is_typed_and_drawn(show: Show, offline: bool) -> None:
    page = opened(show, offline=offline)
    field = page.get_by_label("your formula of query i and key j")
    field.fill("")
    field.press_sequentially("(i > j) & (i - j <= far)")
    assert state(page)["formula"] == "(i > j) & (i - j <= far)"
    assert state(page)["values"] == {"far": 4}
    page.locator(".yom-formula math", has_text="far").wait_for()
    said = page.locator(".yom-formula math").text_content().replace("\xa0", " ")
    assert said == "i>j and i−j≤far"
    assert "Row 0 has no key" in page.locator(".yom-verdict").inner_text()
    assert readout(page, "rows without a key") == "0"
    assert readout(page, "keys of the query") == "4 of 24"
    slider = page.locator("input[data-key='value-far']")
    slider.press("ArrowRight")
    assert state(page)["values"] == {"far": 5}
    page.locator(".yom-code", has_text="far = 5").wait_for()  # drawn a frame later
    right = YourOwnMask(formula=state(page)["formula"], values={"far": 5}).numbers()
    there = page.locator(".tfviz-explorer").evaluate("(host) => host.tfviz.numbers()")
    assert there["pairs"] == right["pairs"] and there["empty"] == right["empty"] == [0]


def test_what_is_wrong_is_shown_with_a_caret_and_a_remedy(show: Show) -> None:
    page = opened(show)
    before = state(page)["formula"]
    field = page.locator("input[data-key='formula']")
    top = page.locator(".tfx-figure").first.bounding_box()["y"]
    field.fill("i >= j and i - j < w")
    page.locator(".yom-bad").wait_for()
    text, caret = page.locator(".yom-text").all_text_contents()
    assert text[caret.index("^") :].startswith("and")
    assert page.locator(".yom-message").inner_text().startswith("Character 8: Write & for and")
    assert field.get_attribute("aria-invalid") == "true"
    assert state(page)["formula"] == before  # the picture stays
    assert page.locator(".tfx-figure").first.bounding_box()["y"] == top  # and nothing moves
    page.get_by_role("button", name="use (i >= j) & (i - j < w)").click()
    assert state(page)["formula"] == field.input_value() == "(i >= j) & (i - j < w)"
    page.locator(".yom-bad").wait_for(state="hidden")


def test_what_has_no_value_at_some_numbers_says_so(show: Show) -> None:
    page = opened(show)
    page.locator("input[data-key='formula']").fill("i // (j + 1 - w * 0) >= w // (50 - L)")
    assert "50 - L" in state(page)["formula"]
    page.locator("input[data-key='L']").press("End")  # 64: fine again, beyond 50
    page.locator(".tfviz-explorer").evaluate(
        "(host) => { host.dispatchEvent(new CustomEvent('tfviz:show', { detail:"
        " { formula: 'i % (50 - L) >= j', L: 50 } })); host.tfviz.paint(); }"
    )
    assert "Division by 0 at i = 0, j = 0" in page.locator(".yom-message").inner_text()
    lab = YourOwnMask(formula="i % (50 - L) >= j", L=50)
    assert lab.numbers()["wrong"] == 1 and lab.numbers()["pairs"] == 0
    with pytest.raises(TypedError, match="Division by 0"):
        _ = lab.explained


def test_the_examples_are_what_they_say(show: Show) -> None:
    page = opened(show)
    for name, formula, values in EXAMPLES:
        page.get_by_role("button", name=name, exact=True).click()
        assert (state(page)["formula"], state(page)["values"]) == (formula, values)
        there = page.locator(".tfviz-explorer").evaluate("(host) => host.tfviz.numbers()")
        right = YourOwnMask(formula=formula, values=values).numbers()
        assert there["mask"] == [x for row in right["mask"] for x in row], name
        assert there["diameter"] == right["diameter"] and there["blocks"] == right["blocks"]


def test_what_is_typed_is_never_executed(show: Show) -> None:
    page = opened(show)
    page.evaluate("() => { window.executed = 0; window.alert = () => { window.executed++; }; }")
    field = page.locator("input[data-key='formula']")
    for text in ["alert(1)", "window.alert(1)", "constructor(i) > 1", "toString > i", "i;alert(1)"]:
        field.fill(text)
        page.locator(".tfviz-explorer").evaluate("(host) => host.tfviz.paint()")
    field.fill("<img src=x onerror=alert(1)>")
    page.locator(".yom-bad").wait_for()
    assert page.locator(".yom-reading img").count() == 0
    assert page.evaluate("window.executed") == 0


def test_the_words_of_an_error_are_those_of_python(show: Show) -> None:
    for wrong in ({"formula": "i >= j and j"}, {"formula": "i > j", "values": {"w": 1}}):
        with pytest.raises(ValueError, match=r"and asks|no name of"):
            YourOwnMask(**wrong)
    lab = YourOwnMask()
    with pytest.raises(ValueError, match="never closed"):
        lab.formula = "(i >= j"
    lab.formula = "abs(i - j) <= w"
    assert lab.explained.same_as is not None and lab.taken == {"w": 4}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_in_either_state(show: Show, theme: str, width: int) -> None:
    page = opened(show, width=width)
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    assert not violations(page)
    page.locator("input[data-key='formula']").fill("i >= j & i - j < w")
    page.locator(".yom-bad").wait_for()
    assert not violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# --- the lab of a brought formula, as Jupyter opens it -------------------------------------------

OPEN = """async ([esm, css, state]) => {
  const address = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  const heard = new Map();
  const model = {
    get: (key) => state[key],
    set: (key, value) => {
      state[key] = value;
      for (const call of heard.get(`change:${key}`) ?? []) call();
    },
    save_changes: () => {},
    on: (event, call) => heard.set(event, [...(heard.get(event) ?? []), call]),
    off: () => {},
  };
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  const host = document.createElement("div");
  host.id = "lab";
  document.body.append(host);
  widget.render({ model, el: host });
}"""


def test_the_lab_of_a_brought_formula_opens(page: Any, address: str, problems: list[str]) -> None:
    """`explain(…).explore()`: the formula travels with the widget, and each number is a slider."""

    def sinks(b: Any, h: Any, q: Any, k: Any, sink: int = 2, window: int = 5) -> Any:
        return (q >= k) & ((k < sink) | (q - k < window))

    lab = explain(sinks).explore(32)
    page.goto(f"{address}empty.html")
    page.evaluate(OPEN, [lab._esm, lab._css, lab.state])
    host = page.locator("#lab")
    pairs = host.evaluate("(host) => host.tfviz.numbers().pairs")
    assert pairs == lab.numbers()["pairs"]
    sliders = host.locator(".sl-card[data-side=left] .sl-terms input[type=range]")
    assert sliders.count() == 2
    sliders.nth(1).press("ArrowRight")
    moved = explain(lambda b, h, q, k: sinks(b, h, q, k, window=6)).cost(32).pairs
    assert host.evaluate("(host) => host.tfviz.numbers().pairs")[0] == moved
