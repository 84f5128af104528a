"""The private kernel: called in one room, on anything that it can take and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from laws import agree_with_gradients
from refusals import refused
from three import Three, three
from torch import Tensor

import tfviz
from tfviz import _fused

RESTS_ON = ("tfviz/**", "tests/*.py")  # it looks for who calls the kernels

SCALE = 0.5


def qkv(*shape: int, dtype: torch.dtype = torch.float64) -> Three:
    torch.manual_seed(0)
    shape = shape or (2, 3, 5, 4)
    return three(torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))


def test_one_room_alone_names_the_private_kernel() -> None:
    root = Path(tfviz.__file__).parent
    name = "scaled_dot_product_flash"
    rooms = [path.name for path in root.rglob("*.py") if name in path.read_text()]
    assert rooms == ["_fused.py"]


LAID_OUT = {
    "turned": lambda x: x.mT.contiguous().mT,
    "every second number": lambda x: torch.stack([x, -x], -1).flatten(-2)[..., ::2],
    "the last side first": lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1),
}


@pytest.mark.parametrize("how", LAID_OUT)
@pytest.mark.parametrize("which", range(4))
def test_memory_may_lie_anyhow(how: str, which: int) -> None:
    """Each of q, k, v and the bias in its turn; forward and backward, to the last bit."""
    *X, bias, grad = (x.detach() for x in (*qkv(), torch.randn(2, 3, 5, 5).double(), qkv()[0]))
    laid = [*X, bias]
    laid[which] = LAID_OUT[how](laid[which])
    o, z = _fused.forward(*three(X), bias, causal=False, scale=SCALE)
    got = _fused.forward(*three(laid[:3]), laid[3], causal=False, scale=SCALE)
    assert got[0].equal(o) and got[1].equal(z)
    wanted = _fused.backward(grad, *three(X), o, z, bias, causal=False, scale=SCALE)
    given = [LAID_OUT[how](x) for x in (grad, o, z)]
    parts = (given[0], *three(laid[:3]), *given[1:], laid[3])
    for a, b in zip(_fused.backward(*parts, causal=False, scale=SCALE), wanted, strict=True):
        assert a.equal(b)


def test_what_the_kernel_cannot_take_is_refused() -> None:
    q, k, v = (x.detach() for x in qkv())

    def forward(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> object:
        return _fused.forward(q, k, v, bias, causal=False, scale=SCALE)

    refused("give real numbers of one", forward, q, k.float(), v)
    refused("give real numbers of one", forward, q.long(), k.long(), v.long())
    refused("four dimensions", forward, q[0], k[0], v[0])
    refused("one width", forward, q, k[..., :3], v)
    refused("shapes … give four dimensions", forward, q, k, v[:, :, :4])
    refused("give the same groups, none empty", forward, q, k[:1], v[:1])
    refused("none empty", forward, q, k[:, :, :0], v[:, :, :0])
    refused("on cpu, meta, cpu; the fused kernel runs on a CPU", forward, q, k.to("meta"), v)
    refused("bias is torch.float32", forward, q, k, v, torch.zeros(5, 5))
    refused("bias has shape (2, 3, 5, 4); give (2, 3, 5, 5)", forward, q, k, v, q)
    o, z = _fused.forward(q, k, v, None, causal=False, scale=SCALE)
    bad = (q, q, k, v, o, z[:, :, :4], None)
    refused("grad, o, z have shapes", _fused.backward, *bad, causal=False, scale=SCALE)


@pytest.mark.parametrize("sides", [(2, 4, 5, 5), (2, 1, 1, 5), (1, 4, 5, 1), (5, 5), (1, 5)])
@pytest.mark.parametrize("h_kv", [4, 2, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_torchs_own_to_the_last_bit(
    sides: tuple[int, ...], h_kv: int, dtype: torch.dtype
) -> None:
    """Output and gradients: stored numbers depend on it. A width of 7, whose scale 7 ** -0.5 is
    not 1 / √7 in the last bit, and masks of all sides, with a row without keys."""
    torch.manual_seed(0)
    Q, K, V = (torch.randn(2, h, 5, 7, dtype=dtype, requires_grad=True) for h in (4, h_kv, h_kv))
    mask = torch.rand(sides) < 0.6
    mask[..., -1, :] &= sides[-2] == 1
    grad = torch.randn_like(Q)
    for M, causal in ((mask, False), (mask.to(dtype), False), (None, True)):
        got = _fused.attention(Q, K, V, M, causal)
        assert got.grad_fn is not None and "_Attention" in got.grad_fn.name()
        wanted = F.scaled_dot_product_attention(Q, K, V, M, is_causal=causal, enable_gqa=True)
        assert got.equal(wanted)
        for a, b in zip(
            torch.autograd.grad(got, (Q, K, V), grad),
            torch.autograd.grad(wanted, (Q, K, V), grad),
            strict=True,
        ):
            assert a.equal(b)


def test_what_torch_computes_in_another_way_is_left_to_it() -> None:
    """Products if somebody asks for them, transforms of functions, and automatic half precision,
    where a second derivative is refused in words."""
    q, k, v = qkv()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        by_products = _fused.attention(q, k, v)
    assert by_products.grad_fn is not None and "_Attention" not in by_products.grad_fn.name()

    def summed(x: Tensor) -> Tensor:
        return _fused.attention(x, k, v).sum()

    torch.testing.assert_close(torch.func.grad(summed)(q), torch.autograd.grad(summed(q), q)[0])
    with torch.autocast("cpu"):
        half = _fused.attention(*three(x.float() for x in (q, k, v)))
    assert half.dtype == torch.bfloat16
    (first,) = torch.autograd.grad(half.float().square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"first derivatives only; .*SDPBackend\.MATH"):
        torch.autograd.grad(first.square().sum(), q)


MASKS = {
    "none": None,
    "Boolean": torch.rand(2, 1, 5, 5) < 0.6,
    "a row without keys": torch.ones(5, 5, dtype=torch.bool).tril(-1),
    "bias": torch.randn(1, 3, 5, 5, dtype=torch.float64),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dv", [4, 3])
def test_it_is_what_torch_has_and_can_be_differentiated_twice(mask: str, dv: int) -> None:
    leaves, M = qkv(), MASKS[mask]
    leaves = (*leaves[:2], leaves[2].detach()[..., :dv].clone().requires_grad_())
    for causal in (False, True) if M is None else (False,):
        got = _fused.attention(*leaves, M, causal)
        wanted = F.scaled_dot_product_attention(*leaves, M, is_causal=causal)
        assert got.equal(wanted)
        agree_with_gradients(got, wanted, leaves)

    def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        s = q @ k.mT / 2
        if M is not None:
            s = s.masked_fill(~M, -1e300) if M.dtype == torch.bool else s + M
        A = s.softmax(-1)
        if M is not None and M.dtype == torch.bool:
            A = A * M.any(-1, keepdim=True)
        return A @ v

    grad, found = torch.randn_like(got), []
    for function in (lambda q, k, v: _fused.attention(q, k, v, M), by_hand):
        first = torch.autograd.grad(function(*leaves), leaves, grad, create_graph=True)
        penalty = torch.stack([(g**2).sum() for g in first]).sum()
        found.append(torch.autograd.grad(penalty, leaves))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_an_input_that_serves_twice_has_each_gradient_once() -> None:
    """Queries that are the keys too, and values that are made of them."""
    x, found = qkv()[0], []
    for function in (_fused.attention, F.scaled_dot_product_attention):
        if function is F.scaled_dot_product_attention:
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                out = function(x, x, x.sin())
        else:
            out = function(x, x, x.sin())
        (first,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        found.append((first, torch.autograd.grad(first.square().sum(), x)[0]))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_half_precision_stays_finite() -> None:
    Q, K, V = (300 * x.detach().half() for x in qkv(1, 2, 40, 64, dtype=torch.float32))
    out = _fused.attention(Q.requires_grad_(), K, V)
    assert out.dtype == torch.float16 and out.isfinite().all()
    exact = F.scaled_dot_product_attention(Q.double(), K.double(), V.double())
    torch.testing.assert_close(out.double(), exact, atol=1.0, rtol=0.01)
