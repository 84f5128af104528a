"""The commands of the page "A class on a hub", as its readers copy them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "book/instructors_hub.md"


@dataclass(frozen=True)
class Block:
    """A ```bash block: the section that it stands in, who runs it, and what."""

    section: str
    account: str
    source: str


def sections(text: str) -> list[tuple[str, str]]:
    """(title, text) of each section, whatever its level; a # in a block begins none."""
    found = [("", "")]
    inside = False
    for line in text.splitlines():
        inside ^= line.startswith("```")
        heading = None if inside else re.match(r"#+ (.+)", line)
        if heading:
            found.append((heading[1].strip(), ""))
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def blocks() -> list[Block]:
    """All commands of the page; each block says in its first line who runs it: `# as root`."""
    found = []
    for section, text in sections(PAGE.read_text("utf8")):
        for source in re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S):
            who = re.match(r"# as (root|prof)\b", source)
            if not who:
                raise ValueError(
                    f"a block of {section!r} does not begin with '# as root' or '# as prof'"
                )
            found.append(Block(section, who[1], source))
    return found
