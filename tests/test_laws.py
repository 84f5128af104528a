"""Every law on every core; and every law finds out the wrong core that was made for it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import exemplars
import laws
import pytest
import test_mixers
import torch
from cases import cases, functions
from laws import COMMON, LAWS, ONCE, Case, Function, Out, Reasons, Way
from torch import Tensor, nn

import tfviz
from tfviz import attention
from tfviz import patterns as P
from tfviz.cores import Core, Dense, Sparse, Where, sees_ahead
from tfviz.position.rope import Rope

RESTS_ON = ("tfviz/**", "tfviz_lab/**", "tests/**")  # the cases are found by their files

CASES, FUNCTIONS = cases(), functions()
CORES = {name: case for name, case in CASES.items() if case.make}


def each_way(law: Callable[[Way], None], subject: Case | Function) -> None:
    for way in subject.ways():
        law(way)


def first_way(law: Callable[[Way], None], subject: Case | Function) -> None:
    law(next(iter(subject.ways())))


def all_laws(name: str) -> Mapping[str, Callable[[], None]]:
    """Of this core or function, by name."""
    subject: Any = CORES.get(name) or FUNCTIONS[name]
    own = {law.__name__: partial(law, subject) for law in LAWS} if name in CORES else {}
    own |= {law.__name__: partial(first_way, law, subject) for law in ONCE}
    return own | {law.__name__: partial(each_way, law, subject) for law in COMMON}


def reasons(name: str) -> Reasons:
    return CORES[name].reasons if name in CORES else FUNCTIONS[name].but


EVERY = [(name, law) for name in [*CORES, *FUNCTIONS] for law in all_laws(name)]
HOLD = [
    (name, law)
    for name, law in EVERY
    if law not in reasons(name)
    if law != "compiled_it_is_the_same" or exemplars.compiles(name)
]
DO_NOT = [(name, law) for name, law in EVERY if law in reasons(name)]


@pytest.mark.parametrize(("name", "law"), HOLD)
def test_every_case_obeys(name: str, law: str) -> None:
    all_laws(name)[law]()


@pytest.mark.parametrize(("name", "law"), DO_NOT)
def test_a_reason_is_true(name: str, law: str) -> None:
    """A law that is named as one that does not hold is tried, and does not hold. Of what is drawn
    one case in some dozens keeps it by luck, and which one that is depends on the processor."""
    with pytest.raises((AssertionError, ValueError, TypeError)):
        for seed in range(4):
            torch.manual_seed(seed)
            all_laws(name)[law]()


def test_a_reason_names_a_law() -> None:
    known = {law.__name__ for law in (*LAWS, *COMMON, *ONCE)}
    assert known >= {law for _, laws_ in laws.FACTS.values() for law in laws_}
    for name in (*CORES, *FUNCTIONS):
        assert known >= reasons(name).keys(), name


def test_a_false_reason_is_found_out() -> None:
    """That a core keeps nothing, of one that does, and that it is not causal, of one that is."""
    for case in (Case(Dense, laws.plain, keeps=False), Case(Dense, laws.plain, causal=False)):
        by_name = {law.__name__: law for law in LAWS}
        assert any(holds(by_name[law], case) for law in case.reasons)


def holds(law: Callable[[Case], None], case: Case) -> bool:
    try:
        law(case)
    except (AssertionError, ValueError, TypeError):
        return False
    return True


def test_the_definitions_are_not_all_one() -> None:
    """A definition that ignored its core's weights would prove nothing. Some are attention here:
    groups with a head of keys for each head of queries, what has no layer below, and heads that
    begin with features of their own."""
    X, mask = laws.qkv(), P.causal().mask(laws.L)
    outs = {
        name: case.definition(case.core(), *X, mask)[0]
        for name, case in CORES.items()
        if case.definition and case.length == laws.L and case.make is not Sparse
        if case.inputs is Case.inputs  # others read other texts
    }
    pairs = itertools.combinations(outs, 2)
    same = {frozenset((a, b)) for a, b in pairs if torch.allclose(outs[a], outs[b])}
    attention = [
        "scaled_dot_product_attention",
        "grouped_query_attention",
        "realformer",
        "lazyformer",
        "lazyformer, a lazy layer",
        "collaborative_heads",
    ]
    assert same == {frozenset(pair) for pair in itertools.combinations(attention, 2)}


# --- which are compiled whatever was changed ------------------------------------------------------

ROOMS = {file.stem: file for file in Path(tfviz.__file__).parent.glob("*/*.py")}
SHARED = ("tfviz.cores", "tfviz.dense_attention", "tfviz.sub_quadratic", "tfviz._fused")
MARKS = {
    "a backward pass of its own": r"autograd\.Function",
    "a plan that is kept": r"lru_cache|@cache",
    "pairs chosen by numbers": r"\.(nonzero|topk|argsort|sort|argmax)\(",
    "sums that run on": r"cumsum|logcumsumexp",
    "a loop": r"^ +for ",
}


def compiled_kinds(name: str) -> set[str]:
    """What the room of a case takes from rooms that many share, what it does, what its core is."""
    room = ROOMS.get(name.partition(",")[0].partition(":")[0])
    text = room.read_text("utf-8") if room else ""
    found = {mark for mark, how in MARKS.items() if re.search(how, text, re.M)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(SHARED):
            found |= {f"{alias.name} of {node.module}" for alias in node.names}
    if name in FUNCTIONS:
        return found | {"a function"}
    case = CORES[name]
    found |= {f"answers {case.answers}"} | ({"more"} if case.more else set())
    core = case.core()
    learns = isinstance(core, nn.Module) and any(True for _ in core.parameters())
    return found | {"a core with weights" if learns else "a core without weights"}


def lacking(compiled: Collection[str]) -> set[str]:
    """Kinds that are in use, and that none of these cases has."""
    every = {name: compiled_kinds(name) for name in (*CORES, *FUNCTIONS)}
    return set().union(*every.values()) - set().union(*(every[x] for x in compiled))


def test_every_kind_that_is_in_use_is_compiled() -> None:
    compiled = set(exemplars.COMPILED) & {*CORES, *FUNCTIONS}
    assert set(exemplars.COMPILED) - compiled <= set(test_mixers.MIXERS), "one has another name"
    assert not lacking(compiled), "add a case of this kind to COMPILED (tests/exemplars.py)"
    assert lacking(compiled - {"reformer_lsh"}) >= {"a backward pass of its own"}
    assert all(("compiled_it_is_the_same" not in reasons(name)) for name in compiled)


def test_what_is_touched_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exemplars, "ALL", False)
    monkeypatch.setattr(exemplars, "TOUCHED", [])
    assert not any(map(exemplars.compiles, ("linformer", "sac: edges()")))
    monkeypatch.setattr(exemplars, "TOUCHED", ["law:linformer", "law:sac", "tests/test_laws"])
    assert all(map(exemplars.compiles, ("linformer", "linformer, headwise", "sac: edges()")))
    assert not exemplars.compiles("talking_heads") and exemplars.compiles("rope")


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
    return right(
        Q,
        K,
        V,
        Where(P.causal() if where.start else where.pattern, attention_mask=where.attention_mask),
    )


def in_place(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    found = right(Q, K, V, where)
    if where.state:
        where.state[0].mul_(2)
    return found


def without_padding(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q, K, V, replace(where, attention_mask=None))


def silent_padding(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    attention_mask = (
        None
        if where.attention_mask is None or where.attention_mask.shape[1] != K.shape[2]
        else where.attention_mask.bool()
    )
    return right(Q, K, V, replace(where, attention_mask=attention_mask))


def heads_in_turns(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    K, V = (x.repeat(1, Q.shape[1] // x.shape[1], 1, 1) for x in (K, V))
    return right(Q, K, V, where)


def over_the_batch(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q / Q.std(), K, V, where)


def one_less(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    pattern = where.pattern
    if isinstance(pattern, P.Leaf) and pattern.name == "sliding_window":
        pattern = P.sliding_window(lookback=pattern.values["lookback"] - 1)
    return right(Q, K, V, replace(where, pattern=pattern))


def always_float(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q.float(), K.float(), V.float(), where)


def overflows(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    scores = Q @ K.mT / Q.shape[-1] ** 0.5
    A = scores.masked_fill(~where.pattern.mask(Q.shape[2]), -torch.inf).softmax(-1)
    return A @ V, A


def any_cache(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    if where.state is not None:
        K, V = (torch.cat(both, 2) for both in zip(where.state, (K, V), strict=True))
    if where.keep:
        where.keep((K, V))
    return right(Q, K, V, replace(where, state=None, keep=None))


def all_pairs(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    return right(Q, K, V, replace(where, need_weights=True))


def one_row_more(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    out, A = right(Q, K, V, where)
    return torch.cat([out, out[:, :, :1]], 2), A


def by_torch(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
    """torch stores all scores where values are not as wide as keys."""
    causal = where.pattern == P.causal()
    return torch.nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=causal), None


class Slow(nn.Module):
    """A vector for every pair and a third index: L³."""

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
        n = Q.shape[2] // 4
        torch.zeros(n, n, n)
        return right(Q, K, V, where)


# --- wrong calls ----------------------------------------------------------------------------------


def plainly(Q: Tensor, K: Tensor, V: Tensor, pattern: Tensor | None = None) -> Tensor:
    return attention(Q, K, V, pattern)[0]


def as_if_contiguous(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    steps = torch.empty(V.shape).stride()
    return plainly(Q, K, V.as_strided(V.shape, steps, V.storage_offset()))


def one_gradient_short(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """Right where the keys lie one after the other."""
    return plainly(Q, K if K.is_contiguous() else K.detach(), V)


@lru_cache
def planned(L: int) -> Tensor:
    return torch.ones(L, L, dtype=torch.float64)


def by_a_plan(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """The plan is a tensor of inference mode if the first call was."""
    return attention(Q * planned(Q.shape[2]).diagonal()[:, None].to(Q), K, V)[0]


def in_double(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    return plainly(Q, K, V) @ torch.eye(V.shape[-1], dtype=torch.float64)


def rounded(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """Right in float64 alone."""
    return plainly(Q, K, V) * (1 if Q.dtype == torch.float64 else 2)


def overflowing(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    return (Q @ K.mT / Q.shape[-1] ** 0.5).exp().softmax(-1) @ V


def raw_second(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """torch's own error, which names a kernel."""
    q, k = (x[..., : V.shape[-1]] for x in (Q, K))
    return torch.nn.functional.scaled_dot_product_attention(q, k, V)


class Linear(torch.autograd.Function):
    """A product whose gradient is treated as a constant."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, V: Tensor) -> Tensor:
        ctx.save_for_backward(A, V)
        return A @ V

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        A, V = (x.detach() for x in ctx.saved_tensors)
        return g @ V.mT, A.mT @ g


def constant_gradient(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    A: Tensor = Linear.apply(attention(Q, K, V)[1], V)
    return A


def drops_what_is_over(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """In blocks of 4; what is left over is not read."""
    whole = Q.shape[2] // 4 * 4
    return attention(Q, K[:, :, :whole], V[:, :, :whole])[0]


def raw_at_one(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    if Q.shape[2] == 1:
        raise ValueError("no")
    return plainly(Q, K, V)


def any_number(Q: Tensor, K: Tensor, V: Tensor, pattern: Tensor | None = None) -> Tensor:
    return plainly(Q, K, V, None if pattern is None else pattern != 0)


def elsewhere(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    return plainly(Q * torch.ones(Q.shape[2], 1, dtype=Q.dtype), K, V)


def other_when_compiled(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    return plainly(Q * (2 if torch.compiler.is_compiling() else 1), K, V)


WRONG_CALLS: list[tuple[Callable[[Way], None], Callable[..., Tensor]]] = [
    (laws.memory_may_lie_anyhow, as_if_contiguous),
    (laws.memory_may_lie_anyhow, one_gradient_short),
    (laws.training_after_inference, by_a_plan),
    (laws.half_precision_is_near, in_double),
    (laws.half_precision_is_near, rounded),
    (laws.loud_scores_stay_finite, overflowing),
    (laws.second_derivatives_are_right_or_refused, raw_second),
    (laws.second_derivatives_are_right_or_refused, constant_gradient),
    (laws.second_derivatives_are_right_or_refused, by_a_plan),
    (laws.any_length_is_right_or_refused, drops_what_is_over),
    (laws.any_length_is_right_or_refused, raw_at_one),
    (laws.numbers_are_no_mask, any_number),
    (laws.everything_is_made_on_its_device, elsewhere),
    (laws.compiled_it_is_the_same, other_when_compiled),
]


@pytest.mark.parametrize(("law", "call"), WRONG_CALLS, ids=lambda x: x.__name__)
def test_a_wrong_call_is_found_out(law: Callable[[Way], None], call: Callable[..., Tensor]) -> None:
    masks = {"pattern": torch.ones(24, 24, dtype=torch.bool).tril()}
    (right,) = Function(plainly, plainly, masks=masks).ways()
    law(right)
    planned.cache_clear()
    with pytest.raises((AssertionError, RuntimeError)):
        law(replace(right, call=call))


WRONG: list[tuple[Callable[[Case], None], Callable[[], Core], float]] = [
    (laws.definition_is_efficient_with_gradients, lambda: no_scale, 2),
    (laws.definition_is_efficient_with_gradients, lambda: detached, 2),
    (laws.definition_is_efficient_with_gradients, lambda: other_when_asked, 2),
    (laws.its_map_is_what_it_applies, lambda: other_when_asked, 2),
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
    (laws.bad_input_is_named, lambda: silent_padding, 2),
    (laws.what_was_answered_cannot_change, lambda: any_cache, 2),
    (laws.it_grows_no_faster_than_it_says, lambda: all_pairs, 1),
    (laws.it_grows_no_faster_than_it_says, Slow, 2),
    (laws.values_of_another_width_store_no_scores, lambda: by_torch, 2),
    (laws.a_model_takes_it, lambda: one_row_more, 2),
    (laws.it_wants_a_whole_text, Dense, 2),
    (laws.it_wants_the_order_of_time, Dense, 2),
]


@pytest.mark.parametrize(
    ("law", "make", "grows"),
    WRONG,
    ids=[f"{law.__name__}-{n}" for n, (law, _, _) in enumerate(WRONG)],
)
def test_a_wrong_core_is_found_out(
    law: Callable[[Case], None], make: Callable[[], Core], grows: float
) -> None:
    with pytest.raises(AssertionError):
        law(Case(make, laws.plain, grows=grows))


def test_a_pattern_that_is_answered_as_another_is_found_out() -> None:
    """What writes token by token, and takes every causal pattern for all tokens before."""

    def all_before(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Out:
        if where.crosses or sees_ahead(where.pattern, Q.shape[2], K.shape[2]):
            raise ValueError("it wants the order of time; give causal attention")
        return right(Q, K, V, replace(where, pattern=P.causal()))

    every = Case(lambda: all_before, laws.plain, laws.CAUSAL, answers="causal")
    laws.it_wants_the_order_of_time(every)
    with pytest.raises(AssertionError):
        laws.it_wants_the_order_of_time(replace(every, patterns=(P.causal(),)))


def test_every_law_has_a_core_or_a_call_that_breaks_it() -> None:
    assert {law for law, _, _ in WRONG} == set(LAWS)
    assert {law for law, _ in WRONG_CALLS} == {*COMMON, *ONCE}
