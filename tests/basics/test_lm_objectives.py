"""Three objectives: golden examples, counts, who is scored, who sees whom, nothing is lost."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import Case
from refusals import refused

from tfviz import patterns
from tfviz.basics.lm_objectives import (
    drop_spans,
    hide,
    prefix_lm,
    put_back,
    random_spans,
    scored_after,
    scored_loss,
)
from tfviz.models.bert import BERT
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import Sinusoidal

close = torch.testing.assert_close
rng = torch.Generator


# --- the prefix LM -------------------------------------------------------------------------------


def test_golden_prefix_mask() -> None:
    assert prefix_lm(prefix=3).mask(6).int().tolist() == [
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1, 1],
    ]


@pytest.mark.parametrize("L", [1, 2, 5, 8])
def test_it_goes_from_gpts_mask_to_berts(L: int) -> None:
    causal, full = patterns.causal().mask(L), patterns.full().mask(L)
    masks = [prefix_lm(prefix=p).mask(L) for p in range(L + 1)]
    assert torch.equal(masks[0], causal) and torch.equal(masks[1], causal)
    assert torch.equal(masks[-1], full)
    for p, (few, more) in enumerate(pairwise(masks)):
        assert (more | few == more).all()
        assert int(more.sum() - few.sum()) == p  # column p opens for the p queries above it


def test_the_prefix_formula_in_the_browser_and_its_mutants() -> None:
    assert prefix_lm.formula.javascript() == "(i, j, prefix) => i >= j || j < prefix"
    right = prefix_lm(prefix=2).mask(5)
    i, j = torch.arange(5)[:, None], torch.arange(5)
    for wrong in ((j <= 2) | (j <= i), (j < 2) | (j < i), (j < 2) & (j <= i), (i < 2) | (j <= i)):
        assert not torch.equal(wrong, right)


def test_a_model_with_a_prefix_hears_all_of_it_and_no_future_beyond() -> None:
    m = GPT(9, 16, 2, 2, positions=Sinusoidal(16), pattern=prefix_lm(prefix=3)).requires_grad_(
        False
    )
    x = torch.randint(8, (2, 7))
    out = m(x)
    inside, beyond = x.clone(), x.clone()
    inside[:, 2] += 1
    beyond[:, 5] += 1
    assert (m(inside) - out).abs().amin((0, 2)).gt(0).all()  # all positions hear the prefix
    assert torch.equal(m(beyond)[:, :5], out[:, :5])


@pytest.mark.parametrize("prefix", range(7))
def test_who_sees_the_answer_is_not_scored(prefix: int) -> None:
    mask = prefix_lm(prefix=prefix).mask(6)
    sees = [i + 1 < 6 and bool(mask[i, i + 1]) for i in range(6)]  # input i + 1 is the answer
    assert scored_after(6, prefix).tolist() == [not x for x in sees]
    assert int(scored_after(6, prefix).sum()) == 6 - max(0, prefix - 1)


# --- what is scored ------------------------------------------------------------------------------


def test_golden_loss() -> None:
    p = torch.tensor([[[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]])
    z = torch.tensor([[0, 0, 1]])
    close(scored_loss(p.log(), z), torch.tensor((math.log(2) + math.log(4) + math.log(10)) / 3))
    some = torch.tensor([[True, True, False]])
    close(scored_loss(p.log(), z, some), torch.tensor(1.5 * math.log(2)))
    refused("no True", scored_loss, p.log(), z, ~some & some)
    for wrong in (some[0], some.long()):  # one row for all; numbers would be taken for indices
        refused("Boolean for each position", scored_loss, p.log(), z, wrong)


def test_berts_gradient_comes_from_the_chosen_alone_gpts_from_all() -> None:
    z = torch.randint(8, (3, 20))
    _, scored = hide(z, 8, 8, rng().manual_seed(0))
    logits = torch.randn(3, 20, 9, requires_grad=True)
    (some,) = torch.autograd.grad(scored_loss(logits, z, scored), logits)
    assert torch.equal(some.abs().sum(-1) > 0, scored)
    (every,) = torch.autograd.grad(scored_loss(logits, z), logits)
    assert (every.abs().sum(-1) > 0).all()


def test_bert_listens_to_both_sides() -> None:
    m = BERT(9, 16, 2, 2, positions=Sinusoidal(16)).requires_grad_(False)
    x = torch.randint(8, (1, 7))
    out = m(x)
    for j in range(7):
        other = x.clone()
        other[:, j] += 1
        assert (m(other) - out).abs().amin((0, 2)).gt(0).all()


# --- BERT ----------------------------------------------------------------------------------------


def test_15_percent_are_chosen_and_the_rest_is_untouched() -> None:
    z = torch.randint(50, (400, 40))
    hidden, scored = hide(z, 50, 50, rng().manual_seed(1))
    assert (scored.sum(1) == 6).all()
    assert torch.equal(hidden[~scored], z[~scored])
    share = scored.float().mean(0)  # every place is as likely
    assert (share - 0.15).abs().max() < 0.06


def test_80_10_10() -> None:
    z = torch.randint(1000, (500, 40))
    hidden, scored = hide(z, 1000, 1000, rng().manual_seed(2))
    chosen, was = hidden[scored], z[scored]
    masked, same = (chosen == 1000).float().mean(), (chosen == was).float().mean()
    other = ((chosen != was) & (chosen != 1000)).float().mean()
    assert abs(masked - 0.8) < 0.03 and abs(same - 0.1) < 0.025 and abs(other - 0.1) < 0.025


def test_the_same_generator_hides_the_same_and_one_at_least() -> None:
    z = torch.randint(9, (4, 5))
    a, b = (hide(z, 9, 9, rng().manual_seed(7)) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert (hide(z, 9, 9, rng().manual_seed(0), share=0.01)[1].sum(1) == 1).all()
    refused("share = 15", hide, z, 9, 9, rng(), share=15)
    refused("mask = 9.5", hide, z, 9, 9.5, rng())
    for wrong in (z[0], z.float()):
        refused("token numbers (b, L)", hide, wrong, 9, 9, rng())


# --- T5 ------------------------------------------------------------------------------------------


def test_golden_spans() -> None:
    words = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "week"]
    z = list(range(10))  # the example of the paper's figure: "for inviting" and "last"
    inputs, targets = drop_spans(z, [(2, 4), (8, 9)], [100, 101, 102])
    assert inputs == [0, 1, 100, 4, 5, 6, 7, 101, 9]
    assert targets == [100, 2, 3, 101, 8, 102]
    assert [words[i] for i in targets if i < 100] == ["for", "inviting", "last"]
    assert put_back(inputs, targets, [100, 101, 102]) == z


def test_spans_at_both_ends_and_all() -> None:
    assert drop_spans([7, 8, 9], [(0, 1), (2, 3)], [50, 51, 52]) == (
        [50, 8, 51],
        [50, 7, 51, 9, 52],
    )
    assert drop_spans([7, 8], [(0, 2)], [50, 51]) == ([50], [50, 7, 8, 51])
    assert drop_spans([7, 8], [], [50]) == ([7, 8], [50])


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 80), st.integers(0, 10_000), st.floats(0.05, 0.6), st.floats(1.0, 5.0))
def test_nothing_is_lost_and_nothing_is_twice(L: int, seed: int, share: float, mean: float) -> None:
    spans = random_spans(L, rng().manual_seed(seed), share, mean)
    hidden = sum(end - start for start, end in spans)
    assert hidden == min(max(1, round(share * L)), L - 1)
    for (_, end), (start, _) in pairwise(spans):
        assert end < start  # at least one token between two holes
    assert spans[0][0] >= 0 and spans[-1][1] <= L
    sentinels = list(range(1000, 1001 + len(spans)))
    inputs, targets = drop_spans(range(L), spans, sentinels)
    assert sorted(x for x in inputs + targets if x < 1000) == list(range(L))
    assert [x for x in inputs if x >= 1000] == sentinels[:-1]
    assert [x for x in targets if x >= 1000] == sentinels
    assert len(inputs) + len(targets) == L + 2 * len(spans) + 1
    assert put_back(inputs, targets, sentinels) == list(range(L))


def test_spans_are_as_many_and_as_long_as_t5s() -> None:
    lengths = [random_spans(512, rng().manual_seed(n)) for n in range(20)]
    assert {len(spans) for spans in lengths} == {26}  # 77 tokens, 77 / 3 rounded
    assert {sum(b - a for a, b in spans) for spans in lengths} == {77}


def test_all_ways_to_place_two_holes_are_as_likely() -> None:
    # 2 tokens of 5 in two spans of one token: {0,2} {0,3} {0,4} {1,3} {1,4} {2,4}
    g = rng().manual_seed(0)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(1800):
        where = tuple(a for a, _ in random_spans(5, g, 0.4, 1.0))
        seen[where] = seen.get(where, 0) + 1
    assert sorted(seen) == [(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)]
    assert all(220 < count < 380 for count in seen.values())  # 300 ± 5 standard deviations


def test_bad_spans_are_named() -> None:
    refused("2 sentinels for 2 spans … give 3", drop_spans, range(9), [(0, 1), (3, 4)], [50, 51])
    for spans in ([(3, 4), (0, 1)], [(2, 2)], [(7, 12)], [(0, 3), (2, 5)]):
        refused("rising", drop_spans, range(9), spans, [50, 51, 52])
    for marks in ([50, 50], [50, 3]):
        refused("not new", drop_spans, range(9), [(0, 1)], marks)
    refused("[51] are in the inputs only", put_back, [1, 50, 51], [50, 7, 52], [50, 51, 52])
    refused("L = 1", random_spans, 1, rng())


def test_a_random_token_may_be_any_of_them() -> None:
    z = torch.zeros(400, 10, dtype=torch.long)
    hidden, _ = hide(z, 3, 9, torch.Generator().manual_seed(0), share=1.0)
    assert set(hidden.flatten().tolist()) == {0, 1, 2, 9}


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "the last token is never a random one",
            'anything = torch.randint(_arguments.integer("vocab", vocab, 1), (b, L)',
            'anything = torch.randint(max(1, _arguments.integer("vocab", vocab, 1) - 1), (b, L)',
        ),
        (
            "prefix of the language model one short",
            "return (j < prefix) | (i >= j)",
            "return (j < prefix - 1) | (i >= j)",
        ),
    ],
)
