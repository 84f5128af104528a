"""The training loop: repeated, interrupted, resumed and diverged; and the data it draws."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from refusals import of_no_kind
from torch import Generator, Tensor, nn

from tfviz import _arguments, data, training
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned
from tfviz.training import DivergenceError, mean_loss, next_token, seeded, train

SYMBOLS, LENGTH = 6, 12


def make(seed: int = 0) -> nn.Module:
    return seeded(seed, lambda: nn.Sequential(GPT(SYMBOLS, 16, 2, 1), nn.Dropout(0.1)))


def cycle(model: nn.Module, rng: Generator, step: int) -> Tensor:
    """Predict the next of 0, 1, …, 5, 0, 1, …, from random beginnings."""
    start = torch.randint(SYMBOLS, (8, 1), generator=rng)
    x = (start + torch.arange(LENGTH + 1)) % SYMBOLS
    return F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


def weights(model: nn.Module) -> list[Tensor]:
    return [x.detach().clone() for x in model.parameters()]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(x.equal(y) for x, y in zip(a, b, strict=True))


# --- the loop -------------------------------------------------------------------------------------


def test_it_learns_and_repeats_exactly():
    one, two, other = make(), make(), make()
    losses = train(one, cycle, 60)
    assert len(losses) == 60 and losses[0] > 1.5 and losses[-1] < 0.5
    assert train(two, cycle, 60) == losses and same(weights(one), weights(two))
    assert train(other, cycle, 60, seed=1) != losses
    a, b = (weights(make(seed))[0] for seed in (1, 0))
    assert a.ne(b).any()


def test_it_leaves_the_random_numbers_outside_alone():
    state = torch.random.get_rng_state()
    train(make(), cycle, 2)
    assert torch.random.get_rng_state().equal(state)


def test_the_learning_rate_goes_up_and_down():
    factors = [training.warm_up_then_down(step, 100) for step in range(100)]
    assert factors[0] == pytest.approx(1 / 20) and factors[19] == max(factors)
    assert factors[99] == pytest.approx(0.01)
    seen = []
    model = make()

    def rate(step: int, steps: int) -> float:
        seen.append((step, steps))
        return 0.0

    before = weights(model)
    train(model, cycle, 3, schedule=rate)
    assert seen == [(0, 3), (1, 3), (2, 3)] and same(weights(model), before)


def test_long_gradients_are_shortened():
    steps = []
    for clip in (1e9, 1e-12):
        model = nn.Linear(2, 2)
        nn.init.zeros_(model.weight)

        def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
            return 1e3 * model(torch.ones(1, 2)).sum()

        train(model, loss, 1, clip=clip, schedule=lambda step, steps: 1.0)
        steps.append(model.weight.abs().max().item())
    assert steps[0] == pytest.approx(3e-3, rel=1e-3)  # Adam's first step is the rate …
    assert steps[1] < 1e-5  # … unless the gradient is no longer than its epsilon


def test_a_bar_only_when_asked_for(capsys):
    train(make(), cycle, 3)
    assert capsys.readouterr().err == ""
    train(make(), cycle, 3, progress=True)
    assert "3/3" in capsys.readouterr().err


# --- after each step ------------------------------------------------------------------------------


class Routed(nn.Module):
    """Each row goes to one of four experts: to the one with the largest score + bias. The bias is
    no weight: Wang et al. 2024 (arXiv 2408.15664) move it against the load, without a loss."""

    bias: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(3, 4)
        self.experts = nn.Parameter(torch.randn(4, 3))
        self.register_buffer("bias", torch.zeros(4))
        self.register_buffer("load", torch.zeros(4))

    def forward(self, X: Tensor) -> Tensor:
        p = self.W(X).sigmoid()
        chosen = (p + self.bias).argmax(-1)
        self.load = torch.bincount(chosen, minlength=4).float()
        return p.gather(-1, chosen[:, None])[:, 0] * (X * self.experts[chosen]).sum(-1)


def routed_loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    X = torch.randn(64, 3, generator=rng) + torch.tensor([1.0, 0.0, 0.0])
    return (model(X) - X[:, 0]).square().mean()


def balance(model: Any, step: int) -> None:
    model.bias += 0.02 * (model.load.mean() - model.load).sign()


def busiest(model: Any) -> float:
    """The share of the expert with the most rows, where an equal share is 1/4."""
    with torch.no_grad():
        routed_loss(model, Generator().manual_seed(5), 0)
    return (model.load.max() / model.load.sum()).item()


def crowded() -> Any:
    """A router that sends nearly all rows to its first expert."""
    model = seeded(0, Routed)
    model.W.bias.data[0] = 3.0
    return model


def test_a_hook_may_balance_experts_after_each_step() -> None:
    alone, balanced = crowded(), crowded()
    assert busiest(alone) > 0.8
    train(alone, routed_loss, 200)
    losses = train(balanced, routed_loss, 200, after_step=balance)
    assert busiest(alone) > 0.9 and busiest(balanced) < 0.5
    assert losses[-1] < losses[0] and not alone.bias.any()


def test_a_hook_sees_the_weights_that_a_step_has_moved() -> None:
    model, seen, before = make(), [], weights(make())

    def look(given: Any, step: int) -> str:
        assert given is model and not torch.is_grad_enabled()
        seen.append((step, same(weights(model), before)))
        return "ignored"

    usual = train(make(), cycle, 4)
    assert train(model, cycle, 4, after_step=look) == usual  # whoever only looks changes nothing
    assert seen == [(0, False), (1, False), (2, False), (3, False)]


def test_what_a_hook_changes_is_resumed(tmp_path: Path) -> None:
    def stops(model: nn.Module, rng: Generator, step: int) -> Tensor:
        if step == 13:
            raise InterruptionError
        return routed_loss(model, rng, step)

    whole, model, file = crowded(), crowded(), tmp_path / "run.pt"
    losses = train(whole, routed_loss, 20, after_step=balance)
    with pytest.raises(InterruptionError):
        train(model, stops, 20, after_step=balance, checkpoint=file, every=5)
    again = crowded()
    assert train(again, routed_loss, 20, after_step=balance, checkpoint=file, every=5) == losses
    assert (
        again.bias.equal(whole.bias) and whole.bias.any() and same(weights(again), weights(whole))
    )


def test_a_hook_that_fails_or_is_none() -> None:
    def fails(model: nn.Module, step: int) -> None:
        raise InterruptionError

    with pytest.raises(InterruptionError):
        train(make(), cycle, 2, after_step=fails)
    of_no_kind(
        "after_step = 3 cannot be called; give a function", train, make(), cycle, 2, after_step=3
    )
    of_no_kind("after_step = 0.5 cannot be called", train, make(), cycle, 0, after_step=0.5)


# --- interrupted and resumed ----------------------------------------------------------------------


class InterruptionError(Exception):
    pass


def stopping(at: int) -> Any:
    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        value = cycle(model, rng, step)
        if step == at:
            raise InterruptionError
        return value

    return loss


@pytest.mark.parametrize("at", [3, 10, 17])  # before the first, right after a, between checkpoints
def test_an_interrupted_run_resumes_to_the_last_bit(at, tmp_path):
    whole = make()
    losses = train(whole, cycle, 24)
    file = tmp_path / "deep" / "run.pt"
    with pytest.raises(InterruptionError):
        train(make(), stopping(at), 24, checkpoint=file, every=5)
    assert file.exists() == (at >= 5)
    model = make(7 if file.exists() else 0)  # the checkpoint brings the weights
    assert train(model, cycle, 24, checkpoint=file, every=5) == losses
    assert same(weights(model), weights(whole))
    assert os.listdir(file.parent) == ["run.pt"]


def test_a_finished_run_is_not_trained_again(tmp_path):
    model, again, file = make(), make(5), tmp_path / "run.pt"
    losses = train(model, cycle, 7, checkpoint=file, every=100)
    assert train(again, stopping(0), 7, checkpoint=file, every=100) == losses
    assert same(weights(model), weights(again))


def _slowly(file: Path) -> None:
    torch.set_num_threads(1)

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        time.sleep(0.01)
        return cycle(model, rng, step)

    train(make(), loss, 2000, checkpoint=file, every=1)


def test_a_killed_process_leaves_a_whole_checkpoint(tmp_path):
    """SIGKILL at any moment, most likely while it writes: it does little else."""
    file = tmp_path / "run.pt"
    process = multiprocessing.get_context("spawn").Process(target=_slowly, args=(file,))
    process.start()
    try:
        deadline = time.monotonic() + 120
        while not file.exists():
            assert process.is_alive() and time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.2)
    finally:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    state = torch.load(file, weights_only=True)
    done = len(state["losses"])
    assert 1 <= done < 2000
    model, twin = make(), make()
    with pytest.raises(InterruptionError):
        train(model, stopping(done + 4), 2000, checkpoint=file, every=1)
    with pytest.raises(InterruptionError):
        train(twin, stopping(done + 4), 2000)
    assert same(weights(model), weights(twin))


def test_interrupted_while_writing_the_old_checkpoint_stays(tmp_path, monkeypatch):
    file = tmp_path / "run.pt"
    with pytest.raises(InterruptionError):
        train(make(), stopping(6), 20, checkpoint=file, every=5)
    before = file.read_bytes()

    def half(state: Any, stream: Any) -> None:
        stream.write(b"half a file")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(KeyboardInterrupt):
        train(make(), cycle, 20, checkpoint=file, every=5)
    assert file.read_bytes() == before and os.listdir(tmp_path) == ["run.pt"]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    file = tmp_path / "run.pt"
    train(make(), cycle, 4, checkpoint=file)
    for other in ({"steps": 9}, {"seed": 3}, {"lr": 1e-4}):
        with pytest.raises(ValueError, match=r"is of a run with .*remove it to begin anew"):
            train(make(), cycle, **({"steps": 4} | other), checkpoint=file)


def test_a_run_with_another_schedule_is_another_run(tmp_path):
    file = tmp_path / "run.pt"
    train(make(), cycle, 4, checkpoint=file)
    with pytest.raises(ValueError, match=r"of a run with another schedule; .*begin anew"):
        train(make(), cycle, 4, checkpoint=file, schedule=lambda step, steps: 1.0)
    same_rates = training.warm_up_then_down
    train(make(), cycle, 4, checkpoint=file, schedule=lambda step, steps: same_rates(step, steps))


@pytest.mark.parametrize("broken", [b"", b"not a checkpoint", "cut short", "another pickle"])
def test_a_broken_checkpoint_says_so_and_how_to_go_on(broken, tmp_path):
    file = tmp_path / "run.pt"
    train(make(), cycle, 4, checkpoint=file)
    if broken == "another pickle":
        torch.save([1, 2], file)
    else:
        file.write_bytes(broken if isinstance(broken, bytes) else file.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"run\.pt cannot be read .*remove it to begin anew"):
        train(make(), cycle, 4, checkpoint=file)


def test_a_checkpoint_of_another_model_leaves_this_one_alone(tmp_path):
    file, other = tmp_path / "run.pt", nn.Sequential(GPT(SYMBOLS, 32, 2, 1), nn.Dropout(0.1))
    train(make(), cycle, 4, checkpoint=file)
    before = weights(other)
    with pytest.raises(ValueError, match=r"of a model with other weights; .*begin anew"):
        train(other, cycle, 4, checkpoint=file)
    assert same(weights(other), before)


# --- diverged -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_the_run(bad, tmp_path):
    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        return cycle(model, rng, step) * (bad if step == 8 else 1.0)

    model, twin, file = make(), make(), tmp_path / "run.pt"
    with pytest.raises(DivergenceError, match=rf"loss is {bad} at step 8, learning rate 0\.00108"):
        train(model, loss, 40, checkpoint=file, every=2)
    with pytest.raises(InterruptionError):
        train(twin, stopping(8), 40)
    assert same(weights(model), weights(twin))  # as before that step
    assert len(torch.load(file, weights_only=True)["losses"]) == 8


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_gradient_that_is_no_number_stops_the_run(bad, tmp_path):
    """The loss is finite, its gradient is not: one step would make every weight NaN."""

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        value = cycle(model, rng, step)
        if step == 8:
            value.register_hook(lambda grad: grad * bad)
        return value

    model, twin, file = make(), make(), tmp_path / "run.pt"
    told = r"loss is \d\.\d+, but the length of its gradient is (nan|inf) at step 8"
    with pytest.raises(DivergenceError, match=told):
        train(model, loss, 9, checkpoint=file, every=2)
    with pytest.raises(InterruptionError):
        train(twin, stopping(8), 9)
    assert same(weights(model), weights(twin))
    assert len(torch.load(file, weights_only=True)["losses"]) == 8


def test_divergence_at_the_first_step_blames_the_data():
    with pytest.raises(DivergenceError, match=r"at step 0, .*look at the data"):
        train(make(), lambda model, rng, step: model(torch.zeros(1, 1).long()).sum() * torch.nan, 3)


@pytest.mark.parametrize(
    "name, value",
    [
        *(("steps", -1), ("every", 0), ("lr", -1.0), ("weight_decay", -0.1)),
        *(("clip", -1.0), ("clip", 0), ("clip", math.nan), ("clip", -math.inf)),
    ],
)
def test_arguments_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"{name} = {value}"):
        train(make(), cycle, **({"steps": 3} | {name: value}))


def test_a_schedule_below_zero_would_climb():
    with pytest.raises(ValueError, match=r"schedule\(2, 3\) = -0\.5 is out of range"):
        train(make(), cycle, 3, schedule=lambda step, steps: [1.0, 1.0, -0.5][step])


def test_an_infinite_clip_shortens_nothing_and_no_decay_is_adam():
    model, twin = (seeded(0, lambda: GPT(SYMBOLS, 16, 2, 1)) for _ in range(2))
    train(model, cycle, 5, clip=math.inf, weight_decay=0.0, schedule=lambda step, steps: 1.0)
    adam, rng = torch.optim.Adam(twin.parameters(), 3e-3), Generator().manual_seed(0)
    for step in range(5):
        adam.zero_grad()
        cycle(twin, rng, step).backward()
        adam.step()
    assert same(weights(model), weights(twin))


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.int64(3), Fraction(1, 2)])
def test_every_real_number_is_one(value):
    assert _arguments.real("rate", value, 0.0) == float(value)
    with pytest.raises(ValueError, match=r"rate = .* is out of range; choose rate <= 0\.1"):
        _arguments.real("rate", value, high=0.1)


@pytest.mark.parametrize("value", [True, np.True_, "1", None, 1j, torch.ones(2)])
def test_what_is_no_real_number_is_refused(value):
    with pytest.raises(ValueError, match=r"rate = .* is not a number; choose rate >= 0"):
        _arguments.real("rate", value, 0.0)


def test_mean_loss_is_the_same_for_the_same_model_and_needs_no_gradient():
    model = make().eval()
    assert mean_loss(model, cycle) == mean_loss(model, cycle) != mean_loss(model, cycle, seed=2)
    assert all(x.grad is None for x in model.parameters())


# --- text -----------------------------------------------------------------------------------------


def test_the_text_is_english_and_long_and_comes_back():
    ids, alphabet = data.characters()
    assert len(ids) == len(data.text()) > 300_000
    assert alphabet.decode(ids[:2000]) == data.text()[:2000]
    assert 80 < len(alphabet) < 200 and ids.max() == len(alphabet) - 1
    assert data.text().count(" the ") > 2000


def test_bytes_hold_every_text_and_characters_only_their_own():
    words = "naïve √d — 注意"
    assert data.byte_text(data.byte_ids(words)) == words
    assert data.byte_ids(words).max() <= 255 and len(data.byte_ids(words)) > len(words)
    assert data.byte_text(torch.tensor([65, 255])) == "A�"
    with pytest.raises(ValueError, match="holds '意注', which the alphabet of"):
        data.characters()[1].encode("注意")


def test_what_is_held_out_is_never_trained_on():
    ids = torch.arange(1000)
    training_part, held_out = data.split(ids)
    assert training_part.tolist() + held_out.tolist() == ids.tolist() and len(held_out) == 100
    with pytest.raises(ValueError, match=r"held_out = 1\.5"):
        data.split(ids, 1.5)


def test_windows_are_pieces_of_the_text_and_reach_its_ends():
    ids, rng = torch.arange(40), Generator().manual_seed(0)
    x, y = data.windows(ids, 500, 8, rng)
    assert x.shape == y.shape == (500, 8)
    assert y.equal(x + 1) and (x.diff() == 1).all()
    assert x.min() == 0 and y.max() == 39  # the last token can be a target
    again = data.windows(ids, 500, 8, Generator().manual_seed(0))
    assert again[0].equal(x)
    assert data.windows(ids, 2, 39, rng)[1][0, -1] == 39
    with pytest.raises(ValueError, match="L = 40 is out of range; choose 1 <= L <= 39"):
        data.windows(ids, 1, 40, rng)


def test_a_gpt_learns_the_text():
    ids, alphabet = data.characters()
    learn, held_out = data.split(ids)
    model = seeded(0, lambda: GPT(len(alphabet), 32, 4, 1, positions=Learned(32, 32)))
    before = mean_loss(model, next_token(held_out, 16, 32))
    train(model, next_token(learn, 16, 32), 60, lr=1e-2)
    assert mean_loss(model, next_token(held_out, 16, 32)) < 3.0 < before - 1


# --- tasks with known answers ---------------------------------------------------------------------


def test_copy_and_reverse_are_what_they_say():
    rng = Generator().manual_seed(0)
    source, target = data.copying(5, 9, 7, rng)
    assert (
        target.equal(source) and source.shape == (5, 9) and source.unique().tolist() == [*range(7)]
    )
    source, target = data.reversal(5, 9, 7, rng)
    for row, back in zip(source.tolist(), target.tolist(), strict=True):
        assert back == row[::-1]
    with pytest.raises(ValueError, match="symbols = 0"):
        data.copying(5, 9, 0, rng)


def test_the_answer_to_a_recall_is_what_stood_behind_the_key():
    rows, answers = data.associative_recall(300, 4, 9, 5, Generator().manual_seed(0))
    assert rows.shape == (300, 9)
    asked = set()
    for row, answer in zip(rows.tolist(), answers.tolist(), strict=True):
        keys, values = row[0:8:2], row[1:8:2]
        assert len(set(keys)) == 4 and max(keys) < 9
        assert all(9 <= v < 14 for v in values)
        assert values[keys.index(row[8])] == answer
        asked.add(keys.index(row[8]))
    assert asked == {0, 1, 2, 3} and len(answers.unique()) == 5
    with pytest.raises(ValueError, match="pairs = 10 is out of range; choose 1 <= pairs <= 9"):
        data.associative_recall(1, 10, 9, 5, Generator())


def test_groups_point_in_few_directions() -> None:
    X = data.groups(300, 16, count=3, spread=0.1, loud=2.0, seed=1)
    near = torch.nn.functional.normalize(X, dim=-1)
    close = near @ near.T > 0.9
    assert close.unique(dim=0).shape[0] == 3 and X.norm(dim=-1).mean() == pytest.approx(8, rel=0.1)
    with pytest.raises(ValueError, match="count = 0 is out of range"):
        data.groups(3, 4, count=0)


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/training.py": [
        ("random numbers not resumed", 'rng.set_state(state["rng"])', "pass"),
        ("torch's random numbers not resumed", 'torch.set_rng_state(state["torch"])', "pass"),
        ("optimiser not resumed", 'optimiser.load_state_dict(state["optimiser"])', "pass"),
        (
            "step after a bad loss",
            "if not math.isfinite(value.item()):",
            "if math.isnan(value.item()):",
        ),
        (
            "step after a gradient that is no number",
            "if not math.isfinite(length.item()):",
            "if False:",
        ),
        (
            "a hook before the step",
            "            optimiser.step()\n            if after_step is not None:\n"
            "                with torch.no_grad():\n"
            "                    after_step(model, step)\n",
            "            if after_step is not None:\n"
            "                with torch.no_grad():\n"
            "                    after_step(model, step)\n"
            "            optimiser.step()\n",
        ),
        (
            "a hook that builds a graph",
            "with torch.no_grad():\n                    after",
            "if True:\n                    after",
        ),
        ("another schedule resumed", '        "rates": rates,\n', ""),
    ],
    "tfviz/_files.py": [
        (
            "file written in place",
            'new = path.with_name(f"{path.name}.{os.getpid()}.new")',
            "new = path",
        ),
    ],
    "tfviz/data.py": [
        (
            "targets are the inputs",
            "return rows[:, :-1], rows[:, 1:]",
            "return rows[:, :-1], rows[:, :-1]",
        ),
        ("held-out text is trained on", "return ids[:n], ids[n:]", "return ids, ids[n:]"),
    ],
}
