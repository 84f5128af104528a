"""Auxiliary losses: the schedule by hand, the loss by loops, what is thrown away afterwards."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import Case
from refusals import ranges, refused
from torch import Tensor

from tfviz.basics.alrfou_auxiliary_losses import (
    DeepCharacterModel,
    ahead,
    auxiliary_loss,
    bits_by_layer,
    bits_by_position,
    forward_flops,
    loss_weights,
    scored,
    steps_scored,
)
from tfviz.measure import flops
from tfviz.models.blocks import post_norm, pre_norm

close = torch.testing.assert_close
VOCAB, D, H, N, LONGEST = 7, 16, 2, 3, 6

# N = 4, T = 16: layer 1 is scored in steps 0 and 1, 2 in 0 … 3, 3 in 0 … 5, 4 always
GOLDEN = """
1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0
1 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0
1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0
1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
"""


def table(rule: Callable[[int, int, int], list[float]], N: int = 4, T: int = 16) -> Tensor:
    """(N, T): a rule for all steps."""
    return torch.tensor([rule(s, T, N) for s in range(T)]).T


def model(order: object = pre_norm, targets: int = 2, **more: object) -> Any:
    torch.manual_seed(0)
    return DeepCharacterModel(VOCAB, D, H, N, LONGEST, targets=targets, order=order, **more)  # type: ignore[arg-type]


def windows(b: int = 4, L: int = LONGEST, targets: int = 2, seed: int = 1) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(VOCAB, (b, L + targets), generator=rng)


# --- the schedule ---------------------------------------------------------------------------------


def golden() -> Tensor:
    rows = [[float(x) for x in line.split()] for line in GOLDEN.strip().splitlines()]
    return torch.tensor(rows)


def test_golden_schedule() -> None:
    assert torch.equal(table(lambda s, T, N: scored(s, T, N).float().tolist()), golden())
    close(loss_weights(2, 16, 4), torch.tensor([[0, 0], [1, 0.5], [1, 0.5], [1, 0.5]]))
    close(loss_weights(8, 16, 4, (1.0, 0.0)), torch.tensor([[0, 0], [0, 0], [0, 0], [1.0, 0]]))
    assert steps_scored(16, 4).tolist() == [2, 4, 6, 16]
    # the paper's sizes, 4 million steps: layer 1 leaves after 31 250, layer 63 after 1 968 750
    assert steps_scored(4_000_000, 64)[[0, 62, 63]].tolist() == [31_250, 1_968_750, 4_000_000]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 70), st.integers(1, 300))
def test_layers_leave_one_by_one_and_only_the_last_one_stays(N: int, T: int) -> None:
    on = torch.stack([scored(s, T, N) for s in range(T)], 1)  # (N, T)
    assert torch.equal(on.sum(1), steps_scored(T, N))
    assert on[-1].all() and not on[:-1, -(-T // 2) :].any()  # from half of the steps on
    assert on[:, 0].all()  # all at the start
    assert (on[:, 1:] <= on[:, :-1]).all()  # who has left stays away
    assert (on[:-1] <= on[1:]).all()  # lower layers leave first


def test_on_average_a_quarter_of_the_layers() -> None:
    for N, T in ((4, 1600), (64, 128_000)):
        assert steps_scored(T, N).sum() / T == 1 + (N - 1) / 4


# --- the loss -------------------------------------------------------------------------------------


def test_targets_are_one_and_two_ahead() -> None:
    x, y = ahead(torch.tensor([[3, 1, 4, 1, 5]]), 2)
    assert x.tolist() == [[3, 1, 4]]
    assert y.tolist() == [[[1, 4], [4, 1], [1, 5]]]
    x, y = ahead(torch.tensor([[3, 1, 4]]), 1)
    assert x.tolist() == [[3, 1]] and y.tolist() == [[[1], [4]]]


def test_golden_loss() -> None:
    """Classifiers that ignore what they see: probabilities, so the loss is made of logarithms."""
    m = model()
    shares = torch.full((N, 2, VOCAB), 1 / VOCAB)
    shares[1, 0] = torch.tensor([0.5, 0.25, 0.05, 0.05, 0.05, 0.05, 0.05])  # layer 2, next
    shares[2, 0] = torch.tensor([0.25, 0.5, 0.05, 0.05, 0.05, 0.05, 0.05])  # layer 3, next
    for n in range(N):
        for k in range(2):
            m.exits[n].targets[k].weight.data.zero_()
            m.exits[n].targets[k].bias.data = shares[n, k].log()
    tokens = torch.tensor([[2, 0, 0, 1, 1, 3, 5, 6]])  # next: 0 0 1 1 3 5
    ln = math.log
    two = (2 * ln(2) + 2 * ln(4) + 2 * ln(20)) / 6  # of layer 2, and by chance of layer 3
    for step, layers in ((0, 3), (2, 2), (7, 1)):  # N = 3, T = 9: layer 1 to 1.5, layer 2 to 3
        expected = {3: ln(7), 2: 0.0, 1: -two}[layers] + 2 * two + layers * 0.5 * ln(7)
        found = auxiliary_loss(m, tokens, loss_weights(step, 9, 3))
        close(found, torch.tensor(expected))
    last = auxiliary_loss(m, tokens, loss_weights(8, 9, 3, (1.0, 0.0)), every_position=False)
    close(last, torch.tensor(ln(20)))  # character 5 after the whole window


def by_loops(m: DeepCharacterModel, tokens: Tensor, step: int, steps: int) -> Tensor:
    """As literal as the equation, n and m from 1."""
    total, L = torch.zeros(()), tokens.shape[1] - 2
    states = list(m.states(tokens[:, :L]))
    for n in range(1, N + 1):
        if n == N or step / steps < n / (2 * N):
            for i in range(L):
                for k, weight in ((1, 1.0), (2, 0.5)):
                    p = m.exits[n - 1](states[n - 1], k - 1)[:, i].softmax(-1)
                    right = p[torch.arange(len(tokens)), tokens[:, i + k]]
                    total = total - weight * right.log().mean() / L
    return total


@pytest.mark.parametrize("order", [pre_norm, post_norm])
@pytest.mark.parametrize("step", [0, 2, 3, 9])
def test_equals_the_definition(order: object, step: int) -> None:
    m, tokens = model(order), windows()
    close(auxiliary_loss(m, tokens, loss_weights(step, 10, N)), by_loops(m, tokens, step, 10))


def test_one_layer_and_one_target_is_ordinary_training() -> None:
    m, tokens = model(), windows()
    x, y = tokens[:, :-2], tokens[:, 1:-1]
    plain = F.cross_entropy(m(x).flatten(0, 1), y.flatten())
    close(auxiliary_loss(m, tokens, loss_weights(5, 10, N, (1.0, 0.0))), plain)
    only = F.cross_entropy(m(x)[:, -1], y[:, -1])
    weights = loss_weights(5, 10, N, (1.0, 0.0))
    close(auxiliary_loss(m, tokens, weights, every_position=False), only)


def test_what_weighs_nothing_gets_no_gradient() -> None:
    m = model()
    auxiliary_loss(m, windows(), loss_weights(3, 10, N)).backward()  # layers 2 and 3
    assert all(p.grad is None for p in m.exits[0].parameters())
    assert all(p.grad is not None for e in m.exits[1:] for p in e.targets.parameters())


def test_a_layer_hears_only_the_losses_above_it() -> None:
    m = model()
    weights = loss_weights(0, 10, N)
    weights[1:] = 0  # the first layer's losses alone
    auxiliary_loss(m, windows(), weights).backward()
    assert all(p.grad is None for block in m.blocks[1:] for p in block.parameters())
    assert m.blocks[0].feed.W_1.weight.grad.abs().sum() > 0


# --- the model ------------------------------------------------------------------------------------


def test_no_prediction_sees_what_it_predicts() -> None:
    m, tokens = model(), windows()[:, :LONGEST]
    other = tokens.clone()
    other[:, 3:] = (other[:, 3:] + 1) % VOCAB
    for X, Y in zip(m.states(tokens), m.states(other), strict=True):
        close(X[:, :3], Y[:, :3])
        assert (X[:, 3:] - Y[:, 3:]).abs().max() > 1e-3


@pytest.mark.parametrize("order", [pre_norm, post_norm])
def test_extra_classifiers_are_not_used_afterwards(order: object) -> None:
    m, x = model(order), windows()[:, :LONGEST]
    before, count = m(x), sum(p.numel() for p in m.parameters())
    slim = copy.deepcopy(m)
    slim.drop_extra_classifiers()
    assert torch.equal(slim(x), before)
    norms = (N - 1) * 2 * D if order is pre_norm else 0
    left = sum(p.numel() for p in slim.parameters())
    assert count - left == (2 * N - 1) * (D + 1) * VOCAB + norms
    refused("behind 1 layers", auxiliary_loss, slim, windows(), loss_weights(0, 10, N))


def test_positions_in_every_layer() -> None:
    assert sum(p.numel() for p in model().P.parameters()) == N * LONGEST * D
    assert sum(p.numel() for p in model(positions_per_layer=False).P.parameters()) == LONGEST * D
    m, x = model(), windows()[:, :LONGEST]
    before = list(m.states(x))
    m.P[1].P.data += 1.0 * torch.randn(LONGEST, D)
    after = list(m.states(x))
    close(after[0], before[0])  # the first layer does not feel the second table
    assert (after[1] - before[1]).abs().max() > 0.1
    refused("position 7", m, windows(L=LONGEST))  # two more than the table holds


@pytest.mark.parametrize(("layers", "published"), [(12, 44), (64, 235)])
def test_the_paper_s_models_have_as_many_parameters_as_it_says(layers: int, published: int) -> None:
    """In millions, with bytes as vocabulary. Our norms before the classifiers are not its own."""
    with torch.device("meta"):
        m: Any = DeepCharacterModel(256, 512, 8, layers, 512)
    norms = sum(p.numel() for e in m.exits for p in e.norm.parameters())
    count = sum(p.numel() for p in m.parameters())
    assert round((count - norms) / 1e6) == published
    m.drop_extra_classifiers()
    left = sum(p.numel() for p in m.parameters())
    assert count - left == (2 * layers - 1) * 513 * 256 + (layers - 1) * 1024


def test_flops_are_those_that_torch_counts() -> None:
    m, x = model().eval(), torch.zeros(1, LONGEST, dtype=torch.long)
    with torch.no_grad():
        assert flops(lambda: m(x)) == forward_flops(LONGEST, D, VOCAB, N, 1)
        many = flops(lambda: auxiliary_loss(m, windows(1), loss_weights(0, 10, N)))
        assert many == forward_flops(LONGEST, D, VOCAB, N, 2 * N)
        one = loss_weights(9, 10, N, (1.0, 0.0))
        last = flops(lambda: auxiliary_loss(m, windows(1), one, every_position=False))
        assert last == forward_flops(LONGEST, D, VOCAB, N, 1, positions=1)


# --- how it is judged -----------------------------------------------------------------------------


def test_bits_of_a_model_that_knows_nothing_and_of_one_that_knows_all() -> None:
    m = model()
    m.exits[-1].targets[0].weight.data.zero_()
    m.exits[-1].targets[0].bias.data.zero_()
    x, y = windows()[:, :LONGEST], windows(seed=2)[:, :LONGEST]
    close(bits_by_position(m, x, y), torch.full((LONGEST,), math.log2(VOCAB)))
    m.exits[-1].targets[0].bias.data[3] = 100.0
    close(bits_by_position(m, x, torch.full_like(y, 3)), torch.zeros(LONGEST))


def test_bits_by_position_and_by_layer_agree_where_they_meet() -> None:
    m, tokens = model(), windows(16)
    x, y = tokens[:, :LONGEST], tokens[:, 1 : LONGEST + 1]
    by_layer = bits_by_layer(m, x, y)
    assert by_layer.shape == (N,)
    close(by_layer[-1], bits_by_position(m, x, y).mean())
    i = 2
    by_hand = F.cross_entropy(m(x)[:, i], y[:, i]) / math.log(2)
    close(bits_by_position(m, x, y)[i], by_hand)


def test_bad_arguments_are_named() -> None:
    refused("step = 11 is out of range", scored, 11, 10, 4)
    refused("targets = 2", ahead, torch.zeros(1, 2, dtype=torch.long), 2)
    loss = partial(auxiliary_loss, model(), windows())
    refused("shape (4, 2)", loss, loss_weights(0, 10, 4))
    refused("for 2 targets", loss, torch.ones(N, 3))
    refused("shape (3,)", loss, torch.ones(N))
    ranges(partial(scored, 0), steps=(10, 1), N=(4, 1))
    ranges(steps_scored, steps=(10, 1), N=(4, 1))
    sizes = {"vocab": (7, 1), "d": (16, 2), "h": (2, 1), "N": (3, 1), "max_length": (6, 1)}
    ranges(DeepCharacterModel, **sizes, targets=(2, 1))


@torch.no_grad()
def test_one_table_is_added_once() -> None:
    m: Any = DeepCharacterModel(VOCAB, 16, 2, 3, 9, positions_per_layer=False)
    m.P[0].P.data.normal_()  # far from 0: a second time would be seen
    t = torch.randint(VOCAB, (2, 9))
    X = m.embed(t) + m.P[0].P
    for block, state in zip(m.blocks, m.states(t), strict=True):
        X = block(X)
        close(state, X)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "layers leave twice as late",
            "2 * N * step < n * steps",
            "N * step < n * steps",
        ),
        (
            "layers leave one step late",
            "2 * N * step < n * steps",
            "2 * N * step <= n * steps",
        ),
        (
            "the last layer leaves too",
            "n == N or 2 * N",
            "2 * N",
        ),
        (
            "positions at every layer though asked for one",
            "self.P[n](i) if n < len(self.P) else X",
            "self.P[min(n, len(self.P) - 1)](i)",
        ),
    ],
)
