"""The experiment on heads: what is asked, what is stored, and what the chapter says of it."""

from __future__ import annotations

import math
import platform

import pytest
import torch

import tfviz_lab
from tfviz.stored import letter_gpt
from tfviz_lab.basics import head_ablation as experiment

close = torch.testing.assert_close


def test_what_is_asked_of_the_two_lookups() -> None:
    t, y = experiment.asked(3, torch.Generator().manual_seed(0))
    assert t.shape == (3, 24) and y.shape == (3, 19, 2)
    for i in (5, 12, 23):
        assert torch.equal(y[:, i - 5, 0], t[:, i - 1])
        assert torch.equal(y[:, i - 5, 1], t[:, i - 5])


def test_models_of_the_lookups_have_the_same_size_and_train() -> None:
    sizes = {sum(x.numel() for x in experiment.TwoLookups(h).parameters()) for h in (1, 2, 4, 8)}
    assert len(sizes) == 1
    before, after = (experiment.answers(experiment.two_lookups(2, steps=s)) for s in (0, 120))
    assert max(before["right"]) < 0.15 and max(after["right"]) > 0.8  # the nearer one comes first
    assert torch.tensor(after["weight"]).shape == (2, 2)


def test_made_up_words_repeat_and_only_the_second_round_is_asked() -> None:
    x, y, p = experiment.repeats(20, torch.Generator().manual_seed(0))
    assert torch.equal(x[:, 1:], y[:, :-1])
    for row, after, (period,) in zip(x, y, p.tolist(), strict=True):
        assert len(set(row[:period].tolist())) == period  # all letters differ
        assert torch.equal(row[period:], row[:-period])
        asked = experiment.known(torch.tensor([[period]]))[0]
        first = int(asked.nonzero()[0])
        assert after[first] == row[0] and not asked[:first].any() and asked[first:].all()


def test_weights_survive_the_packing() -> None:
    model = letter_gpt.gpt()
    again = letter_gpt.unpack(letter_gpt.pack(model))
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a.half().float(), b)
    text = letter_gpt.pack(again)
    assert text == letter_gpt.pack(letter_gpt.unpack(text)) and len(text) < 120_000


def test_the_stored_model_gives_the_stored_numbers() -> None:
    result, model = tfviz_lab.load("head_ablation"), letter_gpt.trained()
    stored, here = result["gpt"], platform.python_version()
    # the text is that of one version of Python, the made-up words are always the same
    tasks = ["repeats"] + ["text"] * (here == result["provenance"]["versions"]["python"])
    found, gone = experiment.losses(model), experiment.without(model, [(1, 0)])
    for task in tasks:
        assert found[task] == pytest.approx(stored[task], abs=1e-3)
        assert gone[task] == pytest.approx(stored["without"][1][0][task], abs=1e-3)
    A = letter_gpt.of_text(model, "crwth crwth crwth")
    assert A.shape == (2, 4, 17, 17)
    close(A.sum(-1), torch.ones(2, 4, 17))


def test_stored_result_says_what_the_chapter_says() -> None:
    result = tfviz_lab.load("head_ablation")
    far = {name: torch.tensor(x["right"][1]) for name, x in result["two_lookups"].items()}
    near = {name: torch.tensor(x["right"][0]) for name, x in result["two_lookups"].items()}
    linear, longer, mlp = (far[name] for name in experiment.READOUTS)
    assert linear[:, 0].max() < 0.1 and linear[:, 1].min() > 0.98  # one head, two heads
    assert (linear[:, 1] > linear[:, 4]).all() and linear[:, 4].max() < 0.4  # sixteen
    assert longer[:, 0].max() < 0.2 and longer[:, 1:].min() > 0.99
    for name in list(experiment.READOUTS)[:2]:  # what one of the two gains the other loses
        assert (near[name] + far[name])[:, 0].max() < 1 + 1 / experiment.SYMBOLS + 0.01
    assert 0.2 < mlp[:, 0].min() < mlp[:, 0].max() < 0.85
    assert "+" not in result["provenance"]["commit"]
    for gpt in (result["gpt"], *result["gpt"]["other_seeds"]):
        first, second = gpt["heads"]
        assert max(head["before"] for head in first) > 0.4
        assert max(head["next"] for head in second) > 0.4
        assert max(head["next"] for head in first) < 0.1

    shown, other = result["gpt"], result["gpt"]["other_seeds"][0]
    assert shown["heads"][0][3]["before"] > 0.65
    assert shown["without"][0][3]["repeats"] > math.log(27) > 50 * shown["repeats"]
    for n in (0, 2, 3):
        assert shown["heads"][1][n]["next"] > 0.42
        assert 0.1 < shown["without"][1][n]["repeats"] - shown["repeats"] < 0.35
        assert shown["without"][1][n]["text"] - shown["text"] < 0.025
    text = shown["path"]["text"]
    assert text[6]["text"] - text[0]["text"] < 0.16
    assert [step["head"] for step in text[7:]] == [[0, 2], [0, 3]]
    assert text[2]["text"] - text[0]["text"] < 0.035 and text[2]["repeats"] > 2.5
    assert all(head["first"] < 0.13 for head in shown["heads"][1])
    assert all(head["next"] > 0.3 for head in other["heads"][1])
    assert 0.2 < other["path"]["text"][4]["text"] - other["text"] < 0.3
