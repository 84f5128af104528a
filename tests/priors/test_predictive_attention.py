"""Predictive attention: the guess by hand, what a kernel can do, and that no future leaks in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from laws import Case, D, H, agree_with_gradients, streamed
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz import BERT, GPT, attention, generate, patterns
from tfviz.cores import Dense, Where, levels
from tfviz.models.use import attention_weights
from tfviz.priors import predictive_attention as rooms
from tfviz.priors.predictive_attention import Evolving, Predictive

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
CAUSAL, FULL = patterns.causal(), patterns.full()
TEXT = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(0))


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def only(y: int, x: int, h: int = 1) -> Tensor:
    """The kernel that copies, head by head, the pixel at this offset."""
    kernel = torch.zeros(h, h, 3, 3, dtype=torch.float64)
    kernel[range(h), range(h), y + 1, x + 1] = 1
    return kernel


def gpt(core: Any, N: int = 3) -> GPT:
    torch.manual_seed(1)
    return GPT(11, 16, 4, N, core=core).double()


# --- the guess ------------------------------------------------------------------------------------


def test_a_guess_by_hand() -> None:
    """Scores below: 4, then 2 and 6, then 8, 0 and 2. The kernel takes half of the score one key
    further left in the same row and all of the one above. For query 2, key 1 that is 8/2 + 6 = 10;
    with α = ¼ and an own score of 2, 0.25 · 2 + 0.75 · 10 = 8."""
    below = torch.tensor([[4.0, 9, 9], [2, 6, 9], [8, 0, 2]], dtype=torch.float64)[None, None]
    own = torch.full_like(below, 2.0)
    kernel = 0.5 * only(0, -1) + only(-1, 0)
    mask = CAUSAL.mask(3)
    by_hand = torch.tensor([[0.0, 2, 0], [4, 1, 3], [2, 10, 0]], dtype=torch.float64)
    wanted = 0.25 * 2 + 0.75 * by_hand
    close(rooms.predictive_definition(own, below, kernel, 0.25, mask)[0, 0], wanted)
    seen = below.masked_fill(~mask, 0)
    close(rooms.convolved(seen, kernel, ahead=False)[0, 0], by_hand)
    assert wanted[2, 1] == 8


def test_heads_are_channels() -> None:
    """A kernel that gives head 0 the image of head 1."""
    image, kernel = drawn(1, 2, 5, 5), torch.zeros(2, 2, 3, 3).double()
    kernel[0, 1, 1, 1] = 1
    close(rooms.convolved(image, kernel)[0, 0], image[0, 1])
    assert not rooms.convolved(image, kernel)[0, 1].any()


@pytest.mark.parametrize("pattern", [CAUSAL, FULL], ids=["causal", "full"])
def test_two_ways_to_the_same_guess(pattern: Any) -> None:
    mask = pattern.mask(7)
    own, below, kernel = (
        x.requires_grad_() for x in (drawn(2, 3, 7, 7), drawn(2, 3, 7, 7), drawn(3, 3, 3, 3))
    )
    guess = rooms.convolved(below.masked_fill(~mask, 0), kernel, ahead=pattern == FULL)
    wanted = rooms.predictive_definition(own, below, kernel, 0.3, mask)
    agree_with_gradients(0.3 * own + 0.7 * guess, wanted, [own, below, kernel])


def test_alpha_1_is_attention_as_it_is() -> None:
    plain = gpt(Dense)
    for core in (lambda h: Predictive(h, alpha=1), lambda h: Evolving(h, alpha=0, beta=0)):
        model = gpt(core)
        model.load_state_dict(plain.state_dict(), strict=False)
        close(model(TEXT), plain(TEXT))
    model = gpt(lambda h: Predictive(h, alpha=0.5))
    model.load_state_dict(plain.state_dict(), strict=False)
    assert (model(TEXT) - plain(TEXT)).abs().max() > 1e-3


def test_a_kernel_with_one_weight_in_the_middle_adds_what_is_below() -> None:
    """RealFormer's sum, weighed: from layer to layer α S_n + (1 − α) Ŝ_(n−1)."""

    class Residual(Dense):
        def scores(self, s: Tensor, where: Where) -> Tensor:
            s = s if where.below is None else 0.25 * s + 0.75 * where.below
            where.hand_up(s)
            return s

    plain, model = gpt(Residual), gpt(lambda h: Predictive(h, alpha=0.25))
    model.load_state_dict(plain.state_dict(), strict=False)
    for core in cores(model):
        core.kernel.data = only(0, 0, 4)
    close(model(TEXT), plain(TEXT))


def test_a_shift_looks_one_further_left() -> None:
    """With α = 0 and the kernel that copies from the right, layer 2 looks one key further left."""
    model = gpt(lambda h: Predictive(h, alpha=0), N=2)
    cores(model)[1].kernel.data = 40 * only(0, 1, 4)
    A = [a[0, 0] for a in attention_weights(model, TEXT).values()]
    best = A[0][8, 1:8].argmax()  # among the keys that have a neighbour on either side
    assert A[1][8, best] > A[1][8, best + 1]


def cores(model: Any) -> list[Any]:
    return [block.attend.core for block in model.stack.blocks]


# --- the future -----------------------------------------------------------------------------------


class Naive(Dense):
    """The convolution as an encoder has it, with nothing hidden from it."""

    def __init__(self, h: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(h, h, 3, padding=1, bias=False)

    def scores(self, s: Tensor, where: Where) -> Tensor:
        s = s if where.below is None else 0.5 * s + 0.5 * self.conv(where.below)
        where.hand_up(s)
        return s


def leaks(model: GPT) -> tuple[bool, bool]:
    """Whether a later token has a gradient, and whether changing it changes an earlier answer."""
    E = model.embed(TEXT).detach().requires_grad_()
    early = model.stack(E)[:, :5]
    # not their sum: the numbers of a row sum to 0 after its norm, whatever is in them
    some = torch.randn(early.shape, generator=torch.Generator().manual_seed(0))
    (grad,) = torch.autograd.grad((some * early).sum(), E)
    changed = TEXT.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    differ = model(changed)[:, :5] != model(TEXT)[:, :5]
    return bool(grad[:, 5:].any()), bool(differ.any())


@pytest.mark.parametrize("core", [Predictive, Evolving])
def test_no_future_leaks_in_by_gradients_or_by_a_changed_text(core: Any) -> None:
    assert leaks(gpt(core)) == (False, False)


def test_the_convolution_of_an_encoder_would_leak() -> None:
    assert leaks(gpt(Naive)) == (True, True)


@pytest.mark.parametrize("what", ["lower row", "later keys"])
def test_each_of_the_two_alone_leaks(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if what == "lower row":
        monkeypatch.setattr(rooms, "sees_ahead", lambda *_: True)
    else:
        monkeypatch.setattr(Predictive, "_seen", lambda self, image, where: image)
    assert leaks(gpt(Predictive)) == (True, True)


@torch.no_grad()
@pytest.mark.parametrize("core", [Predictive, Evolving])
def test_a_model_reads_in_parts_what_it_reads_at_once(core: Any) -> None:
    model = gpt(core).eval()
    whole = model(TEXT)
    for sizes in (1, [4, 1, 3, 1]):
        close(streamed(model, TEXT, sizes), whole)
    begun = generate(model, TEXT[:, :3], 4)
    assert begun[:, 3].equal(whole[:, 2].argmax(-1))


@torch.no_grad()
def test_padding_is_no_pixel() -> None:
    """A text with two padded tokens, whatever these are, is the text without them."""
    torch.manual_seed(1)
    model = BERT(11, 16, 4, 3, core=Predictive).double().eval()
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[:, 7:] = False
    close(model(TEXT, mask)[:, :7], model(TEXT[:, :7]))


@torch.no_grad()
def test_attention_to_another_sequence_sees_no_later_query() -> None:
    """All six keys are there from the start, but the queries are those of a growing text."""
    core = Predictive(4).double()
    (Q, below), K = drawn(2, 2, 4, 9, 6), drawn(2, 4, 6, 6)
    where = Where(FULL, crosses=True)

    def answered(Q: Tensor, below: Tensor) -> Tensor:
        with levels():
            where.hand_up(below)
            return core(Q, K, K, where)[0]

    before = answered(Q, below)
    later = [torch.cat([x[:, :, :5], drawn(2, 4, 4, 6)], 2) for x in (Q, below)]
    assert answered(*later)[:, :, :5].equal(before[:, :, :5])
    right = torch.cat([below[..., :5], drawn(2, 4, 9, 1)], -1)
    assert not torch.allclose(answered(Q, right)[:, :, 0], before[:, :, 0])
    kept = replace(where, keep=[].append)
    refused("a cache cannot keep the scores … without one", core, Q, K, K, kept)


# --- the rule of the authors' code ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "beta", "phi"),
    [(1.0, 0.5, F.relu), (0.5, 0.3, F.leaky_relu), (0.3, 0.7, F.leaky_relu)],
    ids=["its ResNet", "time series, README", "time series, defaults"],
)
def test_evolving_attention_as_in_its_authors_code(alpha: float, beta: float, phi: Any) -> None:
    """asconv2d_fixed_padding (resnet_model.py) and EAAugmentedConv1d (ea_dc_transformer.py) of
    pkuyym/EvolvingAttention, typed anew: a blend, a "same" convolution with a bias, φ, a skip."""
    core = Evolving(4, alpha, beta, phi).double()
    core.b.data = drawn(4)
    (Q, K, V), below = drawn(3, 2, 4, 9, D), drawn(2, 4, 9, 9)
    conv = nn.Conv2d(4, 4, 3, padding=1).double()
    conv.weight.data, conv.bias.data = core.kernel.data, core.b.data  # type: ignore[union-attr]
    logits = Q @ K.mT / D**0.5
    blend = (1 - beta) * logits + beta * below
    logits = alpha * phi(conv(blend)) + (1 - alpha) * blend
    with levels():
        Where().hand_up(below)
        out, A = core(Q, K, V, Where(FULL, need_weights=True))
        close(Where().below, logits)
    close(A, logits.softmax(-1))
    close(out, logits.softmax(-1) @ V)


def test_bad_input_is_named() -> None:
    ranges(lambda alpha: Predictive(4, alpha), alpha=(0.5, 0, 1))
    ranges(lambda beta: Evolving(4, beta=beta), beta=(0.5, 0, 1))
    ranges(lambda h: Predictive(h), h=(4, 1))
    of_no_kind("phi = 3; give a function", Evolving, 4, phi=3)
    image = drawn(1, 4, 5, 5)
    refused(
        "kernel has shape (4, 3, 3, 3), the image 4 heads",
        rooms.convolved,
        image,
        drawn(4, 3, 3, 3),
    )
    refused("give (heads out, 4, 3, 3)", rooms.convolved, image, drawn(4, 4, 5, 5))


# --- the laws -------------------------------------------------------------------------------------


class Lower(Dense):
    """The layer below, in one line: it hands up the sines of its scores."""

    def scores(self, s: Tensor, where: Where) -> Tensor:
        where.hand_up(s.sin())
        return s


class Above(nn.Module):
    """A core as the upper one of two, so that the laws try it where it has something below."""

    def __init__(self, core: Any) -> None:
        super().__init__()
        self.lower, self.core = Lower(), core

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, where: Where) -> Any:
        states, kept, answer = where.state or (None, None), list[Any](), None
        with levels():
            for core, state in zip((self.lower, self.core), states, strict=True):
                keep = kept.append if where.keep else None
                answer = core(Q, K, V, replace(where, state=state, keep=keep))
        if where.keep:
            where.keep(tuple(kept))
        return answer


def above(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    own = Q @ K.mT / Q.shape[-1] ** 0.5
    scores = rooms.predictive_definition(own, own.sin(), core.core.kernel, core.core.alpha, mask)
    return attention(Q, K, V, mask, scores=lambda _: scores)


def evolved(core: Any, Q: Tensor, K: Tensor, V: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    own, core = Q @ K.mT / Q.shape[-1] ** 0.5, core.core
    blend = (1 - core.beta) * own + core.beta * own.sin()
    guess = rooms.predictive_definition(own, blend, core.kernel, 0, mask) + core.b[:, None, None]
    scores = core.alpha * guess.relu() + (1 - core.alpha) * blend
    return attention(Q, K, V, mask, scores=lambda _: scores)


CASE = Case(
    lambda: Above(Predictive(H, 0.3)),
    above,
    variants={"evolving": Case(lambda: Above(Evolving(H, 0.4, 0.7)), evolved)},
    mutants=[
        ("a guess from the own scores", "        return below\n", "        return own\n"),
        (
            "a weight on the wrong one",
            "self.alpha * own + (1 - self.alpha) * guess",
            "self.alpha * guess + (1 - self.alpha) * own",
        ),
        ("the lower row counts", "kernel = kernel[:, :, :2]", "kernel = kernel[:, :, :3]"),
        (
            "a row above that is forgotten",
            "guess = convolved(image, self.kernel, row, ahead)",
            "guess = convolved(image, self.kernel, None, ahead)",
        ),
        ("forbidden scores in the image", "image = image.masked_fill(~mask, 0.0)", "pass"),
        (
            "padded queries in the image",
            "if where.attention_mask is not None and not where.crosses",
            "if False",
        ),
        (
            "later queries in cross-attention",
            "ahead = not where.crosses and sees_ahead",
            "ahead = where.crosses or sees_ahead",
        ),
        ("nothing handed up", "where.hand_up(own)", "pass"),
        (
            "beta on the own scores",
            "(1 - self.beta) * own + self.beta * below",
            "self.beta * own + (1 - self.beta) * below",
        ),
        (
            "no bias",
            "guess = self.phi(guess + self.b.to(guess.dtype)[:, None, None])",
            "guess = self.phi(guess)",
        ),
    ],
)
