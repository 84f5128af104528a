"""Kinds whose file is not what was released: cells changed, copied, lost; files that are none."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from course.bad.kind import HOPS, RIGHT, ROW, SHARPNESS, WRITTEN, HandIn, answer, marker, student

from tfviz.checks import numbers


def code(source: str, **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": f"own-{abs(hash(source)) % 10**9}",
        "metadata": metadata,
        "execution_count": None,
        "outputs": [],
        "source": source,
    }


def graded(hand_in: HandIn) -> list[dict[str, Any]]:
    """The cells with the tests of the exercise that this kind was given."""
    return [
        cell
        for cell in hand_in.notebook["cells"]
        if cell["metadata"]["tfviz"]["role"] in ("checks", "hidden")
        and cell["metadata"]["tfviz"]["exercise"] == hand_in.carrier
    ]


def wrong(hand_in: HandIn) -> None:
    """The answer becomes a wrong one: whatever is faked after it must not help."""
    head = RIGHT[hand_in.carrier].split("\n")[0]
    hand_in.answer(hand_in.carrier, f"{head}\n    return 0.0\n")


# --- cells ---------------------------------------------------------------------------------------


@answer("none")
def edited_tests(hand_in: HandIn) -> None:
    """A wrong answer, and tests rewritten so that they pass."""
    wrong(hand_in)
    for cell in graded(hand_in):
        cell["source"] = "print('all tests pass')"


@answer("none")
def deleted_tests(hand_in: HandIn) -> None:
    """A wrong answer, and its test cells deleted."""
    wrong(hand_in)
    tests = graded(hand_in)
    hand_in.notebook["cells"] = [cell for cell in hand_in.notebook["cells"] if cell not in tests]


@answer("none")
def duplicated_tests(hand_in: HandIn) -> None:
    """A wrong answer, and its test cells three times, twice of them empty, by one id."""
    wrong(hand_in)
    cells, tests = [], graded(hand_in)
    for cell in hand_in.notebook["cells"]:
        copies = 2 if cell in tests else 0
        cells += [{**copy.deepcopy(cell), "source": "pass"} for _ in range(copies)] + [cell]
    hand_in.notebook["cells"] = cells


@answer("none")
def changed_points(hand_in: HandIn) -> None:
    """A wrong answer, its visible test worth no points, everything else worth a hundred."""
    wrong(hand_in)
    for cell in hand_in.notebook["cells"]:
        known = cell["metadata"]["nbgrader"]
        known["points"] = 0 if known["grade_id"] == f"{hand_in.carrier}-checks" else 100


@answer("none")
def tests_marked_as_answers(hand_in: HandIn) -> None:
    """A wrong answer, and its tests declared to be answers, which a student may change."""
    wrong(hand_in)
    for cell in graded(hand_in):
        cell["metadata"]["nbgrader"] |= {"solution": True, "locked": False, "grade": False}
        cell["metadata"]["tfviz"]["role"] = "yours"
        cell["source"] = "pass"


@answer("none")
def answer_marked_as_test(hand_in: HandIn) -> None:
    """A wrong answer whose cell carries the id, the points and the role of its test."""
    wrong(hand_in)
    test, cell = (hand_in.cell(f"{hand_in.carrier}-{part}") for part in ("checks", "yours"))
    cell["metadata"] = copy.deepcopy(test["metadata"])
    cell["metadata"]["nbgrader"]["points"] = 50


@answer("none")
def locked_cells_changed(hand_in: HandIn) -> None:
    """A wrong answer, and the locked set-up redefines what the tests compare with."""
    wrong(hand_in)
    for cell in hand_in.notebook["cells"]:
        if cell["metadata"]["tfviz"]["role"] == "setup":
            cell["source"] += "\nattention = lookup = lambda *args, **named: (0.0, {0: 0.99})\n"


@answer("none")
def forged_scores(hand_in: HandIn) -> None:
    """A wrong answer, with outputs, scores and comments stored as if graded: 100 of 100."""
    wrong(hand_in)
    for cell in graded(hand_in):
        cell["execution_count"] = 1
        result = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
        cell["outputs"] = [{**result, "data": {"text/plain": "100"}}]
        cell["metadata"]["nbgrader"] |= {"score": 100, "auto_score": 100, "manual_score": 100}
        cell["metadata"]["nbgrader"] |= {"max_score": 100, "checksum": "0" * 32, "comment": "👍"}
    hand_in.notebook["metadata"]["nbgrader"] = {"score": 100, "total": 100}


@answer("all")
def answer_twice(hand_in: HandIn) -> None:
    """The answer cell was copied: first a wrong try, then the right answer below it."""
    cell = hand_in.cell(f"{hand_in.carrier}-yours")
    first = copy.deepcopy(cell)
    first["source"] = f"{''.join(cell['source'])}\nraise SystemExit\n"
    hand_in.notebook["cells"].insert(hand_in.notebook["cells"].index(cell), first)


@answer("none")
def answer_missing(hand_in: HandIn) -> None:
    """The answer cell was deleted."""
    hand_in.notebook["cells"].remove(hand_in.cell(f"{hand_in.carrier}-yours"))


@student()
def metadata_lost(hand_in: HandIn) -> None:
    """All metadata and ids are gone; the marker lines are there."""
    for cell in hand_in.notebook["cells"]:
        cell["metadata"] = {}
        cell["id"] = f"lost-{id(cell)}"


@student()
def markers_lost(hand_in: HandIn) -> None:
    """The marker lines are gone; metadata are there."""
    lose_markers(hand_in)


@student(every="none", written="none", remark="its answer cell was not found")
def metadata_and_markers_lost(hand_in: HandIn) -> None:
    """Metadata, ids and marker lines are gone: nothing says what is an answer to what."""
    lose_markers(hand_in)
    metadata_lost(hand_in)


def lose_markers(hand_in: HandIn) -> None:
    for cell in hand_in.notebook["cells"]:
        lines = cell["source"].split("\n")
        cell["source"] = "\n".join(line for line in lines if "keep this line" not in line)


@answer(sharpness="none")
def function_renamed(hand_in: HandIn) -> None:
    """The function has another name than the exercise asks for."""
    hand_in.answer("ex-sharpness", SHARPNESS.replace("beta_for", "beta"))


@student(loops="none", order="none", row="none", remark="its answer cell was not found")
def answers_in_one_cell(hand_in: HandIn) -> None:
    """All answers were merged into one cell, which is read as the answer to the first."""
    cells = hand_in.notebook["cells"]
    answers = [
        cell
        for cell in cells
        if cell["metadata"]["tfviz"]["role"] == "yours" and cell["cell_type"] == "code"
    ]
    answers[0]["source"] = "\n\n".join(cell["source"] for cell in answers)
    for cell in answers[1:]:
        cells.remove(cell)


@student()
def answers_in_another_order(hand_in: HandIn) -> None:
    """All cells stand upside down, tests before answers before set-up."""
    hand_in.notebook["cells"].reverse()


@answer(order="none")
def answers_swapped(hand_in: HandIn) -> None:
    """The marker line and metadata of one exercise stand over the answer to another."""
    hand_in.answer("ex-order", SHARPNESS)


@answer(row="all", remark="STUDENT")
def name_of_somebody_else(hand_in: HandIn) -> None:
    """Says that it is another student; but the numbers belong to whose folder it is."""
    hand_in.cell("student")["source"] = (
        f"{marker('student')}\nSTUDENT = {hand_in.around.victim!r}\n"
    )


@answer(row="hidden")
def numbers_of_somebody_else(hand_in: HandIn) -> None:
    """Hands in the answer that is right for the neighbour's numbers, and binds these first."""
    mine, theirs = (keys_of(name) for name in (hand_in.student, hand_in.around.victim))
    theirs = theirs if theirs != mine else 64 if mine != 64 else 40
    hand_in.answer("ex-one-row", f"STUDENT = 'x'\nkeys = {theirs}\n{ROW}")


def keys_of(name: str) -> int:
    """The number that the exercise draws for a student: 7 is the class's seed."""
    keys: int = numbers(name, 7, "ex-one-row", keys=[64, 40, 50, 80, 100, 120, 150, 200])
    return keys


@student()
def cells_of_odd_types(hand_in: HandIn) -> None:
    """Between good cells stand cells that are no cells: numbers, lists, no type, no source."""
    odd: list[Any] = [
        7,
        None,
        [],
        "cell",
        {},
        {"cell_type": "code"},
        {"cell_type": "code", "source": 5, "metadata": "none", "outputs": {}},
        {"cell_type": "markdown", "source": [1, None, ["x"]], "metadata": {"nbgrader": []}},
        {"cell_type": "x" * 1000, "source": "", "metadata": {"nbgrader": {"grade_id": {}}}},
        {"cell_type": ["code"], "source": "1", "metadata": {"tfviz": 3, "nbgrader": "x"}},
    ]
    hand_in.notebook["cells"] = [*odd, *hand_in.notebook["cells"], *odd]


@student()
def many_cells(hand_in: HandIn) -> None:
    """Two thousand cells of the student's own stand behind the answers."""
    hand_in.notebook["cells"] += [code(f"x = {n}") for n in range(2000)]


@answer("none")
def answer_of_10_mb(hand_in: HandIn) -> None:
    """The answer cell holds 10 MB of source."""
    hand_in.carry("data = '" + "x" * 10**7 + "'")


@answer("none")
def answer_nested_deeply(hand_in: HandIn) -> None:
    """An answer that makes Python's own parser give up: thousands of brackets."""
    hand_in.carry("data = " + "[" * 3000 + "]" * 3000)


@answer("all")
def answer_with_null_bytes(hand_in: HandIn) -> None:
    """The answer holds null bytes and halves of surrogate pairs; they are taken out."""
    hand_in.carry("text = '\x00 \udc80 \ud800'")


# --- files ---------------------------------------------------------------------------------------


def only(hand_in: HandIn, name: str, data: bytes) -> None:
    """Hand in this file and nothing else."""
    hand_in.notebooks = {}
    hand_in.files[name] = data


def text(notebook: dict[str, Any]) -> bytes:
    return json.dumps(notebook).encode()


@student()
def wrong_file_name(hand_in: HandIn) -> None:
    """The notebook is there under another name, as a browser saves it a second time."""
    hand_in.notebooks = {"Attention (1) final.ipynb": hand_in.notebook}


@student()
def two_notebooks(hand_in: HandIn) -> None:
    """Beside the notebook lies an older copy with a wrong answer."""
    older = copy.deepcopy(hand_in.notebook)
    hand_in.files["attention-Copy1.ipynb"] = text(older).replace(b"(slots - 1)", b"(slots + 9)")


@student()
def notebook_in_a_folder(hand_in: HandIn) -> None:
    """The notebook lies in a folder of the submission."""
    hand_in.files["my work/attention.ipynb"] = text(hand_in.notebook)
    hand_in.notebooks = {}


@student(every="none")
def no_file(hand_in: HandIn) -> None:
    """Hands in an empty folder."""
    hand_in.notebooks = {}


@student(every="none")
def empty_file(hand_in: HandIn) -> None:
    """The notebook is a file of no bytes."""
    only(hand_in, "attention.ipynb", b"")


@student(every="none")
def invalid_json(hand_in: HandIn) -> None:
    """The notebook was cut off in the middle of the first cell."""
    only(hand_in, "attention.ipynb", text(hand_in.notebook)[:300])


@student(every="none")
def a_word_document(hand_in: HandIn) -> None:
    """Under the notebook's name lies a zip archive."""
    only(hand_in, "attention.ipynb", b"PK\x03\x04" + bytes(range(256)) * 40)


@student()
def not_utf8(hand_in: HandIn) -> None:
    """Saved in Latin-1, with umlauts in a comment."""
    hand_in.carry("# für schärfere Köpfe")
    data = json.dumps(hand_in.notebook, ensure_ascii=False).encode("latin-1", "replace")
    only(hand_in, "attention.ipynb", data)


@student()
def utf16(hand_in: HandIn) -> None:
    """Saved in UTF-16 by a Windows editor."""
    only(hand_in, "attention.ipynb", text(hand_in.notebook).decode().encode("utf-16"))


@student(every="none")
def a_list(hand_in: HandIn) -> None:
    """The file is valid JSON, but a list of a number."""
    only(hand_in, "attention.ipynb", b"[1e400, NaN]")


@student(every="none")
def json_nested_deeply(hand_in: HandIn) -> None:
    """A hundred thousand brackets, at which Python's own reader gives up."""
    only(hand_in, "attention.ipynb", b'{"cells": ' + b"[" * 10**5)


@student(every="none", remark="Open it in Jupyter and save it again")
def format_3(hand_in: HandIn) -> None:
    """Saved in version 3 of the format, of 2013, with worksheets."""
    older = {"nbformat": 3, "worksheets": [{"cells": hand_in.notebook["cells"]}], "metadata": {}}
    only(hand_in, "attention.ipynb", text(older))


@student()
def format_99(hand_in: HandIn) -> None:
    """Says that it is version 99 of the format."""
    hand_in.notebook["nbformat"] = 99


@student(every="none")
def symlink_to_the_source(hand_in: HandIn) -> None:
    """The notebook is a link to the instructor's own, which holds all solutions."""
    around = hand_in.around
    link(hand_in, around.course / "source" / around.assignment / "attention.ipynb")


@student(every="none")
def symlink_to_zero(hand_in: HandIn) -> None:
    """The notebook is a link to /dev/zero, which never ends."""
    link(hand_in, "/dev/zero")


@student(every="none")
def symlinked_folder(hand_in: HandIn) -> None:
    """The whole submission is a link to the instructor's folder."""
    hand_in.notebooks = {}
    hand_in.folder.parent.mkdir(parents=True, exist_ok=True)
    target = hand_in.around.course / "source" / hand_in.around.assignment
    hand_in.folder.symlink_to(target)


def link(hand_in: HandIn, target: Any) -> None:
    hand_in.notebooks = {}
    hand_in.folder.mkdir(parents=True, exist_ok=True)
    (hand_in.folder / "attention.ipynb").symlink_to(target)


@student(every="none")
def named_pipe(hand_in: HandIn) -> None:
    """The notebook is a pipe that nobody writes to; who opens it waits for ever."""
    hand_in.notebooks = {}
    hand_in.folder.mkdir(parents=True, exist_ok=True)
    os.mkfifo(hand_in.folder / "attention.ipynb")


@student(every="none")
def folder_for_a_file(hand_in: HandIn) -> None:
    """Under the notebook's name is a folder."""
    hand_in.notebooks = {}
    (hand_in.folder / "attention.ipynb").mkdir(parents=True, exist_ok=True)


@student(every="none")
def file_of_30_mb(hand_in: HandIn) -> None:
    """The notebook is 30 MB large, of pictures stored in it."""
    hand_in.cell("ex-sharpness-yours")["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "x" * 3 * 10**7}
    ]


@student()
def other_files_beside(hand_in: HandIn) -> None:
    """Brings files that Python and nbgrader would read by themselves: torch.py, configurations."""
    for name in ("torch.py", "tfviz.py", "sitecustomize.py", "conftest.py", "random.py"):
        hand_in.files[name] = b"raise SystemExit('taken over')\n"
    for name in ("nbgrader_config.py", "ipython_config.py", "jupyter_config.py"):
        hand_in.files[name] = b"import os; os._exit(3)\n"
    hand_in.files["gradebook.db"] = b"SQLite format 3\x00"
    hand_in.files["timestamp.txt"] = b"soon"


# --- written answers and what is displayed -------------------------------------------------------


@student()
def script_in_a_written_answer(hand_in: HandIn) -> None:
    """Scripts, handlers, frames and links that run, in the text of a written answer."""
    hand_in.answer(
        "ex-repair",
        WRITTEN
        + """

<script>document.title = 'SCRIPT-OF-A-SUBMISSION'</script>
<img src=x onerror="document.title='SCRIPT-OF-A-SUBMISSION'">
<svg onload="document.title='SCRIPT-OF-A-SUBMISSION'"></svg>
<iframe srcdoc="&lt;script>document.title='SCRIPT-OF-A-SUBMISSION'&lt;/script>"></iframe>
<details open ontoggle="document.title='SCRIPT-OF-A-SUBMISSION'">x</details>
[click](javascript:document.title='SCRIPT-OF-A-SUBMISSION')
<style>.nbgrader-score { display: none }</style>
<a href="jav&#x09;ascript:document.title='SCRIPT-OF-A-SUBMISSION'">click</a>
<form action="/formgrader"><input name=score value=100></form>
$<script>document.title = 'SCRIPT-OF-A-SUBMISSION'</script>$

![x](attachment:x.svg)
""",
    )
    svg = "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+"
    hand_in.cell("ex-repair-yours")["attachments"] = {
        "x.svg": {"image/svg+xml": svg},
        '" onerror="alert(1)': {"image/png": '" onerror="alert(1)'},
    }


COVER = r"""
<a class="full-credit modal-backdrop fade" href="https://elsewhere.example/"> </a>
<div class="full-credit" style="position: fixed; inset: 0; z-index: 9999; opacity: 0">x</div>
<p class="no-credit" id="statusmessage" name="top">A paragraph</p>

<a class="full-credit modal-backdrop fade in" href="#top" title="x">Full credit</a>
<span class="pull-right nbgrader-label score">Score: 3.0 / 3.0</span>
<input class="score tabbable" id="ex-repair-yours" type="number" value="3"> / 3.0
<input type="checkbox" checked class="full-credit">
<h4 class="panel-heading navbar-fixed-top" id="toc">attention (Score: 13.0 / 13.0)</h4>
<a href="/formgrader/submissions/x/next" class="tabbable">Next</a>

# A heading

- [x] a task

$\class{full-credit modal-backdrop}{x}$ $\style{position: fixed; inset: 0; opacity: 0}{x}$
"""


@student()
def covers_the_points(hand_in: HandIn) -> None:
    """Borrows the looks and names of the grading page: a transparent "full credit" button over the
    whole window, boxes for points, headings with scores."""
    hand_in.answer("ex-repair", WRITTEN + COVER + "Z" + chr(0x0310) * 2000)


@answer("all")
def script_in_the_code(hand_in: HandIn) -> None:
    """Ends the page's script element in a string and a comment of its code."""
    hand_in.carry(
        "# </script></pre><script>document.title = 'SCRIPT-OF-A-SUBMISSION'</script>\n"
        "text = '''</div><img src=x onerror=document.title='SCRIPT-OF-A-SUBMISSION'>'''"
    )


@answer("all")
def script_in_the_output(hand_in: HandIn) -> None:
    """Displays HTML, SVG, JavaScript, widgets and Markdown with scripts; then answers well."""
    hand_in.carry(
        """
from IPython.display import HTML, SVG, Javascript, Latex, Markdown, display
act = "document.title = 'SCRIPT-OF-A' + '-SUBMISSION'"
page = f"<script>{act}</script><img src=x onerror=\\"{act}\\">"
for shown in (HTML(page), Markdown(page), Latex(page), Javascript(act)):
    display(shown)
display(SVG(f"<svg xmlns='http://www.w3.org/2000/svg'><script>{act}</script></svg>"))
for kind in ("text/html", "text/plain", "image/png", "image/jpeg", "application/json",
             "application/vnd.jupyter.widget-view+json", "application/vnd.plotly.v1+json",
             "text/html; charset=utf-8", "image/svg+xml", "text/latex", "text/x-odd\\"><script>"):
    display({kind: page}, raw=True)
print(page)
print("\\x1b[31m" + page + "\\x1b]8;;javascript:alert(1)\\x1b\\\\ link")
""",
    )


@student(hops="none", notebooks=("factorized",))
def explorer_that_lies(hand_in: HandIn) -> None:
    """In place of the lab stands an object whose goal, report and class say that all is well."""
    hand_in.answer(
        "ex-two-hops",
        """\
        class Lab(SparseLab):
            goal = {"L": side**2, "causal": True, "max_hops": 2, "max_keys": side}

            def goal_report(self):
                class Report:
                    numbers = {"keys": 1, "hops": 1}
                    met = reached = ok = passed = True
                    text = lines = ""
                return Report()

        lab = Lab(left=patterns.causal(), right=patterns.causal(), L=side**2)
        """,
    )


@student(hops="none", notebooks=("factorized",))
def explorer_with_hostile_state(hand_in: HandIn) -> None:
    """The lab's state is set to what no control can give: huge sizes, endless formulas, code."""
    hand_in.answer(
        "ex-two-hops",
        HOPS
        + """
for name, value in {"L": 10**9, "query": -1, "stack": "A" * 10**6, "depth": float("nan")}.items():
    try:
        setattr(lab, name, value)
    except Exception:
        lab._trait_values[name] = value
""",
    )


@student(hops="none", notebooks=("factorized",))
def explorer_of_another_class(hand_in: HandIn) -> None:
    """In place of the lab stands a string, in place of a function a number."""
    hand_in.answer("ex-two-hops", "lab = 'solved'\nSparseLab = expect_goal = 7\n")
