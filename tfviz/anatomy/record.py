"""A model taken apart: its layers, and what they weigh, keep, compute and move.

>>> from tfviz import anatomy
>>> gemma = anatomy.of("gemma-3-27b")
>>> [layer.mixer for layer in gemma.layers[4:7]]
['window', 'full', 'window']
>>> f"{gemma.parameters.total:,}"
'27,009,002,240'
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from tfviz.anatomy import counting, ghosts
from tfviz.anatomy.layers import FEEDS, MIXERS, POSITIONS, STATES
from tfviz.anatomy.made_of import beyond, uses

if TYPE_CHECKING:
    from tfviz.models.gpt import GPT
    from tfviz.patterns import Pattern

__all__ = ["CARDS", "Anatomy", "Card", "Heads", "Layer", "Parameters", "Point", "Roofline", "Total"]

PHASES = ("prefill", "decode")


class Total(int):
    """A whole number that knows its parts: `total.parts["states"]`."""

    parts: Mapping[str, int]

    def __new__(cls, parts: Mapping[str, int | float]) -> Total:
        whole = {name: round(part) for name, part in parts.items()}
        total = super().__new__(cls, sum(whole.values()))
        total.parts = whole
        return total

    def __getnewargs__(self) -> tuple[Any, ...]:  # for copies
        return (dict(self.parts),)


@dataclass(frozen=True)
class Parameters:
    """Weights of a model, in numbers.

    total                   all of them; tables that are shared count once
    by_part                 embedding, position, attention, state, feed, norm, head, other
    active                  those that a token uses, with both tables
    active_without_input    without the table that looks tokens up, unless it is the head too
    active_without_tables   without either table
    low, high               between which the total is; both are the total unless it is a guess
    """

    total: int
    by_part: Mapping[str, int]
    active: int
    active_without_input: int
    active_without_tables: int
    low: int
    high: int


@dataclass(frozen=True)
class Heads:
    """Heads of one layer: how many of queries and of keys, and how many numbers a key and a value
    have."""

    queries: int
    keys: int
    key_width: int
    value_width: int


@dataclass(frozen=True)
class Layer:
    """One block of a model.

    n            its number, from 0
    mixer        what mixes tokens, in words of `tfviz.anatomy.layers.MIXERS`, or "latent"
    positions    how it is told where tokens stand, in words of `POSITIONS`
    heads        of its attention; None if it has none
    feed         what each token goes through alone, in words of `FEEDS`
    reach        keys of its window or chunk, None if there is none
    borrows      the layer whose keys and values it reads, None for its own
    parameters   weights of its mixer and its feed-forward network
    """

    n: int
    mixer: str
    positions: str
    heads: Heads | None
    feed: str
    reach: int | None
    borrows: int | None
    parameters: int

    @property
    def allowed(self) -> tuple[tuple[str, dict[str, int]], ...] | None:
        """Patterns of the library, with their options, that all allow what its mask allows; None
        where no positions alone say it, as with a state."""
        if self.mixer in ("full", "latent", "full, positionless note"):
            return (("causal", {}),)
        if self.mixer == "both ways":
            return (("full", {}),)
        if self.reach is None:
            return None
        if self.mixer in ("window", "window, keys are values"):
            return (("sliding_window", {"lookback": self.reach - 1}),)
        if self.mixer == "chunk":
            return ("causal", {}), ("block_local", {"block": self.reach})
        if self.mixer == "both ways, window":
            return (("band", {"radius": self.reach}),)
        return None

    @property
    def mask(self) -> Pattern | None:
        """Who may attend to whom; None where no positions alone say it, as with a state."""
        from tfviz import patterns

        if self.allowed is None:
            return None
        return reduce(and_, (getattr(patterns, x)(**options) for x, options in self.allowed))


@dataclass(frozen=True)
class Card:
    """A processor: operations a second in 16 bits, bytes a second and bytes of its memory."""

    name: str
    operations: float
    bandwidth: float
    memory: float

    @property
    def ridge(self) -> float:
        """Operations for each byte from which on it computes rather than waits."""
        return self.operations / self.bandwidth


CARDS = {
    card.name: card
    for card in (
        Card("H100", 989e12, 3.35e12, 80e9),
        Card("A100", 312e12, 2.04e12, 80e9),
        Card("RTX 4090", 165e12, 1.01e12, 24 * 2**30),
    )
}
"""As their makers state it: dense products of 16 bits, without sparsity. (That of the H100 SXM was
compared with copies of its data sheet; the others are from memory.)"""


@dataclass(frozen=True)
class Point:
    """One phase on a roofline; `seconds` is the least that it can take, `bound` what holds it."""

    operations: int
    bytes: int
    intensity: float
    seconds: float
    bound: str


@dataclass(frozen=True)
class Roofline:
    """What a card lets a model do: with `turning_batch` texts at once, the products of a matrix
    take as long as reading it. Of a model with experts that is an expert's matrix; those that all
    tokens share turn earlier, and with them the whole model."""

    card: Card
    turning_batch: float
    prefill: Point
    decode: Point


@dataclass(frozen=True)
class Anatomy:
    """A model as its fields say it; everything else is counted.

    id, name, year, family   as in `models.toml`; of a configuration, its model_type is the family
    fields     plain fields, as the legend of `models.toml` explains, with one letter for each layer
    facts      what was published, where it was read, which sources disagree
    guess      True where the family is not known: if this is an ordinary decoder
    doubts     what a guess does not know, in words
    refused    why nothing is counted, "" if it is
    unread     keys of a configuration that nothing was read from
    assumed    keys that the file leaves to its class
    """

    id: str
    name: str
    year: int | None
    family: str
    fields: Mapping[str, Any] = field(repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    guess: bool = False
    doubts: tuple[str, ...] = ()
    refused: str = ""
    unread: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    # --- what it is made of -----------------------------------------------------------------------

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Its blocks in order; of a model that reads a source, those of the decoder."""
        return tuple(self._layer(n) for n in range(len(self.fields["layers"])))

    def _layer(self, n: int) -> Layer:
        f = self.fields
        letter, feed, place = (f[x][n] for x in ("layers", "feeds", "positions"))
        latent = counting.latent_of(f, letter)
        reach = {"W": "window", "w": "window", "c": "window", "H": "window", "C": "chunk"}
        reach |= {"b": "radius"}
        own = len(f["layers"]) - f.get("borrowers", 0)
        lender = f["layers"].rfind(letter, 0, own) if n >= own else None
        weights = 0
        if not self.refused:
            weights = counting.feed_weights(f, n)[0]
            if letter in STATES:
                weights += counting.state_weights(f, letter)
            elif letter != "-":
                weights += counting.attention_weights(f, n)
        return Layer(
            n=n,
            mixer="latent" if latent and letter == "F" else MIXERS.get(letter, "not known"),
            positions=POSITIONS.get(place, "not known"),
            heads=self._heads(letter),
            feed=FEEDS.get(feed, "not known"),
            reach=f.get(reach.get(letter, "")),
            borrows=lender,
            parameters=weights,
        )

    def _heads(self, letter: str) -> Heads | None:
        latent = counting.latent_of(self.fields, letter)
        if latent:
            h, wide = latent["heads"], latent["unturned"] + latent["turned"]
            return Heads(h, h, wide, latent["value"])
        a = {} if letter in f"{STATES}-?" else counting.heads_of(self.fields, letter)
        if not a:
            return None
        return Heads(a["heads"], a["key_heads"], a["head_width"], a["value_width"])

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """Ids of mechanisms of the course, in the order of the forward pass."""
        return uses(self.fields)

    @cached_property
    def beyond(self) -> tuple[str, ...]:
        """What it has that no lesson of the course explains, in words."""
        return beyond(self.fields)

    # --- what it weighs and keeps -----------------------------------------------------------------

    @cached_property
    def parameters(self) -> Parameters:
        """Its weights, by part. Raises ValueError where nothing is counted."""
        self._counted()
        parts = counting.parameters(self.fields)
        active = parts.pop("feed_active")
        total = sum(parts.values())
        used = total - parts["feed"] + active
        table = parts["embedding"]
        low, high = self._range(total)
        return Parameters(
            total=total,
            by_part=parts,
            active=used,
            active_without_input=used - (0 if self.fields.get("tied") else table),
            active_without_tables=used - table * (1 if self.fields.get("tied") else 2),
            low=low,
            high=high,
        )

    def _range(self, total: int) -> tuple[int, int]:
        """Of a guess, the total with two matrices and with three, with one table and with two."""
        if not self.guess:
            return total, total
        counts = []
        ties = (True, False) if self.fields.get("tied_unknown") else (self.fields.get("tied"),)
        for gated in (True, False):
            for tied in ties:
                parts = counting.parameters({**self.fields, "gated": gated, "tied": tied})
                counts.append(sum(parts.values()) - parts["feed_active"])
        return min(counts), max(counts)

    def cache(
        self, L: int, batch: int = 1, bits: float = 16, state_bits: float = 32, source: int = 0
    ) -> Total:
        """Bytes that it keeps of `batch` texts of L tokens: keys and values, and states.

        `bits` are those of a number of a key; states are kept in 32. A model that reads a source
        keeps keys and values of its `source` tokens too. `convolutions` says what those keep.
        """
        self._counted()
        L, batch = _whole("L", L, 0), _whole("batch", batch, 1)
        keys, states = counting.kept(self.fields, L)
        if self.fields.get("cross"):
            a = counting.heads_of(self.fields, "F")
            each = a["key_heads"] * (a["head_width"] + a["value_width"])
            keys += len(self.fields["layers"]) * each * _whole("source", source, 0)
        return Total(
            {
                "keys and values": keys * batch * _positive("bits", bits) / 8,
                "states": states * batch * _positive("state_bits", state_bits) / 8,
            }
        )

    def convolutions(self, batch: int = 1, bits: float = 16) -> int:
        """Bytes that short convolutions before states keep, whatever the length."""
        self._counted()
        numbers = counting.convolved(self.fields) * _whole("batch", batch, 1)
        return round(numbers * _positive("bits", bits) / 8)

    def longest(
        self,
        memory: float,
        batch: int = 1,
        bits: float = 16,
        cache_bits: float = 16,
        state_bits: float = 32,
    ) -> int:
        """The most tokens of each text for which weights, of so many bits, and caches fit into so
        many bytes of memory; 0 if none do. At most the context that it is made for."""
        room = memory - self.parameters.total * _positive("bits", bits) / 8
        most = min(self.fields.get("context") or 2**30, 2**40)
        low, high = 0, most if room >= 0 else 0
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.cache(middle, batch, cache_bits, state_bits) <= room
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    # --- what it computes and moves ---------------------------------------------------------------

    def flops(self, L: int, phase: str = "decode", batch: int = 1) -> Total:
        """Operations, a multiplication and an addition being two: with weights, pairs, states.

        `phase` "prefill" is a whole text of L tokens, with the logits of the last; "decode" is the
        token after L tokens, by the absorbed form where attention is latent.

        Raises ValueError for a model that reads a source, whose work depends on two lengths.
        """
        L, batch = self._asked(L, phase, batch)
        if phase == "decode":
            parts = counting.decode_operations(self.fields, L)
        else:
            parts = counting.prefill_operations(self.fields, L)
        return Total({name: n * batch for name, n in parts.items()})

    def bytes_moved(
        self,
        L: int,
        phase: str = "decode",
        batch: int = 1,
        bits: float = 16,
        cache_bits: float = 16,
        state_bits: float = 32,
    ) -> Total:
        """Bytes that this reads and writes at least: weights once for the whole batch, of experts
        those that its tokens are expected to use, caches of each text, states twice."""
        L, batch = self._asked(L, phase, batch, bits, cache_bits, state_bits)
        if phase == "decode":
            read = counting.bytes_at_decode(self.fields, L, batch, bits, cache_bits, state_bits)
            return Total(read)
        kept = self.cache(L, batch, cache_bits, state_bits).parts
        weights = counting.weights_read(self.fields, L * batch) * bits / 8
        return Total({"weights": weights, **kept})

    def intensity(
        self,
        L: int,
        phase: str = "decode",
        batch: int = 1,
        bits: float = 16,
        cache_bits: float = 16,
        state_bits: float = 32,
    ) -> float:
        """Operations for each byte that is moved."""
        moved = self.bytes_moved(L, phase, batch, bits, cache_bits, state_bits)
        return self.flops(L, phase, batch) / moved

    def point(
        self,
        phase: str,
        card: str | Card = "H100",
        L: int = 8192,
        batch: int = 1,
        bits: float = 16,
        cache_bits: float = 16,
        state_bits: float = 32,
    ) -> Point:
        """Where one phase stands on a card: t ≥ max(operations, bytes).

        Raises ValueError for a card that is not in `CARDS`; a `Card` of your own is one, too.
        """
        on = _card(card)
        work = self.flops(L, phase, batch)
        moved = self.bytes_moved(L, phase, batch, bits, cache_bits, state_bits)
        computing, reading = work / on.operations, moved / on.bandwidth
        return Point(
            operations=int(work),
            bytes=int(moved),
            intensity=work / moved,
            seconds=max(computing, reading),
            bound="operations" if computing > reading else "bytes",
        )

    def roofline(
        self,
        card: str | Card = "H100",
        L: int = 8192,
        batch: int = 1,
        bits: float = 16,
        cache_bits: float = 16,
        state_bits: float = 32,
    ) -> Roofline:
        """Both phases of L tokens on a card, see `point`, and its `turning_batch`."""
        on = _card(card)
        prefill = self.point("prefill", on, L, batch, bits, cache_bits, state_bits)
        decode = self.point("decode", on, L, batch, bits, cache_bits, state_bits)
        experts = self.fields.get("experts")
        share = experts["count"] / experts["chosen"] if experts and experts["chosen"] else 1
        return Roofline(on, on.ridge * bits / 16 * share, prefill, decode)

    # --- others like it ---------------------------------------------------------------------------

    def but(self, changes: Mapping[str, Any]) -> Anatomy:
        """The same model with other values of some fields: what would it keep, without windows?"""
        return Anatomy(
            id=self.id,
            name=self.name,
            year=self.year,
            family=self.family,
            fields={**self.fields, **changes},
            facts=self.facts,
            guess=self.guess,
            doubts=self.doubts,
            refused=self.refused,
            unread=self.unread,
            assumed=self.assumed,
        )

    # --- what it would be ------------------------------------------------------------------------

    def seeing_all(self) -> Anatomy | None:
        """The same model if every layer attended to all earlier tokens; see `ghosts.seeing_all`."""
        changes = ghosts.seeing_all(self.fields)
        return None if changes is None else self.but(changes)

    def with_every_head(self) -> Anatomy | None:
        """The same, with keys and values for each head; see `ghosts.with_every_head`."""
        changes = ghosts.with_every_head(self.fields)
        return None if changes is None else self.but(changes)

    # --- a small one ------------------------------------------------------------------------------

    def build(self, vocab: int = 65, seed: int = 0) -> GPT:
        """The same anatomy as a tiny model of this library, with random weights.

        Its layers are the first ones that show every kind, with windows and heads made smaller.
        Raises ValueError where a part has no room in the library, and says which.
        """
        from tfviz.anatomy.build import built

        self._counted()
        return built(self.fields, self.name, vocab, seed)

    # --- refusals ---------------------------------------------------------------------------------

    def _counted(self) -> None:
        if self.refused:
            raise ValueError(f"{self.family} is not counted: {self.refused}")

    def _asked(
        self,
        L: int,
        phase: str,
        batch: int,
        bits: float = 16,
        cache_bits: float = 16,
        state_bits: float = 32,
    ) -> tuple[int, int]:
        """L and batch, if all that is asked for can be counted."""
        self._counted()
        L, batch = _whole("L", L, 0), _whole("batch", batch, 1)
        self._phase(phase)
        _positive("bits", bits)
        _positive("cache_bits", cache_bits)
        _positive("state_bits", state_bits)
        return L, batch

    def _phase(self, phase: str) -> None:
        if phase not in PHASES:
            raise ValueError(f"phase = {phase!r}; choose {' or '.join(PHASES)}")
        if "encoder" in self.fields:
            raise ValueError(
                f"{self.name} reads a source: its work depends on two lengths, which is not counted"
            )
        if phase == "decode" and set(self.fields["layers"]) <= set("Bb"):
            raise ValueError(f"{self.name} reads both ways and decodes nothing; phase='prefill'")


def _card(card: str | Card) -> Card:
    if isinstance(card, Card):
        return card
    if card not in CARDS:
        raise ValueError(f"card = {card!r}; choose {', '.join(CARDS)}, or make a Card")
    return CARDS[card]


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} = {value!r}; give a whole number, at least {least}")
    return value


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} = {value!r}; give a number of bits above 0, such as 16")
    return value
