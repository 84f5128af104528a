"""One sequence of several kinds: tokens by hand, and a block mask that is an encoder for each."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from laws import Case
from refusals import of_no_kind, ranges, refused
from torch import Tensor, nn

from tfviz import patterns
from tfviz.beyond_text import tokenise_anything as any_kind
from tfviz.beyond_text.tokenise_anything import Joint, Kind, apart, same_kind
from tfviz.beyond_text.vit_patches import patches

close = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)
D = 8
KINDS = {"text": any_kind.text(5), "image": any_kind.image(2), "sound": any_kind.sound(4)}
LENGTHS = {"text": 3, "image": 6, "sound": 2}


def drawn(b: int = 2) -> dict[str, Tensor]:
    return {
        "text": torch.randint(5, (b, 3)),
        "image": torch.randn(b, 1, 4, 6, dtype=torch.float64),
        "sound": torch.randn(b, 8, dtype=torch.float64),
    }


def made(**told: Any) -> Joint:
    """Nothing in it is zero."""
    model = Joint(KINDS, most=6, d=D, h=2, N=2, **told).double()
    for x in model.parameters():
        x.data = torch.randn_like(x)
    return model


def masked_like(model: Joint) -> Joint:
    """The same weights under a block mask."""
    masked = made(pattern=same_kind(LENGTHS))
    masked.load_state_dict(model.state_dict())
    return masked


# --- by hand --------------------------------------------------------------------------------------


def test_a_text_an_image_and_a_sound_by_hand() -> None:
    """Two characters, two patches of one pixel, a frame of two samples: the chapter's example."""
    kinds = {"text": any_kind.text(2), "image": any_kind.image(1), "sound": any_kind.sound(2)}
    model = Joint(kinds, most=2, d=2, h=1, N=1).double()
    state: dict[str, list[Any]] = {
        "embed.text.weight": [[1, 0], [2, 0]],
        "embed.image.weight": [[3], [0]],
        "embed.sound.weight": [[1, 1], [1, -1]],
        "positions.P": [[0, 0], [0, 5]],
        "marks.text": [0, 0],
        "marks.image": [10, 0],
        "marks.sound": [20, 0],
    }
    model.load_state_dict({k: torch.tensor(v) for k, v in state.items()}, strict=False)
    parts = {
        "text": torch.tensor([[1, 0]]),
        "image": torch.tensor([[[[2.0, 0.0]]]]).double(),
        "sound": torch.tensor([[3.0, 1.0]]).double(),
    }
    wanted = [[2, 0], [1, 5], [16, 0], [10, 5], [24, 2]]
    assert model.tokens(parts)[0].tolist() == wanted
    assert any_kind.lengths(kinds, parts) == {"text": 2, "image": 2, "sound": 1}


def test_frames_by_hand() -> None:
    assert any_kind.frames(torch.arange(6)[None], 2).tolist() == [[[0, 1], [2, 3], [4, 5]]]


def test_the_block_mask_by_hand() -> None:
    mask = same_kind({"text": 2, "image": 1, "sound": 3}).mask(6)
    drawing = ["xx....", "xx....", "..x...", "...xxx", "...xxx", "...xxx"]
    assert mask.tolist() == [[x == "x" for x in line] for line in drawing]
    assert same_kind({"text": 4}).mask(4).all()


def test_blocks_of_one_length_are_the_pattern_of_that_name() -> None:
    assert same_kind({"a": 3, "b": 3}).mask(6).equal(patterns.block_local(block=3).mask(6))


def test_tokens_are_what_the_formula_says() -> None:
    model, parts = made(), drawn()
    Z, spans = model.tokens(parts), any_kind.spans(LENGTHS)
    P: Tensor = model.positions.P
    assert model.marks is not None and Z.shape == (2, 11, D)
    rows = {"image": patches(parts["image"], 2), "sound": parts["sound"].unflatten(1, (2, 4))}
    for name, x in rows.items():
        for i in range(LENGTHS[name]):
            E: Any = model.embed[name].weight
            close(Z[:, spans[name]][:, i], x[:, i] @ E.T + P[i] + model.marks[name])
    for i in range(3):
        E = model.embed["text"].weight
        close(Z[:, i], E[parts["text"][:, i]] + P[i] + model.marks["text"])


# --- a block mask is an encoder for each kind -----------------------------------------------------


def test_a_block_mask_is_separate_encoders_with_gradients() -> None:
    model, parts = made(), drawn()
    masked = masked_like(model)
    upstream = torch.randn(2, 11, D, dtype=torch.float64)
    found, wanted = masked(parts), apart(model, parts)
    close(found, wanted)
    (found * upstream).sum().backward()
    (wanted * upstream).sum().backward()
    for (name, a), b in zip(masked.named_parameters(), model.parameters(), strict=True):
        assert a.grad is not None and a.grad.abs().sum() > 0, name
        close(a.grad, b.grad)


def test_with_attention_to_all_they_are_not() -> None:
    model, parts = made(), drawn()
    assert (model(parts) - apart(model, parts)).abs().max() > 0.01


def test_under_a_block_mask_no_gradient_crosses() -> None:
    parts = drawn()
    image = parts["image"].requires_grad_()
    for model, crosses in ((made(), True), (masked_like(made()), False)):
        (grad,) = torch.autograd.grad(model(parts)[:, :3].square().sum(), image)
        assert bool(grad.any()) == crosses


# --- what the sequence is -------------------------------------------------------------------------


@pytest.mark.parametrize("given", [["text"], ["sound", "image"], ["image", "text"]])
def test_a_kind_may_be_left_out(given: list[str]) -> None:
    parts = {name: drawn()[name] for name in given}
    assert made()(parts).shape == (2, sum(LENGTHS[name] for name in given), D)


def test_the_order_of_the_kinds_means_nothing() -> None:
    model, parts = made(), drawn()
    turned = dict(reversed(parts.items()))
    spans = any_kind.spans(any_kind.lengths(KINDS, turned))
    close(model(parts), torch.cat([model(turned)[:, spans[name]] for name in parts], 1))


def test_only_the_vectors_of_the_kinds_tell_darkness_from_silence() -> None:
    """A black patch and a silent frame are rows of zeros: at equal places they are one token."""
    parts = drawn()
    nothing = {name: torch.zeros_like(parts[name]) for name in ("image", "sound")}
    for marked in (True, False):
        Z = made(marked=marked).tokens(nothing)
        dark, silent = Z[:, :2], Z[:, 6:]
        assert torch.equal(dark, silent) != marked


def test_any_other_kind_joins() -> None:
    """A board of 64 squares with 12 pieces: one more way to cut, one more matrix."""
    board = Kind(lambda squares: squares.flatten(1, 2), partial(nn.Linear, 12, bias=False))
    model = Joint({**KINDS, "board": board}, most=64, d=D, h=2, N=1)
    parts = {"text": torch.zeros(1, 2, dtype=torch.long), "board": torch.zeros(1, 8, 8, 12)}
    assert model(parts).shape == (1, 66, D)


def test_bad_input_is_named() -> None:
    model, parts = made(), drawn()
    refused("width = 3 does not divide 8 samples … pad", any_kind.frames, parts["sound"], 3)
    refused("waves has shape (8,) … waves[None]", any_kind.frames, parts["sound"][0], 4)
    ranges(partial(any_kind.frames, parts["sound"]), width=(4, 1))
    refused("lengths is empty", same_kind, {})
    refused("length of image = 0", same_kind, {"text": 2, "image": 0})
    smelt = {"text": parts["text"], "smell": parts["sound"]}
    refused("kinds ['text', 'smell'] … one or more of text, image, sound", model, smelt)
    refused("kinds [] … one or more of text", model, {})
    refused(
        "batches of {'text': 2, 'sound': 1}",
        model,
        {"text": parts["text"], "sound": parts["sound"][:1]},
    )
    refused("position 6 was asked", model, {"text": torch.zeros(1, 7, dtype=torch.long)})
    of_no_kind("text is torch.float64", model, {"text": parts["sound"]})


def test_vectors_of_the_kinds_begin_small_and_differ() -> None:
    """With vectors of 0, no kind could be told from another before the first step."""
    torch.manual_seed(0)
    kinds = {name: Kind(lambda x: x, lambda d: nn.Identity()) for name in ("a", "b")}
    marks = Joint(kinds, 4, 256, 2, 1).marks
    assert marks is not None
    a, b = marks["a"].detach(), marks["b"].detach()
    for mark in (a, b, (a - b) / 2**0.5):
        assert 0.015 < mark.std() < 0.025


CASE = Case(
    mutants=[
        ("kinds that begin without a mark", "0.02 * torch.randn(d)", "torch.zeros(d)"),
        (
            "places count from 1",
            "torch.arange(X.shape[1], device",
            "1 + torch.arange(X.shape[1], device",
        ),
        ("no vector of the kind", "else X + self.marks[name]", "else X"),
        ("the others' kinds only", "kind[:, None] == kind", "kind[:, None] != kind"),
        ("causal within a kind", "kind[:, None] == kind", "(kind[:, None] == kind).tril()"),
        (
            "frames column by column",
            "waves.unflatten(1, (-1, width))",
            "waves.unflatten(1, (width, -1)).mT",
        ),
        (
            "kinds in the order of the model",
            "self._rows(name, part) for name, part in parts.items()",
            "self._rows(name, part) for name, part in sorted(parts.items())",
        ),
    ],
)
