"""The kit's singular values against torch's, without a browser: V8 alone runs `maths.js`."""

from __future__ import annotations

import json

import pytest
import torch
from py_mini_racer import JSEvalException, MiniRacer
from torch import Tensor

from tfviz.explorers.base import KIT

Parts = tuple[Tensor, Tensor, Tensor]


@pytest.fixture(scope="module")
def engine() -> MiniRacer:
    engine = MiniRacer()
    engine.eval((KIT / "maths.js").read_text("utf-8"))
    return engine


def decomposed(engine: MiniRacer, A: Tensor) -> Parts:
    """U, S and V of a matrix, as the kit gives them."""
    m, n = A.shape
    call = f"svd(new Float64Array({json.dumps(A.flatten().tolist())}), {m}, {n})"
    lists = json.loads(str(engine.eval(f"JSON.stringify(Object.values({call}).map(x => [...x]))")))
    U, S, V = (torch.tensor(numbers, dtype=torch.float64) for numbers in lists)
    return U.view(m, -1), S, V.view(n, -1)


def matrices() -> dict[str, Tensor]:
    dice = torch.Generator().manual_seed(3)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=dice, dtype=torch.float64)

    return {
        "tall": normal(9, 4),
        "wide": normal(4, 9),
        "square": normal(12, 12),
        "one number": normal(1, 1),
        "one column": normal(5, 1),
        "larger": normal(48, 32),
        "softmax of scores": (3 * normal(16, 16)).softmax(-1),
        "of all sizes": normal(6, 6) * 10.0 ** torch.arange(-6, 6, 2, dtype=torch.float64),
        "very large": 1e200 * normal(5, 5),
        "very small": 1e-200 * normal(5, 5),
        "of rank 2": normal(8, 2) @ normal(2, 6),
        "wide, of rank 2": normal(6, 2) @ normal(2, 8),
        "equal columns": torch.ones(5, 3, dtype=torch.float64),
        "zero": torch.zeros(4, 3, dtype=torch.float64),
        "identity": torch.eye(5, dtype=torch.float64),
    }


@pytest.mark.parametrize("name", matrices())
def test_it_is_torchs(engine: MiniRacer, name: str) -> None:
    A = matrices()[name]
    U, S, V = decomposed(engine, A)
    size = float(A.abs().max()) or 1.0
    right = torch.linalg.svdvals(A)
    assert S.shape == right.shape and (S - right).abs().max() <= 1e-13 * float(right.max() or 1)
    assert ((U * S) @ V.T - A).abs().max() <= 1e-12 * size
    rank = int((S > 0).sum())
    assert rank == int(torch.linalg.matrix_rank(A / size))
    for side in (U, V):
        some = side[:, :rank]
        gram = some.T @ some - torch.eye(rank, dtype=torch.float64)
        assert not rank or gram.abs().max() < 1e-12, "columns of length 1, orthogonal"


def test_the_largest_number_of_each_column_is_positive(engine: MiniRacer) -> None:
    for A in matrices().values():
        U, S, _ = decomposed(engine, A)
        top = U.gather(0, U.abs().argmax(0, keepdim=True))
        assert (top >= 0).all() and (S[:-1] >= S[1:]).all()


@pytest.mark.parametrize(("wrong", "place"), [("NaN", "[1, 0]"), ("Infinity", "[1, 0]")])
def test_what_is_not_finite_is_refused_with_its_place(
    engine: MiniRacer, wrong: str, place: str
) -> None:
    with pytest.raises(JSEvalException, match=r"all must be finite") as error:
        engine.eval(f"svd(new Float64Array([1, 2, {wrong}, 4]), 2, 2)")
    assert place in str(error.value) and wrong in str(error.value)
    with pytest.raises(JSEvalException, match="svd of 3 numbers as 2 × 2"):
        engine.eval("svd(new Float64Array([1, 2, 3]), 2, 2)")
