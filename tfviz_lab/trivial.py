"""Trivial lines: what rules reach that learn nothing but counts, on the data of our comparisons.

A model that loses to one of them has not learned its task, whatever its mechanism; so they are
counted once and drawn into every figure.

    ngrams()                 of characters: −ln p by Witten and Bell from 1, 2, … characters before
    neighbours()             of hidden characters: from what stands beside them
    pixels(…)                of grey levels: from their place, and from pixels before them
    nearest(…), regression(…)   of images: errors of the nearest known ones, and of a linear model

Witten and Bell 1991 weigh what followed a context by how often it stood there, against how many
different ones followed: a context that predicts badly hands on to the shorter one,

    p(c | context) = (n(context c) + k(context) · p(c | shorter)) / (n(context) + k(context))

where n counts and k is the number of different symbols that followed.

    >>> a, b = torch.tensor([0, 1, 0, 1, 0, 1]), torch.tensor([1, 0, 1, 0, 1, 0])
    >>> first, second = counted([[a], [a]], b, [[a], [a]], b, 2)[:2]
    >>> [round(x.mean().exp().item(), 2) for x in (first, second)]
    [1.14, 1.03]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from tfviz import data
from tfviz.basics.lm_objectives import hide

Contexts = Sequence[Sequence[Int[Tensor, "n"]]]
"""From the shortest to the longest, each a list of symbols that stand with every answer."""


def counted(
    known: Contexts,
    answers: Int[Tensor, "n"],
    asked: Contexts,
    right: Int[Tensor, "m"],
    symbols: int,
) -> list[Float[Tensor, "m"]]:
    """−ln p of the right answers by counts of the known ones, for each context.

    Each context falls back on the one before, the first on equal shares of all symbols.
    """
    p, found = torch.full((len(right),), 1 / symbols, dtype=torch.float64), []
    for learned, given in zip(known, asked, strict=True):
        context, new = _names(learned, given)
        pairs, pair = _names([context, answers], [new, right])
        n, seen = _count(context, new), _count(pairs, pair)
        kinds = _count(context[_firsts(pairs)], new)
        p = torch.where(n > 0, (seen + kinds * p) / (n + kinds).clamp(min=1), p)
        found.append(-p.log())
    return found


def _names(
    known: Sequence[Int[Tensor, "n"]], asked: Sequence[Int[Tensor, "m"]]
) -> tuple[Int[Tensor, "n"], Int[Tensor, "m"]]:
    """One number for each combination of symbols, the same in both."""
    if not known:
        raise ValueError("a context has no symbols; give one that is always 0 for none")
    number = torch.zeros(len(known[0]) + len(asked[0]), dtype=torch.long)
    for column in map(torch.cat, zip(known, asked, strict=True)):
        number = (number * (int(column.max()) + 1) + column).unique(return_inverse=True)[1]
    return number[: len(known[0])], number[len(known[0]) :]


def _count(known: Int[Tensor, "n"], asked: Int[Tensor, "m"]) -> Float[Tensor, "m"]:
    """How often each that is asked for is among the known."""
    return torch.bincount(known, minlength=int(asked.max()) + 1)[asked].double()


def _firsts(names: Int[Tensor, "n"]) -> Int[Tensor, "k"]:
    """The place of one of each name."""
    in_order, order = names.sort(stable=True)
    return order[in_order.diff(prepend=in_order.new_tensor([-1])) != 0]


# --- text -----------------------------------------------------------------------------------------


@cache
def ngrams(most: int = 5, length: int = 64, scored: int = 16) -> dict[str, float]:
    """Nats per character of the held-out text, by 1, …, `most` characters in a row.

    The same characters as `whole_text` of `protocol` scores: the last `scored` of windows of
    `length`.
    """
    ids, alphabet = data.characters()
    training = data.split(ids)[0]
    rows = held_out_rows(length, scored)
    asked = [rows[:, -scored - 1 - n : rows.shape[1] - 1 - n].flatten() for n in range(most - 1)]
    right = rows[:, -scored:].flatten()
    ends = training[most - 1 :]
    known = [training[most - 2 - n : len(training) - 1 - n] for n in range(most - 1)]
    none, no = torch.zeros_like(ends), torch.zeros_like(right)
    found = counted(
        [[none, *known[:n]] for n in range(most)],
        ends,
        [[no, *asked[:n]] for n in range(most)],
        right,
        len(alphabet),
    )
    return {f"{n}-gram": round(x.mean().item(), 4) for n, x in enumerate(found, start=1)}


@cache
def held_out_rows(length: int = 64, scored: int = 16) -> Int[Tensor, "rows length+1"]:
    """Windows of the held-out text, one every `scored` characters, and one character more."""
    ids = data.split(data.characters()[0])[1]
    starts = torch.arange(0, len(ids) - length - 1, scored)
    return ids[starts[:, None] + torch.arange(length + 1)]


@cache
def neighbours() -> dict[str, float]:
    """Nats per hidden character, from the characters beside it, as the encoder sees them."""
    ids, alphabet = data.characters()
    vocab = len(alphabet)
    training = data.split(ids)[0]
    rows, hidden, scored = hidden_rows()
    wide = torch.nn.functional.pad(hidden, (2, 2), value=vocab + 1)  # no context has this
    L = rows.shape[1]

    def beside(n: int) -> tuple[Tensor, Tensor]:
        """(in the training text, in the rows): the symbol n places after."""
        known = training[2 + n : len(training) - 2 + n]
        return known, wide[:, 2 + n : 2 + n + L][scored]

    answers, right = training[2:-2], rows[scored]
    none = (torch.zeros_like(answers), torch.zeros_like(right))
    left, after = beside(-1), beside(1)
    left_2, after_2 = beside(-2), beside(2)
    chains = [
        ("frequency", [none]),
        ("left neighbour", [none, left]),
        ("both neighbours", [none, left, after]),
        ("three neighbours", [none, left, after, left_2]),
        ("two on each side", [none, left, after, left_2, after_2]),
    ]
    found = counted(
        [[x for x, _ in of] for _, of in chains],
        answers,
        [[x for _, x in of] for _, of in chains],
        right,
        vocab,
    )
    return {
        name: round(x.mean().item(), 4)
        for (name, _), x in zip(chains, found, strict=True)
        if name != "three neighbours"
    }


@cache
def hidden_rows(length: int = 64) -> tuple[Tensor, Tensor, Tensor]:
    """(text, what an encoder sees, which places are scored): the held-out text, 15 % hidden."""
    ids, alphabet = data.characters()
    text = data.split(ids)[1]
    rows = text[: len(text) // length * length].view(-1, length)
    hidden, scored = hide(rows, len(alphabet), len(alphabet), Generator().manual_seed(1))
    return rows, hidden, scored


# --- images ---------------------------------------------------------------------------------------


def pixels(
    known: Int[Tensor, "n 64"], new: Int[Tensor, "m 64"], side: int = 8, levels: int = 17
) -> dict[str, float]:
    """Nats per pixel: from its place, and from the pixels to the left and above in five shades."""

    def around(images: Tensor) -> list[Tensor]:
        square = torch.nn.functional.pad(images.view(-1, side, side), (1, 0, 1, 0)) // 4
        left, above = square[:, 1:, :-1], square[:, :-1, 1:]
        place = torch.arange(side * side).expand(len(images), -1)
        return [x.flatten() for x in (place, left, above)]

    before, after = around(known), around(new)
    names = ("place", "place and left", "place, left and above")
    found = counted(
        [before[:n] for n in (1, 2, 3)],
        known.flatten(),
        [after[:n] for n in (1, 2, 3)],
        new.flatten(),
        levels,
    )
    return {name: round(x.mean().item(), 4) for name, x in zip(names, found, strict=True)}


def readers(known: Tensor, classes: Tensor, new: Tensor, right: Tensor) -> Mapping[str, float]:
    """Errors per image of a logistic regression and of the nearest known image, by grey levels."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    made: dict[str, Callable[[], object]] = {
        "logistic regression": lambda: LogisticRegression(max_iter=3000),
        "nearest image": lambda: KNeighborsClassifier(1),
    }
    x, y = known.numpy() / 16, new.numpy() / 16
    return {
        name: round(float((make().fit(x, classes).predict(y) != right.numpy()).mean()), 4)  # type: ignore[attr-defined]
        for name, make in made.items()
    }


# --- answers that can only be guessed -------------------------------------------------------------


def guessing(choices: int) -> dict[str, float]:
    """Nats of equal shares of so many answers."""
    return {"guessing": round(math.log(choices), 4)}
