"""Linformer: attention to k mixed keys and values, and the four ways to share the matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, Function, H, L, agree_with_gradients, qkv, work_grows_no_faster
from refusals import of_no_kind, refused
from torch import Tensor

from tfviz import BERT, GPT, attention, implied_map
from tfviz.compressed import linformer as lin
from tfviz.cores import Where

GOLDEN = [[0.5, 0.5, 0, 0, 0, 0], [0, 0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 0.5, 0.5]]


def test_pooling_by_hand() -> None:
    assert lin.mean_pooling(3, 6).tolist() == GOLDEN
    kernel = torch.tensor([2.0, -1.0])
    assert lin.strided_convolution(kernel, 2).tolist() == [[2, -1, 0, 0], [0, 0, 2, -1]]
    X = torch.randn(5, 12)
    wanted = torch.nn.functional.conv1d(X[:, None], kernel[None, None], stride=2)[:, 0]
    torch.testing.assert_close(X @ lin.strided_convolution(kernel, 6).mT, wanted)


def test_four_tokens_by_hand() -> None:
    """Keys 0 and ln 9 in pairs of equal ones: the query weighs the pairs 1 : 9, each half by
    half."""
    K = torch.tensor([0.0, 0.0, math.log(9), math.log(9)])[None, None, :, None]
    Q, V = torch.ones(1, 1, 4, 1), torch.tensor([10.0, 20.0, 30.0, 50.0])[None, None, :, None]
    E = lin.mean_pooling(2, 4)
    out, A = lin.linformer_definition(Q, K, V, E, E)
    torch.testing.assert_close(A[0, 0, 0], torch.tensor([0.05, 0.05, 0.45, 0.45]))
    torch.testing.assert_close(out[0, 0, 0], torch.tensor([0.1 * 15 + 0.9 * 40]))


def test_with_all_positions_and_no_mixing_it_is_attention() -> None:
    Q, K, V = leaves = tuple(x.requires_grad_() for x in qkv())
    one = torch.eye(L, dtype=torch.float64)
    got = lin.linformer_attention(Q, K, V, one, one)
    agree_with_gradients(got, attention(Q, K, V)[0], leaves)


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_its_map_has_rank_k(k: int) -> None:
    Q, K, V = qkv()
    core = lin.Linformer(H, L, k).double()
    A = implied_map(core, Q, K, V)
    assert (torch.linalg.matrix_rank(A, rtol=1e-10) == min(k, L)).all()
    exact = attention(Q, K, V)[1]
    assert torch.linalg.matrix_rank(exact).min() == L  # what the softmax makes has full rank


def test_rows_sum_to_what_f_sums_to() -> None:
    """P has rows of shares, so a row of A sums to a mean of the row sums of F."""
    Q, K, V = qkv()
    E = torch.randn(3, L, dtype=torch.float64)
    pooled = implied_map(partial(_with, E, lin.mean_pooling(3, L).double()), Q, K, V)
    torch.testing.assert_close(pooled.sum(-1), torch.ones_like(pooled[..., 0]))
    free = implied_map(partial(_with, E, E), Q, K, V)
    assert (free < 0).any() and (free.sum(-1) - 1).abs().max() > 0.1


def _with(E: Tensor, F: Tensor, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Any:
    return lin.linformer_attention(Q, K, V, E, F), None


def test_max_pooling_applies_no_matrix() -> None:
    """The paper's other pooling is not linear in V."""

    def pooled(Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, None]:
        K, V = (x.unflatten(2, (3, 3)).amax(3) for x in (K, V))
        return attention(Q, K, V)[0], None

    refused("not linear in V", implied_map, pooled, *qkv())


def test_a_later_token_changes_an_earlier_answer() -> None:
    Q, K, V = qkv()
    core = lin.Linformer(H, L, 3).double()
    later = V.clone()
    later[:, :, -1] += 1
    change = core(Q, K, later, Where())[0] - core(Q, K, V, Where())[0]
    assert (change[:, :, 0] != 0).all()


def test_a_causal_model_is_refused() -> None:
    gpt = GPT(11, 16, 2, 2, core=partial(lin.Linformer, length=8, k=2))
    refused("each row of E mixes all positions … encoders", gpt, torch.zeros(1, 8).long())


# --- sharing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sharing", "count"), [("none", 288), ("headwise", 24), ("key-value", 12)])
def test_how_many_matrices_a_model_has(sharing: str, count: int) -> None:
    """The paper counts 24, 12 and 1 for twelve layers of twelve heads (§4); 288 is ours."""
    assert lin.matrices(sharing, N=12, h=12) == count
    core = partial(lin.Linformer, length=8, k=2, sharing=sharing)
    _has(BERT(11, 12, 12, 12, core=core), count)


def test_one_matrix_for_all_layers() -> None:
    assert lin.matrices("layerwise", N=12, h=12) == 1
    model = BERT(11, 12, 12, 12, core=lin.layerwise(8, 2))
    _has(model, 1)
    model(torch.zeros(1, 8).long()).sum().backward()
    (E,) = {id(x): x for name, x in model.named_parameters() if name.endswith(".core.E")}.values()
    assert E.grad is not None and E.grad.abs().sum() > 0


def _has(model: torch.nn.Module, count: int) -> None:
    """So many matrices of 2 × 8 numbers, each once."""
    learned = {id(x): x for n, x in model.named_parameters() if ".core." in n}
    assert sum(x.numel() for x in learned.values()) == count * 2 * 8


# --- the code of others ---------------------------------------------------------------------------


def weights(d: int) -> list[Tensor]:
    return [torch.randn(d, d, dtype=torch.float64) / d**0.5 for _ in range(3)]


def heads(X: Tensor) -> Tensor:
    return X.unflatten(-1, (H, -1)).transpose(1, 2)


@pytest.mark.parametrize("length", [L, L + 4])
def test_parity_with_the_formula_of_fairseq(length: int) -> None:
    """`MultiheadLinearAttention.forward`: X is mixed along the text, with as many columns as there
    are tokens, then projected, and the query is divided by √d_head. With biases in W^k and W^v that
    is another function, which is shown too."""
    X = torch.randn(2, L, H * D, dtype=torch.float64)
    W_q, W_k, W_v = weights(H * D)
    compress_k, compress_v = torch.randn(2, 3, length, dtype=torch.float64)

    def fairseq(bias: float) -> Tensor:
        mixed = [torch.nn.functional.linear(X.mT, E[:, 0:L]).mT for E in (compress_k, compress_v)]
        k, v = mixed[0] @ W_k + bias, mixed[1] @ W_v + bias
        q = heads(X @ W_q) * D**-0.5
        return (q @ heads(k).mT).softmax(-1) @ heads(v)

    core = lin.Linformer(H, length, 3, "headwise").double()
    core.E.data, core.F.data = compress_k[None], compress_v[None]

    def ours(bias: float) -> Tensor:
        return core(heads(X @ W_q), heads(X @ W_k + bias), heads(X @ W_v + bias), Where())[0]

    torch.testing.assert_close(ours(0.0), fairseq(0.0), atol=1e-12, rtol=1e-12)
    assert (ours(0.5) - fairseq(0.5)).abs().max() > 0.01


@pytest.mark.parametrize("tokens", [L, L - 3])
@pytest.mark.parametrize("share_kv", [False, True])
def test_parity_with_the_package_linformer(share_kv: bool, tokens: int) -> None:
    """Its matrices stand on their side. With `share_kv` W^v is W^k, too. A mask changes nothing:
    what pads a text is mixed into its keys, where ours refuses it."""
    theirs = (
        pytest.importorskip("linformer")
        .LinformerSelfAttention(H * D, L, k=3, heads=H, share_kv=share_kv)
        .double()
    )
    X = torch.randn(2, tokens, H * D, dtype=torch.float64)
    core = lin.Linformer(H, L, 3, "key-value" if share_kv else "headwise").double()
    core.E.data = theirs.proj_k.data.mT[None]
    if not share_kv:
        core.F.data = theirs.proj_v.data.mT[None]
    K = theirs.to_k(X)
    V = K if share_kv else theirs.to_v(X)
    out = core(heads(theirs.to_q(X)), heads(K), heads(V), Where())[0]
    torch.testing.assert_close(theirs.to_out(out.transpose(1, 2).flatten(2)), theirs(X))
    mask = torch.ones(2, tokens, dtype=torch.bool)
    mask[:, -1] = False
    assert theirs(X, mask=mask).equal(theirs(X))
    parts = (heads(theirs.to_q(X)), heads(K), heads(V))
    refused("without padding", core, *parts, Where(attention_mask=mask))


# --- costs and refusals ---------------------------------------------------------------------------


def test_work_grows_with_the_length() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        E = torch.randn(16, L)
        return partial(lin.linformer_attention, E=E, F=E)

    work_grows_no_faster(attend, 1.1)


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    E = torch.randn(3, L, dtype=torch.float64)
    attend = lin.linformer_attention
    refused("k = 4 does not divide L = 6; choose a divisor", lin.mean_pooling, 4, 6)
    refused("E mixes 9 positions, K and V have 5", attend, Q, K[:, :, :5], V[:, :, :5], E, E)
    refused("F has shape (2, 3, 9); give (k, L)", attend, Q, K, V, E, E.expand(2, 3, 9))
    refused("E makes 3 keys, F makes 2 values", attend, Q, K, V, E, E[:2])
    of_no_kind("E", attend, Q, K, V, [1.0], E)
    core = lin.Linformer(H, L - 1, 2).double()
    refused("the text has 9 tokens, E was made for length = 8", core, Q, K, V, Where())
    refused("sharing = 'heads'; choose from none, headwise", lin.Linformer, 2, 8, 2, "heads")
    refused("core=layerwise(length=8, k=2)", lin.Linformer, 2, 8, 2, "layerwise")
    refused("k = 9 is out of range", lin.Linformer, 2, 8, 9)
    refused("k = 0 is out of range", lin.layerwise, 8, 0)
    refused("length = 2.5", lin.Linformer, 2, 2.5, 2)
    refused("h = 0", lin.matrices, "none", 2, 0)


def test_a_matrix_begins_as_a_linear_layer_of_its_length_does() -> None:
    """Uniform up to 1/√length, so that a mixed key is as large for every k."""
    for k in (4, 64):
        E = lin.drawn(4, k, 100).detach()
        assert 0.09 < E.abs().max() <= 0.1 and abs(E.std().item() - 0.1 / 3**0.5) < 0.01


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: lin.Linformer, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    n = Q.shape[2]
    return lin.linformer_definition(Q, K, V, core.E[..., :n], core.F[..., :n])


def of_24(Q: Tensor) -> tuple[Tensor, Tensor]:
    dice = torch.Generator().manual_seed(0)
    n = Q.shape[2] if Q.ndim == 4 else 24
    E, F = torch.randn(2, 5, n, generator=dice, dtype=torch.float64).to(Q)
    return E, F


ENCODER: dict[str, Any] = {
    "answers": "whole",
    "causal": False,
    "shares_sum_to_one": False,
    "grows": 1.0,
}


def shared(sharing: str) -> Case:
    return Case(
        lambda: lin.Linformer(H, L, 3, sharing),
        defined,
        sized=lambda n: lin.Linformer(H, n, 16, sharing),
        **ENCODER,
    )


CASE = Case(
    lambda: lin.Linformer(H, L, 3),
    defined,
    sized=lambda n: lin.Linformer(H, n, 16),
    **ENCODER,
    variants={
        "headwise": shared("headwise"),
        "key-value": shared("key-value"),
        "layerwise": Case(
            lambda: lin.layerwise(L, 3)(),
            defined,
            sized=lambda n: lin.layerwise(n, 16)(),
            **ENCODER,
        ),
    },
    functions={
        "Linformer": Function(
            lambda Q, K, V: lin.linformer_attention(Q, K, V, *of_24(Q)),
            lambda Q, K, V: lin.linformer_definition(Q, K, V, *of_24(Q)),
        )
    },
    mutants=[
        ("a matrix that begins by k", "1 / math.sqrt(length)", "1 / math.sqrt(k)"),
        (
            "values mixed by the matrix of the keys",
            "_fused.attention(Q, E @ K, F @ V)",
            "_fused.attention(Q, E @ K, E @ V)",
        ),
        (
            "Linformer whose shared heads take turns",
            "X.repeat_interleave(Q.shape[1] // X.shape[1], 1)",
            "X.repeat(1, Q.shape[1] // X.shape[1], 1, 1)",
        ),
        (
            "a sum where the mean of a stretch is due",
            "torch.full((L // k,), k / L)",
            "torch.full((L // k,), 1.0)",
        ),
        (
            "headwise sharing that shares keys and values too",
            'self.sharing in ("none", "headwise")',
            'self.sharing in ("none",)',
        ),
    ],
)
