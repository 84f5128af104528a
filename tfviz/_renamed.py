"""Names of before, and those of today, from `renamed.toml`: what carries an old one still opens."""

import tomllib
from pathlib import Path

_TABLES = tomllib.loads(Path(__file__).with_name("renamed.toml").read_text("utf-8"))
EXPLORERS: dict[str, str] = _TABLES["explorers"]
EXPERIMENTS: dict[str, str] = _TABLES["experiments"]


def class_name(module: str) -> str:
    """The name of the class in the module of an explorer: "low_rank_lens" has LowRankLens."""
    return "".join(word.capitalize() for word in module.split("_"))


CLASSES = {class_name(old): class_name(new) for old, new in EXPLORERS.items()}


def today(name: str) -> frozenset[str]:
    """What is meant by a name: itself, and what an explorer or an experiment of it is today."""
    return frozenset(
        {name, *(table.get(name, name) for table in (EXPLORERS, EXPERIMENTS, CLASSES))}
    )
