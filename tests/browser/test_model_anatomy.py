"""From a model's name to its parts, in a real browser: search, paste, compare, and all models."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from book.visits import violations

from tfviz import anatomy, catalogue
from tfviz.explorers import ModelAnatomy
from tfviz.explorers.anatomy.model_anatomy import LONGEST, PARTS, TODAY, lessons

RESTS_ON = (
    "tfviz/explorers/shared/**",
    "tfviz/anatomy/**",
    "tests/browser/**",
    "tests/*.py",
    "chapters/**",
    "book/*.md",
)
ROOT = Path(__file__).parents[2]
Show = Callable[..., Any]
SEEN = 720  # pixels of the explorer that a laptop shows
ORDINARY = {
    **{"model_type": "foo", "hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128256},
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336},
    **{"max_position_embeddings": 8192, "strange_key": 3},
}
STATES = {**ORDINARY, "model_type": "bar", "mamba_d_state": 16}

EVERY = """(host, models) => models.map((model) => {
  const context = 8192;
  host.dispatchEvent(new CustomEvent("tfviz:show", { detail: { model, L: context } }));
  host.tfviz.paint();
  const root = host.querySelector(".tfx");
  const cells = [...host.querySelectorAll(".ma-run")].map((run) => [
    run.querySelectorAll(".ma-cell").length,
    Number(run.querySelector(".ma-times").textContent.slice(1) || 1),
  ]);
  return {
    high: root.offsetHeight,
    wide: [...root.querySelectorAll(".ma-left, .ma-right, .ma-left *")]
      .filter((x) => !x.closest("svg") && x.clientWidth && x.scrollWidth > x.clientWidth + 1)
      .filter((x) => getComputedStyle(x).overflowX === "visible")
      .map((x) => x.className || x.tagName),
    broken: root.textContent.match(/NaN|Infinity|undefined|null|\\[object/),
    layers: cells.reduce((all, [n, times]) => all + n * times, 0),
    numbers: host.tfviz.numbers(),
    said: root.querySelector(".tfx-status").textContent,
  };
})"""


def host_of(page: Any) -> Any:
    return page.locator(".tfviz-explorer")


def state(page: Any) -> dict[str, Any]:
    values: dict[str, Any] = host_of(page).evaluate("(h) => h.tfvizModel.state")
    return values


def said(page: Any) -> str:
    page.wait_for_function("document.querySelector('.tfviz-explorer').tfviz.resting()")
    text: str = page.locator(".tfx-status").inner_text()
    return text


def flat(x: Any) -> list[float]:
    return [y for part in x for y in flat(part)] if isinstance(x, list) else [x]


def pasted(page: Any, text: str) -> Any:
    page.get_by_role("button", name="paste a config.json").click()
    page.locator("textarea").fill(text)
    page.get_by_role("button", name="take it apart").click()
    return page


def test_every_model_is_counted_as_by_the_library_and_fits(show: Show) -> None:
    """One screen for each: its numbers, its layers in the stack, nothing that is no number."""
    page = show(ModelAnatomy(), width=930)
    page.set_viewport_size({"width": 930, "height": 800})
    names = list(anatomy.names())
    wrong = []
    for name, found in zip(names, host_of(page).evaluate(EVERY, names), strict=True):
        one = ModelAnatomy(model=name, L=8192)
        right = one.numbers()
        assert flat(found["numbers"]["models"]) == pytest.approx(flat(right["models"]), rel=1e-9)
        assert found["numbers"]["kept"] == right["kept"], name
        assert found["numbers"]["layers"] == right["layers"], name
        assert found["layers"] == len(one.anatomy.layers), name
        assert not found["broken"], (name, found["broken"])
        if found["high"] > SEEN + 1 or found["wide"]:
            wrong.append((name, found["high"], found["wide"]))
    assert not wrong


def test_a_model_is_found_by_its_name_and_by_keys(show: Show) -> None:
    page = show(ModelAnatomy())
    field = page.get_by_role("combobox").first
    field.click()
    options = page.get_by_role("option", name=re.compile("20[0-9][0-9]"))
    listed = anatomy.names(listed=True)
    ids = options.evaluate_all("(all) => all.map((x) => x.dataset.model)")
    assert set(ids[: len(listed)]) == set(listed) and set(ids) == set(anatomy.names())
    field.press_sequentially("qwen3-next")
    assert field.get_attribute("aria-expanded") == "true"
    field.press("Enter")
    assert state(page)["model"] == "qwen3-next-80b"
    assert "Qwen3-Next" in said(page) and field.input_value().startswith("Qwen3-Next")
    field.fill("lamma 4 skout")
    page.get_by_text("No model has this name. The nearest:").wait_for()
    field.press("ArrowDown")
    field.press("ArrowUp")
    field.press("Escape")
    assert (
        state(page)["model"] == "qwen3-next-80b" and field.get_attribute("aria-expanded") == "false"
    )
    field.fill("llama 3.1")
    field.press("ArrowDown")
    chosen = field.get_attribute("aria-activedescendant")
    field.press("Enter")
    assert chosen.endswith(state(page)["model"])


def test_a_short_model_shortens_the_text(show: Show) -> None:
    page = show(ModelAnatomy())
    page.get_by_role("combobox").first.fill("bert base")
    page.get_by_role("combobox").first.press("Enter")
    assert state(page)["L"] == anatomy.of("bert-base").fields["context"]
    assert "keeps no cache, because it reads both ways" in said(page)


def test_a_file_that_is_pasted_is_a_guess_a_refusal_or_an_error(show: Show) -> None:
    page = pasted(show(ModelAnatomy()), json.dumps(ORDINARY))
    assert "foo, if it is an ordinary decoder, keeps 1 GiB" in said(page)
    guess = page.locator(".ma-guess").inner_text()
    counted = anatomy.read(ORDINARY).parameters
    low, high = f"{counted.low / 1e9:.2f}", f"{counted.high / 1e9:.2f}"
    assert "This is a guess." in guess and "strange_key" in guess
    assert f"{low} B to {high} B" in page.locator(".ma-left table").inner_text().replace(
        "\xa0", " "
    )
    pasted(page, json.dumps(STATES))
    assert "bar is not counted: mamba_d_state: a state" in said(page)
    assert "width 4\u202f096" in page.locator(".ma-guess").inner_text()
    assert page.locator(".ma-cell").count()
    before = state(page)["config"]
    for text, words in {
        '{"model_type": ': "config is no JSON at line 1",
        "model_type: llama": "does not begin with {. Paste the whole file.",
        '{"model_type": "llama"}': "config has",
    }.items():
        if page.locator("textarea").is_hidden():
            page.get_by_role("button", name="paste a config.json").click()
        page.locator("textarea").fill(text)
        page.get_by_role("button", name="take it apart").click()
        assert words in page.locator(".ma-wrong").inner_text()
        assert state(page)["config"] == before
    page.locator("textarea").fill("{" + " " * LONGEST + "}")
    page.get_by_role("button", name="take it apart").click()
    assert "paste at most" in page.locator(".ma-wrong").inner_text()


def test_what_is_pasted_is_never_executed(show: Show) -> None:
    page = show(ModelAnatomy())
    page.evaluate("() => { window.executed = 0; window.alert = () => { window.executed++; }; }")
    evil = "<img src=x onerror=alert(1)>"
    pasted(page, json.dumps({**ORDINARY, "model_type": evil, "_name_or_path": evil, evil: 1}))
    assert page.locator(".tfx img").count() == 0 and page.evaluate("window.executed") == 0
    assert evil in page.locator(".ma-guess").inner_text()


def test_two_models_stand_side_by_side_and_a_link_brings_them_back(show: Show) -> None:
    page = show(ModelAnatomy())
    second = page.get_by_role("combobox").nth(1)
    second.fill("deepseek-v3")
    second.press("Enter")
    assert state(page)["beside"].startswith("deepseek-v3")
    table = page.locator(".ma-left table")
    assert table.locator("thead th:visible").count() == 3
    assert page.locator(".ma-bar").count() == 2
    assert page.locator(".tfx").evaluate("(x) => x.offsetHeight") <= SEEN
    link = host_of(page).evaluate("(host) => host.tfviz.hash()")
    again = show(ModelAnatomy(), hash=link)
    assert state(again)["beside"] == state(page)["beside"]
    again.get_by_role("button", name="clear: compare with").click()
    assert state(again)["beside"] == "" and again.locator(".ma-bar").count() == 1


def test_a_link_with_what_is_not_known_is_refused(show: Show) -> None:
    page = show(ModelAnatomy())
    host_of(page).evaluate(
        "(host) => host.dispatchEvent(new CustomEvent('tfviz:show',"
        " { detail: { model: 'no such', layer: -1, config: '{', beside: 'neither' } }))"
    )
    assert state(page)["model"] == "gemma-3-27b" and state(page)["config"] == ""
    assert "cannot be" in page.locator(".tfx-said").inner_text()


def test_a_layer_is_looked_at_by_pointing_and_by_keys(show: Show) -> None:
    page = show(ModelAnatomy())
    stack = page.get_by_role("listbox", name="layers")
    stack.focus()
    stack.press("Home")
    assert state(page)["layer"] == 0
    assert "window, 1\u202f024 tokens" in page.locator(".ma-which").inner_text()
    kept = anatomy.of("gemma-3-27b").layers[0].heads
    assert kept is not None
    assert f"{kept.queries} query heads" in page.locator(".ma-facts").inner_text()
    stack.press("End")
    assert state(page)["layer"] == 60
    page.locator(".ma-cell").nth(5).hover()
    page.locator(".ma-which", has_text="59: full").wait_for()
    assert state(page)["layer"] == 60
    page.locator(".ma-cell").nth(5).click()
    assert state(page)["layer"] == 5


def test_the_mask_is_that_of_the_library(show: Show) -> None:
    page = show(ModelAnatomy(L=2048, layer=0))
    canvas = page.locator(".ma-layer canvas")
    seen = canvas.evaluate(
        """(canvas) => {
          const { width } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, width);
          return Array.from({ length: 40 * 40 }, (_, n) => {
            const [r, c] = [Math.floor(n / 40), n % 40];
            const at = (k) => Math.floor(((k + 0.5) * width) / 40);
            const k = 4 * (at(r) * width + at(c));
            const rgb = data.slice(k, k + 3);
            return Number(Math.max(...rgb) - Math.min(...rgb) > 60);
          });
        }"""
    )
    mask = anatomy.of("gemma-3-27b").layers[0].mask
    assert mask is not None
    places = [int((n + 0.5) * 2048 / 40) for n in range(40)]
    table = mask.mask(2048)
    assert seen == [int(table[i, j]) for i in places for j in places]


def test_every_mechanism_has_a_name_and_those_with_a_lesson_lead_to_it(show: Show) -> None:
    used = {x for name in anatomy.names() for x in anatomy.of(name).uses}
    told = lessons()["lessons"]
    assert used <= told.keys()
    assert not TODAY.keys() & {row.id for row in catalogue.MECHANISMS}
    for name, address, stage in told.values():
        assert name and stage
        if not address:
            continue
        page, _, section = address.partition("#")
        source = ROOT / page.replace(".html", ".md")
        text = source.read_text("utf8")
        if section:
            slugs = {
                re.sub(r"[^a-z0-9]+", "-", x.lower()).strip("-")
                for x in re.findall(r"^#+ (.*)$", text, re.M)
            }
            labels = {x.replace("_", "-") for x in re.findall(r"^\((\S+)\)=$", text, re.M)}
            assert section in slugs | labels, address
    page = show(ModelAnatomy(model="deepseek-v3"))
    links = page.locator(".ma-lessons a").evaluate_all(
        "(all) => all.map((x) => x.getAttribute('href'))"
    )
    assert any("after_the_survey.html#multi-head-latent" in link for link in links)
    assert all(link.startswith("http") for link in links)


def test_python_takes_a_name_a_dict_a_text_and_a_path(tmp_path: Path) -> None:
    assert anatomy.explore("Gemma 3 1B").L == 32768
    assert anatomy.explore("gemma-3-27b", beside="qwen3-32b", L=4096).L == 4096
    for config in (ORDINARY, json.dumps(ORDINARY)):
        assert anatomy.explore(config).anatomy.family == "foo"
    file = tmp_path / "config.json"
    file.write_text(json.dumps(ORDINARY), "utf8")
    for named in (file, str(file), tmp_path):
        assert anatomy.explore(named).anatomy.guess
    assert anatomy.explore("bert-base").numbers()["models"][0][1] == [0, 0]
    for wrong, words in {
        "lama": "not known; nearest.*nor is there such a file",
        "x" * 300: "nor is there such a file",
        "nowhere/config.json": "nor is there such a file",
        '{"model_type": "llama"}': "config has no",
    }.items():
        with pytest.raises(ValueError, match=words):
            anatomy.explore(wrong)
    with pytest.raises(ValueError, match="layer = -1"):
        ModelAnatomy(layer=-1)
    with pytest.raises(ValueError, match="give at most"):
        ModelAnatomy(config="{" + " " * LONGEST + "}")
    one = ModelAnatomy(model="deepseek-v3").numbers()["models"][0]
    assert len(one[0]) == 4 + len(PARTS) and sum(one[0][4:]) == one[0][0]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(show: Show, theme: str, width: int) -> None:
    page = show(ModelAnatomy(model="qwen3-next-80b", beside="gpt-oss-120b", L=65536), width=width)
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    assert not violations(page)
    page.get_by_role("combobox").first.click()
    assert not violations(page)
    page.keyboard.press("Escape")
    pasted(page, "{")
    page.locator(".ma-wrong", has_text="no JSON").wait_for()
    assert not violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
