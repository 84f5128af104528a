"""The question about an eye or an ear: what models are given, what is stored, what it says."""

from __future__ import annotations

import pytest
import torch
from torch import Generator, Tensor

import tfviz_lab
from tfviz.beyond_text.tokenise_anything import lengths
from tfviz.stored import see_and_hear as stored
from tfviz.stored.see_and_hear import LENGTHS, QUESTIONS, SeeAndHear
from tfviz_lab.beyond_text import see_and_hear as experiment

close = torch.testing.assert_close


def drawn(b: int = 2000) -> tuple[dict[str, Tensor], Tensor]:
    return experiment.batch(b, Generator().manual_seed(0))


def test_answers_by_hand() -> None:
    asked = [(question, 8, 3) for question in range(4)] + [(0, 4, 9), (3, 9, 4), (3, 0, 5)]
    found = [experiment.wanted(*(torch.tensor([x]) for x in one)).item() for one in asked]
    assert found == [True, False, False, True, False, True, False]


def test_a_sound_has_so_many_beeps() -> None:
    beeps = torch.arange(10).repeat(20)
    waves = experiment.sounds(beeps, Generator().manual_seed(0))
    loud = waves.unflatten(1, (stored.FRAMES, stored.FRAME)).square().mean(-1) > 0.1
    assert loud.sum(1).equal(beeps)
    assert (loud[beeps == 5].float().mean(0) > 0.1).all()  # in any of the frames


def test_text_alone_and_the_others_alone_say_nothing() -> None:
    given, answers = drawn()
    for question in experiment.ASKED:
        mine = (given["text"] == question).all(1)
        assert 0.2 < mine.float().mean() < 0.3
        assert answers[mine].float().mean().item() == pytest.approx(0.5, abs=0.07)
    beeps = given["sound"].unflatten(1, (stored.FRAMES, -1)).square().mean(-1).gt(0.1).sum(1)
    for n in (0, 9):  # without the question, an image or a sound decides nothing
        assert answers[beeps == n].float().mean().item() == pytest.approx(0.5, abs=0.1)


def test_the_model_reads_what_it_is_given() -> None:
    given, _ = drawn(3)
    model = SeeAndHear()
    assert lengths(model.joint.kinds, given) == LENGTHS
    assert model(given).shape == model(experiment.without(given, "sound")).shape == (3,)
    assert "sound" in given


def test_a_masked_model_cannot_know_what_it_sees() -> None:
    given, _ = drawn(4)
    model = SeeAndHear(**experiment.VARIANTS["masked"])
    other = {name: part if name == "text" else part.flip(0) for name, part in given.items()}
    close(model(given), model(other))
    plain = SeeAndHear()
    plain.load_state_dict(model.state_dict())
    close(model(given), plain(experiment.without(given, "image", "sound")))


def test_weights_survive_the_packing() -> None:
    model = SeeAndHear()
    again = stored.unpack(stored.pack(model))
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        close(a.half().float(), b)
    named = [[name, x.numel()] for name, x in model.named_parameters()]
    assert named == [[name, x.numel()] for name, x in model.state_dict().items()]


def test_a_few_steps_repeat_exactly() -> None:
    first, again = (experiment.of_variant("joint", 1, 2) for _ in range(2))
    assert first == again


def test_the_stored_model_answers_as_stored() -> None:
    result, model = tfviz_lab.load("see_and_hear"), stored.trained()
    assert experiment.right(model) == pytest.approx(result["reader"]["right"], abs=0.003)
    assert result["reader"]["right"]["all"] > 0.95
    for n in (0, 9):
        eye, ear = (n > 4, n <= 4) if n else (False, True)
        for question, wanted in (("eye>4?", eye), ("ear<5?", ear)):
            yes, A = stored.read(model, question, stored.shown()[n], stored.heard()[n])
            assert (yes > 0.5) == wanted and A.shape == (2, 3, 20, 20)


def test_blind_to_all_but_the_question_it_tosses_a_coin() -> None:
    for question in QUESTIONS:
        yes, A = stored.read(stored.trained(masked=True), question, *pair(8, 3))
        assert yes == pytest.approx(0.5, abs=0.05)
        close(A[:, :, stored.ASKED, : LENGTHS["text"]].sum(-1), torch.ones(2, 3))


def pair(digit: int, beeps: int) -> tuple[list[int], list[float]]:
    return stored.shown()[digit], stored.heard()[beeps]


def test_its_question_mark_looks_where_it_was_asked_to() -> None:
    """On all pairs of ten images and ten sounds, in the last block, mean of the heads."""
    text, image = LENGTHS["text"], LENGTHS["text"] + LENGTHS["image"]
    for question in QUESTIONS:
        shares = torch.zeros(2)
        for n in range(100):
            _, A = stored.read(stored.trained(), question, *pair(n // 10, n % 10))
            row = A[-1].mean(0)[stored.ASKED]
            shares += torch.stack([row[text:image].sum(), row[image:].sum()]) / 100
        assert (shares[0] > shares[1]) == question.startswith("eye")


def test_the_stored_result_says_what_the_chapter_says() -> None:
    result = tfviz_lab.load("see_and_hear")
    assert [*result["variants"]] == [*experiment.VARIANTS]
    found = {
        name: {asked: torch.tensor(x) for asked, x in row.items()}
        for name, row in result["variants"].items()
    }
    assert found["joint"]["all"].min() > 0.96
    assert (found["masked"]["all"] - 0.5).abs().max() < 0.03
    assert (found["no sound"]["ear"] - 0.5).abs().max() < 0.04
    assert found["no sound"]["eye"].min() > 0.9
    assert "+" not in str(result["provenance"]["commit"])
