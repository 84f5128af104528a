"""Public models, from their names to their parts: layers, weights, caches, operations, bytes.

`of` takes a model of `models.toml` apart, `read` a config.json. Both give an `Anatomy`, and that
counts.

>>> from tfviz import anatomy
>>> llama = anatomy.of("llama-3.1-8b")
>>> llama.parameters.total, llama.cache(8192) / 2**30
(8030261248, 1.0)
>>> heads = llama.layers[0].heads
>>> heads.queries, heads.keys
(32, 8)
>>> anatomy.of("lama-3.1-8b")
Traceback (most recent call last):
KeyError: "model = 'lama-3.1-8b' is not known; nearest: llama-3.1-8b, llama-3-8b, llama-3.1-70b"
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tfviz.anatomy.reading import names, of, understood
from tfviz.anatomy.record import (
    CARDS,
    Anatomy,
    Card,
    Heads,
    Layer,
    Parameters,
    Point,
    Roofline,
    Total,
)

__all__ = [
    "CARDS",
    "Anatomy",
    "Card",
    "Heads",
    "Layer",
    "Parameters",
    "Point",
    "Roofline",
    "Total",
    "explore",
    "names",
    "of",
    "read",
]


def read(config: Mapping[str, Any] | str | Path) -> Anatomy:
    """The model of a config.json, given as a dict, as its text or by its path.

    `Infinity` and `NaN` in it are read, as transformers writes them. A family that is not known is
    read as if it were an ordinary decoder: the anatomy is a `guess`, with what it does not know in
    `doubts`, and refuses to count where that would mean nothing. How the file stores its numbers
    (`dtype`, `quantization_config`) stands in `facts`. Counting goes by the bits that it is asked
    for.

    Raises ValueError for what is no configuration, lacks a size or cannot be counted, TypeError for
    another kind of thing.
    """
    return understood(config if isinstance(config, Mapping) else parsed(_text(config)))


def explore(model: str | Mapping[str, Any] | Path = "gemma-3-27b", **options: Any) -> Any:
    """The explorer of a model: a widget in JupyterLab, with `save` like any other one.

    model     an id or a name of `names()`, or a config.json as a dict, as its text or by its path
    options   further arguments of `tfviz.explorers.ModelAnatomy`, such as L, batch, beside, card;
              L is the longest text of the model, at most 128k, unless it is given

    Raises ValueError for a model that is not known and for what is no configuration.
    """
    shown: dict[str, str]
    try:
        a = of(str(model))
        shown = {"model": a.id}
    except KeyError as error:
        config = json.dumps(dict(model)) if isinstance(model, Mapping) else _text(model, error)
        a = read(config)
        shown = {"config": config}
    longest = min(a.fields.get("context") or 2**17, 2**17)
    widget = import_module("tfviz.explorers").ModelAnatomy
    return widget(**{"L": longest, **shown, **options})


def _text(config: str | Path, unknown: KeyError | None = None) -> str:
    """The JSON of a configuration: as it is given, or what stands in the file of this name.

    `unknown` is what was said of it as the name of a model. Raises ValueError, TypeError.
    """
    if not isinstance(config, str | Path):
        raise TypeError(f"config is a {type(config).__name__}; give a dict, a JSON text or a path")
    if isinstance(config, str) and config.lstrip()[:1] in ("{", "[", ""):
        return config
    try:
        path = Path(config)
        return (path / "config.json" if path.is_dir() else path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{unknown.args[0]}; nor is there such a file"
            if unknown
            else f"config = {str(config)[:80]!r}: no such file, or none that can be read; give a "
            "path, or its JSON"
        ) from error


def parsed(text: str) -> Any:
    """What a JSON text says. Raises ValueError for what is none, and says where."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("config is nested too deep; paste the whole config.json") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"config is no JSON at {place}; paste the whole config.json") from error
    except ValueError as error:
        raise ValueError(
            "config has a number that is too long; paste the whole config.json"
        ) from error
