"""The learner's notebooks: nothing raw in them, and they run as Colab would run them.

They are made by the book's own builder, and run outside of the repository by a Python that has
ipykernel and what the install cell of a notebook brings, nothing else. Only that cell may use the
network.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import nbformat
import pytest
import yaml

from tfviz_lessons.lesson import Block, is_lesson, read

ROOT = Path(__file__).resolve().parents[2]

LESSONS = [
    str(path.relative_to(ROOT).with_suffix(""))
    for path in sorted(ROOT.glob("chapters/**/*.md"))
    if is_lesson(path.read_text("utf8"))
]
SITE = "https://book.example/course"
PACKAGE = re.compile(r'%pip install -q "(tfviz\[lessons\] @ git\+https://[^"]+)"')
BUILD = f"""
import sys
from pathlib import Path
from jupyter_book.sphinx import build_sphinx

root, out = map(Path, sys.argv[1:])
options = {{
    "latex_individualpages": False,
    "external_toc_path": str(root / "_toc.yml"),
    "nb_execution_mode": "off",
    "html_baseurl": "{SITE}",
}}
sys.exit(build_sphinx(root, out / "site", noconfig=True, path_config=root / "_config.yml",
    confoverrides=options, doctreedir=out / "doctrees", builder="notebooks", quiet=True))
"""
OFFLINE = """
import os, socket

def local(host):
    return host in (None, "", "localhost", "127.0.0.1", "::1", b"localhost", b"127.0.0.1")

def gated(call, host_of):
    def gate(*args, **named):
        if not local(host_of(*args, **named)):
            raise OSError(f"a lesson must not use the network, this one asked for {args[-1]!r}")
        return call(*args, **named)
    return gate

def peer(self, address):
    return address[0] if isinstance(address, tuple) else None  # a path: a socket of this machine

if os.environ.get("TFVIZ_OFFLINE"):
    socket.socket.connect = gated(socket.socket.connect, peer)
    socket.socket.connect_ex = gated(socket.socket.connect_ex, peer)
    socket.getaddrinfo = gated(socket.getaddrinfo, lambda host, *_, **__: host)
"""


def command(*words, **options):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    """Folder of the notebooks, freshly made from the whole book, nothing executed."""
    out = tmp_path_factory.mktemp("notebooks")
    command(sys.executable, "-c", BUILD, ROOT, out, cwd=out)
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
        assert hidden or not exercise.hidden_tests
        assert not [line for line in hidden if line in text]
        for wrong in exercise.wrong:
            assert wrong.source.strip() not in text
            assert wrong.options["why"] not in text
        assert exercise.stub in text and exercise.solved in text


# --- running them --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """What pip finds at the address of the package: the working tree, without what git ignores."""
    folder = tmp_path_factory.mktemp("package") / "tfviz"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "tfviz", folder / "tfviz", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def colab():
    """A Python with ipykernel, and with whatever an earlier install cell has brought.

    It is kept in _build and made anew when the library asks for other packages.
    """
    place = ROOT / "_build/notebook-environment"
    stamp = place / "made-for"
    words = (ROOT / "pyproject.toml").read_bytes() + torch_version().encode()
    wanted = hashlib.sha256(words + sys.version.encode()).hexdigest()
    python = place / "bin/python"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place, with_pip=True)
        command(python, "-m", "pip", "install", "-q", "ipykernel")
        (library,) = place.glob("lib/python*/site-packages")
        (library / "sitecustomize.py").write_text(OFFLINE)
        stamp.write_text(wanted)
    command(python, "-m", "pip", "uninstall", "-q", "-y", "tfviz")
    return python


def torch_version():
    """The line of requirements.txt that says which torch the book uses."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith("torch=="))


def execute(python, nb, place, *, offline):
    """The notebook with its outputs, run in a folder of its own."""
    folder = place / "content"
    folder.mkdir(exist_ok=True)
    before, after = place / "before.ipynb", place / "after.ipynb"
    constraint = place / "torch.txt"
    constraint.write_text(torch_version() + "\n")
    nbformat.write(nb, before)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {
        "PIP_CONSTRAINT": str(constraint),
        "OMP_NUM_THREADS": "1",
        "TFVIZ_OFFLINE": "yes" if offline else "",
    }
    environment.pop("MPLBACKEND", None)
    runner = Path(__file__).with_name("notebook_runner.py")
    command(sys.executable, runner, python, before, after, folder, env=environment)
    return nbformat.read(after, as_version=4)


def said(cell):
    return "".join(out.get("text", "") for out in cell.outputs if out.output_type == "stream")


def problems(nb):
    """Cells that failed or complained, with what they said."""
    found = []
    for cell in code(nb):
        for out in cell.outputs:
            if out.output_type == "error":
                where = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(out.traceback))
                found.append(f"{cell.id}: {out.ename}: {out.evalue}\n{where[-1500:]}")
            elif out.output_type == "stream" and out.name == "stderr":
                found.append(f"{cell.id}: {out.text}")
    return found


@pytest.fixture(scope="module")
def installed(colab, source, notebooks, tmp_path_factory):
    """The environment after the install cell has run in it, the address being the working tree."""
    nb = load(notebooks, LESSONS[0])
    assert PACKAGE.search(nb.cells[0].source)
    nb.cells = nb.cells[:1]
    nb.cells[0].source = PACKAGE.sub(
        f'%pip install -q "tfviz[lessons] @ {source.as_uri()}"', nb.cells[0].source
    )
    done = execute(colab, nb, tmp_path_factory.mktemp("install"), offline=False)
    errors = [out for out in done.cells[0].outputs if out.output_type == "error"]
    assert not errors, (
        f"the install cell fails: {json.dumps(errors)[-3000:]}\n{said(done.cells[0])}"
    )
    return colab


@pytest.mark.parametrize("name", LESSONS)
def test_a_notebook_runs_like_in_colab(installed, notebooks, name, tmp_path):
    nb = load(notebooks, name)
    exercises = read(ROOT / f"{name}.md").exercises
    for exercise in exercises:  # after the learner's run, once more with the answers filled in
        checks = next(cell for cell in nb.cells if cell.id == f"{exercise.label}-checks")
        for kind, text in (("solved", exercise.solved), ("again", checks.source)):
            nb.cells.append(nbformat.v4.new_code_cell(text, id=f"{exercise.label}-{kind}"))
    done = execute(installed, nb, tmp_path, offline=True)
    assert not problems(done), "\n".join(problems(done))
    cells = {cell.id: cell for cell in done.cells}
    for exercise in exercises:
        empty = said(cells[f"{exercise.label}-checks"])
        solved = said(cells[f"{exercise.label}-again"])
        assert "✓" not in empty and re.search("^[○✗]", empty, re.M), f"{exercise.label}: {empty}"
        assert "✓" in solved and not re.search("^[○✗]", solved, re.M), f"{exercise.label}: {solved}"
    assert "install" not in said(cells["install"])  # it was there: nothing to do
    if any("tfviz.explorers" in cell.source for cell in code(nb)):
        kinds = {
            kind for cell in code(done) for out in cell.outputs for kind in out.get("data", {})
        }
        assert "application/vnd.jupyter.widget-view+json" in kinds, "no explorer is live"


def test_the_environment_has_no_network(installed, tmp_path):
    lines = "import urllib.request\nurllib.request.urlopen('https://example.org', timeout=20)"
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(lines, id="ask")])
    (refusal,) = problems(execute(installed, nb, tmp_path, offline=True))
    assert "must not use the network" in refusal
