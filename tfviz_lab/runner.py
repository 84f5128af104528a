"""Experiments run by run, on all processors of this machine or on any Dask scheduler.

    python -m tfviz_lab                               all, on this machine
    python -m tfviz_lab digits --workers 4            one of them, with four processes
    python -m tfviz_lab --scheduler tcp://host:8786   on the workers of that scheduler
    python -m tfviz_lab --list                        what is done, and what is to do
    python -m tfviz_lab race mine.py                  your own mechanism in the race (`entrant`)

A module of `tfviz_lab` is an experiment if it has

    runs() -> list[Run]                      what is to be measured
    measure(config, seed) -> dict            one run; plain JSON
    collect(done) -> dict                    all of them as the lesson wants them

and, if some runs can only be named when others are done, as a rate that is chosen among three,

    follow(done) -> list[Run]                what those that are done ask for besides

Each run has a file, results/runs/<experiment>/<run>.json, written when it ends: who interrupts
loses the runs under way, no more. When the command ends, what there is so far is kept in
results/unfinished/<experiment>.json, to be committed and gone on with elsewhere. When all runs are
there, they go into the record of the experiment, results/records/<experiment>.json, and from it
into what lessons read, who thus never meet half a result. Who adds a run makes that one alone.

A module whose runs read a clock names in CLOCKS what of their results no second run repeats; if not
all of them do, timed(config) says which. Those are made by this process, alone, when all others
have ended.

A result is kept until the key of its run changes: a hash of its configuration, its seed and the
code that it executes (`keys`). A change of code that changes no number is proven, not trained
again (`proofs`):

    python -m tfviz_lab --prove                       adopts the new keys where it can

    extrapolation       40 of 60 runs up to date, 20 stale: models/blocks.py (Block.forward) since
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import logging
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tfviz import _extras, stored
from tfviz._renamed import EXPERIMENTS
from tfviz_lab import (
    PLACES,
    commit_of,
    keys,
    module_of,
    proofs,
    provenance,
    records,
    store,
    write,
)
from tfviz_lab.records import Done, label

SHOWN = 5
"""So many pieces of code that changed are named in one line."""

CONFIGURED = "its configuration changed since"

PATIENCE = 30
"""Seconds until a scheduler that does not answer, or has no workers, is given up."""


@dataclass(frozen=True)
class Run:
    """One thing to be measured: `measure(config, seed)`. Names and seeds together are unique.

    `of` names code that `measure` finds in another way than by its name: modules of tfviz, or names
    in them, as "tfviz.longer_context.alibi:alibi".
    """

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    of: tuple[str, ...] = ()

    def told(self) -> dict[str, Any]:
        """What is kept of it beside its result."""
        return {"name": self.name, "config": dict(self.config), "seed": self.seed}


@dataclass(frozen=True, eq=False)
class Task:
    """A run of an experiment's module, the code that it executes, and the key of its result."""

    module: str
    run: Run
    pieces: Mapping[str, str]
    key: str

    @property
    def experiment(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def timed(self) -> bool:
        """Whether it reads a clock."""
        module = importlib.import_module(self.module)
        if not hasattr(module, "CLOCKS"):
            return False
        return bool(getattr(module, "timed", lambda config: True)(self.run.config))

    @property
    def path(self) -> Path:
        slug = re.sub(r"[^a-z0-9]+", "-", self.run.name.lower()).strip("-")
        return stored.RESULTS / "runs" / self.experiment / f"{slug}-{self.run.seed}.json"

    def done(self) -> Done | None:
        """What its own file holds, if it is of this configuration and this code."""
        try:
            found: Done = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return found if found.get("key") == self.key else None


class OtherCodeError(RuntimeError):
    """A worker has another version of the experiment than who asked it."""


# --- what is to be done ---------------------------------------------------------------------------


def all_experiments() -> list[str]:
    """The names of the modules that have runs."""
    return sorted(name for name in PLACES if hasattr(module_of(name), "runs"))


def tasks(module: ModuleType) -> list[Task]:
    """Every run of an experiment that can be named today.

    Raises ValueError if two would share a file.
    """
    source, found = keys.Source(), list[Task]()
    wanted = list(module.runs())
    while wanted:
        for run in wanted:
            pieces = source.pieces(module, run.config, run.of)
            found.append(Task(module.__name__, run, pieces, _key(run, pieces)))
        known = {label(task.run) for task in found}
        wanted = [run for run in _followed(module, found) if label(run) not in known]
    paths: dict[Path, Run] = {}
    for task in found:
        if task.path in paths:
            raise ValueError(
                f"runs {paths[task.path].name!r} and {task.run.name!r} of {module.__name__} share "
                f"the file {task.path.name}; give them different names or seeds"
            )
        paths[task.path] = task.run
    return found


def _followed(module: ModuleType, found: Sequence[Task]) -> list[Run]:
    """What the runs that are done ask for."""
    if not hasattr(module, "follow"):
        return []
    done = kept(found)
    return list(module.follow([done[task] for task in found if task in done]))


def _key(run: Run, pieces: Mapping[str, str]) -> str:
    what = [run.name, dict(run.config), run.seed, sorted(keys.anywhere(pieces).values())]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


# --- what is stale --------------------------------------------------------------------------------


def kept(found: Sequence[Task]) -> dict[Task, Done]:
    """The results that are up to date: from the record, what is unfinished, or the run's file."""
    if not found:
        return {}
    name, results = found[0].experiment, dict[Task, Done]()
    recorded = [records.by_label(x) for x in (records.load(name), records.unfinished(name))]
    for task in found:
        for done in (*(runs.get(label(task.run)) for runs in recorded), task.done()):
            if done is not None and done["key"] == task.key:
                results[task] = done
                break
    return results


def stale(
    module: ModuleType,
    found: Sequence[Task] | None = None,
    record: records.Record | None = None,
) -> dict[Task, str]:
    """The runs whose recorded result is not of this configuration and this code, and why.

    What is set aside has a `record` of its own.
    """
    found = tasks(module) if found is None else found
    record = record or (records.load(found[0].experiment) if found else None)
    if record is None:
        return dict.fromkeys(found, "not stored")
    made, reasons = records.by_label(record), dict[Task, str]()
    for task in found:
        done = made.get(label(task.run))
        if done is None:
            reasons[task] = "not among the runs that are stored"
        elif done["run"]["config"] != json.loads(json.dumps(dict(task.run.config))):
            reasons[task] = CONFIGURED
        elif done["key"] != task.key:
            reasons[task] = _difference(changed(task, record))
    return reasons


def changed(task: Task, record: records.Record) -> frozenset[str]:
    """The pieces of code that a stale run executes now and that are not those of the record."""
    known = set(keys.anywhere(record["code"]).values())
    new = frozenset(piece for piece, x in keys.anywhere(task.pieces).items() if x not in known)
    return new or frozenset(task.pieces)  # it executes less than it did: nothing of it is certain


def _difference(pieces: frozenset[str]) -> str:
    """Pieces by file: "models/blocks.py (Block.forward, Stack), attention.py (_mask) since"."""
    shown = [piece.partition(":") for piece in sorted(pieces)[:SHOWN]]
    names = dict[str, list[str]]()
    for module, _, name in shown:
        file = f"{module.replace('.', '/')}.py".removeprefix("tfviz/")
        names.setdefault(file, []).append(name)
    some = ", ".join(f"{file} ({', '.join(parts)})" for file, parts in names.items())
    more = f" and {len(pieces) - SHOWN} more" if len(pieces) > SHOWN else ""
    return f"{some}{more} since"


# --- one run --------------------------------------------------------------------------------------


def execute(task: Task) -> Done:
    """Measure: here, or on a worker anywhere. On one thread, for the last digits' sake.

    Raises OtherCodeError if the code here is not that of who asked, ValueError if the result is not
    JSON.
    """
    module = importlib.import_module(task.module)
    if _key(task.run, keys.Source().pieces(module, task.run.config, task.run.of)) != task.key:
        raise OtherCodeError(
            f"{task.module} is another version here than where {task.run.name!r} was asked for; "
            "bring the workers to the same state of tfviz and start them again"
        )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a second one changes the order of sums
    try:
        begun = time.process_time()
        result = module.measure(dict(task.run.config), task.run.seed)
        seconds = time.process_time() - begun
    finally:
        torch.set_num_threads(threads)
    try:
        result = json.loads(json.dumps(result, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the result of {task.run.name!r}, seed {task.run.seed}, is not plain JSON ({error}); "
            "return numbers that are finite, strings, lists and dicts"
        ) from None
    made = provenance(
        f"python -m tfviz_lab {task.experiment}",
        [task.run.seed],
        int(task.run.config.get("steps", 0)),
        seconds,
        getattr(module, "PACKAGES", ["torch"]),
    )
    return {"run": task.run.told(), "key": task.key, "result": result, "provenance": made}


# --- all of them ----------------------------------------------------------------------------------


def perform(
    wanted: Sequence[Task],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    tell: Callable[[str], None] = print,
) -> dict[Task, BaseException]:
    """Execute these runs and store the result of each as soon as it is there; those that failed.

    `scheduler` is the address of a Dask scheduler; without one there are `workers` processes on
    this machine, by default one for each processor. workers = 0: here, one after the other. Runs
    that are timed are made here in any case, when the others have ended.
    """
    failed: dict[Task, BaseException] = {}
    beside, alone = ([x for x in wanted if x.timed == timed] for timed in (False, True))
    count = 0
    for some, places, address in ((beside, workers, scheduler), (alone, 0, None)):
        if not some:
            continue
        with _executor(min(places, len(some)) if places else places, address) as finished:
            for task, outcome in finished(some):
                count += 1
                title = f"[{count}/{len(wanted)}] {task.experiment}: {label(task.run)}"
                if isinstance(outcome, BaseException):
                    failed[task] = outcome
                    tell(f"{title}  FAILED: {type(outcome).__name__}: {outcome}")
                else:
                    write(task.path, outcome)
                    tell(f"{title}  {outcome['provenance']['seconds']} s")
    return failed


Finished = Callable[[Sequence[Task]], Iterable[tuple[Task, Done | BaseException]]]


@contextmanager
def _executor(workers: int | None, scheduler: str | None) -> Iterator[Finished]:
    """What takes tasks and gives them back with their outcome, in the order in which they end."""
    if workers == 0 and scheduler is None:
        yield lambda wanted: ((task, _outcome(task)) for task in wanted)
        return
    try:
        import dask
        from distributed import Client, LocalCluster, as_completed
    except ImportError:
        raise ModuleNotFoundError(
            "Dask runs the experiments in parallel and is not installed; choose --workers 0 to run "
            f"them one after the other, or install it: {_extras.command('experiments')}"
        ) from None
    with ExitStack() as stack:
        if scheduler is None:
            count = workers or os.cpu_count() or 1
            # Dask has a worker give back freed memory at once; a run that is timed then waits for
            # pages, more than twice as long for what allocates much.
            environ = dask.config.get("distributed.nanny.pre-spawn-environ", {})
            environ = {name: value for name, value in environ.items() if "MALLOC" not in name}
            stack.enter_context(dask.config.set({"distributed.nanny.pre-spawn-environ": environ}))
            cluster: Any = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,  # what fails is told by `perform`
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        else:
            try:
                client = stack.enter_context(Client(scheduler, timeout=f"{PATIENCE} s"))
                client.wait_for_workers(1, timeout=PATIENCE)
            except (OSError, ValueError) as error:
                raise ConnectionError(
                    f"no Dask scheduler with workers answers at {scheduler!r} ({error}); start one "
                    "with `dask scheduler`, workers with `dask worker ADDRESS`, and give the "
                    "ADDRESS that it prints"
                ) from None

        def finished(wanted: Sequence[Task]) -> Iterator[tuple[Task, Done | BaseException]]:
            futures = {client.submit(execute, task, pure=False): task for task in wanted}
            for future in as_completed(futures):
                error = future.exception()
                yield futures[future], future.result() if error is None else error
                future.release()

        yield finished


def _outcome(task: Task) -> Done | BaseException:
    try:
        return execute(task)
    except Exception as error:
        return error


def collected(module: ModuleType) -> Path:
    """Store the record of an experiment and what lessons read. All of its runs must be there."""
    found = tasks(module)
    results = kept(found)
    missing = len(found) - len(results)
    if missing:
        raise ValueError(
            f"{missing} of {len(found)} runs of {module.__name__} are missing or out of date; "
            f"make them with python -m tfviz_lab {found[0].experiment}"
        )
    done = [results[task] for task in found]
    result = whole(module, done)  # before anything is stored: an experiment may refuse
    before = records.load(found[0].experiment) or {"runs": [], "witnesses": {}, "proofs": []}
    old = {name: x["result"] for name, x in records.by_label(before).items()}
    kept_as_it_was = {label(x["run"]) for x in done if old.get(label(x["run"])) == x["result"]}
    witnesses = {name: x for name, x in before["witnesses"].items() if name in kept_as_it_was}
    record = {**before, "code": _code(found), "runs": done, "witnesses": witnesses}
    records.store(found[0].experiment, record)
    records.finished(found[0].experiment)
    return store(found[0].experiment, result)


def set_aside(module: ModuleType) -> Path | None:
    """Keep the runs that are made where others are missing, to be gone on with elsewhere.

    None if there are none that the record does not have.
    """
    found = tasks(module)
    results = kept(found)
    recorded = records.by_label(records.load(found[0].experiment)) if found else {}
    new = [task for task in results if results[task] != recorded.get(label(task.run))]
    if not new:
        return None
    done = [results[task] for task in found if task in new]
    record = {"runs": done, "code": _code(new), "witnesses": {}, "proofs": []}
    return records.set_aside(found[0].experiment, record)


def minutes(found: Sequence[Task], results: Mapping[Task, Done]) -> float | None:
    """Processor minutes that the missing runs will take, as those which are made lead to expect.

    By step if runs count steps; None if nothing tells.
    """
    made = [*results.values()] or list(
        records.by_label(records.load(found[0].experiment) if found else None).values()
    )
    spent = [(x["provenance"]["seconds"], x["provenance"]["steps"] or 1) for x in made]
    if not spent:
        return None
    a_step = sum(seconds for seconds, _ in spent) / sum(steps for _, steps in spent)
    steps = [int(task.run.config.get("steps", 0)) or 1 for task in found if task not in results]
    return a_step * sum(steps) / 60


def whole(module: ModuleType, done: Sequence[Done]) -> dict[str, Any]:
    """What lessons read, from all runs."""
    return {**module.collect(json.loads(json.dumps(done))), "provenance": summary(done)}


def _code(found: Sequence[Task]) -> dict[str, str]:
    return dict(sorted({piece: x for task in found for piece, x in task.pieces.items()}.items()))


def prove(module: ModuleType, tell: Callable[[str], None] = print) -> bool:
    """Adopt the keys of today where it can be shown that no number changed; False if some are left.

    What was never made, or with another configuration, cannot be proven.
    """
    found = tasks(module)
    name = found[0].experiment if found else ""
    aside = records.unfinished(name) if found else None  # of these runs, as of stored ones
    record = aside or (records.load(name) if found else None)
    if record is None:
        tell(f"{module.__name__}: nothing is stored")
        return False
    made = records.by_label(record)
    reasons = stale(module, found, record)
    recorded = [task for task in found if label(task.run) in made]
    wanted = [task for task in recorded if reasons.get(task, CONFIGURED) != CONFIGURED]
    differences = {task: changed(task, record) for task in wanted}
    proven = proofs.attempt(module, record, differences, execute, tell) if wanted else frozenset()
    adopted = [task for task in wanted if differences[task] <= proven]
    commit = commit_of() or "+"
    for task in adopted:
        made[label(task.run)]["key"] = task.key
        if not commit.endswith("+"):
            made[label(task.run)]["provenance"]["proven at"] = commit
    if adopted:
        fresh = _code([task for task in recorded if task in adopted or task not in reasons])
        left = {} if len(adopted) == len(reasons) else record["code"]
        record["code"] = dict(sorted({**left, **fresh}.items()))
        (records.set_aside if aside else records.store)(name, record)
    if len(adopted) < len(reasons):
        tell(f"{module.__name__}: {len(reasons) - len(adopted)} runs are to be made")
    return len(adopted) == len(reasons)


def summary(done: Sequence[Done]) -> dict[str, Any]:
    """The provenance of several runs as one: all seeds, most steps, the sum of the seconds.

    Where runs were made at different commits, on different days or with different versions, all are
    named, in a list.
    """
    made = [x["provenance"] for x in done]
    versions = {name: _one([p["versions"].get(name) for p in made]) for name in made[0]["versions"]}
    return {
        "command": made[0]["command"],
        "seeds": sorted({seed for p in made for seed in p["seeds"]}),
        "steps": max(p["steps"] for p in made),
        "seconds": round(sum(p["seconds"] for p in made), 1),
        "date": max(p["date"] for p in made),
        "commit": _one([p["commit"] for p in made]),
        "versions": versions,
    }


def _one(values: Sequence[Any]) -> Any:
    distinct = sorted(set(values), key=str)
    return distinct[0] if len(distinct) == 1 else distinct


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m tfviz_lab`; the exit code: 0, 1 if runs failed, 130 after an interrupt."""
    given = sys.argv[1:] if arguments is None else [*arguments]
    if given[:1] == ["race"] and any(x.endswith(".py") for x in given):
        return int(importlib.import_module("tfviz_lab.entrant").main(given[1:]))
    names = all_experiments()
    parser = argparse.ArgumentParser(
        prog="python -m tfviz_lab",
        description="Run what is not up to date, store each result, collect them for the lessons.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; none: all"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler elsewhere")
    where.add_argument("--workers", type=int, help="processes here; 0: none, one after the other")
    parser.add_argument("--again", action="store_true", help="also what is up to date")
    parser.add_argument("--list", action="store_true", help="only say what there is to do")
    parser.add_argument(
        "--prove",
        action="store_true",
        help="show by a few runs that a change of code changed no number, and keep the results",
    )
    parser.add_argument(
        "--keep", action="store_true", help="only set aside what is made, to be committed"
    )
    options = parser.parse_args(given)
    if unknown := set(options.names) - {*names, *EXPERIMENTS}:
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if options.workers is not None and options.workers < 0:
        parser.error(f"--workers {options.workers}; choose 0 or more")
    return run_all([module_of(name) for name in options.names or names], options)


def _minutes(found: Sequence[Task], here: Mapping[Task, Done]) -> str:
    """What is missing, in words."""
    expected = minutes(found, here)
    if expected is None:
        return "how long they take is known when one is made"
    more = "" if len(here) == len(found) else " or more" * _open_ended(found)
    if expected < 1:
        return f"less than a processor minute{more}"
    return f"about {round(expected)} processor minutes{more}"


def _open_ended(found: Sequence[Task]) -> bool:
    """Whether runs will ask for others."""
    return any(hasattr(importlib.import_module(task.module), "follow") for task in found[:1])


def run_all(modules: Sequence[ModuleType], options: argparse.Namespace) -> int:
    """What `main` does once it knows the modules."""
    todo, outdated = dict[ModuleType, list[Task]](), dict[ModuleType, bool]()
    for module in modules:
        found = tasks(module)
        reasons, here = stale(module, found), kept(found)
        why = [reason for task, reason in reasons.items() if task not in here]
        missing = [task for task in found if options.again or task not in here]
        file = stored.RESULTS / f"{module.__name__.rpartition('.')[2]}.json"
        outdated[module], todo[module] = bool(reasons) or not file.exists(), missing
        line = f"{len(found) - len(why)} of {len(found)} runs up to date"
        for reason, count in Counter(why).items():
            line += f", {count} {reason if reason == 'not stored' else f'stale: {reason}'}"
        if missing:
            line += f"; {_minutes(found, here)}"
        print(f"{module.__name__.rpartition('.')[2]:24} {line}", flush=True)
    if options.keep:
        for module in modules:
            if todo[module] and (kept_in := set_aside(module)):
                print(f"wrote {kept_in.parent.name}/{kept_in.name}", flush=True)
    if options.list or options.keep:
        return 0
    if options.prove:
        failed_proofs = [
            module.__name__.rpartition(".")[2]
            for module in modules
            if not prove(module, lambda line: print(line, flush=True))
        ]
        if failed_proofs:
            names = " ".join(failed_proofs)
            print(f"not proven; python -m tfviz_lab {names}  makes them", file=sys.stderr)
        return 1 if failed_proofs else 0
    begun = {module for module, missing in todo.items() if missing}
    tried, failed = set[Path](), dict[Task, BaseException]()
    try:
        while wanted := [t for missing in todo.values() for t in missing if t.path not in tried]:
            tried |= {task.path for task in wanted}
            failed |= perform(
                wanted,
                workers=options.workers,
                scheduler=options.scheduler,
                tell=lambda line: print(line, flush=True),
            )
            todo |= {module: _left(module) for module in todo if hasattr(module, "follow")}
    except KeyboardInterrupt:
        left = sum(task.done() is None for task in wanted)
        for module in todo:
            set_aside(module)
        print(f"\ninterrupted, {left} runs to do; the same command goes on", file=sys.stderr)
        return 130
    except (ConnectionError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    broken = {task.experiment for task in failed}
    for module in todo:
        if module.__name__.rpartition(".")[2] in broken:
            set_aside(module)
        elif module in begun or outdated[module]:
            print(f"wrote {collected(module).name}", flush=True)
    if failed:
        print(f"{len(failed)} of {len(tried)} runs failed", file=sys.stderr)
    return 1 if failed else 0


def _left(module: ModuleType) -> list[Task]:
    found = tasks(module)
    here = kept(found)
    return [task for task in found if task not in here]
