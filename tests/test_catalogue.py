"""The catalogue is complete, true to the bibliography, and what it calls built is really there."""

from __future__ import annotations

import importlib
import re
from collections.abc import Container
from dataclasses import replace
from pathlib import Path

import pytest
from pybtex.database import parse_file

from tfviz import catalogue
from tfviz.catalogue import CHAPTERS, MECHANISMS, PARTS, Mechanism
from tfviz.exhibits import EXHIBITS
from tfviz_lessons.outline import outline

ROOT = Path(__file__).parents[1]
BIB = parse_file(str(ROOT / "book/references.bib")).entries


def test_every_mechanism_has_one_row_in_the_order_of_the_course() -> None:
    numbers = [row.chapter_number for row in MECHANISMS]
    assert len(MECHANISMS) == len({row.id for row in MECHANISMS})
    assert numbers == sorted(numbers) and {*numbers} == {c.number for c in CHAPTERS}
    assert [row for rows in catalogue.by_part().values() for row in rows] == [*MECHANISMS]


def test_chapters_stand_in_the_folders_of_their_parts() -> None:
    """Each part's chapters stand together, in the order of the parts; no lesson is without a
    chapter, and none of a mechanism that is built is missing."""
    order = [part.id for part in PARTS]
    assert [c.number for c in CHAPTERS] == [*range(1, len(CHAPTERS) + 1)]
    assert [c.part for c in CHAPTERS] == sorted((c.part for c in CHAPTERS), key=order.index)
    assert [*dict.fromkeys(c.part for c in CHAPTERS)] == order
    lessons = {str(file.relative_to(ROOT)) for file in ROOT.glob("chapters/*/*.md")}
    assert {f"{m.document}.md" for m in MECHANISMS if m.built} <= lessons
    assert lessons <= {f"{c.document}.md" for c in CHAPTERS}


# --- built means built --------------------------------------------------------------------------


def problems(row: Mechanism, root: Path, exhibits: Container[str] = EXHIBITS) -> list[str]:
    """What a built row lacks, or a planned row has too early; empty if all is well."""
    lesson = root / f"{row.document}.md"
    page = outline(lesson.read_text("utf-8") if lesson.exists() else "")
    here = page.labelled(row.id)
    if not row.built:
        return [] if here is None else ["planned, but the chapter has a section for it"]
    found = []
    module = row.module or ""
    if not (root / (module.replace(".", "/") + ".py")).exists():
        found.append(f"no module {module}")
    if row.test is None or not (root / row.test).exists():
        found.append(f"no test {row.test}")
    if row.bibkey not in BIB:
        found.append(f"no bibliography key {row.bibkey}")
    if here is None:
        found.append(f"no section ({row.id})= in {lesson.name}")
    else:
        if row.id not in [box.argument for box in here.named("mechanism")]:
            found.append("the section lacks its card")
        if not re.search(r"\bplots\.\w+\(|\.plot\(", here.text):
            found.append("the section has no plot")
    if row.id not in exhibits:
        found.append(f"no exhibit in tfviz/exhibits/{row.part}.py")
    if not row.explorers:
        found.append("no explorer")
    for name in row.explorers:
        class_name = "".join(word.capitalize() for word in name.split("_"))
        shown = name in [box.argument for box in page.named("explorer")]
        if not shown and not re.search(rf"\b{class_name}\(", page.text):
            found.append(f"the chapter does not use the explorer {name}")
    if not row.exercises:
        found.append("no exercise")
    for label in row.exercises:
        if f":label: {label}\n" not in [box.body for box in page.named("exercise-start")]:
            found.append(f"no exercise {label} in {lesson.name}")
    return found


@pytest.mark.parametrize("row", MECHANISMS, ids=lambda row: row.id)
def test_the_status_of_a_row_is_true(row: Mechanism) -> None:
    missing = problems(row, ROOT)
    assert not missing, f"{row.id}: " + "; ".join(missing)
    if row.module:
        importlib.import_module(row.module)
        known = importlib.import_module("tfviz.explorers").ALL
        assert set(row.explorers) <= set(known)


LESSON = """\
(longformer)=
## Longformer

```{mechanism} longformer
```

plots.mask(p)
SparseLab(left=p)

```{exercise-start}
:label: ex-window
```
"""


@pytest.mark.parametrize(
    "old, new, complaint",
    [
        ("(longformer)=\n", "", "no section"),
        ("## Longformer", "Longformer", "no section"),
        ("{mechanism} longformer", "{mechanism} bigbird", "card"),
        ("plots.mask", "print", "no plot"),
        ("SparseLab", "print", "explorer"),
        ("ex-window", "ex-windows", "no exercise ex-window"),
        ("module", "", "no module"),
        ("test", "", "no test"),
        ("bibkey", "", "no bibliography key"),
        ("exhibit", "", "no exhibit in tfviz/exhibits/sparse.py"),
    ],
)
def test_the_test_notices_what_is_missing(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    row = replace(
        catalogue.get("longformer"),
        status="built",
        module="tfviz.sparse.longformer",
        explorers=("sparse_lab",),
        exercises=("ex-window",),
    )
    for name in ("chapters/sparse", "tfviz/sparse", "tests/sparse"):
        (tmp_path / name).mkdir(parents=True)
    lesson = tmp_path / "chapters/sparse/local_global.md"
    lesson.write_text(LESSON)
    (tmp_path / "tfviz/sparse/longformer.py").touch()
    (tmp_path / "tests/sparse/test_longformer.py").touch()
    assert problems(row, tmp_path) == []
    if old == "module":
        (tmp_path / "tfviz/sparse/longformer.py").unlink()
    elif old == "test":
        (tmp_path / "tests/sparse/test_longformer.py").unlink()
    elif old == "bibkey":
        row = replace(row, bibkey="nobody2020nothing")
    elif old != "exhibit":
        lesson.write_text(LESSON.replace(old, new))
    found = problems(row, tmp_path, [] if old == "exhibit" else EXHIBITS)
    assert len(found) == 1 and complaint in found[0]


def test_a_planned_row_with_a_section_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "chapters/sparse").mkdir(parents=True)
    (tmp_path / "chapters/sparse/local_global.md").write_text(LESSON)
    planned = replace(catalogue.get("longformer"), status="planned")
    assert problems(planned, tmp_path) == ["planned, but the chapter has a section for it"]


# --- papers and years ---------------------------------------------------------------------------


@pytest.mark.parametrize("row", MECHANISMS, ids=lambda row: row.id)
def test_papers_are_in_the_bibliography_with_the_same_year(row: Mechanism) -> None:
    assert int(BIB[row.bibkey].fields["year"]) == row.year
    assert {*row.also} <= BIB.keys()
    assert row.bibkey not in row.also


@pytest.mark.parametrize("key", sorted(BIB))
def test_a_key_is_surname_year_and_first_word(key: str) -> None:
    entry = BIB[key]
    title = re.sub(r'\\"|[{}]', "", entry.fields["title"])
    title = title.replace("ö", "o").lower()
    words = [w for w in re.findall(r"[a-z0-9]+", title) if w not in ("a", "an", "on", "the")]
    name = "".join(entry.persons["author"][0].last_names).lower().replace("-", "")
    keys = [name + entry.fields["year"] + word for word in words[:2]]
    assert key == keys[0] or (keys[0] in BIB and key in keys)  # two of one year that begin alike
    if eprint := entry.fields.get("eprint"):
        first_version = 2000 + int(eprint[:2])
        # the first public version, but for three papers that go by the year of their printing
        printed = {"sennrich2016neural", "guo2020multi", "wu2021da"}
        assert int(entry.fields["year"]) - first_version == (key in printed)


@pytest.mark.parametrize("row", MECHANISMS, ids=lambda row: row.id)
def test_a_row_reads_well(row: Mechanism) -> None:
    assert row.idea[0].isupper() and row.idea.endswith(".") and 40 <= len(row.idea) <= 180
    assert len(row.short) <= 16
    for latex in (row.time, row.memory):
        assert latex.count("{") == latex.count("}") and latex.count("(") == latex.count(")")
    if row.libraries:
        assert list(row.libraries) == list(catalogue.PEERS)
        assert set(row.libraries.values()) <= {"full", "partial", "none"}
    else:
        assert row.provenance == "concept"


def test_nothing_builds_on_something_younger() -> None:
    for row in MECHANISMS:
        for name in row.builds_on:
            assert catalogue.get(name).year <= row.year, (row.id, name)

    seen: dict[str, bool] = {}

    def walk(name: str) -> None:
        assert seen.get(name) is not False, f"{name} rests on itself"
        if name not in seen:
            seen[name] = False
            for parent in catalogue.get(name).builds_on:
                walk(parent)
            seen[name] = True

    for row in MECHANISMS:
        walk(row.id)


def test_counts_of_the_libraries_agree_with_the_plan() -> None:
    full = {p: sum(r.libraries.get(p) == "full" for r in MECHANISMS) for p in catalogue.PEERS}
    assert full == {
        **{"labml": 13, "lucid": 38, "HF": 31, "fairseq": 19},
        **{"t2t": 23, "xf": 19, "fast": 12},
    }


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, hint", [("longform", "longformer"), ("Big Bird", "bigbird"), ("lsh", "reformer_lsh")]
)
def test_an_unknown_id_names_near_misses(name: str, hint: str) -> None:
    with pytest.raises(KeyError, match=rf"{name}.*did you mean.*'{hint}'"):
        catalogue.get(name)


def test_a_hopeless_id_points_to_the_list() -> None:
    with pytest.raises(KeyError, match="MECHANISMS lists all"):
        catalogue.get("qqqqqqqq")


GOOD = """
[[part]]
id = "sparse"
title = "Sparse"
[[chapter]]
number = 1
part = "sparse"
stem = "local"
title = "Local"
[[mechanism]]
id = "band"
name = "Band"
short = "Band"
year = 2020
bibkey = "x2020y"
chapter = 1
changes = ["mask"]
growth = "linear"
formula = true
time = 'O(L)'
memory = 'O(L)'
provenance = "checked"
idea = "See your neighbours."
status = "planned"
"""


def test_a_file_of_one_row_loads() -> None:
    ((row,),) = [load[2:][0] for load in [catalogue.load(GOOD)]]
    assert row.document == "chapters/sparse/local" and row.module is None
    built = GOOD.replace("planned", "built") + 'explorers = ["lab"]\n'
    row = catalogue.load(built)[2][0]
    assert (row.module, row.test) == ("tfviz.sparse.band", "tests/sparse/test_band.py")
    brief = catalogue.load(GOOD + 'weight = "brief"\n')[2][0]
    assert (row.weight, brief.weight) == ("full", "brief")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('id = "band"', 'id = "Band"', "lower-case"),
        ('growth = "linear"', 'growth = "log"', "growth = 'log'"),
        ('["mask"]', '["masks"]', "changes has"),
        ('["mask"]', "[]", "changes is empty"),
        ("chapter = 1\n", 'chapter = 1\nweight = "light"\n', "weight = 'light', must be one of"),
        ("chapter = 1\n", "chapter = 2\n", "chapter = 2, must be 1 to 1"),
        ("year = 2020\n", "", "missing year"),
        ("formula", "formulas", "missing formula"),
        ('status = "planned"', 'status = "planned"\nexercises = ["a"]', "planned rows have no"),
        ('status = "planned"', 'status = "planned"\nbuilds_on = ["zz"]', "unknown"),
        ('status = "planned"', 'status = "planned"\nfull = ["keras"]', "full has"),
    ],
)
def test_a_wrong_row_is_refused(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(ValueError, match=re.escape(message)):
        catalogue.load(GOOD.replace(old, new))


def test_two_rows_with_one_id_are_refused() -> None:
    row = GOOD[GOOD.index("[[mechanism]]") :]
    with pytest.raises(ValueError, match="two rows"):
        catalogue.load(GOOD + row)
