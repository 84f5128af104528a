"""Every law on every core; and every law finds out the wrong core that was made for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import laws
import pytest
import torch
from laws import CORES, LAWS, Out, Subject
from torch import Tensor, nn

from tfviz import patterns as P
from tfviz.cores import Core, Dense, Where
from tfviz.position.rope import Rope


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", CORES)
def test_every_core_obeys(name: str, law: Callable[[Subject], None]) -> None:
    law(CORES[name])


def test_the_definitions_are_not_all_one() -> None:
    """A definition that ignored its core's weights would prove nothing."""
    X, mask = laws.qkv(), P.causal().mask(laws.L)
    outs = [
        s.definition(s.core(), *X, mask)[0] for s in CORES.values() if s.make is not laws.Sparse
    ]
    for n, out in enumerate(outs):
        assert not any(torch.allclose(out, other) for other in outs[:n])


# --- wrong cores ----------------------------------------------------------------------------------

right = Dense()


def no_scale(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q * Q.shape[-1] ** 0.5, K, V, where)


def detached(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q, K.detach(), V, where)


def other_when_asked(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    out, A = right(Q, K, V, where)
    return (out, A) if A is None else (out, A.flip(-1))


def without_a_mask(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q, K, V, replace(where, pattern=P.full()))


def even_without_keys(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    out, A = right(Q, K, V, where)
    return torch.where((out == 0).all(-1, keepdim=True), V.mean(2, keepdim=True), out), A


def first_row_always(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    out, A = right(Q, K, V, where)
    return out + 1e-12 * V[:, :, -1:], A


class Startless(Rope):
    """Every part begins at position 0."""

    def __init__(self) -> None:
        super().__init__(laws.D)

    def turn(self, X: Tensor, start: int) -> Tensor:
        return super().turn(X, 0)


def forgets(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    if where.keep:
        where.keep((K, V))
    return right(Q, K, V, Where(P.causal() if where.start else where.pattern, real=where.real))


def in_place(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    found = right(Q, K, V, where)
    if where.state:
        where.state[0].mul_(2)
    return found


def without_padding(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q, K, V, replace(where, real=None))


def silent_padding(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    real = None if where.real is None or where.real.shape[1] != K.shape[2] else where.real.bool()
    return right(Q, K, V, replace(where, real=real))


def heads_in_turns(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    K, V = (x.repeat(1, Q.shape[1] // x.shape[1], 1, 1) for x in (K, V))
    return right(Q, K, V, where)


def over_the_batch(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q / Q.std(), K, V, where)


def one_less(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    window = where.pattern.name == "sliding_window"
    lookback = where.pattern.values["lookback"] - 1 if window else 0
    pattern = P.sliding_window(lookback=lookback) if window else where.pattern
    return right(Q, K, V, replace(where, pattern=pattern))


def always_float(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q.float(), K.float(), V.float(), where)


def overflows(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    A = scores.masked_fill(~where.pattern.mask(Q.shape[2]), -torch.inf).softmax(-1)
    return A @ V, A


def in_storage_order(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    steps = torch.empty(V.shape).stride()
    return right(Q, K, V.as_strided(V.shape, steps, V.storage_offset()), where)


def any_cache(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    if where.state is not None:
        K, V = (torch.cat(both, 2) for both in zip(where.state, (K, V), strict=True))
    if where.keep:
        where.keep((K, V))
    return right(Q, K, V, replace(where, state=None, keep=None))


def all_pairs(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q, K, V, replace(where, weights=True))


class Slow(nn.Module):
    """A vector for every pair and a third index: L³."""

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
        n = Q.shape[2] // 4
        torch.zeros(n, n, n)
        return right(Q, K, V, where)


WRONG: list[tuple[Callable[[Subject], None], Callable[[], Core], float]] = [
    (laws.definition_is_efficient_with_gradients, lambda: no_scale, 2),
    (laws.definition_is_efficient_with_gradients, lambda: detached, 2),
    (laws.definition_is_efficient_with_gradients, lambda: other_when_asked, 2),
    (laws.rows_are_shares_of_what_is_allowed, lambda: other_when_asked, 2),
    (laws.rows_are_shares_of_what_is_allowed, lambda: even_without_keys, 2),
    (laws.the_future_changes_no_bit, lambda: without_a_mask, 2),
    (laws.the_future_changes_no_bit, lambda: first_row_always, 2),
    (laws.in_parts_as_at_once, Startless, 2),
    (laws.in_parts_as_at_once, lambda: forgets, 2),
    (laws.in_parts_as_at_once, lambda: in_place, 2),
    (laws.padding_is_not_there, lambda: without_padding, 2),
    (laws.shared_heads_are_heads_repeated, lambda: heads_in_turns, 2),
    (laws.rows_of_a_batch_do_not_meet, lambda: over_the_batch, 2),
    (laws.a_window_over_everything_is_no_window, lambda: one_less, 2),
    (laws.any_real_type, lambda: always_float, 2),
    (laws.any_real_type, lambda: overflows, 2),
    (laws.memory_may_lie_anyhow, lambda: in_storage_order, 2),
    (laws.bad_input_is_named, lambda: silent_padding, 2),
    (laws.what_was_answered_cannot_change, lambda: any_cache, 2),
    (laws.it_grows_no_faster_than_it_says, lambda: all_pairs, 1),
    (laws.it_grows_no_faster_than_it_says, Slow, 2),
]


@pytest.mark.parametrize(
    ("law", "make", "exponent"),
    WRONG,
    ids=[f"{law.__name__}-{n}" for n, (law, _, _) in enumerate(WRONG)],
)
def test_a_wrong_core_is_found_out(
    law: Callable[[Subject], None], make: Callable[[], Core], exponent: float
) -> None:
    with pytest.raises(AssertionError):
        law(Subject(make, laws.plain, exponent=exponent))


def test_every_law_has_a_core_that_breaks_it() -> None:
    assert {law for law, _, _ in WRONG} == set(LAWS)
