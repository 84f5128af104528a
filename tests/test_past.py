"""Pasts against the plainest thing: all rows in one tensor, and a list of positions."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
import torch
from laws import streamed
from refusals import refused
from torch import Tensor
from torch.utils._pytree import tree_map_only

from tfviz import EncoderDecoder, generate
from tfviz import patterns as P
from tfviz.basics.cache_cost import cache_bytes, cache_bytes_of, kept_bytes
from tfviz.cores import Dense, Kept, Sparse
from tfviz.heads.grouped_query_attention import Grouped
from tfviz.longer_context.alibi import Alibi
from tfviz.longer_context.da_transformer import DA
from tfviz.longer_context.transformer_xl_recurrence import resumed, saved
from tfviz.models.gpt import GPT
from tfviz.past import Past
from tfviz.position.rope import Rope
from tfviz.position.shaw_relative import Shaw
from tfviz.position.t5_relative_bias import T5Bias
from tfviz.position.xl_relative import XL
from tfviz.priors.gaussian_transformer import Gaussian

WINDOW = P.sliding_window(lookback=2)
SINKS = P.causal() & (WINDOW | P.global_tokens(count=2))
TEXT = torch.randint(11, (2, 24), generator=torch.Generator().manual_seed(1))


def rows(n: int, b: int = 2) -> tuple[Tensor, Tensor]:
    K, V = torch.randn(2, b, 3, n, 4)
    return K, V


def is_like(past: Past, K: Tensor, V: Tensor, at: list[int]) -> None:
    assert past.at.tolist() == at and past.rows == len(at)
    for held, whole in zip(past.gather(), (K, V), strict=True):
        assert held.equal(whole[:, :, at])
    assert past.bytes == sum(x.numel() * 4 for x in past.gather())


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_tree_of_pasts_in_which_each_stays_what_it_was(seed: int, grad: bool) -> None:
    """Appended to, cut and branched off at random; every one of them is looked at in the end."""
    rng, torch_rng = random.Random(seed), torch.manual_seed(seed)
    assert torch_rng
    with torch.set_grad_enabled(grad):
        tree = [(Past(), *rows(0))]
        for _ in range(60):
            past, K, V = rng.choice(tree[-3:] if rng.random() < 0.8 else tree)
            if rng.random() < 0.2:
                length = rng.randint(0, past.length)
                tree.append((past.cut(length), K[:, :, :length], V[:, :, :length]))
                continue
            k, v = rows(rng.choice([1, 1, 1, 2, 7]))
            K, V = torch.cat([K, k], 2), torch.cat([V, v], 2)
            tree.append((past.append(k, v), K, V))
        for past, K, V in tree[1:]:
            assert past.is_whole
            if past.length:
                is_like(past, K, V, list(range(past.length)))


@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.parametrize("last", [0, 1, 3, 9])
def test_windows_and_sinks(last: int, first: int) -> None:
    rng, (K, V) = random.Random(10 * last + first), rows(60)
    with torch.no_grad():
        past, n = Past(), 0
        while n < 60:
            m = min(rng.choice([1, 1, 2, 11]), 60 - n)
            past = past.append(K[:, :, n : n + m], V[:, :, n : n + m]).keep(last, first)
            n += m
            at = sorted({*range(min(first, n)), *range(max(0, n - last), n)})
            is_like(past, K, V, at)
            again = pickle.loads(pickle.dumps(past))
            is_like(again, K, V, at)
            assert again.length == n and again.runs == past.runs


def test_a_token_is_written_in_constant_work() -> None:
    """Rows are copied when a store is full, so twice at the most, and the others are written."""

    def written(L: int) -> int:
        past, stores, total = Past(), set[int](), 0
        k, v = rows(1, 1)
        for _ in range(L):
            past = past.append(k, v)
            total += 1
            if id(past._store) not in stores:
                stores.add(id(past._store))
                total += past.rows
                alive.append(past._store)
        return total

    alive: list[Any] = []
    with torch.no_grad():
        assert written(4096) < 3 * 4096
        past = Past()
        for _ in range(4096):
            past = past.append(*rows(1, 1)).keep(5, 2)
        assert past._store.tensors[0].shape[2] <= 2 * 6 + 2 * 16


def test_whoever_was_there_before_is_not_written_over() -> None:
    with torch.no_grad():
        base = Past().append(*rows(5)).append(*rows(1))
        one, other = rows(1), rows(1)
        a, b = base.append(*one), base.append(*other)
        assert a.gather()[0][:, :, 6:].equal(one[0]) and b.gather()[0][:, :, 6:].equal(other[0])


def test_gradients_pass_and_are_those_of_cat() -> None:
    K, V = (x.requires_grad_() for x in rows(6))
    past = Past()
    for k, v in zip(K.split(2, 2), V.split(2, 2), strict=True):
        past = past.append(k, v)
    k, v = past.gather()
    (k.square().sum() + v.sum()).backward()
    assert K.grad is not None and torch.allclose(K.grad, 2 * K)
    assert V.grad is not None and V.grad.eq(1).all()


def test_what_a_graph_has_saved_is_not_written_into() -> None:
    """Numbers that were kept without gradients may be needed for those of a query."""
    with torch.no_grad():
        past = Past().append(*rows(5)).append(*rows(1))
    Q = torch.randn(2, 3, 1, 4, requires_grad=True)
    with_query = past.append(*rows(1))
    s = (Q @ with_query.gather()[0].mT).sum()
    with torch.no_grad():
        past.append(*rows(1)), with_query.append(*rows(1))
    s.backward()


def test_trees_of_tensors_pass_through_it() -> None:
    with torch.no_grad():
        past = Past().append(*rows(9)).keep(3, 2)
        half = tree_map_only(Tensor, lambda x: x[1:], past)
        assert half.runs == past.runs and half.gather()[0].equal(past.gather()[0][1:])


def test_bad_input_is_named() -> None:
    past = Past().append(*rows(9))
    refused("rows are 1 tensors, 2 are held", past.append, rows(1)[0])
    refused("the cache is of 2 texts, now there are 3", past.append, *rows(1, 3))
    refused("give as many heads of the same width", past.append, *2 * [torch.ones(2, 3, 1, 5)])
    refused("give (b, h_kv, n, width), with one n", past.append, rows(1)[0], rows(2)[0])
    refused("length = 10 is out of range", past.cut, 10)
    refused("go on from the past of that time", past.keep(3).cut, 8)
    refused("of the first rows 1 are kept", past.keep(3, 1).keep, 3, 2)
    refused("the first of which begins at 0", Past.of, rows(4), [(1, 2), (6, 9)])
    refused("cannot take back a part of it", Kept(5, torch.ones(1)).cut, 4)


# --- models that forget ---------------------------------------------------------------------------

FORGET = [
    Dense,
    Rope,
    Alibi,
    T5Bias,
    XL,
    Sparse,
    Grouped,
    DA,
    Gaussian,
    lambda d_head: Shaw(d_head, 3),
]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("core", FORGET)
def test_a_window_keeps_its_window(core: Any, grad: bool) -> None:
    torch.manual_seed(0)
    made = GPT(11, 16, 2, 3, core=core, layer=lambda n: {"pattern": WINDOW} if n else {}).double()
    for p in made.parameters():
        p.data += 0.1 * torch.randn_like(p)
    with torch.set_grad_enabled(grad):
        cache: dict = {}
        torch.testing.assert_close(streamed(made, TEXT, [7, 1, 1, 12, 1, 1, 1], cache), made(TEXT))
        assert [kept.state.rows for kept in cache.values()] == [24, 3, 3]


@pytest.mark.parametrize("core", [Dense, Rope])
def test_sinks_keep_first_and_last(core: Any) -> None:
    torch.manual_seed(0)
    made = GPT(11, 16, 2, 2, core=core, pattern=SINKS).double()
    with torch.no_grad():
        cache: dict = {}
        torch.testing.assert_close(streamed(made, TEXT, [7, 1, 1, 12, 1, 2], cache), made(TEXT))
        assert all(kept.state.at.tolist() == [0, 1, 21, 22, 23] for kept in cache.values())
        close = GPT(11, 16, 2, 1, core=T5Bias, pattern=SINKS).double()
        torch.testing.assert_close(streamed(close, TEXT, 3, cache := {}), close(TEXT))
        assert next(iter(cache.values())).state.is_whole  # a bias would take gaps for neighbours


def test_what_the_cache_of_a_model_holds() -> None:
    near = GPT(11, 16, 2, 3, layer=lambda n: {"pattern": WINDOW} if n else {})
    cache: dict = {}
    with torch.no_grad():
        near(TEXT, cache)
    sizes = {"h_kv": 2, "d_head": 8, "b": 4, "batch": 2}
    wanted = cache_bytes(L=24, N=1, **sizes) + cache_bytes(L=3, N=2, **sizes)
    assert kept_bytes(cache) == wanted == cache_bytes_of(near, 24, 2)
    assert cache_bytes_of(near, 1000) - cache_bytes_of(near, 999) == 2 * 16 * 4


def test_a_forgetful_cache_is_stored_and_goes_on() -> None:
    made = GPT(11, 16, 2, 2, core=Rope, pattern=SINKS).double()
    first, rest = TEXT.split(12, 1)
    with torch.no_grad():
        cache: dict = {}
        streamed(made, first, 3, cache)
        again = resumed(made, pickle.loads(pickle.dumps(saved(made, cache))))
        wanted = streamed(made, rest, 3, cache)
        assert streamed(made, rest, 3, again).equal(wanted)


def test_padding_and_windows() -> None:
    """Each text as if alone, with rows that are forgotten."""
    made = GPT(11, 16, 2, 2, core=Rope, pattern=WINDOW).double()
    mask = torch.ones(2, 24, dtype=torch.bool)
    mask[0, :5] = False
    with torch.no_grad():
        cache: dict = {}
        parts = [
            made(t, cache, attention_mask=mask[:, : n + 8])
            for n, t in zip(range(0, 24, 8), TEXT.split(8, 1), strict=True)
        ]
        out = torch.cat(parts, 1)
        torch.testing.assert_close(out[:1, 5:], made(TEXT[:1, 5:]))
        torch.testing.assert_close(out[1:], made(TEXT[1:]))


# --- drafts ---------------------------------------------------------------------------------------


def counting(model: Any) -> list[int]:
    """How many tokens each call of the model reads, from now on."""
    seen = list[int]()
    model.register_forward_pre_hook(lambda _, given: seen.append(given[0].shape[1]))
    return seen


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"core": Rope, "pattern": WINDOW},
        {"pattern": SINKS},
        {"layer": lambda n: {"pattern": WINDOW} if n else {}},
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_draft_changes_no_token(options: Any, seed: int) -> None:
    torch.manual_seed(seed)
    model = GPT(11, 16, 2, 2, **options).double()
    wanted = generate(model, TEXT[:, :5], 16)
    rng = random.Random(seed)

    def half_right(t: Tensor) -> Tensor:
        n = rng.randint(0, 5)
        guess = wanted[:, t.shape[1] : t.shape[1] + n].clone()
        if guess.shape[1] and rng.random() < 0.6:
            guess[rng.randrange(2), rng.randrange(guess.shape[1])] += 1
        return guess % 11

    assert generate(model, TEXT[:, :5], 16, draft=half_right).equal(wanted)
    mask = torch.ones(2, 5, dtype=torch.bool)
    for hidden in (slice(0, 2), slice(3, 5)):
        padded = mask.clone()
        padded[0, hidden] = False
        told = generate(model, TEXT[:, :5], 8, attention_mask=padded)
        wanted = torch.cat([told, wanted[:, told.shape[1] :]], 1)
        drafted = generate(model, TEXT[:, :5], 8, draft=half_right, attention_mask=padded)
        assert drafted.equal(told)


def test_a_right_draft_saves_calls_and_a_wrong_one_costs_none() -> None:
    model = GPT(11, 16, 2, 2).double()
    wanted = generate(model, TEXT[:, :5], 30)
    seen = counting(model)
    generate(model, TEXT[:, :5], 30, draft=lambda t: wanted[:, t.shape[1] : t.shape[1] + 4])
    assert seen == [9, 5, 5, 5, 5, 5]
    seen.clear()
    generate(
        model, TEXT[:, :5], 6, draft=lambda t: (wanted[:, t.shape[1] : t.shape[1] + 4] + 1) % 11
    )
    assert seen == [9, 5, 4, 3, 2, 1]  # rows are cut: nothing is read twice
    refused("draft guesses for 1 texts, t has 2", generate, model, TEXT, 3, draft=lambda t: t[:1])


def test_a_cross_attention_takes_nothing_back() -> None:
    both = EncoderDecoder(11, 16, 2, 1).double()
    memory, cache = both.encode(TEXT), dict[Any, Any]()
    both.decode(TEXT[:, :3], memory, None, cache)
    cross = [kept for module, kept in cache.items() if module is both.decoder.blocks[0].cross]
    refused("cannot take back a part of it", cross[0].cut, 2)


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/past.py": [
        ("rows are written over", "store.used != self._end", "store.used < self._end"),
        ("a window of one row more", "self._end - min(last, ", "self._end - 1 - min(last, "),
        ("first rows that are forgotten", "if self.is_whole and first > self.first:", "if False:"),
        ("a cut that leaves its rows", "on._end = max(self._begin, self._end - gone)", "pass"),
        ("a store that grows row by row", "max(2 * n, n + ROOM)", "n"),
    ],
    "tfviz/cores.py": [
        ("gaps that are taken for neighbours", "span.first and not gaps", "False"),
        ("rows that are kept for nobody", "self.keep(past.keep(*span))", "self.keep(past)"),
    ],
    "tfviz/models/use.py": [
        ("a guess that is kept, right or not", ".all(0).cumprod(0)", ".all(0) * 0 + 1"),
    ],
}
