"""Bring your own attention: what you have, as a pattern with all faces.

    explain(mask_mod)        FlexAttention's mask_mod(b, h, q, k), also as Hugging Face writes it
    explain(score_mod)       FlexAttention's score_mod(score, b, h, q, k)
    explain(mask)            a Boolean mask, (L, L), (h, L, L) or (b, h, L, L); True = may attend
    explain(bias)            what is added to the scores; −inf, or a number of which softmax leaves
                             nothing, such as −1e9, = may not attend
    explain(pattern)         one of ours, or a formula of (i, j)

A callable is run once on symbols in the place of its positions and of the whole numbers in its
closure (`callables`), and what comes out is compared with the callable itself, pair by pair. A
tensor is compared with what the library's formulas make (`recognise`).

FlexAttention: https://pytorch.org/blog/flexattention/.

>>> def window(size):
...     return lambda b, h, q, k: (q >= k) & (q - k < size)
>>> explain(window(4)).text()
'i ≥ j and i − j < 4'
>>> explain(window(4)).same_as
sliding_window(lookback=3)
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tfviz import _arguments
from tfviz.dense_attention import attention
from tfviz.explained import recognise, truths
from tfviz.explained.callables import (
    Captured,
    Read,
    by_pairs,
    entries_of,
    name_of,
    plain,
    read,
    roles,
    uses,
    with_values,
)
from tfviz.explained.trees import value
from tfviz.explained.words import CONDITIONS
from tfviz.formula import Formula, FormulaError, latex, letter, text
from tfviz.patterns import Pattern, full, per_head, table
from tfviz.patterns.cost import Cost
from tfviz.patterns.family import Domain, Family, Leaf, own_family
from tfviz.patterns.reach import Reach
from tfviz.sub_quadratic import sparse_attention

__all__ = ["Bias", "Explained", "explain"]

TRIED = 48
"""The length at which a formula is compared with its callable, and with the library's families."""

LONGEST = 4096
"""The longest table that is made."""


LEFT_BEHIND = "the function that was explained could not be pickled"
"""Stands for the function in an explanation that comes out of a pickle."""


@dataclass(frozen=True, eq=False)
class Bias:
    """What is added to the scores before the softmax.

    name        the formula's name, or "table"
    expression  the formula of i, j (and the head h) in SymPy; None for a table
    parameters  its numbers; a list where each head has one
    heads       how many heads it distinguishes, 1 if none
    table       the numbers themselves, (h, L, L), where there is no formula
    """

    name: str
    expression: Any
    parameters: Mapping[str, Any]
    heads: int = 1
    table: Float[Tensor, "h L L"] | None = None

    @property
    def latex(self) -> str:
        """LaTeX of the formula; b_ij for a table."""
        return "b_{ij}" if self.expression is None else latex(self.expression, {})

    def text(self) -> str:
        """The formula as plain text, with its numbers where all heads share them."""
        if self.expression is None:
            return f"a table of {tuple(self.table.shape) if self.table is not None else ()} numbers"
        shared = {n: v for n, v in self.parameters.items() if not isinstance(v, list)}
        return text(self.expression, **shared)

    def tensor(self, L: int) -> Float[Tensor, "h L L"]:
        """The numbers for L positions. Raises ValueError for another length than a table's."""
        L = _arguments.integer("L", L, 1)
        if self.table is not None:
            if self.table.shape[-1] != L:
                raise ValueError(f"the bias is for L = {self.table.shape[-1]}; L = {L} was asked")
            return self.table
        i, j = torch.arange(L)[:, None], torch.arange(L)[None]
        return torch.stack(
            [
                torch.as_tensor(value(self.expression, {"i": i, "j": j, **self._of(h)}))
                .to(torch.get_default_dtype())
                .expand(L, L)
                for h in range(self.heads)
            ]
        )

    def _of(self, h: int) -> dict[str, Any]:
        numbers = {n: v[h] if isinstance(v, list) else v for n, v in self.parameters.items()}
        return {**numbers, "h": torch.tensor(h)}


@dataclass(frozen=True, eq=False)
class Explained:
    """What was brought, with all faces of a pattern.

    name        of the callable; "mask" or "bias" of a tensor
    kind        "formula", "table", "bias" (added to the scores) or "scores" (another function of
                them)
    patterns    who may attend to whom: one pattern, or one for each batch entry
    bias        what is added to the scores, or None
    same_as     the library's pattern that makes the same mask, as far as it was compared, or None
    parameters  the numbers of the closure: sliders, arguments of `with_values`
    fixed       numbers that Python itself uses, in a range or a branch: they stay as they are
    inputs      tensors of the closure on which the pattern depends, arguments of `with_values`
    expression  the formula in SymPy, with these tensors as indexed symbols; None without one
    why         a sentence: what it is, and why it is a table if it is one
    """

    name: str
    kind: str
    patterns: tuple[Pattern, ...]
    why: str
    bias: Bias | None = None
    same_as: Pattern | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    expression: Any = None
    source: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pattern(self) -> Pattern:
        """The only pattern. Raises ValueError if the batch entries differ."""
        if len(self.patterns) > 1:
            raise ValueError(
                f"{self.name} differs in each of {len(self.patterns)} batch entries; "
                "choose one: .patterns[0]"
            )
        return self.patterns[0]

    @property
    def latex(self) -> str:
        """The condition under which i attends to j, or the new score, in LaTeX."""
        if self.bias is not None and self.kind == "bias":
            return f"s_{{ij}} + {self.bias.latex}"
        if self.expression is not None:
            return latex(self.expression, {"score": "s_{ij}"} | _letters(self.expression))
        return self.pattern.latex

    def text(self) -> str:
        """The same as plain text, with the numbers in place."""
        if self.bias is not None and self.kind == "bias":
            return f"score + {self.bias.text()}"
        if self.expression is not None:
            numbers = {n: v for n, v in self.parameters.items() if not isinstance(v, list)}
            return text(self.expression, **numbers)
        if self.same_as is None:
            return "a table"
        with suppress(ValueError):  # heads have a condition each
            return f"{self.same_as!r}: {self.same_as.text()}"
        return repr(self.same_as)

    def mask(self, L: int) -> Bool[Tensor, "*b_h L L"]:
        """True = query i may attend to key j; a first axis for the batch if its entries differ."""
        masks = [pattern.mask(L) for pattern in self.patterns]
        return masks[0] if len(masks) == 1 else torch.stack(masks)

    def key_sets(self, L: int) -> list[list[int]]:
        """The sorted keys of every query."""
        return self.pattern.key_sets(L)

    def cost(self, L: int, **sizes: int) -> Cost:
        """Pairs and blocks of one layer; sizes as in `Pattern.cost`."""
        return self.pattern.cost(L, **sizes)

    def reach(self, L: int, layers: int | None = None) -> Reach:
        """Hops between all pairs when every layer uses the pattern."""
        return self.pattern.reach(L, layers)

    def explore(self, L: int | None = None, **options: Any) -> Any:
        """The pattern in the Sparse Lab, with a slider for each number of the closure. Tables are
        shown at their own length; L is 64 otherwise."""
        own = self.pattern._fixed_length()
        return self.pattern.explore(L or own or 64, **options)

    def attention(
        self,
        Q: Float[Tensor, "b h L d"],
        K: Float[Tensor, "b h L d"],
        V: Float[Tensor, "b h L dv"],
    ) -> Float[Tensor, "b h L dv"]:
        """What FlexAttention computes with it, with gradients, on any device.

        A mask alone costs its allowed pairs (`sparse_attention`); with a bias, or another function
        of the scores, it is computed by its definition, with all L² scores. Raises ValueError for
        shapes that do not fit.
        """
        L = Q.shape[-2]
        if self.kind == "scores":
            return attention(Q, K, V, self.pattern, scores=self._scores)[0]
        if self.bias is not None:
            added = self.bias.tensor(L).to(Q.device, Q.dtype)
            return attention(Q, K, V, self.pattern, bias=added)[0]
        if len(self.patterns) == 1:
            return sparse_attention(Q, K, V, self.patterns[0])
        if Q.dim() != 4 or len(Q) != len(self.patterns):
            raise ValueError(
                f"{self.name} has {len(self.patterns)} batch entries, Q has shape "
                f"{tuple(Q.shape)}; give Q, K, V of shape ({len(self.patterns)}, h, L, d)"
            )
        each = zip(Q, K, V, self.patterns, strict=True)
        return torch.stack([sparse_attention(q, k, v, one) for q, k, v, one in each])

    def _scores(self, scores: Tensor) -> Tensor:
        i = torch.arange(scores.shape[-2], device=scores.device)[:, None]
        j = torch.arange(scores.shape[-1], device=scores.device)
        h = torch.arange(scores.shape[-3] if scores.dim() > 2 else 1, device=scores.device)
        given = {"i": i, "j": j, "h": h[:, None, None], "score": scores, **self.parameters}
        changed: Tensor = value(self.expression, given)
        return changed

    def with_values(self, **values: Any) -> Explained:
        """The same callable with other numbers or tensors in its closure.

        Raises TypeError for a name that it does not have, or for what is explained as a tensor.
        """
        known = [*self.parameters, *self.fixed, *self.inputs]
        if self.source == LEFT_BEHIND:
            raise TypeError(
                f"the function of {self.name} could not be pickled and was left behind; use "
                "with_values before, or define the function at the top of a module"
            )
        if not callable(self.source) or not {*values} <= {*known}:
            raise TypeError(
                f"{self.name} has no {', '.join(sorted({*values} - {*known})) or 'closure'}; "
                f"its values are {', '.join(known) or 'none'}"
            )
        with_others = with_values(plain(self.source), Captured(), values, {})
        return explain(with_others, **self.options)

    def __copy__(self) -> Explained:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Explained:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle takes along: all, but for a function that none can hold, which only
        `with_values` would need."""
        try:
            pickle.dumps(self.source)
        except (pickle.PicklingError, AttributeError, TypeError):
            return self.__dict__ | {"source": LEFT_BEHIND}
        return self.__dict__

    def __repr__(self) -> str:
        what = f"{self.name}: {self.text()}"
        named = f"\nthe same as {self.same_as!r}" if self.same_as else ""
        if self.kind in ("bias", "scores") and self.same_as == full():
            named = "\nno pair is left out"
        return f"{what}{named}\n{self.why}"

    def _repr_html_(self) -> str | None:
        return self.patterns[0]._repr_html_()


def explain(
    what: Callable[..., Any] | Tensor | np.ndarray[Any, Any] | list[Any] | Pattern | Family,
    *,
    L: int | None = None,
    heads: int | None = None,
    batch: int | None = None,
) -> Explained:
    """What is this attention? A pattern with all faces: formula, keys, cost, reach, explorer.

    Args:
        what: mask_mod(b, h, q, k), score_mod(score, b, h, q, k), a formula of (i, j), a Boolean
            mask or a bias of shape (L, L), (h, L, L) or (b, h, L, L), where 1 stands for "all
            alike" in the place of h and of the queries; a Pattern or a family of patterns.
        L: the length of the table, for a callable that is no formula or depends on tensors. Where
            positions look into a tensor directly, its size is known.
        heads, batch: how many there are, for a callable that differs by them and does not look
            them up in a tensor.

    The whole numbers in the closure of a callable become parameters of its formula. A callable
    whose tensors the positions look into (documents, padding) becomes a table, and the tensors are
    its `inputs`; tensors that only the batch entry or the head looks into are numbers of each.

    Raises TypeError for anything else. Raises FormulaError, which names the operation that is no
    formula of the positions, unless L says that a table will do. Raises ValueError for shapes, NaN
    and sizes that are missing.
    """
    for name, size in (("L", L), ("heads", heads), ("batch", batch)):
        if size is not None:
            _arguments.integer(name, size, 1, LONGEST if name == "L" else None)
    if isinstance(what, Pattern):
        return _of_pattern(what)
    if isinstance(what, Family):
        return _of_pattern(what(**{n: d.default for n, d in what.domains.items()}))
    if isinstance(what, list | tuple | np.ndarray):
        what = _as_tensor(what)
    if type(what).__name__ == "CausalBias":  # torch's; its module takes a second to import
        raise TypeError(
            "what is a CausalBias of torch, which holds no numbers; give a mask such as "
            "torch.ones(L, L).tril().bool()"
        )
    if isinstance(what, Tensor):
        return _of_mask(what) if what.dtype == torch.bool else _of_bias(what)
    if not callable(what):
        short = f"{repr(what).splitlines()[0]:.60}"
        mod = "its .mask_mod, " if hasattr(what, "mask_mod") else ""
        raise TypeError(
            f"what is {short}, a {type(what).__name__}; give {mod}mask_mod(b, h, q, k), "
            "score_mod(score, b, h, q, k), a Boolean mask, a bias or a Pattern"
        )
    return _of_callable(what, {"L": L, "heads": heads, "batch": batch})


def _of_pattern(pattern: Pattern) -> Explained:
    expression, numbers = None, {}
    with suppress(ValueError):  # heads have a formula each
        expression, numbers = pattern.sympy, pattern.parameters
    name = pattern.title
    return Explained(
        name,
        "formula" if expression is not None else "table",
        (pattern,),
        "One of the library's own.",
        same_as=pattern,
        parameters=numbers,
        expression=expression,
    )


# --- tensors -------------------------------------------------------------------------------------


def _as_tensor(numbers: Any) -> Tensor:
    try:
        return torch.as_tensor(numbers)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"what is a {type(numbers).__name__} of which torch makes no tensor ({error}); give "
            "rows of one length, of numbers or of truth values"
        ) from None


def _entries(name: str, x: Tensor) -> list[Tensor]:
    """(h, L, L) for each batch entry, one if all are alike; from (L, L), (h, L, L), (b, h, L, L),
    or with 1 in the place of the queries."""
    if x.is_meta or x.layout != torch.strided:
        where = "on meta and holds no numbers" if x.is_meta else f"stored as {x.layout}"
        raise ValueError(f"{name} is {where}; give the numbers themselves, mask.to_dense() on CPU")
    shape, L = tuple(x.shape), x.shape[-1] if x.dim() else 0
    keys_alone = x.dim() in (3, 4) and shape[-2] == 1
    if x.dim() not in (2, 3, 4) or not (keys_alone or shape[-2] == L) or not x.numel():
        remedy = "queries must be the keys"
        if x.dim() in (1, 2) and x.numel():
            remedy += "; if it says which keys are no padding, give mask[…, None, None, :]"
        raise ValueError(
            f"{name} has shape {shape}; give (L, L), (h, L, L) or (b, h, L, L): {remedy}"
        )
    if L > LONGEST:
        raise ValueError(f"{name} is for L = {L}; give at most {LONGEST} positions")
    x = x.detach().cpu().expand(*shape[:-2], L, L)
    x = x.reshape(-1, *x.shape[-3:]) if x.dim() > 2 else x[None, None]
    alike = all(one.equal(x[0]) for one in x[1:])
    return [x[0]] if alike else [*x]


def _of_mask(bits: Tensor) -> Explained:
    entries = [_of_heads(heads) for heads in _entries("the mask", bits)]
    patterns, same, why = zip(*entries, strict=True)
    found = all(one is not None for one in same)
    differs = f" It differs in {len(entries)} batch entries." if len(entries) > 1 else ""
    return Explained(
        "mask",
        "formula" if found else "table",
        patterns,
        " ".join(dict.fromkeys(why)) + differs,
        same_as=same[0] if len(entries) == 1 else None,
    )


def _of_heads(heads: Tensor) -> tuple[Pattern, Pattern | None, str]:
    """(the pattern, the same if it is one of the library's, what it is) of a mask (h, L, L)."""
    if bool((heads == heads[:1]).all()):
        heads = heads[:1]
    found = [recognise.family_of_mask(head) for head in heads]
    parts = [one or table(head) for one, head in zip(found, heads, strict=True)]
    pattern = parts[0] if len(parts) == 1 else per_head(*parts)
    L = heads.shape[-1]
    if all(found):
        why = f"A mask of {L} × {L}; the formula was found and makes exactly this mask."
    else:
        many = int(heads.sum())
        why = f"A table: no formula of the library makes these {many} pairs at L = {L}."
    said = [truths.in_words(head, one) for one, head in zip(found, heads, strict=True)]
    words = " ".join([why, *dict.fromkeys(one for one in said if one)])
    return pattern, pattern if all(found) else None, words


def _of_bias(bias: Tensor) -> Explained:
    if not bias.is_floating_point():
        remedy = "x.float()"
        if not bias.is_complex() and not bias.is_meta and bool(((bias == 0) | (bias == 1)).all()):
            remedy = "truth values, x.bool() if 1 = may attend, x == 0 if 1 = masked"
        raise TypeError(f"the bias is {bias.dtype}; give real numbers or a Boolean mask: {remedy}")
    entries = [x if x.element_size() > 1 else x.float() for x in _entries("the bias", bias)]
    if any(truths.only_zeros_and_ones(x) for x in entries):
        raise ValueError(
            "the bias holds only 0 and 1, and 1 added to a score masks nothing; give truth values: "
            "x.bool() if 1 = may attend, x == 0 if 1 = masked. For a bias of 0 and 1 give the "
            "score_mod lambda score, b, h, q, k: score + x[q, k]"
        )
    explained = [of_numbers("bias", x) for x in entries]
    if len(explained) == 1:
        return explained[0]
    if any(one.bias is not None for one in explained):
        raise ValueError(
            f"the bias differs in {len(explained)} batch entries; give that of one: bias[0]"
        )
    why = " ".join(dict.fromkeys(one.why for one in explained))
    return Explained(
        "bias",
        "table" if any(one.kind == "table" for one in explained) else "formula",
        tuple(one.pattern for one in explained),
        f"{why} It differs in {len(explained)} batch entries.",
    )


def of_numbers(name: str, x: Float[Tensor, "h L L"]) -> Explained:
    """What is added to the scores, and a mask where softmax leaves nothing."""
    if bool(x.isnan().any()) or bool(x.isposinf().any()):
        raise ValueError(
            f"the {name} holds NaN or +inf; give finite numbers, and −inf for no pair (0 · −inf is "
            "NaN: write torch.zeros(L, L).masked_fill(~mask, -torch.inf))"
        )
    allowed, heads, L = ~x.isneginf(), len(x), x.shape[-1]
    formula = _formula_of(x, allowed)
    finite = ""
    if formula is None and bool((never := truths.left_out(x)).ne(~allowed).any()):
        highest = float(x[never & allowed].max())
        allowed = ~never
        finite = f"{highest:g} and less is a mask: softmax leaves nothing there. "
        no_key = (never.all(-1) & ~x.isneginf().all(-1)).any(0).nonzero().flatten().tolist()
        if no_key:
            finite += (
                f"There is nothing else in {truths.rows_named(no_key)}: here no key, in torch's "
                "softmax all keys alike. "
            )
        formula = _formula_of(x, allowed)
    pattern, same, said = _of_heads(allowed)
    kind = "formula" if same is not None else "table"
    values = x.masked_fill(~allowed, 0.0)
    if not bool(values.any()):
        infinite = "Only 0: it changes nothing. " if allowed.all() else "Only 0 and −inf: a mask. "
        never_is = finite or infinite
        return Explained(name, kind, (pattern,), f"{never_is}{said}", same_as=same)
    if formula is not None:
        called, function, numbers = formula
        shared = {n: v[0] if len({*v}) == 1 else v for n, v in numbers.items()}
        read_as = Formula(function, reals=frozenset(numbers))
        made = Bias(called, read_as.sympy, shared, heads)
        precise = "five digits" if recognise.closeness(x.dtype) == 1e-4 else f"what {x.dtype} holds"
        why = f"The formula of {called} gives these numbers to {precise}."
    else:
        made = Bias("table", None, {}, heads, values)
        distances = recognise.by_distance(values, allowed)
        if distances is None:
            why = f"A table: no formula of the library gives these {heads} × {L} × {L} numbers."
        elif recognise.shares_buckets(distances):
            why = "A table by the distance i − j in T5's buckets: learned numbers, no formula."
        else:
            why = f"A table of {2 * L - 1} numbers by the distance i − j, no formula known here."
        why += truths.nearly_a_mask(x[allowed])
    return Explained(name, "bias", (pattern,), finite + why, bias=made, same_as=same)


def _formula_of(x: Tensor, allowed: Tensor) -> tuple[str, Any, dict[str, list[float]]] | None:
    values = x.masked_fill(~allowed, 0.0)
    return recognise.family_of_bias(values, allowed) if bool(values.any()) else None


# --- callables -----------------------------------------------------------------------------------


def _of_callable(function: Callable[..., Any], options: dict[str, int | None]) -> Explained:
    try:
        return _of_indices(function, roles(function), options)
    except (ValueError, TypeError):
        raise
    except Exception as error:  # a number that no tensor holds, an operation that SymPy breaks at
        raise FormulaError(
            f"{name_of(function)} cannot be explained: {type(error).__name__}: {error}; say what "
            "holds for tensors of positions, as in lambda b, h, q, k: q >= k"
        ) from error


def _of_indices(
    function: Callable[..., Any], indices: tuple[str, ...], options: dict[str, int | None]
) -> Explained:
    try:
        found = read(function)
    except FormulaError as error:
        return _as_table(function, indices, None, str(error), options)
    if found.tensors:
        return _as_table(function, indices, found, "", options)
    try:
        return _as_formula(function, found, options)
    except FormulaError as error:
        if options["L"] is None:
            raise
        return _as_table(function, indices, None, str(error), options)


def _letters(expression: Any) -> dict[str, str]:
    names = {str(s) for s in expression.free_symbols}
    return {n: letter(n, {}) for n in names}


def _is_mask(expression: Any) -> bool:
    return isinstance(expression, CONDITIONS)


def _sizes(
    found: Read, function: Any, options: Mapping[str, int | None]
) -> tuple[int | None, int | None]:
    """How many batch entries and heads differ; None if they do not."""
    tensors = _tensors(function)
    sizes: list[int | None] = []
    for axis, name in (("b", "batch"), ("h", "heads")):
        known = {
            tensors[n].shape[axes.index(axis)] for n, axes in found.by_batch.items() if axis in axes
        }
        for use in found.expression.atoms(sp.Indexed):
            for place, index in enumerate(use.indices):
                if str(index) == axis and str(use.base.label) in tensors:
                    known.add(tensors[str(use.base.label)].shape[place])
        if not known and not found.uses(axis):
            sizes.append(None)
            continue
        size = options[name] or (min(known) if known else None)
        if size is None:
            raise ValueError(
                f"{found.name} differs by {'batch entry' if axis == 'b' else 'head'}, and no "
                f"tensor says how many there are; say explain(…, {name}=…)"
            )
        sizes.append(size)
    return sizes[0], sizes[1]


def _tensors(function: Any) -> dict[str, Tensor]:
    captured = Captured()
    with_values(plain(function), captured, {}, {})
    return captured.tensors


def _numbers(found: Read, function: Any, b: int, h: int) -> dict[str, Any]:
    """The parameters of one batch entry and head."""
    tensors, at = _tensors(function), {"b": b, "h": h}
    looked_up = {
        n: tensors[n][tuple(at[axis] for axis in axes)].item() for n, axes in found.by_batch.items()
    }
    plain = {axis: at[axis] for axis in ("b", "h") if found.uses(axis)}
    return {**found.parameters, **looked_up, **plain}


def _as_formula(
    function: Callable[..., Any], found: Read, options: dict[str, int | None]
) -> Explained:
    batch, heads = _sizes(found, function, options)
    if _is_mask(found.expression):
        return _as_pattern(function, found, batch, heads, options)
    return _as_scores(function, found, batch, heads, options)


def _as_pattern(
    function: Callable[..., Any],
    found: Read,
    batch: int | None,
    heads: int | None,
    options: dict[str, int | None],
) -> Explained:
    real = {n: v for n, v in found.parameters.items() if not isinstance(v, int)}
    swap = {s: real[s.name] for s in found.expression.free_symbols if s.name in real}
    found.expression = found.expression.subs(swap)
    found.fixed |= real
    found.parameters = {n: v for n, v in found.parameters.items() if n not in real}
    every = [
        [_numbers(found, function, b, h) for h in range(heads or 1)] for b in range(batch or 1)
    ]
    domains = {
        name: _domain(found, name, [int(one[name]) for entry in every for one in entry])
        for name in every[0][0]
    }
    family = _family(found, domains)
    patterns: list[Pattern] = []
    for entry in every:
        parts = [family(**{n: int(v) for n, v in one.items()}) for one in entry]
        patterns.append(per_head(*parts) if heads else parts[0])
    for b, pattern in enumerate(patterns):
        for h in range(heads or 1):
            _compare(function, found, pattern.parts[h] if heads else pattern, b, h)
    same = None
    if not batch and not heads:
        same = recognise.family_of_formula(family, {n: int(v) for n, v in every[0][0].items()})
    kinds = " and ".join(n for n, size in (("batch entry", batch), ("head", heads)) if size)
    differs = f" It differs by {kinds}." if batch or heads else ""
    held = f" Numbers that Python itself uses stay: {_listed(found.fixed)}." if found.fixed else ""
    return Explained(
        found.name,
        "formula",
        tuple(patterns),
        f"A formula of the two positions.{differs}{held}{truths.opposite(same)}",
        same_as=same,
        parameters=found.parameters,
        fixed=found.fixed,
        inputs={n: x for n, x in _tensors(function).items() if n in found.by_batch},
        expression=found.expression,
        source=function,
        options=options,
    )


def _listed(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{n} = {v}" for n, v in numbers.items())


def _domain(found: Read, name: str, values: list[int]) -> Domain:
    """From 1 where the number divides and is no 0 itself, as h is in h + 1; else from 0 or the
    smallest that it has."""
    divisors: set[str] = set()
    for part in found.expression.atoms(sp.Mod):
        divisors |= {s.name for s in part.args[1].free_symbols}
    for part in found.expression.atoms(sp.Pow):
        if part.exp.is_negative:
            divisors |= {s.name for s in part.base.free_symbols}
    low = 1 if name in divisors and min(values) > 0 else min(0, *values, 0)
    said = f"a number in the closure of {found.name}"
    return Domain(low, values[0], letter(name, {}), said)


def _family(found: Read, domains: dict[str, Domain]) -> Family:
    return _family_of(found.name, found.name, found.expression, domains)


def _family_of(name: str, title: str, expression: Any, domains: dict[str, Domain]) -> Family:
    """The family of a formula; the same again for a pickle."""

    def of_positions(i: Any, j: Any, **numbers: Any) -> Any:
        try:
            held = value(expression, {"i": i, "j": j, **numbers})
            if not isinstance(held, bool):
                return held
            always = (i >= 0) & (j >= 0)  # its numbers alone decide it
            return always if held else ~always
        except (RuntimeError, ZeroDivisionError) as error:
            if "ZeroDivision" not in f"{error!r}":
                raise
            raise ValueError(
                f"{title} divides by 0 with {_listed(numbers)}; choose larger numbers"
            ) from None

    of_positions.__name__ = name
    of_positions.__doc__ = f"The formula of {title}, brought from outside."
    keywords = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in domains]
    positions = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in ("i", "j")]
    of_positions.__signature__ = inspect.Signature([*positions, *keywords])  # type: ignore[attr-defined]
    family = own_family(of_positions, title, domains)
    if family.function is of_positions:
        again = (_family_of, (family.name, title, expression, domains))
        of_positions.again = again  # type: ignore[attr-defined]
    return family


def _said(function: Any, found: Read, b: int, h: int) -> Tensor:
    """What the callable says of all pairs of the length that is tried."""
    i, j = torch.arange(TRIED)[:, None], torch.arange(TRIED)
    try:
        return by_pairs(function, found.roles, b=b, h=h)(i, j)
    except RuntimeError as error:
        if "ZeroDivision" not in f"{error!r}":
            raise
        raise FormulaError(
            f"{found.name} divides by 0 at some positions below {TRIED}; add 1 to what divides, or "
            f"say explain({found.name}, L=…) for a length at which it does not"
        ) from None


def _compare(function: Any, found: Read, pattern: Pattern, b: int, h: int) -> None:
    """The formula against the callable itself, pair by pair."""
    said = _said(function, found, b, h).bool()
    wrong = (said != pattern.mask(TRIED)).nonzero()
    if len(wrong):
        q, k = wrong[0].tolist()
        raise FormulaError(
            f"{found.name} returns {bool(said[q, k])} at q = {q}, k = {k}, its formula "
            f"{pattern.text()} says otherwise; the function does more than its formula shows"
        )


def _as_scores(
    function: Callable[..., Any],
    found: Read,
    batch: int | None,
    heads: int | None,
    options: dict[str, int | None],
) -> Explained:
    if batch:
        raise ValueError(
            f"{found.name} adds another bias in each batch entry; give the function of one entry"
        )
    score = next((s for s in found.expression.free_symbols if s.name == "score"), sp.Integer(0))
    expression, allowed = _split(_with_low_numbers(found))
    added = expression - score if score in expression.free_symbols else expression
    if score in added.free_symbols:
        added = sp.expand(sp.piecewise_fold(added))
    pattern: Pattern = full()
    if allowed is not sp.true:
        masked = Read(
            found.name, found.roles, allowed, dict(found.parameters), {}, {}, found.by_batch
        )
        used = {s.name for s in allowed.free_symbols}
        masked.parameters = {n: v for n, v in found.parameters.items() if n in used}
        if used & {"h", "score", *found.by_batch}:
            raise FormulaError(f"{found.name} masks by the head or the score: {allowed}")
        domains = {n: _domain(masked, n, [int(v)]) for n, v in masked.parameters.items()}
        pattern = _family(masked, domains)(**masked.parameters)
    shared: dict[str, Any] = {"fixed": found.fixed, "source": function, "options": options}
    if "score" in found.roles and score in added.free_symbols:
        return Explained(
            found.name,
            "scores",
            (pattern,),
            "A function of the score: all pairs are met, and none is left out."
            if allowed is sp.true
            else f"A function of the score, where {pattern.text()}.",
            same_as=_same(pattern),
            parameters=found.parameters,
            expression=expression,
            **shared,
        )
    if "score" in found.roles and score not in expression.free_symbols:
        raise FormulaError(f"{found.name} never uses the score; its value {expression} replaces it")
    names = {s.name for s in added.free_symbols}
    every = [_numbers(found, function, 0, h) for h in range(heads or 1)]
    numbers = {
        n: [one[n] for one in every] if n in found.by_batch else every[0][n]
        for n in every[0]
        if n in names and n not in ("b", "h")
    }
    bias = Bias(found.name, added, numbers, heads or 1)
    _compare_bias(function, found, bias, pattern)
    if "score" not in found.roles:
        _refuse_truths(found.name, bias.tensor(TRIED))
    if not bool(bias.tensor(TRIED)[:, pattern.mask(TRIED)].any()) and allowed is not sp.true:
        return _named(found, pattern, shared)
    where = "every score" if allowed is sp.true else f"the scores where {pattern.text()}"
    return Explained(
        found.name,
        "bias",
        (pattern,),
        f"A formula of the two positions is added to {where}."
        + truths.nearly_a_mask(bias.tensor(TRIED)[:, pattern.mask(TRIED)]),
        bias=bias,
        same_as=_same(pattern),
        parameters=found.parameters,
        inputs={n: x for n, x in _tensors(function).items() if n in found.by_batch},
        expression=found.expression,
        **shared,
    )


def _refuse_truths(name: str, values: Tensor) -> None:
    if truths.only_zeros_and_ones(values):
        raise ValueError(
            f"{name} returns the numbers 0 and 1, and 1 added to a score masks nothing; return "
            "truth values, such as q >= k. A bias of 0 and 1 is written "
            "lambda score, b, h, q, k: score + …"
        )


def _same(pattern: Pattern) -> Pattern | None:
    """The library's pattern that a formula from outside is."""
    if not isinstance(pattern, Leaf) or pattern.family.bibkey:
        return None
    return recognise.family_of_formula(pattern.family, pattern.parameters)


def _named(found: Read, pattern: Pattern, more: Mapping[str, Any]) -> Explained:
    """A score_mod that adds nothing where it does not mask: its mask."""
    same = _same(pattern)
    return Explained(
        found.name,
        "formula",
        (pattern,),
        "A mask: nothing is added to the scores that it leaves." + truths.opposite(same),
        same_as=same,
        parameters=pattern.parameters,
        expression=pattern.sympy,
        **more,
    )


def _with_low_numbers(found: Read) -> Any:
    """The expression, with a number in the place of its name if softmax leaves nothing of it: as
    in torch.where(q >= k, score, low). Such numbers are no parameters."""
    low = {n: v for n, v in found.parameters.items() if v <= -truths.GAP}
    swap = {s: sp.Float(low[s.name]) for s in found.expression.free_symbols if s.name in low}
    changed = found.expression.xreplace(swap)
    if swap and _split(changed)[1] is not sp.true:
        found.expression = changed
        found.fixed |= low
        found.parameters = {n: v for n, v in found.parameters.items() if n not in low}
    return found.expression


def _is_never(value: Any) -> bool:
    """−inf, or so much less than a score that softmax leaves nothing of it."""
    constant = value.as_coeff_Add()[0]
    return value == -sp.oo or bool(constant.is_real and constant <= -truths.GAP)


def _split(expression: Any) -> tuple[Any, Any]:
    """(the new score, where any weight is left) of a score_mod that writes −inf, or a number that
    is as good, where no pair is."""
    if expression.has(sp.Piecewise) and any(x <= -truths.GAP for x in expression.atoms(sp.Number)):
        expression = sp.piecewise_fold(expression)
    if not isinstance(expression, sp.Piecewise):
        return expression, sp.true
    kept, allowed, before = [], sp.false, sp.true
    for one, condition in expression.args:
        if _is_never(one):
            before = sp.And(before, sp.Not(condition))
            continue
        here = sp.And(before, condition)
        kept.append((one, here))
        allowed, before = sp.Or(allowed, here), sp.And(before, sp.Not(condition))
    if len(kept) == len(expression.args):
        return expression, sp.true
    if len(kept) == 1:
        return kept[0][0], allowed
    return sp.Piecewise(*kept[:-1], (kept[-1][0], True)), allowed


def _compare_bias(function: Any, found: Read, bias: Bias, pattern: Pattern) -> None:
    said = [_said(function, found, 0, h) for h in range(bias.heads)]
    allowed = pattern.mask(TRIED)
    for one, h in zip(said, range(bias.heads), strict=True):
        if not torch.allclose(one[allowed].float(), bias.tensor(TRIED)[h][allowed], atol=1e-4):
            raise FormulaError(
                f"{found.name} and its formula {bias.text()} give different numbers; the function "
                "does more than its formula shows"
            )
        if bool((endless := (one.isnan() | one.isposinf()) & allowed).any()):
            q, k = endless.nonzero()[0].tolist()
            raise ValueError(
                f"{found.name} is {float(one[q, k])} at q = {q}, k = {k}; give finite numbers, and "
                "−inf for no pair"
            )


def _as_table(
    function: Callable[..., Any],
    indices: tuple[str, ...],
    found: Read | None,
    error: str,
    options: dict[str, int | None],
) -> Explained:
    """Evaluated pair by pair, as FlexAttention does it."""
    captured = Captured()
    with_values(plain(function), captured, {}, {})
    tensors, name = captured.tensors, name_of(function)
    held = captured.in_words()
    if not tensors and options["L"] is None:
        if held and not _can_be_called(function, indices):
            raise FormulaError(f"{name} cannot be called with tensors: {held}")
        raise FormulaError(f"{error}. For a table instead of a formula say explain({name}, L=…)")
    L = options["L"] or (_looked_into(found, tensors) if found else None)
    if L is None:
        because = f" ({error})" if error else ""
        raise ValueError(
            f"{name} depends on the tensors {', '.join(tensors)}{because}, and none of them says "
            f"the length; say explain({name}, L=…)"
        )
    if found:
        batch, heads = _sizes(found, function, options)
    elif _can_be_called(function, indices):
        batch, heads = _sizes_asked(function, indices, L, options)
    else:
        batch, heads = options["batch"], options["heads"]
    i, j = torch.arange(L)[:, None], torch.arange(L)
    values = []
    try:
        for b in range(batch or 1):
            entry = [by_pairs(function, indices, b=b, h=h)(i, j) for h in range(heads or 1)]
            values.append(torch.stack(entry))
    except Exception as failure:
        if held:
            raise FormulaError(f"{name} cannot be called with tensors: {held}") from failure
        first = (str(failure).splitlines() or [type(failure).__name__])[0]
        sizes = ", ".join(f"{n} {tuple(x.shape)}" for n, x in tensors.items())
        raise FormulaError(
            f"{name} is no formula and cannot be called for L = {L} queries and {L} keys: {first}; "
            f"{f'(its tensors: {sizes}). ' if sizes else ''}{error or 'Queries must be the keys.'}"
        ) from failure
    all_values = torch.stack(values)
    used = [n for n in tensors if found is None or n in found.tensors or n in found.by_batch]
    why = (
        f"A table for L = {L}: it depends on {', '.join(used)}."
        if used
        else f"A table for L = {L}. {error}"
    )
    common: dict[str, Any] = {
        "inputs": {n: tensors[n] for n in used},
        "expression": found.expression if found else None,
        "parameters": found.parameters if found else {},
        "fixed": found.fixed if found else {},
        "source": function,
        "options": options,
    }
    if all_values.dtype != torch.bool:
        if len(all_values) > 1:
            raise ValueError(f"{name} adds another bias in each batch entry; give batch=1")
        added = all_values[0] if all_values.is_floating_point() else all_values[0].float()
        if "score" not in indices:
            _refuse_truths(name, added)
        else:
            allowed = ~truths.left_out(added)
            for h in range(heads or 1):
                more = by_pairs(function, indices, score=1, h=h)(i, j) - added[h]
                if not torch.allclose(more[allowed[h]], torch.ones(()), atol=1e-4):
                    because = error or "it is no table of what is added"
                    raise FormulaError(
                        f"{name} does more with the score than to add to it, and depends on the "
                        f"tensors {', '.join(tensors)}; {because}"
                    )
        numbers = of_numbers(name, added)
        bias = numbers.bias and Bias("table", None, {}, heads or 1, numbers.bias.tensor(L))
        kind = "bias" if bias else "table"
        return Explained(
            name, kind, numbers.patterns, f"{why} {numbers.why}", bias, numbers.same_as, **common
        )
    patterns: list[Pattern] = []
    for entry in all_values:
        parts = [table(head) for head in entry]
        patterns.append(per_head(*parts) if heads else parts[0])
    return Explained(name, "table", tuple(patterns), why, **common)


def _can_be_called(function: Any, indices: tuple[str, ...]) -> bool:
    try:
        by_pairs(function, indices)(torch.arange(2)[:, None], torch.arange(2))
    except Exception:
        return False
    return True


def _sizes_asked(
    function: Any, indices: tuple[str, ...], L: int, options: Mapping[str, int | None]
) -> tuple[int | None, int | None]:
    """How many batch entries and heads differ, of a function that is no formula: what it does with
    b and h is watched, and where it looks them up, an entry too many is an error. Raises ValueError
    where it uses one of them and nothing says how many there are."""
    sizes = []
    for axis, name in (("b", "batch"), ("h", "heads")):
        size = options[name]
        if size is None and axis in indices and uses(function, indices, axis, L):
            size = entries_of(function, indices, axis)
            if size is None:
                raise ValueError(
                    f"{name_of(function)} differs by {'batch entry' if axis == 'b' else 'head'}, "
                    f"and nothing says how many there are; say explain(…, {name}=…)"
                )
        sizes.append(size if options[name] or size != 1 else None)
    return sizes[0], sizes[1]


def _looked_into(found: Read, tensors: Mapping[str, Tensor]) -> int | None:
    """The size of the axis that a position itself looks into."""
    sizes = set()
    for use in found.expression.atoms(sp.Indexed):
        if str(use.base.label) in tensors:
            for place, index in enumerate(use.indices):
                if str(index) in ("i", "j"):
                    sizes.add(tensors[str(use.base.label)].shape[place])
    return min(sizes) if sizes else None
