"""The page of the book, made of a lesson's source just before Sphinx reads it.

Each exercise becomes: a box with its prose, its hint (folded) and the stub; the solution, folded
and executed; the tests, executed and shown without their hidden part. Wrong solutions vanish.
Where the answer is the state of an explorer the stub is executed too: it *is* the exercise.
"""

from __future__ import annotations

from typing import Any

import yaml
from lesson import Block, Exercise, Lesson


def page_text(lesson: Lesson) -> str:
    """The MyST text that Sphinx gets in place of the source."""
    lines = lesson.text.splitlines()
    out: list[str] = []
    done = 0
    for exercise in lesson.exercises:
        out += lines[done : exercise.blocks[0].start]
        out += _exercise(lines, exercise)
        done = exercise.blocks[-1].end
    return "\n".join(out + lines[done:]) + "\n"


def _exercise(lines: list[str], exercise: Exercise) -> list[str]:
    opening = exercise.blocks[0]
    out = [*lines[opening.start : exercise.prose.end], ""]
    for hint in exercise.hints:
        out += [*_hint(hint), ""]
    if exercise.answer == "explorer":
        out += _cell(exercise.stub, exercise.solution, ["hide-input"], "Show the code")
    else:
        out += _fenced("python", exercise.stub)
    return [
        *out,
        "",
        "```{exercise-end}",
        "```",
        "",
        f"```{{solution-start}} {exercise.label}",
        f":label: {exercise.label}-solution",
        ":class: dropdown",
        "```",
        "",
        *_cell(exercise.solved, exercise.solution, [], ""),
        "",
        "```{solution-end}",
        "```",
        "",
        *_cell(exercise.visible_tests, exercise.tests, ["hide-input"], "Show the checks"),
        "",
    ]


def _hint(hint: Block) -> list[str]:
    title = hint.argument or "Hint"
    return _fenced(
        "{admonition} " + title, ":class: hint dropdown\n\n" + hint.source.strip("\n"), hint.fence
    )


def _cell(source: str, like: Block, tags: list[str], prompt: str) -> list[str]:
    """A code cell with the options of `like` that a page understands, and `tags` besides."""
    options: dict[str, Any] = {}
    if all_tags := [*like.options.get("tags", []), *tags]:
        options["tags"] = all_tags
    shown = dict(like.options.get("mystnb", {}))
    if prompt:
        shown.setdefault("code_prompt_show", prompt)
        shown.setdefault("code_prompt_hide", prompt.replace("Show", "Hide"))
    if shown:
        options["mystnb"] = shown
    head = f"---\n{yaml.safe_dump(options, allow_unicode=True)}---\n" if options else ""
    return _fenced("{code-cell} ipython3", head + source)


def _fenced(info: str, body: str, fence: str = "```") -> list[str]:
    while any(line.lstrip().startswith(fence) for line in body.split("\n")):
        fence += fence[0]
    return [fence + info, *body.split("\n"), fence]
