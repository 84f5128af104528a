"""A store beside a small model of English letters: share against size, search, and SPALM's gate.

stores    nats per letter for every share λ and temperature, with stores of growing size; the λ that
          is best on one half of the held-out text, and its nats on the other
search    FAISS with cells: recall of the k nearest, keys looked at, nats
gate      SPALM, trained whole with the neighbours of a frozen reader: nats, and the gate, on text
          whose neighbours are in the store and with neighbours drawn at random
shown     what the chapter's explorers show, of seed 0

python -m tfviz_lab knn_language_model    → results/knn_language_model.json
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tfviz import data
from tfviz.longer_context import knn_lm
from tfviz.longer_context.alibi import Alibi
from tfviz.longer_context.spalm import Spalm, gated
from tfviz.models.gpt import GPT
from tfviz.training import next_token, seeded, train
from tfviz_lab.runner import Done, Run

SEEDS, STEPS = (0, 1, 2), 250
PACKAGES = ["torch", "numpy", "faiss-cpu"]
L, BEFORE, WIDTH, HEADS, LAYERS, BATCH = 64, 16, 64, 4, 2, 16
STORES, K = (2_000, 8_000, 30_000, 120_000), 32
SHARES = tuple(n / 20 for n in range(20))
TEMPERATURES = (0.3, 1.0, 3.0, 10.0)
ASKED = 4_000  # held-out contexts; even passages choose λ, odd ones are scored
CELLS, PROBES = 256, (1, 4, 16, 64)
FEW = 4  # neighbours of SPALM
"""So many as the paper's."""


def untrained() -> GPT:
    return GPT(len(data.characters()[1]), WIDTH, HEADS, LAYERS, core=Alibi)


def reader(seed: int, steps: int) -> GPT:
    model, ids = seeded(seed, untrained), data.split(data.characters()[0])[0]
    train(model, next_token(ids, BATCH, L), steps, seed=seed, progress=False)
    return model.eval()


def held_out(model: GPT) -> tuple[Tensor, Tensor, Tensor]:
    """(f, ln p_LM, the next letter) of contexts that were never trained on."""
    ids = data.split(data.characters()[0])[1]
    f, logits, words = (
        torch.cat(x)[:ASKED] for x in zip(*knn_lm.contexts(model, ids, L, BEFORE), strict=True)
    )
    return f, logits.log_softmax(-1), words


def nats(p: Tensor, words: Tensor) -> Tensor:
    return -p.gather(1, words[:, None])[:, 0].clamp(min=1e-12).log()


def halves(words: Tensor) -> Tensor:
    """True where λ is chosen."""
    return torch.arange(len(words)) // (L - BEFORE) % 2 == 0


def stores(model: GPT, store: knn_lm.Store) -> list[dict[str, Any]]:
    f, log_p, words = held_out(model)
    choose, found = halves(words), []
    for n in STORES:
        d2, at = knn_lm.with_faiss(store.keys[:n])(f, K)
        near = store.word(at)
        table = []
        for temperature in TEMPERATURES:
            q = knn_lm.p_knn(d2, near, log_p.shape[1], temperature)
            losses = [nats(knn_lm.mixed(log_p.exp(), q, share), words) for share in SHARES]
            table.append([[x[choose].mean().item(), x[~choose].mean().item()] for x in losses])
        each = torch.tensor(table)  # (temperature, share, half)
        best = divmod(int(each[..., 0].argmin()), len(SHARES))
        found.append({
            "size": n, "nats": rounded(each.mean(-1)), "temperature": TEMPERATURES[best[0]],
            "share": SHARES[best[1]], "scored": rounded(each[best[0], best[1], 1]),
            "alone": rounded(each[0, 0, 1]),
        })  # fmt: skip
    return found


def search(model: GPT, store: knn_lm.Store, best: dict[str, Any]) -> list[dict[str, Any]]:
    f, log_p, words = held_out(model)
    keys, found = store.keys[: STORES[-1]], []
    true = knn_lm.with_faiss(keys)(f, K)[1]
    for probe in PROBES:
        d2, at = knn_lm.with_faiss(keys, cells=CELLS, probe=probe)(f, K)
        q = knn_lm.p_knn(d2, store.word(at), log_p.shape[1], best["temperature"])
        loss = nats(knn_lm.mixed(log_p.exp(), q, best["share"]), words)
        found.append(
            {
                "probe": probe,
                "recall": rounded(knn_lm.recall(at, true)),
                "nats": rounded(loss.mean()),
            }
        )
    return found


# --- SPALM ----------------------------------------------------------------------------------------


def neighbours(model: GPT, ids: Tensor, store: knn_lm.Store, own: bool) -> Tensor:
    """Words of the k nearest at each place of ids, (n, k); −1 where a place has no context yet.

    `own`: ids is the text of the store. Then contexts that share letters with the one that asks,
    itself first of all, are left out.
    """
    found, at = torch.full((len(ids), FEW), -1), BEFORE
    look = knn_lm.with_faiss(store.keys, cells=CELLS, probe=16)
    for f, _, _ in knn_lm.contexts(model, ids, L, BEFORE):
        _, near = look(f, 8 * FEW if own else FEW)
        if own:
            here = at - BEFORE + torch.arange(len(f))[:, None]
            order = ((near - here).abs() < L).sort(dim=1, stable=True).indices
            near = near.gather(1, order)[:, :FEW]
        found[at : at + len(f)] = store.word(near)
        at += len(f)
    return found


def spalm_loss(ids: Tensor, words: Tensor) -> Any:
    """Nats on windows of a text whose neighbours are known."""
    places = torch.arange(int((words[:, 0] >= 0).nonzero().max()))

    def loss(model: nn.Module, rng: Generator, step: int) -> Tensor:
        at, _ = data.windows(places, BATCH, L, rng)
        logits = model(ids[at], None, words[at].clamp(min=0))[:, BEFORE:]
        return F.cross_entropy(logits.flatten(0, 1), ids[at + 1][:, BEFORE:].flatten())

    return loss


@torch.no_grad()
def looked_at(model: Spalm, ids: Tensor, words: Tensor) -> dict[str, Tensor]:
    """Gate, and nats of mixture, model alone and memory alone, at each place of held-out text."""
    parts: dict[str, list[Tensor]] = {}
    n = int((words[:, 0] >= 0).nonzero().max())
    for at in knn_lm.passages(torch.arange(n), L, BEFORE).split(64):
        at, after = at[:, :-1], ids[at[:, 1:]]
        h, W = model.states(ids[at]), model.model.embed.weight
        z, m, g = gated(h, W[words[at].clamp(min=0)], model.w_g)
        for name, x in (("both", z), ("alone", h), ("memory", m)):
            lost = F.cross_entropy((x @ W.T).flatten(0, 1), after.flatten(), reduction="none")
            parts.setdefault(name, []).append(lost.view_as(after)[:, BEFORE:].flatten())
        parts.setdefault("gate", []).append(g[:, BEFORE:].flatten())
        agree = (words[at] == after[..., None]).any(-1)
        parts.setdefault("told", []).append(agree[:, BEFORE:].flatten())
    return {name: torch.cat(x) for name, x in parts.items()}


def gate(model: GPT, store: knn_lm.Store, seed: int, steps: int) -> tuple[dict[str, Any], Any]:
    """SPALM with neighbours, with random ones, and the same model without."""
    training, new = (x[: STORES[-1]] for x in data.split(data.characters()[0]))
    words, asked = (neighbours(model, x, store, own) for x, own in ((training, True), (new, False)))
    dice = Generator().manual_seed(seed)
    result: dict[str, Any] = {}
    for name in ("found", "drawn at random"):
        if name != "found":
            draw = lambda x: training[torch.randint(len(training), x.shape, generator=dice)]  # noqa: E731
            words, asked = (torch.where(x >= 0, draw(x), x) for x in (words, asked))
        blank = seeded(seed, untrained)
        made = Spalm(blank, model, store, lambda Q, k: (Q, Q), k=FEW)
        train(made, spalm_loss(training, words), steps, seed=seed, progress=False)
        seen = looked_at(made, new, asked)
        told = seen["told"]
        result[name] = {x: rounded(seen[x].mean()) for x in ("both", "alone", "memory", "gate")} | {
            "gate, told": rounded(seen["gate"][told].mean()),
            "gate, not told": rounded(seen["gate"][~told].mean()),
            "told": rounded(told.float().mean()),
        }
        if name == "found":
            keep = (made, new, asked)
    _, log_p, after = held_out(model)
    result["reader"] = rounded(nats(log_p.exp(), after).mean())
    return result, keep


def rounded(x: Any) -> Any:
    return torch.as_tensor(x, dtype=torch.float64).mul(1e4).round().div(1e4).tolist()


def tenths(x: Tensor) -> Any:
    return x.double().mul(10).round().div(10).tolist()


# --- what the explorers show ----------------------------------------------------------------------

PLACES, NEAR, TOP = 16, 48, 12
TEXT = 48


def contexts_shown(model: GPT, store: knn_lm.Store) -> dict[str, Any]:
    """Held-out contexts with the model's likeliest letters and the nearest of each store."""
    letters = data.characters()[1].letters
    ids = data.split(data.characters()[0])[1]
    f, log_p, words = held_out(model)
    at = torch.arange(PLACES) * 241 + 137
    rows, n = [], L - BEFORE
    for i in at.tolist():
        end = i // n * n + i % n + BEFORE + 1  # of the context, in the text
        rows.append({
            "text": "".join(letters[c] for c in ids[end - 24 : end]), "next": words[i].item(),
            "p": rounded(log_p[i].exp()),
        })  # fmt: skip
    near = []
    for size in STORES:
        d2, found = knn_lm.with_faiss(store.keys[:size])(f[at], NEAR)
        near.append(
            {"d2": d2.mul(10).round().div(10).tolist(), "words": store.word(found).tolist()}
        )
    for row, i in zip(rows, range(PLACES), strict=True):
        kept = torch.tensor(row["p"]).topk(TOP).indices.tolist()
        for x in near:
            kept += x["words"][i]
        kept = sorted({*kept, row["next"]})
        row["letters"] = kept
        row["p"] = [row["p"][c] for c in kept]
    return {"letters": letters, "contexts": rows, "near": near}


@torch.no_grad()
def text_shown(made: Spalm, new: Tensor, asked: Tensor, first: int = 1_296) -> dict[str, Any]:
    """A stretch of held-out text: scores of h and of m for each letter, and the gate's score."""
    at = torch.arange(first - BEFORE, first + TEXT)[None]
    h, W = made.states(new[at])[0, BEFORE:], made.model.embed.weight
    words = asked[at][0, BEFORE:].clamp(min=0)
    _, m, _ = gated(h, W[words], made.w_g)
    return {
        "text": new[first : first + TEXT + 1].tolist(), "words": words.tolist(),
        "gate": rounded(h @ made.w_g),
        "h": tenths(h @ W.T), "m": tenths(m @ W.T),
    }  # fmt: skip


def runs() -> list[Run]:
    return [Run("letters", {"steps": STEPS}, seed) for seed in SEEDS]


def measure(config: dict[str, Any], seed: int) -> dict[str, Any]:
    model = reader(seed, config["steps"])
    with tempfile.TemporaryDirectory() as folder:
        training = data.split(data.characters()[0])[0][: STORES[-1] + L + BEFORE]
        store = knn_lm.write_store(model, training, Path(folder), L, BEFORE)
        found = stores(model, store)
        result: dict[str, Any] = {"stores": found, "search": search(model, store, found[-1])}
        result["gate"], keep = gate(model, store, seed, config["steps"])
        if seed == SEEDS[0]:
            result["shown"] = {"contexts": contexts_shown(model, store), "text": text_shown(*keep)}
    return result


def collect(done: Sequence[Done]) -> dict[str, Any]:
    """One entry for each seed."""
    rows = [x["result"] for x in sorted(done, key=lambda x: x["run"]["seed"])]
    return {
        "title": "A store beside a small model", "sizes": list(STORES), "shares": list(SHARES),
        "temperatures": list(TEMPERATURES), "k": K, "cells": CELLS, "shown": rows[0]["shown"],
        **{name: [row[name] for row in rows] for name in ("stores", "search", "gate")},
    }  # fmt: skip
