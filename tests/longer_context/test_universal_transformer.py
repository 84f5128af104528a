"""Universal Transformer: tied layers, its equation, every model, a cache, growth."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from laws import Case, agree_with_gradients, streamed, work_grows_no_faster
from refusals import ranges, refused
from torch import nn

from tfviz.longer_context import universal_transformer as room
from tfviz.longer_context.universal_transformer import Universal, universal
from tfviz.longer_context.ut_time_position_signal import LearnedSteps, TimePosition
from tfviz.measure import flops
from tfviz.models.bert import BERT
from tfviz.models.blocks import Block, post_norm, pre_norm
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.models.gpt import GPT
from tfviz.models.use import generate
from tfviz.position.rope import Rope

TEXT = torch.randint(11, (2, 9), generator=torch.Generator().manual_seed(3))


def gpt(T: int, **more: Any) -> Any:
    torch.manual_seed(0)
    signal = more.pop("signal", TimePosition(16))
    return universal(GPT(11, 16, 2, 1, **{"order": post_norm} | more), T, signal).double()


def test_it_is_the_equation_and_tied_layers() -> None:
    block = Block(16, 2, post_norm).double()
    H = X = torch.randn(1, 5, 16, dtype=torch.float64, requires_grad=True)
    signal, i = TimePosition(16), torch.arange(5)
    for t in (1, 2, 3):
        P = signal.place(i).double() + signal.step(t).double()
        A = block.norms[0]((H + P) + block.attend(H + P))
        H = block.norms[1](A + block.feed(A))
    stack = Universal(block, 3, signal)
    agree_with_gradients(stack(X), H, [X, *block.parameters()])
    torch.testing.assert_close(stack.states(X)[3], H)
    assert room.changes(stack.states(X)).shape == (1, 3, 5)
    one = Universal(block, 1, None)
    assert one(X).equal(block(X))


def test_parameters_do_not_grow_and_work_does() -> None:
    sizes = {sum(x.numel() for x in gpt(T).parameters()) for T in (1, 4, 9)}
    assert len(sizes) == 1
    once, four = (flops(gpt(T).stack, torch.randn(1, 5, 16).double()) for T in (1, 4))
    assert four == 4 * once


@pytest.mark.parametrize("core", [None, lambda: Rope(8)])
@pytest.mark.parametrize("order", [post_norm, pre_norm])
def test_with_a_cache_as_without(core: Any, order: Any) -> None:
    model = gpt(3, order=order, **({"core": core} if core else {}))
    cache: dict = {}
    parts = streamed(model, TEXT, [4, 1, 1, 3], cache)
    torch.testing.assert_close(parts, model(TEXT))
    assert len(cache) == 1 and next(iter(cache.values())).length == 9
    changed = TEXT.clone()
    changed[:, 6] = (TEXT[:, 6] + 1) % 11
    assert model(changed)[:, :6].equal(model(TEXT)[:, :6])  # causal
    assert generate(model, TEXT[:, :3], 4).shape == (2, 7)


def test_every_model_of_blocks_becomes_one() -> None:
    torch.manual_seed(0)
    attention_mask = torch.ones(2, 9, dtype=torch.bool)
    attention_mask[1, 6:] = False
    bert = universal(BERT(11, 16, 2, 1), 3)
    other = TEXT.clone()
    other[1, 7] = (TEXT[1, 7] + 1) % 11
    assert bert(TEXT, attention_mask)[:, :6].equal(bert(other, attention_mask)[:, :6])
    both = universal(EncoderDecoder(11, 16, 2, 1), 3).double()
    assert isinstance(both.encoder, Universal) and isinstance(both.decoder, Universal)
    memory, cache = both.encode(TEXT), dict[Any, Any]()
    parts = torch.cat([both.decode(s, memory, None, cache) for s in TEXT.split(3, 1)], 1)
    torch.testing.assert_close(parts, both(TEXT, TEXT))


def test_steps_tell_themselves_apart_only_by_the_signal() -> None:
    X, i = torch.randn(1, 5, 16), torch.arange(5)
    plain, told = gpt(3, signal=TimePosition(16, steps=False)), gpt(3)
    same = plain.float().stack
    assert same.told(X, i, 1).equal(same.told(X, i, 2))
    assert not told.float().stack.told(X, i, 1).equal(told.stack.told(X, i, 2))
    learned = gpt(3, signal=LearnedSteps(16, 3)).stack
    learned.T = 4
    refused("t = 4 is out of range", learned, X.double())


def test_growth() -> None:
    stack = Universal(Block(8, 2, post_norm), 3, TimePosition(8))
    work_grows_no_faster(lambda L: stack, 1.1, leaves=lambda L: [(1, L, 8)])  # no L × L weights


def test_errors_name_the_argument() -> None:
    refused("N = 1", universal, GPT(11, 8, 2, 0), 3)
    refused("N = 1", universal, nn.Linear(1, 1), 3)
    ranges(gpt, T=(3, 1))


# --- what it brings to the laws and the mutants ---------------------------------------------------

CASE = Case(
    mutants=[
        (
            "a Universal Transformer that is told the place alone",
            " + self.signal.step(t).to(X)",
            "",
        ),
        (
            "steps that share one cache",
            "kept.state[t - 1] if",
            "kept.state[0] if",
        ),
    ],
)
