"""Every solution passes its tests, every stub and every known-wrong solution fails with words."""

import warnings
from functools import cache
from pathlib import Path

import pytest
from book.conftest import LESSONS

from book import lesson_runner
from tfviz_lessons.checklist import lacks
from tfviz_lessons.lesson import LessonError, parse, read
from tfviz_lessons.variants import apart

SAMPLE = Path(__file__).with_name("sample_lesson.md")


def labels(path):
    """Labels of its exercises; a lesson that cannot be read has a test of its own."""
    try:
        return [exercise.label for exercise in read(path).exercises]
    except LessonError:
        return []


def results(proofs, name, label):
    """What came of every variant of an exercise when the book was executed."""
    proof = proofs[name]
    if label not in proof.exercises:
        said = "\n".join(proof.problems)
        pytest.fail(f"{name} does not run from top to bottom:\n{said[-3000:]}")
    return proof.exercises[label]


EXERCISES = [(name, label) for name, path in LESSONS.items() for label in labels(path)]


def test_there_are_lessons():
    assert LESSONS


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_has_all_that_a_chapter_needs(name):
    missing = lacks(read(LESSONS[name]))
    assert not missing, f"{name} lacks:\n" + "\n".join(missing)


@pytest.mark.parametrize(("name", "label"), EXERCISES)
def test_the_solution_passes(proofs, name, label):
    tries = [t for t in results(proofs, name, label) if t["variant"].startswith("solution")]
    (exercise,) = (e for e in read(LESSONS[name]).exercises if e.label == label)
    assert [t["tests"] for t in tries] == ["visible"] + ["all"] * len(exercise.draws())
    for t in tries:
        said = f"{t['variant']}, {t['tests']} tests: {t['outcome']}: {t['message']}"
        assert t["outcome"] == "passes", said


@pytest.mark.parametrize(("name", "label"), EXERCISES)
def test_the_stub_fails_with_words(proofs, name, label):
    (stub,) = (t for t in results(proofs, name, label) if t["variant"] == "stub")
    assert stub["outcome"] in ("empty", "check"), (
        f"the stub must fail the visible tests with a check's message or an empty "
        f"NotImplementedError, got {stub['outcome']}: {stub['message']}. What the tests need must "
        "stand outside the marks of the solution."
    )


@pytest.mark.parametrize(("name", "label"), EXERCISES)
def test_known_wrong_solutions_fail_with_words(proofs, name, label):
    wrong = [t for t in results(proofs, name, label) if t["variant"].startswith("wrong")]
    assert wrong
    for t in wrong:
        assert t["outcome"] == "check", f"{t['variant']}: {t['outcome']}: {t['message']}"
        assert len(t["message"]) > 15, f"{t['variant']}: the message says nothing: {t['message']}"


# --- the proof itself ----------------------------------------------------------------------------


@cache
def tried(path):
    """Every variant of every exercise of a lesson, in a copy of this process, not in a kernel."""

    with warnings.catch_warnings():
        # a copy of a process with several threads has only one; here that is enough
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        return apart(lambda: lesson_runner.outcomes(path))


def outcomes(path, label):
    return {(t["variant"], t["tests"]): t["outcome"] for t in tried(path)[label]}


def test_the_runner_tells_the_variants_of_the_sample_apart():
    assert outcomes(SAMPLE, "ex-shift") == {
        ("solution", "visible"): "passes",
        ("solution", "all"): "passes",
        ("stub", "visible"): "empty",
        ("wrong: the wrong way", "all"): "check",
    }
    assert outcomes(SAMPLE, "ex-far") == {
        ("solution", "visible"): "passes",
        ("solution", "all"): "passes",
        **{
            (f"solution with step, count = {step}, {count}", "all"): "passes"
            for step, count in ((2, 6), (3, 4), (3, 6), (5, 4), (5, 6))
        },
        ("stub", "visible"): "empty",
        ("wrong: a single step", "all"): "check",
    }
    assert outcomes(SAMPLE, "ex-state") == {
        ("solution", "visible"): "passes",
        ("solution", "all"): "passes",
        ("stub", "visible"): "check",
        ("wrong: one short", "all"): "check",
    }


SINGLE = ("ex-far", "wrong: a single step")
OTHER = "solution with step, count = 3, 4"


@pytest.mark.parametrize(
    ("old", "new", "label", "variant", "outcome"),
    [
        ("secretly = x + by", "secretly = x * by", "ex-shift", "solution", "check"),
        ("(radius=3)", "(radius=4.0)", "ex-state", "wrong: one short", "passes"),
        ("return x - by  # wrong_way", "return x.a", "ex-shift", "wrong: the wrong way", "Attrib"),
        ("= count * step", "= count * 5", "ex-far", OTHER, "check"),
        ("x + far", "x - int(type(x) is int and x > 9) + far", "ex-far", "solution", "check"),
        ("x + step  #", "x + (8 if isinstance(x, int) else step)  #", *SINGLE, "check"),
        ("x + step  #", "x + 8 + (type(x) is int and x == 1)  #", *SINGLE, "passes"),
        ("x + step  #", "x + 8 if type(x) is not int else x.a  #", *SINGLE, "Attrib"),
    ],
    ids=[
        *("wrong solution", "right wrong one", "unrelated exception"),
        *("right for one number only", "right for small seeds only"),
        *("caught by the visible tests", "wrong for one seed only", "crashes in hidden tests"),
    ],
)
def test_the_runner_notices_what_proves_nothing(tmp_path, old, new, label, variant, outcome):
    path = tmp_path / "sample.md"
    text = SAMPLE.read_text("utf8")
    assert old in text
    path.write_text(text.replace(old, new), "utf8")
    assert outcomes(path, label)[variant, "all"].startswith(outcome)


def test_the_sample_has_every_kind_of_exercise():
    tasks = parse(SAMPLE.read_text("utf8")).tasks
    assert [task.label for task in tasks] == ["ex-shift", "ex-state", "ex-far", "ex-why"]
