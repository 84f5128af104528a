"""The runner of experiments: run by run, resumable, here and on Dask's clusters."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest
import torch
import toy_experiment as toy

import tfviz_lab
from tfviz._renamed import EXPERIMENTS
from tfviz_lab import proofs, records, runner
from tfviz_lab.basics import norm_order, reverse_copy
from tfviz_lab.runner import Run
from tfviz_lab.sparse import digits

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/*.py")  # also in processes of their own

TESTS = Path(__file__).parent
ROOT = TESTS.parent


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tfviz.stored.RESULTS", tmp_path / "results")
    monkeypatch.setattr(toy, "RUNS", [])
    return tmp_path / "results"


def planned(count: int, **config: Any) -> list[Run]:
    toy.RUNS = [Run("sum", {"add": 10, "steps": 3, **config}, seed) for seed in range(count)]
    return toy.RUNS


def run(**options: Any) -> int:
    chosen = {
        "again": False,
        "list": False,
        "prove": False,
        "keep": False,
        "workers": 0,
        "scheduler": None,
    } | options
    return runner.run_all([toy], argparse.Namespace(**chosen))


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


# --- run by run -----------------------------------------------------------------------------------


def test_every_run_has_its_file_and_all_are_collected(results):
    planned(3)
    assert run() == 0
    files = sorted(x.name for x in (results / "runs" / "toy_experiment").iterdir())
    assert files == ["sum-0.json", "sum-1.json", "sum-2.json"]
    one = json.loads((results / "runs" / "toy_experiment" / "sum-1.json").read_text())
    assert one["run"] == {"name": "sum", "config": {"add": 10, "steps": 3}, "seed": 1}
    assert one["result"]["sum"] == 11
    made = one["provenance"]
    assert made["seeds"] == [1] and made["steps"] == 3 and "torch" in made["versions"]
    whole = tfviz_lab.load("toy_experiment")
    assert whole["sums"] == [10, 11, 12]
    assert whole["provenance"]["seeds"] == [0, 1, 2]
    assert whole["provenance"]["command"] == "python -m tfviz_lab toy_experiment"


def test_what_is_up_to_date_is_kept(results, tmp_path, capsys):
    log = tmp_path / "log"
    planned(2, log=str(log))
    assert run() == 0 and lines(log) == ["10 0", "10 1"]
    before = (results / "toy_experiment.json").stat().st_mtime_ns
    assert run() == 0 and len(lines(log)) == 2
    assert (results / "toy_experiment.json").stat().st_mtime_ns == before
    assert "2 of 2 runs up to date" in capsys.readouterr().out
    planned(3, log=str(log))  # one more
    assert run() == 0 and lines(log)[2:] == ["10 2"]
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 11, 12]
    assert run(again=True) == 0 and len(lines(log)) == 6
    (results / "toy_experiment.json").unlink()  # collected again from the runs
    assert run() == 0 and len(lines(log)) == 6
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 11, 12]


def test_a_run_more_in_a_fresh_clone_is_made_alone(results, tmp_path):
    log = tmp_path / "log"
    planned(2, log=str(log))
    assert run() == 0
    fresh_clone(results)
    planned(3, log=str(log))
    assert run() == 0 and lines(log) == ["10 0", "10 1", "10 2"]
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 11, 12]


def test_another_configuration_is_another_run(tmp_path):
    log = tmp_path / "log"
    planned(2, log=str(log))
    assert run() == 0
    toy.RUNS[1] = Run("sum", {**toy.RUNS[1].config, "add": 20}, 1)
    assert run() == 0
    assert lines(log) == ["10 0", "10 1", "20 1"]
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 21]


def test_listing_changes_nothing(results, capsys):
    planned(2)
    assert run(list=True) == 0 and not results.exists()
    assert "0 of 2 runs up to date" in capsys.readouterr().out


def test_a_broken_file_is_made_again(results, tmp_path):
    log = tmp_path / "log"
    planned(1, log=str(log))
    assert run() == 0
    (results / "runs" / "toy_experiment" / "sum-0.json").write_text('{"key": "ab')
    assert run() == 0 and len(lines(log)) == 1  # the record has the result and its key
    (results / "records" / "toy_experiment.json").unlink()
    assert run() == 0 and len(lines(log)) == 2


def test_a_failure_stops_neither_the_others_nor_the_exit_code(results, tmp_path, capsys):
    toy.RUNS = [*planned(2), Run("broken", {"add": 1, "fails": True}), Run("last", {"add": 7})]
    assert run() == 1
    out = capsys.readouterr()
    assert "[3/4] toy_experiment: broken, seed 0  FAILED: ZeroDivisionError: as asked" in out.out
    assert "1 of 4 runs failed" in out.err
    assert not (results / "toy_experiment.json").exists()  # no half result
    assert (results / "runs" / "toy_experiment" / "last-0.json").exists()
    with pytest.raises(
        ValueError, match="1 of 4 runs of toy_experiment are missing or out of date"
    ):
        runner.collected(toy)


def test_a_result_that_is_no_number_is_refused(results, capsys):
    planned(1, bad=float("nan"))
    assert run() == 1
    assert "is not plain JSON" in capsys.readouterr().out
    assert not (results / "runs").exists()


# --- runs that follow from others, and runs that are set aside ------------------------------------


def aside(name: str) -> records.Record:
    found = records.unfinished(name)
    assert found, f"nothing of {name} is set aside"
    return found


def twice(done):
    """Asks for one run more, as large as the first two together."""
    sums = [x["result"]["sum"] for x in done if x["run"]["name"] == "sum"]
    return [Run("follows", {"add": sum(sums), "steps": 3})] if len(sums) == 2 else []


def test_what_runs_ask_for_is_made_by_the_same_command(results, tmp_path, monkeypatch):
    log = tmp_path / "log"
    planned(2, log=str(log))
    monkeypatch.setattr(toy, "follow", twice, raising=False)
    assert len(runner.tasks(toy)) == 2
    assert run() == 0 and lines(log) == ["10 0", "10 1"]
    assert [task.run.name for task in runner.tasks(toy)] == ["sum", "sum", "follows"]
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 11, 21]
    assert run(again=True) == 0 and lines(log) == 2 * ["10 0", "10 1"]


def test_runs_that_are_made_are_set_aside_and_gone_on_with_in_another_clone(
    results, tmp_path, capsys
):
    log, kept = tmp_path / "log", results / "unfinished" / "toy_experiment.json"
    toy.RUNS = [*planned(2, log=str(log)), Run("broken", {"add": 1, "steps": 1, "fails": True})]
    assert run() == 1 and len(json.loads(kept.read_text())["runs"]) == 2
    assert not (results / "toy_experiment.json").exists()  # lessons read what is complete
    fresh_clone(results)
    capsys.readouterr()
    assert run(list=True) == 0 and "2 of 3 runs up to date" in capsys.readouterr().out
    toy.RUNS[2] = Run("mended", {"add": 1, "steps": 3})
    assert run() == 0 and len(lines(log)) == 2 and not kept.exists()
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 11, 1]


def test_a_complete_result_stays_while_it_is_made_again(results):
    planned(2)
    assert run() == 0
    before = (results / "toy_experiment.json").read_text()
    toy.RUNS = [*toy.RUNS, Run("new", {"add": 5}), Run("broken", {"add": 1, "fails": True})]
    assert run() == 1
    assert (results / "toy_experiment.json").read_text() == before
    assert [x["run"]["name"] for x in aside("toy_experiment")["runs"]] == ["new"]


def test_what_an_experiment_refuses_is_not_stored(results, monkeypatch):
    def refused(done):
        raise ValueError("the reference loses to counting")

    planned(1)
    monkeypatch.setattr(toy, "collect", refused)
    with pytest.raises(ValueError, match="loses to counting"):
        run()
    assert not (results / "records").exists() and not (results / "toy_experiment.json").exists()


def test_keeping_sets_aside_what_a_killed_command_has_made(results, capsys):
    planned(2)
    first = runner.tasks(toy)[0]
    tfviz_lab.write(first.path, runner.execute(first))
    assert run(keep=True) == 0
    assert "wrote unfinished/toy_experiment.json" in capsys.readouterr().out
    assert len(aside("toy_experiment")["runs"]) == 1
    assert run() == 0 and run(keep=True) == 0 and records.unfinished("toy_experiment") is None


def test_the_list_says_how_long_the_missing_runs_will_take(results, capsys):
    planned(3)
    assert run(list=True) == 0
    assert "how long they take is known when one is made" in capsys.readouterr().out
    first = runner.tasks(toy)[0]
    done = runner.execute(first)
    done["provenance"]["seconds"] = 300.0  # for 3 steps
    tfviz_lab.write(first.path, done)
    assert run(list=True) == 0
    assert "1 of 3 runs up to date, 2 not stored; about 10 processor minutes" in (
        capsys.readouterr().out
    )


def test_a_run_that_reads_a_clock_is_made_here_when_the_others_have_ended(monkeypatch):
    monkeypatch.setattr(toy, "RUNS", [Run("time", {"add": 1}), Run("sum", {"add": 2})])
    monkeypatch.setattr(toy, "CLOCKS", ("process",), raising=False)
    monkeypatch.setattr(toy, "timed", lambda config: config["add"] == 1, raising=False)
    order = list[str]()
    assert not runner.perform(runner.tasks(toy), workers=1, tell=order.append)
    assert [line.split(":")[1].split(",")[0].strip() for line in order] == ["sum", "time"]
    files = [json.loads(task.path.read_text()) for task in runner.tasks(toy)]
    timed, other = (done["result"]["process"] for done in files)
    assert timed == os.getpid() != other


def test_two_runs_may_not_share_a_file():
    toy.RUNS = [Run("a b"), Run("A, b")]
    with pytest.raises(ValueError, match=r"'a b' and 'A, b' of toy_experiment share .*a-b-0\.json"):
        runner.tasks(toy)


def test_runs_use_one_thread_and_give_the_others_back(monkeypatch):
    seen = []
    threads = torch.get_num_threads

    def measure(c, seed):
        seen.append(threads())
        return {"sum": 0}

    monkeypatch.setattr(toy, "measure", measure)
    before = threads()
    torch.set_num_threads(2)
    try:
        planned(1)
        assert run() == 0
        assert seen == [1] and threads() == 2
    finally:
        torch.set_num_threads(before)


def test_provenance_of_runs_from_several_states_names_them_all():
    def made(seed: int, commit: str, torch: str) -> dict[str, Any]:
        return {"provenance": {
            "command": "c", "seeds": [seed], "steps": 10 * seed, "seconds": 1.25, "commit": commit,
            "date": f"2026-01-0{seed}", "versions": {"python": "3", "torch": torch},
        }}  # fmt: skip

    both = runner.summary([made(2, "aa", "2.1"), made(1, "bb", "2.1")])
    assert both["seeds"] == [1, 2] and both["steps"] == 20 and both["seconds"] == 2.5
    assert both["commit"] == ["aa", "bb"] and both["date"] == "2026-01-02"
    assert both["versions"] == {"python": "3", "torch": "2.1"}
    assert runner.summary([made(2, "aa", "2.1"), made(1, "aa", "2.2")])["versions"]["torch"] == [
        "2.1",
        "2.2",
    ]


# --- what is stale --------------------------------------------------------------------------------


def fresh_clone(results: Path) -> None:
    """The collected results come with the repository, files of single runs do not."""
    shutil.rmtree(results / "runs", ignore_errors=True)


def recorded(name: str = "toy_experiment") -> dict[str, Any]:
    record = records.load(name)
    assert record is not None
    return record


def listed(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert run(list=True) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_fresh_clone_knows_what_is_up_to_date(results, tmp_path, capsys):
    log = tmp_path / "log"
    planned(2, log=str(log))
    assert run() == 0
    fresh_clone(results)
    assert listed(capsys) == "toy_experiment 2 of 2 runs up to date"
    assert run() == 0 and len(lines(log)) == 2  # nothing to do
    planned(3, log=str(log))
    said = "2 of 3 runs up to date, 1 stale: not among the runs that are stored"
    assert listed(capsys).startswith(f"toy_experiment {said}; less than a")
    toy.RUNS[1] = Run("sum", {**toy.RUNS[1].config, "add": 20}, 1)
    assert "1 stale: its configuration changed since" in listed(capsys)


def another_code(monkeypatch: pytest.MonkeyPatch, folder: Path, *replaced: str) -> None:
    """From now on the toy is what it would be with each old text (first, third) as the new one."""
    text = (TESTS / "toy_experiment.py").read_text()
    for old, new in zip(replaced[::2], replaced[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    file = folder / "toy_experiment.py"
    file.write_text(text)
    space: dict[str, Any] = {"__name__": "toy_experiment"}
    exec(compile(file.read_text(), str(file), "exec"), space)
    monkeypatch.setattr(toy, "__file__", str(file))
    monkeypatch.setattr(toy, "measure", space["measure"])


def test_what_is_stale_says_which_code_changed(results, tmp_path, monkeypatch, capsys):
    planned(2)
    assert run() == 0
    fresh_clone(results)
    another_code(monkeypatch, tmp_path, "import time\n", "import time  # and a comment\n")
    assert listed(capsys) == "toy_experiment 2 of 2 runs up to date"
    another_code(monkeypatch, tmp_path, "return {", "more = 0\n    return {")
    said = "0 of 2 runs up to date, 2 stale: toy_experiment.py (measure) since"
    assert listed(capsys).startswith(f"toy_experiment {said}; ")
    assert run() == 0  # made again, with this one
    assert listed(capsys) == "toy_experiment 2 of 2 runs up to date"


# --- what is proven -------------------------------------------------------------------------------

SAME_SUM = ('config["add"] + config.get', '+config["add"] + config.get')
OTHER_SUM = ('config["add"] + config.get', 'config["add"] + 1 + config.get')
AS_ON_ANOTHER_PROCESSOR = 11.000001


def test_a_change_that_changes_no_number_is_proven_by_one_run(
    results, tmp_path, monkeypatch, capsys
):
    log = tmp_path / "log"
    planned(3, log=str(log))
    assert run() == 0
    fresh_clone(results)
    before = (results / "toy_experiment.json").read_bytes()
    another_code(monkeypatch, tmp_path, *SAME_SUM)
    assert "3 stale" in listed(capsys)
    assert run(prove=True) == 0 and len(lines(log)) == 4
    assert listed(capsys) == "toy_experiment 3 of 3 runs up to date"
    assert (results / "toy_experiment.json").read_bytes() == before
    proof = recorded()["proofs"][-1]
    assert [x["agrees with"] for x in proof["by"]] == ["the stored result"]
    assert proof["changed pieces"] == 1 and proof["processor"]


def test_what_is_set_aside_is_proven_as_well(results, tmp_path, monkeypatch, capsys):
    log = tmp_path / "log"
    toy.RUNS = [*planned(2, log=str(log)), Run("broken", {"add": 1, "fails": True})]
    assert run() == 1
    fresh_clone(results)
    another_code(monkeypatch, tmp_path, *SAME_SUM)
    assert "0 of 3 runs up to date" in listed(capsys)
    assert run(prove=True) == 1 and len(lines(log)) == 3  # one run is still to be made
    assert "2 of 3 runs up to date" in listed(capsys)
    assert not records.path("toy_experiment").exists()  # lessons read what is complete
    another_code(monkeypatch, tmp_path, *OTHER_SUM)
    assert run(prove=True) == 1 and "0 of 3 runs up to date" in listed(capsys)


def test_a_change_of_numbers_is_not_adopted(results, tmp_path, monkeypatch, capsys):
    planned(2)
    assert run() == 0
    before = records.path("toy_experiment").read_bytes()
    another_code(monkeypatch, tmp_path, *OTHER_SUM)
    assert run(prove=True) == 1
    out = capsys.readouterr()
    assert "OTHER NUMBERS" in out.out and "not proven; python -m tfviz_lab toy" in out.err
    assert records.path("toy_experiment").read_bytes() == before
    assert "2 stale" in listed(capsys)


def test_other_numbers_hold_back_only_what_shares_their_code(
    results, tmp_path, monkeypatch, capsys
):
    def rows(a: str, b: str) -> None:
        table = f"ROWS = {{'one': {a}, 'two': {b}}}\n\n\ndef runs("
        looked_up = 'ROWS[config["row"]] + config["add"] + config.get'
        another_code(monkeypatch, tmp_path, "def runs(", table, SAME_SUM[0], looked_up)

    log = tmp_path / "log"
    toy.RUNS = [Run(row, {"add": 10, "row": row, "log": str(log)}) for row in ("one", "two")]
    rows("1", "2")
    assert run() == 0 and tfviz_lab.load("toy_experiment")["sums"] == [11, 12]
    fresh_clone(results)
    rows("2 - 1", "3")
    assert run(prove=True) == 1 and "two, seed 0  OTHER NUMBERS" in capsys.readouterr().out
    assert "1 of 2 runs up to date, 1 stale: toy_experiment.py (ROWS[two]) since" in listed(capsys)
    before = len(lines(log))
    assert run() == 0 and len(lines(log)) == before + 1  # this one alone
    assert tfviz_lab.load("toy_experiment")["sums"] == [11, 13]
    assert listed(capsys) == "toy_experiment 2 of 2 runs up to date"


def on_another_processor() -> None:
    """The stored sums become what some other processor might have given."""
    record = recorded()
    for done in record["runs"]:
        done["result"]["sum"] += AS_ON_ANOTHER_PROCESSOR - 11
    records.store("toy_experiment", record)


def test_another_processor_compares_the_code_as_it_was_with_that_of_today(
    results, tmp_path, monkeypatch, capsys
):
    planned(2)
    assert run() == 0
    on_another_processor()
    asked, as_it_was = [], toy.measure

    def old_result(commit: str, module: str, config: Any, seed: int) -> Any:
        asked.append(commit)
        return json.loads(json.dumps(as_it_was(dict(config), seed)))

    monkeypatch.setattr(proofs, "old_result", old_result)
    record = recorded()
    for done in record["runs"]:
        done["provenance"]["commit"] = "abc1234"
    records.store("toy_experiment", record)
    another_code(monkeypatch, tmp_path, *OTHER_SUM)
    assert run(prove=True) == 1 and asked == ["abc1234"]
    another_code(monkeypatch, tmp_path, *SAME_SUM)
    assert run(prove=True) == 0 and asked == ["abc1234"] * 2
    record = recorded()
    assert record["proofs"][-1]["by"][0]["agrees with"] == "the code of abc1234 on this machine"
    # from now on this processor has a witness, and the old code need not run
    another_code(monkeypatch, tmp_path, SAME_SUM[0], f"0 + {SAME_SUM[0]}")
    assert run(prove=True) == 0 and len(asked) == 2
    assert recorded()["proofs"][-1]["by"][0]["agrees with"] == (
        "an earlier proof on such a processor"
    )
    another_code(monkeypatch, tmp_path, *OTHER_SUM)
    assert run(prove=True) == 1  # the witness does not excuse other numbers
    # a run that is made again has no witness from before
    assert run() == 0 and recorded()["witnesses"] == {}


def test_a_tree_with_changes_is_no_code_to_compare_with(results, tmp_path, monkeypatch):
    planned(1)
    assert run() == 0
    on_another_processor()
    record = recorded()
    record["runs"][0]["provenance"]["commit"] = "abc1234+"
    records.store("toy_experiment", record)
    monkeypatch.setattr(proofs, "old_result", lambda *asked: pytest.fail("asked"))
    another_code(monkeypatch, tmp_path, *SAME_SUM)
    assert run(prove=True) == 1


def test_clocks_do_not_count_and_all_else_does():
    kept = {"time": [1.0], "rows": [{"x": 1.5}, {"x": 2}], "name": "a"}
    assert proofs.same(kept, {**kept, "time": [2.0]}, ["time"])
    assert not proofs.same(kept, {**kept, "time": [2.0]})
    assert proofs.same(kept, {**kept, "more": 1})  # what was not kept cannot be compared
    assert not proofs.same({**kept, "more": 1}, kept)
    assert not proofs.same(kept, {**kept, "rows": [{"x": 1.5}]})
    assert not proofs.same(kept, {**kept, "rows": [{"x": math.nextafter(1.5, 2)}, {"x": 2}]})
    assert proofs.digest(kept, ["time"]) == proofs.digest({**kept, "time": 0}, ["time"])
    assert proofs.digest(kept) != proofs.digest({**kept, "name": "b"})


def test_every_changed_piece_is_executed_in_each_kind_of_run():
    def task(name: str, **config: Any) -> runner.Task:
        return runner.Task("toy_experiment", Run(name, config), {}, name)

    both, cheap, dear = task("both", v=1), task("cheap", v=2), task("dear", v=3)
    other, part = task("other", start=1), task("part", part="a", v=1)
    a, ab, b = frozenset("a"), frozenset("ab"), frozenset("b")
    assert proofs.cover({both: ab, cheap: a, dear: b}, {both: 5, cheap: 1, dear: 9}) == [
        cheap,
        both,
    ]
    assert proofs.cover({both: ab, cheap: a}, {both: 1, cheap: 5}) == [both]
    seconds = {both: 1, cheap: 5, other: 5, part: 5}
    chosen = proofs.cover({both: ab, cheap: a, other: a, part: b}, seconds)
    assert sorted(x.run.name for x in chosen) == ["both", "other", "part"]


def test_the_code_of_a_commit_runs_beside_that_of_today(monkeypatch):
    commit = runner.commit_of()
    if commit is None:
        pytest.skip("no clone: there are no commits to compare with")
    config = {"start": "pre-norm", "N": 2}
    old = proofs.old_result(commit.rstrip("+"), "tfviz_lab.basics.norm_order", config, 0)
    assert old.keys() == norm_order.measure(config, 0).keys()
    assert proofs.old_result("0000000", "tfviz_lab.basics.norm_order", config, 0) is None


def test_an_experiment_is_found_in_a_commit_wherever_it_stood():
    library = ["tfviz/basics/rotary.py", "tfviz/formula.py"]
    for home in ("tfviz_lab", "tfviz_lab.basics", "tfviz.experiments"):
        files = [*library, f"{home.replace('.', '/')}/rotary.py"]
        assert proofs.place("tfviz_lab.position.rotary", files) == f"{home}.rotary"
    named_before = ["tfviz/adaptive/brackets.py", "tfviz_lab/brackets.py"]
    assert proofs.place("tfviz_lab.adaptive.dynamic_spans", named_before) == "tfviz_lab.brackets"
    folded = ["tfviz_lab/priors/hard_coded_heads.py", "tfviz_lab/priors/prior_only.py"]
    module = "tfviz_lab.priors.prior_only"
    assert proofs.place(module, folded) == module
    assert proofs.place(module, folded[:1]) == "tfviz_lab.priors.hard_coded_heads"


@pytest.mark.parametrize(("old", "new"), EXPERIMENTS.items())
def test_an_old_name_finds_the_experiment_and_its_result(old, new, as_stored, capsys):
    assert tfviz_lab.module_of(old) is tfviz_lab.module_of(new) is getattr(tfviz_lab, old)
    assert tfviz_lab.load(old) == tfviz_lab.load(new)
    assert old not in tfviz_lab.PLACES and old not in runner.all_experiments()
    assert runner.main([old, "--list"]) == 0
    assert capsys.readouterr().out.startswith(f"{new} ")


# --- what is stored -------------------------------------------------------------------------------


@pytest.fixture
def as_stored(monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = ROOT / "tfviz_lab/results"
    monkeypatch.setattr("tfviz.stored.RESULTS", folder)
    return folder


COMPLETE = [name for name in runner.all_experiments() if records.unfinished(name) is None]
UNFINISHED = [name for name in runner.all_experiments() if name not in COMPLETE]


@pytest.mark.parametrize("name", UNFINISHED)
def test_what_is_set_aside_is_up_to_date(name, as_stored):
    """So that who goes on makes none of it again."""
    runs = aside(name)["runs"]
    made = {task.key for task in runner.tasks(tfviz_lab.module_of(name))}
    assert {done["key"] for done in runs} <= made
    assert not any("+" in str(done["provenance"]["commit"]) for done in runs)


@pytest.mark.parametrize("name", COMPLETE)
def test_a_stored_result_is_of_its_runs(name, as_stored):
    module, stored = tfviz_lab.module_of(name), tfviz_lab.load(name)
    runs, made = [task.run for task in runner.tasks(module)], stored["provenance"]
    assert made["seeds"] == sorted({x.seed for x in runs}) and len(made["seeds"]) >= 3
    assert made["steps"] == max(x.config.get("steps", 0) for x in runs) and made["seconds"] > 0
    assert made["versions"].keys() == {"python", *getattr(module, "PACKAGES", ["torch"])}
    *_, called = made["command"].split()  # that of the day when it was made
    assert made["command"] == f"python -m tfviz_lab {called}"
    assert tfviz_lab.module_of(called) is module
    assert "+" not in str(made["commit"])
    leaves = torch.utils._pytree.tree_leaves(stored)
    assert all(math.isfinite(x) for x in leaves if isinstance(x, float))


@pytest.mark.parametrize("name", COMPLETE)
def test_a_stored_result_is_what_the_runner_would_write(name, as_stored, tmp_path):
    module, record = tfviz_lab.module_of(name), recorded(name)
    labels = [records.label(task.run) for task in runner.tasks(module)]
    assert [records.label(done["run"]) for done in record["runs"]] == labels
    tfviz_lab.write(tmp_path / "again.json", runner.whole(module, record["runs"]))
    assert (tmp_path / "again.json").read_text() == (as_stored / f"{name}.json").read_text()
    assert records.text(record) == records.path(name).read_text()


@pytest.mark.parametrize("name", COMPLETE)
def test_a_stored_result_is_up_to_date_or_proven(name, as_stored):
    reasons = Counter(runner.stale(tfviz_lab.module_of(name)).values())
    assert not reasons, (
        f"{dict(reasons)}; if the change cannot change numbers, "
        f"python -m tfviz_lab --prove {name}  shows it; else make the runs again"
    )


# --- interrupted ----------------------------------------------------------------------------------

SCRIPT = """
import argparse, sys
from pathlib import Path
import toy_experiment as toy
from tfviz import stored
from tfviz_lab import runner
from tfviz_lab.runner import Run
here = Path(sys.argv[1])
stored.RESULTS = here / "results"
toy.RUNS = [Run("sum", {"add": 10, "log": str(here / "log")}, seed) for seed in range(2)]
toy.RUNS += [Run("wait", {"add": 5, "log": str(here / "log"), "wait_for": str(here / "go")})]
sys.exit(runner.run_all([toy], argparse.Namespace(
    again=False, list=False, prove=False, keep=False, workers=int(sys.argv[2]), scheduler=None)))
"""


def environment(*before: Path) -> dict[str, str]:
    path = os.pathsep.join([*map(str, before), str(ROOT), str(TESTS)])
    path += os.pathsep + os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def until(condition: Any, process: subprocess.Popen[Any] | None = None) -> None:
    """Wait for something that must come; the limit is for safety."""
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        assert process is None or process.poll() is None, "the process ended"
        time.sleep(0.05)


def test_a_worker_keeps_the_memory_that_it_frees(monkeypatch):
    """By Dask's default it gives it back, and what is timed waits for new pages."""

    class StartedError(Exception):
        pass

    def cluster(**_):
        raise StartedError(dask.config.get("distributed.nanny.pre-spawn-environ"))

    monkeypatch.setattr(distributed, "LocalCluster", cluster)
    with pytest.raises(StartedError) as started, runner._executor(1, None):
        pass
    (environ,) = started.value.args
    assert environ and not any("MALLOC" in name for name in environ)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_it_goes_on_where_it_was(how, tmp_path, results):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), "0"]
    with subprocess.Popen(
        command, env=environment(), start_new_session=True, stderr=subprocess.PIPE
    ) as process:
        try:
            until(lambda: len(lines(tmp_path / "log")) == 3, process)  # the third one waits
        finally:
            process.send_signal(how)
        _, error = process.communicate()
    assert process.returncode == (130 if how == signal.SIGINT else -how)
    if how == signal.SIGINT:
        assert b"interrupted, 1 runs to do; the same command goes on" in error
    files = results / "runs" / "toy_experiment"
    assert sorted(x.name for x in files.iterdir()) == ["sum-0.json", "sum-1.json"]
    (tmp_path / "go").touch()
    again = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert lines(tmp_path / "log") == ["10 0", "10 1", "5 0", "5 0"]
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 11, 5]


# --- Dask -----------------------------------------------------------------------------------------


def processes(results: Path) -> list[int]:
    files = (results / "runs" / "toy_experiment").glob("*.json")
    return [json.loads(x.read_text())["result"]["process"] for x in files]


def test_on_a_local_cluster_with_a_failure_among_them(results, capsys):
    toy.RUNS = [*planned(5), Run("broken", {"add": 1, "fails": True})]
    assert run(workers=2) == 1
    assert "FAILED: ZeroDivisionError: as asked" in capsys.readouterr().out
    used = processes(results)
    assert len(used) == 5 and os.getpid() not in used and len(set(used)) <= 2
    planned(5)
    assert run(workers=2) == 0
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 11, 12, 13, 14]


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a Dask scheduler in a process of its own."""
    note = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file"]
    with process("distributed.cli.dask_scheduler", [*options, str(note)]) as running:
        until(lambda: note.exists() and note.read_text().endswith("}"), running)
        yield json.loads(note.read_text())["address"]


class process:  # noqa: N801 -- used like a function
    """`python -m module options` for as long as the block lasts."""

    def __init__(self, module: str, options: Sequence[str], *before: Path) -> None:
        command = [sys.executable, "-m", module, *options]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.running = subprocess.Popen(command, env=environment(*before), **quiet)  # type: ignore[call-overload]

    def __enter__(self) -> subprocess.Popen[Any]:
        return self.running

    def __exit__(self, *error: object) -> None:
        self.running.terminate()
        try:
            self.running.wait(20)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()


WORKER = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]


def test_on_a_scheduler_by_its_address(scheduler, results):
    planned(4)
    with process("distributed.cli.dask_worker", [scheduler, *WORKER]) as worker:
        assert run(workers=None, scheduler=scheduler) == 0
        assert set(processes(results)) == {worker.pid}
    assert tfviz_lab.load("toy_experiment")["sums"] == [10, 11, 12, 13]


def test_a_worker_with_other_code_is_refused(scheduler, tmp_path, results, capsys):
    other = tmp_path / "other"
    other.mkdir()
    text = (TESTS / "toy_experiment.py").read_text()
    (other / "toy_experiment.py").write_text(text.replace('config["add"] +', 'config["add"] -'))
    planned(1)
    with process("distributed.cli.dask_worker", [scheduler, *WORKER], other):
        assert run(workers=None, scheduler=scheduler) == 1
    assert "OtherCodeError: toy_experiment is another version here" in capsys.readouterr().out
    assert not (results / "runs").exists()


def test_a_scheduler_that_does_not_answer_or_has_no_workers(scheduler, monkeypatch, capsys):
    monkeypatch.setattr(runner, "PATIENCE", 1)
    planned(1)
    for address in ("tcp://127.0.0.1:9", scheduler):
        assert run(workers=None, scheduler=address) == 1
        told = capsys.readouterr().err
        assert f"no Dask scheduler with workers answers at '{address}'" in told


def test_without_dask_the_error_names_both_ways_out(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    planned(1)
    assert run(workers=2) == 1
    said = capsys.readouterr().err
    assert '"dask>=2024.8"' in said and "choose --workers 0" in said
    assert run(workers=0) == 0


# --- the command, and the experiments there are ---------------------------------------------------


def test_the_command(capsys):
    assert runner.main(["digits", "--list"]) == 0
    assert "0 of 57 runs up to date" in capsys.readouterr().out
    for wrong, said in (
        (["digitz"], "no experiment digitz; there are "),
        (["--workers", "-1"], "choose 0 or more"),
        (["--workers", "1", "--scheduler", "x"], "not allowed with"),
    ):
        with pytest.raises(SystemExit) as stop:
            runner.main(wrong)
        assert stop.value.code == 2 and said in capsys.readouterr().err


def test_every_experiment_lists_its_runs():
    assert {"digits", "reverse_copy"} <= set(runner.all_experiments())
    assert "recall" not in runner.all_experiments()  # a lesson runs it live; nothing is stored
    for experiment in (digits, reverse_copy):
        found = runner.tasks(experiment)
        assert len({task.key for task in found}) == len(found) > 10


def placeholder(task: runner.Task, value: Any) -> dict[str, Any]:
    made = tfviz_lab.provenance("c", [task.run.seed], task.run.config["steps"], 0.0, ["torch"])
    run = {"name": task.run.name, "config": task.run.config, "seed": task.run.seed}
    return {"run": run, "key": task.key, "result": value, "provenance": made}


def test_digits_are_collected_in_the_form_that_is_stored():
    stored = json.loads((ROOT / "tfviz_lab/results/digits.json").read_text())

    def old(task: runner.Task) -> float:
        long = task.run.config["steps"] == digits.LONGER_STEPS
        part, seeds = (stored["longer"], digits.LONGER_SEEDS) if long else (stored, digits.SEEDS)
        scores = part["variants"][task.run.config["variant"]]["test_nats"]
        return scores[seeds.index(task.run.seed)]

    found = runner.tasks(digits)
    done = [placeholder(t, {"score": old(t), "threads": 1}) for t in reversed(found)]
    made = digits.collect(done)
    longer = made.pop("longer")
    for new, was in ((made, stored), (longer, stored["longer"])):
        for key in ("title", "settings", "variants"):
            assert new[key] == was[key]
        assert list(new["variants"]) == list(was["variants"])
    assert longer["provenance"]["steps"] == digits.LONGER_STEPS


def test_reverse_copy_is_collected_in_the_form_that_is_stored():
    stored = json.loads((ROOT / "tfviz_lab/results/reverse_copy.json").read_text())

    def old(task: runner.Task) -> Any:
        config, seed = task.run.config, task.run.seed
        if "look" in config:
            return stored["looked_at"][config["look"]][seed]
        row = stored["accuracy"][config["writer"]][seed]
        return {"accuracy": row[reverse_copy.LENGTHS.index(config["length"])]}

    done = [placeholder(task, old(task)) for task in reversed(runner.tasks(reverse_copy))]
    assert reverse_copy.collect(done) == {k: v for k, v in stored.items() if k != "provenance"}


def test_a_stored_run_is_made_again_to_the_last_digit(monkeypatch):
    monkeypatch.setattr("tfviz.stored.RESULTS", ROOT / "tfviz_lab/results")
    task = next(t for t in runner.tasks(reverse_copy) if t.run.config.get("length") == 4)
    stored = tfviz_lab.load("reverse_copy")
    assert (
        runner.execute(task)["result"]["accuracy"] == stored["accuracy"]["one fixed vector"][0][0]
    )


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz_lab/runner.py": [
        (
            "seed not in the key of a run",
            "what = [run.name, dict(run.config), run.seed, sorted(",
            "what = [run.name, dict(run.config), sorted(",
        ),
        (
            "changed modules pass for up to date",
            '        elif done["key"] != task.key:\n',
            '        elif not done["key"]:\n',
            "stale or clone or kept",
        ),
    ],
}
