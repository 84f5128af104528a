"""What everybody's attention is asked: a law looks for the smallest example that breaks it.

A law takes a `Subject` and what was said of it (`Asked`), and gives a `Verdict`. Comparisons are
made in float64; where a module computes something in fewer digits (many norms and softmaxes do),
that is found out, and less exactness is asked (`exactness`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tfviz.examined.subjects import Inputs, Subject
from tfviz.measure import exponent, largest_storage

__all__ = ["LAWS", "Asked", "Example", "Verdict"]

Status = Literal["holds", "broken", "noted", "not asked"]

LENGTHS = (1, 2, 3, 4, 5, 7, 9, 16, 33)
"""Tried in this order, so that what is found first is small."""

HALF = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
ORDINARY = 8.0
"""Inputs of this size are met in every model: half precision must bear them."""


@dataclass(frozen=True)
class Asked:
    """What the examiner was told.

    causal      True: no answer may depend on what comes later; False: it may; None: find out
    definition  what it should compute: a function of the same inputs
    exponent    its largest tensor may grow like this power of the length; None: only say
    seed        of all random texts
    """

    causal: bool | None = None
    definition: Callable[..., Any] | None = None
    exponent: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class Example:
    """The smallest text that shows it.

    L, seed   of the text: `subject.drawn(1, L, seed)`
    pair      (i, j): what is said at i depends on what stands at j
    matrix    how much each i depends on each j, (L, L), where it is about pairs
    wrong     pairs that should not depend on one another, Boolean (L, L)
    """

    L: int
    seed: int
    pair: tuple[int, int] | None = None
    matrix: Tensor | None = None
    wrong: Tensor | None = None


@dataclass(frozen=True)
class Verdict:
    """What a law found: it `holds`, is `broken`, something is `noted`, or it was `not asked`."""

    law: str
    status: Status
    says: str
    example: Example | None = None


# --- exactness ------------------------------------------------------------------------------------


class _Digits(TorchDispatchMode):
    """Whether an operation gives real numbers of fewer digits than float64."""

    def __init__(self) -> None:
        super().__init__()
        self.fewer = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            if isinstance(x, Tensor) and x.is_floating_point() and x.dtype != torch.float64:
                self.fewer = self.fewer or x.numel() > 1
        return result


@torch.no_grad()
def exactness(subject: Subject) -> float:
    """How near two ways to the same numbers must come, relative to their size."""
    with _Digits() as digits:
        subject(*subject.drawn(1, short(subject), 0))
    return 1e-4 if digits.fewer else 1e-9


def apart(a: Tensor, b: Tensor) -> float:
    """The largest difference, relative to the size of b; infinite where one is not finite."""
    if a.shape != b.shape:
        return math.inf
    if not a.numel():
        return 0.0
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    difference = (a - b).abs().masked_fill(same, 0.0).amax().item()
    size = max(1e-300, b[b.isfinite()].abs().amax().item() if b.isfinite().any() else 1.0)
    return math.inf if math.isnan(difference) else difference / size


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def answers(subject: Subject, L: int) -> bool:
    """Whether it takes texts of this length."""
    try:
        subject(*subject.drawn(1, L, 0))
    except Exception:  # whatever somebody's module raises for a length that it does not take
        return False
    return True


def lengths(subject: Subject) -> list[int]:
    return [L for L in LENGTHS if answers(subject, L)]


def short(subject: Subject) -> int:
    """A short text that it takes. Raises ValueError if there is none."""
    for L in (5, 4, 3, 7, 9, 2, 1, 16, 33):
        if answers(subject, L):
            return L
    raise ValueError(f"{subject.name} answers no text of {LENGTHS[0]} to {LENGTHS[-1]} tokens")


# --- laws -----------------------------------------------------------------------------------------


@torch.no_grad()
def dependence(subject: Subject, inputs: Inputs, seed: int = 1) -> Tensor:
    """How much what is said at i changes when what stands at j is another thing, (L, L)."""
    L, before = inputs[0].shape[-2], subject(*inputs)
    columns = []
    for j in range(L):
        change = torch.zeros(L, 1)
        for n in range(2):
            others = subject.drawn(len(inputs[0]), L, seed + 1000 * (n + 1) + j)
            mixed = []
            for x, other in zip(inputs, others, strict=True):
                y = x.clone()
                y[..., j, :] = (1.0, 30.0)[n] * other[..., j, :]
                mixed.append(y)
            moved = (subject(*mixed) - before).abs().nan_to_num(math.inf)
            change = torch.maximum(change, moved.movedim(-2, 0).flatten(1).amax(-1, keepdim=True))
        columns.append(change)
    return torch.cat(columns, 1) / before.abs().nan_to_num(0.0).amax().clamp(min=1e-300)


def sees_the_future(subject: Subject, asked: Asked) -> Verdict:
    """No answer depends on what comes later, if that is what it should be."""
    law, tolerance = "future", exactness(subject)
    if asked.causal is False:
        return Verdict(law, "not asked", "it may look both ways")
    smallest, some, none = None, False, True
    tried = [L for L in lengths(subject) if L > 1]
    for L in tried:
        matrix = dependence(subject, subject.drawn(1, L, asked.seed), asked.seed)
        ahead = torch.ones(L, L, dtype=torch.bool).triu(1)
        wrong = (matrix > tolerance) & ahead
        some, none = some or bool(wrong.any()), none and not wrong.any()
        if wrong.any() and smallest is None:
            i, j = wrong.nonzero()[0].tolist()
            smallest = Example(L, asked.seed, (i, j), matrix, wrong)
        if asked.causal is None and smallest and L >= 4:
            break
    if not tried:
        return Verdict(law, "not asked", "it takes no text of two tokens or more")
    if smallest is None:
        return Verdict(law, "holds", "what is said at i depends on nothing behind i")
    assert smallest.pair and smallest.wrong is not None
    i, j = smallest.pair
    says = f"what is said at {i} depends on what stands at {j}, in a text of {smallest.L}"
    if asked.causal:
        return Verdict(law, "broken", f"it sees the future: {says}", smallest)
    L = 7 if 7 in tried else tried[-1]
    matrix = dependence(subject, subject.drawn(1, L, asked.seed), asked.seed)
    ahead = torch.ones(L, L, dtype=torch.bool).triu(1)
    share = ((matrix > tolerance) & ahead).sum().item() / ahead.sum().item()
    if share < 0.5:
        wrong = (matrix > tolerance) & ahead
        i, j = wrong.nonzero()[0].tolist() if wrong.any() else smallest.pair
        return Verdict(
            law,
            "broken",
            f"it looks ahead at some places and not at others: {says}; if it may look both ways, "
            "say causal=False",
            Example(L, asked.seed, (i, j), matrix, wrong) if wrong.any() else smallest,
        )
    return Verdict(law, "noted", "it looks both ways; if it must not, say causal=True", smallest)


@torch.no_grad()
def sees_padding(subject: Subject, asked: Asked) -> Verdict:
    """What stands at padding changes no answer at a token, wherever the padding is."""
    law = "padding"
    if not subject.padding:
        return Verdict(law, "not asked", subject.missing.get(law, "it takes no padding"))
    tolerance = exactness(subject)
    for L in [n for n in lengths(subject) if n > 1]:
        places = {
            "on the right": range(L - 1, L),
            "on the left": range(0, 1),
            "on the right, two": range(max(1, L - 2), L),
            "in the middle": range(L // 2, L // 2 + 1),
        }
        for where, padded in places.items():
            keys = torch.ones(2, L, dtype=torch.bool)
            keys[0, list(padded)] = False
            inputs = subject.drawn(2, L, asked.seed)
            before = subject(*inputs, keys=keys)
            for scale in (1.0, 30.0):
                others = tuple(scale * y for y in subject.drawn(2, L, asked.seed + 7))
                after = subject(*elsewhere(inputs, others, keys), keys=keys)
                real = _laid(keys, before).expand_as(before)
                lost = _rows(~before.isfinite() & real)
                if lost:
                    return Verdict(
                        law,
                        "broken",
                        f"padding {where} of a text of {L} makes what is said at {lost[0]} NaN or "
                        f"infinite ({subject.padding})",
                        Example(L, asked.seed, (lost[0], padded[0])),
                    )
                wrong = ((after - before).abs().nan_to_num(0.0) > tolerance * _size(before)) & real
                if wrong.any():
                    i, j = _rows(wrong)[0], padded[0]
                    return Verdict(
                        law,
                        "broken",
                        f"padding is seen: {where} of a text of {L}, what stands at {j} changes "
                        f"what is said at {i} ({subject.padding})",
                        _padding_example(subject, asked.seed, L, keys, tolerance, (i, j)),
                    )
    return Verdict(law, "holds", f"what stands at padding changes nothing ({subject.padding})")


def elsewhere(inputs: Inputs, others: Inputs, keys: Tensor) -> Inputs:
    """The same text where `keys` (b, L) is True, and another one at padding."""
    return tuple(torch.where(_laid(keys, x), x, y) for x, y in zip(inputs, others, strict=True))


def _laid(keys: Tensor, x: Tensor) -> Tensor:
    """(b, L) beside x of (b, …, L, width)."""
    return keys.reshape(len(keys), *[1] * (x.dim() - 3), keys.shape[1], 1)


def _size(x: Tensor) -> float:
    real = x[x.isfinite()]
    return max(1e-300, real.abs().amax().item()) if real.numel() else 1.0


def _rows(wrong: Tensor) -> list[int]:
    """The positions at which something is wrong, in order."""
    return sorted(set(wrong.nonzero()[:, -2].tolist()))


def _first_apart(a: Tensor, b: Tensor, tolerance: float) -> int:
    """The first position at which they differ; 0 where they have different shapes."""
    if a.shape != b.shape:
        return 0
    return min(_rows((a - b).abs().nan_to_num(math.inf) > tolerance * _size(b)), default=0)


@torch.no_grad()
def _padding_example(
    subject: Subject, seed: int, L: int, keys: Tensor, tolerance: float, pair: tuple[int, int]
) -> Example:
    masked = Subject(
        subject.name,
        subject.inputs,
        lambda *X: subject.call(*X, keys=keys[:1].expand(len(X[0]), -1)),
    )
    matrix = dependence(masked, subject.drawn(1, L, seed), seed)
    matrix = matrix.nan_to_num(0.0)
    wrong = (matrix > tolerance) & ~keys[:1] & keys[0][:, None]
    return Example(L, seed, pair, matrix, wrong)


@torch.no_grad()
def cache_is_no_cache(subject: Subject, asked: Asked) -> Verdict:
    """In parts, with what is kept, it says what it says at once."""
    law = "cache"
    if subject.in_parts is None:
        return Verdict(law, "not asked", subject.missing.get(law, "no cache"))
    tolerance = exactness(subject)
    if not asked.causal and _looks_ahead(subject, tolerance, asked.seed):
        return Verdict(law, "not asked", "it looks both ways, so that no cache can hold")
    for L in [n for n in lengths(subject) if n > 1]:
        inputs = subject.drawn(2, L, asked.seed)
        whole = subject(*inputs)
        for sizes in ([1] * L, [L - 1, 1], [1, L - 1], _parts(L, asked.seed)):
            try:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(0)
                    got = torch.cat(subject.in_parts(cut(inputs, sizes)), -2)
            except Exception as error:  # whatever somebody's cache raises is a finding
                return Verdict(
                    law,
                    "broken",
                    f"a text of {L} in parts of {sizes} ends with {_first_line(error)}",
                    Example(L, asked.seed),
                )
            if apart(got, whole) > tolerance:
                i = _first_apart(got, whole, tolerance)
                return Verdict(
                    law,
                    "broken",
                    f"with a cache it says something else: a text of {L} in parts of {sizes} "
                    f"differs at {i}, by {apart(got, whole):.1g} of its size",
                    Example(L, asked.seed, (i, i)),
                )
    return Verdict(law, "holds", "in parts, with a cache, it says the same as at once")


def cut(inputs: Inputs, sizes: Sequence[int]) -> list[Inputs]:
    """A text in parts of these sizes."""
    parts = ([y.contiguous() for y in x.split([*sizes], -2)] for x in inputs)
    return list(zip(*parts, strict=True))


def _looks_ahead(subject: Subject, tolerance: float, seed: int) -> bool:
    """Whether most answers depend on what comes later."""
    L = short(subject)
    ahead = torch.ones(L, L, dtype=torch.bool).triu(1)
    matrix = dependence(subject, subject.drawn(1, L, seed), seed)
    return 2 * int(((matrix > tolerance) & ahead).sum()) > int(ahead.sum())


def _parts(L: int, seed: int) -> list[int]:
    """Random sizes that sum to L."""
    dice, sizes = torch.Generator().manual_seed(seed), list[int]()
    while sum(sizes) < L:
        sizes.append(int(torch.randint(1, L - sum(sizes) + 1, (), generator=dice)))
    return sizes


@torch.no_grad()
def batch_does_not_meet(subject: Subject, asked: Asked) -> Verdict:
    """A text is answered the same alone and beside others."""
    law, tolerance = "batch", exactness(subject)
    for L in lengths(subject):
        inputs = subject.drawn(3, L, asked.seed)
        whole = subject(*inputs)
        for n in range(3):
            alone = subject(*(x[n : n + 1] for x in inputs))
            if apart(alone, whole[n : n + 1]) > tolerance:
                return Verdict(
                    law,
                    "broken",
                    f"it depends on the batch: text {n} of three, of {L} tokens, is answered "
                    f"otherwise alone, by {apart(alone, whole[n : n + 1]):.1g} of its size",
                    Example(L, asked.seed),
                )
    return Verdict(law, "holds", "a text is answered the same alone and beside others")


def gradients_are_right(subject: Subject, asked: Asked) -> Verdict:
    """Gradients of what it reads and of its weights are slopes of what it says, in float64."""
    law, exact = "gradients", exactness(subject) < 1e-6
    step, tolerance = (1e-5, 1e-5) if exact else (1e-2, 5e-2)
    L = short(subject)
    weights = dict(subject.module.named_parameters()) if subject.module is not None else {}
    wrong: dict[str, list[float]] = {}
    blind: set[str] = set()
    for n in range(3):
        inputs = tuple(x.requires_grad_() for x in subject.drawn(2, L, asked.seed + n))
        named = {f"input {k}" if k else "the input": x for k, x in enumerate(inputs)}
        named |= {name: p for name, p in weights.items() if p.requires_grad}
        out = subject(*inputs)
        if not out.requires_grad:
            return Verdict(law, "broken", "no gradient reaches what it reads, nor its weights")
        dice = torch.Generator().manual_seed(asked.seed + n)
        aim = torch.randn(out.shape, dtype=torch.float64, generator=dice).to(out.dtype)
        found = torch.autograd.grad((out * aim).sum(), list(named.values()), allow_unused=True)
        for (name, x), gradient in zip(named.items(), found, strict=True):
            along = torch.randn(x.shape, dtype=torch.float64, generator=dice).to(x.dtype)
            near, far = (_slope(subject, inputs, x, along, aim, n * step) for n in (1, 2))
            said = 0.0 if gradient is None else (gradient * along).sum().item()
            size = max(abs(near), abs(said), 1e-3)
            if gradient is None and abs(near) > 10 * abs(near - far) + tolerance * size:
                blind.add(name)
            # what two steps say differently is rounding, or a bend
            error = max(0.0, abs(said - near) - 10 * abs(near - far)) / size
            wrong.setdefault(name, []).append(error)
    bad = {name: min(errors) for name, errors in wrong.items() if min(errors) > tolerance}
    if bad:
        name = max(bad, key=lambda x: bad[x])
        what = "has no gradient" if name in blind else f"is off by {bad[name]:.1g} of its size"
        return Verdict(
            law,
            "broken",
            f"gradients are wrong: that of {name} {what}, in three texts of three "
            f"({len(bad)} of {len(wrong)} are wrong)",
            Example(L, asked.seed),
        )
    return Verdict(law, "holds", f"the gradients of all {len(wrong)} tensors are its slopes")


@torch.no_grad()
def _slope(
    subject: Subject, inputs: Inputs, x: Tensor, along: Tensor, aim: Tensor, step: float
) -> float:
    """How (out · aim) grows along a direction of one of the tensors, from both sides."""
    kept, ends = x.detach().clone(), []
    for side in (1, -1):
        x.data.copy_(kept + side * step * along)
        ends.append((subject(*inputs) * aim).sum().item())
    x.data.copy_(kept)
    return (ends[0] - ends[1]) / (2 * step)


@torch.no_grad()
def half_precision_bears_it(subject: Subject, asked: Asked) -> Verdict:
    """Half precision stays finite for inputs of ordinary size, and near what float64 says."""
    law, L, said, broken = "half precision", short(subject), list[str](), None
    kind = subject.drawn(1, L, asked.seed)[0].dtype
    for dtype, name in HALF.items():
        try:
            half = subject.typed(dtype)
            half(*half.drawn(1, L, asked.seed))
        except Exception as error:  # whatever it raises, it does not take this type
            said.append(f"{name} is refused ({_first_line(error)})")
            continue
        last = None
        for size in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0):
            inputs = tuple(size * x for x in half.drawn(2, L, asked.seed))
            exact = subject(*(x.to(kind) for x in inputs))
            out = half(*inputs)
            if not exact.isfinite().all() or exact.abs().amax() > torch.finfo(dtype).max:
                break
            off = apart(out, exact)
            if not out.isfinite().all():
                last = f"{name} breaks at inputs of size {size:g} (not finite)"
            elif size == 1.0 and off > 0.1:
                last = f"{name} is off by {off:.0%} of its size"
            if last:
                if size <= ORDINARY:
                    broken = broken or last
                break
        said.append(last or f"{name} is finite and near")
    if broken:
        return Verdict(law, "broken", "; ".join(said), Example(L, asked.seed))
    status: Status = "holds" if all("finite and near" in x for x in said) else "noted"
    return Verdict(law, status, "; ".join(said))


def growth(subject: Subject, asked: Asked) -> Verdict:
    """How its largest tensor grows with the length, there and back."""
    law, single = "growth", subject.typed(torch.float32)
    for pair in ((512, 2048), (128, 512), (32, 128)):
        if all(answers(single, L) for L in pair):
            break
    else:
        return Verdict(law, "not asked", "it takes no long texts")

    def bytes_at(L: int) -> int:
        inputs = tuple(x.requires_grad_() for x in single.drawn(1, L, asked.seed))

        def there_and_back() -> None:
            out = single(*inputs)
            if out.requires_grad:
                out.sum().backward()

        return largest_storage(there_and_back)

    small, large = (bytes_at(L) for L in pair)
    weights = [] if single.module is None else [*single.module.parameters()]
    largest = max((x.untyped_storage().nbytes() for x in weights), default=0)
    if small <= largest:
        return Verdict(
            law,
            "not asked",
            f"all that it makes of {pair[0]} tokens is smaller than its largest weight, "
            f"{_in_bytes(largest)}; give a narrower one",
        )
    p = exponent(pair, (small, large))
    says = (
        f"its largest tensor grows like L^{p:.1f}: {_in_bytes(small)} at {pair[0]} tokens, "
        f"{_in_bytes(large)} at {pair[1]}"
    )
    if asked.exponent is None:
        return Verdict(law, "noted", says)
    if p > asked.exponent + 0.15:
        return Verdict(law, "broken", f"{says}; L^{asked.exponent:g} was promised")
    return Verdict(law, "holds", says)


def _in_bytes(n: int) -> str:
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n = n / 1000  # type: ignore[assignment]
    return f"{n:.3g} GB"


@torch.no_grad()
def is_what_was_defined(subject: Subject, asked: Asked) -> Verdict:
    """It says what the definition says that was given with it."""
    law, tolerance = "definition", exactness(subject)
    if asked.definition is None:
        return Verdict(law, "not asked", "no definition was given")
    from tfviz.examined.subjects import first_tensor

    for L in lengths(subject):
        inputs = subject.drawn(2, L, asked.seed)
        out, wanted = subject(*inputs), first_tensor(asked.definition(*inputs))
        if apart(out, wanted) > tolerance:
            i = _first_apart(out, wanted, tolerance)
            return Verdict(
                law,
                "broken",
                f"it is not the definition that was given: a text of {L} differs at {i}, by "
                f"{apart(out, wanted):.1g} of its size",
                Example(L, asked.seed, (i, i)),
            )
    return Verdict(law, "holds", "it says what the definition says")


@torch.no_grad()
def any_length(subject: Subject, asked: Asked) -> Verdict:
    """It answers texts of every length."""
    law, refused = "lengths", [L for L in LENGTHS if not answers(subject, L)]
    if not refused:
        return Verdict(law, "holds", f"it answers texts of {LENGTHS[0]} to {LENGTHS[-1]} tokens")
    first = refused[0]
    try:
        subject(*subject.drawn(1, first, 0))
    except Exception as error:
        return Verdict(
            law,
            "noted",
            f"it does not answer texts of {', '.join(map(str, refused))}: {_first_line(error)}",
            Example(first, 0),
        )
    return Verdict(law, "noted", "it answers a text only at times")


@torch.no_grad()
def repeats(subject: Subject, asked: Asked) -> Verdict:
    """Called twice with one text it says the same."""
    law = "chance"
    for L in lengths(subject)[:5]:
        inputs = subject.drawn(2, L, asked.seed)
        with torch.random.fork_rng(devices=[]):
            calls = [subject.call(*(x.clone() for x in inputs)) for _ in range(2)]
        if apart(*calls):
            return Verdict(
                law,
                "noted",
                "it is random though it is in evaluation mode; the laws call it with the same dice",
                Example(L, asked.seed),
            )
    return Verdict(law, "holds", "called twice it says the same")


@torch.no_grad()
def memory_may_lie_anyhow(subject: Subject, asked: Asked) -> Verdict:
    """It says the same however its input lies in memory."""
    law, tolerance = "memory", exactness(subject)
    L = short(subject)
    inputs = subject.drawn(2, L, asked.seed)
    plain = subject(*inputs)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "a transposed input": lambda x: x.mT.contiguous().mT,
        "every second number of a wider one": lambda x: torch.stack([x, -x], -1).flatten(-2)[
            ..., ::2
        ],
        "a slice of a longer text": lambda x: torch.cat([x, x], -2)[..., L:, :],
    }
    for name, way in ways.items():
        try:
            off = apart(subject(*map(way, inputs)), plain)
        except Exception as refused:  # whatever somebody's module raises
            return Verdict(law, "noted", f"{name} is refused ({_first_line(refused)})")
        if off > tolerance:
            says = f"{name} is answered otherwise, by {off:.1g} of its size"
            return Verdict(law, "broken", says, Example(L, asked.seed))
    return Verdict(law, "holds", "it says the same however its input lies in memory")


LAWS: dict[str, Callable[[Subject, Asked], Verdict]] = {
    "chance": repeats,
    "lengths": any_length,
    "future": sees_the_future,
    "padding": sees_padding,
    "cache": cache_is_no_cache,
    "batch": batch_does_not_meet,
    "memory": memory_may_lie_anyhow,
    "gradients": gradients_are_right,
    "half precision": half_precision_bears_it,
    "growth": growth,
    "definition": is_what_was_defined,
}
