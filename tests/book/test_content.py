"""The pages that are not lessons: sources that agree, directives that draw what the data say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any

import catalogue_directives as cards
import measured_directives
import pytest
import tfviz_book
import thumbnails
from pybtex.database import parse_file

from tfviz import anatomy, catalogue
from tfviz.exhibits import EXHIBITS
from tfviz.stored import race
from tfviz_lessons.outline import outline_of

ROOT = Path(__file__).parents[2]

BOOK = sorted((ROOT / "book").glob("*.md"))
LESSONS = sorted((ROOT / "chapters").glob("*/*.md"))
PAGES = BOOK + LESSONS
SEEDED = ("instructors", "how_we_measure", "how_a_baseline_lost")
"""Pages on which a seed is one of random numbers."""
ERRATA = cards.load_errata(ROOT / "book/errata.toml")
name = lambda path: path.stem  # noqa: E731


# --- sources ------------------------------------------------------------------------------------


def test_all_pages_of_the_frame_are_there() -> None:
    wanted = ["index", "how_to_use", "notation", "progress", "atlas", "errata", "glossary"]
    wanted += ["surveys", "claims", "reference", "after_the_survey"]
    wanted += [
        "paths",
        "self_test",
        "how_a_baseline_lost",
        "how_we_measure",
        "your_own_mask",
        "from_a_name",
        "model",
        "examine_yours",
        "what_a_token_costs",
        "syllabus",
        "sessions",
        "references",
        "licences",
        "instructors",
        "instructors_grading",
        "instructors_hub",
    ]
    assert {path.stem for path in BOOK} == set(wanted)
    toc = (ROOT / "_toc.yml").read_text()
    for stem in wanted:
        assert f"book/{stem}" in toc


def test_errata_are_numbered_without_gaps() -> None:
    assert [entry["number"] for entry in ERRATA] == list(range(1, 54))
    for entry in ERRATA:
        assert entry["says"].strip() and entry["should"].strip() and entry["sources"]
        for text in (entry["says"], entry["should"]):
            assert text.count("$") % 2 == 0, entry["number"]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_errata_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    numbers = re.findall(r"\{erratum\}\s*E(\d+)", text) + re.findall(r"erratum-e(\d+)", text)
    assert {int(number) for number in numbers} <= {entry["number"] for entry in ERRATA}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_cited_papers_exist(page: Path) -> None:
    keys = set(parse_file(str(ROOT / "book/references.bib")).entries)
    cited = re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", page.read_text("utf-8"))
    assert {key.strip() for group in cited for key in group.split(",")} <= keys


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_that_a_page_shows_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make ([a-z][a-z-]*)\b", page.read_text("utf-8"), re.M):
        assert re.search(rf"^{target}:", makefile, re.M), f"no target {target} in the Makefile"


@pytest.mark.parametrize("page", LESSONS, ids=name)
def test_a_measured_box_can_be_read_at_a_glance(page: Path) -> None:
    """A verdict beside its figure; what limits it may stand below the box, or under Deeper."""
    boxes = outline_of(page).named("measured")
    assert boxes and max(len(box.body.split()) for box in boxes) <= 60, boxes


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_sources_have_names(page: Path) -> None:
    """Authors and years, not the numbers of a private list."""
    text = page.read_text("utf-8")
    assert not re.search(r"\bseeds? 00\d\b", text)
    if page in BOOK and not page.stem.startswith(SEEDED):
        assert not re.search(r"\bseeds?\b", text, re.I)


def test_errata_and_catalogue_name_their_sources() -> None:
    for path in ("book/errata.toml", "tfviz/catalogue.toml"):
        assert not re.search(r"\bseeds?\b", (ROOT / path).read_text("utf-8"), re.I)


def glossary() -> dict[str, str]:
    (box,) = outline_of(ROOT / "book/glossary.md").named("glossary")
    return dict(re.findall(r"^(\S.*)\n((?:  .*\n?)+)", box.body, re.M))


def test_the_glossary_is_sorted_and_defines_each_word_once() -> None:
    words = list(glossary())
    assert len(words) > 40
    assert words == sorted(set(words), key=str.lower)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_terms_are_in_the_glossary(page: Path) -> None:
    for found in re.findall(r"\{term\}`([^`]+)`", page.read_text("utf-8")):
        target = re.search(r"<(.+)>", found)
        assert (target[1] if target else found) in glossary()


def test_the_window_words_mean_in_code_what_the_notation_says() -> None:
    from tfviz import patterns

    L, i, r, w = 32, 16, 3, 5
    assert int(patterns.band(radius=r).mask(L)[i].sum()) == 2 * r + 1
    assert int(patterns.sliding_window(lookback=w).mask(L)[i].sum()) == w + 1


# --- directives, in a build of their own --------------------------------------------------------

CONF = """
extensions = [
    *("myst_nb", "sphinxcontrib.bibtex"),
    *("catalogue_directives", "measured_directives", "models_directives"),
]
myst_enable_extensions = ["dollarmath"]
bibtex_bibfiles = ["book/references.bib"]
bibtex_reference_style = "author_year"
html_theme = "basic"
html_static_path = ["assets"]
html_css_files = ["css/catalogue.css"]
html_js_files = ["js/tables.js", "js/atlas.js"]
nb_execution_mode = "off"
root_doc = "index"
mathjax_path = "js/none.js"  # formulas are not drawn here
suppress_warnings = ["myst.header"]
"""
INDEX = """
# Start

```{course-map}
```

```{toctree}
card
heads
book/atlas
book/errata
book/references
chapters/sparse/factorized
```
"""
CHAPTER = "\n".join(
    f"({row.id})=\n## {row.name}\n\n```{{mechanism}} {row.id}\n```\n"
    for row in catalogue.MECHANISMS
    if row.chapter_number == 17
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small site of the pages that these directives fill; any warning is an error."""
    from sphinx.cmd.build import build_main

    source = tmp_path_factory.mktemp("source")
    (source / "book").mkdir()
    (source / "chapters/sparse").mkdir(parents=True)
    for page in ("atlas.md", "errata.md", "references.md", "errata.toml", "references.bib"):
        text = (ROOT / "book" / page).read_text("utf-8")
        text = re.sub(r"\{(?:doc|ref)\}`([^<`]+) <[^`]+>`", r"\1", text)  # to other pages
        (source / "book" / page).write_text(text, "utf-8")
    for kind, file in (("css", "catalogue.css"), ("js", "tables.js"), ("js", "atlas.js")):
        (source / "assets" / kind).mkdir(parents=True, exist_ok=True)
        text = (ROOT / "book/assets" / kind / file).read_text("utf-8")
        (source / "assets" / kind / file).write_text(text, "utf-8")
    (source / "conf.py").write_text(CONF)
    (source / "index.md").write_text(INDEX)
    (source / "heads.md").write_text(
        "# Heads\n\n{public}`using alibi` of {public}`models`, {public}`share 2025 rope`.\n\n"
        "```{head-schemes} falcon-7b glm-5\n```\n"
    )
    (source / "card.md").write_text("# Card\n\n```{mechanism} linformer\n```\n")
    (source / "chapters/sparse/factorized.md").write_text(f"# Factorised\n\n{CHAPTER}")
    out = tmp_path_factory.mktemp("site")
    assert build_main(["-q", "-W", "--keep-going", "-b", "html", str(source), str(out)]) == 0
    return out


@pytest.fixture
def html(site: Path) -> Any:
    return lambda page: (site / page).read_text("utf-8")


def test_the_atlas_has_a_row_for_each_mechanism(html: Any) -> None:
    text = html("book/atlas.html")
    rows = re.findall(r'<tr [^>]*id="atlas-(\w+)"[^>]*>(.*?)</tr>', text, re.S)
    assert [found for found, _ in rows] == [row.id for row in catalogue.MECHANISMS]
    for row, (_, body) in zip(catalogue.MECHANISMS, rows, strict=True):
        assert row.chapter_title in body.replace("&amp;", "&")
        assert body.count('class="math') == 2  # formulas are math nodes, not text
        assert 'href="references.html#' in body  # the paper is a citation
        if row.chapter_number == 17 and row.built:
            assert f'href="../chapters/sparse/factorized.html#{row.id.replace("_", "-")}"' in body


def test_an_address_that_nobody_has_set_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    for address, home in ((tfviz_book.ADDRESS, ""), ("https://x.org/a/b/", "https://x.org/a/b")):
        options = {"repository_url": address, "repository_branch": "main"}
        config: Any = SimpleNamespace(html_theme_options=options, html_baseurl="", tfviz_package="")
        app: Any = SimpleNamespace(config=config)
        tfviz_book.addresses(app, config)
        assert config.tfviz_home == home
        assert config.tfviz_package == (f"tfviz @ git+{home}@main" if home else "")
        text = [f"git clone {tfviz_book.ADDRESS} tfviz"]
        tfviz_book.own_address(app, "page", text)
        assert text == [f"git clone {home or 'ADDRESS-OF-THE-COURSE'} tfviz"]


def test_every_mechanism_that_is_ready_has_a_small_picture_from_its_code() -> None:
    assert list(EXHIBITS) == [row.id for row in catalogue.MECHANISMS if row.built]
    seen = set()
    for name, exhibit in EXHIBITS.items():
        picture = exhibit.picture()
        assert picture.shape == (24, 24) and picture.min() >= 0 and picture.max() <= 1.001, name
        assert picture.std() > 0.1, f"{name}: one colour"
        seen.add(thumbnails.thumbnail(name))
    assert len(seen) == len(EXHIBITS), "two are alike"


def test_the_tree_has_a_mark_for_each_mechanism_and_a_line_for_each_debt(html: Any) -> None:
    text = html("book/atlas.html")
    marks = re.findall(r'<a class="tfv-mark[^"]*" data-id="(\w+)"', text)
    assert sorted(marks) == sorted(row.id for row in catalogue.MECHANISMS)
    edges = re.findall(r'data-from="(\w+)" data-to="(\w+)"', text)
    assert sorted(edges) == sorted((p, r.id) for r in catalogue.MECHANISMS for p in r.builds_on)
    tree = text[text.index('<svg class="tfv-tree"') :]
    assert 'role="group" aria-label="Family tree of the 93' in tree
    for address in re.findall(r'<a class="tfv-mark[^>]* href="([^"]+)"', text):
        page, _, anchor = address.partition("#")
        target = (page and html(f"book/{page}")) or text
        assert f'id="{anchor}"' in target, address


def test_marks_of_the_tree_do_not_overlap(html: Any) -> None:
    text = html("book/atlas.html")
    boxes = [
        tuple(map(float, found))
        for found in re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)" rx', text)
    ]
    assert len(boxes) == 93
    for a, (x1, y1, w1, h1) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[:a]:
            assert x1 + w1 - 3 <= x2 or x2 + w2 - 3 <= x1 or y1 + h1 <= y2 or y2 + h2 <= y1


def test_a_card_says_what_the_catalogue_says(html: Any) -> None:
    text, row = html("card.html"), catalogue.get("linformer")
    assert row.idea in text and "Changes the keys and values" in text
    assert 'href="book/references.html#' in text
    assert text.count('class="math') == 2
    marks = re.findall(r'<abbr [^>]*class="tfv-peer is-(\w+)"[^>]*>([^<(]+?)(?: \(|<)', text)
    assert marks == [
        (mark, cards.IN_FULL.get(peer, peer))
        for peer, mark in row.libraries.items()
        if mark != "none"
    ]


def test_a_card_names_the_models_in_which_a_mechanism_lives_on(html: Any) -> None:
    models = len(anatomy.names())
    found = re.findall(
        r"<dt>Lives on in</dt><dd>(.*?)</dd>", html("chapters/sparse/factorized.html")
    )
    assert found == 2 * [f"1 of {models} public models: GPT-3 175B"]
    assert "Lives on in" not in html("card.html")  # no model has linformer


def test_public_models_are_counted_in_a_page(html: Any) -> None:
    text = html("heads.html")
    assert re.search(rf"<p>3 of {len(anatomy.names())}, \d+\u00a0%\.</p>", text)
    rows = [re.findall(r"<td>(?:<p>)?(.*?)(?:</p>)?</td>", row) for row in text.split("<tr ")]
    assert ["Falcon 7B", "MQA", "71", "1", "64", "128"] in rows
    assert ["GLM-5", "MLA", "64", "–", "256", "704"] in rows


@pytest.mark.parametrize("part", catalogue.CHANGES)
def test_the_drawing_marks_the_changed_part_and_nothing_else(part: str) -> None:
    plain, drawn = cards.block_svg([], "x"), cards.block_svg([part], "x")
    assert "is-changed" not in plain
    assert "is-changed" in drawn
    assert plain == drawn.replace("is-changed", "is-same")  # always the same block


def test_a_press_on_a_part_of_the_block_leads_to_its_section() -> None:
    drawn = cards.block_svg(["mask"], "x", {words: f"#{words}" for words in cards.OWNERS})
    found = re.findall(
        r'<a href="#([^"]+)" aria-label="[^"]+"( tabindex="-1")?>.*?<text[^>]*>([^<]+)</text>',
        drawn,
    )
    assert {words for words, _, _ in found} == set(cards.OWNERS)
    assert all(words == text for words, _, text in found)
    assert [words for words, skipped, _ in found if not skipped] == ["mask"]
    assert all(catalogue.get(name).built for name in cards.OWNERS.values())


def test_the_map_offers_what_is_ready_and_no_more(html: Any) -> None:
    text = html("index.html")
    text = text[text.index('class="tfv-map"') : text.index("</ol></li></ol>")]
    assert len(re.findall(r'<li class="is-(?:built|planned)">', text)) == 32
    assert re.findall(r'href="(chapters/[^"]+)"', text) == ["chapters/sparse/factorized.html"]


def test_each_erratum_has_its_anchor(html: Any) -> None:
    text = html("book/errata.html")
    for entry in ERRATA:
        assert text.count(f'id="erratum-e{entry["number"]}"') == 1
    assert "November 2026" in text


def test_an_unknown_mechanism_fails_the_build(tmp_path: Path) -> None:
    from sphinx.cmd.build import build_main

    (tmp_path / "conf.py").write_text(CONF.replace('"book/references.bib"', ""))
    (tmp_path / "index.md").write_text("# X\n\n```{mechanism} longform\n```\n")
    (tmp_path / "assets/css").mkdir(parents=True)
    log = tmp_path / "log"
    build_main(["-q", "-w", str(log), "-b", "html", str(tmp_path), str(tmp_path / "out")])
    assert "did you mean 'longformer'" in log.read_text()


# --- the filter, in a browser -------------------------------------------------------------------


@pytest.fixture
def atlas(site: Path, page: Any) -> Iterator[Any]:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{(site / 'book/atlas.html').as_uri()}")
    yield page
    assert errors == []


def shown(page: Any) -> set[str]:
    return set(
        page.evaluate(
            "[...document.querySelectorAll('.tfv-atlas tbody tr')].filter(r => !r.hidden)"
            ".map(r => r.id.replace('atlas-', ''))"
        )
    )


@pytest.mark.parametrize(
    "fields, wanted",
    [
        ({"part": "position"}, lambda r: r.part == "position"),
        ({"growth": "between"}, lambda r: r.growth == "between"),
        ({"changes": "memory"}, lambda r: "memory" in r.changes),
        ({"from": "2021", "to": "2022"}, lambda r: 2021 <= r.year <= 2022),
        (
            {"part": "sparse", "growth": "linear"},
            lambda r: (r.part, r.growth) == ("sparse", "linear"),
        ),
        (
            {"growth": "linear", "runs": "causal"},
            lambda r: r.growth == "linear" and r.id in race.table("causal"),
        ),
    ],
)
def test_the_filter_shows_what_the_catalogue_says(atlas: Any, fields: Any, wanted: Any) -> None:
    for field, value in fields.items():
        control = atlas.locator(f".tfv-atlas-filter [name={field}]")
        control.select_option(value) if field not in ("from", "to") else control.fill(value)
    rows = {row.id for row in catalogue.MECHANISMS if wanted(row)}
    assert shown(atlas) == rows and rows
    assert atlas.locator(".tfv-atlas-count").first.inner_text() == f"{len(rows)} of 93 mechanisms"


def test_search_and_the_box_for_formulas(atlas: Any) -> None:
    atlas.locator(".tfv-atlas-filter [name=q]").fill("child 2019")
    assert {"sparse_transformer_strided", "sparse_transformer_fixed"} <= shown(atlas)
    assert all(catalogue.get(i).bibkey == "child2019generating" for i in shown(atlas))
    atlas.locator(".tfv-atlas-filter [name=q]").fill("")
    atlas.locator(".tfv-atlas-filter [name=formula]").check()
    assert shown(atlas) == {row.id for row in catalogue.MECHANISMS if row.formula}


ADDRESSES = ["%", "%E9", "%%", "atlas?q=%", "atlas?q=%E9&part=%", "atlas-%", "a%2", "=%"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_any_address_opens_the_atlas(atlas: Any, address: str) -> None:
    page = atlas.url
    atlas.goto("about:blank")
    atlas.goto(f"{page}#{address}")
    every = f"{len(catalogue.MECHANISMS)} mechanisms"
    atlas.locator(".tfv-atlas-count", has_text=every).first.wait_for()


@pytest.mark.parametrize("words", ["100%", "50%25", "a&b=c", "ü 李", "+1", "#", "%41"])
def test_any_words_of_the_search_are_kept_by_the_address(atlas: Any, words: str) -> None:
    field = atlas.locator(".tfv-atlas-filter [name=q]")
    field.fill(words)
    atlas.reload()
    assert field.input_value() == words


def test_the_address_keeps_the_filter(atlas: Any) -> None:
    atlas.locator(".tfv-atlas-filter [name=part]").select_option("heads")
    atlas.locator(".tfv-atlas-filter [name=q]").fill("key")
    before = shown(atlas)
    atlas.reload()
    assert shown(atlas) == before and 0 < len(before) < 9
    atlas.keyboard.press("Tab")
    atlas.locator("button[type=reset]").press("Enter")
    atlas.wait_for_function("!location.hash")
    assert len(shown(atlas)) == 93


def test_a_link_to_a_hidden_row_shows_it(atlas: Any) -> None:
    atlas.locator(".tfv-atlas-filter [name=part]").select_option("heads")
    atlas.evaluate("location.hash = '#atlas-longformer'")
    atlas.wait_for_function("!document.getElementById('atlas-longformer').hidden")
    assert len(shown(atlas)) == 93


def test_focus_on_a_mark_lights_what_it_rests_on_and_what_rests_on_it(atlas: Any) -> None:
    atlas.locator("[data-id=longformer]").focus()
    kin = set(
        atlas.evaluate("[...document.querySelectorAll('.tfv-mark.is-kin')].map(m => m.dataset.id)")
    )

    def follow(start: str, step: Any) -> set[str]:
        found: set[str] = set()
        queue = [start]
        while queue:
            for other in step(queue.pop()):
                if other not in found:
                    found.add(other)
                    queue.append(other)
        return found

    above = follow("longformer", lambda i: catalogue.get(i).builds_on)
    below = follow("longformer", lambda i: [r.id for r in catalogue.MECHANISMS if i in r.builds_on])
    assert kin == above | below | {"longformer"}


@pytest.mark.parametrize("width", [390, 1600])
def test_the_page_is_no_wider_than_the_screen(atlas: Any, width: int) -> None:
    atlas.set_viewport_size({"width": width, "height": 844})
    atlas.reload()
    assert atlas.evaluate("document.documentElement.scrollWidth") <= width
    if width == 390:  # the tree scrolls in its own box, and begins where the Transformer does
        assert atlas.locator(".tfv-tree-box").evaluate("b => b.scrollLeft") > 100
    lines = atlas.locator(".tfv-atlas tbody tr").first.evaluate("r => getComputedStyle(r).display")
    assert lines == ("block" if width == 390 else "table-row")


def test_without_a_script_the_table_is_complete(site: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "book/atlas.html").as_uri())
    assert page.locator(".tfv-atlas tbody tr").count() == 93
    assert page.locator(".tfv-atlas tbody tr").last.is_visible()
    assert page.locator(".tfv-atlas-filter").count() == 0
    context.close()


def test_the_measured_table_holds_the_stored_numbers(atlas: Any) -> None:
    rows = atlas.locator(".tfv-measured tbody tr")
    shown = rows.evaluate_all("all => all.map(r => [...r.cells].slice(1).map(c => c.textContent))")
    stored = [
        [kind, *map(measured_directives.written, numbers.values())]
        for kind, _, numbers in measured_directives.measured()
    ]
    assert shown == stored
    for kind, name, numbers in measured_directives.measured():
        row = race.table(kind)[name]
        assert numbers["text"] == mean(row["text"]), name
        assert numbers["time, L = 4,096"] == row["time"][-1], name
    assert atlas.locator(".tfviz-figure .tfviz-plotly button").count() == 1


def test_the_measured_table_sorts_and_what_is_not_there_comes_last(atlas: Any) -> None:
    heads = atlas.locator(".tfv-measured thead button")
    names = heads.all_inner_texts()
    for name in ("text", "error"):
        column = names.index(name)
        for press, sign in (("ascending", 1), ("descending", -1)):
            heads.nth(column).press("Enter")
            sorted_by = atlas.locator(".tfv-measured [aria-sort]")
            assert sorted_by.get_attribute("aria-sort") == press
            cells = f".tfv-measured tbody tr > :nth-child({column + 1})"
            texts = atlas.locator(cells).all_text_contents()
            values = [float(text) for text in texts if text != "–"]
            assert values == sorted(values, key=lambda x: sign * x) and len(set(values)) > 3
            assert texts[len(values) :] == ["–"] * (len(texts) - len(values))


def test_the_measured_table_shows_one_kind_of_model_or_what_is_exact(atlas: Any) -> None:
    def shown() -> list[str]:
        return atlas.locator(".tfv-measured tbody tr:visible th").all_inner_texts()

    def names(*kinds: str) -> list[str]:
        return [catalogue.get(name).short for kind in kinds for name in race.table(kind)]

    field = atlas.locator("form:has(+ .tfv-atlas-count) [name=kind]")
    assert shown() == names("causal")
    field.select_option("encoder")
    assert shown() == names("encoder")
    field.select_option("both")
    assert shown() == names("causal", "encoder")
    atlas.locator("[name=exact]").check()
    exact = [
        catalogue.get(name).short
        for kind in race.KINDS
        for name, row in race.table(kind).items()
        if row["exactness"] == "exact"
    ]
    assert shown() == exact
    assert (
        f"{len(exact)} of {len(names(*race.KINDS))} rows"
        in atlas.locator("form:has([name=exact]) + .tfv-atlas-count").inner_text()
    )


def test_a_filter_dims_the_tree(atlas: Any) -> None:
    atlas.locator(".tfv-atlas-filter [name=part]").select_option("heads")
    out = set(atlas.locator(".tfv-mark.is-out").evaluate_all("m => m.map(x => x.dataset.id)"))
    assert out == {row.id for row in catalogue.MECHANISMS if row.part != "heads"}


@pytest.mark.parametrize(
    ("printed", "scrolls"),
    [
        ("8,197 words; 16% of those held out have no number\nafter  before", False),
        ("kept       12\nrecomputed  3", True),
        ("tensor([[0., 1.],\n        [1., 0.]])", True),
        ("one line  of two columns", False),
    ],
)
def test_columns_scroll_and_sentences_wrap(printed: str, scrolls: bool) -> None:
    from book_code import COLUMNS

    assert (len(COLUMNS.findall(printed)) > 1) == scrolls


# --- nothing is left out ------------------------------------------------------------------------

NAMES = """
non-local means; non-local network; relational network; convolutional network; recurrent network;
deep belief network; sequence to sequence; behaviour cloning; GAIL; ByteNet; GNMT; ConvS2S;
mixture of experts; Deep-Att; SASA; HaloNet; LR-Net; SAN; DETR; UNITER; VisualBERT; ViLBERT;
Visual Transformer; Whisper; connectionist temporal classification; FAISS; ScaNN;
maximum inner product search; contrastive predictive coding; gradient checkpointing;
mixed precision; block-sparse kernel; capsule network; feature-wise linear modulation; LIMoE;
MERLOT Reserve; VATT
"""
"""What the surveys name in passing: each has a word in the glossary that leads on."""

IN_THE_TABLE = ("T5's relative bias", "Star-Transformer", "adapters", "BERT's heads", "Augmented")


def test_what_the_surveys_name_in_passing_is_in_the_glossary_with_a_link() -> None:
    known = {row.id for row in catalogue.MECHANISMS}
    for word in (word.strip() for word in NAMES.split(";")):
        (place,) = re.findall(r"See also \{ref\}`[^<`]+ <([\w-]+)>`\.", glossary()[word])
        built = place in known and catalogue.get(place).built
        assert built or place.removeprefix("atlas-") in known, f"{word}: {place}"
    table = outline_of(ROOT / "book/glossary.md").titled("Names you will meet")
    for word in IN_THE_TABLE:
        (line,) = [line for line in table.text.splitlines() if word in line]  # type: ignore[union-attr]
        places = re.findall(r"\]\((\w+)\)", line)
        assert places and {*places} <= known | {"t5_relative_bias"}, line


@pytest.mark.parametrize("entry", ERRATA, ids=lambda entry: f"E{entry['number']}")
def test_a_chapter_tells_each_erratum_where_it_is_met(entry: Any) -> None:
    number, names = entry["number"], entry.get("mechanisms", [])
    if number == 49:  # numbers of references, all over the article
        assert not names
        return
    assert names
    texts = [
        (ROOT / f"{catalogue.get(name).document}.md").read_text("utf-8")
        for name in names
        if catalogue.get(name).built
    ]
    assert texts and any(re.search(rf"E{number}\b|erratum-e{number}\b", text) for text in texts)


def test_each_place_where_a_reader_got_lost_has_its_remedy() -> None:
    text = (ROOT / "book/surveys.md").read_text("utf-8").split("### Where the reader got lost")[1]
    rows = re.findall(r"^\| (?!where|---)(.+?) \| (.+?) \| (.+) \|$", text, re.M)
    assert len(rows) == 12
    for place, _, helps in rows[1:]:  # the first is the article as a whole
        names = re.findall(r"\]\((\w+)\)", helps)
        assert names, place
        for name in names:  # each has something that moves
            assert catalogue.get(name).built and catalogue.get(name).explorers, name
