"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tfviz.exhibits.exhibit import Exhibit, Gpt, N, Part, drawn, spread
from tfviz.heads.collaborative_heads import blocks
from tfviz.heads.decoupled_head_size import drawn_by
from tfviz.heads.disagreement_regularization import cosines
from tfviz.heads.grouped_query_attention import Grouped, reads
from tfviz.heads.guided_attention import PATTERNS, targets
from tfviz.heads.multi_query_attention import multi_query_definition
from tfviz.heads.routing_heads_dynamic import routing_rounds
from tfviz.heads.routing_heads_em import em_rounds
from tfviz.heads.talking_heads import talking_definition


def losing_shares() -> Tensor:
    """From top to bottom 24 rounds, side by side the shares of 24 heads in an output. Their votes
    fan out from the middle, and those at the sides point away."""
    angle = torch.linspace(-2.6, 2.6, N)
    votes = torch.stack([angle.cos(), angle.sin()], -1)
    votes = 0.6 * torch.stack([votes, torch.zeros(N, 2)], 1)
    return torch.stack([shares[:, 0] for shares, _ in routing_rounds(votes, N, squashed=False)])


def two_clouds() -> Tensor:
    """The Gaussians of two outputs in the plane after four rounds. One vote of eight is far off."""
    votes = 2.2 * drawn(8, 2, 2, seed=4) + torch.tensor([[-5.0, 3.0], [4.0, -3.0]])
    votes[0, 0] = torch.tensor([9.0, 9.0])
    fit = em_rounds(votes, 4)[-1]
    at = torch.linspace(-9, 9, N)
    places = torch.stack(torch.meshgrid(at, at, indexing="xy"), -1)[..., None, :]
    far = ((places - fit.mean) ** 2 / (4 * fit.variance)).sum(-1)
    return spread(torch.exp(-far).sum(-1))


def half_a_turn() -> Tensor:
    """The cosines of 24 heads that find vectors over half a circle, each with all others."""
    angles = torch.linspace(0, math.pi, N)
    return spread(cosines(torch.stack([angles.cos(), angles.sin()], -1)[:, None]))


def four_targets() -> Tensor:
    """What a head is shown for the same token, the next, the previous and the first one."""
    T = [targets(pattern, N // 2) for pattern in PATTERNS]
    return torch.cat([torch.cat(T[:2], 1), torch.cat(T[2:], 1)])


def four_questions() -> Tensor:
    """The maps of four heads that read the same keys."""
    X, W_q, W = drawn(N // 2, 8, seed=3), drawn(4, 8, 8, seed=5), torch.eye(8)
    A = multi_query_definition(X, 0.6 * W_q, W, W, torch.zeros(32, 8))[1]
    maps = [a / a.amax(-1, keepdim=True) for a in A]
    return torch.cat([torch.cat(maps[:2], 1), torch.cat(maps[2:], 1)])


def groups() -> Tensor:
    """From top to bottom 24 heads of queries, side by side six heads of keys: who reads which."""
    return (torch.tensor(reads(N, 6))[:, None] == torch.arange(N) // 4).float()


def what_three_numbers_draw() -> Tensor:
    """A narrow head's attempt at a random map: blocks, where the map has single keys."""
    return spread(drawn_by((2 * drawn(N, N, seed=6)).softmax(-1), 3).sqrt())


def before_and_after_talking() -> Tensor:
    """Above, the maps of two heads; below, a head that negates the first, and how they differ."""
    X, W = drawn(N // 2, 8, seed=3), drawn(2, 8, 8, seed=5)
    Q, V = 0.6 * X @ W, X.expand(2, -1, -1)
    P_l, both = torch.tensor([[1.0, -1.0], [0.0, 0.0]]), torch.eye(2)
    plain = talking_definition(Q, X.expand(2, -1, -1), V, both, both)[1]
    negated = talking_definition(Q, X.expand(2, -1, -1), V, P_l, both)[1]
    apart = spread(negated[0] - negated[1])
    maps = [a / a.amax(-1, keepdim=True) for a in (*plain, negated[1])]
    return torch.cat([torch.cat(maps[:2], 1), torch.cat([maps[2], apart], 1)])


def from_blocks_to_shared() -> Tensor:
    """Mixing vectors of three heads over 24 features: above in blocks, below shared by all."""
    shared = drawn(3, N, seed=2).abs().clamp(max=2) / 2
    return torch.cat([blocks(3, N), shared]).repeat_interleave(N // 6, 0)


# --- in the race ----------------------------------------------------------------------------------


def one_of_keys(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "h_kv": 1}


def two_of_keys(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "h_kv": 2, "core": Grouped}


LOSS = "it is a loss of training, and its own experiment compares it"
BESIDE = "it takes the place of W^o: its own experiment trains the same model with both"
EXHIBITS = {
    "disagreement_regularization": Exhibit(half_a_turn, why_not=LOSS),
    "guided_attention": Exhibit(four_targets, why_not=LOSS),
    "talking_heads": Exhibit(
        before_and_after_talking,
        why_not="a comparison as small as ours cannot tell, so chapter 28 measures only its cost",
    ),
    "collaborative_heads": Exhibit(
        from_blocks_to_shared,
        why_not="its own experiment compares it, as what becomes of a trained layer",
    ),
    "multi_query_attention": Exhibit(
        four_questions,
        race=one_of_keys,
        exactness="exact",
        story={"MQA": Part("keys and values", one_of_keys)},
    ),
    "grouped_query_attention": Exhibit(
        groups,
        race=two_of_keys,
        exactness="exact",
        story={"GQA": Part("keys and values", two_of_keys)},
    ),
    "decoupled_head_size": Exhibit(
        what_three_numbers_draw,
        why_not="it is a choice of one size: chapter 29 fits maps with heads of several",
    ),
    "routing_heads_dynamic": Exhibit(losing_shares, why_not=BESIDE),
    "routing_heads_em": Exhibit(two_clouds, why_not=BESIDE),
}
