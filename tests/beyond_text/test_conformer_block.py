"""The Conformer: its convolution by hand and in loops, its order typed out, the code of others."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case
from refusals import ranges, refused
from torch import Tensor, nn

from tfviz import GPT, patterns
from tfviz.beyond_text import conformer_block as room
from tfviz.beyond_text.conformer_block import Conformer, Convolution, conformer
from tfviz.cores import Dense
from tfviz.models.bert import BERT
from tfviz.models.blocks import post_norm, pre_norm
from tfviz.position.shaw_relative import shaw

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
D, H, L, K = 8, 2, 12, 5


def restless(module: nn.Module) -> Any:
    """In evaluation mode and float64, with no parameter and no mean where it began."""
    module = module.double().eval()
    for x in module.parameters():
        x.data = x.data + 0.3 * torch.randn_like(x)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d) and part.running_mean is not None:
            part.running_mean.normal_()
            part.running_var = torch.rand(part.num_features).double() + 0.5
    return module


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


# --- the convolution ------------------------------------------------------------------------------


def test_golden_depthwise() -> None:
    """Channel 0 sums three neighbours, channel 1 takes the next one: 0 beyond the ends."""
    X = torch.tensor([[1.0, 1], [2, 10], [3, 100], [4, 1000]])
    taps = torch.tensor([[1.0, 1, 1], [0, 0, 1]])
    assert room.depthwise(X, taps).T.tolist() == [[3, 6, 9, 7], [10, 100, 1000, 0]]


def test_golden_depthwise_of_an_even_kernel_looks_one_further_ahead() -> None:
    X = torch.tensor([[1.0], [2], [3], [4]])
    assert room.depthwise(X, torch.tensor([[1.0, 1]]))[:, 0].tolist() == [3, 5, 7, 4]
    assert room.offsets(2) == (0, 1) and room.offsets(32) == (-15, 16)
    assert room.offsets(31) == (-15, 15) and room.offsets(1) == (0, 0)


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 7, 30])
def test_the_module_is_its_definition_in_loops(kernel: int) -> None:
    made, X = restless(Convolution(D, kernel)), drawn(2, L, D)
    taps, norm = made.depthwise.weight[:, 0], made.norm
    both = X @ made.W_1.weight.T
    gated = both[..., :D] * torch.sigmoid(both[..., D:])
    near = room.depthwise(gated, taps)
    scaled = (near - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    scaled = scaled * norm.weight + norm.bias
    close(made(X), (scaled * torch.sigmoid(scaled)) @ made.W_2.weight.T)
    assert made(X).shape == X.shape


@pytest.mark.parametrize(("kernel", "layers"), [(3, 1), (4, 2), (5, 3), (1, 2)])
def test_an_output_sees_what_reach_says(kernel: int, layers: int) -> None:
    parts = ("feed", "convolve", "feed")
    stack, X = restless(conformer(layers, D, H, kernel=kernel, parts=parts)), drawn(1, 31, D)
    X.requires_grad_()
    stack(X)[0, 15].sum().backward()
    assert X.grad is not None
    seen = X.grad[0].abs().amax(-1).nonzero()[:, 0] - 15
    assert (seen.min().item(), seen.max().item()) == room.reach(kernel, layers)
    assert room.reach(31, 17) == (-255, 255)  # by hand: 17 · 15


def test_with_attention_an_output_sees_all() -> None:
    X = drawn(1, 31, D).requires_grad_()
    restless(conformer(1, D, H, kernel=3))(X)[0, 15].sum().backward()
    assert X.grad is not None and X.grad[0].abs().amax(-1).gt(0).all()


# --- the block ------------------------------------------------------------------------------------


def typed(block: Any, X: Tensor) -> Tensor:
    """fairseq's order (conformer_layer.py), module by module, and each half typed out."""
    ffn1, mhsa, conv, ffn2 = block.parts
    norms = block.norms
    x = X
    x = 0.5 * ffn1.W_2(F.silu(ffn1.W_1(norms[0](x)))) + x
    x = mhsa(norms[1](x)) + x
    x = x + conv(norms[2](x))
    x = 0.5 * ffn2.W_2(F.silu(ffn2.W_1(norms[3](x)))) + x
    return F.layer_norm(x, x.shape[-1:], block.norm.weight, block.norm.bias)


def test_the_block_is_the_order_typed_out() -> None:
    block, X = restless(Conformer(D, H, kernel=K)), drawn(2, L, D)
    close(block(X), typed(block, X))
    stack = restless(conformer(3, D, H, kernel=K))
    wanted = X
    for one in stack.blocks:
        wanted = typed(one, wanted)
    close(stack(X), wanted)


def test_golden_half_steps() -> None:
    """Two half-steps that double their input: 8 → 8 + 8 = 16 → 32, where one full step gives 24."""

    def double(X: Tensor) -> Tensor:
        return 2 * X

    same, x = nn.Identity(), torch.tensor([8.0])
    assert room.half_step(room.half_step(x, double, same), double, same).item() == 32
    assert pre_norm(x, double, same).item() == 24


def test_with_silent_modules_it_is_a_layer_norm() -> None:
    block, X = Conformer(D, H, kernel=K).double().eval(), drawn(2, L, D)
    for part in block.parts:
        for name, x in part.named_parameters():
            if name.split(".")[0] in ("W_2", "W_o"):
                x.data.zero_()
    close(block(X), F.layer_norm(X, (D,)))


def test_two_shared_half_steps_are_not_one_full_step() -> None:
    halves = restless(Conformer(D, H, parts=("feed", "feed")))
    full = restless(Conformer(D, H, parts=("feed",), step=pre_norm))
    for module in (halves.parts[0], halves.parts[1]):
        module.load_state_dict(full.parts[0].state_dict())
    for norm in halves.norms:
        norm.load_state_dict(full.norms[0].state_dict())
    halves.norm.load_state_dict(full.norm.state_dict())
    X = drawn(1, L, D)
    assert (halves(X) - full(X)).abs().max() > 0.01


def test_the_parts_and_their_order_are_as_told() -> None:
    X, first = drawn(1, L, D), ("feed", "convolve", "attend", "feed")
    a, b = (restless(Conformer(D, H, kernel=K, parts=parts)) for parts in (room.PARTS, first))
    for n, m in ((0, 0), (1, 2), (2, 1), (3, 3)):
        b.parts[m].load_state_dict(a.parts[n].state_dict())
        b.norms[m].load_state_dict(a.norms[n].state_dict())
    b.norm.load_state_dict(a.norm.state_dict())
    assert (a(X) - b(X)).abs().max() > 0.01
    x = X
    for n, scale in ((0, 0.5), (2, 1), (1, 1), (3, 0.5)):
        x = x + scale * a.parts[n](a.norms[n](x))
    close(b(X), a.norm(x))


def test_padding_is_not_seen() -> None:
    stack, X = restless(conformer(2, D, H, kernel=K)), drawn(2, L, D)
    there = torch.arange(L)[None] < torch.tensor([[L], [7]])
    out = stack(X, None, there)
    close(out[1, :7], stack(X[1:, :7])[0])
    other = torch.where(there[..., None], X, drawn(2, L, D))
    close(stack(other, None, there)[there], out[there])
    assert (stack(other)[1, :7] - out[1, :7]).abs().max() > 1e-3


def test_an_encoder_is_made_of_it() -> None:
    model = BERT(11, D, H, 2, block=Conformer, phi=nn.SiLU)
    t = torch.randint(11, (2, L))
    assert model(t, torch.ones(2, L, dtype=torch.bool)).shape == (2, L, 11)
    assert isinstance(model.stack.norm, nn.Identity)


def test_parameters_are_as_counted() -> None:
    """The convolution module: 3d² and k taps a channel; BatchNorm has two numbers a channel."""
    assert sum(x.numel() for x in Convolution(D, K).parameters()) == 3 * D * D + K * D + 2 * D


def test_what_sees_ahead_is_refused_where_it_must_not() -> None:
    t = torch.randint(11, (2, L))
    refused("order = 'pre_norm' … give order=post_norm", GPT, 11, D, H, 1, block=Conformer)
    gpt = GPT(11, D, H, 1, block=Conformer, order=post_norm)
    refused("pattern = causal() … looks ahead; use the block in an encoder", gpt, t)
    window = Conformer(D, H, pattern=patterns.sliding_window(lookback=2), core=Dense)
    refused("pattern = sliding_window", window, torch.randn(1, L, D))
    refused("a memory is given", Conformer(D, H), torch.randn(1, L, D), torch.randn(1, L, D))
    refused("a cache is given", Conformer(D, H), torch.randn(1, L, D), None, None, {})


def test_bad_input_is_named() -> None:
    ranges(partial(Convolution, D), kernel=(3, 1))
    ranges(room.reach, kernel=(3, 1), layers=(2, 0))
    refused(
        "parts holds 'conv'; choose from feed, attend, convolve", Conformer, D, H, parts=["conv"]
    )
    refused("h must divide d", Conformer, D, 3)


# --- the code of others ---------------------------------------------------------------------------


def theirs_from(block: Any, config: dict[str, Any]) -> tuple[Any, Any]:
    """(Hugging Face's layer with the same weights, its table of distances)."""
    hf = pytest.importorskip("transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer")
    from transformers import Wav2Vec2ConformerConfig

    told = Wav2Vec2ConformerConfig(
        hidden_size=D,
        num_attention_heads=H,
        intermediate_size=4 * D,
        conv_depthwise_kernel_size=K,
        max_source_positions=64,
        **{"attn_implementation": "eager", **config},
    )
    layer = hf.Wav2Vec2ConformerEncoderLayer(told).double().eval()
    ffn1, mhsa, conv, ffn2 = block.parts
    for ours, feed in ((ffn1, layer.ffn1), (ffn2, layer.ffn2)):
        feed.intermediate_dense.load_state_dict(ours.W_1.state_dict())
        feed.output_dense.load_state_dict(ours.W_2.state_dict())
    attend: Any = layer.self_attn
    for n, linear in enumerate((attend.linear_q, attend.linear_k, attend.linear_v)):
        linear.weight.data, linear.bias.data = (x.chunk(3)[n] for x in mhsa.W_qkv.parameters())
    attend.linear_out.load_state_dict(mhsa.W_o.state_dict())
    xl: Any = mhsa.core
    attend.linear_pos.weight.data = xl.W_r.transpose(0, 1).flatten(1).T.clone()
    attend.pos_bias_u.data, attend.pos_bias_v.data = xl.u.data, xl.v.data
    module: Any = layer.conv_module
    module.pointwise_conv1.weight.data = conv.W_1.weight[..., None]
    module.pointwise_conv2.weight.data = conv.W_2.weight[..., None]
    module.depthwise_conv.load_state_dict(conv.depthwise.state_dict())
    module.batch_norm.load_state_dict(conv.norm.state_dict())
    norms = (
        layer.ffn1_layer_norm,
        layer.self_attn_layer_norm,
        module.layer_norm,
        layer.ffn2_layer_norm,
        layer.final_layer_norm,
    )
    for ours, norm in zip((*block.norms, block.norm), norms, strict=True):
        norm.load_state_dict(ours.state_dict())
    return layer, hf.Wav2Vec2ConformerRelPositionalEmbedding(told)


def test_parity_with_hugging_face() -> None:
    """To 1e-6: its table of sines and cosines is made in float32."""
    block, X = restless(Conformer(D, H, kernel=K)), drawn(2, L, D)
    layer, places = theirs_from(block, {"hidden_act": "silu"})
    out = layer(X, relative_position_embeddings=places(X).double())
    torch.testing.assert_close(out, block(X), atol=1e-6, rtol=1e-6)


def test_hugging_face_has_gelu_where_the_paper_has_swish() -> None:
    """Its default; in the feed-forward layers and in the convolution."""
    block, X = restless(Conformer(D, H, kernel=K)), drawn(2, L, D)
    layer, places = theirs_from(block, {})
    out = layer(X, relative_position_embeddings=places(X).double())
    assert (out - block(X)).abs().max() > 1e-3


def test_hugging_face_lets_the_convolution_see_padding() -> None:
    """With the mask of attention alone, what stands at padding changes a token beside it."""
    block, X = restless(Conformer(D, H, kernel=K)), drawn(1, L, D)
    layer, places = theirs_from(block, {"hidden_act": "silu"})
    there = (torch.arange(L) < 7)[None]
    mask = torch.where(there, 0.0, -1e30).double()[:, None, None]
    other = torch.where(there[..., None], X, drawn(1, L, D))
    at = places(X).double()
    a, b = (layer(x, attention_mask=mask, relative_position_embeddings=at) for x in (X, other))
    changed = (a - b)[0, :7].abs().amax(-1) > 1e-9
    assert changed.tolist() == [False] * 5 + [True] * 2  # K // 2 tokens before the padding
    close(block(X, None, there)[0, :7], block(other, None, there)[0, :7])


def lucid(block: Any, **told: Any) -> Any:
    """lucidrains' block with the same weights."""
    package = pytest.importorskip("conformer")
    told = {"conv_expansion_factor": 1, "conv_kernel_size": K} | told
    theirs: Any = package.ConformerBlock(dim=D, dim_head=D // H, heads=H, **told).double().eval()
    ffn1, mhsa, conv, ffn2 = block.parts
    for ours, half in ((ffn1, theirs.ff1), (ffn2, theirs.ff2)):
        half.fn.fn.net[0].load_state_dict(ours.W_1.state_dict())
        half.fn.fn.net[3].load_state_dict(ours.W_2.state_dict())
    attend: Any = theirs.attn.fn
    W, b = mhsa.W_qkv.parameters()
    b.data.zero_()  # their projections have no bias
    attend.to_q.weight.data, attend.to_kv.weight.data = W[:D].data, W[D:].data
    attend.to_out.load_state_dict(mhsa.W_o.state_dict())
    if hasattr(mhsa.core, "P_k"):  # theirs counts i − j, Shaw j − i
        attend.rel_pos_emb.weight.data = mhsa.core.P_k.data.flip(0)
    net: Any = theirs.conv.net
    if told["conv_expansion_factor"] == 1:
        net[2].weight.data = conv.W_1.weight[..., None]
        net[4].conv.weight.data = conv.depthwise.weight.data
        net[5].load_state_dict(conv.norm.state_dict())
        net[7].weight.data = conv.W_2.weight[..., None]
        for module in (net[2], net[4].conv, net[7]):  # ours have no biases
            module.bias.data.zero_()
    norms = (theirs.ff1.fn.norm, theirs.attn.norm, net[0], theirs.ff2.fn.norm, theirs.post_norm)
    for ours, norm in zip((*block.norms, block.norm), norms, strict=True):
        norm.load_state_dict(ours.state_dict())
    return theirs


def with_shaw(kernel: int = K) -> Any:
    return restless(Conformer(D, H, kernel=kernel, core=shaw(D // H, 512, values=False)))


def test_parity_with_lucidrains() -> None:
    """The package has Shaw's distances where the paper has Transformer-XL's; so has ours here."""
    block, X = with_shaw(), drawn(2, L, D)
    close(lucid(block)(X), block(X))


def test_lucidrains_has_other_distances() -> None:
    """One vector for a distance, for all heads, and no u and v: a Conformer as in the paper with
    the same other weights answers otherwise."""
    block, X = with_shaw(), drawn(2, L, D)
    theirs, ours = lucid(block), restless(Conformer(D, H, kernel=K))
    same = {n: x for n, x in block.state_dict().items() if ".core." not in n}
    ours.load_state_dict(same, strict=False)
    assert (theirs(X) - ours(X)).abs().max() > 1e-3


def test_lucidrains_has_its_biases_elsewhere() -> None:
    """In all three convolutions, and in none of the projections to queries, keys and values."""
    theirs = lucid(with_shaw())
    net, attend = theirs.conv.net, theirs.attn.fn
    assert all(x.bias is not None for x in (net[2], net[4].conv, net[7]))
    assert attend.to_q.bias is None and attend.to_kv.bias is None
    ours: Any = Conformer(D, H)
    _, mhsa, conv, _ = ours.parts
    assert all(x.bias is None for x in (conv.W_1, conv.depthwise, conv.W_2))
    assert mhsa.W_qkv.bias is not None


def test_lucidrains_widens_the_convolution_to_2d() -> None:
    """By default the depthwise convolution is over 2d channels; here, in fairseq and in Hugging
    Face it is over d."""
    package = pytest.importorskip("conformer")
    theirs: Any = package.ConformerConvModule(D).net
    assert theirs[4].conv.weight.shape[0] == 2 * D and theirs[2].weight.shape[0] == 4 * D
    assert Convolution(D).depthwise.weight.shape[0] == D


def test_lucidrains_looks_one_further_back_with_an_even_kernel() -> None:
    package = pytest.importorskip("conformer.conformer")
    before, after = package.calc_same_padding(32)
    assert (-before, after) == (-16, 15) and room.offsets(32) == (-15, 16)
    assert package.calc_same_padding(31) == (15, 15) and room.offsets(31) == (-15, 15)
    block, X = with_shaw(4), drawn(1, L, D)
    theirs = lucid(block, conv_kernel_size=4)
    assert (theirs(X) - block(X)).abs().max() > 1e-3


CASE = Case(
    mutants=[
        ("a full step", "X + F(LN(X)) / 2", "X + F(LN(X))"),
        (
            "an even kernel that looks back",
            "return -((kernel - 1) // 2), kernel // 2",
            "return -(kernel // 2), (kernel - 1) // 2",
        ),
        ("padding that the convolution sees", "X = X * attention_mask[..., None]", "pass"),
        ("no norm at the end", "return self.norm(X)", "return X"),
        ("a gate that is left out", "X = F.glu(self.W_1(X))", "X = self.W_1(X).chunk(2, -1)[0]"),
        ("ReLU", "F.silu(self.norm(near)", "F.relu(self.norm(near)"),
        ("one convolution", "return layers * first, layers * last", "return first, last"),
    ],
)
