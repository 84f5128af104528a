"""What GitHub reads of this repository: workflows, Dependabot, the forms, the citation."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import book_pages
import pytest
import yaml

import tfviz
from book import workflows

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: ([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+$")
WRITES = {("publish", "contents")}  # (workflow, what its jobs may write)
MINUTES = {"test": 60, "weekly": 90, "publish": 40, "release": 20}  # limits of their jobs


def data(file: Path) -> Any:
    return yaml.safe_load(file.read_text("utf8"))


def jobs(file: Path) -> dict[str, dict[str, Any]]:
    return workflows.read(file)["jobs"]


def test_these_are_all_workflows() -> None:
    assert [file.stem for file in WORKFLOWS] == sorted(MINUTES)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_each_job_of_a_workflow_ends_some_day(file: Path) -> None:
    assert {job.get("timeout-minutes") for job in jobs(file).values()} == {MINUTES[file.stem]}


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_newer_run_of_a_workflow_stops_the_older_one(file: Path) -> None:
    concurrency = workflows.read(file)["concurrency"]
    assert concurrency["cancel-in-progress"] is True
    # runs of other branches go on: the group names the branch
    assert re.fullmatch(
        rf"{file.stem}-.*\$\{{\{{ github\.[\w.]*(ref|branch) }}}}", concurrency["group"]
    )


def test_the_tests_of_a_pull_request_do_not_stop_what_is_being_published() -> None:
    group = workflows.read(GITHUB / "workflows/publish.yml")["concurrency"]["group"]
    run = "github.event.workflow_run"
    push = {f"{run}.event": "push", f"{run}.head_branch": "main"}
    asked = push | {f"{run}.event": "pull_request"}
    assert workflows.filled(group, push) != workflows.filled(group, asked)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_may_read_and_writes_only_where_it_must(file: Path) -> None:
    assert workflows.read(file)["permissions"] == {"contents": "read"}
    more = [job["permissions"] for job in jobs(file).values() if "permissions" in job]
    writes = {(file.stem, what) for one in more for what, how in one.items() if how != "read"}
    assert writes <= WRITES


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_every_action_is_pinned_by_its_commit_and_says_its_version(file: Path) -> None:
    lines = [line.strip().removeprefix("- ") for line in file.read_text("utf8").splitlines()]
    used = [line for line in lines if re.match(r"uses\s*:", line)]
    steps = [step for job in jobs(file).values() for step in job["steps"] if "uses" in step]
    assert len(used) == len(steps) > 0
    assert not [line for line in used if not PINNED.match(line)]


def test_an_action_has_one_commit_in_all_workflows() -> None:
    commits: dict[str, set[str]] = {}
    for file in WORKFLOWS:
        for action, commit in re.findall(
            r"uses: ([\w.-]+/[\w.-]+)[\w./-]*@(\S+)", file.read_text()
        ):
            commits.setdefault(action, set()).add(commit)
    assert {action: len(found) for action, found in commits.items()} == dict.fromkeys(commits, 1)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_the_token_of_a_run_does_not_stay_in_its_clone(file: Path) -> None:
    for job in jobs(file).values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_no_cuda_is_fetched_where_the_book_is_built(file: Path, tmp_path: Path) -> None:
    """The address of PyTorch's wheels for the CPU is read from its one home, before anything is
    installed."""
    for job in jobs(file).values():
        runs = [step.get("run", "") for step in job["steps"]]
        first = next((i for i, run in enumerate(runs) if re.match(r"make|\.ci/run", run)), None)
        if first is None:
            continue
        (before,) = (step for step in job["steps"][:first] if "GITHUB_ENV" in step.get("run", ""))
        step = workflows.Step(before["name"], "", before["run"])
        said = tmp_path / "environment"
        workflows.play(step, ROOT, {**os.environ, "GITHUB_ENV": str(said)})
        option, address = book_pages.WITHOUT_CUDA.split()
        assert option == "--extra-index-url"
        assert said.read_text() == f"PIP_EXTRA_INDEX_URL={address}\n"
        said.unlink()


def test_what_was_executed_is_kept_from_run_to_run() -> None:
    """The tests keep it, publishing takes it from them, and the weekly run does without it."""
    kept = {}
    for file in WORKFLOWS:
        for job in jobs(file).values():
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/cache"):
                    kept[file.stem] = step["with"]
    assert kept.keys() == {"test", "publish"}
    one = json.dumps(kept["test"]).replace("${{ matrix.part }}", "pages")
    assert json.loads(one) == kept["publish"]
    assert kept["test"]["path"].split() == ["_build/.jupyter_cache", "_build/kept"]
    for pattern in re.findall(r"'([^']+)'", kept["test"]["key"]):
        assert list(ROOT.glob(pattern)), f"no file is {pattern}"


def test_the_notebooks_run_weekly_with_the_newest_packages_on_three_pythons() -> None:
    (job,) = (
        job
        for job in jobs(GITHUB / "workflows/weekly.yml").values()
        if any("scripts/run_notebooks.py" in step.get("run", "") for step in job["steps"])
    )
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert (ROOT / "scripts/run_notebooks.py").exists()


def test_dependabot_looks_after_everything_that_is_pinned() -> None:
    updates = data(GITHUB / "dependabot.yml")["updates"]
    assert {one["package-ecosystem"] for one in updates} == {"github-actions", "pip", "npm"}
    for one in updates:
        assert one["schedule"]["interval"]
    (pip,) = (one for one in updates if one["package-ecosystem"] == "pip")
    assert all(one["directory"] == "/" for one in updates if one is not pip)
    pinned = [*ROOT.glob("requirements*.txt"), *ROOT.glob("*/requirements*.txt")]
    assert {file.parent for file in pinned} == {ROOT / name[1:] for name in pip["directories"]}
    pins = (ROOT / "requirements.txt").read_text("utf8").lower()
    for name in (entry["dependency-name"] for entry in pip["ignore"]):
        assert re.search(rf"^{re.escape(name)}==", pins, re.M), f"{name} is not pinned"


def test_the_citation_has_the_version_of_the_library() -> None:
    assert data(ROOT / "CITATION.cff")["version"] == tfviz.__version__


@pytest.mark.parametrize("name", ["mistake", "fault"])
def test_a_form_asks_with_fields_that_have_names(name: str) -> None:
    form = data(GITHUB / f"ISSUE_TEMPLATE/{name}.yml")
    assert form["name"] and form["description"] and len(form["body"]) > 1
    ids = [field["id"] for field in form["body"]]
    assert len({*ids}) == len(ids)
    for field in form["body"]:
        assert field["type"] in {"input", "textarea"} and field["attributes"]["label"]


LINK = re.compile(r"\]\((?!https?:|#|\.\./\.\./)([^)#]+)")  # ../../ is GitHub's, above the files


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/walk.md",
        "docs/reference.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "CHANGELOG.md",
        "teaching/README.md",
        "teaching/hub/README.md",
        ".github/pull_request_template.md",
    ],
)
def test_links_between_files_lead_somewhere(name: str) -> None:
    for target in LINK.findall((ROOT / name).read_text("utf8")):
        assert (ROOT / name).parent.joinpath(target).exists(), f"{name} links {target}"


def test_files_that_are_named_in_the_security_policy_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf8")
    for name in re.findall(r"\(`([\w./]+)`\)", text):
        assert (ROOT / name).exists(), name
