"""Peaks that are like the first: the signals, the models, and what is stored."""

from __future__ import annotations

from typing import Any

from torch import Generator

import tfviz_lab
from tfviz.beyond_text.conformer_block import PARTS, reach
from tfviz_lab.beyond_text import attention_and_convolution as peaks


def drawn(b: int = 400) -> tuple[Any, ...]:
    return peaks.signals(b, Generator().manual_seed(0))


def test_signals_are_as_told() -> None:
    x, wanted, places, wide = drawn()
    assert x.shape == wanted.shape == (400, peaks.LENGTH)
    apart = places.diff(dim=1)
    assert (places[:, 0] == peaks.FIRST).all() and apart.min() >= peaks.GAP
    assert peaks.LENGTH - places.max() > 2 * peaks.WIDE  # no peak is cut off
    like_first = wide[:, 1:] == wide[:, :1]
    assert wanted.gather(1, places[:, 1:]).equal(like_first)
    assert not wanted.gather(1, places[:, :1]).any()
    assert (wanted.sum(1) == 3 * like_first.sum(1)).all()
    assert 0.4 < wide.float().mean() < 0.6


def test_narrow_and_wide_differ_beside_the_middle() -> None:
    x, _, places, wide = drawn()
    beside = x.gather(1, places + 3)
    assert beside[wide].mean() - beside[~wide].mean() > 0.4


def test_two_convolutions_do_not_see_the_first_peak_from_afar() -> None:
    _, last = reach(peaks.KERNEL, 2)
    assert peaks.FAR - last > peaks.WIDE  # nor much of its flank
    far = drawn()[2][:, 1:] - peaks.FIRST > peaks.FAR
    assert 0.3 < far.float().mean() < 0.9


def test_models_are_of_one_size() -> None:
    sizes = [peaks.size(peaks.finder(name)) for name in peaks.VARIANTS]
    assert max(sizes) / min(sizes) < 1.002 and abs(sizes[0] / peaks.PARAMETERS - 1) < 0.002
    assert sorted(peaks.BEFORE) == sorted(PARTS) and peaks.BEFORE != PARTS


def test_a_few_steps_repeat_exactly() -> None:
    first, again = (peaks.trained("Conformer", 1, 3) for _ in range(2))
    assert first == again and len(first["F1"]) == 1


def test_the_stored_result_has_what_the_chapter_says() -> None:
    stored = tfviz_lab.load("attention_and_convolution")
    last = {name: [curve[-1] for curve in curves] for name, curves in stored["F1"].items()}
    assert list(last) == list(peaks.VARIANTS)
    assert stored["steps"][-1] == peaks.STEPS
    assert min(last["Conformer"]) > 0.89 and max(last["Conformer"]) < 0.912
    for seed, F1 in enumerate(last["full steps"]):
        assert abs(F1 - last["Conformer"][seed]) < 0.01
    assert min(last["kernel 31"]) > 0.9
    assert sum(F1 < 0.55 for F1 in last["kernel 3"]) == 2
    assert sum(F1 < 0.5 for F1 in last["attention only"]) == 1
    assert sorted(F1 > 0.9 for F1 in last["convolution first"]) == [False, False, True]
    assert max(last["convolution only"]) < 0.54
    assert all(abs(share - 0.5) < 0.02 for share in stored["far"]["convolution only"])
    assert min(stored["near"]["convolution only"]) > 0.65
