"""The world of the chapter's experiment, and what the experiment counts."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from gymnasium.utils.env_checker import check_env

from tfviz.beyond_text.decision_transformer import Walk, act
from tfviz_lab.beyond_text import graph_walk, return_conditioning
from tfviz_lab.beyond_text.graph_walk import FAILURE, GOAL, HORIZON, NAMES, GraphWalk


@pytest.mark.filterwarnings("ignore:.*render")
def test_the_graph_is_an_environment_of_gymnasium() -> None:
    check_env(GraphWalk(), skip_render_check=True)


def test_distances_by_hand() -> None:
    away = dict(zip(NAMES, graph_walk.distances(), strict=True))
    assert [away[x] for x in "OJSTERQNKCA"] == [0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 6]
    assert len(graph_walk.PLACES) == len(NAMES) == 20 and len(graph_walk.paths()) == 30


def walked(start: str, way: str) -> tuple[list[str], list[float], list[bool]]:
    world = GraphWalk(NAMES.index(start))
    assert NAMES[world.reset()[0]] == start
    seen = [world.step(NAMES.index(x)) for x in way]
    return [NAMES[x[0]] for x in seen], [x[1] for x in seen], [x[2] or x[3] for x in seen]


def test_each_step_costs_one_and_failing_costs_more() -> None:
    assert walked("R", "SO") == (["S", "O"], [-1.0, -1.0], [False, True])
    assert walked("R", "OSO") == (["R", "S", "O"], [-1.0] * 3, [False, False, True])  # no path R–O
    places, rewards, over = walked("A", "BABABABABA")
    assert places[-1] == "A" and rewards == [-1.0] * (HORIZON - 1) + [-1.0 - FAILURE]
    assert over == [False] * (HORIZON - 1) + [True]
    assert walked("K", "LKLKLKQRSO")[1] == [-1.0] * HORIZON  # arrives in the last step


def test_random_walks_keep_to_the_paths() -> None:
    walks, near = graph_walk.random_walks(200, seed=1), graph_walk.neighbours()
    for walk in walks:
        assert all(a in near[s] for s, a in zip(walk.states, walk.actions, strict=True))
        assert all(a == s for a, (_, s) in zip(walk.actions, pairwise(walk.states), strict=False))
        arrived = walk.actions[-1] == GOAL
        assert walk.rewards.sum() == -len(walk.rewards) - (0 if arrived else FAILURE)
        assert arrived or len(walk.rewards) == HORIZON
    share = sum(walk.actions[-1].item() == GOAL for walk in walks) / 200
    assert 0.1 < share < 0.4
    again = graph_walk.random_walks(200, seed=1)
    assert all(torch.equal(a.states, b.states) for a, b in zip(walks, again, strict=True))


def test_the_best_share_has_the_highest_returns() -> None:
    walks = [
        Walk(torch.tensor([n]), torch.tensor([n]), torch.tensor([float(n)])) for n in (3, 9, 1)
    ]
    best = return_conditioning.best(walks, 2 / 3)
    assert [return_conditioning.the_return(x) for x in best] == [9.0, 3.0]


def test_who_walks_as_wished_is_counted() -> None:
    """Two neighbours of O arrive in one step, the third stays away, and nobody else arrives."""
    start = {name: n for n, name in enumerate(NAMES) if n != GOAL}
    one = ["A" for _ in start]
    for name, way in {"J": "JO", "S": "SO", "T": "TST"}.items():
        one[list(start).index(name)] = way
    assert return_conditioning.as_wished([one])[0] == [2, 3]
    assert return_conditioning.arrived(one) == 2


def test_a_careless_script_falls_early() -> None:
    episodes = return_conditioning.scripted_episodes(20, seed=0)
    returns = [return_conditioning.the_return(x) for x in episodes]
    assert min(returns) < 30 < 60 < max(returns) <= return_conditioning.LIMIT
    assert all(len(x.states) == len(x.actions) == y for x, y in zip(episodes, returns, strict=True))


@torch.no_grad()
def test_the_cart_model_acts() -> None:
    model = return_conditioning.cart_model(asks=True)
    pick = return_conditioning.drawn_with(torch.Generator().manual_seed(0))
    walks = act(model, [return_conditioning.cart()], [20.0], return_conditioning.CART_K, pick)
    assert 5 < walks[0].rewards.sum() <= return_conditioning.LIMIT
