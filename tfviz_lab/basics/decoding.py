"""What a small trained model writes, by the way in which its tokens are chosen.

    python -m tfviz_lab decoding     trains again and rewrites the stored result

A GPT of three blocks learns the help texts of Python, cut into 2500 pieces: frequent words with
the space before them, and single characters for the rest. Lines that underline a heading are
shortened to three characters. Each strategy continues the same held-out paragraphs. The first
seed's next-token distributions are kept for the explorers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tfviz import data
from tfviz.basics.decoding_strategies import (
    beam_search,
    distinct,
    next_of,
    nucleus,
    sample,
    temperature,
    top_k,
)
from tfviz.models.gpt import GPT
from tfviz.models.use import generate, greedy
from tfviz.position.sinusoidal_pe import Sinusoidal
from tfviz.stored.next_tokens import stored_next
from tfviz.training import mean_loss, next_token, seeded, train
from tfviz_lab.runner import Done, Run

WORDS, D, H, N, LENGTH, BATCH, STEPS, SEEDS = 2400, 128, 4, 3, 96, 12, 600, (0, 1, 2)
PROMPT, WRITTEN, PROMPTS = 16, 80, 16
PIECE = re.compile(r" ?[A-Za-z]+| ?[0-9]+|\n+| ?[^\sA-Za-z0-9]| +")

Cut = Callable[[Tensor], Tensor]
CUTS: dict[str, Cut] = {
    "τ = 0.7": partial(temperature, tau=0.7),
    "plain sampling": partial(temperature, tau=1.0),
    "τ = 1.5": partial(temperature, tau=1.5),
    "top-k, k = 10": partial(top_k, k=10),
    "top-k, k = 40": partial(top_k, k=40),
    "nucleus, p = 0.5": partial(nucleus, p=0.5),
    "nucleus, p = 0.8": partial(nucleus, p=0.8),
    "nucleus, p = 0.95": partial(nucleus, p=0.95),
}
WIDTHS = (4, 16)


@cache
def pieces() -> tuple[Int[Tensor, "n"], list[str]]:
    """(the text in numbers, the pieces that they stand for)."""
    text = re.sub(r"([=~*^-])\1{3,}", r"\1\1\1", data.text())
    found = PIECE.findall(text)
    frequent = [p for p, _ in Counter(found).most_common() if len(p) > 1][:WORDS]
    names = [*sorted(set(text)), *frequent]
    number = {p: n for n, p in enumerate(names)}
    ids = [number[x] for p in found for x in ([p] if p in number else p)]
    return torch.tensor(ids), names


def trained(seed: int, steps: int) -> GPT:
    ids, names = pieces()
    model = seeded(seed, lambda: GPT(len(names), D, H, N, positions=Sinusoidal(D, scale=0.1)))
    train(model, next_token(data.split(ids)[0], BATCH, LENGTH), steps, seed=seed)
    return model.eval()


def beginnings(seed: int) -> tuple[Int[Tensor, "b prompt"], Int[Tensor, "b written"]]:
    """Paragraphs of the held-out text: their first tokens, and how they really go on."""
    ids, names = pieces()
    held_out = data.split(ids)[1]
    after = 1 + (held_out == names.index("\n\n")).nonzero()[:, 0]
    after = after[after <= len(held_out) - PROMPT - WRITTEN]
    order = torch.randperm(len(after), generator=Generator().manual_seed(seed + 1000))
    rows = held_out[after[order[:PROMPTS], None] + torch.arange(PROMPT + WRITTEN)]
    return rows[:, :PROMPT], rows[:, PROMPT:]


def _draw(cut: Cut, rng: Generator, logits: Tensor) -> Tensor:
    return sample(cut(logits), rng)


def written(
    model: GPT, prompts: Int[Tensor, "b prompt"], seed: int
) -> dict[str, Int[Tensor, "b written"]]:
    """What each strategy writes after the prompts."""
    rng = Generator().manual_seed(seed)
    texts = {"greedy": generate(model, prompts, WRITTEN, greedy)}
    for name, cut in CUTS.items():
        texts[name] = generate(model, prompts, WRITTEN, partial(_draw, cut, rng))
    for width in WIDTHS:
        best = [beam_search(next_of(model), prompt, WRITTEN, width)[0].tokens for prompt in prompts]
        texts[f"beam of {width}"] = torch.cat([prompts, torch.tensor(best)], 1)
    return {name: rows[:, prompts.shape[1] :] for name, rows in texts.items()}


@torch.no_grad()
def log_p(
    model: GPT, prompts: Int[Tensor, "b prompt"], texts: Int[Tensor, "b written"]
) -> Float[Tensor, "b written"]:
    """What the model itself gives each token of the texts."""
    rows = torch.cat([prompts, texts], 1)
    logits = model(rows[:, :-1])[:, PROMPT - 1 :]
    return logits.log_softmax(-1).gather(2, texts[..., None])[..., 0]


def judged(model: GPT, prompts: Tensor, texts: Tensor, known: set[tuple[int, ...]]) -> Done:
    """Three numbers on what was written.

    distinct: share of different runs of four tokens; known: share of the runs of three tokens that
    the training text has somewhere; log_p: what the model gives a token, on average.
    """
    rows = texts.tolist()
    runs = [tuple(row[k : k + 3]) for row in rows for k in range(WRITTEN - 2)]
    return {
        "distinct": sum(distinct(row, 4) for row in rows) / len(rows),
        "known": sum(run in known for run in runs) / len(runs),
        "log_p": log_p(model, prompts, texts).mean().item(),
    }


# --- what the explorers show ----------------------------------------------------------------------

CONTEXTS = ("Changed in version 3", "The value of", "The class", "If the object is")
NAMED, CHILDREN, DEPTH, WIDEST, ALPHAS = 30, 6, 10, 6, [k / 4 for k in range(9)]
SEARCHES = ("A function", "This method", "The object", "It is")
SAMPLE = "This method"


def encoded(words: str) -> Int[Tensor, "L"]:
    number = {p: n for n, p in enumerate(pieces()[1])}
    found = PIECE.findall(words)
    return torch.tensor([number[x] for p in found for x in ([p] if p in number else p)])


@torch.no_grad()
def next_tokens(model: GPT, words: str) -> Done:
    """All log-probabilities after these words in falling order, in 1/100, and the first names."""
    lp, order = model(encoded(words)[None])[0, -1].log_softmax(-1).sort(descending=True)
    names = [pieces()[1][n] for n in order[:NAMED].tolist()]
    return {
        "prompt": words,
        "names": names,
        "log_p": " ".join(str(round(100 * x)) for x in lp.tolist()),
    }


@torch.no_grad()
def search_tree(model: GPT, words: str) -> Done:
    """The likeliest continuations, log p in 1/1000, of all that any beam up to WIDEST looks at."""
    prompt, nodes = encoded(words), dict[str, str]()

    def look(tokens: Sequence[int]) -> str:
        key = " ".join(map(str, tokens))
        if key not in nodes:
            rows = torch.cat([prompt, torch.tensor(tokens, dtype=torch.long)])[None]
            lp, order = model(rows)[0, -1].log_softmax(-1).topk(CHILDREN)
            pairs = zip(order.tolist(), lp.tolist(), strict=True)
            nodes[key] = " ".join(f"{token}:{round(1000 * x)}" for token, x in pairs)
        return nodes[key]

    ends = [n for n, p in enumerate(pieces()[1]) if p.strip() in (".", ":")]
    for width in range(1, WIDEST + 1):
        for alpha in ALPHAS:
            step = stored_next(look, len(prompt), len(pieces()[1]))
            beam_search(step, prompt, DEPTH, width, end=ends, alpha=alpha)
    used = sorted({int(pair.split(":")[0]) for node in nodes.values() for pair in node.split()})
    return {
        "prompt": words,
        "length": len(prompt),
        "ends": [n for n in ends if n in used],
        "names": {str(n): pieces()[1][n] for n in used},
        "nodes": nodes,
    }


# --- runs -----------------------------------------------------------------------------------------


def runs() -> list[Run]:
    return [Run("strategies", {"steps": STEPS}, seed) for seed in SEEDS]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model = trained(seed, config["steps"])
    training, held_out = data.split(pieces()[0])
    known = set(zip(*(training[k:].tolist() for k in range(3)), strict=False))
    prompts, text = beginnings(seed)
    texts = {"the text itself": text, **written(model, prompts, seed)}
    found: dict[str, Any] = {
        "loss": mean_loss(model, next_token(held_out, BATCH, LENGTH)),
        "judged": {name: judged(model, prompts, rows, known) for name, rows in texts.items()},
        "by_place": {  # what the model gives its tokens, ten places at a time
            name: log_p(model, prompts, rows).exp().mean(0).view(-1, 10).mean(1).tolist()
            for name, rows in texts.items()
        },
    }
    if seed == SEEDS[0]:
        names, start = pieces()[1], encoded(SAMPLE)[None]
        found["samples"] = {"prompt": SAMPLE} | {
            name: "".join(names[n] for n in rows[0].tolist())
            for name, rows in written(model, start, seed).items()
        }
        found["contexts"] = [next_tokens(model, words) for words in CONTEXTS]
        found["trees"] = [search_tree(model, words) for words in SEARCHES]
    return found


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """By strategy and measure a number for each seed; the rest from the first seed."""
    results = [x["result"] for x in sorted(done, key=lambda x: x["run"]["seed"])]
    first = results[0]
    return {
        "loss": [x["loss"] for x in results],
        "judged": {
            name: {key: [x["judged"][name][key] for x in results] for key in measures}
            for name, measures in first["judged"].items()
        },
        "by_place": {name: [x["by_place"][name] for x in results] for name in first["by_place"]},
        **{key: first[key] for key in ("samples", "contexts", "trees")},
        "settings": {
            "pieces": len(pieces()[1]), "width": D, "heads": H, "blocks": N, "batch": BATCH,
            "length": LENGTH, "prompt": PROMPT, "written": WRITTEN, "prompts": PROMPTS,
        },
    }  # fmt: skip
