"""What comparisons are held against, and how one baseline lost, as tables and as numbers of a text.

```{exams}                    a table: what each exam asks, and the smallest difference that counts
```{trivial-lines}            a table: what rules reach that learn nothing but counts
```{examined-so}              a list: the experiments that follow the protocol, and their chapters
```{lost-tables} tables       a table: the errors of both models by the table of positions
```{lost-tables} rates        the same, by the learning rate
{lost}`errors full 0.02 400`  a number: see `NUMBERS`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from catalogue_directives import Directive
from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from tfviz import stored

LINES, LOST, BY_PROTOCOL = "trivial_lines", "baseline_lost", "linformer_digits"
FULL, SLOT = "full attention", "Linformer, k = 1"
SHORT = {"full": FULL, "slot": SLOT}
ALL_SEEDS = "01234"
NAMED = {
    "letters": "letters",
    "hidden": "hidden characters",
    "which_digit": "which digit?",
    "pixels": "pixels",
}
ASKED = {
    "letters": "a GPT of two layers, width 64, predicts the next character from up to 64 before it",
    "hidden": "the same blocks, reading both ways, predict the hidden 15 % of 64 characters",
    "which_digit": "two layers of width 48 say which digit an image shows, from 16 patches",
}
SCORED = {
    "letters": "the whole held-out text",
    "hidden": "the whole held-out text",
    "which_digit": "the images of one fold of five, another one for each seed",
}
CHAPTERS = Path(__file__).parents[2] / "chapters"


def written(score: float, unit: str) -> str:
    """A score as the book says it: errors in percent, else nats with two digits."""
    return percent(score) if unit.startswith("errors") else f"{score:.2f}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def told(value: float, unit: str) -> str:
    """The smallest difference that counts."""
    return f"{100 * value:g} point" if unit.startswith("errors") else f"{value:g} nats"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- how we measure -------------------------------------------------------------------------------


@cache
def examined() -> dict[str, dict[str, Any]]:
    """The stored experiments that follow the protocol: their exams, by name."""
    found = {}
    for path in sorted(stored.RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        exams = result.get("exams", {})
        if all("outcomes" in exam for exam in exams.values()) and exams:
            found[path.stem] = exams
    return found


def reached(exam: str) -> float | None:
    """What full attention reaches, on average; None as long as no experiment says so."""
    for exams in examined().values():
        if exam in exams and (scores := exams[exam]["scores"].get(FULL)):
            return mean(scores)
    return None


class Exams(Directive):
    def run(self) -> list[nodes.Node]:
        _depends(self, LINES)
        rows = [
            [
                NAMED[name],
                ASKED[name],
                SCORED[name],
                f"{exam['steps']:,}",
                ", ".join(f"{rate:g}" for rate in exam["rates"]),
                told(exam["delta"], exam["unit"]),
            ]
            for name, exam in stored.load(LINES)["exams"].items()
        ]
        head = ("exam", "what a model does", "scored on", "steps", "learning rates", "δ")
        return self.blocks(table(head, rows))


class TrivialLines(Directive):
    """A row for each exam, its bar in bold, and what full attention reaches where that is known."""

    def run(self) -> list[nodes.Node]:
        _depends(self, LINES, *(path.stem for path in stored.RESULTS.glob("*.json")))
        return self.blocks(_lines(stored.load(LINES), reached))


def _lines(found: dict[str, Any], score: Callable[[str], float | None]) -> str:
    exams = {**found["exams"], "pixels": found["pixels"]}
    known = {name: x for name in exams if (x := score(name)) is not None}
    rows = []
    for name, exam in exams.items():
        lines = {line: f"{line} {written(x, exam['unit'])}" for line, x in exam["lines"].items()}
        marked = [f"**{x}**" if line == exam.get("bar") else x for line, x in lines.items()]
        row = [NAMED[name], ", ".join(marked), exam["unit"]]
        if known:
            row.append(written(known[name], exam["unit"]) if name in known else "–")
        rows.append(row)
    head = ["exam", "lines, the bar in bold", "unit"]
    return table([*head, "full attention"] if known else head, rows)


class ExaminedSo(Directive):
    """A line for each chapter that reads an experiment of this kind."""

    def run(self) -> list[nodes.Node]:
        _depends(self, *(path.stem for path in stored.RESULTS.glob("*.json")))
        rests: dict[Path, list[str]] = {}
        for lesson in sorted(CHAPTERS.glob("*/*.md")):
            self.env.note_dependency(str(lesson))
            text = lesson.read_text(encoding="utf-8")
            for name in examined():
                if f'"{name}"' in text:
                    rests.setdefault(lesson, []).append(name)
        lines = [
            f"* [](../chapters/{lesson.parent.name}/{lesson.name}): "
            + ", ".join(name.replace("_", " ") for name in names)
            for lesson, names in rests.items()
        ]
        return self.blocks("\n".join(lines))


# --- how a baseline lost --------------------------------------------------------------------------


def share(counts: Sequence[int], seeds: str = ALL_SEEDS) -> float:
    """Errors per image, on average over these seeds."""
    return mean(counts[int(seed)] for seed in seeds) / stored.load(LOST)["images"]


def missed(model: str, std: float, steps: int) -> list[int]:
    """How many images are wrong, by seed."""
    grid = stored.load(LOST)["grid"]
    at = grid["loudness"].index(std), grid["steps"].index(steps)
    return [len(images) for images in grid["wrong"][model][at[0]][at[1]]]


def by_rate(model: str, std: float, rate: float) -> list[int]:
    found = stored.load(LOST)["rates"]
    at = found["loudness"].index(std), found["rates"].index(rate)
    counts: list[int] = found["wrong"][model][at[0]][at[1]]
    return counts


def said(std: float, steps: int, seeds: str = ALL_SEEDS) -> dict[str, Any]:
    """What may be said of the slot beside full attention."""
    grid = stored.load(LOST)["grid"]
    at = grid["loudness"].index(std), grid["steps"].index(steps)
    outcome: dict[str, Any] = grid["outcomes"][at[0]][at[1]][seeds]
    return outcome


def _errors(model: str, std: str, steps: str, seeds: str = ALL_SEEDS) -> str:
    return percent(share(missed(SHORT[model], float(std), int(steps)), seeds))


def _rate(model: str, std: str, rate: str) -> str:
    return percent(share(by_rate(SHORT[model], float(std), float(rate))))


def _none(model: str) -> str:
    return percent(share(stored.load(LOST)["no table"]["wrong"][SHORT[model]]))


def _lead(std: str, steps: str, seeds: str = ALL_SEEDS) -> str:
    return f"{-100 * said(float(std), int(steps), seeds)['difference']:.1f}"


def _interval(std: str, steps: str, seeds: str = ALL_SEEDS) -> str:
    low, high = said(float(std), int(steps), seeds)["interval"]
    return f"{-100 * high:.1f} to {-100 * low:.1f}".replace("-", "−")


def _word(std: str, steps: str, seeds: str = ALL_SEEDS) -> str:
    return str(said(float(std), int(steps), seeds)["word"])


def _line(*words: str) -> str:
    return percent(stored.load(LOST)["trivial"][" ".join(words)])


def _protocol(model: str) -> str:
    """The same two by the protocol, on all images."""
    exam = stored.load(BY_PROTOCOL)["exams"]["which_digit"]
    return percent(mean(exam["scores"][{"full": FULL, "slot": "k = 1"}[model]]))


def _rate_lead(std: str, rate: str) -> str:
    full, slot = (share(by_rate(model, float(std), float(rate))) for model in (FULL, SLOT))
    return f"{100 * (full - slot):.1f}"


NUMBERS: dict[str, Callable[..., str]] = {
    "errors": _errors,
    "rate": _rate,
    "none": _none,
    "lead": _lead,
    "interval": _interval,
    "word": _word,
    "line": _line,
    "protocol": _protocol,
    "rate-lead": _rate_lead,
}
"""errors full 0.02 400 [012], rate slot 0.5 0.01, none full, lead 0.02 400 [012], …"""


class Lost(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        kind, *words = self.text.split()
        for name in (LOST, BY_PROTOCOL):
            self.env.note_dependency(str(stored.RESULTS / f"{name}.json"))
        try:
            number = NUMBERS[kind](*words)
        except (KeyError, ValueError, TypeError) as error:
            assert isinstance(self.inliner, Inliner)
            why = f"{{lost}}`{self.text}`: {error}; {NUMBERS.keys()} are known"
            return [], [self.inliner.reporter.error(why, line=self.lineno)]
        return [nodes.Text(number.replace(" %", "\u00a0%"))], []


class LostTables(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        _depends(self, LOST)
        made = {"tables": _by_table, "rates": _by_rate}
        if self.arguments[0] not in made:
            raise self.error(f"lost-tables {self.arguments[0]}: choose {' or '.join(made)}")
        return self.blocks(made[self.arguments[0]]())


def _by_table() -> str:
    """Errors by the table of positions, at the steps of the old finding and at all others."""
    found = stored.load(LOST)
    grid, none = found["grid"], found["no table"]
    head = ("table begins at", "steps", FULL, "Linformer, one slot")
    rows = [
        [
            "no table",
            f"{none['steps']:,}",
            *(percent(share(none["wrong"][model])) for model in (FULL, SLOT)),
        ]
    ] + [
        [
            f"{std:g}",
            f"{steps:,}",
            *(percent(share(missed(model, std, steps))) for model in (FULL, SLOT)),
        ]
        for steps in grid["steps"]
        for std in grid["loudness"]
    ]
    return table(head, rows)


def _by_rate() -> str:
    found = stored.load(LOST)["rates"]
    rates = found["rates"]
    head = ("table begins at", "model", *(f"rate {rate:g}" for rate in rates))
    rows = [
        [f"{std:g}", model, *(percent(share(by_rate(model, std, rate))) for rate in rates)]
        for std in found["loudness"]
        for model in (FULL, SLOT)
    ]
    return table(head, rows)


def _depends(directive: Directive, *names: str) -> None:
    for name in names:
        directive.env.note_dependency(str(stored.RESULTS / f"{name}.json"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("exams", Exams)
    app.add_directive("trivial-lines", TrivialLines)
    app.add_directive("examined-so", ExaminedSo)
    app.add_directive("lost-tables", LostTables)
    app.add_role("lost", Lost())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
