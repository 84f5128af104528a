"""The experiment measures what it says: recipes start alike, and only one of them sees a shift."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from refusals import refused
from torch import Generator

from tfviz.cores import Dense
from tfviz.models.use import attention_weights
from tfviz.position.rope import Rope, speeds
from tfviz_lab.position import rotary
from tfviz_lab.position.rotary import (
    D_HEAD,
    RECIPES,
    Halves,
    Shifted,
    TurnedValues,
    larger_base,
    last_loss,
    model,
)
from tfviz_lab.position.rotary_pairings import reordered

close = torch.testing.assert_close
VOCAB = 11


def logits(by: int, values: str) -> torch.Tensor:
    plain: Any = model(VOCAB, values=values)
    core = partial(TurnedValues, back=values == "back") if values else Shifted
    assert type(plain.stack.blocks[0].attend.core) is (TurnedValues if values else Rope)
    made = rotary.with_positions(plain, partial(core, D_HEAD, by))
    with torch.no_grad():
        for p in made.parameters():  # far from the start, so that positions matter
            p.add_(0.3 * torch.randn(p.shape, generator=Generator().manual_seed(p.numel())))
        return made(torch.arange(18).view(2, 9) % VOCAB)


@pytest.mark.parametrize(("values", "sees"), [("", False), ("turned", True), ("back", False)])
def test_only_turned_values_see_a_shift(values: str, sees: bool) -> None:
    assert torch.allclose(logits(0, values), logits(40, values), atol=1e-3) != sees


def test_recipes_start_with_the_same_weights() -> None:
    first = dict(model(VOCAB).named_parameters())
    for recipe in RECIPES.values():
        for name, p in model(VOCAB, **recipe).named_parameters():
            close(p, first[name], atol=0, rtol=0)
    t = torch.arange(9)[None]
    plain, back = (model(VOCAB, values=v)(t) for v in ("", "back"))
    assert not torch.allclose(plain, back, atol=1e-4)  # values seen from where the query stands
    block: Any = model(VOCAB, "none").stack.blocks[0]
    assert type(block.attend.core) is Dense


def test_a_larger_base_slows_the_last_pair_by_the_factor_and_leaves_the_first() -> None:
    before, after = speeds(D_HEAD), speeds(D_HEAD, larger_base(8.0))
    close(before[-1] / after[-1], torch.tensor(8.0, dtype=torch.float64))
    close(before[0], after[0])
    assert ((before / after).diff() > 0).all()


def test_the_same_characters_are_scored_at_every_length() -> None:
    class Counts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:  # certain of the token + 1
            return 50.0 * torch.nn.functional.one_hot((x + 1) % 600, 600)

    rows = torch.arange(513)[None]
    assert {round(last_loss(Counts(), rows, L), 6) for L in (32, 64, 512)} == {0.0}
    refused("length = 513", last_loss, Counts(), rows, 513)


def test_clocks_are_the_lengths_of_the_pairs() -> None:
    made = model(VOCAB)
    rows = torch.arange(80).view(1, 80) % VOCAB
    found = rotary.clocks(made, rows)
    assert torch.tensor(found["lengths"]).shape == (2, 4, D_HEAD // 2)
    A = attention_weights(made, rows)["stack.blocks.0.attend"][0, 1]
    by_hand = [torch.stack([A[i, i - n] for i in range(32 + n, 80)]).mean() for n in (0, 5)]
    close(torch.tensor(found["weights"][0][1])[[0, 5]], torch.stack(by_hand), atol=1e-4, rtol=0)
    X = made.embed(rows)
    block: Any = made.stack.blocks[0]
    Q, K, _ = block.attend.W_qkv(block.norms[0](X))[0].split(64, -1)
    pair = [x[:, 2 * D_HEAD + 4 : 2 * D_HEAD + 6].norm(dim=-1).mean() for x in (Q, K)]  # head 2
    close(torch.tensor(found["lengths"][0][2][2]), pair[0] * pair[1], atol=1e-3, rtol=0)


def test_one_short_run_has_all_that_the_lesson_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotary, "TUNING", 1)
    monkeypatch.setattr(rotary, "WINDOWS", 2)
    monkeypatch.setattr(rotary, "LENGTHS", (32, 64, 128))
    results = {
        n: rotary.measure({"recipe": RECIPES[n], "steps": 1}, 0) for n in ("rotary", "halves")
    }
    done = [
        {"run": {"name": name, "seed": 0}, "result": results["rotary" if not r else "halves"]}
        for name, r in RECIPES.items()
    ]
    found = rotary.collect(done)
    assert set(found["loss"]) == set(RECIPES) and len(found["farther"]) == 4
    assert found["loss"]["rotary"][0][1] == pytest.approx(found["shifted"]["rotary"][0], abs=1e-4)
    assert found["farther"]["positions divided"][0][1] == found["loss"]["rotary"][0][1]
    assert type(Rope(4).turn(torch.ones(1, 1, 2, 4), 0)) is torch.Tensor


def test_weights_of_one_pairing_fit_the_other_only_if_their_columns_are_moved() -> None:
    made, tokens = model(VOCAB), torch.arange(18).view(2, 9) % VOCAB
    with torch.no_grad():
        for p in made.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=Generator().manual_seed(p.numel())))
        ways = [rotary.with_positions(m, lambda: Halves(D_HEAD)) for m in (reordered(made), made)]
        moved, mixed = (way(tokens) for way in ways)
        close(moved, made(tokens), atol=1e-4, rtol=1e-4)
        assert (mixed - moved).abs().max() > 0.1
