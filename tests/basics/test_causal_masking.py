"""Causal masking: golden mask, one pass against many, exact deafness to the future, mutants."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from refusals import ranges, refused
from torch import Tensor

from tfviz import attention, patterns
from tfviz.basics.causal_masking import (
    causal_bias,
    leaks,
    listens_to,
    one_by_one,
    one_pass,
    shift_right,
    token_losses,
)
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import Sinusoidal

close = torch.testing.assert_close
INF = math.inf
VOCAB, BEGIN = 9, 9


def model(pattern: patterns.Pattern | None = None) -> GPT:
    gpt = GPT(VOCAB + 1, 16, 2, 2, positions=Sinusoidal(16), pattern=pattern)
    return gpt.requires_grad_(False)


def case(L: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    Q, K, V = (torch.randn(L, 4, dtype=torch.float64) for _ in range(3))
    return Q, K, V


def test_golden_bias() -> None:
    expected = [[0, -INF, -INF, -INF], [0, 0, -INF, -INF], [0, 0, 0, -INF], [0, 0, 0, 0]]
    assert causal_bias(4).tolist() == expected
    assert torch.equal(causal_bias(9) == 0, patterns.causal().mask(9))
    ranges(causal_bias, L=(4, 1))


def test_bias_and_pattern_give_the_same_weights() -> None:
    Q, K, V = case()
    out, A = attention(Q, K, V, bias=causal_bias(6))
    close((out, A), attention(Q, K, V, patterns.causal()))
    assert not A.triu(1).any()
    close(A.sum(-1), torch.ones(6, dtype=torch.float64))
    assert torch.equal(A[0], torch.eye(6, dtype=torch.float64)[0])  # the first hears itself only
    theirs = F.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=True)[0]
    close(out, theirs)


def test_zeros_after_the_softmax_are_wrong_until_divided_by_their_sum() -> None:
    Q, K, V = case()
    _, A = attention(Q, K, V, patterns.causal())
    zeroed = (Q @ K.T / 2).softmax(-1).tril()
    assert (zeroed.sum(-1)[:-1] < 0.999).all()
    close(zeroed / zeroed.sum(-1, keepdim=True), A)
    strict = attention(Q, K, V, patterns.causal() & ~patterns.band(radius=0))[1]
    assert not torch.allclose(strict, A)  # j < i instead of j ≤ i


def test_golden_shift() -> None:
    z = torch.tensor([[5, 6, 7], [1, 2, 3]])
    assert shift_right(z, 0).tolist() == [[0, 5, 6], [0, 1, 2]]
    assert z.tolist() == [[5, 6, 7], [1, 2, 3]]
    refused("begin = 0.5", shift_right, z, 0.5)


def test_golden_losses() -> None:
    logits = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]]))
    close(token_losses(logits, torch.tensor([[0, 1]])), torch.tensor([[math.log(2), math.log(10)]]))


def test_one_pass_is_as_good_as_many_only_with_the_mask() -> None:
    z = torch.randint(VOCAB, (3, 7))
    for pattern in (None, patterns.sliding_window(lookback=2)):
        m = model(pattern)
        close(one_pass(m, z, BEGIN), one_by_one(m, z, BEGIN))
    open_ = model(patterns.full())
    wrong, right = one_pass(open_, z, BEGIN), one_by_one(open_, z, BEGIN)
    close(wrong[:, -1], right[:, -1])  # nothing lies ahead of the last
    assert (wrong[:, :-1] - right[:, :-1]).abs().max() > 1e-3


def test_the_product_of_the_conditionals_is_a_distribution_over_sequences() -> None:
    m = model()
    every = torch.cartesian_prod(*[torch.arange(VOCAB + 1)] * 2)
    total = (-one_pass(m, every, BEGIN).sum(-1)).exp().sum()
    close(total, torch.tensor(1.0))
    total = (-one_pass(model(patterns.full()), every, BEGIN).sum(-1)).exp().sum()
    assert abs(total - 1) > 1e-3  # without the mask they are no conditionals at all


def test_later_tokens_change_nothing_at_all() -> None:
    m, x = model(), torch.randint(VOCAB, (2, 7))
    later = x.clone()
    later[:, 4:] = (later[:, 4:] + 1) % VOCAB
    assert torch.equal(m(x)[:, :4], m(later)[:, :4])


def test_listening_is_the_jacobian_and_exactly_zero_ahead() -> None:
    W = torch.tensor([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 4.0, 5.0]])
    golden = listens_to(lambda X: W @ X, torch.randn(3, 1))
    close(golden, W)
    stack = model().stack
    X = torch.randn(6, 16)
    hears = listens_to(lambda X: stack(X[None])[0], X)
    assert hears.shape == (6, 6) and not hears.triu(1).any() and (hears.tril() > 0).sum() == 21
    assert leaks(lambda X: stack(X[None])[0], X) == []


def test_leaks_are_named() -> None:
    peeks = patterns.causal() | patterns.band(radius=1)
    stack = model(peeks).stack
    X = torch.randn(4, 16)
    one_layer = stack.blocks[0]
    assert leaks(lambda X: one_layer(X[None])[0], X) == [(0, 1), (1, 2), (2, 3)]
    assert leaks(lambda X: stack(X[None])[0], X) == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    assert leaks(lambda X: X.mean(0, keepdim=True).expand(4, 16), X) != []
