"""What one family alone has: `SPECIAL` says what is done to its fields after the common rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfviz.anatomy.keys import Keys, number_of_layers
from tfviz.anatomy.ordinary import positions_of

__all__ = ["SPECIAL"]


def _bert(f: dict[str, Any], k: Keys) -> None:
    f["position_rows"], f["segment_rows"] = f["context"], k("type_vocab_size")
    f["extra"] = {"pooler": f["width"] ** 2 + f["width"]}
    if k("is_decoder"):
        f["layers"] = f["layers"].replace("B", "F")
        f |= {"cross": True} if k("add_cross_attention") else {}


def _table(f: dict[str, Any], k: Keys) -> None:
    f["position_rows"] = f["context"]
    if k("add_cross_attention"):
        f["cross"] = True


def _opt(f: dict[str, Any], k: Keys) -> None:
    f["position_rows"] = f["context"] + 2
    f["place"] = "pre" if k("do_layer_norm_before") else "post"
    f["norms_at_end"] = int(bool(k("do_layer_norm_before")) and not k("_remove_final_layer_norm"))
    narrow, d = k("word_embed_proj_dim", default=f["width"]), f["width"]
    if narrow != d:
        f |= {"table_width": narrow, "extra_maps": {"into the width and out": 2 * d * narrow}}
    if not k("layer_norm_elementwise_affine"):
        f["norm"] = "none"


def _vit(f: dict[str, Any], k: Keys) -> None:
    d, patch = f["width"], k("patch_size")
    side = k("image_size") // patch
    f |= {"position_rows": side * side + 1, "context": side * side + 1, "tied": True}
    labels = k("num_labels", default=1000)
    f["extra"] = {
        "patches": k("num_channels") * patch * patch * d + d,
        "class token": d,
        f"head of {labels} classes": labels * d + labels,
    }
    f["vocabulary"] = 0


def _bloom(f: dict[str, Any], k: Keys) -> None:
    f |= {"feed_width": 4 * f["width"], "extra": {"norm of the embedding": 2 * f["width"]}}


def _falcon(f: dict[str, Any], k: Keys) -> None:
    h, new = f["attention"]["heads"], k("new_decoder_architecture")
    many = k("num_kv_heads", default=h) if new else (1 if k("multi_query") else h)
    f["attention"]["key_heads"] = many
    parallel = new or k("parallel_attn")
    lists = k("num_ln_in_parallel_attn", default=2 if new else 1)
    f["norms"] = 2 if not k("parallel_attn") or lists == 2 else 1
    f["place"] = "pre, parallel" if parallel else "pre"


def _mpt(f: dict[str, Any], k: Keys) -> None:
    f["feed_width"] = 4 * f["width"]  # whatever expansion_ratio says


def _parallel(f: dict[str, Any], k: Keys) -> None:
    together = k("use_parallel_residual")
    f["place"] = "pre, parallel" if together else "pre"
    if together and k.knows("qk_layernorm"):  # StableLM has one norm for both sublayers
        f["norms"] = 1


def _llama4(f: dict[str, Any], k: Keys) -> None:
    f["experts"]["shared"] = f["experts"]["width"] = k("intermediate_size")
    if k("use_qk_norm"):
        f["attention"]["qk_norm"] = "without weights"


def _gemma4(f: dict[str, Any], k: Keys) -> None:
    a, letters, d = f["attention"], f["layers"], f["width"]
    f["layers"] = letters = letters[:-1] + ("F" if letters[-1] == "W" else letters[-1])
    far: dict[str, Any] = {"head_width": k("global_head_dim", default=512)}
    if k("attention_k_eq_v"):
        far |= {"values_are_keys": True}
        far["key_heads"] = k("num_global_key_value_heads", default=a["key_heads"])
    over = k("per_layer_config") or {}
    names = {"head_dim": "head_width", "num_key_value_heads": "key_heads"}
    sets = [
        {names[x]: y for x, y in said.items() if x in names}
        for i, said in over.items()
        if letters[int(i)] in "FB"
    ]
    strange = any(x not in names for said in over.values() for x in said)
    near = any(letters[int(i)] in "Wb" for i in over)
    if strange or near or any(x != sets[0] for x in sets) or 0 < len(sets) < letters.count("F"):
        raise ValueError("per_layer_config changes layers one by one; that is not counted here")
    if "per_layer_config" in k.written:
        far |= {"head_width": a["head_width"], **(sets[0] if sets else {})}
        if not sets or "key_heads" not in sets[0]:
            far.pop("key_heads", None)
    f["attention_in"] = {"B" if "B" in letters else "F": far}
    borrowers = k("num_kv_shared_layers") or 0
    if borrowers:
        f["borrowers"] = borrowers
        if k("use_double_wide_mlp"):
            blocks = len(letters)
            own = blocks - borrowers
            f["feed_widths"] = [f["feed_width"]] * own + [2 * f["feed_width"]] * borrowers
    if inner := k("hidden_size_per_layer_input"):
        blocks, rows = len(letters), k("vocab_size_per_layer_input", default=f["vocabulary"])
        f["extra"] = {"per-layer embeddings": rows * blocks * inner}
        f["extra_maps"] = {
            "per-layer projections": d * blocks * inner + inner + blocks * (2 * d * inner + d)
        }
    if "experts" in f:
        f["experts"] |= {"beside_dense": True, "extra": d + f["experts"]["count"]}
        f["norms"] = 7


def _phimoe(f: dict[str, Any], k: Keys) -> None:
    f["head_bias"] = bool(k("lm_head_bias"))


def _kimi(f: dict[str, Any], k: Keys) -> None:
    said, blocks = k("linear_attn_config") or {}, len(f["layers"])
    if "layer_types" not in k.written or k.written["layer_types"] is None:
        if "kda_layers" in said:  # numbered from 1
            f["layers"] = "".join("FK"[i + 1 in said["kda_layers"]] for i in range(blocks))
        else:
            f["layers"] = "".join("FK"[not i or i % 4 != 0] for i in range(blocks))
    f["positions"] = "".join("N" if x == "F" else "-" for x in f["layers"])


def _minimax(f: dict[str, Any], k: Keys) -> None:
    if listed := k("attn_type_list"):
        f["layers"] = "".join("LF"[x] for x in listed)
        f["positions"] = "".join("R" if x == "F" else "-" for x in f["layers"])
    if f.get("window") and "F" in f["layers"]:
        f["layers"] = f["layers"].replace("F", "W")


def _mimo(f: dict[str, Any], k: Keys) -> None:
    a = f["attention"]
    a["value_width"] = k("v_head_dim", default=a["head_width"])
    f["attention_in"] = {
        "W": {
            "key_heads": k("swa_num_key_value_heads", default=2 * a["key_heads"]),
            "sink": True,
        }
    }
    if size := k("sliding_window_size"):
        f["window"] = size + 1
    if "layer_types" not in k.written or k.written["layer_types"] is None:
        blocks = len(f["layers"])
        f["layers"] = "".join("FW"[i != 0 and (i + 1) % 6 != 0] for i in range(blocks))


def _modernbert(f: dict[str, Any], k: Keys) -> None:
    f["layers"] = f["layers"].translate({ord("F"): "B", ord("W"): "b"})
    f["radius"] = f.pop("window") // 2
    f["norms"] = [1] + [2] * (len(f["layers"]) - 1)
    if k("norm_bias"):
        f["norm"] = "layer"


def _rwkv(f: dict[str, Any], k: Keys) -> None:
    f["states"] = {"r": {"kind": "RWKV-4", "channels": k("attention_hidden_size") or f["width"]}}
    f["feeds"] = "r" * len(f["layers"])


def _mamba2(f: dict[str, Any], k: Keys) -> None:
    f["feeds"] = "-" * len(f["layers"])
    for name in ("attention", "feed_width"):
        f.pop(name, None)


NEMOTRON = ("linear_attention", "moe", "full_attention", "mlp")


def _nemotron(f: dict[str, Any], k: Keys) -> None:
    named = {"M": "M", "*": "*", "E": "E", "-": "-"}
    words = {"linear_attention": "M", "mamba": "M", "moe": "E", "mlp": "-"}
    words |= {"full_attention": "*", "attention": "*"}
    kinds = k("hybrid_override_pattern") or k("layers_block_type") or NEMOTRON
    letters = [words.get(x) or named[x] for x in kinds]
    f["layers"] = "".join({"M": "S", "*": "F"}.get(x, "-") for x in letters)
    f["feeds"] = "".join({"E": "e", "-": "d"}.get(x, "-") for x in letters)
    f["positions"] = "".join("N" if x == "F" else "-" for x in f["layers"])
    if f.get("window"):
        f["layers"] = f["layers"].replace("F", "W")
    e, d = f["experts"], f["width"]
    if inner := k("moe_latent_size"):
        e |= {"latent": inner, "extra": 2 * d * inner}
    for used, part in (("e" in f["feeds"], "experts"), ("S" in f["layers"], "states")):
        if not used:
            f.pop(part)


def _mistral_large4(f: dict[str, Any], k: Keys) -> None:
    f["layers"] = "".join("F" if x == "R" else "P" for x in f["positions"])
    h, d, a = f["attention"]["heads"], f["width"], f["latent"]
    a |= {"extra": 2 * h, "index_extra": 2 * d + 2 * a["index_heads"]}
    a.pop("query_note", None)
    f["latent_in"] = {"F": {}, "P": {"unturned": a["unturned"] + a["turned"], "turned": 0}}


def _muse(f: dict[str, Any], k: Keys) -> None:
    d, inner = f["width"], k("moe_hidden_size")
    f["experts"] |= {"latent": inner, "extra": 2 * d * inner + 2 * inner}
    if "layer_types" not in k.written:
        blocks = len(f["layers"])
        f["layers"] = "".join("FW"[(blocks - 1 - i) % 4 != 0] for i in range(blocks))
        f["positions"] = positions_of(k, {"positions": "layer_rope_theta"}, f)


def _deepseek_v4(f: dict[str, Any], k: Keys) -> None:
    d, h, blocks = f["width"], f["attention"]["heads"], len(f["layers"])
    if ("layer_types" not in k.written) and (ratios := k("compress_ratios")):
        f["layers"] = "".join({0: "w", 4: "c", 128: "H"}[x] for x in ratios[:blocks])
    elif "layer_types" not in k.written:
        f["layers"] = "".join("H" if i < 2 or i % 2 == 0 else "c" for i in range(blocks))
    rates, streams = k("compress_rates") or {}, k("hc_mult")
    f["attention"] = {"heads": h, "key_heads": 1, "head_width": k("head_dim")}
    f["compressed"] = {
        "heads": h,
        "head_width": k("head_dim"),
        "query_note": k("q_lora_rank"),
        "output_groups": k("o_groups"),
        "output_note": k("o_lora_rank"),
        "index_width": k("index_head_dim"),
        "index_heads": k("index_n_heads"),
        "index_keys": k("index_topk"),
        "far": k("compress_rate_hca") or rates.get("heavily_compressed_attention", 128),
        "near": k("compress_rate_csa") or rates.get("compressed_sparse_attention", 4),
        "streams": streams,
    }
    if "all" in f["rope"]:  # old files: one base for windows, and one with scaling for the rest
        turned = k("qk_rope_head_dim", default=k("head_dim") / 8)
        share = k("partial_rotary_factor", default=turned / k("head_dim"))
        far = {**f["rope"]["all"], "base": k("compress_rope_theta"), "partial": share}
        near = {"base": k("rope_theta", default=10000.0), "partial": share}
        f["rope"] = {"window": near, "compressed": far}
    f["extra"] = {"hyper-connection head": streams * streams * d + streams + 1}
    f["experts"] |= {"shared": f["experts"]["width"], "shared_count": 1}


def _t5(f: dict[str, Any], k: Keys) -> None:
    _d, h = f["width"], f["attention"]["heads"]
    proj = str(k("feed_forward_proj", default="relu"))
    gated = k("is_gated_act", default=proj.startswith("gated"))
    bias = {"relative bias": k("relative_attention_num_buckets") * h}
    f |= {"gated": gated, "tied": True, "extra": bias, "cross": True}
    blocks = len(f["layers"])
    f["encoder"] = {**f, "vocabulary": 0, "cross": False, "layers": "B" * blocks}
    n = number_of_layers(k("num_decoder_layers", default=blocks))
    f |= {"layers": "F" * n, "feeds": "d" * n, "positions": "T" * n, "blocks": n}


def _whisper(f: dict[str, Any], k: Keys) -> None:
    d, sides = f["width"], dict[str, dict[str, Any]]()
    for side, letter in (("encoder", "B"), ("decoder", "F")):
        n, h = number_of_layers(k(f"{side}_layers")), k(f"{side}_attention_heads")
        width = d // h
        sides[side] = {
            **{x: f[x] for x in ("width", "norm", "gated", "feed_bias", "activation", "tied")},
            "vocabulary": f["vocabulary"] if side == "decoder" else 0,
            "blocks": n,
            "layers": letter * n,
            "feeds": "d" * n,
            "positions": "L" * n,
            "feed_width": k(f"{side}_ffn_dim"),
            "attention": {**f["attention"], "heads": h, "key_heads": h, "head_width": width},
        }
    mels, rows = k("num_mel_bins"), k("max_source_positions")
    sides["encoder"] |= {
        "position_rows": rows,
        "extra": {"two convolutions": 3 * mels * d + d + 3 * d * d + d},
    }
    longest = k("max_target_positions")
    f.clear()
    f |= {**sides["decoder"], "encoder": sides["encoder"], "cross": True}
    f |= {"position_rows": longest, "context": longest}


SPECIAL: dict[str, Callable[[dict[str, Any], Keys], None]] = {
    "bert": _bert,
    "bloom": _bloom,
    "clip_text_model": _table,
    "deepseek_v4": _deepseek_v4,
    "falcon": _falcon,
    "gemma4_text": _gemma4,
    "gpt2": _table,
    "gpt_neox": _parallel,
    "kimi_linear": _kimi,
    "llama4_text": _llama4,
    "mamba2": _mamba2,
    "mimo_v2_flash": _mimo,
    "minimax": _minimax,
    "mistral_large4_text": _mistral_large4,
    "modernbert": _modernbert,
    "mpt": _mpt,
    "muse_spark_text": _muse,
    "nemotron_h": _nemotron,
    "openai-gpt": _table,
    "opt": _opt,
    "phimoe": _phimoe,
    "roberta": _bert,
    "rwkv": _rwkv,
    "stablelm": _parallel,
    "t5": _t5,
    "vit": _vit,
    "whisper": _whisper,
}
"""What is done to the fields of these families after the common rules."""
