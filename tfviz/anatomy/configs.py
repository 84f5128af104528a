"""What a config.json says of a model, as fields: keys of many families, read into one form.

`families.toml` says for each model_type which keys its class has, what they are if a file leaves
them out, and what no key says: a norm, a gate, biases. The rules are in `ordinary` and `special`.
They were compared with transformers 5.23, class by class, with one key changed at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tfviz.anatomy.keys import (
    TEXT_PART,
    Keys,
    UnknownFamilyError,
    matches,
    number_of_layers,
    opened,
)
from tfviz.anatomy.ordinary import CONTEXT, ordinary
from tfviz.anatomy.special import SPECIAL
from tfviz.anatomy.stored import families

__all__ = ["guessed", "read_fields"]


def read_fields(config: Mapping[str, Any]) -> tuple[dict[str, Any], Keys, str]:
    """(Fields, the keys as they were read, the family) of a configuration of a known family.

    Raises UnknownFamilyError for others, ValueError where a size is missing or does not fit.
    """
    written, nested = opened(config)
    name = str(written.get("model_type") or "")
    name = TEXT_PART.get(name, name)
    if name not in families():
        raise UnknownFamilyError(name)
    family = families()[name]
    keys = Keys(written, family)
    if not nested:  # a file says its sizes; a part within one says only where it differs
        for size in ("vocab_size", "hidden_size", "num_hidden_layers"):
            size = family.get("also", {}).get(size, size)
            if size in keys.filled and size not in keys.written and name not in ("vit",):
                if size == "num_hidden_layers" and name == "nemotron_h":
                    continue
                if size == "hidden_size" and "n_embed" in keys.written:
                    continue
                raise ValueError(f"config has no {size}; a config.json of {name} says it")
    style = family.get("style", {})
    f = ordinary(keys, style)
    if name in SPECIAL:
        SPECIAL[name](f, keys)
    return f, keys, name


STATE_KEYS = re.compile(
    r"\w*(mamba|ssm_|linear_(num|key|value|head|attn)|conv_kernel|state_size|rwkv|time_mix|kda|"
    r"short_conv|conv_L_cache|lightning|recurrent|lru_)\w*",
    re.ASCII,
)
"""Keys that speak of layers that keep a state."""

SIMPLE_WORDS = ("full_attention", "attention", "sliding_attention", "chunked_attention")


def guessed(
    config: Mapping[str, Any],
) -> tuple[dict[str, Any], Keys, tuple[str, ...], str]:
    """(Fields, keys, what is not known, why nothing is counted or "") of an unknown family.

    It is read as an ordinary decoder: three matrices, no biases, two norms, tables as it says.
    Raises ValueError where not even width, layers, heads and vocabulary are there.
    """
    written, _ = opened(config)
    k = Keys(written, None)
    k.size("hidden_size", "n_embd", "d_model", "dim")
    listed = written.get("layer_types") or written.get("layers_block_type") or ()
    counts = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    blocks = number_of_layers(len(listed) if listed and k(*counts) is None else k.size(*counts))
    k.size("vocab_size")
    doubts = ["whether its feed-forward networks have three matrices or two, biases, norms, sinks"]
    refusals = []
    if states := sorted(x for x in written if matches(STATE_KEYS, x)):
        refusals.append(f"{', '.join(states)}: a state, whose size is not known")
    kinds = [x for x in listed if isinstance(x, str)]
    if strange := sorted({*kinds} - {*SIMPLE_WORDS}):
        refusals.append(f"layer_types has {', '.join(strange)}, which is not known")
    sizes = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    if any(written.get(x) for x in ("kv_lora_rank", "q_lora_rank")) and (
        missing := [x for x in sizes if not isinstance(written.get(x), int)]
    ):
        refusals.append(f"latent attention without {', '.join(missing)}")
    if written.get("per_layer_config") or written.get("block_configs"):
        refusals.append("per_layer_config changes layers one by one")
    if not k("num_attention_heads", "n_head", "n_heads", "num_heads"):
        refusals.append("no attention heads are named")
    if refusals:
        k("layer_types")
        letters = "".join(
            "F" if "full" in x or x == "attention" else "W" if "sliding" in x else "?"
            for x in kinds
        )[:blocks].ljust(blocks, "?")
        f: dict[str, Any] = {"layers": letters, "feeds": "?" * blocks, "positions": "?" * blocks}
        f |= {
            "vocabulary": k("vocab_size"),
            "width": k.size("hidden_size", "n_embd", "d_model", "dim"),
        }
        f |= {"context": k(*CONTEXT), "window": k("sliding_window")}
        return f, k, tuple(doubts), "; ".join(refusals)
    style: dict[str, Any] = {"positions": "no_rope_layers"} if "no_rope_layers" in written else {}
    if kinds and written.get("sliding_window") is None:
        style["words"] = {"sliding_attention": "F"}
    f = ordinary(k, style)
    if "tie_word_embeddings" not in written:
        f["tied_unknown"] = True
        doubts.append("whether one table reads and writes (tie_word_embeddings is not there)")
    if written.get("sliding_window") and not kinds:
        doubts.append("in which layers its window is: sliding_window is there, layer_types is not")
    if not any(x in written for x in ("rope_theta", "rope_parameters", "rope_scaling")):
        doubts.append("how it is told positions: no key of RoPE is there")
    if "experts" in f:
        doubts.append("which layers have experts, unless first_k_dense_replace or a list says it")
    return f, k, tuple(doubts), ""
