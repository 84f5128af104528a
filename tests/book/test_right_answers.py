"""Right answers in another form than the official one pass, too: other types, shapes, rounding.

Each was once refused, or ended in a traceback. The other half, wrong answers that once passed, are
cells with `role: wrong` in their lessons.
"""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from book.conftest import LESSONS
from IPython.core.interactiveshell import InteractiveShell

from tfviz_lessons.lesson import Block, Exercise, Lesson, read
from tfviz_lessons.slice import needed, uses
from tfviz_lessons.variants import SEEDS, Line, apart

EACH = "answer = {name}\n\n\ndef {name}(*given):\n    return {other}\n"  # of a function's result
OTHERS = {
    ("multi_head", "ex-look-back", "look_back"): {
        "64 bits": "[W.double() for W in answer(*given)]",
        "NumPy": "[W.numpy() for W in answer(*given)]",
        "whole numbers": "[W.ceil().long() for W in answer(*given)]",
        "lists": "[W.tolist() for W in answer(*given)]",
    },
    ("multi_head", "ex-prune-head", "silence"): {
        "lists": "answer(*given).tolist()",
        "NumPy": "answer(*given).numpy()",
    },
    ("auxiliary_losses", "ex-loss-schedule", "weights"): {"lists": "answer(*given).tolist()"},
    ("auxiliary_losses", "ex-two-ahead", "bits_ahead"): {
        "a tensor of one": "answer(*given)[None]",
        "a plain number": "answer(*given).item()",
    },
    ("rotary", "ex-turn", "turned"): {
        "lists": "answer(*given).tolist()",
        "64 bits": "answer(*given).double()",
    },
    ("rotary", "ex-rotary-look-back", "look_back"): {
        "stacked": "torch.stack(answer(*given))",
        "rows of one matrix each": "[x[None] for x in answer(*given)]",
        "lists": "[x.tolist() for x in answer(*given)]",
    },
    ("rotary", "ex-to-neighbours", "to_neighbours"): {"lists": "answer(*given).tolist()"},
    ("rotary", "ex-base", "base_for"): {"the next whole number": "math.ceil(answer(*given))"},
}
NUMBERS = {("auxiliary_losses", "ex-recipe-cost"): {"rounded as in the text": "double_at = 14_600"}}
CASES = [
    (chapter, label, what, EACH.format(name=name, other=other))
    for (chapter, label, name), others in OTHERS.items()
    for what, other in others.items()
] + [
    (*place, what, code) for place, others in NUMBERS.items() for what, code in others.items()
]  # fmt: skip


def above(lesson: Lesson, exercise: Exercise) -> tuple[list[str], str]:
    """What the exercise needs of the lesson before it, and its answer in the book's form."""
    end = lesson.blocks.index(exercise)
    cells = [
        block.source if isinstance(block, Block) else block.solved
        for block in lesson.blocks[:end]
        if isinstance(block, Exercise) or (isinstance(block, Block) and block.kind == "code")
    ]
    code = uses("\n\n".join([exercise.solved, exercise.all_tests]))
    names = (code.now | code.later) - code.binds - {"seed"}
    return needed(cells, [(len(cells), names)]), exercise.solved


def said(path: Path, label: str, code: str) -> list[tuple[str, str]]:
    """Outcomes of the visible and then of the hidden tests, with each seed."""
    lesson = read(path)
    (exercise,) = (one for one in lesson.exercises if one.label == label)
    line = Line(InteractiveShell.instance())
    line.space["display"] = lambda *things, **options: None
    cells, answer = above(lesson, exercise)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        for number, cell in enumerate(cells):
            line.run(cell, f"<cell {number}>")
        tried = {"<answer>": f"{answer}\n\n\n{code}", "<tests>": exercise.visible_tests}
        return line.tried(tried, exercise.hidden_tests)


@pytest.mark.parametrize(("chapter", "label", "what", "code"), CASES)
def test_a_right_answer_in_another_form_passes(
    chapter: str, label: str, what: str, code: str
) -> None:
    (path,) = (path for path in LESSONS.values() if path.stem == chapter)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)
        outcomes: list[Any] = apart(lambda: said(path, label, code))
    assert outcomes == [["passes", ""]] * (1 + len(SEEDS)), what
