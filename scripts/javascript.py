"""Writes the counting of `tfviz.anatomy` as JavaScript, so that the page counts by the same source.

    python scripts/javascript.py

makes tfviz/explorers/shared/counted.js from the modules of MODULES. It knows the Python that these
are written in, and no more: another construct is an error with its file and line. What Python means
by its operators and built-in names stands in tfviz/explorers/shared/python.js, as `py`: dicts are
Maps, sets are Sets, lists and tuples are arrays, None is null, numbers are numbers.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parent.parent
MADE = ROOT / "tfviz/explorers/shared/counted.js"
COMMAND = "python scripts/javascript.py"
PACKAGE = "tfviz.anatomy"


def words(text: str) -> list[str]:
    return text.split()


MODULES = words("layers keys ordinary special counting made_of ghosts configs record reading")
"""In the order in which their constants are worked out."""

GIVEN = {"stored.families": "families", "stored.models": "models"}
"""Functions that read files, which the page is handed."""
LEFT_OUT = {
    "record.Total": "py.Total",  # a number with attributes, written by hand
    "record.Layer.mask": "",  # these two make parts of the library
    "record.Anatomy.build": "",
}

OPERATORS = {
    **{ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times", ast.Div: "over", ast.Pow: "power"},
    **{ast.FloorDiv: "floored", ast.Mod: "modulo", ast.BitOr: "either", ast.BitAnd: "both"},
}
FUNCTIONS = words(
    "all any bool dict divmod enumerate float int isinstance iter len list max min next ord range "
    "round set sorted str sum tuple zip"
)
METHODS = words(
    "add append clear count fullmatch get items join keys ljust lower pop replace rfind setdefault "
    "split startswith strip translate update values"
)
ERRORS = {
    **{"ValueError": "py.ValueError", "KeyError": "py.KeyError"},
    **dict.fromkeys(("ArithmeticError", "AttributeError", "LookupError", "TypeError"), "TypeError"),
}
KINDS = {"int", "str", "bool", "float", "list", "Mapping"}
PYTHON_ONLY = {"__future__", "collections.abc", "dataclasses", "functools", "operator", "typing"}
RESERVED = words(
    "arguments await break case catch class const continue debugger default delete do else enum "
    "eval export extends false finally for function if implements import in instanceof interface "
    "let new null package private protected public return static super switch this throw true try "
    "typeof var void while with yield py value error v0 v1 v2"
)
"""Names that JavaScript or the translation keeps for itself."""


class UnknownPythonError(Exception):
    """A construct that the translation does not know."""


@dataclass
class Signature:
    """What a function, method or class takes."""

    names: list[str]  # by position; the list of all further ones has a name of its own
    defaults: dict[str, str]
    rest: str | None = None  # the name of *names, which stands first in JavaScript, as an array


@dataclass
class Scope:
    """Names that a function has of its own, with those around it."""

    names: set[str] = field(default_factory=set)
    functions: dict[str, Signature] = field(default_factory=dict)
    around: Scope | None = None

    def holder(self, name: str) -> Scope | None:
        if name in self.names:
            return self
        return self.around.holder(name) if self.around else None


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def plain(name: str) -> str:
    return f"{name}$" if name in RESERVED else name


class Program:
    """What all modules define: each name's JavaScript, and what it takes."""

    def __init__(self) -> None:
        self.signatures: dict[str, Signature] = {}
        self.methods: dict[str, Signature] = {}

    def written(self) -> str:
        modules = [Module(self, name) for name in MODULES]
        for module in modules:
            module.declared()
        return "\n".join(line for module in modules for line in module.lines())


class Module:
    """One file: its names, and its statements as lines of JavaScript."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.file = ROOT / PACKAGE.replace(".", "/") / f"{name}.py"
        self.tree = ast.parse(self.file.read_text("utf-8"))
        self.known: dict[str, str] = {}  # a name: its JavaScript
        self.modules: dict[str, str] = {}  # a name: the module of this package that it is
        self.scope = Scope()

    def unknown(self, node: ast.AST, what: str = "") -> NoReturn:
        line = getattr(node, "lineno", 1)
        what = what or f"{type(node).__name__} ({ast.unparse(node)[:60]})"
        where = self.file.relative_to(ROOT)
        raise UnknownPythonError(f"{where}:{line}: {what} has no translation; write it otherwise")

    # --- names ------------------------------------------------------------------------------------

    def declared(self) -> None:
        """Notes every name of the module, and what each function and class takes."""
        for node in self.tree.body:
            match node:
                case ast.ImportFrom(module=source, names=names):
                    self.imported(node, source or "", [x.asname or x.name for x in names])
                case ast.Import(names=names) if {x.name for x in names} - {"re", "math"}:
                    self.unknown(node)
                case ast.FunctionDef(name=name):
                    self.known[name] = self.own(name)
                    self.program.signatures[self.own(name)] = self.signature(node)
                case ast.ClassDef(name=name) if f"{self.name}.{name}" in LEFT_OUT:
                    self.known[name] = LEFT_OUT[f"{self.name}.{name}"]
                    self.program.signatures[self.known[name]] = Signature(["parts"], {})
                case ast.ClassDef(name=name):
                    self.known[name] = self.own(name)
                    self.program.signatures[self.own(name)] = self.fields(node)
                    for part in node.body:
                        if isinstance(part, ast.FunctionDef) and not part.decorator_list:
                            if part.name in METHODS:
                                self.unknown(part, f"a method that is called {part.name}")
                            self.program.methods[part.name] = self.signature(part, bound=True)
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ):
                    self.known[name] = self.own(name)

    def imported(self, node: ast.AST, source: str, names: list[str]) -> None:
        if source == PACKAGE:
            self.modules |= {name: name for name in names}
        elif source.startswith(PACKAGE):
            module = source.rpartition(".")[2]
            for name in names:
                full = f"{module}.{name}"
                self.known[name] = GIVEN.get(full) or LEFT_OUT.get(full) or f"{module}${name}"
                if full in GIVEN:
                    self.program.signatures[GIVEN[full]] = Signature([], {})
        elif source == "types":
            self.known["MappingProxyType"] = "py.dict"
        elif source not in PYTHON_ONLY:
            self.unknown(node)

    def own(self, name: str) -> str:
        return f"{self.name}${name}"

    def signature(self, node: ast.FunctionDef | ast.Lambda, bound: bool = False) -> Signature:
        a = node.args
        if a.kwarg or a.posonlyargs or (a.vararg and len(a.args) > bound):
            self.unknown(node, "such a list of arguments")
        names = [x.arg for x in [*a.args, *a.kwonlyargs]][int(bound) :]
        values = [*[None] * (len(a.args) - len(a.defaults)), *a.defaults, *a.kw_defaults][
            int(bound) :
        ]
        defaults = {n: self.value(x) for n, x in zip(names, values, strict=True) if x is not None}
        return Signature(names, defaults, a.vararg.arg if a.vararg else None)

    def fields(self, node: ast.ClassDef) -> Signature:
        """What a dataclass or a class with `__init__` takes."""
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                return self.signature(part, bound=True)
        made = Signature([], {})
        for part in node.body:
            match part:
                case ast.AnnAssign(target=ast.Name(id=name), value=value):
                    made.names.append(name)
                    match value:
                        case ast.Call(func=ast.Name(id="field"), keywords=options):
                            factory = [x.value for x in options if x.arg == "default_factory"]
                            if factory and ast.unparse(factory[0]) != "dict":
                                self.unknown(part)
                            made.defaults |= {name: "new Map()"} if factory else {}
                        case ast.expr():
                            made.defaults[name] = self.value(value)
        return made

    # --- statements -------------------------------------------------------------------------------

    def lines(self) -> Iterable[str]:
        yield f"// --- {self.file.relative_to(ROOT).as_posix()}"
        for node in self.tree.body:
            match node:
                case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                    pass
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    pass
                case ast.Assign(targets=[ast.Name(id="__all__")]):
                    pass
                case ast.Assign(value=ast.Subscript(value=ast.Name(id="Mapping"))):
                    pass  # a name of a type
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    yield f"const {self.own(name)} = {self.value(value)};"
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    yield f"const {self.own(name)} = {self.value(value)};"
                case ast.FunctionDef():
                    yield from self.function(node, f"function {self.own(node.name)}")
                case ast.ClassDef() if f"{self.name}.{node.name}" not in LEFT_OUT:
                    yield from self.classed(node)
                case ast.ClassDef():
                    pass
                case _:
                    self.unknown(node)

    def classed(self, node: ast.ClassDef) -> Iterable[str]:
        bases = [ERRORS.get(x.id) for x in node.bases if isinstance(x, ast.Name)]
        if len(bases) != len(node.bases) or None in bases or len(bases) > 1 or node.keywords:
            self.unknown(node)
        yield f"class {self.own(node.name)}{''.join(f' extends {x}' for x in bases)} {{"
        fields, methods = self.fields(node), [getattr(x, "name", "") for x in node.body]
        if fields.names and "__init__" not in methods:
            yield f"constructor({self.parameters(fields)}) {{"
            yield f"Object.assign(this, {{ {', '.join(fields.names)} }}); }}"
        for part in node.body:
            match part:
                case ast.AnnAssign() | ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.FunctionDef(name=name) if f"{self.name}.{node.name}.{name}" in LEFT_OUT:
                    pass
                case ast.FunctionDef(name="__init__", decorator_list=[]):
                    yield from self.function(part, "constructor", bound=True)
                case ast.FunctionDef(name=name, decorator_list=[]):
                    yield from self.function(part, name, bound=True)
                case ast.FunctionDef(name=name, decorator_list=[ast.Name(id="property")]):
                    yield from self.function(part, f"get {name}", bound=True)
                case ast.FunctionDef(name=name, decorator_list=[ast.Name(id="cached_property")]):
                    made = f"py.once(this, {quoted(name)}, () => this._{name}())"
                    yield f"get {name}() {{ return {made}; }}"
                    yield from self.function(part, f"_{name}", bound=True)
                case _:
                    self.unknown(part)
        yield "}"

    def parameters(self, signature: Signature) -> str:
        rest = [plain(signature.rest)] if signature.rest else []
        values = signature.defaults
        names = [f"{plain(x)} = {values[x]}" if x in values else plain(x) for x in signature.names]
        return ", ".join([*rest, *names])

    def function(self, node: ast.FunctionDef, head: str, bound: bool = False) -> Iterable[str]:
        signature = self.signature(node, bound)
        takes = {*signature.names, *([signature.rest] if signature.rest else [])}
        scope = Scope(takes | ({"self"} if bound else set()), around=self.scope)
        own = Scope(around=scope)
        before, self.scope = self.scope, own
        self.assigned(node.body, own)
        body = [line for statement in node.body for line in self.statement(statement)]
        self.scope = before
        yield f"{head}({self.parameters(signature)}) {{"
        if bound:
            yield "const self = this;"
        if fresh := sorted(own.names - takes - {*own.functions}):
            yield f"let {', '.join(map(plain, fresh))};"
        yield from body
        yield "return null;" if head != "constructor" else ""
        yield "}"

    def assigned(self, body: list[ast.stmt], scope: Scope) -> None:
        """Notes what the statements of a function assign, without those of functions in it."""
        todo: list[ast.AST] = [*body]
        while todo:
            node = todo.pop()
            match node:
                case ast.FunctionDef(name=name):
                    scope.names.add(name)
                    scope.functions[name] = self.signature(node)
                    continue
                case ast.Name(id=name, ctx=ast.Store()):
                    scope.names.add(name)
                case ast.ExceptHandler(name=str() as name):
                    scope.names.add(name)
                case ast.comprehension(iter=values, ifs=ifs):
                    todo += [values, *ifs]  # its own names are its own
                    continue
                case ast.Lambda():
                    continue
            todo += ast.iter_child_nodes(node)

    def statement(self, node: ast.stmt) -> Iterable[str]:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.ImportFrom():
                pass
            case ast.Expr(value=value):
                yield f"{self.value(value)};"
            case ast.Continue():
                yield "continue;"
            case ast.Return(value=value):
                yield f"return {self.value(value) if value else 'null'};"
            case ast.Assign(targets=[target], value=value):
                yield self.stored(target, self.value(value))
            case ast.Assign(targets=[*targets], value=value):
                yield f"{{ const value = {self.value(value)};"
                yield from (self.stored(target, "value") for target in targets)
                yield "}"
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield self.stored(target, self.value(value))
            case ast.AugAssign(target=target, op=ast.BitOr(), value=value):
                yield self.stored(target, f"py.joined({self.value(target)}, {self.value(value)})")
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in OPERATORS:
                made = f"py.{OPERATORS[type(op)]}({self.value(target)}, {self.value(value)})"
                yield self.stored(target, made)
            case ast.If(test=test, body=body, orelse=orelse):
                yield f"if ({self.test(test)}) {{"
                yield from self.block(body)
                yield "} else {"
                yield from self.block(orelse)
                yield "}"
            case ast.For(target=target, iter=values, body=body, orelse=[]):
                yield f"for ({self.target(target)} of py.iter({self.value(values)})) {{"
                yield from self.block(body)
                yield "}"
            case ast.While(test=test, body=body, orelse=[]):
                yield f"while ({self.test(test)}) {{"
                yield from self.block(body)
                yield "}"
            case ast.Raise(exc=ast.Call() as made):
                yield f"throw {self.value(made)};"
            case ast.Try(body=body, handlers=[handler], orelse=[], finalbody=[]):
                kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
                caught = [self.error(x) for x in kinds if x is not None]
                tests = " || ".join(f"error instanceof {x}" for x in dict.fromkeys(caught))
                yield "try {"
                yield from self.block(body)
                yield f"}} catch (error) {{ if (!({tests})) throw error;"
                yield from self.block(handler.body)
                yield "}"
            case ast.FunctionDef(name=name):
                yield from self.function(node, f"function {plain(name)}")
            case _:
                self.unknown(node)

    def block(self, body: list[ast.stmt]) -> Iterable[str]:
        for statement in body:
            yield from self.statement(statement)

    def error(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name) if name in ERRORS:
                return ERRORS[name]
            case ast.Name(id=name) if name in self.known:
                return self.known[name]
        self.unknown(node)

    def target(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return plain(name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return f"[{', '.join(self.target(x) for x in parts)}]"
            case ast.Starred(value=value):
                return f"...{self.target(value)}"
            case ast.Attribute(value=value, attr=name):
                return f"{self.value(value)}.{name}"
        self.unknown(node)

    def stored(self, node: ast.expr, value: str) -> str:
        match node:
            case ast.Subscript(value=held, slice=ast.Slice(lower=low, upper=high, step=None)):
                ends = (self.value(x) if x else "null" for x in (low, high))
                return f"py.put({self.value(held)}, {', '.join(ends)}, {value});"
            case ast.Subscript(value=held, slice=key):
                return f"py.set_item({self.value(held)}, {self.value(key)}, {value});"
            case ast.Tuple(elts=[*parts]) if any(isinstance(x, ast.Subscript) for x in parts):
                names = [f"v{i}" for i in range(len(parts))]
                each = " ".join(self.stored(x, n) for x, n in zip(parts, names, strict=True))
                return f"{{ const [{', '.join(names)}] = py.parts({value}, {len(parts)}); {each} }}"
            case ast.Tuple(elts=parts) if not any(isinstance(x, ast.Starred) for x in parts):
                return f"{self.target(node)} = py.parts({value}, {len(parts)});"
        return f"{self.target(node)} = {value};"

    # --- expressions ------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=None):
                return "null"
            case ast.Constant(value=bool() as x):
                return str(x).lower()
            case ast.Constant(value=str() as x):
                return quoted(x)
            case ast.Constant(value=int() | float() as x):
                return repr(x)
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.Attribute(value=ast.Name(id="math"), attr="inf"):
                return "Infinity"
            case ast.Attribute(value=ast.Name(id="re"), attr="ASCII"):
                return '"ASCII"'
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in self.modules:
                return f"{self.modules[module]}${name}"
            case ast.Attribute(value=value, attr=name):
                return f"{self.value(value)}.{name}"
            case ast.Subscript(value=value, slice=ast.Slice(lower=low, upper=high, step=None)):
                ends = (self.value(x) if x else "null" for x in (low, high))
                return f"py.slice({self.value(value)}, {', '.join(ends)})"
            case ast.Subscript(value=value, slice=key):
                return f"py.item({self.value(value)}, {self.value(key)})"
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return f"[{self.listed(parts)}]"
            case ast.Set(elts=parts):
                return f"py.set([{self.listed(parts)}])"
            case ast.Dict(keys=keys, values=values):
                pairs = (
                    f"[{self.value(k)}, {self.value(v)}]" if k else f"...py.items({self.value(v)})"
                    for k, v in zip(keys, values, strict=True)
                )
                return f"new Map([{', '.join(pairs)}])"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return f"py.{OPERATORS[type(op)]}({self.value(left)}, {self.value(right)})"
            case ast.UnaryOp(op=ast.USub(), operand=x):
                return f"py.minus(0, {self.value(x)})"
            case ast.UnaryOp(op=ast.Not(), operand=x):
                return f"!{self.test(x)}"
            case ast.BoolOp(op=op, values=[*first, last]):
                name = "and" if isinstance(op, ast.And) else "or"
                made = self.value(last)
                for x in reversed(first):
                    made = f"py.{name}({self.value(x)}, () => {made})"
                return made
            case ast.Compare():
                return self.compared(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"({self.test(test)} ? {self.value(body)} : {self.value(orelse)})"
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                return f"({plain(name)} = {self.value(value)})"
            case ast.JoinedStr(values=parts):
                return f"[{', '.join(self.piece(x) for x in parts)}].join('')"
            case ast.Lambda(body=body):
                signature = self.signature(node)
                return self.inside(
                    {*signature.names},
                    lambda: f"(({self.parameters(signature)}) => {self.value(body)})",
                )
            case ast.ListComp(elt=x, generators=loops):
                return f"[...{self.generated(loops, [x])}]"
            case ast.SetComp(elt=x, generators=loops):
                return f"py.set({self.generated(loops, [x])})"
            case ast.DictComp(key=key, value=value, generators=loops):
                return f"new Map({self.generated(loops, [key, value])})"
            case ast.GeneratorExp(elt=x, generators=loops):
                return self.generated(loops, [x])
            case ast.Call():
                return self.called(node)
        self.unknown(node)

    def named(self, node: ast.AST, name: str) -> str:
        if self.scope.holder(name):
            return plain(name)
        if name in self.known:
            return self.known[name]
        if name in FUNCTIONS:
            return f"py.{name}"
        self.unknown(node, f"the name {name}{' of Python' if hasattr(builtins, name) else ''}")

    def inside(self, names: set[str], made: object) -> str:
        assert callable(made)
        before, self.scope = self.scope, Scope(names, around=self.scope)
        try:
            return str(made())
        finally:
            self.scope = before

    def listed(self, parts: list[ast.expr]) -> str:
        return ", ".join(
            f"...py.iter({self.value(x.value)})" if isinstance(x, ast.Starred) else self.value(x)
            for x in parts
        )

    def generated(self, loops: list[ast.comprehension], made: list[ast.expr]) -> str:
        """A generator of values, or of pairs, from the loops of a comprehension."""
        if not loops:
            x = [self.value(x) for x in made]
            return f"yield {x[0]};" if len(x) == 1 else f"yield [{', '.join(x)}];"
        return f"(function* () {{ {self.looped(loops, made)} }})()"

    def looped(self, loops: list[ast.comprehension], made: list[ast.expr]) -> str:
        first, *rest = loops
        values = self.value(first.iter)
        names = {x.id for x in ast.walk(first.target) if isinstance(x, ast.Name)}

        def body() -> str:
            tests = [self.test(x) for x in first.ifs]
            if any(isinstance(x, ast.NamedExpr) for y in first.ifs for x in ast.walk(y)):
                self.unknown(first.target, "an assignment in a comprehension")
            inner = self.looped(rest, made) if rest else self.generated([], made)
            inner = f"if ({' && '.join(tests)}) {{ {inner} }}" if tests else inner
            return f"for (const {self.target(first.target)} of py.iter({values})) {{ {inner} }}"

        return self.inside(names, body)

    def piece(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str() as x):
                return quoted(x)
            case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
                if conversion not in (-1, ord("r")):
                    self.unknown(node)
                text = f"py.{'repr' if conversion == ord('r') else 'str'}({self.value(value)})"
                if spec is None:
                    return text
                match = re.fullmatch(r"f'\.(\d+)'", ast.unparse(spec))
                if match is None:
                    self.unknown(node)
                return f"py.slice({text}, 0, {match[1]})"
        self.unknown(node)

    def test(self, node: ast.expr) -> str:
        """The value of a condition, as JavaScript tests it."""
        match node:
            case ast.BoolOp(op=op, values=values):
                sign = " && " if isinstance(op, ast.And) else " || "
                return f"({sign.join(self.test(x) for x in values)})"
            case ast.UnaryOp(op=ast.Not(), operand=x):
                return f"!{self.test(x)}"
            case ast.Compare():
                return f"({self.compared(node)})"
            case ast.Call(func=ast.Name(id="isinstance" | "any" | "all" | "bool")):
                return self.value(node)
        return f"py.bool({self.value(node)})"

    def compared(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        if any(isinstance(x, ast.Call) and ast.unparse(x.func) != "len" for x in sides[1:-1]):
            self.unknown(node, "a call in the middle of a comparison")
        each = zip(sides, node.ops, sides[1:], strict=False)
        return " && ".join(self.one_comparison(node, a, op, b) for a, op, b in each)

    def one_comparison(self, node: ast.AST, a: ast.expr, op: ast.cmpop, b: ast.expr) -> str:
        left, right = self.value(a), self.value(b)
        words = any(isinstance(x, ast.Constant) and isinstance(x.value, str) for x in (a, b))
        match op:
            case ast.Is() | ast.IsNot() if isinstance(b, ast.Constant) and b.value is None:
                return f"{left} {'===' if isinstance(op, ast.Is) else '!=='} null"
            case ast.Eq():
                return f"{left} === {right}" if words else f"py.equal({left}, {right})"
            case ast.NotEq():
                return f"{left} !== {right}" if words else f"!py.equal({left}, {right})"
            case ast.In():
                return f"py.has({right}, {left})"
            case ast.NotIn():
                return f"!py.has({right}, {left})"
            case ast.Lt():
                return f"py.less({left}, {right})"
            case ast.Gt():
                return f"py.less({right}, {left})"
            case ast.LtE():
                return f"py.most({left}, {right})"
            case ast.GtE():
                return f"py.most({right}, {left})"
        self.unknown(node)

    # --- calls ------------------------------------------------------------------------------------

    def called(self, node: ast.Call) -> str:
        options = {x.arg: x.value for x in node.keywords}
        if None in options:
            self.unknown(node, "a call with **")
        match node.func:
            case ast.Subscript(value=ast.Name(id="dict" | "set" as kind)) if not node.args:
                return {"dict": "new Map()", "set": "new Set()"}[kind]
            case ast.Name(id=name):
                return self.called_by_name(node, name)
            case ast.Attribute(
                value=ast.Name(id="re"), attr="compile" | "fullmatch" | "findall" as name
            ):
                return f"py.{name}({self.patterns(node)})"
            case ast.Attribute(value=ast.Name(id="dict"), attr="fromkeys"):
                return f"py.fromkeys({self.listed(node.args)})"
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in self.modules:
                whole = f"{self.modules[module]}${name}"
                return f"{whole}({self.arguments(node, self.taken(node, whole))})"
            case ast.Attribute(value=value, attr=name) if name in self.program.methods:
                taken = self.program.methods[name]
                return f"{self.value(value)}.{name}({self.arguments(node, taken)})"
            case ast.Attribute(value=value, attr=name) if name in METHODS and not options:
                more = f", {self.listed(node.args)}" if node.args else ""
                return f"py.{name}({self.value(value)}{more})"
            case ast.Subscript() | ast.Call() if not options:
                return f"{self.value(node.func)}({self.listed(node.args)})"
        self.unknown(node)

    def called_by_name(self, node: ast.Call, name: str) -> str:
        options = {x.arg: x.value for x in node.keywords}
        if holder := self.scope.holder(name):
            if name in holder.functions:
                return f"{plain(name)}({self.arguments(node, holder.functions[name])})"
            taken = self.program.methods["__call__"]
            return f"{plain(name)}.__call__({self.arguments(node, taken)})"
        if name in ERRORS:
            return f"new {ERRORS[name]}({self.listed(node.args)})"
        if name in self.known:
            whole = self.known[name]
            new = "new " if name[0].isupper() and name != "MappingProxyType" else ""
            if whole == "py.dict":
                return f"py.dict({self.listed(node.args)})"
            return f"{new}{whole}({self.arguments(node, self.taken(node, whole))})"
        if name == "isinstance":
            return self.kind(node)
        name = "set" if name == "frozenset" else name
        if name not in FUNCTIONS:
            self.unknown(node, f"the function {name}")
        if name == "zip" and ast.unparse(options.pop("strict", node)) != "True":
            self.unknown(node, "zip without strict=True")
        if name in ("min", "max", "sorted"):
            key = self.value(options.pop("key")) if "key" in options else "null"
            turned = f", {self.value(options.pop('reverse'))}" if "reverse" in options else ""
            single = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)
            values = self.value(node.args[0]) if single else f"[{self.listed(node.args)}]"
            if not options:
                return f"py.{name}({values}, {key}{turned})"
        if options:
            self.unknown(node)
        return f"py.{name}({self.listed(node.args)})"

    def taken(self, node: ast.AST, whole: str) -> Signature:
        if whole not in self.program.signatures:
            self.unknown(node)
        return self.program.signatures[whole]

    def arguments(self, node: ast.Call, taken: Signature) -> str:
        """The arguments by their places; those that are left out are undefined."""
        by_name = {str(x.arg): self.value(x.value) for x in node.keywords}
        if strange := by_name.keys() - {*taken.names}:
            self.unknown(node, f"an argument {', '.join(sorted(strange))}")
        if taken.rest:
            start, names = [f"[{self.listed(node.args)}]"], taken.names
        else:
            if any(isinstance(x, ast.Starred) for x in node.args):
                self.unknown(node, "a call with *")
            start, names = [self.value(x) for x in node.args], taken.names[len(node.args) :]
        while names and names[-1] not in by_name:
            names = names[:-1]
        return ", ".join([*start, *(by_name.get(name, "undefined") for name in names)])

    def patterns(self, node: ast.Call) -> str:
        """The arguments of a function of `re`, whose form means the same in both languages."""
        form = str(getattr(node.args[0], "value", ""))
        flags = [ast.unparse(x) for x in node.args[1:]]
        if re.search(r"\\[^wb2]|\(\?[^:]", form) or (
            re.search(r"\\[wb]", form) and flags != ["re.ASCII"]
        ):
            self.unknown(node, "such a regular expression")
        return self.listed(node.args)

    def kind(self, node: ast.Call) -> str:
        def one(kind: ast.expr) -> str:
            match kind:
                case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                    return f"{one(left)} || {one(right)}"
                case ast.Name(id=name) if name in KINDS:
                    return f"py.is_{name}({self.value(node.args[0])})"
                case ast.Name(id=name) if name in self.known:
                    return f"{self.value(node.args[0])} instanceof {self.known[name]}"
            self.unknown(node)

        return f"({one(node.args[1])})"


HEADER = f"""// @ts-nocheck
// Made by `{COMMAND}` from {PACKAGE.replace(".", "/")}/*.py: change these, and make it again.
// prettier-ignore
const counted = (families, models) => {{
"""


def made() -> str:
    """The text of `counted.js`. Raises UnknownPythonError for what has no translation."""
    offered = (
        "reading$names, reading$of, reading$understood, record$Anatomy, record$Card, record$CARDS"
    )
    inner = "\n".join(x for x in Program().written().splitlines() if x)
    return f"{HEADER}{inner}\nreturn {{ {offered}, counting$kept_by }};\n}};\n"


if __name__ == "__main__":
    MADE.write_text(made(), "utf-8")
    print(f"{MADE.relative_to(ROOT)}: {MADE.stat().st_size:,} bytes")
