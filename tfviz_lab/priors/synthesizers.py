"""What can scores that compare nothing not do? Synthesizers beside attention, on two tasks.

    python -m tfviz_lab synthesizers    → results/synthesizers.json

    which_digit   by the protocol. Places mean something: patch 5 is always the same part of an
                  image
    lookup        a text is PAIRS different letters, each with a digit, such as c3 a7 f1, and then
                  one of these letters without its digit, such as a: the answer is 7, wherever a7
                  stands. A pair is one token; the answer is one of DIGITS

The same small models and budget for all; errors are the share of wrong answers. Those of `lookup`
stand beside the share that is wrong if one always gives the digit that is most frequent in a text.
`shown` has what heads of three trained models see in a few texts of `lookup`, for the explorer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Generator, Tensor, nn

from tfviz.cores import Dense
from tfviz.models.gpt import GPT
from tfviz.models.use import attention_weights
from tfviz.patterns import Pattern, causal
from tfviz.position.learned_pe import Learned
from tfviz.priors.synthesizer import Synthesizer
from tfviz_lab import compare, protocol
from tfviz_lab.compare import HEADS, LAYERS, PATCHES, WIDTH, Task, trained
from tfviz_lab.protocol import WHICH_DIGIT, Exam, one_run
from tfviz_lab.runner import Done, Run

PACKAGES = ["torch", "numpy", "scikit-learn", "scipy"]
LETTERS, DIGITS, PAIRS = 16, 8, 12
LENGTH = PAIRS + 1
STEPS, BATCH, TESTED = 400, 32, 1000
PLACES = (8, 2, 5, 11)  # of what is asked for in the texts that are shown

made = partial(partial, Synthesizer, length=PATCHES)
VARIANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "content": lambda: {"core": Dense},
    "random": lambda: {"core": made(kind="random")},
    "factorized random": lambda: {"core": made(kind="factorized random")},
    "dense": lambda: {"core": made(kind="dense")},
    "factorized dense": lambda: {"core": made(kind="factorized dense")},
    "random and content": lambda: {"core": made(kind="random", content=True)},
}
IMAGES: dict[str, Callable[[], dict[str, Any]]] = {
    "full attention": lambda: {},
    "random": lambda: {"core": made(kind="random")},
    "dense": lambda: {"core": made(kind="dense")},
}


def texts(b: int, rng: Generator) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b"]]:
    """(tokens, answers): a pair is letter · DIGITS + digit, and the letter that is asked for comes
    behind all pairs."""
    letters = torch.rand(b, LETTERS, generator=rng).argsort(-1)[:, :PAIRS]
    digits = torch.randint(DIGITS, (b, PAIRS), generator=rng)
    place = torch.randint(PAIRS, (b, 1), generator=rng)
    asked = LETTERS * DIGITS + letters.gather(1, place)
    return torch.cat([letters * DIGITS + digits, asked], 1), digits.gather(1, place)[:, 0]


def model(pattern: Sequence[Pattern] = LAYERS * (causal(),), **told: Any) -> GPT:
    positions = Learned(LENGTH, WIDTH)
    vocab = LETTERS * (DIGITS + 1)
    layers: dict[str, Any] = {"layer": lambda n: {"pattern": pattern[n]}, "positions": positions}
    return GPT(vocab, WIDTH, HEADS, LAYERS, **layers, **told)


def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
    tokens, answers = texts(BATCH, rng)
    return F.cross_entropy(model(tokens)[:, -1], answers)


def most_frequent() -> float:
    """Errors of who answers the digit that is most frequent in the text."""
    tokens, answers = texts(TESTED, Generator().manual_seed(1))
    counts = F.one_hot(tokens[:, :-1] % DIGITS, DIGITS).sum(1)
    return round((counts.argmax(-1) != answers).double().mean().item(), 4)


@torch.no_grad()
def errors(model: nn.Module) -> float:
    """The share of wrong answers among the digits."""
    tokens, answers = texts(TESTED, Generator().manual_seed(1))
    right = model(tokens)[:, -1, :DIGITS].argmax(-1) == answers
    return round(1 - right.float().mean().item(), 4)


LOOKUP = Task(
    name="lookup",
    unit="errors per text",
    steps=STEPS,
    model=model,
    loss=lambda seed, steps: loss,
    score=errors,
    inputs=lambda rng: texts(2, rng)[0],
)


# --- what is shown --------------------------------------------------------------------------------


def entered(model: Any, layer: int, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys of a layer, (b, h, L, d_head)."""
    attend, seen = model.stack.blocks[layer].attend, list[Tensor]()
    hook = attend.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(tokens)
    hook.remove()
    Q, K, _ = attend.project(seen[0], None)
    return Q, K


@torch.no_grad()
def shown(seed: int) -> dict[str, Any]:
    """The head of content whose last query sees best what is asked for, in the text where it sees
    it best for each of PLACES; of the synthesizers the head that gives most to one place."""
    many, _ = texts(200, Generator().manual_seed(3))
    place = (many[:, :-1] // DIGITS == many[:, -1:] - LETTERS * DIGITS).long().argmax(1)
    heads = dict[str, tuple[Any, int, int]]()
    for name in ("content", "random", "dense"):
        with torch.enable_grad():
            found, _ = trained(VARIANTS[name], LOOKUP, seed)
        maps = torch.stack([*attention_weights(found.eval(), many).values()])  # (N, b, h, L, L)
        last = maps[:, :, :, -1].expand(LAYERS, len(many), -1, -1)
        hit = last.gather(-1, place[None, :, None, None].expand(LAYERS, -1, HEADS, 1))[..., 0]
        most = (hit if name == "content" else last.amax(-1)).mean(1)  # (N, h)
        layer, head = divmod(int(most.argmax()), HEADS)
        heads[name] = found, layer, head
        if name == "content":
            sees = hit[layer, :, head]
            best = [int(sees.where(place == n, 0.0).argmax()) for n in PLACES]
    few = many[best]
    (content, layer, head), (dense, above, guesser) = heads["content"], heads["dense"]
    Q, K = (x[:, head] for x in entered(content, layer, few))
    guess = entered(dense, above, few)[0][:, guesser]
    table, where, row = heads["random"]
    R = table.stack.blocks[where].attend.core.R[row, :LENGTH, :LENGTH]
    W = dense.stack.blocks[above].attend.core.W[:, :LENGTH]
    every = {"Q": Q, "K": K, "guess": guess, "R": R, "W": W}
    return {
        "tokens": few.tolist(),
        "place": place[best].tolist(),
        **{name: _rounded(x) for name, x in every.items()},
    }


def _rounded(x: Tensor) -> Any:
    return [_rounded(row) for row in x] if x.dim() else round(x.item(), 3)


# --- the experiment -------------------------------------------------------------------------------

_lookups, _looked_up, _of_lookups = compare.experiment(VARIANTS, tasks=(LOOKUP,))
_images, follow, _of_images = protocol.experiment(IMAGES, WHICH_DIGIT, reference="full attention")
FREQUENT = "the most frequent digit"
TO_LOOK_UP = Exam(lambda seed: LOOKUP, lambda seed: {FREQUENT: most_frequent()}, FREQUENT, 0.02)


def runs() -> list[Run]:
    return [*_lookups(), Run("shown", {"task": "shown", "steps": STEPS}, 0), *_images()]


def measure(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    if "exam" in config:
        return one_run(config, seed, (WHICH_DIGIT,), lambda name: IMAGES[name])
    return shown(seed) if config["task"] == "shown" else _looked_up(dict(config), seed)


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """Both exams as the protocol has them, and what is shown."""
    exams = _of_images([x for x in done if "exam" in x["run"]["config"]])["exams"]
    of_lookup = [x for x in done if x["run"]["config"].get("task") == LOOKUP.name]
    kept = next(x["result"] for x in done if x["run"]["name"] == "shown")
    found = _of_lookups(of_lookup)
    scores, rivals = found["scores"][LOOKUP.name], dict.fromkeys(VARIANTS, "content")
    line = dict(TO_LOOK_UP.trivial(0))
    lookup = {
        "unit": LOOKUP.unit,
        "steps": STEPS,
        "seeds": list(compare.SEEDS),
        "delta": TO_LOOK_UP.delta,
        "bar": FREQUENT,
        "trivial": {FREQUENT: [line[FREQUENT]] * len(compare.SEEDS)},
        "reference": rivals,
        "scores": scores,
        "parameters": found["parameters"][LOOKUP.name],
        "outcomes": protocol.compared(TO_LOOK_UP, scores, [line] * len(compare.SEEDS), rivals),
    }
    return {
        "exams": {**exams, LOOKUP.name: lookup},
        "letters": LETTERS,
        "digits": DIGITS,
        "shown": kept,
    }
