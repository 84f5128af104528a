"""What a core promises that keeps sums in place of the past: a text may come in parts, what it
keeps has one size, and it goes on with no other text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from laws import B, L, it_resumes_to_the_last_bit, qkv, streamed
from refusals import refused
from torch import Generator, nn

from tfviz import GPT, patterns
from tfviz.cores import Make, Where
from tfviz.models.blocks import MultiHeadAttention
from tfviz.models.use import generate

CAUSAL = Where(patterns.causal())


def small_gpt(core: Make) -> GPT:
    """Two layers of two heads of 8 numbers, always the same."""
    torch.manual_seed(0)
    return GPT(11, 16, 2, 2, core=core)


def parts_of_a_long_text_go_on(
    core: Make, prepare: Callable[[Any], object] = lambda core: None
) -> None:
    """Token by token, in parts that do not fit the chunks, and all at once."""
    torch.manual_seed(0)
    attend = MultiHeadAttention(16, 2, core=core, pattern=patterns.causal()).double()
    prepare(attend.core)
    X = torch.randn(2, 200, 16, dtype=torch.float64)
    whole = attend(X)
    for sizes in (1, [1, 130, 64, 5]):
        torch.testing.assert_close(streamed(attend, X, sizes), whole)


def it_writes_and_resumes_with_one_size(make: Callable[[], GPT], numbers: int) -> None:
    """What all layers keep is so many numbers after each of 20 parts, and goes through a file."""
    model, t, cache = make().eval(), torch.zeros(1, 3).long(), dict[nn.Module, Any]()
    for _ in range(20):
        model(t, cache=cache)
        kept = torch.utils._pytree.tree_leaves([kept.state for kept in cache.values()])
        assert sum(x.numel() for x in kept) == numbers
    assert generate(model, t, 9).shape == (1, 12)
    ids = torch.randint(11, (2, 40), generator=Generator().manual_seed(1))
    it_resumes_to_the_last_bit(make, ids, 5)


def it_refuses_other_texts(core: Any) -> None:
    """A cache or a mask of another number of texts; `core` is in float64."""
    X, kept = [x.detach() for x in qkv()], list[Any]()
    core(*X, Where(patterns.causal(), keep=kept.append))
    words = f"the cache is of {B} texts, now there are 1"
    refused(words, core, *(x[:1] for x in X), Where(patterns.causal(), L, state=kept.pop()))
    where = Where(patterns.causal(), attention_mask=torch.ones(3, L, dtype=torch.bool))
    refused(f"attention_mask has 3 rows, Q {B}", core, *X, where)
