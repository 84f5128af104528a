"""Patterns as one would call them without reading anything: they work, or name the fix."""

from __future__ import annotations

import inspect
import pydoc

import pytest
import torch
from refusals import of_no_kind, refused

from tfviz import patterns as P
from tfviz.basics.lm_objectives import prefix_lm
from tfviz.patterns import Family

FAMILIES = [*P.FAMILIES.values(), prefix_lm]


def test_parameters_go_by_name_or_by_position() -> None:
    assert P.strided(8) == P.strided(stride=8)
    assert P.dilated(2, dilation=3) == P.dilated(radius=2, dilation=3) == P.dilated(2, 3)
    assert P.blockwise((1, 0)) == P.blockwise(permutation=[1, 0])
    assert P.bigbird(4, 1, 1, 2, 3) == P.bigbird(block=4, window=1, n_global=1, n_random=2, seed=3)
    assert P.global_tokens(torch.tensor([1, 2]).sum().item()) == P.global_tokens(3)


def test_what_is_drawn_at_random_has_a_seed_of_its_own() -> None:
    assert P.random_keys(3) == P.random_keys(count=3, seed=0)
    assert P.random_blocks(4, 1) == P.random_blocks(block=4, count=1, seed=0)
    assert P.bigbird(4, 1, 1, 1) == P.bigbird(block=4, window=1, n_global=1, n_random=1, seed=0)


def test_the_formula_takes_numbers_or_tensors() -> None:
    assert P.strided.formula(9, 1, stride=8) is True
    assert P.strided.formula(9, 2, stride=9) is True and P.strided.formula(1, 9, stride=8) is False
    i, j = torch.arange(16)[:, None], torch.arange(16)
    assert P.strided.formula(i, j, stride=5).equal(P.strided(5).mask(16))
    whole = P.blockwise.formula(i, j, permutation=(2, 0, 1), length=16)
    assert whole.equal(P.blockwise((2, 0, 1)).mask(16))
    assert P.random_keys.formula(i, j, count=2, length=16).equal(P.random_keys(2).mask(16))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_indices_are_sent_to_the_formula(family: Family) -> None:
    """Also as numbers, of which there are then too many."""
    values = {name: domain.default for name, domain in family.domains.items()}
    i, j = torch.arange(4)[:, None], torch.arange(4)
    named = "".join(f", {name}=…" for name in values)
    says = f"{family.name}() takes … by position; it makes a pattern. … write {family.name}"
    for indices in ((i, j), (3, 1)):
        of_no_kind(f"{says}.formula(i, j{named})", family, *indices, **values)
    of_no_kind(f"{says}.formula(i, j{named})", family, i, j)


def test_a_wrong_number_is_named() -> None:
    refused("stride = 0 is out of range; choose stride >= 1", P.strided, 0)
    refused("radius = 2.5 is not a whole number", P.band, 2.5)
    of_no_kind("strided() takes stride; missing ['stride']", P.strided)
    of_no_kind("band() takes radius; unknown ['window']", lambda: P.band(2, window=3))
    of_no_kind("dilated() takes radius, dilation; missing ['dilation']", P.dilated, 2)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_help_says_what_each_parameter_means(family: Family) -> None:
    signature = inspect.signature(family)
    assert list(signature.parameters) == list(family.domains)
    assert signature.return_annotation is P.Pattern
    text = pydoc.plain(pydoc.render_doc(family))
    assert inspect.cleandoc(family.function.__doc__ or "").split("\n")[0] in text
    assert f"{family.name}.formula(i, j" in text
    for name, domain in family.domains.items():
        assert domain.meaning and f"    {name}: {domain.meaning} (" in text


def test_help_says_ranges_and_letters() -> None:
    assert "stride: how many tokens a row has (1 or more; ℓ in the formula)." in str(
        P.strided.__doc__
    )
    assert "all later queries read (1 to block; c in the formula)." in str(P.fixed.__doc__)
    assert "(1 to ⌈length/block⌉; r in the formula)." in str(P.bigbird.__doc__)
    assert str(inspect.signature(P.random_keys)).startswith("(count: int, seed: int = 0) ->")


def test_a_mask_is_made_where_it_is_needed() -> None:
    for pattern in (P.strided(4), P.random_keys(2), P.blockwise((1, 0)), P.per_head(P.causal())):
        mask = pattern.mask(8, device="meta")
        assert mask.is_meta and mask.shape[-2:] == (8, 8)
    table = P.table(torch.eye(8, dtype=torch.bool))
    assert (table & ~P.causal()).mask(8, device="meta").is_meta
    assert P.causal().mask(8, device="cpu").equal(P.causal().mask(8))


def test_a_pattern_shows_itself() -> None:
    """In a REPL by the call that makes it, in a notebook with a small mask and its condition."""
    assert repr(P.strided(8) & P.causal()) == "(strided(stride=8) & causal())"
    card = P.strided(8)._repr_html_()
    assert card is not None and "<svg" in card
    for words in ("strided(stride=8) at L = 24: i attends to j where", "(i − j) mod 8 = 0"):
        assert words in card
    heads = P.per_head(P.causal(), P.full())._repr_html_()
    assert heads is not None and heads.count("<svg") == 2
    for pattern, L in ((P.random_keys(2).at(10), 10), (P.random_keys(30), 48)):
        card = pattern._repr_html_()
        assert card is not None and f"at L = {L}" in card
    table = P.table(torch.eye(5, dtype=torch.bool)) | P.causal()
    assert "at L = 5" in str(table._repr_html_())
    assert P.random_keys(500)._repr_html_() is None, "too long for a small picture: its words"
