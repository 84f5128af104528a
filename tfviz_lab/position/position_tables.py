"""What tables of positions learn: their geometry, how they begin, and whether a head uses rotation.

    python -m tfviz_lab position_tables     trains again and rewrites the stored result

Two tasks. *Text*: a small GPT on 64 characters with sinusoids, with tables that begin as noise or
as sinusoids, at the input or in every layer; kept are the losses and the cosines of the rows.
*Look back*: one head, random symbols, and the answer at every place is the symbol five places
before; kept is how fast it learns, and at which places it is right on longer input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz import _arguments, data
from tfviz.models.gpt import GPT
from tfviz.position.learned_pe import Learned, cosines, positions_in_every_layer
from tfviz.position.sinusoidal_pe import Sinusoidal, sinusoids
from tfviz.training import Loss, mean_loss, next_token, seeded, train
from tfviz_lab.runner import Done, Run

WIDTH, HEADS, LAYERS, LENGTH, BATCH, SCALE = 64, 4, 2, 64, 32, 0.1
STEPS = {"text": 300, "look back": 400}
EVERY = {"text": 20, "look back": 10}
SYMBOLS, BACK, LONGER, FARTHEST = 32, 5, 128, 448
SEEDS = (0, 1, 2)


class WanderingStart(nn.Module):
    """In training the first place of a batch is drawn from 0 … farthest; afterwards it is 0."""

    def __init__(self, positions: nn.Module, farthest: int) -> None:
        super().__init__()
        self.positions, self.farthest = positions, _arguments.integer("farthest", farthest, 0)

    def forward(self, i: Int[Tensor, "L"]) -> Float[Tensor, "L d"]:
        first = int(torch.randint(self.farthest + 1, ())) if self.training else 0
        rows: Tensor = self.positions(i + first)
        return rows


def as_sinusoids() -> Learned:
    return Learned.beginning_as(SCALE * sinusoids(torch.arange(LENGTH), WIDTH))


def fixed() -> Sinusoidal:
    return Sinusoidal(WIDTH, scale=SCALE)


POSITIONS: dict[str, Callable[[], nn.Module | None]] = {
    "no positions": lambda: None,
    "sinusoids, fixed": fixed,
    "table, begins as noise": lambda: Learned(LENGTH, WIDTH),
    "table, begins as larger noise": lambda: Learned(LENGTH, WIDTH, std=SCALE / 2**0.5),
    "table, begins as sinusoids": as_sinusoids,
    "a table in every layer": lambda: None,
    "sinusoids, any start": lambda: WanderingStart(fixed(), FARTHEST),
}
TEXT = (
    *("no positions", "sinusoids, fixed", "table, begins as noise"),
    *("table, begins as larger noise", "table, begins as sinusoids", "a table in every layer"),
)
BACKWARDS = (
    *("sinusoids, fixed", "table, begins as noise", "table, begins as sinusoids"),
    "sinusoids, any start",
)


def model_of(positions: str, vocab: int, heads: int, layers: int, seed: int) -> GPT:
    def make() -> GPT:
        model = GPT(vocab, WIDTH, heads, layers, positions=POSITIONS[positions]())
        if positions == "a table in every layer":
            positions_in_every_layer(model.stack, lambda: Learned(LENGTH, WIDTH))
        return model

    return seeded(seed, make)


def look_back(back: int = BACK, b: int = BATCH, L: int = LENGTH) -> Loss:
    """Nats per symbol: at place i say which symbol stood at i − back."""

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        x = torch.randint(SYMBOLS, (b, L), generator=rng)
        return F.cross_entropy(model(x)[:, back:].flatten(0, 1), x[:, :-back].flatten())

    return loss


@torch.no_grad()
def right_at(model: nn.Module, back: int = BACK, L: int = LONGER, seed: int = 1) -> list[float]:
    """The share of right answers at the places back … L − 1, on 256 new rows."""
    x = torch.randint(SYMBOLS, (256, L), generator=Generator().manual_seed(seed))
    model.eval()
    answers = model(x)[:, back:].argmax(-1)
    return [round(a, 4) for a in (answers == x[:, :-back]).float().mean(0).tolist()]


def probe(
    P: Float[Tensor, "L d"], known: Int[Tensor, "n"], asked: Int[Tensor, "m"]
) -> Float[Tensor, "m m"]:
    """i − j as a linear function of (p_i, p_j), fitted on the `known` places alone: its error, in
    places, for all pairs of the `asked` ones.

    A linear function of a pair is one of p_i plus one of p_j, and the best is w p_i − w p_j.
    """
    rows, middle = P[known].double(), known.double().mean()
    centre = rows.mean(0)
    w = torch.linalg.lstsq(rows - centre, (known - middle)[:, None], driver="gelsd").solution[:, 0]
    found = (P[asked].double() - centre) @ w
    return (found[:, None] - found) - (asked[:, None] - asked)


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    places, steps = config["places"], config["steps"]
    if config["task"] == "text":
        ids, alphabet = data.characters()
        training, held_out = data.split(ids)
        model = model_of(places, len(alphabet), HEADS, LAYERS, seed)
        losses = train(model, next_token(training, BATCH, LENGTH), steps, seed=seed)
        result: dict[str, Any] = {
            "held_out": mean_loss(model, next_token(held_out, BATCH, LENGTH), 16)
        }
        tables = [x.P.data for x in model.modules() if isinstance(x, Learned)]
        every_table = [_rounded(cosines(P), 2) for P in tables]
        result["cosines"] = every_table[:1]
        result["by_distance"] = [_profile(C) for C in every_table]
        result["sizes"] = [P.square().mean().sqrt().item() for P in tables]
    else:
        model = model_of(places, SYMBOLS, 1, 1, seed)
        losses = train(model, look_back(), steps, seed=seed)
        table = isinstance(model.embed.positions, Learned)
        result = {"right": right_at(model, L=LENGTH if table else LONGER)}
    every = EVERY[config["task"]]
    means = torch.tensor(losses).unflatten(0, (-1, every)).mean(1)
    return result | {"losses": _rounded(means, 4)}


def _rounded(values: Tensor, digits: int) -> Any:
    return torch.round(values, decimals=digits).double().round(decimals=digits).tolist()


def runs() -> list[Run]:
    tasks = {"text": TEXT, "look back": BACKWARDS}
    return [
        Run(f"{task}: {places}", {"task": task, "places": places, "steps": STEPS[task]}, seed)
        for task, all_places in tasks.items()
        for places in all_places
        for seed in SEEDS
    ]


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By task and kind of places a row for each seed; `cosines` is the first noisy table's."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}

    def rows(task: str, kinds: Sequence[str], key: str) -> dict[str, list[Any]]:
        return {p: [found[f"{task}: {p}", seed][key] for seed in SEEDS] for p in kinds}

    with_tables = [p for p in TEXT if found[f"text: {p}", SEEDS[0]]["by_distance"]]
    return {
        "cosines": found["text: table, begins as noise", SEEDS[0]]["cosines"][0],
        "by_distance": rows("text", with_tables, "by_distance"),
        "sizes": rows("text", with_tables, "sizes"),
        "text": {key: rows("text", TEXT, key) for key in ("losses", "held_out")},
        "look_back": {key: rows("look back", BACKWARDS, key) for key in ("losses", "right")},
        "settings": {
            "width": WIDTH, "heads": HEADS, "layers": LAYERS, "length": LENGTH, "batch": BATCH,
            "scale": SCALE, "symbols": SYMBOLS, "back": BACK, "longer": LONGER,
            "farthest": FARTHEST, "steps": STEPS, "every": EVERY,
        },
    }  # fmt: skip


def _profile(C: list[list[float]]) -> list[float]:
    M = torch.tensor(C, dtype=torch.float64)
    return [round(M.diagonal(k).mean().item(), 3) for k in range(len(M))]
