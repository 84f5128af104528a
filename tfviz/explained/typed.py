"""A mask or a bias that somebody types: a formula of i and j in Python's syntax. It is read, and
never executed.

    read_typed("(i >= j) & (i - j < w)")         a mask: where i may attend to j
    read_typed("-m * abs(i - j)")                 a bias, added to the scores

The language has whole and real numbers, i (or q), j (or k), the length L, the head h, other names
for numbers, + − * / // % **, comparisons, & | ^ ~ for conditions, and the functions of `FUNCTIONS`.
Python's own parser reads the text, and what is not in this list is refused with the place and the
remedy. A page has the same language in JavaScript (`explorers/shared/typed.js`); the words of the
errors are only here.

>>> mask = read_typed("(i >= j) & (i - j < w)")
>>> mask.table(3, w=2).int().tolist()
[[1, 0, 0], [1, 1, 0], [0, 1, 1]]
>>> mask.explain(64, w=4).same_as
sliding_window(lookback=3)
>>> read_typed("i >= (j - 1")
Traceback (most recent call last):
tfviz.explained.typed.TypedError: This ( is never closed.
i >= (j - 1
     ^
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple, TypeAlias

import sympy as sp
import torch
from jaxtyping import Shaped
from torch import Tensor

from tfviz import _arguments
from tfviz._arguments import only_zeros_and_ones
from tfviz.explained.bring import Explained, explain, of_numbers
from tfviz.explained.trees import ONE
from tfviz.explained.truths import left_out
from tfviz.patterns import Pattern
from tfviz.patterns.pattern import PerHead

LONGEST = 120
"""The most characters of a formula."""
DEEPEST = 20
"""The most parentheses around each other."""
NAMES = 4
"""The most names for numbers."""
LARGEST = 2**31
"""Whole numbers stay below it, so that a browser and torch have the same."""
HEADS = 8
"""The heads that h counts."""

POSITIONS = {"i": "i", "q": "i", "j": "j", "k": "j"}
"""Names of the two positions."""

FUNCTIONS: dict[str, tuple[int, int]] = {
    "abs": (1, 1),
    "min": (2, 4),
    "max": (2, 4),
    "where": (3, 3),
    **dict.fromkeys(("exp", "log", "sqrt", "sin", "cos", "tanh"), (1, 1)),
}
"""What a formula may call, with the least and the greatest number of arguments."""

RESERVED = ("score", "torch", "math", "tfviz", "explain", "mask_mod", "score_mod")
"""Names that the Python which is copied from a page needs itself."""

SIGNS = {"≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "–": "-", "·": "*", "×": "*", "÷": "/"}
SIGNS |= {"∧": "&", "∨": "|", "¬": "~", "＝": "=="}
"""Signs of mathematics, and how Python writes them."""

INSTEAD = {"and": "&", "or": "|", "not": "~", "&&": "&", "||": "|", "!": "~", "=": "=="}
"""What others write, and what the language has."""

WORDS = {
    "empty": "Type a formula of i and j, such as (i >= j) & (i - j < w).",
    "long": "The formula has {n} characters; at most {right} are read.",
    "deep": "More than {right} parentheses stand around each other here.",
    "character": "{what} has no meaning here. There are numbers, names, + - * / // % **, "
    "comparisons, & | ^ ~ and parentheses.",
    "sign": "Write {right} for {what}.",
    "glued": "An operator is missing after {what}. A product is written with *.",
    "zeros": "Python has no whole number that begins with 0, such as {what}.",
    "words": "Write {right} for {what}, with each condition in parentheses: Python's {what} asks "
    "for one truth value, and here each pair has its own.",
    "keyword": "{what} is a word of Python that no formula has. A choice is written "
    "where(condition, a, b).",
    "equals": "One = gives a name to a value. To compare, write ==.",
    "double": "Write {right} for {what}, with each condition in parentheses.",
    "bang": "Write ~ for not, before a condition in parentheses; unequal is !=.",
    "shift": "{what} shifts the bits of a number, which no formula does.",
    "operand": "A number, a name or ( is expected here, not {what}.",
    "between": "An operator is missing before {what}. A product is written with *.",
    "comma": "A comma stands only between the arguments of a function.",
    "close": "This ) has no ( before it.",
    "open": "This ( is never closed.",
    "function": "There is no function {what}. There are {right}; a product is {what} * (…).",
    "call": "{what} is a function: write {what}(…).",
    "arguments": "{what} takes {right}, and here stand {n}.",
    "reserved": "The name {what} is taken; choose another for this number.",
    "underscore": "A name begins with a letter, and {what} does not.",
    "names": "{what} is one name too many: at most {right} numbers have names.",
    "chain": "Python joins the parts of a chained comparison by `and`, which asks for one truth "
    "value. Write two: (a <= b) & (b < c).",
    "tight": "{what} joins conditions, and this is a number. {what} binds more tightly than a "
    "comparison: put each comparison in parentheses, as in (i >= j) & (i - j < w).",
    "not": "~ turns a condition round, and this is a number. Put the comparison in parentheses: "
    "~(i >= j).",
    "numbers": "{what} takes numbers, and this is a condition. Conditions are joined by & and |; "
    "where(condition, 1, 0) makes numbers of one.",
    "mixed": "{what} compares two numbers or two conditions, and here stands one of each.",
    "choice": "where(condition, a, b) begins with a condition, and this is a number.",
    "power": "A whole number has only fixed powers here, such as i ** 2, because a power may be "
    "negative. With a point it is a real number: 2.0 ** h.",
    "constant": "Neither i nor j stands in the formula, so all pairs would be alike. "
    "i >= 0 holds for every pair.",
    "still": "Neither i nor j nor h stands in this comparison, so it is the same for all pairs.",
    "large": "The number is too large: {right} is the limit.",
    "large at": "The whole number at i = {i}, j = {j} is too large: {right} is the limit.",
    "zero": "Division by 0 at i = {i}, j = {j}. where(…) does not help: both of its sides are "
    "computed.",
    "nan": "What begins here is no number at i = {i}, j = {j}.",
    "infinite": "The bias is +∞ at i = {i}, j = {j}. Only −inf has a meaning: the pair is not "
    "allowed.",
}
"""What is said of an error, by its name."""

TOKEN = re.compile(
    r"(?P<space>[ \t]+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<shift><<|>>)"
    r"|(?P<other>&&|\|\|)"
    r"|(?P<op>\*\*|//|<=|>=|==|!=|[-+*/%()<>,&|^~])"
    r"|(?P<wrong>[=!])",
)


class TypedError(ValueError):
    """A formula that cannot be read, or has no value somewhere.

    code      the name of the error in `WORDS`
    at        the place in the text, from 0
    message   what is wrong, and what to write instead
    """

    def __init__(self, code: str, text: str, at: int, **said: Any) -> None:
        self.code, self.text, self.at, self.said = code, text, at, said
        self.message = WORDS[code].format(**said)
        super().__init__(f"{self.message}\n{text}\n{' ' * at}^" if text.strip() else self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        """So that a worker can raise it in the process that it works for."""
        return partial(TypedError, **self.said), (self.code, self.text, self.at)


class Token(NamedTuple):
    """A piece of the text."""

    kind: str
    text: str
    at: int


Bare: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Node:
    """An operation on others, a number or a name; `kind` is "whole", "real" or "condition"."""

    op: str
    at: int
    kind: str
    args: tuple[Node, ...] = ()
    value: Any = None

    def bare(self) -> Bare:
        """The same as tuples of words and numbers."""
        return (self.op, self.value, *(one.bare() for one in self.args))

    def every(self) -> Iterator[Node]:
        """This one and all below."""
        yield self
        for one in self.args:
            yield from one.every()

    def moves(self, *names: str) -> bool:
        """Whether one of these names stands in it; the positions or the head without any."""
        wanted = names or ("i", "j", "h")
        return any(one.op == "name" and one.value in wanted for one in self.every())


# --- the text ------------------------------------------------------------------------------------


def tokens_of(text: str) -> list[Token]:
    """The pieces of a text, of which Python's grammar makes one expression. Raises TypedError."""

    def wrong(code: str, at: int, **said: Any) -> TypedError:
        return TypedError(code, text, at, **said)

    if not text.strip():
        raise wrong("empty", 0)
    if len(text) > LONGEST:
        raise wrong("long", LONGEST, n=len(text), right=LONGEST)
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            what = text[at]
            if what in SIGNS:
                raise wrong("sign", at, what=what, right=SIGNS[what])
            raise wrong("character", at, what=what)
        kind, piece = str(match.lastgroup), match[0]
        if kind == "shift":
            raise wrong("shift", at, what=piece)
        if kind == "other":
            raise wrong("double", at, what=piece, right=INSTEAD[piece])
        if kind == "wrong":
            raise wrong("equals" if piece == "=" else "bang", at)
        if kind == "name":
            if piece in ("and", "or", "not"):
                raise wrong("words", at, what=piece, right=INSTEAD[piece])
            if keyword.iskeyword(piece):
                raise wrong("keyword", at, what=piece)
        if kind == "number":
            following = text[match.end() : match.end() + 1]
            if re.match(r"[A-Za-z_]", following):
                raise wrong("glued", at, what=piece)
            if re.fullmatch(r"0+[1-9][0-9]*", piece):
                raise wrong("zeros", at, what=piece)
            if (_is_whole(piece) and int(piece) >= LARGEST) or math.isinf(float(piece)):
                raise wrong("large", at, right=LARGEST)
        if kind != "space":
            tokens.append(Token(kind, piece, at))
        at = match.end()
    _check_order(text, tokens)
    return tokens


def _is_whole(number: str) -> bool:
    return number.isdigit()


def _check_order(text: str, tokens: list[Token]) -> None:
    """Operands and operators take turns, and parentheses match."""
    opened: list[tuple[int, bool]] = []  # where each stands, and whether it belongs to a call
    wanted = True  # an operand
    before = Token("op", "(", 0)
    for n, token in enumerate(tokens):
        kind, piece, at = token
        if wanted:
            empty_call = piece == ")" and before.text == "(" and opened and opened[-1][1]
            if kind in ("number", "name"):
                wanted = False
            elif piece == "(":
                opened.append((at, False))
            elif empty_call:
                opened.pop()
                wanted = False
            elif piece == ")" and not opened:
                raise TypedError("close", text, at)
            elif piece not in "-+~":
                raise TypedError("operand", text, at, what=piece)
        elif piece == "(":
            if before.kind != "name":
                raise TypedError("between", text, at, what=piece)
            opened.append((at, True))
            wanted = True
        elif piece == ")":
            if not opened:
                raise TypedError("close", text, at)
            opened.pop()
        elif piece == ",":
            if not opened or not opened[-1][1]:
                raise TypedError("comma", text, at)
            wanted = True
        elif kind in ("number", "name") or piece == "~":
            raise TypedError("between", text, at, what=piece)
        else:
            wanted = True
        if len(opened) > DEEPEST:
            raise TypedError("deep", text, at, right=DEEPEST)
        before = tokens[n]
    if wanted:
        raise TypedError("operand", text, len(text.rstrip()), what="the end")
    if opened:
        raise TypedError("open", text, opened[-1][0])


# --- the tree ------------------------------------------------------------------------------------

BINARY: dict[type, str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//"},
    **{ast.Mod: "%", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"},
}
COMPARISONS: dict[type, str] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
}


class _Reader:
    """From Python's tree to ours: what is known is taken over, everything else refused."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []

    def wrong(self, code: str, at: int, **said: Any) -> TypedError:
        return TypedError(code, self.text, at, **said)

    def read(self, tree: ast.expr) -> Node:
        at = tree.col_offset - 1
        if isinstance(tree, ast.Constant):
            kind = "whole" if isinstance(tree.value, int) else "real"
            return Node("number", at, kind, value=tree.value)
        if isinstance(tree, ast.Name):
            return self.name(tree.id, at)
        if isinstance(tree, ast.UnaryOp):
            return self.unary(tree)
        if isinstance(tree, ast.BinOp):
            return self.binary(BINARY[type(tree.op)], at, self.read(tree.left), tree.right)
        if isinstance(tree, ast.Compare):
            return self.comparison(tree)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and not tree.keywords:
            return self.call(tree.func.id, at, tree.args)
        raise self.wrong("character", at, what=type(tree).__name__)

    def name(self, name: str, at: int) -> Node:
        if name in POSITIONS:
            return Node("name", at, "whole", value=POSITIONS[name])
        if name in ("L", "h"):
            self.noted(name, at)
            return Node("name", at, "whole", value=name)
        if name == "inf":
            return Node("number", at, "real", value=math.inf)
        if name in FUNCTIONS:
            raise self.wrong("call", at, what=name)
        if name in RESERVED:
            raise self.wrong("reserved", at, what=name)
        if name.startswith("_"):
            raise self.wrong("underscore", at, what=name)
        self.noted(name, at)
        return Node("name", at, "whole", value=name)

    def noted(self, name: str, at: int) -> None:
        if name == "L" or name in self.names:
            return
        if len(self.names) == NAMES:
            raise self.wrong("names", at, what=name, right=NAMES)
        self.names.append(name)

    def number(self, node: Node, what: str) -> Node:
        if node.kind == "condition":
            raise self.wrong("numbers", node.at, what=what)
        return node

    def unary(self, tree: ast.UnaryOp) -> Node:
        inner, at = self.read(tree.operand), tree.col_offset - 1
        if isinstance(tree.op, ast.Invert):
            if inner.kind != "condition":
                raise self.wrong("not", inner.at)
            return Node("~", at, "condition", (inner,))
        sign = "-" if isinstance(tree.op, ast.USub) else "+"
        self.number(inner, sign)
        return inner if sign == "+" else Node("neg", at, inner.kind, (inner,))

    def binary(self, op: str, at: int, left: Node, right_tree: ast.expr) -> Node:
        right = self.read(right_tree)
        if op in "&|^":
            for one in (left, right):
                if one.kind != "condition":
                    raise self.wrong("tight", one.at, what=op)
            return Node(op, at, "condition", (left, right))
        for one in (left, right):
            self.number(one, op)
        whole = left.kind == right.kind == "whole"
        if op == "**" and whole and right.op != "number":
            raise self.wrong("power", at)
        kind = "whole" if whole and op != "/" else "real"
        return Node(op, at, kind, (left, right))

    def comparison(self, tree: ast.Compare) -> Node:
        sides = [self.read(one) for one in (tree.left, *tree.comparators)]
        if len(sides) > 2:
            raise self.wrong("chain", sides[2].at)
        op = COMPARISONS[type(tree.ops[0])]
        left, right = sides
        if op in ("==", "!="):
            if (left.kind == "condition") != (right.kind == "condition"):
                raise self.wrong("mixed", right.at, what=op)
        else:
            for one in sides:
                self.number(one, op)
        if not any(one.moves() for one in sides):
            raise self.wrong("still", left.at)
        return Node(op, tree.col_offset - 1, "condition", (left, right))

    def call(self, name: str, at: int, given: list[ast.expr]) -> Node:
        if name not in FUNCTIONS:
            raise self.wrong("function", at, what=name, right=", ".join(FUNCTIONS))
        least, most = FUNCTIONS[name]
        if not least <= len(given) <= most:
            raise self.wrong("arguments", at, what=name, right=arity(name), n=len(given))
        args = [self.read(one) for one in given]
        numbers = args
        if name == "where":
            if args[0].kind != "condition":
                raise self.wrong("choice", args[0].at)
            numbers = args[1:]
        for one in numbers:
            self.number(one, name)
        whole = name in ("abs", "min", "max", "where") and all(x.kind == "whole" for x in numbers)
        return Node(name, at, "whole" if whole else "real", tuple(args))


def arity(name: str) -> str:
    """How many arguments a function takes, in words."""
    least, most = FUNCTIONS[name]
    if least == most:
        return f"{least} argument{'s' * (least > 1)}"
    return f"{least} to {most} arguments"


# --- its numbers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """What a name for a number may be, and what it is at first."""

    low: float
    high: float
    step: float
    first: float

    def fits(self, value: Any) -> bool:
        """Whether a number is in it, and whole where only whole ones are."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        whole = self.step == 1
        return self.low <= value <= self.high and (not whole or value == int(value))

    def taken(self, value: Any) -> int | float:
        """The value where it fits, the first one where not."""
        value = value if self.fits(value) else self.first
        return int(value) if self.step == 1 else float(value)


RANGES = {
    "head": Range(0, HEADS - 1, 1, 0),
    "divisor": Range(1, 32, 1, 4),
    "real": Range(0, 2, 0.05, 0.5),
    "whole": Range(0, 64, 1, 4),
}
"""By the use of a name: the head, what divides by // or %, a factor of a bias, everything else."""


def _uses(tree: Node) -> dict[str, str]:
    """Each name for a number, and its use."""
    found: dict[str, set[str]] = {}

    def note(node: Node, use: str) -> None:
        if node.op == "neg":
            node = node.args[0]
        if node.op == "name" and node.value not in ("i", "j", "L"):
            found.setdefault(node.value, set()).add(use)

    for node in tree.every():
        for place, one in enumerate(node.args):
            if node.op in ("//", "%") and place == 1:
                note(one, "divisor")
            elif node.op in ("*", "/") and tree.kind != "condition":
                note(one, "real")
            elif one.op != "neg":  # which passes the use of its own place on
                note(one, "negated" if node.op == "neg" else "whole")
    note(tree, "whole")
    uses = {}
    for name, seen in found.items():
        kinds = (kind for kind in ("divisor", "real") if kind in seen)
        use = next(kinds, "whole")
        if use == "real" and seen - {"real", "negated"}:
            use = "whole"
        uses[name] = "head" if name == "h" else use
    return uses


# --- values --------------------------------------------------------------------------------------


def _either(a: Any, b: Any, *, least: bool) -> Any:
    """The smaller or the larger of two, of which each may be a plain number."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return min(a, b) if least else max(a, b)
    if isinstance(a, int | float):
        a, b = b, a
    if isinstance(b, int | float):
        return torch.clamp(a, max=b) if least else torch.clamp(a, min=b)
    return torch.minimum(a, b) if least else torch.maximum(a, b)


SAME: dict[str, Callable[..., Any]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv},
    **{"//": operator.floordiv, "%": operator.mod, "**": operator.pow, "neg": operator.neg},
    **{"&": operator.and_, "|": operator.or_, "^": operator.xor, "~": operator.invert},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    **{"==": operator.eq, "!=": operator.ne, "abs": abs, "where": torch.where},
    **{name: ONE[getattr(sp, name)] for name in ("exp", "log", "sin", "cos", "tanh")},
    "sqrt": lambda x: x**0.5,
    "min": lambda *some: reduce(partial(_either, least=True), some),
    "max": lambda *some: reduce(partial(_either, least=False), some),
}


def _value(tree: Bare, known: Mapping[str, Any]) -> Any:
    """What a formula is, for whatever has Python's operators: tensors, recording proxies."""
    op, said, *inner = tree
    if op in ("number", "name"):
        return said if op == "number" else known[said]
    return SAME[op](*(_value(one, known) for one in inner))


def _mask_of(_tree: Bare, _b: Any, _h: Any, _i: Any, _j: Any, **numbers: Any) -> Any:
    return _value(_tree, {**numbers, "i": _i, "j": _j, "h": _h})


def _scores_of(_tree: Bare, _score: Any, _b: Any, _h: Any, _i: Any, _j: Any, **numbers: Any) -> Any:
    """The score and the bias; −inf in the place of both where a pair is not allowed."""
    known = {**numbers, "i": _i, "j": _j, "h": _h}

    def changed(tree: Bare) -> Any:
        op, _, *inner = tree
        if op == "where":
            return torch.where(_value(inner[0], known), changed(inner[1]), changed(inner[2]))
        return -math.inf if tree == NEVER else _score + _value(tree, known)

    return changed(_tree)


def _mask_mod(bound: Callable[..., Any], b: Any, h: Any, q: Any, k: Any) -> Any:
    """FlexAttention counts the arguments, and would count keywords too."""
    return bound(b, h, q, k)


def _score_mod(bound: Callable[..., Any], score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
    return bound(score, b, h, q, k)


NEVER: Bare = ("neg", None, ("number", math.inf))
"""−inf, as it is typed."""


@dataclass(frozen=True)
class Typed:
    """A formula that was read.

    text      as it was typed
    tree      its operations
    is_mask   whether it says who may attend to whom; else it is added to the scores
    names     each name for a number, and what it may be
    """

    text: str
    tree: Node
    is_mask: bool
    names: Mapping[str, Range]

    @property
    def uses_length(self) -> bool:
        """Whether the length stands in it."""
        return self.tree.moves("L")

    def numbers(self, L: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """A number for every name, and the length where it is one. Raises ValueError for a name
        that the formula does not have, and for a number out of its range."""
        if strange := [name for name in given if name not in self.names]:
            known = ", ".join(self.names) or "none"
            raise ValueError(f"{strange[0]} is no name of {self.text}; its names are {known}")
        for name, value in given.items():
            about = self.names[name]
            if about.step == 1:
                _arguments.integer(name, value, int(about.low), int(about.high))
            else:
                _arguments.real(name, value, about.low, about.high)
        values = {n: about.taken(given.get(n)) for n, about in self.names.items()}
        return values | ({"L": L} if self.uses_length else {})

    def table(self, L: int, **given: Any) -> Shaped[Tensor, "L L"]:
        """True where i may attend to j; of a bias its numbers, −inf where a pair is not allowed.

        Each operation is worked out for all pairs in 64 bits, as a browser does. Raises TypedError
        where a value is none.
        """
        L = _arguments.integer("L", L, 1)
        numbers = self.numbers(L, given) | {
            "i": torch.arange(L).double()[:, None].expand(L, L),
            "j": torch.arange(L).double()[None].expand(L, L),
        }
        table = self._table(self.tree, L, numbers)
        if not self.is_mask and bool((high := table == math.inf).any()):
            raise self._at("infinite", self.tree, high)
        return table

    def _at(self, code: str, node: Node, where: Tensor) -> TypedError:
        i, j = where.nonzero()[0].tolist()
        return TypedError(code, self.text, node.at, i=i, j=j, right=LARGEST)

    def _table(self, node: Node, L: int, numbers: Mapping[str, Any]) -> Tensor:
        if node.op in ("number", "name"):
            known = node.value if node.op == "number" else numbers[node.value]
            return torch.as_tensor(known, dtype=torch.float64).expand(L, L)
        args = [self._table(one, L, numbers) for one in node.args]
        if node.op in ("/", "//", "%") and bool((zero := args[1] == 0).any()):
            raise self._at("zero", node.args[1], zero)
        value = SAME[node.op](*args)
        if node.kind == "condition":
            return value
        if bool((none := value.isnan()).any()):
            raise self._at("nan", node, none)
        if node.kind == "whole" and bool((large := value.abs() >= LARGEST).any()):
            raise self._at("large at", node, large)
        return value

    def function(self, L: int, **given: Any) -> Callable[..., Any]:
        """FlexAttention's mask_mod(b, h, q, k), or score_mod(score, b, h, q, k) of a bias."""
        return partial(_mask_mod if self.is_mask else _score_mod, self._bound(L, given))

    def _bound(self, L: int, given: Mapping[str, Any]) -> Callable[..., Any]:
        """The same with its numbers as keywords, which `explain` makes parameters of."""
        numbers = self.numbers(L, given)
        numbers.pop("h", None)
        return partial(_mask_of if self.is_mask else _scores_of, self.tree.bare(), **numbers)

    def explain(self, L: int, **given: Any) -> Explained:
        """All faces of it (`tfviz.explain`), of all heads where it differs by head. What is no
        formula for SymPy, or another one in 32 bits, is a table for L positions and one head.
        Raises TypedError where a value is none, ValueError for a bias of nothing but 0 and 1.
        """
        table = self.table(L, **given)
        if only_zeros_and_ones(table):
            raise ValueError(
                f"{self.text} has only the values 0 and 1, and 1 added to a score masks nothing; "
                "for a mask type the condition alone, such as i >= j"
            )
        return self._explained(table, given)

    def _explained(self, table: Tensor, given: Mapping[str, Any]) -> Explained:
        L = len(table)
        with suppress(ValueError):
            one = explain(self._bound(L, given), heads=HEADS if "h" in self.names else None)
            if _says(one, table, int(given.get("h", 0))):
                return one
        return explain(table) if table.dtype == torch.bool else of_numbers("bias", table[None])

    def pattern(self, L: int, **given: Any) -> Pattern:
        """Who may attend to whom, at the head h."""
        pattern = self._explained(self.table(L, **given), given).pattern
        return pattern.parts[int(given.get("h", 0))] if isinstance(pattern, PerHead) else pattern


def _says(one: Explained, table: Tensor, h: int) -> bool:
    """Whether what was explained is this table."""
    L, mask = len(table), one.mask(len(table))
    mask = mask if mask.dim() == 2 else mask[h]
    if table.dtype == torch.bool:
        return bool((mask == table).all())
    allowed = ~left_out(table[None])[0]
    if not bool((mask == allowed).all()):
        return False
    if one.bias is None:
        return one.kind == "formula" and not bool(table[allowed].any())
    values = one.bias.tensor(L)[h if one.bias.heads > 1 else 0].double()
    return torch.allclose(values[allowed], table[allowed], rtol=1e-4, atol=1e-5)


def read_typed(text: str) -> Typed:
    """The formula that a text holds. Raises TypedError, which says where it cannot be read, why,
    and what to write."""
    if not isinstance(text, str):
        raise TypeError(f"text is {text!r}, a {type(text).__name__}; give a formula of i and j")
    tokens_of(text)
    reader = _Reader(text)
    tree = reader.read(ast.parse(f"({text})", mode="eval").body)  # blanks in front are no indent
    if not tree.moves("i", "j"):
        raise TypedError("constant", text, tree.at)
    names = {name: RANGES[use] for name, use in _uses(tree).items()}
    ordered = {name: names[name] for name in reader.names}
    return Typed(text, tree, tree.kind == "condition", ordered)


def words() -> dict[str, Any]:
    """What a page needs to read the same language, and to say the same of its errors."""
    return {
        "words": WORDS,
        "functions": {name: [*FUNCTIONS[name], arity(name)] for name in FUNCTIONS},
        "keywords": keyword.kwlist,
        "reserved": RESERVED,
        "signs": SIGNS,
        "instead": INSTEAD,
        "ranges": {name: vars(one) for name, one in RANGES.items()},
        "most": {"long": LONGEST, "deep": DEEPEST, "names": NAMES, "whole": LARGEST},
    }
