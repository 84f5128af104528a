"""Near and far: what each variant may know, and what is stored."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import tfviz_lab
from tfviz.patterns import reach
from tfviz_lab.sparse import local_and_global as far


def moved(variant: str, at: int) -> Tensor:
    """Which scores change with the word at one place."""
    model = torch.nn.Module.double(far.seeded(0, lambda: far.Finder(variant)))
    words, _ = far.texts(torch.Generator().manual_seed(0), 1)
    other = words.clone()
    other[0, at] = 1 + words[0, at] % (far.SYMBOLS - 1)
    with torch.no_grad():
        return (model(words) - model(other))[0].abs() > 1e-12


def test_a_score_knows_what_its_variant_lets_it_know() -> None:
    assert moved("no global tokens", 36).tolist() == [n == 2 for n in range(8)]  # 4 behind a start
    assert not moved("no global tokens", 37).any()  # 2 layers, 2 words each
    assert moved("global tokens", 37).all()
    with torch.no_grad():  # but nothing tells whose it is: all scores are the same
        scores = far.seeded(0, lambda: far.Finder("global tokens"))(
            far.texts(torch.Generator().manual_seed(0), 2)[0]
        )
    torch.testing.assert_close(scores, scores[:, :1].expand_as(scores))


@pytest.mark.parametrize("stack", far.STACKS)
def test_distances_go_one_beyond_the_reach(stack: str) -> None:
    hops = reach(far.STACKS[stack], far.LENGTH, layers=len(far.STACKS[stack])).by_layer[-1]
    reached = [bool(hops[-1, far.LENGTH - 1 - D]) for D in far.DISTANCES[stack]]
    assert reached == sorted(reached, reverse=True)
    assert all(reached) == (stack == "2 layers, global token")


def test_a_few_steps_repeat_exactly() -> None:
    assert far.find("and labels", 1, 3) == far.find("and labels", 1, 3)


def test_the_stored_result_has_all_of_it() -> None:
    stored = tfviz_lab.load("local_and_global")
    assert stored["distances"] == {name: list(D) for name, D in far.DISTANCES.items()}
    for name, rows in stored["copy"].items():
        assert [len(row) for row in rows] == [len(far.DISTANCES[name])] * 3
    assert list(stored["sentence"]) == list(far.VARIANTS)
    guess = 1 / far.SENTENCES
    assert all(abs(share - guess) < 0.05 for share in stored["sentence"]["global tokens"])
    assert min(stored["sentence"]["and labels"] + stored["sentence"]["and hard masks"]) > 0.9
