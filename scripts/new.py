"""Write the stubs of a mechanism, an explorer or a chapter, and say what comes next.

    python scripts/new.py mechanism linformer
    python scripts/new.py mechanism skyformer --in compressed/low_rank --bibkey chen2021skyformer
    python scripts/new.py explorer low_rank_lens
    python scripts/new.py chapter compressed/low_rank

What stands there already is never written over. What a person has to write says TODO, or fails
with a sentence that says what is missing.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from string import Template

from tfviz import catalogue
from tfviz.catalogue import Chapter

ROOT = Path(__file__).resolve().parents[1]
NAME = r"[a-z]+(_[a-z0-9]+)*"

ROOM = Template('''\
"""$about

$bibkey. TODO: the formula in the paper's letters, and where this room departs from it.
"""

from __future__ import annotations

from torch import Tensor, nn

from tfviz.cores import Where

__all__ = ["$Class", "${id}_definition"]


def ${id}_definition(
    Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The output and the weights, as literally as the formula. TODO: shapes, and "Raises …"."""
    raise NotImplementedError("$id: write its definition")


class $Class(nn.Module):
    """The same as a core: `GPT(…, core=lambda: $Class())`. TODO: its parameters."""

    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        raise NotImplementedError("$id: write its core")
''')

DOOR = Template('''\
"""Part $part: one room a mechanism."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from $module import *
else:
    from tfviz._door import lazy

    __getattr__, __dir__, __all__ = lazy(__name__)
''')

PROOF = Template('''\
"""$name. TODO: what is proven here, in one sentence."""

from __future__ import annotations

import pytest
from laws import Case
from torch import Tensor

from $module import $Class, ${id}_definition


def test_a_number_by_hand() -> None:
    pytest.fail("$id: work out one small case by hand, and compare the definition with it")


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: $Class, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """The definition with the weights of a core: the laws compare the two."""
    return ${id}_definition(Q, K, V, mask)


CASE = Case($Class, defined, mutants=[])
''')

EXPLORER = Template('''\
"""TODO: what the picture shows, in one sentence."""

from tfviz.explorers.base import Explorer, Numbers, knob


class $Class(Explorer):
    """TODO: what is drawn, and of which size."""

    label = "TODO: the picture in a few words, for those who hear it"
    rem = 25, 25, 25, 19.5, 30.6

    n = knob(8, low=1, high=24, label="keys", letter="n")
    asks = "TODO: what the reader should try first."

    def numbers(self) -> Numbers:
        """The weights of n keys that score alike."""
        return {"weights": [1 / self.n] * self.n}
''')

MODULE = """\
// TODO: how the picture comes about, in one sentence.
export default tf.explorer({
  // what Python's `numbers` gives, from the same formula
  numbers: ({ n }) => ({ weights: tf.range(n, () => 1 / n) }),
  // builds the parts once, and returns what shows a state with its numbers
  setup(app) {
    const plane = app.plane({ height: (width) => tf.clamp(width * 0.5, 200, 300) });
    app.knob("n");

    return (state, numbers) => {
      const [weight] = numbers.weights;
      plane.show({
        title: "weights of keys that score alike: drag the dot",
        label: `${state.n} keys, each with the weight ${tf.fixed(weight)}`,
        x: { from: 0.5, to: 24.5, whole: true, label: "key" },
        y: { from: 0, to: 1, label: "weight" },
        marks: [
          { bars: numbers.weights, start: 1, colour: "attention" },
          { handle: [state.n, weight], knob: "n", text: `${state.n} keys` },
        ],
      });
      app.say(`${state.n} keys share the weight: ${tf.fixed(weight)} each.`);
    };
  },
});
"""

ROW = Template("""\
[[mechanism]]
id = "$id"
name = "$name"
short = "$name"
year = $year
bibkey = "$bibkey"
chapter = $number
changes = ["scores"]
growth = "quadratic"
formula = false
time = 'O(L^2)'
memory = 'O(L^2)'
provenance = "recalled"
idea = "TODO."
status = "built"
explorers = ["$id"]
exercises = []
""")

PAPER = Template("""\
@misc{$bibkey,
  author = {TODO},
  title = {TODO},
  year = {$year},
}
""")

EXHIBIT = Template("""\
    "$id": Exhibit(
        lambda: torch.zeros(N, N),  # TODO: a picture from the mechanism's own code
        why_not="TODO: why it has no line in the race, or race=… and exactness=…",
    ),
""")

OPENING = Template("""\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# $title

% TODO: what this chapter is about, and which chapters a reader needs, in a few sentences.

```{code-cell} ipython3
import torch

from tfviz import plots

torch.manual_seed(0)
torch.set_num_threads(1);
```
""")

HEAD = """\

($id)=
## $name

```{mechanism} $id
```

### In 90 seconds

"""

FULL = """\
% TODO: the problem, a plots.schematic with shapes, one equation, and what came out. Then a
% {letters} block: a line for each letter that is not in book/notation.md.

### See it

% TODO: the explorer, what one should have seen, and what else to try.

### What breaks: TODO

% TODO: the problem in one concrete case that is small enough to print. Behind the colon of this
% heading and of those below stands what its part holds; a part that holds nothing is left out.

### Derive it: TODO

% TODO: an example with real numbers, then the equations.

### Build it

% TODO: the mechanism itself in the fewest lines, as a cell that the reader can edit and run.
% In the chapter's first section, the first exercise follows here.

### What it costs: TODO

% TODO: counted, then measured.

### When to use it: TODO

% TODO: two lines.
"""

BRIEF = """\
% TODO: the problem, a plots.schematic with shapes, and the equation, derived in a few lines. Then
% a {letters} block: a line for each letter that is not in book/notation.md.

### See it

% TODO: the explorer, what one should have seen, and what else to try.

### Build it

% TODO: the whole mechanism in the fewest lines, and one exercise.

### What became of it

% TODO: who uses it, and what replaced it.

### More: derivation, costs, measurements

% TODO: all the rest, under headings such as `#### What breaks: …`. The page folds it.
"""

SECTIONS = {"full": Template(HEAD + FULL), "brief": Template(HEAD + BRIEF)}
"""The section of a mechanism, by its weight in the catalogue."""

ENDING = """
## More exercises

% TODO: "Put yours into the model and train with it", and two that are optional.

## Five questions

% TODO: five questions, and their answers in a ```{dropdown} Answers

## Summary

% TODO: a table, and the few sentences that one should remember.

## References

% TODO: the papers, and which of their sections say what.
"""


def class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def write(root: Path, files: dict[str, str]) -> list[str]:
    """Write those of these files that are not there; a line about each."""
    lines = []
    for name, text in files.items():
        path = root / name
        if path.exists():
            lines.append(f"  is there  {name}")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")
        if path.suffix == ".py":
            subprocess.run([sys.executable, "-m", "ruff", "format", "-q", path], check=True)
        lines.append(f"  written   {name}")
    return lines


def unknown(kind: str, name: str, known: Sequence[str]) -> SystemExit:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:5]
    return SystemExit(
        f"The course has no {kind} NAME={name}. Did you mean {' or '.join(near)}? "
        "All are in tfviz/catalogue.toml; a mechanism that is not there yet needs its chapter and "
        "the key of its paper: IN=compressed/low_rank BIBKEY=wang2020linformer"
    )


def mechanism(
    name: str, root: Path = ROOT, chapter: str | None = None, bibkey: str | None = None
) -> list[str]:
    """All that a mechanism touches: its room with its line at the door of the part, its proof, its
    exhibit, an explorer, and its section.

    `name` is an id of the catalogue. What the catalogue does not know yet gets a row there, in this
    chapter, and its paper an entry in the bibliography.
    """
    rows = {row.id: row for row in catalogue.MECHANISMS}
    if name in rows:
        row = rows[name]
        lines, own = [], next(x for x in catalogue.CHAPTERS if x.number == row.chapter_number)
        values = {"name": row.name, "about": f"{row.name}: {row.idea}", "bibkey": row.bibkey}
        values["weight"] = row.weight
    elif chapter and bibkey:
        own = planned(chapter)
        year = re.search(r"^[a-z]+(\d{4})[a-z]+$", bibkey)
        if not year or not re.fullmatch(NAME, name):
            raise SystemExit(
                f"NAME={name} BIBKEY={bibkey}: write the name as in low_rank_lens, and the key as "
                "surname, year and first word of the title, such as wang2020linformer"
            )
        title = name.replace("_", " ").capitalize()
        values = {"name": title, "about": f"{title}: TODO.", "bibkey": bibkey, "year": year[1]}
        lines = planned_row(root, own, values | {"id": name})
    else:
        raise unknown("mechanism", name, list(rows))
    values |= {
        "id": name,
        "Class": class_name(name),
        "about": textwrap.fill(values["about"], 96),
        "part": next(part.title for part in catalogue.PARTS if part.id == own.part),
        "module": f"tfviz.{own.part}.{name}",
    }
    door = root / f"tfviz/{own.part}/__init__.py"
    files = {
        f"tfviz/{own.part}/{name}.py": ROOM.substitute(values),
        f"tests/{own.part}/test_{name}.py": PROOF.substitute(values),
    }
    if door.exists():
        at_the_door(door, values["module"])
    else:
        files = {f"tfviz/{own.part}/__init__.py": DOOR.substitute(values)} | files
    if not (name in rows and rows[name].explorers):
        files |= explorer_files(own.part, name)
    lines += write(root, files)
    lines += put(
        root / f"tfviz/exhibits/{own.part}.py", f'    "{name}": ', EXHIBIT.substitute(values), "}\n"
    )
    lines += section(root, own, values)
    return [*lines, "Next:", *after_a_mechanism(own, name)]


def planned_row(root: Path, own: Chapter, values: dict[str, str]) -> list[str]:
    """A row of the catalogue, after the last one of its chapter or of those before, and an entry of
    the bibliography."""
    file = root / "tfviz/catalogue.toml"
    later = [row.id for row in catalogue.MECHANISMS if row.chapter_number > own.number]
    row = ROW.substitute(values, number=own.number)
    next_one = rf'(# .*\n\n)?\[\[mechanism\]\]\nid = "{later[0]}"\n' if later else r"\Z"
    found = re.search(next_one, file.read_text("utf8")) if file.exists() else None
    before = found[0] if found else ""
    lines = put(file, f'\nid = "{values["id"]}"\n', f"{row}\n", before)
    papers = root / "book/references.bib"
    paper = f"\n{PAPER.substitute(values)}"
    return lines + put(papers, f"{{{values['bibkey']},", paper)


def put(file: Path, known: str, text: str, before: str = "") -> list[str]:
    """Write `text` into a file that lacks `known`: before the last `before`, or at the end."""
    name = "/".join(file.parts[-3:] if "chapters" in file.parts else file.parts[-2:])
    if not file.exists():
        return [f"  lacks     {name}, which is not there"]
    whole = file.read_text("utf8")
    if known in whole:
        return [f"  is there  in {name}"]
    at = whole.rindex(before) if before else len(whole)
    file.write_text(whole[:at] + text + whole[at:], "utf8")
    return [f"  written   in {name}"]


def section(root: Path, own: Chapter, values: dict[str, str]) -> list[str]:
    """The section of a mechanism at the end of its chapter, which is written if it is not there."""
    text = SECTIONS[values.get("weight", "full")].substitute(values)
    name = f"{own.document}.md"
    if (root / name).exists():
        return put(root / name, f"({values['id']})=\n", text + "\n", "## More exercises\n")
    contents(own, root / "_toc.yml")
    return write(root, {name: OPENING.substitute(title=own.title) + text + ENDING})


def at_the_door(door: Path, module: str) -> None:
    """Name a room in the package of its part, which then offers what the room's `__all__` lists."""
    line, text = f"    from {module} import *\n", door.read_text("utf8")
    rooms = re.findall(r"^    from [\w.]+ import \*\n", text, re.M)
    if line in rooms:
        return
    after = next((room for room in rooms if room > line), "else:\n")
    door.write_text(text.replace(after, line + after, 1), "utf8")


def after_a_mechanism(own: Chapter, name: str) -> list[str]:
    return [
        f"  1. Write tfviz/{own.part}/{name}.py: the definition, then the core.",
        f"  2. pytest tests/{own.part}/test_{name}.py says what must be proven.",
        f"  3. pytest tests/test_laws.py -k {name} takes the core through the laws, by its CASE.",
        f"  4. Its row in tfviz/catalogue.toml, its paper in book/references.bib, its exhibit in "
        f"tfviz/exhibits/{own.part}.py: write what says TODO.",
        f"  5. Its explorer, tfviz/explorers/{own.part}/…, in `make lab`.",
        f"  6. Its section, and an exercise: make chapter C={own.part}/{own.stem} builds it and "
        "says what it lacks.",
        f"  7. pytest tests/test_catalogue.py tests/test_family.py -k '{name} or races' says what "
        "is still missing.",
    ]


def explorer_files(part: str, name: str) -> dict[str, str]:
    return {
        f"tfviz/explorers/{part}/{name}.py": EXPLORER.substitute(Class=class_name(name)),
        f"tfviz/explorers/{part}/{name}.js": MODULE,
    }


def explorer(place: str, root: Path = ROOT) -> list[str]:
    """An explorer that works, of one knob and one picture."""
    part, _, name = place.partition("/")
    parts = [x.id for x in catalogue.PARTS]
    if part not in parts or not re.fullmatch(NAME, name):
        raise SystemExit(
            f"NAME={place} is no part with a module; write it as in compressed/low_rank_lens "
            f"(the parts are {', '.join(parts)})"
        )
    lines = write(root, explorer_files(part, name))
    return [
        *lines,
        "Next:",
        f"  1. Look at it in `make lab`: tfviz.explorers.{class_name(name)}()",
        "  2. Replace the knob, the numbers in both files and the picture, with the kit's tables "
        "in tfviz/explorers/kit/README.md.",
        f"  3. pytest tests/test_knobs.py tests/browser/test_every_explorer.py -k {name}",
    ]


def planned(name: str) -> Chapter:
    """The chapter of the course with this name, such as compressed/low_rank."""
    chapters = {f"{x.part}/{x.stem}": x for x in catalogue.CHAPTERS}
    if name not in chapters:
        raise unknown("chapter", name, list(chapters))
    return chapters[name]


def chapter(name: str, root: Path = ROOT) -> list[str]:
    """A chapter with a section for each of its mechanisms that has a room, or for all where none
    has one yet, and its line in the contents."""
    own = planned(name)
    rows = [row for row in catalogue.MECHANISMS if row.chapter_number == own.number]
    ready = [row for row in rows if (root / f"tfviz/{row.part}/{row.id}.py").exists()]
    rows = ready or rows
    sections = [SECTIONS[row.weight].substitute(id=row.id, name=row.name) for row in rows]
    text = OPENING.substitute(title=own.title) + "".join(sections) + ENDING
    lines = write(root, {f"chapters/{name}.md": text})
    contents(own, root / "_toc.yml")
    return [
        *lines,
        "  in        _toc.yml",
        "Next:",
        f"  1. make chapter C={name} builds it, says where it is, and what it still lacks.",
        "  2. An exercise: see docs/reference.md; chapters/basics/attention.md has each kind.",
    ]


def contents(own: Chapter, file: Path) -> None:
    """Put the chapter into the table of contents, in the order of the course."""
    text = file.read_text("utf8")
    entry = f"      - file: chapters/{own.part}/{own.stem}\n"
    if entry in text:
        return
    before = [x for x in catalogue.CHAPTERS if x.part == own.part and x.number < own.number]
    known = [f"      - file: chapters/{x.part}/{x.stem}\n" for x in before]
    there = [line for line in known if line in text]
    if there:
        text = text.replace(there[-1], there[-1] + entry)
    elif first := re.search(rf"^      - file: chapters/{own.part}/", text, re.M):
        text = text[: first.start()] + entry + text[first.start() :]
    else:
        title = next(part.title for part in catalogue.PARTS if part.id == own.part)
        head = f"  - caption: {title}\n    numbered: 2\n    chapters:\n"
        place = text.index("  - caption: The whole family\n")
        text = text[:place] + head + entry + text[place:]
    file.write_text(text, "utf8")


KINDS = {"explorer": explorer, "chapter": chapter}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=["mechanism", *KINDS])
    parser.add_argument(
        "name", help="such as linformer, compressed/low_rank_lens or compressed/low_rank"
    )
    parser.add_argument(
        "--in", dest="chapter", help="of a new mechanism, such as compressed/low_rank"
    )
    parser.add_argument("--bibkey", help="of its paper, such as wang2020linformer")
    given = parser.parse_args()
    if given.kind == "mechanism":
        lines = mechanism(given.name, chapter=given.chapter, bibkey=given.bibkey)
    else:
        lines = KINDS[given.kind](given.name)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
