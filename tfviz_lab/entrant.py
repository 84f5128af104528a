"""Your own mechanism in the race of everything, by the same protocol as all others.

    python -m tfviz_lab race mine.py                     on text of 512 characters
    python -m tfviz_lab race mine.py --exam lookup       or copy, or text
    python -m tfviz_lab race mine.py --steps 100 --seeds 3      a first look

mine.py is a file of Python that defines `race`, which says what the small GPT of the race is given,
as a line of an exhibit does:

    from tfviz.cores import Dense

    def race(gpt):                  # gpt.length, gpt.width, gpt.heads, gpt.d_head
        return {"core": Dense}      # or "mix", "pattern", "h_kv", …: all that `GPT` takes

Queries and keys are turned by rotary positions before a core sees them. What has "positions" of its
own in these options, or a mixer of its own, is not turned, and is compared with full attention
that has the table of positions of the others.

What is printed: the learning rate that was chosen and from which, each seed, the trivial lines, the
difference to full attention with its interval and the word that it deserves, time and memory of a
step, and where this stands among what is stored of the others.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from tfviz.exhibits import Gpt
from tfviz_lab import compare, protocol, race, records
from tfviz_lab.outcomes import Outcome, outcome
from tfviz_lab.protocol import Exam

Options = Callable[[int], dict[str, Any]]
"""What a GPT for texts of so many tokens is given."""


def line_of(file: Path) -> Options:
    """The line that a file brings.

    Raises ValueError if it cannot be read, or has no `race`, or one that gives no options.
    """
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise ValueError(f"{file}: no such file of Python; name one that defines race(gpt)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    made = getattr(module, "race", None)
    if not callable(made):
        raise ValueError(
            f"{file} defines no function race(gpt); let it return the options of the model, for "
            'example {"core": MyCore}'
        )

    def options(L: int) -> dict[str, Any]:
        told = made(Gpt(L, compare.WIDTH, compare.HEADS))
        if not isinstance(told, Mapping) or not {"core", "mix", "pattern", "h_kv"} & {*told}:
            raise ValueError(
                f"race(gpt) of {file} gives {told!r}; let it return a dictionary with what differs "
                'from full attention: "core", "mix", "pattern" or "h_kv"'
            )
        return dict(told)

    options(race.LENGTH)
    return options


def raced(
    options: Options,
    exam: Exam,
    seeds: Sequence[int],
    steps: int | None = None,
    tell: Callable[[str], None] = print,
) -> tuple[list[float], float]:
    """(the score of each seed, the rate): it is chosen on one seed and a quarter of the steps."""
    whole = exam.task(0).steps if steps is None else steps
    variant = partial(options, race.LENGTH)
    scores: dict[float, float | None] = {}
    wanted = [*exam.rates] if len(exam.rates) > 1 else []
    while wanted:
        rate = wanted.pop(0)
        _, curve = protocol.trained(variant, exam, protocol.CHOSEN_ON, max(1, whole // 4), rate)
        scores[rate] = curve[-1]
        tell(f"  rate {rate:g}: {curve[-1]:.4f} after {max(1, whole // 4)} steps")
        if not wanted and (more := protocol.beyond(scores)):
            wanted = [more]
    rate = protocol.chosen(scores) if scores else exam.rates[0]
    found = list[float]()
    for seed in seeds:
        found.append(protocol.trained(variant, exam, seed, whole, rate)[1][-1])
        tell(f"  seed {seed}, rate {rate:g}: {found[-1]:.4f}")
    return found, rate


def reference(
    name: str, exam: Exam, seeds: Sequence[int], steps: int | None, tell: Callable[[str], None]
) -> list[float]:
    """Full attention's scores: as they are stored, or trained now."""
    known = scores_of(exam).get(name, {})
    if steps is None and {*seeds} <= {*known}:
        return [known[seed] for seed in seeds]
    tell(f"full attention{', with a table of positions' * (name == race.OWN)}:")
    return raced(partial(race.options, name), exam, seeds, steps, tell)[0]


def scores_of(exam: Exam) -> dict[str, dict[int, float]]:
    """{mechanism: {seed: score}} of all that is made of the race, whole or not."""
    found = dict[str, dict[int, float]]()
    for record in (records.load("race"), records.unfinished("race")):
        for done in record["runs"] if record else []:
            config = done["run"]["config"]
            if config["part"] == "score" and config["exam"] == exam.name:
                row = found.setdefault(config["variant"], {})
                row[done["run"]["seed"]] = done["result"]["score"]
    return found


def standing(exam: Exam, name: str, own: float, lines: Mapping[str, float]) -> list[str]:
    """All that raced, the trivial lines and this one, the best first."""
    rows = {key: mean(of.values()) for key, of in scores_of(exam).items()} | dict(lines)
    rows[name] = own
    width = max(len(key) for key in rows)
    return [
        f"{'→' if key == name else ' '} {key:{width}}  {score:.4f}"
        for key, score in sorted(rows.items(), key=lambda pair: pair[1])
    ]


def card(
    name: str, exam: Exam, found: Outcome, scores: Sequence[float], lines: Mapping[str, float]
) -> str:
    """What may be said of it, in a few lines."""
    task = exam.task(0)
    return "\n".join(
        [
            f"{name} on {exam.name}, {task.unit}, {len(scores)} seeds",
            f"  {mean(scores):.4f} ({', '.join(f'{x:.4f}' for x in scores)})",
            f"  beside full attention: {found.told()}",
            *(f"  {line}: {score:.4f}" for line, score in lines.items()),
        ]
    )


def main(arguments: Sequence[str]) -> int:
    """`python -m tfviz_lab race mine.py`; the exit code: 0, or 1 for a file that cannot race."""
    exams = {exam.name: exam for exam in race.EXAMS}
    parser = argparse.ArgumentParser(
        prog="python -m tfviz_lab race", description=__doc__.split("\n")[0]
    )
    parser.add_argument("file", type=Path, help="a file of Python that defines race(gpt)")
    parser.add_argument("--exam", choices=list(exams), default="text")
    parser.add_argument("--seeds", type=int, default=len(protocol.SEEDS), help="how many, from 2")
    parser.add_argument("--steps", type=int, help="fewer than the race has, for a first look")
    given = parser.parse_args(arguments)
    if given.seeds < 2:
        parser.error(f"--seeds {given.seeds}; an interval needs two or more")
    if given.steps is not None and given.steps < 4:
        parser.error(f"--steps {given.steps}; choose 4 or more")
    exam, seeds, name = exams[given.exam], range(given.seeds), given.file.stem
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        options = line_of(given.file)
        told = options(race.LENGTH)
        compare.refuse(compare.model(partial(options, race.LENGTH), exam.task(0), 0), exam.task(0))
        rival = race.OWN if {"positions", "mix"} & {*told} else race.PLAIN
        lines = dict(exam.trivial(0))
        full = reference(rival, exam, seeds, given.steps, print)
        print(f"{name}:")
        scores, _ = raced(options, exam, seeds, given.steps)
        spent = race.cost_at(options, race.LENGTH)
    except ValueError as error:
        print(error)
        return 1
    finally:
        torch.set_num_threads(threads)
    bar = lines[exam.bar]
    found = outcome(scores, full, delta=exam.delta, trivial=bar)
    print("\n" + card(name, exam, found, scores, lines))
    print(
        f"  a step of training at {race.LENGTH} tokens: {spent['time']:.2f} times full attention's "
        f"time, {spent['memory']:.2f} times its memory"
    )
    if mean(full) >= bar:
        print(
            f"  full attention itself, {mean(full):.4f}, does not beat {exam.bar}: with so few "
            "steps nothing can be said of either"
        )
    elif given.steps is None:
        print("\n" + "\n".join(standing(exam, name, mean(scores), lines)))
    return 0
