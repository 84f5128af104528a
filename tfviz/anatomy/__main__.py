"""Counts every model anew: python -m tfviz.anatomy

A table of what is counted, published and kept at 128k tokens. With names of models, these alone;
with --transformers, each count beside that of transformers, built without numbers from the same
configuration, for the files that are named: python -m tfviz.anatomy --transformers a/config.json …
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tfviz import anatomy

LONG = 131072


def row(model: str) -> str:
    """One line of the table."""
    a = anatomy.of(model)
    total, published = a.parameters.total, a.facts["published"]
    why = a.facts.get("why", "")
    off = f"{100 * (total / published - 1):+.2f} %"
    kept = a.cache(LONG) / 2**30
    said = f"{a.name:34} {total:>21,} {published:>21,} {off:>9} {kept:>9.2f} GiB"
    return f"{said}  {why}".rstrip()


def beside_transformers(paths: Sequence[str]) -> int:
    """Prints both counts for each file; 1 if any two differ, else 0."""
    import json

    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    wrong = 0
    for path in paths:
        a = anatomy.read(path)
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(
                AutoConfig.for_model(told.pop("model_type"), **told)
            )
        theirs = sum(p.numel() for p in {id(p): p for p in model.parameters()}.values())
        wrong |= int(theirs != a.parameters.total)
        print(f"{a.name:34} {a.parameters.total:>21,} {theirs:>21,}")
    return wrong


def main(given: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if given is None else given
    if given[:1] == ["--transformers"]:
        return beside_transformers(given[1:])
    print(f"{'model':34} {'counted':>21} {'published':>21} {'off':>9} {'cache at 128k':>13}")
    for model in given or anatomy.names():
        print(row(model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
