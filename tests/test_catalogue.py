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

ROOT = Path(__file__).parents[1]
BIB = parse_file(str(ROOT / "book/references.bib")).entries

# chapter number -> ids, typed from the plan of the course
PLAN = {
    1: "soft_dictionary additive_attention scaled_dot_product_attention",
    2: "multi_head_attention",
    3: "token_embedding pointwise_mlp residual_connection layer_norm_pre_post",
    4: "encoder_decoder causal_masking lm_objectives",
    5: "alrfou_auxiliary_losses",
    6: "kv_cache decoding_strategies",
    7: "sinusoidal_pe learned_pe",
    8: "shaw_relative xl_relative",
    9: "rope",
    10: "transformer_xl_recurrence compressive_transformer",
    11: "knn_lm spalm memorizing_transformer",
    12: "da_transformer alibi",
    13: "universal_transformer ut_time_position_signal act ut_act",
    14: "adaptive_span dynamic_span multi_scale_transformer",
    15: "depth_adaptive_training depth_classifiers calm_confidence ltt_calibration",
    16: "atomic_patterns image_transformer_1d image_transformer_2d",
    17: "sparse_transformer_strided sparse_transformer_fixed sparse_transformer_usage"
    " blockwise_attention",
    18: "etc longformer bigbird bp_transformer",
    19: "reformer_lsh reversible_residual chunked_feedforward",
    20: "routing_transformer sac sparse_sinkhorn",
    21: "linformer linformer_sharing lowrank_plus_band nystromformer csalr",
    22: "linear_transformer rfa rfa_causal performer",
    23: "clustered_attention informer",
    24: "memory_compressed_attention set_transformer luna poolingformer",
    25: "localness_gaussian gaussian_transformer",
    26: "realformer lazyformer predictive_attention camtl_prior",
    27: "average_attention hard_coded_gaussian synthesizer",
    28: "disagreement_regularization guided_attention talking_heads collaborative_heads",
    29: "routing_heads_dynamic routing_heads_em multi_query_attention grouped_query_attention"
    " decoupled_head_size",
    30: "vit_patches conformer_block tokenise_anything",
    31: "gtrxl decision_transformer",
    32: "efficiency_tradeoffs",
}
FOLDERS = {
    "basics": "attention multi_head block encoder_decoder auxiliary_losses generation",
    "position": "absolute relative rotary",
    "longer_context": "context_memory external_memory distance_scores recurrence",
    "adaptive": "span depth",
    "sparse": "local factorized local_global hashing routing",
    "compressed": "low_rank kernels prototypes memory",
    "priors": "locality layers_and_tasks prior_only",
    "heads": "behaviour aggregation",
    "beyond_text": "modalities reinforcement_learning tradeoffs",
}


def test_every_mechanism_of_the_plan_has_one_row_in_its_chapter() -> None:
    found: dict[int, set[str]] = {}
    for row in MECHANISMS:
        found.setdefault(row.chapter_number, set()).add(row.id)
    assert found == {number: set(ids.split()) for number, ids in PLAN.items()}
    assert len(MECHANISMS) == len({row.id for row in MECHANISMS}) == 93
    assert [row.chapter_number for row in MECHANISMS] == sorted(
        row.chapter_number for row in MECHANISMS
    )


def test_chapters_stand_where_the_design_puts_them() -> None:
    assert [part.id for part in PARTS] == list(FOLDERS)
    assert [c.number for c in CHAPTERS] == list(range(1, 33))
    for part, stems in FOLDERS.items():
        assert [c.stem for c in CHAPTERS if c.part == part] == stems.split()
    assert {part: len(rows) for part, rows in catalogue.by_part().items()} == {
        part: sum(len(PLAN[c.number].split()) for c in CHAPTERS if c.part == part)
        for part in FOLDERS
    }


# --- built means built --------------------------------------------------------------------------


def section(row: Mechanism, text: str) -> str | None:
    """The lesson's text from the label of this mechanism to that of the next one."""
    start = re.search(rf"^\({row.id}\)=\n#+ ", text, re.M)
    if start is None:
        return None
    others = "|".join(m.id for m in MECHANISMS if m.id != row.id)
    end = re.search(rf"^\((?:{others})\)=$", text[start.end() :], re.M)
    return text[start.start() : start.end() + end.start() if end else None]


def problems(row: Mechanism, root: Path, exhibits: Container[str] = EXHIBITS) -> list[str]:
    """What a built row lacks, or a planned row has too early; empty if all is well."""
    lesson = root / f"{row.document}.md"
    text = lesson.read_text("utf-8") if lesson.exists() else ""
    here = section(row, text)
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
        if f"```{{mechanism}} {row.id}\n" not in here:
            found.append("the section lacks its card")
        if not re.search(r"\bplots\.\w+\(|\.plot\(", here):
            found.append("the section has no plot")
    if row.id not in exhibits:
        found.append(f"no exhibit in tfviz/exhibits/{row.part}.py")
    if not row.explorers:
        found.append("no explorer")
    for name in row.explorers:
        class_name = "".join(word.capitalize() for word in name.split("_"))
        if not re.search(rf"\b{class_name}\(|```{{explorer}} {name}\b", text):
            found.append(f"the chapter does not use the explorer {name}")
    if not row.exercises:
        found.append("no exercise")
    for label in row.exercises:
        if not re.search(rf"^```{{exercise-start}}.*\n:label: {label}$", text, re.M):
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


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('id = "band"', 'id = "Band"', "lower-case"),
        ('growth = "linear"', 'growth = "log"', "growth = 'log'"),
        ('["mask"]', '["masks"]', "changes has"),
        ('["mask"]', "[]", "changes is empty"),
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
