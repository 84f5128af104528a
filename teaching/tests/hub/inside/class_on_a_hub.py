"""One round of a class on a hub, as the guide has it; runs on a machine of its own (`machine.py`).

The instructor's commands are those of the page. The students have a browser and nothing else. The
tests are one story: each goes on where the one before it stopped.
"""

from __future__ import annotations

import grp
import json
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from bs4 import BeautifulSoup
from hub.inside.browser import HUB, SECONDS, Browser

from hub import guide
from tfviz_lessons.lesson import read

ROOT = Path(__file__).resolve().parents[4]
COURSE, ASSIGNMENT, NOTEBOOK = "attention", "week1", "attention"
STUDENTS = ["ada", "grace", "mallory"]  # who come; emmy never does
EVERYBODY = ["prof", *STUDENTS]
EXCHANGE = Path("/srv/nbgrader/exchange")
INBOUND = EXCHANGE / COURSE / "inbound"
FOLDER = Path("/home/prof") / COURSE
EXERCISES = {e.label: e for e in read(ROOT / "chapters/basics/attention.md").exercises}

done: list[guide.Block] = []


def sh(account: str, source: str, seconds: int = 300) -> str:
    """Run commands as this account logs in to do so; what they print, errors too."""
    argv = ["bash", "-euo", "pipefail", "-c", source]
    if account != "root":
        argv = ["runuser", "--login", account, "--command", f"set -euo pipefail\n{source}"]
    run = subprocess.run(
        argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds
    )
    assert run.returncode == 0, f"{account}: {source}\n{run.stdout}"
    return run.stdout


def follow(section: str, *, only: int | None = None) -> str:
    """Run the commands of a section of the page (or only its n-th block); what they print."""
    blocks = [block for block in guide.blocks() if block.section == section]
    assert blocks, f"the page has no commands in a section {section!r}"
    chosen = blocks if only is None else [blocks[only]]
    done.extend(chosen)
    return "".join(sh(block.account, block.source) for block in chosen)


@pytest.fixture(scope="module")
def people() -> dict[str, Browser]:
    return {name: Browser(name) for name in EVERYBODY}


@pytest.fixture(scope="module")
def passwords() -> dict[str, str]:
    lines = Path("/root/passwords.txt").read_text().split()
    return dict(line.split(":") for line in lines)


class Hub:
    """JupyterHub, started by the commands of the page."""

    log = Path("/var/log/hub")

    def start(self, address: str, environment: str = "", **options: Any) -> None:
        """Start it, and wait until it answers at this address."""
        (block,) = [block for block in guide.blocks() if block.section == "Start the hub"]
        done.append(block)
        with self.log.open("ab") as log:
            command = ["bash", "-euc", environment + block.source]
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if requests.get(f"{address}/hub/health", timeout=5, **options).ok:
                    return
            except requests.ConnectionError:
                pass
            time.sleep(0.2)
        pytest.fail(f"the hub does not answer:\n{self.log.read_text()}")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(SECONDS)


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    hub = Hub()
    hub.start(HUB)
    yield hub
    if hub.process.poll() is None:
        hub.stop()


def secrets_of(label: str) -> list[str]:
    """Lines that stand in the hidden tests of an exercise and nowhere in its visible ones."""
    exercise = EXERCISES[label]
    lines = [line.strip() for line in exercise.hidden_tests.splitlines() if len(line) > 20]
    found = [line for line in lines if line not in exercise.visible_tests]
    assert found
    return found


def answer(notebook: dict[str, Any], label: str, source: str) -> None:
    """Write under the first line of the answer cell, as a student does."""
    for found in notebook["cells"]:
        if found["metadata"].get("nbgrader", {}).get("grade_id") == f"{label}-yours":
            first = found["source"].split("\n")[0]
            assert first.startswith("# exercise:"), first
            found["source"] = f"{first}\n{source}"
            return
    raise LookupError(label)


# --- the machine ----------------------------------------------------------------------------------


def test_root_sets_the_machine_up() -> None:
    follow("Install")
    follow("Accounts")
    follow("The exchange")
    assert set(grp.getgrnam("students").gr_mem) == {*STUDENTS, "emmy"}


def test_only_the_two_groups_may_come_in(hub: Hub, passwords: dict[str, str]) -> None:
    sh("root", "useradd --create-home stranger && echo stranger:known | chpasswd")
    assert Browser("stranger").log_in("known").status_code == 403
    assert Browser("ada").log_in("guessed").status_code == 403
    assert Browser("ada").log_in(passwords["grace"]).status_code == 403


def test_everybody_gets_a_server_under_their_own_account(
    people: dict[str, Browser], passwords: dict[str, str]
) -> None:
    def arrive(name: str) -> str:
        assert people[name].log_in(passwords[name]).ok
        people[name].start()
        return people[name].run("whoami; pwd")

    with ThreadPoolExecutor() as pool:
        seen = dict(zip(EVERYBODY, pool.map(arrive, EVERYBODY), strict=True))
    assert seen == {name: f"{name}\n/home/{name}" for name in EVERYBODY}


def test_the_servers_listen_to_this_machine_only() -> None:
    """Every address something listens on is 127.0.0.1; without a certificate, the hub's too."""
    listening = [
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    ]
    assert listening
    assert {address.split(":")[0] for address in listening} == {"0100007F"}


# --- an assignment goes out -----------------------------------------------------------------------


def test_the_instructor_makes_and_releases_an_assignment(people: dict[str, Browser]) -> None:
    follow("The course")
    follow("The weekly round", only=0)
    assert (EXCHANGE / COURSE / "outbound" / ASSIGNMENT / f"{NOTEBOOK}.ipynb").exists()


def test_formgrader_is_for_the_instructor(people: dict[str, Browser]) -> None:
    """After a restart of the server, as the page says, with the course's safe grading."""
    prof = people["prof"]
    prof.request(
        "DELETE",
        f"{HUB}/hub/api/users/prof/server",
        headers={"X-XSRFToken": prof.token("/hub/")},
    ).raise_for_status()
    end = time.monotonic() + SECONDS
    while prof.get("api/status", allow_redirects=False).status_code != 302:
        assert time.monotonic() < end
        time.sleep(0.2)
    prof.start()
    page = prof.get("formgrader/manage_assignments")
    assert page.status_code == 200
    assert str(FOLDER) in page.text and "tfviz_course.plugin.Judge" in page.text
    listed = prof.get("formgrader/api/assignments").json()
    assert [entry["name"] for entry in listed] == [ASSIGNMENT]
    for name in STUDENTS:
        assert people[name].get("formgrader/manage_assignments").status_code == 404, name


def test_students_fetch_it_without_solutions_and_hidden_tests(people: dict[str, Browser]) -> None:
    for name in STUDENTS:
        listed = people[name].assignment("fetch", COURSE, ASSIGNMENT)
        assert [(e["assignment_id"], e["status"]) for e in listed] == [(ASSIGNMENT, "fetched")]
        text = json.dumps(people[name].read(f"{ASSIGNMENT}/{NOTEBOOK}.ipynb"))
        assert "BEGIN SOLUTION" not in text and "BEGIN HIDDEN" not in text
        for label in ("ex-sharpness", "ex-additive"):
            assert f"{label}-yours" in text
            for line in secrets_of(label):
                assert json.dumps(line)[1:-1] not in text


# --- students work --------------------------------------------------------------------------------


def test_students_hand_in(people: dict[str, Browser]) -> None:
    """Ada solves all, Grace leaves the stubs, Mallory tries to read what is not hers."""
    path = f"{ASSIGNMENT}/{NOTEBOOK}.ipynb"
    ada = people["ada"].read(path)
    for label in ("ex-sharpness", "ex-additive"):
        solution = EXERCISES[label].solution.source
        kept = [line for line in solution.splitlines() if "### " not in line]
        answer(ada, label, "\n".join(kept))
    people["ada"].write(path, ada)

    mallory = people["mallory"].read(path)
    secret = (FOLDER / "course.toml").read_text()
    loot = f"open({str(FOLDER / 'course.toml')!r}).read()"
    spy = f"try:\n    loot = {loot}\nexcept OSError:\n    loot = 'nothing'\nprint('LOOT', loot)\n"
    steal = f"{spy}\ndef beta_for(share, slots):\n    raise ValueError('LOOT ' + {loot})\n"
    answer(mallory, "ex-sharpness", steal)
    people["mallory"].write(path, mallory)
    assert "secret" in secret

    for name in STUDENTS:
        listed = people[name].assignment("submit", COURSE, ASSIGNMENT)
        assert any(entry["status"] == "submitted" for entry in listed)
    assert sorted(path.name.split("+")[0] for path in INBOUND.iterdir()) == STUDENTS


def test_a_student_reads_nobody_elses_work(people: dict[str, Browser]) -> None:
    mallory = people["mallory"]
    (submission,) = INBOUND.glob("ada+*")
    denied = [
        f"ls {INBOUND}",
        f"ls {EXCHANGE / COURSE / 'feedback'}",
        "ls /home/ada",
        "cat /home/ada/week1/attention.ipynb",
        f"ls {FOLDER}",
        f"cat {FOLDER}/course.toml",
        f"cat {FOLDER}/gradebook.db",
        f"cat {FOLDER}/source/{ASSIGNMENT}/{NOTEBOOK}.ipynb",
        "cat /root/passwords.txt",
        "ls /srv/hub",
    ]
    sh("prof", f"mkdir -p -m 711 {EXCHANGE / COURSE / 'feedback'}")
    for command in denied:
        said = mallory.run(command)
        assert "Permission denied" in said and said.count("\n") == 0, (command, said)
    assert submission.is_dir()
    for path in ("../ada/week1/attention.ipynb", "../prof/attention/course.toml", "../ada"):
        assert mallory.get(f"api/contents/{path}").status_code in (403, 404), path
    mallory.run("ln -s /home/ada adas; ln -s /home/prof/attention profs")
    for path in ("adas", "adas/week1/attention.ipynb", "profs", "profs/course.toml"):
        assert mallory.get(f"api/contents/{path}").status_code in (403, 404, 500), path
        assert "secret" not in mallory.get(f"files/{path}").text
    mallory.run("rm -f adas profs")


def test_a_student_enters_nobody_elses_server(people: dict[str, Browser]) -> None:
    mallory = people["mallory"]
    pages = {"ada": ["lab", "api/contents/"], "prof": ["lab", "formgrader/manage_assignments"]}
    for owner, paths in pages.items():
        answers = [mallory.request("GET", mallory.url(path, user=owner)) for path in paths]
        assert [found.status_code for found in answers] == [403, 403], owner
    assert mallory.request("GET", f"{HUB}/hub/admin").status_code == 403


def test_a_student_changes_nothing_in_the_exchange(people: dict[str, Browser]) -> None:
    mallory = people["mallory"]
    (submission,) = INBOUND.glob("ada+*")
    for command in (
        f"mv {EXCHANGE}/{COURSE} {EXCHANGE}/gone",
        f"rm -rf {EXCHANGE}/{COURSE}/outbound/{ASSIGNMENT}",
        f"echo x > {EXCHANGE}/{COURSE}/outbound/{ASSIGNMENT}/{NOTEBOOK}.ipynb",
        f"mkdir {EXCHANGE}/{COURSE}/outbound/week0",
        f"rm -rf {INBOUND}/*; ls {INBOUND}",
    ):
        said = mallory.run(f"{command} && echo MANAGED")
        assert "MANAGED" not in said and re.search("not permitted|denied|No such file", said), said
    assert submission.is_dir()


def test_a_student_hands_in_for_another(people: dict[str, Browser]) -> None:
    """What one can put into the open folder by hand; that it is of no use is tested below."""
    mallory = people["mallory"]
    late = f"{ASSIGNMENT}+2099-01-01 00:00:00.000000 UTC"
    attempts = f"""
        cd {INBOUND}
        mkdir 'ada+{late}+AAAA' && cp ~/{ASSIGNMENT}/*.ipynb 'ada+{late}+AAAA'
        ln -s {FOLDER}/source/{ASSIGNMENT} 'grace+{late}+BBBB'
        mkdir 'mallory+{ASSIGNMENT}+not a time' 'emmy+{ASSIGNMENT}+' 'mallory+{late}+CCCC'
        cd 'mallory+{late}+CCCC'
        ln -s {FOLDER}/source/{ASSIGNMENT}/{NOTEBOOK}.ipynb {NOTEBOOK}.ipynb
        ln -s {FOLDER}/course.toml notes.txt
        mkfifo pipe; mkdir folder; echo x > unreadable; chmod 000 unreadable
        touch -d 2000-01-01 .
    """
    said = mallory.run("; ".join(line.strip() for line in attempts.strip().splitlines()))
    assert said == ""


# --- it is collected and graded -------------------------------------------------------------------


def test_the_instructor_collects_only_what_is_everybodys_own() -> None:
    said = sh("prof", f"cd {FOLDER} && nbgrader collect {ASSIGNMENT} --update")
    assert "says that it is from 'ada'; it is from 'mallory'" in said
    assert sorted(path.name for path in (FOLDER / "submitted").iterdir()) == STUDENTS
    submitted = FOLDER / "submitted" / "ada" / ASSIGNMENT / f"{NOTEBOOK}.ipynb"
    assert submitted.read_bytes() == Path(f"/home/ada/{ASSIGNMENT}/{NOTEBOOK}.ipynb").read_bytes()
    mallorys = FOLDER / "submitted" / "mallory" / ASSIGNMENT
    assert {path.name for path in mallorys.iterdir()} <= {"submission_secret.txt", "timestamp.txt"}
    assert (mallorys / "timestamp.txt").read_text()[:4] not in ("2000", "2099")


def test_all_is_collected_and_graded(people: dict[str, Browser]) -> None:
    """Mallory's tricks cost her own work only; she hands in again, whatever 2099 says."""
    people["mallory"].assignment("submit", COURSE, ASSIGNMENT)
    follow("The weekly round", only=1)
    mallorys = FOLDER / "submitted" / "mallory" / ASSIGNMENT
    assert "LOOT" in (mallorys / f"{NOTEBOOK}.ipynb").read_text()


def scores() -> dict[str, float]:
    """Points by student, from the gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{FOLDER}/gradebook.db", COURSE) as book:
        found = book.find_assignment(ASSIGNMENT).submissions
        return {submission.student_id: submission.score for submission in found}


def full() -> float:
    return float(sum(sum(EXERCISES[label].points) for label in ("ex-sharpness", "ex-additive")))


def test_the_gradebook_says_who_did_what() -> None:
    assert scores() == {"ada": full(), "grace": 0, "mallory": 0}


def test_the_button_in_formgrader_grades_as_safely(people: dict[str, Browser]) -> None:
    path = f"formgrader/api/submission/{ASSIGNMENT}/mallory/autograde"
    said = people["prof"].send("POST", path).json()
    assert said["success"], said
    secret = re.findall('secret = "(.*)"', (FOLDER / "course.toml").read_text())[0]
    for found in (FOLDER / "autograded").glob("**/*.ipynb"):
        assert secret not in found.read_text(), found
    assert scores() == {"ada": full(), "grace": 0, "mallory": 0}


def test_each_student_reads_the_own_feedback_and_no_other(people: dict[str, Browser]) -> None:
    follow("The weekly round", only=2)
    pages = {}
    for name in STUDENTS:
        listed = people[name].assignment("fetch_feedback", COURSE, ASSIGNMENT)
        (submissions,) = [e["submissions"] for e in listed if e["status"] == "submitted"]
        folders = [s["local_feedback_path"] for s in submissions if s["has_local_feedback"]]
        assert len(folders) == 1, (name, submissions)
        inside = people[name].get(f"api/contents/{folders[0]}").json()["content"]
        assert [entry["name"] for entry in inside] == [f"{NOTEBOOK}.html"]
        page = people[name].get(f"files/{folders[0]}/{NOTEBOOK}.html")
        assert page.status_code == 200
        pages[name] = page.content.decode()
    secret = re.findall('secret = "(.*)"', (FOLDER / "course.toml").read_text())[0]
    for name, text in pages.items():
        mine = full() if name == "ada" else 0.0
        assert f"Score: {mine} / {full()}" in text, name
        assert secret not in text
        text = BeautifulSoup(text, "html.parser").get_text()
        for other in {*STUDENTS, "emmy"} - {name}:
            assert not re.search(rf"\b{other}\b", text), (name, other)
        for label in ("ex-sharpness", "ex-additive"):
            for line in secrets_of(label):
                assert line not in text


# --- the rest of the page -------------------------------------------------------------------------


def test_the_checks_before_class_say_what_the_page_says() -> None:
    said = follow("Before the first class")
    assert f"{COURSE} {ASSIGNMENT}" in said
    modes = {path: mode for mode, path in re.findall(r"^(\d+) \w+ (/\S+)$", said, re.M)}
    assert modes[str(EXCHANGE)] == "1777"
    assert [modes[str(EXCHANGE / COURSE / f)] for f in ("outbound", "feedback", "inbound")] == [
        "755",
        "711",
        "2733",
    ]
    assert {modes[f"/home/{name}"] for name in [*EVERYBODY, "emmy"]} == {"700"}


def test_a_backup_holds_the_grades() -> None:
    follow("Backup")
    sh("prof", "mkdir ~/back && tar -xzf ~/attention-*.tar.gz -C ~/back")
    for name in ("gradebook.db", "course.toml", f"source/{ASSIGNMENT}/{NOTEBOOK}.ipynb"):
        saved = Path("/home/prof/back") / COURSE / name
        assert saved.read_bytes() == (FOLDER / name).read_bytes()
    assert Path("/home/prof/back/attention/course.toml").stat().st_mode & 0o777 == 0o600


def test_the_hub_stops_and_its_database_can_be_upgraded(hub: Hub) -> None:
    hub.stop()
    follow("During the term")


def test_with_a_certificate_it_serves_https_to_all(hub: Hub) -> None:
    service = (ROOT / "teaching/hub/hub.service").read_text()
    settings = dict(re.findall(r"^(ExecStart|WorkingDirectory)=(.*)$", service, re.M))
    (block,) = [b for b in guide.blocks() if b.section == "Start the hub"]
    assert f"cd {settings['WorkingDirectory']} && {settings['ExecStart']}\n" in block.source
    sh(
        "root",
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=DNS:localhost -keyout /root/key.pem -out /root/cert.pem",
    )
    environment = "export HUB_CERT=/root/cert.pem HUB_KEY=/root/key.pem\n"
    hub.start("https://localhost", environment, verify="/root/cert.pem")
    hub.stop()


def test_every_command_of_the_page_was_run() -> None:
    assert {block.source for block in guide.blocks()} == {block.source for block in done}
