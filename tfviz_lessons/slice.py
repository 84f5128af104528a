"""What an exercise needs of the lesson that stands above it, found by reading the code.

An assignment has no room for a whole lesson. `needed` takes, from the code cells of the lesson,
the statements that bind the names which an exercise uses, those that change the things so bound,
and what these need in turn. It takes every import, since an answer may use what the official one
does not. It takes no statement that only draws, prints or asserts.

Nothing is executed, so this is a reading with rules:

* a name means its last binding above the place where it is used; inside of a function, that above
  the exercise, since the function may be called there;
* `x[0] = …`, `x.a = …`, `x += …` and the bare call `x.method(…)` change x;
* a bare call of an imported thing whose last name starts with `set_`, or is `seed` or
  `manual_seed`, is a setting, and is taken; one that ends in `_` changes its arguments.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

SETTINGS = ("seed", "manual_seed")
GIVEN = frozenset({*dir(builtins), "__name__", "display", "get_ipython"})


class SliceError(Exception):
    """A name that an exercise uses and that no statement above it binds."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)


@dataclass(frozen=True)
class Uses:
    """The names of some code that come from outside of it, and those that it binds or changes."""

    now: frozenset[str]  # used when the code is executed
    later: frozenset[str]  # used in the body of a function, when that is called
    binds: frozenset[str]
    changes: frozenset[str]
    imports: bool = False


@dataclass(frozen=True)
class Statement:
    """A statement at the top of a cell: its text with the comments that stand right above it."""

    cell: int
    start: int  # lines within the cell, from 0; the comments are included
    end: int
    uses: Uses


# --- names of one piece of code ------------------------------------------------------------------


class _Names(ast.NodeVisitor):
    """Collects names in the order of execution, as far as one can without executing."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.now: set[str] = set()
        self.later: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id not in self.bound:
                self.now.add(node.id)
        else:
            self.bound.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value:
            self.visit(node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.now.add(node.target.id)
        self.visit(node.value)
        self.visit(node.target)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self.visit(node.target)
        for line in (*node.body, *node.orelse):
            self.visit(line)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.bound.add((alias.asname or alias.name).split(".")[0])

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def _scope(self, parameters: Iterable[str], body: Iterable[ast.AST]) -> _Names:
        inner = _Names()
        inner.bound |= set(parameters)
        for line in body:
            inner.visit(line)
        return inner

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
            self.visit(default)
        names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        names += [a for a in (arguments.vararg, arguments.kwarg) if a]
        for annotated in names:
            if annotated.annotation:
                self.visit(annotated.annotation)
        if not isinstance(node, ast.Lambda):
            for decorator in node.decorator_list:
                self.visit(decorator)
            if node.returns:
                self.visit(node.returns)
            self.bound.add(node.name)
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        inner = self._scope([a.arg for a in names], body)
        # a name that is assigned anywhere in a function is its own everywhere in it
        self.later |= (inner.now | inner.later) - inner.bound

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815
    visit_Lambda = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self.visit(part)
        inner = self._scope([], node.body)
        self.now |= inner.now - self.bound
        self.later |= inner.later
        self.bound.add(node.name)

    def _comprehension(self, node: ast.AST) -> None:
        generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]
        self.visit(generators[0].iter)
        inner = _Names()
        inner.bound |= self.bound
        for generator in generators:
            inner.visit(generator.target)
        for generator in generators[1:]:
            inner.visit(generator.iter)
        for generator in generators:
            for condition in generator.ifs:
                inner.visit(condition)
        for name in ("key", "value", "elt"):
            if hasattr(node, name):
                inner.visit(getattr(node, name))
        self.now |= inner.now
        self.later |= inner.later

    visit_ListComp = visit_SetComp = _comprehension  # noqa: N815
    visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815


def _root(node: ast.AST) -> str | None:
    """The name at the left end of `a.b[0].c(…).d`."""
    while True:
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node.id if isinstance(node, ast.Name) else None


def _changed(tree: ast.AST) -> Iterator[str]:
    """Names whose things are changed in place by code at the top, not inside of functions."""
    own = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if name := _root(node):
                yield name
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute):
                if name := _root(call.func):
                    yield name
                if call.func.attr.endswith("_"):
                    yield from filter(None, map(_root, call.args))
        stack += [child for child in ast.iter_child_nodes(node) if not isinstance(child, own)]


@cache
def uses(source: str) -> Uses:
    """The names of the code `source`; raises SyntaxError if it is not Python."""
    tree = ast.parse(source)
    names = _Names()
    names.visit(tree)
    imports = bool(tree.body) and all(
        isinstance(line, ast.Import | ast.ImportFrom) for line in tree.body
    )
    return Uses(
        frozenset(names.now - GIVEN),
        frozenset(names.later - names.bound - GIVEN),
        frozenset(names.bound),
        frozenset(_changed(tree)),
        imports,
    )


# --- the slice -----------------------------------------------------------------------------------


@cache
def _statements(number: int, source: str) -> list[Statement]:
    """The statements of a cell, with the comments above each."""
    found = []
    lines = source.split("\n")
    before = 0
    for node in ast.parse(source).body:
        decorated = getattr(node, "decorator_list", [])
        start = min([node.lineno, *(d.lineno for d in decorated)]) - 1
        end = node.end_lineno or node.lineno
        while start > before and lines[start - 1].lstrip().startswith("#"):
            start -= 1
        found.append(Statement(number, start, end, uses("\n".join(lines[start:end]))))
        before = end
    return found


def _is_setting(statement: Statement, source: str) -> bool:
    text = "\n".join(source.split("\n")[statement.start : statement.end])
    node = ast.parse(text).body[0]
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    called = node.value.func
    name = called.attr if isinstance(called, ast.Attribute) else ""
    return name.startswith("set_") or name in SETTINGS


def needed(cells: Sequence[str], wanted: Iterable[tuple[int, Iterable[str]]]) -> list[str]:
    """The parts of `cells` that must run before pieces of code, cell by cell.

    `wanted` has for each piece of code the number of cells that stand above it, and the names that
    it uses. A cell of which nothing is needed gives an empty text. Raises `SliceError` for a name
    that nothing binds.
    """
    pieces = [(above, set(names)) for above, names in wanted]
    statements = [s for number, cell in enumerate(cells) for s in _statements(number, cell)]
    first = [sum(s.cell < number for s in statements) for number in range(len(cells) + 1)]
    modules = {name for s in statements if s.uses.imports for name in s.uses.binds}
    asked = [(name, first[above]) for above, names in pieces for name in names - GIVEN]
    end = first[max((above for above, _ in pieces), default=0)]
    taken: set[int] = set()
    # this name, as it is before the statement at this place, for code that stands at this limit
    seen = {(name, limit, limit) for name, limit in asked}
    queue = sorted(seen)

    def ask(name: str, before: int, limit: int) -> None:
        if name not in GIVEN and (name, before, limit) not in seen:
            seen.add((name, before, limit))
            queue.append((name, before, limit))

    def take(place: int, limit: int) -> None:
        taken.add(place)
        found = statements[place].uses
        for name in sorted(found.now | (found.changes - found.binds)):
            ask(name, place, limit)
        for name in sorted(found.later):
            ask(name, limit, limit)

    for place in range(end):
        s = statements[place]
        if s.uses.imports or (s.uses.changes & modules and _is_setting(s, cells[s.cell])):
            take(place, end)
    while queue:
        name, before, limit = queue.pop()
        binders = [p for p in range(before) if name in statements[p].uses.binds]
        if not binders:
            raise SliceError(name)
        take(binders[-1], limit)
        if name in statements[binders[-1]].uses.changes:  # as in x += 1
            ask(name, binders[-1], limit)
        for place in range(binders[-1] + 1, before):
            if name in statements[place].uses.changes and name not in modules:
                take(place, limit)
    kept = [s for place, s in enumerate(statements) if place in taken]
    return [_kept(cell, [s for s in kept if s.cell == n]) for n, cell in enumerate(cells)]


def _kept(cell: str, statements: list[Statement]) -> str:
    """The lines of these statements, with the blank lines that stood above each."""
    lines = cell.split("\n")
    out: list[str] = []
    end = 0
    for s in statements:
        start = max(s.start, end)
        blank = start
        while blank > 0 and not lines[blank - 1].strip():
            blank -= 1
        out += [""] * (start - blank) if out else []
        out += lines[start : s.end]
        end = s.end
    return "\n".join(out)


def quiet(cell: str) -> str:
    """The cell with a semicolon after a call at its end, so that its value is not displayed."""
    body = ast.parse(cell).body
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return cell
    assert last.end_lineno and last.end_col_offset
    lines = cell.split("\n")
    line = lines[last.end_lineno - 1].encode()  # columns are counted in bytes
    code, rest = line[: last.end_col_offset].decode(), line[last.end_col_offset :].decode()
    if not rest.lstrip().startswith(";"):
        lines[last.end_lineno - 1] = f"{code};{rest}"
    return "\n".join(lines)
