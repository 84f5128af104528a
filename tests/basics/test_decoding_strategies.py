"""Decoding: cut-offs by hand and against Hugging Face, beams against all sequences there are."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import Case
from refusals import of_no_kind, ranges, refused
from torch import Tensor

from tfviz.basics.decoding_strategies import (
    Hypothesis,
    Next,
    beam_search,
    distinct,
    length_penalty,
    next_of,
    nucleus,
    sample,
    temperature,
    top_k,
)
from tfviz.models.gpt import GPT
from tfviz.models.use import generate
from tfviz.position.sinusoidal_pe import Sinusoidal

close = torch.testing.assert_close
P = torch.tensor([0.1, 0.4, 0.05, 0.25, 0.2], dtype=torch.float64)


def kept(logits: Tensor) -> list[int]:
    return logits.isfinite().nonzero()[:, 0].tolist()


# --- one token ------------------------------------------------------------------------------------


def test_golden_cuts() -> None:
    assert kept(top_k(P.log(), 2)) == [1, 3]
    assert kept(nucleus(P.log(), 0.6)) == [1, 3]  # .4 + .25 ≥ .6
    assert kept(nucleus(P.log(), 0.7)) == [1, 3, 4]  # .4 + .25 < .7
    assert kept(nucleus(P.log(), 0.4)) == [1]
    close(top_k(P.log(), 2).softmax(-1), torch.tensor([0, 40, 0, 25, 0.0]).double() / 65)
    hot = temperature(P.log(), 2.0).softmax(-1)
    close(hot, P.sqrt() / P.sqrt().sum())  # p^{1/τ}
    cold = temperature(P.log(), 0.5).softmax(-1)
    close(cold, P**2 / (P**2).sum())


def test_limits() -> None:
    likeliest = torch.nn.functional.one_hot(P.argmax(), 5).double()
    for only in (temperature(P.log(), 0.0), top_k(P.log(), 1), nucleus(P.log(), 0.0)):
        close(only.softmax(-1), likeliest)
    close(temperature(P.log(), 1e-3).softmax(-1), likeliest)
    for all_ in (temperature(P.log(), 1.0), top_k(P.log(), 5), nucleus(P.log(), 1.0)):
        close(all_.softmax(-1), P)
    close(top_k(P.log(), 99), P.log())  # more than there are
    close(temperature(P.log(), 1e9).softmax(-1), torch.full_like(P, 0.2))


def test_ties_go_to_the_smaller_token() -> None:
    even = torch.zeros(6)
    assert kept(top_k(even, 2)) == [0, 1]
    assert kept(nucleus(even.double(), 0.5)) == [0, 1, 2]
    assert kept(temperature(even, 0.0)) == [0]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 30), st.floats(0.01, 0.999))
def test_a_nucleus_is_the_smallest_set_that_holds_its_share(seed: int, V: int, p: float) -> None:
    logits = 3 * torch.randn(2, V, generator=torch.Generator().manual_seed(seed)).double()
    for row, cut in zip(logits, nucleus(logits, p), strict=True):
        weight, chosen = row.softmax(-1), cut.isfinite()
        assert chosen.any() and weight[chosen].sum() >= p - 1e-9
        assert chosen.sum() == 1 or weight[chosen].sum() - weight[chosen].min() < p + 1e-9
        assert weight[chosen].min() >= (weight[~chosen].max() if (~chosen).any() else 0)
        close(cut[chosen], row[chosen])


def test_hugging_face_cuts_the_same() -> None:
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logits = 2 * torch.randn(40, 50)
    no_text = torch.zeros(40, 1, dtype=torch.long)
    for k in (1, 7, 50):
        close(top_k(logits, k), TopKLogitsWarper(k)(no_text, logits))
    for p in (0.1, 0.5, 0.9, 0.99):
        close(nucleus(logits, p), TopPLogitsWarper(p)(no_text, logits))
    close(temperature(logits, 0.7), TemperatureLogitsWarper(0.7)(no_text, logits))


def test_samples_follow_the_probabilities() -> None:
    rng = torch.Generator().manual_seed(0)
    drawn = sample(P.log().expand(20_000, 5), rng)
    close(torch.bincount(drawn, minlength=5) / 20_000, P.float(), atol=0.01, rtol=0)
    assert sample(P.log(), rng).shape == () and sample(P.log().expand(2, 3, 5)).shape == (2, 3)
    assert set(sample(top_k(P.log(), 2).expand(500, 5), rng).tolist()) == {1, 3}
    a, b = (sample(P.log().expand(9, 5), torch.Generator().manual_seed(4)) for _ in range(2))
    assert torch.equal(a, b)


# --- beams ----------------------------------------------------------------------------------------


def toy(seed: int, V: int = 3, order: int = 5) -> Next:
    """Log-probabilities that depend on all tokens so far, and on nothing else."""
    table = 2 * torch.randn(V**order, V, generator=torch.Generator().manual_seed(seed)).double()

    def next_log_p(rows: Tensor, parent: Tensor) -> Tensor:
        code = sum(rows[:, k] * V**k for k in range(rows.shape[1]))
        return table[code % len(table)].log_softmax(-1)

    return next_log_p


def all_sequences(
    log_p: Next, V: int, steps: int, end: int | None = None, alpha: float = 0.0
) -> list[tuple[tuple[int, ...], float]]:
    """Every complete or full-length sequence and its score, the best first."""
    found: dict[tuple[int, ...], float] = {}
    for tokens in product(range(V), repeat=steps):
        length = tokens.index(end) + 1 if end in tokens else steps
        y = tokens[:length]
        total = 0.0
        for n in range(length):
            row = torch.tensor([(0, *y[:n])])
            total += log_p(row, torch.zeros(1, dtype=torch.long))[0, y[n]].item()
        found[y] = total / ((5 + length) / 6) ** alpha
    return sorted(found.items(), key=lambda item: -item[1])


START = torch.tensor([0])


@pytest.mark.parametrize("seed", range(4))
def test_a_beam_that_holds_everything_finds_the_best(seed: int) -> None:
    best = all_sequences(toy(seed), 3, 4)
    found = beam_search(toy(seed), START, 4, width=27)  # 3^(4−1)
    assert [y.tokens for y in found] == [tokens for tokens, _ in best[:27]]
    close([y.log_p for y in found], [total for _, total in best[:27]])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_with_an_end_and_a_length_penalty_too(alpha: float) -> None:
    for seed in range(3):
        best = all_sequences(toy(seed), 3, 4, end=2, alpha=alpha)
        found = beam_search(toy(seed), START, 4, width=100, end=2, alpha=alpha)
        assert [y.tokens for y in found] == [tokens for tokens, _ in best]
        close([y.score for y in found], [score for _, score in best])
        for y in found:
            assert y.complete == (y.tokens[-1] == 2)
            close(y.score, y.log_p / length_penalty(len(y.tokens), alpha))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_beam_of_one_is_greedy(alpha: float) -> None:
    for seed in range(5):
        log_p, row = toy(seed), START[None]
        for _ in range(6):
            row = torch.cat([row, log_p(row, START).argmax(-1, keepdim=True)], 1)
        (y,) = beam_search(log_p, START, 6, width=1, alpha=alpha)
        assert list(y.tokens) == row[0, 1:].tolist()


def test_a_wider_beam_may_find_less() -> None:
    """True for most trees, false for some: here are some."""
    scores = {
        seed: [beam_search(toy(seed), START, 5, width=B)[0].log_p for B in (1, 2, 3, 4, 81)]
        for seed in range(60)
    }
    worse = [seed for seed, s in scores.items() if any(b < a - 1e-9 for a, b in pairwise(s))]
    assert 0 < len(worse) < 20
    assert all(max(s) == pytest.approx(s[-1]) for s in scores.values())  # 3^4 is exact


def test_length_penalty_by_hand() -> None:
    assert length_penalty(1, 2.0) == length_penalty(77, 0.0) == 1.0
    assert length_penalty(7, 1.0) == 2.0 and length_penalty(19, 2.0) == 16.0
    # the misprint ((5 + n)^α) / 6 is not it
    assert length_penalty(7, 2.0) == 4.0 != (5 + 7) ** 2 / 6


def test_without_a_penalty_short_ones_win() -> None:
    def next_log_p(rows: Tensor, parent: Tensor) -> Tensor:
        return torch.tensor([0.7, 0.3]).log().expand(len(rows), 2)  # 1 ends

    short, *_ = beam_search(next_log_p, START, 8, width=4, end=1)
    assert short.tokens == (1,)
    long, *_ = beam_search(next_log_p, START, 8, width=4, end=1, alpha=2.0)
    assert len(long.tokens) == 8


def test_what_cannot_come_does_not_come() -> None:
    def next_log_p(rows: Tensor, parent: Tensor) -> Tensor:
        return torch.tensor([0.0, -math.inf, -math.inf]).expand(len(rows), 3)

    assert [y.tokens for y in beam_search(next_log_p, START, 3, width=5)] == [(0, 0, 0)]


def small_gpt() -> GPT:
    model = GPT(13, 16, 2, 2, positions=Sinusoidal(16)).eval()
    model.embed.weight.data *= 4  # opinions that differ
    return model


def without_cache(model: GPT) -> Next:
    return lambda rows, parent: model(rows)[:, -1].log_softmax(-1)


@pytest.mark.parametrize("seed", range(3))
def test_the_cache_follows_the_beam(seed: int) -> None:
    torch.manual_seed(seed)
    model, prompt = small_gpt(), torch.tensor([3, 1, 4])
    mine = beam_search(next_of(model), prompt, 8, width=4, end=2, alpha=0.7)
    theirs = beam_search(without_cache(model), prompt, 8, width=4, end=2, alpha=0.7)
    assert [y.tokens for y in mine] == [y.tokens for y in theirs]
    close([y.log_p for y in mine], [y.log_p for y in theirs], atol=1e-4, rtol=1e-5)


def test_greedy_generation_is_a_beam_of_one() -> None:
    model, prompt = small_gpt(), torch.tensor([3, 1, 4])
    (y,) = beam_search(next_of(model), prompt, 9, width=1)
    assert list(y.tokens) == generate(model, prompt[None], 9)[0, 3:].tolist()


def test_hugging_face_finds_the_same_beam() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=19, n_positions=32, n_embd=16, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(config).eval()
    model.transformer.wte.weight.data *= 30
    prompt = torch.tensor([5, 7])
    theirs = model.generate(
        prompt[None], num_beams=3, num_return_sequences=3, max_new_tokens=6, length_penalty=0.0,
        do_sample=False, eos_token_id=None, pad_token_id=0, attention_mask=torch.ones(1, 2),
    )  # fmt: skip
    mine = beam_search(lambda rows, _: model(rows).logits[:, -1].log_softmax(-1), prompt, 6, 3)
    assert [list(y.tokens) for y in mine] == theirs[:, 2:].tolist()


# --- what was written -----------------------------------------------------------------------------


def test_distinct() -> None:
    assert distinct("abab", 2) == 2 / 3  # ab ba ab
    assert distinct([1, 1, 1, 1, 1], 4) == 1 / 2
    assert distinct("abcdef", 4) == 1.0
    assert distinct(torch.ones(5, dtype=torch.long), 4) == 1 / 2  # numbers, not tensors


def test_bad_arguments_are_named() -> None:
    ranges(partial(temperature, P), tau=(1.0, 0.0))
    ranges(partial(top_k, P), k=(2, 1))
    ranges(partial(nucleus, P), p=(0.5, 0.0, 1.0))
    ranges(partial(beam_search, toy(0), START), steps=(2, 0), width=(1, 1), alpha=(1.0, 0.0))
    ranges(length_penalty, n=(3, 0), alpha=(1.0, 0.0))
    refused("tokens has 2", distinct, "ab", 3)
    search = partial(beam_search, lambda rows, _: torch.full((len(rows), 5), math.nan))
    refused("prompt is empty", search, torch.tensor([], dtype=torch.long), 3, 2)
    refused("prompt has shape (1, 1)", search, torch.tensor([[1]]), 3, 2)
    of_no_kind("prompt is torch.float32", search, torch.tensor([1.0]), 3, 2)
    refused("log-probabilities are NaN", search, torch.tensor([1]), 3, 2)


def test_nothing_to_do() -> None:
    assert beam_search(toy(0), START, 0, width=3) == [Hypothesis((), 0.0, 0.0)]


def test_ends_may_be_a_tensor() -> None:
    def three(rows: Tensor, parent: Tensor) -> Tensor:
        return torch.tensor([0.1, 0.1, 0.1, 0.6, 0.1]).log().expand(len(rows), -1)

    (found,) = beam_search(three, torch.tensor([1]), 4, 1, end=torch.tensor([3, 4]))
    assert found.complete and found.tokens == (3,)
    assert beam_search(three, torch.tensor([1]), 4, 1, end=3) == [found]


def test_cuts_stay_on_their_device() -> None:
    logits = torch.zeros(2, 5, device="meta")
    for cut in (top_k(logits, 2), nucleus(logits, 0.5), temperature(logits, 0.0)):
        assert cut.device.type == "meta" and cut.shape == (2, 5)


@pytest.mark.parametrize(("tau", "dtype"), [(1e-38, torch.float32), (1e-4, torch.float16)])
def test_hardly_any_heat_is_greedy(tau: float, dtype: torch.dtype) -> None:
    for logits in (P.log(), P.log() - 3, P.log() + 30):
        close(temperature(logits.to(dtype), tau).softmax(-1), torch.eye(5, dtype=dtype)[1])


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "a beam's cache that is not put in the beams' order",
            "lambda x: x[parent]",
            "lambda x: x",
        ),
        (
            "nucleus keeps one token too few",
            "first | (before < p)",
            "first | (before + ordered < p)",
        ),
        (
            "length penalty without its 6",
            '(5 + _arguments.integer("n", n, 0)) / 6',
            '(5 + _arguments.integer("n", n, 0)) / 5',
        ),
    ],
)
