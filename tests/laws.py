"""What every core and every function of Q, K and V must obey, whatever its mechanism.

A mechanism brings its own `CASE` in its test, tests/<part>/test_<id>.py: how its core is made, its
definition, what it is, its functions, its mutants. `cases.py` collects the cases by file, and
`test_laws.py` runs every law on each of them, and on wrong ones that it must find out. A law raises
AssertionError if it is broken. One that does not hold for a case is named there with its reason,
and tried: a reason is false where the law holds.
"""

from __future__ import annotations

import copy
import io
import itertools
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal
from unittest.mock import patch

import torch
from mixers import Mixes
from refusals import of_no_kind, refused
from three import Three, three
from three import qkv as heads_of_three
from torch import Generator, Tensor, nn

from tfviz import attention
from tfviz import patterns as P
from tfviz.cores import Core, Where, implied_map
from tfviz.examined.laws import apart, cut, dependence, elsewhere
from tfviz.examined.subjects import Subject
from tfviz.longer_context.transformer_xl_recurrence import next_token_in_segments, resumed, saved
from tfviz.measure import elements_produced, largest_storage, slope
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import generate
from tfviz.training import train

H, D, L, B = 4, 8, 9, 2
close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)
Out = tuple[Tensor, Tensor | None]

CAUSAL = (
    P.causal(),
    P.strided(stride=3),
    P.fixed(block=3, summary=1),
    P.summary_columns(block=3, summary=1),  # its first rows have no key
    P.per_head(*(P.sliding_window(lookback=n) for n in range(H))),
)
OPEN = (P.full(), P.band(radius=1), P.global_tokens(count=2) | P.dilated(radius=2, dilation=2))
Inputs = tuple[Tensor, ...]
"""Q, K, V, and what else a core is told of each token, (b, h, L, …)."""
Answers = Literal["any", "causal", "whole"]
ANSWERED: Mapping[Answers, tuple[P.Pattern, ...]] = {
    "any": CAUSAL + OPEN,
    "causal": (P.causal(),),
    "whole": (P.causal(), P.full()),
}


@dataclass(frozen=True)
class Way:
    """One way from queries, keys and values to an answer, and what it should say."""

    call: Callable[..., Tensor]
    definition: Callable[..., Tensor]
    inputs: Callable[[int], Inputs]  # of this length, without gradients
    length: int
    lengths: tuple[int, ...]  # such as one more and one fewer than what a block divides
    weights: tuple[Tensor, ...] = ()
    masks: Mapping[str, Tensor] = field(default_factory=dict)  # arguments that want Booleans


@dataclass(frozen=True)
class Function:
    """A public function of Q, K and V before the law, and its definition by all pairs.

    Both are called with 3 heads of `length` rows, and of as many as `lengths` say; whatever else
    they take has the type of Q.
    """

    call: Callable[..., Any]
    definition: Callable[..., Any]
    length: int = 24
    lengths: tuple[int, ...] = (1, 23, 24, 25, 48)
    masks: Mapping[str, Tensor] = field(default_factory=dict)
    but: Mapping[str, str] = field(default_factory=dict)  # laws that do not hold, and why

    def ways(self) -> Iterator[Way]:
        def out_of(call: Callable[..., Any]) -> Callable[..., Tensor]:
            def out(*X: Tensor, **named: Any) -> Tensor:
                answer = call(*X, **named)
                return answer[0] if isinstance(answer, tuple) else answer

            return out

        def inputs(L: int) -> Three:
            return three(x.detach() for x in heads_of_three(L))

        call, definition = out_of(self.call), out_of(self.definition)
        yield Way(call, definition, inputs, self.length, self.lengths, masks=self.masks)


Reasons = Mapping[str, str]
"""Laws that do not hold, by name, and why."""


@dataclass(frozen=True)
class Case:
    """What a mechanism brings to the laws, the refusals and the mutants.

    make          the core, for H heads of D numbers; None where the mechanism is no core
    definition    (core, *inputs, mask) → (out, A), written otherwise; mask is (L, L) or (h, L, L)
    patterns      those that the laws try; unless they are given, of all that it answers
    answers       "any" pattern of positions; "causal", if it wants the order of time; "whole", if
                  it finds the pairs in a whole text by itself
    inputs        (L, h_kv) → what it reads of a text, in float64: Q, K, V, and what `more` takes
    more          what comes after V in the inputs → `where.more`
    options       what multi-head attention is told besides the core
    causal        it has an answer without the future
    windows       it has an answer within a window of positions
    keeps         it can go on where a cache ends
    resumes       it goes on where a cache ends, though it finds the pairs in a text by itself
    forgets       what it keeps under a causal pattern has one size, however long the past is, so
                  that it has no weights on kept keys
    shares_sum_to_one   each row of A sums to one, and is zero outside of the pattern
    length        of the texts that the laws try it with
    grows         the largest tensor grows no faster than L to this power;
    sized         … of the core that is made for L tokens, if it is not the same for all
    functions     what it offers of Q, K and V without a model, by name
    mixers        what it offers from X to Y, by name: see `mixers.py`
    variants      more cores of the same room, by name, each with a case of its own
    but           other laws that do not hold, each with the reason
    mutants       (name, line, the line broken) of the room: its test or a law must notice; literals
    """

    make: Callable[[], Core] | None = None
    definition: Callable[..., tuple[Tensor, Tensor]] | None = None
    patterns: tuple[P.Pattern, ...] = ()
    answers: Answers = "any"
    inputs: Callable[[int, int], Inputs] = lambda L, h_kv: qkv(L, h_kv)
    more: Callable[..., Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    causal: bool = True
    windows: bool = True
    keeps: bool = True
    resumes: bool = False
    forgets: bool = False
    shares_sum_to_one: bool = True
    length: int = L
    grows: float = 2.0
    sized: Callable[[int], Core] | None = None
    functions: Mapping[str, Function] = field(default_factory=dict)
    mixers: Mapping[str, Mixes] = field(default_factory=dict)
    variants: Mapping[str, Case] = field(default_factory=dict)
    but: Reasons = field(default_factory=dict)
    mutants: Sequence[tuple[str, str, str]] = ()

    def __post_init__(self) -> None:
        if not self.patterns:
            every = ANSWERED[self.answers]
            patterns = every if self.causal or self.answers == "any" else (P.full(),)
            object.__setattr__(self, "patterns", patterns)

    @property
    def one_pattern(self) -> bool:
        """A text to itself, each token to those before it, is all that it answers."""
        return self.answers == "causal" and self.patterns == (P.causal(),)

    @property
    def reasons(self) -> Reasons:
        """The laws that do not hold for it, by name."""
        facts = {
            "whole": self.answers == "whole",
            "not whole": self.answers != "whole",
            "no order": self.answers != "causal",
            "one pattern": self.one_pattern,
            "not causal": not self.causal,
            "no windows": not self.windows,
            "keeps nothing": not self.keeps,
            "other shares": not self.shares_sum_to_one,
        }
        reasons = {law: FACTS[f][0] for f, true in facts.items() if true for law in FACTS[f][1]}
        if self.resumes:
            del reasons["in_parts_as_at_once"]
        return {**reasons, **self.but}

    def core(self, dtype: torch.dtype = torch.float64, length: int | None = None) -> Any:
        """With random weights, so that nothing is hidden by a table that begins at 0; one that
        changes while it trains stays as it is."""
        made: Any = self.sized(length) if self.sized and length else self.make and self.make()
        if isinstance(made, nn.Module):
            for p in made.parameters():
                p.data = torch.randn_like(p)
            made = made.to(dtype).eval()
        return Told(made, self.more) if self.more else made

    def defined(self, core: Any, X: Inputs, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(out, A) by the definition."""
        assert self.definition
        return self.definition(core.core if isinstance(core, Told) else core, *X, mask)

    def drawn(
        self, h_kv: int = H, dtype: torch.dtype = torch.float64, length: int | None = None
    ) -> Inputs:
        return tuple(x.to(dtype) for x in self.inputs(length or self.length, h_kv))

    def subject(self, core: Any, pattern: P.Pattern) -> Subject:
        """Under this pattern, as the laws for everybody's attention ask it."""

        def inputs(b: int, n: int, dice: Generator) -> Inputs:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(dice.initial_seed())
                return tuple(x[:b] for x in self.drawn(length=n))

        def call(*X: Tensor, keys: Tensor | None = None) -> Tensor:
            out: Tensor = core(*X, Where(pattern, attention_mask=keys))[0]
            return out

        return Subject(repr(core), inputs, call)

    def mask(self, pattern: P.Pattern) -> Tensor:
        return pattern.mask(self.length)

    def causal_patterns(self) -> tuple[P.Pattern, ...]:
        """Those of its patterns that are causal; if there are none, it is asked all the same."""
        return tuple(p for p in self.patterns if p in CAUSAL) or (P.causal(),)

    def ways(self) -> Iterator[Way]:
        """Each pattern, the first also with A asked for."""
        core = self.core()
        weights = tuple(core.parameters()) if isinstance(core, nn.Module) else ()

        def way(pattern: P.Pattern, asked: bool) -> Way:
            def call(*X: Tensor, attention_mask: Tensor | None = None) -> Tensor:
                where = Where(pattern, attention_mask=attention_mask, need_weights=asked)
                return placed(core, X[0])(*X, where)[0]

            def definition(*X: Tensor) -> Tensor:
                return self.defined(typed(core, X[0]), X, pattern.mask(X[0].shape[2]))[0]

            every = torch.ones(B, self.length, dtype=torch.bool)
            masks = {} if self.answers == "whole" else {"attention_mask": every}
            lengths = (1, 2, 3, self.length - 1, self.length + 1)
            return Way(
                call,
                definition,
                lambda n: self.inputs(n, H),
                self.length,
                lengths,
                weights,
                masks,
            )

        for n, pattern in enumerate(self.patterns):
            yield from (way(pattern, asked) for asked in ((False, True) if n == 0 else (False,)))


def qkv(L: int = L, h_kv: int = H, dtype: torch.dtype = torch.float64) -> Three:
    return three(torch.randn(B, h, L, D, dtype=dtype) for h in (H, h_kv, h_kv))


class Told(nn.Module):
    """A core that reads `where.more`, called with the tensors that it is made of after V."""

    def __init__(self, core: Any, more: Callable[..., Any]) -> None:
        super().__init__()
        self.core, self.more = core, more

    def where(self, X: Sequence[Tensor], where: Where) -> Where:
        return replace(where, more=self.more(*X[3:]))

    def forward(self, *given: Any) -> Out:
        *X, where = given
        found: Out = self.core(*X[:3], self.where(X, where))
        return found


def applied(core: Any, X: Inputs, where: Where) -> Tensor:
    """The map that probing finds."""
    if isinstance(core, Told):
        return implied_map(core.core, *three(X[:3]), core.where(X, where))
    return implied_map(core, *three(X), where)


def placed(core: Any, X: Tensor) -> Any:
    """The core, on the device of X and with weights of its type."""
    if X.is_meta and isinstance(core, nn.Module):
        core = copy.deepcopy(core).to("meta")
    return typed(core, X)


def typed(core: Any, X: Tensor) -> Any:
    """The core with weights of the type of X."""
    return core.to(X.dtype) if isinstance(core, nn.Module) else core


# --- the laws -------------------------------------------------------------------------------------


def definition_is_efficient_with_gradients(case: Case) -> None:
    """out, A and every gradient are those of the definition, A asked for or not."""
    core = case.core()
    weights = list(core.parameters()) if isinstance(core, nn.Module) else []
    for pattern in case.patterns:
        leaves = tuple(x.requires_grad_() for x in case.drawn())
        learnt = [*leaves, *weights]
        expected, A = case.defined(core, leaves, case.mask(pattern))
        aim = torch.randn(expected.shape, dtype=torch.float64)
        wanted = torch.autograd.grad((expected * aim).sum(), learnt, allow_unused=True)
        for asked in (False, True):
            out, mine = core(*leaves, Where(pattern, need_weights=asked))
            close(out, expected)
            if asked:
                close(mine, A)
            got = torch.autograd.grad((out * aim).sum(), learnt, allow_unused=True)
            for g, w in zip(got, wanted, strict=True):
                close(torch.zeros(()) if g is None else g, torch.zeros(()) if w is None else w)


@torch.no_grad()
def its_map_is_what_it_applies(case: Case) -> None:
    """The matrix that probing finds gives the output, also in float32, and is A where A is asked
    for."""
    for dtype, atol in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        core, queries = case.core(dtype), 0
        for pattern in 2 * case.patterns:
            X = case.drawn(dtype=dtype)
            A = applied(core, X, Where(pattern))
            values = X[2].repeat_interleave(A.shape[1] // X[2].shape[1], 1)
            out = core(*X, Where(pattern))[0]
            torch.testing.assert_close(A @ values, out, atol=atol, rtol=atol)
            asked = core(*X, Where(pattern, need_weights=True))[1]
            torch.testing.assert_close(asked, A, atol=atol, rtol=atol)
            queries += A.shape[:-1].numel()
        assert queries >= 100


def rows_are_shares_of_what_is_allowed(case: Case) -> None:
    """Each row of A sums to 1 and is 0 outside the pattern; without keys all of it, and out, is 0,
    with finite gradients."""
    core = case.core()
    for pattern in case.patterns:
        leaves, mask = [x.requires_grad_() for x in case.drawn()], case.mask(pattern)
        h = leaves[0].shape[1]
        for asked in (False, True):
            out, A = core(*leaves, Where(pattern, need_weights=asked))
            some = mask.any(-1).expand(h, case.length)
            assert (out[:, ~some] == 0).all() and (out[:, some] != 0).any(-1).all()
            grads = torch.autograd.grad(out.sum(), leaves, allow_unused=True)
            assert all(g is None or g.isfinite().all() for g in grads)
        assert A is not None
        assert (A[:, ~mask.expand(h, case.length, case.length)] == 0).all() and (A >= 0).all()
        close(A.sum(-1), some.double().expand(A.shape[:-1]))


@torch.no_grad()
def the_future_changes_no_bit(case: Case) -> None:
    """Under a causal pattern, later queries, keys and values reach no earlier row."""
    core = case.core()
    for pattern in case.causal_patterns():
        assert not dependence(case.subject(core, pattern), case.drawn()).triu(1).any()


@torch.no_grad()
def in_parts_as_at_once(case: Case) -> None:
    """With what it keeps, a core says row by row what it says of the whole; A too, unless it
    forgets the keys, and then what it keeps does not grow."""
    core = case.core()
    for pattern in set(case.causal_patterns()) - {CAUSAL[2], CAUSAL[3]}:
        X, forgets = case.drawn(), case.forgets and pattern == P.causal()
        whole, A = core(*X, Where(pattern, need_weights=True))
        for sizes in ([1] * case.length, [4, 1, case.length - 6, 1]):
            start, state, kept = 0, None, list[Any]()
            for part in cut(X, sizes):
                asked = start % 2 == 0
                where = Where(pattern, start, need_weights=asked, state=state, keep=kept.append)
                old = clone(state)
                out, rows = core(*part, where)
                stop = start + part[0].shape[2]
                assert same(state, old), "the state of the call before was changed in place"
                assert len(kept) == 1, "a core keeps its state once in a call"
                state = kept.pop()
                close(out, whole[:, :, start:stop])
                if forgets and start:
                    assert rows is None and sizes_of(state) == sizes_of(old)
                elif asked and A is not None:
                    close(rows, A[:, :, start:stop, :stop])
                start = stop


def places(n: int) -> dict[str, list[int]]:
    """Where padding may stand among n tokens."""
    every = [*range(n)]
    return {
        "right": every[6:],
        "left": every[:3],
        "middle": every[3:5],
        "first": every[:1],
        "last": every[-1:],
        "scattered": every[1::3],
        "all but one": [i for i in every if i != 4],
        "all": every,
    }


@torch.no_grad()
def padding_is_not_there(case: Case) -> None:
    """What stands where `attention_mask` is False changes nothing, and has no weight: right of the
    text, left of it, within it, everywhere. Who sees nothing but padding gets 0."""
    core = case.core()
    for pattern, (place, at) in itertools.product(case.patterns, places(case.length).items()):
        X = case.drawn()
        attention_mask = torch.ones(B, case.length, dtype=torch.bool)
        attention_mask[0, at] = False
        for asked in (False, True):
            where = Where(pattern, attention_mask=attention_mask, need_weights=asked)
            out, A = core(*X, where)
            other = elsewhere(X[1:], tuple(50 * torch.randn_like(x) for x in X[1:]), attention_mask)
            close(core(X[0], *other, where)[0], out)
            assert A is None or (A[0][..., at] == 0).all(), place
            assert place != "all" or (out[0] == 0).all()
        close(out[1], core(*X, Where(pattern, need_weights=asked))[0][1])
    attention_mask = torch.ones(B, case.length, dtype=torch.bool)
    attention_mask[0, 6:] = False
    if P.causal() in case.patterns:
        out = core(*X, Where(P.causal(), attention_mask=attention_mask))[0]
        short = core(*(x[:, :, :6] for x in X), Where(P.causal()))[0]
        close(out[0, :, :6], short[0])


@torch.no_grad()
def shared_heads_are_heads_repeated(case: Case) -> None:
    """Heads of keys and values serve neighbouring heads of queries: 0, 0, 1, 1."""
    core = case.core()
    for h_kv in (1, 2):
        Q, K, V, *more = X = case.drawn(h_kv)
        many = [x.repeat_interleave(Q.shape[1] // x.shape[1], 1) for x in (K, V)]
        for pattern in case.patterns[:2]:
            for asked in (False, True):
                where = Where(pattern, need_weights=asked)
                close(core(*X, where)[0], core(Q, *many, *more, where)[0])


@torch.no_grad()
def rows_of_a_batch_do_not_meet(case: Case) -> None:
    core, X = case.core(), case.drawn()
    for pattern in case.patterns[:2]:
        whole = core(*X, Where(pattern))[0]
        for n in range(B):
            close(core(*(x[n : n + 1] for x in X), Where(pattern))[0][0], whole[n])


@torch.no_grad()
def a_window_over_everything_is_no_window(case: Case) -> None:
    core, X = case.core(), case.drawn()
    plain, last = core(*X, Where(P.causal()))[0], case.length - 1
    close(core(*X, Where(P.sliding_window(lookback=last)))[0], plain)
    narrower = core(*X, Where(P.sliding_window(lookback=last - 1)))[0]
    close(narrower[:, :, :-1], plain[:, :, :-1])
    assert not torch.allclose(narrower[:, :, -1], plain[:, :, -1])


@torch.no_grad()
def any_real_type(case: Case) -> None:
    """float32 to rounding; half precision keeps its type, is near, and finite for large scores."""
    for dtype, atol in ((torch.float32, 1e-4), (torch.bfloat16, 0.2), (torch.float16, 0.05)):
        torch.manual_seed(1)
        exact = case.core()
        torch.manual_seed(1)
        core, X = case.core(dtype), [x.to(dtype) for x in case.drawn()]
        for asked in (False, True):
            where = Where(case.patterns[0], need_weights=asked)
            out, A = core(*X, where)
            assert out.dtype == dtype and (A is None or A.dtype == dtype)
            expected = exact(*(x.double() for x in X), replace(where, need_weights=False))[0]
            torch.testing.assert_close(out.double(), expected, atol=atol, rtol=atol)
            large = core(X[0] * 180, X[1] * 180, *X[2:], where)[0]
            assert large.isfinite().all()


@torch.no_grad()
def bad_input_is_named(case: Case) -> None:
    """Padding that is not Boolean or not for all keys, a pattern of another length."""
    core, X = case.core(), case.drawn()
    n = case.length
    for asked in (False, True):
        where = Where(case.patterns[0], need_weights=asked)
        for dtype in (torch.float32, torch.int64):
            numbers = torch.ones(B, n, dtype=dtype)
            of_no_kind(
                f"attention_mask is {dtype}", core, *X, replace(where, attention_mask=numbers)
            )
        few = torch.ones(B, n - 1, dtype=torch.bool)
        refused("attention_mask has shape", core, *X, replace(where, attention_mask=few))
        square = P.table(torch.ones(n + 1, n + 1, dtype=torch.bool).tril())
        says = "order of time" if case.one_pattern else f"the table is for L = {n + 1}"
        refused(says, core, *X, replace(where, pattern=square))
        fewer = [x[:, :, 1:] for x in X[1:]]  # more queries than keys
        refused(f"{n - 1}", core, X[0], *fewer, where)


@torch.no_grad()
def what_was_answered_cannot_change(case: Case) -> None:
    """A cache under a pattern that is not causal, or depends on the length, is refused."""
    for pattern in (P.full(), P.band(radius=1), P.causal() & P.blockwise(permutation=(1, 0))):
        if P.full() not in case.patterns and pattern in OPEN:  # it refuses them anyway
            continue
        core, kept = case.core(), list[Any]()
        first, last = cut(case.drawn(), [6, case.length - 6])
        core(*first, Where(pattern, keep=kept.append))
        refused("already", core, *last, Where(pattern, 6, state=kept.pop(), keep=kept.append))


@torch.no_grad()
def it_grows_no_faster_than_it_says(case: Case) -> None:
    """The largest tensor of one call, in bytes, as the length goes from 256 to 1024."""

    def at(n: int) -> Callable[[], Any]:
        core, X = case.core(torch.float32, n), case.drawn(dtype=torch.float32, length=n)
        narrow = case.windows and case.answers != "whole" and not case.one_pattern
        where = Where(P.sliding_window(lookback=8) if narrow else case.patterns[0])
        core(*X, where)
        return lambda: core(*X, where)

    assert slope(largest_storage, at, (256, 1024)) <= case.grows + 0.1


def values_of_another_width_store_no_scores(case: Case) -> None:
    """Narrower or wider values than keys make a core store no more than twice what it stores for
    equal widths, forward and backward: no scores of all pairs."""
    n = 64 if case.length == L else case.length
    core, where = case.core(torch.float32, n), Where(case.patterns[0])
    Q, K, V, *more = case.drawn(dtype=torch.float32, length=n)

    def most(dv: int, backward: bool) -> int:
        """The bytes of the largest tensor, for values of so many numbers."""

        def run(*X: Tensor) -> None:
            out = core(*X, where)[0]
            if backward:
                out.sum().backward()

        leaves = (x.detach().requires_grad_(backward) for x in (Q, K))
        values = torch.randn(*V.shape[:-1], dv, requires_grad=backward)
        X = (*leaves, values, *more)
        run(*X)  # what is planned once is planned before
        return largest_storage(run, *X)

    d = K.shape[-1]

    for backward in (False, True):
        equal = most(d, backward)
        for dv in (d // 2, 2 * d):
            bound = 2 * equal * max(dv, d) / d
            assert most(dv, backward) <= bound, f"values of {dv} numbers, keys of {d}"


# --- laws for every call of Q, K and V, a core's or a function's ---------------------------------


def memory_may_lie_anyhow(way: Way) -> None:
    """Numbers and gradients do not depend on how the inputs lie in memory."""
    X, aim = way.inputs(way.length), None
    for layout in LAYOUTS:
        plain = [x.requires_grad_() for x in X]
        wanted = way.call(*(layout(x).contiguous() for x in plain))
        aim = torch.randn_like(wanted)
        grads = torch.autograd.grad(wanted, plain, aim, allow_unused=True)
        out = way.call(*map(layout, plain))
        close(out, wanted)
        for got, right in zip(
            torch.autograd.grad(out, plain, aim, allow_unused=True), grads, strict=True
        ):
            close_or_none(got, right)


def transposed(x: Tensor) -> Tensor:
    return x.mT.contiguous().mT


def heads_last(x: Tensor) -> Tensor:
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def every_second_number(x: Tensor) -> Tensor:
    return torch.stack([x, -x], -1).flatten(-2)[..., ::2]


def sliced(x: Tensor) -> Tensor:
    return torch.cat([x[:, :, -2:], x, x[:, :, :1]], 2)[:, :, 2:-1]


def one_text_for_all(x: Tensor) -> Tensor:
    return x[:1].expand_as(x)


LAYOUTS = (transposed, heads_last, every_second_number, sliced, one_text_for_all)


def training_after_inference(way: Way) -> None:
    """What was planned and kept in inference mode does no harm to training."""
    forget_plans()
    X = way.inputs(way.length)
    with torch.inference_mode():
        way.call(*X)
    leaves = [x.requires_grad_() for x in X]
    learnt = [*leaves, *way.weights]
    out, wanted = way.call(*leaves), way.definition(*leaves)
    aim = torch.randn_like(wanted)
    ways = (torch.autograd.grad(x, learnt, aim, allow_unused=True) for x in (out, wanted))
    for got, right in zip(*ways, strict=True):
        close_or_none(got, right)


def forget_plans() -> None:
    """Empty every `lru_cache` of the library's rooms, so that the next call plans anew."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tfviz.") and name.split(".")[1] not in ("data", "explorers"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def half_precision_is_near(way: Way) -> None:
    """bfloat16, and both it and float32 under autocast, give finite numbers and gradients, near the
    exact: what full attention misses by in bfloat16 is exceeded AS_FAR times at the most."""
    X = [x.bfloat16().double() for x in way.inputs(way.length)]
    exact = way.definition(*X)
    own = three(x.repeat_interleave(X[0].shape[1] // x.shape[1], 1) for x in X[:3])
    plain = apart(attention(*three(x.bfloat16() for x in own))[0], attention(*own)[0])
    for dtype, autocast in (
        (torch.bfloat16, False),
        (torch.bfloat16, True),
        (torch.float32, True),
    ):
        leaves = [x.to(dtype).requires_grad_() for x in X]
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = way.call(*leaves)
            grads = torch.autograd.grad(out.float().sum(), leaves, allow_unused=True)
        assert all(g is None or g.isfinite().all() for g in grads)
        torch.testing.assert_close(out.double(), exact, atol=NEAR, rtol=NEAR)
        assert apart(out, exact) <= AS_FAR * plain


AS_FAR = 16.0


NEAR = 0.2
"""How far bfloat16, with three digits, may stand from the exact numbers."""


def compiled_it_is_the_same(way: Way) -> None:
    """`torch.compile` follows every call, and changes neither numbers nor gradients. Its graphs are
    executed by torch itself, which takes no compiler."""
    from torch._dynamo import guards  # slow to import

    leaves = [x.requires_grad_() for x in way.inputs(way.length)]
    learnt = [*leaves, *way.weights]
    wanted = way.call(*leaves)
    aim = torch.randn_like(wanted)
    grads = torch.autograd.grad(wanted, learnt, aim, allow_unused=True)
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings(), patch.object(guards, "profile_guard_manager", at_once):
            warnings.simplefilter("ignore")  # it says where it looks into a cache
            out = torch.compile(way.call, backend="eager")(*leaves)
    finally:
        torch._dynamo.reset()
    close(out, wanted)
    for got, right in zip(
        torch.autograd.grad(out, learnt, aim, allow_unused=True), grads, strict=True
    ):
        close_or_none(got, right)


def at_once(*of: Any) -> float:
    """How long torch takes to compare a call with those it has compiled. It measures that with
    empty caches, which takes time for each graph and changes nothing in it."""
    return 0.0


def everything_is_made_on_its_device(way: Way) -> None:
    """On the meta device, which holds no numbers, nothing is made elsewhere: the answer and the
    gradients stand there. Whoever needs numbers to choose pairs says so."""
    X = [x.to("meta").requires_grad_() for x in way.inputs(way.length)]
    try:
        out = way.call(*X)
    except ValueError as error:
        assert "on the meta device" in str(error), error
        return
    assert out.is_meta and out.shape == way.call(*way.inputs(way.length)).shape
    for x in torch.autograd.grad(out.sum(), X, allow_unused=True):
        assert x is None or x.is_meta


def loud_scores_stay_finite(way: Way) -> None:
    """float16 ends at 65,504: scores beyond are answered with finite numbers or refused."""
    Q, K, *rest = way.inputs(way.length)
    loud = [x.half() for x in (180 * Q, 180 * K, *rest)]
    out = answered_or_refused(way.call, *loud)
    assert out is None or out.isfinite().all()


def second_derivatives_are_right_or_refused(way: Way) -> None:
    """The gradient of a gradient is that of the definition, or one clear error says who has it;
    also where plans were made in inference mode."""
    X = way.inputs(way.length)
    forget_plans()
    with torch.inference_mode():
        way.call(*X)
    leaves = [x.requires_grad_() for x in X]
    learnt = [*leaves, *way.weights]

    def second(call: Callable[..., Tensor]) -> Sequence[Tensor | None]:
        out, dice = call(*leaves), Generator().manual_seed(1)
        aim, *along = (torch.randn(x.shape, dtype=x.dtype, generator=dice) for x in (out, *learnt))
        first = torch.autograd.grad(out, learnt, aim, create_graph=True, allow_unused=True)
        pairs = zip(first, along, strict=True)
        total = torch.stack([(g * a).sum() for g, a in pairs if g is not None]).sum()
        if not total.requires_grad:  # linear in all that it reads
            return [None] * len(learnt)
        return torch.autograd.grad(total, learnt, allow_unused=True)

    try:
        found = second(way.call)
    except RuntimeError as error:
        assert re.search("[;:] .*second|second.*[;:] ", str(error)), f"{error!r} is not clear"
        return
    for got, right in zip(found, second(way.definition), strict=True):
        close_or_none(got, right)


def any_length_is_right_or_refused(way: Way) -> None:
    """One more and one fewer than what divides, a single token, none: the definition's numbers, or
    a clear refusal."""
    for n in (0, *way.lengths):
        X = way.inputs(n)
        out = answered_or_refused(way.call, *X)
        if out is not None:
            if n:
                close(out, way.definition(*X))
            assert out.shape[-2:] == X[2].shape[-2:] and out.dtype == X[2].dtype


def numbers_are_no_mask(way: Way) -> None:
    """Who may attend to whom is said by Booleans: integers and fractions are refused by name."""
    X = way.inputs(way.length)
    for name, mask in way.masks.items():
        way.call(*X, **{name: mask})
        for wrong in (mask.long(), ~mask.long(), mask.float()):
            of_no_kind(f"{name} … {wrong.dtype}", way.call, *X, **{name: wrong})


# --- for cores that stand under no law of patterns ------------------------------------------------


def work_grows_no_faster(
    attend: Callable[[int], Callable[..., Tensor]],
    exponent: float,
    *,
    largest: float | None = None,
    leaves: Callable[[int], Sequence[tuple[int, ...]]] = lambda L: 3 * [(1, 1, L, 16)],
    work: tuple[int, int] = (1024, 4096),
    memory: tuple[int, int] = (4096, 16384),
) -> None:
    """The elements produced, with gradients and without, and the largest tensor (`largest`, if its
    power is another one) grow slower than L to this power. `attend(L)` is called with tensors of
    the sizes of `leaves`, by default Q, K and V; what it plans once is planned before."""

    def at(L: int, backward: bool = False) -> Callable[[], Tensor]:
        torch.manual_seed(0)
        call, X = attend(L), [torch.randn(size, requires_grad=backward) for size in leaves(L)]

        def run() -> Tensor:
            out = call(*X)
            if backward:
                out.sum().backward()
            return out

        run()
        return run

    assert slope(largest_storage, at, memory) < (largest or exponent)
    for backward in (False, True):
        assert slope(elements_produced, partial(at, backward=backward), work) < exponent


def it_looks_at_its_input(attend: Callable[..., Tensor]) -> None:
    """It refuses queries, keys and values (of 3 heads, 24 × 6 numbers and 24 × 5 if they are right)
    that are no numbers, or do not belong together."""
    Q, K, V = (x.detach() for x in heads_of_three())
    attend(Q, K, V)
    for name, n in zip("QKV", range(3), strict=True):
        one = [Q, K, V]
        one[n] = one[n].clone().index_fill_(2, torch.tensor(3), math.nan)
        refused(f"{name} holds NaN", attend, *one)
    of_no_kind("Q … has dtype torch.int64", attend, Q.long(), K, V)
    of_no_kind("Q, K, V have dtypes", attend, Q, K, V.float())
    refused("has shape (6,); give", attend, Q[0, 0, 0], K, V)
    refused("is empty", attend, *(x[:, :, :0] for x in (Q, K, V)))
    refused("queries have width 6, keys 5", attend, Q, K[..., :5], V)
    refused("24 keys, 23 values", attend, Q, K, V[:, :, :23])
    refused("have leading shapes", attend, Q, K[:1], V[:1])


def streamed(model: nn.Module, X: Tensor, sizes: int | list[int], cache: Any = None) -> Tensor:
    """What a model or an attention makes of a text that comes in parts."""
    cache = {} if cache is None else cache
    return torch.cat([model(x, cache=cache) for x in X.split(sizes, 1)], 1)


def it_resumes_to_the_last_bit(make: Callable[[], nn.Module], t: Tensor, L: int) -> None:
    """What a model remembers of half a text goes through a file into another one with the same
    weights, which reads on as the first does, and as it would not without."""
    first, again, cache = make(), make(), dict[nn.Module, Any]()
    begun, rest = t.chunk(2, 1)
    streamed(first, begun, L, cache)
    file = io.BytesIO()
    torch.save(saved(first, cache), file)
    file.seek(0)
    back = resumed(again, torch.load(file, weights_only=True))
    wanted = streamed(first, rest, L, cache)
    assert streamed(again, rest, L, back).equal(wanted)
    assert not streamed(again, rest, L).equal(wanted)


def it_learns_to_count(gpt: Any, begun: int, written: int) -> None:
    """A model that is read in segments of 8: 0, 1, … 10 over and over, and far beyond them."""
    ids = torch.arange(600) % 11
    losses = train(gpt, next_token_in_segments(ids, 4, 8), 120, progress=False)
    assert losses[-1] < 0.1 < losses[0]
    assert generate(gpt, ids[None, :begun], written)[0].equal(ids[: begun + written])


def a_model_takes_it(case: Case) -> None:
    """Multi-head attention does, under each pattern, with finite gradients."""
    assert case.make
    module = MultiHeadAttention(H * D, H, **{**case.options, "core": case.make})
    for pattern in (case.patterns[0], case.patterns[-1]):
        module.pattern, X = pattern, torch.randn(B, case.length, H * D)
        out = module(X)
        out.sum().backward()
        assert out.shape == X.shape and out.isfinite().all()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


def it_wants_a_whole_text(case: Case) -> None:
    """A core that finds the pairs by itself refuses a pattern of positions, another sequence's
    keys, padding, and a cache if it does not resume."""
    core, X = case.core(), case.drawn()
    attention_mask = torch.ones(B, case.length, dtype=torch.bool)
    for where in (
        Where(P.strided(stride=4)),
        Where(crosses=True),
        Where(attention_mask=attention_mask),
    ):
        refused("give full or causal attention of a text to itself", core, *X, where)
    kept = Where(P.full() if case.resumes else P.causal(), keep=lambda state: None)
    refused("a cache cannot keep … : call the model without one", core, *X, kept)


@torch.no_grad()
def it_wants_the_order_of_time(case: Case) -> None:
    """A core that writes a state token by token refuses to look ahead, keys of another sequence,
    and what it does not answer of the causal patterns: none is answered as if it were another."""
    core, X = case.core(), case.drawn()
    for where in (
        Where(P.full()),
        Where(P.band(radius=1)),
        Where(P.causal(), crosses=True),
        *(Where(pattern) for pattern in CAUSAL if pattern not in case.patterns),
    ):
        refused("order of time … ; give", core, *X, where)


LAWS: tuple[Callable[[Case], None], ...] = (
    definition_is_efficient_with_gradients,
    its_map_is_what_it_applies,
    rows_are_shares_of_what_is_allowed,
    the_future_changes_no_bit,
    in_parts_as_at_once,
    padding_is_not_there,
    shared_heads_are_heads_repeated,
    rows_of_a_batch_do_not_meet,
    a_window_over_everything_is_no_window,
    any_real_type,
    bad_input_is_named,
    what_was_answered_cannot_change,
    it_grows_no_faster_than_it_says,
    values_of_another_width_store_no_scores,
    a_model_takes_it,
    it_wants_a_whole_text,
    it_wants_the_order_of_time,
)
COMMON: tuple[Callable[[Way], None], ...] = (
    memory_may_lie_anyhow,
    training_after_inference,
    half_precision_is_near,
    loud_scores_stay_finite,
    second_derivatives_are_right_or_refused,
    any_length_is_right_or_refused,
    numbers_are_no_mask,
    everything_is_made_on_its_device,
)
ONCE: tuple[Callable[[Way], None], ...] = (compiled_it_is_the_same,)
"""Of each core and function one call: the first pattern, A not asked for."""


FACTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "whole": (
        "it finds the pairs in a whole text by itself: no padding, no cache, no window",
        (
            "in_parts_as_at_once",
            "padding_is_not_there",
            "a_window_over_everything_is_no_window",
            "bad_input_is_named",
            "what_was_answered_cannot_change",
        ),
    ),
    "not whole": ("it answers padding", ("it_wants_a_whole_text",)),
    "no order": ("it answers what looks ahead", ("it_wants_the_order_of_time",)),
    "one pattern": (
        "it answers no pattern but all tokens before",
        ("a_window_over_everything_is_no_window", "what_was_answered_cannot_change"),
    ),
    "not causal": (
        "every answer reads the whole text",
        ("the_future_changes_no_bit", "in_parts_as_at_once"),
    ),
    "no windows": ("it answers no window", ("a_window_over_everything_is_no_window",)),
    "keeps nothing": (
        "a cache has nothing to keep",
        ("in_parts_as_at_once", "what_was_answered_cannot_change"),
    ),
    "other shares": ("its rows are no shares", ("rows_are_shares_of_what_is_allowed",)),
}
"""What a case may be, why some laws then do not hold, and which. Each is tried all the same, and
must not hold: see `test_a_reason_is_true`."""


def agree_with_gradients(got: Tensor, wanted: Tensor, leaves: Sequence[Tensor]) -> None:
    """Two ways to the same numbers are also two ways to the same gradients."""
    torch.testing.assert_close(got, wanted)
    aim = torch.randn_like(wanted)
    ways = (torch.autograd.grad(out, leaves, aim) for out in (got, wanted))
    for a, b in zip(*ways, strict=True):
        torch.testing.assert_close(a, b)


def close_or_none(got: Tensor | None, wanted: Tensor | None) -> None:
    """Gradients; None is one of zeros."""
    if got is not None or wanted is not None:
        nothing = torch.zeros_like(got if got is not None else wanted)  # type: ignore[arg-type]
        close(nothing if got is None else got, nothing if wanted is None else wanted)


def answered_or_refused(call: Callable[..., Tensor], *X: Tensor) -> Tensor | None:
    """What it answers, or None if it refuses and says what to do."""
    try:
        return call(*X)
    except (ValueError, TypeError) as error:
        assert re.search("[;:] ", str(error)), f"{error!r} does not say what to do"
        return None


def clone(state: Any) -> Any:
    return torch.utils._pytree.tree_map_only(Tensor, torch.clone, state)


def sizes_of(state: Any) -> list[torch.Size]:
    return [x.shape for x in torch.utils._pytree.tree_leaves(state)]


def same(a: Any, b: Any) -> bool:
    leaves = torch.utils._pytree.tree_leaves
    return all(x.equal(y) for x, y in zip(leaves(a), leaves(b), strict=True) if x is not None)


# --- for definitions ------------------------------------------------------------------------------


def plain(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(Q, K, V, mask)


def over(pattern: P.Pattern) -> Callable[..., Any]:
    """Attention over a pattern, by all pairs: what most functions of a pattern should say."""
    return lambda Q, K, V: attention(Q, K, V, pattern)


def distance(L: int) -> Tensor:
    return torch.arange(L)[:, None] - torch.arange(L)
