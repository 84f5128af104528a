"""The implied map: what any core does to its values, as a matrix.

That it is the right one for every core of the library is a law, `its_map_is_what_it_applies`.
"""

from __future__ import annotations

import pytest
import torch
from laws import D, H, qkv
from refusals import of_no_kind, refused
from torch import Tensor, nn

from tfviz import attention, implied_map, patterns
from tfviz.cores import Dense, Where, levels
from tfviz.sparse.routing_transformer import Routing

Out = tuple[Tensor, Tensor | None]


def every_second(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    """A user's own core: the mean of the values at even places, which it never calls a matrix."""
    return V[:, :, ::2].mean(2, keepdim=True).expand(*Q.shape[:3], -1), None


def test_the_matrix_of_a_core_that_has_none() -> None:
    X = torch.randn(1, 1, 3, 2)
    A = implied_map(every_second, X, X, X)
    assert A[0, 0].tolist() == 3 * [[0.5, 0.0, 0.5]]


@pytest.mark.parametrize("L", [1, 7, 8, 9, 31])
def test_any_length_is_probed_by_values_of_the_same_width(L: int) -> None:
    Q, K, V = qkv(L)
    widths = set()

    def watched(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
        widths.add(V.shape)
        return Dense()(Q, K, V, where)

    A = implied_map(watched, Q, K, V)
    assert widths == {V.shape}
    torch.testing.assert_close(A, attention(Q, K, V)[1], atol=1e-10, rtol=0)


def test_shared_heads_and_keys_of_another_text() -> None:
    Q, K, V = torch.randn(2, 4, 5, 6), torch.randn(2, 2, 9, 6), torch.randn(2, 2, 9, 6)
    A = implied_map(Dense(), Q, K, V, Where(crosses=True))
    K, V = (x.repeat_interleave(2, 1) for x in (K, V))
    torch.testing.assert_close(A, attention(Q, K, V)[1])


def test_gradients_pass() -> None:
    Q, K, V = (x.requires_grad_() for x in qkv())
    A = implied_map(Dense(), Q, K, V)
    got = torch.autograd.grad((A**2).sum(), [Q, K])
    wanted = torch.autograd.grad((attention(Q, K, V)[1] ** 2).sum(), [Q, K])
    torch.testing.assert_close(got, wanted)


def test_nothing_is_left_behind() -> None:
    """No centroid moves, nothing is kept, what is handed up reaches nobody, and modes come back."""
    core = Routing(H, D, k=3).double()
    core.add_module("dropout", nn.Dropout(0.5).eval())
    mu = core.mu.clone()
    implied_map(core, *qkv())
    assert core.mu.equal(mu)
    assert [m.training for m in core.modules()] == [True, False]
    kept = list[object]()

    def hands_up(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
        where.hand_up(1 if where.below is None else where.below + 1)
        return Dense()(Q, K, V, where)

    with levels():
        Where().hand_up(0)
        implied_map(hands_up, *qkv(), Where(patterns.causal(), keep=kept.append))
        assert Where().below == 0
    assert not kept


def test_each_probe_finds_the_same_below() -> None:
    """A core that reads what it has handed up before would be probed as several cores."""

    def climbs(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
        where.hand_up(1 if where.below is None else where.below + 1)
        return Dense()(Q, K * (where.below or 0), V, where)

    A = implied_map(climbs, *qkv())
    torch.testing.assert_close(A, torch.full_like(A, 1 / A.shape[-1]))


def cubes(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return Dense()(Q, K, V**3, where)


def one_more(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return Dense()(Q, K, V, where)[0] + 1, None


def heads_mixed(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return Dense()(Q, K, V + V.roll(1, 1), where)


def at_random(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return Dense()(torch.randn_like(Q), K, V, where)


def nan(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return V * float("nan"), None


def test_what_applies_no_matrix_is_refused() -> None:
    X = qkv()
    refused("answers 1 where all values are 0, so it is not linear in V", implied_map, one_more, *X)
    for core in (cubes, heads_mixed, at_random):
        refused("A V differs … not linear in V head by head", implied_map, core, *X)
    refused("NaN", implied_map, nan, *X)


def test_bad_input_is_named() -> None:
    Q, K, V = qkv()
    of_no_kind("is no core that is made; give one", implied_map, Dense, Q, K, V)
    of_no_kind("V", implied_map, Dense(), Q, K, [1, 2])
    refused("V has shape (4, 9, 8); give (b, h, L, d_head)", implied_map, Dense(), Q, K, V[0])
    refused("where.state holds kept keys", implied_map, Dense(), Q, K, V, Where(state=(K, V)))
