"""A class of submissions for the tests: some honest, the others as bad as we could make them.

`KINDS` is the whole class. Every kind has a name, a sentence and what each exercise must get.
"""

from course.bad import doors, endless, honest, notebooks, reaching, values
from course.bad.kind import EXERCISES, IN, Around, HandIn, Kind, found, submit

__all__ = ["EXERCISES", "IN", "KINDS", "Around", "HandIn", "Kind", "submit"]

_MODULES = (honest, endless, reaching, notebooks, values, doors)
KINDS: tuple[Kind, ...] = found()
