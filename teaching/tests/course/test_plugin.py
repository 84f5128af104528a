"""nbgrader's side: every button goes the safe way, and feedback tells no secret."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from course import classroom
from course.bad.notebooks import COVER
from course.classroom import NAME, hand_in, points, solution
from course.pages import BORROWED, COVERED

from tfviz_course import assignment, plugin
from tfviz_course.autograde import autograde
from tfviz_course.line import clean
from tfviz_course.plugin import FAILED, PASSED, markdown

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


if sys.platform != "linux":
    pytest.skip("the sandbox needs Linux", allow_module_level=True)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """nbgrader and nbconvert warn of the packages that they stand on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def graded(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """The class after a real run, in a folder of the test's own."""
    course = classroom.graded(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(course, tmp_path / "class"))


@pytest.fixture
def course(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    made = classroom.base(tmp_path_factory.getbasetemp())
    return Path(shutil.copytree(made, tmp_path / "course"))


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """For processes that nbgrader's side starts."""
    for name, value in classroom.environment().items():
        monkeypatch.setenv(name, value)


def autograded(course: Path, student: str, notebook: str = "attention") -> Any:
    path = course / "autograded" / student / NAME / f"{notebook}.ipynb"
    return nbformat.read(path, as_version=4)


def cell(notebook: Any, name: str) -> Any:
    return next(
        one for one in notebook.cells if one.metadata.get("nbgrader", {}).get("grade_id") == name
    )


# --- the configuration ---------------------------------------------------------------------------


def test_names_of_courses(tmp_path: Path) -> None:
    made = assignment.create_course(tmp_path / "made", "NLP 101 (WS '26)")
    assert assignment.api(made).coursedir.course_id == "nlp-101-ws-26"
    with pytest.raises(assignment.CourseError, match="no letter a to z and no digit"):
        assignment.create_course(tmp_path / "none", "¿?")


def test_a_course_can_be_moved(course: Path, tmp_path: Path) -> None:
    course.rename(tmp_path / "elsewhere")
    handle = assignment.api(tmp_path / "elsewhere")
    assert Path(handle.coursedir.root) == tmp_path / "elsewhere"
    assert handle.get_released_assignments() == set()  # no exchange here
    assert handle.get_source_assignments() == {NAME}


def test_generate_as_formgrader_does(course: Path) -> None:
    release = course / "release" / NAME / "attention.ipynb"
    before = release.read_text()
    release.unlink()
    result = assignment.api(course).generate_assignment(NAME)
    assert result["success"], result
    assert release.read_text() == before
    assert "BEGIN" not in before and "odds" not in before and "manual_seed(seed)" not in before


def test_a_solution_outside_of_answer_cells_is_not_released(course: Path) -> None:
    path = course / "source" / NAME / "attention.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cell(notebook, "setup-1").source += "\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION"
    nbformat.write(notebook, path)
    result = assignment.api(course).generate_assignment(NAME)
    assert not result["success"]
    assert "is not an answer cell: students would read it" in result["log"]
    assert not list((course / "release" / NAME).glob("attention.ipynb"))


# --- autograde, by other ways than our command ---------------------------------------------------


def outlaw(course: Path, trace: Path) -> None:
    """Ada's answer is right, and leaves a trace on the disk where that is possible."""
    acts = f"try:\n    open({str(trace)!r}, 'w').close()\nexcept OSError:\n    pass\n"
    hand_in(course, "ada", {"ex-sharpness": acts + solution(course, "ex-sharpness")})


def test_autograde_as_formgrader_does(course: Path, tmp_path: Path, importable: None) -> None:
    outlaw(course, tmp_path / "trace")
    (course / "submitted/ada" / NAME / "factorized.ipynb").rename(
        course / "submitted/ada" / NAME / "final (2).ipynb"
    )
    (course / "submitted/ada" / NAME / "stolen.txt").symlink_to(course / "course.toml")
    result = assignment.api(course).autograde(NAME, "ada")
    assert result["success"], result
    assert points(course, "ada")["ex-sharpness-hidden"] == 1
    assert points(course, "ada")["ex-best-stride-checks"] == 0
    assert not (tmp_path / "trace").exists()
    assert {path.name for path in (course / "autograded/ada" / NAME).iterdir()} == {
        "attention.ipynb",
        "factorized.ipynb",
    }


def test_autograde_by_nbgraders_command(course: Path, tmp_path: Path, importable: None) -> None:
    outlaw(course, tmp_path / "trace")
    run = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", NAME],
        cwd=course,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert points(course, "ada")["ex-sharpness-hidden"] == 1
    assert not (tmp_path / "trace").exists()


def test_no_sandbox_no_autograde(
    course: Path, importable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(course, "ada", {})
    monkeypatch.setenv("PATH", "/nowhere")  # no bubblewrap
    result = assignment.api(course).autograde(NAME, "ada")
    assert not result["success"]
    assert "not judged without a sandbox" in result["error"]
    assert not (course / "autograded").exists()


def test_nobody_handed_in(course: Path) -> None:
    result = assignment.api(course).autograde(NAME, "ada")
    assert not result["success"]
    assert "no submission of ada" in result["error"]


def test_nbgraders_own_autograde_executes_nothing(course: Path, tmp_path: Path) -> None:
    """If our class were not in its place: the judge refuses, and nothing is executed."""
    from nbgrader.utils import capture_log, temp_attrs

    outlaw(course, tmp_path / "trace")
    handle = assignment.api(course)
    stock = plugin.Autograde.__mro__[1]
    assert stock.__module__.startswith("nbgrader.")
    with temp_attrs(handle.coursedir, assignment_id=NAME, student_id="ada"):
        result = capture_log(stock(coursedir=handle.coursedir, parent=handle))
    assert not result["success"]
    assert "cannot be graded safely" in result["log"]
    assert not (tmp_path / "trace").exists()
    assert not (course / "autograded/ada" / NAME).exists()


def test_a_verdict_on_other_answers_is_not_used(graded: Path) -> None:
    rebuilt = graded / ".tfviz/rebuilt/ada" / NAME / "attention.ipynb"
    shutil.copy(graded / ".tfviz/rebuilt/bob" / NAME / "attention.ipynb", rebuilt)
    handle = assignment.api(graded)
    handle.config.Autograde.judged = True
    result = handle.autograde(NAME, "ada")
    assert not result["success"]
    assert "has no verdict on this submission of ada" in result["log"]


# --- what is shown -------------------------------------------------------------------------------


class Page(HTMLParser):
    """What in a page acts: scripts, handlers, frames, links that are programs; and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.acts: list[str] = []
        self.text = ""
        self.script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.script = tag == "script"
        if tag in ("iframe", "object", "embed", "svg", "form"):
            self.acts.append(tag)
        for name, value in attrs:
            if name in ("src", "href") and "elsewhere" in (value or ""):
                self.acts.append(f"{tag} {name}={value}")
            if name.startswith("on") or (value or "").strip().lower().startswith(
                ("javascript:", "data:text")
            ):
                self.acts.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        self.script = False

    def handle_data(self, data: str) -> None:
        if self.script and "MARK" in data:
            self.acts.append(data)
        elif not self.script:
            self.text += data


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """Feedback of the class on the first notebook, by student."""
    course = classroom.graded(tmp_path_factory.getbasetemp())
    course = Path(shutil.copytree(course, tmp_path_factory.mktemp("feedback") / "class"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = assignment.api(course).generate_feedback(NAME)
    assert result["success"], result
    found = (course / "feedback").glob(f"*/{NAME}/attention.html")
    return {path.parts[-3]: Page(path.read_text()) for path in found}


def test_feedback_says_how_it_went(pages: dict[str, Page]) -> None:
    assert pages.keys() == {"ada", "bob", "cleo", "dan", "eve", "fay"}
    for student, said in {"ada": PASSED, "cleo": FAILED, "dan": FAILED, "bob": FAILED}.items():
        assert said in pages[student].text
        assert (FAILED if said == PASSED else PASSED) not in pages[student].text
    assert "Score: 2.0" in pages["ada"].text
    assert "read from the file 'attention (1).ipynb'" in pages["fay"].text
    assert "no file for this notebook was found" in pages["eve"].text


def test_feedback_begins_with_the_answers(graded: Path) -> None:
    sources = [one.source for one in autograded(graded, "ada").cells]
    assert any("%pip install" in source for source in sources)  # formgrader shows it
    assert any("import torch" in source for source in sources)
    assert assignment.api(graded).generate_feedback(NAME, "ada")["success"]
    html = (graded / "feedback/ada" / NAME / "attention.html").read_text()
    text = Page(html).text
    assert "pip install" not in text and "import torch" not in text
    assert "beta_for" in text and "Student's answer" in text
    assert plugin.CSS in html
    assert 'href="#ex-sharpness-checks"' in html  # what the style sheet names the cells by


@pytest.mark.parametrize("student", ["ada", "bob", "cleo", "dan", "eve", "fay"])
def test_feedback_tells_no_secret(pages: dict[str, Page], student: str) -> None:
    text = pages[student].text
    for secret in (
        "manual_seed(seed)",  # hidden tests
        "BEGIN HIDDEN",
        "expect_close(got[1]",
        "MARK SCHEME",
        "For the instructor",
    ):
        assert secret not in text
    if student not in ("ada", "fay"):  # theirs is the official solution
        assert "odds" not in text
    without_answer = text.replace(classroom.VISIBLE_ONLY.split("{rest}")[0], "")
    assert not re.search(r"LEAK [\d.]", without_answer)
    assert "ValueError" not in re.sub(r"raise ValueError\(.*", "", text)


@pytest.mark.parametrize("student", ["ada", "cleo", "dan"])
def test_feedback_does_nothing(pages: dict[str, Page], student: str) -> None:
    assert pages[student].acts == []
    if student != "ada":
        assert "MARK" in pages[student].text  # as text it is shown


def formgraders_page(course: Path, student: str) -> str:
    """A submission as formgrader renders it for the instructor."""
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension

    with contextlib.chdir(course):  # as a notebook server that was started there
        formgrader = FormgradeExtension()
        formgrader.root_dir = str(course.parent)
        formgrader.initialize([])
    config = formgrader.config
    assert config.HTMLExporter.template_name == "formgrade"
    about = ("assignment_id", "notebook_id", "submission_id", "student", "last_name", "first_name")
    resources: dict[str, Any] = dict.fromkeys([*about, "base_url", "notebook_path"], "x")
    path = course / "autograded" / student / NAME / "attention.ipynb"
    return str(
        HTMLExporter(config=config).from_filename(str(path), resources | {"index": 0, "total": 1})[
            0
        ]
    )


@pytest.mark.parametrize("student", ["cleo", "dan"])
def test_formgrader_shows_what_acts_as_text(graded: Path, student: str) -> None:
    plain = Page(formgraders_page(graded, "bob")).acts
    page = Page(formgraders_page(graded, student))
    assert sorted(page.acts) == sorted(plain)  # the page's own buttons
    assert "MARK" in page.text
    assert "ex-sharpness-hidden" in page.text
    assert "manual_seed(seed)" in page.text  # an instructor sees the tests


@pytest.fixture
def formgrader(course: Path, importable: None) -> Iterator[Callable[[], str]]:
    """formgrader(): its address when a real JupyterLab serves the course; it asks for no token."""
    servers: list[subprocess.Popen[bytes]] = []

    def start() -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
        command += ["--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token="]
        quiet: Any = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        servers.append(subprocess.Popen(command, cwd=course, **quiet))
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert servers[0].poll() is None, "JupyterLab does not start"
            time.sleep(0.2)
        return f"http://127.0.0.1:{port}/formgrader"

    yield start
    for server in servers:
        server.terminate()
        server.wait(60)


def test_nothing_in_an_answer_covers_or_clicks_in_formgrader(
    course: Path, formgrader: Callable[[], str], browser: Any
) -> None:
    """A real page of formgrader in a real browser: clicks on an answer give no points."""
    hand_in(course, "mallory", {"ex-repair": f"<!-- exercise: ex-repair -->\n{COVER}"})
    autograde(course, NAME)
    with assignment.api(course).gradebook as gradebook:
        sheet = gradebook.find_submission_notebook("attention", NAME, "mallory").id
    page = browser.new_page()
    sent: list[str] = []
    here = formgrader()

    def asked(route: Any) -> None:
        if route.request.method == "PUT":
            sent.append(route.request.url)
        route.continue_() if route.request.url.startswith(here[:20]) else route.abort()

    page.route("**/*", asked)
    page.goto(f"{here}/submissions/{sheet}/", wait_until="load")
    page.wait_for_function("formgrader.grades && formgrader.grades.loaded")
    assert page.locator(".full-credit").count() == page.locator("input.score").count() == 3
    assert page.evaluate(COVERED) == []
    assert page.evaluate(BORROWED) == []
    answer = page.locator(".rendered_html", has_text="A paragraph")
    box = answer.bounding_box()
    for down in range(4, int(box["height"]), 12):
        answer.click(position={"x": 30, "y": down}, force=True, no_wait_after=True)
        if not page.url.startswith(here):  # a link may lead away, which is seen
            page.goto(f"{here}/submissions/{sheet}/", wait_until="load")
    page.wait_for_timeout(300)
    assert sent == []
    page.close()


def test_remarks_for_the_instructor(graded: Path) -> None:
    store = graded / ".tfviz/judged" / NAME / "ada.json"
    entry = json.loads(store.read_text())
    remark = "uses *attention* <b>and</b> a `secret`"
    entry["notebooks"]["attention"]["judged"]["remarks"] = [remark]
    store.write_text(json.dumps(entry))
    handle = assignment.api(graded)
    handle.config.Autograde.judged = True
    assert handle.autograde(NAME, "ada")["success"]
    assert remark in Page(formgraders_page(graded, "ada")).text
    assert handle.generate_feedback(NAME, "ada")["success"]
    assert (
        "secret" not in Page((graded / "feedback/ada" / NAME / "attention.html").read_text()).text
    )


def test_a_notebook_warns_of_running_it(graded: Path) -> None:
    """To the instructor, before anything else; a student's page does not need it."""
    assert autograded(graded, "ada").cells[0].source == plugin.NOT_TO_BE_RUN
    assert "Do not run this notebook" in Page(formgraders_page(graded, "ada")).text


def test_an_answer_that_waits_is_not_shown_as_zero(pages: dict[str, Page]) -> None:
    for student, waits in (("ada", True), ("dan", True), ("bob", False)):
        assert ("Not graded yet." in pages[student].text) is waits
        assert "Do not run this notebook" not in pages[student].text
        worth = "Score: not graded yet / 4.0"
        assert (worth in pages[student].text) is waits
        assert ("Score: 0.0 / 4.0" in pages[student].text) is not waits


def test_formgrader_folds_what_is_the_same_for_all(graded: Path) -> None:
    html = formgraders_page(graded, "ada")
    sources = [one.source for one in autograded(graded, "ada").cells]
    ours = [part for part in sources if "%pip install" in part or "import torch" in part]
    folded = re.findall(r"<details>\s*<summary>Installation and set-up.*?</details>", html, re.S)
    assert len(folded) >= len(ours) > 1
    assert "pip install" in Page(folded[0]).text
    assert "beta_for" not in Page("".join(folded)).text and "beta_for" in Page(html).text


def test_formgrader_shows_the_id_of_who_has_no_name(graded: Path) -> None:
    handle = assignment.api(graded)
    hand_in(graded, "zoe", {})
    names = {s["student"]: (s["last_name"], s["first_name"]) for s in handle.get_submissions(NAME)}
    assert names["ada"] == ("ada", "no name") and names["zoe"] == ("zoe", "no name")
    assert handle.get_submission(NAME, "gil")["first_name"] == "Gil"


# --- outputs and Markdown ------------------------------------------------------------------------


def test_what_the_judge_keeps_of_outputs_is_harmless() -> None:
    """Nothing else bounds or cleans them on the way into a page."""
    kept = clean(
        [
            ["text", "x" * 30_000],
            ["picture", PNG],
            ["picture", PNG + '"><script>'],
            ["picture", {"not": "text"}],
            ["picture", "A" * 10**6],
            ["text/html", "<script>"],
            ["text", 3],
            ["text"],
            ["error", "a\x1b[31mb"],
            {"output_type": "display_data", "data": {"text/html": "<script>"}},
            3,
        ],
        40_000,
    )
    about = {"grade": False, "solution": True, "grade_id": "x"}
    one = nbformat.v4.new_code_cell(metadata={"nbgrader": about})
    plugin._judged_cell(one, {"verdicts": {}, "outputs": {"x": kept}})
    nbformat.validate(nbformat.v4.new_notebook(cells=[one]))
    written, picture, error = one.outputs
    assert written.text == "x" * 30_000 and picture.data == {"image/png": PNG}
    assert error.traceback == ["a�[31mb"]
    assert "script" not in json.dumps(one.outputs)
    assert len(clean([["text", "x"]] * 1000, 40_000)) <= 200
    text = "".join(one["text"] for one in clean([["text", "x" * 9000]] * 9, 10_000))
    assert len(text) < 11_000 and text.endswith("more was shown than is kept\n")


def test_a_score_comes_from_the_verdict_alone() -> None:
    from nbgrader.utils import determine_grade

    def grade(passed: bool, printed: str) -> float:
        about = {"grade": True, "solution": False, "points": 2, "grade_id": "x"}
        one = nbformat.v4.new_code_cell(metadata={"nbgrader": about})
        verdict = {"passed": passed, "message": "no", "printed": printed}
        plugin._judged_cell(one, {"verdicts": {"x": verdict}, "outputs": {}})
        nbformat.validate(nbformat.v4.new_notebook(cells=[one]))
        return float(determine_grade(one)[0])

    for printed in ("", "1", "Traceback: an error"):
        assert grade(True, printed) == 2
        assert grade(False, printed) == 0
    one = nbformat.v4.new_code_cell(
        metadata={"nbgrader": {"grade": True, "solution": False, "points": 2, "grade_id": "y"}}
    )
    plugin._judged_cell(one, {"verdicts": {}, "outputs": {}})
    assert determine_grade(one)[0] == 0


def test_long_code_is_not_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    """80,000 characters of tab and line end took two minutes, for their square."""
    sizes: list[int] = []
    lexer = plugin.Highlight2HTML.__call__

    def coloured(self: Any, source: str, *more: Any) -> Any:
        sizes.append(len(source))
        return lexer(self, source, *more)

    monkeypatch.setattr(plugin.Highlight2HTML, "__call__", coloured)
    assert '<span class="n">x</span>' in plugin.highlight("x = 1  # <b>")
    assert sizes == [len("x = 1  # <b>")]
    for number in (40_000, 4000, 100):  # a short one is quadratic, too: 28 s for 10,000
        blank = "\t\n" * number + "<b>"
        html = plugin.highlight(blank)
        assert "&lt;b&gt;</pre></div>" in html and html.count("\t") == number
        assert f"<pre>```python\n{blank.replace('<b>', '')}" in markdown(
            {"cell": {}}, f"```python\n{blank}\n```"
        )
    assert len(plugin.highlight("x = 1\n" * 2000)) < 13_000
    assert len(sizes) == 1


def test_the_filters_are_those_of_the_course(course: Path) -> None:
    filters = assignment.api(course).config.HTMLExporter.filters
    assert filters["highlight_code"] == "tfviz_course.plugin.highlight"


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt&#58;alert(1))",
    "<a href=' javascript:alert(1)'>x</a>",
    "[x](data:text/html,<script>alert(1)</script>)",
    "<iframe src='http://elsewhere'></iframe>",
    "<svg/onload=alert(1)>",
    "<form action='http://elsewhere'><input type=text name=score></form>",
    "<style>body{display:none}</style>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "```mermaid\n<script>alert(1)</script>\n```",
    "![x](http://elsewhere/pixel.png)",
    "![x](attachment:gone.png)<script>alert(1)</script>",
    "<!-- --><script>alert(1)</script>",
    "<meta http-equiv=refresh content='0; url=http://elsewhere'>",
]


@pytest.mark.parametrize("source", HOSTILE)
def test_markdown_does_nothing(source: str) -> None:
    html = markdown({"cell": {}}, source)
    assert Page(html).acts == []
    assert not re.search(r"<(script|style|meta|iframe|form|svg|math)", html)
    assert 'type="text"' not in html


def test_an_answer_has_no_looks_or_names_of_the_page() -> None:
    """Elements of Markdown, and of each its own attributes: no class, id, name, style, no form."""
    source = (
        "<a class='full-credit modal-backdrop' id=toc name=top style='position:fixed' title=t "
        "href='https://x'>a</a> <input type=checkbox checked> <ol start=3 class=score><li>b</ol> "
        "<details open class=x><summary align=right>s</summary>d</details> "
        "[n](/formgrader/) [m](#top)\n\n# Heading\n\n"
        "- [x] done\n- [ ] open\n\n| h |\n|:-:|\n| v |\n"
    )
    html = markdown({"cell": {}}, source).removeprefix(plugin.BOX.split("{}")[0])
    assert not re.search(r"<[^>]*\b(class|id|name|style|align)\s*=", html), html
    assert "<input" not in html and "☑ done" in html and "☐ open" in html
    for kept in ('<ol start="3">', "<details open", "<h1>Heading</h1>", "<td>v</td>"):
        assert kept in html
    assert re.findall(r'href="([^"]*)"', html) == ["https://x"]


def test_signs_that_turn_the_direction_are_written_out() -> None:
    turned = "if user != 'admin\u202e \u2066# check\u2069':"
    for html in (plugin.highlight(turned), plugin.highlight(f"{turned}{' ' * 200}")):
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", html) and "⟨U+202E⟩" in html
    assert "⟨U+2066⟩" in markdown({"cell": {}}, turned)
    assert "שלום" in markdown({"cell": {}}, "שלום")


def test_markdown_of_the_lessons_is_shown() -> None:
    folded = "<details><summary>Hint</summary>\n\nSome `code`\n\n</details>"
    source = f"**Bold** $a<b$\n\n{folded}\n\n| a |\n|-|\n| 1 |"
    html = markdown({"cell": {}}, source)
    for part in (
        "<strong>Bold</strong>",
        "$a&lt;b$",
        "<details>",
        "<code>code</code>",
        "<td>1</td>",
    ):
        assert part in html
    attached = {"cell": {"attachments": {"a.png": {"image/png": PNG}}}}
    assert f'src="data:image/png;base64,{PNG}"' in markdown(attached, "![](attachment:a.png)")


@pytest.mark.parametrize("source", ["> " * 3000 + "x", "[" * 20_000, "*a " * 10_000, "x" * 200_000])
def test_markdown_that_cannot_be_rendered_is_shown_as_text(source: str) -> None:
    assert source.strip("> *[")[:1] in markdown({"cell": {}}, source)
