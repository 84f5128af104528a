"""The list of mutants is not out of date: each line stands where it says, its tests are there."""

from __future__ import annotations

import shlex

import pytest
from mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_line_is_there_and_its_tests_are(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text("utf8").count(mutant.old) == 1, "give it another line"
    assert mutant.new != mutant.old
    files = [word for word in shlex.split(mutant.tests) if word.endswith(".py")]
    assert files and all((ROOT / file).exists() for file in files)


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({(m.file, m.old, m.new) for m in MUTANTS}) == len(MUTANTS) >= 40
