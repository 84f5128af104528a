"""Time and memory of sparse attention beside dense attention and what others offer, on one thread.

    python bench/attention.py            ÷ dense at 16k against the limits, then everything else
    python bench/attention.py --limits   the first part only (some minutes)
    python bench/attention.py --quick    the same at 4k, where the limits do not apply

Batch 1, 4 heads of width 64, float32, everything in one process. Times are processor time, for the
machine may be shared; what is compared takes turns, and the median of the rounds is shown. Memory
is the peak of what torch allocates beyond the inputs. Slope: exponent of the time between the two
largest lengths.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler is chatty; before torch is loaded

import torch
import torch.nn.functional as F

from tfviz import patterns as P
from tfviz import sparse_attention
from tfviz.adaptive.adaptive_span import span_attention
from tfviz.adaptive.multi_scale_transformer import multi_scale
from tfviz.compressed.clustered_attention import Clustered
from tfviz.compressed.informer import Informer
from tfviz.compressed.linear_transformer import LinearAttention
from tfviz.compressed.linformer import Linformer
from tfviz.compressed.lowrank_plus_band import LowRankPlusBand
from tfviz.compressed.luna import causal_luna_attention, luna_attention
from tfviz.compressed.memory_compressed_attention import MemoryCompressed
from tfviz.compressed.nystromformer import nystrom_attention
from tfviz.compressed.performer import Performer
from tfviz.compressed.poolingformer import pooled_window_attention
from tfviz.compressed.rfa import RFA
from tfviz.compressed.rfa_causal import GatedRFA
from tfviz.compressed.set_transformer import ISAB
from tfviz.cores import Dense, Where, given, levels
from tfviz.dense_attention import CAUSAL
from tfviz.dense_attention import attention as dense_attention
from tfviz.heads.grouped_query_attention import Grouped
from tfviz.heads.talking_heads import Talking
from tfviz.longer_context.alibi import Alibi
from tfviz.longer_context.compressive_transformer import mean_pool
from tfviz.longer_context.da_transformer import DA
from tfviz.longer_context.memorizing_transformer import Memorizing
from tfviz.measure import flops, in_turns, peak_memory, seconds
from tfviz.models.blocks import Stack
from tfviz.priors.average_attention import Averages
from tfviz.priors.camtl_prior import TaskPrior
from tfviz.priors.gaussian_transformer import Gaussian
from tfviz.priors.hard_coded_gaussian import HardCoded
from tfviz.priors.lazyformer import lazy_blocks
from tfviz.priors.localness_gaussian import Localness
from tfviz.priors.predictive_attention import Predictive
from tfviz.sparse import bigbird, etc, longformer, reformer_lsh
from tfviz.sparse.bp_transformer import tree_attention, with_spans
from tfviz.sparse.routing_transformer import routing_attention
from tfviz.sparse.sac import edge_attention
from tfviz.sparse.sparse_sinkhorn import Sinkhorn

HEADS, WIDTH = 4, 64
Attention = Callable[..., torch.Tensor]

# name -> (pattern of L, at most this × dense at L = 16k: forward, forward + backward). A limit is
# what a run on a quiet machine reached, and 5 % more: it guards against getting slower.
PATTERNS: dict[str, tuple[Callable[[int], P.Pattern], float, float]] = {
    "sliding 256": (lambda L: P.sliding_window(lookback=256), 0.0236, 0.0278),
    "±256": (lambda L: P.band(radius=256), 0.0415, 0.0516),
    "dilated ×4": (lambda L: P.dilated(radius=256, dilation=4) & P.causal(), 0.0275, 0.0332),
    "strided 128": (lambda L: P.strided(stride=128), 0.0306, 0.0330),
    "fixed 128/8": (lambda L: P.fixed(block=128, summary=8), 0.0578, 0.0581),
    "blockwise": (
        lambda L: P.blockwise(permutation=tuple(reversed(range(L // 128)))),
        0.0148,
        0.0153,
    ),
    "Big Bird": (
        lambda L: P.bigbird(block=64, window=1, n_global=1, n_random=3, seed=0),
        0.0641,
        0.0609,
    ),
}
ROUNDS = 5
BESIDE_FLEX = {1024: 1.26, 4096: 1.16, 16384: 1.05}
"""length -> Big Bird at most so many times as long as FlexAttention, compiled, takes."""


def routed(L: int) -> Attention:
    mu = F.normalize(torch.randn(HEADS, L // 128, WIDTH), dim=-1)
    return lambda q, k, v: routing_attention(q, k, v, mu, 128, causal=True)


def sorted_in(L: int) -> Attention:
    core, where = Sinkhorn(128), Where(CAUSAL)
    return lambda q, k, v: core(q, k, v, where)[0]


def hashed(L: int) -> Attention:
    """Four rounds, chunks of 64; the queries are the keys."""
    R = reformer_lsh.directions(WIDTH, reformer_lsh.even_factors(2 * L // 64), 4)
    return lambda q, k, v: reformer_lsh.lsh_attention(q, v, R, 64)


def on_edges(L: int) -> Attention:
    edges = torch.randint(L, (1, 1, 16 * L, 2))
    return lambda q, k, v: edge_attention(q, k, v, edges)


# what content decides, in the same way: name -> (attention for L, at most: forward, with backward)
CONTENT: dict[str, tuple[Callable[[int], Attention], float, float]] = {
    "LSH, 4 rounds, chunks of 64": (hashed, 0.30, 0.45),
    "routing, 128 a cluster": (routed, 0.25, 0.15),
    "Sinkhorn, blocks of 128": (sorted_in, 0.1, 0.1),
    "SAC, 16 edges a token": (on_edges, 0.5, 0.4),
}


def with_longformer(L: int) -> Attention:
    """w = 512, 16 global tokens; the same projections for both, which changes no time."""
    return lambda *qkv: longformer.longformer_attention(qkv, qkv, 256, range(16))


def with_etc(L: int) -> Attention:
    """w = 84 on each side and 64 global tokens, all open, without labels."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        K, V = (etc.shared(x[:, :, :64], x) for x in (k, v))
        return etc.etc_attention(q[:, :, :64], q, K, V, 84)[1]

    return attend


def with_big_bird(L: int) -> Attention:
    """Blocks of 64, one global at each end, three drawn for each block and head."""
    drawn = bigbird.random_blocks(L // 64, 3, HEADS)
    return lambda q, k, v: bigbird.bigbird_attention(q, k, v, 64, drawn)


def with_tree(L: int) -> Attention:
    return lambda q, k, v: tree_attention(with_spans(q), with_spans(k), with_spans(v), 4)


def with_landmarks(L: int) -> Attention:
    return lambda q, k, v: nystrom_attention(q, k, v, 64)


def with_spans_learned(L: int) -> Attention:
    """Three heads that look 100 tokens back and one that looks 1,000, as trained heads do."""
    z = torch.tensor([[100.0], [100.0], [100.0], [1000.0]])
    return lambda q, k, v: span_attention(q, k, v, z, 32)


def with_scales(L: int) -> Attention:
    return lambda q, k, v: sparse_attention(q, k, v, multi_scale((1, 3, 64, 256)))


def in_clusters(k: int) -> Attention:
    """100 clusters of queries, found anew in each call."""
    made = Clustered(100, k)
    return lambda q, k, v: made(q, k, v, Where())[0]


def in_segments(L: int, squeezed: int = 0) -> Attention:
    """Segments of 256 with a memory of 256, and `squeezed` slots of four rows each behind it."""
    core = Dense()

    def small(x: torch.Tensor, end: int) -> torch.Tensor:
        old = x[:, :, max(0, end - 4 * squeezed) : end]
        return mean_pool(old.flatten(0, 1), None, 4).unflatten(0, x.shape[:2])

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = []
        for at in range(0, L, 256):
            first, own = max(0, at - 256), slice(at, at + 256)
            past = [torch.cat([small(x, first), x[:, :, first:at]], 2) for x in (k, v)]
            where = Where(CAUSAL, past[0].shape[2], state=(past[0], past[1]))
            out.append(core(q[:, :, own], k[:, :, own], v[:, :, own], where)[0])
        return torch.cat(out, 2)

    return attend


def with_far_memories(L: int) -> Attention:
    """Segments of 256 with a window of 256, and of the last 2,048 pairs the 32 best."""
    memorizing = Memorizing(HEADS, WIDTH, m=2048, k=32, window=256)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        state, out = None, []
        for part in zip(*(x.split(256, 2) for x in (q, k, v)), strict=True):
            kept: list[Any] = []
            out.append(memorizing(*part, Where(CAUSAL, state=state, keep=kept.append))[0])
            state = kept[0]
        return torch.cat(out, 2)

    return attend


def core(made: Any, pattern: P.Pattern = CAUSAL) -> Attention:
    return lambda q, k, v: made(q, k, v, Where(pattern))[0]


ROOMS: dict[str, tuple[Callable[[int], Attention], float, float]] = {
    "BPT, k = 4": (with_tree, 0.06, 0.09),
    "Longformer, 16 global": (with_longformer, 0.05, 0.075),
    "ETC, 64 global, ±84": (with_etc, 0.05, 0.075),
    "XL, 256 + 256": (in_segments, 0.08, 0.25),
    "compressive, 256 + 256 + 128": (lambda L: in_segments(L, 128), 0.09, 0.25),
    "memorizing, 256 + 32 of 2,048": (with_far_memories, 0.471, 0.25),
    "Big Bird, per head": (with_big_bird, 0.0645, 0.0675),
    "adaptive span, z = 100 ×3, 1000": (with_spans_learned, 0.05, 0.065),
    "multi-scale, 1, 3, 64, 256": (with_scales, 0.02, 0.025),
    "clustered, 100": (lambda L: in_clusters(0), 0.16, 0.06),
    "improved clustered, 100 and 32": (lambda L: in_clusters(32), 0.17, 0.07),
    "linear": (lambda L: core(LinearAttention(), P.full()), 0.025, 0.025),
    "linear, causal": (lambda L: core(LinearAttention()), 0.045, 0.03),
    "RFA, 64 directions, causal": (lambda L: core(RFA(HEADS, WIDTH)), 0.057, 0.063),
    "gated RFA, 64 directions": (lambda L: core(GatedRFA(HEADS, WIDTH)), 0.063, 0.065),
    "Performer, 256 features": (lambda L: core(Performer(WIDTH), P.full()), 0.103, 0.078),
    "Performer, 256, causal": (lambda L: core(Performer(WIDTH)), 0.201, 0.148),
    "Nyström, 64 landmarks": (with_landmarks, 0.014, 0.0165),
}


def with_mixed_keys(L: int) -> Attention:
    """256 mixed keys, by one E and one F for all heads, as the package linformer has them."""
    return core(Linformer(HEADS, L, 256, "headwise"), P.full())


def packed(attend: Callable[..., torch.Tensor]) -> Attention:
    """Luna's two steps, through 16 vectors; their projections are the model's, as those of X."""
    R = torch.randn(HEADS, 16, WIDTH)
    return lambda q, k, v: attend(q, k, v, R)


def within_windows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Poolingformer: 128 tokens on each side, and upon that 512, of which each 5 are pooled."""
    near = sparse_attention(q, k, v, P.band(radius=128))
    return near + pooled_window_attention(near, near, near, 512, 5, 5)


def through_points(L: int) -> Attention:
    """An ISAB of 32 points, with its projections and its feed-forward part; the set is q."""
    isab = ISAB(HEADS * WIDTH, HEADS, 32)
    return lambda q, k, v: isab(flat(q))


def flat(x: torch.Tensor) -> torch.Tensor:
    """(b, h, L, d_head) → (b, L, h · d_head)."""
    return x.transpose(1, 2).flatten(2)


def package_linformer(L: int) -> Attention:
    from linformer import LinformerSelfAttention

    layer = LinformerSelfAttention(HEADS * WIDTH, L, k=256, heads=HEADS)
    layer.to_q = layer.to_k = layer.to_v = layer.to_out = torch.nn.Identity()
    return lambda q, k, v: layer(flat(q))  # queries = keys = values


def package_nystrom(L: int) -> Attention:
    from nystrom_attention import NystromAttention

    layer = NystromAttention(HEADS * WIDTH, WIDTH, HEADS, num_landmarks=64, residual=False)
    layer.to_qkv = layer.to_out = torch.nn.Identity()
    return lambda *qkv: layer(torch.cat([flat(x) for x in qkv], -1))


def package_performer(L: int) -> Attention:
    from performer_pytorch.performer_pytorch import FastAttention

    return FastAttention(WIDTH, 256)


def package_elu(L: int) -> Attention:
    from performer_pytorch.performer_pytorch import linear_attention

    return lambda q, k, v: linear_attention(F.elu(q) + 1, F.elu(k) + 1, v)


def bare_products(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """What linear attention cannot do without: an exponential of each number of queries and keys,
    and two products. It looks for no NaN, and divides by no sum."""
    return q.exp() @ (k.exp().mT @ v)


def typed_linear(L: int) -> Attention:
    """`LinearAttention` of fast-transformers, the authors' package, which does not install."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k = F.elu(q) + 1, F.elu(k) + 1
        Z = 1 / (torch.einsum("nhld,nhd->nhl", q, k.sum(2)) + 1e-6)
        return torch.einsum("nhld,nhmd,nhl->nhlm", q, torch.einsum("nhsd,nhsm->nhmd", k, v), Z)

    return attend


def package_linear(L: int) -> Attention:
    """Less work than ours: softmax features, and no division of a row by its sum."""
    from linear_attention_transformer.linear_attention_transformer import linear_attn

    return linear_attn


def package_causal_linear(L: int) -> Attention:
    """In buckets of one token: in longer ones a query does not meet its own bucket."""
    from linear_attention_transformer.linear_attention_transformer import causal_linear_attn

    return partial(causal_linear_attn, bucket_size=1)


# chapters 21 to 24: name -> (attention for L, {package: the same by others})
SMALLER: dict[str, tuple[Callable[[int], Attention], dict[str, Callable[[int], Attention]]]] = {
    "Linformer, k = 256": (with_mixed_keys, {"linformer": package_linformer}),
    "Nyström, 64 landmarks": (with_landmarks, {"nystrom-attention": package_nystrom}),
    "Performer, 256 features": (
        ROOMS["Performer, 256 features"][0],
        {"performer-pytorch": package_performer},
    ),
    "linear": (
        ROOMS["linear"][0],
        {
            "linear-attention-transformer": package_linear,
            "performer-pytorch": package_elu,
            "fast-transformers, typed": typed_linear,
        },
    ),
    "linear, causal": (
        ROOMS["linear, causal"][0],
        {"linear-attention-transformer": package_causal_linear},
    ),
    "clustered, 100": (ROOMS["clustered, 100"][0], {}),
    "Informer, c = 5": (lambda L: core(Informer(), P.full()), {}),
    "memory-compressed, c = 3": (lambda L: core(MemoryCompressed(WIDTH, HEADS)), {}),
    "Luna, 16 vectors": (lambda L: packed(lambda *x: luna_attention(*x)[0]), {}),
    "Luna, 16 vectors, causal": (lambda L: packed(causal_luna_attention), {}),
    "Poolingformer, ±128, ±512 pooled": (lambda L: within_windows, {}),
    "ISAB, 32 points": (through_points, {}),
    "low rank 4 + band ±8": (lambda L: core(LowRankPlusBand(WIDTH, HEADS), P.full()), {}),
}
OF_FLOPS = 1.6
"""A row with packages, and clustered attention, takes at most so many times as long as its FLOPs
would at the speed of dense attention."""

BARE = {"linear": bare_products}
"""What a row cannot do without, where that alone takes longer than its FLOPs at dense speed times
OF_FLOPS: with heads of 64 a number that is loaded is used for 64 products only, and each number of
queries and keys has an exponential. Such a row is held to OF_BARE times the bare operations.
For full linear attention they take 1.8 to 2.2 times as long as its FLOPs on a processor with
AVX-512, and 0.8 to 0.9 times as long as linear-attention-transformer: what is made of these
operations cannot be 1.5 times as fast as that package."""
OF_BARE = 1.6


# what reads a causal text: name -> (attention, lengths, at most × dense causal SDPA: forward,
# forward + backward). DA, localness and the Gaussian prior write L² numbers for each head: at 16k
# they would be several times 4 GiB.
def with_task(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A new task prior in 16 blocks."""
    with given(task=torch.ones(64)):
        made: torch.Tensor = TaskPrior(q.shape[2], 16, 64)(q, k, v, Where(CAUSAL))[0]
    return made


def above_another(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A layer that guesses its scores from those below, which are there already."""
    with levels():
        Where().hand_up(torch.zeros(1, HEADS, q.shape[2], q.shape[2]))
        made: torch.Tensor = Predictive(HEADS)(q, k, v, Where(CAUSAL))[0]
    return made


CAUSAL_TEXT: dict[str, tuple[Attention, list[int], float, float]] = {
    "ALiBi": (core(Alibi(HEADS)), [4096, 16384], 1.5, 1.5),
    "DA": (core(DA(HEADS)), [4096], 26.4, 15.3),
    "LSH, 4 rounds": (core(reformer_lsh.LSH(WIDTH, 64, 4)), [16384], 0.30, 0.45),
    "averages": (core(Averages()), [16384], 0.01, 0.01),
    "localness": (core(Localness(WIDTH, HEADS)), [4096], 9.2, 11.0),
    "Gaussian prior": (core(Gaussian(HEADS)), [4096], 16.5, 9.2),
    "hard-coded, spread 1": (core(HardCoded(HEADS)), [16384], 0.02, 0.02),
    "predictive": (above_another, [2048], 40.0, 40.0),
    "task prior, 16 blocks": (with_task, [2048], 6.0, 6.0),
}


def ours(name: str, L: int) -> Attention:
    return lambda q, k, v: sparse_attention(q, k, v, PATTERNS[name][0](L))


def with_mask(L: int) -> Attention:
    mask = P.strided(stride=128).mask(L)  # which one makes no difference to it
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask)


def flex(name: str, L: int) -> Attention:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._dynamo.reset()
    size = 64 if name == "Big Bird" else 128
    mod = PATTERNS[name][0](L).at(L).mask_mod
    blocks = create_block_mask(mod, None, None, L, L, "cpu", BLOCK_SIZE=size, _compile=True)
    compiled: Any = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q, k, v, block_mask=blocks)


def local_attention(name: str, L: int) -> Attention:
    from local_attention import LocalAttention

    causal = name == "sliding 256"
    around = {"causal": True} if causal else {"look_backward": 1, "look_forward": 1}
    return LocalAttention(256, exact_windowsize=True, use_rotary_pos_emb=False, **around)


def hugging_face_longformer(name: str, L: int) -> Attention:
    from transformers import LongformerConfig
    from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

    config = LongformerConfig(
        hidden_size=HEADS * WIDTH, num_attention_heads=HEADS, attention_window=[512]
    )
    layer: Any = _without_projections(LongformerSelfAttention(config, layer_id=0).eval())
    none = torch.zeros(1, L)
    flags = {"is_index_masked": none < 0, "is_index_global_attn": none > 0, "is_global_attn": False}
    return lambda q, k, v: layer(q.transpose(1, 2).flatten(2), attention_mask=none, **flags)[0]


def hugging_face_big_bird(name: str, L: int) -> Attention:
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import (
        BigBirdBlockSparseAttention,
        BigBirdModel,
    )

    config = BigBirdConfig(
        hidden_size=HEADS * WIDTH,
        num_attention_heads=HEADS,
        block_size=64,
        max_position_embeddings=L,
    )
    layer: Any = _without_projections(BigBirdBlockSparseAttention(config, seed=0).train())
    blocked, band, rows, columns = BigBirdModel.create_masks_for_block_sparse_attn(
        torch.ones(1, L), 64
    )
    return lambda q, k, v: layer(
        q.transpose(1, 2).flatten(2), band, rows, columns, blocked, blocked
    )[0]


def _without_projections(layer: Any) -> Any:
    """Their layers project first; here only the attention is measured (queries = keys = values)."""
    layer.query = layer.key = layer.value = torch.nn.Identity()
    return layer


OTHERS: dict[str, dict[str, Callable[[str, int], Attention]]] = {
    name: {"FlexAttention, compiled": flex} for name in PATTERNS
}
OTHERS["sliding 256"]["local-attention"] = local_attention
OTHERS["±256"]["local-attention"] = local_attention
OTHERS["±256"]["Hugging Face Longformer"] = hugging_face_longformer
OTHERS["Big Bird"]["Hugging Face Big Bird"] = hugging_face_big_bird


def best(function: Callable[[], Any]) -> float:
    """The best of up to 20 runs in a second, after one that warms up."""
    function()
    return seconds(function, repeats=20, budget=1)


def peak(function: Callable[[], Any]) -> float:
    """Megabytes that torch holds at the peak, above the start."""
    return peak_memory(function) / 2**20


def forward(attend: Callable[..., Any], qkv: list[torch.Tensor]) -> Callable[[], Any]:
    return torch.no_grad()(lambda: attend(*qkv))


def training(attend: Callable[..., Any], qkv: list[torch.Tensor]) -> Callable[[], None]:
    def run() -> None:
        answer = attend(*(x.detach().requires_grad_() for x in qkv))
        (answer[0] if isinstance(answer, tuple) else answer).sum().backward()

    return run


KINDS: dict[str, Callable[..., Callable[[], Any]]] = {"forward": forward, "training": training}


def measure(make: Callable[[int], Attention], lengths: list[int]) -> dict[str, list[float] | str]:
    """forward and training seconds, and peak megabytes of both, for each length."""
    measured: dict[str, Any] = {"forward": [], "training": [], "MB": [], "training MB": []}
    for L in lengths:
        torch.manual_seed(0)
        qkv = drawn(L)
        attend = make(L)
        with torch.no_grad():
            measured["forward"].append(best(lambda: attend(*qkv)))  # noqa: B023
            measured["MB"].append(peak(lambda: attend(*qkv)))  # noqa: B023
        try:
            measured["training"].append(best(training(attend, qkv)))
            measured["training MB"].append(peak(training(attend, qkv)))
        except Exception as error:  # FlexAttention on a CPU
            measured["no training"] = str(error).strip().split(". ")[0]
            measured["training"].append(math.nan)
            measured["training MB"].append(math.nan)
    return measured


def row(name: str, x: dict[str, Any], dense: dict[str, Any], lengths: list[int]) -> str:
    ms = "".join(f"{1000 * t:9.1f}" for t in x["forward"])
    slope = math.log(x["forward"][-1] / x["forward"][-2]) / math.log(lengths[-1] / lengths[-2])
    fraction, trained = (x[k][-1] / dense[k][-1] for k in ("forward", "training"))
    memory = f"{x['MB'][-1]:9.0f}{x['training MB'][-1]:9.0f}"
    return f"{name:26}{ms}{slope:7.2f}{fraction:9.3f}{trained:9.3f}{memory}"


def drawn(L: int) -> list[torch.Tensor]:
    return [torch.randn(1, HEADS, L, WIDTH) for _ in range(3)]


def compared(
    ways: Mapping[str, Callable[..., Any]],
    qkv: list[torch.Tensor],
    verdicts: Mapping[tuple[str, str], tuple[float | None, ...]],
    kinds: Mapping[str, Callable[..., Callable[[], Any]]] = KINDS,
    rounds: int = ROUNDS,
    work: Callable[[str], float | None] = lambda name: None,
) -> None:
    """All ways in turns; {(one, another): limits} says what is divided by what, and may be how
    large for each kind. The median of the rounds counts."""
    for n, (kind, way) in enumerate(kinds.items()):
        times = in_turns({name: way(attend, qkv) for name, attend in ways.items()}, rounds)
        for (one, another), most in verdicts.items():
            _say(f"{one} ÷ {another}, {kind}", ratio(times, one, another), most[n], work(one))


def ratio(times: Mapping[str, list[float]], one: str, another: str) -> float:
    return median(a / b for a, b in zip(times[one], times[another], strict=True))


def limits(L: int, limited: bool) -> None:
    """Every pattern ÷ dense, forward and training, in turns; and the first call ÷ the second."""
    torch.manual_seed(0)
    qkv, rows = drawn(L), {**CONTENT, **ROOMS}
    ways: dict[str, Attention] = {name: ours(name, L) for name in PATTERNS}
    ways |= {name: make(L) for name, (make, *_) in rows.items()}
    print(f"\nL = {L}, ÷ dense SDPA, medians of {ROUNDS} rounds in turns")
    print("last: how many times as long as its FLOPs would take at the speed of dense attention")
    for name, attend in ways.items():
        one, two = (seconds(forward(attend, qkv), repeats=1) for _ in range(2))
        _say(f"{name}, first call ÷ second", one / two, 2.0 if limited else None)
    most = {
        (name, "dense"): (one, two) if limited else (None, None)
        for name, (_, one, two) in {**PATTERNS, **rows}.items()
    }
    ways["dense"] = F.scaled_dot_product_attention
    compared(ways, qkv, most, work=lambda name: share_of_flops(name, L))


def beside_flex(lengths: list[int]) -> None:
    """Big Bird in turns with FlexAttention, compiled."""
    for L in lengths:
        ways = {"Big Bird": ours("Big Bird", L), "FlexAttention": flex("Big Bird", L)}
        print(f"\nL = {L}")
        most = {("Big Bird", "FlexAttention"): (BESIDE_FLEX.get(L, math.inf),)}
        compared(ways, drawn(L), most, {"forward": forward}, 4 * ROUNDS)


def beside_causal() -> None:
    """What changes the scores of every pair, in turns with dense causal attention."""
    dense = partial(F.scaled_dot_product_attention, is_causal=True)
    for name, (attend, lengths, *most) in CAUSAL_TEXT.items():
        for L in lengths:
            base = f"dense causal, L = {L}"
            compared({name: attend, base: dense}, drawn(L), {(name, base): (*most,)})


def one_step(L: int) -> None:
    """One new token and L kept ones, 32 heads of 128 numbers: time ÷ that of multi-head attention,
    by the core that reads each key once for its group, and by torch's kernel (`enable_gqa`)."""
    q, last = torch.randn(1, 32, 1, 128), Where(CAUSAL, L - 1)
    ways: dict[str, Callable[[], Any]] = {}
    for h_kv in (32, 8, 1):
        k, v = torch.randn(2, 1, h_kv, L, 128)
        for name, made in (("Grouped", Grouped()), ("torch", Dense())):
            ways[f"{name}, {h_kv} heads of keys"] = partial(made.attend, q, k, v, last)
    print(f"\none step after {L} tokens, ÷ multi-head attention")
    base = "torch, 32 heads of keys"
    compared(ways, [], {(name, base): (None,) for name in ways}, {"a step": forward})


def heads_that_talk(L: int) -> None:
    """Talking heads ÷ the same L² scores by hand without mixtures, and ÷ what x-transformers does
    with them; x-transformers adds the mixture to the scores, which is one addition more."""
    from x_transformers.attend import Attend

    ways: dict[str, Callable[..., Any]] = {
        "scores by hand": partial(dense_attention, pattern=CAUSAL),
        "fused kernel": partial(F.scaled_dot_product_attention, is_causal=True),
        "x-transformers": Attend(
            causal=True, heads=HEADS, pre_talking_heads=True, post_talking_heads=True
        ),
    }
    print(f"\ntalking heads, {HEADS} of {WIDTH}, L = {L}")
    most = {("talking", name): (None, None) for name in ways}
    compared({"talking": partial(Talking(HEADS), where=Where(CAUSAL)), **ways}, drawn(L), most)


def lazy_steps(L: int) -> None:
    """A training step of four causal layers with a map for each m of them, ÷ m = 1; and that of the
    plain layers, whose fused kernel makes no map."""
    options: dict[str, dict[str, Any]] = {"plain": {}}
    options |= {f"m = {m}": {"layer": lazy_blocks(m)} for m in (1, 2, 4)}
    ways = {
        name: Stack(4, HEADS * WIDTH, HEADS, pattern=CAUSAL, **more)
        for name, more in options.items()
    }
    print(f"\nlazy blocks of m layers, a step of four layers of {L} tokens, ÷ m = 1")
    most = {(name, "m = 1"): (None,) for name in ways}
    compared(ways, [torch.randn(1, L, HEADS * WIDTH)], most, {"training": training})


def beside_packages(L: int) -> None:
    """What chooses its keys by content, in turns with the package that others use for it."""
    from reformer_pytorch import LSHAttention
    from routing_transformer.routing_transformer import KmeansAttention

    LSH = LSHAttention(bucket_size=64, n_hashes=4, causal=True).eval()
    KMEANS = KmeansAttention(128, 128, HEADS, WIDTH, causal=True).eval()
    ways: dict[str, Attention] = {
        "LSH, 4 rounds": CAUSAL_TEXT["LSH, 4 rounds"][0],
        "reformer-pytorch": lambda q, k, v: LSH(q.flatten(0, 1), v.flatten(0, 1))[0],
        "routing": routed(L),
        "routing-transformer": lambda q, k, v: KMEANS(q, k, v)[0],
    }
    pairs = [("LSH, 4 rounds", "reformer-pytorch"), ("routing", "routing-transformer")]
    compared(ways, drawn(L), {pair: (1 / 1.5, 1.0) for pair in pairs})


def of_smaller_matrices(L: int) -> None:
    """Each row in turns with packages that do the same, and with dense attention of 4,096 tokens,
    which says how long its FLOPs would take; and the megabytes of one call."""
    print(f"\nsmaller matrices, L = {L}: time ÷ FLOPs at dense speed, ÷ each package, and MB")
    for name, (make, packages) in SMALLER.items():
        qkv, few = drawn(L), drawn(4096)
        attends = {"ours": make(L)} | {other: theirs(L) for other, theirs in packages.items()}
        if name in BARE:
            attends["bare operations"] = BARE[name]
        for kind, way in KINDS.items():
            ways = {other: way(attend, qkv) for other, attend in attends.items()}
            ways["dense"] = way(F.scaled_dot_product_attention, few)
            times = in_turns(ways, ROUNDS)
            counted = partial(attends["ours"], *qkv) if kind == "forward" else ways["ours"]
            work = flops(counted) / flops(ways["dense"])
            limited = (packages or name.startswith("clustered")) and name not in BARE
            share = ratio(times, "ours", "dense") / work
            _say(f"{name}, {kind}", share, OF_FLOPS if limited else None)
            if name in BARE:
                bare = ratio(times, "bare operations", "dense") / work
                _say("    its bare operations", bare, None)
                _say("    ÷ its bare operations", ratio(times, "ours", "bare operations"), OF_BARE)
            for other in packages:
                _say(f"    ÷ {other}", ratio(times, "ours", other), 1 / 1.5)
            print("    MB: " + ", ".join(f"{o} {peak(ways[o]):.0f}" for o in attends), flush=True)


def causal_beside_full(L: int) -> None:
    """Linear attention of a causal text, in turns with that of a whole one."""
    ways = {name: SMALLER[name][0](L) for name in ("linear", "linear, causal")}
    compared(ways, drawn(L), {("linear, causal", "linear"): (2.0, 2.0)}, rounds=2 * ROUNDS)


def share_of_flops(name: str, L: int) -> float | None:
    """FLOPs of a pattern ÷ those of dense attention; None for what is no pattern of positions."""
    if name not in PATTERNS:
        return None
    cost = PATTERNS[name][0](L).cost(L, HEADS * WIDTH, HEADS)
    return cost.pairs / cost.full_pairs


def _say(what: str, ratio: float, limit: float | None, flops: float | None = None) -> None:
    verdict = "" if limit is None else f"{limit:9.4f}  {'met' if ratio <= limit else 'MISSED'}"
    work = "" if flops is None else f"{ratio / flops:9.2f}"
    print(f"{what:40}{ratio:8.4f}{verdict}{work}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="÷ dense at 4k, without limits")
    parser.add_argument("--limits", action="store_true", help="÷ dense at 16k and FlexAttention")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{HEADS} heads of {WIDTH}, 1 thread, torch {torch.__version__}")
    beside_causal()
    one_step(4096)
    lazy_steps(1024)
    heads_that_talk(1024)
    beside_packages(4096 if options.quick else 16384)
    of_smaller_matrices(4096 if options.quick else 16384)
    causal_beside_full(4096 if options.quick else 16384)
    limits(4096 if options.quick else 16384, not options.quick)
    if options.quick:
        return
    beside_flex([1024, 4096, 16384])
    if options.limits:
        return

    lengths = [1024, 4096, 16384]
    header = "".join(f"{f'ms {L // 1024}k':>9}" for L in lengths)
    print(f"\n{'':26}{header}  slope  ÷ dense fw+bw ÷       MB fw+bw MB  (at the largest L)")
    dense = measure(lambda L: F.scaled_dot_product_attention, lengths)
    print(row("dense SDPA", dense, dense, lengths), flush=True)
    print(row("SDPA with a mask", measure(with_mask, lengths), dense, lengths), flush=True)
    for name in PATTERNS:
        print(f"\n{name}")
        mine = measure(lambda L: ours(name, L), lengths)  # noqa: B023
        print(row("tfviz", mine, dense, lengths), flush=True)
        for other, make in OTHERS[name].items():
            theirs = measure(lambda L: make(name, L), lengths)  # noqa: B023
            print(row(other, theirs, dense, lengths), flush=True)
            if "no training" in theirs:
                print(f"{'':26}no backward: {theirs['no training'][:80]}")


if __name__ == "__main__":
    main()
