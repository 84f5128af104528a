"""Showing that a change of code has changed no number, without making every run again.

    python -m tfviz_lab --prove            whatever is stale
    python -m tfviz_lab --prove rotary     of one experiment

As few and as cheap runs are made again as it takes for every piece of code that has changed to be
executed once. The new keys are adopted if each of these runs gives the numbers, to the last bit,

    that are stored;
    or that an earlier proof got on such a processor, before the change (a witness);
    or that the code which made the stored result gives on this machine, from its commit.

Processors differ in the last digits, and training makes them large: so the second and the third.
Where a run gives other numbers, the runs that share code with it and with no other stay stale and
are to be made again; if all its code is shared with others, all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

import tfviz
from tfviz._renamed import EXPERIMENTS
from tfviz_lab import commit_of, records
from tfviz_lab.records import Record, label

if TYPE_CHECKING:
    from tfviz_lab.runner import Task

OLD = """
import importlib, json, sys, torch
torch.set_num_threads(1)
config, seed = json.loads(sys.argv[2]), int(sys.argv[3])
result = importlib.import_module(sys.argv[1]).measure(config, seed)
print(json.dumps(result, allow_nan=False))
"""


def cover(changed: Mapping[Task, frozenset[str]], seconds: Mapping[Task, float]) -> list[Task]:
    """Few and cheap runs that together execute every changed piece, in each kind of run.

    Runs are of one kind if their configurations have the same keys, and the same value of "part".
    """
    told = {task: task.run.config for task in changed}
    kinds = {task: (*sorted(config), config.get("part")) for task, config in told.items()}
    wanted = {task: {(kinds[task], x) for x in pieces} for task, pieces in changed.items()}
    left = set[object]().union(*wanted.values())
    chosen: list[Task] = []
    while left:
        best = max(wanted, key=lambda task: len(wanted[task] & left) / seconds[task])
        chosen.append(best)
        left -= wanted[best]
    return chosen


def attempt(
    module: ModuleType,
    record: Record,
    changed: Mapping[Task, frozenset[str]],
    execute: Callable[[Task], dict[str, Any]],
    tell: Callable[[str], None],
) -> frozenset[str]:
    """Make runs again; the changed pieces of code with which all numbers stayed what they were.

    `changed` has, for each stale run, the pieces that changed since the record, which gets the
    proof and its witnesses. A piece that was only executed in a run with other numbers is not among
    those that are returned.
    """
    kept, clocks = records.by_label(record), set(getattr(module, "CLOCKS", ()))
    seconds = {task: kept[label(task.run)]["provenance"]["seconds"] for task in changed}
    agreeing: list[dict[str, Any]] = []
    failed: list[Task] = []
    chosen = cover(changed, {task: max(x, 0.1) for task, x in seconds.items()})
    for task in chosen:
        name, done = label(task.run), execute(task)
        how = _agrees(module, task, done["result"], kept[name], record, clocks)
        tell(f"{task.experiment}: {name}  {how or 'OTHER NUMBERS'}  {_spent(done)} s")
        if how is None:
            failed.append(task)
            continue
        agreeing.append({"run": name, "agrees with": how, "seconds": _spent(done)})
        witness = {**machine(), "result": digest(done["result"], clocks)}
        if witness not in record["witnesses"].setdefault(name, []):
            record["witnesses"][name].append(witness)
    proven = frozenset[str]().union(*(changed[x] for x in chosen if x not in failed))
    if any(x for x in failed if changed[x] <= proven):
        return frozenset()  # it executes nothing that others do not: so one of these is to blame
    if proven:
        record["proofs"].append(
            {
                "date": datetime.now(UTC).date().isoformat(),
                "commit": commit_of(),
                "processor": machine()["processor"],
                "changed pieces": len(proven),
                "by": agreeing,
            }
        )
    return proven


def _spent(done: Mapping[str, Any]) -> float:
    spent: float = done["provenance"]["seconds"]
    return spent


def _agrees(
    module: ModuleType,
    task: Task,
    result: Any,
    kept: Mapping[str, Any],
    record: Record,
    clocks: set[str],
) -> str | None:
    """What the result agrees with to the last bit, None if it is with nothing."""
    if same(kept["result"], result, clocks):
        return "the stored result"
    found = {**machine(), "result": digest(result, clocks)}
    if found in record["witnesses"].get(label(task.run), []):
        return "an earlier proof on such a processor"
    for commit in (kept["provenance"].get("proven at"), kept["provenance"]["commit"]):
        if commit and not commit.endswith("+"):
            old = old_result(commit, module.__name__, task.run.config, task.run.seed)
            if old is not None:
                same_here = digest(old, clocks) == found["result"]
                return f"the code of {commit} on this machine" if same_here else None
    return None


def same(kept: Any, new: Any, clocks: Iterable[str] = ()) -> bool:
    """Is everything that was kept in the new result, to the last bit? Clocks do not count."""
    if isinstance(kept, Mapping) and isinstance(new, Mapping):
        return all(
            name in new and same(value, new[name], clocks)
            for name, value in kept.items()
            if name not in clocks
        )
    if isinstance(kept, list) and isinstance(new, list):
        return len(kept) == len(new) and all(
            same(a, b, clocks) for a, b in zip(kept, new, strict=True)
        )
    return type(kept) is type(new) and bool(kept == new)


def digest(result: Any, clocks: Iterable[str] = ()) -> str:
    """One hash of all its numbers, without those of clocks."""
    text = json.dumps(_without(result, set(clocks)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without(result: Any, clocks: set[str]) -> Any:
    if isinstance(result, Mapping):
        return {k: _without(v, clocks) for k, v in result.items() if k not in clocks}
    return [_without(x, clocks) for x in result] if isinstance(result, list) else result


def machine() -> dict[str, str]:
    """What the last digits depend on."""
    return {
        "processor": f"{_model()}, {torch.backends.cpu.get_cpu_capability()}",
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def place(module: str, files: Iterable[str]) -> str:
    """The name that a module of an experiment has among these files, wherever it stands there.

    Its own name comes before those that it had, or that were folded into it.
    """
    name = module.rpartition(".")[2]
    names = {name, *(old for old, new in EXPERIMENTS.items() if new == name)}
    homes = ("tfviz_lab/", "tfviz/experiments/")
    there = [file for file in files if file.startswith(homes) and Path(file).stem in names]
    there.sort(key=lambda file: Path(file).stem != name)
    return there[0].removesuffix(".py").replace("/", ".") if there else module


def old_result(commit: str, module: str, config: Mapping[str, Any], seed: int) -> Any:
    """What `measure` gave at that commit, on this machine; None outside of a clone that has it."""
    git = ["git", "-C", str(Path(tfviz.__path__[0]).parent)]
    tree = [*git, "ls-tree", "-r", "--name-only", commit, "tfviz", "tfviz_lab"]
    files = subprocess.run(tree, capture_output=True, text=True).stdout.split()
    folders = sorted({file.partition("/")[0] for file in files})
    module = place(module, files)
    packed = subprocess.run([*git, "archive", commit, *folders], capture_output=True)
    if packed.returncode or not folders:
        return None
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        command: Sequence[str] = [sys.executable, "-c", OLD, module, json.dumps(dict(config))]
        environment = {**os.environ, "PYTHONPATH": folder}
        ran = subprocess.run(
            [*command, str(seed)], cwd=folder, env=environment, capture_output=True, text=True
        )
    return json.loads(ran.stdout.splitlines()[-1]) if ran.returncode == 0 else None
