"""What remains after the survey: the pictures hold what their formulas and captions say."""

from __future__ import annotations

import re
from pathlib import Path

import heirs
import pytest
import torch

from tfviz import catalogue, patterns
from tfviz_lessons.outline import outline_of

SECTIONS = outline_of(Path(__file__).parents[2] / "book/after_the_survey.md").parts


def test_each_heir_has_a_formula_a_picture_a_source_and_a_beginning() -> None:
    assert len(SECTIONS) == 7
    drawn = []
    for section in SECTIONS:
        title, text = section.title, section.text
        assert "\n$$\n" in text and "{cite:p}`" in text, title
        drawn += [box.argument for box in section.named("heir")]
        (begins,) = re.findall(r"^\*\*Begins with\*\* (.+)$", text, re.M)
        where = re.findall(r"\]\((\w+)\)", begins)
        assert where and all(catalogue.get(name).built for name in where), title
    assert drawn == list(heirs.PICTURES)


@pytest.mark.parametrize("name", heirs.PICTURES)
def test_a_picture_has_words_for_those_who_do_not_see_it(name: str) -> None:
    picture = heirs.PICTURES[name]()
    assert picture.caption and len(picture.caption.split()) < 45
    assert len(picture.alt) > 60


@pytest.mark.parametrize("block", [1, 4, 8, 24])
def test_the_running_softmax_ends_at_the_softmax(block: int) -> None:
    scores, values = 5 * heirs.drawn(24, seed=1), heirs.drawn(24, seed=2)
    found = heirs.outputs_so_far(scores, values, block)
    for n, output in enumerate(found, 1):  # after each block it is the softmax of what was read
        read = slice(block * n)
        whole = torch.softmax(scores[read], 0) @ values[read]
        assert output == pytest.approx(float(whole), abs=1e-12)
    huge = heirs.outputs_so_far(scores + 2000, values, block)  # exp(2000) would be infinite
    assert huge[-1] == pytest.approx(float(found[-1]), abs=1e-9)


def test_sums_gates_and_the_delta_rule_read_back_what_the_caption_says() -> None:
    keys = torch.eye(2, dtype=torch.float64)[[0, 1, 0]]
    plain, gated, delta = (heirs.read_back(keys, *how) for how in ((1, 0), (0.8, 0), (1, 1)))
    assert plain.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 1]]
    assert gated[2].tolist() == pytest.approx([0.64, 0, 1])
    assert delta.tolist() == torch.eye(3).tolist()
    half = heirs.read_back(keys[[0, 2]], 1, 0.5)  # half of the old value is left
    assert half[1].tolist() == [0.5, 1]
    linear = heirs.read_back(heirs.drawn(6, 4, seed=1), 1, 0)
    scores = heirs.drawn(6, 4, seed=1) @ heirs.drawn(6, 4, seed=1).T
    torch.testing.assert_close(linear, scores.tril())  # attention without a softmax


def test_three_branches_read_the_keys_that_the_caption_names() -> None:
    Q, K = heirs.drawn(24, 16, seed=1), heirs.drawn(24, 16, seed=2)
    means, selected, window = heirs.branches(Q, K, block=4, chosen=2, lookback=3)
    for i in range(24):
        own = i // 4 * 4
        assert means[i, own:].sum() == 0  # nothing of its own block or later
        assert float(means[i].sum()) / 4 == pytest.approx(float(own > 0))
        fit = [float(Q[i] @ K[b : b + 4].mean(0)) for b in range(0, own, 4)]
        best = sorted(range(len(fit)), key=lambda b: -fit[b])[:2]
        keys = {4 * b + n for b in best for n in range(4)} | set(range(own, i + 1))
        assert set(selected[i].nonzero().flatten().tolist()) == keys
    assert torch.equal(window, patterns.sliding_window(lookback=3).mask(24))


def test_the_difference_of_two_maps_keeps_what_only_one_has() -> None:
    first, second = heirs.noise_and_needle(12, 3)
    much = heirs.start_of_lambda(11)
    assert heirs.start_of_lambda(0) == pytest.approx(0.2) and 0.77 < much < 0.8
    difference = (first - much * second)[4:]
    assert (difference.argmax(1) == 3).all()
    assert not (first[4:].argmax(1) == 3).all()  # the noise of one map alone hides it
    together = float((first - much * second)[6].sum())
    assert together == pytest.approx(1 - much)


def test_a_token_runs_its_likeliest_experts() -> None:
    p = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]])
    assert heirs.routed(p, 2).tolist() == torch.tensor([[0.5, 0, 0.3], [0, 0.6, 0.3]]).tolist()


def test_the_cache_of_the_bars() -> None:
    assert list(heirs.CACHED.values()) == [32768, 2048, 576, 256]
