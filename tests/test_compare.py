"""The comparison: equal starts and batches whatever a variant brings, and what is told of it."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from tfviz import patterns
from tfviz.cores import Dense
from tfviz.experiments import compare as c
from tfviz.experiments.runner import tasks
from tfviz.position.learned_pe import Learned
from tfviz.position.xl_relative import xl

HEADS, D_HEAD = c.HEADS, c.WIDTH // c.HEADS


def plain() -> dict[str, Any]:
    return {}


def local() -> dict[str, Any]:
    return {"pattern": patterns.sliding_window(lookback=1)}


class Doubled(Dense):
    """A core that can be told apart, and draws random numbers while it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.own = torch.nn.Parameter(torch.randn(3))

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        return Q @ K.transpose(-2, -1)


@pytest.mark.parametrize("task", list(c.TASKS))
def test_all_begin_alike_whatever_a_variant_draws(task):
    begun = dict(c.model(plain, task, 3).named_parameters())
    other = dict(c.model(Doubled, task, 3).named_parameters())
    assert sorted(other.keys() - begun.keys()) == [
        f"stack.blocks.{n}.attend.core.own" for n in range(c.LAYERS)
    ]
    assert all(x.equal(other[name]) for name, x in begun.items())
    seed4 = dict(c.model(plain, task, 4).named_parameters())
    assert not all(x.equal(seed4[name]) for name, x in begun.items())


def test_a_variant_is_options_or_what_makes_a_core():
    made = c.model(xl(HEADS, D_HEAD), "recall", 0)
    again = c.model(lambda: {"core": xl(HEADS, D_HEAD)}, "recall", 0)
    assert type(made.stack.blocks[1].attend.core) is type(again.stack.blocks[1].attend.core)
    both = [patterns.causal(), patterns.sliding_window(lookback=2)]
    for task in c.TASKS:
        blocks = c.model(lambda: {"pattern": both}, task, 0).stack.blocks
        assert [block.attend.pattern for block in blocks] == both
        assert c.model(plain, task, 0).stack.blocks[0].attend.pattern == patterns.causal()
    positions = Learned(8, c.WIDTH)
    assert c.model(lambda: {"positions": positions}, "text", 0).embed.positions is positions


def test_what_is_wrong_with_a_variant_or_a_task_is_said():
    with pytest.raises(ValueError, match="task = 'texts'; choose from text, recall, digits"):
        c.model(plain, "texts", 0)
    with pytest.raises(ValueError, match="pattern has 3 entries; give one for each of 2 layers"):
        c.model(lambda: {"pattern": [patterns.causal()] * 3}, "text", 0)


def test_no_model_of_any_task_sees_the_future():
    t = torch.randint(c.SYMBOLS, (2, c.PIXELS))
    changed = t.clone()
    changed[:, 30:] = (changed[:, 30:] + 1) % c.SYMBOLS
    for task in c.TASKS:
        model = c.model(local, task, 0)
        before, after = model(t), model(changed)
        torch.testing.assert_close(before[:, :30], after[:, :30])
        assert not torch.allclose(before[:, 31], after[:, 31])


def test_batches_are_the_same_for_all_and_another_seed_has_others(monkeypatch):
    seen: list[float] = []

    def loss(seed: int, steps: int) -> Any:
        real = c.pixel_loss(seed, steps)

        def watched(model: Any, rng: Any, step: int) -> Tensor:
            seen.append(real(c.model(plain, "digits", 0), rng, step).item())
            return real(model, rng, step)

        return watched

    watched = c.Task("nats", 2, c.PixelTransformer, loss, c.pixel_score)
    monkeypatch.setitem(c.TASKS, "digits", watched)
    for variant, seed in ((plain, 0), (Doubled, 0), (plain, 1)):
        c.trained(variant, "digits", seed)
    assert seen[:2] == seen[2:4] != seen[4:]


def test_what_compare_returns_is_counted_and_repeats(monkeypatch):
    monkeypatch.setattr(c, "LENGTHS", (16, 96))
    variants = {"none": plain, "table": lambda: {"positions": Learned(64, c.WIDTH)}}
    found = c.compare(variants, ("recall",), seeds=(0, 1), steps=2)
    again = c.compare(variants, ("recall",), seeds=(0, 1), steps=2)
    assert found["scores"] == again["scores"]
    table = found["scores"]["recall"]
    assert table["none"][0] != table["none"][1] != table["table"][1]
    assert [row[1] for row in table["table"]] == [None, None]  # beyond its 64 rows
    count = found["parameters"]["recall"]
    assert count["table"] - count["none"] == 64 * c.WIDTH
    assert count["none"] == sum(x.numel() for x in c.model(plain, "recall", 0).parameters())
    made = found["provenance"]
    assert made["seeds"] == [0, 1] and made["steps"] == 2 and "torch" in made["versions"]
    assert found["unit"] == {"recall": "nats per recalled symbol"}


def test_training_finds_what_is_in_reach_and_nothing_else():
    """Two windows of two tokens end far short of BACK = 12 places: guessing is the best."""
    _, losses = c.trained(xl(HEADS, D_HEAD), "recall", 0, steps=80)
    _, blind = c.trained(local, "recall", 0, steps=80)
    assert losses[-1] < 0.1 and blind[-1] == pytest.approx(math.log(c.SYMBOLS), abs=0.05)


def test_three_names_make_an_experiment_of_a_module():
    module: Any = ModuleType("tfviz.experiments.written_here")
    module.__file__ = c.__file__
    module.runs, module.measure, module.collect = c.experiment(
        {"none": plain, "local": local}, ("text", "digits"), seeds=(0, 5), steps=1
    )
    found = tasks(module)
    assert len(found) == 8 and found[0].run.name == "text none" and found[-1].run.seed == 5
    done = [
        {
            "run": {"name": task.run.name, "seed": task.run.seed},
            "result": {"score": (task.run.name, task.run.seed), "parameters": 7},
        }
        for task in reversed(found)
    ]
    whole = module.collect(done)
    assert whole["scores"]["digits"]["local"] == [("digits local", 0), ("digits local", 5)]
    assert whole["parameters"]["text"] == {"none": 7, "local": 7}
    assert whole["unit"]["digits"] == "nats per pixel"
