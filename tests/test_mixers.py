"""Every law on every mixer; and for every law a wrong one that this law alone finds out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import exemplars
import mixers as laws
import pytest
import torch
from cases import mixers
from mixers import LAWS, D, Mixes
from torch import Tensor, nn

from tfviz.cores import Where, outside_inference
from tfviz.models.blocks import Mixer, MultiHeadAttention
from tfviz.patterns import causal, sliding_window
from tfviz.position import Rope

Law = Callable[[Mixes], None]

MIXERS = {
    "attention": Mixes(lambda: MultiHeadAttention(D, 2, pattern=causal())),
    "attention with shared keys, turned": Mixes(
        lambda: MultiHeadAttention(D, 4, h_kv=2, core=Rope, pattern=causal())
    ),
    "attention in a window": Mixes(
        lambda: MultiHeadAttention(D, 2, pattern=sliding_window(lookback=2)), grows=2.0
    ),
    **mixers(),
}
BY_NAME = {law.__name__: law for law in LAWS}


ASKED = [
    (name, law)
    for name in MIXERS
    for law in BY_NAME
    if law != "compiled_it_is_the_same" or exemplars.compiles(name)
]


@pytest.mark.parametrize(("name", "law"), ASKED)
def test_every_mixer_obeys(name: str, law: str) -> None:
    if law not in MIXERS[name].but:
        BY_NAME[law](MIXERS[name])
        return
    with pytest.raises((AssertionError, ValueError, TypeError)):  # a reason is true
        BY_NAME[law](MIXERS[name])


def test_a_reason_names_a_law() -> None:
    assert all(mixes.but.keys() <= BY_NAME.keys() for mixes in MIXERS.values())


# --- wrong mixers ---------------------------------------------------------------------------------


class Mean(Mixer):
    """A matrix times the mean of all tokens so far: what is right, and wrong in one place below."""

    def __init__(self) -> None:
        super().__init__(causal())
        self.W = nn.Linear(D, D)

    def mixed(self, X: Tensor, memory: Any, where: Where) -> Tensor:
        mask = where.attention_mask
        seen = (
            torch.ones_like(X[..., :1]) if mask is None else self.weigh(X, mask[:, where.start :])
        )
        sums, counts = self.before(X, where)
        sums = sums + (seen * self.read(X, seen)).cumsum(1)
        counts = counts + seen.cumsum(1)
        self.hand_on(where, sums[:, -1:], counts[:, -1:])
        return self.answer(sums / counts.clamp(min=1), X)

    def weigh(self, X: Tensor, mask: Tensor) -> Tensor:
        return mask[..., None].to(X)

    def read(self, X: Tensor, seen: Tensor) -> Tensor:
        return X

    def before(self, X: Tensor, where: Where) -> tuple[Tensor, Tensor]:
        """The sum and the number of the tokens before these."""
        if where.state is None:
            return torch.zeros_like(X[:, :1]), torch.zeros_like(X[:, :1, :1])
        sums, counts = outside_inference(where.state)
        return sums, counts

    def hand_on(self, where: Where, sums: Tensor, counts: Tensor) -> None:
        if where.keep:
            where.keep((sums, counts))

    def answer(self, means: Tensor, X: Tensor) -> Tensor:
        out: Tensor = self.W(means)
        return out


class SeesWhatIsLoud(Mean):
    """What comes later is heard if it is larger than all that a text is made of at other times."""

    def read(self, X: Tensor, seen: Tensor) -> Tensor:
        return X + ((seen * X).amax((1, 2), keepdim=True) - 20).clamp(0, 1)


class QuietPadding(Mean):
    """Padding is only less loud."""

    def weigh(self, X: Tensor, mask: Tensor) -> Tensor:
        return super().weigh(X, mask).clamp(min=0.1)


class CountsAnew(Mean):
    """After a cache, tokens are counted from 0."""

    def before(self, X: Tensor, where: Where) -> tuple[Tensor, Tensor]:
        sums, counts = super().before(X, where)
        return sums, 0 * counts


class AcrossTheBatch(Mean):
    """Each token less the mean of all texts at its place."""

    def read(self, X: Tensor, seen: Tensor) -> Tensor:
        return X - (seen * X).mean(0, keepdim=True) / 2


class AsIfContiguous(Mean):
    """It reads memory as if the numbers of a row lay side by side."""

    def read(self, X: Tensor, seen: Tensor) -> Tensor:
        return X.as_strided(X.shape, torch.empty(X.shape, device="meta").stride())


class HalfAGradient(Mean):
    """Half of what it reads has no gradient."""

    def read(self, X: Tensor, seen: Tensor) -> Tensor:
        return (X + X.detach()) / 2


class Overflowing(Mean):
    """Numbers that half precision does not hold, on the way to those that it does."""

    def answer(self, means: Tensor, X: Tensor) -> Tensor:
        return super().answer(means * 2**17 / 2**17, X)


class AllPairs(Mean):
    """A number for each pair of tokens."""

    def answer(self, means: Tensor, X: Tensor) -> Tensor:
        pairs = torch.ones_like(X[:, :, 0])[:, :, None] * torch.ones_like(X[:, None, :, 0])
        return super().answer(means * pairs[..., :1], X)


class OfFourBytes(Mean):
    """It answers bfloat16 in float32."""

    def answer(self, means: Tensor, X: Tensor) -> Tensor:
        out = super().answer(means, X)
        return out.float() if X.dtype == torch.bfloat16 else out


class InPlace(Mean):
    """What it has kept is changed once it has been read."""

    def hand_on(self, where: Where, sums: Tensor, counts: Tensor) -> None:
        super().hand_on(where, sums, counts)
        if where.state is not None and where.keep:
            where.state[0].mul_(2)


class KeepsToItself(Mean):
    """It remembers the sum itself, and the cache hears only of the number of tokens."""

    past: Tensor | None = None

    def before(self, X: Tensor, where: Where) -> tuple[Tensor, Tensor]:
        sums, counts = super().before(X, where)
        return (sums if where.state is None or self.past is None else self.past), counts

    def hand_on(self, where: Where, sums: Tensor, counts: Tensor) -> None:
        if where.keep:
            self.past = sums
            where.keep((0 * sums, counts))


class OtherWhenCompiled(Mean):
    def answer(self, means: Tensor, X: Tensor) -> Tensor:
        return super().answer(means, X) * (2 if torch.compiler.is_compiling() else 1)


class Elsewhere(Mean):
    """A constant that is made on the CPU, wherever the text is."""

    def answer(self, means: Tensor, X: Tensor) -> Tensor:
        return super().answer(means * torch.ones(X.shape[1], 1, dtype=X.dtype), X)


WRONG: dict[type[Mean], Law] = {
    SeesWhatIsLoud: laws.the_future_is_not_seen,
    QuietPadding: laws.padding_is_not_seen,
    CountsAnew: laws.with_a_cache_it_says_the_same,
    AcrossTheBatch: laws.texts_of_a_batch_do_not_meet,
    AsIfContiguous: laws.memory_may_lie_anyhow,
    HalfAGradient: laws.gradients_are_slopes,
    Overflowing: laws.half_precision_bears_it,
    AllPairs: laws.it_grows_no_faster_than_it_says,
    OfFourBytes: laws.it_answers_in_the_type_that_it_is_asked_in,
    InPlace: laws.what_was_kept_stays,
    KeepsToItself: laws.a_state_goes_through_a_file,
    OtherWhenCompiled: laws.compiled_it_is_the_same,
    Elsewhere: laws.everything_is_made_on_its_device,
}


def broken(mixes: Mixes) -> set[Law]:
    found = set()
    for law in LAWS:
        try:
            law(mixes)
        except Exception:  # whatever it stops on, it does not obey
            found.add(law)
    return found


def test_what_is_right_obeys_all() -> None:
    assert not broken(Mixes(Mean))


@pytest.mark.parametrize("wrong", WRONG, ids=lambda x: x.__name__)
def test_one_law_alone_finds_it_out(wrong: type[Mean]) -> None:
    assert broken(Mixes(wrong)) == {WRONG[wrong]}


def test_every_law_has_a_mixer_that_breaks_it() -> None:
    assert {*WRONG.values()} == {*LAWS}
