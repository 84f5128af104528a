"""LSH attention: the sorted chunks are the softmax over the union of all who met."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from golden import drawn
from laws import (
    Case,
    D,
    agree_with_gradients,
    work_grows_no_faster,
)
from refusals import refused
from torch import Tensor

from tfviz.sparse import reformer_lsh as lsh

GOLDEN = """
    1 . . 1 . .
    . 1 1 . . .
    . 1 1 . . .
    1 . . 1 . .
    . . . . 1 1
    . . . . 1 1
"""


def qv(L: int = 24, d: int = 6) -> tuple[Tensor, Tensor]:
    Q, V = (torch.randn(2, 3, L, n, dtype=torch.float64) for n in (d, d - 1))
    return Q.requires_grad_(), V.requires_grad_()


def test_the_hand_sorted_six() -> None:
    angles = torch.tensor([10.0, 100.0, 80.0, -20.0, 200.0, 160.0]).deg2rad()
    X = torch.stack([angles.cos(), angles.sin()], -1)
    R = (torch.eye(2)[None],)  # b = 4: east, north, west, south
    found = lsh.order(X, R, chunk=2)
    assert found.bucket.tolist() == [[0, 1, 1, 0, 2, 2]]
    assert found.by.tolist() == [[0, 3, 1, 2, 4, 5]]
    wanted = drawn(GOLDEN)
    assert lsh.meetings(found)[0].equal(wanted)
    assert lsh.meetings(found, causal=True)[0].equal(wanted.tril())


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("rounds", "chunk"), [(1, 4), (2, 8), (4, 4), (3, 24), (5, 1)])
def test_chunks_are_the_softmax_over_the_union(is_causal: bool, rounds: int, chunk: int) -> None:
    leaves, R = qv(), lsh.directions(6, 4, rounds)
    union = lsh.meetings(lsh.order(leaves[0], R, chunk), is_causal).any(-3)
    wanted, A = lsh.lsh_definition(*leaves, union)
    got = lsh.lsh_attention(*leaves, R, chunk, is_causal)
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    agree_with_gradients(got, wanted, leaves)


def test_hashes_know_directions_only() -> None:
    X, R = torch.randn(50, 8), lsh.directions(8, 6, rounds=3)
    assert lsh.buckets(3.7 * X, R).equal(lsh.buckets(X, R))
    assert lsh.buckets(-X, R).equal((lsh.buckets(X, R) + 3) % 6)


@pytest.mark.parametrize("b", range(2, 700, 14))
def test_many_buckets_are_two_numbers(b: int) -> None:
    found = lsh.even_factors(b)
    assert all(x % 2 == 0 for x in found) and b <= math.prod(found) <= max(64, 1.3 * b)
    X = torch.randn(64, 8)
    assert lsh.buckets(X, lsh.directions(8, found)).min() >= 0
    assert lsh.buckets(X, lsh.directions(8, found)).max() < math.prod(found)


def test_one_chunk_and_one_bucket_are_full_attention_but_for_oneself() -> None:
    Q, V = qv()
    everywhere = Q.detach().abs()  # all in one bucket of R = (1, …, 1)
    R = (torch.ones(1, 6, 1, dtype=torch.float64),)
    for chunk in (12, 24):
        got = lsh.lsh_attention(everywhere, V, R, chunk, causal=True)
        all_ = torch.ones(24, 24, dtype=torch.bool).tril()
        torch.testing.assert_close(got, lsh.lsh_definition(everywhere, V, all_)[0])
    torch.testing.assert_close(got[:, :, 0], V[:, :, 0])  # the first meets nobody but itself


@pytest.mark.parametrize("theta", [0.3, 1.2, 2.5])
def test_two_vectors_share_a_bucket_as_often_as_their_angle_says(theta: float) -> None:
    pair = torch.tensor([[1.0, 0.0], [math.cos(theta), math.sin(theta)]])
    found = lsh.buckets(pair, lsh.directions(2, 2, rounds=20_000))
    share = (found[:, 0] == found[:, 1]).double().mean().item()
    assert abs(share - lsh.collision(theta)) < 4 * math.sqrt(0.25 / 20_000)


def test_a_later_token_may_change_who_meets() -> None:
    """No word of the future is read, but where the chunks are cut depends on it."""
    Q, V = (x.detach() for x in qv())
    R = lsh.directions(6, 4)
    later = Q.clone()
    later[..., 20:, :] = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    before, after = (lsh.lsh_attention(q, V, R, 4, causal=True)[..., :20, :] for q in (Q, later))
    assert not before.equal(after)
    one = (lsh.lsh_attention(q, V, R, 24, causal=True)[..., :20, :] for q in (Q, later))
    torch.testing.assert_close(*one)  # in a single chunk nothing is cut


def test_work_grows_with_the_length() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        R = lsh.directions(16, lsh.even_factors(2 * L // 64), rounds=2)
        return partial(lsh.lsh_attention, R=R, chunk=64, causal=True)

    work_grows_no_faster(attend, 1.2, largest=1.3, leaves=lambda L: 2 * [(1, 1, L, 16)])


@pytest.mark.parametrize("is_decoder", [False, True])
def test_parity_with_hugging_face(is_decoder: bool) -> None:
    from transformers import ReformerConfig
    from transformers.models.reformer.modeling_reformer import LSHSelfAttention

    torch.manual_seed(0)
    config = ReformerConfig(
        hidden_size=12, num_attention_heads=2, attention_head_size=6, num_hashes=3, num_buckets=4,
        lsh_attn_chunk_length=4, lsh_num_chunks_before=1, lsh_num_chunks_after=0, hash_seed=5,
        is_decoder=is_decoder, lsh_attention_probs_dropout_prob=0.0, axial_pos_shape=(4, 6),
        axial_pos_embds_dim=(6, 6),
    )  # fmt: skip
    theirs = LSHSelfAttention(config).double().eval()
    X = torch.randn(2, 24, 12, dtype=torch.float64)
    with torch.no_grad():
        wanted = theirs(X).hidden_states
    Q, V = (
        layer(X).detach().unflatten(-1, (2, 6)).transpose(1, 2)
        for layer in (theirs.query_key, theirs.value)
    )
    torch.manual_seed(5)
    R = (torch.randn(2, 6, 3, 2, dtype=torch.float64).transpose(1, 2),)
    got = lsh.lsh_attention(Q, V, R, 4, is_decoder, ported=True)
    torch.testing.assert_close(got.transpose(1, 2).flatten(2), wanted, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(lsh.lsh_attention(Q, V, R, 4, is_decoder), got, atol=1e-3)


@pytest.mark.parametrize("is_causal", [False, True])
def test_parity_with_reformer_pytorch(is_causal: bool) -> None:
    """Asked for buckets and for pairs that count once, both of which it leaves out by itself. It
    adds 1e-9 to N before the logarithm."""
    theirs = pytest.importorskip("reformer_pytorch").LSHAttention(
        bucket_size=4, n_hashes=3, causal=is_causal, attend_across_buckets=False,
        allow_duplicate_attention=False,
    )  # fmt: skip
    Q, V = torch.randn(2, 6, 24, 6, dtype=torch.float64)
    Q, V = Q[None], V[None]
    R = lsh.directions(6, 6, rounds=3)
    own = lsh.order(Q, R, 4).bucket + 6 * torch.arange(3)[:, None]  # theirs are numbered through
    theirs.hash_vectors = lambda *_, **__: own[0].flatten(1)
    wanted = theirs.eval()(Q[0], V[0])[0]
    got = lsh.lsh_attention(Q, V, R, 4, is_causal)
    torch.testing.assert_close(got[0], wanted, atol=1e-6, rtol=1e-6)


def test_gradients_can_be_differentiated() -> None:
    Q, V = qv()
    R = lsh.directions(6, 4, 2)
    union = lsh.meetings(lsh.order(Q, R, 8)).any(-3)
    ways = lsh.lsh_attention(Q, V, R, 8), lsh.lsh_definition(Q, V, union)[0]
    first = [torch.autograd.grad(out.sin().sum(), Q, create_graph=True)[0] for out in ways]
    agree_with_gradients(first[0], first[1], [Q, V])


def test_bad_input_is_named() -> None:
    Q, V = qv()
    refused("b = 3 is odd; buckets come in pairs", lsh.directions, 6, 3)
    refused("chunk = 5 does not divide L = 24", lsh.lsh_attention, Q, V, lsh.directions(6, 4), 5)
    refused("X has rows of 6 numbers, R is for 8", lsh.buckets, Q, lsh.directions(8, 4))
    uneven = (*lsh.directions(6, 4, rounds=2), *lsh.directions(6, 4, rounds=1))
    refused("R are for [2, 1] rounds; draw", lsh.lsh_attention, Q, V, uneven, 4)
    refused("theta = 4", lsh.collision, 4)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def over_the_union(
    core: lsh.LSH, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    R = lsh.directions(D, 4, core.rounds, core.seed)
    union = lsh.meetings(lsh.order(Q, R, core.chunk)).any(-3) & mask
    return lsh.lsh_definition(Q, V, union)


ROUNDING = "a bucket that rounding changes brings other pairs together"


CASE = Case(
    lambda: lsh.LSH(D, chunk=3, rounds=2, b=4),
    over_the_union,
    answers="whole",
    sized=lambda L: lsh.LSH(D, chunk=16),
    grows=1.0,
    but={
        "the_future_changes_no_bit": "where the sorted tokens are cut depends on later ones",
        "any_real_type": ROUNDING,
        "half_precision_is_near": ROUNDING,
    },
    mutants=[
        (
            "pairs of several rounds counted as often as they meet",
            "never |= ~earlier",
            "pass",
        ),
        (
            "chunks that look on instead of back",
            "torch.cat([by[:, r - 1, None, -m:], i], 1)",
            "torch.cat([i, by[:, r - 1, None, :m]], 1)",
        ),
    ],
)
