"""The story model in a real browser: its words, heads and parts, what it writes, its addresses."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from book.visits import violations

from tfviz.cores import Bias
from tfviz.explorers import StoryModel
from tfviz.models.gpt import GPT
from tfviz.small_world import NUMBER, WORDS
from tfviz.stored import story, story_page
from tfviz.training import seeded

RESTS_ON = (
    "tfviz/stored/**",
    "tfviz/small_world.py",
    "tests/browser/**",
    "tests/*.py",
    "tfviz/explorers/**",
    "book/assets/**",
)

Show = Callable[..., Any]
OTHER = "last 8"
KEYS = ("surprise", "p", "weights", "would", "written")


@pytest.fixture
def with_a_part(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the base and the window had been trained: weights with scores, of one seed."""
    weights, variants = {}, {}
    for seed, name in enumerate((story.BASE, OTHER)):
        model = seeded(seed, partial(story.gpt, name))
        for x in model.parameters():
            x.data += 0.2 * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
        weights[name] = story.pack(model)
        shares = {skill: [0.9 - seed / 2] for skill in story_page.SKILLS}
        variants[name] = {"loss": [0.5 + seed], "skills": shares, "words": {}, "parameters": 7}
    found = {"variants": variants, "weights": weights, "chance": {}, "steps": 3}
    caches = (story_page.handed, story_page.exact)
    monkeypatch.setattr(story_page, "results", lambda: found)
    from tfviz.explorers.basics import story_model

    for one in (*caches, story_model._seen):
        one.cache_clear()
    yield
    for one in (*caches, story_model._seen):
        one.cache_clear()


def numbers(page: Any) -> Any:
    return page.locator(".tfviz-explorer").evaluate(
        "(node) => { node.tfviz.paint(); return node.tfviz.numbers(); }"
    )


def state(page: Any, *keys: str) -> list[Any]:
    found: list[Any] = page.locator(".tfviz-explorer").evaluate(
        "(node, keys) => keys.map((key) => node.tfvizModel.get(key))", list(keys)
    )
    return found


def alike(found: Any, right: Any) -> None:
    for key in ("head", *KEYS, *(f"swap_{key}" for key in KEYS)):
        assert found[key] == pytest.approx(right[key], rel=1e-9, abs=1e-12), key


# --- numbers -------------------------------------------------------------------------------------


def test_its_numbers_are_of_the_model_itself() -> None:
    one = StoryModel(story="owner", head="2.3", written=2)
    model, x = story_page.exact(), torch.tensor([one.tokens])
    p = model(x)[0].softmax(-1)
    found = one.numbers()
    assert found["p"] == pytest.approx(p[-1].tolist())
    assert found["surprise"][4] == pytest.approx(-math.log(p[4, one.tokens[5]]))
    assert found["would"][-1] == pytest.approx(p[-1].max().item())
    assert sum(found["weights"]) == pytest.approx(1)
    more = torch.tensor([[*one.tokens, found["written"][0]]])
    assert found["written"] == [p[-1].argmax(), model(more)[0, -1].argmax()]


def test_the_head_is_found_where_the_next_word_stands() -> None:
    tokens = [0, NUMBER["red"], NUMBER["cat"], NUMBER["red"], NUMBER["the"]]
    p = torch.full((5, len(WORDS)), 0.001)
    p[4, NUMBER["red"]] = 0.9
    A = torch.zeros(2, 3, 5, 5)
    A[0, 1, 4, 2] = 1.0  # all of it from another word
    A[1, 2, 4, 1] = A[1, 2, 4, 3] = 0.4
    one = story_page.Read(p, tuple(A), ())
    assert story_page.head_of(one, tokens, 4) == (1, 2)
    p[4, NUMBER["dog"]] = 0.95  # which stands nowhere
    assert story_page.head_of(one, tokens, 4) == (0, 1)


def test_a_head_that_is_off_finds_nothing() -> None:
    one, off = StoryModel(head="1.2"), StoryModel(head="1.2", off=["1.2"])
    assert one.numbers()["weights"] == off.numbers()["weights"]  # it looks as before
    assert one.numbers()["p"] != pytest.approx(off.numbers()["p"], rel=1e-6)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"swap": "flat"}, "swap = 'flat', which has no trained weights; choose one of 'base'"),
        ({"head": "4.1"}, r"head = '4.1'; choose '' or one of 1\.1"),
        ({"off": ["0.1"]}, "off has '0.1'"),
        ({"changed": [[3, "tiger"]]}, r"changed has \[3, 'tiger'\]"),
        ({"changed": [[999, "cat"]]}, "place of changed = 999"),
        ({"i": 200}, "i = 200"),
    ],
)
def test_what_cannot_be_is_refused(told: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        StoryModel(**told)


def test_stories_end_before_an_answer_that_was_told() -> None:
    for one in story_page.stories():
        assert one.source < len(one.words) <= story_page.MOST_WORDS
        if one.skill not in ("pronoun", "repeated"):
            assert one.words[one.source] == one.answer


# --- in the page ---------------------------------------------------------------------------------


def test_words_are_a_listbox(show: Show) -> None:
    page = show(StoryModel())
    words = page.get_by_role("listbox")
    [i] = state(page, "i")
    words.press("ArrowLeft")
    words.press("ArrowLeft")
    assert state(page, "i") == [i - 2]
    chosen = page.locator('.sm-w[aria-selected="true"]')
    assert chosen.get_attribute("id") == words.get_attribute("aria-activedescendant")
    assert "nats" in (chosen.get_attribute("aria-label") or "")
    head = numbers(page)["head"]
    words.press("ArrowDown")
    [name] = state(page, "head")
    n, m = (head[0] * 4 + head[1] + 1) % 12 // 4, (head[1] + 1) % 4
    assert name == f"{n + 1}.{m + 1}"
    page.locator(".sm-w").nth(4).click()
    assert state(page, "i") == [5]
    alike(numbers(page), StoryModel(i=5, head=name).numbers())


def test_a_word_is_exchanged_and_a_head_is_off(show: Show) -> None:
    page = show(StoryModel(i=10))
    word = page.get_by_label("replace this word by")
    other = next(x for x in word.locator("option").all_inner_texts() if x != word.input_value())
    word.select_option(other)
    page.locator(".sm-head").nth(5).click()
    page.get_by_role("button", name="switch it off").click()
    right = StoryModel(i=10, head="2.2", off=["2.2"], changed=[[10, other]])
    alike(numbers(page), right.numbers())
    page.get_by_text("Head 2.2 is switched off").wait_for()


def test_it_writes_the_same_words_with_the_same_dice(show: Show) -> None:
    page = show(StoryModel(heat=1.2))
    page.locator(".sm-words").press("w")
    page.get_by_role("button", name="write a word").click()
    right = StoryModel(heat=1.2, written=2).numbers()["written"]
    assert numbers(page)["written"] == right
    page.get_by_role("button", name="write on").click()
    alike(numbers(page), StoryModel(heat=1.2, written=30).numbers())


def test_it_says_why_it_stops(show: Show) -> None:
    one = StoryModel(story="pronoun", written=30, heat=1.5)
    last = len(one.tokens) + len(one.numbers()["written"])
    page = show(one)
    said = page.locator(".sm-legend").inner_text()
    assert last <= story.LENGTH
    if last == story.LENGTH:
        assert "It stops here: it has read stories of at most 111 words." in said


@pytest.mark.usefixtures("with_a_part")
def test_a_part_is_put_in(page: Any, problems: list[str], tmp_path: Any) -> None:
    file = StoryModel(swap=OTHER, written=3, heat=0.7).save(tmp_path / "one.html")
    page.goto(file.as_uri())
    page.locator(".tfviz-explorer[data-ready]").wait_for()
    shown = StoryModel(swap=OTHER, written=3, heat=0.7).numbers()
    found = page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")
    alike(found, shown)
    assert page.locator(".sm-wrote > div").count() == 2
    assert page.locator(".sm-large:visible").count() == 2
    assert page.locator(".sm-worse, .sm-better").count() > 5
    page.get_by_text("One seed so far.").wait_for()
    chip = page.get_by_role("button", name=OTHER)
    assert chip.get_attribute("aria-pressed") == "true"
    chip.press("Escape")
    page.locator(".sm-wrote > div").nth(1).wait_for(state="detached")
    assert chip.get_attribute("aria-pressed") == "false"
    assert page.evaluate("document.activeElement.textContent").startswith(OTHER)
    chip.press("Enter")
    page.locator(".sm-wrote > div").nth(1).wait_for()


@pytest.mark.usefixtures("with_a_part")
def test_weights_that_do_not_come_are_said(page: Any, tmp_path: Any) -> None:
    from browser.explorer_site import served, write_site

    write_site(tmp_path, StoryModel().html())
    target = tmp_path / "_static" / "explorers" / "story_model.last_8.js"
    target.unlink()
    with served(tmp_path) as url:
        page.goto(f"{url}index.html")
        page.locator(".tfviz-explorer[data-ready]").wait_for()
        page.get_by_role("button", name=OTHER).click()
        page.get_by_text(f"The weights of “{OTHER}” could not be loaded").wait_for()
        assert page.get_by_role("button", name=OTHER).get_attribute("aria-pressed") == "false"
        target.write_text(StoryModel.parts()["last_8"], "utf-8")
        page.get_by_role("button", name="try again").click()
        page.locator(".sm-b .sm-large").wait_for()
        alike(numbers(page), StoryModel(swap=OTHER).numbers())


@pytest.mark.usefixtures("problems")
def test_a_page_with_a_part_of_ones_own(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that needs no server, with the base and the part, and the numbers of the library."""
    monkeypatch.setattr(story_page, "_own", {})

    def slope() -> Bias:
        return Bias(lambda i, j: (j - i) / 8)

    own = seeded(0, lambda: GPT(len(WORDS), 64, 2, 3, core=slope))
    page.goto(story.page(tmp_path / "mine.html", own, "a slope").as_uri())
    page.locator(".tfviz-explorer[data-ready]").wait_for()
    alike(numbers(page), StoryModel(swap="a slope").numbers())
    page.get_by_text("A model of your own.").wait_for()
    chip = page.get_by_role("button", name="a slope")
    assert chip.get_attribute("aria-pressed") == "true"
    chip.press("Escape")
    page.locator('[aria-pressed="false"]', has_text="a slope").wait_for()
    story_page.handed.cache_clear()
    story_page.exact.cache_clear()


def test_an_address_that_people_write(show: Show) -> None:
    page = show(StoryModel(), hash="#story=owner&i=7&head=3.2")
    assert state(page, "story", "i", "head") == ["owner", 7, "3.2"]
    page = show(StoryModel(), hash="#swap=flat&story=9&i=4000&head=7.1")
    assert state(page, "story", "swap", "head") == [StoryModel().story, "base", ""]
    said = page.locator(".sm-trouble").first.inner_text()
    for words in ("no story “9”", "no word 4000", "no head “7.1”", "no trained part “flat”"):
        assert words in said


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(show: Show, theme: str, width: int) -> None:
    page = show(StoryModel(), width=width)
    page.evaluate("(theme) => (document.documentElement.dataset.theme = theme)", theme)
    assert not violations(page)


def test_its_sizes(folder: Any, address: str) -> None:
    """With gzip: a model at most 180 KB, all else at most 60 KB."""
    whole = gzip.compress(StoryModel.sources()[0].encode() + StoryModel.sources()[1].encode())
    model = gzip.compress(json.dumps(story_page.handed(), separators=(",", ":")).encode())
    assert len(model) < 180_000
    assert len(whole) - len(model) < 60_000
