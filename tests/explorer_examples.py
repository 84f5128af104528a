"""Arguments of one explorer of each kind, for the tests of all; {} where it needs none."""

from __future__ import annotations

from typing import Any

from tfviz.explorers.relative_terms import VIEWS

STATES: dict[str, Any] = {
    "s": [0.6, 0.9],
    "H": [[0.2, -0.3], [1.0, 0.1], [0.3, 1.1], [-0.8, 0.6]],
    "W_a": [[1.0, -0.4, 0.3], [0.5, 1.2, -0.8]],
    "U_a": [[0.7, -0.2, 0.4], [-0.3, 1.0, 0.9]],
    "v_a": [0.9, 1.1, 0.7],
    "names": ["le", "chat", "noir", "dort"],
}
SONG = "row row row your boat, gently down the stream; row by row — così è"
WORDS = ["the", "cat", "sleeps", "because", "it", "purrs"]
CARDS: dict[str, Any] = {
    "Q": [[0.0, 0.1], [0.2, 1.0], [2.0, 0.0], [0.3, 0.0], [3.0, 0.2], [2.0, 0.1]],
    "K": [[0.2, 0.0], [2.0, 0.2], [0.0, 2.0], [0.0, 0.0], [0.4, 0.0], [0.2, 2.0]],
    "V": [[0.1, 0.0], [1.0, 0.1], [0.0, 1.0], [0.0, 0.0], [0.2, 0.0], [0.1, 1.0]],
    "words": WORDS,
}
MORE_CARDS = {
    **{"dog": [[0.1, 1.0], [1.8, 0.2], [0.9, 0.1]], "barks": [[2.0, 0.0], [0.0, 2.2], [0.0, 1.1]]},
    "it": [[3.0, 0.2], [0.4, 0.0], [0.2, 0.0]],
}
ENTRIES: dict[str, Any] = {
    "query": [0.8, 0.6],
    "K": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]],
    "V": [[0.9, 0.35], [0.7, 0.9], [0.25, 0.55], [0.1, 0.2]],
    "names": ["east", "north", "west", "south"],
}
DISTANCES: dict[str, Any] = {
    "words": WORDS,
    **{"Q": CARDS["Q"], "K": CARDS["K"], "u": [0.6, 0.8], "v": [1.0, 0.3]},
    "R": [[round(0.3 * n, 2), round((-1) ** n * 0.2 * n, 2)] for n in range(-5, 6)],
    **{"row": 4, "column": 1},
}
SENTENCE = ["the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "warm"]
FATES = ["", "", "mask", "mask", "", "other", "", "", "same", ""]
# two heads over a source of three and two written tokens
MAPS: dict[str, Any] = {
    **{"source": ["b", "a", "d"], "written": ["⟨begin⟩", "d"], "said": ["d", "a"], "d": 16},
    "encoder": [[[0.5, 0.25, 0.25], [0.1, 0.9, 0.0], [0.2, 0.2, 0.6]], [[1.0, 0.0, 0.0]] * 3],
    "decoder": [[[1.0, 0.0], [0.3, 0.7]], [[1.0, 0.0], [0.5, 0.5]]],
    "cross": [[[0.1, 0.2, 0.7], [0.1, 0.8, 0.1]], [[0.0, 0.0, 1.0], [0.4, 0.3, 0.3]]],
}
PAIRS = {
    "alike": ([1.0, 0.0] * 4, [1.0, 0.0] * 4),
    "other": (
        [0.3, -1.2, 0.8, 0.5, -0.7, 0.1, 1.1, 0.4],
        [0.9, 0.2, -0.4, 1.3, 0.6, -0.8, 0.5, 0.7],
    ),
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "additive_scores": STATES,
    "attention_steps": CARDS | {"row": 4, "column": 1, "cards": MORE_CARDS},
    "block_signals": {"depth": 5, "order": "none", "skips": False},
    "merge_stepper": {"text": SONG, "merges": 2},
    **{f"relative_terms:{view}": DISTANCES | {"view": view} for view in VIEWS},
    "cache_budget": {"h_kv": 1},
    "decoding:token": {"which": 1, "p": 0.8},
    "decoding:beam": {"view": "beam"},
    "decoding:write": {"view": "write", "begin": "if the object "},
    "position_bench": {"length": 32, "row": 12, "column": 5},
    "rotary_clocks": {"pairs": PAIRS, "trained": 16},
    "soft_dictionary": ENTRIES,
    "three_maps": MAPS,
    **{
        f"training_views:{objective}": {"words": SENTENCE, "row": 3, "fates": FATES}
        | {"objective": objective}
        for objective in ("gpt", "prefix", "t5")
    },
    "trained_heads": {"texts": ["crwth crwth crwth", "the value of them"], "layer": 1, "row": 13},
}
