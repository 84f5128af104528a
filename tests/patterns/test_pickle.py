"""Patterns go everywhere a Python object goes: pickle, copy, torch.save, workers, joblib.

A law over all families, what is made of them, and what is explained."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
import torch
from refusals import of_no_kind
from torch import Tensor
from torch.nn.attention.flex_attention import create_mask
from torch.utils.data import DataLoader, Dataset

from tfviz import explain
from tfviz import patterns as P
from tfviz.basics.lm_objectives import prefix_lm
from tfviz.explained.typed import TypedError, read_typed
from tfviz.formula import Formula
from tfviz.patterns import Family, Pattern

RESTS_ON = ("tfviz/**", "tests/*.py")  # also in a process of their own

L = 24
FAMILIES = [*P.FAMILIES.values(), prefix_lm]


def of_torch(x: Any) -> Any:
    """Through `torch.save` and back."""
    file = io.BytesIO()
    torch.save(x, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=False)


def by_pickle(protocol: int, x: Any) -> Any:
    return pickle.loads(pickle.dumps(x, protocol))


WAYS: dict[str, Callable[[Any], Any]] = {
    **{f"pickle {n}": partial(by_pickle, n) for n in range(2, pickle.HIGHEST_PROTOCOL + 1)},
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "torch.save": of_torch,
}


def window(b: Any, h: Any, q: Any, k: Any, size: int = 4) -> Any:
    return (q >= k) & (q - k < size)


@cache
def made() -> dict[str, Pattern]:
    """Each family, with the first numbers of its sliders; and what is made of patterns."""
    by_family = {
        family.name: family(**{n: d.default for n, d in family.domains.items()})
        for family in FAMILIES
    }
    size = 5
    brought = explain(lambda b, h, q, k: (q >= k) & (q - k < size)).pattern
    return by_family | {
        "not": ~P.strided(8),
        "and, or": (P.causal() & P.band(3)) | P.random_keys(2),
        "heads": P.per_head(P.causal(), P.strided(4) & brought),
        "table": P.table(torch.eye(L, dtype=torch.bool)),
        "at a length": P.random_keys(2).at(L),
        "brought": brought,
        "typed": read_typed("(i >= j) & (i - j < w)").pattern(L, w=4),
    }


def of_flex(pattern: Pattern, mod: Any) -> Tensor:
    heads = len(pattern.parts) if pattern.mask(L).dim() == 3 else 1
    return create_mask(mod, 1, heads, L, L, device="cpu")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*(f.name for f in FAMILIES), *list(made())[len(FAMILIES) :]])
def test_a_pattern_comes_back_with_all_its_faces(name: str, way: str) -> None:
    pattern, through = made()[name], WAYS[way]
    mask = pattern.mask(L)
    for asked in (False, True):  # a face that was asked for is kept; a pickle must not hold it
        back = through(pattern)
        assert back == pattern and hash(back) == hash(pattern)
        assert repr(back) == repr(pattern)
        assert back.mask(L).equal(mask)
        if not asked and "heads" not in name:
            assert back.latex == pattern.latex and back.javascript == pattern.javascript
    mod = pattern.at(L).mask_mod
    assert of_flex(pattern, through(mod)).equal(of_flex(pattern, mod))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_is_one_alone(family: Family, way: str) -> None:
    """So that what comes back belongs to the same menus, and is the same in a set."""
    assert WAYS[way](family) is family
    assert WAYS[way](family.formula).family is family


def by_distance(i: Any, j: Any, *, m: float) -> Any:
    return -m * abs(i - j)


def test_the_faces_of_a_formula_for_flex_attention_come_back() -> None:
    formula = Formula(by_distance, reals=frozenset({"m"}))
    assert formula.latex()
    for through in WAYS.values():
        assert through(formula).text(m=2) == formula.text(m=2)
        assert through(formula.score_mod(m=2.0))(1.0, 0, 0, 3, 5) == -3.0
        assert through(formula.mask_mod(m=2.0))(0, 0, 3, 5) == -4.0
    own = Family(lambda i, j: i >= j, "own", "", {})
    with pytest.raises(pickle.PicklingError, match="at the top of a module"):
        pickle.dumps(own())
    assert copy.deepcopy(own()) == own() and copy.copy(own) is own


EXPLAINED: dict[str, Callable[[], Any]] = {
    "a function of a module": lambda: explain(window),
    "a lambda": lambda: explain(lambda b, h, q, k: q - k < 3),
    "a mask": lambda: explain(P.strided(5).mask(L)),
    "a bias": lambda: explain(torch.randn(2, L, L)),
    "typed": lambda: read_typed("where(i >= j, -m * (i - j), -inf)").explain(L, m=0.5),
    "by head": lambda: explain(lambda b, h, q, k: q - k < h + 2, heads=3),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_is_explained_comes_back(name: str) -> None:
    e = EXPLAINED[name]()
    Q, K, V = (torch.randn(1, 1 if e.bias is None else e.bias.heads, L, 8) for _ in range(3))
    if name == "by head":
        Q, K, V = (x.expand(1, 3, L, 8) for x in (Q, K, V))
    for through in WAYS.values():
        back = through(e)
        assert repr(back) == repr(e) and back.latex == e.latex and back.text() == e.text()
        assert back.patterns == e.patterns and back.same_as == e.same_as
        assert back.attention(Q, K, V).equal(e.attention(Q, K, V))


def test_a_function_that_no_pickle_holds_is_missed_by_name() -> None:
    size = 4
    e = explain(lambda b, h, q, k: q - k < size)
    back = pickle.loads(pickle.dumps(e))
    of_no_kind("could not be pickled … with_values before", back.with_values, size=5)
    assert copy.deepcopy(e).with_values(size=5).parameters == {"size": 5}
    kept = pickle.loads(pickle.dumps(explain(window)))
    assert kept.with_values(size=6).parameters == {"size": 6}


def test_what_was_typed_and_its_error_come_back() -> None:
    one = read_typed("(i >= j) & (i - j < w)")
    back = pickle.loads(pickle.dumps(one))
    assert back == one and pickle.loads(pickle.dumps(one.function(L)))(0, 0, 5, 2)
    with pytest.raises(TypedError) as refusal:
        read_typed("i >= (j - 1").table(L)
    for through in WAYS.values():
        error = through(refusal.value)
        assert (str(error), error.at) == (str(refusal.value), refusal.value.at)


class Masks(Dataset[Tensor]):
    """Makes the mask of each of its patterns where the worker is."""

    def __init__(self, patterns: list[Pattern]) -> None:
        self.patterns = patterns

    def __len__(self) -> int:
        return len(self.patterns)

    def __getitem__(self, n: int) -> Tensor:
        return masks_of(self.patterns[n])


def masks_of(pattern: Pattern) -> Tensor:
    """By its mask, and by its mask_mod."""
    ours, theirs = pattern.mask(L), of_flex(pattern, pattern.at(L).mask_mod)[0]
    assert theirs.reshape(ours.shape).equal(ours)
    return ours


def test_every_pattern_reaches_the_worker_of_a_data_loader_that_is_spawned() -> None:
    """Another process, which knows of a formula that was brought only what it is sent."""
    patterns = [*made().values()]
    loader = DataLoader(
        Masks(patterns), None, num_workers=1, multiprocessing_context="spawn", shuffle=False
    )
    for pattern, mask in zip(patterns, loader, strict=True):
        assert mask.equal(pattern.mask(L)), pattern


def test_joblib_takes_patterns() -> None:
    joblib = pytest.importorskip("joblib")
    call = partial(joblib.delayed(masks_of))
    patterns = [P.strided(8), made()["brought"], made()["heads"]]
    run = joblib.Parallel(n_jobs=2, backend="multiprocessing")
    for pattern, mask in zip(patterns, run(call(p) for p in patterns), strict=True):
        assert mask.equal(pattern.mask(L))


def test_a_process_that_has_only_the_bytes_makes_the_same_pattern() -> None:
    """It imports nothing before, as after a restart: the families import themselves."""
    sent = {name: pickle.dumps(pattern).hex() for name, pattern in made().items()}
    script = (
        "import json, pickle, sys\n"
        "sent = json.load(sys.stdin)\n"
        "out = {n: pickle.loads(bytes.fromhex(x)).mask(24).int().tolist() for n, x in "
        "sent.items()}\n"
        "json.dump(out, sys.stdout)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(sent),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for name, mask in json.loads(ran.stdout).items():
        assert mask == made()[name].mask(L).int().tolist(), name


BROKEN_LINES = {
    "tfviz/patterns/family.py": [
        ("a family is copied", "            return self.__qualname__\n", "            pass\n"),
    ],
    "tfviz/patterns/pattern.py": [
        (
            "a mask_mod is local",
            "partial(_mask_mod_of_table, self.bits)",
            "lambda b, h, q, k: self.bits[q, k]",
        ),
    ],
}
