"""Kinds whose names and texts go to pages and folders of the instructor's."""

from __future__ import annotations

from course.bad.kind import HandIn, student


@student(name="Zoë O.Hara-1 @x")
def student_with_an_unusual_name(hand_in: HandIn) -> None:
    """The student's id has all that an id may have: capitals, an accent, a space and signs."""
