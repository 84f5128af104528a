"""Rooms run: the `>>>` examples of the library are right, and every room has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tfviz
from tfviz.catalogue import MECHANISMS

ROOMS = sorted({row.module for row in MECHANISMS if row.module})
MODULES = sorted(found.name for found in pkgutil.walk_packages(tfviz.__path__, "tfviz."))
# A list that only gets shorter: a room that has its example goes from here.
WITHOUT = [
    "tfviz.basics.additive_attention",
    "tfviz.basics.alrfou_auxiliary_losses",
    "tfviz.basics.causal_masking",
    "tfviz.basics.decoding_strategies",
    "tfviz.basics.encoder_decoder",
    "tfviz.basics.kv_cache",
    "tfviz.basics.layer_norm_pre_post",
    "tfviz.basics.lm_objectives",
    "tfviz.basics.multi_head_attention",
    "tfviz.basics.pointwise_mlp",
    "tfviz.basics.residual_connection",
    "tfviz.basics.scaled_dot_product_attention",
    "tfviz.basics.soft_dictionary",
    "tfviz.basics.token_embedding",
    "tfviz.position.learned_pe",
    "tfviz.position.rope",
    "tfviz.position.shaw_relative",
    "tfviz.position.sinusoidal_pe",
    "tfviz.position.xl_relative",
    "tfviz.sparse.blockwise_attention",
    "tfviz.sparse.sparse_transformer_fixed",
    "tfviz.sparse.sparse_transformer_strided",
    "tfviz.sparse.sparse_transformer_usage",
]


def examples(module: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder().find(importlib.import_module(module))
    return [test for test in found if test.examples]


@pytest.mark.parametrize("module", [name for name in MODULES if not name.endswith("__main__")])
def test_examples_are_right(module: str) -> None:
    for test in examples(module):
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert not runner.run(test, out=said.append).failed, "".join(said)


@pytest.mark.parametrize("module", ROOMS)
def test_a_room_has_an_example(module: str) -> None:
    has = bool(examples(module))
    if module in WITHOUT:
        assert not has, f"{module} has an example: take it from the list of rooms without one"
    else:
        assert has, f"{module} has no example: show in a docstring, after >>>, how it is used"


def test_no_room_is_added_to_those_without_an_example() -> None:
    assert set(WITHOUT) <= set(ROOMS) and len(WITHOUT) == len(set(WITHOUT))
