"""Values that cross the line: they arrive as they were, or not at all."""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, namedtuple
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tfviz import explorers, patterns
from tfviz_course import codec
from tfviz_course.codec import CodecError, Opaque
from tfviz_lab.basics import head_ablation


def encode(value: Any) -> bytes:
    writer = codec.Writer()
    text = writer.put(value)
    return codec.pack(text, writer.raw)


def decode(message: bytes) -> Any:
    text, raw = codec.lengths(message[: codec.HEAD.size])
    body = message[codec.HEAD.size :]
    if len(body) != text + raw:
        raise CodecError("another length")  # a line has no other
    reader = codec.Reader(body[text:])
    value = reader.get(codec.unpack(body[:text]))
    reader.done()
    return value


def message(text: Any, raw: bytes = b"") -> bytes:
    """A message with this JSON, as a hostile process may write it."""
    body = json.dumps(text).encode()
    return codec.HEAD.pack(len(body), len(raw)) + body + raw


def same(a: Any, b: Any) -> bool:
    """Equal in type and value; NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        equal = (
            torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))
            if a.dtype.is_floating_point
            else (torch.equal(a, b))
        )
        return a.dtype == b.dtype and a.shape == b.shape and equal
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(map(same, a, b)) and all(map(same, a.values(), b.values()))
    return bool(a == b)


keys = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
leaves = keys | st.floats() | st.integers(-(2**300), 2**300)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.lists(inner, max_size=5).map(tuple),
        st.sets(keys, max_size=5),
        st.dictionaries(keys, inner, max_size=5),
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_plain_values_arrive_as_they_were(value: Any) -> None:
    assert same(decode(encode(value)), value)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(codec.DTYPES.keys() - {"bfloat16"})).flatmap(
        lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=0, min_side=0))
    )
)
def test_arrays_arrive_as_they_were(array: np.ndarray) -> None:
    assert same(decode(encode(array)), array)


@pytest.mark.parametrize("name", sorted(codec.DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 4)])
def test_tensors_arrive_as_they_were(name: str, shape: tuple[int, ...]) -> None:
    tensor = (10 * torch.rand(shape)).to(codec.DTYPES[name])
    assert same(decode(encode(tensor)), tensor)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=">i4").reshape(2, 3).T.astype("i4"),
        torch.arange(6).reshape(2, 3).T,
        torch.eye(3)[::2],
        torch.tensor([1 + 2j, 0.5 - 1j]).conj(),
        patterns.causal(),
        ~(patterns.sliding_window(lookback=2) | patterns.table(torch.eye(5).bool())),
        patterns.per_head(patterns.causal(), patterns.column(stride=3)),
    ],
    ids=repr,
)
def test_these_arrive_too(value: Any) -> None:
    assert same(decode(encode(value)), value)


def test_a_tensor_keeps_that_it_requires_a_gradient_and_loses_its_history() -> None:
    grown = 2 * torch.ones(2, requires_grad=True)
    arrived = decode(encode(grown))
    assert arrived.requires_grad and arrived.is_leaf and arrived.grad_fn is None
    assert not decode(encode(grown.detach())).requires_grad


def test_a_generator_goes_on_where_it_was() -> None:
    generator = torch.Generator().manual_seed(4)
    torch.rand(5, generator=generator)
    other = decode(encode(generator))
    assert torch.equal(torch.rand(3, generator=generator), torch.rand(3, generator=other))


def test_the_arrived_tensor_has_memory_of_its_own() -> None:
    sent = encode(torch.zeros(3))
    first, second = decode(sent), decode(sent)
    first += 1
    assert second.sum() == 0


@pytest.mark.parametrize("name", sorted(explorers.ALL))
def test_an_explorer_arrives_with_its_state(name: str) -> None:
    rows = [[1.0, 0.5], [0.2, 0.1]]
    maps = [[[1.0, 0.0], [0.5, 0.5]]]
    made = {
        "sparse_lab": lambda: explorers.SparseLab(
            left=patterns.sliding_window(lookback=3), L=32, stack="AB", goal={"max_hops": 2}
        ),
        "additive_scores": lambda: explorers.AdditiveScores(
            s=[1.0, 2.0], H=rows, W_a=rows, U_a=rows, v_a=[1.0, 2.0], names=["a", "b"], size=1.0
        ),
        "attention_steps": lambda: explorers.AttentionSteps(rows, rows, rows, ["a", "b"], row=1),
        "soft_dictionary": lambda: explorers.SoftDictionary([0.5, 0.5], rows, rows, beta=3.0),
        "byte_pair_merges": lambda: explorers.BytePairMerges("she sells sea shells", merges=2),
        "rotary_clocks": lambda: explorers.RotaryClocks({"a": rows}, i=3, base=100.0),
        "encoder_decoder_maps": lambda: explorers.EncoderDecoderMaps(
            "ab", "ba", "ba", maps, maps, maps, step=1
        ),
        "trained_heads": lambda: explorers.TrainedHeads(["ab"], row=0, model=head_ablation.gpt()),
        "training_objectives": lambda: explorers.TrainingObjectives(list("abcdef"), row=1),
    }.get(name, explorers.ALL[name])()
    arrived = decode(encode(made))
    # anywidget makes a class of its own for each instance
    assert isinstance(arrived, explorers.ALL[name])
    assert arrived.state == made.state


class Colour(IntEnum):
    RED = 3


class Lying(torch.Tensor):
    def __eq__(self, other: object) -> bool:  # type: ignore[override]
        return True


class Text(str):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


Pair = namedtuple("Pair", "a b")


class Listing(list):
    def __len__(self) -> int:
        return 99


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, 3),
        (Text("no"), "no"),
        (Listing([1]), [1]),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(x=1), {"x": 1}),
        (Pair(1, 2), (1, 2)),
        (torch.ones(2).as_subclass(Lying), torch.ones(2)),
        (bytearray(b"ab"), b"ab"),
        (range(3, 8, 2), [3, 5, 7]),
        (frozenset("a"), {"a"}),
        (np.float32(2.5), 2.5),
        (np.bool_(True), True),
        (np.longdouble(2), 2),
        (np.arange(3, dtype=">i4"), np.arange(3, dtype="i4")),
    ],
)
def test_a_subclass_arrives_as_the_plain_type(value: Any, plain: Any) -> None:
    assert same(decode(encode(value)), plain)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        1j,
        np.complex64(1j),
        slice(3),
        torch.float32,
        torch.eye(2).to_sparse(),
        torch.empty(2, device="meta"),
        np.array(["text"]),
        np.array([object()]),
        (n for n in range(3)),
        print,
        json,
    ],
)
def test_what_has_no_place_arrives_as_the_name_of_its_type(value: Any) -> None:
    arrived = decode(encode([value]))[0]
    assert type(arrived) is Opaque
    assert repr(arrived).startswith("<a value of type ")


def deep(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (deep(200), "nested"),
        (list(range(codec.ITEMS + 1)), "values"),
        (torch.ones(1).expand(10**6, 10**6), "too large"),
        (np.broadcast_to(np.ones(1), (10**6, 10**6)), "too large"),
        (1 << (codec.BIGGEST + 1), "bits"),
        ("x" * (codec.JSON_BYTES + 1), "MiB"),
        (bytes(codec.RAW_BYTES + 1), "MiB"),
    ],
    ids=["deep", "many", "tensor", "array", "integer", "text", "bytes"],
)
def test_what_is_too_large_is_not_sent(value: Any, why: str) -> None:
    with pytest.raises(CodecError, match=why):
        encode(value)


def test_a_container_that_holds_itself_is_not_sent() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(CodecError, match="nested"):
        encode(ring)


HOSTILE: dict[str, bytes] = {
    "a head of too much text": codec.HEAD.pack(2**32 - 1, 0),
    "a head of too many bytes": codec.HEAD.pack(2, 2**32 - 1) + b"[]",
    "another length": message(1) + b"x",
    "no JSON": codec.HEAD.pack(3, 0) + b"[1,",
    "no text": codec.HEAD.pack(2, 0) + b"\xff\xfe",
    "very deep JSON": codec.HEAD.pack(200_000, 0) + b"[" * 100_000 + b"]" * 100_000,
    "deep values": message(json.loads("[" + '["list",' * 80 + "1" + "]" * 80 + "]")),
    "an object": message({"a": 1}),
    "an empty list": message([]),
    "a tag that is none": message(["__reduce__", "os.system", "true"]),
    "a tag that is a method": message(["get", 1]),
    "a tag that is a number": message([1, 2]),
    "a handle": message(["function", 1, "f"]),
    "a long integer": message(2**70),
    "a very long integer": codec.HEAD.pack(10_000, 0) + b"9" * 10_000,
    "hexadecimal that is none": message(["int", "0xzz"]),
    "hexadecimal that is long": message(["int", "0x" + "f" * (codec.BIGGEST // 2)]),
    "an integer of a list": message(["int", [1]]),
    "too few arguments": message(["tensor", "float32"]),
    "too many arguments": message(["bytes", 1, 2, 3]),
    "a dtype that is none": message(["tensor", "object", [1], False], b"12345678"),
    "a dtype that is a list": message(["tensor", ["float32"], [1], False], b"1234"),
    "an array of objects": message(["array", "O", [1], False], b"12345678"),
    "fewer bytes": message(["tensor", "float32", [2], False], b"1234"),
    "more bytes": message(["tensor", "float32", [1], False], b"12345678"),
    "a negative side": message(["tensor", "float32", [-1, -1], False], b"1234"),
    "a side that is true": message(["tensor", "float32", [True], False], b"1234"),
    "a huge shape": message(["tensor", "float32", [2**30, 2**30, 2**30], False], b""),
    "a huge empty shape": message(["tensor", "float32", [2**31 - 1, 2**31 - 1, 0], False], b""),
    "many sides": message(["tensor", "float32", [1] * 100, False], b"1234"),
    "bytes of a negative length": message(["bytes", -1]),
    "bytes that are not there": message(["bytes", 10**9]),
    "the same bytes twice": message(["list", ["bytes", 4], ["bytes", 4]], b"1234"),
    "a key that has no hash": message(["dict", [["list"], 1]]),
    "a pair of three": message(["dict", [1, 2, 3]]),
    "a set of lists": message(["set", ["list"]]),
    "the state of a generator": message(["generator", 8], b"12345678"),
    "a generator out of bounds": message(["generator", 5056], b"\xff" * 5056),
    "a pattern that is none": message(["pattern", ["dict", ["name", "__class__"]]]),
    "a pattern of a number": message(["pattern", 1]),
    "a huge table": message(
        [
            "pattern",
            ["dict", ["table", "AAAA"], ["shape", ["list", 4_000_000_000, 4_000_000_000]]],
        ]
    ),
    "a table of another size": message(
        ["pattern", ["dict", ["table", "AAAA"], ["shape", ["list", 4000, 4000]]]]
    ),
    "an explorer that is none": message(["explorer", "os", ["dict"]]),
    "an explorer's script": message(
        ["explorer", "sparse_lab", ["dict", ["_esm", "alert(1)"]]]
    ),
    "an explorer out of range": message(["explorer", "sparse_lab", ["dict", ["L", 10**9]]]),
    "an explorer with an unknown trait": message(["explorer", "sparse_lab", ["dict", ["x", 1]]]),
    "an explorer of a huge table": message(
        [
            "explorer",
            "sparse_lab",
            [
                "dict",
                [
                    "left",
                    ["dict", ["table", "AAAA"], ["shape", ["list", 10**9, 10**9]]],
                ],
            ],
        ]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_message_is_refused(name: str) -> None:
    with pytest.raises(CodecError):
        decode(HOSTILE[name])


TAGS = [
    *("int", "bytes", "tensor", "array", "generator", "list"),
    *("tuple", "set", "dict", "opaque", "pattern", "explorer"),
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
        | st.tuples(st.sampled_from(TAGS), inner, inner).map(list)
        | st.tuples(st.sampled_from(TAGS), st.text(max_size=8), st.lists(inner)).map(list)
    ),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None)
@given(json_values, st.binary(max_size=64))
def test_any_message_is_a_value_or_refused(text: Any, raw: bytes) -> None:
    try:
        value = decode(message(text, raw))
    except CodecError:
        return
    encode(value)  # what arrived can be sent


def test_a_boolean_that_is_neither_becomes_a_plain_true() -> None:
    mask = decode(message(["tensor", "bool", [3], False], b"\x00\x02\xff"))
    assert mask.sum() == 2 and torch.equal(mask, torch.tensor([False, True, True]))
    array = decode(message(["array", "bool", [2], False], b"\x07\x00"))
    assert array.sum() == 1


def test_a_message_of_lists_takes_little_memory() -> None:
    with pytest.raises(CodecError, match="too many"):
        decode(message(["list", *([["list"]] * 300_000)]))


def test_functions_cross_as_handles() -> None:
    known: list[Any] = []

    def handle(function: Any) -> list[Any] | None:
        known.append(function)
        return ["function", len(known) - 1] if callable(function) else None

    writer = codec.Writer(handle)
    text = writer.put([len, object()])
    reader = codec.Reader(b"", lambda handle: known[handle[1]])
    found = reader.get(text)
    assert found[0] is len and type(found[1]) is Opaque


def test_short_keeps_text_short_and_printable() -> None:
    assert codec.short("a\x1b[31mb\x00\n") == "a�[31mb�\n"
    assert codec.short("x" * 500, 10) == "x" * 9 + "…"
    assert codec.short(12) == "12"


@pytest.mark.parametrize(
    "value", [range(0), range(50_000), [n * (2**61 - 1) for n in range(codec.ALIKE)]]
)
def test_large_collections_and_some_of_one_hash_are_read(value: Sequence[int]) -> None:
    assert decode(encode(set(value))) == set(value)
    assert decode(encode(dict.fromkeys(value))) == dict.fromkeys(value)


@pytest.mark.parametrize("kind", ["set", "dict"])
def test_many_members_of_one_hash_are_refused_before_they_are_put_together(kind: str) -> None:
    """190,000 of them took 22 minutes."""
    numbers = range(codec.ITEMS // 2 - 10)
    members: list[Any] = [["int", hex(n * (2**61 - 1))] for n in numbers]
    members = [[n, 0] for n in members] if kind == "dict" else members
    with pytest.raises(codec.CodecError, match="the same hash"):
        decode(codec.pack([kind, *members], []))


# --- what must be noticed ------------------------------------------------------------------------

BROKEN_LINES = {
    "teaching/tfviz_course/codec.py": [
        (
            "containers nested without end",
            "        if depth > DEPTH:\n",
            "        if depth > 10**9:\n",
        ),
    ],
}
