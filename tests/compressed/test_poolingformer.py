"""Poolingformer: a window of tokens, then a wider one of pooled keys that reads its output."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, Function, L, agree_with_gradients, qkv, work_grows_no_faster
from refusals import refused
from three import three
from torch import Tensor

from tfviz import BERT, GPT, attention, implied_map, patterns
from tfviz.compressed import poolingformer as pool
from tfviz.models.use import attention_weights

SIZES = [(4, 3, 3), (7, 1, 1), (5, 5, 3), (11, 3, 5), (30, 5, 7), (0, 1, 1)]


def test_six_tokens_by_hand() -> None:
    """Equal keys: a query takes the mean of its slots. κ = ξ = 3, so the slots of token 2 are the
    tokens 0 (two of its three are not there), 1 … 3, and 4, 5."""
    V = torch.tensor([6.0, 3.0, 6.0, 9.0, 10.0, 20.0])[None, None, :, None]
    out = pool.pooled_window_attention(0 * V, 0 * V, V, w2=4, kernel=3, stride=3)
    assert torch.allclose(out[0, 0, 2], torch.tensor([(6 + 6 + 15) / 3]))


def test_pooling_by_hand() -> None:
    X = torch.tensor([1.0, 5.0, 3.0])[:, None]
    assert pool.mean_pool(X, 3)[:, 0].tolist() == [1, 3, 3, 4, 3]
    assert pool.max_pool(X, 3)[:, 0].tolist() == [1, 5, 5, 5, 3]
    assert pool.mean_pool(X, 1).equal(X) and pool.max_pool(X, 1).equal(X)


@pytest.mark.parametrize(("w2", "count"), [(4, 3), (1, 1), (7, 5), (10, 7)])
def test_how_many_slots(w2: int, count: int) -> None:
    assert pool.slots(w2, kernel=3, stride=3) == count == (2 * w2 + 1) // 3


def in_loops(
    Q: Tensor, K: Tensor, V: Tensor, w2: int, kernel: int, stride: int, largest: bool
) -> Tensor:
    """One head, as a person would read the formula: slots from the left end of the window."""
    rows = []
    for i in range(len(Q)):
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for start in range(i - w2, i + w2 + 2 - kernel, stride):
            there = [j for j in range(start, start + kernel) if 0 <= j < len(K)]
            if there:
                for kept, X in ((keys, K), (values, V)):
                    kept.append(X[there].amax(0) if largest else X[there].mean(0))
        A = (torch.stack(keys) @ Q[i] / math.sqrt(len(Q[i]))).softmax(-1)
        rows.append(A @ torch.stack(values))
    return torch.stack(rows)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("largest", [False, True])
def test_the_formula_in_loops(sizes: tuple[int, int, int], largest: bool) -> None:
    X, how = qkv(23), pool.max_pool if largest else pool.mean_pool
    got = pool.pooled_window_attention(*X, *sizes, how)[1, 2]
    Q, K, V = (x[1, 2] for x in X)
    torch.testing.assert_close(got, in_loops(Q, K, V, *sizes, largest))


@pytest.mark.parametrize("sizes", SIZES)
def test_gradients_of_the_definition(sizes: tuple[int, int, int]) -> None:
    leaves = three(x.requires_grad_() for x in qkv(23))
    wanted = pool.pooled_window_definition(*leaves, *sizes)[0]
    agree_with_gradients(pool.pooled_window_attention(*leaves, *sizes), wanted, leaves)


def test_without_pooling_and_with_all_tokens_it_is_attention() -> None:
    X = qkv()
    got = pool.pooled_window_attention(*X, w2=L, kernel=1, stride=1)
    torch.testing.assert_close(got, attention(*X)[0])


def test_a_window_without_pooling_is_a_band() -> None:
    X = qkv()
    got = pool.pooled_window_attention(*X, w2=2, kernel=1, stride=1)
    torch.testing.assert_close(got, attention(*X, patterns.band(radius=2))[0])


def test_equal_keys_pool_to_themselves() -> None:
    X = torch.randn(D).expand(L, D)
    for how in (pool.mean_pool, pool.max_pool):
        torch.testing.assert_close(how(X, 5), X[:1].expand(L + 4, D))


def test_max_pooling_applies_no_matrix() -> None:
    refused("not linear in V", implied_map, pool.PooledWindow(4, 3, 3, pool.max_pool), *qkv())


# --- both levels ----------------------------------------------------------------------------------


def two(w1: int = 2, w2: int = 4, kernel: int = 3, stride: int = 3) -> pool.Poolingformer:
    return pool.Poolingformer(16, 2, w1=w1, w2=w2, kernel=kernel, stride=stride).double()


def test_the_second_level_reads_what_the_first_has_found() -> None:
    """And is added to it; each level has projections of its own."""
    model, X = two(), torch.randn(2, 12, 16, dtype=torch.float64)
    Y = model.near(X)
    torch.testing.assert_close(model(X), Y + model.far(Y))
    assert (model(X) - (Y + model.far(X))).abs().max() > 0.01
    learned = sum(p.numel() for p in model.parameters())
    assert learned == 2 * sum(p.numel() for p in model.near.parameters())
    model(X).sum().backward()
    assert all(p.grad is not None and p.grad.any() for n, p in model.named_parameters()
               if not n.endswith("W_qkv.bias"))  # fmt: skip


@pytest.mark.parametrize(("w1", "w2"), [(2, 4), (1, 7), (3, 1)])
def test_its_reach_is_both_windows_together(w1: int, w2: int) -> None:
    model, X = two(w1, w2), torch.randn(1, 41, 16, dtype=torch.float64, requires_grad=True)
    model(X)[0, 20].sum().backward()
    assert X.grad is not None
    read = X.grad[0].abs().sum(-1).nonzero()[:, 0]
    assert (read.min(), read.max()) == (20 - w1 - w2, 20 + w1 + w2)


def test_a_model_shows_the_maps_of_both_levels() -> None:
    model = BERT(11, 16, 2, 1, mix=pool.two_levels(2, 4, 3, 3))
    maps = attention_weights(model, torch.zeros(1, 12).long())
    near, far = (maps[f"stack.blocks.0.attend.{level}"] for level in ("near", "far"))
    i, j = torch.arange(12)[:, None], torch.arange(12)
    assert (near[..., (i - j).abs() > 2] == 0).all() and (far[..., (i - j).abs() > 4] == 0).all()
    for A in (near, far):
        torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))


def test_what_looks_ahead_is_refused() -> None:
    levels = pool.two_levels(2, 4, 3, 3)
    refused("look both ways; Poolingformer is for encoders", GPT, 11, 16, 2, 2, mix=levels)
    core = partial(pool.PooledWindow, 4, 3, 3)
    refused("pool tokens after the query", GPT(11, 16, 2, 2, core=core), torch.zeros(1, 8).long())
    X = torch.randn(1, 9, 16, dtype=torch.float64)
    refused("a cache cannot keep windows", two(), X, cache={})
    padded = torch.ones(1, 9, dtype=torch.bool)
    refused("without padding", two(), X, attention_mask=padded)


# --- costs and refusals ---------------------------------------------------------------------------


def test_work_grows_with_the_length() -> None:
    """With gradients, up to 16,384 tokens."""

    def attend(L: int) -> Callable[..., Tensor]:
        return partial(pool.pooled_window_attention, w2=25, kernel=3, stride=3)

    work_grows_no_faster(attend, 1.1)


def test_bad_input_is_named() -> None:
    refused("kernel = 4 has no token in its middle; give an odd one, e.g. 5", pool.slots, 8, 4, 4)
    refused("do not end at w2 = 5; give w2 = 4 or 7", pool.slots, 5, 3, 3)
    refused("do not end at w2 = 1; give w2 = 2 or 5", pool.two_levels, 2, 1, 5, 3)
    refused("stride = 0", pool.slots, 4, 3, 0)
    refused("kernel = 0", pool.PooledWindow, 4, 0, 1)
    refused("w2 = -1", pool.slots, -1, 1, 1)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: pool.PooledWindow, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    out, read = pool.pooled_window_definition(Q, K, V, core.w2, core.kernel, core.stride)
    return out, read @ pool.mean_pool(torch.eye(Q.shape[2]).to(Q), core.kernel)


SHAPE: dict[str, Any] = {"w2": 4, "kernel": 3, "stride": 3}
CASE = Case(
    lambda: pool.PooledWindow(**SHAPE),
    defined,
    answers="whole",
    causal=False,
    grows=1.0,
    functions={
        "pooled window": Function(
            partial(pool.pooled_window_attention, **SHAPE),
            partial(pool.pooled_window_definition, **SHAPE),
        )
    },
    mutants=[
        ("a mean that counts what is not there", "return total / count", "return total / kernel"),
        (
            "a second level that reads the input",
            "Y + self.far(Y, memory, attention_mask)",
            "Y + self.far(X, memory, attention_mask)",
        ),
        ("a second level without the first", "return Y + self.far", "return self.far"),
        (
            "slots that stand beside their query",
            "out[..., half : half + Q.shape[-2], :]",
            "out[..., : Q.shape[-2], :]",
        ),
        (
            "slots one token apart",
            "dilated(radius=sides, dilation=stride)",
            "dilated(radius=sides, dilation=1)",
        ),
    ],
)
