"""A tiny model of this library with the anatomy of a large one.

Every kind of layer is there, in the order of the first layers that show them all. Sizes are ours:
heads of 16 numbers that fill the width, at most four of them in groups as large as can be, windows
of eight keys, four experts. Linear maps of the library have biases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from tfviz import patterns
from tfviz.anatomy import counting
from tfviz.anatomy.layers import MIXERS
from tfviz.basics.mixture_of_experts import routed
from tfviz.current import OutputGate, gated_delta_net, mla
from tfviz.longer_context import Alibi
from tfviz.models.blocks import post_norm, pre_norm
from tfviz.models.gpt import GPT
from tfviz.position import Learned, Rope, Sinusoidal
from tfviz.position.rope import speeds
from tfviz.position.t5_relative_bias import T5Bias

__all__ = ["GatedFeed", "RoutedFeed", "built"]

D_HEAD, WINDOW, CONTEXT = 16, 8, 256
Fields = Mapping[str, Any]


class GatedFeed(nn.Module):
    """(φ(X W_1) ∘ X W_3) W_2: a feed-forward network of three matrices."""

    def __init__(self, d: int, d_ff: int, phi: type[nn.Module] = nn.SiLU) -> None:
        super().__init__()
        self.W_1, self.W_3 = nn.Linear(d, d_ff, bias=False), nn.Linear(d, d_ff, bias=False)
        self.W_2, self.phi = nn.Linear(d_ff, d, bias=False), phi()

    def forward(self, X: Float[Tensor, "b L d"]) -> Float[Tensor, "b L d"]:
        out: Tensor = self.W_2(self.phi(self.W_1(X)) * self.W_3(X))
        return out


class RoutedFeed(nn.Module):
    """Each token goes through k of E feed-forward networks, and through one that all go through if
    `shared`; see `tfviz.basics.mixture_of_experts`."""

    def __init__(self, d: int, d_ff: int, E: int, k: int, shared: bool) -> None:
        super().__init__()
        self.router, self.k = nn.Linear(d, E, bias=False), k
        self.experts = nn.ModuleList(GatedFeed(d, d_ff) for _ in range(E))
        self.shared = GatedFeed(d, d_ff) if shared else None

    def forward(self, X: Float[Tensor, "b L d"]) -> Float[Tensor, "b L d"]:
        p = routed(self.router(X).softmax(-1), self.k)
        Y = sum(p[..., e, None] * expert(X) for e, expert in enumerate(self.experts))
        return Y if self.shared is None else Y + self.shared(X)


def inner_norm(X: Tensor, sublayer: Any, norm: Any) -> Tensor:
    """X + LN(F(X)): the norm after the sublayer, inside the skip."""
    out: Tensor = X + norm(sublayer(X))
    return out


ORDERS = {"pre": pre_norm, "post": post_norm, "post, inside the skip": inner_norm}
MASKS = {
    "F": patterns.causal(),
    "W": patterns.sliding_window(lookback=WINDOW - 1),
    "C": patterns.causal() & patterns.block_local(block=WINDOW),
    "B": patterns.full(),
    "b": patterns.band(radius=WINDOW // 2),
    "G": patterns.causal(),
}


def without_room(f: Fields) -> str:
    """The part of a model that no room of this library has, "" if all are there."""
    missing = [MIXERS.get(x, x) for x in sorted(set(f["layers"]) - set(MASKS))]
    if missing:
        return missing[0]
    a = [f.get("attention", {}), *f.get("attention_in", {}).values()]
    rules = {
        "an encoder beside it (see tfviz.EncoderDecoder)": "encoder" in f,
        "a feed-forward network that is steered": not set(f["feeds"]) <= {"d", "e"},
        f"norms that stand {f.get('place')}": f.get("place", "pre") not in ORDERS,
        "keys and values of another layer": f.get("borrowers"),
        "an indexer": f.get("latent", {}).get("index_heads"),
        "a learned sink": any(x.get("sink") for x in a),
        "norms of queries and keys": any("qk_norm" in x for x in a),
        "scores with a cap": f.get("score_cap"),
        "tables for each layer": "per-layer embeddings" in f.get("extra", {}),
        "experts in a narrower width": f.get("experts", {}).get("latent"),
        "a dense network beside experts": f.get("experts", {}).get("beside_dense"),
        "patches or sounds as input": f.get("input"),
    }
    return next((words for words, yes in rules.items() if yes), "")


def built(f: Fields, name: str, vocab: int, seed: int) -> GPT:
    """The model. Raises ValueError where a part has no room, and names it."""
    if part := without_room(f):
        raise ValueError(f"{name} has a part that no room of the library has: {part}")
    n = _shown(f)
    a = counting.heads_of(f, "F") or {"heads": 4, "key_heads": 4}
    group = max(1, a["heads"] // a["key_heads"])
    h = 4
    h_kv = next(x for x in (1, 2, 4) if h // x <= group)
    d = h * D_HEAD
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GPT(
            vocab,
            d,
            h,
            n,
            order=ORDERS[f.get("place", "pre")],
            positions=_table(f, d),
            norm=_norm(f),
            layer=lambda i: _layer(f, i, d, h, h_kv),
        )


def _shown(f: Fields) -> int:
    """How many first layers show every kind of layer that there is, two at least."""
    rows = [*zip(f["layers"], f["feeds"], f["positions"], strict=True)]
    return min(len(rows), max(2, *(rows.index(kind) + 1 for kind in {*rows})))


def _table(f: Fields, d: int) -> Any:
    positions = set(f["positions"])
    if "L" in positions:
        return Learned(CONTEXT, d)
    return Sinusoidal(d) if "S" in positions else None


def _norm(f: Fields) -> Any:
    made = {
        "rms": nn.RMSNorm,
        "layer": nn.LayerNorm,
        "layer without bias": partial(nn.LayerNorm, bias=False),
        "none": partial(nn.LayerNorm, elementwise_affine=False),
    }
    return made[f.get("norm", "rms")]


def _core(f: Fields, letter: str, place: str, h: int) -> dict[str, Any]:
    kind = {"W": "window", "C": "chunk", "b": "window"}.get(letter, "full")
    rope = f.get("rope", {})
    told: Mapping[str, Any] = rope.get(kind) or rope.get("all") or next(iter(rope.values()), {})
    if place == "R":
        return {"core": lambda d_head: _turned(d_head, told)}
    if place == "A":
        return {"core": lambda: Alibi(h)}
    return {"core": lambda: T5Bias(h)} if place == "T" else {}


def _turned(d_head: int, told: Mapping[str, Any]) -> Rope:
    """RoPE of some base that turns the first pairs alone, if only a part of a head is turned."""
    base, turned = float(told.get("base") or 10_000.0), round(d_head * told.get("partial", 1.0) / 2)
    if turned == d_head // 2:
        return Rope(d_head, base)
    some = speeds(2 * max(turned, 1), base)
    return Rope(d_head, speeds=F.pad(some, (0, d_head // 2 - len(some))))


def _layer(f: Fields, n: int, d: int, h: int, h_kv: int) -> dict[str, Any]:
    letter, place = f["layers"][n], f["positions"][n]
    options: dict[str, Any] = {"pattern": MASKS[letter], **_feed(f, n, d)}
    if letter == "G":
        return options | gated_delta_net()
    if counting.latent_of(f, letter):
        query = 2 * D_HEAD if f["latent"].get("query_note") else None
        d_r = 0 if place == "N" else D_HEAD // 2
        return options | mla(d_c=D_HEAD, d_r=d_r, d_q=query)
    if f.get("attention", {}).get("gate"):
        options["join"] = OutputGate
    return options | _core(f, letter, place, h) | {"h_kv": h_kv}


def _feed(f: Fields, n: int, d: int) -> dict[str, Any]:
    if f["feeds"][n] == "e":
        e = f["experts"]
        E = min(e["count"], 4)
        k, shared = min(e["chosen"], max(1, E // 2)), bool(e.get("shared"))
        return {"feed": lambda d: RoutedFeed(d, d, E, k, shared)}
    if f.get("gated", True):
        return {"feed": lambda d: GatedFeed(d, 2 * d)}
    return {"d_ff": 4 * d}
