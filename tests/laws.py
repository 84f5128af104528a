"""What every core must obey, whatever its mechanism. A law raises AssertionError if it is broken.

To put a core under all laws, give it a line in CORES: how it is made for H heads of D numbers, and
its definition, written otherwise: (core, Q, K, V, mask) → (out, A), mask (L, L) or (h, L, L).
`test_laws.py` runs every law on every core, and on wrong cores that it must find out.
"""

from __future__ import annotations

import io
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from refusals import of_no_kind, refused
from three import Three, three
from three import qkv as heads_of_three
from torch import Generator, Tensor, nn

from tfviz import patterns as P
from tfviz.adaptive.adaptive_span import AdaptiveSpan, Span, ramp
from tfviz.adaptive.dynamic_span import DynamicSpan
from tfviz.attention import attention
from tfviz.basics.additive_attention import Additive
from tfviz.cores import Core, Dense, Sparse, Where
from tfviz.longer_context.alibi import Alibi
from tfviz.longer_context.da_transformer import DA
from tfviz.longer_context.transformer_xl_recurrence import next_token_in_segments, resumed, saved
from tfviz.measure import elements_produced, largest_storage, slope
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import generate
from tfviz.position import Bias
from tfviz.position.rope import Rope, rotation
from tfviz.position.shaw_relative import Shaw, shaw_attention
from tfviz.position.t5_relative_bias import T5Bias, bucket
from tfviz.position.xl_relative import XL, four_terms
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
OPEN = (P.full(), P.band(radius=1), P.global_tokens(count=2) | P.dilated(radius=2, gap=2))


@dataclass(frozen=True)
class Subject:
    """A core before the law."""

    make: Callable[[], Core]
    definition: Callable[..., tuple[Tensor, Tensor]]
    patterns: tuple[P.Pattern, ...] = CAUSAL + OPEN
    exponent: float = 2.0  # the largest tensor grows no faster than L to this power

    def core(self, dtype: torch.dtype = torch.float64) -> Any:
        """With random weights, so that nothing is hidden by a table that begins at 0."""
        made: Any = self.make()
        if isinstance(made, nn.Module):
            for p in made.parameters():
                p.data = torch.randn_like(p)
            made = made.to(dtype)
        return made

    def ways(self) -> Iterator[Way]:
        """Each pattern, the first also with A asked for."""
        core = self.core()
        weights = tuple(core.parameters()) if isinstance(core, nn.Module) else ()

        def way(pattern: P.Pattern, asked: bool) -> Way:
            def call(Q: Tensor, K: Tensor, V: Tensor, real: Tensor | None = None) -> Tensor:
                return typed(core, Q)(Q, K, V, Where(pattern, real=real, weights=asked))[0]

            def definition(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
                return self.definition(typed(core, Q), Q, K, V, mask_of(pattern, Q.shape[2]))[0]

            masks = {"real": torch.ones(B, L, dtype=torch.bool)}
            return Way(call, definition, qkv, L, (1, 2, 3, L - 1, L + 1), weights, masks)

        for n, pattern in enumerate(self.patterns):
            yield from (way(pattern, asked) for asked in ((False, True) if n == 0 else (False,)))


@dataclass(frozen=True)
class Way:
    """One way from queries, keys and values to an answer, and what it should say."""

    call: Callable[..., Tensor]
    definition: Callable[..., Tensor]
    inputs: Callable[[int], Three]  # of this length, without gradients
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


def qkv(L: int = L, h_kv: int = H, dtype: torch.dtype = torch.float64) -> Three:
    return three(torch.randn(B, h, L, D, dtype=dtype) for h in (H, h_kv, h_kv))


def typed(core: Any, X: Tensor) -> Any:
    """The core with weights of the type of X."""
    return core.to(X.dtype) if isinstance(core, nn.Module) else core


def mask_of(pattern: P.Pattern, L: int = L) -> Tensor:
    return pattern.mask(L)


# --- the laws -------------------------------------------------------------------------------------


def definition_is_efficient_with_gradients(subject: Subject) -> None:
    """out, A and every gradient are those of the definition, A asked for or not."""
    core = subject.core()
    weights = list(core.parameters()) if isinstance(core, nn.Module) else []
    for pattern in subject.patterns:
        leaves = three(x.requires_grad_() for x in qkv())
        learnt, aim = [*leaves, *weights], torch.randn(B, H, L, D, dtype=torch.float64)
        expected, A = subject.definition(core, *leaves, mask_of(pattern))
        wanted = torch.autograd.grad((expected * aim).sum(), learnt, allow_unused=True)
        for asked in (False, True):
            out, mine = core(*leaves, Where(pattern, weights=asked))
            close(out, expected)
            if asked:
                close(mine, A)
            got = torch.autograd.grad((out * aim).sum(), learnt, allow_unused=True)
            for g, w in zip(got, wanted, strict=True):
                close(torch.zeros(()) if g is None else g, torch.zeros(()) if w is None else w)


def rows_are_shares_of_what_is_allowed(subject: Subject) -> None:
    """Each row of A sums to 1 and is 0 outside the pattern; without keys all of it, and out, is 0,
    with finite gradients."""
    core = subject.core()
    for pattern in subject.patterns:
        leaves, mask = [x.requires_grad_() for x in qkv()], mask_of(pattern)
        for asked in (False, True):
            out, A = core(*leaves, Where(pattern, weights=asked))
            some = mask.any(-1).expand(H, L)
            assert (out[:, ~some] == 0).all() and (out[:, some] != 0).any(-1).all()
            grads = torch.autograd.grad(out.sum(), leaves)
            assert all(g.isfinite().all() for g in grads)
        if A is not None:
            assert (A[:, ~mask.expand(H, L, L)] == 0).all() and (A >= 0).all()
            close(A.sum(-1), some.double().expand(B, H, L))


@torch.no_grad()
def the_future_changes_no_bit(subject: Subject) -> None:
    """Under a causal pattern, later queries, keys and values reach no earlier row."""
    core = subject.core()
    for pattern in set(subject.patterns) & set(CAUSAL):
        X = qkv()
        before = core(*X, Where(pattern))[0]
        for i in (1, L - 1):
            later = [torch.cat([x[:, :, :i], torch.randn_like(x[:, :, i:])], 2) for x in X]
            assert core(*later, Where(pattern))[0][:, :, :i].equal(before[:, :, :i])


@torch.no_grad()
def in_parts_as_at_once(subject: Subject) -> None:
    """With what it keeps, a core says row by row what it says of the whole; A too."""
    core = subject.core()
    for pattern in set(subject.patterns) & set(CAUSAL) - {CAUSAL[2], CAUSAL[3]}:
        X = qkv()
        whole, A = core(*X, Where(pattern, weights=True))
        for sizes in ([1] * L, [4, 1, 3, 1]):
            start, state, kept = 0, None, list[Any]()
            for part in zip(*(x.split(sizes, 2) for x in X), strict=True):
                asked = start % 2 == 0
                where = Where(pattern, start, weights=asked, state=state, keep=kept.append)
                old = clone(state)
                out, rows = core(*part, where)
                stop = start + part[0].shape[2]
                assert same(state, old), "the state of the call before was changed in place"
                assert len(kept) == 1, "a core keeps its state once in a call"
                state = kept.pop()
                close(out, whole[:, :, start:stop])
                if asked and A is not None:
                    close(rows, A[:, :, start:stop, :stop])
                start = stop


@torch.no_grad()
def padding_is_not_there(subject: Subject) -> None:
    """What stands where `real` is False changes nothing, and has no weight."""
    core, real = subject.core(), torch.ones(B, L, dtype=torch.bool)
    real[0, 6:] = False
    for pattern in subject.patterns:
        Q, K, V = qkv()
        for asked in (False, True):
            where = Where(pattern, real=real, weights=asked)
            out, A = core(Q, K, V, where)
            other = [
                torch.where(real[:, None, :, None], x, 50 * torch.randn_like(x)) for x in (K, V)
            ]
            close(core(Q, *other, where)[0], out)
            if A is not None:
                assert (A[0, ..., 6:] == 0).all()
        close(out[1], core(Q, K, V, Where(pattern, weights=asked))[0][1])
    if P.causal() in subject.patterns:
        out = core(Q, K, V, Where(P.causal(), real=real))[0]
        short = core(*(x[:, :, :6] for x in (Q, K, V)), Where(P.causal()))[0]
        close(out[0, :, :6], short[0])


@torch.no_grad()
def shared_heads_are_heads_repeated(subject: Subject) -> None:
    """Heads of keys and values serve neighbouring heads of queries: 0, 0, 1, 1."""
    core = subject.core()
    for h_kv in (1, 2):
        Q, K, V = qkv(h_kv=h_kv)
        many = [x.repeat_interleave(H // h_kv, 1) for x in (K, V)]
        for pattern in subject.patterns[:2]:
            for asked in (False, True):
                where = Where(pattern, weights=asked)
                close(core(Q, K, V, where)[0], core(Q, *many, where)[0])


@torch.no_grad()
def rows_of_a_batch_do_not_meet(subject: Subject) -> None:
    core, X = subject.core(), qkv()
    for pattern in subject.patterns[:2]:
        whole = core(*X, Where(pattern))[0]
        for n in range(B):
            close(core(*(x[n : n + 1] for x in X), Where(pattern))[0][0], whole[n])


@torch.no_grad()
def a_window_over_everything_is_no_window(subject: Subject) -> None:
    core, X = subject.core(), qkv()
    plain = core(*X, Where(P.causal()))[0]
    close(core(*X, Where(P.sliding_window(lookback=L - 1)))[0], plain)
    narrower = core(*X, Where(P.sliding_window(lookback=L - 2)))[0]
    close(narrower[:, :, :-1], plain[:, :, :-1])
    assert not torch.allclose(narrower[:, :, -1], plain[:, :, -1])


@torch.no_grad()
def any_real_type(subject: Subject) -> None:
    """float32 to rounding; half precision keeps its type, is near, and finite for large scores."""
    for dtype, atol in ((torch.float32, 1e-4), (torch.bfloat16, 0.2), (torch.float16, 0.05)):
        torch.manual_seed(1)
        exact = subject.core()
        torch.manual_seed(1)
        core, X = subject.core(dtype), [x.to(dtype) for x in qkv()]
        for asked in (False, True):
            out, A = core(*X, Where(weights=asked, pattern=P.causal()))
            assert out.dtype == dtype and (A is None or A.dtype == dtype)
            expected = exact(*(x.double() for x in X), Where(P.causal()))[0]
            torch.testing.assert_close(out.double(), expected, atol=atol, rtol=atol)
            large = core(X[0] * 180, X[1] * 180, X[2], Where(P.causal(), weights=asked))[0]
            assert large.isfinite().all()


@torch.no_grad()
def bad_input_is_named(subject: Subject) -> None:
    """Padding that is not Boolean or not for all keys, a pattern of another length."""
    core, X = subject.core(), qkv()
    for asked in (False, True):
        where = Where(P.causal(), weights=asked)
        for dtype in (torch.float32, torch.int64):
            numbers = torch.ones(B, L, dtype=dtype)
            of_no_kind(f"real is {dtype}", core, *X, replace(where, real=numbers))
        few = torch.ones(B, L - 1, dtype=torch.bool)
        refused("real has shape", core, *X, replace(where, real=few))
        square = P.table(torch.ones(L + 1, L + 1, dtype=torch.bool).tril())
        refused(f"the table is for L = {L + 1}", core, *X, replace(where, pattern=square))
        fewer = [x[:, :, 1:] for x in X[1:]]  # more queries than keys
        refused(f"{L - 1}", core, X[0], *fewer, where)


@torch.no_grad()
def what_was_answered_cannot_change(subject: Subject) -> None:
    """A cache under a pattern that is not causal, or depends on the length, is refused."""
    for pattern in (P.full(), P.band(radius=1), P.causal() & P.blockwise(permutation=(1, 0))):
        if pattern not in subject.patterns and P.full() not in subject.patterns:
            continue
        core, kept, X = subject.core(), list[Any](), qkv()
        first, last = zip(*(x.split([6, 3], 2) for x in X), strict=True)
        core(*first, Where(pattern, keep=kept.append))
        refused("already", core, *last, Where(pattern, 6, state=kept.pop(), keep=kept.append))


@torch.no_grad()
def it_grows_no_faster_than_it_says(subject: Subject) -> None:
    """The largest tensor of one call, in bytes, as the length goes from 256 to 1024."""

    def at(n: int) -> Callable[[], Any]:
        core, X = subject.core(torch.float32), qkv(n, dtype=torch.float32)
        where = Where(P.sliding_window(lookback=8))
        core(*X, where)
        return lambda: core(*X, where)

    assert slope(largest_storage, at, (256, 1024)) <= subject.exponent + 0.1


# --- laws for every call of Q, K and V, a core's or a function's ---------------------------------


def memory_may_lie_anyhow(way: Way) -> None:
    """Numbers and gradients do not depend on how the inputs lie in memory."""
    X, aim = way.inputs(way.length), None
    for layout in LAYOUTS:
        plain = three(x.requires_grad_() for x in X)
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
    return x[:1].expand(len(x), -1, -1, -1)


LAYOUTS = (transposed, heads_last, every_second_number, sliced, one_text_for_all)


def training_after_inference(way: Way) -> None:
    """What was planned and kept in inference mode does no harm to training."""
    forget_plans()
    X = way.inputs(way.length)
    with torch.inference_mode():
        way.call(*X)
    leaves = three(x.requires_grad_() for x in X)
    learnt = [*leaves, *way.weights]
    out, wanted = way.call(*leaves), way.definition(*leaves)
    aim = torch.randn_like(wanted)
    ways = (torch.autograd.grad(x, learnt, aim, allow_unused=True) for x in (out, wanted))
    for got, right in zip(*ways, strict=True):
        close_or_none(got, right)


def forget_plans() -> None:
    """Empty every `lru_cache` of the library's rooms, so that the next call plans anew."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tfviz.") and name.split(".")[1] not in (
            "data",
            "explorers",
            "experiments",
        ):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


def half_precision_is_near(way: Way) -> None:
    """bfloat16, and float32 under autocast, give finite numbers and gradients, near the exact."""
    X = three(x.bfloat16().double() for x in way.inputs(way.length))
    for dtype, autocast in ((torch.bfloat16, False), (torch.float32, True)):
        leaves = three(x.to(dtype).requires_grad_() for x in X)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = way.call(*leaves)
            grads = torch.autograd.grad(out.float().sum(), leaves, allow_unused=True)
        assert all(g is None or g.isfinite().all() for g in grads)
        torch.testing.assert_close(out.double(), way.definition(*X), atol=NEAR, rtol=NEAR)


NEAR = 0.2
"""How far bfloat16, with three digits, may stand from the exact numbers."""


def loud_scores_stay_finite(way: Way) -> None:
    """float16 ends at 65,504: scores beyond are answered with finite numbers or refused."""
    Q, K, V = way.inputs(way.length)
    loud = three(x.half() for x in (180 * Q, 180 * K, V))
    out = answered_or_refused(way.call, *loud)
    assert out is None or out.isfinite().all()


def second_derivatives_are_right_or_refused(way: Way) -> None:
    """The gradient of a gradient is that of the definition, or one clear error says who has it;
    also where plans were made in inference mode."""
    X = way.inputs(way.length)
    forget_plans()
    with torch.inference_mode():
        way.call(*X)
    leaves = three(x.requires_grad_() for x in X)
    learnt = [*leaves, *way.weights]

    def second(call: Callable[..., Tensor]) -> Sequence[Tensor | None]:
        out, dice = call(*leaves), Generator().manual_seed(1)
        aim, *along = (torch.randn(x.shape, dtype=x.dtype, generator=dice) for x in (out, *learnt))
        first = torch.autograd.grad(out, learnt, aim, create_graph=True, allow_unused=True)
        pairs = zip(first, along, strict=True)
        total = torch.stack([(g * a).sum() for g, a in pairs if g is not None]).sum()
        return torch.autograd.grad(total, learnt, allow_unused=True)

    try:
        found = second(way.call)
    except RuntimeError as error:
        assert re.search("second derivative.*[;:] ", str(error)), f"{error!r} is not clear"
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
            close(out, way.definition(*X)) if n else close(out, X[2])


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
    of_no_kind("Q has dtype torch.int64", attend, Q.long(), K, V)
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


def a_model_takes_it(make: Callable[[], Core]) -> None:
    """Causal and not, with finite gradients. The core is for 2 heads of 6 numbers and 16 tokens."""
    module, X = MultiHeadAttention(12, 2, core=make), torch.randn(2, 16, 12)
    for pattern in (P.causal(), P.full()):
        module.pattern = pattern
        out = module(X)
        out.sum().backward()
        assert out.shape == X.shape and out.isfinite().all()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


def it_wants_a_whole_text(core: Core, Q: Tensor, K: Tensor, V: Tensor) -> None:
    """A core that finds the pairs by itself refuses a pattern of positions, another sequence's
    keys, padding and a cache."""
    real = torch.ones(len(Q), Q.shape[2], dtype=torch.bool)
    for where in (Where(P.strided(stride=4)), Where(crosses=True), Where(real=real)):
        refused("give full or causal attention of a text to itself", core, Q, K, V, where)
    kept = Where(P.causal(), keep=lambda state: None)
    refused("a cache cannot keep … : call the model without one", core, Q, K, V, kept)


LAWS: tuple[Callable[[Subject], None], ...] = (
    definition_is_efficient_with_gradients,
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
)
COMMON: tuple[Callable[[Way], None], ...] = (
    memory_may_lie_anyhow,
    training_after_inference,
    half_precision_is_near,
    loud_scores_stay_finite,
    second_derivatives_are_right_or_refused,
    any_length_is_right_or_refused,
    numbers_are_no_mask,
)


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


def same(a: Any, b: Any) -> bool:
    leaves = torch.utils._pytree.tree_leaves
    return all(x.equal(y) for x, y in zip(leaves(a), leaves(b), strict=True) if x is not None)


# --- the cores ------------------------------------------------------------------------------------


def plain(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(Q, K, V, mask)


def distance(L: int) -> Tensor:
    return torch.arange(L)[:, None] - torch.arange(L)


def turned(core: Rope, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    R = torch.stack([rotation(i, D, core.base) for i in range(Q.shape[2])])
    Q, K = (torch.einsum("iab,nhib->nhia", R, x) for x in (Q, K))
    return attention(Q, K, V, mask)


def shaw(core: Shaw, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    none = torch.zeros_like(core.P_k)
    return shaw_attention(Q, K, V, core.P_k, none if core.P_v is None else core.P_v, mask)


def xl(core: XL, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    both = XL(H, D, future=True).double()
    both.W_r = core.W_r
    R = both.distances(Q.shape[2], Q.shape[2]).expand(B, -1, -1, -1)
    u, v = (x.expand(B, -1, -1) for x in (core.u, core.v))
    extra = four_terms(Q, K, R, u, v)[1:].sum(0) / D**0.5
    return attention(Q, K, V, mask, bias=extra)


def t5(core: T5Bias, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    row = bucket(distance(Q.shape[2]), core.buckets, core.far, future=core.future)
    one_hot = torch.nn.functional.one_hot(row, core.buckets).to(core.b.dtype)
    return attention(Q, K, V, mask, bias=core.scale * torch.einsum("ijr,hr->hij", one_hot, core.b))


def slopes(i: Tensor, j: Tensor) -> Tensor:
    return -(0.5 ** torch.arange(1, H + 1)[:, None, None]) * (i - j).abs()


def biased(core: Bias, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(Q, K, V, mask, bias=slopes)


def alibi(core: Alibi, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(Q, K, V, mask, bias=-core.m[:, None, None] * distance(Q.shape[2]).abs())


def da(core: DA, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The paper's formula, and a softmax by hand."""
    alpha, beta = core.alpha[:, None, None], core.beta[:, None, None]
    f = (1 + beta.exp()) / (1 + (beta - alpha * distance(Q.shape[2]).abs()).exp())
    loud = ((Q @ K.mT).clamp(min=0) * f / D**0.5).exp() * mask
    A = loud / loud.sum(-1, keepdim=True).clamp_min(1e-300)
    return A @ V, A


def additive(
    core: Additive, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Pair by pair, one exponential at a time."""
    e = torch.stack([
        torch.stack([torch.tanh(q @ core.W_a + k @ core.U_a) @ core.v_a for k in K.unbind(2)], -1)
        for q in Q.unbind(2)
    ], 2)  # fmt: skip
    loud = e.exp() * mask
    A = loud / loud.sum(-1, keepdim=True).clamp_min(1e-300)
    return A @ V, A


def spanned(core: Span, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The mask after the softmax, and each row divided by its sum."""
    m = ramp(distance(Q.shape[2]).abs(), core.spans(Q)[..., None], core.R)
    A = attention(Q, K, V, mask)[1] * m
    A = A / A.sum(-1, keepdim=True).clamp_min(1e-300)
    return A @ V, A


CORES = {
    "dense": Subject(Dense, plain),
    "sparse": Subject(Sparse, plain, exponent=1.0),
    "additive": Subject(lambda: Additive(D, 5), additive),
    "rotary": Subject(lambda: Rope(D), turned),
    "Shaw": Subject(lambda: Shaw(D, 2), shaw),
    "Shaw, keys only": Subject(lambda: Shaw(D, 2, values=False), shaw),
    "XL": Subject(lambda: XL(H, D), xl, CAUSAL),
    "XL, two sides": Subject(lambda: XL(H, D, future=True), xl),
    "T5": Subject(lambda: T5Bias(H, buckets=4, far=6), t5),
    "T5, two sides": Subject(lambda: T5Bias(H, buckets=8, far=5, future=True), t5),
    "a bias of the places": Subject(lambda: Bias(slopes), biased),
    "ALiBi": Subject(lambda: Alibi(H), alibi),
    "DA": Subject(lambda: DA(H), da),
    "adaptive span": Subject(lambda: AdaptiveSpan(H, S=6, R=12), spanned),
    "dynamic span": Subject(lambda: DynamicSpan(H, D, S=6, R=12), spanned),
}
