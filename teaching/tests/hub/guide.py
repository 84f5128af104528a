"""The commands of the page "A class on a hub", as its readers copy them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tfviz_lessons.outline import outline_of

PAGE = Path(__file__).resolve().parents[3] / "book/instructors_hub.md"


@dataclass(frozen=True)
class Block:
    """A ```bash block: the section that it stands in, who runs it, and what."""

    section: str
    account: str
    source: str


def blocks() -> list[Block]:
    """All commands of the page; each block says in its first line who runs it: `# as root`."""
    page, found = outline_of(PAGE), []
    for box in (box for box in page.boxes if box.argument == "bash"):
        *_, section = (part.title for part in page.walk() if part.start < box.start)
        who = re.match(r"# as (root|prof)\b", box.body)
        if not who:
            raise ValueError(
                f"a block of {section!r} does not begin with '# as root' or '# as prof'"
            )
        found.append(Block(section, who[1], box.body))
    return found
