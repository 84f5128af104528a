"""One fixed exemplar of each kind: what `make test` proves besides the library and the change.

`make test-all` proves all of them. Which kinds there are, and that each has its exemplar, is tested
in tests/test_exemplars.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]

EXPLORERS = {
    "sparse_lab": "several pictures, a formula, goals, a pattern brought along",
    "rotary_clocks": "something that moves",
    "decoding": "a trained model's numbers",
    "draw_a_digit": "what a hand draws",
    "soft_dictionary": "handles to drag",
}
LESSONS = {
    "chapters/basics/attention": "the first of all: explorers, an answer that is a widget's state",
    "chapters/compressed/low_rank": "measured results, curves, proofs in folds",
    "chapters/sparse/local": "patterns as formulas, exercises with a check of a mask",
}
PAGES = {
    "book/index": "the landing page",
    "book/atlas": "the catalogue, filtered and searched",
}
FILES = (
    "tests/book/test_checklist",
    "tests/book/test_content",
    "tests/book/test_lesson",
    "tests/book/test_names",
    "tests/book/test_notebooks",
    "tests/book/test_paths",
    "tests/book/test_readme",
    "tests/book/test_site",
    "tests/browser/test_every_explorer",
    "tests/browser/test_geometry",
    "tests/browser/test_kit",
    "tests/browser/test_page_shim",
)
"""Files of tests that run whenever something may be wrong that no exemplar shows."""

GROUPS = (
    *(f"explorer:{name}" for name in EXPLORERS),
    *(f"lesson:{name}" for name in LESSONS),
    *(f"page:{name}" for name in (*LESSONS, *PAGES, "index", "search")),
    *FILES,
)


def contents(more: Iterable[str] = ()) -> str:
    """The table of contents of a book of exemplars, and of these pages."""
    whole = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    wanted = {*LESSONS, *PAGES, *more}
    for part in whole["parts"]:
        part["chapters"] = [entry for entry in part["chapters"] if entry["file"] in wanted]
    whole["parts"] = [part for part in whole["parts"] if part["chapters"]]
    return yaml.safe_dump(whole, sort_keys=False)
