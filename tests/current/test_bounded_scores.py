"""Scores that cannot run away, by normalised queries and keys and by a cap."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any

import laws
import pytest
import torch
from laws import Case
from refusals import ranges, refused
from torch import Tensor

from tfviz import GPT, attention, patterns
from tfviz.basics.layer_norm_pre_post import rms_norm
from tfviz.cores import Where
from tfviz.current.bounded_scores import QKNorm, SoftCap, soft_cap
from tfviz.position.rope import Rope, Turned, rotate

H, D = 3, 8
CAUSAL = Where(patterns.causal(), need_weights=True)


def heads(L: int = 9, size: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    made = (size * torch.randn(2, H, L, D, dtype=torch.float64) for _ in range(3))
    return next(made), next(made), next(made)


def test_rows_by_hand() -> None:
    """The mean of 9 and 1 is 5: (3, 1) becomes (3, 1)/√5."""
    core, X = QKNorm(2, 1, eps=0.0).double(), torch.tensor([3.0, 1.0]).double()
    core.norm_k.weight.data = torch.tensor([1.0, 10.0]).double()
    torch.testing.assert_close(core.norm_q(X), X / math.sqrt(5))
    torch.testing.assert_close(core.norm_k(X), torch.tensor([3.0, 10.0]).double() / math.sqrt(5))
    torch.testing.assert_close(QKNorm(2, 1, eps=4.0).norm_q(X.float()), X.float() / 3)


def test_a_cap_by_hand() -> None:
    """tanh(½ ln 3) = ½."""
    s = torch.tensor([0.0, 5 * math.log(3), -5 * math.log(3)]).double()
    torch.testing.assert_close(soft_cap(s, 10.0), torch.tensor([0.0, 5.0, -5.0]).double())


@torch.no_grad()
def test_no_score_is_larger_than_the_root_of_the_width() -> None:
    for size in (1e-2, 1.0, 1e4):
        Q, K, _ = heads(size=size)
        s = rms_norm(Q, eps=0.0) @ rms_norm(K, eps=0.0).mT / math.sqrt(D)
        assert s.abs().max() <= math.sqrt(D) + 1e-12
    s = rms_norm(Q, eps=0.0) @ rms_norm(7 * Q, eps=0.0).mT / math.sqrt(D)
    torch.testing.assert_close(s.diagonal(dim1=-2, dim2=-1), torch.full_like(s[..., 0], D**0.5))


@torch.no_grad()
def test_lengths_of_queries_and_keys_do_not_matter() -> None:
    core = QKNorm(D, H, eps=0.0).double()
    Q, K, V = heads()
    (out, A), (again, B) = core(Q, K, V, CAUSAL), core(100 * Q, K / 100, V, CAUSAL)
    torch.testing.assert_close((out, A), (again, B))


@torch.no_grad()
def test_a_turn_and_a_norm_change_places_unless_weights_are_learned() -> None:
    X, at = heads()[0], torch.arange(9)
    torch.testing.assert_close(rms_norm(rotate(X, at)), rotate(rms_norm(X), at))
    gamma = torch.linspace(0.5, 2.0, D).double()
    assert (rms_norm(rotate(X, at), gamma) - rotate(rms_norm(X, gamma), at)).abs().max() > 0.1


@torch.no_grad()
def test_a_cap_keeps_the_order_and_a_high_one_changes_nothing() -> None:
    s = torch.linspace(-60, 60, 101).double()
    assert soft_cap(s, 20.0).diff().gt(0).all() and soft_cap(s, 20.0).abs().max() < 20
    torch.testing.assert_close(soft_cap(s, 1e6), s, atol=1e-6, rtol=0)
    torch.testing.assert_close(soft_cap(s, 20.0)[50:51], s[50:51])


@torch.no_grad()
def test_a_cap_after_the_pattern_would_let_the_future_in() -> None:
    Q, K, V = heads(size=3.0)
    _, A = SoftCap(5.0)(Q, K, V, CAUSAL)
    assert A is not None and A.triu(1).equal(torch.zeros_like(A))
    ahead = torch.ones(9, 9, dtype=torch.bool).triu(1)
    late = soft_cap((Q @ K.mT / math.sqrt(D)).masked_fill(ahead, -math.inf), 5.0).softmax(-1)
    assert late.triu(1).sum(-1).max() > 0.01


@torch.no_grad()
def test_caps_are_those_of_gemma_2() -> None:
    theirs = pytest.importorskip("transformers.models.gemma2.modeling_gemma2")
    Q, K, V = (x.float() for x in heads(size=3.0))
    module = SimpleNamespace(head_dim=D, num_key_value_groups=1, training=False)
    ahead = torch.full((9, 9), -torch.inf).triu(1)
    out, A = theirs.eager_attention_forward(module, Q, K, V, ahead, softcap=5.0)
    ours, weights = SoftCap(5.0)(Q, K, V, CAUSAL)
    torch.testing.assert_close(ours, out.transpose(1, 2))
    torch.testing.assert_close(weights, A)


@torch.no_grad()
def test_norms_are_those_of_qwen_3() -> None:
    """Whose layer is taken apart: its own projections, its norms, no position turned."""
    qwen = pytest.importorskip("transformers.models.qwen3.modeling_qwen3")
    sizes = {"num_attention_heads": H, "num_key_value_heads": H, "num_hidden_layers": 1}
    config = qwen.Qwen3Config(hidden_size=D * H, head_dim=D, attn_implementation="eager", **sizes)
    torch.manual_seed(0)
    theirs = qwen.Qwen3Attention(config, 0).eval().double()
    core = QKNorm(D, H, eps=config.rms_norm_eps).double()
    for mine, norm in ((core.norm_q, theirs.q_norm), (core.norm_k, theirs.k_norm)):
        norm.weight.copy_(torch.rand(D) + 0.5)
        mine.weight.copy_(norm.weight)
    X = torch.randn(2, 9, D * H).double()
    still = torch.ones(1, 9, D).double(), torch.zeros(1, 9, D).double()
    ahead = torch.full((9, 9), -torch.inf).double().triu(1)[None, None]
    out = theirs(X, position_embeddings=still, attention_mask=ahead)[0]
    made = (
        f(X).unflatten(-1, (H, D)).transpose(1, 2)
        for f in (theirs.q_proj, theirs.k_proj, theirs.v_proj)
    )
    found, _ = core(*made, Where(patterns.causal()))
    ours = theirs.o_proj(found.transpose(1, 2).flatten(2))
    torch.testing.assert_close(ours, out, atol=1e-6, rtol=1e-5)  # their softmax is float32


def test_norms_come_before_positions_and_around_any_core() -> None:
    Q, K, V = heads()
    core = QKNorm(D, H, Rope).double()
    for norm in (core.norm_q, core.norm_k):
        norm.weight.data = torch.rand(D).double() + 0.5
    right = Rope(D)(core.norm_q(Q), core.norm_k(K), V, CAUSAL)
    torch.testing.assert_close(core(Q, K, V, CAUSAL), right)
    bare = QKNorm(D, H, partial(SoftCap, cap=2.0), learned=False)
    assert not [*bare.parameters()]
    right = SoftCap(2.0)(rms_norm(Q, eps=1e-6), rms_norm(K, eps=1e-6), V, CAUSAL)
    torch.testing.assert_close(bare(Q, K, V, CAUSAL), right)


@pytest.mark.parametrize(
    "core", [partial(QKNorm, core=Rope), partial(Turned, core=partial(SoftCap, cap=9.0))]
)
def test_a_model_of_it_learns(core: Any) -> None:
    torch.manual_seed(0)
    model = GPT(11, 12, 2, 2, core=core)
    model(torch.tensor([[3, 1, 4, 1, 5, 9]])).log_softmax(-1)[..., 2].sum().backward()
    norms = [x for x in model.modules() if isinstance(x, QKNorm)]
    grads = [norm.weight.grad for x in norms for norm in (x.norm_q, x.norm_k)]
    assert all(g is not None and g.abs().sum() > 0 for g in grads)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_bad_input_is_named() -> None:
    ranges(QKNorm, d_head=(4, 1), h=(2, 1))
    refused("eps = -1.0 is out of range", QKNorm, 4, 2, eps=-1.0)
    core = QKNorm(D - 1, H).double()
    refused("heads are 8 numbers wide; make it QKNorm(8, 3)", core, *heads(), CAUSAL)
    for make in (SoftCap, partial(soft_cap, torch.ones(3))):
        refused("cap = 0 makes all scores alike", make, 0.0)
        refused("cap = -1.0 is out of range", make, -1.0)
        refused("cap = nan is not finite", make, math.nan)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def by_lengths(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Any:
    norms = ((x.square().mean(-1, keepdim=True) + 1e-6).sqrt() for x in (Q, K))
    Q, K = (x / n for x, n in zip((Q, K), norms, strict=True))
    return attention(core.norm_q.weight * Q, core.norm_k.weight * K, V, mask)


def by_tanh(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Any:
    s = 2 * (Q @ K.mT / math.sqrt(Q.shape[-1]) / 2).tanh()
    s = s.masked_fill(~mask, -math.inf)
    none = ~mask.any(-1, keepdim=True)
    A = s.masked_fill(none, 0.0).softmax(-1).masked_fill(none, 0.0)
    return A @ V, A


CASE = Case(
    lambda: QKNorm(laws.D, laws.H),
    by_lengths,
    variants={"capped": Case(lambda: SoftCap(2.0), by_tanh)},
    mutants=[
        ("keys by the norm of queries", "self.norm_k(K), V", "self.norm_q(K), V"),
        ("values normalised too", "self.norm_k(K), V", "self.norm_k(K), self.norm_k(V)"),
        (
            "keys without γ",
            "norm_k = nn.RMSNorm(size, eps, elementwise_affine=learned)",
            "norm_k = nn.RMSNorm(size, eps, elementwise_affine=False)",
        ),
        (
            "always with γ",
            "norm_q = nn.RMSNorm(size, eps, elementwise_affine=learned)",
            "norm_q = nn.RMSNorm(size, eps)",
        ),
        ("a cap that is not undone", "return cap * (s", "return (s"),
        (
            "scores that are clipped",
            "(s / _positive(cap)).tanh()",
            "(s / _positive(cap)).clamp(-1, 1)",
        ),
    ],
)
