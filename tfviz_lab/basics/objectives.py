"""What the games teach: bits for each scored character, what a missing mask does, and reversal.

    python -m tfviz_lab objectives      trains again and rewrites the stored result

Three parts. *objective*: GPT, BERT and T5 on Python's help texts, and a GPT that is scored on as
few characters as BERT. *mask*: the same GPT with and without its mask. *reversal*: an
encoder–decoder writes a row of symbols backwards; where its cross-attention looks, and what is left
if the encoder knows no positions or is not read at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor, nn

from tfviz import data, patterns
from tfviz.basics.causal_masking import one_by_one, one_pass, shift_right, token_losses
from tfviz.basics.encoder_decoder import three_maps, write
from tfviz.basics.lm_objectives import drop_spans, hide, random_spans, scored_loss
from tfviz.models.bert import BERT
from tfviz.models.blocks import pre_norm
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.training import Loss, mean_loss, seeded, train
from tfviz_lab.runner import Done, Run

D, HEADS, LAYERS, LENGTH, BATCH, RATE = 64, 4, 2, 64, 16, 3e-3
SEEDS = (0, 1, 2)
STEPS, LEAK_STEPS, REVERSAL_STEPS = 800, 600, 400
AT = (0, 25, 50, 100, 200, 400, 600)  # … and at the end: when the held-out text is asked
BIT = 0.6931471805599453  # nats

# --- the three games, and one with fewer scores --------------------------------------------------

IDS, ALPHABET = data.characters()
V = len(ALPHABET)  # then come: begin, and the mask or the sentinels
BEGIN, MASK, SENTINELS = V, V, [V + n for n in range(12)]
TRAINING, HELD_OUT = data.split(IDS)

Game = Callable[[nn.Module, Int[Tensor, "b L"], Generator, bool], Tensor]
"""game(model, z, rng, judging) -> nats per scored token; per scored *character* when judging."""


def gpt(model: nn.Module, z: Tensor, rng: Generator, judging: bool, share: float = 1.0) -> Tensor:
    scored = None
    if share < 1 and not judging:
        scored = hide(z, V, 0, rng, share)[1]  # as many as BERT's, at random
    return scored_loss(model(shift_right(z, BEGIN)), z, scored)


def bert(model: nn.Module, z: Tensor, rng: Generator, judging: bool) -> Tensor:
    hidden, scored = hide(z, V, MASK, rng)
    return scored_loss(model(hidden), z, scored)


def t5(model: nn.Module, z: Tensor, rng: Generator, judging: bool) -> Tensor:
    pairs = [drop_spans(row, random_spans(len(row), rng), SENTINELS) for row in z.tolist()]
    inputs, targets = (torch.tensor(rows) for rows in zip(*pairs, strict=True))
    logits = model(inputs, shift_right(targets, SENTINELS[-1]))  # the last one begins
    return scored_loss(logits, targets, targets < V if judging else None)


def small_gpt(**more: Any) -> GPT:
    return GPT(V + 1, D, HEADS, LAYERS, positions=Sinusoidal(D, scale=0.1), **more)


def small_bert() -> BERT:
    return BERT(V + 1, D, HEADS, LAYERS, positions=Sinusoidal(D, scale=0.1), order=pre_norm)


def small_t5() -> EncoderDecoder:
    return EncoderDecoder(
        V + 12, D, HEADS, LAYERS, positions=Sinusoidal(D), order=pre_norm, phi=nn.GELU
    )


OBJECTIVES: dict[str, tuple[Callable[[], nn.Module], Game]] = {
    "GPT": (small_gpt, gpt),
    "GPT, 15 % scored": (small_gpt, partial(gpt, share=0.15)),
    "BERT": (small_bert, bert),
    "T5": (small_t5, t5),
}


def on_text(game: Game, ids: Tensor, judging: bool) -> Loss:
    """The game as a loss on random windows."""

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        return game(model, data.windows(ids, BATCH, LENGTH, rng)[0], rng, judging)

    return loss


def objective(name: str, steps: int, seed: int) -> dict[str, Any]:
    """bits: held-out bits per scored character at the steps `at`."""
    make, game = OBJECTIVES[name]
    model, asked = seeded(seed, make), dict[int, float]()
    learn, judge = on_text(game, TRAINING, False), on_text(game, HELD_OUT, True)

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        if step in AT:
            asked[step] = mean_loss(model, judge, 16) / BIT
        return learn(model, rng, step)

    train(model, loss, steps, lr=RATE, seed=seed, progress=False)
    asked[steps] = mean_loss(model, judge, 16) / BIT
    return {
        "at": list(asked),
        "bits": [round(x, 4) for x in asked.values()],
        "parameters": sum(p.numel() for p in model.parameters()),
    }


# --- without the mask ----------------------------------------------------------------------------

MASKS = {"causal mask": patterns.causal(), "no mask": patterns.full()}


def continued(model: nn.Module, words: str, count: int, seed: int) -> str:
    """`words` and `count` characters more, each drawn from the model's probabilities."""
    rng = Generator().manual_seed(seed)
    t = torch.cat([torch.tensor([BEGIN]), ALPHABET.encode(words)])[None]
    with torch.no_grad():
        for _ in range(count):  # without a cache: every pass sees all that is written so far
            p = model(t)[:, -1, :V].softmax(-1)
            t = torch.cat([t, torch.multinomial(p, 1, generator=rng)], 1)
    return ALPHABET.decode(t[0, 1:])


def leak(mask: str, steps: int, seed: int) -> dict[str, Any]:
    """training: bits by step; one_pass, one_by_one: bits on the same held-out rows."""
    model = seeded(seed, lambda: small_gpt(pattern=MASKS[mask]))
    losses = train(model, on_text(gpt, TRAINING, False), steps, lr=RATE, seed=seed)
    z, _ = data.windows(HELD_OUT, BATCH, LENGTH, Generator().manual_seed(1))
    with torch.no_grad():
        both = {f.__name__: f(model, z, BEGIN) / BIT for f in (one_pass, one_by_one)}
    blocks = torch.tensor(losses).unflatten(0, (-1, 10)).mean(1) / BIT
    return {
        "training": [round(x, 4) for x in blocks.tolist()],
        **{name: round(bits.mean().item(), 4) for name, bits in both.items()},
        "last": round(both["one_pass"][:, -1].mean().item(), 4),
        "text": continued(model, "The value of ", 50, seed),
    }


# --- reversal ------------------------------------------------------------------------------------

SYMBOLS, ROW = 8, 10
START = SYMBOLS  # the token that means "begin"


class Unplaced(EncoderDecoder):
    """The encoder is told what the symbols are, not where they stand."""

    def encode(self, s: Tensor, attention_mask: Any = None) -> Tensor:
        return self.encoder(
            self.embed.scale * F.embedding(s, self.embed.weight), None, attention_mask
        )


class Unread(EncoderDecoder):
    """The encoder's notes are blank: a language model of the target alone."""

    def encode(self, s: Tensor, attention_mask: Any = None) -> Tensor:
        return 0 * super().encode(s, attention_mask)


SOURCES: dict[str, type[EncoderDecoder]] = {
    "source with positions": EncoderDecoder,
    "source without positions": Unplaced,
    "source not read": Unread,
}


def reversal_loss(model: EncoderDecoder, rng: Generator, step: int) -> Tensor:
    """Nats per symbol of the row backwards, by teacher forcing."""
    s, z = data.reversal(32, ROW, SYMBOLS, rng)
    return token_losses(model(s, shift_right(z, START)), z).mean()


def reverser(
    steps: int = REVERSAL_STEPS, seed: int = 0, kind: type[EncoderDecoder] = EncoderDecoder
) -> EncoderDecoder:
    """A trained model of one layer in each stack that writes ten symbols backwards."""
    model = seeded(
        seed, lambda: kind(SYMBOLS + 1, D, HEADS, 1, positions=Sinusoidal(D), order=pre_norm)
    )
    train(model, reversal_loss, steps, lr=5e-3, seed=seed, progress=False)
    return model


def reversal(source: str, steps: int, seed: int) -> dict[str, Any]:
    """right: share of right symbols in 1 024 new rows written one by one; by_place: the same where
    the true past is given, for each place; map: mean cross-attention of each head (h, L, L)."""
    model = reverser(steps, seed, SOURCES[source])
    s, z = data.reversal(1024, ROW, SYMBOLS, Generator().manual_seed(seed + 1000))
    with torch.no_grad():
        right = model(s, shift_right(z, START)).argmax(-1) == z
    maps = three_maps(model, s, shift_right(z, START))["cross"][-1].mean(0)
    return {
        "right": round((write(model, s, ROW, START) == z).float().mean().item(), 4),
        "by_place": [round(x, 4) for x in right.float().mean(0).tolist()],
        "map": [[[round(a, 3) for a in row] for row in head] for head in maps.tolist()],
    }


def best_from_the_bag(rows: int = 20_000) -> list[float]:
    """Share of right symbols at each place for who knows which symbols the row has, and those
    already written, but no order: the likeliest of what remains."""
    _, z = data.reversal(rows, ROW, SYMBOLS, Generator().manual_seed(0))
    left = F.one_hot(z, SYMBOLS).flip(1).cumsum(1).flip(1)  # (rows, place, symbol): still to come
    return (left.amax(-1) / left.sum(-1)).mean(0).tolist()


# --- the experiment ------------------------------------------------------------------------------


def runs() -> list[Run]:
    """Every part with three seeds."""
    parts: dict[str, tuple[Sequence[str], int]] = {
        "objective": (list(OBJECTIVES), STEPS),
        "mask": (list(MASKS), LEAK_STEPS),
        "reversal": (list(SOURCES), REVERSAL_STEPS),
    }
    return [
        Run(f"{part}: {name}", {"part": part, "name": name, "steps": steps}, seed)
        for part, (names, steps) in parts.items()
        for name in names
        for seed in SEEDS
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    part = {"objective": objective, "mask": leak, "reversal": reversal}[config["part"]]
    return part(config["name"], config["steps"], seed)


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """part → name → one result for each seed."""
    found = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}

    def part(kind: str, names: Sequence[str]) -> dict[str, list[Any]]:
        return {name: [found[f"{kind}: {name}", seed] for seed in SEEDS] for name in names}

    return {
        "objective": part("objective", list(OBJECTIVES)),
        "mask": part("mask", list(MASKS)),
        "reversal": part("reversal", list(SOURCES)),
        "scored": {"GPT": LENGTH, "GPT, 15 % scored": 10, "BERT": 10, "T5": 10},
        "bag": [round(x, 4) for x in best_from_the_bag()],
        "settings": {
            **{"d": D, "heads": HEADS, "layers": LAYERS, "length": LENGTH, "batch": BATCH},
            **{"rate": RATE, "vocab": V, "symbols": SYMBOLS, "row": ROW},
            **{"steps": {"objective": STEPS, "mask": LEAK_STEPS, "reversal": REVERSAL_STEPS}},
        },
    }
