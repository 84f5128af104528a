"""An exhibit: what a mechanism shows of itself outside of its section.

Its picture stands in the atlas and on the map of the course: N × N numbers from 0 to 1, from the
mechanism's own code, darker for more. Its line in the race says what a small GPT is given to have
it; what is no attention of a causal model, and tells no positions, says why it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor

from tfviz.patterns.pattern import Pattern
from tfviz.position.learned_pe import Learned

N = 24
STEPS = torch.arange(N)


class Gpt(NamedTuple):
    """The small GPT of the race: for texts of `length`, `heads` heads in `width` numbers."""

    length: int
    width: int
    heads: int

    @property
    def d_head(self) -> int:
        return self.width // self.heads

    def near_root(self) -> int:
        """A power of two near √length, which divides every power of two that is longer."""
        return 1 << self.length.bit_length() // 2

    def positions(self) -> Learned:
        """Learned ones, for what is no encoding of positions itself."""
        return Learned(self.length, self.width)


Socket = Literal["position", "pattern", "keys and values", "attention", "norm", "feed", "blocks"]
"""Where a part of the story model stands."""


class Part(NamedTuple):
    """What the story model, `tfviz.stored.story`, is given to have another part in this socket.

    options  what its GPT is told. "h" and "N" are other numbers of heads and of blocks, and
             "finish" is a function that gets the model and gives the one that is trained
    turned   whether queries and keys are turned by rotary positions, as in the base; then it has no
             positions of its own, though the line of a race may give some
    """

    socket: Socket
    options: Callable[[Gpt], dict[str, Any]]
    turned: bool = True


@dataclass(frozen=True)
class Exhibit:
    """picture   (N, N), from 0 to 1

    race      what the GPT of the race is given; torch's random numbers are seeded
    raced     the name under which `extrapolation` has trained the same model, if it has
    why_not   why it has no line in the race
    encoder   what the encoder of the race is given, which reads all of a text at once; it may have
              this line without the other
    own_positions   whether its model of the race has positions of its own, since its queries and
              keys cannot be turned, or it has none
    exactness how its model of the race meets the keys; needed by what has a line in a race
              "exact"   every key of full attention, each with a weight of its own from a softmax
              "linear"  fewer keys, and each of these by itself, so that it blurs none
              "any"     means of keys or of queries, features, or weights without a look at the keys
    story     the parts that it has for the story model, by the names of these variants

    Raises ValueError unless there is a race or a reason, and an exactness where there is a race.
    """

    picture: Callable[[], Tensor]
    race: Callable[[Gpt], dict[str, Any]] | None = None
    raced: str | None = None
    why_not: str = ""
    encoder: Callable[[Gpt], dict[str, Any]] | None = None
    exactness: Literal["exact", "linear", "any"] | None = None
    own_positions: bool = False
    story: Mapping[str, Part] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.race) == bool(self.why_not):
            raise ValueError(
                f"race = {self.race}, why_not = {self.why_not!r}: give one of the two, what the "
                "GPT is given or why it has no line in the race"
            )
        if bool(self.race or self.encoder) != bool(self.exactness):
            raise ValueError(
                f"exactness = {self.exactness!r} of an exhibit with"
                f"{'' if self.race or self.encoder else 'out'} a line in a race; say there, and "
                'nowhere else, "exact", "linear" or "any"'
            )


# --- for pictures ---------------------------------------------------------------------------------


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=Generator().manual_seed(seed))


def mask(pattern: Pattern) -> Tensor:
    return pattern.mask(N).float()


def curve(y: Tensor) -> Tensor:
    """A line through these N values, from the bottom of the picture to its top."""
    heights = ((N - 1) * (1 - (y - y.min()) / (y.max() - y.min()))).round().long().tolist()
    picture = torch.zeros(N, N)
    for column, (a, b) in enumerate(pairwise([heights[0], *heights])):
        picture[min(a, b) : max(a, b) + 1, column] = 1
    return picture


def spread(x: Tensor) -> Tensor:
    return (x - x.min()) / (x.max() - x.min())
