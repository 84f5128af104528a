"""nbgrader's side of safe grading: whichever button is pressed, this is what it does.

A course's ``nbgrader_config.py`` (`config_text`) names the classes here by their full names, so
that nbgrader cannot start without them, and imports this module, which puts `Autograde` in the
place of nbgrader's own:

* *generate* cuts the gaps of the exercises as the book does (`Gaps`),
* *autograde* reads submissions rebuilt from the release, never the submitted files, and takes the
  verdicts of the judge (`Judge`) where nbgrader would execute the notebook,
* *feedback* shows no hidden test and nothing that one said, and no set-up (`HideHidden`), and fits
  a phone (`Looks`),
* whatever a student wrote is shown as text and pictures, never as a page's own HTML (`markdown`,
  `harmless`). That also protects the instructor, who reads it in formgrader.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import bleach  # type: ignore[import-untyped]
import nbgrader.apps.api
import nbgrader.apps.autogradeapp
from jinja2 import pass_context
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader import converters, utils
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from tfviz_course import store, students
from tfviz_course.rebuild import picture
from tfviz_lessons.assignment import gap

ME = "tfviz_course.plugin"
STOCK = "nbgrader.preprocessors"

GENERATE = [
    *(f"{STOCK}.{name}" for name in ("IncludeHeaderFooter", "LockCells")),
    f"{ME}.Gaps",
    *(f"{STOCK}.{name}" for name in ("ClearOutput", "CheckCellMetadata", "ComputeChecksums")),
    *(f"{STOCK}.{name}" for name in ("SaveCells", "ClearHiddenTests", "ClearMarkScheme")),
    *(f"{STOCK}.{name}" for name in ("ComputeChecksums", "CheckCellMetadata")),
]
RECORD = [
    f"{ME}.Judge",
    *(f"{STOCK}.{name}" for name in ("SaveAutoGrades", "AssignLatePenalties", "CheckCellMetadata")),
]
FEEDBACK = [
    f"{ME}.HideHidden",
    f"{STOCK}.GetGrades",
    f"{ME}.Waiting",
    f"{ME}.Looks",
]

PASSED = "✓ further checks: passed"
FAILED = "✗ further checks: your answer fails on inputs that you have not seen"

NOT_TO_BE_RUN = (
    "**Do not run this notebook.** It holds what a student wrote, and here that would run with "
    "your rights. What it gives was made in the sandbox, and stands below."
)
NOT_YET = (
    "**Not graded yet.** Somebody will read the answer below. Until then its points are missing, "
    "here and in the sum."
)
TOO_MUCH = "… further outputs are left out: there are too many for one page"

TEXT, OUTPUTS = 20_000, 100  # characters of an output, outputs of a cell
COLOURED = 10_000  # characters of code or Markdown that are rendered; more is shown as it stands,
BLANK = re.compile(r"\s{100}")  # and so are long runs of blanks: their colouring takes their square
PAGE = 5_000_000  # characters that all outputs of a submission's answers may have


def config_text(course: Path, name: str) -> str:
    """The text of ``<course>/nbgrader_config.py`` for the course called `name`."""
    identifier = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
    if not identifier:
        raise ValueError(f"the course's name {name!r} has no letter or digit; give it one")

    def lines(things: Iterable[str]) -> str:
        return "[\n" + "".join(f'    "{thing}",\n' for thing in things) + "]"

    return f'''\
# nbgrader's settings for this course, written by tfviz-course. Add your own at the end.
from pathlib import Path

c = get_config()
c.CourseDirectory.course_id = "{identifier}"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# Safe grading: submissions are rebuilt and judged in a sandbox. Without these lines nbgrader would
# run what students wrote with your rights.
c.GenerateAssignment.preprocessors = {lines(GENERATE)}
c.ClearMarkScheme.enforce_metadata = False
c.Autograde.autograde_preprocessors = {lines(RECORD)}
c.GenerateFeedback.preprocessors = {lines(FEEDBACK)}
c.HTMLExporter.filters = {{
    "markdown2html": "{ME}.markdown",
    "highlight_code": "{ME}.highlight",
}}
# Files named by students: ids are checked, and nobody's work is replaced without a question.
c.ZipCollectApp.collector_plugin = "tfviz_course.collect.NamedFiles"
import {ME}  # noqa: E402, F401  (puts its Autograde in the place of nbgrader's)
'''


# --- generate ------------------------------------------------------------------------------------


class Gaps(NbGraderPreprocessor):
    """The exercise's own gap in place of nbgrader's stub, in every answer cell."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, cell_index: int
    ) -> tuple[NotebookNode, Any]:
        if utils.is_solution(cell):
            cell.source = gap(cell.source)
        elif "### BEGIN SOLUTION" in cell.source:
            raise ValueError(
                f"cell {cell_index} holds '### BEGIN SOLUTION' and is no answer cell: students "
                "would read it. Make it one (nbgrader: 'Autograded answer'), or take the mark out."
            )
        return cell, resources


# --- autograde -----------------------------------------------------------------------------------


class Autograde(converters.Autograde):
    """nbgrader's Autograde on rebuilt submissions and stored verdicts."""

    judged = Bool(False, help="The verdicts are already there").tag(config=True)
    accept_risk = Bool(False, help="Judge without a sandbox where there is none").tag(config=True)

    @property
    def _input_directory(self) -> str:
        if self._sanitizing:
            return store.REBUILT
        return super()._input_directory

    def start(self) -> None:
        if self.judged:  # by who started this, and is alone with the course
            super().start()
            return
        self._judge()
        with store.alone(Path(self.coursedir.root)):
            super().start()

    def _judge(self) -> None:
        """In a process of its own: a notebook server is no place to import torch, or to fork."""
        name, who = self.coursedir.assignment_id, self.coursedir.student_id
        folder = Path(self.coursedir.root) / self.coursedir.submitted_directory
        there, _ = students.below(folder, name)
        chosen = there if who == "*" else [students.check(who)]
        if not chosen or not {*chosen} <= {*there}:
            raise NbGraderException(f"No submission of {who!r} for {name!r} in {folder}")
        command = [sys.executable, "-m", "tfviz_course", "autograde", name, "--judge-only"]
        command += ["--course", self.coursedir.root]
        command += [f"--student={student}" for student in chosen]
        if self.accept_risk:
            command.append("--accept-risk")
        run = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
        if run.returncode:
            said = run.stderr.strip() or f"the judge ended with {run.returncode}"
            self.log.error(said)
            raise NbGraderException(said)

    def init_single_notebook_resources(self, notebook_filename: str) -> dict[str, Any]:
        resources = super().init_single_notebook_resources(notebook_filename)
        resources["tfviz"] = {"course": Path(self.coursedir.root)}
        return resources


class Judge(NbGraderPreprocessor):
    """Verdicts out of the store, written as the outputs that nbgrader derives scores from."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        names = resources["nbgrader"]
        if "tfviz" not in resources:
            raise RuntimeError(
                "nbgrader reads this submission itself, so it cannot be graded safely: "
                f"nbgrader_config.py must import {ME}, as tfviz-course wrote it"
            )
        course = resources["tfviz"]["course"]
        entry = store.read_entry(course, names["assignment"], names["student"])
        found = (entry or {}).get("notebooks", {}).get(names["notebook"])
        if found is None or found["answers"] != store.digest(nb):
            raise RuntimeError(
                f"the store has no verdict on this submission of {names['student']}: "
                f"run 'tfviz-course autograde {names['assignment']}'"
            )
        judged = found["judged"]
        for cell in nb.cells:
            _judged_cell(cell, judged)
        _fit([cell for cell in nb.cells if utils.is_solution(cell) and cell.cell_type == "code"])
        nb.cells[:0] = [
            new_markdown_cell(
                NOT_TO_BE_RUN, id="warning", metadata={"tfviz": {"role": "instructor"}}
            ),
            *_note(
                "instructor", "For the instructor; the feedback does not show it", judged["remarks"]
            ),
            *_note("remarks", "How your file was read", found["remarks"]),
        ]
        return nb, resources


def _judged_cell(cell: NotebookNode, judged: Mapping[str, Any]) -> None:
    """Put verdict and outputs into one cell; a graded test without a verdict is failed."""
    if utils.is_solution(cell):
        if cell.cell_type == "code":
            cell.outputs = harmless(judged["outputs"].get(cell.metadata.nbgrader.grade_id, []))
        elif cell.metadata.get("tfviz", {}).pop("empty", False):
            # nbgrader gives an answer that was not touched 0 points, which it sees by the checksum
            cell.metadata.nbgrader["checksum"] = utils.compute_checksum(cell)
    elif utils.is_grade(cell) and cell.cell_type == "code":
        missing = {"passed": False, "message": "this cell was not judged", "outputs": []}
        verdict = judged["verdicts"].get(cell.metadata.nbgrader.grade_id, missing)
        cell.outputs = _verdict_outputs(verdict)


def _fit(cells: Iterable[NotebookNode]) -> None:
    """Leave out what is too much for a page; of answers only, for points come from tests."""
    left = PAGE
    for cell in cells:
        kept = []
        for output in cell.outputs:
            left -= len(json.dumps(output))
            kept.append(output if left >= 0 else new_output("stream", name="stdout", text=TOO_MUCH))
            if left < 0:
                break
        cell.outputs = kept


def _verdict_outputs(verdict: Mapping[str, Any]) -> list[NotebookNode]:
    """Outputs from which nbgrader's `determine_grade` gets all points, or none."""
    kept = []
    for output in harmless(verdict["outputs"]):
        if output.output_type == "stream":
            output.name = "stdout"  # to nbgrader a word on stderr is a failure
        elif output.output_type == "execute_result":  # and the result a share of the points
            output = new_output("display_data", output.data, metadata=output.metadata)
        if output.output_type != "error" or not verdict["passed"]:
            kept.append(output)
    if not verdict["passed"] and not any(output.output_type == "error" for output in kept):
        message = str(verdict["message"])[:TEXT]
        kept.append(
            new_output("error", ename="CheckFailed", evalue=message, traceback=[f"✗ {message}"])
        )
    return kept


def _note(role: str, title: str, remarks: Sequence[str]) -> list[NotebookNode]:
    """A Markdown cell with the remarks; none when there are none."""
    if not remarks:
        return []
    lines = "\n".join(f"* {_plain(remark)}" for remark in remarks)
    metadata = {"tfviz": {"role": role}}
    return [new_markdown_cell(f"**{title}**\n\n{lines}", id=role, metadata=metadata)]


def _plain(text: str) -> str:
    """Text on one line in which Markdown sees no marks."""
    return re.sub(r"([\\`*_{}\[\]()#+!|$~<>&-])", r"\\\1", " ".join(text.split())[:500])


# --- feedback ------------------------------------------------------------------------------------


LEFT_OUT = {"instructor", "install", "setup"}
CSS = """
img, svg { max-width: 100%; height: auto; }
summary { display: list-item; cursor: pointer; }
pre { white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; }
#toc a[href^="#ex-"]::after { content: " " attr(href); }
div.panel.nbgrader_cell .panel-heading { height: auto; min-height: 37px; overflow: hidden; }
@media (max-width: 600px) {
  .container, .panel-body { padding-left: 6px; padding-right: 6px; }
  div.prompt { display: none; }
}
"""


class Looks(CSSHTMLHeaderPreprocessor):
    """nbconvert's style sheet, and what pages with pictures need on a phone."""

    enabled = Bool(True)

    def _generate_header(self, resources: Any) -> list[str]:
        return [*super()._generate_header(resources), CSS]


class HideHidden(NbGraderPreprocessor):
    """Takes out of the feedback what a student may not see, and all that is not text or picture.

    Of a hidden test one line remains, the same for every way to fail: neither its source, nor its
    message, nor an exception, which a student could have raised with the inputs in its text.
    Installation and set-up, the same for everybody, are left out too.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        nb.cells = [cell for cell in nb.cells if _role(cell) not in LEFT_OUT]
        for cell in nb.cells:
            shown = cell.source
            if not utils.is_solution(cell):  # a student may write what marks our tests
                shown = _without(_without(shown, "HIDDEN TESTS"), "MARK SCHEME")
            hidden = shown != cell.source or _role(cell) == "hidden"
            if cell.cell_type == "code":
                said = FAILED if utils.has_failed(cell) else PASSED
                line = [new_output("stream", name="stdout", text=said)]
                cell.outputs = line if hidden else harmless(cell.outputs)
            cell.source = shown
        return nb, resources


class Waiting(NbGraderPreprocessor):
    """Says of each answer that waits for a person that its 0 points are none yet."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        about = resources["nbgrader"]
        names = (about["notebook"], about["assignment"], about["student"])
        with Gradebook(about["db_url"]) as book:
            grades = book.find_submission_notebook(*names).grades
            waits = {grade.cell.name for grade in grades if grade.needs_manual_grade}
        cells: list[NotebookNode] = []
        for cell in nb.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in waits:
                cells.append(new_markdown_cell(NOT_YET, id=f"waits-{len(cells)}"))
            cells.append(cell)
        nb.cells = cells
        return nb, resources


def _without(source: str, what: str) -> str:
    """The source without the parts between BEGIN and END of `what`, as nbgrader reads these."""
    lines, inside = [], False
    for line in source.split("\n"):
        if f"BEGIN {what}" in line:
            inside = True
        elif f"END {what}" in line:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def _role(cell: NotebookNode) -> str:
    return str(cell.metadata.get("tfviz", {}).get("role", ""))


# --- showing what a student wrote ----------------------------------------------------------------


def harmless(outputs: Iterable[Mapping[str, Any]]) -> list[NotebookNode]:
    """The outputs that cannot act in a page: text, errors and PNG pictures, each bounded."""
    kept = []
    for output in list(outputs)[:OUTPUTS]:
        kind = output.get("output_type")
        if kind == "stream":
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            kept.append(new_output(kind, name=name, text=_text(output.get("text"))))
        elif kind == "error":
            lines = output.get("traceback")
            lines = [_text(line) for line in lines[:100]] if isinstance(lines, list) else []
            said = {part: _text(output.get(part)) for part in ("ename", "evalue")}
            kept.append(new_output(kind, traceback=lines, **said))
        elif kind in ("display_data", "execute_result"):
            found = output.get("data")
            data = _data(found) if isinstance(found, Mapping) else {}
            if data:
                kept.append(new_output(kind, data))
    return kept


def _data(found: Mapping[str, Any]) -> dict[str, str]:
    data = {}
    if "text/plain" in found:
        data["text/plain"] = _text(found["text/plain"])
    if drawn := picture(found.get("image/png")):
        data["image/png"] = drawn
    return data


def _text(value: object, longest: int = TEXT) -> str:
    if isinstance(value, list):  # as notebooks write lines
        value = "".join(part for part in value if isinstance(part, str))
    text = value if isinstance(value, str) else ""
    return text if len(text) <= longest else text[:longest] + " …"


TAGS = frozenset(
    re.findall(
        r"\w+",
        """
    a abbr b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img input kbd li
    mark ol p pre s section small span strong sub summary sup table tbody td tfoot th thead tr u ul
""",
    )
)
LINK = re.compile(r"(https?://|mailto:|#)")
IMAGE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+\Z")


def _allowed(tag: str, name: str, value: str) -> bool:
    if name == "href":
        return tag == "a" and bool(LINK.match(value))
    if name == "src":
        return tag == "img" and bool(IMAGE.match(value))
    if tag == "input":  # the boxes of a task list
        return (name, value) in {("type", "checkbox"), ("disabled", ""), ("checked", "")}
    return name in {"class", "alt", "title", "align", "open", "start"}


def highlight(source: str, language: str | None = None, metadata: Any = None) -> str:
    """Code as coloured HTML, a long one without colours; a filter for the templates of nbgrader."""
    if len(source) > COLOURED or BLANK.search(source):
        return f'<div class="highlight"><pre>{escape(source)}</pre></div>'
    return str(Highlight2HTML()(source, language, metadata))


@pass_context
def markdown(context: Any, source: str) -> str:
    """Markdown as HTML without anything that acts; a filter for the templates of nbgrader.

    Text that cannot be rendered is shown as it stands: one odd answer spoils no page.
    """
    cell = context.get("cell") or {}
    try:
        if len(source) > COLOURED or BLANK.search(source):
            raise ValueError("too long")
        renderer = IPythonRenderer(escape=False, attachments=cell.get("attachments", {}))
        html = MarkdownWithMath(renderer=renderer).render(source)
        return str(
            bleach.clean(
                html,
                tags=TAGS,
                attributes=_allowed,
                protocols={"http", "https", "mailto", "data"},
                strip_comments=True,
            )
        )
    except Exception:  # whatever a student wrote: missing attachments, deep nesting, length
        return f"<pre>{escape(source)}</pre>"


LISTED = NbGraderAPI.get_submitted_students
ONE, ALL = NbGraderAPI.get_submission, NbGraderAPI.get_submissions


def listed(api: NbGraderAPI, assignment_id: str) -> set[str]:
    """Who is in submitted/, for formgrader; a name that can be no id never gets into its pages."""
    return {name for name in LISTED(api, assignment_id) if students.is_id(name)}


def _named(submission: dict[str, Any]) -> dict[str, Any]:
    """Of a student whose name the gradebook lacks the page shows the id, not "None, None"."""
    if submission and not (submission["last_name"] or submission["first_name"]):
        submission |= {"last_name": submission["student"], "first_name": "no name"}
    return submission


def one_submission(api: NbGraderAPI, *about: Any, **more: Any) -> Any:
    """What formgrader shows of one submission."""
    return _named(ONE(api, *about, **more))


def all_submissions(api: NbGraderAPI, assignment_id: str) -> Any:
    """What formgrader shows of all submissions."""
    return [_named(one) for one in ALL(api, assignment_id)]


def install() -> None:
    """Put our classes in the place of nbgrader's, where formgrader and commands look them up."""
    for module in (nbgrader.apps.api, nbgrader.apps.autogradeapp):
        module.Autograde = Autograde
    NbGraderAPI.get_submitted_students = listed
    NbGraderAPI.get_submission, NbGraderAPI.get_submissions = one_submission, all_submissions


install()
