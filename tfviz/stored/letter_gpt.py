"""A small GPT that reads letters: how it is built and kept, and the one that was trained.

`tfviz_lab.basics.head_ablation` trains it and measures its heads.

>>> model = trained()
>>> of_text(model, "the cat sat").shape  # layers, heads, queries, keys
torch.Size([2, 4, 11, 11])
"""

from __future__ import annotations

import base64

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import data, stored
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights
from tfviz.position.sinusoidal_pe import Sinusoidal

ALPHABET = data.Alphabet(" abcdefghijklmnopqrstuvwxyz")
GPT_WIDTH, GPT_HEADS, GPT_LAYERS, GPT_LENGTH = 48, 4, 2, 40


def gpt() -> GPT:
    """Not yet trained."""
    positions = Sinusoidal(GPT_WIDTH, scale=0.5)
    return GPT(
        len(ALPHABET), GPT_WIDTH, GPT_HEADS, GPT_LAYERS, positions=positions, d_ff=2 * GPT_WIDTH
    )


def pack(model: nn.Module) -> str:
    """All weights in half precision, as text."""
    flat = torch.cat([x.flatten() for x in model.state_dict().values()]).half()
    return base64.b64encode(flat.numpy().astype("<f2").tobytes()).decode()


def unpack(text: str) -> GPT:
    model = gpt()
    # a bytearray, because torch wants memory that it may write to
    flat = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.float16).float()
    state = model.state_dict()
    parts = flat.split([x.numel() for x in state.values()])
    model.load_state_dict(
        {name: part.view_as(x) for (name, x), part in zip(state.items(), parts, strict=True)}
    )
    return model.eval()


def trained() -> GPT:
    """The stored model."""
    return unpack(stored.load("head_ablation")["gpt"]["weights"])


def of_text(model: nn.Module, text: str) -> Float[Tensor, "layers heads L L"]:
    """A of every head on a text of letters and spaces."""
    found = attention_weights(model, ALPHABET.encode(text)[None])
    return torch.stack([A[0] for A in found.values()])
