"""The experiment on digits: what the models are shown, what is stored, what the chapter says."""

from __future__ import annotations

import pytest
import torch
from torch import Generator

import tfviz_lab
from tfviz.stored import digit_vit
from tfviz_lab import compare, protocol
from tfviz_lab.beyond_text import vit_digits as experiment
from tfviz_lab.compare import classes, images
from tfviz_lab.protocol import WHICH_DIGIT

close = torch.testing.assert_close


def test_weights_survive_the_packing() -> None:
    model = digit_vit.vit()
    again = digit_vit.unpack(digit_vit.pack(model))
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        close(a.half().float(), b)
    assert len(digit_vit.pack(model)) < 40_000
    named = [[name, x.numel()] for name, x in model.named_parameters()]
    assert named == [[name, x.numel()] for name, x in model.state_dict().items()]


def test_what_people_draw_is_moved_by_a_pixel_at_most_and_half_of_it_unshaded() -> None:
    shown = torch.zeros(400, 1, 8, 8)
    shown[:, 0, 3, 4] = 0.9
    found = experiment.by_hand(shown, Generator().manual_seed(0))
    places = {(int(y), int(x)) for _, _, y, x in found.nonzero()}
    assert places == {(y, x) for y in (2, 3, 4) for x in (3, 4, 5)}
    bright = found.amax((1, 2, 3))
    assert {round(x, 5) for x in bright.tolist()} == {1.0, 0.9}
    assert 0.4 < (bright == 1).float().mean() < 0.6


def test_a_shuffled_variant_sees_one_order_only() -> None:
    pixels = experiment.pictures(images()[1][:3])
    seen = experiment.PatchReader(shuffled=True).seen(pixels)
    assert not seen.equal(pixels)
    order = experiment.order_of(2, 100)
    close(seen[:, :, :2, :2], pixels.unfold(2, 2, 2).unfold(3, 2, 2).flatten(2, 3)[:, :, order[0]])
    assert experiment.PatchReader(positions=False).seen(pixels) is pixels


def test_the_table_begins_as_loud_as_that_of_the_protocol() -> None:
    model = compare.model(lambda: {}, experiment.EXAM.task(0), 0)
    assert 0.45 < model.vit.positions.P.std() < 0.55
    assert 0.45 < protocol.patches().positions.P.std() < 0.55


def test_folds_and_lines_are_those_of_the_protocol() -> None:
    mine, theirs = experiment.EXAM, WHICH_DIGIT
    assert mine.trivial(2) == theirs.trivial(2) and mine.bar == theirs.bar
    assert mine.task(0).steps == theirs.task(0).steps == 1600
    assert mine.task(0).recipe == theirs.task(0).recipe


def test_an_order_not_met_is_harder_after_a_hundred_steps() -> None:
    config = {"variant": "patches of 4 × 4", "rate": 3e-3, "steps": 100}
    found = experiment.of_patches(config, 0)
    assert found["moved"] > found["score"] + 0.1
    assert torch.tensor(found["positions"]).shape == (4, experiment.WIDTH)


def test_the_stored_model_reads_as_stored() -> None:
    result, model = tfviz_lab.load("vit_digits"), digit_vit.trained()
    test = experiment.pictures(images()[1])
    assert experiment.right(model, test) == pytest.approx(result["reader"]["right"], abs=0.003)
    assert result["reader"]["right"] > 0.93 and result["reader"]["unshaded"] > 0.85
    for digit, pixels in enumerate(digit_vit.shown()):
        n = int((images()[1] == torch.tensor(pixels)).all(1).nonzero()[0])
        assert classes()[1][n] == digit
    shares, seen = digit_vit.read(digit_vit.exact(), digit_vit.shown()[0])
    assert shares.dtype == torch.float64 and seen.shape == (2, 3, 4, 4)
