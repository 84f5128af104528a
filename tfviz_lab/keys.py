"""Which code of tfviz and tfviz_lab a run executes, piece by piece, read from the source.

A piece is a function, a method, a constant or a row of a table. Beginning with the experiment's
`measure`, every piece that a reached piece names is reached too:

    a name        the function, class or constant behind it, through all imports
    a class       what stands in its body, and of its methods those whose name is said anywhere in
                  the reached code (`.mask`, "mask"), or that Python and torch call by themselves
    a table       (a dict with names for keys) that is only looked up: the rows whose key is said,
                  by the run's configuration or by the reached code. Else all of it

So a run of "alibi" does not depend on the row "rope" of the same table, nor on the formula that a
pattern could print. This reaches more than what is executed, and nothing less unless a name is put
together while the code runs.

Two versions of a piece are one if they differ in comments, docstrings, annotations, formatting, or
in what only refuses arguments: `if …: raise`, `assert`, the functions of `tfviz._arguments`. How an
object is stored and copied does not count either: `__reduce__`, `__getstate__`. This holds for
results; what was *proven* rests on the whole text of a piece: `Source(whole=True)`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import tfviz
from tfviz._renamed import today

Chain = tuple[str, ...]
"""A name with attributes as it stands in the code: `patterns.strided` → ("patterns", "strided")."""

PACKAGES = ("tfviz", "tfviz_lab")
"""What is read; all that stands elsewhere is taken as it is."""

WRAPPERS = {"abstractmethod", "cache", "cached_property", "classmethod", "contextmanager"}
WRAPPERS |= {"dataclass", "final", "fixture", "inference_mode", "lru_cache", "no_grad", "overload"}
WRAPPERS |= {"override", "parametrize", "property", "setter", "staticmethod", "wraps"}
WRAPPERS |= {"begun_alone", "each_text_alone", "encoded_alone", "named", "written_alone"}
"""Decorators that hand a function to nobody: it is called by its name."""

PLAIN = {"object", "ABC", "Generic", "Protocol", "NamedTuple", "TypedDict", "Module", "Exception"}
"""Bases from elsewhere that call methods by names which they have themselves."""

STORED = {"__reduce__", "__getstate__", "__setstate__", "__deepcopy__"}
"""Methods that say how an object is stored and copied: the copy is the same object."""

CHECKS = ("tfviz._arguments", "tfviz.models.padding")
"""Modules whose functions return their second argument, or raise. Their decorators hand on every
call that was right without them: one without padding."""


class Source:
    """The source as it is now; made anew to see it as it is later. `root` holds the packages.

    With `whole`, the digest of a piece is that of its whole text, and what is found by other ways
    than its name is reached as well: a module whose name is said, a name that a package hands out.
    `read` makes a module of its name and its text, and may remember it; it reads what is whole.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        packages: Sequence[str] = PACKAGES,
        beside: Sequence[Path] = (),
        whole: bool = False,
        read: Callable[[str, str], Module] | None = None,
    ) -> None:
        self.root = root or Path(tfviz.__path__[0]).parent
        self.packages, self.whole = packages, whole
        self.read = read
        self.folders = (self.root, *beside)
        self._rooms: dict[str, list[str]] = {}
        self._homes: dict[tuple[str, Chain], list[tuple[Module, str, Chain]]] = {}
        self._reached: dict[tuple[Path, frozenset[str], tuple[str, ...]], dict[str, str]] = {}
        self._modules: dict[str, Module | None] = {}

    def pieces(
        self, experiment: ModuleType | Path, config: Any = None, of: Iterable[str] = ()
    ) -> dict[str, str]:
        """{name of a piece: digest of its code} of all that `measure` may execute.

        `experiment` is a module, or the path of its file; `config` the configuration of a run. `of`
        names what `measure` finds in another way than by its name in the code: modules,
        "tfviz.longer_context.alibi", or names in them, "tfviz.longer_context.alibi:alibi".

        Raises ValueError if `of` names what tfviz has not.
        """
        if isinstance(experiment, Path):
            name, file = f"tfviz_lab.{experiment.stem}", experiment
        else:
            name, file = experiment.__name__, Path(str(experiment.__file__))
        question = file, frozenset(_strings(config)), tuple(of)
        if question not in self._reached:
            reached = _Reached(self, set(question[1]))
            reached.bound(self.parsed(name, file), "measure", looked_up=False)
            for wanted in of:
                module, _, piece = wanted.partition(":")
                home = self.module(module)
                names = [piece] if piece else list(home.bound) if home else []
                if home is None or not set(names) <= home.bound.keys():
                    raise ValueError(f"of = {wanted!r} is nothing in tfviz; correct the Run")
                for each in names:
                    reached.bound(home, each, looked_up=False)
            reached.settle()
            digests = {label: piece.digest for label, piece in reached.pieces.items()}
            self._reached[question] = dict(sorted(digests.items()))
        return self._reached[question]

    def reached(self, text: str, name: str = "_") -> tuple[dict[str, str], frozenset[str]]:
        """{name of a piece: digest} of all that this source may execute, and all that it says."""
        root = self.read(name, text) if self.read else read_module(name, text, self.whole)
        reached = _Reached(self, set())
        reached.load(root)
        for bound in root.bound:
            reached.bound(root, bound, looked_up=False)
        for target in (*root.imports.values(), *root.stars):
            reached.named(target)
        reached.settle()
        digests = {label: piece.digest for label, piece in reached.pieces.items()}
        return dict(sorted(digests.items())), frozenset(reached.said)

    def module(self, name: str) -> Module | None:
        """A module of the packages by its name in full, None if there is none."""
        if name not in self._modules:
            file = self.file(name)
            self._modules[name] = self.parsed(name, file) if file else None
        return self._modules[name]

    def parsed(self, name: str, file: Path) -> Module:
        if self.read:
            return self.read(name, file.read_text(encoding="utf-8"))
        return _parsed(name, file, self.whole)

    def file(self, name: str) -> Path | None:
        """Where a module of the packages stands."""
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        if self.packages and parts[0] not in self.packages:
            return None
        for folder in self.folders:
            place = folder.joinpath(*parts)
            for file in (place / "__init__.py", place.with_suffix(".py")):
                if file.is_file():
                    return file
        return None

    def handed_out(self, package: str, name: str) -> Iterator[tuple[Module, str]]:
        """What the `__getattr__` of a package hands out by a name, of before or of today: the
        modules below it that bind the name, and with "" those that are called so."""
        if package not in self._rooms:
            file = self.file(package)
            package_file = file is not None and file.name == "__init__.py"
            below = sorted(file.parent.rglob("*.py")) if file and package_file else []
            self._rooms[package] = [
                ".".join((package, *x.relative_to(x.parents[-1]).parts[-n:])).removesuffix(".py")
                for x in below
                if file and (n := len(x.parts) - len(file.parts) + 1)
            ]
        names = sorted(today(name))
        for dotted in self._rooms[package]:
            module = self.module(dotted)
            if module is not None:
                called = dotted.rpartition(".")[2]
                for known in names:
                    if known in module.bound:
                        yield module, known
                    if known == called:
                        yield module, ""

    def homes(self, home: Module, chain: Chain) -> list[tuple[Module, str, Chain]]:
        """`_homes`, found once for a module of the packages."""
        if self.module(home.name) is not home:
            return list(_homes(self, home, chain))
        question = home.name, chain
        if question not in self._homes:
            self._homes[question] = list(_homes(self, home, chain))
        return self._homes[question]


def anywhere(pieces: Mapping[str, str]) -> dict[str, str]:
    """{piece: what it is called, and its digest}, wherever it stands: a move changes no number."""
    names = {piece: piece.partition(":")[2] for piece in pieces}
    rows = {piece: name[name.index("[") :] for piece, name in names.items() if "[" in name}
    return {piece: f"{rows.get(piece, names[piece])} {digest}" for piece, digest in pieces.items()}


def _strings(value: Any) -> Iterator[str]:
    """Every text in a configuration, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _strings(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)


# --- pieces of a module ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Some code, and what it says."""

    digest: str
    uses: frozenset[Chain]
    looks_up: frozenset[Chain]
    """Names that are only used as `name[…]`, `(name | name)[…]` and `… in name`."""
    said: frozenset[str]
    """Attributes and texts."""


@dataclass(frozen=True)
class Table:
    rows: Mapping[str, Piece]


@dataclass(frozen=True)
class Class:
    body: Piece
    methods: Mapping[str, list[Piece]]
    bases: tuple[Chain, ...]
    handed: frozenset[str] = frozenset()
    """Methods that a decorator hands to somebody, who may call them."""


@dataclass
class Module:
    name: str
    bound: dict[str, list[Piece | Table | Class]] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    """{name here: name in full}, from anywhere in the module."""
    stars: list[str] = field(default_factory=list)
    """Modules of which all names are imported."""
    public: list[str] | None = None
    """What `__all__` lists and `import *` takes; None if no list is written out."""
    effects: list[Piece] = field(default_factory=list)
    """Statements that bind no name and are executed when the module is loaded."""
    skeleton: Piece | None = None
    """All that is executed when it is loaded, whether somebody names it or not."""
    loads: list[str] = field(default_factory=list)
    """What is imported then."""
    handed: list[str] = field(default_factory=list)
    """Functions that a decorator hands to somebody, who may call them."""


def _parsed(name: str, file: Path, whole: bool = False) -> Module:
    state = file.stat()
    return _parsed_once(name, file, state.st_mtime_ns, state.st_size, whole)


@lru_cache(maxsize=5000)
def _parsed_once(name: str, path: Path, mtime_ns: int, size: int, whole: bool) -> Module:
    return read_module(name, path.read_text(encoding="utf-8"), whole)


def read_module(name: str, text: str, whole: bool) -> Module:
    """A module by its name and its text; `whole` as in `Source`."""
    module, tree = Module(name), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.split(".")[0]
                module.imports[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if alias.name == "*":
                    module.stars.append(node.module)
                else:
                    module.imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    constants = {
        name: statement.value.value
        for statement in tree.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for name in _binds(statement)
    }
    lines = text.splitlines() if whole else None
    if whole:
        skeleton = _Skeleton()
        module.skeleton = _alone(skeleton.visit(ast.parse(text)))
        module.loads = skeleton.loads
    body = tree.body if whole else _essential(tree, module.imports).body
    for statement in body:
        names = _binds(statement)
        if names == {"__all__"} and isinstance(statement, ast.Assign):
            module.public = _literal(statement.value)
            continue
        made = _made(statement, constants, lines)
        for bound in names:
            module.bound.setdefault(bound, []).append(made)
        module.handed += sorted(names) if _is_handed(statement) else []
        if not names and isinstance(made, Piece) and not _is_import_or_main(statement):
            module.effects.append(made)
    return module


def _made(
    statement: ast.stmt, constants: Mapping[str, Any], lines: Sequence[str] | None
) -> Piece | Table | Class:
    """`lines` are those of the module if the whole text of a piece counts."""
    if isinstance(statement, ast.ClassDef):
        functions = [
            x for x in statement.body if isinstance(x, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        methods: dict[str, list[Piece]] = {}
        for function in functions:
            methods.setdefault(function.name, []).append(_piece(function, lines))
        rest = [x for x in statement.body if x not in functions]
        bases = tuple(chain for base in statement.bases if (chain := _chain(_plain(base))))
        body = ast.ClassDef(
            statement.name, statement.bases, statement.keywords, rest, statement.decorator_list
        )
        names = sorted(methods)  # a method that is new may stand before one of a base
        without = None
        if lines is not None:
            head = ast.Pass(lineno=statement.lineno, end_lineno=statement.body[0].lineno - 1)
            decorated = [*statement.decorator_list, head, *rest]
            without = [line for x in decorated for line in _lines(x, lines)]
        more = names if lines is not None else []
        handed = frozenset(x.name for x in functions if _is_handed(x))
        return Class(_piece(body, without, *more), methods, bases, handed)
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
        keys = [_key(key, constants) for key in statement.value.keys]
        if keys and None not in keys and len(_binds(statement)) == 1:
            rows = zip(keys, statement.value.values, strict=True)
            return Table({str(key): _piece(value, lines) for key, value in rows})
    return _piece(statement, lines)


def _is_handed(node: ast.AST) -> bool:
    for decorator in getattr(node, "decorator_list", ()):
        chain = _chain(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if chain is None or chain[-1] not in WRAPPERS:
            return True
    return False


def _lines(node: ast.AST, lines: Sequence[str] | None) -> Sequence[str]:
    """The lines of a statement, with those of its decorators."""
    first = min([node.lineno, *(x.lineno for x in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
    return (lines or ())[first - 1 : node.end_lineno]  # type: ignore[attr-defined]


def _key(node: ast.expr | None, constants: Mapping[str, Any]) -> str | None:
    """The text of a key, written out or by the name of a constant."""
    value = constants.get(node.id) if isinstance(node, ast.Name) else None
    value = node.value if isinstance(node, ast.Constant) else value
    return value if isinstance(value, str) else None


def _literal(node: ast.expr) -> Any:
    """The value of what is written out, None of anything else."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _binds(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module binds, or whose value it changes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    nodes = list(ast.walk(statement))
    own = {id(x) for node in nodes if isinstance(node, ast.comprehension) for x in ast.walk(node)}
    names = {x.name for x in nodes if isinstance(x, ast.FunctionDef | ast.ClassDef)}
    for node in nodes:
        stored = isinstance(getattr(node, "ctx", None), ast.Store) and id(node) not in own
        while stored and isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        if stored and isinstance(node, ast.Name):
            names.add(node.id)
    return names


def _is_import_or_main(statement: ast.stmt) -> bool:
    main = isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test)
    return main or isinstance(statement, ast.Import | ast.ImportFrom)


# --- what counts of a piece -----------------------------------------------------------------------


class _Skeleton(ast.NodeTransformer):
    """A module without what its functions do, and what is imported when it is loaded."""

    def __init__(self) -> None:
        self.loads: list[str] = []

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        node.body = []
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []  # what a package offers without loading it
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST:
        self.loads += [alias.name for alias in node.names]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.module and not node.level:
            self.loads += [f"{node.module}.{alias.name}" for alias in node.names]
        return node


def _alone(node: ast.AST) -> Piece:
    """A piece that reaches nothing."""
    text = json.dumps(_content(node)).encode()
    return Piece(hashlib.sha256(text).hexdigest()[:12], frozenset(), frozenset(), frozenset())


class _Essential(ast.NodeTransformer):
    """Without what changes no number: docstrings, annotations, refusals, casts."""

    def __init__(self, checks: set[str]) -> None:
        self.checks = checks

    def is_check(self, node: ast.AST) -> bool:
        """`_arguments.integer("n", n, 1)`, or `integer("n", n, 1)` if it is imported from there."""
        return isinstance(node, ast.Call) and self.is_checking(node.func)

    def is_checking(self, name: ast.AST) -> bool:
        chain = _chain(name)
        return chain is not None and chain[0] in self.checks

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        decorators = [x for x in node.decorator_list if not self.is_checking(x)]
        node.decorator_list = decorators
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:  # the field of a dataclass
            return ast.Expr(node.target)
        return self.visit_Assign(ast.Assign([node.target], node.value))

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        same = [ast.unparse(target) == ast.unparse(node.value) for target in node.targets]
        return None if all(same) else node  # n = integer("n", n) is n = n by now

    def visit_Expr(self, node: ast.Expr) -> Any:
        checked = self.is_check(node.value)
        self.generic_visit(node)
        return None if checked or isinstance(node.value, ast.Constant) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        cast = isinstance(node.func, ast.Name) and node.func.id == "cast"
        return node.args[1] if (cast or self.is_check(node)) and len(node.args) > 1 else node

    def visit_Assert(self, node: ast.Assert) -> None:
        return None

    def visit_If(self, node: ast.If) -> Any:
        refuses = all(isinstance(x, ast.Raise) for x in node.body)
        binds = any(isinstance(x, ast.NamedExpr) for x in ast.walk(node.test))
        self.generic_visit(node)
        return None if refuses and not node.orelse and not binds else node


def _essential(tree: ast.Module, imports: Mapping[str, str]) -> ast.Module:
    checks = {
        name
        for name, full in imports.items()
        if any(f"{full}.".startswith(f"{module}.") for module in CHECKS)
    }
    stripped = _Essential(checks).visit(tree)
    assert isinstance(stripped, ast.Module)
    return stripped


def _piece(node: ast.AST, lines: Sequence[str] | None = None, *more: str) -> Piece:
    names = _Names()
    names.visit(node)
    content = _content(node)
    if lines is not None:
        text = _lines(node, lines) if hasattr(node, "lineno") else lines
        content = [content, *text, *more]
    return Piece(
        hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12],
        frozenset(names.uses),
        frozenset(names.looks_up),
        frozenset(names.said),
    )


def _content(node: Any) -> Any:
    """The tree as JSON: what a version of Python writes as None or as an empty list is left out."""
    if isinstance(node, list):
        return [_content(x) for x in node]
    if not isinstance(node, ast.AST):
        return [type(node).__name__, str(node)]
    fields = {
        name: _content(value)
        for name, value in ast.iter_fields(node)
        if name not in ("ctx", "kind", "type_comment")
        and value is not None
        and (value != [] or name in ("elts", "args", "keys"))
    }
    return [type(node).__name__, fields]


class _Names(ast.NodeVisitor):
    def __init__(self) -> None:
        self.uses, self.looks_up, self.said = set[Chain](), set[Chain](), set[str]()

    def visit_Name(self, node: ast.Name) -> None:
        self.uses.add((node.id,))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.said.add(node.attr)
        chain = _chain(node)
        if chain:
            self.uses.add(chain)
            self.said.update(chain[1:])
        else:
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.said.add(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.look_up(node.value)
        self.visit(node.slice)

    def visit_Compare(self, node: ast.Compare) -> None:
        self.visit(node.left)
        for operator, value in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn):
                self.look_up(value)
            else:
                self.visit(value)

    def look_up(self, node: ast.expr) -> None:
        chain = _chain(node)
        if chain:
            self.looks_up.add(chain)
            self.said.update(chain[1:])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            self.look_up(node.left)
            self.look_up(node.right)
        else:
            self.visit(node)


def _chain(node: ast.AST | None) -> Chain | None:
    """("a", "b", "c") for a.b.c; None for what does not begin with a name."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute) and (chain := _chain(node.value)):
        return (*chain, node.attr)
    return None


def _plain(base: ast.expr) -> ast.expr:
    """Generic[T] → Generic."""
    return base.value if isinstance(base, ast.Subscript) else base


# --- what is reached ------------------------------------------------------------------------------


@dataclass
class _Reached:
    source: Source
    said: set[str]
    pieces: dict[str, Piece] = field(default_factory=dict)
    classes: dict[str, tuple[Module, Class, set[str]]] = field(default_factory=dict)
    """With the names of the methods that others call by themselves."""
    tables: dict[str, tuple[Module, Table]] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    """What was said and has been looked for among the modules."""

    def settle(self) -> None:
        """Reach methods and rows that are said, until nothing is new."""
        before = -1
        while before != len(self.pieces):
            before = len(self.pieces)
            for name, (home, kind, hooks) in list(self.classes.items()):
                handed = kind.handed if self.source.whole else frozenset()
                for method in kind.methods.keys() & (self.said | hooks | handed):
                    for n, piece in enumerate(kind.methods[method]):
                        self.piece(home, _numbered(f"{name}.{method}", n), piece)
            for words in self.said - self.modules if self.source.whole else ():
                self.modules.add(words)
                if "." not in words:
                    continue
                if (module := self.source.module(words)) is None:
                    self.named(words)
                else:
                    self.load(module)
                    for name in module.bound:
                        self.bound(module, name, looked_up=False)
            for name, (home, table) in list(self.tables.items()):
                # a table of which no key is said is read in a way that is not understood here
                said = set() if self.source.whole else table.rows.keys() & self.said
                for key in said or table.rows.keys():
                    self.piece(home, f"{name}[{key}]", table.rows[key])

    def piece(self, home: Module, name: str, piece: Piece) -> None:
        if name not in self.pieces:
            self.pieces[name] = piece
            self.said |= piece.said
            for chain in piece.uses:
                self.name(home, chain, looked_up=False)
            for chain in piece.looks_up:
                self.name(home, chain, looked_up=True)

    def name(self, home: Module, chain: Chain, looked_up: bool) -> None:
        """Reach what a name, with attributes, stands for in a module."""
        for module, name, rest in self.source.homes(home, chain):
            self.load(module)
            if name:
                self.bound(module, name, looked_up and not rest)

    def named(self, target: str) -> None:
        """Reach a module by its name, or what an import takes from one."""
        if (module := self.source.module(target)) is not None:
            self.load(module)
            return
        home, _, name = target.rpartition(".")
        if (module := self.source.module(home) if home else None) is not None:
            self.name(Module("", imports={name: target}), (name,), looked_up=False)

    def load(self, module: Module) -> None:
        if module.name not in self.loaded:
            self.loaded.add(module.name)
            for n, piece in enumerate(module.effects):
                self.piece(module, f"{module.name}:effect {n + 1}", piece)
            if self.source.whole and module.skeleton:
                self.pieces[f"{module.name}:"] = module.skeleton
                for name in module.handed:
                    self.bound(module, name, looked_up=False)
                # importing a module runs the packages above it, and what it imports
                for target in (module.name.rpartition(".")[0], *module.loads):
                    names = target.split(".")
                    for n in range(len(names), 0, -1):
                        found = self.source.module(".".join(names[:n]))
                        if found is not None:
                            self.load(found)
                            break

    def bound(self, home: Module, name: str, looked_up: bool) -> None:
        label = f"{home.name}:{name}"
        for n, value in enumerate(home.bound.get(name, [])):
            if isinstance(value, Class):
                if label not in self.classes:
                    self.classes[label] = home, value, _hooks(self.source, home, value)
                    self.piece(home, _numbered(label, n), value.body)
            elif isinstance(value, Piece):
                self.piece(home, _numbered(label, n), value)
            elif looked_up:
                self.tables[label] = home, value
            else:
                for key, row in value.rows.items():
                    self.piece(home, f"{label}[{key}]", row)


def _numbered(name: str, n: int) -> str:
    """What is bound more than once has numbers from the second on."""
    return f"{name} {n + 1}" if n else name


def _homes(source: Source, home: Module, chain: Chain) -> Iterator[tuple[Module, str, Chain]]:
    """(module of the packages, name bound there, attributes that are left), through all imports.

    The name is "" for a module that is only passed through. Nothing for what is not of tfviz.
    """
    first, *rest = chain
    if home.name in CHECKS and not source.whole:
        return
    if first in home.bound:
        yield home, first, tuple(rest)
    elif first in home.imports:
        path = [*home.imports[first].split("."), *rest]
        # the longest beginning that is a module; the next part is a name in it
        for n in range(len(path), 0, -1):
            module = source.module(".".join(path[:n]))
            if module is not None:
                yield module, "", ()
                if n < len(path) and module is not home:
                    yield from _homes(source, module, tuple(path[n:]))
                return
    else:
        for star in home.stars:
            module = source.module(star)
            if module is not None and first in (
                module.bound | module.imports if module.public is None else module.public
            ):
                yield module, "", ()
                yield from _homes(source, module, chain)
                return
        if source.whole and "__getattr__" in home.bound:
            yield home, "__getattr__", ()
            for module, name in source.handed_out(home.name, first):
                yield module, name, tuple(rest) if name else ()
                if rest and not name and module is not home:
                    yield from _homes(source, module, tuple(rest))


def _hooks(source: Source, home: Module, kind: Class) -> set[str]:
    """Methods that Python calls, and those that bases from elsewhere have and may call."""
    names = {x for x in kind.methods if x.startswith("__") and x.endswith("__")}
    names -= set() if source.whole else STORED
    for base in kind.bases:
        for module, name, _ in source.homes(home, base):
            for value in module.bound.get(name, []):
                if isinstance(value, Class):
                    names |= _hooks(source, module, value)
        target = home.imports.get(base[0], f"builtins.{base[0]}")
        inside = source.module(target.split(".")[0]) if source.whole else None
        known = inside is not None or target.split(".")[0] in PACKAGES
        if not known and base[0] not in home.bound:
            above, _, last = ".".join((target, *base[1:])).rpartition(".")
            if source.whole and last not in PLAIN:  # a printer or a visitor puts names together
                return set(kind.methods)
            names |= set(dir(getattr(importlib.import_module(above), last))) - STORED
    return names


def labels(name: str, text: str) -> dict[str, str]:
    """{piece: digest of its whole text} of all that stands in a module, reached or not."""
    try:
        module = read_module(name, text, whole=True)
    except (SyntaxError, ValueError):  # then all is another text
        return {f"{name}:": hashlib.sha256(text.encode()).hexdigest()[:12]}
    found = {f"{name}:": module.skeleton.digest} if module.skeleton else {}
    for n, piece in enumerate(module.effects):
        found[f"{name}:effect {n + 1}"] = piece.digest
    for bound, values in module.bound.items():
        for n, value in enumerate(values):
            label = _numbered(f"{name}:{bound}", n)
            if isinstance(value, Piece):
                found[label] = value.digest
            elif isinstance(value, Table):
                for key, row in value.rows.items():
                    found[f"{name}:{bound}[{key}]"] = row.digest
            else:
                found[label] = value.body.digest
                for method, pieces in value.methods.items():
                    for k, piece in enumerate(pieces):
                        found[_numbered(f"{name}:{bound}.{method}", k)] = piece.digest
    return found
