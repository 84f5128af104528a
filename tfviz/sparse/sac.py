"""SAC: a small recurrent network draws the attention edges, and is rewarded for useful ones.

Li, Meng, Zhou, Han, Wu, Li 2020 (arXiv 2003.09833). Attention on a list of edges (i, j) is the
softmax over those that begin at i. A predictor, an LSTM, names αL edges one by one, two nodes each,
and is trained by the policy gradient

    ∇J = E[ Σ_t ∇ log p(a_t | a_<t) (R − b) ],    R = log p_model(y | x),   b = running mean of R

No public code of the authors is known to us; what is more than these lines is our reconstruction:
that a node is scored by its vector's product with the LSTM's state, that a node which was named is
the next input, that an edge drawn twice counts once. (`SAC-pytorch` is soft actor–critic.)

>>> import torch
>>> X = torch.eye(3)[None, None]
>>> edge_attention(X, X, X, torch.tensor([[[[0, 2], [2, 0], [2, 1], [2, 1]]]]))[0, 0]
tensor([[0.0000, 0.0000, 1.0000],
        [0.0000, 0.0000, 0.0000],
        [0.5000, 0.5000, 0.0000]])
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from tfviz import _arguments, _qkv
from tfviz._arguments import named
from tfviz.cores import Where, identity

__all__ = ["EdgePredictor", "Edges", "edge_attention", "edge_mask"]


def _nodes(edges: Int[Tensor, "*b E 2"], L: int) -> None:
    """Raises TypeError or ValueError unless these are pairs of nodes, 0 … L − 1."""
    _arguments.indices("edges", edges)
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < L:
        raise ValueError(
            f"edges name node {int(edges.min())} to {int(edges.max())}; there are {L}, from 0"
        )


@named
def edge_mask(edges: Int[Tensor, "*b E 2"], L: int) -> Bool[Tensor, "*b L L"]:
    """The edges as a mask: row i, column j."""
    _nodes(edges, L)
    mask = torch.zeros(*edges.shape[:-2], L * L, dtype=torch.bool, device=edges.device)
    return mask.scatter_(-1, edges[..., 0] * L + edges[..., 1], True).unflatten(-1, (L, L))


@named
def edge_attention(
    Q: Float[Tensor, "b h L d"],
    K: Float[Tensor, "b h L d"],
    V: Float[Tensor, "b h L dv"],
    edges: Int[Tensor, "#b #h E 2"],
) -> Float[Tensor, "b h L dv"]:
    """Attention on these edges in O(E d). A query without an edge gets 0.

    One list may serve all heads, or all rows of a batch.
    """
    _qkv.check(Q, K, V, self_attention=True, reads_values=True)
    b, h, L, d = Q.shape
    if edges.ndim != 4 or edges.shape[-1] != 2:
        raise ValueError(f"edges has shape {tuple(edges.shape)}; give (b, h, E, 2)")
    if edges.device != Q.device:
        raise ValueError(f"edges are on {edges.device}, Q on {Q.device}; give edges.to(Q.device)")
    _nodes(edges, L)
    dtype, kind = Q.dtype, torch.promote_types(Q.dtype, torch.float32)
    Q, K, V = Q.to(kind), K.to(kind), V.to(kind)  # products of large halves overflow
    i, j = edges.expand(b, h, -1, 2).flatten(0, 1).unbind(-1)  # (b·h, E)
    graph = torch.arange(b * h, device=Q.device)[:, None] * L  # all graphs as one
    pair = torch.unique((graph + i) * L + j)  # an edge counts once
    row, column = pair // L, pair % L + pair // L // L * L
    q, k, v = (X.flatten(0, 2) for X in (Q, K, V))
    s = (q[row] * k[column]).sum(-1) / math.sqrt(d)
    most = s.detach().new_full((b * h * L,), -math.inf).scatter_reduce(0, row, s.detach(), "amax")
    e = (s - most[row]).exp()
    z = e.new_zeros(b * h * L).index_add(0, row, e)
    out = v.new_zeros(b * h * L, v.shape[-1]).index_add(0, row, (e / z[row])[:, None] * v[column])
    return out.view(b, h, L, -1).to(dtype)


class Drawn(NamedTuple):
    """What a predictor drew."""

    edges: Int[Tensor, "b E 2"]
    log_p: Float[Tensor, "b"]  # of all choices together


class EdgePredictor(nn.Module):
    """Names nodes one after another; two make an edge. Sequential, and each choice looks at all L
    nodes: O(E L d).

    causal      the second node of an edge is not later than the first
    every_node  only the second is drawn; the first is 0, 1, …, L − 1 in turn, so none stays alone
    """

    @named
    def __init__(
        self, d: int, hidden: int = 16, causal: bool = False, every_node: bool = False
    ) -> None:
        super().__init__()
        self.causal, self.every_node = causal, every_node
        self.start = nn.Parameter(torch.zeros(d))
        self.cell = nn.LSTMCell(d, hidden)
        self.read = nn.Linear(hidden, d, bias=False)

    @named
    def forward(
        self,
        X: Float[Tensor, "b L d"],
        count: int,
        dice: Generator | None = None,
        given: Int[Tensor, "b E 2"] | None = None,
    ) -> Drawn:
        """`count` edges over the nodes X, and the log of their probability; or that of `given`."""
        b, L, _ = X.shape
        _arguments.integer("count", count, 1)
        if given is not None and given.shape != (b, count, 2):
            raise ValueError(f"given has shape {tuple(given.shape)}; give ({b}, {count}, 2)")
        if given is not None:
            _nodes(given, L)
            if self.causal and bool((given[..., 1] > given[..., 0]).any()):
                raise ValueError("given looks ahead, but the predictor is causal: give j <= i")
            if self.every_node and bool(
                (given[..., 0] != torch.arange(count, device=given.device) % L).any()
            ):
                raise ValueError("given names other first nodes; every_node gives 0, 1, … in turn")
        last, state = self.start.expand(b, -1), None
        nodes: list[Tensor] = []
        log_p = X.new_zeros(b)
        for t in range(2 * count):
            state = self.cell(last, state)
            scores = (X @ self.read(state[0]).unsqueeze(-1)).squeeze(-1)  # (b, L)
            if self.causal and t % 2:
                later = torch.arange(L, device=X.device) > nodes[-1].unsqueeze(-1)
                scores = scores.masked_fill(later, -math.inf)
            chance = scores.log_softmax(-1)
            fixed = self.every_node and t % 2 == 0
            if given is not None:
                a = given[:, t // 2, t % 2]
            elif fixed:
                a = torch.full((b,), t // 2 % L, device=X.device)
            else:
                a = torch.multinomial(chance.detach().exp(), 1, generator=dice).squeeze(-1)
            if not fixed:
                log_p = log_p + chance.gather(-1, a.unsqueeze(-1)).squeeze(-1)
            nodes.append(a)
            last = X[torch.arange(b, device=X.device), a]
        return Drawn(torch.stack(nodes, -1).unflatten(-1, (count, 2)), log_p)


def reinforce(
    log_p: Float[Tensor, "b"], reward: Float[Tensor, "b"], baseline: float | Tensor = 0.0
) -> Float[Tensor, ""]:
    """A loss whose gradient is minus the policy gradient, of these samples."""
    return -((reward.detach() - baseline) * log_p).mean()


class Edges(nn.Module):
    """Attention on edges as a core; who draws them puts them into `edges`, (b or 1, h or 1, E, 2).

    It does not know padding, caches, or patterns other than full and causal.
    """

    edges: Tensor | None = None

    @named
    def forward(
        self, Q: Tensor, K: Tensor, V: Tensor, where: Where
    ) -> tuple[Tensor, Tensor | None]:
        causal = where.whole_text("the edges say who meets whom", "edges of a whole text")
        if self.edges is None:
            raise ValueError("edges are drawn for a whole text: set core.edges")
        edges = self.edges
        if causal and bool((edges[..., 1] > edges[..., 0]).any()):
            raise ValueError("edges look ahead, but the pattern is causal: draw them with causal")
        K, V = (X.repeat_interleave(Q.shape[1] // X.shape[1], 1) for X in (K, V))
        attend = partial(edge_attention, Q, K, edges=edges)
        return attend(V), attend(identity(V)) if where.need_weights else None


# --- the smallest case: six nodes, one edge that matters ------------------------------------------

NODES, READER, MATE, VALUES = 6, 1, 4, 4


class Bandit(NamedTuple):
    """How a predictor and a model learn together."""

    steps: list[int]
    chance: list[float]  # of the edge that matters
    first: list[list[float]]  # the chance of each first node, (steps, 6)
    second: list[list[list[float]]]  # of each second node after each first, (steps, 6, 6)
    reward: list[float]  # mean log p(y | x) of the last batch


def bandit(
    steps: int = 300, every: int = 50, baseline: bool = True, seed: int = 0, rate: float = 0.01
) -> Bandit:
    """Six nodes hold random symbols of four; the label is that of node 4, and it is read off at
    node 1, from the one edge that was drawn. The predictor is rewarded with log p(y)."""
    torch.manual_seed(seed)
    dice = Generator().manual_seed(seed)
    nodes, b = torch.eye(NODES), 64
    predictor, read = EdgePredictor(NODES), nn.Linear(VALUES, VALUES)
    learner = torch.optim.Adam([*predictor.parameters(), *read.parameters()], lr=rate)
    found, mean = Bandit([], [], [], [], []), -math.log(VALUES)
    pairs = torch.cartesian_prod(torch.arange(NODES), torch.arange(NODES))[:, None]
    for step in range(steps + 1):
        x = torch.randint(VALUES, (b, NODES), generator=dice)
        X = nodes.expand(b, -1, -1)
        drawn = predictor(X, 1, dice)
        one: Any = torch.zeros(b, 1, NODES, VALUES)  # all keys alike: only the edge decides
        V = F.one_hot(x, VALUES).float()[:, None]
        out = edge_attention(one, one, V, drawn.edges[:, None])[:, 0, READER]
        reward = -F.cross_entropy(read(out), x[:, MATE], reduction="none")
        if step % every == 0:
            with torch.no_grad():
                table = predictor(nodes.expand(len(pairs), -1, -1), 1, given=pairs).log_p.exp()
            table = table.view(NODES, NODES)
            found.steps.append(step)
            found.chance.append(float(table[READER, MATE]))
            found.first.append(table.sum(1).tolist())
            found.second.append((table / table.sum(1, keepdim=True)).tolist())
            found.reward.append(float(reward.mean().detach()))
        loss = reinforce(drawn.log_p, reward, mean if baseline else 0.0) - reward.mean()
        learner.zero_grad()
        loss.backward()
        learner.step()
        mean = 0.9 * mean + 0.1 * float(reward.mean().detach())
    return found
