"""What carries the old name of an explorer still opens: code, states, links, answers, pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser.explorer_site import ASSETS, write_site

from tfviz import explorers
from tfviz._renamed import EXPLORERS, class_name

RESTS_ON = (
    "tfviz/renamed.toml",
    "tfviz/explorers/**",
    "tests/browser/**",
    "tests/*.py",
    "book/assets/**",
    "tfviz_lab/results/*.json",
)


@pytest.mark.parametrize(("old", "new"), EXPLORERS.items())
def test_an_old_name_finds_the_explorer(old: str, new: str) -> None:
    kind = explorers.explorer(old)
    assert kind is explorers.explorer(new) is getattr(explorers, class_name(old))
    assert (kind.module, kind.__name__) == (new, class_name(new))
    view = next(iter(kind.examples))
    one = kind.example(view)
    assert explorers.explorer(old).from_state(one.state).state == one.state


def test_old_names_are_not_listed_and_mean_one_thing() -> None:
    assert explorers.ALL.keys().isdisjoint(EXPLORERS)
    assert set(explorers.__all__).isdisjoint(map(class_name, EXPLORERS))
    assert len(set(EXPLORERS.values())) == len(EXPLORERS)
    assert set(EXPLORERS.values()) <= explorers.ALL.keys()
    with pytest.raises(KeyError):
        explorers.explorer("no_such")


HASH = "(host) => host.tfviz.hash()"
FAR = "<p style='height: 3000px'></p>"


@pytest.mark.parametrize(
    ("old", "key"), [("clock_hands", "place"), ("two_orders", "L"), ("clock_hands-2", "place")]
)
def test_an_old_link_opens_and_is_written_by_the_new_name(
    page: Any, folder: Path, address: str, problems: list[str], old: str, key: str
) -> None:
    """Also that of the second of its kind; and the page goes there."""
    name, _, second = old.partition("-")
    kind = explorers.explorer(name)
    place = 1 if second else 0
    write_site(folder, *[FAR + kind.example("").html() for _ in range(place + 1)], name="old.html")
    page.goto(f"{address}old.html")
    host = page.locator(".tfviz-explorer").nth(place)

    def ready() -> None:
        host.scroll_into_view_if_needed()
        host.and_(page.locator("[data-ready]")).wait_for()

    def move(where: str) -> None:
        """A knob, once the question that may keep it shut is passed over."""
        skip = host.get_by_role("button", name="just show me")
        if skip.count():
            skip.click()
        host.locator(f"input[data-key={key}]").press(where)

    ready()
    move("ArrowRight")
    page.wait_for_function("() => location.hash")
    today = host.evaluate(HASH)
    assert today.startswith(f"#{EXPLORERS[name]}{'-2' if second else ''}=")
    page.goto("about:blank")
    page.goto(f"{address}old.html#{old}={today.partition('=')[2]}")
    page.wait_for_function("() => scrollY > 1000")
    ready()
    assert host.evaluate(HASH) == today
    move("ArrowRight")
    page.wait_for_function(f"() => location.hash && !location.hash.includes('{old}')")
    assert page.evaluate("location.hash").startswith(today.partition("=")[0])


def test_an_answer_that_was_kept_by_an_old_name_is_known_and_can_be_taken_back(
    page: Any, folder: Path, address: str
) -> None:
    script = (ASSETS / "js" / "progress.js").read_text("utf-8")
    (folder / "progress.js").write_text(script, "utf-8")
    song = explorers.explorer("byte_pair_merges").examples[""]["text"]
    html = explorers.explorer("byte_pair_merges")(song).html()
    write_site(folder, html, "<script defer src='progress.js'></script>", name="kept.html")

    def opened() -> None:
        page.goto("about:blank")
        page.goto(f"{address}kept.html")
        page.locator(".tfviz-explorer[data-ready]").wait_for()

    def kept() -> str:
        stored: str = page.evaluate("JSON.stringify(localStorage)")
        return stored

    opened()
    page.get_by_role("button", name="“row”").click()
    page.get_by_text("you said: “row”").wait_for()
    assert "byte_pair_merges/" in kept()
    page.evaluate(
        "for (const [key, text] of Object.entries(localStorage))"
        " localStorage.setItem(key, text.replaceAll('byte_pair_merges/', 'merge_stepper/'))"
    )
    opened()
    page.get_by_text("you said: “row”").wait_for()
    page.get_by_role("button", name="ask me again").click()
    assert "byte_pair_merges/" not in kept() and "merge_stepper/" not in kept()


def test_a_page_of_before_finds_its_module(page: Any, folder: Path, address: str) -> None:
    html = explorers.explorer("two_orders").example("").html()
    before = html.replace(' data-formerly="two_orders"', "")
    before = before.replace('data-explorer="multiplication_order"', 'data-explorer="two_orders"')
    assert before.count("two_orders") == 1
    write_site(folder, before, name="before.html")
    page.goto(f"{address}before.html")
    page.locator(".tfviz-explorer[data-ready]").wait_for()
