"""Segment recurrence: its definition, what reaches what, the state, XLNet's code, growth."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import laws
import pytest
import torch
from laws import Case
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz import patterns
from tfviz.basics.additive_attention import Additive
from tfviz.cores import Dense
from tfviz.longer_context import transformer_xl_recurrence as room
from tfviz.longer_context.transformer_xl_recurrence import Recurrent, transformer_xl
from tfviz.models.blocks import post_norm
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights
from tfviz.position.rope import Rope
from tfviz.position.sinusoidal_pe import sinusoids
from tfviz.position.xl_relative import XL, xl

close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)
TEXT = torch.randint(11, (2, 20), generator=torch.Generator().manual_seed(3))


def model(m: int, N: int = 2, **more: object) -> Any:
    torch.manual_seed(0)
    made = transformer_xl(11, 16, 2, N, m, **more).double()
    for core in made.modules():
        if isinstance(core, XL):
            core.u.data.normal_()
            core.v.data.normal_()
    return made


def by_the_equations(attend: Any, M: Tensor, X: Tensor) -> Tensor:
    """One head, query and key at a time; scores as the authors' code makes them, shift unrolled."""
    core, d = attend.core, X.shape[1]
    (W_q, W_k, W_v), (b_q, b_k, b_v) = (
        x.chunk(3) for x in (attend.W_qkv.weight, attend.W_qkv.bias)
    )
    H, heads, m = torch.cat([M.detach(), X]), [], len(M)
    for n in range(attend.h):
        mine = slice(n * attend.d_head, (n + 1) * attend.d_head)
        rows = []
        for i in range(len(X)):
            q, s = X[i] @ W_q[mine].T + b_q[mine], []
            for j in range(m + i + 1):
                k = H[j] @ W_k[mine].T + b_k[mine]
                r = sinusoids(torch.tensor([m + i - j]), d)[0].double() @ core.W_r[n]
                s.append(((q + core.u[n]) @ k + (q + core.v[n]) @ r) / math.sqrt(attend.d_head))
            rows.append(torch.stack(s).softmax(0) @ (H[: m + i + 1] @ W_v[mine].T + b_v[mine]))
        heads.append(torch.stack(rows))
    return torch.cat(heads, 1) @ attend.W_o.weight.T + attend.W_o.bias


def test_it_is_its_equations_and_weights_learn_from_memory_but_memory_does_not() -> None:
    attend = model(3, N=1).stack.blocks[0].attend
    first, X = torch.randn(2, 1, 5, 16, dtype=torch.float64, requires_grad=True)
    cache: dict = {}
    attend(first, cache=cache)
    wanted = by_the_equations(attend, first[0, 2:], X[0])
    leaves = [X, attend.W_qkv.weight, attend.core.W_r, attend.core.u, attend.core.v]
    laws.agree_with_gradients(attend(X, cache=dict(cache))[0], wanted, leaves)
    out = attend(X, cache=dict(cache)).sum()
    assert torch.autograd.grad(out, first, allow_unused=True) == (None,)
    # with the memory cut off from its weights too, W^k would learn something else
    attend.W_qkv.zero_grad()
    kept = cache[attend].state
    cache[attend] = cache[attend]._replace(state=torch.zeros_like(kept))
    grads = [torch.autograd.grad(attend(X, cache=dict(c)).square().sum(), attend.W_qkv.weight)[0]
             for c in (cache, {attend: cache[attend]._replace(state=kept)})]  # fmt: skip
    assert not torch.allclose(grads[0], grads[1])


@pytest.mark.parametrize("core", [None, lambda: Rope(8)])
def test_a_memory_of_everything_is_the_whole_text(core: Callable | None) -> None:
    more = {"core": core} if core else {}
    gpt = model(50, N=3, **more)
    plain = GPT(11, 16, 2, 3, **({"core": xl(2, 8)} | more)).double()
    plain.load_state_dict(gpt.state_dict())
    for sizes in ([5, 1, 7, 7], [1] * 20):
        close(laws.streamed(gpt, TEXT, sizes), plain(TEXT))
    nothing = model(0, N=3, **more)
    close(laws.streamed(nothing, TEXT, [5] * 4), torch.cat([plain(s) for s in TEXT.split(5, 1)], 1))
    close(gpt(TEXT), plain(TEXT))  # without a cache: one segment


@torch.no_grad()
@pytest.mark.parametrize(("m", "L", "N"), list(product((0, 1, 3, 4, 5), (1, 3, 4), (1, 2, 3))))
def test_reach_by_impulse(m: int, L: int, N: int) -> None:
    gpt, before = model(m, N), room.reach(N, m, L)
    start = (-(-before // L) + 1) * L  # a whole number of segments
    t = torch.randint(11, (1, start + L))
    out = laws.streamed(gpt, t, [L] * (t.shape[1] // L))[0, start:]
    heard = []
    for p in range(t.shape[1]):
        other = t.clone()
        other[0, p] = (t[0, p] + 1) % 11
        changed = laws.streamed(gpt, other, [L] * (t.shape[1] // L))[0, start:] != out
        heard.append(changed.any(-1))
    first = [start - next(p for p, h in enumerate(heard) if h[i]) for i in (0, L - 1)]
    assert first == [before, before]  # the last token is L − 1 further on, and hears the same
    if m % L == 0:
        assert before == N * m


def test_m_4_segments_of_8_three_layers() -> None:
    assert room.reach(3, 4, 8) == 20 and room.reach(3, 8, 4) == 24 and room.reach(3, 0, 8) == 0


def test_state_saved_and_resumed_to_the_last_bit() -> None:
    laws.it_resumes_to_the_last_bit(lambda: model(4), TEXT, 5)
    gpt, cache = model(4), dict[Any, Any]()
    laws.streamed(gpt, TEXT, 5, cache)
    refused("which this model has not", room.resumed, model(4, N=1), room.saved(gpt, cache))


def test_it_trains_and_writes() -> None:
    gpt = model(4).float()
    laws.it_learns_to_count(gpt, begun=5, written=30)
    assert {A.shape[-1] for A in attention_weights(gpt, TEXT[:1, :9]).values()} == {9}


def test_streams_go_on_and_begin_anew_at_the_end() -> None:
    seen = []

    class Spy(nn.Module):
        def forward(self, x: Tensor, cache: dict) -> Tensor:
            seen.append((x.tolist(), len(cache)))
            cache[self] = 1
            return nn.functional.one_hot(x, 30).float()

    loss = room.next_token_in_segments(torch.arange(21), 2, 3)
    for step in range(4):
        loss(Spy(), torch.Generator(), step)
    assert [x for x, _ in seen] == [
        [[0, 1, 2], [10, 11, 12]], [[3, 4, 5], [13, 14, 15]], [[6, 7, 8], [16, 17, 18]],
        [[0, 1, 2], [10, 11, 12]],
    ]  # fmt: skip
    assert [n for _, n in seen] == [0, 1, 2, 0]


def test_parity_with_xlnet() -> None:
    """Hugging Face's Transformer-XL was taken out of the library; XLNet's code came from it, and
    keeps its memories. Post-norm, no biases; three segments, with gradients."""
    from transformers import XLNetConfig, XLNetModel

    h, N, d, m, L = 2, 2, 8, 6, 4
    config = XLNetConfig(vocab_size=11, d_model=d, n_layer=N, n_head=h, d_inner=16, dropout=0.0,
                         attn_type="uni", mem_len=m, ff_activation="gelu",
                         layer_norm_eps=1e-5)  # fmt: skip
    torch.manual_seed(0)
    theirs: Any = XLNetModel(config).double()
    for x in theirs.parameters():
        nn.init.normal_(x, std=0.4)
    mine: Any = transformer_xl(11, d, h, N, m, order=post_norm, d_ff=16).double()
    pairs = torch.arange(d).view(2, -1).T.flatten()  # theirs: all sines, then all cosines
    mine.embed.weight.data = theirs.word_embedding.weight.data.clone()
    for block, layer in zip(mine.stack.blocks, theirs.layer, strict=True):
        a, f, own = layer.rel_attn, layer.ff, block.attend
        own.W_qkv.weight.data = torch.cat([w.data.flatten(1).T for w in (a.q, a.k, a.v)])
        own.W_o.weight.data = a.o.data.flatten(1)
        for bias in (own.W_qkv.bias, own.W_o.bias):
            bias.data.zero_()
        own.core.W_r.data = a.r.data.permute(1, 0, 2)[:, pairs]
        own.core.u.data, own.core.v.data = a.r_w_bias.data.clone(), a.r_r_bias.data.clone()
        block.norms[0].load_state_dict(a.layer_norm.state_dict())
        block.norms[1].load_state_dict(f.layer_norm.state_dict())
        block.feed.W_1.load_state_dict(f.layer_1.state_dict())
        block.feed.W_2.load_state_dict(f.layer_2.state_dict())
    mems, cache = None, dict[Any, Any]()
    for segment in TEXT.split(L, 1)[:3]:
        found = theirs(segment, mems=mems, use_mems=True)
        mems = found.mems
        got = mine.stack(mine.embed(segment, cache), None, None, cache)
        torch.testing.assert_close(got, found.last_hidden_state, atol=1e-6, rtol=1e-6)
    got.square().sum().backward()
    found.last_hidden_state.square().sum().backward()
    for block, layer in zip(mine.stack.blocks, theirs.layer, strict=True):
        a = layer.rel_attn
        grads = torch.cat([w.grad.flatten(1).T for w in (a.q, a.k, a.v)])
        torch.testing.assert_close(block.attend.W_qkv.weight.grad, grads, atol=1e-5, rtol=1e-5)


def test_work_grows_with_the_length() -> None:
    attend = Recurrent(8, 1, m=64, core=xl(1, 8))
    stream = partial(laws.streamed, attend, sizes=64)
    laws.work_grows_no_faster(
        lambda L: stream, 1.1, leaves=lambda L: [(1, L, 8)], work=(512, 2048), memory=(1024, 4096)
    )


def test_errors_say_what_to_do() -> None:
    ranges(partial(transformer_xl, 11, 16, 2, 1), m=(4, 0))
    refused("made from Dense", transformer_xl, 11, 16, 2, 1, 4, core=lambda: Additive(8, 8))
    attend, X = model(4).stack.blocks[0].attend, torch.randn(1, 3, 16).double()
    refused("no padding", attend, X, attention_mask=torch.ones(1, 3, dtype=torch.bool))
    ranges(room.reach, N=(1, 1), m=(1, 0), L=(4, 1))
    refused("b = 12", room.streams, torch.arange(11), 12)


PLACES = (
    patterns.own_block(block=4),
    patterns.fixed(block=4, summary=1),
    patterns.image_1d(block=4, memory=2),
    patterns.strided(stride=2) & patterns.own_block(block=7),
    patterns.per_head(patterns.causal(), patterns.own_block(block=3)),
)


@torch.no_grad()
@pytest.mark.parametrize("L", [1, 3, 4, 7])
@pytest.mark.parametrize("core", ["XL", "dense"])
def test_a_pattern_of_distances_is_the_same_in_segments_and_one_of_places_is_refused(
    L: int, core: str
) -> None:
    """One layer, whose memory reaches as far as its pattern looks."""
    more: dict[str, Any] = {} if core == "XL" else {"core": Dense}
    for pattern in (patterns.sliding_window(lookback=3), patterns.dilated(radius=3, dilation=1)):
        gpt = model(3, N=1, pattern=pattern & patterns.causal(), **more)
        close(laws.streamed(gpt, TEXT, L), gpt(TEXT))
    i = torch.arange(20)
    in_reach = patterns.table(i >= i[:, None] // L * L - 3)  # what segments of L remember
    read = 0
    for pattern in PLACES:
        gpt = model(3, N=1, pattern=pattern, **more)
        whole = model(3, N=1, pattern=pattern & in_reach, **more)(TEXT)  # without a cache
        try:
            close(laws.streamed(gpt, TEXT, L), whole)
            read += 1
        except ValueError as error:
            assert "give a causal pattern of i − j alone" in str(error)
    assert read == (L == 3)  # blocks of three, segments of three, a memory of three: the same
    far = model(8, N=1, pattern=patterns.own_block(block=16), **more)
    laws.streamed(far, TEXT[:, :16], L)  # as long as it says what a pattern of distances says
    refused("not at which place", laws.streamed, far, TEXT, L)


def test_what_looks_ahead_is_refused_with_any_core() -> None:
    for more in ({}, {"core": Dense}):
        gpt = model(3, N=1, pattern=patterns.band(radius=1), **more)
        refused("band(radius=1): … give a causal pattern", laws.streamed, gpt, TEXT, 4)


def test_a_memory_made_in_inference_mode_may_be_trained_on() -> None:
    gpt = model(4)
    (first, second), caches = TEXT.split(10, 1), (dict[Any, Any](), dict[Any, Any]())
    with torch.inference_mode():
        gpt(first, caches[0])
    with torch.no_grad():
        gpt(first, caches[1])
    loss, wanted = (gpt(second, cache).square().sum() for cache in caches)
    grads = (torch.autograd.grad(x, gpt.embed.weight) for x in (loss, wanted))
    assert next(grads)[0].equal(next(grads)[0])


def test_other_texts_and_other_models_are_refused() -> None:
    gpt, cache = model(4), dict[Any, Any]()
    gpt(TEXT, cache)
    refused("the cache is of 2 texts, now there are 1; go on", gpt, TEXT[:1], cache)
    plain, kept = GPT(11, 16, 2, 2), dict[Any, Any]()
    plain(TEXT, kept)
    refused("the cache is of 2 texts, now there are 1; go on", plain, TEXT[:1], kept)
    refused("cache is another model's", room.saved, model(4), cache)
    refused("ids has shape (2, 20); give 1 dimension", room.streams, TEXT, 2)
    of_no_kind("ids is ndarray", room.streams, TEXT[0].numpy(), 2)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "a memory that forgets all but the last segment",
            "rows = torch.cat([self.past(state, X), X], 1)",
            "rows = X",
        ),
        (
            "a memory that gets a gradient",
            "self.followed(where.state, X.detach(), A)",
            "self.followed(where.state, X, A)",
        ),
        (
            "a memory that takes places for distances",
            "if not here.equal(counted) or",
            "if",
        ),
    ],
)
