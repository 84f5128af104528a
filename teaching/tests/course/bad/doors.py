"""Kinds whose names and texts go to pages and folders of the instructor's."""

from __future__ import annotations

from course.bad.kind import HandIn, answer, student


@student(name="Zoë O.Hara-1 @x")
def student_with_an_unusual_name(hand_in: HandIn) -> None:
    """The student's id has all that an id may have: capitals, an accent, a space and signs."""


@answer("all")
def tabs_and_line_ends(hand_in: HandIn) -> None:
    """Brings 80,000 tabs and line ends, whose colouring would take the feedback two minutes."""
    hand_in.carry("text = '''" + "\t\n" * 40_000 + "'''")
