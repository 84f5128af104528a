"""Values as plain data, to cross the line between a grader and a student's process.

A value becomes JSON and a run of raw bytes (tensors, arrays, byte strings). Nothing is pickled,
nothing that arrives is executed, and every size is checked before memory is taken:

    >>> decode(encode({"shape": (2, 3)}))
    {'shape': (2, 3)}

What has no place here (an object of the student's own class, an open file) becomes `Opaque`, which
knows only the name of its type. Functions cross as handles, which the two ends give a meaning to.
"""

from __future__ import annotations

import decimal
import json
import math
import numbers
import struct
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

DEPTH = 60  # of containers in containers
ITEMS = 200_000  # values in one message
JSON_BYTES = 8 << 20
RAW_BYTES = 256 << 20
ALIKE = 200  # members of a set, or keys of a dict, with the same hash
BIG = 64  # an integer of more bits is written in hexadecimal, which is read in linear time
BIGGEST = 1 << 20  # bits of an integer

_CONTAINERS: dict[Any, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozen"}
HEAD = struct.Struct(">II")  # bytes of JSON, raw bytes

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.complex64,
        torch.complex128,
    )
}
_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}
_NAMES = [f"{kind}{width}" for kind, widths in _WIDTHS.items() for width in widths]
ARRAYS = {name: np.dtype(name) for name in ("bool", *_NAMES, "complex64", "complex128")}


class CodecError(ValueError):
    """A value that may not cross, or a message that is not one of ours; says why in words."""


@dataclass(frozen=True)
class Opaque:
    """Stands for a value that cannot cross: an object of type `kind`."""

    kind: str

    def __repr__(self) -> str:
        return f"<a value of type {self.kind}>"


def short(text: object, most: int = 200) -> str:
    """`text` with at most this many characters, all of them printable or a line break or a tab."""
    cut = str(text)[: most + 1]
    clean = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in cut)
    return clean if len(clean) <= most else f"{clean[: most - 1]}…"


# --- out -----------------------------------------------------------------------------------------


class Writer:
    """Turns values into JSON-able lists and collects their raw bytes.

    `handle` gives what a function is known by on the other side: a JSON-able list or None.
    """

    def __init__(self, handle: Callable[[Any], list[Any] | None] = lambda function: None) -> None:
        self.handle = handle
        self.raw: list[bytes] = []
        self.raw_bytes = self.items = 0

    def put(self, value: Any, depth: int = 0) -> Any:
        """The JSON of one value. Raises CodecError if it is too deep, too long or too large."""
        self.items += 1
        if self.items > ITEMS:
            raise CodecError(f"more than {ITEMS:,} values in one answer; return a tensor instead")
        if depth > DEPTH:
            raise CodecError(f"containers are nested more than {DEPTH} deep")
        if value is None or value is True or value is False:
            return value
        # Subclasses (an enum, a named tuple, a Counter) cross as the plain type below them.
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, np.generic):
            return self._array(np.asarray(value), "scalar")
        if isinstance(value, int):
            return self._integer(int(value))
        if isinstance(value, float):
            return float(value)
        if isinstance(value, complex):
            return ["complex", value.real, value.imag]
        if isinstance(value, bytes | bytearray):
            return ["bytes", self._take(bytes(value))]
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            return self._array(value, "array")
        if isinstance(value, torch.dtype) and (name := _name(DTYPES, value)):
            return ["dtype", name]
        if isinstance(value, torch.Generator) and value.device.type == "cpu":
            return ["generator", self._take(bytes(value.get_state().numpy()))]
        if isinstance(value, range):
            return ["range", *map(self._integer, (value.start, value.stop, value.step))]
        if isinstance(value, slice):
            parts = (value.start, value.stop, value.step)
            return ["slice", *(self.put(part, depth + 1) for part in parts)]
        for kind, name in _CONTAINERS.items():
            if isinstance(value, kind):
                return [name, *(self.put(item, depth + 1) for item in kind.__iter__(value))]
        if isinstance(value, Mapping):
            pairs = dict.items(value) if isinstance(value, dict) else value.items()
            return ["dict", *([self.put(k, depth + 1), self.put(v, depth + 1)] for k, v in pairs)]
        if ours := self._ours(value, depth):
            return ours
        # Numbers and collections of others' making (a Fraction, a deque): equal to a plain one.
        if isinstance(value, numbers.Real | decimal.Decimal):
            number = float(value)
            return int(number) if number.is_integer() else number
        for kind, name in ((Set, "set"), (Sequence, "list")):
            if isinstance(value, kind) and not isinstance(value, memoryview):
                return [name, *(self.put(item, depth + 1) for item in value)]
        return self.handle(value) or ["opaque", type(value).__name__]

    def _take(self, raw: bytes) -> int:
        self.raw_bytes += len(raw)
        if self.raw_bytes > RAW_BYTES:
            raise CodecError(f"larger than {RAW_BYTES >> 20} MiB")
        self.raw.append(raw)
        return len(raw)

    def _integer(self, value: int) -> Any:
        if value.bit_length() > BIGGEST:
            raise CodecError(f"an integer of {value.bit_length():,} bits")
        return value if value.bit_length() <= BIG else ["int", hex(value)]

    def _tensor(self, value: Tensor) -> Any:
        name = _name(DTYPES, value.dtype)
        if name is None or value.layout is not torch.strided or value.is_meta or value.is_nested:
            return ["opaque", f"{type(value).__name__} of {value.dtype}, {value.layout}"]
        if value.numel() * value.element_size() + self.raw_bytes > RAW_BYTES:
            raise CodecError(f"a tensor of shape {tuple(value.shape)} is too large to hand over")
        plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        self._take(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
        return ["tensor", name, list(value.shape), bool(value.requires_grad)]

    def _array(self, value: np.ndarray, kind: str) -> Any:
        name = _name(ARRAYS, value.dtype.newbyteorder("="))
        if name is None:
            return ["opaque", f"{type(value).__name__} of {value.dtype}"]
        if value.nbytes + self.raw_bytes > RAW_BYTES:
            raise CodecError(f"an array of shape {value.shape} is too large to hand over")
        self._take(np.asarray(value, dtype=ARRAYS[name]).tobytes())
        return [kind, name, list(value.shape)]

    def _ours(self, value: Any, depth: int) -> Any:
        """Patterns and explorers of tfviz."""
        # Not imported here: where nobody has imported them, there are none.
        patterns = sys.modules.get("tfviz.patterns.pattern")
        explorers = sys.modules.get("tfviz.explorers.base")
        if patterns and isinstance(value, patterns.Pattern):
            return ["pattern", self.put(patterns.Pattern.spec(value), depth + 1)]
        if explorers and isinstance(value, explorers.Explorer):
            return ["explorer", str(value.module), self.put(value.state, depth + 1)]
        return None


def pack(message: Any, raw: list[bytes]) -> bytes:
    """One message for the line: lengths, JSON, raw bytes."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > JSON_BYTES:
        raise CodecError(f"more than {JSON_BYTES >> 20} MiB of text and numbers")
    return b"".join([HEAD.pack(len(text), sum(map(len, raw))), text, *raw])


def encode(value: Any) -> bytes:
    """One value as bytes; functions become Opaque. Raises CodecError if it is too large."""
    writer = Writer()
    text = writer.put(value)
    return pack(text, writer.raw)


# --- in ------------------------------------------------------------------------------------------


def lengths(head: bytes) -> tuple[int, int]:
    """Bytes of JSON and raw bytes that follow this head. Raises CodecError if they are too many."""
    text, raw = HEAD.unpack(head)
    if text > JSON_BYTES or raw > RAW_BYTES:
        raise CodecError(f"a message of {text + raw:,} bytes is too long")
    return text, raw


def unpack(text: bytes) -> Any:
    """The JSON of a message. Raises CodecError if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"not a message: {type(error).__name__}") from None


class Reader:
    """Turns the JSON of a message and its raw bytes into values of exact, plain types.

    `handle` is given the list of a function's handle; it returns what stands for the function, or
    raises CodecError.
    """

    def __init__(
        self, raw: bytes | memoryview, handle: Callable[[list[Any]], Any] | None = None
    ) -> None:
        self.raw, self.at, self.items = memoryview(raw), 0, 0
        self.handle = handle

    def get(self, text: Any, depth: int = 0) -> Any:
        """The value that this JSON stands for. Raises CodecError if there is none."""
        self.items += 1
        if self.items > ITEMS or depth > DEPTH + 2:
            raise CodecError("too many values, or nested too deep")
        if text is None or type(text) in (bool, int, float, str):
            if type(text) is int and text.bit_length() > BIG:
                raise CodecError("a long integer must be written in hexadecimal")
            return text
        if type(text) is not list or not text or type(text[0]) is not str:
            raise CodecError(f"not a value: {short(repr(text)[:100], 60)}")
        tag, *rest = text
        read = _READ.get(tag)
        if read is None:
            if self.handle is not None:
                return self.handle(text)
            raise CodecError(f"not a kind of value: {short(tag, 40)!r}")
        try:
            return read(self, depth + 1, *rest)
        except CodecError:
            raise
        except (TypeError, ValueError, OverflowError, RuntimeError, MemoryError) as error:
            raise CodecError(f"not a {tag}: {short(error)}") from None

    def done(self) -> None:
        """Raises CodecError if raw bytes are left over."""
        if self.at != len(self.raw):
            raise CodecError(f"{len(self.raw) - self.at} bytes belong to no value")

    def _take(self, size: int) -> memoryview:
        if type(size) is not int or size < 0 or self.at + size > len(self.raw):
            raise CodecError("fewer bytes than the message says")
        self.at += size
        return self.raw[self.at - size : self.at]

    def _size(self, shape: list[int], width: int) -> int:
        """Bytes of a tensor, whose shape has been checked."""
        if type(shape) is not list or len(shape) > 16:
            raise CodecError(f"not a shape: {short(repr(shape)[:100], 60)}")
        if any(type(n) is not int or not 0 <= n < 1 << 31 for n in shape):
            raise CodecError(f"not a shape: {short(shape, 60)}")
        if math.prod(n or 1 for n in shape) > 1 << 48:  # an empty one, of an absurd shape
            raise CodecError(f"not a shape: {short(shape, 60)}")
        return math.prod(shape) * width

    # One method for each tag: its arguments are what follows the tag.

    def read_int(self, depth: int, digits: str) -> int:
        if type(digits) is not str or len(digits) > BIGGEST // 4 + 4:
            raise CodecError("not an integer")
        return int(digits, 16)

    def read_complex(self, depth: int, real: float, imaginary: float) -> complex:
        return complex(real, imaginary)

    def read_bytes(self, depth: int, size: int) -> bytes:
        return bytes(self._take(size))

    def read_dtype(self, depth: int, name: str) -> torch.dtype:
        return _known(DTYPES, name)

    def read_tensor(self, depth: int, name: str, shape: list[int], gradient: bool) -> Tensor:
        dtype = _known(DTYPES, name)
        width = torch.empty((), dtype=dtype).element_size()
        raw = self._take(self._size(shape, width))
        if not len(raw):
            made = torch.empty(shape, dtype=dtype)
        elif dtype is torch.bool:  # a byte that is neither 0 nor 1 must not become a strange True
            made = torch.frombuffer(bytearray(raw), dtype=torch.uint8).reshape(shape) != 0
        else:
            made = torch.frombuffer(bytearray(raw), dtype=dtype).reshape(shape)
        if gradient is True and (dtype.is_floating_point or dtype.is_complex):
            made.requires_grad_()
        return made

    def read_array(self, depth: int, name: str, shape: list[int]) -> np.ndarray:
        dtype = _known(ARRAYS, name)
        raw = self._take(self._size(shape, dtype.itemsize))
        if name == "bool":
            return (np.frombuffer(raw, np.uint8) != 0).reshape(shape)
        return np.frombuffer(raw, dtype).reshape(shape).copy()

    def read_scalar(self, depth: int, name: str, shape: list[int]) -> Any:
        return self.read_array(depth, name, [])[()]

    def read_generator(self, depth: int, size: int) -> torch.Generator:
        state = torch.frombuffer(bytearray(self._take(size)), dtype=torch.uint8)
        generator = torch.Generator()
        generator.set_state(state)
        return generator

    def read_range(self, depth: int, *parts: Any) -> range:
        return range(*(self.get(part, depth) for part in parts))

    def read_slice(self, depth: int, *parts: Any) -> slice:
        return slice(*(self.get(part, depth) for part in parts))

    def read_list(self, depth: int, *items: Any) -> list[Any]:
        return [self.get(item, depth) for item in items]

    def read_tuple(self, depth: int, *items: Any) -> tuple[Any, ...]:
        return tuple(self.get(item, depth) for item in items)

    def read_set(self, depth: int, *items: Any) -> set[Any]:
        return set(_few_alike([self.get(item, depth) for item in items]))

    def read_frozen(self, depth: int, *items: Any) -> frozenset[Any]:
        return frozenset(_few_alike([self.get(item, depth) for item in items]))

    def read_dict(self, depth: int, *pairs: Any) -> dict[Any, Any]:
        found = [(self.get(key, depth), self.get(value, depth)) for key, value in pairs]
        _few_alike([key for key, _ in found])
        return dict(found)

    def read_opaque(self, depth: int, kind: str) -> Opaque:
        return Opaque(short(kind, 80))

    def read_pattern(self, depth: int, spec: Any) -> Any:
        return _pattern(self.get(spec, depth))

    def read_explorer(self, depth: int, module: str, state: Any) -> Any:
        from tfviz.explorers import ALL

        values = self.get(state, depth)
        kind = ALL.get(module) if type(module) is str else None
        if kind is None or type(values) is not dict:
            raise CodecError(f"no explorer is called {short(module, 40)!r}")
        if not {*kind.given, *kind.moved, "prompt"}.issuperset(values):
            raise CodecError("an explorer with a trait that it does not have")
        for value in values.values():
            if type(value) is dict and ("op" in value or "table" in value):
                _check_spec(value)
        try:
            return kind.from_state(values)
        except Exception as error:  # each class says in its own way that a state is none
            raise CodecError(f"the state of the explorer is not valid: {short(error)}") from None


_READ: dict[str, Callable[..., Any]] = {
    name.removeprefix("read_"): read
    for name, read in vars(Reader).items()
    if name.startswith("read_")
}


def decode(message: bytes, handle: Callable[[list[Any]], Any] | None = None) -> Any:
    """The value in the bytes of `encode`. Raises CodecError if they hold none."""
    if len(message) < HEAD.size:
        raise CodecError("a message without a head")
    text, raw = lengths(message[: HEAD.size])
    if len(message) != HEAD.size + text + raw:
        raise CodecError("a message of another length than it says")
    reader = Reader(memoryview(message)[HEAD.size + text :], handle)
    value = reader.get(unpack(message[HEAD.size : HEAD.size + text]))
    reader.done()
    return value


def _few_alike(items: list[Any]) -> list[Any]:
    """These members or keys, unless many have one hash: a set of n such takes n² steps to make."""
    if items and max(Counter(map(hash, items)).values()) > ALIKE:
        raise CodecError(f"more than {ALIKE} members or keys of a collection have the same hash")
    return items


def _name(table: Mapping[str, Any], value: Any) -> str | None:
    return next((name for name, known in table.items() if known == value), None)


def _known(table: Mapping[str, Any], name: Any) -> Any:
    if type(name) is not str or name not in table:
        raise CodecError(f"not a type of numbers: {short(name, 40)!r}")
    return table[name]


def _check_spec(spec: Any, depth: int = 0) -> None:
    """Bounds on the spec of a pattern, before the library makes it."""
    if type(spec) is not dict or depth > 12:
        raise CodecError("not the spec of a pattern, or nested too deep")
    if "op" in spec:
        parts = spec.get("parts")
        if type(parts) is not list or len(parts) > 64:
            raise CodecError("not the parts of a pattern")
        for part in parts:
            _check_spec(part, depth + 1)
    elif "table" in spec:
        shape, bits = spec.get("shape"), spec["table"]
        if type(shape) is not list or [type(n) for n in shape] != [int, int]:
            raise CodecError("not the shape of a pattern's table")
        if not 0 < shape[0] == shape[1] <= 4096 or type(bits) is not str:
            raise CodecError("not the table of a pattern")
        packed = math.ceil(shape[0] ** 2 / 8)
        if len(bits) != math.ceil(packed / 3) * 4:  # in base64
            raise CodecError("the table of a pattern has another size than it says")


def _pattern(spec: Any) -> Any:
    from tfviz.patterns.pattern import from_spec

    _check_spec(spec)
    try:
        return from_spec(spec)
    except Exception as error:  # the library's own words about what is wrong
        raise CodecError(f"not a pattern: {short(error)}") from None
