"""Data without downloads: English text that comes with Python, and tasks whose answers are known.

    ids, alphabet = characters()                  the text, a number for each character
    training, held_out = split(ids)
    x, y = windows(training, 32, 64, rng)         y is x one place later

Every batch is drawn with the generator given, so that a run is a function of its seed.

    >>> ids = byte_ids("to be or not to be")
    >>> x, y = windows(ids, 1, 5, Generator().manual_seed(0))
    >>> byte_text(x[0]), byte_text(y[0])
    ('be or', 'e or ')
    >>> Alphabet("abc").decode(Alphabet("abc").encode("cab"))
    'cab'
"""

from __future__ import annotations

import pydoc_data.topics
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tfviz import _arguments


@cache
def text() -> str:
    """The help texts of Python's own documentation, by topic: some 465 000 characters of English.

    They differ a little between versions of Python; a result says with which it was made.
    """
    topics = pydoc_data.topics.topics
    return "\n".join(topics[name] for name in sorted(topics))


@dataclass(frozen=True)
class Alphabet:
    """Each character has a number: its place in `letters`."""

    letters: str

    def __len__(self) -> int:
        return len(self.letters)

    def encode(self, words: str) -> Int[Tensor, "L"]:
        """Raises ValueError if a character has no number."""
        number = {letter: n for n, letter in enumerate(self.letters)}
        unknown = sorted(set(words) - number.keys())
        if unknown:
            raise ValueError(
                f"words holds {''.join(unknown)!r}, which the alphabet of {len(self)} characters "
                "does not; leave them out, or use byte_ids, where every text has numbers"
            )
        return torch.tensor([number[letter] for letter in words], dtype=torch.long)

    def decode(self, ids: Int[Tensor, "L"]) -> str:
        return "".join(self.letters[int(n)] for n in ids)


@cache
def characters() -> tuple[Int[Tensor, "n"], Alphabet]:
    """(the text in numbers, its alphabet of about a hundred characters). Not to be changed."""
    alphabet = Alphabet("".join(sorted(set(text()))))
    return alphabet.encode(text()), alphabet


def byte_ids(words: str) -> Int[Tensor, "L"]:
    """The bytes of UTF-8, 0 … 255: a vocabulary for every text, one to four tokens a character."""
    return torch.tensor(list(words.encode()), dtype=torch.long)


def byte_text(ids: Int[Tensor, "L"]) -> str:
    """Back to text; bytes that are no UTF-8, as a young model writes, become �."""
    return bytes(ids.tolist()).decode(errors="replace")


def split(ids: Int[Tensor, "n"], held_out: float = 0.1) -> tuple[Tensor, Tensor]:
    """(for training, never trained on): the last part is held out, as one piece."""
    n = round(len(ids) * (1 - _arguments.real("held_out", held_out, 0.0, 1.0)))
    return ids[:n], ids[n:]


def windows(
    ids: Int[Tensor, "n"], b: int, L: int, rng: Generator
) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"]]:
    """(x, y) from b random places, y the next token at each of the L positions."""
    _arguments.integer("L", L, 1, len(ids) - 1)
    start = torch.randint(len(ids) - L, (_arguments.integer("b", b, 1), 1), generator=rng)
    rows = ids[start + torch.arange(L + 1)]  # (b, L + 1)
    return rows[:, :-1], rows[:, 1:]


def copying(
    b: int, L: int, symbols: int, rng: Generator
) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"]]:
    """(source, target): random symbols, and the same again."""
    source = _symbols(b, L, symbols, rng)
    return source, source.clone()


def reversal(
    b: int, L: int, symbols: int, rng: Generator
) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b L"]]:
    """(source, target): random symbols, and the same backwards."""
    source = _symbols(b, L, symbols, rng)
    return source, source.flip(1)


def associative_recall(
    b: int, pairs: int, keys: int, values: int, rng: Generator
) -> tuple[Int[Tensor, "b L"], Int[Tensor, "b"]]:
    """(rows, answers): key value key value … key, L = 2·pairs + 1; what came with the last key?

    Keys are 0 … keys − 1 and no two of a row are the same; values are keys … keys + values − 1,
    and so is the answer. Which pair is asked for is random, so that guessing from the values of the
    row is right once in `pairs` times at best, or a little more where values repeat.
    """
    _arguments.integer("pairs", pairs, 1, _arguments.integer("keys", keys, 1))
    _arguments.integer("values", values, 1)
    k = torch.rand(_arguments.integer("b", b, 1), keys, generator=rng).argsort(1)[:, :pairs]
    v = keys + torch.randint(values, (b, pairs), generator=rng)
    asked = torch.randint(pairs, (b, 1), generator=rng)
    rows = torch.cat([torch.stack([k, v], 2).flatten(1), k.gather(1, asked)], 1)
    return rows, v.gather(1, asked)[:, 0]


def groups(
    L: int, d: int, count: int = 8, spread: float = 0.2, loud: float = 6.0, seed: int = 0
) -> Float[Tensor, "L d"]:
    """L vectors of length about loud √d around `count` random directions, in random order."""
    for name, value in (("L", L), ("d", d), ("count", count)):
        _arguments.integer(name, value, 1)
    dice = Generator().manual_seed(seed)
    middle = F.normalize(torch.randn(count, d, generator=dice), dim=-1)
    near = middle[torch.randint(count, (L,), generator=dice)]
    return loud * d**0.5 * (near + spread * torch.randn(L, d, generator=dice) / d**0.5)


def _symbols(b: int, L: int, symbols: int, rng: Generator) -> Int[Tensor, "b L"]:
    for name, value in (("b", b), ("L", L), ("symbols", symbols)):
        _arguments.integer(name, value, 1)
    return torch.randint(symbols, (b, L), generator=rng)
