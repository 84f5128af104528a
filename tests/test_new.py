"""`make new` and `make chapter`: stubs that say what comes next, and errors that say what to do."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chapter
import new
import pytest
from pybtex.database import parse_file

from tfviz import catalogue
from tfviz._door import names
from tfviz_lessons.checklist import BRIEF, ORDER, lacks
from tfviz_lessons.lesson import read
from tfviz_lessons.outline import MORE

ROOT = Path(__file__).parents[1]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "_toc.yml", tmp_path / "_toc.yml")
    return tmp_path


def test_a_mechanism_has_its_room_and_a_test_that_says_what_is_missing(root: Path) -> None:
    said = new.mechanism("synthesizer", root)
    room, proof = root / "tfviz/priors/synthesizer.py", root / "tests/priors/test_synthesizer.py"
    assert "write its definition" in room.read_text("utf8")
    for file in (room, proof):
        ast.parse(file.read_text("utf8"))
    assert 'pytest.fail("synthesizer: work out one small case' in proof.read_text("utf8")
    assert "\nCASE = Case(" in proof.read_text("utf8"), "the laws find it by this"
    assert any("tests/test_catalogue.py" in line for line in said)
    room.write_text("mine", "utf8")
    assert "  is there  tfviz/priors/synthesizer.py" in new.mechanism("synthesizer", root)
    assert room.read_text("utf8") == "mine", "what is there is never written over"


def test_a_new_room_stands_at_the_door_of_its_part(root: Path) -> None:
    for name in ("realformer", "synthesizer", "average_attention", "realformer"):
        new.mechanism(name, root)
    door = root / "tfviz/priors/__init__.py"
    classes = ["AverageAttention", "Realformer", "Synthesizer"]
    assert [name for name in names(str(door)) if name[0].isupper()] == classes
    assert door.read_text("utf8").count(" import *\n") == 3
    (root / "tfviz/priors/realformer.py").unlink()
    assert "Realformer" not in names(str(door)), "a room that is gone stops no other"


def test_a_mechanism_that_nobody_planned_is_written_into_every_place_once(root: Path) -> None:
    """What it touches, from the row in the catalogue to the section: twice asked, once written."""
    shared = ["tfviz/catalogue.toml", "tfviz/exhibits/priors.py", "tfviz/priors/__init__.py"]
    shared += ["book/references.bib", "chapters/priors/locality.md"]
    for name in shared:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    was = {name: (root / name).read_text("utf8") for name in shared}
    own = ["tfviz/priors/twice_gaussian.py", "tests/priors/test_twice_gaussian.py"]
    own += [f"tfviz/explorers/priors/twice_gaussian.{kind}" for kind in ("py", "js")]

    def asked() -> list[str]:
        return new.mechanism("twice_gaussian", root, "priors/locality", "nobody2031gaussian")

    said = asked()
    for name in own:
        assert (root / name).exists() and f"  written   {name}" in said
    for name in shared:
        text = (root / name).read_text("utf8")
        added = [line for line in text.splitlines() if line not in was[name].splitlines()]
        assert added, f"{name} does not know it"
    now = {name: (root / name).read_text("utf8") for name in [*own, *shared]}
    assert not [line for line in asked() if "written" in line]
    assert now == {name: (root / name).read_text("utf8") for name in now}, "once is enough"
    rows = catalogue.load(now["tfviz/catalogue.toml"])[2]
    numbers = [row.chapter_number for row in rows]
    assert numbers == sorted(numbers) and "twice_gaussian" in [row.id for row in rows]
    assert parse_file(str(root / "book/references.bib")).entries["nobody2031gaussian"]
    assert read(root / "chapters/priors/locality.md"), "the lesson can still be read"


@pytest.mark.parametrize("part", [part.id for part in catalogue.PARTS])
def test_the_stub_of_an_exhibit_is_one_in_the_file_of_every_part(part: str, root: Path) -> None:
    file = root / "tfviz/exhibits" / f"{part}.py"
    file.parent.mkdir(parents=True)
    shutil.copy(ROOT / file.relative_to(root), file)
    new.put(file, '    "x": ', new.EXHIBIT.substitute(id="x"), "}\n")
    there: dict[str, Any] = {}
    exec(file.read_text("utf8"), there)
    assert there["EXHIBITS"]["x"].picture().shape == (24, 24)


def test_an_explorer_has_both_files(root: Path) -> None:
    new.explorer("compressed/low_rank_lens", root)
    kind = (root / "tfviz/explorers/compressed/low_rank_lens.py").read_text("utf8")
    assert "class LowRankLens(Explorer)" in kind, "found by its file: no list names it"
    assert "tf.explorer(" in (root / "tfviz/explorers/compressed/low_rank_lens.js").read_text(
        "utf8"
    )


def test_a_chapter_has_its_sections_and_its_line_in_the_contents(root: Path) -> None:
    new.chapter("priors/prior_only", root)
    new.chapter("priors/prior_only", root)  # a second time changes nothing
    lesson = read(root / "chapters/priors/prior_only.md")
    for name in ("average_attention", "hard_coded_gaussian", "synthesizer"):
        assert f"({name})=\n## " in lesson.text and f"{{mechanism}} {name}\n" in lesson.text
    assert any("places say TODO" in sentence for sentence in lacks(lesson))
    contents = (root / "_toc.yml").read_text("utf8")
    assert contents.count("chapters/priors/prior_only") == 1
    assert contents.index("chapters/sparse/routing") < contents.index("chapters/priors/prior_only")
    new.mechanism("gaussian_transformer", root)
    new.chapter("priors/locality", root)
    sections = (root / "chapters/priors/locality.md").read_text("utf8")
    assert "(gaussian_transformer)=" in sections, "its room is there"
    assert "(localness_gaussian)=" not in sections, "nobody has begun with that one"
    contents = (root / "_toc.yml").read_text("utf8")
    assert contents.index("priors/locality") < contents.index("priors/prior_only")
    assert contents.count("caption: Attention with prior") == 1


def test_a_section_has_the_form_of_its_weight(root: Path) -> None:
    new.chapter("priors/prior_only", root)
    new.mechanism("lazyformer", root)
    weights = set()
    for file in root.glob("chapters/priors/*.md"):
        lesson = read(file)
        assert not [x for x in lacks(lesson) if re.search("is brief|as brief|belongs before", x)]
        for row in catalogue.MECHANISMS:
            if section := lesson.page.labelled(row.id):
                weights.add(row.weight)
                starts = [part.title.split(":")[0] for part in section.parts]
                form = ORDER if row.weight == "full" else (*BRIEF, MORE.rstrip(": "))
                assert starts == list(form)
    assert weights == {"full", "brief"}


@pytest.mark.parametrize(
    ("make", "name", "words"),
    [
        (new.mechanism, "linformr", "no mechanism NAME=linformr. Did you mean linformer"),
        (new.chapter, "low_rank", "no chapter NAME=low_rank. Did you mean compressed/low_rank"),
        (lambda name: new.mechanism(name, ROOT, "priors/locality", "nobody"), "x", "surname, year"),
        (new.explorer, "compressed/Low-Rank", "NAME=compressed/Low-Rank is no part with a module"),
        (new.explorer, "low_rank_lens", "write it as in compressed/low_rank_lens .the parts are"),
        (chapter.chapter, "sparse/hashin", "no chapter C=sparse/hashin. Did you mean sparse/hash"),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest(
    make: Callable[[str], object], name: str, words: str
) -> None:
    with pytest.raises(SystemExit, match=words):
        make(name)


def test_a_chapter_is_found_by_its_name_and_by_its_path() -> None:
    path = ROOT / "chapters/sparse/hashing.md"
    assert chapter.chapter("sparse/hashing") == path
    assert chapter.chapter("chapters/sparse/hashing.md") == path


def test_an_error_is_whole_and_says_where() -> None:
    error = "NameError: name 'x' is not defined"
    cell = ["Cell In[3], line 2", "      1 y = 1", "----> 2 room()", ""]
    kernel = [f"kernel line {n}" for n in range(40)]
    library = [f"library line {n}" for n in range(40)]
    trace = [error, "---", "NameError  Traceback (most recent call last)", *kernel, *cell]
    said = chapter.error_of("\n".join([*trace, *library, error]))
    assert said.startswith("NameError: name 'x'") and "----> 2 room()" in said
    assert "kernel" not in said and all(line in said for line in library)


def test_where_sphinx_writes_no_page_its_error_is_whole() -> None:
    error = ["Extension error:", "Handler for event failed", "exception: no such room", "    ^^^^"]
    cause = [f"  File of the library, line {n}" for n in range(40)]
    trace = ["Traceback (most recent call last):", *cause, "ImportError: no such room", *error]
    said = chapter.whole_error("\n".join(["reading sources... [50%] one", *trace]))
    assert [line.strip() for line in said.splitlines()] == [line.strip() for line in trace]


def test_what_sphinx_says_of_the_chapter_is_kept_and_of_all_others_is_not() -> None:
    output = """
/x/chapters/sparse/hashing.md:12: WARNING: undefined label: 'rope' [ref.ref]
/x/chapters/sparse/hashing.md:40: ERROR: Unknown directive type: "mechanisn" [myst]
/x/chapters/sparse/local.md:1: WARNING: something else
reading sources... [100%] chapters/sparse/hashing
"""
    assert list(chapter.about("chapters/sparse/hashing", output)) == [
        'chapters/sparse/hashing.md:40: Unknown directive type: "mechanisn" [myst]'
    ]
