"""What the mechanisms of this part show of themselves: a picture, and a line in the race."""

from __future__ import annotations

from typing import Any

import torch
from torch import Generator, Tensor

from tfviz.compressed.clustered_attention import Clustered, clustered_definition, lloyd
from tfviz.compressed.csalr import Csalr, csalr_definition
from tfviz.compressed.informer import Informer, informer_definition, measure
from tfviz.compressed.linear_transformer import LinearAttention, linear_definition
from tfviz.compressed.linformer import Linformer, linformer_definition, mean_pooling
from tfviz.compressed.lowrank_plus_band import LowRankPlusBand, lowrank_band_definition
from tfviz.compressed.luna import luna_definition, nested, nested_causal
from tfviz.compressed.memory_compressed_attention import (
    MemoryCompressed,
    mca_definition,
    mean_kernel,
    mean_shares,
)
from tfviz.compressed.nystromformer import Nystrom, nystrom_definition
from tfviz.compressed.performer import Performer, performer_definition
from tfviz.compressed.poolingformer import mean_pool, pooled_window_definition, two_levels
from tfviz.compressed.rfa import RFA, directions, rfa_definition
from tfviz.compressed.rfa_causal import GatedRFA, gated_definition
from tfviz.dense_attention import CAUSAL, attention
from tfviz.exhibits.exhibit import Exhibit, Gpt, N, Part, drawn, spread
from tfviz.patterns import band


def few_keys() -> Tensor:
    """The matrix that is applied where six stretches of four tokens stand for their keys."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    E = mean_pooling(6, N)
    A = linformer_definition(walk, walk, walk, E, E)[1]
    return spread(A / A.amax(-1, keepdim=True))


def from_landmarks() -> Tensor:
    """What eight landmarks rebuild of the map of a walk, without its negative entries."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    A = nystrom_definition(walk, walk, walk, 8)[1].clamp(min=0)
    return spread(A / A.amax(-1, keepdim=True))


def own_stretches() -> Tensor:
    """What CSALR makes of six landmarks, without its negative entries: stretches show as steps."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    A = csalr_definition(walk, walk, walk, 6, scale=0.2)[1].clamp(min=0)
    return spread(A / A.amax(-1, keepdim=True))


def smooth_and_near() -> Tensor:
    """Two numbers for what is far, and a band of two tokens to either side in full."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    narrow = torch.eye(6)[:, :2] / 3
    A = lowrank_band_definition(walk, walk, walk, narrow, narrow, torch.tensor(0.6), 2)[1]
    return spread(A / A.amax(-1, keepdim=True))


def shared_by_heads() -> Tensor:
    """Twelve layers from top to bottom, twelve heads side by side: a shade for each matrix."""
    layer, head = torch.arange(N)[:, None] // 2, torch.arange(N) // 2
    own = ((5 * layer + 7 * head) % 12 + 1) / 12
    shared = ((5 * layer) % 12 + 1) / 12
    return torch.where(head < 6, own, shared.expand(N, N))


def soft_shares() -> Tensor:
    """The weights of a causal text, each row as dark as its largest one."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    A = linear_definition(walk, walk, walk, CAUSAL.mask(N))[1]
    return spread(A / A.amax(-1, keepdim=True))


def shared_rows() -> Tensor:
    """The weights of queries in four clusters: rows of four kinds, improved on two keys."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    A = clustered_definition(walk, walk, walk, lloyd(walk, 4), k=2)[1]
    return spread(A / A.amax(-1, keepdim=True))


def few_active() -> Tensor:
    """Eight rows of a softmax, where the rating is largest, and even rows elsewhere."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    A = informer_definition(walk, walk, walk, measure(walk, walk).topk(8).indices)[1]
    return spread(A / A.amax(-1, keepdim=True).clamp(min=0.25))


def estimated_shares() -> Tensor:
    """Of a causal text, with sines and cosines of few directions: some are negative."""
    walk, rng = drawn(N, 6, seed=4).cumsum(0), Generator().manual_seed(1)
    A = rfa_definition(walk, walk, walk, directions(6, 6, rng=rng), CAUSAL.mask(N))[1]
    return spread(A / A.amax(-1, keepdim=True))


def faded_shares() -> Tensor:
    """Of a causal text of which half is left after three tokens."""
    walk, rng = drawn(N, 6, seed=4).cumsum(0), Generator().manual_seed(1)
    log_g = torch.full((N,), 0.5).log() / 3
    A = gated_definition(walk, walk, walk, directions(96, 6, rng=rng), log_g)[1]
    return spread(A / A.amax(-1, keepdim=True))


def positive_shares() -> Tensor:
    """Of a causal text, with exponentials along few directions, each row by its largest one."""
    walk, rng = drawn(N, 6, seed=4).cumsum(0), Generator().manual_seed(1)
    A = performer_definition(walk, walk, walk, directions(12, 6, rng=rng), CAUSAL.mask(N))[1]
    return spread(A / A.amax(-1, keepdim=True))


def packed_and_unpacked() -> Tensor:
    """What four rows of Z pack, from top to bottom, above the map that comes of reading them."""
    walk = drawn(N, 6, seed=4).cumsum(0)
    R = walk[3::6]
    pack = (R @ walk.T / 6**0.5).softmax(-1)
    A = luna_definition(walk, walk, walk, R)[1]
    rows = torch.cat([pack, A[4:]])
    return spread(rows / rows.amax(-1, keepdim=True))


def two_bands() -> Tensor:
    """The weights of a window of two tokens on each side, upon those of a wide one of pooled keys,
    each row by its largest one."""
    walk = drawn(N, 6, seed=4).cumsum(0)[None, None]
    near = attention(walk, walk, walk, band(radius=2))[1][0, 0]
    read = pooled_window_definition(walk, walk, walk, w2=10, kernel=3, stride=3)[1][0, 0]
    far = read @ mean_pool(torch.eye(N), 3)
    A = torch.maximum(near / near.amax(-1, keepdim=True), 0.5 * far / far.amax(-1, keepdim=True))
    return spread(A)


def steps_of_three() -> Tensor:
    """The weights of a causal text whose tokens are read in threes, each row as dark as its largest
    one."""
    walk = drawn(N, 6, seed=4).cumsum(0)[None, None]
    mean = mean_kernel(3, 6)
    B = mca_definition(walk, walk, walk, mean, mean, causal=True)[1][0, 0]
    A = B @ mean_shares(N, 3, causal=True)
    return spread(A / A.amax(-1, keepdim=True))


def through_points() -> Tensor:
    """What the rows of a set read of each other through four points, each row as dark as its
    largest weight."""
    X, points = drawn(N, 6, seed=4).cumsum(0), 3 * drawn(4, 6, seed=1)
    few, reads = attention(points, X, X)
    A = attention(X, few, few)[1] @ reads
    return spread(A / A.amax(-1, keepdim=True))


# --- in the race ----------------------------------------------------------------------------------


def summed(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": LinearAttention}


def sines(gpt: Gpt) -> dict[str, Any]:
    core = lambda: RFA(gpt.heads, gpt.d_head, D=64)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def gated_sines(gpt: Gpt) -> dict[str, Any]:
    core = lambda: GatedRFA(gpt.heads, gpt.d_head, D=64)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def exponentials(gpt: Gpt) -> dict[str, Any]:
    """As many features as random feature attention has."""
    return {"positions": gpt.positions(), "core": lambda: Performer(gpt.d_head, m=128)}


def narrow_and_near(gpt: Gpt) -> dict[str, Any]:
    core = lambda: LowRankPlusBand(gpt.d_head, gpt.heads, r=4, w=8)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def threes(gpt: Gpt) -> dict[str, Any]:
    core = lambda: MemoryCompressed(gpt.d_head, gpt.heads, c=3)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def packed_past(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": nested_causal(16, gpt.width)}


# --- in the race of encoders ----------------------------------------------------------------------


def packed(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": nested(16, gpt.width)}


def projected(gpt: Gpt) -> dict[str, Any]:
    core = lambda: Linformer(gpt.heads, gpt.length, 16)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def landmarks(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": lambda: Nystrom(gpt.heads, 16)}


def stretches(gpt: Gpt) -> dict[str, Any]:
    core = lambda: Csalr(16, scale=gpt.d_head**-0.5)  # noqa: E731
    return {"positions": gpt.positions(), "core": core}


def centroids(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": lambda: Clustered(16, k=8)}


def active(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "core": Informer}


def levels(gpt: Gpt) -> dict[str, Any]:
    return {"positions": gpt.positions(), "mix": two_levels(4, 15, 3, 2)}


EXHIBITS = {
    "linformer": Exhibit(
        few_keys,
        why_not="each row of E mixes all positions, "
        "so `linformer` compares it in an encoder of text",
        encoder=projected,
        exactness="any",
        own_positions=True,
    ),
    "linformer_sharing": Exhibit(
        shared_by_heads,
        why_not="each row of E mixes all positions, "
        "so `linformer_digits` compares it in an encoder",
    ),
    "lowrank_plus_band": Exhibit(
        smooth_and_near, race=narrow_and_near, encoder=narrow_and_near, exactness="any"
    ),
    "nystromformer": Exhibit(
        from_landmarks,
        encoder=landmarks,
        why_not="a landmark is a mean of tokens, later ones too, "
        "so `nystrom_landmarks` asks it of an encoder",
        exactness="any",
    ),
    "csalr": Exhibit(
        own_stretches,
        encoder=stretches,
        why_not="a landmark is a mean of tokens, later ones too, "
        "so `nystrom_landmarks` asks it of an encoder",
        exactness="any",
    ),
    "linear_transformer": Exhibit(
        soft_shares,
        race=summed,
        encoder=summed,
        exactness="any",
        story={"linear": Part("attention", summed)},
    ),
    "rfa": Exhibit(estimated_shares, race=sines, encoder=sines, exactness="any"),
    "rfa_causal": Exhibit(faded_shares, race=gated_sines, exactness="any"),
    "performer": Exhibit(positive_shares, race=exponentials, encoder=exponentials, exactness="any"),
    "clustered_attention": Exhibit(
        shared_rows,
        encoder=centroids,
        why_not="a centroid is a mean of queries, later ones too, "
        "so `prototypes` has it in an encoder",
        exactness="any",
    ),
    "informer": Exhibit(
        few_active,
        encoder=active,
        why_not="which queries attend depends on later tokens, "
        "so `prototypes` has it in an encoder",
        exactness="any",
    ),
    "memory_compressed_attention": Exhibit(
        steps_of_three, race=threes, encoder=threes, exactness="any"
    ),
    "set_transformer": Exhibit(
        through_points,
        why_not="it reads a set and knows no order, so `set_pooling` trains it on sets of numbers",
    ),
    "luna": Exhibit(
        packed_and_unpacked, race=packed_past, encoder=packed, exactness="any", own_positions=True
    ),
    "poolingformer": Exhibit(
        two_bands,
        encoder=levels,
        why_not="its groups hold tokens after the query, so `two_level_copy` compares it in an "
        "encoder",
        exactness="any",
        own_positions=True,
    ),
}
