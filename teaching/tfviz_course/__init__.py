"""Teach with the course: assignments from its lessons, safe grading, results of a class.

The command is ``tfviz-course``; it works in a clone of the course, because the lessons are there.
Students need none of this, only `tfviz`.
"""


class CourseError(Exception):
    """Why something cannot be done or go on, with the remedy; nothing that is done is lost."""
