"""One exemplar of each kind of explorer, lesson and page: what is proven when nothing was touched.

The tests of explorers, lessons and pages are many times the same questions. `TFVIZ_ALL` in the
environment asks them of everything; without it they are asked of these, and of what a change
touches. `test_exemplars` fails where a kind is in use that no exemplar has.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import yaml

TOC = yaml.safe_load((Path(__file__).resolve().parents[1] / "_toc.yml").read_text("utf-8"))
ALL = "TFVIZ_ALL" in os.environ

# by module (`tfviz.explorers.ALL`), with all its views
EXPLORERS = {
    "strided_pattern": "the smallest: one matrix, one question with answers to choose from",
    "attention_steps": "a player: matrices and a table, step by step, a word to type",
    "vision_transformer": "drawn by hand, judged by trained weights",
    "relative_terms": "four views; a menu of boxes, what is hidden, a prompt of its own",
    "training_objectives": "a button and a menu of choices",
    "decoding": "text that is written, chips, bars",
    "cache_budget": "a question with a ruler, sliders of its own, a table",
    "gaussian_localness": "a plot: lines, areas and a handle that is dragged",
    "lsh_buckets": "a drawing of its own: arrows, an arc, points on a wheel",
    "knn_interpolation": "a question whose answer is a curve",
    "sparse_lab": "an answer that an exercise judges",
    "your_own_mask": "a formula that the reader types",
}
LESSONS = {
    "chapters/basics/attention": "the first one: code, exercises in code and in words",
    "chapters/sparse/factorized": "an exercise that is answered in the lab",
    "chapters/sparse/local_global": "an exercise that is answered in the page",
}
PAGES = {
    "index": "the address of the book, which leads to the landing page",
    "search": "the page of results",
    "book/index": "the landing page: the map of the course",
    "book/notation": "formulas in a table",
    "book/glossary": "terms",
    "book/atlas": "a table and a tree from the catalogue, with filters",
    "book/progress": "what is kept on the reader's device",
    "book/self_test": "a dialogue without an explorer",
    "book/your_own_mask": "one explorer as a page",
    "book/references": "the bibliography",
    **LESSONS,
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
"""Files of tests about what all pages and explorers share."""

GROUPS = (
    *(f"explorer:{name}" for name in EXPLORERS),
    *(f"lesson:{name}" for name in LESSONS),
    *(f"page:{name}" for name in PAGES),
    *FILES,
)
"""The groups of tests (`scripts/prove.py`) that run whatever was changed."""


def contents(pages: Collection[str]) -> str:
    """The table of contents of a book of these pages, with the numbers that chapters have in it."""
    parts = [
        part | {"chapters": chapters}
        for part in TOC["parts"]
        if (chapters := [entry for entry in part["chapters"] if entry["file"] in pages])
    ]
    return str(yaml.safe_dump(TOC | {"parts": parts}, sort_keys=False, allow_unicode=True))
