"""Decision Transformer: a GPT that is told which return is wanted, and says the next action.

    R̂_t = r_t + r_{t+1} + … + r_T                     return-to-go: the rewards still to come
    R̂_1, s_1, a_1, R̂_2, s_2, a_2, …                   three tokens a step, read by a causal GPT
    row = LN(embedding of its kind + time_t)          one time for the three tokens of a step
    a_t is read at the token of s_t                   so it depends on R̂_1…R̂_t, s_1…s_t, a_1…a_{t−1}
    R̂_{t+1} = R̂_t − r_t                               when it acts: what is left of the wish

Chen et al. 2021 (arXiv 2106.01345). It learns from walks that others have made, and never tries
anything: offline. The norm after the embeddings is that of the authors' code for control tasks.
`asks=False` leaves the returns out, which is behaviour cloning with the same GPT.

Walks begin at any step: K steps make 3K tokens. Shorter ones are padded after their end, where no
token of the walk can look; the authors pad in front and mask, which gives the same numbers.

>>> returns_to_go(torch.tensor([-1.0, -1.0, -1.0])).tolist()
[-3.0, -2.0, -1.0]
>>> model = graph_walker(places=20, d=16, h=2, N=1, horizon=12)
>>> at = torch.zeros(1, 5, dtype=torch.long)  # five steps, the last without an action
>>> model(torch.full((1, 5), -5.0), at, at[:, :4], torch.arange(5)[None]).shape
torch.Size([1, 5, 20])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.models.blocks import Order, Stack, pre_norm
from tfviz.models.use import greedy
from tfviz.patterns import causal
from tfviz.training import Loss

__all__ = [
    "DecisionTransformer",
    "Walk",
    "act",
    "action_loss",
    "graph_walker",
    "interleaved",
    "returns_to_go",
]


class Walk(NamedTuple):
    """What happened in one episode: state, action and reward of each of its T steps."""

    states: Tensor  # (T, …)
    actions: Tensor  # (T, …): whole numbers, or real ones
    rewards: Float[Tensor, "T"]


class Windows(NamedTuple):
    """K steps of each of b walks; where a walk has ended, `there` is False and the rest is 0."""

    returns: Float[Tensor, "b K"]
    states: Tensor
    actions: Tensor
    times: Int[Tensor, "b K"]
    there: Bool[Tensor, "b K"]


@named
def returns_to_go(rewards: Float[Tensor, "*batch T"]) -> Float[Tensor, "*batch T"]:
    """R̂_t: the sum of the rewards from step t to the end."""
    return rewards.flip(-1).cumsum(-1).flip(-1)


@named
def interleaved(*kinds: Float[Tensor, "b K d"]) -> Float[Tensor, "b n*K d"]:
    """R̂_1, s_1, a_1, R̂_2, …: the first row of each kind, then the second of each, and so on."""
    if not kinds:
        raise ValueError("kinds is empty; give at least one tensor of shape (b, K, d)")
    return torch.stack(kinds, 2).flatten(1, 2)


class DecisionTransformer(nn.Module):
    """K steps, each a return-to-go, a state, an action and a time → what is read at each state.

    Args:
        embed_state, embed_action: modules that make d numbers of a state, and of an action, such as
            nn.Embedding for whole numbers or nn.Linear for real ones.
        read: makes logits of the actions, or an action of real numbers, from d numbers.
        d, h, N: width, heads and blocks of the GPT.
        horizon: steps of the longest walk; each has a learned row, added to its three tokens.
        scale: returns are divided by it.
        asks: False leaves the returns out, and makes two tokens a step.
    """

    @named
    def __init__(
        self,
        embed_state: nn.Module,
        embed_action: nn.Module,
        read: nn.Module,
        d: int,
        h: int,
        N: int,
        *,
        horizon: int,
        scale: float = 1.0,
        asks: bool = True,
        order: Order = pre_norm,
        **more: Any,
    ) -> None:
        super().__init__()
        self.horizon = _arguments.integer("horizon", horizon, 1)
        self.scale, self.asks = _arguments.real("scale", scale), asks
        if self.scale == 0:
            raise ValueError("scale = 0.0 divides returns by nothing; give their usual size")
        self.embed_return = nn.Linear(1, d) if asks else None
        self.embed_state, self.embed_action, self.read = embed_state, embed_action, read
        self.embed_time = nn.Embedding(horizon, d)
        self.norm = nn.LayerNorm(d)
        self.stack = Stack(N, d, h, order, pattern=causal(), **more)

    @named
    def forward(
        self,
        returns: Float[Tensor, "b K"],
        states: Tensor,
        actions: Tensor | None,
        times: Int[Tensor, "b K"],
    ) -> Float[Tensor, "b K out"]:
        """The last action may be left out, while it is being chosen; None: the only one is."""
        K = self._steps(returns, states, actions, times)
        time = self.embed_time(times)
        acted = time[:, :0]
        if actions is not None:
            acted = self.embed_action(actions) + time[:, : actions.shape[1]]
        acted = F.pad(acted, (0, 0, 0, K - acted.shape[1]))  # no other token looks at the last
        kinds = [self.embed_state(states) + time, acted]
        if self.embed_return is not None:
            kinds = [self.embed_return(returns[..., None] / self.scale) + time, *kinds]
        rows = self.stack(self.norm(interleaved(*kinds)))
        return self.read(rows[:, len(kinds) - 2 :: len(kinds)])

    def _steps(self, returns: Tensor, states: Tensor, actions: Tensor | None, times: Tensor) -> int:
        """K. Raises ValueError where the four do not fit together."""
        K = _arguments.indices("times", times, 2).shape[1]
        none = times[:, :0]
        given = {
            "returns": returns,
            "states": states,
            "actions": none if actions is None else actions,
        }
        for name, x in given.items():
            least = K - 1 if name == "actions" else K
            if x.dim() < 2 or len(x) != len(times) or not least <= x.shape[1] <= K:
                raise ValueError(
                    f"{name} has shape {tuple(x.shape)}, times {tuple(times.shape)}; give a batch "
                    "of as many steps of each, the last action may be left out"
                )
        if times.numel() and not 0 <= times.min() <= times.max() < self.horizon:
            raise ValueError(
                f"times goes from {times.min()} to {times.max()}, and horizon = {self.horizon} "
                f"knows 0 to {self.horizon - 1}; make the model with a longer horizon"
            )
        return K


@named
def graph_walker(places: int, d: int, h: int, N: int, **more: Any) -> DecisionTransformer:
    """For walks where the state is one of some places, and the action is the place to go to."""
    embed = nn.Embedding(places, d), nn.Embedding(places, d)
    return DecisionTransformer(*embed, nn.Linear(d, places), d, h, N, **more)


# --- learn from walks that others have made -------------------------------------------------------


def together(walks: Sequence[Walk]) -> Windows:
    """All of each walk, as long as the longest. Raises ValueError for none, or an empty one."""
    if not walks or not all(len(walk.rewards) for walk in walks):
        raise ValueError("walks has none, or one without a step; give walks of one step or more")
    lengths = torch.tensor([len(walk.rewards) for walk in walks])
    times = torch.arange(int(lengths.max())).expand(len(walks), -1)

    def padded(rows: list[Tensor]) -> Tensor:
        return nn.utils.rnn.pad_sequence(rows, batch_first=True)

    returns = padded([returns_to_go(walk.rewards) for walk in walks])
    states, actions = (padded([walk[kind] for walk in walks]) for kind in (0, 1))
    return Windows(returns, states, actions, times, times < lengths[:, None])


def windows(walks: Windows, K: int, b: int, rng: Generator) -> Windows:
    """K steps from b random steps on: each step of each walk is as likely."""
    _arguments.integer("K", K, 1)
    walk, first = walks.there.nonzero().T
    drawn = torch.randint(len(walk), (b,), generator=rng)
    times = first[drawn, None] + torch.arange(K)
    inside = times.clamp(max=walks.there.shape[1] - 1)
    rows = walk[drawn, None], inside
    there = walks.there[rows] & (times == inside)
    # what is over is 0, times are those of the horizon
    returns, states, actions = (
        x[rows] * there.reshape(there.shape + (1,) * (x.dim() - 2)) for x in walks[:3]
    )
    return Windows(returns, states, actions, inside, there)


@named
def action_loss(walks: Sequence[Walk], K: int, b: int) -> Loss:
    """Of all actions of b windows: cross-entropy for whole numbers, squared error for real ones."""
    everything = together(walks)

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        batch = windows(everything, K, b, rng)
        said = model(batch.returns, batch.states, batch.actions, batch.times)[batch.there]
        done = batch.actions[batch.there]
        return F.mse_loss(said, done) if done.is_floating_point() else F.cross_entropy(said, done)

    return loss


# --- act ------------------------------------------------------------------------------------------


@torch.no_grad()
@named
def act(
    model: DecisionTransformer,
    worlds: Sequence[Any],
    wishes: Sequence[float],
    K: int,
    pick: Callable[[Tensor], Tensor] = greedy,
    seed: int = 0,
) -> list[Walk]:
    """One walk in each world, asked for its wish: environments with the methods of Gymnasium.

    All walk at the same time, so that one call of the model moves them all. The model sees the last
    K steps, and what is left of the wish. `pick` chooses actions from what it says, (b, out). World
    n is reset with seed + n.
    """
    if len(worlds) != len(wishes):
        raise ValueError(f"{len(worlds)} worlds, {len(wishes)} wishes; give a wish for each world")
    _arguments.integer("K", K, 1)
    seen = [[torch.as_tensor(x.reset(seed=seed + n)[0])] for n, x in enumerate(worlds)]
    left, acted = [[float(wish)] for wish in wishes], [list[Tensor]() for _ in worlds]
    earned, going, t = [list[float]() for _ in worlds], [*range(len(worlds))], 0
    while going:
        since = max(0, t + 1 - K)
        states = torch.stack([torch.stack(seen[n][since:]) for n in going])
        returns = torch.tensor([left[n][since:] for n in going])
        done = [acted[n][since:] for n in going]
        actions = torch.stack([torch.stack(x) for x in done]) if t > since else None
        times = torch.arange(since, t + 1).expand(len(going), -1)
        chosen = pick(model(returns, states, actions, times)[:, -1])
        for n, action in zip([*going], chosen, strict=True):
            state, reward, ended, cut, _ = worlds[n].step(action.numpy()[()])
            acted[n].append(action)
            earned[n].append(float(reward))
            if ended or cut:
                going.remove(n)
            else:
                seen[n].append(torch.as_tensor(state))
                left[n].append(left[n][-1] - float(reward))
        t += 1
    each = zip(seen, acted, earned, strict=True)
    return [Walk(torch.stack(s), torch.stack(a), torch.tensor(r)) for s, a, r in each]
