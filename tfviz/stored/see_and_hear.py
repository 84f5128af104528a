"""A tiny model that sees a digit, hears beeps and answers a question about one of them.

`tfviz_lab.beyond_text.see_and_hear` trains it.

>>> yes, A = read(trained(), QUESTIONS[0], shown()[8], heard()[3])
>>> yes > 0.5, A.shape  # is the 8 that it sees more than 4?
(True, torch.Size([2, 3, 20, 20]))
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import data, stored
from tfviz.beyond_text.tokenise_anything import Joint, Parts, image, same_kind, sound, text
from tfviz.models.use import attention_weights
from tfviz.stored.digit_vit import LEVELS, SIDE, shown
from tfviz.stored.letter_gpt import pack

QUESTIONS = ("eye>4?", "eye<5?", "ear>4?", "ear<5?")
ALPHABET = data.Alphabet("".join(sorted(set("".join(QUESTIONS)))))
PATCH, FRAMES, FRAME = 4, 10, 8  # four patches; 80 samples of sound, where a beep fills a frame
LENGTHS = {"text": len(QUESTIONS[0]), "image": (SIDE // PATCH) ** 2, "sound": FRAMES}
WIDTH, HEADS, LAYERS = 24, 3, 2
ASKED = LENGTHS["text"] - 1  # the question mark, from which the answer is read

__all__ = ["SeeAndHear", "exact", "for_page", "heard", "pack", "parts", "read", "shown"]


class SeeAndHear(nn.Module):
    """Parts → the logit of "yes", read from the question mark alone."""

    def __init__(self, **told: Any) -> None:
        super().__init__()
        kinds = {"text": text(len(ALPHABET)), "image": image(PATCH), "sound": sound(FRAME)}
        most = max(LENGTHS.values())
        self.joint = Joint(kinds, most, WIDTH, HEADS, LAYERS, **{"d_ff": 2 * WIDTH} | told)
        self.answer = nn.Linear(WIDTH, 1)

    def forward(self, parts: Parts) -> Float[Tensor, "b"]:
        return self.answer(self.joint(parts)[:, ASKED])[:, 0]


def unpack(weights: str, **told: Any) -> SeeAndHear:
    """The model whose weights `pack` made this text of."""
    model = SeeAndHear(**told)
    # a bytearray, because torch wants memory that it may write to
    flat = torch.frombuffer(bytearray(base64.b64decode(weights)), dtype=torch.float16).float()
    nn.utils.vector_to_parameters(flat, model.parameters())
    return model.eval()


def trained(masked: bool = False) -> SeeAndHear:
    """The stored model; `masked` with a block mask."""
    told = {"pattern": same_kind(LENGTHS)} if masked else {}
    return unpack(stored.load("see_and_hear")["reader"]["weights"], **told)


@cache
def exact(masked: bool = False) -> SeeAndHear:
    """The stored model in double precision."""
    return trained(masked).double().requires_grad_(False)


def heard() -> list[list[float]]:
    """Samples of ten sounds, of 0 to 9 beeps."""
    waves: list[list[float]] = stored.load("see_and_hear")["heard"]
    return waves


def parts(question: str, pixels: Any, wave: Any) -> dict[str, Tensor]:
    """What the model is given, a batch of one; pixels from 0 to LEVELS."""
    return {
        "text": ALPHABET.encode(question)[None],
        "image": torch.as_tensor(pixels).view(1, 1, SIDE, SIDE) / LEVELS,
        "sound": torch.as_tensor(wave)[None],
    }


@torch.no_grad()
def read(
    model: SeeAndHear, question: str, pixels: Any, wave: Any
) -> tuple[float, Float[Tensor, "layers heads L L"]]:
    """(share of "yes", all weights) for one question, one image and one sound."""
    dtype = model.answer.weight.dtype
    given = {
        name: part if name == "text" else part.to(dtype)
        for name, part in parts(question, pixels, wave).items()
    }
    maps = attention_weights(model, given)
    return model(given).sigmoid().item(), torch.stack([*maps.values()])[:, 0]


def for_page() -> dict[str, Any]:
    """Weights in half precision with their names and sizes, and the shape."""
    return {
        "weights": stored.load("see_and_hear")["reader"]["weights"],
        "shapes": [[name, x.numel()] for name, x in SeeAndHear().state_dict().items()],
        "d": WIDTH,
        "h": HEADS,
        "layers": LAYERS,
        "patch": PATCH,
        "levels": LEVELS,
        "frame": FRAME,
    }
