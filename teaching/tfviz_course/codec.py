"""Values as plain data, to cross the line between a grader and a student's process.

A value becomes JSON and a run of raw bytes (tensors, arrays, byte strings). Nothing is pickled,
nothing that arrives is executed, and every size is checked before memory is taken.

What has no place here (an object of the student's own class, an open file) becomes `Opaque`, which
knows only the name of its type. Functions cross as handles, which the two ends give a meaning to.
"""

from __future__ import annotations

import builtins
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

# a deque or a range is a list there, the keys of a dict a set
_CONTAINERS: dict[Any, str] = {tuple: "tuple", Sequence: "list", Set: "set"}
HEAD = struct.Struct(">II")  # bytes of JSON, raw bytes

_NAMES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64"
DTYPES = {name: getattr(torch, name) for name in (*_NAMES.split(), "complex64", "complex128")}


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


class Writer:
    """Turns values into JSON-able lists, collects their raw bytes. `handle` gives what a function
    is known by on the other side: a JSON-able list or None."""

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
        if isinstance(value, int):
            if (bits := int(value).bit_length()) > BIGGEST:
                raise CodecError(f"an integer of {bits:,} bits")
            return int(value) if bits <= BIG else ["int", hex(int(value))]
        if isinstance(value, float):
            return float(value)
        if isinstance(value, np.generic) and not isinstance(plain := value.item(), np.generic):
            return self.put(plain, depth + 1)
        if isinstance(value, bytes | bytearray):
            return ["bytes", self._take(bytes(value))]
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, torch.Generator) and value.device.type == "cpu":
            return ["generator", self._take(bytes(value.get_state().numpy()))]
        for kind, name in _CONTAINERS.items():
            if isinstance(value, kind) and not isinstance(value, memoryview):
                return [name, *(self.put(item, depth + 1) for item in value)]
        if isinstance(value, Mapping):
            pairs = dict.items(value) if isinstance(value, dict) else value.items()
            return ["dict", *([self.put(k, depth + 1), self.put(v, depth + 1)] for k, v in pairs)]
        # Patterns and explorers of tfviz: where nobody has imported them, there are none.
        patterns = sys.modules.get("tfviz.patterns")
        explorers = sys.modules.get("tfviz.explorers.base")
        if patterns:
            for kind in (patterns.Leaf, patterns.Combined, patterns.PerHead, patterns.Table):
                if isinstance(value, kind):
                    return ["pattern", self.put(kind.spec(value), depth + 1)]
        if explorers and isinstance(value, explorers.Explorer):
            return ["explorer", str(value.module), self.put(value.state, depth + 1)]
        if isinstance(value, numbers.Real | decimal.Decimal):  # a Fraction equals a plain number
            number = float(value)
            return int(number) if number.is_integer() else number
        return self.handle(value) or ["opaque", type(value).__name__]

    def _take(self, raw: bytes) -> int:
        self.raw_bytes += len(raw)
        if self.raw_bytes > RAW_BYTES:
            raise CodecError(f"larger than {RAW_BYTES >> 20} MiB")
        self.raw.append(raw)
        return len(raw)

    def _tensor(self, value: Tensor) -> Any:
        name = str(value.dtype).removeprefix("torch.")
        odd = value.layout is not torch.strided or value.is_meta or value.is_nested
        if name not in DTYPES or odd:
            return ["opaque", f"{type(value).__name__} of {value.dtype}, {value.layout}"]
        if value.numel() * value.element_size() + self.raw_bytes > RAW_BYTES:
            raise CodecError(f"a tensor of shape {tuple(value.shape)} is too large to hand over")
        plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        raw = plain.reshape(-1).view(torch.uint8) if plain.numel() else torch.empty(0)
        self._take(raw.numpy().tobytes())
        return ["tensor", name, list(value.shape), bool(value.requires_grad)]

    def _array(self, value: np.ndarray) -> Any:
        if value.nbytes + self.raw_bytes > RAW_BYTES:
            raise CodecError(f"an array of shape {value.shape} is too large to hand over")
        try:
            plain = torch.from_numpy(np.array(value, dtype=value.dtype.newbyteorder("=")))
        except TypeError:  # of objects, of text
            return ["opaque", f"{type(value).__name__} of {value.dtype}"]
        return ["array", *self._tensor(plain)[1:]]


def pack(message: Any, raw: list[bytes]) -> bytes:
    """One message for the line: lengths, JSON, raw bytes."""
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > JSON_BYTES:
        raise CodecError(f"more than {JSON_BYTES >> 20} MiB of text and numbers")
    return b"".join([HEAD.pack(len(text), sum(map(len, raw))), text, *raw])


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
    """Turns the JSON of a message and its raw bytes into values of exact, plain types. `handle` is
    given a function's handle; it returns what stands for the function, or raises CodecError."""

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
        try:
            return self._made(text, depth + 1)
        except CodecError:
            raise
        except Exception as error:  # each library says in its own way what is wrong
            said = f"{short(repr(text)[:100], 60)}: {short(error)}"
            raise CodecError(f"not a value: {said}") from None

    def _made(self, text: Any, depth: int) -> Any:
        match text:
            case ["int", str(digits)] if len(digits) <= BIGGEST // 4 + 4:
                return int(digits, 16)
            case ["bytes", size]:
                return bytes(self._take(size))
            case ["tensor", name, shape, bool(gradient)]:
                return self._tensor(name, shape, gradient)
            case ["array", name, shape, bool()]:
                return self._tensor(name, shape, False).numpy()
            case ["generator", size]:
                state = torch.frombuffer(bytearray(self._take(size)), dtype=torch.uint8)
                return torch.Generator().set_state(state)
            case ["list" | "tuple" | "set" as kind, *items]:
                make: Any = {"list": list, "tuple": tuple, "set": _set}[kind]
                return make([self.get(item, depth) for item in items])
            case ["dict", *pairs]:
                found = [(self.get(key, depth), self.get(value, depth)) for key, value in pairs]
                _set([key for key, _ in found])
                return dict(found)
            case ["opaque", kind]:
                return Opaque(short(kind, 80))
            case ["pattern", spec]:
                from tfviz.patterns import from_spec

                return from_spec(self.get(spec, depth))
            case ["explorer", str(module), state]:
                from tfviz.explorers import explorer

                values, kind = self.get(state, depth), explorer(module)
                if not {*kind.given, *kind.moved, "prompt"}.issuperset(values):
                    raise CodecError("an explorer with a trait that it does not have")
                return kind.from_state(values)
            case [str(), *_] if self.handle is not None:
                return self.handle(text)
        raise CodecError(f"not a kind of value: {short(repr(text)[:100], 60)}")

    def done(self) -> None:
        """Raises CodecError if raw bytes are left over."""
        if self.at != len(self.raw):
            raise CodecError(f"{len(self.raw) - self.at} bytes belong to no value")

    def _take(self, size: int) -> memoryview:
        if type(size) is not int or size < 0 or self.at + size > len(self.raw):
            raise CodecError("fewer bytes than the message says")
        self.at += size
        return self.raw[self.at - size : self.at]

    def _tensor(self, name: str, shape: list[int], gradient: bool) -> Tensor:
        dtype = DTYPES[name]
        whole = type(shape) is list and len(shape) <= 16 and {*map(type, shape)} <= {int}
        # an empty one may have an absurd shape, too
        if not whole or min(shape, default=0) < 0 or math.prod(n or 1 for n in shape) > 1 << 48:
            raise CodecError(f"not a shape: {short(shape, 60)}")
        raw = bytearray(self._take(math.prod(shape) * dtype.itemsize))
        if not raw:
            made = torch.empty(shape, dtype=dtype)
        elif dtype is torch.bool:  # a byte that is neither 0 nor 1 must not become a strange True
            made = torch.frombuffer(raw, dtype=torch.uint8).reshape(shape) != 0
        else:
            made = torch.frombuffer(raw, dtype=dtype).reshape(shape)
        if gradient and (dtype.is_floating_point or dtype.is_complex):
            made.requires_grad_()
        return made


def _set(items: list[Any]) -> set[Any]:
    """Of these members or keys, unless many have one hash: n such take n² steps to put together."""
    if items and max(Counter(map(hash, items)).values()) > ALIKE:
        raise CodecError(f"more than {ALIKE} members or keys of a collection have the same hash")
    return set(items)


class Remote:
    """A function at the other end of a line: calling it asks there."""

    def __init__(self, end: End, number: int, name: str) -> None:
        self._end, self._number, self._step = end, number, end.step
        self.__name__ = self.__qualname__ = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._end.ask(self, arguments, named)

    def __repr__(self) -> str:
        return self.__name__


class End:
    """One end of a line, as to functions: its own have numbers, those of the other end are asked.
    `handle` is for a Writer, `known` for a Reader."""

    ask: Callable[..., Any]  # call a function of the other end

    def __init__(self) -> None:
        self.own: dict[int, Any] = {}  # that the other end may ask for
        self.count = self.step = 0  # of them, ever; where the functions of the other end come from

    def handle(self, value: Any) -> list[Any] | None:
        if isinstance(value, Remote) and value._end is self:
            return ["yours", value._number]
        if not callable(value):
            return None
        number = next((n for n, function in self.own.items() if function is value), 0)
        if not number:
            self.count = number = self.count + 1
            self.own[number] = value
        return ["function", number, short(getattr(value, "__name__", type(value).__name__), 80)]

    def known(self, handle: list[Any]) -> Any:
        match handle:
            case ["function", int(number), str(name)] if type(number) is int:
                return Remote(self, number, name[:80] if name.isidentifier() else "function")
            case ["yours", int(number)] if type(number) is int and number in self.own:
                return self.own[number]
        raise CodecError("not a kind of value")


_UNWELCOME = AssertionError, StopIteration, StopAsyncIteration, UnicodeError, ExceptionGroup
EXCEPTIONS = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and kind is not Exception
    if not issubclass(kind, _UNWELCOME)
}
"""Python's own that may be raised at the other end, made from a message."""


def exception(types: list[str]) -> type[Exception] | None:
    """The first of these types, from the most special, that may be raised."""
    return next((EXCEPTIONS[name] for name in types if name in EXCEPTIONS), None)
