"""Dynamic span: z_t lies between 0 and S, comes from its own token, and is static without v."""

from __future__ import annotations

import torch
from laws import Case, D, H, distance, work_grows_no_faster
from refusals import refused
from torch import Tensor

from tfviz import attention
from tfviz.adaptive.adaptive_span import price, ramp, span_attention, span_definition
from tfviz.adaptive.dynamic_span import DynamicSpan, dynamic_spans
from tfviz.cores import Where
from tfviz.models.gpt import GPT
from tfviz.patterns import causal


def core_and_qkv(L: int = 100, S: float = 50.0) -> tuple[DynamicSpan, list[Tensor]]:
    core = DynamicSpan(3, 6, S, R=8.0, start=10).double()
    core.v.data = torch.randn_like(core.v)
    return core, [torch.randn(2, 3, L, 6, dtype=torch.float64) for _ in range(3)]


def test_one_number_for_each_token_and_head() -> None:
    core, (Q, K, V) = core_and_qkv()
    z = core.spans(Q)
    assert z.shape == (2, 3, 100) and (z > 0).all() and (z < 50).all()
    one = 50 / (1 + (-(Q[1, 2, 7] @ core.v[2] + core.b[2])).exp())
    torch.testing.assert_close(z[1, 2, 7], one)
    out, _ = core(Q, K, V, Where(causal()))
    torch.testing.assert_close(out, span_definition(Q, K, V, z, 8.0)[0])


def test_without_v_it_is_the_static_span() -> None:
    core, (Q, K, V) = core_and_qkv()
    core.v.data.zero_()
    torch.testing.assert_close(core.spans(Q), torch.full((2, 3, 100), 10.0).double())
    static = span_attention(Q, K, V, torch.full((3, 1), 10.0).double(), 8.0)
    torch.testing.assert_close(core(Q, K, V, Where(causal()))[0], static)


def test_the_span_of_a_token_depends_on_that_token_alone() -> None:
    core, (Q, _, _) = core_and_qkv()
    other = Q.clone()
    other[:, :, 40] += 1.0
    changed = (core.spans(Q) != core.spans(other)).nonzero()[:, 2]
    assert changed.unique().tolist() == [40]


def test_a_long_span_of_one_token_is_paid_for_by_its_head_only() -> None:
    v, b = torch.ones(1, 1), torch.zeros(1)
    z = dynamic_spans(torch.tensor([[[[-30.0], [30.0], [0.0]]]]), v, b, S=8.0)
    torch.testing.assert_close(z, torch.tensor([[[0.0, 8.0, 4.0]]]))
    model = GPT(7, 12, 3, 2, core=lambda: DynamicSpan(3, 4, 40, 8, start=10))
    model(torch.arange(7)[None])
    torch.testing.assert_close(price(model), torch.tensor(20.0))


def test_work_grows_with_the_length() -> None:
    def attend(*X: Tensor) -> Tensor:
        return core(*X, Where(causal()))[0]

    core = DynamicSpan(2, 16, S=48, R=16, start=24)
    work_grows_no_faster(lambda L: attend, 1.2, leaves=lambda L: 3 * [(1, 2, L, 16)])


def test_bad_input_is_named() -> None:
    _, leaves = core_and_qkv(8)
    core = DynamicSpan(2, 6, S=40, R=8)
    refused("start = 40: a sigmoid never gets there", DynamicSpan, 2, 6, S=40, R=8, start=40)
    refused("v is for 2 heads of 6, Q has 3 of 6", core, *leaves, Where(causal()))


# --- what it brings to the laws and the mutants ---------------------------------------------------


def spanned(
    core: DynamicSpan, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """A ramp of its own for every token, after the softmax."""
    m = ramp(distance(Q.shape[2]).abs(), core.spans(Q)[..., None], core.R)
    A = attention(Q, K, V, mask)[1] * m
    A = A / A.sum(-1, keepdim=True).clamp_min(1e-300)
    return A @ V, A


CASE = Case(
    lambda: DynamicSpan(H, D, S=6, R=12),
    spanned,
    mutants=[
        (
            "a dynamic span without its bias",
            " + b.to(Q)[:, None]",
            "",
        ),
    ],
)
