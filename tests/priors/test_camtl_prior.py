"""The task prior: a block by hand, what a task can and cannot change, and the rule of the code."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, H, L, close, streamed
from refusals import ranges, refused
from torch import Tensor, nn

from tfviz import BERT, GPT, attention, patterns
from tfviz.cores import Where, given
from tfviz.priors import camtl_prior as rooms
from tfviz.priors.camtl_prior import TaskPrior

FULL = Where(patterns.full())
TEXT = torch.randint(11, (2, 8), generator=torch.Generator().manual_seed(0))
Z = 3


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def core(r: int = 3, length: int = L) -> TaskPrior:
    made = TaskPrior(length, r, Z).double()
    made.A.data, made.film.bias.data = drawn(*made.A.shape), drawn(*made.film.bias.shape)
    return made


def test_two_tasks_by_hand() -> None:
    """One block of three that prefers the key to the left by 2 and dislikes the one to the right.
    γ = 0 leaves it as it is, γ = −2 turns it round, β = 1 lifts the last column."""
    A = 2.0 * torch.tensor([[0, -1, 0], [1, 0, -1], [0, 1, 0]])
    left = rooms.task_prior(A, torch.zeros(3), torch.zeros(3))
    right = rooms.task_prior(A, torch.full((3,), -2.0), torch.zeros(3))
    assert left.equal(A) and right.equal(-A)
    lifted = rooms.task_prior(A, torch.zeros(3), torch.tensor([0.0, 0, 1]))
    assert lifted.tolist() == [[0, -2, 1], [2, 0, -1], [0, 2, 1]]
    weights = left[1].softmax(-1)  # e² : 1 : e⁻²
    assert [round(a, 3) for a in weights.tolist()] == [0.867, 0.117, 0.016]


def test_blocks_lie_on_the_diagonal_and_share_gamma_and_beta() -> None:
    A, gamma, beta = drawn(6, 2), drawn(2), drawn(2)
    M = rooms.task_prior(A, gamma, beta)
    for block in range(3):
        here = slice(2 * block, 2 * block + 2)
        close(M[here, here], A[here] * (1 + gamma) + beta)
        M[here, here] = 0
    assert not M.any()


def test_it_is_a_prior_and_no_mask() -> None:
    """Scores outside of the blocks stay, and weigh: without A, γ and β it is attention as it is."""
    made, X = core(), drawn(3, 2, H, L, D)
    with given(task=drawn(Z)):
        A = made(*X, Where(patterns.full(), need_weights=True))[1]
        assert (A > 0).all()
        for p in (made.A, made.film.weight, made.film.bias):
            p.data.zero_()
        close(made(*X, FULL)[0], attention(*X)[0])


def test_a_new_layer_is_not_yet_attention_as_it_is() -> None:
    """A begins at 0, but not the matrix of β: M(z) = β(z), the same row for all of a block."""
    made, z = TaskPrior(8, 2, Z), torch.randn(Z)
    M = made.prior(z, 8, 8)
    beta = made.film(z).chunk(2)[1]
    assert beta.abs().min() > 0 and M[:4, :4].equal(beta.expand(4, 4))
    assert made.prior(torch.zeros(Z), 8, 8).abs().max() == 0


@torch.no_grad()
def test_only_the_prior_changes_with_the_task() -> None:
    made, (Q, K, V) = core(), drawn(3, 2, H, L, D)
    scores = []
    for z in drawn(2, Z):
        with given(task=z):
            A = made(Q, K, V, Where(patterns.full(), need_weights=True))[1]
        scores.append(A.log() - made.prior(z, L, L))
    difference = scores[0] - scores[1]
    close(difference, difference[..., :1].expand_as(difference))  # a constant for each row


@torch.no_grad()
def test_each_text_of_a_batch_has_its_own_task() -> None:
    torch.manual_seed(0)
    bert = BERT(11, 16, 4, 2, core=lambda: core(2, 8)).double()
    z = drawn(2, Z)
    with given(task=z):
        both = bert(TEXT)
    for n in range(2):
        with given(task=z[n]):
            close(bert(TEXT[n : n + 1])[0], both[n])
    with given(task=z[1]):
        assert (bert(TEXT[:1])[0] - both[0]).abs().max() > 1e-3


def test_every_layer_has_its_own_and_the_task_learns() -> None:
    bert: Any = BERT(11, 16, 4, 2, core=lambda: TaskPrior(8, 2, Z))
    cores = [block.attend.core for block in bert.stack.blocks]
    assert cores[0] is not cores[1] and cores[0].A.shape == (8, 4)
    z = torch.randn(2, Z, requires_grad=True)
    with given(task=z):
        bert(TEXT).square().sum().backward()
    assert z.grad is not None and z.grad.any()
    assert all(c.A.grad.any() and c.film.weight.grad.any() for c in cores)


@torch.no_grad()
def test_a_shorter_text_and_a_text_in_parts() -> None:
    model = GPT(11, 16, 4, 2, core=lambda: core(2, 8)).double().eval()
    with given(task=drawn(Z)):
        whole = model(TEXT)
        close(model(TEXT[:, :5]), whole[:, :5])
        close(streamed(model, TEXT, [3, 1, 4]), whole)


@pytest.mark.parametrize(("length", "r"), [(12, 3), (128, 6), (10, 4)])
def test_the_rule_of_the_authors_code(length: int, r: int) -> None:
    """`CBDA.forward` of CAMTL/CA-MTL, typed anew: a linear layer gives γ and β, the modulated
    matrix is cut into r pieces, and `block_diag` puts these together. 128 in 6 are their sizes."""
    made, z = TaskPrior(length, r, Z).double(), drawn(5, Z)
    made.A.data = drawn(*made.A.shape)
    assert made.A.shape == (length, -(-length // r))
    gamma, beta = made.film(z).unsqueeze(1).chunk(2, -1)
    modulated = (1 + gamma) * made.A + beta
    theirs = torch.stack([torch.block_diag(*one.chunk(r, 0)) for one in modulated])
    close(made.prior(z, length, length), theirs[:, :, :length])


def test_bad_input_is_named() -> None:
    ranges(partial(TaskPrior, r=1, z=2), L=(8, 1))
    ranges(lambda r: TaskPrior(8, r, 2), r=(2, 1, 8))
    ranges(lambda z: TaskPrior(8, 2, z), z=(3, 1))
    made, X = core(), drawn(3, 2, H, L, D)
    refused("no task is given; call the model within `with given(task=z):`", made, *X, FULL)
    with given(task=drawn(3, Z)):
        refused("task has 3 rows, the batch 2; give one for each text", made, *X, FULL)
    with given(task=drawn(Z + 1)):
        refused("task has shape (1, 4), and z = 3; give vectors of 3", made, *X, FULL)
    with given(task=drawn(Z)):
        longer = drawn(3, 2, H, L + 1, D)
        refused("the text has 10 positions, the prior 9; make TaskPrior(L=10", made, *longer, FULL)
        refused("keys of another sequence … give", made, *X, Where(crosses=True))
    refused("gamma has shape (2,), blocks of A 3", rooms.task_prior, drawn(6, 3), *drawn(2, 2))
    refused("beta has shape (2,)", rooms.task_prior, drawn(6, 3), drawn(3), drawn(2))


class ForTask(nn.Module):
    """The core with a task of its own, for the laws: one vector for all texts."""

    def __init__(self, length: int, r: int) -> None:
        super().__init__()
        self.core, self.task = TaskPrior(length, r, Z), nn.Parameter(torch.randn(Z))

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Any:
        with given(task=self.task):
            return self.core(Q, K, V, where)


def defined(made: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    gamma, beta = made.core.film(made.task).expand(len(Q), -1).chunk(2, -1)
    A = made.core.A[: Q.shape[2]]
    return rooms.camtl_definition(Q, K, V, mask, A, gamma, beta)


CASE = Case(
    lambda: ForTask(L, 3),
    defined,
    sized=lambda length: ForTask(length, 3),
    mutants=[
        ("a mask in place of a prior", "* inside", ".masked_fill(~inside, -1e9)"),
        ("γ in place of 1 + γ", "(1 + gamma)[..., None, j % B]", "gamma[..., None, j % B]"),
        ("FiLM by rows", "+ beta[..., None, j % B]", "+ beta[..., i % B]"),
        ("A that does not begin at 0", "torch.zeros(L, B)", "torch.ones(L, B)"),
        ("a bias that does not begin at 0", "nn.init.zeros_(self.film.bias)", "pass"),
        ("β for γ", "gamma, beta = self.film", "beta, gamma = self.film"),
        ("blocks that are cut short", "B = -(-L // ", "B = (L // "),
        ("one task for all texts", "M[:, None], where", "M[:1, None], where"),
    ],
)
