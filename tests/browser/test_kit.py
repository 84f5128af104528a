"""What the kit gives to every explorer: motion, terms, the sentence, the address, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from explorer_examples import SONG
from explorer_site import ASSETS, write_site

from tfviz.explorers import BlockSignals, MergeStepper

MERGES = "(node) => node.tfvizModel.get('merges')"


def opened(page: Any, folder: Path, address: str, *explorers: Any, more: str = "") -> Any:
    write_site(folder, *(e.html() for e in explorers), more, name="kit.html")
    page.goto(f"{address}kit.html")
    page.locator(".tfviz-explorer[data-ready]").first.wait_for()
    return page


def test_play_pause_and_steps(page: Any, folder: Path, address: str) -> None:
    page.clock.install()
    opened(page, folder, address, MergeStepper("ab ab b ab abc abc"))
    host = page.locator(".tfviz-explorer")
    page.get_by_role("button", name="play").click()
    page.clock.run_for(1300)
    assert host.evaluate(MERGES) == 2
    page.get_by_role("button", name="pause").click()
    page.clock.run_for(3000)
    assert host.evaluate(MERGES) == 2
    page.get_by_role("button", name="play").click()
    page.clock.run_for(60_000)  # stops by itself at the last
    page.get_by_role("button", name="play").wait_for()
    assert page.get_by_role("button", name="merge →").is_disabled()


def test_with_reduced_motion_it_is_stepped(page: Any, folder: Path, address: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    opened(page, folder, address, MergeStepper("ab ab b"))
    assert not page.get_by_role("button", name="play").count()
    page.get_by_role("button", name="merge →").wait_for()


def test_the_sentence_is_never_late(page: Any, folder: Path, address: str) -> None:
    """While a key is held, what is spoken is at most 300 ms behind the numbers."""
    page.clock.install()
    opened(page, folder, address, BlockSignals(1))
    slider = page.locator("input[data-key=depth]")
    for depth in range(2, 20):
        slider.press("ArrowRight")
        page.clock.run_for(60)
        said = page.locator(".tfx-status").inner_text()
        assert int(said.split(" block")[0].split()[-1]) >= depth - 5
    page.clock.run_for(300)
    assert "19 blocks" in page.locator(".tfx-status").inner_text()


def test_the_address_follows_the_state(page: Any, folder: Path, address: str) -> None:
    opened(page, folder, address, BlockSignals(3))
    page.locator("input[data-key=depth]").press("ArrowRight")
    page.wait_for_function("() => location.hash.startsWith('#block_signals=')")
    link = page.url
    page.get_by_role("button", name="reset").click()
    page.wait_for_function("() => !location.hash")
    page.goto("about:blank")
    page.goto(link)
    page.get_by_text("4 blocks:").wait_for()


def test_an_answer_is_kept_with_the_progress(page: Any, folder: Path, address: str) -> None:
    script = (ASSETS / "js" / "progress.js").read_text("utf-8")
    (folder / "progress.js").write_text(script, "utf-8")
    more = "<script defer src='progress.js'></script>"
    opened(page, folder, address, MergeStepper(SONG), more=more)
    page.get_by_role("button", name="“row”").click()
    page.get_by_text("you said: “row”").wait_for()
    page.reload()
    page.get_by_text("you said: “row”").wait_for()
    assert page.locator(".tfviz-explorer").evaluate(MERGES) == 0  # the answer, not the way to it
    page.get_by_role("button", name="ask me again").click()
    page.reload()
    page.get_by_role("button", name="“row”").wait_for()


def test_on_a_phone_the_picture_stays_above_the_sliders(
    page: Any, folder: Path, address: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 700})
    opened(page, folder, address, BlockSignals(5))
    page.locator("input[data-key=seed]").evaluate("(node) => node.scrollIntoView({block: 'end'})")
    picture, slider = (
        page.locator(what).bounding_box() for what in ("[data-lead]", "input[data-key=seed]")
    )
    assert picture["y"] >= -1 and picture["y"] + picture["height"] < slider["y"]
    assert picture["height"] < 0.5 * 700
