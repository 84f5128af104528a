"""Random feature attention: what the features average to, and where their estimate breaks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import (
    Case,
    D,
    Function,
    H,
    agree_with_gradients,
    qkv,
    work_grows_no_faster,
)
from random_directions import directions_are_saved, drawn
from refusals import ranges, refused
from streams import (
    CAUSAL,
    it_writes_and_resumes_with_one_size,
    parts_of_a_long_text_go_on,
    small_gpt,
)
from three import three
from torch import Generator, Tensor

from tfviz import BERT, GPT, attention, implied_map, patterns
from tfviz.compressed import rfa
from tfviz.compressed.performer import Performer
from tfviz.compressed.rfa_causal import GatedRFA
from tfviz.cores import Where
from tfviz.training import next_token, seeded, train


def unit(angle: float) -> Tensor:
    """A vector of length 1 in the plane, its angle in degrees."""
    return torch.tensor([[math.cos(math.radians(angle)), math.sin(math.radians(angle))]]).double()


# --- numbers by hand ------------------------------------------------------------------------------


def test_one_direction_by_hand() -> None:
    """w x = 90° and w y = 30°: the features are (1, 0) and (½, √3/2), their product is cos 60°."""
    W = torch.tensor([[math.pi / 2, math.pi / 6]]).double()
    x, y = unit(0), unit(90)
    features = torch.cat([rfa.fourier_features(z, W) for z in (x, y)])
    wanted = torch.tensor([[1.0, 0.0], [0.5, 0.75**0.5]]).double()
    torch.testing.assert_close(features, wanted)
    A = rfa.rfa_definition(x, torch.cat([x, y]), torch.cat([x, y]), W)[1]
    torch.testing.assert_close(A, torch.tensor([[2 / 3, 1 / 3]]).double())


def test_two_directions_are_averaged_and_may_be_negative() -> None:
    """cos 60° and cos 180° make −¼; the sum 1 − ¼ has a weight beyond 1 and one below 0."""
    W = torch.tensor([[math.pi / 2, math.pi / 6], [math.pi, 0.0]]).double()
    x, y = unit(0), unit(90)
    product = rfa.fourier_features(x, W) @ rfa.fourier_features(y, W).T
    torch.testing.assert_close(product, torch.tensor([[-0.25]]).double())
    X = torch.cat([x, y])
    A = rfa.rfa_definition(x, X, X, W)[1]
    torch.testing.assert_close(A, torch.tensor([[4 / 3, -1 / 3]]).double())
    alone = rfa.rfa_definition(x, y, y, W)[1]  # −¼ is divided by 0.1, the least
    torch.testing.assert_close(alone, torch.tensor([[-2.5]]).double())


def test_the_equations_in_loops() -> None:
    """Section 3.1 of the paper, a token at a time, and its recurrent form with S and z."""
    Q, K, V = (x[1, 0] for x in qkv(11))
    W = drawn(32, D)

    def phi(x: Tensor) -> Tensor:
        parts = [torch.sin(w @ x / x.norm()) for w in W] + [torch.cos(w @ x / x.norm()) for w in W]
        return torch.stack(parts) / len(W) ** 0.5

    rows, recurrent = [], []
    S, z = torch.zeros(64, D).double(), torch.zeros(64).double()
    for q, k, v in zip(Q, K, V, strict=True):
        S, z = S + torch.outer(phi(k), v), z + phi(k)
        recurrent.append(phi(q) @ S / max(phi(q) @ z, torch.tensor(0.1)))
        shares = torch.stack([phi(q) @ phi(other) for other in K])
        rows.append(shares @ V / max(shares.sum(), torch.tensor(0.1)))
    X = three(x[None, None] for x in (Q, K, V))
    torch.testing.assert_close(rfa.rfa_attention(*X, W)[0, 0], torch.stack(rows))
    torch.testing.assert_close(rfa.rfa_attention(*X, W, True)[0, 0], torch.stack(recurrent))


# --- the features ---------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 5, 8, 19])
def test_directions_are_orthogonal_in_blocks(m: int) -> None:
    W = F.normalize(drawn(m, 8), dim=1)
    for block in W.split(8):
        torch.testing.assert_close(
            block @ block.T, torch.eye(len(block)).double(), atol=1e-6, rtol=0
        )
    if m > 8:
        assert (W[:8] @ W[8:].T).abs().max() > 0.1


def test_lengths_are_those_of_gaussian_vectors() -> None:
    """χ_d: their squares have the mean d and the variance 2d. Directions of one length do not."""
    squares = rfa.directions(40_000, 4, rng=Generator().manual_seed(1)).pow(2).sum(1)
    assert abs(squares.mean() - 4) < 0.05 and abs(squares.var() - 8) < 0.3


def test_each_block_is_a_random_rotation() -> None:
    """Each number of a direction is as often positive as negative, and all have one variance. The
    first row of a QR decomposition as it comes would be negative in its first place always."""
    W = rfa.directions(4 * 4000, 4, rng=Generator().manual_seed(2)).view(4000, 4, 4)
    assert (W > 0).float().mean(0).sub(0.5).abs().max() < 0.05
    assert W.pow(2).mean(0).sub(1).abs().max() < 0.1


@pytest.mark.parametrize("orthogonal", [True, False])
def test_the_mean_is_the_gaussian_kernel(orthogonal: bool) -> None:
    """Within four standard errors of 4,000 drawings; at 0° it is exact in each."""
    for angle in (0, 40, 90, 180):
        x, y = 1.3 * unit(0), 1.3 * unit(angle)
        true = math.exp(-(float((x - y).norm()) ** 2) / 2)
        found = torch.stack(
            [
                (rfa.fourier_features(x, W) @ rfa.fourier_features(y, W).T).squeeze()
                for W in drawn(2 * 4000, 2, 3, orthogonal).split(2)
            ]
        )
        assert abs(found.mean() - true) <= 4 * found.std() / 4000**0.5 + 1e-12
        if angle == 0:
            torch.testing.assert_close(found, torch.ones_like(found))


def test_features_have_length_one_and_the_error_falls_with_the_root_of_their_number() -> None:
    x = F.normalize(torch.randn(64, 8, generator=Generator().manual_seed(0)).double(), dim=-1)
    true = (-(torch.cdist(x, x) ** 2) / 2).exp()
    errors = []
    for m in (64, 256, 1024, 4096):
        phi = rfa.fourier_features(x, drawn(m, 8, orthogonal=False))
        torch.testing.assert_close(phi.norm(dim=-1), torch.ones(64).double())
        errors.append((phi @ phi.T - true).pow(2).mean().sqrt())
    ratios = [float(a / b) for a, b in pairwise(errors)]
    assert all(1.5 < ratio < 2.7 for ratio in ratios), ratios


def test_many_features_give_softmax_attention_of_vectors_of_length_one() -> None:
    """With a temperature, and with σ, which multiplies: a large σ makes a narrow kernel."""
    torch.manual_seed(0)
    Q, K, V = qkv(12)
    core = rfa.RFA(H, D, 16384, tau=0.8).double()
    core.sigma.data.uniform_(0.5, 1.2)
    q, k = (core.sigma * F.normalize(x, dim=-1) / 0.8 for x in (Q, K))
    scores = -((q[:, :, :, None] - k[:, :, None]) ** 2).sum(-1) / 2
    wanted = scores.softmax(-1) @ V
    assert (core(Q, K, V, Where())[0] - wanted).abs().max() < 0.1
    core.sigma.data.fill_(1.0)
    exact = attention(F.normalize(Q, dim=-1) * D**0.5 / 0.64, F.normalize(K, dim=-1), V)[0]
    assert (core(Q, K, V, Where())[0] - exact).abs().max() < 0.1


def test_keys_that_are_not_normalised_do_not_cancel() -> None:
    """The factor e^(|k|²/2) of a key differs from key to key, and is left out of what is summed."""
    k = torch.stack([unit(0)[0], 2 * unit(0)[0]])
    W = drawn(4096, 2)
    products = rfa.fourier_features(unit(0), W) @ rfa.fourier_features(k, W).T
    shares = products / products.sum()
    softmax = (unit(0) @ k.T).softmax(-1)
    assert shares[0, 0] > 0.6 > 0.4 > softmax[0, 0]
    repaired = products * (k.pow(2).sum(-1) / 2).exp()
    torch.testing.assert_close(repaired / repaired.sum(), softmax, atol=0.02, rtol=0)


def test_estimates_go_negative() -> None:
    """No row is one of shares then, and a sum below the least is raised."""
    Q, K, V = qkv(24)
    A = implied_map(rfa.RFA(H, D, 4).double(), Q, K, V, CAUSAL)
    assert (A < 0).any() and (A.sum(-1) < 0.9).any()
    many = implied_map(rfa.RFA(H, D, 4096).double(), Q, K, V, CAUSAL)
    assert (many > 0).sum() == 2 * H * 24 * 25 // 2
    torch.testing.assert_close(many.sum(-1), torch.ones(2, H, 24).double())


# --- in a model -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [5, 64, 150])
def test_gradients_of_the_masked_definition(length: int) -> None:
    leaves = three(x[:, :2].requires_grad_() for x in qkv(length))
    W = drawn(16, D)
    wanted = rfa.rfa_definition(*leaves, W, patterns.causal().mask(length))[0]
    agree_with_gradients(rfa.rfa_attention(*leaves, W, True), wanted, leaves)


def gpt() -> GPT:
    return small_gpt(partial(rfa.RFA, D=12))


def test_what_it_keeps_has_one_size_and_goes_on() -> None:
    parts_of_a_long_text_go_on(rfa.RFA)
    # layers, heads, features, values and the sum
    it_writes_and_resumes_with_one_size(gpt, 2 * 2 * 24 * 9)


def test_directions_are_saved() -> None:
    directions_are_saved(partial(rfa.RFA, D=12))


def test_the_same_seed_draws_the_same_directions_and_redrawing_others() -> None:
    core = rfa.RFA(2, 4, 6)
    core.redraw(Generator().manual_seed(3))
    first = core.W.clone()
    assert not first[0].equal(first[1])  # each head has its own
    core.redraw()
    assert not core.W.equal(first)
    core.redraw(Generator().manual_seed(3))
    assert core.W.equal(first)


@pytest.mark.parametrize("core", [partial(rfa.RFA, D=4), GatedRFA, partial(Performer, m=4)])
def test_a_training_redraws_in_every_layer_at_its_steps_and_resumes(
    core: Any, tmp_path: Path
) -> None:
    """Batches are those of a training that keeps its directions, so both agree until the first
    redrawing. Interrupted, it ends with the same bits."""
    batch = next_token(torch.arange(60) % 11, 2, 6)
    seen = list[list[Tensor]]()

    def watched(model: Any, rng: Generator, step: int) -> Tensor:
        seen.append([x.W.clone() for x in model.modules() if hasattr(x, "redraw")])
        return batch(model, rng, step)

    def trained(loss: Any, steps: int = 7, file: Path | None = None) -> tuple[GPT, list[float]]:
        model = seeded(0, lambda: GPT(11, 16, 2, 2, core=core))
        rate: dict[str, Any] = {"schedule": lambda step, steps: 1.0, "progress": False}
        return model, train(model, loss, steps, checkpoint=file, every=1, **rate)

    model, losses = trained(rfa.redrawing(watched, 3, seed=5))
    assert len(seen) == 7 and len(seen[0]) == 2
    changes = [step for step in range(1, 7) if not seen[step][0].equal(seen[step - 1][0])]
    assert changes == [3, 6] and not seen[3][1].equal(seen[2][1])
    assert not seen[6][0].equal(seen[3][0])
    still = trained(batch)[1]
    assert still[:3] == losses[:3] and still[3] != losses[3]

    def stopping(model: Any, rng: Generator, step: int) -> Tensor:
        if step == 5:
            raise KeyboardInterrupt
        return batch(model, rng, step)

    with pytest.raises(KeyboardInterrupt):
        trained(rfa.redrawing(stopping, 3, seed=5), file=tmp_path / "half")
    resumed, rest = trained(rfa.redrawing(batch, 3, seed=5), file=tmp_path / "half")
    assert rest == losses
    for a, b in zip(resumed.state_dict().values(), model.state_dict().values(), strict=True):
        assert a.equal(b)
    other = trained(rfa.redrawing(batch, 3, seed=6))[1]
    assert other[:3] == losses[:3] and other[3] != losses[3]


def test_what_has_no_directions_cannot_redraw() -> None:
    model = GPT(11, 16, 2, 2)
    refused("no core of this GPT draws directions … core=Performer", rfa.redraw, model)
    ranges(partial(rfa.redrawing, next_token(torch.arange(60) % 11, 2, 6)), every=(3, 1))
    ranges(partial(rfa.redrawing, next_token(torch.arange(60) % 11, 2, 6), 3), seed=(0, 0))


def test_sigma_learns_and_an_encoder_takes_it() -> None:
    model = BERT(11, 16, 2, 2, core=rfa.RFA)
    model(torch.arange(6)[None]).sum().backward()
    cores = [x for x in model.modules() if isinstance(x, rfa.RFA)]
    assert all(x.sigma.grad is not None and x.sigma.grad.abs().sum() > 0 for x in cores)


# --- the code of others ---------------------------------------------------------------------------


def test_parity_with_fast_transformers() -> None:
    """`RandomFourierFeatures`: cosines first, vectors times √t, and φ φᵀ is exp(−t|x − y|²/2)."""
    Q, K, _ = qkv(5)
    omega, t = drawn(12, D).T, D**-0.5

    def theirs(x: Tensor) -> Tensor:
        u = (x * t**0.5).unsqueeze(-2).matmul(omega).squeeze(-2)
        return torch.cat([torch.cos(u), torch.sin(u)], dim=-1) * (2 / 24) ** 0.5

    products = theirs(Q) @ theirs(K).mT
    ours = [rfa.fourier_features(x, omega.T * t**0.5) for x in (Q, K)]
    torch.testing.assert_close(ours[0] @ ours[1].mT, products)


def official(Q: Tensor, K: Tensor, V: Tensor, W: Tensor, least: float, scale: float) -> Tensor:
    """`random_project` and `incremental_rfa` of the authors (Noahs-ARK/RFA), σ = τ = 1."""

    def project(x: Tensor) -> Tensor:
        u = torch.einsum("bhsd,kd->bhsk", x / (x.norm(dim=-1, keepdim=True) + 1e-3), W)
        return torch.cat([torch.sin(u), torch.cos(u)], -1) * scale

    q, k, rows = project(Q), project(K), []
    s, z = torch.zeros_like(k[:, :, 0, :, None] * V[:, :, 0, None]), torch.zeros_like(k[:, :, 0])
    for i in range(Q.shape[2]):
        s = s + torch.einsum("bhk,bhd->bhkd", k[:, :, i], V[:, :, i])
        z = z + k[:, :, i]
        qz = torch.einsum("bhk,bhk->bh", q[:, :, i], z).clamp_min(least)
        rows.append(torch.einsum("bhk,bhkd->bhd", q[:, :, i], s) / qz[..., None])
    return torch.stack(rows, 2)


def test_parity_with_the_authors_code_and_where_it_differs() -> None:
    """With our scale and our least sum it is the same, to the 1e-3 that they add to a length.
    Theirs are 0.1 and 1.0: D = 64 products of equal vectors make 0.64, so the first token's answer
    is cut."""
    Q, K, V = qkv(20)
    W = drawn(64, D)
    ours = rfa.rfa_attention(Q, K, V, W, True)
    close = official(Q, K, V, W, 0.1, 64**-0.5)
    torch.testing.assert_close(ours, close, atol=0.02, rtol=0.02)
    assert (ours - close).abs().max() > 1e-7
    first = official(Q, Q, V, W, 1.0, 0.1)[:, :, 0]
    torch.testing.assert_close(first, 0.64 * V[:, :, 0], atol=0.01, rtol=0.01)
    torch.testing.assert_close(rfa.rfa_attention(Q, Q, V, W, True)[:, :, 0], V[:, :, 0])


def test_the_authors_orthogonal_directions_are_so_for_square_matrices_only() -> None:
    """`orf`: a QR decomposition of all rows at once leaves orthogonal columns, and the lengths of
    rows come from χ of their number instead of d."""

    def orf(rows: int, d: int) -> Tensor:
        rng = Generator().manual_seed(0)
        q = torch.linalg.qr(torch.randn(rows, d, generator=rng).double())[0]
        lengths = torch.randn(rows, rows, generator=rng).double().norm(dim=1)
        return q * lengths[:, None]

    def cosines(W: Tensor) -> Tensor:
        W = F.normalize(W, dim=1)
        return (W @ W.T - torch.eye(len(W)).double()).abs().max()

    assert cosines(orf(8, 8)) < 1e-9 and cosines(orf(16, 8)) > 0.3
    assert cosines(drawn(16, 8)[:8]) < 1e-6 and cosines(drawn(16, 8)[8:]) < 1e-6


def test_the_printed_variance_is_that_of_another_kernel() -> None:
    """σ² in the variance of w makes exp(−σ²|x − y|²/2); a kernel of width σ wants σ⁻²."""
    x, y = unit(0), unit(0) + torch.tensor([[1.0, 1.36]]).double()
    square = float((x - y).pow(2).sum())
    estimates = {
        power: float(
            rfa.fourier_features(x, 2.0**power * drawn(100_000, 2))
            @ rfa.fourier_features(y, 2.0**power * drawn(100_000, 2)).T
        )
        for power in (1, -1)
    }
    assert abs(estimates[1] - math.exp(-4 * square / 2)) < 0.01
    assert abs(estimates[-1] - math.exp(-square / 8)) < 0.01


# --- costs and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_work_and_memory_grow_with_the_length(causal: bool) -> None:
    def attend(L: int) -> Callable[..., Tensor]:
        core, where = rfa.RFA(1, 16, 16), CAUSAL if causal else Where()
        return lambda *X: core(*X, where)[0]

    work_grows_no_faster(attend, 1.05)


def test_bad_input_is_named() -> None:
    X = three(x.detach() for x in qkv())
    ranges(lambda tau: rfa.RFA(2, 4, tau=tau), tau=(1.0, 0.05, 20.0))
    ranges(lambda least: rfa.RFA(2, 4, least=least), least=(0.1, 1e-6, 1.0))
    refused("m = 0 is out of range; choose m >= 1", rfa.directions, 0, 3)
    refused("D = 0 is out of range; choose D >= 1", rfa.RFA, 2, 4, 0)
    refused("W have shape (5, 3), for heads of 3 numbers", rfa.rfa_attention, *X, drawn(5, 3))
    refused("there are 4 heads of 8: make W for those", rfa.RFA(3, D).double(), *X, CAUSAL)


# --- what it brings to the laws and the mutants ---------------------------------------------------


def over_all(causal: bool) -> Function:
    def defined(Q: Tensor, K: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
        mask = patterns.causal().mask(Q.shape[2]) if causal else None
        return rfa.rfa_definition(Q, K, V, drawn(32, Q.shape[-1]), mask)

    def attend(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
        return rfa.rfa_attention(Q, K, V, drawn(32, max(1, Q.shape[-1])), causal)

    return Function(attend, defined)


CASE = Case(
    lambda: rfa.RFA(H, D, 6),
    lambda core, Q, K, V, mask: rfa.rfa_definition(Q, K, V, core.sigma * core.W, mask),
    forgets=True,
    shares_sum_to_one=False,
    functions={"rfa": over_all(False), "causal rfa": over_all(True)},
    mutants=[
        ("queries and keys of any length", "F.normalize(Q, dim=-1)", "Q"),
        ("lengths of one direction for all", "lengths * turned", "d**0.5 * turned"),
        ("signs as QR leaves them", "R.R.diagonal(dim1=1, dim2=2).sign()[:, None]", "1.0"),
        (
            "a width where its inverse belongs",
            "super().directions(X) / self.tau",
            "super().directions(X) * self.tau",
        ),
        ("sums that may vanish", "x / total.clamp(min=self.least)", "x / total"),
        ("sines alone", "torch.cat([u.sin(), u.cos()], -1)", "torch.cat([u.sin(), u.sin()], -1)"),
        (
            "one set of directions for all heads",
            "drawn = [directions(D, d, self.orthogonal, rng) for _ in range(h)]",
            "drawn = h * [directions(D, d, self.orthogonal, rng)]",
        ),
    ],
)
