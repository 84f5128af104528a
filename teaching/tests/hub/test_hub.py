"""A class on a hub: the recipe, the page that explains it, and a whole round of teaching."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from hub import guide, machine
from tfviz_course import collect

ROOT = Path(__file__).resolve().parents[3]
INSIDE = "/opt/tfviz/teaching/tests/hub/inside"
SECONDS = 900  # a limit; a round takes about one minute


def on_a_machine_of_its_own(story: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the tests of this file there; all must pass, and none be left out."""
    why = machine.missing()
    if why:
        with capsys.disabled():
            print(f"\nNot tested here: {story}, because it {why}.")
        pytest.skip(why)
    pytest_ = ["-m", "pytest", "-x", "-v", "-p", "no:cacheprovider", "--noconftest"]
    command = machine.command("/opt/tfviz/.venv-dev/bin/python", *pytest_, f"{INSIDE}/{story}")
    run = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS
    )
    print(run.stdout)
    assert run.returncode == 0, run.stdout[-20_000:]
    asked = len(
        re.findall(r"^def test_", (Path(__file__).parent / "inside" / story).read_text(), re.M)
    )
    assert re.search(rf"=== {asked} passed in ", run.stdout), run.stdout


def test_a_class_on_one_machine(capsys: pytest.CaptureFixture[str]) -> None:
    before = _traces()
    on_a_machine_of_its_own("class_on_a_hub.py", capsys)
    assert _traces() == before


def test_one_account_for_all_as_on_kubernetes(capsys: pytest.CaptureFixture[str]) -> None:
    on_a_machine_of_its_own("one_account.py", capsys)


def _traces() -> dict[str, Any]:
    """What a class would leave on a machine: accounts, files, mounts."""
    files = [Path("/etc/passwd"), Path("/etc/group"), Path("/etc/shadow")]
    folders = [Path(folder) for folder in ("/srv", "/home", "/opt", "/etc/jupyter")]
    return {
        "accounts": [file.stat().st_mtime_ns for file in files],
        "files": [sorted(map(str, folder.glob("*"))) for folder in folders],
        "mounts": Path("/proc/self/mounts").read_text(),
    }


# --- the page -------------------------------------------------------------------------------------


def test_blocks_that_no_test_runs_are_marked() -> None:
    """Boxes of commands are ```bash, which the test runs, or ```text below words that say so."""
    text = guide.PAGE.read_text("utf8")
    kinds = set(re.findall(r"^```(\w+)$", text, re.M))
    assert kinds == {"bash", "text"}
    boxes = list(re.finditer(r"^```text\n(.*?)^```$", text, re.M | re.S))
    assert len(boxes) >= 5
    for box in boxes:
        before = text[: box.start()].rstrip().rpartition("\n\n")[2]  # the paragraph above it
        said = re.sub(r"\s+", " ", before).lower()
        same = "in a terminal" in said  # nbgrader's commands, which the buttons call
        assert "not run by our tests" in said or same, box[1]
    assert len(guide.blocks()) >= 10


def test_the_page_includes_the_recipe_as_it_is() -> None:
    text = guide.PAGE.read_text("utf8")
    included = re.findall(r"^```\{literalinclude\} (\S+)", text, re.M)
    files = ["nbgrader_config.py", "jupyterhub_config.py", "values.yaml"]
    assert included == [f"../teaching/hub/{name}" for name in files]
    for path, start in re.findall(r"literalinclude\} (\S+)\n.*\n:start-at: \"?(.*?)\"?\n", text):
        assert f"\n{start}" in (guide.PAGE.parent / path).read_text("utf8")


# --- Kubernetes -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "teaching/hub/values.yaml").read_text("utf8")))


def test_values_name_one_volume_and_mount_it_where_nbgrader_looks(values: dict[str, Any]) -> None:
    storage = values["singleuser"]["storage"]
    volumes = {volume["name"] for volume in storage["extraVolumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in storage["extraVolumeMounts"]}
    assert set(mounts) == volumes
    config = Config()
    text = values["singleuser"]["extraFiles"]["nbgrader"]["stringData"]
    exec(compile(text, "values.yaml", "exec"), {"get_config": lambda: config})
    assert config.Exchange.root == mounts["exchange"]
    assert config.ExchangeCollect.check_owner is False
    assert CourseDirectory(config=config).course_id == _machine_wide().CourseDirectory.course_id


def test_values_keep_the_grading_page_from_students(values: dict[str, Any]) -> None:
    config = Config()
    for text in values["hub"]["extraConfig"].values():
        exec(compile(text, "values.yaml", "exec"), {"c": config})
    hook = config.Spawner.pre_spawn_hook

    def environment(name: str) -> dict[str, str]:
        spawner = SimpleNamespace(user=SimpleNamespace(name=name), environment={})
        hook(spawner)
        return dict(spawner.environment)

    file = values["singleuser"]["extraFiles"]["student"]
    assert environment("prof") == {}
    assert environment("ada") == {"JUPYTER_CONFIG_PATH": str(Path(file["mountPath"]).parent)}
    same = json.loads((ROOT / "teaching/hub/student/jupyter_server_config.json").read_text())
    assert file["data"] == same


# --- the recipe -----------------------------------------------------------------------------------


def _machine_wide() -> Config:
    return PyFileConfigLoader("nbgrader_config.py", path=str(ROOT / "teaching/hub")).load_config()


def test_the_proxy_of_the_recipe_is_the_pinned_one() -> None:
    package = json.loads((ROOT / "package.json").read_text())
    wanted = package["devDependencies"]["configurable-http-proxy"]
    installed = ROOT / "node_modules/configurable-http-proxy"
    assert json.loads((installed / "package.json").read_text())["version"] == wanted
    assert (installed / "bin/configurable-http-proxy").exists()


def test_the_package_asks_for_what_a_hub_needs() -> None:
    project = tomllib.loads((ROOT / "teaching/pyproject.toml").read_text())["project"]
    assert any(need.startswith("nbgrader") for need in project["dependencies"])
    assert any(need.startswith("jupyterhub") for need in project["optional-dependencies"]["hub"])


# --- collecting -----------------------------------------------------------------------------------


class Exchange:
    """An exchange with an inbound folder, and the collector of the recipe."""

    def __init__(self, folder: Path) -> None:
        self.course, self.inbound = folder / "course", folder / "exchange/demo/inbound"
        self.inbound.mkdir(parents=True)
        (folder / "exchange").chmod(0o777)
        (self.course / "source/hw").mkdir(parents=True)
        self.me = collect.account(os.getuid())

    def hand_in(self, files: dict[str, str], name: str = "") -> Path:
        folder = self.inbound / f"{name or self.me}+hw+2026-11-21 10:00:00.000000 UTC+{len(files)}"
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text)
        return folder

    def collect(self) -> dict[str, dict[str, str]]:
        """What is in submitted/ afterwards: {student: {file: text}}."""
        config = _machine_wide()
        assert config.ExchangeFactory.collect == "tfviz_course.collect.OwnWork"
        config.Exchange.root = str(self.inbound.parents[1])
        config.CourseDirectory.merge(
            {"root": str(self.course), "course_id": "demo", "assignment_id": "hw"}
        )
        course = CourseDirectory(config=config)
        collect.OwnWork(coursedir=course, config=config).start()
        found = (self.course / "submitted").glob("*/hw")
        return {
            folder.parent.name: {f.name: f.read_text() for f in folder.iterdir()}
            for folder in found
        }


@pytest.fixture(scope="module")
def gradebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty gradebook, made once: it takes some seconds."""
    path = tmp_path_factory.mktemp("course") / "gradebook.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{sys.prefix}/bin", prepend=os.pathsep)  # there is its alembic
        Gradebook(f"sqlite:///{path}", "demo").close()
    return path


@pytest.fixture
def exchange(tmp_path: Path, gradebook: Path) -> Exchange:
    made = Exchange(tmp_path)
    shutil.copy(gradebook, made.course)
    return made


def test_work_is_taken_as_it_was_handed_in(exchange: Exchange) -> None:
    folder = exchange.hand_in({"a.ipynb": "{}", "submission_secret.txt": "0f" * 64})
    ((student, files),) = exchange.collect().items()
    assert student == exchange.me
    assert files == {
        "a.ipynb": "{}",
        "submission_secret.txt": "0f" * 64,
        "timestamp.txt": f"{collect.handed_in(str(folder)):%Y-%m-%d %H:%M:%S.%f} UTC",
    }


def test_a_false_name_is_of_no_use(exchange: Exchange) -> None:
    odd = {"a.ipynb": "forged", "submission_secret.txt": "../..", "timestamp.txt": "tomorrow"}
    exchange.hand_in(odd, name="somebody")
    found = exchange.collect()
    assert set(found) == {exchange.me}
    assert len(found[exchange.me]["submission_secret.txt"]) == 128
    assert found[exchange.me]["timestamp.txt"].startswith("20")


def test_links_pipes_and_folders_are_left_out(exchange: Exchange, tmp_path: Path) -> None:
    secret = tmp_path / "solution.ipynb"
    secret.write_text("solution")
    folder = exchange.hand_in({"a.ipynb": "mine"})
    (folder / "b.ipynb").symlink_to(secret)
    os.link(secret, folder / "c.ipynb")
    os.mkfifo(folder / "d.ipynb")
    (folder / "e.ipynb").mkdir()
    ((_, files),) = exchange.collect().items()
    assert set(files) == {"a.ipynb", "submission_secret.txt", "timestamp.txt"}


def test_a_link_in_place_of_the_folder_is_not_followed(exchange: Exchange, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.ipynb").write_text("solution")
    link = exchange.inbound / f"{exchange.me}+hw+2026-11-21 10:00:00.000000 UTC+1"
    link.symlink_to(tmp_path / "elsewhere")
    ((_, files),) = exchange.collect().items()
    assert set(files) == {"submission_secret.txt", "timestamp.txt"}


def test_too_much_is_not_taken(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "MOST_BYTES", 10)
    monkeypatch.setattr(collect, "MOST_FILES", 3)
    exchange.hand_in({"a": "12345", "b": "123456", "c": "12345", "d": ""})
    ((_, files),) = exchange.collect().items()
    assert set(files) == {"a", "c", "submission_secret.txt", "timestamp.txt"}


def test_an_odd_name_stops_nobody(exchange: Exchange) -> None:
    (exchange.inbound / "somebody+hw+").mkdir()
    (exchange.inbound / "somebody+hw+not a time").mkdir()
    exchange.hand_in({"a.ipynb": "{}"})  # the last one
    assert exchange.collect()[exchange.me]["a.ipynb"] == "{}"


def test_the_time_is_the_file_systems(exchange: Exchange) -> None:
    folder = exchange.hand_in({"a.ipynb": "{}"})
    os.utime(folder, (0, 0))
    assert collect.handed_in(str(folder)).year > 2000
    assert collect.account(2**31 - 5) == f"uid-{2**31 - 5}"
    assert stat.S_ISDIR(folder.stat().st_mode)
