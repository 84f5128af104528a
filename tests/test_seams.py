"""The seams: where a mechanism that is no core enters a model, each with one that it is for."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest
import torch
from laws import agree_with_gradients, streamed
from refusals import of_no_kind, refused
from torch import Tensor, nn

from tfviz import attention
from tfviz.adaptive.adaptive_span import AdaptiveSpan
from tfviz.cores import Dense, Where, given, levels
from tfviz.longer_context.universal_transformer import universal
from tfviz.models.bert import BERT
from tfviz.models.blocks import Block, Mixer, MultiHeadAttention, Stack, post_norm, pre_norm
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights, generate, maps, watched
from tfviz.patterns import causal, full, sliding_window
from tfviz.position.rope import Rope
from tfviz.position.t5_relative_bias import T5Bias

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
TEXT = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(1))
D, H, D_HEAD = 16, 4, 4


def first(model: Any) -> Any:
    """The attention of a GPT's first block."""
    return model.stack.blocks[0].attend


def rows(*size: int) -> Tensor:
    return torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


def qkv(h: int = H) -> list[Tensor]:
    return [x.requires_grad_() for x in rows(3, 2, h, 7, D_HEAD).unbind(0)]


# --- scores and mix: talking heads ----------------------------------------------------------------


class Talking(Dense):
    """Shazeer et al. 2020: P_l mixes the heads' scores, P_w their weights."""

    def __init__(self, h: int) -> None:
        super().__init__()
        self.P_l, self.P_w = (nn.Parameter(torch.eye(h) + torch.randn(h, h) / 3) for _ in "lw")

    def scores(self, s: Tensor, where: Where) -> Tensor:
        return torch.einsum("bhij,hg->bgij", s, self.P_l.to(s))

    def mix(self, A: Tensor, where: Where) -> Tensor:
        return torch.einsum("bhij,hg->bgij", A, self.P_w.to(A))


def test_talking_heads_are_their_loops_with_gradients() -> None:
    core, (Q, K, V) = Talking(H).double(), qkv()
    mask = causal().mask(7)

    def loops() -> tuple[Tensor, Tensor]:
        s = [Q[:, h] @ K[:, h].mT / D_HEAD**0.5 for h in range(H)]
        A, out = [], []
        for g in range(H):
            heard = torch.stack([s[h] * core.P_l[h, g] for h in range(H)]).sum(0)
            A.append(heard.masked_fill(~mask, -torch.inf).softmax(-1))
        mixed = [torch.stack([A[h] * core.P_w[h, g] for h in range(H)]).sum(0) for g in range(H)]
        out = [mixed[g] @ V[:, g] for g in range(H)]
        return torch.stack(out, 1), torch.stack(mixed, 1)

    for asked in (False, True):
        out, found = core(Q, K, V, Where(causal(), need_weights=asked))
        wanted, A = loops()
        agree_with_gradients(out, wanted, [Q, K, V, core.P_l, core.P_w])
        close(found, A)


def test_heads_that_do_not_talk_are_attention_and_the_steps_go_with_a_bias_and_a_cache() -> None:
    core, (Q, K, V) = Talking(H).double(), qkv()
    core.P_l.data = core.P_w.data = torch.eye(H).double()
    close(core(Q, K, V, Where(causal()))[0], attention(Q, K, V, causal())[0])

    class Both(Talking, T5Bias):
        def __init__(self) -> None:
            T5Bias.__init__(self, H)
            self.P_l = self.P_w = nn.Parameter(torch.eye(H) + torch.randn(H, H) / 3)

    torch.manual_seed(0)
    gpt = GPT(11, D, H, 2, core=Both).double()
    for module in gpt.modules():
        if isinstance(module, Both):
            module.b.data.normal_()
    close(streamed(gpt, TEXT, 2), gpt(TEXT))
    made = Both().double()
    made.b.data.normal_()
    bias = made.bias(Q, K)
    s = made.scores(Q @ K.mT / D_HEAD**0.5 + bias, Where()).masked_fill(
        ~causal().mask(7), -torch.inf
    )
    close(made(Q, K, V, Where(causal()))[0], made.mix(s.softmax(-1), Where()) @ V)


def test_half_precision_keeps_its_type() -> None:
    core, X = Talking(H), [x.detach().to(torch.bfloat16) for x in qkv()]
    out, A = core(*X, Where(causal(), need_weights=True))
    assert out.dtype == torch.bfloat16 and A is not None and A.dtype == torch.bfloat16


# --- project and join: one projection for all heads, and a router ---------------------------------


class Collaborative(nn.Module):
    """Cordonnier et al. 2020: heads share W_q and W_k, each weighs their columns by its m_h; keys
    are wider than values."""

    def __init__(self, d: int, h: int, d_k: int) -> None:
        super().__init__()
        self.h, self.W_q, self.W_k = h, nn.Linear(d, d_k, False), nn.Linear(d, d_k, False)
        self.W_v, self.m = nn.Linear(d, d), nn.Parameter(torch.randn(h, d_k))

    def forward(self, X: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        Y = X if memory is None else memory
        Q = self.W_q(X)[:, None] * self.m[:, None]
        K = self.W_k(Y)[:, None].expand(-1, self.h, -1, -1)
        return Q, K, self.W_v(Y).unflatten(-1, (self.h, -1)).transpose(1, 2)


class Routed(nn.Module):
    """Each head's part is weighed by how well it agrees with the sum of all, once."""

    def __init__(self, d: int, h: int) -> None:
        super().__init__()
        self.W = nn.Parameter(torch.randn(h, d // h, d) / d**0.5)

    def forward(self, heads: Tensor, X: Tensor) -> Tensor:
        votes = torch.einsum("bhle,hed->bhld", heads, self.W)
        agreement = (votes * votes.mean(1, keepdim=True)).sum(-1, keepdim=True)
        return (agreement.softmax(1) * votes).sum(1)


OWN: dict[str, Any] = {
    "project": lambda: Collaborative(D, H, 24),
    "join": lambda: Routed(D, H),
}


def test_another_projection_and_another_end_take_the_place_of_the_matrices() -> None:
    attend = MultiHeadAttention(D, H, pattern=causal(), **OWN).double()
    assert {n.split(".")[0] for n, _ in attend.named_parameters()} == {"project", "join"}
    X = rows(2, 7, D)
    p: Any = attend.project
    K, V = p.W_k(X), p.W_v(X).split(D_HEAD, -1)
    heads = [attention(p.W_q(X) * p.m[n], K, V[n], causal())[0] for n in range(H)]
    close(attend(X), attend.join(torch.stack(heads, 1), X))
    ordinary = MultiHeadAttention(D, H, pattern=causal(), join=lambda: Routed(D, H))
    assert hasattr(ordinary, "W_qkv") and not hasattr(ordinary, "W_o")


def test_they_stream_write_cross_copy_and_are_stored() -> None:
    torch.manual_seed(0)
    gpt = GPT(11, D, H, 2, **OWN).double()
    close(streamed(gpt, TEXT, [4, 1, 3, 1]), gpt(TEXT))
    assert generate(gpt, TEXT, 3).shape == (2, 12)
    again = copy.deepcopy(gpt)
    first(gpt).project.m.data.zero_()
    assert first(again).project.m.any()
    plain = GPT(11, D, H, 1)
    other = copy.deepcopy(plain)  # its own W_qkv, not that of the first
    first(other).W_qkv.weight.data.zero_()
    assert not torch.allclose(other(TEXT), plain(TEXT))
    attend, X, memory = MultiHeadAttention(D, H, **OWN).double(), rows(2, 5, D), rows(2, 8, D)
    cache: dict = {}
    parts = torch.cat([attend(x, memory, None, cache) for x in X.split(2, 1)], 1)
    close(parts, attend(X, memory))


def test_a_cached_memory_is_projected_once() -> None:
    seen = list[tuple[int, ...]]()
    both: Any = EncoderDecoder(11, D, H, 1)
    cross = both.decoder.blocks[0].cross
    ordinary = cross.project

    def spied(X: Tensor, memory: Tensor) -> Any:
        seen.append(memory.shape)
        return ordinary(X, memory)

    cross.project = spied
    memory, cache = both.encode(TEXT), dict[Any, Any]()
    for t in TEXT.split(1, 1)[:3]:
        both.decode(t, memory, None, cache)
    assert [shape[1] for shape in seen] == [9, 0, 0]


def test_makers_are_given_the_sizes() -> None:
    told = dict[Any, Any]()

    def joined(d: int, h: int, d_head: int, h_kv: int) -> Routed:
        told["join"] = d, h, d_head, h_kv
        return Routed(d, h)

    def fed(d: int, n: int, d_ff: int) -> nn.Module:
        told["feed", n] = d, d_ff
        return nn.Linear(d, d)

    GPT(11, D, H, 2, h_kv=2, join=joined, feed=fed, d_ff=7)
    assert told == {"join": (D, H, D_HEAD, 2), ("feed", 0): (D, 7), ("feed", 1): (D, 7)}
    of_no_kind("feed = fed takes no phi; leave phi out", Block, D, H, feed=fed, d_ff=7, phi=nn.ReLU)
    of_no_kind("norm = 3; give a class", Block, D, H, norm=3)
    of_no_kind(
        "layer(0) holds order, which all blocks share",
        partial(GPT, 11, D, H, 1),
        layer=lambda n: {"order": post_norm},
    )
    unsaid = GPT(11, D, H, 1, layer=lambda n: {"pattern": None})
    assert first(unsaid).pattern == causal()
    of_no_kind("feed is a Linear that is made already", Block, D, H, feed=nn.Linear(D, D))
    of_no_kind("there is no option patern; did you mean pattern", GPT, 11, D, H, 1, patern=causal())


class Shifted(Mixer):
    """Each token hears the one before it: a mixer with a state, and neither heads nor a core."""

    def __init__(self, d: int, n: int, pattern: Any) -> None:
        super().__init__(pattern)
        self.n, self.W = n, nn.Linear(d, d)

    def mixed(self, X: Tensor, memory: Any, where: Where) -> Tensor:
        before = torch.zeros_like(X[:, :1]) if where.state is None else where.state
        if where.keep:
            where.keep(X[:, -1:])
        return self.W(torch.cat([before, X], 1)[:, :-1])


def test_a_mixer_takes_the_place_of_multi_head_attention() -> None:
    torch.manual_seed(0)
    model = GPT(11, D, H, 2, mix=Shifted).double()
    assert [block.get_submodule("attend").n for block in model.stack.blocks] == [0, 1]
    close(streamed(model, TEXT, [4, 1, 3, 1]), model(TEXT))
    mixed = GPT(11, D, H, 2, layer=lambda n: {"mix": Shifted} if n else {"core": Rope}).double()
    close(streamed(mixed, TEXT, [4, 1, 3, 1]), mixed(TEXT))
    with watched(model), pytest.raises(ValueError, match="makes no weights; look at other"):
        model(TEXT)
        maps(model)


class Shared(nn.Module):
    """Projects, and says more: what each head's answer is multiplied by."""

    def __init__(self, d: int, h: int, d_head: int) -> None:
        super().__init__()
        self.W, self.h, self.d_head = nn.Linear(d, d), h, d_head

    def forward(self, X: Tensor, memory: Tensor | None = None) -> tuple[Tensor, ...]:
        rest, own = X if memory is None else memory, self.W(X)
        Q, K = (self.W(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for x in (X, rest))
        return Q, K, K, own[..., : self.h].mT.sigmoid()


class Scaled(Dense):
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        out, A = super().forward(Q, K, V, where)
        return out * where.more[..., None], A


def test_a_core_reads_what_the_projection_made_besides() -> None:
    torch.manual_seed(0)
    plain, gated = (
        MultiHeadAttention(D, H, pattern=causal(), project=Shared, core=core).double()
        for core in (Dense, Scaled)
    )
    gated.load_state_dict(plain.state_dict())
    X = rows(2, 7, D)
    heads, g = plain.attended(X, None, Where(causal()))[0], plain.project(X, None)[3]
    close(gated(X), gated.join(heads * g[..., None], X))
    model = GPT(11, D, H, 2, project=Shared, core=Scaled).double()
    close(streamed(model, TEXT, [4, 1, 3, 1]), model(TEXT))


def test_what_joins_the_heads_sees_what_the_layer_reads() -> None:
    class Times(nn.Module):
        def forward(self, heads: Tensor, X: Tensor) -> Tensor:
            return heads.transpose(1, 2).flatten(2) * X

    attend, X = MultiHeadAttention(D, H, pattern=causal(), join=Times).double(), rows(2, 7, D)
    heads = attend.attended(X, None, Where(causal()))[0]
    close(attend(X), heads.transpose(1, 2).flatten(2) * X)


# --- from layer to layer: RealFormer and LazyFormer -----------------------------------------------


class Residual(Dense):
    """He et al. 2020 (RealFormer): the scores of the layer below are added, and handed up."""

    def scores(self, s: Tensor, where: Where) -> Tensor:
        s = s if where.below is None else s + where.below
        where.hand_up(s)
        return s


class Lazy(Dense):
    """Ying et al. 2021: the second of two layers takes the weights of the first."""

    def mix(self, A: Tensor, where: Where) -> Tensor:
        if where.below is None:
            where.hand_up(A)
            return A
        return where.below


def test_scores_are_summed_from_layer_to_layer() -> None:
    torch.manual_seed(0)
    gpt: Any = GPT(11, D, H, 3, core=Residual).double()
    X, total = gpt.embed(TEXT), torch.zeros(2, H, 9, 9).double()
    for block in gpt.stack.blocks:
        attend: Any = block.attend
        Q, K, V = attend.project(block.norms[0](X), None)
        total = total + Q @ K.mT / D_HEAD**0.5
        A = total.masked_fill(~causal().mask(9), -torch.inf).softmax(-1)
        X = X + attend.join(A @ V, X)
        X = X + block.feed(block.norms[1](X))
    wanted = gpt.stack.norm(X) @ gpt.embed.weight.T
    agree_with_gradients(gpt(TEXT), wanted, list(gpt.parameters()))
    close(streamed(gpt, TEXT, 4)[:, :4], gpt(TEXT)[:, :4])


def test_weights_are_taken_from_below_and_calls_do_not_meet() -> None:
    gpt = GPT(11, D, H, 2, core=Lazy).double()
    A = list(attention_weights(gpt, TEXT).values())
    assert A[0].equal(A[1])
    short = gpt(TEXT[:, :5])
    gpt(TEXT)
    close(gpt(TEXT[:, :5]), short)


def test_an_encoder_and_both_kinds_of_a_decoders_attention_have_lines_of_their_own() -> None:
    seen = []

    class Spy(Dense):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def scores(self, s: Tensor, where: Where) -> Tensor:
            seen.append((self.name, where.below))
            where.hand_up(self.name)
            return s

    both = EncoderDecoder(11, D, H, 2)
    for name, module in both.named_modules():
        if isinstance(module, MultiHeadAttention):
            module.core = Spy(name)
    both(TEXT, TEXT)
    assert dict(seen) == {
        f"{side}.blocks.{n}.{kind}": f"{side}.blocks.0.{kind}" if n else None
        for side, kind in (("encoder", "attend"), ("decoder", "attend"), ("decoder", "cross"))
        for n in (0, 1)
    }


def test_one_block_hands_up_to_its_next_step_and_nobody_carries_outside_of_a_stack() -> None:
    torch.manual_seed(0)
    model = universal(GPT(11, D, H, 1, core=Residual, order=post_norm), 3)
    plain = universal(GPT(11, D, H, 1, order=post_norm), 3)
    plain.load_state_dict(model.state_dict())
    assert not torch.allclose(model(TEXT), plain(TEXT))
    attend, X = MultiHeadAttention(D, H, core=Residual), torch.randn(1, 3, D)
    refused("hands something up, and nobody carries it; call the whole Stack", attend, X)
    with levels():
        attend(X)
    refused("nobody carries it", attend, X)


# --- from outside: CA-MTL's bias ------------------------------------------------------------------


class Conditional(Dense):
    """Pilault et al. 2020 (CA-MTL): scores get a bias that is made of the task's vector."""

    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(3, H)

    def scores(self, s: Tensor, where: Where) -> Tensor:
        i = torch.arange(s.shape[-1])
        near = -(i[-s.shape[-2] :, None] - i).abs()
        return s + self.W(where.given["task"])[:, :, None, None] * near


def test_what_is_given_reaches_every_core_and_no_other_call() -> None:
    bert = BERT(11, D, H, 2, core=Conditional)
    task = torch.eye(3)[:2].requires_grad_()
    with given(task=task):
        together = bert(TEXT)
        with given(task=task[1:], other=task):
            alone = bert(TEXT[1:])
        torch.testing.assert_close(bert(TEXT), together)
        with given(other=task):  # what was given before is still there
            torch.testing.assert_close(bert(TEXT), together)
    torch.testing.assert_close(together[1:], alone)
    assert torch.autograd.grad(together.square().sum(), task)[0].any()
    with pytest.raises(KeyError, match="task"):
        bert(TEXT)
    with pytest.raises(RuntimeError), given(task=task):
        raise RuntimeError
    assert not Where().given


# --- stacks ---------------------------------------------------------------------------------------


def test_every_layer_may_be_told_its_own() -> None:
    told: list[dict[str, Any]] = [
        {"pattern": sliding_window(lookback=2)},
        {"core": lambda: Rope(4), "h_kv": 1},
        {},
    ]
    gpt = GPT(11, D, H, 3, layer=lambda n: told[n])
    attends: list[Any] = [block.attend for block in gpt.stack.blocks]
    assert [a.pattern for a in attends] == [sliding_window(lookback=2), causal(), causal()]
    assert [type(a.core) for a in attends] == [Dense, Rope, Dense]
    assert [a.h_kv for a in attends] == [4, 1, 4]
    with pytest.raises(TypeError, match="window"):
        GPT(11, D, H, 1, layer=lambda n: {"window": 3})


class Gated(nn.Module):
    """Parisotto et al. 2019 (GTrXL), with one gate in the place of a GRU."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.U = nn.Linear(2 * d, d)
        nn.init.constant_(self.U.bias, -2.0)

    def forward(self, X: Tensor, F: Any, LN: Any) -> Tensor:
        Y = F(LN(X)).relu()
        g = self.U(torch.cat([X, Y], -1)).sigmoid()
        return (1 - g) * X + g * Y


def test_an_order_with_weights_has_them_in_each_sublayer() -> None:
    both = Stack(2, D, H, Gated, crosses=True, pattern=causal())
    gates = [name for name, _ in both.named_parameters() if name.endswith("U.weight")]
    assert gates == [f"blocks.{n}.orders.{k}.U.weight" for n in (0, 1) for k in range(3)]
    X = torch.randn(2, 5, D)
    block: Any = both.blocks[0]
    Y = block.orders[0](X, block.attend, block.norms[0])
    Y = block.orders[1](Y, lambda Z: block.cross(Z, X), block.norms[1])
    torch.testing.assert_close(block(X, X), block.orders[2](Y, block.feed, block.norms[2]))
    both(X, X).sum().backward()
    assert all(
        p.grad is not None and p.grad.any() for n, p in both.named_parameters() if ".U." in n
    )
    of_no_kind("order is one module for all", Stack, 2, D, H, Gated(D))
    assert not any("orders" in name for name, _ in Stack(1, D, H).named_parameters())


class Halved(MultiHeadAttention):
    """Half of what attention finds."""

    def forward(self, X: Tensor, *rest: Any) -> Tensor:
        return super().forward(X, *rest) / 2


def test_a_block_makes_an_attention_of_ones_own_and_gives_it_its_options() -> None:
    half, whole = (GPT(11, D, H, 1, h_kv=2, mix=kind) for kind in (Halved, MultiHeadAttention))
    half.load_state_dict(whole.state_dict())
    assert first(half).h_kv == 2
    X = torch.randn(2, 5, D)
    torch.testing.assert_close(first(half)(X), first(whole)(X) / 2)
    assert not torch.allclose(half(TEXT), whole(TEXT))


class Convolved(Block):
    """Half of a Conformer: a depthwise convolution between attention and feed-forward."""

    def __init__(self, d: int, h: int, order: Any, **more: Any) -> None:
        super().__init__(d, h, order, **more)
        self.conv = nn.Conv1d(d, d, 3, groups=d, padding=1)

    def forward(self, X: Tensor, *rest: Any) -> Tensor:
        return super().forward(X + self.conv(X.mT).mT, *rest)


def test_a_stack_takes_other_blocks() -> None:
    bert = BERT(11, D, H, 2, block=Convolved, order=pre_norm)
    assert all(isinstance(block, Convolved) for block in bert.stack.blocks)
    assert bert(TEXT).shape == (2, 9, 11)
    once = Block(D, H)
    shared = Stack(3, D, H, block=lambda *sizes, **more: once)  # one block, three times
    assert sum(1 for _ in shared.parameters()) == len(list(once.parameters())) + 2


# --- watched --------------------------------------------------------------------------------------


def test_maps_and_heads_have_gradients_while_somebody_watches() -> None:
    """Li et al. 2018: heads that find the same are pushed apart, by their weights or outputs."""
    gpt = GPT(11, D, H, 2)
    wanted = attention_weights(gpt, TEXT)
    refused("nobody watches 'stack.blocks.0.attend'; call", maps, gpt)
    with watched(gpt) as attends:
        assert maps(gpt) == {}
        out = gpt(TEXT)
        found = maps(gpt)
        assert found.keys() == attends.keys() == wanted.keys()
        assert all(found[name].equal(wanted[name]) for name in wanted)
        unit = nn.functional.normalize(attends["stack.blocks.1.attend"].seen.heads, dim=-1)  # type: ignore[union-attr]
        alike = torch.einsum("bhld,bgld->bhg", unit, unit).mean()
        overlap = sum((A[:, :, None] * A[:, None]).sum() for A in found.values())
        loss: Any = out.square().mean() + alike + overlap
        loss.backward()
        attention_weights(gpt, TEXT[:1])
        assert maps(gpt)["stack.blocks.0.attend"].shape[0] == 1  # still watched, the last call
    weight: Any = gpt.stack.blocks[1].attend.W_qkv.weight.grad  # type: ignore[union-attr]
    assert weight[: 2 * D].any()
    refused("nobody watches", maps, gpt)
    torch.testing.assert_close(gpt(TEXT), out)


def test_a_span_is_a_cores_own_and_full_attention_is_left_to_the_kernel() -> None:
    for core in (Dense(), AdaptiveSpan(H, 4.0, 2.0)):
        assert core.scores is None and core.mix is None
        assert core(*qkv(), Where(full()))[1] is None


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/dense_attention.py": [
        (
            "scores that are changed behind the pattern's mask",
            "    if scores is not None:\n        s = scores(s)\n",
            "",
        ),
        ("weights that values never see mixed", "        A = mix(A)\n", "        mix(A)\n"),
    ],
    "tfviz/cores.py": [
        (
            "cross-attention that finds what self-attention handed up",
            "handed[self.crosses] = value",
            "handed[False] = handed[True] = value",
        ),
        (
            "what is handed up that stays for the next call",
            "        _BELOW.reset(outside)\n",
            "        pass\n",
        ),
        (
            "what is given that stays for the next call",
            "        _GIVEN.reset(outside)\n",
            "        pass\n",
        ),
        (
            "only what is given last reaches a core",
            "{**_GIVEN.get(), **tensors}",
            "{**tensors}",
            "given",
        ),
        (
            "cross-attention that looks below at self-attention's line",
            ".get(self.crosses)",
            ".get(False)",
            "lines",
        ),
    ],
    "tfviz/models/blocks.py": [
        (
            "a memory that is projected at every token",
            "memory[:, :0] if kept and memory is not None else memory",
            "memory",
        ),
        (
            "an attention of one's own that no block makes",
            'self.attend, self.order = made("mix", mix, ',
            'self.attend, self.order = made("mix", MultiHeadAttention, ',
            "attention_of_ones or mixer",
        ),
        (
            "an order whose weights all sublayers share",
            "nn.ModuleList(order(*widths) for _ in self.norms)",
            "nn.ModuleList([order(*widths)] * len(self.norms))",
        ),
        ("layers that are told nothing of their own", "**more | own_options(layer, n)", "**more"),
        ("a projection that says nothing more", "where = replace(where, more=more[0])", "pass"),
        ("heads that are joined without X", "self.join(heads, X)", "self.join(heads, 0 * X)"),
        ("a block that knows no number", '{"n": n} if numbered else {}', "{}"),
    ],
    "tfviz/models/use.py": [
        (
            "a model that is watched for ever",
            "module.watched = before[name]",
            "module.watched = True",
            "watches",
        ),
    ],
}
