"""A mechanism that depends on positions is one plain function of the indices; here are its faces.

    def strided(i, j, *, stride):
        return (i >= j) & ((i - j <= stride) | ((i - j) % stride == 0))

    formula = Formula(strided)
    formula(i, j, stride=8)        torch, by broadcasting: the function itself
    formula.mask_mod(stride=8)     FlexAttention; score_mod for real values
    formula.sympy                  SymPy, parameters symbolic
    formula.latex(), .text()       printed
    formula.javascript()           the browser

The function is run once on torch.fx proxies, and the recorded graph is evaluated on SymPy symbols.
So a formula may use arithmetic, comparisons, `& | ~`, `//`, `%`, indexing of a parameter and the
torch functions in `SYMBOLIC`; it may not branch in Python, for a branch would see one value only.
"""

from __future__ import annotations

import inspect
import linecache
import operator
import re
import traceback
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, TypeAlias

import sympy as sp
import torch
from sympy.printing.jscode import JavascriptCodePrinter
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter
from torch import Tensor, fx

Index: TypeAlias = Any
"""An index: an int, an integer tensor, or the proxy that records the formula."""


class FormulaError(ValueError):
    """A function that cannot be read as a formula, and what to write instead."""


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else sp.Max(x, min)
    return x if max is None else sp.Min(x, max)


SYMBOLIC: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "neg", "pow")},
    "getitem": operator.getitem,
    "getattr": getattr,
    "abs": sp.Abs,
    "floordiv": lambda a, b: sp.floor(sp.sympify(a) / b),
    "floor_divide": lambda a, b: sp.floor(sp.sympify(a) / b),
    "floor": sp.floor,
    "mod": sp.Mod,
    "remainder": sp.Mod,
    **{"le": sp.Le, "lt": sp.Lt, "ge": sp.Ge, "gt": sp.Gt, "eq": sp.Eq, "ne": sp.Ne},
    **{"and_": sp.And, "logical_and": sp.And, "or_": sp.Or, "logical_or": sp.Or},
    **{"invert": sp.Not, "logical_not": sp.Not},
    **{"exp": sp.exp, "log": sp.log, "sqrt": sp.sqrt, "sin": sp.sin, "cos": sp.cos},
    "tanh": sp.tanh,
    "sigmoid": lambda x: 1 / (1 + sp.exp(-x)),
    **{"minimum": sp.Min, "maximum": sp.Max, "clamp": _clamp},
    "where": lambda c, a, b: sp.Piecewise((a, c), (b, True)),
}
"""What a formula may call, by name, and its meaning in SymPy."""


def hash_of(*terms: Index) -> Index:
    """A reproducible whole number in [0, 999983) that looks random: a quadratic hash modulo a
    prime, twice. Written so that Python, torch and JavaScript agree exactly (below 2^53)."""
    proxies = [t for t in terms if isinstance(t, fx.Proxy)]
    if proxies:  # recorded as one call, so that the printed formula says "hash"
        return proxies[0].tracer.create_proxy("call_function", hash_of, terms, {})
    x = sum(t * p for t, p in zip(terms, (7919, 104729, 1299709), strict=False)) % 999983
    x = (x * x + 12345) % 999983
    return x * x % 999983


class _Hash(sp.Function):
    """`hash_of` as a symbol: short where it is read, spelled out where it runs."""

    is_integer = True
    is_nonnegative = True

    def _latex(self, printer: Any, exp: Any = None) -> str:
        return rf"\operatorname{{hash}}({', '.join(map(printer._print, self.args))})"

    def _sympystr(self, printer: Any) -> str:
        return f"hash({', '.join(map(printer._print, self.args))})"

    def _javascript(self, printer: Any) -> str:
        return str(printer._print(hash_of(*self.args)))


SYMBOLIC["hash_of"] = _Hash

REMEDY = (
    "write comparisons with & | ~ and brackets instead of `and`, `or`, `not`, a chained comparison "
    "or `if`, and torch.where, torch.minimum, torch.maximum instead of a conditional, min or max"
)


class _ToSympy(fx.Interpreter):
    def __init__(self, graph: fx.GraphModule, name: str) -> None:
        super().__init__(graph)
        self.name = name
        self.extra_traceback = False  # our messages say it better

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._apply(getattr(target, "__name__", str(target)), args, kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._apply(str(target), args, kwargs)

    def _apply(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name not in SYMBOLIC:
            known = ", ".join(sorted(SYMBOLIC))
            raise FormulaError(
                f"{self.name}: the call {name}({', '.join(map(str, args))}) has no symbolic form; "
                f"a formula may use {known}"
            )
        try:
            return SYMBOLIC[name](*args, **kwargs)
        except (TypeError, AttributeError) as error:
            raise FormulaError(
                f"{self.name}: {name}({', '.join(map(str, args))}) mixes truth values with numbers "
                f"or is used in a form without a symbolic meaning ({error}); {REMEDY}"
            ) from error


class Formula:
    """A function of two indices and keyword parameters, with all its faces.

    Args:
        function: takes the indices by position, ints or broadcastable integer tensors, and its
            parameters by keyword; returns truth values (a pattern) or numbers (a bias).
        lists: parameters that are sequences, and their dimensions (they may be indexed and have
            `.shape`).
        positive: names of the parameters known to be at least 1 (shorter JavaScript).
        reals: names of the parameters that are real numbers; all others are integers.
        letters: LaTeX of the parameters and indices, e.g. {"stride": r"\\ell"}.

    Raises FormulaError on the first use of a symbolic face, if the function branches in Python or
    calls something without a symbolic form. The message names the line and the remedy.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        lists: Mapping[str, int] | None = None,
        positive: frozenset[str] = frozenset(),
        reals: frozenset[str] = frozenset(),
        letters: Mapping[str, str] | None = None,
    ) -> None:
        self.function = function
        self.name = getattr(function, "__name__", "formula")
        kinds = inspect.signature(function).parameters.values()
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in kinds):
            raise FormulaError(f"{self.name} takes *args or **kwargs; name every parameter")
        self.indices = [p.name for p in kinds if p.kind is not p.KEYWORD_ONLY]
        self.parameters = [p.name for p in kinds if p.kind is p.KEYWORD_ONLY]
        if len(self.indices) != 2:
            raise FormulaError(
                f"{self.name} has the positional arguments {self.indices}; a formula takes exactly "
                "two indices by position and its parameters after a bare *"
            )
        self.lists, self.positive, self.reals = dict(lists or {}), positive, reals
        self.letters = dict(letters or {})

    def __call__(self, i: Index, j: Index, **parameters: Any) -> Any:
        device = i.device if isinstance(i, Tensor) else None
        return self.function(i, j, **self.tensors(parameters, device))

    def tensors(self, parameters: Mapping[str, Any], device: Any = None) -> dict[str, Any]:
        """The parameters with a tensor for each list, which an index may look into."""
        return {
            name: torch.as_tensor(value, device=device) if isinstance(value, tuple) else value
            for name, value in parameters.items()
        }

    # --- symbols -----------------------------------------------------------------------------

    def symbol(self, name: str) -> Any:
        """The SymPy symbol of an index or a parameter."""
        if name in self.lists:
            shape = [sp.Symbol(f"{name}.length", integer=True, positive=True)] * self.lists[name]
            return sp.IndexedBase(sp.Symbol(name, integer=True), shape=tuple(shape))
        if name in self.reals:
            return sp.Symbol(name, real=True)
        known = {"positive": True} if name in self.positive else {}
        if name in self.indices:
            known = {"nonnegative": True}
        return sp.Symbol(name, integer=True, **known)

    @cached_property
    def graph(self) -> fx.Graph:
        """The recorded torch.fx graph."""
        graph = fx.Graph()
        tracer = fx.proxy.GraphAppendingTracer(graph)
        names = self.indices + self.parameters
        proxies = {name: fx.Proxy(graph.placeholder(name), tracer) for name in names}
        i, j = (proxies[name] for name in self.indices)
        try:
            value = self.function(i, j, **{name: proxies[name] for name in self.parameters})
        except FormulaError:
            raise
        except Exception as error:  # whatever a proxy cannot do: bool(), len(), iteration, int()
            raise FormulaError(self._place(error)) from error
        graph.output(value.node if isinstance(value, fx.Proxy) else value)
        return graph

    def _place(self, error: Exception) -> str:
        file = inspect.getfile(self.function) if callable(self.function) else ""
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
        line = linecache.getline(file, frames[-1].lineno or 0).strip() if frames else ""
        where = f" in `{line}`" if line else ""
        return f"{self.name} cannot be read as a formula{where}: {error}; {REMEDY}"

    @cached_property
    def sympy(self) -> Any:
        """The formula as a SymPy expression, parameters symbolic."""
        module = fx.GraphModule(torch.nn.Module(), self.graph)
        symbols = [self.symbol(name) for name in self.indices + self.parameters]
        return sp.sympify(_ToSympy(module, self.name).run(*symbols))

    # --- faces -------------------------------------------------------------------------------

    def mask_mod(self, **parameters: Any) -> Callable[[Index, Index, Index, Index], Any]:
        """The formula as FlexAttention's mask_mod(b, h, q_idx, kv_idx)."""
        return partial(_mask_mod, self, parameters)

    def score_mod(self, **parameters: Any) -> Callable[..., Any]:
        """A real-valued formula as FlexAttention's score_mod: added to the score."""
        return partial(_score_mod, self, parameters)

    def latex(self, **values: Any) -> str:
        """LaTeX; keyword arguments put numbers in the place of parameters or indices."""
        return latex(self.sympy, self.letters, **values)

    def text(self, **values: Any) -> str:
        """One line of plain text for screens and screen readers."""
        return text(self.sympy, **values)

    def javascript(self) -> str:
        """`(i, j, parameters…) => expression`: parameters stay arguments, so one compiled
        formula serves every position of a slider."""
        return javascript(self.sympy, self.indices + self.parameters)

    def __repr__(self) -> str:
        return f"Formula({self.name}({', '.join(self.indices + self.parameters)}))"

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle takes along: all but what is recorded again when it is asked."""
        return {n: v for n, v in self.__dict__.items() if n not in ("graph", "sympy")}


def _mask_mod(
    formula: Formula, parameters: dict[str, Any], b: Index, h: Index, q_idx: Index, kv_idx: Index
) -> Any:
    return formula.function(q_idx, kv_idx, **parameters)


def _score_mod(
    formula: Formula,
    parameters: dict[str, Any],
    score: Any,
    b: Index,
    h: Index,
    q_idx: Index,
    kv_idx: Index,
) -> Any:
    return score + formula.function(q_idx, kv_idx, **parameters)


# --- printers ------------------------------------------------------------------------------------


class _Latex(LatexPrinter):
    def _print_BooleanTrue(self, expr: Any) -> str:
        return r"\text{always}"

    def _print_BooleanFalse(self, expr: Any) -> str:
        return r"\text{never}"

    def _print_floor(self, expr: Any, exp: Any = None) -> str:
        inside = rf"\lfloor {self._print(expr.args[0])} \rfloor"
        inside = inside.replace(r"\frac", r"\tfrac")
        return inside if exp is None else f"{inside}^{{{exp}}}"

    def _print_Mod(self, expr: Any, exp: Any = None) -> str:
        a, b = (self.parenthesize(x, 45, strict=True) for x in expr.args)
        return rf"{a} \bmod {b}" if exp is None else rf"\left({a} \bmod {b}\right)^{{{exp}}}"


class _Text(StrPrinter):
    def _print_And(self, expr: Any) -> str:
        return " and ".join(self._bracket(a, sp.Or) for a in _ordered(expr))

    def _print_Or(self, expr: Any) -> str:
        return " or ".join(self._bracket(a, sp.And) for a in _ordered(expr))

    def _bracket(self, expr: Any, kind: Any) -> str:
        return f"({self._print(expr)})" if isinstance(expr, kind) else self._print(expr)

    def _print_Not(self, expr: Any) -> str:
        return f"not ({self._print(expr.args[0])})"

    def _print_Relational(self, expr: Any) -> str:
        sign = {"<=": "≤", ">=": "≥", "==": "=", "!=": "≠"}.get(expr.rel_op, expr.rel_op)
        return f"{self._print(expr.lhs)} {sign} {self._print(expr.rhs)}"

    def _print_Mod(self, expr: Any) -> str:
        a, b = (self.parenthesize(x, 45, strict=True) for x in expr.args)
        return f"{a} mod {b}"

    def _print_floor(self, expr: Any) -> str:
        return f"⌊{self._print(expr.args[0])}⌋"

    def _print_ceiling(self, expr: Any) -> str:
        return f"⌈{self._print(expr.args[0])}⌉"

    def _print_Abs(self, expr: Any) -> str:
        return f"|{self._print(expr.args[0])}|"

    def _print_BooleanTrue(self, expr: Any) -> str:
        return "always"

    def _print_BooleanFalse(self, expr: Any) -> str:
        return "never"


class _JavaScript(JavascriptCodePrinter):
    def _print_Indexed(self, expr: Any) -> str:
        return f"{expr.base.label}" + "".join(f"[{self._print(k)}]" for k in expr.indices)

    def _print_BooleanTrue(self, expr: Any) -> str:
        return "true"

    def _print_BooleanFalse(self, expr: Any) -> str:
        return "false"


_GREEK = frozenset(
    ["alpha", "beta", "gamma", "delta", "theta", "kappa", "lambda", "mu", "sigma", "tau", "phi"]
)


def _ordered(expr: Any) -> list[Any]:
    return sorted(expr.args, key=sp.default_sort_key)


def _substitute(expr: Any, values: Mapping[str, Any]) -> Any:
    """Numbers in the place of symbols. What holds parameters only is computed (block - 1 becomes
    7); an index is shown and not computed: 12 - j stays 12 - j."""
    if not expr.args or isinstance(expr, sp.IndexedBase):
        known = isinstance(expr, sp.Symbol) and expr.name in values
        return sp.Symbol(str(values[expr.name]), **expr.assumptions0) if known else expr
    free = {s.name: s for s in expr.free_symbols if isinstance(s, sp.Symbol)}
    if not expr.is_Boolean and free and set(free) <= set(values) - {"i", "j"}:
        number = expr.subs({s: values[name] for name, s in free.items()})
        return sp.Symbol(str(number), integer=True) if number.is_Integer else number
    return expr.func(*(_substitute(a, values) for a in expr.args))


def latex(expr: Any, letters: Mapping[str, str], **values: Any) -> str:
    """LaTeX of a SymPy expression; `letters` maps names of symbols to LaTeX."""
    expr = _substitute(expr, values)
    names = {s: letter(s.name, letters) for s in expr.free_symbols if isinstance(s, sp.Symbol)}
    return (
        _Latex({"symbol_names": names})
        .doprint(expr)
        .replace(r"\wedge", r"\land")
        .replace(r"\vee", r"\lor")
    )


def letter(name: str, letters: Mapping[str, str]) -> str:
    if name in letters:
        return letters[name]
    if name.endswith(".length"):
        return rf"\lvert {letter(name.removesuffix('.length'), letters)} \rvert"
    if name in _GREEK:
        return rf"\{name}"
    return name if len(name) == 1 or name[0].isdigit() else rf"\mathrm{{{name.replace('_', ' ')}}}"


def text(expr: Any, **values: Any) -> str:
    """Plain text of a SymPy expression."""
    plain = _Text().doprint(_substitute(expr, values))
    return plain.replace("**", "^").replace("*", "·").replace(" - ", " − ")


def javascript(expr: Any, arguments: list[str]) -> str:
    """A JavaScript arrow function of `arguments`. Modulo and floor follow Python for negatives."""
    body = re.sub(r"\s+", " ", _JavaScript().doprint(expr))
    return f"({', '.join(arguments)}) => {body}"
