"""Encoder and decoder: golden wiring, others' code, who may hear whom, parameters and pairs."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from refusals import ranges, refused
from torch import Tensor, nn

from tfviz import attention, patterns
from tfviz.basics.encoder_decoder import (
    cross_attention,
    decoder_block,
    encoder_block,
    pair_counts,
    parameter_counts,
    three_maps,
    write,
)
from tfviz.models.blocks import Block, post_norm, pre_norm
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.position.sinusoidal_pe import Sinusoidal

close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
VOCAB, D, H, N = 11, 16, 4, 2


def model(**more: Any) -> EncoderDecoder:
    return EncoderDecoder(VOCAB, D, H, N, positions=Sinusoidal(D), **more).requires_grad_(False)


def rows(b: int, L: int) -> Tensor:
    return torch.randint(VOCAB, (b, L))


# --- cross-attention -----------------------------------------------------------------------------


def test_golden_numbers() -> None:
    # one query of the target, two rows of the source; scores 2 ln 3 / √4 and 0 → weights 3 : 1
    Y = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    H = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    W_q = torch.tensor([[2 * math.log(3), 0, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    W_k = torch.zeros(3, 4, dtype=torch.float64)
    W_k[0, 0] = 1.0
    W_v = torch.tensor([[4.0], [8.0], [0.0]], dtype=torch.float64)
    out, A = cross_attention(Y, H, W_q, W_k, W_v)
    close(A, torch.tensor([[0.75, 0.25]], dtype=torch.float64))
    close(out, torch.tensor([[5.0]], dtype=torch.float64))  # 3/4 · 4 + 1/4 · 8


def case() -> list[Tensor]:
    sizes = (5, 6), (7, 3), (6, 4), (3, 4), (3, 2)
    return [torch.randn(s, dtype=torch.float64) for s in sizes]


def test_lengths_and_widths_are_independent_and_rows_sum_to_one() -> None:
    out, A = cross_attention(*case())
    assert out.shape == (5, 2) and A.shape == (5, 7)
    close(A.sum(-1), torch.ones(5, dtype=torch.float64))


def test_the_source_may_be_shuffled_the_target_may_not() -> None:
    Y, H, *W = case()
    out, A = cross_attention(Y, H, *W)
    p = torch.randperm(7)
    shuffled, A_p = cross_attention(Y, H[p], *W)
    close(shuffled, out)
    close(A_p, A[:, p])
    q = torch.tensor([1, 2, 3, 4, 0])
    close(cross_attention(Y[q], H, *W)[0], out[q])
    assert not torch.allclose(cross_attention(Y[q], H, *W)[0], out)


def test_mutants_are_found() -> None:
    Y, H, W_q, W_k, W_v = case()
    out, A = cross_attention(Y, H, W_q, W_k, W_v)
    scores = (Y @ W_q) @ (H @ W_k).T / 2
    assert not torch.allclose(scores.softmax(0), A)  # over the queries
    assert not torch.allclose((2 * scores).softmax(-1), A)  # without the root
    assert not torch.allclose(scores.softmax(-1).flip(-1) @ (H @ W_v), out)


def test_errors_name_the_matrix_and_the_side() -> None:
    Y, H, W_q, W_k, W_v = case()
    refused("W_q has shape (3, 4), but rows of Y have 6", cross_attention, Y, H, W_k, W_k, W_v)
    refused("W_v has shape (6, 4) … from H … (3, width)", cross_attention, Y, H, W_q, W_k, W_q)


# --- the blocks ----------------------------------------------------------------------------------


def disturb(block: nn.Module) -> None:
    for x in block.parameters():
        if x.dim() == 1:
            x.data += 0.3 * torch.randn_like(x)


def test_the_wiring_is_that_of_the_models_block() -> None:
    X, Y = torch.randn(2, 7, D), torch.randn(2, 5, D)
    read = Block(D, H, post_norm, phi=nn.ReLU)
    say: Any = Block(D, H, post_norm, phi=nn.ReLU, crosses=True, pattern=patterns.causal())
    disturb(read)
    disturb(say)
    memory = encoder_block(X, read)
    close(memory, read(X))
    close(decoder_block(Y, memory, say), say(Y, memory))
    # known-wrong wirings: the norm first, the cross-attention first, the source in the wrong place
    assert not torch.allclose(read(X), X + read.attend(read.norms[0](X)), atol=1e-3)
    first = say.norms[0](Y + say.cross(Y, memory))
    first = say.norms[1](first + say.attend(first))
    assert not torch.allclose(say.norms[2](first + say.feed(first)), say(Y, memory), atol=1e-3)
    refused("crosses=True", decoder_block, X, X, read)


def test_a_block_is_torchs() -> None:
    theirs = nn.TransformerDecoderLayer(D, H, 4 * D, 0.0, batch_first=True).eval()
    disturb(theirs)
    ours: Any = Block(D, H, post_norm, phi=nn.ReLU, crosses=True, pattern=patterns.causal())
    for mine, other in ((ours.attend, theirs.self_attn), (ours.cross, theirs.multihead_attn)):
        mine.W_qkv.load_state_dict({"weight": other.in_proj_weight, "bias": other.in_proj_bias})
        mine.W_o.load_state_dict(other.out_proj.state_dict())
    ours.feed.W_1.load_state_dict(theirs.linear1.state_dict())
    ours.feed.W_2.load_state_dict(theirs.linear2.state_dict())
    norms = theirs.norm1, theirs.norm2, theirs.norm3
    for own, norm in zip(ours.norms, norms, strict=True):
        own.load_state_dict(norm.state_dict())
    Y, memory = torch.randn(2, 5, D), torch.randn(2, 7, D)
    mask = ~patterns.causal().mask(5)
    close(decoder_block(Y, memory, ours), theirs(Y, memory, tgt_mask=mask))


# --- the model -----------------------------------------------------------------------------------


def test_the_encoder_without_positions_is_equivariant_and_with_them_not() -> None:
    s, p = rows(2, 7), torch.randperm(7)
    bare = EncoderDecoder(VOCAB, D, H, N).requires_grad_(False)
    close(bare.encode(s[:, p]), bare.encode(s)[:, p])
    placed = model()
    assert not torch.allclose(placed.encode(s[:, p]), placed.encode(s)[:, p], atol=1e-2)


def test_the_decoder_hears_no_later_token_and_no_order_of_the_memory() -> None:
    m, s, t = model(), rows(2, 7), rows(2, 5)
    out, memory = m(s, t), m.encode(s)
    later = t.clone()
    later[:, 3:] = (later[:, 3:] + 1) % VOCAB
    assert torch.equal(m(s, later)[:, :3], out[:, :3])
    assert not torch.allclose(m(s, later)[:, 3:], out[:, 3:])
    close(m.decode(t, memory[:, torch.randperm(7)]), out)
    other = s.clone()
    other[:, -1] = (other[:, -1] + 1) % VOCAB  # the last word of the source is heard by the first
    assert not torch.allclose(m(other, t)[:, 0], out[:, 0], atol=1e-3)


@pytest.mark.parametrize(("L_x", "L_y"), [(1, 6), (6, 1), (4, 9)])
def test_three_maps_have_their_shapes_and_the_weights_that_attention_gives(
    L_x: int, L_y: int
) -> None:
    m, s, t = model(), rows(2, L_x), rows(2, L_y)
    maps = three_maps(m, s, t)
    assert [A.shape for A in maps["encoder"]] == [(2, H, L_x, L_x)] * N
    assert [A.shape for A in maps["decoder"]] == [(2, H, L_y, L_y)] * N
    assert [A.shape for A in maps["cross"]] == [(2, H, L_y, L_x)] * N
    for kind in maps.values():
        for A in kind:
            close(A.sum(-1), torch.ones(A.shape[:-1]))
    assert not maps["decoder"][0].triu(1).any()
    attend: Any = m.encoder.blocks[0].attend
    Q, K, V = attend.W_qkv(m.embed(s)).split(D, -1)
    heads = [x.unflatten(-1, (H, -1)).transpose(1, 2) for x in (Q, K, V)]
    close(maps["encoder"][0], attention(*heads)[1])


@pytest.mark.parametrize("order", [pre_norm, post_norm])
def test_writing_one_by_one_is_the_likeliest_of_whole_passes(order: object) -> None:
    m, s = model(order=order), rows(3, 7)
    got = write(m, s, 6, begin=0)
    t = torch.zeros(3, 1, dtype=torch.long)
    for _ in range(6):  # everything again for every token
        t = torch.cat([t, m(s, t)[:, -1:].argmax(-1)], 1)
    assert torch.equal(got, t[:, 1:])
    refused("steps = 0", write, m, s, 0, begin=0)


# --- what it weighs ------------------------------------------------------------------------------


@pytest.mark.parametrize(("vocab", "d", "d_ff", "n"), [(11, 16, 24, 2), (5, 8, 32, 3)])
def test_parameters_are_those_of_the_model(vocab: int, d: int, d_ff: int, n: int) -> None:
    m = EncoderDecoder(vocab, d, 4, n, d_ff=d_ff)
    counts = parameter_counts(vocab, d, d_ff, n)
    assert sum(counts.values()) == sum(p.numel() for p in m.parameters())
    named = {name: p.numel() for name, p in m.named_parameters()}

    def those(*words: str) -> int:
        return sum(c for name, c in named.items() if all(w in name for w in words))

    assert counts["cross-attention"] == those("cross.")
    assert counts["encoder attention"] == those("encoder.", "attend.")
    assert counts["decoder feed-forward"] == those("decoder.", "feed.")
    assert counts["norms"] == those("norms.")
    assert counts["embedding"] == those("embed.")


def test_the_base_model_of_2017_has_63_million() -> None:
    counts = parameter_counts(37_000, 512, 2048, 6)
    assert counts["embedding"] == 18_944_000
    assert counts["cross-attention"] == 6 * 4 * 512 * 513 == 6_303_744
    assert sum(counts.values()) == 63_082_496
    ranges(parameter_counts, vocab=(10, 1), d=(8, 1), d_ff=(16, 1), N=(1, 1))


def test_pairs_are_those_of_the_masks() -> None:
    assert pair_counts(3, 4) == {"encoder": 9, "decoder": 10, "cross": 12}
    assert pair_counts(6, 5)["decoder"] == int(patterns.causal().mask(5).sum())
    ranges(pair_counts, L_x=(3, 1), L_y=(4, 1))
