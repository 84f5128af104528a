"""The two files of this package: public models, and families of models."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["families", "models"]


@cache
def families() -> dict[str, dict[str, Any]]:
    """{model_type: what its class fills in, and what no key says}, of `families.toml`."""
    return _read("families.toml")


@cache
def models() -> dict[str, dict[str, Any]]:
    """{id: entry} of `models.toml`, in its order."""
    return {entry["id"]: entry for entry in _read("models.toml")["model"]}


def _read(name: str) -> dict[str, Any]:
    with open(Path(__file__).with_name(name), "rb") as file:
        return tomllib.load(file)
