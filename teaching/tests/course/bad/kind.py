"""What a kind of submission is, and the folder of a student in the making.

A kind is a function that changes a submission in which everything is right. Its docstring is the
sentence that says what it does; the decorator says what it gets.
"""

from __future__ import annotations

import copy
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

EXERCISES = {
    "sharpness": "ex-sharpness",
    "loops": "ex-attention-loops",
    "order": "ex-order",
    "row": "ex-one-row",
    "hops": "ex-two-hops",
    "written": "ex-repair",
}
BOTH = ("attention", "factorized")
IN = {
    "attention": ("sharpness", "loops", "order", "row", "written"),
    "factorized": ("hops",),
}
FREE = ("ex-sharpness", "ex-attention-loops", "ex-order", "ex-one-row")
# What an exercise may get: all its points, those of the visible or of the hidden tests only, none;
# a written answer waits for a person.
GETS = ("all", "checks", "hidden", "none", "waits")

# Every loop and every process of a dangerous kind looks at this and ends by itself.
BOUND = 300
UNTIL = f"import time\nend = time.monotonic() + {BOUND}\n"

# The word is put together where it is printed, so that the source of a submission lacks it.
TOLD = "LEAKED-BY-A-SUBMISSION"
TELL = """
def tell(what):
    print("LEAKED" + "-BY-A-SUBMISSION", what)
def attempt(action):
    try:
        return action()
    except BaseException:
        return None
"""

SHARPNESS = """\
def beta_for(share, slots):
    return math.log((slots - 1) * share / (1 - share))
"""
LOOPS = """\
def my_attention(Q, K, V, allowed):
    A = torch.zeros(len(Q), len(K), dtype=Q.dtype)
    for i in range(len(Q)):
        keys = [j for j in range(len(K)) if allowed[i, j]]
        if keys:
            A[i, keys] = torch.softmax(K[keys] @ Q[i] / math.sqrt(Q.shape[1]), 0)
    return A @ V, A
"""
ORDER = """\
def order(f, X):
    def same(a, b):
        return a.shape == b.shape and float((a - b).abs().max()) < 1e-4

    shuffles = [torch.randperm(len(X)) for _ in range(20)]
    if all(same(f(X[p]), f(X)) for p in shuffles):
        return "invariant"
    return "equivariant" if all(same(f(X[p]), f(X)[p]) for p in shuffles) else "neither"
"""
ROW = """\
def slope_of_favourite(g, n):
    a = 1 / (1 + (n - 1) * math.exp(-g))
    return a * (1 - a)

best_lead = math.log(keys - 1)
"""
HOPS = """\
lab = SparseLab(
    left=patterns.sliding_window(lookback=side - 1),
    right=patterns.column(stride=side),
    L=side**2,
    stack="AB",
    goal={"L": side**2, "causal": True, "max_hops": 2, "max_keys": side},
)
"""
WRITTEN = "On paper she is right: the sum over all keys cancels. Without any key it is 0 / 0."
RIGHT = {
    "ex-sharpness": SHARPNESS,
    "ex-attention-loops": LOOPS,
    "ex-order": ORDER,
    "ex-one-row": ROW,
    "ex-two-hops": HOPS,
    "ex-repair": WRITTEN,
}


@dataclass(frozen=True)
class Around:
    """What is outside a sandbox and must stay as it is; kinds get its paths and try."""

    course: Path  # the course folder, with the real gradebook.db
    assignment: str
    witness: Path  # a folder in which nothing may appear and nothing vanish
    home: Path  # HOME of who grades, with a file `private.txt`
    chapters: Path  # the lessons, with all solutions
    repository: Path
    victim: str  # another student
    port: int  # where the test listens on loopback
    abstract: str  # name of an abstract socket on which the test listens

    @property
    def gradebook(self) -> Path:
        return self.course / "gradebook.db"


@dataclass
class HandIn:
    """One student's submission: all right at first, in the notebooks that were released."""

    student: str
    around: Around
    release: Mapping[str, Mapping[str, Any]]
    folder: Path
    notebooks: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)  # written as they are
    carrier: str = "ex-sharpness"  # where a kind does what it could do in any exercise

    def take(self, *names: str) -> None:
        """Begin with these notebooks of the release, answers filled in."""
        self.notebooks = {f"{name}.ipynb": copy.deepcopy(self.release[name]) for name in names}
        for notebook in self.notebooks.values():
            for cell in notebook["cells"]:
                label = cell["metadata"].get("tfviz", {}).get("exercise")
                if label in RIGHT and cell["metadata"]["tfviz"]["role"] == "yours":
                    self.answer(label, RIGHT[label])

    @property
    def notebook(self) -> dict[str, Any]:
        """The notebook of chapter 1, in which most kinds do what they do."""
        return self.notebooks["attention.ipynb"]

    def cell(self, grade_id: str) -> dict[str, Any]:
        for notebook in self.notebooks.values():
            for cell in notebook["cells"]:
                if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id:
                    return cell
        raise KeyError(f"{grade_id!r} is in no notebook of {self.student}")

    def answer(self, label: str, source: str) -> None:
        """Write `source` below the marker line of the exercise."""
        cell = self.cell(f"{label}-yours")
        source = textwrap.dedent(source)
        if cell["cell_type"] == "code":
            source = f"{marker(label)}\n{source}"
        else:
            source = f"<!-- exercise: {label}  (keep this line) -->\n\n{source}"
        cell["source"] = source

    def carry(self, before: str = "", inside: str = "", label: str = "") -> None:
        """A right answer with more at its top, or in its function.

        It is the answer to `label`, or to the exercise that this kind was given.
        """
        label = label or self.carrier
        head, body = RIGHT[label].split("\n", 1)
        inside = textwrap.indent(textwrap.dedent(inside), "    ")
        self.answer(label, f"{textwrap.dedent(before)}\n{head}\n{inside}\n{body}")

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, notebook in self.notebooks.items():
            (self.folder / name).write_text(json.dumps(notebook, indent=1), "utf-8")
        for name, data in self.files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(data)


def marker(label: str) -> str:
    return f"# exercise: {label}  (keep this line)"


@dataclass(frozen=True)
class Kind:
    """A kind of submission: what it does in one sentence, and what it must get for that."""

    name: str
    sentence: str
    expectation: Mapping[str, str]  # exercise -> one of GETS
    change: Callable[[HandIn], None]
    student: str  # name of the folder
    honest: bool = False
    notebooks: tuple[str, ...] = ("attention",)  # those that are handed in
    whole: bool = True  # a submission of its own; else one answer among others
    remark: str = ""  # what the instructor's remarks must contain
    carrier: str = "ex-sharpness"


Change = Callable[[HandIn], None]
_found: dict[str, Kind] = {}
_needs: dict[str, tuple[str, bool]] = {}  # name -> what it gets in any exercise, or alone


def student(
    *,
    every: str = "",
    honest: bool = False,
    remark: str = "",
    name: str = "",
    notebooks: tuple[str, ...] = ("attention",),
    **gets: str,
) -> Callable[[Change], Change]:
    """Register a function as a kind that is a whole submission.

    What is not named gets all its points: `sharpness="none"` is an answer lost and the others kept.
    `every` is for all exercises. Those of a notebook that is not handed in get nothing.
    """

    def register(change: Change) -> Change:
        usual = dict.fromkeys(EXERCISES, every or "all")
        usual["written"] = "none" if every == "none" else "waits"
        for notebook, names in IN.items():
            if notebook not in notebooks:
                usual |= dict.fromkeys(names, "none")
        more = {"honest": honest, "notebooks": notebooks, "remark": remark}
        _add(change, usual | gets, name or change.__name__, **more)
        return change

    return register


def answer(
    free: str = "", *, alone: bool = False, remark: str = "", **gets: str
) -> Callable[[Change], Change]:
    """Register a function as a kind that needs one answer, or some.

    `free` is what it gets if it does not matter which exercise carries it; else `gets` names the
    exercises. Several kinds share a student, for the start of a sandbox takes seconds, unless one
    spoils what other answers rely on: then it must be `alone`.
    """

    def register(change: Change) -> Change:
        _needs[change.__name__] = (free, alone)
        _add(change, gets, remark=remark, whole=False)
        return change

    return register


def _add(change: Change, gets: Mapping[str, str], student: str = "", **more: Any) -> None:
    if unknown := set(gets.values()) - set(GETS):
        raise ValueError(f"{change.__name__} gets {unknown}, not one of {GETS}")
    expectation = {EXERCISES[name]: result for name, result in gets.items()}
    sentence = " ".join((change.__doc__ or "").split())
    _found[change.__name__] = Kind(change.__name__, sentence, expectation, change, student, **more)


def found() -> tuple[Kind, ...]:
    """All kinds that are registered, in their order; those that are one answer share students."""
    free_last = sorted(_needs, key=lambda name: bool(_needs[name][0]))
    packs: dict[str, list[str]] = {}  # student -> exercises that are left
    for name in free_last:
        kind, (free, alone) = _found[name], _needs[name]
        fits = [
            student
            for student, left in packs.items()
            if not alone and (left if free else set(kind.expectation) <= set(left))
        ]
        place = fits[0] if fits else name
        left = packs.setdefault(place, list(FREE))
        expectation = {left[0]: free} if free else kind.expectation
        packs[place] = [] if alone else [label for label in left if label not in expectation]
        carrier = next(iter(expectation))
        _found[name] = replace(kind, expectation=expectation, student=place, carrier=carrier)
    return tuple(_found.values())


def submit(kinds: Sequence[Kind], hand_in: HandIn) -> None:
    """Make the submission that holds these kinds, which share a student."""
    hand_in.take(*kinds[0].notebooks)
    for kind in kinds:
        hand_in.carrier = kind.carrier
        kind.change(hand_in)
    hand_in.write()
