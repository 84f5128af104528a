"""An encoder–decoder at work: its three attentions, their shapes, and one step of writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import traitlets as t

from tfviz import _arguments
from tfviz.basics.encoder_decoder import pair_counts
from tfviz.explorers.base import Explorer

KINDS = ("encoder", "decoder", "cross")
MOST_TOKENS = 12


class ThreeMaps(Explorer):
    """The weights of one layer's three attentions, head by head.

    source, written   the tokens that the encoder reads and those that the decoder reads
    said              what the decoder says at each of its positions
    encoder, decoder, cross   weights (h, L_x, L_x), (h, L_y, L_y), (h, L_y, L_x)
    step              the decoder's position that is explained;  head   which head, −1 the mean
    part              the attention that is explained: "encoder", "decoder" or "cross"
    d                 width of the model, for the shapes

    Raises ValueError for shapes or values that do not fit.
    """

    module: ClassVar[str] = "three_maps"
    label: ClassVar[str] = "The three attentions of an encoder–decoder while it writes"
    min_height: ClassVar[str] = "62rem"
    min_height_narrow: ClassVar[str] = "76rem"
    narrow: ClassVar[int] = 640

    source = t.List(t.Unicode()).tag(sync=True)
    written = t.List(t.Unicode()).tag(sync=True)
    said = t.List(t.Unicode()).tag(sync=True)
    encoder = t.List().tag(sync=True)
    decoder = t.List().tag(sync=True)
    cross = t.List().tag(sync=True)
    step = t.Int(0).tag(sync=True)
    head = t.Int(-1).tag(sync=True)
    part = t.Unicode("cross").tag(sync=True)
    d = t.Int(64).tag(sync=True)
    prompt = t.Unicode("").tag(sync=True)

    def __init__(
        self,
        source: Sequence[str],
        written: Sequence[str],
        said: Sequence[str],
        encoder: Any,
        decoder: Any,
        cross: Any,
        step: int = 0,
        head: int = -1,
        part: str = "cross",
        d: int = 64,
        prompt: str = "",
    ) -> None:
        L_x = _arguments.integer("number of source tokens", len(source), 1, MOST_TOKENS)
        L_y = _arguments.integer("number of written tokens", len(written), 1, MOST_TOKENS)
        if len(said) != L_y:
            raise ValueError(f"{len(said)} said for {L_y} written tokens; give one for each")
        if part not in KINDS:
            raise ValueError(f"part = {part!r}; choose one of {list(KINDS)}")
        maps: dict[str, Any] = {}
        sizes = ((encoder, L_x, L_x), (decoder, L_y, L_y), (cross, L_y, L_x))
        heads = len(encoder)
        for name, (given, rows, columns) in zip(KINDS, sizes, strict=True):
            A = torch.as_tensor(given, dtype=torch.float64)
            if A.shape != (heads, rows, columns):
                raise ValueError(
                    f"{name} has shape {tuple(A.shape)}; give weights of shape "
                    f"(heads, queries, keys) = ({heads}, {rows}, {columns})"
                )
            if (A.sum(-1) - 1).abs().max() > 1e-3 or A.min() < 0:
                raise ValueError(f"{name} has a row that is no distribution; give weights A")
            maps[name] = [[[round(a, 4) for a in row] for row in table] for table in A.tolist()]
        super().__init__(
            **maps, source=list(source), written=list(written), said=list(said), part=part,
            step=_arguments.integer("step", step, 0, L_y - 1), d=_arguments.integer("d", d, 1),
            head=_arguments.integer("head", head, -1, heads - 1),
            prompt=prompt or "Write the row symbol by symbol with the slider or →. Which symbol "
            "of the source does the decoder read at each step?",
        )  # fmt: skip

    def weights(self, part: str) -> list[list[float]]:
        """The map that is shown: of the chosen head, or the mean over heads."""
        A = torch.tensor(getattr(self, part), dtype=torch.float64)
        return (A.mean(0) if self.head < 0 else A[self.head]).tolist()

    @property
    def pairs(self) -> dict[str, int]:
        """How many pairs each attention looks at."""
        return pair_counts(len(self.source), len(self.written))

    def __repr__(self) -> str:
        return f"ThreeMaps({' '.join(self.source)!r}, step={self.step}, part={self.part!r})"
