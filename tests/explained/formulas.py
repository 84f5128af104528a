"""Formulas as people type them, with their numbers, and texts that are none: for Python and for
the browser, which must say the same of each."""

from __future__ import annotations

import random

GOOD: dict[str, dict[str, float]] = {
    # masks
    "i >= j": {},
    "q>=k": {},
    "(i >= j) & (i - j < w)": {"w": 3},
    "(i >= j) & ((i - j < w) | (j % s == 0))": {"w": 3, "s": 5},
    "(i // b == j // b) | (j % s == 0)": {"b": 3, "s": 5},
    "abs(i-j) <= w": {"w": 2},
    "(abs(i - j) <= w) | (i < g) | (j < g)": {"w": 2, "g": 1},
    "(i >= j) | (j < p)": {"p": 5},
    "(abs(i - j) <= w * d) & ((i - j) % d == 0)": {"w": 2, "d": 3},
    "(i + j) % 2 == 0": {},
    "~(i < j)": {},
    "~(i < j) & ~(i - j > w)": {"w": 4},
    "(i < j) ^ (j < 3)": {},
    "(i < j) == (j % 2 == 0)": {},
    "(i < j) != (j % 2 == 0)": {},
    # // and % of negative numbers
    "(i - j) % 3 == 1": {},
    "(j - i) // 4 == -1": {},
    "(i - j) % -3 == -1": {},
    "(i - j) // -4 >= 0": {},
    "-i // 2 + j > 0": {},
    "-(i // 2) + j > 0": {},
    "-i % 3 == j % 3": {},
    "(i - 7.5) // 2 == (j - 7.5) // 2": {},
    "(i - 0.5) % 2.5 < 1": {},
    # precedence
    "i - j - 1 >= 0": {},
    "i - (j - 1) >= 0": {},
    "2 + 3 * i > 4 * j - 1": {},
    "-2 ** 2 + i >= j": {},
    "(-2) ** 2 + j >= i": {},
    "2 ** 3 - -j > i": {},
    "i ** 2 - j ** 2 < w": {"w": 20},
    "2 * -i < -j": {},
    "- - i >= + j": {},
    "i / 2 / 2 <= j": {},
    "12 // 5 // 2 + j <= i": {},
    "100 % 7 % 4 * j >= i": {},
    "(i < 3) | (j < 3) & (i == j)": {},
    "(i < 3) ^ (j < 3) | (i == j) & (j > 1)": {},
    "(i <= j * 2) == (j < 4)": {},
    # functions and other names
    "max(i, j) - min(i, j, 3) < w": {"w": 4},
    "min(3, i) > j": {},
    "where(i > j, 1, 0) + where(j > 2, 1, 0) == 1": {},
    "where(i > j, i - j, 2 * (j - i)) <= w": {"w": 5},
    "sqrt(i * j) < 3.5": {},
    "(i >= j) & ((i - j) % (h + 1) == 0)": {"h": 2},
    "i - j < L // 2": {},
    "(i >= L - 2) | (j >= L - 2)": {},
    "1e1 > i + j": {},
    ".5 * i < j + 1.": {},
    "  i\t>= j  ": {},
    "long_name1 > i - j": {"long_name1": 2},
    "i > i": {},
    "i >= 0": {},
    # biases
    "-m * abs(i - j)": {"m": 0.25},
    "-2.0 ** -(h + 1) * abs(i - j)": {"h": 1},
    "-m * min(abs(i - j) // b, n)": {"m": 0.5, "b": 3, "n": 2},
    "where(i >= j, -m * (i - j), -inf)": {"m": 0.5},
    "where(i >= j, where(i - j < w, 0, -1), -inf)": {"w": 3},
    "exp(-m * abs(i - j))": {"m": 0.5},
    "log(1 + abs(i - j)) / 2 + cos(i) - sin(j) * tanh(i - j)": {},
    "-m // 2 * i - j": {"m": 3},
    "log(j)": {},
    "(i - j) / L": {},
    "0.1 * max(i, 3, m)": {"m": 1},
    "i * j": {},
}

BAD = {
    "": "empty",
    "   ": "empty",
    "i + " * 40: "long",
    "(" * 21 + "i": "deep",
    "i $ j": "character",
    "i.j": "character",
    "i[j]": "character",
    "'i'": "character",
    "i >= j 🙂": "character",
    "i ≥ j": "sign",
    "i − j > 2": "sign",
    "2i > j": "glued",
    "1_000 > i": "glued",
    "i >= 007": "zeros",
    "i >= j and i - j < 4": "words",
    "not i < j": "words",
    "(i < j) or (j < 3)": "words",
    "i if j else k": "keyword",
    "True": "keyword",
    "lambda: i": "keyword",
    "i = j": "equals",
    "i === j": "equals",
    "(i < j) && (j < 3)": "double",
    "(i < j) || (j < 3)": "double",
    "!(i < j)": "bang",
    "i >> 2 > j": "shift",
    "i >= ": "operand",
    "i >= * j": "operand",
    "(i >= j) &": "operand",
    "i <> j": "operand",
    "()": "operand",
    "max(i, j,) > 3": "operand",
    "i j": "between",
    "abs i": "between",
    "(i) (j)": "between",
    "2 (i)": "between",
    "i ~ j": "between",
    "i, j": "comma",
    "(i, j)": "comma",
    "i) >= j": "close",
    "(i >= (j - 1)": "open",
    "abs(i - j <= 3": "open",
    "f(i) > j": "function",
    "w(i - j) > 2": "function",
    "__import__(i)": "function",
    "abs > 2": "call",
    "abs() > i": "arguments",
    "max(i) > j": "arguments",
    "where(i > j, 1) > 0": "arguments",
    "score + i": "reserved",
    "_x > i": "underscore",
    "__class__ > i": "underscore",
    "a + b + c + d + e > i": "names",
    "0 <= i - j < w": "chain",
    "i == j == 3": "chain",
    "i >= j & i - j < w": "tight",
    "i & 3 == 0": "tight",
    "(i >= j) & (i - j)": "tight",
    "i | j": "tight",
    "~i >= j": "not",
    "(i < j) + 1 > i": "numbers",
    "-(i < j) > i": "numbers",
    "abs(i < j) > 0": "numbers",
    "(i < j) < 2": "numbers",
    "where(i < j, j < 3, 2) > 1": "numbers",
    "(i < j) == i": "mixed",
    "where(i, j, 2) > 1": "choice",
    "2 ** h > i": "power",
    "i ** -1 > j": "power",
    "2 ** 3 ** 1 > i": "power",
    "1": "constant",
    "w + 2": "constant",
    "h < 2": "constant",
    "(w > 3) & (i > j)": "still",
    "i > 99999999999": "large",
    "i < 1e999": "large",
    "i * 2147483647 > j": "large at",
    "i ** 40 > j": "large at",
    "i // j > 2": "zero",
    "i % (j - 3) == 0": "zero",
    "1 / (i - j)": "zero",
    "where(j > 0, i / j, 0)": "zero",
    "sqrt(i - j) > 2": "nan",
    "log(i - j)": "nan",
    "inf * (i - j)": "nan",
    "inf - inf + i": "nan",
    "where(i >= j, 0, inf)": "infinite",
}
"""Texts, and the name of what is wrong with each; names have their first numbers."""


def made(pick: random.Random, depth: int = 4, condition: bool | None = None) -> str:
    """A formula drawn at random, most of them fine."""
    condition = pick.random() < 0.7 if condition is None else condition
    blank = pick.choice(["", " "])

    def inner(wants: bool) -> str:
        text = made(pick, depth - 1, wants)
        return f"({text})" if pick.random() < 0.6 else text

    if condition:
        if depth <= 1 or pick.random() < 0.5:
            sign = pick.choice(["<", "<=", ">", ">=", "==", "!="])
            return f"{inner(False)}{blank}{sign}{blank}{inner(False)}"
        if pick.random() < 0.2:
            return f"~({made(pick, depth - 1, True)})"
        sign = pick.choice("&&||^")
        return f"({made(pick, depth - 1, True)}){blank}{sign}{blank}({made(pick, depth - 1, True)})"
    if depth <= 1 or pick.random() < 0.25:
        return pick.choice(
            ["i", "j", "i - j", "j-i", "w", "L", "3", "2", "0.5", "b", "i", "j", "h"]
        )
    kind = pick.random()
    if kind < 0.15:
        return f"-{inner(False)}"
    if kind < 0.3:
        return f"{pick.choice(['abs', 'cos', 'exp', 'tanh'])}({made(pick, depth - 2, False)})"
    if kind < 0.4:
        name = pick.choice(["min", "max"])
        return f"{name}({made(pick, depth - 2, False)}, {made(pick, depth - 2, False)})"
    if kind < 0.5:
        sides = f"{made(pick, depth - 2, False)}, {made(pick, depth - 2, False)}"
        return f"where({made(pick, depth - 2, True)}, {sides})"
    if kind < 0.6:
        return f"{inner(False)} ** {pick.choice(['2', '1', '3'])}"
    sign = pick.choice(["+", "-", "*", "//", "%", "/", "+", "-"])
    right = pick.choice(["3", "b", "2"]) if sign in ("//", "%", "/") else inner(False)
    return f"{inner(False)}{blank}{sign}{blank}{right}"


def mangled(pick: random.Random, text: str) -> str:
    """The text after a few slips of the fingers."""
    letters = "ij()&|~^<>=!+-*/%,.0123456789wabs _$≥"
    for _ in range(pick.randint(1, 3)):
        at = pick.randint(0, len(text))
        kind = pick.random()
        if kind < 0.4:
            text = text[:at] + text[at + 1 :]
        elif kind < 0.8:
            text = text[:at] + pick.choice(letters) + text[at:]
        else:
            text = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
    return text
