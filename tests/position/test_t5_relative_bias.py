"""T5's bias: bucket edges by hand, Hugging Face's buckets and bias, limits, errors."""

from __future__ import annotations

import math

import pytest
import torch
from laws import Case, H, distance
from refusals import refused
from torch import Tensor

from tfviz import attention
from tfviz.position.t5_relative_bias import T5Bias, bucket, edges


def test_golden_edges() -> None:
    assert edges(8, 32) == [0, 1, 2, 3, 4, 7, 12, 20]  # 4 · 8^(m/4): 4, 6.7, 11.3, 19.03
    assert edges(8, 64) == [0, 1, 2, 3, 4, 8, 16, 32]  # 4 · 2^m, exactly: rounding would hurt here
    assert edges(32, 128)[14:] == [*range(14, 17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]  # fmt: skip  # noqa: E501


def test_golden_buckets() -> None:
    n = torch.tensor([-9, -1, 0, 1, 3, 4, 6, 7, 11, 12, 19, 20, 32, 1000])
    assert bucket(n, 8, 32).tolist() == [0, 0, 0, 1, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7]
    # two sides of four: 0, 1, then 2 to 7 and 8 to …; keys after the query from 4 on
    assert bucket(n, 8, 32, bidirectional=True).tolist() == [
        7,
        5,
        0,
        1,
        2,
        2,
        2,
        2,
        3,
        3,
        3,
        3,
        3,
        3,
    ]


@pytest.mark.parametrize("buckets, far", [(32, 128), (16, 100), (32, 300)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_hugging_face_buckets(buckets: int, far: int, bidirectional: bool) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    n = torch.arange(-700, 701)
    theirs = T5Attention._relative_position_bucket(-n, bidirectional, buckets, far)
    assert bucket(n, buckets, far, bidirectional=bidirectional).equal(theirs)


def test_the_formula_where_rounding_cannot_hurt() -> None:
    first, e = edges(32, 128), 16
    for n in range(17, 128):
        exact = e + (32 - e) * math.log(n / e) / math.log(128 / e)
        assert abs(exact - round(exact)) > 1e-9
        assert bucket(torch.tensor(n)).item() == min(31, math.floor(exact))
    assert first == sorted(set(first)) and len(first) == 32


def test_buckets_never_go_back_and_widths_grow() -> None:
    b = bucket(torch.arange(600))
    assert (b.diff() >= 0).all() and (b.diff() <= 1).all() and b.max() == 31
    widths = torch.bincount(b)[:-1]
    assert (widths[:16] == 1).all() and (widths[17:].diff() >= -1).all()
    assert (b[128:] == 31).all()


MUTANTS = {
    "later keys as earlier ones": lambda n: bucket(n.abs()),
    "j - i": lambda n: bucket(-n),
    "all buckets exact": lambda n: n.clamp(0, 31),
    "edges one too far": lambda n: bucket((n - 1).clamp(min=0)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_noticed(name: str) -> None:
    n = torch.arange(-200, 201)
    assert not MUTANTS[name](n).equal(bucket(n))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_hugging_face_bias(bidirectional: bool) -> None:
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(d_model=12, d_kv=4, num_heads=3, is_decoder=not bidirectional)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = T5Bias(3, bidirectional=bidirectional)
    ours.b.data = theirs.relative_attention_bias.weight.detach().T.clone()
    Q = torch.randn(1, 3, 40, 4)
    seen = torch.ones(40, 40).bool() if bidirectional else torch.ones(40, 40).bool().tril()
    expected = theirs.compute_bias(40, 40)[0]
    assert ours.bias(Q, Q)[:, seen].equal(expected[:, seen])


def test_it_begins_by_doing_nothing_and_learns() -> None:
    made = T5Bias(3)
    Q = torch.randn(2, 3, 5, 4)
    assert made.bias(Q, Q).eq(0).all() and made.bias(Q, Q).shape == (3, 5, 5)
    made.bias(Q, Q).softmax(-1).square().sum().backward()
    assert made.b.grad is not None and made.b.grad.shape == (3, 32)


def test_errors_say_what_to_do() -> None:
    for buckets, far, words in ((7, 30, "buckets = 7 is odd"), (8, 4, "far = 4"), (0, 9, "= 0")):
        refused(words, edges, buckets, far)
    refused("h = 0", T5Bias, 0)
    for make in (
        lambda: T5Bias(2, buckets=6, bidirectional=True),
        lambda: bucket(torch.arange(3), 6, 30, bidirectional=True),
    ):
        refused("buckets = 6 … a multiple of 4", make)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def by_buckets(
    core: T5Bias, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    row = bucket(distance(Q.shape[2]), core.buckets, core.far, bidirectional=core.bidirectional)
    one_hot = torch.nn.functional.one_hot(row, core.buckets).to(core.b.dtype)
    return attention(Q, K, V, mask, bias=core.scale * torch.einsum("ijr,hr->hij", one_hot, core.b))


CASE = Case(
    lambda: T5Bias(H, buckets=4, far=6),
    by_buckets,
    variants={
        "two sides": Case(lambda: T5Bias(H, buckets=8, far=5, bidirectional=True), by_buckets),
    },
    mutants=[
        (
            "bucket of the future not shifted",
            "+ side * (n < 0)",
            "+ side * (n < -1)",
        ),
    ],
)
