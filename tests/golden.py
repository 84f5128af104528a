"""Masks of all patterns for L = 6, typed by hand: row = query, column = key, 1 = may attend.

What is here goes through all tests of patterns and of sparse attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tfviz import patterns as P

GOLDEN = {
    "full()": ["111111"] * 6,
    "causal()": ["1.....", "11....", "111...", "1111..", "11111.", "111111"],
    "band(radius=1)": ["11....", "111...", ".111..", "..111.", "...111", "....11"],
    "sliding_window(lookback=2)": ["1.....", "11....", "111...", ".111..", "..111.", "...111"],
    "dilated(radius=1, dilation=2)": ["1.1...", ".1.1..", "1.1.1.", ".1.1.1", "..1.1.", "...1.1"],
    "column(stride=2)": ["1.....", ".1....", "1.1...", ".1.1..", "1.1.1.", ".1.1.1"],
    "strided(stride=2)": ["1.....", "11....", "111...", ".111..", "1.111.", ".1.111"],
    "own_block(block=3)": ["1.....", "11....", "111...", "...1..", "...11.", "...111"],
    "summary_columns(block=3, summary=1)": [
        "......",
        "......",
        "..1...",
        "..1...",
        "..1...",
        "..1..1",
    ],
    "fixed(block=3, summary=1)": ["1.....", "11....", "111...", "..11..", "..111.", "..1111"],
    "block_local(block=2)": ["11....", "11....", "..11..", "..11..", "....11", "....11"],
    "global_tokens(count=1)": ["111111", "1.....", "1.....", "1.....", "1.....", "1....."],
    "blockwise(permutation=(2, 0, 1))": [
        "....11",
        "....11",
        "11....",
        "11....",
        "..11..",
        "..11..",
    ],
    "longformer(radius=1, n_global=1)": [
        "111111",
        "111...",
        "1111..",
        "1.111.",
        "1..111",
        "1...11",
    ],
    "etc(radius=0, n_global=2)": ["111111", "111111", "111...", "11.1..", "11..1.", "11...1"],
    "star()": ["111111", "111...", "1111..", "1.111.", "1..111", "1...11"],
    "block_window(block=2, window=0)": ["11....", "11....", "..11..", "..11..", "....11", "....11"],
    "image_1d(block=2, memory=1)": ["1.....", "11....", ".11...", ".111..", "...11.", "...111"],
    "image_2d(width=3, h_q=1, w_q=2, h_m=1, w_m=1)": [
        "1.....",
        "11....",
        ".11...",
        "1111..",
        "11111.",
        ".11.11",
    ],
    "image_2d(width=3, h_q=2, w_q=1, h_m=0, w_m=1)": [
        "1.....",
        "11.1..",
        ".11.1.",
        "1..1..",
        "11.11.",
        ".11.11",
    ],
    "image_2d_blocks(columns=3, h_q=2, w_q=1, h_m=0, w_m=1)": [
        "1.....",
        "11....",
        "111...",
        "1111..",
        "..111.",
        "..1111",
    ],
    "global_blocks(block=2, count=1)": ["111111", "111111", "11..11", "11..11", "111111", "111111"],
}


def drawn(picture: str | Sequence[str]) -> Tensor:
    """The mask of a picture, here or of a test's own; blanks between the columns do not count."""
    rows = picture.split("\n") if isinstance(picture, str) else picture
    return torch.tensor([[c == "1" for c in row if c != " "] for row in rows if row.strip()])


def make(text: str) -> P.Pattern:
    return eval(text, vars(P))
