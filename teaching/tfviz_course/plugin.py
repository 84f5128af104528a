"""nbgrader's side of safe grading: whichever button is pressed, this is what it does.

A course's ``nbgrader_config.py`` (`config_text`) imports this module, which puts `Autograde` in the
place of nbgrader's own, and lets it `configure` nbgrader. Whatever a student wrote is shown as text
and pictures, never as a page's own HTML (`markdown`, and of outputs `tfviz_course.line.clean`), and
so is any other text from outside (`tfviz_course.served`).
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import bleach  # type: ignore[import-untyped]
import nbgrader.apps.api
import nbgrader.apps.autogradeapp
from jinja2 import pass_context
from jinja2.filters import do_float, do_round
from markupsafe import Markup
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader import converters, utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters.base import NbGraderException
from nbgrader.plugins import CsvExportPlugin, LateSubmissionPlugin
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool

from tfviz._files import written_whole
from tfviz_course import served, store, students
from tfviz_course.settings import read_course, read_extensions
from tfviz_course.sheets import harmless
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
    f"{STOCK}.AssignLatePenalties",  # again: points may have been given by hand since
    *(f"{STOCK}.GetGrades", f"{ME}.Waits", f"{ME}.Looks"),
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
COLOURED = 10_000  # characters of code or Markdown that are rendered; more is shown as it stands,
BLANK = re.compile(r"\s{100}")  # and so are long runs of blanks: their colouring takes their square


def config_text(identifier: str) -> str:
    """The text of ``<course>/nbgrader_config.py`` for the course that nbgrader calls so."""
    return f'''\
# nbgrader's settings for this course, written by tfviz-course. Add your own at the end.
from pathlib import Path

import {ME}

c = get_config()
c.CourseDirectory.course_id = "{identifier}"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# Safe grading: submissions are rebuilt and judged in a sandbox. Without this line nbgrader would
# run what students wrote with your rights.
{ME}.configure(c)
'''


def configure(c: Any) -> None:
    """Set in nbgrader's configuration which of the classes here do what."""
    c.GenerateAssignment.preprocessors = GENERATE
    c.ClearMarkScheme.enforce_metadata = False
    c.Autograde.autograde_preprocessors = RECORD
    c.GenerateFeedback.preprocessors = FEEDBACK
    c.GenerateFeedback.exporter_class = f"{served.__name__}.Exporter"
    c.AssignLatePenalties.plugin_class = f"{ME}.LateDays"
    filters = {"markdown2html": f"{ME}.markdown", "highlight_code": f"{ME}.highlight"}
    filters |= {"float": f"{ME}.real", "round": f"{ME}.rounded"}
    c.HTMLExporter.filters = filters
    c.ExportApp.plugin_class = f"{ME}.Grades"
    # files named by students: ids are checked, and nobody's work is replaced without a question
    c.ZipCollectApp.extractor_plugin = "tfviz_course.collect.Uploads"
    c.ZipCollectApp.collector_plugin = "tfviz_course.collect.NamedFiles"


class Grades(CsvExportPlugin):
    """nbgrader's own table of all grades, for `nbgrader export`, as a CSV file: commas and quotes
    in names are quoted, and no text is a formula."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the rows into the file `to`; nbgrader's own puts the texts between commas."""
        wanted: Any = {str(one) for one in self.student}, {str(one) for one in self.assignment}
        file = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", file)
        text = io.StringIO()
        sheet = csv.writer(text, lineterminator="\n")
        sheet.writerow(GRADES)
        for assignment in gradebook.assignments:
            for student in gradebook.students:
                of = student.id, assignment.name
                if all(one in some or not some for one, some in zip(of, wanted, strict=True)):
                    sheet.writerow(_grades(gradebook, assignment, student))
        with written_whole(file) as out:
            out.write(text.getvalue().encode())


# the columns, which other people's programs read
GRADES = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)


def _grades(gradebook: Gradebook, assignment: Any, student: Any) -> list[str]:
    """A row of these columns; who did not hand in has 0."""
    time, score, penalty = "", 0.0, 0.0
    with contextlib.suppress(MissingEntry):
        found = gradebook.find_submission(assignment.name, student.id)
        time, score, penalty = found.timestamp, found.score, found.late_submission_penalty or 0.0
    about = student.id, student.last_name, student.first_name, student.email
    texts = (assignment.name, assignment.duedate, time, *about)
    numbers = score, penalty, max(0.0, score - penalty), assignment.max_score
    return [*(harmless(str(one or "")) for one in texts), *map(str, numbers)]


class Gaps(NbGraderPreprocessor):
    """The exercise's own gap in place of nbgrader's stub, in every answer cell."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, cell_index: int
    ) -> tuple[NotebookNode, Any]:
        if utils.is_solution(cell):
            cell.source = gap(cell.source)
        elif "### BEGIN SOLUTION" in cell.source:
            said = f"cell {cell_index} holds '### BEGIN SOLUTION' but is not an answer cell"
            how = "Make it one (nbgrader: 'Autograded answer'), or remove the mark."
            raise ValueError(f"{said}: students would read it. {how}")
        return cell, resources


class Autograde(converters.Autograde):
    """nbgrader's Autograde on rebuilt submissions and stored verdicts."""

    judged = Bool(False, help="The verdicts are already there").tag(config=True)

    @property
    def _input_directory(self) -> str:
        return store.REBUILT if self._sanitizing else super()._input_directory

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
        command = [sys.executable, "-m", "tfviz_course", "autograde", name, "--judge-only"]
        command += ["--course", self.coursedir.root, *([] if who == "*" else [f"--student={who}"])]
        pipes: Any = {"stdin": subprocess.DEVNULL, "capture_output": True}
        run = subprocess.run(command, **pipes, text=True, errors="replace")
        if run.returncode:
            said = run.stderr.strip() or f"the judge ended with {run.returncode}"
            self.log.error(said)
            raise NbGraderException(said)

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """As nbgrader's; then the submission is in the gradebook, and can have its extension."""
        super().init_assignment(assignment_id, student_id)
        time = read_extensions(self.coursedir.root).get((assignment_id, student_id))
        if time is not None:
            with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as book:
                minutes = time.total_seconds() / 60
                book.grant_extension(assignment_id, student_id, minutes=minutes)

    def init_single_notebook_resources(self, notebook_filename: str) -> dict[str, Any]:
        resources = super().init_single_notebook_resources(notebook_filename)
        return resources | {"tfviz": {"course": Path(self.coursedir.root)}}


class Judge(NbGraderPreprocessor):
    """Verdicts out of the store, written as the outputs that nbgrader derives scores from."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        names = resources["nbgrader"]
        if "tfviz" not in resources:
            said = "nbgrader reads this submission itself, so it cannot be graded safely"
            how = f"nbgrader_config.py must import {ME}, as tfviz-course wrote it"
            raise RuntimeError(f"{said}: {how}")
        course = resources["tfviz"]["course"]
        entry = store.read_entry(course, names["assignment"], names["student"])
        found = (entry or {}).get("notebooks", {}).get(names["notebook"])
        if found is None or found["answers"] != store.digest(nb):
            how = f"run 'tfviz-course autograde {names['assignment']} --again'"
            said = f"the store has no verdict on this submission of {names['student']}"
            raise RuntimeError(f"{said}: {how}")
        judged = found["judged"]
        for cell in nb.cells:
            _judged_cell(cell, judged)
        notes = [("instructor", NOT_TO_BE_RUN)]
        for role, title, remarks in (
            ("instructor", "For the instructor; the feedback does not show it", judged["remarks"]),
            ("remarks", "How your file was read", found["remarks"]),
        ):
            if remarks:
                lines = "\n".join(f"* {_plain(remark)}" for remark in remarks)
                notes.append((role, f"**{title}**\n\n{lines}"))
        nb.cells[:0] = [
            new_markdown_cell(text, id=f"note-{number}", metadata={"tfviz": {"role": role}})
            for number, (role, text) in enumerate(notes)
        ]
        return nb, resources


def _judged_cell(cell: NotebookNode, judged: Mapping[str, Any]) -> None:
    """Put verdict and outputs into one cell; a graded test without a verdict is failed."""
    if utils.is_solution(cell):
        if cell.cell_type == "code":
            cell.outputs = from_dict(judged["outputs"].get(cell.metadata.nbgrader.grade_id, []))
        elif cell.metadata.get("tfviz", {}).pop("empty", False):
            # nbgrader gives an answer that was not touched 0 points, which it sees by the checksum
            cell.metadata.nbgrader["checksum"] = utils.compute_checksum(cell)
    elif utils.is_grade(cell) and cell.cell_type == "code":
        missing = {"passed": False, "message": "this cell was not judged", "printed": ""}
        verdict = judged["verdicts"].get(cell.metadata.nbgrader.grade_id, missing)
        cell.outputs = [new_output("stream", text=verdict["printed"])] if verdict["printed"] else []
        if not verdict["passed"]:  # nbgrader gives all points, or for an error none
            said = verdict["message"]
            error = new_output("error", ename="CheckFailed", evalue=said, traceback=[f"✗ {said}"])
            cell.outputs.append(error)


class LateDays(LateSubmissionPlugin):
    """The penalty by the table `[late]` of course.toml; without one, nbgrader's penalty_method."""

    def late_submission_penalty(
        self, student_id: str, score: float, total_seconds_late: float
    ) -> float | None:
        rule = read_course(self.config.CourseDirectory.root).late
        if rule is None:
            return super().late_submission_penalty(student_id, score, total_seconds_late)
        if self.penalty_method != "none":
            said = f"penalty_method = {self.penalty_method!r} stands in nbgrader_config.py"
            raise ValueError(f"{said}, and [late] in course.toml: remove one of them")
        book, name = self.parent.gradebook, self.parent.assignment_id
        this = book.find_assignment(name)
        earlier = [
            submission.total_seconds_late
            for submission in book.student_submissions(student_id)
            if (due := submission.assignment.duedate) is not None
            and (due, submission.assignment.name) < (this.duedate, name)
        ]
        return round(score * rule.share(total_seconds_late, earlier), 6)


def _plain(text: str) -> str:
    """Text on one line in which Markdown sees no marks."""
    return re.sub(r"([\\`*_{}\[\]()#+!|$~<>&-])", r"\\\1", " ".join(text.split())[:500])


LEFT_OUT = {"instructor", "install", "setup"}
# what nbgrader marks, up to the end of the cell where the end of it is not marked
OURS = re.compile(r"^[^\n]*BEGIN (HIDDEN TESTS|MARK SCHEME).*?(END \1[^\n]*\n?|\Z)", re.M | re.S)
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
    """Takes out of the feedback what a student may not see; says which answers wait for a person.

    Of a hidden test one line remains, the same for every way to fail: neither its source, nor its
    message, nor an exception, which a student could have raised with the inputs in its text.
    Installation and set-up, the same for everybody, are left out too.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        about = resources["nbgrader"]
        names = (about["notebook"], about["assignment"], about["student"])
        with Gradebook(about["db_url"]) as book:
            grades = book.find_submission_notebook(*names).grades
            waits = {grade.cell.name for grade in grades if grade.needs_manual_grade}
        cells: list[NotebookNode] = []
        for cell in [cell for cell in nb.cells if _role(cell) not in LEFT_OUT]:
            if cell.metadata.get("nbgrader", {}).get("grade_id") in waits:
                cells.append(new_markdown_cell(NOT_YET, id=f"waits-{len(cells)}"))
            cells.append(cell)
            shown = cell.source
            if not utils.is_solution(cell):  # a student may write what marks our tests
                shown = OURS.sub("", shown).rstrip("\n")
            if cell.cell_type == "code" and (shown != cell.source or _role(cell) == "hidden"):
                said = FAILED if utils.has_failed(cell) else PASSED
                cell.outputs = [new_output("stream", name="stdout", text=said)]
            cell.source = shown
        nb.cells = cells
        return nb, resources


class Waits(NbGraderPreprocessor):
    """In the place of points that an answer does not have yet the feedback says so."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        waits = False
        for cell in nb.cells:
            if waits and "nbgrader" in cell.metadata:
                cell.metadata.nbgrader["score"] = "not graded yet"
            waits = cell.source == NOT_YET and cell.id.startswith("waits-")
        return nb, resources


def real(value: Any, default: float = 0.0) -> Any:
    """Jinja's filter `float`, which nbgrader's templates use for points; words stay as they are."""
    return value if isinstance(value, str) else do_float(value, default)


def rounded(value: Any, precision: int = 0) -> Any:
    """Jinja's filter `round`, through which words pass."""
    return value if isinstance(value, str) else do_round(value, precision)


def _role(cell: NotebookNode) -> str:
    return str(cell.metadata.get("tfviz", {}).get("role", ""))


# --- showing what a student wrote ----------------------------------------------------------------

# A student's page has the elements that Markdown makes, and of each only attributes that say what
# it is. Names and looks (class, id, name, style) are those of the page around it: by "full-credit"
# formgrader knows its own buttons, by "modal-backdrop" its style sheet covers the window.
TAGS = (
    "br dd del details div dl dt h1 h2 h3 h4 h5 h6 hr img kbd mark p pre s small span sub summary "
    "sup table tbody td tfoot th thead tr u"
)
LINKS = ("http://", "https://", "mailto:")  # whole addresses: none in formgrader itself
IMAGE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+\Z")


def _link(tag: str, name: str, value: str) -> bool:
    return name == "title" or (name == "href" and value.startswith(LINKS))


def _image(tag: str, name: str, value: str) -> bool:
    return name in ("alt", "title") or (name == "src" and bool(IMAGE.match(value)))


ATTRIBUTES = bleach.ALLOWED_ATTRIBUTES | {
    "a": _link,
    "img": _image,
    "details": ["open"],
    "ol": ["start"],
}
# A second barrier: what is drawn in it, signs piled upon signs too, cannot leave its own box.
BOX = '<div style="contain: paint; overflow: auto; overflow-wrap: anywhere">{}</div>'
# signs that turn the direction of what follows, so that code reads otherwise than it runs
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


class _Answer(IPythonRenderer):
    """nbconvert's, with the boxes of a task list as signs: a form's box could look like points."""

    def task_list_item(self, text: str, checked: bool = False) -> str:
        return f"<li>{'☑' if checked else '☐'} {text}</li>\n"


def _boxed(html: str) -> Markup:
    return Markup(BOX.format(html))


def _unturned(text: str) -> str:
    """The text with each sign that turns the direction written out: ⟨U+202E⟩."""
    return TURNING.sub(lambda sign: f"⟨U+{ord(sign[0]):04X}⟩", text)


def highlight(source: str, language: str | None = None, metadata: Any = None) -> Markup:
    """Code as coloured HTML, a long one without colours; a filter for the templates of nbgrader.

    Installation and set-up fold, so that in formgrader the answers are next to each other.
    """
    if (metadata or {}).get("tfviz", {}).get("role") in ("install", "setup"):
        code = highlight(source, language)
        return Markup(
            f"<details><summary>Installation and set-up, the same for all</summary>{code}</details>"
        )
    source = _unturned(source)
    if len(source) > COLOURED or BLANK.search(source):
        return _boxed(f'<div class="highlight"><pre>{escape(source)}</pre></div>')
    return _boxed(Highlight2HTML()(source, language, metadata))


@pass_context
def markdown(context: Any, source: str) -> Markup:
    """Markdown as HTML without anything that acts, as it stands where it cannot be rendered."""
    cell = context.get("cell") or {}
    source = _unturned(source)
    try:
        if len(source) > COLOURED or BLANK.search(source):
            raise ValueError("too long")
        attached = cell.get("attachments", {})
        renderer = _Answer(escape=False, attachments=attached, exclude_anchor_links=True)
        html = MarkdownWithMath(renderer=renderer).render(source)
        tags, schemes = bleach.ALLOWED_TAGS | set(TAGS.split()), bleach.ALLOWED_PROTOCOLS | {"data"}
        html = bleach.clean(html, tags=tags, attributes=ATTRIBUTES, protocols=schemes)
    except Exception:  # whatever a student wrote: missing attachments, deep nesting, length
        html = f"<pre>{escape(source)}</pre>"
    return _boxed(html)


# --- in the place of nbgrader's own --------------------------------------------------------------


def listed(theirs: Callable[..., set[str]]) -> Callable[..., set[str]]:
    """A name in submitted/ that can be no id never gets into formgrader's pages."""
    return lambda *about: {name for name in theirs(*about) if students.is_id(name)}


def named(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Of a student whose name the gradebook lacks the page shows the id, not "None, None"."""

    def shown(*about: Any, **more: Any) -> Any:
        found = theirs(*about, **more)
        for one in found if isinstance(found, list) else [found]:
            if one and not (one["last_name"] or one["first_name"]):
                one |= {"last_name": one["student"], "first_name": "no name"}
        return found

    return shown


nbgrader.apps.api.Autograde = nbgrader.apps.autogradeapp.Autograde = Autograde
NbGraderAPI.get_submitted_students = listed(NbGraderAPI.get_submitted_students)
NbGraderAPI.get_submission = named(NbGraderAPI.get_submission)
NbGraderAPI.get_submissions = named(NbGraderAPI.get_submissions)
