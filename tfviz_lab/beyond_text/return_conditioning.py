"""A Decision Transformer is asked for a return: what does it achieve, and what does cloning?

    python -m tfviz_lab return_conditioning    → results/return_conditioning.json

graph      learns from WALKS random walks on a graph of 20 places (`graph_walk`), then begins in
           each. "asked" is told the return that is wanted, and the likeliest action is taken;
           "cloning" is the same GPT without returns, "best tenth" clones the best tenth of the
           walks. "one step" sees the last step alone. In "no penalty" a walk that fails has the
           same return as one that arrives in its last step
cart       Gymnasium's CartPole-v1, cut off after LIMIT steps: 1 for each step that the pole stands.
           Learns from EPISODES of a script that pushes to the side to which the pole falls, and
           at random with a chance that each episode draws from CARELESS. Actions are drawn from
           what the model says, TRIES times for each wish; cloning has none
shown      what the chapter's explorer shows, of seed 0: for each start and wish the places of the
           walk, of "asked" and of "cloning"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import torch
from torch import Generator, Tensor, nn

from tfviz.beyond_text.decision_transformer import (
    DecisionTransformer,
    Walk,
    act,
    action_loss,
    graph_walker,
)
from tfviz.models.use import greedy
from tfviz.training import seeded, train
from tfviz_lab.beyond_text import graph_walk
from tfviz_lab.beyond_text.graph_walk import FAILURE, GOAL, HORIZON, NAMES, STARTS, GraphWalk
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "gymnasium", "numpy"]
SEEDS, STEPS, RATE, BATCH = (0, 1, 2), 800, 3e-3, 64
WIDTH, HEADS, LAYERS = 32, 2, 2

WALKS, GRAPH_K, GRAPH_SCALE, DRAWN = 10_000, 4, 2.0, 20
GRAPH: dict[str, dict[str, Any]] = {
    "asked": {"K": GRAPH_K},
    "one step": {"K": 1},
    "no penalty": {"K": GRAPH_K, "failure": 0.0},
    "cloning": {"K": GRAPH_K, "asks": False},
    "best tenth": {"K": GRAPH_K, "asks": False, "share": 0.1},
}
GRAPH_WISHES = [-float(n) for n in range(1, HORIZON + 1)]

LIMIT, EPISODES, CARELESS = 200, 300, (0.6, 1.0)
CART_STEPS, CART_K, CART_SCALE, TRIES = 300, 10, 50.0, 10
CART: dict[str, dict[str, Any]] = {"asked": {}, "cloning": {"asks": False}}
CART_WISHES = [20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0, 200.0, 300.0]


def the_return(walk: Walk) -> float:
    return walk.rewards.sum().item()


def best(walks: Sequence[Walk], share: float) -> list[Walk]:
    """This share of the walks, those with the highest returns."""
    return sorted(walks, key=the_return, reverse=True)[: round(share * len(walks))]


def drawn_with(rng: Generator) -> Callable[[Tensor], Tensor]:
    return lambda logits: torch.multinomial(logits.softmax(-1), 1, generator=rng)[:, 0]


# --- the graph ------------------------------------------------------------------------------------


def places(walk: Walk, end: int) -> str:
    """The letters of the places that it was at."""
    return "".join(NAMES[n] for n in [*walk.states.tolist(), end])


def on_the_graph(variant: dict[str, Any], seed: int, steps: int) -> dict[str, Any]:
    """Walks by wish, for each start; steps needed from each start that arrived, asked its best."""
    K, asks, failure = variant["K"], variant.get("asks", True), variant.get("failure", FAILURE)
    walks = graph_walk.random_walks(WALKS, seed, failure)
    learnt = best(walks, variant.get("share", 1.0))
    sizes: dict[str, Any] = {
        "d": WIDTH,
        "h": HEADS,
        "N": LAYERS,
        "horizon": HORIZON,
        "scale": GRAPH_SCALE,
    }
    model = seeded(seed, lambda: graph_walker(len(NAMES), **sizes, asks=asks))
    train(model, action_loss(learnt, K, BATCH), steps, lr=RATE, seed=seed, progress=False)
    pick = drawn_with(Generator().manual_seed(seed))

    def walked(wishes: list[float], pick: Callable[[Tensor], Tensor] = greedy) -> list[str]:
        worlds = [GraphWalk(start, failure) for start in STARTS]
        found = act(model, worlds, wishes, K, pick)
        return [places(walk, world.place) for walk, world in zip(found, worlds, strict=True)]

    found: dict[str, Any] = {
        "best": walked([-float(graph_walk.distances()[start]) for start in STARTS]),
        "arrived in the data": sum(x.actions[-1].item() == GOAL for x in walks) / WALKS,
    }
    if asks:
        found["walks"] = [walked([wish] * len(STARTS)) for wish in GRAPH_WISHES]
    else:
        drawn = [walked([0.0] * len(STARTS), pick) for _ in range(DRAWN)]
        found["drawn"] = sum(walk[-1] == NAMES[GOAL] for x in drawn for walk in x) / (
            DRAWN * len(STARTS)
        )
    return found


# --- the cart -------------------------------------------------------------------------------------


def cart() -> Any:
    return gymnasium.make("CartPole-v1", max_episode_steps=LIMIT)


def scripted_episodes(count: int, seed: int) -> list[Walk]:
    """Push to the side to which the pole falls, with an angle in radians and a speed; or at random,
    with a chance that is drawn for each episode."""
    rng, world, episodes = Generator().manual_seed(seed), cart(), []
    low, high = CARELESS
    for n in range(count):
        careless = low + (high - low) * torch.rand((), generator=rng).item()
        state, over = world.reset(seed=1000 * seed + n)[0], False
        states, actions, rewards = list[Tensor](), list[int](), list[float]()
        while not over:
            at_random, coin = torch.rand(2, generator=rng).tolist()
            falls = state[2] + 0.3 * state[3] > 0
            states.append(torch.as_tensor(state))
            actions.append(int(coin < 0.5 if at_random < careless else falls))
            state, reward, fell, cut, _ = world.step(actions[-1])
            rewards.append(float(reward))
            over = fell or cut
        episodes.append(Walk(torch.stack(states), torch.tensor(actions), torch.tensor(rewards)))
    return episodes


def cart_model(asks: bool) -> DecisionTransformer:
    embed = nn.Linear(4, WIDTH), nn.Embedding(2, WIDTH)
    sizes: dict[str, Any] = {
        "d": WIDTH,
        "h": HEADS,
        "N": LAYERS,
        "horizon": LIMIT,
        "scale": CART_SCALE,
    }
    return DecisionTransformer(*embed, nn.Linear(WIDTH, 2), **sizes, asks=asks)


def on_the_cart(variant: dict[str, Any], seed: int, steps: int) -> dict[str, Any]:
    """The mean return for each wish, and quantiles of those in the data."""
    episodes, asks = scripted_episodes(EPISODES, seed), variant.get("asks", True)
    model = seeded(seed, lambda: cart_model(asks))
    loss = action_loss(episodes, CART_K, BATCH)
    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    wishes = [wish for wish in (CART_WISHES if asks else [0.0]) for _ in range(TRIES)]
    pick = drawn_with(Generator().manual_seed(seed))
    walks = act(model, [cart() for _ in wishes], wishes, CART_K, pick, seed=10**6 + 1000 * seed)
    achieved = torch.tensor([the_return(walk) for walk in walks]).view(-1, TRIES)
    data = torch.tensor([the_return(walk) for walk in episodes])
    return {
        "achieved": [round(x, 2) for x in achieved.mean(1).tolist()],
        "data": data.quantile(torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0])).tolist(),
        "mean of the data": round(data.mean().item(), 2),
    }


# --- all runs -------------------------------------------------------------------------------------


def runs() -> list[Run]:
    graph = [("graph", name, STEPS) for name in GRAPH]
    carts = [("cart", name, CART_STEPS) for name in CART]
    return [
        Run(f"{task} {name}", {"task": task, "variant": name, "steps": steps}, seed)
        for task, name, steps in graph + carts
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if config["task"] == "graph":
        return on_the_graph(GRAPH[config["variant"]], seed, config["steps"])
    return on_the_cart(CART[config["variant"]], seed, config["steps"])


def arrived(walks: Sequence[str]) -> int:
    return sum(walk[-1] == NAMES[GOAL] for walk in walks)


def as_wished(walks: Sequence[Sequence[str]]) -> list[list[int]]:
    """For each wish: from how many starts the goal is reached in as many steps, and from how many
    it could be, in as many or fewer."""
    away = graph_walk.distances()
    return [
        [
            sum(walk[-1] == NAMES[GOAL] and len(walk) - 1 == wish for walk in row),
            sum(away[start] <= wish for start in STARTS),
        ]
        for wish, row in enumerate(walks, 1)
    ]


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By variant, one of each for every seed."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    away = graph_walk.distances()

    def each(name: str, of: Callable[[dict[str, Any]], Any]) -> list[Any]:
        return [of(found[name, seed]) for seed in SEEDS]

    def shortest(result: dict[str, Any]) -> int:
        pairs = zip(STARTS, result["best"], strict=True)
        return sum(walk[-1] == NAMES[GOAL] and len(walk) - 1 == away[n] for n, walk in pairs)

    graph: dict[str, Any] = {}
    for name, variant in GRAPH.items():
        graph[name] = {
            "shortest": each(f"graph {name}", shortest),
            "arrived": each(f"graph {name}", lambda x: arrived(x["best"])),
        }
        if variant.get("asks", True):
            graph[name]["as wished"] = each(f"graph {name}", lambda x: as_wished(x["walks"]))
        else:
            graph[name]["drawn"] = each(f"graph {name}", lambda x: x["drawn"])
    return {
        "starts": len(STARTS),
        "steps": STEPS,
        "arrived in the data": each("graph asked", lambda x: x["arrived in the data"]),
        "graph": graph,
        "cart": {name: each(f"cart {name}", lambda x: x["achieved"]) for name in CART},
        "cart data": each("cart asked", lambda x: x["data"]),
        "mean of the data": each("cart asked", lambda x: x["mean of the data"]),
        "wishes": CART_WISHES,
        "shown": {
            "places": [list(place) for place in graph_walk.PLACES],
            "paths": [list(path) for path in graph_walk.paths()],
            "goal": GOAL,
            "away": away,
            "walks": found["graph asked", 0]["walks"],
            "cloned": found["graph cloning", 0]["best"],
        },
    }
