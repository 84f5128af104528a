"""What course.toml says beside name, seed and secret: the rule for late work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from course.classroom import SECRET

from tfviz_course import CourseError
from tfviz_course.settings import DAY, HOUR, Rule, read_course

RULE = Rule(grace_hours=2, free_days=3, per_day=0.1, most_days=5)


def course(folder: Path, text: str) -> Path:
    whole = f'name = "NLP"\nseed = 1\nsecret = "{SECRET}"\n{text}'
    (folder / "course.toml").write_text(whole, "utf8")
    return folder


def test_days_begin_after_the_grace() -> None:
    grace = 2 * HOUR
    late = [0, 1, grace, grace + 1, grace + DAY, grace + DAY + 1]
    assert [RULE.days(seconds) for seconds in late] == [0, 0, 0, 1, 1, 2]
    assert [Rule().days(seconds) for seconds in (0, 1, DAY, DAY + 1)] == [0, 1, 1, 2]


def test_free_days_are_taken_first() -> None:
    late = [days * DAY for days in range(7)]
    rule = RULE._replace(grace_hours=0)
    assert [rule.share(one) for one in late] == pytest.approx([0, 0, 0, 0, 0.1, 0.2, 1])
    assert [rule.share(late[2], [late[n]]) for n in range(6)] == pytest.approx(
        [0, 0, 0.1, 0.2, 0.2, 0.2]
    )
    assert rule.share(late[3], [late[6]]) == 0  # what came too late took no free day
    assert rule.share(late[3], [late[1], late[1]]) == pytest.approx(0.2)


def test_a_rule_without_a_last_day_takes_no_more_than_all() -> None:
    assert Rule(per_day=0.4).share(2 * DAY) == 0.8
    assert Rule(per_day=0.4).share(3 * DAY) == Rule(per_day=0.4).share(99 * DAY) == 1
    assert Rule(most_days=0).share(1) == 1 and Rule(most_days=0).share(0) == 0
    assert Rule().share(99 * DAY) == 0


def test_the_rule_is_read(tmp_path: Path) -> None:
    assert read_course(course(tmp_path, "")).late is None
    text = "[late]\ngrace_hours = 2\nfree_days = 3\nper_day = 0.1\nmost_days = 5\n"
    assert read_course(course(tmp_path, text)).late == RULE
    assert read_course(course(tmp_path, "[late]\nper_day = 1\n")).late == Rule(per_day=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[late]\nper_day = 10\n", "late.per_day = 10; give the share of the points that a day"),
        ("[late]\nper_day = '10 %'\n", "late.per_day = '10 %'; give the share"),
        ("[late]\nper_day = nan\n", "late.per_day = nan; give the share"),
        ("[late]\nper_day = true\n", "late.per_day = True; give the share"),
        ("[late]\ngrace_hours = -1\n", "late.grace_hours = -1; give a number of hours, 0 or more"),
        ("[late]\ngrace_hours = inf\n", "late.grace_hours = inf; give a number of hours"),
        ("[late]\nfree_days = 1.5\n", "late.free_days = 1.5; give a whole number of days"),
        ("[late]\nmost_days = -1\n", "late.most_days = -1; give a whole number of days"),
        ("[late]\ngrace = 2\n", "late.grace is not a setting; did you mean late.grace_hours?"),
        ("[late]\nx = 2\n", "late.x is not a setting; the settings are grace_hours, free_days"),
        ("late = 0.1\n", "late = 0.1; write a table: [late], and below it"),
        ("[Late]\nper_day = 0.1\n", "Late is not a setting; did you mean late?"),
        ("per_day = 0.1\n", "per_day is not a setting; the settings are name, seed, secret"),
    ],
)
def test_what_is_wrong_with_it_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=re.escape(said)) as error:
        read_course(course(tmp_path, text))
    assert str(error.value).startswith(f"{tmp_path / 'course.toml'}")
