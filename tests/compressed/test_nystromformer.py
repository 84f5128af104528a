"""Nyströmformer: three thin matrices, the steps of the pseudo-inverse, and the code of others."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, Function, H, L, agree_with_gradients, qkv, work_grows_no_faster
from refusals import of_no_kind, ranges, refused
from three import three
from torch import Tensor

from tfviz import BERT, GPT, attention, implied_map
from tfviz.compressed import nystromformer as nys
from tfviz.cores import Where

M = torch.tensor([[0.8, 0.2], [0.4, 0.6]], dtype=torch.float64)
INVERSE = torch.tensor([[1.5, -0.5], [-1.0, 2.0]], dtype=torch.float64)


def test_landmarks_by_hand() -> None:
    X = torch.tensor([[1.0], [3.0], [5.0], [11.0]])
    assert nys.landmarks(X, 2).tolist() == [[2.0], [8.0]]
    assert nys.landmarks(X, 4).equal(X)
    refused("m = 3 landmarks do not divide L = 4 tokens; choose a divisor", nys.landmarks, X, 3)


def test_the_iteration_by_hand() -> None:
    """Column sums 1.2 and 0.8, row sums 1: the first guess is Mᵀ/1.2; six steps are enough."""
    torch.testing.assert_close(nys.iterated_inverse(M, 0), M.mT / 1.2)
    torch.testing.assert_close(nys.iterated_inverse(M), INVERSE, atol=1e-9, rtol=0)
    assert (nys.iterated_inverse(M, 3) - INVERSE).abs().max() > 0.01


def test_a_step_takes_what_is_missing_to_its_third_power() -> None:
    matrices = torch.rand(5, 4, 4, dtype=torch.float64).softmax(-1)
    for n in range(4):
        R, after = (torch.eye(4) - matrices @ nys.iterated_inverse(matrices, k) for k in (n, n + 1))
        torch.testing.assert_close(after, (3 * R @ R @ R + R @ R @ R @ R) / 4)


def test_without_an_inverse_it_finds_the_pseudo_inverse() -> None:
    """Two equal rows: no inverse. The iteration leaves alone what is exactly zero."""
    equal = torch.tensor([[0.75, 0.25], [0.75, 0.25]], dtype=torch.float64)
    assert torch.linalg.matrix_rank(equal) == 1
    torch.testing.assert_close(nys.iterated_inverse(equal, 8), torch.linalg.pinv(equal))


def test_a_small_singular_value_grows_by_thirteen_quarters_a_step() -> None:
    """So six steps, which are 1,178 times, do not reach what stands below; there the exact inverse
    is huge, and theirs is not."""
    near = torch.tensor([[0.5 + 1e-4, 0.5 - 1e-4], [0.5, 0.5]], dtype=torch.float64)
    sizes = [torch.linalg.svdvals(nys.iterated_inverse(near, n))[1] for n in (3, 4, 5)]
    assert [round((b / a).item(), 3) for a, b in itertools.pairwise(sizes)] == [3.25] * 2
    assert torch.linalg.svdvals(torch.linalg.pinv(near))[0] > 1e4
    assert torch.linalg.svdvals(nys.iterated_inverse(near))[0] < 2


def test_three_matrices_by_hand() -> None:
    """Two landmarks. A query that weighs them 0.9 : 0.1 applies 1.25 of the first landmark's row
    and −0.25 of the second's: 0.6, 0.35, 0.075, −0.025, which sum to one."""
    of_landmarks = torch.tensor([[0.5, 0.3, 0.1, 0.1], [0.1, 0.1, 0.2, 0.6]], dtype=torch.float64)
    rows = torch.tensor([[0.7, 0.3], [0.9, 0.1]], dtype=torch.float64)
    wanted = [[0.4, 0.25, 0.125, 0.225], [0.6, 0.35, 0.075, -0.025]]
    got = rows @ nys.iterated_inverse(M) @ of_landmarks
    torch.testing.assert_close(got, torch.tensor(wanted, dtype=torch.float64))


def test_with_all_tokens_as_landmarks_it_is_attention() -> None:
    leaves = Q, K, V = tuple(x.requires_grad_() for x in qkv())
    wanted = attention(Q, K, V)[0]
    agree_with_gradients(nys.nystrom_attention(Q, K, V, L, None), wanted, leaves)
    six = nys.nystrom_attention(Q, K, V, L)
    assert 1e-4 < (six - wanted).abs().max() < 1  # six steps are not the inverse


def test_rows_sum_to_one_and_entries_may_be_negative() -> None:
    Q, K, V = qkv()
    A = nys.nystrom_definition(Q, K, V, 3, None)[1]
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    assert A.min() < -0.01


def test_equal_landmarks_weigh_as_their_mean() -> None:
    """M has equal rows and no inverse; its pseudo-inverse gives every query the mean map."""
    Q, K, V = (torch.ones(1, 1, 4, 2), torch.ones(1, 1, 4, 2), torch.eye(4)[None, None])
    torch.testing.assert_close(nys.nystrom_attention(Q, K, V, 2), torch.full((1, 1, 4, 4), 0.25))


def test_a_later_token_changes_an_earlier_answer() -> None:
    Q, K, V = qkv()
    later = V.clone()
    later[:, :, -1] += 1
    core = nys.Nystrom(H, 3).double()
    change = core(Q, K, later, Where())[0] - core(Q, K, V, Where())[0]
    assert (change[:, :, 0] != 0).all()


def test_a_causal_model_is_refused() -> None:
    gpt = GPT(11, 16, 2, 2, core=partial(nys.Nystrom, m=2))
    refused("each landmark is a mean … encoders", gpt, torch.zeros(1, 8).long())
    bert = BERT(11, 16, 2, 2, core=partial(nys.Nystrom, m=2))
    assert bert(torch.zeros(1, 8).long()).isfinite().all()


def test_the_convolution_is_a_band_of_the_map() -> None:
    """Entry (i, j) of the map gains number j − i of the kernel, whose middle is number 0."""
    Q, K, V = qkv()
    core = nys.Nystrom(H, 3, kernel=3).double()
    extra = implied_map(core, Q, K, V) - nys.nystrom_definition(Q, K, V, 3)[1]
    assert core.kernel is not None
    for shift, column in ((-1, 0), (0, 1), (1, 2)):
        wanted = core.kernel[:, column, None].expand(H, L - abs(shift)).detach()
        torch.testing.assert_close(extra.diagonal(shift, -2, -1)[0], wanted)
    assert extra.triu(2).abs().max() < 1e-12


# --- the code of others ---------------------------------------------------------------------------


def hugging_face(m: int, length: int, kernel: int | None = None) -> Any:
    """Their layer without its projections, with the weights of a random kernel."""
    theirs = pytest.importorskip("transformers.models.nystromformer.modeling_nystromformer")
    config = pytest.importorskip("transformers").NystromformerConfig(
        hidden_size=H * D,
        num_attention_heads=H,
        num_landmarks=m,
        segment_means_seq_len=length,
        conv_kernel_size=kernel or 1,
        inv_coeff_init_option=False,
    )
    layer = theirs.NystromformerSelfAttention(config).double().eval()
    layer.conv_kernel_size = kernel  # None is refused by their configuration
    layer.query = layer.key = layer.value = torch.nn.Identity()
    return layer


def heads(X: Tensor) -> Tensor:
    return X.unflatten(-1, (H, -1)).transpose(1, 2)


@pytest.mark.parametrize("kernel", [None, 5])
def test_parity_with_hugging_face(kernel: int | None) -> None:
    """With the first guess of each matrix on its own, which is not their default."""
    layer = hugging_face(3, L, kernel)
    layer.init_option = "of each matrix"
    X = torch.randn(2, L, H * D, dtype=torch.float64)
    core = nys.Nystrom(H, 3, kernel=kernel).double()
    if kernel:
        core.kernel = torch.nn.Parameter(layer.conv.weight.data.view(H, kernel))
    ours = core(*3 * [heads(X)], Where())[0]
    torch.testing.assert_close(ours.transpose(1, 2).flatten(2), layer(X)[0])


def test_by_default_hugging_face_lets_texts_of_a_batch_meet() -> None:
    """Z₀ is divided by the largest column sum of all heads and texts. Ours is not."""
    layer, X = hugging_face(3, L), torch.randn(2, L, H * D, dtype=torch.float64)
    X = X / 4  # small queries and keys: an iteration that is not yet at its end
    loud = torch.cat([X[:1], 20 * X[1:]])
    assert (layer(X)[0][0] - layer(loud)[0][0]).abs().max() > 1e-4
    ours = [nys.nystrom_attention(*three(3 * [heads(x)]), 3)[0] for x in (X, loud)]
    assert ours[0].equal(ours[1])


def test_with_all_landmarks_hugging_face_takes_softmax_attention() -> None:
    X = torch.randn(1, L, H * D, dtype=torch.float64)
    wanted = attention(*three(3 * [heads(X)]))[0].transpose(1, 2).flatten(2)
    torch.testing.assert_close(hugging_face(L, L)(X)[0], wanted)


def test_parity_with_the_package() -> None:
    """For one text and one head, where its first guess of a whole batch is that of a matrix; and
    it puts zeros in front where m does not divide L."""
    package = pytest.importorskip("nystrom_attention")
    theirs = package.NystromAttention(D, D, 1, num_landmarks=3, residual_conv_kernel=3).double()
    X = torch.randn(1, L, D, dtype=torch.float64)
    core = nys.Nystrom(1, 3, kernel=3).double()
    core.kernel = torch.nn.Parameter(theirs.res_conv.weight.data.view(1, 3))
    for text in (X, X[:, 1:]):
        padded = torch.nn.functional.pad(text, (0, 0, L - text.shape[1], 0))
        parts = [x[:, None] for x in theirs.to_qkv(padded).chunk(3, -1)]
        out = theirs.to_out(core(*parts, Where())[0][:, 0])[:, -text.shape[1] :]
        torch.testing.assert_close(out, theirs(text))
    theirs.pinv_iterations = 2  # not yet at its end
    loud = torch.cat([X, 20 * X])  # and in a batch its texts meet, as by default in Hugging Face
    assert (theirs(loud)[0] - theirs(X)[0]).abs().max() > 1e-4


def test_masking_one_matrix_of_three_is_not_causal() -> None:
    """What xformers does for `causal=True`: the mask is for the landmarks' look at the text only.
    The first query still reads the last landmark, whose stretch is later."""
    Q, K, _ = qkv()
    Q_m, K_m = nys.landmarks(Q, 3), nys.landmarks(K, 3)
    scores = [a @ b.mT / math.sqrt(D) for a, b in ((Q, K_m), (Q_m, K_m), (Q_m, K))]
    ends = torch.arange(3)[:, None] * 3 + 2
    scores[2] = scores[2].masked_fill(torch.arange(L) > ends, -math.inf)
    C_q, middle, C_k = (s.softmax(-1) for s in scores)
    A = C_q @ nys.iterated_inverse(middle) @ C_k
    assert A[:, :, 0, 1:].abs().amax(-1).min() > 1e-3


# --- costs and refusals ---------------------------------------------------------------------------


def test_work_grows_with_the_length() -> None:
    work_grows_no_faster(lambda L: partial(nys.nystrom_attention, m=16), 1.1)


def test_bad_input_is_named() -> None:
    X = qkv()
    ranges(partial(nys.Nystrom, H), m=(3, 1))
    ranges(partial(nys.Nystrom, H, 3), steps=(6, 0))
    ranges(partial(nys.iterated_inverse, M), steps=(6, 0))
    refused("kernel = 4 has no middle; give an odd width", nys.Nystrom, H, 3, kernel=4)
    refused("kernel = 0", nys.Nystrom, H, 3, kernel=0)
    refused("m = 4 landmarks do not divide L = 9", nys.Nystrom(H, 4), *X, Where())
    refused("m = 0", nys.nystrom_attention, *X, 0)
    of_no_kind("K", nys.nystrom_attention, X[0], [1.0], X[2], 3)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: nys.Nystrom, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """With the convolution as a band that is added to the map."""
    A = nys.nystrom_definition(Q, K, V, core.m, core.steps)[1]
    if core.kernel is not None:
        n, width = Q.shape[2], core.kernel.shape[1]
        at = torch.arange(n) - torch.arange(n)[:, None] + width // 2
        band = core.kernel[:, at.clamp(0, width - 1)] * ((at >= 0) & (at < width))
        A = A + band
    return A @ V, A


ENCODER: dict[str, Any] = {
    "answers": "whole",
    "causal": False,
    "shares_sum_to_one": False,
    "grows": 1.0,
}

CASE = Case(
    lambda: nys.Nystrom(H, 3),
    defined,
    sized=lambda n: nys.Nystrom(H, 16),
    **ENCODER,
    variants={
        "with a convolution": Case(
            lambda: nys.Nystrom(H, 3, kernel=3),
            defined,
            sized=lambda n: nys.Nystrom(H, 16, kernel=3),
            **ENCODER,
        ),
        "exact": Case(
            lambda: nys.Nystrom(H, 3, None),
            defined,
            sized=lambda n: nys.Nystrom(H, 16, None),
            **ENCODER,
        ),
    },
    functions={
        "nystrom": Function(
            lambda Q, K, V: nys.nystrom_attention(Q, K, V, 6),
            lambda Q, K, V: nys.nystrom_definition(Q, K, V, 6),
        )
    },
    mutants=[
        ("Nyström whose landmarks are sums", "(m, L // m)).mean(-2)", "(m, L // m)).sum(-2)"),
        ("a first guess that is not turned over", "Z = M.mT / size", "Z = M / size"),
        ("an iteration with a wrong number", "13 * one - MZ", "12 * one - MZ"),
        (
            "a convolution that is turned round",
            "self.kernel[:, None]",
            "self.kernel.flip(1)[:, None]",
        ),
        (
            "landmarks of queries for those of keys",
            "_fused.attention(q, K_m, Z",
            "_fused.attention(q, Q_m, Z",
        ),
    ],
)
