"""Everybody is `jovyan`, as in the containers of Kubernetes: identity is what the hub says.

Runs on a machine of its own. There is no cluster here: one folder stands for the shared volume, one
home for each user's own, and a variable for the hub.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_notebook

ROOT = Path("/opt/tfviz")
VALUES = yaml.safe_load((ROOT / "teaching/hub/values.yaml").read_text())["singleuser"]
EXCHANGE = Path(VALUES["storage"]["extraVolumeMounts"][0]["mountPath"])
USERS = ["prof", "ada", "grace"]
AS_JOVYAN = ["setpriv", "--reuid=jovyan", "--regid=jovyan", "--clear-groups"]


def home(user: str) -> Path:
    return Path("/home") / user


def sh(user: str, command: str, **variables: str) -> str:
    """Run a command as jovyan, in the home and with the variable of this user."""
    settings = {"HOME": str(home(user)), "JUPYTERHUB_USER": user, **variables}
    given = [f"{name}={value}" for name, value in settings.items()]
    run = subprocess.run(
        [*AS_JOVYAN, "env", *given, "bash", "-euc", command],
        cwd=home(user),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout
    return run.stdout


@pytest.fixture(scope="module", autouse=True)
def containers() -> None:
    subprocess.run(["useradd", "jovyan"], check=True)
    for folder in [EXCHANGE, *map(home, USERS)]:
        folder.mkdir()
        shutil.chown(folder, "jovyan", "jovyan")
    EXCHANGE.chmod(0o777)
    for file in VALUES["extraFiles"].values():
        path = Path(file["mountPath"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.get("stringData", "{}"))


def test_an_assignment_goes_out_and_comes_back_under_the_right_names() -> None:
    source = home("prof") / "course/source/hw"
    source.mkdir(parents=True)
    code = new_code_cell("### BEGIN SOLUTION\nx = 1\n### END SOLUTION")
    code.metadata["nbgrader"] = {
        "schema_version": 3,
        "grade": False,
        "grade_id": "x",
        "locked": False,
        "solution": True,
        "task": False,
    }
    nbformat.write(new_notebook(cells=[code]), source / "a.ipynb")
    subprocess.run(["chown", "-R", "jovyan:", str(home("prof"))], check=True)
    sh("prof", "cd course && nbgrader generate_assignment hw && nbgrader release_assignment hw")
    for student in ("ada", "grace"):
        sh(
            student,
            f"nbgrader fetch_assignment hw; echo {student} > hw/who; nbgrader submit hw",
        )
    said = sh("prof", "cd course && nbgrader collect hw")
    assert "cheating" not in said
    for student in ("ada", "grace"):
        handed_in = home("prof") / f"course/submitted/{student}/hw"
        assert (handed_in / "who").read_text() == f"{student}\n"


def test_file_permissions_separate_nobody_as_the_page_says() -> None:
    assert "ada" in sh("grace", f"cat {EXCHANGE}/attention/inbound/ada+hw+*/who")
    sh("grace", "nbgrader submit hw", JUPYTERHUB_USER="ada")
    assert len(list((EXCHANGE / "attention/inbound").glob("ada+hw+*"))) == 2
