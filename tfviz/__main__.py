"""Ask somebody's attention whether it is what it should be, from a terminal.

    python -m tfviz examine package.module:Class --kwargs '{"dim": 16}' [--causal] [--json]
    python -m tfviz examine package.module:function --d 8

It ends with 1 where a law is broken; see `tfviz.examine`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tfviz", description=str(__doc__))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    command = parser.add_subparsers(required=True).add_parser(
        "examine", help="the laws of attention, for a module or a function of yours"
    )
    command.add_argument("what", help="package.module:Class, or package.module:function")
    command.add_argument("--kwargs", default="{}", help="what the class is made with, as JSON")
    command.add_argument("--definition", help="package.module:function, what it should compute")
    command.add_argument("--d", type=int, help="the width of X, or of a head")
    command.add_argument("--padding", help="its argument for padding; ~mask if True is padding")
    command.add_argument("--exponent", type=float, help="the growth that it promises: 1 or 2")
    command.add_argument("--only", nargs="+", metavar="LAW", help="these laws alone")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--json", action="store_true", help="answer in JSON")
    ways = command.add_mutually_exclusive_group()
    ways.add_argument("--causal", action="store_true", default=None, help="it must not look ahead")
    ways.add_argument("--both-ways", dest="causal", action="store_false", help="it may")
    given = parser.parse_args(words)

    from tfviz.examined import examine

    sys.path.insert(0, os.getcwd())
    try:
        found = examine(
            made(given.what, given.kwargs),
            causal=given.causal,
            definition=named(given.definition) if given.definition else None,
            exponent=given.exponent,
            d=given.d,
            padding=given.padding,
            only=given.only,
            seed=given.seed,
        )
    except (TypeError, ValueError) as error:
        parser.error(str(error))
    print(found.json() if given.json else found)
    return 1 if found.broken else 0


def named(name: str) -> Any:
    """What package.module:name is. Raises ValueError if there is nothing of that name."""
    home, colon, inside = name.partition(":")
    if not (home and colon and inside):
        raise ValueError(f"what = {name!r}; write package.module:Class")
    try:
        found: Any = import_module(home)
    except ImportError as error:
        raise ValueError(
            f"{home} cannot be imported ({error}); run this where Python finds it"
        ) from error
    for part in inside.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{home} has no {inside}; look at dir({home})")
        found = getattr(found, part)
    return found


def made(name: str, kwargs: str) -> Any:
    """The object of that name; a class is made with these arguments."""
    found = named(name)
    try:
        told = json.loads(kwargs)
    except ValueError as error:
        raise ValueError(
            f"kwargs = {kwargs!r} is no JSON ({error}); write '{{\"dim\": 16}}'"
        ) from error
    if not isinstance(told, dict):
        raise ValueError(f"kwargs = {kwargs!r} names nothing; write '{{\"dim\": 16}}'")
    if not isinstance(found, type):
        if told:
            raise ValueError(f"{name} is no class, and takes no kwargs; leave them out")
        return found
    try:
        return found(**told)
    except Exception as error:  # whatever a class says of its arguments
        raise ValueError(
            f"{name}(**{told}) fails: {type(error).__name__}: {error}; correct kwargs"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
