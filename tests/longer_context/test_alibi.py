"""ALiBi: slopes and ramps by hand, one number for each key, and what Bloom and MPT compute."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from laws import Case, H, agree_with_gradients, distance
from refusals import ranges, refused
from three import three
from torch import Tensor

from tfviz import attention
from tfviz.cores import Where
from tfviz.formula import Formula
from tfviz.longer_context.alibi import Alibi, key_bias, ramp, slopes, with_places
from tfviz.measure import largest_storage, slope
from tfviz.models.gpt import GPT
from tfviz.patterns import causal, full, sliding_window
from tfviz.position import Bias

close = torch.testing.assert_close


def halves(*powers: float) -> Tensor:
    return torch.tensor([2.0**-p for p in powers])


def test_slopes_by_hand() -> None:
    close(slopes(8), halves(*range(1, 9)))
    close(slopes(4), halves(2, 4, 6, 8))
    close(slopes(16), halves(*(n / 2 for n in range(1, 17))))
    close(slopes(12), halves(*range(1, 9), 0.5, 1.5, 2.5, 3.5))
    close(slopes(6), halves(2, 4, 6, 8, 1, 3))
    close(slopes(1), halves(8))


def test_golden_bias_of_a_row() -> None:
    Q = torch.zeros(1, 8, 4, 2)
    found = Alibi(8).bias(Q, Q)
    close(found[0, 3], torch.tensor([-1.5, -1.0, -0.5, 0.0]))  # the oldest key loses most
    close(found[7, 1], torch.tensor([-1.0, 0.0, -1.0, -2.0]) / 256)
    close(Alibi(8).bias(Q[:, :, :1], Q)[0], found[0, 3:])  # one query after three kept keys


@pytest.mark.parametrize("h", [1, 3, 8, 12, 20, 33])
def test_bloom_and_mpt_have_these_slopes(h: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    bloom = build_alibi_tensor(torch.ones(1, 7), h, torch.float32)
    close(bloom, key_bias(slopes(h), 7))
    i = torch.arange(7)
    close(build_mpt_alibi_tensor(h, 7), ramp(i[-1], i, m=slopes(h)[:, None, None]))


@pytest.mark.parametrize("h", [2, 3, 8, 12])
def test_the_formulas_of_labml_and_x_transformers(h: int) -> None:
    """Typed from labml_nn/transformers/alibi and x_transformers' AlibiPositionalBias: neither is
    among what the tests install."""
    n = 2 ** math.floor(math.log2(h))
    labml = [(2.0 ** (-8.0 / n)) ** k for k in range(1, n + 1)]
    labml += [(2.0 ** (-4.0 / n)) ** k for k in range(1, 1 + 2 * (h - n), 2)]

    def power_of_two(n: int) -> list[float]:
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**k for k in range(n)]

    lucid = power_of_two(n) + power_of_two(2 * n)[0::2][: h - n]
    close(slopes(h), torch.tensor(labml))
    close(slopes(h), torch.tensor(lucid))

    # labml adds m · (number of keys up to j), x-transformers −m |j − i|: the same weights as ours
    Q, K, V = torch.randn(3, 2, h, 6, 4)
    j = torch.arange(6)
    theirs = -(j - j[:, None]).abs() * torch.tensor(lucid)[:, None, None]
    keys = (1 + j) * torch.tensor(labml)[:, None, None]
    for bias in (theirs, keys.expand(h, 6, 6)):
        close(Alibi(h)(Q, K, V, Where(causal()))[0], attention(Q, K, V, causal(), bias)[0])


def test_a_constant_does_not_matter_and_the_wrong_order_does() -> None:
    Q, K, V = torch.randn(3, 1, 4, 6, 8, dtype=torch.float64)
    i, m = torch.arange(6), slopes(4).double()[:, None, None]
    ours = attention(Q, K, V, causal(), ramp(i[:, None], i, m=m))[1]
    close(attention(Q, K, V, causal(), key_bias(slopes(4).double(), 6).expand(4, 6, 6))[1], ours)
    printed = -m * i  # 0, −1, −2, … for the keys in their order
    oldest = attention(0 * Q, 0 * K, V, causal(), printed.expand(4, 6, 6))[1][0, :, -1]
    assert (oldest.diff() < 0).all()  # the oldest key leads
    nearest = attention(0 * Q, 0 * K, V, causal(), ramp(i[:, None], i, m=m))[1][0, :, -1]
    assert (nearest.diff() > 0).all()
    close(oldest, nearest.flip(-1))


@pytest.mark.parametrize("h_kv", [4, 2, 1])
def test_one_number_more_in_each_key_is_the_bias(h_kv: int) -> None:
    Q = torch.randn(2, 4, 9, 6, dtype=torch.float64, requires_grad=True)
    K, V = (torch.randn(2, h_kv, 9, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    both = with_places(Q, K, slopes(4))
    assert [x.shape for x in both] == [(2, 4, 9, 7), (2, h_kv, 9, 7)]
    core = Alibi(4).double()
    fused, none = core(Q, K, V, Where(causal()))
    assert none is None
    slow, A = core(Q, K, V, Where(causal(), need_weights=True))
    assert A is not None
    agree_with_gradients(fused, slow, [Q, K, V])


def test_memory_of_a_causal_text_grows_with_its_length_only() -> None:
    def at(L: int, pattern: object = causal()) -> object:
        X, core = torch.randn(3, 1, 4, L, 8), Alibi(4)
        return lambda: core(*X, Where(pattern))  # type: ignore[arg-type]

    assert slope(largest_storage, at, (256, 1024)) < 1.1  # type: ignore[arg-type]
    near = lambda L: at(L, sliding_window(lookback=8))  # noqa: E731
    assert slope(largest_storage, near, (256, 1024)) > 1.9  # type: ignore[arg-type]


def test_far_places_are_exact_enough() -> None:
    X = torch.randn(3, 1, 1, 4096, 8)
    core = Alibi(1)
    core.m.fill_(0.5)
    exact = core.double()(*X.double(), Where(causal(), need_weights=True))[0]
    close(core.float()(*X, Where(causal()))[0].double(), exact, atol=1e-3, rtol=0)


def test_without_content_weights_are_a_geometric_series() -> None:
    """And from one head to the next the effective window doubles: 9.2 to 1,179 keys at 1 %."""
    Q = torch.zeros(1, 8, 64, 2, dtype=torch.float64)
    _, A = Alibi(8).double()(Q, Q, Q, Where(causal(), need_weights=True))
    assert A is not None
    ratio = A[0, :, -1, :-1] / A[0, :, -1, 1:]
    close(ratio, (-slopes(8).double()).exp()[:, None].expand_as(ratio))
    windows = [math.log(100) / m for m in slopes(8).tolist()]
    assert [round(w, 1) for w in windows] == [9.2, 18.4, 36.8, 73.7, 147.4, 294.7, 589.5, 1178.9]


def test_the_ramp_is_a_formula_and_flat_at_0() -> None:
    formula = Formula(ramp)
    assert formula.text(m=0.5) and "Math.abs" in formula.javascript()
    X = torch.randn(3, 2, 4, 7, 6)
    core = Alibi(4)
    core.m.zero_()
    close(core(*X, Where(causal()))[0], F.scaled_dot_product_attention(*three(X), is_causal=True))
    close(core(*X, Where(full()))[0], F.scaled_dot_product_attention(*X))


def test_it_tells_a_gpt_what_comes_first_and_learns_nothing() -> None:
    plain, gpt = GPT(9, 16, 4, 1), GPT(9, 16, 4, 1, core=Alibi)
    count = [sum(x.numel() for x in model.parameters()) for model in (plain, gpt)]
    assert count[0] == count[1] and not any("core" in name for name in gpt.state_dict())
    a, b = gpt(torch.tensor([[1, 2, 3, 4], [2, 1, 3, 4]]))[:, -1]
    assert not torch.allclose(a, b)


def test_errors_say_what_to_do() -> None:
    ranges(slopes, h=(4, 1))
    X = torch.randn(3, 1, 2, 5, 4)
    refused("m is for 4 heads, Q has 2; give Alibi them", Alibi(4), *X, Where(causal()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_far_places_are_not_rounded_in_half_precision(dtype: torch.dtype) -> None:
    """A key's place, 1000 say, is 1000 or 1004 there: beside a slope of 1/2 the answer is gone."""
    X = torch.randn(3, 1, 1, 4096, 8).to(dtype)
    core = Alibi(1)
    core.m.fill_(0.5)
    exact = core.double()(*X.double(), Where(causal()))[0]
    got = core.float()(*X, Where(causal()))[0]
    assert got.dtype == dtype and (got.double() - exact).abs().max() < 0.1
    Q, K = with_places(X[0], X[1], core.m)
    V = F.pad(X[2], (0, 1))
    rounded = F.scaled_dot_product_attention(Q, K, V, is_causal=True, scale=8**-0.5)[..., :-1]
    assert (rounded.double() - exact).abs().max() > 0.5


# --- what it brings to the laws and the mutants ---------------------------------------------------


def by_distances(
    core: Alibi, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return attention(Q, K, V, mask, bias=-core.m[:, None, None] * distance(Q.shape[2]).abs())


def falling(i: Tensor, j: Tensor) -> Tensor:
    return -(0.5 ** torch.arange(1, H + 1, device=i.device)[:, None, None]) * (i - j).abs()


def biased(core: Bias, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return attention(Q, K, V, mask, bias=falling)


CASE = Case(
    lambda: Alibi(H),
    by_distances,
    variants={"as any bias of the places": Case(lambda: Bias(falling), biased)},
    mutants=[
        (
            "ALiBi favours the oldest key",
            "    return -m * abs(i - j)\n",
            "    return -m * abs(j)\n",
        ),
        (
            "ALiBi whose places are rounded in half precision",
            " or Q.dtype not in (torch.float32, torch.float64)",
            "",
        ),
        (
            "ALiBi's slopes in between begin one too late",
            "(2 * torch.arange(h - below) + 1))",
            "(2 * torch.arange(h - below) + 2))",
        ),
    ],
)
