"""Exit classifiers: distributions that sum to one, oracles at their limits, what may be read."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from laws import Case
from refusals import ranges, refused
from torch import Generator

from tfviz.adaptive.depth_classifiers import (
    GeometricExit,
    SequenceExit,
    TokenExit,
    exit_loss,
    geometric,
    sequence_oracle,
    smoothed,
    token_oracle,
)

LL = -torch.rand(5, 12, generator=Generator().manual_seed(0), dtype=torch.float64)
X = torch.randn(4, 2, 7, 6, generator=Generator().manual_seed(1))  # 4 blocks, 2 texts of 7 tokens


def test_the_oracle_typed_by_hand() -> None:
    scores = torch.tensor([[-1.0, -2.0, -0.3], [-0.9, -0.5, -0.1], [-0.85, -0.4, -0.2]])
    assert token_oracle(scores, 0.0).tolist() == [3, 3, 2]
    assert token_oracle(scores, 0.15).tolist() == [1, 2, 2]
    assert token_oracle(scores, 9.0).tolist() == [1, 1, 1]
    assert sequence_oracle(scores, 0.0).item() == 3 and sequence_oracle(scores, 0.1).item() == 2


def test_a_price_never_makes_an_exit_later() -> None:
    exits = torch.stack([token_oracle(LL, price) for price in (0, 0.05, 0.1, 0.3, 1)])
    assert (exits.diff(dim=0) <= 0).all() and exits[0].equal(LL.argmax(0) + 1)
    assert len(exits.unique()) > 2


def test_smoothing_and_its_limits() -> None:
    by_hand = sum(LL[:, s] * math.exp(-((4 - s) ** 2) / 3.0) for s in range(12))
    torch.testing.assert_close(smoothed(LL, 3.0)[:, 4], by_hand)
    torch.testing.assert_close(smoothed(LL, 0.0), LL)
    torch.testing.assert_close(smoothed(LL, 1e-3), LL)
    whole = sequence_oracle(LL, 0.02)
    assert (token_oracle(LL, 0.02, math.inf) == whole).all()
    assert (token_oracle(LL, 0.02, 1e9) == whole).all()


def test_the_wrong_sign_of_the_survey_prefers_far_tokens() -> None:
    """E26: exp(+|t − t'|²/σ) would let the farthest token decide."""
    far = torch.zeros(2, 12, dtype=torch.float64)
    far[0, 0], far[1, 11] = 1.0, 1.0  # exit 1 is best for the first token, exit 2 for the last
    assert token_oracle(far, 0.0, 4.0)[[0, 11]].tolist() == [1, 2]
    t = torch.arange(12.0, dtype=torch.float64)
    assert ((far @ (((t[:, None] - t) ** 2) / 4).exp()).argmax(0) + 1)[[0, 11]].tolist() == [2, 1]


def test_stop_or_go_on_sums_to_one() -> None:
    stop = torch.randn(3, 4, dtype=torch.float64)
    q, chi = geometric(stop).exp(), stop.sigmoid()
    torch.testing.assert_close(q.sum(-1), torch.ones(3).double())
    torch.testing.assert_close(q[:, 2], chi[:, 2] * (1 - chi[:, 0]) * (1 - chi[:, 1]))
    torch.testing.assert_close(q[:, 4], (1 - chi).prod(-1))
    assert geometric(torch.full((4,), 40.0)).exp()[0] > 0.999
    assert torch.isfinite(geometric(torch.full((4,), 200.0))).all()


@pytest.mark.parametrize("kind", [SequenceExit(6, 4, 3), TokenExit(6, 4), GeometricExit(6, 4)])
def test_a_classifier_reads_no_more_than_is_computed(kind: torch.nn.Module) -> None:
    log_q = kind(X)
    torch.testing.assert_close(log_q.exp().sum(-1), torch.ones(2, 7))
    other = X.clone()
    other[1:] += 1.0  # all blocks but the first
    same = [kind(other)[..., n].allclose(log_q[..., n]) for n in range(4)]
    assert same == [True, *3 * [not isinstance(kind, GeometricExit)]]
    later = X.clone()
    later[:, :, 5] += 1.0  # one token: after the prompt
    changed = (kind(later) != log_q).any(-1).nonzero()[:, 1].unique().tolist()
    assert changed == ([] if isinstance(kind, SequenceExit) else [5])


@pytest.mark.parametrize("kind", [lambda: TokenExit(6, 4), lambda: GeometricExit(6, 4)])
def test_a_classifier_learns_its_oracle(kind: object) -> None:
    torch.manual_seed(0)
    head, n = kind(), torch.randint(1, 5, (2, 7))  # type: ignore[operator]
    rows = torch.zeros(4, 2, 7, 6)
    rows[..., :4] = torch.nn.functional.one_hot(n - 1, 4).float()
    adam = torch.optim.Adam(head.parameters(), 0.3)
    for _ in range(60):
        loss = exit_loss(head(rows), n)
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert (head(rows).argmax(-1) + 1).equal(n) and loss < 0.1


def test_bad_input_is_named() -> None:
    none = torch.zeros(2, 7, dtype=torch.long)
    refused("give each token an exit from 1 to 4", exit_loss, TokenExit(6, 4)(X), none)
    ranges(partial(smoothed, LL), sigma=(1.0, 0.0, math.inf))
    ranges(partial(token_oracle, LL), price=(0.1, 0.0), sigma=(1.0, 0.0, math.inf))
    ranges(partial(GeometricExit, 6), N=(4, 2))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "smoothing that prefers far tokens",
            "(-squared / sigma).exp()",
            "(squared / sigma).exp()",
        ),
        (
            "stopping without having gone on before",
            "F.pad(F.logsigmoid(-stop).cumsum(-1), (1, 0))",
            "F.pad(F.logsigmoid(-stop), (1, 0))",
        ),
    ],
)
