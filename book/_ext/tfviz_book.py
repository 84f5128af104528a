"""What makes the pages of this book: one extension, loaded from `_config.yml`.

book_math     formulas, rendered by KaTeX while the book is built
book_letters  what each letter of a formula means, said by the formula
book_layers   the 90 seconds, and what is folded because it goes deeper or is not for everybody
book_reading  how calm a chapter looks: code buttons, captions beside pictures, the bar of views
book_heights  how tall what is not drawn yet will be
book_boxes    {try}, {differs}, {erratum}, {measured}
book_code     {source} and {explorer}
book_examined {examined}: what the laws say of a broken attention
book_rests    what a page rests on, and so when it is read again
book_search   the index of the search
book_pages    the assets and the navigation of each page, and what surrounds the pages
book_share    title, sentence and picture of a shared page; site map; 404.html; reports of mistakes
lesson_sphinx exercises and notebooks from the source of a lesson
book_progress  what the reader has done: rows of exercises, counts, the page of progress
catalogue_directives    cards, atlas, family tree, map, errata
measured_directives     what was measured of the family
baseline_directives     what comparisons are held against, and how one baseline lost
token_costs             what a token costs: its numbers, tables, figures and questions
survey_directives       every heading of the surveys, with the section that answers it
claims_directives       the ledger of the surveys' claims
heirs                   the pictures of what came after the surveys
models_directives       {public}, {head-schemes}: public models, counted
paths                   reading paths and the syllabus, with minutes
self_test               a test of each part, from the five questions of its chapters
reference_pages         a page for each room of the library
instructor_directives   how grading works, its limits, the bad submissions
"""

from __future__ import annotations

import os
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

PARTS = (
    "book_rests",
    "book_math",
    "book_letters",
    "book_layers",
    "book_boxes",
    "book_code",
    "book_examined",
    "book_pages",
    "book_share",
    "lesson_sphinx",
    "catalogue_directives",
    "measured_directives",
    "baseline_directives",
    "token_costs",
    "survey_directives",
    "claims_directives",
    "heirs",
    "models_directives",
    "paths",
    "self_test",
    "reference_pages",
    "book_progress",
    "instructor_directives",
    "book_search",
)

ADDRESS = "https://github.com/tfviz_course/tfviz"
"""What the sources of the pages write, and `_config.yml` as long as nobody has set its own. Nothing
is there: a button that leads to it is not shown."""


def addresses(app: Sphinx, config: Config) -> None:
    """Complete the addresses of `_config.yml`; on GitHub, with those of the running repository."""
    options = config.html_theme_options
    if home := os.environ.get("GITHUB_REPOSITORY"):
        server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
        options["repository_url"] = f"{server}/{home}"
        options["repository_branch"] = os.environ.get(
            "GITHUB_REF_NAME", options["repository_branch"]
        )
        if not config.html_baseurl and os.environ.get("GITHUB_REPOSITORY_OWNER"):
            config.html_baseurl = pages_of(home)
    if os.environ.get("TFVIZ_DRAFT"):
        config.nb_execution_raise_on_error = False
    options["repository_url"] = options["repository_url"].rstrip("/")
    config.tfviz_home = "" if options["repository_url"] == ADDRESS else options["repository_url"]
    if config.tfviz_home and not config.tfviz_package:
        branch = options["repository_branch"]
        config.tfviz_package = f"tfviz @ git+{config.tfviz_home}@{branch}"


def pages_of(home: str) -> str:
    """Where GitHub serves the pages of owner/name."""
    owner, name = home.split("/")
    host = f"{owner.lower()}.github.io"
    # a repository named like the host of the owner's pages is their root
    return f"https://{host}/" + f"{name}/" * (name.lower() != host)


def read_online(url: str) -> str:
    """What the README says, by the repository that `_config.yml` names; its test compares."""
    home = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)(?:\.git)?/?", url)
    if not home or url.rstrip("/") == ADDRESS:
        listed = "[deployments](../../deployments/github-pages) of this repository"
        return f"On GitHub, the {listed} name the address"
    return f"The book is at <{pages_of(home[1])}>"


def own_address(app: Sphinx, page: str, source: list[str]) -> None:
    """A page that says where to clone from names `ADDRESS`; readers see that of this book."""
    here = app.config.tfviz_home or "ADDRESS-OF-THE-COURSE"
    source[0] = re.sub(rf"{re.escape(ADDRESS)}(?![\w./-])", lambda _: here, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("tfviz_package", "", "", str)  # of notebooks; no page has it
    app.add_config_value("tfviz_home", "", "env", str)  # where the course is published, if it is
    app.add_config_value("tfviz_notebooks_branch", "gh-pages", "html", str)
    app.connect("config-inited", addresses)
    app.connect("source-read", own_address)
    for part in PARTS:
        app.setup_extension(part)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
