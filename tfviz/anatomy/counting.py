"""Parameters, cache, operations and bytes of a model, by plain formulas of plain fields.

Fields are what `models.toml` says of a model, as its legend explains; numbers alone come in and go
out, and nothing here knows of a tensor. Letters of formulas: L tokens, d width, h heads, d_h width
of a head. A multiplication and an addition are two operations.

>>> small = {"vocabulary": 10, "width": 4, "feed_width": 16, "layers": "FF", "feeds": "dd",
...          "attention": {"heads": 2, "key_heads": 1, "head_width": 2}}
>>> parameters(small)["attention"]  # 2 blocks: W_q and W_o are 4 × 4, W_k and W_v 4 × 2
96
>>> kept(small, 10)  # numbers: keys and values of one head of two, in both layers; no state
(80, 0)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfviz.anatomy.layers import STATES

__all__ = [
    "bytes_at_decode",
    "convolved",
    "decode_operations",
    "experts_touched",
    "kept",
    "parameters",
    "prefill_operations",
]

Fields = Mapping[str, Any]
NORM = {"rms": 1, "layer": 2, "layer without bias": 1, "none": 0}
"""How many numbers for each feature a norm learns."""


def linear(inputs: int, outputs: int, bias: bool = False) -> int:
    """Weights of a linear map."""
    return inputs * outputs + (outputs if bias else 0)


def heads_of(f: Fields, letter: str) -> dict[str, Any]:
    """The attention of layers of this letter: heads, key_heads, head_width, value_width, …"""
    a = {**f.get("attention", {}), **f.get("attention_in", {}).get(letter, {})}
    if a:
        a.setdefault("value_width", a["head_width"])
    return a


def latent_of(f: Fields, letter: str) -> dict[str, Any] | None:
    """The latent attention of layers of this letter, None if they have none."""
    if letter not in f.get("latent_in", {}):
        return None
    return {**f["latent"], **f["latent_in"][letter]}


def borrows(f: Fields, layer: int) -> bool:
    """Whether a layer reads the keys and values of an earlier one."""
    return layer >= len(f["layers"]) - f.get("borrowers", 0)


# --- parameters -----------------------------------------------------------------------------------


def parameters(f: Fields) -> dict[str, int]:
    """The weights of a model by part, with the encoder's among them if there is one.

    `feed_active` counts the experts that a token uses instead of all; every other part counts in
    full, and they add up to the total. A table that is read and written with is counted once.
    """
    d, norm = f["width"], NORM[f.get("norm", "rms")]
    table = f["vocabulary"] * f.get("table_width", d)
    parts = dict.fromkeys(("attention", "state", "feed", "norm"), 0)
    parts["embedding"] = table
    parts["position"] = (f.get("position_rows", 0) + f.get("segment_rows", 0)) * d
    parts["head"] = (0 if f.get("tied") else table) + (f["vocabulary"] if f.get("head_bias") else 0)
    parts["other"] = sum((f.get("extra", {}) | f.get("extra_maps", {})).values())
    active = 0
    for n, letter in enumerate(f["layers"]):
        if letter in STATES:
            parts["state"] += state_weights(f, letter)
        elif letter != "-":
            parts["attention"] += attention_weights(f, n)
        if f.get("cross"):
            parts["attention"] += attention_weights({**f, "borrowers": 0}, n)
            parts["norm"] += norm * d
        feed, used = feed_weights(f, n)
        parts["feed"] += feed
        active += used
    norms = f.get("norms", 2)
    each = norms if isinstance(norms, list) else [norms] * len(f["layers"])
    parts["norm"] += (sum(each) + f.get("norms_at_end", 1)) * norm * d
    if "encoder" in f:
        encoder = parameters(f["encoder"])
        active += encoder.pop("feed_active")
        parts = {part: n + encoder[part] for part, n in parts.items()}
    return {**parts, "feed_active": active}


def attention_weights(f: Fields, layer: int) -> int:
    """Weights of the attention of one layer."""
    letter, d = f["layers"][layer], f["width"]
    if "compressed" in f:
        return _compressed_weights(f, letter)
    latent = latent_of(f, letter)
    if latent is not None:
        return _latent_weights(latent, d, layer)
    a = heads_of(f, letter)
    h, h_kv, d_h, d_v = (a[x] for x in ("heads", "key_heads", "head_width", "value_width"))
    q = a.get("bias_q", False)
    k, v, o = a.get("bias_k", q), a.get("bias_v", q), a.get("bias_o", False)
    total = linear(d, h * d_h * (2 if a.get("gate") == "query" else 1), q) + linear(h * d_v, d, o)
    learned = 2 if a.get("qk_norm_bias") else 1
    normed = {"head": d_h, "width": h * d_h}.get(a.get("qk_norm", ""), 0)
    if not borrows(f, layer):
        total += linear(d, h_kv * d_h, k)
        total += 0 if a.get("values_are_keys") else linear(d, h_kv * d_v, v)
        normed += {"head": d_h, "width": h_kv * d_h}.get(a.get("qk_norm", ""), 0)
    total += learned * normed + (h if a.get("sink") else 0)
    return int(total + (d * h * d_v if a.get("gate") == "number" else 0))


def _latent_weights(a: Mapping[str, Any], d: int, layer: int) -> int:
    h, note, bias = a["heads"], a["note"], a.get("bias", False)
    key, turned, value, query = a["unturned"], a["turned"], a["value"], a.get("query_note")
    if query:
        total = linear(d, query, bias) + query + query * h * (key + turned)
    else:
        total = d * h * (key + turned)
    total += linear(d, note + turned, bias) + note + note * h * (key + value)
    total += linear(h * value, d, bias) + a.get("extra", 0)
    if a.get("index_heads") and layer not in a.get("index_borrowers", ()):
        heads, width = a["index_heads"], a["index_width"]
        total += (query or d) * heads * width + d * width + 2 * width + d * heads
        total += a.get("index_extra", 0)
    return int(total)


def _compressed_weights(f: Fields, letter: str) -> int:
    """DeepSeek-V4: one key that is the value too; runs of tokens are summed up as one."""
    a, d = f["compressed"], f["width"]
    h, d_h, query, m = a["heads"], a["head_width"], a["query_note"], a["streams"]
    groups, note = a["output_groups"], a["output_note"]
    total = h + d * query + query + query * h * d_h + d * d_h + d_h
    total += groups * note * (h * d_h // groups) + groups * note * d
    if letter == "H":
        total += a["far"] * d_h + 2 * d * d_h + d_h
    if letter == "c":
        width, heads = a["index_width"], a["index_heads"]
        for kept_width in (d_h, width):
            total += a["near"] * 2 * kept_width + 2 * d * 2 * kept_width + kept_width
        total += query * heads * width + d * heads
    return int(total + 2 * ((m * m + 2 * m) * m * d + (m * m + 2 * m) + 3))


def state_weights(f: Fields, letter: str) -> int:
    """Weights of a layer that keeps a state."""
    s, d = f["states"][letter], f["width"]
    kind, w = s["kind"], s.get("convolution", 0)
    if kind == "gated delta rule":
        keys, values = s["key_heads"] * s["key_width"], s["value_heads"] * s["value_width"]
        total = 2 * d * (keys + values) + 2 * d * s["value_heads"] + w * (2 * keys + values)
        return int(total + 2 * s["value_heads"] + s["value_width"] + values * d)
    if kind == "delta rule by feature":
        h, r = s["heads"], s["head_width"]
        return int(4 * d * h * r + 3 * w * h * r + 2 * (d * r + r * h * r) + d * h + h * r + h + r)
    if kind == "Mamba-2":
        inner, groups = s["heads"] * s["head_width"], s["groups"] * s["state"]
        channels, bias = inner + 2 * groups, s.get("map_bias", False)
        total = linear(d, 2 * inner + 2 * groups + s["heads"], bias) + linear(inner, d, bias)
        total += channels * (w + (1 if s.get("convolution_bias", True) else 0))
        return int(total + 3 * s["heads"] + inner)
    if kind == "Mamba-1":
        inner, n, step, bias = s["channels"], s["state"], s["step_rank"], s.get("map_bias", False)
        total = linear(d, 2 * inner, bias) + linear(inner, d, bias)
        total += inner * (w + (1 if s.get("convolution_bias", True) else 0))
        total += inner * (step + 2 * n) + step * inner + inner + inner * n + inner
        return int(total + (step + 2 * n if s.get("norms") else 0))
    if kind == "lightning attention":
        inner = s["heads"] * s["head_width"]
        return int(5 * d * inner + inner)
    if kind == "RWKV-4":
        channels = s.get("channels", d)
        return int(4 * d * channels + 2 * channels + 3 * d)
    if kind == "RWKV-7":
        return int(4 * d * d + 15 * d + 2 * d * sum(s["ranks"]))
    raise ValueError(f"states.{letter}.kind = {kind!r} is not counted; see tfviz/anatomy/counting")


def feed_weights(f: Fields, layer: int) -> tuple[int, int]:
    """(weights, those that one token uses) of what stands after the mixer of a layer."""
    letter, d, matrices = f["feeds"][layer], f["width"], 3 if f.get("gated", True) else 2
    wide = f["feed_widths"][layer] if "feed_widths" in f else f.get("feed_width", 0)
    dense = matrices * d * wide
    dense += (matrices - 1) * wide + d if f.get("feed_bias") else 0
    alone = {
        "-": 0,
        "d": dense,
        "a": 2 * d * wide + wide + d + 6 * d * d + 6 * d,  # and six maps that steer norms and skips
        "r": 2 * d * wide + d * d + 2 * d,
        "v": 8 * d * d,
    }
    if letter != "e":
        return alone[letter], alone[letter]
    e = f["experts"]
    inside, bias = e.get("latent") or d, (matrices - 1) * e["width"] + d if e.get("bias") else 0
    one = matrices * inside * e["width"] + bias
    beside = linear(d, e["count"], False) + (e["count"] if e.get("router_bias") else 0)
    beside += matrices * d * e.get("shared", 0) + (d if e.get("shared_gate") else 0)
    if e.get("shared") and f.get("shared_bias"):
        beside += (matrices - 1) * e["shared"] + d
    beside += (dense if e.get("beside_dense") else 0) + e.get("extra", 0)
    return e["count"] * one + beside, e["chosen"] * one + beside


def multiplied(f: Fields) -> int:
    """Weights that one token is multiplied with: all but tables that are looked up, and norms."""
    parts = parameters(f)
    read_out = f["vocabulary"] * f.get("table_width", f["width"])
    used = parts["attention"] + parts["state"] + parts["feed_active"] + read_out
    return int(used + sum(f.get("extra_maps", {}).values()))


# --- the cache ------------------------------------------------------------------------------------


def kept(f: Fields, L: int) -> tuple[int, int]:
    """(numbers of keys and values, numbers of states) that one text of L tokens keeps."""
    each = [kept_by(f, n, L) for n in range(len(f["layers"]))]
    return sum(keys for keys, _ in each), sum(state for _, state in each)


def kept_by(f: Fields, layer: int, L: int) -> tuple[int, int]:
    """(numbers of keys and values, numbers of its state) that one layer keeps of L tokens."""
    letter = f["layers"][layer]
    if letter in STATES:
        return 0, state_numbers(f, letter)
    own = letter not in "-Bb" and not borrows(f, layer)
    return keys_numbers(f, layer, L) if own else 0, 0


def keys_numbers(f: Fields, layer: int, L: int) -> int:
    """Numbers that the attention of one layer keeps of L tokens."""
    letter = f["layers"][layer]
    if "compressed" in f:
        a = f["compressed"]
        far = {"H": L // a["far"] * a["head_width"], "c": 0, "w": 0}[letter]
        near = L // a["near"] * (a["head_width"] + a["index_width"]) if letter == "c" else 0
        return int(a["head_width"] * min(L, f["window"]) + far + near)
    latent = latent_of(f, letter)
    if latent is not None:
        index = latent.get("index_width", 0) if latent.get("index_heads") else 0
        if layer in latent.get("index_borrowers", ()):
            index = 0
        return int((latent["note"] + latent["turned"] + index) * L)
    a = heads_of(f, letter)
    rows = {"W": min(L, f.get("window", L)), "C": min(L, f.get("chunk", L))}.get(letter, L)
    return int(a["key_heads"] * (a["head_width"] + a["value_width"]) * rows)


def state_numbers(f: Fields, letter: str) -> int:
    """Numbers of the state of one layer, whatever the length."""
    s = f["states"][letter]
    sizes = {
        "gated delta rule": ("value_heads", "key_width", "value_width"),
        "delta rule by feature": ("heads", "head_width", "head_width"),
        "Mamba-2": ("heads", "head_width", "state"),
        "Mamba-1": ("channels", "state"),
        "lightning attention": ("heads", "head_width", "head_width"),
    }
    if s["kind"] == "RWKV-4":
        return int(5 * f["width"])
    if s["kind"] == "RWKV-7":
        return int(66 * f["width"])
    total = 1
    for size in sizes[s["kind"]]:
        total *= s[size]
    return total


def convolved(f: Fields) -> int:
    """Numbers that short convolutions before states keep: the last few tokens of each channel."""
    total = 0
    for letter in f["layers"]:
        s = f["states"][letter] if letter in STATES else {}
        channels = {
            "gated delta rule": lambda s: (
                2 * s["key_heads"] * s["key_width"] + s["value_heads"] * s["value_width"]
            ),
            "delta rule by feature": lambda s: 3 * s["heads"] * s["head_width"],
            "Mamba-2": lambda s: s["heads"] * s["head_width"] + 2 * s["groups"] * s["state"],
            "Mamba-1": lambda s: s["channels"],
        }.get(s.get("kind", ""), lambda s: 0)(s)
        total += s.get("convolution", 0) * channels
    return int(total)


# --- operations -----------------------------------------------------------------------------------


def pair_operations(f: Fields, letter: str, absorbed: bool) -> tuple[int, int]:
    """(attention's own, the indexer's) operations for one query and one key that it may use.

    A latent attention is `absorbed` where queries read the notes themselves, as servers decode.
    """
    if "compressed" in f:  # the key is the value, too
        a = f["compressed"]
        return 4 * a["heads"] * a["head_width"], 2 * a["index_heads"] * a["index_width"]
    latent = latent_of(f, letter)
    if latent is None:
        a = heads_of(f, letter)
        return 2 * a["heads"] * (a["head_width"] + a["value_width"]), 0
    note, turned = latent["note"], latent["turned"]
    wide = 2 * note + turned if absorbed else latent["unturned"] + turned + latent["value"]
    return 2 * latent["heads"] * wide, 2 * latent.get("index_heads", 0) * latent.get(
        "index_width", 0
    )


def within(L: int, window: int) -> int:
    """Pairs (i, j) of L tokens with j ≤ i, of which each token sees the last `window` keys."""
    n = min(L, window)
    return n * (n + 1) // 2 + max(L - window, 0) * window


def _chosen(f: Fields, letter: str) -> int:
    latent = latent_of(f, letter) or {}
    return int(latent.get("index_keys", 0)) if latent.get("index_heads") else 0


def pairs(f: Fields, letter: str, L: int) -> tuple[int, int]:
    """(pairs of attention, pairs that an indexer scores) in one layer, over a text of L tokens."""
    everything = L * (L + 1) // 2
    if "compressed" in f:
        a, near = f["compressed"], within(L, f["window"])
        if letter == "c":
            full = min(L, a["index_keys"] * a["near"])
            chosen = full * full // (2 * a["near"]) + (L - full) * a["index_keys"]
            return near + chosen, L * L // (2 * a["near"])
        return near + (L * L // (2 * a["far"]) if letter == "H" else 0), 0
    if letter == "W":
        return within(L, f["window"]), 0
    if letter == "C":
        chunk = f["chunk"]
        whole, rest = divmod(L, chunk)
        return whole * (chunk * (chunk + 1) // 2) + rest * (rest + 1) // 2, 0
    if letter == "B":
        return L * L, 0
    if letter == "b":
        near = min(f["radius"], L - 1)
        return L * (2 * near + 1) - near * (near + 1), 0
    if chosen := _chosen(f, letter):
        return within(L, chosen), everything
    return everything, 0


def seen(f: Fields, letter: str, L: int) -> tuple[int, int]:
    """(keys that the token after L tokens attends to, keys that an indexer scores)."""
    n = L + 1
    if "compressed" in f:
        a, near = f["compressed"], min(n, f["window"])
        if letter == "c":
            return near + min(L // a["near"], a["index_keys"]), L // a["near"]
        return near + (L // a["far"] if letter == "H" else 0), 0
    if letter == "W":
        return min(n, f["window"]), 0
    if letter == "C":
        return L % f["chunk"] + 1, 0
    if chosen := _chosen(f, letter):
        return min(n, chosen), n
    return n, 0


def state_operations(f: Fields, letter: str) -> int:
    """Operations of one token on a state, which fades, is read and is written to."""
    per_number = {"Mamba-2": 5, "Mamba-1": 6, "lightning attention": 5, "RWKV-4": 8, "RWKV-7": 8}
    return per_number.get(f["states"][letter]["kind"], 7) * state_numbers(f, letter)


def decode_operations(f: Fields, L: int, absorbed: bool = True) -> dict[str, int]:
    """Operations for the token after L tokens: with weights, with keys, with states."""
    total = {"weights": 2 * multiplied(f), "pairs": 0, "states": 0}
    for letter in f["layers"]:
        if letter in STATES:
            total["states"] += state_operations(f, letter)
        elif letter != "-":
            own, index = pair_operations(f, letter, absorbed)
            keys, scored = seen(f, letter, L)
            total["pairs"] += own * keys + index * scored
    return total


def prefill_operations(
    f: Fields, L: int, absorbed: bool = False, all_logits: bool = False
) -> dict[str, int]:
    """Operations for a whole text of L tokens, with the logits of its last token, or of all.

    States count as a recurrence; programs that go through them in chunks do more.
    """
    head = f["vocabulary"] * f.get("table_width", f["width"])
    weights = 2 * L * (multiplied(f) - head) + 2 * head * (L if all_logits else min(L, 1))
    total = {"weights": weights, "pairs": 0, "states": 0}
    for letter in f["layers"]:
        if letter in STATES:
            total["states"] += L * state_operations(f, letter)
        elif letter != "-":
            own, index = pair_operations(f, letter, absorbed)
            attended, scored = pairs(f, letter, L)
            total["pairs"] += own * attended + index * scored
    return total


# --- bytes that are moved -------------------------------------------------------------------------


def experts_touched(f: Fields, tokens: int) -> float:
    """Experts of a layer that some of the tokens use, if each token's are random: E(1−(1−k/E)^B)"""
    e = f["experts"]
    if not e["count"]:
        return 0.0
    return float(e["count"] * (1 - (1 - e["chosen"] / e["count"]) ** tokens))


def weights_read(f: Fields, tokens: int) -> float:
    """Weights that a step with so many tokens reads, once for all of them."""
    parts = parameters(f)
    total: float = parts["attention"] + parts["state"] + parts["norm"]
    total += f["vocabulary"] * f["width"] + sum(f.get("extra_maps", {}).values())
    for n, letter in enumerate(f["feeds"]):
        all_of_it, used = feed_weights(f, n)
        if letter == "e" and (rest := f["experts"]["count"] - f["experts"]["chosen"]):
            one = (all_of_it - used) / rest
            total += used + one * (experts_touched(f, tokens) - f["experts"]["chosen"])
        else:
            total += all_of_it
    return total


def bytes_at_decode(
    f: Fields, L: int, batch: int, bits: float, cache_bits: float, state_bits: float
) -> dict[str, float]:
    """Bytes for the token after L tokens in each text: weights, keys and values, states.

    An indexer reads its own keys of all tokens, and attention those that are chosen. States are
    read and written.
    """
    keys, states = 0, 0
    for n, letter in enumerate(f["layers"]):
        if letter in STATES:
            states += state_numbers(f, letter)
        elif letter not in "-Bb":
            # a layer that borrows reads what the lender keeps
            rows = keys_numbers({**f, "borrowers": 0}, n, L)
            if chosen := _chosen(f, letter):
                latent = latent_of(f, letter) or {}
                note = latent["note"] + latent["turned"]
                rows += note * (min(L, chosen) - L)
            keys += rows
    return {
        "weights": weights_read(f, batch) * bits / 8,
        "keys and values": keys * batch * cache_bits / 8,
        "states": 2 * states * batch * state_bits / 8,
    }
