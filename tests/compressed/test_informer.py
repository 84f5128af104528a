"""Informer: which queries attend, what the others get, and where the two codes do otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from laws import Case, D, Function, H, L, agree_with_gradients, close, qkv, work_grows_no_faster
from refusals import ranges, refused
from three import three
from torch import Tensor

from tfviz import BERT, GPT, attention
from tfviz.compressed import informer as inf
from tfviz.cores import Where


def test_two_queries_by_hand() -> None:
    """Scores 0, 0, 0 and 0, ln 2, ln 5: an even row, and one of 1 : 2 : 5."""
    Q = torch.tensor([[0.0], [1.0]])
    K = torch.tensor([0.0, math.log(2), math.log(5)])[:, None]
    torch.testing.assert_close(
        inf.measure(Q, K), torch.tensor([math.log(3), math.log(8) - math.log(10) / 3])
    )
    wanted = torch.tensor([0.0, math.log(5) - math.log(10) / 3], dtype=torch.float64)
    torch.testing.assert_close(inf.max_mean(Q, K), wanted, atol=1e-6, rtol=0)
    V = torch.tensor([10.0, 20.0, 60.0])[:, None]
    out, A = inf.informer_definition(Q, K, V, torch.tensor([1]))
    torch.testing.assert_close(A, torch.tensor([[1 / 3] * 3, [1 / 8, 2 / 8, 5 / 8]]))
    torch.testing.assert_close(out, torch.tensor([[30.0], [43.75]]))


def test_how_many_by_hand() -> None:
    """⌈ln 720⌉ = 7 and ⌈ln 96⌉ = 5, five times each; never more than there are, never none."""
    assert [inf.many(5, n) for n in (720, 96, 9, 1)] == [35, 25, 9, 1]
    assert inf.samples(720, 96, 5).shape == (720, 25)


# --- the measure ----------------------------------------------------------------------------------


def test_the_measure_is_a_divergence_from_the_even_row() -> None:
    """KL(even ‖ a_i) = Σ (1/L) ln((1/L)/a_ij), so M is this plus ln L."""
    Q, K, V = qkv()
    A = attention(Q, K, V)[1]
    divergence = -(L * A).log().mean(-1)
    torch.testing.assert_close(inf.measure(Q, K), divergence + math.log(L))
    other = (A * (L * A).log()).sum(-1)  # KL(a_i ‖ even): the other way round is another number
    assert (inf.measure(Q, K) - other - math.log(L)).abs().max() > 0.01


def test_the_measure_lies_between_its_bounds() -> None:
    Q, K, _ = qkv()
    M, most = inf.measure(3 * Q, K), inf.max_mean(3 * Q, K)
    assert M.min() >= math.log(L) - 1e-12
    assert (most <= M).all() and (most + math.log(L) >= M).all()


def test_an_even_query_is_the_last_to_be_chosen() -> None:
    Q, K, _ = qkv()
    Q[:, :, 4] = 0
    torch.testing.assert_close(inf.measure(Q, K)[..., 4], torch.full((2, H), math.log(L)).double())
    core = inf.Informer(2)
    assert core.kept(Q, K).shape[-1] == 6 and not (core.kept(Q, K) == 4).any()


def test_sampled_from_all_keys_it_is_exact() -> None:
    Q, K, _ = qkv()
    every = torch.stack([torch.randperm(L) for _ in range(L)])
    close(inf.max_mean(Q, K, every), inf.max_mean(Q, K))
    close(inf.max_mean(Q, K, every, by_length=True), inf.max_mean(Q, K))
    few = every[:, :3]
    s = (Q @ K.mT / math.sqrt(D)).gather(-1, few.expand(2, H, L, 3))
    close(inf.max_mean(Q, K, few), s.amax(-1) - s.mean(-1))
    Q, K = (torch.randn(1, 1, n, 4, dtype=torch.float64) for n in (600, 50))
    at = inf.samples(600, 50)
    s = (Q @ K.mT / 2).gather(-1, at[None, None])
    close(inf.max_mean(Q, K, at), s.amax(-1) - s.mean(-1))  # longer than what is made at a time


def test_two_divisors_choose_other_queries() -> None:
    """max − Σ/U and max − Σ/L_k are not in the same order: the code's estimate counts the mean
    less. Over all keys, U = L_k, they are the same."""
    dice = torch.Generator().manual_seed(0)
    Q, K = torch.randn(2, 1, 1, 256, 16, generator=dice, dtype=torch.float64) + 0.3
    at = inf.samples(256, 256)
    ours, theirs = (inf.max_mean(Q, K, at, by_length=x).topk(30).indices for x in (False, True))
    shared = len({*ours.flatten().tolist()} & {*theirs.flatten().tolist()})
    assert 10 < shared < 28


def test_keys_are_drawn_with_replacement_once_for_all() -> None:
    at = inf.samples(50, 20)
    assert any(len({*row}) < len(row) for row in at.tolist())
    assert inf.samples(50, 20).equal(at) and not inf.samples(50, 20, seed=1).equal(at)
    Q, K, _ = qkv()
    Q, K = (x[:1].expand(2, -1, -1, -1) for x in (Q, K))
    kept = inf.Informer(1).kept(Q, K)
    assert kept[0].equal(kept[1])


# --- limits ---------------------------------------------------------------------------------------


def test_with_all_queries_it_is_attention() -> None:
    leaves = three(x.requires_grad_() for x in qkv())
    got = inf.informer_attention(*leaves, torch.arange(L).expand(2, H, L))
    agree_with_gradients(got, attention(*leaves)[0], leaves)
    close(inf.Informer(3)(*leaves, Where())[0], attention(*leaves)[0])  # c ⌈ln 9⌉ = 9


def test_lazy_queries_get_the_mean_and_no_gradient() -> None:
    Q, K, V = three(x.requires_grad_() for x in qkv())
    kept = inf.Informer(1).kept(Q, K)
    out = inf.informer_attention(Q, K, V, kept)
    lazy = torch.ones(2, H, L).scatter(2, kept, 0.0).bool()
    assert lazy.sum() == 2 * H * 6
    close(out[lazy], V.mean(2, keepdim=True).expand_as(V)[lazy])
    (grad,) = torch.autograd.grad(out.sum(), Q)
    assert (grad[lazy] == 0).all() and (grad[~lazy] != 0).any(-1).all()


# --- the future -----------------------------------------------------------------------------------


def test_the_masked_form_looks_ahead_when_it_chooses() -> None:
    """Masked rows read no later key, but a later query takes a place among the u, and a later key
    among the sampled ones changes a rating: either changes what an earlier query gets."""
    Q, K, V = qkv()
    core = inf.Informer(1)

    def answers(Q: Tensor, K: Tensor) -> Tensor:
        return inf.informer_attention(Q, K, V, core.kept(Q, K), causal=True)

    for n in (0, 1):
        later = [x.clone() for x in (Q, K)]
        later[n][:, :, -1] *= -40
        change = (answers(*later) - answers(Q, K))[:, :, :-1]
        assert change.abs().max() > 0.01
    kept = core.kept(Q, K)
    fixed = inf.informer_attention(Q, K, V, kept, causal=True)
    moved = three(torch.cat([x[:, :, :-1], -9 * x[:, :, -1:]], 2) for x in (Q, K, V))
    with_same = inf.informer_attention(*moved, kept, causal=True)
    close(with_same[:, :, :-1], fixed[:, :, :-1])  # the choice alone is what leaks


def test_a_causal_model_is_refused_and_an_encoder_takes_it() -> None:
    t = torch.zeros(1, 8).long()
    refused(
        "which queries attend depends on all … in an encoder",
        GPT(11, 16, 2, 2, core=inf.Informer),
        t,
    )
    assert BERT(11, 16, 2, 2, core=inf.Informer)(t).isfinite().all()


def test_sums_so_far_are_no_shares() -> None:
    """The masked form of the authors' code: row i of a lazy query sums to i + 1."""
    Q, K, V = qkv()
    kept = torch.tensor([2, 5]).expand(2, H, 2)
    for sums in (False, True):
        out = inf.informer_attention(Q, K, V, kept, causal=True, sums=sums)
        wanted, A = inf.informer_definition(Q, K, V, kept, causal=True, sums=sums)
        close(out, wanted)
        assert (A.triu(1) == 0).all()
        rows = torch.arange(1.0, L + 1) if sums else torch.ones(L)
        close(A.sum(-1)[0, 0], rows.index_fill(0, torch.tensor([2, 5]), 1.0).double())


# --- the code of others ---------------------------------------------------------------------------


def informer2020(Q: Tensor, K: Tensor, V: Tensor, at: Tensor, c: int, masked: bool) -> Tensor:
    """`ProbAttention` of zhouhaoyi/Informer2020, one head, query by query: products without √d are
    rated, the sum is divided by L_K, scores are divided by √d after that."""
    Lq, Lk = len(Q), len(K)
    M = []
    for q, keys in zip(Q, at, strict=True):
        s = torch.stack([q @ K[j] for j in keys])
        M.append(max(s) - sum(s) / Lk)
    u = min(c * math.ceil(math.log(Lq)), Lq)
    best = sorted(range(Lq), key=lambda i: -M[i])[:u]
    out = []
    for i in range(Lq):
        if i in best:
            seen = slice(0, i + 1) if masked else slice(None)
            out.append((Q[i] @ K[seen].mT / math.sqrt(Q.shape[-1])).softmax(-1) @ V[seen])
        else:
            out.append(V[: i + 1].sum(0) if masked else V.mean(0))
    return torch.stack(out)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("c", [1, 2, 3])
def test_parity_with_the_formulas_of_informer2020(c: int, masked: bool) -> None:
    Q, K, V = qkv()
    at = inf.samples(L, L, c)
    kept = inf.max_mean(Q, K, at, by_length=True).topk(inf.many(c, L), -1).indices
    got = inf.informer_attention(Q, K, V, kept, causal=masked, sums=masked)
    wanted = [informer2020(Q[0, n], K[0, n], V[0, n], at, c, masked) for n in range(H)]
    close(got[0], torch.stack(wanted))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("n", [L, 20])
def test_parity_with_hugging_face(n: int, masked: bool) -> None:
    """One draw of keys for all queries, texts and heads, min(c L ⌈ln(L + 1)⌉, L) of them: so all L,
    drawn with replacement. That is quadratic, and ln(L + 1) where the authors have ln L."""
    theirs = pytest.importorskip("transformers.models.informer.modeling_informer")
    layer = theirs.InformerProbSparseAttention(H * D, H, sampling_factor=2, is_decoder=masked)
    layer = layer.double().eval()
    X = torch.randn(2, n, H * D, dtype=torch.float64)
    mask = torch.full((n, n), -math.inf, dtype=torch.float64).triu(1).expand(2, 1, n, n)
    torch.manual_seed(3)
    with torch.no_grad():
        wanted = layer(X, attention_mask=mask if masked else None)[0]
    torch.manual_seed(3)
    drawn = torch.randint(0, n, (n,))
    assert len(drawn.unique()) < n

    def heads(project: Any) -> Tensor:
        return project(X).unflatten(-1, (H, D)).transpose(1, 2)

    Q, K, V = (heads(x) for x in (layer.q_proj, layer.k_proj, layer.v_proj))
    u = min(2 * math.ceil(math.log(n + 1)), n)
    assert (u == inf.many(2, n)) == (n == L)  # ⌈ln 21⌉ is 4, ⌈ln 20⌉ is 3
    kept = inf.max_mean(Q, K, drawn.expand(n, n), by_length=True).topk(u, -1).indices
    out = inf.informer_attention(Q, K, V, kept, causal=masked, sums=masked)
    got = layer.out_proj(out.transpose(1, 2).flatten(2))
    # running sums are made in float32 there
    torch.testing.assert_close(got, wanted, atol=1e-5 if masked else 1e-9, rtol=1e-5)


# --- costs and refusals ---------------------------------------------------------------------------


def test_work_grows_as_l_log_l() -> None:
    """c ⌈ln L⌉ goes from 7 to 9 between 1,024 and 4,096, that is with L^1.18 in all."""
    work_grows_no_faster(lambda L: lambda *X: inf.Informer(1)(*X, Where())[0], 1.25)


def test_bad_input_is_named() -> None:
    Q, K, V = qkv()
    attend = inf.informer_attention
    none = torch.zeros(2, H, 0).long()
    refused("kept has shape (2, 4, 0), Q (2, 4, 9, 8); give", attend, Q, K, V, none)
    refused("kept has shape (4, 2)", attend, Q, K, V, torch.zeros(4, 2).long())
    refused("9 queries and 8 keys", attend, Q, K[:, :, 1:], V[:, :, 1:], none, causal=True)
    ranges(inf.Informer, c=(5, 1), seed=(0, 0))
    ranges(partial(inf.many, 2), L=(5, 1))


def test_a_seed_draws_other_keys_and_they_rate_the_queries() -> None:
    torch.manual_seed(0)
    Q, K = torch.randn(2, 1, H, 60, D, dtype=torch.float64)
    rated = [inf.Informer(1, seed).kept(Q, K) for seed in (0, 1)]
    assert not rated[0].equal(rated[1])
    for seed, kept in enumerate(rated):
        at = inf.samples(60, 60, 1, seed)
        assert kept.equal(inf.max_mean(Q, K, at).topk(inf.many(1, 60), -1).indices)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def defined(
    core: inf.Informer, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    return inf.informer_definition(Q, K, V, core.kept(Q, K))


def every_third(causal: bool) -> Function:
    def call(form: Callable[..., Any]) -> Callable[..., Any]:
        def out(Q: Tensor, K: Tensor, V: Tensor) -> Any:
            n = Q.shape[-2] if Q.dim() > 1 else 1
            kept = torch.arange(0, max(n, 1), 3).expand(*Q.shape[:-2], -1)
            return form(Q, K, V, kept, causal)

        return out

    return Function(call(inf.informer_attention), call(inf.informer_definition))


CASE = Case(
    lambda: inf.Informer(1),
    defined,
    answers="whole",
    causal=False,
    grows=1.25,
    functions={"Informer": every_third(False), "masked Informer": every_third(True)},
    mutants=[
        ("Informer that ignores its seed", "self.c, self.seed)", "self.c)"),
        ("Informer that rates by the sum of exponentials", "s.amax(-1) - s.sum(-1)", "s.amax(-1)"),
        (
            "Informer that keeps the most even queries",
            "max_mean(Q, K, at).topk",
            "(-max_mean(Q, K, at)).topk",
        ),
        (
            "lazy queries that get the sum",
            "V.to(kind).mean(2, keepdim=True)",
            "V.to(kind).sum(2, keepdim=True)",
        ),
        ("a running mean that counts from 0", "torch.arange(1, Lk + 1", "torch.arange(Lk"),
        (
            "a mask that reads one key ahead",
            "wide >= torch.arange(Lk",
            "wide + 1 >= torch.arange(Lk",
        ),
        ("a measure without its mean", "s.logsumexp(-1) - s.mean(-1)", "s.logsumexp(-1)"),
        (
            "Informer whose shared heads take turns",
            "X.repeat_interleave(Q.shape[1] // X.shape[1], 1)",
            "X.repeat(1, Q.shape[1] // X.shape[1], 1, 1)",
        ),
    ],
)
