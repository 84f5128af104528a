"""The learner's notebooks: nothing raw in them, and they run as Colab would run them.

They are made by the book's own builder, from the pages as it has read them. Their cells are
executed with those of the book, by a Python that has ipykernel and what the install cell of a
notebook brings, nothing else, outside of the repository and without a network
(`tfviz_lessons.execute`, `scripts/learner_environment.py`).
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import nbformat
import pytest
import yaml
from book.conftest import LESSONS, ROOT

from tfviz_lessons.lesson import Block, Exercise, read
from tfviz_lessons.notebook import INSTALL

OF_ALL = ROOT / "_toc.yml"
SITE = "https://book.example/course"
PACKAGE = re.compile(r'%pip install -q "(tfviz\[lessons\] @ git\+https://[^"]+)"')
BUILD = f"""
import sys
from pathlib import Path
from jupyter_book.sphinx import build_sphinx

root, out, toc = map(Path, sys.argv[1:])
options = {{
    "latex_individualpages": False,
    "external_toc_path": str(toc),
    "html_baseurl": "{SITE}",
    "tfviz_package": "tfviz @ git+https://host.example/course",
}}
sys.exit(build_sphinx(root, out / "site", noconfig=True, path_config=root / "_config.yml",
    confoverrides=options, doctreedir=out / "doctrees", builder="notebooks"))
"""


def command(*words, **options):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory, site):
    """Folder of the notebooks where site and package have an address; no page is read again."""
    out = tmp_path_factory.mktemp("notebooks")
    built = site.folder.parent
    shutil.copytree(built / ".doctrees", out / "doctrees")
    part = built.parent / "_toc.yml"  # of a book of few pages, whose links to others lead nowhere
    toc = part if part.exists() else OF_ALL
    environment = os.environ | {"TFVIZ_DRAFT": "yes" if toc != OF_ALL else ""}
    said = command(sys.executable, "-c", BUILD, ROOT, out, toc, cwd=out, env=environment).stdout
    assert "0 added, 0 changed, 0 removed" in re.sub(r"\x1b\[[\d;]*m", "", said), said
    return out / "site/notebooks"


def load(notebooks, name):
    return nbformat.read(notebooks / f"{name}.ipynb", as_version=4)


def code(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


# --- what is in them -----------------------------------------------------------------------------

FENCED = re.compile(
    r"^(?P<indent>[ >]*)(?P<fence>`{3,})[a-z0-9]*\n.*?^(?P=indent)(?P=fence)$", re.S | re.M
)
RAW = {
    "a directive": r"(`{3,}|:{3,}) *\{[\w:-]+\}",
    "a role": r"\{[A-Za-z][\w:+.-]*\}`",
    "a colon fence": r"^[ >]*:{3,}",
    "an equation's label": r"\$\$ *\([\w:.-]+\)",
    "a target": r"^\([\w:.-]+\)=",
    "a comment": r"^%[ ]",
    "a block break": r"^\+\+\+",
    "a colour class": r"\\html[A-Z]",
    "a substitution": r"\{\{ *\w+ *\}\}",
    "an option": r"^:[a-z-]+: ",
    "a link to a source page": r"\]\((?!https?:)[^)]*\)",
}


def raw(text, macros=()):
    """What is left of MyST in Markdown, by name, or None."""
    text = FENCED.sub("", text)
    for what, pattern in RAW.items():
        if re.search(pattern, text, re.M):
            return what
    for name in macros:
        if re.search(rf"\\{name}(?![A-Za-z])", text):
            return f"the macro \\{name}"
    return None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("```{note}\nx\n```", "a directive"),
        ("see {eq}`a`", "a role"),
        (":::{tip}\nx\n:::", "a directive"),
        ("$$x$$ (eq-a)", "an equation's label"),
        ("(a-b)=\n# T", "a target"),
        ("% gone", "a comment"),
        ("$\\Q$", "the macro \\Q"),
        ("$\\htmlClass{a}{b}$", "a colour class"),
        ("[a](b.md)", "a link to a source page"),
        ("$\\Qa$ and `x` and [a](https://b.c)\n\n```python\n{eq}`kept`\n```", None),
    ],
)
def test_raw_myst_is_recognised(text, left):
    assert raw(text, ["Q"]) == left


@pytest.mark.parametrize("kind", ["notebooks", "assignments"])
@pytest.mark.parametrize("name", LESSONS)
def test_a_notebook_is_valid_and_has_nothing_raw_in_it(notebooks, name, kind):
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))
    macros = config["sphinx"]["config"]["tfviz_macros"]
    nb = load(notebooks.parent / kind, name)
    nbformat.validate(nb)
    assert nb.metadata.kernelspec.name == "python3"
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            left = raw(cell.source, macros)
            assert left is None, f"{left} is left in {name}, cell {cell.id}:\n{cell.source}"
        else:
            assert not cell.outputs and cell.execution_count is None
            assert "### BEGIN" not in cell.source and "### END" not in cell.source


@pytest.mark.parametrize("name", LESSONS)
def test_a_notebook_installs_first_and_points_to_its_page(notebooks, name):
    nb = load(notebooks, name)
    assert PACKAGE.search(nb.cells[0].source)
    assert f"]({SITE}/{name}.html)" in nb.cells[1].source


@pytest.mark.parametrize("name", LESSONS)
def test_nothing_hidden_reaches_a_notebook(notebooks, name):
    text = "\n".join(cell.source for cell in load(notebooks, name).cells)
    lesson = read(ROOT / f"{name}.md")
    public = "\n".join(b.source for b in lesson.blocks if isinstance(b, Block))
    for exercise in lesson.exercises:
        visible = {line.strip() for line in exercise.visible_tests.split("\n")}
        hidden = [line.strip() for line in exercise.all_tests.split("\n")]
        hidden = [line for line in hidden if line not in visible and line not in public]
        # the first line of a call that goes on, "expect_equal(", tells nothing
        hidden = [line for line in hidden if len(re.findall(r"\w+", line)) > 1]
        assert hidden or not exercise.hidden_tests
        assert not [line for line in hidden if line in text]
        for wrong in exercise.wrong:
            # with its end: a solution may begin as a wrong one does
            assert f"{wrong.source.strip()}\n" not in f"{text}\n"
            assert wrong.why not in text
        assert exercise.stub in text and exercise.solved in text


# --- running them --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LESSONS)
def test_a_notebook_has_the_cells_that_were_executed(notebooks, name):
    """The page's, but for the exercises: there, the stub and its checks."""
    wanted = [INSTALL.format(version=version("tfviz"), package="tfviz[lessons] @ …")]
    for block in read(ROOT / f"{name}.md").blocks:
        if isinstance(block, Exercise):
            wanted += [block.stub, f"%%check {block.label}\n{block.visible_tests}"]
        elif isinstance(block, Block) and block.kind == "code":
            wanted.append(block.source)
    found = [cell.source for cell in code(load(notebooks, name))]
    found[0] = re.sub(r"tfviz\[lessons\] @ git[^\"]+", "tfviz[lessons] @ …", found[0])
    assert found == wanted


@pytest.mark.parametrize("name", LESSONS)
def test_a_notebook_runs_like_in_colab(proofs, name):
    """Empty, as the learner finds it, and with each exercise answered."""
    proof = proofs[name]
    assert not proof.problems, "\n".join(proof.problems)
    for exercise in read(ROOT / f"{name}.md").exercises:
        empty, solved = proof.empty[exercise.label], proof.solved[exercise.label]
        assert "✓" not in empty and re.search("^[○✗]", empty, re.M), f"{exercise.label}: {empty}"
        assert "✓" in solved and not re.search("^[○✗]", solved, re.M), f"{exercise.label}: {solved}"
    assert "install" not in proof.install  # it was there: nothing to do
    if "tfviz.explorers" in (ROOT / f"{name}.md").read_text("utf8"):
        assert "application/vnd.jupyter.widget-view+json" in proof.kinds, "no explorer is live"


def test_the_environment_has_what_the_install_cell_brings_and_no_network(learner):
    """`learner`: the install cell has run in it, the address being the working tree."""
    python = learner / "bin/python"
    more = "import importlib.util as u\nprint([u.find_spec(n) for n in ('transformers', 'sphinx')])"
    assert command(python, "-c", more).stdout.strip() == "[None, None]"
    where = "import tfviz, torch\nprint(tfviz.__file__, torch.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # -P: not what lies in the folder where the tests run
    tfviz, torch = command(python, "-P", "-c", where, env=environment).stdout.split()
    for path in (tfviz, torch):
        assert Path(path).is_relative_to(learner)
    ask = "import urllib.request\nurllib.request.urlopen('https://example.org', timeout=20)"
    environment |= {"TFVIZ_OFFLINE": "yes"}
    refusal = subprocess.run([python, "-c", ask], capture_output=True, text=True, env=environment)
    assert "must not use the network" in refusal.stderr
