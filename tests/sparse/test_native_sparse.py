"""Native sparse attention: the three lists of a query, in loops."""

from __future__ import annotations

import pytest
import torch
from refusals import of_no_kind, refused

from tfviz.sparse.native_sparse import branches


@pytest.mark.parametrize(("block", "chosen", "lookback"), [(4, 2, 3), (2, 1, 0), (3, 4, 20)])
def test_it_is_what_loops_give(block: int, chosen: int, lookback: int) -> None:
    Q, K = torch.randn(2, 12, 5, dtype=torch.float64)
    means, selected, window = branches(Q, K, block, chosen, lookback)
    for i in range(12):
        done = [range(b, b + block) for b in range(0, i // block * block, block)]
        fits = torch.tensor([float(Q[i] @ K[keys].mean(0)) / 5**0.5 for keys in map(list, done)])
        weights = torch.zeros(12, dtype=torch.float64)
        for keys, weight in zip(done, fits.double().softmax(0), strict=True):
            weights[list(keys)] = weight
        torch.testing.assert_close(means[i], weights, rtol=1e-5, atol=1e-6)
        best = sorted(range(len(done)), key=lambda b: -fits[b])[:chosen]
        wanted = {j for b in best for j in done[b]} | {*range(i // block * block, i + 1)}
        assert {*selected[i].nonzero()[:, 0].tolist()} == wanted
        assert window[i].nonzero()[:, 0].tolist() == [*range(max(0, i - lookback), i + 1)]


def test_what_does_not_fit_is_refused() -> None:
    X = torch.ones(6, 2)
    refused("block = 4 does not divide L = 6", branches, X, X, 4, 1, 0)
    refused("chosen = 4", branches, X, X, 2, 4, 0)
    refused("lookback = -1", branches, X, X, 2, 1, -1)
    refused("Q (6, 2) and K (4, 2)", branches, X, X[:4], 2, 1, 0)
    of_no_kind("K is a list", branches, X, [], 2, 1, 0)
