"""A walk on a graph of 20 places, as a Gymnasium environment: reach O in as few steps as you can.

The state is a place, the action is the place to go to, and each step costs 1. Who names a place
without a path to it stays, and pays. A walk ends at the goal, or after HORIZON steps; if it has not
arrived by then, it pays `failure` more.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium
import torch
from torch import Generator

from tfviz.beyond_text.decision_transformer import Walk

NAMES = "ABCDEFGHIJKLMNOPQRST"
HORIZON, FAILURE = 10, 10.0
PLACES = [  # where they are drawn, four rows of five
    *((0.0, 0.0), (0.8, 0.0), (2.2, 0.0), (2.8, 0.2), (3.8, -0.1)),
    *((-0.1, 1.2), (1.0, 0.9), (1.9, 0.9), (2.9, 1.0), (4.0, 1.1)),
    *((0.0, 1.9), (1.0, 2.1), (1.7, 1.8), (3.1, 1.9), (3.7, 2.1)),
    *((-0.1, 2.9), (0.7, 2.8), (2.0, 2.8), (3.2, 2.8), (4.0, 3.1)),
]
PATHS = "AB AF AG BC BG BH CD DE DI EJ FG FK GM HI HM IN JO KL KP KQ LM LQ MN NR OS OT PQ QR RS ST"
GOAL = NAMES.index("O")
STARTS = [place for place in range(len(NAMES)) if place != GOAL]


def paths() -> list[tuple[int, int]]:
    """Both ends of each path."""
    return [(NAMES.index(path[0]), NAMES.index(path[1])) for path in PATHS.split()]


def neighbours() -> list[list[int]]:
    """Of each place, in order."""
    both = paths() + [(b, a) for a, b in paths()]
    return [sorted(b for a, b in both if a == place) for place in range(len(NAMES))]


def distances() -> list[int]:
    """Steps from each place to the goal."""
    found, queue, near = {GOAL: 0}, deque([GOAL]), neighbours()
    while queue:
        place = queue.popleft()
        for other in near[place]:
            if other not in found:
                found[other] = found[place] + 1
                queue.append(other)
    return [found[place] for place in range(len(NAMES))]


class GraphWalk(gymnasium.Env[int, int]):
    """Begins at `start`, or where reset(options={"start": …}) says."""

    observation_space = gymnasium.spaces.Discrete(len(NAMES))
    action_space = gymnasium.spaces.Discrete(len(NAMES))

    def __init__(self, start: int = 0, failure: float = FAILURE) -> None:
        self.start, self.failure, self.near = start, failure, neighbours()
        self.place, self.steps = start, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.steps = (options or {}).get("start", self.start), 0
        return self.place, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action in self.near[self.place]:
            self.place = int(action)
        self.steps += 1
        arrived, over = self.place == GOAL, self.steps >= HORIZON
        return self.place, -1.0 - self.failure * (over and not arrived), arrived, over, {}


def random_walks(count: int, seed: int, failure: float = FAILURE) -> list[Walk]:
    """From random places other than the goal, each step to a random neighbour."""
    rng, near = Generator().manual_seed(seed), neighbours()

    def draw(rows: list[int]) -> int:
        return rows[int(torch.randint(len(rows), (), generator=rng))]

    walks = []
    for _ in range(count):
        world = GraphWalk(draw(STARTS), failure)
        place, over = world.reset()[0], False
        states, actions, rewards = list[int](), list[int](), list[float]()
        while not over:
            states.append(place)
            actions.append(draw(near[place]))
            place, reward, arrived, cut, _ = world.step(actions[-1])
            rewards.append(reward)
            over = arrived or cut
        walks.append(Walk(torch.tensor(states), torch.tensor(actions), torch.tensor(rewards)))
    return walks
