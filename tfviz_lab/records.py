"""What an experiment keeps of its runs: results/records/<experiment>.json.

    code        {piece: digest} of all its runs, as they were made or last proven (see `keys`)
    runs        each run, its key, its result and where that comes from
    witnesses   what the first proof on a kind of processor gave there (see `proofs`)
    proofs      when and how a change of code was shown to change no number

What lessons read, results/<experiment>.json, is made from `runs` alone, so whoever has a clone can
add a run without making the others again. While some runs are missing, those that are made stand in
results/unfinished/<experiment>.json, in the same form, and lessons go on reading what was complete.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfviz import stored
from tfviz._files import written_whole

Done = dict[str, Any]
"""What is kept of a run: run, key, result, provenance."""

Record = dict[str, Any]


def path(experiment: str) -> Path:
    return stored.RESULTS / "records" / f"{experiment}.json"


def load(experiment: str) -> Record | None:
    """The record of an experiment, None if it has none."""
    return _read(path(experiment))


def unfinished(experiment: str) -> Record | None:
    """Runs that were made while others of the experiment are missing, None if there are none."""
    return _read(_aside(experiment))


def set_aside(experiment: str, record: Record) -> Path:
    """Keep runs that are made while others are missing."""
    with written_whole(_aside(experiment)) as file:
        file.write(text(record).encode())
    return _aside(experiment)


def finished(experiment: str) -> None:
    """All runs are in the record."""
    _aside(experiment).unlink(missing_ok=True)


def _aside(experiment: str) -> Path:
    return stored.RESULTS / "unfinished" / f"{experiment}.json"


def _read(file: Path) -> Record | None:
    try:
        record: Record = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return record


def store(experiment: str, record: Record) -> None:
    """Write it, one line for each run and each piece. Raises ValueError for NaN and infinity."""
    with written_whole(path(experiment)) as file:
        file.write(text(record).encode())


def text(record: Record) -> str:
    parts = [
        f'"runs":{_list(record["runs"])}',
        f'"code":{_table(record["code"])}',
        f'"witnesses":{_table(record["witnesses"])}',
        f'"proofs":{_list(record["proofs"])}',
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _list(values: Sequence[Any]) -> str:
    lines = ",\n".join(packed(value) for value in values)
    return f"[\n{lines}\n]" if values else "[]"


def _table(values: Mapping[str, Any]) -> str:
    lines = ",\n".join(f"{packed(name)}:{packed(value)}" for name, value in values.items())
    return f"{{\n{lines}\n}}" if values else "{}"


def packed(value: Any) -> str:
    """JSON in the fewest letters. Raises ValueError for NaN and infinity, which JSON has not."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def label(run: Any) -> str:
    """The name of a run in the words of a record."""
    name, seed = (run["name"], run["seed"]) if isinstance(run, dict) else (run.name, run.seed)
    return f"{name}, seed {seed}"


def by_label(record: Record | None) -> dict[str, Done]:
    return {label(done["run"]): done for done in record["runs"]} if record else {}
