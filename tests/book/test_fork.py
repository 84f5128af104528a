"""A copy of the repository under another owner: its own workflows publish it, and name it alone.

The tracked files go to a folder, with contents cut to two pages and the sample of a lesson. There
the steps of the publishing workflow run as they are written; its PDF is printed only where
everything is proven (`exemplars.ALL`). GitHub's part is stood for: the checkout by the copy, the
installation from the network by this environment, the server by a bare repository to which git is
led in place of the new owner's address.
"""

from __future__ import annotations

import functools
import html
import http.server
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit
from xml.etree import ElementTree

import book_pages
import exemplars
import pytest
import tfviz_book
import yaml
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from PIL import Image

import start
from book import workflows

RESTS_ON = (
    "book/assets/**",
    "book/_ext/**",
    "book/_templates/**",
    "_config.yml",
    "tests/book/*.py",
    "tests/*.py",
    "scripts/*.py",
    "tfviz_lessons/**",
    "book/**",
    "README.md",
)

ROOT = Path(__file__).resolve().parents[2]
OWNER, NAME, BRANCH = "Ada-University", "nlp-101", "trunk"
HERE = f"{OWNER}/{NAME}"
OLD = "tfviz_course/"
LESSON = "chapters/basics/sample"
SITE = "https://ada-university.github.io/nlp-101"
CONTENTS = f"""\
format: jb-book
root: book/index
chapters:
  - file: book/instructors
  - file: {LESSON}
"""
CONTEXT = {
    "github.actor": "ada",
    "github.token": "TOKEN",
    "github.ref": f"refs/heads/{BRANCH}",
    "github.repository": HERE,
    "github.event.repository.default_branch": BRANCH,
    "github.event.workflow_run.conclusion": "success",
    "github.event.workflow_run.event": "push",
    "github.event.workflow_run.head_branch": BRANCH,
    "github.event.workflow_run.head_sha": "0123abcd",
}
STOOD_FOR = {
    "actions/checkout",
    "actions/setup-python",
    "actions/cache",
    "actions/cache/restore",
    "actions/upload-artifact",
}
STAMPS = """
import start
for folder, number in start.wanted().items():
    (folder / ".installed").write_text(number)
"""
HOME = re.compile(r"https://(?:[\w.-]+@)?github\.com/([\w.-]+/[\w.-]+)")


def workflow(name: str) -> dict[str, Any]:
    return workflows.read(ROOT / ".github/workflows" / f"{name}.yml")


def only_job(name: str) -> dict[str, Any]:
    (job,) = workflow(name)["jobs"].values()
    return job


def tracked() -> list[str]:
    """The files that git tracks, and new ones that it would; those deleted by now left out."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [name for name in names.split("\0") if (ROOT / name).is_file()]
    return [name for name in found if not (ROOT / name).is_symlink()]


def copied(folder: Path) -> Path:
    """A copy of the repository in `folder`, which finds what `make` would install."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for installed in start.wanted():
        (folder / installed.name).mkdir()
        for entry in installed.iterdir():
            if entry.name != ".installed":
                (folder / installed.name / entry.name).symlink_to(entry)
    subprocess.run([sys.executable, "-c", STAMPS], cwd=folder, check=True)
    return folder


def around(folder: Path, **more: str) -> dict[str, str]:
    """The variables of a runner, in which nothing is fetched."""
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith("GITHUB_")},
        "PYTHONPATH": str(folder),
        "OMP_NUM_THREADS": "1",
        "GIT_ALLOW_PROTOCOL": "file",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": HERE,
        "GITHUB_REPOSITORY_OWNER": OWNER,
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REF_NAME": BRANCH,
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_ENV": str(folder.with_name("environment")),
        **more,
    }


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the new owner's branch gh-pages holds after the publishing workflow."""
    place = tmp_path_factory.mktemp("fork")
    folder, server = copied(place / "copy"), place / "server.git"
    (folder / "_toc.yml").write_text(CONTENTS, "utf8")
    shutil.copyfile(Path(__file__).with_name("sample_lesson.md"), folder / f"{LESSON}.md")
    subprocess.run(["git", "init", "--quiet", "--bare", server], check=True)
    address = f"https://x-access-token:TOKEN@github.com/{HERE}.git"
    environment = around(
        folder,
        DRAFT="1",  # links to the pages that were cut lead nowhere
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.{server.as_uri()}.insteadOf",
        GIT_CONFIG_VALUE_0=address,
    )
    played = []
    for step in workflows.steps(only_job("publish"), CONTEXT):
        if step.uses:
            assert step.uses in STOOD_FOR, f"nothing stands for {step.uses}"
        else:
            if step.run.strip() == "make pdf" and not exemplars.ALL:
                step = replace(step, run="make build")
            workflows.play(step, folder, environment)
            played.append(step.name)
    assert played == ["PyTorch without CUDA", "make pdf", "Put the pages on gh-pages"]
    branch = yaml.safe_load((folder / "_config.yml").read_text("utf8"))
    branch = branch["sphinx"]["config"]["tfviz_notebooks_branch"]
    result = place / "branch"
    command = ["git", "clone", "--quiet", "--branch", branch, server.as_uri(), result]
    subprocess.run(command, check=True)
    return result


@pytest.fixture(scope="module")
def page(published: Path) -> str:
    return html.unescape((published / f"{LESSON}.html").read_text("utf8"))


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".git" not in path.relative_to(folder).parts:
            yield path.relative_to(folder).as_posix(), path.read_bytes().decode("utf8", "ignore")


def test_what_is_published_names_its_owner_and_nobody_else(published: Path) -> None:
    named = set()
    for name, text in texts(published):
        assert OLD not in text, f"{name} names the course that was copied"
        own = [home for home in HOME.findall(text) if home.partition("/")[0] == OWNER]
        assert set(own) <= {HERE, f"{HERE}.git"}, name
        named |= {name} if own else set()
    assert {f"{LESSON}.html", f"notebooks/{LESSON}.ipynb", "book/instructors.html"} <= named


def test_its_buttons_open_what_is_on_the_branch(published: Path, page: str) -> None:
    (colab,) = re.findall(r'href="https://colab\.research\.google\.com/github/([^"]+)"', page)
    home, _, there = colab.partition("/blob/gh-pages/")
    assert home == HERE
    assert json.loads((published / there).read_text("utf8"))["nbformat"] == 4
    (binder,) = re.findall(r'href="(https://mybinder\.org/[^"]+)"', page)
    parts = urlsplit(binder)
    assert parts.path == f"/v2/gh/{HERE}/gh-pages"
    (opened,) = parse_qs(parts.query, strict_parsing=True)["urlpath"]
    assert opened == f"lab/tree/{there}"


def test_its_pages_lead_to_its_own_sources_and_address(published: Path, page: str) -> None:
    source = f"https://github.com/{HERE}/blob/{BRANCH}/{LESSON}.md"
    assert f'<a href="{source}">Source of this page</a>' in page
    assert f'<a class="tf-button" href="https://github.com/{HERE}" aria-label=' in page
    assert f'<link rel="canonical" href="{SITE}/{LESSON}.html">' in page
    guide = (published / "book/instructors.html").read_text("utf8")
    assert f"git clone https://github.com/{HERE} tfviz\n" in re.sub(r"<[^>]*>", "", guide)
    assert (published / ".nojekyll").exists(), "Pages would leave out _static"
    if exemplars.ALL:
        assert (published / "tfviz.pdf").read_bytes().startswith(b"%PDF")


META = re.compile(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)">')


def test_its_pages_are_shared_with_a_picture_of_its_own_address(published: Path) -> None:
    """Who shows a shared link does not resolve relative addresses."""
    for name, address in ((f"{LESSON}.html", f"{SITE}/{LESSON}.html"), ("index.html", f"{SITE}/")):
        said = dict(META.findall((published / name).read_text("utf8").split("</head>")[0]))
        assert said["og:url"] == address and said["twitter:card"] == "summary_large_image"
        assert said["og:title"] and said["og:description"]
        picture = said["og:image"].removeprefix(f"{SITE}/")
        size = (int(said["og:image:width"]), int(said["og:image:height"]))
        with Image.open(published / picture) as image:
            assert image.size == size


def test_its_site_map_has_every_page_once(published: Path) -> None:
    text = (published / "sitemap.xml").read_text("utf8")
    named = [place.text or "" for place in ElementTree.fromstring(text).iter() if place.text]
    places = [place.strip() for place in named if place.strip()]
    pages = {path.relative_to(published).as_posix() for path in published.rglob("*.html")}
    left_out = {"index.html", "book/index.html", "search.html", "404.html", "embed.html"}
    assert sorted(places) == sorted([f"{SITE}/", *(f"{SITE}/{one}" for one in pages - left_out)])


class Lost(http.server.SimpleHTTPRequestHandler):
    """Serves a project's pages as GitHub does: below its name, 404.html for what is not there."""

    def translate_path(self, path: str) -> str:
        inside = path.startswith(f"/{NAME}/")
        return super().translate_path(path[len(NAME) + 1 :] if inside else "/no such place")

    def send_error(self, code: int, *_: object) -> None:
        page = Path(self.directory, "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(published: Path) -> Iterator[str]:
    handler = functools.partial(Lost, directory=str(published))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{NAME}"
        server.shutdown()


@pytest.mark.parametrize("depth", ["gone", "chapters/gone.html", "a/b/c/d/"])
def test_who_is_lost_finds_back(served: str, page: str, browser: Any, depth: str) -> None:
    """At any depth: the page has its look, its search finds, and its links lead to pages."""
    tab = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
    answer = tab.goto(f"{served}/{depth}")
    assert answer.status == 404
    assert tab.locator("h1").inner_text() == "This page does not exist"
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 30)"
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    tab.evaluate((ROOT / "node_modules/axe-core/axe.min.js").read_text("utf8"))
    assert tab.evaluate("axe.run().then((found) => found.violations.map((one) => one.id))") == []
    tab.locator("article .tf-search-open").click()
    tab.get_by_role("searchbox", name="Search for").fill("sample")
    tab.locator(".tf-search-results a").first.wait_for()
    there = tab.locator(".tf-search-results a").first.get_attribute("href")
    assert urlsplit(urljoin(tab.url, there)).path.startswith(f"/{NAME}/")
    tab.keyboard.press("Escape")
    for link in tab.locator("article a").all():
        assert tab.request.get(urljoin(tab.url, link.get_attribute("href"))).status == 200
    tab.locator("article a").first.click()
    tab.wait_for_url(f"{served}/book/index.html")
    tab.close()


TO_THE_TOP = """
node => scrollTo({top: node.getBoundingClientRect().top + scrollY - 60, behavior: "instant"})
"""


def test_a_report_names_the_page_and_the_section_in_view(served: str, browser: Any) -> None:
    tab = browser.new_page(viewport={"width": 1280, "height": 300})
    tab.goto(f"{served}/{LESSON}.html")
    link = tab.locator("#tf-side a.tf-report")
    tab.evaluate("document.addEventListener('click', (event) => event.preventDefault())")

    def filled() -> dict[str, list[str]]:
        link.click(force=True)
        return parse_qs(urlsplit(str(link.get_attribute("href"))).query)

    assert f"({LESSON})" in filled()["page"][0] and "section" not in filled()
    sections = tab.locator(".tf-article > section > section > h2")
    assert sections.count()
    for heading in sections.all()[:2]:
        heading.evaluate(TO_THE_TOP)
        title = heading.evaluate("node => node.firstChild.textContent.trim()")
        assert filled()["section"] == [title]
    assert urlsplit(str(link.get_attribute("href"))).path == f"/{HERE}/issues/new"
    footer = tab.locator(".tf-end a", has_text="Report a mistake")
    assert "section" not in str(footer.get_attribute("href"))  # who has read to the end means all
    tab.close()


def test_its_notebooks_and_binder_install_its_own_library(published: Path) -> None:
    package = f"git+https://github.com/{HERE}@{BRANCH}"
    notebook = json.loads((published / f"notebooks/{LESSON}.ipynb").read_text("utf8"))
    first, second = ("".join(cell["source"]) for cell in notebook["cells"][:2])
    (installed,) = re.findall(r'%pip install -q "(.*)"', first)
    assert Requirement(installed).url == package and Requirement(installed).extras == {"lessons"}
    assert f"]({SITE}/{LESSON}.html)" in second
    torch, binder = (published / ".binder/requirements.txt").read_text("utf8").splitlines()
    assert binder == installed and torch.startswith("--extra-index-url https://download.pytorch.")
    assert (published / ".binder/runtime.txt").read_text("utf8") == "python-3.11\n"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (f"https://github.com/{HERE}", HERE),
        (f"https://github.com/{HERE}.git", HERE),
        ("https://gitlab.com/ada/nlp", ""),
        ("https://github.com.example.org/ada/nlp", ""),
        ("", ""),
    ],
)
def test_colab_and_binder_read_from_github_only(address: str, name: str) -> None:
    app: Any = SimpleNamespace(config=SimpleNamespace(tfviz_home=address))
    assert book_pages.github_name(app) == name


@pytest.mark.parametrize(
    ("name", "site"),
    [
        (NAME, f"{SITE}/"),
        ("Ada-University.github.io", "https://ada-university.github.io/"),
    ],
)
def test_pages_have_the_address_that_github_gives_them(
    monkeypatch: pytest.MonkeyPatch, name: str, site: str
) -> None:
    for key, text in {"_OWNER": OWNER, "": f"{OWNER}/{name}"}.items():
        monkeypatch.setenv(f"GITHUB_REPOSITORY{key}", text)
    options = {"repository_url": tfviz_book.ADDRESS, "repository_branch": "main"}
    config: Any = SimpleNamespace(html_theme_options=options, html_baseurl="", tfviz_package="x")
    tfviz_book.addresses(SimpleNamespace(config=config), config)  # type: ignore[arg-type]
    assert config.html_baseurl == site


def test_the_address_stands_in_one_place() -> None:
    """What a copy would have to edit, and what the book replaces by the address of the copy."""
    known = {
        "_config.yml",  # the one place
        "book/_ext/tfviz_book.py",  # compares with it, and takes its place in
        "book/instructors.md",  # which names it where readers clone
        "teaching/tests/course/test_guide.py",
    }
    named = {
        name
        for name, text in ((name, (ROOT / name).read_bytes()) for name in tracked())
        if f"{OLD}tfviz".encode() in text
    }
    assert named == known


def test_its_workflows_ask_for_nothing_that_only_the_owner_has() -> None:
    names = [file.stem for file in sorted((ROOT / ".github/workflows").glob("*.yml"))]
    assert names == ["publish", "release", "test", "weekly"]
    for name in names:
        for job in workflow(name)["jobs"].values():
            matrix = job.get("strategy", {}).get("matrix", {})
            for values in itertools.product(*matrix.values()):
                one = {f"matrix.{key}": x for key, x in zip(matrix, values, strict=True)}
                found = list(workflows.steps(job, {**CONTEXT, **one}))
                assert found and {step.uses for step in found} <= {"", *STOOD_FOR}, name


@pytest.mark.parametrize(
    "changed",
    [
        {"conclusion": "failure"},
        {"event": "pull_request"},
        {"head_branch": "an-idea"},
    ],
)
def test_only_a_tested_push_to_the_default_branch_is_published(changed: Mapping[str, str]) -> None:
    run = {f"github.event.workflow_run.{key}": text for key, text in changed.items()}
    job = only_job("publish")
    assert list(workflows.steps(job, CONTEXT)) and not list(workflows.steps(job, CONTEXT | run))


def test_a_secret_an_unknown_key_and_a_failing_command_are_noticed(tmp_path: Path) -> None:
    secret = {"steps": [{"run": "push ${{ secrets.DEPLOY_KEY }}"}]}
    with pytest.raises(workflows.NotInACopyError, match=r"secrets\.DEPLOY_KEY"):
        list(workflows.steps(secret, CONTEXT))
    given = {"steps": [{"uses": "a/b@0123", "with": {"token": "${{ vars.OWNER }}"}}]}
    with pytest.raises(workflows.NotInACopyError, match=r"vars\.OWNER"):
        list(workflows.steps(given, CONTEXT))
    with pytest.raises(AssertionError, match="working-directory"):
        list(workflows.steps({"steps": [{"run": "true", "working-directory": "x"}]}, CONTEXT))
    with pytest.raises(AssertionError, match="two"):
        workflows.play(workflows.Step("two", "", "false\ntrue"), tmp_path, dict(os.environ))


# what needs the network in the workflow of a release -> what stands for it here
WITHOUT_NETWORK = {
    "python -m pip install build twine": "",
    "python -m build": (
        "python -c 'from setuptools.build_meta import *; "
        'build_wheel("dist"); build_sdist("dist")\''
    ),
    "python -m twine check --strict dist/*": "",
}


def others(folder: Path) -> Path:
    """A folder of all that is installed here but the library itself and pip."""
    folder.mkdir()
    for place in (Path(entry) for entry in sys.path if entry.endswith("site-packages")):
        for entry in place.iterdir():
            here = folder / entry.name
            if not re.search(r"tfviz|^pip\b|\.pth$", entry.name) and not here.exists():
                here.symlink_to(entry)
    return folder


def test_a_release_is_built_and_installed_by_its_workflow(tmp_path: Path) -> None:
    """Both files, in a new environment that finds only what the library needs beside it."""
    folder = copied(tmp_path / "copy")
    (folder / "dist").mkdir()
    (tmp_path / "temp").mkdir()
    environment = around(
        folder,
        PATH=os.pathsep.join([str(folder / ".venv-dev/bin"), os.environ["PATH"]]),
        PYTHONPATH=str(others(tmp_path / "others")),
        RUNNER_TEMP=str(tmp_path / "temp"),
        PIP_NO_INDEX="1",
        PIP_NO_DEPS="1",
        PIP_NO_BUILD_ISOLATION="0",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )
    line = (folder / "tfviz/__init__.py").read_text("utf8")
    (version,) = re.findall(r'^__version__ = "(.*)"$', line, re.M)
    tagged = {"github.ref": f"refs/tags/v{version}"}
    environment["GITHUB_REF_NAME"] = f"v{version}"
    played = []
    for step in workflows.steps(only_job("release"), CONTEXT | tagged):
        stood_for = WITHOUT_NETWORK.get(step.run.strip(), step.run)
        workflows.play(workflows.Step(step.name, "", stood_for), folder, environment)
        played.append(step.name)
        if step.run.startswith("python -m twine"):
            (wheel,) = (folder / "dist").glob("*.whl")
            with zipfile.ZipFile(wheel) as packed:
                said = packed.read(f"tfviz-{version}.dist-info/METADATA")
            assert str(Metadata.from_email(said, validate=True).version) == version
    assert set(WITHOUT_NETWORK) < set(played) and "The tag is the version" in played
    assert sorted(file.suffix for file in (folder / "dist").iterdir()) == [".gz", ".whl"]
    (installed,) = (tmp_path / "temp/try").glob("lib/*/site-packages/tfviz-*.dist-info")
    assert installed.name == f"tfviz-{version}.dist-info"
