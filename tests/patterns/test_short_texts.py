"""A text that is shorter than a number of its pattern: every family, and each of its numbers.

Where a number says how far, how wide or how many at most, the text's own length is the limit, and
nothing has to be said. Where it says exactly how many, and there are not so many, it is refused
with the length. ALIKE and REFUSED are the table."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from refusals import refused
from torch.nn.attention.flex_attention import create_mask

from tfviz import GPT
from tfviz import patterns as P
from tfviz.basics.lm_objectives import prefix_lm

SHORT = (1, 2, 3, 5)
FAR = 64
"""More than any text here has."""

FAMILIES = {family.name: family for family in (*P.FAMILIES.values(), prefix_lm)}

REFUSED = {
    "random_keys": {"count"},
    "random_blocks": {"count"},
    "bigbird": {"n_random"},
    "blockwise": {"permutation"},
}
"""Exactly so many keys in each row, blocks of keys, or blocks of the text."""

SELDOM = {"seed", "dilation", "stride", "block", "columns", "width", "h_q", "w_q"}
"""Numbers of which a larger one says another thing, and none too much."""

ROWS = [
    (name, parameter)
    for name, family in FAMILIES.items()
    for parameter in family.domains
    if parameter != "seed"
]


def made(name: str, **changed: Any) -> P.Pattern:
    """The family with its first numbers; a permutation and a number of random blocks of 1."""
    family = FAMILIES[name]
    values = {n: d.default for n, d in family.domains.items()}
    for parameter in REFUSED.get(name, ()):
        values[parameter] = (0,) if parameter == "permutation" else 1
    return family(**values | changed)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("L", SHORT)
def test_a_short_text_has_the_pattern_of_its_first_tokens(name: str, L: int) -> None:
    """With the first numbers of the sliders, most of which are larger than the text."""
    pattern = made(name)
    mask = pattern.mask(L)
    assert mask.shape == (L, L)
    assert create_mask(pattern.at(L).mask_mod, None, None, L, L, device="cpu")[0, 0].equal(mask)
    assert pattern.cost(L).pairs == int(mask.sum())
    assert pattern.reach(L).hops.shape == (L, L)
    if "length" not in FAMILIES[name].formula.parameters:
        assert mask.equal(pattern.mask(FAR)[:L, :L])


@pytest.mark.parametrize(("name", "parameter"), ROWS)
@pytest.mark.parametrize("L", SHORT)
def test_a_number_above_the_length_is_the_length_or_is_refused_with_it(
    name: str, parameter: str, L: int
) -> None:
    domain = FAMILIES[name].domains[parameter]
    values: list[Any] = [FAR, FAR + 1, L + 1]
    if domain.is_list:
        values = [tuple(range(n)) for n in values]
    for value in values:
        together = {"block": value} if parameter == "summary" else {}  # at most a block
        pattern = made(name, **together, **{parameter: value})
        if parameter in REFUSED.get(name, ()):
            refused(f"L = {L}", pattern.mask, L)
            refused(f"L = {L}", pattern.at, L)
        else:
            mask = pattern.mask(L)
            assert mask.shape == (L, L)
            if parameter not in SELDOM | {"summary"}:
                assert mask.equal(made(name, **{parameter: L}).mask(L)), "the smaller of both"


def test_every_number_is_in_the_table() -> None:
    assert {p for _, p in ROWS} == {p for f in FAMILIES.values() for p in f.domains} - {"seed"}
    for name, parameters in REFUSED.items():
        assert parameters <= {*FAMILIES[name].domains}


@pytest.mark.parametrize(
    "name", ["longformer", "etc", "global_tokens", "sliding_window", "strided"]
)
def test_a_model_takes_a_prompt_of_one_token(name: str) -> None:
    """As generation does, whatever its pattern is."""
    model = GPT(11, 16, 2, 1, pattern=FAMILIES[name](**{n: 8 for n in FAMILIES[name].domains}))
    for L in (1, 2, 3):
        assert model(torch.ones(1, L, dtype=torch.long)).shape == (1, L, 11)
