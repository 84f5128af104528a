"""The store of what was built and proven: what is not whole, or not meant, is not found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfviz_lessons.kept import Kept, digest


def test_a_group_holds_for_one_digest(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "kept")
    assert kept.record("a/b") is None and not kept.holds("a/b", "1")
    kept.keep("a/b", "1", seconds=3)
    assert kept.holds("a/b", "1") and not kept.holds("a/b", "2")
    assert kept.record("a/b") == {"group": "a/b", "digest": "1", "seconds": 3}
    assert not kept.holds("a b", "1")  # a name that would be written alike
    kept.keep("a/b", "2")
    assert kept.holds("a/b", "2") and list(kept.groups()) == ["a/b"]
    kept.forget("a/b")
    kept.forget("a/b")
    assert not kept.holds("a/b", "2") and not list(kept.groups())


def test_what_was_stopped_on_the_way_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            kept.keep("a", "1")
    assert not kept.holds("a", "1") and not list(tmp_path.iterdir())
    kept.keep("a", "1")
    whole = kept.place("a").read_text("utf-8")
    for broken in ("", whole[:-5], "[]", '{"group": "b", "digest": "1"}', "\0" * len(whole)):
        kept.place("a").write_text(broken, "utf-8")
        assert not kept.holds("a", "1")


def test_fresh_knows_only_what_is_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Kept(tmp_path).keep("old", "1")
    monkeypatch.setenv("FRESH", "1")
    kept = Kept(tmp_path)
    assert not kept.holds("old", "1")
    kept.keep("new", "1")
    assert kept.holds("new", "1")
    monkeypatch.setenv("FRESH", "0")
    assert Kept(tmp_path).holds("old", "1") and Kept(tmp_path).holds("new", "1")


def test_no_two_things_have_one_digest(tmp_path: Path) -> None:
    empty, gone, full = tmp_path / "empty", tmp_path / "gone", tmp_path / "full"
    empty.touch()
    full.write_text("ab")
    every = [
        digest("ab", "c"),
        digest("a", "bc"),
        digest("abc"),
        digest(),
        digest(""),
        digest(gone),
        digest(full),
        digest({"a": "b"}),
    ]
    assert len(set(every)) == len(every)
    assert digest(empty) == digest("") and digest(full) == digest("ab")
    assert digest({"a": "1", "b": "2"}) == digest({"b": "2", "a": "1"})
