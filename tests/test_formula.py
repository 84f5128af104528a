"""A formula and its faces: torch, FlexAttention, SymPy, LaTeX, text, JavaScript."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfviz.formula import Formula, FormulaError, hash_of


def strided(i, j, *, stride):
    return (i >= j) & ((i - j <= stride) | ((i - j) % stride == 0))


def alibi(i, j, *, slope):
    return -slope * (i - j)


def gaussian(i, j, *, sigma):
    return torch.exp(-((i - j) ** 2) / (2 * sigma**2))


def ramp(i, j, *, z, width):
    return torch.clamp((width + z - (i - j)) / width, min=0, max=1)


def sinusoid(i, k, *, d):
    angle = i / 10000 ** (2 * (k // 2) / d)
    return torch.where(k % 2 == 0, torch.sin(angle), torch.cos(angle))


def rescaled(i, j, *, w, v):
    return (1 + math.e**v) / (1 + torch.exp(v - w * torch.abs(i - j)))


REALS = frozenset({"slope", "sigma", "z", "width", "w", "v"})
REAL_CASES = [
    (alibi, {"slope": 0.25}),
    (gaussian, {"sigma": 2.5}),
    (ramp, {"z": 3.0, "width": 4.0}),
    (sinusoid, {"d": 8}),
    (rescaled, {"w": 0.5, "v": 1.0}),
]


def grid(L: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(L)[:, None], torch.arange(L)[None, :]


def in_browser(page: Any, javascript: str, L: int, values: list[Any]) -> list[Any]:
    script = f"([L, values]) => {{ const f = {javascript}; const out = [];"
    script += (
        "for (let i = 0; i < L; i++) for (let j = 0; j < L; j++) out.push(f(i, j, ...values));"
    )
    return page.evaluate(script + "return out; }", [L, values])


def test_the_call_is_the_function():
    i, j = grid(6)
    assert Formula(strided)(i, j, stride=2).int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 1, 1, 1, 0, 0],
        [1, 0, 1, 1, 1, 0],
        [0, 1, 0, 1, 1, 1],
    ]
    assert Formula(strided)(4, 0, stride=2) is True


def test_printed_faces():
    formula = Formula(strided, letters={"stride": r"\ell"})
    assert formula.latex() == (
        r"i \geq j \land \left(\left(i - j\right) \bmod \ell = 0 \lor i - j \leq \ell\right)"
    )
    assert formula.text(stride=8, i=12) == "12 ≥ j and ((12 − j) mod 8 = 0 or 12 − j ≤ 8)"
    assert Formula(alibi, reals=REALS).javascript() == "(i, j, slope) => -slope*(i - j)"
    assert Formula(gaussian, reals=REALS).latex().count(r"\sigma") == 1


def test_parameters_alone_are_computed_and_indices_are_shown():
    formula = Formula(lambda i, j, *, block, summary: (j % block >= block - summary) & (i >= j))
    assert formula.text(block=8, summary=1, i=3) == "3 ≥ j and j mod 8 ≥ 7"


@pytest.mark.parametrize(
    ("function", "values"), REAL_CASES, ids=lambda x: getattr(x, "__name__", "")
)
def test_real_valued_formulas_agree_in_the_browser(page, function, values):
    formula = Formula(function, reals=REALS)
    i, j = grid(24)
    ours = formula(i.double(), j.double(), **values).expand(24, 24)
    theirs = in_browser(page, formula.javascript(), 24, list(values.values()))
    torch.testing.assert_close(torch.tensor(theirs, dtype=torch.float64), ours.flatten())


def test_floor_and_modulo_of_negative_numbers_agree(page):
    def floors(i, j, *, n):
        return (i - 2 * j) // n * 100 + (i - 2 * j) % n

    formula = Formula(floors)
    i, j = grid(16)
    for n in (1, 3, 7):
        theirs = in_browser(page, formula.javascript(), 16, [n])
        assert theirs == formula(i, j, n=n).flatten().tolist()
        assert theirs == [floors(a, b, n=n) for a in range(16) for b in range(16)]
        symbols = formula.indices
        exact = formula.sympy.subs(
            {formula.symbol(s): v for s, v in zip(symbols, (1, 9), strict=True)}
        )
        assert int(exact.subs(formula.symbol("n"), n)) == floors(1, 9, n=n)


def test_hash_is_the_same_everywhere(page):
    def hashed(i, j, *, seed):
        return hash_of(i, j, seed)

    formula = Formula(hashed)
    i, j = grid(40)
    ours = formula(i, j, seed=5)
    assert in_browser(page, formula.javascript(), 40, [5]) == ours.flatten().tolist()
    assert formula.latex() == r"\operatorname{hash}(i, j, \mathrm{seed})"


def test_hash_looks_random():
    """Chi-square of 65 536 values in 64 bins: mean 63, standard deviation 11."""
    i, j = grid(256)
    for seed in range(4):
        counts = torch.bincount((hash_of(i, j, seed) % 64).flatten(), minlength=64).double()
        chi = ((counts - 1024) ** 2 / 1024).sum()
        assert 20 < chi < 63 + 5 * 11.3


def test_flex_attention_takes_the_mods():
    from torch.nn.attention.flex_attention import create_mask

    mask = create_mask(Formula(strided).mask_mod(stride=3), None, None, 20, 20, device="cpu")
    i, j = grid(20)
    assert mask[0, 0].equal(strided(i, j, stride=3))
    score = Formula(alibi, reals=REALS).score_mod(slope=0.5)
    assert score(torch.tensor(2.0), 0, 0, torch.tensor(7), torch.tensor(3)) == 0.0


def branch(i, j, *, radius):
    if i > j:
        return i - j <= radius
    return j - i <= radius


def chained(i, j, *, radius):
    return 0 <= i - j <= radius


def conjunction(i, j, *, radius):
    return i >= j and i - j <= radius


def builtin_min(i, j, *, radius):
    return min(i, j) < radius


def unknown_call(i, j, *, radius):
    return torch.cumsum(i, 0) <= radius


def arithmetic_on_truth(i, j, *, radius):
    return (i > j) * radius + 1


@pytest.mark.parametrize(
    ("function", "quoted"),
    [
        (branch, "if i > j:"),
        (chained, "0 <= i - j <= radius"),
        (conjunction, "i >= j and i - j <= radius"),
        (builtin_min, "min(i, j) < radius"),
        (unknown_call, "cumsum"),
        (arithmetic_on_truth, "mul(i > j, radius)"),
    ],
)
def test_what_is_not_a_formula_is_refused_with_its_place(function, quoted):
    with pytest.raises(FormulaError) as refusal:
        Formula(function).latex()
    message = str(refusal.value)
    assert function.__name__ in message
    assert quoted in message
    assert "& | ~" in message or "a formula may use" in message


@pytest.mark.parametrize(
    "function", [lambda i: i, lambda i, j, k: i, lambda *a: a, lambda i, j, **k: i]
)
def test_signatures_that_are_not_of_two_indices_are_refused(function):
    with pytest.raises(FormulaError, match=r"two indices|name every parameter"):
        Formula(function)


@settings(max_examples=60, deadline=None)
@given(i=st.integers(0, 4000), j=st.integers(0, 4000), stride=st.integers(1, 300))
def test_sympy_is_the_function(i, j, stride):
    formula = Formula(strided)
    names = zip(("i", "j", "stride"), (i, j, stride), strict=True)
    value = formula.sympy.subs({formula.symbol(name): number for name, number in names})
    assert bool(value) == strided(i, j, stride=stride)


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "tfviz/formula.py": [
        (
            "modulo of a negative number as in C",
            '"mod": sp.Mod,',
            '"mod": lambda a, b: a - b * sp.sign(a) * sp.floor(sp.Abs(a) / b),',
        ),
        (
            "and is printed as or",
            '.replace(r"\\wedge", r"\\land")',
            '.replace(r"\\wedge", r"\\lor")',
        ),
    ],
}
