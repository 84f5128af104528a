"""Every attention looks at what it is given. What asks rooms for refusals and for growth finds out
a room that has them not."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import laws
import pytest
import torch
from cases import functions
from laws import Case
from refusals import of_no_kind, ranges, refused
from three import qkv

from tfviz import attention
from tfviz import patterns as P
from tfviz._arguments import integer, real
from tfviz.cores import Dense, Sparse, Where
from tfviz.models.gpt import GPT
from tfviz.sparse import reformer_lsh as lsh
from tfviz.sparse.bp_transformer import tree_attention

FUNCTIONS = functions()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_attention_looks_at_its_input(name: str) -> None:
    laws.it_looks_at_its_input(FUNCTIONS[name].call)


def test_trees_and_hashes_look_too() -> None:
    Q, _, V = (x.detach() for x in qkv(15))  # the 15 nodes over 8 tokens
    R = lsh.directions(6, 4)
    for V_, says in ((V / 0, "V holds NaN"), (V[:1], "have leading shapes")):
        refused(says, tree_attention, Q, Q, V_, 1)
        refused(says, lsh.lsh_attention, Q, V_, R, 5)


def curt(n: int) -> None:
    raise ValueError(f"n = {n!r}")


WRONG: dict[str, Callable[..., object]] = {
    "takes anything": lambda n: n,
    "names another argument": lambda n: integer("m", n, 1, 8),
    "begins one too low": lambda n: integer("n", n, 0, 8),
    "begins one too high": lambda n: integer("n", n, 2, 8),
    "ends one too high": lambda n: integer("n", n, 1, 9),
    "has no end": lambda n: integer("n", n, 1),
    "takes a Boolean": lambda n: 1 if n is True else integer("n", n, 1, 8),
    "rounds": lambda n: integer("n", round(n) if n == 3.5 else n, 1, 8),
    "takes NaN": lambda n: n if n != n else integer("n", n, 1, 8),
    "reads a text": lambda n: integer("n", int(n) if n == "3" else n, 1, 8),
    "says not what to do": lambda n: n if n in (1, 3, 8) and n is not True else curt(n),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_number_that_is_not_looked_at_is_found_out(name: str) -> None:
    ranges(lambda n: integer("n", n, 1, 8), n=(3, 1, 8))
    with pytest.raises((AssertionError, ValueError)):
        ranges(WRONG[name], n=(3, 1, 8))


def test_infinity_is_refused_unless_it_is_an_end() -> None:
    ranges(lambda x: real("x", x, 0.0), x=(1.0, 0.0))
    ranges(lambda x: x if x == math.inf else real("x", x, 0.0), x=(1.0, 0.0, math.inf))
    with pytest.raises(AssertionError, match="accepted, where 'x = inf' was due"):
        ranges(lambda x: x if x == math.inf else real("x", x, 0.0), x=(1.0, 0.0))


def test_words_have_an_order_and_errors_a_kind() -> None:
    refused("n = 0 … choose", integer, "n", 0, 1)
    for says in ("choose … n = 0", "n = 00", "n = 0 … n = 0 is"):
        with pytest.raises(AssertionError, match="does not say"):
            refused(says, integer, "n", 0, 1)
    with pytest.raises(ValueError, match="n = 0"):
        of_no_kind("n = 0", integer, "n", 0, 1)


def test_laws_for_cores_of_their_own_find_out_others() -> None:
    with pytest.raises(AssertionError):
        laws.it_wants_a_whole_text(Case(Dense, laws.plain))
    for blind in (lambda Q, K, V: V, lambda Q, K, V: Dense()(Q, K, V, Where(P.full()))[0]):
        with pytest.raises((AssertionError, ValueError)):
            laws.it_looks_at_its_input(blind)
    with pytest.raises(AssertionError):  # another model, not the same weights
        text = torch.randint(11, (1, 8))
        laws.it_resumes_to_the_last_bit(lambda: GPT(11, 8, 2, 1), text, 2)
    grows = partial(laws.work_grows_no_faster, work=(64, 256), memory=(64, 256))
    with pytest.raises(AssertionError):
        grows(lambda L: lambda *X: attention(*X)[0], 1.6)
    near = Where(P.sliding_window(lookback=8))
    grows(lambda L: lambda *X: Sparse()(*X, near)[0], 1.2)
