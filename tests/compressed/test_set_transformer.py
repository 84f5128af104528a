"""Set Transformer: what no order changes, what inducing points bound, the authors' code."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from laws import Case
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz.compressed import set_transformer as room
from tfviz.measure import largest_storage
from tfviz_lab import load
from tfviz_lab.compressed import set_pooling

D, H, N = 8, 2, 11


def sets(n: int = N, b: int = 2) -> Tensor:
    return torch.randn(b, n, D, dtype=torch.float64)


def modules() -> dict[str, nn.Module]:
    return {
        "SAB": room.SAB(D, H).double(),
        "ISAB": room.ISAB(D, H, m=3).double(),
        "PMA": room.PMA(D, H, k=2).double(),
    }


def plain(mab: room.MAB) -> room.MAB:
    """One head of one number a row whose projections change nothing, without W^o, rFF and norms."""
    for W in (mab.W_q, mab.W_k, mab.W_v, mab.W_o):
        W.weight.data, W.bias.data = torch.eye(W.in_features), torch.zeros(W.in_features)
    for p in mab.rFF.parameters():
        p.data = torch.zeros_like(p)
    mab.norms = nn.ModuleList([nn.Identity(), nn.Identity()])
    return mab


def test_three_numbers_by_hand() -> None:
    """A seed of ln 2 reads 0, 1, 2 with weights 1 : 2 : 4 and pools (0 + 2 + 8)/7 = 10/7."""
    mab = plain(room.MAB(1, 1))
    seed, Y = torch.tensor([[[math.log(2)]]]), torch.tensor([[[0.0], [1.0], [2.0]]])
    torch.testing.assert_close(mab(seed, Y), seed + 10 / 7)
    torch.testing.assert_close(
        room.mab_definition(mab, seed, Y)[1].flatten(), torch.tensor([1.0, 2, 4]) / 7
    )


@pytest.mark.parametrize("full_width", [True, False])
def test_the_block_is_its_definition_with_gradients(full_width: bool) -> None:
    mab = room.MAB(D, H, full_width).double()
    X, Y = sets(4).requires_grad_(), sets().requires_grad_()
    leaves = [X, Y, *mab.parameters()]
    got, wanted = mab(X, Y), room.mab_definition(mab, X, Y)[0]
    torch.testing.assert_close(got, wanted)
    aim = torch.randn_like(got)
    for a, b in zip(*(torch.autograd.grad(out, leaves, aim) for out in (got, wanted)), strict=True):
        torch.testing.assert_close(a, b)


def test_scores_are_divided_by_the_whole_width() -> None:
    """The paper's ω is softmax(·/√d) with the width of the block, not of a head."""
    mab = room.MAB(D, H).double()
    X, Y = sets(3), sets()
    Q, K, _ = mab.heads(X, Y)
    torch.testing.assert_close(
        room.mab_definition(mab, X, Y)[1], (Q @ K.mT / math.sqrt(D)).softmax(-1)
    )
    mab.scale = room.MAB(D, H, full_width=False).scale
    torch.testing.assert_close(
        room.mab_definition(mab, X, Y)[1], (Q @ K.mT / math.sqrt(D / H)).softmax(-1)
    )


@pytest.mark.parametrize("name", ["SAB", "ISAB"])
def test_another_order_gives_the_same_rows_in_that_order(name: str) -> None:
    module, X, order = modules()[name], sets(), torch.randperm(N)
    torch.testing.assert_close(module(X[:, order]), module(X)[:, order])
    assert not torch.allclose(module(X), module(X)[:, order])


def test_pooling_does_not_know_the_order_until_positions_are_added() -> None:
    pool, X, order = modules()["PMA"], sets(), torch.arange(N).flip(0)
    torch.testing.assert_close(pool(X[:, order]), pool(X))
    P = torch.randn(N, D, dtype=torch.float64)
    assert (pool(X[:, order] + P) - pool(X + P)).abs().max() > 0.01


@pytest.mark.parametrize("m", [1, 3, 5])
def test_the_weights_of_inducing_points_have_rank_m(m: int) -> None:
    """(L, m) times (m, L): what the set reads of itself through m points."""
    isab, X = room.ISAB(D, 1, m).double(), sets(12)
    few, reads = room.mab_definition(isab.reads, isab.I.expand(2, -1, -1), X)
    _, answers = room.mab_definition(isab.answers, X, few)
    A = answers @ reads
    torch.testing.assert_close(A.sum(-1), torch.ones_like(A[..., 0]))
    assert (torch.linalg.matrix_rank(A, rtol=1e-10) <= m).all()
    assert torch.linalg.matrix_rank(room.mab_definition(isab.reads, X, X)[1]).min() > 5


def test_a_set_of_any_size_and_padding_that_is_not_there() -> None:
    real = torch.ones(2, N, dtype=torch.bool)
    real[0, 6:] = False
    for name, module in modules().items():
        assert module(sets(1)).isfinite().all() and module(sets(40)).isfinite().all()
        X = sets()
        other = torch.where(real[..., None], X, 50 * torch.randn_like(X))
        rows = slice(None) if name == "PMA" else slice(0, 6)
        torch.testing.assert_close(module(X, real)[0, rows], module(other, real)[0, rows])
        torch.testing.assert_close(module(X, real)[0, rows], module(X[:1, :6])[0, rows])


# --- the authors' code ----------------------------------------------------------------------------


def theirs(mab: room.MAB, X: Tensor, Y: Tensor, norms: bool = False) -> Tensor:
    """The formula of `MAB` in juho-lee/set_transformer, with our block's weights: the projected
    queries are what the answers are added to, head by head; no W^o; rFF is one layer and a ReLU."""
    Q, K, V = mab.heads(X, Y)
    O = (Q + (Q @ K.mT / math.sqrt(D)).softmax(-1) @ V).transpose(1, 2).flatten(2)
    O = mab.norms[0](O) if norms else O
    O = O + F.relu(mab.rFF[0](O))
    out: Tensor = mab.norms[1](O) if norms else O
    return out


def of_theirs(norms: bool) -> room.MAB:
    """Ours with the weights that make it theirs: identity for W^o and for the residual's W^q,
    positive outputs of rFF's first layer that its second layer hands on."""
    mab = room.MAB(D, H).double()
    one, none = torch.eye(D, dtype=torch.float64), torch.zeros(D, dtype=torch.float64)
    for W in (mab.W_q, mab.W_o, mab.rFF[2]):
        assert isinstance(W, nn.Linear)
        W.weight.data, W.bias.data = one, none
    if not norms:
        mab.norms = nn.ModuleList([nn.Identity(), nn.Identity()])
    return mab


@pytest.mark.parametrize("norms", [True, False])
def test_parity_with_the_formula_of_the_authors(norms: bool) -> None:
    """Where W^q and W^o are the identity both are one; any other W^q, or W^o, tells them apart."""
    X, Y = sets(4), sets()
    mab = of_theirs(norms)
    torch.testing.assert_close(mab(X, Y), theirs(mab, X, Y, norms))
    for W in (mab.W_q, mab.W_o, mab.rFF[2]):
        assert isinstance(W, nn.Linear)
        kept, W.weight.data = W.weight.data, torch.randn(D, D, dtype=torch.float64)
        assert (mab(X, Y) - theirs(mab, X, Y, norms)).abs().max() > 0.01
        W.weight.data = kept


def test_the_authors_leave_out_norms_unless_asked_and_the_network_before_pooling() -> None:
    X, Y = sets(4), sets()
    mab = of_theirs(norms=True)
    assert (mab(X, Y) - theirs(mab, X, Y, norms=False)).abs().max() > 0.01
    pool = room.PMA(D, H, 2).double()
    seeds = pool.S.expand(2, -1, -1)
    torch.testing.assert_close(pool(Y), pool.pools(seeds, pool.rFF(Y)))  # equation 11
    assert (pool(Y) - pool.pools(seeds, Y)).abs().max() > 0.01  # what their code does


# --- costs and refusals ---------------------------------------------------------------------------


def test_inducing_points_make_it_linear() -> None:
    def at(n: int, module: nn.Module) -> float:
        X = torch.randn(1, n, 16)
        module(X)
        return largest_storage(module, X)

    isab, sab = room.ISAB(16, 1, m=4), room.MAB(16, 1)
    assert at(1024, isab) / at(256, isab) <= 4.2
    weights = [
        room.mab_definition(sab, x, x)[1].numel()
        for x in (torch.randn(1, n, 16) for n in (256, 1024))
    ]
    assert weights[1] / weights[0] == 16


def test_bad_input_is_named() -> None:
    mab, isab = room.MAB(D, H).double(), room.ISAB(D, H, 3).double()
    refused("d = 8, h = 3; h must divide d", room.MAB, D, 3)
    refused("X has shape (11, 8); give (b, n, 8)", mab, sets()[0], sets())
    refused("Y has shape (2, 11, 7)", mab, sets(), sets()[..., :7])
    refused("X holds 1 sets, Y 2", mab, sets(b=1), sets())
    refused("X has shape (2, 0, 8)", isab, sets(0))
    refused("real has shape (2, 10); give (2, 11)", isab, sets(), torch.ones(2, 10).bool())
    refused("real is False for all rows of a set", isab, sets(), torch.zeros(2, N).bool())
    of_no_kind("real is torch.float32", isab, sets(), torch.ones(2, N))
    of_no_kind("X has dtype torch.int64", isab, torch.ones(2, 3, D).long())
    ranges(lambda **n: room.ISAB(D, H, **n), m=(3, 1))
    ranges(lambda **n: room.PMA(D, H, **n), k=(3, 1))


CASE = Case(
    mutants=[
        ("scores divided by the width of a head", "d if full_width else d // h", "d // h"),
        (
            "a pool without its network",
            "self.pools(seeds, self.rFF(Z), real)",
            "self.pools(seeds, Z, real)",
        ),
        (
            "inducing points that are read and do not read",
            "self.answers(X, few)",
            "self.answers(X, self.I.expand(len(X), -1, -1))",
        ),
        (
            "a residual of what is read",
            "self.norms[0](X + self.W_o(heads.transpose(1, 2).flatten(2)))\n        out",
            "self.norms[0](self.W_o(heads.transpose(1, 2).flatten(2)))\n        out",
        ),
        (
            "padding that counts",
            "_checked(real, Y)[:, None, None]",
            "_checked(real, Y)[:, None, None].logical_not().logical_or(torch.tensor(True))",
        ),
    ]
)


# --- the largest number of a set ------------------------------------------------------------------


@pytest.mark.parametrize("size", set_pooling.SIZES)
def test_no_other_constant_is_nearer_to_the_largest_number(size: int) -> None:
    largest = set_pooling.drawn(20_000, size, torch.Generator().manual_seed(7)).amax(1)
    off = {c: (largest - c).abs().mean().item() for c in range(1, set_pooling.HIGHEST + 1)}
    assert off[set_pooling.best_constant(size)] < 1.01 * min(off.values())


def test_the_constants_that_are_stored_are_those_of_today() -> None:
    stored = load("set_pooling")
    assert stored["trivial"]["best constant"] == set_pooling.constant_errors()
    assert stored["constants"] == [set_pooling.best_constant(size) for size in stored["sizes"]]
