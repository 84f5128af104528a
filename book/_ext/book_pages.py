"""What surrounds the text of a page, and the files beside the pages.

The layout in `book/_templates` takes the place of the theme's own: it links one style sheet and one
small script, and more only where a page needs more (formulas, explorers, the atlas). At the end
of a build the files that no page uses are removed, and the landing page is put at the root.
"""

from __future__ import annotations

import copy
import hashlib
import html
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import book_faces
import book_heights
import book_progress
import book_reading
import book_share
import lesson_sphinx
import reference_pages
import sphinx_design
from book_reading import closing
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx.util import logging

from tfviz.stored import RESULTS
from tfviz_lessons import in_page

logger = logging.getLogger(__name__)

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "book" / "assets"
NPM = ROOT / "node_modules"
BOXES = Path(sphinx_design.__file__).parent / "static" / "sphinx-design.min.css"
SIGNS = "/* signs */"  # what follows in the sheet of the explorers is a face
WITHOUT_CUDA = "--extra-index-url https://download.pytorch.org/whl/cpu"
EMPTY_HEAD = '<th class="head" scope="col"><span class="tf-unseen">Row</span></th>'
STYLE = (
    "fonts.css",
    "roles.css",
    "page.css",
    "article.css",
    "figures.css",
    "boxes.css",
    "code.css",
    "print.css",
    "catalogue.css",
    "sphinx-design.min.css",
    "progress.css",
    "path.css",
)
"""Joined into one style sheet, in this order. A browser draws nothing before it has the last of
them, and each file is a connection: with six, Lighthouse's phone painted .4 s later."""
STYLES = ("katex.css", "tfviz.css")
"""Ours comes last: where both have a rule for formulas, the book's counts."""
MATHS = re.compile(r'class="(?:katex|tfviz-explorer)')

PAGE_FILES = (
    # what is in a page -> the script that the page needs
    (
        re.compile(r"<table[^>]* data-chapter=|<dl[^>]*glossary|tfv-(?:atlas-box|survey|errata)\b"),
        "js/tables.js",
    ),
    (re.compile(r'class="[^"]*\btfv-atlas-box'), "js/atlas.js"),
    (re.compile(r'class="tfviz-explorer"'), "js/tfviz-page.js"),
    (re.compile(r'class="tfviz-plotly"'), "js/figures.js"),
    (re.compile(r' data-tf-(?:chapter|test)="'), "js/progress.js"),
    (re.compile(r'class="tf-bar"'), "js/reading.js"),
    (re.compile(r'class="tf-ask"'), "js/asked.js"),
    (re.compile(r'class="tf-try"'), "js/try.js"),
    (re.compile(r'class="tf-legend"'), "js/letters.js"),
    (re.compile(r'class="tf-store"'), "js/progress-page.js"),
    (re.compile(r' data-tf-test="'), "js/self-test.js"),
)
UNWRITTEN = {"search": "Search", book_share.LOST: "This page does not exist"}
# What of a program has no look of its own needs no element: a tenth of a page with much code.
PLAIN_CODE = re.compile(r'<span class="(?:n|p|o|w|nb|nn|bp|vm|fm|pre)">([^<]*)</span>')
# What a figure brings along for notebooks, and SVG and MathML for files of their own: 5 KB of 150.
PLACES = re.compile(r'(?<= )(?:d|points|[xy][12]?|c[xy])="[^"]*"')
"""Attributes that say where something is drawn in a figure, in pixels."""
MARK = re.compile(
    r'<path id="(?P<id>\w+)" d="(?:(?P<line>M0 0[vh]-?[\d.]+)|[^"]*)" style="(?P<style>[^"]*)"'
)
PLACED = re.compile(r'(?P<use><use href="#(?P<id>\w+)"[^>]*?) style="(?P<style>[^"]*)"')
"""A mark or a line on an axis, and a place of it, which need not say what the mark says itself."""
FINE = re.compile(r"(\d\.\d)\d+")
"""A tenth of a pixel is seen, a hundredth is not."""
NOT_FOR_A_PAGE = re.compile(
    r"\[data-jp-theme-light[^{]*\.tfviz-figure\{[^}]*\}"  # dark colours of Jupyter and VS Code
    r"|(?<=var\(--tfviz-)(?P<role>[a-z]+), #\w+(?=\))"  # what a colour is without a style sheet
    r'| xmlns="[^"]*"| (?=/>)'
)
CLASSES = re.compile(r'class="([^"]*)"')
KEEP = re.compile(
    r"js/|explorers/|cards/|vendor/(?:plotly|python)|favicon\.svg|(?:tfviz|katex)\.css|search\.js"
)


# --- one page -------------------------------------------------------------------------------------


def without_theme(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Nothing of what the theme sets around a page: it would draw its contents, which take longest,
    only to see whether they are empty, and `layout.html` asks for none of it."""
    for name in context:
        if name == "sidebars" or re.match(r"theme_.*_(start|center|persistent|end|items)$", name):
            context[name] = []


def page_context(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Everything that `layout.html` asks for."""
    env, options = app.env, app.config.html_theme_options
    body = fold_optional(fold(context.get("body", "") or ""))
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    body = re.sub(r' id="(?:exercise|solution)-content"', "", body)
    body = re.sub(r"<th[^>]*>\s*(?:<p></p>)?\s*</th>", EMPTY_HEAD, body)
    body = PLAIN_CODE.sub(r"\1", body)
    body = lighter(body)
    body = re.sub(r"<table\b.*?</table>", scrollable, body, flags=re.S)
    context["tf_lesson"] = lesson_links(app, pagename, context)
    if context["tf_lesson"]:
        for step in (
            book_reading.tools,
            book_reading.beside,
            book_reading.bar,
            book_heights.guessed,
        ):
            body = step(body)
    context["body"] = body
    navigation = contents(app, context, pagename) if "toctree" in context else ""
    context["tf_read"] = chapter_end(app, pagename, context) if context["tf_lesson"] else ""
    everything = body + navigation + context["tf_read"] + context.get("tf_legend", "")
    wanted = [
        "js/site.js",
        "js/path.js",
        *(name for what, name in PAGE_FILES if what.search(everything)),
    ]
    # the versions of style sheets and scripts are written when the build is finished
    context["tf_scripts"] = [f"_static/{name}?v=" for name in wanted]
    styles = STYLES if MATHS.search(everything) else STYLES[1:]
    context["tf_styles"] = [f"_static/{name}?v=" for name in styles]
    context["tf_navigation"] = navigation
    title = env.titles.get(pagename)
    context["tf_title"] = title.astext() if title else context.get("title") or UNWRITTEN[pagename]
    context["tf_landing"] = pagename == app.config.root_doc
    context["tf_repository"] = home = app.config.tfviz_home
    context["tf_eyebrow"] = eyebrow(env, pagename)
    context["tf_source_page"] = (
        f"{home}/blob/{options['repository_branch']}/{env.doc2path(pagename, base=False)}"
        if home and pagename in env.found_docs
        else ""
    )


def lighter(body: str) -> str:
    """The body without what only notebooks and files of their own need."""
    body = NOT_FOR_A_PAGE.sub(lambda match: match["role"] or "", body)
    said = {}
    for mark in MARK.finditer(body):
        own = {part.partition(":")[0] for part in mark["style"].split(";")}
        said[mark["id"]] = own | ({"fill"} if mark["line"] else set())  # a line has no inside

    def placed(match: re.Match[str]) -> str:
        parts = match["style"].split(";")
        kept = [x for x in parts if x.partition(":")[0] not in said.get(match["id"], ())]
        return match["use"] + (f' style="{";".join(kept)}"' if kept else "")

    body = PLACED.sub(placed, body)
    return PLACES.sub(lambda match: FINE.sub(r"\1", match[0]), body).replace("<style></style>", "")


def fold(body: str) -> str:
    """Boxes of the class dropdown become details, which open without a script."""
    out, done = [], 0
    opening = re.compile(
        r'<div class="([^"]*\badmonition\b[^"]*)"([^>]*)>\s*'
        r'<p class="admonition-title">(.*?)</p>',
        re.S,
    )
    for match in opening.finditer(body):
        if "dropdown" not in match[1].split() or match.start() < done:
            continue
        end = closing(body, match.end(), "div")
        inner = body[match.end() : end]
        title = re.sub(r"</?a\b[^>]*>", "", match[3])  # a summary is a button: no link in it
        out.append(body[done : match.start()])
        out.append(
            f'<details class="{match[1]}"{match[2]}><summary class="admonition-title">'
            f"{title}</summary>{fold(inner)}</details>"
        )
        done = end + len("</div>")
    return "".join(out) + body[done:]


EXERCISE = re.compile(
    r'<div class="exercise admonition" id="[^"]*">\s*<p class="admonition-title">\s*'
    r'<span class="caption-number">(?P<number>[^<]*?)\s*</span>\s*</p>\s*<section\b[^>]*>\s*'
    r'<div class="tf-effort docutils">\s*<p>(?P<effort>[^<]*· optional)</p>\s*</div>\s*'
    r"<p>\s*<strong>(?P<title>.*?)</strong>",
    re.S,
)
ITS_OWN = re.compile(
    r'\s*(?:<(?P<details>details) class="solution\b|<div class="cell tag_hide-cell\b)[^>]*>'
)


def fold_optional(body: str) -> str:
    """An exercise that is not for every reader becomes one line, which opens: its number, title and
    effort. Its solution and its checks are in it."""
    out, done = [], 0
    for match in EXERCISE.finditer(body):
        if match.start() < done:
            continue
        end = closing(body, body.index(">", match.start()) + 1, "div") + len("</div>")
        while its_own := ITS_OWN.match(body, end):
            tag = its_own["details"] or "div"
            after = closing(body, its_own.end(), tag) + len(f"</{tag}>")
            if tag == "div" and "Show the checks" not in body[end:after]:
                break
            end = after
        out.append(body[done : match.start()])
        out.append(
            f'<details class="tf-optional"><summary>{match["number"]} · {unlinked(match["title"])} '
            f'<span class="tf-effort">{match["effort"]}</span></summary>'
            f"{body[match.start() : end]}</details>"
        )
        done = end
    return "".join(out) + body[done:]


def unlinked(title: str) -> str:
    """A title for a summary. That is a button: no links in it, and no hints on its symbols."""
    title = re.sub(r"</?a\b[^>]*>", "", title)
    while '<span class="tf-math">' in title:
        before, math = title.split('<span class="tf-math">', 1)
        end = closing(math, 0, "span")
        symbols = re.search(r"<math\b.*?</math>", math[:end], re.S)
        title = before + (symbols[0] if symbols else "") + math[end + len("</span>") :]
    return title


def scrollable(match: re.Match[str]) -> str:
    """A table that may be wider than a phone scrolls in its own box."""
    return f'<div class="tf-table">{match[0]}</div>'


def contents(app: Sphinx, context: dict[str, Any], pagename: str) -> str:
    """The navigation of a page; all pages of a folder that no table of contents names share it."""
    if pagename in app.env.found_docs:
        return navigation_html(context, pagename)
    folder, known = posixpath.dirname(pagename), app.tfviz_contents  # type: ignore[attr-defined]
    if folder not in known:
        known[folder] = navigation_html(context, pagename)
    return str(known[folder])


def navigation_html(context: dict[str, Any], pagename: str) -> str:
    """The book's contents, with the sections of this page below its own entry."""
    book = context["toctree"](maxdepth=1, collapse=False, includehidden=True, titles_only=True)
    book = re.sub(r' aria-level="2"| role="heading"', "", book or "")
    here = re.search(
        r'<ul>\s*<li><a class="reference internal" href="#">.*?</a>(<ul>.*</ul>)\s*</li>\s*</ul>',
        context.get("toc") or "",
        re.S,
    )
    if not here or not book:
        return book
    sections = here[1].replace("<ul>", '<ul class="tf-sections">', 1)
    return re.sub(
        r'(<a class="current reference internal" href="#">.*?</a>)',
        lambda match: match[1].replace('href="#"', 'href="#" aria-current="page"') + sections,
        book,
        count=1,
        flags=re.S,
    )


def eyebrow(env: BuildEnvironment, pagename: str) -> str:
    """What stands above the title: the number of the chapter, and its part."""
    from tfviz import catalogue

    for chapter in catalogue.CHAPTERS:
        if chapter.document == pagename:
            part = next(part for part in catalogue.PARTS if part.id == chapter.part)
            return f"Chapter {chapter.number} · {part.title}"
    return ""


def lesson_links(app: Sphinx, pagename: str, context: dict[str, Any]) -> dict[str, str] | None:
    """Where a lesson's notebook is; nothing for other pages."""
    if "kernelspec" not in app.env.metadata.get(pagename, {}):
        return None
    notebook = f"notebooks/{pagename}.ipynb"
    links = {"notebook": context["pathto"](notebook, 1)}
    if home := github_name(app):
        branch = app.config.tfviz_notebooks_branch
        lab = quote(f"lab/tree/{notebook}", safe="")
        links["colab"] = f"https://colab.research.google.com/github/{home}/blob/{branch}/{notebook}"
        links["binder"] = f"https://mybinder.org/v2/gh/{home}/{branch}?urlpath={lab}"
    return links


def github_name(app: Sphinx) -> str:
    """owner/name of the published course; empty where Colab and Binder could not read it."""
    home = re.fullmatch(r"https?://github\.com/([^/]+/[^/]+?)(\.git)?", app.config.tfviz_home)
    return home[1] if home else ""


def write_binder(app: Sphinx) -> None:
    """What Binder installs: the branch of the pages and notebooks is also what Binder opens.

    PyTorch comes without CUDA, which would make the image several times as large.
    """
    folder = Path(app.outdir, ".binder")
    shutil.rmtree(folder, ignore_errors=True)
    if github_name(app):
        folder.mkdir()
        package = lesson_sphinx.with_extra(app.config.tfviz_package)
        (folder / "requirements.txt").write_text(f"{WITHOUT_CUDA}\n{package}\n", "utf-8")
        (folder / "runtime.txt").write_text("python-3.11\n", "utf-8")


def chapter_end(app: Sphinx, pagename: str, context: dict[str, Any]) -> str:
    """The reader's tick at the end of a lesson; `progress.js` fills in the count."""
    more = ""
    if book_progress.PAGE in app.env.found_docs:
        more = f'<a href="{html.escape(context["pathto"](book_progress.PAGE))}">Your progress</a>'
    labels = html.escape(book_progress.labels(app.env, pagename))
    return (
        f'<div class="tf-read" data-tf-chapter="{html.escape(pagename)}" data-tf-labels="{labels}">'
        '<label><input type="checkbox" autocomplete="off" data-tf-read>'
        f"I have read this chapter</label><span data-tf-count></span>{more}</div>"
    )


# --- numbers --------------------------------------------------------------------------------------


def renumber(env: BuildEnvironment, numbers: dict[str, int]) -> None:
    """Give these documents these numbers, in all places where Sphinx keeps them."""
    for document, number in numbers.items():
        sections = env.toc_secnumbers.get(document, {})
        for anchor, own in sections.items():
            sections[anchor] = (number, *own[1:]) if own else own
        titles = [env.titles.get(document), env.longtitles.get(document)]
        links = [link for toc in env.tocs.values() for link in toc.findall(nodes.reference)]
        links = [link for link in links if link.get("refuri") == document]
        for node in [*titles, *links]:
            if node is not None and node.get("secnumber"):
                node["secnumber"] = (number, *node["secnumber"][1:])


def plain_numbers(app: Sphinx, env: BuildEnvironment, _: list[str]) -> None:
    """Put back Sphinx's own numbers, so that it sees a change only where there is one."""
    before = getattr(env, "tfviz_numbers", None)
    if before:
        renumber(env, before["numbers"])
        env.toc_fignumbers = before["figures"]


def chapter_numbers(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """A chapter has the number of the course, also while chapters before it are not there yet."""
    from tfviz import catalogue

    plain: dict[str, int] = {}
    course: dict[str, int] = {}
    for chapter in catalogue.CHAPTERS:
        numbers = env.toc_secnumbers.get(chapter.document, {}).get("")
        if numbers:
            plain[chapter.document], course[chapter.document] = numbers[0], chapter.number
    figures = copy.deepcopy(env.toc_fignumbers)
    changed = getattr(env, "tfviz_numbers", {}).get("course") != course
    env.tfviz_numbers = {  # type: ignore[attr-defined]
        "numbers": plain,
        "course": course,
        "figures": figures,
    }
    if plain != course:
        renumber(env, course)
        TocTreeCollector().assign_figure_numbers(env)  # which reads all pages
    return list(env.found_docs) if changed else []


# --- the whole site -------------------------------------------------------------------------------


def build_finished(app: Sphinx, problem: Exception | None) -> None:
    if problem is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    static = out / "_static"
    pages = []
    made = {*app.env.found_docs, *reference_pages.names(app.env)}
    shutil.copy(ASSETS / "embed.html", out)
    names = {*made, "index", "search", "embed", book_share.LOST}
    for page in sorted(out.rglob("*.html")):
        name = page.relative_to(out).as_posix().removesuffix(".html")
        if name in names:
            pages.append(page)
        else:
            page.unlink()  # of a document that is no more
    work = out.parent / ".fonts"
    write_explorers(static, work / "explorers")
    write_styles(static, pages, work)  # which hold what the explorers draw
    write_python(static, pages)
    book_share.write_cards(app, static, out.parent / ".cards")
    book_share.write_sitemap(app, made)
    book_share.write_lost(app)
    for file in sorted(static.rglob("*"), reverse=True):
        name = file.relative_to(static).as_posix()
        if file.is_dir():
            if not any(file.iterdir()):
                file.rmdir()
        elif not KEEP.match(name):
            file.unlink()
    for name in (".buildinfo", "objects.inv", "_sphinx_design_static", "reports"):
        target = out / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
    landing = out / f"{app.config.root_doc}.html"
    folder = posixpath.dirname(app.config.root_doc)
    (out / "index.html").write_text(moved(landing.read_text("utf-8"), folder), "utf-8")
    (out / ".nojekyll").touch()
    write_binder(app)


def write_styles(static: Path, pages: list[Path], work: Path) -> None:
    """Write style sheets and scripts without what is for us, and their versions into every page."""
    drawn = book_faces.explorers(static / "explorers")
    written, used = set[str](), set[str]()
    for page in pages:
        text = page.read_text("utf-8")
        written |= set(html.unescape(text))
        used |= {name for names in set(CLASSES.findall(text)) for name in names.split()}
    made = {
        "fonts.css": book_faces.text_style(written, drawn, work),
        BOXES.name: used_only(BOXES.read_text("utf-8"), used),
    }
    joined = "\n".join(
        made[name] if name in made else (ASSETS / "css" / name).read_text("utf-8") for name in STYLE
    )
    own = re.sub(r"/\*.*?\*/|^\s+", "", joined, flags=re.S | re.M)  # comments are for us
    own = re.sub(r"\s*([{};,>])\s*", r"\1", own).replace(";}", "}")
    rules = used_only(book_faces.KATEX_STYLE.read_text("utf-8"), used)
    sheets = {"tfviz.css": own, "katex.css": book_faces.maths_style(pages, drawn, work) + rules}
    kit = static / "explorers" / "kit.css"
    rules_of_kit = kit.read_text("utf-8").partition(SIGNS)[0]
    kit.write_text(f"{rules_of_kit}{SIGNS}{book_faces.signs_style(drawn, work)}", "utf-8")
    digests = {}
    for name, style in sheets.items():
        (static / name).write_text(style, "utf-8")
        digests[name] = hashlib.sha256(style.encode()).hexdigest()[:8]
    for script in sorted((ASSETS / "js").glob("*.js")):
        if not (static / "js" / script.name).exists():
            continue  # the worker's: `write_python`
        # none of them has a text of two lines
        code = re.sub(r"^\s*//.*\n|^\s+", "", script.read_text("utf-8"), flags=re.M)
        (static / "js" / script.name).write_text(code, "utf-8")
        digests[f"js/{script.name}"] = hashlib.sha256(code.encode()).hexdigest()[:8]
    address = re.compile(rf'(_static/({"|".join(map(re.escape, digests))})\?v=)\w*(?=">)')
    for page in pages:
        before = page.read_text("utf-8")
        after = address.sub(lambda match: match[1] + digests[match[2]], before)
        if after != before:
            page.write_text(after, "utf-8")


def restyle(out: Path) -> None:
    """Write the style sheets of a site that is built, where nothing but them has changed."""
    write_styles(out / "_static", sorted(out.rglob("*.html")), out.parent / ".fonts")


def used_only(style: str, used: set[str]) -> str:
    """The rules of a style sheet whose classes are used; none for a width of the window."""
    style = re.sub(r"@[^{;]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)
    kept = []
    for selectors, rule in re.findall(r"([^{}]+)(\{[^{}]*\})", style):
        mine = [
            x for x in selectors.split(",") if used.issuperset(re.findall(r"\.([a-z][\w-]*)", x))
        ]
        if mine:
            kept.append(",".join(mine) + rule)
    return "".join(kept)


def write_explorers(static: Path, stamp: Path) -> None:
    """The modules of the explorers, and plotly; only if the library or its results have changed."""
    digest = hashlib.sha256(str(static).encode())
    for file in sorted([*(ROOT / "tfviz").rglob("*"), *RESULTS.rglob("*.json")]):
        if file.suffix in {".py", ".js", ".css", ".toml", ".json"}:
            digest.update(file.read_bytes())
    folder = static / "explorers"
    if folder.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    from tfviz.explorers import write_assets

    shutil.rmtree(folder, ignore_errors=True)
    write_assets(folder)
    (static / "vendor").mkdir(parents=True, exist_ok=True)
    plotly = NPM / "plotly.js-cartesian-dist-min" / "plotly-cartesian.min.js"
    shutil.copyfile(plotly, static / "vendor" / "plotly.min.js")
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(digest.hexdigest())


def write_python(static: Path, pages: list[Path]) -> None:
    """Python for the exercises that are tried in a page, where a page has one."""
    worker, file = static / "js" / "try-worker.js", static / "vendor" / "python.js"
    if any('class="tf-try"' in page.read_text("utf-8") for page in pages):
        try:
            in_page.write_python(NPM, ASSETS / "js" / worker.name, file)
        except FileNotFoundError as lost:
            logger.warning("no Python for the pages: %s is missing; `make env`", lost.filename)
    else:
        file.unlink(missing_ok=True)
    worker.unlink(missing_ok=True)  # python.js holds it


def moved(page: str, folder: str) -> str:
    """A page of `folder` as it must read at the root: its relative addresses start there."""

    def there(match: re.Match[str]) -> str:
        before, address, after = match[1], html.unescape(match[2]), match[3]
        if re.match(r"[a-z]+:|//|#|$", address):
            return match[0]
        path = re.split(r"[?#]", address, maxsplit=1)[0]
        moved_path = posixpath.normpath(posixpath.join(folder, path))
        return before + html.escape(moved_path + address[len(path) :]) + after

    page = re.sub(r'(\s(?:href|src)=")([^"]*)(")', there, page)
    return page.replace('data-content_root="../"', 'data-content_root="./"')


def started(app: Sphinx) -> None:
    app.tfviz_contents = {}  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", started)
    app.connect("html-page-context", without_theme, priority=100)
    app.connect("html-page-context", page_context, priority=900)
    app.connect("env-before-read-docs", plain_numbers)
    app.connect("env-get-updated", chapter_numbers, priority=900)
    app.connect("build-finished", build_finished, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
