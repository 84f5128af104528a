"""Exits behind every block of a small GPT for English letters: what they say, who leaves where.

trained     aligned with equal weights, with ω_n = n, mixed, or the last exit alone
early       of the first: accuracy, agreement with all blocks and share of the FLOPs, for the three
            measures of CALM at many thresholds, and three exit classifiers for four prices
world       of the first: what each threshold loses, and whether Learn-then-Test keeps its promise

The first PROMPT letters of each text are read in full and not scored. Classifiers and CALM's head
are trained afterwards, on states that stay as they are.

python -m tfviz_lab exits    → results/exits.json
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.adaptive import calm_confidence as calm
from tfviz.adaptive import depth_adaptive_training as anytime
from tfviz.adaptive import depth_classifiers as exits
from tfviz.longer_context.alibi import Alibi
from tfviz.models.gpt import GPT
from tfviz.training import seeded, train
from tfviz_lab.adaptive import guarantee
from tfviz_lab.runner import Done, Run

SEEDS, STEPS, HEAD_STEPS = (0, 1, 2), 300, 100
PACKAGES = ["torch", "numpy", "scipy"]
N, WIDTH, HEADS, L, BATCH, RATE = 4, 64, 4, 64, 16, 3e-3
PROMPT, ROWS, WORLD, SHORT = 16, 128, 1000, 32
TRAINED: dict[str, Callable[[GPT, Tensor, Tensor, Generator], Tensor]] = {
    "aligned": lambda model, x, y, rng: anytime.aligned_loss(model, x, y),
    "aligned, ω = n": lambda model, x, y, rng: anytime.aligned_loss(model, x, y, range(1, N + 1)),
    "mixed": lambda model, x, y, rng: anytime.mixed_loss(model, x, y, rng),
    "last exit alone": lambda model, x, y, rng: anytime.aligned_loss(
        model, x, y, [0] * (N - 1) + [1]
    ),
}
STEP = range(21)
LEVELS = {
    "softmax response": [k / 20 for k in STEP],
    "saturation": [1 - 2 ** (-k / 2) for k in STEP],
    "classifier": [k / 20 for k in STEP],
}
PRICES = (0.0, 0.02, 0.05, 0.1)
KINDS = ("sequence", "token", "geometric")


def trained(name: str, seed: int) -> GPT:
    """The model of this variant and seed."""
    model = seeded(seed, lambda: GPT(len(data.characters()[1]), WIDTH, HEADS, N, core=Alibi))
    training, _ = data.split(data.characters()[0])

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        return TRAINED[name](cast(GPT, model), *data.windows(training, BATCH, L, rng), rng)

    train(model, loss, STEPS, lr=RATE, seed=seed, progress=False)
    return model


def held_out(rows: int, length: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    return data.windows(
        data.split(data.characters()[0])[1], rows, length, Generator().manual_seed(seed)
    )


def with_prompt(level: float) -> Tensor:
    """Thresholds with which the prompt is read in full."""
    return torch.cat([torch.full((PROMPT,), torch.inf), torch.full((L - PROMPT,), level)])


def new_heads() -> nn.ModuleDict:
    """CALM's classifier, and an exit classifier for each kind and price, not yet trained."""
    made: dict[str, nn.Module] = {"calm": nn.Linear(WIDTH, 1)}
    for price in range(len(PRICES)):
        made[f"sequence {price}"] = exits.SequenceExit(WIDTH, N, PROMPT)
        made[f"token {price}"] = exits.TokenExit(WIDTH, N)
        made[f"geometric {price}"] = exits.GeometricExit(WIDTH, N)
    return nn.ModuleDict(made)


def heads_of(model: GPT, seed: int) -> nn.ModuleDict:
    """Trained: CALM's on agreement, the others on the oracle of likelihood."""
    training, _ = data.split(data.characters()[0])

    def loss(heads: nn.Module, rng: Generator, step: int) -> Tensor:
        all_heads = cast(nn.ModuleDict, heads)
        x, y = data.windows(training, BATCH, L, rng)
        with torch.no_grad():
            X = anytime.states(model, x)
            LL = likelihoods(model, X, y)
        total = calm.agreement_loss(model, all_heads["calm"], x)
        for name, head in all_heads.items():
            if name != "calm":
                kind, price = name.split()
                total = total + exits.exit_loss(head(X), oracle(LL, PRICES[int(price)], kind))
        return total

    heads = seeded(seed, new_heads)
    train(heads, loss, HEAD_STEPS, lr=1e-2, seed=seed, clip=torch.inf, progress=False)
    return heads


def likelihoods(model: GPT, X: Tensor, y: Tensor) -> Tensor:
    """LLⁿ_t of each letter, (b, N, L)."""
    log_p = anytime.read(model, X).log_softmax(-1)
    return log_p.gather(-1, y.expand(N, -1, -1)[..., None])[..., 0].transpose(0, 1)


def oracle(LL: Tensor, price: float, kind: str = "token") -> Tensor:
    """Exits (b, L). A sentence has one, at the price of all its letters."""
    if kind == "sequence":
        whole = exits.sequence_oracle(LL[..., PROMPT:], price * (L - PROMPT))
        return whole[:, None].expand(-1, L)
    return exits.token_oracle(LL, price)


def point(
    model: GPT, n: Tensor, said: Tensor, full: Tensor, y: Tensor, reads: Tensor | int
) -> dict[str, float]:
    """One point of the trade: behind the prompt, on the mean."""
    vocab, context = len(data.characters()[1]), torch.arange(1, L + 1)
    spent, whole = (
        calm.token_flops(a, N, WIDTH, vocab, context, b)
        for a, b in ((n, reads), (torch.tensor(N), 1))
    )
    scored = slice(PROMPT, None)
    return {
        "depth": round(n[:, scored].double().mean().item(), 4),
        "flops": round((spent[:, scored].sum() / (len(n) * whole[scored].sum())).item(), 4),
        "right": round((said == y)[:, scored].double().mean().item(), 4),
        "agree": round((said == full)[:, scored].double().mean().item(), 4),
    }


@torch.no_grad()
def early(model: GPT, heads: nn.ModuleDict) -> dict[str, Any]:
    """What leaving early gives on held-out text, and letter by letter on one text."""
    x, y = held_out(ROWS, L)
    X = anytime.states(model, x)
    full, LL = anytime.read(model, X[-1]).argmax(-1), likelihoods(model, X, y)
    prompt = torch.arange(L) < PROMPT
    measures = {
        "softmax response": calm.softmax_response,
        "saturation": calm.saturation,
        "classifier": calm.classified(heads["calm"]),
    }
    found: dict[str, Any] = {"measures": {}, "classifiers": {}}
    for name, measure in measures.items():
        row: dict[str, Any] = {"points": [], "exits": [], "said": []}
        for level in LEVELS[name]:
            logits, n = calm.read_early(model, x, measure, with_prompt(level))
            said = logits.argmax(-1)
            row["points"].append(
                point(model, n, said, full, y, n if name == "softmax response" else 1)
            )
            row["exits"].append("".join(str(k) for k in n[0].tolist()))
            row["said"].append(data.characters()[1].decode(said[0]))
        found["measures"][name] = row
    told = {
        kind: [decided(heads[f"{kind} {p}"], X, kind) for p in range(len(PRICES))] for kind in KINDS
    }
    told["oracle"] = [oracle(LL, price) for price in PRICES]
    agrees = anytime.read(model, X).argmax(-1) == full
    told["first that agrees"] = [agrees.long().argmax(0) + 1]
    told["fixed"] = [torch.full_like(x, n) for n in range(1, N + 1)]
    for kind, all_n in told.items():
        found["classifiers"][kind] = []
        for chosen in all_n:
            n = torch.where(prompt, N, chosen)
            said = anytime.read(model, anytime.leave_at(model, x, n)).argmax(-1)
            found["classifiers"][kind].append(point(model, n, said, full, y, 1))
    found["LL"] = [[round(v, 2) for v in row] for row in LL[0, :, PROMPT:].tolist()]
    found["q"] = {
        kind: [
            [round(v, 3) for v in row] for row in heads[f"{kind} 1"](X)[0, PROMPT:].exp().T.tolist()
        ]
        for kind in KINDS
    }
    return found


def decided(head: nn.Module, X: Tensor, kind: str) -> Tensor:
    """The likeliest exit; block by block, the first where stopping is likelier than going on."""
    if kind != "geometric":
        return cast(Tensor, head(X).argmax(-1) + 1)
    stop = F.pad(cast(exits.GeometricExit, head).stop(X), (0, 1), value=1.0) > 0
    return stop.long().argmax(-1) + 1


@torch.no_grad()
def depths(model: GPT) -> dict[str, Any]:
    """Each exit on held-out text; and on one text what it says, and p(right letter) in tenths."""
    x, y = held_out(ROWS, L)
    logits, letters = anytime.read(model, anytime.states(model, x)), data.characters()[1]
    right = (logits.argmax(-1) == y)[..., PROMPT:].double().mean((1, 2))
    p = logits[:, 0].softmax(-1).gather(-1, y[0].expand(N, -1)[..., None])[..., 0]
    return {
        "right": [round(v, 4) for v in right.tolist()],
        "nats": [round(v, 4) for v in anytime.exit_losses(model, x, y).tolist()],
        "text": letters.decode(x[0]) + letters.decode(y[0, -1:]),
        "said": [letters.decode(row) for row in logits[:, 0].argmax(-1)],
        "tenths": ["".join(str(min(9, int(10 * v))) for v in row) for row in p.tolist()],
    }


def runs() -> list[Run]:
    return [
        Run(name, {"trained": name, "steps": STEPS}, seed) for seed in SEEDS for name in TRAINED
    ]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model = trained(config["trained"], seed)
    found = {"depths": depths(model)}
    if config["trained"] == "aligned":
        found["early"] = early(model, heads_of(model, seed))
        world = guarantee.world(model, held_out(WORLD, SHORT, seed=2)[0], PROMPT)
        found["world"] = world | {"promises": guarantee.promises(world, N, seed)}
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """{"depths": {variant: [seed]}, "early": [seed], "worlds": [seed]}."""
    by_run = {(x["run"]["name"], x["run"]["seed"]): x["result"] for x in done}
    return {
        "title": "Exits of a small GPT",
        **{"blocks": N, "prompt": PROMPT, "levels": LEVELS, "prices": list(PRICES)},
        "depths": {name: [by_run[name, seed]["depths"] for seed in SEEDS] for name in TRAINED},
        "early": [by_run["aligned", seed]["early"] for seed in SEEDS],
        "safe": {"levels": guarantee.LEVELS, "epsilon": guarantee.EPSILON},
        "worlds": [by_run["aligned", seed]["world"] for seed in SEEDS],
    }
