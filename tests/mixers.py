"""What every mixer must obey: (X, memory, mask, cache) → Y, whatever stands in between.

A mechanism that mixes brings its mixers in its CASE, as `mixers={"name": Mixes(make)}`;
`test_mixers.py` runs every law on each, and on wrong ones that one law alone finds out. What
`examine` asks of anybody's attention is asked by its own laws; here stand those that it cannot ask.
"""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from tfviz.examined import laws as everybody
from tfviz.examined.laws import Asked, Verdict
from tfviz.examined.subjects import Subject, subject
from tfviz.longer_context.transformer_xl_recurrence import resumed, saved
from tfviz.models.blocks import Mixer

D, L, B = 8, 9, 2


@dataclass(frozen=True)
class Mixes:
    """A mixer before the laws.

    make     a causal one that reads and says D numbers a token
    grows    its largest tensor grows no faster than L to this power
    but      laws that do not hold, and why
    """

    make: Callable[[], Mixer]
    grows: float = 1.0
    but: Mapping[str, str] = field(default_factory=dict)

    def made(self) -> Mixer:
        """With weights that are not where they begin, so that no gate stands open or shut."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module = self.make()
            for weight in module.parameters():
                weight.data += 0.3 * torch.randn_like(weight)
        return module.double().eval()

    def subject(self) -> Subject:
        return subject(self.made(), d=D)


def text(length: int = L, seed: int = 1) -> Tensor:
    dice = Generator().manual_seed(seed)
    return torch.randn(B, length, D, dtype=torch.float64, generator=dice)


close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)


def holds(law: Callable[[Subject, Asked], Verdict], mixes: Mixes, *also: str, **asked: Any) -> None:
    """One of the laws for everybody holds, or its verdict is one of these."""
    verdict = law(mixes.subject(), Asked(causal=True, **asked))
    assert verdict.status in ("holds", *also), verdict.says


def streamed(mixer: Mixer, parts: tuple[Tensor, ...], cache: dict[nn.Module, Any]) -> list[Tensor]:
    return [mixer(part.contiguous(), cache=cache) for part in parts]


# --- the laws -------------------------------------------------------------------------------------


def the_future_is_not_seen(mixes: Mixes) -> None:
    holds(everybody.sees_the_future, mixes)


def padding_is_not_seen(mixes: Mixes) -> None:
    """Right of a text, left of it, within it."""
    holds(everybody.sees_padding, mixes)


def with_a_cache_it_says_the_same(mixes: Mixes) -> None:
    """In random parts."""
    holds(everybody.cache_is_no_cache, mixes)


def texts_of_a_batch_do_not_meet(mixes: Mixes) -> None:
    holds(everybody.batch_does_not_meet, mixes)


def memory_may_lie_anyhow(mixes: Mixes) -> None:
    holds(everybody.memory_may_lie_anyhow, mixes)


def gradients_are_slopes(mixes: Mixes) -> None:
    """In float64, of what it reads and of every weight."""
    holds(everybody.gradients_are_right, mixes)


def half_precision_bears_it(mixes: Mixes) -> None:
    """Finite for inputs of ordinary size, and near what float64 says; beyond, it may overflow."""
    holds(everybody.half_precision_bears_it, mixes, "noted")


def it_grows_no_faster_than_it_says(mixes: Mixes) -> None:
    """Forward and backward, counted."""
    holds(everybody.growth, mixes, exponent=mixes.grows)


@torch.no_grad()
def it_answers_in_the_type_that_it_is_asked_in(mixes: Mixes) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        answer = mixes.made().to(dtype)(text().to(dtype))
        assert answer.dtype == dtype and answer.shape == text().shape


@torch.no_grad()
def what_was_kept_stays(mixes: Mixes) -> None:
    """A state is replaced and never changed, so that a text may go on in two ways."""
    mixer, cache, X = mixes.made(), dict[nn.Module, Any](), text()
    mixer(X[:, :4].contiguous(), cache=cache)
    before = tree_map_only(Tensor, torch.clone, [kept.state for kept in cache.values()])
    begun = dict(cache)
    mixer(X[:, 4:].contiguous(), cache=cache)
    after = [kept.state for kept in begun.values()]
    assert all(a.equal(b) for a, b in zip(*map(tree_leaves, (before, after)), strict=True))


@torch.no_grad()
def a_state_goes_through_a_file(mixes: Mixes) -> None:
    """What it keeps of half a text is read by `torch.load` with weights alone; another mixer with
    the same weights goes on to the last bit, and not as it would without."""
    first, cache, X = mixes.made(), dict[nn.Module, Any](), text(12)
    begun, rest = X[:, :6], X[:, 6:].split([1, 3, 2], 1)
    streamed(first, begun.split([4, 2], 1), cache)
    again, file = mixes.made(), io.BytesIO()
    torch.save(saved(first, cache), file)
    file.seek(0)
    back = resumed(again, torch.load(file, weights_only=True))
    wanted, found = streamed(first, rest, cache), streamed(again, rest, back)
    assert all(a.equal(b) for a, b in zip(found, wanted, strict=True))
    assert not streamed(again, rest, {})[0].equal(wanted[0])


def compiled_it_is_the_same(mixes: Mixes) -> None:
    """`torch.compile` changes neither numbers nor gradients; torch itself executes its graphs."""
    mixer, X = mixes.made(), text().requires_grad_()
    learnt = [X, *mixer.parameters()]
    torch._dynamo.reset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where it looks into a cache
            answers = [call(X) for call in (torch.compile(mixer, backend="eager"), mixer)]
    finally:
        torch._dynamo.reset()
    close(*answers)
    ways = (torch.autograd.grad(Y.square().sum(), learnt, allow_unused=True) for Y in answers)
    for found, wanted in zip(*ways, strict=True):
        assert (found is None) == (wanted is None)
        if found is not None:
            close(found, wanted)


def everything_is_made_on_its_device(mixes: Mixes) -> None:
    """On the meta device, which holds no numbers, nothing is made elsewhere: with padding, and with
    a cache."""
    mixer, X = copy.deepcopy(mixes.made()).to("meta"), text().to("meta")
    mask, cache = torch.ones(B, L, dtype=torch.bool, device="meta"), dict[nn.Module, Any]()
    answers = [mixer(X), mixer(X, attention_mask=mask)]
    answers.append(torch.cat(streamed(mixer, X.split([4, 5], 1), cache), 1))
    assert all(Y.is_meta and Y.shape == X.shape for Y in answers)


LAWS: tuple[Callable[[Mixes], None], ...] = (
    the_future_is_not_seen,
    padding_is_not_seen,
    with_a_cache_it_says_the_same,
    texts_of_a_batch_do_not_meet,
    memory_may_lie_anyhow,
    gradients_are_slopes,
    half_precision_bears_it,
    it_grows_no_faster_than_it_says,
    it_answers_in_the_type_that_it_is_asked_in,
    what_was_kept_stays,
    a_state_goes_through_a_file,
    compiled_it_is_the_same,
    everything_is_made_on_its_device,
)
