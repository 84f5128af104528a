"""What each letter of a formula means: how letters are told apart, declared and shown."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from book.conftest import Site
from book_letters import NOTATION, Letter, meaning_of, named, reserved_letters
from book_math import Renderer

from tfviz_lessons.lesson import is_lesson
from tfviz_lessons.outline import outline

ROOT = Path(__file__).parents[2]
WEIGHT = 15_000
"""Bytes, compressed, of all that a page has for its letters."""

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"]
MACROS = CONFIG["tfviz_macros"]


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(MACROS)


@pytest.mark.parametrize(
    ("tex", "names"),
    [
        (r"\theta_m^2 + Ld", ["θ_m", "m", "L", "d"]),  # a power is no name, nor are neighbours one
        (r"\tilde\q_i\,\A^\top_{ij}", ["~b:q_i", "i", "b:A_ij", "j"]),
        (r"\mathbf W^q_n \in \R^{L\times d}", ["b:W_n^q", "n", "q", "B:R", "L", "d"]),
        (r"A^{(f)}_i", ["A_i^(f)", "i", "f"]),
        (r"\softmax(x)\ \text{if } \mathrm{ReLU}(y)", ["x", "y"]),  # words are no letters
        (r"\sum_{j\in S_i}\Gamma\ell", ["j", "S_i", "i", "Γ", "ℓ"]),
        (r"(AB)_i", ["A", "B", "i"]),
        (r"\mathbf R_{j-i}", ["b:R", "j", "i"]),
        (r"x_{10}^{-1}", ["x_10"]),
    ],
)
def test_letters_are_told_apart(renderer: Renderer, tex: str, names: list[str]) -> None:
    assert list(renderer.letters(tex)) == names
    named_in_page = re.findall(r'class="[^"]*tf-letter ([^" ]+)', renderer(tex))
    assert set(named_in_page) == set(names)


ROWS = (
    "aligned",
    "align*",
    "split",
    "gathered",
    "matrix",
    "pmatrix",
    "smallmatrix",
    "cases",
    "rcases",
)


@pytest.mark.parametrize(
    ("environment", "row"),
    [(name, row) for name in ROWS for row in ("a", "a & b")]
    + [("array}{r", "a"), ("array}{rl", "a & b"), ("subarray}{l", "a")]
    + [("alignedat}{2", "a"), ("alignat*}{2", "a & b")],
)
def test_mathml_has_no_empty_attribute(renderer: Renderer, environment: str, row: str) -> None:
    """Firefox complains in the console about an attribute of MathML without a value."""
    name = environment.partition("}")[0]
    tex = rf"\begin{{{environment}}} {row} \\ {row} \end{{{name}}}"
    mathml = re.search(r"<math.*?</math>", renderer(tex, display=True), re.S)
    assert mathml and "<mtable" in mathml[0]
    assert '=""' not in mathml[0]


def test_naming_letters_moves_nothing(renderer: Renderer) -> None:
    """Without the names, the page has the formula as KaTeX writes it."""
    for tex in (
        r"\frac{\theta_m^2}{d}",
        r"\tilde{\mathbf q}_i",
        r"\sum_{j\in S_i}e^{s_i}+\Gamma",
    ):
        ours = re.sub(r" tf-letter [^\" ]+", "", renderer(tex))
        assert renderer.engine is not None
        theirs = str(renderer.engine.eval(f"katex.renderToString({json.dumps(tex)})"))
        assert ours == re.sub(r"<annotation .*?</annotation>", "", theirs, flags=re.S)


def test_a_letter_means_what_is_declared_for_it_or_for_any_index() -> None:
    declared = {"θ_m": "an angle", "d": "width", "d_h": "width of a head", "b:W": "weights"}
    declared |= {"b:W^q": "to queries", "x_0": "the first one"}
    for name, meaning in {
        "θ_m": "an angle",
        "θ_0": "an angle",  # m is any index
        "θ": "an angle",
        "d_h": "width of a head",
        "d": "width",
        "d_2": "width",
        "b:W_n^q": "to queries",
        "b:W^k": "weights",
        "x_0": "the first one",
        "x_1": None,  # 0 is no index
        "W": None,  # not bold
        "~θ_m": None,
        "h": None,
    }.items():
        assert meaning_of(name, declared) == meaning, name
    assert meaning_of("d_v", {"d_h": "width of a head"}) is None


def test_reserved_letters_are_told_apart_by_their_first_letter(renderer: Renderer) -> None:
    reserved = named(reserved_letters(NOTATION.read_text("utf-8")), renderer)
    assert {"L", "d", "d_h", "h", "N", "n", "i", "j", "b:X", "b:Q", "b:W^q", "σ", "t"} <= set(
        reserved
    )
    assert len(reserved) == len(reserved_letters(NOTATION.read_text("utf-8"))), "declared twice"


def test_a_declaration_without_a_letter_is_named(renderer: Renderer) -> None:
    with pytest.raises(
        ValueError, match=r"\$\\text\{loss\}\$ is declared as 'the loss' and has no"
    ):
        named([Letter(r"\text{loss}", "the loss")], renderer)


def test_every_chapter_declares_its_letters() -> None:
    silent = [
        path.stem
        for path in ROOT.glob("chapters/**/*.md")
        if is_lesson(text := path.read_text("utf-8")) and not outline(text).named("letters")
    ]
    assert not silent


PROJECT = """
import sys
sys.path[:0] = [{extensions!r}]
extensions = ["myst_parser", "book_math", "book_letters"]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "katex"
tfviz_macros = {macros!r}
"""
PAGE = """
# A chapter

## One

```{{letters}}
$a$: how much of it
{declared}
```

The letter ${used}$, and $L$.
"""


@pytest.mark.parametrize(
    ("declared", "used", "said"),
    [
        ("$c$: how long", "a+c", None),
        ("$c^k$: how long", "a+c^k", None),  # k belongs to the name
        ("$c$: how long", "a+u", r"index\.md:\d+: WARNING: the letter u is declared nowhere"),
        ("$L$: a loss", "a", r"L means 'length of the sequence, in tokens' in the whole book"),
        ("$a$: another thing", "a", r"a means 'how much of it' in this chapter; take another"),
    ],
)
def test_a_letter_without_a_meaning_is_a_warning_with_its_place(
    tmp_path: Path, declared: str, used: str, said: str | None
) -> None:
    """A warning fails the build of the book."""
    project = PROJECT.format(extensions=str(ROOT / "book/_ext"), macros=MACROS)
    (tmp_path / "conf.py").write_text(project, "utf-8")
    (tmp_path / "index.md").write_text(PAGE.format(declared=declared, used=used), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-w", "said", ".", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    warnings = (tmp_path / "said").read_text("utf-8")
    assert bool(re.search(said or "WARNING", warnings)) == bool(said), warnings


# --- in the page ----------------------------------------------------------------------------------

EQUATION = ".tf-equation[tabindex]"


def test_a_letter_that_is_pointed_at_says_what_it_means(page: Any, site: Site) -> None:
    page.goto(site.url("book/notation"))
    hint, height = page.locator(".tf-hint"), page.evaluate("document.body.scrollHeight")
    letter = page.locator("p .katex-html .tf-letter").first
    letter.hover()
    assert hint.inner_text().strip()
    assert page.evaluate("document.body.scrollHeight") == height, "nothing moves"
    page.mouse.move(2, 2)
    page.locator("h1").first.hover()
    assert hint.is_hidden()


def test_a_tap_beside_a_letter_finds_it(browser: Any, site: Site) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(site.url("book/notation"))
    formula = page.locator("p .katex-html:has(.tf-letter)").first
    formula.scroll_into_view_if_needed()
    box = formula.locator(".tf-letter").first.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    hint = page.locator(".tf-hint")
    assert hint.is_visible()
    at = hint.bounding_box()
    assert at["x"] >= 0 and at["x"] + at["width"] <= 390, "within the screen"
    page.locator("h1").first.tap()
    assert hint.is_hidden()
    context.close()


@pytest.mark.usefixtures("whole_book")
def test_the_arrow_keys_go_through_the_letters_of_an_equation(page: Any, site: Site) -> None:
    page.goto(site.url("chapters/position/rotary"))
    equation = page.locator(EQUATION).first
    equation.focus()
    hint = page.locator(".tf-hint")
    assert hint.get_attribute("role") == "status"

    def pressed(key: str) -> str:
        page.keyboard.press(key)
        hint.wait_for()  # a page that still scrolls to it shows it on arrival
        return str(page.locator(".tf-pointed").text_content())

    said = [pressed("ArrowRight") for _ in range(3)]
    assert pressed("ArrowLeft") == said[1]
    page.keyboard.press("Escape")
    assert hint.is_hidden()


@pytest.mark.parametrize("name", ["chapters/longer_context/distance_scores", "book/notation"])
def test_letters_are_light(site: Site, name: str) -> None:
    text = (site.folder / f"{name}.html").read_text("utf-8")
    legend = re.findall(r'<script type="application/json" class="tf-legend">.*?</script>', text)
    assert len(legend) == 1
    names = re.sub(r" tf-letter [^\" ]+", "", text)
    script = (site.folder / "_static/js/letters.js").read_bytes()
    weight = len(gzip.compress(script)) + len(gzip.compress(legend[0].encode()))
    weight += len(gzip.compress(text.encode())) - len(gzip.compress(names.encode()))
    assert weight <= WEIGHT
