"""The judge: right is right, wrong is wrong, and nothing that a student writes changes more than
the verdict on that answer.

Every exercise of the notebook here asks for the same function `f`, so that one process for a
submission tries many answers at once.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
import torch
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from tfviz import checks
from tfviz_course import codec, line, sandbox
from tfviz_course.autograde import LATE
from tfviz_course.child import Child
from tfviz_course.judge import Judged, Prepared, _alarm, judge, prepare, seed_of
from tfviz_course.sandbox import Limits, Stopped, Unavailable, available

WHO = {"student": "ada", "secret": "s" * 64, "assignment": "week1"}
QUICK = Limits(cell_seconds=4, call_seconds=2, memory=500 << 20, processes=12, callbacks=500)

if sys.platform != "linux":
    pytest.skip("the sandbox needs Linux", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def works() -> None:
    """The sandbox works on the machine that runs the tests; it is not skipped where it does not."""
    assert available() is None


SET_UP = """
import torch
from tfviz import patterns
from tfviz.checks import expect_close, expect_equal, expect_mask, expect_raises, passed

def double(x, *, by=2):
    return by * x

def twice(x):
    return double(x)
"""
SOLUTION = "def f(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
CHECKS = "x = torch.arange(3.0)\nexpect_close(f(x), double(x), 'f(x)')\npassed('twice as much')"
HIDDEN = """# hidden
### BEGIN HIDDEN TESTS
x = 5 + torch.rand(4, generator=torch.Generator().manual_seed(seed))
expect_close(f(x), double(x), "f of other numbers")
### END HIDDEN TESTS"""


def cell(role: str, name: str, source: str, exercise: str = "") -> NotebookNode:
    about = {"role": role} | ({"exercise": exercise} if exercise else {})
    graded = {"schema_version": 3, "grade_id": name, "grade": role in ("checks", "hidden")}
    return new_code_cell(source, id=name, metadata={"tfviz": about, "nbgrader": graded})


def exercise(
    label: str, solution: str = SOLUTION, tests: str = CHECKS, hidden: str = HIDDEN
) -> list[NotebookNode]:
    cells = [
        cell("yours", f"{label}-yours", solution, label),
        cell("checks", f"{label}-checks", tests, label),
    ]
    return [*cells, cell("hidden", f"{label}-hidden", hidden, label)] if hidden else cells


def notebook(*exercises: list[NotebookNode], set_up: str = SET_UP) -> NotebookNode:
    install = cell("install", "install", "%pip install tfviz")
    start = [install, cell("setup", "setup-1", set_up)]
    return new_notebook(cells=start + [c for cells in exercises for c in cells])


def answered(prepared: Prepared, answers: dict[str, str], **more: Any) -> Judged:
    """The verdicts on {exercise: answer}."""
    return judge(prepared, {f"{k}-yours": v for k, v in answers.items()}, **(WHO | more))


# --- many answers in one submission --------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    source: str
    visible: bool
    hidden: bool
    says: str = ""  # in the message of the visible checks


ANSWERS = {  # those without an `f` first, those that spoil later ones last
    "no name": Answer("g = 1", False, False, "does not define `f`"),
    "stops before": Answer("1 / 0\ndef f(x):\n    return 2 * x", False, False, "ZeroDivisionError"),
    "no Python": Answer("def f(x:\n  return", False, False, "SyntaxError"),
    "right": Answer("def f(x):\n    return 2 * x", True, True, "✓ twice as much"),
    "wrong": Answer("def f(x):\n    return x + 1", False, False, "f(x)[0] is 1, expected 0"),
    "stub": Answer(
        "def f(x):\n    # your code\n    raise NotImplementedError", False, False, "No answer yet"
    ),
    "empty": Answer("  \n", False, False, "No answer yet"),
    "stops after": Answer("def f(x):\n    return 2 * x\n1 / 0", True, True),
    "raises": Answer(
        "def f(x):\n    y = x\n    raise ValueError('my words')", False, False, "line 3, in f"
    ),
    "asserts": Answer("def f(x):\n    assert False, 'mine'", False, False, "AssertionError: mine"),
    "own check": Answer(
        "from tfviz.checks import CheckFailed\ndef f(x):\n    raise CheckFailed('all is well')",
        False,
        False,
        "CheckFailed: all is well",
    ),
    "exits": Answer("import sys\ndef f(x):\n    sys.exit(0)", False, False, "SystemExit"),
    "interrupts": Answer(
        "def f(x):\n    raise KeyboardInterrupt", False, False, "KeyboardInterrupt"
    ),
    "stops iteration": Answer("def f(x):\n    raise StopIteration", False, False, "StopIteration"),
    "own error": Answer(
        "class Mine(KeyError):\n    def __str__(self):\n        raise RuntimeError\n"
        "def f(x):\n    raise Mine",
        False,
        False,
        "Mine",
    ),
    "signature": Answer(
        "def f(x, y):\n    return 2 * x",
        False,
        False,
        "missing 1 required positional argument: 'y'",
    ),
    "no function": Answer("f = 2", False, False, "'int' object is not callable"),
    "returns nothing": Answer("def f(x):\n    2 * x", False, False, "without `return`"),
    "recursion": Answer("def f(x):\n    return f(x)", False, False, "RecursionError"),
    "not a number": Answer("def f(x):\n    return x / 0 * 0", False, False, "NaN"),
    "another dtype": Answer("def f(x):\n    return (2 * x).double()", True, True),
    "a list": Answer("def f(x):\n    return (2 * x).tolist()", True, True),
    "another shape": Answer("def f(x):\n    return (2 * x)[None]", False, False, "shape (1, 3)"),
    "huge": Answer(
        "import torch\ndef f(x):\n    return torch.ones(1).expand(10**6, 10**6)",
        False,
        False,
        "too large",
    ),
    "many": Answer("def f(x):\n    return [[1.0]] * 10**6", False, False, "values"),
    "deep": Answer(
        "def f(x):\n    y = []\n    for _ in range(10**5): y = [y]\n    return y",
        False,
        False,
        "nested",
    ),
    "an object": Answer(
        "class Liar:\n    shape = (3,)\n    def __eq__(self, other): return True\n"
        "    def __array__(self): return [0, 2, 4]\ndef f(x):\n    return Liar()",
        False,
        False,
        "Liar",
    ),
    "a tensor that lies": Answer(
        "import torch\nclass Liar(torch.Tensor):\n"
        "    @classmethod\n    def __torch_function__(cls, *a, **k): return True\n"
        "def f(x):\n    return torch.zeros(3).as_subclass(Liar)",
        False,
        False,
    ),
    "only the visible": Answer("def f(x):\n    return 2 * x if x.sum() < 5 else x", True, False),
    "leaks": Answer(
        "import sys\ndef f(x):\n    print('LEAK', x.tolist()); print('LEAK', file=sys.stderr)\n"
        "    return 2 * x",
        True,
        True,
    ),
    "leaks by an error": Answer(
        "seen = []\ndef f(x):\n    seen.append(x)\n    if x[0] >= 5:\n"
        "        raise ValueError(f'LEAK {x.tolist()}')\n    return 2 * x",
        True,
        False,
    ),
    "helper, first": Answer(
        "def helper(x):\n    return 2 * x\ndef f(x):\n    return helper(x)", True, True
    ),
    "helper, second": Answer(
        "def helper(x):\n    return x / 0\ndef f(x):\n    return x + x", True, True
    ),
    "changes what it gets": Answer("def f(x):\n    x *= 2\n    return x", True, True),
    "borrows": Answer(
        "def f(x):\n    return double(x)", False, False, "double is what this exercise asks"
    ),
    "asks others": Answer("def f(x):\n    return twice(x)", True, True),
    "warns": Answer(
        "import warnings, sys\ndef f(x):\n    warnings.warn('oh'); print('x', file=sys.stderr)\n"
        "    return 2 * x",
        True,
        True,
    ),
    "patched torch": Answer(
        "import torch\nkept = torch.allclose, torch.isclose\n"
        "torch.allclose = lambda *a, **k: True\n"
        "torch.isclose = lambda a, b, **k: torch.ones_like(a, dtype=torch.bool)\n"
        "torch.Tensor.__eq__ = lambda a, b: torch.ones(3).bool()\n"
        "def f(x):\n    return x + 1",
        False,
        False,
        "expected 0",
    ),
    "patched checks": Answer(
        "import tfviz.checks, builtins\n"
        "tfviz.checks.expect_close = lambda *a, **k: None\n"
        "tfviz.checks.CheckFailed = type('Fine', (Exception,), {})\n"
        "double = lambda x: x + 1\nexpect_close = print\n"
        "def f(x):\n    return x + 1",
        False,
        False,
        "expected 0",
    ),
    "patched IPython": Answer(
        "import ast\nshell = get_ipython()\nclass Away(ast.NodeTransformer):\n"
        "    def visit_Assert(self, node): return None\n"
        "shell.ast_transformers.append(Away())\nshell.run_cell = None\n"
        "del shell.run_cell\ndef f(x):\n    return x + 1",
        False,
        False,
        "expected 0",
    ),
    "last": Answer("def f(x):\n    return 2 * x", True, True),
}


def labels(names: Any) -> dict[str, str]:
    """Exercises' labels by the names of the answers."""
    return {name: f"ex-{number}" for number, name in enumerate(names)}


LABELS = labels(ANSWERS)


@pytest.fixture(scope="module")
def many() -> Prepared:
    return prepare(notebook(*(exercise(label) for label in LABELS.values())))


@pytest.fixture(scope="module")
def judged(many: Prepared) -> Judged:
    return answered(many, {LABELS[name]: answer.source for name, answer in ANSWERS.items()})


@pytest.mark.parametrize("name", list(ANSWERS))
def test_an_answer_gets_its_verdict(name: str, judged: Judged) -> None:
    visible = judged.verdicts[f"{LABELS[name]}-checks"]
    hidden = judged.verdicts[f"{LABELS[name]}-hidden"]
    assert (visible.passed, hidden.passed) == (ANSWERS[name].visible, ANSWERS[name].hidden), (
        visible.message
    )
    assert ANSWERS[name].says in visible.message + visible.printed
    for verdict in (visible, hidden):
        if verdict.passed:
            assert verdict.printed.startswith("✓") and not verdict.message
        else:
            assert 0 < len(verdict.message) <= line.TEXT


def test_every_cell_of_tests_has_a_verdict(judged: Judged, many: Prepared) -> None:
    assert set(judged.verdicts) == set(many.graded())
    assert len(judged.verdicts) == 2 * len(ANSWERS)


def test_hidden_inputs_appear_nowhere_that_a_student_sees(judged: Judged) -> None:
    seen = [judged.outputs, [v.message for k, v in judged.verdicts.items() if k.endswith("checks")]]
    assert "LEAK" not in json.dumps(seen)
    # the instructor may see it
    assert "LEAK" in judged.verdicts[f"{LABELS['leaks by an error']}-hidden"].message


def test_the_outputs_of_answers_are_kept(judged: Judged) -> None:
    outputs = judged.outputs[f"{LABELS['stops after']}-yours"]
    (error,) = outputs
    assert error["output_type"] == "error" and "ZeroDivisionError" in error["traceback"][0]
    assert f"{LABELS['empty']}-yours" not in judged.outputs


def test_nothing_changes_here(judged: Judged, many: Prepared) -> None:
    assert torch.allclose(torch.ones(1), torch.zeros(1)) is False
    assert checks.CheckFailed.__name__ == "CheckFailed"
    again = answered(many, {LABELS["wrong"]: ANSWERS["right"].source})
    passed = {name for name, verdict in again.verdicts.items() if verdict.passed}
    assert passed == {f"{LABELS['wrong']}-checks", f"{LABELS['wrong']}-hidden"}
    empty = again.verdicts[f"{LABELS['right']}-checks"]
    assert empty == judged.verdicts[f"{LABELS['empty']}-checks"]


# --- answers that end their process --------------------------------------------------------------

FATAL = {
    "leaves": ("import os\ndef f(x):\n    os._exit(0)", "ended Python"),
    "for ever at once": ("while True: pass", "longer than 4 seconds"),
    "for ever": ("def f(x):\n    while True: pass", "longer than 2 seconds"),
    "memory": ("held = []\nwhile True: held.append(b'x' * 10_000_000)", "MiB of memory"),
}


def test_an_answer_that_ends_its_process_costs_that_exercise_only() -> None:
    names = labels([*FATAL, "honest"])
    prepared = prepare(notebook(*(exercise(label) for label in names.values())))
    sources = {names[name]: source for name, (source, _) in FATAL.items()}
    sources[names["honest"]] = "print('hello')\ndef f(x):\n    return 2 * x"
    judged = answered(prepared, sources, limits=QUICK)
    for name, (_, says) in FATAL.items():
        for kind in ("checks", "hidden"):
            verdict = judged.verdicts[f"{names[name]}-{kind}"]
            assert not verdict.passed and says in verdict.message, name
        assert any(remark.startswith(f"{names[name]}:") for remark in judged.remarks)
    for kind in ("checks", "hidden"):
        assert judged.verdicts[f"{names['honest']}-{kind}"].passed
    assert judged.outputs[f"{names['honest']}-yours"][0]["text"] == "hello\n"


def test_a_watch_that_fails_is_a_verdict_and_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A right answer gets nothing while nobody sees what it uses, even if the tests ask no more."""
    watched: list[sandbox.Sandbox] = []
    blind = threading.Event()
    sees, made = sandbox._threads, sandbox.Sandbox

    def fails(process: psutil.Process) -> int:
        if blind.is_set():
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return sees(process)

    def watching(*given: Any) -> sandbox.Sandbox:
        watched.append(made(*given))
        return watched[-1]

    def waits() -> None:  # as a test that computes for a while
        blind.set()
        while not watched[-1].broken:
            time.sleep(0.01)

    value = "### BEGIN SOLUTION\ny = 2\n### END SOLUTION"
    prepared = prepare(notebook(exercise("ex-a", value, "expect_equal(y, 2, 'y')", "")))
    cells = prepared.tasks["ex-a"].cells
    cells["checks"] = cells["checks"]._replace(source=f"waits()\n{cells['checks'].source}")
    monkeypatch.setitem(vars(builtins), "waits", waits)
    monkeypatch.setattr(sandbox, "_threads", fails)
    monkeypatch.setattr(line, "Sandbox", watching)
    judged = answered(prepared, {"ex-a": "y = 2"})
    assert not judged.verdicts["ex-a-checks"].passed
    assert "could no longer see what it used" in judged.verdicts["ex-a-checks"].message
    assert judged.remarks == ("ex-a: could not be watched: UnicodeDecodeError",)


def test_the_whole_submission_has_a_time_too() -> None:
    prepared = prepare(notebook(exercise("ex-0"), exercise("ex-1")))
    loop = "import time\ntime.sleep(1)\ndef f(x):\n    while True: pass"
    right = "def f(x):\n    return 2 * x"
    limits = Limits(seconds=3, call_seconds=30)
    judged = answered(prepared, {"ex-0": loop, "ex-1": right}, limits=limits)
    assert not any(verdict.passed for verdict in judged.verdicts.values())
    assert "Not judged" in judged.verdicts["ex-1-checks"].message


# --- functions as arguments ----------------------------------------------------------------------

APPLY = "def f(g, n):\n    ### BEGIN SOLUTION\n    return g(n) + 1\n    ### END SOLUTION"
CALLED = """
calls = []
def g(n):
    calls.append(n)
    if n < 0:
        raise ValueError("n is negative")
    return 10 * n
expect_equal(f(g, 3), 31, "f(g, 3)")
expect_equal(calls, [3], "the calls of g")
expect_raises(ValueError, f, g, -1, says="negative")
"""


def test_functions_cross_in_both_directions() -> None:
    compose = (
        "def f(g, h):\n    ### BEGIN SOLUTION\n    return lambda x: g(h(x))\n    ### END SOLUTION"
    )
    tests = "k = f(lambda x: x + 1, lambda x: 2 * x)\nexpect_equal(k(5), 11, 'k(5)')\n"
    tests += "expect_equal(f(k, k)(1), 7, 'k of k')\n"
    tests += "own = lambda x: x\nassert f(own, own) is not own"
    names = labels(["calls", "swallows", "twice", "abuses", "forges", "composes"])
    prepared = prepare(
        notebook(
            *(exercise(names[n], APPLY, CALLED, "") for n in list(names)[:-1]),
            exercise(names["composes"], compose, tests, ""),
        )
    )
    answers = {
        "calls": "def f(g, n):\n    return g(n) + 1",
        "swallows": "def f(g, n):\n    try: return g(n) + 1\n    except Exception: return 0",
        "twice": "def f(g, n):\n    g(n)\n    return g(n) + 1",
        "abuses": "def f(g, n):\n    while True: g(n)",
        "forges": "def f(g, n):\n    g._number = 10**6\n    return g(n)",
        "composes": "def f(g, h):\n    def both(x):\n        return g(h(x))\n    return both",
    }
    judged = answered(prepared, {names[n]: answers[n] for n in names}, limits=QUICK)
    found = {name: judged.verdicts[f"{names[name]}-checks"] for name in names}
    assert {name for name, verdict in found.items() if verdict.passed} == {"calls", "composes"}
    assert "returns 0" in found["swallows"].message
    assert "the calls of g" in found["twice"].message
    assert "calls back more than 500 times" in found["abuses"].message
    assert "no such function" in found["forges"].message


# --- other values than functions -----------------------------------------------------------------


def test_numbers_masks_explorers_and_modules() -> None:
    lab = (
        "lab = SparseLab(left=patterns.sliding_window(lookback=8), right=patterns.column(stride=8),"
        " L=64, goal={'causal': True, 'max_hops': 2, 'max_keys': 8})\n"
        "### BEGIN SOLUTION\nlab.left = patterns.sliding_window(lookback=7)\nlab.stack = 'AB'\n"
        "### END SOLUTION\nlab"
    )
    goal = "expect_equal(lab.goal, {'causal': True, 'max_hops': 2, 'max_keys': 8}, 'the goal')\n"
    goal += "from tfviz.checks import expect_goal\nexpect_goal(lab)"
    mask = "mask = None\n### BEGIN SOLUTION\nmask = patterns.causal().mask(6)\n### END SOLUTION"
    expect = "expect_mask(mask, patterns.causal(), 'your mask')"
    module = (
        "from torch import nn\nclass Twice(nn.Module):\n    def forward(self, x):\n"
        "        ### BEGIN SOLUTION\n        return 2 * x\n        ### END SOLUTION"
    )
    calls = "made = Twice()\nexpect_close(made(torch.ones(2)), torch.full((2,), 2.0), 'Twice()(x)')"
    set_up = SET_UP + "from tfviz.explorers import SparseLab\n"
    kinds = {"lab": (lab, goal), "mask": (mask, expect), "module": (module, calls)}
    answers = {
        "lab right": lab,
        "lab start": lab.replace("lab.stack = 'AB'", ""),
        "lab of one's own": "class Lab:\n"
        "    goal = {'causal': True, 'max_hops': 2, 'max_keys': 8}\n"
        "    def goal_report(self): return self\n    met, message = True, 'yes'\nlab = Lab()",
        "lab that lies": lab + "\ntype(lab).goal_report = lambda self: type('R', (), "
        "{'met': True, 'message': 'yes'})\nlab.stack = 'A'",
        "mask right": "mask = patterns.causal()",
        "mask wrong": "mask = torch.ones(6, 6).bool()",
        "module right": module,
        "module wrong": module.replace("2 * x", "3 * x"),
    }
    names = labels(answers)
    prepared = prepare(
        notebook(*(exercise(names[n], *kinds[n.split()[0]], "") for n in answers), set_up=set_up)
    )
    judged = answered(prepared, {names[n]: source for n, source in answers.items()})
    found = {name: judged.verdicts[f"{names[name]}-checks"] for name in names}
    right = {name for name, verdict in found.items() if verdict.passed}
    assert right == {"lab right", "mask right", "module right"}, found
    assert "query 0 should not attend key 1" in found["mask wrong"].message


def test_random_numbers_of_the_tests_reach_the_student() -> None:
    solution = "def f(n):\n    ### BEGIN SOLUTION\n    return torch.rand(n)\n    ### END SOLUTION"
    tests = "torch.manual_seed(4)\nmine = f(3)\ntorch.manual_seed(4)\n"
    tests += "expect_close(mine, torch.rand(3), 'f(3)')"
    prepared = prepare(notebook(exercise("ex-0", solution, tests, "")))
    judged = answered(prepared, {"ex-0": "def f(n):\n    return torch.rand(n)"})
    assert judged.verdicts["ex-0-checks"].passed, judged.verdicts


# --- numbers of a student's own, and the seed ----------------------------------------------------


def varied() -> NotebookNode:
    solution = "def f(x):\n    ### BEGIN SOLUTION\n    return factor * x\n    ### END SOLUTION"
    draw = "from tfviz.checks import numbers\n"
    draw += "factor = numbers(STUDENT, 7, 'ex-0', factor=[2, 3, 5, 7, 11, 13])"
    made = notebook(exercise("ex-0", solution, "expect_equal(f(2), factor * 2, 'f(2)')", ""))
    made.cells.insert(1, cell("student", "student", 'STUDENT = ""'))
    made.cells.insert(3, cell("numbers", "ex-0-numbers", draw, "ex-0"))
    return made


def test_each_student_has_the_numbers_of_the_folder() -> None:
    prepared = prepare(varied())
    factors = {s: checks.numbers(s, 7, "ex-0", factor=[2, 3, 5, 7, 11, 13]) for s in "abcdefgh"}
    one, other = "a", next(s for s in factors if factors[s] != factors["a"])
    for student in (one, other):
        for answer, right in (("factor", True), (str(factors[one]), student == one)):
            source = f"STUDENT = 'somebody else'\ndef f(x):\n    return {answer} * x"
            judged = answered(prepared, {"ex-0": source}, student=student)
            assert judged.verdicts["ex-0-checks"].passed is right, (student, answer)


def test_hidden_tests_alone_have_the_numbers_of_the_folder_too() -> None:
    """An instructor may take the visible ones out of source/."""
    made = varied()
    checked = next(cell for cell in made.cells if cell.metadata.tfviz.role == "checks")
    made.cells[made.cells.index(checked)] = cell("hidden", "ex-0-hidden", checked.source, "ex-0")
    prepared = prepare(made)
    for student in "abcd":
        factor = checks.numbers(student, 7, "ex-0", factor=[2, 3, 5, 7, 11, 13])
        judged = answered(
            prepared, {"ex-0": f"def f(x):\n    return {factor} * x"}, student=student
        )
        assert judged.verdicts["ex-0-hidden"].passed, student


def test_the_seed_depends_on_all_it_should() -> None:
    seed = seed_of("secret", "week1", "ex-0", "ada")
    assert seed == seed_of("secret", "week1", "ex-0", "ada")
    others = [
        seed_of("other", "week1", "ex-0", "ada"),
        seed_of("secret", "week2", "ex-0", "ada"),
        seed_of("secret", "week1", "ex-1", "ada"),
        seed_of("secret", "week1", "ex-0", "bob"),
    ]
    assert len({seed, *others}) == 5
    assert all(0 <= s < 2**31 for s in (seed, *others))


# --- in a child, and what cannot be judged -------------------------------------------------------


def apart(prepared: Prepared, answers: Mapping[str, str], **options: Any) -> Judged:
    child = Child(prepared, answers, **options)
    while not child.done():
        child.line.poll(1.0)
    return child.result()


def test_no_sandbox_is_an_error_and_not_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(notebook(exercise("ex-0")))
    monkeypatch.setenv("PATH", "/nowhere")
    runs: list[Callable[..., Judged]] = [judge, apart]
    for run in runs:
        with pytest.raises(Unavailable, match="install bubblewrap"):
            run(prepared, {"ex-0-yours": ANSWERS["right"].source}, **WHO)


def test_an_interrupt_while_the_process_forks_is_not_lost() -> None:
    prepared = prepare(notebook(exercise("ex-0")))
    armed = [True]
    below = set(psutil.Process().children(recursive=True))  # the set-up of other tests

    def interrupt() -> None:  # as a terminal does, at the moment where Python ignores exceptions
        if armed and armed.pop():
            os.kill(os.getpid(), signal.SIGINT)

    os.register_at_fork(after_in_parent=interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            apart(prepared, {"ex-0-yours": ANSWERS["right"].source}, **WHO)
        left = set(psutil.Process().children(recursive=True)) - below
        assert not psutil.wait_procs(left, timeout=60)[1]  # some are just ending
    finally:
        armed.clear()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


GRADIENT = """
weight = torch.ones(3, requires_grad=True)
(weight * f(torch.ones(3))).sum().backward()
expect_close(weight.grad, torch.full((3,), 2.0), "the gradient")
"""
DANGEROUS = """
import os, time
value = f(1)
if value == 13:
    os._exit(1)
if value == 14:
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
if value == 15:
    bytearray(1 << 40)
expect_equal(value, 2, "f(1)")
"""


@pytest.fixture(scope="module")
def fragile() -> Prepared:
    return prepare(
        notebook(
            exercise("ex-0", tests=GRADIENT, hidden=""),
            exercise("ex-1", tests=DANGEROUS, hidden=""),
        )
    )


def in_child(prepared: Prepared, second: str, **more: Any) -> Judged:
    answers = {"ex-0-yours": ANSWERS["right"].source, "ex-1-yours": second}
    return apart(prepared, answers, **(WHO | more))


def test_a_child_judges_as_the_process_itself_does(fragile: Prepared) -> None:
    right = ANSWERS["right"].source
    assert in_child(fragile, right) == answered(fragile, {"ex-0": right, "ex-1": right})


def test_a_judge_that_dies_keeps_what_it_had(fragile: Prepared) -> None:
    judged = in_child(fragile, "def f(x):\n    return 13")
    assert judged.verdicts["ex-0-checks"].passed
    assert judged.verdicts["ex-1-checks"].message == (
        "Not judged: the process that judges it died."
    )
    assert judged.remarks == ("the process that judges it died",)


def test_checks_that_run_out_of_memory_fail(fragile: Prepared) -> None:
    judged = in_child(fragile, "def f(x):\n    return 15")
    assert judged.verdicts["ex-0-checks"].passed
    assert "MemoryError" in judged.verdicts["ex-1-checks"].message


def test_a_judge_that_hangs_is_ended_with_all_below_it(fragile: Prepared) -> None:
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    limits = Limits(cell_seconds=1)
    judged = in_child(fragile, "def f(x):\n    return 14", seconds=25, limits=limits)
    assert not judged.verdicts["ex-1-checks"].passed
    assert judged.remarks == ("judging it took too long: the machine was busy",)
    assert LATE.fullmatch(judged.remarks[0])  # so the next run judges it again
    alive = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []


def test_checks_that_run_for_ever_are_ended() -> None:
    tests = "n = f(1)\nwhile n == 3: pass\nexpect_equal(n, 2, 'f(1)')"
    prepared = prepare(notebook(exercise("ex-0", tests=tests, hidden=""), exercise("ex-1")))
    right = ANSWERS["right"].source
    answers = {"ex-0": "def f(x):\n    return 3", "ex-1": right}
    judged = answered(prepared, answers, limits=Limits(cell_seconds=5))
    assert "more than 5 seconds" in judged.verdicts["ex-0-checks"].message
    assert judged.verdicts["ex-1-checks"].passed and judged.verdicts["ex-1-hidden"].passed


def test_the_time_of_checks_is_theirs_and_not_that_of_the_watch() -> None:
    """Another thread works three times as long as they may; then they do."""

    def work(seconds: float) -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    beside = threading.Thread(target=work, args=(1.5,))
    with _alarm(0.5):
        beside.start()
        beside.join()
    with pytest.raises(Stopped, match="The checks took more than 0 seconds"), _alarm(0.5):
        work(20)


def test_reading_a_value_is_under_the_deadline_of_its_cell() -> None:
    """What a cell binds, and what a call returns."""
    read, slow = codec.Reader.get, "x" * 8

    def long(self: codec.Reader, text: Any, depth: int = 0) -> Any:
        end = time.thread_time() + 20  # bounded here too
        while text == slow and time.thread_time() < end:
            pass
        return read(self, text, depth)

    tests = "expect_equal(f, 'x', 'f')"
    bound = exercise("ex-0", "f = ''\n### BEGIN SOLUTION\nf = 'x'\n### END SOLUTION", tests, "")
    prepared = prepare(notebook(bound, exercise("ex-1"), exercise("ex-2")))
    answers = {"ex-0": f"f = {slow!r}", "ex-1": f"def f(x):\n    return {slow!r}"}
    answers["ex-2"] = ANSWERS["right"].source
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec.Reader, "get", long)
        judged = answered(prepared, answers, limits=Limits(cell_seconds=2))
    for name in ("ex-0", "ex-1"):
        assert "more than 2 seconds" in judged.verdicts[f"{name}-checks"].message, name
    assert judged.verdicts["ex-2-checks"].passed and judged.verdicts["ex-2-hidden"].passed


def test_a_source_that_does_not_run_is_named() -> None:
    with pytest.raises(ValueError, match="'setup-1' of the assignment fails at line 2"):
        prepare(notebook(exercise("ex-0"), set_up="import torch\n1 / 0"))
    with pytest.raises(ValueError, match=r"'ex-0-checks'.*expected 3"):
        prepare(notebook(exercise("ex-0", tests="expect_equal(f(1), 3)")))


def test_the_limits_of_this_process_stay_as_they_are(fragile: Prepared) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    in_child(fragile, ANSWERS["right"].source)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert os.environ.get("STUDENT") is None


# --- what reviews have found ---------------------------------------------------------------------


def test_an_answer_that_spoils_a_later_cell_of_ours_is_the_one_to_blame() -> None:
    """Else a new process would start, and die, until the time is over."""
    source = notebook(
        exercise("ex-1"),
        [cell("numbers", "ex-2-numbers", "n = double(1)", "ex-2"), *exercise("ex-2")],
    )
    spoiling = "import os, builtins\ndef f(x):\n    return 2 * x\ndouble = lambda x: os._exit(0)"
    right = "def f(x):\n    return 2 * x"
    starts = []
    kept = line.Session.__init__

    def counted(self: line.Session, *given: Any) -> None:
        starts.append(given)
        kept(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line.Session, "__init__", counted)
        judged = answered(prepare(source), {"ex-1": spoiling, "ex-2": right}, limits=QUICK)
    assert len(starts) == 2
    assert {name: verdict.passed for name, verdict in judged.verdicts.items()} == {
        "ex-1-checks": False,
        "ex-1-hidden": False,
        "ex-2-checks": True,
        "ex-2-hidden": True,
    }


FOUND = {
    "plots in the notebook": (
        "%matplotlib inline\nimport matplotlib.pyplot as plt\ndef f(x):\n    return 2 * x",
        CHECKS,
    ),
    "what the checks import": (
        "def f(n):\n    return isqrt(n)",
        "from math import isqrt\nexpect_equal(f(17), 4, 'f(17)')",
    ),
    "a deque": (
        "from collections import deque\ndef f(n):\n    return deque(range(n))",
        "expect_equal(f(3), [0, 1, 2], 'f(3)')",
    ),
    "a fraction": (
        "from fractions import Fraction\ndef f(n):\n    return [Fraction(n, 2), Fraction(2 * n)]",
        "expect_equal(f(3), [1.5, 6], 'f(3)')",
    ),
    "keys of a dict": (
        "def f(n):\n    return dict.fromkeys(range(n)).keys()",
        "expect_equal(f(3), {0, 1, 2}, 'f(3)')",
    ),
    "the same seed twice": (
        "import torch\ndef f(n):\n    return torch.rand(n)",
        "torch.manual_seed(1)\na = f(3)\ntorch.manual_seed(1)\nexpect_close(f(3), a, 'again')\n"
        "expect_equal(bool((f(3) == f(3)).all()), False, 'without a seed')",
    ),
}


def test_a_thread_that_outlives_its_call_does_not_reach_the_grader() -> None:
    late = (
        "import threading, time\n"
        "def f(x):\n"
        "    def ask():\n"
        "        time.sleep(0.5)\n"
        "        x(1)\n"
        "    threading.Thread(target=ask).start()\n"
        "    return 3\n"
    )
    gives = "expect_equal(f(double), 3, 'f(double)')"
    slow = "import time\ndef f(x):\n    time.sleep(1.5)\n    return 2 * x"
    solution = "def f(x):\n    return 3"
    source = notebook(exercise("ex-1", solution, gives, hidden=""), exercise("ex-2"))
    judged = answered(prepare(source), {"ex-1": late, "ex-2": slow}, limits=QUICK)
    assert not {name: v.message for name, v in judged.verdicts.items() if not v.passed}


def test_honest_answers_that_once_got_nothing() -> None:
    parts = []
    for number, (answer, tests) in enumerate(FOUND.values()):
        solution = answer.removeprefix("%matplotlib inline\n")
        if "isqrt" in answer:
            solution = f"from math import isqrt\n{solution}"
        parts.append(exercise(f"ex-{number}", solution, tests, hidden=""))
    answers = {f"ex-{number}": answer for number, (answer, _) in enumerate(FOUND.values())}
    judged = answered(prepare(notebook(*parts)), answers)
    said = {
        name: verdict.message for name, verdict in judged.verdicts.items() if not verdict.passed
    }
    assert not said
