"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor

from tfviz import patterns
from tfviz.cores import Sparse
from tfviz.exhibits.exhibit import STEPS, Exhibit, Gpt, N, Part, drawn, mask
from tfviz.measure import largest_storage
from tfviz.sparse.bigbird import key_blocks, random_blocks
from tfviz.sparse.bigbird import mask as blocks_mask
from tfviz.sparse.blockwise_attention import heads, shift
from tfviz.sparse.bp_transformer import reads, spans
from tfviz.sparse.chunked_feedforward import chunked
from tfviz.sparse.etc import owners
from tfviz.sparse.longformer import mask as global_words
from tfviz.sparse.reformer_lsh import LSH, directions, meetings, order
from tfviz.sparse.reversible_residual import activations
from tfviz.sparse.routing_transformer import Routing, members, taken, together
from tfviz.sparse.sac import edge_mask
from tfviz.sparse.sparse_sinkhorn import Sinkhorn, sinkhorn


def hashed() -> Tensor:
    """Who meets whom in two rounds of hashing."""
    found = order(drawn(N, 8, seed=1), directions(8, 4, rounds=2), chunk=6)
    first, second = meetings(found)
    return 0.45 * first + 0.55 * second


def coarser() -> Tensor:
    """How finely a token hears each other one: alone, or as one of 2, 4, 8."""
    table, (first, end) = reads(N, 1), spans(N).T
    held = (first[table][..., None] <= STEPS) & (end[table][..., None] > STEPS)
    held &= (table >= 0)[..., None]
    return (held / (end - first)[table][..., None] ** 0.7).sum(1)


def kept_by_depth() -> Tensor:
    """What training holds, by depth: a slope where all is kept, a floor in reversible layers."""
    usual, flat = (
        torch.tensor([activations(way, n + 1, 1, 1) / (16 * N) for n in range(N)])
        for way in ("kept", "reversible")
    )
    heights = N - torch.arange(N)[:, None]
    return 0.4 * (heights <= N * usual) + 0.6 * (heights <= (N * flat).clamp(min=2))


def largest_hidden() -> Tensor:
    """The share of the hidden layer that there is at a time, for more and more chunks."""
    x, shares = torch.zeros(N, 2), []
    for chunks in (1, 2, 3, 4, 6, 8):
        tall = largest_storage(chunked, lambda X: X.repeat(1, 8)[:, :2].clone(), x, chunks)
        shares += 4 * [tall / (8 * x.nbytes)]
    return (N - torch.arange(N)[:, None] <= N * torch.tensor(shares)).float()


def routed() -> Tensor:
    """Who meets whom in four clusters of six, sorted by cluster."""
    X, mu = drawn(N, 8, seed=2), drawn(4, 8, seed=3)
    own = taken(members(X, mu, 6), N)
    by = own.float().argmax(0).argsort(stable=True)
    return together(own, own).float().mean(0).mul(4).clamp(max=1)[by][:, by]


def sorted_blocks() -> Tensor:
    """Six blocks: one's own, and those that Sinkhorn's steps move in."""
    P = sinkhorn(drawn(6, 6, seed=1), 41, tau=0.15)
    both = 0.45 * torch.eye(6) + 0.55 * P
    return both.repeat_interleave(4, 0).repeat_interleave(4, 1)


def few_edges() -> Tensor:
    """Edges that somebody drew."""
    dice = Generator().manual_seed(5)
    return (
        edge_mask(torch.randint(12, (26, 2), generator=dice), 12)
        .float()
        .repeat_interleave(2, 0)
        .repeat_interleave(2, 1)
    )


def etc_pieces() -> Tensor:
    """Four global tokens, and twenty words in four sentences, hard masks both ways."""
    found = mask(patterns.etc(radius=2, n_global=4))
    mine = (owners([5] * 4)[:, None] == torch.arange(4)).float()
    found[4:, :4], found[:4, 4:] = 0.6 * mine, 0.6 * mine.T
    return found


# --- in the race ----------------------------------------------------------------------------------


def blocks_with_memory(gpt: Gpt) -> dict[str, Any]:
    pattern = patterns.image_1d(block=16, memory=16)
    return {"positions": gpt.positions(), "core": Sparse, "pattern": pattern}


def strides(gpt: Gpt) -> dict[str, Any]:
    pattern = patterns.strided(stride=round(gpt.length**0.5))
    return {"positions": gpt.positions(), "core": Sparse, "pattern": pattern}


def summaries(gpt: Gpt) -> dict[str, Any]:
    pattern = patterns.fixed(block=round(gpt.length**0.5), summary=1)
    return {"positions": gpt.positions(), "core": Sparse, "pattern": pattern}


# --- in the race of encoders ----------------------------------------------------------------------


def window_and_global(gpt: Gpt) -> dict[str, Any]:
    """A window of near √length in all, and the first token global; one set of projections."""
    pattern = patterns.longformer(radius=gpt.near_root() // 2, n_global=1)
    return {"positions": gpt.positions(), "core": Sparse, "pattern": pattern}


def blocks_at_random(gpt: Gpt) -> dict[str, Any]:
    block = gpt.near_root() // 2
    pattern = patterns.bigbird(block=block, window=1, n_global=1, n_random=1)
    return {"positions": gpt.positions(), "core": Sparse, "pattern": pattern}


def shifted_blocks(gpt: Gpt) -> dict[str, Any]:
    """A text in four blocks; head m reads the block that stands m further on."""
    pattern = heads([shift(4, by) for by in range(gpt.heads)])
    return {"positions": gpt.positions(), "core": Sparse, "pattern": pattern}


def buckets(gpt: Gpt) -> dict[str, Any]:
    core = lambda: LSH(gpt.d_head, gpt.near_root(), rounds=2)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def clusters(gpt: Gpt) -> dict[str, Any]:
    core = lambda: Routing(gpt.heads, gpt.d_head, k=gpt.near_root())  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def moved_blocks(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": lambda: Sinkhorn(gpt.near_root())}


# --- in the story model ---------------------------------------------------------------------------


def last_eight(gpt: Gpt) -> dict[str, Any]:
    return {"pattern": patterns.sliding_window(lookback=7)}


def strides_of_eight(gpt: Gpt) -> dict[str, Any]:
    return {"pattern": patterns.strided(stride=8)}


def eight_below_all(gpt: Gpt) -> dict[str, Any]:
    """Eight words in the lower layers, all of them in the last one."""
    eight = last_eight(gpt)
    return {"layer": lambda n: eight if n < 2 else {}}


def eight_and_sinks(gpt: Gpt) -> dict[str, Any]:
    """The last eight words and the first four. Xiao et al. 2023 (arXiv 2309.17453)."""
    window = patterns.sliding_window(lookback=7)
    return {"pattern": window | patterns.causal() & patterns.global_tokens(count=4)}


EXHIBITS = {
    "atomic_patterns": Exhibit(
        lambda: mask(
            patterns.band(radius=1)
            | patterns.global_tokens(count=1)
            | patterns.dilated(radius=2, dilation=6)
            | patterns.random_keys(count=1, seed=2)
        ),
        why_not="it is the parts of which other patterns are made",
        story={
            "last 8": Part("pattern", last_eight),
            "8 + sinks": Part("pattern", eight_and_sinks),
        },
    ),
    "image_transformer_1d": Exhibit(
        lambda: mask(patterns.image_1d(block=6, memory=5)),
        race=blocks_with_memory,
        exactness="linear",
    ),
    "image_transformer_2d": Exhibit(
        lambda: mask(patterns.image_2d(width=6, h_q=2, w_q=3, h_m=2, w_m=1)),
        why_not="a text has no rows above",
    ),
    "sparse_transformer_strided": Exhibit(
        lambda: mask(patterns.strided(stride=5)),
        race=strides,
        exactness="linear",
        story={"strided": Part("pattern", strides_of_eight)},
    ),
    "sparse_transformer_fixed": Exhibit(
        lambda: mask(patterns.fixed(block=6, summary=1)), race=summaries, exactness="linear"
    ),
    "sparse_transformer_usage": Exhibit(
        lambda: (
            0.35 * mask(patterns.sliding_window(lookback=4))
            + 0.65 * mask(patterns.column(stride=5))
        ),
        why_not="it is a choice among the patterns of its two neighbours",
    ),
    "blockwise_attention": Exhibit(
        lambda: mask(patterns.blockwise(permutation=(1, 2, 3, 0))),
        why_not="blocks of a permutation read what is to come: it is made for an encoder",
        encoder=shifted_blocks,
        exactness="linear",
    ),
    "etc": Exhibit(etc_pieces, why_not="it is an encoder: its global tokens read what is to come"),
    "longformer": Exhibit(
        lambda: global_words(N, radius=2, tokens=[3, 14])[0].float(),
        why_not="it is an encoder: its global tokens read what is to come",
        encoder=window_and_global,
        exactness="linear",
        story={"8, 8, all": Part("pattern", eight_below_all)},
    ),
    "bigbird": Exhibit(
        lambda: blocks_mask(key_blocks(random_blocks(12, r=1, seed=1)[0]), 2).float(),
        why_not="it is an encoder: its global tokens read what is to come",
        encoder=blocks_at_random,
        exactness="linear",
    ),
    "bp_transformer": Exhibit(
        coarser, why_not="its rows are words and spans; a GPT and its masks have words alone"
    ),
    "reformer_lsh": Exhibit(
        hashed,
        why_not="where its chunks are cut depends on later tokens",
        encoder=buckets,
        exactness="linear",
    ),
    "reversible_residual": Exhibit(
        kept_by_depth, why_not="it changes what is kept for training, not what is computed"
    ),
    "chunked_feedforward": Exhibit(
        largest_hidden, why_not="it changes what is kept at a time, not what is computed"
    ),
    "routing_transformer": Exhibit(
        routed,
        why_not="later tokens may take the place of an earlier one in a cluster",
        encoder=clusters,
        exactness="linear",
    ),
    "sac": Exhibit(
        few_edges, why_not="its edges need a predictor, which is trained by reward beside the model"
    ),
    "sparse_sinkhorn": Exhibit(
        sorted_blocks,
        why_not="causal, nothing is left in it of Sinkhorn's steps",
        encoder=moved_blocks,
        exactness="any",
    ),
}
