"""The output gate: what a token takes of each number that its heads have found."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from laws import Case
from mixers import Mixes
from refusals import ranges, refused
from torch import Tensor, nn

from tfviz import GPT, patterns
from tfviz.current.output_gate import OutputGate, gated_heads
from tfviz.measure import flops
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import attention_weights

D, H, D_HEAD = 12, 3, 4


def layers() -> tuple[MultiHeadAttention, MultiHeadAttention]:
    """Without and with a gate, and with the same weights besides."""
    torch.manual_seed(0)
    plain = MultiHeadAttention(D, H, pattern=patterns.causal()).double()
    gated = MultiHeadAttention(D, H, pattern=patterns.causal(), join=OutputGate).double()
    join: Any = gated.join
    gated.W_qkv.load_state_dict(plain.W_qkv.state_dict())
    join.W_o.load_state_dict(plain.W_o.state_dict())
    return plain, gated


def rows(L: int = 7) -> Tensor:
    return torch.randn(2, L, D, dtype=torch.float64)


def test_two_heads_by_hand() -> None:
    """σ(ln 3) = ¾ and σ(−ln 3) = ¼: the first head keeps ¾ of 8, the second ¼ of it."""
    heads, X = torch.full((1, 2, 1, 1), 8.0).double(), torch.tensor([[[3.0]]]).double().log()
    gated = gated_heads(heads, X, torch.tensor([[1.0], [-1.0]]).double())
    torch.testing.assert_close(gated.flatten(), torch.tensor([6.0, 2.0]).double())


def test_every_number_of_every_head_and_token_has_its_gate() -> None:
    heads, X = torch.randn(2, H, 5, D_HEAD).double(), rows(5)
    W = torch.randn(H * D_HEAD, D).double()
    gated = gated_heads(heads, X, W)
    for m, n in torch.cartesian_prod(torch.arange(H), torch.arange(D_HEAD)).tolist():
        gates = (X @ W[m * D_HEAD + n]).sigmoid()
        torch.testing.assert_close(gated[:, m, :, n], heads[:, m, :, n] * gates)


def test_without_weights_half_of_the_answer_is_left() -> None:
    plain, gated = layers()
    join: Any = gated.join
    nn.init.zeros_(join.W_g.weight)
    X, bias = rows(), plain.W_o.bias
    torch.testing.assert_close(gated(X) - bias, (plain(X) - bias) / 2)


def test_open_gates_change_nothing_and_shut_ones_let_nothing_through() -> None:
    plain, gated = layers()
    join: Any = gated.join
    X = rows().abs()
    for weight, wanted in ((100.0, plain(X)), (-100.0, plain.W_o.bias.expand_as(X))):
        nn.init.constant_(join.W_g.weight, weight)
        torch.testing.assert_close(gated(X), wanted)


def test_the_weights_of_attention_are_the_same() -> None:
    plain, gated = layers()
    X = rows()
    assert all(
        a.equal(b)
        for a, b in zip(
            attention_weights(plain, X).values(), attention_weights(gated, X).values(), strict=True
        )
    )


@torch.no_grad()
def test_what_stands_between_the_matrices_is_not_linear() -> None:
    """Of texts of one token, attention without a gate is W^v W^o, and the sum of two answers is
    that of the sum of two tokens."""
    x, y = rows(1), rows(1)
    for attend, linear in zip(layers(), (True, False), strict=True):
        for name, bias in attend.named_parameters():
            if name.endswith("bias"):
                bias.zero_()
        assert torch.allclose(attend(x + y), attend(x) + attend(y)) == linear


@torch.no_grad()
def test_it_is_that_of_transformers() -> None:
    """Whose matrix makes a query and its gate side by side, head by head; its norms of queries and
    keys stand in the projection here, and no position is turned."""
    qwen = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")
    config = qwen.Qwen3NextConfig(
        hidden_size=D,
        num_attention_heads=H,
        num_key_value_heads=H,
        head_dim=D_HEAD,
        num_hidden_layers=1,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    theirs = qwen.Qwen3NextAttention(config, 0).eval().double()

    class Normed(nn.Module):
        def forward(self, X: Tensor, memory: Tensor | None = None) -> tuple[Tensor, ...]:
            query = theirs.q_proj(X).unflatten(-1, (H, 2 * D_HEAD))[..., :D_HEAD]
            key, value = (f(X).unflatten(-1, (H, D_HEAD)) for f in (theirs.k_proj, theirs.v_proj))
            made = theirs.q_norm(query), theirs.k_norm(key), value
            return tuple(x.transpose(1, 2) for x in made)

    options: Any = {"project": Normed, "join": OutputGate, "pattern": patterns.causal()}
    ours = MultiHeadAttention(D, H, **options).double()
    join: Any = ours.join
    both = theirs.q_proj.weight.unflatten(0, (H, 2 * D_HEAD))
    join.W_g.weight.copy_(both[:, D_HEAD:].flatten(0, 1))
    join.W_o.weight.copy_(theirs.o_proj.weight)
    join.W_o.bias.zero_()
    X = rows(9)
    still = torch.ones(1, 9, D_HEAD).double(), torch.zeros(1, 9, D_HEAD).double()
    ahead = torch.full((9, 9), -torch.inf).double().triu(1)[None, None]
    out = theirs(X, position_embeddings=still, attention_mask=ahead)[0]
    torch.testing.assert_close(ours(X), out, atol=1e-6, rtol=1e-5)  # their softmax is float32


def test_it_costs_one_more_product_for_each_token() -> None:
    X = rows(10)
    plain, gated = (flops(attend, X) for attend in layers())
    assert gated - plain == 2 * X.shape[0] * 10 * D * H * D_HEAD


def test_a_model_of_it_learns() -> None:
    torch.manual_seed(0)
    model = GPT(11, D, H, 2, join=OutputGate)
    logits = model(torch.tensor([[3, 1, 4, 1, 5, 9]]))
    logits.log_softmax(-1)[..., 2].sum().backward()
    gates = [x.W_g.weight.grad for x in model.modules() if isinstance(x, OutputGate)]
    assert len(gates) == 2 and all(g is not None and g.abs().sum() > 0 for g in gates)


def test_bad_input_is_named() -> None:
    ranges(OutputGate, d=(4, 1), h=(2, 1), d_head=(2, 1))
    gate = OutputGate(D, H, D_HEAD)
    refused("X … (2, 7, 11)", gate, torch.ones(2, H, 7, D_HEAD), torch.ones(2, 7, D - 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mixers={
        "gated": Mixes(lambda: MultiHeadAttention(8, 2, pattern=patterns.causal(), join=OutputGate))
    },
    mutants=[
        ("a gate of any size", "heads * gates.sigmoid()", "heads * gates"),
        ("a gate that is added", "heads * gates.sigmoid()", "heads + gates.sigmoid()"),
        ("one gate for a head", "heads * gates.sigmoid()", "heads * gates.sigmoid()[..., :1]"),
        ("one gate for a token", "heads * gates.sigmoid()", "heads * gates[:, :1].sigmoid()"),
        ("a gate that nothing teaches", "self.W_g.weight)", "self.W_g.weight.detach())"),
    ],
)
