"""A browser that hangs is given up soon, and later where others work."""

from __future__ import annotations

import os

import patience
import pytest


@pytest.mark.parametrize(("load", "limit"), [(0.1, 45), (2, 45), (4, 90), (100, 135)])
def test_the_limit_grows_with_the_load_and_ends(
    monkeypatch: pytest.MonkeyPatch, load: float, limit: float
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0, 0), raising=False)
    assert patience.seconds(45) == limit and patience.milliseconds(45) == 1000 * limit


def test_where_nobody_knows_the_load_it_is_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getloadavg", raising=False)
    assert patience.seconds(45) == 135
