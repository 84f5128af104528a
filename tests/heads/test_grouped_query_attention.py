"""Grouped-query attention: who reads which keys, one product for a group, conversion of a model."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case, H, qkv
from refusals import of_no_kind, refused
from torch import Tensor, nn

from tfviz import BERT, GPT, EncoderDecoder, attention, generate, patterns
from tfviz.basics.cache_cost import kept_bytes
from tfviz.basics.multi_head_attention import head_matrices, multi_head_definition
from tfviz.cores import Dense, Where
from tfviz.heads import grouped_query_attention as gqa
from tfviz.measure import elements_produced
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
WIDTH, HEADS, D_HEAD = 16, 4, 4


# --- who reads which keys -------------------------------------------------------------------------


def test_groups_by_hand() -> None:
    assert gqa.reads(8, 2) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert gqa.reads(4, 4) == [0, 1, 2, 3] and gqa.reads(4, 1) == [0, 0, 0, 0]
    assert gqa.tiled_order(8, 2) == [0, 2, 4, 6, 1, 3, 5, 7]
    assert [n % 2 for n in gqa.tiled_order(8, 2)] == gqa.reads(8, 2)


def test_as_many_as_heads_is_multi_head_attention_and_one_is_multi_query() -> None:
    Q, K, V = qkv()
    close(gqa.grouped_definition(Q, K, V), attention(Q, K, V))
    one = gqa.grouped_definition(Q, K[:, :1], V[:, :1])
    close(one, attention(Q, K[:, :1].expand_as(Q), V[:, :1].expand_as(Q)))


def test_neighbours_are_a_group_and_tiles_are_another_assignment() -> None:
    Q, K, V = qkv(h_kv=2)
    out = gqa.grouped_definition(Q, K, V)[0]
    theirs = F.scaled_dot_product_attention(Q, K, V, enable_gqa=True)
    close(out, theirs)
    tiled = attention(Q, K.repeat(1, 2, 1, 1), V.repeat(1, 2, 1, 1))[0]
    assert (out - tiled).abs().max() > 0.1
    order = gqa.tiled_order(H, 2)
    close(gqa.grouped_definition(Q[:, order], K, V)[0], tiled[:, order])


# --- one product for a group ----------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("h_kv", [1, 2, 4])
def test_a_step_is_what_the_whole_says(h_kv: int) -> None:
    """For patterns that differ by head, and with padding, too."""
    Q, K, V = qkv(h_kv=h_kv)
    real = torch.ones(2, 9, dtype=torch.bool)
    real[1, :3] = False
    different = patterns.per_head(*(patterns.sliding_window(lookback=n) for n in range(H)))
    for pattern in (patterns.causal(), different, patterns.fixed(block=3, summary=1)):
        for attention_mask in (None, real):
            whole = Dense()(Q, K, V, Where(pattern, attention_mask=attention_mask))[0]
            last = Where(pattern, 8, False, attention_mask, state=(K[:, :, :8], V[:, :, :8]))
            got, A = gqa.Grouped()(*(x[:, :, 8:] for x in (Q, K, V)), last)
            close(got, whole[:, :, 8:])
            assert A is None


@torch.no_grad()
def test_no_step_copies_the_keys() -> None:
    Q, (K, V) = torch.randn(1, 8, 1, 16), torch.randn(2, 1, 2, 512, 16)
    kept = Where(patterns.causal(), 511, state=(K[:, :, :511], V[:, :, :511]))

    def grouped() -> Tensor:
        return gqa.Grouped().attend(Q, K, V, kept)[0]

    def repeated() -> Tensor:
        return attention(Q, *(x.repeat_interleave(4, 1) for x in (K, V)))[0]

    assert elements_produced(grouped) < 8 * 512 * 2 < elements_produced(repeated)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_a_model_writes_the_same_with_it(positions: str) -> None:
    class Turned(Rope, gqa.Grouped):
        """Rotary positions in a step of one product."""

    told: dict[str, Any] = (
        {"positions": Learned(20, WIDTH), "core": gqa.Grouped}
        if positions == "learned"
        else {"core": Turned}
    )
    plain: dict[str, Any] = told | {"core": Dense if positions == "learned" else Rope}
    ours, theirs = (GPT(11, WIDTH, HEADS, 2, h_kv=2, **x).double() for x in (told, plain))
    theirs.load_state_dict(ours.state_dict())
    t = torch.tensor([[1, 2, 3]])
    cache = dict[Any, Any]()
    with torch.no_grad():
        ours(t, cache)
        step = ours(torch.tensor([[4]]), cache)[:, -1]
        close(step, theirs(torch.tensor([[1, 2, 3, 4]]))[:, -1])
    assert kept_bytes(cache) == 2 * 4 * 2 * 2 * D_HEAD * 8  # K, V; tokens; layers; heads; float64
    assert torch.equal(generate(ours, t, 8), generate(theirs, t, 8))


# --- the code of others ---------------------------------------------------------------------------


@torch.no_grad()
@pytest.mark.parametrize("h_kv", [4, 2, 1])
def test_parity_with_hugging_face_llama(h_kv: int) -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaAttention

    config = LlamaConfig(  # type: ignore[call-arg, unused-ignore]
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=h_kv,
        attn_implementation="eager",
    )
    theirs = LlamaAttention(config, 0).double()
    ours = MultiHeadAttention(WIDTH, HEADS, h_kv=h_kv, pattern=patterns.causal()).double()
    parts = (theirs.q_proj, theirs.k_proj, theirs.v_proj)
    ours.W_qkv.weight.copy_(torch.cat([x.weight for x in parts]))
    ours.W_o.weight.copy_(theirs.o_proj.weight)
    for bias in (ours.W_qkv.bias, ours.W_o.bias):
        bias.zero_()
    X = torch.randn(2, 9, WIDTH, dtype=torch.float64)
    still = torch.ones(2, 9, D_HEAD).double(), torch.zeros(2, 9, D_HEAD).double()  # no rotation
    above = torch.full((9, 9), float("-inf")).triu(1)[None, None].double()
    wanted = theirs(X, still, above)[0]
    torch.testing.assert_close(ours(X), wanted, atol=1e-6, rtol=1e-6)  # their softmax: float32


@torch.no_grad()
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_parity_with_x_transformers_which_tiles(kv_heads: int) -> None:
    """The same weights give another result; with the heads in their order, the same."""
    theirs = pytest.importorskip("x_transformers").Attention
    options = {"heads": HEADS, "dim_head": D_HEAD, "kv_heads": kv_heads, "causal": True}
    theirs = theirs(WIDTH, **options, flash=True).double()
    ours = MultiHeadAttention(WIDTH, HEADS, h_kv=kv_heads, pattern=patterns.causal()).double()
    for bias in (ours.W_qkv.bias, ours.W_o.bias):
        bias.zero_()
    X = torch.randn(2, 9, WIDTH, dtype=torch.float64)
    wanted = theirs(X)[0] if isinstance(theirs(X), tuple) else theirs(X)

    def load(order: list[int]) -> Tensor:
        q = theirs.to_q.weight.unflatten(0, (HEADS, D_HEAD))[order].flatten(0, 1)
        o = theirs.to_out.weight.unflatten(1, (HEADS, D_HEAD))[:, order].flatten(1, 2)
        ours.W_qkv.weight.copy_(torch.cat([q, theirs.to_k.weight, theirs.to_v.weight]))
        ours.W_o.weight.copy_(o)
        out: Tensor = ours(X)
        return out

    close(load(gqa.tiled_order(HEADS, kv_heads)), wanted)
    as_it_is = load([*range(HEADS)])
    assert ((as_it_is - wanted).abs().max() > 1e-3) == (kv_heads == 2)


# --- conversion -----------------------------------------------------------------------------------


def test_pools_by_hand() -> None:
    heads = torch.tensor([[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [5.0, 1.0]]])
    assert gqa.mean_of_group(heads).tolist() == [[2.0, 4.0], [2.5, 0.5]]
    assert gqa.first_of_group(heads).tolist() == [[1.0, 2.0], [0.0, 0.0]]
    many = torch.randn(1, 1000, 64)
    assert 2.7 < gqa.fresh(3 * many).std() < 3.3


@pytest.mark.parametrize("h_kv", [1, 2, 4])
def test_keys_of_a_converted_model_are_means_of_keys(h_kv: int) -> None:
    """Their biases, too: a mean of rows is the row of the mean."""
    attend = MultiHeadAttention(WIDTH, HEADS).double()
    small = gqa.convert(attend, h_kv)
    X = torch.randn(2, 5, WIDTH, dtype=torch.float64)
    (Q, K, V), (q, k, v) = attend.project(X, None), small.project(X, None)
    close(q, Q)
    close(k, K.unflatten(1, (h_kv, -1)).mean(2))
    close(v, V.unflatten(1, (h_kv, -1)).mean(2))
    assert attend.h_kv == HEADS and small.h_kv == h_kv and small.W_o.weight.equal(attend.W_o.weight)


@torch.no_grad()
def test_a_model_whose_heads_agree_loses_nothing() -> None:
    """The limit: with equal keys and values in each group, mean and first are exact."""
    model = GPT(11, WIDTH, HEADS, 2, positions=Learned(9, WIDTH), h_kv=2).double()
    wide = GPT(11, WIDTH, HEADS, 2, positions=Learned(9, WIDTH)).double()
    state = wide.state_dict()
    for name, x in model.state_dict().items():
        if "W_qkv" in name:
            q, *kv = x.split([WIDTH, WIDTH // 2, WIDTH // 2])
            kv = [y.unflatten(0, (2, D_HEAD)).repeat_interleave(2, 0).flatten(0, 1) for y in kv]
            x = torch.cat([q, *kv])
        state[name] = x
    wide.load_state_dict(state)
    t = torch.randint(11, (2, 9))
    close(wide(t), model(t))
    for pool in (gqa.mean_of_group, gqa.first_of_group):
        close(gqa.convert(wide, 2, pool)(t), model(t))
    assert (gqa.convert(wide, 2, gqa.fresh)(t) - model(t)).abs().max() > 1e-3
    close(gqa.convert(wide, HEADS)(t), wide(t))


def test_a_converted_model_learns_and_keeps_less() -> None:
    model = GPT(11, WIDTH, HEADS, 2, positions=Learned(9, WIDTH))
    before = [x.clone() for x in model.parameters()]
    small = gqa.convert(model, 1)
    small(torch.randint(11, (2, 9))).sum().backward()
    grads = [p.grad for n, p in small.named_parameters() if "W_qkv.weight" in n]
    assert len(grads) == 2 and all(g is not None and g.abs().sum() > 0 for g in grads)
    cache = dict[Any, Any]()
    small(torch.randint(11, (1, 5)), cache)
    assert kept_bytes(cache) == 2 * 5 * 2 * D_HEAD * 4
    for old, now in zip(before, model.parameters(), strict=True):
        assert old.equal(now) and now.grad is None  # the model that was given is left alone


def test_of_an_encoder_and_decoder_the_decoder_is_converted() -> None:
    model = EncoderDecoder(11, WIDTH, HEADS, 1)
    small = gqa.convert(model.decoder, 2)
    assert {m.h_kv for m in small.modules() if isinstance(m, MultiHeadAttention)} == {2}
    assert gqa.convert(BERT(11, WIDTH, HEADS, 1), 1)(torch.zeros(1, 4).long()).shape == (1, 4, 11)


def test_the_matrices_of_a_converted_model_are_shared() -> None:
    small = gqa.convert(MultiHeadAttention(WIDTH, HEADS).double(), 2)
    for bias in (small.W_qkv.bias, small.W_o.bias):
        bias.data.zero_()
    X = torch.randn(1, 6, WIDTH, dtype=torch.float64)
    close(small(X), multi_head_definition(X, X, X, *head_matrices(small))[0])


def test_bad_input_is_named() -> None:
    refused("h = 8, h_kv = 3; h_kv must divide h", gqa.reads, 8, 3)
    refused("h_kv = 0", gqa.reads, 8, 0)
    refused("h = 8, h_kv = 5", gqa.tiled_order, 8, 5)
    refused("h_kv = 3", gqa.convert, MultiHeadAttention(WIDTH, HEADS), 3)
    refused("h_kv = 4 is out of range", gqa.convert, MultiHeadAttention(WIDTH, HEADS, h_kv=2), 4)
    of_no_kind("Linear has no attention with W_qkv; give a GPT", gqa.convert, nn.Linear(2, 2), 1)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: gqa.Grouped, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return gqa.grouped_definition(Q, K, V, mask)


CASE = Case(
    gqa.Grouped,
    defined,
    mutants=[
        ("key heads that take turns", "[m // share for m", "[m % h_kv for m"),
        (
            "groups of rows in another order",
            "Q.reshape(b, h_kv, h // h_kv, -1), K",
            "Q.reshape(b, h // h_kv, h_kv, -1).transpose(1, 2), K",
        ),
        (
            "a mask that takes turns",
            "mask.expand(b, h, 1, -1).reshape(b, h_kv, h // h_kv, -1)",
            "mask.expand(b, h, 1, -1).reshape(b, h // h_kv, h_kv, -1).transpose(1, 2)",
        ),
        ("a sum where the mean is due", "return heads.mean(1)", "return heads.sum(1)"),
        ("the last head, not the first", "return heads[:, 0]", "return heads[:, -1]"),
        (
            "biases that stay behind",
            "attend.W_qkv.bias.copy_(W[:, -1])",
            "attend.W_qkv.bias.zero_()",
        ),
        ("the model itself is converted", "model = copy.deepcopy(model)", "model = model"),
    ],
)
