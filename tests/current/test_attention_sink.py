"""The learned sink: what a head leaves unsaid."""

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
from tfviz.cores import Where
from tfviz.current.attention_sink import LearnedSink, sink_attention
from tfviz.position.rope import Turned

H, D = 4, 6
LAST_4 = patterns.causal() & patterns.band(3)


def heads(L: int = 9, h_kv: int = H) -> tuple[Tensor, Tensor, Tensor]:
    made = (torch.randn(2, h, L, D, dtype=torch.float64) for h in (H, h_kv, h_kv))
    return next(made), next(made), next(made)


def core(b: Any = None) -> LearnedSink:
    made = LearnedSink(H).double()
    made.b.data = torch.randn(H).double() if b is None else torch.full((H,), float(b)).double()
    return made


def loudness(Q: Tensor, K: Tensor, mask: Tensor) -> Tensor:
    """l: log Σ exp of the scores that the mask allows."""
    s = Q @ K.mT / math.sqrt(D)
    return s.masked_fill(~mask, -math.inf).logsumexp(-1, keepdim=True)


def test_two_keys_by_hand() -> None:
    """Scores ln 2 and ln 3 beside a sink of ln 5: weights of 2/10 and 3/10, and 5/10 for nobody."""
    Q, K = torch.ones(1, 1, 1, 1).double(), torch.tensor([2.0, 3.0]).double().log().view(1, 1, 2, 1)
    V = torch.tensor([10.0, 20.0]).double().view(1, 1, 2, 1)
    out, A = sink_attention(Q, K, V, torch.tensor([5.0]).double().log())
    torch.testing.assert_close(A.flatten(), torch.tensor([0.2, 0.3]).double())
    assert out.item() == pytest.approx(8.0)


@pytest.mark.parametrize("pattern", [patterns.full(), patterns.causal(), LAST_4], ids=repr)
def test_a_sink_is_a_gate_opened_by_how_loud_the_scores_are(pattern: patterns.Pattern) -> None:
    Q, K, V = heads()
    b = torch.randn(H).double()
    plain, A = attention(Q, K, V, pattern)
    gate = (loudness(Q, K, pattern.mask(9)) - b[:, None, None]).sigmoid()
    out, weights = sink_attention(Q, K, V, b, pattern)
    torch.testing.assert_close(out, gate * plain)
    torch.testing.assert_close(weights, gate * A)


@pytest.mark.parametrize("h_kv", [1, 2, H])
@pytest.mark.parametrize("pattern", [patterns.full(), patterns.causal(), LAST_4], ids=repr)
def test_the_fused_kernel_says_the_same_with_the_same_gradients(
    pattern: patterns.Pattern, h_kv: int
) -> None:
    sink, found = core(), []
    for need_weights in (False, True):
        torch.manual_seed(1)
        X = [x.requires_grad_() for x in heads(h_kv=h_kv)]
        out, A = sink(*X, Where(pattern, need_weights=need_weights))
        assert (A is not None) == need_weights
        found.append([out, *torch.autograd.grad(out.square().sum(), [*X, sink.b])])
    torch.testing.assert_close(*found)
    assert found[0][-1].abs().min() > 0


def test_what_its_gradient_is() -> None:
    """∂out/∂b = −σ′(l − b) · softmax(s) V."""
    (Q, K, V), sink = heads(), core()
    out, _ = sink(Q, K, V, Where(patterns.causal()))
    (found,) = torch.autograd.grad(out.sum(), sink.b)
    gate = (loudness(Q, K, patterns.causal().mask(9)) - sink.b[:, None, None]).sigmoid()
    plain, _ = attention(Q, K, V, patterns.causal())
    torch.testing.assert_close(found, -(gate * (1 - gate) * plain).sum((0, 2, 3)))


def test_a_sink_that_is_far_down_changes_nothing() -> None:
    Q, K, V = heads()
    for need_weights in (False, True):
        out, _ = core(-1e4)(Q, K, V, Where(patterns.causal(), need_weights=need_weights))
        torch.testing.assert_close(out, attention(Q, K, V, patterns.causal())[0])


def test_padding_is_no_key_and_the_sink_is_no_padding() -> None:
    (Q, K, V), sink = heads(), core()
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[0, 5:], mask[1] = False, False
    for need_weights in (False, True):
        out, _ = sink(Q, K, V, Where(attention_mask=mask, need_weights=need_weights))
        torch.testing.assert_close(
            out[:1], sink_attention(Q[:1], K[:1, :, :5], V[:1, :, :5], sink.b)[0]
        )
        assert out[1].equal(torch.zeros_like(out[1]))


def test_it_is_that_of_gpt_oss() -> None:
    theirs = pytest.importorskip("transformers.models.gpt_oss.modeling_gpt_oss")
    (Q, K, V), sink = heads(h_kv=2), core()
    module = SimpleNamespace(sinks=sink.b, num_key_value_groups=2, training=False)
    ahead = torch.full((9, 9), -torch.inf).double().triu(1)
    out, A = theirs.eager_attention_forward(module, Q, K, V, ahead, scaling=D**-0.5)
    ours, weights = sink(Q, K, V, Where(patterns.causal(), need_weights=True))
    torch.testing.assert_close(ours, out.transpose(1, 2))
    torch.testing.assert_close(weights, A)


def test_a_model_of_it_learns() -> None:
    torch.manual_seed(0)
    model = GPT(11, 12, 2, 2, core=partial(Turned, core=LearnedSink))
    model(torch.tensor([[3, 1, 4, 1, 5, 9]])).log_softmax(-1)[..., 2].sum().backward()
    sinks = [x for x in model.modules() if isinstance(x, LearnedSink)]
    assert len(sinks) == 2 and all(x.b.grad is not None and x.b.grad.all() for x in sinks)
    assert all(x.b.equal(torch.zeros(2)) for x in sinks)


def test_bad_input_is_named() -> None:
    ranges(LearnedSink, h=(2, 1))
    Q, K, V = heads()
    refused("Q has 4 heads, and there are 3 sinks", LearnedSink(3).double(), Q, K, V, Where())
    two = patterns.per_head(patterns.causal(), patterns.full())
    for need_weights in (False, True):
        refused("2 heads, Q 4", core(), Q, K, V, Where(two, need_weights=need_weights))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def gated(sink: LearnedSink, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> Any:
    s = (Q @ K.mT / math.sqrt(Q.shape[-1])).masked_fill(~mask, -math.inf)
    weights = s.exp() / (sink.b.exp()[:, None, None] + s.exp().sum(-1, keepdim=True))
    return weights @ V, weights


CASE = Case(
    lambda: LearnedSink(laws.H),
    gated,
    shares_sum_to_one=False,
    mutants=[
        ("a sink that is scaled", "(self.b * math.sqrt(d))", "self.b"),
        ("a sink that the pattern hides", "F.pad(mask, (0, 1), value=True)", "F.pad(mask, (0, 1))"),
        ("one sink for all heads", "(self.b * math.sqrt(d))", "(self.b[:1] * math.sqrt(d))"),
        ("a sink with a value", "F.pad(V, (0, 0, 0, 1))", "F.pad(V, (0, 0, 0, 1), value=1.0)"),
        (
            "a sink that nothing teaches",
            "(self.b * math.sqrt(d))",
            "(self.b.detach() * math.sqrt(d))",
        ),
        ("weights that sum to 1", "return out, A[..., :-1]", "return out, A[..., :-1].softmax(-1)"),
    ],
)
