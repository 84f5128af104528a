"""ACT: the recurrence by hand, its weights, its gradients, and what is not computed."""

from __future__ import annotations

import math

import pytest
import torch
from laws import Case, agree_with_gradients
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz.longer_context import act as room
from tfviz.measure import flops
from tfviz.training import train


def by_hand(net: room.ACT, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One sequence, (L, d_in), one number at a time, as the paper writes it."""
    s, ys, Ns, Rs = torch.zeros(net.d, dtype=x.dtype), [], [], []
    for x_t in x:
        states, h = [s], list[Tensor]()
        while True:
            flag = torch.tensor([1.0 if not h else 0.0], dtype=x.dtype)
            states.append(net.cell(torch.cat([x_t, flag])[None], states[-1][None])[0])
            h.append((states[-1] @ net.halt.weight[0] + net.halt.bias[0]).sigmoid())
            if sum(h) >= 1 - net.eps or len(h) == net.M:
                break
        N, R = len(h), 1 - sum(h[:-1], torch.zeros((), dtype=x.dtype))
        p = [*h[:-1], R]
        s = sum((a * b for a, b in zip(p, states[1:], strict=True)), torch.zeros_like(s))
        ys.append(sum((a * net.read(b) for a, b in zip(p, states[1:], strict=True)), 0))
        Ns.append(N)
        Rs.append(R)
    return torch.stack(ys), torch.tensor(Ns), torch.stack(Rs)


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.RNNCell])
@pytest.mark.parametrize(("bias", "M"), [(-1.0, 10), (-3.0, 4)])
def test_it_is_the_recurrence_by_hand_with_gradients(cell: type, bias: float, M: int) -> None:
    torch.manual_seed(1)
    net = room.ACT(3, 5, 2, M=M, bias=bias, cell=cell).double()
    x = torch.randn(4, 6, 3, dtype=torch.float64, requires_grad=True)
    found = net(x)
    y, N, R = (torch.stack(part) for part in zip(*(by_hand(net, one) for one in x), strict=True))
    assert found.N.equal(N)
    if bias == -1.0:
        assert N.min() < N.max()  # rows stop at different steps
    agree_with_gradients(torch.cat([found.y.flatten(), found.R.flatten()]),
                         torch.cat([y.flatten(), R.flatten()]), [x, *net.parameters()])  # fmt: skip


def test_weights_sum_to_one_and_steps_are_the_fewest() -> None:
    h = torch.rand(500, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) ** 2
    for eps in (0.0, 0.01, 0.3):
        N, R, p = room.halting(h, eps)
        torch.testing.assert_close(p.sum(-1), torch.ones(500, dtype=torch.float64))
        assert (p >= 0).all() and N.min() >= 1 and N.max() <= 8 and (R > 0).all()
        sums = h.cumsum(-1)
        for row, n in enumerate(N.tolist()):
            assert n == 8 or sums[row, n - 1] >= 1 - eps
            assert n == 1 or sums[row, n - 2] < 1 - eps
    assert room.halting(torch.tensor([0.995, 0.5])).N == 1
    assert room.halting(torch.tensor([0.995, 0.5])).R == 1
    assert room.halting(torch.zeros(3)).p.tolist() == [0, 0, 1]


def test_the_price_has_the_gradient_of_the_remainder() -> None:
    h = torch.tensor([0.3, 0.4, 0.5, 0.9], requires_grad=True)
    N, R, _ = room.halting(h)
    (slope,) = torch.autograd.grad(R, h)
    assert (N, slope.tolist()) == (3, [-1, -1, 0, 0]) and not N.requires_grad


def test_what_has_halted_is_not_computed() -> None:
    calls: list[int] = []
    w = torch.randn(6, 6)

    def step(s: Tensor, n: int, running: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(len(running))
        return s[running] @ w, torch.tensor([0.2, 0.5, 1.0, 0.34])[running]

    s = torch.randn(4, 6)
    found = room.ponder(s, step, M=4)
    assert found.N.tolist() == [4, 2, 1, 3] and found.ran == calls == [4, 3, 2, 1]
    torch.testing.assert_close(found.R, torch.tensor([0.4, 0.5, 1.0, 0.32]))
    torch.testing.assert_close(found.last[2], s[2] @ w)
    calls.clear()
    assert flops(room.ponder, s, step, 4) == 2 * 6 * 6 * int(found.N.sum())
    some = room.ponder(s, step, 4, running=torch.tensor([1, 3]))
    assert some.N.tolist() == [0, 2, 0, 3] and not some.mean[0].any() and not some.cost[0]


def steps_at(tau: float) -> float:
    """The mean N of a small network that has learned parity at this price."""

    def parity(net: room.ACT, rng: torch.Generator, step: int) -> Tensor:
        x = torch.randint(2, (32, 1, 4), generator=rng).float()
        found, wanted = net(x), x.sum(-1).remainder(2)
        error = nn.functional.binary_cross_entropy_with_logits(found.y.squeeze(-1), wanted)
        return error + tau * found.price()

    torch.manual_seed(0)
    net = room.ACT(4, 16, 1, bias=-1.0)
    train(net, parity, 150, lr=2e-2, progress=False)
    return net(torch.randint(2, (64, 1, 4)).float()).N.double().mean().item()


def test_a_price_shortens_thought_and_one_step_is_the_least() -> None:
    assert steps_at(3.0) == 1 < 2 < steps_at(0.0)


def test_errors_name_the_argument() -> None:
    def made(M: int, eps: float) -> object:
        return room.ACT(2, 4, 1, M=M, eps=eps)(torch.zeros(1, 1, 2))

    ranges(made, M=(3, 1), eps=(0.1, 0.0, 1.0))
    net, x = room.ACT(3, 5, 2), torch.zeros(2, 4, 3)
    assert net(x, torch.ones(2, 5)).y.shape == (2, 4, 2)
    refused("s has shape (1, 5); give (2, 5)", net, x, torch.zeros(1, 5))  # it would drop a text
    refused("x has shape (2, 0, 3); give (b, L, d_in), at least one", net, x[:, :0])
    refused("x has shape (4, 3); give (b, L, d_in)", net, x[0])
    of_no_kind("x is a ndarray", net, x.numpy())
    refused("h has shape (2,) and holds 1.2", room.halting, torch.tensor([0.2, 1.2]))
    refused("holds -0.1", room.halting, torch.tensor([0.2, -0.1]))
    refused("holds nan", room.halting, torch.tensor([0.2, math.nan]))
    refused("of at least one step", room.halting, torch.zeros(2, 0))
    of_no_kind("h is a list", room.halting, [0.2, 0.8])


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "a last step that counts with what it says, not with the remainder",
            "p = torch.where(halts, 1 - before, h)",
            "p = torch.where(halts, h, h)",
        ),
        (
            "ACT whose flag stays up",
            "float(n == 1))",
            "float(n >= 1))",
        ),
        (
            "a state for fewer texts than there are",
            "if s.shape != (len(x), self.d):",
            "if s.shape[1] != self.d:",
        ),
    ],
)
