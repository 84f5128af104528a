"""Synthesizers: rows by hand, what they cannot see, the authors' code and its false friend."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch
from laws import B, Case, D, H, L, agree_with_gradients, qkv, streamed
from refusals import ranges, refused
from torch import Tensor

from tfviz import GPT, attention, patterns
from tfviz.cores import Where
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import attention_weights
from tfviz.priors import synthesizer as syn
from tfviz.priors.average_attention import averages_definition

CAUSAL = Where(patterns.causal())
close = partial(torch.testing.assert_close, atol=1e-9, rtol=1e-9)


def made(kind: str, length: int = L, **told: Any) -> Any:
    """With tables that are large enough to matter."""
    core = syn.Synthesizer(D, H, length, kind, **told).double()
    for p in core.parameters():
        p.data = torch.randn_like(p)
    return core


def weights(core: Any, Q: Tensor, K: Tensor, pattern: Any = None) -> Tensor:
    where = Where(pattern or patterns.full(), need_weights=True)
    A = core(Q, K, torch.zeros_like(K), where)[1]
    assert A is not None
    return A.expand(len(Q), *A.shape[1:])


# --- by hand --------------------------------------------------------------------------------------


def test_a_random_row_by_hand() -> None:
    """Scores 0, ln 2, ln 5: shares 1/8, 2/8, 5/8, whatever the queries and keys are."""
    core: Any = syn.Synthesizer(2, 1, 3).double()
    core.R.data[0] = torch.tensor([1.0, 2.0, 5.0]).double().log()
    A = weights(core, torch.randn(1, 1, 3, 2).double(), torch.randn(1, 1, 3, 2).double())
    close(A[0, 0, 1], torch.tensor([0.125, 0.25, 0.625]).double())
    Q, K = torch.randn(2, 1, 1, 3, 2).double()
    causal = weights(core, Q, K, patterns.causal())
    close(causal[0, 0, 1], torch.tensor([1.0, 2.0, 0.0]).double() / 3)


def test_dense_rows_by_hand() -> None:
    """q = (1, −2): the second number is cut off, so only the first row of W counts."""
    q = torch.tensor([[1.0, -2.0], [0.0, 1.0]])
    W = torch.tensor([[0.0, 1.0, 2.0, 0.0], [9.0, 0.0, 0.0, 3.0]])
    assert syn.dense_scores(q, W).tolist() == [[0, 1, 2, 0], [9, 0, 0, 3]]


def test_factorized_dense_rows_by_hand() -> None:
    """u = (1, 2) and w = (3, 5): all products, 3, 5, 6, 10."""
    one = torch.tensor([[1.0]])
    W_a, W_b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 5.0]])
    assert syn.outer_scores(one, W_a, W_b).tolist() == [[3, 5, 6, 10]]
    assert syn.outer_scores(2 * one, W_a, W_b).tolist() == [[12, 20, 24, 40]]


def test_the_mixture_by_hand() -> None:
    """σ(ln 3) = ¾: a quarter of what content says, three quarters of the table."""
    core: Any = syn.Synthesizer(1, 1, 2, content=True).double()
    core.alpha.data.fill_(math.log(3))
    core.R.data[0] = torch.tensor([0.0, 4.0])
    Q, K = torch.ones(1, 1, 2, 1).double(), torch.tensor([8.0, 0.0]).double().view(1, 1, 2, 1)
    close(weights(core, Q, K)[0, 0, 0], torch.tensor([2.0, 3.0]).double().softmax(-1))


# --- what they see and what they do not -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "factorized random"])
def test_a_random_map_is_the_same_for_all_texts(kind: str) -> None:
    core, (Q, K, _), (other, keys, _) = made(kind), qkv(), qkv()
    assert weights(core, Q, K).equal(weights(core, other, keys))


@pytest.mark.parametrize("kind", ["dense", "factorized dense"])
def test_a_dense_row_changes_with_its_own_token_only(kind: str) -> None:
    core, (Q, K, _) = made(kind), qkv()
    before, other = weights(core, Q, K), Q.clone()
    other[:, :, 3] = torch.randn_like(other[:, :, 3])
    changed = (weights(core, other, torch.randn_like(K)) - before).abs().amax((0, 1, 3))
    assert (changed > 1e-3).tolist() == [n == 3 for n in range(L)]


@pytest.mark.parametrize("kind", syn.KINDS)
def test_it_is_not_equivariant_to_order(kind: str) -> None:
    """A text in another order is not answered in that order, as attention would."""
    core, X, order = made(kind), qkv(), torch.arange(L).flip(0)
    turned = core(*(x[:, :, order] for x in X), Where())[0]
    assert (turned - core(*X, Where())[0][:, :, order]).abs().max() > 0.1
    Q, K, V = X
    again = attention(Q[:, :, order], K[:, :, order], V[:, :, order])[0]
    close(again, attention(Q, K, V)[0][:, :, order])


def test_the_rank_of_two_factors() -> None:
    core = made("factorized random", 20, k=3)
    Q = torch.zeros(1, H, 20, D, dtype=torch.float64)
    assert torch.linalg.matrix_rank(core.scores(Q, 0)).tolist() == [3] * H
    assert torch.linalg.matrix_rank(made("random", 20).scores(Q, 0)).tolist() == [20] * H


def test_tables_of_zeros_are_averages() -> None:
    core, (Q, K, V) = made("random"), qkv()
    core.R.data.zero_()
    close(core(Q, K, V, CAUSAL)[0], averages_definition(V, patterns.causal().mask(L))[0])


@pytest.mark.parametrize("kind", syn.KINDS)
def test_a_mixture_can_be_content_alone(kind: str) -> None:
    core, (Q, K, V) = made(kind, content=True), qkv()
    core.alpha.data.fill_(-60.0)
    close(core(Q, K, V, CAUSAL)[0], attention(Q, K, V, patterns.causal())[0])


def test_a_random_layer_cannot_look_up() -> None:
    """A row of fixed weights answers two texts, with the right token at place 0 and at place 1,
    with the same blend of both places: it is wrong by ½ or more for one of them."""
    core = made("random", 3)
    Q, K, _ = qkv(3)
    errors = []
    for place in (0, 1):
        V = torch.zeros(B, H, 3, D, dtype=torch.float64)
        V[:, :, place] = 1.0  # all other values are 0, and the answer should be 1
        errors.append(1 - core(Q, K, V, CAUSAL)[0][0, 0, 2, 0].item())
    assert max(errors) >= 0.5


def test_parameters_are_counted() -> None:
    def count(**told: Any) -> int:
        return sum(p.numel() for p in syn.Synthesizer(8, 2, 36, **told).parameters())

    assert count() == 2 * 36 * 36
    assert count(kind="factorized random", k=5) == 2 * 2 * 36 * 5
    assert count(kind="dense") == 8 * 36
    assert count(kind="factorized dense") == 8 * (6 + 6)
    assert count(kind="dense", content=True) == 8 * 36 + 1


def test_drawn_tables_can_stay_as_they_are() -> None:
    core: Any = syn.Synthesizer(D, H, L, trained=False)
    assert not core.R.requires_grad and core.R.std() == pytest.approx(syn.START, abs=0.05)


# --- in models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("kind", syn.KINDS)
def test_parts_of_a_text_go_on_where_the_last_one_ended(kind: str, content: bool) -> None:
    core = partial(syn.Synthesizer, length=20, kind=kind, content=content)
    attend = MultiHeadAttention(16, 2, core=core, pattern=patterns.causal()).double()
    X, cache = torch.randn(2, 20, 16, dtype=torch.float64), dict[Any, Any]()
    torch.testing.assert_close(streamed(attend, X, [1, 12, 3, 4], cache), attend(X))
    K, V = cache[attend].state
    assert V.shape == (2, 2, 20, 8) and K.shape[-1] == (8 if content else 0)


def test_a_model_shows_its_weights() -> None:
    model = GPT(11, 16, 2, 2, core=partial(syn.Synthesizer, length=6))
    maps = [attention_weights(model, torch.full((1, 6), n)) for n in (0, 3)]
    for one, other in zip(*(x.values() for x in maps), strict=True):
        assert one.equal(other)


# --- the code of others ---------------------------------------------------------------------------


def mesh(mode: str, Q: Tensor, K: Tensor, V: Tensor, *tables: Tensor) -> Tensor:
    """`synthetic_attention` of Mesh TensorFlow in einsums, with a causal bias.

    Its logits are not divided by √d: the initial weights are.
    """
    n = V.shape[2]
    if mode == "random":
        logits = tables[0].transpose(0, 1)[:n, :, :n].transpose(0, 1)
    elif mode == "dense_minus":
        logits = torch.einsum("bhld,dm->bhlm", Q.relu(), tables[0])[..., :n]
    else:
        assert mode == "random_plus_alpha"
        share = tables[1].sigmoid()
        logits = (1 - share) * (Q @ K.mT) + share * tables[0][:, :n, :n]
    bias = torch.full((n, n), -1e9, dtype=V.dtype).triu(1)
    return (logits + bias).softmax(-1) @ V


def test_parity_with_the_authors_code() -> None:
    Q, K, V = qkv(7)
    for mode, core in (("random", made("random")), ("dense_minus", made("dense"))):
        table = core.R if mode == "random" else core.W
        close(core(Q, K, V, CAUSAL)[0], mesh(mode, Q, K, V, table))
    both = made("random", content=True)
    theirs = mesh("random_plus_alpha", Q, K / math.sqrt(D), V, both.R, both.alpha)
    agree_with_gradients(both(Q, K, V, CAUSAL)[0], theirs, [both.R, both.alpha])


def test_the_false_friend_has_one_row() -> None:
    """Mesh TensorFlow's "factorized": both factors have the axes (tmp, heads, memory_length), and
    the einsum copies their product over the queries. So its scores have rank 1 in place of k, and
    without a mask each query gets the mean of all values with the same weights."""
    k, n = 3, 12
    R_1, R_2 = torch.randn(2, k, H, n, dtype=torch.float64)
    theirs = torch.einsum("khm,khm->hm", R_1, R_2)[:, None].expand(H, n, n)  # (heads, length, m)
    assert torch.linalg.matrix_rank(theirs).tolist() == [1] * H
    A = theirs.softmax(-1)
    assert A[:, :1].expand_as(A).equal(A)
    core = made("factorized random", n, k=k)
    core.R_1.data, core.R_2.data = (R.permute(1, 2, 0) for R in (R_1, R_2))
    Q, K, _ = qkv(n)
    ours = core.scores(Q, 0)
    assert torch.linalg.matrix_rank(ours).tolist() == [k] * H
    close(ours, torch.einsum("khl,khm->hlm", R_1, R_2))  # one factor by query, one by key
    assert (weights(core, Q, K)[0] - A).abs().max() > 0.1


# --- refusals -------------------------------------------------------------------------------------


def test_bad_input_is_named() -> None:
    Q, K, V = (x.detach() for x in qkv())
    make = partial(syn.Synthesizer, D, H)
    refused("kind = 'sparse'; choose from random, … dense", make, L, "sparse")
    ranges(make, length=(L, 1), k=(8, 1))
    ranges(partial(syn.Synthesizer, length=L), d_head=(8, 1), h=(2, 1))
    for kind in syn.KINDS:
        core = made(kind, L - 1)
        refused(f"{L} tokens … length = {L - 1}; make it with length={L}", core, Q, K, V, CAUSAL)
    core, kept = made("random"), list[Any]()
    refused("tables are for 4 heads, Q has 2", core, *(x[:, :2] for x in (Q, K, V)), CAUSAL)
    refused("leave cross-attention as it is", core, Q, K, V, Where(crosses=True))
    core(Q, K, V, Where(patterns.causal(), keep=kept.append))
    again = Where(patterns.causal(), L, state=kept.pop())
    refused("the text has 18 tokens … length = 9", core, Q, K, V, again)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def guessed(core: Any, Q: Tensor) -> Tensor:
    """B by its definition, number by number where that is how it is written."""
    n = Q.shape[2]
    if core.kind == "random":
        return core.R[:, :n, :n].expand(len(Q), -1, -1, -1)
    if core.kind == "factorized random":
        rows = [core.R_1[:, i, None] * core.R_2[:, :n] for i in range(n)]
        return torch.stack(rows, 1).sum(-1).expand(len(Q), -1, -1, -1)
    hidden = torch.where(Q > 0, Q, 0.0)
    if core.kind == "dense":
        return torch.einsum("bhid,dj->bhij", hidden, core.W[:, :n])
    b = core.W_b.shape[1]
    u, w = hidden @ core.W_a, hidden @ core.W_b
    return torch.stack([u[..., j // b] * w[..., j % b] for j in range(n)], -1)


def defined(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    scores = guessed(core, Q)
    if core.alpha is not None:
        share = 1 / (1 + torch.exp(-core.alpha))
        scores = share * scores + (1 - share) * torch.einsum("bhid,bhjd->bhij", Q, K) / D**0.5
    e = torch.exp(scores) * mask
    A = e / e.sum(-1, keepdim=True).clamp(min=1e-300)
    return A @ V, A


def case(kind: str, content: bool = False, **told: Any) -> Case:
    def core(length: int) -> Any:
        return syn.Synthesizer(D, H, length, kind, content=content)

    return Case(lambda: core(12), defined, sized=core, **told)


BEYOND = "a product of two guesses leaves the range of float16 before a score of attention does"


CASE = Case(
    lambda: syn.Synthesizer(D, H, 12),
    defined,
    sized=lambda n: syn.Synthesizer(D, H, n),
    variants={
        "factorized random": case("factorized random"),
        "dense": case("dense"),
        "factorized dense": case(
            "factorized dense", but={"any_real_type": BEYOND, "loud_scores_stay_finite": BEYOND}
        ),
        "mixture": case("random", content=True),
        "dense mixture": case("dense", content=True),
    },
    mutants=[
        (
            "a factor by key alone",
            "self.R_1[:, rows] @",
            "self.R_1[:, :1].expand_as(self.R_1[:, rows]) @",
        ),
        (
            "rows from the start of the table",
            "slice(start, start + Q.shape[2])",
            "slice(0, Q.shape[2])",
        ),
        ("a hidden layer without its ReLU", "return F.relu(Q) @ W", "return Q @ W"),
        (
            "places in the order of the other factor",
            "[..., :, None] * dense_scores(Q, W_b)[..., None, :]",
            "[..., None, :] * dense_scores(Q, W_b)[..., :, None]",
        ),
        (
            "a mixture the other way round",
            "(1 - share) * Q, share * B",
            "share * Q, (1 - share) * B",
        ),
        ("keys kept for nothing", "K[..., :0] if self.alpha is None else K", "K"),
        ("tables that are always trained", "requires_grad=trained", "requires_grad=True"),
    ],
)
