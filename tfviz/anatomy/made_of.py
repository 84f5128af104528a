"""Which mechanisms a model has, read off its fields: ids of the course, and what goes beyond it.

>>> uses({"layers": "F", "feeds": "d", "positions": "R", "vocabulary": 9, "width": 4,
...       "attention": {"heads": 2, "key_heads": 1, "head_width": 2}})[-2:]
('kv_cache', 'decoding_strategies')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfviz.anatomy.layers import STATES

__all__ = ["beyond", "uses"]

Fields = Mapping[str, Any]


def _sides(f: Fields) -> str:
    return "".join(f["positions"]) + "".join(f.get("encoder", {}).get("positions", ""))


def uses(f: Fields) -> tuple[str, ...]:
    """Ids of the mechanisms that a model of these fields has, in the order of the forward pass."""
    layers, feeds, positions = set(f["layers"]), set(f["feeds"]), _sides(f)
    a, latent, rope = f.get("attention", {}), f.get("latent"), f.get("rope", {})
    attends = bool(layers - set(STATES) - {"-"})
    causal = bool(layers - set("Bb-"))
    more = [*f.get("attention_in", {}).values()]
    heads = [{**a, **x} for x in ([{}, *more] if a and attends and not latent else [])]
    shares = [x["heads"] / x["key_heads"] for x in heads]
    one = [x["key_heads"] == 1 for x in heads]
    tokens = f["vocabulary"] > 0
    grouped = any(n > 1 and not single for n, single in zip(shares, one, strict=True))
    wide = [x["heads"] * x["head_width"] != f["width"] for x in heads]
    mixed = bool(layers & set("WCb")) and bool(layers & set("FB"))
    everywhere = layers == {"W"}
    scaled = any(x.get("scaling") not in (None, "proportional") for x in rope.values())
    kinds = {
        "gated_linear_attention": layers & set("SMLr"),
        "delta_rule": layers & set("GKv"),
    }
    rules = {
        "token_embedding": tokens,
        "vit_patches": f.get("input") == "patches",
        "tokenise_anything": f.get("input") == "sound",
        "encoder_decoder": "encoder" in f,
        "sinusoidal_pe": "S" in positions,
        "learned_pe": "L" in positions,
        "shaw_relative": "T" in positions,
        "alibi": "A" in positions,
        "rope": "R" in positions,
        "rope_scaling": "R" in positions and scaled,
        "partial_rope": bool(latent) or any("partial" in x for x in rope.values()),
        "multimodal_rope": any("axes" in x for x in rope.values()),
        "nope_layers": "N" in positions,
        "scaled_dot_product_attention": attends,
        "multi_head_attention": attends,
        "multi_query_attention": any(one) and not grouped,
        "grouped_query_attention": grouped,
        "latent_attention": bool(latent),
        "decoupled_head_size": any(wide),
        "shared_layer_cache": f.get("borrowers"),
        "local_global_layers": mixed,
        "atomic_patterns": everywhere or "C" in layers,
        "longformer": everywhere,
        "sparse_transformer_strided": f.get("every_other_layer") == "strided",
        "sparse_transformer_usage": f.get("every_other_layer") == "strided",
        "lightning_indexer": (latent or f.get("compressed", {})).get("index_heads"),
        "memory_compressed_attention": "compressed" in f,
        "attention_sink": any(x.get("sink") for x in (a, *more)) or "compressed" in f,
        "gated_attention": "gate" in a,
        "bounded_scores": "qk_norm" in a or f.get("score_cap") or f.get("logit_cap"),
        **kinds,
        "hybrid_layers": attends and layers & set(STATES),
        "pointwise_mlp": bool(feeds & set("dea")),
        "mixture_of_experts": "e" in feeds,
        "expert_balance": "e" in feeds,
        "residual_connection": True,
        "layer_norm_pre_post": True,
        "hyper_connections": "compressed" in f,
        "causal_masking": causal,
        "lm_objectives": tokens,
        "speculative_decoding": f.get("drafts"),
        "kv_cache": causal and attends,
        "decoding_strategies": causal,
    }
    return tuple(name for name, yes in rules.items() if yes)


def beyond(f: Fields) -> tuple[str, ...]:
    """What a model of these fields has that no lesson of the course explains, in words."""
    layers, place = set(f["layers"]), f.get("place", "pre")
    feeds = set(f["feeds"])
    states = [x for x in f.get("states", {}).values() if x.get("convolution")]
    rules = {
        "T5's bias by buckets": "T" in f["positions"],
        "RWKV-4: an average of each channel that fades, with a bonus for the newest": "r" in layers,
        "Mamba-1: a decay for each channel and state": "M" in layers,
        "a short causal convolution before the state": states,
        "compressed sparse attention, with keys that are values": "compressed" in f,
        "a feed-forward network with a gate (SwiGLU, GeGLU)": (
            f.get("gated", True) and feeds & set("de")
        ),
        "attention and feed-forward network side by side": "parallel" in place,
        "a norm after the sublayer, inside the skip": "sandwich" in place or "inside" in place,
        "a table of embeddings for each layer": "per-layer embeddings" in f.get("extra", {}),
        "adaLN-Zero: norms steered by time and class": "a" in feeds,
        "experts that work in a narrower width": f.get("experts", {}).get("latent"),
    }
    return tuple(words for words, yes in rules.items() if yes)
