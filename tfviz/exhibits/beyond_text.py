"""What the mechanisms of this part show of themselves: a picture for each."""

from __future__ import annotations

import torch
from torch import Tensor

from tfviz.beyond_text.conformer_block import depthwise
from tfviz.beyond_text.decision_transformer import graph_walker
from tfviz.beyond_text.efficiency_tradeoffs import front
from tfviz.beyond_text.gtrxl import passed
from tfviz.beyond_text.tokenise_anything import Joint, image, same_kind, sound, text
from tfviz.beyond_text.vit_patches import images_of, patches
from tfviz.exhibits.exhibit import Exhibit, N, drawn, spread
from tfviz.models.use import attention_weights
from tfviz.training import seeded

P = 6


def cut_ring() -> Tensor:
    """A ring, cut into patches that stand a little apart."""
    at = torch.arange(N) - (N - 1) / 2
    far = (at[:, None] ** 2 + at**2).sqrt()
    ring = ((far > 5) & (far < 10)).float()[None, None]
    cut = patches(ring, P).unflatten(2, (P, P)).clone()
    cut[..., -1, :] = cut[..., -1] = 0.35  # the gaps
    return images_of(cut.flatten(2), N, N, P)[0, 0]


def near_and_far() -> Tensor:
    """What each of 24 outputs is made of: its neighbours through a convolution, all samples through
    attention."""
    near = depthwise(torch.eye(N), torch.full((N, 7), 1 / 7))
    far = (1.5 * drawn(N, N, seed=4)).softmax(-1)
    return spread((near + far).sqrt())


def three_kinds() -> Tensor:
    """Weights of a model that has not learned, over six letters, eight patches and ten frames;
    darker: pairs of one kind, which is all that separate encoders have."""
    kinds = {"text": text(9), "image": image(P=2), "sound": sound(width=4)}
    given = {
        "text": torch.arange(6)[None],
        "image": drawn(4, 8, seed=1)[None, None],
        "sound": drawn(1, 40, seed=2),
    }
    model = seeded(0, lambda: Joint(kinds, most=10, d=16, h=1, N=1))
    A = attention_weights(model, given)["stack.blocks.0.attend"][0, 0]
    own = same_kind({"text": 6, "image": 8, "sound": 10}).mask(N)
    return spread(A.sqrt()) * torch.where(own, 1.0, 0.35)


def what_gates_leave() -> Tensor:
    """From top to bottom 24 gates, side by side biases from 0 to 6: how much of x is left."""
    shares = torch.tensor([passed(b) for b in torch.linspace(0, 6, N).tolist()])
    return shares ** torch.arange(1, N + 1)[:, None]


def eight_steps() -> Tensor:
    """Weights of a model that has not learned, in eight steps of three tokens; dark: the rows of
    the states, at which actions are read."""
    model = seeded(0, lambda: graph_walker(places=5, d=16, h=1, N=1, horizon=8))
    states = torch.arange(8)[None] % 5
    given = -torch.arange(8.0).flip(0)[None], states, states.roll(-1, 1), torch.arange(8)[None]
    A = attention_weights(model, *given)["stack.blocks.0.attend"][0, 0]
    read = torch.arange(N) % 3 == 1
    return spread(A.sqrt()) * torch.where(read, 1.0, 0.35)[:, None]


def what_nothing_beats() -> Tensor:
    """Points by time and loss, and dark those that no other beats."""
    spots = drawn(60, 2, seed=1).sigmoid() * (N - 1)
    cells = {str(n): (row, column) for n, (row, column) in enumerate(spots.round().int().tolist())}
    best = set(front({name: (column, N - 1 - row) for name, (row, column) in cells.items()}))
    picture = torch.zeros(N, N)
    for name, (row, column) in cells.items():
        picture[row, column] = 1.0 if name in best else 0.35
    return picture


EXHIBITS = {
    "vit_patches": Exhibit(
        cut_ring,
        why_not="it reads images: chapter 30 compares sizes of patches on digits",
    ),
    "conformer_block": Exhibit(
        near_and_far,
        why_not="its convolution looks ahead, so `attention_and_convolution` compares it instead",
    ),
    "tokenise_anything": Exhibit(
        three_kinds,
        why_not="it reads text, images and sounds; `see_and_hear` compares it with a block mask",
    ),
    "gtrxl": Exhibit(
        what_gates_leave,
        why_not="chapter 31 compares it, where an agent learns from rewards",
    ),
    "decision_transformer": Exhibit(
        eight_steps,
        why_not="it reads returns, states and actions; chapter 31 lets it act",
    ),
    "efficiency_tradeoffs": Exhibit(
        what_nothing_beats,
        why_not="it is the race itself: chapter 32 compares all the others",
    ),
}
