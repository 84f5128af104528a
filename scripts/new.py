"""Write the stubs of a mechanism, an explorer or a chapter, and say what comes next.

    python scripts/new.py mechanism linformer
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
from tfviz.catalogue import Chapter, Mechanism

ROOT = Path(__file__).resolve().parents[1]

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
    rem = 38, 52

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

SECTION = Template("""\

($id)=
## $name

```{mechanism} $id
```

### In 90 seconds

% TODO: the problem, a plots.schematic with shapes, one equation, and what came out. Then a
% {letters} block: a line for each letter that is not in book/notation.md.

### See it

% TODO: the explorer, what one should have seen, and what else to try.

### What breaks

% TODO: the problem in one concrete case that is small enough to print.

### Derive it

% TODO: an example with real numbers, then the equations.

### Build it

% TODO: the mechanism itself in the fewest lines, as a cell that the reader can edit and run.
% In the chapter's first section, the first exercise follows here.

### What it costs, and does it hold

% TODO: counted, then measured.

### When would I use it?

% TODO: two lines.
""")

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
        "All are in tfviz/catalogue.toml; what is not planned there gets a row first."
    )


def mechanism(name: str, root: Path = ROOT) -> list[str]:
    """The room of a mechanism and its proof. `name` is an id of the catalogue."""
    rows = {row.id: row for row in catalogue.MECHANISMS}
    if name not in rows:
        raise unknown("mechanism", name, list(rows))
    row = rows[name]
    values = {
        "id": name,
        "Class": class_name(name),
        "name": row.name,
        "part": row.part_title,
        "about": textwrap.fill(f"{row.name}: {row.idea}", 96),
        "bibkey": row.bibkey,
        "module": f"tfviz.{row.part}.{name}",
    }
    door = root / f"tfviz/{row.part}/__init__.py"
    files = {
        f"tfviz/{row.part}/{name}.py": ROOM.substitute(values),
        f"tests/{row.part}/test_{name}.py": PROOF.substitute(values),
    }
    if door.exists():
        at_the_door(door, values["module"])
    else:
        files = {f"tfviz/{row.part}/__init__.py": DOOR.substitute(values)} | files
    return [*write(root, files), "Next:", *after_a_mechanism(row)]


def at_the_door(door: Path, module: str) -> None:
    """Name a room in the package of its part, which then offers what the room's `__all__` lists."""
    line, text = f"    from {module} import *\n", door.read_text("utf8")
    rooms = re.findall(r"^    from [\w.]+ import \*\n", text, re.M)
    if line in rooms:
        return
    after = next((room for room in rooms if room > line), "else:\n")
    door.write_text(text.replace(after, line + after, 1), "utf8")


def after_a_mechanism(row: Mechanism) -> list[str]:
    return [
        f"  1. Write tfviz/{row.part}/{row.id}.py: the definition, then the core.",
        f"  2. pytest tests/{row.part}/test_{row.id}.py says what must be proven.",
        f"  3. pytest tests/test_laws.py -k {row.id} takes the core through the laws, by its CASE.",
        f"  4. make new KIND=chapter NAME={row.part}/{row.chapter}, if it is not there; then "
        f"make new KIND=explorer NAME={row.part}/…",
        f"  5. Give it an exhibit in tfviz/exhibits/{row.part}.py: picture and race.",
        f'  6. Say status = "built" in the row {row.id} of tfviz/catalogue.toml: '
        "pytest tests/test_catalogue.py says what is still missing.",
    ]


def explorer(place: str, root: Path = ROOT) -> list[str]:
    """An explorer that works, of one knob and one picture."""
    part, _, name = place.partition("/")
    parts = [x.id for x in catalogue.PARTS]
    if part not in parts or not re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", name):
        raise SystemExit(
            f"NAME={place} is no part with a module; write it as in compressed/low_rank_lens "
            f"(the parts are {', '.join(parts)})"
        )
    files = {
        f"tfviz/explorers/{part}/{name}.py": EXPLORER.substitute(Class=class_name(name)),
        f"tfviz/explorers/{part}/{name}.js": MODULE,
    }
    lines = write(root, files)
    return [
        *lines,
        "Next:",
        f"  1. Look at it in `make lab`: tfviz.explorers.{class_name(name)}()",
        "  2. Replace the knob, the numbers in both files and the picture, with the kit's tables "
        "in tfviz/explorers/kit/README.md.",
        f"  3. pytest tests/test_knobs.py tests/browser/test_every_explorer.py -k {name}",
    ]


def chapter(name: str, root: Path = ROOT) -> list[str]:
    """A chapter with a section for each of its mechanisms that has a room, or for all where none
    has one yet, and its line in the contents."""
    chapters = {f"{x.part}/{x.stem}": x for x in catalogue.CHAPTERS}
    if name not in chapters:
        raise unknown("chapter", name, list(chapters))
    own = chapters[name]
    rows = [row for row in catalogue.MECHANISMS if row.chapter_number == own.number]
    ready = [row for row in rows if (root / f"tfviz/{row.part}/{row.id}.py").exists()]
    rows = ready or rows
    sections = [SECTION.substitute(id=row.id, name=row.name) for row in rows]
    text = OPENING.substitute(title=own.title) + "".join(sections) + ENDING
    lines = write(root, {f"chapters/{name}.md": text})
    contents(own, root / "_toc.yml")
    return [
        *lines,
        "  in        _toc.yml",
        "Next:",
        f"  1. make chapter C={name} builds it, says where it is, and what it still lacks.",
        "  2. An exercise: see CONTRIBUTING.md; chapters/basics/attention.md has one of each kind.",
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


KINDS = {"mechanism": mechanism, "explorer": explorer, "chapter": chapter}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument(
        "name", help="such as linformer, compressed/low_rank_lens or compressed/low_rank"
    )
    given = parser.parse_args()
    print("\n".join(KINDS[given.kind](given.name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
