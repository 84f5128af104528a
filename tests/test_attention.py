"""The definition of attention: against a loop, others' code, and its invariants."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from three import Three, three

from tfviz import attention, sparse_attention
from tfviz import patterns as P
from tfviz.adaptive.adaptive_span import span_attention
from tfviz.dense_attention import heads_attention


def qkv(*shape: int, dtype: torch.dtype = torch.float64) -> Three:
    return three(torch.randn(*shape, dtype=dtype) for _ in range(3))


# --- the equation, term by term -------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", [P.causal(), P.band(radius=1), P.summary_columns(block=3, summary=1)]
)
def test_it_is_the_sum_over_the_key_sets(pattern):
    L, d = 7, 4
    Q, K, V = qkv(L, d)
    out, A = attention(Q, K, V, pattern)
    for i, S in enumerate(pattern.key_sets(L)):
        weights = [math.exp(float(Q[i] @ K[j]) / math.sqrt(d)) for j in S]
        expected = sum(
            (w / sum(weights) * V[j] for w, j in zip(weights, S, strict=True)), torch.zeros(d)
        )
        torch.testing.assert_close(out[i], expected.to(out.dtype))
        for j in range(L):
            share = weights[S.index(j)] / sum(weights) if j in S else 0.0
            assert float(A[i, j]) == pytest.approx(share, abs=1e-12)


def test_erratum_1_the_printed_formula_does_not_normalise():
    """Weng (2020, 2023) prints √d_k outside the exponential: rows then sum to 1/√d_k."""
    L, d = 6, 9
    Q, K, V = qkv(L, d)
    logits = (Q @ K.T).exp()
    printed = logits / (math.sqrt(d) * logits.sum(1, keepdim=True))
    torch.testing.assert_close(printed.sum(1), torch.full((L,), 1 / 3, dtype=torch.float64))
    A = attention(Q, K, V)[1]
    torch.testing.assert_close(A.sum(1), torch.ones(L, dtype=torch.float64))


def test_the_scale_keeps_the_variance_of_the_scores():
    d = 64
    Q, K, V = qkv(2000, d)
    products = (Q * K).sum(1)
    assert float(products.var()) == pytest.approx(d, rel=0.1)
    A = attention(Q[:200], K[:200], V[:200])[1]
    scores = A.log() - A.log().mean(1, keepdim=True)
    assert float(scores.var()) == pytest.approx(1, rel=0.1)


# --- invariants -----------------------------------------------------------------------------------


def test_masked_weights_are_exactly_zero_and_rows_sum_to_one():
    A = attention(*qkv(2, 3, 20, 8), P.strided(stride=4))[1]
    mask = P.strided(stride=4).mask(20)
    assert (A[..., ~mask] == 0).all()
    assert (A[..., mask] > 0).all()
    torch.testing.assert_close(A.sum(-1), torch.ones(2, 3, 20, dtype=A.dtype))


def test_equivariant_under_permutations_and_not_invariant():
    Q, K, V = qkv(9, 4)
    turn = torch.randperm(9)
    assert not turn.equal(torch.arange(9))
    out = attention(Q, K, V)[0]
    turned = attention(Q[turn], K[turn], V[turn])[0]
    torch.testing.assert_close(turned, out[turn])
    assert not torch.allclose(turned, out)
    torch.testing.assert_close(attention(Q, K[turn], V[turn])[0], out)  # in the keys: invariant


def test_a_query_that_sees_itself_only_returns_its_value():
    Q, K, V = qkv(5, 4)
    assert attention(Q, K, V, P.band(radius=0))[0].equal(V)


def test_zero_queries_give_the_mean_over_the_key_set():
    _, K, V = qkv(8, 4)
    out = attention(torch.zeros_like(K), K, V, P.sliding_window(lookback=2))[0]
    torch.testing.assert_close(out[5], V[3:6].mean(0))
    torch.testing.assert_close(out[0], V[0])


def test_the_future_changes_nothing():
    Q, K, V = qkv(8, 4)
    out = attention(Q, K, V, P.causal())[0]
    K[6:], V[6:] = 9.0, -9.0
    changed = attention(Q, K, V, P.causal())[0]
    assert changed[:6].equal(out[:6]) and not changed[6:].equal(out[6:])


def test_limits_are_full_attention_bit_for_bit():
    Q, K, V = qkv(8, 4)
    full = attention(Q, K, V)[0]
    for pattern in (
        P.full(),
        P.band(radius=7),
        P.block_local(block=8),
        P.dilated(radius=7, dilation=1),
    ):
        assert attention(Q, K, V, pattern)[0].equal(full)
    assert not attention(Q, K, V, P.band(radius=6))[0].equal(full)


def test_rows_without_keys_are_zero_with_finite_gradients():
    Q, K, V = (x.requires_grad_() for x in qkv(6, 4))
    pattern = P.summary_columns(block=3, summary=1)  # rows 0 and 1 have no summary yet
    out, A = attention(Q, K, V, pattern)
    assert (out[:2] == 0).all() and (A[:2] == 0).all() and (out[2:] != 0).all()
    out.sum().backward()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in (Q, K, V))
    assert Q.grad is not None and (Q.grad[:2] == 0).all()
    minus = torch.full((6, 6), -math.inf)
    assert (attention(Q, K, V, bias=minus)[0] == 0).all()


def test_gradients_are_those_of_the_function():
    Q, K, V = (x.requires_grad_() for x in qkv(5, 3))
    mask = P.fixed(block=2, summary=1).mask(5)
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, mask)[0], (Q, K, V))


# --- patterns, masks, biases ----------------------------------------------------------------------


def test_cross_attention_with_a_mask():
    Q, K, V = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 7)
    mask = torch.tensor([True, True, False, True, True])
    out, A = attention(Q, K, V, mask)
    assert out.shape == (2, 3, 7) and A.shape == (2, 3, 5)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(Q, K, V, mask.expand(3, 5)))


def test_each_head_has_its_pattern():
    Q, K, V = qkv(2, 2, 9, 4)
    out = attention(Q, K, V, P.per_head(P.causal(), P.column(stride=3)))[0]
    assert out[:, 0].equal(attention(Q[:, 0], K[:, 0], V[:, 0], P.causal())[0])
    assert out[:, 1].equal(attention(Q[:, 1], K[:, 1], V[:, 1], P.column(stride=3))[0])


def test_a_bias_is_added_to_the_scaled_scores():
    Q, K, V = qkv(2, 9, 4)
    distance = (torch.arange(9)[:, None] - torch.arange(9)).double()
    expected = F.scaled_dot_product_attention(Q[None], K[None], V[None], -0.5 * distance)[0]
    torch.testing.assert_close(attention(Q, K, V, bias=lambda i, j: -0.5 * (i - j))[0], expected)
    torch.testing.assert_close(attention(Q, K, V, bias=-0.5 * distance)[0], expected)
    both = attention(Q, K, V, P.causal(), bias=-0.5 * distance)[1]
    assert (both[:, ~P.causal().mask(9)] == 0).all()


# --- against code that others wrote ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "pattern", [None, P.causal(), P.strided(stride=4), P.longformer(radius=2, n_global=1)]
)
def test_scaled_dot_product_attention_of_torch(pattern, dtype):
    Q, K, V = qkv(2, 3, 33, 8, dtype=dtype)
    mask = None if pattern is None else pattern.mask(33)
    torch.testing.assert_close(
        attention(Q, K, V, pattern)[0], F.scaled_dot_product_attention(Q, K, V, mask)
    )


def heads(x: torch.Tensor, h: int) -> torch.Tensor:
    return x.unflatten(-1, (h, -1)).transpose(-3, -2)


def merged(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(-3, -2).flatten(-2)


def test_multihead_attention_of_torch():
    theirs = torch.nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    X = torch.randn(2, 10, 12, dtype=torch.float64)
    mask = P.band(radius=2).mask(10)
    expected, A = theirs(X, X, X, attn_mask=~mask, average_attn_weights=False)
    Q, K, V = (
        heads(x, 3) for x in F.linear(X, theirs.in_proj_weight, theirs.in_proj_bias).chunk(3, -1)
    )
    out, ours = attention(Q, K, V, P.band(radius=2))
    torch.testing.assert_close(ours, A)
    torch.testing.assert_close(theirs.out_proj(merged(out)), expected)


def test_gpt2_of_hugging_face():
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Model

    config = GPT2Config(n_embd=12, n_head=3, n_layer=1, vocab_size=7, attn_implementation="eager")  # type: ignore[call-arg]
    model = GPT2Model(config).eval().double()
    block = model.h[0]
    seen: list[torch.Tensor] = []
    block.attn.register_forward_hook(lambda module, args, result: seen.append(result[0]))
    block.ln_1.register_forward_hook(lambda module, args, result: seen.append(result))
    with torch.no_grad():
        model(torch.randint(0, 7, (2, 9)))
        X, expected = seen
        Q, K, V = (heads(x, 3) for x in block.attn.c_attn(X).chunk(3, -1))
        for out in (attention(Q, K, V, P.causal())[0], sparse_attention(Q, K, V, P.causal())):
            torch.testing.assert_close(block.attn.c_proj(merged(out)), expected)


def test_bert_of_hugging_face():
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertSelfAttention

    config = BertConfig(hidden_size=12, num_attention_heads=3, attn_implementation="eager")  # type: ignore[call-arg]
    theirs = BertSelfAttention(config).eval().double()
    X = torch.randn(2, 9, 12, dtype=torch.float64)
    with torch.no_grad():
        Q, K, V = (heads(f(X), 3) for f in (theirs.query, theirs.key, theirs.value))
        torch.testing.assert_close(merged(attention(Q, K, V)[0]), theirs(X)[0])


# --- bad input ------------------------------------------------------------------------------------

good = torch.ones(2, 4, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((good.long(), good, good), TypeError, r"Q has dtype torch.int64; give .* Q.float\(\)"),
        ((good, good.double(), good), TypeError, "Q, K, V have dtypes .* make them the same"),
        ((good, good, [1.0]), TypeError, "V is a list; give a tensor"),
        ((torch.ones(3), good, good), ValueError, r"Q has shape \(3,\); give \(…, L, d\)"),
        ((good, good[:, :0], good[:, :0]), ValueError, r"K has shape \(2, 0, 3\) and is empty"),
        ((good, good[..., :2], good), ValueError, "queries have width 3, keys 2"),
        ((good, good, good[:, :2]), ValueError, "4 keys, 2 values"),
        ((good, good[:1], good[:1]), ValueError, "leading shapes .* expand"),
        ((good, good * math.nan, good), ValueError, "K holds NaN or infinity"),
        ((good, good, good * math.inf), ValueError, "V holds NaN or infinity"),
        ((good[:, :2], good, good, P.causal()), ValueError, "2 queries and 4 keys"),
        ((good, good, good, torch.ones(4, 4)), TypeError, "give a Pattern or a Boolean mask"),
        ((good, good, good, "causal"), TypeError, "pattern is str"),
        ((good, good, good, torch.ones(5, 4).bool()), ValueError, r"pattern has shape \(5, 4\)"),
        ((good, good, good, torch.ones(7, 2, 4, 4).bool()), ValueError, "one that broadcasts"),
        ((good, good, good, P.per_head(*[P.causal()] * 3)), ValueError, "has 3 heads"),
        ((good, good, good, P.random_keys(count=5)), ValueError, "choose 1 <= count <= 4"),
        ((good, good, good, None, torch.ones(3, 4)), ValueError, r"bias has shape \(3, 4\)"),
        ((good, good, good, None, good[0, 0] > 0), TypeError, "bias is Boolean"),
        ((good, good, good, None, 1.0), TypeError, "bias is a float"),
        ((good, good, good, None, lambda i, j: (i - j) * math.nan), ValueError, "bias holds NaN"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(arguments, error, says):
    with pytest.raises(error, match=says):
        attention(*arguments)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_the_fused_kernels(dtype):
    Q, K, V = (x * s for x, s in zip(qkv(2, 9, 64, dtype=dtype), (200, 200, 1), strict=True))
    out, A = attention(Q, K, V)
    assert out.dtype == A.dtype == dtype and (Q @ K.mT).float().abs().max() > 65_504
    torch.testing.assert_close(out, F.scaled_dot_product_attention(Q, K, V), atol=0.02, rtol=0.02)


def test_a_bias_that_is_a_mask_is_refused_in_models_too():
    Q, K, V = (x[None] for x in qkv(2, 5, 4))
    with pytest.raises(TypeError, match="bias is Boolean"):
        heads_attention(Q, K, V, P.full(), torch.ones(5, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match="5 cannot be among 3"):
        heads_attention(Q, K[..., :3, :], V[..., :3, :], P.causal())
    assert heads_attention(Q, K[..., :3, :], V[..., :3, :], P.full())[0].shape == Q.shape


@pytest.mark.parametrize("h_kv", [4, 2])
def test_heads_have_a_second_derivative(h_kv):
    """Each head of keys may serve several of queries."""
    Q, K, V = (
        torch.randn(1, h, 5, 4, dtype=torch.float64, requires_grad=True) for h in (4, h_kv, h_kv)
    )

    def second(out):
        (first,) = torch.autograd.grad(out.sin().sum(), Q, create_graph=True)
        return torch.autograd.grad(first.sin().sum(), Q)[0]

    k, v = (x.repeat_interleave(4 // h_kv, 1) for x in (K, V))
    wanted = second(attention(Q, k, v, P.causal())[0])
    torch.testing.assert_close(second(heads_attention(Q, K, V, P.causal())[0]), wanted)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        by_products = heads_attention(Q, K, V, P.causal())[0]
    torch.testing.assert_close(second(by_products), wanted)


def test_the_meta_device_gives_shapes_or_says_what_is_missing() -> None:
    """Checks that look at numbers must not look there: nothing is there."""
    x = torch.randn(2, 3, 200, 4, device="meta")
    for pattern in (P.strided(stride=7), P.global_tokens(count=2)):
        out, A = attention(x, x, x, pattern, bias=torch.zeros(200, 200, device="meta"))
        assert out.is_meta and out.shape == x.shape and A.shape == (2, 3, 200, 200)
        assert heads_attention(x, x, x, pattern)[0].shape == x.shape
        assert sparse_attention(x, x, x, pattern).shape == x.shape
    z = torch.ones(3, 1, device="meta")
    with pytest.raises(ValueError, match="Q is on the meta device, which holds shapes and no"):
        span_attention(x, x, x, z, 4.0)


def test_what_the_reference_says_of_vmap_holds() -> None:
    """If this fails, vmap has learned to pass the checks: say so in book/reference.md."""
    x = torch.randn(3, 2, 8, 4)
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        torch.vmap(lambda x: attention(x, x, x, P.causal())[0])(x)


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/dense_attention.py": [
        ("√d missing in attention", " / math.sqrt(Q.shape[-1])", ""),
        (
            "a row without keys is NaN",
            "s.masked_fill(no_key, 0.0).softmax(-1).masked_fill(no_key, 0.0)",
            "s.softmax(-1)",
        ),
        (
            "softmax over the queries",
            ".softmax(-1).masked_fill(no_key, 0.0)",
            ".softmax(-2).masked_fill(no_key, 0.0)",
        ),
    ],
}
