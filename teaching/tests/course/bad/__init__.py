"""A class of submissions for the tests: some honest, the others as bad as we could make them.

`KINDS` is the whole class. Every kind has a name, a sentence and what each exercise must get. The
modules are the doors through which a submission comes in; `EXEMPLARS` are a small class with at
least one kind of each.
"""

from course.bad import doors, endless, honest, notebooks, reaching, values
from course.bad.kind import EXERCISES, IN, Around, HandIn, Kind, found, submit

__all__ = ["EXEMPLARS", "EXERCISES", "IN", "KINDS", "Around", "HandIn", "Kind", "door", "submit"]

_MODULES = (honest, endless, reaching, notebooks, values, doors)
KINDS: tuple[Kind, ...] = found()


def door(kind: Kind) -> str:
    """The door through which a kind comes in: the name of its module."""
    return kind.change.__module__.rpartition(".")[2]


_CHOSEN = {
    "honest_all_right": "all points, and the one whose work others are after",
    "honest_stub_only": "no points, and the feedback that others are compared with",
    "format_3": "a file that is not read, of which the instructor is told",
    "covers_the_points": "a written answer that acts in the feedback",
    "reads_the_home": "code that looks around and shows scripts; two doors share this student",
    "exits_inside_a_callback": "code that stops, renames and lies; four doors share this student",
}
_STUDENTS = {kind.student for kind in KINDS if kind.name in _CHOSEN}
EXEMPLARS = tuple(kind for kind in KINDS if kind.student in _STUDENTS)
