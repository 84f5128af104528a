"""FlashAttention: three numbers a query, carried from block to block, give the whole softmax."""

from __future__ import annotations

import math

import pytest
import torch
from refusals import of_no_kind, refused

from tfviz.basics.flash_attention import outputs_so_far


@pytest.mark.parametrize("block", [1, 3, 8, 64])
def test_after_each_block_it_is_the_softmax_of_the_keys_so_far(block: int) -> None:
    scores, values = 30 * torch.randn(2, 20, dtype=torch.float64)
    seen = [min(end, 20) for end in range(block, 20 + block, block)]
    whole = [scores[:n].softmax(0) @ values[:n] for n in seen]
    torch.testing.assert_close(outputs_so_far(scores, values, block), torch.stack(whole))


def test_scores_that_no_exponential_can_hold_do_no_harm() -> None:
    """e^1000 is infinite: the largest score has to be subtracted, also from what came before."""
    scores, values = torch.tensor([1000.0, -1000.0, 1001.0]), torch.tensor([1.0, 2.0, 3.0])
    share = 1 / (1 + math.exp(-1))
    wanted = torch.tensor([1.0, 1.0, 3 * share + 1 - share])
    torch.testing.assert_close(outputs_so_far(scores, values, 1), wanted)


def test_what_is_not_one_query_is_refused() -> None:
    four = torch.ones(4)
    refused("scores (4,) and values (3,)", outputs_so_far, four, torch.ones(3), 2)
    refused("scores (0,)", outputs_so_far, torch.ones(0), torch.ones(0), 2)
    refused("block = 0", outputs_so_far, four, four, 0)
    of_no_kind("scores is a list", outputs_so_far, [1.0], four, 2)
