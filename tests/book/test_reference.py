"""The reference: a page leads to the section that teaches it, and the section's card leads back."""

from __future__ import annotations

import gzip
import re

import pytest
import reference_pages
from book.conftest import Site
from docutils.nodes import make_id
from surveys import HEADINGS, taught_patterns

from tfviz import GPT, catalogue, patterns
from tfviz.explorers import ResidualGates

BUILT = [row for row in catalogue.MECHANISMS if row.built]
LARGEST = 200_000
"""Bytes of a page of the reference, gzipped."""


def links(site: Site, page: str) -> str:
    return (site.folder / f"{page}.html").read_text("utf-8")


@pytest.mark.parametrize("row", BUILT, ids=lambda row: row.id)
@pytest.mark.usefixtures("whole_book")
def test_a_card_leads_to_its_page_and_the_page_back_to_the_section(
    site: Site, row: catalogue.Mechanism
) -> None:
    assert row.module
    page = reference_pages.page_of(row.module)
    card = re.search(
        rf'aria-label="{re.escape(row.name)}, at a glance".*?</aside>',
        links(site, row.document),
        re.DOTALL,
    )
    assert card and f'href="../../{page}.html"' in card[0]
    assert f'href="../{row.document}.html#{make_id(row.id)}"' in links(site, page)


@pytest.mark.usefixtures("whole_book")
def test_rooms_without_a_mechanism_say_where_they_are_taught(site: Site) -> None:
    rooms = reference_pages.rooms()
    for room, mechanisms in reference_pages.TAUGHT.items():
        assert room in rooms, f"{room} is no room any more"
        text = links(site, reference_pages.page_of(room))
        for row in map(catalogue.get, mechanisms):
            assert f'href="../{row.document}.html#{make_id(row.id)}"' in text, room


@pytest.mark.usefixtures("whole_book")
def test_every_pattern_of_the_reference_leads_to_its_section(site: Site) -> None:
    page = links(site, reference_pages.page_of("tfviz.patterns.families"))
    for name, mechanism in taught_patterns(reference_pages.ROOT / HEADINGS).items():
        row = catalogue.get(mechanism)
        entry = page.partition(f'<section id="{name}" class="tf-api">')[2].partition("</section>")[
            0
        ]
        assert f'href="../{row.document}.html#{make_id(row.id)}"' in entry, name
        assert name in patterns.FAMILIES


def test_defaults_are_written_as_people_write_them() -> None:
    shown = reference_pages.signature("GPT", GPT)
    assert "core: Make = Dense," in shown and "order: Order = pre_norm," in shown
    assert reference_pages.signature("ResidualGates", ResidualGates).startswith(
        'ResidualGates(gate="gru", b=2.0'
    )
    everything = [
        one.signature
        for module in reference_pages.rooms().values()
        for entry in reference_pages.entries(module)
        for one in (entry, *entry.methods)
    ]
    assert not [text for text in everything if " at 0x" in text or "<class" in text]


@pytest.mark.usefixtures("whole_book")
def test_no_page_of_the_reference_is_heavy(site: Site) -> None:
    weights = {
        room: len(gzip.compress(links(site, reference_pages.page_of(room)).encode()))
        for room in reference_pages.rooms()
    }
    heavy = {room: weight for room, weight in weights.items() if weight > LARGEST}
    assert not heavy, f"the heaviest: {max(weights.values())}"


def test_no_mark_of_code_is_left_in_what_readers_see() -> None:
    """Docstrings write `code` or ``code``; neither the index nor the search shows the marks."""
    assert reference_pages.unmarked("read from ``a.toml`` by `load`") == "read from a.toml by load"
    for _, _, places in reference_pages.search_entries():
        for _, name, _, text, _ in places:
            assert "``" not in text, name
