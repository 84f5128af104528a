"""Every text on every page is text: on nbgrader's pages, in feedback and in our report.

A class that nobody would have, in nbgrader's own gradebook: in each place where a text comes from
outside stand `TEXTS`. Where they were read as HTML, JavaScript or a template, they would set
`owned` or leave an element of the class `evil`.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import nbformat
import pytest
from course import classroom
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tfviz_course import assignment, page, served
from tfviz_course.report import GRADED, Change, Mark, Results, Student

ACT = "window.owned=1"
IMAGE = f"<img class=evil src=x onerror={ACT}>"
TEXTS = (
    f"<script class=evil>{ACT}</script>",
    IMAGE,
    f'"><svg class=evil onload="{ACT}">',
    f"'><input class=evil autofocus onfocus={ACT}>",
    f"</script><script class=evil>{ACT}</script>",
    f"</title></textarea></style></pre>{IMAGE}",
    f"--> {IMAGE} <!--",
    f"]]> {IMAGE} <![CDATA[",
    f'";{ACT};//',
    f"';{ACT};//",
    f'"+({ACT})+"',
    f"\\\";{ACT};//",
    "\\",
    f"`${{{ACT}}}`",
    f"${{{ACT}}}",
    f"javascript:{ACT}",
    f" onmouseover={ACT} x=",
    f'" onclick="{ACT}" autofocus onfocus="{ACT}',
    "{{ 7*7 }} {% raw %} {# x #}",
    "<%= 7*7 %> <% window.owned=1 %>",
    "&lt;b class=evil&gt; &#60;b&#62; &amp;amp; &nbsp;",
    f"&#60;img class=evil src=x onerror={ACT}&#62;",
    "%3Cb%20class%3Devil%3E",
    "<iframe class=evil srcdoc='<script>parent.owned=1</script>'></iframe>",
    "<style class=evil>* { display: none }</style>",
    "<base class=evil href=//elsewhere.example/>",
    "<meta class=evil http-equiv=refresh content='0; url=//elsewhere.example/'>",
    f"<a class=evil href=javascript:{ACT}>x</a>",
    "<form class=evil action=/formgrader><button>x</button></form>",
    f"<math class=evil><mtext><table><mglyph><style>{IMAGE}",
    f"<b class=evil onpointerenter={ACT}>x</b>",
    "\u202eabc\u2066 \u200f",
    "\ufffe\uffff\u2028",
    "x" * 300,
    "O'Brien & Søns \"李雷\" 🙂",
    "__proto__",
    "None",
)  # fmt: skip
ALL = " ¦ ".join(TEXTS)
HW, BOOK, CELLS = "hw1", "attention", "cells"  # an assignment and two of its notebooks
FIRST_ID = f"s {IMAGE} & '\""  # of the student whose work is looked at


def name(text: str) -> str:
    """The text as far as it can be the name of a file."""
    return text.replace("/", "⁄")[:100].strip() or "x"


NAMED = [name(text) for text in (IMAGE, TEXTS[8], TEXTS[11], TEXTS[21])]  # notebooks with a file


def work(texts: str, test: str = "test") -> nbformat.NotebookNode:
    """A graded submission in which everything that is said is hostile, metadata too; `test` is the
    name of its cell of tests."""
    about: dict[str, Any] = {"schema_version": 3, "task": False, "locked": False}
    cells = [
        new_markdown_cell(texts, metadata={"nbgrader": about | {
            "grade_id": "words", "grade": True, "solution": True, "points": 2}}),
        new_code_cell(texts, metadata={"tags": [texts], "nbgrader": about | {
            "grade_id": "code", "grade": False, "solution": True}}, outputs=[
                new_output("stream", text=texts),
                new_output("error", ename=texts, evalue=texts, traceback=[texts])]),
        new_code_cell("1", metadata={"nbgrader": about | {
            "grade_id": test, "grade": True, "solution": False, "points": 1}}),
    ]  # fmt: skip
    spoken = {"name": texts, "display_name": texts, "language": texts}
    return new_notebook(
        cells=cells,
        metadata={
            "title": texts,
            "kernelspec": spoken,
            "language_info": {"name": texts, "pygments_lexer": texts, "file_extension": texts},
            "authors": [{"name": texts}],
        },
    )


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course whose folder, students, assignments, notebooks and answers bear `TEXTS`."""
    folder = tmp_path_factory.mktemp("served") / name(f"c {TEXTS[8]} <b class=evil>")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assignment.create_course(folder, "Served")
        with assignment.api(folder).gradebook as book:
            fill(book)
    for student in students():
        for kind in ("submitted", "autograded"):
            (folder / kind / student / HW).mkdir(parents=True)
        nbformat.write(work(ALL if student == FIRST_ID else "x"), paper(folder, student))
    for notebook in NAMED:
        nbformat.write(work(ALL), paper(folder, FIRST_ID, notebook))
    nbformat.write(work(ALL, ALL), paper(folder, FIRST_ID, CELLS))
    for text in (HW, *TEXTS):
        (folder / "source" / name(text)).mkdir()
    return folder


def paper(folder: Path, student: str, notebook: str = BOOK) -> Path:
    return folder / "autograded" / student / HW / f"{notebook}.ipynb"


def students() -> dict[str, str]:
    """The text that is the name of each student, by id."""
    odd = {FIRST_ID: ALL, "constructor": "toString", "__proto__": "valueOf"}
    return odd | {f"s{n} {name(text)}": text for n, text in enumerate(TEXTS)}


def fill(book: Any) -> None:
    """All at once, without a commit for each row."""
    from nbgrader import api

    for text in TEXTS:
        book.db.add(api.Assignment(name=name(text), course_id=book.course_id))
    work_ = api.Assignment(name=HW, course_id=book.course_id)
    sheets = [api.Notebook(name=one, assignment=work_) for one in (BOOK, CELLS, *map(name, TEXTS))]
    cells: dict[str, list[Any]] = {}
    for sheet in sheets:
        test = ALL if sheet.name == CELLS else "test"
        cells[sheet.name] = [
            api.GradeCell(name="words", notebook=sheet, max_score=2, cell_type="markdown"),
            api.GradeCell(name=test, notebook=sheet, max_score=1, cell_type="code"),
            api.SolutionCell(name="words", notebook=sheet),
            api.SolutionCell(name="code", notebook=sheet),
        ]
    for student, text in students().items():
        who = api.Student(id=student, first_name=text, last_name=text, email=text)
        handed = api.SubmittedAssignment(assignment=work_, student=who)
        for sheet in sheets if student == FIRST_ID else sheets[:1]:
            copy = api.SubmittedNotebook(assignment=handed, notebook=sheet)
            words, test, *answers = cells[sheet.name]
            made = [api.Grade(cell=words, notebook=copy, needs_manual_grade=True)]
            made += [api.Grade(cell=test, notebook=copy, auto_score=0)]
            made += [api.Comment(cell=cell, notebook=copy, manual_comment=ALL) for cell in answers]
            book.db.add_all([copy, *made])
    book.db.commit()


# --- nbgrader's pages, in a browser --------------------------------------------------------------


def listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def server(course: Path) -> Iterator[str]:
    """The address of a Jupyter server that was started in the course."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"]
    command += ["--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token="]
    command += [f"--ServerApp.root_dir={course.parent}"]
    log = (course.parent / "log").open("w")
    with (
        log,
        subprocess.Popen(
            command, cwd=course, env=classroom.environment(), stdout=log, stderr=log
        ) as process,
    ):
        while not listens(port):
            assert process.poll() is None, "the Jupyter server does not start"
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
        process.terminate()


STATE = """
() => ({
    owned: window.owned,
    evil: [...document.querySelectorAll('.evil, .EVIL')].map((one) => one.outerHTML),
    text: document.body.textContent,
    title: document.title,
    inputs: [...document.querySelectorAll('input, textarea')].map((one) => one.value),
    visible: getComputedStyle(document.body).display,
})
"""


def harmless(view: Any, *texts: str) -> str:
    """Nothing in the page has acted, and each of the texts can be read in it; gives its text."""
    found = view.evaluate(STATE)
    assert (found["owned"], found["evil"], found["visible"]) == (None, [], "block")
    shown = [found["text"], found["title"], *found["inputs"]]
    assert [text for text in texts if not any(text in part for part in shown)] == []
    return str(found["text"])


@pytest.fixture(scope="module")
def view(browser: Any) -> Iterator[Any]:
    """One page for all; what goes wrong in its scripts fails the test."""
    made = browser.new_page()
    wrong: list[str] = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("dialog", lambda dialog: wrong.append(dialog.message))
    made.on("frameattached", lambda frame: wrong.append(frame.url))
    yield made
    made.close()
    assert [said for said in wrong if "MathJax" not in said] == []  # which no other host gives


LISTS = {
    "manage_assignments": [name(text) for text in TEXTS],
    "manage_students": [*students(), *TEXTS],
    f"manage_students/{quote(FIRST_ID)}": [FIRST_ID, *map(name, TEXTS)],
    f"manage_students/{quote(FIRST_ID)}/{HW}": [FIRST_ID, *map(name, TEXTS)],
    "gradebook": [name(text) for text in TEXTS],
    f"gradebook/{HW}": [name(text) for text in TEXTS],
    f"gradebook/{HW}/{BOOK}": list(TEXTS),
    f"manage_submissions/{HW}": [*students(), *TEXTS],
}


@pytest.mark.parametrize("path", LISTS)
def test_lists_of_formgrader_show_texts(path: str, server: str, view: Any) -> None:
    view.goto(f"{server}/formgrader/{path}", wait_until="load")
    view.wait_for_function("models && models.loaded")
    harmless(view, *LISTS[path])
    view.locator("input[type=search]").fill("owned")  # the table looks into all its texts
    harmless(view)


@pytest.mark.parametrize("notebook", [BOOK, *NAMED])
def test_a_submission_in_formgrader_shows_texts(
    notebook: str, course: Path, server: str, view: Any
) -> None:
    with assignment.api(course).gradebook as book:
        sheet = book.find_submission_notebook(notebook, HW, FIRST_ID).id
    view.goto(f"{server}/formgrader/submissions/{sheet}/", wait_until="load")
    view.wait_for_function("formgrader.grades.loaded && formgrader.comments.loaded")
    shown = harmless(view, f"{ALL}, {ALL}", notebook)
    assert view.evaluate("[notebook_id, assignment_id, submission_id]") == [notebook, HW, sheet]
    if notebook == BOOK:
        assert view.locator("textarea").first.input_value() == ALL
        assert shown.count("{{ 7*7 }}") >= 5  # in names, answers and outputs
    view.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    view.locator("span.name-hidden").click()
    harmless(view)


def test_messages_of_formgrader_show_texts(server: str, view: Any) -> None:
    """What its scripts say when something fails, or is to be changed."""
    view.route("**/autograde", lambda route: route.fulfill(status=500))
    view.goto(f"{server}/formgrader/manage_submissions/{HW}", wait_until="load")
    view.wait_for_function("models && models.loaded")
    row = view.locator("tr", has=view.get_by_text(FIRST_ID, exact=True))
    row.locator(".autograde a").click()
    view.locator(".modal-body").wait_for()
    said = f"There was an error autograding '{HW}' for student '{FIRST_ID}'."
    assert view.locator(".modal-body").text_content() == said
    harmless(view)
    view.goto(f"{server}/formgrader/manage_students", wait_until="load")
    view.wait_for_function("models && models.loaded")
    row = view.locator("tr", has=view.get_by_text(FIRST_ID, exact=True))
    row.locator(".edit a").click()
    view.locator(".modal-body").wait_for()
    harmless(view, f"Editing {FIRST_ID}", ALL)


@pytest.mark.parametrize(
    "path",
    [
        "nbgrader_version?version={}",
        "formgrader/api/students",
        f"formgrader/api/submissions/{HW}",
        "formgrader/gradebook/{}",
        "formgrader/gradebook/{}/{}",
        "formgrader/submissions/{}",
    ],
)
def test_nothing_in_an_address_acts(path: str, server: str, view: Any) -> None:
    """Somebody can be lured to any address of the server, data included."""
    text = quote(f"{IMAGE} {TEXTS[4]}", safe="")
    view.goto(f"{server}/{path.format(text, text)}", wait_until="load")
    harmless(view, *([IMAGE] if "submissions/{}" not in path else []))


# --- the same, without a browser -----------------------------------------------------------------


class Reader(HTMLParser):
    """A page's elements of the class `evil`, its scripts and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.evil: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.script = tag == "script"
        self.evil += [tag for _, value in attributes if value == "evil"]
        self.evil += [tag for key, _ in attributes if key in ("onfocus", "onmouseover", "onload")]

    def handle_endtag(self, tag: str) -> None:
        self.script = False

    def handle_data(self, data: str) -> None:
        if self.script:
            self.scripts.append(data)
        else:
            self.text += data


def values(page: Reader) -> dict[str, Any]:
    """What the page's own scripts set variables to."""
    found = re.findall(r'^ *var (\w+) = (".*");$', "\n".join(page.scripts), re.M)
    return {name: json.loads(value) for name, value in found}


PAGES = [path.name for path in Path(served.handlers.template_path).glob("*.tpl")]


@pytest.mark.parametrize("template", [name for name in PAGES if name != "formgrade_404.tpl"])
def test_every_page_of_formgrader_escapes_every_value(template: str) -> None:
    """Whatever a handler gives to a template."""
    source = (Path(served.handlers.template_path) / template).read_text()
    names = {*re.findall(r"\{\{ (\w+) \}\}", source)} | {"base_url", "current_config"}
    for text in TEXTS:
        page = Reader(served.TEMPLATES.get_template(template).render(dict.fromkeys(names, text)))
        assert page.evil == []
        assert all(value == text for value in values(page).values())
        assert values(page).keys() == {"base_url", *re.findall(r'var (\w+) = "', source)}
        for name in names & {"assignment_id", "student_id", "notebook_id", "current_config"}:
            assert f"{{{{ {name} }}}}" not in source or text in page.text


def test_the_head_of_a_submission_escapes_every_value() -> None:
    """Each text by itself, in each place that stands in the head or in the bar of the page."""
    exporter = served.Exporter(
        template_name="formgrade", extra_template_basedirs=[served.handlers.template_path]
    )
    macros = exporter.environment.get_template("formgrade_macros.html.j2").module
    keys = ("notebook_id", "submission_id", "assignment_id", "base_url", "notebook_path")
    for text in TEXTS:
        about = dict.fromkeys([*keys, "last_name", "first_name", "student"], text)
        resources = about | {"index": 0, "total": 1}
        page = Reader(f"{macros.header(resources)}<body>{macros.nav(resources)}")
        assert page.evil == []
        assert [values(page)[key] for key in keys[:3]] == [text] * 3
        assert f"{text}, {text}" in page.text


def test_no_template_and_no_script_of_nbgraders_has_another_door() -> None:
    """What this mends is all that there is; a new version of nbgrader may bring more."""
    templates = Path(served.handlers.template_path)
    for path in (*templates.rglob("*.tpl"), *templates.rglob("*.j2")):
        mended = served.QUOTED.sub("", path.read_text())
        quoted = re.findall(r"<script[^>]*>(?:(?!</script>).)*['\"]\{\{", mended, re.S)
        assert not [one for one in quoted if 'src="{{' not in one], path
        assert not re.search(r"\|\s*safe\b|autoescape", mended), path
    shared = [path for path in templates.rglob("*.*") if "js/utils.js" in path.read_text()]
    assert len(shared) == 2 and all(served.SHARED.search(path.read_text()) for path in shared)
    html = (
        r"(?:\.(?:html|prepend|before|after|replaceWith|wrap)|parseHTML|_\.template)\((?!\))(.*?)\)"
    )
    for path in (Path(served.handlers.static_path) / "js").glob("*.js"):
        source = path.read_text()
        assert {*re.findall(html, source)} <= {'"&times;"'}, path
        assert {*re.findall(r"innerHTML = (.*);", source)} <= {
            '"Show All Names"', '"Hide All Names"'}, path  # fmt: skip
        appended = {*re.findall(r"\.append\((?!\$|_\.)(.*?)\)", source)}
        elements = {
            "body", "content", "dialog", "duedate", "email", "err_panel", "first_name", "footer",
            "header", "help_list", "id", "last_name", "log_panel", "modal", "name", "row",
            "table.append(tablebody", "tablebody", "timezone",
        }  # fmt: skip
        assert appended - elements <= {'name + " (file missing'}, path


def test_files_of_a_submission_are_no_pages(course: Path, server: str) -> None:
    """They may act in themselves, but not as a page of this server."""
    with assignment.api(course).gradebook as book:
        sheet = book.find_submission_notebook(BOOK, HW, FIRST_ID).id
    paper(course, FIRST_ID).with_name("own.html").write_text("<script>alert(1)</script>")
    with urlopen(f"{server}/formgrader/submissions/{sheet}/own.html") as answer:
        assert "sandbox" in answer.headers["Content-Security-Policy"].split("; ")[-1]


# --- feedback and report -------------------------------------------------------------------------


def test_feedback_shows_texts(course: Path, view: Any) -> None:
    """Comments of the instructor, answers, outputs, names of cells and notebooks, metadata."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = assignment.api(course).generate_feedback(HW, FIRST_ID)
    assert result["success"], result
    for notebook in (BOOK, CELLS, *NAMED):
        file = course / "feedback" / FIRST_ID / HW / f"{notebook}.html"
        view.goto(file.as_uri(), wait_until="load")
        view.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        shown = harmless(view, notebook)
        assert shown.count("{{ 7*7 }}") >= 3  # in comments, answers and outputs


def test_the_report_shows_texts(view: Any) -> None:
    marks = tuple(Mark(text, "visible", 1.0, 0.0, message=text) for text in TEXTS)
    people = tuple(
        Student(name(text), text, GRADED, 95, 0.5, marks, remarks=(text,)) for text in TEXTS
    )
    changes = tuple(Change(text, text, text, 0.0, 1.0, text) for text in TEXTS[:15])
    every = dict.fromkeys(TEXTS, 1.0)
    found = Results(ALL, ALL, every, people, strange=TEXTS, changes=changes)
    view.set_content(page.html(found), wait_until="load")
    printable = [text for text in TEXTS if text.isprintable() and len(text) < 100]
    assert len(printable) > 30
    harmless(view, ALL, *(" ".join(text.split()) for text in printable))
