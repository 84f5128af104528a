"""Decision Transformer: three tokens a step, causal, one time for the three; and how it acts."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case
from refusals import of_no_kind, refused
from torch import Generator, Tensor, nn

from tfviz.beyond_text import decision_transformer as dt
from tfviz.beyond_text.decision_transformer import DecisionTransformer, Walk

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
K, PLACES, HORIZON = 5, 7, 12


def walker(**more: Any) -> DecisionTransformer:
    return dt.graph_walker(PLACES, 16, 2, 2, horizon=HORIZON, **more).double()


def drawn(b: int = 2, steps: int = K) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns, states, actions, times."""
    states, actions = torch.randint(PLACES, (2, b, steps))
    return torch.randn(b, steps).double(), states, actions, torch.arange(3, 3 + steps).expand(b, -1)


def test_returns_to_go_by_hand() -> None:
    rewards = torch.tensor([[1.0, 0.0, 5.0], [-1.0, -1.0, -2.0]])
    assert dt.returns_to_go(rewards).tolist() == [[6.0, 5.0, 5.0], [-4.0, -3.0, -2.0]]


def test_what_is_left_of_a_wish_is_the_return_to_go() -> None:
    """Told the true return at first, the rule R̂ ← R̂ − r gives all others."""
    rewards = torch.randn(9, dtype=torch.float64)
    left = [rewards.sum()]
    for reward in rewards[:-1]:
        left.append(left[-1] - reward)
    close(torch.stack(left), dt.returns_to_go(rewards))


def test_tokens_stand_as_return_state_action() -> None:
    rows = dt.interleaved(*(torch.tensor([[[x], [x + 0.5]]]) for x in (1.0, 2.0, 3.0)))
    assert rows.flatten().tolist() == [1.0, 2.0, 3.0, 1.5, 2.5, 3.5]


def by_hand(model: DecisionTransformer, *given: Tensor) -> Tensor:
    """Token by token, from the model's weights."""
    returns, states, actions, times = given
    out = torch.zeros(*states.shape, PLACES).double()
    for n in range(len(states)):
        rows = []
        for t in range(states.shape[1]):
            time = model.embed_time.weight[times[n, t]]
            if model.embed_return is not None:
                wish = returns[n, t] / model.scale
                rows.append(wish * model.embed_return.weight[:, 0] + model.embed_return.bias + time)
            rows.append(model.embed_state(states[n, t]) + time)
            read = model.stack(model.norm(torch.stack(rows))[None])[0, -1]  # up to this state
            out[n, t] = model.read(read)
            rows.append(model.embed_action(actions[n, t]) + time)
    return out


@pytest.mark.parametrize("asks", [True, False])
def test_each_action_is_read_from_all_tokens_up_to_its_state(asks: bool) -> None:
    model, given = walker(scale=2.0, asks=asks), drawn()
    close(model(*given), by_hand(model, *given))


def test_an_action_sees_returns_and_states_so_far_and_earlier_actions() -> None:
    model, given = walker(), drawn()
    before = model(*given)
    for kind, first in ((0, 2), (1, 2), (2, 3)):  # a change at step 2 is seen from here on
        other = [x.clone() for x in given]
        other[kind][:, 2] = (other[kind][:, 2] + 1) % PLACES
        changed = (model(*other) - before).abs().amax((0, 2)) > 1e-9
        assert changed.tolist() == [t >= first for t in range(K)], kind


def test_the_time_is_that_of_the_step() -> None:
    model, (returns, states, actions, times) = walker(), drawn()
    later = model(returns, states, actions, times + 1)
    assert (later - model(returns, states, actions, times)).abs().min() > 1e-9
    seen: list[Tensor] = []
    model.norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    nn.init.zeros_(model.embed_time.weight)
    model(returns, states, actions, times)
    model.embed_time.weight.data[:] = torch.arange(HORIZON)[:, None]
    model(returns, states, actions, times)
    added = (seen[1] - seen[0])[0, :, 0]
    assert added.round().tolist() == [t for t in range(3, 3 + K) for _ in range(3)]


def test_the_last_action_may_be_left_out() -> None:
    model, (returns, states, actions, times) = walker(), drawn()
    whole = model(returns, states, actions, times)
    close(model(returns, states, actions[:, :-1], times), whole)
    close(model(returns[:, :1], states[:, :1], None, times[:, :1]), whole[:, :1])


def test_cloning_does_not_hear_the_wish() -> None:
    model, (returns, *rest) = walker(asks=False), drawn()
    close(model(returns, *rest), model(returns + 5, *rest))
    asked = walker()
    assert (asked(returns, *rest) - asked(returns + 5, *rest)).abs().max() > 1e-3
    count = [sum(x.numel() for x in m.parameters()) for m in (asked, model)]
    assert count[0] - count[1] == 2 * 16  # only what embeds the return


def test_a_context_of_K_steps_is_3K_tokens() -> None:
    lengths: list[int] = []
    for asks in (True, False):
        model = walker(asks=asks)
        model.norm.register_forward_pre_hook(lambda _, inputs: lengths.append(inputs[0].shape[1]))
        model(*drawn())
    assert lengths == [3 * K, 2 * K]


def test_scale_divides_returns() -> None:
    one, ten, (returns, *rest) = walker(), walker(scale=10.0), drawn()
    ten.load_state_dict(one.state_dict())
    close(one(returns, *rest), ten(10 * returns, *rest))


# --- windows, and the loss ------------------------------------------------------------------------


def two_walks() -> list[Walk]:
    first = Walk(torch.arange(5), torch.arange(1, 6), -torch.ones(5))
    return [first, Walk(torch.tensor([6, 5]), torch.tensor([5, 0]), torch.tensor([-1.0, -3.0]))]


def test_windows_are_pieces_of_walks() -> None:
    everything = dt.together(two_walks())
    assert everything.returns.tolist() == [[-5, -4, -3, -2, -1], [-4, -3, 0, 0, 0]]
    assert everything.there.sum(1).tolist() == [5, 2]
    batch = dt.windows(everything, 3, 400, Generator().manual_seed(0))
    firsts = set()
    for returns, states, actions, times, there in zip(*batch, strict=True):
        n = int(there.sum())
        walk = two_walks()[int(states[0] in (5, 6))]
        first = int(times[0])
        firsts.add((len(walk.rewards), first))
        assert n == min(3, len(walk.rewards) - first)
        close(returns[:n], dt.returns_to_go(walk.rewards)[first : first + n])
        assert states[:n].tolist() == walk.states[first : first + n].tolist()
        assert actions[:n].tolist() == walk.actions[first : first + n].tolist()
        assert times[:n].tolist() == [*range(first, first + n)]
        assert not states[n:].any() and not actions[n:].any() and not returns[n:].any()
    assert firsts == {(5, t) for t in range(5)} | {(2, t) for t in range(2)}  # each step may begin


def test_what_is_padded_is_not_learnt_and_not_seen() -> None:
    walks = [two_walks()[1]]
    model = dt.graph_walker(PLACES, 16, 2, 1, horizon=HORIZON)
    loss = dt.action_loss(walks, 2, 64)(model, Generator().manual_seed(0), 0)
    long = dt.action_loss(walks, 4, 64)(model, Generator().manual_seed(0), 0)
    close(loss, long, atol=1e-6, rtol=1e-6)


def test_the_loss_is_that_of_the_actions() -> None:
    walks, rng = two_walks(), Generator().manual_seed(0)
    model = dt.graph_walker(PLACES, 16, 2, 1, horizon=HORIZON)
    batch = dt.windows(dt.together(walks), 3, 8, Generator().manual_seed(0))
    said = model(*batch[:4])
    wanted = torch.stack(
        [-said[n, t].log_softmax(-1)[batch.actions[n, t]] for n, t in batch.there.nonzero()]
    ).mean()
    close(dt.action_loss(walks, 3, 8)(model, rng, 0), wanted, atol=1e-6, rtol=1e-6)
    real = [Walk(torch.randn(4, 3), torch.randn(4, 2), torch.ones(4))]
    model = DecisionTransformer(
        nn.Linear(3, 8), nn.Linear(2, 8), nn.Linear(8, 2), 8, 1, 1, horizon=4
    )
    batch = dt.windows(dt.together(real), 2, 8, Generator().manual_seed(1))
    wanted = ((model(*batch[:4]) - batch.actions)[batch.there] ** 2).mean()
    got = dt.action_loss(real, 2, 8)(model, Generator().manual_seed(1), 0)
    close(got, wanted, atol=1e-6, rtol=1e-6)


# --- acting ---------------------------------------------------------------------------------------


class Counter:
    """A world of Gymnasium's methods: the state counts up by the action, and `end` ends it."""

    def __init__(self, first: int, end: int, longest: int = 99) -> None:
        self.state, self.end, self.longest, self.steps = first, end, longest, 0

    def reset(self, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        self.seed = seed
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.state += int(action)
        self.steps += 1
        return self.state, float(self.steps), self.state >= self.end, self.steps >= self.longest, {}


class Noted(nn.Module):
    """Says action 1, and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[Any, ...]] = []

    def forward(self, *given: Any) -> Tensor:
        self.given.append(tuple(x if x is None else x.tolist() for x in given))
        return F.one_hot(torch.ones(given[1].shape, dtype=torch.long), 2).double()


def test_what_is_left_of_the_wish_is_told_at_each_step() -> None:
    model: Any = Noted()
    worlds = [Counter(0, 3), Counter(5, 9, longest=2)]
    walks = dt.act(model, worlds, [10.0, 20.0], K=2, seed=7)
    assert model.given == [
        ([[10.0], [20.0]], [[0], [5]], None, [[0], [0]]),
        ([[10.0, 9.0], [20.0, 19.0]], [[0, 1], [5, 6]], [[1], [1]], [[0, 1], [0, 1]]),
        ([[9.0, 7.0]], [[1, 2]], [[1]], [[1, 2]]),  # the last K = 2 steps; the other one is over
    ]
    assert [x.tolist() for x in walks[0]] == [[0, 1, 2], [1, 1, 1], [1.0, 2.0, 3.0]]
    assert [x.tolist() for x in walks[1]] == [[5, 6], [1, 1], [1.0, 2.0]]
    assert [world.seed for world in worlds] == [7, 8]


def test_actions_are_picked_from_the_last_state() -> None:
    model: Any = walker().float()
    with torch.no_grad():
        model.read.weight.zero_()
        model.read.bias.copy_(F.one_hot(torch.tensor(2), PLACES) * 9.0)
    assert dt.act(model, [Counter(0, 6)], [1.0], K=3)[0].actions.tolist() == [2, 2, 2]
    one = dt.act(model, [Counter(0, 3)], [1.0], K=3, pick=lambda x: x.argmin(-1) * 0 + 3)
    assert one[0].actions.tolist() == [3]


def test_it_walks_in_gymnasium() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    embed = nn.Linear(4, 8), nn.Embedding(2, 8)
    model = DecisionTransformer(*embed, nn.Linear(8, 2), 8, 1, 1, horizon=20)
    worlds = [gymnasium.make("CartPole-v1", max_episode_steps=20) for _ in range(2)]
    walks = dt.act(model, worlds, [20.0, 20.0], K=4)
    assert all(len(walk.rewards) == walk.rewards.sum() > 5 for walk in walks)


# --- code of others -------------------------------------------------------------------------------


def theirs_and_ours() -> tuple[Any, DecisionTransformer]:
    transformers = pytest.importorskip("transformers")
    config = transformers.DecisionTransformerConfig(
        state_dim=3, act_dim=2, hidden_size=16, max_ep_len=HORIZON, n_layer=2, n_head=2
    )
    theirs = transformers.DecisionTransformerModel(config).double().eval()
    embed = nn.Linear(3, 16), nn.Linear(2, 16), nn.Sequential(nn.Linear(16, 2), nn.Tanh())
    ours = DecisionTransformer(*embed, 16, 2, 2, horizon=HORIZON, phi=nn.ReLU).double()
    with torch.no_grad():
        for p in theirs.parameters():
            p.copy_(0.3 * torch.randn_like(p))
        theirs.encoder.wpe.weight.zero_()
        pairs = [
            (ours.embed_return, theirs.embed_return),
            (ours.embed_state, theirs.embed_state),
            (ours.embed_action, theirs.embed_action),
            (ours.embed_time, theirs.embed_timestep),
            (ours.norm, theirs.embed_ln),
            (ours.stack.norm, theirs.encoder.ln_f),
            (ours.read, theirs.predict_action),
        ]
        for mine, other in pairs:
            assert mine is not None
            mine.load_state_dict(other.state_dict())
        blocks: Any = ours.stack.blocks
        for block, other in zip(blocks, theirs.encoder.h, strict=True):
            linear = {
                "attend.W_qkv": other.attn.c_attn,
                "attend.W_o": other.attn.c_proj,
                "feed.W_1": other.mlp.c_fc,
                "feed.W_2": other.mlp.c_proj,
            }
            for name, conv in linear.items():  # GPT-2 keeps its matrices turned
                block.get_submodule(name).weight.copy_(conv.weight.T)
                block.get_submodule(name).bias.copy_(conv.bias)
            for norm, one in zip(block.norms, (other.ln_1, other.ln_2), strict=True):
                norm.load_state_dict(one.state_dict())
    return theirs, ours


def real(b: int = 2, steps: int = K) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = partial(torch.randn, dtype=torch.float64)
    times = torch.arange(2, 2 + steps).expand(b, -1)
    return draw(b, steps), draw(b, steps, 3), draw(b, steps, 2), times


def asked(theirs: Any, *given: Tensor, **more: Any) -> Tensor:
    returns, states, actions, times = given
    out = theirs(
        states=states,
        actions=actions,
        returns_to_go=returns[..., None],
        timesteps=times,
        **more,
    )
    return out.action_preds


@torch.no_grad()
def test_parity_with_hugging_face() -> None:
    theirs, ours = theirs_and_ours()
    given = real()
    close(ours(*given), asked(theirs, *given))


@torch.no_grad()
def test_hugging_face_pads_in_front_and_we_do_not_pad() -> None:
    theirs, ours = theirs_and_ours()
    given = real(steps=3)
    padded = [F.pad(x, (0, 0) * (x.dim() - 2) + (2, 0)) for x in given]
    mask = torch.tensor([[0, 0, 1, 1, 1]]).expand(2, -1)
    close(ours(*given), asked(theirs, *padded, attention_mask=mask)[:, 2:])


@torch.no_grad()
def test_hugging_face_adds_one_more_row_to_all_tokens() -> None:
    """Its GPT-2 keeps a table of positions and is told position 0 for each token. The authors' code
    has none. Only with this row at 0 are the two the same."""
    theirs, ours = theirs_and_ours()
    given = real()
    theirs.encoder.wpe.weight[0] = torch.randn(16)
    assert (ours(*given) - asked(theirs, *given)).abs().max() > 1e-3
    theirs.encoder.wpe.weight[0] = 0
    theirs.encoder.wpe.weight[1:] = torch.randn(1023, 16)
    close(ours(*given), asked(theirs, *given))


# --- bad input ------------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    model, (returns, states, actions, times) = walker(), drawn()
    refused(
        "returns has shape (2, 4) … times (2, 5)", model, returns[:, 1:], states, actions, times
    )
    refused("states has shape (1, 5)", model, returns, states[:1], actions, times)
    refused("actions has shape (2, 3)", model, returns, states, actions[:, 2:], times)
    refused("actions has shape (2, 0)", model, returns, states, None, times)
    refused("times goes from 8 to 12 … horizon = 12", model, returns, states, actions, times + 5)
    refused("times goes from -1", model, returns, states, actions, times - 4)
    of_no_kind("times is torch.float64", model, returns, states, actions, returns)
    refused("times has shape (5,)", model, returns, states, actions, times[0])
    refused("horizon = 0", dt.graph_walker, PLACES, 8, 1, 1, horizon=0)
    refused("scale = 0.0", dt.graph_walker, PLACES, 8, 1, 1, horizon=3, scale=0.0)
    refused("scale = nan", dt.graph_walker, PLACES, 8, 1, 1, horizon=3, scale=float("nan"))
    refused("walks has none", dt.together, [])
    refused(
        "one without a step", dt.together, [Walk(states[0, :0], actions[0, :0], returns[0, :0])]
    )
    refused("K = 0", dt.windows, dt.together(two_walks()), 0, 2, Generator())
    refused("K = 0", dt.act, model, [], [], 0)
    refused("1 worlds, 2 wishes", dt.act, model, [Counter(0, 1)], [1.0, 2.0], 3)


CASE = Case(
    mutants=[
        ("rewards so far", "rewards.flip(-1).cumsum(-1).flip(-1)", "rewards.cumsum(-1)"),
        ("kinds one after another", "torch.stack(kinds, 2)", "torch.stack(kinds, 1)"),
        ("read at the action", "rows[:, len(kinds) - 2 ::", "rows[:, len(kinds) - 1 ::"),
        ("returns that are not divided", "returns[..., None] / self.scale", "returns[..., None]"),
        (
            "actions of no time",
            "acted = self.embed_action(actions) + time[:, : actions.shape[1]]",
            "acted = self.embed_action(actions)",
        ),
        ("a wish that stays", "left[n][-1] - float(reward)", "left[n][-1]"),
        ("all that was seen", "since = max(0, t + 1 - K)", "since = 0"),
        ("pads that are learnt", "batch.times)[batch.there]", "batch.times).flatten(0, 1)"),
        (
            "only walks' beginnings",
            "first[drawn, None] + torch.arange(K)",
            "0 * first[drawn, None] + torch.arange(K)",
        ),
    ],
)
