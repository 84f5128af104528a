"""The page How we measure: its numbers, its rules and its code are those of the library."""

from __future__ import annotations

import math
import re
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import baseline_directives as directives
import pytest

from tfviz import stored
from tfviz_lab import compare, outcomes, protocol, trivial
from tfviz_lab.protocol import HIDDEN, LETTERS, WHICH_DIGIT

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book/how_we_measure.md").read_text("utf-8")
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
RESTS_ON = ("tfviz/**", "tfviz_lab/**", "book/how_we_measure.md", "book/_ext/*.py", "chapters/**")


def test_the_lines_that_are_stored_are_those_of_today() -> None:
    exams = stored.load("trivial_lines")["exams"]
    for exam in (LETTERS, HIDDEN, WHICH_DIGIT):
        found = exams[exam.name]
        assert exam.bar in found["lines"]
        assert (found["delta"], found["steps"]) == (exam.delta, exam.task(0).steps)
        assert tuple(found["rates"]) == exam.rates
    assert exams["letters"]["lines"] == trivial.ngrams()


def test_the_sizes_are_those_of_the_text() -> None:
    rows = trivial.held_out_rows()
    assert f"{len(rows):,} windows" in PAGE and f"{16 * len(rows):,} in all" in PAGE
    assert sum(len(protocol.fold(n)[2]) for n in range(5)) == 1797
    assert "1,797 handwritten digits" in PAGE
    sizes = [sum(x.numel() for x in make().parameters()) for make in (protocol.letters,)]
    assert sizes == [pytest.approx(100_000, rel=0.1)] and "about 100,000 parameters" in PAGE
    assert (compare.WIDTH, compare.LAYERS, compare.PIXEL_WIDTH) == (64, 2, 48)


def test_the_example_is_computed_as_the_page_says() -> None:
    mine, reference = [1.22, 1.24, 1.23, 1.25, 1.22], [1.26, 1.27, 1.28, 1.28, 1.25]
    apart = [a - b for a, b in zip(mine, reference, strict=True)]
    assert [round(x, 2) for x in apart] == [-0.04, -0.03, -0.05, -0.03, -0.03]
    assert round(stdev(apart), 4) == 0.0089 and round(stdev(apart) / math.sqrt(5), 4) == 0.0040
    found = outcomes.difference(mine, reference)
    assert [round(x, 3) for x in (found.mean, found.low, found.high)] == [-0.036, -0.047, -0.025]
    assert (round(outcomes.t95(5), 2), round(outcomes.t95(3), 2)) == (2.78, 4.30)
    assert round(mean(apart), 3) == round(found.mean, 3)


def test_the_function_of_the_page_says_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    exec(CODE[0], {})
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert capsys.readouterr().out == shown
    assert "trivial=1.3197" in CODE[0] and trivial.ngrams()["5-gram"] == 1.3197


def test_every_word_has_its_rule() -> None:
    words = ["better", "worse", "better in every seed", "worse in every seed"]
    words += ["equal to within δ", "cannot tell", "has not learned it", "learns sooner"]
    rows = " ".join(re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE))
    assert all(word in rows for word in words)


@pytest.mark.parametrize(
    ("middle", "reach", "word"),
    [
        (-0.015, 0.004, "equal to within 0.02"),  # leaves out 0, and is too small to count
        (-0.03, 0.031, "cannot tell"),
        (-0.015, 0.010, "cannot tell"),  # leaves out 0, and is not surely too small
        (-0.03, 0.0298, "better"),
        (-0.03, 0.005, "better in every seed"),
    ],
)
def test_the_rules_are_asked_in_the_order_of_the_page(
    middle: float, reach: float, word: str
) -> None:
    step = reach * math.sqrt(5) / outcomes.t95(5) / stdev([-2, -1, 0, 1, 2])
    apart = [middle + step * x for x in (-2, -1, 0, 1, 2)]
    assert outcomes.outcome(apart, [0.0] * 5, delta=0.02).word == word


def test_the_module_of_the_page_is_an_experiment() -> None:
    module: dict[str, Any] = {}
    exec(CODE[1], module)
    names = {run.config.get("variant") for run in module["runs"]()}
    assert names == {None, "full attention", "window of 8"}
    for variant in module["VARIANTS"].values():
        task = LETTERS.task(0)
        compare.refuse(compare.model(variant, task, 0), task)
    pattern = module["VARIANTS"]["window of 8"]()["pattern"]
    assert int(pattern.mask(64)[40].sum()) == 8


def test_the_table_of_lines_marks_each_bar_and_says_what_is_reached() -> None:
    lines = stored.load("trivial_lines")
    plain = directives._lines(lines, lambda exam: None)
    assert plain.count("**") == 6 and len(plain.splitlines()) == 2 + 4
    assert "**logistic regression 3.1 %**" in plain and "4-gram 1.40, **5-gram 1.32**" in plain
    known = directives._lines(lines, lambda exam: 0.015 if exam == "which_digit" else None)
    assert "| full attention |" in known and known.count("| 1.5 % |") == 1
    assert known.count("| – |") == 3


def test_a_reference_that_is_shown_beats_its_bar() -> None:
    for name, exam in stored.load("trivial_lines")["exams"].items():
        score = directives.reached(name)
        assert score is None or score < exam["lines"][exam["bar"]]
