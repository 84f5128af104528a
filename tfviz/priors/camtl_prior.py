"""The task prior of CA-MTL: a block-diagonal bias on the scores, made from the vector of a task.

Pilault, Elhattami, Pal 2020 (arXiv 2009.09139), as their code has it (CAMTL/CA-MTL, `CBDA` in
conditional_modules.py). A text of L positions is cut into r blocks of B = ⌈L/r⌉. Each layer learns
one matrix of L × B numbers, r blocks below each other, and two linear functions of the task's
vector z that give a number for each of the B columns (FiLM, feature-wise linear modulation):

    M_ij = (1 + γ_c(z)) A_ic + β_c(z),   c = j mod B      where ⌊i/B⌋ = ⌊j/B⌋, else 0
    scores = Q Kᵀ/√d_head + M(z)                          the same M for all heads

Outside of the blocks M is 0, so scores there are what they were: it is a prior, not a mask. The
paper's equation multiplies by γ; its code, and this, by 1 + γ. A begins at 0 and so do the biases
of γ and β, but β's matrix does not, so M(z) = β(z) at first.

>>> import torch
>>> A, gamma, beta = torch.ones(4, 2), torch.tensor([0.0, 1.0]), torch.tensor([0.0, 0.5])
>>> task_prior(A, gamma, beta)[2].tolist()
[0.0, 0.0, 1.0, 2.5]
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Dense, Where, positions
from tfviz.dense_attention import attention, heads_attention

__all__ = ["TaskPrior", "camtl_definition", "task_prior"]


@named
def task_prior(
    A: Float[Tensor, "L B"], gamma: Float[Tensor, "*b B"], beta: Float[Tensor, "*b B"]
) -> Float[Tensor, "*b L L"]:
    """M: each block of A, its columns times 1 + γ plus β, on the diagonal; 0 outside of blocks."""
    L, B = A.shape
    for name, x in (("gamma", gamma), ("beta", beta)):
        _arguments.finite(name, _arguments.tensor(name, x, f"(…, {B})"))
        if x.shape[-1:] != (B,):
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}, blocks of A {B} columns; give {B} numbers"
            )
    i = torch.arange(L, device=A.device)
    return _at(A, gamma, beta, i[:, None], i)


def _at(
    A: Float[Tensor, "L B"],
    gamma: Float[Tensor, "*b B"],
    beta: Float[Tensor, "*b B"],
    i: Int[Tensor, "Lq 1"],
    j: Int[Tensor, "Lk"],
) -> Float[Tensor, "*b Lq Lk"]:
    """The rows i and columns j of M."""
    B = A.shape[1]
    inside = i // B == j // B
    return ((1 + gamma)[..., None, j % B] * A[i, j % B] + beta[..., None, j % B]) * inside


@named
def camtl_definition(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    mask: Bool[Tensor, "*#bh L L"],
    A: Float[Tensor, "L B"],
    gamma: Float[Tensor, "b B"],
    beta: Float[Tensor, "b B"],
) -> tuple[Float[Tensor, "b h L dv"], Float[Tensor, "b h L L"]]:
    """softmax(Q Kᵀ/√d_head + M) V over the mask, and the weights; M is put together block by block,
    for each text of the batch."""
    L, B = len(K[0, 0]), A.shape[1]
    M = torch.stack(
        [
            torch.block_diag(*((1 + g) * A + b).split(B))[:L, :L]
            for g, b in zip(gamma, beta, strict=True)
        ]
    )
    return attention(Q, K, V, mask, bias=M[:, None])


class TaskPrior(Dense):
    """Attention with a task prior, as a core: `BERT(…, core=lambda: TaskPrior(64, 4, 16))`.

    L   the longest text
    r   how many blocks; the last one is shorter where B = ⌈L/r⌉ does not divide L
    z   how many numbers a task's vector has

    The task comes from outside: `with given(task=z): model(t)`, where z has a row for each text of
    the batch, or is one row for all.
    """

    @named
    def __init__(self, L: int, r: int, z: int) -> None:
        super().__init__()
        self.L, self.z = _arguments.integer("L", L, 1), _arguments.integer("z", z, 1)
        B = -(-L // _arguments.integer("r", r, 1, L))
        self.A, self.film = nn.Parameter(torch.zeros(L, B)), nn.Linear(z, 2 * B)
        nn.init.zeros_(self.film.bias)

    def prior(self, task: Float[Tensor, "*b z"], Lq: int, Lk: int) -> Float[Tensor, "*b Lq Lk"]:
        """M of this task, or of each of several, for the last Lq of Lk positions."""
        if Lk > self.L:
            raise ValueError(
                f"the text has {Lk} positions, the prior {self.L}; make TaskPrior(L={Lk}, …) or "
                "shorten the text"
            )
        _arguments.finite("task", _arguments.tensor("task", task, f"(…, {self.z})"))
        if task.shape[-1:] != (self.z,):
            raise ValueError(
                f"task has shape {tuple(task.shape)}, and z = {self.z}; give vectors of {self.z} "
                "numbers"
            )
        gamma, beta = self.film(task.to(self.A.dtype)).chunk(2, -1)
        return _at(self.A, gamma, beta, *positions(Lq, Lk, self.A.device))

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> tuple[Tensor, Tensor | None]:
        if where.crosses:
            raise ValueError(
                "keys of another sequence have no place on the diagonal: give the prior to "
                "self-attention"
            )
        task = where.given.get("task")
        if task is None:
            raise ValueError("no task is given; call the model within `with given(task=z):`")
        _arguments.tensor("task", task, f"(…, {self.z})")
        if task.dim() > 1 and len(task) not in (1, len(Q)):
            raise ValueError(
                f"task has {len(task)} rows, the batch {len(Q)}; give one for each text, or one row"
            )
        M = self.prior(task.reshape(-1, task.shape[-1]), Q.shape[2], K.shape[2])
        return heads_attention(
            Q, K, V, where.pattern, M[:, None], where.attention_mask, where.need_weights
        )
