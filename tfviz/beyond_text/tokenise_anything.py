"""One sequence of text, image and sound: what can be cut into pieces joins it.

    z_κi = x_κi E_κ + p_i + e_κ,      Z_0 = [Z_text; Z_image; Z_sound],      L = Σ_κ L_κ

Piece i of kind κ is a row x_κi. Each kind has a matrix E_κ without bias and a vector e_κ; places
count from 0 in each kind and share one table P. Under a block mask, where a token attends to its
own kind only, one stack does exactly what it would do with each kind alone.

The surveys name LIMoE (arXiv 2206.02770), MERLOT Reserve (2201.02639) and VATT (2104.11178). This
is none of them, but the idea: MERLOT Reserve joins kinds in one sequence, with rotary positions;
VATT sends each alone through shared weights.

>>> kinds = {"text": text(5), "image": image(P=2), "sound": sound(width=4)}
>>> model = Joint(kinds, most=9, d=8, h=2, N=1)
>>> parts = {"text": torch.tensor([[3, 1]]), "sound": torch.zeros(1, 12)}
>>> model(parts).shape, lengths(kinds, parts)  # any of the kinds, in any order
(torch.Size([1, 5, 8]), {'text': 2, 'sound': 3})
>>> same_kind({"text": 2, "sound": 3}).mask(5).sum().item()
13
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import _arguments, patterns
from tfviz._arguments import named
from tfviz.beyond_text.vit_patches import patches
from tfviz.models.blocks import Seq, Stack
from tfviz.patterns import Pattern
from tfviz.position.learned_pe import Learned

__all__ = ["Joint", "apart", "frames", "same_kind"]

Parts = Mapping[str, Tensor]
"""What is given of each kind, by its name; the first axis of each is the batch."""


class Kind(NamedTuple):
    """What cuts data of this kind into pieces, and embed(d), the module that makes rows of them."""

    cut: Callable[[Tensor], Tensor]
    embed: Callable[[int], nn.Module]


def text(vocab: int) -> Kind:
    """Numbers of characters or words, (b, L), are pieces already."""
    return Kind(_as_it_is, partial(nn.Embedding, vocab))


def _as_it_is(t: Tensor) -> Tensor:
    return _arguments.indices("text", t, 2)


def image(P: int, channels: int = 1) -> Kind:
    """Images (b, C, H, W) in patches of P × P pixels."""
    return Kind(partial(patches, P=P), partial(nn.Linear, channels * P**2, bias=False))


def sound(width: int) -> Kind:
    """Sounds (b, T) in frames of so many samples."""
    return Kind(partial(frames, width=width), partial(nn.Linear, width, bias=False))


@named
def frames(waves: Float[Tensor, "b T"], width: int) -> Float[Tensor, "b n width"]:
    """The samples of each sound in rows of `width`, one after the other."""
    width = _arguments.integer("width", width, 1)
    if waves.dim() != 2:
        raise ValueError(
            f"waves has shape {tuple(waves.shape)}; give (batch, samples), waves[None] for one"
        )
    if waves.shape[1] % width:
        raise ValueError(
            f"width = {width} does not divide {waves.shape[1]} samples; choose one that does, or "
            "pad the sound"
        )
    return waves.unflatten(1, (-1, width))


def lengths(kinds: Mapping[str, Kind], parts: Parts) -> dict[str, int]:
    """How many tokens each part makes."""
    return {name: kinds[name].cut(part).shape[1] for name, part in parts.items()}


def spans(lengths: Mapping[str, int]) -> dict[str, slice]:
    """Where each kind stands in the sequence.

    >>> spans({"text": 2, "sound": 3})
    {'text': slice(0, 2, None), 'sound': slice(2, 5, None)}
    """
    found, start = dict[str, slice](), 0
    for name, length in lengths.items():
        end = start + _arguments.integer(f"length of {name}", length, 1)
        found[name], start = slice(start, end), end
    return found


@named
def same_kind(lengths: Mapping[str, int]) -> Pattern:
    """The block mask: a token attends to all tokens of its own kind, and to no other."""
    if not lengths:
        raise ValueError("lengths is empty; give the number of tokens of each kind")
    parts = spans(lengths).values()
    kind = torch.cat([torch.full((x.stop - x.start,), n) for n, x in enumerate(parts)])
    return patterns.table(kind[:, None] == kind)


class Joint(nn.Module):
    """Parts by kind → the rows that leave one stack, (b, L, d), in the order of the parts.

    most     rows of the table of positions: the tokens of the longest kind
    marked   False leaves out the vectors e_κ of the kinds
    block    goes to the stack; pattern=same_kind(…) makes as many encoders as there are kinds
    """

    @named
    def __init__(
        self,
        kinds: Mapping[str, Kind],
        most: int,
        d: int,
        h: int,
        N: int,
        *,
        marked: bool = True,
        **block: Any,
    ) -> None:
        super().__init__()
        self.kinds = dict(kinds)
        self.embed = nn.ModuleDict({name: kind.embed(d) for name, kind in kinds.items()})
        self.positions = Learned(most, d)
        made = {name: nn.Parameter(0.02 * torch.randn(d)) for name in kinds}
        self.marks = nn.ParameterDict(made) if marked else None
        self.stack = Stack(N, d, h, **block)

    def tokens(self, parts: Parts) -> Seq:
        """Z_0: the rows of all parts, one kind after the other."""
        strange = [name for name in parts if name not in self.kinds]
        if strange or not parts:
            raise ValueError(
                f"parts has the kinds {[*parts]}; give one or more of {', '.join(self.kinds)}"
            )
        sizes = {name: len(part) for name, part in parts.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"parts has batches of {sizes}; give as many of each kind")
        return torch.cat([self._rows(name, part) for name, part in parts.items()], 1)

    def _rows(self, name: str, part: Tensor) -> Seq:
        X = self.embed[name](self.kinds[name].cut(part))
        X = X + self.positions(torch.arange(X.shape[1], device=X.device))
        return X if self.marks is None else X + self.marks[name]

    @named
    def forward(self, parts: Parts) -> Seq:
        return self.stack(self.tokens(parts))


@named
def apart(model: Joint, parts: Parts) -> Seq:
    """The rows that leave the stack if each kind goes through it alone, as in VATT."""
    return torch.cat([model({name: part}) for name, part in parts.items()], 1)
