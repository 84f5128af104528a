"""Checks of exercises: right answers pass, wrong ones are told what is wrong."""

import json
import re
import subprocess
import sys
import textwrap
from typing import Any

import nbformat
import pytest
import torch

from tfviz import checks, patterns
from tfviz.checks import (
    CheckFailed,
    expect_close,
    expect_equal,
    expect_goal,
    expect_mask,
    expect_raises,
    expect_rows_sum_to_one,
    expect_shape,
    expect_true,
    numbers,
    passed,
)

RESTS_ON = ("tfviz/**", "tests/*.py")  # also in a process of their own

CAUSAL = torch.ones(4, 4).tril().bool()


@pytest.mark.parametrize(
    ("yours", "expected"),
    [
        (3, 3),
        (3, torch.tensor(3)),
        (torch.tensor(3.0), 3),
        ("a", "a"),
        ([0, 2], [0, 2]),
        ((0, 2), [0, 2]),
        ({1, 2}, {2, 1}),
        ([{0}, {0, 1}], [{0}, {0, 1}]),
        ({"a": 1}, {"a": 1}),
        (torch.arange(4), torch.arange(4)),
        ([1, 2], torch.tensor([1, 2])),
    ],
)
def test_what_is_equal_passes(yours, expected):
    expect_equal(yours, expected)


@pytest.mark.parametrize(
    ("yours", "expected", "message"),
    [
        (4, 5, "x is 4, expected 5."),
        (None, 5, "x is None: a function without `return` gives that."),
        ("b", "a", "x is 'b', expected 'a'."),
        (0.5, 0.25, "x is 0.5, expected 0.25."),
        ([0, 1], [0], "x has 2 entries, expected 1.\n  expected  [0]"),
        ([0, 1], [0, 2], "x[1] is 1, expected 2."),
        (7, [7], "x is a int, expected a sequence of 1."),
        ("ab", ["a", "b"], "x is a str, expected a sequence of 2."),
        ({1, 2}, {2, 3}, "x lacks {3} and has {1} too many: it is {1, 2}, expected {2, 3}."),
        ([1], {1}, "x is a list, expected the set {1}."),
        ([{0}, {0}], [{0}, {0, 1}], "x[1] lacks {1}: it is {0}, expected {0, 1}."),
        ({"a": 2}, {"a": 1}, "x['a'] is 2, expected 1."),
        ({}, {"a": 1}, "the set of keys of x lacks {'a'}"),
        (
            torch.tensor([1, 2]),
            torch.tensor([1, 3]),
            "x[1] is 2, expected 3; 1 of 2 values differ.",
        ),
        (torch.ones(2, 3), torch.ones(3, 2), "x has shape (2, 3), expected (3, 2)."),
        ("no", torch.ones(2), "x is a str, a tensor was expected: 'no'"),
    ],
)
def test_what_is_not_equal_is_described(yours, expected, message):
    with pytest.raises(CheckFailed) as caught:
        expect_equal(yours, expected, what="x")
    assert message in str(caught.value)


def test_an_answer_that_cannot_be_compared_is_wrong_and_no_crash():
    with pytest.raises(CheckFailed, match="expected 'a'"):
        expect_equal([torch.ones(2)], "a")


def test_close_is_up_to_rounding():
    expect_close(torch.tensor([1.0, 2.0]), [1.0, 2.00001])
    expect_close(0.1 + 0.2, 0.3)
    expect_close(torch.tensor([float("nan")]), torch.tensor([float("nan")]))
    expect_close(torch.ones(2, requires_grad=True), torch.ones(2))


@pytest.mark.parametrize(
    ("yours", "expected", "message"),
    [
        ([1.0, 2.1], [1.0, 2.0], "x[1] is 2.1, expected 2; 1 of 2 values differ."),
        ([float("nan"), 1.0], [0.0, 1.0], "x: 1 of 2 values are NaN, the first at [0]. A softmax"),
        (None, 1.0, "x is None"),
        (torch.ones(3), torch.ones(4), "x has shape (3,), expected (4,)."),
        (
            torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
            torch.tensor([[1.0, 3.0], [2.0, 4.0]]),
            "x[0, 1] is 2, expected 3; 2 of 4 values differ. It is the transpose of what is",
        ),
    ],
)
def test_what_is_not_close_is_described(yours, expected, message):
    with pytest.raises(CheckFailed) as caught:
        expect_close(yours, expected, what="x")
    assert message in str(caught.value)


def test_close_refuses_what_is_just_outside():
    expect_close([1.0], [1.01], rtol=0, atol=0.011)
    with pytest.raises(CheckFailed):
        expect_close([1.0], [1.01], rtol=0, atol=0.009)


def test_masks_pass_as_bool_numbers_or_patterns():
    expect_mask(CAUSAL, CAUSAL)
    expect_mask(CAUSAL.int(), CAUSAL)
    expect_mask(CAUSAL.tolist(), CAUSAL)
    expect_mask(patterns.causal(), CAUSAL)
    expect_mask(CAUSAL, patterns.causal())
    expect_mask(patterns.causal(), patterns.causal())
    expect_mask(CAUSAL.expand(2, 4, 4), CAUSAL.expand(2, 4, 4))


def test_a_mask_says_which_pair_is_wrong_and_shows_both():
    yours = CAUSAL.clone()
    yours[2, 1], yours[0, 3] = False, True
    with pytest.raises(CheckFailed) as caught:
        expect_mask(yours, CAUSAL, "causal(4)")
    head, *drawn = str(caught.value).split("\n")
    assert head == (
        "causal(4): query 0 should not attend key 3. "
        "It should have 10 pairs: 1 missing, 1 too many."
    )
    assert drawn == [
        "expected  yours",
        "■ · · ·   ■ · · ■   ←",
        "■ ■ · ·   ■ ■ · ·",
        "■ ■ ■ ·   ■ · ■ ·   ←",
        "■ ■ ■ ■   ■ ■ ■ ■",
    ]


@pytest.mark.parametrize(
    ("yours", "expected", "message"),
    [
        (
            CAUSAL.tril(-1),
            CAUSAL,
            "query 0 should attend key 0. It should have 10 pairs: 4 missing.",
        ),
        (CAUSAL.T, CAUSAL, "with rows and columns swapped: queries are the rows."),
        (CAUSAL * 0.5, CAUSAL, "holds other values than 0 and 1"),
        (CAUSAL[:3], CAUSAL, "has shape (3, 4), expected (4, 4)."),
        (None, CAUSAL, "your mask is None"),
        (
            torch.stack([CAUSAL, CAUSAL.tril(-1)]),
            CAUSAL.expand(2, 4, 4),
            "head 1: query 0 should attend key 0.",
        ),
        (patterns.full(), CAUSAL, "query 0 should not attend key 1."),
    ],
)
def test_what_is_wrong_with_a_mask(yours, expected, message):
    with pytest.raises(CheckFailed) as caught:
        expect_mask(yours, expected)
    assert message in str(caught.value)


def test_shape():
    expect_shape(torch.ones(2, 3), (2, 3))
    with pytest.raises(CheckFailed, match=r"Q has shape \(2, 3\), expected \(3, 2\)\."):
        expect_shape(torch.ones(2, 3), (3, 2), "Q")


def test_rows_sum_to_one():
    A = torch.softmax(torch.randn(2, 5, 7), -1)
    expect_rows_sum_to_one(A)
    with pytest.raises(CheckFailed, match=r"A: row 0, 0 sums to 2, each row"):
        expect_rows_sum_to_one(2 * A)
    with pytest.raises(CheckFailed, match="The columns do: the softmax runs over keys"):
        expect_rows_sum_to_one(torch.softmax(torch.randn(5, 7), 0))
    with pytest.raises(CheckFailed, match=r"A\[0, 1\] is -0.5; a weight is ≥ 0"):
        expect_rows_sum_to_one(torch.tensor([[1.5, -0.5]]))
    with pytest.raises(CheckFailed, match="is nan; a weight"):
        expect_rows_sum_to_one(torch.full((1, 2), float("nan")))


def test_raises():
    expect_raises(ValueError, int, "x", says="invalid literal")
    with pytest.raises(CheckFailed, match=r"int\('3'\) should raise ValueError, it returns 3\."):
        expect_raises(ValueError, int, "3", what="int")
    with pytest.raises(CheckFailed, match="it raises TypeError"):
        expect_raises(ValueError, int, [], what="int")
    with pytest.raises(CheckFailed, match="its message does not contain 'range'"):
        expect_raises(ValueError, int, "x", says="range")


def test_an_empty_stub_is_not_taken_for_an_answer():
    def stub():
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        expect_raises(ValueError, stub)


def test_true():
    expect_true(3 < 4, "three is less")
    with pytest.raises(CheckFailed, match="five heads, four are enough"):
        expect_true(5 <= 4, "five heads, four are enough")


def test_goal(capsys):
    class Report:
        met, message = True, "Goal met."

    class Lab:
        def goal_report(self):
            return Report

    expect_goal(Lab())
    assert capsys.readouterr().out == "✓ Goal met.\n"
    Report.met, Report.message = False, "Goal not met: 9 keys, 8 are allowed."
    with pytest.raises(CheckFailed, match="9 keys, 8 are allowed"):
        expect_goal(Lab())


@pytest.mark.parametrize(
    ("yours", "expected", "message"),
    [
        (
            [0, 1, 2, 3],
            [0, 1, 2],
            "x has 4 entries, expected 3.\n  expected  [0, 1, 2]\n  yours     [0, 1, 2, 3]",
        ),
        ([1], [], "x has 1 entry, expected 0.\n  expected  []\n  yours     [1]"),
        ([0, 5], [0, 1], "x[1] is 5, expected 1.\n  expected  [0, 1]\n  yours     [0, 5]"),
        (list(range(99)), list(range(98)), "x has 99 entries, expected 98: [0, 1, 2"),
        (
            torch.tensor([1.0, 2.5]),
            torch.tensor([1.0, 2.0]),
            "x[1] is 2.5, expected 2; 1 of 2 values differ.\n  expected  1, 2\n  yours     1, 2.5",
        ),
        (
            [[1, 2], [3]],
            [[1, 2], [4]],
            "x[1][0] is 3, expected 4.\n  expected  [4]\n  yours     [3]",
        ),
    ],
)
def test_short_answers_stand_below_what_is_expected(yours, expected, message):
    with pytest.raises(CheckFailed) as caught:
        expect_equal(yours, expected, "x")
    assert str(caught.value).startswith(message)
    assert str(caught.value).count("expected  ") <= 1


def test_sums_of_rows_are_told():
    with pytest.raises(CheckFailed, match=r"The sums of the rows are 1, 2, 3\.$"):
        expect_rows_sum_to_one(torch.diag(torch.tensor([1.0, 2.0, 3.0])))


def test_a_notebook_shows_the_message_and_no_traceback():
    assert CheckFailed("no")._render_traceback_() == ["✗ no"]


def test_passed_says_so(capsys):
    passed("it holds")
    assert capsys.readouterr().out == "✓ it holds\n"


# --- in a kernel ---------------------------------------------------------------------------------

CELLS = [
    "%load_ext tfviz.checks",
    "import torch\nfrom tfviz.checks import *\ndef answer(x):\n    raise NotImplementedError",
    "%%check ex-one\nexpect_equal(answer(1), 2, 'answer(1)')",
    "def answer(x):\n    return 3",
    "%%check ex-one\nexpect_equal(answer(1), 2, 'answer(1)')",
    "def answer(x):\n    return x.nothing",
    "%%check ex-one\nexpect_equal(answer(1), 2, 'answer(1)')",
    "def answer(x):\n    return 2",
    "%%check ex-one\nfound = answer(1)\nexpect_equal(found, 2, 'answer(1)')",
    "%%check ex-one\nexpect_equal(answer(1), 2)\npassed('two it is')",
    "print(found)",
    "m = torch.ones(6, 6).tril().bool()\nexpect_mask(m.T, m)",
    "%%check ex-two\nexpect_mask(m.T, m)",
    "%%check ex-two\nexpect_close(m / 6, m / 7)",
    "def answer(x):\n    raise NotImplementedError\n\n\nanswer(1)",
    "def answer(x):\n    raise NotImplementedError('later')\n\n\nanswer(1)",
]
DRAWN = {  # what differs, and what the picture must show of it
    "signed": ("expect_close(torch.full((3, 4), -2.0), torch.full((3, 4), 3.0))", "row"),
    "heads": ("expect_close(torch.stack([m / 6, m / 7]), torch.stack([m / 6, m / 6]))", "head 1"),
    "integers": ("expect_equal(torch.ones(3, 3).int(), torch.eye(3).int())", "yours"),
    "booleans": ("expect_equal(m, m.T)", "yours"),
    "oblong mask": ("expect_mask(m[:3], ~m[:3])", "yours"),
    "masked scores": (
        "inf = float('inf')\ns = torch.randn(6, 6)\n"
        "expect_close((s + 1).masked_fill(~m, -inf), s.masked_fill(~m, -inf))",
        "column",
    ),
    "small weights": (
        "expect_close(torch.full((4, 99), 1e-3), torch.full((4, 99), 2e-3))",
        "yours",
    ),
    "sums of rows": ("expect_rows_sum_to_one(torch.softmax(torch.randn(5, 7), 0))", "yours"),
    "sums above one": ("expect_rows_sum_to_one(2 * torch.eye(3))", "yours"),
}
NOT_DRAWN = {  # and what the words must say all the same
    "other infinities": (
        "x = torch.zeros(3, 3)\nexpect_close(x - 1 / x, x)",
        "is -inf, expected 0",
    ),
    "vectors": ("expect_close(torch.ones(3), torch.zeros(3))", "yours     1, 1, 1"),
    "too large": (
        "expect_mask(torch.ones(1, 1100).bool(), torch.zeros(1, 1100))",
        "query 0 should",
    ),
}
PICTURES = {**DRAWN, **NOT_DRAWN}
FIRST = len(CELLS)  # the cell of the first of these
CELLS += [f"%%check ex-three\n{code}" for code, _ in PICTURES.values()]


@pytest.fixture(scope="module")
def cells():
    """The cells above, run in a kernel: a list of (text, kinds of output)."""
    script = textwrap.dedent(
        """
        import json, sys, nbformat
        from nbclient import NotebookClient
        make = nbformat.v4.new_code_cell
        nb = nbformat.v4.new_notebook(cells=[make(c) for c in json.load(sys.stdin)])
        NotebookClient(nb, kernel_name="python3", allow_errors=True, timeout=300).execute()
        print(nbformat.writes(nb))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(CELLS),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return nbformat.reads(done.stdout[done.stdout.index("{") :], as_version=4).cells


def text(cell):
    return "".join(o.get("text", "") for o in cell.outputs if o.output_type == "stream")


def test_check_tells_an_empty_stub_from_a_wrong_answer(cells):
    assert text(cells[2]).startswith("○ No answer yet")
    assert text(cells[4]) == "✗ answer(1) is 3, expected 2.\n"


def test_check_shows_where_an_answer_crashes(cells):
    said = text(cells[6])
    assert said.startswith("✗ ex-one stops with AttributeError: 'int' object has no attribute")
    assert "return x.nothing" in said and "checks.py" not in said


def test_check_says_when_all_is_well(cells):
    assert text(cells[8]) == "✓ all checks of ex-one hold\n"
    assert text(cells[9]) == "✓ two it is\n"
    assert text(cells[10]) == "2\n"  # the names of a checked cell stay


def test_no_checked_cell_stops_a_run_or_warns(cells):
    for cell in cells:
        if cell.source.startswith("%%check"):
            assert all(out.output_type != "error" for out in cell.outputs)
        assert all(out.get("name") != "stderr" for out in cell.outputs)


def test_a_plain_cell_stops_with_the_message_alone(cells):
    (error,) = (out for out in cells[11].outputs if out.output_type == "error")
    assert error.ename == "CheckFailed"
    assert error.traceback == [f"✗ {error.evalue}"]


def shown(cells, name):
    """The pictures of a case as text, and what was said."""
    cell = cells[FIRST + list(PICTURES).index(name)]
    pictures = [out for out in cell.outputs if out.output_type == "display_data"]
    return [picture.data["text/html"] for picture in pictures], text(cell)


@pytest.mark.parametrize("name", DRAWN)
def test_what_can_be_drawn_is_drawn(cells, name):
    (picture,), said = shown(cells, name)
    assert said.startswith("✗ ") and "stops with" not in said, said
    assert PICTURES[name][1] in picture


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_what_cannot_be_drawn_is_said_all_the_same(cells, name):
    pictures, said = shown(cells, name)
    assert not pictures
    assert said.startswith("✗ ") and "stops with" not in said, said
    assert PICTURES[name][1] in said


def test_a_stub_that_is_called_says_so_in_one_line(cells):
    (error,) = cells[14].outputs
    assert (error.output_type, error.ename) == ("error", "NotImplementedError")
    assert error.traceback == [checks.NO_ANSWER]
    (other,) = cells[15].outputs
    assert other.output_type == "error" and "later" in other.evalue and len(other.traceback) > 1


@pytest.mark.parametrize("number", [11, 12, 13])
def test_a_matrix_is_shown_beside_the_expected_one(cells, number):
    pictures = [out for out in cells[number].outputs if out.output_type == "display_data"]
    assert len(pictures) == 1
    assert "yours" in pictures[0].data["text/html"]


@pytest.mark.parametrize("values", [CAUSAL, CAUSAL.float(), CAUSAL * 2.0 - 5.0, CAUSAL[:2]])
def test_only_pairs_are_drawn_as_queries_and_keys(values):
    named = {}
    for pairs in (True, False):
        drawn = checks._figure(values[None], ["yours"], row=1, pairs=pairs)
        named[pairs] = drawn.html
    assert not re.search(r"query i|key j|[Qq]uery \d|weights of", named[False])
    assert "← row<" in named[False] and ">column →" in named[False]
    assert ("query i" in named[True]) == bool((values >= 0).all())


def test_no_picture_is_drawn_outside_of_a_notebook(monkeypatch):
    monkeypatch.setattr(checks, "_shell", lambda: None)
    assert checks._picture(CAUSAL[None], ["yours"], row=0, pairs=True) is False


# --- a student's own numbers ---------------------------------------------------------------------


def test_numbers_are_the_same_every_time():
    choices = {"stride": [4, 6, 8], "width": [2, 3]}
    drawn = numbers("ada", 1, "ex-a", **choices)
    assert drawn == numbers("  Ada ", 1, "ex-a", **choices)
    assert drawn[0] in choices["stride"] and drawn[1] in choices["width"]
    assert numbers("ada", 1, "ex-a", width=[2, 3]) == drawn[1]  # one by one, in any order
    assert numbers("ada", 1, "ex-a", width=[2, 3], stride=[4, 6, 8]) == drawn[::-1]


def test_numbers_stay_what_they_were_when_the_library_changes():
    students = ("ada", "grace", "emmy", "sofja", "mary")
    drawn = [numbers(name, 20261121, "ex-a", n=list(range(100))) for name in students]
    assert drawn == [18, 77, 23, 23, 98]


def test_numbers_differ_by_student_seed_exercise_and_name():
    def drawn(seed=1, exercise="ex-a", name="n"):
        students = [f"student{k}" for k in range(300)]
        return [numbers(who, seed, exercise, **{name: list(range(10))}) for who in students]

    plain = drawn()
    assert all(15 <= plain.count(value) <= 45 for value in range(10))
    for other in (drawn(seed=2), drawn(exercise="ex-b"), drawn(name="m")):
        same = sum(a == b for a, b in zip(plain, other, strict=True))
        assert 10 <= same <= 60  # as often as chance has it, one in ten


def test_numbers_need_a_student_and_choices(monkeypatch):
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    with pytest.raises(ValueError, match="write it between the quotes in the cell STUDENT") as no:
        numbers("  ", 1, "ex-a", n=[1, 2])
    refused: Any = no.value
    assert refused._render_traceback_() == [
        "○ Your student id is missing: write it between the quotes in the cell STUDENT = …, run "
        "that cell, then this one."
    ]
    with pytest.raises(ValueError, match="ex-a has no numbers to choose"):
        numbers("ada", 1, "ex-a")
    with pytest.raises(ValueError, match=r"n = \[\] of ex-a: give at least one choice"):
        numbers("ada", 1, "ex-a", n=[])


def test_numbers_of_an_empty_id_are_those_of_the_hubs_user(monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_USER", "Ada")
    assert numbers("", 20261121, "ex-a", n=list(range(100))) == 18
    assert numbers("grace", 20261121, "ex-a", n=list(range(100))) == 77


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/checks.py": [
        (
            "a check that overlooks missing pairs",
            "    wrong = mine != target\n    if not wrong.any():\n",
            "    wrong = mine & ~target\n    if not wrong.any():\n",
        ),
        (
            "a tolerance of everything",
            "rtol=rtol, atol=atol, equal_nan=True",
            "rtol=rtol, atol=1.0, equal_nan=True",
        ),
    ],
}
