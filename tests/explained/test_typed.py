"""Typed formulas: read as Python reads them, never executed, refused with place and remedy."""

from __future__ import annotations

import builtins
import math
import random
from typing import Any

import pytest
import torch
from explained.formulas import BAD, GOOD, made, mangled
from refusals import of_no_kind, refused
from torch.nn.attention.flex_attention import create_mask

from tfviz import patterns
from tfviz.explained import recognise
from tfviz.explained.typed import FUNCTIONS, HEADS, WORDS, TypedError, read_typed

RESTS_ON = ("tfviz/**", "tests/*.py")  # functions of `math` are found by their names

L = 11


def by_python(text: str, values: dict[str, float]) -> Any:
    """What Python itself makes of the text, pair by pair: the definition, for a test alone."""
    known: dict[str, Any] = {name: getattr(math, name) for name in FUNCTIONS if hasattr(math, name)}
    known |= {"where": lambda c, a, b: a if c else b, "inf": math.inf, "L": L, **values}
    known["log"] = lambda x: math.log(x) if x else -math.inf
    known["negated"] = lambda truth: not truth  # of a Python bool ~ is −1 or −2
    code = compile(text.strip().replace("~(", "negated("), "typed", "eval")
    pairs = [[{"i": i, "q": i, "j": j, "k": j} for j in range(L)] for i in range(L)]
    return torch.tensor([[float(eval(code, known | pair)) for pair in row] for row in pairs])


@pytest.mark.parametrize("text", GOOD)
def test_it_is_what_python_makes_of_it(text: str) -> None:
    table = read_typed(text).table(L, **GOOD[text])
    torch.testing.assert_close(table.float(), by_python(text, GOOD[text]))


@pytest.fixture
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look for a family of the same pairs, which takes longer than all the rest."""
    monkeypatch.setattr(recognise, "family_of_formula", lambda made, numbers: None)


@pytest.mark.parametrize("text", GOOD)
def test_all_faces_are_of_the_same_pairs(text: str, unnamed: None) -> None:
    """`explain` of it, and what FlexAttention makes of its function."""
    one, values = read_typed(text), GOOD[text]
    table, h = one.table(L, **values), int(values.get("h", 0))
    allowed = table if one.is_mask else table > -math.inf
    explained = one.explain(L, **values)
    assert explained.kind in ("formula", "bias"), explained.why
    assert torch.equal(one.pattern(L, **values).mask(L), allowed)
    if one.is_mask:
        assert explained.bias is None
        mod = one.function(L, **values)
        flex = create_mask(mod, 1, HEADS, L, L, device="cpu")[0, h]
        assert torch.equal(flex, allowed)
    elif explained.bias is not None and not torch.equal(table, torch.zeros_like(table)):
        bias = explained.bias.tensor(L)
        bias = bias[h if len(bias) > 1 else 0].double()
        torch.testing.assert_close(bias[allowed], table[allowed], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_read_is_refused_by_name(text: str) -> None:
    with pytest.raises(TypedError) as refusal:
        read_typed(text).table(L)
    error = refusal.value
    assert error.code == BAD[text]
    assert "{" not in error.message
    assert 0 <= error.at <= max(len(text), 1)
    if text.strip():
        *_, shown, caret = str(error).split("\n")
        assert (shown, caret) == (text, " " * error.at + "^")


def test_every_error_occurs() -> None:
    assert {*BAD.values()} == {*WORDS}


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("i >= j and i - j < 4", 7),
        ("(i >= (j - 1)", 0),
        ("(i >= j)) & (i < 3)", 8),
        ("i >= j & i - j < w", 5),
        ("(i >= j) & (i - j)", 12),
        ("0 <= i - j < w", 13),
        ("i % (j - 3) == 0", 5),
        ("i + sqrt(i - j) > 2", 4),
    ],
)
def test_the_caret_stands_where_it_is_wrong(text: str, at: int) -> None:
    with pytest.raises(TypedError) as refusal:
        read_typed(text).table(L)
    assert refusal.value.at == at


def test_no_text_brings_anything_but_a_formula_or_a_typed_error() -> None:
    """Thousands of slips: never another exception, and never one of Python's own syntax errors."""
    pick, read = random.Random(1), 0
    for _ in range(1500):
        text = mangled(pick, pick.choice([*GOOD, *BAD]))
        try:
            read_typed(text).table(7)
            read += 1
        except TypedError:
            pass
    assert 100 < read < 1400


def test_random_formulas_are_what_explain_finds(unnamed: None) -> None:
    pick, count = random.Random(2), 0
    while count < 25:
        text = made(pick)
        try:
            one = read_typed(text)
            table = one.table(L)
        except TypedError:
            continue
        allowed = table if one.is_mask else table > -math.inf
        assert torch.equal(one.pattern(L).mask(L), allowed), text
        count += 1


def test_nothing_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's parser makes a tree of what was typed, and eval and exec are never called."""

    def never(*given: Any, **more: Any) -> Any:
        raise AssertionError(f"executed: {given}")

    for name in ("eval", "exec"):
        monkeypatch.setattr(builtins, name, never)
    for text in ["__import__('os').system('true')", "i.__class__ > j", "print(i) > 2", "(i := 3)"]:
        with pytest.raises(TypedError):
            read_typed(text)
    assert read_typed("i >= j").table(3).sum() == 6


def test_the_numbers_of_names() -> None:
    one = read_typed("(i // b == j // b) & (i - j < w)")
    assert {n: (x.low, x.high) for n, x in one.names.items()} == {"b": (1, 32), "w": (0, 64)}
    assert read_typed("-m * abs(i - j) // m").names["m"].low == 1
    assert read_typed("-m * abs(i - j)").names["m"].step == 0.05
    assert read_typed("m * i + m").names["m"].step == 1  # added too: a whole number
    assert read_typed("(i - j) % (h + 1) == 0").names["h"].high == HEADS - 1
    refused("b = 0 … choose 1 <= b <= 32", one.table, 8, b=0)
    refused("w = 2.5", one.table, 8, w=2.5)
    refused("x is no name … b, w", one.table, 8, x=1)
    refused("L = 0", one.table, 0)
    of_no_kind("text is 3 … int", read_typed, 3)


def test_what_it_is_called_in_the_library() -> None:
    window = read_typed("(i >= j) & (i - j < w)")
    assert window.explain(24, w=4).same_as == patterns.sliding_window(lookback=3)
    assert window.explain(24, w=4).parameters == {"w": 4}
    by_head = read_typed("(i >= j) & ((i - j) % (h + 1) == 0)").explain(24)
    assert len(by_head.pattern.parts) == HEADS
    alibi = read_typed("where(i >= j, -m * (i - j), -inf)").explain(24, m=0.5)
    assert alibi.bias is not None and alibi.bias.parameters == {"m": 0.5}
    assert torch.equal(alibi.mask(24), patterns.causal().mask(24))
