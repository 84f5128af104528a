"""The models: against torch's and Hugging Face's with the same weights, and their invariants."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfviz import attention, patterns
from tfviz.basics.additive_attention import Additive
from tfviz.cores import Dense, Sparse
from tfviz.dense_attention import heads_attention
from tfviz.models.bert import BERT
from tfviz.models.blocks import (
    Block,
    FeedForward,
    MultiHeadAttention,
    Stack,
    post_norm,
    pre_norm,
)
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights, generate
from tfviz.position import Bias, positions
from tfviz.position.learned_pe import Learned
from tfviz.position.rope import Rope
from tfviz.position.sinusoidal_pe import Sinusoidal, sinusoids
from tfviz.position.t5_relative_bias import t5_bias
from tfviz.position.xl_relative import xl

RESTS_ON = ("tfviz/**", "tests/*.py")  # weights are found by their names

VOCAB, D, H, N, LENGTH = 23, 32, 4, 2, 11
close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)


def tokens(length: int = LENGTH, batch: int = 3) -> Tensor:
    return torch.randint(VOCAB, (batch, length))


def copy(ours: nn.Module, *theirs: nn.Module | Tensor, turned: bool = False) -> None:
    """The weights (turned: as (in, out)) and biases of one or several of theirs, one below the
    other, into ours."""
    for name in ("weight", "bias"):
        parts = [x if isinstance(x, Tensor) else getattr(x, name) for x in theirs]
        parts = [x.T if turned and x.dim() == 2 else x for x in parts]
        mine = getattr(ours, name)
        assert mine.shape == torch.cat(parts).shape
        mine.data = torch.cat(parts).detach().clone()


def disturb(module: nn.Module) -> None:
    """Biases and norms away from 0 and 1, so that forgetting to copy one is seen."""
    for name, x in module.named_parameters():
        if x.dim() == 1:
            x.data += 0.3 * torch.randn_like(x)
        assert x.std() > 0, name


# --- torch's modules ------------------------------------------------------------------------------


def from_torch_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    ours.W_qkv.weight.data = theirs.in_proj_weight.detach().clone()
    ours.W_qkv.bias.data = theirs.in_proj_bias.detach().clone()
    copy(ours.W_o, theirs.out_proj)


def qkv(attend: MultiHeadAttention, X: Tensor) -> list[Tensor]:
    """Q, K, V by head, (b, h, L, d_head), the long way."""
    parts = attend.W_qkv(X).split(attend.d_head, -1)
    h, h_kv = attend.h, attend.h_kv
    return [torch.stack(x, 1) for x in (parts[:h], parts[h : h + h_kv], parts[h + h_kv :])]


def from_torch_block(ours: Any, theirs: Any) -> None:
    from_torch_attention(ours.attend, theirs.self_attn)
    norms = [theirs.norm1, theirs.norm2]
    if ours.cross is not None:
        from_torch_attention(ours.cross, theirs.multihead_attn)
        norms.append(theirs.norm3)
    copy(ours.feed.W_1, theirs.linear1)
    copy(ours.feed.W_2, theirs.linear2)
    for mine, norm in zip(ours.norms, norms, strict=True):
        copy(mine, norm)


def from_torch_stack(ours: Stack, theirs: Any) -> None:
    for mine, layer in zip(ours.blocks, theirs.layers, strict=True):
        from_torch_block(mine, layer)
    if theirs.norm is not None:
        copy(ours.norm, theirs.norm)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_torchs_with_its_weights_and_gradients(causal):
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    disturb(theirs)
    ours = MultiHeadAttention(D, H, pattern=patterns.causal() if causal else None)
    from_torch_attention(ours, theirs)
    X, Y = (torch.randn(3, LENGTH, D, requires_grad=True) for _ in range(2))
    Y.data = X.data.clone()
    mask = ~patterns.causal().mask(LENGTH) if causal else None
    expected, A = theirs(X, X, X, attn_mask=mask, average_attn_weights=False)
    got = ours(Y)
    close(got, expected)
    close(attention_weights(ours, Y)[""], A)
    aim = torch.randn_like(got)
    (got * aim).sum().backward()
    (expected * aim).sum().backward()
    close(Y.grad, X.grad)
    close(ours.W_qkv.weight.grad, theirs.in_proj_weight.grad)


def test_cross_attention_is_torchs_also_with_padding():
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    disturb(theirs)
    ours = MultiHeadAttention(D, H)
    from_torch_attention(ours, theirs)
    X, memory = torch.randn(3, 5, D), torch.randn(3, LENGTH, D)
    attention_mask = torch.arange(LENGTH) < torch.tensor([[11], [4], [1]])
    expected, A = theirs(
        X, memory, memory, key_padding_mask=~attention_mask, average_attn_weights=False
    )
    close(ours(X, memory, attention_mask), expected)
    close(attention_weights(ours, X, memory, attention_mask)[""], A)
    assert not torch.allclose(ours(X, memory), expected)


@pytest.mark.parametrize("order", [pre_norm, post_norm])
@pytest.mark.parametrize("phi", [nn.ReLU, nn.GELU])
def test_an_encoder_block_is_torchs_with_padding_and_gradients(order, phi):
    theirs = nn.TransformerEncoderLayer(
        D, H, 3 * D, 0.0, phi(), batch_first=True, norm_first=order is pre_norm
    )
    disturb(theirs)
    ours: Any = Block(D, H, order, d_ff=3 * D, phi=phi)
    from_torch_block(ours, theirs)
    attention_mask = torch.arange(LENGTH) < torch.tensor([[11], [4], [7]])
    X = torch.randn(3, LENGTH, D, requires_grad=True)
    Y = X.detach().clone().requires_grad_()
    expected, got = (
        theirs(X, src_key_padding_mask=~attention_mask),
        ours(Y, attention_mask=attention_mask),
    )
    close(got, expected)
    aim = torch.randn_like(got)
    (expected * aim).sum().backward()
    (got * aim).sum().backward()
    close(Y.grad, X.grad)
    close(ours.feed.W_1.weight.grad, theirs.linear1.weight.grad)


@pytest.mark.parametrize("order", [pre_norm, post_norm])
def test_a_decoder_block_is_torchs(order):
    theirs = nn.TransformerDecoderLayer(
        D, H, 4 * D, 0.0, batch_first=True, norm_first=order is pre_norm
    )
    disturb(theirs)
    ours = Block(D, H, order, crosses=True, phi=nn.ReLU, pattern=patterns.causal())
    from_torch_block(ours, theirs)
    X, memory = torch.randn(3, 7, D), torch.randn(3, LENGTH, D)
    attention_mask = torch.arange(LENGTH) < torch.tensor([[11], [4], [7]])
    future = nn.Transformer.generate_square_subsequent_mask(7)
    expected = theirs(X, memory, tgt_mask=future < 0, memory_key_padding_mask=~attention_mask)
    close(ours(X, memory, attention_mask), expected)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("order", [pre_norm, post_norm])
def test_the_encoder_decoder_is_nn_transformer(order):
    """Torch always ends both stacks with a norm; in post-norm order, as in 2017, there is none."""
    first = order is pre_norm
    theirs: Any = nn.Transformer(D, H, N, N, 4 * D, dropout=0.0, batch_first=True, norm_first=first)
    if not first:
        theirs.encoder.norm = theirs.decoder.norm = None
    disturb(theirs)
    ours = EncoderDecoder(VOCAB, D, H, N, positions=Sinusoidal(D), order=order)
    from_torch_stack(ours.encoder, theirs.encoder)
    from_torch_stack(ours.decoder, theirs.decoder)
    source, target = tokens(), tokens(7)
    E = ours.embed.weight
    P = sinusoids(torch.arange(LENGTH), D)
    future = ~patterns.causal().mask(7)
    embedded = [E[t] * math.sqrt(D) + P[: t.shape[1]] for t in (source, target)]
    expected = theirs(*embedded, tgt_mask=future) @ E.T
    close(ours(source, target), expected)


# --- Hugging Face ---------------------------------------------------------------------------------


def test_gpt_is_hugging_faces_gpt_2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCAB, n_positions=20, n_embd=D, n_layer=3, n_head=H,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.2,
    )  # fmt: skip
    theirs: Any = GPT2LMHeadModel(config)
    disturb(theirs)
    gelu = partial(nn.GELU, approximate="tanh")  # GPT-2 uses the approximation
    ours: Any = GPT(VOCAB, D, H, 3, positions=Learned(20, D), phi=gelu)
    ours.embed.weight.data = theirs.transformer.wte.weight.data.clone()
    ours.embed.positions.P.data = theirs.transformer.wpe.weight.data.clone()
    copy(ours.stack.norm, theirs.transformer.ln_f)
    for mine, block in zip(ours.stack.blocks, theirs.transformer.h, strict=True):
        copy(mine.attend.W_qkv, block.attn.c_attn, turned=True)
        copy(mine.attend.W_o, block.attn.c_proj, turned=True)
        copy(mine.feed.W_1, block.mlp.c_fc, turned=True)
        copy(mine.feed.W_2, block.mlp.c_proj, turned=True)
        copy(mine.norms[0], block.ln_1)
        copy(mine.norms[1], block.ln_2)
    t = tokens(20)
    expected = theirs(t, labels=t)
    got = ours(t)
    close(got, expected.logits)
    loss = F.cross_entropy(got[:, :-1].flatten(0, 1), t[:, 1:].flatten())
    close(loss, expected.loss)
    loss.backward()
    expected.loss.backward()
    close(ours.embed.weight.grad, theirs.transformer.wte.weight.grad)
    assert sum(x.numel() for x in ours.parameters()) == theirs.num_parameters()
    written = theirs.generate(t[:, :4], max_new_tokens=9, do_sample=False, pad_token_id=0)
    assert generate(ours, t[:, :4], 9).equal(written)


def test_bert_is_hugging_faces():
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=VOCAB, hidden_size=D, num_hidden_layers=3, num_attention_heads=H,
        intermediate_size=4 * D, max_position_embeddings=20, initializer_range=0.2,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    theirs: Any = BertForMaskedLM(config)
    disturb(theirs)
    body, head = theirs.bert, theirs.cls.predictions
    ours: Any = BERT(VOCAB, D, H, 3, positions=Learned(20, D))
    for module in ours.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = config.layer_norm_eps  # 1e-12 there, torch's 1e-5 here
    ours.embed.weight.data = body.embeddings.word_embeddings.weight.data.clone()
    ours.embed.positions.P.data = body.embeddings.position_embeddings.weight.data.clone()
    ours.segment.weight.data = body.embeddings.token_type_embeddings.weight.data.clone()
    copy(ours.first_norm, body.embeddings.LayerNorm)
    for mine, block in zip(ours.stack.blocks, body.encoder.layer, strict=True):
        attend = block.attention.self
        copy(mine.attend.W_qkv, attend.query, attend.key, attend.value)
        copy(mine.attend.W_o, block.attention.output.dense)
        copy(mine.norms[0], block.attention.output.LayerNorm)
        copy(mine.feed.W_1, block.intermediate.dense)
        copy(mine.feed.W_2, block.output.dense)
        copy(mine.norms[1], block.output.LayerNorm)
    copy(ours.last, head.transform.dense)
    copy(ours.last_norm, head.transform.LayerNorm)
    ours.b.data = head.bias.data.clone()
    t, attention_mask = tokens(), torch.arange(LENGTH) < torch.tensor([[11], [4], [7]])
    segment = (torch.arange(LENGTH) >= 3).long().expand(3, -1)
    expected = theirs(t, attention_mask=attention_mask.long(), token_type_ids=segment).logits
    got = ours(t, attention_mask, segment)
    close(got, expected)
    assert not torch.allclose(ours(t, attention_mask), expected)
    got.square().sum().backward()
    expected.square().sum().backward()
    mine, other = ours.embed.weight.grad, body.embeddings.word_embeddings.weight.grad
    close(mine[1:] / mine.std(), other[1:] / mine.std())  # token 0 is their padding: frozen


# --- position encodings inside attention ----------------------------------------------------------


class Rotary(Dense):
    def turn(self, X: Tensor, start: int) -> Tensor:
        i = torch.arange(start, start + X.shape[2])
        turns = i[:, None] * 10_000.0 ** (-torch.arange(0, X.shape[-1], 2) / X.shape[-1])
        pairs = torch.view_as_complex(X.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(turns), turns)).flatten(-2)


class Shaw(Dense):
    reads_weights = True

    def __init__(self, clip: int = 3, d_head: int = D // H) -> None:
        super().__init__()
        self.clip = clip
        self.P_k, self.P_v = (nn.Parameter(torch.randn(2 * clip + 1, d_head)) for _ in range(2))

    def label(self, Lq: int, Lk: int) -> Tensor:
        i, j = positions(Lq, Lk)
        return (j - i).clamp(-self.clip, self.clip) + self.clip

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        products = Q @ self.P_k.T  # (b, h, Lq, 2·clip + 1)
        label = self.label(Q.shape[2], K.shape[2]).expand(*Q.shape[:2], -1, -1)
        return products.gather(-1, label) / math.sqrt(Q.shape[-1])

    def values(self, A: Tensor) -> Tensor:
        return torch.einsum("bhij,ijd->bhid", A, self.P_v[self.label(*A.shape[2:])])


class TransformerXL(Dense):
    def __init__(self, h: int = H, d_head: int = D // H) -> None:
        super().__init__()
        self.u, self.v = (nn.Parameter(torch.randn(h, 1, d_head)) for _ in range(2))
        self.W_R = nn.Parameter(torch.randn(h, D, d_head) / math.sqrt(D))

    def bias(self, Q: Tensor, K: Tensor) -> Tensor:
        i, j = positions(Q.shape[2], K.shape[2])
        R = torch.einsum("ijd,hde->hije", sinusoids(i - j, D), self.W_R)
        place = torch.einsum("bhie,hije->bhij", Q + self.v, R)
        return (place + self.u @ K.transpose(-1, -2)) / math.sqrt(Q.shape[-1])


def Slopes() -> Bias:  # ALiBi
    return Bias(lambda i, j: -(0.5 ** torch.arange(1, H + 1)[:, None, None]) * (i - j).abs())


SCHEMES: dict[str, Callable[[], Dense]] = {
    "none": Dense, "rotary": Rotary, "Shaw": Shaw, "XL": TransformerXL, "ALiBi": Slopes,
}  # fmt: skip
POSITIONS: dict[str, Any] = {
    "none": None, "sinusoidal": Sinusoidal(D), "learned": Learned(LENGTH, D, std=1.0),
}  # fmt: skip


def gpt(scheme: str = "none", positions: str = "none", **more: Any) -> GPT:
    model = GPT(VOCAB, D, H, N, positions=POSITIONS[positions], core=SCHEMES[scheme], **more)
    disturb(model)
    return model.eval()


def test_shaws_terms_are_the_ones_of_his_equations():
    attend: Any = MultiHeadAttention(D, 1, core=partial(Shaw, 2, D))
    X = torch.randn(1, 6, D)
    Q, K, V = (x[0, 0] for x in qkv(attend, X))
    rows = []
    for i in range(6):
        label = [max(-2, min(2, j - i)) + 2 for j in range(6)]
        keys = torch.stack([K[j] + attend.core.P_k[label[j]] for j in range(6)])
        values = torch.stack([V[j] + attend.core.P_v[label[j]] for j in range(6)])
        rows.append((keys @ Q[i] / math.sqrt(D)).softmax(0) @ values)
    close(attend(X)[0], attend.W_o(torch.stack(rows)))


def test_transformer_xls_four_terms_are_summed_before_the_scale():
    attend: Any = MultiHeadAttention(D, H, core=TransformerXL)
    X, xl = torch.randn(1, 6, D), attend.core
    Q, K, _ = (x[0] for x in qkv(attend, X))
    scores = torch.zeros(H, 6, 6)
    for n in range(H):
        for i in range(6):
            for j in range(6):
                R = sinusoids(torch.tensor(i - j), D) @ xl.W_R[n]
                scores[n, i, j] = (Q[n, i] + xl.u[n, 0]) @ K[n, j] + (Q[n, i] + xl.v[n, 0]) @ R
    close(attention_weights(attend, X)[""][0], (scores / math.sqrt(D // H)).softmax(-1))


@pytest.mark.parametrize("scheme", ["rotary", "Shaw", "XL", "ALiBi"])
def test_relative_schemes_see_order_but_no_absolute_place(scheme):
    model = gpt(scheme)
    t, first = tokens(5), tokens(3)
    assert not torch.allclose(model(t)[:, -1], model(t[:, [1, 0, 2, 3, 4]])[:, -1], atol=1e-3)
    own = patterns.sliding_window(lookback=1)  # two layers: the last token sees back to t[:, -3]
    windowed = gpt(scheme, pattern=own)
    late = torch.cat([first, t], 1)
    close(windowed(late)[:, -1], windowed(t)[:, -1])


def test_without_positions_one_causal_layer_sees_a_set_and_two_see_an_order():
    t, turn = tokens(5), [1, 0, 3, 2, 4]
    one, two = GPT(VOCAB, D, H, 1), gpt()
    close(one(t)[:, -1], one(t[:, turn])[:, -1])
    assert not torch.allclose(two(t)[:, -1], two(t[:, turn])[:, -1], atol=1e-3)
    placed = GPT(VOCAB, D, H, 1, positions=Sinusoidal(D, scale=0.2))
    assert not torch.allclose(placed(t)[:, -1], placed(t[:, turn])[:, -1], atol=1e-3)


def test_an_encoder_without_positions_is_equivariant():
    model, t, turn = BERT(VOCAB, D, H, N), tokens(), torch.randperm(LENGTH)
    close(model(t[:, turn]), model(t)[:, turn])
    placed = BERT(VOCAB, D, H, N, positions=Learned(LENGTH, D, std=1.0))
    assert not torch.allclose(placed(t[:, turn]), placed(t)[:, turn], atol=1e-3)


def test_a_scheme_may_be_any_function_of_the_indices():
    attend = MultiHeadAttention(D, H, core=lambda: Bias(lambda i, j: -0.3 * (i - j).abs()))
    X = torch.randn(2, 6, D)
    Q, K, V = qkv(attend, X)
    expected = attention(Q, K, V, bias=lambda i, j: -0.3 * (i - j).abs())[0]
    close(attend(X), attend.W_o(expected.transpose(1, 2).flatten(2)))


def test_sinusoids_have_their_invariants():
    P = sinusoids(torch.arange(50), D)
    close(P[0], torch.tensor([0.0, 1.0]).repeat(D // 2))
    close(P.square().sum(1), torch.full((50,), D / 2))
    gram = P @ P.T
    close(gram[3:, 3:], gram[:-3, :-3], atol=1e-4)
    close(P[5, 4], torch.tensor(5 * 10_000 ** (-4 / D)).sin())
    close(Sinusoidal(D, scale=0.5)(torch.arange(50)), P / 2)


# --- one pass at once, or token by token ----------------------------------------------------------


@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("positions", list(POSITIONS))
@pytest.mark.parametrize("parts", [[1] * LENGTH, [4, 1, 3, 3]])
def test_one_parallel_pass_is_many_incremental_ones(scheme, positions, parts):
    model, t = gpt(scheme, positions, h_kv=H if scheme == "XL" else 2), tokens()
    whole, cache = model(t), dict[Any, Any]()
    for n, part in enumerate(t.split(parts, 1)):
        got = model(part, cache)
        start = sum(parts[:n])
        close(got, whole[:, start : start + parts[n]])
        for length, (K, V) in cache.values():
            assert length == start + parts[n]
            assert K.shape == V.shape == (3, H if scheme == "XL" else 2, start + parts[n], D // H)
    assert len(cache) == N


def test_the_bytes_of_the_cache_are_the_formulas():
    for h_kv in (H, 2, 1):
        cache: dict[Any, Any] = {}
        gpt(h_kv=h_kv)(tokens(), cache)
        held = sum(x.numel() * x.element_size() for _, pair in cache.values() for x in pair)
        assert held == 2 * 3 * LENGTH * N * h_kv * (D // H) * 4


def test_the_encoder_decoder_writes_token_by_token_too():
    model = EncoderDecoder(VOCAB, D, H, N, positions=Sinusoidal(D))
    source, target = tokens(), tokens(6)
    attention_mask = torch.arange(LENGTH) < torch.tensor([[11], [4], [7]])
    whole, cache = model(source, target, attention_mask), dict[Any, Any]()
    memory = model.encode(source, attention_mask)
    for i in range(6):
        close(model.decode(target[:, i : i + 1], memory, attention_mask, cache)[:, 0], whole[:, i])
    lengths = sorted(K.shape[2] for _, (K, _) in cache.values())
    assert lengths == [6] * N + [LENGTH] * N  # its own, and the source's


def test_padding_of_the_source_changes_nothing():
    model = EncoderDecoder(VOCAB, D, H, N, positions=Sinusoidal(D))
    source, target = tokens(5), tokens(6)
    padded = torch.cat([source, tokens(3)], 1)
    attention_mask = (torch.arange(8) < 5).expand(3, -1)
    close(model(padded, target, attention_mask), model(source, target))
    assert not torch.allclose(model(padded, target), model(source, target), atol=1e-3)


def test_cross_attention_does_not_care_about_the_order_of_the_memory():
    model, turn = EncoderDecoder(VOCAB, D, H, N), torch.randperm(LENGTH)
    target, memory = tokens(6), torch.randn(3, LENGTH, D)
    close(model.decode(target, memory[:, turn]), model.decode(target, memory))


# --- the future -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize("order", [pre_norm, post_norm])
@torch.no_grad()
def test_later_tokens_change_no_bit_of_earlier_logits(scheme, order):
    model, t = gpt(scheme, "learned", order=order), tokens()
    before = model(t)
    for i in (1, 5, LENGTH - 1):
        changed = t.clone()
        changed[:, i:] = (t[:, i:] + 1) % VOCAB
        after = model(changed)
        assert after[:, :i].equal(before[:, :i])
        assert not torch.allclose(after[:, i], before[:, i], atol=1e-3)


@torch.no_grad()
def test_the_decoder_does_not_see_its_future_and_sees_the_whole_source():
    model, source, target = (
        EncoderDecoder(VOCAB, D, H, N, positions=Sinusoidal(D)),
        tokens(),
        tokens(6),
    )
    before = model(source, target)
    changed = target.clone()
    changed[:, 3:] = (target[:, 3:] + 1) % VOCAB
    assert model(source, changed)[:, :3].equal(before[:, :3])
    source[:, -1] = (source[:, -1] + 1) % VOCAB
    assert not torch.allclose(model(source, target)[:, 0], before[:, 0], atol=1e-3)


def test_no_gradient_comes_back_from_the_future():
    model, t = gpt("XL"), tokens()
    X = model.embed(t).detach().requires_grad_()
    model.stack(X)[:, 4].square().sum().backward()
    assert (X.grad[:, 5:] == 0).all() and (X.grad[:, :5].abs().amax(-1) > 0).all()


@pytest.mark.parametrize("order", [pre_norm, post_norm])
def test_gradients_are_the_slopes_of_finite_differences(order):
    block = Block(8, 2, order, pattern=patterns.causal(), crosses=True, h_kv=1).double()
    X, memory = (torch.randn(1, L, 8, dtype=torch.float64, requires_grad=True) for L in (4, 3))
    assert torch.autograd.gradcheck(block, (X, memory))


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_weights_come_from_the_pass_itself(scheme):
    model, t = gpt(scheme), tokens()
    before = model(t)
    A = attention_weights(model, t)
    assert list(A) == [f"stack.blocks.{n}.attend" for n in range(N)]
    for x in A.values():
        assert x.shape == (3, H, LENGTH, LENGTH)
        close(x.sum(-1), torch.ones(3, H, LENGTH))
        assert (x.triu(1) == 0).all()
    assert model(t).equal(before)
    block: Any = model.stack.blocks[0]
    X = block.norms[0](model.embed(t))
    V = qkv(block.attend, X)[2]
    if scheme != "Shaw":  # which adds to the values
        close(block.attend.W_o((A["stack.blocks.0.attend"] @ V).transpose(1, 2).flatten(2)),
              block.attend(X))  # fmt: skip


def test_weights_of_the_encoder_decoder_and_after_an_error():
    model = EncoderDecoder(VOCAB, D, H, 1, positions=Learned(8, D))
    A = attention_weights(model, tokens(8), tokens(6))
    assert {name: tuple(x.shape[2:]) for name, x in A.items()} == {
        "encoder.blocks.0.attend": (8, 8),
        "decoder.blocks.0.attend": (6, 6),
        "decoder.blocks.0.cross": (6, 8),
    }
    with pytest.raises(ValueError, match="position 8 was asked, but P has rows 0 … 7"):
        attention_weights(model, tokens(9), tokens(6))
    attends = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    assert not any(m.watched or m.seen for m in attends)


def test_looking_works_within_incremental_passes():
    model, t, cache = gpt("rotary"), tokens(), dict[Any, Any]()
    whole = attention_weights(model, t)
    model(t[:, :-1], cache)
    for name, row in attention_weights(model, t[:, -1:], cache).items():
        close(row, whole[name][:, :, -1:])


# --- heads ----------------------------------------------------------------------------------------


def test_heads_add_up():
    """[head_1; …; head_h] W^o = Σ_n A_n X (W_n^v W_n^o), biases apart."""
    attend, X = MultiHeadAttention(D, H), torch.randn(2, LENGTH, D)
    A, d_head = attention_weights(attend, X)[""], D // H
    W_v, b_v = attend.W_qkv.weight[2 * D :], attend.W_qkv.bias[2 * D :]
    total = attend.W_o.bias + torch.zeros(2, LENGTH, D)
    for n in range(H):
        rows = slice(n * d_head, (n + 1) * d_head)
        value = X @ W_v[rows].T + b_v[rows]
        total = total + A[:, n] @ value @ attend.W_o.weight[:, rows].T
    close(attend(X), total)


def test_the_number_of_heads_does_not_change_the_number_of_parameters():
    counts = {h: sum(x.numel() for x in MultiHeadAttention(D, h).parameters()) for h in (1, 4, 8)}
    assert set(counts.values()) == {4 * D * D + 4 * D}
    one = sum(x.numel() for x in FeedForward(D, 4 * D, nn.GELU()).parameters())
    assert one == 8 * D * D + 5 * D


def test_shared_heads_are_heads_repeated():
    few, many = MultiHeadAttention(D, H, h_kv=2), MultiHeadAttention(D, H)
    for name in ("weight", "bias"):
        Q, K, V = getattr(few.W_qkv, name).detach().unflatten(0, (8, D // H)).split([4, 2, 2])
        parts = [Q, K.repeat_interleave(2, 0), V.repeat_interleave(2, 0)]  # heads 0, 0, 1, 1
        getattr(many.W_qkv, name).data = torch.cat(parts).flatten(0, 1)
    many.W_o.load_state_dict(few.W_o.state_dict())
    X = torch.randn(2, LENGTH, D)
    close(few(X), many(X))
    close(attention_weights(few, X)[""], attention_weights(many, X)[""])


@pytest.mark.parametrize(
    "pattern", [patterns.causal(), patterns.full(), patterns.strided(stride=3)]
)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_the_fused_way_is_the_definition(pattern, padded, biased):
    Q, K, V = (torch.randn(2, h, L, 8) for h, L in ((4, 5), (2, 9), (2, 9)))
    attention_mask = torch.arange(9) < torch.tensor([[9], [6]]) if padded else None
    bias = torch.randn(4, 5, 9) if biased else None
    out, A = heads_attention(Q, K, V, pattern, bias, attention_mask, need_weights=True)
    fast, none = heads_attention(Q, K, V, pattern, bias, attention_mask)
    close(fast, out)
    assert none is None and A is not None and A.shape == (2, 4, 5, 9)
    mask = pattern.mask(9)[4:]
    assert (A[0, :, ~mask] == 0).all()
    if padded:
        assert (A[1, ..., 6:] == 0).all()


def test_a_pattern_of_its_own_for_each_head():
    pattern = patterns.per_head(*(patterns.sliding_window(lookback=n) for n in range(H)))
    A = attention_weights(gpt(pattern=pattern), tokens())["stack.blocks.0.attend"]
    for n in range(H):
        seen = (A[0, n] > 0).sum(-1)
        assert seen.tolist() == [min(i, n) + 1 for i in range(LENGTH)]


# --- order, types, errors -------------------------------------------------------------------------


def test_without_layers_pre_norm_is_the_identity_and_post_norm_is_not():
    X = 3 * torch.randn(2, 5, D)
    for order, same in ((pre_norm, True), (post_norm, False)):
        block: Any = Block(D, H, order)
        nn.init.zeros_(block.attend.W_o.weight)
        nn.init.zeros_(block.attend.W_o.bias)
        nn.init.zeros_(block.feed.W_2.weight)
        nn.init.zeros_(block.feed.W_2.bias)
        assert block(X).equal(X) == same


def test_models_begin_by_knowing_nothing():
    t = tokens(200)
    for model in (GPT(VOCAB, D, H, N), BERT(VOCAB, D, H, N)):
        logits = model(t)[:, :-1]
        loss = F.cross_entropy(logits.flatten(0, 1), t[:, 1:].flatten())
        assert loss.item() == pytest.approx(math.log(VOCAB), abs=0.9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("scheme", ["none", "ALiBi"])
def test_any_type(dtype, scheme):
    model, t = gpt(scheme, "sinusoidal"), tokens()
    expected = model(t)
    got = model.to(dtype)(t)
    assert got.dtype == dtype
    torch.testing.assert_close(got.float(), expected, atol=0.1, rtol=0.05)


def test_the_shapes_and_devices_of_meta_tensors():
    with torch.device("meta"):
        model, t = GPT(VOCAB, D, H, N, positions=Sinusoidal(D)), torch.zeros(2, 7, dtype=torch.long)
        assert model(t).device.type == "meta" and model(t).shape == (2, 7, VOCAB)


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="d = 30, h = 4, h_kv = 4; h must divide d"):
        MultiHeadAttention(30, 4)
    with pytest.raises(ValueError, match="h_kv = 3; h must divide d, and h_kv divide h"):
        MultiHeadAttention(32, 4, h_kv=3)
    with pytest.raises(ValueError, match="h = 0 is out of range"):
        MultiHeadAttention(32, 0, h_kv=1)
    with pytest.raises(ValueError, match="position 11 was asked, but P has rows 0 … 10 only"):
        gpt(positions="learned")(tokens(12))
    with pytest.raises(ValueError, match="d = 7 is odd"):
        Sinusoidal(7)
    with pytest.raises(ValueError, match="at least one token"):
        generate(gpt(), tokens(0), 3)
    with pytest.raises(ValueError, match="steps = -1"):
        generate(gpt(), tokens(1), -1)


def test_generation_is_greedy_prediction_repeated():
    model, t = gpt("rotary"), tokens(4)
    expected = t
    for _ in range(5):
        expected = torch.cat([expected, model(expected)[:, -1].argmax(-1, keepdim=True)], 1)
    assert generate(model, t, 5).equal(expected)
    assert generate(model, t, 0).equal(t)
    last = generate(model, t, 3, pick=lambda logits: torch.full((len(logits),), 7))
    assert (last[:, 4:] == 7).all()


@torch.no_grad()
def test_the_padding_of_the_source_is_not_the_targets():
    """Also when both are of one length, so that either mask would fit."""
    model, attention_mask = (
        EncoderDecoder(VOCAB, D, H, N, positions=Sinusoidal(D)),
        torch.ones(3, LENGTH) > 0,
    )
    attention_mask[:, 4:] = False
    A = attention_weights(model, tokens(), tokens(), attention_mask)
    for n in range(N):
        assert (A[f"encoder.blocks.{n}.attend"][..., 4:] == 0).all()
        assert (A[f"decoder.blocks.{n}.cross"][..., 4:] == 0).all()
        assert (A[f"decoder.blocks.{n}.attend"].diagonal(0, -2, -1) > 0).all()


def test_an_order_of_ones_own_ends_with_a_norm_and_is_called():
    def sandwich(X, F, LN):
        return X + LN(F(X))

    out = Stack(N, D, H, sandwich)(5 * torch.randn(2, 7, D))
    close(out.mean(-1), torch.zeros(2, 7))
    close(out.var(-1, unbiased=False), torch.ones(2, 7), atol=1e-3)


@pytest.mark.parametrize(
    "attention_mask", [torch.tensor([[1.0, 1, 1, 0, 0]]), torch.tensor([[1, 1, 1, 0, 0]])]
)
def test_padding_is_boolean_or_refused(attention_mask):
    with pytest.raises(TypeError, match=f"attention_mask is {attention_mask.dtype}; give Booleans"):
        BERT(VOCAB, D, H, N)(tokens(5, 1), attention_mask)
    with pytest.raises(ValueError, match=r"attention_mask has shape \(2, 5\), t \(3, 5\)"):
        BERT(VOCAB, D, H, N)(tokens(5), attention_mask.expand(2, -1) > 0)


@pytest.mark.parametrize(
    ("pattern", "length", "says"),
    [
        (patterns.blockwise(permutation=(1, 2, 3, 0)), 2, "permutation has 4 blocks; L = 2"),
        (patterns.table(torch.ones(8, 8) > 0), 5, "the table is for L = 8; L = 5"),
        (patterns.table(torch.ones(8, 8) > 0), 9, "the table is for L = 8; L = 9"),
        (patterns.random_keys(count=1, seed=0).at(8), 3, "fixed at length 8; L = 3"),
        (patterns.per_head(patterns.causal(), patterns.full()), 5, "has 2 heads, Q 4"),
    ],
)
def test_a_pattern_must_fit_the_length_and_the_heads(pattern, length, says):
    with pytest.raises(ValueError, match=says):
        GPT(VOCAB, D, H, N, pattern=pattern)(tokens(length))


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Stack(-1, D, H), ValueError, "N = -1"),
        (lambda: GPT(0, D, H, N), ValueError, "vocab = 0"),
        (lambda: GPT(VOCAB, D, H, N)(tokens(5)[0]), ValueError, r"t has shape \(5,\)"),
        (lambda: GPT(VOCAB, D, H, N)(tokens(5) > 3), TypeError, "t is torch.bool"),
        (lambda: GPT(VOCAB, D, H, N, core=lambda: Rope(64))(tokens()), ValueError, r"Rope\(8\)"),
        (lambda: GPT(VOCAB, D, H, N, core=t5_bias(1))(tokens()), ValueError, "1 heads, Q has 4"),
        (lambda: GPT(VOCAB, D, H, N, core=xl(1, 8))(tokens()), ValueError, r"XL\(4, 8\)"),
        (lambda: BERT(VOCAB, D, H, N, core=xl(H, 8))(tokens()), ValueError, "bidirectional=True"),
        (lambda: quiet()(tokens(), {}), ValueError, "this core keeps nothing"),
        (lambda: attention_weights(quiet(), tokens()), ValueError, "makes no weights"),
    ],
)
def test_what_does_not_fit_is_refused(make, error, says):
    with pytest.raises(error, match=says):
        make()


def silent(Q, K, V, where):
    """A core that keeps nothing and has no weights."""
    return V, None


def quiet():
    return GPT(VOCAB, D, H, N, core=lambda: silent)


def test_any_core_stands_in_a_model_and_a_function_is_one():
    t = tokens()
    assert quiet()(t).shape == (3, LENGTH, VOCAB)
    torch.manual_seed(0)
    dense = GPT(VOCAB, D, H, N, pattern=patterns.strided(stride=3))
    torch.manual_seed(0)
    sparse = GPT(VOCAB, D, H, N, pattern=patterns.strided(stride=3), core=Sparse)
    close(sparse(t), dense(t))
    additive = GPT(VOCAB, D, H, N, core=lambda: Additive(D // H, 6))
    assert {n.split(".")[-1] for n, _ in additive.named_parameters() if ".core." in n} == {
        "W_a", "U_a", "v_a",
    }  # fmt: skip
    close(generate(additive, t, 3)[:, -1], additive(generate(additive, t, 2))[:, -1].argmax(-1))


def test_weights_from_before_cores_had_their_name_still_load():
    model = GPT(VOCAB, D, H, N, core=xl(H, D // H))
    old = {n.replace(".core.", ".positions."): x for n, x in model.state_dict().items()}
    assert set(old) != set(model.state_dict())
    other = GPT(VOCAB, D, H, N, core=xl(H, D // H))
    other.load_state_dict(old)
    assert other(tokens()[:1] * 0).equal(model(tokens()[:1] * 0))


def test_the_cost_of_a_core_is_that_of_the_pairs_it_computes():
    pattern = patterns.strided(stride=8)
    dense, sparse = (core().cost(pattern, 64, D, H) for core in (Dense, Sparse))
    assert dense.pairs == 64 * 64 and sparse.pairs == int(pattern.mask(64).sum())
    assert dense.flops == 4 * 64 * 64 * D


def test_a_memory_read_in_inference_mode_may_be_trained_on():
    model = EncoderDecoder(VOCAB, D, H, 1)
    s, t, grads = tokens(), tokens(6), []
    for mode in (torch.inference_mode, torch.no_grad):
        cache: dict = {}
        with mode():
            memory = model.encode(s)
            model.decode(t[:, :3], memory, None, cache)
        out = model.decode(t[:, 3:], memory.clone(), None, cache)
        grads.append(torch.autograd.grad(out.square().sum(), model.embed.weight)[0])
    assert grads[0].equal(grads[1])


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/cores.py": [
        (
            "keys not rotated",
            "Q, K = self.turn_queries(Q, where), self.turn_keys(K, where)",
            "Q, K = self.turn_queries(Q, where), K",
        ),
    ],
    "tfviz/models/blocks.py": [
        (
            "cached tokens all at place 0",
            "start=kept.length",
            "start=0",
        ),
        (
            "padding of the source seen",
            "cross(X, memory, attention_mask, cache)",
            "cross(X, memory, None, cache)",
        ),
        ("post-norm without its skip", "return LN(X + F(X))", "return LN(F(X))"),
        (
            "padding of the source in the decoder's own attention",
            "own, cross = None if self.cross else attention_mask, self.cross",
            "own, cross = attention_mask, self.cross",
        ),
        (
            "no last norm for orders of one's own",
            "self.norm = nn.Identity() if order is post_norm else made_norm(norm, d)",
            "self.norm = made_norm(norm, d) if order is pre_norm else nn.Identity()",
        ),
    ],
    "tfviz/models/encoder_decoder.py": [
        ("embedding not scaled", "scale=d**0.5", "scale=1.0"),
    ],
    "tfviz/dense_attention.py": [
        (
            "queries at the first places of the mask",
            "torch.arange(L - Lq, L, ",
            "torch.arange(Lq, ",
        ),
    ],
}
