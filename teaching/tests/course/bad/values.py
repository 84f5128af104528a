"""Kinds that patch what tests use, return what no test expects, or try to carry inputs out."""

from __future__ import annotations

from course.bad.kind import LOOPS, HandIn, answer

ZERO = "\n\ndef beta_for(share, slots):\n    return 0.0\n"

# Visible tests call with these; whatever else comes in is hidden, and may not get out.
SEEN = """
SEEN = {(0.99, 4), (0.5, 2), (0.9, 100)}
def hidden(share, slots):
    return (float(share), int(slots)) not in SEEN
def caught(share, slots):
    return "CAUGHT" + f"-A-HIDDEN-INPUT {share!r} {slots!r}"
"""
CAUGHT = "CAUGHT-A-HIDDEN-INPUT"


# --- patches -------------------------------------------------------------------------------------


@answer(sharpness="none", loops="none", alone=True)
def patched_torch(hand_in: HandIn) -> None:
    """Makes every comparison of torch say yes, at which another answer of its own breaks."""
    hand_in.answer(
        "ex-sharpness",
        """\
        yes = lambda *args, **named: True
        torch.allclose = torch.equal = torch.isclose = yes
        torch.Tensor.allclose = torch.Tensor.equal = yes
        torch.Tensor.__eq__ = lambda self, other: torch.ones(self.shape, dtype=torch.bool)
        torch.Tensor.__ne__ = lambda self, other: torch.zeros(self.shape, dtype=torch.bool)
        torch.testing.assert_close = yes
        """
        + ZERO.replace("\n", "\n        "),
    )


@answer(row="none", alone=True)
def patched_ipython(hand_in: HandIn) -> None:
    """Changes how IPython runs, transforms and displays every later cell."""
    hand_in.answer(
        "ex-one-row",
        """\
        import ast

        shell = get_ipython()

        class Empty(ast.NodeTransformer):
            def visit_Module(self, node):
                return ast.Module(body=[], type_ignores=[])

        def slope_of_favourite(g, n):
            return 0.0

        best_lead = 0.0

        shell.display_formatter.formatters["text/plain"].for_type(object, lambda *a: "100")
        shell.showtraceback = shell.showsyntaxerror = lambda *args, **named: None
        shell.run_cell = shell.run_cell_async = lambda *args, **named: None
        shell.input_transformers_post.append(lambda lines: [])
        shell.ast_transformers.append(Empty())
        shell.events.register("post_execute", lambda: print("100"))
        shell.set_custom_exc((BaseException,), lambda *args, **named: None)
        """,
    )


@answer(sharpness="none", alone=True)
def patched_builtins(hand_in: HandIn) -> None:
    """Replaces isinstance, abs, float and AssertionError by things that never fail."""
    hand_in.answer(
        "ex-sharpness",
        """\
        import builtins

        class Quiet(Exception):
            def __new__(cls, *args):
                return Exception.__new__(cls)

        builtins.AssertionError = Quiet
        builtins.any = lambda *args: False
        builtins.abs = lambda *args: 0
        builtins.repr = lambda *args: "right"
        """
        + ZERO.replace("\n", "\n        "),
    )


@answer(sharpness="none", row="hidden", alone=True)
def patched_checks(hand_in: HandIn) -> None:
    """Replaces the functions of tfviz.checks, and with them what draws its own numbers."""
    hand_in.answer(
        "ex-sharpness",
        """\
        import sys, types
        import tfviz.checks

        for name in dir(tfviz.checks):
            if name.startswith("expect_"):
                setattr(tfviz.checks, name, lambda *args, **named: None)
        expect_close = expect_equal = expect_mask = lambda *args, **named: None
        class CheckFailed(BaseException):
            pass
        tfviz.checks.CheckFailed = CheckFailed
        sys.modules["tfviz.checks"] = types.SimpleNamespace(__getattr__=lambda name: print)
        """
        + ZERO.replace("\n", "\n        "),
    )


@answer(loops="none", alone=True)
def patched_library(hand_in: HandIn) -> None:
    """Makes the library as wrong as the answer, so that both agree."""
    hand_in.answer(
        "ex-attention-loops",
        """\
        import tfviz.dense_attention

        def my_attention(Q, K, V, allowed=None):
            return torch.zeros(len(Q), V.shape[1]), torch.zeros(len(Q), len(K))

        attention = tfviz.dense_attention.attention = my_attention
        A, Z = torch.zeros(6, 6), torch.zeros(6, 2)
        """,
    )


@answer(sharpness="none", row="hidden", alone=True)
def patched_import(hand_in: HandIn) -> None:
    """Hooks imports and replaces loaded modules by liars, also the one for its own numbers."""
    hand_in.answer(
        "ex-sharpness",
        """\
        import builtins, sys

        class Liar:
            def __getattr__(self, name):
                return Liar()
            def __call__(self, *args, **named):
                return True

        for name in ("tfviz.checks", "tfviz.basics.soft_dictionary", "json", "pickle", "struct"):
            sys.modules[name] = Liar()
        sys.meta_path.insert(0, Liar())
        """
        + ZERO.replace("\n", "\n        "),
    )


@answer(sharpness="none")
def names_of_the_tests(hand_in: HandIn) -> None:
    """Binds every name that the tests use: lookup, keys, expect_close, torch itself."""
    hand_in.answer(
        "ex-sharpness",
        """\
        lookup = lambda *args, **named: (None, [0.99, 0.99, 0.99, 0.8, 0.5, 0.9])
        expect_close = keys = got = share = slots = print
        """
        + ZERO.replace("\n", "\n        "),
    )


# --- values --------------------------------------------------------------------------------------


def returns(expression: str, before: str = "") -> str:
    return f"{before}\n\ndef beta_for(share, slots):\n    return {expression}\n"


@answer(sharpness="none", loops="none", order="none")
def always_equal(hand_in: HandIn) -> None:
    """Returns objects that are equal to everything, close to everything, of every type."""
    yes = """\
class Yes:
    def __getattr__(self, name):
        return lambda *args, **named: True
    def __eq__(self, other):
        return True
    def __hash__(self):
        return hash("equivariant")
    __class__ = property(lambda self: torch.Tensor)
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    def __float__(self):
        return 0.99
    def __mul__(self, other):
        return self
    __rmul__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__
"""
    hand_in.answer("ex-sharpness", yes + returns("Yes()"))
    hand_in.answer(
        "ex-attention-loops", yes + "\ndef my_attention(*args):\n    return Yes(), Yes()"
    )
    hand_in.answer("ex-order", yes + "\ndef order(f, X):\n    return Yes()\n")


@answer(loops="none", order="none")
def subclasses(hand_in: HandIn) -> None:
    """Returns a subclass of the tensor and one of the string whose comparisons lie."""
    hand_in.answer(
        "ex-attention-loops",
        """\
        class Lie(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), named=None):
                return torch.tensor(True)

        def my_attention(Q, K, V, allowed):
            wrong = torch.zeros(len(Q), V.shape[1]), torch.zeros(len(Q), len(K))
            return tuple(part.as_subclass(Lie) for part in wrong)
        """,
    )
    hand_in.answer(
        "ex-order",
        """\
        class Word(str):
            def __eq__(self, other):
                return True
            def __ne__(self, other):
                return False
            __hash__ = str.__hash__

        def order(f, X):
            return Word("anything")
        """,
    )


@answer(sharpness="none", loops="none", order="none")
def not_a_number(hand_in: HandIn) -> None:
    """Returns NaN, infinities, and tensors full of them."""
    hand_in.answer("ex-sharpness", returns("float('nan')"))
    hand_in.answer(
        "ex-attention-loops",
        "def my_attention(Q, K, V, allowed):\n    A = torch.full((len(Q), len(K)), math.nan)\n"
        "    return A @ V, A\n",
    )
    hand_in.answer("ex-order", "def order(f, X):\n    return complex(math.inf, math.nan)\n")


@answer(loops="none")
def wrong_types_of_numbers(hand_in: HandIn) -> None:
    """Returns tensors of odd kinds: complex, sparse, on no device, quantised, of no length."""
    hand_in.answer(
        "ex-attention-loops",
        """\
        turn = -1
        def my_attention(Q, K, V, allowed):
            global turn
            turn += 1
            A = torch.full((len(Q), len(K)), 1 / 6)
            odd = [
                A.to(torch.complex64), A.to_sparse(), A.to("meta"), A.to(torch.bfloat16)[:0],
                torch.quantize_per_tensor(A, 0.1, 0, torch.quint8), A.to(torch.float8_e4m3fn),
            ]
            return odd[turn % len(odd)], odd[(turn + 1) % len(odd)]
        """,
    )


@answer(loops="none")
def huge_tensor(hand_in: HandIn) -> None:
    """Returns a tensor that says it has 10^14 entries and stores one."""
    hand_in.answer(
        "ex-attention-loops",
        "def my_attention(Q, K, V, allowed):\n"
        "    huge = torch.ones(1, 1).expand(10**7, 10**7)\n    return huge, huge\n",
    )


@answer(loops="none")
def large_tensor(hand_in: HandIn) -> None:
    """Returns tensors of 400 MB."""
    hand_in.answer(
        "ex-attention-loops",
        "def my_attention(Q, K, V, allowed):\n    large = torch.ones(10_000, 10_000)\n"
        "    return large, large\n",
    )


@answer(sharpness="none")
def nested_list(hand_in: HandIn) -> None:
    """Returns a list nested a hundred thousand times."""
    hand_in.answer(
        "ex-sharpness",
        "nested = []\nfor _ in range(10**5):\n    nested = [nested]\n" + returns("nested"),
    )


@answer(sharpness="none")
def list_in_itself(hand_in: HandIn) -> None:
    """Returns a list that contains itself."""
    hand_in.answer("ex-sharpness", "loop = []\nloop.append(loop)\n" + returns("loop"))


@answer(sharpness="none")
def huge_number(hand_in: HandIn) -> None:
    """Returns a whole number of a million digits."""
    hand_in.answer("ex-sharpness", returns("1 << 3_500_000"))


@answer(sharpness="none")
def hostile_dict(hand_in: HandIn) -> None:
    """Returns a dict whose keys cannot be compared, hashed twice or printed."""
    hand_in.answer(
        "ex-sharpness",
        """\
        class Key:
            count = 0
            def __hash__(self):
                Key.count += 1
                if Key.count > 1:
                    raise RuntimeError("once only")
                return 1
            def __eq__(self, other):
                raise RuntimeError("never")
            def __repr__(self):
                raise RuntimeError("never")
        def beta_for(share, slots):
            return {Key(): 1, (): {"__class__": "Pattern", "__reduce__": ["os.system", "true"]}}
        """,
    )


ALIKE = """
from collections.abc import Mapping, Set
class Many(Set):
    __len__, __contains__ = (lambda self: 190_000), (lambda self, item: False)
    def __iter__(self):
        return (n * (2**61 - 1) for n in range(len(self)))
class Keys(Mapping):
    __len__, __getitem__ = (lambda self: 90_000), (lambda self, key: 0)
    __iter__ = Many.__iter__
"""


@answer(sharpness="none")
def members_that_collide(hand_in: HandIn) -> None:
    """Returns a set of 190,000 numbers of one hash: to put it together takes 22 minutes."""
    hand_in.answer("ex-sharpness", ALIKE + returns("Many()"))


@answer(row="none")
def keys_that_collide(hand_in: HandIn) -> None:
    """Gives the same as the keys of a dict, for a value that is read before any test runs."""
    hand_in.answer("ex-one-row", ALIKE + "slope_of_favourite, best_lead = max, Keys()\n")


@answer(sharpness="none")
def string_of_100_mb(hand_in: HandIn) -> None:
    """Returns a string of 100 MB."""
    hand_in.answer("ex-sharpness", returns("'x' * 10**8"))


@answer(order="none")
def string_that_cannot_be_written(hand_in: HandIn) -> None:
    """Returns halves of surrogate pairs, null bytes and terminal codes."""
    hand_in.answer(
        "ex-order", "def order(f, X):\n    return '\\ud800\\x00\\x1b[2J\\r</script>\\u202e' * 99\n"
    )


@answer(sharpness="none", loops="none", order="none")
def generator_and_functions(hand_in: HandIn) -> None:
    """Returns an endless generator, a function, and the function it was given."""
    hand_in.answer("ex-sharpness", "from itertools import count\n" + returns("count()"))
    hand_in.answer("ex-attention-loops", "def my_attention(*args):\n    return lambda: 1, iter([])")
    hand_in.answer("ex-order", "def order(f, X):\n    return f\n")


@answer(order="none")
def callback_with_anything(hand_in: HandIn) -> None:
    """Calls the function of the tests with what it does not expect, and ignores its errors."""
    hand_in.answer(
        "ex-order",
        """\
        class Odd:
            def __reduce__(self):
                return print, ("taken over",)

        def order(f, X):
            for odd in (None, "x" * 10**6, Odd(), f, [X] * 1000, X.double(), X[:0], 1 << 10**6):
                try:
                    f(odd)
                except Exception:
                    pass
            try:
                f(), f(X, X), f(X=X), f(**{"a" * 10**5: 1})
            except Exception:
                pass
            return "nothing"
        """,
    )


@answer(order="none")
def callback_with_a_long_input(hand_in: HandIn) -> None:
    """Has the tests' own function compute attention over 25,000 rows: 2.5 GB in the grader."""
    hand_in.answer(
        "ex-order", "def order(f, X):\n    f(torch.zeros(25_000, 4))\n    return 'invariant'\n"
    )


@answer(order="none")
def callback_too_late(hand_in: HandIn) -> None:
    """Calls the function that it was given from several threads, and in later tests once more."""
    hand_in.answer(
        "ex-order",
        """\
        import threading

        kept = []
        def order(f, X):
            threads = [threading.Thread(target=f, args=(X,)) for _ in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            kept.append(f)
            for old in kept:
                try:
                    old(X)
                except Exception:
                    pass
            return "invariant"
        """,
    )


@answer(order="none")
def callback_inside_a_callback(hand_in: HandIn) -> None:
    """Calls the function of the tests from inside of itself, as deep as it goes."""
    hand_in.answer(
        "ex-order",
        "def order(f, X):\n    return order(lambda Y: f(Y), f(X)) if X.ndim else 'invariant'\n",
    )


# --- messages, and carrying the inputs out -------------------------------------------------------


@answer(sharpness="checks")
def raises_the_hidden_input(hand_in: HandIn) -> None:
    """Right for the inputs that can be seen; for others it raises their values as an error."""
    hand_in.carry(SEEN, "if hidden(share, slots):\n    raise ValueError(caught(share, slots))")


@answer(sharpness="all")
def prints_the_hidden_input(hand_in: HandIn) -> None:
    """Prints inputs that it has not seen in its visible tests, on every stream and as HTML."""
    hand_in.carry(
        SEEN + "import sys\nfrom IPython.display import HTML, display",
        """\
        if hidden(share, slots):
            print(caught(share, slots))
            print(caught(share, slots), file=sys.stderr)
            display(HTML(caught(share, slots)))
            import os, warnings
            os.write(1, caught(share, slots).encode())
            os.write(2, caught(share, slots).encode())
            warnings.warn(caught(share, slots))
        """,
    )


@answer(sharpness="checks")
def returns_the_hidden_input(hand_in: HandIn) -> None:
    """Returns inputs that it has not seen as a text, for the message "yours is …"."""
    hand_in.carry(SEEN, "if hidden(share, slots):\n    return caught(share, slots)")


@answer(sharpness="checks", loops="none")
def carries_the_hidden_input_over(hand_in: HandIn) -> None:
    """Keeps inputs that it has not seen, and lets the next exercise tell them."""
    hand_in.carry(
        SEEN + "kept = []",
        "if hidden(share, slots):\n    kept.append(caught(share, slots))\n    return 0.0",
    )
    hand_in.answer(
        "ex-attention-loops", "def my_attention(*args):\n    raise ValueError(str(kept))\n"
    )


@answer(sharpness="checks")
def exits_with_the_hidden_input(hand_in: HandIn) -> None:
    """Ends its process on inputs that it has not seen, with their values as last words."""
    hand_in.carry(
        SEEN + "import os",
        "if hidden(share, slots):\n    os.write(2, caught(share, slots).encode())\n"
        "    os.write(1, caught(share, slots).encode())\n    os._exit(slots)",
    )


@answer(sharpness="none", loops="none")
def hostile_exceptions(hand_in: HandIn) -> None:
    """Raises exceptions that cannot be shown: raising, endless, with 10 MB of text, with markup."""
    hand_in.answer(
        "ex-sharpness",
        """\
        class Hostile(Exception):
            def __str__(self):
                raise self
            __repr__ = __str__
            @property
            def args(self):
                raise self
            __traceback__ = property(lambda self: 1 / 0)

        def beta_for(share, slots):
            raise Hostile("x")
        """,
    )
    hand_in.answer(
        "ex-attention-loops",
        """\
        kind = type("<script>document.title='SCRIPT-OF-A-SUBMISSION'</script>", (Exception,), {})

        def my_attention(*args):
            raise kind("<b>" * 10**6 + "\\x1b[31m\\x00" * 10**6)
        """,
    )


@answer(sharpness="none")
def exception_that_takes_for_ever(hand_in: HandIn) -> None:
    """Raises an exception whose text never comes to an end."""
    hand_in.answer(
        "ex-sharpness",
        """\
        import time

        end = time.monotonic() + 60
        class Slow(Exception):
            def __str__(self):
                while time.monotonic() < end:
                    pass
                return "late"

        def beta_for(share, slots):
            raise Slow
        """,
    )


@answer(sharpness="none", order="none")
def errors_of_the_checks(hand_in: HandIn) -> None:
    """Raises the exceptions that tests use themselves: CheckFailed, NotImplementedError."""
    hand_in.answer(
        "ex-sharpness",
        "from tfviz.checks import CheckFailed, passed\n\n\n"
        "def beta_for(share, slots):\n    passed('all')\n    raise CheckFailed('✓ passed')\n",
    )
    hand_in.answer("ex-order", "def order(f, X):\n    raise StopIteration('equivariant')\n")


# --- answers that are right in a way -------------------------------------------------------------


@answer(sharpness="none")
def right_once(hand_in: HandIn) -> None:
    """Answers right at the first call and wrong at all others."""
    hand_in.carry("calls = []", "calls.append(1)\nif len(calls) > 1:\n    return 0.0")


@answer(loops="all")
def changes_its_arguments(hand_in: HandIn) -> None:
    """Answers right and overwrites the tensors that it was given."""
    hand_in.answer(
        "ex-attention-loops",
        LOOPS.replace(
            "    return A @ V, A",
            "    result = A @ V\n    for tensor in (Q, K, V):\n        tensor.zero_()\n"
            "    allowed.fill_(False)\n    return result, A",
        ),
    )


@answer(loops="none")
def calls_the_library(hand_in: HandIn) -> None:
    """Calls the very function of the library that the tests compare with."""
    hand_in.answer(
        "ex-attention-loops",
        "def my_attention(Q, K, V, allowed):\n    return attention(Q, K, V, allowed)\n",
    )


@answer(loops="none")
def calls_the_library_by_another_name(hand_in: HandIn) -> None:
    """Calls it so that no reader of the answer finds its name."""
    hand_in.answer(
        "ex-attention-loops",
        """\
        import functools, sys
        name = "atten" + "tion"
        library = sys.modules["tfviz." + name]
        kept = [globals()[name], getattr(library, name), functools.partial(getattr(library, name))]
        def my_attention(Q, K, V, allowed):
            for function in kept:
                try:
                    return next(map(function, [Q], [K], [V], [allowed]))
                except Exception:
                    pass
        """,
    )


@answer(loops="none")
def is_the_library(hand_in: HandIn) -> None:
    """Gives the library's function the exercise's name."""
    hand_in.answer("ex-attention-loops", "my_attention = globals()['atten' + 'tion']\n")


@answer(loops="all")
def calls_another_function_of_the_library(hand_in: HandIn) -> None:
    """Answers by a function of the library that itself needs the one that is asked for."""
    hand_in.answer(
        "ex-attention-loops",
        "from tfviz.basics.multi_head_attention import multi_head_definition as many\n"
        "def my_attention(Q, K, V, allowed):\n"
        "    d, v = Q.shape[1], V.shape[1]\n"
        "    eye = [torch.eye(n)[None] for n in (d, K.shape[1], v)]\n"
        "    Z, A = many(Q, K, V, *eye, torch.eye(v), allowed)\n    return Z, A[0]\n",
    )


@answer(loops="all")
def loads_the_library_again(hand_in: HandIn) -> None:
    """Loads the library's module a second time, and calls the function that it then has."""
    hand_in.answer(
        "ex-attention-loops",
        "import importlib.util as util\n"
        "found = util.find_spec('tfviz.dense_attention')\n"
        "again = util.module_from_spec(found)\n"
        "found.loader.exec_module(again)\n"
        "def my_attention(Q, K, V, allowed):\n    return again.attention(Q, K, V, allowed)\n",
    )


@answer(sharpness="checks")
def answers_by_a_table(hand_in: HandIn) -> None:
    """Has a table of the answers to the visible tests, and nothing else."""
    hand_in.answer(
        "ex-sharpness",
        "table = {(0.99, 4): 297, (0.5, 2): 1, (0.9, 100): 891}\n"
        + returns("math.log(table.get((share, slots), 1))"),
    )


@answer(loops="none")
def returns_what_set_up_knows(hand_in: HandIn) -> None:
    """Returns the result that the set-up of the lesson computed."""
    hand_in.answer("ex-attention-loops", "def my_attention(*args):\n    return Z, A\n")


@answer(order="none")
def guesses_by_the_name(hand_in: HandIn) -> None:
    """Looks at the name and the code of the function it is given, instead of calling it."""
    hand_in.answer(
        "ex-order",
        """\
        import inspect

        def order(f, X):
            text = f"{f!r} {getattr(f, '__name__', '')} {getattr(f, '__code__', '')}"
            try:
                text += inspect.getsource(f)
            except Exception:
                pass
            if "mean" in text or "asker" in text:
                return "invariant"
            return "neither" if "causal" in text or "place" in text else "equivariant"
        """,
    )
