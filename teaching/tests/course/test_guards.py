"""The page "How grading works, and what it guards", sentence by sentence.

`guards.txt` says of each sentence what proves it: tests of this folder, as file.name without
"test_"; kinds of submissions, as bad.name; a measurement, as bench.name. Nothing stands below a
sentence that only advises, or says what is not guarded. A sentence that is missing there fails, and
so does evidence that is gone.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from course.bad import KINDS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "book" / "instructors_grading.md").read_text("utf8")
EVIDENCE = Path(__file__).with_name("guards.txt")


def evidence() -> dict[str, list[str]]:
    """{how a sentence, an item or a row begins: what proves it}."""
    proofs: dict[str, list[str]] = {}
    begin = ""
    for line in EVIDENCE.read_text("utf8").splitlines():
        if line.startswith("    "):
            proofs[begin] += line.split()
        elif line and not line.startswith("#"):
            begin = line
            proofs[begin] = []
    return proofs


def sentences() -> list[str]:
    """The page's sentences, items and rows, without headings, code and what is made from code."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", PAGE, flags=re.M | re.S)
    pieces: list[str] = []
    for block in re.split(r"\n\s*\n|\n(?=\||\* |\d\. )", text):
        block = re.sub(r"^\d\. \*\*(\w[^*]*)\*\*", r"\1", " ".join(block.split()))
        if not block.startswith(("#", "(")) and set(block) - set("|- "):
            row = block.startswith("|")
            pieces += [block] if row else re.split(r"(?<=[.?!:])(?:\*\*)? +(?=[A-Z`*\[])", block)
    return [piece.removeprefix("**") for piece in pieces if piece != "| from a submission | |"]


def test_each_sentence_says_what_proves_it() -> None:
    said = sentences()
    assert len(said) > 90
    found = {begin: [one for one in said if one.startswith(begin)] for begin in evidence()}
    assert not [begin for begin, ones in found.items() if len(ones) != 1]
    covered = {one for ones in found.values() for one in ones}
    assert not [one for one in said if one not in covered]


@pytest.mark.parametrize("begin", [begin for begin, proofs in evidence().items() if proofs])
def test_the_evidence_is_there(begin: str) -> None:
    kinds = {kind.name for kind in KINDS}
    for proof in evidence()[begin]:
        file, name = proof.split(".")
        if file == "bad":
            assert name in kinds, proof
        elif file == "bench":
            assert (ROOT / "teaching/bench" / f"{name}.py").is_file(), proof
        else:
            source = Path(__file__).with_name(f"test_{file}.py").read_text("utf8")
            assert f"def test_{name}(" in source, proof


# --- what no other test proves -------------------------------------------------------------------


def test_parts_of_a_notebook_get_their_share_of_the_seconds() -> None:
    from tfviz_course.sandbox import Limits

    usual = Limits()
    double = usual.lasting(2 * usual.seconds)
    assert (double.seconds, double.cell_seconds, double.call_seconds) == (
        2 * usual.seconds,
        2 * usual.cell_seconds,
        2 * usual.call_seconds,
    )
    assert double.memory == usual.memory and usual.lasting(usual.seconds) == usual
