"""The story model: one small GPT that reads and writes the small world, with parts to exchange.

Its base has rotary positions, RMSNorm before each part, GELU and full attention. A variant has one
other part; which there are is said by the exhibits of the mechanisms, `Exhibit.story`.
`tfviz_lab.story` trains all of them.

>>> model = gpt("last 8")
>>> model(small_world.encode("| one morning a girl")[None]).shape
torch.Size([1, 5, 140])
>>> sorted({part.socket for part in PARTS.values()})
['attention', 'blocks', 'feed', 'keys and values', 'norm', 'pattern', 'position']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor, nn

from tfviz import small_world, stored
from tfviz.basics.layer_norm_pre_post import RMSNorm
from tfviz.cores import Dense
from tfviz.exhibits import EXHIBITS
from tfviz.exhibits.exhibit import Gpt, Part
from tfviz.models.gpt import GPT
from tfviz.position.rope import Turned
from tfviz.small_world import WORDS, encode, probes, text
from tfviz.stored import weights

__all__ = ["PARTS", "WORDS", "encode", "gpt", "pack", "probes", "text", "trained", "unpack"]

LENGTH, WIDTH, HEADS, BLOCKS = small_world.LONGEST + 1, 64, 4, 3
BASE = "base"
PARTS: dict[str, Part] = {
    name: part for exhibit in EXHIBITS.values() for name, part in exhibit.story.items()
}
"""Variant → the part in which it differs from the base."""


def part_of(name: str) -> Part | None:
    """None of the base. Raises ValueError for a variant that there is not."""
    if name != BASE and name not in PARTS:
        raise ValueError(f"name = {name!r}; choose {BASE!r} or one of {', '.join(PARTS)}")
    return PARTS.get(name)


def gpt(name: str = BASE, weights: Mapping[str, Tensor] | None = None) -> GPT:
    """The base or a variant, not yet trained: (b, L) numbers of words → (b, L, len(WORDS)).

    Where a name and a shape are those of `weights`, it begins with them, so that variants and base
    start alike. Raises ValueError for a variant that there is not.
    """
    part = part_of(name)
    told = dict(part.options(Gpt(LENGTH, WIDTH, HEADS))) if part else {}
    if part is None or part.turned:
        told.pop("positions", None)
        told["core"] = partial(Turned, core=told.get("core", Dense))
    finish: Callable[[GPT], GPT] = told.pop("finish", lambda model: model)
    h, N = told.pop("h", HEADS), told.pop("N", BLOCKS)
    model = GPT(len(WORDS), WIDTH, h, N, **{"norm": RMSNorm} | told)
    own = model.state_dict()
    alike = {
        key: x for key, x in (weights or {}).items() if key in own and own[key].shape == x.shape
    }
    model.load_state_dict(alike, strict=False)
    return finish(model)


# --- weights as they are stored -------------------------------------------------------------------


def pack(model: nn.Module) -> str:
    """All weights as text, as `tfviz.stored.weights` packs them in bytes: in the order of
    `named_parameters`, without their names."""
    data: str = weights.pack(dict(model.named_parameters()))["data"]
    return data


def unpack(packed: str, name: str = BASE) -> GPT:
    """The model whose weights `pack` made this text of, ready to be asked.

    Raises ValueError if the text has another number of weights than this variant.
    """
    model = gpt(name)
    shapes = [[own, list(x.shape)] for own, x in model.named_parameters()]
    try:
        found = weights.unpack({"numbers": "int8", "shapes": shapes, "data": packed})
    except ValueError as error:
        raise ValueError(
            f"packed does not hold the weights of {name!r} ({error}): give its variant"
        ) from error
    model.load_state_dict(found, strict=False)
    return model.eval()


def trained(name: str = BASE, step: int | None = None) -> GPT:
    """The stored model; of the base also as it was after so many steps.

    Raises ValueError for a variant that there is not and for a step that is not stored,
    FileNotFoundError as long as nothing is stored.
    """
    part_of(name)
    found = stored.load("story")
    if step is None:
        return unpack(found["weights"][name], name)
    if name != BASE or str(step) not in found["checkpoints"]:
        raise ValueError(
            f"step = {step} of {name!r}; only {BASE!r} is stored on its way, after "
            f"{', '.join(found['checkpoints'])} steps"
        )
    return unpack(found["checkpoints"][str(step)])
