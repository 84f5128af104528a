"""Write a row of symbols backwards: what one fixed vector loses, and where attention then looks.

    python -m tfviz_lab reverse_copy     trains again and rewrites the stored result

A bidirectional GRU reads the row, a GRU writes it in reverse. The writer sees either one vector
made from the whole row (Cho et al. 2014, Sutskever et al. 2014) or, through additive attention, a
fresh blend of the reader's notes for each symbol (Bahdanau et al. 2014).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from tfviz import _arguments
from tfviz.basics.additive_attention import AdditiveAttention
from tfviz.training import seeded
from tfviz.training import train as train_model
from tfviz_lab.runner import Done, Run, main

SYMBOLS, WIDTH, BATCH, STEPS, RATE = 8, 32, 64, 200, 1e-2


class Writer(nn.Module):
    """Reader and writer in one. Three switches:

    attends      a fresh context for each symbol, or the reader's two final states throughout
    state_too    the output layer sees (state, context), as in translation, or the context alone
    neighbours   a note is a state of the recurrent reader, so that it knows the symbols around it,
                 or the embedding of one symbol and its position
    """

    def __init__(
        self, attends: bool = True, state_too: bool = True, neighbours: bool = True
    ) -> None:
        super().__init__()
        self.attends, self.state_too, self.neighbours = attends, state_too, neighbours
        self.symbol = nn.Embedding(SYMBOLS + 1, WIDTH // 2)  # the last one means "begin"
        if not neighbours:
            self.single = nn.Embedding(SYMBOLS, 2 * WIDTH)
            self.position = nn.Embedding(64, 2 * WIDTH)
        self.reader = nn.GRU(WIDTH // 2, WIDTH, bidirectional=True, batch_first=True)
        self.start = nn.Linear(WIDTH, WIDTH)
        self.attention = AdditiveAttention(WIDTH, 2 * WIDTH, WIDTH)
        self.cell = nn.GRUCell(WIDTH // 2 + 2 * WIDTH, WIDTH)
        self.logits = nn.Linear(2 * WIDTH + WIDTH * state_too, SYMBOLS)

    def forward(
        self, source: Int[Tensor, "b L"], target: Int[Tensor, "b L"]
    ) -> tuple[Float[Tensor, "b L symbols"], Float[Tensor, "b L L"]]:
        """(logits, alignment); `target` is fed back one step late, as in training a translator."""
        H, _ = self.reader(self.symbol(source))  # (b, L, 2·width)
        ends = torch.cat([H[:, -1, :WIDTH], H[:, 0, WIDTH:]], -1)
        if not self.neighbours:
            H = self.single(source) + self.position.weight[: source.shape[1]]
        state = torch.tanh(self.start(H[:, 0, WIDTH:]))
        before = torch.full_like(source[:, 0], SYMBOLS)
        logits, rows = [], []
        for i in range(source.shape[1]):
            if self.attends:
                contexts, alpha = self.attention(state.unsqueeze(1), H)
                context, row = contexts[:, 0], alpha[:, 0]
            else:
                context, row = ends, torch.zeros_like(H[..., 0])
            state = self.cell(torch.cat([self.symbol(before), context], -1), state)
            seen = torch.cat([context, state], -1) if self.state_too else context
            logits.append(self.logits(seen))
            rows.append(row)
            before = target[:, i]
        return torch.stack(logits, 1), torch.stack(rows, 1)


def train(
    length: int,
    steps: int = STEPS,
    seed: int = 0,
    attends: bool = True,
    state_too: bool = True,
    neighbours: bool = True,
) -> tuple[Writer, float]:
    """(the trained model, fraction of right symbols in 1 024 new rows). Every batch is new."""
    _arguments.integer("length", length, 1)
    _arguments.integer("steps", steps, 0)
    model, rows, fresh = seeded(
        seed,
        lambda: (
            Writer(attends, state_too, neighbours),
            torch.randint(SYMBOLS, (steps, BATCH, length)),
            torch.randint(SYMBOLS, (1024, length)),
        ),
    )

    def loss(model: Writer, rng: Generator, step: int) -> Tensor:
        source, target = rows[step], rows[step].flip(1)
        return F.cross_entropy(model(source, target)[0].flatten(0, 1), target.flatten())

    train_model(
        *(model, loss, steps),
        lr=RATE,
        weight_decay=0.0,
        schedule=lambda step, steps: 1.0,
        progress=False,
    )
    with torch.no_grad():
        logits, _ = model(fresh, fresh.flip(1))
    return model, (logits.argmax(-1) == fresh.flip(1)).float().mean().item()


def looked_at(
    seed: int, state_too: bool, neighbours: bool = True, length: int = 8
) -> dict[str, Any]:
    """Where a trained writer looks, on 1 024 new rows.

    map: mean alignment (L, L); now: its mean weight on the symbol being written, j = L−1−i;
    before: on the symbol just written, j = L−i.
    """
    model, right = train(length, seed=seed, state_too=state_too, neighbours=neighbours)
    rng = torch.Generator().manual_seed(seed + 1000)
    rows = torch.randint(SYMBOLS, (1024, length), generator=rng)
    with torch.no_grad():
        alignment = model(rows, rows.flip(1))[1].mean(0)
    mirrored = alignment.flip(-1)  # the anti-diagonal becomes the diagonal
    return {
        "accuracy": right,
        "now": mirrored.diagonal().mean().item(),
        "before": mirrored.diagonal(-1).mean().item(),
        "map": [[round(w, 4) for w in row] for row in alignment.tolist()],
    }


LENGTHS, SEEDS = (4, 8, 12, 16, 24), (0, 1, 2)
WRITERS = {"one fixed vector": False, "additive attention": True}
LOOKS: dict[str, dict[str, Any]] = {
    "context alone": {"state_too": False},
    "state and context": {"state_too": True},
    "state and context, notes on single symbols": {"state_too": True, "neighbours": False},
}


def runs() -> list[Run]:
    """How well both writers do at every length, and where attention looks in three cases."""
    return [
        Run(f"{name}, {L} symbols", {"writer": name, "length": L, "steps": STEPS}, seed)
        for name in WRITERS
        for L in LENGTHS
        for seed in SEEDS
    ] + [
        Run(f"look: {name}", {"look": name, "steps": STEPS}, seed)
        for name in LOOKS
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    if "look" in config:
        return looked_at(seed, **LOOKS[config["look"]])
    _, right = train(config["length"], config["steps"], seed, attends=WRITERS[config["writer"]])
    return {"accuracy": right}


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By writer a row for each seed with the lengths in order; by case what each seed looked at."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    return {
        "lengths": list(LENGTHS),
        "accuracy": {
            name: [
                [found[f"{name}, {L} symbols", seed]["accuracy"] for L in LENGTHS] for seed in SEEDS
            ]
            for name in WRITERS
        },
        "looked_at": {name: [found[f"look: {name}", seed] for seed in SEEDS] for name in LOOKS},
        "settings": {"symbols": SYMBOLS, "width": WIDTH, "batch": BATCH, "rate": RATE},
    }


if __name__ == "__main__":
    sys.exit(main(["reverse_copy"]))
