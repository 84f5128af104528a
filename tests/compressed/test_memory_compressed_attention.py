"""Memory-compressed attention: squeezed keys and values, and a staircase without a leak."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case, D, Function, H, L, agree_with_gradients, qkv
from refusals import of_no_kind, ranges, refused
from torch import Tensor

from tfviz import GPT, attention, implied_map
from tfviz import patterns as P
from tfviz.compressed import memory_compressed_attention as room
from tfviz.cores import Where
from tfviz.training import next_token, train

GOLDEN = ["1..", "1..", "11.", "11.", "111"]


def drawn(c: int = 3, d: int = D, h: int = H) -> tuple[Tensor, Tensor]:
    """Kernels of keys and of values."""
    keys, values = torch.randn(2, h, c, d, d, dtype=torch.float64) / (c * d) ** 0.5
    return keys, values


def test_the_staircase_by_hand() -> None:
    assert room.staircase(5, 2).tolist() == [[x == "1" for x in row] for row in GOLDEN]
    assert room.staircase(2, 2, start=3).tolist() == [[x == "1" for x in row] for row in GOLDEN[3:]]
    assert room.staircase(1, 9).tolist() == [[True]]


def test_six_tokens_by_hand() -> None:
    """Values 1 … 6, kernels of 1, 2, 3: the slots are 1 + 4 + 9 = 14 and 4 + 10 + 18 = 32. With
    equal scores a query gets the mean of its slots, and before token 3 the first value alone."""
    Q = torch.zeros(1, 1, 6, 1)
    V = torch.arange(1.0, 7)[None, None, :, None]
    kernel = torch.tensor([1.0, 2.0, 3.0])[:, None, None]
    assert room.squeezed(V, kernel).flatten().tolist() == [14, 32]
    out, B = room.mca_definition(Q, V, V, kernel, kernel, causal=True)
    torch.testing.assert_close(out.flatten(), torch.tensor([1.0, 1.0, 1.0, 7.5, 7.5, 7.5]))
    assert B.shape == (1, 1, 6, 2)  # the last group ends with the last token: nobody may use it
    assert room.mca_definition(Q, V, V, kernel, kernel)[0].flatten().tolist() == [23] * 6


@pytest.mark.parametrize("n", [3, 8, 9, 10])
def test_squeezing_is_a_strided_convolution(n: int) -> None:
    X, kernel = torch.randn(1, 1, n, 5, dtype=torch.float64), drawn(3, 5, 1)[0]
    padded = F.pad(X[0].mT, (0, -n % 3))
    wanted = F.conv1d(padded, kernel[0].permute(2, 1, 0), stride=3).mT
    torch.testing.assert_close(room.squeezed(X, kernel)[0], wanted)
    assert wanted.shape[1] == math.ceil(n / 3)


def test_without_squeezing_it_is_attention() -> None:
    Q, K, V = leaves = tuple(x.requires_grad_() for x in qkv())
    one = room.mean_kernel(1, D).double()
    agree_with_gradients(room.mca(Q, K, V, one, one), attention(Q, K, V)[0], leaves)


def test_a_causal_query_without_squeezing_does_not_meet_itself() -> None:
    """With c = 1 slots are tokens: it is attention to the tokens before, and to the first twice."""
    Q, K, V = qkv()
    one = room.mean_kernel(1, D).double()
    K_1, V_1 = (torch.cat([X[:, :, :1], X[:, :, :-1]], 2) for X in (K, V))
    wanted = attention(Q, K_1, V_1, torch.ones(L, L, dtype=torch.bool).tril())[0]
    torch.testing.assert_close(room.mca(Q, K, V, one, one, causal=True), wanted)


@pytest.mark.parametrize("c", [1, 2, 3, 4, 9, 12])
def test_no_gradient_comes_from_later_tokens(c: int) -> None:
    """Answer i has a gradient to token j exactly if j is the first token or in a group that ends
    before i."""
    for i in range(L):
        K, V = (x.requires_grad_() for x in qkv()[1:])
        out = room.mca(torch.randn_like(K), K, V, *drawn(c), causal=True)
        out[0, 0, i].sum().backward()
        j = torch.arange(L)
        reached = (j < i // c * c) | (j == 0)
        assert V.grad is not None and K.grad is not None
        assert ((V.grad[0, 0] != 0).any(-1) == reached).all()
        assert (K.grad[0, 0, ~reached] == 0).all()


def test_one_step_to_the_left_leaks() -> None:
    """A staircase that begins one query earlier is still causal; two queries earlier it is not."""
    i, s = torch.arange(L)[:, None], torch.arange(4)
    last = s * 3 - 1  # the last token of the group of slot s
    for shift, leaks in ((0, False), (1, False), (2, True)):
        seen = s * 3 <= i + shift
        assert (seen & (s > 0) & (last > i)).any() == leaks
    assert (room.staircase(L, 3) == (s[:3] * 3 <= i)).all()


def test_its_slots_have_weights_and_the_mean_has_a_map() -> None:
    X = qkv()
    for pattern in (P.causal(), P.full()):
        learned, mean = room.MemoryCompressed(D, H).double(), room.MemoryCompressed(D, H, 4, False)
        assert learned(*X, Where(pattern, need_weights=True))[1] is None
        refused("not linear in V", implied_map, learned, *X, Where(pattern))
        A = mean(*X, Where(pattern, need_weights=True))[1]
        assert A is not None and torch.linalg.matrix_rank(A).max() <= 3
    assert room.mean_shares(5, 2).tolist() == [
        [0.5, 0.5, 0, 0, 0],
        [0, 0, 0.5, 0.5, 0],
        [0, 0, 0, 0, 0.5],
    ]
    assert room.mean_shares(5, 3, causal=True).tolist()[0] == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 7, 600])
@pytest.mark.parametrize("pattern", [P.causal(), P.full()])
def test_texts_of_any_length(n: int, pattern: P.Pattern) -> None:
    """Longer ones than are answered at a time, too."""
    X, core = qkv(n), room.MemoryCompressed(D, H).double()
    wanted = room.mca_definition(*X, core.keys, core.values, causal=pattern == P.causal())[0]
    torch.testing.assert_close(core(*X, Where(pattern))[0], wanted)


def test_a_model_learns_and_writes_with_a_cache() -> None:
    gpt = GPT(10, 16, 2, 2, core=room.MemoryCompressed)
    losses = train(gpt, next_token(torch.arange(500) % 10, 8, 16), 150, lr=1e-2, progress=False)
    assert losses[-1] < 0.2 < losses[0]


def test_what_is_kept_grows_by_one_slot_for_c_tokens() -> None:
    core, kept = room.MemoryCompressed(D, H).double(), list[Any]()
    core(*qkv(10), Where(P.causal(), keep=kept.append))
    assert [x.shape[2] for x in (*kept[0][0], *kept[0][1])] == [4, 1, 4, 1]
    core(*qkv(1), Where(P.causal(), 10, state=kept[0], keep=kept.append))
    assert [x.shape[2] for x in (*kept[1][0], *kept[1][1])] == [4, 2, 4, 2]


# --- the code of others ---------------------------------------------------------------------------


def heads(X: Tensor) -> Tensor:
    return X.unflatten(-1, (H, -1)).transpose(1, 2)


def of_t2t(
    X: Tensor, W: list[Tensor], kernel: Tensor, bias: Tensor | float, c: int, add_mask: bool = True
) -> Tensor:
    """The formula of tensor2tensor's `multihead_self_attention_reduced` before W^o: X is convolved
    over its whole width without padding, its first row stands before the result, then keys and
    values are projected; key s is forbidden where s c > i + 0.001."""
    groups = X[:, : X.shape[1] // c * c].unflatten(1, (-1, c))
    memory = torch.einsum("bscd,cde->bse", groups, kernel) + bias
    memory = torch.cat([X[:, :1], memory], 1)
    Q, K, V = heads(X @ W[0]), heads(memory @ W[1]), heads(memory @ W[2])
    scores = Q * D**-0.5 @ K.mT
    s, i = torch.arange(memory.shape[1]), torch.arange(X.shape[1])[:, None]
    if add_mask:
        scores = scores - 1e9 * (s * c > i + 1e-3)
    return (scores.softmax(-1) @ V).transpose(1, 2).flatten(2)


def blocks(kernel: Tensor, W: Tensor) -> Tensor:
    """The head's kernel for projected tokens, where the kernel for tokens keeps heads apart."""
    return torch.stack([kernel[:, h * D : h * D + D, h * D : h * D + D] for h in range(H)])


@pytest.mark.parametrize("n", [7, 9, 11])
def test_parity_with_the_formula_of_tensor2tensor(n: int) -> None:
    """A convolution of X and then a projection is one of keys if both keep the heads apart and the
    kernel's matrices and W commute: here multiples of one. Then all is the same, staircase and
    start too. A bias or a kernel of any numbers makes another function."""
    X = torch.randn(2, n, H * D, dtype=torch.float64)
    one = torch.eye(H * D, dtype=torch.float64)
    W = [torch.randn(H * D, H * D, dtype=torch.float64) / 6 for _ in range(3)]
    kernel = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)[:, None, None] * one
    mine = blocks(kernel, W[1])
    Q, K, V = (heads(X @ w) for w in W)
    ours = room.mca(Q, K, V, mine, mine, causal=True)
    ours = ours.transpose(1, 2).flatten(2)
    torch.testing.assert_close(ours, of_t2t(X, W, kernel, 0.0, 3), atol=1e-10, rtol=1e-10)
    assert (ours - of_t2t(X, W, kernel, 0.5, 3)).abs().max() > 0.01  # its convolution has a bias
    free = torch.randn_like(kernel.expand(3, H * D, H * D)) / 6
    own = blocks(free, W[1])
    apart = room.mca(Q, K, V, own, own, causal=True).transpose(1, 2).flatten(2)
    assert (apart - of_t2t(X, W, free, 0.0, 3)).abs().max() > 0.01  # it mixes all heads' numbers


def test_tensor2tensor_drops_the_last_tokens_and_keeps_the_start_where_nothing_is_hidden() -> None:
    """Without its mask, too: of 8 tokens two reach nobody, and the first one counts twice. Ours
    fills the last group with zeros and has no start there."""
    X = torch.randn(2, 8, H * D, dtype=torch.float64)
    one = torch.eye(H * D, dtype=torch.float64)
    W, kernel = [one, one, one], torch.stack([one / 3] * 3)
    later = X.clone()
    later[:, 7] += 1
    theirs = of_t2t(later, W, kernel, 0.0, 3, False) - of_t2t(X, W, kernel, 0.0, 3, False)
    assert (theirs[:, 0] == 0).all()
    mean = room.mean_kernel(3, D).double()
    ours = room.mca(heads(X), heads(later), heads(later), mean, mean)
    assert (ours - room.mca(heads(X), heads(X), heads(X), mean, mean))[:, :, 0].abs().max() > 1e-3
    B = room.mca_definition(heads(X), heads(X), heads(X), mean, mean)[1]
    assert B.shape[-1] == 3


@pytest.mark.parametrize("n", [9, 10])
def test_how_the_package_differs(n: int) -> None:
    """memory-compressed-attention, typed: one grouped convolution for keys and values, zeros in
    *front* of an incomplete first group, a learned slot that begins at zero in place of the first
    token, d^-1/2 of the full width, and a group may be used from its own last token on."""
    Q, K, V = (heads(torch.randn(1, n, H * D, dtype=torch.float64)) for _ in range(3))
    kernel, null = drawn()[0], torch.zeros(1, H, 1, D, dtype=torch.float64)

    def theirs(scale: float, late: bool) -> Tensor:
        fill = -n % 3
        K_, V_ = (room.squeezed(F.pad(X, (0, 0, fill, 0)), kernel) for X in (K, V))
        last = torch.arange(K_.shape[2]) * 3 + 2 - fill
        mask = torch.arange(n)[:, None] > last if late else torch.arange(n)[:, None] >= last
        scores = (Q @ torch.cat([null, K_], 2).mT * scale).masked_fill(
            ~F.pad(mask, (1, 0), value=True), -1e9
        )
        return scores.softmax(-1) @ torch.cat([null, V_], 2)

    def ours() -> Tensor:
        """With the same start: zeros instead of the first token."""
        K_, V_ = (room.squeezed(X, kernel)[:, :, : (n - 1) // 3] for X in (K, V))
        K_, V_ = torch.cat([null, K_], 2), torch.cat([null, V_], 2)
        return attention(Q, K_, V_, room.staircase(n, 3))[0]

    if n % 3 == 0:
        torch.testing.assert_close(theirs(D**-0.5, late=True), ours())
    else:  # its groups stand one or two tokens elsewhere
        assert (theirs(D**-0.5, late=True) - ours()).abs().max() > 0.01
    assert (theirs((H * D) ** -0.5, late=True) - ours()).abs().max() > 0.01
    assert (theirs(D**-0.5, late=False) - ours()).abs().max() > 0.01


# --- costs and refusals ---------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    keys, values = drawn()
    refused("keys has shape (4, 3, 8, 7); give (c, 8, 8)", room.mca, Q, K, V, keys[..., :7], values)
    refused("values has shape (2, 3, 8, 8)", room.mca, Q, K, V, keys, values[:2])
    refused("keys has groups of 3 tokens, values of 2", room.mca, Q, K, V, keys, values[:, :2])
    of_no_kind("keys", room.mca, Q, K, V, [1.0], values)
    ranges(lambda **n: room.MemoryCompressed(D, H, **n), c=(3, 1))
    ranges(lambda **n: room.staircase(**{"L": 4, "c": 2} | n), L=(4, 1), start=(0, 0))
    core = room.MemoryCompressed(D, H).double()
    refused("a cache cannot keep slots that", core, Q, K, V, Where(keep=lambda state: None))


def test_kernels_begin_as_a_convolution_does() -> None:
    """Uniform up to 1/√(c d): a slot sums c d numbers."""
    core = room.MemoryCompressed(16, 4, c=4)
    for kernel in (core.keys, core.values):
        assert 0.95 / 8 < kernel.detach().abs().max() <= 1 / 8


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: room.MemoryCompressed, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Any]:
    """A is there for means only; of one token the mask says that it is not causal."""
    causal = not bool(mask.all())
    out, B = room.mca_definition(Q, K, V, *core.kernels(K, V), causal=causal)
    return out, None if core.learned else B @ room.mean_shares(Q.shape[2], core.c, causal).to(B)


def of_24(Q: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    dice = torch.Generator().manual_seed(0)
    keys, values = (
        torch.randn(3, n, n, generator=dice, dtype=torch.float64).to(Q) / 4
        for n in (Q.shape[-1], V.shape[-1])
    )
    return keys, values


MIXES = "a learned kernel mixes the numbers of a value: there is no matrix A"
SQUARE = "its kernels mix as many numbers of a value as a key has"
ONE = "the mask of a single token does not say whether the text is causal"
CASE = Case(
    lambda: room.MemoryCompressed(D, H),
    defined,
    answers="whole",
    resumes=True,
    shares_sum_to_one=False,
    but={
        "its_map_is_what_it_applies": MIXES,
        "any_length_is_right_or_refused": ONE,
        "values_of_another_width_store_no_scores": SQUARE,
    },
    variants={
        "mean": Case(
            lambda: room.MemoryCompressed(D, H, 4, learned=False),
            defined,
            answers="whole",
            resumes=True,
            shares_sum_to_one=False,
            but={"any_length_is_right_or_refused": ONE},
        )
    },
    functions={
        "mca": Function(
            lambda Q, K, V: room.mca(Q, K, V, *of_24(Q, V)),
            lambda Q, K, V: room.mca_definition(Q, K, V, *of_24(Q, V)),
        ),
        "causal": Function(
            lambda Q, K, V: room.mca(Q, K, V, *of_24(Q, V), causal=True),
            lambda Q, K, V: room.mca_definition(Q, K, V, *of_24(Q, V), causal=True),
        ),
    },
    mutants=[
        ("kernels that begin without their c", "1 / math.sqrt(c * d)", "1 / math.sqrt(d)"),
        ("a staircase two queries to the left", "* c <= i[:, None]", "* c <= i[:, None] + 2"),
        ("a group that counts before it is over", "return (L - 1) // c", "return L // c"),
        ("a cache that forgets the rest", "rest[:, :, full:]", "rest[:, :, :0]"),
        (
            "values squeezed by the kernel of the keys",
            "squeezed(V, values)).to",
            "squeezed(V, keys)).to",
        ),
        (
            "a sum for a mean",
            'expand(_arguments.integer("c", c, 1), d, d) / c',
            'expand(_arguments.integer("c", c, 1), d, d) / 1',
        ),
    ],
)
