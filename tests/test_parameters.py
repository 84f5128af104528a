"""What a function or a core is given beside Q, K and V: each is looked at like them. NaN, infinity,
another type, other sizes and numbers beyond what can be are refused by name, and never hidden: on a
CPU torch's fused kernel answers 0 where a score is NaN.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from laws import D, H, L, qkv
from refusals import of_no_kind, refused
from three import three
from torch import Tensor, nn

from tfviz import BERT, GPT
from tfviz.adaptive.adaptive_span import AdaptiveSpan
from tfviz.beyond_text.gtrxl import passed
from tfviz.compressed import clustered_attention as clustered
from tfviz.compressed import csalr, informer, linformer, luna, nystromformer, performer, rfa
from tfviz.compressed import lowrank_plus_band as band
from tfviz.compressed import memory_compressed_attention as compressed
from tfviz.compressed import poolingformer as pooling
from tfviz.compressed import rfa_causal as gated
from tfviz.cores import CAUSAL, Core, Where, given
from tfviz.heads.collaborative_heads import parafac, svd
from tfviz.heads.routing_heads_dynamic import routing_rounds, squash
from tfviz.heads.routing_heads_em import EMRouting, em_rounds
from tfviz.models.blocks import MultiHeadAttention
from tfviz.position.rope import Rope
from tfviz.priors.camtl_prior import TaskPrior, task_prior
from tfviz.sparse.sac import edge_attention

torch.manual_seed(0)
X = qkv()
CLUSTER = torch.arange(L).expand(2, H, L) % 3
ROUTES = torch.randn(2, 3, 4, 5, dtype=torch.float64)  # votes of 3 heads for 4 outputs


def drawn(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64)


def shared(E: Tensor) -> Tensor:
    return linformer.linformer_attention(*X, E, E)


TENSORS: dict[str, tuple[str, Callable[[Any], object], Tensor]] = {
    "Linformer": ("E", shared, drawn(3, L)),
    "Linformer's values": (
        "F",
        lambda F: linformer.linformer_attention(*X, drawn(3, L), F),
        drawn(3, L),
    ),
    "kernels of keys": (
        "keys",
        lambda keys: compressed.mca(*X, keys, drawn(2, D, D)),
        drawn(2, D, D),
    ),
    "kernels of values": (
        "values",
        lambda values: compressed.mca(*X, drawn(2, D, D), values, causal=True),
        drawn(2, D, D),
    ),
    "Luna": ("R", lambda R: luna.luna_attention(*X, R), drawn(H, 3, D)),
    "causal Luna": ("R", lambda R: luna.causal_luna_attention(*X, R), drawn(H, 3, D)),
    "Performer": ("W", lambda W: performer.performer_attention(*X, W), drawn(6, D)),
    "RFA": ("W", lambda W: rfa.rfa_attention(*X, W, causal=True), drawn(6, D)),
    "gated RFA": ("W", lambda W: gated.gated_attention(*X, W, -drawn(2, H, L).abs()), drawn(6, D)),
    "gates": (
        "log_g",
        lambda log_g: gated.gated_attention(*X, drawn(6, D), log_g),
        -drawn(2, H, L).abs(),
    ),
    "a task": ("task", lambda task: _of_task(task), drawn(2, 3)),
    "a task's γ": ("gamma", lambda gamma: task_prior(drawn(6, 2), gamma, drawn(2)), drawn(2)),
    "PARAFAC": ("T", lambda T: parafac(T, 2, steps=2), drawn(2, 3, 3)),
    "speeds": ("speeds", lambda speeds: Rope(D, speeds=speeds)(*X, Where()), drawn(D // 2)),
    "an SVD of heads": ("T", lambda T: svd(T, 2), drawn(2, 3, 3)),
    "low rank and band": ("A", lambda A: band.low_rank_and_band(A, 1, 0), drawn(2, 4, 4)),
    "an inverse": ("M", nystromformer.iterated_inverse, drawn(2, 4, 4).softmax(-1)),
    "votes": ("votes", routing_rounds, ROUTES),
    "votes by EM": ("votes", em_rounds, ROUTES),
    "counts": ("counts", lambda counts: em_rounds(ROUTES, counts=counts), drawn(2, 3).abs()),
    "β of EM": ("beta_s", lambda beta_s: em_rounds(ROUTES, beta_s=beta_s), drawn(4)),
    "another β of EM": ("beta_p", lambda beta_p: em_rounds(ROUTES, beta_p=beta_p), drawn(4)),
}
"""The tensors that are taken beside Q, K and V, the call, and one that is right."""


def _of_task(task: Any) -> object:
    with given(task=task):
        return TaskPrior(L, 3, 3).double()(*X, Where())


@pytest.mark.parametrize("what", TENSORS)
def test_a_tensor_that_is_no_number_or_no_tensor_is_refused_by_name(what: str) -> None:
    name, call, right = TENSORS[what]
    call(right)
    for wrong in (math.nan, math.inf, -math.inf):
        holds = right.clone()
        holds.view(-1)[-1] = wrong
        refused(f"{name} holds", call, holds)
        refused(f"{name} holds", call, torch.full_like(right, wrong))
    of_no_kind(name, call, right.long())
    if what not in ("counts", "β of EM", "another β of EM"):
        of_no_kind(f"{name} is a list", call, right.tolist())


SAME_TYPE = ["Linformer", "Linformer's values", "kernels of keys", "kernels of values", "Luna"]


@pytest.mark.parametrize("what", [*SAME_TYPE, "causal Luna"])
def test_a_tensor_of_another_type_than_the_queries_is_refused_by_name(what: str) -> None:
    name, call, right = TENSORS[what]
    of_no_kind(f"{name} has dtype torch.float32, Q torch.float64; give", call, right.float())


SHAPES: dict[str, tuple[str, Callable[[], object]]] = {
    "directions for one head": ("W has shape", lambda: performer.performer_attention(*X, drawn(D))),
    "directions by head": (
        "W has shape",
        lambda: performer.performer_attention(*X, drawn(H, 6, D)),
    ),
    "directions of RFA": ("W has shape", lambda: rfa.rfa_attention(*X, drawn(2, H, 6, D))),
    "directions of another width": (
        "W has shape",
        lambda: gated.gated_attention(*X, drawn(6, D + 1), -drawn(2, H, L).abs()),
    ),
    "directions of another number of heads": (
        "W has shape",
        lambda: gated.gated_attention(*X, drawn(3, 6, D), -drawn(2, H, L).abs()),
    ),
    "a gate for each head": (
        "log_g has shape",
        lambda: gated.gated_attention(*X, drawn(6, D), -drawn(H).abs()),
    ),
    "gates of more tokens": (
        "log_g has shape",
        lambda: gated.gated_attention(*X, drawn(6, D), -drawn(2, H, L + 1).abs()),
    ),
    "a gate above 1": (
        "log_g holds … above 1",
        lambda: gated.gated_attention(*X, drawn(6, D), drawn(2, H, L).abs()),
    ),
    "no square": ("A has shape", lambda: band.low_rank_and_band(drawn(3, 4), 1, 0)),
    "a row": ("A has shape", lambda: band.low_rank_and_band(drawn(4), 1, 0)),
    "no square to invert": ("M has shape", lambda: nystromformer.iterated_inverse(drawn(3, 4))),
    "a negative count": (
        "counts holds",
        lambda: em_rounds(ROUTES, counts=torch.tensor([[1.0, -0.5, 1.0]] * 2)),
    ),
    "a scale": ("scale = 'a'", lambda: csalr.csalr_attention(*X, 3, scale="a")),  # type: ignore[arg-type]
    "a scale of NaN": ("scale = nan", lambda: csalr.Csalr(3, scale=math.nan)),
    "β of NaN": ("beta_s = nan", lambda: em_rounds(ROUTES, beta_s=math.nan)),
    "no text at all": (
        "is empty",
        lambda: clustered.Clustered(3)(*(x[:0] for x in X), Where()),
    ),
}


@pytest.mark.parametrize("what", SHAPES)
def test_what_cannot_be_is_refused_by_name(what: str) -> None:
    says, call = SHAPES[what]
    refused(says, call)


def test_a_pool_is_a_function() -> None:
    of_no_kind("pool = 'mean'", pooling.PooledWindow, 4, 3, 3, pool="mean")
    of_no_kind("pool = 'mean'", pooling.pooled_window_attention, *X, 4, 3, 3, pool="mean")


NUMBERS: dict[str, tuple[Callable[[Tensor], Tensor], Tensor]] = {
    "cluster": (lambda cluster: clustered.attention_by_cluster(*X, cluster), CLUSTER),
    "kept": (lambda kept: informer.informer_attention(*X, kept), CLUSTER[..., :3]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_clusters_and_queries_are_whole_and_there(name: str) -> None:
    call, right = NUMBERS[name]
    wanted = call(right)
    for kind in (torch.int32, torch.int16):
        assert call(right.to(kind)).equal(wanted)
    for wrong in (right - 1, right + L):
        refused(f"{name} holds numbers from", call, wrong)
    for kind in (torch.float64, torch.bool, torch.uint8):
        of_no_kind(f"{name} is {kind}", call, right.to(kind))
    of_no_kind(f"{name} is list", call, right.tolist())


def test_edges_stand_where_the_queries_do() -> None:
    edges = torch.zeros(1, 1, 1, 2, dtype=torch.long, device="meta")
    refused("edges", edge_attention, *X, edges)


@pytest.mark.parametrize("part", range(3), ids=["queries", "keys", "values"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_weights_that_are_no_numbers_do_not_hide_in_a_model(part: int, wrong: float) -> None:
    for model in (GPT(11, 8, 2, 1), BERT(11, 8, 2, 1)):
        attend: Any = next(x for x in model.modules() if isinstance(x, MultiHeadAttention))
        attend.W_qkv.weight.data.view(3, 8, 8)[part, 0, 0] = wrong
        refused("holds NaN or infinity", model, torch.zeros(1, 5, dtype=torch.long))


MAKE: dict[str, Callable[[], nn.Module]] = {
    "Linformer": lambda: linformer.Linformer(H, L, 3),
    "memory": lambda: compressed.MemoryCompressed(D, H),
}


@pytest.mark.parametrize("name", MAKE)
def test_weights_that_are_no_numbers_do_not_hide_in_a_core(name: str) -> None:
    core = MAKE[name]().double()
    next(core.parameters()).data[0, 0, 0] = math.nan
    refused("holds NaN or infinity", core, *X, Where())


def test_a_gate_of_any_bias() -> None:
    """The share that a bias of −10⁴ lets through is below every number, and no error."""
    assert passed(-1e4) == 0.0 and passed(1e4) == 1.0
    assert 0 < passed(-720.0) < passed(-700.0) < passed(-699.0)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_vector_of_any_length_is_squashed(kind: torch.dtype) -> None:
    """To a length below 1, or that rounds to it; also where its square is beyond all numbers."""
    for length in (256.0, 6e4, 0.5 * torch.finfo(kind).max):
        s = torch.tensor([length, 0.0], dtype=kind, requires_grad=True)
        out = squash(s)
        torch.testing.assert_close(out, torch.tensor([1.0, 0.0], dtype=kind), atol=1e-4, rtol=0)
        (slope,) = torch.autograd.grad(out.sum(), s)
        assert slope.isfinite().all()
    small = torch.tensor([3.0, 4.0], dtype=kind)
    torch.testing.assert_close(squash(small), small / 5 * 25 / 26)


def test_rounds_of_em_keep_their_type_and_device() -> None:
    votes = 20 * ROUTES
    exact = em_rounds(votes)[-1]
    for kind in (torch.float16, torch.bfloat16):
        fit = em_rounds(votes.to(kind))[-1]
        assert fit.out.dtype == kind and fit.out.isfinite().all()
        torch.testing.assert_close(fit.mean.double(), exact.mean, atol=1.0, rtol=0.1)
    meta = em_rounds(votes.to("meta"), counts=torch.ones(2, 3, device="meta"))[-1]
    assert all(x.is_meta for x in meta)
    routing = EMRouting(12, 3).to("meta")
    assert routing(torch.empty(2, 3, 5, 4, device="meta")).is_meta


@pytest.mark.parametrize("steps", [None, 6, 12])
@pytest.mark.parametrize("make", ["Nyström", "CSALR"])
def test_an_inverse_is_taken_in_full_precision(make: str, steps: int | None) -> None:
    """Under automatic half precision, and for halves: forward and backward, as near to the exact
    numbers as their own last digit."""
    torch.manual_seed(1)
    X = [torch.randn(2, 2, 64, 8, dtype=torch.float64) for _ in range(3)]
    core: Core = nystromformer.Nystrom(2, 16, steps) if make == "Nyström" else csalr.Csalr(16)
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        leaves = [x.detach().to(kind).requires_grad_() for x in X]
        exact = core(*three(x.detach().double() for x in leaves), Where())[0]
        with torch.autocast("cpu", torch.bfloat16, enabled=kind != torch.float16):
            out = core(*three(leaves), Where())[0]
        out.float().sum().backward()
        assert all(x.grad is not None and x.grad.isfinite().all() for x in leaves)
        error = (out.double() - exact).abs().max() / exact.abs().max()
        assert error < 0.01


def test_a_core_that_remembers_its_spans_can_be_copied_and_sent() -> None:
    core = AdaptiveSpan(H, 6, 12).double()
    core(*X, Where(CAUSAL))
    assert core.z.requires_grad
    again = copy.deepcopy(core)
    assert again.z.equal(core.z) and not again.z.requires_grad and core.z.requires_grad
    torch.testing.assert_close(again(*X, Where(CAUSAL))[0], core(*X, Where(CAUSAL))[0])
