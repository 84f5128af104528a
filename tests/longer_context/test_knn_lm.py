"""kNN-LM: its probabilities, the store on disk, whose it is, exact and approximate search."""

from __future__ import annotations

import builtins
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laws import Case
from refusals import refused
from torch import Tensor

from tfviz.longer_context import knn_lm as room
from tfviz.longer_context.alibi import Alibi
from tfviz.models.gpt import GPT
from tfviz.models.use import generate
from tfviz.training import seeded

IDS = torch.randint(11, (300,), generator=torch.Generator().manual_seed(1))


def gpt(seed: int = 0) -> GPT:
    return seeded(seed, lambda: GPT(11, 16, 2, 2, core=Alibi))


def by_the_formula(model: GPT, store: room.Store, t: Tensor, k: int, share: float) -> Tensor:
    """p of the token after t, one sum at a time."""
    logits, f = room.read(model, t[None])
    q, keys = f[0, -1], torch.tensor(store.keys)
    d2 = torch.tensor([float((key - q) @ (key - q)) for key in keys])
    near = d2.argsort()[:k].tolist()
    total = sum(math.exp(-d2[i]) for i in near)
    p = [0.0] * 11
    for i in near:
        p[int(store.words[i])] += math.exp(-d2[i]) / total
    return share * torch.tensor(p) + (1 - share) * logits[0, -1].softmax(-1)


def test_the_mixture_is_its_formula(tmp_path: Path) -> None:
    model = gpt()
    store = room.write_store(model, IDS, tmp_path, L=32, before=8)
    both = room.KnnLM(model, store, k=7, share=0.4)
    t = IDS[:20]
    p = both(t[None]).exp()[0, -1]
    torch.testing.assert_close(p, by_the_formula(model, store, t, 7, 0.4))
    torch.testing.assert_close(p.sum(), torch.tensor(1.0))
    alone = room.KnnLM(model, store, share=0.0)(t[None])
    torch.testing.assert_close(alone, model(t[None]).log_softmax(-1))
    only = room.KnnLM(model, store, k=1, share=1.0)(IDS[None, :33])
    assert only.exp()[0, 8:32].argmax(-1).equal(IDS[9:33])  # its own contexts are there


def test_the_key_is_what_the_last_feed_forward_reads() -> None:
    model, t = gpt(), IDS[None, :9]
    last: Any = model.stack.blocks[-1]
    X = model.stack.blocks[0](model.embed(t))
    wanted = last.norms[1](X + last.attend(last.norms[0](X)))
    logits, f = room.read(model, t)
    torch.testing.assert_close(f, wanted)
    assert logits.equal(model(t)) and not last.feed._forward_pre_hooks


def test_p_knn() -> None:
    d2 = torch.tensor([0.0, 50.0, 60.0])
    words = torch.tensor([3, 1, 1])
    assert room.p_knn(d2, words, 5)[3] == 1  # the same context: its word
    some = room.p_knn(torch.tensor([1.0, 2.0]), torch.tensor([3, 3]), 5)
    assert some.tolist() == [0, 0, 0, 1, 0]
    flat = room.p_knn(d2, words, 5, temperature=1e6)
    torch.testing.assert_close(flat[1], torch.tensor(2 / 3), atol=1e-4, rtol=0)
    more = room.p_knn(torch.tensor([0.0, 1, 2]), torch.tensor([3, 1, 0]), 5)
    assert (more[[2, 4]] == 0).all() and (more[[0, 1, 3]] > 0).all()
    # a far neighbour does not overflow, none at all leaves the model's word
    assert room.p_knn(torch.tensor([1e30, math.inf]), torch.tensor([2, 0]), 5)[2] == 1
    none = room.p_knn(torch.full((2,), math.inf), torch.tensor([0, 0]), 5)
    p = torch.full((5,), 0.2)
    assert none.sum() == 0 and room.mixed(p, none, 0.9).equal(p)
    refused("temperature = 0", room.p_knn, d2, words, 5, 0.0)


def test_a_store_lies_on_disk_and_is_read_in_parts(tmp_path: Path) -> None:
    model = gpt()
    store = room.write_store(model, IDS, tmp_path / "s", L=32, before=8)
    assert isinstance(store.keys, np.memmap) and store.keys.shape == (12 * 24, 16)
    # every place once, in order: what came next, after at least 8 tokens
    assert store.words.tolist() == IDS[9 : 9 + 288].tolist()
    Q = torch.randn(50, 16)
    whole, parts = (room.exact(store.keys, rows)(Q, 5) for rows in (10_000, 37))
    assert whole[1].equal(parts[1])
    wanted = ((Q[:, None] - torch.tensor(store.keys)) ** 2).sum(-1).topk(5, largest=False)
    torch.testing.assert_close(whole[0], wanted.values)
    d2, at = room.exact(store.keys)(Q.double(), 5)
    assert d2.dtype == torch.float64 and at.equal(whole[1])
    torch.testing.assert_close(d2.float(), whole[0])
    refused("k = 289", room.exact(store.keys), Q, 289)


def test_only_the_keys_of_one_part_are_held(tmp_path: Path) -> None:
    keys = np.lib.format.open_memmap(
        tmp_path / "keys.npy", mode="w+", dtype=np.float32, shape=(40_000, 8)
    )
    read: list[int] = []

    class Spy:
        def __len__(self) -> int:
            return len(keys)

        def __getitem__(self, at: Any) -> Any:
            read.append(len(keys[at]))
            return keys[at]

    room.exact(Spy(), 1000)(torch.randn(3, 8), 4)  # type: ignore[arg-type]
    assert max(read) == 1000 and len(read) == 41


def test_another_models_store_is_refused(tmp_path: Path) -> None:
    model, other = gpt(), gpt(1)
    store = room.write_store(model, IDS, tmp_path, L=32)
    again = room.open_store(tmp_path, gpt())  # the same weights
    assert np.array_equal(again.keys, store.keys)
    for use in (lambda: room.open_store(tmp_path, other), lambda: room.KnnLM(other, store)):
        refused("its keys are in another space", use)
    with torch.no_grad():
        model.embed.weight[3, 2] += 1e-6  # one weight, a little
    refused("give the model that made it", room.open_store, tmp_path, model)
    (tmp_path / "model").unlink()  # as after an interrupt
    with pytest.raises(FileNotFoundError, match="no finished store"):
        room.open_store(tmp_path, other)


def test_a_store_that_is_being_written_anew_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = gpt()
    room.write_store(model, IDS, tmp_path, L=32)

    def stopped(*given: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(room, "contexts", stopped)
    with pytest.raises(KeyboardInterrupt):
        room.write_store(model, IDS.flip(0), tmp_path, L=32)
    with pytest.raises(FileNotFoundError, match="no finished store"):
        room.open_store(tmp_path, model)


def test_faiss_finds_the_same_and_cells_find_most() -> None:
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((4000, 16)).astype(np.float32)
    Q = torch.from_numpy(rng.standard_normal((64, 16)).astype(np.float32))
    d2, at = room.exact(keys)(Q, 10)
    d2_faiss, at_faiss = room.with_faiss(keys, rows=700)(Q, 10)
    assert at.equal(at_faiss) and d2.equal(d2_faiss)
    found = [room.with_faiss(keys, cells=50, probe=n)(Q, 10)[1] for n in (1, 8, 50)]
    shares = [room.recall(x, at) for x in found]
    assert 0.05 < shares[0] < shares[1] < 1 and shares[2] == 1
    assert found[1].equal(room.with_faiss(keys, cells=50, probe=8)(Q, 10)[1])  # seeded
    few = room.with_faiss(keys[:60], cells=20, probe=1)(Q, 40)
    assert (few[1] == -1).any() and few[0][few[1] == -1].isinf().all()
    assert room.p_knn(few[0], few[1], 60).isfinite().all()


def test_without_faiss_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "faiss":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match="pip install faiss-cpu"):
        room.with_faiss(np.zeros((3, 2), np.float32))


def test_it_writes_with_a_cache(tmp_path: Path) -> None:
    model = gpt()
    both = room.KnnLM(model, room.write_store(model, IDS, tmp_path, L=32), share=0.5)
    written: Tensor = generate(both, IDS[None, :5], 6)
    t = IDS[None, :5]
    for _ in range(6):
        t = torch.cat([t, both(t)[:, -1:].argmax(-1)], 1)
    assert written.equal(t)


def test_errors_name_the_argument(tmp_path: Path) -> None:
    model = gpt()
    refused("before = 32", room.write_store, model, IDS, tmp_path, L=32, before=32)
    store = room.write_store(model, IDS, tmp_path, L=32)
    refused("share = 1", room.KnnLM, model, store, share=1.5)
    refused("probe = 9", room.with_faiss, np.zeros((30, 2), np.float32), cells=4, probe=9)


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "a store that is open while it is written anew",
            '    (path / "model").unlink(missing_ok=True)\n',
            "",
        ),
        (
            "neighbours weighted by distances that are not squared",
            "(Q[:, None] - found).square().sum(-1)",
            "(Q[:, None] - found).square().sum(-1).sqrt()",
        ),
        (
            "a store that any model may read",
            "if self.model != (own := fingerprint(model)):",
            "if not (own := fingerprint(model)):",
        ),
    ],
)
