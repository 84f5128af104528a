"""kNN-LM: what came next in contexts like this one is looked up in a store, and mixed in.

    store {(f(c_i), w_i)}:  what the model makes of a context c_i, and the token that came next
    p_kNN(y|x) ∝ Σ_{(k_i, w_i) ∈ N} 1[y = w_i] exp(−d(k_i, f(x)) / T),   d(k, q) = |k − q|²
    p(y|x) = λ p_kNN(y|x) + (1 − λ) p_LM(y|x)

Khandelwal et al. 2019 (arXiv 1911.00172). N are the k nearest keys, f is what the last feed-forward
is given, after its norm; nothing is trained. T is 1 in the paper. As in the authors' code distances
are squared, and those of the neighbours that a search has found are computed again, exactly.

A store lies in a folder and need not fit into memory: its keys are mapped, and read in parts. It
knows whose it is, for keys of another model are directions in another space.

>>> d2, words = torch.tensor([[0.0, 1.0, 1.0]]), torch.tensor([[2, 0, 2]])
>>> [round(p, 3) for p in p_knn(d2, words, vocab=4)[0].tolist()]
[0.212, 0.0, 0.788, 0.0]
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tfviz import _arguments
from tfviz._arguments import named
from tfviz.cores import Cache
from tfviz.models.blocks import Block, Logits, Seq, Tokens
from tfviz.models.gpt import GPT
from tfviz.models.padding import each_text_alone

__all__ = ["KnnLM", "Store", "mixed", "open_store", "p_knn", "write_store"]

Search = Callable[[Tensor, int], tuple[Tensor, Tensor]]
"""(queries (n, d), k) → (squared distances (n, k), numbers of the keys (n, k), −1: none found)."""


@named
def p_knn(
    d2: Float[Tensor, "*n k"], words: Int[Tensor, "*n k"], vocab: int, temperature: float = 1.0
) -> Float[Tensor, "*n vocab"]:
    """The neighbours' words, weighted by their squared distances; 0 if there is no neighbour."""
    if not _arguments.real("temperature", temperature, 0.0):
        raise ValueError("temperature = 0 divides by nothing; choose more, a small one is one-hot")
    none = d2.isinf().all(-1, keepdim=True)
    weight = (-d2 / temperature).masked_fill(none, 0).softmax(-1).masked_fill(none, 0)
    return weight.new_zeros(*d2.shape[:-1], vocab).scatter_add(-1, words.clamp(min=0), weight)


@named
def mixed(p_lm: Tensor, p_near: Tensor, share: float | Tensor) -> Tensor:
    """λ p_kNN + (1 − λ) p_LM; where there is no neighbour, p_LM alone."""
    share = share * p_near.sum(-1, keepdim=True)
    return share * p_near + (1 - share) * p_lm


# --- the store ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Store:
    """Keys (n, d) and the words (n,) that came next, mapped from files or in memory."""

    keys: np.ndarray
    words: np.ndarray
    model: str  # whose: `fingerprint`

    def check(self, model: nn.Module) -> None:
        """Raises ValueError if another model made the keys."""
        if self.model != (own := fingerprint(model)):
            raise ValueError(
                f"store is of model {self.model}, this model is {own}: its keys are in another "
                "space; give the model that made it, or make it anew with write_store"
            )

    def word(self, at: Int[Tensor, "*n"]) -> Int[Tensor, "*n"]:
        return torch.from_numpy(np.asarray(self.words[at.clamp(min=0).numpy()])).long()


def fingerprint(model: nn.Module) -> str:
    """Sixteen digits of all names and weights: other digits, another model."""
    found = hashlib.sha256()
    for name, x in model.state_dict().items():
        found.update(f"{name}{tuple(x.shape)}{x.dtype}".encode())
        found.update(x.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


@torch.no_grad()
def read(model: GPT, t: Tokens, cache: Cache = None) -> tuple[Logits, Seq]:
    """(logits, f of every context): f is what the last block's feed-forward is given."""
    last, seen = model.stack.blocks[-1], list[Tensor]()
    assert isinstance(last, Block)
    hook = last.feed.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    try:
        return model(t, cache), seen[0]
    finally:
        hook.remove()


def passages(ids: Int[Tensor, "n"], L: int, before: int) -> Int[Tensor, "rows L+1"]:
    """Overlapping rows of L + 1 tokens; scored from `before` on, each place is in one of them."""
    _arguments.integer("before", before, 0, _arguments.integer("L", L, 1, len(ids) - 1) - 1)
    return ids.unfold(0, L + 1, L - before)


def contexts(
    model: GPT, ids: Int[Tensor, "n"], L: int, before: int, b: int = 64
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """(f, logits, next word) of all contexts with at least `before` tokens in front, in parts."""
    for rows in passages(ids, L, before).split(b):
        logits, f = read(model, rows[:, :-1])
        found = f[:, before:], logits[:, before:], rows[:, before + 1 :]
        yield tuple(x.flatten(0, 1) for x in found)  # type: ignore[misc]


@named
def write_store(model: GPT, ids: Int[Tensor, "n"], path: Path, L: int, before: int = 0) -> Store:
    """The store of a text in the folder `path`, written part by part; the name of its model last:
    without it nothing can be opened."""
    rows = passages(ids, L, before)
    n, d, at = len(rows) * (L - before), model.embed.weight.shape[1], 0
    path.mkdir(parents=True, exist_ok=True)
    (path / "model").unlink(missing_ok=True)
    new = np.lib.format.open_memmap
    keys = new(path / "keys.npy", mode="w+", dtype=np.float32, shape=(n, d))
    words = new(path / "words.npy", mode="w+", dtype=np.int32, shape=(n,))
    for f, _, word in contexts(model, ids, L, before):
        keys[at : at + len(f)], words[at : at + len(f)] = f.float().numpy(), word.numpy()
        at += len(f)
    keys.flush()
    words.flush()
    (path / "model").write_text(fingerprint(model))
    return open_store(path, model)


@named
def open_store(path: Path, model: nn.Module) -> Store:
    """A store from its folder, mapped: what is not asked for stays on the disk.

    Raises FileNotFoundError where there is none that was finished, ValueError if it is another's.
    """
    if not (path / "model").exists():
        raise FileNotFoundError(f"path = {path} holds no finished store; make one with write_store")
    keys, words = (np.load(path / f"{name}.npy", mmap_mode="r") for name in ("keys", "words"))
    store = Store(keys, words, (path / "model").read_text())
    store.check(model)
    return store


# --- the search -----------------------------------------------------------------------------------


def exact(keys: np.ndarray, rows: int = 65_536) -> Search:
    """Every key is looked at, `rows` of them at a time: the definition; it needs torch alone."""
    return partial(_nearest, keys, rows)


def _nearest(keys: np.ndarray, rows: int, Q: Tensor, k: int) -> tuple[Tensor, Tensor]:
    _arguments.integer("k", k, 1, len(keys))
    d2, at = Q.new_full((len(Q), 0), torch.inf), torch.zeros(len(Q), 0, dtype=torch.long)
    for first in range(0, len(keys), rows):
        near = torch.from_numpy(np.array(keys[first : first + rows]))
        kind = torch.promote_types(Q.dtype, near.dtype)
        part = torch.cdist(Q.to(kind), near.to(kind)).square()
        d2 = torch.cat([d2, part], 1)
        at = torch.cat([at, first + torch.arange(part.shape[1]).expand_as(part)], 1)
        d2, order = d2.topk(min(k, d2.shape[1]), largest=False)
        at = at.gather(1, order)
    return again(keys, Q, at)


def with_faiss(
    keys: np.ndarray, *, cells: int = 0, probe: int = 8, rows: int = 65_536, seed: int = 0
) -> Search:
    """FAISS, on one thread, as torch counts here. cells = 0: every key is looked at. Otherwise the
    keys are sorted into cells by k-means, and a query looks into the `probe` nearest of them."""
    try:
        import faiss
    except ImportError:
        raise ModuleNotFoundError(
            "FAISS searches the store and is not installed; pip install faiss-cpu, or take "
            "exact(keys), which needs torch alone"
        ) from None
    faiss.omp_set_num_threads(1)
    n, d = keys.shape
    index: Any = faiss.IndexFlatL2(d)
    if _arguments.integer("cells", cells, 0, n):
        index = faiss.IndexIVFFlat(index, d, cells)
        index.nprobe = _arguments.integer("probe", probe, 1, cells)
        index.cp.seed, index.cp.min_points_per_centroid = seed + 1234, 1
        drawn = np.sort(np.random.default_rng(seed).permutation(n)[: 100 * cells])
        index.train(np.asarray(keys[drawn]))
    for first in range(0, n, rows):
        index.add(np.ascontiguousarray(keys[first : first + rows]))

    def search(Q: Tensor, k: int) -> tuple[Tensor, Tensor]:
        _, at = index.search(Q.float().numpy(), _arguments.integer("k", k, 1, n))
        return again(keys, Q, torch.from_numpy(at))

    return search


def again(keys: np.ndarray, Q: Tensor, at: Int[Tensor, "n k"]) -> tuple[Tensor, Tensor]:
    """The squared distances once more, without a search's rounding; infinite where at is −1."""
    found = torch.from_numpy(np.asarray(keys[at.clamp(min=0).numpy()]))
    d2 = (Q[:, None] - found).square().sum(-1)
    return d2.masked_fill(at < 0, torch.inf), at


def recall(found: Int[Tensor, "n k"], true: Int[Tensor, "n k"]) -> float:
    """The share of the true neighbours that were found."""
    return (true[:, :, None] == found[:, None]).any(-1).double().mean().item()


class KnnLM(nn.Module):
    """A model with a store beside it; its logits are ln p of the mixture. It writes as a GPT does:
    `cache` is the model's."""

    @named
    def __init__(
        self, model: GPT, store: Store, search: Search | None = None, *, k: int = 32,
        share: float = 0.25, temperature: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        store.check(model)
        self.model, self.store, self.search = model, store, search or exact(store.keys)
        self.k, self.temperature = _arguments.integer("k", k, 1), temperature
        self.share = _arguments.real("share", share, 0.0, 1.0)

    @torch.no_grad()
    @each_text_alone
    @named
    def forward(self, t: Tokens, cache: Cache = None) -> Logits:
        logits, f = read(self.model, t, cache)
        d2, at = self.search(f.flatten(0, 1), self.k)
        near = p_knn(d2, self.store.word(at), logits.shape[-1], self.temperature)
        return mixed(logits.softmax(-1), near.view_as(logits), self.share).log()
