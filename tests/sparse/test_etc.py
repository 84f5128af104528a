"""ETC: hand-typed masks, definition = pieces with gradients, full attention as a limit, bad input.

No public code runs here (the official one is TensorFlow): the definition, which makes all pairs,
and the limit that its authors name are the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from golden import drawn
from laws import Case, Function, agree_with_gradients, work_grows_no_faster
from refusals import of_no_kind, refused
from torch import Tensor

from tfviz import attention, patterns
from tfviz.sparse import etc

LENGTHS = [3, 1, 4]
L2G = ["1..", "1..", "1..", ".1.", "..1", "..1", "..1", "..1"]


def inputs(n_g: int = 3, n_l: int = 8, d: int = 4, **told: Any) -> list[Tensor]:
    """Q of both kinds, and K and V anew for each piece."""
    torch.manual_seed(0)
    options: dict[str, Any] = {"dtype": torch.float64, "requires_grad": True} | told
    sizes = [n_g, n_l] + 2 * [n_g, n_l, n_g, n_l]
    return [torch.randn(2, 2, n, d, **options) for n in sizes]


def called(x: list[Tensor], how: Any, radius: int, **told: Any) -> Any:
    return how(x[0], x[1], etc.Pieces(*x[2:6]), etc.Pieces(*x[6:]), radius, **told)


def test_masks_and_labels_are_the_hand_typed_ones() -> None:
    hard = etc.sentence_masks(LENGTHS, radius=2)
    wanted = drawn(L2G)
    assert hard.l2g.equal(wanted) and hard.g2l.equal(wanted.T)
    assert hard.g2g.all() and hard.l2l.shape == (8, 5) and hard.l2l.all()
    assert etc.sentence_masks(LENGTHS, 2, l2g=False).l2g.all()
    labels = etc.sentence_labels(LENGTHS, radius=3, far=2)
    assert labels.l2l[0].tolist() == [0, 0, 1, 2, 3, 4, 4]
    assert labels.g2g.tolist() == [[7, 8, 9], [6, 7, 8], [5, 6, 7]]
    assert labels.g2l[1].tolist() == [11, 11, 11, 10, 11, 11, 11, 11]
    assert labels.l2g[3].tolist() == [13, 12, 13]


@pytest.mark.parametrize(
    ("radius", "lengths"), [(2, LENGTHS), (0, LENGTHS), (9, [8]), (5, [70] * 3)]
)
@pytest.mark.parametrize("what", ["plain", "masks", "labels", "both"])
def test_pieces_do_what_the_definition_does(radius: int, lengths: list[int], what: str) -> None:
    x = inputs(len(lengths), sum(lengths))
    told: dict[str, Any] = {}
    leaves = list(x)
    if what in ("masks", "both"):
        masks = etc.sentence_masks(lengths, radius)
        closed = torch.rand(masks.l2l.shape) < 0.2
        closed[:, radius] = False
        told["masks"] = masks._replace(l2l=~closed)
    if what in ("labels", "both"):
        told["P"] = torch.randn(2, 18, 4, dtype=torch.float64, requires_grad=True)
        labels = etc.sentence_labels(lengths, radius, far=3)
        if what == "both":  # labels that differ from row to row
            labels = labels._replace(l2l=torch.randint(18, labels.l2l.shape))
        told["labels"] = labels
        leaves.append(told["P"])
    *wanted, A = called(x, etc.etc_definition, radius, **told)
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    got = called(x, etc.etc_attention, radius, **told)
    agree_with_gradients(torch.cat(list(got), 2), torch.cat(wanted, 2), leaves)


def test_a_window_over_everything_is_full_attention_and_two_softmaxes_are_not() -> None:
    G, L = torch.randn(3, 2, 2, 3, 4), torch.randn(3, 2, 2, 8, 4)
    X = torch.cat([G, L], -2)
    K, V = (etc.shared(G[n], L[n]) for n in (1, 2))
    full, _ = attention(*X)
    got = etc.etc_attention(G[0], L[0], K, V, radius=8)
    torch.testing.assert_close(torch.cat(got, 2), full)
    two = attention(L[0], G[1], G[2])[0] + attention(L[0], L[1], L[2])[0]
    for mixed in (two, two / 2):
        assert not torch.allclose(mixed, got[1], atol=0.05)


def test_without_masks_it_is_the_pattern_of_that_name() -> None:
    G, L = torch.randn(3, 1, 2, 3, 4), torch.randn(3, 1, 2, 9, 4)
    X = torch.cat([G, L], -2)
    K, V = (etc.shared(G[n], L[n]) for n in (1, 2))
    wanted, A = attention(X[0], X[1], X[2], patterns.etc(radius=2, n_global=3))
    got = etc.etc_attention(G[0], L[0], K, V, 2)
    torch.testing.assert_close(torch.cat(got, 2), wanted)
    torch.testing.assert_close(etc.etc_definition(G[0], L[0], K, V, 2)[2], A)


def test_memory_may_lie_anyhow() -> None:
    """A last side whose numbers do not lie side by side: of all that is given."""
    x, masks = inputs(requires_grad=False), etc.sentence_masks(LENGTHS, 2)
    labels = etc.sentence_labels(LENGTHS, 2, 2)
    P = torch.randn(2, 14, 4, dtype=torch.float64)
    wanted = called(x, etc.etc_attention, 2, masks=masks, labels=labels, P=P)

    def turned(x: Tensor) -> Tensor:
        return x.mT.contiguous().mT

    def every_second(x: Tensor) -> Tensor:
        return torch.stack([x, x], -1).flatten(-2)[..., ::2]

    for laid in (turned, every_second):
        pieces = [etc.Pieces(*map(laid, piece)) for piece in (masks, labels)]
        told = {"masks": pieces[0], "labels": pieces[1], "P": laid(P)}
        got = called([laid(t) for t in x], etc.etc_attention, 2, **told)
        torch.testing.assert_close(torch.cat(got, 2), torch.cat(wanted, 2))


def test_what_is_masked_has_no_weight() -> None:
    x = inputs(requires_grad=False)
    masks = etc.sentence_masks(LENGTHS, 2)
    A = called(x, etc.etc_definition, 2, masks=masks)[2]
    assert A[..., 3:, :3][..., ~masks.l2g].max() < 1e-300  # e^−C, whatever the scores are
    moved = [t.clone() for t in x]
    moved[8][:, :, 1] += 1  # the values of l2g of the second sentence's global token
    before, after = (called(t, etc.etc_attention, 2, masks=masks)[1] for t in (x, moved))
    changed = (before != after).any(-1).any(0).any(0)
    assert changed.tolist() == [i == 3 for i in range(8)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_keeps_its_type_and_is_near(dtype: torch.dtype) -> None:
    x, masks = inputs(requires_grad=False), etc.sentence_masks(LENGTHS, 2)
    half = [t.to(dtype).requires_grad_() for t in x]
    got = torch.cat(called(half, etc.etc_attention, 2, masks=masks), 2)
    exact = torch.cat(
        called([t.detach().double() for t in half], etc.etc_attention, 2, masks=masks), 2
    )
    grads = torch.autograd.grad(got.sum(), half)
    assert got.dtype == dtype and all(g.dtype == dtype and g.isfinite().all() for g in grads)
    torch.testing.assert_close(got.double(), exact, atol=0.05, rtol=0.05)


def test_gradients_can_be_differentiated_through_the_labels_too() -> None:
    x, labels = inputs(), etc.sentence_labels(LENGTHS, 2, 2)
    told: dict[str, Any] = {
        "labels": labels,
        "P": torch.randn(2, 14, 4, dtype=torch.float64, requires_grad=True),
        "masks": etc.sentence_masks(LENGTHS, 2),
    }
    leaves: list[Any] = [*x, told["P"]]
    first: list[Tensor] = []
    for how in (etc.etc_attention, etc.etc_definition):
        out = torch.cat(called(x, how, 2, **told)[:2], 2)
        grads = torch.autograd.grad(out.sin().sum(), [x[0], x[1]], create_graph=True)
        first.append(torch.cat(grads, 2))
    agree_with_gradients(first[0], first[1], leaves)


def test_work_grows_with_the_length() -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        told = {
            "labels": etc.sentence_labels([L // 4] * 4, 32, 8),
            "P": torch.randn(1, 38, 16),
            "masks": etc.sentence_masks([L // 4] * 4, 32),
        }
        return lambda *x: called(list(x), etc.etc_attention, 32, **told)[1]

    def leaves(L: int) -> list[tuple[int, ...]]:
        return [(1, 1, n, 16) for n in [4, L] * 5]

    work_grows_no_faster(attend, 1.2, leaves=leaves, work=(4096, 16384))


def test_bad_input_is_named() -> None:
    x = inputs(requires_grad=False)
    masks = etc.sentence_masks(LENGTHS, 3)
    refused("masks.l2l has shape (8, 7); give (8, 5)", called, x, etc.etc_attention, 2, masks=masks)
    refused("labels and P belong together", called, x, etc.etc_attention, 2, P=torch.zeros(2, 9, 4))
    with pytest.raises(ValueError, match="labels go to 13, P has 9 vectors"):
        labels = etc.sentence_labels(LENGTHS, 2, 2)
        called(x, etc.etc_attention, 2, labels=labels, P=torch.zeros(2, 9, 4).double())
    few = [*x[:3], x[2], *x[4:]]
    refused("K.g2l has 3 keys; there are 8 such tokens", called, few, etc.etc_attention, 2)
    for how in (etc.etc_attention, etc.etc_definition):
        numbers = etc.Pieces(*(m.long() for m in etc.sentence_masks(LENGTHS, 2)))
        says = "masks.g2g is torch.int64; give Booleans, True = open: masks.g2g != 0"
        of_no_kind(says, called, x, how, 2, masks=numbers)
        of_no_kind("K is a Tensor; give Pieces", how, x[0], x[1], x[2], x[3], 2)
        arrays = [*x[:3], x[3].numpy(), *x[4:]]
        of_no_kind("K.g2l is a ndarray; give a tensor", called, arrays, how, 2)
        of_no_kind("Q_global is a str", called, ["x", *x[1:]], how, 2)
        labels = etc.sentence_labels(LENGTHS, 2, 2)
        labels = labels._replace(g2l=labels.g2l - 12)
        P = torch.zeros(2, 14, 4).double()
        refused("labels begin at -2; number", called, x, how, 2, labels=labels, P=P)
    refused("lengths = []; give", etc.sentence_masks, [], 2)
    refused("lengths[1] = 0", etc.owners, [3, 0])
    refused("radius = -1", called, x, etc.etc_attention, -1)


# --- what it brings to the laws and the mutants ---------------------------------------------------


OPEN = etc.Pieces(*(torch.ones(24, n, dtype=torch.bool) for n in (24, 24, 24, 5)))


def of_one_text(way: Callable[..., Any]) -> Callable[..., Any]:
    """The text is at once its own global tokens."""

    def attend(Q: Tensor, K: Tensor, V: Tensor, **masks: Tensor) -> Tensor:
        told = {"masks": OPEN._replace(**masks)} if masks else {}
        out: Tensor = way(Q, Q, etc.shared(K, K), etc.shared(V, V), 2, **told)[1]
        return out

    return attend


CASE = Case(
    functions={
        "ETC": Function(
            of_one_text(etc.etc_attention),
            of_one_text(etc.etc_definition),
            masks={"l2g": OPEN.l2g.tril(), "g2g": OPEN.g2g.tril()},
        )
    },
    mutants=[
        (
            "two softmaxes, half and half",
            "(z_ll - z_lg).sigmoid()",
            "(0 * z_ll + 0.5)",
        ),
    ],
)


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/sub_quadratic/loud.py": [
        ("labels without gradients", "if ctx.needs_input_grad[3] else None", "if False else None"),
    ],
}
