"""Halting at each position: by hand, compact = definition, limits, padding, FLOPs, training."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from laws import Case, agree_with_gradients
from refusals import refused
from torch import Tensor

from tfviz.longer_context import ut_act as room
from tfviz.longer_context.universal_transformer import universal
from tfviz.longer_context.ut_act import Halting, halting_universal, pondered
from tfviz.longer_context.ut_time_position_signal import TimePosition
from tfviz.measure import flops
from tfviz.models.bert import BERT
from tfviz.models.blocks import Block, post_norm
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.patterns import causal
from tfviz.training import train


def stack(M: int = 6, bias: float = -1.0, seed: int = 0, more: Any = (), **halting: Any) -> Halting:
    torch.manual_seed(seed)
    block = Block(16, 4, post_norm, **dict(more))
    made = Halting(block, M, TimePosition(16, scale=0.5), bias=bias, **halting).double()
    made.halt.weight.data *= 6
    return made


def rows(b: int = 3, L: int = 7) -> Tensor:
    dice = torch.Generator().manual_seed(5)
    return torch.randn(b, L, 16, dtype=torch.float64, generator=dice).requires_grad_()


def by_hand(model: Halting, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One text, position by position: who runs takes a row of the block, who does not is copied."""
    L, H, i = len(X), X, torch.arange(len(X))
    total, N, out = [torch.zeros((), dtype=X.dtype)] * L, [0] * L, [torch.zeros_like(X[0])] * L
    R, done = list(total), [False] * L
    for t in range(1, model.T + 1):
        new = model.block(model.told(H, i, t)[None])[0]
        H = torch.stack([H[n] if done[n] else new[n] for n in range(L)])
        for n in range(L):
            if done[n]:
                continue
            h = (H[n] @ model.halt.weight[0] + model.halt.bias[0]).sigmoid()
            done[n], N[n] = bool(total[n] + h >= 1 - model.eps) or t == model.T, t
            R[n] = 1 - total[n]
            p = R[n] if done[n] else h
            total[n], out[n] = total[n] + h, out[n] + p * H[n]
    return torch.stack(out), torch.tensor(N), torch.stack(R)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("more", [{}, {"pattern": causal()}, {"h_kv": 2}])
def test_it_is_the_definition_with_gradients(compact: bool, more: Any) -> None:
    model, X = stack(compact=compact, more=more), rows()
    assert model._computes_all() != compact
    got = torch.cat([model(X).flatten(), pondered(model).R.flatten()])
    out, N, R = (torch.stack(x) for x in zip(*(by_hand(model, one) for one in X), strict=True))
    assert pondered(model).N.equal(N) and N.min() < N.max()
    agree_with_gradients(
        got, torch.cat([out.flatten(), R.flatten()]), [X, *(p for p in model.parameters())]
    )


def test_padding_is_never_computed_and_never_seen() -> None:
    attention_mask = torch.ones(3, 7, dtype=torch.bool)
    attention_mask[1, 4:] = False
    for compact in (True, False):
        model, X = stack(compact=compact), rows()
        out = model(X, None, attention_mask)
        assert (pondered(model).N[1, 4:] == 0).all() and not out[1, 4:].any()
        torch.testing.assert_close(out[1, :4], model(X[1:2, :4])[0])


def test_limits() -> None:
    X = rows()
    one = stack(bias=50.0)
    torch.testing.assert_close(one(X), universal_of(one, 1)(X))
    assert (pondered(one).N == 1).all() and (pondered(one).R == 1).all()
    never = stack(bias=-50.0)
    never.halt.weight.data.zero_()
    torch.testing.assert_close(never(X), universal_of(never, 6)(X))
    assert (pondered(never).N == 6).all()


def universal_of(model: Halting, T: int) -> Any:
    from tfviz.longer_context.universal_transformer import Universal

    return Universal(model.block, T, model.signal)


def test_moving_on_after_halting_is_something_else() -> None:
    X = rows()
    frozen, moving = stack(), stack(freeze=False)
    torch.testing.assert_close(frozen(X), stack(compact=False)(X))
    assert (frozen(X) - moving(X)).abs().max() > 1e-3
    same = pondered(moving).N == pondered(frozen).N
    assert same.any()  # before the first has halted there is no difference
    everyone = stack(bias=-50.0), stack(bias=-50.0, freeze=False)
    torch.testing.assert_close(*(model(X) for model in everyone))


def test_halted_positions_cost_nothing() -> None:
    model, X = stack(), rows(b=1, L=9).detach()
    spent = flops(model, X)
    N, ran, d, L = pondered(model).N, pondered(model).ran, 16, 9
    assert ran == [int((t <= N).sum()) for t in range(1, int(N.max()) + 1)] and ran[-1] < L
    each = 2 * (d * d + 2 * L * d + d * d + 8 * d * d + d)  # Q, scores and values, W^o, FFN, h
    pairs = L + sum(ran[:-1])  # K and V of a state are made once, at the step after
    assert spent == sum(ran) * each + pairs * 4 * d * d + len(ran) * 6 * d * d  # the step's signal
    every = flops(stack(compact=False), X)
    assert spent < every * sum(ran) / (L * len(ran)) * 1.1


def test_causal_halting_does_not_look_ahead() -> None:
    torch.manual_seed(0)
    model = halting_universal(GPT(11, 16, 2, 1, order=post_norm), 5, bias=-1.0).double()
    t = torch.randint(11, (1, 8))
    other = t.clone()
    other[0, 5] = (t[0, 5] + 1) % 11
    torch.testing.assert_close(model(other)[:, :5], model(t)[:, :5])
    refused("all T steps", model, t, {})


def test_encoders_and_decoders_halt_too() -> None:
    torch.manual_seed(0)
    bert = halting_universal(BERT(11, 16, 2, 1), 4)
    assert bert(torch.zeros(1, 5, dtype=torch.long)).shape == (1, 5, 11)
    assert 1 <= room.price(bert) <= 5
    both = halting_universal(EncoderDecoder(11, 16, 2, 1), 4)
    s = torch.randint(11, (2, 5))
    assert both(s, s, torch.ones(2, 5, dtype=torch.bool)).shape == (2, 5, 11)
    assert 2 <= room.price(both) <= 10
    refused("no stack of this model", room.price, universal(BERT(11, 16, 2, 1), 4))


def test_a_price_shortens_thought() -> None:
    ids = torch.arange(400) % 11
    found = []
    for tau in (0.0, 1.0):
        torch.manual_seed(0)
        model = halting_universal(GPT(11, 16, 2, 1, order=post_norm), 6, bias=-2.0)

        def loss(model: GPT, rng: torch.Generator, step: int, tau: float = tau) -> Tensor:
            at = torch.randint(300, (8,), generator=rng)[:, None] + torch.arange(9)
            x = ids[at]
            error = torch.nn.functional.cross_entropy(model(x[:, :-1]).mT, x[:, 1:])
            return error + tau * room.price(model)

        losses = train(model, loss, 40, lr=1e-2, progress=False)
        found.append((losses[-1], pondered(model).N.double().mean().item()))
    assert found[0][1] > found[1][1] + 0.5 and found[1][1] >= 1 and found[0][0] < 1


def test_padding_is_not_in_the_price() -> None:
    torch.manual_seed(0)
    bert = halting_universal(BERT(11, 16, 2, 1), 4, bias=-1.0)
    t, attention_mask = torch.randint(11, (2, 7)), torch.ones(2, 7, dtype=torch.bool)
    attention_mask[1, 3:] = False
    bert(t, attention_mask)
    together, each = room.price(bert), []
    for row, n in ((0, 7), (1, 3)):
        bert(t[row : row + 1, :n])
        each.append(pondered(bert).cost.sum())
    torch.testing.assert_close(together, (each[0] + each[1]) / 10)


@pytest.mark.parametrize("compact", [True, False])
def test_it_halts_under_autocast(compact: bool) -> None:
    torch.manual_seed(0)
    model = halting_universal(GPT(11, 16, 2, 1, order=post_norm), 4, bias=-1.0, compact=compact)
    t = torch.randint(11, (2, 9))
    exact, N = model(t), pondered(model).N
    with torch.autocast("cpu", torch.bfloat16):
        out = model(t)
    assert (out - exact).abs().max() < 0.1 * exact.abs().max()
    assert (pondered(model).N - N).abs().max() <= 1 and pondered(model).R.dtype == torch.float32
    (out.float().square().mean() + room.price(model)).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "a price that counts padding",
            "x.cost.sum() / (x.N > 0).sum()",
            "x.cost.mean()",
        ),
        (
            "keys of what has halted as they were before its last step",
            "fresh = running if t == 1 else fresh",
            "fresh = running",
        ),
        (
            "halted positions that do not hear of the step",
            "K, V = (kept + moved[d:].to(kept))",
            "K, V = (kept + 0 * moved[d:].to(kept))",
        ),
    ],
)
