"""Arguments of one explorer of each kind, for the tests of all; {} where it needs none."""

from __future__ import annotations

from typing import Any

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
EXAMPLES: dict[str, dict[str, Any]] = {
    "additive_scores": STATES,
    "attention_steps": CARDS | {"row": 4, "column": 1},
    "block_signals": {"depth": 5, "order": "none", "skips": False},
    "merge_stepper": {"text": SONG, "merges": 2},
}
