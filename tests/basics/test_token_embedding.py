"""Merges by hand and against Hugging Face's, every text comes back, the table read in and out."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import of_no_kind, ranges, refused
from torch import nn

from tfviz import data
from tfviz.basics.token_embedding import (
    best_pair,
    decode,
    embed,
    encode,
    learn,
    learn_literally,
    merged,
    one_hot_embedding,
    pair_counts,
    pieces,
    read_out,
    vocabulary,
)
from tfviz.models import blocks
from tfviz.models.gpt import GPT

close = torch.testing.assert_close
SONG = "row row row your boat, gently down the stream, row by row"
TEXT = data.text()[:12_000]


def test_golden_merges() -> None:
    # "ab" stands three times, " ab" twice; then "ab c" once, so the tie goes to the smaller pair.
    a, b, blank = (ord(c) for c in "ab ")
    counts = pair_counts({(a, b): 1, (blank, a, b): 2, (a, a, a): 1})
    assert counts == {(a, b): 3, (blank, a): 2, (a, a): 2}
    assert best_pair(counts) == (a, b)
    assert best_pair({(5, 1): 2, (3, 9): 2, (1, 1): 1}) == (3, 9)
    assert learn("ab ab ab", 3) == [(a, b), (blank, 256)]  # then no pair is left
    assert encode("ab ab b", learn("ab ab ab", 3)).tolist() == [256, 257, blank, b]
    table = vocabulary(learn("ab ab ab", 3))
    assert table[256:] == [b"ab", b" ab"] and table[97] == b"a"


@pytest.mark.parametrize(
    ("row", "pair", "out"),
    [
        ((1, 2, 1, 2), (1, 2), (9, 9)),
        ((1, 1, 1), (1, 1), (9, 1)),  # from left to right, and none twice
        ((1, 1, 1, 1), (1, 1), (9, 9)),
        ((2, 1), (1, 2), (2, 1)),
        ((), (1, 2), ()),
    ],
)
def test_a_merge_by_hand(row: tuple[int, ...], pair: tuple[int, int], out: tuple[int, ...]) -> None:
    assert merged(row, pair, 9) == out


def test_pieces_keep_their_blank_and_lose_nothing() -> None:
    assert pieces("The cat's  hat, x_1\n") == [
        "The",
        " cat",
        "'",
        "s",
        "  ",
        "hat",
        ",",
        " x_1",
        "\n",
    ]
    assert "".join(pieces(TEXT)) == TEXT


def test_the_quick_way_is_the_definition() -> None:
    for text in (SONG, "aaaa aaa aa a", TEXT[:3000]):
        assert learn(text, 60) == learn_literally(text, 60)


def test_a_known_wrong_way_is_noticed() -> None:
    """Ties to the larger pair, or counts that forget how often a piece occurs, differ."""

    def wrong(count_pieces: bool, later: bool) -> list[tuple[int, int]]:
        rows = {tuple(p.encode()): pieces(SONG).count(p) for p in pieces(SONG)}
        learned: list[tuple[int, int]] = []
        for n in range(12):
            counts = pair_counts({r: c if count_pieces else 1 for r, c in rows.items()})
            most = max(counts.values())
            ties = sorted(p for p, c in counts.items() if c == most)
            learned.append(ties[-1 if later else 0])
            rows = {merged(r, learned[-1], 256 + n): c for r, c in rows.items()}
        return learned

    assert wrong(True, False) == learn(SONG, 12)
    assert wrong(True, True) != learn(SONG, 12) != wrong(False, False)


def test_merges_are_hugging_faces() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    text = TEXT.encode("ascii", "ignore").decode()
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=len(set(text)) + 150, show_progress=False, special_tokens=[]
    )
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Split(
        tokenizers.Regex(r" ?\w+| ?[^\w\s]+|\s+"), "isolated"
    )
    theirs.train_from_iterator([text], trainer)
    ours = learn(text, 150)
    table = vocabulary(ours)
    names = {table[n].decode() for n in range(256, 406)}
    assert names <= set(theirs.get_vocab())
    cut = [table[n].decode() for n in encode(text, ours).tolist()]
    assert theirs.encode(text).tokens == cut


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=40))
def test_every_text_comes_back(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return  # half a surrogate pair is no text
    merges = learn(SONG, 20)
    assert decode(encode(text, merges), merges) == text


def test_encoding_is_the_merges_one_by_one_and_never_grows_longer() -> None:
    merges = learn(TEXT, 80)
    rows = [tuple(piece.encode()) for piece in pieces(TEXT[:2000])]
    lengths = [sum(map(len, rows))]
    for n, pair in enumerate(merges):
        rows = [merged(row, pair, 256 + n) for row in rows]
        lengths.append(sum(map(len, rows)))
        if n % 20 == 19:
            flat = [token for row in rows for token in row]
            assert encode(TEXT[:2000], merges[: n + 1]).tolist() == flat
    assert lengths == sorted(lengths, reverse=True)


def test_no_token_crosses_a_cut() -> None:
    for token in vocabulary(learn(TEXT, 200))[256:]:
        assert len(pieces(token.decode(errors="replace"))) == 1


def test_a_lookup_is_a_product_with_one_hot_rows() -> None:
    E, t = torch.randn(7, 3, dtype=torch.float64), torch.tensor([[0, 6, 3], [3, 3, 1]])
    close(embed(t, E), one_hot_embedding(t, E))
    close(embed(t, E)[0, 1], E[6])
    close(embed(t, E, scale=3**0.5), 3**0.5 * E[t])
    module = blocks.Embedding(7, 3, scale=2.0).double()
    close(module(t), embed(t, module.weight, 2.0))


def test_only_rows_that_are_read_get_a_gradient_and_twice_if_read_twice() -> None:
    E = torch.randn(5, 2, requires_grad=True)
    embed(torch.tensor([4, 1, 4]), E).sum().backward()
    assert E.grad is not None
    close(E.grad, torch.tensor([0.0, 1.0, 0.0, 0.0, 2.0])[:, None].expand(5, 2))


def test_reading_out_is_the_same_table_transposed() -> None:
    H, E = torch.randn(4, 3), torch.randn(6, 3)
    close(read_out(H, E), torch.nn.functional.linear(H, E))
    model = GPT(6, 8, 2, 1)
    t = torch.tensor([[2, 5, 0]])
    close(model(t), read_out(model.stack(model.embed(t)), model.embed.weight))


def test_tying_saves_a_table() -> None:
    V, d = 50, 8
    tied = GPT(V, d, 2, 1)
    untied = nn.ModuleList([tied, nn.Linear(d, V, bias=False)])
    count = lambda m: sum(p.numel() for p in m.parameters())  # noqa: E731
    assert count(untied) - count(tied) == V * d


def test_bad_input_is_named() -> None:
    E = torch.randn(5, 2)
    ranges(partial(learn, "ab"), merges=(2, 0))
    refused("tokens 0 … 9, but E has rows 0 … 4", embed, torch.tensor([0, 9]), E)
    refused("merges[0] = (300, 1)", vocabulary, [(300, 1)])
    for number in (-1, 257):
        says = f"ids holds {number}, but 1 merges make … 0 … 256"
        refused(says, decode, torch.tensor([97, number]), [(97, 98)])
    for t in (torch.tensor([True, False]), torch.tensor([1, 0]).byte()):
        of_no_kind(f"t is {t.dtype}; give whole numbers", embed, t, E)
    assert decode(torch.tensor([0xC3]), []) == "�"
    assert learn("", 5) == [] and encode("", []).shape == (0,)
