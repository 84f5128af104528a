"""Head size apart from the number of heads: a layer, its parity, and what a head can draw."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, streamed
from refusals import ranges, refused
from torch import Tensor

from tfviz import GPT, patterns
from tfviz.basics.cache_cost import kept_bytes
from tfviz.basics.multi_head_attention import multi_head_definition
from tfviz.heads import decoupled_head_size as size
from tfviz.models.blocks import MultiHeadAttention

close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def shares(L: int, sharp: float = 1.0) -> Tensor:
    return (sharp * drawn(L, L)).softmax(-1)


# --- the layer ------------------------------------------------------------------------------------


def matrices(attend: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """W^q, W^k, W^v as (h, d, d_p), and W^o, of a layer without biases."""
    for bias in (attend.W_qkv.bias, attend.W_o.bias):
        bias.data.zero_()
    W = attend.W_qkv.weight.T.unflatten(1, (3, attend.h, attend.d_head)).permute(1, 2, 0, 3)
    return W[0], W[1], W[2], attend.W_o.weight.T


@pytest.mark.parametrize(("d", "h", "d_p"), [(16, 4, 7), (10, 3, 5), (8, 2, 12), (8, 16, 3)])
@pytest.mark.parametrize("causal", [False, True])
def test_it_is_multi_head_attention_with_heads_of_any_width(
    d: int, h: int, d_p: int, causal: bool
) -> None:
    pattern = patterns.causal() if causal else None
    attend = size.FreeHeads(d, h, d_p=d_p, pattern=pattern).double()
    X, weights = drawn(2, 9, d), matrices(attend)
    close(attend(X), multi_head_definition(X, X, X, *weights, pattern)[0])


def test_the_convention_is_the_usual_layer() -> None:
    usual, free = MultiHeadAttention(16, 4).double(), size.FreeHeads(16, 4, d_p=4).double()
    free.load_state_dict(usual.state_dict())
    X = drawn(2, 9, 16)
    assert free(X).equal(usual(X))


@pytest.mark.parametrize(("d", "h", "d_p"), [(16, 4, 4), (16, 4, 16), (10, 3, 5)])
def test_parameters_grow_with_all_three(d: int, h: int, d_p: int) -> None:
    attend = size.FreeHeads(d, h, d_p=d_p)
    count = sum(x.numel() for x in (attend.W_qkv.weight, attend.W_o.weight))
    assert count == size.parameters(d, h, d_p) == 4 * h * d * d_p


def test_a_model_takes_it_with_a_cache_and_shared_keys() -> None:
    attend = partial(size.FreeHeads, d_p=6)
    model = GPT(11, 20, 4, 2, h_kv=2, mix=attend).double().eval()
    t, cache = torch.randint(11, (2, 9)), dict[Any, Any]()
    parts = streamed(model, t, [4, 1, 4], cache)
    torch.testing.assert_close(parts, model(t))
    assert kept_bytes(cache) == 2 * 2 * 9 * 2 * 2 * 6 * 8  # keys and values of two heads
    model(t).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_cross_attention_reads_a_memory() -> None:
    attend = size.FreeHeads(10, 3, d_p=5).double()
    X, memory = drawn(2, 4, 10), drawn(2, 9, 10)
    wanted = multi_head_definition(X, memory, memory, *matrices(attend))[0]
    close(attend(X, memory), wanted)


# --- what a head can draw -------------------------------------------------------------------------


def test_a_map_of_two_tokens_by_hand() -> None:
    """log P has the rows (ln 4, 0), (0, ln 4) up to a constant: ±ln 2 when centred, of rank 1."""
    P = torch.tensor([[0.8, 0.2], [0.2, 0.8]], dtype=torch.float64)
    half = math.log(2)
    close(size.logits(P), torch.tensor([[half, -half], [-half, half]], dtype=torch.float64))
    assert size.rank_needed(P) == 1
    close(size.drawn_by(P, 1), P)


@pytest.mark.parametrize("d_p", [1, 2, 3, 5])
def test_scores_have_the_rank_of_the_head(d_p: int) -> None:
    attend = size.FreeHeads(16, 2, d_p=d_p).double()
    Q, K, _ = attend.project(drawn(1, 12, 16), None)
    assert torch.linalg.matrix_rank(Q @ K.mT).tolist() == [[d_p, d_p]]


@pytest.mark.parametrize("L", [2, 5, 12])
def test_a_random_map_needs_one_number_less_than_tokens(L: int) -> None:
    P = shares(L)
    assert size.rank_needed(P) == L - 1
    close(size.drawn_by(P, L - 1), P)
    close(size.drawn_by(P, L + 3), P)
    if L > 2:
        assert (size.drawn_by(P, L - 2) - P).abs().max() > 1e-4


def test_a_bell_around_each_query_needs_two_numbers() -> None:
    """−(j − i)²/2 is i j − j²/2, but for what depends on i alone, which the softmax drops."""
    n = torch.arange(20.0).double()
    P = (-((n - n[:, None]) ** 2) / 2).softmax(-1)
    assert size.rank_needed(P) == 2
    close(size.drawn_by(P, 2), P)


def test_the_theorem() -> None:
    """Rows of X that are linearly independent, and any positive P: there are W^q and W^k."""
    X, P = drawn(6, 9), shares(6, 2.0)
    for d_p in (5, 6, 9):
        W_q, W_k = size.weights_for(X, P, d_p)
        assert W_q.shape == W_k.shape == (9, d_p)
        A = (X @ W_q @ (X @ W_k).mT / math.sqrt(d_p)).softmax(-1)
        close(A, P)


def test_what_narrow_rows_cannot_say() -> None:
    """d = 2 < L = 3, tokens 0 and 1 alike: they get the same row, however wide the head is."""
    X, P = drawn(3, 2), shares(3)
    X[1] = X[0]
    refused("X has 3 rows of rank 2, P has 3", size.weights_for, X, P, 3)
    Q, K = X @ drawn(2, 50), X @ drawn(2, 50)
    A = (Q @ K.mT).softmax(-1)
    close(A[0], A[1])


def test_scores_are_the_nearest_by_squares() -> None:
    """Eckart and Young: what is missed are the singular values that are left out."""
    P = shares(8)
    S = torch.linalg.svdvals(size.logits(P))
    for d_p in (1, 3, 6):
        Q, K = size.queries_and_keys(P, d_p)
        missed = (size.logits(P) - Q @ K.mT / math.sqrt(d_p)).norm()
        close(missed, S[d_p:].norm())


def test_divergence_by_hand() -> None:
    """¾ ln(¾ ÷ ½) + ¼ ln(¼ ÷ ½), and 0 in the other row."""
    P = torch.tensor([[0.75, 0.25], [0.5, 0.5]], dtype=torch.float64)
    wanted = (0.75 * math.log(1.5) + 0.25 * math.log(0.5)) / 2
    assert size.divergence(P, torch.full((2, 2), 0.5).double()).item() == pytest.approx(wanted)


# --- the code of others ---------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_parity_with_x_transformers(causal: bool) -> None:
    theirs = pytest.importorskip("x_transformers").Attention
    theirs = theirs(16, heads=3, dim_head=7, causal=causal).double()
    ours = size.FreeHeads(16, 3, d_p=7, pattern=patterns.causal() if causal else None).double()
    matrices(ours)
    rows = [x.weight for x in (theirs.to_q, theirs.to_k, theirs.to_v)]
    ours.W_qkv.weight.data = torch.cat(rows).data
    ours.W_o.weight.data = theirs.to_out.weight.data
    X = drawn(2, 9, 16)
    out = theirs(X)
    torch.testing.assert_close(ours(X), out[0] if isinstance(out, tuple) else out)


@torch.no_grad()
def test_parity_with_llama_whose_heads_have_a_width_of_their_own() -> None:
    """`head_dim` in Hugging Face: 3 heads of 8 numbers in a model of width 18."""
    pytest.importorskip("transformers")
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaAttention

    config = LlamaConfig(  # type: ignore[call-arg, unused-ignore]
        hidden_size=18,
        num_attention_heads=3,
        num_key_value_heads=3,
        head_dim=8,
        attn_implementation="eager",
    )
    theirs = LlamaAttention(config, 0).double()
    ours = size.FreeHeads(18, 3, d_p=8, pattern=patterns.causal()).double()
    matrices(ours)
    rows = [x.weight for x in (theirs.q_proj, theirs.k_proj, theirs.v_proj)]
    ours.W_qkv.weight.copy_(torch.cat(rows))
    ours.W_o.weight.copy_(theirs.o_proj.weight)
    X = drawn(2, 9, 18)
    still = torch.ones(2, 9, 8).double(), torch.zeros(2, 9, 8).double()  # no rotation
    above = torch.full((9, 9), float("-inf")).triu(1)[None, None].double()
    wanted = theirs(X, still, above)[0]
    torch.testing.assert_close(ours(X), wanted, atol=1e-6, rtol=1e-6)  # their softmax: float32


def test_bad_input_is_named() -> None:
    ranges(partial(size.FreeHeads, 16), h=(3, 1), d_p=(7, 1))
    ranges(size.parameters, d=(16, 1), h=(3, 1), d_p=(7, 1))
    ranges(partial(size.queries_and_keys, shares(4)), d_p=(2, 1))
    made = partial(size.FreeHeads, 16, 4, d_p=3)
    refused("join would replace the matrices of d_p = 3 numbers; leave it out", made, join=int)
    refused("P has shape (3, 4)", size.rank_needed, drawn(3, 4))
    refused("give positive weights whose rows sum to 1", size.rank_needed, torch.eye(3))
    refused("give positive weights whose rows sum to 1", size.rank_needed, torch.ones(3, 3))
    refused("X has 4 rows of rank 4, P has 3", size.weights_for, drawn(4, 9), shares(3), 3)


CASE = Case(
    mutants=[
        (
            "heads of the usual width",
            "super().__init__(h * d_p, h, **options)",
            "super().__init__(d - d % h, h, **options)",
        ),
        ("scores that keep their mean", "- scores.mean(-1, keepdim=True)", "- 0 * scores.mean()"),
        ("a scale that is forgotten", "* d_p**0.25", "* 1.0"),
        (
            "a divergence the other way round",
            "(P * (P.log() - A.log()))",
            "(A * (A.log() - P.log()))",
        ),
        ("as many weights as two matrices have", "return 4 * h", "return 2 * h"),
    ],
)
