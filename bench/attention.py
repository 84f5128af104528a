"""Time and memory of sparse attention beside dense attention and what others offer, on one thread.

    python bench/attention.py            L = 1k, 4k, 16k against everything (some minutes)
    python bench/attention.py --quick    L = 1k, 4k, ours and dense only

Batch 1, 4 heads of width 64, float32, everything in one process. Times are processor time, best of
several, for the machine may be shared; read the ratios to dense attention. Memory is the peak of
what torch allocates beyond the inputs. Slope: exponent of the time between the two largest lengths.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler is chatty; before torch is loaded

import torch
import torch.nn.functional as F

from tfviz import patterns as P
from tfviz.attention import sparse_attention
from tfviz.measure import peak_memory, seconds

HEADS, WIDTH = 4, 64
Attention = Callable[..., torch.Tensor]

# name -> (pattern, at most this × dense: forward, forward + backward)
PATTERNS: dict[str, tuple[P.Pattern, float, float | None]] = {
    "sliding 256": (P.sliding_window(lookback=256), 0.04, 0.08),
    "±256": (P.band(radius=256), 0.06, None),
    "dilated ×4": (P.dilated(radius=256, gap=4) & P.causal(), 0.05, None),
    "strided 128": (P.strided(stride=128), 0.18, None),
    "Big Bird": (P.bigbird(block=64, window=1, count=1, random=3, seed=0), 0.30, None),
}


def ours(name: str, L: int) -> Attention:
    return lambda q, k, v: sparse_attention(q, k, v, PATTERNS[name][0])


def with_mask(L: int) -> Attention:
    mask = P.strided(stride=128).mask(L)  # which one makes no difference to it
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask)


def flex(name: str, L: int) -> Attention:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._dynamo.reset()
    size = 64 if name == "Big Bird" else 128
    mod = PATTERNS[name][0].at(L).mask_mod
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


def training(attend: Attention, qkv: list[torch.Tensor]) -> Callable[[], None]:
    def run() -> None:
        xs = [x.detach().requires_grad_() for x in qkv]
        attend(*xs).sum().backward()

    return run


def measure(make: Callable[[int], Attention], lengths: list[int]) -> dict[str, list[float] | str]:
    """forward and training seconds, and peak megabytes of both, for each length."""
    found: dict[str, Any] = {"forward": [], "training": [], "MB": [], "training MB": []}
    for L in lengths:
        torch.manual_seed(0)
        qkv = [torch.randn(1, HEADS, L, WIDTH) for _ in range(3)]
        attend = make(L)
        with torch.no_grad():
            found["forward"].append(best(lambda: attend(*qkv)))  # noqa: B023
            found["MB"].append(peak(lambda: attend(*qkv)))  # noqa: B023
        try:
            found["training"].append(best(training(attend, qkv)))
            found["training MB"].append(peak(training(attend, qkv)))
        except Exception as error:  # FlexAttention on a CPU
            found["no training"] = str(error).strip().split(". ")[0]
            found["training"].append(math.nan)
            found["training MB"].append(math.nan)
    return found


def row(name: str, x: dict[str, Any], dense: dict[str, Any], lengths: list[int]) -> str:
    ms = "".join(f"{1000 * t:9.1f}" for t in x["forward"])
    slope = math.log(x["forward"][-1] / x["forward"][-2]) / math.log(lengths[-1] / lengths[-2])
    fraction, trained = (x[k][-1] / dense[k][-1] for k in ("forward", "training"))
    memory = f"{x['MB'][-1]:9.0f}{x['training MB'][-1]:9.0f}"
    return f"{name:26}{ms}{slope:7.2f}{fraction:9.3f}{trained:9.3f}{memory}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 4k, ours and dense only")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    lengths = [1024, 4096] if quick else [1024, 4096, 16384]
    print(f"L = {lengths}, {HEADS} heads of {WIDTH}, 1 thread, torch {torch.__version__}")
    header = "".join(f"{f'ms {L // 1024}k':>9}" for L in lengths)
    print(f"{'':26}{header}  slope  ÷ dense fw+bw ÷       MB fw+bw MB  (at the largest L)")

    dense = measure(lambda L: F.scaled_dot_product_attention, lengths)
    print(row("dense SDPA", dense, dense, lengths), flush=True)
    if not quick:
        masked = measure(with_mask, lengths)
        print(row("SDPA with a mask", masked, dense, lengths), flush=True)

    verdicts = []
    for name, (pattern, limit, training_limit) in PATTERNS.items():
        print(f"\n{name}: {pattern!r}")
        mine = measure(lambda L: ours(name, L), lengths)  # noqa: B023
        print(row("tfviz", mine, dense, lengths), flush=True)
        for kind, most in (("forward", limit), ("training", training_limit)):
            if most is not None:
                ratio = mine[kind][-1] / dense[kind][-1]
                verdicts.append((f"{name}, {kind} ÷ dense", ratio, most))
        for other, make in {} if quick else OTHERS[name].items():
            theirs = measure(lambda L: make(name, L), lengths)  # noqa: B023
            print(row(other, theirs, dense, lengths), flush=True)
            if "no training" in theirs:
                print(f"{'':26}no backward: {theirs['no training'][:80]}")
            if make is flex:
                ratio = mine["forward"][-1] / theirs["forward"][-1]
                verdicts.append((f"{name}, forward ÷ FlexAttention", ratio, 1.0))

    if not quick:
        print(f"\n{'target at L = 16k':40}{'ratio':>8}{'at most':>9}")
        for what, ratio, most in verdicts:
            print(f"{what:40}{ratio:8.3f}{most:9.2f}  {'met' if ratio <= most else 'MISSED'}")


if __name__ == "__main__":
    main()
