"""One exemplar of each kind of explorer, lesson and page: what is proven when nothing was touched.

The tests of explorers, lessons and pages are many times the same questions, and so are those of
what `torch.compile` makes of a mechanism. `TFVIZ_ALL` in the environment asks them of everything;
without it they are asked of these, and of what a change touches. `test_exemplars` and `test_laws`
fail where a kind is in use that no exemplar has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

import yaml

TOC = Path(__file__).resolve().parents[1] / "_toc.yml"
ALL = "TFVIZ_ALL" in os.environ
TOUCHED = os.environ.get("TFVIZ_TOUCHED", "").split(",")
"""The groups of tests that rest on what was changed (`scripts/prove.py`)."""

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
    "story_model": "a model at work: parts that are brought when they are asked for, heads",
    "model_anatomy": "a name that is searched, a file that is pasted, links to lessons",
}
LESSONS = {
    "chapters/basics/attention": "the first one: code, exercises in code and in words",
    "chapters/sparse/factorized": "an exercise that is answered in the lab",
    "chapters/sparse/local_global": "an exercise that is answered in the page",
    "chapters/heads/aggregation": "tables that are counted from public models",
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

# names as in `cases.cases`, `cases.functions` and `test_mixers.MIXERS`
COMPILED = {
    "sparse_attention": "the planner: a table of the pairs",
    "average_attention": "a core without weights, by sums that run on",
    "collaborative_heads": "attention over all pairs, with weights of its own",
    "hard_coded_gaussian": "what it says depends on positions alone",
    "bp_transformer": "a tree that is planned and gathered, in steps",
    "luna: Luna()": "a function, within a stack",
    "alibi": "a bias on the scores; it refuses positions that are given",
    "rope": "positions that are given",
    "reformer_lsh": "pairs that depend on numbers, and a backward pass of its own",
    "gated_delta_rule": "the order of time, with gates of the token",
    "synthesizer, factorized random": "no queries at all",
    "xl_relative, two sides": "it looks ahead under some patterns",
    "poolingformer: pooled window()": "sparse attention within a function",
    "longformer: Longformer()": "two plans whose answers are merged",
    "adaptive_span": "lengths that are learned, in a loop over heads",
    "attention with shared keys, turned": "a core in multi-head attention, as a mixer",
}
"""Whether `torch.compile` changes nothing takes longer than all other laws together."""

GROUPS = (
    *(f"explorer:{name}" for name in EXPLORERS),
    *(f"lesson:{name}" for name in LESSONS),
    *(f"page:{name}" for name in PAGES),
    *FILES,
)
"""The groups of tests (`scripts/prove.py`) that run whatever was changed."""


def explores(name: str) -> bool:
    """Whether tests ask what every explorer keeps of this one."""
    return ALL or name in EXPLORERS or f"explorer:{name}" in TOUCHED


def tries(lesson: str) -> bool:
    """Whether tests try all answers of this lesson's exercises in the page."""
    return ALL or lesson in LESSONS or f"lesson:{lesson}" in TOUCHED


def compiles(name: str) -> bool:
    """Whether tests compile this case, function or mixer: "luna, causal", "luna: Luna()"."""
    room = re.match(r"\w+", name)
    return ALL or name in COMPILED or (room is not None and f"law:{room[0]}" in TOUCHED)


def contents(pages: Collection[str]) -> str:
    """The table of contents of a book of these pages, with the numbers that chapters have in it."""
    whole = yaml.safe_load(TOC.read_text("utf-8"))
    parts = [
        part | {"chapters": chapters}
        for part in whole["parts"]
        if (chapters := [entry for entry in part["chapters"] if entry["file"] in pages])
    ]
    return str(yaml.safe_dump(whole | {"parts": parts}, sort_keys=False, allow_unicode=True))
