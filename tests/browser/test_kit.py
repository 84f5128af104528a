"""What the kit gives to every explorer: motion, terms, the sentence, the address, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser.explorer_site import ASSETS, write_site

from tfviz.explorers import (
    AuxiliaryLossSchedule,
    BlockSignals,
    BytePairMerges,
    SparseLab,
)

RESTS_ON = (
    "tfviz/explorers/**",
    "tfviz_lab/results/*.json",
    "book/assets/**",
    "tests/browser/**",
    "tests/*.py",
)

SONG = BytePairMerges.examples[""]["text"]

MERGES = "(node) => node.tfvizModel.get('merges')"


def opened(page: Any, folder: Path, address: str, *explorers: Any, more: str = "") -> Any:
    write_site(folder, *(e.html() for e in explorers), more, name="kit.html")
    page.goto(f"{address}kit.html")
    page.locator(".tfviz-explorer[data-ready]").first.wait_for()
    return page


def stopped(page: Any) -> None:
    """From here on the page's time passes only when the test says so."""
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 3600)


def test_play_pause_and_steps(page: Any, folder: Path, address: str) -> None:
    page.clock.install()
    opened(page, folder, address, BytePairMerges("ab ab b ab abc abc"))
    stopped(page)
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
    opened(page, folder, address, BytePairMerges("ab ab b"))
    assert not page.get_by_role("button", name="play").count()
    page.get_by_role("button", name="merge →").wait_for()


def test_the_sentence_is_never_late(page: Any, folder: Path, address: str) -> None:
    """While a key is held, what is spoken is at most 300 ms behind the numbers."""
    page.clock.install()
    opened(page, folder, address, BlockSignals(1))
    stopped(page)
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


def test_two_explorers_share_the_address(page: Any, folder: Path, address: str) -> None:
    """Each keeps its own part; the one that was moved last stands first, and is scrolled to."""
    room = "<p style='height: 3000px'></p>"
    makers = [BlockSignals(3), BytePairMerges("ab ab b ab abc abc"), BlockSignals(5)]
    write_site(folder, *(e.html() + room for e in makers), name="kit.html")
    page.goto(f"{address}kit.html")
    for place, key in ((0, "depth"), (1, "merges"), (2, "depth")):
        host = page.locator(".tfviz-explorer").nth(place)
        host.scroll_into_view_if_needed()
        skip = host.get_by_role("button", name="just show me")
        host.and_(page.locator("[data-ready]")).wait_for()
        if skip.count():
            skip.click()
        host.locator(f"input[data-key={key}]").press("ArrowRight")
        name = ["block_signals", "byte_pair_merges", "block_signals-2"][place]
        page.wait_for_function("(name) => location.hash.startsWith(`#${name}=`)", arg=name)
    parts = [part.split("=")[0] for part in page.url.split("#")[1].split("&")]
    assert parts == ["block_signals-2", "byte_pair_merges", "block_signals"]
    depths = "() => [...document.querySelectorAll('.tfviz-explorer')].map((x) => x.tfviz?.hash())"
    before, link = page.evaluate(depths), page.url
    page.goto("about:blank")
    page.goto(link)
    page.locator(".tfviz-explorer").last.get_by_text("6 blocks:").wait_for()
    assert page.evaluate("scrollY") > 3000
    for host in page.locator(".tfviz-explorer").all():
        host.scroll_into_view_if_needed()
        host.and_(page.locator("[data-ready]")).wait_for()
    assert page.evaluate(depths) == before
    page.get_by_role("button", name="reset").last.click()
    page.wait_for_function("() => !location.hash.includes('block_signals-2')")
    assert "byte_pair_merges=" in page.url and "block_signals=" in page.url


def test_an_answer_is_kept_with_the_progress(page: Any, folder: Path, address: str) -> None:
    script = (ASSETS / "js" / "progress.js").read_text("utf-8")
    (folder / "progress.js").write_text(script, "utf-8")
    more = "<script defer src='progress.js'></script>"
    opened(page, folder, address, BytePairMerges(SONG), more=more)
    page.get_by_role("button", name="“row”").click()
    page.get_by_text("you said: “row”").wait_for()
    page.goto("about:blank")
    page.route("**/progress.js", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.goto(f"{address}kit.html")  # without the state that the address has come to
    page.get_by_text("you said: “row”").wait_for()
    assert page.locator(".tfviz-explorer").evaluate(MERGES) == 0  # the answer, not the way to it
    page.get_by_role("button", name="ask me again").click()
    page.goto("about:blank")
    page.goto(f"{address}kit.html")
    page.get_by_role("button", name="“row”").wait_for()


def test_a_question_passed_over_says_what_it_is(page: Any, folder: Path, address: str) -> None:
    opened(page, folder, address, BytePairMerges(SONG))
    page.get_by_role("button", name="just show me").click()
    verdict = page.locator(".tfx-verdict")
    assert verdict.inner_text().startswith("It is: “")
    page.get_by_role("button", name="ask me again").click()
    page.get_by_role("button", name="“row”").wait_for()
    assert not verdict.inner_text()


def test_nothing_is_shut_and_who_moves_it_has_looked(page: Any, folder: Path, address: str) -> None:
    """The answer is shown, the state stays the reader's own, and a link to it has looked, too."""
    opened(page, folder, address, BytePairMerges(SONG, merges=0))
    assert not page.locator("[inert], input:disabled, [aria-disabled=true]").count()
    host, verdict = page.locator(".tfviz-explorer"), page.locator(".tfx-verdict")
    page.locator("input[data-key=merges]").press("PageUp")
    page.get_by_text("You looked: it is: “row”").wait_for()
    there = host.evaluate(MERGES)
    assert there > 1  # the answer's own state has one
    page.wait_for_function("() => location.hash.includes('byte_pair_merges=')")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    host.and_(page.locator("[data-ready]")).wait_for()
    assert host.evaluate(MERGES) == there
    assert verdict.inner_text().startswith("You looked")
    page.get_by_role("button", name="ask me again").click()
    page.get_by_role("button", name="“row”").wait_for()
    assert host.evaluate(MERGES) == 0 and not verdict.inner_text()


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


def test_what_stays_in_a_picture_is_not_made_anew(page: Any, folder: Path, address: str) -> None:
    """That it is right, test_every_explorer asks of all."""
    host = opened(page, folder, address, BlockSignals(9)).locator(".tfviz-explorer")
    every = "[...h.querySelectorAll('.tfx-picture svg *')]"
    host.evaluate(f"(h) => {every}.forEach((node) => {{ node.old = true; }})")
    host.evaluate("(h) => { h.tfvizModel.set('depth', 7); h.tfviz.paint(); }")
    kept, all_of_them = host.evaluate(
        f"(h) => [{every}.filter((n) => n.old).length, {every}.length]"
    )
    assert kept > 0.8 * all_of_them


def test_who_is_moved_keeps_the_focus(page: Any, folder: Path, address: str) -> None:
    """What stands beside a picture is arranged anew when there is less room."""
    opened(page, folder, address, BlockSignals())
    note = page.locator(".tfx-side > .tfx-status")
    note.evaluate("(node) => { node.tabIndex = 0; node.id = 'held'; node.focus(); }")
    host = page.locator(".tfviz-explorer")
    for width in (1000, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("(node) => node.tfviz.resting()", arg=host.element_handle())
        assert page.evaluate("document.activeElement.id") == "held"


def test_an_end_that_is_another_knob_moves_with_it(page: Any, folder: Path, address: str) -> None:
    """`layer` ends at N: keys, links and the slider know it."""
    host = opened(page, folder, address, AuxiliaryLossSchedule(layer=20)).locator(".tfviz-explorer")
    page.get_by_role("button", name="just show me").click()

    def values() -> list[int]:
        return host.evaluate("(h) => ['N', 'layer'].map((key) => h.tfvizModel.get(key))")

    def last() -> str:
        return page.locator("input[data-key=layer]").get_attribute("max")

    page.locator("input[data-key=N]").press("Home")
    host.evaluate("(h) => h.tfviz.paint()")
    assert values() == [1, 1] and last() == "1"
    page.locator("input[data-key=N]").press("End")
    host.evaluate("(h) => h.tfviz.paint()")
    assert values() == [64, 1] and last() == "64"
    shown = "(h, state) => h.dispatchEvent(new CustomEvent('tfviz:show', { detail: state }))"
    host.evaluate(shown, {"N": 5, "layer": 9})
    assert values() == [5, 5]
    assert "layer = 9 cannot be" in page.locator(".tfx-said").inner_text()
    host.evaluate(shown, {"layer": 9, "N": 12})  # in any order
    assert values() == [12, 9] and "layer=9" in host.evaluate("(h) => h.tfviz.python()")


def test_cells_stay_under_their_lines_on_paper(page: Any, folder: Path, address: str) -> None:
    """A browser lays out a sheet, which is narrower, without letting the page draw again."""
    opened(page, folder, address, SparseLab())
    page.emulate_media(media="print")
    found = page.evaluate(
        """() => {
          const frame = document.querySelector(".tfx-cells").parentElement;
          const [cells, lines] = ["canvas", "svg"].map((name) => frame.querySelector(name));
          const share = () => {
            const [a, b] = [cells, lines].map((one) => one.getBoundingClientRect());
            const x = [a.left - b.left, a.width].map((part) => part / b.width);
            return [...x, ...[a.top - b.top, a.height].map((part) => part / b.height)];
          };
          const before = share();
          const width = frame.clientWidth;
          frame.style.width = `${0.6 * width}px`;
          const after = share();
          const changed = [frame.clientWidth / width, lines.getBoundingClientRect().width / width];
          return {before, after, changed};
        }"""
    )
    assert found["changed"] == pytest.approx([0.6, 0.6], abs=0.01)
    assert found["after"] == pytest.approx(found["before"], abs=0.004)
