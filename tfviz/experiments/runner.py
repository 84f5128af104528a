"""Experiments run by run, on all processors of this machine or on any Dask scheduler.

    python -m tfviz.experiments                               all, on this machine
    python -m tfviz.experiments digits --workers 4            one of them, with four processes
    python -m tfviz.experiments --scheduler tcp://host:8786   on the workers of that scheduler
    python -m tfviz.experiments --list                        what is done, and what is to do

A module of `tfviz.experiments` is an experiment if it has

    runs() -> list[Run]                      what is to be measured
    measure(config, seed) -> dict            one run; plain JSON
    collect(done) -> dict                    all of them as the lesson wants them

Each run has a file, results/runs/<experiment>/<run>.json, written when it ends. It is kept until
its key changes: a hash of the configuration, the seed, and the code that the module imports from
tfviz. So who is interrupted loses the runs under way, no more; the same command goes on.

The collected result keeps the keys, and the hash of each module that they were made from. So a
fresh clone, which has no files of single runs, knows what is stale, and why:

    extrapolation            40 of 60 runs up to date, 20 stale: models/blocks.py changed since
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import logging
import os
import pkgutil
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import tfviz
from tfviz import experiments, stored
from tfviz.experiments import provenance, store, write

Done = dict[str, Any]
"""What the file of a run holds: run, key, result, provenance."""

# what only moves results about, and so cannot change them
MACHINERY = {
    *("tfviz", "tfviz._files", "tfviz.stored"),
    *("tfviz.experiments", "tfviz.experiments.runner"),
}

SHOWN = 5
"""So many modules that changed are named in one line."""

PATIENCE = 30
"""Seconds until a scheduler that does not answer, or has no workers, is given up."""


@dataclass(frozen=True)
class Run:
    """One thing to be measured: `measure(config, seed)`. Names and seeds together are unique."""

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Task:
    """A run of an experiment's module, and the key under which its result is kept."""

    module: str
    run: Run
    key: str

    @property
    def experiment(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def path(self) -> Path:
        slug = re.sub(r"[^a-z0-9]+", "-", self.run.name.lower()).strip("-")
        return stored.RESULTS / "runs" / self.experiment / f"{slug}-{self.run.seed}.json"

    def done(self) -> Done | None:
        """The stored result, if it is of this configuration and this code."""
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
    names = [m.name for m in pkgutil.iter_modules(experiments.__path__)]
    modules = [importlib.import_module(f"{experiments.__name__}.{name}") for name in names]
    return [name for name, m in zip(names, modules, strict=True) if hasattr(m, "runs")]


def tasks(module: ModuleType) -> list[Task]:
    """Every run of an experiment. Raises ValueError if two would share a file."""
    version = code_version(module)
    found = [Task(module.__name__, run, _key(run, version)) for run in module.runs()]
    paths: dict[Path, Run] = {}
    for task in found:
        if task.path in paths:
            raise ValueError(
                f"runs {paths[task.path].name!r} and {task.run.name!r} of {module.__name__} share "
                f"the file {task.path.name}; give them different names or seeds"
            )
        paths[task.path] = task.run
    return found


def _key(run: Run, version: str) -> str:
    return _hash([run.name, dict(run.config), run.seed, version])


def _hash(what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def code(module: ModuleType) -> dict[str, str]:
    """The module and all that it imports from tfviz: a hash of each; comments do not count."""
    seen: dict[str, Path] = {}
    waiting = [(module.__name__, Path(str(module.__file__)))]
    while waiting:
        name, path = waiting.pop()
        if name not in seen:
            seen[name] = path
            for imported in _parsed(path)[1]:
                waiting += _found(imported)
    return {name: _parsed(seen[name])[0] for name in sorted(seen.keys() - MACHINERY)}


def code_version(module: ModuleType) -> str:
    """One hash of all of `code`."""
    return _hash(code(module))


def _parsed(path: Path) -> tuple[str, list[str]]:
    """(hash of the code, names that it imports from tfviz on being loaded)."""
    state = path.stat()
    return _parsed_once(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=500)
def _parsed_once(path: Path, mtime_ns: int, size: int) -> tuple[str, list[str]]:
    tree, names = ast.parse(path.read_text(encoding="utf-8")), list[str]()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    ours = [name for name in names if name.split(".")[0] == tfviz.__name__]
    return _hash(_without_comments(tree)), ours


def _found(name: str) -> Iterator[tuple[str, Path]]:
    """The module and the packages above it, which are loaded too, and where they are."""
    place = Path(tfviz.__path__[0])
    for n, part in enumerate(name.split(".")[1:], start=2):
        place /= part
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                yield ".".join(name.split(".")[:n]), file


def _without_comments(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):  # strings that stand for themselves: docstrings
            kept = [x for x in body if not _is_string(x)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_string(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


# --- what is stale --------------------------------------------------------------------------------


def stale(module: ModuleType) -> dict[Task, str]:
    """The runs whose stored result is not of this configuration and this code, and why.

    Judged by the keys that the collected result keeps; files of single runs are not looked at.
    """
    found = tasks(module)
    try:
        kept = experiments.load(found[0].experiment)["provenance"].get("keys")
    except FileNotFoundError:
        return dict.fromkeys(found, "not stored")
    if kept is None:
        return dict.fromkeys(found, "made before keys were kept")
    made = {label: (key, part["code"]) for part in kept for label, key in part["runs"].items()}
    now, reasons = code(module), dict[Task, str]()
    for task in found:
        key, then = made.get(_label(task.run), (None, now))
        if key is None:
            reasons[task] = "not among the runs that are stored"
        elif key != _key(task.run, _hash(then)):
            reasons[task] = "its configuration changed since"
        elif then != now:
            reasons[task] = _difference(then, now)
    return reasons


def _label(run: Run) -> str:
    return f"{run.name}, seed {run.seed}"


def _difference(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What became of the modules, as paths: "attention.py, models/blocks.py changed since"."""
    parts = {
        "changed": [name for name in now if then.get(name, now[name]) != now[name]],
        "new": sorted(now.keys() - then.keys()),
        "gone": sorted(then.keys() - now.keys()),
    }
    return "; ".join(f"{_some(names)} {what}" for what, names in parts.items() if names) + " since"


def _some(names: Sequence[str]) -> str:
    """The first few modules as paths, and how many more there are."""
    paths = [f"{'/'.join(name.split('.')[1:])}.py" for name in names[:SHOWN]]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(paths).replace("__init__.py", "") + more


# --- one run --------------------------------------------------------------------------------------


def execute(task: Task) -> Done:
    """Measure: here, or on a worker anywhere. On one thread, for the last digits' sake.

    Raises OtherCodeError if the code here is not that of who asked, ValueError if the result is not
    JSON.
    """
    module = importlib.import_module(task.module)
    if _key(task.run, code_version(module)) != task.key:
        raise OtherCodeError(
            f"{task.module} is another version here than where {task.run.name!r} was asked for; "
            "bring the workers to the same state of tfviz and start them again"
        )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a second one changes the order of sums
    try:
        begun = time.perf_counter()
        result = module.measure(dict(task.run.config), task.run.seed)
        seconds = time.perf_counter() - begun
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
        f"python -m tfviz.experiments {task.experiment}",
        [task.run.seed],
        int(task.run.config.get("steps", 0)),
        seconds,
        getattr(module, "PACKAGES", ["torch"]),
    )
    return {"run": asdict(task.run), "key": task.key, "result": result, "provenance": made}


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
    this machine, by default one for each processor. workers = 0: here, one after the other.
    """
    failed: dict[Task, BaseException] = {}
    if not wanted:
        return failed
    with _executor(min(workers, len(wanted)) if workers else workers, scheduler) as finished:
        for n, (task, outcome) in enumerate(finished(wanted), start=1):
            label = f"[{n}/{len(wanted)}] {task.experiment}: {task.run.name}, seed {task.run.seed}"
            if isinstance(outcome, BaseException):
                failed[task] = outcome
                tell(f"{label}  FAILED: {type(outcome).__name__}: {outcome}")
            else:
                write(task.path, outcome)
                tell(f"{label}  {outcome['provenance']['seconds']} s")
    return failed


Finished = Callable[[Sequence[Task]], Iterable[tuple[Task, Done | BaseException]]]


@contextmanager
def _executor(workers: int | None, scheduler: str | None) -> Iterator[Finished]:
    """What takes tasks and gives them back with their outcome, in the order in which they end."""
    if workers == 0 and scheduler is None:
        yield lambda wanted: ((task, _outcome(task)) for task in wanted)
        return
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError:
        raise ModuleNotFoundError(
            "Dask runs the experiments in parallel and is not installed; "
            "pip install 'tfviz[experiments]', or choose --workers 0 for one after the other"
        ) from None
    with ExitStack() as stack:
        if scheduler is None:
            count = workers or os.cpu_count() or 1
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
    """Store results/<experiment>.json from the files of its runs, all of which must be there."""
    found = tasks(module)
    done = [x for x in (task.done() for task in found) if x is not None]
    missing = len(found) - len(done)
    if missing:
        raise ValueError(
            f"{missing} of {len(found)} runs of {module.__name__} are missing or out of date; "
            f"make them with python -m tfviz.experiments {found[0].experiment}"
        )
    result = module.collect(done)
    keys = [{"code": code(module), "runs": {_label(task.run): task.key for task in found}}]
    return store(found[0].experiment, {**result, "provenance": {**summary(done), "keys": keys}})


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
    """`python -m tfviz.experiments`; the exit code: 0, 1 if runs failed, 130 after an interrupt."""
    names = all_experiments()
    parser = argparse.ArgumentParser(
        prog="python -m tfviz.experiments",
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
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(names):
        parser.error(f"no experiment {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if options.workers is not None and options.workers < 0:
        parser.error(f"--workers {options.workers}; choose 0 or more")
    modules = [
        importlib.import_module(f"{experiments.__name__}.{name}") for name in options.names or names
    ]
    return run_all(modules, options)


def run_all(modules: Sequence[ModuleType], options: argparse.Namespace) -> int:
    """What `main` does once it knows the modules."""
    todo, outdated = dict[ModuleType, list[Task]](), dict[ModuleType, bool]()
    for module in modules:
        found, reasons = tasks(module), stale(module)
        here = {_label(task.run) for task in found if task.done() is not None}
        why = [reason for task, reason in reasons.items() if _label(task.run) not in here]
        outdated[module] = bool(reasons)
        missing = [task for task in found if options.again or _label(task.run) not in here]
        todo[module] = missing if reasons or options.again else []
        line = f"{len(found) - len(why)} of {len(found)} runs up to date"
        for reason, count in Counter(why).items():
            line += f", {count} {reason if reason == 'not stored' else f'stale: {reason}'}"
        print(f"{module.__name__.rpartition('.')[2]:24} {line}", flush=True)
    if options.list:
        return 0
    wanted = [task for missing in todo.values() for task in missing]
    try:
        failed = perform(
            wanted,
            workers=options.workers,
            scheduler=options.scheduler,
            tell=lambda line: print(line, flush=True),
        )
    except KeyboardInterrupt:
        left = sum(task.done() is None for task in wanted)
        print(f"\ninterrupted, {left} runs to do; the same command goes on", file=sys.stderr)
        return 130
    except (ConnectionError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    for module, tried in todo.items():
        if not any(task in failed for task in tried) and (tried or outdated[module]):
            print(f"wrote {collected(module).name}", flush=True)
    if failed:
        print(f"{len(failed)} of {len(wanted)} runs failed", file=sys.stderr)
    return 1 if failed else 0
