"""Fields of a stack of blocks, by the keys that mean the same in most families."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tfviz.anatomy.keys import Keys, number_of_layers
from tfviz.anatomy.layers import STATES

__all__ = ["CONTEXT", "ordinary"]

Style = Mapping[str, Any]


def ordinary(k: Keys, style: Style) -> dict[str, Any]:
    """Fields of a stack of blocks, by keys that mean the same in most families."""
    d = k.size("n_embed", "hidden_size", "n_embd", "d_model", "dim")
    h = k("num_attention_heads", "n_head", "n_heads", "num_heads")
    f: dict[str, Any] = {
        "vocabulary": k("vocab_size", default=0),
        "width": d,
        "context": k(*CONTEXT),
        "tied": bool(style.get("tied", k("tie_word_embeddings", default=False))),
        "activation": k(*ACTIVATION),
        "feed_width": k(
            *("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_dim", "d_ff"),
            *("ffn_hidden_size",),
            default=4 * d,
        ),
        **{x: style[x] for x in style.keys() & PLAIN},
    }
    blocks = number_of_layers(
        k("num_hidden_layers", "n_layer", "n_layers", "num_layers", default=0)
    )
    f["window"] = (
        k("sliding_window", "local_attention") if k("use_sliding_window", default=True) else None
    )
    f["chunk"] = k("attention_chunk_size")
    f["layers"] = _layers(k, style, blocks, f)
    f["blocks"] = len(f["layers"])
    f["radius"] = f["window"] // 2 if "b" in f["layers"] else None
    if h:
        f["attention"] = _attention(k, style, d, h)
    biases = {"attention_bias": "qo", "mlp_bias": "f", **style.get("biases", {})}
    for key, which in biases.items():
        if k.knows(key) and k(key):
            f["feed_bias"] = f.get("feed_bias", False) or "f" in which
            f["shared_bias"] = True if "s" in which else None
            if h:
                f["attention"] |= {f"bias_{x}": True for x in which if x in "qo"}
    if k("kv_lora_rank"):
        f["latent"], f["latent_in"] = _latent(k, h, len(f["layers"])), {"F": {}}
    if state := _state(k, style, d, h):
        f["states"] = {style.get("linear", "G"): state}
    f["positions"] = positions_of(k, style, f)
    f["feeds"] = _feeds(k, style, f)
    f["score_cap"] = k("attn_logit_softcapping") or None
    f["logit_cap"] = k("final_logit_softcapping") or None
    f["drafts"] = k("num_nextn_predict_layers", "mtp_num_hidden_layers") or None
    if "R" in f["positions"]:
        f["rope"] = _rope(k, style, f)
    return {name: value for name, value in f.items() if value is not None}


CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_seq_len",
    "max_sequence_length",
    "seq_length",
    "model_max_length",
    "context_length",
)
ACTIVATION = (
    "hidden_act",
    "hidden_activation",
    "activation_function",
    "afn",
    "activation",
    "mlp_hidden_act",
)
PLAIN = frozenset(
    [
        "gated",
        "norm",
        "norms",
        "norms_at_end",
        "place",
        "feed_bias",
        "head_bias",
        "position_rows",
        "segment_rows",
    ]
)
"""What a style says of a family in the words of the fields."""


def _attention(k: Keys, style: Style, d: int, h: int) -> dict[str, Any]:
    width = k("head_dim", "d_kv")
    key_heads = k("num_key_value_heads", "num_kv_heads", default=h)
    a = {"heads": h, "key_heads": key_heads, "head_width": width or d // h}
    if "qk_norm" in style and k(style.get("qk_norm_if", ""), default="qk_norm_if" not in style):
        a["qk_norm"] = style["qk_norm"]
        a |= {"qk_norm_bias": True} if style.get("qk_norm_bias") else {}
    a |= {x: style[x] for x in ("gate", "sink", "bias_q", "bias_k", "bias_o") if x in style}
    return a


def _layers(k: Keys, style: Style, blocks: int, f: Mapping[str, Any]) -> str:
    """One letter for each block: what mixes tokens there."""
    words = {
        "full_attention": style.get("layers", "F"),
        "attention": "F",
        "indexed_attention": "F",
        "sliding_attention": "W",
        "chunked_attention": "C",
        "linear_attention": style.get("linear", "G"),
        "mamba": "S",
        **style.get("words", {}),
    }
    kinds = k("layer_types", "layers_block_type")
    if not kinds:
        kinds = _pattern(k, style, blocks)
    unknown = sorted({x for x in kinds if x not in words})
    if unknown:
        raise ValueError(f"layer_types has {', '.join(unknown)}, which is not known; see unread")
    letters = "".join(words[x] for x in kinds[: blocks or None])
    if len(letters) != blocks and not style.get("pattern_is_longer"):
        raise ValueError(f"layer_types has {len(letters)} entries for {blocks} layers; correct one")
    if not f["window"]:
        letters = letters.replace("W", "F")
    if not f["chunk"]:
        letters = letters.replace("C", "F")
    both = k("use_bidirectional_attention")
    if both and both != "vision":
        return letters.translate({ord("F"): "B", ord("W"): "b"})
    return letters


def _pattern(k: Keys, style: Style, blocks: int) -> list[str]:
    """Kinds of layers by the rule of the family, where the file does not list them."""
    full, other = "full_attention", style.get("others", "sliding_attention")
    if (every := style.get("every")) is not None:
        every = k(*style.get("every_keys", ()), default=every) or blocks + 1
        from_first = style.get("full_first")
        kinds = [
            full if (i if from_first else i + 1) % every == 0 else other for i in range(blocks)
        ]
        if style.get("some_full") and full not in kinds:
            kinds[-1:] = [full]
        return kinds
    if k.knows("attn_layer_period") and (period := k("attn_layer_period")):
        offset = k("attn_layer_offset", default=0)
        return [full if i % period == offset else other for i in range(blocks)]
    if k.knows("max_window_layers") and k("use_sliding_window") and k("layer_types") is None:
        most = k("max_window_layers", default=0)
        if style.get("windows_below"):  # qwen2_moe: every other one of the layers below
            return [other if (i + 1) % 2 and i < most else full for i in range(blocks)]
        return [other if i >= most else full for i in range(blocks)]
    if style.get("chunked"):
        return ["chunked_attention" if x else full for x in _turned(k, blocks)]
    if style.get("window_everywhere") and k("sliding_window"):
        longest = k(*CONTEXT, default=math.inf)
        inside = not style.get("window_below_context") or k("sliding_window") < longest
        return [other if inside else full] * blocks
    return [style.get("only", full)] * blocks


def _turned(k: Keys, blocks: int) -> list[int]:
    """Which layers are told positions: 1 means that they are, whatever the key is called."""
    listed = k("no_rope_layers")
    every = k("no_rope_layer_interval", default=4)
    told = list(listed or [int((i + 1) % every != 0) for i in range(blocks)])
    if len(told) < blocks:
        raise ValueError(f"no_rope_layers has {len(told)} entries for {blocks} layers; correct one")
    return told[:blocks]


def positions_of(k: Keys, style: Style, f: Mapping[str, Any]) -> str:
    letters, rule = f["layers"], style.get("positions", "R")
    attends = [x not in STATES and x != "-" for x in letters]
    each = [rule[0]] * len(letters)
    if rule == "no_rope_layers":
        each = ["R" if x else "N" for x in _turned(k, len(letters))]
    elif rule == "windows":
        each = ["R" if x == "W" or "W" not in letters else "N" for x in letters]
    elif rule == "layer_rope_theta":
        listed = k("layer_rope_theta") or [0 if x == "F" else 1 for x in letters]
        each = ["R" if x else "N" for x in listed]
        if len(each) != len(letters):
            raise ValueError(
                f"layer_rope_theta has {len(each)} entries for {len(letters)} layers; correct one"
            )
    elif rule == "position_embedding_type":
        each = ["R" if k(rule) == "rope" else "N"] * len(letters)
    elif rule == "rope_theta":
        told = k("rope_parameters", "rope_scaling") or {}
        base = told.get("rope_theta", k("rope_theta", default=None))
        each = ["R" if base is not None else "N"] * len(letters)
    elif rule == "alibi":
        each = ["A" if k("alibi") else "R"] * len(letters)
    elif rule == "attn_config":
        each = ["A" if (k("attn_config") or {}).get("alibi", True) else "L"] * len(letters)
    return "".join(x if yes else "-" for x, yes in zip(each, attends, strict=True))


def _feeds(k: Keys, style: Style, f: dict[str, Any]) -> str:
    """One letter for each block, and `experts` into the fields where a block has some."""
    blocks, width = len(f["layers"]), f["width"]
    count = k("n_routed_experts", "num_local_experts", "num_experts")
    if style.get("experts_if") and not k(style["experts_if"]):
        count = None
    none = not count and (count is None or not k.known or "dense_up_to" in style)
    if none or count <= style.get("dense_up_to", -1):
        if shared := k("shared_intermediate_size"):  # granite: only the one that is always on
            f["feed_width"] = shared
        return style.get("feeds", "d") * blocks
    wide = k("moe_intermediate_size") or k("intermediate_size", default=4 * width)
    number = k("n_shared_experts", "num_shared_experts", default=style.get("shared_count", 0))
    shared = k(
        "shared_expert_intermediate_size",
        "shared_intermediate_size",
        "moe_shared_expert_intermediate_size",
        default=None,
    )
    f["experts"] = {
        "count": count,
        "chosen": min(
            k(
                "num_experts_per_tok",
                "num_experts_per_token",
                "top_k_experts",
                "experts_per_token",
                default=1,
            ),
            count,
        ),
        "width": wide,
        "shared": number * wide if shared is None else shared,
        **style.get("experts", {}),
    }
    if number:
        f["experts"]["shared_count"] = number
    if kinds := k("mlp_layer_types"):
        return "".join("d" if x == "dense" else "e" for x in kinds)[:blocks].ljust(blocks, "e")
    if k.knows("mlp_only_layers") and (k("decoder_sparse_step") is not None):
        dense, step = k("mlp_only_layers") or (), k("decoder_sparse_step", default=1)
        each = ["d" if i in dense or (i + 1) % step else "e" for i in range(blocks)]
    elif k.knows("interleave_moe_layer_step") and (step := k("interleave_moe_layer_step")):
        some = k("moe_layers")
        some = range(step - 1, blocks, step) if some is None else some
        each = ["e" if i in some else "d" for i in range(blocks)]
    elif k.knows("expert_layer_period") and (period := k("expert_layer_period")):
        offset = k("expert_layer_offset", default=0)
        each = ["e" if i % period == offset else "d" for i in range(blocks)]
    else:
        first = k("first_k_dense_replace", default=style.get("dense_first", 0))
        each = ["d" if i < first else "e" for i in range(blocks)]
    return "".join(each)


def _latent(k: Keys, h: int, blocks: int) -> dict[str, Any]:
    """Latent attention: what it keeps of a token, and its indexer if it has one."""
    sizes = {
        "note": "kv_lora_rank",
        "unturned": "qk_nope_head_dim",
        "turned": "qk_rope_head_dim",
        "value": "v_head_dim",
    }
    missing = [key for key in sizes.values() if not isinstance(k(key), int)]
    if missing:
        raise ValueError(f"config has kv_lora_rank and no {', '.join(missing)}; it needs all four")
    latent = {"heads": h, **{name: k(key) for name, key in sizes.items()}}
    if query := k("q_lora_rank"):
        latent["query_note"] = query
    if k("attention_bias"):
        latent["bias"] = True
    if k("index_n_heads"):
        latent |= {
            "index_heads": k("index_n_heads"),
            "index_width": k("index_head_dim"),
            "index_keys": k("index_topk"),
        }
        if k.knows("indexer_types") and (shared := _index_borrowers(k, blocks)):
            latent["index_borrowers"] = shared
    return latent


def _index_borrowers(k: Keys, blocks: int) -> list[int]:
    """Layers that use what the indexer of an earlier one has chosen."""
    kinds = k("indexer_types") or k("index_topk_pattern")
    if kinds:
        return [i for i, x in enumerate(kinds) if x in ("shared", "S")]
    every = max(k("index_topk_freq", default=1), 1)
    offset = k("index_skip_topk_offset", default=2)
    return [i for i in range(blocks) if max(i - offset + 1, 0) % every]


def _state(k: Keys, style: Style, d: int, h: int | None) -> dict[str, Any] | None:
    """What layers with a state keep."""
    if not k.known:
        return None
    if k.knows("linear_num_value_heads") and k("linear_num_value_heads", default=h):
        key_heads = k("linear_num_key_heads", default=h)
        key = k("linear_key_head_dim") or int(0.75 * d / key_heads)
        return {
            "kind": "gated delta rule",
            "key_heads": key_heads,
            "key_width": key,
            "value_heads": k("linear_num_value_heads", default=h),
            "value_width": k("linear_value_head_dim", default=2 * key),
            "convolution": k("linear_conv_kernel_dim", default=4),
        }
    if style.get("linear") == "K":
        said = k("linear_attn_config") or {}
        return {
            "kind": "delta rule by feature",
            "heads": said.get("num_heads", k("linear_num_heads")),
            "head_width": said.get("head_dim", k("linear_head_dim")),
            "convolution": said.get("short_conv_kernel_size", k("linear_conv_kernel_dim")),
        }
    if style.get("linear") == "L":
        return {
            "kind": "lightning attention",
            "heads": h,
            "head_width": k("head_dim") or d // (h or 1),
        }
    if k.knows("mamba_dt_rank") and k("mamba_dt_rank"):
        step = k("mamba_dt_rank")
        return {
            "kind": "Mamba-1",
            "channels": k("mamba_expand") * d,
            "state": k("mamba_d_state"),
            "step_rank": -(-d // 16) if step == "auto" else step,
            "convolution": k("mamba_d_conv"),
            "norms": True,
            "convolution_bias": bool(k("mamba_conv_bias")),
            "map_bias": bool(k("mamba_proj_bias")),
        }
    if style.get("linear") != "S":
        return None
    heads = k("mamba_n_heads", "mamba_num_heads", "num_heads")
    width = k("mamba_head_dim", "mamba_d_head", "head_dim")
    return {
        "kind": "Mamba-2",
        "heads": heads,
        "head_width": k("mamba_expand") * d // heads if width in ("auto", None) else width,
        "state": k("mamba_d_state", "ssm_state_size", "state_size"),
        "groups": k("mamba_n_groups", "n_groups"),
        "convolution": k("mamba_d_conv", "conv_kernel"),
        "convolution_bias": bool(k("mamba_conv_bias", "use_conv_bias")),
        "map_bias": bool(k("mamba_proj_bias", "use_bias")),
    }


def _rope(k: Keys, style: Style, f: Mapping[str, Any]) -> dict[str, Any]:
    """{kind of layer: base, scaling, factor, partial}; what a file says beats what its class has.

    New files have one set of parameters, or one for each kind of layer; old ones have a rope_theta
    and a rope_scaling beside it, which speak of the full layers.
    """
    said = k("rope_parameters") or {}
    old = {**(k("rope_scaling") or {})}
    width = f.get("attention", {}).get("head_width", 1)
    theta = k("rope_theta", default=style.get("rope_base", 10000.0))
    part = k("partial_rotary_factor", "rotary_pct", default=style.get("rope_partial"))
    part = k("rotary_dim") / width if k("rotary_dim") else part
    kinds = {"full_attention": "full", "sliding_attention": "window", "main": "window"}
    kinds |= {"compress": "compressed", "chunked_attention": "chunk"}
    if said and all(isinstance(x, Mapping) or x is None for x in said.values()):
        return {kinds.get(x, x): _angles(y, theta, part) for x, y in said.items() if y is not None}
    by_kind = style.get("rope_by_kind")
    if by_kind and not said:
        full, near = (
            _angles({**by_kind["full"], **old}, theta, part),
            by_kind.get("window", by_kind["full"]),
        )
        if "rope_theta" in k.written:
            full["base"] = theta
        if local := k("rope_local_base_freq"):
            near = {**near, "rope_theta": local}
        return {"full": full, "window": _angles(near, theta, part)}
    if by_kind:
        return dict.fromkeys(("full", "window"), _angles(said, theta, part))
    scaling = style.get("rope_scaling", {}) if not (said or "rope_scaling" in k.written) else {}
    part = None if f.get("latent") else part
    return {"all": _angles({**scaling, **old, **said}, theta, part)}


def _angles(given: Mapping[str, Any], base: Any, part: Any) -> dict[str, Any]:
    kind = given.get("rope_type") or given.get("type") or "default"
    made = {"base": given.get("rope_theta", base)}
    made |= {"scaling": kind} if kind != "default" else {}
    made |= {"factor": given["factor"]} if given.get("factor") else {}
    made |= {"axes": 3} if given.get("mrope_section") else {}
    share = given.get("partial_rotary_factor", part)
    return made | ({"partial": share} if share not in (None, 1, 1.0) else {})
