"""Decoding in a real browser: what is asked, the cuts by hand, the beam as it grows."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tfviz_lab
from tfviz.explorers import Decoding
from tfviz.stored import letter_gpt


def numbers(page: Any) -> Any:
    return page.locator(".tfviz-explorer").evaluate("(node) => node.tfviz.numbers()")


def test_one_beginning_is_hidden_among_solved_ones(show: Any) -> None:
    page = show(Decoding(which=3, p=0.8))
    assert "can be drawn;" not in page.locator(".tfx-status").inner_text()
    legend = page.locator(".tfx-plane text")
    assert legend.filter(has_text="The value of: 11").count() == 1
    assert legend.filter(has_text="If the object is: ?").count() == 1
    page.get_by_role("slider", name="how many tokens stay").press("End")
    page.get_by_role("button", name="that is my answer").click()
    kept = Decoding(which=3, p=0.8).numbers()["kept"][3]
    page.get_by_text(f"it is: {kept} tokens").wait_for()
    page.get_by_text(f"{kept} tokens can be drawn").wait_for()
    assert legend.filter(has_text=f"If the object is: {kept}").count() == 1


def test_the_cuts_are_dragged(show: Any) -> None:
    page = show(Decoding(which=1, p=0.8))
    page.get_by_role("button", name="just show me").click()
    page.get_by_role("slider", name="nucleus").last.press("ArrowDown")
    assert numbers(page)["kept"] == Decoding(which=1, p=0.79).numbers()["kept"]
    page.locator(".tfx-handle[data-name=k]").press("Home")
    right = Decoding(which=1, p=0.79, k=1).numbers()
    assert numbers(page)["kept"] == right["kept"] == [1, 1, 1, 1]
    page.locator('select[data-key="which"]').select_option("0")
    page.get_by_text("1 token can be drawn").wait_for()


def test_the_beam_grows_step_by_step(show: Any) -> None:
    page = show(Decoding("beam", width=2))
    page.get_by_role("button", name="just show me").click()
    assert numbers(page)["tokens"] == Decoding("beam", width=3).numbers()["tokens"]
    page.locator("input[data-key=steps]").press("Home")
    page.get_by_role("button", name="grow →").click()
    assert numbers(page)["tokens"] == Decoding("beam", width=3, steps=2).numbers()["tokens"]
    assert page.locator(".tfx-table tbody tr").count() == 4  # three of them, and greedy's


@pytest.mark.parametrize("offline", [False, True])
def test_it_writes_what_the_library_writes(show: Any, offline: bool) -> None:
    page = show(Decoding("write", tau=0.7), offline=offline)
    page.get_by_label("your own beginning").fill("a list of ")
    page.locator("input[data-key=written]").press("Home")
    for n in range(1, 4):
        page.get_by_role("button", name="write →").click()
        right = Decoding("write", begin="a list of ", tau=0.7, written=n).numbers()
        assert numbers(page)["written"] == right["written"] and len(right["written"]) == n
        assert numbers(page)["p"] == pytest.approx(right["p"], rel=1e-9)  # both in double precision
    page.locator("input[data-key=written]").press("End")
    tokens = Decoding("write", begin="a list of ", tau=0.7, written=20).numbers()["written"]
    text = letter_gpt.ALPHABET.decode(torch.tensor(tokens))
    page.get_by_text(f"“a list of {text}” … next").wait_for()


def test_single_precision_says_the_same_to_five_digits() -> None:
    t = letter_gpt.ALPHABET.encode("the value of ")[None]
    with torch.no_grad():
        p = letter_gpt.trained()(t)[0, -1].softmax(-1).tolist()
    assert Decoding("write", written=0).numbers()["p"] == pytest.approx(p, rel=1e-5)


def test_other_characters_are_refused_in_words(show: Any) -> None:
    page = show(Decoding("write"))
    before = numbers(page)
    page.get_by_label("your own beginning").fill("The 2")
    page.get_by_text("The model has never read “T”, “2”").wait_for()
    assert numbers(page) == before
    page.get_by_label("your own beginning").fill("the two")
    page.get_by_text("The model has never read").wait_for(state="detached")
    assert numbers(page) != before


def test_every_state_of_the_sliders_is_stored() -> None:
    for which in range(len(tfviz_lab.load("decoding")["trees"])):
        for width in range(1, 7):
            for quarter in range(9):
                assert Decoding("beam", which=which, width=width, alpha=quarter / 4).beam


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"view": "tree"}, "view = 'tree'"),
        ({"which": 99}, "which = 99"),
        ({"tau": -1.0}, "tau = -1"),
        ({"p": 2.0}, "p = 2"),
        ({"width": 7}, "width = 7"),
        ({"alpha": 9.0}, "alpha = 9"),
        ({"steps": 0}, "steps = 0"),
        ({"begin": "The"}, "'T', which the model has never read"),
        ({"begin": ""}, "length of begin = 0"),
        ({"begin": 21 * "a"}, "length of begin = 21"),
        ({"written": 21}, "written = 21"),
        ({"seed": 0}, "seed = 0"),
    ],
)
def test_bad_arguments_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Decoding(**wrong)
