"""The lesson parser, the page made of a lesson, and MyST turned into plain Markdown."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import yaml

from tfviz import catalogue
from tfviz_lessons.assignment import release, source, tell
from tfviz_lessons.execute import told
from tfviz_lessons.lesson import LessonError, is_lesson, parse
from tfviz_lessons.notebook import Course, notebook
from tfviz_lessons.page import page_text
from tfviz_lessons.plain import Plain, expand
from tfviz_lessons.slice import SliceError, needed

ROOT = Path(__file__).resolve().parents[2]

SAMPLE = (Path(__file__).parent / "sample_lesson.md").read_text("utf8")
MACROS = {
    "Q": r"\htmlClass{tfviz-query}{\mathbf Q}",
    "K": r"\htmlClass{tfviz-key}{\mathbf K}",
    "V": r"\mathbf V",
    "X": r"\mathbf X",
    "T": r"\top",
    "softmax": r"\operatorname{softmax}",
}


class Shelf:
    """A book of three labels."""

    def equation(self, label):
        return {"eq-strided": "3", "eq-query": "4"}[label]

    def reference(self, label):
        address = f"https://book/page.html#{label}"
        known = {"ex-shift": ("Exercise 7", "Exercise 7"), "sample-strided": ("Strided", "")}
        known["erratum-e29"] = ("E29", "")
        known["ex-state"] = ("Exercise 8", "Exercise 8")
        known["ex-far"] = ("Far", "Exercise 9")
        known["ex-why"] = ("Why", "Exercise 10")
        return (*known[label], address)

    def page(self, target):
        return {"sample.md": ("A sample lesson", "https://book/sample.html")}[target]

    def citation(self, key):
        return {
            "child2019generating": ("Child et al.", "2019"),
            "vaswani2017attention": ("Vaswani et al.", "2017"),
            "bahdanau2014neural": ("Bahdanau et al.", "2014"),
        }[key]


PACKAGE = "tfviz[lessons] @ git+https://host/course"
COURSE = Course(PACKAGE, "0.1.0", MACROS, lambda key: f"Entry {key}")


def plain(text):
    return Plain("a.md", Shelf(), MACROS)(text)


# --- parsing -------------------------------------------------------------------------------------


def test_an_exercise_knows_its_parts():
    exercise, state, far = parse(SAMPLE).exercises
    assert (exercise.label, exercise.title, exercise.answer) == ("ex-shift", "Shift", "code")
    assert exercise.prose.source.startswith("Write `shift`")
    assert exercise.prose.source.endswith("two paragraphs.")
    assert exercise.hints[0].source.strip() == "Of $\\Q$."
    assert exercise.stub == (
        "def shift(x, by):\n"
        '    """Return x moved by `by`."""\n'
        "    # your code here\n"
        "    raise NotImplementedError"
    )
    assert exercise.solved.endswith("    moved_secretly = x + by\n    return moved_secretly")
    assert "hidden_shift" in exercise.all_tests and "###" not in exercise.all_tests
    assert "hidden_shift" not in exercise.visible_tests and "passed(" in exercise.visible_tests
    assert [wrong.why for wrong in exercise.wrong] == ["the wrong way"]
    assert state.answer == "explorer"
    assert "lab.radius = 4" not in state.stub and "raise" not in state.stub
    assert "lab = SimpleNamespace(radius=0)" in state.stub
    assert (exercise.points, state.points, far.points) == ((1, 1), (1, 0), (2, 3))
    assert "hidden_far" in far.hidden_tests and "expect_equal(far(base)" not in far.hidden_tests


SPELT_OUT = """```{code-cell} ipython3
---
exercise: ex-shift
role: wrong
why: the wrong way
---
def shift(x, by):
    return x - by  # wrong_way
```
"""
SWAPS = """```{code-cell} ipython3
---
role: wrong
swap:
- [x + by, x - by, the wrong way]
- - return moved_secretly
  - return by
  - it forgets x
---
```
"""


def swapping(old="", new=""):
    """The sample with two wrong solutions of ex-shift as swaps, of which `old` is replaced."""
    assert old in SWAPS
    return replaced(SPELT_OUT, SWAPS.replace(old, new) if old else SWAPS)


def test_a_swap_is_the_solution_with_one_piece_replaced():
    exercise, state, _ = parse(swapping()).exercises
    assert exercise.wrong_cells[0].options["exercise"] == "ex-shift"
    assert [wrong.why for wrong in exercise.wrong] == ["the wrong way", "it forgets x"]
    backwards, forgetful = (wrong.source for wrong in exercise.wrong)
    assert backwards == exercise.solved.replace("x + by", "x - by")
    assert forgetful == exercise.solved.replace("return moved_secretly", "return by")
    assert [wrong.source.split()[-1] for wrong in state.wrong] == ["SimpleNamespace(radius=3)"]
    assert told(exercise)["wrong"] == [["the wrong way", backwards], ["it forgets x", forgetful]]


def test_swaps_and_whole_cells_may_follow_each_other():
    (exercise, *_) = parse(replaced(SPELT_OUT, SWAPS + "\n" + SPELT_OUT)).exercises
    assert [wrong.why for wrong in exercise.wrong] == [
        *("the wrong way", "it forgets x"),
        "the wrong way",
    ]


def test_cells_need_not_say_what_their_order_says():
    """No `exercise:`, and options of one line each without the lines around them."""
    short = re.sub(r"^exercise: .*\n", "", SAMPLE, flags=re.M)
    short = re.sub(
        r"^---\n((?:(?:role|why|answer|vary|points|hidden_points): .*\n)+)---\n",
        lambda found: re.sub("^", ":", found[1].rstrip(), flags=re.M) + "\n",
        short,
        flags=re.M,
    )
    assert "exercise: " not in short and short.count("\n---\n") == 3  # front matter, a rubric
    for before, after in zip(parse(SAMPLE).exercises, parse(short).exercises, strict=True):
        assert told(before) == told(after) and before.asked == after.asked
        cells = [after.solution, after.tests, *after.wrong_cells]
        assert all(cell.options["exercise"] == after.label for cell in cells)


def test_numbers_stand_in_front_of_stub_and_solution():
    far = parse(SAMPLE).exercises[2]
    assert far.numbers == "step, count = 2, 4"
    assert far.stub.startswith("step, count = 2, 4\n\ndef far(x):")
    assert far.solved.startswith("step, count = 2, 4\n\ndef far(x):")
    draws = [tuple(draw.values()) for draw in far.draws()]
    assert draws == [(2, 4), (2, 6), (3, 4), (3, 6), (5, 4), (5, 6)]
    assert [tuple(draw.values()) for draw in far.draws(2)] == [(2, 4), (5, 6)]
    assert parse(SAMPLE).exercises[0].draws() == [{}]


def test_an_exercise_in_words_knows_its_parts():
    lesson = parse(SAMPLE)
    (why,) = lesson.written
    assert [task.label for task in lesson.tasks] == ["ex-shift", "ex-state", "ex-far", "ex-why"]
    assert (why.title, why.points) == ("Why", 3)
    assert why.rubric == ((2, "says that it is there"), (1, "names $\\Q$: the query"))
    assert why.model.source.startswith("It *is* there, model_secretly")


def test_blocks_keep_the_order_and_place_of_the_source():
    lesson = parse(SAMPLE)
    lines = SAMPLE.splitlines()
    blocks = [b for block in lesson.blocks for b in getattr(block, "blocks", [block])]
    starts = [block.start for block in blocks]
    assert starts == sorted(starts)
    for block in blocks:
        if block.kind == "code":
            assert lines[block.start].startswith("```{code-cell}")
            assert lines[block.end - 1] == "```"


def test_what_is_a_lesson():
    assert is_lesson(SAMPLE)
    assert not is_lesson("# A page\n\ntext")
    assert not is_lesson("---\ntitle: x\n---\n\n# A page\n")


def replaced(old, new, count=1):
    assert old in SAMPLE
    return SAMPLE.replace(old, new, count)


def without(start, end="```\n\n"):
    """The sample without the piece from `start` to the next `end`."""
    before, after = SAMPLE.split(start, 1)
    return before + after.split(end, 1)[1]


CELL = "```{code-cell} ipython3\n---\nexercise: ex-shift\nrole: %s\n"
FAULTS = {
    "no label": (replaced(":label: ex-shift\n", ""), "{exercise-start} needs a line ':label: ex-"),
    "bad label": (replaced(":label: ex-shift", ":label: shift"), "':label: ex-…', it has 'shift'"),
    "two of a name": (
        SAMPLE.replace("ex-state", "ex-shift"),
        "label 'ex-shift' is taken: see line 60",
    ),
    "no end": (replaced("```{exercise-end}\n```\n", ""), "expected {exercise-end} after the prose"),
    "no prose": (
        replaced("Write `shift`: what is $\\softmax$ of it?\n\nIt has two paragraphs.\n", ""),
        "no prose",
    ),
    "no hint": (without("```{hint} Think"), "expected a {hint} after the prose of 'ex-shift'"),
    "no solution": (without(CELL % "solution"), "expected a solution cell of 'ex-shift' here"),
    "no tests": (
        without(CELL % "tests"),
        "expected a tests cell of 'ex-shift' here, found a cell with role: wrong",
    ),
    "no wrong": (without(CELL % "wrong"), "expected at least one wrong cell of 'ex-shift' here"),
    "no why": (replaced("why: the wrong way\n", ""), "does not say why:"),
    "text between": (
        replaced(CELL % "tests", "Some text.\n\n" + CELL % "tests"),
        "expected a tests cell of 'ex-shift' here, found text ('Some text.')",
    ),
    "another's cell": (
        replaced(CELL % "tests", (CELL % "tests").replace("ex-shift", "ex-state")),
        "this tests cell says exercise: 'ex-state', it stands in the exercise 'ex-shift'",
    ),
    "a swap of what is not there": (
        swapping("[x + by,", "[y + by,"),
        "swap: 'y + by' stands 0 times in the solution of 'ex-shift', must be once",
    ),
    "a swap of what stands twice": (
        swapping("[x + by,", "[moved_secretly,"),
        "swap: 'moved_secretly' stands 2 times in the solution of 'ex-shift'",
    ),
    "a swap that is no triple": (
        swapping(", the wrong way]", "]"),
        "swap: ['x + by', 'x - by'] of 'ex-shift' is not three texts [old, new, why]",
    ),
    "a swap by a number": (swapping("x - by", "0"), "put numbers and what YAML may misread"),
    "a swap of nothing": (swapping("x + by", "''"), "is not three texts"),
    "a swap without a reason": (swapping("the wrong way", "' '"), "does not say why:"),
    "a swap that changes nothing": (swapping("x - by", "x + by"), "is the solution itself"),
    "a swap that is not Python": (
        swapping("x - by", "x -"),
        "swap: 'x + by' by 'x -' in 'ex-shift' is not Python",
    ),
    "no swaps": (
        swapping(SWAPS[SWAPS.index("- [") : SWAPS.index("---\n```")]).replace("swap:", "swap: []"),
        "swap: [] of 'ex-shift'; write [[old, new, why], …]",
    ),
    "a swap and code": (
        replaced(SPELT_OUT, SWAPS[:-4] + "pass\n```\n"),
        "a wrong cell of 'ex-shift' with swap: has neither code nor a why: of its own",
    ),
    "a swap and a reason beside it": (
        swapping("role: wrong", "role: wrong\nwhy: it is"),
        "has neither code nor a why: of its own",
    ),
    "lost cell that names no exercise": (
        SAMPLE + "\n```{code-cell} ipython3\n:role: tests\nx = 1\n```\n",
        "this tests cell does not follow its exercise",
    ),
    "lost cell": (
        SAMPLE + "\n" + CELL % "tests" + "---\nx = 1\n```\n",
        "does not follow its exercise",
    ),
    "no marks": (
        re.sub(r" *### (BEGIN|END) SOLUTION\n", "", SAMPLE, count=2),
        "has no '### BEGIN SOLUTION'",
    ),
    "half a mark": (replaced("    ### END SOLUTION\n", ""), "is never closed"),
    "end before begin": (
        replaced("    ### BEGIN SOLUTION\n", ""),
        "without the other half of its pair",
    ),
    "misspelt mark": (
        replaced("### BEGIN SOLUTION", "### BEGIN SOLUTIONS"),
        "expected ### BEGIN SOLUTION",
    ),
    "mark elsewhere": (
        replaced("base = torch.ones(2)", "### BEGIN SOLUTION\nbase = 1\n### END SOLUTION"),
        "no mark belongs in this cell",
    ),
    "all hidden": (
        replaced("from tfviz.checks", "### BEGIN HIDDEN TESTS\nfrom tfviz.checks")
        .replace('what="shift(1, 2)")\n### BEGIN HIDDEN TESTS\n', 'what="shift(1, 2)")\n')
        .replace(
            '### END HIDDEN TESTS\npassed(f"shift moves 1 by 2 to {shift(1, 2)}")',
            "### END HIDDEN TESTS",
        ),
        "all tests of 'ex-shift' are hidden",
    ),
    "not Python": (replaced("return x - by  #", "return x -  #"), "is not Python"),
    "unknown option": (replaced("why: the", "because: the"), "unknown option 'because'"),
    "unknown answer": (replaced("answer: explorer", "answer: essay"), "answer: 'essay'"),
    "the solution itself": (
        replaced("    return x - by  # wrong_way", "    pass").replace(
            "def shift(x, by):\n    pass",
            'def shift(x, by):\n    """Return x moved by `by`."""\n'
            "    moved_secretly = x + by\n    return moved_secretly",
        ),
        "is the solution itself",
    ),
    "a bare assert": (
        replaced('expect_equal(far(base), base + count * step, what="far(base)")', "assert far(0)"),
        "a bare assert in the tests of 'ex-far' tells the learner nothing",
    ),
    "no points": (replaced("points: 2", "points: 0"), "points: 0 must be a number above 0"),
    "points in words": (replaced("\npoints: 2", "\npoints: two"), "points: 'two' must be a"),
    "points for a boolean": (replaced("\npoints: 2", "\npoints: true"), "points: True must be a"),
    "points for nothing": (
        replaced(
            "exercise: ex-state\nrole: tests\n",
            "exercise: ex-state\nrole: tests\nhidden_points: 1\n",
        ),
        "hidden_points of 'ex-state', which has no hidden tests",
    ),
    "nothing to vary": (replaced("vary: {step: [2, 3, 5], count: [4, 6]}", "vary: {}"), "vary: {}"),
    "one choice": (replaced("count: [4, 6]", "count: [4]"), "vary: count: [4]; write vary: {stri"),
    "no list": (replaced("count: [4, 6]", "count: 4"), "for each name a list of two or more"),
    "the same twice": (replaced("count: [4, 6]", "count: [4, 4]"), "has a choice twice"),
    "no name": (replaced("count: [4, 6]", "class: [4, 6]"), "'class' is not a name in Python"),
    "a taken name": (replaced("count: [4, 6]", "seed: [4, 6]"), "the name 'seed' is taken"),
    "a choice without a literal": (replaced("[4, 6]", "[4, [6]]"), "vary: count: [4, [6]]"),
    "a lost answer": (
        SAMPLE + "\n```{model-answer}\n:rubric: [x]\nText.\n```\n",
        "does not follow the prose and hints of an exercise",
    ),
    "an answer and code": (
        SAMPLE + "\n" + (CELL % "tests").replace("shift", "why") + "---\nx = 1\n```\n",
        "does not follow its exercise",
    ),
    "no rubric": (
        without("rubric:\n", 'the query"\n'),
        "a {model-answer} needs 'rubric:', a list of lines such as '- 2 points: what'",
    ),
    "a rubric without points": (replaced("2 points: says", "says"), "is not of the form '2 poin"),
    "a rubric of nothing": (replaced("2 points: says", "0 points: says"), "is not of the form"),
    "a rubric that does not add up": (
        replaced("\npoints: 3", "\npoints: 4"),
        "points: 4 of 'ex-why', but the lines of its rubric add up to 3",
    ),
    "an unknown option of an answer": (
        replaced("\npoints: 3", "\nworth: 3"),
        "unknown option 'worth'",
    ),
    "an empty answer": (
        replaced("It *is* there, model_secretly, before $\\V$.\n", ""),
        "the {model-answer} of 'ex-why' is empty",
    ),
    "broken options": (replaced("role: tests\n", "role: [tests\n"), "cannot be read"),
    "another way to write it": (
        SAMPLE + "\n```{exercise} Old\n:label: ex-old\nText.\n```\n",
        "{exercise} is not used in lessons",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_malformed_exercise_is_named_with_its_place(name):
    text, message = FAULTS[name]
    with pytest.raises(LessonError) as caught:
        parse(text, "chapters/x.md")
    assert message in str(caught.value)
    assert len(caught.value.problems) == 1, str(caught.value)
    place = re.match(r"chapters/x\.md:(\d+): ", str(caught.value))
    assert place and 1 <= int(place[1]) <= len(text.splitlines())


def test_the_line_of_a_fault_is_the_line_of_the_file():
    text = replaced("return x - by  #", "return x -  #")
    with pytest.raises(LessonError) as caught:
        parse(text, "x.md")
    assert "return x -  #" in text.splitlines()[caught.value.problems[0][0] - 1]


def test_all_faults_are_told_at_once():
    text = SAMPLE.replace("why: the wrong way\n", "").replace("why: one short\n", "")
    with pytest.raises(LessonError) as caught:
        parse(text, "x.md")
    assert len(caught.value.problems) == 2


# --- the page ------------------------------------------------------------------------------------


def test_the_page_shows_what_a_reader_may_see():
    page = page_text(parse(SAMPLE))
    assert "hidden_shift" not in page and "HIDDEN" not in page
    assert "wrong_way" not in page and "one short" not in page
    assert "BEGIN SOLUTION" not in page
    box = page.split("{exercise-start} Shift")[1].split("{exercise-end}")[0]
    assert "raise NotImplementedError" in box and "moved_secretly" not in box
    assert "```{admonition} Think\n:class: hint dropdown" in box
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", page, re.S)
    assert not any("NotImplementedError" in cell for cell in cells)
    solution = page.split("{solution-start} ex-shift")[1].split("{solution-end}")[0]
    assert "{code-cell}" in solution and "moved_secretly" in solution
    assert "dropdown" in solution


def test_an_explorer_to_set_is_live_in_its_exercise():
    page = page_text(parse(SAMPLE))
    box = page.split(":label: ex-state\n")[1].split("{exercise-end}")[0]
    assert "{code-cell}" in box and "lab = SimpleNamespace(radius=0)" in box
    assert "lab.radius = 4" not in box
    folded = page.split("{solution-start} ex-state")[1].split("{solution-end}")[0]
    assert "lab.radius = 4" in folded and "expect_equal(lab.radius" in folded


def test_the_page_folds_a_model_answer_with_what_counts():
    page = page_text(parse(SAMPLE))
    box = page.split(":label: ex-why\n")[1].split("{exercise-end}")[0]
    assert "Why is" in box and "Look again." in box and "model_secretly" not in box
    answer = page.split("{solution-start} ex-why")[1].split("{solution-end}")[0]
    assert "It *is* there, model_secretly, before $\\V$." in answer
    assert "* 2 points: says that it is there\n* 1 point: names $\\Q$: the query\n" in answer
    assert "{model-answer}" not in page and "rubric" not in page


CELL = "```{code-cell} ipython3\nx = 1\n```"
SHOWN = "```{code-cell} ipython3\n---\ntags: [show]\n---\ny = 2\n```"
LAYERS = f"{SAMPLE}\n{CELL}\n\n#### Deeper: why\n\nA proof.\n\n{SHOWN}\n\n### More: costs\n"


def test_cells_fold_unless_they_are_shown():
    page = page_text(parse(LAYERS))
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", page, re.S)
    one, other = (next(cell for cell in cells if line in cell) for line in ("x = 1", "y = 2"))
    assert "hide-input" in one and "Show the code" in one and "hide-input" not in other
    book = {cell.source: cell.metadata for cell in made(LAYERS).cells}
    assert book["x = 1"]["jupyter"] == {"source_hidden": True}
    assert "jupyter" not in book["y = 2"]
    assert book["#### Deeper: why\n\nA proof."] == {"jp-MarkdownHeadingCollapsed": True}
    assert book["### More: costs"] == {}  # a fold of the page only
    stub = next(m for source, m in book.items() if "raise NotImplementedError" in source)
    assert "jupyter" not in stub  # an answer is never folded away


def test_an_exercise_says_what_it_takes():
    at = "exercise: ex-shift\nrole: tests\n"
    assert SAMPLE.count(at) == 1
    text = SAMPLE.replace(at, f"{at}minutes: 5\nlevel: easy\noptional: true\n")
    said = "5 minutes · easy · optional"
    assert parse(text).tasks[0].effort == said and parse(SAMPLE).tasks[0].effort == ""
    assert f"```{{div}} tf-effort\n{said}\n```" in page_text(parse(text))
    assert f"· {said}" in next(cell.source for cell in made(text).cells if cell.id == "ex-shift")
    for wrong in ("minutes: soon", "minutes: 0", "level: nice", "optional: perhaps"):
        with pytest.raises(LessonError, match=wrong.split(":")[0]):
            parse(SAMPLE.replace(at, f"{at}{wrong}\n"))


def test_a_number_is_asked_for_in_the_page_and_proved():
    at = "exercise: ex-shift\nrole: tests\n"
    ask = 'ask: {question: "How <far>?", code: 1 + 1, is: 2, near: 0.5}\n'
    lesson = parse(SAMPLE.replace(at, at + ask))
    box = page_text(lesson).split("{exercise-start} Shift")[1].split("{exercise-end}")[0]
    marks = 'data-ask="ex-shift" data-is="2" data-near="0.5"'
    assert f'```{{raw}} html\n<div class="tf-ask" {marks}><p>How &lt;far&gt;?' in box
    hidden = told(lesson.exercises[0])["hidden"]
    assert hidden.endswith("\nassert abs(float(1 + 1) - 2) <= 0.5")
    assert "tf-ask" not in page_text(parse(SAMPLE))
    faults = ("1 + 1", "1 +"), ("is: 2", "is: two"), (", near: 0.5", ""), ("How <far>?", "")
    for old, new in faults:
        with pytest.raises(LessonError, match="ask"):
            parse(SAMPLE.replace(at, at + ask.replace(old, new)))


def test_a_page_without_exercises_is_left_alone():
    text = SAMPLE.split("```{exercise-start}")[0].rstrip() + "\n"
    assert page_text(parse(text)) == text


# --- plain Markdown ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tex", "expanded"),
    [
        (r"\Q\K^\T", r"{\mathbf Q}{\mathbf K}^\top"),
        (r"\V x", r"\mathbf V x"),
        (r"\T x", r"\top x"),
        (r"\Tx", r"\Tx"),
        (r"\pair{a}{b_{1}}", r"\langle a, b_{1}\rangle"),
        (r"\pair ab", r"\langle a, b\rangle"),
        (r"\\T", r"\\T"),
        (r"\htmlClass{a}{x^{2}}+1", r"{x^{2}}+1"),
    ],
)
def test_macros_are_written_out(tex, expanded):
    assert expand(tex, {**MACROS, "pair": [r"\langle #1, #2\rangle", 2]}) == expanded


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("see {eq}`eq-strided`.", "see (3)."),
        ("{ref}`here <sample-strided>`", "[here](https://book/page.html#sample-strided)"),
        ("{ref}`sample-strided`", "[Strided](https://book/page.html#sample-strided)"),
        ("{numref}`ex-shift`", "[Exercise 7](https://book/page.html#ex-shift)"),
        ("{numref}`task %s <ex-shift>`", "[task 7](https://book/page.html#ex-shift)"),
        ("[](#sample-strided)", "[Strided](https://book/page.html#sample-strided)"),
        ("[that](sample-strided)", "[that](https://book/page.html#sample-strided)"),
        ("[so](sample.md)", "[so](https://book/sample.html)"),
        ("[out](https://x.org/a_(b))", "[out](https://x.org/a_(b))"),
        ("{doc}`sample.md`", "[A sample lesson](https://book/sample.html)"),
        ("{cite}`child2019generating`", "(Child et al., 2019)"),
        ("{cite:t}`child2019generating`", "Child et al. (2019)"),
        ("{math}`\\V`", "$\\mathbf V$"),
        ("{term}`keys <key>`", "keys"),
        ("{kbd}`Tab`", "`Tab`"),
        ("`{ref}` and `a {eq}`", "`{ref}` and `a {eq}`"),
        ("``{eq}`x` ``", "``{eq}`x` ``"),
        (
            "a {ref}`long\nlabel <sample-strided>` b",
            "a [long label](https://book/page.html#sample-strided) b",
        ),
        ("costs \\$5 and \\$6, $\\V$", "costs \\$5 and \\$6, $\\mathbf V$"),
        ("(tgt)=\n# Title", "# Title"),
        ("a\n\n% gone\n\nb", "a\n\nb"),
        ("a[^1]\n\n[^1]: note", "a<sup>1</sup>\n\n<sup>1</sup> note"),
        ("$$\nx\n$$ (eq-query)", "$$\nx\n\\tag{4}\n$$"),
        ("text $$x$$ (eq-query)", "text $$x \\tag{4}$$"),
        (
            "```{math}\na &= b \\\\\nc &= d\n```",
            "$$\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n$$",
        ),
        ("\\begin{align}\na &= b\n\\end{align}", "$$\n\\begin{align}\na &= b\n\\end{align}\n$$"),
        ("```{try}\nGuess $\\V$.\n```", "> **Try**\n>\n> Guess $\\mathbf V$."),
        ("```{measured} Time\nFast.\n```", "> **Measured: Time**\n>\n> Fast."),
        (
            "```{erratum} E29\nNo.\n```",
            "> **Erratum [E29](https://book/page.html#erratum-e29)**\n>\n> No.",
        ),
        (":::{differs}\n```{math}\nx\n```\n:::", "> **Differs**\n>\n> $$x$$"),
        (
            "```{note}\n:class: dropdown\nx\n```",
            "<details>\n<summary>Note</summary>\n\nx\n\n</details>",
        ),
        ("```{code-block} python\nx = 1\n```", "```python\nx = 1\n```"),
        ("> ```{math}\n> x\n> y\n> ```", "> $$x y$$"),
        (
            "::::{tab-set}\n\n:::{tab-item} One\na\n:::\n:::{tab-item} Two\nb\n:::\n::::",
            "**One**\n\na\n\n**Two**\n\nb",
        ),
    ],
)  # fmt: skip
def test_myst_becomes_plain_markdown(myst, markdown):
    assert plain(myst) == markdown


def test_code_is_shown_from_its_source():
    shown = plain("```{source} tfviz.checks.expect_shape\n```")
    assert shown.startswith("```python\ndef expect_shape(yours: Any")
    assert shown.endswith("```")
    both = plain("```{source} tfviz.checks.passed tfviz.checks.expect_true\n```")
    assert both.count("```python\ndef ") == 2


def test_a_card_becomes_a_short_quotation():
    card = plain("```{mechanism} sparse_transformer_strided\n```")
    row = catalogue.get("sparse_transformer_strided")
    assert card.startswith(f"> **{row.name}**\n>\n> {row.idea}\n")
    assert f"Child et al. (2019) · time ${row.time}$ · memory ${row.memory}$" in card


def test_numbers_of_public_models_stand_in_the_notebook():
    assert plain("{public}`using alibi` of {public}`models` models") == "3 of 98 models"
    table = plain("```{dropdown} More\nCounted:\n\n:::{head-schemes} falcon-7b glm-5\n:::\n```")
    assert "| Falcon 7B | MQA | 71 | 1 | 64 | 128 |\n| GLM-5 | MLA |" in table


@pytest.mark.parametrize(
    ("myst", "message"),
    [
        ("a\n{public}`using ropes`", "a.md:2: no mechanism 'ropes'; nearest: rope"),
        ("{public}`share rope`", "a.md:1: 'share rope' is not counted; choose models"),
        ("```{head-schemes} falcon-9b\n```", "a.md:1: model = 'falcon-9b' is not known"),
        ("a\n\n```{carousel}\nx\n```", "a.md:3: directive {carousel} has no form in a notebook"),
        ("a\nb {blink}`x`", "a.md:2: role {blink} has no form in a notebook"),
        ("{eq}`eq-none`", "a.md:1: eq: nothing in the book is called 'eq-none'"),
        ("x\n\n{cite}`none2020`", "a.md:3: cite: nothing in the book is called 'none2020'"),
        ("{numref}`sample-strided`", "that has no number; use {ref}"),
        ("```{source} tfviz.nothing\n```", "a.md:1: source: nothing in the book is called"),
        ("```{erratum} 29\n```", "a.md:1: {erratum} needs the number of an entry, such as E29"),
        ("```{mechanism} strided\n```", "a.md:1: no mechanism 'strided' in the catalogue"),
        ("```{note}\nfine\n\n{blink}`x`\n```", "a.md:4: role {blink}"),
        ("one {{name}} two", "a.md:1: the substitution {{name}} has no form in a notebook"),
        ("Term\n: Meaning", "a.md:1: a definition list has no form in a notebook"),
        ("[x](none.md)", "a.md:1: link: nothing in the book is called 'none.md'"),
        ("$\\htmlClass{a$", "a.md:1: unbalanced braces"),
    ],
)
def test_what_cannot_be_turned_is_named_with_its_place(myst, message):
    with pytest.raises(LessonError, match=re.escape(message)):
        plain(myst)


# --- the notebook --------------------------------------------------------------------------------


def made(text=SAMPLE):
    return notebook(parse(text), Shelf(), COURSE, "A sample lesson", "https://book/sample.html")


def test_the_notebook_has_what_a_learner_needs():
    nb = made()
    cells = {cell.id: cell for cell in nb.cells}
    assert nb.cells[0].id == "install"
    assert f'%pip install -q "{PACKAGE}"' in nb.cells[0].source
    assert "no public address" not in nb.cells[0].source
    nowhere = replace(COURSE, package="").install
    assert "no public address" in nowhere and not re.search(r"git\+|install -q", nowhere)
    assert "[A sample lesson](https://book/sample.html)" in nb.cells[1].source
    assert cells["ex-shift"].source.startswith("**Exercise 7** (Shift)\n\nWrite `shift`")
    assert "<summary>Think</summary>" in cells["ex-shift"].source
    assert cells["ex-shift-yours"].source.endswith("raise NotImplementedError")
    assert cells["ex-shift-checks"].source.startswith("%%check ex-shift\n")
    assert "<summary>Solution</summary>" in cells["ex-shift-solution"].source
    assert nb.cells[-1].source == (
        "## Cited in this chapter\n\n* Entry bahdanau2014neural\n* Entry child2019generating\n"
        "* Entry vaswani2017attention"
    )
    assert "step, count = 2, 4" in cells["ex-far-yours"].source
    assert cells["ex-why-yours"].source == "*Your answer.*"
    assert cells["ex-why-yours"].cell_type == "markdown"
    model = cells["ex-why-solution"].source
    assert "<summary>A model answer</summary>\n\nIt *is* there, model_secretly" in model
    assert "* 1 point: names ${\\mathbf Q}$: the query" in model
    whole = nbformat.writes(nb)
    assert "hidden_shift" not in whole and "wrong_way" not in whole and "htmlClass" not in whole


def test_references_go_where_the_lesson_wants_them():
    text = replaced(
        "The end.", "## Sources\n\n```{bibliography}\n:filter: docname\n```\n\nThe end."
    )
    last = made(text).cells[-1].source
    assert last.startswith("## Sources\n\n* Entry bahdanau2014neural\n* ")
    assert last.endswith("\n\nThe end.")


def test_the_same_lesson_gives_the_same_notebook():
    assert nbformat.writes(made()) == nbformat.writes(made())
    assert all(not cell.outputs for cell in made().cells if cell.cell_type == "code")
    assert made().metadata.kernelspec.name == "python3"


def test_a_fault_in_an_exercise_names_the_line_of_the_file():
    text = replaced("It has two paragraphs.", "It has {blink}`two` paragraphs.")
    with pytest.raises(LessonError) as caught:
        made(text)
    assert "{blink}" in text.splitlines()[caught.value.problems[0][0] - 1]


# --- what an exercise needs of the lesson --------------------------------------------------------


def sliced(wanted, *cells):
    return needed(cells, [(len(cells), wanted.split())])


@pytest.mark.parametrize(
    ("wanted", "cells", "kept"),
    [
        ("y", ["x = 1\nz = 2\ny = x", "w = y"], ["x = 1\ny = x", ""]),
        ("x", ["x = 1", "x = 2"], ["", "x = 2"]),
        ("y", ["x = 1", "y = x", "x = 2"], ["x = 1", "y = x", ""]),
        ("x", ["x = 1", "x += 1", "x = x * 2"], ["x = 1", "x += 1", "x = x * 2"]),
        ("x", ["x = []", "x.append(1)", "print(x)"], ["x = []", "x.append(1)", ""]),
        ("x", ["x = {}", "n = 3\nx[n] = 1"], ["x = {}", "n = 3\nx[n] = 1"]),
        ("x", ["x = f", "x.a = 1"], None),
        (
            "f",
            ["a = 1", "def f():\n    return a", "a = 2"],
            ["", "def f():\n    return a", "a = 2"],
        ),
        ("f", ["def f(a, *b, c=1, **d):\n    e = a\n    return b, c, d, e"], None),
        ("f", ["x = 1", "f = lambda y: x + y"], ["x = 1", "f = lambda y: x + y"]),
        ("f", ["def g():\n    return 1", "def f():\n    return g()"], None),
        ("a b", ["a, b = 1, 2", "c = a"], ["a, b = 1, 2", ""]),
        ("s", ["n = 3\ns = [k * n for k in range(n) if k]"], None),
        ("k", ["s = [k for k in range(3)]\nk = 1"], ["k = 1"]),
        ("t", ["t = 0\nfor n in (1, 2):\n    t += n"], None),
        ("C", ["class B:\n    pass\n\n\nclass C(B):\n    x = 1\n    y = x"], None),
        ("x", ["import torch", "torch.manual_seed(0)\nx = 1"], None),
        ("x", ["import torch", "w = torch.zeros(2)\ntorch.nn.init.ones_(w)\nx = w"], None),
        ("x", ["from a import plots", "plots.curve(1)\nx = 1"], ["from a import plots", "x = 1"]),
        ("x", ["import a\n\nimport b", "x = 1"], ["import a\n\nimport b", "x = 1"]),
        (
            "x",
            ["y = 1  # no\n# about x\nx = 2  # two\n# about z\nz = 3"],
            ["# about x\nx = 2  # two"],
        ),
        ("x", ["assert True\nx = 1\nx"], ["x = 1"]),
        ("x", ["with open('a') as f:\n    x = f.read()"], None),
        ("x", ["try:\n    x = 1\nexcept KeyError as e:\n    print(e)"], None),
        ("x", ["@cache\ndef x():\n    pass"], "cache"),
        ("y", ["x = 1"], "y"),
        ("x", ["x = lost"], "lost"),
        ("x", ["x = y", "y = 1"], "y"),
        ("len", ["x = 1"], [""]),
    ],
)
def test_a_slice_has_what_is_used_and_no_more(wanted, cells, kept):
    if isinstance(kept, str) or (kept is None and "x = f" in cells):
        with pytest.raises(SliceError) as caught:
            sliced(wanted, *cells)
        assert caught.value.name == (kept or "f")
    else:
        assert sliced(wanted, *cells) == (cells if kept is None else kept)


def test_a_name_means_what_it_is_where_it_is_used():
    cells = ["x = 1", "x = 2", "x = 3"]
    assert needed(cells, [(2, ["x"])]) == ["", "x = 2", ""]
    assert needed(cells, [(1, ["x"]), (3, ["x"])]) == ["x = 1", "", "x = 3"]
    assert needed(["import a", "import b"], [(1, [])]) == ["import a", ""]


# --- the assignment ------------------------------------------------------------------------------


def assignment(text=SAMPLE, labels=("ex-shift", "ex-state", "ex-far", "ex-why"), **options):
    lesson = parse(text, "x.md")
    told = tell(lesson, Shelf(), COURSE, "A sample lesson", "https://book/sample.html")
    options = {"name": "week1", "course": "A course", "seed": 3, **options}
    return source(lesson, labels, told, **options)


def test_the_assignment_has_the_cells_of_the_lesson():
    cells = {cell.id: cell for cell in assignment().cells}
    assert list(cells) == [
        *("about", "install", "student", "setup-1"),
        *("ex-shift", "ex-shift-yours", "ex-shift-checks", "ex-shift-hidden"),
        *("ex-state", "ex-state-yours", "ex-state-checks"),
        *("ex-far", "ex-far-numbers", "ex-far-yours", "ex-far-checks", "ex-far-hidden"),
        *("ex-why", "ex-why-yours", "references"),
    ]
    assert "[A sample lesson](https://book/sample.html)" in cells["about"].source
    assert f'%pip install -q "{PACKAGE}"' in cells["install"].source
    assert cells["setup-1"].source == "import torch\n\nbase = torch.ones(2)"
    assert cells["ex-shift"].source.startswith("**Exercise 7** (Shift) · 2 points\n\nWrite `shift`")
    assert cells["ex-far-numbers"].source.endswith(
        'step, count = numbers(STUDENT, 3, "ex-far", step=[2, 3, 5], count=[4, 6])'
    )
    assert cells["ex-far-hidden"].source == (
        "# More checks, with other inputs, are here when your answer is graded.\n"
        "### BEGIN HIDDEN TESTS\n"
        'expect_equal(far(seed), seed + count * step, what="hidden_far")\n'
        "### END HIDDEN TESTS"
    )
    assert "copy Python" in cells["ex-state-yours"].source
    answer = cells["ex-why-yours"].source
    assert "It *is* there, model_secretly, before $\\mathbf V$." in answer
    assert "* 2 points: says that it is there\n* 1 point: names ${\\mathbf Q}$" in answer
    assert cells["references"].source == "**References**\n\n* Entry child2019generating"


def test_students_see_nothing_of_the_answers():
    whole = nbformat.writes(release(assignment()))
    for secret in ("secretly", "hidden_", "wrong_", "the wrong way", "Mark scheme", "says that it"):
        assert secret in SAMPLE + nbformat.writes(assignment())
        assert secret not in whole


def test_a_choice_of_exercises_brings_what_it_needs_and_no_more():
    cells = {cell.id: cell for cell in assignment(labels=["ex-state"]).cells}
    assert list(cells) == [
        *("about", "install", "setup-1", "ex-state", "ex-state-yours", "ex-state-checks"),
    ]
    assert cells["setup-1"].source == "import torch"


def test_an_exercise_that_needs_another_is_named_with_its_place():
    text = replaced("from tfviz.checks import expect_equal\n\nexpect_equal(lab", "expect_equal(lab")
    with pytest.raises(LessonError) as caught:
        assignment(text)
    (problem,) = caught.value.problems
    assert "'ex-state' uses 'expect_equal', which no code above it binds" in problem[1]
    assert text.splitlines()[problem[0] + 1] == "exercise: ex-state"


# --- in a build ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The sample as a book of one lesson, built and executed."""
    root = tmp_path_factory.mktemp("book")
    (root / "sample.md").write_text(SAMPLE, "utf8")
    (root / "index.md").write_text("# A book\n", "utf8")
    (root / "references.bib").write_text((ROOT / "book/references.bib").read_text("utf8"), "utf8")
    toc = {"format": "jb-book", "root": "index", "chapters": [{"file": "sample"}]}
    (root / "_toc.yml").write_text(yaml.safe_dump(toc), "utf8")
    extensions = {
        name: str(ROOT / "book/_ext") for name in ("catalogue_directives", "lesson_sphinx")
    }
    config = {
        "title": "A book",
        "only_build_toc_files": True,
        "bibtex_bibfiles": ["references.bib"],
        "execute": {"execute_notebooks": "cache"},
        "html": {"baseurl": "https://book.example/course"},
        "sphinx": {
            "extra_extensions": ["sphinx_exercise"],
            "local_extensions": extensions,
            "recursive_update": True,
            "config": {
                "tfviz_package": "tfviz @ git+https://host/course",
                "tfviz_macros": MACROS,
                "mathjax3_config": {"tex": {"macros": MACROS}},
                "nb_execution_raise_on_error": True,
            },
        },
    }
    (root / "_config.yml").write_text(yaml.safe_dump(config), "utf8")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", root]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return root / "_build/html"


def test_solution_and_tests_are_executed_in_the_page(site):
    page = (site / "sample.html").read_text("utf8")
    assert "✓ shift moves 1 by 2 to 3" in page
    assert "the radius is 0" in page and "the radius is 4" in page
    assert "the sum is 46" in page
    assert "NotImplementedError" in page
    assert "hidden_shift" not in page and "wrong_way" not in page


def test_the_build_writes_the_notebook_with_the_numbers_of_the_page(site):
    nb = nbformat.read(site / "notebooks/sample.ipynb", as_version=4)
    nbformat.validate(nb)
    text = "\n".join(cell.source for cell in nb.cells)
    assert "[A sample lesson](https://book.example/course/sample.html)" in text
    assert "**Exercise 1** (Shift)" in text and "**Exercise 2**" in text
    assert "[Exercise 1](https://book.example/course/sample.html#ex-shift)" in text
    assert (
        "As Child et al. (2019) say (Vaswani et al., 2017; Bahdanau et al., 2014), see (1)" in text
    )
    assert "\\tag{1}" in text and "\\tag{2}" in text
    assert "* Rewon Child, Scott Gray" in text
    assert f'%pip install -q "{PACKAGE}"' in text


def test_the_build_publishes_the_assignment_without_answers(site):
    path = site / "assignments/sample.ipynb"
    nb = nbformat.read(path, as_version=4)
    nbformat.validate(nb)
    cells = {cell.id: cell for cell in nb.cells}
    assert cells["ex-shift"].source.startswith("**Exercise 1** (Shift) · 2 points")
    assert "of A book" in cells["about"].source
    for secret in ("secretly", "hidden_", "wrong_"):
        assert secret not in path.read_text("utf8")
    # what the build tells who makes assignments is not for the site
    assert not list(site.rglob("*.json*")) or "model_secretly" not in "".join(
        file.read_text("utf8") for file in site.rglob("*.json*")
    )


def test_the_page_shows_a_model_answer_and_its_rubric(site):
    page = (site / "sample.html").read_text("utf8")
    assert "model_secretly" in page and "2 points: says that it is there" in page
    assert "step, count = 2, 4" in re.sub(r"<[^>]+>", "", page)


def test_a_lesson_that_cannot_be_read_ends_the_build(site, tmp_path):
    root = tmp_path / "book"
    root.mkdir()
    for name in ("index.md", "_toc.yml", "_config.yml", "references.bib"):
        (root / name).write_text((site.parents[1] / name).read_text("utf8"), "utf8")
    (root / "sample.md").write_text(FAULTS["no why"][0], "utf8")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", root]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert run.returncode != 0
    assert "does not say why:" in run.stdout + run.stderr


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz_lessons/assignment.py": [
        (
            "an exercise's hidden tests in the release",
            'cell.source = cut(cell.source, "HIDDEN TESTS")',
            "pass",
            "students_see_nothing",
        ),
    ],
}
