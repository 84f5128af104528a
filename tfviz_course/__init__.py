"""Teach with the course: assignments from its lessons, safe grading, results of a class.

The command is ``tfviz-course``; it works in a clone of the course, because the lessons are there.
Students need none of this, only `tfviz`.
"""

import sys

# What checks notebooks (jsonschema, below nbformat) would spend two seconds, in every process, on a
# grammar of web addresses that no notebook needs; it does without where this cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
