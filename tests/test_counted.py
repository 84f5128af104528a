"""The page counts public models as the library does: `scripts/javascript.py` writes its JavaScript
from `tfviz/anatomy`, and V8 alone runs it here beside the Python, on every model, on configurations
of every family with keys changed, and on what is no configuration at all."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import javascript
import pytest
from py_mini_racer import MiniRacer
from test_anatomy import GOLDEN, LLAMA, PERIOD, TINY, tiny_config, unrolled

from tfviz import anatomy
from tfviz.anatomy import counting, stored
from tfviz.anatomy.reading import understood
from tfviz.anatomy.record import Anatomy, Total
from tfviz.explorers.base import HERE

RESTS_ON = (
    *("tfviz/anatomy/**", "tfviz/explorers/shared/*.js", "scripts/javascript.py"),
    *("tests/*.py", "tests/anatomy.json"),
)

BROKEN_LINES = {
    "tfviz/explorers/shared/python.js": [
        ("an empty list counts as something", "return x.length > 0;", "return true;"),
        ("a negative remainder stays one", "rest + number(b) : rest", "rest : rest"),
        ("the middle is rounded up", "(rest === 0.5 && modulo(below, 2) === 1)", "rest === 0.5"),
        ("64.0 is a whole number", "x instanceof Total;", "x instanceof Number;"),
        ("a union leaves the dict as it was", "map(a).set(name, x);", "map(a).has(name);"),
    ],
    "tfviz/explorers/shared/anatomy.js": [
        ("any depth will do", "if (depth > deepest)", "if (depth > Infinity)"),
    ],
}

FILES = [HERE / f"shared/{name}.js" for name in ("python", "counted", "anatomy")]
LENGTHS = (0, 1, 300, 4097, 131072, 10**6)
Bits = tuple[int, float, float, float]
BITS: list[Bits] = [(1, 16, 16, 32), (3, 8, 4, 16), (1000, 4.5, 1.6, 32)]
"""Texts at once, and the bits of a weight, of a number of a key and of one of a state."""

PAGE = """
const slip = (error) => (/ValueError|KeyError/.test(error.name) ? error.message : "slip");
const said = (count) => {
  try { return count(); } catch (error) { return { refused: slip(error) }; }
};
const bare = (_, x) => (typeof x === "number" && !Number.isFinite(x) ? `#${x}` : x);
const sent = (x) => JSON.stringify(x, bare);
const NAMES = "id name year family guess refused fields facts doubts unread assumed uses beyond";
function account(a, lengths, all_bits) {
  const counts = {};
  for (const name of [...NAMES.split(" "), "parameters", "layers"])
    counts[name] = said(() => a[name]);
  for (const [batch, bits, cache_bits, state_bits] of all_bits) {
    const named = { batch, bits, cache_bits, state_bits };
    const kept = { batch, bits: cache_bits, state_bits, source: batch };
    const memories = lengths.length > 1 ? [1e9, 24 * 2 ** 30, 80e9, 1e15] : [];
    counts[`convolutions ${bits}`] = said(() => a.convolutions({ batch, bits: cache_bits }));
    counts[`longest ${bits}`] = memories.map((m) => said(() => a.longest(m, named)));
    for (const L of lengths) {
      counts[`cache ${bits} ${L}`] = said(() => a.cache(L, kept));
      for (const phase of ["prefill", "decode"]) {
        counts[`${phase} ${bits} ${L}`] = [
          said(() => a.flops(L, { phase, batch })),
          said(() => a.bytes_moved(L, { phase, ...named })),
          said(() => a.intensity(L, { phase, ...named })),
        ];
      }
      counts[`roofline ${bits} ${L}`] = said(() => a.roofline("A100", { L, ...named }));
    }
  }
  counts.kept = a.layers.map((x) => said(() => a.cache_of(x.n, 5000)));
  return counts;
}
"""


@pytest.fixture(scope="module")
def engine() -> MiniRacer:
    return engine_of("\n".join(file.read_text("utf-8") for file in FILES))


def engine_of(script: str) -> MiniRacer:
    engine = MiniRacer()
    data = json.dumps({"models": stored.models(), "families": stored.families()})
    engine.eval(f"{script}\n{PAGE}\nconst anatomy = anatomyOf({data});")
    return engine


def page(engine: MiniRacer, code: str) -> Any:
    """What JavaScript gives, or {"refused": its sentence}."""
    return json.loads(str(engine.eval(f"sent(said(() => {code}))")))


def library(count: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """What Python gives, in the form in which `page` gives it."""
    try:
        return sent(count(*values, **named))
    except ValueError as error:
        return {"refused": error.args[0]}
    except KeyError as error:
        return {"refused": error.args[0] if "nearest" in error.args[0] else "slip"}
    except (ArithmeticError, AttributeError, LookupError, TypeError):
        return {"refused": "slip"}


def sent(x: Any) -> Any:
    if isinstance(x, Total):
        return {"total": int(x), "parts": sent(x.parts)}
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        made = {field.name: getattr(x, field.name) for field in dataclasses.fields(x)}
        return sent(made | ({"ridge": x.ridge} if isinstance(x, anatomy.Card) else {}))
    if isinstance(x, Mapping):
        return {name: sent(y) for name, y in x.items()}
    if isinstance(x, list | tuple):
        return [sent(y) for y in x]
    if isinstance(x, float) and not math.isfinite(x):
        return {math.inf: "#Infinity", -math.inf: "#-Infinity"}.get(x, "#NaN")
    return x


def layers(a: Anatomy) -> list[dict[str, Any]]:
    letters = a.fields["layers"]
    return [{**sent(x), "letter": letters[x.n], "mask": sent(x.allowed)} for x in a.layers]


def account(a: Anatomy, lengths: Sequence[int], bits: Sequence[Bits]) -> dict[str, Any]:
    """All that is said and counted of a model, with what is refused."""
    names = "id name year family guess refused fields facts doubts unread assumed uses beyond"
    counts = {name: library(getattr, a, name) for name in [*names.split(), "parameters"]}
    counts["layers"] = library(layers, a)
    for batch, b, cache_bits, state_bits in bits:
        three: dict[str, Any] = {"bits": b, "cache_bits": cache_bits, "state_bits": state_bits}
        named: dict[str, Any] = {"batch": batch, **three}
        memories = (1e9, 24 * 2**30, 80e9, 1e15) if len(lengths) > 1 else ()
        counts[f"convolutions {b}"] = library(a.convolutions, batch, cache_bits)
        counts[f"longest {b}"] = [library(a.longest, x, **named) for x in memories]
        for L in lengths:
            counts[f"cache {b} {L}"] = library(a.cache, L, batch, cache_bits, state_bits, batch)
            for phase in ("prefill", "decode"):
                counts[f"{phase} {b} {L}"] = [
                    library(a.flops, L, phase, batch),
                    library(a.bytes_moved, L, phase, **named),
                    library(a.intensity, L, phase, **named),
                ]
            counts[f"roofline {b} {L}"] = library(a.roofline, "A100", L, **named)
    each = range(len(a.layers))
    counts["kept"] = [library(lambda n: sum(counting.kept_by(a.fields, n, 5000)), n) for n in each]
    return counts


def differences(python: Any, script: Any, path: str = "") -> Iterator[str]:
    """Where two accounts differ: whole numbers to the unit as long as both languages hold them."""
    if isinstance(python, dict) and isinstance(script, dict):
        for name in python.keys() | script.keys():
            if name not in python or name not in script:
                yield f"{path}.{name} is in one of them only"
            else:
                yield from differences(python[name], script[name], f"{path}.{name}")
    elif isinstance(python, list) and isinstance(script, list) and len(python) == len(script):
        for i, (x, y) in enumerate(zip(python, script, strict=True)):
            yield from differences(x, y, f"{path}[{i}]")
    elif isinstance(python, float) or (isinstance(python, int) and abs(python) >= 2**53):
        near = isinstance(script, int | float) and math.isclose(python, script, rel_tol=1e-12)
        if not near:
            yield f"{path}: {python} and {script}"
    elif python != script or isinstance(python, bool) != isinstance(script, bool):
        yield f"{path}: {python!r:.300} and {script!r:.300}"


def same(engine: MiniRacer, code: str, a: Callable[[], Anatomy], more: bool = True) -> None:
    """Both refuse with one sentence, or give models with equal accounts."""
    lengths, bits = (LENGTHS, BITS) if more else ((4097,), BITS[1:2])
    counted = f"account({code}, {json.dumps(lengths)}, {json.dumps(bits)})"
    python = library(lambda: account(a(), lengths, bits))
    assert not list(itertools.islice(differences(python, page(engine, counted)), 5)), code[:600]


def same_text(engine: MiniRacer, text: str, more: bool = False) -> None:
    read = f"anatomy.read({json.dumps(text)})"
    same(engine, read, lambda: understood(anatomy.parsed(text)), more)


# --- the file ------------------------------------------------------------------------------------


def test_the_file_is_made_from_the_source_of_today() -> None:
    assert FILES[1].read_text("utf-8") == javascript.made(), f"run {javascript.COMMAND}"


@pytest.mark.parametrize(
    ("construct", "words"),
    [
        ("x = 1 if y else 2", "the name y"),
        ("def f(x):\n    with x:\n        return 1", "With"),
        ("def f(x):\n    return x.sort()", "Call"),
        ("def f(x):\n    return sorted(x, cmp=x)", "Call"),
        ("def f(x):\n    return zip(x, x)", "zip without strict=True"),
        ("def f(**x):\n    return 1", "such a list of arguments"),
        ("def f(x):\n    return f(**x)", "a call with **"),
        ("import re\nX = re.compile(r'\\d')", "such a regular expression"),
        ("import re\nX = re.compile(r'\\w')", "such a regular expression"),
        ("def f(x):\n    return f'{x:>9}'", "FormattedValue"),
        ("import os", "Import"),
        ("def f(x):\n    return open(x)", "the function open"),
    ],
)
def test_python_that_is_not_known_is_refused_with_its_line(
    construct: str, words: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tfviz/anatomy"
    folder.mkdir(parents=True)
    (folder / "new.py").write_text(f'"""A module."""\n\n{construct}\n')
    monkeypatch.setattr(javascript, "ROOT", tmp_path)
    monkeypatch.setattr(javascript, "MODULES", ["new"])
    with pytest.raises(
        javascript.UnknownPythonError, match=r"^tfviz/anatomy/new.py:\d+: "
    ) as error:
        javascript.Program().written()
    assert words in str(error.value)


def test_all_that_the_translation_calls_is_there(engine: MiniRacer) -> None:
    called = set(re.findall(r"\bpy\.(\w+)", FILES[1].read_text("utf-8")))
    assert called <= {*page(engine, "Object.keys(py)")} and len(called) > 50


@pytest.mark.parametrize(
    ("code", "value"),
    [
        *((f"py.modulo({a}, {b})", a % b) for a in (-7, 7, 0, -6) for b in (3, -3, 2.5)),
        *((f"py.floored({a}, {b})", a // b) for a in (-7, 7, 0, 2**53 - 1) for b in (2, -2, 3)),
        *((f"py.round({x})", round(x)) for x in (0.5, 1.5, 2.5, -0.5, -1.5, 2.4999, 7)),
        *((f"py.int({x})", int(x)) for x in (1.9, -1.9)),
        *(
            (f"py.repr({json.dumps(x)})", repr(x))
            for x in (1e-7, 1.5e-5, 0.1, 1e-4, -2.5, 123456.7)
        ),
        *(
            (f"py.repr({json.dumps(x)})", repr(x))
            for x in ("it's", 'a"b', "a'\"b", "\x07é\u2028😀")
        ),
        *((f"py.repr(new py.Float({x}))", repr(x)) for x in (64.0, 1e16, 1e15, -0.0, 1e300)),
        (
            "[[], new Map(), new Set(), '', 0, null, NaN, [0]].map(py.bool)",
            [*[False] * 6, True, True],
        ),
        ("py.list(py.range(5, -1, -2))", [5, 3, 1]),
        ("py.sorted(['b', 'B', '😀', '\uffff'])", sorted(["b", "B", "😀", "\uffff"])),
        ("py.sorted([[1, 'b'], [0, 'c'], [1, 'a']], null, true)", [[1, "b"], [1, "a"], [0, "c"]]),
        ("py.slice('😀abc', 0, 2)", "😀abc"[:2]),
        ("py.slice([1, 2, 3], -1, null)", [3]),
        ("py.min(['aa', 'b', 'c'], py.len)", "b"),
        (
            "[py.equal(true, 1), py.equal('1', 1), py.equal(new py.Float(1), 1)]",
            [True, False, True],
        ),
        ("[py.is_int(true), py.is_int(1.5), py.is_int(new py.Float(2))]", [True, False, False]),
    ],
)
def test_what_python_means(engine: MiniRacer, code: str, value: Any) -> None:
    assert page(engine, code) == value


# --- models and configurations -------------------------------------------------------------------


def test_the_models_have_the_same_names(engine: MiniRacer) -> None:
    assert page(engine, "anatomy.names()") == [*anatomy.names()]
    assert page(engine, "anatomy.names(true)") == [*anatomy.names(listed=True)]
    assert page(engine, "anatomy.CARDS") == sent(anatomy.CARDS)


@pytest.mark.parametrize("model", anatomy.names())
def test_a_model_is_counted_alike(engine: MiniRacer, model: str) -> None:
    same(engine, f"anatomy.of({json.dumps(model)})", lambda: anatomy.of(model))


@pytest.mark.parametrize("name", ["gemma-27b", "Gemma 3 27B (text)", "lama", "", "__proto__", "’"])
def test_a_name_is_found_or_refused_alike(engine: MiniRacer, name: str) -> None:
    same(engine, f"anatomy.of({json.dumps(name)})", lambda: anatomy.of(name))


def test_a_model_with_other_fields_is_counted_alike(engine: MiniRacer) -> None:
    for model in anatomy.names():
        a = anatomy.of(model)
        h = a.fields.get("attention", {}).get("heads", 1)
        changes = {
            "layers": a.fields["layers"].replace("W", "F"),
            "attention": {
                **a.fields.get("attention", {"head_width": 1}),
                "key_heads": h,
                "heads": h,
            },
        }
        code = f"anatomy.of({json.dumps(model)}).but({json.dumps(changes)})"
        same(engine, code, partial(a.but, changes), more=False)


@pytest.mark.parametrize("model", GOLDEN["read"])
def test_a_configuration_is_read_alike(engine: MiniRacer, model: str) -> None:
    config = unrolled(GOLDEN["read"][model][0])
    same_text(engine, json.dumps(config), more=True)
    same_text(engine, json.dumps({**config, "model_type": "mystery"}))
    same_text(engine, json.dumps({"text_config": config, "tie_word_embeddings": False}))


@pytest.mark.parametrize("kind", TINY)
def test_a_tiny_configuration_is_read_alike(engine: MiniRacer, kind: str) -> None:
    same_text(engine, json.dumps(tiny_config(kind)), more=True)


ODD: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, 0.5, 4.0, 1e30, math.inf, math.nan, "", "x", "auto", "2"),
    *([], [0, 1, 1, 0], [None], ["x"], PERIOD, {}, {"a": None}, {"0": {"head_dim": 8}}, [[1]]),
    {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0},
]
MORE_KEYS = (
    *("layer_types", "sliding_window", "use_sliding_window", "rope_parameters", "rope_scaling"),
    *("num_key_value_heads", "head_dim", "attention_bias", "kv_lora_rank", "per_layer_config"),
    *("num_experts", "tie_word_embeddings", "vocab_size", "dtype", "__proto__", "ssm_state_size"),
)


EVERY = int(os.environ.get("TFVIZ_EVERY_CHANGE", 43))
"""Of so many changes one is tried; of all, if this is 1."""


def changed(family: str) -> Iterator[dict[str, Any]]:
    """A small configuration of a family as its class fills it in, and with each key in turn left
    out, or holding one odd value after the other."""
    of = stored.families().get(family, {})
    keys = [*of.get("defaults", {}), *of.get("unset", ()), *MORE_KEYS]
    blocks = ("num_hidden_layers", "n_layer", "n_layers")
    small = {"model_type": family, **LLAMA, **of.get("defaults", {}), **dict.fromkeys(blocks, 4)}
    small |= {"model_type": family}
    yield small
    yield {"model_type": family}
    for key in keys:
        yield {name: x for name, x in small.items() if name != key}
        for value in ODD:
            yield {**small, key: value}


@pytest.mark.parametrize("family", [*stored.families(), "mystery"])
def test_a_family_is_read_alike_whatever_a_key_holds(engine: MiniRacer, family: str) -> None:
    start, every = sum(map(ord, family)) % EVERY, EVERY
    for config in itertools.islice(changed(family), start, None, every):
        same_text(engine, json.dumps(config))


# --- what is no configuration --------------------------------------------------------------------

GOOD = json.dumps(LLAMA)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "{", "[", "{}", "[]", "7", "null", '"llama"', "{oops", "{'a': 1}", '{"a" 1}'),
        *('{"a": }', '{"a": 1 "b": 2}', '{"a": [1 2]}', '{"a": tru}', '{"a": 01}', '{"a": +1}'),
        *('{"a": .5}', '{"a": 1.}', '{"a": 1e}', '{"a": -}', '{"a": "x', '{"a": "\\x"}'),
        *('{"a": "\\u12"}', '{"a": "tab\there"}', "{} {}", '{"a": 1}}', "{\n\n  x", "\ufeff{}"),
        *(
            '{"a": [1, 2',
            '{"a": {"b": {"c": 1}',
            "[[[",
            '{"é😀": 1, x}',
            "<html>",
            "return 1",
            "\\",
        ),
        '{"model_type": 7}',
        '{"model_type": ["llama"]}',
        '{"model_type": "llama", "hidden_size": {"a": ["it\'s", null, 1.5, -0.0, 1e-7, 1e16]}}',
        '{"model_type": "llama", "vocab_size": 64.0, "hidden_size": 1, "num_hidden_layers": 1}',
        '{"model_type": "foo", "hidden_size": "\\u0007\\u00e9\\u2028\\ud83d\\ude00\\\\"}',
        f'{{"hidden_size": 9, "hidden_size": 64, "x\\u0041\\n\\/": [], {GOOD[1:]}',
        f'{{"time_step_limit": [0.0, Infinity], "x": NaN, "y": -Infinity, {GOOD[1:]}',
        f'{{"num_hidden_layers": 1{"0" * 30}, "model_type": "llama", "hidden_size": 8}}',
        f'{{"a": 1{"0" * 5000}}}',
        f'{{"__proto__": {{"model_type": "llama", "hidden_size": 8}}, {GOOD[1:]}',
        '{"__proto__": {"model_type": "llama", "hidden_size": 8, "vocab_size": 9}}',
        '{"model_type": "__proto__", "constructor": 1}',
        '{"model_type": "constructor", "toString": {}, "hidden_size": 8}',
        f'{{"text_config": {{"__proto__": 1, "model_type": "llama"}}, {GOOD[1:]}',
        f'{{"deep": {"[" * 100}{"]" * 100}, {GOOD[1:]}',
        f'{{"deep": {"[" * 10**5}{"]" * 10**5}, {GOOD[1:]}',
        '{"a":' * 10**5,
    ],
    ids=range(54),
)
def test_what_is_no_configuration_is_refused_alike(engine: MiniRacer, text: str) -> None:
    same_text(engine, text)


def test_a_paste_that_means_harm_is_read_within_a_moment(engine: MiniRacer) -> None:
    """Ten megabytes of one text, of one name, of many names; nothing that follows is changed."""
    many = ", ".join(f'"{"router" * 9}{i}": {i}' for i in range(10**5))
    for paste in (f'"x": "{"x" * 10**7}"', f'"{"auxcoef" * 10**6}": 1', many):
        same_text(engine, f"{{{paste}, {GOOD[1:]}")
    refused = page(engine, f"anatomy.read({json.dumps('[' * 10**7)})")
    assert refused == {"refused": "config is nested too deep; paste the whole config.json"}
    assert page(engine, "({}).polluted ?? Object.keys(Object.prototype)") == []
    same_text(engine, GOOD)


def test_wrong_arguments_are_refused_alike(engine: MiniRacer) -> None:
    a = anatomy.of("llama-3.1-8b")
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("cache(-1)", lambda: a.cache(-1)),
        ("cache(1.5)", lambda: a.cache(cast(Any, 1.5))),
        ("cache('9')", lambda: a.cache(cast(Any, "9"))),
        ("cache(null)", lambda: a.cache(cast(Any, None))),
        ("cache(1, {batch: 0})", lambda: a.cache(1, 0)),
        ("cache(1, {batch: true})", lambda: a.cache(1, True)),
        ("cache(1, {bits: 0})", lambda: a.cache(1, 1, 0)),
        ("cache(1, {bits: Infinity})", lambda: a.cache(1, 1, math.inf)),
        ("convolutions({bits: -2})", lambda: a.convolutions(1, -2)),
        ("flops(9, {phase: 'train'})", lambda: a.flops(9, "train")),
        ("bytes_moved(1, {bits: -4})", lambda: a.bytes_moved(1, bits=-4)),
        ("bytes_moved(1, {cache_bits: 0})", lambda: a.bytes_moved(1, cache_bits=0)),
        ("bytes_moved(1, {state_bits: 'x'})", lambda: a.bytes_moved(1, state_bits=cast(Any, "x"))),
        ("point('decode', 'H100', {bits: -4})", lambda: a.point("decode", bits=-4)),
        ("roofline('H100', {cache_bits: 0})", lambda: a.roofline(cache_bits=0)),
        ("roofline('abacus')", lambda: a.roofline("abacus")),
    ]
    for code, count in cases:
        python = library(count)
        assert "refused" in python and page(engine, f"anatomy.of('{a.id}').{code}") == python
    own = "{name: 'mine', operations: 1e12, bandwidth: 5e11, memory: 1e9}"
    mine = library(lambda: a.roofline(anatomy.Card("mine", 1e12, 5e11, 1e9), 100))
    script = page(engine, f"anatomy.of('{a.id}').roofline({own}, {{L: 100}})")
    assert not [*differences(mine, script)]
    slip = page(engine, f"anatomy.of('{a.id}').cache(1, {{cacheBits: 8}})")
    assert slip == {"refused": "slip"}, "an argument that there is not is refused, too"


@pytest.mark.parametrize(
    ("right", "wrong", "model"),
    [
        ("return x.length > 0;", "return true;", "llama-3.1-8b"),
        ("map(a).set(name, x);", "", "gemma-3-27b"),
        ("py.has(layers$STATES, letter)", "false", "qwen3-next-80b"),
    ],
)
def test_a_slip_of_the_translation_is_seen(right: str, wrong: str, model: str) -> None:
    script = "\n".join(file.read_text("utf-8") for file in FILES)
    assert right in script
    config = json.dumps(unrolled(GOLDEN["read"][model][0]))
    with pytest.raises(AssertionError):
        engine = engine_of(script.replace(right, wrong))
        same(engine, f"anatomy.of('{model}')", lambda: anatomy.of(model))
        same_text(engine, config)


def test_the_page_is_not_heavy() -> None:
    import gzip

    plain = re.sub(r"^ *//.*\n", "", FILES[1].read_text("utf-8"), flags=re.M)
    assert len(gzip.compress(plain.encode())) < 25_000
